/* Optimizers against golden vectors (exact arithmetic of the rules), Newton-Schulz
 * against published and closed-form results, identities, schedules. */
#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "train/optim.h"
#include "tests/runner.h"

static const struct pl_device *const dev = &pl_device_ref;

struct golden {
    const char *name;
    struct pl_optim o;
    int rows, cols;
    enum pl_param_kind kind;
    double w0[6], g[3][6], want[3][6];
};

#define VECTOR                   \
    {1, -2},                     \
    {                            \
        {.5, -.25}, {-.25, .75}, \
        {                        \
            2, 1                 \
        }                        \
    }
#define MATRIX                                                  \
    {.5, -.25, .1, .2, .3, -.4},                                \
    {                                                           \
        {.3, -.1, .2, .4, -.5, .1}, {-.2, .6, .1, -.3, .4, .2}, \
        {                                                       \
            .7, .1, -.3, .2, .05, -.6                           \
        }                                                       \
    }

static const struct golden goldens[] = {
    {"sgd",
     {.lr = .1, .momentum = .9, .decay = .01, .coupled = true, .first_copies = true},
     1,
     2,
     PL_PARAM_VECTOR,
     VECTOR,
     {{.949, -1.973}, {.927151, -2.021727}, {.706559749, -2.163559573}}},
    {"sgd",
     {.lr = .1,
      .momentum = .9,
      .decay = .01,
      .coupled = true,
      .first_copies = true,
      .nesterov = true},
     1,
     2,
     PL_PARAM_VECTOR,
     VECTOR,
     {{.9031, -1.9487}, {.90757411, -2.06562747}, {.5081892082, -2.2911913308}}},
    {"adamw",
     {.lr = .1, .beta1 = .9, .beta2 = .95, .eps = 1e-8, .decay = .1},
     1,
     2,
     PL_PARAM_VECTOR,
     VECTOR,
     {{.8900000020, -1.8800000040},
      {.8542630579, -1.9101295798},
      {.7800870711, -1.9637884367}}},
    /* Muon hands what is not a hidden matrix to AdamW. */
    {"muon",
     {.lr = 9,
      .aux_lr = .1,
      .beta1 = .9,
      .beta2 = .95,
      .eps = 1e-8,
      .decay = 9,
      .aux_decay = .1},
     1,
     2,
     PL_PARAM_VECTOR,
     VECTOR,
     {{.8900000020, -1.8800000040},
      {.8542630579, -1.9101295798},
      {.7800870711, -1.9637884367}}},
    {"muon",
     {.lr = .02,
      .momentum = .95,
      .nesterov = true,
      .ema = true,
      .decay = .01,
      .ns_steps = 5},
     3,
     2,
     PL_PARAM_MATRIX,
     MATRIX,
     {{.48641511, -.24600834, .09099007, .18419335, .32241482, -.40386166},
      {.49057620, -.26152977, .07218643, .18679294, .30475871, -.41135269},
      {.46883697, -.27062308, .07774680, .17865995, .30316095, -.39615595}}},
    {"muon",
     {.lr = .02,
      .momentum = .95,
      .nesterov = true,
      .decay = .1,
      .scale = 1,
      .ns_steps = 5},
     3,
     2,
     PL_PARAM_MATRIX,
     MATRIX,
     {{.49518590, -.24838513, .09725727, .19514052, .30575683, -.40031487},
      {.49539998, -.25229242, .09174942, .19549593, .30016965, -.40165588},
      {.48828819, -.25437458, .09314271, .19281516, .29913463, -.39657756}}},
};
enum { N_GOLDEN = sizeof goldens / sizeof *goldens };

/* Weights after each of the three steps; rate multiplies. */
static void train3(const struct golden *g, const struct pl_optim *options, double rate,
                   float out[3][6])
{
    struct pl_optim o = *options;
    o.type = pl_optim_find(g->name);
    struct pl_param p = {.rows = g->rows, .cols = g->cols, .kind = g->kind};
    const size_t n = pl_param_size(&p);
    float w[6], grad[6], u[6], state[12] = {0}, scratch[64];
    ck_assert_uint_le(o.type->state_floats(&o, &p), 12);
    ck_assert_uint_le(o.type->scratch_floats(&o, &p), 64);
    for (size_t i = 0; i < n; i++) w[i] = (float)g->w0[i];
    for (int t = 0; t < 3; t++) {
        for (size_t i = 0; i < n; i++) grad[i] = (float)g->g[t][i];
        ck_assert_int_eq(
            o.type->step(&o, dev, &p, grad, w, state, scratch, t + 1, rate, u), 0);
        dev->axpby(n, -1, u, 1, w);
        memcpy(out[t], w, sizeof w);
    }
}

START_TEST(golden_vectors)
{
    const struct golden *g = &goldens[_i];
    float got[3][6];
    train3(g, &g->o, 1, got);
    for (int t = 0; t < 3; t++)
        for (int i = 0; i < g->rows * g->cols; i++)
            ck_assert_double_eq_tol(got[t][i], g->want[t][i], 1e-5);
}
END_TEST

/* The checker sees a wrong object: rate 2 instead of 1 must miss every vector. */
START_TEST(golden_vectors_can_fail)
{
    const struct golden *g = &goldens[_i];
    float got[3][6];
    train3(g, &g->o, 2, got);
    ck_assert_double_gt(fabs(got[0][0] - g->want[0][0]), 1e-3);
}
END_TEST

static double relative(const float *a, const float *b, size_t n)
{
    double d = 0, s = 0;
    for (size_t i = 0; i < n; i++) {
        d += (a[i] - b[i]) * (double)(a[i] - b[i]);
        s += b[i] * (double)b[i];
    }
    return sqrt(d / s);
}

/* NS is scale invariant, so the two momentum forms make one trajectory (both start at
 * 0; Jordan's eps acts on norms of .5: 1e-7). */
START_TEST(muon_ema_is_sum_form)
{
    struct pl_optim o = goldens[4].o;
    float ema[3][6], sum[3][6];
    train3(&goldens[4], &o, 1, ema);
    o.ema = false;
    train3(&goldens[4], &o, 1, sum);
    ck_assert_double_le(relative(ema[2], sum[2], 6), 1e-5);
    o.nesterov = false;
    train3(&goldens[4], &o, 1, sum);
    ck_assert_double_gt(relative(ema[2], sum[2], 6), 1e-3);
}
END_TEST

/* EMA momentum at rate lr is sum-form momentum at lr (1 - mu). */
START_TEST(sgd_ema_is_scaled_sum)
{
    struct pl_optim o = {.lr = .1, .momentum = .9, .ema = true, .nesterov = _i};
    float ema[3][6], sum[3][6];
    train3(&goldens[0], &o, 1, ema);
    o.ema = false;
    o.lr *= 1 - o.momentum;
    train3(&goldens[0], &o, 1, sum);
    ck_assert_double_le(relative(ema[2], sum[2], 2), 1e-6);
}
END_TEST

/* Decoupled decay and the schedule: with g = 0, u = rate lr decay w exactly. */
START_TEST(decay_acts_with_the_rate)
{
    struct golden g = {.name = "sgd", .rows = 1, .cols = 2, .w0 = {1, -2}};
    struct pl_optim o = {.lr = .1, .decay = .5};
    float got[3][6];
    train3(&g, &o, .5, got);
    ck_assert_double_eq_tol(got[0][0], 1 - .025, 1e-7);
    ck_assert_double_eq_tol(got[1][1], -2 * .975 * .975, 1e-6);
}
END_TEST

static void ns(int m, int n, float *X)
{
    float *scratch = calloc(4096, sizeof *scratch);
    ck_assert_int_eq(pl_newton_schulz(dev, m, n, 5, X, scratch), 0);
    free(scratch);
}

/* phi of single singular values (fp64); NS of diag(s) is diag(phi(s/||s||)). */
START_TEST(ns_of_a_diagonal)
{
    static const double sigma[] = {1, .9, .7, .5, .3, .1, .03, .01, .003, .001};
    static const double phi[] = {.69643641,  .68201067, 1.12032263, .76543853,
                                 1.07959229, .71212008, 1.12233203, .69891706,
                                 1.11035732, .47054395};
    double s = sigma[_i];
    float X[4] = {(float)s, 0, 0, (float)sqrt(1 - s * s)};
    ns(2, 2, X);
    ck_assert_double_eq_tol(X[0], phi[_i], 2e-5);
    ck_assert_double_eq_tol(X[1], 0, 1e-7);
}
END_TEST

START_TEST(ns_published_results)
{
    float a[16] = {.2450f, .1280f, .0010f, .4861f, .3499f, .2341f, .3737f, .9310f,
                   .9632f, .9400f, .5003f, .1285f, .3585f, .4744f, .7334f, .6123f};
    static const float A[16] = {-.0493f, .3418f, -.5932f, .5596f, .3052f, -.4529f,
                                .1063f,  .7101f, .6898f,  .5104f, .0184f, -.3814f,
                                -.4041f, .2930f, .7062f,  .2322f};
    float b[8] = {.83079288f, .13086341f, .34745056f, .05995961f,
                  .02953721f, .58638872f, .06437917f, .68301915f};
    static const float B[8] = {.8826f, .1575f, .3692f, .0714f,
                               .0445f, .6226f, .0836f, .7259f};
    ns(4, 4, a);
    ns(4, 2, b);
    for (int i = 0; i < 16; i++) ck_assert_double_eq_tol(a[i], A[i], 6e-4);
    for (int i = 0; i < 8; i++) ck_assert_double_eq_tol(b[i], B[i], 1e-4);
}
END_TEST

static void random_matrix(int m, int n, uint64_t seed, float *X)
{
    for (int i = 0; i < m * n; i++)
        X[i] = (float)pl_rng_normal(seed, PL_RNG_TEST, 0, (uint32_t)i);
}

/* NS(cU) = NS(U); NS(U^T) = NS(U)^T; NS(H U) = H NS(U) for a Householder reflection H.
 */
START_TEST(ns_identities)
{
    enum { m = 5, n = 8 };
    float U[m * n], V[m * n], W[m * n], T[m * n], back[m * n], v[m], norm = 0;
    random_matrix(m, n, 1, U);
    random_matrix(1, m, 2, v);
    for (int i = 0; i < m; i++) norm += v[i] * v[i];
    for (int i = 0; i < m; i++)
        for (int j = 0; j < n; j++) {
            float dot = 0;
            for (int k = 0; k < m; k++) dot += v[k] * U[k * n + j];
            V[i * n + j] = 37 * U[i * n + j];
            T[j * m + i] = U[i * n + j];
            W[i * n + j] = U[i * n + j] - 2 * v[i] * dot / norm;
        }
    ns(m, n, U);
    ns(m, n, V);
    ns(n, m, T);
    ns(m, n, W);
    for (int i = 0; i < m; i++)
        for (int j = 0; j < n; j++) back[i * n + j] = T[j * m + i];
    ck_assert_double_le(relative(V, U, m * n), 1e-5);
    ck_assert_double_le(relative(back, U, m * n), 1e-5);
    for (int i = 0; i < m; i++)
        for (int j = 0; j < n; j++) {
            float dot = 0;
            for (int k = 0; k < m; k++) dot += v[k] * U[k * n + j];
            V[i * n + j] = U[i * n + j] - 2 * v[i] * dot / norm;
        }
    ck_assert_double_le(relative(W, V, m * n), 1e-5);
}
END_TEST

START_TEST(schedules)
{
    struct pl_rate r = {.warmup = 4, .total = 20, .floor = .1, .decay_fraction = .25};
    for (r.kind = PL_RATE_CONSTANT; r.kind <= PL_RATE_WSD; r.kind++) {
        double last = 0;
        for (int64_t n = 0; n < 20; n++) {
            double f = pl_rate_at(&r, n);
            ck_assert(f > 0 && f <= 1);
            if (n < 4) ck_assert_double_eq_tol(f, (double)(n + 1) / 5, 1e-15);
            if (n > 4) ck_assert_double_le(f, last);
            last = f;
        }
    }
    r.kind = PL_RATE_COSINE;
    ck_assert_double_eq_tol(pl_rate_at(&r, 12), .55, 1e-15);
    r.kind = PL_RATE_WSD;
    ck_assert_double_eq_tol(pl_rate_at(&r, 15), 1, 1e-15);
    ck_assert_double_eq_tol(pl_rate_at(&r, 16), .1 + .9 * (1 - sqrt(.2)), 1e-15);
}
END_TEST

START_TEST(registry)
{
    const char *const *names = pl_optim_names();
    int i = 0;
    for (; pl_optim_types[i]; i++) {
        ck_assert_str_eq(names[i], pl_optim_types[i]->name);
        ck_assert_ptr_eq(pl_optim_find(names[i]), pl_optim_types[i]);
        ck_assert(pl_optim_types[i]->summary[0] && pl_optim_types[i]->source[0]);
    }
    ck_assert_ptr_null(names[i]);
    ck_assert_ptr_null(pl_optim_find("adam"));
    struct pl_optim o = {.type = pl_optim_find("adamw"), .beta1 = .9, .momentum = .5};
    ck_assert_double_eq(pl_optim_beta(&o), .9);
    o.type = pl_optim_find("muon");
    ck_assert_double_eq(pl_optim_beta(&o), .5);
}
END_TEST

static void fill(TCase *t)
{
    tcase_add_loop_test(t, golden_vectors, 0, N_GOLDEN);
    tcase_add_loop_test(t, golden_vectors_can_fail, 0, N_GOLDEN);
    tcase_add_test(t, muon_ema_is_sum_form);
    tcase_add_loop_test(t, sgd_ema_is_scaled_sum, 0, 2);
    tcase_add_test(t, decay_acts_with_the_rate);
    tcase_add_loop_test(t, ns_of_a_diagonal, 0, 10);
    tcase_add_test(t, ns_published_results);
    tcase_add_test(t, ns_identities);
    tcase_add_test(t, schedules);
    tcase_add_test(t, registry);
}

int main(void)
{
    return run_tests("optim", fill);
}
