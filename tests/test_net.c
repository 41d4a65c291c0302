/* The decoder as a problem: tables, initial weights, stages, memory, devices. */
#include <check.h>
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "tests/runner.h"
#include "tests/model_case.h"
#include "tests/net_fixture.h"

enum { B = 2, T = 5 };

static struct pl_model with_tied(bool tied)
{
    struct pl_model m = model_case();
    m.tied = tied;
    return m;
}

START_TEST(tables_are_consistent)
{
    for (int P = 1; P <= 4; P++) {
        struct pl_model model = with_tied(_i);
        struct fixture f;
        fixture_open(&f, &pl_device_ref, &model, P, B, T);
        size_t total = 0;
        for (int s = 0; s < P; s++) {
            size_t end = 0;
            for (int i = f.p->first_param[s]; i < f.p->first_param[s + 1]; i++) {
                ck_assert_int_eq(f.p->params[i].stage, s);
                ck_assert_uint_eq(f.p->params[i].offset, end);
                end += pl_param_size(&f.p->params[i]);
            }
            ck_assert_uint_eq(end, f.p->stage_floats[s]);
            total += end;
        }
        ck_assert_int_eq(f.p->first_param[P], f.p->n_params);
        ck_assert_uint_eq(total, pl_model_params(&model));
        ck_assert_int_eq(f.p->shared_across_stages, _i && P > 1);
        fixture_free(&f);
    }
}
END_TEST

START_TEST(names_and_shapes_are_hugging_face)
{
    static const struct {
        const char *name;
        int rows, cols;
        enum pl_param_kind kind;
    } expect[] = {
        {"model.embed_tokens.weight", 11, 8, PL_PARAM_EMBED},
        {"model.layers.0.input_layernorm.weight", 1, 8, PL_PARAM_VECTOR},
        {"model.layers.0.self_attn.q_proj.weight", 8, 8, PL_PARAM_MATRIX},
        {"model.layers.0.self_attn.k_proj.weight", 4, 8, PL_PARAM_MATRIX},
        {"model.layers.0.self_attn.v_proj.weight", 4, 8, PL_PARAM_MATRIX},
        {"model.layers.0.self_attn.o_proj.weight", 8, 8, PL_PARAM_MATRIX},
        {"model.layers.0.post_attention_layernorm.weight", 1, 8, PL_PARAM_VECTOR},
        {"model.layers.0.mlp.gate_proj.weight", 12, 8, PL_PARAM_MATRIX},
        {"model.layers.0.mlp.up_proj.weight", 12, 8, PL_PARAM_MATRIX},
        {"model.layers.1.mlp.down_proj.weight", 8, 12, PL_PARAM_MATRIX},
        {"model.norm.weight", 1, 8, PL_PARAM_VECTOR},
        {"lm_head.weight", 11, 8, PL_PARAM_HEAD},
    };
    struct fixture f;
    fixture_open(&f, &pl_device_ref, &tiny, 2, B, T);
    ck_assert_int_eq(f.p->n_params, 2 * 9 + 3);
    for (size_t k = 0; k < sizeof expect / sizeof *expect; k++) {
        const struct pl_param *q = &f.p->params[fixture_find(&f, expect[k].name)];
        ck_assert_int_eq(q->rows, expect[k].rows);
        ck_assert_int_eq(q->cols, expect[k].cols);
        ck_assert_int_eq(q->kind, expect[k].kind);
    }
    fixture_free(&f);
}
END_TEST

/* Same seed: same weights, loss and gradient to the bit, whatever the number of stages.
 */
START_TEST(stages_do_not_change_bits)
{
    struct pl_model model = with_tied(_i);
    struct fixture one, many;
    fixture_open(&one, &pl_device_ref, &model, 1, B, T);
    double loss = fixture_gradient(&one, 1);
    for (int P = 2; P <= 4; P++) {
        fixture_open(&many, &pl_device_ref, &model, P, B, T);
        ck_assert(fixture_gradient(&many, 1) == loss);
        ck_assert_int_eq(many.p->n_params, one.p->n_params);
        for (int i = 0; i < one.p->n_params; i++) {
            size_t bytes = pl_param_size(&one.p->params[i]) * sizeof(float);
            ck_assert_str_eq(one.p->params[i].name, many.p->params[i].name);
            float *a = fixture_get(&one, one.weights, i);
            float *b = fixture_get(&many, many.weights, i);
            float *c = fixture_get(&one, one.grads, i);
            float *d = fixture_get(&many, many.grads, i);
            ck_assert_mem_eq(a, b, bytes);
            ck_assert_mem_eq(c, d, bytes);
            free(a);
            free(b);
            free(c);
            free(d);
        }
        fixture_free(&many);
    }
    fixture_free(&one);
}
END_TEST

/* sd of a tensor of n normals: within 5 standard errors, sd / sqrt(2 n). */
static void check_sd(const struct fixture *f, const char *name, double sd)
{
    int i = fixture_find(f, name);
    size_t n = pl_param_size(&f->p->params[i]);
    float *x = fixture_get(f, f->weights, i);
    double squares = 0;
    for (size_t k = 0; k < n; k++) squares += (double)x[k] * x[k];
    free(x);
    ck_assert_double_lt(fabs(sqrt(squares / (double)n) - sd),
                        5 * sd / sqrt(2 * (double)n));
}

START_TEST(initial_weights)
{
    struct fixture f;
    const struct pl_model model = model_case();
    fixture_open(&f, &pl_device_ref, &model, 2, B, T);
    check_sd(&f, "model.embed_tokens.weight", 0.02);
    check_sd(&f, "model.layers.3.self_attn.k_proj.weight", 0.02);
    check_sd(&f, "model.layers.2.self_attn.o_proj.weight", 0.02 / sqrt(8));
    check_sd(&f, "model.layers.1.mlp.down_proj.weight", 0.02 / sqrt(8));
    int i = fixture_find(&f, "model.norm.weight");
    float *gain = fixture_get(&f, f.weights, i);
    for (int k = 0; k < model.hidden; k++) ck_assert(gain[k] == 1);
    free(gain);
    int q = fixture_find(&f, "model.layers.0.mlp.up_proj.weight");
    float *a = fixture_get(&f, f.weights, q);
    ck_assert_int_eq(f.p->type->init(f.p, 2, f.weights), 0);
    float *b = fixture_get(&f, f.weights, q);
    ck_assert_int_ne(memcmp(a, b, 100 * sizeof *a), 0);
    free(a);
    free(b);
    fixture_free(&f);
}
END_TEST

/* |y| <= sqrt(d) after the final norm, so logits have sd s <= 0.02 sqrt(d) and the loss
 * is ln V within s^2/2 + 4 s: few rows, so not averaged. */
START_TEST(loss_starts_at_uniform)
{
    struct pl_model model = with_tied(_i);
    struct fixture f;
    fixture_open(&f, &pl_device_ref, &model, 2, B, T);
    double s = 0.02 * sqrt(model.hidden);
    ck_assert_double_lt(fabs(fixture_loss(&f) - log(model.vocab)), s * s / 2 + 4 * s);
    fixture_free(&f);
}
END_TEST

/* Powers of two scale exactly; two halves of a batch make the whole to rounding. */
START_TEST(gradients_add_up)
{
    struct fixture f;
    const struct pl_model model = model_case();
    fixture_open(&f, &pl_device_ref, &model, 2, B, T);
    double whole = fixture_gradient(&f, 1), half[B];
    int i = fixture_find(&f, "model.layers.1.self_attn.v_proj.weight");
    size_t n = pl_param_size(&f.p->params[i]);
    float *a = fixture_get(&f, f.grads, i);
    fixture_gradient(&f, -1);
    fixture_zero_grads(&f);
    fixture_gradient(&f, 4);
    float *b = fixture_get(&f, f.grads, i);
    for (size_t k = 0; k < n; k++) ck_assert(b[k] == 4 * a[k]);
    fixture_zero_grads(&f);
    f.batch.B = 1;
    for (int m = 0; m < B; m++) {
        half[m] = fixture_gradient(&f, 0.5);
        f.batch.tokens += T;
        f.batch.targets += T;
    }
    float *c = fixture_get(&f, f.grads, i);
    double error = 0, norm = 0;
    for (size_t k = 0; k < n; k++) {
        error += pow((double)c[k] - a[k], 2);
        norm += pow(a[k], 2);
    }
    ck_assert_double_lt(sqrt(error / norm), B * T * (double)FLT_EPSILON);
    ck_assert_double_lt(fabs((half[0] + half[1]) / 2 - whole), FLT_EPSILON * whole);
    free(a);
    free(b);
    free(c);
    fixture_free(&f);
}
END_TEST

/* Backward reads wb: a head of twice the size there doubles every gradient below it,
 * and leaves the head's own. */
START_TEST(backward_reads_its_own_weights)
{
    struct fixture f;
    fixture_open(&f, &pl_device_ref, &tiny, 2, B, T);
    fixture_scatter(&f, 0.4);
    double loss = fixture_gradient(&f, 1), other;
    int head = fixture_find(&f, "lm_head.weight");
    const struct pl_param *q = &f.p->params[head];
    float *expect[32];
    for (int i = 0; i < f.p->n_params; i++) expect[i] = fixture_get(&f, f.grads, i);
    fixture_zero_grads(&f);
    size_t bytes = f.p->stage_floats[1] * sizeof(float);
    void *block;
    ck_assert_int_eq(f.p->device->alloc(bytes, &block), 0);
    ck_assert_int_eq(f.p->device->copy(block, f.weights[1], bytes), 0);
    float *doubled = (float *)block + q->offset;
    ck_assert_int_eq(
        f.p->device->axpby(pl_param_size(q), 1, f.weights[1] + q->offset, 1, doubled),
        0);
    const float *wb[] = {f.weights[0], block};
    const float *const *wf = (const float *const *)f.weights;
    ck_assert_int_eq(f.p->type->gradient(f.p, &f.batch, wf, wb, 1, f.grads, &other), 0);
    ck_assert(other == loss);
    for (int i = 0; i < f.p->n_params; i++) {
        float *g = fixture_get(&f, f.grads, i), factor = i == head ? 1 : 2;
        for (size_t k = 0; k < pl_param_size(&f.p->params[i]); k++)
            ck_assert(g[k] == factor * expect[i][k]);
        free(g);
        free(expect[i]);
    }
    f.p->device->release(block);
    fixture_free(&f);
}
END_TEST

static size_t bytes_asked, calls, refuse_above = SIZE_MAX;

static int counting_alloc(size_t bytes, void **ptr)
{
    *ptr = NULL;
    bytes_asked += bytes;
    calls++;
    if (bytes > refuse_above) return pl_fail(PL_EMEM, "refused %zu bytes", bytes);
    return pl_device_ref.alloc(bytes, ptr);
}

START_TEST(memory_is_counted_and_refused)
{
    struct pl_device counting = pl_device_ref;
    counting.alloc = counting_alloc;
    struct pl_problem *p;
    ck_assert_int_eq(pl_problem_net(&counting, &tiny, 2, B, T, &p), 0);
    ck_assert_uint_eq(bytes_asked, pl_problem_bytes(p));
    size_t small = bytes_asked;
    pl_problem_free(p);
    struct fixture f;
    fixture_open(&f, &counting, &tiny, 2, 8 * B, T);
    ck_assert_uint_gt(pl_problem_bytes(f.p), 6 * small);
    calls = 0;
    fixture_gradient(&f, 1);
    fixture_loss(&f);
    ck_assert_uint_eq(calls, 0);
    fixture_free(&f);
    refuse_above = small - 1;
    ck_assert_int_eq(pl_problem_net(&counting, &tiny, 2, B, T, &p), PL_EMEM);
    ck_assert_ptr_null(p);
}
END_TEST

START_TEST(bad_arguments)
{
    struct pl_problem *p;
    struct pl_model odd = tiny;
    odd.head_dim = 3;
    ck_assert_int_eq(pl_problem_net(&pl_device_ref, &odd, 1, B, T, &p), PL_ECONFIG);
    ck_assert_ptr_null(p);
    ck_assert_int_eq(pl_problem_net(&pl_device_ref, &tiny, 3, B, T, &p), PL_ECONFIG);
    ck_assert_int_eq(pl_problem_net(&pl_device_ref, &tiny, 0, B, T, &p), PL_ECONFIG);
    ck_assert_int_eq(pl_problem_net(&pl_device_ref, &tiny, 1, 0, T, &p), PL_ECONFIG);
    ck_assert_int_eq(pl_problem_net(&pl_device_ref, &tiny, 1, 1 << 20, 1 << 20, &p),
                     PL_ECONFIG);
    ck_assert_ptr_null(p);
}
END_TEST

/* Every device against ref: relative error of each tensor's gradient within
 * (operations in sequence) * (longest reduction) * eps. */
static void compare(const struct pl_device *device, const struct pl_model *model, int b,
                    int t)
{
    struct fixture ref, f;
    fixture_open(&ref, &pl_device_ref, model, 1, b, t);
    fixture_open(&f, device, model, 2, b, t);
    fixture_scatter(&ref, 0.1);
    fixture_scatter(&f, 0.1);
    int longest = b * t > model->vocab ? b * t : model->vocab;
    double tolerance = 26.0 * model->layers * longest * FLT_EPSILON;
    double loss = fixture_gradient(&ref, 1);
    ck_assert_double_lt(fabs(fixture_gradient(&f, 1) - loss), tolerance * loss);
    for (int i = 0; i < f.p->n_params; i++) {
        float *a = fixture_get(&ref, ref.grads, i), *c = fixture_get(&f, f.grads, i);
        double error = 0, norm = 0;
        for (size_t k = 0; k < pl_param_size(&f.p->params[i]); k++) {
            error += pow((double)c[k] - a[k], 2);
            norm += pow(a[k], 2);
        }
        ck_assert_msg(sqrt(error) <= tolerance * sqrt(norm), "%s %s: %g of %g",
                      device->name, f.p->params[i].name, sqrt(error), sqrt(norm));
        free(a);
        free(c);
    }
    fixture_free(&ref);
    fixture_free(&f);
}

START_TEST(devices_agree)
{
    const struct pl_device *device;
    int rc = pl_device_get(pl_device_names[_i], &device);
    if (rc == PL_ENODEV) return; /* no such hardware here */
    ck_assert_msg(rc == 0, "%s", pl_error_text());
    compare(device, &tiny, B, T);
    struct pl_model tied = with_tied(true);
    compare(device, &tied, 3, 33);
}
END_TEST

static int n_devices(void)
{
    int n = 0;
    while (pl_device_names[n]) n++;
    return n;
}

static void fill(TCase *t)
{
    tcase_set_timeout(t, 60);
    tcase_add_loop_test(t, tables_are_consistent, 0, 2);
    tcase_add_test(t, names_and_shapes_are_hugging_face);
    tcase_add_loop_test(t, stages_do_not_change_bits, 0, 2);
    tcase_add_test(t, initial_weights);
    tcase_add_loop_test(t, loss_starts_at_uniform, 0, 2);
    tcase_add_test(t, gradients_add_up);
    tcase_add_test(t, backward_reads_its_own_weights);
    tcase_add_test(t, memory_is_counted_and_refused);
    tcase_add_test(t, bad_arguments);
    tcase_add_loop_test(t, devices_agree, 0, n_devices());
}

int main(void)
{
    return run_tests("net", fill);
}
