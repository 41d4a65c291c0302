/* Validation: mean loss over evenly spaced windows (problems without data: the loss
 * itself, and norms of its gradient) at the newest version on every stage. */
#include "train/run_state.h"

#include <math.h>

#include "base/err.h"

int pl_run_loss(struct pl_run_state *run, const struct pl_data *data,
                const float *const *weights, double *loss)
{
    const struct pl_run_spec *spec = run->spec;
    const int windows = spec->eval_sequences, most = run->plan.at_once;
    if (!data) {
        struct pl_batch batch = {.B = 1, .T = 1, .seed = spec->seed};
        return spec->problem->type->loss(spec->problem, &batch, weights, loss);
    }
    double sum = 0;
    int rc = 0;
    for (int first = 0, B; first < windows && !rc; first += B) {
        B = windows - first < most ? windows - first : most;
        const int left = windows - first - B;
        const struct pl_piece piece = {.valid = data, .first = first, .B = B};
        const struct pl_piece next = {
            .valid = data, .first = first + B, .B = left < most ? left : most};
        struct pl_batch batch = {
            .B = B, .T = spec->T, .seed = spec->seed, .index = first};
        double part = 0;
        if (first && pl_run_stopped(spec)) rc = pl_fail(PL_EINTR, "interrupted");
        if (!rc) rc = pl_feed_take(run, &piece, left ? &next : NULL, &batch);
        if (!rc) rc = spec->problem->type->loss(spec->problem, &batch, weights, &part);
        if (!rc) pl_run_routing_add(run, (double)B / windows);
        sum += part * B;
    }
    *loss = sum / windows;
    return rc;
}

/* The exact gradient at weights, where the problem has one. */
static int slope_at(struct pl_run_state *run, const float *const *weights, double *norm,
                    double *dual)
{
    struct pl_problem *p = run->spec->problem;
    *norm = *dual = NAN;
    return p->type->slope ? p->type->slope(p, weights, norm, dual) : 0;
}

int pl_run_eval(struct pl_run_state *run, struct pl_eval *eval)
{
    const int64_t n = run->store.version;
    bool corrected = false;
    for (int s = 0; s < run->plan.n_stages; s++) {
        run->forward[s] = pl_wstore_stored(&run->store, s);
        corrected |= run->store.stages[s].c_last != 0 && !run->store.stages[s].at_read;
    }
    eval->update = n;
    eval->time_s = n ? run->spec->versions->done_s[n - 1] : 0;
    pl_run_routing_begin(run);
    int rc = pl_run_loss(run, run->spec->data, run->forward, &eval->loss);
    eval->load_max = pl_run_routing_top(run);
    eval->bits_per_byte = eval->loss / log(2) / run->spec->bytes_per_token;
    if (!rc) rc = slope_at(run, run->forward, &eval->grad_norm, &eval->grad_dual);
    eval->loss_y = eval->loss;
    eval->grad_dual_y = eval->grad_dual;
    if (rc || !corrected || n == 0) return rc;
    for (int s = 0; s < run->plan.n_stages && !rc; s++) {
        const struct pl_wstage *w = &run->store.stages[s];
        if (w->c_last == 0 || w->at_read) continue;
        rc = pl_wstore_y(&run->store, s, run->grads[s]);
        run->forward[s] = run->grads[s];
    }
    double norm_y;
    if (!rc) rc = pl_run_loss(run, run->spec->data, run->forward, &eval->loss_y);
    return rc ? rc : slope_at(run, run->forward, &norm_y, &eval->grad_dual_y);
}
