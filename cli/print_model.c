/* Output of `pipelag model`: counts, flops a token, bytes a block and a stage. */
#include "cli/print_model.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/units.h"

enum { N_BLOCKS = 4 };

/* One row of a table: a kind of block, or a chunk. */
struct row {
    char name[48];
    int count;
    struct pl_work work;
};

static int make_blocks(const struct pl_model_view *v, struct row row[N_BLOCKS])
{
    static const struct {
        const char *name;
        enum pl_block block;
    } kinds[N_BLOCKS] = {{"embedding", PL_BLOCK_EMBEDDING},
                         {"dense_layer", PL_BLOCK_DENSE},
                         {"moe_layer", PL_BLOCK_MOE},
                         {"head", PL_BLOCK_HEAD}};
    const struct pl_model *m = &v->model;
    int dense = m->experts ? m->dense_layers : m->layers;
    const int counts[N_BLOCKS] = {1, dense, m->layers - dense, 1};
    for (int i = 0; i < N_BLOCKS; i++) {
        snprintf(row[i].name, sizeof row[i].name, "%s", kinds[i].name);
        row[i].count = counts[i];
        row[i].work = (struct pl_work){0};
        if (!counts[i]) continue;
        int rc = pl_work_block(m, &v->parallel, &v->batch, kinds[i].block, v->optimizer,
                               &row[i].work);
        if (rc) return rc;
    }
    return 0;
}

static int make_chunks(const struct pl_model_view *v, struct row *row)
{
    int mtp = 0;
    for (int c = 0; c < v->C; c++) mtp += v->chunk[c].mtp;
    for (int c = 0; c < v->C; c++) {
        const struct pl_chunk *k = &v->chunk[c];
        row[c].count = k->n;
        snprintf(row[c].name, sizeof row[c].name, "%d%s%s%s", c,
                 k->embedding ? " +embedding" : "", k->mtp ? " +mtp" : "",
                 k->head ? " +head" : "");
        int rc = pl_work_chunk(&v->model, &v->parallel, &v->batch, v->optimizer, k, mtp,
                               &row[c].work);
        if (rc) return rc;
    }
    return 0;
}

/* 1234567 as 1,234,567. */
static const char *grouped(uint64_t n, char *text)
{
    char digits[24];
    int length = snprintf(digits, sizeof digits, "%" PRIu64, n), k = 0;
    for (int i = 0; i < length; i++) {
        if (i && (length - i) % 3 == 0) text[k++] = ',';
        text[k++] = digits[i];
    }
    text[k] = '\0';
    return text;
}

static void print_shape(const struct pl_model_view *v, FILE *out)
{
    static const char *const biases[] = {"", ", biases on qkv", ", biases in attention",
                                         ", biases"};
    const struct pl_model *m = &v->model;
    fprintf(out, "%s: %d layers, hidden %d, %d heads", v->name, m->layers, m->hidden,
            m->heads);
    if (m->kv_lora_rank)
        fprintf(out, " of %d+%d/%d over a latent of %d", m->qk_nope_head_dim,
                m->qk_rope_head_dim, m->v_head_dim, m->kv_lora_rank);
    else
        fprintf(out, " of %d (%d key/value)", m->head_dim, m->kv_heads);
    fprintf(out, ", vocabulary %d%s\n  %s, %s", m->vocab, m->tied ? ", tied head" : "",
            m->norm == PL_NORM_RMS ? "RMSNorm" : "LayerNorm",
            m->mlp == PL_MLP_SWIGLU ? "SwiGLU" : "GELU");
    if (!m->experts || m->dense_layers) fprintf(out, " of %d", m->ffn);
    fprintf(out, "%s%s", biases[m->bias],
            m->positions ? ", learned positions" : ", rotary positions");
    if (m->experts)
        fprintf(out, ",\n  %d of %d experts of %d a token", m->experts_per_token,
                m->experts, m->expert_ffn);
    if (m->shared_ffn) fprintf(out, ", shared experts of %d", m->shared_ffn);
    if (m->dense_layers) fprintf(out, ", first %d layers dense", m->dense_layers);
    putc('\n', out);
}

static void print_counts(const struct pl_model_view *v, FILE *out)
{
    char text[40];
    struct pl_model_count c = pl_model_count(&v->model);
    double six = 6 * (double)c.n_matmul;
    fprintf(out, "parameters\n");
    fprintf(out, "  n_params               %20s  a tied table once\n",
            grouped(c.n_params, text));
    fprintf(out,
            "  n_active_params        %20s  with embedding, head, router, shared\n",
            grouped(c.n_active_params, text));
    fprintf(out, "  n_active_nonembedding  %20s  without input embedding and head\n",
            grouped(c.n_active_nonembedding, text));
    fprintf(out,
            "flops a token, forward and backward, N = %s (active, head once, without\n"
            "input embedding and positions), no causal discount, no recomputation\n",
            grouped(c.n_matmul, text));
    fprintf(out, "  6 N                    %20.4f Gflop\n", six / 1e9);
    fprintf(out, "  6 N + 12 L d T         %20.4f Gflop  T = %" PRId64 ", as in MFU\n",
            pl_model_flops(&v->model, (int)v->batch.s) / 1e9, v->batch.s);
}

static void print_rows(const struct row *row, int n, const char *first,
                       const char *count, FILE *out)
{
    fprintf(out, "  %-20s %6s %9s %9s %9s %9s %9s %9s\n", first, count, "weights",
            "gradients", "optimizer", "F to B", "B to W", "F Gflop");
    for (int i = 0; i < n; i++) {
        const struct pl_work *w = &row[i].work;
        const double mib = 1 << 20;
        if (!row[i].count && w->params == 0 && w->forward_flops == 0) continue;
        fprintf(out, "  %-20s %6d %9.1f %9.1f %9.1f %9.1f %9.1f %9.1f\n", row[i].name,
                row[i].count, w->weight_bytes / mib, w->gradient_bytes / mib,
                w->optimizer_bytes / mib, w->act_bytes / mib, w->kept_bytes / mib,
                w->forward_flops / 1e9);
    }
}

static const char *recompute_name(const struct pl_model_view *v)
{
    static const char *const names[] = {"none", "selective", "full"};
    return names[v->parallel.recompute];
}

static void print_bytes(const struct pl_model_view *v, const struct row *blocks,
                        const struct row *chunks, FILE *out)
{
    const struct pl_parallel *p = &v->parallel;
    char text[32];
    fprintf(
        out,
        "MiB a GPU: microbatch %" PRId64 " x %" PRId64
        " tokens, tp %d%s, ep %d, cp %d, dp %d, ZeRO-%d, recompute %s,\n"
        "  %s attention, %s; bf16 weights and activations, fp32 gradients and state\n",
        v->batch.b, v->batch.s, p->tp, p->sp ? " with sp" : "", p->ep, p->cp, p->dp,
        p->zero, recompute_name(v), p->flash ? "fused" : "plain", v->optimizer);
    print_rows(blocks, N_BLOCKS, "each", "count", out);
    if (!v->P) return;
    fprintf(out, "stages (model.split %s, %d chunks on %d stages): one microbatch,\n",
            v->split, v->C, v->P);
    fprintf(out, "  %s to the next stage\n",
            pl_units_format_bytes(pl_work_boundary(&v->model, p, &v->batch), text,
                                  sizeof text));
    print_rows(chunks, v->C, "chunk", "layers", out);
}

/* Blocks, then chunks, in one array of the caller's. */
static int make_rows(const struct pl_model_view *v, struct row **out)
{
    struct row *row = PL_NEW(N_BLOCKS + v->C, struct row);
    int rc = make_blocks(v, row);
    if (!rc && v->P) rc = make_chunks(v, row + N_BLOCKS);
    if (rc)
        free(row);
    else
        *out = row;
    return rc;
}

int pl_print_model_text(const struct pl_model_view *v, FILE *out)
{
    struct row *row;
    int rc = make_rows(v, &row);
    if (rc) return rc;
    print_shape(v, out);
    print_counts(v, out);
    print_bytes(v, row, row + N_BLOCKS, out);
    free(row);
    return 0;
}

static void json_work(struct pl_json *j, const struct pl_work *w)
{
    const struct {
        const char *key;
        double value;
    } numbers[] = {
        {"params", w->params},
        {"expert_params", w->expert_params},
        {"weight_bytes", w->weight_bytes},
        {"gradient_bytes", w->gradient_bytes},
        {"optimizer_bytes", w->optimizer_bytes},
        {"activation_bytes", w->act_bytes},
        {"kept_bytes", w->kept_bytes},
        {"live_bytes", w->live_bytes},
        {"forward_flops", w->forward_flops},
        {"attention_flops", w->attention_flops},
        {"input_flops", w->input_flops},
        {"weight_flops", w->weight_flops},
        {"recompute_flops", w->recompute_flops},
        {"forward_traffic_bytes", w->forward_traffic},
        {"backward_traffic_bytes", w->backward_traffic},
        {"recompute_traffic_bytes", w->recompute_traffic},
    };
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        pl_json_real(j, numbers[i].key, numbers[i].value);
}

static void json_parallel(struct pl_json *j, const struct pl_model_view *v)
{
    const struct pl_parallel *p = &v->parallel;
    pl_json_begin(j, "parallel", '{');
    pl_json_int(j, "tp", p->tp);
    pl_json_bool(j, "sp", p->sp);
    pl_json_int(j, "ep", p->ep);
    pl_json_int(j, "cp", p->cp);
    pl_json_int(j, "dp", p->dp);
    pl_json_int(j, "zero", p->zero);
    pl_json_text(j, "recompute", recompute_name(v));
    pl_json_bool(j, "flash", p->flash);
    pl_json_end(j, '}');
}

static void json_counts(struct pl_json *j, const struct pl_model_view *v)
{
    struct pl_model_count c = pl_model_count(&v->model);
    pl_json_text(j, "model", v->name);
    pl_json_uint(j, "n_params", c.n_params);
    pl_json_uint(j, "n_active_params", c.n_active_params);
    pl_json_uint(j, "n_active_nonembedding", c.n_active_nonembedding);
    pl_json_uint(j, "n_matmul", c.n_matmul);
    pl_json_real(j, "flops_per_token_6n", 6 * (double)c.n_matmul);
    pl_json_real(j, "flops_per_token", pl_model_flops(&v->model, (int)v->batch.s));
    pl_json_text(j, "flops_convention",
                 "6N + 12 L d T: N active with the head once, without input embedding "
                 "and positions; no causal discount; no recomputation");
    pl_json_int(j, "layers", v->model.layers);
    pl_json_int(j, "seq_length", v->batch.s);
    pl_json_int(j, "micro_batch", v->batch.b);
    pl_json_text(j, "optimizer", v->optimizer);
    json_parallel(j, v);
}

int pl_print_model_json(const struct pl_model_view *v, FILE *out)
{
    struct pl_json j;
    struct row *row;
    int rc = make_rows(v, &row);
    if (rc) return rc;
    pl_json_open(&j, out);
    pl_json_begin(&j, NULL, '{');
    json_counts(&j, v);
    pl_json_begin(&j, "blocks", '[');
    for (int i = 0; i < N_BLOCKS; i++) {
        if (!row[i].count) continue;
        pl_json_begin(&j, NULL, '{');
        pl_json_text(&j, "block", row[i].name);
        pl_json_int(&j, "count", row[i].count);
        json_work(&j, &row[i].work);
        pl_json_end(&j, '}');
    }
    pl_json_end(&j, ']');
    if (v->P) {
        pl_json_real(&j, "boundary_bytes",
                     pl_work_boundary(&v->model, &v->parallel, &v->batch));
        pl_json_text(&j, "split", v->split);
        pl_json_begin(&j, "chunks", '[');
        for (int c = 0; c < v->C; c++) {
            pl_json_begin(&j, NULL, '{');
            pl_json_int(&j, "stage", c % v->P);
            pl_json_int(&j, "first_layer", v->chunk[c].first);
            pl_json_int(&j, "layers", v->chunk[c].n);
            pl_json_bool(&j, "embedding", v->chunk[c].embedding);
            pl_json_bool(&j, "head", v->chunk[c].head);
            pl_json_int(&j, "mtp", v->chunk[c].mtp);
            json_work(&j, &row[N_BLOCKS + c].work);
            pl_json_end(&j, '}');
        }
        pl_json_end(&j, ']');
    }
    pl_json_end(&j, '}');
    pl_json_close(&j);
    free(row);
    return 0;
}
