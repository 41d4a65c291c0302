/* Reading a YAML tree into a configuration, for base/config_read*.c only. */
#ifndef PL_BASE_CONFIG_READ_H
#define PL_BASE_CONFIG_READ_H

#include "base/config_types.h"
#include "base/yaml.h"

struct pl_reader {
    struct pl_config *config;
    const char *path;
    struct pl_label *label; /* overrides go here; NULL: the configuration itself */
    const char *group;      /* a preset: keys of this group only; NULL: a file */
    bool made;              /* the text is in no file: its lines mean nothing */
    bool sweep;             /* inside `sweep`: values are lists of values */
    const struct pl_yaml
        *seen[PL_MAX_KEYS]; /* what set the key in this scope, or NULL */
};

/* "FILE:LINE:COLUMN", or the path alone when the text was made; caller frees. */
char *pl_read_place(const struct pl_reader *in, const struct pl_yaml *node);
/* PL_ECONFIG "PLACE: MESSAGE 'name'", name may be NULL. */
int pl_read_fail(const struct pl_reader *in, const struct pl_yaml *node,
                 const char *message, const char *name);
bool pl_read_is_null(const struct pl_yaml *node);

/* Check that node is a usable scalar: text without NUL and not null. */
int pl_read_scalar(const struct pl_reader *in, const struct pl_yaml *node,
                   const char *what);
/* Scalars of a list, or the one scalar; texts is the caller's to free, entries
 * borrowed. */
int pl_read_list(const struct pl_reader *in, const struct pl_yaml *node,
                 const char *what, const char ***texts, int *n);
/* The key at items[i] of map, after a check that no earlier one is the same. */
int pl_read_key(const struct pl_reader *in, const struct pl_yaml *map, int i,
                const char **name);
/* One value of a key of the table. */
int pl_read_node(struct pl_reader *in, int key, const struct pl_yaml *node,
                 struct pl_value *value);
/* All pairs of a map; prefix "" or "group" goes before their names. A group has no
 * groups inside unless the table says so, which bounds the recursion. */
int pl_read_map(struct pl_reader *in, const struct pl_yaml *map, const char *prefix);

/* title, seeds, axes and sweep, which belong to the file, not to an arm; *found: is
 * name one of them? (config_read_top.c) */
int pl_read_top(struct pl_reader *in, const char *name, const struct pl_yaml *key_node,
                const struct pl_yaml *node, bool *found);
/* The values that one key of `sweep` takes: a list, or one value. */
int pl_read_swept(struct pl_reader *in, int key, const struct pl_yaml *node);

#endif
