/* Multi-layer perceptron: a_0 = x, z_l = W_l a_l + b_l, a_(l+1) = act(z_l), the last
 * layer without activation; problem.layers linear layers of inner width problem.width.
 * n fixed samples from problem.seed: x standard gaussian, targets by a teacher of the
 * same shape with gaussian weights of sd sqrt(2 / inputs) (He et al., arXiv
 * 1502.01852). Regression: 1/2 |z - t|^2, mean over samples; classification: softmax
 * cross-entropy in nats, t the teacher's largest output. inf f = 0 in both, reached by
 * the teacher, or along it scaled up. A batch is drawn with replacement, or is the
 * whole set (full).
 * Weights start as torch.nn.Linear's: uniform within 1 / sqrt(inputs). Layers are split
 * evenly over the stages. Forward reads x, backward multiplies by the matrices of xb;
 * activations are the forward's. Hidden layers are PL_PARAM_MATRIX, the last is
 * PL_PARAM_HEAD, as optimizers of the Muon family treat an output layer.
 * GELU is the exact one, z Phi(z) (Hendrycks and Gimpel, arXiv 1606.08415). */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/mem.h"
#include "base/rng.h"
#include "train/host_problem.h"

enum { GELU, RELU, TANH };
const char *const pl_dense_activations[] = {"gelu", "relu", "tanh", NULL};

struct dense {
    int n, layers, activation;
    bool full, classes;
    int *width;    /* [layers+1] */
    size_t *at;    /* [layers] floats before W_l; b_l follows it */
    double *x;     /* (n,width[0]) */
    double *t;     /* (n,width[layers]) targets; classification: one-hot */
    double **a;    /* [layers+1] activations of one sample */
    double **z;    /* [layers] before the activation */
    double *delta; /* [2][widest] */
    int widest;
};

static double act(int kind, double z)
{
    if (kind == RELU) return z > 0 ? z : 0;
    if (kind == TANH) return tanh(z);
    return 0.5 * z * (1 + erf(z / sqrt(2)));
}

static double act_slope(int kind, double z)
{
    if (kind == RELU) return z > 0;
    if (kind == TANH) return 1 - tanh(z) * tanh(z);
    return 0.5 * (1 + erf(z / sqrt(2))) +
           z * exp(-z * z / 2) / sqrt(8 * atan(1)); /* + z phi(z) */
}

/* Outputs a[layers] of the input x[width[0]]. */
static void forward(struct dense *d, const double *w, const double *x)
{
    memcpy(d->a[0], x, sizeof *x * (size_t)d->width[0]);
    for (int l = 0; l < d->layers; l++) {
        const int in = d->width[l], out = d->width[l + 1];
        const double *W = w + d->at[l], *b = W + (size_t)in * (size_t)out;
        for (int i = 0; i < out; i++) {
            double sum = b[i];
            for (int j = 0; j < in; j++)
                sum += W[(size_t)i * (size_t)in + j] * d->a[l][j];
            d->z[l][i] = sum;
            d->a[l + 1][i] = l + 1 < d->layers ? act(d->activation, sum) : sum;
        }
    }
}

/* Loss at outputs y against t; delta[n] = d loss / d y. */
static double regression(int n, const double *y, const double *t, double *delta)
{
    double loss = 0;
    for (int i = 0; i < n; i++) {
        delta[i] = y[i] - t[i];
        loss += 0.5 * delta[i] * delta[i];
    }
    return loss;
}

static double cross_entropy(int n, const double *y, const double *t, double *delta)
{
    double top = y[0], sum = 0, loss = 0;
    for (int i = 1; i < n; i++) top = fmax(top, y[i]);
    for (int i = 0; i < n; i++) sum += exp(y[i] - top);
    for (int i = 0; i < n; i++) {
        loss += t[i] * (top + log(sum) - y[i]);
        delta[i] = exp(y[i] - top) / sum - t[i];
    }
    return loss;
}

/* g += scale * gradient, delta of the last layer being in d->delta. */
static void backward(struct dense *d, const double *wb, double scale, double *g)
{
    double *delta = d->delta, *next = delta + d->widest;
    for (int l = d->layers - 1; l >= 0; l--) {
        const int in = d->width[l], out = d->width[l + 1];
        const double *W = wb + d->at[l];
        double *gW = g + d->at[l], *gb = gW + (size_t)in * (size_t)out;
        for (int j = 0; j < in; j++) next[j] = 0;
        for (int i = 0; i < out; i++) {
            gb[i] += scale * delta[i];
            for (int j = 0; j < in; j++) {
                size_t e = (size_t)i * (size_t)in + (size_t)j;
                gW[e] += scale * delta[i] * d->a[l][j];
                next[j] += W[e] * delta[i];
            }
        }
        for (int j = 0; j < in && l > 0; j++)
            next[j] *= act_slope(d->activation, d->z[l - 1][j]);
        double *swap = delta;
        delta = next;
        next = swap;
    }
}

static double evaluate(void *self, const struct pl_batch *batch, const double *w,
                       const double *wb, double *g)
{
    struct dense *d = self;
    const bool all = d->full || !batch;
    const int m = all ? d->n : batch->B, outputs = d->width[d->layers];
    double loss = 0;
    for (int k = 0; k < m; k++) {
        size_t at = all ? (size_t)k : (size_t)pl_host_sample(batch, k, d->n);
        const double *y = d->a[d->layers], *t = d->t + at * (size_t)outputs;
        forward(d, w, d->x + at * (size_t)d->width[0]);
        loss += (d->classes ? cross_entropy(outputs, y, t, d->delta)
                            : regression(outputs, y, t, d->delta)) /
                m;
        if (g) backward(d, wb, 1.0 / m, g);
    }
    return loss;
}

/* Numbers of tensor 2 l (W) and 2 l + 1 (b) of each layer. */
static void start(void *self, uint64_t seed, double *w)
{
    const struct dense *d = self;
    for (int l = 0; l < d->layers; l++) {
        const double bound = 1 / sqrt(d->width[l]);
        const int matrix = d->width[l] * d->width[l + 1];
        for (int e = 0; e < matrix + d->width[l + 1]; e++) {
            bool bias = e >= matrix;
            double u = pl_rng_uniform(seed, PL_RNG_INIT, (uint64_t)(2 * l + bias),
                                      (uint32_t)(bias ? e - matrix : e));
            w[d->at[l] + (size_t)e] = bound * (2 * u - 1);
        }
    }
}

static void release(void *self)
{
    struct dense *d = self;
    for (int l = 0; l <= d->layers; l++) free(d->a[l]);
    for (int l = 0; l < d->layers; l++) free(d->z[l]);
    free(d->a);
    free(d->z);
    free(d->width);
    free(d->at);
    free(d->x);
    free(d->t);
    free(d->delta);
    free(d);
}

static size_t bytes(const void *self)
{
    const struct dense *d = self;
    size_t n = (size_t)d->n * (size_t)(d->width[0] + d->width[d->layers]);
    for (int l = 0; l <= d->layers; l++) n += 2 * (size_t)d->width[l];
    return sizeof(double) * (n + 2 * (size_t)d->widest);
}

static struct pl_problem_known dense_known(const struct pl_problem *p)
{
    (void)p;
    return (struct pl_problem_known){0, NAN, NAN};
}

/* Samples and the teacher's targets for them. */
static void draw(struct dense *d, uint64_t seed)
{
    const int in = d->width[0], outputs = d->width[d->layers], last = d->layers - 1;
    size_t n = d->at[last] + (size_t)(d->width[last] + 1) * (size_t)outputs;
    double *teacher = PL_NEW(n, double);
    for (int l = 0; l < d->layers; l++)
        for (int e = 0; e < d->width[l] * d->width[l + 1]; e++)
            teacher[d->at[l] + (size_t)e] =
                sqrt(2.0 / d->width[l]) * pl_rng_normal(seed, PL_RNG_CORPUS,
                                                        UINT64_MAX - (uint64_t)l,
                                                        (uint32_t)e);
    for (int k = 0; k < d->n; k++) {
        double *x = d->x + (size_t)k * (size_t)in, *y = d->a[d->layers];
        double *t = d->t + (size_t)k * (size_t)outputs;
        int top = 0;
        for (int i = 0; i < in; i++)
            x[i] = pl_rng_normal(seed, PL_RNG_CORPUS, (uint64_t)k, (uint32_t)i);
        forward(d, teacher, x);
        for (int i = 1; i < outputs; i++)
            if (y[i] > y[top]) top = i;
        for (int i = 0; i < outputs; i++) t[i] = d->classes ? i == top : y[i];
    }
    free(teacher);
}

static struct dense *create(const struct pl_problem_spec *spec)
{
    struct dense *d = PL_NEW(1, struct dense);
    const int L = spec->layers;
    *d = (struct dense){.n = spec->samples,
                        .layers = L,
                        .activation = spec->activation,
                        .full = spec->full,
                        .classes = spec->classes,
                        .width = PL_NEW(L + 1, int),
                        .at = PL_NEW(L + 1, size_t),
                        .a = PL_NEW(L + 1, double *),
                        .z = PL_NEW(L, double *)};
    for (int l = 0; l <= L; l++) {
        d->width[l] = l == 0 ? spec->size : l == L ? spec->outputs : spec->width;
        if (d->width[l] > d->widest) d->widest = d->width[l];
        d->a[l] = PL_NEW(d->width[l], double);
        if (l == 0) continue;
        d->z[l - 1] = PL_NEW(d->width[l], double);
        d->at[l] = d->at[l - 1] + (size_t)(d->width[l - 1] + 1) * (size_t)d->width[l];
    }
    d->delta = PL_NEW(2 * d->widest, double);
    d->x = PL_NEW((size_t)d->n * (size_t)d->width[0], double);
    d->t = PL_NEW((size_t)d->n * (size_t)d->width[L], double);
    draw(d, spec->seed);
    return d;
}

static int check(const struct pl_problem_spec *spec, int P)
{
    double in = spec->size, out = spec->outputs, width = spec->width;
    double widest = fmax(in, fmax(out, width));
    int rc = pl_host_check_stages(P, spec->layers, "layers (problem.layers)");
    if (rc) return rc;
    if (widest * (widest + 1) > INT32_MAX)
        return pl_fail(PL_ECONFIG,
                       "a layer of %g x %g numbers (problem.size, width, outputs), at "
                       "most %d",
                       widest, widest + 1, INT32_MAX);
    if (spec->classes && spec->outputs < 2)
        return pl_fail(PL_ECONFIG,
                       "problem.outputs: %d for classification, expected at least 2",
                       spec->outputs);
    double numbers = spec->layers * (width + 1) * fmax(width, fmax(in, out));
    return pl_memory_check(8 * (spec->samples * (in + out) + 5 * numbers), "an MLP");
}

static int make(const struct pl_problem_spec *spec, int P, void **self)
{
    int rc = check(spec, P);
    if (!rc) *self = create(spec);
    return rc;
}

static void lay(const void *self, struct pl_problem *p)
{
    const struct dense *d = self;
    for (int s = 0; s < p->n_stages; s++)
        for (int l = pl_host_first(d->layers, p->n_stages, s);
             l < pl_host_first(d->layers, p->n_stages, s + 1); l++) {
            bool last = l == d->layers - 1;
            pl_host_problem_add(p, s, last ? PL_PARAM_HEAD : PL_PARAM_MATRIX,
                                d->width[l + 1], d->width[l], "layers.%d.weight", l);
            pl_host_problem_add(p, s, PL_PARAM_VECTOR, 1, d->width[l + 1],
                                "layers.%d.bias", l);
        }
}

static const struct pl_host_kind kind = {make, lay, evaluate, start, release, bytes};

const struct pl_problem_type pl_problem_mlp = {
    .name = "mlp",
    .summary = "multi-layer perceptron on random samples of a teacher",
    .source = "torch.nn.Linear's start, He et al. (arXiv 1502.01852) for the teacher",
    .settings = "seed size samples full layers width outputs activation task noise",
    .kind = &kind,
    PL_HOST_PROBLEM,
    .known = dense_known,
};
