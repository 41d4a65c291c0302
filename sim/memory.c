/* Rows of a device run one after another, so one pass in order of rows sees its
 * allocations and releases in order of time:
 *   F start  + activation        B end  - (activation - kept)      W end  - kept
 *   B, BW start + working, end - working
 *   BW end   - activation        U start + weight if the old version is still to be
 * read last backward of an old version ends  - weight Accounting per version and
 * microbatch as in Narayanan et al., ICML 2021 (2BW) and Qi et al., ICLR 2024 (release
 * by B and by W). */
#include "sim/memory.h"

#include <stdlib.h>

#include "base/err.h"
#include "base/mem.h"

const char *const pl_memory_names[PL_N_MEMORY] = {
    "weights", "versions", "gradients", "optimizer", "corrector", "activations"};

struct account {
    uint64_t part[PL_N_MEMORY], total;
};

struct walk {
    const struct pl_schedule *sched;
    const struct pl_timeline *t;
    const struct pl_chunk_bytes *bytes;
    int64_t n_versions;
    /* [instances * n_versions] row of the last backward that reads a version */
    int64_t *last;
    int64_t *live; /* [instances] */
    struct account *account;
    struct pl_memory out;
};

static const struct pl_chunk_bytes *bytes_of(const struct walk *w, int instance)
{
    return &w->bytes[instance % w->sched->layout.C];
}

static void change(struct walk *w, int device, pl_tick time, int part, uint64_t plus,
                   uint64_t minus)
{
    struct account *a = &w->account[device];
    struct pl_device_memory *d = &w->out.device[device];
    if (plus == minus) return;
    a->part[part] += plus - minus;
    a->total += plus - minus;
    int64_t i = w->out.n - 1;
    if (i >= 0 && w->out.on[i] == device && w->out.time[i] == time) {
        w->out.bytes[i] = a->total;
    } else {
        i = w->out.n++;
        w->out.on[i] = device;
        w->out.time[i] = time;
        w->out.bytes[i] = a->total;
    }
    if (a->total <= d->peak) return;
    d->peak = a->total;
    d->when = time;
    for (int k = 0; k < PL_N_MEMORY; k++) d->part[k] = a->part[k];
}

static bool is_backward(int kind)
{
    return kind == PL_OP_B || kind == PL_OP_BW;
}

static void find_last_backwards(struct walk *w, const struct pl_versions *versions)
{
    int C = w->sched->layout.C, n = C * w->sched->layout.R;
    w->last = PL_NEW(n * w->n_versions, int64_t);
    for (int64_t i = 0; i < n * w->n_versions; i++) w->last[i] = -1;
    for (int64_t i = 0; i < w->t->n_ops; i++) {
        int q = w->t->chunk[i];
        if (!is_backward(w->t->kind[i])) continue;
        int64_t version =
            versions->backward[q % C * versions->n_micro + w->t->micro[i]];
        w->last[q * w->n_versions + version] = i;
    }
}

/* What a device holds whatever runs. */
static int start_accounts(struct walk *w)
{
    const struct pl_layout *layout = &w->sched->layout;
    for (int q = 0; q < layout->C * layout->R; q++) {
        const struct pl_chunk_bytes *b = bytes_of(w, q);
        struct account *a = &w->account[layout->device[q]];
        const uint64_t part[] = {b->weight,    0, b->gradient, b->optimizer,
                                 b->corrector, 0};
        for (int k = 0; k < PL_N_MEMORY; k++)
            if (__builtin_add_overflow(a->total, part[k], &a->total) ||
                a->total > INT64_MAX)
                return pl_fail(PL_ECONFIG,
                               "device %d would hold more than 2^63 bytes of weights",
                               layout->device[q]);
            else
                a->part[k] += part[k];
    }
    for (int d = 0; d < layout->P; d++) {
        struct account start = w->account[d];
        w->account[d] = (struct account){{0}, 0};
        for (int k = 0; k < PL_N_MEMORY; k++) change(w, d, 0, k, start.part[k], 0);
    }
    return PL_OK;
}

static void row_starts(struct walk *w, int64_t i)
{
    int q = w->t->chunk[i], device = w->t->device[i];
    const struct pl_chunk_bytes *b = bytes_of(w, q);
    if (w->t->kind[i] == PL_OP_F)
        change(w, device, w->t->start[i], PL_MEMORY_ACTIVATIONS, b->activation, 0);
    if (is_backward(w->t->kind[i]))
        change(w, device, w->t->start[i], PL_MEMORY_ACTIVATIONS, b->working, 0);
    if (w->t->kind[i] == PL_OP_U && w->last[q * w->n_versions + w->t->micro[i]] > i)
        change(w, device, w->t->start[i], PL_MEMORY_VERSIONS, b->weight, 0);
}

static void row_ends(struct walk *w, const struct pl_versions *versions, int64_t i)
{
    int q = w->t->chunk[i], device = w->t->device[i], kind = w->t->kind[i];
    const struct pl_chunk_bytes *b = bytes_of(w, q);
    pl_tick end = w->t->end[i];
    if (kind == PL_OP_U) w->live[q] = w->t->micro[i] + 1;
    if (kind == PL_OP_B)
        change(w, device, end, PL_MEMORY_ACTIVATIONS, 0, b->activation - b->kept);
    if (kind == PL_OP_W) change(w, device, end, PL_MEMORY_ACTIVATIONS, 0, b->kept);
    if (kind == PL_OP_BW)
        change(w, device, end, PL_MEMORY_ACTIVATIONS, 0, b->activation);
    if (!is_backward(kind)) return;
    change(w, device, end, PL_MEMORY_ACTIVATIONS, 0, b->working);
    int64_t version =
        versions->backward[q % w->sched->layout.C * versions->n_micro + w->t->micro[i]];
    if (version < w->live[q] && w->last[q * w->n_versions + version] == i)
        change(w, device, end, PL_MEMORY_VERSIONS, 0, b->weight);
}

/* Rows of each device in turn: starts and ends interleave in time. */
static void walk_rows(struct walk *w, const struct pl_versions *versions)
{
    const struct pl_timeline *t = w->t;
    int64_t *before = PL_NEW(w->out.devices, int64_t); /* row to be ended, + 1 */
    int64_t *pair = PL_NEW(w->out.devices, int64_t);   /* first of a pair, + 1 */
    for (int64_t i = 0; i < t->n_ops; i++) {
        int d = t->device[i];
        int64_t last = before[d] - 1;
        if (last >= 0 && t->start[i] < t->end[last]) { /* runs together with it */
            pair[d] = before[d];
        } else {
            if (pair[d]) row_ends(w, versions, pair[d] - 1);
            if (last >= 0) row_ends(w, versions, last);
            pair[d] = 0;
        }
        row_starts(w, i);
        before[d] = i + 1;
    }
    for (int d = 0; d < w->out.devices; d++) {
        if (pair[d]) row_ends(w, versions, pair[d] - 1);
        if (before[d]) row_ends(w, versions, before[d] - 1);
    }
    free(before);
    free(pair);
}

static int check_activations(const struct walk *w, int64_t n_micro)
{
    const struct pl_layout *layout = &w->sched->layout;
    double most = (double)n_micro + 1;
    double sum = 0;
    for (int q = 0; q < layout->C * layout->R; q++)
        sum += ((double)bytes_of(w, q)->activation + (double)bytes_of(w, q)->kept +
                (double)bytes_of(w, q)->working) *
                   most +
               2.0 * (double)bytes_of(w, q)->weight;
    if (sum < 9e18) return PL_OK;
    return pl_fail(PL_ECONFIG,
                   "activations of all microbatches may add up to more than "
                   "2^63 bytes");
}

int pl_memory_compute(const struct pl_schedule *schedule,
                      const struct pl_timeline *timeline,
                      const struct pl_versions *versions,
                      const struct pl_chunk_bytes *bytes, struct pl_memory *out)
{
    const struct pl_layout *layout = &schedule->layout;
    struct walk w = {schedule, timeline, bytes, versions->updates + 1,
                     NULL,     NULL,     NULL,  {.devices = layout->P}};
    int rc = check_activations(&w, versions->n_micro);
    if (rc) return rc;
    int64_t room = 4 * timeline->n_ops + PL_N_MEMORY * layout->P;
    w.out.device = PL_NEW(layout->P, struct pl_device_memory);
    w.out.on = PL_NEW(room, int32_t);
    w.out.time = PL_NEW(room, pl_tick);
    w.out.bytes = PL_NEW(room, uint64_t);
    w.live = PL_NEW(layout->C * layout->R, int64_t);
    w.account = PL_NEW(layout->P, struct account);
    find_last_backwards(&w, versions);
    rc = start_accounts(&w);
    if (!rc) walk_rows(&w, versions);
    free(w.last);
    free(w.live);
    free(w.account);
    if (rc)
        pl_memory_free(&w.out);
    else
        *out = w.out;
    return rc;
}

int pl_memory_fullest(const struct pl_memory *memory)
{
    int most = 0;
    for (int d = 1; d < memory->devices; d++)
        if (memory->device[d].peak > memory->device[most].peak) most = d;
    return most;
}

void pl_memory_free(struct pl_memory *memory)
{
    if (!memory) return;
    free(memory->device);
    free(memory->on);
    free(memory->time);
    free(memory->bytes);
    *memory = (struct pl_memory){0};
}
