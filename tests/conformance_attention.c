/* The conformance suite, attention, in double with full rows of probabilities. Errors:
 * a score's absolute error is (dim + 3) u A, A = sum |q k| / sqrt(dim); it is the
 * relative error of p, on top of those of exp (8) and of sums over up to T positions.
 * Where factors are rounded (trial.product, half of it a factor): the scores, then p
 * and v, or in the backward pass dout, v, ds and k or q. */
#include "tests/conformance.h"
#include "base/mem.h"

#include <math.h>
#include <stdlib.h>

static const struct pl_attention_shape shapes[] = {
    {1, 1, 1, 1, 2},   {2, 5, 2, 1, 6},    {1, 67, 4, 2, 16},
    {2, 50, 3, 3, 20}, {1, 130, 2, 1, 64},
};
enum { SHAPES = sizeof shapes / sizeof *shapes };

/* One query row in double: p over keys 0..t, lse, and A, the largest score size. */
struct row {
    double *p, lse, size;
};

struct net {
    const struct pl_attention_shape *s;
    size_t width, out_width, group;
    float *qkv;
    double scale;
};

static struct net net_new(const struct trial *t, const struct pl_attention_shape *s)
{
    struct net net = {.s = s, .scale = 1 / sqrt((double)s->head_dim)};
    net.width = (size_t)((s->heads + 2 * s->kv_heads) * s->head_dim);
    net.out_width = (size_t)(s->heads * s->head_dim);
    net.group = (size_t)(s->heads / s->kv_heads);
    net.qkv = trial_random_real(t, (size_t)(s->B * s->T) * net.width, 41);
    return net;
}

static size_t q_at(const struct net *n, int b, int h, int t)
{
    return (size_t)(b * n->s->T + t) * n->width + (size_t)(h * n->s->head_dim);
}

static size_t k_at(const struct net *n, int b, int h, int t)
{
    size_t head = (size_t)n->s->heads + (size_t)h / n->group;
    return (size_t)(b * n->s->T + t) * n->width + head * (size_t)n->s->head_dim;
}

static size_t v_at(const struct net *n, int b, int h, int t)
{
    return k_at(n, b, h, t) + (size_t)(n->s->kv_heads * n->s->head_dim);
}

static size_t o_at(const struct net *n, int b, int h, int t)
{
    return (size_t)(b * n->s->T + t) * n->out_width + (size_t)(h * n->s->head_dim);
}

static void attend(const struct net *n, int b, int h, int t, struct row *row)
{
    double max = -INFINITY, sum = 0;
    row->size = 0;
    for (int j = 0; j <= t; j++) {
        double score = 0, size = 0;
        for (int i = 0; i < n->s->head_dim; i++) {
            double x = (double)n->qkv[q_at(n, b, h, t) + (size_t)i] *
                       n->qkv[k_at(n, b, h, j) + (size_t)i];
            score += x * n->scale;
            size += fabs(x) * n->scale;
        }
        row->p[j] = score;
        row->size = fmax(row->size, size);
        max = fmax(max, score);
    }
    for (int j = 0; j <= t; j++) sum += exp(row->p[j] - max);
    row->lse = max + log(sum);
    for (int j = 0; j <= t; j++) row->p[j] = exp(row->p[j] - row->lse);
}

static void forward_one(struct trial *t, const struct pl_attention_shape *s)
{
    struct net net = net_new(t, s);
    size_t n = (size_t)(s->B * s->T) * net.out_width;
    size_t rows = (size_t)(s->B * s->heads * s->T);
    double *want = PL_NEW(2 * (n + rows), double), *weight = want + n + rows;
    struct row row = {.p = PL_NEW(s->T, double)};
    for (size_t r = 0; r < rows; r++) {
        int q = (int)(r % (size_t)s->T), h = (int)(r / (size_t)s->T) % s->heads;
        int b = (int)(r / (size_t)(s->T * s->heads));
        attend(&net, b, h, q, &row);
        double rounds = 2 * (s->head_dim + 6 + t->product) * row.size + s->T + 8;
        want[n + r] = row.lse;
        weight[n + r] = rounds + fabs(row.lse);
        rounds += t->product;
        for (int i = 0; i < s->head_dim; i++)
            for (int j = 0; j <= q; j++) {
                size_t e = o_at(&net, b, h, q) + (size_t)i;
                double part = row.p[j] * net.qkv[v_at(&net, b, h, j) + (size_t)i];
                want[e] += part;
                weight[e] += rounds * fabs(part);
            }
    }
    float *dq = trial_upload_real(t, net.qkv, (size_t)(s->B * s->T) * net.width);
    float *out = trial_upload_real(t, net.qkv, n),
          *lse = trial_upload(t, net.qkv, rows);
    trial_status(t, t->device->attention(s, dq, out, lse));
    trial_compare_real(t, "out", out, n, want, weight);
    trial_compare(t, "lse", lse, rows, want + n, weight + n);
    trial_clear(t);
    free(net.qkv), free(want), free(row.p);
}

void check_attention(struct trial *t)
{
    for (int k = 0; k < SHAPES; k++) forward_one(t, &shapes[k]);
}

struct back {
    struct net net;
    double product;
    float *out, *lse, *dout;
    double *want, *weight;
};

static void add(struct back *x, size_t e, double part, double size)
{
    x->want[e] += part;
    x->weight[e] += size;
}

/* Row (b, h, q) of the backward pass: ds = p (dout v - dout out) / sqrt(dim). The
 * rounding of the stored out and lse to float is common to both sides only for what is
 * passed in, so p is recomputed here from that lse. */
static void back_row(struct back *x, int b, int h, int q, struct row *row, float lse)
{
    const struct net *n = &x->net;
    int dim = n->s->head_dim;
    size_t o = o_at(n, b, h, q);
    double mean = 0, mean_size = 0, shift = row->lse - lse;
    double rounds = (dim + 6 + x->product) * row->size + fabs(row->lse) + (double)dim +
                    16 + (double)n->group * n->s->T + 2 * x->product;
    for (int i = 0; i < dim; i++) {
        double part = (double)x->dout[o + (size_t)i] * x->out[o + (size_t)i];
        mean += part;
        mean_size += fabs(part);
    }
    for (int j = 0; j <= q; j++) {
        double p = row->p[j] * exp(shift), dp = 0, size = mean_size;
        for (int i = 0; i < dim; i++) {
            double part =
                (double)x->dout[o + (size_t)i] * n->qkv[v_at(n, b, h, j) + (size_t)i];
            dp += part;
            size += fabs(part);
        }
        double ds = p * (dp - mean) * n->scale, ds_size = p * size * n->scale * rounds;
        for (int i = 0; i < dim; i++) {
            size_t qe = q_at(n, b, h, q) + (size_t)i, ke = k_at(n, b, h, j) + (size_t)i;
            double qx = n->qkv[qe], kx = n->qkv[ke], d = x->dout[o + (size_t)i];
            add(x, qe, ds * kx, ds_size * fabs(kx));
            add(x, ke, ds * qx, ds_size * fabs(qx));
            add(x, v_at(n, b, h, j) + (size_t)i, p * d, p * fabs(d) * rounds);
        }
    }
}

static void backward_one(struct trial *t, const struct pl_attention_shape *s)
{
    struct back x = {.net = net_new(t, s), .product = t->product};
    size_t n = (size_t)(s->B * s->T) * x.net.width;
    size_t n_out = (size_t)(s->B * s->T) * x.net.out_width;
    size_t rows = (size_t)(s->B * s->heads * s->T);
    x.out = PL_NEW(n_out, float);
    x.lse = PL_NEW(rows, float);
    x.dout = trial_random_real(t, n_out, 42);
    x.want = PL_NEW(2 * n, double);
    x.weight = x.want + n;
    struct row row = {.p = PL_NEW(s->T, double)};
    for (size_t r = 0; r < rows; r++) {
        int q = (int)(r % (size_t)s->T), h = (int)(r / (size_t)s->T) % s->heads;
        int b = (int)(r / (size_t)(s->T * s->heads));
        attend(&x.net, b, h, q, &row);
        x.lse[r] = (float)row.lse;
        for (int i = 0; i < s->head_dim; i++) {
            double o = 0;
            for (int j = 0; j <= q; j++)
                o += row.p[j] * x.net.qkv[v_at(&x.net, b, h, j) + (size_t)i];
            x.out[o_at(&x.net, b, h, q) + (size_t)i] = (float)o;
            trial_round(t, &x.out[o_at(&x.net, b, h, q) + (size_t)i], 1);
        }
        back_row(&x, b, h, q, &row, x.lse[r]);
    }
    float *dq = trial_upload_real(t, x.net.qkv, n);
    float *out = trial_upload_real(t, x.out, n_out);
    float *lse = trial_upload(t, x.lse, rows),
          *dout = trial_upload_real(t, x.dout, n_out);
    float *dqkv = trial_upload_real(t, x.net.qkv, n); /* not zero: it is overwritten */
    trial_status(t, t->device->attention_back(s, dq, out, lse, dout, dqkv));
    trial_compare_real(t, "dqkv", dqkv, n, x.want, x.weight);
    trial_clear(t);
    free(x.net.qkv), free(x.out), free(x.lse), free(x.dout), free(x.want), free(row.p);
}

void check_attention_back(struct trial *t)
{
    for (int k = 0; k < SHAPES; k++) backward_one(t, &shapes[k]);
}
