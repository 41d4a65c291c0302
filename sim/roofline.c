/* Products: tiles of 256 x 128 (or smaller where that is faster) run in whole waves
 * over the SMs, each tile costs K + 256 steps (prologue and epilogue), at gemm_fraction
 * of the peak; never faster than their operands move; 4 us each to start. Fused causal
 * attention skips the masked half and reaches .8 of what products do (Dao 2307.08691:
 * .63-.73 of an A100's peak against .8-.9). Other work: traffic over the memory
 * bandwidth. Exchanges stand in line with the products, as in Megatron without
 * tp-comm-overlap; the weight gradient's all-gathers hide behind the input gradient.
 * A weight gradient that its product does not add to the fp32 sum itself costs a pass:
 * read 2 and 4, write 4 bytes a parameter (grad_16: 2, 2 and 2) (Megatron-LM before its
 * gradient-accumulation-fusion of December 2021).
 * Wave quantisation as in NVIDIA, "Matrix multiplication background". */
#include "sim/roofline.h"

#include <math.h>

#include "base/err.h"

static const double gemm_start = 4e-6, prologue = 256, fused_attention = .8;

double pl_roofline_gemm(const struct pl_gpu *gpu, double M, double N, double K,
                        double count)
{
    static const struct {
        double m, n, speed; /* smaller tiles read their operands more often */
    } tiles[] = {{256, 128, 1}, {128, 128, .97}, {128, 64, .85}};
    double peak = gpu->bf16 * gpu->gemm_fraction, best = INFINITY;
    for (size_t i = 0; i < sizeof tiles / sizeof *tiles; i++) {
        double n = count * ceil(M / tiles[i].m) * ceil(N / tiles[i].n);
        if (gpu->sms > 0) n = ceil(n / gpu->sms) * gpu->sms;
        double flops = 2 * n * tiles[i].m * tiles[i].n * (K + prologue);
        best = fmin(best, flops / (peak * tiles[i].speed));
    }
    double bytes = 2 * count * (M * K + K * N + M * N);
    return fmax(best, bytes / (gpu->memory_bandwidth * gpu->memory_fraction)) +
           gemm_start;
}

/* Products of all blocks of attention with fused scores: flops halved by the mask. */
static double fused(const struct pl_gpu *gpu, double flops)
{
    return flops / 2 / (gpu->bf16 * gpu->gemm_fraction * fused_attention) + gemm_start;
}

static double traffic(const struct pl_gpu *gpu, double bytes)
{
    return bytes / (gpu->memory_bandwidth * gpu->memory_fraction);
}

/* Seconds of products by phase. */
struct products {
    double forward, input, weight, attention; /* attention: forward, inside forward */
};

static struct products time_products(const struct pl_roofline *r,
                                     const struct pl_work *w)
{
    const struct pl_gpu *gpu = &r->cluster->gpu;
    struct products t = {0, 0, 0, 0};
    for (int i = 0; i < w->n_gemms; i++) {
        const struct pl_gemm *g = &w->gemm[i];
        if (g->attention && r->parallel->flash) continue;
        double forward = pl_roofline_gemm(gpu, g->M, g->N, g->K, g->count);
        double input = pl_roofline_gemm(gpu, g->M, g->K, g->N, g->count);
        double weight = pl_roofline_gemm(gpu, g->K, g->N, g->M, g->count);
        t.forward += forward;
        if (g->attention) { /* both operands are inputs */
            t.attention += forward;
            t.input += input + weight;
        } else {
            t.input += input;
            t.weight += weight;
        }
    }
    if (r->parallel->flash && w->attention_flops > 0) {
        double projections = 0;
        for (int i = 0; i < w->n_gemms; i++)
            if (!w->gemm[i].attention)
                projections +=
                    2 * w->gemm[i].M * w->gemm[i].N * w->gemm[i].K * w->gemm[i].count;
        t.attention = fused(gpu, w->attention_flops);
        t.forward += t.attention;
        t.input += fused(gpu, w->input_flops - projections);
    }
    return t;
}

static int time_exchanges(const struct pl_roofline *r, const struct pl_work *w,
                          double seconds[4])
{
    static const enum pl_axis axes[] = {PL_AXIS_TP, PL_AXIS_EP, PL_AXIS_CP};
    static const enum pl_collective kinds[] = {PL_ALL_REDUCE, PL_ALL_GATHER,
                                               PL_REDUCE_SCATTER, PL_ALL_TO_ALL};
    for (int i = 0; i < w->n_comms; i++) {
        const struct pl_comm *c = &w->comm[i];
        struct pl_group group = pl_place_group(r->place, axes[c->group], r->rank, NULL);
        double t = 0;
        if (c->kind == PL_COMM_SEND) {
            struct pl_route route;
            pl_cluster_route(r->cluster, group.first, group.first + group.stride,
                             &route);
            t = pl_seconds(route.latency) + c->bytes / route.bandwidth;
        } else {
            struct pl_collective_cost cost;
            int rc = pl_collective_time(r->cluster, kinds[c->kind], PL_ALGORITHM_AUTO,
                                        &group, c->bytes, &cost);
            if (rc) return rc;
            t = cost.seconds;
        }
        seconds[c->phase] += c->count * t;
    }
    return PL_OK;
}

int pl_roofline_block(const struct pl_roofline *r, enum pl_block block,
                      struct pl_block_time *out)
{
    struct pl_work w;
    double exchange[4] = {0};
    int rc = pl_work_block(r->model, r->parallel, r->batch, block, "sgd", &w);
    if (!rc) rc = time_exchanges(r, &w, exchange);
    if (rc) return rc;
    const struct pl_gpu *gpu = &r->cluster->gpu;
    struct products t = time_products(r, &w);
    out->forward = t.forward + traffic(gpu, w.forward_traffic) + exchange[PL_PHASE_F];
    out->backward = t.input + traffic(gpu, w.backward_traffic) + exchange[PL_PHASE_B];
    out->weight = t.weight;
    if (!r->parallel->fuse_gradients)
        out->weight += traffic(gpu, (r->parallel->grad_16 ? 6 : 10) * w.params);
    /* again: everything, or the scores; what a block does not repeat has no flops */
    double again = 0;
    if (w.recompute_flops > 0)
        again = r->parallel->recompute == PL_RECOMPUTE_FULL ? t.forward : t.attention;
    out->exchange = exchange[PL_PHASE_F] + exchange[PL_PHASE_B];
    out->again = again + traffic(gpu, w.recompute_traffic) + exchange[PL_PHASE_R];
    out->backward += out->again;
    return PL_OK;
}
