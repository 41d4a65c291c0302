/* Lanes, look-ups and the export of what the simulator does not make yet: pairs of ops
 * on one device, several chunks a device, a memory table. */
#include <check.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/err.h"
#include "base/file.h"
#include "tests/runner.h"
#include "tests/trace_sample.h"
#include "traces/ops.h"
#include "traces/perfetto.h"

static char path[] = "/tmp/pipelag-perfetto-XXXXXX";

static void setup(void)
{
    strcpy(path + strlen(path) - 6, "XXXXXX");
    int fd = mkstemp(path);
    ck_assert_int_ge(fd, 0);
    close(fd);
}

static void teardown(void)
{
    unlink(path);
}

/* Random intervals: lanes are serial, and first fit opens no lane in vain. */
START_TEST(lanes_are_serial)
{
    enum { N = 60 };
    uint64_t seed = (uint64_t)_i;
    int64_t owner[N], start[N], end[N];
    int32_t lane[N], lanes[N];
    for (int i = 0; i < N; i++) {
        uint64_t k = (uint64_t)i;
        owner[i] = (int64_t)sample_below(seed, k, 3);
        start[i] = (int64_t)sample_below(seed, k + 100, 50);
        end[i] = start[i] + (int64_t)sample_below(seed, k + 200, 1 + seed % 12);
    }
    int most = pl_lanes(N, owner, start, end, lane, lanes), deepest = 1, seen = 0;
    for (int i = 0; i < N; i++) {
        int depth = 0;
        if (lane[i] > seen) seen = lane[i];
        ck_assert(lane[i] >= 0 && lane[i] < lanes[i] && lanes[i] <= most);
        for (int k = 0; k < N; k++) {
            if (owner[k] != owner[i] || start[k] == end[k] || start[i] == end[i])
                continue;
            depth += start[k] <= start[i] && start[i] < end[k];
            bool overlap = start[k] < end[i] && start[i] < end[k];
            if (k != i && overlap) {
                ck_assert_int_ne(lane[k], lane[i]);
                ck_assert_int_eq(lanes[k], lanes[i]);
            }
        }
        if (depth > deepest) deepest = depth;
    }
    ck_assert_int_eq(most, deepest);
    ck_assert_int_eq(most, seen + 1);
}
END_TEST

/* Two devices with chunks 0, 2 and 1, 3; F of one chunk runs beside BW of another. */
static struct pl_trace *pairs(void)
{
    static const int64_t kind[] = {PL_KIND_F, PL_KIND_F, PL_KIND_BW, PL_KIND_F,
                                   PL_KIND_B, PL_KIND_W, PL_KIND_U};
    static const int64_t device[] = {0, 1, 0, 0, 1, 1, 0};
    static const int64_t chunk[] = {0, 1, 2, 0, 1, 3, 2};
    static const int64_t micro[] = {0, 0, 5, 1, 0, 5, 7};
    static const int64_t start[] = {0,       1500000, 1000000, 1000000,
                                    3000000, 3500000, 2500500};
    static const int64_t end[] = {1000000, 3000000, 2500500, 2500500,
                                  3500000, 4000000, 2500500};
    static const int64_t memory[3][3] = {{0, 0, 1}, {1000000, 2000000, 0}, {7, 9, 3}};
    struct pl_trace *t = pl_trace_new();
    const char *timeline = "/arms/x/timeline", *table = "/arms/x/memory";
    pl_trace_i64(t, timeline, "kind", 7, kind);
    pl_trace_i64(t, timeline, "device", 7, device);
    pl_trace_i64(t, timeline, "chunk", 7, chunk);
    pl_trace_i64(t, timeline, "micro", 7, micro);
    pl_trace_i64(t, timeline, "start", 7, start);
    pl_trace_i64(t, timeline, "end", 7, end);
    pl_trace_i64(t, table, "device", 3, memory[0]);
    pl_trace_i64(t, table, "time", 3, memory[1]);
    pl_trace_i64(t, table, "bytes", 3, memory[2]);
    return t;
}

START_TEST(lookups)
{
    struct pl_trace *t = pairs();
    struct pl_ops ops;
    ck_assert_int_eq(pl_ops_load(t, NULL, &ops), 0);
    ck_assert_str_eq(ops.arm, "x");
    ck_assert_int_eq(ops.devices, 2);
    ck_assert_int_eq(ops.chunks, 4);
    ck_assert_int_eq(pl_ops_find(&ops, PL_KIND_F, 0, 1), 3);
    ck_assert_int_eq(pl_ops_find(&ops, PL_KIND_B, 2, 5), 2);  /* a BW */
    ck_assert_int_eq(pl_ops_find(&ops, PL_KIND_B, 1, 0), 4);  /* a B */
    ck_assert_int_eq(pl_ops_find(&ops, PL_KIND_B, 3, 5), -1); /* only its W is there */
    ck_assert_int_eq(pl_ops_find(&ops, PL_KIND_F, 2, 7), -1); /* the U */
    pl_ops_free(&ops);
    ck_assert_int_eq(pl_ops_load(t, "y", &ops), PL_EINPUT);
    pl_trace_free(t);
}
END_TEST

static void has(const char *text, const char *what)
{
    ck_assert_msg(strstr(text, what) != NULL, "no %s in\n%s", what, text);
}

START_TEST(ranks)
{
    static const int32_t device[] = {1, 0, 1, 2, 1, 0}, chunk[] = {6, 4, 3, 0, 6, 9};
    static const int32_t expected[] = {1, 0, 0, 0, 1, 1};
    int most;
    int32_t *rank = pl_chunk_ranks(6, device, chunk, &most);
    ck_assert_int_eq(most, 2);
    for (int i = 0; i < 6; i++) ck_assert_int_eq(rank[i], expected[i]);
    free(rank);
}
END_TEST

START_TEST(export)
{
    struct pl_trace *t = pairs();
    ck_assert_msg(!pl_perfetto_write(t, "x", 0, path), "%s", pl_error_text());
    char *text;
    size_t n;
    ck_assert_int_eq(pl_file_read(path, 1 << 20, &text, &n), 0);
    /* the pair is on two threads of the device; half a nanosecond is cut, and told */
    has(text, "\"name\": \"BW5 c2\", \"pid\": 0, \"tid\": 1, \"cat\": \"BW\", "
              "\"ts\": 1, \"dur\": 1.500,");
    has(text, "\"name\": \"F1 c0\", \"pid\": 0, \"tid\": 2, \"cat\": \"F\", \"ts\": 1, "
              "\"dur\": 1.500,");
    has(text, "\"start_ps\": 1000000, \"duration_ps\": 1500500}");
    has(text, "{\"name\": \"compute, overlapped\"}");
    has(text, "\"name\": \"U7 c2\", \"pid\": 0, \"tid\": 1, \"cat\": \"U\", "
              "\"ts\": 2.500, \"dur\": 0,");
    /* memory: from 0 on each device */
    has(text, "\"name\": \"memory\", \"pid\": 0, \"ts\": 0, \"args\": {\"bytes\": 0}}");
    has(text, "\"name\": \"memory\", \"pid\": 0, \"ts\": 1, \"args\": {\"bytes\": 7}}");
    has(text, "\"name\": \"memory\", \"pid\": 0, \"ts\": 2, \"args\": {\"bytes\": 9}}");
    has(text, "\"name\": \"memory\", \"pid\": 1, \"ts\": 0, \"args\": {\"bytes\": 3}}");
    free(text);
    pl_trace_free(t);
}
END_TEST

START_TEST(refused)
{
    struct pl_trace *t = pairs();
    unlink(path);
    pl_trace_i64(t, "/arms/x/memory", "device", 3, (int64_t[]){0, 2, 0});
    ck_assert_int_eq(pl_perfetto_write(t, "x", 0, path), PL_EINPUT);
    ck_assert_ptr_nonnull(strstr(pl_error_text(), "/arms/x/memory: row 1 "));
    ck_assert(access(path, F_OK));
    pl_trace_free(t);
    t = pl_trace_new();
    ck_assert_int_eq(pl_perfetto_write(t, NULL, 0, path), PL_EINPUT);
    pl_trace_free(t);
}
END_TEST

static void fill(TCase *t)
{
    tcase_add_checked_fixture(t, setup, teardown);
    tcase_add_loop_test(t, lanes_are_serial, 0, 40);
    tcase_add_test(t, lookups);
    tcase_add_test(t, ranks);
    tcase_add_test(t, export);
    tcase_add_test(t, refused);
}

int main(void)
{
    return run_tests("perfetto", fill);
}
