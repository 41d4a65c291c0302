/* pipelag calibrate: predicted against measured steps, and the keys that fit best. */
#include <stdlib.h>

#include "base/file.h"
#include "base/log.h"
#include "cli/cmd.h"
#include "cli/print_fit.h"

enum { OPT_FIT = 512, OPT_NO_FIT, OPT_JSON, OPT_FORCE };

static const struct argp_option options[] = {
    {"fit", OPT_FIT, "KEY[,KEY]", 0,
     "keys to fit, within their ranges (default cluster.gpu.gemm_fraction)", 0},
    {"no-fit", OPT_NO_FIT, NULL, 0, "compare only", 0},
    {"output", 'o', "YAML", 0,
     "write the fitted keys and what FILE gives, to be used as FILE", 0},
    {"force", OPT_FORCE, NULL, 0, "replace YAML when it exists", 0},
    {"json", OPT_JSON, NULL, 0, "print JSON", 0},
    {0},
};

struct arguments {
    const char *measured, *file, *fit, *output;
    bool json, force, compare;
    struct pl_cmd_settings settings;
};

static error_t parse(int option, char *arg, struct argp_state *state)
{
    struct arguments *a = state->input;
    switch (option) {
    case ARGP_KEY_INIT:
        state->child_inputs[0] = &a->settings;
        return 0;
    case OPT_FIT:
        a->fit = arg;
        return 0;
    case OPT_NO_FIT:
        a->compare = true;
        return 0;
    case 'o':
        a->output = arg;
        return 0;
    case OPT_FORCE:
        a->force = true;
        return 0;
    case OPT_JSON:
        a->json = true;
        return 0;
    case ARGP_KEY_ARG:
        if (state->arg_num > 1) argp_error(state, "more than one FILE: %s", arg);
        *(state->arg_num ? &a->file : &a->measured) = arg;
        return 0;
    case ARGP_KEY_NO_ARGS:
        argp_error(state, "MEASURED.csv is missing");
        return 0;
    case ARGP_KEY_END:
        if (a->compare && (a->fit || a->output))
            argp_error(state, "--no-fit excludes --fit and --output");
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

/* The fitted keys; with base all that it gives, so that the output stands for it. */
static int print_yaml(const struct pl_fit *fit, const char *base, FILE *out)
{
    pl_print_fit_yaml(fit, base ? "# " : "", out);
    if (!base) return PL_OK;
    struct pl_config *config = pl_config_new();
    int code = pl_config_set_value(config, "cost.type", "roofline", "calibrate");
    if (!code) code = pl_config_load(config, base);
    for (int k = 0; k < fit->n_keys && !code; k++) {
        const char *key = fit->key[k].key->name;
        char *value = pl_config_value(fit->data->row[0].config, key); /* the fitted */
        code = pl_config_set_value(config, key, value, "--fit");
        free(value);
    }
    if (!code) pl_config_print(config, true, out);
    pl_config_free(config);
    return code;
}

static int write_yaml(const struct pl_fit *fit, const char *base, const char *path)
{
    struct pl_file *file = pl_file_create(path);
    if (!file) return PL_EIO;
    int code = print_yaml(fit, base, pl_file_stream(file));
    if (code) {
        pl_file_discard(file);
        return code;
    }
    code = pl_file_commit(file);
    if (!code) pl_log(PL_LOG_INFO, "wrote %s", path);
    return code;
}

static int calibrate(const struct arguments *a)
{
    struct pl_measured data;
    struct pl_fit fit;
    const char *keys = a->fit ? a->fit : "cluster.gpu.gemm_fraction";
    int code = a->output ? pl_cmd_output(a->output, a->force) : 0;
    if (!code) code = pl_measured_read(a->measured, a->file, &a->settings, &data);
    if (code) return code;
    code = pl_fit_new(&data, a->compare ? NULL : keys, &fit);
    if (!code) {
        if (a->output) code = write_yaml(&fit, a->file, a->output);
        if (!code) (a->json ? pl_print_fit_json : pl_print_fit_text)(&fit, stdout);
        pl_fit_free(&fit);
    }
    pl_measured_free(&data);
    return code;
}

int pl_cmd_calibrate(int argc, char **argv)
{
    static const struct argp argp = {
        .options = options,
        .parser = parse,
        .args_doc = "MEASURED.csv [FILE]",
        .doc =
            "Compare measured training steps with simulated ones, and find the values "
            "of a few keys, such as the fraction of its peak that a GPU reaches in "
            "matrix products, for which they agree best. A row of MEASURED.csv is one "
            "run: its columns are configuration keys and the measured `step [s]`; "
            "FILE and --set give the other keys.",
        .children = pl_cmd_settings_children,
    };
    struct arguments arguments = {0};
    argp_parse(&argp, argc, argv, 0, NULL, &arguments);
    int code = calibrate(&arguments);
    return pl_cmd_end(&arguments.settings, code);
}
