/* Token files: every format, many shards as one stream, fingerprint, and files
 * that are wrong, far too large, or change under a run. */
#include <check.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "base/err.h"
#include "train/data.h"
#include "tests/data_case.h"
#include "tests/runner.h"

enum { T = 16 };

static char *in_folder(const char *name)
{
    return test_keep(pl_printf("%s/%s", folder, name));
}

static struct pl_data *open_ok(const char *kind, const char *names, int vocab)
{
    struct pl_data *data;
    int rc = pl_data_open(kind, names, NULL, 0, vocab, T, &data);
    ck_assert_msg(rc == 0, "%s", pl_error_text());
    return data;
}

static void open_bad(const char *kind, const char *names, const char *cause)
{
    struct pl_data *data;
    int rc = pl_data_open(kind, names, NULL, 0, 1000, T, &data);
    ck_assert_msg(rc == PL_EINPUT || rc == PL_ECONFIG, "%s opens", names);
    ck_assert_msg(strstr(pl_error_text(), cause), "'%s' lacks '%s'", pl_error_text(),
                  cause);
    ck_assert_ptr_null(strchr(pl_error_text(), '\n'));
}

/* Window k of the order `file` has tokens first + k T ... */
static void expect_count(struct pl_data *data, int64_t k, int first)
{
    int32_t x[T], y[T];
    pl_data_set_order(data, PL_ORDER_FILE);
    ck_assert_msg(pl_data_train(data, 1, k, x, y) == 0, "%s", pl_error_text());
    for (int t = 0; t < T; t++) {
        ck_assert_int_eq(x[t], first + (int)k * T + t);
        ck_assert_int_eq(y[t], first + (int)k * T + t + 1);
    }
}

/* Numbers first ... in `width` bytes, little-endian, after `skip` bytes. */
static unsigned char *numbers(int skip, int width, int first, int n)
{
    unsigned char *b = test_keep(pl_alloc((size_t)(skip + width * n), 1));
    for (int i = 0; i < n; i++)
        for (int j = 0; j < width && j < 4; j++)
            b[skip + width * i + j] = (unsigned char)((first + i) >> 8 * j);
    return b;
}

static void put(unsigned char *b, uint64_t value, int width)
{
    for (int j = 0; j < width; j++) b[j] = (unsigned char)(value >> 8 * j);
}

static void write_raw(const char *name, int first, int n)
{
    unsigned char *b = numbers(0, 2, first, n);
    write_file(name, b, 2 * (size_t)n);
    free(b);
}

/* n tokens in S equal sequences, one a document. */
static void write_index(const char *name, int code, int width, int n, int S)
{
    size_t size = 34 + 12 * (size_t)S + 8 * ((size_t)S + 1);
    unsigned char *b = pl_alloc(size, 1);
    memcpy(b, "MMIDIDX\0\0", 9);
    put(b + 9, 1, 8);
    b[17] = (unsigned char)code;
    put(b + 18, (uint64_t)S, 8);
    put(b + 26, (uint64_t)S + 1, 8);
    for (int i = 0; i < S; i++) {
        put(b + 34 + 4 * i, (uint64_t)(n / S), 4);
        put(b + 34 + 4 * S + 8 * i, (uint64_t)(width * (n / S) * i), 8);
    }
    for (int i = 0; i <= S; i++) put(b + 34 + 12 * S + 8 * i, (uint64_t)i, 8);
    write_file(name, b, size);
    free(b);
}

static void patch(const char *name, long at, uint64_t value, int width)
{
    unsigned char b[8];
    put(b, value, width);
    FILE *f = fopen(name, "r+b");
    ck_assert_ptr_nonnull(f);
    ck_assert(!fseek(f, at, SEEK_SET) &&
              fwrite(b, 1, (size_t)width, f) == (size_t)width);
    ck_assert_int_eq(fclose(f), 0);
}

START_TEST(shards_are_one_stream)
{
    /* not a multiple of T, more of them than are held open, written in another order */
    enum { SHARDS = 70, N = 37 };
    for (int i = SHARDS - 1; i >= 0; i--) {
        char name[32];
        snprintf(name, sizeof name, "s_%06d.bin", i);
        write_shard(in_folder(name), 20240520, 1, N, N, i * N);
    }
    struct pl_data *data = open_ok("tokens", in_folder("s_*.bin"), SHARDS * N);
    ck_assert_int_eq(pl_data_tokens(data, PL_SPLIT_TRAIN), SHARDS * N);
    for (int64_t k = 0; k < (SHARDS * N - 1) / T; k++) expect_count(data, k, 0);
    for (int64_t k = 0; k < 300; k++) { /* back and forth over closed ones */
        int32_t x[T], y[T];
        pl_data_set_order(data, PL_ORDER_DRAW);
        ck_assert_int_eq(pl_data_train(data, 3, k, x, y), 0);
        ck_assert_int_eq(y[T - 1], x[0] + T);
    }
    pl_data_free(data);
    write_shard(in_folder("b"), 20240520, 1, 40, 40, 0);
    write_shard(in_folder("a"), 20240520, 1, 40, 40, 40);
    char *list = test_keep(pl_printf("%s  %s", in_folder("b"), in_folder("a")));
    data = open_ok("tokens", list, 80); /* a list keeps its order */
    for (int64_t k = 0; k < 4; k++) expect_count(data, k, 0);
    pl_data_free(data);
    open_bad("tokens", test_keep(pl_printf("%s %s", list, in_folder("b"))),
             "listed twice");
    open_bad("tokens", in_folder("none_*.bin"), "no such file");
    open_bad("tokens", in_folder("no/*.bin"), "no");
    open_bad("tokens", " ", "names no file");
    write_shard(in_folder("s_000069.bin"), 20240520, 1, N + 1, N, 0);
    open_bad("tokens", in_folder("s_*.bin"), "s_000069.bin: truncated: 38 tokens need");
}
END_TEST

START_TEST(wide_tokens)
{
    unsigned char *b = numbers(1024, 4, 70000, 50);
    put(b, 20240801, 4);
    put(b + 4, 7, 4);
    put(b + 8, 50, 4);
    write_file(path, b, 1024 + 200);
    struct pl_data *data = open_ok("tokens", path, 128256);
    expect_count(data, 2, 70000);
    pl_data_free(data);
    put(b + 1024 + 4 * 30, 0xfffffff0u, 4);
    write_file(path, b, 1024 + 200);
    ck_assert_int_eq(pl_data_open("tokens", path, NULL, 0, 128256, T, &data),
                     PL_EINPUT);
    ck_assert_ptr_nonnull(
        strstr(pl_error_text(), "token 30 (byte offset 1144) has id 4294967280"));
}
END_TEST

START_TEST(raw_tokens)
{
    write_raw(path, 300, 60);
    struct pl_data *data = open_ok("nanogpt", path, 1000);
    expect_count(data, 2, 300);
    pl_data_free(data);
    write_file(path, "\0\1\2", 3);
    open_bad("nanogpt", path, "3 bytes, expected an even number");
    write_shard(path, 20240520, 1, 50, 50, 0);
    open_bad("nanogpt", path, "it is llm.c tokens (data.source: tokens)");
    write_file(path,
               "The quick brown fox, and so on, for more than sixty-four bytes.\n\n\n",
               66);
    open_bad("nanogpt", path, "it is text (data.text)");
    open_bad("tokens", path, "it is text (data.text)");
    write_raw(path, 300, 60);
    open_bad("tokens", path,
             "perhaps raw 16-bit tokens of nanoGPT (data.source: nanogpt)");
    write_raw(path, 990, 60);
    open_bad("nanogpt", path, "token 10 (byte offset 20) has id 1000");
}
END_TEST

START_TEST(text_files)
{
    write_file(in_folder("1.txt"), "0123456789:;<=>", 15);
    write_file(in_folder("2.txt"), "?@ABCDEFGHIJKLMNOPQRSTUVWXYZ", 28);
    struct pl_data *data = open_ok("text", in_folder("*.txt"), 256);
    expect_count(data, 0, '0');
    expect_count(data, 1, '0');
    pl_data_free(data);
    write_file(in_folder("a b.txt"), "0123456789:;<=>?@ABC", 20); /* one name */
    data = open_ok("text", in_folder("a b.txt"), 256);
    ck_assert_int_eq(pl_data_tokens(data, PL_SPLIT_TRAIN), 20);
    pl_data_free(data);
    write_shard(path, 20240520, 1, 50, 50, 0);
    open_bad("text", path, "no text; it is llm.c tokens (data.source: tokens)");
    write_file(path,
               "\xfd"
               "7zXZ\0",
               6);
    open_bad("text", path, "compressed by xz, unpack it first");
    open_bad("text", in_folder(""), "is a folder");
    ck_assert_int_eq(mkfifo(other, 0600), 0); /* nobody writes: must not wait */
    open_bad("text", other, "not a regular file");
}
END_TEST

START_TEST(megatron_pairs)
{
    static const struct {
        int code, width;
    } types[] = {{1, 1}, {2, 1}, {3, 2}, {4, 4}, {5, 8}, {8, 2}};
    char *bin = in_folder("m.bin"), *idx = in_folder("m.idx");
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        unsigned char *b = numbers(0, types[i].width, 10, 100);
        write_file(bin, b, 100 * (size_t)types[i].width);
        write_index(idx, types[i].code, types[i].width, 100, 5);
        struct pl_data *data = open_ok("megatron", i % 2 ? bin : in_folder("m"), 1000);
        ck_assert_int_eq(pl_data_tokens(data, PL_SPLIT_TRAIN), 100);
        expect_count(data, 5, 10); /* over the ends of documents */
        pl_data_free(data);
        free(b);
    }
    open_bad("tokens", bin, "(data.source: megatron)");
    open_bad("megatron", idx, "expected NAME.bin");
    open_bad("tokens", idx, "name the .bin beside it");
    patch(bin, 2 * 40, 0xffff, 2); /* uint16 65535, int16 -1 */
    open_bad("megatron", bin, "token 40 (byte offset 80) has id 65535");
    patch(idx, 17, 3, 1);
    open_bad("megatron", bin, "token 40 (byte offset 80) has id -1");
    patch(idx, 17, 7, 1);
    open_bad("megatron", bin, "7, a floating-point one (byte offset 17)");
    patch(idx, 17, 9, 1);
    open_bad("megatron", bin, "type of tokens 9 (byte offset 17)");
    patch(idx, 17, 4, 1);
    open_bad("megatron", bin, "sequence 0 lies at bytes 0 to 80");
    write_index(idx, 8, 2, 100, 5);
    patch(idx, 34 + 4 * 3, UINT32_MAX, 4);
    open_bad("megatron", bin, "sequence 3 has -1 tokens");
    write_index(idx, 8, 2, 100, 5);
    patch(idx, 34 + 20 + 8 * 2, UINT64_MAX - 7, 8);
    open_bad("megatron", bin, "sequence 1 lies at bytes 40 to 80");
    write_index(idx, 8, 2, 100, 5);
    patch(idx, 18, UINT64_MAX / 4, 8);
    open_bad("megatron", bin, "do not fit");
    write_index(idx, 8, 2, 100, 5);
    patch(idx, 9, 2, 8);
    open_bad("megatron", bin, "version 2 (byte offset 9)");
    write_index(idx, 8, 2, 100, 5);
    patch(idx, 34 + 60 + 40, 4, 8);
    open_bad("megatron", bin, "documents go from sequence 0 to 4");
    write_index(idx, 8, 2, 100, 5);
    ck_assert_int_eq(truncate(bin, 198), 0);
    open_bad("megatron", bin, "expected to end at 198, the end of the file");
    ck_assert_int_eq(truncate(bin, 199), 0);
    open_bad("megatron", bin, "199 bytes in 5 sequences");
    ck_assert_int_eq(truncate(idx, 33), 0);
    open_bad("megatron", bin, "expected 34 bytes, found 33");
    write_file(idx, numbers(0, 2, 0, 40), 80);
    open_bad("megatron", bin, "no Megatron index");
    remove(idx);
    open_bad("megatron", bin, "no .idx of Megatron beside it");
}
END_TEST

/* 6 GiB of zeros that take no room: offsets beyond 4 GiB, and no pass over all. */
START_TEST(huge_sparse_file)
{
    const int64_t n = INT64_C(3) << 30;
    FILE *f = fopen(path, "wb");
    ck_assert_ptr_nonnull(f);
    ck_assert_int_eq(fclose(f), 0);
    if (truncate(path, 2 * n)) return; /* a file system with small files */
    unsigned char b[2 * T + 2];
    for (int i = 0; i <= T; i++) put(b + 2 * i, (uint64_t)(7 + i), 2);
    f = fopen(path, "r+b");
    const int64_t k =
        (n - 1) / T - 1000000; /* far behind byte 2^32, in no sampled place */
    ck_assert(!fseeko(f, 2 * k * T, SEEK_SET) && fwrite(b, 1, sizeof b, f) == sizeof b);
    ck_assert_int_eq(fclose(f), 0);
    struct rusage before, after;
    getrusage(RUSAGE_SELF, &before);
    struct pl_data *data = open_ok("nanogpt", path, T + 8);
    getrusage(RUSAGE_SELF, &after);
    ck_assert_int_lt(after.ru_maxrss - before.ru_maxrss, 65536); /* KiB */
    ck_assert_int_eq(pl_data_tokens(data, PL_SPLIT_TRAIN), n);
    int32_t x[T], y[T];
    pl_data_set_order(data, PL_ORDER_FILE);
    ck_assert_int_eq(pl_data_train(data, 1, k, x, y), 0);
    for (int t = 0; t < T; t++) ck_assert(x[t] == 7 + t && y[t] == 8 + t);
    pl_data_free(data);
    data = open_ok("nanogpt", path, 10); /* an offender is found when it is read */
    pl_data_set_order(data, PL_ORDER_FILE);
    ck_assert_int_eq(pl_data_train(data, 1, k - 1, x, y), 0);
    ck_assert_int_eq(pl_data_train(data, 1, k, x, y), PL_EINPUT);
    char *text = pl_printf("token %lld (byte offset %lld) has id 10",
                           (long long)(k * T + 3), (long long)(2 * (k * T + 3)));
    ck_assert_msg(strstr(pl_error_text(), text), "'%s' lacks '%s'", pl_error_text(),
                  text);
    free(text);
    pl_data_free(data);
}
END_TEST

START_TEST(files_that_change_under_a_run)
{
    int32_t x[T], y[T];
    write_shard(path, 20240520, 1, 500, 500, 0);
    struct pl_data *data = open_ok("tokens", path, 500);
    pl_data_set_order(data, PL_ORDER_FILE);
    ck_assert_int_eq(pl_data_train(data, 1, 0, x, y), 0);
    ck_assert_int_eq(truncate(path, 1024 + 2 * 100), 0);
    ck_assert_int_eq(pl_data_train(data, 1, 0, x, y), PL_EINPUT);
    ck_assert_int_eq(pl_data_train(data, 1, 20, x, y), PL_EINPUT); /* no SIGBUS */
    char *text = pl_printf("%s: changed while in use: 1224 bytes, it had 2024", path);
    ck_assert_msg(!strncmp(pl_error_text(), text, strlen(text)), "%s", pl_error_text());
    free(text);
    pl_data_free(data);

    /* other tokens of the same length; the time is set, as clocks of files are coarse
     */
    struct timespec times[2] = {{.tv_nsec = UTIME_OMIT}, {.tv_sec = 1e9}};
    write_shard(path, 20240520, 1, 500, 500, 0);
    data = open_ok("tokens", path, 500);
    write_shard(path, 20240520, 1, 500, 500, 0);
    ck_assert_int_eq(utimensat(AT_FDCWD, path, times, 0), 0);
    ck_assert_int_eq(pl_data_train(data, 1, 0, x, y), PL_EINPUT);
    ck_assert_ptr_nonnull(strstr(pl_error_text(), "and was written to since"));
    pl_data_free(data);
}
END_TEST

START_TEST(permission_denied)
{
    write_shard(path, 20240520, 1, 50, 50, 0);
    ck_assert_int_eq(chmod(path, 0), 0);
    if (geteuid() == 0) ck_assert_int_eq(seteuid(65534), 0);
    open_bad("tokens", path, "Permission denied");
    if (getuid() == 0) ck_assert_int_eq(seteuid(0), 0);
}
END_TEST

static uint64_t print_of(const char *kind, const char *names, int vocab)
{
    struct pl_data *data = open_ok(kind, names, vocab);
    uint64_t print = pl_data_fingerprint(data);
    pl_data_free(data);
    return print;
}

START_TEST(fingerprints)
{
    write_shard(path, 20240520, 1, 5000, 5000, 0);
    uint64_t print = print_of("tokens", path, 50257);
    ck_assert_int_eq(rename(path, other), 0);
    ck_assert_uint_eq(print_of("tokens", other, 50304), print);
    patch(other, 1024 + 2 * 2500, 17, 2); /* one token */
    ck_assert_uint_ne(print_of("tokens", other, 50257), print);
    write_shard(other, 20240520, 1, 5001, 5001, 0);
    ck_assert_uint_ne(print_of("tokens", other, 50257), print);
    write_raw(other, 0, 5000);
    ck_assert_uint_ne(print_of("nanogpt", other, 50257), print);
    /* the same stream, cut otherwise */
    write_shard(in_folder("1"), 20240520, 1, 2000, 2000, 0);
    write_shard(in_folder("2"), 20240520, 1, 3000, 3000, 2000);
    ck_assert_uint_ne(print_of("tokens", in_folder("[12]"), 50257), print);
    ck_assert_uint_eq(print_of("grammar", NULL, 256), print_of("grammar", NULL, 256));
}
END_TEST

static void fill(TCase *t)
{
    tcase_add_checked_fixture(t, setup, teardown);
    tcase_add_test(t, shards_are_one_stream);
    tcase_add_test(t, wide_tokens);
    tcase_add_test(t, raw_tokens);
    tcase_add_test(t, text_files);
    tcase_add_test(t, megatron_pairs);
    tcase_add_test(t, huge_sparse_file);
    tcase_add_test(t, files_that_change_under_a_run);
    tcase_add_test(t, permission_denied);
    tcase_add_test(t, fingerprints);
}

int main(void)
{
    return run_tests("data_files", fill);
}
