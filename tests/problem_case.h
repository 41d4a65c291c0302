/* Small problems without a model, for tests. */
#ifndef PL_TESTS_PROBLEM_CASE_H
#define PL_TESTS_PROBLEM_CASE_H

#include <check.h>
#include <math.h>

#include "base/err.h"
#include "base/mem.h"
#include "base/rng.h"
#include "train/run.h"

/* Settings of a kind that make it small; change what matters. */
static inline struct pl_problem_spec small_problem(const char *name)
{
    return (struct pl_problem_spec){
        .type = pl_problem_find(name),
        .seed = 3,
        .size = 6,
        .spectrum = {.kind = PL_SPECTRUM_LOG, .largest = 1, .kappa = 10, .power = 1},
        .rotation = 1,
        .samples = 20,
        .l2 = 0.01,
        .rank = 4,
        .start = 0.3,
        .layers = 4,
        .width = 5,
        .outputs = 3,
        .classes = true};
}

static inline struct pl_problem *open_problem(const struct pl_problem_spec *spec, int P)
{
    struct pl_problem *p;
    int rc = spec->type->open(spec, &pl_device_ref, P, &p);
    ck_assert_msg(rc == 0, "%s", pl_error_text());
    return p;
}

/* Weights on all stages. */
static inline size_t numbers(const struct pl_problem *p)
{
    size_t n = 0;
    for (int s = 0; s < p->n_stages; s++) n += p->stage_floats[s];
    return n;
}

/* A point in general position; caller frees. */
static inline double *point(size_t n, uint64_t number)
{
    double *x = PL_NEW(n, double);
    for (size_t i = 0; i < n; i++)
        x[i] = 0.5 * pl_rng_normal(5, PL_RNG_TEST, number, (uint32_t)i);
    return x;
}

/* A run with one delay on all stages; 0 members: none, or 1. */
struct setting {
    const char *optimizer, *corrector;
    double lr, beta, c;
    int tau, m, batch;
    int64_t updates;
    bool nesterov, replay;
};

static inline struct pl_optim optim_of(const struct setting *s)
{
    return (struct pl_optim){.type = pl_optim_find(s->optimizer),
                             .lr = s->lr,
                             .aux_lr = s->lr,
                             .beta1 = s->beta,
                             .beta2 = 0.95,
                             .eps = 1e-8,
                             .momentum = s->beta,
                             .nesterov = s->nesterov,
                             .ema = true,
                             .ns_steps = 5};
}

static inline struct pl_run_result run_with(struct pl_problem *p,
                                            const struct setting *s)
{
    const int64_t tau[8] = {s->tau, s->tau, s->tau, s->tau,
                            s->tau, s->tau, s->tau, s->tau};
    struct pl_versions v;
    struct pl_run_result r;
    pl_versions_constant(p->n_stages, s->updates, s->m ? s->m : 1, tau, 1, &v);
    const struct pl_segment segment = {
        s->updates,
        pl_corrector_make(s->corrector ? s->corrector : "none", s->c, PL_START_ZERO)};
    const struct pl_run_spec spec = {
        .device = &pl_device_ref,
        .problem = p,
        .versions = &v,
        .fidelity = PL_FIDELITY_STASH,
        .batch = s->batch ? s->batch : 1,
        .T = 1,
        .seed = 11,
        .optim = optim_of(s),
        .rate = {.kind = PL_RATE_CONSTANT, .total = s->updates},
        .n_segments = 1,
        .segments = &segment,
        .replay = s->replay,
        .eval_sequences = 1};
    int rc = pl_run(&spec, &r);
    ck_assert_msg(rc == 0, "%s", pl_error_text());
    pl_versions_free(&v);
    return r;
}

#endif
