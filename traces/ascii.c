/* Text Gantt. A column is a time bin; the op covering most of it is shown, or idle when
 * idle time covers more. A device with several chunks has a row for each: an op stands
 * in the row of its chunk, the others are blank meanwhile. Bins divide the ops exactly
 * where the width allows. A run longer than the width is folded into panels, at most
 * MAX_PANELS of them. */
#include "traces/figure.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "traces/axis.h"
#include "traces/ops.h"

enum { MAX_PANELS = 4, MAX_OP_COLUMNS = 4 };

struct grid {
    int rows, columns;            /* columns of all panels together */
    int per_panel, gutter, label; /* gutter: columns before the cells; label: device */
    int chunk_rows;               /* most on one device */
    int *first;           /* [devices+1] rows of device d: first[d] .. first[d+1]-1 */
    int *chunk_of;        /* [rows] */
    int32_t *rank;        /* [n] row of an op's chunk on its device */
    int64_t num, den;     /* column i starts at i * num / den ps */
    int64_t total, shown; /* ps */
    char *cell;           /* [rows * columns] */
};

static int64_t at(const struct grid *g, int64_t column)
{
    return (int64_t)((__int128)column * g->num / g->den);
}

static int64_t gcd(int64_t a, int64_t b)
{
    while (b) {
        int64_t r = a % b;
        a = b;
        b = r;
    }
    return a;
}

/* Shortest mean duration over the kinds of compute op, but not under half the mean. */
static int64_t typical(const struct pl_gantt *gantt)
{
    double sum[PL_N_KINDS] = {0}, n[PL_N_KINDS] = {0}, all = 0, count = 0;
    for (int64_t i = 0; i < gantt->n; i++) {
        if (gantt->kind[i] == PL_KIND_U) continue;
        double duration = (double)(gantt->end[i] - gantt->start[i]);
        sum[gantt->kind[i]] += duration;
        n[gantt->kind[i]] += 1;
        all += duration;
        count += 1;
    }
    double shortest = INFINITY;
    for (int k = 0; k < PL_N_KINDS; k++)
        if (sum[k] > 0 && sum[k] / n[k] < shortest) shortest = sum[k] / n[k];
    if (count > 0 && shortest < all / count / 2) shortest = all / count / 2;
    return isfinite(shortest) && shortest >= 1 ? (int64_t)shortest : 1;
}

static void lay_out_rows(const struct pl_gantt *gantt, struct grid *g)
{
    g->first = PL_NEW(gantt->devices + 1, int);
    g->chunk_rows = 1;
    g->rank = gantt->chunk ? pl_chunk_ranks(gantt->n, gantt->device, gantt->chunk,
                                            &g->chunk_rows)
                           : PL_NEW(gantt->n, int32_t);
    for (int d = 0; d < gantt->devices; d++) g->first[d + 1] = 1;
    for (int64_t i = 0; i < gantt->n; i++)
        if (g->rank[i] >= g->first[gantt->device[i] + 1])
            g->first[gantt->device[i] + 1] = g->rank[i] + 1;
    for (int d = 0; d < gantt->devices; d++) g->first[d + 1] += g->first[d];
    g->rows = g->first[gantt->devices];
    g->chunk_of = PL_NEW(g->rows, int);
    g->label = snprintf(NULL, 0, "%d", gantt->devices - 1);
    if (g->label < 2) g->label = 2;
    g->gutter = g->label + 1;
    if (g->chunk_rows < 2) return;
    int widest = 0;
    for (int64_t i = 0; i < gantt->n; i++) {
        char name[24];
        g->chunk_of[g->first[gantt->device[i]] + g->rank[i]] = gantt->chunk[i];
        pl_chunk_name(gantt->chunk[i], gantt->chunks, name, sizeof name);
        if ((int)strlen(name) > widest) widest = (int)strlen(name);
    }
    g->gutter += widest + 1;
}

static void lay_out(const struct pl_gantt *gantt, int width, struct grid *g)
{
    lay_out_rows(gantt, g);
    int64_t unit = 0;
    for (int64_t i = 0; i < gantt->n; i++) {
        assert(gantt->kind[i] >= 0 && gantt->kind[i] < PL_N_KINDS);
        assert(gantt->device[i] >= 0 && gantt->device[i] < gantt->devices);
        if (gantt->end[i] > g->total) g->total = gantt->end[i];
        unit = gcd(gcd(unit, gantt->start[i]), gantt->end[i]);
    }
    if (unit < 1) unit = 1;
    g->per_panel = width - g->gutter < 10 ? 10 : width - g->gutter;
    int64_t op = typical(gantt), units = g->total / unit;
    int64_t columns;
    if (units <= g->per_panel) {
        int64_t k = units ? g->per_panel / units : 1, wide = op / unit;
        int64_t cap = wide > MAX_OP_COLUMNS ? 1 : MAX_OP_COLUMNS / (wide ? wide : 1);
        if (k > cap) k = cap;
        g->num = unit;
        g->den = k;
        columns = units * k;
    } else if (g->total / op <= g->per_panel) {
        g->num = g->total;
        g->den = columns = g->per_panel;
    } else {
        g->num = op > unit ? op : unit;
        g->den = 1;
        columns = (g->total + g->num - 1) / g->num;
    }
    if (columns > (int64_t)MAX_PANELS * g->per_panel)
        columns = (int64_t)MAX_PANELS * g->per_panel;
    g->columns = columns < 1 ? 1 : (int)columns;
    g->shown = at(g, g->columns) < g->total ? at(g, g->columns) : g->total;
}

static char symbol(int kind, int64_t micro)
{
    switch (kind) {
    case PL_KIND_F:
        return (char)('0' + micro % 10);
    case PL_KIND_W:
        return (char)('A' + micro % 26);
    case PL_KIND_U:
        return '|';
    default:
        return (char)('a' + micro % 26);
    }
}

/* Idle or another chunk's turn: what the rows of device d show where no op of theirs
 * covers most of column c. */
static void blank(struct grid *g, int d, int64_t c, const int64_t *best,
                  const int64_t *busy)
{
    int64_t most = 0, work = 0, bin = at(g, c + 1) - at(g, c);
    for (int r = g->first[d]; r < g->first[d + 1]; r++) {
        size_t k = (size_t)r * (size_t)g->columns + (size_t)c;
        if (best[k] > most) most = best[k];
        work += busy[k];
    }
    for (int r = g->first[d]; r < g->first[d + 1]; r++) {
        size_t k = (size_t)r * (size_t)g->columns + (size_t)c;
        if (most < bin - work || !most)
            g->cell[k] = '.';
        else if (best[k] < most)
            g->cell[k] = ' ';
    }
}

/* Two ops side by side (F and BW of a pair) share a row by turns. */
static bool wins(int64_t part, int64_t best, int64_t column)
{
    return part > best || (part == best && part > 0 && column % 2);
}

static void fill(const struct pl_gantt *gantt, struct grid *g)
{
    size_t n = (size_t)g->rows * (size_t)g->columns;
    int64_t *best = PL_NEW(n, int64_t), *busy = PL_NEW(n, int64_t);
    g->cell = pl_alloc(n, 1);
    for (int64_t i = 0; i < gantt->n; i++) {
        size_t row = (size_t)(g->first[gantt->device[i]] + g->rank[i]);
        int64_t c = (int64_t)((__int128)gantt->start[i] * g->den / g->num);
        for (; c < g->columns && at(g, c) < gantt->end[i]; c++) {
            int64_t lo = at(g, c), hi = at(g, c + 1);
            size_t k = row * (size_t)g->columns + (size_t)c;
            if (gantt->start[i] > lo) lo = gantt->start[i];
            if (gantt->end[i] < hi) hi = gantt->end[i];
            if (hi <= lo) continue;
            busy[k] += hi - lo;
            if (!wins(hi - lo, best[k], c)) continue;
            best[k] = hi - lo;
            g->cell[k] = symbol(gantt->kind[i], gantt->micro[i]);
        }
    }
    for (int d = 0; d < gantt->devices; d++)
        for (int64_t c = 0; c < g->columns; c++) blank(g, d, c, best, busy);
    free(best);
    free(busy);
}

/* An update too short to win a column is marked where that hides no op: in an idle
 * column at its end, or in the last column of an op that has two or more. */
static void mark_updates(const struct pl_gantt *gantt, struct grid *g)
{
    for (int64_t i = 0; i < gantt->n; i++) {
        if (gantt->kind[i] != PL_KIND_U) continue;
        int64_t c = (int64_t)((__int128)gantt->end[i] * g->den / g->num);
        size_t r = (size_t)(g->first[gantt->device[i]] + g->rank[i]);
        char *row = g->cell + r * (size_t)g->columns;
        if (c < g->columns && (row[c] == '.' || row[c] == ' '))
            row[c] = '|';
        else if (c >= 2 && c <= g->columns && row[c - 1] == row[c - 2] &&
                 row[c - 1] != '|')
            row[c - 1] = '|';
    }
}

static void print_rows(const struct pl_gantt *gantt, const struct grid *g, int from,
                       int to, FILE *out)
{
    for (int d = 0; d < gantt->devices; d++)
        for (int r = g->first[d]; r < g->first[d + 1]; r++) {
            char label[16] = "", chunk[24];
            if (r == g->first[d]) snprintf(label, sizeof label, "%d", d);
            fprintf(out, "%*s", g->label, label);
            if (g->chunk_rows > 1) {
                pl_chunk_name(g->chunk_of[r], gantt->chunks, chunk, sizeof chunk);
                fprintf(out, " %-*s", g->gutter - g->label - 2, chunk);
            }
            fprintf(out, " %.*s\n", to - from,
                    g->cell + (size_t)r * (size_t)g->columns + from);
        }
}

static void print_axis(const struct grid *g, int from, int to, const char *unit,
                       double per_unit, FILE *out)
{
    double span = (double)at(g, g->per_panel) / per_unit;
    double step = pl_axis_step(span, g->per_panel / 10 + 1);
    char *marks = pl_alloc((size_t)(to - from) + 1, 1);
    char *labels = pl_alloc((size_t)(to - from) + 32, 1);
    memset(marks, '-', (size_t)(to - from));
    memset(labels, ' ', (size_t)(to - from) + 31);
    int used = 0;
    for (double t = ceil((double)at(g, from) / per_unit / step) * step;; t += step) {
        double ps = t * per_unit;
        int c = (int)floor(ps * (double)g->den / (double)g->num + 1e-6) - from;
        if (c >= to - from) break;
        marks[c] = '+';
        char text[32];
        int n = snprintf(text, sizeof text, "%.10g", fabs(t) < step / 2 ? 0 : t);
        if (c < used || c + n >= to - from + 16) continue;
        memcpy(labels + c, text, (size_t)n);
        used = c + n + 1;
    }
    for (int c = to - from + 31; c > 0 && labels[c - 1] == ' '; c--) labels[c - 1] = 0;
    fprintf(out, "%*s%s\n", g->gutter, "", marks);
    fprintf(out, "%*s %s\n", g->gutter - 1, unit, labels);
    free(marks);
    free(labels);
}

static void print_legend(const struct pl_gantt *gantt, const struct grid *g,
                         const char *unit, double per_unit, FILE *out)
{
    bool seen[PL_N_KINDS] = {0};
    for (int64_t i = 0; i < gantt->n; i++) seen[gantt->kind[i]] = true;
    fprintf(out, "%*srow: %s; column: %.4g %s", g->gutter, "",
            g->chunk_rows > 1 ? "chunk of a device" : "stage",
            (double)g->num / (double)g->den / per_unit, unit);
    if (seen[PL_KIND_U]) fprintf(out, "; | update");
    fprintf(out, "; . idle\n%*s", g->gutter, "");
    fprintf(out, "0-9 F, last digit of the microbatch");
    if (seen[PL_KIND_BW]) fprintf(out, "; a-z BW");
    if (seen[PL_KIND_B]) fprintf(out, "; a-z B");
    if (seen[PL_KIND_W]) fprintf(out, "; A-Z W");
    fprintf(out, ", microbatch mod 26\n");
    if (g->shown < g->total)
        fprintf(out, "%*sfirst %.4g of %.4g %s\n", g->gutter, "",
                (double)g->shown / per_unit, (double)g->total / per_unit, unit);
}

void pl_gantt_ascii(const struct pl_gantt *gantt, int width, FILE *out)
{
    struct grid g = {0};
    lay_out(gantt, width, &g);
    fill(gantt, &g);
    mark_updates(gantt, &g);
    double per_unit;
    const char *unit = pl_axis_unit((double)g.shown, &per_unit);
    for (int from = 0; from < g.columns; from += g.per_panel) {
        int to = from + g.per_panel < g.columns ? from + g.per_panel : g.columns;
        print_rows(gantt, &g, from, to, out);
        print_axis(&g, from, to, unit, per_unit, out);
    }
    print_legend(gantt, &g, unit, per_unit, out);
    free(g.cell);
    free(g.first);
    free(g.chunk_of);
    free(g.rank);
}
