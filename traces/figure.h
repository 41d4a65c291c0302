/* Figures, from traces only (and the terminal Gantt from arrays). SVG is written here;
 * png and pdf by an external converter. */
#ifndef PL_TRACES_FIGURE_H
#define PL_TRACES_FIGURE_H

#include <stdint.h>
#include <stdio.h>

#include "traces/trace.h"

/* Arrays behind a Gantt: n ops on `devices` rows; kind is enum pl_op_kind's value. */
struct pl_gantt {
    int devices, m;
    int64_t n;
    const int8_t *kind;
    const int32_t *device;
    const int64_t *micro;
    const int64_t *start, *end; /* ps */
    const int32_t *chunk;       /* instances; NULL: one a device */
    int chunks; /* of the model: instance = replica * chunks + chunk; 0: one replica */
};

/* Text Gantt, one row per device (and per chunk where a device has several), at most
 * `width` columns (20 and up): F as the last digit of the microbatch, BW and B as
 * letters a-z, W as A-Z, U as '|', idle '.'; a time axis and a legend below. A run too
 * long for the width is folded, after four folds cut. */
void pl_gantt_ascii(const struct pl_gantt *gantt, int width, FILE *out);

/* Gantt of an arm / loss curves (validation loss against update and against simulated
 * time; seed mean and range) of all arms, to path (.svg; .png and .pdf through
 * rsvg-convert when present). Errors: PL_EINPUT (arm absent; nearest given), PL_EIO,
 * PL_EUNSUP (no converter, named). */
int pl_figure_gantt(const struct pl_trace *t, const char *arm, const char *path);
int pl_figure_curves(const struct pl_trace *t, const char *path);

/* What the shade of an op tells; auto is the chunk where a device has several, else
 * the parity of the update. */
enum pl_shade { PL_SHADE_AUTO, PL_SHADE_UPDATE, PL_SHADE_CHUNK, PL_SHADE_TAU };
extern const char *const pl_shade_names[]; /* NULL-terminated */

struct pl_gantt_options {
    int64_t updates; /* ops that start before the end of this many updates; <= 0: all */
    double width;    /* px of the time axis, a longer run is folded; 0: 1600 */
    enum pl_shade shade;
};
/* As pl_figure_gantt. arm == NULL: the first. PL_EUNSUP when the trace has no version
 * map for the shade tau. */
int pl_figure_gantt_with(const struct pl_trace *t, const char *arm,
                         const struct pl_gantt_options *options, const char *path);

#endif
