/* The keys of links and of times that vary. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/mem.h"
#include "cli/setup.h"
#include "sim/estimate.h"

static int one_rate(const char *text, const char *where, double *rate)
{
    *rate = INFINITY;
    if (!strcmp(text, "inf")) return PL_OK;
    if (pl_units_rate(text, rate)) {
        char *why = pl_strdup(pl_error_text());
        int rc = pl_fail(PL_ECONFIG, "%s: link.bandwidth: %s", where, why);
        free(why);
        return rc;
    }
    if (*rate > 0) return PL_OK;
    return pl_fail(PL_ECONFIG, "%s: link.bandwidth '%s', expected more than 0", where,
                   text);
}

static int given_bandwidth(const struct pl_config *config, struct pl_cost *cost)
{
    const char *text = pl_config_text(config, "link.bandwidth");
    const char *where = pl_config_where(config, "link.bandwidth");
    char *copy = pl_strdup(text), *save = NULL;
    double *rate = PL_NEW(strlen(text) / 2 + 1, double);
    int n = 0, rc = PL_OK;
    for (char *w = strtok_r(copy, ",", &save); w && !rc;
         w = strtok_r(NULL, ",", &save)) {
        w += strspn(w, " ");
        for (size_t k = strlen(w); k && w[k - 1] == ' ';) w[--k] = 0;
        rc = one_rate(w, where, &rate[n++]);
    }
    uint64_t bytes = 0;
    if (!rc && pl_units_bytes(pl_config_text(config, "link.bytes"), &bytes)) {
        char *why = pl_strdup(pl_error_text());
        rc = pl_fail(PL_ECONFIG, "%s: link.bytes: %s",
                     pl_config_where(config, "link.bytes"), why);
        free(why);
    }
    if (!rc && !bytes)
        rc = pl_fail(PL_ECONFIG,
                     "%s: link.bandwidth is given without link.bytes, expected such as "
                     "16 MiB",
                     where);
    if (!rc) rc = pl_cost_bandwidth(cost, rate, n, (double)bytes);
    free(rate);
    free(copy);
    return rc;
}

static void estimated_hops(const struct pl_estimate *e, struct pl_cost *cost)
{
    int n = 2 * cost->devices;
    cost->hop = PL_NEW(n, struct pl_hop);
    for (int i = 0; i < n; i++) {
        struct pl_hop *hop = &cost->hop[i];
        hop->n = e->hop[i].n;
        hop->bytes = hop->n ? e->boundary_bytes : 0;
        hop->use = PL_NEW(hop->n, struct pl_use);
        for (int k = 0; k < hop->n; k++) hop->use[k] = e->hop[i].use[k];
    }
}

static int read_bandwidth(const struct pl_config *config, const struct pl_estimate *e,
                          struct pl_cost *cost)
{
    static const char *const keys[] = {"link.bandwidth", "link.bytes"};
    for (int k = 0; k < 2 && e; k++)
        if (pl_config_given(config, keys[k]))
            return pl_fail(PL_ECONFIG, "%s: %s is given beside cost.type: roofline",
                           pl_config_where(config, keys[k]), keys[k]);
    if (e) {
        estimated_hops(e, cost);
        return PL_OK;
    }
    if (*pl_config_text(config, "link.bandwidth")) return given_bandwidth(config, cost);
    if (pl_config_given(config, "link.bytes"))
        return pl_fail(PL_ECONFIG,
                       "%s: link.bytes is given without link.bandwidth, expected such "
                       "as 25 GB/s",
                       pl_config_where(config, "link.bytes"));
    if (cost->semantics != PL_CONTENTION) return PL_OK;
    return pl_fail(PL_ECONFIG,
                   "%s: link.semantics contention needs link.bandwidth and link.bytes, "
                   "or cost.type roofline",
                   pl_config_where(config, "link.semantics"));
}

/* "3:1.5 7:2": apply to each pair; numbers below n. */
static int read_factors(const struct pl_config *config, const char *key, int n,
                        int (*apply)(struct pl_cost *, int, double),
                        struct pl_cost *cost)
{
    const char *where = pl_config_where(config, key);
    char *copy = pl_strdup(pl_config_text(config, key)), *save = NULL;
    int rc = PL_OK;
    for (char *w = strtok_r(copy, " ", &save); w && !rc;
         w = strtok_r(NULL, " ", &save)) {
        char *colon, *end = NULL;
        long at = strtol(w, &colon, 10);
        double factor = *colon == ':' ? strtod(colon + 1, &end) : 0;
        if (colon == w || *colon != ':' || end == colon + 1 || *end)
            rc = pl_fail(PL_ECONFIG,
                         "%s: %s: '%s', expected NUMBER:FACTOR such as 3:1.5", where,
                         key, w);
        else if (at < 0 || at >= n)
            rc = pl_fail(PL_ECONFIG, "%s: %s: %ld, expected 0 .. %d", where, key, at,
                         n - 1);
        else if (!(factor > 0 && factor <= 1e6))
            rc = pl_fail(PL_ECONFIG,
                         "%s: %s: factor %g, expected more than 0 and at most 1e6",
                         where, key, factor);
        else
            rc = apply(cost, (int)at, factor);
    }
    free(copy);
    return rc;
}

static int slow_device(struct pl_cost *cost, int device, double factor)
{
    if (!cost->slow) {
        cost->slow = PL_NEW(cost->devices, double);
        for (int d = 0; d < cost->devices; d++) cost->slow[d] = 1;
    }
    cost->slow[device] = factor;
    return PL_OK;
}

static int read_jitter(const struct pl_config *config, struct pl_cost *cost)
{
    static const char *const keys[PL_N_JITTER] = {
        "jitter.forward", "jitter.backward",    "jitter.weight",
        "jitter.update",  "jitter.activations", "jitter.gradients"};
    struct pl_jitter *made = PL_NEW(1, struct pl_jitter);
    bool any = false;
    int rc = PL_OK;
    for (int k = 0; k < PL_N_JITTER && !rc; k++) {
        char *where = pl_printf("%s: %s", pl_config_where(config, keys[k]), keys[k]);
        rc = pl_random_time_parse(pl_config_text(config, keys[k]), where,
                                  &made->time[k]);
        any |= made->time[k].kind != PL_STEADY;
        free(where);
    }
    if (!rc) {
        char *where =
            pl_printf("%s: jitter.outages", pl_config_where(config, "jitter.outages"));
        rc = pl_outages_parse(pl_config_text(config, "jitter.outages"), where,
                              cost->devices, made);
        free(where);
    }
    made->seed = pl_config_seed(config, 0);
    if (!rc && (any || made->n_outages)) {
        cost->jitter = made;
        return PL_OK;
    }
    pl_jitter_free(made);
    free(made);
    return rc;
}

int pl_setup_links(const struct pl_config *config, const struct pl_estimate *estimate,
                   struct pl_cost *cost)
{
    int P = cost->devices;
    cost->semantics =
        (enum pl_link_semantics)pl_config_choice(config, "link.semantics");
    int rc = read_bandwidth(config, estimate, cost);
    if (!rc) rc = read_factors(config, "jitter.slow", P, slow_device, cost);
    if (!rc) rc = read_factors(config, "jitter.slow_links", P, pl_cost_slow_link, cost);
    if (!rc) rc = read_jitter(config, cost);
    if (rc) pl_cost_free(cost);
    return rc;
}
