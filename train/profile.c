#include "train/profile.h"

#include <assert.h>
#include <stdlib.h>

#include "base/mem.h"
#include "base/stats.h"
#include "train/net.h"
#include "train/run_state.h"

enum { FORWARD, BACKWARD, PASSES };

struct profile {
    const struct pl_run_spec *spec;
    struct pl_run_state run;
    struct pl_net *net;
    struct pl_batch batch; /* in flight */
    int stages, repetitions;
    double *laps[PASSES]; /* [repetitions * stages] seconds of F, of B and W */
    double *update;       /* [repetitions * stages] */
    double *unused;       /* [stages] */
    double *whole;        /* [repetitions] */
    struct pl_timed_table *ops[PASSES]; /* [stages] */
    struct pl_timed_table update_ops;
};

static enum pl_profile_phase phase_of(int pass, int row)
{
    switch (row) {
    case PL_TIMED_product_dw:
    case PL_TIMED_product_groups_dw:
    case PL_TIMED_embed_back:
    case PL_TIMED_add_rows_back:
    case PL_TIMED_bias_groups_back:
        return PL_PROFILE_W;
    case PL_TIMED_product_dx:
    case PL_TIMED_product_groups_dx:
        return PL_PROFILE_B;
    default:
        return pass == BACKWARD ? PL_PROFILE_B : PL_PROFILE_F;
    }
}

/* Everything issued before is done. */
static int lap_begin(const struct pl_device *dev, double *began)
{
    int rc = pl_timed_wait(dev);
    *began = pl_timed_now();
    return rc;
}

static int lap_end(const struct pl_device *dev, double began, double *seconds)
{
    int rc = pl_timed_wait(dev);
    *seconds = pl_timed_now() - began;
    return rc;
}

/* The batch through all stages and back. laps: seconds of [pass][stage], added to; or,
 * when that is NULL, the operations into p->ops. */
static int there_and_back(struct profile *p, double *const *laps)
{
    const struct pl_device *dev = p->net->dev;
    struct pl_pass pass = {.batch = &p->batch,
                           .rows = p->batch.B * p->batch.T,
                           .weights = p->run.forward,
                           .back = p->run.forward,
                           .grads = p->run.grads,
                           .scale = 1.0 / p->spec->versions->m};
    int rc = dev->zero(p->net->sums, PL_NET_SUMS * sizeof *p->net->sums);
    for (int i = 0; i < 2 * p->stages && !rc; i++) {
        const int way = i < p->stages ? FORWARD : BACKWARD;
        const int s = way == FORWARD ? i : 2 * p->stages - 1 - i;
        double began, seconds;
        pl_timed_into(laps ? NULL : &p->ops[way][s]);
        rc = lap_begin(dev, &began);
        if (!rc) rc = pl_net_stage(p->net, &pass, s, way == FORWARD);
        if (!rc) rc = lap_end(dev, began, &seconds);
        if (!rc && laps) laps[way][s] += seconds;
        pl_timed_into(NULL);
    }
    return rc;
}

/* The first microbatch of update n, in the pieces that the run computes at once. */
static int microbatch(struct profile *p, int64_t n, double *const *laps)
{
    const int most = p->run.plan.at_once, all = p->spec->batch / p->spec->versions->m;
    int rc = 0;
    for (int from = 0, B; from < all && !rc; from += B) {
        B = all - from < most ? all - from : most;
        rc = pl_run_batch(&p->run, n * p->spec->batch, from, B, all, &p->batch);
        if (!rc) rc = there_and_back(p, laps);
    }
    return rc;
}

/* Clearing, clipping, and the update of every stage; clipping, of all stages at once,
 * is shared out by their sizes. */
static int update(struct profile *p, int64_t n, double *seconds)
{
    const struct pl_device *dev = p->spec->device;
    const struct pl_run_plan *plan = &p->run.plan;
    double began, clip, all = 0, updates = 0, stale = 0;
    for (int s = 0; s < p->stages; s++) all += (double)plan->stages[s].floats;
    int rc = lap_begin(dev, &began);
    if (!rc) rc = pl_run_clip(&p->run, p->run.grads);
    if (!rc) rc = lap_end(dev, began, &clip);
    for (int s = 0; s < p->stages && !rc; s++) {
        rc = lap_begin(dev, &began);
        if (!rc)
            rc = pl_run_apply_stage(&p->run, n, s, pl_rate_at(&p->spec->rate, n),
                                    &updates, &stale);
        if (!rc)
            rc = dev->zero(p->run.grads[s], sizeof(float) * plan->stages[s].floats);
        if (!rc) rc = lap_end(dev, began, &seconds[s]);
        seconds[s] += clip * (double)plan->stages[s].floats / all;
    }
    return rc;
}

/* Weights that forward reads: the newest, before update n. */
static void read_newest(struct profile *p, int64_t n)
{
    p->run.store.version = n;
    for (int s = 0; s < p->stages; s++)
        p->run.forward[s] = pl_wstore_read(&p->run.store, s, n);
}

/* Repetition r, which counts when it is not negative, on update n. */
static int repetition(struct profile *p, int r, int64_t n)
{
    const int P = p->stages, at = r < 0 ? 0 : r * P;
    double *laps[PASSES] = {p->laps[FORWARD] + at, p->laps[BACKWARD] + at}, began;
    struct pl_row row;
    for (int s = 0; s < P; s++) laps[FORWARD][s] = laps[BACKWARD][s] = 0;
    read_newest(p, n);
    int rc = microbatch(p, n, laps);
    if (!rc && r >= 0) rc = microbatch(p, n, NULL);
    if (!rc) rc = update(p, n, p->update + at);
    if (rc) return rc;
    read_newest(p, n);
    if (r >= 0) {
        pl_timed_into(&p->update_ops);
        rc = update(p, n, p->unused);
        pl_timed_into(NULL);
    }
    read_newest(p, n);
    if (!rc) rc = lap_begin(p->spec->device, &began);
    if (!rc) rc = pl_run_gradient(&p->run, n, &row);
    if (!rc) rc = pl_run_ahead(&p->run, n);
    if (!rc) rc = pl_run_apply(&p->run, n, &row);
    if (!rc) rc = pl_run_ahead_keep(&p->run, n);
    if (!rc) rc = lap_end(p->spec->device, began, &p->whole[r < 0 ? 0 : r]);
    return rc;
}

/* Every version that can be read is the initial one. */
static int fill_ring(struct profile *p)
{
    const struct pl_wstore *store = &p->run.store;
    int rc = 0;
    for (int s = 0; s < p->stages; s++) {
        const struct pl_wstage *w = &store->stages[s];
        for (int v = 1; v < w->plan.depth && !rc; v++)
            rc = p->spec->device->copy(w->ring[v], w->ring[0],
                                       sizeof(float) * w->plan.floats);
    }
    return rc;
}

static int measure(struct profile *p, int warm_up,
                   void (*on_step)(void *context, int done, int of), void *context)
{
    const int64_t updates = p->spec->versions->updates;
    /* a device may issue a list of a version, keep it, and replay it from then on */
    for (int s = 0; s < p->stages; s++)
        if (2 * p->run.plan.stages[s].depth > warm_up)
            warm_up = 2 * p->run.plan.stages[s].depth;
    const int all = warm_up + p->repetitions;
    int64_t first = updates > all ? updates - all : 0;
    int rc = fill_ring(p);
    for (int k = 0; k < all && !rc; k++) {
        const int64_t n = first + k < updates ? first + k : updates - 1;
        rc = pl_run_enter(&p->run, n, false);
        if (!rc) rc = repetition(p, k - warm_up, n);
        if (on_step) on_step(context, k + 1, all);
    }
    return rc;
}

/* Parts of the seconds of a pass on a stage that are F, B and W. */
static void shares(const struct pl_timed_table *ops, int pass, double *share)
{
    double all = 0;
    for (int row = 0; row < PL_TIMED_ROWS; row++) {
        share[phase_of(pass, row)] += ops->row[row].seconds;
        all += ops->row[row].seconds;
    }
    for (int k = 0; k < PL_PROFILE_U && all > 0; k++) share[k] /= all;
}

static void add_ops(struct pl_timed_table *to, const struct pl_timed *from, int row)
{
    to->row[row].calls += from->calls;
    to->row[row].seconds += from->seconds;
    to->row[row].flops += from->flops;
    to->row[row].bytes += from->bytes;
}

/* Column s of an array [repetitions][stages]. */
static void column(const struct profile *p, const double *x, int s, double *out)
{
    for (int r = 0; r < p->repetitions; r++) out[r] = x[r * p->stages + s];
}

/* A rule that now and then does more is told by its mean. */
static double typical(const struct profile *p, const double *x)
{
    const struct pl_optim *o = &p->spec->optim;
    return o->refresh > 1 && pl_has_word(o->type->keys, "refresh")
               ? pl_mean(x, p->repetitions)
               : pl_quantile(x, p->repetitions, 0.5);
}

static void sum_up_stage(const struct profile *p, int s, struct pl_run_profile *out)
{
    const int R = p->repetitions;
    double *both = PL_NEW(R, double), *x = PL_NEW(R, double);
    for (int pass = 0; pass < PASSES; pass++) {
        double share[PL_PROFILE_PHASES] = {0};
        shares(&p->ops[pass][s], pass, share);
        column(p, p->laps[pass], s, x);
        for (int k = 0; k < PL_PROFILE_U; k++)
            out->seconds[k][s] += share[k] * pl_quantile(x, R, 0.5);
        for (int r = 0; r < R; r++) both[r] += x[r];
        for (int row = 0; row < PL_TIMED_ROWS; row++)
            add_ops(&out->ops[phase_of(pass, row)], &p->ops[pass][s].row[row], row);
    }
    column(p, p->update, s, x);
    out->seconds[PL_PROFILE_U][s] = typical(p, x);
    out->spread[s] = (pl_quantile(both, R, 0.75) - pl_quantile(both, R, 0.25)) /
                     pl_quantile(both, R, 0.5);
    free(both);
    free(x);
}

static void sum_up(const struct profile *p, struct pl_run_profile *out)
{
    const int B = p->spec->batch / p->spec->versions->m;
    *out = (struct pl_run_profile){
        .stages = p->stages,
        .repetitions = p->repetitions,
        .B = B,
        .T = p->spec->T,
        .update_s = typical(p, p->whole),
        .fused = p->spec->versions->m > 1 &&
                 pl_run_fused(p->spec, p->spec->versions->updates - 1),
        .spread = PL_NEW(p->stages, double),
        .boundary_bytes =
            (double)p->net->dev->real_bytes * B * p->spec->T * p->net->model.hidden};
    for (int k = 0; k < PL_PROFILE_PHASES; k++)
        out->seconds[k] = PL_NEW(p->stages, double);
    for (int s = 0; s < p->stages; s++) sum_up_stage(p, s, out);
    out->ops[PL_PROFILE_U] = p->update_ops;
}

int pl_run_profile(const struct pl_run_spec *spec, int warm_up, int repetitions,
                   void (*on_step)(void *context, int done, int of), void *context,
                   struct pl_run_profile *out)
{
    assert(spec->problem->type == &pl_problem_model);
    struct pl_run_spec plain = *spec;
    plain.diagnose = false;
    struct profile p = {.spec = &plain,
                        .net = spec->problem->state,
                        .stages = spec->problem->n_stages,
                        .repetitions = repetitions};
    int rc = pl_run_check(&plain);
    if (!rc) rc = pl_run_state_open(&plain, &p.run);
    if (rc) return rc;
    const int P = p.stages, cells = repetitions * P;
    for (int pass = 0; pass < PASSES; pass++) {
        p.laps[pass] = PL_NEW(cells, double);
        p.ops[pass] = PL_NEW(P, struct pl_timed_table);
    }
    p.update = PL_NEW(cells, double);
    p.unused = PL_NEW(P, double);
    p.whole = PL_NEW(repetitions, double);
    rc = measure(&p, warm_up, on_step, context);
    if (!rc) sum_up(&p, out);
    pl_run_state_close(&p.run);
    for (int pass = 0; pass < PASSES; pass++) {
        free(p.laps[pass]);
        free(p.ops[pass]);
    }
    free(p.update);
    free(p.unused);
    free(p.whole);
    return rc;
}

void pl_run_profile_free(struct pl_run_profile *profile)
{
    for (int k = 0; k < PL_PROFILE_PHASES; k++) free(profile->seconds[k]);
    free(profile->spread);
    *profile = (struct pl_run_profile){0};
}
