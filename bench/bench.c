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

static const struct bench benches[] = {
    {"sim_memory_bytes_per_op", "bytes/op", "bound: 40 rows, 60 messages", sim_memory},
    {"sim_event_p64_m512", "events/s", "python3 heapq", sim_event},
    {"sim_event_p64_m512_simgrid", "events/s", "SimGrid", sim_event_simgrid},
    {"sim_static_p64_m512", "ops/s", "our event path, ops/s", sim_static},
    {"sim_static_once_p64_m512", "ops/s", "our event path, ops/s", sim_static_once},
    {"peak_fma_fp32", "GFLOP/s", "none: the machine's limit", peak_fma},
    {"peak_triad", "GB/s", "none: the machine's limit", peak_triad},
    {"gemm_2048x192x64", "GFLOP/s", "OpenBLAS, one thread", gemm},
    {"train_demo_fp32", "tokens/s", "PyTorch, tuned", train_demo},
    {"train_1m_fp32", "tokens/s", "PyTorch, tuned", train_1m},
    {"train_10m_fp32", "tokens/s", "PyTorch, tuned", train_10m},
    {"train_135m_fp32", "tokens/s", "PyTorch, tuned", train_135m},
    {"train_1m_bf16", "tokens/s", "PyTorch autocast, tuned", train_1m_bf16},
    {"train_10m_bf16", "tokens/s", "PyTorch autocast, tuned", train_10m_bf16},
    {"train_135m_bf16", "tokens/s", "PyTorch autocast, tuned", train_135m_bf16},
    {"train_gpt2_fp32", "tokens/s", "llm.c train_gpt2 ($LLMC_TRAIN)", train_gpt2},
    {"delay_overhead_tau1", "ms/update", "no delay", overhead_tau1},
    {"delay_overhead_feedback", "ms/update", "no delay", overhead_feedback},
    {"delay_overhead_stash_p8", "ms/update", "no delay", overhead_stash},
    {"muon_step_576", "ms", "its products, symmetric by half", muon_step},
    {"muon_step_320", "ms", "its products, symmetric by half", muon_step_medium},
    {"muon_step_128", "ms", "its products, symmetric by half", muon_step_small},
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

/* By a part of its name; all when no name is given. */
static bool wanted(const char *name, char **names)
{
    bool found = !*names;
    for (; *names; names++) found |= strstr(name, *names) != NULL;
    return found;
}

int main(int argc, char **argv)
{
    if (argc < 6) {
        fprintf(stderr, "usage: bench HEAPQ.py SIMGRID TORCH.py MEASURED OUT.json"
                        " [NAME...]\n");
        return 2;
    }
    pl_memory_keep();
    heapq_script = argv[1];
    simgrid_program = argv[2];
    torch_script = argv[3];
    FILE *out = fopen(argv[5], "w");
    if (!out) {
        perror(argv[5]);
        return 1;
    }
    struct pl_json json;
    pl_json_open(&json, out);
    pl_json_begin(&json, NULL, '{');
    printf("%-27s %11s %-9s %11s %7s  %s\n", "benchmark", "value", "unit", "peer",
           "ratio", "peer is");
    for (size_t i = 0; i < sizeof benches / sizeof *benches; i++)
        if (wanted(benches[i].name, argv + 6)) report(&benches[i], &json);
    if (wanted("accuracy", argv + 6)) report_accuracy(argv[4], &json);
    pl_json_end(&json, '}');
    pl_json_close(&json);
    return fclose(out) ? 1 : 0;
}
