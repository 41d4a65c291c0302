/* The device layer: one table of operations on float32 row-major arrays.
 *
 * A device is a constant struct; pointers named x, y, w ... are device memory from
 * alloc() (host-like devices: plain memory). Integer arrays (tokens, targets) are
 * device memory too. Calls are ordered as issued. Operations allocate nothing but
 * scratch that is kept. Shapes are in the argument lines; T = sequence length, rows = B
 * * T. Operations return 0 or a negative code with a message (only cuda can fail);
 * reductions return double through a pointer. Activations and their gradients (the
 * arrays `real` in the comments; all others are float) have real_bytes an element:
 * where that is 2 they are bf16, their pointers are handles that only pl_device_at()
 * moves, and a result is rounded to nearest even as it is stored. Tolerance of an op
 * against `ref`: |x - ref| <= c n eps(float32) scale, c in the conformance test's
 * table, n the reduction length. */
#ifndef PL_GPU_DEVICE_H
#define PL_GPU_DEVICE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Where things are in a packed query/key/value row of (heads + 2 kv_heads) * head_dim
 * floats: heads queries, then kv_heads keys, then kv_heads values. */
struct pl_attention_shape {
    int B, T, heads, kv_heads, head_dim;
};

/* A router: every row chooses `chosen` of `experts`. Arrays are device memory, written
 * by route(). Rows sorted by expert, then by row: slot k holds row of_slot[k]. */
struct pl_routing {
    int rows, experts, chosen;
    int group;     /* rows over which the load is balanced; divides rows */
    bool sigmoid;  /* score s = sigmoid(z), else softmax(z), z the logits of a row */
    bool normed;   /* weight s / (sum of the chosen s + 1e-20), else s; */
    float scale;   /* times this */
    float balance; /* coefficient of mean over groups of E sum_i f_i P_i, f_i = share of
                      choices that fell on i, P_i = mean of s_i / sum s */
    float z;       /* of the mean over rows of (log sum exp z)^2 */
    float *score;  /* (rows, experts) */
    float *weight; /* (rows, chosen) */
    int32_t *expert;  /* (rows, chosen), best first */
    int32_t *slot;    /* (rows, chosen) */
    int32_t *of_slot; /* (rows * chosen) */
    int32_t *load;    /* (rows / group + 1, experts) choices by group; last: of all */
};

/* Rows in groups: those of a group come behind those of the group before. Each group
 * has parameters of its own, `stride` floats behind those of the group before. */
struct pl_groups {
    int n, rows; /* rows: of all groups */
    size_t stride;
    const int32_t *load; /* (n), device memory: rows of a group; their sum is rows */
};

struct pl_adamw_args {
    double eta, beta1, beta2, eps;
    double bc1, bc2; /* 1 - beta^t */
};

struct pl_adamw_tensor {
    size_t n;
    double decay; /* u includes eta * decay * w */
    const float *g, *w;
    float *m, *v, *u;
};

/* Which element of v an element (i,j) of a matrix of m rows and n columns takes: its
 * own (v is (m,n) too), that of its row (v has m) or that of its column (v has n). */
enum pl_along { PL_EACH, PL_ROW, PL_COLUMN };

struct pl_ratio_args {
    enum pl_along along;
    double a, b; /* y = a x / d + b y */
    double s, eps, under;
    bool clamp; /* d = max(s sqrt(v + under), eps), else s sqrt(v + under) + eps */
};

/* The three products of y = x W^T with W (out, in), PyTorch layout. */
enum pl_product {
    PL_PRODUCT_Y,  /* y (rows, out) = x (rows, in) W^T + addend + bias */
    PL_PRODUCT_DX, /* dx (rows, in) = dy (rows, out) W + addend */
    PL_PRODUCT_DW, /* dW (out, in) = dy^T x + addend */
};

/* Operations that belong together. */
struct pl_span {
    const char *name; /* as the timeline's operations: "F s0 m3" */
    const void *key;  /* NULL: none */
    size_t key_bytes;
};

enum { PL_BLEND = 4 }; /* terms */

struct pl_device {
    const char *name, *summary;
    bool host_memory;      /* alloc() returns memory the CPU may touch */
    size_t real_bytes;     /* of an element of an activation: 4 (float) or 2 (bf16) */
    const char *precision; /* what a model computes in: fp32, tf32 or bf16 */
    const struct pl_device *twin; /* with the same memory, in another precision, or
                                     NULL: a chain */

    int (*open)(void); /* before first use; errors PL_ENODEV with the reason */
    void (*close)(void);
    void (*describe)(char *text, size_t n); /* hardware and library, one line */

    /* Memory. alloc: zeroed, *ptr NULL and PL_EMEM (bytes asked, free) when it fails.
     */
    int (*alloc)(size_t bytes, void **ptr);
    void (*release)(void *ptr);
    int (*upload)(void *dst, const void *src, size_t bytes); /* host to device */
    /* Device to host; waits. */
    int (*download)(void *dst, const void *src, size_t bytes);
    int (*copy)(void *dst, const void *src, size_t bytes); /* device to device */
    int (*zero)(void *dst, size_t bytes);
    /* Wait for all that was issued, and say what went wrong in it; NULL: operations are
     * done when they return. */
    int (*wait)(void);
    /* Upload for what comes next, beside the operations already issued: they must not
     * use dst, later ones see it. src is free on return. */
    int (*prefetch)(void *dst, const void *src, size_t bytes);

    /* NULL, or: operations from begin() to end() belong together and are named so in a
     * profile. With a key, they are the same calls with the same arguments as those
     * after every begin() with an equal key (not upload, download, dot); *done: the
     * device has issued them itself (a CUDA graph), the caller only calls end(). */
    int (*begin)(const struct pl_span *span, bool *done);
    int (*end)(void);

    /* C (M,N) = alpha op(A) op(B) + beta C; op(A) is M x K, op(B) is K x N; ld = floats
     * between rows as stored; ta/tb: stored transposed. beta = 0 never reads C. */
    int (*gemm)(bool ta, bool tb, int M, int N, int K, float alpha, const float *A,
                int lda, const float *B, int ldb, float beta, float *C, int ldc);

    /* y = a x + b y, n elements; b = 0 never reads y. */
    int (*axpby)(size_t n, float a, const float *x, float b, float *y);
    /* y = sum of a[k] x[k] over k < terms, in this order; 0 for no terms, at most
     * PL_BLEND. a and x are host arrays of `terms`; y may be one of the x. */
    int (*blend)(size_t n, int terms, const float *a, const float *const *x, float *y);
    /* *out = sum x y, accumulated in double (fixed order). */
    int (*dot)(size_t n, const float *x, const float *y, double *out);
    /* *out = sum (x - y)^2, differences in float, accumulated as dot's. */
    int (*distance)(size_t n, const float *x, const float *y, double *out);
    /* y = sign(x), sign(0) = 0. */
    int (*sign)(size_t n, const float *x, float *y);

    /* y = a x z + b y, n elements; b = 0 never reads y; any two may be one array. */
    int (*mul)(size_t n, float a, const float *x, const float *z, float b, float *y);
    /* y (m,n) = a x / d + b y with d from v (struct pl_ratio_args); b = 0 never reads
     * y; x, y, and v when along is PL_EACH, may be one array. */
    int (*ratio)(int m, int n, const struct pl_ratio_args *args, const float *x,
                 const float *v, float *y);
    /* out = a (sums of x^2) + b out over each row (PL_ROW, out has m) or each column
     * (PL_COLUMN, n) of x (m,n); b = 0 never reads out. */
    int (*squares)(enum pl_along along, int m, int n, float a, const float *x, float b,
                   float *out);
    /* C (n,n) = alpha op(A) op(A)^T + beta C; op(A) is n x k, stored transposed when
     * ta. Half the work of gemm: the lower triangle of C is read and computed, then
     * mirrored, so C is symmetric to the bit; beta = 0 never reads C. */
    int (*syrk)(bool ta, int n, int k, float alpha, const float *A, int lda, float beta,
                float *C, int ldc);
    /* `count` of them, beta times the addend in place of C, which is laid out as C: C
     * itself or an array apart from it. Matrix i begins i strides (floats) after A, B,
     * C and addend. */
    int (*gemm_batch)(int count, bool ta, bool tb, int M, int N, int K, float alpha,
                      const float *A, int lda, size_t stride_a, const float *B, int ldb,
                      size_t stride_b, float beta, const float *addend, float *C,
                      int ldc, size_t stride_c);
    int (*syrk_batch)(int count, bool ta, int n, int k, float alpha, const float *A,
                      int lda, size_t stride_a, float beta, const float *addend,
                      float *C, int ldc, size_t stride_c);
    /* y = x rounded to bf16 (nearest, ties to even), n elements; y may be x. */
    int (*round_bf16)(size_t n, const float *x, float *y);

    /* AdamW (torch form) of `count` tensors, list in host memory: m, v updated;
     * u = eta/bc1 m / (sqrt(v)/sqrt(bc2) + eps) + eta decay w. */
    int (*adamw)(int count, const struct pl_adamw_tensor *list,
                 const struct pl_adamw_args *args);

    /* One of the products of a layer, c = a b + addend + bias as enum pl_product says;
     * a, b, c are x W y, dy W dx, dy x dW: W and dW float, all others real. addend, of
     * c's shape and type: c itself, an array apart from it, or NULL: none. bias (out)
     * float, of PL_PRODUCT_Y only, or NULL; where activations are bf16 it is rounded to
     * bf16 as W is. */
    int (*product)(enum pl_product which, int rows, int in, int out, const float *a,
                   const float *b, const float *bias, const float *addend, float *c);
    /* The same for each group's rows with the group's own W or dW; b is that of group
     * 0, as are c (DW) and bias. Y: c = x W^T + bias (out; NULL: none), DX: c = dy W;
     * DW: c += dy^T x, untouched where a group has no rows. */
    int (*product_groups)(enum pl_product which, const struct pl_groups *groups, int in,
                          int out, const float *a, const float *b, const float *bias,
                          float *c);
    /* db (d) of each group, float, += the sum of its rows of dy (row order). */
    int (*bias_groups_back)(const struct pl_groups *groups, int d, const float *dy,
                            float *db);

    /* y (n,d) = x[from[r]], both real. */
    int (*gather)(int n, int d, const int32_t *from, const float *x, float *y);

    /* From here to xent: x, y, out, qkv, h, gate_up, logits and their gradients are
     * real; tables, gains, shifts, weights, statistics and the gradients of parameters
     * are float. */

    /* out (rows,d) = table[tokens[r]]; dtable += scatter of dout, in row order. */
    int (*embed)(int rows, int d, const int32_t *tokens, const float *table,
                 float *out);
    int (*embed_back)(int rows, int d, const int32_t *tokens, const float *dout,
                      float *dtable);

    /* y (rows,d) += x[r % period] for each row r: a bias (period 1), learned positions;
     * x and dx are float. back: dx (period,d) += sums of dy's rows (row order). */
    int (*add_rows)(int rows, int period, int d, const float *x, float *y);
    int (*add_rows_back)(int rows, int period, int d, const float *dy, float *dx);

    /* y = x / rms(x) * gain, rstd (rows) = (mean x^2 + eps)^-1/2.
     * back: dx += ..., dgain (d) += ... (row order); dx may be dy, and is then
     * overwritten. */
    int (*rmsnorm)(int rows, int d, float eps, const float *x, const float *gain,
                   float *y, float *rstd);
    int (*rmsnorm_back)(int rows, int d, const float *x, const float *gain,
                        const float *rstd, const float *dy, float *dx, float *dgain);

    /* y = (x - mean) rstd gain + shift, mean and rstd (rows) of each row, rstd =
     * (var + eps)^-1/2, var = mean (x - mean)^2; shift NULL: none.
     * back: dx += ..., dgain += ..., and dshift unless it is NULL += ... (row order);
     * dx as in rmsnorm_back. */
    int (*layernorm)(int rows, int d, float eps, const float *x, const float *gain,
                     const float *shift, float *y, float *mean, float *rstd);
    int (*layernorm_back)(int rows, int d, const float *x, const float *gain,
                          const float *mean, const float *rstd, const float *dy,
                          float *dx, float *dgain, float *dshift);

    /* RMSNorm of each of n_heads heads of d floats at the start of rows of ld floats,
     * all with one gain (d); y gets the next `more` floats of a row as they are, what
     * follows is not touched. rstd (rows, n_heads).
     * back: g, of x's shape, is the gradient of y on entry and of x on return; dgain
     * += ... (row order). */
    int (*headnorm)(int rows, int n_heads, int d, int more, int ld, float eps,
                    const float *x, const float *gain, float *y, float *rstd);
    int (*headnorm_back)(int rows, int n_heads, int d, int ld, const float *x,
                         const float *gain, const float *rstd, float *g, float *dgain);

    /* Every row's experts: the largest s + bias (bias (experts), NULL: 0), of equals
     * the lower number. terms[2], device memory, += balance and z, times their
     * coefficients (not computed where these are 0). back: dlogits = what dweight
     * (rows, chosen) and factor times those terms say of the logits; dbias (experts),
     * unless NULL, += factor (share of all choices - 1 / experts). */
    int (*route)(const struct pl_routing *route, const float *logits, const float *bias,
                 double *terms);
    int (*route_back)(const struct pl_routing *route, const float *logits,
                      const float *dweight, double factor, float *dlogits,
                      float *dbias);

    /* y (rows,d) = addend + sum_j w[r,j] x[slot[r,j]], j < n in order; w NULL: ones;
     * addend: y, an array apart from it or NULL: none.
     * back: dx[slot[r,j]] = w[r,j] dy[r], dw[r,j] = x[slot[r,j]] . dy[r]. */
    int (*combine)(int rows, int n, int d, const int32_t *slot, const float *w,
                   const float *x, const float *addend, float *y);
    int (*combine_back)(int rows, int n, int d, const int32_t *slot, const float *w,
                        const float *x, const float *dy, float *dx, float *dw);

    /* Rotary embedding (half-split pairs i, i + head_dim/2; angle
     * t theta^(-2i/head_dim)) in place on n_heads heads of head_dim at the start of
     * rows of ld floats, position t = row % T; direction +1 forward, -1 backward
     * (transpose). */
    int (*rope)(int rows, int T, int n_heads, int head_dim, int ld, double theta,
                int direction, float *x);

    /* Causal attention, scores scaled by head_dim^-1/2; query head h uses kv head
     * h / (heads / kv_heads). qkv (B*T, (heads + 2 kv_heads) head_dim), out (B*T, heads
     * head_dim), lse (B, heads, T) log-sum-exp of the scores.
     * back: dqkv is overwritten. Memory O(T) per head beyond the arguments. */
    int (*attention)(const struct pl_attention_shape *shape, const float *qkv,
                     float *out, float *lse);
    int (*attention_back)(const struct pl_attention_shape *shape, const float *qkv,
                          const float *out, const float *lse, const float *dout,
                          float *dqkv);

    /* h (rows,f) = silu(gate) * up; gate_up (rows, 2 f): gate then up. */
    int (*swiglu)(int rows, int f, const float *gate_up, float *h);
    int (*swiglu_back)(int rows, int f, const float *gate_up, const float *dh,
                       float *dgate_up);

    /* y = x/2 (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))), n elements; y may be x.
     * back: dx = dy * derivative; dx may be dy. */
    int (*gelu)(size_t n, const float *x, float *y);
    int (*gelu_back)(size_t n, const float *x, const float *dy, float *dx);

    /* *sum, device memory, += over rows of -log softmax(logits)[target]. When scale !=
     * 0 the logits are overwritten with scale * (softmax - onehot). */
    int (*xent)(int rows, int vocab, float *logits, const int32_t *targets, float scale,
                double *sum);
};

/* `ref` plain loops with double accumulation, the oracle; `host` vector loops
 * shared among the threads of base/pool.h; `cuda` a shared object opened at run time.
 */
extern const struct pl_device pl_device_ref, pl_device_host;

/* Activation number n of x. */
static inline float *pl_device_at(const struct pl_device *device, float *x, size_t n)
{
    return (float *)((char *)x + n * device->real_bytes);
}

/* NULL-terminated: auto ref host cuda, of train.device; without auto. */
extern const char *const pl_device_choices[];
extern const char *const *const pl_device_names;
/* Find and open. Errors: PL_ENODEV: unknown name (nearest given), or no such hardware.
 */
int pl_device_get(const char *name, const struct pl_device **device);
/* Bytes that the operations of `host` hold beside their arguments, in all threads of
 * base/pool.h together, for attention up to this shape; other devices 0. */
size_t pl_device_scratch(const struct pl_device *device, int T, int head_dim);

extern const char *const pl_precision_names[]; /* fp32 tf32 bf16 bf16-emulated */
/* The device in a precision, one of its twins (of host: host_bf16.h); fp32 is the
 * device itself. What must be exact to float (optimizers) is left to the device itself.
 * tf32 (cuda): the factors of product, gemm, gemm_batch and syrk_batch have 11 bits (so
 * factors that are bf16 are exact), all else is fp32. bf16 on cuda:
 * activations and their gradients are bf16, products of a layer and attention take bf16
 * factors, sums are float. bf16 on host: both factors of a product are rounded to bf16
 * (nearest even), sums and all else are float, on AMX; bf16-emulated: the same sums,
 * slowly, on any CPU. Errors: PL_EUNSUP: not on this device; PL_ENODEV with the reason:
 * bf16 without AMX. */
int pl_device_precision(const struct pl_device *device, const char *precision,
                        const struct pl_device **out);

#ifdef __cplusplus
}
#endif
#endif
