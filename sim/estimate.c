/* Sums of blocks (roofline.c) over the layers of each chunk.
 *   transfer   latency + bytes / bandwidth of the slowest of a stage's ranks, which all
 * send at once (pl_place_route); with scatter-gather plus the all-gather inside the tp
 * group U          rule (roofline_update.c) + exposed part of the gradient exchange:
 *              all-reduce of fp32 gradients over dp x cp (experts: over their own
 *              copies), or reduce-scatter and the all-gather of bf16 weights (zero);
 *              overlapped, all but one layer's share hides behind the last backward and
 *              the next forward, as far as those last */
#include "sim/estimate.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/mem.h"
#include "sim/roofline.h"

struct builder {
    const struct pl_config *config;
    const struct pl_layout *layout;
    struct pl_place place;
    struct pl_block_time block[PL_N_BLOCKS];
    struct pl_update_time update[PL_N_BLOCKS];
    const char *optimizer; /* whose step and state */
    struct pl_estimate out;
};

static struct pl_roofline roofline_of(const struct builder *b)
{
    return (struct pl_roofline){
        .model = &b->out.model,
        .parallel = &b->out.parallel,
        .batch = &b->out.batch,
        .cluster = &b->out.cluster,
        .place = &b->place,
        .clip = pl_config_real(b->config, "clip.norm") > 0,
    };
}

static int read_parts(struct builder *b)
{
    struct pl_estimate *e = &b->out;
    int rc = pl_model_read(b->config, &e->model);
    if (!rc) rc = pl_parallel_read(b->config, &e->model, &e->parallel, &e->batch);
    if (!rc) rc = pl_cluster_read(b->config, &e->cluster);
    if (rc) return rc;
    const struct pl_parallel *p = &e->parallel;
    e->gpus = pl_parallel_gpus(p, b->layout->P);
    if (e->gpus > e->cluster.n_gpus) {
        const struct pl_level *node = &e->cluster.level[e->cluster.n_levels - 1];
        return pl_fail(
            PL_ECONFIG,
            "P = %d stages of tp %d x cp %d x dp %d need %lld GPUs, cluster %s "
            "has %d: set cluster.levels, such as 'node:%lld gpu:%d'",
            b->layout->P, p->tp, p->cp, p->dp, (long long)e->gpus, e->cluster.name,
            e->cluster.n_gpus, (long long)((e->gpus + node->count - 1) / node->count),
            node->count);
    }
    if (e->cluster.gpu.bf16 <= 0 || e->cluster.gpu.memory_bandwidth <= 0)
        return pl_fail(PL_ECONFIG,
                       "cost.type roofline needs a GPU: set cluster.preset, or "
                       "cluster.gpu.bf16 and cluster.gpu.memory_bandwidth");
    return pl_place_init(p->tp, p->cp, p->ep, p->dp, b->layout->P,
                         pl_config_text(b->config, "parallel.order"), e->cluster.n_gpus,
                         &b->place);
}

/* Blocks that the model has. */
static bool has_block(const struct pl_model *m, enum pl_block block)
{
    if (block == PL_BLOCK_MOE || block == PL_BLOCK_DENSE)
        for (int i = 0; i < m->layers; i++)
            if (pl_model_is_moe(m, i) == (block == PL_BLOCK_MOE)) return true;
    return block == PL_BLOCK_EMBEDDING || block == PL_BLOCK_HEAD ||
           block == PL_BLOCK_MTP;
}

static int time_blocks(struct builder *b)
{
    struct pl_roofline r = roofline_of(b);
    int rc = PL_OK;
    for (int k = 0; k < PL_N_BLOCKS && !rc; k++) {
        if (!has_block(&b->out.model, (enum pl_block)k)) continue;
        rc = pl_roofline_block(&r, (enum pl_block)k, &b->block[k]);
        if (!rc)
            rc = pl_roofline_update(&r, (enum pl_block)k, b->optimizer, &b->update[k]);
    }
    return rc;
}

static int cut_layers(struct builder *b)
{
    const struct pl_model *m = &b->out.model;
    double *cost = PL_NEW(m->layers + 2, double);
    for (int i = 0; i < m->layers + 2; i++) {
        enum pl_block k = i == 0                      ? PL_BLOCK_EMBEDDING
                          : i == m->layers + 1        ? PL_BLOCK_HEAD
                          : pl_model_is_moe(m, i - 1) ? PL_BLOCK_MOE
                                                      : PL_BLOCK_DENSE;
        cost[i] = b->block[k].forward + b->block[k].backward + b->block[k].weight;
    }
    int rc = pl_split_make(pl_config_text(b->config, "model.split"), m, b->out.chunks,
                           cost, b->out.chunk);
    free(cost);
    return rc;
}

/* How often a chunk has each block; mtp: modules of the whole model, which pass the
 * head too. */
static void count_blocks(const struct pl_model *m, const struct pl_chunk *chunk,
                         int mtp, double count[PL_N_BLOCKS])
{
    for (int k = 0; k < PL_N_BLOCKS; k++) count[k] = 0;
    for (int i = 0; i < chunk->n; i++)
        count[pl_model_is_moe(m, chunk->first + i) ? PL_BLOCK_MOE : PL_BLOCK_DENSE]++;
    count[PL_BLOCK_EMBEDDING] = chunk->embedding;
    count[PL_BLOCK_MTP] = chunk->mtp;
    count[PL_BLOCK_HEAD] = chunk->head ? 1 + mtp : 0;
}

static int exchange(const struct builder *b, enum pl_axis axis, enum pl_collective op,
                    double bytes, double *seconds)
{
    int *ranks = PL_NEW(b->place.size[axis], int);
    struct pl_group group = pl_place_group(&b->place, axis, 0, ranks);
    struct pl_collective_cost cost = {.seconds = 0};
    int rc = PL_OK;
    if (group.size > 1 && bytes > 0)
        rc = pl_collective_time(&b->out.cluster, op, PL_ALGORITHM_AUTO, &group, bytes,
                                &cost);
    *seconds += cost.seconds;
    free(ranks);
    return rc;
}

/* The part of t that does not hide behind `work` of n layers, the first of which must
 * end before anything can go. */
static double exposed(double t, double work, int n)
{
    return fmax(t - work * (n > 1 ? (double)(n - 1) / n : 0), n > 0 ? t / n : t);
}

/* Exchange of a chunk's gradients, and of its weights when the state is divided. */
static int time_gradients(struct builder *b, int c, const struct pl_work *w)
{
    struct pl_estimate *e = &b->out;
    bool overlap = pl_config_bool(b->config, "parallel.overlap");
    double width = e->parallel.grad_16 ? 2 : 4; /* bytes of a gradient */
    double dense = w->params - w->expert_params, reduce = 0, gather = 0;
    enum pl_collective op = e->parallel.zero ? PL_REDUCE_SCATTER : PL_ALL_REDUCE;
    int rc = exchange(b, PL_AXIS_DP_CP, op, width * dense, &reduce);
    if (!rc) rc = exchange(b, PL_AXIS_EDP, op, width * w->expert_params, &reduce);
    if (!rc && e->parallel.zero) {
        rc = exchange(b, PL_AXIS_DP_CP, PL_ALL_GATHER, 2 * dense, &gather);
        if (!rc)
            rc = exchange(b, PL_AXIS_EDP, PL_ALL_GATHER, 2 * w->expert_params, &gather);
    }
    int n = e->chunk[c].n;
    if (overlap) {
        reduce = exposed(reduce, e->backward[c] + e->weight[c], n);
        gather = exposed(gather, e->forward[c], n);
    }
    e->update[c] += reduce + gather;
    return rc;
}

/* Update-sized fp32 buffers that a corrector keeps (semantics: error feedback adds one;
 * prediction keeps the last update). */
static double corrector_words(const struct pl_config *config)
{
    return strcmp(pl_config_text(config, "corrector.name"), "none") ? 1 : 0;
}

/* Parameters of a block on this rank whose state it updates. */
static double updated(const struct pl_parallel *p, const struct pl_work *w)
{
    double dense = p->zero ? (double)p->cp * p->dp : 1;
    double expert = p->zero ? (double)p->cp * p->dp / p->ep : 1;
    return (w->params - w->expert_params) / dense + w->expert_params / expert;
}

/* A tied head beside its embedding has no table of its own: what its work says beyond
 * the chunk's is not updated twice. */
static int time_update(struct builder *b, int c, const double count[PL_N_BLOCKS],
                       const struct pl_work *chunk)
{
    struct pl_estimate *e = &b->out;
    double rest = updated(&e->parallel, chunk), other = 0;
    for (int k = 0; k < PL_N_BLOCKS; k++) {
        struct pl_work w;
        bool hidden = k != PL_BLOCK_EMBEDDING && k != PL_BLOCK_HEAD;
        double n = k == PL_BLOCK_HEAD ? fmin(count[k], 1) : count[k];
        if (n == 0) continue;
        e->update[c] += n * b->update[k].matrices;
        if (!hidden) {
            other = b->update[k].per_param;
            continue;
        }
        int rc = pl_work_block(&e->model, &e->parallel, &e->batch, (enum pl_block)k,
                               "sgd", &w);
        if (rc) return rc;
        e->update[c] += n * updated(&e->parallel, &w) * b->update[k].per_param;
        rest -= n * updated(&e->parallel, &w);
    }
    e->update[c] += fmax(rest, 0) * other;
    return PL_OK;
}

static int fill_chunk(struct builder *b, int c, int mtp)
{
    struct pl_estimate *e = &b->out;
    double count[PL_N_BLOCKS];
    struct pl_work w;
    int rc = pl_work_chunk(&e->model, &e->parallel, &e->batch, b->optimizer,
                           &e->chunk[c], mtp, &w);
    if (rc) return rc;
    count_blocks(&e->model, &e->chunk[c], mtp, count);
    rc = time_update(b, c, count, &w);
    if (rc) return rc;
    for (int k = 0; k < PL_N_BLOCKS; k++) {
        e->forward[c] += count[k] * b->block[k].forward;
        e->backward[c] += count[k] * b->block[k].backward;
        e->weight[c] += count[k] * b->block[k].weight;
        e->exchange[c] += count[k] * b->block[k].exchange;
        e->again[c] += count[k] * b->block[k].again;
    }
    e->rule[c] = e->update[c];
    double working = e->parallel.recompute == PL_RECOMPUTE_NONE ? 0 : w.live_bytes;
    e->bytes[c] = (struct pl_chunk_bytes){
        .weight = (uint64_t)w.weight_bytes,
        .gradient = (uint64_t)w.gradient_bytes,
        .optimizer = (uint64_t)w.optimizer_bytes,
        .corrector = (uint64_t)(4 * w.params * corrector_words(b->config)),
        .activation = (uint64_t)w.act_bytes,
        .kept = (uint64_t)w.kept_bytes,
        .working = (uint64_t)working,
    };
    return time_gradients(b, c, &w);
}

static int time_hop(const struct builder *b, int from, int to, struct pl_route *route,
                    double *seconds)
{
    const struct pl_estimate *e = &b->out;
    const struct pl_parallel *p = &e->parallel;
    *seconds = 0;
    if (from == to) return PL_OK;
    int rc = pl_place_route(&e->cluster, &b->place, from, to, route);
    if (rc) return rc;
    *seconds = pl_seconds(route->latency) + e->boundary_bytes / route->bandwidth;
    if (p->sp || !p->scatter_gather) return PL_OK;
    return exchange(b, PL_AXIS_TP, PL_ALL_GATHER, e->boundary_bytes * p->tp, seconds);
}

/* A tied table on two stages: its gradients are summed over both before U. */
static int time_tied(struct builder *b)
{
    struct pl_estimate *e = &b->out;
    int first = b->layout->device[0], last = b->layout->device[e->chunks - 1];
    if (!e->model.tied || first == last) return PL_OK;
    double bytes = 4.0 * e->model.vocab * e->model.hidden / e->parallel.tp;
    int ranks[2] = {pl_place_rank(&b->place, 0, 0, 0, first),
                    pl_place_rank(&b->place, 0, 0, 0, last)};
    struct pl_group group = {.size = 2, .ranks = ranks, .siblings = true};
    struct pl_collective_cost cost;
    int rc = pl_collective_time(&e->cluster, PL_ALL_REDUCE, PL_ALGORITHM_AUTO, &group,
                                bytes, &cost);
    if (rc) return rc;
    e->update[0] += cost.seconds;
    e->update[e->chunks - 1] += cost.seconds;
    return PL_OK;
}

static void prepare(struct builder *b)
{
    struct pl_estimate *e = &b->out;
    int C = e->chunks = b->layout->C, P = e->devices = b->layout->P;
    e->chunk = PL_NEW(C, struct pl_chunk);
    e->bytes = PL_NEW(C, struct pl_chunk_bytes);
    e->forward = PL_NEW(C, double);
    e->backward = PL_NEW(C, double);
    e->weight = PL_NEW(C, double);
    e->update = PL_NEW(C, double);
    e->exchange = PL_NEW(C, double);
    e->again = PL_NEW(C, double);
    e->rule = PL_NEW(C, double);
    e->next = PL_NEW(P, double);
    e->prev = PL_NEW(P, double);
    e->hop = PL_NEW(2 * P, struct pl_route);
}

int pl_estimate_new(const struct pl_config *config, const struct pl_layout *layout,
                    struct pl_estimate *out)
{
    struct builder b = {.config = config, .layout = layout};
    b.optimizer = pl_config_text(config, "cost.optimizer");
    if (!strcmp(b.optimizer, "auto"))
        b.optimizer = pl_config_text(config, "optimizer.name");
    struct pl_estimate *e = &b.out;
    int rc = read_parts(&b), mtp = 0, P = layout->P;
    prepare(&b);
    if (!rc) rc = time_blocks(&b);
    if (!rc) rc = cut_layers(&b);
    for (int c = 0; c < e->chunks && !rc; c++) mtp += e->chunk[c].mtp;
    for (int c = 0; c < e->chunks && !rc; c++) rc = fill_chunk(&b, c, mtp);
    if (!rc) rc = time_tied(&b);
    if (!rc) e->boundary_bytes = pl_work_boundary(&e->model, &e->parallel, &e->batch);
    for (int d = 0; d < P && !rc; d++) {
        rc = time_hop(&b, d, (d + 1) % P, &e->hop[d], &e->next[d]);
        if (!rc) rc = time_hop(&b, d, (d + P - 1) % P, &e->hop[P + d], &e->prev[d]);
    }
    if (rc)
        pl_estimate_free(e);
    else
        *out = *e;
    return rc;
}

struct pl_throughput pl_estimate_throughput(const struct pl_estimate *e, int m,
                                            double step_s)
{
    double tokens =
        (double)m * (double)e->batch.b * (double)e->batch.s * e->parallel.dp;
    double per_gpu = tokens / step_s / (double)e->gpus, peak = e->cluster.gpu.bf16;
    struct pl_model_count count = pl_model_count(&e->model);
    return (struct pl_throughput){
        per_gpu, per_gpu * pl_model_flops(&e->model, (int)e->batch.s) / peak,
        per_gpu * 6 * (double)count.n_matmul / peak};
}

void pl_estimate_free(struct pl_estimate *e)
{
    if (!e) return;
    pl_cluster_free(&e->cluster);
    free(e->chunk);
    free(e->bytes);
    free(e->forward);
    free(e->backward);
    free(e->weight);
    free(e->update);
    free(e->exchange);
    free(e->again);
    free(e->rule);
    free(e->next);
    free(e->prev);
    free(e->hop);
    *e = (struct pl_estimate){.chunks = 0};
}
