/* Shampoo's blocks, roots, start, grafting and decay; the refresh of bases that SOAP
 * and basis rotation share; all three on gradients that are not finite, or zero. */
#include <check.h>
#include <math.h>
#include <string.h>

#include "tests/runner.h"
#include "tests/second.h"
#include "train/optim/precondition.h"

/* Blocks of one element without grafting: Adam with eps under the root, which AdamW has
 * as an option. */
START_TEST(elements_are_adam)
{
    struct pl_optim o = second_options("shampoo");
    o.eps = .1;
    o.max_precond_dim = 1;
    struct tensor x =
        tensor_new(second_device(_i), &o, _i ? M : 1, _i ? N : MN, PL_PARAM_MATRIX);
    struct pl_optim adamw = second_options("adamw");
    adamw.eps = .1;
    adamw.eps_form = PL_EPS_UNDER;
    struct tensor y = tensor_new(second_device(_i), &adamw, M, N, PL_PARAM_MATRIX);
    double m[MN] = {0}, v[MN] = {0}, w[MN] = {0}, beside[MN] = {0}, g[MN];
    for (int t = 1; t <= STEPS; t++) {
        double bc1 = 1 - pow(.9, t), bc2 = 1 - pow(.95, t);
        gradient(t, g);
        ck_assert_int_eq(tensor_step(&x, g), 0);
        for (int i = 0; i < MN; i++) {
            m[i] += .1 * (g[i] - m[i]);
            v[i] += .05 * (g[i] * g[i] - v[i]);
            w[i] -= .1 * m[i] / bc1 / sqrt(v[i] / bc2 + .1);
            beside[i] -= .1 * m[i] / bc1 / (sqrt(v[i] / bc2) + .1);
        }
        ck_assert_int_eq(tensor_step(&y, g), 0);
        ck_assert_double_le(relative(y.w, w, MN), 1e-6);
        ck_assert_double_le(relative(x.w, w, MN), 1e-5);
    }
    ck_assert_double_gt(relative(x.w, beside, MN), 1e-2);
    tensor_free(&x), tensor_free(&y);
}
END_TEST

/* One gradient without momentum and grafting: L = G G^T and R = G^T G make of a square
 * G its polar factor; of a vector (or a tensor merged into one) g / sqrt(|g|^2 + eps).
 * There the factor has rank 1, and eps^-1/2 = 100 times a rounding is what its other
 * directions add. */
START_TEST(one_gradient_gives_the_polar_factor)
{
    static const int shape[][2] = {{N, N}, {1, 7}, {2, 4}};
    const int m = shape[_i][0], n = shape[_i][1];
    struct pl_optim o = second_options("shampoo");
    o.lr = 1;
    o.beta1 = 0;
    o.beta2 = 1;
    o.eps = _i ? 1e-4 : 1e-12;
    o.max_precond_dim = 8;
    struct tensor x = tensor_new(&pl_device_ref, &o, m, n, PL_PARAM_MATRIX);
    double g[MN], square = 1e-4;
    gradient(3, g);
    ck_assert_int_eq(tensor_step(&x, g), 0);
    for (int k = 0; k < m * n; k++) square += g[k] * g[k];
    for (int k = 0; k < m * n && _i; k++)
        ck_assert_double_eq_tol(x.u[k], g[k] / sqrt(square), 1e-4);
    for (int a = 0; a < N && !_i; a++)
        for (int b = 0; b < N; b++) {
            double sum = 0;
            for (int k = 0; k < N; k++) sum += (double)x.u[a * N + k] * x.u[b * N + k];
            ck_assert_double_eq_tol(sum, a == b, 1e-3);
        }
    tensor_free(&x);
}
END_TEST

/* Before start the direction is the filtered gradient, or Adam's where it is grafted;
 * roots are taken at start and every refresh after it, and stand between. */
START_TEST(starts)
{
    struct pl_optim o = second_options("shampoo");
    o.lr = 1;
    o.refresh = 2;
    o.start = 3;
    o.max_precond_dim = 8;
    o.graft = _i;
    struct tensor x = tensor_new(&pl_device_ref, &o, M, N, PL_PARAM_MATRIX);
    const size_t root = (size_t)((_i ? 2 : 1) * MN + M * M);
    double g[MN];
    float old[M * M];
    for (int t = 1; t <= STEPS; t++) {
        gradient(t, g);
        memcpy(old, x.state + root, sizeof old);
        ck_assert_int_eq(tensor_step(&x, g), 0);
        bool taken = memcmp(old, x.state + root, sizeof old) != 0;
        ck_assert_int_eq(taken, t == 3 || t == 4 || t == 6);
        for (int i = 0; i < MN && t == 1; i++)
            ck_assert_double_eq_tol(x.u[i], _i ? copysign(1, g[i]) : g[i], 1e-6);
    }
    tensor_free(&x);
}
END_TEST

/* Grafting takes each block's length from Adam's direction: at first the signs of G. */
START_TEST(grafted_blocks_have_the_length)
{
    static const int edge[2][3] = {{0, 3, M}, {0, 3, N}};
    struct pl_optim o = second_options("shampoo");
    o.lr = 1;
    o.max_precond_dim = 3;
    o.graft = true;
    struct tensor x = tensor_new(second_device(_i), &o, M, N, PL_PARAM_MATRIX);
    double g[MN];
    gradient(1, g);
    ck_assert_int_eq(tensor_step(&x, g), 0);
    for (int k = 0; k < 4; k++) {
        const int *r = edge[0] + k / 2, *c = edge[1] + k % 2;
        const double count = (r[1] - r[0]) * (c[1] - c[0]);
        double square = 0;
        for (int i = r[0]; i < r[1]; i++)
            for (int j = c[0]; j < c[1]; j++) square += pow(x.u[i * N + j], 2);
        ck_assert_double_eq_tol(square, count, 1e-4 * count);
    }
    tensor_free(&x);
}
END_TEST

/* Coupled decay is part of the gradient; beta3 weighs the gradient's own part. */
START_TEST(coupled_decay_and_beta3)
{
    struct pl_optim o = second_options("shampoo");
    o.lr = 1;
    o.decay = .5;
    o.decay_form = PL_DECAY_COUPLED;
    o.beta1 = .5;
    o.beta3 = .25;
    o.start = 9;
    struct tensor x = tensor_new(&pl_device_ref, &o, 1, 1, PL_PARAM_VECTOR);
    const double g[2] = {1, -3};
    *x.w = 2;
    ck_assert_int_eq(tensor_step(&x, g), 0); /* G = 2, H = .75 2 / (1 - .25), m = 1 */
    ck_assert_double_eq_tol(*x.w, 0, 1e-6);
    ck_assert_int_eq(tensor_step(&x, g + 1), 0); /* H = (.25 1 - .75 3) / (1 - .125) */
    ck_assert_double_eq_tol(*x.w, 2 / .875, 1e-6);
    tensor_free(&x);
}
END_TEST

static double words(const struct pl_optim *o, int rows, int cols)
{
    struct pl_param p = {.rows = rows, .cols = cols, .kind = PL_PARAM_MATRIX};
    return (double)pl_optim_state(o, &p);
}

/* m, v of the grafting, factors and roots: 2 + 2 (m/n + n/m) words a parameter for one
 * block; blocks keep less. */
START_TEST(state_words)
{
    struct pl_optim o = second_options("shampoo");
    const double m = 576, n = 1536;
    o.graft = true;
    o.max_precond_dim = 2048;
    ck_assert_double_eq(words(&o, 576, 1536), 2 * m * n + 2 * (m * m + n * n));
    o.max_precond_dim = 1024; /* blocks of 1024 and 512 columns */
    ck_assert_double_eq(words(&o, 576, 1536),
                        2 * m * n + 2 * (2 * m * m + 1024 * 1024 + 512 * 512));
    o.graft = false;
    ck_assert_double_eq(words(&o, 1, 576), m + 2 * m * m);
    ck_assert_double_eq(words(&o, 24, 24), m + 2 * m * m); /* merged */
    o.merge_dims = false;
    ck_assert_double_eq(words(&o, 24, 24), m + 2 * m * 2);
}
END_TEST

/* Bases in wrong order, moments known: refreshed, they are in order and v with them. */
START_TEST(refresh_sorts)
{
    float basis[2][M * M] = {{0}}, moment[2][M * M] = {{0}}, v[MN], scratch[100];
    static const int order[2][M] = {{3, 0, 4, 1, 2}, {2, 3, 1, 0}};
    static const int length[2] = {M, N};
    struct pl_sides s = {
        .dev = second_device(_i), .rows = M, .cols = N, .has = {true, true}};
    ck_assert_uint_le(pl_sides_scratch(&s), 100);
    for (int side = 0; side < 2; side++) {
        s.basis[side] = basis[side];
        s.moment[side] = moment[side];
        for (int k = 0; k < length[side]; k++) {
            /* vector k is axis (k + 1) mod n, its eigenvalue's rank order[k] */
            const int n = length[side], axis = (k + 1) % n;
            basis[side][k * n + axis] = 1;
            moment[side][axis * n + axis] = 10 - (float)order[side][k];
        }
    }
    for (int i = 0; i < MN; i++) v[i] = (float)(10 * order[0][i / N] + order[1][i % N]);
    ck_assert_int_eq(pl_sides_refresh(&s, v, scratch), 0);
    for (int side = 0; side < 2; side++)
        for (int e = 0; e < length[side] * length[side]; e++) {
            const int n = length[side], k = e / n, axis = e % n;
            bool own = moment[side][axis * n + axis] == 10 - (float)k;
            ck_assert_float_eq_tol(fabsf(basis[side][e]), own, 1e-6);
        }
    for (int i = 0; i < MN; i++)
        ck_assert_float_eq(v[i], (float)(10 * (i / N) + i % N));
}
END_TEST

/* Orthogonal iteration from the axes reaches the eigenvectors. */
START_TEST(refresh_converges)
{
    float left[3 * M * M] = {0}, right[3 * N * N] = {0}, x[MN], v[MN] = {0},
                       scratch[100];
    double g[MN];
    struct pl_sides s = {.dev = &pl_device_ref,
                         .rows = M,
                         .cols = N,
                         .has = {true, true},
                         .basis = {left, right},
                         .moment = {left + M * M, right + N * N}};
    struct pl_sides exact = s;
    exact.basis[0] = left + 2 * M * M;
    exact.basis[1] = right + 2 * N * N;
    for (int k = 0; k < M; k++) left[k * M + k] = 1;
    for (int k = 0; k < N; k++) right[k * N + k] = 1;
    for (int t = 0; t < 8; t++) {
        gradient(t, g);
        for (int i = 0; i < MN; i++) x[i] = (float)(g[i] * (1 + i % N) * (1 + i / N));
        ck_assert_int_eq(pl_sides_observe(&s, x, t ? .9 : 0), 0);
    }
    for (int k = 0; k < 60; k++) ck_assert_int_eq(pl_sides_refresh(&s, v, scratch), 0);
    ck_assert_int_eq(pl_sides_start(&exact), 0);
    for (int side = 0; side < 2; side++)
        for (int k = 0, n = side ? N : M; k < n; k++) {
            double along = 0;
            for (int i = k * n; i < (k + 1) * n; i++)
                along += (double)s.basis[side][i] * exact.basis[side][i];
            ck_assert_double_eq_tol(fabs(along), 1, 1e-4);
        }
}
END_TEST

static const char *const rules[] = {"soap", "shampoo", "basis-rotation"};

/* NaN, and finite numbers whose squares are not: an update that is not finite within
 * two calls, which ends a run as diverged; no error, no endless iteration. */
START_TEST(not_finite)
{
    struct pl_optim o = second_options(rules[_i]);
    o.merge_dims = false;
    for (int kind = 0; kind < 2; kind++)
        for (int d = 0; d < N_DEVICES; d++) {
            struct tensor x = tensor_new(second_device(d), &o, M, N, PL_PARAM_MATRIX);
            double g[MN], square;
            gradient(1, g);
            g[3] = kind ? 1e30 : NAN;
            for (int t = 0; t < 2; t++) ck_assert_int_eq(tensor_step(&x, g), 0);
            ck_assert_int_eq(x.dev->dot(MN, x.u, x.u, &square), 0);
            ck_assert(!isfinite(square));
            tensor_free(&x);
        }
}
END_TEST

/* Zero gradients (tokens never seen): zero updates, no NaN. */
START_TEST(zero_gradients)
{
    struct pl_optim o = second_options(rules[_i]);
    o.graft = true;
    struct tensor x = tensor_new(second_device(1), &o, M, N, PL_PARAM_MATRIX);
    const double g[MN] = {0};
    for (int t = 0; t < 3; t++) {
        ck_assert_int_eq(tensor_step(&x, g), 0);
        for (int i = 0; i < MN; i++) ck_assert(x.u[i] == 0);
    }
    tensor_free(&x);
}
END_TEST

static void fill(TCase *t)
{
    tcase_add_loop_test(t, elements_are_adam, 0, N_DEVICES);
    tcase_add_loop_test(t, one_gradient_gives_the_polar_factor, 0, 3);
    tcase_add_loop_test(t, starts, 0, 2);
    tcase_add_loop_test(t, grafted_blocks_have_the_length, 0, N_DEVICES);
    tcase_add_test(t, coupled_decay_and_beta3);
    tcase_add_test(t, state_words);
    tcase_add_loop_test(t, refresh_sorts, 0, N_DEVICES);
    tcase_add_test(t, refresh_converges);
    tcase_add_loop_test(t, not_finite, 0, 3);
    tcase_add_loop_test(t, zero_gradients, 0, 3);
}

int main(void)
{
    return run_tests("optim_shampoo", fill);
}
