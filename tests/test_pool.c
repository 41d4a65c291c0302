/* The thread pool: every part once, nested loops, changing numbers of threads, after a
 * fork; and that the host device gives the same bits with any number of threads. */
#include <check.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/pool.h"
#include "base/rng.h"
#include "gpu/host.h"
#include "tests/runner.h"

enum { PARTS = 1000 };

static atomic_int taken[PARTS];
static int
    plain[PARTS]; /* not atomic: a part's own memory must be seen by the caller */

static void count(void *context, int i)
{
    atomic_fetch_add(&taken[i], 1);
    plain[i] = *(int *)context + i;
}

static void check_loop(int n, int mark)
{
    memset(plain, 0, sizeof plain);
    for (int i = 0; i < PARTS; i++) atomic_store(&taken[i], 0);
    pl_pool_for(n, count, &mark);
    for (int i = 0; i < PARTS; i++) {
        ck_assert_int_eq(atomic_load(&taken[i]), i < n);
        ck_assert_int_eq(plain[i], i < n ? mark + i : 0);
    }
}

static const int thread_counts[] = {1, 2, 5, 3, 1, 4};

START_TEST(every_part_once)
{
    for (size_t k = 0; k < sizeof thread_counts / sizeof *thread_counts; k++) {
        pl_pool_threads_set(thread_counts[k]);
        ck_assert_int_eq(pl_pool_threads(), thread_counts[k]);
        for (int loop = 0; loop < 40; loop++) check_loop(loop % 7, loop);
        check_loop(PARTS, 9);
        usleep(2000); /* long enough to sleep, so that the next loop must wake */
        check_loop(PARTS, 10);
        check_loop(0, 11);
    }
    pl_pool_threads_set(1);
}
END_TEST

static void inner(void *context, int i)
{
    ck_assert_int_eq(pl_pool_threads(), 1); /* of loops in here */
    ((int *)context)[i] = i;
}

static void outer(void *context, int i)
{
    pl_pool_for(10, inner, (int *)context + 10 * i);
}

START_TEST(nested_loops_run_in_place)
{
    int cells[200];
    memset(cells, 0xff, sizeof cells);
    pl_pool_threads_set(3);
    pl_pool_for(20, outer, cells);
    for (int i = 0; i < 200; i++) ck_assert_int_eq(cells[i], i % 10);
    ck_assert_int_eq(pl_pool_threads(), 3);
    pl_pool_threads_set(1);
}
END_TEST

/* Has another thread than the caller's taken a part? */
struct who {
    pthread_t caller;
    atomic_int others;
};

static void meet(void *context, int i)
{
    struct who *w = context;
    (void)i;
    if (!pthread_equal(w->caller, pthread_self())) atomic_fetch_add(&w->others, 1);
    usleep(1000);
}

static int others(void)
{
    struct who w = {.caller = pthread_self()};
    pl_pool_for(20, meet, &w);
    return atomic_load(&w.others);
}

START_TEST(a_forked_child_has_threads_of_its_own)
{
    pl_pool_threads_set(2);
    ck_assert_int_gt(others(), 0);
    pid_t child = fork();
    if (child == 0) _exit(others() > 0 ? 7 : 8);
    int status;
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert(WIFEXITED(status));
    ck_assert_int_eq(WEXITSTATUS(status), 7);
    ck_assert_int_gt(others(), 0);
    pl_pool_threads_set(1);
    ck_assert_int_eq(others(), 0);
}
END_TEST

static float *numbers(size_t n, uint64_t stream)
{
    float *x = PL_NEW(n, float);
    for (size_t i = 0; i < n; i++)
        x[i] = (float)pl_rng_normal(3, PL_RNG_TEST, stream, (uint32_t)i);
    return x;
}

/* One after another, every operation that has parts, each on sizes of several; results
 * are appended to out. Returns their number. */
static size_t run_all(const struct pl_device *d, float *out)
{
    enum { ROWS = 600, WIDTH = 192, N = ROWS * WIDTH, VOCAB = 90 };
    const struct pl_attention_shape shape = {3, 200, 4, 2, 24};
    const struct pl_adamw_args adamw = {1e-3, 0.9, 0.95, 1e-8, 0.1, 0.05};
    float *x = numbers(N, 1), *y = numbers(N, 2), *z = numbers(N, 3), *to = out;
    float *lse = to + N, *end = lse + 3 * 4 * 200;
    int32_t tokens[ROWS];
    double sum, far, loss = 0;
    for (int i = 0; i < ROWS; i++) tokens[i] = i * 7 % VOCAB;
    memset(out, 0, sizeof(float) * 12 * N);
    d->attention(&shape, x, to, lse); /* 3 x 200 rows of 96 of 192 */
    d->attention_back(&shape, x, to, lse, y, end);
    to = end + N;
    for (int form = 0; form < 4; form++, to += N / 2)
        d->gemm(form & 1, form >> 1, ROWS / 2, WIDTH, ROWS / 2, 1, x,
                form & 1 ? ROWS / 2 : ROWS / 2, y, form >> 1 ? ROWS / 2 : WIDTH, 0, to,
                WIDTH);
    d->rmsnorm(ROWS, WIDTH, 1e-5f, x, z, to, to + N);
    memcpy(to + N + ROWS, y, sizeof(float) * N);
    d->rmsnorm_back(ROWS, WIDTH, x, z, to + N, y, to + N + ROWS, to + 2 * N + ROWS);
    to += 2 * N + ROWS + WIDTH;
    memcpy(to, x, sizeof(float) * N);
    d->rope(ROWS, 200, 4, 24, WIDTH, 1e4, 1, to);
    to += N;
    d->swiglu(ROWS, WIDTH / 2, x, to);
    d->swiglu_back(ROWS, WIDTH / 2, x, y, to + N / 2);
    to += N / 2 + N;
    d->embed(ROWS, WIDTH, tokens, x, to);
    d->gather(ROWS, WIDTH, tokens, to, to + N);
    to += N;
    d->embed_back(ROWS, WIDTH, tokens, y, to);
    to += N;
    memcpy(to, x, sizeof(float) * N);
    d->xent(ROWS, VOCAB, to, tokens, 0.5f, &loss);
    d->axpby(N, 2, x, -1, to);
    d->dot(N, x, y, &sum);
    d->distance(N, x, y, &far);
    to += N;
    d->blend(N, 3, (float[]){1, -0.5f, 2}, (const float *[]){x, y, to - N}, to);
    to += N;
    d->gemm_batch(3, false, true, WIDTH, WIDTH, WIDTH, 1, x, WIDTH, WIDTH * WIDTH, y,
                  WIDTH, WIDTH * WIDTH, 0, to, to, WIDTH, WIDTH * WIDTH);
    d->syrk_batch(3, false, WIDTH, WIDTH, 1, x, WIDTH, WIDTH * WIDTH, 1, to, to, WIDTH,
                  WIDTH * WIDTH);
    to += 3 * WIDTH * WIDTH;
    for (int ta = 0; ta < 2; ta++, to += ROWS * ROWS) {
        for (int i = 0; i < ROWS * ROWS; i++) to[i] = x[i % N];
        d->syrk(ta, ROWS, WIDTH, 1, x, ta ? ROWS : WIDTH, -1, to, ROWS);
    }
    d->round_bf16(N, x, to);
    to += N;
    memcpy(to, x, sizeof(float) * N);
    d->mul(N, 0.5f, x, y, 2, to);
    d->sign(N, x, to + N);
    to += 2 * N;
    for (int along = 0; along < 3; along++, to += N) {
        const struct pl_ratio_args ratio = {.along = (enum pl_along)along,
                                            .a = 0.3,
                                            .b = -0.7,
                                            .s = 1,
                                            .eps = 1e-3,
                                            .under = 20};
        memcpy(to, y, sizeof(float) * N);
        d->ratio(ROWS, WIDTH, &ratio, x, y, to);
    }
    memcpy(to, x, sizeof(float) * N);
    d->squares(PL_ROW, ROWS, WIDTH, 0.5f, x, 2, to);
    d->squares(PL_COLUMN, ROWS, WIDTH, 0.5f, y, 2, to + ROWS);
    to += N;
    memcpy(to, x, sizeof(float) * N);
    const int32_t load[] = {250, 0, 350};
    const struct pl_groups groups = {3, ROWS, 40 * WIDTH, load};
    d->product_groups(PL_PRODUCT_Y, &groups, WIDTH, 40, y, x, NULL, to);
    d->product_groups(PL_PRODUCT_DW, &groups, WIDTH, 40, x, y, NULL, to);
    d->bias_groups_back(&groups, 40, x, to + 39 * WIDTH);
    to += N;
    *to++ = (float)sum;
    *to++ = (float)far;
    *to++ = (float)loss;
    memcpy(to, x, sizeof(float) * N);
    for (int i = 0; i < N; i++) z[i] *= z[i];
    const struct pl_adamw_tensor two[] = {
        {7, 0, x, y, y, z, to}, {N - 7, .1, x + 7, y + 7, y + 7, z + 7, to + 7}};
    d->adamw(2, two, &adamw);
    d->copy(to + N, y, sizeof(float) * N);
    free(x), free(y), free(z);
    return (size_t)(to + 2 * N - out);
}

START_TEST(any_number_of_threads_gives_the_same_bits)
{
    const struct pl_device *const *sets = pl_host_sets();
    enum { ROOM = 40 * 600 * 192 };
    float *one = PL_NEW(ROOM, float), *many = PL_NEW(ROOM, float);
    for (; *sets; sets++) {
        pl_pool_threads_set(1);
        (*sets)->open();
        size_t n = run_all(*sets, one);
        ck_assert_uint_le(n, ROOM);
        for (int threads = 2; threads < 6; threads += 3) {
            pl_pool_threads_set(threads);
            ck_assert_uint_eq(run_all(*sets, many), n);
            size_t i = 0;
            while (i < n && !memcmp(&one[i], &many[i], sizeof *one)) i++;
            ck_assert_msg(i == n, "%s, %d threads: result %zu is %g, %g with one",
                          (*sets)->summary, threads, i, many[i], one[i]);
        }
    }
    pl_pool_threads_set(1);
    free(one), free(many);
}
END_TEST

static void fill(TCase *tests)
{
    tcase_add_test(tests, every_part_once);
    tcase_add_test(tests, nested_loops_run_in_place);
    tcase_add_test(tests, a_forked_child_has_threads_of_its_own);
    tcase_add_test(tests, any_number_of_threads_gives_the_same_bits);
}

int main(void)
{
    return run_tests("pool", fill);
}
