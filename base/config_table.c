/* Look-ups in the key table, and the names that the families register. */
#include "base/config_types.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/mem.h"

static const char *const *registered[PL_MAX_KEYS];
static const char *const top_level[] = {"seeds", "axes", "sweep", "title"};

int pl_key_find(const char *name)
{
    for (int k = 0; pl_keys[k].name; k++)
        if (!strcmp(pl_keys[k].name, name)) return k;
    return -1;
}

bool pl_key_is_group(const char *name)
{
    size_t n = strlen(name);
    for (const struct pl_key *k = pl_keys; k->name; k++)
        if (!strncmp(k->name, name, n) && k->name[n] == '.') return true;
    return false;
}

bool pl_key_is_preset(int key)
{
    const char *dot = strchr(pl_keys[key].name, '.');
    return dot && !strcmp(dot, ".preset");
}

/* The key whose last part is name: `lr` is optimizer.lr. */
static const char *find_last_part(const char *name)
{
    for (const struct pl_key *k = pl_keys; k->name; k++) {
        const char *dot = strrchr(k->name, '.');
        if (dot && !strcmp(dot + 1, name)) return k->name;
    }
    return NULL;
}

/* The key that name is with its dot left out: `trainseq` is train.seq. */
static const char *find_without_dot(const char *name)
{
    for (const struct pl_key *k = pl_keys; k->name; k++) {
        const char *dot = strchr(k->name, '.');
        size_t n = dot ? (size_t)(dot - k->name) : 0;
        if (dot && !strncmp(k->name, name, n) && !strcmp(dot + 1, name + n))
            return k->name;
    }
    return NULL;
}

/* Candidates for an unknown name: groups and top-level keys for a single word, the keys
 * of its group for group.word, all keys otherwise. Texts are the caller's to free. */
static int collect(const char *name, bool group, char **list)
{
    int n = 0;
    const char *dot = strchr(name, '.');
    char *prefix = dot ? pl_printf("%.*s", (int)(dot - name), name) : NULL;
    bool known = prefix && pl_key_is_group(prefix);
    for (int i = 0; i < 4 && !dot; i++) list[n++] = pl_strdup(top_level[i]);
    for (const struct pl_key *k = pl_keys; k->name; k++) {
        const char *end = strchr(k->name, '.');
        if (!dot && end) {
            char *word = pl_printf("%.*s", (int)(end - k->name), k->name);
            if (n && !strcmp(list[n - 1], word))
                free(word);
            else
                list[n++] = word;
        } else if (dot ? !known || !strncmp(k->name, name, (size_t)(dot - name) + 1)
                       : !group) {
            list[n++] = pl_strdup(k->name);
        }
    }
    free(prefix);
    list[n] = NULL;
    return n;
}

int pl_key_fail_unknown(const char *name, bool group, const char *where)
{
    char *list[PL_MAX_KEYS + 5];
    if (!strcmp(name, "<<"))
        return pl_fail(PL_ECONFIG,
                       "%s: merge keys (<<) are not supported, write the keys", where);
    const char *full = group ? NULL : find_last_part(name);
    if (!full && !group && !strchr(name, '.')) full = find_without_dot(name);
    if (full)
        return pl_fail(PL_ECONFIG, "%s: unknown key '%s', did you mean '%s'?", where,
                       name, full);
    int n = collect(name, group, list);
    int rc = pl_fail_unknown(PL_ECONFIG, where, "key", name, (const char *const *)list);
    for (int i = 0; i < n; i++) free(list[i]);
    return rc;
}

void pl_config_register(const char *key, const char *const *names)
{
    int k = pl_key_find(key);
    assert(k >= 0 && k < PL_MAX_KEYS && pl_keys[k].type == PL_KEY_NAME);
    registered[k] = names;
}

const char *const *pl_config_choices(const char *key)
{
    int k = pl_key_find(key);
    assert(k >= 0 && k < PL_MAX_KEYS);
    return pl_keys[k].choices ? pl_keys[k].choices : registered[k];
}
