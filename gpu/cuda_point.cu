/* cuda: SwiGLU (Shazeer 2020), GELU (Hendrycks and Gimpel 2016, the tanh form) and
 * softmax with cross-entropy. Bytes an element at 4.8 TB/s, 32768 rows in bf16: SwiGLU
 * of 1536 moves 3 reals forward (63 us) and 5 backward (105 us); GELU 2 and 3; a logit
 * is read and written once each where a multiprocessor's rows stay in L2 (49152
 * columns: 1.3 ms), and costs two exponentials (0.9 ms at 16 a clock and
 * multiprocessor). */
#include "gpu/cuda_real.cuh"

template <class R> static __device__ inline float sigmoid(float x)
{
    return 1 / (1 + pl_exp<R>(-x));
}

/* h = silu(gate) up, silu(g) = g sigmoid(g). */
template <class R, int N>
static __global__ void swiglu_kernel(int rows, int f, const R *gate_up, R *h)
{
    size_t r = pl_row();
    float gate[N], up[N];
    if (r >= (size_t)rows) return;
    gate_up += r * 2 * (size_t)f;
    h += r * (size_t)f;
    for (int c = pl_lane() * N; c < f; c += PL_WARP * N) {
        pl_get<N>(gate_up + c, gate);
        pl_get<N>(gate_up + f + c, up);
#pragma unroll
        for (int i = 0; i < N; i++) gate[i] *= sigmoid<R>(gate[i]) * up[i];
        pl_put<N>(h + c, gate);
    }
}

template <class R> static int swiglu(int rows, int f, const float *gate_up, float *h)
{
    if (!rows || !f) return 0;
    PL_LAUNCH_WIDE(R, pl_wide<R>(f, gate_up, h), swiglu_kernel,
                   pl_row_blocks((size_t)rows), PL_BLOCK, 0, rows, f,
                   (const R *)gate_up, (R *)h);
    return pl_cuda_launched("swiglu");
}

/* silu'(g) = s (1 + g (1 - s)), s = sigmoid(g). */
template <class R, int N>
static __global__ void swiglu_back_kernel(int rows, int f, const R *gate_up,
                                          const R *dh, R *dgate_up)
{
    size_t r = pl_row();
    float gate[N], up[N], d[N];
    if (r >= (size_t)rows) return;
    gate_up += r * 2 * (size_t)f;
    dgate_up += r * 2 * (size_t)f;
    dh += r * (size_t)f;
    for (int c = pl_lane() * N; c < f; c += PL_WARP * N) {
        pl_get<N>(gate_up + c, gate);
        pl_get<N>(gate_up + f + c, up);
        pl_get<N>(dh + c, d);
#pragma unroll
        for (int i = 0; i < N; i++) {
            float g = gate[i], s = sigmoid<R>(g);
            gate[i] = d[i] * up[i] * s * (1 + g * (1 - s));
            up[i] = d[i] * g * s;
        }
        pl_put<N>(dgate_up + c, gate);
        pl_put<N>(dgate_up + f + c, up);
    }
}

template <class R>
static int swiglu_back(int rows, int f, const float *gate_up, const float *dh,
                       float *dgate_up)
{
    if (!rows || !f) return 0;
    PL_LAUNCH_WIDE(R, pl_wide<R>(f, gate_up, dh, dgate_up), swiglu_back_kernel,
                   pl_row_blocks((size_t)rows), PL_BLOCK, 0, rows, f,
                   (const R *)gate_up, (const R *)dh, (R *)dgate_up);
    return pl_cuda_launched("swiglu_back");
}

/* sigmoid(2 u) of x, u = sqrt(2/pi) (x + 0.044715 x^3). */
template <class R> static __device__ inline float gelu_gate(float x)
{
    return sigmoid<R>(1.59576912160573071176f * (x + 0.044715f * x * x * x));
}

/* dy NULL: y = gelu(x); else y = dy gelu'(x). y may be x or dy. */
template <class R, int N>
static __global__ void gelu_kernel(size_t n, const R *x, const R *dy, R *y)
{
    float v[N], d[N];
    for (size_t i = pl_thread() * N; i < n; i += pl_threads() * N) {
        pl_get<N>(x + i, v);
        if (dy) pl_get<N>(dy + i, d);
#pragma unroll
        for (int k = 0; k < N; k++) {
            float e = v[k], s = gelu_gate<R>(e);
            float slope = 1.59576912160573071176f * (1 + 3 * 0.044715f * e * e);
            v[k] = dy ? d[k] * s * (1 + e * (1 - s) * slope) : e * s;
        }
        pl_put<N>(y + i, v);
    }
}

template <class R>
static int gelu_back(size_t n, const float *x, const float *dy, float *dx)
{
    if (!n) return 0;
    bool wide = pl_wide<R>((int)(n % 16), x, dy, dx);
    PL_LAUNCH_WIDE(R, wide, gelu_kernel, pl_cuda_blocks(n, PL_BLOCKS_MAX), PL_BLOCK, 0,
                   n, (const R *)x, (const R *)dy, (R *)dx);
    return pl_cuda_launched("gelu");
}

template <class R> static int gelu(size_t n, const float *x, float *y)
{
    return gelu_back<R>(n, x, NULL, y);
}

/* max and sum of exp(x - max) of a row, in every thread. One pass: a thread's sum is
 * scaled down when its max rises. */
template <class R, int N>
static __device__ inline void row_sum(int vocab, const R *x, float *max, double *total)
{
    float most = -INFINITY, sum = 0, v[N];
    for (int c = (int)threadIdx.x * N; c < vocab; c += (int)blockDim.x * N) {
        float larger = most;
        pl_get<N>(x + c, v);
#pragma unroll
        for (int i = 0; i < N; i++) larger = fmaxf(larger, v[i]);
        if (larger > most) sum *= pl_exp<R>(most - larger);
        most = larger;
#pragma unroll
        for (int i = 0; i < N; i++) sum += pl_exp<R>(v[i] - most);
    }
    *max = pl_block_max(most);
    *total = pl_block_sum(most > -INFINITY ? sum * pl_exp<R>(most - *max) : sum);
}

/* Block k does rows k, k + blocks, ...: log-sum-exp, then the gradient over the logits.
 */
template <class R, int N>
static __global__ void __launch_bounds__(1024)
    xent_kernel(int rows, int vocab, R *logits, const int32_t *targets, float scale,
                double *partial)
{
    double loss = 0, total;
    float max, v[N];
    for (int r = (int)blockIdx.x; r < rows; r += (int)gridDim.x) {
        R *x = logits + (size_t)r * (size_t)vocab;
        int target = targets[r];
        /* before the barriers, after which it is overwritten */
        float wanted = pl_float(x[target]);
        row_sum<R, N>(vocab, x, &max, &total);
        if (threadIdx.x == 0) loss += max + log(total) - wanted;
        if (scale == 0) continue;
        float norm = 1 / (float)total;
        for (int c = (int)threadIdx.x * N; c < vocab; c += (int)blockDim.x * N) {
            pl_get<N>(x + c, v);
#pragma unroll
            for (int i = 0; i < N; i++)
                v[i] = scale *
                       (pl_exp<R>(v[i] - max) * norm - (c + i == target ? 1.0f : 0.0f));
            pl_put<N>(x + c, v);
        }
    }
    if (threadIdx.x == 0) partial[blockIdx.x] = loss;
}

template <class R>
static int xent(int rows, int vocab, float *logits, const int32_t *targets, float scale,
                double *sum)
{
    const int most = 1024; /* few rows at a time, so that they stay in L2 */
    if (!rows) return 0;
    int blocks = rows < PL_PARTIALS ? rows : PL_PARTIALS;
    int threads = vocab > most * pl_width<R> ? most : (int)PL_BLOCK;
    PL_LAUNCH_WIDE(R, pl_wide<R>(vocab, logits), xent_kernel, blocks, threads, 0, rows,
                   vocab, (R *)logits, targets, scale, pl_cuda.partial);
    int rc = pl_cuda_launched("xent");
    return rc ? rc : pl_cuda_add_partials(blocks, sum);
}

PL_OPS_POINT(PL_CUDA_BOTH, )
