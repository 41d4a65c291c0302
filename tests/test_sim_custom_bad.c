/* Damaged schedule tables are refused with line, cell and cause; so is what the format
 * cannot say. */
#include "tests/custom_case.h"

/* A table, and what the message says of it. */
static const struct {
    const char *text, *says;
} bad[] = {
    {"", ": no ops in the file"},
    {"\n\n", ": no ops in the file"},
    {"0F0,0B0\n\n1F0,1B0\n", ":2: rank 1 has no ops"},
    {"0F0,,0X0\n", ":1:3: '0X0': unknown op"},
    {"0F0,0BW0\n", ":1:2: '0BW0': unknown op 'BW', did you mean 'B'?"},
    {"F0,0B0\n", ":1:1: 'F0': expected a stage"},
    {"0F,0B0\n", ":1:1: '0F': expected a microbatch"},
    {"0F0x,0B0\n", ":1:1: '0F0x': expected a microbatch"},
    {"0F99999999,0B0\n", ":1:1: '0F99999999': expected a microbatch from 0 to 1048575"},
    {"99999999999F0,0B0\n",
     ":1:1: '99999999999F0': expected a stage from 0 to 1048575"},
    {"0F0,0B0,0UNSHARD3\n", ":1:3: '0UNSHARD3': UNSHARD takes no microbatch, expected "
                            "0UNSHARD"},
    {"0F0,0B0,0F0\n", ":1:3: 0F0 again, it is in cell 1 already"},
    {"0B0,0F0\n", ":1:1: 0B0 before its F in cell 2"},
    {"0F0\n", ":1:1: 0F0 without a backward, expected 0B0, or 0I0 and 0W0"},
    {"0B0\n", ":1:1: 0B0 without its 0F0"},
    {"0F0,0I0\n", ":1:2: 0I0 without its 0W0"},
    {"0F0,0W0\n", ":1:1: 0F0 without a backward"},
    {"0F0,0W0,0I0\n", ":1:2: 0W0 before its I in cell 3"},
    {"0F0,0B0,0W0\n", ":1:2: 0B0 beside W: B is the full backward, the input gradient "
                      "alone is 0I0"},
    {"0F0,0F2,0B0,0B2\n", ":1: no 0F1 on rank 0, but microbatches go up to 2"},
    {"0F0,0B0\n2F0,2B0\n", ": no op of stage 1, but stages go up to 2"},
    {"0F0,0B0,1F0\n1B0\n", ":2:1: 1B0 on rank 1, but stage 1 is on rank 0 (line 1)"},
    {"0F0,0B0,1F0,1B0\n2F0,2B0\n", ":2: rank 1 has 1 stage, expected 2 as on rank 0"},
    {"0F0,(0F1;0B0OVERLAP_F_B,0B1\n",
     ":1:2: '(0F1;0B0OVERLAP_F_B': expected (0F5;7B2)"},
    {"0F0,(0F1;0B0)OVERLAP,0B1\n", "expected (0F5;7B2)OVERLAP_F_B"},
    {"0F0,(0F1;0I0)OVERLAP_F_B,0W0,0B1\n",
     ":1:2: OVERLAP_F_B of F and I, expected a forward F and a full backward B"},
    {"0F0,0B0,0RESHARD\n1F0,1B0,0UNSHARD\n",
     ":2:3: 0UNSHARD: stage 0 is not on rank 1"},
    {"0SEND_F0\n", ": communication only, no op"},
    {"0F0,0SEND_F0,0RECV_B0,0B0\n1F0,1B0,1SEND_B0\n",
     ":1:2: 0SEND_F0 without its 1RECV_F0 on rank 1"},
    {"0F0,0RECV_B0,0B0\n1RECV_F0,1F0,1B0,1SEND_B0\n",
     ":2:1: 1RECV_F0 without its 0SEND_F0 on rank 0"},
    {"0F0,0SEND_F0,0RECV_B0,0B0\n1F0,1RECV_F0,1B0,1SEND_B0\n",
     ":2:2: 1RECV_F0 after 1F0 in cell 1, which needs it"},
    {"0SEND_F0,0F0,0RECV_B0,0B0\n1RECV_F0,1F0,1B0,1SEND_B0\n",
     ":1:1: 0SEND_F0 before 0F0 in cell 2"},
    {"0F0,0SEND_F0,0SEND_F0,0RECV_B0,0B0\n1RECV_F0,1F0,1B0,1SEND_B0\n",
     ":1:3: 0SEND_F0 again, it is in cell 2 already"},
    {"0F0,0SEND_F0,0B0\n1RECV_F0,1F0,1B0\n",
     ":2: no 1SEND_B0, but others are sent: expected all or no communication"},
    {"0F0,0SEND_F0,0RECV_B0,0B0,1RECV_F0\n1F0,1B0,1SEND_B0\n",
     ":1:5: 1RECV_F0 on rank 0, but stage 1 is on rank 1"},
    {"0F0,0SEND_F0,1F0,1B0,0B0\n",
     "stages 0 and 1 are both on rank 0, nothing is sent"},
    {"0F0,0SEND_F7,0B0\n1F0,1B0\n", ":1:2: 0SEND_F7: microbatches are 0 to 0"},
    {"0F0,0B0\n1F0,1SEND_F0,1B0\n", ":2:2: 1SEND_F0: no stage 2 beside it"},
};

START_TEST(damaged)
{
    char *path = write_text(bad[_i].text);
    struct pl_custom *custom = NULL;
    int rc = pl_custom_read(path, &custom);
    ck_assert_msg(rc == PL_EINPUT && strstr(pl_error_text(), bad[_i].says) &&
                      !strncmp(pl_error_text(), path, strlen(path)),
                  "%d '%s', expected '%s'", rc, pl_error_text(), bad[_i].says);
    ck_assert_ptr_null(custom);
    free(path);
}
END_TEST

START_TEST(refused)
{
    const struct pl_schedule_type *custom = pl_schedule_find("custom");
    char *path = path_of("b.csv");
    struct pl_shape shape = {.P = 4, .m = 8, .updates = 1};
    ck_assert_int_eq(pl_shape_resolve(custom, &shape), PL_EUNSUP);
    ck_assert_ptr_nonnull(strstr(pl_error_text(), "schedule.file"));
    static const char *const names[] = {"dualpipe", "chimera", "2bw", "pipedream"};
    for (int i = 0; i < 4; i++) {
        struct pl_shape own = {.P = 4, .m = 8, .updates = 2};
        struct pl_schedule schedule =
            schedule_of(pl_schedule_find(names[i]), &own, NULL);
        ck_assert_int_eq(pl_custom_write(&schedule, false, path), PL_EUNSUP);
        ck_assert_ptr_nonnull(
            strstr(pl_error_text(), i < 2 ? "two copies" : "between two flushes"));
        ck_assert_int_ne(access(path, F_OK), 0);
        pl_schedule_free(&schedule);
    }
    struct pl_schedule one = schedule_of(pl_schedule_find("gpipe"), &shape, NULL);
    ck_assert_int_eq(pl_custom_write(&one, false, path), PL_OK);
    struct pl_shape other = read_shape(path, 1);
    other.m = 7;
    ck_assert_int_eq(pl_shape_resolve(custom, &other), PL_EUNSUP);
    ck_assert_ptr_nonnull(strstr(pl_error_text(), "8 microbatches"));
    ck_assert_int_eq(pl_custom_write(&one, false, "/no/such/folder/a.csv"), PL_EIO);
    struct pl_custom *none = NULL;
    ck_assert_int_eq(pl_custom_read("/no/such/file.csv", &none), PL_EINPUT);
    pl_shape_free(&other);
    pl_schedule_free(&one);
    free(path);
}
END_TEST

/* Ranks that wait for each other: a complete table, which the engine finds stuck. */
START_TEST(deadlock)
{
    char *path = write_text("0F0,0B0,0F1,0B1\n1F0,1F1,1B0,1B1\n");
    struct pl_shape shape = read_shape(path, 1);
    struct pl_cost cost = uniform(2, 1000, 2000, 0, 0);
    struct pl_simulation sim;
    ck_assert_int_eq(pl_simulate(pl_schedule_find("custom"), &shape, &cost, true, &sim),
                     PL_ECONFIG); /* the file is at fault, and named */
    ck_assert_ptr_nonnull(strstr(pl_error_text(), path));
    pl_cost_free(&cost);
    pl_shape_free(&shape);
    free(path);
}
END_TEST

static void fill(TCase *t)
{
    tcase_add_unchecked_fixture(t, make_folder, remove_folder);
    tcase_add_loop_test(t, damaged, 0, sizeof bad / sizeof *bad);
    tcase_add_test(t, refused);
    tcase_add_test(t, deadlock);
}

int main(void)
{
    return run_tests("sim custom bad", fill);
}
