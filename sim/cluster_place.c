#include "sim/cluster_place.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/mem.h"

static const char *const axis_names[] = {"tp", "cp", "ep", "dp", "pp", NULL};

/* The five axes, each once, joined by '-'. */
static int read_order(const char *order, enum pl_axis axes[5])
{
    char *copy = pl_strdup(order), *rest = NULL;
    unsigned seen = 0;
    int n = 0, code = 0;
    for (char *word = strtok_r(copy, "-", &rest); word && !code;
         word = strtok_r(NULL, "-", &rest)) {
        int a = 0;
        while (axis_names[a] && strcmp(axis_names[a], word)) a++;
        if (!axis_names[a])
            code =
                pl_fail_unknown(PL_ECONFIG, "parallel.order", "axis", word, axis_names);
        else if (seen & 1u << a)
            code = pl_fail(PL_ECONFIG, "parallel.order '%s' has %s twice", order, word);
        else
            axes[n++] = (enum pl_axis)a;
        seen |= 1u << a;
    }
    free(copy);
    if (!code && n != 5)
        return pl_fail(PL_ECONFIG,
                       "parallel.order is '%s', expected tp, cp, ep, dp and pp joined "
                       "by '-', such as tp-cp-ep-dp-pp",
                       order);
    return code;
}

static int check(const int *size, int64_t ranks, int n_gpus)
{
    for (int a = 0; a < 5; a++)
        if (size[a] < 1)
            return pl_fail(PL_ECONFIG, "%s is %d, expected 1 or more", axis_names[a],
                           size[a]);
    if (ranks > (n_gpus ? n_gpus : PL_CLUSTER_GPUS))
        return pl_fail(PL_ECONFIG,
                       "TP %d x CP %d x DP %d x PP %d are %" PRId64
                       " ranks, the cluster "
                       "has %d GPUs",
                       size[PL_AXIS_TP], size[PL_AXIS_CP], size[PL_AXIS_DP],
                       size[PL_AXIS_PP], ranks, n_gpus ? n_gpus : PL_CLUSTER_GPUS);
    if (size[PL_AXIS_CP] * size[PL_AXIS_DP] % size[PL_AXIS_EP])
        return pl_fail(PL_ECONFIG, "EP %d does not divide CP x DP = %d",
                       size[PL_AXIS_EP], size[PL_AXIS_CP] * size[PL_AXIS_DP]);
    return 0;
}

static void number_dense(const enum pl_axis axes[5], struct pl_place *p)
{
    int stride = 1;
    for (int k = 0; k < 5; k++) {
        if (axes[k] == PL_AXIS_EP) continue;
        p->stride[axes[k]] = stride;
        stride *= p->size[axes[k]];
    }
}

/* The numbering of expert layers: no CP, and the rest of CP x DP in the place of DP.
 * Returns the stride of PP, which as in Megatron must be that of the dense layers. */
static int number_experts(const enum pl_axis axes[5], struct pl_place *p)
{
    int stride = 1, stages = 1;
    for (int k = 0; k < 5; k++) {
        int axis = axes[k] == PL_AXIS_DP ? PL_AXIS_EDP : (int)axes[k];
        if (axis == PL_AXIS_CP) continue;
        if (axis == PL_AXIS_PP) stages = stride;
        if (axis == PL_AXIS_EP || axis == PL_AXIS_EDP) p->stride[axis] = stride;
        stride *= p->size[axis];
    }
    return stages;
}

int pl_place_init(int tp, int cp, int ep, int dp, int pp, const char *order, int n_gpus,
                  struct pl_place *out)
{
    struct pl_place p = {.size = {tp, cp, ep, dp, pp}};
    enum pl_axis axes[5];
    double product = (double)tp * cp * dp * pp;
    int64_t ranks = product < 1e18 ? (int64_t)product : INT64_MAX;
    int code = read_order(order, axes);
    if (!code) code = check(p.size, ranks, n_gpus);
    if (code) return code;
    p.n_ranks = (int)ranks;
    p.size[PL_AXIS_DP_CP] = cp * dp;
    p.size[PL_AXIS_EDP] = cp * dp / ep;
    number_dense(axes, &p);
    if (ep == 1) {
        p.stride[PL_AXIS_EP] = 1;
    } else if (number_experts(axes, &p) != p.stride[PL_AXIS_PP] && pp > 1) {
        return pl_fail(PL_ECONFIG,
                       "parallel.order '%s' cuts CP x DP in two, with EP %d "
                       "expected pp first or last, such as tp-cp-ep-dp-pp",
                       order, ep);
    }
    /* regular when one axis continues the other */
    int low = p.stride[PL_AXIS_CP] <= p.stride[PL_AXIS_DP] ? PL_AXIS_CP : PL_AXIS_DP;
    int high = low == PL_AXIS_CP ? PL_AXIS_DP : PL_AXIS_CP;
    if (p.stride[high] == p.stride[low] * p.size[low] || p.size[high] == 1)
        p.stride[PL_AXIS_DP_CP] = p.stride[low];
    else if (p.size[low] == 1)
        p.stride[PL_AXIS_DP_CP] = p.stride[high];
    if (ep == 1) p.stride[PL_AXIS_EDP] = p.stride[PL_AXIS_DP_CP];
    *out = p;
    return 0;
}

int pl_place_rank(const struct pl_place *p, int tp, int cp, int dp, int s)
{
    assert(tp >= 0 && tp < p->size[PL_AXIS_TP] && cp >= 0 && cp < p->size[PL_AXIS_CP]);
    assert(dp >= 0 && dp < p->size[PL_AXIS_DP] && s >= 0 && s < p->size[PL_AXIS_PP]);
    return tp * p->stride[PL_AXIS_TP] + cp * p->stride[PL_AXIS_CP] +
           dp * p->stride[PL_AXIS_DP] + s * p->stride[PL_AXIS_PP];
}

/* rank with its coordinate on axis set to 0. */
static int origin(const struct pl_place *p, int axis, int rank)
{
    int at = rank / p->stride[axis] % p->size[axis];
    return rank - at * p->stride[axis];
}

struct pl_group pl_place_group(const struct pl_place *p, enum pl_axis axis, int rank,
                               int *ranks)
{
    struct pl_group g = {
        .size = p->size[axis], .stride = p->stride[axis], .siblings = true};
    if (g.stride) {
        g.first = origin(p, (int)axis, rank);
        return g;
    }
    /* CP x DP (or EDP without EP) around a stage axis between them */
    int first = origin(p, PL_AXIS_CP, origin(p, PL_AXIS_DP, rank));
    for (int i = 0; i < g.size; i++)
        ranks[i] = first + i % p->size[PL_AXIS_CP] * p->stride[PL_AXIS_CP] +
                   i / p->size[PL_AXIS_CP] * p->stride[PL_AXIS_DP];
    g.ranks = ranks;
    return g;
}

/* Number k of the ranks of stage s, tp varying fastest. */
static int stage_rank(const struct pl_place *p, int k, int s)
{
    int tp = p->size[PL_AXIS_TP], cp = p->size[PL_AXIS_CP];
    return pl_place_rank(p, k % tp, k / tp % cp, k / tp / cp, s);
}

int pl_place_route(const struct pl_cluster *cluster, const struct pl_place *p, int s,
                   int t, struct pl_route *route)
{
    struct pl_route one, slowest = {.n = -1};
    int n = p->n_ranks / p->size[PL_AXIS_PP];
    if (p->n_ranks > cluster->n_gpus)
        return pl_fail(PL_ECONFIG, "%d ranks on a cluster of %d GPUs", p->n_ranks,
                       cluster->n_gpus);
    int *users = PL_NEW(cluster->n_resources, int);
    for (int k = 0; k < n; k++) {
        pl_cluster_route(cluster, stage_rank(p, k, s), stage_rank(p, k, t), &one);
        for (int i = 0; i < one.n; i++) users[one.use[i].resource]++;
    }
    for (int k = 0; k < n; k++) {
        pl_cluster_route(cluster, stage_rank(p, k, s), stage_rank(p, k, t), &one);
        one.bandwidth = INFINITY;
        for (int i = 0; i < one.n; i++) {
            one.use[i].capacity /= users[one.use[i].resource];
            one.bandwidth = fmin(one.bandwidth, one.use[i].capacity);
        }
        if (slowest.n < 0 || one.bandwidth < slowest.bandwidth) slowest = one;
    }
    free(users);
    *route = slowest;
    return 0;
}
