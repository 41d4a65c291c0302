/* The devices of the CPU against the conformance suite; the suite against faulty
 * devices. */
#include "base/err.h"
#include "gpu/host.h"
#include "tests/runner.h"
#include "tests/conformance.h"

#include <cblas.h>
#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { OPS = 40 };

static void run(const struct pl_device *device, const struct conformance *op)
{
    char text[300];
    ck_assert_int_eq(device->open(), 0);
    bool good = conformance_run(op, device, text, sizeof text);
    device->close();
    ck_assert_msg(good, "%s (%s)", text, device->summary);
}

START_TEST(every_named_device_conforms)
{
    for (const char *const *name = pl_device_names; *name; name++) {
        const struct pl_device *device = NULL;
        if (!strcmp(*name, "cuda")) continue; /* its own test: needs the hardware */
        ck_assert_int_eq(pl_device_get(*name, &device), 0);
        ck_assert_str_eq(device->name, *name);
        run(device, &conformance_table[_i]);
    }
}
END_TEST

START_TEST(every_instruction_set_of_host_conforms)
{
    for (const struct pl_device *const *set = pl_host_sets(); *set; set++)
        run(*set, &conformance_table[_i]);
}
END_TEST

/* The faulty twin of each op: ref's result, then one plausible bug in small. */
#define FAULT(p, name, params, args)     \
    static int faulty_##name params      \
    {                                    \
        int status = pl_ref_##name args; \
        FAULT_##name;                    \
        return status;                   \
    }
#define OFF(x) (x) += 1e-4f * (1 + fabsf(x)) /* one element off in the fourth digit */
#define FAULT_gemm OFF(C[N - 1])
#define FAULT_axpby OFF(y[n - 1])
#define FAULT_blend OFF(y[n - 1])
#define FAULT_dot *out *= 1 + 1e-9
#define FAULT_distance *out *= 1 + 1e-5
#define FAULT_sign y[n - 1] = 1
#define FAULT_mul OFF(y[n - 1])
#define FAULT_ratio OFF(y[n - 1])
#define FAULT_squares OFF(out[0])
#define FAULT_syrk OFF(C[n - 1]) /* an element of the mirror */
#define FAULT_gemm_batch OFF(C[(size_t)(count - 1) * stride_c])
#define FAULT_syrk_batch OFF(C[(size_t)(count - 1) * stride_c + (size_t)n - 1])
#define FAULT_round_bf16 y[n - 1] = x[n - 1] /* as it came */
#define FAULT_product OFF(c[0])
#define FAULT_product_groups OFF(c[0])
#define FAULT_bias_groups_back OFF(db[0])
#define FAULT_gather OFF(y[d - 1])
#define FAULT_embed OFF(out[d - 1])
#define FAULT_embed_back OFF(dtable[d - 1])
#define FAULT_rmsnorm OFF(rstd[rows - 1])
#define FAULT_rmsnorm_back dx[0] -= 1e-3f /* as if dx had been overwritten */
#define FAULT_layernorm OFF(y[d - 1])
#define FAULT_layernorm_back OFF(dgain[d - 1])
#define FAULT_headnorm OFF(rstd[rows * n_heads - 1])
#define FAULT_headnorm_back OFF(g[d - 1])
#define FAULT_add_rows OFF(y[d - 1])
#define FAULT_add_rows_back OFF(dx[d - 1])
#define FAULT_gelu OFF(y[n - 1])
#define FAULT_gelu_back OFF(dx[n - 1])
#define FAULT_route route->expert[route->chosen - 1]--
#define FAULT_route_back OFF(dlogits[route->experts - 1])
#define FAULT_combine OFF(y[d - 1])
#define FAULT_combine_back OFF(dw[0])
#define FAULT_rope OFF(x[n_heads * head_dim - 1])
#define FAULT_attention OFF(lse[shape->T - 1])
#define FAULT_attention_back OFF(dqkv[0])
#define FAULT_swiglu OFF(h[f - 1])
#define FAULT_swiglu_back OFF(dgate_up[2 * f - 1])
#define FAULT_xent *sum += 1e-3
#define FAULT_adamw \
    if (count) list[count - 1].u[0] *= 1 + 1e-4f
#include "gpu/ref.h"
PL_OPS(FAULT, faulty_)

static const struct pl_device faulty = {
    .name = "faulty", .alloc = NULL, PL_DEVICE_OP_TABLE(faulty_)};

START_TEST(a_fault_in_an_op_is_caught)
{
    struct pl_device device = faulty;
    char text[300];
    device.alloc = pl_device_ref.alloc;
    device.release = pl_device_ref.release;
    device.upload = pl_device_ref.upload;
    device.download = pl_device_ref.download;
    ck_assert(!conformance_run(&conformance_table[_i], &device, text, sizeof text));
    ck_assert_msg(strstr(text, conformance_table[_i].op) == text, "%s", text);
}
END_TEST

/* Another value at every call, under a bound loose enough to let it pass. */
static int drifting_axpby(size_t n, float a, const float *x, float b, float *y)
{
    static int calls;
    int status = pl_ref_axpby(n, a, x, b, y);
    y[0] += 1e-3f * (float)++calls;
    return status;
}

START_TEST(different_bits_are_caught)
{
    struct pl_device device = pl_device_ref;
    char text[300];
    static const struct conformance loose = {"axpby", 2, NULL};
    struct conformance op = loose;
    for (const struct conformance *c = conformance_table; c->op; c++)
        if (!strcmp(c->op, "axpby")) op.check = c->check;
    device.axpby = drifting_axpby;
    op.c = 1e9; /* values pass, so that only the bits can fail */
    ck_assert(!conformance_run(&op, &device, text, sizeof text));
    ck_assert_str_eq(text, "axpby: two runs differ in bits");
}
END_TEST

START_TEST(table_covers_every_op)
{
    static const char *const names[] = {
#define NAME(p, name, params, args) #name,
        PL_OPS(NAME, )};
    ck_assert_uint_eq(sizeof names / sizeof *names, OPS);
    for (int i = 0; i < OPS; i++) ck_assert_str_eq(names[i], conformance_table[i].op);
    ck_assert_ptr_null(conformance_table[OPS].op);
}
END_TEST

START_TEST(unknown_device)
{
    const struct pl_device *device = NULL;
    ck_assert_int_eq(pl_device_get("hots", &device), PL_ENODEV);
    ck_assert_ptr_null(device);
    ck_assert_ptr_nonnull(strstr(pl_error_text(), "'host'"));
}
END_TEST

START_TEST(memory)
{
    for (int k = 0; k < 2; k++) {
        const struct pl_device *d = k ? &pl_device_host : &pl_device_ref;
        unsigned char *p = NULL;
        void *none = &none;
        ck_assert_int_eq(d->alloc(1000, (void **)&p), 0);
        for (int i = 0; i < 1000; i++) ck_assert_int_eq(p[i], 0);
        memset(p, 7, 1000);
        ck_assert_int_eq(d->copy(p, p + 500, 500), 0);
        ck_assert_int_eq(d->zero(p + 1, 998), 0);
        ck_assert(p[0] == 7 && p[1] == 0 && p[998] == 0 && p[999] == 7);
        d->release(p);
        ck_assert_int_eq(d->alloc(SIZE_MAX - 8, &none), PL_EMEM);
        ck_assert_ptr_null(none);
    }
}
END_TEST

START_TEST(cblas_is_openblas)
{
    ck_assert_ptr_nonnull(strstr(openblas_get_config(), "OpenBLAS"));
    char text[300] = "";
    pl_device_host.describe(text, sizeof text);
    ck_assert_ptr_nonnull(strstr(text, "OpenBLAS"));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("device");
    TCase *ops = tcase_create("ops"), *rest = tcase_create("rest");
    tcase_add_loop_test(ops, every_named_device_conforms, 0, OPS);
    tcase_add_loop_test(ops, every_instruction_set_of_host_conforms, 0, OPS);
    tcase_add_loop_test(ops, a_fault_in_an_op_is_caught, 0, OPS);
    tcase_set_timeout(ops, 60);
    suite_add_tcase(suite, ops);
    tcase_add_test(rest, different_bits_are_caught);
    tcase_add_test(rest, table_covers_every_op);
    tcase_add_test(rest, unknown_device);
    tcase_add_test(rest, memory);
    tcase_add_test(rest, cblas_is_openblas);
    suite_add_tcase(suite, rest);
    return run_suite(suite);
}
