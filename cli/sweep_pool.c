/* A sweep on the cores of this machine. */
#include <stdlib.h>
#include <unistd.h>

#include "base/err.h"
#include "base/log.h"
#include "base/mem.h"
#include "cli/sweep.h"

struct run {
    struct pl_sweep *sweep;
    int64_t before;          /* rows of an earlier call */
    struct pl_config *point; /* of the worker */
};

int64_t pl_sweep_share(const struct pl_sweep *sweep, int n_workers)
{
    int64_t share = (sweep->n - sweep->done) / ((int64_t)n_workers * 32);
    return share < 1 ? 1 : share > 256 ? 256 : share;
}

static void begin(void *context)
{
    struct run *run = context;
    if (run->sweep->part >= 0) close(run->sweep->part); /* with its lock */
}

static bool skip(void *context, int64_t i)
{
    return ((struct run *)context)->sweep->status[i] != NULL;
}

static void work(void *context, int64_t i, struct pl_bytes *out)
{
    struct run *run = context;
    pl_sweep_point(run->sweep, i, &run->point, out);
}

static int take(void *context, struct pl_bytes *bytes)
{
    return pl_sweep_take(((struct run *)context)->sweep, bytes);
}

static void tick(void *context)
{
    struct run *run = context;
    pl_progress_update((double)(run->sweep->done - run->before), NULL);
}

/* "point 17 (schedule.name 2bw, schedule.stages 8)" */
static char *describe(void *context, int64_t i)
{
    const struct pl_sweep *sweep = ((struct run *)context)->sweep;
    struct pl_config *point = NULL;
    char *text = pl_printf("point %lld", (long long)i);
    pl_config_point(sweep->config, i, &point);
    for (int a = 0; a < pl_config_n_swept(sweep->config); a++) {
        const char *key = pl_config_swept(sweep->config, a);
        char *value = pl_config_value(point, key);
        char *longer = pl_printf("%s%s%s %s", text, a ? ", " : " (", key, value);
        free(value);
        free(text);
        text = longer;
    }
    char *whole = pl_printf("%s)", text);
    free(text);
    pl_config_free(point);
    return whole;
}

int pl_sweep_run(struct pl_sweep *sweep, int n_workers)
{
    struct run run = {.sweep = sweep, .before = sweep->done};
    int64_t left = sweep->n - sweep->done;
    if (left < n_workers) n_workers = (int)left;
    if (!n_workers) return 0;
    struct pl_pool_job job = {.n = sweep->n,
                              .n_workers = n_workers,
                              .share = pl_sweep_share(sweep, n_workers),
                              .context = &run,
                              .begin = begin,
                              .skip = skip,
                              .work = work,
                              .take = take,
                              .tick = tick,
                              .describe = describe};
    pl_progress_begin("sweep", (double)left, "points");
    int code = pl_pool_run(&job);
    pl_progress_end();
    if (code || sweep->done == sweep->n) return code;
    return pl_fail(PL_EINTR, "interrupted");
}
