/* A plan as JSON and CSV. */
#include <stdlib.h>

#include "base/err.h"
#include "cli/plan_print.h"

static void put_row(const struct pl_plan *plan, int64_t number, struct pl_json *json)
{
    const struct pl_plan_row *row = &plan->rows[number];
    const struct pl_plan_group *g = &plan->groups[row->group];
    pl_json_text(json, "schedule", pl_schedule_types[row->type]->name);
    pl_json_bool(json, "synchronous", pl_plan_is_sync(row));
    pl_json_int(json, "tp", g->tp);
    pl_json_int(json, "pp", g->pp);
    pl_json_int(json, "cp", g->cp);
    pl_json_int(json, "dp", g->dp);
    pl_json_int(json, "ep", g->ep);
    pl_json_bool(json, "sp", g->sp);
    pl_json_int(json, "v", row->v);
    pl_json_int(json, "b", g->b);
    pl_json_int(json, "m", g->m);
    pl_json_text(json, "recompute", pl_plan_recompute_names[g->recompute]);
    pl_json_int(json, "zero", g->zero);
    pl_json_text(json, "split", pl_plan_split_name(plan, g));
    pl_json_real(json, "step_s", row->step_s);
    pl_json_real(json, "tokens_per_s_gpu", row->tokens);
    pl_json_real(json, "mfu", row->mfu);
    pl_json_real(json, "bubble_steady", row->bubble);
    pl_json_real(json, "peak_bytes", row->peak);
    pl_json_int(json, "peak_device", row->device);
    pl_json_real(json, "tau_max", row->tau);
}

static void put_head(const struct pl_plan *plan, struct pl_json *json)
{
    const struct pl_config *config = plan->ask->config;
    pl_json_text(json, "model", pl_config_text(config, "model.preset"));
    pl_json_text(json, "cluster", pl_config_text(config, "cluster.preset"));
    pl_json_int(json, "gpus", plan->ask->gpus);
    pl_json_int(json, "batch", plan->batch);
    pl_json_int(json, "seq_length", plan->seq);
    pl_json_real(json, "limit_bytes", plan->limit);
    pl_json_int(json, "gpu_bytes", (int64_t)plan->cluster.gpu.memory);
    pl_json_bool(json, "complete", !plan->incomplete);
}

static void put_counts(const struct pl_plan *plan, struct pl_json *json)
{
    static const char *const names[PL_N_FATES] = {
        "open",  "schedule_refuses", "memory_bound", "time_bound", "own_row_bound",
        "stale", "out_of_memory",    "fit",          "failed"};
    pl_json_begin(json, "candidates", '{');
    pl_json_int(json, "all", plan->n_rows);
    pl_json_int(json, "indivisible", plan->indivisible);
    for (int f = 0; f < PL_N_FATES; f++) pl_json_int(json, names[f], plan->fates[f]);
    pl_json_end(json, '}');
}

static void put_refused(const struct pl_plan *plan, struct pl_json *json)
{
    pl_json_begin(json, "refused", '[');
    for (int i = 0; i < plan->n_refused && plan->n_best; i++) {
        pl_json_begin(json, NULL, '{');
        put_row(plan, plan->refused[i], json);
        pl_json_real(json, "speedup",
                     plan->rows[plan->best[0]].step_s /
                         plan->rows[plan->refused[i]].step_s);
        pl_json_end(json, '}');
    }
    pl_json_end(json, ']');
    if (plan->n_best || plan->least < 0) return;
    pl_json_begin(json, "least_memory", '{');
    put_row(plan, plan->least, json);
    pl_json_end(json, '}');
}

int pl_plan_print_json(const struct pl_plan *plan, FILE *out)
{
    static const char *const parts_names[PL_N_PARTS] = {
        "compute_s",   "recompute_s", "exchange_s", "optimizer_s",
        "gradients_s", "transfers_s", "bubble_s"};
    double(*parts)[PL_N_PARTS] = pl_plan_all_parts(plan, plan->n_best);
    if (!parts) return PL_ECONFIG;
    struct pl_json json;
    pl_json_open(&json, out);
    pl_json_begin(&json, NULL, '{');
    put_head(plan, &json);
    pl_json_begin(&json, "rows", '[');
    for (int i = 0; i < plan->n_best; i++) {
        pl_json_begin(&json, NULL, '{');
        pl_json_int(&json, "rank", i + 1);
        put_row(plan, plan->best[i], &json);
        pl_json_begin(&json, "step", '{');
        for (int k = 0; k < PL_N_PARTS; k++)
            pl_json_real(&json, parts_names[k], parts[i][k]);
        pl_json_end(&json, '}');
        pl_json_end(&json, '}');
    }
    pl_json_end(&json, ']');
    put_refused(plan, &json);
    put_counts(plan, &json);
    pl_json_end(&json, '}');
    pl_json_close(&json);
    free(parts);
    return PL_OK;
}

int pl_plan_print_csv(const struct pl_plan *plan, FILE *out)
{
    fputs("rank,schedule,synchronous,tp,pp,cp,dp,ep,sp,v,b,m,recompute,zero,split,"
          "step_s,tokens_per_s_gpu,mfu,bubble_steady,peak_bytes,peak_device,tau_max\n",
          out);
    for (int i = 0; i < plan->n_best; i++) {
        const struct pl_plan_row *row = &plan->rows[plan->best[i]];
        const struct pl_plan_group *g = &plan->groups[row->group];
        fprintf(out, "%d,%s,%d,%d,%d,%d,%d,%d,%d,%d,%d,%d,%s,%d,\"%s\",", i + 1,
                pl_schedule_types[row->type]->name, pl_plan_is_sync(row), g->tp, g->pp,
                g->cp, g->dp, g->ep, g->sp, row->v, g->b, g->m,
                pl_plan_recompute_names[g->recompute], g->zero,
                pl_plan_split_name(plan, g));
        fprintf(out, "%.17g,%.17g,%.17g,%.17g,%.17g,%d,%.17g\n", row->step_s,
                row->tokens, row->mfu, row->bubble, row->peak, row->device, row->tau);
    }
    return PL_OK;
}
