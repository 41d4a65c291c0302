/* What makes updates fast: the head's chunks of rows add up to the whole, no update
 * allocates, and a run holds what was predicted. */
#include <check.h>
#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/err.h"
#include "base/mem.h"
#include "base/pool.h"
#include "tests/net_fixture.h"
#include "tests/runner.h"
#include "train/run.h"

/* AddressSanitizer has an allocator of its own, and shadow memory. */
#ifdef __SANITIZE_ADDRESS__
enum { PLAIN = 0 };
#else
enum { PLAIN = 1 };

static atomic_long allocations;

void *__libc_malloc(size_t bytes);
void *__libc_calloc(size_t count, size_t bytes);
void *__libc_realloc(void *old, size_t bytes);
void *__libc_memalign(size_t alignment, size_t bytes);

void *malloc(size_t bytes)
{
    atomic_fetch_add(&allocations, 1);
    return __libc_malloc(bytes);
}

void *calloc(size_t count, size_t bytes)
{
    atomic_fetch_add(&allocations, 1);
    return __libc_calloc(count, bytes);
}

void *realloc(void *old, size_t bytes)
{
    atomic_fetch_add(&allocations, 1);
    return __libc_realloc(old, bytes);
}

void *aligned_alloc(size_t alignment, size_t bytes)
{
    atomic_fetch_add(&allocations, 1);
    return __libc_memalign(alignment, bytes);
}
#endif

static void must(int rc)
{
    ck_assert_msg(rc == 0, "%s", pl_error_text());
}

static double square(const float *x, const float *y, size_t n)
{
    double sum = 0;
    for (size_t i = 0; i < n; i++) sum += ((double)x[i] - y[i]) * ((double)x[i] - y[i]);
    return sum;
}

/* Five sequences of 128 tokens are two chunks; one sequence is one. */
START_TEST(chunks_of_the_head_add_up)
{
    enum { SEQUENCES = 5, LENGTH = 128 };
    const struct pl_device *host;
    struct pl_model model = tiny;
    struct fixture f;
    model.vocab = 9000;
    must(pl_device_get("host", &host));
    fixture_open(&f, host, &model, 1, SEQUENCES, LENGTH);
    fixture_scatter(&f, 0.5);
    double whole = fixture_gradient(&f, 1), parts = 0;
    ck_assert_double_eq_tol(fixture_loss(&f), whole, 1e-6 * whole);
    size_t n = f.p->stage_floats[0];
    float *all = PL_NEW(n, float), *none = PL_NEW(n, float);
    memcpy(all, f.grads[0], n * sizeof *all);
    fixture_zero_grads(&f);
    const struct pl_batch batch = f.batch;
    for (int b = 0; b < SEQUENCES; b++) {
        f.batch.B = 1;
        f.batch.tokens = batch.tokens + b * LENGTH;
        f.batch.targets = batch.targets + b * LENGTH;
        parts += fixture_gradient(&f, 1.0 / SEQUENCES) / SEQUENCES;
    }
    f.batch = batch;
    ck_assert_double_eq_tol(whole, parts, 1e-6 * whole);
    double error = square(all, f.grads[0], n), size = square(all, none, n);
    ck_assert_double_gt(size, 0);
    ck_assert_double_lt(sqrt(error / size), 1e-5);
    free(all), free(none);
    fixture_free(&f);
}
END_TEST

enum { UPDATES = 6, P = 2 };

struct run {
    struct pl_data *data;
    struct pl_versions versions;
    struct pl_segment segment;
    struct pl_run_spec spec;
};

static const struct pl_model decoder = {.layers = 4,
                                        .hidden = 192,
                                        .heads = 6,
                                        .kv_heads = 3,
                                        .head_dim = 32,
                                        .ffn = 512,
                                        .vocab = 256,
                                        .rope_theta = 1e4,
                                        .norm_eps = 1e-5};

/* m 1: every update is one batch; else its microbatches are replayed. */
static void run_open(struct run *r, const char *precision, int batch, int m, int T)
{
    const int64_t tau[P] = {3, 0};
    const struct pl_device *host, *products;
    const struct pl_optim_type *rule = pl_optim_find("adamw");
    *r = (struct run){
        .segment = {UPDATES, pl_corrector_make("feedback", NAN, PL_START_HOLD)}};
    must(pl_device_get("host", &host));
    must(pl_device_precision(host, precision, &products));
    must(pl_data_open("grammar", NULL, NULL, .1, 256, T, &r->data));
    pl_versions_constant(P, UPDATES, m, tau, 1, &r->versions);
    r->spec = (struct pl_run_spec){
        .device = host,
        .data = r->data,
        .versions = &r->versions,
        .fidelity = PL_FIDELITY_STASH,
        .batch = batch,
        .replay = m > 1,
        .eval_every = UPDATES,
        .eval_sequences = 2,
        .T = T,
        .seed = 1,
        .optim = rule->defaults,
        .rate = {.kind = PL_RATE_CONSTANT, .total = UPDATES, .floor = 1},
        .clip = 1,
        .clip_scope = PL_CLIP_STAGE,
        .n_segments = 1,
        .segments = &r->segment,
    };
    r->spec.optim.type = rule;
    r->spec.optim.lr = 1e-3;
    must(pl_problem_net(products, &decoder, P, pl_run_at_once(&r->spec), T,
                        &r->spec.problem));
}

static void run_close(struct run *r)
{
    pl_problem_free(r->spec.problem);
    pl_versions_free(&r->versions);
    pl_data_free(r->data);
}

#ifndef __SANITIZE_ADDRESS__
static void note(void *context, const struct pl_row *row)
{
    long *at = context;
    at[row->update] = atomic_load(&allocations);
}

/* The first update may: threads start with it, and each takes its scratch. */
START_TEST(no_update_allocates)
{
    struct run r;
    struct pl_run_result result;
    long at[UPDATES], before = atomic_load(&allocations);
    pl_pool_threads_set(2);
    run_open(&r, "fp32", 4, 1, 64);
    r.spec.on_row = note;
    r.spec.context = at;
    must(pl_run(&r.spec, &result));
    ck_assert_int_gt(at[0], before); /* they are counted */
    for (int n = 2; n < UPDATES; n++) ck_assert_int_eq(at[n], at[1]);
    pl_run_free(&result);
    run_close(&r);
    pl_pool_threads_set(1);
}
END_TEST
#endif

static double peak(void)
{
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return 1024.0 * (double)usage.ru_maxrss;
}

static const struct held {
    const char *precision;
    int batch, m, T;
} held[] = {{"fp32", 16, 1, 128}, {"fp32", 16, 4, 128}, {"bf16-emulated", 8, 1, 128}};

/* Growth of the peak resident size over predicted bytes, in a process of its own. */
static double held_over_predicted(const struct held *h)
{
    int ends[2];
    double ratio = NAN;
    ck_assert_int_eq(pipe(ends), 0);
    pid_t child = fork();
    if (child == 0) {
        struct run r;
        struct pl_run_result result;
        double before = peak();
        run_open(&r, h->precision, h->batch, h->m, h->T);
        struct pl_run_memory predicted;
        must(pl_run_memory(&r.spec, &predicted));
        must(pl_run(&r.spec, &result));
        ratio = (peak() - before) / (double)predicted.all;
        _exit(write(ends[1], &ratio, sizeof ratio) != sizeof ratio);
    }
    close(ends[1]);
    ck_assert_int_eq(read(ends[0], &ratio, sizeof ratio), sizeof ratio);
    close(ends[0]);
    waitpid(child, NULL, 0);
    return ratio;
}

START_TEST(a_run_holds_what_was_predicted)
{
    double ratio = held_over_predicted(&held[_i]);
    ck_assert_double_gt(ratio, 0.9);
    ck_assert_double_lt(ratio, 1.1);
}
END_TEST

/* A quarter of the batch at once is a quarter of the activations. */
START_TEST(activations_follow_the_largest_batch)
{
    struct pl_run_memory whole, quarter, pieces;
    struct run r;
    run_open(&r, "fp32", 16, 1, 128);
    ck_assert_int_eq(pl_run_at_once(&r.spec), 16);
    must(pl_run_memory(&r.spec, &whole));
    run_close(&r);
    run_open(&r, "fp32", 16, 4, 128);
    ck_assert_int_eq(pl_run_at_once(&r.spec), 4);
    must(pl_run_memory(&r.spec, &quarter));
    r.spec.replay = false;
    ck_assert_int_eq(pl_run_at_once(&r.spec), 16);
    r.spec.at_once = 7; /* whole microbatches */
    ck_assert_int_eq(pl_run_at_once(&r.spec), 4);
    must(pl_run_memory(&r.spec, &pieces));
    run_close(&r);
    double threads = (double)pl_device_scratch(r.spec.device, 128, decoder.head_dim);
    double ratio =
        ((double)quarter.activations - threads) / ((double)whole.activations - threads);
    ck_assert_double_eq_tol(ratio, .25, .01);
    ck_assert_uint_eq(4 * quarter.tokens, whole.tokens);
    ck_assert_uint_eq(quarter.tokens, pieces.tokens);
    ck_assert_uint_eq(quarter.weights, whole.weights);
    ck_assert_uint_eq(quarter.versions, whole.versions);
}
END_TEST

static void fill(TCase *tests)
{
    tcase_add_test(tests, chunks_of_the_head_add_up);
    tcase_add_test(tests, activations_follow_the_largest_batch);
    if (!PLAIN) return;
#ifndef __SANITIZE_ADDRESS__
    tcase_add_test(tests, no_update_allocates);
#endif
    tcase_add_loop_test(tests, a_run_holds_what_was_predicted, 0, 3);
}

int main(void)
{
    return run_tests("speed", fill);
}
