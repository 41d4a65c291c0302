/* cuda: routing to experts, and the weighted sum of what they return; formulas as in
 * ref_moe.c. */
#include "gpu/cuda_real.cuh"

/* By a whole warp; every lane gets it. */
template <class R> static __device__ float row_lse(int n, const R *z)
{
    float max = -INFINITY, sum = 0;
    for (int i = pl_lane(); i < n; i += PL_WARP) max = fmaxf(max, pl_float(z[i]));
    max = pl_warp_max(max);
    for (int i = pl_lane(); i < n; i += PL_WARP) sum += expf(pl_float(z[i]) - max);
    return max + logf(pl_warp_sum(sum));
}

static __device__ float row_total(int n, const float *x)
{
    float sum = 0;
    for (int i = pl_lane(); i < n; i += PL_WARP) sum += x[i];
    return pl_warp_sum(sum);
}

static __device__ float expert_key(const float *s, const float *bias, int i)
{
    float key = bias ? s[i] + bias[i] : s[i];
    return key == key ? key : -INFINITY;
}

/* The next expert in the order of falling keys, rising numbers, and its key; by a whole
 * warp. */
static __device__ int next_expert(int experts, const float *s, const float *bias,
                                  int last, float *key)
{
    float most = -INFINITY;
    int best = experts;
    for (int i = pl_lane(); i < experts; i += PL_WARP) {
        float own = expert_key(s, bias, i);
        if (last >= 0 && !(own < *key || (own == *key && i > last))) continue;
        if (best < experts && own <= most) continue;
        best = i;
        most = own;
    }
    for (int offset = PL_WARP / 2; offset; offset /= 2) {
        float other = __shfl_xor_sync(~0u, most, offset);
        int number = __shfl_xor_sync(~0u, best, offset);
        bool ahead = number < experts && (best == experts || other > most ||
                                          (other == most && number < best));
        if (ahead) most = other;
        if (ahead) best = number;
    }
    *key = most;
    return best;
}

/* One warp a row: scores, experts, weights. */
template <class R>
static __global__ void choose_kernel(struct pl_routing route, const R *logits,
                                     const float *bias)
{
    const int E = route.experts, k = route.chosen;
    size_t r = pl_row();
    if (r >= (size_t)route.rows) return;
    const R *z = logits + r * (size_t)E;
    float *s = route.score + r * (size_t)E, *weight = route.weight + r * (size_t)k;
    int32_t *expert = route.expert + r * (size_t)k;
    float lse = route.sigmoid ? 0 : row_lse(E, z), sum = 1e-20f, key = 0;
    for (int i = pl_lane(); i < E; i += PL_WARP)
        s[i] = route.sigmoid ? 1 / (1 + expf(-pl_float(z[i])))
                             : expf(pl_float(z[i]) - lse);
    __syncwarp();
    for (int j = 0, last = -1; j < k; j++) {
        last = next_expert(E, s, bias, last, &key);
        sum += s[last];
        if (pl_lane() == 0) expert[j] = last;
    }
    __syncwarp();
    float factor = route.normed ? route.scale / sum : route.scale;
    for (int j = pl_lane(); j < k; j += PL_WARP) weight[j] = s[expert[j]] * factor;
}

/* Block g: how many choices of group g fell on each expert. */
static __global__ void load_kernel(struct pl_routing route)
{
    PL_SHARED(int32_t, count); /* (experts) */
    const int n = route.group * route.chosen;
    const int32_t *expert = route.expert + (size_t)blockIdx.x * (size_t)n;
    for (int e = (int)threadIdx.x; e < route.experts; e += PL_BLOCK) count[e] = 0;
    __syncthreads();
    for (int i = (int)threadIdx.x; i < n; i += PL_BLOCK)
        atomicAdd(&count[expert[i]], 1);
    __syncthreads();
    for (int e = (int)threadIdx.x; e < route.experts; e += PL_BLOCK)
        route.load[(size_t)blockIdx.x * (size_t)route.experts + (size_t)e] = count[e];
}

/* From the choices in the order of their experts: the slots; and the whole loads. */
static __global__ void slot_kernel(struct pl_routing route, const int32_t *order)
{
    const size_t E = (size_t)route.experts, k = (size_t)route.chosen;
    const size_t groups = (size_t)(route.rows / route.group);
    for (size_t i = pl_thread(); i < (size_t)route.rows * k; i += pl_threads()) {
        route.of_slot[i] = (int32_t)((size_t)order[i] / k);
        route.slot[order[i]] = (int32_t)i;
    }
    for (size_t e = pl_thread(); e < E; e += pl_threads()) {
        int32_t own = 0;
        for (size_t g = 0; g < groups; g++) own += route.load[g * E + e];
        route.load[groups * E + e] = own;
    }
}

static int assign_slots(const struct pl_routing *route)
{
    const int choices = route->rows * route->chosen,
              bits = route->experts > 256 ? 16 : 8;
    const size_t bytes = (size_t)route->experts * sizeof(int32_t);
    const int32_t *order;
    void *room;
    int rc = pl_cuda_shared((const void *)load_kernel, bytes, "route");
    if (!rc) rc = pl_cuda_scratch(pl_cuda_sort_bytes(choices), &room);
    if (rc) return rc;
    PL_LAUNCH(load_kernel, (unsigned)(route->rows / route->group), PL_BLOCK, bytes,
              *route);
    rc = pl_cuda_sort(choices, bits, route->expert, room, &order);
    if (rc) return rc;
    int blocks =
        pl_cuda_blocks((size_t)choices + (size_t)route->experts, PL_BLOCKS_MAX);
    PL_LAUNCH(slot_kernel, blocks, PL_BLOCK, 0, *route, order);
    return pl_cuda_launched("route");
}

static double balance_factor(const struct pl_routing *route)
{
    return (double)route->balance * route->experts /
           ((double)route->chosen * route->group * route->rows);
}

/* sum_i load_i s_i, by a whole warp. */
static __device__ float row_load(const struct pl_routing &route, size_t r)
{
    const size_t E = (size_t)route.experts;
    const float *s = route.score + r * E;
    const int32_t *load = route.load + r / (size_t)route.group * E;
    float sum = 0;
    for (size_t i = (size_t)pl_lane(); i < E; i += PL_WARP)
        sum += (float)load[i] * s[i];
    return pl_warp_sum(sum);
}

/* Block k does rows in turn, one warp a row: the sum of both terms, each by its own
 * factor. */
template <class R>
static __global__ void route_loss_kernel(struct pl_routing route, const R *logits,
                                         double balance, double z, double *partial)
{
    const size_t E = (size_t)route.experts;
    double sum = 0;
    for (size_t r = pl_row(); r < (size_t)route.rows;
         r += (size_t)gridDim.x * PL_ROWS) {
        float all = route.sigmoid ? row_total(route.experts, route.score + r * E) : 1;
        float lse = row_lse(route.experts, logits + r * E);
        double load = row_load(route, r);
        sum += balance * load / all + z * lse * lse;
    }
    sum = pl_block_sum(pl_lane() ? 0 : sum);
    if (threadIdx.x == 0) partial[blockIdx.x] = sum;
}

template <class R>
static int route_loss(const struct pl_routing *route, const float *logits,
                      double balance, double z, double *term)
{
    int blocks = (int)pl_row_blocks((size_t)route->rows);
    if (blocks > PL_PARTIALS) blocks = PL_PARTIALS;
    if (balance == 0 && z == 0) return 0;
    PL_LAUNCH(route_loss_kernel<R>, blocks, PL_BLOCK, 0, *route, (const R *)logits,
              balance, z, pl_cuda.partial);
    int rc = pl_cuda_launched("route");
    return rc ? rc : pl_cuda_add_partials(blocks, term);
}

template <class R>
static int route(const struct pl_routing *route, const float *logits, const float *bias,
                 double *terms)
{
    if (!route->rows) return 0;
    PL_LAUNCH(choose_kernel<R>, pl_row_blocks((size_t)route->rows), PL_BLOCK, 0, *route,
              (const R *)logits, bias);
    int rc = pl_cuda_launched("route");
    if (!rc) rc = assign_slots(route);
    if (!rc) rc = route_loss<R>(route, logits, balance_factor(route), 0, &terms[0]);
    return rc ? rc
              : route_loss<R>(route, logits, 0, (double)route->z / route->rows,
                              &terms[1]);
}

/* What the weights say of the score of expert i. */
static __device__ float chosen_back(const struct pl_routing &route,
                                    const int32_t *expert, const float *dweight, int i,
                                    float sum, float along)
{
    for (int j = 0; j < route.chosen; j++)
        if (expert[j] == i)
            return route.scale *
                   (route.normed ? (dweight[j] - along / sum) / sum : dweight[j]);
    return 0;
}

/* One warp a row. */
template <class R>
static __global__ void route_back_kernel(struct pl_routing route, const R *logits,
                                         const float *dweight, float factor, float a,
                                         R *dlogits)
{
    const int E = route.experts, k = route.chosen;
    size_t r = pl_row();
    if (r >= (size_t)route.rows) return;
    const float *s = route.score + r * (size_t)E;
    const R *z = logits + r * (size_t)E;
    const int32_t *expert = route.expert + r * (size_t)k;
    const int32_t *load = route.load + r / (size_t)route.group * (size_t)E;
    float sum = 1e-20f, weighed = 0;
    R *dz = dlogits + r * (size_t)E;
    dweight += r * (size_t)k;
    for (int j = 0; j < k; j++) {
        sum += s[expert[j]];
        weighed += dweight[j] * s[expert[j]];
    }
    float all = route.sigmoid ? 1 / row_total(E, s) : 1;
    float along = a * row_load(route, r) * all, lse = row_lse(E, z), direct = 0;
    for (int i = pl_lane(); i < E; i += PL_WARP)
        direct += chosen_back(route, expert, dweight, i, sum, weighed) * s[i];
    if (!route.sigmoid) along += pl_warp_sum(direct);
    for (int i = pl_lane(); i < E; i += PL_WARP) {
        float t = chosen_back(route, expert, dweight, i, sum, weighed);
        float own = a * (float)load[i], g;
        if (route.sigmoid)
            g = s[i] * (1 - s[i]) * (t + (own - along) * all);
        else
            g = s[i] * (own + t - along);
        if (route.z != 0)
            g += 2 * factor * route.z / (float)route.rows * lse *
                 expf(pl_float(z[i]) - lse);
        pl_set(&dz[i], g);
    }
}

static __global__ void excess_kernel(struct pl_routing route, double factor,
                                     float *dbias)
{
    const int E = route.experts;
    const int32_t *load = route.load + (size_t)(route.rows / route.group) * (size_t)E;
    const double all = (double)route.rows * route.chosen;
    for (int e = (int)threadIdx.x; e < E; e += PL_BLOCK)
        dbias[e] += (float)(factor * (load[e] / all - 1.0 / E));
}

template <class R>
static int route_back(const struct pl_routing *route, const float *logits,
                      const float *dweight, double factor, float *dlogits, float *dbias)
{
    if (!route->rows) return 0;
    PL_LAUNCH(route_back_kernel<R>, pl_row_blocks((size_t)route->rows), PL_BLOCK, 0,
              *route, (const R *)logits, dweight, (float)factor,
              (float)((float)factor * balance_factor(route)), (R *)dlogits);
    if (dbias) PL_LAUNCH(excess_kernel, 1, PL_BLOCK, 0, *route, factor, dbias);
    return pl_cuda_launched("route_back");
}

/* One warp a row. */
template <class R, int N>
static __global__ void combine_kernel(int rows, int n, int d, const int32_t *slot,
                                      const float *w, const R *x, const R *addend, R *y)
{
    size_t r = pl_row();
    float sum[N], v[N];
    if (r >= (size_t)rows) return;
    for (int c = pl_lane() * N; c < d; c += PL_WARP * N) {
        if (addend)
            pl_get<N>(addend + r * (size_t)d + c, sum);
        else
#pragma unroll
            for (int i = 0; i < N; i++) sum[i] = 0;
        for (size_t e = r * (size_t)n; e < (r + 1) * (size_t)n; e++) {
            pl_get<N>(x + (size_t)slot[e] * (size_t)d + c, v);
            const float weight = w ? w[e] : 1;
#pragma unroll
            for (int i = 0; i < N; i++) sum[i] += weight * v[i];
        }
        pl_put<N>(y + r * (size_t)d + c, sum);
    }
}

template <class R>
static int combine(int rows, int n, int d, const int32_t *slot, const float *w,
                   const float *x, const float *addend, float *y)
{
    if (!rows || !d) return 0;
    PL_LAUNCH_WIDE(R, pl_wide<R>(d, x, addend, y), combine_kernel,
                   pl_row_blocks((size_t)rows), PL_BLOCK, 0, rows, n, d, slot, w,
                   (const R *)x, (const R *)addend, (R *)y);
    return pl_cuda_launched("combine");
}

/* One warp a choice. */
template <class R, int N>
static __global__ void combine_back_kernel(size_t choices, int n, int d,
                                           const int32_t *slot, const float *w,
                                           const R *x, const R *dy, R *dx, float *dw)
{
    size_t e = pl_row();
    float sum = 0, v[N], g[N];
    if (e >= choices) return;
    size_t at = (size_t)slot[e] * (size_t)d;
    dy += e / (size_t)n * (size_t)d;
    for (int c = pl_lane() * N; c < d; c += PL_WARP * N) {
        pl_get<N>(x + at + c, v);
        pl_get<N>(dy + c, g);
#pragma unroll
        for (int i = 0; i < N; i++) {
            sum += v[i] * g[i];
            g[i] *= w[e];
        }
        pl_put<N>(dx + at + c, g);
    }
    sum = pl_warp_sum(sum);
    if (pl_lane() == 0) dw[e] = sum;
}

template <class R>
static int combine_back(int rows, int n, int d, const int32_t *slot, const float *w,
                        const float *x, const float *dy, float *dx, float *dw)
{
    size_t choices = (size_t)rows * (size_t)n;
    if (!choices || !d) return 0;
    PL_LAUNCH_WIDE(R, pl_wide<R>(d, x, dy, dx), combine_back_kernel,
                   pl_row_blocks(choices), PL_BLOCK, 0, choices, n, d, slot, w,
                   (const R *)x, (const R *)dy, (R *)dx, dw);
    return pl_cuda_launched("combine_back");
}

PL_OPS_MOE(PL_CUDA_BOTH, )
