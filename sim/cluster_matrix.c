/* The matrix of `nvidia-smi topo -m`: a header of devices, then a row for each, then
 * affinities and a legend, which are not links. Cells: X itself, NV# bonded NVLinks,
 * PIX one PCIe bridge, PXB several, PHB over the host bridge, NODE between host bridges
 * of a NUMA node, SYS between NUMA nodes (SOC in old versions). */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/mem.h"
#include "sim/cluster_internal.h"

enum { MAX_DEVICES = 128, MAX_WORD = 32 };

static const struct {
    const char *name;
    enum pl_path path;
} path_names[] = {
    {"X", PL_PATH_SELF},  {"PIX", PL_PATH_PIX},   {"PXB", PL_PATH_PXB},
    {"PHB", PL_PATH_PHB}, {"NODE", PL_PATH_NODE}, {"SYS", PL_PATH_SYS},
    {"SOC", PL_PATH_SYS},
};
enum { PATHS = sizeof path_names / sizeof *path_names };

struct cell {
    int nvlinks;
    enum pl_path path;
};

struct matrix {
    const char *file;
    int line; /* being read, from 1 */
    int n, n_gpus;
    char name[MAX_DEVICES][MAX_WORD];
    int row_line[MAX_DEVICES]; /* 0: not seen yet */
    struct cell cell[MAX_DEVICES][MAX_DEVICES];
    char affinity[MAX_DEVICES][64]; /* CPUs of the device; "" when not given */
    bool has_affinity;
};

/* Next word of a line without terminal escapes; false at its end. */
static bool next_word(const char **at, char *word, size_t size)
{
    const char *p = *at;
    size_t n = 0;
    for (;; p++) {
        if (*p == '\033') {
            while (*p && !isalpha((unsigned char)*p)) p++;
            if (!*p) break;
        } else if (!isspace((unsigned char)*p)) {
            break;
        }
    }
    for (; *p && !isspace((unsigned char)*p) && *p != '\033'; p++)
        if (n + 1 < size) word[n++] = *p;
    word[n] = '\0';
    *at = p;
    return n > 0;
}

static bool is_gpu(const char *word)
{
    return !strncmp(word, "GPU", 3) && isdigit((unsigned char)word[3]);
}

/* Devices up to the column "CPU Affinity". */
static int read_header(struct matrix *m, const char *line)
{
    char word[MAX_WORD];
    while (next_word(&line, word, sizeof word)) {
        if (!strcmp(word, "CPU") || !strcmp(word, "NUMA")) {
            m->has_affinity = !strcmp(word, "CPU");
            break;
        }
        for (int k = 0; k < PATHS; k++)
            if (!strcmp(word, path_names[k].name))
                return pl_fail(PL_ECONFIG,
                               "%s:%d: '%s', expected a device: the line of device "
                               "names is missing",
                               m->file, m->line, word);
        if (m->n == MAX_DEVICES)
            return pl_fail(PL_ECONFIG, "%s:%d: more than %d devices", m->file, m->line,
                           MAX_DEVICES);
        if (is_gpu(word) && m->n_gpus < m->n)
            return pl_fail(PL_ECONFIG, "%s:%d: %s after %s, expected GPUs first",
                           m->file, m->line, word, m->name[m->n - 1]);
        m->n_gpus += is_gpu(word);
        for (int i = 0; i < m->n; i++)
            if (!strcmp(m->name[i], word))
                return pl_fail(PL_ECONFIG, "%s:%d: column %s is there twice", m->file,
                               m->line, word);
        memcpy(m->name[m->n++], word, sizeof word);
    }
    return 0;
}

static int fail_ragged(const struct matrix *m, int row, int cells)
{
    return pl_fail(PL_ECONFIG, "%s:%d: row %s has %d links, expected %d", m->file,
                   m->line, m->name[row], cells, m->n);
}

static int read_cell(const struct matrix *m, int row, int column, const char *word,
                     struct cell *cell)
{
    const char *names[PATHS + 2] = {"NV#"};
    char where[300], *end;
    for (int k = 0; k < PATHS; k++) {
        names[k + 1] = path_names[k].name;
        if (strcmp(word, path_names[k].name)) continue;
        if ((row == column) != (path_names[k].path == PL_PATH_SELF))
            return pl_fail(PL_ECONFIG, "%s:%d: %s to %s is '%s', expected %s", m->file,
                           m->line, m->name[row], m->name[column], word,
                           row == column ? "X" : "a link");
        *cell = (struct cell){0, path_names[k].path};
        return 0;
    }
    if (!strncmp(word, "NV", 2) && isdigit((unsigned char)word[2])) {
        long links = strtol(word + 2, &end, 10);
        if (!*end && links > 0 && links <= 1000 && row != column) {
            *cell = (struct cell){(int)links, PL_PATH_SYS};
            return 0;
        }
    }
    if (isdigit((unsigned char)*word) || !strcmp(word, "N/A"))
        return fail_ragged(m, row, column);
    snprintf(where, sizeof where, "%.200s:%d: %s to %s", m->file, m->line, m->name[row],
             m->name[column]);
    return pl_fail_unknown(PL_ECONFIG, where, "link", word, names);
}

static int read_row(struct matrix *m, int row, const char *line)
{
    char word[64];
    if (m->row_line[row])
        return pl_fail(PL_ECONFIG, "%s:%d: row %s again, first in line %d", m->file,
                       m->line, m->name[row], m->row_line[row]);
    m->row_line[row] = m->line;
    for (int column = 0; column < m->n; column++) {
        if (!next_word(&line, word, sizeof word)) return fail_ragged(m, row, column);
        int code = read_cell(m, row, column, word, &m->cell[row][column]);
        if (code) return code;
    }
    if (m->has_affinity && next_word(&line, word, sizeof word)) {
        struct cell extra;
        if (isalpha((unsigned char)*word) && strcmp(word, "N/A") &&
            !read_cell(m, row, row ? 0 : 1, word, &extra))
            return fail_ragged(m, row, m->n + 1);
        memcpy(m->affinity[row], word, sizeof word);
    }
    return 0;
}

static int read_line(struct matrix *m, const char *line)
{
    char word[MAX_WORD];
    const char *start = line;
    if (!next_word(&line, word, sizeof word)) return 0;
    if (!m->n) return is_gpu(word) ? read_header(m, start) : 0;
    for (int i = 0; i < m->n; i++)
        if (!strcmp(m->name[i], word)) return read_row(m, i, line);
    return 0; /* legend and other text */
}

/* Every GPU has its row, and both halves agree. */
static int check_whole(const struct matrix *m)
{
    for (int i = 0; i < m->n_gpus; i++)
        if (!m->row_line[i])
            return pl_fail(PL_ECONFIG, "%s:%d: the file ends without a row for %s",
                           m->file, m->line, m->name[i]);
    for (int i = 0; i < m->n; i++)
        for (int j = 0; j < i; j++) {
            const struct cell *a = &m->cell[i][j], *b = &m->cell[j][i];
            if (!m->row_line[i] || !m->row_line[j]) continue; /* NICs without rows */
            if (a->nvlinks == b->nvlinks && a->path == b->path) continue;
            return pl_fail(PL_ECONFIG,
                           "%s:%d: %s to %s differs from %s to %s in line %d", m->file,
                           m->row_line[i], m->name[i], m->name[j], m->name[j],
                           m->name[i], m->row_line[j]);
        }
    return 0;
}

/* GPUs of one socket name the same CPUs; without that, they are joined by less than
 * SYS.
 */
static bool same_socket(const struct matrix *m, int i, int j)
{
    if (*m->affinity[i] && strcmp(m->affinity[i], "N/A"))
        return !strcmp(m->affinity[i], m->affinity[j]);
    return m->cell[i][j].path != PL_PATH_SYS;
}

static struct pl_fabric *to_fabric(const struct matrix *m)
{
    int n = m->n_gpus, nics = m->n - n, sockets = 0;
    struct pl_fabric *f = pl_fabric_new(n, nics);
    enum pl_path *near = PL_NEW(n * nics, enum pl_path);
    for (int i = 0; i < n; i++) {
        int j = 0;
        while (j < i && !same_socket(m, i, j)) j++;
        f->socket[i] = j < i ? f->socket[j] : sockets++;
        for (j = 0; j < n; j++) {
            f->nvlinks[i * n + j] = m->cell[i][j].nvlinks;
            f->path[i * n + j] = m->cell[i][j].path;
        }
        for (j = 0; j < nics; j++) near[i * nics + j] = m->cell[i][n + j].path;
    }
    pl_fabric_assign_nics(f, near);
    free(near);
    return f;
}

int pl_cluster_import_matrix(const char *path, char *text, struct pl_cluster *cluster)
{
    struct matrix *m = PL_NEW(1, struct matrix);
    int code = 0;
    m->file = path;
    for (char *line = text; line && !code;) {
        char *end = strchr(line, '\n');
        if (end) *end = '\0';
        m->line++;
        code = read_line(m, line);
        line = end ? end + 1 : NULL;
    }
    if (!code) code = check_whole(m);
    if (!code) {
        struct pl_fabric *f = to_fabric(m);
        code = pl_fabric_install(f, &(struct pl_imported){0}, path, cluster);
        if (code) pl_fabric_free(f);
    }
    free(m);
    return code;
}
