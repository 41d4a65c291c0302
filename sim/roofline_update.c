/* One optimizer step. Elementwise rules move a number of fp32 words a parameter (read
 * and written, gradient and master weight included); others add products:
 *   Newton-Schulz, 5 iterations, m <= n, symmetric halves once: 5 (3 m^2 n + m^3)
 *   SOAP   6 (m^2 n + m n^2) a step, and every 10 steps (4 + 2 + 8/3)(m^3 + n^3)
 *   Shampoo, blocks of 1024, every step: 3 (m^2 n + m n^2) and (1 + 9)(m^3 + n^3)
 *   basis rotation as SOAP on hidden matrices
 * at gemm_fraction of the bf16 peak (those with QR or eigenvectors in tf32, and these
 * at a tenth of it). Sides above 10000 have no SOAP factor. With tp a matrix is
 * gathered first and its step is shared by the copies when the state is divided (zero),
 * else repeated on each. Around the rule, as in Megatron-LM's optimizer for bf16
 * weights (distrib_optimizer, clip_grads, grad buffer): the master weight is read for
 * its bf16 copy and the gradient set to 0, a word each; clipping reads the gradient for
 * its norm, then reads and writes it, three words. Gradients of 2 bytes (grad_16) are
 * cast to fp32 first: a word more, with the cheaper setting to 0. Loss scaling (fp16)
 * is not in it. Sources: Jordan et al. 2024 (Muon); Vyas et al., ICLR 2025 (SOAP);
 * their code. */
#include <string.h>

#include "base/err.h"
#include "sim/roofline.h"

const char *const pl_update_rules[] = {
    "auto",  "sgd",     "signum", "lion",      "scion",          "adamw",
    "nadam", "nadamw",  "mars",   "mars-lion", "mars-shampoo",   "adan",
    "muon",  "normuon", "soap",   "shampoo",   "basis-rotation", NULL};

/* Words moved a parameter: of hidden matrices, of all other tensors (Muon: AdamW). */
static const struct {
    const char *name;
    double hidden, other;
} rules[] = {{"sgd", 5, 5},       {"signum", 5, 5},
             {"lion", 5, 5},      {"scion", 5, 5},
             {"adamw", 7, 7},     {"nadam", 7, 7},
             {"nadamw", 7, 7},    {"mars", 9, 9},
             {"adan", 11, 11},    {"muon", 5, 7},
             {"soap", 7, 7},      {"normuon", 5, 7},
             {"mars-lion", 7, 7}, {"mars-shampoo", 7, 7},
             {"shampoo", 5, 5},   {"basis-rotation", 7, 7},
             {NULL, 0, 0}};

static const double around = 2, clipping = 3, cast = 1; /* words */

static double newton_schulz(double m, double n)
{
    double a = m < n ? m : n, b = m < n ? n : m;
    return 5 * (3 * a * a * b + a * a * a);
}

struct matrix_work {
    double products, factorings; /* flops */
};

static struct matrix_work soap(double m, double n)
{
    enum { EVERY = 10, LARGEST = 10000 };
    double left = m <= LARGEST ? m : 0, right = n <= LARGEST ? n : 0;
    struct matrix_work w;
    w.products = 6 * (left * m * n + right * m * n) +
                 4 * (left * left * left + right * right * right) / EVERY;
    w.factorings = (2 + 8. / 3) * (left * left * left + right * right * right) / EVERY;
    return w;
}

/* Blocks of at most 1024 x 1024: halves of both statistics, the roots applied; at each
 * step (refresh 1) eigenvectors and the roots put together. */
static struct matrix_work shampoo(double m, double n)
{
    enum { BLOCK = 1024 };
    double a = m < BLOCK ? m : BLOCK, b = n < BLOCK ? n : BLOCK,
           count = m * n / (a * b);
    struct matrix_work w;
    w.products = count * (3 * (a * a * b + a * b * b) + a * a * a + b * b * b);
    w.factorings = count * 9 * (a * a * a + b * b * b);
    return w;
}

static struct matrix_work matrix_work(const char *optimizer, bool hidden, double in,
                                      double out)
{
    if ((hidden && strstr(optimizer, "muon")) || !strcmp(optimizer, "mars-shampoo"))
        return (struct matrix_work){.products = newton_schulz(in, out)};
    if (!strcmp(optimizer, "soap") || (hidden && !strcmp(optimizer, "basis-rotation")))
        return soap(in, out);
    if (!strcmp(optimizer, "shampoo")) return shampoo(in, out);
    return (struct matrix_work){0, 0};
}

int pl_roofline_update(const struct pl_roofline *r, enum pl_block block,
                       const char *optimizer, struct pl_update_time *out)
{
    const struct pl_gpu *gpu = &r->cluster->gpu;
    const struct pl_parallel *p = r->parallel;
    struct pl_weight weight[PL_MAX_WEIGHTS];
    int rule = 0;
    while (rules[rule].name && strcmp(rules[rule].name, optimizer)) rule++;
    if (!rules[rule].name)
        return pl_fail_unknown(PL_EUNSUP, "cost.optimizer", "cost model of optimizer",
                               optimizer, pl_update_rules + 1);
    bool hidden = block != PL_BLOCK_EMBEDDING && block != PL_BLOCK_HEAD;
    int n = pl_weights(r->model, block, weight);
    struct matrix_work all = {0, 0};
    for (int i = 0; i < n; i++) {
        const struct pl_weight *w = &weight[i];
        double copies = (double)p->cp * p->dp / (w->expert ? p->ep : 1);
        double here = (w->expert ? (double)r->model->experts / p->ep : 1) /
                      (p->zero ? copies : 1);
        if (w->in == 0 || w->tied) continue;
        struct matrix_work one =
            matrix_work(optimizer, hidden, (double)w->in, (double)w->out);
        all.products += here * one.products;
        all.factorings += here * one.factorings;
    }
    double rate = all.factorings > 0 && gpu->tf32 > 0 ? gpu->tf32 : gpu->bf16;
    rate *= gpu->gemm_fraction;
    double words = hidden ? rules[rule].hidden : rules[rule].other;
    words += around + (r->clip ? clipping : 0) + (p->grad_16 ? cast : 0);
    out->per_param = (4 * words + 2) / (gpu->memory_bandwidth * gpu->memory_fraction);
    out->matrices = all.products / rate + all.factorings / (rate / 10);
    return PL_OK;
}
