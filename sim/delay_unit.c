/* One delay, five counts. On stage i = 1..P of alternating 1F1B without flush, update
 * every N microbatches (w = P - i microbatches between F and the update that follows):
 *   updates       w / N           consuming update - version read (mean)
 *   microbatches  w
 *   ajanthan      floor((2 w + 1) / (2 N))
 *   pipemare      (2 w + 1) / N   minibatches, in slots of one F and one BW
 *   ticks         2 w             F to BW, when each tick runs one F and one BW
 * Sources: see the table. ticks is also LayerPipe2's 2 S(l), S stages after the layer,
 * and the forward-to-update distance 2 (P-1-s) of marin's megagpt. A pipeline in slots
 * (pipemare) has w = 2 (P - i) + 1 microbatches in between, what 2 w + 1 stands for. */
#include "sim/delay_unit.h"

#include <math.h>
#include <string.h>

static double to_updates(double w, int m, bool slots)
{
    (void)slots;
    return w / m;
}

static double to_microbatches(double w, int m, bool slots)
{
    (void)m;
    (void)slots;
    return w;
}

static double in_slots(double w, bool slots)
{
    return slots ? w : 2 * w + 1;
}

static double to_pipemare(double w, int m, bool slots)
{
    return in_slots(w, slots) / m;
}

static double to_ajanthan(double w, int m, bool slots)
{
    return floor(in_slots(w, slots) / (2.0 * m));
}

static double to_ticks(double w, int m, bool slots)
{
    (void)m;
    return in_slots(w, slots) - 1;
}

const struct pl_delay_unit pl_delay_units[] = {
    {"updates", "consuming update - version read in forward", "this program's own",
     to_updates},
    {"microbatches", "tau * m: microbatches from forward to update", "arXiv 1806.03377",
     to_microbatches},
    {"pipemare", "(2 (P-i) + 1) / N: minibatches, in slots of one F and one BW",
     "arXiv 1910.05124", to_pipemare},
    {"ajanthan", "floor((2 (P-i) + 1) / (2 K)), K = m: whole updates",
     "arXiv 2505.01099", to_ajanthan},
    {"ticks", "2 (P-i): ticks from F to BW, a tick runs one F and one BW",
     "arXiv 2512.08160", to_ticks},
    {NULL, NULL, NULL, NULL}};

const char *const *pl_delay_unit_names(void)
{
    enum { N = sizeof pl_delay_units / sizeof *pl_delay_units };
    static const char *names[N];
    for (int i = 0; i < N; i++) names[i] = pl_delay_units[i].name;
    return names;
}

const struct pl_delay_unit *pl_delay_unit_find(const char *name)
{
    for (const struct pl_delay_unit *u = pl_delay_units; u->name; u++)
        if (!strcmp(u->name, name)) return u;
    return NULL;
}

double pl_delay_convert(const struct pl_delay_unit *unit,
                        const struct pl_schedule_type *type, int m, double tau)
{
    if (!type->async) return 0;
    /* tau is a mean over whole groups: tau m is a whole number but for rounding */
    double w = tau * m, whole = nearbyint(w);
    if (fabs(w - whole) <= 1e-9 * (1 + fabs(w))) w = whole;
    return unit->convert(w, m, type->slots);
}
