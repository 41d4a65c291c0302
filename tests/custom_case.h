/* A folder for the files of a test program, shared by the tests of sim/custom.h. */
#ifndef TESTS_CUSTOM_CASE_H
#define TESTS_CUSTOM_CASE_H

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "sim/custom.h"
#include "tests/sim_case.h"

static char folder[] = "/tmp/pipelag-custom-XXXXXX";

static inline char *path_of(const char *name)
{
    return pl_printf("%s/%s", folder, name);
}

static void make_folder(void)
{
    ck_assert_ptr_nonnull(mkdtemp(folder));
}

static void remove_folder(void)
{
    static const char *const names[] = {"a.csv", "b.csv"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char *path = path_of(names[i]);
        unlink(path);
        free(path);
    }
    rmdir(folder);
}

/* Path of a.csv with this text. */
static inline char *write_text(const char *text)
{
    char *path = path_of("a.csv");
    FILE *file = fopen(path, "w");
    ck_assert_ptr_nonnull(file);
    fputs(text, file);
    ck_assert_int_eq(fclose(file), 0);
    return path;
}

/* The shape that a table has. */
static inline struct pl_shape read_shape(const char *path, int64_t updates)
{
    struct pl_custom *custom;
    int rc = pl_custom_read(path, &custom);
    ck_assert_msg(rc == PL_OK, "%s", pl_error_text());
    return (struct pl_shape){.P = custom->P,
                             .m = custom->m,
                             .updates = updates,
                             .v = custom->C / custom->P,
                             .custom = custom};
}

static inline struct pl_schedule schedule_of(const struct pl_schedule_type *type,
                                             const struct pl_shape *shape,
                                             const struct pl_cost *cost)
{
    struct pl_schedule schedule;
    int rc = pl_schedule_new(type, shape, cost, &schedule);
    ck_assert_msg(rc == PL_OK, "%s", pl_error_text());
    return schedule;
}

#endif
