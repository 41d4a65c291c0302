/* The keys optimizer.*: the update rule of a run. A key that is not given (nan, auto, 0
 * where it says so) takes the rule's own default, here and nowhere else. */
#ifndef PL_CLI_SETUP_OPTIM_H
#define PL_CLI_SETUP_OPTIM_H

#include "base/config.h"
#include "train/optim.h"

/* Tell the table the names of rules and switches. */
void pl_setup_optim_register(void);

struct pl_optim pl_setup_optim(const struct pl_config *config);

/* "muon: lr 0.02, decay 0.1, ..." with every setting the rule reads; caller frees. */
char *pl_setup_optim_text(const struct pl_optim *optim);

/* One line a rule: name, what it is, source, and its defaults; caller frees. */
char *pl_setup_optim_list(void);

/* Does an update take the gradient of a second batch (optimizer.exact)? Simulated times
 * do not have it, training and `pipelag profile` do. */
bool pl_setup_optim_twice(const struct pl_config *config);

/* Does the rule of a configuration read this key optimizer.*? */
bool pl_setup_optim_reads(const struct pl_config *config, const char *key);

#endif
