/* pipelag run: simulate the schedules of an experiment, train under their version maps,
 * judge the claims, write the trace and the figures. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "base/mem.h"
#include "base/mpi.h"
#include "cli/cmd.h"
#include "cli/dry_run.h"
#include "cli/report.h"
#include "cli/report_scores.h"
#include "cli/session.h"
#include "cli/setup_optim.h"
#include "cli/unused.h"
#include "cli/verdicts.h"
#include "cli/workers.h"
#include "traces/figure.h"
#include "traces/record.h"

enum {
    OPT_RESUME = 512,
    OPT_FORCE,
    OPT_JSON,
    OPT_SAVE,
    OPT_SAVE_TYPE,
    OPT_SAVE_SHARD,
    OPT_DRY,
    OPT_DEVICE
};
static const uint64_t default_shard = UINT64_C(5000000000);
enum { SNAPSHOT_S = 30 }; /* seconds between partial traces, at least */

static const struct argp_option options[] = {
    {"output", 'o', "FILE", 0, "trace to write (HDF5); figures go beside it", 0},
    {"resume", OPT_RESUME, NULL, 0, "continue an interrupted run of the same FILE", 0},
    {"force", OPT_FORCE, NULL, 0, "overwrite an existing trace", 0},
    {"save", OPT_SAVE, "DIR", 0,
     "write the weights of every run into DIR/ARM-SEED: config.json and "
     "model.safetensors, as Hugging Face's transformers read them",
     0},
    {"save-type", OPT_SAVE_TYPE, "TYPE", 0,
     "of their numbers: F32 (default), BF16, F16", 0},
    {"save-shard", OPT_SAVE_SHARD, "SIZE", 0,
     "most bytes of one file of weights (default 5 GB); more become several files and "
     "model.safetensors.index.json, as by save_pretrained's max_shard_size",
     0},
    {"dry-run", OPT_DRY, NULL, 0,
     "check everything, print what would be run with its delays and memory, write "
     "nothing; -o is not needed",
     0},
    {"device", OPT_DEVICE, "NAME", 0, "train.device: auto, host, cuda or ref", 0},
    {"json", OPT_JSON, NULL, 0, "print the table and the verdicts as JSON", 0},
    {0},
};

struct args {
    struct pl_cmd_settings settings;
    const char *file, *output, *save;
    const struct pl_tensor_type *save_type;
    uint64_t save_shard;
    bool resume, force, json, dry;
};

static error_t parse(int option, char *arg, struct argp_state *state)
{
    struct args *args = state->input;
    bool bad;
    switch (option) {
    case ARGP_KEY_INIT:
        state->child_inputs[0] = &args->settings;
        return 0;
    case 'o':
        args->output = arg;
        return 0;
    case OPT_RESUME:
        args->resume = true;
        return 0;
    case OPT_FORCE:
        args->force = true;
        return 0;
    case OPT_DRY:
        args->dry = true;
        return 0;
    case OPT_JSON:
        args->json = true;
        return 0;
    case OPT_SAVE:
        args->save = arg;
        return 0;
    case OPT_SAVE_TYPE:
        args->save_type = pl_tensor_type_find(arg);
        if (!args->save_type || !args->save_type->encode)
            argp_error(state, "--save-type is '%s', expected F32, BF16 or F16", arg);
        return 0;
    case OPT_SAVE_SHARD:
        bad = pl_units_bytes(arg, &args->save_shard) != 0;
        if (bad || !args->save_shard)
            argp_error(state,
                       "--save-shard: %s (expected a size such as 5 GB or 500 kB)",
                       bad ? pl_error_text() : "no bytes");
        return 0;
    case OPT_DEVICE:
        pl_cmd_settings_add(&args->settings, "train.device", arg, "--device");
        return 0;
    case ARGP_KEY_ARG:
        pl_cmd_argument(state, "FILE", arg, &args->file);
        return 0;
    case ARGP_KEY_END:
        if (!args->output && !args->dry)
            argp_error(state, "-o FILE is missing: the trace to write");
        if (args->save_type && !args->save)
            argp_error(state, "--save-type without --save DIR");
        if (args->save_shard && !args->save)
            argp_error(state, "--save-shard without --save DIR");
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

static void on_eval(void *context, int job, const struct pl_eval *eval)
{
    struct pl_session *s = context;
    struct pl_json json;
    pl_json_open(&json, s->progress);
    json.one_line = true;
    pl_json_begin(&json, NULL, '{');
    pl_json_text(&json, "arm", pl_session_arm(s, job)->name);
    pl_json_uint(&json, "seed", pl_session_seed(s, job));
    pl_json_int(&json, "update", eval->update);
    pl_json_real(&json, "time_s", eval->time_s);
    pl_json_real(&json, "valid_loss", eval->loss);
    pl_json_end(&json, '}');
    pl_json_close(&json);
    fflush(s->progress);
    if (pl_clock() - s->snapshot > SNAPSHOT_S && pl_session_write_partial(s) < 0)
        pl_log(PL_LOG_WARN, "%s", pl_error_text());
}

static const char *plural(int n)
{
    return n == 1 ? "" : "s";
}

static void announce(const struct pl_session *s)
{
    char text[32], on[32] = "";
    int rank, ranks;
    if (!pl_mpi_launched(&rank, &ranks) && ranks > 1)
        snprintf(on, sizeof on, " on %d ranks", ranks);
    pl_log(
        PL_LOG_INFO,
        "%d run%s (%d arm%s x %d seed%s), %d at a time%s with %d thread%s, %s each at "
        "most",
        pl_session_jobs(s), plural(pl_session_jobs(s)), s->experiment.n_arms,
        plural(s->experiment.n_arms), s->experiment.n_seeds,
        plural(s->experiment.n_seeds), s->n_workers, on, s->n_threads,
        plural(s->n_threads),
        pl_units_format_bytes((double)s->largest->memory.all, text, sizeof text));
}

static bool any_evaluation(const struct pl_session *s)
{
    for (int j = 0; j < pl_session_jobs(s); j++)
        if (s->results[j].n_evals) return true;
    return false;
}

/* The arm whose Gantt chart says most: the first that does not wait; else the first. */
static int first_async(const struct pl_experiment *e)
{
    for (int i = 0; i < e->n_arms; i++)
        if (e->arms[i].sim.schedule.type->async) return i;
    return 0;
}

static int figures(const struct pl_session *s, const struct pl_trace *t)
{
    const char *dot = strrchr(s->output, '.');
    int stem =
        dot && !strchr(dot, '/') ? (int)(dot - s->output) : (int)strlen(s->output);
    char *gantt = pl_printf("%.*s-gantt.svg", stem, s->output);
    char *curves = pl_printf("%.*s-curves.svg", stem, s->output);
    const struct pl_experiment *e = &s->experiment;
    int rc = pl_figure_gantt(t, e->arms[first_async(e)].name, gantt);
    if (!rc && any_evaluation(s)) {
        rc = pl_figure_curves(t, curves);
        if (!rc) pl_log(PL_LOG_INFO, "wrote %s, %s and %s", s->output, gantt, curves);
    } else if (!rc) {
        pl_log(PL_LOG_INFO, "wrote %s and %s; no evaluations, so no curves", s->output,
               gantt);
    }
    free(gantt);
    free(curves);
    return rc;
}

static void print(const struct pl_session *s, const struct pl_report *report,
                  const struct pl_verdict *verdicts, int n, bool as_json)
{
    if (as_json) {
        struct pl_json json;
        pl_json_open(&json, stdout);
        pl_json_begin(&json, NULL, '{');
        pl_report_json(report, &json);
        pl_scores_json(&s->experiment, s->results, &json);
        pl_verdicts_json(verdicts, n, &json);
        pl_json_end(&json, '}');
        pl_json_close(&json);
    } else {
        pl_report_print(report, stdout);
        pl_scores_print(&s->experiment, s->results, stdout);
        if (report->n > 1) pl_verdicts_print(verdicts, n, stdout);
    }
}

/* Trace, then the figures out of that file, then what was only needed to resume. */
static int write_results(struct pl_session *s, const struct pl_report *report,
                         const struct pl_verdict *verdicts, int n)
{
    struct pl_trace *t = pl_session_trace(s, "complete");
    pl_report_record(report, t);
    pl_record_verdicts(t, verdicts, n);
    int rc = pl_trace_write(t, s->output);
    pl_trace_free(t);
    if (!rc) rc = pl_trace_read(s->output, &t);
    if (rc) return rc;
    rc = figures(s, t);
    pl_trace_free(t);
    if (!rc) pl_session_clean(s);
    return rc;
}

static void tell_saved(const struct pl_session *s)
{
    int n = 0;
    if (!s->save) return;
    for (int j = 0; j < pl_session_jobs(s); j++)
        n += pl_job_saved(&s->experiment, j, true);
    pl_log(PL_LOG_INFO, "wrote weights of %d of %d run%s into %s%s", n,
           pl_session_jobs(s), plural(pl_session_jobs(s)), s->save,
           n < pl_session_jobs(s) ? "; those of diverged runs are not kept" : "");
}

/* The table is printed even when a file cannot be written. */
static int finish(struct pl_session *s, bool as_json)
{
    struct pl_report report;
    pl_session_load(s);
    int n, rc = pl_report_new(&s->experiment, s->results, &report);
    if (rc) return rc;
    struct pl_verdict *verdicts = pl_verdicts_of(&report, &n);
    rc = write_results(s, &report, verdicts, n);
    tell_saved(s);
    pl_workers_release_signals(); /* printing may block for long */
    print(s, &report, verdicts, n, as_json);
    free(verdicts);
    pl_report_free(&report);
    return rc;
}

/* The command as given plus --resume, quoted for a shell. */
static void print_resume(const char *what, int argc, char **argv, bool resume)
{
    fprintf(stderr, "pipelag: %s; resume with: ", what);
    if (pl_mpi_size() > 1) fprintf(stderr, "mpirun -n %d ", pl_mpi_size());
    fprintf(stderr, "%s", argv[0]);
    for (int i = 1; i < argc; i++) {
        bool plain = argv[i][0] && !strpbrk(argv[i], " \t\n\"'\\$`*?[](){}<>|&;#~!");
        fprintf(stderr, plain ? " %s" : " '%s'", argv[i]);
    }
    fprintf(stderr, "%s\n", resume ? "" : " --resume");
}

/* Open on the first rank, before MPI, which forbids the processes that opening forks;
 * the others join when it has. */
static int open_ranks(struct pl_session *s, const struct args *args)
{
    int rank, ranks, rc = pl_mpi_launched(&rank, &ranks);
    if (!rc) rc = pl_cmd_settings_config(&args->settings, args->file, &s->config);
    if (!rc && rank == 0) rc = pl_session_open(s);
    if (!rc && rank == 0) pl_unused_warn_run(&s->experiment, NULL);
    if (!rc && rank == 0) announce(s);
    if (rc && rank == 0) return rc;
    if (ranks < 2) return 0;
    if (rank) pl_log_set_level(PL_LOG_ERROR);
    int begun = pl_mpi_begin();
    if (!rc) rc = begun;
    pl_mpi_max(0); /* the first has made the folder */
    return rc || rank == 0 ? rc : pl_session_join(s);
}

/* Did an earlier part of a run that failed leave something? */
static bool kept(const struct pl_session *s)
{
    for (int j = 0; s->checkpoints && j < pl_session_jobs(s); j++)
        if (!access(s->checkpoints[j], F_OK)) return true;
    return false;
}

/* A failure of one rank is everybody's end. */
static int failed(int code)
{
    int status = pl_cmd_fail(code);
    if (pl_mpi_size() > 1) pl_mpi_abort(status);
    return status;
}

static int dry_run(struct pl_session *s, const struct args *args)
{
    int rank, ranks, rc = pl_mpi_launched(&rank, &ranks);
    if (!rc && rank) return 0;
    if (!rc) rc = pl_cmd_settings_config(&args->settings, args->file, &s->config);
    if (!rc) rc = pl_dry_run(s, args->json, stdout);
    if (s->largest) pl_unused_warn_run(&s->experiment, NULL);
    return rc ? pl_cmd_fail(rc) : 0;
}

/* Exit status; *number is the signal that interrupted it, or 0; *failure: it has
 * trained and failed. */
static int run(struct pl_session *s, const struct args *args, int *number,
               bool *failure)
{
    int rc = open_ranks(s, args);
    if (rc) return failed(rc);
    struct pl_workers_spec spec = {
        .experiment = &s->experiment,
        .checkpoints = (const char *const *)s->checkpoints,
        .finished = s->finished,
        .n_workers = s->n_workers,
        .n_threads = s->n_threads,
        .on_eval = on_eval,
        .context = s,
    };
    pl_workers_catch_signals();
    rc = pl_workers_run(&spec, number);
    const bool first = pl_mpi_rank() == 0;
    if (rc == PL_EINTR) {
        rc = first ? pl_session_write_partial(s) : 0;
        return rc ? failed(rc) : 128 + *number;
    }
    *number = 0;
    if (!rc && first) rc = finish(s, args->json);
    *failure = rc != 0;
    return rc ? failed(rc) : 0;
}

/* The list of rules in --help comes from the table. */
static char *help_filter(int key, const char *text, void *input)
{
    (void)input;
    if (key != ARGP_KEY_HELP_EXTRA) return (char *)text;
    char *list = pl_setup_optim_list();
    char *all = pl_printf("Values of optimizer.name, with the defaults of what each "
                          "reads:\n%s",
                          list);
    free(list);
    return all;
}

int pl_cmd_run(int argc, char **argv)
{
    static const struct argp argp = {
        .options = options,
        .parser = parse,
        .args_doc = "[FILE]",
        .doc =
            "Simulate every schedule of an experiment, train a model under the version "
            "maps they imply, and print what a step costs, how stale the gradients "
            "are, what that does to the loss, and when the synchronous loss is "
            "reached.",
        .children = pl_cmd_settings_children,
        .help_filter = help_filter,
    };
    struct args args = {0};
    int number = 0;
    bool failure = false;
    char **given = pl_alloc((size_t)argc, sizeof *given); /* argp reorders argv */
    memcpy(given, argv, (size_t)argc * sizeof *given);
    argp_parse(&argp, argc, argv, 0, NULL, &args);
    struct pl_session s = {
        .output = args.output,
        .resume = args.resume,
        .force = args.force,
        .save = args.save,
        .save_shard = args.save_shard ? args.save_shard : default_shard,
        .save_type = args.save_type ? args.save_type : pl_tensor_type_find("F32"),
        .command = pl_cmd_settings_line(&args.settings, "pipelag run", args.file)};
    int status = args.dry ? dry_run(&s, &args) : run(&s, &args, &number, &failure);
    if (!pl_mpi_rank() && (number || (failure && kept(&s))))
        print_resume(number ? "interrupted" : "what was done is kept", argc, given,
                     args.resume);
    pl_mpi_end();
    free(given);
    pl_session_close(&s);
    pl_cmd_settings_free(&args.settings);
    return status;
}
