/* The registry of delay correctors. */
#include "train/correct.h"

#include <stddef.h>
#include <string.h>

#define CORRECTORS(X) X(none) X(nesterov) X(feedback) X(prediction) X(custom)

#define X(name) extern const struct pl_corrector_type pl_corrector_##name;
CORRECTORS(X)
#undef X

#define X(name) &pl_corrector_##name,
const struct pl_corrector_type *const pl_corrector_types[] = {CORRECTORS(X) NULL};
#undef X

const char *const *pl_corrector_names(void)
{
#define X(name) #name,
    static const char *const names[] = {CORRECTORS(X) NULL};
#undef X
    return names;
}

const struct pl_corrector_type *pl_corrector_find(const char *name)
{
    for (int i = 0; pl_corrector_types[i]; i++)
        if (!strcmp(pl_corrector_types[i]->name, name)) return pl_corrector_types[i];
    return NULL;
}
