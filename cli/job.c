/* One seed of one arm: from configuration to pl_run. */
#include <dirent.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/file.h"
#include "base/mpi.h"
#include "base/mem.h"
#include "cli/experiment.h"
#include "cli/setup.h"
#include "cli/setup_data.h"
#include "cli/setup_optim.h"
#include "cli/setup_precision.h"
#include "cli/setup_problem.h"
#include "cli/setup_score.h"
#include "cli/setup_weights.h"

struct parts {
    const struct pl_device *device;
    const struct pl_device *products; /* the same one in train.precision: the model's */
    struct pl_data *data;
    struct pl_problem *problem;
    struct pl_score_sets scores;
    double bytes_per_token;
    struct pl_weights *weights; /* NULL: drawn */
    const struct pl_experiment *experiment;
    int job;
};

static void close_parts(struct parts *p)
{
    pl_weights_close(p->weights);
    pl_problem_free(p->problem);
    pl_score_free(&p->scores);
    pl_data_free(p->data);
    if (p->device) p->device->close();
}

/* tell: of what is computed otherwise than asked. */
static int open_device(const struct pl_config *c, bool tell, struct parts *p)
{
    int rc = pl_setup_device(c, tell, &p->device);
    p->products = p->device;
    if (!rc && pl_setup_problem_type(c)->on_data)
        rc = pl_setup_precision(c, p->device, tell, &p->products);
    return rc;
}

/* All but the problem. tell: of what is computed otherwise than asked. wrap: puts a
 * device in front of each, or NULL. */
static int open_parts(const struct pl_arm *arm, bool tell,
                      const struct pl_device *(*wrap)(int i, const struct pl_device *),
                      struct parts *p)
{
    const struct pl_config *c = arm->config;
    int rc = 0;
    if (pl_setup_problem_type(c)->on_data)
        rc = pl_setup_data(c, (int)pl_config_int(c, "train.seq"), &p->data);
    if (!rc) rc = pl_setup_scores(c, p->data, &p->scores, &p->bytes_per_token);
    if (!rc) rc = open_device(c, tell, p);
    if (!rc && wrap) {
        p->products = wrap(1, p->products);
        p->device = wrap(0, p->device);
    }
    return rc;
}

static struct pl_computed computed_by(const struct parts *p, const struct pl_config *c)
{
    struct pl_computed by = {"", ""};
    if (!strcmp(pl_config_text(c, "train.device"), "auto"))
        snprintf(by.device, sizeof by.device, "%s", p->device->name);
    if (p->products == p->device && pl_setup_problem_type(c)->on_data)
        snprintf(by.precision, sizeof by.precision, "%s", p->device->precision);
    return by;
}

int pl_arm_computed(const struct pl_arm *arm, struct pl_computed *out)
{
    const struct pl_config *c = arm->config;
    struct parts p = {0};
    int rc = open_device(c, false, &p);
    if (!rc) *out = computed_by(&p, c);
    close_parts(&p);
    return rc;
}

static int load_weights(void *files, float *const *blocks)
{
    struct parts *p = files;
    return pl_weights_load(p->weights, p->problem, blocks);
}

static uint64_t data_of(const struct parts *p)
{
    uint64_t bytes; /* per token: the vocabulary's say in the rows */
    memcpy(&bytes, &p->bytes_per_token, sizeof bytes);
    return p->data ? pl_data_fingerprint(p->data) ^
                         pl_setup_scores_fingerprint(&p->scores) ^ bytes
                   : 0;
}

int pl_experiment_data(struct pl_experiment *e)
{
    int rc = 0;
    if (e->n_arms && pl_setup_problem_type(e->arms[0].config)->on_data)
        pl_setup_data_warn(e->arms[0].config);
    for (int i = 0; i < e->n_arms && !rc; i++) {
        const struct pl_config *c = e->arms[i].config;
        struct parts p = {0};
        if (pl_setup_problem_type(c)->on_data)
            rc = pl_setup_data(c, (int)pl_config_int(c, "train.seq"), &p.data);
        if (!rc) rc = pl_setup_scores(c, p.data, &p.scores, &p.bytes_per_token);
        if (!rc) e->arms[i].data = data_of(&p);
        close_parts(&p);
    }
    return rc;
}

enum pl_clip_scope pl_arm_clip_scope(const struct pl_arm *arm)
{
    const char *scope = pl_config_text(arm->config, "clip.scope");
    if (!strcmp(scope, "none") || pl_config_real(arm->config, "clip.norm") <= 0)
        return PL_CLIP_NONE;
    return arm->global_clip ? PL_CLIP_GLOBAL : PL_CLIP_STAGE;
}

enum pl_fidelity pl_arm_fidelity(const struct pl_arm *arm)
{
    int given = pl_config_choice(arm->config, "delay.fidelity"); /* auto, then these */
    if (given > 0) return (enum pl_fidelity)(given - 1);
    if (arm->nostash) return PL_FIDELITY_NOSTASH;
    if (pl_setup_has_delay(arm->config)) return PL_FIDELITY_STASH;
    return arm->sim.schedule.type->global_version && arm->n_segments == 1
               ? PL_FIDELITY_GLOBAL
               : PL_FIDELITY_STASH;
}

/* Losses of problems without data have any size: only a given limit counts. */
static double diverged_above(const struct pl_config *c)
{
    static const char key[] = "train.diverged_above";
    return pl_setup_problem_type(c)->on_data || pl_config_given(c, key)
               ? pl_config_real(c, key)
               : 0;
}

static void fill_spec(const struct pl_arm *arm, const struct parts *p,
                      struct pl_run_spec *spec)
{
    const struct pl_config *c = arm->config;
    int rank, ranks;
    if (pl_mpi_launched(&rank, &ranks)) ranks = 1; /* refused elsewhere */
    *spec = (struct pl_run_spec){
        .rank = rank,
        .ranks = ranks,
        .device = p->device,
        .problem = p->problem,
        .data = p->data,
        .versions = &arm->versions,
        .fidelity = pl_arm_fidelity(arm),
        .batch = (int)pl_config_int(c, "train.batch"),
        .at_once = (int)pl_config_int(c, "train.at_once"),
        .T = (int)pl_config_int(c, "train.seq"),
        .decay_stale = !strcmp(pl_config_text(c, "optimizer.decay_at"), "stale"),
        .optim = pl_setup_optim(c),
        .rate = pl_arm_rate(arm),
        .clip = pl_config_real(c, "clip.norm"),
        .clip_scope = pl_arm_clip_scope(arm),
        .n_segments = arm->n_segments,
        .segments = arm->segments,
        .replay = pl_config_bool(c, "train.replay"),
        .eval_every = pl_config_int(c, "train.eval_every"),
        .eval_sequences = (int)pl_config_int(c, "train.eval_sequences"),
        .diagnose = pl_config_bool(c, "train.diagnose"),
        .scores = &p->scores,
        .bytes_per_token = p->bytes_per_token,
        .diverged_above = diverged_above(c),
        .checkpoint_updates = pl_config_int(c, "train.checkpoint_updates"),
        .checkpoint_s = pl_config_real(c, "train.checkpoint_s"),
        .resume = true,
    };
}

/* Load balance is taken over a microbatch, so its sequences stay together. */
static int check_at_once(const struct pl_arm *arm, const struct pl_run_spec *spec)
{
    const int part =
        spec->batch / spec->versions->m / (spec->ranks > 1 ? spec->ranks : 1);
    bool whole = arm->model.experts && arm->model.aux_loss > 0 && !arm->model.seq_aux;
    if (!spec->data || !whole || !spec->at_once || spec->at_once >= part) return 0;
    return pl_fail(PL_ECONFIG,
                   "%s: train.at_once is %d, expected at least the %d sequences of a "
                   "microbatch, over which model.aux_loss_coef balances (model.seq_aux "
                   "balances over each sequence)",
                   pl_config_where(arm->config, "train.at_once"), spec->at_once, part);
}

/* The problem, for what spec hands it at once, and its weights. */
static int open_problem(const struct pl_arm *arm, bool dry, struct parts *p,
                        struct pl_run_spec *spec)
{
    const struct pl_config *c = arm->config;
    int rc = check_at_once(arm, spec);
    pl_problem_free(p->problem);
    spec->problem = p->problem = NULL;
    if (!rc)
        rc = pl_setup_problem(c, &arm->model, p->products, arm->versions.stages,
                              pl_run_at_once(spec), dry, &p->problem);
    spec->problem = p->problem;
    if (!rc && !p->weights)
        rc = pl_setup_weights(c, &arm->model, p->problem, &p->weights);
    spec->load = p->weights ? load_weights : NULL;
    spec->files = p;
    return rc;
}

/* Everything that a job opens. */
static int open_spec(const struct pl_arm *arm, bool tell, bool dry,
                     const struct pl_device *(*wrap)(int i, const struct pl_device *),
                     struct parts *p, struct pl_run_spec *spec)
{
    int rc = open_parts(arm, tell, wrap, p);
    if (rc) return rc;
    fill_spec(arm, p, spec);
    return open_problem(arm, dry, p, spec);
}

/* The largest train.at_once that fits into `bytes`, 0: none. */
static void find_fitting(const struct pl_arm *arm, size_t bytes, struct parts *p,
                         struct pl_run_spec spec, struct pl_probe *out)
{
    int fits = 0, most = out->at_once;
    while (most - fits > 1) { /* fits does or is too few, most does not */
        spec.at_once = fits + (most - fits) / 2;
        const bool too_few = open_problem(arm, true, p, &spec) != 0;
        struct pl_run_memory need = {0};
        if (!too_few) pl_run_memory(&spec, &need);
        if (need.all > bytes) {
            most = spec.at_once;
            continue;
        }
        fits = spec.at_once;
        if (too_few) continue;
        out->fits = pl_run_at_once(&spec);
        out->fits_bytes = need.all;
    }
}

int pl_arm_probe(const struct pl_arm *arm, bool numbers, struct pl_probe *out)
{
    struct parts p = {0};
    struct pl_run_spec spec;
    *out = (struct pl_probe){0};
    int rc = open_spec(arm, true, true, NULL, &p, &spec);
    if (!rc && p.weights && numbers) rc = pl_weights_check(p.weights);
    if (!rc) {
        rc = pl_run_memory(&spec, &out->memory);
        if (rc) rc = pl_fail(rc, "%s: %s", arm->name, pl_error_text());
    }
    if (!rc) {
        out->at_once = pl_run_at_once(&spec);
        out->fidelity = spec.fidelity;
        out->host = p.device->host_memory;
        p.products->describe(out->device, sizeof out->device);
        out->computed = computed_by(&p, arm->config);
        const double left = pl_memory_available();
        if (out->host && (double)out->memory.all > left && spec.data)
            find_fitting(arm, (size_t)left, &p, spec, out);
    }
    close_parts(&p);
    return rc;
}

int pl_arm_with_spec(const struct pl_arm *arm,
                     const struct pl_device *(*wrap)(int i, const struct pl_device *),
                     int (*use)(void *context, const struct pl_run_spec *spec),
                     void *context)
{
    struct parts p = {0};
    struct pl_run_spec spec;
    struct pl_run_memory memory;
    int rc = open_spec(arm, true, true, wrap, &p, &spec);
    if (!rc) rc = pl_run_memory(&spec, &memory);
    if (!rc && p.device->host_memory)
        rc = pl_memory_check((double)memory.all, arm->name);
    if (!rc) rc = open_problem(arm, false, &p, &spec);
    if (!rc) {
        spec.seed = pl_config_seed(arm->config, 0);
        rc = use(context, &spec);
    }
    close_parts(&p);
    return rc;
}

char *pl_job_save_folder(const struct pl_experiment *e, int job)
{
    return pl_printf("%s/%s-%llu", e->save, pl_job_arm(e, job)->name,
                     (unsigned long long)pl_job_seed(e, job));
}

/* What says in a file of weights whose they are, and after how many updates. */
static const char note_job[] = "pipelag_run", note_update[] = "pipelag_update";

static char *job_text(const struct pl_experiment *e, int job)
{
    return pl_printf("%016llx", (unsigned long long)pl_job_fingerprint(e, job));
}

/* Is one of several files of weights there that is the run's? Killed among them, it
 * left no index. */
static bool has_shard(const char *folder, const char *own)
{
    DIR *dir = opendir(folder);
    bool found = false;
    for (struct dirent *entry; dir && !found && (entry = readdir(dir));) {
        if (strncmp(entry->d_name, "model-", 6)) continue;
        char *path = pl_printf("%s/%s", folder, entry->d_name);
        char *run = pl_safetensors_note(path, note_job);
        found = run && !strcmp(run, own);
        free(path);
        free(run);
    }
    if (dir) closedir(dir);
    return found;
}

bool pl_job_saved(const struct pl_experiment *e, int job, bool last)
{
    char *folder = pl_job_save_folder(e, job), *own = job_text(e, job);
    char *run = pl_safetensors_note(folder, note_job);
    char *update = pl_safetensors_note(folder, note_update);
    bool saved = run && !strcmp(run, own) && update &&
                 (!last || atoll(update) == pl_job_arm(e, job)->versions.updates);
    if (!last && !saved) saved = has_shard(folder, own);
    char *const texts[] = {folder, own, run, update};
    for (int i = 0; i < 4; i++) free(texts[i]);
    return saved;
}

static int save_weights(void *files, int64_t update, const float *const *blocks)
{
    struct parts *p = files;
    const struct pl_arm *arm = pl_job_arm(p->experiment, p->job);
    char *folder = pl_job_save_folder(p->experiment, p->job);
    char *run = job_text(p->experiment, p->job);
    char *updates = pl_printf("%lld", (long long)update);
    /* transformers asks for the first */
    const struct pl_tensor_note notes[] = {
        {"format", "pt"}, {note_job, run}, {note_update, updates}, {0}};
    const struct pl_safetensors_form form = {p->experiment->save_type,
                                             p->experiment->save_shard, notes};
    int rc = pl_setup_weights_save(folder, &arm->model,
                                   (int)pl_config_int(arm->config, "train.seq"), &form,
                                   p->problem, blocks);
    free(folder);
    free(run);
    free(updates);
    return rc;
}

int pl_job_run(const struct pl_experiment *e, int job, const char *checkpoint,
               const volatile sig_atomic_t *stop,
               void (*on_row)(void *, const struct pl_row *),
               void (*on_eval)(void *, const struct pl_eval *), void *context,
               struct pl_run_result *out)
{
    const struct pl_arm *arm = pl_job_arm(e, job);
    struct parts p = {.experiment = e, .job = job};
    struct pl_run_spec spec;
    int rc = open_spec(arm, false, false, NULL, &p, &spec);
    if (!rc && data_of(&p) != arm->data)
        rc = pl_fail(PL_EINPUT, "%s: the data has changed since the start", arm->name);
    if (!rc) {
        const struct pl_computed by = computed_by(&p, arm->config);
        if (strcmp(by.device, arm->computed.device) ||
            strcmp(by.precision, arm->computed.precision))
            rc = pl_fail(PL_ENODEV, "%s: the device has changed since the start",
                         arm->name);
    }
    if (!rc) {
        spec.save = e->save ? save_weights : NULL;
        spec.seed = pl_job_seed(e, job);
        spec.checkpoint = checkpoint;
        spec.fingerprint = pl_job_fingerprint(e, job);
        spec.stop = stop;
        spec.on_row = on_row;
        spec.on_eval = on_eval;
        spec.context = context;
        rc = pl_run(&spec, out);
    }
    close_parts(&p);
    return rc;
}
