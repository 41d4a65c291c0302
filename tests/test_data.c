/* Data: purity, split, shift, and every way a file can be wrong. */
#include <check.h>
#include <math.h>
#include <string.h>

#include "base/err.h"
#include "base/rng.h"
#include "train/data.h"
#include "train/data_order.h"
#include "tests/data_case.h"
#include "tests/runner.h"

enum { T = 16 };

static void must(int rc)
{
    ck_assert_msg(rc == 0, "%s", pl_error_text());
}

static struct pl_data *open_ok(const char *kind, const char *file, const char *valid,
                               double fraction, int vocab)
{
    struct pl_data *data;
    int rc = pl_data_open(kind, file, valid, fraction, vocab, T, &data);
    ck_assert_msg(rc == 0, "%s", pl_error_text());
    return data;
}

static void open_bad(const char *kind, const char *file, int vocab, int code,
                     const char *cause)
{
    struct pl_data *data = (struct pl_data *)folder;
    ck_assert_int_eq(pl_data_open(kind, file, NULL, 0.25, vocab, T, &data), code);
    ck_assert_ptr_null(data);
    ck_assert_msg(strstr(pl_error_text(), cause), "'%s' lacks '%s'", pl_error_text(),
                  cause);
    if (code == PL_EINPUT) ck_assert_ptr_nonnull(strstr(pl_error_text(), file));
}

START_TEST(windows_are_pure)
{
    struct pl_data *a = open_ok("grammar", NULL, NULL, 0.1, 256);
    struct pl_data *b = open_ok("grammar", NULL, NULL, 0.1, 256);
    int32_t x[T], y[T], x2[T], y2[T], distinct = 0;
    for (int64_t k = 0; k < 50; k++) {
        must(pl_data_train(a, 7, k, x, y));
        must(pl_data_train(b, 7, 49 - k, x2, y2)); /* another order in between */
        must(pl_data_train(b, 7, k, x2, y2));
        ck_assert_mem_eq(x, x2, sizeof x);
        ck_assert_mem_eq(y, y2, sizeof y);
        ck_assert_mem_eq(x + 1, y, sizeof x - sizeof *x);
        must(pl_data_train(b, 8, k, x2, y2));
        distinct += memcmp(x, x2, sizeof x) != 0;
    }
    ck_assert_int_gt(distinct, 45);
    pl_data_free(a);
    pl_data_free(b);
}
END_TEST

/* Token i of the shard is i, so a window shows where it came from. */
START_TEST(train_never_meets_validation)
{
    enum { N = 100, N_VALID = 25 };
    write_shard(path, 20240520, 1, N, N, 0);
    struct pl_data *data = open_ok("tokens", path, NULL, 0.25, N);
    ck_assert_int_eq(pl_data_tokens(data, PL_SPLIT_TRAIN), N - N_VALID);
    ck_assert_int_eq(pl_data_tokens(data, PL_SPLIT_VALID), N_VALID);
    ck_assert(isnan(pl_data_bytes_per_token(data)));
    int32_t x[T], y[T], lowest = N, highest = 0;
    for (int64_t k = 0; k < 2000; k++) {
        must(pl_data_train(data, 1, k, x, y));
        for (int t = 0; t < T; t++) ck_assert_int_eq(y[t], x[t] + 1);
        if (x[0] < lowest) lowest = x[0];
        if (y[T - 1] > highest) highest = y[T - 1];
    }
    ck_assert_int_eq(lowest, 0); /* both ends are reached, and not passed */
    ck_assert_int_eq(highest, N - N_VALID - 1);
    int32_t last = -1;
    for (int64_t k = 0; k < 5; k++) {
        must(pl_data_valid(data, k, 5, x, y));
        ck_assert_int_ge(x[0], N - N_VALID);
        ck_assert_int_lt(y[T - 1], N);
        ck_assert_int_gt(x[0], last);
        ck_assert_int_eq(y[T - 1], x[0] + T);
        last = x[0];
    }
    pl_data_free(data);
}
END_TEST

START_TEST(validation_from_a_second_file)
{
    write_shard(path, 20240520, 1, 40, 40, 0);
    write_shard(other, 20240520, 1, T + 1, T + 1, 300);
    struct pl_data *data = open_ok("tokens", path, other, 0.5, 400);
    ck_assert_int_eq(pl_data_tokens(data, PL_SPLIT_TRAIN), 40);
    ck_assert_int_eq(pl_data_tokens(data, PL_SPLIT_VALID), T + 1);
    int32_t x[T], y[T];
    must(pl_data_valid(data, 1, 2, x, y));
    ck_assert_int_eq(x[0], 300);
    ck_assert_int_eq(y[T - 1], 300 + T);
    pl_data_free(data);
    struct pl_data *none;
    ck_assert_int_eq(pl_data_open("tokens", path, other, 0, 310, T, &none), PL_EINPUT);
    ck_assert_ptr_null(none);
    ck_assert_ptr_nonnull(strstr(pl_error_text(), other));
}
END_TEST

START_TEST(bytes_need_no_encoding)
{
    unsigned char bytes[100];
    for (int i = 0; i < 100; i++) bytes[i] = (unsigned char)(156 + i);
    write_file(path, bytes, sizeof bytes);
    struct pl_data *data = open_ok("text", path, NULL, 0, 256);
    int32_t x[T], y[T];
    must(pl_data_train(data, 3, 0, x, y));
    for (int t = 1; t < T; t++) ck_assert_int_eq(x[t], x[0] + t);
    ck_assert_int_ge(x[0], 156);
    ck_assert(pl_data_bytes_per_token(data) == 1);
    ck_assert_int_eq(pl_data_tokens(data, PL_SPLIT_VALID), 0);
    pl_data_free(data);
    open_bad("text", path, 160, PL_EINPUT, "token 4 (byte offset 4) has id 160");
}
END_TEST

START_TEST(broken_files_are_named)
{
    char missing[80];
    snprintf(missing, sizeof missing, "%s/none", folder);
    open_bad("text", missing, 256, PL_EINPUT, "No such file");
    open_bad("tokens", missing, 256, PL_EINPUT, "No such file");
    open_bad("text", folder, 256, PL_EINPUT, "is a folder");
    write_file(path, "", 0);
    open_bad("text", path, 256, PL_EINPUT, "empty");
    open_bad("tokens", path, 256, PL_EINPUT, "empty");
    write_file(path, "0123456789", 10);
    open_bad("text", path, 256, PL_EINPUT, "too short: 8 tokens, expected at least 17");
    open_bad("tokens", path, 256, PL_EINPUT, "whose first int32 is 20240520");
    write_file(path, "\x88\xd8\x34\x01", 4);
    open_bad("tokens", path, 256, PL_EINPUT, "expected 1024 bytes, found 4");
    write_shard(path, 20240801, 7, 50, 50, 0);
    open_bad("tokens", path, 256, PL_EINPUT, "50 tokens need 1224 bytes, found 1124");
    write_shard(path, 20240801, 1, 50, 50, 0);
    open_bad("tokens", path, 256, PL_EINPUT, "version 1 (byte offset 4), expected 7");
    write_shard(path, 20240520, 2, 50, 50, 0);
    open_bad("tokens", path, 256, PL_EINPUT, "version 2");
    write_shard(path, 20240520, 1, 51, 50, 0);
    open_bad("tokens", path, 256, PL_EINPUT,
             "truncated: 51 tokens need 1126 bytes, found 1124");
    write_shard(path, 20240520, 1, 49, 50, 0);
    open_bad("tokens", path, 256, PL_EINPUT, "too long");
    write_shard(path, 20240520, 1, -1, 0, 0);
    open_bad("tokens", path, 256, PL_EINPUT, "promises -1 tokens");
    write_shard(path, 20240520, 1, 0, 0, 0);
    open_bad("tokens", path, 256, PL_EINPUT, "too short");
    write_shard(path, 20240520, 1, 100, 100, 0);
    open_bad("tokens", path, 99, PL_EINPUT, "token 99 (byte offset 1222) has id 99");
}
END_TEST

START_TEST(bad_arguments_are_configuration_errors)
{
    open_bad("txt", path, 256, PL_ECONFIG, "did you mean 'text'");
    open_bad("text", NULL, 256, PL_ECONFIG, "needs a path");
    open_bad("grammar", NULL, 0, PL_ECONFIG, "vocabulary 0");
    struct pl_data *data;
    ck_assert_int_eq(pl_data_open("grammar", NULL, path, 0.1, 256, T, &data),
                     PL_ECONFIG);
    ck_assert_int_eq(pl_data_open("grammar", NULL, NULL, 1, 256, T, &data), PL_ECONFIG);
    ck_assert_int_eq(pl_data_open("grammar", NULL, NULL, NAN, 256, T, &data),
                     PL_ECONFIG);
}
END_TEST

START_TEST(every_kind_is_listed)
{
    int n = 0;
    for (; pl_data_names()[n]; n++) {
        struct pl_data *data;
        int rc = pl_data_open(pl_data_names()[n], NULL, NULL, 0.1, 256, T, &data);
        if (rc)
            ck_assert_msg(strstr(pl_error_text(), "needs a path"), "%s",
                          pl_error_text());
        pl_data_free(data);
    }
    ck_assert_int_eq(n, 5);
}
END_TEST

/* Order-0 entropy well above order-2 conditional entropy: context helps a lot. */
START_TEST(grammar_has_structure)
{
    struct pl_data *data = open_ok("grammar", NULL, NULL, 0, 256);
    int64_t n = pl_data_tokens(data, PL_SPLIT_TRAIN);
    ck_assert_int_ge(n, 1000000);
    ck_assert_int_le(n, 1100000);
    enum { DRAWS = 20000, V = 128 };
    static double one[V], two[V * V], three[V * V * V];
    int32_t x[T], y[T];
    for (int64_t k = 0; k < DRAWS; k++) {
        must(pl_data_train(data, 5, k, x, y));
        for (int t = 0; t < T; t++) ck_assert_int_lt(x[t], V);
        one[x[2]]++;
        two[x[0] * V + x[1]]++;
        three[(x[0] * V + x[1]) * V + x[2]]++;
    }
    double h0 = 0, h2 = 0;
    for (int i = 0; i < V; i++)
        if (one[i] > 0) h0 -= one[i] / DRAWS * log(one[i] / DRAWS);
    for (int i = 0; i < V * V * V; i++)
        if (three[i] > 0) h2 -= three[i] / DRAWS * log(three[i] / two[i / V]);
    ck_assert_double_gt(h0, 2.5);
    ck_assert_double_lt(h2, 0.6 * h0);
    pl_data_free(data);
}
END_TEST

/* Each window once an epoch; other seeds and epochs have other orders; k is enough. */
START_TEST(an_epoch_is_a_permutation)
{
    static const int64_t sizes[] = {1, 2, 3, 5, 64, 65, 1000, 4097};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        const int64_t W = sizes[i], n = W * T + T; /* a rest of T - 1 is left out */
        char *seen = pl_alloc((size_t)W, 1);
        int64_t moved = 0, by_seed = 0, next = 0;
        for (int64_t k = 0; k < 2 * W; k++) {
            int64_t start = pl_data_start(PL_ORDER_EPOCH, 9, k, n, T);
            ck_assert(start % T == 0 && start >= 0 && start + T < n);
            seen[start / T]++;
            ck_assert_int_eq(seen[start / T], 1 + (k >= W));
            moved += start != k % W * T;
            by_seed += start != pl_data_start(PL_ORDER_EPOCH, 10, k, n, T);
            next += start != pl_data_start(PL_ORDER_EPOCH, 9, k + W, n, T);
            ck_assert_int_eq(pl_data_start(PL_ORDER_FILE, 9, k, n, T), k % W * T);
        }
        if (W >= 64) ck_assert(moved > W && by_seed > W && next > W);
        free(seen);
    }
    /* 10^12 tokens: as quick, and in range */
    int64_t last = -1;
    for (int64_t k = 0; k < 1000; k++) {
        int64_t start = pl_data_start(PL_ORDER_EPOCH, 9, k, 1000000000000, T);
        ck_assert(start >= 0 && start < 1000000000000 - T && start != last);
        last = start;
    }
}
END_TEST

/* The 24 orders of 4 windows, over seeds, are equally likely: chi square of 23 degrees
 * of freedom, 49.7 is the quantile 0.999. The draw is the generator's own number. */
START_TEST(orders_are_fair)
{
    enum { SEEDS = 24000 };
    int count[256] = {0};
    double chi = 0;
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        int code = 0;
        for (int64_t k = 0; k < 4; k++)
            code = 4 * code + (int)(pl_data_start(PL_ORDER_EPOCH, seed, k, 5, 1));
        count[code]++;
    }
    for (int i = 0; i < 256; i++)
        if (count[i]) chi += (count[i] - 1000.) * (count[i] - 1000.) / 1000.;
    ck_assert_double_lt(chi, 49.7);
    for (int64_t k = 0; k < 100; k++)
        ck_assert_int_eq(
            pl_data_start(PL_ORDER_DRAW, 5, k, 1000, T),
            (int64_t)pl_rng_below(5, PL_RNG_DATA, (uint64_t)k, 0, 1000 - T));
}
END_TEST

static void fill(TCase *t)
{
    tcase_add_checked_fixture(t, setup, teardown);
    tcase_add_test(t, windows_are_pure);
    tcase_add_test(t, train_never_meets_validation);
    tcase_add_test(t, validation_from_a_second_file);
    tcase_add_test(t, bytes_need_no_encoding);
    tcase_add_test(t, broken_files_are_named);
    tcase_add_test(t, bad_arguments_are_configuration_errors);
    tcase_add_test(t, every_kind_is_listed);
    tcase_add_test(t, grammar_has_structure);
    tcase_add_test(t, an_epoch_is_a_permutation);
    tcase_add_test(t, orders_are_fair);
}

int main(void)
{
    return run_tests("data", fill);
}
