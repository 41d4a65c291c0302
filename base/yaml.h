/* The only door to libyaml: one YAML document as a tree of plain nodes. Aliases are
 * resolved (the node carries the place of the alias and shares the anchor's children).
 * Limits: 16 MiB, 100000 nodes, 32 levels. */
#ifndef PL_BASE_YAML_H
#define PL_BASE_YAML_H

#include <stdbool.h>
#include <stddef.h>

enum pl_yaml_kind { PL_YAML_TEXT, PL_YAML_LIST, PL_YAML_MAP };

struct pl_yaml {
    enum pl_yaml_kind kind;
    size_t line, column; /* from 1 */
    char *text;          /* TEXT; length bytes and a NUL */
    size_t length;
    bool plain;             /* TEXT without quotes */
    struct pl_yaml **items; /* LIST: entries; MAP: key, value, key, value ... */
    int n;                  /* length of items */
    bool alias;             /* text and items belong to the anchor */
};

struct pl_yaml_file {
    struct pl_yaml *root; /* NULL for an empty file */
    struct pl_yaml **nodes;
    int n;
};

/* Read path; *out is the caller's to free. Errors: PL_EINPUT (cannot read, too large),
 * PL_ECONFIG "file:line:column: what libyaml says". */
int pl_yaml_read(const char *path, struct pl_yaml_file **out);
/* Same for a text in memory; name starts the messages. */
int pl_yaml_parse(const char *text, const char *name, struct pl_yaml_file **out);
void pl_yaml_free(struct pl_yaml_file *file);

#endif
