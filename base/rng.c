#include "base/rng.h"

#include <math.h>
#include <Random123/philox.h>

void pl_rng_bits(uint64_t seed, enum pl_purpose purpose, uint64_t a, uint32_t b,
                 uint32_t out[4])
{
    philox4x32_key_t key = {{(uint32_t)seed, (uint32_t)(seed >> 32)}};
    philox4x32_ctr_t counter = {
        {(uint32_t)a, (uint32_t)(a >> 32), b, (uint32_t)purpose}};
    philox4x32_ctr_t bits = philox4x32(counter, key);
    for (int i = 0; i < 4; i++) out[i] = bits.v[i];
}

static double unit(uint32_t bits)
{
    return ((double)bits + 0.5) * 0x1p-32;
}

double pl_rng_uniform(uint64_t seed, enum pl_purpose purpose, uint64_t a, uint32_t b)
{
    uint32_t bits[4];
    pl_rng_bits(seed, purpose, a, b, bits);
    return unit(bits[0]);
}

uint64_t pl_rng_below(uint64_t seed, enum pl_purpose purpose, uint64_t a, uint32_t b,
                      uint64_t n)
{
    uint32_t bits[4];
    pl_rng_bits(seed, purpose, a, b, bits);
    uint64_t x = (uint64_t)bits[1] << 32 | bits[0];
    return (uint64_t)(((unsigned __int128)x * n) >> 64);
}

double pl_rng_normal(uint64_t seed, enum pl_purpose purpose, uint64_t a, uint32_t b)
{
    uint32_t bits[4];
    pl_rng_bits(seed, purpose, a, b, bits);
    return sqrt(-2 * log(unit(bits[0]))) * cos(6.283185307179586477 * unit(bits[1]));
}
