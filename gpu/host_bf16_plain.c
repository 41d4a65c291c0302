/* host in bf16, tiles in plain C: what the other two kinds are tested against, and how
 * bf16 is emulated where there is no AVX512_BF16. */
#include "gpu/host_bf16.h"
#include "gpu/host_bf16_tiles.h"

#define HOST(name) pl_bf16_plain_##name
enum { LANES = 4 };

#define TILES_ON() pl_tiles_configure(&pl_tile_config_full)
#define TILES_OFF() pl_tiles_release()
#define TILE_ZERO(t) pl_tile_zero(t)
#define TILE_LOAD(t, p, stride) pl_tile_load(t, p, stride)
#define TILE_STORE(t, p, stride) pl_tile_store(t, p, stride)
#define TILE_MUL(c, a, b) pl_tile_mul(c, a, b)

static uint32_t pair(float x, float y)
{
    return (uint32_t)pl_bf16(y) << 16 | pl_bf16(x);
}

static void pairs_along(const float *x, uint32_t *out)
{
    for (int i = 0; i < 16; i++) out[i] = pair(x[2 * i], x[2 * i + 1]);
}

static void pairs_across(const float *x, const float *y, uint32_t *out)
{
    for (int i = 0; i < 16; i++) out[i] = pair(x[i], y[i]);
}

static void transpose(const uint32_t *in, uint32_t *out)
{
    for (int i = 0; i < 16; i++)
        for (int j = 0; j < 16; j++) out[16 * j + i] = in[16 * i + j];
}

#include "gpu/host_bf16_gemm.h"
#include "gpu/host_math.h"
#include "gpu/host_bf16_attention.h"
