/* Max-min fair sharing by progressive filling (Bertsekas and Gallager, Data Networks,
 * 2nd ed., 6.5.2), computed again whenever a flow starts or ends: all rates rise
 * together until a resource is full; what passes it keeps that rate, the others go on.
 * A flow's bytes leave at that rate; its latency follows. A flow is never faster than
 * alone, and alone it takes exactly pl_cost_transfer.
 *
 * A capacity is that of the resource for this route (siblings of the pipeline may take
 * more of it on one hop than on another), so a resource is full when the sum of rate /
 * capacity is 1. Routes that share nothing, even through others, are kept apart. */
#include "sim/flows.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/mem.h"
#include "sim/cluster.h"

struct route {
    int n, part;
    int *resource; /* [n] dense numbers */
    double *share; /* [n] 1 / capacity */
    double capacity, bytes;
};

struct flow {
    struct message m;
    const struct route *route;
    double bytes, left, rate; /* left at `since`; rate 0: has not left yet */
    pl_tick start, since, end;
    pl_tick least; /* bytes alone */
    pl_tick after; /* latency */
    bool on, full;
};

/* Flows that may share resources. */
struct part {
    struct flow *flow;
    int n, room;
};

struct flows {
    struct route *route; /* [2 * Q] of instance q: ahead, Q + q: behind */
    int n_routes, n_parts;
    struct part *part;
    double *used,
        *weight;        /* [resources] scratch: part taken, weight that still rises */
    struct turns turns; /* of the parts */
};

static const double tiny = 1e-12; /* rounding of rates */

static pl_tick ticks(double seconds)
{
    return seconds < 9e6 ? (pl_tick)llround(seconds * 1e12) : PL_NEVER;
}

/* ---- routes ---- */

/* Hops from src to dst; -1 in *hops past the last. */
static const struct pl_hop *hop_of(const struct pl_cost *cost, int from, int dst,
                                   int *to)
{
    int P = cost->devices;
    *to = pl_cost_hop(cost, from, dst);
    bool ahead = *to == (from + 1) % P && dst != from - 1;
    return &cost->hop[ahead ? from : P + from];
}

static void make_route(const struct pl_cost *cost, int src, int dst, int64_t *names,
                       int *n_names, struct route *out)
{
    const struct pl_hop *hop;
    int n = 0, to;
    *out = (struct route){.part = -1, .capacity = INFINITY};
    for (int d = src; d != dst; d = to) n += hop_of(cost, d, dst, &to)->n;
    out->resource = PL_NEW(n, int);
    out->share = PL_NEW(n, double);
    for (int d = src; d != dst; d = to) {
        hop = hop_of(cost, d, dst, &to);
        out->bytes = fmax(out->bytes, hop->bytes);
        for (int k = 0; k < hop->n; k++) {
            int r = 0;
            while (r < *n_names && names[r] != hop->use[k].resource) r++;
            if (r == *n_names) names[(*n_names)++] = hop->use[k].resource;
            out->resource[out->n] = r;
            out->share[out->n++] = 1 / hop->use[k].capacity;
            out->capacity = fmin(out->capacity, hop->use[k].capacity);
        }
    }
}

static int root(int *parent, int i)
{
    while (parent[i] != i) i = parent[i] = parent[parent[i]];
    return i;
}

static void find_parts(struct flows *f, int n_resources)
{
    int *parent = PL_NEW(n_resources, int), *number = PL_NEW(n_resources, int);
    for (int r = 0; r < n_resources; r++) parent[r] = r;
    for (int i = 0; i < f->n_routes; i++)
        for (int k = 1; k < f->route[i].n; k++)
            parent[root(parent, f->route[i].resource[k])] =
                root(parent, f->route[i].resource[0]);
    for (int r = 0; r < n_resources; r++)
        if (parent[r] == r) number[r] = f->n_parts++;
    for (int i = 0; i < f->n_routes; i++)
        if (f->route[i].n)
            f->route[i].part = number[root(parent, f->route[i].resource[0])];
    free(parent);
    free(number);
}

struct flows *pl_flows_new(const struct engine *e)
{
    const struct pl_cost *cost = e->cost;
    int n = 0, n_names = 0, Q = e->Q;
    if (!cost->hop) return NULL;
    for (int i = 0; i < 2 * e->P; i++) n += cost->hop[i].n;
    struct flows *f = PL_NEW(1, struct flows);
    int64_t *names = PL_NEW(n, int64_t);
    f->n_routes = 2 * Q;
    f->route = PL_NEW(2 * Q, struct route);
    for (int q = 0; q < Q; q++) {
        const struct instance *x = &e->instance[q];
        int ahead = x->chunk + 1 < e->C ? x[1].device : x->device;
        int behind = x->chunk > 0 ? x[-1].device : x->device;
        make_route(cost, x->device, ahead, names, &n_names, &f->route[q]);
        make_route(cost, x->device, behind, names, &n_names, &f->route[Q + q]);
    }
    free(names);
    find_parts(f, n_names);
    f->part = PL_NEW(f->n_parts, struct part);
    f->used = PL_NEW(n_names, double);
    f->weight = PL_NEW(n_names, double);
    turns_new(&f->turns, f->n_parts);
    return f;
}

void pl_flows_free(struct flows *f)
{
    if (!f) return;
    for (int i = 0; i < f->n_routes; i++) {
        free(f->route[i].resource);
        free(f->route[i].share);
    }
    for (int i = 0; i < f->n_parts; i++) free(f->part[i].flow);
    free(f->route);
    free(f->part);
    free(f->used);
    free(f->weight);
    turns_free(&f->turns);
    free(f);
}

/* ---- rates ---- */

/* The rate at which the first resource of x is full when all go on rising. */
static double limit_of(const struct flows *f, const struct flow *x)
{
    double least = INFINITY;
    for (int k = 0; k < x->route->n; k++) {
        int r = x->route->resource[k];
        least = fmin(least, fmax(0, 1 - f->used[r]) / f->weight[r]);
    }
    return least;
}

static void count(struct flows *f, const struct part *p)
{
    for (int i = 0; i < p->n; i++)
        for (int k = 0; k < p->flow[i].route->n; k++) {
            int r = p->flow[i].route->resource[k];
            f->used[r] = f->weight[r] = 0;
        }
    for (int i = 0; i < p->n; i++)
        for (int k = 0; k < p->flow[i].route->n && p->flow[i].on; k++)
            f->weight[p->flow[i].route->resource[k]] += p->flow[i].route->share[k];
}

/* Fix the rates of what is full at this level. */
static int settle(struct flows *f, struct part *p, double level, double *rate)
{
    int n = 0;
    for (int i = 0; i < p->n; i++) {
        struct flow *x = &p->flow[i];
        bool now = x->on && !x->full && limit_of(f, x) <= level * (1 + tiny);
        rate[i] = now ? level : rate[i];
    }
    for (int i = 0; i < p->n; i++) {
        struct flow *x = &p->flow[i];
        if (!x->on || x->full || rate[i] < 0) continue;
        for (int k = 0; k < x->route->n; k++) {
            f->used[x->route->resource[k]] += level * x->route->share[k];
            f->weight[x->route->resource[k]] -= x->route->share[k];
        }
        x->full = true;
        n++;
    }
    return n;
}

static void share_out(struct flows *f, struct part *p, double *rate)
{
    int left = 0;
    count(f, p);
    for (int i = 0; i < p->n; i++) {
        p->flow[i].full = false;
        left += p->flow[i].on;
        rate[i] = -1;
    }
    while (left) {
        double level = INFINITY;
        for (int i = 0; i < p->n; i++)
            if (p->flow[i].on && !p->flow[i].full)
                level = fmin(level, limit_of(f, &p->flow[i]));
        left -= settle(f, p, level, rate);
    }
}

/* New rates from now on. */
static int share(struct engine *e, struct part *p)
{
    struct flows *f = e->network->flows;
    double *rate = PL_NEW(p->n, double);
    int rc = PL_OK;
    share_out(f, p, rate);
    for (int i = 0; i < p->n && !rc; i++) {
        struct flow *x = &p->flow[i];
        double most = x->route->capacity;
        if (!x->on) continue;
        if (rate[i] >= most * (1 - 1e-9)) rate[i] = most;
        if (rate[i] == x->rate) continue;
        x->left = fmax(0, x->left - x->rate * pl_seconds(e->now - x->since));
        x->since = e->now;
        x->rate = rate[i];
        rc = pl_network_later(&x->m, e->now, ticks(x->left / x->rate), &x->end);
        if (x->end < x->start + x->least) x->end = x->start + x->least;
    }
    free(rate);
    return rc;
}

/* ---- time ---- */

static void set_turn(struct flows *f, int number)
{
    const struct part *p = &f->part[number];
    pl_tick next = PL_NEVER;
    for (int i = 0; i < p->n; i++) {
        const struct flow *x = &p->flow[i];
        pl_tick at = x->on ? x->end : x->start;
        if (at < next) next = at;
    }
    turns_set(&f->turns, number, next);
}

static int advance(struct engine *e, int number)
{
    struct part *p = &e->network->flows->part[number];
    int kept = 0, rc = PL_OK;
    for (int i = 0; i < p->n && !rc; i++) {
        struct flow *x = &p->flow[i];
        if (x->on && x->end <= e->now) {
            pl_tick arrived = 0;
            rc = pl_network_later(&x->m, e->now, x->after, &arrived);
            if (!rc) rc = pl_network_carry(e, &x->m, x->start, arrived);
            continue;
        }
        x->on |= x->start <= e->now;
        p->flow[kept++] = *x;
    }
    p->n = kept;
    if (!rc) rc = share(e, p);
    set_turn(e->network->flows, number);
    return rc;
}

int pl_flows_turn(struct engine *e)
{
    struct flows *f = e->network->flows;
    int rc = PL_OK;
    while (!rc && turns_time(&f->turns) <= e->now)
        rc = advance(e, turns_device(&f->turns));
    turns_set(&e->turns, e->P, turns_time(&f->turns));
    return rc;
}

int pl_flows_add(struct engine *e, const struct message *m, pl_tick start)
{
    struct flows *f = e->network->flows;
    const struct route *route = &f->route[m->to > m->from ? m->from : e->Q + m->from];
    pl_tick whole =
        pl_cost_transfer(e->cost, m->kind, m->from, m->src, m->dst, m->micro);
    pl_tick usual = pl_cost_flight(e->cost, m->src, m->dst), arrived = 0;
    int rc = pl_network_later(m, start, whole, &arrived);
    if (rc) return rc;
    double bytes = route->bytes * (usual ? (double)whole / (double)usual : 1);
    pl_tick least = route->n ? ticks(bytes / route->capacity) : 0;
    if (least > whole) least = whole;
    if (!least) return pl_network_carry(e, m, start, arrived);
    struct part *p = &f->part[route->part];
    if (p->n == p->room) {
        p->room = p->room ? 2 * p->room : 4;
        p->flow = pl_grow(p->flow, (size_t)p->room, sizeof *p->flow);
    }
    p->flow[p->n++] = (struct flow){.m = *m,
                                    .route = route,
                                    .bytes = bytes,
                                    .left = bytes,
                                    .start = start,
                                    .since = start,
                                    .least = least,
                                    .after = whole - least};
    set_turn(f, route->part);
    turns_set(&e->turns, e->P, turns_time(&f->turns));
    return PL_OK;
}
