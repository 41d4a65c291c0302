/* Which weights a gradient is taken at: the fidelities on the toy, which records what
 * it was given, and on the real net; the delay-dependent rate; decay at the stale
 * version. */
#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/mem.h"
#include "base/rng.h"
#include "toy.h"
#include "tests/runner.h"

enum { UPDATES = 24, STAGES = 3, WIDTH = 2, ROW = STAGES * WIDTH };
static const struct pl_device *const dev = &pl_device_ref;

struct outcome {
    struct pl_problem *toy; /* with its records */
    struct pl_run_result result;
};

static struct pl_optim descent(double lr)
{
    return (struct pl_optim){.type = pl_optim_find("sgd"), .lr = lr};
}

static void train(const struct pl_versions *v, enum pl_fidelity fidelity,
                  const struct pl_optim *o, const struct pl_rate *rate, bool stale,
                  double h, struct outcome *out)
{
    out->toy = toy_new(dev, STAGES, 1, WIDTH, PL_PARAM_VECTOR, h, .1, h / 2);
    const struct pl_segment segment = toy_segment("none", NAN, PL_START_HOLD, UPDATES);
    struct pl_run_spec spec = toy_spec(out->toy, v, &segment);
    spec.batch = v->m;
    spec.fidelity = fidelity;
    spec.optim = *o;
    spec.decay_stale = stale;
    spec.replay = true;
    if (rate) spec.rate = *rate;
    ck_assert_msg(pl_run(&spec, &out->result) == 0, "%s", pl_error_text());
}

static void done(struct outcome *o)
{
    pl_run_free(&o->result);
    toy_free(o->toy);
}

static const float *at(const float *rows, int64_t n, int stage)
{
    return rows + n * ROW + stage * WIDTH;
}

/* Without stash forward reads version n - tau, backward version n: what forward reads
 * tau updates later. */
START_TEST(backward_reads_the_live_version)
{
    static const int64_t tau[STAGES] = {3, 1, 0};
    const struct pl_optim o = descent(.05);
    struct pl_versions v;
    struct outcome out;
    pl_versions_constant(STAGES, UPDATES, 1, tau, 1, &v);
    train(&v, PL_FIDELITY_NOSTASH, &o, NULL, false, 1, &out);
    const struct toy *toy = toy_of(out.toy);
    for (int s = 0; s < STAGES; s++)
        for (int64_t n = 0; n + tau[s] < UPDATES; n++)
            ck_assert_mem_eq(at(toy->backs, n, s), at(toy->reads, n + tau[s], s),
                             sizeof(float) * WIDTH);
    /* and it is another version */
    ck_assert_mem_ne(at(toy->backs, 5, 0), at(toy->reads, 5, 0), sizeof(float) * WIDTH);
    done(&out);
    /* A map that says what was live is believed. */
    for (int64_t i = 4; i < UPDATES; i++) v.backward[i] = i - 1;
    train(&v, PL_FIDELITY_NOSTASH, &o, NULL, false, 1, &out);
    ck_assert_mem_eq(at(toy_of(out.toy)->backs, 6, 0), at(toy_of(out.toy)->reads, 8, 0),
                     sizeof(float) * WIDTH);
    done(&out);
    /* The same map under stash: backward reads what forward read. */
    train(&v, PL_FIDELITY_STASH, &o, NULL, false, 1, &out);
    ck_assert_mem_eq(toy_of(out.toy)->backs, toy_of(out.toy)->reads,
                     sizeof(float) * ROW * UPDATES);
    done(&out);
    pl_versions_free(&v);
}
END_TEST

/* Delays mixed inside a group and drawn at random up to 64: every fidelity reads what
 * the map says. The toy's coordinates do not interact, so that the shares of common
 * gradients are the stages' own gradients, bit for bit. */
START_TEST(any_map_is_executed)
{
    const struct pl_optim o = descent(.02);
    enum { M = 2 };
    struct pl_versions v;
    struct outcome own, common;
    const int64_t none[STAGES] = {0};
    pl_versions_constant(STAGES, UPDATES, M, none, 1, &v);
    for (int64_t i = 0; i < STAGES * v.n_micro; i++) {
        int64_t n = i % v.n_micro / M;
        int64_t tau = (int64_t)pl_rng_below(7, PL_RNG_TEST, (uint64_t)i, 0, 65);
        v.forward[i] = v.backward[i] = tau > n ? 0 : n - tau;
    }
    train(&v, PL_FIDELITY_STASH, &o, NULL, false, 1, &own);
    train(&v, PL_FIDELITY_QUEUE, &o, NULL, false, 1, &common);
    ck_assert_int_eq(toy_of(own.toy)->n_reads, UPDATES * M);
    ck_assert_int_gt(toy_of(common.toy)->n_reads, UPDATES * M);
    ck_assert_mem_eq(toy_of(own.toy)->last, toy_of(common.toy)->last,
                     sizeof(float) * ROW);
    /* versions that two microbatches share were read as one */
    for (int64_t i = 0; i < v.n_micro; i++)
        for (int64_t k = 0; k < i; k++)
            if (v.forward[i] == v.forward[k])
                ck_assert_mem_eq(at(toy_of(own.toy)->reads, i, 0),
                                 at(toy_of(own.toy)->reads, k, 0),
                                 sizeof(float) * WIDTH);
    done(&own);
    done(&common);
    pl_versions_free(&v);
}
END_TEST

/* queue reads all stages at one version in each gradient, one gradient a version. */
START_TEST(queue_has_one_common_point)
{
    static const int64_t tau[STAGES] = {2, 2, 0};
    const struct pl_optim o = descent(.05);
    struct pl_versions v;
    struct outcome out;
    pl_versions_constant(STAGES, UPDATES, 1, tau, 1, &v);
    train(&v, PL_FIDELITY_QUEUE, &o, NULL, false, 1, &out);
    const struct toy *toy = toy_of(out.toy);
    ck_assert_int_eq(toy->n_reads, 2 * UPDATES - 1); /* update 0: one version */
    for (int64_t n = 3; n < UPDATES; n++) { /* calls 2n-1 (version n-2) and 2n (n) */
        ck_assert_mem_eq(at(toy->reads, 2 * n - 1, 2), at(toy->reads, 2 * (n - 2), 2),
                         sizeof(float) * WIDTH);
        ck_assert_mem_eq(at(toy->reads, 2 * n - 1, 0), at(toy->reads, 2 * (n - 2), 0),
                         sizeof(float) * WIDTH);
        ck_assert_int_eq(toy->first[2 * n - 1], toy->first[2 * n]);
    }
    done(&out);
    pl_versions_free(&v);
}
END_TEST

/* x[n+1] = x[n] - eta tau^-rho(n) g at the read version, tau the group's mean. */
START_TEST(rate_follows_delay)
{
    static const int64_t tau[STAGES] = {4, 2, 0};
    const double eta = .05;
    const struct pl_optim o = descent(eta);
    const struct pl_rate rate = {.kind = PL_RATE_CONSTANT,
                                 .total = UPDATES,
                                 .delay_power = 1,
                                 .delay_updates = _i ? 10 : 0};
    ck_assert_double_eq(pl_rate_delay(&rate, 0, 1), 1);
    ck_assert_double_eq(pl_rate_delay(&rate, 0, 0), 1);
    ck_assert_double_eq_tol(pl_rate_delay(&rate, 0, 4), .25, 1e-12);
    ck_assert_double_eq_tol(pl_rate_delay(&rate, 5, 4), _i ? .5 : .25, 1e-12);
    ck_assert_double_eq_tol(pl_rate_delay(&rate, 30, 4), _i ? 1 : .25, 1e-12);
    struct pl_versions v;
    struct outcome out;
    pl_versions_constant(STAGES, UPDATES, 1, tau, 1, &v);
    out.toy = toy_new(dev, STAGES, 1, WIDTH, PL_PARAM_VECTOR, 1, 0, 0);
    const struct pl_segment segment = toy_segment("none", NAN, PL_START_HOLD, UPDATES);
    struct pl_run_spec spec = toy_spec(out.toy, &v, &segment);
    spec.batch = 1;
    spec.optim = o;
    spec.rate = rate;
    ck_assert_msg(pl_run(&spec, &out.result) == 0, "%s", pl_error_text());
    const float *x = toy_of(out.toy)->reads;
    for (int s = 0; s < STAGES; s++)
        for (int64_t n = tau[s]; n + tau[s] + 1 < UPDATES; n++) {
            double step = at(x, n + tau[s], s)[0] - at(x, n + tau[s] + 1, s)[0];
            double want =
                eta * pl_rate_delay(&rate, n, (double)tau[s]) * at(x, n, s)[0];
            ck_assert_double_eq_tol(step, want, 3e-7);
        }
    done(&out);
    pl_versions_free(&v);
}
END_TEST

/* No gradient, decay only: x[n+1] = x[n] - eta lambda x[n] or x[n - tau], eta lambda
 * large enough to be seen. */
START_TEST(decay_at_either_version)
{
    static const int64_t tau[STAGES] = {2, 2, 2};
    const bool stale = _i;
    const double shrink = .05;
    const struct pl_optim o = {.type = pl_optim_find("adamw"),
                               .lr = .5,
                               .beta1 = .9,
                               .beta2 = .95,
                               .eps = 1e-8,
                               .decay = shrink / .5};
    struct pl_versions v;
    struct outcome out;
    pl_versions_constant(STAGES, UPDATES, 1, tau, 1, &v);
    train(&v, PL_FIDELITY_STASH, &o, NULL, stale, 0, &out);
    double x[UPDATES + 1] = {toy_of(out.toy)->reads[0]};
    for (int n = 0; n < UPDATES; n++) {
        ck_assert_double_eq_tol(*at(toy_of(out.toy)->reads, n, 0), x[n < 2 ? 0 : n - 2],
                                UPDATES * 1.2e-7);
        x[n + 1] = x[n] - shrink * x[stale ? n < 2 ? 0 : n - 2 : n];
    }
    done(&out);
    pl_versions_free(&v);
}
END_TEST

/* The real net. Losses of all updates for a fidelity and delays. */
static void decoder(enum pl_fidelity fidelity, const int64_t tau[2], int m, bool tied,
                    double losses[UPDATES])
{
    const struct pl_model model = {.layers = 2,
                                   .hidden = 16,
                                   .heads = 2,
                                   .kv_heads = 1,
                                   .head_dim = 8,
                                   .ffn = 24,
                                   .vocab = 256,
                                   .rope_theta = 1e4,
                                   .norm_eps = 1e-5,
                                   .tied = tied};
    const struct pl_segment segment = toy_segment("none", NAN, PL_START_HOLD, UPDATES);
    struct pl_problem *p;
    struct pl_data *data;
    struct pl_versions v;
    struct pl_run_result r;
    ck_assert_int_eq(pl_problem_net(dev, &model, 2, 4, 8, &p), 0);
    ck_assert_int_eq(pl_data_open("grammar", NULL, NULL, .1, 256, 8, &data), 0);
    pl_versions_constant(2, UPDATES, m, tau, 1, &v);
    struct pl_run_spec spec = toy_spec(p, &v, &segment);
    spec.data = data;
    spec.batch = 4;
    spec.T = 8;
    spec.fidelity = fidelity;
    spec.optim = (struct pl_optim){.type = pl_optim_find("adamw"),
                                   .lr = .01,
                                   .beta1 = .9,
                                   .beta2 = .95,
                                   .eps = 1e-8};
    spec.eval_sequences = 0;
    ck_assert_msg(pl_run(&spec, &r) == 0, "%s", pl_error_text());
    for (int n = 0; n < UPDATES; n++) losses[n] = r.rows[n].loss;
    pl_run_free(&r);
    pl_versions_free(&v);
    pl_data_free(data);
    pl_problem_free(p);
}

/* Where fidelities say the same they are the same bits; where not, they differ. */
START_TEST(net_fidelities)
{
    static const int64_t now[2] = {0, 0}, late[2] = {2, 2}, mixed[2] = {2, 0};
    double stash[UPDATES], other[UPDATES];
    decoder(PL_FIDELITY_STASH, now, 2, false, stash);
    decoder(PL_FIDELITY_NOSTASH, now, 2, false, other);
    ck_assert_mem_eq(stash, other, sizeof stash);
    decoder(PL_FIDELITY_QUEUE, now, 2, false, other);
    ck_assert_mem_eq(stash, other, sizeof stash);
    decoder(PL_FIDELITY_STASH, late, 2, false, stash);
    decoder(PL_FIDELITY_QUEUE, late, 2, false, other);
    ck_assert_mem_eq(stash, other, sizeof stash);
    decoder(PL_FIDELITY_NOSTASH, late, 2, false, other);
    ck_assert_double_eq(stash[2], other[2]); /* updates 0 .. 2 read version 0 forward */
    ck_assert_double_ne(stash[UPDATES - 1], other[UPDATES - 1]);
    decoder(PL_FIDELITY_STASH, mixed, 2, false, stash);
    decoder(PL_FIDELITY_QUEUE, mixed, 2, false, other);
    ck_assert_double_ne(stash[UPDATES - 1], other[UPDATES - 1]);
    /* a shared tensor has one version at a common point, whatever its stages' delays */
    decoder(PL_FIDELITY_QUEUE, mixed, 2, true, other);
    ck_assert(isfinite(other[UPDATES - 1]));
}
END_TEST

static void fill(TCase *t)
{
    tcase_add_test(t, backward_reads_the_live_version);
    tcase_add_test(t, any_map_is_executed);
    tcase_add_test(t, queue_has_one_common_point);
    tcase_add_loop_test(t, rate_follows_delay, 0, 2);
    tcase_add_loop_test(t, decay_at_either_version, 0, 2);
    tcase_add_test(t, net_fidelities);
}

int main(void)
{
    return run_tests("fidelity", fill);
}
