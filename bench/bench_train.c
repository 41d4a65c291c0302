/* Training: tokens a second of whole updates (forward, backward, clipping, AdamW,
 * store) with every core, at three sizes with PyTorch on the same cores as peer, and
 * what delay adds to an update. The median update of a run counts, so a burst of
 * others' work on the machine costs a few updates and not the figure. Tokens are
 * random. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/err.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/pool.h"
#include "base/rng.h"
#include "base/stats.h"
#include "bench/bench.h"
#include "train/run.h"

const char *torch_script;

enum { WARM = 2, MOST = 64 }; /* updates left out, updates timed at most */

static const struct size {
    const char *name;
    struct pl_model model;
    int T, B, updates;
} sizes[] = {
    {"demo",
     {.layers = 8,
      .hidden = 64,
      .heads = 4,
      .kv_heads = 4,
      .head_dim = 16,
      .ffn = 176,
      .vocab = 256,
      .rope_theta = 1e4,
      .norm_eps = 1e-5},
     128,
     16,
     40},
    {"1m",
     {.layers = 4,
      .hidden = 128,
      .heads = 4,
      .kv_heads = 4,
      .head_dim = 32,
      .ffn = 352,
      .vocab = 256,
      .rope_theta = 1e4,
      .norm_eps = 1e-5,
      .tied = true},
     256,
     16,
     20},
    {"10m",
     {.layers = 8,
      .hidden = 320,
      .heads = 5,
      .kv_heads = 5,
      .head_dim = 64,
      .ffn = 864,
      .vocab = 8192,
      .rope_theta = 1e4,
      .norm_eps = 1e-5,
      .tied = true},
     256,
     8,
     10},
    {"135m",
     {.layers = 30,
      .hidden = 576,
      .heads = 9,
      .kv_heads = 3,
      .head_dim = 64,
      .ffn = 1536,
      .vocab = 49152,
      .rope_theta = 1e4,
      .norm_eps = 1e-5,
      .tied = true},
     512,
     2,
     5},
    {"gpt2", /* 124M, as llm.c's program runs it by default */
     {.layers = 12,
      .hidden = 768,
      .heads = 12,
      .kv_heads = 12,
      .head_dim = 64,
      .ffn = 3072,
      .vocab = 50257,
      .positions = 1024,
      .norm = PL_NORM_LAYER,
      .mlp = PL_MLP_GELU,
      .bias = PL_BIAS_ALL,
      .rope_theta = 1e4,
      .norm_eps = 1e-5,
      .tied = true},
     64,
     4,
     5},
    {"delay",
     {.layers = 8,
      .hidden = 256,
      .heads = 4,
      .kv_heads = 4,
      .head_dim = 64,
      .ffn = 704,
      .vocab = 256,
      .rope_theta = 1e4,
      .norm_eps = 1e-5},
     256,
     8,
     6},
};

static const struct size *size_of(const char *name)
{
    size_t i = 0;
    while (strcmp(sizes[i].name, name)) i++;
    return &sizes[i];
}

/* Random tokens below `vocab` as an llm.c shard. */
static void write_tokens(const char *path, int vocab, int n)
{
    FILE *out = fopen(path, "wb");
    int32_t header[256] = {20240520, 1, n};
    if (!out || fwrite(header, sizeof header, 1, out) != 1) goto failed;
    for (int i = 0; i < n; i++) {
        double u = pl_rng_uniform(1, PL_RNG_TEST, 0, (uint32_t)i);
        uint16_t id = (uint16_t)(u * vocab);
        if (fwrite(&id, sizeof id, 1, out) != 1) goto failed;
    }
    if (!fclose(out)) return;
failed:
    perror(path);
    exit(1);
}

static struct pl_data *open_tokens(const struct size *size)
{
    char path[] = "/tmp/pipelag-bench-XXXXXX";
    struct pl_data *data;
    int fd = mkstemp(path);
    if (fd < 0) die(-1);
    close(fd);
    write_tokens(path, size->model.vocab, 1 << 16);
    die(pl_data_open("tokens", path, NULL, 0.05, size->model.vocab, size->T, &data));
    unlink(path);
    return data;
}

struct laps {
    int n;
    double last, seconds[WARM + MOST];
};

/* CPU time where one thread works: others on the machine count less. */
static double now_of_run(void)
{
    return pl_pool_threads() > 1 ? pl_clock() : (double)clock() / CLOCKS_PER_SEC;
}

static void lap(void *context, const struct pl_row *row)
{
    struct laps *laps = context;
    double now = now_of_run();
    (void)row;
    laps->seconds[laps->n++] = now - laps->last;
    laps->last = now;
}

/* Median seconds of an update of P stages with the delays tau; NaN, and a line that
 * says why, where there is no such precision. */
static double update_seconds(const struct size *size, int P, const int64_t *tau,
                             const char *corrector, const char *precision)
{
    const struct pl_device *dev, *products;
    struct pl_problem *problem;
    struct pl_versions versions;
    struct pl_run_result result;
    struct laps laps = {0};
    const int updates = WARM + size->updates;
    die(pl_device_get("host", &dev));
    if (pl_device_precision(dev, precision, &products)) {
        printf("no %s: %s\n", precision, pl_error_text());
        return NAN;
    }
    struct pl_data *data = open_tokens(size);
    struct pl_segment segment = {updates,
                                 pl_corrector_make(corrector, NAN, PL_START_HOLD)};
    pl_versions_constant(P, updates, 1, tau, 1, &versions);
    die(pl_problem_net(products, &size->model, P, size->B, size->T, &problem));
    struct pl_run_spec spec = {
        .device = dev,
        .problem = problem,
        .data = data,
        .versions = &versions,
        .fidelity = PL_FIDELITY_STASH,
        .batch = size->B,
        .T = size->T,
        .seed = 1,
        .optim = {.type = pl_optim_find("adamw"),
                  .lr = 1e-3,
                  .beta1 = 0.9,
                  .beta2 = 0.95,
                  .eps = 1e-8,
                  .decay = 0.1},
        .rate = {.kind = PL_RATE_CONSTANT, .total = updates, .floor = 1},
        .clip = 1,
        .clip_scope = P > 1 ? PL_CLIP_STAGE : PL_CLIP_GLOBAL,
        .n_segments = 1,
        .segments = &segment,
        .on_row = lap,
        .context = &laps,
    };
    laps.last = now_of_run();
    die(pl_run(&spec, &result));
    pl_run_free(&result);
    pl_problem_free(problem);
    pl_versions_free(&versions);
    pl_data_free(data);
    return pl_quantile(laps.seconds + WARM, laps.n - WARM, 0.5);
}

/* Tokens a second of ours with every core. */
static double tokens(const char *name, const char *precision)
{
    const struct size *size = size_of(name);
    const int64_t none = 0;
    pl_pool_threads_set(pl_pool_cores());
    double rate = size->B * size->T / update_seconds(size, 1, &none, "none", precision);
    pl_pool_threads_set(1);
    return rate;
}

/* The number that a program prints, or NaN. */
static double ask(const char *command)
{
    double rate = NAN;
    FILE *peer = popen(command, "r");
    if (!peer || fscanf(peer, "%lf", &rate) != 1) rate = NAN;
    if (peer) pclose(peer);
    return rate;
}

double ask_torch(const char *size, const char *precision)
{
    const char *const python[] = {"python3", "/usr/bin/python3"}; /* Debian's torch */
    double rate = NAN;
    for (int i = 0; i < 2 && isnan(rate); i++) {
        char *command = pl_printf("%s '%s' %s %s %d 2>/dev/null", python[i],
                                  torch_script, size, precision, pl_pool_cores());
        rate = ask(command);
        free(command);
    }
    return rate;
}

/* Ours and PyTorch in alternation, the better of each: a burst of others' work while
 * one of them runs would decide the ratio. */
static void against_torch(const char *name, const char *precision, double *value,
                          double *peer_value)
{
    enum { ROUNDS = 3 };
    *value = *peer_value = NAN;
    for (int i = 0; i < ROUNDS; i++) {
        *value = fmax(*value, tokens(name, precision));
        if (isnan(*value)) return;
        *peer_value = fmax(*peer_value, ask_torch(name, precision));
        if (isnan(*peer_value)) return;
    }
}

void train_demo(double *value, double *peer_value)
{
    against_torch("demo", "fp32", value, peer_value);
}

void train_1m(double *value, double *peer_value)
{
    against_torch("1m", "fp32", value, peer_value);
}

void train_10m(double *value, double *peer_value)
{
    against_torch("10m", "fp32", value, peer_value);
}

void train_135m(double *value, double *peer_value)
{
    against_torch("135m", "fp32", value, peer_value);
}

void train_1m_bf16(double *value, double *peer_value)
{
    against_torch("1m", "bf16", value, peer_value);
}

void train_10m_bf16(double *value, double *peer_value)
{
    against_torch("10m", "bf16", value, peer_value);
}

void train_135m_bf16(double *value, double *peer_value)
{
    against_torch("135m", "bf16", value, peer_value);
}

/* $LLMC_TRAIN: a command that prints the tokens a second of llm.c's train_gpt2 for
 * GPT-2 124M with B = 4, T = 64. */
void train_gpt2(double *value, double *peer_value)
{
    const char *command = getenv("LLMC_TRAIN");
    *value = tokens("gpt2", "fp32");
    *peer_value = command ? ask(command) : NAN;
}

enum { P = 8 };

/* Milliseconds (of CPU) per update with delays from `first` at stage 0 to `last` at
 * P-1, the peer without delay, in alternation. One thread: the machinery's share is
 * largest. */
static void overhead(int64_t first, int64_t last, const char *corrector, double *value,
                     double *peer_value)
{
    double late[BATCHES], now[BATCHES];
    int64_t tau[P], none[P] = {0};
    for (int s = 0; s < P; s++) tau[s] = first + (last - first) * s / (P - 1);
    for (int i = 0; i < BATCHES; i++) {
        now[i] = 1e3 * update_seconds(size_of("delay"), P, none, "none", "fp32");
        late[i] = 1e3 * update_seconds(size_of("delay"), P, tau, corrector, "fp32");
    }
    *value = pl_quantile(late, BATCHES, 0.5);
    *peer_value = pl_quantile(now, BATCHES, 0.5);
}

void overhead_tau1(double *value, double *peer_value)
{
    overhead(1, 1, "none", value, peer_value);
}

void overhead_feedback(double *value, double *peer_value)
{
    overhead(1, 1, "feedback", value, peer_value);
}

void overhead_stash(double *value, double *peer_value)
{
    overhead(P - 1, 0, "none", value, peer_value);
}
