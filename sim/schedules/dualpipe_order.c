/* The order that DualPipe and DualPipeV share. A rank r of R (R = P/2 for DualPipe, P
 * for DualPipeV) holds two chunks: 0, which it meets first, and 1, on the way back.
 * With n microbatches in each and B, W apart where marked ' (W of the oldest such B):
 *   1  2(R-r-1) times F0                 5  R-r-1 times B1, (F1 & B0)
 *   2  r+1 times F0 F1                   6  r+1 times B1 B0, apart in the second half
 *   3  R-r-1 times B1' W F1              7  R-r-1 times W B0'
 *   4  n-2R+r+1 times (F0 & B1) (F1 & B0); the first pair of rank R-1 is not overlapped
 *   8  r+1 times W
 * Time of one update without transfers and U, f, b, w those of one chunk, h what a pair
 * hides, f&b = f + b + w - h; measured on this order, exact for all f, b, w:
 *   T = 2n (f+b+w) - (2n-2R-1) h + (R-1)(f&b + f - 2w + max(0, w-b))
 *       + max(0, (R-1)b - R f)
 * For b >= w and b <= R f the two devices in the middle idle (R-1)(f&b + f -
 * 2w); DeepSeek's table prints f&b + B_full - 3w = f&b + b - 2w, the same at f = b.
 * Source: the DualPipe repository of deepseek-ai (dualpipe.py, dualpipev.py, `step`).
 */
#include <math.h>

#include "sim/schedules/emit.h"

struct side {
    int instance;
    int64_t first, forward, backward; /* microbatch number of the side's first; next */
};

struct dual {
    struct pl_emit *emit;
    struct side side[2];
    const struct pl_dual *rank;
};

static void forward(struct dual *x, int side)
{
    struct side *s = &x->side[side];
    pl_emit_put(x->emit, PL_OP_F, s->instance, s->first + s->forward++);
}

static void backward(struct dual *x, int side, bool apart)
{
    struct side *s = &x->side[side];
    pl_emit_put(x->emit, apart ? PL_OP_B : PL_OP_BW, s->instance,
                s->first + s->backward++);
}

static void pair(struct dual *x, int ahead, int back)
{
    struct side *f = &x->side[ahead], *b = &x->side[back];
    pl_emit_pair(x->emit, f->instance, f->first + f->forward++, b->instance,
                 b->first + b->backward++);
}

/* W of the oldest B of this device and update that was put off. */
static void weight(struct dual *x, int64_t *from)
{
    const struct pl_schedule *out = x->emit->out;
    while (out->ops[*from].kind != PL_OP_B) ++*from;
    struct pl_op op = out->ops[(*from)++];
    pl_emit_put(x->emit, PL_OP_W, op.chunk, op.micro);
}

static void warm_up(struct dual *x, int64_t *from)
{
    int R = x->rank->ranks, r = x->rank->rank;
    for (int i = 0; i < 2 * (R - r - 1); i++) forward(x, 0);
    for (int i = 0; i <= r; i++) {
        forward(x, 0);
        forward(x, 1);
    }
    for (int i = 0; i < R - r - 1; i++) {
        backward(x, 1, true);
        weight(x, from);
        forward(x, 1);
    }
}

static void steady(struct dual *x)
{
    int R = x->rank->ranks, r = x->rank->rank;
    for (int64_t i = 0; i < x->rank->n - 2 * R + r + 1; i++) {
        if (i == 0 && r == R - 1) {
            forward(x, 0);
            backward(x, 1, false);
        } else {
            pair(x, 0, 1);
        }
        pair(x, 1, 0);
    }
    for (int i = 0; i < R - r - 1; i++) {
        backward(x, 1, false);
        pair(x, 1, 0);
    }
}

static void cool_down(struct dual *x, int64_t *from)
{
    int R = x->rank->ranks, r = x->rank->rank;
    bool apart = false;
    for (int i = 0; i <= r; i++) {
        bool half = i == (r + 1) / 2;
        apart |= half && r % 2 == 1;
        backward(x, 1, apart);
        apart |= half;
        backward(x, 0, apart);
    }
    for (int i = 0; i < R - r - 1; i++) {
        weight(x, from);
        backward(x, 0, true);
    }
    for (int i = 0; i <= r; i++) weight(x, from);
}

void pl_emit_dual(struct pl_emit *emit, const struct pl_dual *rank)
{
    struct dual x = {.emit = emit, .rank = rank};
    int64_t from = emit->out->n_ops;
    for (int k = 0; k < 2; k++)
        x.side[k] = (struct side){rank->instance[k], rank->first[k], 0, 0};
    warm_up(&x, &from);
    steady(&x);
    cool_down(&x, &from);
}

/* Pairs of a device in an update: the ends have the fewest and so the most work. */
static int64_t pairs_of(int R, int64_t n, int r)
{
    return 2 * n - 3 * R + r + 1 - (r == R - 1);
}

void pl_closed_dual(const struct pl_shape *shape, const struct pl_cost *cost, int R,
                    int64_t n, struct pl_closed *out)
{
    *out = (struct pl_closed){NAN, NAN, NAN, NAN};
    if (cost->update[0] > 0 || pl_closed_link(shape, cost) > 0) return;
    pl_tick F = cost->forward[0], both = cost->both[0];
    double f = pl_seconds(F), b = pl_seconds(cost->backward[0]),
           w = pl_seconds(cost->weight[0]),
           pair = pl_seconds(pl_cost_pair(cost, F, both));
    double work = 2 * (double)n * (f + b + w), hidden = f + b + w - pair;
    double idle =
        (R - 1) * (pair + f - 2 * w + fmax(0, w - b)) + fmax(0, (R - 1) * b - R * f);
    double T = work - (double)pairs_of(R, n, R - 1) * hidden + idle;
    double ideal = work - (double)pairs_of(R, n, 0) * hidden;
    out->makespan_s = (double)shape->updates * T;
    out->bubble_over_ideal = (T - ideal) / ideal;
    out->step_s = T;
}
