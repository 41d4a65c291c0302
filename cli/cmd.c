/* Shared by the subcommands: errors, numbers in options, options that are keys. */
#include "cli/cmd.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/mem.h"

int pl_cmd_fail(int code)
{
    fprintf(stderr, "pipelag: %s\n", pl_error_text());
    return pl_exit_status(code);
}

void pl_cmd_argument(struct argp_state *state, const char *what, char *arg,
                     const char **out)
{
    if (*out) argp_error(state, "one %s is expected, '%s' is a second", what, arg);
    *out = arg;
}

int pl_cmd_output(const char *path, bool force)
{
    struct stat st;
    const char *slash = strrchr(path, '/');
    char *folder = slash ? pl_printf("%.*s/", (int)(slash - path), path) : NULL;
    bool missing = folder && stat(folder, &st);
    int reason = errno;
    free(folder);
    if (missing) return pl_fail(PL_EIO, "%s: %s", path, strerror(reason));
    const bool absent = stat(path, &st) != 0;
    if (!absent && S_ISDIR(st.st_mode))
        return pl_fail(PL_EUSAGE, "%s: is a folder, expected the name of a file", path);
    if (force || absent || !S_ISREG(st.st_mode)) return 0;
    return pl_fail(PL_EUSAGE, "%s: exists, --force replaces it", path);
}

int pl_cmd_real(const char *option, const char *text, double min, double max,
                double *out)
{
    char *end;
    double value = strtod(text, &end);
    if (end == text || *end || !isfinite(value))
        return pl_fail(PL_EUSAGE, "%s: '%s' is not a number", option, text);
    if (value < min || value > max)
        return pl_fail(PL_EUSAGE, "%s: %s is out of range, expected %.10g to %.10g",
                       option, text, min, max);
    *out = value;
    return 0;
}

int pl_cmd_int(const char *option, const char *text, int64_t min, int64_t max,
               int64_t *out)
{
    char *end;
    errno = 0;
    long long value = strtoll(text, &end, 10);
    if (end == text || *end)
        return pl_fail(PL_EUSAGE, "%s: '%s' is not an integer", option, text);
    if (errno == ERANGE || value < min || value > max)
        return pl_fail(PL_EUSAGE,
                       "%s: %s is out of range, expected %" PRId64 " to %" PRId64,
                       option, text, min, max);
    *out = value;
    return 0;
}

enum { OPT_SET = 256, OPT_SCHEDULE, OPT_UPDATES };

static const struct argp_option options[] = {
    {NULL, 0, NULL, 0, "Configuration (pipelag config --keys lists all keys):", 10},
    {"schedule", OPT_SCHEDULE, "NAME", 0, "schedule.name, the pipeline schedule", 0},
    {"stages", 'P', "P", 0, "schedule.stages, pipeline stages", 0},
    {"microbatches", 'm', "M", 0, "schedule.microbatches, microbatches per update", 0},
    {"updates", OPT_UPDATES, "N", 0, "schedule.updates, updates that sim runs", 0},
    {"set", OPT_SET, "KEY=VALUE", 0, "any key; wins over FILE; may be repeated", 0},
    {0},
};

/* Options that stand for one key. */
static const struct {
    int option;
    const char *key, *origin;
} shortcuts[] = {
    {OPT_SCHEDULE, "schedule.name", "--schedule"},
    {'P', "schedule.stages", "-P"},
    {'m', "schedule.microbatches", "-m"},
    {OPT_UPDATES, "schedule.updates", "--updates"},
};

void pl_cmd_settings_add(struct pl_cmd_settings *settings, const char *key,
                         const char *value, const char *origin)
{
    settings->settings = pl_grow(settings->settings, (size_t)settings->n + 1,
                                 sizeof *settings->settings);
    settings->settings[settings->n++] = (struct pl_cmd_setting){key, value, origin};
}

static error_t parse(int option, char *arg, struct argp_state *state)
{
    struct pl_cmd_settings *settings = state->input;
    if (option == OPT_SET) {
        pl_cmd_settings_add(settings, NULL, arg, "--set");
        return 0;
    }
    for (size_t i = 0; i < sizeof shortcuts / sizeof *shortcuts; i++)
        if (shortcuts[i].option == option) {
            pl_cmd_settings_add(settings, shortcuts[i].key, arg, shortcuts[i].origin);
            return 0;
        }
    return ARGP_ERR_UNKNOWN;
}

static const struct argp settings_argp = {.options = options, .parser = parse};

const struct argp_child pl_cmd_settings_children[] = {{&settings_argp, 0, NULL, 0},
                                                      {0}};

int pl_cmd_settings_config(const struct pl_cmd_settings *settings, const char *file,
                           struct pl_config **out)
{
    struct pl_config *config = pl_config_new();
    int code = file ? pl_config_load(config, file) : 0;
    for (int i = 0; code == 0 && i < settings->n; i++) {
        const struct pl_cmd_setting *s = &settings->settings[i];
        code = s->key ? pl_config_set_value(config, s->key, s->value, s->origin)
                      : pl_config_set(config, s->value, s->origin);
    }
    if (code == 0) code = pl_config_resolve(config);
    if (code < 0) {
        pl_config_free(config);
        return code;
    }
    *out = config;
    return 0;
}

char *pl_cmd_settings_line(const struct pl_cmd_settings *settings, const char *command,
                           const char *file)
{
    char *line = pl_printf("%s%s%s", command, file ? " " : "", file ? file : "");
    for (int i = 0; i < settings->n; i++) {
        const struct pl_cmd_setting *set = &settings->settings[i];
        char *longer = pl_printf("%s --set %s%s%s", line, set->key ? set->key : "",
                                 set->key ? "=" : "", set->value);
        free(line);
        line = longer;
    }
    return line;
}

void pl_cmd_settings_free(struct pl_cmd_settings *settings)
{
    free(settings->settings);
    *settings = (struct pl_cmd_settings){0};
}

int pl_cmd_end(struct pl_cmd_settings *settings, int code)
{
    pl_cmd_settings_free(settings);
    return code < 0 ? pl_cmd_fail(code) : 0;
}
