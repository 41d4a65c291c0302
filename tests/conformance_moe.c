/* The conformance suite, mixtures of experts: formulas in double and the weights of
 * their bounds. Choices are compared exactly: random keys are apart by far more than
 * rounding, equal ones by number. */
#include "tests/conformance.h"
#include "base/mem.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

struct route_case {
    int rows, experts, chosen, group;
    bool sigmoid, normed, biased;
    float scale, balance, z, spread; /* of the logits; 0: all equal */
};

static const struct route_case route_cases[] = {
    {1, 1, 1, 1, false, false, false, 1, 0, 0, 1},
    {6, 5, 2, 3, false, false, false, 1, 0.5f, 0.25f, 3},
    {12, 33, 4, 4, true, true, true, 2.5f, 0.01f, 0, 2},
    {40, 64, 8, 40, false, true, false, 1, 1, 0.001f, 1},
    {9, 40, 1, 9, true, false, false, 1, 0, 1, 2},
    {5, 7, 3, 1, false, true, true, 1.5f, 2, 0, 0},
    {600, 300, 4, 200, false, true, false, 1, 0.1f, 0, 2},
};
enum { ROUTE_CASES = sizeof route_cases / sizeof *route_cases };

/* One case with everything that the formulas give; owned: want_free. */
struct want {
    struct route_case c;
    size_t n, choices, loads; /* sizes of the arrays below */
    float *logits, *bias, *dweight;
    double *score, *weight, *lse, *far; /* far: largest |z|, or distance to the top */
    int32_t *expert, *slot, *of_slot, *load;
    double balance, z; /* terms of the loss */
};

static void choose(struct want *w, size_t r)
{
    const size_t E = (size_t)w->c.experts, k = (size_t)w->c.chosen;
    const double *s = w->score + r * E;
    double sum = 1e-20;
    for (size_t j = 0; j < k; j++) {
        int best = -1;
        double most = -INFINITY;
        for (size_t i = 0; i < E; i++) {
            double key = s[i] + (w->c.biased ? w->bias[i] : 0);
            bool taken = false;
            for (size_t l = 0; l < j; l++) taken |= w->expert[r * k + l] == (int32_t)i;
            if (taken || key <= most) continue;
            best = (int)i;
            most = key;
        }
        w->expert[r * k + j] = best;
        sum += s[best];
    }
    for (size_t j = 0; j < k; j++)
        w->weight[r * k + j] =
            s[w->expert[r * k + j]] * w->c.scale / (w->c.normed ? sum : 1);
}

static void score(struct want *w, size_t r)
{
    const size_t E = (size_t)w->c.experts;
    const float *z = w->logits + r * E;
    double max = -INFINITY, sum = 0, least = INFINITY;
    for (size_t i = 0; i < E; i++) max = fmax(max, z[i]);
    for (size_t i = 0; i < E; i++) least = fmin(least, z[i]);
    for (size_t i = 0; i < E; i++) sum += exp(z[i] - max);
    w->lse[r] = max + log(sum);
    w->far[r] = w->c.sigmoid ? fmax(fabs(max), fabs(least)) : max - least;
    for (size_t i = 0; i < E; i++)
        w->score[r * E + i] =
            w->c.sigmoid ? 1 / (1 + exp(-(double)z[i])) : exp(z[i] - w->lse[r]);
    w->z += w->c.z / (double)w->c.rows * w->lse[r] * w->lse[r];
}

static void sort_choices(struct want *w)
{
    const size_t E = (size_t)w->c.experts, k = (size_t)w->c.chosen;
    int32_t *total = w->load + w->loads - E, next = 0;
    for (size_t e = 0; e < E; e++)
        for (size_t i = 0; i < w->choices; i++) {
            if (w->expert[i] != (int32_t)e) continue;
            w->load[i / k / (size_t)w->c.group * E + e]++;
            total[e]++;
            w->of_slot[next] = (int32_t)(i / k);
            w->slot[i] = next++;
        }
}

static double balance_factor(const struct want *w)
{
    return (double)w->c.balance * w->c.experts /
           ((double)w->c.chosen * w->c.group * w->c.rows);
}

static struct want want_new(const struct trial *t, const struct route_case *c)
{
    size_t E = (size_t)c->experts, rows = (size_t)c->rows, k = (size_t)c->chosen;
    struct want w = {.c = *c,
                     .n = rows * E,
                     .choices = rows * k,
                     .loads = (rows / (size_t)c->group + 1) * E,
                     .logits = trial_random(rows * E, 91),
                     .bias = trial_random(E, 92),
                     .dweight = trial_random(rows * k, 93)};
    w.score = PL_NEW(w.n + w.choices + 2 * rows, double);
    w.weight = w.score + w.n;
    w.lse = w.weight + w.choices;
    w.far = w.lse + rows;
    w.expert = PL_NEW(3 * w.choices + w.loads, int32_t);
    w.slot = w.expert + w.choices;
    w.of_slot = w.slot + w.choices;
    w.load = w.of_slot + w.choices;
    for (size_t i = 0; i < w.n; i++) w.logits[i] *= c->spread;
    trial_round(t, w.logits, w.n);
    for (size_t i = 0; i < E; i++) w.bias[i] *= c->spread;
    for (size_t r = 0; r < rows; r++) {
        score(&w, r);
        choose(&w, r);
    }
    sort_choices(&w);
    for (size_t r = 0; r < rows; r++) {
        const double *s = w.score + r * E;
        double all = 0, sum = 0;
        for (size_t i = 0; i < E; i++) all += s[i];
        for (size_t i = 0; i < E; i++)
            sum += w.load[r / (size_t)c->group * E + i] * s[i] / all;
        w.balance += balance_factor(&w) * sum;
    }
    return w;
}

static void want_free(struct want *w)
{
    free(w->logits), free(w->bias), free(w->dweight), free(w->score), free(w->expert);
}

/* The same on the device; scores and choices are there when `given`. */
static struct pl_routing on_device(struct trial *t, const struct want *w, bool given)
{
    const struct route_case *c = &w->c;
    float *scores = PL_NEW(w->n + w->choices, float), *weights = scores + w->n;
    for (size_t i = 0; i < w->n && given; i++) scores[i] = (float)w->score[i];
    int32_t *ints = PL_NEW(w->choices + w->loads, int32_t);
    struct pl_routing route = {.rows = c->rows,
                               .experts = c->experts,
                               .chosen = c->chosen,
                               .group = c->group,
                               .sigmoid = c->sigmoid,
                               .normed = c->normed,
                               .scale = c->scale,
                               .balance = c->balance,
                               .z = c->z};
    route.score = trial_upload(t, scores, w->n);
    route.weight = trial_upload(t, weights, w->choices);
    route.expert = trial_upload(t, given ? w->expert : ints, w->choices);
    route.slot = trial_upload(t, given ? w->slot : ints, w->choices);
    route.of_slot = trial_upload(t, given ? w->of_slot : ints, w->choices);
    route.load = trial_upload(t, given ? w->load : ints, w->loads);
    free(scores), free(ints);
    return route;
}

static void compare_ints(struct trial *t, const char *what, const int32_t *device,
                         size_t n, const int32_t *want)
{
    int32_t *got = PL_NEW(n, int32_t);
    trial_status(t, t->device->download(got, device, n * sizeof *got));
    for (size_t i = 0; i < n; i++) trial_compare_double(t, what, got[i], want[i], 0);
    free(got);
}

/* Sum of E exponentials with exponents off by 2 u far, root of none: (E + 16 + 4 far)
 * of the score; the weights add k more. The loss sums positive terms; that of z squares
 * a log-sum-exp whose error is that of its sum and of the largest logit. */
static void route_one(struct trial *t, const struct route_case *c)
{
    struct want w = want_new(t, c);
    const size_t E = (size_t)c->experts, k = (size_t)c->chosen;
    double *bound = PL_NEW(w.n + w.choices, double), *of_weight = bound + w.n;
    double far = 0, size = 0, got[] = {0.5, 0.25};
    for (size_t r = 0; r < (size_t)c->rows; r++) {
        double roundings = c->experts + 16 + 4 * w.far[r];
        for (size_t i = r * E; i < (r + 1) * E; i++) bound[i] = roundings * w.score[i];
        for (size_t i = r * k; i < (r + 1) * k; i++)
            of_weight[i] = (roundings + c->chosen) * w.weight[i];
        far = fmax(far, w.far[r]);
        size +=
            2 * fabs(w.lse[r]) * (c->experts + 16) * (1 + fabs(w.lse[r]) + w.far[r]);
    }
    struct pl_routing route = on_device(t, &w, false);
    float *logits = trial_upload_real(t, w.logits, w.n),
          *bias = trial_upload(t, w.bias, E);
    double *terms = trial_upload(t, got, 4);
    trial_status(t, t->device->route(&route, logits, c->biased ? bias : NULL, terms));
    trial_status(t, t->device->download(got, terms, sizeof got));
    trial_compare(t, "score", route.score, w.n, w.score, bound);
    compare_ints(t, "expert", route.expert, w.choices, w.expert);
    trial_compare(t, "weight", route.weight, w.choices, w.weight, of_weight);
    compare_ints(t, "load", route.load, w.loads, w.load);
    compare_ints(t, "slot", route.slot, w.choices, w.slot);
    compare_ints(t, "of_slot", route.of_slot, w.choices, w.of_slot);
    const double u = t->op->c * (double)FLT_EPSILON;
    trial_compare_double(t, "balance", got[0], 0.5 + w.balance,
                         u * w.balance * 2 * (c->experts + 16 + 4 * far));
    trial_compare_double(t, "z", got[1], 0.25 + w.z, u * c->z / (double)c->rows * size);
    trial_clear(t);
    free(bound);
    want_free(&w);
}

/* Logits that are no numbers (a run that diverges): the choices are experts. */
static void route_of_nans(struct trial *t)
{
    const struct route_case c = {2, 5, 3, 2, false, true, false, 1, 0, 0, 0};
    const int32_t first[] = {0, 1, 2, 0, 1, 2};
    struct want w = want_new(t, &c);
    for (size_t i = 0; i < w.n; i++) w.logits[i] = NAN;
    struct pl_routing route = on_device(t, &w, false);
    const double zero[2] = {0, 0};
    double *terms = trial_upload(t, zero, 4);
    trial_status(
        t, t->device->route(&route, trial_upload_real(t, w.logits, w.n), NULL, terms));
    compare_ints(t, "expert of NaN", route.expert, w.choices, first);
    trial_clear(t);
    want_free(&w);
}

void check_route(struct trial *t)
{
    for (int i = 0; i < ROUTE_CASES; i++) route_one(t, &route_cases[i]);
    route_of_nans(t);
}

/* What the weights say of score i of a row, and the sum of the sizes in it. */
static double chosen_back(const struct want *w, size_t r, size_t i, double *size)
{
    const size_t k = (size_t)w->c.chosen;
    const double *s = w->score + r * (size_t)w->c.experts;
    double sum = 1e-20, along = 0, own = 0, along_size = 0;
    bool found = false;
    for (size_t j = r * k; j < (r + 1) * k; j++) {
        double term = w->dweight[j] * s[w->expert[j]];
        sum += s[w->expert[j]];
        along += term;
        along_size += fabs(term);
        if (w->expert[j] != (int32_t)i) continue;
        own = w->dweight[j];
        found = true;
    }
    *size = 0;
    if (!found) return 0;
    if (!w->c.normed) return *size = fabs(own * w->c.scale), own * w->c.scale;
    *size = w->c.scale * (fabs(own) + along_size / sum) / sum;
    return w->c.scale * (own - along / sum) / sum;
}

/* Reductions over E and k terms; 1 - s carries the absolute error of s. */
static void back_row(const struct want *w, size_t r, double factor, double *want,
                     double *weight)
{
    const size_t E = (size_t)w->c.experts;
    const double *s = w->score + r * E, a = factor * balance_factor(w);
    const int32_t *load = w->load + r / (size_t)w->c.group * E;
    const double roundings = w->c.experts + w->c.chosen + 16 + 4 * w->far[r];
    double all = 0, along = 0, direct = 0, direct_size = 0, part;
    for (size_t i = 0; i < E; i++) {
        all += s[i];
        along += a * load[i] * s[i];
        direct += chosen_back(w, r, i, &part) * s[i];
        direct_size += part * s[i];
    }
    if (w->c.sigmoid) along /= all;
    for (size_t i = 0; i < E; i++) {
        double t = chosen_back(w, r, i, &part), own = a * load[i];
        double z = factor * w->c.z * 2 * w->lse[r] / w->c.rows *
                   exp(w->logits[r * E + i] - w->lse[r]);
        if (w->c.sigmoid) {
            double size = part + (fabs(own) + fabs(along)) / all;
            want[r * E + i] = s[i] * (1 - s[i]) * (t + (own - along) / all) + z;
            weight[r * E + i] = s[i] * size * (roundings * (1 - s[i]) + 4);
        } else {
            want[r * E + i] = s[i] * (own + t - along - direct) + z;
            weight[r * E + i] =
                roundings * s[i] * (fabs(own) + part + fabs(along) + direct_size);
        }
        weight[r * E + i] += fabs(z) * roundings * (1 + 2 * fabs(w->lse[r]));
    }
}

static void route_back_one(struct trial *t, const struct route_case *c)
{
    struct want w = want_new(t, c);
    const size_t E = (size_t)c->experts;
    double *want = PL_NEW(2 * w.n, double), *weight = want + w.n;
    double *of_bias = PL_NEW(2 * E, double);
    for (size_t i = 0; i < w.n; i++) w.score[i] = (float)w.score[i];
    for (size_t r = 0; r < (size_t)c->rows; r++) back_row(&w, r, 0.75, want, weight);
    for (size_t e = 0; e < E; e++) { /* the term is rounded, and the sum */
        const double share = w.load[w.loads - E + e] / (double)w.choices;
        const double term = 0.75 * (share - 1.0 / c->experts);
        of_bias[e] = w.bias[e] + term;
        of_bias[E + e] = fabs((double)w.bias[e]) + 2 * fabs(term);
    }
    struct pl_routing route = on_device(t, &w, true);
    float *logits = trial_upload_real(t, w.logits, w.n),
          *dz = trial_upload_real(t, w.logits, w.n);
    float *dweight = trial_upload(t, w.dweight, w.choices);
    float *dbias = trial_upload(t, w.bias, E);
    trial_status(t, t->device->route_back(&route, logits, dweight, 0.75, dz, NULL));
    trial_compare_real(t, "dlogits", dz, w.n, want, weight);
    trial_status(t, t->device->route_back(&route, logits, dweight, 0.75, dz, dbias));
    trial_compare(t, "dbias", dbias, E, of_bias, of_bias + E);
    trial_clear(t);
    free(want), free(of_bias);
    want_free(&w);
}

void check_route_back(struct trial *t)
{
    for (int i = 0; i < ROUTE_CASES; i++) route_back_one(t, &route_cases[i]);
}

static const int combine_shapes[][3] = {{1, 1, 1}, {9, 1, 40}, {5, 3, 7}, {33, 2, 100}};
enum { COMBINE_SHAPES = sizeof combine_shapes / sizeof *combine_shapes };

static void combine_one(struct trial *t, int rows, int n, int d, bool back, bool ones,
                        enum addend addend)
{
    size_t width = (size_t)d, choices = (size_t)(rows * n),
           small = (size_t)rows * width;
    float *x = trial_random_real(t, choices * width, 94);
    float *y = trial_random_real(t, small, 95);
    float *w = trial_random(choices, 96);
    int32_t *slot = PL_NEW(choices, int32_t);
    double *want = PL_NEW(2 * (choices * width + choices + small), double);
    double *weight = want + choices * width + choices + small;
    double *dw = want + choices * width, *dw_weight = weight + choices * width;
    for (size_t i = 0; i < small && !back && addend != NONE; i++) {
        want[i] = y[i];
        weight[i] = fabs((double)y[i]) * (n + 2);
    }
    for (size_t e = 0; e < choices; e++) {
        slot[e] = (int32_t)((e * 7 + 3) % choices); /* 7 divides none of them */
        for (size_t i = 0; i < width; i++) {
            size_t at = (size_t)slot[e] * width + i, r = e / (size_t)n * width + i;
            double term = (ones ? 1 : (double)w[e]) * (back ? y[r] : x[at]);
            want[back ? at : r] += term;
            weight[back ? at : r] += back ? fabs(term) : (n + 2) * fabs(term);
            dw[e] += back ? (double)x[at] * y[r] : 0;
            dw_weight[e] += back ? (d + 1) * fabs((double)x[at] * y[r]) : 0;
        }
    }
    int32_t *ds = trial_upload(t, slot, choices);
    float *ux = trial_upload_real(t, x, choices * width);
    float *uy = trial_upload_real(t, y, small), *out = uy;
    float *uw = trial_upload(t, w, choices), *ud = trial_upload(t, w, choices);
    float *udx = trial_upload_real(t, x, choices * width);
    for (size_t i = 0; i < small && addend != ITSELF; i++) y[i] = NAN;
    if (!back && addend != ITSELF) out = trial_upload_real(t, y, small);
    trial_status(t, back ? t->device->combine_back(rows, n, d, ds, uw, ux, uy, udx, ud)
                         : t->device->combine(rows, n, d, ds, ones ? NULL : uw, ux,
                                              addend == NONE ? NULL : uy, out));
    trial_compare_real(t, back ? "dx" : "y", back ? udx : out,
                       back ? choices * width : small, want, weight);
    if (back) trial_compare(t, "dw", ud, choices, dw, dw_weight);
    trial_clear(t);
    free(x), free(y), free(w), free(slot), free(want);
}

void check_combine(struct trial *t)
{
    for (int i = 0; i < 2 * ADDENDS * COMBINE_SHAPES; i++) {
        const int *s = combine_shapes[i / (2 * ADDENDS)];
        combine_one(t, s[0], s[1], s[2], false, i % 2, (enum addend)(i / 2 % ADDENDS));
    }
}

void check_combine_back(struct trial *t)
{
    for (int i = 0; i < COMBINE_SHAPES; i++) {
        const int *s = combine_shapes[i];
        combine_one(t, s[0], s[1], s[2], true, false, NONE);
    }
}
