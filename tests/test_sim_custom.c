/* Schedules as PyTorch's CSV: written and read back they are the same schedule. */
#include <string.h>

#include "base/file.h"
#include "tests/custom_case.h"

static char *read_text(const char *path)
{
    char *text;
    size_t n;
    ck_assert_int_eq(pl_file_read(path, 1 << 24, &text, &n), PL_OK);
    return text;
}

static bool can_write(const struct pl_schedule_type *type)
{
    return !type->async && (type->replicas == 0 || type->replicas == 1) &&
           !type->from_file;
}

static void assert_same_run(const struct pl_simulation *a,
                            const struct pl_simulation *b)
{
    const struct pl_timeline *x = &a->timeline, *y = &b->timeline;
    ck_assert_int_eq(x->n_ops, y->n_ops);
    ck_assert_int_eq(x->n_messages, y->n_messages);
    for (int64_t i = 0; i < x->n_ops; i++) {
        ck_assert_int_eq(x->kind[i], y->kind[i]);
        ck_assert_int_eq(x->device[i], y->device[i]);
        ck_assert_int_eq(x->chunk[i], y->chunk[i]);
        ck_assert_int_eq(x->micro[i], y->micro[i]);
        ck_assert_int_eq(x->start[i], y->start[i]);
        ck_assert_int_eq(x->end[i], y->end[i]);
    }
}

static void round_trip(const struct pl_schedule_type *type, struct pl_shape *shape,
                       uint64_t seed)
{
    struct pl_layout layout;
    pl_layout_new(type, shape, &layout);
    struct pl_cost cost = random_layout_costs(&layout, seed, 40);
    cost.overlap = 0.5;
    struct pl_simulation own = simulate_shape(type, shape, &cost, seed & 1);
    char *path[] = {path_of("a.csv"), path_of("b.csv")};
    for (int communication = 0; communication < 2; communication++) {
        ck_assert_int_eq(pl_custom_write(&own.schedule, communication, path[0]), PL_OK);
        struct pl_shape back = read_shape(path[0], 1);
        struct pl_simulation again =
            simulate_shape(pl_schedule_find("custom"), &back, &cost, seed & 1);
        assert_same_run(&own, &again);
        ck_assert_int_eq(pl_custom_write(&again.schedule, communication, path[1]),
                         PL_OK);
        char *first = read_text(path[0]), *second = read_text(path[1]);
        ck_assert_str_eq(first, second);
        free(first);
        free(second);
        pl_simulation_free(&again);
        pl_shape_free(&back);
    }
    free(path[0]);
    free(path[1]);
    pl_simulation_free(&own);
    pl_cost_free(&cost);
    pl_layout_free(&layout);
}

/* Every schedule that the format can say, in both flavours: same timeline, same bytes.
 */
START_TEST(round_trips)
{
    const struct pl_schedule_type *type = pl_schedule_types[_i];
    int done = 0;
    if (!can_write(type)) return;
    for (int P = 1; P <= 6; P++)
        for (int m = 1; m <= 2 * P + 3; m += 1 + m / 4) {
            struct pl_shape shape;
            if (!shape_of(type, P, m, 1, &shape)) continue;
            round_trip(type, &shape, (uint64_t)(100 * P + m));
            done++;
        }
    ck_assert_int_gt(done, 3);
}
END_TEST

/* Three updates of a table are the schedule's own three. */
START_TEST(updates)
{
    struct pl_shape shape = {.P = 4, .m = 6, .updates = 3, .v = 1};
    struct pl_cost cost = random_costs(4, 11, 30);
    struct pl_simulation own = simulate("1f1b", 4, 6, 3, &cost, true);
    char *path = path_of("a.csv");
    ck_assert_int_eq(pl_custom_write(&own.schedule, false, path), PL_OK);
    struct pl_shape back = read_shape(path, 3);
    struct pl_simulation again =
        simulate_shape(pl_schedule_find("custom"), &back, &cost, true);
    assert_same_run(&own, &again);
    ck_assert_int_eq(back.P, shape.P);
    ck_assert_int_eq(back.m, shape.m);
    ck_assert_int_eq(back.v, shape.v);
    pl_shape_free(&back); /* the schedule holds the table itself */
    ck_assert_str_eq(again.schedule.shape.custom->path, path);
    free(path);
    pl_simulation_free(&own);
    pl_simulation_free(&again);
    pl_cost_free(&cost);
}
END_TEST

/* The grid of 1F1B on 2 ranks by hand, and what lowering it inserts. */
START_TEST(grid)
{
    static const char *const want[] = {
        "0F0,0F1,,0B0,,0B1\n,1F0,1B0,1F1,1B1\n",
        "0F0,0SEND_F0,0F1,0SEND_F1,0RECV_B0,0B0,0RECV_B1,0B1\n"
        "1RECV_F0,1F0,1RECV_F1,1B0,1SEND_B0,1F1,1B1,1SEND_B1\n"};
    struct pl_shape shape = {.P = 2, .m = 2, .updates = 2};
    struct pl_schedule schedule = schedule_of(pl_schedule_find("1f1b"), &shape, NULL);
    char *path = path_of("a.csv");
    for (int communication = 0; communication < 2; communication++) {
        ck_assert_int_eq(pl_custom_write(&schedule, communication, path), PL_OK);
        char *text = read_text(path);
        ck_assert_str_eq(text, want[communication]);
        free(text);
    }
    free(path);
    pl_schedule_free(&schedule);
}
END_TEST

/* The order of DualPipeV on 4 ranks for 10 microbatches is PyTorch's own, whose test
 * artifact dualpipev_4rank_10mb.csv (no idle cells) has this checksum. */
START_TEST(dualpipev_of_pytorch)
{
    struct pl_shape shape = {.P = 4, .m = 10, .updates = 1};
    struct pl_schedule schedule =
        schedule_of(pl_schedule_find("dualpipev"), &shape, NULL);
    char *path = path_of("a.csv");
    ck_assert_int_eq(pl_custom_write(&schedule, false, path), PL_OK);
    char *text = read_text(path);
    size_t n = 0;
    for (size_t i = 0; text[i]; i++) { /* drop the empty cells */
        bool start = n == 0 || text[n - 1] == '\n' || text[n - 1] == ',';
        if (text[i] != ',' || !start) text[n++] = text[i];
    }
    ck_assert_uint_eq(n, 1261);
    ck_assert_uint_eq(pl_crc32(0, text, n), 0xf16b0546);
    free(text);
    free(path);
    pl_schedule_free(&schedule);
}
END_TEST

/* Is cell `name` of the text, or the one it waits for, behind the cursors? */
static bool ran(char *const *row, char *const *at, int rows, const char *name)
{
    size_t n = strlen(name);
    for (int d = 0; d < rows; d++)
        for (char *c = row[d]; c < at[d]; c += strcspn(c, ",") + 1)
            if (!strncmp(c, name, n) && strchr(",", c[n])) return true;
    return false;
}

/* Run in order on each rank, a receive waiting for its send, nothing hangs. */
static bool runs_through(char *text)
{
    char *row[16], *at[16], *save = NULL;
    int rows = 0;
    for (char *line = strtok_r(text, "\n", &save); line;
         line = strtok_r(NULL, "\n", &save))
        row[rows] = at[rows] = line, rows++;
    for (bool any = true; any;) {
        any = false;
        for (int d = 0; d < rows; d++) {
            if (!*at[d]) continue;
            char *receive = strstr(at[d], "RECV_"), send[40];
            size_t n = strcspn(at[d], ",");
            if (receive && receive < at[d] + n) {
                int stage = atoi(at[d]) + (receive[5] == 'F' ? -1 : 1);
                snprintf(send, sizeof send, "%dSEND_%.*s", stage,
                         (int)(at[d] + n - receive - 5), receive + 5);
                if (!ran(row, at, rows, send)) continue;
            }
            at[d] += n + (at[d][n] == ',');
            any = true;
        }
    }
    for (int d = 0; d < rows; d++)
        if (*at[d]) return false;
    return true;
}

START_TEST(communication_runs)
{
    static const char *const names[] = {"1f1b", "dualpipev", "hanayo"};
    char *path = path_of("a.csv");
    for (int i = 0; i < 3; i++) {
        struct pl_shape shape = {.P = 4, .m = 8, .updates = 1};
        struct pl_schedule schedule =
            schedule_of(pl_schedule_find(names[i]), &shape, NULL);
        ck_assert_int_eq(pl_custom_write(&schedule, true, path), PL_OK);
        char *text = read_text(path);
        ck_assert(runs_through(text));
        free(text);
        pl_schedule_free(&schedule);
    }
    free(path);
    char crossed[] = "0F0,0RECV_B0,0SEND_F0\n1RECV_F0,1SEND_B0\n";
    ck_assert(!runs_through(crossed)); /* the checker sees a hang */
}
END_TEST

/* What is allowed: CRLF, quotes, spaces, blank lines at the end, a pair in either
 * order, FSDP cells. */
START_TEST(lenient)
{
    char *path = write_text("0UNSHARD,0F0,0F1,\"0B0\", 0B1 ,0REDUCE_GRAD,0RESHARD\r\n"
                            ",1F0,(1B0;1F1)OVERLAP_F_B,1I1,,1W1\r\n\r\n");
    struct pl_shape shape = read_shape(path, 1);
    ck_assert_int_eq(shape.custom->first[2], 4 + 5);
    ck_assert_int_eq(shape.custom->ops[5].kind, PL_OP_F);
    ck_assert_int_eq(shape.custom->ops[5].pair, 1);
    ck_assert_int_eq(shape.custom->ops[6].kind, PL_OP_BW);
    struct pl_cost cost = uniform(2, 1000, 2000, 0, 0);
    struct pl_simulation sim =
        simulate_shape(pl_schedule_find("custom"), &shape, &cost, true);
    pl_simulation_free(&sim);
    pl_cost_free(&cost);
    pl_shape_free(&shape);
    free(path);
}
END_TEST

static void fill(TCase *t)
{
    tcase_add_unchecked_fixture(t, make_folder, remove_folder);
    tcase_add_loop_test(t, round_trips, 0, n_types());
    tcase_add_test(t, updates);
    tcase_add_test(t, grid);
    tcase_add_test(t, dualpipev_of_pytorch);
    tcase_add_test(t, communication_runs);
    tcase_add_test(t, lenient);
}

int main(void)
{
    return run_tests("sim custom", fill);
}
