/* Claims of Zmushko et al. 2026 (arXiv 2606.30634) and our own hypothesis on Nesterov
 * momentum, each with its judge. The rule of all is in the header. Published numbers
 * are of 360M parameters and about 7B tokens (tables 1 and 2, figure 6), read second
 * hand. */
#include "theory/claim.h"

#include <math.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/stats.h"

const char *const pl_words[] = {"reproduced", "direction only", "within noise",
                                "not reproduced", "not tested"};

struct claim {
    const char *id, *statement, *source, *published;
    void (*judge)(const struct claim *claim, const struct pl_claim_input *input,
                  struct pl_verdict *v);
    const char *optimizer;
    double min, max; /* stated range of the size, or limit of a bound in max */
};

static struct pl_paired paired(const double *difference, int n)
{
    struct pl_paired p = {.mean = NAN, .low = NAN, .high = NAN};
    double *d = PL_NEW(n > 0 ? n : 1, double);
    int up = 0, down = 0, infinite = 0;
    for (int i = 0; i < n; i++) {
        if (isnan(difference[i])) continue;
        d[p.n++] = difference[i];
        up += difference[i] > 0.0;
        down += difference[i] < 0.0;
        infinite += isinf(difference[i]) != 0;
    }
    if (p.n > 0) p.mean = pl_mean(d, p.n); /* NaN when both signs are infinite */
    if (p.n >= 2 && infinite) {
        p.sign = up == p.n ? 1 : down == p.n ? -1 : 0;
        p.low = p.sign > 0 ? 0.0 : -INFINITY;
        p.high = p.sign < 0 ? 0.0 : INFINITY;
    } else if (p.n >= 2) {
        double half = pl_t95(d, p.n);
        p.low = p.mean - half;
        p.high = p.mean + half;
        p.sign = p.low > 0.0 ? 1 : p.high < 0.0 ? -1 : 0;
    }
    free(d);
    return p;
}

static double difference_of(double a, double b)
{
    if (isnan(a)) a = INFINITY;
    if (isnan(b)) b = INFINITY;
    return a - b; /* NaN when both diverged: the pair says nothing */
}

struct pl_paired pl_paired_difference(const double *a, const double *b, int n)
{
    double *d = PL_NEW(n > 0 ? n : 1, double);
    for (int i = 0; i < n; i++) d[i] = difference_of(a[i], b[i]);
    struct pl_paired p = paired(d, n);
    free(d);
    return p;
}

static const double *losses(const struct pl_claim_input *input, const char *optimizer,
                            const char *pipeline)
{
    for (int i = 0; i < input->n_arms; i++)
        if (strcmp(input->arms[i].optimizer, optimizer) == 0 &&
            strcmp(input->arms[i].pipeline, pipeline) == 0)
            return input->arms[i].loss;
    return NULL;
}

/* gap(a) - gap(b) with gap(o) = 2bw - sync; false when an arm is absent. */
static bool gap_difference(const struct pl_claim_input *input, const char *a,
                           const char *b, struct pl_paired *out)
{
    const double *a_2bw = losses(input, a, "2bw"), *a_sync = losses(input, a, "sync");
    const double *b_2bw = losses(input, b, "2bw"), *b_sync = losses(input, b, "sync");
    if (!a_2bw || !a_sync || !b_2bw || !b_sync) return false;
    double *d = PL_NEW(input->n_seeds > 0 ? input->n_seeds : 1, double);
    for (int i = 0; i < input->n_seeds; i++)
        d[i] = difference_of(a_2bw[i], a_sync[i]) - difference_of(b_2bw[i], b_sync[i]);
    *out = paired(d, input->n_seeds);
    free(d);
    return true;
}

struct pl_noise_floor pl_claim_noise(const struct pl_claim_input *input,
                                     const char *optimizer)
{
    struct pl_noise_floor floor = {NAN, NAN};
    const double *sync = losses(input, optimizer, "sync");
    const double *again = losses(input, optimizer, "sync-again");
    int n = input->n_seeds;
    if (!sync || n < 2) return floor;
    floor.sd_loss = pl_sd(sync, n);
    if (again) {
        double *d = PL_NEW(n, double);
        for (int i = 0; i < n; i++) d[i] = again[i] - sync[i];
        floor.sd_difference = pl_sd(d, n);
        free(d);
    }
    if (!isfinite(floor.sd_loss)) floor.sd_loss = NAN;
    if (!isfinite(floor.sd_difference)) floor.sd_difference = NAN;
    return floor;
}

static void say(struct pl_verdict *v, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
static void say(struct pl_verdict *v, const char *format, ...)
{
    size_t used = strlen(v->measured);
    va_list ap;
    va_start(ap, format);
    vsnprintf(v->measured + used, sizeof v->measured - used, format, ap);
    va_end(ap);
}

/* "+0.2780 [+0.2610, +0.2950], 10.6 % of the loss, 3 seeds"; base NULL: no fraction. */
static void say_difference(struct pl_verdict *v, const struct pl_paired *p,
                           const double *base, int n)
{
    say(v, "%+.4f [%+.4f, %+.4f]", p->mean, p->low, p->high);
    if (base) say(v, ", %.2f %% of the loss", 100.0 * p->mean / pl_mean(base, n));
    say(v, ", %d seeds", p->n);
}

/* What two equal synchronous runs differ by, when there is a second set of them. */
static void say_floor(struct pl_verdict *v, const struct pl_claim_input *input,
                      const char *optimizer)
{
    double sd = pl_claim_noise(input, optimizer).sd_difference;
    if (!isnan(sd)) say(v, ", noise floor %.4f", sd);
}

static bool too_few(struct pl_verdict *v, bool present, int n)
{
    v->word = PL_NOT_TESTED;
    if (!present)
        say(v, "an arm it needs was not run");
    else if (n < 2)
        say(v, "%d paired seed%s, an interval needs 2", n, n == 1 ? "" : "s");
    return !present || n < 2;
}

/* The rule of the header for a size in [min, max]; p decides noise and direction. */
static enum pl_word word_of(const struct claim *claim, const struct pl_paired *p,
                            double size, struct pl_verdict *v)
{
    if (p->sign == 0) return PL_WITHIN_NOISE;
    if (p->sign < 0) {
        say(v, "; opposite sign%s", p->n >= 3 ? "" : ", too few seeds to say so");
        return p->n >= 3 ? PL_NOT_REPRODUCED : PL_WITHIN_NOISE;
    }
    bool inside = size >= claim->min && size <= claim->max;
    return inside && p->n >= 3 ? PL_REPRODUCED : PL_DIRECTION_ONLY;
}

/* Paired difference of two pipelines of claim->optimizer, said in v, with the mean loss
 * of the second; false (not tested, with the reason) when it cannot be had. */
static bool compare(const struct claim *claim, const struct pl_claim_input *input,
                    const char *pipeline, const char *base, struct pl_paired *p,
                    double *base_mean, struct pl_verdict *v)
{
    const double *one = losses(input, claim->optimizer, pipeline);
    const double *other = losses(input, claim->optimizer, base);
    *p = (struct pl_paired){0};
    if (one && other) *p = pl_paired_difference(one, other, input->n_seeds);
    if (too_few(v, one && other, p->n)) return false;
    say_difference(v, p, other, input->n_seeds);
    say_floor(v, input, claim->optimizer);
    *base_mean = pl_mean(other, input->n_seeds);
    return true;
}

/* Delay hurts: relative gap of claim->optimizer in the range. */
static void judge_gap(const struct claim *claim, const struct pl_claim_input *input,
                      struct pl_verdict *v)
{
    struct pl_paired p;
    double sync;
    if (compare(claim, input, "2bw", "sync", &p, &sync, v))
        v->word = word_of(claim, &p, p.mean / sync, v);
}

/* Delay hardly hurts: the relative gap's whole interval below claim->max. */
static void judge_bound(const struct claim *claim, const struct pl_claim_input *input,
                        struct pl_verdict *v)
{
    struct pl_paired p;
    double sync;
    if (!compare(claim, input, "2bw", "sync", &p, &sync, v)) return;
    double limit = claim->max * sync;
    bool diverged = p.sign > 0 && isinf(p.mean);
    if (p.low > limit || diverged) {
        say(v, "; above the limit%s", p.n >= 3 ? "" : ", too few seeds to say so");
        v->word = p.n >= 3 ? PL_NOT_REPRODUCED : PL_WITHIN_NOISE;
    } else if (p.high <= limit) {
        v->word = p.n >= 3 ? PL_REPRODUCED : PL_DIRECTION_ONLY;
    } else {
        v->word = p.sign > 0 ? PL_DIRECTION_ONLY : PL_WITHIN_NOISE;
    }
}

/* AdamW's gap over Muon's. */
static void judge_ratio(const struct claim *claim, const struct pl_claim_input *input,
                        struct pl_verdict *v)
{
    struct pl_paired p = {0};
    bool present = gap_difference(input, "adamw", "muon", &p);
    if (too_few(v, present, p.n)) return;
    struct pl_paired a = pl_paired_difference(
        losses(input, "adamw", "2bw"), losses(input, "adamw", "sync"), input->n_seeds);
    struct pl_paired m = pl_paired_difference(
        losses(input, "muon", "2bw"), losses(input, "muon", "sync"), input->n_seeds);
    double ratio = m.mean > 0.0 ? a.mean / m.mean : INFINITY;
    say(v, "%+.4f / %+.4f = ", a.mean, m.mean);
    if (m.mean > 0.0)
        say(v, "%.1f", ratio);
    else
        say(v, "no gap of Muon");
    say(v, "; difference ");
    say_difference(v, &p, NULL, 0);
    v->word = word_of(claim, &p, ratio, v);
    if (v->word == PL_REPRODUCED && a.sign <= 0) v->word = PL_DIRECTION_ONLY;
}

/* Share of the gap that error feedback recovers. */
static void judge_share(const struct claim *claim, const struct pl_claim_input *input,
                        struct pl_verdict *v)
{
    int n = input->n_seeds;
    const double *sync = losses(input, claim->optimizer, "sync");
    const double *late = losses(input, claim->optimizer, "2bw");
    const double *fed = losses(input, claim->optimizer, "2bw-ef");
    struct pl_paired gain = {0}, gap = {0}, left = {0};
    bool present = sync && late && fed;
    if (present) {
        gap = pl_paired_difference(late, sync, n);
        gain = pl_paired_difference(late, fed, n);
        left = pl_paired_difference(fed, sync, n);
    }
    if (too_few(v, present, gap.n < gain.n ? gap.n : gain.n)) return;
    if (gap.sign <= 0) {
        say(v, "no gap beyond the noise to recover: ");
        say_difference(v, &gap, sync, n);
        v->word = PL_WITHIN_NOISE;
        return;
    }
    double share = 1.0 - left.mean / gap.mean;
    say(v, "%.0f %%; gain ", 100.0 * share);
    say_difference(v, &gain, sync, n);
    v->word = word_of(claim, &gain, share, v);
}

/* PipeDream minus 2BW, absolute. */
static void judge_pipedream(const struct claim *claim,
                            const struct pl_claim_input *input, struct pl_verdict *v)
{
    struct pl_paired p;
    double flat;
    if (compare(claim, input, "pipedream", "2bw", &p, &flat, v))
        v->word = word_of(claim, &p, p.mean, v);
}

/* Momentum named by a label of the family: "muon" or "muon-b90"; NaN: another family.
 */
static double momentum_of(const char *family, const char *label)
{
    size_t n = strlen(family);
    if (strncmp(label, family, n) != 0) return NAN;
    if (label[n] == '\0')
        return strcmp(family, "muon") == 0 ? PL_CLAIM_BETA_MUON : PL_CLAIM_BETA_ADAMW;
    if (strncmp(label + n, "-b", 2) != 0) return NAN;
    const char *digits = label + n + 2;
    size_t count = strspn(digits, "0123456789");
    if (count == 0 || digits[count] != '\0') return NAN;
    return strtod(digits, NULL) / pow(10.0, (double)count);
}

/* The gap at the family's lowest momentum minus the gap at its highest. */
static void judge_momentum(const struct claim *claim,
                           const struct pl_claim_input *input, struct pl_verdict *v)
{
    const char *low = NULL, *high = NULL;
    double beta_low = INFINITY, beta_high = -INFINITY;
    for (int i = 0; i < input->n_arms; i++) {
        const char *label = input->arms[i].optimizer;
        double beta = momentum_of(claim->optimizer, label);
        if (isnan(beta) || !losses(input, label, "sync") ||
            !losses(input, label, "2bw"))
            continue;
        if (beta < beta_low) {
            beta_low = beta;
            low = label;
        }
        if (beta > beta_high) {
            beta_high = beta;
            high = label;
        }
    }
    if (!(beta_low < beta_high)) {
        say(v, "no arms of %s with two momenta (as %s-b90)", claim->optimizer,
            claim->optimizer);
        v->word = PL_NOT_TESTED;
        return;
    }
    struct pl_paired p;
    bool present = gap_difference(input, low, high, &p);
    if (too_few(v, present, p.n)) return;
    say(v, "gap at %g minus gap at %g: ", beta_low, beta_high);
    say_difference(v, &p, NULL, 0);
    v->word = word_of(claim, &p, p.mean, v);
}

/* Muon's gap without Nesterov minus its gap with. */
static void judge_nesterov(const struct claim *claim,
                           const struct pl_claim_input *input, struct pl_verdict *v)
{
    struct pl_paired p = {0};
    bool present = gap_difference(input, "muon-plain", "muon", &p);
    if (too_few(v, present, p.n)) return;
    say(v, "gap without minus gap with: ");
    say_difference(v, &p, losses(input, "muon", "sync"), input->n_seeds);
    v->word = word_of(claim, &p, p.mean, v);
}

static void judge_never(const struct claim *claim, const struct pl_claim_input *input,
                        struct pl_verdict *v)
{
    (void)claim;
    (void)input;
    say(v, "a 10B model on 200B tokens is beyond what this program trains");
    v->word = PL_NOT_TESTED;
}

#define PAPER "arXiv 2606.30634"
static const struct claim claims[] = {
    {"adamw-breaks", "one step of delay breaks AdamW", PAPER ", table 1",
     "+0.278 = 10.6 % at 360M; range: 5 % or more", judge_gap, "adamw", .05, INFINITY},
    {"muon-robust", "one step of delay hardly hurts Muon", PAPER ", table 1",
     "+0.012 = 0.5 % at 360M; limit: 1 %", judge_bound, "muon", 0, .01},
    {"adamw-over-muon", "AdamW's gap is much greater than Muon's", PAPER ", table 1",
     "ratio 23; range: 5 or more", judge_ratio, NULL, 5, INFINITY},
    {"ef-adamw", "error feedback recovers most of AdamW's gap", PAPER ", table 2",
     "85-90 %", judge_share, "adamw", .845, .905},
    {"ef-muon", "error feedback recovers over half of Muon's gap", PAPER ", table 2",
     "50-70 %", judge_share, "muon", .495, .705},
    {"pipedream-adamw", "delay growing with depth is worse than 2BW for AdamW",
     PAPER ", fig. 6", "> 0.03 at P = 16", judge_pipedream, "adamw", .03, INFINITY},
    {"pipedream-muon", "delay growing with depth is worse than 2BW for Muon",
     PAPER ", fig. 6", "> 0.03 at P = 16", judge_pipedream, "muon", .03, INFINITY},
    {"momentum-adamw", "higher momentum shrinks AdamW's gap", PAPER ", fig. 4",
     "monotone, no number", judge_momentum, "adamw", 0, INFINITY},
    {"momentum-muon", "higher momentum shrinks Muon's gap", PAPER ", fig. 4",
     "monotone, no number", judge_momentum, "muon", 0, INFINITY},
    {"moe-10b", "a 10B mixture of experts with delay and error feedback equals sync",
     PAPER ", table 3", "1.906 sync, 1.911 delayed, 1.906 with EF", judge_never, NULL,
     0, 0},
    {"nesterov", "switching Nesterov off in Muon widens its gap",
     "our hypothesis, not the paper's", "none", judge_nesterov, NULL, 0, INFINITY},
};

int pl_claims_count(void)
{
    return (int)(sizeof claims / sizeof *claims);
}

void pl_claims_judge(const struct pl_claim_input *input, struct pl_verdict *verdicts)
{
    for (int i = 0; i < pl_claims_count(); i++) {
        const struct claim *c = &claims[i];
        verdicts[i] = (struct pl_verdict){.id = c->id,
                                          .statement = c->statement,
                                          .source = c->source,
                                          .published = c->published};
        c->judge(c, input, &verdicts[i]);
    }
}
