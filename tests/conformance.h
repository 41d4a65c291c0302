/* The conformance suite of the device layer: every operation over odd shapes against
 * its formula in double. It needs the device only, so any device runs it (C or C++
 * linkage).
 *
 * Bounds are derived, not fitted: with eps = FLT_EPSILON = 2 u, an element may differ
 * by c n eps scale: n the number of roundings that can add up (reduction length + what
 * the error of an exponent adds), scale the sum of the absolute terms, c the op's
 * factor. A first-order rounding analysis in float gives n u scale; eps instead of u is
 * the slack. */
#ifndef PL_TESTS_CONFORMANCE_H
#define PL_TESTS_CONFORMANCE_H

#include "gpu/device.h"

#ifdef __cplusplus
extern "C" {
#endif

struct trial;

struct conformance {
    const char *op;
    double c; /* the factor of its bound; 0: exact */
    void (*check)(struct trial *trial);
};

/* NULL op ends the table. */
extern const struct conformance conformance_table[];

/* Run one op's check twice on an open device. True when every element is in bounds and
 * both runs gave the same bits; else text says what failed first. */
bool conformance_run(const struct conformance *op, const struct pl_device *device,
                     char *text, size_t n);

/* The same for a device that rounds the factors of its products (gemm, attention): what
 * that adds to an element's count of roundings, as `product` roundings of float for
 * each product. */
bool conformance_run_rounded(const struct conformance *op,
                             const struct pl_device *device, double product, char *text,
                             size_t n);

/* Inside: one run of one op. Fails are counted, the first one is kept as text. */
struct trial {
    const struct pl_device *device;
    const struct conformance *op;
    void *blocks[16];
    int used;
    double product; /* of conformance_run_rounded, 0 otherwise */
    uint64_t hash;  /* of every result downloaded */
    int failures;
    char *text;
    size_t room;
};

/* What is added to a result: nothing, what lies where it goes, another array. */
enum addend { NONE, ITSELF, APART, ADDENDS };

/* Normal numbers of stream `stream`, rounded to float. Caller frees. */
float *trial_random(size_t n, uint64_t stream);
/* Device copy of n floats (or int32), released by trial_clear. */
void *trial_upload(struct trial *t, const void *host, size_t n);
/* Compare the device's n floats with want: |x - want| <= c eps weight, weight = n scale
 * for each element. */
void trial_compare(struct trial *t, const char *what, const float *device, size_t n,
                   const double *want, const double *weight);
void trial_compare_double(struct trial *t, const char *what, double got, double want,
                          double bound);
/* The same for activations (real in gpu/device.h): numbers that the device's type
 * holds; they stay float on this side. A result that is stored in bf16 (8 bits) may be
 * off by 2^-8 of itself more. n: elements; released and freed like the others. */
float *trial_random_real(const struct trial *t, size_t n, uint64_t stream);
void trial_round(const struct trial *t, float *x, size_t n); /* to that type */
void *trial_upload_real(struct trial *t, const float *host, size_t n);
void trial_compare_real(struct trial *t, const char *what, const float *device,
                        size_t n, const double *want, const double *weight);
/* A status must be 0. */
void trial_status(struct trial *t, int status);
void trial_clear(struct trial *t);

void check_blend(struct trial *t);
void check_distance(struct trial *t);
void check_mul(struct trial *t);
void check_ratio(struct trial *t);
void check_squares(struct trial *t);
void check_syrk(struct trial *t);
void check_product(struct trial *t);
void check_product_groups(struct trial *t);
void check_bias_groups_back(struct trial *t);
void check_gemm_batch(struct trial *t);
void check_syrk_batch(struct trial *t);
void check_round_bf16(struct trial *t);
void check_embed(struct trial *t);
void check_embed_back(struct trial *t);
void check_gather(struct trial *t);
void check_rmsnorm(struct trial *t);
void check_rmsnorm_back(struct trial *t);
void check_layernorm(struct trial *t);
void check_layernorm_back(struct trial *t);
void check_headnorm(struct trial *t);
void check_headnorm_back(struct trial *t);
void check_add_rows(struct trial *t);
void check_add_rows_back(struct trial *t);
void check_gelu(struct trial *t);
void check_gelu_back(struct trial *t);
void check_route(struct trial *t);
void check_route_back(struct trial *t);
void check_combine(struct trial *t);
void check_combine_back(struct trial *t);
void check_rope(struct trial *t);
void check_attention(struct trial *t);
void check_attention_back(struct trial *t);
void check_swiglu(struct trial *t);
void check_swiglu_back(struct trial *t);
void check_xent(struct trial *t);

#ifdef __cplusplus
}
#endif
#endif
