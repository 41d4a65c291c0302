/* How long a run's operations take: forward F, input gradient B and weight gradient W
 * of one microbatch on each stage, and update U (clearing of gradients, clipping,
 * optimizer, corrector, weight store), as the simulator schedules them.
 *
 * F, and B with W, are timed a stage at a time, with a wait before and after. What part
 * of them is W is told by the operations, each timed alone: W are products that make
 * gradients of weights, and those of biases and tables; gains of norms count as B,
 * whose operation makes both. Where the head turns logits into gradients at once
 * (train/layers/head.c), its products count as B and W though forward issues them. */
#ifndef PL_TRAIN_PROFILE_H
#define PL_TRAIN_PROFILE_H

#include "gpu/timed.h"
#include "train/run.h"

enum pl_profile_phase { PL_PROFILE_F, PL_PROFILE_B, PL_PROFILE_W, PL_PROFILE_U };
enum { PL_PROFILE_PHASES = 4 };

struct pl_run_profile { /* owned: pl_run_profile_free */
    int stages, repetitions;
    int B, T;                           /* sequences of a microbatch, tokens of each */
    double *seconds[PL_PROFILE_PHASES]; /* [stages] a microbatch; U: an update */
    double *spread;        /* [stages] (third - first quartile) / median of F + B + W */
    double update_s;       /* one update as `pipelag run` computes it: fused, where
                              the microbatches of an update can be one batch */
    bool fused;            /* it was */
    double boundary_bytes; /* activations, or their gradients, of a microbatch */
    /* Operations of all stages, each waited for: sums over the repetitions. */
    struct pl_timed_table ops[PL_PROFILE_PHASES];
};

/* What the machine does at best, measured: y = a x + b y on three walks of memory too
 * large for its caches, and the largest of square products of activations. */
struct pl_machine {
    double bytes_per_s, flops_per_s;
    int product_size;            /* of the fastest product */
    bool copies;                 /* the rest is set: memory is the device's own */
    double upload_s, download_s; /* of 4 bytes */
    double upload_bytes_per_s, download_bytes_per_s; /* of large pieces */
};

/* Measure `repetitions` updates after `warm_up` ones. The spec's device and its
 * problem's are measuring devices (gpu/timed.h), the problem is a model. on_step, which
 * may be NULL, hears of each. Errors: those of pl_run. */
int pl_run_profile(const struct pl_run_spec *spec, int warm_up, int repetitions,
                   void (*on_step)(void *context, int done, int of), void *context,
                   struct pl_run_profile *out);
void pl_run_profile_free(struct pl_run_profile *profile);

/* Memory of device, products of the device that computes a model (its twin or itself).
 * A second or two. Errors: PL_EMEM, those of the device. */
int pl_machine_measure(const struct pl_device *device, const struct pl_device *products,
                       struct pl_machine *out);

#endif
