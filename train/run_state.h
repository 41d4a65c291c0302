/* What the files of the training loop share; private to them. The plan is what the spec
 * asks for, checked and sized; the state is what the plan allocates. */
#ifndef PL_TRAIN_RUN_STATE_H
#define PL_TRAIN_RUN_STATE_H

#include "train/run.h"
#include "train/wstore.h"

struct pl_run_plan { /* owned: pl_run_plan_free */
    int n_stages;
    struct pl_wstage_plan *stages; /* [stages] */
    size_t *state_floats;          /* [stages] optimizer state, then the corrector's */
    size_t *corrector_offset;      /* [stages] where the latter begins */
    size_t *state_offset;          /* [params] within the stage's state */
    int at_once;                   /* sequences of the largest batch computed at once */
    size_t scratch_floats;         /* most that any tensor's rule wants */
    size_t lapack;                 /* bytes that it holds in threads' scratch */
    size_t widest;                 /* floats of the largest stage */
    size_t widest_state;           /* of the optimizer's state */
    bool grad;                     /* some corrector changes the gradient */
    bool spare;                    /* queue: a block for gradients that nobody wants */
};

struct pl_diagnosis {           /* blocks by stage; all NULL without spec->diagnose */
    float **gradient, **update; /* fresh ones */
    float **before;             /* u of the update before */
    float *state;               /* copy of a stage's optimizer state */
};

struct pl_run_routing { /* sums over an update, or an evaluation */
    double balance, z;
    double *load; /* (layers,experts) of the problem's routers */
};

/* Sequences that are computed at once. */
struct pl_piece {
    const struct pl_data *valid; /* windows of its validation, or NULL: of training, */
    int64_t first;               /* the first of them; of training: of the group */
    int from, B;                 /* from: in this rank's part of the group */
};

/* run_feed.c; all NULL without data. */
struct pl_feed {
    int32_t *host; /* (2,at_once,T) */
    int32_t *line; /* (T+1) for the caller of pl_feed_put */
    struct pl_feed_slot {
        struct pl_piece piece;
        bool full; /* the device has it, or will have before what it is asked next */
        int32_t *tokens; /* device: (B,T) tokens, then (B,T) targets */
    } slot[2];
    int now; /* the one in use */
    struct pl_piece next;
};

struct pl_run_state { /* owned: pl_run_state_close */
    const struct pl_run_spec *spec;
    struct pl_run_plan plan;
    struct pl_wstore store;
    float **grads;      /* [stages] also holds y during an evaluation */
    float **state;      /* [stages] optimizer's, then corrector's; NULL: none */
    float **ahead;      /* [stages] gradients of the next batch; NULL: not wanted */
    float *u, *scratch; /* one stage's update; rule's scratch */
    float *spare;       /* floats of the largest stage; NULL: not queue */
    const float **forward, **backward; /* [stages] pointers of the current microbatch */
    float **wanted;                    /* [stages] where its gradients go */
    double *norms, norm; /* [stages] gradient norms of the current update; of all */
    struct pl_feed feed;
    struct pl_look_args *look; /* [stages] of the current stretch */
    struct pl_diagnosis diagnosis;
    struct pl_run_routing routing;
    int segment;                 /* current stretch, -1 before the first */
    int64_t segment_end;         /* first update after it */
    int64_t next;                /* next update */
    double saved_at;             /* pl_clock of the last checkpoint */
    struct pl_run_result result; /* rows and evals so far; arrays hold the whole run */
};

/* Check the spec and size everything. Errors as pl_run. */
int pl_run_plan(const struct pl_run_spec *spec, struct pl_run_plan *plan);
void pl_run_plan_free(struct pl_run_plan *plan);
/* Version that a backward reads, under the spec's fidelity. A map that stashes says
 * nothing about live versions: backwards of update n run between the updates n-1 and n,
 * so version n is live. */
int64_t pl_run_backward(const struct pl_run_spec *spec, int stage, int64_t micro);
/* Can the group of update n run as one batch? */
bool pl_run_fused(const struct pl_run_spec *spec, int64_t n);
/* What look-aheads of a stage may depend on in stretch k, which starts at update
 * `begin`. */
struct pl_look_args pl_run_look(const struct pl_run_spec *spec, int k, int64_t begin,
                                int stage);
/* Mean forward delay of a stage in update n. */
double pl_run_tau(const struct pl_run_spec *spec, int stage, int64_t n);
/* Oldest version that a stage's forwards of update n read. */
int64_t pl_run_oldest(const struct pl_run_spec *spec, int stage, int64_t n);
/* Number of evaluations of a run that completes. */
int64_t pl_run_n_evals(const struct pl_run_spec *spec);

/* Allocate and set the initial weights. */
int pl_run_state_open(const struct pl_run_spec *spec, struct pl_run_state *run);
void pl_run_state_close(struct pl_run_state *run);
/* Device memory for n floats; none for 0. */
int pl_run_floats(const struct pl_device *dev, size_t n, float **out);
/* Enter the stretch that update n belongs to, if it is not the current one. */
int pl_run_enter(struct pl_run_state *run, int64_t n, bool resumed);

/* Sequences from ... from+B-1 of this rank's part of the group of `count` (its part)
 * that begins with sequence `first` of the training order, on the device. While they
 * are computed, what follows there, or in the group after it, is sent. */
int pl_run_batch(struct pl_run_state *run, int64_t first, int from, int B, int count,
                 struct pl_batch *out);
/* Gradient of update n at the versions of the map; row->loss is set. */
int pl_run_gradient(struct pl_run_state *run, int64_t n, struct pl_row *row);
/* The same, of the batch of update `batch` in its place; only the loss is said. */
int pl_run_gradient_of(struct pl_run_state *run, int64_t n, int64_t batch,
                       double *loss);
/* The gradient ahead (run_ahead.c): does the rule want it? Its memory; taken after the
 * gradient of update n, put into the rule's state after its step. */
bool pl_run_looks_ahead(const struct pl_run_spec *spec);
int pl_run_ahead_open(struct pl_run_state *run);
void pl_run_ahead_close(struct pl_run_state *run);
int pl_run_ahead(struct pl_run_state *run, int64_t n);
int pl_run_ahead_keep(struct pl_run_state *run, int64_t n);
/* Clip, optimizer, corrector; the rest of the row. */
int pl_run_apply(struct pl_run_state *run, int64_t n, struct pl_row *row);
/* The part after clipping of one stage; *updates and *stale += squares of its norms. */
int pl_run_apply_stage(struct pl_run_state *run, int64_t n, int s, double rate,
                       double *updates, double *stale);
/* u of a stage by the optimizer, from run->grads[s] at weights w; selection biases have
 * none. */
int pl_run_rule(struct pl_run_state *run, int64_t n, int s, double rate, const float *w,
                float *state, float *u);
/* Device memory for pieces of `tokens` tokens; released. */
int pl_feed_open(struct pl_run_state *run, size_t tokens);
void pl_feed_close(struct pl_run_state *run);
/* The piece's arrays in batch; next: what to send while it is computed, or NULL. */
int pl_feed_take(struct pl_run_state *run, const struct pl_piece *piece,
                 const struct pl_piece *next, struct pl_batch *batch);
/* The same of n + 1 tokens that are here: n and, each, the next. */
int pl_feed_put(struct pl_run_state *run, const int32_t *tokens, int n,
                struct pl_batch *batch);

/* Gradient of `count` sequences of the training order from `first` on, whole
 * microbatches, of which this rank takes its part; times scale, added where run->wanted
 * says, at the blocks in run->forward and run->backward; plan.at_once at a time.
 * routed: what routers did counts for the update (pl_run_routing_add). */
int pl_run_pieces(struct pl_run_state *run, int64_t first, int count, double scale,
                  bool routed, double *loss);
/* Is the work of a batch split over ranks? Then the sum over ranks of gradients (each
 * scaled by 1/ranks) and of a loss (divided likewise here). */
bool pl_run_split(const struct pl_run_spec *spec);
void pl_run_gather(struct pl_run_state *run, float *const *grads, double *loss);
/* Scale gradients to the limit of their scope; run->norms and run->norm get the
 * norms before. */
int pl_run_clip(struct pl_run_state *run, float *const *grads);

/* Diagnosis (run_diagnose.c): is update n one of those? Rows of a run that completes;
 * device floats. Fresh updates before its gradient; then of each stage what is known
 * before the optimizer, and after the write. */
bool pl_run_diagnosed(const struct pl_run_spec *spec, int64_t n);
int64_t pl_run_n_diags(const struct pl_run_spec *spec);
size_t pl_run_diagnose_floats(const struct pl_run_plan *plan);
int pl_run_diagnose_open(struct pl_run_state *run);
void pl_run_diagnose_close(struct pl_run_state *run);
int pl_run_fresh(struct pl_run_state *run, int64_t n);
int pl_run_diagnose_gradient(struct pl_run_state *run, int64_t n, int s,
                             double distance);
int pl_run_diagnose_step(struct pl_run_state *run, int64_t n, int s);

/* What routers do (run_routing.c): from zero; add the batch that the problem saw last,
 * a share of the whole; then the load of the fullest expert over the mean load, largest
 * over layers; or a row's numbers, over all ranks. NaN without routers. */
void pl_run_routing_open(struct pl_run_state *run);
void pl_run_routing_close(struct pl_run_state *run);
void pl_run_routing_begin(struct pl_run_state *run);
void pl_run_routing_add(struct pl_run_state *run, double share);
double pl_run_routing_top(const struct pl_run_state *run);
void pl_run_routing_row(struct pl_run_state *run, struct pl_row *row);

/* Has a signal asked to stop? Ranks get the same answer. */
bool pl_run_stopped(const struct pl_run_spec *spec);

/* Mean loss of the validation windows of data (NULL: the problem's own loss). PL_EINTR:
 * stopped on the way. */
int pl_run_loss(struct pl_run_state *run, const struct pl_data *data,
                const float *const *weights, double *loss);
/* Scores that are due at the newest version; how many a run that completes has. */
int pl_run_scores(struct pl_run_state *run);
int64_t pl_run_n_scores(const struct pl_run_spec *spec);
/* Validation at the newest version. */
int pl_run_eval(struct pl_run_state *run, struct pl_eval *eval);

#endif
