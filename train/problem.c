#include "train/problem.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const struct pl_problem_type *const types[] = {
    &pl_problem_model,  &pl_problem_quadratic, &pl_problem_logistic,
    &pl_problem_factor, &pl_problem_mlp,       NULL};

const char *const *pl_problem_names(void)
{
    static const char *names[sizeof types / sizeof *types];
    for (int i = 0; types[i]; i++) names[i] = types[i]->name;
    return names;
}

const struct pl_problem_type *pl_problem_find(const char *name)
{
    for (int i = 0; types[i]; i++)
        if (!strcmp(types[i]->name, name)) return types[i];
    return NULL;
}

size_t pl_problem_descended(const struct pl_problem *p, int stage)
{
    size_t floats = p->stage_floats[stage];
    for (int i = p->first_param[stage + 1] - 1; i >= p->first_param[stage]; i--) {
        if (p->params[i].kind != PL_PARAM_BALANCE) break;
        floats = p->params[i].offset;
    }
    return floats;
}

void pl_problem_free(struct pl_problem *p)
{
    if (!p) return;
    p->type->free(p);
    free(p->params);
    free(p->first_param);
    free(p->stage_floats);
    free(p->routers.load);
    free(p);
}

size_t pl_problem_bytes(const struct pl_problem *p)
{
    return p->type->bytes(p);
}

struct pl_problem_known pl_problem_known(const struct pl_problem *p)
{
    if (p->type->known) return p->type->known(p);
    return (struct pl_problem_known){NAN, NAN, NAN};
}
