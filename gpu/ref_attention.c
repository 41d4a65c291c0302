/* ref: causal attention, one row at a time and the scores never stored: row t of head h
 * is out = sum_j p_j v_j, p_j = exp(q k_j / sqrt(head_dim) - lse), j <= t (Vaswani et
 * al. 2017). Sums over positions are held in double for CHUNK columns at a time. */
#include "gpu/ref.h"

#include <math.h>

enum { CHUNK = 64 };

/* One query head of one sequence; each pointer is at the head's column of the first
 * row. */
struct head {
    const float *q, *k, *v, *out, *dout, *lse;
    float *dq;
    size_t ld, out_ld; /* floats between rows of qkv, and of out */
    int T, dim;
    double scale;
};

struct arrays {
    const float *qkv, *out, *dout, *lse;
    float *dqkv;
};

static struct head head_at(const struct pl_attention_shape *s, const struct arrays *a,
                           int b, int h)
{
    size_t dim = (size_t)s->head_dim, T = (size_t)s->T, heads = (size_t)s->heads;
    size_t group = heads / (size_t)s->kv_heads, kv = (size_t)s->kv_heads;
    struct head x = {.ld = (heads + 2 * kv) * dim,
                     .out_ld = heads * dim,
                     .T = s->T,
                     .dim = s->head_dim,
                     .scale = 1 / sqrt((double)s->head_dim)};
    size_t row = (size_t)b * T, column = (size_t)h * dim;
    x.q = a->qkv + row * x.ld + column;
    x.k = a->qkv + row * x.ld + (heads + (size_t)h / group) * dim;
    x.v = x.k + kv * dim;
    x.lse = a->lse + ((size_t)b * heads + (size_t)h) * T;
    if (a->dqkv) {
        x.out = a->out + row * x.out_ld + column;
        x.dout = a->dout + row * x.out_ld + column;
        x.dq = a->dqkv + row * x.ld + column;
    }
    return x;
}

static double product(const float *x, const float *y, int n)
{
    double sum = 0;
    for (int i = 0; i < n; i++) sum += (double)x[i] * y[i];
    return sum;
}

static double score(const struct head *a, int t, int j)
{
    return a->scale *
           product(a->q + (size_t)t * a->ld, a->k + (size_t)j * a->ld, a->dim);
}

static void attend_row(const struct head *a, int t, float *out, float *lse)
{
    double max = score(a, t, 0), sum = 0;
    for (int j = 1; j <= t; j++) max = fmax(max, score(a, t, j));
    for (int j = 0; j <= t; j++) sum += exp(score(a, t, j) - max);
    double norm = max + log(sum);
    for (int c = 0; c < a->dim; c += CHUNK) {
        int n = a->dim - c < CHUNK ? a->dim - c : CHUNK;
        double o[CHUNK] = {0};
        for (int j = 0; j <= t; j++) {
            const float *v = a->v + (size_t)j * a->ld + c;
            double p = exp(score(a, t, j) - norm);
            for (int i = 0; i < n; i++) o[i] += p * v[i];
        }
        for (int i = 0; i < n; i++) out[c + i] = (float)o[i];
    }
    *lse = (float)norm;
}

int pl_ref_attention(const struct pl_attention_shape *shape, const float *qkv,
                     float *out, float *lse)
{
    struct arrays arrays = {.qkv = qkv, .lse = lse};
    for (int b = 0; b < shape->B; b++)
        for (int h = 0; h < shape->heads; h++) {
            struct head a = head_at(shape, &arrays, b, h);
            size_t row = (size_t)b * (size_t)a.T;
            for (int t = 0; t < a.T; t++)
                attend_row(&a, t, out + (row + (size_t)t) * a.out_ld + h * a.dim,
                           lse++);
        }
    return 0;
}

/* p of the pair (t, j), and ds = p (dout v_j - dout out) / sqrt(head_dim). */
static double pair_back(const struct head *a, int t, int j, double *ds)
{
    const float *dout = a->dout + (size_t)t * a->out_ld;
    double p = exp(score(a, t, j) - a->lse[t]);
    double mean = product(dout, a->out + (size_t)t * a->out_ld, a->dim);
    *ds = p * (product(dout, a->v + (size_t)j * a->ld, a->dim) - mean) * a->scale;
    return p;
}

/* dq_t = sum_j ds_tj k_j. */
static void query_back(const struct head *a, int t)
{
    for (int c = 0; c < a->dim; c += CHUNK) {
        int n = a->dim - c < CHUNK ? a->dim - c : CHUNK;
        double dq[CHUNK] = {0}, ds;
        for (int j = 0; j <= t; j++) {
            const float *k = a->k + (size_t)j * a->ld + c;
            pair_back(a, t, j, &ds);
            for (int i = 0; i < n; i++) dq[i] += ds * k[i];
        }
        for (int i = 0; i < n; i++)
            a->dq[(size_t)t * a->ld + (size_t)(c + i)] = (float)dq[i];
    }
}

/* dk_j = sum over the group's heads and t >= j of ds_tj q_t; dv_j = that of p_tj
 * dout_t. */
static void key_back(const struct pl_attention_shape *s, const struct arrays *arrays,
                     int b, int kv, int j)
{
    int group = s->heads / s->kv_heads;
    size_t width = (size_t)(s->heads + 2 * s->kv_heads) * (size_t)s->head_dim;
    float *row = arrays->dqkv + ((size_t)b * (size_t)s->T + (size_t)j) * width;
    float *dk_row = row + (s->heads + kv) * s->head_dim;
    float *dv_row = dk_row + s->kv_heads * s->head_dim;
    for (int c = 0; c < s->head_dim; c += CHUNK) {
        int n = s->head_dim - c < CHUNK ? s->head_dim - c : CHUNK;
        double dk[CHUNK] = {0}, dv[CHUNK] = {0}, ds;
        for (int h = kv * group; h < (kv + 1) * group; h++) {
            struct head a = head_at(s, arrays, b, h);
            for (int t = j; t < a.T; t++) {
                double p = pair_back(&a, t, j, &ds);
                const float *q = a.q + (size_t)t * a.ld + c;
                const float *dout = a.dout + (size_t)t * a.out_ld + c;
                for (int i = 0; i < n; i++) dk[i] += ds * q[i];
                for (int i = 0; i < n; i++) dv[i] += p * dout[i];
            }
        }
        for (int i = 0; i < n; i++) dk_row[c + i] = (float)dk[i];
        for (int i = 0; i < n; i++) dv_row[c + i] = (float)dv[i];
    }
}

int pl_ref_attention_back(const struct pl_attention_shape *shape, const float *qkv,
                          const float *out, const float *lse, const float *dout,
                          float *dqkv)
{
    struct arrays arrays = {qkv, out, dout, lse, dqkv};
    for (int b = 0; b < shape->B; b++) {
        for (int h = 0; h < shape->heads; h++) {
            struct head a = head_at(shape, &arrays, b, h);
            for (int t = 0; t < a.T; t++) query_back(&a, t);
        }
        for (int kv = 0; kv < shape->kv_heads; kv++)
            for (int j = 0; j < shape->T; j++) key_back(shape, &arrays, b, kv, j);
    }
    return 0;
}
