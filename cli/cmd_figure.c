/* pipelag figure: figures out of a trace. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cmd.h"
#include "traces/figure.h"

enum {
    OPTION_ARM = 'a',
    OPTION_UPDATES = 'u',
    OPTION_FORCE = 'f',
    OPTION_OUTPUT = 'o',
    OPTION_WIDTH = 'w',
    OPTION_SHADE = 's'
};

struct arguments {
    const char *figure, *file, *output, *arm, *shade;
    int64_t updates, width;
    bool force;
};

static const struct argp_option options[] = {
    {"output", OPTION_OUTPUT, "FILE", 0, "figure to write: .svg, .png or .pdf", 0},
    {"arm", OPTION_ARM, "NAME", 0, "gantt: the arm to draw (default: the first)", 0},
    {"updates", OPTION_UPDATES, "N", 0,
     "gantt: draw the first N updates (default: all recorded)", 0},
    {"width", OPTION_WIDTH, "PX", 0,
     "gantt: width of the time axis; a longer run is folded (default 1600)", 0},
    {"shade", OPTION_SHADE, "WHAT", 0,
     "gantt: what light and dark tell: update, chunk or tau (default: chunk where a "
     "device has several, else update)",
     0},
    {"force", OPTION_FORCE, NULL, 0, "replace the figure when it exists", 0},
    {0},
};

static error_t parse(int option, char *arg, struct argp_state *state)
{
    struct arguments *arguments = state->input;
    switch (option) {
    case OPTION_OUTPUT:
        arguments->output = arg;
        return 0;
    case OPTION_ARM:
        arguments->arm = arg;
        return 0;
    case OPTION_UPDATES:
        if (pl_cmd_int("--updates", arg, 1, INT32_MAX, &arguments->updates))
            argp_error(state, "%s", pl_error_text());
        return 0;
    case OPTION_WIDTH:
        if (pl_cmd_int("--width", arg, 100, 100000, &arguments->width))
            argp_error(state, "%s", pl_error_text());
        return 0;
    case OPTION_SHADE:
        arguments->shade = arg;
        return 0;
    case OPTION_FORCE:
        arguments->force = true;
        return 0;
    case ARGP_KEY_ARG:
        if (!arguments->figure)
            arguments->figure = arg;
        else if (!arguments->file)
            arguments->file = arg;
        else
            argp_error(state, "more than one FILE: %s", arg);
        return 0;
    case ARGP_KEY_END:
        if (!arguments->file) argp_usage(state);
        if (!arguments->output) argp_error(state, "no --output=FILE");
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

static int gantt(const struct pl_trace *t, const struct arguments *arguments)
{
    struct pl_gantt_options wanted = {.updates = arguments->updates,
                                      .width = (double)arguments->width};
    if (arguments->shade) {
        int k = 0;
        while (pl_shade_names[k] && strcmp(pl_shade_names[k], arguments->shade)) k++;
        if (!pl_shade_names[k])
            return pl_fail_unknown(PL_EUSAGE, "--shade", "shade", arguments->shade,
                                   pl_shade_names);
        wanted.shade = (enum pl_shade)k;
    }
    return pl_figure_gantt_with(t, arguments->arm, &wanted, arguments->output);
}

static int curves(const struct pl_trace *t, const struct arguments *arguments)
{
    if (arguments->arm || arguments->updates || arguments->width || arguments->shade)
        return pl_fail(PL_EUSAGE,
                       "--arm, --updates, --width and --shade belong to figure gantt");
    return pl_figure_curves(t, arguments->output);
}

static const struct figure {
    const char *name;
    int (*draw)(const struct pl_trace *t, const struct arguments *arguments);
} figures[] = {{"gantt", gantt}, {"curves", curves}};
enum { N_FIGURES = sizeof figures / sizeof *figures };

static int draw(const struct arguments *arguments)
{
    const char *names[N_FIGURES + 1] = {0};
    const struct figure *figure = NULL;
    for (int i = 0; i < N_FIGURES; i++) {
        names[i] = figures[i].name;
        if (!strcmp(names[i], arguments->figure)) figure = &figures[i];
    }
    if (!figure)
        return pl_fail_unknown(PL_EUSAGE, "figure", "figure", arguments->figure, names);
    int exists = pl_cmd_output(arguments->output, arguments->force);
    if (exists) return exists;
    struct pl_trace *t;
    int code = pl_trace_read(arguments->file, &t);
    if (code) return code;
    code = figure->draw(t, arguments);
    pl_trace_free(t);
    return code;
}

int pl_cmd_figure(int argc, char **argv)
{
    static const struct argp argp = {
        options,
        parse,
        "gantt FILE -o FIGURE\ncurves FILE -o FIGURE",
        "Draw figures out of the trace FILE.\v"
        "gantt draws who did what when on each stage. curves draws the validation loss "
        "of all arms against update and against simulated time. PNG and PDF need "
        "rsvg-convert.",
        NULL,
        NULL,
        NULL};
    struct arguments arguments = {0};
    argp_parse(&argp, argc, argv, 0, NULL, &arguments);
    int code = draw(&arguments);
    return code ? pl_cmd_fail(code) : 0;
}
