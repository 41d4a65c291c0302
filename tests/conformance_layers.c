/* The conformance suite, layers: formulas in double and the weights of their bounds. */
#include "tests/conformance.h"
#include "base/mem.h"

#include <math.h>
#include <stdlib.h>

static const int row_shapes[][2] = {{1, 1}, {3, 7}, {5, 64}, {33, 100}, {3, 264}};
enum { ROW_SHAPES = sizeof row_shapes / sizeof *row_shapes };

/* embed copies; embed_back adds up to rows + 1 terms an element (exact for embed, which
 * has c = 0). Five tokens, `apart` from each other. */
static void embed_one(struct trial *t, int rows, int d, int apart, bool back)
{
    const size_t vocab = 4 * (size_t)apart + 3; /* the last two never come */
    size_t n = (size_t)rows * (size_t)d, size = vocab * (size_t)d;
    float *table = trial_random(size, 9), *out = trial_random_real(t, n, 10);
    int32_t *tokens = PL_NEW(rows, int32_t);
    double *want = PL_NEW(n + size, double), *weight = PL_NEW(n + size, double);
    for (size_t i = 0; i < size; i++) {
        if (!back) continue;
        want[i] = table[i];
        weight[i] = fabs((double)table[i]);
    }
    for (size_t i = 0; i < n; i++) {
        int32_t token = (int32_t)(i / (size_t)d * 3 % 5) * apart;
        size_t from = (size_t)token * (size_t)d + i % (size_t)d;
        tokens[i / (size_t)d] = token;
        if (back)
            want[from] += out[i];
        else
            want[i] = table[from];
        if (back) weight[from] += fabs((double)out[i]);
    }
    for (size_t i = 0; i < size; i++) weight[i] *= back ? rows + 1 : 1;
    int32_t *dtokens = trial_upload(t, tokens, (size_t)rows);
    float *dtable = trial_upload(t, table, size), *dout = trial_upload_real(t, out, n);
    trial_status(t, back ? t->device->embed_back(rows, d, dtokens, dout, dtable)
                         : t->device->embed(rows, d, dtokens, dtable, dout));
    if (back)
        trial_compare(t, "dtable", dtable, size, want, weight);
    else
        trial_compare_real(t, "out", dout, n, want, weight);
    trial_clear(t);
    free(table), free(out), free(tokens), free(want), free(weight);
}

void check_embed(struct trial *t)
{
    embed_one(t, 1, 3, 1, false);
    embed_one(t, 37, 33, 1, false);
    embed_one(t, 9, 72, 1, false);
}

void check_embed_back(struct trial *t)
{
    embed_one(t, 1, 3, 1, true);
    embed_one(t, 37, 33, 1, true);
    embed_one(t, 4500, 2, 1, true);   /* more than what is sorted or summed at a time */
    embed_one(t, 40, 1, 70001, true); /* tokens of three bytes */
}

void check_gather(struct trial *t)
{
    enum { N = 37, D = 33, FROM = 5 };
    float *x = trial_random_real(t, FROM * D, 21), *y = trial_random_real(t, N * D, 22);
    int32_t from[N];
    double *want = PL_NEW(2 * N * D, double);
    for (int i = 0; i < N; i++) from[i] = i * 7 % FROM;
    for (int i = 0; i < N * D; i++) want[i] = x[from[i / D] * D + i % D];
    int32_t *dfrom = trial_upload(t, from, N);
    float *dx = trial_upload_real(t, x, FROM * D), *dy = trial_upload_real(t, y, N * D);
    trial_status(t, t->device->gather(N, D, dfrom, dx, dy));
    trial_compare_real(t, "y", dy, N * D, want, want + N * D);
    trial_clear(t);
    free(x), free(y), free(want);
}

/* Sum of d squares (all of one sign: d u relative), root, product: d + 8. */
void check_rmsnorm(struct trial *t)
{
    for (int k = 0; k < ROW_SHAPES; k++) {
        int rows = row_shapes[k][0], d = row_shapes[k][1];
        size_t n = (size_t)rows * (size_t)d, total = n + (size_t)rows;
        float *x = trial_random_real(t, n, 21), *gain = trial_random((size_t)d, 22);
        double *want = PL_NEW(2 * total, double), *weight = want + total;
        for (int r = 0; r < rows; r++) {
            const float *row = x + (size_t)r * (size_t)d;
            double square = 0;
            for (int i = 0; i < d; i++) square += (double)row[i] * row[i];
            double scale = 1 / sqrt(square / d + (double)1e-5f);
            for (int i = 0; i < d; i++)
                want[(size_t)r * (size_t)d + (size_t)i] = row[i] * scale * gain[i];
            want[n + (size_t)r] = scale;
        }
        for (size_t i = 0; i < total; i++) weight[i] = (d + 8) * fabs(want[i]);
        float *dx = trial_upload_real(t, x, n),
              *dgain = trial_upload(t, gain, (size_t)d);
        float *y = trial_upload_real(t, x, n), *rstd = trial_upload(t, x, (size_t)rows);
        trial_status(t, t->device->rmsnorm(rows, d, 1e-5f, dx, dgain, y, rstd));
        trial_compare_real(t, "y", y, n, want, weight);
        trial_compare(t, "rstd", rstd, (size_t)rows, want + n, weight + n);
        trial_clear(t);
        free(x), free(gain), free(want);
    }
}

/* rstd is an input here. The mean adds d terms, dgain rows; both accumulate. */
void check_rmsnorm_back(struct trial *t)
{
    for (int k = 0; k < ROW_SHAPES; k++) {
        int rows = row_shapes[k][0], d = row_shapes[k][1];
        size_t n = (size_t)rows * (size_t)d, total = n + (size_t)d;
        float *x = trial_random_real(t, n, 23), *gain = trial_random((size_t)d, 24);
        float *dy = trial_random_real(t, n, 25), *dx = trial_random_real(t, n, 26);
        float *rstd = trial_random((size_t)rows, 27),
              *dgain = trial_random((size_t)d, 28);
        double *want = PL_NEW(2 * total, double), *weight = want + total;
        for (int i = 0; i < d; i++) {
            want[n + (size_t)i] = dgain[i];
            weight[n + (size_t)i] = (rows + 4) * fabs((double)dgain[i]);
        }
        for (int r = 0; r < rows; r++) {
            double mean = 0, size = 0, s = rstd[r];
            size_t row = (size_t)r * (size_t)d;
            for (int i = 0; i < d; i++) {
                double term =
                    (double)dy[row + (size_t)i] * gain[i] * x[row + (size_t)i];
                mean += term * s * s / d;
                size += fabs(term) * s * s / d;
            }
            for (int i = 0; i < d; i++) {
                size_t e = row + (size_t)i, g = n + (size_t)i;
                double direct = (double)dy[e] * gain[i],
                       part = (double)dy[e] * x[e] * s;
                want[e] = dx[e] + s * (direct - x[e] * mean);
                weight[e] = (d + 8) * (fabs((double)dx[e]) +
                                       fabs(s) * (fabs(direct) + fabs(x[e] * size)));
                want[g] += part;
                weight[g] += (rows + 4) * fabs(part);
            }
        }
        float *ux = trial_upload_real(t, x, n),
              *ugain = trial_upload(t, gain, (size_t)d);
        float *ur = trial_upload(t, rstd, (size_t)rows),
              *uy = trial_upload_real(t, dy, n);
        float *ud = trial_upload_real(t, dx, n),
              *ug = trial_upload(t, dgain, (size_t)d);
        trial_status(t, t->device->rmsnorm_back(rows, d, ux, ugain, ur, uy, ud, ug));
        trial_compare_real(t, "dx", ud, n, want, weight);
        trial_compare(t, "dgain", ug, (size_t)d, want + n, weight + n);
        for (size_t e = 0; e < n; e++) want[e] -= dx[e];
        trial_status(t, t->device->upload(ug, dgain, (size_t)d * sizeof *dgain));
        trial_status(t, t->device->rmsnorm_back(rows, d, ux, ugain, ur, uy, uy, ug));
        trial_compare_real(t, "dx in dy's place", uy, n, want, weight);
        trial_compare(t, "dgain", ug, (size_t)d, want + n, weight + n);
        trial_clear(t);
        free(x), free(gain), free(dy), free(dx), free(rstd), free(dgain), free(want);
    }
}

/* cos and sin rounded, two products, a sum: 3 u of |a| + |b|; the rest stays. */
static void rope_one(struct trial *t, int rows, int T, int heads, int dim, int ld,
                     int direction)
{
    size_t n = (size_t)rows * (size_t)ld;
    float *x = trial_random_real(t, n, 29);
    double *want = PL_NEW(2 * n, double), *weight = want + n;
    for (size_t i = 0; i < n; i++) want[i] = x[i];
    for (int r = 0; r < rows; r++)
        for (int p = 0; p < heads * (dim / 2); p++) {
            int i = p % (dim / 2);
            size_t e = (size_t)r * (size_t)ld + (size_t)(p / (dim / 2) * dim + i);
            size_t f = e + (size_t)(dim / 2);
            double angle = direction * (r % T) * pow(10000, -2.0 * i / dim);
            want[e] = x[e] * cos(angle) - x[f] * sin(angle);
            want[f] = x[e] * sin(angle) + x[f] * cos(angle);
            weight[e] = weight[f] = fabs((double)x[e]) + fabs((double)x[f]);
        }
    float *dx = trial_upload_real(t, x, n);
    trial_status(t, t->device->rope(rows, T, heads, dim, ld, 10000, direction, dx));
    trial_compare_real(t, "x", dx, n, want, weight);
    trial_clear(t);
    free(x), free(want);
}

void check_rope(struct trial *t)
{
    rope_one(t, 1, 1, 1, 2, 2, 1);
    rope_one(t, 14, 7, 3, 6, 25, 1);
    rope_one(t, 66, 33, 2, 32, 96, -1);
    rope_one(t, 5, 9, 1, 140, 140, 1);
}

/* sigmoid 5 u, two products: 8 u; gate from deep negative to deep positive. */
static void swiglu_one(struct trial *t, int rows, int f, bool back)
{
    size_t n = (size_t)rows * (size_t)f, total = back ? 2 * n : n;
    float *x = trial_random(2 * n, 31), *dh = trial_random_real(t, n, 32);
    double *want = PL_NEW(2 * total, double), *weight = want + total;
    for (size_t i = 0; i < n; i++) {
        size_t e = i / (size_t)f * 2 * (size_t)f + i % (size_t)f, u = e + (size_t)f;
        x[e] *= i % 3 ? 1.0f : i % 2 ? 10.0f : 60.0f;
        trial_round(t, &x[e], 1);
        trial_round(t, &x[u], 1);
        double g = x[e], up = x[u], s = 1 / (1 + exp(-g));
        /* below e^-87 a float device may flush: an absolute slack far under any use */
        double tiny = 1e-28 * (1 + fabs(up)) * (1 + fabs(g));
        if (back) {
            want[e] = dh[i] * up * s * (1 + g * (1 - s));
            want[u] = dh[i] * g * s;
            weight[e] = fabs(dh[i] * up) * s * (1 + fabs(g)) + tiny;
            weight[u] = fabs(want[u]) + tiny;
        } else {
            want[i] = g * s * up;
            weight[i] = fabs(want[i]) + tiny;
        }
    }
    float *dx = trial_upload_real(t, x, 2 * n), *dd = trial_upload_real(t, dh, n);
    float *out = trial_upload_real(t, x, 2 * n);
    trial_status(t, back ? t->device->swiglu_back(rows, f, dx, dd, out)
                         : t->device->swiglu(rows, f, dx, out));
    trial_compare_real(t, back ? "dgate_up" : "h", out, total, want, weight);
    trial_clear(t);
    free(x), free(dh), free(want);
}

void check_swiglu(struct trial *t)
{
    for (int k = 0; k < ROW_SHAPES; k++)
        swiglu_one(t, row_shapes[k][0], row_shapes[k][1], false);
}

void check_swiglu_back(struct trial *t)
{
    for (int k = 0; k < ROW_SHAPES; k++)
        swiglu_one(t, row_shapes[k][0], row_shapes[k][1], true);
}

/* x - max is rounded and exponentiated: |x - max| + 8; the sum adds vocab. */
static void xent_one(struct trial *t, int rows, int vocab, float scale)
{
    size_t n = (size_t)rows * (size_t)vocab;
    float *x = trial_random(n, 33);
    int32_t *targets = PL_NEW(rows, int32_t);
    double *want = PL_NEW(2 * n, double), *weight = want + n, loss = 0, slack = 0;
    for (int r = 0; r < rows; r++) {
        float *row = x + (size_t)r * (size_t)vocab;
        double max = -INFINITY, sum = 0;
        targets[r] = (int32_t)((r * 5 + 2) % vocab);
        for (int i = 0; i < vocab; i++) row[i] *= 4;
        trial_round(t, row, (size_t)vocab);
        for (int i = 0; i < vocab; i++) max = fmax(max, row[i]);
        for (int i = 0; i < vocab; i++) sum += exp(row[i] - max);
        for (int i = 0; i < vocab; i++) {
            size_t e = (size_t)r * (size_t)vocab + (size_t)i;
            double p = exp(row[i] - max) / sum, hot = i == targets[r];
            want[e] = scale == 0 ? row[i] : scale * (p - hot);
            weight[e] = fabs(scale) * (p + hot) * (vocab + 2 * (max - row[i]) + 8);
        }
        loss += max + log(sum) - row[targets[r]];
        slack += vocab + 40 + 4 * fabs(max) + fabs((double)row[targets[r]]);
    }
    float *dx = trial_upload_real(t, x, n);
    int32_t *dt = trial_upload(t, targets, (size_t)rows);
    double got = 0.5, *sum = trial_upload(t, &got, 2);
    trial_status(t, t->device->xent(rows, vocab, dx, dt, scale, sum));
    trial_status(t, t->device->download(&got, sum, sizeof got));
    loss += 0.5;
    trial_compare_real(t, "logits", dx, n, want, weight);
    trial_compare_double(t, "loss", got, loss, t->op->c * slack * 0x1p-23);
    trial_clear(t);
    free(x), free(targets), free(want);
}

void check_xent(struct trial *t)
{
    xent_one(t, 1, 2, 1);
    xent_one(t, 9, 37, 0);
    xent_one(t, 17, 256, 0.01f);
    xent_one(t, 3, 1001, -2);
    xent_one(t, 2, 8200, 1);
}
