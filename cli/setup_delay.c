/* Version maps that do not come from the simulated schedule: constant or random delays
 * (delay.tau), or the map of a trace (delay.trace). Times stay the schedule's. */
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/mem.h"
#include "base/rng.h"
#include "cli/setup.h"
#include "traces/trace.h"

struct range {
    int64_t least, most;
};

/* 'T' or 'A..B'; *at moves behind it. */
static bool read_range(const char **at, struct range *out)
{
    char *end;
    out->least = out->most = strtoll(*at, &end, 10);
    if (end == *at) return false;
    if (!strncmp(end, "..", 2)) {
        const char *second = end + 2;
        out->most = strtoll(second, &end, 10);
        if (end == second) return false;
    }
    if (out->least < 0 || out->most < out->least || out->most >= INT32_MAX ||
        (*end != ' ' && *end != '\0'))
        return false;
    *at = end + strspn(end, " ");
    return true;
}

/* delay.tau: one range for all stages, or one for each. */
static int read_ranges(const struct pl_config *config, int stages, struct range *out)
{
    const char *at = pl_config_text(config, "delay.tau");
    int n = 0;
    at += strspn(at, " ");
    while (n < stages && *at && read_range(&at, &out[n])) n++;
    for (int s = 1; n == 1 && s < stages; s++) out[s] = out[0];
    if (!*at && (n == 1 || n == stages)) return 0;
    return pl_fail(
        PL_ECONFIG,
        "%s: delay.tau: '%s' at delay %d, expected one delay, or %d (one for "
        "each stage), each a number of updates or a range A..B",
        pl_config_where(config, "delay.tau"), at, n, stages);
}

static int given(const struct pl_config *config, struct pl_versions *v)
{
    const uint64_t seed = (uint64_t)pl_config_int(config, "delay.seed");
    struct range *range = PL_NEW(v->stages, struct range);
    int rc = read_ranges(config, v->stages, range);
    for (int s = 0; s < v->stages && !rc; s++)
        for (int64_t i = 0; i < v->n_micro; i++) {
            uint64_t width = (uint64_t)(range[s].most - range[s].least) + 1;
            int64_t tau =
                range[s].least +
                (int64_t)(width == 1 ? 0
                                     : pl_rng_below(seed, PL_RNG_DELAY, (uint64_t)i,
                                                    (uint32_t)s, width));
            int64_t version = i / v->m > tau ? i / v->m - tau : 0;
            v->forward[s * v->n_micro + i] = version;
            v->backward[s * v->n_micro + i] = version;
        }
    free(range);
    return rc;
}

static int bad_trace(const char *file, const char *what)
{
    return pl_fail(PL_EINPUT, "%s: %s", file, what);
}

/* Every cell of the map once, within bounds. */
static int fill(const struct pl_trace *t, const char *file, const char *path,
                struct pl_versions *v)
{
    static const char *const names[] = {"stage", "micro", "forward", "backward"};
    const int64_t *column[4];
    int64_t n = 0, cells = v->stages * v->n_micro;
    for (int i = 0; i < 4; i++) column[i] = pl_trace_get_i64(t, path, names[i], &n);
    for (int64_t i = 0; i < cells; i++) v->forward[i] = -1;
    for (int64_t k = 0; k < n; k++) {
        int64_t s = column[0][k], i = column[1][k];
        if (s >= v->stages)
            return bad_trace(file, "has more stages than this run's schedule");
        if (s < 0 || i < 0)
            return bad_trace(file, "has a negative stage or microbatch");
        if (i >= v->n_micro) continue; /* a longer run */
        v->forward[s * v->n_micro + i] = column[2][k];
        v->backward[s * v->n_micro + i] = column[3][k];
    }
    for (int64_t i = 0; i < cells; i++) {
        int64_t update = i % v->n_micro / v->m;
        if (v->forward[i] >= 0 && v->backward[i] >= v->forward[i] &&
            v->backward[i] <= update)
            continue;
        if (v->forward[i] >= 0)
            return bad_trace(file, "reads a version that is not written yet");
        return pl_fail(
            PL_EINPUT,
            "%s: has no version for stage %lld, microbatch %lld "
            "(update %lld): it needs as many stages, microbatches and updates "
            "as this run (pipelag sim --updates, and its -o)",
            file, (long long)(i / v->n_micro), (long long)(i % v->n_micro),
            (long long)update);
    }
    return 0;
}

/* delay.trace: FILE or FILE:ARM, the arm may be left out when there is one. */
static int from_trace(const struct pl_config *config, struct pl_versions *v)
{
    char *file = pl_strdup(pl_config_text(config, "delay.trace"));
    char *arm = strrchr(file, ':');
    struct pl_trace *t = NULL;
    const char **names = NULL;
    if (arm) *arm++ = '\0';
    int rc = pl_trace_read(file, &t), n = 0, found = -1;
    int64_t m = 0;
    if (!rc) n = pl_trace_arms(t, &names);
    for (int i = 0; i < n; i++)
        if (!arm || !strcmp(arm, names[i])) found = found == -1 ? i : -2;
    if (!rc && found == -1)
        rc = pl_fail(PL_EINPUT, "%s: no arm '%s', the first is '%s'", file,
                     arm ? arm : "", n ? names[0] : "");
    if (!rc && found == -2)
        rc = pl_fail(PL_EINPUT, "%s: %d arms, say which as FILE:ARM ('%s')", file, n,
                     names[0]);
    if (!rc) {
        char *path = pl_printf("/arms/%s", names[found]);
        if (pl_trace_get_attr_int(t, path, "m", &m) && m != v->m)
            rc = pl_fail(PL_EINPUT,
                         "%s: %lld microbatches per update, this run has "
                         "%d",
                         file, (long long)m, v->m);
        free(path);
        path = pl_printf("/arms/%s/versions", names[found]);
        if (!rc) rc = fill(t, file, path, v);
        free(path);
    }
    free(names);
    pl_trace_free(t);
    free(file);
    return rc;
}

bool pl_setup_has_delay(const struct pl_config *config)
{
    return *pl_config_text(config, "delay.tau") ||
           *pl_config_text(config, "delay.trace");
}

int pl_setup_delay(const struct pl_config *config, struct pl_simulation *sim)
{
    bool trace = *pl_config_text(config, "delay.trace");
    if (!pl_setup_has_delay(config)) return 0;
    if (trace && *pl_config_text(config, "delay.tau"))
        return pl_fail(PL_ECONFIG,
                       "%s: delay.tau and delay.trace are both given, one is expected",
                       pl_config_where(config, "delay.trace"));
    if (*pl_config_text(config, "segments"))
        return pl_fail(PL_ECONFIG,
                       "%s: delay.tau and delay.trace replace the delays of one "
                       "schedule, not of segments",
                       pl_config_where(config, trace ? "delay.trace" : "delay.tau"));
    int rc = (trace ? from_trace : given)(config, &sim->versions);
    if (trace) rc = pl_setup_blame(config, "delay.trace", rc);
    for (int s = 0; s < sim->versions.stages && !rc; s++)
        if (pl_versions_max_tau(&sim->versions, s) > sim->versions.startup)
            sim->versions.startup = pl_versions_max_tau(&sim->versions, s);
    if (rc) return rc;
    pl_metrics_free(&sim->metrics);
    pl_metrics_compute(&sim->timeline, &sim->schedule, &sim->versions, &sim->metrics);
    return 0;
}
