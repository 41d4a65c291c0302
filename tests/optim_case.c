#include "tests/optim_case.h"

#include <stdlib.h>
#include <string.h>

static const struct pl_device *const dev = &pl_device_ref;

void optim_case_run(const struct optim_case *c, const struct pl_optim *options,
                    double rate, int steps, const float *first,
                    float out[CASE_STEPS][CASE_SIZE])
{
    enum { STATE = 128, SCRATCH = 512 };
    struct pl_optim o = *options;
    o.type = pl_optim_find(c->name);
    struct pl_param p = {.rows = c->rows, .cols = c->cols, .kind = c->kind};
    const size_t n = pl_param_size(&p), words = pl_optim_state(&o, &p);
    float w[CASE_SIZE], grad[CASE_SIZE], u[CASE_SIZE], state[STATE] = {0},
                                                       scratch[SCRATCH];
    ck_assert_uint_le(words, STATE);
    ck_assert_uint_le(pl_optim_scratch(&o, &p), SCRATCH);
    if (first) memcpy(state, first, sizeof *state * words);
    for (size_t i = 0; i < n; i++) w[i] = (float)c->w0[i];
    for (int t = 0; t < steps; t++) {
        for (size_t i = 0; i < n; i++) grad[i] = (float)c->g[t][i];
        for (int i = 0; i < SCRATCH; i++) scratch[i] = NAN; /* contents undefined */
        for (size_t i = 0; i < n; i++) u[i] = NAN;
        int rc = pl_optim_step(&o, dev, &p, grad, w, state, scratch, t + 1, rate, u);
        ck_assert_int_eq(rc, 0);
        /* what a rule keeps of a gradient must be a copy */
        for (size_t i = 0; i < n; i++) grad[i] = NAN;
        dev->axpby(n, -1, u, 1, w);
        memcpy(out[t], w, sizeof w);
    }
}

double relative(const float *a, const float *b, size_t n)
{
    double d = 0, s = 0;
    for (size_t i = 0; i < n; i++) {
        d += (a[i] - b[i]) * (double)(a[i] - b[i]);
        s += b[i] * (double)b[i];
    }
    return sqrt(d / s);
}

void random_matrix(int m, int n, uint64_t seed, float *X)
{
    for (int i = 0; i < m * n; i++)
        X[i] = (float)pl_rng_normal(seed, PL_RNG_TEST, 0, (uint32_t)i);
}

struct pl_optim optim_defaults(const char *name)
{
    struct pl_optim o = pl_optim_find(name)->defaults;
    o.type = pl_optim_find(name);
    return o;
}
