/* With u in [0, 1]^n the keys on their scales, r(u) the log ratios and J = dr/du:
 *   (J'J + lambda diag J'J) du = -J'r, lambda down after success, up after failure;
 * a component that the step would push out of its range rests on the edge. Leaving
 * entry i out changes its residual to r_i / (1 - h_i), h_i = J_i (J'J)^-1 J_i'. */
#include "cli/fit_keys.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/mem.h"

enum { SCAN = 7, STEPS = 60, LEAVE_OUT = 4 };

struct solver {
    struct pl_fit *fit;
    double *r, *trial, *shifted; /* [n] residuals */
    double *J;                   /* [n * n_keys] */
    double u[PL_MAX_FIT];
    double done, planned; /* evaluations, for the progress */
};

/* Residuals */

/* Predicted times of all entries. */
static int predict(const struct pl_fit *fit, double *seconds)
{
    double of_row[PL_N_MEASURED];
    int rc = PL_OK;
    for (int i = 0; i < fit->n && !rc; i++) {
        const struct pl_fit_entry *e = &fit->entry[i];
        if (i == 0 || e->row != e[-1].row)
            rc = pl_measured_predict(fit->data, e->row, of_row);
        if (!rc) seconds[i] = of_row[e->what];
        if (!rc && !(seconds[i] > 0))
            rc = pl_fail(PL_ECONFIG, "%s:%d: no %s time comes out, cannot compare it",
                         fit->data->path, fit->data->row[e->row].line,
                         pl_measured_names[e->what]);
    }
    return rc;
}

static int residuals(struct solver *s, const double *u, double *r)
{
    struct pl_fit *fit = s->fit;
    int rc = pl_fit_keys_set(fit, u);
    if (!rc) rc = predict(fit, r);
    for (int i = 0; i < fit->n && !rc; i++) r[i] = log(r[i] / fit->entry[i].measured);
    fit->evaluations++;
    s->done += 1;
    pl_progress_update(fmin(s->done, s->planned), NULL);
    return rc;
}

static double square(const double *r, int n)
{
    double sum = 0;
    for (int i = 0; i < n; i++) sum += r[i] * r[i];
    return sum;
}

static int jacobian(struct solver *s)
{
    int n = s->fit->n, K = s->fit->n_keys, rc = PL_OK;
    for (int k = 0; k < K && !rc; k++) {
        double u[PL_MAX_FIT], h = s->u[k] > .5 ? -1e-4 : 1e-4, size = 0;
        memcpy(u, s->u, sizeof u);
        u[k] += h;
        rc = residuals(s, u, s->shifted);
        for (int i = 0; i < n && !rc; i++) {
            s->J[i * K + k] = (s->shifted[i] - s->r[i]) / h;
            size = fmax(size, fabs(s->J[i * K + k]));
        }
        if (!rc && size < 1e-9)
            rc = pl_fail(PL_ECONFIG,
                         "--fit: no measured time of %s depends on %s near %.6g",
                         s->fit->data->path, s->fit->key[k].key->name,
                         pl_fit_key_value(&s->fit->key[k], s->u[k]));
    }
    return rc;
}

/* Solve A x = b (K x K, positive definite) by elimination; false: singular. */
static bool solve(int K, double A[PL_MAX_FIT][PL_MAX_FIT], double *x)
{
    for (int k = 0; k < K; k++) {
        if (!(A[k][k] > 1e-300)) return false;
        for (int i = k + 1; i < K; i++) {
            double f = A[i][k] / A[k][k];
            for (int j = k; j < K; j++) A[i][j] -= f * A[k][j];
            x[i] -= f * x[k];
        }
    }
    for (int k = K - 1; k >= 0; k--) {
        for (int j = k + 1; j < K; j++) x[k] -= A[k][j] * x[j];
        x[k] /= A[k][k];
    }
    return true;
}

static bool at_edge(double u)
{
    return u <= 0 || u >= 1;
}

/* J'J and J'r over the keys that are free: not on an edge that -J'r pushes against. */
static void normal(const struct solver *s, double A[PL_MAX_FIT][PL_MAX_FIT], double *g)
{
    int n = s->fit->n, K = s->fit->n_keys;
    for (int k = 0; k < K; k++) {
        g[k] = 0;
        for (int i = 0; i < n; i++) g[k] += s->J[i * K + k] * s->r[i];
        for (int j = 0; j < K; j++) {
            A[k][j] = 0;
            for (int i = 0; i < n; i++) A[k][j] += s->J[i * K + k] * s->J[i * K + j];
        }
    }
    for (int k = 0; k < K; k++) {
        if (!(s->u[k] <= 0 && g[k] > 0) && !(s->u[k] >= 1 && g[k] < 0)) continue;
        for (int j = 0; j < K; j++) A[k][j] = A[j][k] = 0;
        A[k][k] = 1;
        g[k] = 0;
    }
}

/* One step that lowers the sum, or *moved 0 when none does. */
static int step(struct solver *s, double *lambda, double *moved)
{
    int K = s->fit->n_keys, n = s->fit->n, rc = PL_OK;
    double now = square(s->r, n), A[PL_MAX_FIT][PL_MAX_FIT], g[PL_MAX_FIT];
    normal(s, A, g);
    for (*moved = 0; *lambda < 1e10 && !rc; *lambda *= 10) {
        double B[PL_MAX_FIT][PL_MAX_FIT], d[PL_MAX_FIT], u[PL_MAX_FIT], size = 0;
        memcpy(B, A, sizeof B);
        for (int k = 0; k < K; k++) {
            B[k][k] *= 1 + *lambda;
            d[k] = -g[k];
        }
        if (!solve(K, B, d)) continue;
        for (int k = 0; k < K; k++) {
            u[k] = fmin(fmax(s->u[k] + d[k], 0), 1);
            size = fmax(size, fabs(u[k] - s->u[k]));
        }
        if (size < 1e-7) return PL_OK;
        rc = residuals(s, u, s->trial);
        if (rc || !(square(s->trial, n) < now)) continue;
        memcpy(s->u, u, sizeof u);
        memcpy(s->r, s->trial, sizeof *s->r * (size_t)n);
        *moved = size;
        *lambda = fmax(*lambda / 10, 1e-9);
        return PL_OK;
    }
    return rc;
}

/* Each key in turn: the best of SCAN places over its range and where it is. */
static int scan(struct solver *s)
{
    int n = s->fit->n, rc = residuals(s, s->u, s->r);
    for (int k = 0; k < s->fit->n_keys && !rc; k++) {
        double u[PL_MAX_FIT];
        memcpy(u, s->u, sizeof u);
        for (int i = 0; i < SCAN && !rc; i++) {
            u[k] = (double)i / (SCAN - 1);
            rc = residuals(s, u, s->trial);
            if (rc || !(square(s->trial, n) < square(s->r, n))) continue;
            s->u[k] = u[k];
            memcpy(s->r, s->trial, sizeof *s->r * (size_t)n);
        }
    }
    return rc;
}

static int minimise(struct solver *s)
{
    double lambda = 1e-3, moved = 1;
    int rc = scan(s);
    if (!rc) rc = jacobian(s);
    for (int i = 0; i < STEPS && moved > 1e-6 && !rc; i++) {
        rc = step(s, &lambda, &moved);
        if (!rc && moved > 0) rc = jacobian(s);
    }
    return rc;
}

/* Results */

static void leave_out(const struct solver *s)
{
    struct pl_fit *fit = s->fit;
    int K = fit->n_keys;
    double A[PL_MAX_FIT][PL_MAX_FIT], g[PL_MAX_FIT];
    normal(s, A, g);
    for (int i = 0; i < fit->n && fit->n >= LEAVE_OUT; i++) {
        double B[PL_MAX_FIT][PL_MAX_FIT], x[PL_MAX_FIT], h = 0;
        memcpy(B, A, sizeof B);
        for (int k = 0; k < K; k++) x[k] = at_edge(s->u[k]) ? 0 : s->J[i * K + k];
        if (!solve(K, B, x)) continue;
        for (int k = 0; k < K; k++) h += at_edge(s->u[k]) ? 0 : s->J[i * K + k] * x[k];
        if (h < 1 - 1e-9)
            fit->entry[i].left_out = fit->entry[i].measured * exp(s->r[i] / (1 - h));
    }
}

static void summarise(struct pl_fit *fit)
{
    double left_out = 0;
    for (int i = 0; i < fit->n; i++) {
        const struct pl_fit_entry *e = &fit->entry[i];
        double before = e->before / e->measured - 1,
               after = e->fitted / e->measured - 1;
        fit->error_before += fabs(before) / fit->n;
        fit->error_fitted += fabs(after) / fit->n;
        fit->bias_before += before / fit->n;
        fit->bias_fitted += after / fit->n;
        left_out += fabs(e->left_out / e->measured - 1) / fit->n;
    }
    fit->error_left_out = left_out;
}

static int run(struct solver *s)
{
    struct pl_fit *fit = s->fit;
    int rc = minimise(s);
    if (!rc) rc = pl_fit_keys_set(fit, s->u);
    if (rc) return rc;
    for (int k = 0; k < fit->n_keys; k++) {
        fit->key[k].value = pl_fit_key_value(&fit->key[k], s->u[k]);
        fit->key[k].edge = at_edge(s->u[k]);
    }
    for (int i = 0; i < fit->n; i++)
        fit->entry[i].fitted = fit->entry[i].measured * exp(s->r[i]);
    leave_out(s);
    return PL_OK;
}

static int solve_keys(struct pl_fit *fit)
{
    size_t n = (size_t)fit->n;
    struct solver s = {.fit = fit,
                       .r = PL_NEW(n, double),
                       .trial = PL_NEW(n, double),
                       .shifted = PL_NEW(n, double),
                       .J = PL_NEW(n * (size_t)fit->n_keys, double),
                       .planned = fit->n_keys * SCAN + 5 * (fit->n_keys + 1)};
    for (int k = 0; k < fit->n_keys; k++)
        s.u[k] = pl_fit_key_place(&fit->key[k], fit->key[k].before);
    pl_progress_begin("calibrate", s.planned, "fits");
    int rc = run(&s);
    pl_progress_end();
    free(s.r);
    free(s.trial);
    free(s.shifted);
    free(s.J);
    return rc;
}

static void add_entries(struct pl_fit *fit)
{
    const struct pl_measured *data = fit->data;
    fit->entry = PL_NEW(data->n * PL_N_MEASURED, struct pl_fit_entry);
    for (int i = 0; i < data->n; i++)
        for (int what = 0; what < PL_N_MEASURED; what++)
            if (!isnan(data->row[i].measured[what]))
                fit->entry[fit->n++] =
                    (struct pl_fit_entry){.row = i,
                                          .what = what,
                                          .measured = data->row[i].measured[what],
                                          .left_out = NAN};
}

int pl_fit_new(struct pl_measured *data, const char *keys, struct pl_fit *out)
{
    struct pl_fit made = {.data = data};
    int rc = keys ? pl_fit_keys_add(&made, keys) : PL_OK;
    if (rc) return rc;
    add_entries(&made);
    double *seconds = PL_NEW(made.n, double);
    rc = predict(&made, seconds);
    for (int i = 0; i < made.n; i++)
        made.entry[i].before = made.entry[i].fitted = seconds[i];
    free(seconds);
    if (!rc && keys) rc = solve_keys(&made);
    if (rc) {
        pl_fit_free(&made);
        return rc;
    }
    summarise(&made);
    *out = made;
    return PL_OK;
}

void pl_fit_free(struct pl_fit *fit)
{
    free(fit->entry);
    fit->entry = NULL;
    fit->n = 0;
}
