#include "train/problem.h"

#include <stdlib.h>

void pl_problem_free(struct pl_problem *p)
{
    if (!p) return;
    p->type->free(p);
    free(p->params);
    free(p->first_param);
    free(p->stage_floats);
    free(p);
}

size_t pl_problem_bytes(const struct pl_problem *p)
{
    return p->type->bytes(p);
}
