/* Presets inside the program: the files of data/models and data/clusters as texts, put
 * there when it is built (tools/embed.awk, data/local.mk). All strings are static. */
#ifndef PL_BASE_BUILTIN_H
#define PL_BASE_BUILTIN_H

/* YAML text of a preset; kind is the folder, "models" or "clusters". NULL: unknown. */
const char *pl_builtin_text(const char *kind, const char *name);
/* Names of a kind in the order of data/local.mk, ending with NULL; an unknown kind has
 * none. */
const char *const *pl_builtin_names(const char *kind);

/* The made table, ending with kind == NULL; names and texts run in parallel. */
struct pl_builtin_kind {
    const char *kind;
    const char *const *names, *const *texts;
};
extern const struct pl_builtin_kind pl_builtin_kinds[];

#endif
