/* draw: start = uniform in [0, n - T), with replacement (nanoGPT's way).
 *
 * file and epoch cut the n tokens into W = floor((n - 1) / T) windows of T + 1 tokens
 * that share their border token (llm.c, Megatron). file: window k mod W. epoch: window
 * pi_e(k mod W), e = floor(k / W), where pi_e is a random permutation of the windows,
 * another one for each seed and epoch. It needs no memory: a balanced Feistel network
 * on the even number of bits that W - 1 fits into, round function Philox keyed by
 * (seed, epoch, round), is a permutation of all numbers of that many bits; it is
 * applied until the number is below W, which makes it one of 0 .. W-1 (Black & Rogaway,
 * "Ciphers with arbitrary finite domains", CT-RSA 2002: cycle walking; below four steps
 * on average). */
#include "train/data_order.h"

#include <stddef.h>

#include "base/rng.h"

enum { ROUNDS = 8 };

const char *const pl_data_order_names[] = {"draw", "epoch", "file", NULL};

static uint64_t permute(uint64_t seed, uint64_t epoch, uint64_t W, uint64_t i)
{
    int half = 1;
    while (half < 32 && W - 1 >= UINT64_C(1) << 2 * half) half++;
    const uint64_t mask = (UINT64_C(1) << half) - 1;
    do {
        uint64_t left = i >> half, right = i & mask;
        for (uint64_t round = 0; round < ROUNDS; round++) {
            uint32_t bits[4];
            pl_rng_bits(seed, PL_RNG_SHUFFLE, epoch * ROUNDS + round, (uint32_t)right,
                        bits);
            uint64_t next = left ^ (bits[0] & mask);
            left = right;
            right = next;
        }
        i = left << half | right;
    } while (i >= W);
    return i;
}

int64_t pl_data_start(enum pl_data_order order, uint64_t seed, int64_t k, int64_t n,
                      int T)
{
    if (order == PL_ORDER_DRAW)
        return (int64_t)pl_rng_below(seed, PL_RNG_DATA, (uint64_t)k, 0,
                                     (uint64_t)(n - T));
    const uint64_t W = (uint64_t)((n - 1) / T), at = (uint64_t)k % W;
    if (order == PL_ORDER_FILE) return (int64_t)at * T;
    return (int64_t)permute(seed, (uint64_t)k / W, W, at) * T;
}
