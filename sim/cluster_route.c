/* Who shares what: numbers of the resources (one direction of one port, of one bundle
 * of NVLinks between two GPUs, of one bridge between two sockets) and the route of a
 * message.
 */
#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/err.h"
#include "sim/cluster_internal.h"

static int64_t members(const struct pl_cluster *c, int level)
{
    return c->n_gpus / c->level[level].n_gpus;
}

int pl_cluster_number(struct pl_cluster *c)
{
    int64_t next = 0;
    for (int i = 0; i < c->n_levels; i++) {
        struct pl_level *l = &c->level[i];
        if (!l->ports) l->ports = l->link.kind == PL_LINK_NET ? l->n_gpus : 1;
        l->first = next;
        next += 2 * members(c, i) * l->ports;
    }
    if (c->fabric) {
        struct pl_fabric *f = c->fabric;
        int64_t nodes = c->n_gpus / f->n;
        f->first_pair = next;
        next += f->direct ? nodes * f->n * f->n : 0;
        f->first_socket = next;
        next += nodes * f->n_sockets * f->n_sockets;
    }
    c->n_resources = next;
    return 0;
}

/* The level whose members are what was imported; its GPUs' NICs come from the fabric.
 */
static bool has_own_nics(const struct pl_cluster *c, int level)
{
    return c->fabric && c->fabric->n_nics > 0 && level == c->n_levels - 2;
}

int64_t pl_cluster_port(const struct pl_cluster *c, int level, int g)
{
    const struct pl_level *l = &c->level[level];
    int64_t member = g / l->n_gpus, inside = g % l->n_gpus;
    int64_t port = has_own_nics(c, level) && l->ports == c->fabric->n_nics
                       ? c->fabric->nic[inside]
                       : inside * l->ports / l->n_gpus;
    return member * l->ports + port;
}

int pl_cluster_users(const struct pl_cluster *c, int level, int g)
{
    const struct pl_level *l = &c->level[level];
    int64_t port = pl_cluster_port(c, level, g), n = l->n_gpus, ports = l->ports;
    if (has_own_nics(c, level) && ports == c->fabric->n_nics) {
        int first = g / (int)n * (int)n, count = 0;
        for (int i = first; i < first + n; i++)
            count += pl_cluster_port(c, level, i) == port;
        return count;
    }
    int64_t p = port % ports; /* of the block i with i ports / n rounded down == p */
    return (int)(((p + 1) * n + ports - 1) / ports - (p * n + ports - 1) / ports);
}

bool pl_cluster_carries(const struct pl_cluster *c, int inner, int outer)
{
    enum pl_link_kind kind = c->level[inner].link.kind, to = c->level[outer].link.kind;
    if (kind == PL_LINK_NET) return true;
    if (kind == PL_LINK_NVLINK) return to == PL_LINK_NVLINK;
    /* the PCIe port of a GPU leads everywhere, a bridge of sockets to no NIC */
    return inner == c->n_levels - 1 || to != PL_LINK_NET;
}

static void use(struct pl_route *route, int64_t resource, double capacity)
{
    assert(route->n < PL_ROUTE_USES);
    route->use[route->n++] = (struct pl_use){resource, capacity};
    route->bandwidth = fmin(route->bandwidth, capacity);
}

static void use_ports(const struct pl_cluster *c, int level, int a, int b,
                      struct pl_route *route)
{
    const struct pl_level *l = &c->level[level];
    double capacity = pl_level_capacity(l);
    use(route, l->first + 2 * pl_cluster_port(c, level, a), capacity);
    use(route, l->first + 2 * pl_cluster_port(c, level, b) + 1, capacity);
}

/* Two GPUs of an imported node; false: only their ports count. */
static bool route_fabric(const struct pl_cluster *c, int a, int b,
                         struct pl_route *route)
{
    const struct pl_fabric *f = c->fabric;
    int64_t node = a / f->n;
    int i = a % f->n, j = b % f->n;
    int links = f->direct ? f->nvlinks[i * f->n + j] : 0;
    if (links) {
        use(route, f->first_pair + (node * f->n + i) * f->n + j, links * f->nvlink);
        route->latency = f->nvlink_latency;
        return true;
    }
    if (c->level[c->n_levels - 1].link.kind == PL_LINK_PCIE &&
        f->path[i * f->n + j] == PL_PATH_SYS && f->socket[i] != f->socket[j])
        use(route,
            f->first_socket + (node * f->n_sockets + f->socket[i]) * f->n_sockets +
                f->socket[j],
            f->between_sockets);
    return false;
}

void pl_cluster_route(const struct pl_cluster *c, int a, int b, struct pl_route *route)
{
    assert(a >= 0 && b >= 0 && a < c->n_gpus && b < c->n_gpus);
    *route = (struct pl_route){.level = -1, .bandwidth = INFINITY};
    if (a == b) return;
    int level = 0, last = c->n_levels - 1;
    while (a / c->level[level].n_gpus == b / c->level[level].n_gpus) level++;
    route->level = level;
    route->latency = c->level[level].latency;
    if (level == last && c->fabric && route_fabric(c, a, b, route)) return;
    use_ports(c, level, a, b, route);
    for (int i = level + 1; i < c->n_levels; i++)
        if (pl_cluster_carries(c, i, level)) use_ports(c, i, a, b, route);
}

int pl_route_time(const struct pl_route *route, double bytes, pl_tick *time)
{
    double ticks = (double)route->latency + bytes / route->bandwidth * 1e12;
    if (!(ticks < 9e18))
        return pl_fail(PL_ECONFIG, "a message of %.4g bytes takes more than 106 days",
                       bytes);
    *time = (pl_tick)llround(ticks);
    return 0;
}

char *pl_cluster_resource_name(const struct pl_cluster *c, int64_t r, char *buf, int n)
{
    const struct pl_fabric *f = c->fabric;
    assert(r >= 0 && r < c->n_resources && n >= 64);
    if (f && r >= f->first_socket) {
        int64_t k = r - f->first_socket, s = f->n_sockets;
        snprintf(buf, (size_t)n, "node %d socket %d to %d", (int)(k / s / s),
                 (int)(k / s % s), (int)(k % s));
        return buf;
    }
    if (f && f->direct && r >= f->first_pair) {
        int64_t k = r - f->first_pair;
        snprintf(buf, (size_t)n, "node %d nvlink %d to %d", (int)(k / f->n / f->n),
                 (int)(k / f->n % f->n), (int)(k % f->n));
        return buf;
    }
    int i = c->n_levels - 1;
    while (c->level[i].first > r) i--;
    const struct pl_level *l = &c->level[i];
    int64_t k = r - l->first;
    snprintf(buf, (size_t)n, "%s %d port %d %s", l->name, (int)(k / 2 / l->ports),
             (int)(k / 2 % l->ports), k % 2 ? "in" : "out");
    return buf;
}
