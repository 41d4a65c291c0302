/* cuda: operations on single elements, and sums over all of them. */
#include "gpu/cuda_device.cuh"

static __global__ void axpby_kernel(size_t n, float a, const float *x, float b,
                                    float *y)
{
    for (size_t i = pl_thread(); i < n; i += pl_threads())
        y[i] = b == 0 ? a * x[i] : a * x[i] + b * y[i];
}

int pl_cuda_axpby(size_t n, float a, const float *x, float b, float *y)
{
    if (!n) return 0;
    int blocks = pl_cuda_blocks(n, PL_BLOCKS_MAX);
    PL_LAUNCH(axpby_kernel, blocks, PL_BLOCK, 0, n, a, x, b, y);
    return pl_cuda_launched("axpby");
}

struct blend {
    int terms;
    float a[PL_BLEND];
    const float *x[PL_BLEND];
};

static __global__ void blend_kernel(size_t n, struct blend p, float *y)
{
    for (size_t i = pl_thread(); i < n; i += pl_threads()) {
        float sum = 0;
        for (int k = 0; k < p.terms; k++) sum += p.a[k] * p.x[k][i];
        y[i] = sum;
    }
}

int pl_cuda_blend(size_t n, int terms, const float *a, const float *const *x, float *y)
{
    if (!n) return 0;
    struct blend p = {terms, {0}, {NULL}};
    for (int k = 0; k < terms; k++) {
        p.a[k] = a[k];
        p.x[k] = x[k];
    }
    int blocks = pl_cuda_blocks(n, PL_BLOCKS_MAX);
    PL_LAUNCH(blend_kernel, blocks, PL_BLOCK, 0, n, p, y);
    return pl_cuda_launched("blend");
}

static __global__ void sign_kernel(size_t n, const float *x, float *y)
{
    for (size_t i = pl_thread(); i < n; i += pl_threads())
        y[i] = (float)((x[i] > 0) - (x[i] < 0));
}

int pl_cuda_sign(size_t n, const float *x, float *y)
{
    if (!n) return 0;
    int blocks = pl_cuda_blocks(n, PL_BLOCKS_MAX);
    PL_LAUNCH(sign_kernel, blocks, PL_BLOCK, 0, n, x, y);
    return pl_cuda_launched("sign");
}

/* First stage: block k sums its elements. The number of blocks follows from n alone, so
 * that the order of the additions does too. */
template <bool APART>
static __global__ void dot_kernel(size_t n, const float *x, const float *y,
                                  double *partial)
{
    double sum = 0;
    for (size_t i = pl_thread(); i < n; i += pl_threads()) {
        float d = x[i] - y[i];
        sum += APART ? (double)d * d : (double)x[i] * y[i];
    }
    sum = pl_block_sum(sum);
    if (threadIdx.x == 0) partial[blockIdx.x] = sum;
}

/* Second stage, one block: *total = keep *total + sum of n partial sums. */
static __global__ void sum_kernel(int n, const double *partial, double keep,
                                  double *total)
{
    double sum = 0;
    for (int i = (int)threadIdx.x; i < n; i += PL_BLOCK) sum += partial[i];
    sum = pl_block_sum(sum);
    if (threadIdx.x == 0) *total = keep == 0 ? sum : keep * *total + sum;
}

int pl_cuda_add_partials(int n, double *sum)
{
    PL_LAUNCH(sum_kernel, 1, PL_BLOCK, 0, n, pl_cuda.partial, 1.0, sum);
    return pl_cuda_launched("sum");
}

int pl_cuda_sum_partials(int n, double *out)
{
    double *total = pl_cuda.partial + PL_PARTIALS;
    PL_LAUNCH(sum_kernel, 1, PL_BLOCK, 0, n, pl_cuda.partial, 0.0, total);
    int rc = pl_cuda_launched("sum");
    return rc ? rc : pl_cuda_download(out, total, sizeof *out);
}

/* APART: of (x - y)^2, else of x y. */
template <bool APART>
static int sum_products(size_t n, const float *x, const float *y, const char *what,
                        double *out)
{
    *out = 0;
    if (!n) return 0;
    int blocks = pl_cuda_blocks(n, PL_PARTIALS);
    PL_LAUNCH(dot_kernel<APART>, blocks, PL_BLOCK, 0, n, x, y, pl_cuda.partial);
    int rc = pl_cuda_launched(what);
    return rc ? rc : pl_cuda_sum_partials(blocks, out);
}

int pl_cuda_dot(size_t n, const float *x, const float *y, double *out)
{
    return sum_products<false>(n, x, y, "dot", out);
}

int pl_cuda_distance(size_t n, const float *x, const float *y, double *out)
{
    return sum_products<true>(n, x, y, "distance", out);
}

struct adamw_floats {
    float step, decay, beta1, rest1, beta2, rest2, root, eps;
};

static __global__ void adamw_kernel(size_t n, struct adamw_floats a, const float *g,
                                    const float *w, float *m, float *v, float *u)
{
    for (size_t i = pl_thread(); i < n; i += pl_threads()) {
        float gi = g[i];
        float mi = a.beta1 * m[i] + a.rest1 * gi;
        float vi = a.beta2 * v[i] + a.rest2 * gi * gi;
        m[i] = mi;
        v[i] = vi;
        u[i] = a.step * mi / (sqrtf(vi) / a.root + a.eps) + a.decay * w[i];
    }
}

int pl_cuda_adamw(size_t n, const struct pl_adamw_args *args, const float *g,
                  const float *w, float *m, float *v, float *u)
{
    if (!n) return 0;
    struct adamw_floats a = {(float)(args->eta / args->bc1),
                             (float)(args->eta * args->decay),
                             (float)args->beta1,
                             (float)(1 - args->beta1),
                             (float)args->beta2,
                             (float)(1 - args->beta2),
                             (float)sqrt(args->bc2),
                             (float)args->eps};
    int blocks = pl_cuda_blocks(n, PL_BLOCKS_MAX);
    PL_LAUNCH(adamw_kernel, blocks, PL_BLOCK, 0, n, a, g, w, m, v, u);
    return pl_cuda_launched("adamw");
}
