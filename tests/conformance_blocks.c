/* The conformance suite, GPT-2's blocks and normed heads: formulas in double and the
 * weights of their bounds. */
#include "tests/conformance.h"
#include "base/mem.h"

#include <math.h>
#include <stdlib.h>

static const int shapes[][2] = {{1, 1}, {3, 7}, {5, 64}, {33, 100}, {3, 264}};
enum { SHAPES = sizeof shapes / sizeof *shapes };

/* The mean adds d terms, the variance d squares, its root halves the error; difference,
 * two products, shift: d + 8 of |x - mean| and, through the mean, of mean |x|. */
static void layernorm_one(struct trial *t, int rows, int d, bool shifted)
{
    size_t n = (size_t)rows * (size_t)d, total = n + 2 * (size_t)rows;
    float *x = trial_random_real(t, n, 61), *gain = trial_random((size_t)d, 62);
    float *shift = trial_random((size_t)d, 63);
    double *want = PL_NEW(2 * total, double), *weight = want + total;
    for (int r = 0; r < rows; r++) {
        const float *row = x + (size_t)r * (size_t)d;
        double sum = 0, size = 0, square = 0;
        for (int i = 0; i < d; i++) sum += row[i];
        for (int i = 0; i < d; i++) size += fabs((double)row[i]) / d;
        for (int i = 0; i < d; i++) square += pow(row[i] - sum / d, 2);
        double scale = 1 / sqrt(square / d + (double)1e-5f);
        for (int i = 0; i < d; i++) {
            size_t e = (size_t)r * (size_t)d + (size_t)i;
            double far = row[i] - sum / d, add = shifted ? shift[i] : 0;
            want[e] = far * scale * gain[i] + add;
            weight[e] =
                (d + 8) * (scale * fabs(gain[i] * (fabs(far) + size)) + fabs(add));
        }
        want[n + (size_t)r] = sum / d;
        weight[n + (size_t)r] = (d + 1) * size;
        want[n + (size_t)(rows + r)] = scale;
        weight[n + (size_t)(rows + r)] = (d + 8) * scale;
    }
    float *dx = trial_upload_real(t, x, n), *dgain = trial_upload(t, gain, (size_t)d);
    float *dshift = trial_upload(t, shift, (size_t)d), *y = trial_upload_real(t, x, n);
    float *mean = trial_upload(t, x, (size_t)rows);
    float *rstd = trial_upload(t, x, (size_t)rows);
    trial_status(t, t->device->layernorm(rows, d, 1e-5f, dx, dgain,
                                         shifted ? dshift : NULL, y, mean, rstd));
    trial_compare_real(t, "y", y, n, want, weight);
    trial_compare(t, "mean", mean, (size_t)rows, want + n, weight + n);
    trial_compare(t, "rstd", rstd, (size_t)rows, want + n + rows, weight + n + rows);
    trial_clear(t);
    free(x), free(gain), free(shift), free(want);
}

void check_layernorm(struct trial *t)
{
    for (int k = 0; k < 2 * SHAPES; k++)
        layernorm_one(t, shapes[k / 2][0], shapes[k / 2][1], k % 2);
}

struct back_case {
    int rows, d;
    float *x, *gain, *dy, *dx, *mean, *rstd, *dgain, *dshift;
};

/* want: dx, dgain, dshift; weight likewise. The means add d terms, gains rows. */
static void layernorm_back_want(const struct back_case *c, double *want, double *weight)
{
    size_t d = (size_t)c->d, n = (size_t)c->rows * d;
    for (size_t i = 0; i < d; i++) {
        want[n + i] = c->dgain[i];
        want[n + d + i] = c->dshift[i];
        weight[n + i] = (c->rows + 6) * fabs((double)c->dgain[i]);
        weight[n + d + i] = (c->rows + 2) * fabs((double)c->dshift[i]);
    }
    for (size_t r = 0; r < (size_t)c->rows; r++) {
        const float *x = c->x + r * d, *dy = c->dy + r * d;
        double plain = 0, along = 0, plain_size = 0, along_size = 0, s = c->rstd[r];
        for (size_t i = 0; i < d; i++) {
            double e = (double)dy[i] * c->gain[i] / c->d;
            double en = e * ((double)x[i] - c->mean[r]) * s;
            plain += e, plain_size += fabs(e);
            along += en, along_size += fabs(en);
        }
        for (size_t i = 0; i < d; i++) {
            double direct = (double)dy[i] * c->gain[i];
            double norm = ((double)x[i] - c->mean[r]) * s, part = dy[i] * norm;
            want[r * d + i] = c->dx[r * d + i] + s * (direct - plain - norm * along);
            weight[r * d + i] =
                (c->d + 10) *
                (fabs((double)c->dx[r * d + i]) +
                 fabs(s) * (fabs(direct) + plain_size + fabs(norm) * along_size));
            want[n + i] += part;
            weight[n + i] += (c->rows + 6) * fabs(part);
            want[n + d + i] += dy[i];
            weight[n + d + i] += (c->rows + 2) * fabs((double)dy[i]);
        }
    }
}

static void layernorm_back_one(struct trial *t, int rows, int d, bool shifted)
{
    size_t n = (size_t)rows * (size_t)d, total = n + 2 * (size_t)d;
    struct back_case c = {rows,
                          d,
                          trial_random_real(t, n, 64),
                          trial_random((size_t)d, 65),
                          trial_random_real(t, n, 66),
                          trial_random_real(t, n, 67),
                          trial_random((size_t)rows, 68),
                          trial_random((size_t)rows, 69),
                          trial_random((size_t)d, 70),
                          trial_random((size_t)d, 71)};
    double *want = PL_NEW(2 * total, double), *weight = want + total;
    layernorm_back_want(&c, want, weight);
    float *x = trial_upload_real(t, c.x, n), *gain = trial_upload(t, c.gain, (size_t)d);
    float *mean = trial_upload(t, c.mean, (size_t)rows);
    float *rstd = trial_upload(t, c.rstd, (size_t)rows),
          *dy = trial_upload_real(t, c.dy, n);
    float *dx = trial_upload_real(t, c.dx, n),
          *dgain = trial_upload(t, c.dgain, (size_t)d);
    float *dshift = trial_upload(t, c.dshift, (size_t)d);
    trial_status(t, t->device->layernorm_back(rows, d, x, gain, mean, rstd, dy, dx,
                                              dgain, shifted ? dshift : NULL));
    trial_compare_real(t, "dx", dx, n, want, weight);
    trial_compare(t, "dgain", dgain, (size_t)d, want + n, weight + n);
    if (shifted)
        trial_compare(t, "dshift", dshift, (size_t)d, want + n + d, weight + n + d);
    for (size_t e = 0; e < n; e++) want[e] -= c.dx[e];
    trial_status(t, t->device->upload(dgain, c.dgain, (size_t)d * sizeof *dgain));
    trial_status(t, t->device->layernorm_back(rows, d, x, gain, mean, rstd, dy, dy,
                                              dgain, NULL));
    trial_compare_real(t, "dx in dy's place", dy, n, want, weight);
    trial_compare(t, "dgain", dgain, (size_t)d, want + n, weight + n);
    trial_clear(t);
    float *const arrays[] = {c.x,    c.gain, c.dy,    c.dx,
                             c.mean, c.rstd, c.dgain, c.dshift};
    for (int i = 0; i < 8; i++) free(arrays[i]);
    free(want);
}

void check_layernorm_back(struct trial *t)
{
    for (int k = 0; k < 2 * SHAPES; k++)
        layernorm_back_one(t, shapes[k / 2][0], shapes[k / 2][1], k % 2);
}

struct heads_case {
    int rows, heads, d, ld, more;
};
static const struct heads_case head_shapes[] = {{1, 1, 1, 1, 0},
                                                {3, 2, 7, 20, 5},
                                                {5, 1, 64, 100, 36},
                                                {33, 3, 40, 120, 0},
                                                {2, 2, 136, 280, 8}};
enum { HEAD_SHAPES = sizeof head_shapes / sizeof *head_shapes };

/* As rmsnorm; what is behind the heads is copied, and then keeps its value. */
void check_headnorm(struct trial *t)
{
    for (int k = 0; k < HEAD_SHAPES; k++) {
        const struct heads_case c = head_shapes[k];
        size_t n = (size_t)c.rows * (size_t)c.ld, heads = (size_t)(c.rows * c.heads);
        float *x = trial_random_real(t, n, 72), *gain = trial_random((size_t)c.d, 73);
        float *y = trial_random_real(t, n, 74);
        double *want = PL_NEW(2 * (n + heads), double), *weight = want + n + heads;
        for (size_t i = 0; i < n; i++) want[i] = y[i];
        for (int h = 0; h < c.rows * c.heads; h++) {
            size_t at = (size_t)(h / c.heads * c.ld + h % c.heads * c.d);
            double square = 0;
            for (int i = 0; i < c.d; i++) square += pow(x[at + (size_t)i], 2);
            double scale = 1 / sqrt(square / c.d + (double)1e-6f);
            for (int i = 0; i < c.d; i++) {
                want[at + (size_t)i] = x[at + (size_t)i] * scale * gain[i];
                weight[at + (size_t)i] = (c.d + 8) * fabs(want[at + (size_t)i]);
            }
            want[n + (size_t)h] = scale;
            weight[n + (size_t)h] = (c.d + 8) * scale;
        }
        for (int r = 0; r < c.rows; r++)
            for (int i = c.heads * c.d; i < c.heads * c.d + c.more; i++)
                want[r * c.ld + i] = x[r * c.ld + i];
        float *dx = trial_upload_real(t, x, n),
              *dgain = trial_upload(t, gain, (size_t)c.d);
        float *dy = trial_upload_real(t, y, n), *rstd = trial_upload(t, want, heads);
        trial_status(t, t->device->headnorm(c.rows, c.heads, c.d, c.more, c.ld, 1e-6f,
                                            dx, dgain, dy, rstd));
        trial_compare_real(t, "y", dy, n, want, weight);
        trial_compare(t, "rstd", rstd, heads, want + n, weight + n);
        trial_clear(t);
        free(x), free(gain), free(y), free(want);
    }
}

static void headnorm_back_one(struct trial *t, struct heads_case c)
{
    size_t n = (size_t)c.rows * (size_t)c.ld, heads = (size_t)(c.rows * c.heads);
    size_t total = n + (size_t)c.d;
    float *x = trial_random_real(t, n, 75), *gain = trial_random((size_t)c.d, 76);
    float *g = trial_random_real(t, n, 77), *rstd = trial_random(heads, 78);
    float *dgain = trial_random((size_t)c.d, 79);
    double *want = PL_NEW(2 * total, double), *weight = want + total;
    double per = (double)heads + 4;
    for (size_t i = 0; i < n; i++) want[i] = g[i];
    for (int i = 0; i < c.d; i++) {
        want[n + (size_t)i] = dgain[i];
        weight[n + (size_t)i] = per * fabs((double)dgain[i]);
    }
    for (int h = 0; h < c.rows * c.heads; h++) {
        size_t at = (size_t)(h / c.heads * c.ld + h % c.heads * c.d);
        double mean = 0, size = 0, s = rstd[h];
        for (int i = 0; i < c.d; i++) {
            double term = (double)g[at + (size_t)i] * gain[i] * x[at + (size_t)i] / c.d;
            mean += term * s * s;
            size += fabs(term) * s * s;
        }
        for (int i = 0; i < c.d; i++) {
            size_t e = at + (size_t)i;
            double direct = (double)g[e] * gain[i], part = (double)g[e] * x[e] * s;
            want[e] = s * (direct - x[e] * mean);
            weight[e] = (c.d + 8) * fabs(s) * (fabs(direct) + fabs(x[e] * size));
            want[n + (size_t)i] += part;
            weight[n + (size_t)i] += per * fabs(part);
        }
    }
    float *dx = trial_upload_real(t, x, n), *ug = trial_upload(t, gain, (size_t)c.d);
    float *dg = trial_upload_real(t, g, n), *ur = trial_upload(t, rstd, heads);
    float *ud = trial_upload(t, dgain, (size_t)c.d);
    trial_status(
        t, t->device->headnorm_back(c.rows, c.heads, c.d, c.ld, dx, ug, ur, dg, ud));
    trial_compare_real(t, "g", dg, n, want, weight);
    trial_compare(t, "dgain", ud, (size_t)c.d, want + n, weight + n);
    trial_clear(t);
    free(x), free(gain), free(g), free(rstd), free(dgain), free(want);
}

void check_headnorm_back(struct trial *t)
{
    for (int k = 0; k < HEAD_SHAPES; k++) headnorm_back_one(t, head_shapes[k]);
}

static const int periods[][3] = {
    {1, 1, 1}, {33, 1, 70}, {33, 5, 64}, {4, 9, 7}, {300, 1, 264}};
enum { PERIODS = sizeof periods / sizeof *periods };

/* One addition an element. */
void check_add_rows(struct trial *t)
{
    for (int k = 0; k < PERIODS; k++) {
        int rows = periods[k][0], period = periods[k][1], d = periods[k][2];
        size_t n = (size_t)rows * (size_t)d, small = (size_t)period * (size_t)d;
        float *x = trial_random(small, 80), *y = trial_random_real(t, n, 81);
        double *want = PL_NEW(2 * n, double), *weight = want + n;
        for (size_t i = 0; i < n; i++) {
            want[i] = (double)y[i] + x[i % small];
            weight[i] = fabs(want[i]);
        }
        float *dx = trial_upload(t, x, small), *dy = trial_upload_real(t, y, n);
        trial_status(t, t->device->add_rows(rows, period, d, dx, dy));
        trial_compare_real(t, "y", dy, n, want, weight);
        trial_clear(t);
        free(x), free(y), free(want);
    }
}

void check_add_rows_back(struct trial *t)
{
    for (int k = 0; k < PERIODS; k++) {
        int rows = periods[k][0], period = periods[k][1], d = periods[k][2];
        size_t n = (size_t)rows * (size_t)d, small = (size_t)period * (size_t)d;
        float *dy = trial_random_real(t, n, 82), *dx = trial_random(small, 83);
        double *want = PL_NEW(2 * small, double), *weight = want + small;
        for (size_t i = 0; i < small; i++) {
            want[i] = dx[i];
            weight[i] = fabs((double)dx[i]);
        }
        for (size_t i = 0; i < n; i++) {
            want[i % small] += dy[i];
            weight[i % small] += fabs((double)dy[i]);
        }
        for (size_t i = 0; i < small; i++) weight[i] *= rows / period + 2;
        float *ux = trial_upload(t, dx, small), *uy = trial_upload_real(t, dy, n);
        trial_status(t, t->device->add_rows_back(rows, period, d, uy, ux));
        trial_compare(t, "dx", ux, small, want, weight);
        trial_clear(t);
        free(dx), free(dy), free(want);
    }
}

/* y = x s, s = sigmoid(z), z = 2 sqrt(2/pi) (x + 0.044715 x^3): 4 u of |z| in the
 * exponent, then 8 u as in swiglu. Back: 1 - s carries the absolute error of s. Below
 * e^-87 a float device may flush. */
static void gelu_one(struct trial *t, size_t n, bool back)
{
    float *x = trial_random(n, 84), *dy = trial_random_real(t, n, 85);
    double *want = PL_NEW(2 * n, double), *weight = want + n;
    const double root = sqrt(8 / acos(-1)), cubic = 0.044715;
    for (size_t i = 0; i < n; i++) {
        x[i] *= i % 3 ? 1.0f : i % 2 ? 4.0f : 20.0f;
        trial_round(t, &x[i], 1);
        double v = x[i], z = root * (v + cubic * v * v * v), s = 1 / (1 + exp(-z));
        double slope = root * (1 + 3 * cubic * v * v), size = 12 + 4 * fabs(z);
        double tiny = 1e-28 * (1 + v * v * v * v);
        want[i] = back ? dy[i] * s * (1 + v * (1 - s) * slope) : v * s;
        weight[i] =
            back ? fabs((double)dy[i]) * s *
                       (size * (1 + fabs(v) * (1 - s) * slope) + 4 * fabs(v) * slope)
                 : size * fabs(want[i]);
        weight[i] += tiny;
    }
    float *dx = trial_upload_real(t, x, n), *ug = trial_upload_real(t, dy, n);
    float *y = trial_upload_real(t, x, n);
    trial_status(t, back ? t->device->gelu_back(n, dx, ug, ug)
                         : t->device->gelu(n, dx, y));
    trial_compare_real(t, back ? "dx" : "y", back ? ug : y, n, want, weight);
    trial_clear(t);
    free(x), free(dy), free(want);
}

static const size_t lengths[] = {1, 15, 16, 67, 1000};

void check_gelu(struct trial *t)
{
    for (int k = 0; k < 5; k++) gelu_one(t, lengths[k], false);
}

void check_gelu_back(struct trial *t)
{
    for (int k = 0; k < 5; k++) gelu_one(t, lengths[k], true);
}
