/* The registry of optimizers and the names of their switches. */
#include "train/optim.h"

#include <string.h>

/* name of the object, name that users write */
#define OPTIMS(X)                   \
    X(sgd, "sgd")                   \
    X(adamw, "adamw")               \
    X(nadam, "nadam")               \
    X(nadamw, "nadamw")             \
    X(adan, "adan")                 \
    X(lion, "lion")                 \
    X(signum, "signum")             \
    X(mars, "mars")                 \
    X(mars_lion, "mars-lion")       \
    X(mars_shampoo, "mars-shampoo") \
    X(muon, "muon")                 \
    X(normuon, "normuon")           \
    X(scion, "scion")               \
    X(soap, "soap")                 \
    X(shampoo, "shampoo")           \
    X(basis_rotation, "basis-rotation")

#define X(object, name) extern const struct pl_optim_type pl_optim_##object;
OPTIMS(X)
#undef X

#define X(object, name) &pl_optim_##object,
const struct pl_optim_type *const pl_optim_types[] = {OPTIMS(X) NULL};
#undef X

const char *const *pl_optim_names(void)
{
#define X(object, name) name,
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
    switch (o->type->first_moment) {
    case PL_BETA1:
        return o->beta1;
    case PL_BETA2:
        return o->beta2;
    case PL_MOMENTUM:
        break;
    }
    return o->momentum;
}

const char *const pl_tensor_sets[] = {"auto", "hidden", "matrices", "all", NULL};
const char *const pl_decay_spared[] = {"auto", "none", "vectors", "tables", NULL};
const char *const pl_decay_forms[] = {"auto",     "before",  "after", "proximal",
                                      "cautious", "coupled", NULL};
const char *const pl_decay_factors[] = {"auto",        "lr",       "lr2", "corrected",
                                        "independent", "constant", NULL};
const char *const pl_eps_forms[] = {"auto", "corrected", "uncorrected", "under", NULL};
const char *const pl_rotation_sources[] = {"auto", "second", "first", NULL};
const char *const pl_nadam_forms[] = {"auto", "torch", "algoperf", "optax", NULL};
const char *const pl_shape_scales[] = {"auto",  "jordan", "moonlight",
                                       "ratio", "none",   NULL};
const char *const pl_lmos[] = {"auto",    "spectral", "sign", "colnorm",
                               "rownorm", "token",    "rms",  NULL};
