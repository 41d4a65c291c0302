#include "cli/print_links.h"

#include <inttypes.h>
#include <math.h>

#include "base/units.h"

static const char *const names[PL_N_JITTER] = {"forward", "backward",    "weight",
                                               "update",  "activations", "gradients"};

static void print_time(const struct pl_random_time *t, FILE *out)
{
    char buf[32];
    fputs(pl_distribution_names[t->kind], out);
    if (t->kind == PL_EMPIRICAL)
        fprintf(out, " (%d factors)", t->n);
    else if (isnan(t->cv))
        fprintf(out, " %s", pl_units_format_time(t->sd / 1e12, buf, sizeof buf));
    else
        fprintf(out, " %g%%", 100 * t->cv);
}

static void print_outage(const struct pl_outage *o, FILE *out)
{
    char from[32], length[32];
    fprintf(out, "device %d out at %s for %s", o->device,
            pl_units_format_time(pl_seconds(o->from), from, sizeof from),
            pl_units_format_time(pl_seconds(o->length), length, sizeof length));
}

/* What separates the next entry. */
static const char *print_factors(const char *what, const double *factor, int n,
                                 const char *before, FILE *out)
{
    for (int i = 0; i < n && factor; i++) {
        if (factor[i] == 1) continue;
        fprintf(out, "%s%s %d x %g", before, what, i, factor[i]);
        before = ", ";
    }
    return before;
}

static void json_factors(struct pl_json *json, const char *key, const double *factor,
                         int n)
{
    if (!factor) return;
    pl_json_begin(json, key, '[');
    for (int i = 0; i < n; i++) pl_json_real(json, NULL, factor[i]);
    pl_json_end(json, ']');
}

void pl_print_jitter_text(const struct pl_cost *cost, FILE *out)
{
    const char *before = "";
    const struct pl_jitter *j = cost->jitter;
    if (!pl_cost_varies(cost) && !cost->slow_link) return;
    fputs("Varies", out);
    if (j) fprintf(out, " (seed %" PRIu64 ")", j->seed);
    fputs(": ", out);
    for (int k = 0; k < PL_N_JITTER && j; k++) {
        if (j->time[k].kind == PL_STEADY) continue;
        fprintf(out, "%s%s ", before, names[k]);
        print_time(&j->time[k], out);
        before = ", ";
    }
    before = print_factors("device", cost->slow, cost->devices, before, out);
    before = print_factors("link", cost->slow_link, cost->devices, before, out);
    for (int i = 0; j && i < j->n_outages; i++) {
        fputs(before, out);
        print_outage(&j->outage[i], out);
        before = ", ";
    }
    putc('\n', out);
}

static void json_jitter(const struct pl_jitter *j, struct pl_json *json)
{
    pl_json_int(json, "seed", (int64_t)j->seed);
    for (int k = 0; k < PL_N_JITTER; k++) {
        const struct pl_random_time *t = &j->time[k];
        if (t->kind == PL_STEADY) continue;
        pl_json_begin(json, names[k], '{');
        pl_json_text(json, "distribution", pl_distribution_names[t->kind]);
        if (t->kind == PL_EMPIRICAL)
            pl_json_int(json, "factors", t->n);
        else if (isnan(t->cv))
            pl_json_real(json, "sd_s", t->sd / 1e12);
        else
            pl_json_real(json, "cv", t->cv);
        pl_json_end(json, '}');
    }
    pl_json_begin(json, "outages", '[');
    for (int i = 0; i < j->n_outages; i++) {
        pl_json_begin(json, NULL, '{');
        pl_json_int(json, "device", j->outage[i].device);
        pl_json_real(json, "from_s", pl_seconds(j->outage[i].from));
        pl_json_real(json, "length_s", pl_seconds(j->outage[i].length));
        pl_json_end(json, '}');
    }
    pl_json_end(json, ']');
}

void pl_print_links_json(const struct pl_cost *cost, struct pl_json *json)
{
    pl_json_text(json, "link_semantics", pl_semantics_names[cost->semantics]);
    if (!pl_cost_varies(cost) && !cost->slow_link) {
        pl_json_real(json, "jitter", NAN); /* null */
        return;
    }
    pl_json_begin(json, "jitter", '{');
    if (cost->jitter) json_jitter(cost->jitter, json);
    json_factors(json, "slow", cost->slow, cost->devices);
    json_factors(json, "slow_links", cost->slow_link, cost->devices);
    pl_json_end(json, '}');
}
