/* Benchmarks: each gives a value and, measured in the same run, a peer or limit;
 * medians of repeated batches. Prints a table and writes JSON {name: {value, unit,
 * peer, peer_value, ratio}}; a peer that is not there is null. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/json.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/stats.h"
#include "bench/accuracy.h"
#include "bench/bench.h"
#include "cli/cmd.h"
#include "gpu/host.h"
#include "train/run.h"

void die(int code)
{
    if (code < 0) {
        fprintf(stderr, "bench: %s\n", pl_error_text());
        exit(1);
    }
}

static double gemm_rate(const struct pl_device *dev, int M, int N, int K)
{
    float *a, *b, *c;
    double rate[BATCHES];
    die(dev->open());
    die(dev->alloc(sizeof *a * (size_t)M * (size_t)K, (void **)&a));
    die(dev->alloc(sizeof *b * (size_t)N * (size_t)K, (void **)&b));
    die(dev->alloc(sizeof *c * (size_t)M * (size_t)N, (void **)&c));
    for (int i = 0; i < BATCHES; i++) {
        double begin = pl_clock();
        for (int k = 0; k < 100; k++)
            die(dev->gemm(false, true, M, N, K, 1, a, K, b, K, 0, c, N));
        rate[i] = 200.0 * M * N * K / (pl_clock() - begin) * 1e-9;
    }
    dev->release(a);
    dev->release(b);
    dev->release(c);
    return pl_quantile(rate, BATCHES, 0.5);
}

/* The demo's query/key/value product; the peer is OpenBLAS with one thread. */
static void gemm(double *value, double *peer_value)
{
    int n = 0;
    while (pl_host_sets()[n]) n++;
    *value = gemm_rate(pl_host_sets()[0], 2048, 192, 64);
    *peer_value = gemm_rate(pl_host_sets()[n - 1], 2048, 192, 64);
}

enum { P = 8, UPDATES = 12 };

/* The demo's model, data and optimizer under the given map and corrector. */
static double timed_run(const struct pl_versions *versions, const char *corrector)
{
    static const struct pl_model model = {.layers = 8,
                                          .hidden = 64,
                                          .heads = 4,
                                          .kv_heads = 4,
                                          .head_dim = 16,
                                          .ffn = 176,
                                          .vocab = 256,
                                          .rope_theta = 1e4,
                                          .norm_eps = 1e-5};
    const struct pl_device *dev;
    struct pl_problem *problem;
    struct pl_data *data;
    struct pl_run_result result;
    die(pl_device_get("host", &dev));
    die(pl_data_open("grammar", "", NULL, 0.05, 256, 128, &data));
    die(pl_problem_llama(dev, &model, P, 16, 128, &problem));
    struct pl_segment segment = {UPDATES,
                                 pl_corrector_make(corrector, NAN, PL_START_HOLD)};
    struct pl_run_spec spec = {
        .device = dev,
        .problem = problem,
        .data = data,
        .versions = versions,
        .batch = 16,
        .T = 128,
        .seed = 1,
        .optim = {.type = pl_optim_find("adamw"),
                  .lr = 1e-3,
                  .beta1 = 0.9,
                  .beta2 = 0.95,
                  .eps = 1e-8,
                  .decay = 0.1},
        .rate = {.kind = PL_RATE_CONSTANT, .total = UPDATES, .floor = 1},
        .clip = 1,
        .clip_scope = PL_CLIP_STAGE,
        .n_segments = 1,
        .segments = &segment,
        .fidelity = PL_FIDELITY_STASH,
    };
    double begin = pl_clock();
    die(pl_run(&spec, &result));
    double seconds = (pl_clock() - begin) / UPDATES;
    pl_run_free(&result);
    pl_problem_free(problem);
    pl_data_free(data);
    return seconds;
}

/* Seconds per update; first and last: delay of stage 0 and P-1, linear between. */
static double step_seconds(int64_t first, int64_t last, const char *corrector)
{
    struct pl_versions versions;
    int64_t tau[P];
    for (int s = 0; s < P; s++) tau[s] = first + (last - first) * s / (P - 1);
    pl_versions_constant(P, UPDATES, 1, tau, 1, &versions);
    double seconds = timed_run(&versions, corrector);
    pl_versions_free(&versions);
    return seconds;
}

static void train(double *value, double *peer_value)
{
    double rate[BATCHES];
    for (int i = 0; i < BATCHES; i++) rate[i] = 2048 / step_seconds(0, 0, "none");
    *value = pl_quantile(rate, BATCHES, 0.5);
    *peer_value = NAN;
}

/* Milliseconds per update with delay, the peer without, in alternation. */
static void overhead(int64_t first, int64_t last, const char *corrector, double *value,
                     double *peer_value)
{
    double late[BATCHES], now[BATCHES];
    for (int i = 0; i < BATCHES; i++) {
        now[i] = 1e3 * step_seconds(0, 0, "none");
        late[i] = 1e3 * step_seconds(first, last, corrector);
    }
    *value = pl_quantile(late, BATCHES, 0.5);
    *peer_value = pl_quantile(now, BATCHES, 0.5);
}

static void overhead_tau1(double *value, double *peer_value)
{
    overhead(1, 1, "none", value, peer_value);
}

static void overhead_feedback(double *value, double *peer_value)
{
    overhead(1, 1, "feedback", value, peer_value);
}

static void overhead_stash(double *value, double *peer_value)
{
    overhead(P - 1, 0, "none", value, peer_value);
}

static const struct bench benches[] = {
    {"sim_memory_bytes_per_op", "bytes/op", "bound: 40 rows, 60 messages", sim_memory},
    {"sim_event_p64_m512", "events/s", "python3 heapq", sim_event},
    {"sim_event_p64_m512_simgrid", "events/s", "SimGrid", sim_event_simgrid},
    {"sim_static_p64_m512", "ops/s", "our event path, ops/s", sim_static},
    {"sim_static_once_p64_m512", "ops/s", "our event path, ops/s", sim_static_once},
    {"gemm_2048x192x64", "GFLOP/s", "OpenBLAS, one thread", gemm},
    {"train_demo_fp32", "tokens/s", "none yet", train},
    {"delay_overhead_tau1", "ms/update", "no delay", overhead_tau1},
    {"delay_overhead_feedback", "ms/update", "no delay", overhead_feedback},
    {"delay_overhead_stash_p8", "ms/update", "no delay", overhead_stash},
};

static void report(const struct bench *b, struct pl_json *json)
{
    double value, peer;
    b->run(&value, &peer);
    printf("%-27s %11.4g %-9s %11.4g %7.3g  %s\n", b->name, value, b->unit, peer,
           value / peer, b->peer);
    fflush(stdout);
    pl_json_begin(json, b->name, '{');
    pl_json_real(json, "value", value);
    pl_json_text(json, "unit", b->unit);
    pl_json_text(json, "peer", isnan(peer) ? NULL : b->peer);
    pl_json_real(json, "peer_value", peer);
    pl_json_real(json, "ratio", value / peer);
    pl_json_end(json, '}');
}

/* Mean errors against published measurements, with a table of their own. */
static void report_accuracy(const char *folder, struct pl_json *json)
{
    struct pl_accuracy rows[PL_N_ACCURACY];
    struct pl_depth *depths;
    int n;
    pl_cmd_register_families();
    die(pl_accuracy_measure(folder, rows, &depths, &n));
    printf("\naccuracy: predicted against published measurements\n");
    pl_accuracy_print(rows, "", stdout);
    for (int i = 0; i < PL_N_ACCURACY; i++) {
        pl_json_begin(json, rows[i].name, '{');
        pl_json_real(json, "value", rows[i].value);
        pl_json_text(json, "unit", "%");
        pl_json_text(json, "peer", rows[i].peer);
        pl_json_real(json, "peer_value", rows[i].peer_value);
        pl_json_real(json, "ratio", rows[i].value / rows[i].peer_value);
        pl_json_real(json, "target", rows[i].target);
        pl_json_end(json, '}');
    }
    for (int i = 0; i < n; i++) free(depths[i].note);
    free(depths);
}

int main(int argc, char **argv)
{
    if (argc != 5) {
        fprintf(stderr, "usage: bench HEAPQ.py SIMGRID MEASURED OUT.json\n");
        return 2;
    }
    pl_memory_keep();
    heapq_script = argv[1];
    simgrid_program = argv[2];
    FILE *out = fopen(argv[4], "w");
    if (!out) {
        perror(argv[4]);
        return 1;
    }
    struct pl_json json;
    pl_json_open(&json, out);
    pl_json_begin(&json, NULL, '{');
    printf("%-27s %11s %-9s %11s %7s  %s\n", "benchmark", "value", "unit", "peer",
           "ratio", "peer is");
    for (size_t i = 0; i < sizeof benches / sizeof *benches; i++)
        report(&benches[i], &json);
    report_accuracy(argv[3], &json);
    pl_json_end(&json, '}');
    pl_json_close(&json);
    return fclose(out) ? 1 : 0;
}
