/* Writing a schedule as PyTorch's CSV. Compute only: a grid in which every op takes one
 * step and starts at the first step after those it needs (as _add_bubbles_to_actions).
 * With communication: the order of _add_send_recv, one op of each rank in turn, its
 * SEND behind it and the RECV on the other rank at once. */
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/file.h"
#include "base/mem.h"
#include "sim/custom_cell.h"

enum { F_DONE = 1, B_DONE = 2 };

struct text {
    char *at;
    size_t n, room;
};

struct writer {
    const struct pl_schedule *sched;
    int64_t m;
    struct pl_op *ops;    /* of the first update */
    int64_t *first;       /* [P+1] */
    int64_t *cursor;      /* [P] */
    unsigned char *state; /* [C * m] */
    struct text *row;     /* [P] */
};

static void add(struct text *text, char *piece)
{
    size_t n = strlen(piece);
    if (text->n + n + 1 > text->room) {
        text->room = 2 * (text->n + n + 1);
        text->at = pl_grow(text->at, text->room, 1);
    }
    memcpy(text->at + text->n, piece, n + 1);
    text->n += n;
    free(piece);
}

static const char *act_of(const struct pl_op *op)
{
    static const int acts[] = {PL_ACT_F, PL_ACT_I, PL_ACT_W, PL_ACT_B};
    return pl_act_names[acts[op->kind]];
}

static char *name_of(const struct pl_op *op)
{
    if (op->pair)
        return pl_printf("(%d%s%lld;%d%s%lld)OVERLAP_F_B", op->chunk, act_of(op),
                         (long long)op->micro, op[1].chunk, act_of(op + 1),
                         (long long)op[1].micro);
    return pl_printf("%d%s%lld", op->chunk, act_of(op), (long long)op->micro);
}

static unsigned char state_of(const struct writer *w, int chunk, int64_t micro)
{
    return w->state[chunk * w->m + micro];
}

/* What it needs is done; ops of its own device are done in issue order. */
static bool ready_one(const struct writer *w, const struct pl_op *op)
{
    int C = w->sched->layout.C;
    if (op->kind == PL_OP_W) return true;
    if (op->kind == PL_OP_F)
        return op->chunk == 0 || (state_of(w, op->chunk - 1, op->micro) & F_DONE);
    return op->chunk == C - 1 || (state_of(w, op->chunk + 1, op->micro) & B_DONE);
}

static bool ready(const struct writer *w, const struct pl_op *op)
{
    return ready_one(w, op) && (!op->pair || ready_one(w, op + 1));
}

static void finish(struct writer *w, const struct pl_op *op)
{
    unsigned char *state = &w->state[op->chunk * w->m + op->micro];
    if (op->kind == PL_OP_F) *state |= F_DONE;
    if (op->kind == PL_OP_B || op->kind == PL_OP_BW) *state |= B_DONE;
}

static bool ended(const struct writer *w, int d)
{
    return w->cursor[d] == w->first[d + 1];
}

static int stuck(const struct writer *w)
{
    return pl_fail(PL_EDEADLOCK, "schedule %s cannot execute: no rank can go on",
                   w->sched->type->name);
}

/* One step of the grid: all ranks see what was done before it. *left: ranks not at
 * their end. */
static int grid_step(struct writer *w, bool *can, bool first, int *left)
{
    int P = w->sched->shape.P;
    bool any = false;
    *left = 0;
    for (int d = 0; d < P; d++) {
        can[d] = !ended(w, d) && ready(w, &w->ops[w->cursor[d]]);
        any |= can[d];
        *left += !ended(w, d);
    }
    if (!any) return *left ? stuck(w) : PL_OK;
    for (int d = 0; d < P; d++) {
        if (ended(w, d)) continue;
        if (!first) add(&w->row[d], pl_strdup(","));
        if (!can[d]) continue;
        const struct pl_op *op = &w->ops[w->cursor[d]];
        add(&w->row[d], name_of(op));
        finish(w, op);
        if (op->pair) finish(w, op + 1);
        w->cursor[d] += 1 + op->pair;
    }
    return PL_OK;
}

static int write_grid(struct writer *w)
{
    bool *can = PL_NEW(w->sched->shape.P, bool);
    int left = 1, rc = PL_OK;
    for (bool first = true; left && !rc; first = false)
        rc = grid_step(w, can, first, &left);
    free(can);
    return rc;
}

static void add_cell(struct writer *w, int d, char *piece)
{
    if (w->row[d].n) add(&w->row[d], pl_strdup(","));
    add(&w->row[d], piece);
}

/* SEND and RECV of the result of op, if it goes to another rank. */
static void add_transfer(struct writer *w, const struct pl_op *op)
{
    const struct pl_layout *layout = &w->sched->layout;
    bool forward = op->kind == PL_OP_F;
    int to = op->chunk + (forward ? 1 : -1), here = layout->device[op->chunk];
    if (op->kind == PL_OP_W || to < 0 || to >= layout->C || layout->device[to] == here)
        return;
    long long micro = op->micro;
    char letter = forward ? 'F' : 'B';
    add_cell(w, here, pl_printf("%dSEND_%c%lld", op->chunk, letter, micro));
    add_cell(w, layout->device[to], pl_printf("%dRECV_%c%lld", to, letter, micro));
}

static int write_with_communication(struct writer *w)
{
    int P = w->sched->shape.P, left = P;
    while (left) {
        bool any = false;
        left = 0;
        for (int d = 0; d < P; d++) {
            if (ended(w, d)) continue;
            left++;
            const struct pl_op *op = &w->ops[w->cursor[d]];
            if (!ready(w, op)) continue;
            any = true;
            add_cell(w, d, name_of(op));
            for (int k = 0; k <= op->pair; k++) {
                finish(w, op + k);
                add_transfer(w, op + k);
            }
            w->cursor[d] += 1 + op->pair;
        }
        if (left && !any) return stuck(w);
    }
    return PL_OK;
}

/* The ops of the first update. */
static void take_ops(struct writer *w, const struct pl_schedule *sched)
{
    int P = sched->shape.P;
    int64_t n = 0;
    *w = (struct writer){.sched = sched, .m = sched->shape.m};
    w->ops = PL_NEW(sched->n_ops + 1, struct pl_op);
    w->first = PL_NEW(P + 1, int64_t);
    w->cursor = PL_NEW(P, int64_t);
    w->state = PL_NEW(sched->layout.C * w->m, unsigned char);
    w->row = PL_NEW(P, struct text);
    for (int d = 0; d < P; d++) {
        w->cursor[d] = n;
        for (int64_t i = sched->first[d]; i < sched->first[d + 1]; i++)
            if (sched->ops[i].micro < w->m) w->ops[n++] = sched->ops[i];
        w->first[d + 1] = n;
    }
}

static int save(const struct writer *w, const char *path)
{
    struct pl_file *file = pl_file_create(path);
    if (!file) return PL_EIO;
    for (int d = 0; d < w->sched->shape.P; d++)
        fprintf(pl_file_stream(file), "%s\n", w->row[d].n ? w->row[d].at : "");
    return pl_file_commit(file);
}

int pl_custom_write(const struct pl_schedule *sched, bool communication,
                    const char *path)
{
    struct writer w;
    if (sched->layout.R > 1)
        return pl_fail(PL_EUNSUP,
                       "%s: %s has two copies of the model, the CSV of PyTorch has no "
                       "way to say which (dualpipev has one)",
                       path, sched->type->name);
    if (sched->type->async)
        return pl_fail(
            PL_EUNSUP,
            "%s: the CSV of PyTorch is one update between two flushes, which "
            "%s does not have",
            path, sched->type->name);
    take_ops(&w, sched);
    int rc = communication ? write_with_communication(&w) : write_grid(&w);
    if (!rc) rc = save(&w, path);
    for (int d = 0; d < sched->shape.P; d++) free(w.row[d].at);
    free(w.ops);
    free(w.first);
    free(w.cursor);
    free(w.state);
    free(w.row);
    return rc;
}
