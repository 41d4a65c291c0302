/* Mixtures of experts as a problem: closed forms of the routers' losses, what must not
 * change (stages, names of the experts, fused or not, device). */
#include <check.h>
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "tests/moe_case.h"
#include "tests/net_fixture.h"
#include "tests/runner.h"

enum { B = 4, T = 8 };

/* A kind, the last one with GELU and a bias in every product. */
static struct pl_model varied(int i)
{
    struct pl_model m = kind(i);
    if (i < KINDS - 1) return m;
    m.mlp = PL_MLP_GELU;
    m.bias = PL_BIAS_ALL;
    return m;
}

/* Tensor i becomes factor times what it is. */
static void scale_tensor(struct fixture *f, const char *name, float factor)
{
    int i = fixture_find(f, name);
    float *x = fixture_get(f, f->weights, i);
    for (size_t k = 0; k < pl_param_size(&f->p->params[i]); k++) x[k] *= factor;
    fixture_set(f, i, x);
    free(x);
}

/* Relative to the largest number of each tensor. */
static void compare_grads(const struct fixture *a, const struct fixture *b, double tol)
{
    for (int i = 0; i < a->p->n_params; i++) {
        float *x = fixture_get(a, a->grads, i), *y = fixture_get(b, b->grads, i);
        double error = 0, size = 0;
        for (size_t k = 0; k < pl_param_size(&a->p->params[i]); k++) {
            error += pow((double)x[k] - y[k], 2);
            size += pow((double)x[k], 2);
        }
        ck_assert_msg(sqrt(error) <= tol * sqrt(size), "%s: %g of %g",
                      a->p->params[i].name, sqrt(error), sqrt(size));
        free(x), free(y);
    }
}

START_TEST(stages_do_not_change_bits)
{
    struct pl_model model = varied(_i);
    struct fixture one, many;
    fixture_open(&one, &pl_device_host, &model, 1, B, T);
    double loss = fixture_gradient(&one, 1), aux = one.p->routers.aux;
    ck_assert_double_gt(aux, 0);
    for (int P = 2; P <= 4; P++) {
        fixture_open(&many, &pl_device_host, &model, P, B, T);
        ck_assert(fixture_gradient(&many, 1) == loss && many.p->routers.aux == aux);
        for (int i = 0; i < one.p->n_params; i++) {
            /* selection biases end a stage's block, so their numbers differ */
            int j = fixture_find(&many, one.p->params[i].name);
            size_t bytes = pl_param_size(&one.p->params[i]) * sizeof(float);
            float *x = fixture_get(&one, one.grads, i);
            float *y = fixture_get(&many, many.grads, j);
            ck_assert_msg(!memcmp(x, y, bytes), "%s", one.p->params[i].name);
            free(x), free(y);
        }
        fixture_free(&many);
    }
    fixture_free(&one);
}
END_TEST

/* Bound: (operations in sequence) * (longest reduction) * eps, as in test_net.c, if all
 * devices choose the same experts: their margins are far above rounding. */
START_TEST(devices_agree)
{
    struct pl_model model = varied(_i);
    for (int d = 0; pl_device_names[d]; d++) {
        const struct pl_device *device;
        struct fixture ref, f;
        int rc = pl_device_get(pl_device_names[d], &device);
        if (rc == PL_ENODEV) continue; /* no such hardware here */
        ck_assert_msg(rc == 0, "%s", pl_error_text());
        fixture_open(&ref, &pl_device_ref, &model, 1, B, T);
        fixture_open(&f, device, &model, 1, B, T);
        fixture_scatter(&ref, 0.1);
        fixture_scatter(&f, 0.1);
        double tolerance = 36.0 * model.layers * model.vocab * FLT_EPSILON;
        double loss = fixture_gradient(&ref, 1), aux = ref.p->routers.aux;
        ck_assert_double_lt(fabs(fixture_gradient(&f, 1) - loss), tolerance * loss);
        ck_assert_double_lt(fabs(f.p->routers.aux - aux), tolerance * aux);
        compare_grads(&ref, &f, tolerance);
        fixture_free(&ref);
        fixture_free(&f);
        device->close();
    }
}
END_TEST

static const struct pl_device *behind;
static int spans, replays;

static int count_begin(const struct pl_span *span, bool *done)
{
    int rc = behind->begin(span, done);
    spans += span->key != NULL;
    replays += *done;
    return rc;
}

/* Tokens of a round of stages_are_replayed, and what the gradient gives. */
static double round_gradient(struct fixture *f, int round)
{
    int32_t tokens[B * T];
    for (int i = 0; i < B * T; i++) tokens[i] = (i * i * 7 + round * (i + 11)) % 67;
    ck_assert_int_eq(f->p->device->upload(f->tokens, tokens, sizeof tokens), 0);
    fixture_zero_grads(f);
    spans = replays = 0;
    return fixture_gradient(f, 1);
}

/* A device that keeps what it was told (CUDA graphs) tells itself F and B of every
 * stage from the third time on, with the tokens, and so the loads, of that time. */
START_TEST(stages_are_replayed)
{
    enum { P = 2, ROUNDS = 5, LOADS = 4 * EXPERTS };
    struct pl_model model = varied(_i);
    const struct pl_device *cuda;
    int rc = pl_device_get("cuda", &cuda);
    if (rc == PL_ENODEV) return; /* no such hardware here */
    ck_assert_msg(rc == 0, "%s", pl_error_text());
    struct pl_device counting = *(behind = cuda);
    struct fixture f, once;
    double loss = 0;
    int32_t captured[LOADS];
    counting.begin = count_begin;
    fixture_open(&f, &counting, &model, P, B, T);
    fixture_scatter(&f, 0.1);
    const size_t loads =
        sizeof *captured * (size_t)(f.p->routers.layers * f.p->routers.experts);
    ck_assert_uint_le(loads, sizeof captured);
    for (int round = 0; round < ROUNDS; round++) {
        loss = round_gradient(&f, round);
        ck_assert_int_eq(spans, 2 * P);
        ck_assert_int_eq(replays, round < 2 ? 0 : 2 * P);
        if (round == 1) memcpy(captured, f.p->routers.load, loads);
    }
    ck_assert(memcmp(f.p->routers.load, captured, loads));
    fixture_open(&once, cuda, &model, P, B, T);
    fixture_scatter(&once, 0.1);
    ck_assert(round_gradient(&once, ROUNDS - 1) == loss);
    ck_assert_int_eq(replays, 0);
    compare_grads(&once, &f, 0);
    ck_assert(!memcmp(f.p->routers.load, once.p->routers.load, loads));
    fixture_free(&once);
    fixture_free(&f);
    cuda->close();
}
END_TEST

/* Logits of 0: P is uniform, so the balance term is its coefficient whatever the load
 * (equal keys all choose the first experts), and the z term (ln E)^2; each layer's. */
START_TEST(closed_forms_at_uniform)
{
    struct pl_model model = kind(_i);
    struct fixture f;
    fixture_open(&f, &pl_device_ref, &model, 2, B, T);
    for (int l = model.dense_layers; l < model.layers; l++) {
        char name[64];
        snprintf(name, sizeof name, "model.layers.%d.mlp.gate.weight", l);
        scale_tensor(&f, name, 0);
    }
    fixture_loss(&f);
    int layers = model.layers - model.dense_layers;
    double want = layers * (model.aux_loss + model.z_loss * pow(log(EXPERTS), 2));
    const struct pl_routers *r = &f.p->routers;
    ck_assert_double_eq_tol(r->aux, want, 1e-6 * want);
    ck_assert_double_eq_tol(r->balance, 1, 1e-6);
    if (model.z_loss > 0)
        ck_assert_double_eq_tol(r->z, pow(log(EXPERTS), 2), 1e-5);
    else
        ck_assert(isnan(r->z));
    ck_assert_int_eq(r->layers, layers);
    for (int i = 0; i < layers * EXPERTS && !model.router_bias; i++)
        ck_assert_int_eq(r->load[i], i % EXPERTS < 2 ? B * T : 0);
    fixture_free(&f);
}
END_TEST

/* One expert a token, the same for all of them and with certainty: E times the
 * coefficient. All rows of y end in the same direction: the router reads a bias of the
 * norm, which LayerNorm has. */
START_TEST(closed_form_at_collapse)
{
    struct pl_model model = kind(3);
    model.experts_per_token = 1;
    model.layers = 1;
    model.norm = PL_NORM_LAYER;
    model.bias = PL_BIAS_ALL;
    struct fixture f;
    fixture_open(&f, &pl_device_ref, &model, 1, B, T);
    float ones[32], logits[EXPERTS * 32] = {0};
    for (int k = 0; k < 32; k++) ones[k] = 10;
    for (int k = 0; k < 32; k++) logits[2 * 32 + k] = 1;
    scale_tensor(&f, "model.layers.0.post_attention_layernorm.weight", 0);
    fixture_set(&f, fixture_find(&f, "model.layers.0.post_attention_layernorm.bias"),
                ones);
    fixture_set(&f, fixture_find(&f, "model.layers.0.mlp.gate.weight"), logits);
    fixture_loss(&f);
    ck_assert_double_eq_tol(f.p->routers.aux, model.aux_loss * EXPERTS, 1e-6);
    ck_assert_double_eq_tol(f.p->routers.balance, EXPERTS, 1e-4);
    for (int e = 0; e < EXPERTS; e++)
        ck_assert_int_eq(f.p->routers.load[e], e == 2 ? B * T : 0);
    fixture_free(&f);
}
END_TEST

static void swap_tensors(struct fixture *f, const char *a, const char *b)
{
    int i = fixture_find(f, a), j = fixture_find(f, b);
    float *x = fixture_get(f, f->weights, i), *y = fixture_get(f, f->weights, j);
    fixture_set(f, i, y);
    fixture_set(f, j, x);
    free(x), free(y);
}

/* Experts 1 and 4 of every layer change places, and their rows of the router. */
static void permute(struct fixture *f, const struct pl_model *m)
{
    static const char *const parts[] = {"gate", "up", "down"};
    char a[64], b[64];
    for (int l = m->dense_layers; l < m->layers; l++) {
        for (int k = 0; k < 3; k++) {
            snprintf(a, sizeof a, "model.layers.%d.mlp.experts.1.%s_proj.weight", l,
                     parts[k]);
            snprintf(b, sizeof b, "model.layers.%d.mlp.experts.4.%s_proj.weight", l,
                     parts[k]);
            swap_tensors(f, a, b);
        }
        snprintf(a, sizeof a, "model.layers.%d.mlp.gate.weight", l);
        int i = fixture_find(f, a);
        float *w = fixture_get(f, f->weights, i), row[32];
        memcpy(row, w + 32, sizeof row);
        memcpy(w + 32, w + 4 * 32, sizeof row);
        memcpy(w + 4 * 32, row, sizeof row);
        fixture_set(f, i, w);
        free(w);
    }
}

START_TEST(names_of_experts_do_not_matter)
{
    struct pl_model model = kind(_i);
    struct fixture f;
    fixture_open(&f, &pl_device_ref, &model, 2, B, T);
    fixture_scatter(&f, 0.1);
    for (int l = 0; l < f.p->n_params; l++)
        if (f.p->params[l].kind == PL_PARAM_BALANCE)
            scale_tensor(&f, f.p->params[l].name, 0);
    double loss = fixture_loss(&f), aux = f.p->routers.aux;
    swap_tensors(&f, "model.layers.1.mlp.experts.1.up_proj.weight",
                 "model.layers.1.mlp.experts.4.up_proj.weight");
    ck_assert_double_gt(fabs(fixture_loss(&f) - loss), 1e-6); /* half a change shows */
    swap_tensors(&f, "model.layers.1.mlp.experts.1.up_proj.weight",
                 "model.layers.1.mlp.experts.4.up_proj.weight");
    permute(&f, &model);
    /* a token's experts are added best first, which has not changed */
    ck_assert_double_eq_tol(fixture_loss(&f), loss, FLT_EPSILON * loss);
    ck_assert_double_eq_tol(f.p->routers.aux, aux, FLT_EPSILON * aux);
    fixture_free(&f);
}
END_TEST

/* One batch of four microbatches is their mean, balance terms included; one batch of a
 * single microbatch is not, when balance is over microbatches. */
START_TEST(fused_is_replayed)
{
    struct pl_model model = kind(_i);
    struct fixture fused, parts;
    fixture_open(&fused, &pl_device_ref, &model, 2, B, T);
    fixture_open(&parts, &pl_device_ref, &model, 2, B, T);
    fixture_scatter(&fused, 0.1);
    fixture_scatter(&parts, 0.1);
    fused.batch.micro = 1;
    double loss = fixture_gradient(&fused, 1), aux = 0, sum = 0;
    parts.batch.B = 1;
    for (int m = 0; m < B; m++) {
        sum += fixture_gradient(&parts, 1.0 / B) / B;
        aux += parts.p->routers.aux / B;
        parts.batch.tokens += T;
        parts.batch.targets += T;
    }
    double tolerance = 36.0 * model.layers * B * T * FLT_EPSILON;
    ck_assert_double_eq_tol(loss, sum, tolerance * loss);
    ck_assert_double_eq_tol(fused.p->routers.aux, aux, tolerance * aux);
    compare_grads(&fused, &parts, tolerance);
    fused.batch.micro = 0;
    fixture_loss(&fused);
    if (model.seq_aux)
        ck_assert_double_eq_tol(fused.p->routers.aux, aux, tolerance * aux);
    else
        ck_assert_double_gt(fabs(fused.p->routers.aux - aux), 0.01 * aux);
    fixture_free(&fused);
    fixture_free(&parts);
}
END_TEST

/* softmax over the logits that are kept = the chosen probabilities over their sum. */
START_TEST(norming_is_topk_before_softmax)
{
    float logits[EXPERTS] = {0.3f, -1, 2.5f, 0.7f, 2.4f, -3}, s[EXPERTS], w[3];
    int32_t expert[3], slot[3], of_slot[3], load[2 * EXPERTS];
    struct pl_routing r = {.rows = 1,
                           .experts = EXPERTS,
                           .chosen = 3,
                           .group = 1,
                           .normed = true,
                           .scale = 1,
                           .score = s,
                           .weight = w,
                           .expert = expert,
                           .slot = slot,
                           .of_slot = of_slot,
                           .load = load};
    double terms[2] = {0, 0}, all = exp(2.5) + exp(2.4) + exp(0.7);
    ck_assert_int_eq(pl_device_ref.route(&r, logits, NULL, terms), 0);
    ck_assert(expert[0] == 2 && expert[1] == 4 && expert[2] == 3);
    ck_assert_double_eq_tol(w[0], exp(2.5) / all, 1e-6);
    ck_assert_double_eq_tol(w[2], exp(0.7) / all, 1e-6);
    ck_assert_double_eq_tol(w[0] + w[1] + w[2], 1, 1e-6);
}
END_TEST

/* Selection biases choose, they do not weigh: one that changes no choice changes no
 * loss, and a large one moves all tokens to its expert. */
START_TEST(biases_only_choose)
{
    struct pl_model model = kind(2);
    struct fixture f;
    fixture_open(&f, &pl_device_ref, &model, 2, B, T);
    double loss = fixture_gradient(&f, 1);
    int i = fixture_find(&f, "model.layers.2.mlp.gate.e_score_correction_bias");
    float same[EXPERTS] = {7, 7, 7, 7, 7, 7}, one[EXPERTS] = {0, 0, 0, 5, 0, 0};
    fixture_set(&f, i, same);
    ck_assert_double_eq_tol(fixture_loss(&f), loss, FLT_EPSILON * loss);
    fixture_set(&f, i, one);
    fixture_zero_grads(&f);
    fixture_gradient(&f, 1);
    float *excess = fixture_get(&f, f.grads, i);
    ck_assert_double_eq_tol(excess[3], 0.5 - 1.0 / EXPERTS, 1e-6);
    double sum = 0;
    for (int e = 0; e < EXPERTS; e++) sum += excess[e];
    ck_assert_double_eq_tol(sum, 0, 1e-6);
    free(excess);
    fixture_free(&f);
}
END_TEST

static void fill(TCase *t)
{
    tcase_set_timeout(t, 60);
    tcase_add_loop_test(t, stages_do_not_change_bits, 0, KINDS);
    tcase_add_loop_test(t, devices_agree, 0, KINDS);
    tcase_add_loop_test(t, stages_are_replayed, 0, KINDS);
    tcase_add_loop_test(t, closed_forms_at_uniform, 0, KINDS);
    tcase_add_test(t, closed_form_at_collapse);
    tcase_add_loop_test(t, names_of_experts_do_not_matter, 0, KINDS);
    tcase_add_loop_test(t, fused_is_replayed, 0, KINDS);
    tcase_add_test(t, norming_is_topk_before_softmax);
    tcase_add_test(t, biases_only_choose);
}

int main(void)
{
    return run_tests("moe", fill);
}
