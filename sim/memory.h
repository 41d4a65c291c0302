/* Bytes that each device holds over an executed run: weights, stashed versions,
 * gradients, optimizer state, buffers of a corrector, activations in flight. Owned by
 * the caller (pl_memory_free). */
#ifndef PL_SIM_MEMORY_H
#define PL_SIM_MEMORY_H

#include "sim/timeline.h"
#include "sim/versions.h"

/* Of one model chunk on one device (its share of a tensor-parallel group). */
struct pl_chunk_bytes {
    uint64_t weight;     /* one copy in compute precision */
    uint64_t gradient;   /* accumulation buffer, held all the time */
    uint64_t optimizer;  /* master weights and moments */
    uint64_t corrector;  /* buffers of a delay corrector or of weight prediction */
    uint64_t activation; /* of one microbatch, from start of F */
    uint64_t kept;       /* what B leaves for W: released with it */
    uint64_t working;    /* while a B or BW runs: what recomputation makes anew */
};

enum pl_memory_part {
    PL_MEMORY_WEIGHTS,
    PL_MEMORY_VERSIONS, /* stashed copies besides the live one */
    PL_MEMORY_GRADIENTS,
    PL_MEMORY_OPTIMIZER,
    PL_MEMORY_CORRECTOR,
    PL_MEMORY_ACTIVATIONS,
    PL_N_MEMORY
};
extern const char *const pl_memory_names[PL_N_MEMORY];

struct pl_device_memory {
    uint64_t peak;              /* bytes */
    pl_tick when;               /* first time at the peak */
    uint64_t part[PL_N_MEMORY]; /* at that time */
};

struct pl_memory {
    int devices;
    struct pl_device_memory *device; /* [devices] */
    int64_t n;                       /* changes, in order of time on each device */
    int32_t *on;                     /* [n] device */
    pl_tick *time;                   /* [n] */
    uint64_t *bytes;                 /* [n] total from then on */
};

/* bytes: [C] by model chunk. A version that a later backward still reads is copied when
 * U starts and freed when that backward ends; everything freed at an instant is freed
 * before what is allocated then. Errors: PL_ECONFIG when the sum exceeds 2^63 bytes. */
int pl_memory_compute(const struct pl_schedule *schedule,
                      const struct pl_timeline *timeline,
                      const struct pl_versions *versions,
                      const struct pl_chunk_bytes *bytes, struct pl_memory *out);
/* Device with the highest peak, the first of equals. */
int pl_memory_fullest(const struct pl_memory *memory);
void pl_memory_free(struct pl_memory *memory);

#endif
