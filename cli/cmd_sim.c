/* pipelag sim: one schedule under given costs: who waits, how long, how stale. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "cli/cmd.h"
#include "cli/print_sim.h"
#include "cli/setup.h"
#include "cli/unused.h"
#include "sim/custom.h"
#include "traces/perfetto.h"
#include "traces/record.h"

enum {
    OPT_WIDTH = 256,
    OPT_NO_GANTT,
    OPT_JSON,
    OPT_FORCE,
    OPT_PERFETTO,
    OPT_DELAY_UNIT,
    OPT_CSV,
    OPT_COMMUNICATION,
    DEFAULT_WIDTH = 88
};

struct arguments {
    const char *file, *output, *perfetto, *csv;
    int64_t width; /* 0: no Gantt */
    bool json, force, communication;
    const struct pl_delay_unit *unit;
    int code; /* of a bad option */
    struct pl_cmd_settings settings;
};

static const struct argp_option options[] = {
    {"output", 'o', "TRACE", 0, "write the run as a trace (HDF5)", 0},
    {"perfetto", OPT_PERFETTO, "JSON", 0,
     "write the run for ui.perfetto.dev and chrome://tracing", 0},
    {"csv", OPT_CSV, "CSV", 0,
     "write the order of the ops as a schedule of torch.distributed.pipelining", 0},
    {"communication", OPT_COMMUNICATION, NULL, 0, "with its sends and receives", 0},
    {"force", OPT_FORCE, NULL, 0, "replace outputs that exist", 0},
    {"json", OPT_JSON, NULL, 0, "print one JSON object instead of text", 0},
    {"width", OPT_WIDTH, "COLUMNS", 0, "width of the Gantt chart (default 88)", 0},
    {"delay-unit", OPT_DELAY_UNIT, "NAME", 0,
     "also print the delays in another unit: updates, microbatches, pipemare, ajanthan "
     "or ticks",
     0},
    {"no-gantt", OPT_NO_GANTT, NULL, 0, "numbers only", 0},
    {0},
};

static error_t parse(int option, char *arg, struct argp_state *state)
{
    struct arguments *args = state->input;
    switch (option) {
    case ARGP_KEY_INIT:
        state->child_inputs[0] = &args->settings;
        return 0;
    case 'o':
        args->output = arg;
        return 0;
    case OPT_PERFETTO:
        args->perfetto = arg;
        return 0;
    case OPT_CSV:
        args->csv = arg;
        return 0;
    case OPT_COMMUNICATION:
        args->communication = true;
        return 0;
    case OPT_FORCE:
        args->force = true;
        return 0;
    case OPT_JSON:
        args->json = true;
        return 0;
    case OPT_NO_GANTT:
        args->width = 0;
        return 0;
    case OPT_DELAY_UNIT:
        args->unit = pl_delay_unit_find(arg);
        if (!args->unit && !args->code)
            args->code = pl_fail_unknown(PL_EUSAGE, "--delay-unit", "unit", arg,
                                         pl_delay_unit_names());
        return 0;
    case OPT_WIDTH:
        if (!args->code)
            args->code = pl_cmd_int("--width", arg, 20, 10000, &args->width);
        return 0;
    case ARGP_KEY_ARG:
        pl_cmd_argument(state, "FILE", arg, &args->file);
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

static void record_segments(struct pl_trace *trace, const struct pl_setup *run,
                            const struct pl_config *config)
{
    struct pl_segment segments[PL_MAX_SEGMENTS];
    const char *schedules[PL_MAX_SEGMENTS];
    if (!run->n_segments) return;
    for (int i = 0; i < run->n_segments; i++) {
        const char *name = run->segments[i].corrector;
        if (!name) name = pl_config_text(config, "corrector.name");
        segments[i] =
            (struct pl_segment){.updates = run->segments[i].updates,
                                .corrector = {.type = pl_corrector_find(name)}};
        schedules[i] = run->segments[i].type->name;
    }
    pl_record_segments(trace, run->sim.schedule.type->name, run->n_segments, segments,
                       schedules);
}

static int write_outputs(const struct pl_setup *run, const struct pl_config *config,
                         const struct arguments *args)
{
    struct pl_trace *trace = pl_trace_new();
    char *given = pl_config_dump(config, true),
         *resolved = pl_config_dump(config, false);
    pl_record_provenance(trace, "pipelag sim", given, resolved, "none");
    pl_record_simulation(trace, run->sim.schedule.type->name, &run->sim, &run->cost);
    record_segments(trace, run, config);
    if (run->estimate)
        pl_record_memory(trace, run->sim.schedule.type->name, &run->memory);
    int code = args->output ? pl_trace_write(trace, args->output) : 0;
    if (!code && args->perfetto)
        code = pl_perfetto_write(trace, NULL, 0, args->perfetto);
    pl_trace_free(trace);
    free(given);
    free(resolved);
    return code;
}

static int check_outputs(const struct arguments *args)
{
    const char *const paths[] = {args->output, args->perfetto, args->csv};
    static const char *const names[] = {"-o", "--perfetto", "--csv"};
    int code = 0;
    if (args->communication && !args->csv)
        return pl_fail(PL_EUSAGE, "--communication is given without --csv");
    for (int i = 0; i < 3 && !code; i++) {
        for (int k = 0; k < i; k++)
            if (paths[i] && paths[k] && !strcmp(paths[i], paths[k]))
                return pl_fail(PL_EUSAGE, "%s: both %s and %s would write it", paths[i],
                               names[k], names[i]);
        if (paths[i]) code = pl_cmd_output(paths[i], args->force);
    }
    return code;
}

/* A run that is kept whole shows nothing while it works: say how long that may be. */
static void announce(const struct pl_config *config)
{
    static const double large = 2e7, seconds_per_op = 1e-6;
    const struct pl_schedule_type *type =
        pl_schedule_find(pl_config_text(config, "schedule.name"));
    struct pl_shape shape;
    if (*pl_config_text(config, "segments") || pl_setup_is_long(config) ||
        pl_setup_shape(config, type, 0, 0, &shape))
        return;
    double ops = (2.0 * shape.m + 1) * shape.P * shape.v * (double)shape.updates;
    if (ops > large)
        pl_log(PL_LOG_INFO, "%.0f million ops, a minute or so for each %.0f million",
               ops * 1e-6, 60e-6 / seconds_per_op);
    pl_shape_free(&shape);
}

static int simulate(const struct arguments *args, const struct pl_config *config)
{
    struct pl_setup setup = {0};
    int code = check_outputs(args);
    if (!code && (args->output || args->perfetto || args->csv) &&
        pl_setup_is_long(config))
        code = pl_fail(PL_ECONFIG,
                       "schedule.updates %lld: the ops of so long a run are not kept, "
                       "only its numbers; leave out --output, --perfetto and --csv or "
                       "run fewer updates",
                       (long long)pl_config_int(config, "schedule.updates"));
    if (!code) announce(config);
    if (!code) code = pl_setup_simulate(config, &setup);
    if (!code) pl_unused_warn(config);
    if (!code && args->unit && setup.n_segments)
        code = pl_fail(PL_EUSAGE,
                       "--delay-unit counts one schedule's delays, this run "
                       "has %d segments",
                       setup.n_segments);
    if (!code && args->csv && setup.n_segments)
        code = pl_fail(PL_EUSAGE, "--csv is one schedule's, this run has %d segments",
                       setup.n_segments);
    if (!code && args->csv)
        code = pl_custom_write(&setup.sim.schedule, args->communication, args->csv);
    if (!code && (args->output || args->perfetto))
        code = write_outputs(&setup, config, args);
    struct pl_sim_view view = {&setup, (int)args->width, args->unit};
    if (!code) (args->json ? pl_print_sim_json : pl_print_sim_text)(&view, stdout);
    pl_setup_free(&setup);
    return code;
}

int pl_cmd_sim(int argc, char **argv)
{
    static const struct argp argp = {
        .options = options,
        .parser = parse,
        .args_doc = "[FILE]",
        .doc =
            "Simulate one pipeline schedule: Gantt chart, makespan and bubbles, and "
            "for each stage the delay of its gradients, the weight versions and the "
            "activations it keeps, with closed forms beside. The arms of an experiment "
            "FILE are not expanded; its other keys count. Segments (the key of that "
            "name) run one after another, with a drain at each switch.",
        .children = pl_cmd_settings_children,
    };
    struct arguments args = {.width = DEFAULT_WIDTH};
    argp_parse(&argp, argc, argv, 0, NULL, &args);
    struct pl_config *config = NULL;
    int code = args.code;
    if (!code) code = pl_cmd_settings_config(&args.settings, args.file, &config);
    if (!code) code = simulate(&args, config);
    pl_config_free(config);
    return pl_cmd_end(&args.settings, code);
}
