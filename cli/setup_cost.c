/* Costs of a shape: as given, of a profile, or of a roofline. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/mem.h"
#include "cli/profile.h"
#include "cli/setup.h"
#include "sim/estimate.h"

static const char *const cost_keys[] = {"cost.forward", "cost.backward", "cost.weight",
                                        "cost.update", "link.time"};

/* The lists of a profile; the file says everything, so keys beside it are a mistake. */
static int spec_of_profile(const struct pl_config *config, struct pl_profile *profile,
                           struct pl_times *const *lists)
{
    const char *path = pl_config_text(config, "cost.profile");
    for (int i = 0; i < PL_N_PROFILE; i++)
        if (pl_config_given(config, cost_keys[i]))
            return pl_fail(PL_ECONFIG, "%s: %s is given beside cost.profile: %s",
                           pl_config_where(config, cost_keys[i]), cost_keys[i], path);
    int rc = pl_setup_blame(config, "cost.profile", pl_profile_read(path, profile));
    if (rc) return rc;
    for (int i = 0; i < PL_N_PROFILE; i++) {
        lists[i]->t = profile->column[i];
        lists[i]->n = i < PL_N_PROFILE - 1 ? profile->n : profile->links;
    }
    return PL_OK;
}

static int check_given_keys(const struct pl_config *config)
{
    for (int i = 0; i < PL_N_PROFILE; i++)
        if (pl_config_given(config, cost_keys[i]))
            return pl_fail(PL_ECONFIG, "%s: %s is given beside cost.type: roofline",
                           pl_config_where(config, cost_keys[i]), cost_keys[i]);
    if (!pl_config_given(config, "cost.profile")) return PL_OK;
    return pl_fail(PL_ECONFIG, "%s: cost.profile is given beside cost.type: roofline",
                   pl_config_where(config, "cost.profile"));
}

static int to_ticks(const char *what, const double *seconds, int n, pl_tick *ticks)
{
    for (int i = 0; i < n; i++) {
        if (!(seconds[i] < 2e6))
            return pl_fail(PL_ECONFIG,
                           "%s of entry %d takes %.3g s, at most 23 days fit", what, i,
                           seconds[i]);
        ticks[i] = (pl_tick)llround(seconds[i] * 1e12);
    }
    return PL_OK;
}

static struct pl_times sends_of(const struct pl_config *config)
{
    struct pl_times sends;
    sends.t = pl_config_times(config, "link.send", &sends.n);
    return sends;
}

static int cost_of_estimate(const struct pl_config *config, const struct pl_estimate *e,
                            const struct pl_layout *layout, struct pl_cost *cost)
{
    static const pl_tick none = 0;
    const struct pl_times zero = {&none, 1};
    struct pl_cost_spec spec = {zero,
                                zero,
                                zero,
                                zero,
                                zero,
                                sends_of(config),
                                pl_config_real(config, "cost.overlap")};
    int rc = pl_cost_new(layout, &spec, cost), C = e->chunks, P = e->devices;
    if (rc) return rc;
    rc = to_ticks("forward", e->forward, C, cost->forward);
    if (!rc) rc = to_ticks("backward", e->backward, C, cost->backward);
    if (!rc) rc = to_ticks("weight", e->weight, C, cost->weight);
    if (!rc) rc = to_ticks("update", e->update, C, cost->update);
    if (!rc) rc = to_ticks("link", e->next, P, cost->next);
    if (!rc) rc = to_ticks("link", e->prev, P, cost->prev);
    if (rc)
        pl_cost_free(cost);
    else
        pl_cost_refresh(cost);
    return rc;
}

static int roofline_cost(const struct pl_config *config, const struct pl_layout *layout,
                         struct pl_cost *cost, struct pl_estimate **estimate)
{
    struct pl_estimate made;
    int rc = check_given_keys(config);
    if (!rc) rc = pl_estimate_new(config, layout, &made);
    if (rc) return rc;
    rc = cost_of_estimate(config, &made, layout, cost);
    if (!rc) rc = pl_setup_links(config, &made, cost);
    if (rc || !estimate) {
        pl_estimate_free(&made);
        return rc;
    }
    *estimate = PL_NEW(1, struct pl_estimate);
    **estimate = made;
    return PL_OK;
}

static int given_cost(const struct pl_config *config, const struct pl_layout *layout,
                      struct pl_cost *cost)
{
    struct pl_cost_spec spec = {.overlap = pl_config_real(config, "cost.overlap"),
                                .send = sends_of(config)};
    struct pl_times *const lists[PL_N_PROFILE] = {
        &spec.forward, &spec.backward, &spec.weight, &spec.update, &spec.link};
    struct pl_profile profile = {.n = 0};
    int rc = PL_OK;
    if (*pl_config_text(config, "cost.profile"))
        rc = spec_of_profile(config, &profile, lists);
    else
        for (int i = 0; i < PL_N_PROFILE; i++)
            lists[i]->t = pl_config_times(config, cost_keys[i], &lists[i]->n);
    if (!rc) rc = pl_cost_new(layout, &spec, cost);
    if (rc && profile.n) /* its columns are not keys that anyone gave */
        rc = pl_fail(rc, "%s: cost.profile: %s: %s",
                     pl_config_where(config, "cost.profile"),
                     pl_config_text(config, "cost.profile"), pl_error_text());
    pl_profile_free(&profile);
    return rc ? rc : pl_setup_links(config, NULL, cost);
}

int pl_setup_cost(const struct pl_config *config, const struct pl_schedule_type *type,
                  const struct pl_shape *shape, struct pl_cost *cost,
                  struct pl_estimate **estimate)
{
    struct pl_layout layout;
    if (estimate) *estimate = NULL;
    pl_layout_new(type, shape, &layout);
    int rc = strcmp(pl_config_text(config, "cost.type"), "roofline")
                 ? given_cost(config, &layout, cost)
                 : roofline_cost(config, &layout, cost, estimate);
    pl_layout_free(&layout);
    return rc;
}
