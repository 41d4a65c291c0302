/* Costs per model chunk: one value for all stages, one a stage, or one a chunk. */
#include "sim/cost.h"

#include <math.h>
#include <stdlib.h>

#include "base/err.h"
#include "base/mem.h"
#include "sim/schedule.h"

struct source {
    const char *key;
    struct pl_times times;
};

static int check_values(const struct source *source)
{
    for (int i = 0; i < source->times.n; i++)
        if (source->times.t[i] < 0)
            return pl_fail(PL_ECONFIG,
                           "%s is negative for entry %d, expected 0 or more",
                           source->key, i);
    return PL_OK;
}

static int check_source(const struct source *source, const struct pl_layout *layout)
{
    int n = source->times.n, P = layout->P, C = layout->C;
    if (n == 1 || n == P || n == C) return check_values(source);
    if (P == 1 && C == 1)
        return pl_fail(PL_ECONFIG, "%s has %d values, expected 1 on one stage",
                       source->key, n);
    if (C == P)
        return pl_fail(PL_ECONFIG, "%s has %d values, expected 1 or %d, one a stage",
                       source->key, n, P);
    return pl_fail(PL_ECONFIG,
                   "%s has %d values, expected 1, %d (one a device) or %d (one a model "
                   "chunk)",
                   source->key, n, P, C);
}

static int check_link(const struct source *source, int P)
{
    int n = source->times.n;
    if (n == 1 || n == P - 1 || n == P) return check_values(source);
    return pl_fail(PL_ECONFIG,
                   "%s has %d values, expected 1, %d (a line) or %d (a ring)",
                   source->key, n, P - 1, P);
}

/* A device's time is shared equally by its chunks of the model. */
static void spread(const struct source *source, const struct pl_layout *layout,
                   pl_tick *out)
{
    int n = source->times.n, C = layout->C, v = C / layout->P;
    for (int c = 0; c < C; c++) {
        int i = n == 1 ? 0 : n == C ? c : layout->device[c];
        pl_tick t = source->times.t[i];
        out[c] = n == C || v <= 1 ? t : t / v + (t % v * 2 >= v);
    }
}

static void spread_links(struct pl_times link, int P, pl_tick *next, pl_tick *prev)
{
    pl_tick slowest = 0;
    for (int i = 0; i < link.n; i++)
        if (link.t[i] > slowest) slowest = link.t[i];
    for (int d = 0; d < P; d++) { /* link d joins devices d and d + 1 */
        pl_tick t = link.n == 1 ? link.t[0] : d < link.n ? link.t[d] : slowest;
        next[d] = t;
        prev[(d + 1) % P] = t;
    }
}

/* The four kinds of work of one microbatch and an update must fit an int64 together. */
static int check_sums(const struct pl_cost *cost)
{
    for (int c = 0; c < cost->chunks; c++) {
        pl_tick sum = 0;
        for (int k = 0; k < PL_N_OP; k++)
            if (k != PL_OP_BW &&
                __builtin_add_overflow(sum, pl_cost_time(cost, k, c), &sum))
                return pl_fail(PL_ECONFIG,
                               "cost.* of stage %d add up to more than 106 days (int64 "
                               "picoseconds)",
                               c);
    }
    return PL_OK;
}

void pl_cost_refresh(struct pl_cost *cost)
{
    for (int c = 0; c < cost->chunks; c++)
        cost->both[c] = cost->backward[c] + cost->weight[c];
}

int pl_cost_new(const struct pl_layout *layout, const struct pl_cost_spec *spec,
                struct pl_cost *out)
{
    const struct source sources[] = {{"cost.forward", spec->forward},
                                     {"cost.backward", spec->backward},
                                     {"cost.weight", spec->weight},
                                     {"cost.update", spec->update}};
    static const pl_tick none = 0;
    const struct source link = {"link.time", spec->link};
    const struct source sends = {
        "link.send", spec->send.n ? spec->send : (struct pl_times){&none, 1}};
    for (size_t i = 0; i < sizeof sources / sizeof *sources; i++) {
        int rc = check_source(&sources[i], layout);
        if (rc) return rc;
    }
    int rc = check_link(&link, layout->P);
    if (!rc) rc = check_link(&sends, layout->P);
    if (rc) return rc;
    int C = layout->C, P = layout->P;
    struct pl_cost made = {.chunks = C, .devices = P, .overlap = spec->overlap};
    made.time = PL_NEW((size_t)PL_N_OP * (size_t)C, pl_tick);
    made.forward = made.time + PL_OP_F * C;
    made.backward = made.time + PL_OP_B * C;
    made.weight = made.time + PL_OP_W * C;
    made.both = made.time + PL_OP_BW * C;
    made.update = made.time + PL_OP_U * C;
    made.next = PL_NEW(P, pl_tick);
    made.prev = PL_NEW(P, pl_tick);
    spread(&sources[0], layout, made.forward);
    spread(&sources[1], layout, made.backward);
    spread(&sources[2], layout, made.weight);
    spread(&sources[3], layout, made.update);
    made.send_next = PL_NEW(P, pl_tick);
    made.send_prev = PL_NEW(P, pl_tick);
    spread_links(link.times, P, made.next, made.prev);
    spread_links(sends.times, P, made.send_next, made.send_prev);
    rc = check_sums(&made);
    if (rc) {
        pl_cost_free(&made);
        return rc;
    }
    pl_cost_refresh(&made);
    *out = made;
    return PL_OK;
}

int pl_cost_scale(struct pl_cost *cost, int64_t factor)
{
    static const char *const keys[] = {"cost.forward", "cost.backward", "cost.weight",
                                       "link.time", "link.time"};
    pl_tick *const columns[] = {cost->forward, cost->backward, cost->weight, cost->next,
                                cost->prev};
    if (factor < 1)
        return pl_fail(PL_ECONFIG, "cost factor is %lld, expected at least 1",
                       (long long)factor);
    for (int pass = 0; pass < 2; pass++) /* check all, then write */
        for (int k = 0; k < 5; k++)
            for (int s = 0; s < (k < 3 ? cost->chunks : cost->devices); s++) {
                pl_tick scaled;
                /* a quarter: sums of them stay in range */
                if (__builtin_mul_overflow(columns[k][s], factor, &scaled) ||
                    scaled > INT64_MAX / 4)
                    return pl_fail(PL_ECONFIG,
                                   "%s of stage %d times %lld exceeds 106 days (int64 "
                                   "picoseconds)",
                                   keys[k], s, (long long)factor);
                if (pass) columns[k][s] = scaled;
            }
    for (int i = 0; cost->hop && i < 2 * cost->devices; i++)
        cost->hop[i].bytes *= (double)factor;
    pl_cost_refresh(cost);
    return PL_OK;
}

pl_tick pl_cost_op(const struct pl_cost *cost, int kind, int instance, int device,
                   int64_t micro)
{
    static const enum pl_jitter_kind varies[PL_N_OP] = {
        PL_JITTER_F, PL_JITTER_B, PL_JITTER_W, PL_JITTER_B, PL_JITTER_U};
    pl_tick t = pl_cost_time(cost, kind, instance % cost->chunks);
    if (cost->slow) {
        double slowed = (double)t * cost->slow[device];
        t = slowed > 0x1p61 ? INT64_C(1) << 61 : (pl_tick)llround(slowed);
    }
    if (cost->jitter)
        t = pl_jitter_time(cost->jitter, varies[kind], instance, micro, t);
    return t;
}

void pl_cost_free(struct pl_cost *cost)
{
    if (!cost) return;
    free(cost->time);
    free(cost->next);
    free(cost->prev);
    free(cost->send_next);
    free(cost->send_prev);
    for (int i = 0; cost->hop && i < 2 * cost->devices; i++) free(cost->hop[i].use);
    free(cost->hop);
    free(cost->slow);
    free(cost->slow_link);
    pl_jitter_free(cost->jitter);
    free(cost->jitter);
    *cost = (struct pl_cost){0};
}
