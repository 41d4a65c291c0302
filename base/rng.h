/* Counter-based random numbers (Random123's Philox4x32-10): a number is a pure function
 * of (seed, purpose, a, b), so delay, device and thread count never shift a stream.
 * Source: Salmon et al., SC'11. Stateless: nothing to own. */
#ifndef PL_BASE_RNG_H
#define PL_BASE_RNG_H

#include <stdint.h>

enum pl_purpose {
    PL_RNG_DATA = 1,    /* which window of the text */
    PL_RNG_INIT = 2,    /* initial weights: a = parameter number, b = element */
    PL_RNG_NOISE = 3,   /* gradient noise of convex problems */
    PL_RNG_CORPUS = 4,  /* the synthetic grammar */
    PL_RNG_TEST = 5,    /* tests */
    PL_RNG_JITTER = 6,  /* simulated times that vary */
    PL_RNG_SHUFFLE = 7, /* permutation of the windows of an epoch */
    PL_RNG_DELAY = 8    /* random delays */
};

/* 128 random bits. */
void pl_rng_bits(uint64_t seed, enum pl_purpose purpose, uint64_t a, uint32_t b,
                 uint32_t out[4]);

/* Uniform in (0,1), 32 bits deep. */
double pl_rng_uniform(uint64_t seed, enum pl_purpose purpose, uint64_t a, uint32_t b);

/* Uniform integer in [0, n), n >= 1. */
uint64_t pl_rng_below(uint64_t seed, enum pl_purpose purpose, uint64_t a, uint32_t b,
                      uint64_t n);

/* Standard normal (Box-Muller). */
double pl_rng_normal(uint64_t seed, enum pl_purpose purpose, uint64_t a, uint32_t b);

#endif
