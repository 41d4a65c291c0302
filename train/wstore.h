/* Weight store: the only writer of weights. Per stage a ring of the versions that
 * forward and backward may still read, and, where the corrector wants them, the update
 * before (u_last) and the stored iterate of a look-ahead corrector (live).
 *
 * One trajectory, two iterates: x is what F and B read (the ring), y = x + c u_last.
 * Correctors that store x write x -= (1+c) u - c u_last; one that corrects at read
 * stores y -= u and puts y - c u into the ring. Switching keeps x: entering at_read
 * sets y = x + c u_last, leaving drops y. Owned: pl_wstore_close. */
#ifndef PL_TRAIN_WSTORE_H
#define PL_TRAIN_WSTORE_H

#include <stdbool.h>

#include "gpu/device.h"
#include "train/correct.h"

struct pl_wstage {
    size_t floats;
    int depth;    /* versions in the ring: largest tau + 1; 1 writes in place */
    float **ring; /* [depth] version v is ring[v % depth] */
    float *live;  /* y; NULL when no corrector of the run corrects this stage at read */
    float *u_last; /* update n-1, 0 before; NULL when c is 0 throughout */
    double c;      /* of the current stretch */
    bool at_read;  /* of the current stretch; false when c is 0 */
};

struct pl_wstore {
    const struct pl_device *device;
    int n_stages;
    int64_t version; /* newest version, on all stages between updates */
    struct pl_wstage *stages;
};

/* Allocate as described: floats, depth, history (keep u_last), live per stage.
 * Everything is zero. Errors: PL_EMEM, *store empty then. */
int pl_wstore_open(struct pl_wstore *store, const struct pl_device *device,
                   int n_stages, const size_t *floats, const int *depth,
                   const bool *history, const bool *live);
void pl_wstore_close(struct pl_wstore *store);

/* What forward and backward of `version` read on a stage; version 0 is the initial one.
 */
float *pl_wstore_read(const struct pl_wstore *store, int stage, int64_t version);
/* Stored iterate at the newest version: y where corrected at read, else x. */
const float *pl_wstore_stored(const struct pl_wstore *store, int stage);

/* Begin a stretch under coefficient c. resumed: the blocks already belong to it. */
int pl_wstore_begin(struct pl_wstore *store, int stage, double c, bool at_read,
                    bool resumed);
/* Write version n+1 of a stage from u of update n. hold: update 0 is an ordinary step,
 * as if the update before it had been the same. */
int pl_wstore_write(struct pl_wstore *store, int stage, int64_t n, const float *u,
                    bool hold);
/* out = y of the newest version. */
int pl_wstore_y(const struct pl_wstore *store, int stage, float *out);

/* *square = ||x[n] - x[version]||^2; scratch: floats of the stage. */
int pl_wstore_distance(const struct pl_wstore *store, int stage, int64_t n,
                       int64_t version, float *scratch, double *square);

#endif
