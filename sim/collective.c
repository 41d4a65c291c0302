/* Collectives as NCCL runs them, after its own tuning model (src/graph/tuning.cc):
 *
 *   t = launch + base[protocol] + sum over levels of (steps x hop[protocol])
 *       + factor x bytes / (part[protocol] x bus)
 *
 *   bus     bytes/s through the narrowest member of the group (pl_span_bus)
 *   ring    all-reduce: factor 2(n-1)/n, 2(n-1) steps; reduce-scatter and all-gather:
 *           half of both. A step belongs to the outermost level where neighbours on
 *           the ring differ: with M members at a level and M' at the one above, M - M'
 *           of the n - 1 steps.
 *   tree    all-reduce over nodes: a chain inside, a double binary tree outside;
 *           2 (g-1 + log2 nodes) steps, factor 2/.92 (NCCL: .92 of the ring's bus)
 *   switch  NVLS: base 25 us, no steps, factor 2(n-1)/n over the switch's own rate
 *   levels  reduce-scatter inside, all-reduce of a g-th outside, all-gather inside
 *   pairs   all-to-all: every GPU sends bytes/n to each other one, all in flight; the
 *           busiest port decides
 *
 * base: LL 6.6, LL128 14, Simple 8.4 us. part: LL 1/4 (1/3 in one node, unless
 * all-reduce), LL128 .92, Simple 1. The fastest protocol is taken, so the efficiency
 * grows with the size as NCCL's does. launch (cluster.launch) is what NCCL leaves out:
 * 18.5 us by default, the 31 to 34 us of a small message between A40 nodes less the
 * 14 us of its hop.
 */
#include "sim/collective.h"

#include <math.h>
#include <stdlib.h>

#include "base/err.h"
#include "base/mem.h"
#include "sim/collective_group.h"

static const double base_us[PL_PROTOCOLS] = {6.6, 14, 8.4};
static const double tree_net_us[PL_PROTOCOLS] = {5, 8.5, 14};
enum { SWITCH_US = 25 };

#define TREE_PART .92
#define LL128_PART .92

const char *pl_collective_name(enum pl_collective op)
{
    static const char *const names[] = {"all-reduce", "reduce-scatter", "all-gather",
                                        "all-to-all"};
    return names[op];
}

const char *pl_algorithm_name(enum pl_algorithm algorithm)
{
    static const char *const names[] = {"auto",   "ring",   "tree",
                                        "switch", "levels", "pairs"};
    return names[algorithm];
}

const char *pl_protocol_name(enum pl_protocol protocol)
{
    static const char *const names[] = {"LL", "LL128", "Simple"};
    return names[protocol];
}

/* The job of one call. */
struct work {
    const struct pl_cluster *cluster;
    const struct pl_span *span;
    enum pl_collective op;
    double bytes, bus;
};

static bool is_one_node(const struct work *w)
{
    int last = w->cluster->n_levels - 1;
    return last == 0 || w->span->members[last - 1] == 1;
}

/* us of one step at a level: the table's, scaled when the latency was set. */
static double hop_us(const struct work *w, int level, enum pl_protocol protocol)
{
    const struct pl_level *l = &w->cluster->level[level];
    const double *hop = l->link.hop;
    if (level == w->cluster->n_levels - 1 && w->span->nvlink &&
        l->link.kind != PL_LINK_NVLINK)
        return pl_link_find("nvlink2")->hop[protocol]; /* NVLinks of a fabric */
    return hop[protocol] * ((double)l->latency * 1e-6 / hop[PL_PROTOCOL_SIMPLE]);
}

/* Part of the bus that the payload gets; 0: not used on this hardware. */
static double part_of(const struct work *w, enum pl_protocol protocol)
{
    bool alone = is_one_node(w);
    if (protocol == PL_PROTOCOL_SIMPLE) return 1;
    if (protocol == PL_PROTOCOL_LL128) return w->span->nvlink ? LL128_PART : 0;
    return w->op == PL_ALL_REDUCE || !alone ? 1. / 4 : 1. / 3;
}

static double ring_us(const struct work *w, enum pl_protocol protocol)
{
    const struct pl_span *s = w->span;
    double us = base_us[protocol], n = s->n, phases = w->op == PL_ALL_REDUCE ? 2 : 1;
    for (int i = 0, before = 1; i < w->cluster->n_levels; before = s->members[i++])
        if (s->crossed[i])
            us += phases * (s->members[i] - before) * hop_us(w, i, protocol);
    return us + phases * (n - 1) / n * w->bytes / (part_of(w, protocol) * w->bus) * 1e6;
}

static double tree_us(const struct work *w, enum pl_protocol protocol)
{
    const struct pl_span *s = w->span;
    double us = base_us[protocol];
    for (int i = 0, before = 1; i < w->cluster->n_levels; before = s->members[i++]) {
        if (!s->crossed[i]) continue;
        const struct pl_level *l = &w->cluster->level[i];
        double ratio = (double)s->members[i] / before;
        if (l->link.kind == PL_LINK_NET)
            us += 2 * ceil(log2(ratio)) * tree_net_us[protocol] * (double)l->latency *
                  1e-6 / l->link.hop[PL_PROTOCOL_SIMPLE];
        else
            us += 2 * (ceil(ratio) - 1) * hop_us(w, i, protocol);
    }
    return us + 2 * w->bytes / (TREE_PART * part_of(w, protocol) * w->bus) * 1e6;
}

static bool has_tree(const struct work *w)
{
    for (int i = 0; i < w->cluster->n_levels; i++)
        if (w->span->crossed[i] && w->cluster->level[i].link.kind == PL_LINK_NET)
            return w->op == PL_ALL_REDUCE;
    return false;
}

/* Only the innermost level crossed, by three GPUs or more, and its switch can reduce.
 */
static bool has_switch(const struct work *w)
{
    int last = w->cluster->n_levels - 1;
    return w->op == PL_ALL_REDUCE && w->span->n > 2 &&
           w->cluster->level[last].link.reduce > 0 && is_one_node(w);
}

static double switch_us(const struct work *w)
{
    const struct pl_link *link = &w->cluster->level[w->cluster->n_levels - 1].link;
    double n = w->span->n;
    return SWITCH_US +
           2 * (n - 1) / n * w->bytes / (link->reduce * link->bandwidth) * 1e6;
}

static double pairs_us(const struct work *w)
{
    int outer = 0;
    while (!w->span->crossed[outer]) outer++;
    double us = base_us[PL_PROTOCOL_SIMPLE] + hop_us(w, outer, PL_PROTOCOL_SIMPLE);
    return us + pl_span_exchange(w->cluster, w->span, w->bytes / w->span->n) * 1e6;
}

static void better(struct pl_collective_cost *best, double us,
                   enum pl_algorithm algorithm, enum pl_protocol protocol)
{
    if (us * 1e-6 >= best->seconds) return;
    best->seconds = us * 1e-6;
    best->algorithm = algorithm;
    best->protocol = protocol;
}

/* The parts of LEVELS: the first member's GPUs, and the first GPU of every member. */
static int levels_parts(const struct work *w, struct pl_collective_cost *best)
{
    const struct pl_span *s = w->span;
    int last = w->cluster->n_levels - 1, nodes = last ? s->members[last - 1] : 1,
        g = s->n / nodes;
    if (w->op != PL_ALL_REDUCE || !s->regular || nodes < 2 || g < 2)
        return pl_fail(PL_EUNSUP,
                       "a hierarchical %s needs an all-reduce over nodes with "
                       "equally many GPUs, two or more",
                       pl_collective_name(w->op));
    int *heads = PL_NEW(nodes, int);
    for (int i = 0; i < nodes; i++) heads[i] = s->ranks[i * g];
    struct pl_group inside = {.size = g, .ranks = s->ranks, .siblings = s->siblings},
                    outside = {.size = nodes, .ranks = heads, .siblings = true};
    struct pl_collective_cost scatter, reduce, gather;
    int code = pl_collective_time(w->cluster, PL_REDUCE_SCATTER, PL_ALGORITHM_AUTO,
                                  &inside, w->bytes, &scatter);
    if (!code)
        code = pl_collective_time(w->cluster, PL_ALL_REDUCE, PL_ALGORITHM_AUTO,
                                  &outside, w->bytes / g, &reduce);
    if (!code)
        code = pl_collective_time(w->cluster, PL_ALL_GATHER, PL_ALGORITHM_AUTO, &inside,
                                  w->bytes, &gather);
    free(heads);
    if (code) return code;
    double launch = pl_seconds(w->cluster->launch); /* the caller adds one */
    better(best, (scatter.seconds + reduce.seconds + gather.seconds - launch) * 1e6,
           PL_ALGORITHM_LEVELS, reduce.protocol);
    return 0;
}

static int choose(const struct work *w, enum pl_algorithm algorithm,
                  struct pl_collective_cost *best)
{
    bool any = algorithm == PL_ALGORITHM_AUTO;
    if (algorithm == PL_ALGORITHM_LEVELS) return levels_parts(w, best);
    if (w->op == PL_ALL_TO_ALL) {
        if (any || algorithm == PL_ALGORITHM_PAIRS)
            better(best, pairs_us(w), PL_ALGORITHM_PAIRS, PL_PROTOCOL_SIMPLE);
    } else {
        for (int p = 0; p < PL_PROTOCOLS; p++) {
            if (part_of(w, (enum pl_protocol)p) == 0) continue;
            if (any || algorithm == PL_ALGORITHM_RING)
                better(best, ring_us(w, (enum pl_protocol)p), PL_ALGORITHM_RING,
                       (enum pl_protocol)p);
            if ((any || algorithm == PL_ALGORITHM_TREE) && has_tree(w))
                better(best, tree_us(w, (enum pl_protocol)p), PL_ALGORITHM_TREE,
                       (enum pl_protocol)p);
        }
        if ((any || algorithm == PL_ALGORITHM_SWITCH) && has_switch(w))
            better(best, switch_us(w), PL_ALGORITHM_SWITCH, PL_PROTOCOL_SIMPLE);
    }
    if (best->seconds < INFINITY) return 0;
    return pl_fail(PL_EUNSUP, "no %s %s on this group of %d GPUs",
                   pl_algorithm_name(algorithm), pl_collective_name(w->op), w->span->n);
}

int pl_collective_time(const struct pl_cluster *cluster, enum pl_collective op,
                       enum pl_algorithm algorithm, const struct pl_group *group,
                       double bytes, struct pl_collective_cost *out)
{
    struct pl_span span;
    struct pl_collective_cost best = {.seconds = INFINITY};
    int code = pl_span_init(cluster, group, &span);
    if (!code && span.n == 1) best = (struct pl_collective_cost){.bus = INFINITY};
    if (!code && span.n > 1) {
        struct work w = {cluster, &span, op, bytes, pl_span_bus(cluster, &span)};
        code = choose(&w, algorithm, &best);
        best.seconds += pl_seconds(cluster->launch);
        double part = (span.n - 1.) / span.n * (op == PL_ALL_REDUCE ? 2 : 1);
        best.bus = part * bytes / best.seconds;
    }
    pl_span_free(&span);
    if (!code) *out = best;
    return code;
}
