#include "tests/conformance.h"
#include "base/mem.h"
#include "base/rng.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

float *trial_random(size_t n, uint64_t stream)
{
    float *x = PL_NEW(n, float);
    for (size_t i = 0; i < n; i++)
        x[i] = (float)pl_rng_normal(11, PL_RNG_TEST, stream, (uint32_t)i);
    return x;
}

void trial_round(const struct trial *t, float *x, size_t n)
{
    for (size_t i = 0; i < n && t->device->real_bytes == 2; i++) {
        uint32_t bits;
        memcpy(&bits, &x[i], sizeof bits);
        if (x[i] == x[i]) bits = (bits + 0x7fff + (bits >> 16 & 1)) & 0xffff0000u;
        memcpy(&x[i], &bits, sizeof bits);
    }
}

float *trial_random_real(const struct trial *t, size_t n, uint64_t stream)
{
    float *x = trial_random(n, stream);
    trial_round(t, x, n);
    return x;
}

void trial_status(struct trial *t, int status)
{
    if (status && !t->failures++)
        snprintf(t->text, t->room, "%s: status %d", t->op->op, status);
}

static void *upload(struct trial *t, const void *host, size_t bytes)
{
    void *block = NULL;
    trial_status(t, t->device->alloc(bytes, &block));
    if (!block || t->used == 16) abort();
    t->blocks[t->used++] = block;
    trial_status(t, t->device->upload(block, host, bytes));
    return block;
}

void *trial_upload(struct trial *t, const void *host, size_t n)
{
    return upload(t, host, n * sizeof(float));
}

void *trial_upload_real(struct trial *t, const float *host, size_t n)
{
    if (t->device->real_bytes != 2) return trial_upload(t, host, n);
    uint16_t *half = PL_NEW(n, uint16_t);
    for (size_t i = 0; i < n; i++) {
        uint32_t bits;
        memcpy(&bits, &host[i], sizeof bits);
        half[i] = (uint16_t)(bits >> 16);
    }
    void *block = upload(t, half, n * sizeof *half);
    free(half);
    return block;
}

void trial_clear(struct trial *t)
{
    while (t->used) t->device->release(t->blocks[--t->used]);
}

static void mix(struct trial *t, const void *bytes, size_t n)
{
    const unsigned char *p = bytes; /* FNV-1a */
    for (size_t i = 0; i < n; i++) t->hash = (t->hash ^ p[i]) * 0x100000001b3;
}

static void judge(struct trial *t, const char *what, size_t i, double got, double want,
                  double bound)
{
    if (fabs(got - want) <= bound || (got == want && bound == 0)) return;
    if (!t->failures++)
        snprintf(t->text, t->room, "%s: %s[%zu] is %.9g, expected %.9g within %.3g",
                 t->op->op, what, i, got, want, bound);
}

void trial_compare(struct trial *t, const char *what, const float *device, size_t n,
                   const double *want, const double *weight)
{
    float *got = PL_NEW(n, float);
    trial_status(t, t->device->download(got, device, n * sizeof *got));
    mix(t, got, n * sizeof *got);
    for (size_t i = 0; i < n; i++)
        judge(t, what, i, got[i], want[i], t->op->c * (double)FLT_EPSILON * weight[i]);
    free(got);
}

void trial_compare_real(struct trial *t, const char *what, const float *device,
                        size_t n, const double *want, const double *weight)
{
    if (t->device->real_bytes != 2) {
        trial_compare(t, what, device, n, want, weight);
        return;
    }
    uint16_t *half = PL_NEW(n, uint16_t);
    trial_status(t, t->device->download(half, device, n * sizeof *half));
    mix(t, half, n * sizeof *half);
    for (size_t i = 0; i < n; i++) {
        uint32_t bits = (uint32_t)half[i] << 16;
        float got;
        memcpy(&got, &bits, sizeof got);
        double near = t->op->c * (double)FLT_EPSILON * weight[i];
        judge(t, what, i, got, want[i],
              near + 0x1p-8 * (fabs(want[i]) + near) + 0x1p-134); /* last: denormal */
    }
    free(half);
}

void trial_compare_double(struct trial *t, const char *what, double got, double want,
                          double bound)
{
    mix(t, &got, sizeof got);
    judge(t, what, 0, got, want, bound);
}

struct gemm_case {
    int M, N, K, pad;
    float alpha, beta;
};

static double at(const float *x, bool transposed, int ld, int i, int k)
{
    return x[transposed ? (size_t)k * (size_t)ld + (size_t)i
                        : (size_t)i * (size_t)ld + (size_t)k];
}

/* K products and sums, alpha, beta: K + 3 roundings. Padding of C must not change. */
static void gemm_one(struct trial *t, const struct gemm_case *g, bool ta, bool tb)
{
    int lda = (ta ? g->M : g->K) + g->pad, ldb = (tb ? g->K : g->N) + g->pad;
    int ldc = g->N + g->pad;
    size_t na = (size_t)lda * (size_t)(ta ? g->K : g->M);
    size_t nb = (size_t)ldb * (size_t)(tb ? g->N : g->K);
    size_t nc = (size_t)ldc * (size_t)g->M;
    float *a = trial_random(na, 1), *b = trial_random(nb, 2), *c = trial_random(nc, 3);
    double *want = PL_NEW(nc, double), *weight = PL_NEW(nc, double);
    for (int i = 0; i < g->M; i++)
        for (int j = 0; j < ldc; j++) {
            size_t e = (size_t)i * (size_t)ldc + (size_t)j;
            want[e] = c[e];
            if (j >= g->N) continue;
            double sum = 0, size = 0;
            for (int k = 0; k < g->K; k++) {
                double x = at(a, ta, lda, i, k) * at(b, !tb, ldb, j, k);
                sum += x;
                size += fabs(x);
            }
            double old = g->beta == 0 ? 0 : (double)g->beta * c[e];
            want[e] = (double)g->alpha * sum + old;
            weight[e] = (g->K + 3) * (fabs(g->alpha * size) + fabs(old)) +
                        t->product * fabs(g->alpha * size);
            if (g->beta == 0) c[e] = NAN;
        }
    float *da = trial_upload(t, a, na), *db = trial_upload(t, b, nb);
    float *dc = trial_upload(t, c, nc);
    trial_status(t, t->device->gemm(ta, tb, g->M, g->N, g->K, g->alpha, da, lda, db,
                                    ldb, g->beta, dc, ldc));
    trial_compare(t, "C", dc, nc, want, weight);
    trial_clear(t);
    free(a), free(b), free(c), free(want), free(weight);
}

static void check_gemm(struct trial *t)
{
    static const struct gemm_case cases[] = {
        {1, 1, 1, 0, 1, 0},       {3, 5, 7, 2, 1, 1},        {16, 16, 16, 0, 1, 0},
        {13, 33, 17, 1, -0.5, 2}, {49, 64, 300, 3, 1, 0.25}, {1, 300, 65, 0, 2, 0},
        {500, 17, 31, 5, 1, 0},   {26, 550, 70, 3, 1, 1},    {37, 1, 64, 0, 1, 1},
        {5, 4, 0, 1, 1, 0.5},     {20, 33, 1, 0, 1, 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (int form = 0; form < 4; form++)
            gemm_one(t, &cases[i], form & 1, form >> 1);
}

static const size_t lengths[] = {1, 15, 16, 67, 1000};

/* Two products and a sum: 3 u. */
static void axpby_one(struct trial *t, size_t n, float a, float b)
{
    float *x = trial_random(n, 4), *y = trial_random(n, 5);
    double *want = PL_NEW(n, double), *weight = PL_NEW(n, double);
    for (size_t i = 0; i < n; i++) {
        double left = (double)a * x[i], right = b == 0 ? 0 : (double)b * y[i];
        want[i] = left + right;
        weight[i] = fabs(left) + fabs(right);
        if (b == 0) y[i] = NAN;
    }
    float *dx = trial_upload(t, x, n), *dy = trial_upload(t, y, n);
    trial_status(t, t->device->axpby(n, a, dx, b, dy));
    trial_compare(t, "y", dy, n, want, weight);
    trial_clear(t);
    free(x), free(y), free(want), free(weight);
}

static void check_axpby(struct trial *t)
{
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        axpby_one(t, lengths[i], -1.5f, 0);
        axpby_one(t, lengths[i], 0.3f, 1);
        axpby_one(t, lengths[i], 1, -0.9f);
    }
}

/* Products of floats are exact in double: n sums of 2^-53 each, whatever the order. */
static void check_dot(struct trial *t)
{
    for (size_t k = 0; k < sizeof lengths / sizeof *lengths; k++) {
        size_t n = lengths[k];
        float *x = trial_random(n, 6), *y = trial_random(n, 7);
        long double sum = 0, size = 0;
        for (size_t i = 0; i < n; i++) {
            sum += (long double)x[i] * y[i];
            size += fabsl((long double)x[i] * y[i]);
        }
        double got = NAN;
        float *dx = trial_upload(t, x, n), *dy = trial_upload(t, y, n);
        trial_status(t, t->device->dot(n, dx, dy, &got));
        trial_compare_double(t, "sum", got, (double)sum,
                             t->op->c * (double)n * DBL_EPSILON * (double)size);
        trial_clear(t);
        free(x), free(y);
    }
}

static void check_sign(struct trial *t)
{
    for (size_t k = 0; k < sizeof lengths / sizeof *lengths; k++) {
        size_t n = lengths[k];
        float *x = trial_random(n, 8);
        double *want = PL_NEW(n, double), *weight = PL_NEW(n, double);
        for (size_t i = 0; i < n; i++) {
            if (i % 5 == 2) x[i] = i % 2 ? 0.0f : -0.0f;
            want[i] = x[i] > 0 ? 1 : x[i] < 0 ? -1 : 0;
        }
        float *dx = trial_upload(t, x, n), *dy = trial_upload(t, x, n);
        trial_status(t, t->device->sign(n, dx, dy));
        trial_compare(t, "y", dy, n, want, weight);
        trial_clear(t);
        free(x), free(want), free(weight);
    }
}

/* Tensor number k on the device and, in want, m, v and u of its n elements. m and v:
 * four roundings with those of the constants. u: m's, half of v's, five more. */
static struct pl_adamw_tensor adamw_one(struct trial *t, int k, size_t n,
                                        const struct pl_adamw_args *p, double *want,
                                        double *weight)
{
    struct pl_adamw_tensor x = {.n = n, .decay = 0.1 * k};
    const uint64_t stream = 1000 + 10 * (uint64_t)k;
    float *g = trial_random(n, stream), *w = trial_random(n, stream + 1);
    float *m = trial_random(n, stream + 2), *v = trial_random(n, stream + 3);
    for (size_t i = 0; i < n; i++) {
        v[i] = fabsf(v[i]);
        double size = fabs(p->beta1 * m[i]) + fabs((1 - p->beta1) * g[i]);
        want[i] = p->beta1 * m[i] + (1 - p->beta1) * g[i];
        want[n + i] = p->beta2 * v[i] + (1 - p->beta2) * g[i] * g[i];
        double step = p->eta / p->bc1 / (sqrt(want[n + i] / p->bc2) + p->eps);
        want[2 * n + i] = step * want[i] + p->eta * x.decay * w[i];
        weight[i] = 2 * size;
        weight[n + i] = 3 * want[n + i];
        weight[2 * n + i] = 8 * (step * size + fabs(p->eta * x.decay * w[i]));
    }
    x.g = trial_upload(t, g, n);
    x.w = trial_upload(t, w, n);
    x.m = trial_upload(t, m, n);
    x.v = trial_upload(t, v, n);
    x.u = trial_upload(t, g, n);
    free(g), free(w), free(m), free(v);
    return x;
}

static void check_adamw(struct trial *t)
{
    static const struct pl_adamw_args args[] = {{1e-3, 0.9, 0.95, 1e-8, 0.1, 0.05},
                                                {0.5, 0.5, 0.999, 1e-3, 0.75, 0.5}};
    for (int k = 0; k < 5; k++) { /* pairs of tensors of all lengths */
        const struct pl_adamw_args *p = &args[k % 2];
        const size_t n[] = {lengths[k], lengths[(k + 1) % 5]};
        struct pl_adamw_tensor list[2];
        double *want[2], *weight[2];
        for (int i = 0; i < 2; i++) {
            want[i] = PL_NEW(6 * n[i], double);
            weight[i] = want[i] + 3 * n[i];
            list[i] = adamw_one(t, i, n[i], p, want[i], weight[i]);
        }
        trial_status(t, t->device->adamw(0, list, p));
        trial_status(t, t->device->adamw(2, list, p));
        for (int i = 0; i < 2; i++) {
            const struct pl_adamw_tensor *x = &list[i];
            trial_compare(t, "m", x->m, x->n, want[i], weight[i]);
            trial_compare(t, "v", x->v, x->n, want[i] + x->n, weight[i] + x->n);
            trial_compare(t, "u", x->u, x->n, want[i] + 2 * x->n, weight[i] + 2 * x->n);
            free(want[i]);
        }
        trial_clear(t);
    }
    enum { MANY = 100 }; /* more than one launch takes */
    struct pl_adamw_tensor list[MANY], one;
    double want[6];
    for (int i = 0; i < MANY; i++) {
        one = adamw_one(t, 1, 1, &args[0], want, want + 3);
        list[i] = one;
        if (i < MANY - 1) list[i].n = 0, trial_clear(t);
    }
    trial_status(t, t->device->adamw(MANY, list, &args[0]));
    trial_compare(t, "u of the last", list[MANY - 1].u, 1, want + 2, want + 5);
    trial_clear(t);
}

const struct conformance conformance_table[] = {
    {"gemm", 1, check_gemm},
    {"axpby", 2, check_axpby},
    {"blend", 1, check_blend},
    {"dot", 1, check_dot},
    {"distance", 1, check_distance},
    {"sign", 0, check_sign},
    {"mul", 1, check_mul},
    {"ratio", 1, check_ratio},
    {"squares", 1, check_squares},
    {"syrk", 1, check_syrk},
    {"gemm_batch", 1, check_gemm_batch},
    {"syrk_batch", 1, check_syrk_batch},
    {"round_bf16", 0, check_round_bf16},
    {"adamw", 1, check_adamw},
    {"product", 1, check_product},
    {"product_groups", 1, check_product_groups},
    {"bias_groups_back", 1, check_bias_groups_back},
    {"gather", 0, check_gather},
    {"embed", 0, check_embed},
    {"embed_back", 1, check_embed_back},
    {"add_rows", 1, check_add_rows},
    {"add_rows_back", 1, check_add_rows_back},
    {"rmsnorm", 1, check_rmsnorm},
    {"rmsnorm_back", 1, check_rmsnorm_back},
    {"layernorm", 1, check_layernorm},
    {"layernorm_back", 1, check_layernorm_back},
    {"headnorm", 1, check_headnorm},
    {"headnorm_back", 1, check_headnorm_back},
    {"route", 1, check_route},
    {"route_back", 1, check_route_back},
    {"combine", 1, check_combine},
    {"combine_back", 1, check_combine_back},
    {"rope", 2, check_rope},
    {"attention", 1, check_attention},
    {"attention_back", 1, check_attention_back},
    {"swiglu", 4, check_swiglu},
    {"swiglu_back", 8, check_swiglu_back},
    {"gelu", 1, check_gelu},
    {"gelu_back", 1, check_gelu_back},
    {"xent", 1, check_xent},
    {NULL, 0, NULL},
};

bool conformance_run(const struct conformance *op, const struct pl_device *device,
                     char *text, size_t n)
{
    return conformance_run_rounded(op, device, 0, text, n);
}

bool conformance_run_rounded(const struct conformance *op,
                             const struct pl_device *device, double product, char *text,
                             size_t n)
{
    uint64_t hash[2];
    int failures = 0;
    if (n) *text = '\0';
    for (int run = 0; run < 2; run++) {
        struct trial t = {.device = device, .op = op, .text = text, .room = n};
        t.hash = 0xcbf29ce484222325;
        t.product = product;
        t.failures = failures;
        op->check(&t);
        hash[run] = t.hash;
        failures = t.failures;
    }
    if (!failures && hash[0] != hash[1]) {
        snprintf(text, n, "%s: two runs differ in bits", op->op);
        return false;
    }
    return failures == 0;
}
