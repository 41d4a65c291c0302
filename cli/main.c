/* The command line of pipelag: finds the subcommand and hands it the rest. */
#include "config.h"

#include <argp.h>
#include <errno.h>
#include <fcntl.h>
#include <locale.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/mem.h"
#include "cli/cmd.h"

const struct pl_command pl_commands[] = {
    {"sim", "simulate a schedule: Gantt, bubbles, delay and versions per stage",
     pl_cmd_sim},
    {"sweep", "simulate the product of lists of values, ask for the best",
     pl_cmd_sweep},
    {"plan", "search the fastest way to train a model on a cluster", pl_cmd_plan},
    {"run", "simulate, train under the delay, judge the claims", pl_cmd_run},
    {"profile", "time F, B, W and U of a run on this machine, for sim", pl_cmd_profile},
    {"model", "parameters, flops and bytes of a model, and how it is cut",
     pl_cmd_model},
    {"tokenize", "turn text into token files by a byte-pair vocabulary, and back",
     pl_cmd_tokenize},
    {"theory", "stability limits under delay, a-priori bound on the gradient",
     pl_cmd_theory},
    {"trace", "validate, look into, export and compare traces", pl_cmd_trace},
    {"figure", "draw figures out of a trace", pl_cmd_figure},
    {"cluster", "show a cluster: links, message and all-reduce times; list presets",
     pl_cmd_cluster},
    {"calibrate", "compare measured steps with simulated ones, fit a GPU to them",
     pl_cmd_calibrate},
    {"config", "print the configuration, its keys or the arms of an experiment",
     pl_cmd_config},
    {NULL, NULL, NULL},
};

/* "pipelag sim (pipelag) 0.1.0": help2man takes the page's title from it. */
static void print_version(FILE *out, struct argp_state *state)
{
    if (strcmp(state->name, "pipelag") == 0)
        fprintf(out, "pipelag %s\n", PACKAGE_VERSION);
    else
        fprintf(out, "%s (pipelag) %s\n", state->name, PACKAGE_VERSION);
}

static int fail_unknown_command(const char *name)
{
    const char *names[sizeof pl_commands / sizeof *pl_commands];
    size_t n = 0;
    for (const struct pl_command *c = pl_commands; c->name; c++) names[n++] = c->name;
    names[n] = NULL;
    const char *nearest = pl_nearest(name, names);
    if (nearest)
        return pl_fail(PL_EUSAGE, "unknown command '%s', did you mean '%s'?", name,
                       nearest);
    return pl_fail(PL_EUSAGE, "unknown command '%s', 'pipelag --help' lists them",
                   name);
}

static int run_command(int argc, char **argv)
{
    for (const struct pl_command *c = pl_commands; c->name; c++) {
        if (strcmp(c->name, argv[0]) != 0) continue;
        char *title = pl_printf("pipelag %s", c->name);
        argv[0] = title;
        int status = c->run(argc, argv);
        free(title);
        return status;
    }
    return pl_cmd_fail(fail_unknown_command(argv[0]));
}

static error_t parse(int option, char *arg, struct argp_state *state)
{
    int *status = state->input;
    (void)arg;
    switch (option) {
    case ARGP_KEY_ARG: {
        int first = state->next - 1;
        state->next = state->argc; /* the rest is the command's */
        *status = run_command(state->argc - first, state->argv + first);
        return 0;
    }
    case ARGP_KEY_NO_ARGS:
        argp_usage(state);
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

/* The list of commands in --help comes from the table. */
static char *help_filter(int key, const char *text, void *input)
{
    (void)input;
    if (key != ARGP_KEY_HELP_EXTRA) return (char *)text;
    char *list = pl_strdup("Commands:\n");
    for (const struct pl_command *c = pl_commands; c->name; c++) {
        char *longer = pl_printf("%s  %-10s %s\n", list, c->name, c->summary);
        free(list);
        list = longer;
    }
    char *all = pl_printf(
        "%s\n'pipelag COMMAND --help' and pipelag-COMMAND(1) say more.", list);
    free(list);
    return all;
}

/* A descriptor that the caller closed would be the next file's: the table would end up
 * in a checkpoint. Writing to it still fails. */
static void hold_standard_streams(void)
{
    for (int fd = 0; fd <= 2; fd++)
        if (fcntl(fd, F_GETFD) < 0 && errno == EBADF) open("/dev/null", O_RDONLY);
}

/* Results that did not reach stdout are a failure; a closed pipe is the reader's wish.
 */
static void close_stdout(void)
{
    int failed = ferror(stdout);
    errno = 0;
    if (fclose(stdout) == 0 && !failed) return;
    if (errno != EPIPE)
        fprintf(stderr, "pipelag: cannot write standard output: %s\n",
                errno ? strerror(errno) : "write error");
    _exit(1);
}

/* OpenBLAS starts threads of its own before main, which are not used here. Where the
 * address space is limited they look for 128 MiB each without end, and fork() and
 * exit() wait for them: then this program starts again without them. */
static void start_without_blas_threads(char **argv)
{
    static const char name[] = "OPENBLAS_NUM_THREADS";
    struct rlimit space;
    const char *given = getenv(name);
    if (getrlimit(RLIMIT_AS, &space) || space.rlim_cur == RLIM_INFINITY ||
        (given && !strcmp(given, "1")) || setenv(name, "1", 1))
        return;
    execv("/proc/self/exe", argv); /* without /proc: as it is */
}

int main(int argc, char **argv)
{
    static const struct argp argp = {
        .parser = parse,
        .args_doc = "COMMAND [OPTION...]",
        .doc =
            "Simulate asynchronous pipeline schedules and train under the delay they "
            "imply: how much faster is a step, how stale are the gradients, what does "
            "it cost in loss, when is the target loss reached.",
        .help_filter = help_filter,
    };
    static char program[] = "pipelag";
    int status = 0;
    start_without_blas_threads(argv);
    hold_standard_streams();
    signal(SIGXFSZ, SIG_IGN); /* a file beyond the limit is an error like a full disk */
    atexit(close_stdout);
    setlocale(LC_ALL, "C");
    argp_err_exit_status = 2;
    argp_program_version_hook = print_version;
    if (argc > 0) argv[0] = program;
    pl_cmd_register_families();
    error_t error = argp_parse(&argp, argc, argv, ARGP_IN_ORDER, NULL, &status);
    if (error) {
        pl_fail(PL_EUSAGE, "%s", strerror(error));
        return pl_cmd_fail(PL_EUSAGE);
    }
    return status;
}
