/* The search: bounds of all candidates in parallel, then simulations best bound first,
 * in rounds of fixed size. A candidate whose bound is above the last row of the table
 * as it stands, or above the best of its own row, cannot get into it. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/log.h"
#include "base/mem.h"
#include "cli/plan.h"
#include "cli/pool.h"
#include "cli/workers.h"

enum { ROUND = 64, REFUSED = 3 };

/* Rows that came through so far, best first; one of each key unless all. */
struct front {
    const struct pl_plan *plan;
    bool all;
    int top; /* rows that matter */
    int64_t n, room;
    int64_t *rows;
};

struct search {
    struct pl_plan *plan;
    struct pl_config *config; /* of the worker */
    int64_t *first;           /* [n_groups + 1] rows of each group */
    const int64_t *round;     /* rows being simulated; NULL: groups are bounded */
};

/* What a worker sends: n rows from first on follow. */
struct record {
    int64_t first, n;
    char text[200]; /* of the last error */
};

static int key_of(const struct pl_plan *plan, const struct pl_plan_row *row)
{
    return 2 * plan->groups[row->group].place + (pl_plan_is_sync(row) ? 0 : 1);
}

/* Faster; else fresher, smaller, earlier. */
static bool better(const struct pl_plan *plan, int64_t a, int64_t b)
{
    const struct pl_plan_row *x = &plan->rows[a], *y = &plan->rows[b];
    if (x->step_s != y->step_s) return x->step_s < y->step_s;
    if (x->tau != y->tau) return x->tau < y->tau;
    if (x->peak != y->peak) return x->peak < y->peak;
    return a < b;
}

/* Place of the row's key in the front, or -1. */
static int64_t find_key(const struct front *f, const struct pl_plan_row *row)
{
    if (f->all) return -1;
    for (int64_t i = 0; i < f->n; i++)
        if (key_of(f->plan, &f->plan->rows[f->rows[i]]) == key_of(f->plan, row))
            return i;
    return -1;
}

static void front_add(struct front *f, int64_t row)
{
    int64_t at = find_key(f, &f->plan->rows[row]);
    if (at >= 0 && better(f->plan, f->rows[at], row)) return;
    if (at < 0) {
        if (f->n == f->room) {
            f->room = 2 * f->room + 64;
            f->rows = pl_grow(f->rows, (size_t)f->room, sizeof *f->rows);
        }
        at = f->n++;
    }
    for (; at > 0 && better(f->plan, row, f->rows[at - 1]); at--)
        f->rows[at] = f->rows[at - 1];
    f->rows[at] = row;
    if (f->all && f->n > f->top) f->n = f->top;
}

/* May a row with this bound still get in? */
static enum pl_fate front_test(const struct front *f, const struct pl_plan_row *row)
{
    if (f->n >= f->top && row->bound_s > f->plan->rows[f->rows[f->top - 1]].step_s)
        return PL_FATE_SLOW;
    int64_t at = find_key(f, row);
    if (at >= 0 && row->bound_s > f->plan->rows[f->rows[at]].step_s)
        return PL_FATE_DOMINATED;
    return PL_FATE_OPEN;
}

/* The pool */

static void begin(void *context)
{
    struct search *s = context;
    if (pl_config_arm(s->plan->ask->config, 0, &s->config)) _Exit(1);
}

static void work(void *context, int64_t i, struct pl_bytes *out)
{
    struct search *s = context;
    struct record r = {.n = 1};
    r.first = s->round ? s->round[i] : s->first[i];
    if (!s->round) r.n = s->first[i + 1] - s->first[i];
    struct pl_plan_row *rows = PL_NEW(r.n, struct pl_plan_row);
    if (s->round) {
        rows[0] = s->plan->rows[r.first];
        pl_plan_point(s->plan, &rows[0], s->config);
    } else {
        pl_plan_bound_group(s->plan, r.first, r.n, s->config, rows);
    }
    for (int64_t k = 0; k < r.n; k++)
        if (rows[k].fate == PL_FATE_FAILED)
            snprintf(r.text, sizeof r.text, "%s", pl_error_text());
    pl_bytes_add(out, &r, sizeof r);
    pl_bytes_add(out, rows, (size_t)r.n * sizeof *rows);
    free(rows);
}

static int take(void *context, struct pl_bytes *bytes)
{
    struct search *s = context;
    size_t at = 0;
    for (;;) {
        struct record r;
        if (bytes->n - at < sizeof r) break;
        memcpy(&r, bytes->data + at, sizeof r);
        size_t size = (size_t)r.n * sizeof *s->plan->rows;
        if (bytes->n - at < sizeof r + size) break;
        memcpy(&s->plan->rows[r.first], bytes->data + at + sizeof r, size);
        if (*r.text && !s->plan->failure) s->plan->failure = pl_strdup(r.text);
        at += sizeof r + size;
    }
    memmove(bytes->data, bytes->data + at, bytes->n - at);
    bytes->n -= at;
    return PL_OK;
}

static void tick(void *context)
{
    const struct search *s = context;
    pl_progress_update((double)s->plan->settled, NULL);
}

static char *describe(void *context, int64_t i)
{
    const struct search *s = context;
    const struct pl_plan *plan = s->plan;
    int64_t row = s->round ? s->round[i] : s->first[i];
    const struct pl_plan_group *g = &plan->groups[plan->rows[row].group];
    return pl_printf("%s, tp %d, pp %d, dp %d, b %d, v %d",
                     pl_schedule_types[plan->rows[row].type]->name, g->tp, g->pp, g->dp,
                     g->b, plan->rows[row].v);
}

static int run_pool(struct search *s, int64_t n, const int64_t *round)
{
    s->round = round;
    struct pl_pool_job job = {.n = n,
                              .n_workers = s->plan->ask->n_workers,
                              .share = 1,
                              .context = s,
                              .begin = begin,
                              .work = work,
                              .take = take,
                              .tick = tick,
                              .describe = describe};
    int code = pl_pool_run(&job);
    if (pl_workers_signal()) s->plan->incomplete = true;
    return code;
}

/* Phases */

static const struct pl_plan *sorted_plan;

static int by_bound(const void *a, const void *b)
{
    int64_t i = *(const int64_t *)a, k = *(const int64_t *)b;
    double x = sorted_plan->rows[i].bound_s, y = sorted_plan->rows[k].bound_s;
    return x < y ? -1 : x > y ? 1 : i < k ? -1 : 1;
}

static int by_bytes(const void *a, const void *b)
{
    int64_t i = *(const int64_t *)a, k = *(const int64_t *)b;
    double x = sorted_plan->rows[i].bound_bytes, y = sorted_plan->rows[k].bound_bytes;
    return x < y ? -1 : x > y ? 1 : i < k ? -1 : 1;
}

/* Rows of two fates with a bound below limit, in order. Caller frees. */
static int64_t *rows_of(const struct pl_plan *plan, enum pl_fate fate,
                        enum pl_fate other, double limit,
                        int compare(const void *, const void *), int64_t *n)
{
    int64_t *rows = PL_NEW(plan->n_rows, int64_t);
    *n = 0;
    for (int64_t i = 0; i < plan->n_rows; i++)
        if ((plan->rows[i].fate == fate || plan->rows[i].fate == other) &&
            plan->rows[i].bound_s < limit)
            rows[(*n)++] = i;
    sorted_plan = plan;
    qsort(rows, (size_t)*n, sizeof *rows, compare);
    return rows;
}

/* A row that is out of memory is of use when it needs at most twice the limit. */
static bool joins(const struct pl_plan *plan, const struct pl_plan_row *row,
                  enum pl_fate wanted)
{
    return row->fate == wanted &&
           (wanted != PL_FATE_OVER || row->peak <= 2 * plan->limit);
}

/* Simulate rows in rounds; those that end with the fate `wanted` join the front. */
static int run_rounds(struct search *s, struct front *f, int64_t *rows, int64_t n,
                      enum pl_fate wanted)
{
    struct pl_plan *plan = s->plan;
    int code = 0;
    for (int64_t at = 0; at < n && !code && !plan->incomplete;) {
        int64_t round[ROUND], k = 0;
        for (; at < n && k < ROUND; at++) {
            struct pl_plan_row *row = &plan->rows[rows[at]];
            enum pl_fate fate = plan->ask->prune ? front_test(f, row) : PL_FATE_OPEN;
            if (fate == PL_FATE_OPEN)
                round[k++] = rows[at];
            else if (wanted == PL_FATE_DONE)
                row->fate = fate;
            plan->settled += fate != PL_FATE_OPEN && wanted == PL_FATE_DONE;
        }
        code = k ? run_pool(s, k, round) : 0;
        for (int64_t i = 0; i < k; i++) {
            plan->settled += wanted == PL_FATE_DONE;
            if (joins(plan, &plan->rows[round[i]], wanted)) front_add(f, round[i]);
        }
    }
    return code;
}

static int bound_all(struct search *s)
{
    struct pl_plan *plan = s->plan;
    s->first = PL_NEW(plan->n_groups + 1, int64_t);
    for (int64_t g = 0, i = 0; g <= plan->n_groups; g++) {
        while (i < plan->n_rows && plan->rows[i].group < g) i++;
        s->first[g] = i;
    }
    int code = run_pool(s, plan->n_groups, NULL);
    for (int64_t i = 0; i < plan->n_rows; i++)
        plan->settled += plan->rows[i].fate != PL_FATE_OPEN;
    return code;
}

static int find_best(struct search *s)
{
    struct pl_plan *plan = s->plan;
    struct front f = {.plan = plan, .all = plan->ask->all, .top = plan->ask->top};
    int64_t n,
        *rows = rows_of(plan, PL_FATE_OPEN, PL_FATE_OPEN, INFINITY, by_bound, &n);
    int code = run_rounds(s, &f, rows, n, PL_FATE_DONE);
    plan->n_best = f.n < f.top ? (int)f.n : f.top;
    plan->best = f.rows;
    free(rows);
    for (int64_t i = 0; i < plan->n_rows; i++) plan->fates[plan->rows[i].fate]++;
    return code;
}

/* Faster than the best, but too large; by no more than a factor of two, so that there
 * is a point in knowing. */
static int find_refused(struct search *s)
{
    struct pl_plan *plan = s->plan;
    double best = plan->n_best ? plan->rows[plan->best[0]].step_s : INFINITY;
    struct front f = {.plan = plan, .top = REFUSED};
    for (int64_t i = 0; i < plan->n_rows; i++)
        if (joins(plan, &plan->rows[i], PL_FATE_OVER) && plan->rows[i].step_s < best)
            front_add(&f, i);
    int64_t n,
        *rows = rows_of(plan, PL_FATE_MEMORY, PL_FATE_MEMORY, best, by_bound, &n),
        kept = 0;
    for (int64_t i = 0; i < n; i++)
        if (plan->rows[rows[i]].bound_bytes <= 2 * plan->limit) rows[kept++] = rows[i];
    int code = run_rounds(s, &f, rows, kept, PL_FATE_OVER);
    free(rows);
    for (int64_t i = 0; i < f.n && plan->n_refused < REFUSED; i++)
        if (plan->rows[f.rows[i]].step_s < best) f.rows[plan->n_refused++] = f.rows[i];
    plan->refused = f.rows;
    return code;
}

/* Nothing fits: what comes closest, exactly for the rows with the least bounds. */
static int find_least(struct search *s)
{
    struct pl_plan *plan = s->plan;
    int64_t n,
        *rows = rows_of(plan, PL_FATE_MEMORY, PL_FATE_OVER, INFINITY, by_bytes, &n);
    int code = run_pool(s, n < ROUND ? n : ROUND, rows);
    for (int64_t i = 0; i < n && i < ROUND; i++)
        if (plan->rows[rows[i]].fate == PL_FATE_OVER &&
            (plan->least < 0 ||
             plan->rows[rows[i]].peak < plan->rows[plan->least].peak))
            plan->least = rows[i];
    free(rows);
    return code;
}

int pl_plan_search(const struct pl_plan_ask *ask, struct pl_plan *out)
{
    struct search s = {.plan = out};
    int code = pl_plan_space(ask, out);
    if (code) return code;
    pl_progress_begin("plan", (double)out->n_rows, "candidates");
    code = bound_all(&s);
    if (!code) code = find_best(&s);
    if (!code && !out->incomplete) code = find_refused(&s);
    if (!code && !out->incomplete && !out->n_best) code = find_least(&s);
    pl_progress_end();
    free(s.first);
    return code;
}
