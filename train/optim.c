/* The registry of optimizers. */
#include "train/optim.h"

#include <string.h>

#define OPTIMS(X) X(sgd) X(adamw) X(muon)

#define X(name) extern const struct pl_optim_type pl_optim_##name;
OPTIMS(X)
#undef X

#define X(name) &pl_optim_##name,
const struct pl_optim_type *const pl_optim_types[] = {OPTIMS(X) NULL};
#undef X

const char *const *pl_optim_names(void)
{
#define X(name) #name,
    static const char *const names[] = {OPTIMS(X) NULL};
#undef X
    return names;
}

const struct pl_optim_type *pl_optim_find(const char *name)
{
    for (int i = 0; pl_optim_types[i]; i++)
        if (!strcmp(pl_optim_types[i]->name, name)) return pl_optim_types[i];
    return NULL;
}

double pl_optim_beta(const struct pl_optim *o)
{
    return o->type->beta1_is_momentum ? o->beta1 : o->momentum;
}
