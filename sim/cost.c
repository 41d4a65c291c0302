/* Costs per stage: one value for all stages or one each. */
#include "sim/cost.h"

#include <stdlib.h>

#include "base/err.h"
#include "base/mem.h"

struct source {
    const char *key;
    const pl_tick *values;
    int n;
    int want; /* stages, or links between them */
};

static int check_source(const struct source *source)
{
    if (source->n != 1 && source->n != source->want)
        return pl_fail(PL_ECONFIG, "%s has %d values, expected 1 or %d", source->key,
                       source->n, source->want);
    for (int i = 0; i < source->n; i++)
        if (source->values[i] < 0)
            return pl_fail(PL_ECONFIG,
                           "%s is negative for entry %d, expected 0 or more",
                           source->key, i);
    return PL_OK;
}

static pl_tick *spread(const struct source *source)
{
    pl_tick *out = PL_NEW(source->want, pl_tick);
    for (int i = 0; i < source->want; i++)
        out[i] = source->values[source->n == 1 ? 0 : i];
    return out;
}

int pl_cost_new(int P, const pl_tick *forward, int n_forward, const pl_tick *backward,
                int n_backward, const pl_tick *weight, int n_weight,
                const pl_tick *update, int n_update, const pl_tick *link, int n_link,
                struct pl_cost *out)
{
    if (P < 1)
        return pl_fail(PL_ECONFIG, "schedule.stages is %d, expected at least 1", P);
    const struct source sources[] = {{"cost.forward", forward, n_forward, P},
                                     {"cost.backward", backward, n_backward, P},
                                     {"cost.weight", weight, n_weight, P},
                                     {"cost.update", update, n_update, P},
                                     {"link.time", link, n_link, P - 1}};
    for (size_t i = 0; i < sizeof sources / sizeof *sources; i++) {
        int rc = check_source(&sources[i]);
        if (rc) return rc;
    }
    out->P = P;
    out->forward = spread(&sources[0]);
    out->backward = spread(&sources[1]);
    out->weight = spread(&sources[2]);
    out->update = spread(&sources[3]);
    out->link = spread(&sources[4]);
    return PL_OK;
}

int pl_cost_scale(struct pl_cost *cost, int64_t factor)
{
    static const char *const keys[] = {"cost.forward", "cost.backward", "cost.weight",
                                       "link.time"};
    pl_tick *const columns[] = {cost->forward, cost->backward, cost->weight,
                                cost->link};
    if (factor < 1)
        return pl_fail(PL_ECONFIG, "cost factor is %lld, expected at least 1",
                       (long long)factor);
    for (int pass = 0; pass < 2; pass++) /* check all, then write */
        for (int k = 0; k < 4; k++)
            for (int s = 0; s < cost->P - (k == 3); s++) {
                pl_tick scaled;
                if (__builtin_mul_overflow(columns[k][s], factor, &scaled))
                    return pl_fail(PL_ECONFIG,
                                   "%s of stage %d times %lld exceeds 106 days (int64 "
                                   "picoseconds)",
                                   keys[k], s, (long long)factor);
                if (pass) columns[k][s] = scaled;
            }
    return PL_OK;
}

void pl_cost_free(struct pl_cost *cost)
{
    if (!cost) return;
    free(cost->forward);
    free(cost->backward);
    free(cost->weight);
    free(cost->update);
    free(cost->link);
    *cost = (struct pl_cost){0};
}
