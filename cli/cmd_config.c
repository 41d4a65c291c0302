/* pipelag config: the resolved configuration, the table of keys, the arms of an
 * experiment. */
#include <stdio.h>
#include <stdlib.h>

#include "base/mem.h"
#include "cli/cmd.h"
#include "cli/experiment.h"

enum { SHOW_CONFIG, SHOW_KEYS = 'k', SHOW_ARMS = 'a', SHOW_GIVEN = 'g' };

struct arguments {
    int show;
    const char *file;
    struct pl_cmd_settings settings;
};

static const struct argp_option options[] = {
    {"keys", SHOW_KEYS, NULL, 0, "list all keys: type, unit, default, range, meaning",
     0},
    {"arms", SHOW_ARMS, NULL, 0, "list the arms of FILE that run would train", 0},
    {"given", SHOW_GIVEN, NULL, 0, "print only what differs from the defaults", 0},
    {0},
};

static error_t parse(int option, char *arg, struct argp_state *state)
{
    struct arguments *arguments = state->input;
    switch (option) {
    case ARGP_KEY_INIT:
        state->child_inputs[0] = &arguments->settings;
        return 0;
    case SHOW_KEYS:
    case SHOW_ARMS:
    case SHOW_GIVEN:
        arguments->show = option;
        return 0;
    case ARGP_KEY_ARG:
        pl_cmd_argument(state, "FILE", arg, &arguments->file);
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

static const char *type_text(const struct pl_key *key)
{
    static const char *const texts[] = {
        [PL_KEY_INT] = "integer",
        [PL_KEY_REAL] = "number",
        [PL_KEY_BOOL] = "yes or no",
        [PL_KEY_TEXT] = "text",
        [PL_KEY_NAME] = "name",
        [PL_KEY_TIME] = "duration",
        [PL_KEY_TIMES] = "duration or list of durations",
    };
    return texts[key->type];
}

/* "train.seq: integer 1..1048576, default 128" and the meaning below it. */
static void print_key(const struct pl_key *key)
{
    const char *const *choices = pl_config_choices(key->name);
    printf("%s: %s", key->name, type_text(key));
    if (key->type == PL_KEY_INT || key->type == PL_KEY_REAL)
        printf(" %.10g..%.10g", key->min, key->max);
    if (*key->unit && key->type != PL_KEY_TIMES && key->type != PL_KEY_TIME)
        printf(" %s", key->unit);
    printf(*key->fallback ? ", default %s\n" : ", default none\n", key->fallback);
    printf("    %s\n", key->help);
    if (!choices) return;
    printf("    one of:");
    for (; *choices; choices++) printf(" %s", *choices);
    putchar('\n');
}

/* The arms that `run` would train; each must be valid. */
static int print_arms(const struct pl_config *config)
{
    struct pl_experiment experiment;
    int code = pl_experiment_new(config, &experiment);
    if (code < 0) return code;
    for (int i = 0; i < experiment.n_arms; i++) puts(experiment.arms[i].name);
    pl_experiment_free(&experiment);
    return 0;
}

static int show(const struct arguments *arguments)
{
    struct pl_config *config = NULL;
    if (arguments->show == SHOW_KEYS) {
        for (const struct pl_key *key = pl_keys; key->name; key++) print_key(key);
        return 0;
    }
    if (arguments->show == SHOW_ARMS && !arguments->file)
        return pl_fail(PL_EUSAGE, "config --arms: a FILE is needed");
    int code = pl_cmd_settings_config(&arguments->settings, arguments->file, &config);
    if (code < 0) return code;
    if (arguments->show == SHOW_ARMS)
        code = print_arms(config);
    else
        pl_config_print(config, arguments->show == SHOW_GIVEN, stdout);
    pl_config_free(config);
    return code;
}

int pl_cmd_config(int argc, char **argv)
{
    static const struct argp argp = {
        .options = options,
        .parser = parse,
        .args_doc = "[FILE]",
        .doc =
            "Print the configuration that FILE and the options amount to, as YAML that "
            "can be read back.",
        .children = pl_cmd_settings_children,
    };
    struct arguments arguments = {0};
    argp_parse(&argp, argc, argv, 0, NULL, &arguments);
    int code = show(&arguments);
    return pl_cmd_end(&arguments.settings, code);
}
