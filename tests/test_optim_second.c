/* SOAP and basis rotation: golden vectors (exact arithmetic of the rules, Shampoo's
 * too), Adam where they must be it, the symmetries of their formulas, their state. */
#include <check.h>
#include <math.h>
#include <string.h>

#include "base/rng.h"
#include "sim/work.h"
#include "tests/runner.h"
#include "tests/second.h"

static const double W0[4] = {.5, -.25, .1, .2};
static const double G[4][4] = {
    {.3, -.1, .2, .4}, {-.2, .6, .1, -.3}, {.7, .1, -.3, .2}, {.05, -.6, .4, .3}};

static const struct golden {
    const char *rule;
    int refresh;
    double beta1, want[4][4];
} goldens[] = {
    {"soap",
     1,
     .95,
     {{.5, -.25, .1, .2},
      {.51599179, -.35650158, .06799444, .35899888},
      {.46133063, -.43897036, .06559902, .32403213},
      {.40283096, -.44330395, .01479311, .28748420}}},
    {"soap",
     2,
     .95,
     {{.5, -.25, .1, .2},
      {.51599179, -.35650158, .06799444, .35899888},
      {.45675975, -.43091260, .10676557, .36478186},
      {.39780416, -.44314950, .05248884, .31063977}}},
    {"shampoo",
     1,
     .9,
     {{.36501327, -.19179140, .04329140, .06801327},
      {.33177380, -.26932876, -.02840507, .04185438},
      {.26586010, -.31957521, -.03529799, .00544362},
      {.20527763, -.31574235, -.07547102, -.03803634}}},
};
enum { N_GOLDEN = sizeof goldens / sizeof *goldens };

static double golden_error(const struct golden *g, const struct pl_device *dev,
                           double rate)
{
    double worst = 0;
    struct pl_optim o = second_options(g->rule);
    o.lr = .1 * rate;
    o.decay = .1;
    o.beta1 = g->beta1;
    o.refresh = g->refresh;
    o.graft = true;
    o.graft_beta2 = .95;
    o.graft_eps = 1e-8;
    o.merge_dims = false;
    struct tensor x = tensor_new(dev, &o, 2, 2, PL_PARAM_MATRIX);
    for (int i = 0; i < 4; i++) x.w[i] = (float)W0[i];
    for (int t = 0; t < 4; t++) {
        ck_assert_int_eq(tensor_step(&x, G[t]), 0);
        for (int i = 0; i < 4; i++) worst = fmax(worst, fabs(x.w[i] - g->want[t][i]));
    }
    tensor_free(&x);
    return worst;
}

/* fp32 holds the fp64 vectors to 1e-5 (reference/optimizers.md section 18). */
START_TEST(golden_vectors)
{
    for (int d = 0; d < N_DEVICES; d++) {
        ck_assert_double_le(golden_error(&goldens[_i], second_device(d), 1), 1e-5);
        ck_assert_double_gt(golden_error(&goldens[_i], second_device(d), 1.01), 1e-4);
    }
}
END_TEST

/* Adam in double, eps beside the uncorrected root, or beside the corrected one. */
struct adam {
    double m[MN], v[MN], w[MN];
    int t;
};

static void adam_step(struct adam *a, const struct pl_optim *o, const double *g)
{
    double bc1 = 1 - pow(o->beta1, ++a->t), root = sqrt(1 - pow(o->beta2, a->t));
    double eps = o->eps_form == PL_EPS_CORRECTED ? o->eps * root : o->eps;
    for (int i = 0; i < MN; i++) {
        a->m[i] += (1 - o->beta1) * (g[i] - a->m[i]);
        a->v[i] += (1 - o->beta2) * (g[i] * g[i] - a->v[i]);
        a->w[i] -= o->lr * a->m[i] / bc1 * root / (sqrt(a->v[i]) + eps);
    }
}

/* Without bases SOAP is Adam that starts at the second gradient: a matrix that is too
 * large, a vector, and that with eps corrected. eps is large enough to be seen. */
START_TEST(soap_without_bases_is_adam)
{
    struct pl_optim o = second_options("soap");
    o.eps = .1;
    if (_i == 0) o.max_precond_dim = 3;
    if (_i == 2) o.eps_form = PL_EPS_CORRECTED;
    struct tensor x = tensor_new(&pl_device_ref, &o, _i ? 1 : M, _i ? MN : N,
                                 _i ? PL_PARAM_VECTOR : PL_PARAM_MATRIX);
    struct adam a = {.t = 0}, early = a;
    double g[MN];
    for (int t = 0; t < STEPS; t++) {
        gradient(t, g);
        ck_assert_int_eq(tensor_step(&x, g), 0);
        if (t) adam_step(&a, &o, g);
        adam_step(&early, &o, g);
        if (t) ck_assert_double_le(relative(x.w, a.w, MN), 1e-6);
    }
    ck_assert_double_gt(relative(x.w, early.w, MN), 1e-2); /* sees another start */
    tensor_free(&x);
}
END_TEST

/* Decay comes after the step: w1 = (w0 - s)(1 - eta decay). */
START_TEST(soap_decays_after_the_step)
{
    struct pl_optim o = second_options("soap");
    struct tensor plain = tensor_new(&pl_device_ref, &o, M, N, PL_PARAM_MATRIX);
    o.decay = 2;
    struct tensor decayed = tensor_new(&pl_device_ref, &o, M, N, PL_PARAM_MATRIX);
    double g[MN];
    for (int i = 0; i < MN; i++) plain.w[i] = decayed.w[i] = (float)i - 3;
    for (int t = 0; t < 2; t++) {
        gradient(t, g);
        ck_assert_int_eq(tensor_step(&plain, g), 0);
        ck_assert_int_eq(tensor_step(&decayed, g), 0);
        for (int i = 0; i < MN; i++) /* the first call changes nothing */
            ck_assert_double_eq_tol(decayed.w[i], plain.w[i] * (t ? .8 : 1), 1e-5);
    }
    tensor_free(&plain), tensor_free(&decayed);
}
END_TEST

START_TEST(soap_normalizes)
{
    struct pl_optim o = second_options("soap");
    o.normalize_grads = true;
    struct tensor x = tensor_new(&pl_device_ref, &o, M, N, PL_PARAM_MATRIX);
    double g[MN], square;
    for (int t = 0; t < 4; t++) {
        gradient(t, g);
        ck_assert_int_eq(tensor_step(&x, g), 0);
    }
    ck_assert_int_eq(x.dev->dot(MN, x.u, x.u, &square), 0);
    ck_assert_double_eq_tol(sqrt(square / MN), .1, 1e-7);
    tensor_free(&x);
}
END_TEST

/* Basis rotation of a 1 x 1 matrix turns nothing: the published code's Adam, and the
 * paper's. */
START_TEST(rotation_of_an_element_is_adam)
{
    struct pl_optim o = second_options("basis-rotation");
    o.eps = .1;
    o.refresh = 2;
    if (_i) o.eps_form = PL_EPS_UNDER;
    o.bias_correction = !_i;
    struct tensor x = tensor_new(&pl_device_ref, &o, 1, 1, PL_PARAM_MATRIX);
    double m = 0, v = 0, w = 0, g[MN];
    for (int t = 1; t <= STEPS; t++) {
        gradient(t, g);
        ck_assert_int_eq(tensor_step(&x, g), 0);
        m += .1 * (*g - m);
        v += .05 * (*g * *g - v);
        w -= _i ? .1 * m / sqrt(v + .1)
                : .1 * m / (1 - pow(.9, t)) * sqrt(1 - pow(.95, t)) / (sqrt(v) + .1);
        ck_assert_double_eq_tol(*x.w, w, 1e-6);
    }
    tensor_free(&x);
}
END_TEST

/* What is not a hidden matrix takes AdamW, eps corrected. */
START_TEST(rotation_leaves_the_rest_to_adamw)
{
    struct pl_optim o = second_options("basis-rotation"), adamw = o;
    o.eps = adamw.eps = .1;
    o.decay = adamw.decay = .2;
    adamw.eps_form = PL_EPS_CORRECTED;
    adamw.type = pl_optim_find("adamw");
    struct tensor x = tensor_new(&pl_device_ref, &o, M, N, PL_PARAM_EMBED);
    struct tensor y = tensor_new(&pl_device_ref, &adamw, M, N, PL_PARAM_EMBED);
    double g[MN];
    for (int t = 0; t < STEPS; t++) {
        gradient(t, g);
        ck_assert_int_eq(tensor_step(&x, g), 0);
        ck_assert_int_eq(tensor_step(&y, g), 0);
        ck_assert_mem_eq(x.w, y.w, sizeof(float) * MN);
    }
    tensor_free(&x), tensor_free(&y);
}
END_TEST

/* Orthogonal (n,n) by Gram-Schmidt of random rows. */
static void orthogonal(int n, uint64_t seed, double *Q)
{
    for (int i = 0; i < n; i++) {
        double *x = Q + i * n, norm = 0;
        for (int k = 0; k < n; k++)
            x[k] = pl_rng_normal(seed, PL_RNG_TEST, 1, (uint32_t)(i * n + k));
        for (int pass = 0; pass < 2; pass++)
            for (int j = 0; j < i; j++) {
                double along = 0;
                for (int k = 0; k < n; k++) along += x[k] * Q[j * n + k];
                for (int k = 0; k < n; k++) x[k] -= along * Q[j * n + k];
            }
        for (int k = 0; k < n; k++) norm += x[k] * x[k];
        for (int k = 0; k < n; k++) x[k] /= sqrt(norm);
    }
}

/* out = A X B^T */
static void turn(const double *A, const double *X, const double *B, double *out)
{
    double half[MN] = {0};
    for (int i = 0; i < M; i++)
        for (int j = 0; j < N; j++)
            for (int k = 0; k < M; k++) half[i * N + j] += A[i * M + k] * X[k * N + j];
    memset(out, 0, sizeof half);
    for (int i = 0; i < M; i++)
        for (int j = 0; j < N; j++)
            for (int k = 0; k < N; k++)
                out[i * N + j] += half[i * N + k] * B[j * N + k];
}

/* Distance of a run in coordinates that are turned, on the left and on the right, from
 * the turned run. */
static double turned_error(const struct pl_optim *o, bool left, bool right)
{
    double A[M * M] = {0}, B[N * N] = {0}, g[MN], h[MN], want[MN];
    for (int i = 0; i < M; i++) A[i * M + i] = 1;
    for (int i = 0; i < N; i++) B[i * N + i] = 1;
    if (left) orthogonal(M, 11, A);
    if (right) orthogonal(N, 12, B);
    struct tensor x = tensor_new(&pl_device_ref, o, M, N, PL_PARAM_MATRIX);
    struct tensor y = tensor_new(&pl_device_ref, o, M, N, PL_PARAM_MATRIX);
    for (int t = 0; t < STEPS; t++) {
        gradient(t, g);
        turn(A, g, B, h);
        ck_assert_int_eq(tensor_step(&x, g), 0);
        ck_assert_int_eq(tensor_step(&y, h), 0);
    }
    for (int i = 0; i < MN; i++) g[i] = x.w[i];
    turn(A, g, B, want);
    double error = relative(y.w, want, MN);
    tensor_free(&x), tensor_free(&y);
    return error;
}

/* A change of basis changes nothing but the basis. Rounding (1e-7) grows by the inverse
 * gaps of the moments' spectra and where an element of P is small beside its history:
 * 1e-3 leaves four digits for both; AdamW, which lives on the axes, misses it by far.
 * Basis rotation meets its first gradient in that gradient's own bases, where it is
 * diagonal and all else is rounding: eps has to be above that. */
START_TEST(bases_are_free)
{
    static const char *const rules[] = {"soap", "basis-rotation", "basis-rotation",
                                        "shampoo"};
    struct pl_optim o = second_options(rules[_i]), adamw = second_options("adamw");
    o.merge_dims = false;
    if (_i == 1 || _i == 2) o.eps = 1e-3;
    if (_i == 2) o.rotation_source = PL_ROTATE_FIRST;
    ck_assert_double_le(turned_error(&o, true, true), 1e-3);
    ck_assert_double_gt(turned_error(&adamw, true, true), .1);
    if (_i == 0) o.max_precond_dim = N; /* free on the other side only */
    if (_i == 1) o.one_sided = true;
    if (_i < 2) {
        ck_assert_double_le(turned_error(&o, false, true), 1e-3);
        ck_assert_double_gt(turned_error(&o, true, false), .05);
    }
}
END_TEST

/* With bases of the same first gradient that no later one turns, no bias correction and
 * no decay, SOAP and second-moment basis rotation differ by that gradient's own step:
 * none when it is too small to count (a basis has no scale). */
START_TEST(rotation_is_soap)
{
    struct pl_optim one = second_options("soap"),
                    other = second_options("basis-rotation");
    one.refresh = other.refresh = 1000;
    one.bias_correction = other.bias_correction = false;
    struct tensor soap = tensor_new(&pl_device_ref, &one, M, N, PL_PARAM_MATRIX);
    struct tensor own = tensor_new(&pl_device_ref, &other, M, N, PL_PARAM_MATRIX);
    double g[MN], first[MN];
    for (int t = 0; t < STEPS; t++) {
        gradient(t, g);
        for (int i = 0; i < MN; i++) first[i] = t ? g[i] : 1e-5 * g[i];
        ck_assert_int_eq(tensor_step(&soap, g), 0);
        ck_assert_int_eq(tensor_step(&own, first), 0);
        if (!t) memset(own.w, 0, sizeof(float) * MN);
        if (t) ck_assert_double_le(apart(&own, &soap), 1e-4);
    }
    tensor_free(&soap), tensor_free(&own);
}
END_TEST

/* One gradient again and again: M is a multiple of it, so both sources have one basis
 * (eps above the rounding off its diagonal); then other gradients, and they differ. */
START_TEST(sources_agree_without_noise)
{
    struct pl_optim o = second_options("basis-rotation");
    o.refresh = 2;
    o.eps = 1e-3;
    o.one_sided = _i;
    struct tensor second = tensor_new(&pl_device_ref, &o, M, N, PL_PARAM_MATRIX);
    o.rotation_source = PL_ROTATE_FIRST;
    struct tensor first = tensor_new(&pl_device_ref, &o, M, N, PL_PARAM_MATRIX);
    double g[MN];
    for (int t = 0; t < 2 * STEPS; t++) {
        gradient(t < STEPS ? 0 : t, g);
        ck_assert_int_eq(tensor_step(&second, g), 0);
        ck_assert_int_eq(tensor_step(&first, g), 0);
        if (t < STEPS) ck_assert_double_le(apart(&first, &second), 1e-3);
    }
    ck_assert_double_gt(apart(&first, &second), 1e-3);
    tensor_free(&second), tensor_free(&first);
}
END_TEST

static double words(const struct pl_optim *o, int rows, int cols,
                    enum pl_param_kind kind)
{
    struct pl_param p = {.rows = rows, .cols = cols, .kind = kind};
    return (double)pl_optim_state(o, &p);
}

/* SmolLM-135M's SOAP state (reference/optimizers.md section 14: 878M words), and the
 * simulator's count of each tensor. */
START_TEST(state_words)
{
    static const struct {
        int rows, cols, count;
        enum pl_param_kind kind;
    } tensors[] = {{49152, 576, 1, PL_PARAM_EMBED},  {576, 576, 60, PL_PARAM_MATRIX},
                   {192, 576, 60, PL_PARAM_MATRIX},  {1536, 576, 60, PL_PARAM_MATRIX},
                   {576, 1536, 30, PL_PARAM_MATRIX}, {1, 576, 61, PL_PARAM_VECTOR}};
    const struct pl_optim o = second_options("soap");
    double all = 0, params = 0, want;
    for (size_t i = 0; i < sizeof tensors / sizeof *tensors; i++) {
        const int rows = tensors[i].rows, cols = tensors[i].cols;
        bool hidden = tensors[i].kind == PL_PARAM_MATRIX;
        double own = words(&o, rows, cols, tensors[i].kind);
        ck_assert_int_eq(pl_optimizer_words("soap", cols, rows, hidden, &want), 0);
        ck_assert_double_eq_tol(own / rows / cols, want, 1e-12);
        all += tensors[i].count * own;
        params += (double)tensors[i].count * rows * cols;
    }
    ck_assert_double_eq(params, 134515008);
    ck_assert_double_eq_tol(all / 1e6, 878, .5);
    ck_assert_double_eq_tol(all / params, 6.53, .005);
}
END_TEST

/* Basis rotation by second moments keeps what SOAP keeps of hidden matrices; the bases
 * alone remain for first moments; one side is the shorter. */
START_TEST(state_words_of_rotation)
{
    struct pl_optim o = second_options("basis-rotation");
    const double m = 576, n = 1536, mn = m * n;
    ck_assert_double_eq(words(&o, 576, 1536, PL_PARAM_MATRIX),
                        2 * mn + 2 * (m * m + n * n));
    ck_assert_double_eq(words(&o, 49152, 576, PL_PARAM_EMBED), 2. * 49152 * 576);
    o.rotation_source = PL_ROTATE_FIRST;
    ck_assert_double_eq(words(&o, 576, 1536, PL_PARAM_MATRIX), 2 * mn + m * m + n * n);
    o.one_sided = true;
    ck_assert_double_eq(words(&o, 1536, 576, PL_PARAM_MATRIX), 2 * mn + m * m);
}
END_TEST

static void fill(TCase *t)
{
    tcase_add_loop_test(t, golden_vectors, 0, N_GOLDEN);
    tcase_add_loop_test(t, soap_without_bases_is_adam, 0, 3);
    tcase_add_test(t, soap_decays_after_the_step);
    tcase_add_test(t, soap_normalizes);
    tcase_add_loop_test(t, rotation_of_an_element_is_adam, 0, 2);
    tcase_add_test(t, rotation_leaves_the_rest_to_adamw);
    tcase_add_loop_test(t, bases_are_free, 0, 4);
    tcase_add_test(t, rotation_is_soap);
    tcase_add_loop_test(t, sources_agree_without_noise, 0, 2);
    tcase_add_test(t, state_words);
    tcase_add_test(t, state_words_of_rotation);
}

int main(void)
{
    return run_tests("optim_second", fill);
}
