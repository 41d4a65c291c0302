/* Optimizers: a rule returns its update u (learning rate and decoupled decay included)
 * and never touches weights. One file each under train/optim/, all in pl_optim_types.
 */
#ifndef PL_TRAIN_OPTIM_H
#define PL_TRAIN_OPTIM_H

#include <stdint.h>

#include "gpu/device.h"
#include "train/param.h"

struct pl_optim_type;

/* Every switch that the shipped rules disagree on; one struct for all rules, filled
 * from the optimizer.* keys. */
struct pl_optim {
    const struct pl_optim_type *type;
    double lr;                /* peak rate; Muon: of hidden matrices */
    double aux_lr;            /* Muon: AdamW rate of everything else */
    double beta1, beta2, eps; /* AdamW, and Muon's AdamW part */
    double momentum;          /* SGD, Muon */
    bool nesterov;            /* SGD, Muon */
    bool ema;                 /* momentum form: m = b m + (1-b) g, else m = b m + g */
    double decay; /* decoupled; u includes eta decay w (SGD: coupled when `coupled`) */
    double aux_decay;  /* Muon's AdamW part */
    bool coupled;      /* SGD: g + decay w before the momentum (torch) */
    bool first_copies; /* SGD: first call sets m = g (torch), not m from 0 */
    int scale; /* Muon: 0 sqrt(max(1,m/n)) (Jordan), 1 0.2 sqrt(max(m,n)) (Moonlight) */
    int ns_steps; /* Muon: Newton-Schulz iterations, 5 */
};

struct pl_optim_type {
    const char *name, *summary, *source;
    bool beta1_is_momentum; /* the first-moment coefficient is beta1, not momentum */
    /* Floats of persistent state for a tensor (zeroed before the first step), and of
     * scratch that is free between calls. */
    size_t (*state_floats)(const struct pl_optim *o, const struct pl_param *p);
    size_t (*scratch_floats)(const struct pl_optim *o, const struct pl_param *p);
    /* u = update of tensor p from gradient g (already clipped) at weights w; t =
     * 1,2,... counts applied updates; rate multiplies lr and aux_lr (the schedule's).
     * All arrays are the tensor's own, in device memory; g may be destroyed. */
    int (*step)(const struct pl_optim *o, const struct pl_device *dev,
                const struct pl_param *p, float *g, const float *w, float *state,
                float *scratch, int64_t t, double rate, float *u);
};

extern const struct pl_optim_type *const pl_optim_types[]; /* NULL-terminated */
const char *const *pl_optim_names(void);
const struct pl_optim_type *pl_optim_find(const char *name);

/* First-moment coefficient: the corrector `nesterov` takes it as its c. */
double pl_optim_beta(const struct pl_optim *o);

/* AdamW as in optim/adamw.c with the rate eta and this decay: what muon's tensors that
 * are not hidden matrices take. state holds m, then v. */
int pl_adamw_step(const struct pl_optim *o, const struct pl_device *dev,
                  const struct pl_param *p, const float *g, const float *w,
                  float *state, int64_t t, double eta, double decay, float *u);

/* X (m,n) <- approximate polar factor by ns_steps of Jordan's quintic; scratch holds
 * 2 r^2 + r s floats, r = min, s = max(m,n). */
int pl_newton_schulz(const struct pl_device *dev, int m, int n, int steps, float *X,
                     float *scratch);

/* Rate factor in (0,1] at update n of total: warm-up (n+1)/(W+1), then the named decay.
 */
enum pl_rate_kind { PL_RATE_CONSTANT, PL_RATE_COSINE, PL_RATE_WSD };
extern const char *const pl_rate_names[]; /* constant cosine wsd NULL */
struct pl_rate {
    enum pl_rate_kind kind;
    int64_t warmup, total; /* updates */
    double floor;          /* final rate over peak */
    double decay_fraction; /* WSD: last part, 1-sqrt shape */
    double delay_power;    /* rho, below; 0: none */
    int64_t delay_updates; /* K; 0: for ever */
};
double pl_rate_at(const struct pl_rate *rate, int64_t n);
/* Further factor of a stage whose gradient is tau updates old on average: tau^-p, p =
 * rho (1 - min(n/K, 1)), 1 for tau <= 1. rho = 1 is PipeMare's rescheduling (T1, arXiv
 * 1910.05124), K = 0 the fixed eta / tau^rho of arXiv 2505.01099. */
double pl_rate_delay(const struct pl_rate *rate, int64_t n, double tau);

#endif
