/* The conformance suite, rows in groups: products and biases of each group against
 * their sums in double. Groups are empty, of one row, around the edges of a GPU's
 * tiles, or have everything; widths are multiples of 8 (tensor cores) or odd. */
#include "tests/conformance.h"
#include "base/mem.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { GROUPS = 260 };

struct groups_case {
    int in, out, gap; /* gap: floats behind a group's W and bias, which must stay */
    int n;
    int load[8]; /* of the first groups; others: 2 rows for every 50th */
};

static const struct groups_case cases[] = {
    {1, 1, 0, 1, {1}},
    {7, 3, 5, 4, {0, 5, 0, 2}},
    {33, 18, 1, 3, {0, 0, 40}},
    {8, 16, 8, 5, {127, 128, 0, 129, 1}},
    {264, 72, 4, 2, {9, 3}},
    {136, 264, 4, 2, {3, 9}},
    {72, 136, 3, 4, {64, 0, 150, 3}},
    {136, 72, 8, 2, {0, 270}},
    {8, 8, 8, GROUPS, {0, 1, 0, 33, 2}},
    {40, 130, 2, 3, {131, 0, 2}},
};
enum { CASES = sizeof cases / sizeof *cases };

/* A case's rows, and the parameters of all groups: W, then bias, then the gap. */
struct groups {
    const struct groups_case *c;
    int32_t load[GROUPS];
    size_t in, out, rows, stride, params;
    float *x, *dy, *w;
};

static struct groups groups_new(const struct trial *t, const struct groups_case *c)
{
    struct groups g = {.c = c, .in = (size_t)c->in, .out = (size_t)c->out};
    for (int e = 0; e < c->n; e++) {
        g.load[e] = e < 8 ? c->load[e] : e % 50 ? 0 : 2;
        g.rows += (size_t)g.load[e];
    }
    g.stride = g.in * g.out + g.out + (size_t)c->gap;
    g.params = (size_t)c->n * g.stride;
    g.x = trial_random_real(t, g.rows * g.in, 97);
    g.dy = trial_random_real(t, g.rows * g.out, 98);
    g.w = trial_random(g.params, 99);
    return g;
}

static void groups_free(struct groups *g)
{
    free(g->x), free(g->dy), free(g->w);
}

static struct pl_groups on_device(struct trial *t, const struct groups *g)
{
    return (struct pl_groups){g->c->n, (int)g->rows, g->stride,
                              trial_upload(t, g->load, (size_t)g->c->n)};
}

/* want and weight of element e, a sum of n products: n + 3 roundings and those of
 * factors. */
static void sum_of(const struct trial *t, size_t n, const float *x, size_t x_step,
                   const float *y, size_t y_step, double old, double *want,
                   double *weight)
{
    double sum = 0, size = 0;
    for (size_t k = 0; k < n; k++) {
        const double term = (double)x[k * x_step] * y[k * y_step];
        sum += term;
        size += fabs(term);
    }
    *want = sum + old;
    *weight = ((double)n + 3) * (size + fabs(old)) + t->product * size;
}

/* y with a bias or without, or dx. */
static void rows_one(struct trial *t, const struct groups *g, bool dx, bool biased)
{
    const size_t in = g->in, out = g->out, width = dx ? in : out;
    const size_t n = g->rows * width;
    double *want = PL_NEW(2 * n, double), *weight = want + n;
    float *c = PL_NEW(n, float), *w = PL_NEW(g->params, float);
    memcpy(w, g->w, g->params * sizeof *w);
    trial_round(t, w, g->params); /* exact in bf16 */
    size_t row = 0;
    for (int e = 0; e < g->c->n; e++) {
        const float *own = w + (size_t)e * g->stride, *bias = own + in * out;
        for (size_t end = row + (size_t)g->load[e]; row < end; row++)
            for (size_t j = 0; j < width; j++) {
                const size_t at = row * width + j;
                c[at] = NAN;
                if (dx)
                    sum_of(t, out, g->dy + row * out, 1, own + j, in, 0, &want[at],
                           &weight[at]);
                else
                    sum_of(t, in, g->x + row * in, 1, own + j * in, 1,
                           biased ? bias[j] : 0, &want[at], &weight[at]);
            }
    }
    const struct pl_groups groups = on_device(t, g);
    float *a = trial_upload_real(t, dx ? g->dy : g->x, g->rows * (dx ? out : in));
    float *b = trial_upload(t, w, g->params), *to = trial_upload_real(t, c, n);
    trial_status(t, t->device->product_groups(dx ? PL_PRODUCT_DX : PL_PRODUCT_Y,
                                              &groups, (int)in, (int)out, a, b,
                                              biased ? b + in * out : NULL, to));
    trial_compare_real(t, dx ? "dx" : biased ? "y + bias" : "y", to, n, want, weight);
    trial_clear(t);
    free(want), free(c), free(w);
}

/* dW or the bias's gradient; nothing else of the parameters changes, and nothing where
 * a group has no rows. */
static void gradient_one(struct trial *t, const struct groups *g, bool of_bias)
{
    const size_t in = g->in, out = g->out;
    double *want = PL_NEW(2 * g->params, double), *weight = want + g->params;
    const float one = 1;
    size_t row = 0;
    for (size_t i = 0; i < g->params; i++) want[i] = g->w[i];
    for (int e = 0; e < g->c->n; e++) {
        const size_t own = (size_t)e * g->stride, rows = (size_t)g->load[e];
        const float *dy = g->dy + row * out, *x = g->x + row * in;
        for (size_t i = 0; i < (of_bias ? out : in * out) && rows; i++) {
            const size_t at = own + (of_bias ? in * out + i : i);
            const size_t o = of_bias ? i : i / in;
            sum_of(t, rows, dy + o, out, of_bias ? &one : x + i % in, of_bias ? 0 : in,
                   g->w[at], &want[at], &weight[at]);
        }
        row += rows;
    }
    const struct pl_groups groups = on_device(t, g);
    float *dy = trial_upload_real(t, g->dy, g->rows * out);
    float *x = trial_upload_real(t, g->x, g->rows * in);
    float *c = trial_upload(t, g->w, g->params);
    trial_status(
        t, of_bias ? t->device->bias_groups_back(&groups, (int)out, dy, c + in * out)
                   : t->device->product_groups(PL_PRODUCT_DW, &groups, (int)in,
                                               (int)out, dy, x, NULL, c));
    trial_compare(t, of_bias ? "dbias" : "dW", c, g->params, want, weight);
    trial_clear(t);
    free(want);
}

void check_product_groups(struct trial *t)
{
    for (int i = 0; i < CASES; i++) {
        struct groups g = groups_new(t, &cases[i]);
        rows_one(t, &g, false, i % 3 != 1);
        rows_one(t, &g, true, false);
        gradient_one(t, &g, false);
        groups_free(&g);
    }
}

void check_bias_groups_back(struct trial *t)
{
    for (int i = 0; i < CASES; i++) {
        struct groups g = groups_new(t, &cases[i]);
        gradient_one(t, &g, true);
        groups_free(&g);
    }
}
