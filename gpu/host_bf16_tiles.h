/* The tiles of Intel AMX in plain C: what the instructions do, operation for operation
 * (Intel SDM volume 2: LDTILECFG, TILELOADD, TDPBF16PS; palette 1). One set of eight
 * tiles a thread, owned by this file. Breaking a rule that the CPU answers with #UD or
 * #GP is an assertion. */
#ifndef PL_GPU_HOST_BF16_TILES_H
#define PL_GPU_HOST_BF16_TILES_H

#include <stddef.h>
#include <stdint.h>

enum { PL_TILES = 8, PL_TILE_ROWS = 16, PL_TILE_BYTES = 64 /* of a row */ };

/* As LDTILECFG reads it: 64 bytes. */
struct pl_tile_config {
    uint8_t palette, start_row, zero[14];
    uint16_t row_bytes[16]; /* a multiple of 4; 0 with rows 0: tile not in use */
    uint8_t rows[16];
};

/* Eight tiles of 16 rows of 64 bytes. */
extern const struct pl_tile_config pl_tile_config_full;

void pl_tiles_configure(const struct pl_tile_config *config); /* tiles become 0 */
void pl_tiles_release(void);
void pl_tile_zero(int tile);
/* Rows `stride` bytes apart; what the tile has beyond its rows and bytes becomes 0. */
void pl_tile_load(int tile, const void *from, size_t stride);
void pl_tile_store(int tile, void *to, size_t stride);
/* TDPBF16PS: c (M x N float) += a (M x K pairs of bf16) b (K x N pairs). In each
 * element the even and the odd members of the pairs are summed apart from 0, by fused
 * multiply-adds in the order of k; then c + (even + odd). Rounded to nearest even,
 * denormal inputs and results are 0 (of the same sign). */
void pl_tile_mul(int c, int a, int b);

/* VCVTNEPS2BF16 of one number: nearest even, denormals to 0, NaN stays (quiet). */
uint16_t pl_bf16(float x);
float pl_bf16_float(uint16_t x);

#endif
