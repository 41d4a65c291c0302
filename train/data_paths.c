#include "train/data_source.h"

#include <errno.h>
#include <glob.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/err.h"
#include "base/mem.h"

struct paths {
    char **list;
    int n;
};

static void add(struct paths *p, const char *path)
{
    p->list = pl_grow(p->list, (size_t)p->n + 1, sizeof *p->list);
    p->list[p->n++] = pl_strdup(path);
}

/* What a pattern finds; a word that is none stands for itself. */
static int add_word(struct paths *p, const char *word)
{
    struct stat st;
    if (!strpbrk(word, "*?[") || !stat(word, &st)) {
        add(p, word);
        return 0;
    }
    glob_t found;
    int rc = glob(word, GLOB_ERR, NULL, &found);
    if (rc == GLOB_NOMATCH) return pl_fail(PL_EINPUT, "%s: no such file", word);
    if (rc)
        return pl_fail(PL_EINPUT, "%s: cannot read the folder: %s", word,
                       strerror(errno));
    for (size_t i = 0; i < found.gl_pathc; i++) add(p, found.gl_pathv[i]);
    globfree(&found);
    return 0;
}

static int by_text(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static int check_unique(const struct paths *p)
{
    const char **sorted = PL_NEW(p->n, const char *);
    for (int i = 0; i < p->n; i++) sorted[i] = p->list[i];
    qsort(sorted, (size_t)p->n, sizeof *sorted, by_text);
    int rc = 0;
    for (int i = 1; i < p->n && !rc; i++)
        if (!strcmp(sorted[i - 1], sorted[i]))
            rc = pl_fail(PL_ECONFIG, "%s: listed twice, expected each file once",
                         sorted[i]);
    free(sorted);
    return rc;
}

int pl_data_paths(const char *names, char ***paths, int *n)
{
    struct paths p = {0};
    struct stat st;
    int rc = 0;
    if (!stat(names, &st)) {
        add(&p, names); /* one file, whatever characters its name has */
    } else {
        char *text = pl_strdup(names), *save = NULL;
        for (char *word = strtok_r(text, " \t\n", &save); word && !rc;
             word = strtok_r(NULL, " \t\n", &save))
            rc = add_word(&p, word);
        free(text);
    }
    if (!rc && p.n == 0) rc = pl_fail(PL_EINPUT, "'%s' names no file", names);
    if (!rc) rc = check_unique(&p);
    if (rc) {
        pl_data_paths_free(p.list, p.n);
        return rc;
    }
    *paths = p.list;
    *n = p.n;
    return 0;
}

void pl_data_paths_free(char **paths, int n)
{
    for (int i = 0; i < n; i++) free(paths[i]);
    free(paths);
}
