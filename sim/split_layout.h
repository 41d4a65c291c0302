/* Megatron layout strings (sim/split.h says what they are). */
#ifndef PL_SIM_SPLIT_LAYOUT_H
#define PL_SIM_SPLIT_LAYOUT_H

#include "sim/split.h"

/* Errors: PL_ECONFIG naming model.split and the place. */
int pl_split_layout(const char *text, const struct pl_model *model, int C,
                    struct pl_chunk *chunk);

#endif
