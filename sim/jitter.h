/* Times that vary: a random factor on each op and transfer, slow devices and links,
 * devices that fail and come back. Every draw is a pure function of (seed, kind,
 * instance, microbatch), so that the order of execution, the schedule beside it or a
 * longer run never shifts it. Owned by the caller (pl_jitter_free). */
#ifndef PL_SIM_JITTER_H
#define PL_SIM_JITTER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/units.h"

enum pl_distribution {
    PL_STEADY,    /* always the nominal time */
    PL_NORMAL,    /* nominal + sd z, cut at 0 */
    PL_LOGNORMAL, /* mean nominal */
    PL_GAMMA,     /* mean nominal */
    PL_EMPIRICAL  /* nominal times one of the given factors, each as likely */
};
extern const char *const pl_distribution_names[]; /* NULL-terminated, in that order */

struct pl_random_time {
    enum pl_distribution kind;
    double cv;     /* standard deviation over the nominal time; or, when it is NaN: */
    double sd;     /* standard deviation in ticks */
    int n;         /* factors */
    double *value; /* [n] owned */
};

enum pl_jitter_kind { /* what varies; F, B and W are enum pl_op_kind's first three */
                      PL_JITTER_F,
                      PL_JITTER_B, /* also all of a fused BW */
                      PL_JITTER_W,
                      PL_JITTER_U,
                      PL_JITTER_LINK_F, /* activations */
                      PL_JITTER_LINK_B, /* gradients */
                      PL_N_JITTER
};

/* The device does nothing from .. from + length; an op that is hit starts anew. */
struct pl_outage {
    int device;
    pl_tick from, length;
};

struct pl_jitter {
    uint64_t seed;
    struct pl_random_time time[PL_N_JITTER];
    int n_outages;
    struct pl_outage *outage; /* [n_outages] by device, then from; disjoint; owned */
};

/* "normal 5%", "normal 2 ms", "lognormal 10%", "gamma 0.1", "empirical FILE" (one
 * factor a line, # starts a comment), "none" or "". Errors: PL_ECONFIG, PL_EINPUT
 * starting with where. */
int pl_random_time_parse(const char *text, const char *where,
                         struct pl_random_time *out);
/* "3@120ms+500ms 5@1s+1s": device@from+length, devices below P. */
int pl_outages_parse(const char *text, const char *where, int P, struct pl_jitter *out);

/* The time that takes the place of nominal; >= 0, at most 26 days. */
pl_tick pl_jitter_time(const struct pl_jitter *jitter, enum pl_jitter_kind kind,
                       int instance, int64_t micro, pl_tick nominal);
/* When work of `length` that a device takes up at start ends: it begins anew after an
 * outage that it falls into or that hits it. */
pl_tick pl_jitter_end(const struct pl_jitter *jitter, int device, pl_tick start,
                      pl_tick length);
void pl_jitter_free(struct pl_jitter *jitter);

#endif
