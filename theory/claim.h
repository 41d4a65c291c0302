/* The paper's claims and their judge: numbers in, verdicts out. */
#ifndef PL_THEORY_CLAIM_H
#define PL_THEORY_CLAIM_H

enum pl_word {
    PL_REPRODUCED,     /* direction and stated range, at least 3 paired seeds */
    PL_DIRECTION_ONLY, /* direction beyond the noise, but outside the range or 2 seeds */
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

#endif
