/* cuda: routing to experts, and the weighted sum of what they return; formulas as in
 * ref_moe.c. */
#include "gpu/cuda_device.cuh"

enum { ROWS = PL_BLOCK / PL_WARP }; /* rows of a block: one for each warp */

static int row_blocks(size_t rows)
{
    return (int)((rows + ROWS - 1) / ROWS);
}

static __device__ inline size_t warp_row(void)
{
    return (size_t)blockIdx.x * ROWS + threadIdx.x / PL_WARP;
}

static __device__ inline int lane_of(void)
{
    return (int)threadIdx.x % PL_WARP;
}

/* By a whole warp; every lane gets it. */
static __device__ float row_lse(int n, const float *z)
{
    float max = -INFINITY, sum = 0;
    for (int i = lane_of(); i < n; i += PL_WARP) max = fmaxf(max, z[i]);
    max = pl_warp_max(max);
    for (int i = lane_of(); i < n; i += PL_WARP) sum += expf(z[i] - max);
    return max + logf(pl_warp_sum(sum));
}

static __device__ float row_total(int n, const float *x)
{
    float sum = 0;
    for (int i = lane_of(); i < n; i += PL_WARP) sum += x[i];
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
    for (int i = lane_of(); i < experts; i += PL_WARP) {
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
static __global__ void choose_kernel(struct pl_routing route, const float *logits,
                                     const float *bias)
{
    const int E = route.experts, k = route.chosen;
    size_t r = warp_row();
    if (r >= (size_t)route.rows) return;
    const float *z = logits + r * (size_t)E;
    float *s = route.score + r * (size_t)E, *weight = route.weight + r * (size_t)k;
    int32_t *expert = route.expert + r * (size_t)k;
    float lse = route.sigmoid ? 0 : row_lse(E, z), sum = 1e-20f, key = 0;
    for (int i = lane_of(); i < E; i += PL_WARP)
        s[i] = route.sigmoid ? 1 / (1 + expf(-z[i])) : expf(z[i] - lse);
    __syncwarp();
    for (int j = 0, last = -1; j < k; j++) {
        last = next_expert(E, s, bias, last, &key);
        sum += s[last];
        if (lane_of() == 0) expert[j] = last;
    }
    __syncwarp();
    float factor = route.normed ? route.scale / sum : route.scale;
    for (int j = lane_of(); j < k; j += PL_WARP) weight[j] = s[expert[j]] * factor;
}

/* Thread (group, expert): how many choices of the group fell on it. */
static __global__ void load_kernel(struct pl_routing route)
{
    const size_t E = (size_t)route.experts, k = (size_t)route.chosen;
    const size_t n = (size_t)(route.rows / route.group) * E;
    for (size_t id = pl_thread(); id < n; id += pl_threads()) {
        const int32_t *expert = route.expert + id / E * (size_t)route.group * k;
        int32_t count = 0;
        for (size_t i = 0; i < (size_t)route.group * k; i++)
            count += expert[i] == (int32_t)(id % E);
        route.load[id] = count;
    }
}

/* Thread e: the whole load of expert e, and the slots of its rows, in order. */
static __global__ void slot_kernel(struct pl_routing route)
{
    const size_t E = (size_t)route.experts, k = (size_t)route.chosen;
    const size_t groups = (size_t)(route.rows / route.group);
    for (size_t e = pl_thread(); e < E; e += pl_threads()) {
        int32_t slot = 0, own = 0;
        for (size_t g = 0; g < groups; g++) {
            for (size_t i = 0; i < e; i++) slot += route.load[g * E + i];
            own += route.load[g * E + e];
        }
        route.load[groups * E + e] = own;
        for (size_t i = 0; i < (size_t)route.rows * k; i++) {
            if (route.expert[i] != (int32_t)e) continue;
            route.of_slot[slot] = (int32_t)(i / k);
            route.slot[i] = slot++;
        }
    }
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
    for (size_t i = (size_t)lane_of(); i < E; i += PL_WARP)
        sum += (float)load[i] * s[i];
    return pl_warp_sum(sum);
}

/* Block k does rows in turn, one warp a row: the sum of both terms, each by its own
 * factor. */
static __global__ void route_loss_kernel(struct pl_routing route, const float *logits,
                                         double balance, double z, double *partial)
{
    const size_t E = (size_t)route.experts;
    double sum = 0;
    for (size_t r = warp_row(); r < (size_t)route.rows; r += (size_t)gridDim.x * ROWS) {
        float all = route.sigmoid ? row_total(route.experts, route.score + r * E) : 1;
        float lse = row_lse(route.experts, logits + r * E);
        double load = row_load(route, r);
        sum += balance * load / all + z * lse * lse;
    }
    sum = pl_block_sum(lane_of() ? 0 : sum);
    if (threadIdx.x == 0) partial[blockIdx.x] = sum;
}

static int route_loss(const struct pl_routing *route, const float *logits,
                      double balance, double z, double *term)
{
    int blocks = row_blocks((size_t)route->rows);
    if (blocks > PL_PARTIALS) blocks = PL_PARTIALS;
    if (balance == 0 && z == 0) return 0;
    PL_LAUNCH(route_loss_kernel, blocks, PL_BLOCK, 0, *route, logits, balance, z,
              pl_cuda.partial);
    int rc = pl_cuda_launched("route");
    return rc ? rc : pl_cuda_add_partials(blocks, term);
}

int pl_cuda_route(const struct pl_routing *route, const float *logits,
                  const float *bias, double *terms)
{
    if (!route->rows) return 0;
    const size_t E = (size_t)route->experts;
    const size_t loads = (size_t)(route->rows / route->group) * E;
    PL_LAUNCH(choose_kernel, row_blocks((size_t)route->rows), PL_BLOCK, 0, *route,
              logits, bias);
    int rc = pl_cuda_launched("route");
    if (rc) return rc;
    PL_LAUNCH(load_kernel, pl_cuda_blocks(loads, PL_BLOCKS_MAX), PL_BLOCK, 0, *route);
    if ((rc = pl_cuda_launched("route"))) return rc;
    PL_LAUNCH(slot_kernel, pl_cuda_blocks(E, PL_BLOCKS_MAX), PL_BLOCK, 0, *route);
    if ((rc = pl_cuda_launched("route"))) return rc;
    rc = route_loss(route, logits, balance_factor(route), 0, &terms[0]);
    return rc ? rc
              : route_loss(route, logits, 0, (double)route->z / route->rows, &terms[1]);
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
static __global__ void route_back_kernel(struct pl_routing route, const float *logits,
                                         const float *dweight, float factor, float a,
                                         float *dlogits)
{
    const int E = route.experts, k = route.chosen;
    size_t r = warp_row();
    if (r >= (size_t)route.rows) return;
    const float *s = route.score + r * (size_t)E, *z = logits + r * (size_t)E;
    const int32_t *expert = route.expert + r * (size_t)k;
    const int32_t *load = route.load + r / (size_t)route.group * (size_t)E;
    float *dz = dlogits + r * (size_t)E, sum = 1e-20f, weighed = 0;
    dweight += r * (size_t)k;
    for (int j = 0; j < k; j++) {
        sum += s[expert[j]];
        weighed += dweight[j] * s[expert[j]];
    }
    float all = route.sigmoid ? 1 / row_total(E, s) : 1;
    float along = a * row_load(route, r) * all, lse = row_lse(E, z), direct = 0;
    for (int i = lane_of(); i < E; i += PL_WARP)
        direct += chosen_back(route, expert, dweight, i, sum, weighed) * s[i];
    if (!route.sigmoid) along += pl_warp_sum(direct);
    for (int i = lane_of(); i < E; i += PL_WARP) {
        float t = chosen_back(route, expert, dweight, i, sum, weighed);
        float own = a * (float)load[i], g;
        if (route.sigmoid)
            g = s[i] * (1 - s[i]) * (t + (own - along) * all);
        else
            g = s[i] * (own + t - along);
        if (route.z != 0)
            g += 2 * factor * route.z / (float)route.rows * lse * expf(z[i] - lse);
        dz[i] = g;
    }
}

int pl_cuda_route_back(const struct pl_routing *route, const float *logits,
                       const float *dweight, float factor, float *dlogits)
{
    if (!route->rows) return 0;
    PL_LAUNCH(route_back_kernel, row_blocks((size_t)route->rows), PL_BLOCK, 0, *route,
              logits, dweight, factor, (float)(factor * balance_factor(route)),
              dlogits);
    return pl_cuda_launched("route_back");
}

static __global__ void combine_kernel(size_t size, int n, int d, const int32_t *slot,
                                      const float *w, const float *x, float *y)
{
    for (size_t i = pl_thread(); i < size; i += pl_threads()) {
        size_t first = i / (size_t)d * (size_t)n, column = i % (size_t)d;
        float sum = y[i];
        for (size_t e = first; e < first + (size_t)n; e++)
            sum += (w ? w[e] : 1) * x[(size_t)slot[e] * (size_t)d + column];
        y[i] = sum;
    }
}

int pl_cuda_combine(int rows, int n, int d, const int32_t *slot, const float *w,
                    const float *x, float *y)
{
    size_t size = (size_t)rows * (size_t)d;
    if (!size) return 0;
    PL_LAUNCH(combine_kernel, pl_cuda_blocks(size, PL_BLOCKS_MAX), PL_BLOCK, 0, size, n,
              d, slot, w, x, y);
    return pl_cuda_launched("combine");
}

/* One warp a choice. */
static __global__ void combine_back_kernel(size_t choices, int n, int d,
                                           const int32_t *slot, const float *w,
                                           const float *x, const float *dy, float *dx,
                                           float *dw)
{
    size_t e = warp_row();
    if (e >= choices) return;
    size_t at = (size_t)slot[e] * (size_t)d;
    float sum = 0;
    dy += e / (size_t)n * (size_t)d;
    for (int i = lane_of(); i < d; i += PL_WARP) {
        sum += x[at + (size_t)i] * dy[i];
        dx[at + (size_t)i] = w[e] * dy[i];
    }
    sum = pl_warp_sum(sum);
    if (lane_of() == 0) dw[e] = sum;
}

int pl_cuda_combine_back(int rows, int n, int d, const int32_t *slot, const float *w,
                         const float *x, const float *dy, float *dx, float *dw)
{
    size_t choices = (size_t)rows * (size_t)n;
    if (!choices || !d) return 0;
    PL_LAUNCH(combine_back_kernel, row_blocks(choices), PL_BLOCK, 0, choices, n, d,
              slot, w, x, dy, dx, dw);
    return pl_cuda_launched("combine_back");
}
