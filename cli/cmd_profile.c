/* pipelag profile: what F, B, W and U take here, as a cost table for pipelag sim. */
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/pool.h"
#include "cli/cmd.h"
#include "cli/print_profile.h"
#include "cli/setup_problem.h"
#include "cli/unused.h"

enum { OPT_DEVICE = 512, OPT_REPEAT, OPT_JSON, OPT_FORCE };
enum { WARM_UP = 2, REPEAT = 10, MOST_REPEATS = 10000 };

static const struct argp_option options[] = {
    {"output", 'o', "CSV", 0, "write the cost table, for cost.profile", 0},
    {"force", OPT_FORCE, NULL, 0, "replace CSV when it exists", 0},
    {"device", OPT_DEVICE, "NAME", 0, "train.device: auto, host, cuda or ref", 0},
    {"repeat", OPT_REPEAT, "N", 0, "updates that are measured, after 2 (default 10)",
     0},
    {"json", OPT_JSON, NULL, 0, "print one JSON object instead of tables", 0},
    {0},
};

struct arguments {
    const char *file, *output;
    int64_t repeat;
    bool json, force;
    int code; /* of a bad option */
    struct pl_cmd_settings settings;
    const struct pl_arm *arm;
};

static error_t parse(int option, char *arg, struct argp_state *state)
{
    struct arguments *a = state->input;
    switch (option) {
    case ARGP_KEY_INIT:
        state->child_inputs[0] = &a->settings;
        return 0;
    case 'o':
        a->output = arg;
        return 0;
    case OPT_FORCE:
        a->force = true;
        return 0;
    case OPT_DEVICE:
        pl_cmd_settings_add(&a->settings, "train.device", arg, "--device");
        return 0;
    case OPT_REPEAT:
        if (!a->code)
            a->code = pl_cmd_int("--repeat", arg, 1, MOST_REPEATS, &a->repeat);
        return 0;
    case OPT_JSON:
        a->json = true;
        return 0;
    case ARGP_KEY_ARG:
        pl_cmd_argument(state, "FILE", arg, &a->file);
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

static void on_step(void *context, int done, int of)
{
    (void)context;
    (void)of;
    pl_progress_update(done, NULL);
}

/* Peaks by the keys of a GPU where they are given, else 0. */
static int given_peaks(const struct pl_config *c, struct pl_profile_view *v)
{
    static const char *const keys[] = {"cluster.gpu.fp32", "cluster.gpu.tf32",
                                       "cluster.gpu.bf16"};
    static const char key[] = "cluster.gpu.memory_bandwidth";
    const char *bandwidth = pl_config_text(c, key);
    for (int i = 0; i < 3; i++)
        if (!strcmp(v->precision, keys[i] + strlen("cluster.gpu."))) {
            v->flops_per_s = 1e12 * pl_config_real(c, keys[i]);
            v->flops_from = keys[i];
        }
    v->bytes_from = key;
    if (!*bandwidth) return 0;
    if (!pl_units_rate(bandwidth, &v->bytes_per_s) && v->bytes_per_s > 0) return 0;
    return pl_fail(PL_ECONFIG, "%s: %s: '%s' is no rate, expected such as 4800 GB/s",
                   pl_config_where(c, key), key, bandwidth);
}

static void measured_peaks(const struct pl_machine *machine, struct pl_profile_view *v)
{
    static const char measured[] = "measured";
    v->machine = machine;
    if (!(v->flops_per_s > 0)) {
        v->flops_per_s = machine->flops_per_s;
        v->flops_from = measured;
    }
    if (!(v->bytes_per_s > 0)) {
        v->bytes_per_s = machine->bytes_per_s;
        v->bytes_from = measured;
    }
}

static int write_csv(const struct arguments *a, const struct pl_profile_view *v)
{
    struct pl_file *file = pl_file_create(a->output);
    if (!file) return PL_EIO;
    pl_print_profile_csv(v, pl_file_stream(file));
    int code = pl_file_commit(file);
    if (!code) pl_log(PL_LOG_INFO, "wrote %s", a->output);
    return code;
}

static int measure(const struct arguments *a, const struct pl_run_spec *spec,
                   struct pl_machine *machine, struct pl_run_profile *profile)
{
    int code = pl_machine_measure(spec->device, spec->problem->device, machine);
    if (code) return code;
    pl_progress_begin("profile", (double)(WARM_UP + a->repeat), "updates");
    code = pl_run_profile(spec, WARM_UP, (int)a->repeat, on_step, NULL, profile);
    pl_progress_end();
    return code;
}

/* With everything open: measure, then print. */
static int use_spec(void *context, const struct pl_run_spec *spec)
{
    const struct arguments *a = context;
    const struct pl_config *c = a->arm->config;
    struct pl_machine machine;
    struct pl_run_profile profile;
    char device[512];
    struct pl_profile_view view = {.arm = a->arm,
                                   .profile = &profile,
                                   .device = device,
                                   .precision = spec->problem->device->precision,
                                   .n_matmul =
                                       (double)pl_model_count(&a->arm->model).n_matmul,
                                   .flops = pl_model_flops(&a->arm->model, spec->T)};
    int code = given_peaks(c, &view);
    if (!code) code = measure(a, spec, &machine, &profile);
    if (code) return code;
    spec->problem->device->describe(device, sizeof device);
    measured_peaks(&machine, &view);
    if (a->output) code = write_csv(a, &view);
    if (!code) (a->json ? pl_print_profile_json : pl_print_profile_text)(&view, stdout);
    pl_run_profile_free(&profile);
    return code;
}

static int profile_arm(struct arguments *a, const struct pl_config *config)
{
    struct pl_experiment e;
    int code = pl_experiment_new(config, &e);
    if (code) return code;
    a->arm = &e.arms[0];
    const struct pl_problem_type *type = pl_setup_problem_type(a->arm->config);
    if (type != &pl_problem_model) {
        pl_experiment_free(&e);
        return pl_fail(PL_EUNSUP,
                       "problem.name: %s has no layers on stages, expected model",
                       type->name);
    }
    pl_unused_warn_run(&e, "cluster.");
    if (e.n_arms > 1)
        pl_log(PL_LOG_INFO, "arm %s, the first of %d; arms.only chooses", a->arm->name,
               e.n_arms);
    int threads = (int)pl_config_int(a->arm->config, "train.threads");
    pl_pool_threads_set(threads ? threads : pl_pool_cores());
    code = pl_arm_with_spec(a->arm, pl_timed_device, use_spec, a);
    pl_experiment_free(&e);
    return code;
}

int pl_cmd_profile(int argc, char **argv)
{
    static const struct argp argp = {
        .options = options,
        .parser = parse,
        .args_doc = "[FILE]",
        .doc =
            "Measure what an update of a run takes on this machine: forward F, input "
            "gradient B and weight gradient W of a microbatch on each stage, the "
            "update "
            "U, and every operation against what memory and arithmetic allow. The cost "
            "table that it writes is what `pipelag sim --set cost.profile=CSV` reads, "
            "for schedules, microbatches and links that are not here.",
        .children = pl_cmd_settings_children,
    };
    struct arguments arguments = {.repeat = REPEAT};
    struct pl_config *config = NULL;
    argp_parse(&argp, argc, argv, 0, NULL, &arguments);
    int code = arguments.code;
    if (!code && arguments.output)
        code = pl_cmd_output(arguments.output, arguments.force);
    if (!code)
        code = pl_cmd_settings_config(&arguments.settings, arguments.file, &config);
    if (!code) code = profile_arm(&arguments, config);
    pl_config_free(config);
    return pl_cmd_end(&arguments.settings, code);
}
