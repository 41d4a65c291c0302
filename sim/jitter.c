/* Factors with mean 1 and coefficient of variation cv:
 *   normal     1 + cv z, cut at 0
 *   lognormal  exp(s z - s^2 / 2), s^2 = ln(1 + cv^2)
 *   gamma      shape 1/cv^2, scale cv^2; Marsaglia & Tsang, ACM TOMS 26 (2000) 363
 * Varuna (EuroSys'22) adds a normal time of 10 ms to transfers and of 2 ms to ops. */
#include "sim/jitter.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/file.h"
#include "base/mem.h"
#include "base/rng.h"

const char *const pl_distribution_names[] = {"none",  "normal",    "lognormal",
                                             "gamma", "empirical", NULL};

enum { MAX_BYTES = 1 << 26, MAX_FACTORS = 1 << 22, MAX_OUTAGES = 65536 };

/* Draws of one op: words of one counter block each. */
struct draws {
    const struct pl_jitter *jitter;
    uint64_t a;
    uint32_t b;
};

static double normal(struct draws *d)
{
    return pl_rng_normal(d->jitter->seed, PL_RNG_JITTER, d->a, d->b += 64);
}

static double uniform(struct draws *d)
{
    return pl_rng_uniform(d->jitter->seed, PL_RNG_JITTER, d->a, d->b += 64);
}

/* Mean 1. A shape below 1 is drawn as shape + 1 times u^(1/shape). */
static double gamma_factor(struct draws *draws, double cv)
{
    double shape = 1 / (cv * cv), boost = 1;
    if (shape < 1) boost = pow(uniform(draws), 1 / shape);
    double d = (shape < 1 ? shape + 1 : shape) - 1.0 / 3, c = 1 / sqrt(9 * d);
    for (;;) {
        double z = normal(draws), v = 1 + c * z;
        if (v <= 0) continue;
        v = v * v * v;
        if (log(uniform(draws)) < 0.5 * z * z + d - d * v + d * log(v))
            return boost * d * v / shape;
    }
}

static double factor_of(const struct pl_random_time *time, double cv,
                        struct draws *draws)
{
    switch (time->kind) {
    case PL_NORMAL:
        return fmax(0, 1 + cv * normal(draws));
    case PL_LOGNORMAL: {
        double s = sqrt(log1p(cv * cv));
        return exp(s * normal(draws) - s * s / 2);
    }
    case PL_GAMMA:
        return gamma_factor(draws, cv);
    default:
        return time->value[(int)(uniform(draws) * time->n)];
    }
}

pl_tick pl_jitter_time(const struct pl_jitter *jitter, enum pl_jitter_kind kind,
                       int instance, int64_t micro, pl_tick nominal)
{
    const struct pl_random_time *time = &jitter->time[kind];
    bool absolute = isnan(time->cv) && time->kind != PL_EMPIRICAL;
    if (time->kind == PL_STEADY || (nominal == 0 && !absolute)) return nominal;
    struct draws draws = {jitter, (uint64_t)instance << 40 ^ (uint64_t)micro,
                          (uint32_t)kind};
    double t;
    if (absolute && time->kind == PL_NORMAL)
        t = fmax(0, (double)nominal + time->sd * normal(&draws));
    else if (absolute && nominal == 0)
        t = 0; /* no shape with mean 0 */
    else
        t = (double)nominal *
            factor_of(time, absolute ? time->sd / (double)nominal : time->cv, &draws);
    return t > 0x1p61 ? INT64_C(1) << 61 : (pl_tick)llround(t);
}

pl_tick pl_jitter_end(const struct pl_jitter *jitter, int device, pl_tick start,
                      pl_tick length)
{
    for (int i = 0; i < jitter->n_outages; i++) {
        const struct pl_outage *o = &jitter->outage[i];
        pl_tick back = o->from + o->length;
        if (o->device != device || back <= start) continue;
        if (start + length <= o->from) break;
        start = back;
    }
    return start + length;
}

static int bad_time(const char *where, const char *text)
{
    return pl_fail(PL_ECONFIG,
                   "%s: '%s' is no distribution, expected 'normal 5%%', 'normal 2 ms', "
                   "'lognormal 5%%', 'gamma 5%%', 'empirical FILE' or 'none'",
                   where, text);
}

/* "5%", "0.05" or "2 ms". */
static int parse_spread(const char *text, struct pl_random_time *out)
{
    char *end;
    double value = strtod(text, &end);
    pl_tick ticks;
    out->cv = NAN;
    if (end == text) return PL_ECONFIG;
    if (!*end || !strcmp(end, "%")) {
        out->cv = *end ? value / 100 : value;
        return out->cv >= 0 && out->cv <= 100 ? PL_OK : PL_ECONFIG;
    }
    if (pl_units_time(text, &ticks) || ticks < 0) return PL_ECONFIG;
    out->sd = (double)ticks;
    return PL_OK;
}

static int read_factors(const char *path, const char *where, struct pl_random_time *out)
{
    char *text, *save;
    size_t n;
    int rc = pl_file_read(path, MAX_BYTES, &text, &n), line = 0;
    if (rc) return rc;
    out->value = PL_NEW(strlen(text) / 2 + 1, double); /* a digit and a line end each */
    for (char *at = text; at && !rc; at = save) {
        save = strchr(at, '\n');
        if (save) *save++ = 0;
        line++;
        at[strcspn(at, "#\r")] = 0;
        at += strspn(at, " \t");
        if (!*at) continue;
        char *end;
        double value = strtod(at, &end);
        end += strspn(end, " \t");
        if (end == at || *end || !(value >= 0) || value > 1e6 || out->n == MAX_FACTORS)
            rc = pl_fail(PL_EINPUT,
                         "%s:%d: '%.40s', expected one factor of the nominal time a "
                         "line, 0 .. 1e6",
                         path, line, at);
        else
            out->value[out->n++] = value;
    }
    if (!rc && !out->n) rc = pl_fail(PL_EINPUT, "%s: %s: no factors", where, path);
    free(text);
    return rc;
}

int pl_random_time_parse(const char *text, const char *where,
                         struct pl_random_time *out)
{
    struct pl_random_time made = {PL_STEADY, NAN, 0, 0, NULL};
    size_t n = strcspn(text, " ");
    const char *rest = text + n + strspn(text + n, " ");
    int kind = 0;
    while (pl_distribution_names[kind] &&
           (strlen(pl_distribution_names[kind]) != n ||
            strncmp(text, pl_distribution_names[kind], n)))
        kind++;
    if (!*text) kind = PL_STEADY;
    if (!pl_distribution_names[kind] || (kind == PL_STEADY) != !*rest)
        return bad_time(where, text);
    made.kind = (enum pl_distribution)kind;
    int rc = PL_OK;
    if (kind == PL_EMPIRICAL)
        rc = read_factors(rest, where, &made);
    else if (kind != PL_STEADY && parse_spread(rest, &made))
        rc = bad_time(where, text);
    if (!rc && (made.cv == 0 || (kind == PL_NORMAL && isnan(made.cv) && made.sd == 0)))
        made.kind = PL_STEADY;
    if (rc)
        free(made.value);
    else
        *out = made;
    return rc;
}

static int compare_outages(const void *a, const void *b)
{
    const struct pl_outage *x = a, *y = b;
    if (x->device != y->device) return x->device < y->device ? -1 : 1;
    return (x->from > y->from) - (x->from < y->from);
}

static int parse_outage(char *word, const char *where, int P, struct pl_outage *out)
{
    char *at = strchr(word, '@'), *plus = at ? strchr(at, '+') : NULL, *end = NULL;
    long device = strtol(word, &end, 10);
    pl_tick last;
    if (!plus || end != at || end == word)
        return pl_fail(PL_ECONFIG,
                       "%s: outage '%s', expected DEVICE@FROM+LENGTH, such as "
                       "3@120ms+500ms",
                       where, word);
    *plus = 0;
    int rc = pl_units_time(at + 1, &out->from);
    if (!rc) rc = pl_units_time(plus + 1, &out->length);
    if (rc) {
        char *why = pl_strdup(pl_error_text());
        rc = pl_fail(PL_ECONFIG, "%s: outage of device %ld: %s", where, device, why);
        free(why);
        return rc;
    }
    if (device < 0 || device >= P)
        return pl_fail(PL_ECONFIG, "%s: outage of device %ld, expected 0 .. %d", where,
                       device, P - 1);
    if (out->from < 0 || out->length < 0 ||
        __builtin_add_overflow(out->from, out->length, &last) || last > INT64_MAX / 4)
        return pl_fail(PL_ECONFIG, "%s: outage of device %ld beyond 26 days", where,
                       device);
    out->device = (int)device;
    return PL_OK;
}

int pl_outages_parse(const char *text, const char *where, int P, struct pl_jitter *out)
{
    char *copy = pl_strdup(text), *save = NULL;
    struct pl_outage *list = PL_NEW(strlen(text) / 2 + 1, struct pl_outage);
    int n = 0, rc = PL_OK;
    for (char *w = strtok_r(copy, " ", &save); w && !rc;
         w = strtok_r(NULL, " ", &save)) {
        if (n == MAX_OUTAGES)
            rc = pl_fail(PL_ECONFIG, "%s: more than %d outages", where, MAX_OUTAGES);
        else
            rc = parse_outage(w, where, P, &list[n++]);
    }
    free(copy);
    if (!rc) qsort(list, (size_t)n, sizeof *list, compare_outages);
    for (int i = 1; i < n && !rc; i++)
        if (list[i].device == list[i - 1].device &&
            list[i].from < list[i - 1].from + list[i - 1].length)
            rc = pl_fail(PL_ECONFIG, "%s: outages of device %d overlap", where,
                         list[i].device);
    if (rc) {
        free(list);
        return rc;
    }
    out->outage = list;
    out->n_outages = n;
    return PL_OK;
}

void pl_jitter_free(struct pl_jitter *jitter)
{
    if (!jitter) return;
    for (int k = 0; k < PL_N_JITTER; k++) free(jitter->time[k].value);
    free(jitter->outage);
    *jitter = (struct pl_jitter){.n_outages = 0};
}
