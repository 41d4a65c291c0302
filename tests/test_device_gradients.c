/* Gradients of ref's ops by central differences of f(x) = sum w op(x).
 * With step h = 2^-6 the truncation is h^2 |f'''| / 6 and rounding to float of the
 * outputs gives eps |f| / h: both stay under 1e-3 of the sizes used here (|f'''|, |f| <
 * 20). */
#include "base/mem.h"
#include "base/rng.h"
#include "gpu/device.h"
#include "tests/runner.h"

#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static const struct pl_device *const ref = &pl_device_ref;

enum { ROWS = 6, D = 5, T = 3 };
static const struct pl_attention_shape shape = {2, 5, 4, 2, 4};
enum { QKV = 2 * 5 * 8 * 4, OUT = 2 * 5 * 4 * 4, LSE = 2 * 4 * 5 };
static const int32_t targets[ROWS] = {0, 3, 4, 1, 1, 2};

/* One op: number of inputs and outputs; forward; backward (dx = gradient of sum w y).
 */
struct op {
    const char *name;
    int in, out;
    void (*forward)(const float *x, float *y);
    void (*back)(const float *x, const float *w, float *dx);
};

/* x = rows then gain */
static void rmsnorm(const float *x, float *y)
{
    float rstd[ROWS];
    ref->rmsnorm(ROWS, D, 1e-5f, x, x + ROWS * D, y, rstd);
}

static void rmsnorm_back(const float *x, const float *w, float *dx)
{
    float y[ROWS * D], rstd[ROWS];
    ref->rmsnorm(ROWS, D, 1e-5f, x, x + ROWS * D, y, rstd);
    ref->rmsnorm_back(ROWS, D, x, x + ROWS * D, rstd, w, dx, dx + ROWS * D);
}

static void swiglu(const float *x, float *y)
{
    ref->swiglu(ROWS, D, x, y);
}

static void swiglu_back(const float *x, const float *w, float *dx)
{
    ref->swiglu_back(ROWS, D, x, w, dx);
}

static void rope(const float *x, float *y)
{
    memcpy(y, x, ROWS * 12 * sizeof *y);
    ref->rope(ROWS, T, 3, 4, 12, 100, 1, y);
}

static void rope_back(const float *x, const float *w, float *dx)
{
    (void)x;
    memcpy(dx, w, ROWS * 12 * sizeof *dx);
    ref->rope(ROWS, T, 3, 4, 12, 100, -1, dx);
}

static void attention(const float *x, float *y)
{
    float lse[LSE];
    ref->attention(&shape, x, y, lse);
}

static void attention_back(const float *x, const float *w, float *dx)
{
    float y[OUT], lse[LSE];
    ref->attention(&shape, x, y, lse);
    ref->attention_back(&shape, x, y, lse, w, dx);
}

static void xent(const float *x, float *y)
{
    float copy[ROWS * D];
    double loss = 0;
    memcpy(copy, x, sizeof copy);
    ref->xent(ROWS, D, copy, targets, 0, &loss);
    *y = (float)loss;
}

static void xent_back(const float *x, const float *w, float *dx)
{
    double loss = 0;
    memcpy(dx, x, ROWS * D * sizeof *dx);
    ref->xent(ROWS, D, dx, targets, *w, &loss);
}

static void embed(const float *x, float *y)
{
    ref->embed(ROWS, D, targets, x, y);
}

static void embed_back(const float *x, const float *w, float *dx)
{
    (void)x;
    ref->embed_back(ROWS, D, targets, w, dx);
}

static const struct op ops[] = {
    {"rmsnorm", ROWS *D + D, ROWS *D, rmsnorm, rmsnorm_back},
    {"swiglu", 2 * ROWS *D, ROWS *D, swiglu, swiglu_back},
    {"rope", ROWS * 12, ROWS * 12, rope, rope_back},
    {"attention", QKV, OUT, attention, attention_back},
    {"xent", ROWS *D, 1, xent, xent_back},
    {"embed", 5 * D, ROWS *D, embed, embed_back},
};

static float *normal(int n, uint64_t stream)
{
    float *x = PL_NEW(n, float);
    for (int i = 0; i < n; i++)
        x[i] = (float)pl_rng_normal(5, PL_RNG_TEST, stream, (uint32_t)i);
    return x;
}

static double objective(const struct op *op, const float *x, const float *w, float *y)
{
    double f = 0;
    op->forward(x, y);
    for (int i = 0; i < op->out; i++) f += (double)w[i] * y[i];
    return f;
}

/* Largest difference between dx and the central difference. */
static double worst(const struct op *op, float *x, const float *w, const float *dx)
{
    double bad = 0;
    const float h = 0x1p-6f;
    float *y = PL_NEW(op->out, float);
    for (int i = 0; i < op->in; i++) {
        float keep = x[i], up = keep + h, down = keep - h;
        x[i] = up;
        double f = objective(op, x, w, y);
        x[i] = down;
        f -= objective(op, x, w, y);
        x[i] = keep;
        bad = fmax(bad, fabs(f / ((double)up - down) - dx[i]));
    }
    free(y);
    return bad;
}

START_TEST(central_differences)
{
    const struct op *op = &ops[_i];
    float *x = normal(op->in, 1), *w = normal(op->out, 2), *dx = PL_NEW(op->in, float);
    op->back(x, w, dx);
    ck_assert_msg(worst(op, x, w, dx) <= 1e-3, "%s: %g", op->name, worst(op, x, w, dx));
    dx[op->in - 1] += 0.01f; /* the comparison sees a wrong gradient */
    ck_assert(worst(op, x, w, dx) > 1e-3);
    free(x), free(w), free(dx);
}
END_TEST

static void fill(TCase *all)
{
    tcase_add_loop_test(all, central_differences, 0, sizeof ops / sizeof *ops);
}

int main(void)
{
    return run_tests("device gradients", fill);
}
