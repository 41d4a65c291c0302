/* Validation loss of all arms against update and against simulated time: line = mean
 * over seeds, band = range; colour by the first key, dash by the second. The vertical
 * range leaves out the first tenth of the run, where the start-up would hide the rest;
 * it is logarithmic when the rest spans more than a factor 50. */
#include "traces/draw.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "traces/axis.h"

enum { PANEL_W = 460, PANEL_H = 340, LEFT = 70, TOP = 56, GAP = 84, RIGHT = 24 };
static const char *const colours[] = {"#0072b2", "#d55e00", "#009e73", "#cc79a7",
                                      "#e69f00", "#56b4e9", "#000000", "#8c8c8c"};
static const char *const dashes[] = {NULL,      "7 3",         "2 2.5",
                                     "9 3 2 3", "4 2 1 2 1 2", "1 4"};
#define HUGE_LOSS 1e30 /* not worth an axis */
enum { N_COLOURS = 8, N_DASHES = 6 };

struct panel {
    double left, x_max, x_unit; /* x_unit: plotted unit in update or s */
    double y_lo, y_hi;
    bool log;
};

static double to_y(const struct panel *p, double loss)
{
    double lo = p->y_lo, hi = p->y_hi;
    if (p->log) {
        lo = log10(lo);
        hi = log10(hi);
        loss = loss > 0 ? log10(loss) : lo - 1;
    }
    double y = TOP + PANEL_H * (1 - (loss - lo) / (hi - lo));
    return fmin(fmax(y, -1e4), 1e4); /* far outside: clipped anyway */
}

static double to_x(const struct panel *p, double x)
{
    return p->left + PANEL_W * x / p->x_max;
}

static void find_range(int n, const struct pl_curve *curves, struct panel *p)
{
    double end = 0, lo = INFINITY, hi = -INFINITY;
    for (int a = 0; a < n; a++)
        if (curves[a].n) end = fmax(end, curves[a].update[curves[a].n - 1]);
    for (int a = 0; a < n; a++)
        for (int i = 0; i < curves[a].n; i++) {
            const struct pl_curve *c = &curves[a];
            bool counts = c->update[i] >= end / 10 && !c->diverged;
            if (!counts || !(fabs(c->lo[i]) < HUGE_LOSS && fabs(c->hi[i]) < HUGE_LOSS))
                continue;
            lo = fmin(lo, c->lo[i]);
            hi = fmax(hi, c->hi[i]);
        }
    if (!isfinite(lo)) { /* nothing but diverged arms */
        for (int a = 0; a < n; a++)
            for (int i = 0; i < curves[a].n; i++)
                if (fabs(curves[a].mean[i]) < HUGE_LOSS) {
                    lo = fmin(lo, curves[a].mean[i]);
                    hi = fmax(hi, curves[a].mean[i]);
                }
    }
    if (!isfinite(lo)) lo = 0, hi = 1;
    p->log = lo > 0 && hi > 50 * lo;
    double margin = hi > lo ? 0.04 * (hi - lo) : fmax(fabs(hi) * 0.05, 1e-6);
    margin = fmax(margin, 1e-9 * fabs(hi)); /* ticks must differ in double */
    p->y_lo = p->log ? lo / 1.3 : lo - margin;
    p->y_hi = p->log ? hi * 1.3 : hi + margin;
}

static void draw_y_axis(FILE *out, const struct panel *p)
{
    static const struct pl_pen grid = {"#e3e3e3", 0.8, NULL};
    double step = p->log ? 1 : pl_axis_step(p->y_hi - p->y_lo, 7);
    double lo = p->log ? log10(p->y_lo) : p->y_lo,
           hi = p->log ? log10(p->y_hi) : p->y_hi;
    if (p->log && hi - lo > 8) step = ceil((hi - lo) / 8);
    double first = ceil(lo / step);
    for (int i = 0; (first + i) * step <= hi; i++) {
        double k = first + i;
        double value = p->log ? pow(10, k * step) : k * step, y = to_y(p, value);
        pl_svg_line(out, p->left, y, p->left + PANEL_W, y, &grid);
        char text[32];
        snprintf(text, sizeof text, "%.6g",
                 !p->log && fabs(value) < step * 1e-9 ? 0 : value);
        pl_svg_text(out, p->left - 7, y + 4, 11, PL_ANCHOR_END, "#000000", text);
    }
}

static void draw_frame(FILE *out, const struct panel *p, const char *label)
{
    static const struct pl_pen axis = {"#000000", 1, NULL},
                               grid = {"#e3e3e3", 0.8, NULL};
    double bottom = TOP + PANEL_H, span = p->x_max / p->x_unit;
    double step = pl_axis_step(span, 6);
    draw_y_axis(out, p);
    for (int k = 0; k * step <= span * (1 + 1e-9); k++) {
        double x = to_x(p, k * step * p->x_unit);
        pl_svg_line(out, x, TOP, x, bottom, &grid);
        pl_svg_line(out, x, bottom, x, bottom + 4, &axis);
        char text[32];
        snprintf(text, sizeof text, "%.10g", k * step);
        pl_svg_text(out, x, bottom + 17, 11, PL_ANCHOR_MIDDLE, "#000000", text);
    }
    pl_svg_line(out, p->left, bottom, p->left + PANEL_W, bottom, &axis);
    pl_svg_line(out, p->left, TOP, p->left, bottom, &axis);
    pl_svg_text(out, p->left + PANEL_W / 2.0, bottom + 36, 12, PL_ANCHOR_MIDDLE,
                "#000000", label);
}

/* Index of key among the distinct keys of the curves, in order of appearance. */
static int key_index(int n, const struct pl_curve *curves, const char *key, bool colour)
{
    int index = 0;
    for (int a = 0; a < n; a++) {
        const char *other = colour ? curves[a].colour_key : curves[a].dash_key;
        if (!strcmp(other, key)) return index;
        bool first = true;
        for (int b = 0; b < a; b++)
            if (!strcmp(colour ? curves[b].colour_key : curves[b].dash_key, other))
                first = false;
        index += first;
    }
    return index;
}

static struct pl_pen pen_of(int n, const struct pl_curve *curves,
                            const struct pl_curve *c)
{
    int colour = key_index(n, curves, c->colour_key, true);
    int dash = key_index(n, curves, c->dash_key, false);
    return (struct pl_pen){colours[colour % N_COLOURS], 1.7,
                           dashes[(dash + colour / N_COLOURS) % N_DASHES]};
}

static void draw_curve(FILE *out, const struct panel *p, const struct pl_curve *c,
                       const struct pl_pen *pen, bool time, int clip)
{
    double *x = PL_NEW(c->n, double), *mean = PL_NEW(c->n, double);
    double *lo = PL_NEW(c->n, double), *hi = PL_NEW(c->n, double);
    int n = 0;
    bool band = false;
    for (int i = 0; i < c->n; i++) {
        if (!isfinite(c->mean[i]) || !isfinite(c->time_s[i])) break;
        x[n] = to_x(p, time ? c->time_s[i] : c->update[i]);
        mean[n] = to_y(p, c->mean[i]);
        lo[n] = to_y(p, isfinite(c->lo[i]) ? c->lo[i] : c->mean[i]);
        hi[n] = to_y(p, isfinite(c->hi[i]) ? c->hi[i] : c->mean[i]);
        band = band || lo[n] > hi[n];
        n++;
    }
    if (band) pl_svg_band(out, n, x, lo, hi, pen->colour, clip);
    if (n) pl_svg_curve(out, n, x, mean, pen, clip);
    if (n && c->diverged) {
        double y = fmin(fmax(mean[n - 1], TOP + 6), TOP + PANEL_H - 6), at = x[n - 1];
        struct pl_pen cross = {pen->colour, 2, NULL};
        pl_svg_line(out, at - 5, y - 5, at + 5, y + 5, &cross);
        pl_svg_line(out, at - 5, y + 5, at + 5, y - 5, &cross);
    }
    free(x);
    free(mean);
    free(lo);
    free(hi);
}

static double legend_column(int n, const struct pl_curve *curves)
{
    size_t longest = 8;
    for (int a = 0; a < n; a++) {
        size_t length = strlen(curves[a].name) + (curves[a].diverged ? 11 : 0);
        if (length > longest) longest = length;
    }
    return 46 + 7.4 * (double)longest + 18;
}

static void draw_legend(FILE *out, int n, const struct pl_curve *curves, int columns)
{
    double width = legend_column(n, curves);
    int rows = (n + columns - 1) / columns;
    for (int a = 0; a < n; a++) {
        double x = LEFT + width * (a / rows), y = TOP + PANEL_H + 62 + 18 * (a % rows);
        struct pl_pen pen = pen_of(n, curves, &curves[a]);
        pl_svg_line(out, x, y - 4, x + 38, y - 4, &pen);
        char *text =
            pl_printf("%s%s", curves[a].name, curves[a].diverged ? " (diverged)" : "");
        pl_svg_text(out, x + 46, y, 12, PL_ANCHOR_START, "#000000", text);
        free(text);
    }
}

static const char *time_unit(double span, double *unit)
{
    if (span >= 3 * 86400 || span >= 7200) {
        *unit = span >= 3 * 86400 ? 86400 : 3600;
        return span >= 3 * 86400 ? "d" : "h";
    }
    const char *name = pl_axis_unit(span * 1e12, unit);
    *unit *= 1e-12;
    return name;
}

void pl_draw_curves(FILE *out, int n, const struct pl_curve *curves, const char *title)
{
    struct panel p[2] = {{.left = LEFT, .x_unit = 1},
                         {.left = LEFT + PANEL_W + GAP, .x_unit = 1}};
    for (int a = 0; a < n; a++)
        for (int i = 0; i < curves[a].n; i++) {
            p[0].x_max = fmax(p[0].x_max, curves[a].update[i]);
            if (curves[a].time_s[i] < HUGE_LOSS)
                p[1].x_max = fmax(p[1].x_max, curves[a].time_s[i]);
        }
    for (int k = 0; k < 2; k++) {
        if (!(p[k].x_max > 0)) p[k].x_max = 1;
        find_range(n, curves, &p[k]);
    }
    char label[48];
    snprintf(label, sizeof label, "simulated time [%s]",
             time_unit(p[1].x_max, &p[1].x_unit));
    double width = LEFT + 2 * PANEL_W + GAP + RIGHT;
    int columns = (int)((width - LEFT) / legend_column(n, curves));
    if (columns < 1) columns = 1;
    int rows = (n + columns - 1) / columns;
    pl_svg_open(out, width, TOP + PANEL_H + 62 + 18 * rows + 10, title);
    /* a long title is set smaller; a letter is about 0.58 em wide */
    double size = fmin(15, (width - LEFT) / (0.58 * fmax(1, (double)strlen(title))));
    pl_svg_text(out, LEFT, 26, size, PL_ANCHOR_START, "#000000", title);
    pl_svg_text(out, LEFT, 44, 11, PL_ANCHOR_START, "#555555",
                "line: mean over seeds; band: their range");
    pl_svg_text_up(out, 18, TOP + PANEL_H / 2.0, 12, "validation loss [nat]");
    for (int k = 0; k < 2; k++) {
        pl_svg_clip(out, k, p[k].left, TOP, PANEL_W, PANEL_H);
        draw_frame(out, &p[k], k ? label : "update");
        for (int a = 0; a < n; a++) {
            struct pl_pen pen = pen_of(n, curves, &curves[a]);
            draw_curve(out, &p[k], &curves[a], &pen, k == 1, k);
        }
    }
    draw_legend(out, n, curves, columns);
    pl_svg_close(out);
}
