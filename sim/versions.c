/* Version v = weights after v updates; tau = consuming update - version read in
 * forward. */
#include "sim/versions.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/mem.h"
#include "sim/timeline.h"

static void prepare(int stages, int m, int64_t updates, struct pl_versions *out)
{
    *out = (struct pl_versions){.stages = stages, .m = m, .updates = updates};
    out->n_micro = m * updates;
    out->forward = PL_NEW(stages * out->n_micro, int64_t);
    out->backward = PL_NEW(stages * out->n_micro, int64_t);
    out->done_s = PL_NEW(updates, double);
}

int pl_versions_from_timeline(const struct pl_timeline *t,
                              const struct pl_schedule *schedule,
                              struct pl_versions *out)
{
    const struct pl_shape *shape = &schedule->shape;
    const struct pl_layout *layout = &schedule->layout;
    struct pl_versions made;
    prepare(layout->C, shape->m, shape->updates, &made);
    int64_t *live = PL_NEW(layout->C * layout->R, int64_t);
    int rc = PL_OK;
    for (int64_t i = 0; i < t->n_ops && !rc; i++) { /* rows of a device run in order */
        int q = t->chunk[i], chunk = q % layout->C;
        int64_t micro = t->micro[i], at = chunk * made.n_micro + micro;
        if (t->kind[i] == PL_OP_F) {
            int64_t version = schedule->type->reads(shape, chunk, micro / shape->m);
            if (version == PL_READS_LIVE) version = live[q];
            if (version == PL_READS_FIRST)
                version = chunk ? made.forward[micro] : live[q];
            if (version == PL_READS_GROUP)
                version =
                    micro % shape->m ? made.forward[at - micro % shape->m] : live[q];
            if (version > live[q])
                rc = pl_fail(
                    PL_ECHECK,
                    "stage %d: F %lld reads version %lld, only %lld is written", chunk,
                    (long long)micro, (long long)version, (long long)live[q]);
            made.forward[at] = made.backward[at] = version;
        } else if (t->kind[i] == PL_OP_U) {
            double end = pl_seconds(t->end[i]);
            live[q] = micro + 1;
            if (made.done_s[micro] < end) made.done_s[micro] = end;
        } else if (t->kind[i] != PL_OP_W && schedule->type->nostash) {
            made.backward[at] = live[q];
        }
    }
    free(live);
    if (rc)
        pl_versions_free(&made);
    else
        *out = made;
    return rc;
}

void pl_versions_constant(int stages, int64_t updates, int m, const int64_t *tau,
                          double step_s, struct pl_versions *out)
{
    prepare(stages, m, updates, out);
    for (int s = 0; s < stages; s++)
        for (int64_t i = 0; i < out->n_micro; i++) {
            int64_t version = i / m - tau[s];
            if (version < 0) version = 0;
            out->forward[s * out->n_micro + i] = version;
            out->backward[s * out->n_micro + i] = version;
        }
    for (int64_t n = 0; n < updates; n++) out->done_s[n] = (double)(n + 1) * step_s;
}

/* Rows of a, then rows of b shifted by a's updates. */
static int64_t *join(const int64_t *a, int64_t n_a, const int64_t *b, int64_t n_b,
                     int64_t shift, int stages)
{
    int64_t n = n_a + n_b, *out = PL_NEW(stages * n, int64_t);
    for (int s = 0; s < stages; s++) {
        if (n_a) memcpy(out + s * n, a + s * n_a, (size_t)n_a * sizeof *out);
        for (int64_t i = 0; i < n_b; i++) out[s * n + n_a + i] = b[s * n_b + i] + shift;
    }
    return out;
}

int pl_versions_append(struct pl_versions *a, const struct pl_versions *b)
{
    if (a->updates && (a->stages != b->stages || a->m != b->m))
        return pl_fail(PL_ECONFIG,
                       "segments of one run need equally many model chunks and "
                       "microbatches: %d x %d, then %d x %d",
                       a->stages, a->m, b->stages, b->m);
    struct pl_versions all = *b;
    double end = a->updates ? a->done_s[a->updates - 1] : 0;
    all.updates = a->updates + b->updates;
    all.n_micro = a->n_micro + b->n_micro;
    all.forward =
        join(a->forward, a->n_micro, b->forward, b->n_micro, a->updates, b->stages);
    all.backward =
        join(a->backward, a->n_micro, b->backward, b->n_micro, a->updates, b->stages);
    all.done_s = PL_NEW(all.updates, double);
    for (int64_t n = 0; n < all.updates; n++)
        all.done_s[n] = n < a->updates ? a->done_s[n] : end + b->done_s[n - a->updates];
    pl_versions_free(a);
    *a = all;
    return PL_OK;
}

bool pl_versions_fused(const struct pl_versions *v, int64_t n)
{
    assert(n >= 0 && n < v->updates);
    for (int s = 0; s < v->stages; s++) {
        const int64_t *f = v->forward + s * v->n_micro,
                      *b = v->backward + s * v->n_micro;
        for (int64_t i = n * v->m; i < (n + 1) * v->m; i++)
            if (f[i] != f[n * v->m] || b[i] != b[n * v->m]) return false;
    }
    return true;
}

bool pl_versions_global(const struct pl_versions *v, int64_t n)
{
    assert(n >= 0 && n < v->updates);
    int64_t version = v->forward[n * v->m];
    for (int s = 0; s < v->stages; s++)
        for (int64_t i = n * v->m; i < (n + 1) * v->m; i++)
            if (v->forward[s * v->n_micro + i] != version ||
                v->backward[s * v->n_micro + i] != version)
                return false;
    return true;
}

int64_t pl_versions_max_tau(const struct pl_versions *v, int stage)
{
    int64_t most = 0;
    for (int64_t i = 0; i < v->n_micro; i++) {
        int64_t tau = pl_versions_tau(v, stage, i);
        if (tau > most) most = tau;
    }
    return most;
}

void pl_versions_free(struct pl_versions *v)
{
    if (!v) return;
    free(v->forward);
    free(v->backward);
    free(v->done_s);
    *v = (struct pl_versions){0};
}
