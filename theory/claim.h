/* The paper's claims and their judge: numbers in, verdicts out. Pure functions. */
#ifndef PL_THEORY_CLAIM_H
#define PL_THEORY_CLAIM_H

enum pl_word {
    PL_REPRODUCED,     /* direction and stated range, at least 3 paired seeds */
    PL_DIRECTION_ONLY, /* direction beyond the noise; outside the range or 2 seeds */
    PL_WITHIN_NOISE,   /* the interval of the paired difference includes no effect */
    PL_NOT_REPRODUCED, /* the opposite, or clearly outside */
    PL_NOT_TESTED
};
extern const char *const pl_words[];

struct pl_verdict {
    const char *id, *statement, *source; /* constants */
    const char *published;               /* the paper's number, as text */
    char measured[160];                  /* ours, as text */
    enum pl_word word;
};

/* Final validation losses of one arm; loss[i] belongs to seed i of every arm, with the
 * same data order and initial weights. A diverged run is +infinity (NaN is read so).
 * optimizer: adamw, muon, muon-plain (Nesterov off), or one of these with another first
 * momentum, as adamw-b95 (beta1 .95) or muon-b90; the bare labels stand for
 * PL_CLAIM_BETA_*. pipeline: sync, 2bw, 2bw-ef, pipedream, or sync-again: the
 * synchronous run on a second set of seeds, from which the noise floor is taken. */
struct pl_claim_arm {
    const char *optimizer, *pipeline;
    const double *loss; /* [n_seeds] */
};

#define PL_CLAIM_BETA_ADAMW 0.90
#define PL_CLAIM_BETA_MUON 0.95

struct pl_claim_input { /* all borrowed */
    int n_seeds;
    int n_arms;
    const struct pl_claim_arm *arms;
};

/* Paired difference over seeds: mean and 95 % t interval, in nats. A pair with one
 * diverged run counts as an infinite difference, one with two is left out. With
 * infinite differences there is no t interval: [low, high] is then [0, inf] or [-inf,
 * 0] when all pairs have the same sign (0 excluded: sign is +1 or -1), else [-inf, inf]
 * (sign 0). */
struct pl_paired {
    int n; /* pairs */
    double mean, low, high;
    int sign; /* +1, -1: beyond the noise; 0: the interval includes zero, or n < 2 */
};
struct pl_paired pl_paired_difference(const double *a, const double *b, int n);

/* Spread of a synchronous arm: sd of the loss over seeds, and sd of the paired
 * differences sync-again minus sync (what two equal runs differ by). NaN where the arms
 * are absent or not finite. */
struct pl_noise_floor {
    double sd_loss, sd_difference;
};
struct pl_noise_floor pl_claim_noise(const struct pl_claim_input *input,
                                     const char *optimizer);

/* The table: as many as pl_claims_count(), in order; ids are stable. The rule of all:
 * - every size is judged from paired per-seed differences; "beyond the noise" means
 *   that the 95 % t interval of their mean excludes zero;
 * - interval includes zero: within noise;
 * - beyond the noise in the stated direction, the size in the stated range (printed in
 *   `published`), 3 seeds or more: reproduced; outside the range or 2 seeds: direction
 *   only;
 * - beyond the noise in the opposite direction, 3 seeds or more: not reproduced
 *   (2 seeds: within noise, the text says "opposite sign");
 * - "hardly hurts" is a bound: the whole interval below the limit is reproduced, also
 *   when it includes zero; the whole interval above it is not reproduced;
 * - a share or ratio of gaps is judged only where the gap itself is beyond the noise;
 * - arms absent, fewer than 2 pairs: not tested, with the reason. */
int pl_claims_count(void);
/* verdicts: room for pl_claims_count(). */
void pl_claims_judge(const struct pl_claim_input *input, struct pl_verdict *verdicts);

#endif
