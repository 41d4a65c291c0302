/* Weights under Hugging Face's names: a Llama across numbers of stages, what does not
 * fit, GPT-2's joined and transposed matrices, Mixtral's names. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/err.h"
#include "base/mem.h"
#include "tests/net_fixture.h"
#include "tests/runner.h"
#include "train/weights.h"
#include "train/weights_names.h"

static char path[64];

static void setup(void)
{
    strcpy(path, "/tmp/test_weights.XXXXXX");
    int fd = mkstemp(path);
    ck_assert_int_ge(fd, 0);
    close(fd);
}

static void teardown(void)
{
    unlink(path);
}

static const struct pl_safetensors_form f32 = {.type = &pl_tensor_types[0]};

static int save(const struct fixture *f, const char *type)
{
    const struct pl_safetensors_form form = {.type = pl_tensor_type_find(type)};
    return pl_weights_save(path, "llama", &form, f->p,
                           (const float *const *)f->weights);
}

static void load(struct fixture *f)
{
    struct pl_weights *w = NULL;
    ck_assert_msg(!pl_weights_open(path, "llama", f->p->shared_across_stages, f->p, &w),
                  "%s", pl_error_text());
    ck_assert_msg(!pl_weights_load(w, f->p, f->weights), "%s", pl_error_text());
    pl_weights_close(w);
}

START_TEST(stages_do_not_matter)
{
    struct fixture a, b;
    struct pl_model model = tiny;
    model.tied = _i;
    fixture_open(&a, &pl_device_ref, &model, 1, 2, 3);
    fixture_open(&b, &pl_device_ref, &model, 2, 2, 3);
    fixture_scatter(&a, 0.5);
    double loss = fixture_loss(&a);
    ck_assert(loss != fixture_loss(&b));
    ck_assert_int_eq(save(&a, "F32"), 0);
    load(&b);
    ck_assert_double_eq(loss, fixture_loss(&b)); /* the same bits */
    for (int i = 0; i < a.p->n_params; i++) {
        const char *name = a.p->params[i].name;
        float *x = fixture_get(&a, a.weights, i);
        float *y = fixture_get(&b, b.weights, fixture_find(&b, name));
        ck_assert_mem_eq(x, y, sizeof *x * pl_param_size(&a.p->params[i]));
        free(x);
        free(y);
    }
    fixture_free(&a);
    fixture_free(&b);
}
END_TEST

START_TEST(two_bytes_round_every_number)
{
    struct fixture a;
    fixture_open(&a, &pl_device_ref, &tiny, 1, 2, 3);
    fixture_scatter(&a, 0.5);
    float *before = fixture_get(&a, a.weights, 1);
    ck_assert_int_eq(save(&a, "BF16"), 0);
    load(&a);
    float *after = fixture_get(&a, a.weights, 1);
    size_t n = pl_param_size(&a.p->params[1]), other = 0;
    for (size_t i = 0; i < n; i++) {
        float d = after[i] - before[i];
        ck_assert((d < 0 ? -d : d) <=
                  0x1p-8f * (before[i] < 0 ? -before[i] : before[i]));
        other += d != 0;
    }
    ck_assert_uint_gt(other, n / 2);
    free(before);
    free(after);
    fixture_free(&a);
}
END_TEST

static void open_fails(const struct pl_problem *p, const char *type, const char *text)
{
    struct pl_weights *w = NULL;
    ck_assert_int_eq(pl_weights_open(path, type, false, p, &w), PL_EINPUT);
    ck_assert_ptr_null(w);
    ck_assert_msg(strstr(pl_error_text(), text) != NULL, "'%s' in '%s'", text,
                  pl_error_text());
}

START_TEST(what_does_not_fit)
{
    struct fixture f;
    fixture_open(&f, &pl_device_ref, &tiny, 1, 1, 1);
    struct pl_param *q = &f.p->params[3], kept = *q;
    strcpy(q->name, "model.layers.0.self_attn.kproj.weight");
    ck_assert_int_eq(save(&f, "F32"), 0);
    *q = kept;
    open_fails(f.p, "llama",
               "model.layers.0.self_attn.k_proj.weight (4 x 8) is missing, the nearest "
               "name is model.layers.0.self_attn.kproj.weight (4 x 8)");
    ck_assert_int_eq(save(&f, "F32"), 0);
    q->rows = 2;
    open_fails(f.p, "llama",
               "model.layers.0.self_attn.k_proj.weight is 4 x 8, expected 2 x 8");
    *q = kept;
    f.p->n_params--; /* the head is left over */
    open_fails(f.p, "llama", "lm_head.weight (11 x 8) is no tensor of the model");
    struct pl_weights *w = NULL;
    ck_assert_int_eq(pl_weights_open(path, "llama", true, f.p, &w), 0); /* tied */
    pl_weights_close(w);
    f.p->n_params++;
    fixture_free(&f);
}
END_TEST

/* A problem of parameters only, numbered 0, 1, 2, ... in memory. */
static struct pl_param gpt2_params[] = {
    {"model.embed_tokens.weight", 0, 3, 2, 0, PL_PARAM_EMBED},
    {"model.embed_positions.weight", 0, 2, 2, 6, PL_PARAM_EMBED},
    {"model.layers.10.self_attn.q_proj.weight", 0, 2, 2, 10, PL_PARAM_MATRIX},
    {"model.layers.10.self_attn.k_proj.weight", 0, 2, 2, 14, PL_PARAM_MATRIX},
    {"model.layers.10.self_attn.v_proj.weight", 0, 2, 2, 18, PL_PARAM_MATRIX},
    {"model.layers.10.self_attn.q_proj.bias", 0, 1, 2, 22, PL_PARAM_VECTOR},
    {"model.layers.10.self_attn.k_proj.bias", 0, 1, 2, 24, PL_PARAM_VECTOR},
    {"model.layers.10.self_attn.v_proj.bias", 0, 1, 2, 26, PL_PARAM_VECTOR},
    {"model.layers.10.mlp.up_proj.weight", 0, 3, 2, 28, PL_PARAM_MATRIX},
    {"model.norm.bias", 0, 1, 2, 34, PL_PARAM_VECTOR},
};
enum { N_GPT2 = sizeof gpt2_params / sizeof *gpt2_params, FLOATS = 36 };

/* What transformers finds under each name, by the definition of Conv1D: (in, out). */
static const struct {
    const char *name;
    int rank;
    uint64_t shape[2];
    float values[12];
} gpt2_stored[] = {
    {"transformer.wte.weight", 2, {3, 2}, {0, 1, 2, 3, 4, 5}},
    {"transformer.wpe.weight", 2, {2, 2}, {6, 7, 8, 9}},
    {"transformer.h.10.attn.c_attn.weight",
     2,
     {2, 6},
     {10, 12, 14, 16, 18, 20, 11, 13, 15, 17, 19, 21}},
    {"transformer.h.10.attn.c_attn.bias", 1, {6}, {22, 23, 24, 25, 26, 27}},
    {"transformer.h.10.mlp.c_fc.weight", 2, {2, 3}, {28, 30, 32, 29, 31, 33}},
    {"transformer.ln_f.bias", 1, {2}, {34, 35}},
};
enum { N_STORED = sizeof gpt2_stored / sizeof *gpt2_stored };

static struct pl_problem problem_of(struct pl_param *params, int n)
{
    return (struct pl_problem){
        .device = &pl_device_ref, .n_stages = 1, .n_params = n, .params = params};
}

START_TEST(gpt2_is_joined_and_transposed)
{
    struct pl_problem p = problem_of(gpt2_params, N_GPT2);
    float block[FLOATS], again[FLOATS] = {0}, x[12];
    const float *from[] = {block};
    float *to[] = {again};
    for (int i = 0; i < FLOATS; i++) block[i] = (float)i;
    ck_assert_int_eq(pl_weights_save(path, "gpt2", &f32, &p, from), 0);
    struct pl_safetensors *st;
    ck_assert_int_eq(pl_safetensors_open(path, &st), 0);
    ck_assert_int_eq(st->n, N_STORED);
    for (int i = 0; i < N_STORED; i++) {
        int at = pl_safetensors_find(st, gpt2_stored[i].name);
        ck_assert_msg(at >= 0, "%s", gpt2_stored[i].name);
        ck_assert_int_eq(st->tensors[at].rank, gpt2_stored[i].rank);
        for (int k = 0; k < gpt2_stored[i].rank; k++)
            ck_assert_uint_eq(st->tensors[at].shape[k], gpt2_stored[i].shape[k]);
        ck_assert_int_eq(pl_safetensors_read(st, at, x), 0);
        ck_assert_mem_eq(x, gpt2_stored[i].values,
                         sizeof *x * (size_t)st->tensors[at].count);
    }
    pl_safetensors_free(st);
    struct pl_weights *w;
    ck_assert_int_eq(pl_weights_open(path, "gpt2", true, &p, &w), 0);
    ck_assert_int_eq(pl_weights_load(w, &p, to), 0);
    ck_assert_mem_eq(block, again, sizeof block);
    pl_weights_close(w);
}
END_TEST

/* Files saved from the bare decoder have no prefix, and old ones hold masks. */
START_TEST(other_forms_of_gpt2)
{
    static char wte[] = "wte.weight", mask[] = "h.10.attn.bias", odd[] = "h.10.attn.x";
    struct pl_tensor stored[] = {{.name = wte, .rank = 2, .shape = {3, 2}},
                                 {.name = mask, .rank = 1, .shape = {1}}};
    struct pl_problem p = problem_of(gpt2_params, 1);
    const float x[] = {1, 2, 3, 4, 5, 6};
    float block[6];
    float *to[] = {block};
    for (int i = 0; i < 2; i++) {
        struct pl_safetensors_writer *out;
        struct pl_weights *w;
        ck_assert_int_eq(pl_safetensors_create(path, &f32, stored, 2, &out), 0);
        ck_assert_int_eq(pl_safetensors_put(out, x), 0);
        ck_assert_int_eq(pl_safetensors_put(out, x), 0);
        ck_assert_int_eq(pl_safetensors_commit(out), 0);
        if (i == 1) {
            open_fails(&p, "gpt2", "h.10.attn.x (1) is no tensor of the model");
            break;
        }
        ck_assert_int_eq(pl_weights_open(path, "gpt2", true, &p, &w), 0);
        ck_assert_int_eq(pl_weights_load(w, &p, to), 0);
        ck_assert_mem_eq(block, x, sizeof x);
        pl_weights_close(w);
        stored[1].name = odd;
    }
}
END_TEST

START_TEST(one_row_is_a_matrix)
{
    static struct pl_param params[] = {
        {"model.layers.0.mlp.shared_expert_gate.weight", 0, 1, 5, 0, PL_PARAM_VECTOR},
        {"model.layers.0.mlp.gate.e_score_correction_bias", 0, 1, 6, 5,
         PL_PARAM_BALANCE}};
    struct pl_problem p = problem_of(params, 2);
    struct pl_weight *list;
    ck_assert_int_eq(pl_weight_list("qwen2_moe", &p, &list), 2);
    ck_assert_int_eq(list[0].tensor.rank, 2);
    ck_assert_uint_eq(list[0].tensor.shape[0], 1);
    ck_assert_uint_eq(list[0].tensor.shape[1], 5);
    ck_assert_int_eq(list[1].tensor.rank, 1);
    ck_assert_uint_eq(list[1].tensor.shape[0], 6);
    pl_weight_list_free(list, 2);
}
END_TEST

START_TEST(mixtral_has_names_of_its_own)
{
    static struct pl_param params[] = {
        {"model.layers.3.mlp.gate.weight", 0, 2, 2, 0, PL_PARAM_MATRIX},
        {"model.layers.3.mlp.experts.12.gate_proj.weight", 0, 1, 2, 4, PL_PARAM_MATRIX},
        {"model.layers.3.mlp.experts.12.up_proj.weight", 0, 1, 2, 6, PL_PARAM_MATRIX},
        {"model.layers.3.mlp.experts.12.down_proj.weight", 0, 2, 1, 8, PL_PARAM_MATRIX},
    };
    static const char *const names[] = {
        "model.layers.3.block_sparse_moe.gate.weight",
        "model.layers.3.block_sparse_moe.experts.12.w1.weight",
        "model.layers.3.block_sparse_moe.experts.12.w3.weight",
        "model.layers.3.block_sparse_moe.experts.12.w2.weight"};
    struct pl_problem p = problem_of(params, 4);
    const float block[10] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9}, *from[] = {block};
    ck_assert_int_eq(pl_weights_save(path, "mixtral", &f32, &p, from), 0);
    struct pl_safetensors *st;
    ck_assert_int_eq(pl_safetensors_open(path, &st), 0);
    for (int i = 0; i < 4; i++) {
        float x[4];
        int at = pl_safetensors_find(st, names[i]);
        ck_assert_int_ge(at, 0);
        ck_assert_int_eq(pl_safetensors_read(st, at, x), 0);
        ck_assert(x[0] == (float)params[i].offset);
    }
    pl_safetensors_free(st);
    open_fails(&p, "olmoe", "model.layers.3.mlp.gate.weight (2 x 2) is missing");
}
END_TEST

/* The published count (SmolLM-135M's safetensors), and no head beside the table. */
START_TEST(smollm_has_its_parameters)
{
    const struct pl_model smollm = {.layers = 30,
                                    .hidden = 576,
                                    .heads = 9,
                                    .kv_heads = 3,
                                    .head_dim = 64,
                                    .ffn = 1536,
                                    .vocab = 49152,
                                    .tied = true,
                                    .rope_theta = 1e4,
                                    .norm_eps = 1e-5};
    struct pl_problem *p;
    struct pl_weight *list;
    uint64_t count = 0;
    ck_assert_int_eq(pl_problem_net(&pl_device_ref, &smollm, 1, 1, 1, &p), 0);
    int n = pl_weight_list("llama", p, &list);
    for (int i = 0; i < n; i++) {
        count += list[i].tensor.count;
        ck_assert_str_ne(list[i].tensor.name, "lm_head.weight");
    }
    ck_assert_uint_eq(count, 134515008);
    ck_assert_int_eq(n, 30 * 9 + 2);
    pl_weight_list_free(list, n);
    pl_problem_free(p);
}
END_TEST

static void fill(TCase *tests)
{
    tcase_add_checked_fixture(tests, setup, teardown);
    tcase_add_loop_test(tests, stages_do_not_matter, 0, 2);
    tcase_add_test(tests, two_bytes_round_every_number);
    tcase_add_test(tests, what_does_not_fit);
    tcase_add_test(tests, gpt2_is_joined_and_transposed);
    tcase_add_test(tests, other_forms_of_gpt2);
    tcase_add_test(tests, smollm_has_its_parameters);
    tcase_add_test(tests, one_row_is_a_matrix);
    tcase_add_test(tests, mixtral_has_names_of_its_own);
}

int main(void)
{
    return run_tests("weights", fill);
}
