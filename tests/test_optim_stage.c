/* Steps of all tensors of a stage together: the same bits as one by one, with any
 * number of threads and on a device with memory of its own; errors come through. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/mem.h"
#include "base/pool.h"
#include "base/rng.h"
#include "gpu/host_lapack.h"
#include "tests/runner.h"
#include "tests/second.h"
#include "train/newton_schulz.h"

/* Two layers whose queries can be fused with their keys and values, and a tensor or two
 * of every other kind. One shape is met at odd distances. */
enum { N_PARAMS = 14, MOST = 200000, UPDATES = 3 };
static struct pl_param params[N_PARAMS];
static int n_params;

static void shape(int i, const char *name, int rows, int cols, enum pl_param_kind kind)
{
    struct pl_param *p = &params[i];
    *p = (struct pl_param){.rows = rows, .cols = cols, .kind = kind};
    strncpy(p->name, name, sizeof p->name - 1);
    if (i) p->offset = p[-1].offset + pl_param_size(p - 1);
    ck_assert_uint_le(p->offset + pl_param_size(p), MOST);
}

static void make_params(void)
{
    int n = 0;
    shape(n++, "embed", 24, 12, PL_PARAM_EMBED);
    for (int l = 0; l < 2; l++) {
        shape(n++, "norm", 1, 12, PL_PARAM_VECTOR);
        shape(n++, "a.q_proj.weight", 12, 12, PL_PARAM_MATRIX);
        shape(n++, "a.k_proj.weight", 6, 12, PL_PARAM_MATRIX);
        shape(n++, "a.v_proj.weight", 6, 12, PL_PARAM_MATRIX);
        shape(n++, "a.o_proj.weight", 12, 12, PL_PARAM_MATRIX);
        shape(n++, "down", 12, 20, PL_PARAM_MATRIX);
    }
    shape(n++, "bias", 1, 4, PL_PARAM_BALANCE);
    ck_assert_int_eq(n, N_PARAMS);
    n_params = n;
}

/* So large that two threads take two whole and share the third. */
static void make_three(void)
{
    for (n_params = 0; n_params < 3; n_params++)
        shape(n_params, "up", 260, 256, PL_PARAM_MATRIX);
}

static int numbers(void)
{
    const struct pl_param *last = &params[n_params - 1];
    return (int)(last->offset + pl_param_size(last));
}

struct outcome {
    float w[MOST], u[MOST];
    float *state;
    size_t floats;
};

/* UPDATES of the rule; whole: as a stage, else tensor by tensor. u and scratch begin as
 * NaN, and what lies behind the scratch must stay. */
static int train(const struct pl_optim *o, const struct pl_device *dev, bool whole,
                 struct outcome *out)
{
    enum { GUARD = 16 };
    size_t at[N_PARAMS], floats = 0, scratch = 0;
    const struct pl_param *last = &params[n_params - 1];
    const int n = numbers(),
              moved = last->kind == PL_PARAM_BALANCE ? (int)last->offset : n;
    for (int i = 0; i < n_params; i++) {
        at[i] = floats;
        if (params[i].kind == PL_PARAM_BALANCE) continue;
        floats += pl_optim_state(o, &params[i]);
        const size_t one = pl_optim_scratch(o, &params[i]);
        if (one > scratch) scratch = one;
    }
    if (whole) scratch = pl_optim_stage_scratch(o, dev, params, n_params);
    float *state = PL_NEW(floats + 1, float), *block = PL_NEW(scratch + GUARD, float);
    float *g = PL_NEW(n, float);
    int rc = 0;
    for (int i = 0; i < n; i++)
        out->w[i] = (float)pl_rng_normal(3, PL_RNG_TEST, 0, (uint32_t)i);
    for (int t = 1; t <= UPDATES && !rc; t++) {
        for (int i = 0; i < n; i++) {
            g[i] = (float)pl_rng_normal(3, PL_RNG_TEST, (uint64_t)t, (uint32_t)i);
            out->u[i] = NAN;
        }
        for (size_t i = 0; i < scratch; i++) block[i] = NAN;
        for (int i = 0; i < GUARD; i++) block[scratch + (size_t)i] = 7;
        const struct pl_optim_stage s = {dev,   params, n_params, at, g,     state,
                                         block, out->w, t,        .5, out->u};
        if (whole) rc = pl_optim_stage(o, &s);
        for (int i = 0; i < n_params && !whole && !rc; i++) {
            if (params[i].kind == PL_PARAM_BALANCE) continue;
            const size_t offset = params[i].offset;
            rc = pl_optim_step(o, dev, &params[i], g + offset, out->w + offset,
                               state + at[i], block, t, .5, out->u + offset);
        }
        for (int i = 0; i < GUARD; i++)
            ck_assert_float_eq(block[scratch + (size_t)i], 7);
        for (int i = 0; i < moved && !rc; i++) out->w[i] -= out->u[i];
        for (int i = 0; i < moved && !rc; i++)
            if (isnan(out->u[i])) ck_abort_msg("number %d has no update", i);
    }
    free(block), free(g);
    out->state = state;
    out->floats = floats;
    return rc;
}

static void same(const struct pl_optim *o, const struct pl_device *dev, const char *how)
{
    static struct outcome one, all;
    ck_assert_int_eq(train(o, dev, false, &one), 0);
    ck_assert_int_eq(train(o, dev, true, &all), 0);
    ck_assert_uint_eq(one.floats, all.floats);
    ck_assert_msg(!memcmp(one.w, all.w, sizeof *one.w * (size_t)numbers()), "%s, %s",
                  o->type->name, how);
    ck_assert_msg(!memcmp(one.state, all.state, sizeof(float) * one.floats),
                  "%s, state, %s", o->type->name, how);
    free(one.state);
    free(all.state);
}

START_TEST(a_stage_is_its_tensors)
{
    make_params();
    struct pl_optim o = pl_optim_types[_i]->defaults;
    o.type = pl_optim_types[_i];
    o.refresh = 2;
    o.max_precond_dim = 24; /* the longest side */
    o.decay = .1;
    o.decay_spares = PL_SPARES_VECTORS;
    for (int d = 0; d < N_DEVICES; d++)
        for (int fused = 0; fused < 2; fused++)
            for (int threads = 1; threads < 5; threads += 2) {
                char how[64];
                snprintf(how, sizeof how, "device %d, fused %d, %d threads", d, fused,
                         threads);
                o.fused_qkv = fused;
                pl_pool_threads_set(threads);
                same(&o, second_device(d), how);
            }
    pl_pool_threads_set(1);
}
END_TEST

START_TEST(the_rest_is_done_one_by_one)
{
    make_three();
    struct pl_optim o = pl_optim_find("muon")->defaults;
    o.type = pl_optim_find("muon");
    o.coefficients = 1; /* jordan */
    o.ns_steps = 1;
    for (int threads = 1; threads < 5; threads++) {
        pl_pool_threads_set(threads);
        same(&o, &pl_device_host, "three");
        const size_t one = pl_optim_scratch(&o, &params[0]),
                     all = pl_optim_stage_scratch(&o, &pl_device_host, params, 3);
        ck_assert_uint_eq(all / one, threads < 3 ? threads : 3);
    }
    pl_pool_threads_set(1);
}
END_TEST

/* The checker sees a wrong object: another rate, other bits. */
START_TEST(another_rate_is_seen)
{
    make_params();
    static struct outcome a, b;
    struct pl_optim o = pl_optim_find("muon")->defaults, p;
    o.type = pl_optim_find("muon");
    p = o;
    p.lr *= 1.001;
    ck_assert_int_eq(train(&o, second_device(1), true, &a), 0);
    ck_assert_int_eq(train(&p, second_device(1), true, &b), 0);
    ck_assert_mem_ne(a.w, b.w, sizeof *a.w * (size_t)numbers());
    free(a.state);
    free(b.state);
}
END_TEST

static int failing_syrk(int count, bool ta, int n, int k, float alpha, const float *A,
                        int lda, size_t stride_a, float beta, const float *addend,
                        float *C, int ldc, size_t stride_c)
{
    if (n == 6) return pl_fail(PL_EDEVICE, "no product of side %d", n);
    return pl_device_ref.syrk_batch(count, ta, n, k, alpha, A, lda, stride_a, beta,
                                    addend, C, ldc, stride_c);
}

/* A message is of the thread that fails; the caller must see it. */
START_TEST(an_error_comes_through)
{
    make_params();
    struct pl_device broken = pl_device_ref;
    struct pl_optim o = pl_optim_find("muon")->defaults;
    static struct outcome out;
    o.type = pl_optim_find("muon");
    broken.syrk_batch = failing_syrk;
    for (int threads = 1; threads < 4; threads++)
        for (int own = 0; own < 2; own++) {
            broken.host_memory = !own;
            pl_pool_threads_set(threads);
            pl_fail(PL_EIO, "of before");
            ck_assert_int_eq(train(&o, &broken, true, &out), PL_EDEVICE);
            ck_assert_str_eq(pl_error_text(), "no product of side 6");
            free(out.state);
        }
    pl_pool_threads_set(1);
}
END_TEST

/* More threads, more scratch, but no more than there are tensors of a shape. */
START_TEST(scratch_follows_the_threads)
{
    make_params();
    struct pl_optim o = pl_optim_find("muon")->defaults;
    o.type = pl_optim_find("muon");
    const size_t square = (3 * 12 * 12 + 15) / 16 * 16;
    size_t floats[6];
    for (int threads = 1; threads < 6; threads++) {
        pl_pool_threads_set(threads);
        floats[threads] = pl_optim_stage_scratch(&o, &pl_device_ref, params, N_PARAMS);
    }
    pl_pool_threads_set(1);
    ck_assert_uint_eq(floats[1], 2 * 12 * 12 + 12 * 20);
    ck_assert_uint_eq(floats[2], 2 * floats[1]); /* both of `down` */
    ck_assert_uint_eq(floats[4], 4 * square);
    ck_assert_uint_eq(floats[5], 4 * square);
    struct pl_device own = pl_device_ref;
    own.host_memory = false;
    ck_assert_uint_eq(pl_optim_stage_scratch(&o, &own, params, N_PARAMS),
                      4 * 4 * 12 * 12);
}
END_TEST

/* LAPACK's work space by thread, and sides that it is not asked for. */
START_TEST(sides_of_eigenvectors)
{
    make_params();
    struct pl_optim soap = pl_optim_find("soap")->defaults;
    struct pl_optim turn = pl_optim_find("basis-rotation")->defaults;
    struct pl_optim adamw = pl_optim_find("adamw")->defaults;
    soap.type = pl_optim_find("soap");
    turn.type = pl_optim_find("basis-rotation");
    adamw.type = pl_optim_find("adamw");
    pl_pool_threads_set(3);
    const struct pl_device *d = &pl_device_ref;
    /* two of 20, four of 12 by three threads, one embedding of 24 */
    ck_assert_uint_eq(pl_optim_stage_lapack(&turn, d, params, N_PARAMS),
                      2 * pl_eigen_bytes(20));
    ck_assert_uint_lt(pl_optim_stage_lapack(&soap, d, params, 2), pl_eigen_bytes(25));
    ck_assert_uint_eq(pl_optim_stage_lapack(&soap, d, params, 2), pl_eigen_bytes(24));
    ck_assert_uint_eq(pl_optim_stage_lapack(&adamw, d, params, N_PARAMS), 0);
    pl_pool_threads_set(1);
    struct pl_param p = {"up", .rows = PL_EIGEN_MOST + 1, .cols = 8};
    ck_assert_int_eq(pl_optim_check(&turn, &p, 1), PL_ECONFIG);
    ck_assert_ptr_nonnull(strstr(pl_error_text(), "up is 10001 x 8"));
    ck_assert_int_eq(pl_optim_check(&soap, &p, 1), 0);
    turn.one_sided = true;
    ck_assert_int_eq(pl_optim_check(&turn, &p, 1), 0);
    turn.one_sided = false;
    p.rows--;
    ck_assert_int_eq(pl_optim_check(&turn, &p, 1), 0);
}
END_TEST

static void fill(TCase *t)
{
    int n = 0;
    while (pl_optim_types[n]) n++;
    tcase_add_loop_test(t, a_stage_is_its_tensors, 0, n);
    tcase_add_test(t, the_rest_is_done_one_by_one);
    tcase_add_test(t, another_rate_is_seen);
    tcase_add_test(t, an_error_comes_through);
    tcase_add_test(t, scratch_follows_the_threads);
    tcase_add_test(t, sides_of_eigenvectors);
}

int main(void)
{
    return run_tests("optim_stage", fill);
}
