#include "tests/second.h"

#include <math.h>
#include <stdlib.h>

#include "base/mem.h"
#include "base/rng.h"

const struct pl_device *second_device(int i)
{
    static struct pl_device own;
    own = pl_device_ref;
    own.host_memory = false;
    if (i == 1 && pl_device_host.open()) abort();
    return i == 0 ? &pl_device_ref : i == 1 ? &pl_device_host : &own;
}

struct pl_optim second_options(const char *rule)
{
    struct pl_optim o = pl_optim_find(rule)->defaults;
    o.type = pl_optim_find(rule);
    o.lr = .1;
    o.decay = 0;
    o.beta1 = .9;
    o.beta2 = .95;
    o.refresh = 1;
    return o;
}

struct tensor tensor_new(const struct pl_device *dev, const struct pl_optim *options,
                         int rows, int cols, enum pl_param_kind kind)
{
    struct tensor x = {
        .dev = dev, .o = *options, .p = {.rows = rows, .cols = cols, .kind = kind}};
    const size_t n = pl_param_size(&x.p);
    x.w = PL_NEW(3 * n, float);
    x.g = x.w + n;
    x.u = x.g + n;
    x.state = PL_NEW(pl_optim_state(&x.o, &x.p) + 1, float);
    x.scratch = PL_NEW(pl_optim_scratch(&x.o, &x.p) + 1, float);
    return x;
}

void tensor_free(struct tensor *x)
{
    free(x->w);
    free(x->state);
    free(x->scratch);
}

int tensor_step(struct tensor *x, const double *g)
{
    const size_t n = pl_param_size(&x->p);
    size_t scratch = pl_optim_scratch(&x->o, &x->p);
    for (size_t i = 0; i < n; i++) x->g[i] = (float)g[i];
    for (size_t i = 0; i < n; i++) x->u[i] = NAN;
    for (size_t i = 0; i < scratch; i++) x->scratch[i] = NAN;
    int rc = pl_optim_step(&x->o, x->dev, &x->p, x->g, x->w, x->state, x->scratch,
                           ++x->t, 1, x->u);
    return rc ? rc : x->dev->axpby(n, -1, x->u, 1, x->w);
}

void gradient(int t, double *g)
{
    for (int i = 0; i < MN; i++)
        g[i] = .3 * pl_rng_normal(7, PL_RNG_TEST, (uint64_t)t, (uint32_t)i) +
               pl_rng_normal(7, PL_RNG_TEST, 99, (uint32_t)i);
}

double relative(const float *a, const double *b, size_t n)
{
    double d = 0, s = 0;
    for (size_t i = 0; i < n; i++) d += pow(a[i] - b[i], 2), s += b[i] * b[i];
    return sqrt(d / s);
}

double apart(const struct tensor *a, const struct tensor *b)
{
    double d = 0, s = 0;
    for (size_t i = 0; i < pl_param_size(&a->p); i++) {
        d += pow((double)a->w[i] - b->w[i], 2);
        s += pow(b->w[i], 2);
    }
    return sqrt(d / s);
}
