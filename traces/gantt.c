/* Gantt as SVG: a row a device, colours of Okabe and Ito (distinct under the common
 * colour blindnesses), odd updates lighter, microbatch numbers where they fit. */
#include "traces/draw.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "traces/axis.h"
#include "traces/schema.h"

enum { ROW = 24, LEFT = 56, TOP = 64, RIGHT = 24, BOTTOM = 50, MIN_WIDTH = 720 };
static const double op_px = 16, max_px = 3200; /* typical op; whole time axis */

static const struct {
    const char *even, *odd, *text_even, *text_odd, *label;
} looks[PL_N_KINDS] = {
    [PL_KIND_F] = {"#0072b2", "#7cc4ee", "#ffffff", "#000000", "F forward"},
    [PL_KIND_B] = {"#e69f00", "#f7d58a", "#000000", "#000000", "B input gradient"},
    [PL_KIND_W] = {"#007d5b", "#7fd0b6", "#ffffff", "#000000", "W weight gradient"},
    [PL_KIND_BW] = {"#e69f00", "#f7d58a", "#000000", "#000000", "BW backward"},
    [PL_KIND_U] = {"#8b1a5c", "#8b1a5c", "#ffffff", "#ffffff", "U update"},
};

struct scale {
    double px_per_ps, total; /* total in ps */
};

static struct scale fit(const struct pl_gantt *gantt)
{
    double total = 1, work = 0;
    int64_t n = 0;
    for (int64_t i = 0; i < gantt->n; i++) {
        total = fmax(total, (double)gantt->end[i]);
        if (gantt->kind[i] == PL_KIND_U) continue;
        work += (double)(gantt->end[i] - gantt->start[i]);
        n++;
    }
    double px = n && work > 0 ? total / (work / (double)n) * op_px : MIN_WIDTH;
    px = fmin(fmax(px, MIN_WIDTH), max_px);
    return (struct scale){px / total, total};
}

static void draw_op(FILE *out, const struct pl_gantt *gantt, int64_t i, int64_t tau,
                    const struct scale *scale)
{
    int kind = gantt->kind[i];
    int64_t micro = gantt->micro[i];
    int64_t update = kind == PL_KIND_U || gantt->m < 1 ? micro : micro / gantt->m;
    double x = LEFT + (double)gantt->start[i] * scale->px_per_ps;
    double w = (double)(gantt->end[i] - gantt->start[i]) * scale->px_per_ps;
    double y = TOP + ROW * gantt->device[i] + 2;
    char title[160];
    int used = snprintf(title, sizeof title, "%s %s %" PRId64, pl_kind_names[kind],
                        kind == PL_KIND_U ? "update" : "microbatch", micro);
    if (kind != PL_KIND_U)
        used += snprintf(title + used, sizeof title - (size_t)used, ", update %" PRId64,
                         update);
    if (tau >= 0)
        snprintf(title + used, sizeof title - (size_t)used, ", tau %" PRId64, tau);
    bool odd = update % 2;
    if (kind == PL_KIND_U && w < 2) { /* visible however short */
        pl_svg_rect(out, x + w - 1, y - 2, 2, ROW, looks[kind].even, title);
        return;
    }
    double gap = w > 4 ? 0.6 : 0;
    pl_svg_rect(out, x, y, w - gap, ROW - 4, odd ? looks[kind].odd : looks[kind].even,
                title);
    char number[24];
    int digits = snprintf(number, sizeof number, "%" PRId64, micro);
    double size = w >= digits * 6.5 + 2 ? 10 : 7.5; /* a digit is 0.64 size wide */
    if (w >= digits * 0.64 * size + 0.5)
        pl_svg_text(out, x + (w - gap) / 2, y + ROW / 2 + 2, size, PL_ANCHOR_MIDDLE,
                    odd ? looks[kind].text_odd : looks[kind].text_even, number);
}

static void draw_axis(FILE *out, const struct pl_gantt *gantt,
                      const struct scale *scale)
{
    static const struct pl_pen axis = {"#000000", 1, NULL},
                               grid = {"#dddddd", 0.7, NULL};
    double per_unit, y = TOP + ROW * gantt->devices;
    const char *unit = pl_axis_unit(scale->total, &per_unit);
    double step = pl_axis_step(scale->total / per_unit,
                               (int)(scale->total * scale->px_per_ps / 80) + 1);
    for (int k = 0; k * step * per_unit <= scale->total * (1 + 1e-9); k++) {
        double x = LEFT + k * step * per_unit * scale->px_per_ps;
        pl_svg_line(out, x, TOP, x, y, &grid);
        pl_svg_line(out, x, y, x, y + 5, &axis);
        char text[32];
        snprintf(text, sizeof text, "%.10g", k * step);
        pl_svg_text(out, x, y + 17, 11, PL_ANCHOR_MIDDLE, "#000000", text);
    }
    pl_svg_line(out, LEFT, y, LEFT + scale->total * scale->px_per_ps, y, &axis);
    char label[48];
    snprintf(label, sizeof label, "simulated time [%s]", unit);
    pl_svg_text(out, LEFT, y + 36, 12, PL_ANCHOR_START, "#000000", label);
    for (int d = 0; d < gantt->devices; d++) {
        char text[16];
        snprintf(text, sizeof text, "%d", d);
        pl_svg_text(out, LEFT - 8, TOP + ROW * d + ROW / 2 + 4, 12, PL_ANCHOR_END,
                    "#000000", text);
    }
    pl_svg_text_up(out, 16, TOP + ROW * gantt->devices / 2.0, 12, "stage");
}

static void draw_legend(FILE *out, const struct pl_gantt *gantt)
{
    bool seen[PL_N_KINDS] = {0}, odd = false;
    for (int64_t i = 0; i < gantt->n; i++) {
        seen[gantt->kind[i]] = true;
        if (gantt->m > 0 && gantt->micro[i] >= gantt->m) odd = true;
    }
    double x = LEFT;
    for (int k = 0; k < PL_N_KINDS; k++) {
        if (!seen[k]) continue;
        bool split = odd && k != PL_KIND_U;
        pl_svg_rect(out, x, 38, split ? 10 : 20, 13, looks[k].even, NULL);
        if (split) pl_svg_rect(out, x + 10, 38, 10, 13, looks[k].odd, NULL);
        pl_svg_text(out, x + 25, 49, 12, PL_ANCHOR_START, "#000000", looks[k].label);
        x += 25 + 7.2 * (double)strlen(looks[k].label) + 20;
    }
    if (odd)
        pl_svg_text(out, x, 49, 12, PL_ANCHOR_START, "#555555",
                    "(lighter: odd updates)");
}

void pl_draw_gantt(FILE *out, const struct pl_gantt *gantt, const int64_t *tau,
                   const char *title)
{
    struct scale scale = fit(gantt);
    pl_svg_open(out, LEFT + scale.total * scale.px_per_ps + RIGHT,
                TOP + ROW * gantt->devices + BOTTOM, title);
    pl_svg_text(out, LEFT, 24, 15, PL_ANCHOR_START, "#000000", title);
    draw_legend(out, gantt);
    draw_axis(out, gantt, &scale);
    for (int pass = 0; pass < 2; pass++) /* short updates on top */
        for (int64_t i = 0; i < gantt->n; i++)
            if ((gantt->kind[i] == PL_KIND_U) == (pass == 1))
                draw_op(out, gantt, i, tau ? tau[i] : -1, &scale);
    pl_svg_close(out);
}
