/* The training loop (train/run.h). */
#include "train/run_state.h"

#include <math.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/err.h"
#include "base/file.h"
#include "base/log.h"
#include "base/mpi.h"
#include "train/checkpoint.h"

static bool diverged(const struct pl_run_spec *spec, double loss)
{
    return !isfinite(loss) || (spec->diverged_above > 0 && loss > spec->diverged_above);
}

static void end_diverged(struct pl_run_state *run)
{
    run->result.status = PL_RUN_DIVERGED;
    run->result.diverged_at = run->next;
}

/* Evaluate when version n is due and it was not done. PL_EINTR: stopped, as if it had
 * not begun. */
static int evaluate(struct pl_run_state *run, int64_t n)
{
    const struct pl_run_spec *spec = run->spec;
    struct pl_run_result *r = &run->result;
    const int64_t every = spec->eval_every, n_scores = r->n_scores;
    bool due = n == 0 || n == spec->versions->updates || (every > 0 && n % every == 0);
    if (!due || spec->eval_sequences <= 0) return 0;
    if (r->n_evals && r->evals[r->n_evals - 1].update == n) return 0;
    struct pl_eval eval;
    int rc = pl_run_eval(run, &eval);
    if (rc) return rc;
    if (diverged(spec, eval.loss)) {
        end_diverged(run);
        return 0;
    }
    if ((rc = pl_run_scores(run))) {
        r->n_scores = n_scores;
        return rc;
    }
    r->evals[r->n_evals++] = eval;
    if (spec->on_eval) spec->on_eval(spec->context, &eval);
    return 0;
}

static int update(struct pl_run_state *run)
{
    const struct pl_run_spec *spec = run->spec;
    const int64_t n = run->next;
    struct pl_row row;
    int rc = pl_run_enter(run, n, false);
    if (!rc && pl_run_diagnosed(spec, n)) rc = pl_run_fresh(run, n);
    if (!rc) rc = pl_run_gradient(run, n, &row);
    if (rc) return rc;
    if (diverged(spec, row.loss)) {
        end_diverged(run);
        return 0;
    }
    rc = pl_run_ahead(run, n);
    if (!rc) rc = pl_run_apply(run, n, &row);
    if (!rc) rc = pl_run_ahead_keep(run, n);
    if (rc) return rc;
    if (!isfinite(row.grad_norm) || !isfinite(row.update_norm)) {
        end_diverged(run);
        return 0;
    }
    run->result.rows[run->result.n_rows++] = row;
    run->next = n + 1;
    if (spec->on_row) spec->on_row(spec->context, &row);
    return evaluate(run, n + 1);
}

/* A checkpoint between updates says "interrupted": that is what it is if nothing
 * follows. */
static int checkpoint_if_due(struct pl_run_state *run)
{
    const struct pl_run_spec *spec = run->spec;
    if (!spec->checkpoint || spec->rank) return 0;
    bool due =
        spec->checkpoint_updates > 0 && run->next % spec->checkpoint_updates == 0;
    if (!due && spec->checkpoint_s > 0)
        due = pl_clock() - run->saved_at >= spec->checkpoint_s;
    if (!due) return 0;
    int rc = pl_checkpoint_save(run);
    run->saved_at = pl_clock();
    return rc;
}

bool pl_run_stopped(const struct pl_run_spec *spec)
{
    bool stop = spec->stop && *spec->stop;
    return spec->ranks > 1 ? pl_mpi_max(stop) : stop;
}

static int train(struct pl_run_state *run)
{
    const struct pl_run_spec *spec = run->spec;
    run->result.status = PL_RUN_INTERRUPTED;
    int rc = evaluate(run, run->next); /* the first, or one that was cut */
    while (!rc && run->result.status != PL_RUN_DIVERGED &&
           run->next < spec->versions->updates && !pl_run_stopped(spec)) {
        rc = update(run);
        if (!rc && run->result.status != PL_RUN_DIVERGED) rc = checkpoint_if_due(run);
    }
    if (rc && rc != PL_EINTR) return rc;
    if (!rc && run->result.status != PL_RUN_DIVERGED &&
        run->next == spec->versions->updates)
        run->result.status = PL_RUN_DONE;
    return spec->checkpoint && !spec->rank ? pl_checkpoint_save(run) : 0;
}

/* Continue where the checkpoint stands; *finished when there is nothing left to do. */
static int resume(struct pl_run_state *run, bool *finished)
{
    int rc = pl_checkpoint_load(run);
    if (rc) return rc;
    *finished = run->result.status != PL_RUN_INTERRUPTED;
    return run->next > 0 ? pl_run_enter(run, run->next - 1, true) : 0;
}

static int save_weights(struct pl_run_state *run)
{
    const struct pl_run_spec *spec = run->spec;
    if (!spec->save || spec->rank || run->result.status == PL_RUN_DIVERGED) return 0;
    for (int s = 0; s < run->plan.n_stages; s++)
        run->forward[s] = pl_wstore_stored(&run->store, s);
    return spec->save(spec->files, run->next, run->forward);
}

/* All ranks stand where the first does; also, all have read before it may write. */
static int agree(const struct pl_run_state *run)
{
    if (run->spec->ranks < 2) return 0;
    uint64_t at[] = {run->spec->fingerprint, (uint64_t)run->next};
    int mark = (int)(pl_crc32(0, at, sizeof at) >> 1);
    if (pl_mpi_max(mark) == -pl_mpi_max(-mark)) return 0;
    return pl_fail(PL_EIO, "ranks see other files (configuration, data or checkpoint): "
                           "use a file system that all share");
}

int pl_run(const struct pl_run_spec *spec, struct pl_run_result *out)
{
    struct pl_run_state run;
    bool finished = false;
    int rc = pl_run_state_open(spec, &run);
    if (rc) return rc;
    if (spec->resume && spec->checkpoint && !access(spec->checkpoint, F_OK))
        rc = resume(&run, &finished);
    if (!rc) rc = agree(&run);
    if (!rc && !finished) rc = train(&run);
    if (!rc) rc = save_weights(&run);
    if (!rc) {
        *out = run.result;
        run.result = (struct pl_run_result){0};
    }
    pl_run_state_close(&run);
    return rc;
}

void pl_run_free(struct pl_run_result *result)
{
    free(result->rows);
    free(result->evals);
    free(result->diags);
    free(result->scores);
    *result = (struct pl_run_result){0};
}
