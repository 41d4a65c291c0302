/* The feed-forward part of a block, without norm and residual: SwiGLU
 *   y = Wdown (silu(Wgate x) * Wup x)
 * (Shazeer, arXiv 2002.05202) or, plain, y = Wdown gelu(Wup x); with biases where the
 * model has them all. Wgate and Wup lie one after another: one product serves both. */
#ifndef PL_TRAIN_LAYERS_FFN_H
#define PL_TRAIN_LAYERS_FFN_H

#include "train/net.h"

/* Floats of a row in front of the activation: gate and up, or up. */
int pl_ffn_inner(const struct pl_model *model, int width);
/* Declares PREFIX.{gate,up,down}_proj.{weight,bias}. */
struct pl_ffn pl_ffn_declare(struct pl_net *net, struct pl_layer *l, int width,
                             const char *prefix);

/* y = ffn(x) + addend for some rows, those of experts in their order (f->groups);
 * addend: y, an array apart from it or NULL, NULL for experts. Saved for the backward:
 * a (rows, inner), h (rows, width). */
int pl_ffn(const struct pl_net *net, const struct pl_pass *pass, const struct pl_ffn *f,
           int rows, const float *x, float *a, float *h, const float *addend, float *y);
/* dx (rows, hidden) = what dy says of x, and the gradients; dh, da: scratch. */
int pl_ffn_back(const struct pl_net *net, const struct pl_pass *pass,
                const struct pl_ffn *f, int rows, const float *x, const float *a,
                const float *h, const float *dy, float *dh, float *da, float *dx);

#endif
