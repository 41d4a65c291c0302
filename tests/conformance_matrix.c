/* Conformance of the operations that the weight store and the optimizers are made of:
 * weighted sums, distances, products and quotients of elements, sums of squares along a
 * matrix, the symmetric product. */
#include "tests/conformance.h"
#include "base/mem.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>

static const size_t lengths[] = {1, 15, 16, 67, 1000};
enum { LENGTHS = sizeof lengths / sizeof *lengths };

/* A product and a sum for each term: 2 terms u. */
static void blend_one(struct trial *t, size_t n, int terms, float first)
{
    const float a[PL_BLEND] = {first, -0.3f, 0.7f, -1.5f};
    double *want = PL_NEW(2 * n, double), *weight = want + n;
    float *x[PL_BLEND], *on_device[PL_BLEND], *y = PL_NEW(n, float);
    for (size_t i = 0; i < n; i++) y[i] = NAN;
    for (int k = 0; k < terms; k++) {
        x[k] = trial_random(n, 60 + (uint64_t)k);
        on_device[k] = trial_upload(t, x[k], n);
        for (size_t i = 0; i < n; i++) {
            want[i] += (double)a[k] * x[k][i];
            weight[i] += terms * fabs((double)a[k] * x[k][i]);
        }
    }
    float *dy = trial_upload(t, y, n);
    const float *const *from = (const float *const *)on_device;
    trial_status(t, t->device->blend(n, terms, a, from, dy));
    trial_compare(t, "y", dy, n, want, weight);
    for (int k = 0; k < terms; k++) { /* y one of the x */
        trial_status(t, t->device->blend(n, terms, a, from, on_device[k]));
        trial_compare(t, "in place", on_device[k], n, want, weight);
        trial_status(t, t->device->upload(on_device[k], x[k], n * sizeof *y));
    }
    trial_clear(t);
    for (int k = 0; k < terms; k++) free(x[k]);
    free(y), free(want);
}

void check_blend(struct trial *t)
{
    for (size_t i = 0; i < LENGTHS; i++)
        for (int terms = 0; terms <= PL_BLEND; terms++) {
            blend_one(t, lengths[i], terms, 1);
            blend_one(t, lengths[i], terms, 0.9f);
        }
}

/* A difference is off by u, its square by 2 u; sums in double. */
void check_distance(struct trial *t)
{
    for (size_t k = 0; k < LENGTHS; k++) {
        size_t n = lengths[k];
        float *x = trial_random(n, 64), *y = trial_random(n, 65);
        double sum = 0, got = NAN;
        for (size_t i = 0; i < n; i++) {
            double d = (double)x[i] - y[i];
            sum += d * d;
        }
        float *dx = trial_upload(t, x, n), *dy = trial_upload(t, y, n);
        trial_status(t, t->device->distance(n, dx, dy, &got));
        trial_compare_double(t, "sum", got, sum, t->op->c * (double)FLT_EPSILON * sum);
        trial_status(t, t->device->distance(n, dx, dx, &got));
        trial_compare_double(t, "to itself", got, 0, 0);
        trial_clear(t);
        free(x), free(y);
    }
}

/* Three products and a sum, and the sum again when b y was rounded: 4 u. */
static void mul_one(struct trial *t, size_t n, float a, float b)
{
    float *x = trial_random(n, 40), *z = trial_random(n, 41), *y = trial_random(n, 42);
    double *want = PL_NEW(2 * n, double), *weight = want + n;
    for (size_t i = 0; i < n; i++) {
        double left = (double)a * x[i] * z[i], right = b == 0 ? 0 : (double)b * y[i];
        want[i] = left + right;
        weight[i] = 2 * (fabs(left) + fabs(right));
        if (b == 0) y[i] = NAN;
    }
    float *dx = trial_upload(t, x, n), *dz = trial_upload(t, z, n);
    float *dy = trial_upload(t, y, n);
    trial_status(t, t->device->mul(n, a, dx, dz, b, dy));
    trial_compare(t, "y", dy, n, want, weight);
    /* all three one array */
    trial_status(t, t->device->mul(n, 1, dx, dx, 0, dx));
    for (size_t i = 0; i < n; i++) want[i] = weight[i] = (double)x[i] * x[i];
    trial_compare(t, "square in place", dx, n, want, weight);
    trial_clear(t);
    free(x), free(z), free(y), free(want);
}

void check_mul(struct trial *t)
{
    for (size_t i = 0; i < LENGTHS; i++) {
        mul_one(t, lengths[i], -1.5f, 0);
        mul_one(t, lengths[i], 0.3f, 0.7f);
    }
}

static const int shapes[][2] = {{1, 1},   {1, 67},  {33, 1}, {3, 5},
                                {16, 64}, {37, 33}, {130, 7}};
enum { SHAPES = sizeof shapes / sizeof *shapes };

static size_t along_index(enum pl_along along, int n, size_t e)
{
    return along == PL_EACH ? e : along == PL_ROW ? e / (size_t)n : e % (size_t)n;
}

/* Half a rounding of v + under; the root, s, eps, the quotient, a, b, the sum: 8 u. */
static void ratio_one(struct trial *t, int m, int n, const struct pl_ratio_args *p)
{
    const size_t size = (size_t)m * (size_t)n;
    float *x = trial_random(size, 43), *v = trial_random(size, 44);
    float *y = trial_random(size, 45);
    double *want = PL_NEW(2 * size, double), *weight = want + size;
    for (size_t e = 0; e < size; e++) v[e] = e % 7 == 3 ? 0 : v[e] * v[e];
    for (size_t e = 0; e < size; e++) {
        double root = p->s * sqrt(v[along_index(p->along, n, e)] + p->under);
        double d = p->clamp ? fmax(root, p->eps) : root + p->eps;
        double left = p->a * x[e] / d, right = p->b == 0 ? 0 : p->b * y[e];
        want[e] = left + right;
        weight[e] = 4 * (fabs(left) + fabs(right));
        if (p->b == 0) y[e] = NAN;
    }
    float *dx = trial_upload(t, x, size), *dv = trial_upload(t, v, size);
    float *dy = trial_upload(t, y, size);
    trial_status(t, t->device->ratio(m, n, p, dx, dv, dy));
    trial_compare(t, "y", dy, size, want, weight);
    if (p->b == 0) { /* in place */
        trial_status(t, t->device->ratio(m, n, p, dx, dv, dx));
        trial_compare(t, "in place", dx, size, want, weight);
    }
    trial_clear(t);
    free(x), free(v), free(y), free(want);
}

void check_ratio(struct trial *t)
{
    for (int k = 0; k < SHAPES; k++)
        for (int form = 0; form < 18; form++) {
            struct pl_ratio_args p = {.along = (enum pl_along)(form % 3),
                                      .a = 0.3,
                                      .b = form / 3 % 2 ? -0.7 : 0,
                                      .s = 1.25,
                                      .eps = form / 6 == 1 ? 0.5 : 1e-3,
                                      .under = form / 6 == 2 ? 0.25 : 0,
                                      .clamp = form / 6 == 1};
            ratio_one(t, shapes[k][0], shapes[k][1], &p);
        }
}

/* A square and a sum for each term, then a, b and their sum: inner + 4 roundings. */
static void squares_one(struct trial *t, enum pl_along along, int m, int n, float b)
{
    const size_t size = (size_t)m * (size_t)n,
                 outer = (size_t)(along == PL_ROW ? m : n);
    const float a = 0.25f;
    float *x = trial_random(size, 46), *out = trial_random(outer, 47);
    double *want = PL_NEW(2 * outer, double), *weight = want + outer;
    for (size_t e = 0; e < size; e++)
        want[along_index(along, n, e)] += (double)a * x[e] * x[e];
    for (size_t k = 0; k < outer; k++) {
        double old = b == 0 ? 0 : (double)b * out[k];
        weight[k] = ((along == PL_ROW ? n : m) + 4) * (want[k] + fabs(old));
        want[k] += old;
        if (b == 0) out[k] = NAN;
    }
    float *dx = trial_upload(t, x, size), *dout = trial_upload(t, out, outer);
    trial_status(t, t->device->squares(along, m, n, a, dx, b, dout));
    trial_compare(t, "out", dout, outer, want, weight);
    trial_clear(t);
    free(x), free(out), free(want);
}

void check_squares(struct trial *t)
{
    for (int k = 0; k < SHAPES; k++)
        for (int form = 0; form < 4; form++)
            squares_one(t, form % 2 ? PL_COLUMN : PL_ROW, shapes[k][0], shapes[k][1],
                        form / 2 ? 0.9f : 0);
}

/* As gemm: k + 3 roundings. The upper triangle of C is never read (NaN here), and the
 * result is symmetric to the bit. Padding must not change. */
static void syrk_one(struct trial *t, int n, int k, bool ta, float beta)
{
    enum { PAD = 3 };
    const float alpha = -0.5f;
    const int lda = (ta ? n : k) + PAD, ldc = n + PAD;
    const size_t na = (size_t)lda * (size_t)(ta ? k : n), nc = (size_t)ldc * (size_t)n;
    float *a = trial_random(na, 48), *c = trial_random(nc, 49);
    double *want = PL_NEW(2 * nc, double), *weight = want + nc;
    const size_t row = ta ? 1 : (size_t)lda, col = ta ? (size_t)lda : 1;
    for (size_t e = 0; e < nc; e++) want[e] = c[e];
    for (int i = 0; i < n; i++)
        for (int j = 0; j <= i; j++) {
            size_t e = (size_t)i * (size_t)ldc + (size_t)j;
            size_t f = (size_t)j * (size_t)ldc + (size_t)i;
            double sum = 0, size = 0, old = beta == 0 ? 0 : (double)beta * c[e];
            for (int l = 0; l < k; l++) {
                double x = (double)a[(size_t)i * row + (size_t)l * col] *
                           a[(size_t)j * row + (size_t)l * col];
                sum += x;
                size += fabs(x);
            }
            want[e] = want[f] = (double)alpha * sum + old;
            weight[e] = weight[f] = (k + 3) * (fabs(alpha * size) + fabs(old));
            if (i != j) c[f] = NAN;
            if (beta == 0) c[e] = NAN;
        }
    float *da = trial_upload(t, a, na), *dc = trial_upload(t, c, nc);
    trial_status(t, t->device->syrk(ta, n, k, alpha, da, lda, beta, dc, ldc));
    trial_compare(t, "C", dc, nc, want, weight);
    trial_status(t, t->device->download(c, dc, nc * sizeof *c));
    for (int i = 0; i < n; i++)
        for (int j = 0; j < i; j++)
            trial_compare_double(t, "C^T", c[(size_t)j * (size_t)ldc + (size_t)i],
                                 c[(size_t)i * (size_t)ldc + (size_t)j], 0);
    trial_clear(t);
    free(a), free(c), free(want);
}

void check_syrk(struct trial *t)
{
    static const int cases[][2] = {{1, 1},   {3, 5},   {16, 16}, {33, 70},
                                   {150, 9}, {540, 3}, {70, 520}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (int form = 0; form < 4; form++)
            syrk_one(t, cases[i][0], cases[i][1], form % 2, form / 2 ? 0.5f : 0);
}

/* Where element (i, k) of op(A), and (k, j) of op(B), of c = op(A) op(B) lies. */
struct product_form {
    int rows, cols, depth;             /* of c, and its sums */
    size_t a_row, a_col, b_row, b_col; /* steps */
};

static struct product_form form_of(enum pl_product which, int rows, int in, int out)
{
    const size_t i = (size_t)in, o = (size_t)out;
    if (which == PL_PRODUCT_Y) return (struct product_form){rows, out, in, i, 1, 1, i};
    if (which == PL_PRODUCT_DX) return (struct product_form){rows, in, out, o, 1, i, 1};
    return (struct product_form){out, in, rows, 1, o, i, 1};
}

struct product_case {
    enum pl_product which;
    int rows, in, out;
    enum addend addend;
    bool biased;
};

/* As gemm, with the addend's sum and the bias's: depth + 4 roundings. Where activations
 * are bf16, W and bias are rounded to bf16 too, at most 2^-8 of each: 2^-8 of each term
 * with one of them, unless they are held exactly, as without an addend here. Where the
 * bias is added in a pass of its own, the result of the one before was rounded: 2^-8 of
 * that, no more than of all terms. */
static void product_one(struct trial *t, const struct product_case *p)
{
    const struct product_form f = form_of(p->which, p->rows, p->in, p->out);
    const size_t na = (size_t)f.rows * (size_t)f.depth;
    const size_t nb = (size_t)f.depth * (size_t)f.cols;
    const size_t nc = (size_t)f.rows * (size_t)f.cols;
    const bool weights = p->which != PL_PRODUCT_DW; /* b is; else c is their gradient */
    const bool half = t->device->real_bytes == 2, coarse = half && p->addend != NONE;
    const double bf16 = 0x1p-8 / (double)FLT_EPSILON,
                 twice = p->biased && half ? bf16 : 0;
    const double per =
        f.depth + 4 + t->product + twice + (coarse && weights ? bf16 : 0);
    float *a = trial_random_real(t, na, 50), *b = trial_random(nb, 51);
    float *old = weights ? trial_random_real(t, nc, 52) : trial_random(nc, 52);
    float *bias = trial_random((size_t)p->out, 53), *c = PL_NEW(nc, float);
    if (!coarse || !weights) trial_round(t, b, nb);
    if (!coarse) trial_round(t, bias, (size_t)p->out);
    double *want = PL_NEW(2 * nc, double), *weight = want + nc;
    for (size_t e = 0; e < nc; e++) {
        const size_t i = e / (size_t)f.cols, j = e % (size_t)f.cols;
        const double add = p->addend == NONE ? 0 : old[e],
                     one = p->biased ? bias[j] : 0;
        double sum = 0;
        for (size_t k = 0; k < (size_t)f.depth; k++) {
            double x =
                (double)a[i * f.a_row + k * f.a_col] * b[k * f.b_row + j * f.b_col];
            sum += x;
            weight[e] += fabs(x) * per;
        }
        want[e] = sum + add + one;
        weight[e] += (f.depth + 4) * (fabs(add) + fabs(one)) + twice * fabs(add) +
                     (coarse ? bf16 : 0) * fabs(one);
        c[e] = p->addend == ITSELF ? old[e] : NAN;
    }
    float *da = trial_upload_real(t, a, na),
          *dbias = trial_upload(t, bias, (size_t)p->out);
    float *db = weights ? trial_upload(t, b, nb) : trial_upload_real(t, b, nb);
    float *dc = weights ? trial_upload_real(t, c, nc) : trial_upload(t, c, nc);
    float *dold = weights ? trial_upload_real(t, old, nc) : trial_upload(t, old, nc);
    const float *const addend[ADDENDS] = {NULL, dc, dold};
    trial_status(t,
                 t->device->product(p->which, p->rows, p->in, p->out, da, db,
                                    p->biased ? dbias : NULL, addend[p->addend], dc));
    if (weights)
        trial_compare_real(t, "c", dc, nc, want, weight);
    else
        trial_compare(t, "c", dc, nc, want, weight);
    for (size_t e = 0; e < nc; e++) want[e] = old[e], weight[e] = 0;
    if (weights)
        trial_compare_real(t, "addend", dold, nc, want, weight);
    else
        trial_compare(t, "addend", dold, nc, want, weight);
    trial_clear(t);
    free(a), free(b), free(c), free(old), free(bias), free(want);
}

void check_product(struct trial *t)
{
    static const int sizes[][3] = {{1, 1, 1}, {5, 7, 3}, {70, 33, 18}, {9, 64, 136}};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        for (int form = 0; form < 4 * ADDENDS; form++) {
            const int *n = sizes[i], kind = form / ADDENDS; /* 3: Y with a bias */
            product_one(
                t, &(struct product_case){(enum pl_product)(kind % 3), n[0], n[1], n[2],
                                          (enum addend)(form % ADDENDS), kind == 3});
        }
}
