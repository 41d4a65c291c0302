/* Muon's step on the hidden matrices of a model: one layer of SmolLM-135M, two of the
 * 10M shape (width 320), and all four of the 1M shape (width 128), where matrices are
 * small. The peer is the time of its products at the same shapes by gemm, measured in
 * turn with it: in each Newton-Schulz iteration X X^T and A^2, which are symmetric and
 * count half, and B X. One thread, CPU time. */
#include <stdlib.h>
#include <time.h>

#include "base/stats.h"
#include "bench/bench.h"
#include "gpu/device.h"
#include "train/optim.h"

enum { MOST = 28, ITERATIONS = 5, ROUNDS = 25 };

struct model {
    const struct pl_device *dev;
    struct pl_optim muon;
    struct pl_param params[MOST];
    size_t state_at[MOST], floats;
    int n;
    float *g, *w, *state, *u, *scratch, *product; /* device memory */
};

static void add(struct model *m, int rows, int cols)
{
    struct pl_param *p = &m->params[m->n];
    *p = (struct pl_param){.rows = rows, .cols = cols, .offset = m->floats};
    m->state_at[m->n++] = m->floats;
    m->floats += pl_param_size(p);
}

static float *block(const struct pl_device *dev, size_t floats)
{
    float *host = calloc(floats, sizeof *host), *at;
    for (size_t i = 0; host && i < floats; i++)
        host[i] = (float)(i * 2654435761u % 1000) / 1000 - .5f;
    if (!host) abort();
    die(dev->alloc(sizeof *at * floats, (void **)&at));
    die(dev->upload(at, host, sizeof *at * floats));
    free(host);
    return at;
}

static double seconds(void)
{
    return (double)clock() / CLOCKS_PER_SEC;
}

static double step(const struct model *m)
{
    const struct pl_optim_stage s = {m->dev, m->params, m->n,       m->state_at,
                                     m->g,   m->state,  m->scratch, m->w,
                                     1,      1,         m->u};
    double begin = seconds();
    die(pl_optim_stage(&m->muon, &s));
    return seconds() - begin;
}

/* Of matrix i's values. */
static void product(const struct model *m, int i, int M, int N, int K)
{
    const size_t at = m->params[i].offset;
    die(m->dev->gemm(false, false, M, N, K, 1, m->g + at, K, m->w + at, N, 0,
                     m->product, N));
}

/* The symmetric ones are whole, in every other iteration; there are five, so the last
 * has half of their columns. */
static double products(const struct model *model)
{
    double begin = seconds();
    for (int i = 0; i < model->n; i++) {
        const int m = model->params[i].rows, n = model->params[i].cols;
        const int r = m < n ? m : n, s = m < n ? n : m;
        for (int k = 0; k < ITERATIONS; k++) {
            const int columns = k + 1 < ITERATIONS ? r : r / 2;
            if (k % 2 == 0) product(model, i, r, columns, s);
            if (k % 2 == 0) product(model, i, r, columns, r);
            product(model, i, m, n, r);
        }
    }
    return seconds() - begin;
}

/* Layers of width d with keys and values of `kv` and a gated block of f. */
static void measure(int layers, int d, int kv, int f, int rounds, double *value,
                    double *peer_value)
{
    struct model m = {.muon = pl_optim_find("muon")->defaults};
    double own[ROUNDS], gemm[ROUNDS];
    m.muon.type = pl_optim_find("muon");
    die(pl_device_get("host", &m.dev));
    for (int l = 0; l < layers; l++) {
        const int shapes[][2] = {{d, d}, {kv, d}, {kv, d}, {d, d},
                                 {f, d}, {f, d},  {d, f}};
        for (int i = 0; i < 7; i++) add(&m, shapes[i][0], shapes[i][1]);
    }
    m.g = block(m.dev, m.floats);
    m.w = block(m.dev, m.floats);
    m.u = block(m.dev, m.floats);
    m.state = block(m.dev, m.floats);
    m.product = block(m.dev, (size_t)f * (size_t)d);
    m.scratch = block(m.dev, pl_optim_stage_scratch(&m.muon, m.dev, m.params, m.n));
    for (int i = 0; i < rounds; i++) {
        own[i] = 1e3 * step(&m);
        gemm[i] = 1e3 * products(&m);
    }
    *value = pl_quantile(own, rounds, 0.5);
    *peer_value = pl_quantile(gemm, rounds, 0.5);
    float *const blocks[] = {m.g, m.w, m.u, m.state, m.product, m.scratch};
    for (int i = 0; i < 6; i++) m.dev->release(blocks[i]);
    m.dev->close();
}

void muon_step(double *value, double *peer_value)
{
    measure(1, 576, 192, 1536, BATCHES, value, peer_value);
}

void muon_step_medium(double *value, double *peer_value)
{
    measure(2, 320, 320, 864, BATCHES, value, peer_value);
}

void muon_step_small(double *value, double *peer_value)
{
    measure(4, 128, 128, 344, ROUNDS, value, peer_value);
}
