#include "cli/experiment.h"

#include <fnmatch.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/file.h"
#include "base/mem.h"
#include "cli/setup.h"
#include "cli/setup_problem.h"
#include "cli/setup_weights.h"

static struct pl_corrector corrector_of(const struct pl_config *c, const char *name)
{
    bool zero = !strcmp(pl_config_text(c, "corrector.start"), "zero");
    struct pl_corrector out = pl_corrector_make(name, pl_config_real(c, "corrector.c"),
                                                zero ? PL_START_ZERO : PL_START_HOLD);
    out.smooth = pl_config_real(c, "corrector.smooth");
    out.land = !strcmp(pl_config_text(c, "corrector.land"), "y");
    out.gate = !strcmp(pl_config_text(c, "corrector.gate"), "cosine");
    out.lambda = pl_config_real(c, "corrector.lambda");
    return out;
}

struct pl_rate pl_arm_rate(const struct pl_arm *arm)
{
    const struct pl_config *c = arm->config;
    int64_t total = pl_config_int(c, "train.updates");
    return (struct pl_rate){
        .kind = (enum pl_rate_kind)pl_config_choice(c, "rate.schedule"),
        .warmup = (int64_t)(pl_config_real(c, "rate.warmup") * (double)total + 0.5),
        .total = total,
        .floor = pl_config_real(c, "rate.floor"),
        .decay_fraction = pl_config_real(c, "rate.decay_fraction"),
        .delay_power = pl_config_real(c, "rate.delay_power"),
        .delay_updates = pl_config_int(c, "rate.delay_updates"),
    };
}

/* How much larger this arm's microbatch is than the one that the costs are for. */
static int find_cost_factor(struct pl_arm *arm, int m)
{
    const struct pl_config *c = arm->config;
    int64_t batch = pl_config_int(c, "train.batch");
    int64_t unit = pl_config_int(c, "cost.sequences");
    if (batch % m)
        return pl_fail(
            PL_ECONFIG,
            "%s: train.batch of %lld sequences cannot be cut into m = %d equal "
            "microbatches (schedule.microbatches)",
            arm->name, (long long)batch, m);
    if (batch / m % unit)
        return pl_fail(PL_ECONFIG,
                       "%s: a microbatch of %lld sequences is not a multiple of "
                       "cost.sequences = %lld",
                       arm->name, (long long)(batch / m), (long long)unit);
    arm->cost_factor = batch / m / unit;
    return 0;
}

/* Append the stretch to the arm's version map; one of them is kept for the trace.
 */
static int simulate_stretch(struct pl_arm *arm, const struct pl_stretch *s, int m,
                            bool shown)
{
    struct pl_shape shape = {0};
    struct pl_cost cost = {0};
    struct pl_simulation sim;
    int rc = pl_setup_shape(arm->config, s->type, m, s->updates, &shape);
    if (!rc) rc = pl_setup_cost(arm->config, s->type, &shape, &cost, NULL);
    if (!rc) rc = pl_cost_scale(&cost, arm->cost_factor);
    if (!rc) rc = pl_simulate(s->type, &shape, &cost, arm->global_clip, &sim);
    if (!rc && (rc = pl_setup_delay(arm->config, &sim))) pl_simulation_free(&sim);
    pl_shape_free(&shape);
    if (rc) {
        pl_cost_free(&cost);
        return pl_fail(rc, "%s: %s", arm->name, pl_error_text());
    }
    rc = pl_versions_append(&arm->versions, &sim.versions);
    if (shown) {
        arm->sim = sim;
        arm->cost = cost;
        int64_t window = (3 * shape.P + m - 1) / m; /* updates that a Gantt shows */
        pl_simulation_trim(&arm->sim, window > 3 ? window : 3);
    } else {
        pl_simulation_free(&sim);
        pl_cost_free(&cost);
    }
    return rc;
}

/* The stretches of an arm: `segments`, or one of the schedule for the whole run. */
static int read_stretches(struct pl_arm *arm, char *segments, struct pl_stretch *out)
{
    const struct pl_config *c = arm->config;
    int64_t total = 0, updates = pl_config_int(c, "train.updates");
    int rc = pl_segments_parse(c, segments, out, &arm->n_segments);
    if (rc) return rc;
    if (!arm->n_segments)
        out[arm->n_segments++] = (struct pl_stretch){
            pl_schedule_find(pl_config_text(c, "schedule.name")), NULL, updates};
    for (int i = 0; i < arm->n_segments; i++) {
        const char *name =
            out[i].corrector ? out[i].corrector : pl_config_text(c, "corrector.name");
        arm->schedules[i] = out[i].type->name;
        arm->segments[i] = (struct pl_segment){out[i].updates, corrector_of(c, name)};
        if (out[i].updates > updates - total) /* the sum itself may overflow */
            return pl_fail(PL_ECONFIG,
                           "%s: segments add up to more than train.updates, %lld",
                           pl_config_where(c, "segments"), (long long)updates);
        total += out[i].updates;
    }
    if (total == updates) return 0;
    return pl_fail(
        PL_ECONFIG, "%s: segments add up to %lld updates, train.updates is %lld",
        pl_config_where(c, "segments"), (long long)total, (long long)updates);
}

/* corrector.stage_c: one number for each model chunk of the schedule. */
static int read_stage_c(struct pl_arm *arm)
{
    const char *at = pl_config_text(arm->config, "corrector.stage_c");
    const int stages = arm->versions.stages;
    int n = 0;
    if (!*at) return 0;
    arm->stage_c = PL_NEW(stages, double);
    for (char *end; n < stages; n++, at = end) {
        arm->stage_c[n] = strtod(at, &end);
        if (end == at || !isfinite(arm->stage_c[n])) break;
    }
    at += strspn(at, " ");
    if (n < stages || *at)
        return pl_fail(PL_ECONFIG,
                       "%s: corrector.stage_c: '%s' at number %d, expected %d, one "
                       "for each stage (model chunk of the schedule)",
                       pl_config_where(arm->config, "corrector.stage_c"), at, n,
                       stages);
    for (int i = 0; i < arm->n_segments; i++)
        arm->segments[i].corrector.stage_c = arm->stage_c;
    return 0;
}

static bool map_is_nostash(const struct pl_versions *v)
{
    for (int64_t i = 0; i < v->stages * v->n_micro; i++)
        if (v->backward[i] != v->forward[i]) return true;
    return false;
}

static bool map_is_uniform(const struct pl_versions *v)
{
    for (int64_t i = 0; i < v->stages * v->n_micro; i++)
        if (v->forward[i] != v->forward[i % v->n_micro]) return false;
    return true;
}

/* Delays that replace the schedule's decide for themselves. */
static void replace_map(struct pl_arm *arm)
{
    arm->nostash = map_is_nostash(&arm->versions);
    if (!strcmp(pl_config_text(arm->config, "clip.scope"), "auto"))
        arm->global_clip &= map_is_uniform(&arm->versions);
}

static int arm_simulate(struct pl_arm *arm)
{
    const struct pl_config *c = arm->config;
    struct pl_stretch stretches[PL_MAX_SEGMENTS];
    int shown = 0, P = (int)pl_config_int(c, "schedule.stages"), m = 1;
    char *segments = pl_strdup(pl_config_text(c, "segments"));
    int rc = read_stretches(arm, segments, stretches);
    if (!rc) {
        for (int i = 0; i < arm->n_segments; i++)
            arm->nostash |= stretches[i].type->nostash;
        shown = pl_segments_shown(stretches, arm->n_segments);
        /* one scope for the whole run: the one that its most uneven stretch allows */
        if (!rc)
            rc = pl_setup_barrier(c, pl_segments_uneven(stretches, arm->n_segments),
                                  &arm->global_clip);
        if (rc) rc = pl_fail(rc, "%s: %s", arm->name, pl_error_text());
        m = pl_setup_microbatches(c, stretches[shown].type, P);
    }
    if (!rc) rc = find_cost_factor(arm, m);
    for (int i = 0; i < arm->n_segments && !rc; i++)
        rc = simulate_stretch(arm, &stretches[i], m, i == shown);
    if (!rc) rc = read_stage_c(arm);
    if (!rc && pl_setup_has_delay(c)) replace_map(arm);
    if (!rc) arm->end_s = arm->versions.done_s[arm->versions.updates - 1];
    free(segments);
    return rc;
}

static char *arm_name(const struct pl_config *config, int arm)
{
    char *name = NULL;
    for (int axis = 0; axis < pl_config_n_axes(config); axis++) {
        const char *label =
            pl_config_label(config, axis, pl_config_arm_label(config, arm, axis));
        char *longer = name ? pl_printf("%s+%s", name, label) : pl_strdup(label);
        free(name);
        name = longer;
    }
    return name ? name : pl_strdup("run");
}

/* Does a word of the space-separated patterns match the name? */
static bool listed(const char *patterns, const char *name)
{
    char *text = pl_strdup(patterns), *save = NULL;
    bool found = false;
    for (char *w = strtok_r(text, " ", &save); w && !found;
         w = strtok_r(NULL, " ", &save))
        found = fnmatch(w, name, 0) == 0;
    free(text);
    return found;
}

static bool wanted(const struct pl_config *config, const char *name)
{
    const char *only = pl_config_text(config, "arms.only");
    return (!*only || listed(only, name)) &&
           !listed(pl_config_text(config, "arms.skip"), name);
}

/* model.weights, whose bytes count for the results. Arms with the same file follow each
 * other. */
static int hash_weights(struct pl_arm *arm, const struct pl_arm *before)
{
    const char *path = pl_config_text(arm->config, "model.weights");
    if (!before || strcmp(path, pl_config_text(before->config, "model.weights")))
        return pl_setup_weights_hash(arm->config, &arm->weights);
    arm->weights = before->weights;
    return 0;
}

static int arm_new(const struct pl_config *config, struct pl_arm *arm)
{
    int rc = pl_config_arm(config, arm->number, &arm->config);
    if (rc) return rc;
    rc = pl_model_read(arm->config, &arm->model);
    if (!rc && pl_setup_problem_type(arm->config)->on_data)
        rc = pl_model_check_trainable(&arm->model);
    if (!rc) rc = arm_simulate(arm);
    if (!rc) {
        rc = pl_setup_problem_known(arm->config, arm->versions.stages, &arm->known);
        if (rc) rc = pl_fail(rc, "%s: %s", arm->name, pl_error_text());
    }
    return rc;
}

int pl_experiment_new(const struct pl_config *config, struct pl_experiment *out)
{
    struct pl_experiment e = {.config = config, .n_seeds = pl_config_n_seeds(config)};
    int rc = 0, n = pl_config_n_arms(config);
    e.arms = PL_NEW(n, struct pl_arm);
    for (int i = 0; i < n && !rc; i++) {
        char *name = arm_name(config, i);
        if (!wanted(config, name)) {
            free(name);
            continue;
        }
        struct pl_arm *arm = &e.arms[e.n_arms++];
        arm->number = i;
        arm->name = name;
        rc = arm_new(config, arm);
        if (!rc) rc = hash_weights(arm, e.n_arms > 1 ? arm - 1 : NULL);
    }
    if (!rc && !e.n_arms)
        rc = pl_fail(PL_ECONFIG,
                     "%s: no arm is left by arms.only and arms.skip, 'pipelag config "
                     "--arms' without them lists all",
                     pl_config_where(config, pl_config_given(config, "arms.only")
                                                 ? "arms.only"
                                                 : "arms.skip"));
    if (rc) {
        pl_experiment_free(&e);
        return rc;
    }
    *out = e;
    return 0;
}

void pl_experiment_free(struct pl_experiment *e)
{
    for (int i = 0; i < e->n_arms; i++) {
        struct pl_arm *arm = &e->arms[i];
        free(arm->name);
        free(arm->stage_c);
        pl_config_free(arm->config);
        pl_cost_free(&arm->cost);
        pl_simulation_free(&arm->sim);
        pl_versions_free(&arm->versions);
    }
    free(e->arms);
    *e = (struct pl_experiment){0};
}
