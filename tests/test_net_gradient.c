/* The decoder's gradient against central differences of its loss, tensor by tensor. The
 * net, its layers and the device ref are compiled with double in the place of float
 * (tests/double.h), so that rounding hides nothing.
 *
 * Along w(t) = w + t d the loss is L(t); D(h) = L(h) - L(-h) is compared with
 * g . (w(h) - w(-h)). Bound: the truncation of D(h/2)/h, which is O(h^2), is a third of
 * its difference from D(h)/(2h) up to O(h^4) (taken whole), plus the rounding of two
 * losses, 2 ROUNDINGS eps L / (2 h'), where h' = h/2. */
#include <check.h>
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/rng.h"
#include "tests/runner.h"
#include "tests/net_fixture.h"

enum { B = 2, T = 5 };
static const double step = 2e-5; /* length of t d */
/* Roundings on the longest path: 2 blocks of at most 18 operations (norm,
 * product, bias, norm of heads, rotation, attention, product, bias, sum; norm, product,
 * bias, activation, product, bias, sum), embedding, position, norm, head, softmax; each
 * counted as one relative error of the loss. */
static const double roundings = 2 * 18 + 5;

/* (L(+t) - L(-t)) / 2t along d of tensor i; *exact = the same from g. */
static double slope(struct fixture *f, int i, const float *w, const float *g,
                    const double *d, double t, double *exact)
{
    size_t n = pl_param_size(&f->p->params[i]);
    float *moved = PL_NEW(n, float);
    double loss[2];
    *exact = 0;
    for (int side = 0; side < 2; side++) {
        double sign = side ? 1 : -1;
        for (size_t k = 0; k < n; k++) {
            moved[k] = (float)(w[k] + sign * t * d[k]);
            *exact += sign * moved[k] * g[k] / (2 * t);
        }
        fixture_set(f, i, moved);
        loss[side] = fixture_loss(f);
        loss[side] += f->p->routers.aux;
    }
    fixture_set(f, i, w);
    free(moved);
    return (loss[1] - loss[0]) / (2 * t);
}

/* Unit direction: along g for kind 0, else random. */
static void direction(int kind, int tensor, size_t n, const float *g, double *d)
{
    double norm = 0;
    for (size_t k = 0; k < n; k++) {
        d[k] = kind == 0 ? g[k]
                         : pl_rng_normal((uint64_t)kind, PL_RNG_TEST, (uint64_t)tensor,
                                         (uint32_t)k);
        norm += d[k] * d[k];
    }
    ck_assert_double_gt(norm, 0);
    for (size_t k = 0; k < n; k++) d[k] /= sqrt(norm);
}

/* A bias of the keys adds the same to all scores of a query, unless they are normed or
 * rotated after it: its gradient is 0. */
static bool is_flat(const struct pl_model *m, const char *name)
{
    return m->positions && m->qk_norm == PL_QK_NONE && strstr(name, "k_proj.bias");
}

/* Worst error over its bound, over all tensors and directions; above 1: wrong gradient.
 * The bound itself must be small against the gradient, or the check would prove
 * nothing. */
static double worst_ratio(struct fixture *f, const struct pl_model *m)
{
    double loss = fixture_gradient(f, 1), worst = 0;
    ck_assert(loss == fixture_loss(f));
    for (int i = 0; i < f->p->n_params; i++) {
        size_t n = pl_param_size(&f->p->params[i]);
        if (f->p->params[i].kind == PL_PARAM_BALANCE) continue; /* no gradient */
        float *w = fixture_get(f, f->weights, i), *g = fixture_get(f, f->grads, i);
        double *d = PL_NEW(n, double), norm = 0;
        for (size_t k = 0; k < n; k++) norm += (double)g[k] * g[k];
        if (is_flat(m, f->p->params[i].name))
            ck_assert_double_lt(sqrt(norm), roundings * DBL_EPSILON * loss);
        bool unvisited = m->experts && norm == 0; /* expert */
        int first = is_flat(m, f->p->params[i].name) ? 4 : unvisited;
        for (int kind = first; kind < 4; kind++) {
            double exact, exact_wide;
            direction(kind, i, n, g, d);
            double fine = slope(f, i, w, g, d, step / 2, &exact);
            double wide = slope(f, i, w, g, d, step, &exact_wide);
            double bound =
                fabs(fine - wide) + 2 * roundings * DBL_EPSILON * loss / step;
            ck_assert_msg(bound < 0.01 * sqrt(norm) || unvisited,
                          "%s: bound %g, gradient %g", f->p->params[i].name, bound,
                          sqrt(norm));
            worst = fmax(worst, fabs(fine - exact) / bound);
        }
        free(w);
        free(g);
        free(d);
    }
    return worst;
}

static double check_model(const struct pl_device *device, const struct pl_model *model,
                          int P)
{
    struct fixture f;
    fixture_open(&f, device, model, P, B, T);
    fixture_scatter(&f, 0.4);
    double worst = worst_ratio(&f, model);
    fixture_free(&f);
    return worst;
}

static double check_device(const struct pl_device *device, bool tied, int P)
{
    struct pl_model model = tiny;
    model.tied = tied;
    return check_model(device, &model, P);
}

START_TEST(agrees_with_differences)
{
    ck_assert_double_le(check_device(&pl_device_ref, _i % 2, 1 + _i / 2), 1);
}
END_TEST

/* Every mixture of the switches of a dense model. */
enum { MIXTURES = 2 * 2 * 4 * 3 * 2 };

static struct pl_model mixture(int i)
{
    struct pl_model m = tiny;
    m.tied = i % 3 == 0;
    m.norm = (enum pl_norm)(i % 2);
    m.mlp = (enum pl_mlp)(i / 2 % 2);
    m.bias = (enum pl_bias)(i / 4 % 4);
    m.qk_norm = (enum pl_qk_norm)(i / 16 % 3);
    m.positions = i / 48 % 2 ? T + 2 : 0;
    return m;
}

START_TEST(mixtures_agree)
{
    struct pl_model m = mixture(_i);
    double worst = check_model(&pl_device_ref, &m, 1 + _i % 2);
    ck_assert_msg(worst <= 1, "mixture %d: %g", _i, worst);
}
END_TEST

static int no_rope_back(int rows, int t, int n_heads, int head_dim, int ld,
                        double theta, int sign, float *x)
{
    if (sign < 0) return 0;
    return pl_device_ref.rope(rows, t, n_heads, head_dim, ld, theta, sign, x);
}

static int weak_swiglu_back(int rows, int f, const float *gate_up, const float *dh,
                            float *dgate_up)
{
    int rc = pl_device_ref.swiglu_back(rows, f, gate_up, dh, dgate_up);
    for (int i = 0; i < rows * 2 * f; i++) dgate_up[i] *= 0.9f;
    return rc;
}

/* Mixtures of experts: scores, norming, shared experts without and with gate, balance
 * over microbatches and sequences; with a selection bias, biases or a dense layer in
 * some. The choices do not change within the tiny step. */
enum { ROUTINGS = 2 * 2 * 3 * 2 };

static struct pl_model routed(int i)
{
    struct pl_model m = tiny;
    m.experts = 4;
    m.experts_per_token = 1 + i % 3;
    m.expert_ffn = 5;
    m.scoring = (enum pl_scoring)(i % 2);
    m.norm_topk = i / 2 % 2;
    m.shared_ffn = i / 4 % 3 ? 6 : 0;
    m.shared_gate = i / 4 % 3 == 2;
    m.seq_aux = i / 12;
    m.routed_scale = i % 5 ? 0 : 2.5;
    m.router_bias = i % 4 == 1;
    m.dense_layers = i % 7 == 0;
    m.mlp = i % 5 == 1 ? PL_MLP_GELU : PL_MLP_SWIGLU;
    m.bias = i % 5 == 1 ? PL_BIAS_ALL : PL_BIAS_NONE;
    m.aux_loss = i == 5 ? 0 : 0.3;
    m.z_loss = i == 5 ? 0 : 0.1;
    return m;
}

START_TEST(routings_agree)
{
    struct pl_model m = routed(_i);
    double worst = check_model(&pl_device_ref, &m, 1 + _i % 2);
    ck_assert_msg(worst <= 1, "routing %d: %g", _i, worst);
}
END_TEST

static int unweighted_route_back(const struct pl_routing *route, const float *logits,
                                 const float *dweight, double factor, float *dlogits,
                                 float *dbias)
{
    struct pl_routing other = *route;
    other.balance = 0;
    return pl_device_ref.route_back(&other, logits, dweight, factor, dlogits, dbias);
}

static int weak_combine_back(int rows, int n, int d, const int32_t *slot,
                             const float *w, const float *x, const float *dy, float *dx,
                             float *dw)
{
    int rc = pl_device_ref.combine_back(rows, n, d, slot, w, x, dy, dx, dw);
    dw[0] *= 0.9f;
    return rc;
}

START_TEST(finds_wrong_routers)
{
    struct pl_model m = routed(14);
    struct pl_device wrong = pl_device_ref;
    wrong.route_back = unweighted_route_back;
    ck_assert_double_gt(check_model(&wrong, &m, 1), 3);
    wrong = pl_device_ref;
    wrong.combine_back = weak_combine_back;
    ck_assert_double_gt(check_model(&wrong, &m, 1), 3);
}
END_TEST

static int short_add_rows_back(int rows, int period, int d, const float *dy, float *dx)
{
    return pl_device_ref.add_rows_back(rows - 1, period, d, dy, dx);
}

/* The gain's gradient from what is no longer there. */
static int late_headnorm_back(int rows, int n_heads, int d, int ld, const float *x,
                              const float *gain, const float *rstd, float *g,
                              float *dgain)
{
    float unused[64] = {0};
    int rc =
        pl_device_ref.headnorm_back(rows, n_heads, d, ld, x, gain, rstd, g, unused);
    return rc ? rc
              : pl_device_ref.headnorm_back(1, 1, d, ld, x, gain, rstd, unused, dgain);
}

START_TEST(finds_wrong_gradients)
{
    struct pl_device wrong = pl_device_ref;
    wrong.rope = no_rope_back;
    ck_assert_double_gt(check_device(&wrong, false, 1), 3);
    wrong = pl_device_ref;
    wrong.swiglu_back = weak_swiglu_back;
    ck_assert_double_gt(check_device(&wrong, false, 1), 3);
    struct pl_model gpt2 = mixture(79), normed = mixture(16);
    wrong = pl_device_ref;
    wrong.add_rows_back = short_add_rows_back;
    ck_assert_double_gt(check_model(&wrong, &gpt2, 1), 3);
    wrong = pl_device_ref;
    wrong.headnorm_back = late_headnorm_back;
    ck_assert_double_gt(check_model(&wrong, &normed, 1), 3);
}
END_TEST

static void fill(TCase *t)
{
    tcase_set_timeout(t, 60);
    tcase_add_loop_test(t, agrees_with_differences, 0, 4);
    tcase_add_loop_test(t, mixtures_agree, 0, MIXTURES);
    tcase_add_test(t, finds_wrong_gradients);
    tcase_add_loop_test(t, routings_agree, 0, ROUTINGS);
    tcase_add_test(t, finds_wrong_routers);
}

int main(void)
{
    return run_tests("net_gradient", fill);
}
