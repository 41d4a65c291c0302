/* Which layers which chunk (virtual stage) holds. Chunks are in model order; the caller
 * owns the array. */
#ifndef PL_SIM_SPLIT_H
#define PL_SIM_SPLIT_H

#include "sim/work.h"

struct pl_chunk {
    int first, n;         /* layers first .. first + n - 1 */
    bool embedding, head; /* the head goes with the final norm and the loss */
    int mtp;              /* multi-token prediction modules */
};

/* Fill chunk[C] from text:
 *   "uniform"   sizes differ by at most one, the larger ones first (pl_model_split)
 *   "balanced"  the largest sum of costs is least, and among those cuts the sum of
 *               squares; cost has layers + 2 entries: embedding, layers, head, none
 *               negative. Every chunk has a layer, but the first and last may have only
 *               the embedding and the head.
 *   otherwise   a Megatron layout: E embedding, t layer, m MTP module, L head, |
 * between chunks, x*n and (x)*n repeat, commas and blanks mean nothing. Cost of
 * balanced: O(C layers log layers + layers^2). Errors: PL_ECONFIG naming model.split.
 */
int pl_split_make(const char *text, const struct pl_model *model, int C,
                  const double *cost, struct pl_chunk *chunk);

/* The same cut as lengths of parts: n costs into C contiguous parts of at least one
 * entry; first[C+1]. *largest, when not NULL, gets the largest sum. Needs C <= n. */
void pl_split_balance(const double *cost, int n, int C, int *first, double *largest);

/* Training flops of embedding, layers, head (forward, backward, recomputation): costs
 * for "balanced" where nothing better is known; cost has layers + 2 entries. */
int pl_split_flops(const struct pl_model *model, const struct pl_parallel *parallel,
                   const struct pl_microbatch *batch, double *cost);

/* Sum of the blocks of a chunk; the lists stay empty. A tied head on the embedding's
 * chunk has no weights of its own; mtp: modules of the whole model, whose tokens pass
 * the head too. */
int pl_work_chunk(const struct pl_model *model, const struct pl_parallel *parallel,
                  const struct pl_microbatch *batch, const char *optimizer,
                  const struct pl_chunk *chunk, int mtp, struct pl_work *out);

#endif
