/* pipelag sweep: the product of lists of values, simulated on all cores or MPI ranks,
 * into one table; and questions to such a table. */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log.h"
#include "base/mem.h"
#include "base/mpi.h"
#include "cli/cmd.h"
#include "cli/sweep.h"
#include "cli/sweep_print.h"
#include "cli/workers.h"
#include "traces/record.h"

enum { OPT_WHERE = 512, OPT_SORT, OPT_TOP, OPT_CSV, OPT_JSON, OPT_FORCE, OPT_WORKERS };
enum { TEXT_ROWS = 50 }; /* that the text table prints unless --top says otherwise */

static const struct argp_option options[] = {
    {"output", 'o', "RESULT", 0, "write the table as a trace (HDF5); resumable", 0},
    {"force", OPT_FORCE, NULL, 0, "replace RESULT when it exists", 0},
    {"workers", OPT_WORKERS, "N", 0, "processes; default: one a core", 0},
    {NULL, 0, NULL, 0, "What is printed:", 0},
    {"where", OPT_WHERE, "CONDITION", 0,
     "rows that fit, e.g. 'bubble<0.1 and tau_max<=1'", 0},
    {"sort", OPT_SORT, "COLUMNS", 0, "order of the rows; -COLUMN: descending", 0},
    {"top", OPT_TOP, "N", 0, "the first N rows; 0: all (text: 50 by default)", 0},
    {"csv", OPT_CSV, NULL, 0, "print CSV, all columns", 0},
    {"json", OPT_JSON, NULL, 0, "print JSON, all columns", 0},
    {0},
};

struct args {
    struct pl_cmd_settings settings;
    const char *file, *output, *where, *sort;
    int64_t top, workers;
    bool top_given, csv, json, force;
    int code; /* of a bad option */
};

static void parse_number(struct args *args, const char *option, const char *text,
                         int64_t max, int64_t *out)
{
    int code = pl_cmd_int(option, text, 0, max, out);
    if (!args->code) args->code = code;
}

static error_t parse(int option, char *arg, struct argp_state *state)
{
    struct args *args = state->input;
    switch (option) {
    case ARGP_KEY_INIT:
        state->child_inputs[0] = &args->settings;
        return 0;
    case 'o':
        args->output = arg;
        return 0;
    case OPT_FORCE:
        args->force = true;
        return 0;
    case OPT_WORKERS:
        parse_number(args, "--workers", arg, 4096, &args->workers);
        return 0;
    case OPT_WHERE:
        args->where = arg;
        return 0;
    case OPT_SORT:
        args->sort = arg;
        return 0;
    case OPT_TOP:
        parse_number(args, "--top", arg, PL_MAX_POINTS, &args->top);
        args->top_given = true;
        return 0;
    case OPT_CSV:
        args->csv = true;
        return 0;
    case OPT_JSON:
        args->json = true;
        return 0;
    case ARGP_KEY_ARG:
        pl_cmd_argument(state, "FILE", arg, &args->file);
        return 0;
    case ARGP_KEY_NO_ARGS:
        argp_error(state, "FILE is missing: a configuration with `sweep:`, or RESULT");
        return 0;
    case ARGP_KEY_END:
        if (args->csv && args->json) argp_error(state, "--csv and --json exclude");
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

/* Printing */

static int print(const struct args *args, const struct pl_trace *t, const char *path)
{
    struct pl_sweep_view view;
    struct pl_sweep_query query;
    int code = pl_sweep_view_new(t, path, &view);
    if (!code) code = pl_sweep_query_new(&view, args->where, args->sort, &query);
    if (!code) {
        int64_t *rows, top = args->top;
        if (!args->csv && !args->json && !args->top_given) top = TEXT_ROWS;
        struct pl_sweep_answer answer = {.view = &view};
        answer.n = pl_sweep_query_rows(&query, &view, top, &rows, &answer.matching);
        answer.rows = rows;
        (args->csv    ? pl_sweep_print_csv
         : args->json ? pl_sweep_print_json
                      : pl_sweep_print_text)(&answer, stdout);
        free(rows);
        pl_sweep_query_free(&query);
    }
    pl_sweep_view_free(&view);
    return code;
}

static bool is_trace(const char *path)
{
    static const char magic[] = "\211HDF\r\n\032\n";
    char head[8] = "";
    struct stat st;
    if (stat(path, &st) || !S_ISREG(st.st_mode)) return false;
    FILE *f = fopen(path, "rb");
    if (!f) return false;
    size_t n = fread(head, 1, sizeof head, f);
    fclose(f);
    return n == sizeof head && !memcmp(head, magic, sizeof head);
}

static int ask(const struct args *args)
{
    struct pl_trace *t;
    if (args->output || args->settings.n)
        return pl_fail(PL_EUSAGE,
                       "%s: a result is only asked (--where, --sort, --top); %s needs "
                       "a configuration",
                       args->file, args->output ? "-o" : "--set");
    int code = pl_trace_read(args->file, &t);
    if (code) return code;
    code = print(args, t, args->file);
    pl_trace_free(t);
    return code;
}

/* Running */

static int count_workers(const struct args *args)
{
    int n = (int)args->workers;
    if (!n) n = (int)sysconf(_SC_NPROCESSORS_ONLN);
    return n < 1 ? 1 : n;
}

/* "96 points: schedule.name 4 x schedule.stages 6; 2 workers" */
static void announce(const struct pl_sweep *sweep, int workers)
{
    char *product = pl_sweep_product(sweep->config);
    int ranks = pl_mpi_size();
    pl_log(PL_LOG_INFO, "%lld points: %s; %d %s", (long long)sweep->n, product,
           ranks > 1 ? ranks - 1 : workers, ranks > 1 ? "MPI workers" : "workers");
    free(product);
    if (sweep->done)
        pl_log(PL_LOG_INFO, "%s: goes on after %lld points", sweep->part_path,
               (long long)sweep->done);
}

static int finish(const struct args *args, struct pl_sweep *sweep)
{
    struct pl_trace *t = pl_trace_new();
    char *line = pl_cmd_settings_line(&args->settings, "pipelag sweep", args->file);
    char *given = pl_config_dump(sweep->config, true),
         *resolved = pl_config_dump(sweep->config, false);
    pl_record_provenance(t, line, given, resolved, "none");
    pl_sweep_record(sweep, t);
    int code = args->output ? pl_trace_write(t, args->output) : 0;
    if (!code) pl_sweep_drop(sweep);
    pl_workers_release_signals(); /* printing may block for long */
    if (!code && args->output) pl_log(PL_LOG_INFO, "wrote %s", args->output);
    bool asked =
        args->where || args->sort || args->top_given || args->csv || args->json;
    if (!code && (asked || !args->output)) code = print(args, t, args->file);
    pl_trace_free(t);
    free(line);
    free(given);
    free(resolved);
    return code;
}

static int interrupted(const struct pl_sweep *sweep)
{
    pl_log(PL_LOG_INFO, "interrupted after %lld of %lld points%s%s",
           (long long)sweep->done, (long long)sweep->n,
           sweep->part_path ? "; the same command goes on after those in "
                            : ", which are lost without -o",
           sweep->part_path ? sweep->part_path : "");
    return 128 + pl_workers_signal();
}

/* Questions are checked before anything is computed. */
static int check_query(const struct args *args, const struct pl_config *config)
{
    struct pl_sweep_view view;
    struct pl_sweep_query query;
    pl_sweep_view_planned(config, &view);
    int code = pl_sweep_query_new(&view, args->where, args->sort, &query);
    if (!code) pl_sweep_query_free(&query);
    pl_sweep_view_free(&view);
    return code;
}

static int keep_rows(const struct args *args, struct pl_sweep *sweep)
{
    int code = pl_cmd_output(args->output, args->force);
    if (code) return code;
    char *part = pl_printf("%s.part", args->output);
    code = pl_sweep_keep(sweep, part, args->force);
    free(part);
    return code;
}

static int compute(const struct args *args, struct pl_sweep *sweep)
{
    int workers = count_workers(args);
    announce(sweep, workers);
    double began = pl_clock();
    int64_t before = sweep->done;
    pl_workers_catch_signals();
    int code =
        pl_mpi_size() > 1 ? pl_sweep_run_mpi(sweep) : pl_sweep_run(sweep, workers);
    if (code) return code;
    double s = pl_clock() - began;
    pl_log(PL_LOG_INFO, "%lld points in %.3g s, %.3g points/s",
           (long long)(sweep->done - before), s, (double)(sweep->done - before) / s);
    return finish(args, sweep);
}

/* Exit status. */
static int run(const struct args *args, struct pl_config **config,
               struct pl_sweep *sweep)
{
    int code = pl_cmd_settings_config(&args->settings, args->file, config);
    if (!code) code = pl_sweep_new(*config, args->file, sweep);
    if (!code) code = check_query(args, *config);
    if (pl_mpi_rank()) {
        if (!code) {
            pl_workers_catch_signals();
            pl_sweep_run_mpi(sweep);
        }
        return pl_exit_status(code);
    }
    if (!code && args->output && (code = keep_rows(args, sweep))) pl_sweep_dismiss();
    if (!code) code = compute(args, sweep);
    if (code == PL_EINTR) return interrupted(sweep);
    return code ? pl_cmd_fail(code) : 0;
}

int pl_cmd_sweep(int argc, char **argv)
{
    static const struct argp argp = {
        .options = options,
        .parser = parse,
        .args_doc = "FILE\nRESULT",
        .doc =
            "Simulate every combination of the values that `sweep:` in FILE lists for "
            "configuration keys, as `pipelag sim` would, on all cores; print or write "
            "one row a combination. Given the RESULT of an earlier sweep, ask it "
            "again.",
        .children = pl_cmd_settings_children,
    };
    struct args args = {0};
    argp_parse(&argp, argc, argv, 0, NULL, &args);
    pl_memory_keep();
    struct pl_config *config = NULL;
    struct pl_sweep sweep = {.part = -1};
    int code = args.code, status;
    if (!code) code = pl_mpi_begin();
    if (code)
        status = pl_cmd_fail(code);
    else if (!is_trace(args.file))
        status = run(&args, &config, &sweep);
    else
        status = pl_mpi_rank() || !(code = ask(&args)) ? 0 : pl_cmd_fail(code);
    pl_mpi_end();
    pl_sweep_free(&sweep);
    pl_config_free(config);
    pl_cmd_settings_free(&args.settings);
    return status;
}
