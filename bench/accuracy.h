/* How close the simulator comes to published measurements (experiments/measured): what
 * `make bench` prints and tests/test_accuracy.c holds against the targets. */
#ifndef BENCH_ACCURACY_H
#define BENCH_ACCURACY_H

#include <stdio.h>

enum { PL_N_ACCURACY = 11 };

struct pl_accuracy {
    const char *name; /* in bench.json */
    const char *what;
    double value;      /* mean |error| in percent */
    double target;     /* at most; NaN: none */
    double peer_value; /* NaN: none */
    const char *peer;
    const char *missing; /* why the target is missed, or NULL */
};

/* One predicted step of a deeper pipeline from the shallowest measured one that has the
 * same model, microbatch and tp: percent. */
struct pl_depth {
    char *note;
    int tp, from, to;        /* stages */
    double error, by_bubble; /* by_bubble: only the bubble's formula */
};

/* folder holds the CSV files. rows: [PL_N_ACCURACY]; the caller frees *depths and each
 * note. Errors: those of the parts. */
int pl_accuracy_measure(const char *folder, struct pl_accuracy *rows,
                        struct pl_depth **depths, int *n_depths);
void pl_accuracy_print(const struct pl_accuracy *rows, const char *prefix, FILE *out);

#endif
