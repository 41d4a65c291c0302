/* Presets: values that a named text supplies for the keys of a group that nothing else
 * gives. */
#include "base/config_types.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/builtin.h"
#include "base/err.h"
#include "base/file.h"
#include "base/mem.h"

enum { MAX_IMPORTS = 16, MAX_BYTES = 1 << 20 };

static struct {
    const char *group, *suffix;
    pl_config_import *import;
} imports[MAX_IMPORTS];
static int n_imports;

void pl_config_register_import(const char *group, const char *suffix,
                               pl_config_import *import)
{
    for (int i = 0; i < n_imports; i++)
        if (!strcmp(imports[i].group, group) && !strcmp(imports[i].suffix, suffix))
            return;
    assert(n_imports < MAX_IMPORTS);
    imports[n_imports].group = group;
    imports[n_imports].suffix = suffix;
    imports[n_imports++].import = import;
}

/* Length of the group's name when key is one of "GROUP." */
static size_t group_length(const char *key)
{
    const char *dot = strchr(key, '.');
    return dot ? (size_t)(dot - key) : 0;
}

/* Number of the key GROUP.preset of the group that key belongs to, or -1. */
static int preset_of(int key)
{
    size_t n = group_length(pl_keys[key].name);
    if (!n || pl_key_is_preset(key)) return -1;
    char *name = pl_printf("%.*s.preset", (int)n, pl_keys[key].name);
    int k = pl_key_find(name);
    free(name);
    return k;
}

bool pl_config_arms_preset(const struct pl_config *config, int key)
{
    int preset = preset_of(key);
    if (preset < 0 || config->values[preset].pinned) return false;
    for (int a = 0; a < config->n_axes; a++)
        for (int l = 0; l < config->axes[a].n; l++)
            for (int o = 0; o < config->axes[a].labels[l].n; o++)
                if (config->axes[a].labels[l].overrides[o].key == preset) return true;
    for (int a = 0; a < config->n_swept; a++)
        if (config->swept[a].labels[0].overrides[0].key == preset) return true;
    return false;
}

static pl_config_import *import_of(const char *group, const char *name)
{
    for (int i = 0; i < n_imports; i++)
        if (!strcmp(imports[i].group, group) && pl_path_ends(name, imports[i].suffix))
            return imports[i].import;
    return NULL;
}

static bool is_path(const char *name)
{
    return strchr(name, '/') || pl_path_ends(name, ".yaml") ||
           pl_path_ends(name, ".yml");
}

static int read_yaml(const char *path, char **text)
{
    size_t n;
    int rc = pl_file_read(path, MAX_BYTES, text, &n);
    if (rc || strlen(*text) == n) return rc;
    free(*text);
    return pl_fail(PL_ECONFIG, "%s: a NUL character, expected YAML", path);
}

/* What a name of a file stands for: a folder for the config.json in it, where the group
 * has an import of such files. Caller frees. */
static char *file_of(const char *group, const char *name)
{
    struct stat st;
    char *kind = pl_printf("%ss", group), *inside = pl_printf("%s/config.json", name);
    bool builtin = pl_builtin_text(kind, name) != NULL;
    free(kind);
    if (!builtin && import_of(group, inside) && !stat(name, &st) && S_ISDIR(st.st_mode))
        return inside;
    free(inside);
    return pl_strdup(name);
}

/* The text that name stands for: *text is the caller's to free. *made: not the text of
 * a file. */
static int find_text(const char *group, const char *name, const char *where,
                     char **text, bool *made)
{
    char *kind = pl_printf("%ss", group), *what = pl_printf("%s preset", group);
    const char *builtin = pl_builtin_text(kind, name);
    pl_config_import *import = import_of(group, name);
    int rc = 0;
    *made = builtin || import;
    if (builtin)
        *text = pl_strdup(builtin);
    else if (import)
        rc = import(name, text);
    else if (is_path(name))
        rc = read_yaml(name, text);
    else
        rc = pl_fail_unknown(PL_ECONFIG, where ? where : "default", what, name,
                             pl_builtin_names(kind));
    free(what);
    free(kind);
    return rc;
}

static int apply(struct pl_config *config, const char *group,
                 const struct pl_value *chosen)
{
    char *text, *name = file_of(group, chosen->text);
    bool made;
    int rc = find_text(group, name, chosen->where, &text, &made);
    if (!rc) {
        /* the name of a file, or "model preset 'llama-3-8b'" */
        char *origin = made && !import_of(group, name)
                           ? pl_printf("%s preset '%s'", group, name)
                           : pl_strdup(name);
        rc = pl_config_preset(config, text, origin, group, made);
        free(origin);
        free(text);
    }
    free(name);
    return rc;
}

int pl_config_resolve(struct pl_config *config)
{
    for (int k = 0; pl_keys[k].name; k++)
        if (config->values[k].preset) {
            pl_value_clear(&config->values[k]);
            pl_value_default(k, &config->values[k]);
        }
    for (int k = 0; pl_keys[k].name; k++) {
        if (!pl_key_is_preset(k) || !*config->values[k].text) continue;
        char *group =
            pl_printf("%.*s", (int)group_length(pl_keys[k].name), pl_keys[k].name);
        int rc = apply(config, group, &config->values[k]);
        free(group);
        if (rc) return rc;
    }
    return 0;
}
