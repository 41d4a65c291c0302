/* Steps of one tensor and of all tensors of a stage. Small matrices leave threads idle
 * inside one product, so where the CPU computes, matrices of one shape are handed out
 * whole, each with the scratch of its slot, as long as that keeps all threads busy; the
 * others are worked on one after another. No operation's bits depend on the number of
 * threads, nor on which tensors are worked on beside it. A device with memory of its
 * own gets the matrices of one shape as one batch of products instead. */
#include <stdio.h>
#include <stdlib.h>
#include <threads.h>

#include "base/err.h"
#include "base/pool.h"
#include "gpu/host_lapack.h"
#include "train/newton_schulz.h"
#include "train/optim.h"

enum {
    SHARE = 1 << 15,       /* elements for a thread where several work on a matrix */
    BATCH = 64,            /* most matrices of one call */
    BATCH_FLOATS = 1 << 25 /* scratch of one call, unless one matrix wants more */
};

/* Does tensor p take AdamW in place of the rule? */
static bool apart(const struct pl_optim *o, const struct pl_param *p)
{
    return o->type->partial && !pl_optim_takes(o, p);
}

static struct pl_param polar_of(const struct pl_optim *o, const struct pl_param *p)
{
    if (o->type->polar && !apart(o, p)) return o->type->polar(o, p);
    return (struct pl_param){.rows = 0};
}

static struct pl_ns ns_of(const struct pl_optim *o)
{
    return (struct pl_ns){o->coefficients, o->ns_steps, o->ns_eps, o->ns_clamp,
                          o->ns_bf16};
}

static size_t most(size_t a, size_t b)
{
    return a > b ? a : b;
}

size_t pl_optim_state(const struct pl_optim *o, const struct pl_param *p)
{
    return apart(o, p) ? 2 * pl_param_size(p) : o->type->state_floats(o, p);
}

size_t pl_optim_scratch(const struct pl_optim *o, const struct pl_param *p)
{
    if (apart(o, p)) return pl_decay_scratch(o, p);
    const struct pl_param polar = polar_of(o, p);
    const struct pl_ns ns = ns_of(o);
    const size_t own = o->type->scratch_floats(o, p);
    return polar.rows ? most(own, pl_ns_scratch(&ns, polar.rows, polar.cols, 1)) : own;
}

size_t pl_optim_ahead(const struct pl_optim *o, const struct pl_param *p)
{
    if (!o->exact || p->kind == PL_PARAM_BALANCE || apart(o, p)) return 0;
    return (size_t)o->type->ahead * pl_param_size(p);
}

static struct pl_optim spared(const struct pl_optim *o, const struct pl_param *p)
{
    struct pl_optim own = *o;
    const bool table = p->kind == PL_PARAM_EMBED || p->kind == PL_PARAM_HEAD;
    if ((o->decay_spares != PL_SPARES_NONE && p->kind == PL_PARAM_VECTOR) ||
        (o->decay_spares == PL_SPARES_TABLES && table))
        own.decay = own.aux_decay = 0;
    return own;
}

int pl_optim_step(const struct pl_optim *o, const struct pl_device *dev,
                  const struct pl_param *p, float *g, const float *w, float *state,
                  float *scratch, int64_t t, double rate, float *u)
{
    const struct pl_optim own = spared(o, p);
    const struct pl_param polar = polar_of(&own, p);
    const struct pl_ns ns = ns_of(&own);
    if (apart(&own, p))
        return pl_aux_step(&own, dev, p, g, w, state, scratch, t, rate, u);
    int rc = own.type->step(&own, dev, p, g, w, state, scratch, t, rate, u);
    if (rc || !polar.rows) return rc;
    rc = pl_newton_schulz(dev, &ns, polar.rows, polar.cols, 1, &u, scratch);
    return rc ? rc : own.type->finish(&own, dev, p, w, state, scratch, rate, u);
}

/* Tensors that can be worked on together: the matrices that are orthogonalised have one
 * shape, or none is and the tensors have. */
static bool alike(const struct pl_optim *o, const struct pl_param *a,
                  const struct pl_param *b)
{
    const struct pl_param x = polar_of(o, a), y = polar_of(o, b);
    if (x.rows || y.rows) return x.rows == y.rows && x.cols == y.cols;
    return a->rows == b->rows && a->cols == b->cols && a->kind == b->kind;
}

/* Is the tensor done in one call with all others that take AdamW? */
static bool listed(const struct pl_optim *o, const struct pl_param *p)
{
    return pl_adamw_listed(o) && p->kind != PL_PARAM_BALANCE &&
           (o->type == &pl_optim_adamw || apart(o, p));
}

static bool passed(const struct pl_optim *o, const struct pl_param *p)
{
    return p->kind == PL_PARAM_BALANCE || listed(o, p);
}

/* First tensor from number i on that is alike p; n: none. */
static int next_alike(const struct pl_optim *o, const struct pl_param *params, int n,
                      const struct pl_param *p, int i)
{
    while (i < n && (passed(o, &params[i]) || !alike(o, &params[i], p))) i++;
    return i;
}

/* The tensors that are alike number `first`, and how they are worked on: `together` of
 * them at once; where the CPU computes the first `shared` of them, the others one after
 * another. The rest is of the pool's parts and behind the lock: which tensor comes
 * next, which pieces of scratch are free, the first error (messages are their threads'
 * own). */
struct group {
    const struct pl_optim *o;
    const struct pl_optim_stage *s;
    int first, count, shared, together;
    size_t room; /* scratch of one of them */
    mtx_t lock;
    int next, n_free, free[PL_POOL_MOST], rc;
    char text[1024];
};

/* Of `count` matrices those that threads take whole: full rounds, and the rest unless
 * one matrix at a time keeps more threads busy. */
static int taken_whole(int count, size_t size)
{
    const int rest = count % pl_pool_threads();
    return size / SHARE > (size_t)rest ? count - rest : count;
}

/* False: an earlier tensor has the group. */
static bool group_at(const struct pl_optim *o, const struct pl_device *dev,
                     const struct pl_param *params, int n, int first, struct group *g)
{
    const struct pl_param *p = &params[first];
    g->o = o;
    g->first = first;
    g->count = 0;
    g->room = 0;
    if (passed(o, p) || next_alike(o, params, n, p, 0) < first) return false;
    for (int i = first; i < n; i = next_alike(o, params, n, p, i + 1), g->count++)
        g->room = most(g->room, pl_optim_scratch(o, &params[i]));
    g->room = (g->room + 15) / 16 * 16; /* slots begin with cache lines */
    const struct pl_param polar = polar_of(o, p);
    g->shared = 0;
    g->together = 1;
    if (dev->host_memory && p->kind == PL_PARAM_MATRIX)
        g->shared = taken_whole(g->count, pl_param_size(p));
    if (g->shared > 1)
        g->together = g->shared < pl_pool_threads() ? g->shared : pl_pool_threads();
    if (!dev->host_memory && polar.rows) {
        const struct pl_ns ns = ns_of(o);
        const size_t one = pl_ns_scratch(&ns, polar.rows, polar.cols, 2) / 2;
        const size_t fit = one ? BATCH_FLOATS / one : BATCH;
        g->together = g->count < BATCH ? g->count : BATCH;
        if (fit < (size_t)g->together) g->together = fit ? (int)fit : 1;
    }
    return true;
}

static size_t group_scratch(const struct group *g, const struct pl_device *dev,
                            const struct pl_param *p)
{
    if (dev->host_memory) return g->room * (size_t)g->together;
    const struct pl_param polar = polar_of(g->o, p);
    const struct pl_ns ns = ns_of(g->o);
    return polar.rows
               ? most(g->room, pl_ns_scratch(&ns, polar.rows, polar.cols, g->together))
               : g->room;
}

size_t pl_optim_stage_scratch(const struct pl_optim *o, const struct pl_device *dev,
                              const struct pl_param *params, int n)
{
    struct group g;
    size_t floats = 0;
    for (int i = 0; i < n; i++)
        if (group_at(o, dev, params, n, i, &g))
            floats = most(floats, group_scratch(&g, dev, &params[i]));
    return floats;
}

static int eigen_side(const struct pl_optim *o, const struct pl_param *p)
{
    return o->type->eigen_side && p->kind != PL_PARAM_BALANCE
               ? o->type->eigen_side(o, p)
               : 0;
}

size_t pl_optim_stage_lapack(const struct pl_optim *o, const struct pl_device *dev,
                             const struct pl_param *params, int n)
{
    struct group g;
    size_t bytes = 0;
    for (int i = 0; i < n && dev->host_memory; i++) {
        const int side = eigen_side(o, &params[i]);
        if (side && group_at(o, dev, params, n, i, &g))
            bytes = most(bytes, (size_t)g.together * pl_eigen_bytes(side));
    }
    return bytes;
}

int pl_optim_check(const struct pl_optim *o, const struct pl_param *params, int n)
{
    for (int i = 0; i < n; i++) {
        const int side = eigen_side(o, &params[i]);
        if (side > PL_EIGEN_MOST)
            return pl_fail(
                PL_ECONFIG,
                "optimizer.name: %s takes eigenvectors of sides up to %d, %s "
                "is %d x %d; use optimizer.one_sided: yes where the other side "
                "is shorter, or optimizer.name: soap, which leaves long sides "
                "out",
                o->type->name, PL_EIGEN_MOST, params[i].name, params[i].rows,
                params[i].cols);
    }
    return 0;
}

static int step_one(const struct group *g, int i, float *scratch)
{
    const struct pl_optim_stage *s = g->s;
    const struct pl_param *p = &s->params[i];
    return pl_optim_step(g->o, s->dev, p, s->g + p->offset, s->w + p->offset,
                         s->state ? s->state + s->state_at[i] : NULL, scratch, s->t,
                         s->rate, s->u + p->offset);
}

static int after(const struct group *g, int i)
{
    return next_alike(g->o, g->s->params, g->s->n, &g->s->params[g->first], i + 1);
}

/* A part does the tensor that is next, whichever part it is. */
static void part(void *context, int unused)
{
    struct group *g = context;
    (void)unused;
    mtx_lock(&g->lock);
    const int i = g->next, piece = g->free[--g->n_free];
    const bool stop = g->rc != 0;
    g->next = after(g, i);
    mtx_unlock(&g->lock);
    int rc = stop ? 0 : step_one(g, i, g->s->scratch + (size_t)piece * g->room);
    mtx_lock(&g->lock);
    g->free[g->n_free++] = piece;
    if (rc && !g->rc) {
        g->rc = rc;
        snprintf(g->text, sizeof g->text, "%s", pl_error_text());
    }
    mtx_unlock(&g->lock);
}

static int share_out(struct group *g)
{
    g->rc = 0;
    for (g->n_free = 0; g->n_free < g->together; g->n_free++)
        g->free[g->n_free] = g->n_free;
    if (mtx_init(&g->lock, mtx_plain) != thrd_success) abort();
    pl_pool_for(g->shared, part, g);
    mtx_destroy(&g->lock);
    return g->rc ? pl_fail(g->rc, "%s", g->text) : 0;
}

/* Tensors `from` and on, as many as one batch takes; *next is the one after them. */
static int batch(const struct group *g, int from, int *next)
{
    const struct pl_optim_stage *s = g->s;
    const struct pl_param polar = polar_of(g->o, &s->params[g->first]);
    const struct pl_ns ns = ns_of(g->o);
    float *X[BATCH];
    int n = 0, rc = 0, i = from;
    for (; i < s->n && n < g->together && !rc; i = after(g, i)) {
        const struct pl_param *p = &s->params[i];
        const struct pl_optim own = spared(g->o, p);
        X[n++] = s->u + p->offset;
        rc = own.type->step(&own, s->dev, p, s->g + p->offset, s->w + p->offset,
                            s->state + s->state_at[i], s->scratch, s->t, s->rate,
                            s->u + p->offset);
    }
    *next = i;
    if (!rc)
        rc = pl_newton_schulz(s->dev, &ns, polar.rows, polar.cols, n, X, s->scratch);
    for (i = from; i < *next && !rc; i = after(g, i)) {
        const struct pl_param *p = &s->params[i];
        const struct pl_optim own = spared(g->o, p);
        rc = own.type->finish(&own, s->dev, p, s->w + p->offset,
                              s->state + s->state_at[i], s->scratch, s->rate,
                              s->u + p->offset);
    }
    return rc;
}

static int step_listed(const struct pl_optim *o, const struct pl_optim_stage *s)
{
    enum { MOST = 64 };
    struct pl_adamw_tensor list[MOST];
    const struct pl_optim rule = o->type->partial ? pl_aux(o) : *o;
    int rc = 0, count = 0;
    for (int i = 0; i <= s->n && !rc; i++) {
        if (count && (i == s->n || count == MOST)) {
            rc = pl_adamw_list(&rule, s->dev, count, list, s->t, s->rate);
            count = 0;
        }
        if (i == s->n || !listed(o, &s->params[i])) continue;
        const struct pl_param *p = &s->params[i];
        const struct pl_optim own = spared(&rule, p);
        float *m = s->state + s->state_at[i];
        list[count++] =
            (struct pl_adamw_tensor){pl_param_size(p), own.decay, s->g + p->offset,
                                     s->w + p->offset, m,         m + pl_param_size(p),
                                     s->u + p->offset};
    }
    return rc;
}

int pl_optim_stage(const struct pl_optim *o, const struct pl_optim_stage *s)
{
    struct group g = {.s = s};
    int rc = step_listed(o, s);
    for (int first = 0; first < s->n && !rc; first++) {
        if (!group_at(o, s->dev, s->params, s->n, first, &g)) continue;
        g.next = first;
        if (g.shared) rc = share_out(&g);
        while (g.next < s->n && !rc) {
            if (g.together > 1 && !s->dev->host_memory) {
                rc = batch(&g, g.next, &g.next);
            } else {
                rc = step_one(&g, g.next, s->scratch);
                g.next = after(&g, g.next);
            }
        }
    }
    return rc;
}
