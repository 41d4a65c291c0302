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

/* A weighted sum of blocks of a stage; terms that are 0 are left out. */
struct sum {
    int terms;
    float a[PL_BLEND];
    const float *x[PL_BLEND];
};

static void add(struct sum *sum, double a, const float *x)
{
    if (a == 0 || !x) return;
    sum->a[sum->terms] = (float)a;
    sum->x[sum->terms++] = x;
}

static int put(const struct pl_wstore *store, int stage, const struct sum *sum,
               float *to)
{
    return store->device->blend(store->stages[stage].plan.floats, sum->terms, sum->a,
                                sum->x, to);
}

int pl_wstore_read_back(struct pl_wstore *store, int stage, int64_t version,
                        const float **out)
{
    const struct pl_wstage *w = &store->stages[stage];
    const double by = w->look.c - w->look.c_back;
    *out = pl_wstore_read(store, stage, version);
    if (!w->back || by == 0 || version <= w->begin) return 0;
    struct sum sum = {0};
    add(&sum, 1, *out);
    add(&sum, by, w->e[version % w->n_e]);
    *out = w->back;
    return put(store, stage, &sum, w->back);
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
    return pl_wstore_y(store, stage, x);
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

/* u u[n] + e e[n-1]. */
struct step {
    double u, e;
};

/* What the stored iterate loses. */
static struct step stored_step(const struct pl_wstage *w, bool held, double b, double c)
{
    struct step s = {w->momentum ? 1 - b : 1, w->momentum ? b : 0};
    if (!w->at_read && held) /* e[-1] = u[0]: what c adds, c' takes */
        return (struct step){1, 0};
    if (!w->at_read) {
        s.u += c * (1 - b);
        s.e += c * b - w->c_last;
    } else if (held) { /* y[0] was x[0] + c u[0] */
        s.u -= c;
    }
    return s;
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
    struct pl_wstage *w = &store->stages[stage];
    const float *before = w->n_e && n > 0 ? w->e[n % w->n_e] : NULL; /* else 0 */
    const bool held = hold && n == 0;
    double gate = NAN; /* max(0, cos(u, e)); 1 where there is no direction yet */
    int rc = 0;
    if (w->gate && before)
        rc = pl_cosine(store->device, w->plan.floats, u, before, &gate);
    const double c = w->look.c * (isnan(gate) ? 1 : fmax(0, gate));
    const double b = held ? 0 : w->look.smooth;
    const struct step step = stored_step(w, held, b, c);
    float *next = pl_wstore_read(store, stage, n + 1);
    float *stored = w->at_read ? w->live : next;
    struct sum x = {0}, look = {0}, e = {0};
    add(&x, 1, w->at_read ? stored : pl_wstore_read(store, stage, n));
    add(&x, -step.u, u);
    add(&x, -step.e, before);
    if (!rc) rc = put(store, stage, &x, stored);
    add(&look, 1, stored);
    add(&look, -c * (1 - b), u);
    add(&look, -c * b, before);
    if (!rc && w->at_read) rc = put(store, stage, &look, next);
    add(&e, 1 - b, u);
    add(&e, b, before);
    if (!rc && w->n_e) rc = put(store, stage, &e, w->e[(n + 1) % w->n_e]);
    w->c_last = c;
    return rc;
}

int pl_wstore_distance(const struct pl_wstore *store, int stage, int64_t n,
                       int64_t version, double *square)
{
    *square = 0;
    if (n == version) return 0;
    return store->device->distance(store->stages[stage].plan.floats,
                                   pl_wstore_read(store, stage, n),
                                   pl_wstore_read(store, stage, version), square);
}

int pl_wstore_y(const struct pl_wstore *store, int stage, float *out)
{
    const struct pl_wstage *w = &store->stages[stage];
    struct sum sum = {0};
    add(&sum, 1, pl_wstore_read(store, stage, store->version));
    add(&sum, w->c_last, pl_wstore_direction(store, stage));
    return put(store, stage, &sum, out);
}
