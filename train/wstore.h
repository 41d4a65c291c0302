/* Weight store: the only writer of weights. Per stage a ring of the versions that
 * forward and backward may still read, and, where the corrector wants them, the
 * direction e of the updates before and the stored iterate y of a look-ahead corrector
 * (live). train/correct.h has the formulas.
 *
 * Correctors that store x write x[n+1] = x[n] - u[n] + c' e[n-1] - c e[n], c' the c of
 * the update before; one that corrects at read stores y and puts y - c e into the ring.
 * Switching keeps x: entering at_read sets y = x + c e, leaving drops y; a corrector
 * that lands on y starts from the y of the stretch before. Owned: pl_wstore_close. */
#ifndef PL_TRAIN_WSTORE_H
#define PL_TRAIN_WSTORE_H

#include "gpu/device.h"
#include "train/correct.h"

/* What a stage keeps, over the whole run. */
struct pl_wstage_plan {
    size_t floats;
    int depth;       /* versions in the ring: oldest read + 1; 1 writes in place */
    bool history;    /* e of the newest version */
    bool live;       /* y */
    bool directions; /* e of every version in the ring, and a block to read at c_back */
};

struct pl_wstage {
    struct pl_wstage_plan plan;
    float **ring; /* [depth] version v is ring[v % depth] */
    float *live;  /* y; NULL when no corrector of the run corrects this stage at read */
    float **e;    /* [n_e] e[v-1], which led to version v, is e[v % n_e]; 0 at v = 0 */
    int n_e;      /* depth, 1 or 0 */
    float *back;  /* what a backward reads at c_back; NULL without directions */
    /* of the current stretch */
    struct pl_look look;    /* of the update that is next */
    bool at_read, momentum; /* at_read false when c is 0 throughout */
    bool gate;
    int64_t begin; /* version that it started from */
    double c_last; /* c in the newest version (stored x) */
};

struct pl_wstore {
    const struct pl_device *device;
    int n_stages;
    int64_t version; /* newest version, on all stages between updates */
    struct pl_wstage *stages;
};

/* Allocate as planned, [n_stages]. Everything is zero. Errors: PL_EMEM, *store empty
 * then. */
int pl_wstore_open(struct pl_wstore *store, const struct pl_device *device,
                   int n_stages, const struct pl_wstage_plan *plans);
void pl_wstore_close(struct pl_wstore *store);
/* Device floats that a stage will take. */
size_t pl_wstage_floats(const struct pl_wstage_plan *plan);

/* What forward of `version` reads on a stage; version 0 is the initial one. */
float *pl_wstore_read(const struct pl_wstore *store, int stage, int64_t version);
/* What a backward without stash reads when `version` is live: y - c_back e of it. The
 * block is valid until the next call on the stage. A version from before the stretch is
 * read as it is. */
int pl_wstore_read_back(struct pl_wstore *store, int stage, int64_t version,
                        const float **out);
/* Stored iterate at the newest version: y where corrected at read, else x. */
const float *pl_wstore_stored(const struct pl_wstore *store, int stage);
/* e of the update before; NULL where none is kept. */
const float *pl_wstore_direction(const struct pl_wstore *store, int stage);

/* Begin a stretch at version `begin` under a corrector whose look-ahead of the next
 * update is `look`. resumed: the blocks already belong to it. */
int pl_wstore_begin(struct pl_wstore *store, int stage,
                    const struct pl_corrector *corrector, const struct pl_look *look,
                    int64_t begin, bool resumed);
/* Write version n+1 of a stage from u of update n, with the stage's look. hold: update
 * 0 is an ordinary step, as if the update before it had been the same. */
int pl_wstore_write(struct pl_wstore *store, int stage, int64_t n, const float *u,
                    bool hold);
/* out = y of the newest version. */
int pl_wstore_y(const struct pl_wstore *store, int stage, float *out);

/* Cosine of two vectors of n device floats; NaN when one of them is 0. */
int pl_cosine(const struct pl_device *dev, size_t n, const float *a, const float *b,
              double *out);
/* *square = ||x[n] - x[version]||^2. */
int pl_wstore_distance(const struct pl_wstore *store, int stage, int64_t n,
                       int64_t version, double *square);

#endif
