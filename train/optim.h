/* Optimizers: a rule returns its update u (learning rate and decoupled decay included)
 * and never touches weights. One file each under train/optim/, all in pl_optim_types.
 */
#ifndef PL_TRAIN_OPTIM_H
#define PL_TRAIN_OPTIM_H

#include <stdint.h>

#include "gpu/device.h"
#include "train/param.h"

struct pl_optim_type;

/* How decoupled decay k w meets a step of s (k: enum pl_decay_factor). */
enum pl_decay_form {
    PL_DECAY_BEFORE,   /* u = s + k w: on the weights before the step (torch) */
    PL_DECAY_AFTER,    /* u = s + k (w - s): on those after it (SOAP) */
    PL_DECAY_PROXIMAL, /* u = (s + k w) / (1 + k) (Adan) */
    PL_DECAY_CAUTIOUS, /* u = s + k w where s w >= 0, else s (modded-nanogpt) */
    PL_DECAY_COUPLED   /* L2: g + decay w before everything (torch.optim.SGD) */
};

/* k, from the current rate eta and the peak rate lr. */
enum pl_decay_factor {
    PL_DECAY_LR,          /* eta decay (torch) */
    PL_DECAY_LR2,         /* eta^2 decay (modded-nanogpt) */
    PL_DECAY_CORRECTED,   /* eta^2 / lr decay (Meta's optimizers) */
    PL_DECAY_INDEPENDENT, /* eta / lr decay (Meta; lion-pytorch's decoupled option) */
    PL_DECAY_CONSTANT     /* decay */
};

enum pl_eps_form {
    PL_EPS_CORRECTED,   /* sqrt(v) / sqrt(bc2) + eps (torch) */
    PL_EPS_UNCORRECTED, /* (sqrt(v) + eps) / sqrt(bc2) (Moonlight, llm-baselines) */
    PL_EPS_UNDER        /* sqrt(v / bc2 + eps) */
};

/* Whose eigenbases basis rotation takes: of G G^T on average, or of M M^T. */
enum pl_rotation_source { PL_ROTATE_SECOND, PL_ROTATE_FIRST };

/* Which tensors take the rule; those that do not take AdamW with the aux_ settings. */
enum pl_tensors {
    PL_TENSORS_HIDDEN,   /* hidden matrices (Muon) */
    PL_TENSORS_MATRICES, /* embedding and head too (MARS) */
    PL_TENSORS_ALL       /* vectors too (MARS: optimize_1d) */
};

/* Which tensors do not decay. */
enum pl_decay_spares {
    PL_SPARES_NONE,    /* all decay (Moonlight, OLMoE) */
    PL_SPARES_VECTORS, /* gains and biases do not (nanoGPT: dim >= 2 decays) */
    PL_SPARES_TABLES   /* embedding and head neither */
};

/* Three rules that are called NAdamW; see optim/nadamw.c. */
enum pl_nadam_form { PL_NADAM_TORCH, PL_NADAM_ALGOPERF, PL_NADAM_OPTAX };

/* Factor of an orthogonalised matrix of m rows and n columns. */
enum pl_shape_scale {
    PL_SCALE_JORDAN,    /* sqrt(max(1, m/n)); torch.optim.Muon's original */
    PL_SCALE_MOONLIGHT, /* 0.2 sqrt(max(m, n)); match_rms_adamw */
    PL_SCALE_RATIO,     /* sqrt(m/n) */
    PL_SCALE_NONE       /* 1 */
};

/* Norm whose linear minimisation oracle makes Scion's update; see optim/scion.c. */
enum pl_lmo {
    PL_LMO_SPECTRAL,
    PL_LMO_SIGN,
    PL_LMO_COLUMN,
    PL_LMO_ROW,
    PL_LMO_TOKEN,
    PL_LMO_RMS
};

/* Every switch that the shipped rules disagree on; one struct for all rules. The keys
 * optimizer.* fill it, over the defaults of the rule (pl_optim_type). */
struct pl_optim {
    const struct pl_optim_type *type;
    /* all rules */
    double lr; /* peak rate; of the matrices where there is an AdamW part */
    double decay;
    enum pl_decay_form decay_form;
    enum pl_decay_factor decay_factor;
    enum pl_decay_spares decay_spares;
    /* muon, normuon, mars: AdamW part, for what is not theirs */
    enum pl_tensors tensors;
    double aux_lr, aux_decay;
    double aux_beta1, aux_beta2;
    /* momentum: sgd, signum, muon, normuon, scion */
    double momentum;
    double dampening; /* sum form: m = b m + (1 - dampening) g */
    bool nesterov;
    bool ema;          /* m = b m + (1-b) g, else m = b m + g */
    bool first_copies; /* sgd, sum form: the first call sets m = g (torch) */
    /* Adam's relatives */
    double beta1, beta2, beta3, eps;
    enum pl_eps_form eps_form;
    enum pl_nadam_form nadam_form;
    double momentum_decay; /* nadam: psi, 4e-3 */
    double gamma;          /* mars: of the difference of gradients */
    bool exact;            /* mars: of gradients of one batch */
    double cautious;       /* lion: factor where update and gradient disagree; 1: off */
    /* orthogonalised updates: muon, normuon, mars-shampoo, scion */
    enum pl_shape_scale scale;
    int coefficients; /* number in pl_ns_sets (train/newton_schulz.h) */
    int ns_steps;     /* 0: as many as the set has */
    double ns_eps;    /* 0: the set's */
    bool ns_clamp;    /* X / max(norm, eps), else X / (norm + eps) */
    bool ns_bf16;     /* matrices rounded to bf16, as official Muon; else float */
    bool fused_qkv;   /* queries, keys and values as one matrix */
    /* scion, by enum pl_param_kind */
    enum pl_lmo lmo[PL_PARAM_BALANCE + 1];
    double radius[PL_PARAM_BALANCE + 1];
    bool normalized;
    /* moments of whole matrices: soap, basis-rotation, shampoo */
    double moment_beta;   /* soap, basis-rotation: average of G G^T; < 0: beta2 */
    bool bias_correction; /* of both moments */
    int refresh;          /* updates from one refresh of bases or roots to the next */
    int max_precond_dim;  /* soap: longest side with a basis; shampoo: of a block */
    bool precondition_1d; /* soap: vectors have a basis too */
    bool normalize_grads; /* soap: updates of RMS 1 before the rate */
    enum pl_rotation_source rotation_source;
    bool one_sided;  /* basis-rotation: the shorter side alone */
    int start;       /* shampoo: first update with roots; 0: refresh */
    bool merge_dims; /* shampoo: max_precond_dim elements or less are one vector */
    bool graft;      /* shampoo: length of Adam's step */
    double graft_beta2, graft_eps;
};

/* Keys that all rules read; those with an AdamW part; those that orthogonalise. */
#define PL_DECAY_KEYS "lr decay decay_form decay_factor decay_spares "
#define PL_AUX_KEYS "tensors aux_lr aux_decay aux_beta1 aux_beta2 "
#define PL_NS_KEYS "coefficients ns_steps ns_eps ns_clamp ns_precision "

enum pl_first_moment { PL_MOMENTUM, PL_BETA1, PL_BETA2 };

struct pl_optim_type {
    const char *name, *summary, *source;
    enum pl_first_moment first_moment; /* which member is its coefficient */
    bool partial;             /* tensors that pl_optim_takes refuses take AdamW */
    const char *keys;         /* the optimizer.* that it reads beside name, by spaces */
    struct pl_optim defaults; /* of the official implementation, or as the file says */
    /* The members below see tensors that take the rule, elements of the problem's
     * array. Floats of persistent state (zeroed before the first step), and of scratch
     * that is free between calls. */
    size_t (*state_floats)(const struct pl_optim *o, const struct pl_param *p);
    size_t (*scratch_floats)(const struct pl_optim *o, const struct pl_param *p);
    /* u = update of tensor p from gradient g (already clipped) at weights w; t =
     * 1,2,... counts applied updates; rate multiplies lr and aux_lr (the schedule's).
     * All arrays are the tensor's own, in device memory; g may be destroyed. */
    int (*step)(const struct pl_optim *o, const struct pl_device *dev,
                const struct pl_param *p, float *g, const float *w, float *state,
                float *scratch, int64_t t, double rate, float *u);
    /* Orthogonalised updates, for all tensors of a shape at once; NULL: none. polar:
     * rows and columns of the matrix that step leaves in u to become its polar factor,
     * rows 0 when u is the update already. finish makes the update of the factor. */
    struct pl_param (*polar)(const struct pl_optim *o, const struct pl_param *p);
    int (*finish)(const struct pl_optim *o, const struct pl_device *dev,
                  const struct pl_param *p, const float *w, float *state,
                  float *scratch, double rate, float *u);
    /* With o->exact, before the step of update n + 1 the gradient of its batch at the
     * weights that update n's was taken at is put at state + ahead * elements; 0: not
     * wanted. */
    int ahead;
    /* Longest side of a matrix whose eigenvectors are taken; NULL: none are. */
    int (*eigen_side)(const struct pl_optim *o, const struct pl_param *p);
};

extern const struct pl_optim_type *const pl_optim_types[]; /* NULL-terminated */
extern const struct pl_optim_type pl_optim_adamw;
const char *const *pl_optim_names(void);
const struct pl_optim_type *pl_optim_find(const char *name);

/* Names of the enums above for the keys, each after "auto", which is the rule's own. */
extern const char *const pl_tensor_sets[];
extern const char *const pl_decay_spared[];
extern const char *const pl_decay_forms[];
extern const char *const pl_decay_factors[];
extern const char *const pl_eps_forms[];
extern const char *const pl_nadam_forms[];
extern const char *const pl_rotation_sources[];
extern const char *const pl_shape_scales[];
extern const char *const pl_lmos[];

/* First-moment coefficient: the corrector `nesterov` takes it as its c. */
double pl_optim_beta(const struct pl_optim *o);

/* Whole steps (optim_step.c), without decay where it is spared. Of one tensor, and what
 * it wants of state and scratch; arguments as pl_optim_type's. */
int pl_optim_step(const struct pl_optim *o, const struct pl_device *dev,
                  const struct pl_param *p, float *g, const float *w, float *state,
                  float *scratch, int64_t t, double rate, float *u);
size_t pl_optim_state(const struct pl_optim *o, const struct pl_param *p);
size_t pl_optim_scratch(const struct pl_optim *o, const struct pl_param *p);

/* Of the tensors of a stage but selection biases, to the bit what pl_optim_step makes
 * of each. Matrices of one shape are worked on together: on a device in host memory one
 * a thread (base/pool.h), whatever the rule, elsewhere orthogonalised in one call.
 * Arrays are the stage's; tensor i is at params[i].offset of g, w and u and at
 * state_at[i] of state (NULL where no tensor has any); scratch as below. Allocates
 * nothing. */
struct pl_optim_stage {
    const struct pl_device *dev;
    const struct pl_param *params;
    int n;
    const size_t *state_at;
    float *g, *state, *scratch;
    const float *w;
    int64_t t;
    double rate;
    float *u;
};
int pl_optim_stage(const struct pl_optim *o, const struct pl_optim_stage *s);
/* Scratch that it takes, with the threads that there are. */
size_t pl_optim_stage_scratch(const struct pl_optim *o, const struct pl_device *dev,
                              const struct pl_param *params, int n);

/* Where in tensor p's state the gradient ahead belongs (pl_optim_type); 0: none. */
size_t pl_optim_ahead(const struct pl_optim *o, const struct pl_param *p);
/* Bytes that LAPACK holds meanwhile, in the threads' own scratch. */
size_t pl_optim_stage_lapack(const struct pl_optim *o, const struct pl_device *dev,
                             const struct pl_param *params, int n);
/* PL_ECONFIG: a tensor has a side that is too long for eigenvectors. */
int pl_optim_check(const struct pl_optim *o, const struct pl_param *params, int n);

/* What rules share (optim/common.c). */

/* Does the tensor take the rule itself, not its AdamW part? */
bool pl_optim_takes(const struct pl_optim *o, const struct pl_param *p);

/* Begins a step: coupled decay goes into g. */
int pl_optim_couple(const struct pl_optim *o, const struct pl_device *dev, size_t n,
                    const float *w, float *g);
/* Ends it: u = the step scale u with decay at the rate eta. scratch: n floats, used by
 * cautious decay only, pl_decay_scratch says so. */
int pl_optim_decay(const struct pl_optim *o, const struct pl_device *dev, size_t n,
                   double eta, double scale, const float *w, float *u, float *scratch);
double pl_optim_decay_rate(const struct pl_optim *o, double eta); /* k */
size_t pl_decay_scratch(const struct pl_optim *o, const struct pl_param *p);

/* M = mu M + (1-mu) g (EMA) or mu M + (1 - dampening) g; u = M, or with Nesterov's look
 * ahead (1-mu) g + mu M or g + mu M. */
int pl_optim_momentum(const struct pl_optim *o, const struct pl_device *dev, size_t n,
                      const float *g, float *M, float *u);
/* y = b y + (1-b) x. */
int pl_optim_average(const struct pl_device *dev, size_t n, double b, const float *x,
                     float *y);
/* u = u / (sqrt(v) / sqrt(bc2) + eps), eps corrected or not. */
int pl_optim_divide(const struct pl_optim *o, const struct pl_device *dev,
                    const struct pl_param *p, double bc2, const float *v, float *u);

/* AdamW as in optim/adamw.c with the rate eta and this decay, before the step. state
 * holds m, then v. */
int pl_adamw_step(const struct pl_optim *o, const struct pl_device *dev,
                  const struct pl_param *p, const float *g, const float *w,
                  float *state, int64_t t, double eta, double decay, float *u);
/* Whole steps of several tensors in one call, each with its own decay, where the device
 * has all of it: listed says whether. */
bool pl_adamw_listed(const struct pl_optim *o);
int pl_adamw_list(const struct pl_optim *o, const struct pl_device *dev, int count,
                  const struct pl_adamw_tensor *list, int64_t t, double rate);
/* The rule of the AdamW part: its settings in the places of AdamW's. */
struct pl_optim pl_aux(const struct pl_optim *o);
/* The AdamW part: a whole step with aux_lr, aux_decay, aux_beta1 and aux_beta2; state
 * as above. */
int pl_aux_step(const struct pl_optim *o, const struct pl_device *dev,
                const struct pl_param *p, float *g, const float *w, float *state,
                float *scratch, int64_t t, double rate, float *u);

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
