/* pipelag model: parameters, flops and bytes of a model, and how it is cut. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/builtin.h"
#include "base/file.h"
#include "base/json.h"
#include "base/mem.h"
#include "cli/cmd.h"
#include "cli/print_model.h"

enum { KEY_JSON = 256 };

struct arguments {
    const char *model;
    bool json;
    struct pl_cmd_settings settings;
};

static const struct argp_option options[] = {
    {"json", KEY_JSON, NULL, 0, "print JSON", 0},
    {0},
};

static error_t parse(int option, char *arg, struct argp_state *state)
{
    struct arguments *a = state->input;
    switch (option) {
    case ARGP_KEY_INIT:
        state->child_inputs[0] = &a->settings;
        return 0;
    case KEY_JSON:
        a->json = true;
        return 0;
    case ARGP_KEY_ARG:
        pl_cmd_argument(state, "MODEL", arg, &a->model);
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

static int read_preset(const char *name, struct pl_model *model)
{
    struct pl_config *config = pl_config_new();
    int rc = pl_config_set_value(config, "model.preset", name, "model");
    if (!rc) rc = pl_config_resolve(config);
    if (!rc) rc = pl_model_read(config, model);
    pl_config_free(config);
    return rc;
}

/* The built-in models, with their counts. */
static int list(bool json)
{
    struct pl_json j;
    int rc = 0;
    if (json) {
        pl_json_open(&j, stdout);
        pl_json_begin(&j, NULL, '[');
    } else {
        printf("%-20s %10s %10s\n", "built-in models", "n_params", "active");
    }
    for (const char *const *name = pl_builtin_names("models"); *name && !rc; name++) {
        struct pl_model model;
        if ((rc = read_preset(*name, &model))) break;
        struct pl_model_count c = pl_model_count(&model);
        if (!json) {
            printf("%-20s %8.2f B %8.2f B\n", *name, (double)c.n_params / 1e9,
                   (double)c.n_active_params / 1e9);
            continue;
        }
        pl_json_begin(&j, NULL, '{');
        pl_json_text(&j, "model", *name);
        pl_json_uint(&j, "n_params", c.n_params);
        pl_json_uint(&j, "n_active_params", c.n_active_params);
        pl_json_uint(&j, "n_active_nonembedding", c.n_active_nonembedding);
        pl_json_end(&j, '}');
    }
    if (json) {
        pl_json_end(&j, ']');
        pl_json_close(&j);
    }
    return rc;
}

/* Configuration of the argument: a built-in name or config.json is a preset, a YAML
 * file is a configuration of its own; a folder stands for the config.json in it. */
static int read_config(const struct arguments *a, struct pl_config **out)
{
    struct stat st;
    bool builtin = pl_builtin_text("models", a->model) != NULL;
    bool there = !builtin && stat(a->model, &st) == 0;
    char *path = there && S_ISDIR(st.st_mode) ? pl_printf("%s/config.json", a->model)
                                              : pl_strdup(a->model);
    bool json = !builtin && pl_path_ends(path, ".json");
    bool yaml = there || pl_path_ends(path, ".yaml") || pl_path_ends(path, ".yml");
    struct pl_config *config = NULL;
    int rc = pl_cmd_settings_config(&a->settings, yaml && !json ? path : NULL, &config);
    if (!rc && (json || !yaml)) {
        rc = pl_config_set_value(config, "model.preset", path, "model");
        if (!rc) rc = pl_config_resolve(config);
    } else if (!rc) {
        rc = pl_model_check_given(config, path);
    }
    free(path);
    if (rc < 0) {
        pl_config_free(config);
        return rc;
    }
    *out = config;
    return 0;
}

static int cut(const struct pl_config *config, struct pl_model_view *view)
{
    int v = (int)pl_config_int(config, "schedule.chunks");
    view->P = (int)pl_config_int(config, "schedule.stages");
    view->C = view->P * (v ? v : 1);
    view->chunk = PL_NEW(view->C, struct pl_chunk);
    double *cost = PL_NEW(view->model.layers + 2, double);
    int rc = pl_split_flops(&view->model, &view->parallel, &view->batch, cost);
    if (!rc) rc = pl_split_make(view->split, &view->model, view->C, cost, view->chunk);
    free(cost);
    return rc;
}

static int show(const struct arguments *a)
{
    struct pl_config *config;
    struct pl_model_view view = {.name = a->model};
    int rc = read_config(a, &config);
    if (rc) return rc;
    view.optimizer = pl_config_text(config, "optimizer.name");
    view.split = pl_config_text(config, "model.split");
    rc = pl_model_read(config, &view.model);
    if (!rc) rc = pl_parallel_read(config, &view.model, &view.parallel, &view.batch);
    if (!rc && (pl_config_given(config, "schedule.stages") ||
                pl_config_given(config, "model.split")))
        rc = cut(config, &view);
    if (!rc) rc = (a->json ? pl_print_model_json : pl_print_model_text)(&view, stdout);
    free(view.chunk);
    pl_config_free(config);
    return rc;
}

int pl_cmd_model(int argc, char **argv)
{
    static const struct argp argp = {
        .options = options,
        .parser = parse,
        .args_doc = "[MODEL]",
        .doc = "Print the parameters of MODEL, its flops a token, the bytes of its "
               "layers on "
               "a GPU and, with -P, of its stages. MODEL is a built-in name, a Hugging "
               "Face "
               "config.json (or the folder that holds it), or a YAML file with keys "
               "model.*. "
               "Without MODEL: list the built-in ones.",
        .children = pl_cmd_settings_children,
    };
    struct arguments a = {0};
    argp_parse(&argp, argc, argv, 0, NULL, &a);
    int rc = a.model ? show(&a) : list(a.json);
    return pl_cmd_end(&a.settings, rc);
}
