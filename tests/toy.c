#define _DEFAULT_SOURCE
#include "toy.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/rng.h"

struct toy *toy_of(const struct pl_problem *p)
{
    return p->state;
}

static int init(struct pl_problem *p, uint64_t seed, float *const *weights)
{
    for (int s = 0; s < p->n_stages; s++)
        for (int i = 0; i < toy_of(p)->width; i++)
            weights[s][i] = (float)(1 + 0.1 * pl_rng_normal(seed, PL_RNG_INIT,
                                                            (uint64_t)s, (uint32_t)i));
    return 0;
}

static void evaluate(struct pl_problem *p, const struct pl_batch *b,
                     const float *const *w, double scale, float *const *grads,
                     double *loss)
{
    const struct toy *toy = toy_of(p);
    *loss = 0;
    for (int s = 0; s < p->n_stages; s++)
        for (int i = 0; i < toy->width; i++) {
            double x = w[s][i], g = toy->q * x * x * x;
            *loss += toy->q / 4 * x * x * x * x;
            for (int k = 0; k < b->B; k++) {
                double z =
                    toy->noise == 0
                        ? 0
                        : toy->noise * pl_rng_normal(b->seed, PL_RNG_TEST,
                                                     (uint64_t)(b->index + k),
                                                     (uint32_t)(s * toy->width + i));
                *loss += toy->h / 2 * (x - z) * (x - z) / b->B;
                g += toy->h * (x - z) / b->B;
            }
            if (grads) grads[s][i] += (float)(scale * g);
        }
}

static int gradient(struct pl_problem *p, const struct pl_batch *batch,
                    const float *const *wf, const float *const *wb, double scale,
                    float *const *grads, double *loss)
{
    struct toy *toy = toy_of(p);
    const size_t row = (size_t)(p->n_stages * toy->width);
    const int64_t k = toy->n_reads++;
    toy->reads = pl_grow(toy->reads, (size_t)toy->n_reads * row, sizeof(float));
    toy->first = pl_grow(toy->first, (size_t)toy->n_reads, sizeof *toy->first);
    toy->B = pl_grow(toy->B, (size_t)toy->n_reads, sizeof *toy->B);
    toy->backs = pl_grow(toy->backs, (size_t)toy->n_reads * row, sizeof(float));
    for (int s = 0; s < p->n_stages; s++) {
        memcpy(toy->backs + (size_t)k * row + (size_t)(s * toy->width), wb[s],
               sizeof(float) * (size_t)toy->width);
        memcpy(toy->reads + (size_t)k * row + (size_t)(s * toy->width), wf[s],
               sizeof(float) * (size_t)toy->width);
    }
    toy->first[k] = batch->index;
    toy->B[k] = batch->B;
    if (toy->delay_us) usleep((useconds_t)toy->delay_us);
    evaluate(p, batch, wf, scale, grads, loss);
    if (toy->nan_from >= 0 && k >= toy->nan_from) *loss = NAN;
    if (toy->inf_from >= 0 && k >= toy->inf_from) grads[0][0] = INFINITY;
    return 0;
}

static int loss_of(struct pl_problem *p, const struct pl_batch *batch,
                   const float *const *weights, double *loss)
{
    struct toy *toy = toy_of(p);
    for (int s = 0; s < p->n_stages; s++)
        memcpy(toy->last + s * toy->width, weights[s],
               sizeof(float) * (size_t)toy->width);
    evaluate(p, batch, weights, 0, NULL, loss);
    return 0;
}

static size_t bytes(const struct pl_problem *p)
{
    return sizeof(float) * (size_t)(p->n_stages * toy_of(p)->width);
}

static const struct pl_problem_type toy_type = {.name = "toy",
                                                .summary = "test",
                                                .source = "test",
                                                .init = init,
                                                .gradient = gradient,
                                                .loss = loss_of,
                                                .bytes = bytes};

struct pl_problem *toy_new(const struct pl_device *dev, int stages, int rows, int cols,
                           enum pl_param_kind kind, double h, double noise, double q)
{
    struct pl_problem *p = PL_NEW(1, struct pl_problem);
    struct toy *toy = PL_NEW(1, struct toy);
    *toy = (struct toy){.h = h,
                        .noise = noise,
                        .q = q,
                        .width = rows * cols,
                        .nan_from = -1,
                        .inf_from = -1};
    toy->last = PL_NEW(stages * rows * cols, float);
    *p = (struct pl_problem){.type = &toy_type,
                             .device = dev,
                             .n_stages = stages,
                             .n_params = stages,
                             .params = PL_NEW(stages, struct pl_param),
                             .first_param = PL_NEW(stages + 1, int),
                             .stage_floats = PL_NEW(stages, size_t),
                             .state = toy};
    for (int s = 0; s < stages; s++) {
        p->params[s] =
            (struct pl_param){.stage = s, .rows = rows, .cols = cols, .kind = kind};
        snprintf(p->params[s].name, sizeof p->params[s].name, "x%d", s);
        p->first_param[s + 1] = s + 1;
        p->stage_floats[s] = (size_t)(rows * cols);
    }
    return p;
}

void toy_free(struct pl_problem *p)
{
    struct toy *toy = toy_of(p);
    free(toy->reads);
    free(toy->backs);
    free(toy->first);
    free(toy->B);
    free(toy->last);
    free(toy);
    free(p->params);
    free(p->first_param);
    free(p->stage_floats);
    free(p);
}

struct pl_run_spec toy_spec(struct pl_problem *p, const struct pl_versions *v,
                            const struct pl_segment *segment)
{
    return (struct pl_run_spec){.device = p->device,
                                .problem = p,
                                .versions = v,
                                .fidelity = PL_FIDELITY_STASH,
                                .batch = 4 * v->m,
                                .T = 1,
                                .seed = 7,
                                .optim = {.type = pl_optim_find("sgd"), .lr = 0.05},
                                .rate = {.kind = PL_RATE_CONSTANT, .total = v->updates},
                                .n_segments = 1,
                                .segments = segment,
                                .eval_sequences = 1};
}

struct pl_segment toy_segment(const char *corrector, double c,
                              enum pl_corrector_start start, int64_t updates)
{
    return (struct pl_segment){updates, pl_corrector_make(corrector, c, start)};
}
