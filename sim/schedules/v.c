/* Base orders on two chunks in a V. PL_V_ZERO is the hand-made order of ZB-V (Qi et
 * al., arXiv 2401.10241). PL_V_HALF and PL_V_MIN repeat the building block of Qi et al.
 * (NeurIPS 2024, arXiv 2405.15362) every 6 units: on device r at units
 *            F first chunk   F second     B second                B first
 *   V-Half   2 r             3P - r - 2   3P + g + 2 r - 1        6P + g - r - 2
 *   V-Min    r               2P - r - 1   2P + g + r              4P + g - r - 1
 * g = 3 for even P (V-Half), 2 when 3 divides P (V-Min), else 0. PL_V_SERIAL has at
 * most limit microbatches between their first F and last B; it fits any limit. */
#include "sim/schedules/v.h"

#include <stdlib.h>

#include "base/mem.h"
#include "sim/schedules/emit.h"

/* Activations of a whole stage that a device holds in the base order. */
static int memory_of(enum pl_v_base base, int P)
{
    switch (base) {
    case PL_V_ZERO:
        return P;
    case PL_V_HALF:
        return (P + 2) / 2;
    case PL_V_MIN:
        return (P + 4) / 3;
    default:
        return 1;
    }
}

/* Next F or B of the first (0) or second (1) chunk; microbatches from m on exist only
 * on paper, the order of the rest stays valid without them. */
static void put(struct pl_plan *plan, int device, int kind, int second, int64_t *count)
{
    const struct pl_shape *shape = &plan->out->shape;
    int64_t micro = count[2 * second + (kind == PL_OP_B)]++;
    if (micro < shape->m)
        pl_plan_put(plan, device, kind, second ? 2 * shape->P - 1 - device : device,
                    micro);
}

static void put_zero(struct pl_plan *plan, int r)
{
    int P = plan->out->shape.P, m = plan->out->shape.m;
    int64_t count[4] = {0}; /* F and B of the first chunk, of the second */
    if (m < 2 * P) m = 2 * P;
    for (int i = 0; i < 2 * (P - r) - 1; i++) put(plan, r, PL_OP_F, 0, count);
    for (int i = 0; i < r; i++) {
        put(plan, r, PL_OP_F, 1, count);
        put(plan, r, PL_OP_F, 0, count);
    }
    for (int i = 0; i < P - r; i++) {
        put(plan, r, PL_OP_F, 1, count);
        put(plan, r, PL_OP_B, 1, count);
    }
    while (count[2] < count[0] || count[0] < m) {
        if (count[0] < m) put(plan, r, PL_OP_F, 0, count);
        put(plan, r, PL_OP_B, 0, count);
        put(plan, r, PL_OP_F, 1, count);
        put(plan, r, PL_OP_B, 1, count);
    }
    for (int i = 0; i < r; i++) {
        put(plan, r, PL_OP_B, 0, count);
        put(plan, r, PL_OP_B, 1, count);
    }
    for (int i = 0; i < P - r; i++) put(plan, r, PL_OP_B, 0, count);
}

/* One building block every 6 units, in order of time. */
static void put_block(struct pl_plan *plan, int r, enum pl_v_base base)
{
    static const int kind[4] = {PL_OP_F, PL_OP_F, PL_OP_B, PL_OP_B},
                     second[4] = {0, 1, 1, 0}, slot[4] = {0, 2, 3, 1};
    int64_t P = plan->out->shape.P, m = plan->out->shape.m, count[4] = {0};
    int64_t g = base == PL_V_HALF ? (P % 2 ? 0 : 3) : (P % 3 ? 0 : 2);
    int64_t half[4] = {2 * r, 3 * P - r - 2, 3 * P + g + 2 * r - 1, 6 * P + g - r - 2};
    int64_t least[4] = {r, 2 * P - r - 1, 2 * P + g + r, 4 * P + g - r - 1};
    const int64_t *at = base == PL_V_HALF ? half : least;
    for (int64_t left = 4 * m; left > 0; left--) {
        int next = -1;
        for (int k = 0; k < 4; k++) {
            if (count[slot[k]] == m) continue;
            if (next < 0 ||
                at[k] + 6 * count[slot[k]] < at[next] + 6 * count[slot[next]])
                next = k;
        }
        put(plan, r, kind[next], second[next], count);
    }
}

struct serial { /* unit times: when F and B of a chunk end; 0: not yet */
    int64_t *f, *b, *f_done, *b_done;
};

static bool serial_step(struct pl_plan *plan, struct serial *s, int c, int kind,
                        int64_t now)
{
    const struct pl_shape *shape = &plan->out->shape;
    int64_t m = shape->m, last = 2 * (int64_t)shape->P - 1;
    int64_t i = kind == PL_OP_F ? s->f_done[c] : s->b_done[c];
    if (i == m) return false;
    int64_t ready = 0;
    if (kind == PL_OP_F) {
        if (c == 0 && 2 * (i + 1 - s->b_done[0]) > plan->limit) return false;
        if (c > 0 && i >= s->f_done[c - 1]) return false;
        if (c > 0) ready = s->f[(c - 1) * m + i];
    } else {
        if (i >= s->f_done[c] || (c < last && i >= s->b_done[c + 1])) return false;
        ready = s->f[c * m + i];
        if (c < last && s->b[(c + 1) * m + i] > ready) ready = s->b[(c + 1) * m + i];
    }
    if (ready > now) return false;
    (kind == PL_OP_F ? s->f : s->b)[c * m + i] = now + 1;
    (kind == PL_OP_F ? s->f_done : s->b_done)[c]++;
    pl_plan_put(plan, pl_place_zigzag(shape, c, 0), kind, c, i);
    return true;
}

static void put_serial(struct pl_plan *plan)
{
    const struct pl_shape *shape = &plan->out->shape;
    int64_t C = 2 * (int64_t)shape->P, m = shape->m;
    struct serial s = {PL_NEW(C * m, int64_t), PL_NEW(C * m, int64_t),
                       PL_NEW(C, int64_t), PL_NEW(C, int64_t)};
    for (int64_t now = 0; s.b_done[0] < m; now++)
        for (int d = 0; d < shape->P; d++) { /* B first, second chunk first */
            int c[2] = {(int)C - 1 - d, d};
            bool ran = false;
            for (int k = 0; k < 4 && !ran; k++)
                ran = serial_step(plan, &s, c[k % 2], k < 2 ? PL_OP_B : PL_OP_F, now);
        }
    free(s.f);
    free(s.b);
    free(s.f_done);
    free(s.b_done);
}

static void put_base(struct pl_plan *plan, enum pl_v_base base)
{
    pl_plan_clear(plan);
    if (base == PL_V_SERIAL) put_serial(plan);
    for (int d = 0; d < plan->out->shape.P && base != PL_V_SERIAL; d++) {
        if (base == PL_V_ZERO)
            put_zero(plan, d);
        else
            put_block(plan, d, base);
    }
}

/* none ahead, all but one, all */
static void set_ahead(const struct pl_plan *plan, int k, int *ahead)
{
    for (int d = 0; d < plan->out->shape.P; d++)
        ahead[d] = k ? (int)plan->limit - 2 + k : 0;
}

static void search(struct pl_plan *plan)
{
    int *ahead = PL_NEW(plan->out->shape.P, int);
    for (int k = 0; k < 3; k++) {
        set_ahead(plan, k, ahead);
        pl_plan_try_all(plan, ahead, NULL);
    }
    free(ahead);
}

/* The same where every wait is a whole number of passes: what fills it fits. */
static void search_unit(struct pl_plan *plan)
{
    int *ahead = PL_NEW(plan->out->shape.P, int);
    for (int k = 0; k < 6; k++) {
        struct pl_plan_policy policy = {.weight_first = k / 3, .ahead = ahead};
        set_ahead(plan, k % 3, ahead);
        pl_plan_try(plan, &policy);
    }
    free(ahead);
}

static void copy_base(const struct pl_plan *from, struct pl_plan *to)
{
    int64_t each = from->n + from->n / 2;
    pl_plan_clear(to);
    for (int d = 0; d < from->out->shape.P; d++)
        for (int64_t i = 0; i < from->filled[d]; i++) {
            const struct pl_op *op = &from->base[d * each + i];
            pl_plan_put(to, d, op->kind, op->chunk, op->micro);
        }
}

/* Plan as if all passes took the same time and nothing for transfers; its order of F
 * and B is where the search starts a second time. */
static void adopt_unit(struct pl_plan *plan)
{
    static const pl_tick one = 2, zero = 0;
    struct pl_cost_spec spec = {.forward = {&one, 1},
                                .backward = {&one, 1},
                                .weight = {&one, 1},
                                .update = {&zero, 1},
                                .link = {&zero, 1}};
    struct pl_cost unit;
    struct pl_plan ideal;
    if (pl_cost_new(&plan->out->layout, &spec, &unit)) return; /* cannot be */
    pl_plan_begin(&ideal, &unit, plan->limit, plan->out);
    copy_base(plan, &ideal);
    search_unit(&ideal);
    pl_plan_adopt(&ideal);
    copy_base(&ideal, plan);
    pl_plan_end(&ideal);
    pl_cost_free(&unit);
}

int pl_v_emit(const struct pl_cost *cost, enum pl_v_base base, struct pl_schedule *out)
{
    int64_t limit = 2 * (int64_t)(out->shape.limit ? out->shape.limit
                                                   : memory_of(base, out->shape.P));
    struct pl_plan plan;
    pl_plan_begin(&plan, cost, limit, out);
    put_base(&plan, base);
    while (pl_plan_peak(&plan) > limit) put_base(&plan, ++base);
    search(&plan);
    if (base == PL_V_HALF || base == PL_V_MIN) {
        adopt_unit(&plan);
        search(&plan);
    }
    pl_plan_emit(&plan);
    pl_plan_end(&plan);
    return 0;
}
