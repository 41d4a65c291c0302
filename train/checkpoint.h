/* Checkpoints, private to the training loop. Format "pipelag checkpoint 2", native byte
 * order: header {magic[8], u32 version, u32 sections, u64 fingerprint, u64 bytes of the
 * file, u32 crc of the header so far, u32 0}, then sections {u64 id, u64 bytes,
 * payload, u32 crc of all three}: META, ROWS, EVALS, DIAGS, SCORES, WEIGHTS (by stage:
 * ring slots, e, live, u of the last update), STATE, LOOK (c of the newest version by
 * stage). Nothing is taken from a file before all of it has been checked. */
#ifndef PL_TRAIN_CHECKPOINT_H
#define PL_TRAIN_CHECKPOINT_H

#include "train/run_state.h"

/* Write the state of a run; PL_EIO (an older checkpoint stays) on any write error. */
int pl_checkpoint_save(struct pl_run_state *run);
/* Load into a run that was just opened. PL_EINPUT: missing, truncated, corrupt, another
 * run's, another format version. */
int pl_checkpoint_load(struct pl_run_state *run);

#endif
