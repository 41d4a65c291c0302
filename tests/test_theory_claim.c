/* The judge: each word from constructed losses, sign flips, divergence. */
#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "theory/claim.h"
#include "tests/runner.h"

static struct pl_verdict verdicts[32];

static const struct pl_verdict *judged(const char *id, int n_seeds,
                                       const struct pl_claim_arm *arms, int n_arms)
{
    struct pl_claim_input input = {n_seeds, n_arms, arms};
    ck_assert_int_le(pl_claims_count(), 32);
    pl_claims_judge(&input, verdicts);
    for (int i = 0; i < pl_claims_count(); i++)
        if (strcmp(verdicts[i].id, id) == 0) return &verdicts[i];
    ck_abort_msg("no claim %s", id);
}

static void word(const char *id, int n, const struct pl_claim_arm *arms, int n_arms,
                 enum pl_word expected)
{
    const struct pl_verdict *v = judged(id, n, arms, n_arms);
    ck_assert_msg(v->word == expected, "%s: %s (%s), expected %s", id,
                  pl_words[v->word], v->measured, pl_words[expected]);
}

/* Three seeds, differences with little scatter; a single number decides each case. */
static const double sync3[] = {2.60, 2.62, 2.61};
static const double with[] = {-1, 1, 0};
static const double *plus(double shift, double scatter)
{
    static double pool[16][3];
    static int next;
    double *out = pool[next++ % 16];
    for (int i = 0; i < 3; i++) out[i] = sync3[i] + shift + scatter * with[i];
    return out;
}

static void gap_case(double shift, double scatter, int n, enum pl_word expected)
{
    struct pl_claim_arm arms[] = {{"adamw", "sync", sync3},
                                  {"adamw", "2bw", plus(shift, scatter)}};
    word("adamw-breaks", n, arms, 2, expected);
}

START_TEST(gap_words)
{
    gap_case(.278, .01, 3, PL_REPRODUCED);
    gap_case(.278, .01, 2, PL_DIRECTION_ONLY);
    gap_case(.278, .3, 3, PL_WITHIN_NOISE);
    gap_case(.278, .3, 2, PL_WITHIN_NOISE);
    gap_case(.05, .01, 3, PL_DIRECTION_ONLY); /* 1.9 % */
    gap_case(-.278, .01, 3, PL_NOT_REPRODUCED);
    gap_case(-.278, .01, 2, PL_WITHIN_NOISE);
    gap_case(.278, .01, 1, PL_NOT_TESTED);
    gap_case(0, 0, 3, PL_WITHIN_NOISE);
}
END_TEST

START_TEST(gap_diverged)
{
    static const double all[] = {INFINITY, NAN, INFINITY}, one[] = {2.7, INFINITY, 2.7};
    static const double mixed[] = {2.5, INFINITY, 2.7};
    struct pl_claim_arm arms[] = {{"adamw", "sync", sync3}, {"adamw", "2bw", all}};
    word("adamw-breaks", 3, arms, 2, PL_REPRODUCED);
    word("adamw-breaks", 2, arms, 2, PL_DIRECTION_ONLY);
    arms[1].loss = one;
    word("adamw-breaks", 3, arms, 2, PL_REPRODUCED);
    arms[1].loss = mixed;
    word("adamw-breaks", 3, arms, 2, PL_WITHIN_NOISE);
    arms[0].loss = all; /* the synchronous run diverged instead */
    arms[1].loss = sync3;
    word("adamw-breaks", 3, arms, 2, PL_NOT_REPRODUCED);
    arms[1].loss = all; /* both: no pair is left */
    word("adamw-breaks", 3, arms, 2, PL_NOT_TESTED);
    struct pl_claim_arm robust[] = {{"muon", "sync", sync3}, {"muon", "2bw", all}};
    word("muon-robust", 3, robust, 2, PL_NOT_REPRODUCED);
}
END_TEST

static void bound_case(double shift, double scatter, int n, enum pl_word expected)
{
    struct pl_claim_arm arms[] = {{"muon", "sync", sync3},
                                  {"muon", "2bw", plus(shift, scatter)}};
    word("muon-robust", n, arms, 2, expected);
}

START_TEST(bound_words)
{
    bound_case(.012, .002, 3, PL_REPRODUCED); /* limit 0.0261 */
    bound_case(.001, .002, 3, PL_REPRODUCED); /* includes zero, still below the limit */
    bound_case(-.05, .002, 3, PL_REPRODUCED);
    bound_case(.012, .0001, 2, PL_DIRECTION_ONLY);
    bound_case(.012, .05, 3, PL_WITHIN_NOISE);
    bound_case(.025, .004, 3, PL_DIRECTION_ONLY); /* a gap, astride the limit */
    bound_case(.08, .002, 3, PL_NOT_REPRODUCED);
    bound_case(.08, .0001, 2, PL_WITHIN_NOISE);
}
END_TEST

static void ratio_case(double adamw, double muon, int n, enum pl_word expected)
{
    struct pl_claim_arm arms[] = {
        {"adamw", "sync", sync3},
        {"adamw", "2bw", plus(adamw, .005)},
        {"muon", "sync", sync3},
        {"muon", "2bw", plus(muon, -.005)},
    };
    word("adamw-over-muon", n, arms, 4, expected);
}

START_TEST(ratio_words)
{
    ratio_case(.278, .012, 3, PL_REPRODUCED);
    ratio_case(.278, -.012, 3, PL_REPRODUCED);
    ratio_case(.278, .1, 3, PL_DIRECTION_ONLY);
    ratio_case(0, -.278, 3, PL_DIRECTION_ONLY); /* AdamW's own gap is noise */
    ratio_case(.278, .012, 2, PL_DIRECTION_ONLY);
    ratio_case(.05, .278, 3, PL_NOT_REPRODUCED);
    ratio_case(.02, .01, 3, PL_WITHIN_NOISE);
}
END_TEST

static void share_case(const char *id, const char *optimizer, double gap, double left,
                       int n, enum pl_word expected)
{
    struct pl_claim_arm arms[] = {{optimizer, "sync", sync3},
                                  {optimizer, "2bw", plus(gap, .001)},
                                  {optimizer, "2bw-ef", plus(left, .0005)}};
    word(id, n, arms, 3, expected);
}

START_TEST(share_words)
{
    share_case("ef-adamw", "adamw", .278, .0334, 3, PL_REPRODUCED); /* 88 % */
    share_case("ef-adamw", "adamw", .278, .1, 3, PL_DIRECTION_ONLY);
    share_case("ef-adamw", "adamw", .278, .0334, 2, PL_DIRECTION_ONLY);
    share_case("ef-adamw", "adamw", .278, .4, 3, PL_NOT_REPRODUCED);
    share_case("ef-adamw", "adamw", .0005, .0001, 3, PL_WITHIN_NOISE); /* no gap */
    share_case("ef-adamw", "adamw", .278, .2781, 3, PL_WITHIN_NOISE);  /* no gain */
    share_case("ef-adamw", "adamw", -.278, .01, 3, PL_WITHIN_NOISE);
    share_case("ef-muon", "muon", .012, .005, 3, PL_REPRODUCED); /* 58 % */
    share_case("ef-muon", "muon", .012, .0012, 3, PL_DIRECTION_ONLY);
    static const double gone[] = {INFINITY, INFINITY, INFINITY};
    struct pl_claim_arm arms[] = {
        {"adamw", "sync", sync3}, {"adamw", "2bw", gone}, {"adamw", "2bw-ef", sync3}};
    word("ef-adamw", 3, arms, 3, PL_DIRECTION_ONLY); /* all of an infinite gap */
}
END_TEST

START_TEST(pipedream_words)
{
    struct pl_claim_arm arms[] = {{"muon", "2bw", sync3},
                                  {"muon", "pipedream", plus(.05, .002)}};
    word("pipedream-muon", 3, arms, 2, PL_REPRODUCED);
    word("pipedream-adamw", 3, arms, 2, PL_NOT_TESTED);
    arms[1].loss = plus(.02, .002);
    word("pipedream-muon", 3, arms, 2, PL_DIRECTION_ONLY);
    arms[1].loss = plus(-.05, .002);
    word("pipedream-muon", 3, arms, 2, PL_NOT_REPRODUCED);
}
END_TEST

START_TEST(momentum_words)
{
    struct pl_claim_arm arms[] = {
        {"muon", "sync", sync3},       {"muon", "2bw", plus(.01, .001)},
        {"muon-b90", "sync", sync3},   {"muon-b90", "2bw", plus(.05, .001)},
        {"muon-plain", "sync", sync3}, {"muon-plain", "2bw", plus(.02, .001)},
        {"adamw-b95", "sync", sync3},  {"adamw-b95", "2bw", plus(.1, .001)},
    };
    word("momentum-muon", 3, arms, 8, PL_REPRODUCED);
    word("momentum-muon", 3, arms, 2, PL_NOT_TESTED);
    word("momentum-adamw", 3, arms, 8, PL_NOT_TESTED); /* one momentum only */
    arms[3].loss = plus(.001, .001);
    word("momentum-muon", 3, arms, 8, PL_NOT_REPRODUCED);
    word("nesterov", 3, arms, 8, PL_REPRODUCED);
    arms[5].loss = plus(.01, .002);
    word("nesterov", 3, arms, 8, PL_WITHIN_NOISE);
    arms[5].loss = plus(.001, .001);
    word("nesterov", 3, arms, 8, PL_NOT_REPRODUCED);
}
END_TEST

START_TEST(nothing_run)
{
    struct pl_claim_input input = {0};
    pl_claims_judge(&input, verdicts);
    for (int i = 0; i < pl_claims_count(); i++) {
        const struct pl_verdict *v = &verdicts[i];
        ck_assert_int_eq(v->word, PL_NOT_TESTED);
        ck_assert(v->id && v->statement && v->source && v->published && v->measured[0]);
        for (int j = 0; j < i; j++) ck_assert_str_ne(v->id, verdicts[j].id);
    }
}
END_TEST

START_TEST(paired_interval)
{
    static const double a[] = {1.1, 2.3, 3.2}, b[] = {1, 2, 3};
    struct pl_paired p =
        pl_paired_difference(a, b, 3); /* .1 .3 .2, sd .1, t(2) 4.3027 */
    ck_assert_int_eq(p.n, 3);
    ck_assert_double_eq_tol(p.mean, .2, 1e-12);
    ck_assert_double_eq_tol(p.high - p.mean, 4.302652730 * .1 / sqrt(3), 1e-4);
    ck_assert_int_eq(p.sign, 0);
    ck_assert_int_eq(pl_paired_difference(b, a, 1).n, 1);
    ck_assert(isnan(pl_paired_difference(b, a, 1).low));
    ck_assert_int_eq(pl_paired_difference(b, a, 0).n, 0);
}
END_TEST

START_TEST(noise_floor)
{
    static const double sync[] = {1, 2, 3}, again[] = {1.1, 2.3, 3.2},
                        lost[] = {1, NAN, 2};
    struct pl_claim_arm arms[] = {{"muon", "sync", sync},
                                  {"muon", "sync-again", again}};
    struct pl_claim_input input = {3, 2, arms};
    struct pl_noise_floor floor = pl_claim_noise(&input, "muon");
    ck_assert_double_eq_tol(floor.sd_loss, 1, 1e-12);
    ck_assert_double_eq_tol(floor.sd_difference, .1, 1e-12);
    ck_assert(isnan(pl_claim_noise(&input, "adamw").sd_loss));
    struct pl_claim_arm three[] = {arms[0], arms[1], {"muon", "2bw", again}};
    ck_assert_ptr_nonnull(
        strstr(judged("muon-robust", 3, three, 3)->measured, "noise floor 0.1000"));
    arms[1].loss = lost;
    ck_assert(isnan(pl_claim_noise(&input, "muon").sd_difference));
}
END_TEST

static void fill(TCase *test)
{
    tcase_add_test(test, gap_words);
    tcase_add_test(test, gap_diverged);
    tcase_add_test(test, bound_words);
    tcase_add_test(test, ratio_words);
    tcase_add_test(test, share_words);
    tcase_add_test(test, pipedream_words);
    tcase_add_test(test, momentum_words);
    tcase_add_test(test, nothing_run);
    tcase_add_test(test, paired_interval);
    tcase_add_test(test, noise_floor);
}

int main(void)
{
    return run_tests("theory/claim", fill);
}
