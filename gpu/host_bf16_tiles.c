#include "gpu/host_bf16_tiles.h"

#include <assert.h>
#include <float.h>
#include <math.h>
#include <stdbool.h>
#include <string.h>

#define FOUR(x) x, x, x, x
const struct pl_tile_config pl_tile_config_full = {
    .palette = 1,
    .row_bytes = {FOUR(PL_TILE_BYTES), FOUR(PL_TILE_BYTES)},
    .rows = {FOUR(PL_TILE_ROWS), FOUR(PL_TILE_ROWS)},
};

struct tile {
    uint32_t word[PL_TILE_ROWS][PL_TILE_BYTES / 4];
};

static _Thread_local struct {
    struct pl_tile_config config; /* palette 0: tiles are off */
    struct tile tile[PL_TILES];
} state;

static float float_of(uint32_t bits)
{
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

static uint32_t bits_of(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

/* DAZ and FTZ. */
static float flushed(float x)
{
    return fabsf(x) < FLT_MIN ? copysignf(0, x) : x;
}

float pl_bf16_float(uint16_t x)
{
    return float_of((uint32_t)x << 16);
}

uint16_t pl_bf16(float x)
{
    uint32_t bits = bits_of(flushed(x));
    if (isnan(x)) return (uint16_t)(bits >> 16 | 0x40);
    return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16); /* inf stays inf */
}

void pl_tiles_configure(const struct pl_tile_config *config)
{
    assert(config->palette == 1 && config->start_row == 0);
    for (int t = 0; t < 16; t++) {
        bool used = config->rows[t] || config->row_bytes[t];
        assert(!used || (t < PL_TILES && config->rows[t] && config->row_bytes[t]));
        assert(config->rows[t] <= PL_TILE_ROWS);
        assert(config->row_bytes[t] <= PL_TILE_BYTES && config->row_bytes[t] % 4 == 0);
    }
    memset(&state, 0, sizeof state);
    state.config = *config;
}

void pl_tiles_release(void)
{
    memset(&state, 0, sizeof state);
}

static struct tile *used(int tile)
{
    assert(state.config.palette == 1 && tile >= 0 && tile < PL_TILES);
    assert(state.config.rows[tile]);
    return &state.tile[tile];
}

void pl_tile_zero(int tile)
{
    memset(used(tile), 0, sizeof(struct tile));
}

void pl_tile_load(int tile, const void *from, size_t stride)
{
    struct tile *t = used(tile);
    const unsigned char *row = from;
    memset(t, 0, sizeof *t);
    for (int r = 0; r < state.config.rows[tile]; r++, row += stride)
        memcpy(t->word[r], row, state.config.row_bytes[tile]);
}

void pl_tile_store(int tile, void *to, size_t stride)
{
    const struct tile *t = used(tile);
    unsigned char *row = to;
    for (int r = 0; r < state.config.rows[tile]; r++, row += stride)
        memcpy(row, t->word[r], state.config.row_bytes[tile]);
}

/* sum + x y of the upper or lower halves of two pairs; the product is exact in fma. */
static float add_product(float sum, uint32_t x, uint32_t y)
{
    return flushed(fmaf(flushed(float_of(x)), flushed(float_of(y)), flushed(sum)));
}

void pl_tile_mul(int c, int a, int b)
{
    struct tile *sum = used(c);
    const struct tile *left = used(a), *right = used(b);
    int M = state.config.rows[c], N = state.config.row_bytes[c] / 4;
    int K = state.config.row_bytes[a] / 4;
    assert(c != a && c != b && a != b);
    assert(state.config.rows[a] == M && state.config.rows[b] == K &&
           state.config.row_bytes[b] == 4 * N);
    for (int m = 0; m < M; m++)
        for (int n = 0; n < N; n++) {
            float even = 0, odd = 0;
            for (int k = 0; k < K; k++) {
                uint32_t x = left->word[m][k], y = right->word[k][n];
                even = add_product(even, x << 16, y << 16);
                odd = add_product(odd, x & 0xffff0000, y & 0xffff0000);
            }
            float old = flushed(float_of(sum->word[m][n]));
            sum->word[m][n] = bits_of(flushed(old + flushed(even + odd)));
        }
}
