#include "cli/unused.h"

#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/mem.h"
#include "cli/segments.h"
#include "sim/schedule.h"

struct uses {
    bool grouped, limited;
};

static void add(struct uses *uses, const struct pl_schedule_type *type)
{
    uses->grouped |= type->grouped;
    uses->limited |= type->limited;
}

static struct uses uses_of_run(const struct pl_config *config)
{
    struct uses uses = {false, false};
    struct pl_stretch segments[PL_MAX_SEGMENTS];
    int n = 0;
    char *text = pl_strdup(pl_config_text(config, "segments"));
    if (pl_segments_parse(config, text, segments, &n)) n = 0; /* said elsewhere */
    for (int i = 0; i < n; i++) add(&uses, segments[i].type);
    free(text);
    if (!n) add(&uses, pl_schedule_find(pl_config_text(config, "schedule.name")));
    return uses;
}

static void warn(const struct pl_config *config, const char *key, const char *reason)
{
    if (!pl_config_given(config, key)) return;
    char *value = pl_config_value(config, key);
    if (strcmp(value, "0"))
        pl_log(PL_LOG_WARN, "%s: %s has no effect: %s", pl_config_where(config, key),
               key, reason);
    free(value);
}

/* Models are also trained, so those of a file say nothing about costs. */
static bool for_roofline(const struct pl_config *config, const char *key)
{
    if (!pl_config_given(config, key)) return false;
    return !strncmp(key, "cluster.", 8) || !strncmp(key, "parallel.", 9) ||
           (!strncmp(key, "model.", 6) &&
            !strcmp(pl_config_where(config, key), "--set"));
}

/* Do transfers of given costs take time? */
static bool links_take_time(const struct pl_config *config)
{
    int n;
    const pl_tick *time = pl_config_times(config, "link.time", &n);
    bool any = *pl_config_text(config, "cost.profile") ||
               *pl_config_text(config, "link.bandwidth");
    for (int i = 0; i < n; i++) any |= time[i] > 0;
    return any;
}

void pl_unused_warn(const struct pl_config *config)
{
    static const char planned[] =
        "only zb-1p, zb-2p, zb-v, v-half and v-min plan under a memory limit";
    struct uses uses = uses_of_run(config);
    if (!uses.grouped)
        warn(config, "schedule.group", "only interleaved and wpipe have groups");
    if (!uses.limited) {
        warn(config, "schedule.max_activations", planned);
        warn(config, "schedule.released", planned);
    }
    if (strcmp(pl_config_text(config, "cost.type"), "given")) return;
    if (!links_take_time(config)) warn(config, "jitter.slow_links", "link.time is 0");
    for (const struct pl_key *key = pl_keys; key->name; key++) {
        if (!for_roofline(config, key->name)) continue;
        pl_log(PL_LOG_WARN,
               "%s: %s has no effect on the costs, which are given: set cost.type "
               "roofline to take them from model.*, parallel.* and cluster.*",
               pl_config_where(config, key->name), key->name);
        return;
    }
}
