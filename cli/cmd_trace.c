/* pipelag trace: validate, look into, export and compare traces. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "cli/cmd.h"
#include "traces/perfetto.h"
#include "traces/trace.h"

struct arguments {
    int n;
    char **words; /* the verb and its arguments */
    double tolerance;
    bool tolerance_given;
    const char *output, *arm, *format; /* export */
    int64_t updates;
    bool force;
};

enum { OPTION_FORMAT = 256, OPTION_FORCE };

static const struct argp_option options[] = {
    {"output", 'o', "OUTPUT", 0, "export: file to write", 0},
    {"format", OPTION_FORMAT, "FORMAT", 0, "export: perfetto (the default)", 0},
    {"arm", 'a', "NAME", 0, "export: the arm to export (default: the first)", 0},
    {"updates", 'u', "N", 0, "export: the first N updates (default: all recorded)", 0},
    {"force", OPTION_FORCE, NULL, 0, "export: replace the output when it exists", 0},
    {"tolerance", 't', "REAL", 0,
     "diff: largest relative difference of numbers (default 0)", 0},
    {0},
};

static error_t parse(int option, char *arg, struct argp_state *state)
{
    struct arguments *arguments = state->input;
    switch (option) {
    case 't':
        if (pl_cmd_real("--tolerance", arg, 0, 1, &arguments->tolerance))
            argp_error(state, "%s", pl_error_text());
        arguments->tolerance_given = true;
        return 0;
    case 'o':
        arguments->output = arg;
        return 0;
    case 'u':
        if (pl_cmd_int("--updates", arg, 1, INT32_MAX, &arguments->updates))
            argp_error(state, "%s", pl_error_text());
        return 0;
    case 'a':
        arguments->arm = arg;
        return 0;
    case OPTION_FORMAT:
        arguments->format = arg;
        return 0;
    case OPTION_FORCE:
        arguments->force = true;
        return 0;
    case ARGP_KEY_ARG:
        arguments->words = pl_grow(arguments->words, (size_t)arguments->n + 1,
                                   sizeof *arguments->words);
        arguments->words[arguments->n++] = arg;
        return 0;
    case ARGP_KEY_NO_ARGS:
        argp_usage(state);
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

/* One line a file; the exit status tells whether all are good. */
static int check(const struct arguments *arguments)
{
    int status = 0;
    for (int i = 0; i < arguments->n; i++) {
        struct pl_trace *t;
        int code = pl_trace_read(arguments->words[i], &t);
        if (code) {
            printf("%s\n", pl_error_text());
            status = pl_exit_status(PL_ECHECK);
            continue;
        }
        printf("%s: ok\n", arguments->words[i]);
        pl_trace_free(t);
    }
    return status;
}

static int info(const struct arguments *arguments)
{
    struct pl_trace *t;
    int code = pl_trace_read(arguments->words[0], &t);
    if (code) return pl_cmd_fail(code);
    pl_trace_info(t, stdout);
    pl_trace_free(t);
    return 0;
}

static void list_tables(const struct pl_trace *t)
{
    const char **paths;
    int n = pl_trace_tables(t, NULL, &paths);
    for (int i = 0; i < n; i++) puts(paths[i]);
    free(paths);
}

static int dump(const struct arguments *arguments)
{
    struct pl_trace *t;
    int code = pl_trace_read(arguments->words[0], &t);
    if (code) return pl_cmd_fail(code);
    if (arguments->n == 1)
        list_tables(t);
    else
        code = pl_trace_csv(t, arguments->words[1], stdout);
    pl_trace_free(t);
    return code ? pl_cmd_fail(code) : 0;
}

static int diff(const struct arguments *arguments)
{
    struct pl_trace *a, *b;
    int code = pl_trace_read(arguments->words[0], &a);
    if (code) return pl_cmd_fail(code);
    code = pl_trace_read(arguments->words[1], &b);
    if (code) {
        pl_trace_free(a);
        return pl_cmd_fail(code);
    }
    char *difference = pl_trace_diff(a, b, arguments->tolerance);
    if (difference) puts(difference);
    int status = difference ? pl_exit_status(PL_ECHECK) : 0;
    free(difference);
    pl_trace_free(a);
    pl_trace_free(b);
    return status;
}

static const struct format {
    const char *name;
    int (*write)(const struct pl_trace *t, const char *arm, int64_t updates,
                 const char *path);
} formats[] = {{"perfetto", pl_perfetto_write}};
enum { N_FORMATS = sizeof formats / sizeof *formats };

static int export(const struct arguments *arguments)
{
    const char *names[N_FORMATS + 1] = {0};
    const struct format *format = arguments->format ? NULL : formats;
    for (int i = 0; i < N_FORMATS; i++) {
        names[i] = formats[i].name;
        if (!format && !strcmp(names[i], arguments->format)) format = &formats[i];
    }
    int code = 0;
    if (!format)
        code = pl_fail_unknown(PL_EUSAGE, "trace export", "format", arguments->format,
                               names);
    else if (!arguments->output)
        code = pl_fail(PL_EUSAGE, "trace export: no --output=FILE");
    if (!code) code = pl_cmd_output(arguments->output, arguments->force);
    if (code) return pl_cmd_fail(code);
    struct pl_trace *t;
    code = pl_trace_read(arguments->words[0], &t);
    if (code) return pl_cmd_fail(code);
    code = format->write(t, arguments->arm, arguments->updates, arguments->output);
    pl_trace_free(t);
    return code ? pl_cmd_fail(code) : 0;
}

static const struct verb {
    const char *name;
    int least, most; /* arguments */
    int (*run)(const struct arguments *arguments);
} verbs[] = {
    {"check", 1, 1 << 20, check}, {"info", 1, 1, info},     {"dump", 1, 2, dump},
    {"diff", 2, 2, diff},         {"export", 1, 1, export},
};
enum { N_VERBS = sizeof verbs / sizeof *verbs };

static int run_verb(const struct arguments *all)
{
    const char *names[N_VERBS + 1] = {0};
    for (int i = 0; i < N_VERBS; i++) names[i] = verbs[i].name;
    struct arguments rest = *all;
    rest.n--;
    rest.words++;
    for (int i = 0; i < N_VERBS; i++) {
        const struct verb *v = &verbs[i];
        if (strcmp(v->name, all->words[0])) continue;
        if (rest.n < v->least || rest.n > v->most)
            return pl_cmd_fail(pl_fail(PL_EUSAGE,
                                       "trace %s: %d arguments, expected %d%s", v->name,
                                       rest.n, v->least,
                                       v->most > 2          ? " or more"
                                       : v->most > v->least ? " or one more"
                                                            : ""));
        if (all->tolerance_given && v->run != diff)
            return pl_cmd_fail(pl_fail(PL_EUSAGE, "--tolerance belongs to trace diff"));
        bool exports =
            all->output || all->arm || all->format || all->updates || all->force;
        if (v->run != export && exports)
            return pl_cmd_fail(
                pl_fail(PL_EUSAGE, "--output, --format, --arm, --updates and --force "
                                   "belong to trace export"));
        return v->run(&rest);
    }
    return pl_cmd_fail(
        pl_fail_unknown(PL_EUSAGE, "trace", "verb", all->words[0], names));
}

int pl_cmd_trace(int argc, char **argv)
{
    static const struct argp argp = {
        options,
        parse,
        "check FILE...\ninfo FILE\ndump FILE [TABLE]\ndiff FILE FILE\n"
        "export FILE -o OUTPUT",
        "Validate, look into, export and compare traces.\v"
        "check verifies files against the format: one line a file, exit status 3 when "
        "one fails. info prints groups, attributes and columns. dump prints a table as "
        "CSV, or without TABLE the names of the tables. diff prints the first "
        "difference, exit status 3 when there is one. export writes what one arm did "
        "as "
        "JSON for ui.perfetto.dev and chrome://tracing.",
        NULL,
        NULL,
        NULL};
    struct arguments arguments = {0};
    argp_parse(&argp, argc, argv, 0, NULL, &arguments);
    int status = run_verb(&arguments);
    free(arguments.words);
    return status;
}
