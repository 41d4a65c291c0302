/* MARS in exact mode through the training loop, against the rule by hand in double: the
 * difference is of gradients of one batch, at any delay. */
#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/rng.h"
#include "tests/runner.h"
#include "toy.h"

enum { P = 2, W = 6, N = 12, B = 4 };
static const double H = .8, NOISE = .5, Q = .1, BETA1 = .9, BETA2 = .95, GAMMA = .1,
                    ETA = .02, DECAY = .1;

static void must(int rc)
{
    ck_assert_msg(rc == 0, "%s", pl_error_text());
}

/* The toy's gradient of coordinate i of stage s in batch n. */
static double gradient_of(int s, int i, int64_t n, uint64_t seed, double x)
{
    double g = Q * x * x * x;
    for (int k = 0; k < B; k++)
        g += H *
             (x - NOISE * pl_rng_normal(seed, PL_RNG_TEST, (uint64_t)(n * B + k),
                                        (uint32_t)(s * W + i))) /
             B;
    return g;
}

/* Weights of stage s after N updates; clip: norms above it are scaled to it. */
static void by_hand(int s, int tau, uint64_t seed, const float *x0, double clip,
                    double *out)
{
    double x[N + 1][W], m[W] = {0}, v[W] = {0};
    for (int i = 0; i < W; i++) x[0][i] = x0[i];
    for (int n = 0; n < N; n++) {
        double g[2][W], c[W], square[2] = {0}, length = 0;
        for (int before = 0; before < 2; before++) {
            const int at = n - before - tau < 0 ? 0 : n - before - tau;
            for (int i = 0; i < W; i++) {
                g[before][i] =
                    before && n == 0 ? 0 : gradient_of(s, i, n, seed, x[at][i]);
                square[before] += g[before][i] * g[before][i];
            }
            const double scale =
                clip > 0 ? fmin(1, clip / (sqrt(square[before]) + 1e-6)) : 1;
            for (int i = 0; i < W; i++) g[before][i] *= scale;
        }
        for (int i = 0; i < W; i++) {
            c[i] = g[0][i] + GAMMA * BETA1 / (1 - BETA1) * (g[0][i] - g[1][i]);
            length += c[i] * c[i];
        }
        for (int i = 0; i < W; i++) {
            c[i] /= fmax(1, sqrt(length));
            m[i] = BETA1 * m[i] + (1 - BETA1) * c[i];
            v[i] = BETA2 * v[i] + (1 - BETA2) * c[i] * c[i];
            x[n + 1][i] =
                x[n][i] - ETA * (m[i] / (1 - pow(BETA1, n + 1)) /
                                     (sqrt(v[i] / (1 - pow(BETA2, n + 1))) + 1e-8) +
                                 DECAY * x[n][i]);
        }
    }
    memcpy(out, x[N], sizeof x[N]);
}

/* Largest distance of a run's weights from those by hand. */
static double distance(const int64_t tau[P], double clip, bool exact)
{
    struct pl_versions v;
    struct pl_problem *p =
        toy_new(&pl_device_ref, P, 2, 3, PL_PARAM_MATRIX, H, NOISE, Q);
    struct pl_segment seg = toy_segment("none", NAN, PL_START_ZERO, N);
    pl_versions_constant(P, N, 1, tau, 1, &v);
    struct pl_run_spec spec = toy_spec(p, &v, &seg);
    struct pl_run_result r;
    float first[P][W], *blocks[P] = {first[0], first[1]};
    spec.batch = B;
    spec.clip = clip;
    spec.clip_scope = PL_CLIP_STAGE;
    spec.optim = pl_optim_find("mars")->defaults;
    spec.optim.type = pl_optim_find("mars");
    spec.optim.lr = ETA;
    spec.optim.decay = DECAY;
    spec.optim.beta1 = BETA1;
    spec.optim.beta2 = BETA2;
    spec.optim.gamma = GAMMA;
    spec.optim.exact = exact;
    must(p->type->init(p, spec.seed, blocks));
    must(pl_run(&spec, &r));
    ck_assert_int_eq(toy_of(p)->n_reads, exact ? 2 * N - 1 : N);
    double worst = 0;
    for (int s = 0; s < P; s++) {
        double want[W];
        by_hand(s, (int)tau[s], spec.seed, first[s], clip, want);
        for (int i = 0; i < W; i++)
            worst = fmax(worst, fabs(toy_of(p)->last[s * W + i] - want[i]));
    }
    pl_run_free(&r);
    pl_versions_free(&v);
    toy_free(p);
    return worst;
}

static const int64_t taus[][P] = {{0, 0}, {1, 1}, {3, 1}};

/* Float keeps N updates of sizes below 1 to some 1e-6. */
START_TEST(exact_mars_is_the_rule)
{
    ck_assert_double_le(distance(taus[_i], 0, true), 1e-5);
    ck_assert_double_le(distance(taus[_i], .3, true), 1e-5);
    ck_assert_double_gt(distance(taus[_i], 0, false), 1e-3);
}
END_TEST

/* One more gradient is held, of all stages. */
START_TEST(memory_counts_it)
{
    struct pl_versions v;
    struct pl_problem *p =
        toy_new(&pl_device_ref, P, 2, 3, PL_PARAM_MATRIX, H, NOISE, Q);
    struct pl_segment seg = toy_segment("none", NAN, PL_START_ZERO, N);
    pl_versions_constant(P, N, 1, taus[0], 1, &v);
    struct pl_run_spec spec = toy_spec(p, &v, &seg);
    struct pl_run_memory approximate, exact;
    spec.optim = pl_optim_find("mars-lion")->defaults;
    spec.optim.type = pl_optim_find("mars-lion");
    must(pl_run_memory(&spec, &approximate));
    spec.optim.exact = true;
    must(pl_run_memory(&spec, &exact));
    ck_assert_uint_eq(exact.gradients - approximate.gradients, sizeof(float) * P * W);
    ck_assert_uint_eq(exact.state, approximate.state);
    pl_versions_free(&v);
    toy_free(p);
}
END_TEST

static void fill(TCase *t)
{
    tcase_add_loop_test(t, exact_mars_is_the_rule, 0, 3);
    tcase_add_test(t, memory_counts_it);
}

int main(void)
{
    return run_tests("run_ahead", fill);
}
