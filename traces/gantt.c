/* Gantt as SVG: a row a device, colours of Okabe and Ito (distinct under the common
 * colour blindnesses), shades for chunks, updates or delay, microbatch numbers where
 * they can be read. A run too long for the width is folded into panels. */
#include "traces/draw.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "traces/axis.h"
#include "traces/ops.h"

enum { ROW = 22, LEFT = 52, TOP = 64, RIGHT = 20, AXIS = 24, BOTTOM = 24, GAP = 10 };
enum { MAX_PANELS = 8, MAX_SWATCHES = 6 };
/* px: a digit per font size; font sizes of numbers; a character of the legend; a short
 * op at most; a whole run at least, if the ops do not get wider than that */
static const double digit = 0.636, small = 6.5, large = 10, text_px = 7, max_op = 32,
                    min_run = 640;

static const struct {
    int rgb;
    const char *label;
} looks[PL_N_KINDS] = {
    [PL_KIND_F] = {0x0072b2, "F forward"},
    [PL_KIND_B] = {0xe69f00, "B input gradient"},
    [PL_KIND_W] = {0x007d5b, "W weight gradient"},
    [PL_KIND_BW] = {0xe69f00, "BW backward"},
    [PL_KIND_U] = {0x8b1a5c, "U update"},
};

struct canvas {
    FILE *out;
    const struct pl_gantt *gantt;
    const struct pl_gantt_look *look;
    double total, span; /* ps: of the run, of a panel */
    double px_per_ps;
    int panels;
    bool seen[PL_N_KINDS];
    int digits[PL_N_KINDS]; /* of the largest number */
};

/* rgb, lightened towards white by share. */
static int lighten(int rgb, double share)
{
    int out = 0;
    for (int shift = 0; shift < 24; shift += 8) {
        int c = rgb >> shift & 255;
        out |= (int)lround(c + (255 - c) * share) << shift;
    }
    return out;
}

static int shade_of(int kind, int level, int levels)
{
    if (kind == PL_KIND_U || levels < 2) return looks[kind].rgb;
    double lightest = levels == 2 ? 0.55 : 0.75;
    return lighten(looks[kind].rgb, lightest * level / (levels - 1));
}

/* Black or white, whichever stands out (luma of ITU-R BT.601). */
static const char *ink(int rgb)
{
    double luma = 0.299 * (rgb >> 16) + 0.587 * (rgb >> 8 & 255) + 0.114 * (rgb & 255);
    return luma < 128 ? "#ffffff" : "#000000";
}

/* ps of a panel: folds at round times where that costs little. */
static double fold(double total, int panels)
{
    double per_unit, span = total / panels;
    if (panels == 1) return span;
    pl_axis_unit(total, &per_unit);
    double step = pl_axis_step(span / per_unit, 24) * per_unit;
    double round = ceil(span / step - 1e-9) * step;
    return round < 1.1 * span ? round : span;
}

static int by_size(const void *left, const void *right)
{
    double x = *(const double *)left, y = *(const double *)right;
    return x < y ? -1 : x > y;
}

/* A short op: nine in ten are longer, but not under a quarter of the mean. ps. */
static double short_op(const struct canvas *c)
{
    double *all = PL_NEW(c->gantt->n, double), sum = 0, op = c->total;
    int64_t n = 0;
    for (int64_t i = 0; i < c->gantt->n; i++) {
        double length = (double)(c->gantt->end[i] - c->gantt->start[i]);
        if (c->gantt->kind[i] == PL_KIND_U || length <= 0) continue;
        all[n++] = length;
        sum += length;
    }
    if (n) {
        qsort(all, (size_t)n, sizeof *all, by_size);
        op = fmax(all[n / 10], sum / (double)n / 4);
    }
    free(all);
    return op;
}

/* Scale and panels: a short op gets room for the largest microbatch number, if
 * MAX_PANELS of the wanted width suffice for that. */
static void lay_out(struct canvas *c)
{
    const struct pl_gantt *g = c->gantt;
    int most = 1;
    c->total = 1;
    for (int64_t i = 0; i < g->n; i++) {
        int k = g->kind[i], d = snprintf(NULL, 0, "%" PRId64, g->micro[i]);
        c->seen[k] = true;
        c->total = fmax(c->total, (double)g->end[i]);
        if (d > c->digits[k]) c->digits[k] = d;
        if (k != PL_KIND_U && d > most) most = d;
    }
    double ops = c->total / short_op(c);
    double wanted = fmax(ops * (most * digit * 8.5 + 1.6), fmin(min_run, ops * max_op));
    double panels = ceil(wanted / c->look->width - 0.05);
    c->panels = (int)fmin(fmax(panels, 1), MAX_PANELS);
    c->span = fold(c->total, c->panels);
    c->px_per_ps = fmin(wanted / c->total, c->look->width / c->span);
}

static double panel_top(const struct canvas *c, int panel)
{
    return TOP + panel * (ROW * c->gantt->devices + AXIS + GAP);
}

static void describe(const struct canvas *c, int64_t i, char *text, size_t size)
{
    const struct pl_gantt *g = c->gantt;
    int kind = g->kind[i], used;
    used = snprintf(text, size, "%s %s %" PRId64, pl_kind_names[kind],
                    kind == PL_KIND_U ? "update" : "microbatch", g->micro[i]);
    if (g->chunk) {
        char name[24];
        pl_chunk_name(g->chunk[i], g->chunks, name, sizeof name);
        used += snprintf(text + used, size - (size_t)used, ", chunk %s", name + 1);
    }
    if (kind == PL_KIND_U) return;
    used += snprintf(text + used, size - (size_t)used, ", update %" PRId64,
                     g->m > 0 ? g->micro[i] / g->m : g->micro[i]);
    if (c->look->tau && c->look->tau[i] >= 0)
        snprintf(text + used, size - (size_t)used, ", tau %" PRId64, c->look->tau[i]);
}

struct box {
    double x, y, w, h;
    int rgb;
};

/* Ops of one kind and width get one font, whatever their numbers. */
static void draw_number(const struct canvas *c, int64_t i, const struct box *b)
{
    int kind = c->gantt->kind[i];
    double size = fmin((b->w - 0.5) / (c->digits[kind] * digit), fmin(b->h - 1, large));
    char number[24];
    snprintf(number, sizeof number, "%" PRId64, c->gantt->micro[i]);
    if (size < small) return;
    pl_svg_text(c->out, b->x + b->w / 2, b->y + b->h / 2 + 0.36 * size, size,
                PL_ANCHOR_MIDDLE, ink(b->rgb), number);
}

static double foot(const struct box *b)
{
    return fmin(3, b->h / 4);
}

/* BW where B stands alone too: a foot in the colour of W. */
static void draw_foot(const struct canvas *c, const struct box *b, int level)
{
    double h = foot(b);
    char fill[16];
    snprintf(fill, sizeof fill, "#%06x", shade_of(PL_KIND_W, level, c->look->levels));
    pl_svg_rect(c->out, b->x, b->y + b->h - h, b->w, h, fill, NULL);
}

static void draw_box(const struct canvas *c, const struct box *b, int kind, int level,
                     const char *title)
{
    char fill[16];
    snprintf(fill, sizeof fill, "#%06x", b->rgb);
    pl_svg_rect(c->out, b->x, b->y, b->w, b->h, fill, title);
    if (kind == PL_KIND_BW && c->seen[PL_KIND_B]) draw_foot(c, b, level);
}

/* The part of op i that lies in a panel; the larger part carries the tooltip. */
static void draw_part(const struct canvas *c, int64_t i, int panel, bool main_part)
{
    const struct pl_gantt *g = c->gantt;
    double from = fmax((double)g->start[i] - panel * c->span, 0);
    double to = fmin((double)g->end[i] - panel * c->span, c->span);
    int kind = g->kind[i], level = c->look->level ? c->look->level[i] : 0;
    int lanes = c->look->lanes ? c->look->lanes[i] : 1;
    double inner = ROW - 3, h = inner / lanes;
    struct box b = {
        LEFT + from * c->px_per_ps, panel_top(c, panel) + ROW * g->device[i] + 1.5,
        (to - from) * c->px_per_ps, h, shade_of(kind, level, c->look->levels)};
    if (lanes > 1) {
        b.y += h * c->look->lane[i];
        b.h = h - 0.6;
    }
    char title[200];
    describe(c, i, title, sizeof title);
    if (kind == PL_KIND_U && b.w < 2) { /* visible however short */
        struct box bar = {b.x + b.w - 1, b.y - 1.5, 2, ROW, b.rgb};
        draw_box(c, &bar, kind, level, title);
        return;
    }
    if (b.w > 4) b.w -= 0.6;
    draw_box(c, &b, kind, level, main_part ? title : NULL);
    if (kind == PL_KIND_BW && c->seen[PL_KIND_B]) b.y -= foot(&b) / 2;
    if (main_part) draw_number(c, i, &b);
}

static void draw_op(const struct canvas *c, int64_t i)
{
    double start = (double)c->gantt->start[i], end = (double)c->gantt->end[i];
    int first = (int)fmin(start / c->span, c->panels - 1), last = first;
    if (end <= start && start <= first * c->span && first)
        first = --last; /* on a fold */
    while (last + 1 < c->panels && (last + 1) * c->span < end - 1e-9 * c->total) last++;
    int best = first;
    double most = -1;
    for (int p = first; p <= last; p++) {
        double part = fmin(end, (p + 1) * c->span) - fmax(start, p * c->span);
        if (part > most) {
            most = part;
            best = p;
        }
    }
    for (int p = first; p <= last; p++) draw_part(c, i, p, p == best);
}

static void draw_panel_axis(const struct canvas *c, int panel, double per_unit)
{
    static const struct pl_pen axis = {"#000000", 1, NULL},
                               row = {"#d9d9d9", 0.6, NULL};
    int devices = c->gantt->devices;
    double top = panel_top(c, panel), y = top + ROW * devices;
    double right = LEFT + c->span * c->px_per_ps;
    double step =
        pl_axis_step(c->span / per_unit, (int)(c->span * c->px_per_ps / 80) + 1);
    for (int d = 0; d < devices; d++) {
        char text[16];
        snprintf(text, sizeof text, "%d", d);
        pl_svg_line(c->out, LEFT, top + ROW * d, right, top + ROW * d, &row);
        pl_svg_text(c->out, LEFT - 7, top + ROW * d + ROW / 2.0 + 4, 11, PL_ANCHOR_END,
                    "#000000", text);
    }
    pl_svg_line(c->out, LEFT, y, right, y, &axis);
    pl_svg_line(c->out, LEFT, top, LEFT, y, &axis);
    double from = panel * c->span / per_unit, to = (panel + 1) * c->span / per_unit;
    for (double k = ceil(from / step - 1e-9); k * step <= to * (1 + 1e-9); k++) {
        double x = LEFT + (k * step - from) * per_unit * c->px_per_ps;
        char text[32];
        snprintf(text, sizeof text, "%.10g", k > 0 ? k * step : 0.0);
        pl_svg_line(c->out, x, y, x, y + 4, &axis);
        pl_svg_text(c->out, x, y + 16, 11, PL_ANCHOR_MIDDLE, "#000000", text);
    }
    pl_svg_text_up(c->out, 14, top + ROW * devices / 2.0, 12, "device");
}

/* Returns the right end; draws nothing when out is NULL. */
static double draw_legend(const struct canvas *c, FILE *out)
{
    int levels = c->look->levels;
    double x = LEFT;
    for (int k = 0; k < PL_N_KINDS; k++) {
        if (!c->seen[k]) continue;
        int parts = k == PL_KIND_U || levels < 2 ? 1
                    : levels < MAX_SWATCHES      ? levels
                                                 : MAX_SWATCHES;
        for (int p = 0; p < parts; p++) {
            int level = parts > 1 ? p * (levels - 1) / (parts - 1) : 0;
            struct box b = {x, 38, parts == 1 ? 20 : 10, 13,
                            shade_of(k, level, levels)};
            if (out) draw_box(c, &b, k, level, NULL);
            x += b.w;
        }
        if (out)
            pl_svg_text(out, x + 5, 49, 12, PL_ANCHOR_START, "#000000", looks[k].label);
        x += 5 + text_px * (double)strlen(looks[k].label) + 16;
    }
    const char *text = c->look->level_text;
    if (!text) return x;
    if (out) pl_svg_text(out, x, 49, 12, PL_ANCHOR_START, "#555555", text);
    return x + text_px * (double)strlen(text);
}

void pl_draw_gantt(FILE *out, const struct pl_gantt *gantt,
                   const struct pl_gantt_look *look, const char *title)
{
    struct canvas c = {.out = out, .gantt = gantt, .look = look};
    lay_out(&c);
    double per_unit, bottom = panel_top(&c, c.panels) - GAP;
    double width = fmax(LEFT + c.span * c.px_per_ps, draw_legend(&c, NULL));
    width = fmax(width, LEFT + 15 / 12.0 * text_px * (double)strlen(title)) + RIGHT;
    const char *unit = pl_axis_unit(c.total, &per_unit);
    pl_svg_open(out, width, bottom + BOTTOM, title);
    pl_svg_text(out, LEFT, 24, 15, PL_ANCHOR_START, "#000000", title);
    draw_legend(&c, out);
    for (int p = 0; p < c.panels; p++) draw_panel_axis(&c, p, per_unit);
    char label[48];
    snprintf(label, sizeof label, "simulated time [%s]", unit);
    pl_svg_text(out, LEFT, bottom + 12, 12, PL_ANCHOR_START, "#000000", label);
    for (int pass = 0; pass < 2; pass++) /* short updates on top */
        for (int64_t i = 0; i < gantt->n; i++)
            if ((gantt->kind[i] == PL_KIND_U) == (pass == 1)) draw_op(&c, i);
    pl_svg_close(out);
}
