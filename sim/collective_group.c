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

/* NVLinks of GPU number i of the group to the others in its node. */
static int links_inside(const struct pl_fabric *f, const struct pl_span *s, int i)
{
    int node = s->ranks[i] / f->n, links = 0;
    for (int j = 0; j < s->n; j++)
        if (j != i && s->ranks[j] / f->n == node)
            links += f->nvlinks[s->ranks[i] % f->n * f->n + s->ranks[j] % f->n];
    return links;
}

static bool runs_on_nvlink(const struct pl_cluster *c, const struct pl_span *s)
{
    int last = c->n_levels - 1;
    if (!s->crossed[last] || !c->fabric || !c->fabric->direct)
        return c->level[last].link.kind == PL_LINK_NVLINK;
    for (int i = 0; i < s->n; i++)
        if (!links_inside(c->fabric, s, i)) return false;
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

/* GPUs of the cluster that use the same port as g. */
static int served(const struct pl_cluster *c, int level, int g)
{
    int n = c->level[level].n_gpus, first = g / n * n, count = 0;
    if (c->level[level].ports == n) return 1;
    if (c->level[level].ports == 1) return n;
    int64_t port = pl_cluster_port(c, level, g);
    for (int i = first; i < first + n; i++)
        count += pl_cluster_port(c, level, i) == port;
    return count;
}

/* Part of its port that GPU number i of the group may count on for the whole group:
 * with siblings each GPU has its own share, alone the first user of a port has all of
 * it. */
static double share(const struct pl_cluster *c, const struct pl_span *s, int level,
                    int from, int i)
{
    if (s->siblings) return 1. / served(c, level, s->ranks[i]);
    int64_t port = pl_cluster_port(c, level, s->ranks[i]);
    for (int j = from; j < i; j++)
        if (pl_cluster_port(c, level, s->ranks[j]) == port) return 0;
    return 1;
}

static double level_bus(const struct pl_cluster *c, const struct pl_span *s, int level)
{
    double least = INFINITY;
    for (int i = 0; i < s->n;) {
        int end = run_end(c, s, level, i);
        double sum = 0;
        for (int j = i; j < end; j++) sum += share(c, s, level, i, j);
        least = fmin(least, sum * pl_level_capacity(&c->level[level]));
        i = end;
    }
    return least;
}

/* Inside an imported node: bundles of NVLinks, or PCIe and the bridge of the sockets.
 */
static double fabric_bus(const struct pl_cluster *c, const struct pl_span *s)
{
    const struct pl_fabric *f = c->fabric;
    double least = INFINITY;
    if (f->direct && s->nvlink) {
        for (int i = 0; i < s->n; i++)
            least = fmin(least, links_inside(f, s, i) * f->nvlink);
        return least;
    }
    int last = c->n_levels - 1;
    if (c->level[last].link.kind == PL_LINK_PCIE)
        for (int i = 1; i < s->n; i++)
            if (s->ranks[i] / f->n == s->ranks[i - 1] / f->n &&
                f->socket[s->ranks[i] % f->n] != f->socket[s->ranks[i - 1] % f->n])
                least = f->between_sockets;
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

/* Other GPUs of the group whose messages from number i pass level's port. */
static int partners(const struct pl_cluster *c, const struct pl_span *s, int level,
                    int i)
{
    int n = 0;
    for (int j = 0; j < s->n; j++) {
        int outer = 0;
        if (j == i) continue;
        while (s->ranks[i] / c->level[outer].n_gpus ==
               s->ranks[j] / c->level[outer].n_gpus)
            outer++;
        n += outer == level || (outer < level && pl_cluster_carries(c, level, outer));
    }
    return n;
}

/* GPUs whose traffic shares number i's port, weighted with their partners. */
static double port_load(const struct pl_cluster *c, const struct pl_span *s, int level,
                        int i)
{
    double load = 0;
    if (s->siblings)
        return (double)served(c, level, s->ranks[i]) * partners(c, s, level, i);
    int64_t port = pl_cluster_port(c, level, s->ranks[i]);
    for (int j = 0; j < s->n; j++)
        if (pl_cluster_port(c, level, s->ranks[j]) == port)
            load += partners(c, s, level, j);
    return load;
}

/* NVLink pairs of a direct fabric; the other pairs take the ports like everyone. */
static double direct_exchange(const struct pl_cluster *c, const struct pl_span *s,
                              double bytes)
{
    const struct pl_fabric *f = c->fabric;
    double most = 0;
    for (int i = 0; i < s->n; i++) {
        int others = 0;
        for (int j = 0; j < s->n; j++) {
            if (j == i || s->ranks[i] / f->n != s->ranks[j] / f->n) continue;
            int links = f->nvlinks[s->ranks[i] % f->n * f->n + s->ranks[j] % f->n];
            if (links) most = fmax(most, bytes / (links * f->nvlink));
            others += !links;
        }
        most =
            fmax(most, others * bytes / pl_level_capacity(&c->level[c->n_levels - 1]));
    }
    return most;
}

double pl_span_exchange(const struct pl_cluster *c, const struct pl_span *s,
                        double bytes)
{
    double most = 0;
    for (int level = 0; level < c->n_levels; level++) {
        double capacity = pl_level_capacity(&c->level[level]);
        if (!passes(c, s, level)) continue;
        if (c->fabric && c->fabric->direct && level == c->n_levels - 1) {
            most = fmax(most, direct_exchange(c, s, bytes));
            continue;
        }
        for (int i = 0; i < s->n; i++)
            most = fmax(most, bytes * port_load(c, s, level, i) / capacity);
    }
    return most;
}
