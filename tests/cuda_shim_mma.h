/* Of tests/cuda_shim.h: small device functions, bf16 and the twins of gpu/cuda_mma.cuh
 * in plain loops. Included
 * by it only. What a warp does at once is done by the lane that comes last. An
 * asynchronous copy spoils its target when it begins and is made when it is waited for,
 * so that a wait or a barrier that is missing shows. */
#ifndef TESTS_CUDA_SHIM_MMA_H
#define TESTS_CUDA_SHIM_MMA_H

struct __nv_bfloat16 {
    uint16_t bits;
};
struct alignas(8) float2 {
    float x, y;
};
struct alignas(16) uint4 {
    unsigned x, y, z, w;
};

#define __launch_bounds__(...)

/* The lanes with the same value. */
static inline unsigned __match_any_sync(unsigned mask, int value)
{
    return shim::exchange_all(mask, value, "__match_any_sync", [=](const shim::warp &w) {
        unsigned same = 0;
        for (unsigned i = 0; i < shim::WARP; i++) {
            int other;
            memcpy(&other, &w.slot[i], sizeof other);
            if (mask >> i & 1 && other == value) same |= 1u << i;
        }
        return same;
    });
}
static inline int atomicAdd(int *x, int value)
{
    int old = *x;
    *x += value;
    return old;
}
static inline int __popc(unsigned x)
{
    return __builtin_popcount(x);
}
static inline int __ffs(int x)
{
    return __builtin_ffs(x);
}
#define __expf expf /* the name is glibc's too */

static inline float __uint_as_float(unsigned bits)
{
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

static inline float __bfloat162float(__nv_bfloat16 x)
{
    return __uint_as_float((unsigned)x.bits << 16);
}

static inline __nv_bfloat16 __float2bfloat16(float x)
{
    unsigned bits;
    memcpy(&bits, &x, sizeof bits);
    if (x != x) return {0x7fff};
    return {(uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16)};
}

static inline int min(int a, int b)
{
    return a < b ? a : b;
}

static inline unsigned pl_pair(float lower, float upper)
{
    return (unsigned)__float2bfloat16(upper).bits << 16 | __float2bfloat16(lower).bits;
}

static inline float pl_exp2(float x)
{
    return exp2f(x);
}

namespace shim
{
struct mma_item {
    float *c;
    const unsigned *a;
    unsigned b[2];
};

/* Half `upper` of a register. */
inline float half_of(unsigned pair, int upper)
{
    return __uint_as_float(upper ? pair & 0xffff0000u : pair << 16);
}

inline void mma(mma_item *const *lane)
{
    typedef float row __attribute__((vector_size(32)));
    row b[16];
    for (int k = 0; k < 16; k++)
        for (int n = 0; n < 8; n++)
            b[k][n] = half_of(lane[4 * n + k % 8 / 2]->b[k / 8], k % 2);
    for (int i = 0; i < 16; i++) {
        row sum = {};
        for (int k = 0; k < 16; k++) {
            const mma_item *from = lane[i % 8 * 4 + k % 8 / 2];
            sum += half_of(from->a[i / 8 + k / 8 * 2], k % 2) * b[k];
        }
        for (int n = 0; n < 8; n++)
            lane[i % 8 * 4 + n / 2]->c[i / 8 * 2 + n % 2] += sum[n];
    }
}

struct matrix_item {
    unsigned *x;
    const uint16_t *row;
};

inline void matrices(matrix_item *const *lane, bool transposed)
{
    for (int m = 0; m < 4; m++)
        for (int r = 0; r < 8; r++) {
            const uint16_t *row = lane[8 * m + r]->row;
            if ((uintptr_t)row % 16) abort();
            for (int c = 0; c < 8; c++) {
                unsigned *x = transposed ? &lane[4 * c + r / 2]->x[m]
                                         : &lane[4 * r + c / 2]->x[m];
                unsigned place = (transposed ? r : c) % 2 * 16;
                *x = (*x & ~(0xffffu << place)) | (unsigned)row[c] << place;
            }
        }
}
} /* namespace shim */

static inline void pl_mma(float c[4], const unsigned a[4], unsigned b0, unsigned b1)
{
    shim::mma_item item = {c, a, {b0, b1}};
    shim::together(item, shim::mma, "pl_mma");
}

static inline void pl_ldmatrix(unsigned x[4], const __nv_bfloat16 *row)
{
    shim::matrix_item item = {x, (const uint16_t *)row};
    shim::together<shim::matrix_item>(
        item, [](shim::matrix_item *const *lane) { shim::matrices(lane, false); },
        "pl_ldmatrix");
}

static inline void pl_ldmatrix_trans(unsigned x[4], const __nv_bfloat16 *row)
{
    shim::matrix_item item = {x, (const uint16_t *)row};
    shim::together<shim::matrix_item>(
        item, [](shim::matrix_item *const *lane) { shim::matrices(lane, true); },
        "pl_ldmatrix_trans");
}

template <int BYTES>
static inline void pl_copy_async(void *shared, const void *global, bool wanted)
{
    static_assert(BYTES == 8 || BYTES == 16, "as the instruction");
    if ((uintptr_t)shared % BYTES || (uintptr_t)global % BYTES) abort();
    memset(shared, shim::POISON, BYTES);
    shim::current->copies.push_back({shared, wanted ? global : nullptr, BYTES});
}

/* The end of a group: a copy to nowhere. */
static inline void pl_copy_commit()
{
    shim::current->copies.push_back({nullptr, nullptr, 0});
}

template <int N> static inline void pl_copy_wait_but()
{
    auto &copies = shim::current->copies;
    size_t end = copies.size();
    for (int groups = 0; end && groups <= N; end--)
        if (!copies[end - 1].to && ++groups > N) break;
    for (size_t i = 0; i < end; i++) {
        const shim::copy &c = copies[i];
        if (c.from)
            memcpy(c.to, c.from, c.bytes);
        else if (c.to)
            memset(c.to, 0, c.bytes);
    }
    copies.erase(copies.begin(), copies.begin() + (std::ptrdiff_t)end);
}

static inline void pl_copy_wait()
{
    pl_copy_commit();
    pl_copy_wait_but<0>();
}

#endif
