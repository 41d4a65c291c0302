/* Muon's step on the hidden matrices of one SmolLM-135M layer. The peer is the time of
 * its products at the same shapes by gemm, measured in turn with it: in each Newton-
 * Schulz iteration X X^T and A^2, which are symmetric and count half, and B X. */
#include <stdlib.h>

#include "base/log.h"
#include "base/stats.h"
#include "bench/bench.h"
#include "gpu/device.h"
#include "train/optim.h"

static const struct pl_param tensors[] = {
    {.name = "q_proj", .rows = 576, .cols = 576},
    {.name = "k_proj", .rows = 192, .cols = 576},
    {.name = "v_proj", .rows = 192, .cols = 576},
    {.name = "o_proj", .rows = 576, .cols = 576},
    {.name = "gate_proj", .rows = 1536, .cols = 576},
    {.name = "up_proj", .rows = 1536, .cols = 576},
    {.name = "down_proj", .rows = 576, .cols = 1536},
};
enum { N = sizeof tensors / sizeof *tensors, LARGEST = 1536 * 576, ITERATIONS = 5 };

struct blocks {
    const struct pl_device *dev;
    struct pl_optim muon;
    float *g, *w, *state, *u, *scratch; /* for the largest tensor */
};

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

static double step(const struct blocks *b)
{
    double begin = pl_clock();
    for (int i = 0; i < N; i++)
        die(b->muon.type->step(&b->muon, b->dev, &tensors[i], b->g, b->w, b->state,
                               b->scratch, 1, 1, b->u));
    return pl_clock() - begin;
}

static double product(const struct blocks *b, int m, int n, int k)
{
    double begin = pl_clock();
    die(b->dev->gemm(false, false, m, n, k, 1, b->g, k, b->w, n, 0, b->u, n));
    return pl_clock() - begin;
}

static double products(const struct blocks *b)
{
    double seconds = 0;
    for (int i = 0; i < N; i++) {
        const int m = tensors[i].rows, n = tensors[i].cols, r = m < n ? m : n;
        const int s = m < n ? n : m;
        for (int k = 0; k < ITERATIONS; k++)
            seconds += product(b, r, r, s) / 2 + product(b, r, r, r) / 2 +
                       (m < n ? product(b, m, n, m) : product(b, m, n, n));
    }
    return seconds;
}

void muon_step(double *value, double *peer_value)
{
    struct blocks b = {.muon = pl_optim_find("muon")->defaults};
    double own[BATCHES], gemm[BATCHES];
    size_t scratch = 0;
    b.muon.type = pl_optim_find("muon");
    die(pl_device_get("host", &b.dev));
    for (int i = 0; i < N; i++) {
        size_t floats = b.muon.type->scratch_floats(&b.muon, &tensors[i]);
        if (floats > scratch) scratch = floats;
    }
    b.g = block(b.dev, LARGEST);
    b.w = block(b.dev, LARGEST);
    b.u = block(b.dev, LARGEST);
    b.state = block(b.dev, LARGEST);
    b.scratch = block(b.dev, scratch);
    for (int i = 0; i < BATCHES; i++) {
        own[i] = 1e3 * step(&b);
        gemm[i] = 1e3 * products(&b);
    }
    *value = pl_quantile(own, BATCHES, 0.5);
    *peer_value = pl_quantile(gemm, BATCHES, 0.5);
    b.dev->release(b.g);
    b.dev->release(b.w);
    b.dev->release(b.u);
    b.dev->release(b.state);
    b.dev->release(b.scratch);
    b.dev->close();
}
