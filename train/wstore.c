/* x[n+1] = x[n] - (1+c) u[n] + c u[n-1], or y[n+1] = y[n] - u[n] read at y - c u. Both
 * are one trajectory (arXiv 2606.30634; train/correct.h). */
#include "train/wstore.h"

#include <stdlib.h>

#include "base/mem.h"

static size_t bytes_of(const struct pl_wstage *w)
{
    return sizeof(float) * w->floats;
}

static int open_stage(struct pl_wstage *w, const struct pl_device *dev, bool history,
                      bool live)
{
    w->ring = PL_NEW(w->depth, float *);
    int rc = 0;
    for (int k = 0; k < w->depth && !rc; k++)
        rc = dev->alloc(bytes_of(w), (void **)&w->ring[k]);
    if (!rc && history) rc = dev->alloc(bytes_of(w), (void **)&w->u_last);
    if (!rc && live) rc = dev->alloc(bytes_of(w), (void **)&w->live);
    return rc;
}

int pl_wstore_open(struct pl_wstore *store, const struct pl_device *device,
                   int n_stages, const size_t *floats, const int *depth,
                   const bool *history, const bool *live)
{
    *store = (struct pl_wstore){.device = device,
                                .n_stages = n_stages,
                                .stages = PL_NEW(n_stages, struct pl_wstage)};
    for (int s = 0; s < n_stages; s++) {
        store->stages[s].floats = floats[s];
        store->stages[s].depth = depth[s];
        int rc = open_stage(&store->stages[s], device, history[s], live[s]);
        if (rc) {
            pl_wstore_close(store);
            return rc;
        }
    }
    return 0;
}

void pl_wstore_close(struct pl_wstore *store)
{
    for (int s = 0; store->stages && s < store->n_stages; s++) {
        struct pl_wstage *w = &store->stages[s];
        for (int k = 0; w->ring && k < w->depth; k++)
            if (w->ring[k]) store->device->release(w->ring[k]);
        if (w->live) store->device->release(w->live);
        if (w->u_last) store->device->release(w->u_last);
        free(w->ring);
    }
    free(store->stages);
    *store = (struct pl_wstore){0};
}

float *pl_wstore_read(const struct pl_wstore *store, int stage, int64_t version)
{
    const struct pl_wstage *w = &store->stages[stage];
    return w->ring[version % w->depth];
}

const float *pl_wstore_stored(const struct pl_wstore *store, int stage)
{
    const struct pl_wstage *w = &store->stages[stage];
    return w->at_read ? w->live : pl_wstore_read(store, stage, store->version);
}

int pl_wstore_begin(struct pl_wstore *store, int stage, double c, bool at_read,
                    bool resumed)
{
    struct pl_wstage *w = &store->stages[stage];
    w->c = c;
    w->at_read = at_read && c != 0;
    if (!w->at_read || resumed) return 0;
    return pl_wstore_y(store, stage, w->live);
}

/* One write is a chain of cheap operations on the same floats; on the host they are
 * done slice by slice, so that the chain runs in cache and each block passes memory
 * once. */
enum { SLICE = 8192 };

static size_t slice(const struct pl_wstore *store, size_t left)
{
    return store->device->host_memory && left > SLICE ? SLICE : left;
}

struct write {
    float *now, *next;
    const float *u;
    bool ordinary, follows; /* update 0 held; there is an update before */
};

/* y[1] = y[0] - u[0]; holding means that y[0] was x[0] + c u[0]. */
static int write_at_read(const struct pl_device *dev, const struct pl_wstage *w,
                         const struct write *job, size_t at, size_t n)
{
    const float *u = job->u + at;
    float *live = w->live + at, *next = job->next + at;
    int rc = dev->axpby(n, job->ordinary ? (float)(w->c - 1) : -1, u, 1, live);
    if (!rc) rc = dev->copy(next, live, sizeof(float) * n);
    return rc ? rc : dev->axpby(n, (float)-w->c, u, 1, next);
}

static int write_stored(const struct pl_device *dev, const struct pl_wstage *w,
                        const struct write *job, size_t at, size_t n)
{
    float *next = job->next + at;
    int rc = 0;
    if (job->next != job->now) rc = dev->copy(next, job->now + at, sizeof(float) * n);
    if (!rc)
        rc = dev->axpby(n, job->ordinary ? -1 : (float)-(1 + w->c), job->u + at, 1,
                        next);
    if (!rc && w->c != 0 && job->follows)
        rc = dev->axpby(n, (float)w->c, w->u_last + at, 1, next);
    return rc;
}

int pl_wstore_write(struct pl_wstore *store, int stage, int64_t n, const float *u,
                    bool hold)
{
    const struct pl_device *dev = store->device;
    const struct pl_wstage *w = &store->stages[stage];
    const struct write job = {.now = pl_wstore_read(store, stage, n),
                              .next = pl_wstore_read(store, stage, n + 1),
                              .u = u,
                              .ordinary = hold && n == 0,
                              .follows = n > 0};
    int rc = 0;
    for (size_t at = 0, k; at < w->floats && !rc; at += k) {
        k = slice(store, w->floats - at);
        rc = w->at_read ? write_at_read(dev, w, &job, at, k)
                        : write_stored(dev, w, &job, at, k);
        if (!rc && w->u_last) rc = dev->copy(w->u_last + at, u + at, sizeof(float) * k);
    }
    return rc;
}

int pl_wstore_distance(const struct pl_wstore *store, int stage, int64_t n,
                       int64_t version, float *scratch, double *square)
{
    const struct pl_device *dev = store->device;
    const float *a = pl_wstore_read(store, stage, n);
    const float *b = pl_wstore_read(store, stage, version);
    const size_t floats = store->stages[stage].floats;
    int rc = 0;
    *square = 0;
    for (size_t at = 0, k; at < floats && !rc && n != version; at += k) {
        double part = 0;
        k = slice(store, floats - at);
        rc = dev->copy(scratch, a + at, sizeof(float) * k);
        if (!rc) rc = dev->axpby(k, -1, b + at, 1, scratch);
        if (!rc) rc = dev->dot(k, scratch, scratch, &part);
        *square += part;
    }
    return rc;
}

int pl_wstore_y(const struct pl_wstore *store, int stage, float *out)
{
    const struct pl_wstage *w = &store->stages[stage];
    const float *x = pl_wstore_read(store, stage, store->version);
    int rc = store->device->copy(out, x, bytes_of(w));
    if (!rc && w->c != 0)
        rc = store->device->axpby(w->floats, (float)w->c, w->u_last, 1, out);
    return rc;
}
