/* Every candidate, in a fixed order. Powers of two for tp and b, divisors for the rest:
 *   gpus = tp cp pp dp;  batch = dp b m;  ep divides the experts and cp dp
 *   v    all up to 4, and larger ones that cut the layers evenly; P v <= layers
 * A key that the configuration gives leaves its one value. One stage needs no schedule:
 * the first of those allowed stands for all. */
#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/mem.h"
#include "cli/plan.h"

struct space {
    const struct pl_plan_ask *ask;
    struct pl_plan *plan;
    int64_t room_groups, room_rows;
    bool split_given;
};

bool pl_plan_is_sync(const struct pl_plan_row *row)
{
    return !pl_schedule_types[row->type]->async;
}

/* 0: the key is not given. */
static int given(const struct space *s, const char *key)
{
    const struct pl_config *c = s->ask->config;
    return pl_config_given(c, key) ? (int)pl_config_int(c, key) : 0;
}

/* Candidates of one key below a limit: 1, 2, 4 ..., or the given value. */
static int powers(int fixed, int64_t most, int *out)
{
    int n = 0;
    if (fixed) {
        out[n++] = fixed;
        return n;
    }
    for (int64_t p = 1; p <= most && p <= INT_MAX / 2; p *= 2) out[n++] = (int)p;
    return n;
}

static void add_row(struct space *s, int group, int type, int v)
{
    struct pl_plan *plan = s->plan;
    const struct pl_plan_group *g = &plan->groups[group];
    const struct pl_schedule_type *t = pl_schedule_types[type];
    int own = t->default_v ? t->default_v : 1;
    if ((int64_t)g->pp * v > plan->model.layers) {
        plan->indivisible++;
        return;
    }
    if (plan->n_rows == s->room_rows) {
        s->room_rows = 2 * s->room_rows + 1024;
        plan->rows = pl_grow(plan->rows, (size_t)s->room_rows, sizeof *plan->rows);
    }
    struct pl_shape shape = {.P = g->pp, .m = g->m, .v = v, .updates = 1};
    shape.group = (int)pl_config_int(s->ask->config, "schedule.group");
    shape.limit = (int)pl_config_int(s->ask->config, "schedule.max_activations");
    shape.released = pl_config_real(s->ask->config, "schedule.released");
    bool fits = (v == own || t->any_v) && (!t->check || !t->check(&shape));
    plan->rows[plan->n_rows++] =
        (struct pl_plan_row){.group = group,
                             .type = type,
                             .v = v,
                             .fate = fits ? PL_FATE_OPEN : PL_FATE_UNFIT};
}

/* Chunks of one schedule. */
static void add_chunks(struct space *s, int group, int type)
{
    const struct pl_schedule_type *t = pl_schedule_types[type];
    int pp = s->plan->groups[group].pp, fixed = given(s, "schedule.chunks");
    int own = t->default_v ? t->default_v : 1, layers = s->plan->model.layers;
    if (fixed) {
        if (t->any_v || fixed == own) add_row(s, group, type, fixed);
    } else if (!t->any_v) {
        add_row(s, group, type, own);
    } else {
        for (int v = own; v <= layers / pp; v++)
            if (v <= 4 || layers % (pp * v) == 0) add_row(s, group, type, v);
    }
}

/* One stage has nothing to order: 1f1b, or the first that fits, stands for all. */
static void add_types(struct space *s, int group)
{
    const struct pl_plan *plan = s->plan;
    bool one = plan->groups[group].pp == 1;
    for (int i = 0; pl_schedule_types[i] && one; i++)
        if (s->ask->types[i] && !strcmp(pl_schedule_types[i]->name, "1f1b")) {
            add_row(s, group, i, 1);
            return;
        }
    for (int i = 0; pl_schedule_types[i]; i++) {
        int64_t before = plan->n_rows;
        if (s->ask->types[i]) add_chunks(s, group, i);
        if (one && plan->n_rows > before && plan->rows[before].fate == PL_FATE_OPEN)
            return;
    }
}

static void add_group(struct space *s, struct pl_plan_group *g)
{
    struct pl_plan *plan = s->plan;
    for (int split = 0; split < (g->pp > 1 && !s->split_given ? 2 : 1); split++) {
        g->balanced = split == 1;
        if (plan->n_groups == s->room_groups) {
            s->room_groups = 2 * s->room_groups + 256;
            plan->groups =
                pl_grow(plan->groups, (size_t)s->room_groups, sizeof *plan->groups);
        }
        plan->groups[plan->n_groups] = *g;
        add_types(s, (int)plan->n_groups++);
    }
}

/* b, m, recomputation and ZeRO of one place. */
static void add_batches(struct space *s, struct pl_plan_group *g)
{
    struct pl_plan *plan = s->plan;
    const struct pl_config *c = s->ask->config;
    int b[32], fixed_m = (int)pl_config_int(c, "schedule.microbatches");
    int64_t per_replica = s->plan->batch / g->dp;
    int n = powers(given(s, "parallel.micro_batch"), per_replica, b);
    bool zero_given = pl_config_given(c, "parallel.zero");
    for (int i = 0; i < n; i++) {
        struct pl_parallel p = {.tp = g->tp, .cp = g->cp, .ep = g->ep, .dp = g->dp};
        struct pl_microbatch batch = {b[i], plan->seq};
        p.sp = g->sp;
        if (per_replica % b[i] || (fixed_m && per_replica / b[i] != fixed_m) ||
            per_replica / b[i] > 1048576 ||
            pl_parallel_check(&p, &plan->model, &batch)) {
            plan->indivisible++;
            continue;
        }
        g->b = b[i];
        g->m = (int)(per_replica / b[i]);
        for (int zero = 0; zero < 2; zero++) {
            if (zero_given && zero != pl_config_int(c, "parallel.zero")) continue;
            if (!zero_given && zero && g->cp * g->dp == 1) continue;
            g->zero = zero;
            for (int r = PL_RECOMPUTE_NONE; r <= PL_RECOMPUTE_FULL; r++) {
                static const char *const names[] = {"none", "selective", "full"};
                if (pl_config_given(c, "parallel.recompute") &&
                    strcmp(pl_config_text(c, "parallel.recompute"), names[r]))
                    continue;
                g->recompute = (enum pl_recompute)r;
                add_group(s, g);
            }
        }
    }
}

/* ep of one tp, cp, pp, dp. */
static void add_experts(struct space *s, struct pl_plan_group *g)
{
    const struct pl_model *model = &s->plan->model;
    int fixed = given(s, "parallel.ep"), most = model->experts ? model->experts : 1;
    for (int ep = fixed ? fixed : 1; ep <= (fixed ? fixed : most); ep++) {
        if (!fixed && (ep > 1 ? model->experts % ep : 0)) continue;
        if ((int64_t)g->cp * g->dp % ep) continue;
        g->ep = ep;
        g->place = s->plan->n_places++;
        add_batches(s, g);
    }
}

static void add_places(struct space *s)
{
    const struct pl_cluster *cluster = &s->plan->cluster;
    const struct pl_config *c = s->ask->config;
    int tp[32], fixed_pp = given(s, "schedule.stages");
    int cp = (int)pl_config_int(c, "parallel.cp");
    int n = powers(given(s, "parallel.tp"), cluster->level[cluster->n_levels - 1].count,
                   tp);
    for (int i = 0; i < n; i++)
        for (int pp = fixed_pp ? fixed_pp : 1;
             pp <= (fixed_pp ? fixed_pp : s->plan->model.layers) && pp <= s->ask->gpus;
             pp++) {
            int64_t each = (int64_t)tp[i] * cp * pp;
            struct pl_plan_group g = {.tp = tp[i], .cp = cp, .pp = pp, .place = 0};
            if (s->ask->gpus % each) {
                s->plan->indivisible++;
                continue;
            }
            if (s->plan->batch % (s->ask->gpus / each)) {
                s->plan->indivisible++;
                continue;
            }
            g.dp = (int)(s->ask->gpus / each);
            g.sp = pl_config_given(c, "parallel.sp")
                       ? pl_config_bool(c, "parallel.sp")
                       : tp[i] > 1 && s->plan->seq / cp % tp[i] == 0;
            add_experts(s, &g);
        }
}

int pl_plan_space(const struct pl_plan_ask *ask, struct pl_plan *plan)
{
    struct space s = {.ask = ask, .plan = plan};
    *plan = (struct pl_plan){.ask = ask, .least = -1};
    int rc = pl_model_read(ask->config, &plan->model);
    if (!rc) rc = pl_cluster_read(ask->config, &plan->cluster);
    if (rc) return rc;
    if (!plan->cluster.gpu.memory)
        return pl_fail(PL_ECONFIG, "cluster.gpu.memory is not given, expected the "
                                   "memory of a GPU, such as 80 GiB");
    struct pl_parallel none;
    struct pl_microbatch batch;
    struct pl_config *plain;
    rc = pl_config_arm(ask->config, 0, &plain);
    if (rc) return rc;
    pl_config_set_value(plain, "parallel.tp", "1", "plan"); /* for the length alone */
    pl_config_set_value(plain, "parallel.ep", "1", "plan");
    pl_config_set_value(plain, "parallel.sp", "no", "plan");
    rc = pl_parallel_read(plain, &plan->model, &none, &batch);
    pl_config_free(plain);
    if (rc) return rc;
    plan->seq = batch.s;
    plan->batch = ask->batch ? ask->batch : pl_plan_default_batch(batch.s);
    plan->limit = ask->part * (double)plan->cluster.gpu.memory;
    s.split_given = pl_config_given(ask->config, "model.split");
    add_places(&s);
    if (plan->n_rows) return PL_OK;
    return pl_fail(PL_ECONFIG,
                   "no candidate: %" PRId64 " GPUs and a batch of %" PRId64
                   " sequences do not divide into tp x cp x pp x dp and dp x b x m "
                   "(%" PRId64 " ways tried); expected a batch that is a multiple of "
                   "some dp = GPUs / (tp cp pp)",
                   ask->gpus, plan->batch, plan->indivisible);
}

void pl_plan_free(struct pl_plan *plan)
{
    if (plan->ask) pl_cluster_free(&plan->cluster);
    free(plan->groups);
    free(plan->rows);
    free(plan->best);
    free(plan->refused);
    free(plan->failure);
    *plan = (struct pl_plan){.ask = NULL};
}
