/* The key `segments`: stretches of a run, each with a schedule and a corrector. */
#ifndef PL_CLI_SEGMENTS_H
#define PL_CLI_SEGMENTS_H

#include "base/config.h"
#include "sim/schedule.h"

enum { PL_MAX_SEGMENTS = 16 };

struct pl_stretch {
    const struct pl_schedule_type *type;
    const char *corrector; /* NULL: corrector.name; borrowed from the text parsed */
    int64_t updates;
};

/* "SCHEDULE[+CORRECTOR]:UPDATES ..." of the key `segments`, 0 of them when it is not
 * given. text: a copy of the key's text, which is cut up and must outlive out. Errors:
 * PL_ECONFIG naming the segment; unknown names with the nearest. */
int pl_segments_parse(const struct pl_config *config, char *text,
                      struct pl_stretch out[PL_MAX_SEGMENTS], int *n);

/* The one that stands for the run where only one can: asynchronous before synchronous,
 * then the longest. */
int pl_segments_shown(const struct pl_stretch *stretches, int n);
/* A schedule whose stages differ, if any: clip.scope is one for the whole run. */
const struct pl_schedule_type *pl_segments_uneven(const struct pl_stretch *stretches,
                                                  int n);

#endif
