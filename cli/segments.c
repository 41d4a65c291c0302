#include "cli/segments.h"

#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "train/correct.h"

int pl_segments_parse(const struct pl_config *config, char *text,
                      struct pl_stretch out[PL_MAX_SEGMENTS], int *n)
{
    const char *where = pl_config_where(config, "segments");
    char *save = NULL;
    *n = 0;
    for (char *w = strtok_r(text, " ", &save); w; w = strtok_r(NULL, " ", &save)) {
        char *colon = strchr(w, ':'), *end = NULL;
        if (*n == PL_MAX_SEGMENTS)
            return pl_fail(PL_ECONFIG, "%s: more than %d segments", where,
                           PL_MAX_SEGMENTS);
        long long updates = colon ? strtoll(colon + 1, &end, 10) : 0;
        if (!colon || *end || updates < 1)
            return pl_fail(PL_ECONFIG,
                           "%s: segment '%s', expected SCHEDULE[+CORRECTOR]:UPDATES",
                           where, w);
        *colon = 0;
        char *plus = strchr(w, '+');
        if (plus) *plus++ = 0;
        const struct pl_schedule_type *type = pl_schedule_find(w);
        if (!type)
            return pl_fail_unknown(PL_ECONFIG, where, "schedule", w,
                                   pl_schedule_names());
        if (plus && !pl_corrector_find(plus))
            return pl_fail_unknown(PL_ECONFIG, where, "corrector", plus,
                                   pl_corrector_names());
        out[(*n)++] = (struct pl_stretch){type, plus, updates};
    }
    return 0;
}

/* An asynchronous stretch before a synchronous one, then the longer one. */
static bool says_more(const struct pl_stretch *a, const struct pl_stretch *b)
{
    if (a->type->async != b->type->async) return a->type->async;
    return a->updates > b->updates;
}

int pl_segments_shown(const struct pl_stretch *stretches, int n)
{
    int shown = 0;
    for (int i = 1; i < n; i++)
        if (says_more(&stretches[i], &stretches[shown])) shown = i;
    return shown;
}

const struct pl_schedule_type *pl_segments_uneven(const struct pl_stretch *stretches,
                                                  int n)
{
    const struct pl_schedule_type *uneven = stretches[0].type;
    for (int i = 1; i < n; i++)
        if (!stretches[i].type->global_version) uneven = stretches[i].type;
    return uneven;
}
