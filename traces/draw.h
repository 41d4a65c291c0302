/* SVG primitives. Coordinates in px from the top left; text and titles are escaped.
 * Writes to a borrowed stream; write errors stay in the stream. */
#ifndef PL_TRACES_DRAW_H
#define PL_TRACES_DRAW_H

#include <stdio.h>

#include "traces/figure.h"

enum pl_anchor { PL_ANCHOR_START, PL_ANCHOR_MIDDLE, PL_ANCHOR_END };

struct pl_pen {
    const char *colour; /* "#rrggbb" */
    double width;
    const char *dash; /* "6 3"; NULL: solid */
};

void pl_svg_open(FILE *out, double width, double height, const char *title);
void pl_svg_close(FILE *out);
/* title: shown by viewers as a tooltip; NULL: none. */
void pl_svg_rect(FILE *out, double x, double y, double w, double h, const char *fill,
                 const char *title);
void pl_svg_line(FILE *out, double x1, double y1, double x2, double y2,
                 const struct pl_pen *pen);
/* Open line through n points, clipped to the region `clip` when that is >= 0. */
void pl_svg_curve(FILE *out, int n, const double *x, const double *y,
                  const struct pl_pen *pen, int clip);
/* Translucent band between lo and hi. */
void pl_svg_band(FILE *out, int n, const double *x, const double *lo, const double *hi,
                 const char *fill, int clip);
void pl_svg_clip(FILE *out, int clip, double x, double y, double w, double h);
void pl_svg_text(FILE *out, double x, double y, double size, enum pl_anchor anchor,
                 const char *colour, const char *text);
/* Same, reading upwards. */
void pl_svg_text_up(FILE *out, double x, double y, double size, const char *text);

/* Per op of a Gantt; arrays may be NULL. */
struct pl_gantt_look {
    double width;                /* px of the time axis; a longer run is folded */
    const int64_t *tau;          /* delay in updates, -1 unknown: in the tooltip */
    const int32_t *lane, *lanes; /* place among ops that run side by side */
    const int32_t *level;        /* shade, 0 darkest; levels of them */
    int levels;
    const char *level_text; /* what the shades tell, for the legend */
};

/* Draw a whole figure to out; title is one line. */
void pl_draw_gantt(FILE *out, const struct pl_gantt *gantt,
                   const struct pl_gantt_look *look, const char *title);

struct pl_curve {
    const char *name, *colour_key, *dash_key; /* equal keys look alike */
    int n;
    const double *update, *time_s, *mean, *lo, *hi; /* [n] */
    bool diverged;                                  /* marked at its end */
};
void pl_draw_curves(FILE *out, int n, const struct pl_curve *curves, const char *title);

/* Call draw on a file that becomes path whole or not at all; format by its ending.
 * Errors: as pl_figure_curves. */
typedef void pl_draw_fn(FILE *out, const void *what);
int pl_draw_save(const char *path, pl_draw_fn *draw, const void *what);

#endif
