/* Damaged traces: whatever happens to the bytes, the reader says so in one line that
 * names the file, or the content is what was written; it never crashes and never lies.
 */
#include <config.h>
#include <check.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/err.h"
#include "base/file.h"
#include "tests/runner.h"
#include "tests/trace_sample.h"

/* HDF5 1.10.8 itself leaks on some damaged files; under --enable-sanitize only ours
 * count. */
const char *__lsan_default_suppressions(void);
const char *__lsan_default_suppressions(void)
{
    return "leak:libhdf5";
}

enum { PARTS = 8, CUTS = 20 };

static char dir[] = "/tmp/pipelag-damage-XXXXXX";
static char path[64];
static struct pl_trace *original;
static char *bytes;
static size_t size;

/* One of each: enum, int, real and text columns, attributes, a text kept as a dataset.
 */
static void setup(void)
{
    strcpy(dir + strlen(dir) - 6, "XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(dir));
    snprintf(path, sizeof path, "%s/a.h5", dir);
    original = pl_trace_new();
    sample_arm(original, "ab+c", 2, 2, 1);
    sample_evals(original, "ab+c", 1, 3, 1, 1);
    pl_trace_text(original, "/table", "arm", 2, (const char *[]){"p", "q"});
    char *text = pl_alloc(40001, 1);
    memset(text, 'x', 40000);
    pl_trace_attr_text(original, "/", "config_resolved", text);
    free(text);
    ck_assert_int_eq(pl_trace_write(original, path), 0);
    ck_assert_int_eq(pl_file_read(path, 1 << 30, &bytes, &size), 0);
}

static void teardown(void)
{
    unlink(path);
    rmdir(dir);
    free(bytes);
    pl_trace_free(original);
}

static void put(const char *data, size_t n)
{
    FILE *f = fopen(path, "wb");
    ck_assert_ptr_nonnull(f);
    ck_assert_uint_eq(fwrite(data, 1, n, f), n);
    ck_assert_int_eq(fclose(f), 0);
}

/* Read what is on disk; returns whether it was refused. */
static bool refused(const char *what, size_t where)
{
    struct pl_trace *t = NULL;
    int status = pl_trace_read(path, &t);
    if (status) {
        ck_assert_int_eq(status, PL_EINPUT);
        ck_assert_ptr_null(t);
        ck_assert_msg(!strncmp(pl_error_text(), path, strlen(path)), "%s %zu: %s", what,
                      where, pl_error_text());
        ck_assert_ptr_null(strchr(pl_error_text(), '\n'));
        return true;
    }
    char *difference = pl_trace_diff(original, t, 0);
    ck_assert_msg(!difference, "%s %zu: %s", what, where, difference);
    pl_trace_free(t);
    return false;
}

/* A prime stride walks all kinds of structure; another start for each part. */
START_TEST(flipped)
{
    static const char masks[] = {(char)0xff, 1, 2, 0x10};
    int n = 0, found = 0;
    for (size_t i = (size_t)_i; i < size; i += 41, n++) {
        bytes[i] = (char)(bytes[i] ^ masks[(size_t)n % 4]);
        put(bytes, size);
        found += refused("byte", i);
        bytes[i] = (char)(bytes[i] ^ masks[(size_t)n % 4]);
    }
    ck_assert_int_gt(found, n / 4); /* the rest is space between structures */
    put(bytes, size);
    ck_assert(!refused("whole", 0));
}
END_TEST

START_TEST(cut)
{
    put(bytes, size * (size_t)_i / CUTS);
    ck_assert(refused("cut", (size_t)_i));
}
END_TEST

START_TEST(zeroed)
{
    size_t from = size * (size_t)_i / CUTS, n = size / CUTS;
    memset(bytes + from, 0, n);
    put(bytes, size);
    refused("zeroed", from);
}
END_TEST

START_TEST(shuffled)
{
    size_t block = 512, a = (size_t)_i * block, b = size / block / 2 * block;
    if (a + block > size || a == b) return;
    char swap[512];
    memcpy(swap, bytes + a, block);
    memcpy(bytes + a, bytes + b, block);
    memcpy(bytes + b, swap, block);
    put(bytes, size);
    refused("shuffled", a);
}
END_TEST

static void fill(TCase *t)
{
    tcase_add_checked_fixture(t, setup, teardown);
    tcase_set_timeout(t, 60);
    tcase_add_loop_test(t, flipped, 0, PARTS);
    tcase_add_loop_test(t, cut, 0, CUTS);
    tcase_add_loop_test(t, zeroed, 0, CUTS);
    tcase_add_loop_test(t, shuffled, 0, CUTS);
}

int main(void)
{
    return run_tests("trace_damage", fill);
}
