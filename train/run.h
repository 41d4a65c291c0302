/* The training loop: executes a version map on a problem. Emits rows through a sink and
 * knows no files except its checkpoint. */
#ifndef PL_TRAIN_RUN_H
#define PL_TRAIN_RUN_H

#include <signal.h>

#include "sim/versions.h"
#include "train/correct.h"
#include "train/data.h"
#include "train/optim.h"
#include "train/problem.h"
#include "train/score.h"

enum pl_clip_scope { PL_CLIP_NONE, PL_CLIP_GLOBAL, PL_CLIP_STAGE };
/* What a gradient is taken at (semantics in pipelag-run(1)): one version on all stages;
 * each stage its own, the same in F and B; F old and B the live one; all stages at one
 * common version, each stage's own share of it used tau updates later. In the order of
 * delay.fidelity's choices after auto. */
enum pl_fidelity {
    PL_FIDELITY_GLOBAL,
    PL_FIDELITY_STASH,
    PL_FIDELITY_NOSTASH,
    PL_FIDELITY_QUEUE
};
enum pl_status { PL_RUN_DONE, PL_RUN_DIVERGED, PL_RUN_INTERRUPTED };

/* A stretch of updates under one corrector; the version map already drains between
 * them. */
struct pl_segment {
    int64_t updates;
    struct pl_corrector corrector;
};

struct pl_row { /* one per update n (turning version n into n+1) */
    int64_t update;
    double time_s;      /* simulated end of the update */
    double loss;        /* training loss of the gradient it consumes */
    double rate;        /* schedule factor */
    double grad_norm;   /* before clipping, over all stages */
    double update_norm; /* of u */
    double stale_norm;  /* ||x_n - x_(forward version)||, over all stages */
    /* Mixtures of experts, else NaN: struct pl_routers' terms (NaN: coefficient 0), and
     * the load of the fullest expert over the mean load, largest over layers. */
    double balance_loss, z_loss, load_max;
};

struct pl_eval { /* validation at version n = after n updates */
    int64_t update;
    double time_s;        /* simulated end of update n-1; 0 for n = 0 */
    double loss;          /* stored iterate x (headline) */
    double loss_y;        /* y = x + c u_last; equals loss when c = 0 */
    double bits_per_byte; /* of loss; NaN when bytes are unknown */
    /* Exact gradient at x: Euclidean norm, dual norm (struct pl_problem_known); at y.
     * NaN: a model. */
    double grad_norm, grad_dual, grad_dual_y;
    double load_max; /* as struct pl_row's, over the validation windows */
};

struct pl_score { /* one set at version n */
    char name[48];
    int64_t update, items; /* tokens or questions */
    double loss;           /* nats per token: of the text, or of the right answers */
    double bits_per_byte;  /* NaN unknown */
    double accuracy, accuracy_norm; /* NaN for texts */
};

/* Update n of one stage against the fresh one: what the same tokens would have given at
 * the newest weights. Cosines are NaN where one of the two is 0. */
struct pl_diag {
    int64_t update, stage;
    double tau;          /* mean of the group */
    double cos_update;   /* of x[n] - x[n+1], as applied, and the fresh update */
    double cos_gradient; /* of the gradients that the optimizer is given */
    double distance;     /* ||x_n - x_(oldest version read)|| */
    double turning;      /* cosine of u[n] and u[n-1] */
    double grad_norm;    /* before clipping */
    double update_norm;  /* of u */
    double half_life;    /* of the first moment, over tau; infinite without delay */
};

struct pl_run_spec {
    const struct pl_device *device;
    struct pl_problem *problem;         /* borrowed */
    const struct pl_data *data;         /* NULL for convex problems */
    const struct pl_versions *versions; /* stages == problem->n_stages */
    enum pl_fidelity fidelity;          /* global refuses maps whose stages differ */
    bool decay_stale; /* decoupled decay of the weights that forward read */
    int batch;        /* sequences per update, a multiple of versions->m */
    int at_once;      /* most of them computed at once, on a rank; 0: no limit */
    int T;
    uint64_t seed; /* of weights and data order */
    /* Data parallel, under MPI: ranks > 1 take equal parts of every microbatch
     * and sum their gradients; 0 is 1. Everything else is computed alike on all ranks;
     * rank 0 writes the checkpoints. Problems without data are not split. */
    int rank, ranks;
    struct pl_optim optim;
    struct pl_rate rate;
    double clip; /* norm; <= 0: none */
    enum pl_clip_scope clip_scope;
    int n_segments;
    const struct pl_segment *segments; /* updates sum to versions->updates */
    bool replay;                       /* never fuse microbatches */
    int64_t eval_every;                /* updates; also at 0 and at the end */
    int eval_sequences;                /* validation windows, 0: no validation */
    bool diagnose;          /* pl_diag rows wherever a version is evaluated */
    double bytes_per_token; /* of the validation windows; NaN unknown, or no data */
    const struct pl_score_sets *scores; /* texts at every evaluation, questions at the
                                           first and last version; NULL: none */
    double diverged_above;  /* loss that ends the run as diverged (NaN always does) */
    const char *checkpoint; /* path or NULL */
    double checkpoint_s;    /* seconds between checkpoints; also at stop */
    int64_t checkpoint_updates; /* updates between checkpoints; 0: by time only */
    bool resume;                /* continue from checkpoint when it exists */
    uint64_t fingerprint;       /* of everything that must agree to resume */
    const volatile sig_atomic_t *stop; /* set by a signal handler; may be NULL */
    /* As they are made, so after a resume only the new ones; either may be NULL. */
    void (*on_row)(void *context, const struct pl_row *row);
    void (*on_eval)(void *context, const struct pl_eval *eval);
    void *context;
    /* Initial weights into blocks[stage], device memory; NULL: the problem draws them
     * from seed. */
    int (*load)(void *files, float *const *blocks);
    /* The stored iterate when the run ends, done or interrupted, after `update`
     * updates; not of a diverged run. NULL: nobody wants it. */
    int (*save)(void *files, int64_t update, const float *const *blocks);
    void *files; /* of the two */
};

struct pl_run_result { /* owned: pl_run_free */
    enum pl_status status;
    int64_t diverged_at; /* update, or -1 */
    int64_t n_rows, n_evals, n_diags, n_scores;
    struct pl_row *rows; /* all rows since update 0, also after a resume */
    struct pl_eval *evals;
    struct pl_diag *diags;   /* stages in turn */
    struct pl_score *scores; /* sets in turn */
};

/* Train. The gradient of update n is the mean over its group's microbatches, each read
 * at the versions of the map; clipped; turned into u by the optimizer with the
 * consuming update's rate, bias corrections and decay; corrected; written as version
 * n+1. Errors: PL_ECONFIG (spec), PL_EUNSUP (tied weights under unequal versions;
 * named), PL_EMEM, PL_EINPUT (checkpoint corrupt or of another run), PL_EIO (disk full:
 * the last good checkpoint stays). A diverged or interrupted run is a result, not an
 * error. */
int pl_run(const struct pl_run_spec *spec, struct pl_run_result *out);
void pl_run_free(struct pl_run_result *result);

/* Rows of a finished or interrupted run from its checkpoint, without training.
 * *finished tells which. Errors: PL_EINPUT. */
int pl_run_load(const char *checkpoint, uint64_t fingerprint, bool *finished,
                struct pl_run_result *out);

/* What pl_run would refuse in the spec, before anything is allocated. */
int pl_run_check(const struct pl_run_spec *spec);

/* Sequences of the largest batch that the run hands to its problem at once: what the
 * problem must be opened for. Of spec only what decides that is read, not problem. */
int pl_run_at_once(const struct pl_run_spec *spec);

/* What a run holds, in bytes, before anything runs. */
struct pl_run_memory {
    size_t weights;     /* the newest version */
    size_t versions;    /* older ones, and what correctors keep beside them */
    size_t gradients;   /* and the update of a stage */
    size_t state;       /* of optimizer and corrector */
    size_t scratch;     /* of the update rule; of diagnosis */
    size_t activations; /* of at_once sequences, and other workspace of the problem */
    size_t tokens;
    size_t all; /* the sum of these */
};

/* Errors: those of pl_run for the spec. */
int pl_run_memory(const struct pl_run_spec *spec, struct pl_run_memory *out);

#endif
