/* What the rules with orthogonalised updates share: muon, normuon, mars-shampoo, scion.
 */
#ifndef PL_TRAIN_ORTHOGONAL_H
#define PL_TRAIN_ORTHOGONAL_H

#include "train/optim.h"

double pl_shape_scale(enum pl_shape_scale scale, const struct pl_param *p);

/* The matrix that a tensor is orthogonalised in: itself, or with fused_qkv and q_proj
 * the rows of q_proj, k_proj and v_proj, which are neighbours in the array and in
 * memory; rows 0: a k_proj or v_proj that its q_proj has taken. */
struct pl_param pl_orthogonal_whole(const struct pl_optim *o, const struct pl_param *p);

#endif
