/* The registry of delay correctors. */
#include "train/correct.h"

#include <limits.h>
#include <math.h>
#include <stddef.h>
#include <string.h>

#define CORRECTORS(X)                                                                  \
    X(none)                                                                            \
    X(nesterov)                                                                        \
    X(feedback)                                                                        \
    X(prediction) X(custom) X(spike) X(spectrain) X(xpipe) X(pipeoptim) X(discrepancy) \
        X(nag) X(dcasgd) X(dcasgd_adaptive) X(gapaware)

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

bool pl_corrector_reads(const struct pl_corrector_type *type, const char *name)
{
    if (!strcmp(name, "lambda")) return type->lambda > 0;
    if (!strcmp(name, "c")) return type->look && (!type->fixed_c || type->momentum);
    if (!strcmp(name, "stage_c")) return type->look && !type->fixed_c;
    return type->look || !strcmp(name, "name") || !strcmp(name, "land");
}

struct pl_corrector pl_corrector_make(const char *name, double c,
                                      enum pl_corrector_start start)
{
    return (struct pl_corrector){.type = pl_corrector_find(name),
                                 .given = c,
                                 .start = start,
                                 .smooth = NAN,
                                 .lambda = NAN};
}

struct pl_look pl_corrector_look(const struct pl_corrector *self,
                                 const struct pl_look_args *args)
{
    struct pl_look look = {0, NAN, 0};
    if (!self->type->look) return (struct pl_look){0, 0, 0};
    self->type->look(self, args, &look);
    if (self->stage_c && !self->type->fixed_c)
        look.c = self->stage_c[args->stage];
    else if (!isnan(self->given) && !self->type->fixed_c)
        look.c = self->given;
    if (isnan(look.c_back)) look.c_back = look.c;
    if (!isnan(self->smooth)) look.smooth = self->smooth;
    return look;
}

double pl_corrector_lambda(const struct pl_corrector *self)
{
    return isnan(self->lambda) ? self->type->lambda : self->lambda;
}

int pl_ratio_each(const struct pl_device *dev, size_t n,
                  const struct pl_ratio_args *args, const float *x, const float *v,
                  float *y)
{
    int rc = 0;
    for (size_t at = 0, k; at < n && !rc; at += k) {
        k = n - at < INT_MAX ? n - at : INT_MAX;
        rc = dev->ratio(1, (int)k, args, x + at, v + at, y + at);
    }
    return rc;
}
