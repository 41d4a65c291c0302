#include "sim/collective_group.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#include "base/err.h"
#include "base/mem.h"

static int compare(const void *a, const void *b)
{
    int x = *(const int *)a, y = *(const int *)b;
    return (x > y) - (x < y);
}

static int fill(const struct pl_cluster *c, const struct pl_group *g, int *ranks)
{
    for (int i = 0; i < g->size; i++) {
        int64_t r = g->ranks ? g->ranks[i] : g->first + (int64_t)i * g->stride;
        if (r < 0 || r >= c->n_gpus)
            return pl_fail(PL_ECONFIG,
                           "GPU %" PRId64 " of a group of %d is not in the cluster, "
                           "expected 0 to %d",
                           r, g->size, c->n_gpus - 1);
        ranks[i] = (int)r;
    }
    qsort(ranks, (size_t)g->size, sizeof *ranks, compare);
    for (int i = 1; i < g->size; i++)
        if (ranks[i] == ranks[i - 1])
            return pl_fail(PL_ECONFIG, "GPU %d is twice in a group of %d", ranks[i],
                           g->size);
    return 0;
}

/* First GPU of the group after i that is in another member of the level. */
static int run_end(const struct pl_cluster *c, const struct pl_span *s, int level,
                   int i)
{
    int member = s->ranks[i] / c->level[level].n_gpus, j = i;
    while (j < s->n && s->ranks[j] / c->level[level].n_gpus == member) j++;
    return j;
}

static void count_members(const struct pl_cluster *c, struct pl_span *s, int level)
{
    int first = 0;
    for (int i = 0; i < s->n;) {
        int end = run_end(c, s, level, i);
        if (!s->members[level]++) first = end;
        if (end - i != first) s->regular = false;
        i = end;
    }
    s->crossed[level] = s->members[level] > (level ? s->members[level - 1] : 1);
}

/* Numbers of the group's GPUs that are in the imported node of number i. */
static void node_range(const struct pl_cluster *c, const struct pl_span *s, int i,
                       int *from, int *end)
{
    int n = c->fabric->n, node = s->ranks[i] / n;
    for (*from = i; *from > 0 && s->ranks[*from - 1] / n == node;) --*from;
    for (*end = i + 1; *end < s->n && s->ranks[*end] / n == node;) ++*end;
}

static int links_between(const struct pl_fabric *f, int a, int b)
{
    return f->nvlinks[a % f->n * f->n + b % f->n];
}

/* NVLinks of GPU number i of the group to the others in its node. */
static int links_inside(const struct pl_cluster *c, const struct pl_span *s, int i)
{
    int from, end, links = 0;
    node_range(c, s, i, &from, &end);
    for (int j = from; j < end; j++)
        links += links_between(c->fabric, s->ranks[i], s->ranks[j]);
    return links;
}

/* Are the group's GPUs in the node of number `from` joined by NVLinks, in steps? Pairs
 * with a bridge are not: their ring goes over PCIe. */
static bool is_connected(const struct pl_cluster *c, const struct pl_span *s, int from,
                         int end)
{
    int n = end - from, reached = 1;
    bool *seen = PL_NEW(n, bool), grown = true;
    seen[0] = true;
    while (grown && reached < n) {
        grown = false;
        for (int i = 0; i < n; i++)
            for (int j = 0; j < n && !seen[i]; j++) {
                if (!seen[j] ||
                    !links_between(c->fabric, s->ranks[from + i], s->ranks[from + j]))
                    continue;
                seen[i] = grown = true;
                reached++;
            }
    }
    free(seen);
    return reached == n;
}

static bool runs_on_nvlink(const struct pl_cluster *c, const struct pl_span *s)
{
    int last = c->n_levels - 1;
    if (!s->crossed[last] || !c->fabric || !c->fabric->direct)
        return c->level[last].link.kind == PL_LINK_NVLINK;
    for (int i = 0; i < s->n;) {
        int from, end;
        node_range(c, s, i, &from, &end);
        if (!is_connected(c, s, from, end)) return false;
        i = end;
    }
    return true;
}

int pl_span_init(const struct pl_cluster *c, const struct pl_group *g,
                 struct pl_span *s)
{
    *s = (struct pl_span){.n = g->size, .siblings = g->siblings, .regular = true};
    if (g->size < 1 || g->size > c->n_gpus)
        return pl_fail(PL_ECONFIG, "a group of %d GPUs, expected 1 to %d", g->size,
                       c->n_gpus);
    s->ranks = PL_NEW(g->size, int);
    int code = fill(c, g, s->ranks);
    for (int level = 0; level < c->n_levels && !code; level++)
        count_members(c, s, level);
    if (!code) s->nvlink = runs_on_nvlink(c, s);
    return code;
}

void pl_span_free(struct pl_span *s)
{
    free(s->ranks);
    s->ranks = NULL;
}

static bool passes(const struct pl_cluster *c, const struct pl_span *s, int level)
{
    bool passed = s->crossed[level];
    for (int outer = 0; outer < level; outer++)
        passed |= s->crossed[outer] && pl_cluster_carries(c, level, outer);
    return passed;
}

/* A ring leaves a member through all ports that its GPUs use; with siblings each GPU
 * has its part of the port. */
static double level_bus(const struct pl_cluster *c, const struct pl_span *s, int level)
{
    const struct pl_level *l = &c->level[level];
    int *user = PL_NEW(l->ports, int); /* number + 1 of the port's first user */
    double least = INFINITY;
    for (int i = 0, end; i < s->n; i = end) {
        double ports = 0;
        end = run_end(c, s, level, i);
        for (int j = i; j < end; j++) {
            int *first = &user[pl_cluster_port(c, level, s->ranks[j]) % l->ports];
            bool mine = *first <= i; /* not yet by this member */
            if (mine) *first = j + 1;
            ports += s->siblings ? 1. / pl_cluster_users(c, level, s->ranks[j]) : mine;
        }
        least = fmin(least, ports * pl_level_capacity(l));
    }
    free(user);
    return least;
}

/* With siblings: the part of the node's GPUs that is in the group. */
static double node_part(const struct pl_cluster *c, const struct pl_span *s, int i)
{
    int from, end;
    node_range(c, s, i, &from, &end);
    return s->siblings ? (double)(end - from) / c->fabric->n : 1;
}

/* Inside an imported node: bundles of NVLinks, or PCIe and the bridge of the sockets.
 */
static double fabric_bus(const struct pl_cluster *c, const struct pl_span *s)
{
    const struct pl_fabric *f = c->fabric;
    double least = INFINITY;
    if (f->direct && s->nvlink) {
        for (int i = 0; i < s->n; i++) {
            int links = links_inside(c, s, i);
            if (links)
                least = fmin(least, links * f->nvlink); /* 0: alone in its node */
        }
        return least;
    }
    int last = c->n_levels - 1;
    if (c->level[last].link.kind == PL_LINK_PCIE)
        for (int i = 1; i < s->n; i++)
            if (s->ranks[i] / f->n == s->ranks[i - 1] / f->n &&
                f->socket[s->ranks[i] % f->n] != f->socket[s->ranks[i - 1] % f->n])
                least = f->between_sockets * node_part(c, s, i);
    return fmin(least, level_bus(c, s, last));
}

double pl_span_bus(const struct pl_cluster *c, const struct pl_span *s)
{
    double bus = INFINITY;
    int last = c->n_levels - 1;
    for (int level = 0; level < c->n_levels; level++) {
        if (!passes(c, s, level)) continue;
        bool inside = level == last && c->fabric && s->crossed[last];
        bus = fmin(bus, inside ? fabric_bus(c, s) : level_bus(c, s, level));
    }
    return bus;
}

/* GPUs of the group in the member of level that holds number i; level -1: all. */
static int inside(const struct pl_cluster *c, const struct pl_span *s, int level, int i)
{
    if (level < 0) return s->n;
    int n = c->level[level].n_gpus, first = s->ranks[i] / n * n;
    int bounds[2]; /* first number with rank >= first, and >= first + n */
    for (int side = 0; side < 2; side++) {
        int low = 0, high = s->n;
        while (low < high) {
            int middle = low + (high - low) / 2;
            if (s->ranks[middle] < first + side * n)
                low = middle + 1;
            else
                high = middle;
        }
        bounds[side] = low;
    }
    return bounds[1] - bounds[0];
}

/* Other GPUs of the group whose messages from number i pass level's port. */
static int partners(const struct pl_cluster *c, const struct pl_span *s, int level,
                    int i)
{
    int n = 0;
    for (int outer = 0; outer <= level; outer++)
        if (outer == level || pl_cluster_carries(c, level, outer))
            n += inside(c, s, outer - 1, i) - inside(c, s, outer, i);
    return n;
}

/* NVLink pairs of a direct fabric; the other pairs take the ports like everyone. */
static double direct_exchange(const struct pl_cluster *c, const struct pl_span *s,
                              double bytes)
{
    const struct pl_fabric *f = c->fabric;
    double most = 0, port = pl_level_capacity(&c->level[c->n_levels - 1]);
    for (int i = 0; i < s->n; i++) {
        int from, end, others = 0;
        node_range(c, s, i, &from, &end);
        for (int j = from; j < end; j++) {
            int links = links_between(f, s->ranks[i], s->ranks[j]);
            if (links) most = fmax(most, bytes / (links * f->nvlink));
            others += !links && j != i;
        }
        most = fmax(most, others * bytes / port);
    }
    return most;
}

/* Seconds for the busiest port of level. */
static double level_exchange(const struct pl_cluster *c, const struct pl_span *s,
                             int level, double bytes)
{
    const struct pl_level *l = &c->level[level];
    double *load = PL_NEW(l->ports, double), most = 0;
    for (int i = 0, end; i < s->n; i = end) {
        end = run_end(c, s, level, i);
        for (int p = 0; p < l->ports; p++) load[p] = 0;
        for (int j = i; j < end; j++) {
            double *own = &load[pl_cluster_port(c, level, s->ranks[j]) % l->ports];
            int n = partners(c, s, level, j);
            *own = s->siblings
                       ? fmax(*own, (double)n * pl_cluster_users(c, level, s->ranks[j]))
                       : *own + n;
            most = fmax(most, *own);
        }
    }
    free(load);
    return most * bytes / pl_level_capacity(l);
}

double pl_span_exchange(const struct pl_cluster *c, const struct pl_span *s,
                        double bytes)
{
    double most = 0;
    int last = c->n_levels - 1;
    for (int level = 0; level <= last; level++) {
        if (!passes(c, s, level)) continue;
        bool mesh = level == last && c->fabric && c->fabric->direct && s->crossed[last];
        most = fmax(most, mesh ? direct_exchange(c, s, bytes)
                               : level_exchange(c, s, level, bytes));
    }
    return most;
}
