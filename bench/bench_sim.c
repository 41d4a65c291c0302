/* The simulator: 1F1B, P = 64, m = 512, latency links (65536 ops, 64512 transfers), in
 * CPU time of the process, ours and the peers', so that others on the machine count
 * little. Memory of a timeline is kept from run to run, as in a sweep. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/stats.h"
#include "bench/bench.h"
#include "sim/simulate.h"
#include "sim/program.h"
#include "sim/static.h"

enum { P = 64, M = 512, RUNS = 20 };

const char *heapq_script, *simgrid_program;

struct setup {
    struct pl_cost cost;
    struct pl_schedule schedule;
};

static void prepare(struct setup *s, int stages, int m)
{
    pl_tick f = 11325, b = 19417, none = 0, c = 378;
    struct pl_layout plain = {stages, stages, 1, NULL};
    struct pl_cost_spec spec = {.forward = {&f, 1},
                                .backward = {&b, 1},
                                .weight = {&none, 1},
                                .update = {&none, 1},
                                .link = {&c, 1}};
    struct pl_shape shape = {.P = stages, .m = m, .updates = 1};
    die(pl_cost_new(&plain, &spec, &s->cost));
    die(pl_schedule_new(pl_schedule_find("1f1b"), &shape, NULL, &s->schedule));
}

static void release(struct setup *s)
{
    pl_schedule_free(&s->schedule);
    pl_cost_free(&s->cost);
}

static double cpu_seconds(void)
{
    return (double)clock() / CLOCKS_PER_SEC;
}

/* Runs of the event path a second; *makespan of one. */
static double event_runs(struct setup *s, int64_t *events, pl_tick *makespan)
{
    double rate[BATCHES];
    for (int i = 0; i < BATCHES; i++) {
        struct pl_timeline t;
        double begin = cpu_seconds();
        for (int k = 0; k < RUNS; k++) {
            die(pl_engine_run(&s->schedule, &s->cost, true, &t));
            *events = s->schedule.n_ops + t.n_messages;
            *makespan = t.end[t.n_ops - 1];
            pl_timeline_free(&t);
        }
        rate[i] = RUNS / (cpu_seconds() - begin);
    }
    return pl_quantile(rate, BATCHES, 0.5);
}

/* First number that a peer prints, events a second, or NaN. A second one is the
 * makespan in our ticks: a peer that simulates something else is no peer. */
static double ask(const char *interpreter, const char *program, pl_tick makespan)
{
    double rate = NAN, end = (double)makespan;
    char *command = pl_printf("%s '%s' 2>/dev/null", interpreter, program);
    FILE *peer = popen(command, "r");
    if (!peer || fscanf(peer, "%lf %lf", &rate, &end) < 1) rate = NAN;
    if (peer) pclose(peer);
    free(command);
    if (fabs(end / (double)makespan - 1) > 1e-6) {
        fprintf(stderr, "bench: %s simulates %.9g ticks, we %.9g\n", program, end,
                (double)makespan);
        rate = NAN;
    }
    return rate;
}

static void event(const char *interpreter, const char *program, double *value,
                  double *peer_value)
{
    struct setup s;
    int64_t events = 0;
    pl_tick makespan = 0;
    prepare(&s, P, M);
    double runs = event_runs(&s, &events, &makespan);
    *value = runs * (double)events;
    *peer_value = ask(interpreter, program, makespan);
    release(&s);
}

void sim_event(double *value, double *peer_value)
{
    event("python3", heapq_script, value, peer_value);
}

void sim_event_simgrid(double *value, double *peer_value)
{
    event("", simgrid_program, value, peer_value);
}

/* The compiled schedule: the end of every op under new costs, without rows and
 * messages; compiling is not in the figure. The peer makes the whole timeline. */
void sim_static(double *value, double *peer_value)
{
    struct setup s;
    struct pl_program program;
    double rate[BATCHES];
    int64_t events = 0;
    pl_tick makespan = 0, swept = 0;
    prepare(&s, P, M);
    double n_ops = (double)s.schedule.n_ops;
    *peer_value = event_runs(&s, &events, &makespan) * n_ops;
    die(pl_program_new(&s.schedule, true, &program));
    pl_tick *end = PL_NEW(program.n, pl_tick);
    for (int i = 0; i < BATCHES; i++) {
        double begin = cpu_seconds();
        for (int k = 0; k < 20 * RUNS; k++)
            die(pl_program_run(&program, &s.cost, end, &swept));
        rate[i] = 20 * RUNS * n_ops / (cpu_seconds() - begin);
    }
    *value = swept == makespan ? pl_quantile(rate, BATCHES, 0.5) : NAN;
    free(end);
    pl_program_free(&program);
    release(&s);
}

/* One sweep without compiling first. */
void sim_static_once(double *value, double *peer_value)
{
    struct setup s;
    struct pl_ends ends = {0};
    double rate[BATCHES];
    int64_t events = 0;
    pl_tick makespan = 0;
    prepare(&s, P, M);
    double n_ops = (double)s.schedule.n_ops;
    *peer_value = event_runs(&s, &events, &makespan) * n_ops;
    for (int i = 0; i < BATCHES; i++) {
        double begin = cpu_seconds();
        for (int k = 0; k < 5 * RUNS; k++)
            die(pl_static_ends(&s.schedule, &s.cost, true, &ends));
        rate[i] = 5 * RUNS * n_ops / (cpu_seconds() - begin);
    }
    *value = ends.makespan == makespan ? pl_quantile(rate, BATCHES, 0.5) : NAN;
    pl_ends_free(&ends);
    release(&s);
}

static double peak_bytes(void)
{
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return 1024.0 * (double)usage.ru_maxrss;
}

/* Growth of the peak resident size over all of pl_simulate, in a process of its own:
 * 16 bytes of it are the schedule. The bound is that of timeline, messages and map. */
void sim_memory(double *value, double *peer_value)
{
    enum { STAGES = 256, MICRO = 2048 };
    int ends[2];
    double grown = NAN;
    if (pipe(ends)) return;
    pid_t child = fork();
    if (child == 0) {
        struct setup s;
        struct pl_simulation sim;
        double before = peak_bytes(), ops = 2.0 * STAGES * MICRO;
        prepare(&s, STAGES, MICRO);
        struct pl_shape shape = s.schedule.shape;
        pl_schedule_free(&s.schedule);
        die(pl_simulate(pl_schedule_find("1f1b"), &shape, &s.cost, true, &sim));
        grown = (peak_bytes() - before) / ops;
        _exit(write(ends[1], &grown, sizeof grown) != sizeof grown);
    }
    int status;
    if (child < 0 || waitpid(child, &status, 0) < 0 || status ||
        read(ends[0], &grown, sizeof grown) != sizeof grown)
        grown = NAN;
    close(ends[0]);
    close(ends[1]);
    *value = grown;
    *peer_value = 100;
}
