/* GPT-2 and what lies between it and Llama: the bits do not depend on the number of
 * stages, devices agree, initial values, what is refused. */
#include <check.h>
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "tests/model_case.h"
#include "tests/net_fixture.h"
#include "tests/runner.h"

enum { B = 3, T = 9 };

/* GPT-2, Qwen2, Qwen3, OLMoE without experts, StarCoder2-like, LayerNorm without bias.
 */
static struct pl_model kind(int i)
{
    struct pl_model m = model_case();
    m.tied = i == 0 || i == 1;
    m.norm = i == 0 || i > 3 ? PL_NORM_LAYER : PL_NORM_RMS;
    m.mlp = i == 0 || i == 4 ? PL_MLP_GELU : PL_MLP_SWIGLU;
    m.bias = i == 0 || i == 4 ? PL_BIAS_ALL : i == 1 ? PL_BIAS_QKV : PL_BIAS_NONE;
    if (i == 5) m.bias = PL_BIAS_ATTENTION;
    m.qk_norm = i == 2 ? PL_QK_HEAD : i == 3 ? PL_QK_FULL : PL_QK_NONE;
    m.positions = i == 0 ? T : 0;
    if (i == 0) m.kv_heads = m.heads;
    return m;
}
enum { KINDS = 6 };

static void same_bits(const struct fixture *a, const struct fixture *b, int i)
{
    size_t bytes = pl_param_size(&a->p->params[i]) * sizeof(float);
    float *x = fixture_get(a, a->weights, i), *y = fixture_get(b, b->weights, i);
    float *dx = fixture_get(a, a->grads, i), *dy = fixture_get(b, b->grads, i);
    ck_assert_str_eq(a->p->params[i].name, b->p->params[i].name);
    ck_assert_msg(!memcmp(x, y, bytes), "weights %s", a->p->params[i].name);
    ck_assert_msg(!memcmp(dx, dy, bytes), "gradient %s", a->p->params[i].name);
    free(x), free(y), free(dx), free(dy);
}

START_TEST(stages_do_not_change_bits)
{
    struct pl_model model = kind(_i);
    struct fixture one, many;
    fixture_open(&one, &pl_device_host, &model, 1, B, T);
    double loss = fixture_gradient(&one, 1);
    ck_assert_int_eq(pl_device_host.open(), 0);
    for (int P = 2; P <= 4; P++) {
        fixture_open(&many, &pl_device_host, &model, P, B, T);
        ck_assert(fixture_gradient(&many, 1) == loss);
        ck_assert_int_eq(many.p->n_params, one.p->n_params);
        for (int i = 0; i < one.p->n_params; i++) same_bits(&one, &many, i);
        fixture_free(&many);
    }
    fixture_free(&one);
}
END_TEST

/* Relative error of each tensor's gradient: (operations in sequence) * (longest
 * reduction) * eps. Gradients of key biases that are 0 but for rounding are compared
 * with the query biases'. */
static void compare(const struct pl_device *device, const struct pl_model *model)
{
    struct fixture ref, f;
    fixture_open(&ref, &pl_device_ref, model, 1, B, T);
    fixture_open(&f, device, model, 2, B, T);
    fixture_scatter(&ref, 0.1);
    fixture_scatter(&f, 0.1);
    double tolerance = 36.0 * model->layers * model->vocab * FLT_EPSILON, scale = 0;
    double loss = fixture_gradient(&ref, 1);
    ck_assert_double_lt(fabs(fixture_gradient(&f, 1) - loss), tolerance * loss);
    for (int i = 0; i < f.p->n_params; i++) {
        float *a = fixture_get(&ref, ref.grads, i), *c = fixture_get(&f, f.grads, i);
        double error = 0, norm = 0;
        for (size_t k = 0; k < pl_param_size(&f.p->params[i]); k++) {
            error += pow((double)c[k] - a[k], 2);
            norm += pow(a[k], 2);
        }
        bool flat = model->positions && strstr(f.p->params[i].name, "k_proj.bias");
        if (!flat) scale = norm;
        ck_assert_msg(sqrt(error) <= tolerance * sqrt(scale), "%s %s: %g of %g",
                      device->name, f.p->params[i].name, sqrt(error), sqrt(scale));
        free(a);
        free(c);
    }
    fixture_free(&ref);
    fixture_free(&f);
}

START_TEST(devices_agree)
{
    struct pl_model model = kind(_i);
    for (int d = 0; pl_device_names[d]; d++) {
        const struct pl_device *device;
        int rc = pl_device_get(pl_device_names[d], &device);
        if (rc == PL_ENODEV) continue; /* no such hardware here */
        ck_assert_msg(rc == 0, "%s", pl_error_text());
        compare(device, &model);
        device->close();
    }
}
END_TEST

/* Root mean square and largest size of a tensor. */
static double rms(const struct fixture *f, const char *name, double *most)
{
    int i = fixture_find(f, name);
    size_t n = pl_param_size(&f->p->params[i]);
    float *x = fixture_get(f, f->weights, i);
    double squares = 0;
    *most = 0;
    for (size_t k = 0; k < n; k++) {
        squares += (double)x[k] * x[k] / (double)n;
        *most = fmax(*most, fabs((double)x[k]));
    }
    free(x);
    return sqrt(squares);
}

static void check_constant(const struct fixture *f, const char *name, float value)
{
    int i = fixture_find(f, name);
    float *x = fixture_get(f, f->weights, i);
    for (size_t k = 0; k < pl_param_size(&f->p->params[i]); k++)
        ck_assert(x[k] == value);
    free(x);
}

START_TEST(gpt2_starts_as_nanogpt)
{
    struct pl_model model = kind(0);
    struct fixture f;
    fixture_open(&f, &pl_device_ref, &model, 2, B, T);
    check_constant(&f, "model.layers.1.input_layernorm.weight", 1);
    check_constant(&f, "model.layers.1.input_layernorm.bias", 0);
    check_constant(&f, "model.layers.3.self_attn.k_proj.bias", 0);
    check_constant(&f, "model.layers.3.mlp.down_proj.bias", 0);
    double most, n = T * model.hidden;
    double sd = rms(&f, "model.embed_positions.weight", &most);
    ck_assert_double_lt(fabs(sd - 0.02), 5 * 0.02 / sqrt(2 * n));
    fixture_free(&f);
}
END_TEST

/* The four ways, each measured on a matrix that ends a branch and one that does not:
 * within 5 standard errors sd / sqrt(2 n), and the cut keeps what is within 3 sd, whose
 * own sd is sqrt(1 - 6 phi(3) / (2 Phi(3) - 1)) = 0.98658 of it. */
START_TEST(ways_to_start)
{
    static const struct {
        enum pl_init init;
        double std, inside, end;
    } ways[] = {
        {PL_INIT_SCALED, 0, 0.02, 0.02 / 2.8284271},
        {PL_INIT_SCALED, 0.006, 0.006, 0.006 / 2.8284271},
        {PL_INIT_NORMAL, 0.02, 0.02, 0.02},
        {PL_INIT_TRUNCATED, 0.02, 0.02 * 0.98658, 0.02 * 0.98658},
        {PL_INIT_WIDTH, 0.02, 0.17677670, 0.17677670 / 2.8284271},
    };
    struct pl_model model = model_case();
    model.init = ways[_i].init;
    model.init_std = ways[_i].std;
    struct fixture f;
    fixture_open(&f, &pl_device_ref, &model, 1, B, T);
    double most, n = 44 * 32,
                 inside = rms(&f, "model.layers.2.mlp.up_proj.weight", &most);
    ck_assert_double_lt(fabs(inside - ways[_i].inside), 5 * inside / sqrt(2 * n));
    if (model.init == PL_INIT_TRUNCATED)
        ck_assert_double_le(most, 3 * 0.02);
    else
        ck_assert_double_gt(most, 3 * inside);
    double end = rms(&f, "model.layers.2.mlp.down_proj.weight", &most);
    ck_assert_double_lt(fabs(end - ways[_i].end), 5 * end / sqrt(2 * n));
    fixture_free(&f);
}
END_TEST

START_TEST(refused)
{
    struct pl_model m = kind(0);
    struct pl_problem *p;
    ck_assert_int_eq(pl_problem_net(&pl_device_ref, &m, 1, B, T + 1, &p), PL_ECONFIG);
    ck_assert_str_eq(pl_error_text(),
                     "train.seq is 10, expected at most model.positions (9)");
    m.dropout = true;
    ck_assert_int_eq(pl_problem_net(&pl_device_ref, &m, 1, B, T, &p), PL_EUNSUP);
    ck_assert_ptr_nonnull(strstr(pl_error_text(), "model.dropout"));
    ck_assert_ptr_null(p);
}
END_TEST

static void fill(TCase *t)
{
    tcase_set_timeout(t, 60);
    tcase_add_loop_test(t, stages_do_not_change_bits, 0, KINDS);
    tcase_add_loop_test(t, devices_agree, 0, KINDS);
    tcase_add_test(t, gpt2_starts_as_nanogpt);
    tcase_add_loop_test(t, ways_to_start, 0, 5);
    tcase_add_test(t, refused);
}

int main(void)
{
    return run_tests("net_blocks", fill);
}
