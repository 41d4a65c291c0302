/* x[n+1] = x[n] - u[n] + c' e[n-1] - c e[n], or y[n+1] = y[n] - u[n] read at y - c e.
 * Both are one trajectory (arXiv 2606.30634; train/correct.h). */
#include "train/wstore.h"

#include <math.h>
#include <stdlib.h>

#include "base/mem.h"

static size_t bytes_of(const struct pl_wstage *w)
{
    return sizeof(float) * w->plan.floats;
}

static int blocks(const struct pl_device *dev, int n, size_t bytes, float ***out)
{
    float **block = *out = PL_NEW(n, float *);
    int rc = 0;
    for (int k = 0; k < n && !rc; k++) rc = dev->alloc(bytes, (void **)&block[k]);
    return rc;
}

static int directions_kept(const struct pl_wstage_plan *plan)
{
    return plan->directions ? plan->depth : plan->history;
}

size_t pl_wstage_floats(const struct pl_wstage_plan *plan)
{
    int n = plan->depth + directions_kept(plan) + plan->live + plan->directions;
    return (size_t)n * plan->floats;
}

static int open_stage(struct pl_wstage *w, const struct pl_device *dev)
{
    w->n_e = directions_kept(&w->plan);
    int rc = blocks(dev, w->plan.depth, bytes_of(w), &w->ring);
    if (!rc) rc = blocks(dev, w->n_e, bytes_of(w), &w->e);
    if (!rc && w->plan.directions) rc = dev->alloc(bytes_of(w), (void **)&w->back);
    if (!rc && w->plan.live) rc = dev->alloc(bytes_of(w), (void **)&w->live);
    return rc;
}

int pl_wstore_open(struct pl_wstore *store, const struct pl_device *device,
                   int n_stages, const struct pl_wstage_plan *plans)
{
    *store = (struct pl_wstore){.device = device,
                                .n_stages = n_stages,
                                .stages = PL_NEW(n_stages, struct pl_wstage)};
    for (int s = 0; s < n_stages; s++) {
        store->stages[s].plan = plans[s];
        int rc = open_stage(&store->stages[s], device);
        if (rc) {
            pl_wstore_close(store);
            return rc;
        }
    }
    return 0;
}

static void release(const struct pl_device *dev, int n, float **block)
{
    for (int k = 0; block && k < n; k++)
        if (block[k]) dev->release(block[k]);
    free(block);
}

void pl_wstore_close(struct pl_wstore *store)
{
    for (int s = 0; store->stages && s < store->n_stages; s++) {
        struct pl_wstage *w = &store->stages[s];
        release(store->device, w->plan.depth, w->ring);
        release(store->device, w->n_e, w->e);
        if (w->live) store->device->release(w->live);
        if (w->back) store->device->release(w->back);
    }
    free(store->stages);
    *store = (struct pl_wstore){0};
}

float *pl_wstore_read(const struct pl_wstore *store, int stage, int64_t version)
{
    const struct pl_wstage *w = &store->stages[stage];
    return w->ring[version % w->plan.depth];
}

int pl_wstore_read_back(struct pl_wstore *store, int stage, int64_t version,
                        const float **out)
{
    const struct pl_wstage *w = &store->stages[stage];
    const float by = (float)(w->look.c - w->look.c_back);
    *out = pl_wstore_read(store, stage, version);
    if (!w->back || by == 0 || version <= w->begin) return 0;
    int rc = store->device->copy(w->back, *out, bytes_of(w));
    if (!rc)
        rc = store->device->axpby(w->plan.floats, by, w->e[version % w->n_e], 1,
                                  w->back);
    *out = w->back;
    return rc;
}

const float *pl_wstore_stored(const struct pl_wstore *store, int stage)
{
    const struct pl_wstage *w = &store->stages[stage];
    return w->at_read ? w->live : pl_wstore_read(store, stage, store->version);
}

const float *pl_wstore_direction(const struct pl_wstore *store, int stage)
{
    const struct pl_wstage *w = &store->stages[stage];
    return w->n_e ? w->e[store->version % w->n_e] : NULL;
}

/* The newest version becomes y of the stretch that ends. */
static int land_on_y(struct pl_wstore *store, int stage)
{
    struct pl_wstage *w = &store->stages[stage];
    float *x = pl_wstore_read(store, stage, store->version);
    if (w->at_read) return store->device->copy(x, w->live, bytes_of(w));
    if (w->c_last == 0 || !w->n_e) return 0;
    return store->device->axpby(w->plan.floats, (float)w->c_last,
                                w->e[store->version % w->n_e], 1, x);
}

int pl_wstore_begin(struct pl_wstore *store, int stage,
                    const struct pl_corrector *corrector, const struct pl_look *look,
                    int64_t begin, bool resumed)
{
    struct pl_wstage *w = &store->stages[stage];
    int rc = !resumed && corrector->land ? land_on_y(store, stage) : 0;
    if (rc) return rc;
    w->look = *look;
    w->momentum = corrector->type->momentum;
    w->gate = corrector->gate;
    w->at_read = corrector->type->at_read && (look->c != 0 || w->momentum);
    w->begin = begin;
    if (resumed) return 0;
    w->c_last = look->c; /* the history continues */
    return w->at_read ? pl_wstore_y(store, stage, w->live) : 0;
}

/* One write is a chain of cheap operations on the same floats; on the host they are
 * done slice by slice, so that the chain runs in cache and each block passes memory
 * once. */
enum { SLICE = 8192 };

static size_t slice(const struct pl_wstore *store, size_t left)
{
    return store->device->host_memory && left > SLICE ? SLICE : left;
}

/* The next iterate and e as sums of u and the e before. */
struct write {
    const float *u, *before; /* before: NULL when it is 0 */
    float *now, *next, *e;   /* e: NULL when not kept */
    float u_step, e_step;    /* of the stored iterate, to be subtracted */
    float u_look, e_look;    /* at read: of x = y - c e */
    float u_e, e_e;          /* of e */
};

static struct write plan_write(struct pl_wstore *store, int stage, int64_t n,
                               const float *u, bool held, double c)
{
    const struct pl_wstage *w = &store->stages[stage];
    const double b = held ? 0 : w->look.smooth, step = w->momentum ? 1 : 0;
    struct write job = {.u = u,
                        .now = pl_wstore_read(store, stage, n),
                        .next = pl_wstore_read(store, stage, n + 1),
                        .e = w->n_e ? w->e[(n + 1) % w->n_e] : NULL,
                        .before = w->n_e && n > 0 ? w->e[n % w->n_e] : NULL,
                        .u_look = (float)(c * (1 - b)),
                        .e_look = (float)(c * b),
                        .u_e = (float)(1 - b),
                        .e_e = (float)b};
    double u_step = step ? 1 - b : 1, e_step = step * b;
    if (!w->at_read && held) { /* e[-1] = u[0]: what c adds, c' takes */
        u_step = 1;
        e_step = 0;
    } else if (!w->at_read) {
        u_step += c * (1 - b);
        e_step += c * b - w->c_last;
    } else if (held) { /* y[0] was x[0] + c u[0] */
        u_step -= c;
    }
    job.u_step = (float)u_step;
    job.e_step = (float)e_step;
    return job;
}

/* y -= a u + b e, in the floats at .. at+n. */
static int subtract(const struct pl_device *dev, const struct write *job, size_t at,
                    size_t n, float a, float b, float *y)
{
    int rc = dev->axpby(n, -a, job->u + at, 1, y);
    if (!rc && b != 0 && job->before) rc = dev->axpby(n, -b, job->before + at, 1, y);
    return rc;
}

static int write_slice(const struct pl_device *dev, const struct pl_wstage *w,
                       const struct write *job, size_t at, size_t n)
{
    const size_t bytes = sizeof(float) * n;
    float *next = job->next + at, *stored = w->at_read ? w->live + at : next;
    int rc = 0;
    if (!w->at_read && job->next != job->now)
        rc = dev->copy(next, job->now + at, bytes);
    if (!rc) rc = subtract(dev, job, at, n, job->u_step, job->e_step, stored);
    if (!rc && w->at_read) rc = dev->copy(next, stored, bytes);
    if (!rc && w->at_read)
        rc = subtract(dev, job, at, n, job->u_look, job->e_look, next);
    if (rc || !job->e) return rc;
    float *e = job->e + at;
    if (job->e_e == 0) return dev->copy(e, job->u + at, bytes);
    if (!job->before)
        rc = dev->zero(e, bytes);
    else if (job->before != job->e)
        rc = dev->copy(e, job->before + at, bytes);
    return rc ? rc : dev->axpby(n, job->u_e, job->u + at, job->e_e, e);
}

int pl_cosine(const struct pl_device *dev, size_t n, const float *a, const float *b,
              double *out)
{
    double aa = 0, ab = 0, bb = 0;
    int rc = dev->dot(n, a, a, &aa);
    if (!rc) rc = dev->dot(n, a, b, &ab);
    if (!rc) rc = dev->dot(n, b, b, &bb);
    *out = aa > 0 && bb > 0 ? ab / sqrt(aa * bb) : NAN;
    return rc;
}

int pl_wstore_write(struct pl_wstore *store, int stage, int64_t n, const float *u,
                    bool hold)
{
    const struct pl_device *dev = store->device;
    struct pl_wstage *w = &store->stages[stage];
    double gate = NAN; /* max(0, cos(u, e)); 1 where there is no direction yet */
    int rc = 0;
    if (w->gate && w->n_e && n > 0)
        rc = pl_cosine(dev, w->plan.floats, u, w->e[n % w->n_e], &gate);
    const double c = w->look.c * (isnan(gate) ? 1 : fmax(0, gate));
    const struct write job = plan_write(store, stage, n, u, hold && n == 0, c);
    for (size_t at = 0, k; at < w->plan.floats && !rc; at += k) {
        k = slice(store, w->plan.floats - at);
        rc = write_slice(dev, w, &job, at, k);
    }
    w->c_last = c;
    return rc;
}

int pl_wstore_distance(const struct pl_wstore *store, int stage, int64_t n,
                       int64_t version, float *scratch, double *square)
{
    const struct pl_device *dev = store->device;
    const float *a = pl_wstore_read(store, stage, n);
    const float *b = pl_wstore_read(store, stage, version);
    const size_t floats = store->stages[stage].plan.floats;
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
    if (!rc && w->c_last != 0 && w->n_e)
        rc = store->device->axpby(w->plan.floats, (float)w->c_last,
                                  w->e[store->version % w->n_e], 1, out);
    return rc;
}
