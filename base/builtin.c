#include "base/builtin.h"

#include <stddef.h>
#include <string.h>

static const struct pl_builtin_kind *find(const char *kind)
{
    const struct pl_builtin_kind *k = pl_builtin_kinds;
    while (k->kind && strcmp(k->kind, kind)) k++;
    return k->kind ? k : NULL;
}

const char *pl_builtin_text(const char *kind, const char *name)
{
    const struct pl_builtin_kind *k = find(kind);
    for (int i = 0; k && k->names[i]; i++)
        if (!strcmp(k->names[i], name)) return k->texts[i];
    return NULL;
}

const char *const *pl_builtin_names(const char *kind)
{
    static const char *const none[] = {NULL};
    const struct pl_builtin_kind *k = find(kind);
    return k ? k->names : none;
}
