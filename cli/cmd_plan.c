/* pipelag plan: which way to train a model on a cluster takes the shortest step. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "base/mem.h"
#include "cli/cmd.h"
#include "cli/plan_print.h"
#include "cli/unused.h"
#include "cli/workers.h"

enum {
    OPT_GPUS = 512,
    OPT_BATCH,
    OPT_SEQ,
    OPT_SCHEDULES,
    OPT_MAX_TAU,
    OPT_MEMORY,
    OPT_ALL,
    OPT_TOP,
    OPT_WORKERS,
    OPT_YAML,
    OPT_JSON,
    OPT_CSV
};

static const struct argp_option options[] = {
    {"gpus", OPT_GPUS, "N", 0,
     "GPUs of the job; a cluster of one node is extended to them. Default: all of "
     "CLUSTER",
     0},
    {"batch", OPT_BATCH, "N", 0,
     "sequences of an update; default: 4 Mi tokens, a power of two", 0},
    {"seq", OPT_SEQ, "TOKENS", 0,
     "parallel.seq_length; default: 2048, or the model's positions if fewer", 0},
    {NULL, 0, NULL, 0, "What is searched:", 0},
    {"schedules", OPT_SCHEDULES, "A,B,...", 0, "these alone; default: all", 0},
    {"max-tau", OPT_MAX_TAU, "N", 0,
     "gradients at most N updates old; 0: synchronous schedules alone", 0},
    {"memory", OPT_MEMORY, "PART", 0,
     "part of a GPU's memory that may be used, the rest is for CUDA, NCCL and "
     "fragmentation; default 0.95",
     0},
    {"workers", OPT_WORKERS, "N", 0, "processes; default: one a core", 0},
    {NULL, 0, NULL, 0, "What is printed:", 0},
    {"top", OPT_TOP, "N", 0, "the best N rows; default 10", 0},
    {"all", OPT_ALL, NULL, 0,
     "every candidate is a row; default: the best of each tp x pp x dp and class", 0},
    {"yaml", OPT_YAML, "K", 0, "only the configuration of row K, for `pipelag sim`", 0},
    {"json", OPT_JSON, NULL, 0, "print one JSON object", 0},
    {"csv", OPT_CSV, NULL, 0, "print the table as CSV", 0},
    {0},
};

struct args {
    struct pl_cmd_settings settings;
    const char *model, *cluster, *schedules;
    int64_t gpus, batch, seq, max_tau, top, workers, yaml;
    double part;
    bool all, json, csv;
    int code; /* of a bad option */
};

static void parse_int(struct args *args, const char *option, const char *text,
                      int64_t min, int64_t max, int64_t *out)
{
    int code = pl_cmd_int(option, text, min, max, out);
    if (!args->code) args->code = code;
}

static void parse_word(struct args *args, char *arg, struct argp_state *state)
{
    if (!args->model)
        args->model = arg;
    else if (!args->cluster)
        args->cluster = arg;
    else
        argp_error(state, "MODEL and CLUSTER are expected, '%s' is a third", arg);
}

static error_t parse(int option, char *arg, struct argp_state *state)
{
    struct args *args = state->input;
    int code;
    switch (option) {
    case ARGP_KEY_INIT:
        state->child_inputs[0] = &args->settings;
        return 0;
    case OPT_GPUS:
        parse_int(args, "--gpus", arg, 1, 1 << 20, &args->gpus);
        return 0;
    case OPT_BATCH:
        parse_int(args, "--batch", arg, 1, 1 << 30, &args->batch);
        return 0;
    case OPT_SEQ:
        parse_int(args, "--seq", arg, 1, 16777216, &args->seq);
        return 0;
    case OPT_SCHEDULES:
        args->schedules = arg;
        return 0;
    case OPT_MAX_TAU:
        parse_int(args, "--max-tau", arg, 0, 1000000, &args->max_tau);
        return 0;
    case OPT_MEMORY:
        code = pl_cmd_real("--memory", arg, 1e-6, 1, &args->part);
        if (!args->code) args->code = code;
        return 0;
    case OPT_WORKERS:
        parse_int(args, "--workers", arg, 1, 4096, &args->workers);
        return 0;
    case OPT_TOP:
        parse_int(args, "--top", arg, 1, 10000, &args->top);
        return 0;
    case OPT_ALL:
        args->all = true;
        return 0;
    case OPT_YAML:
        parse_int(args, "--yaml", arg, 1, 10000, &args->yaml);
        return 0;
    case OPT_JSON:
        args->json = true;
        return 0;
    case OPT_CSV:
        args->csv = true;
        return 0;
    case ARGP_KEY_ARG:
        parse_word(args, arg, state);
        return 0;
    case ARGP_KEY_END:
        if (!args->cluster)
            argp_error(state, "MODEL and CLUSTER are expected, such as llama-3-8b "
                              "dgx-h100");
        if (args->csv + args->json + (args->yaml > 0) > 1)
            argp_error(state, "--csv, --json and --yaml exclude each other");
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

static int count_types(void)
{
    int n = 0;
    while (pl_schedule_types[n]) n++;
    return n;
}

/* --schedules, or schedule.name when given, or all that need no file. */
static int choose_types(const struct args *args, struct pl_plan_ask *ask)
{
    int n = count_types(), code = 0, chosen = 0;
    bool named = pl_config_given(ask->config, "schedule.name");
    ask->types = PL_NEW(n, bool);
    if (named && args->schedules)
        return pl_fail(PL_EUSAGE, "--schedules is given beside schedule.name (%s)",
                       pl_config_where(ask->config, "schedule.name"));
    char *list = pl_strdup(args->schedules ? args->schedules
                           : named ? pl_config_text(ask->config, "schedule.name")
                                   : "");
    char *rest = NULL;
    for (char *word = strtok_r(list, ", ", &rest); word && !code;
         word = strtok_r(NULL, ", ", &rest)) {
        int i = 0;
        while (i < n && strcmp(pl_schedule_types[i]->name, word)) i++;
        if (i == n)
            code = pl_fail_unknown(PL_EUSAGE, "--schedules", "schedule", word,
                                   pl_schedule_names());
        else if (pl_schedule_types[i]->from_file)
            code =
                pl_fail(PL_EUSAGE, "--schedules: %s is one schedule of a file", word);
        else
            ask->types[i] = true;
    }
    bool any = args->schedules || named;
    free(list);
    for (int i = 0; i < n && !code; i++) {
        if (!any) ask->types[i] = !pl_schedule_types[i]->from_file;
        if (!args->max_tau && pl_schedule_types[i]->async) ask->types[i] = false;
        chosen += ask->types[i];
    }
    if (code || chosen) return code;
    return pl_fail(PL_EUSAGE, "--max-tau 0: no synchronous schedule among %s",
                   args->schedules ? args->schedules
                                   : pl_config_text(ask->config, "schedule.name"));
}

static int prepare(const struct args *args, struct pl_plan_ask *ask)
{
    int code = pl_cmd_settings_config(&args->settings, NULL, &ask->config);
    if (!code && args->seq) {
        char *text = pl_printf("%lld", (long long)args->seq);
        code = pl_config_set_value(ask->config, "parallel.seq_length", text, "--seq");
        free(text);
    }
    if (!code)
        code = pl_plan_setup(ask->config, args->model, args->cluster, &ask->gpus);
    if (!code) code = choose_types(args, ask);
    return code;
}

static int print(const struct args *args, const struct pl_plan *plan)
{
    return args->yaml   ? pl_plan_print_yaml(plan, args->yaml, stdout)
           : args->json ? pl_plan_print_json(plan, stdout)
           : args->csv  ? pl_plan_print_csv(plan, stdout)
                        : pl_plan_print_text(plan, stdout);
}

/* Exit status. */
static int run(const struct args *args, struct pl_plan_ask *ask)
{
    struct pl_plan plan = {.ask = NULL};
    double began = pl_clock();
    int code = prepare(args, ask);
    if (!code) pl_unused_warn_twice(ask->config);
    if (!code) {
        pl_workers_catch_signals();
        code = pl_plan_search(ask, &plan);
        int signal = pl_workers_signal();
        pl_workers_release_signals();
        if (!code && signal)
            pl_log(PL_LOG_WARN,
                   "interrupted: the best of %lld of %lld candidates, not of all",
                   (long long)plan.settled, (long long)plan.n_rows);
        else if (!code)
            pl_log(PL_LOG_INFO, "%lld candidates in %.3g s", (long long)plan.n_rows,
                   pl_clock() - began);
        if (!code) code = print(args, &plan);
        if (!code && signal) {
            pl_plan_free(&plan);
            return 128 + signal;
        }
    }
    int status = code ? pl_cmd_fail(code) : 0;
    pl_plan_free(&plan);
    return status;
}

int pl_cmd_plan(int argc, char **argv)
{
    static const struct argp argp = {
        .options = options,
        .parser = parse,
        .args_doc = "MODEL CLUSTER",
        .doc = "Search the ways to train MODEL on CLUSTER (presets or files: pipelag "
               "model, pipelag cluster) that fit in memory: tensor, pipeline, data and "
               "expert parallelism, schedule, chunks, microbatch, recomputation and "
               "ZeRO, all with the same tokens per update. Print the best by time per "
               "update, why the others lose, and which faster ones do not fit. Keys "
               "that are set (--set parallel.tp=8) are not searched.",
        .children = pl_cmd_settings_children,
    };
    struct args args = {.max_tau = -1, .part = .95, .top = 10};
    argp_parse(&argp, argc, argv, 0, NULL, &args);
    struct pl_plan_ask ask = {.gpus = args.gpus,
                              .batch = args.batch,
                              .part = args.part,
                              .max_tau = args.max_tau,
                              .top = (int)args.top,
                              .n_workers = (int)args.workers,
                              .all = args.all,
                              .prune = true};
    if (args.yaml > args.top) ask.top = (int)args.yaml;
    if (!ask.n_workers) ask.n_workers = (int)sysconf(_SC_NPROCESSORS_ONLN);
    if (ask.n_workers < 1) ask.n_workers = 1;
    int status = args.code ? pl_cmd_fail(args.code) : run(&args, &ask);
    pl_config_free(ask.config);
    free(ask.types);
    pl_cmd_settings_free(&args.settings);
    return status;
}
