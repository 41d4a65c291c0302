/* The safetensors format: what is read, what is refused and how it says so, numbers of
 * two bytes, files beyond 4 GiB, shards, and writing. */
#include <check.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "base/mem.h"
#include "base/rng.h"
#include "tests/runner.h"
#include "train/safetensors.h"

static char folder[] = "/tmp/test_safetensors.XXXXXX";
static char path[64], index_path[64];

static void setup(void)
{
    strcpy(folder, "/tmp/test_safetensors.XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/x.safetensors", folder);
    snprintf(index_path, sizeof index_path, "%s/x.json", folder);
}

static void teardown(void)
{
    static const char *const names[] = {"x.safetensors", "x.json", "a.safetensors",
                                        "b.safetensors", "model.safetensors"};
    for (int i = 0; i < 5; i++) {
        char *file = pl_printf("%s/%s", folder, names[i]);
        unlink(file);
        free(file);
    }
    ck_assert_int_eq(rmdir(folder), 0); /* nothing else was left there */
}

/* A file: length, header, n bytes of numbers. */
static void put(const char *file, uint64_t length, const char *header, const void *data,
                size_t n)
{
    FILE *f = fopen(file, "wb");
    ck_assert_ptr_nonnull(f);
    for (int i = 0; i < 8; i++) putc((int)(length >> 8 * i & 255), f);
    fputs(header, f);
    if (n) fwrite(data, 1, n, f);
    ck_assert_int_eq(fclose(f), 0);
}

static struct pl_safetensors *open_ok(const char *file)
{
    struct pl_safetensors *st = NULL;
    ck_assert_msg(pl_safetensors_open(file, &st) == 0, "%s", pl_error_text());
    return st;
}

static void open_fails(const char *file, const char *text)
{
    struct pl_safetensors *st = NULL;
    ck_assert_int_lt(pl_safetensors_open(file, &st), 0);
    ck_assert_ptr_null(st);
    ck_assert_msg(strstr(pl_error_text(), text) && strstr(pl_error_text(), folder),
                  "'%s' in '%s'", text, pl_error_text());
}

START_TEST(numbers_shapes_and_padding)
{
    static const char header[] =
        "{\"b\":{\"dtype\":\"F32\",\"shape\":[2,3],\"data_offsets\":[8,32]},"
        "\"a\":{\"dtype\":\"F64\",\"shape\":[],\"data_offsets\":[0,8]},"
        "\"none\":{\"dtype\":\"F32\",\"shape\":[0,7],\"data_offsets\":[8,8]},"
        "\"ids\":{\"dtype\":\"I64\",\"shape\":[1],\"data_offsets\":[32,40]},"
        "\"__metadata__\":{\"format\":\"pt\"}}   ";
    struct {
        double a;
        float b[6];
        int64_t ids;
    } data = {1.0 / 3, {1, -2, 3, -4, 5, 6.5f}, 7};
    float x[6], one;
    char shape[64];
    put(path, strlen(header), header, &data, sizeof data);
    struct pl_safetensors *st = open_ok(path);
    ck_assert_int_eq(st->n, 4);
    int b = pl_safetensors_find(st, "b"), a = pl_safetensors_find(st, "a");
    ck_assert_str_eq(pl_tensor_shape(&st->tensors[b], shape, sizeof shape), "2 x 3");
    ck_assert_str_eq(pl_tensor_shape(&st->tensors[a], shape, sizeof shape), "scalar");
    ck_assert_int_eq(pl_safetensors_read(st, b, x), 0);
    ck_assert_mem_eq(x, data.b, sizeof x);
    ck_assert_int_eq(pl_safetensors_read(st, a, &one), 0);
    ck_assert(one == (float)(1.0 / 3));
    ck_assert_int_eq(pl_safetensors_read(st, pl_safetensors_find(st, "none"), x), 0);
    ck_assert_int_lt(pl_safetensors_read(st, pl_safetensors_find(st, "ids"), x), 0);
    ck_assert_ptr_nonnull(strstr(pl_error_text(), "ids has dtype I64, expected F32"));
    ck_assert_int_eq(pl_safetensors_find(st, "format"), -1);
    pl_safetensors_free(st);
    char *note = pl_safetensors_note(path, "format");
    ck_assert_str_eq(note, "pt");
    free(note);
    ck_assert_ptr_null(pl_safetensors_note(path, "other"));
}
END_TEST

#define INFO(type, shape, offsets) \
    "{\"dtype\":\"" type "\",\"shape\":" shape ",\"data_offsets\":" offsets "}"

static const struct {
    const char *header;
    size_t bytes; /* after the header */
    const char *text;
} bad_headers[] = {
    {"[1]", 0, "does not begin with '{'"},
    {" {}", 0, "does not begin with '{'"},
    {"{\"a\":", 0, "not JSON"},
    {"{\"a\":1}", 0, "a is 1, expected a map"},
    {"{\"a\xff\":1}", 0, "not JSON"},
    {"{} {}", 0, "not JSON"},
    {"{\"a\":" INFO("F32", "[1]", "[0,4]") ",\"a\":" INFO("F32", "[1]", "[4,8]") "}", 8,
     "duplicate"},
    {"{\"a\":" INFO("F31", "[1]", "[0,4]") "}", 4, "unknown dtype 'F31'"},
    {"{\"a\":{\"shape\":[1],\"data_offsets\":[0,4]}}", 4, "a.dtype is missing"},
    {"{\"a\":{\"dtype\":\"F32\",\"data_offsets\":[0,4]}}", 4, "a.shape is missing"},
    {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1]}}", 4, "a.data_offsets is missing"},
    {"{\"a\":" INFO("F32", "[2]", "[0,4]") "}", 4, "a has 4 bytes, not those of F32 2"},
    {"{\"a\":" INFO("F32", "[-1]", "[0,4]") "}", 4, "a.shape[0] is -1"},
    {"{\"a\":" INFO("F32", "[1.5]", "[0,4]") "}", 4, "a.shape[0] is 1.5"},
    {"{\"a\":" INFO("F32", "[1]", "[4,0]") "}", 4, "a.data_offsets[1] is 0"},
    {"{\"a\":" INFO("F32", "[1]", "[0,4,8]") "}", 4, "3 data_offsets, expected 2"},
    {"{\"a\":" INFO("F32", "[1]", "[0,9223372036854775808]") "}", 4, "not JSON"},
    {"{\"a\":" INFO("F32", "[4294967296,4294967296]", "[0,4]") "}", 4, "2^64 numbers"},
    {"{\"a\":" INFO("F64", "[4611686018427387904]", "[0,0]") "}", 0, "a has 0 bytes"},
    {"{\"a\":" INFO("F32", "[1,1,1,1,1,1,1,1,1]", "[0,4]") "}", 4, "9 dimensions"},
    {"{\"a\":" INFO("F32", "[1]", "[4,8]") "}", 8, "a begins at byte 4"},
    {"{\"a\":" INFO("F32", "[1]", "[0,4]") ",\"b\":" INFO("F32", "[1]", "[8,12]") "}",
     12, "b begins at byte 8, but what is before it ends at 4"},
    {"{\"a\":" INFO("F32", "[2]", "[0,8]") ",\"b\":" INFO("F32", "[2]", "[4,12]") "}",
     12, "b begins at byte 4, inside the tensor that ends at 8"},
    {"{\"a\":" INFO("F32", "[2]", "[0,8]") "}", 4, "8 or more bytes, the file has 4"},
    {"{\"a\":" INFO("F32", "[1]", "[0,4]") "}", 8, "4 bytes, the file has 8"},
    {"{\"__metadata__\":{\"format\":1}}", 0, "__metadata__.format is 1"},
    {"{\"__metadata__\":[]}", 0, "__metadata__"},
};
enum { N_BAD = sizeof bad_headers / sizeof *bad_headers };

START_TEST(damaged_headers_are_refused)
{
    static const char zeros[16];
    const char *header = bad_headers[_i].header;
    put(path, strlen(header), header, zeros, bad_headers[_i].bytes);
    open_fails(path, bad_headers[_i].text);
}
END_TEST

START_TEST(lengths_are_checked_against_the_file)
{
    static const uint64_t lengths[] = {0,          1,          3,         100000001,
                                       1ull << 32, 1ull << 63, UINT64_MAX};
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        put(path, lengths[i], "{}", NULL, 0);
        open_fails(path, "is no safetensors file: its header would have");
    }
    put(path, 2, "{}", NULL, 0);
    struct pl_safetensors *st = open_ok(path); /* no tensors at all is a file */
    ck_assert_int_eq(st->n, 0);
    ck_assert_int_eq(pl_safetensors_find(st, "a"), -1);
    pl_safetensors_free(st);
    ck_assert_int_eq(truncate(path, 9), 0);
    open_fails(path, "has 9 bytes");
    unlink(path);
    open_fails(path, "No such file");
    ck_assert_int_eq(mkfifo(path, 0600), 0);
    open_fails(path, "not a regular file"); /* and does not wait for a writer */
    open_fails(folder, "neither model.safetensors nor model.safetensors.index.json");
}
END_TEST

START_TEST(numbers_that_are_not_finite)
{
    static const char header[] = "{\"a\":" INFO("F32", "[3]", "[0,12]") ",\"b\":" INFO(
        "F64", "[1]", "[12,20]") "}";
    char data[20];
    const float a[] = {1, 2, NAN};
    const double b = 1e300;
    float x[3];
    memcpy(data, a, 12);
    memcpy(data + 12, &b, 8);
    put(path, strlen(header), header, data, sizeof data);
    struct pl_safetensors *st = open_ok(path);
    ck_assert_int_lt(pl_safetensors_read(st, 0, x), 0);
    ck_assert_ptr_nonnull(strstr(pl_error_text(), "a has nan at number 2"));
    ck_assert_int_lt(pl_safetensors_read(st, 1, x), 0);
    ck_assert_ptr_nonnull(strstr(pl_error_text(), "b has inf at number 0"));
    ck_assert_int_eq(truncate(path, 8 + (off_t)strlen(header) + 6), 0);
    ck_assert_int_lt(pl_safetensors_read(st, 0, x), 0); /* after it was opened */
    ck_assert_ptr_nonnull(strstr(pl_error_text(), "truncated while in use"));
    pl_safetensors_free(st);
}
END_TEST

START_TEST(offsets_beyond_four_gigabytes)
{
    char *header =
        pl_printf("{\"a\":%s,\"b\":%s}", INFO("U8", "[5000000000]", "[0,5000000000]"),
                  INFO("F32", "[1]", "[5000000000,5000000004]"));
    const float value = 42;
    float x = 0;
    put(path, strlen(header), header, NULL, 0);
    int fd = open(path, O_WRONLY);
    off_t at = 8 + (off_t)strlen(header) + 5000000000;
    bool there = ftruncate(fd, at) == 0 && pwrite(fd, &value, 4, at) == 4;
    close(fd);
    if (there) { /* else the file system has no files of that size */
        struct pl_safetensors *st = open_ok(path);
        ck_assert_int_eq(pl_safetensors_read(st, 1, &x), 0);
        ck_assert(x == 42);
        pl_safetensors_free(st);
    }
    free(header);
}
END_TEST

static void put_index(const char *text)
{
    FILE *f = fopen(index_path, "w");
    fputs(text, f);
    ck_assert_int_eq(fclose(f), 0);
}

START_TEST(shards)
{
    static const char a[] = "{\"a\":" INFO("F32", "[1]", "[0,4]") "}";
    static const char b[] = "{\"b\":" INFO("F32", "[1]", "[0,4]") "}";
    char *pa = pl_printf("%s/a.safetensors", folder),
         *pb = pl_printf("%s/b.safetensors", folder);
    const float one = 1, two = 2;
    float x;
    put(pa, strlen(a), a, &one, 4);
    put(pb, strlen(b), b, &two, 4);
    put_index("{\"weight_map\":{\"b\":\"b.safetensors\",\"a\":\"a.safetensors\"}}");
    struct pl_safetensors *st = open_ok(index_path);
    ck_assert_int_eq(st->n, 2);
    for (int i = 0; i < 4; i++) { /* to and fro */
        ck_assert_int_eq(pl_safetensors_read(st, i % 2, &x), 0);
        ck_assert(x == (i % 2 ? two : one));
    }
    uint32_t crc, other;
    ck_assert_int_eq(pl_safetensors_crc(st, &crc), 0);
    put(pa, strlen(a), a, &two, 4);
    ck_assert_int_eq(pl_safetensors_crc(st, &other), 0);
    ck_assert_uint_ne(crc, other);
    pl_safetensors_free(st);
    put_index("{\"weight_map\":{\"b\":\"b.safetensors\",\"a\":\"b.safetensors\"}}");
    open_fails(index_path, "a is in none of the files");
    put_index("{\"weight_map\":{\"b\":\"a.safetensors\",\"a\":\"b.safetensors\"}}");
    open_fails(index_path, "a should be in b.safetensors, but is in");
    put_index("{\"weight_map\":{\"b\":\"b.safetensors\",\"c\":\"a.safetensors\"}}");
    open_fails(index_path, "weight_map.a is missing");
    put_index("{\"weight_map\":{\"b\":\"../b.safetensors\"}}");
    open_fails(index_path, "expected a file beside it");
    put_index("{\"weight_map\":{\"b\":\"c.safetensors\"}}");
    open_fails(index_path, "c.safetensors: No such file");
    put_index("{\"weight_map\":[]}");
    open_fails(index_path, "weight_map is [], expected a map");
    put_index("{}");
    open_fails(index_path, "weight_map is missing");
    put(pb, strlen(a), a, &two, 4); /* a in both */
    put_index("{\"weight_map\":{\"a\":\"a.safetensors\",\"b\":\"b.safetensors\"}}");
    open_fails(index_path, "a should be in a.safetensors");
    free(pa);
    free(pb);
}
END_TEST

/* Every number of two bytes survives, and others go to the nearest, ties to even. */
START_TEST(two_bytes)
{
    const struct pl_tensor_type *type = pl_tensor_type_find(_i ? "F16" : "BF16");
    for (uint32_t h = 0; h < 65536; h++) {
        uint16_t in = (uint16_t)h, out;
        float x, y;
        type->decode(&in, 1, &x);
        type->encode(&x, 1, &out);
        type->decode(&out, 1, &y);
        ck_assert(isnan(x) ? isnan(y) : in == out); /* a NaN may lose its payload */
    }
    for (uint32_t i = 0; i < 200000; i++) {
        int e =
            (int)pl_rng_below(1, PL_RNG_TEST, 0, i, _i ? 44 : 250) - (_i ? 28 : 125);
        float x = (float)ldexp(pl_rng_normal(2, PL_RNG_TEST, 0, i), e), near, y;
        if (i % 4 == 0) x = ldexpf(rintf(ldexpf(x, 12 - e)), e - 12); /* often a tie */
        uint16_t h, k;
        type->encode(&x, 1, &h);
        type->decode(&h, 1, &near);
        if (fabs(x) > type->largest) continue;
        for (int step = -1; step <= 1; step += 2) {
            k = (uint16_t)(h + step);
            type->decode(&k, 1, &y);
            if (!isfinite(y)) continue;
            double d = fabs((double)x - near), other = fabs((double)x - y);
            ck_assert_msg(d < other || (d == other && h % 2 == 0), "%a: %a, not %a", x,
                          near, y);
        }
    }
    const float nan = NAN;
    float back;
    uint16_t h;
    type->encode(&nan, 1, &h);
    type->decode(&h, 1, &back);
    ck_assert(isnan(back));
}
END_TEST

static int write_two(const char *type, float last)
{
    static char one[] = "one", two[] = "a \"two\"";
    const struct pl_tensor tensors[] = {{.name = two, .rank = 2, .shape = {2, 2}},
                                        {.name = one, .rank = 0}};
    const struct pl_tensor_note notes[] = {{"format", "pt"}, {0}};
    const float x[] = {1, 2, 3, last};
    const struct pl_safetensors_form form = {pl_tensor_type_find(type), 0, notes};
    struct pl_safetensors_writer *w = NULL;
    int rc = pl_safetensors_create(path, &form, tensors, 2, &w);
    if (!rc) rc = pl_safetensors_put(w, x);
    if (!rc) rc = pl_safetensors_put(w, x);
    if (rc)
        pl_safetensors_discard(w);
    else
        rc = pl_safetensors_commit(w);
    return rc;
}

START_TEST(written_files_are_read)
{
    static const char *const types[] = {"F32", "BF16", "F16"};
    for (int i = 0; i < 3; i++) {
        float x[4];
        ck_assert_int_eq(write_two(types[i], -4), 0);
        struct pl_safetensors *st = open_ok(path);
        ck_assert_int_eq(st->n, 2);
        ck_assert_uint_eq(st->tensors[0].begin % 8, 0);
        ck_assert_int_eq(
            pl_safetensors_read(st, pl_safetensors_find(st, "a \"two\""), x), 0);
        ck_assert(x[0] == 1 && x[1] == 2 && x[2] == 3 && x[3] == -4);
        ck_assert_int_eq(pl_safetensors_read(st, pl_safetensors_find(st, "one"), x), 0);
        ck_assert(x[0] == 1);
        pl_safetensors_free(st);
    }
}
END_TEST

/* A write that fails leaves the file of before. */
START_TEST(failed_writes_keep_the_old_file)
{
    struct stat st;
    ck_assert_int_eq(write_two("F32", 4), 0);
    ck_assert_int_eq(stat(path, &st), 0);
    ck_assert_int_lt(write_two("F16", 65505), 0);
    ck_assert_ptr_nonnull(strstr(pl_error_text(), "a \"two\" has 65505 at number 3"));
    ck_assert_int_lt(write_two("F32", NAN), 0);
    off_t before = st.st_size;
    ck_assert_int_eq(stat(path, &st), 0);
    ck_assert_int_eq(st.st_size, before);
    strcpy(path, "/dev/full");
    ck_assert_int_eq(write_two("F32", 4), PL_EIO);
    strcpy(path, "/nowhere/x.safetensors");
    ck_assert_int_eq(write_two("F32", 4), PL_EIO);
}
END_TEST

static void fill(TCase *tests)
{
    tcase_add_checked_fixture(tests, setup, teardown);
    tcase_add_test(tests, numbers_shapes_and_padding);
    tcase_add_loop_test(tests, damaged_headers_are_refused, 0, N_BAD);
    tcase_add_test(tests, lengths_are_checked_against_the_file);
    tcase_add_test(tests, numbers_that_are_not_finite);
    tcase_add_test(tests, offsets_beyond_four_gigabytes);
    tcase_add_test(tests, shards);
    tcase_add_loop_test(tests, two_bytes, 0, 2);
    tcase_add_test(tests, written_files_are_read);
    tcase_add_test(tests, failed_writes_keep_the_old_file);
}

int main(void)
{
    return run_tests("safetensors", fill);
}
