/* Models written as several safetensors files: where they are cut, what the index says,
 * what is left of an earlier save, and that a failure leaves the earlier save. */
#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/file.h"
#include "base/mem.h"
#include "tests/runner.h"
#include "train/safetensors.h"

static char folder[40], path[64];

static void setup(void)
{
    strcpy(folder, "/tmp/test_shards.XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/model.safetensors", folder);
}

static void teardown(void)
{
    char *command = pl_printf("rm -r %s", folder);
    ck_assert_int_eq(system(command), 0);
    free(command);
}

/* Names in the folder, sorted, each with a space behind it; caller frees. */
static char *listing(void)
{
    char *command = pl_printf("cd %s && ls -A | tr '\\n' ' '", folder), text[512] = "";
    FILE *pipe = popen(command, "r");
    ck_assert_ptr_nonnull(pipe);
    ck_assert(fgets(text, sizeof text, pipe) || feof(pipe));
    pclose(pipe);
    free(command);
    return pl_strdup(text);
}

static void check_listing(const char *expected)
{
    char *text = listing();
    ck_assert_str_eq(text, expected);
    free(text);
}

/* Tensors of 2, 1, 1, 5 and 1 numbers, x counting up from `first`. */
enum { N = 5 };
static const uint64_t counts[N] = {2, 1, 1, 5, 1};
static const char *const names[N] = {"d", "c", "b", "a", "e"};

static int save(const char *to, uint64_t most, float first, bool bad)
{
    static const struct pl_tensor_note notes[] = {{"format", "pt"}, {"run", "7"}, {0}};
    const struct pl_safetensors_form form = {pl_tensor_type_find("F32"), most, notes};
    struct pl_tensor tensors[N];
    struct pl_safetensors_writer *w = NULL;
    for (int i = 0; i < N; i++)
        tensors[i] = (struct pl_tensor){
            .name = (char *)names[i], .rank = 1, .shape = {counts[i]}};
    int rc = pl_safetensors_create(to, &form, tensors, N, &w);
    for (int i = 0; i < N && !rc; i++) {
        float x[5];
        for (uint64_t k = 0; k < counts[i]; k++) x[k] = first++;
        if (bad && i == N - 1) x[0] = NAN;
        rc = pl_safetensors_put(w, x);
    }
    if (!rc) return pl_safetensors_commit(w);
    pl_safetensors_discard(w);
    return rc;
}

static void check_numbers(float first, int n_files)
{
    struct pl_safetensors *st = NULL;
    ck_assert_msg(pl_safetensors_open(folder, &st) == 0, "%s", pl_error_text());
    ck_assert_int_eq(st->n_files, n_files);
    for (int i = 0; i < N; i++) {
        float x[5];
        ck_assert_int_eq(pl_safetensors_read(st, pl_safetensors_find(st, names[i]), x),
                         0);
        for (uint64_t k = 0; k < counts[i]; k++) ck_assert(x[k] == first++);
    }
    pl_safetensors_free(st);
    char *note = pl_safetensors_note(folder, "run");
    ck_assert_str_eq(note, "7");
    free(note);
    ck_assert_ptr_null(pl_safetensors_note(folder, "total_size"));
}

/* Bytes 8 4 4 20 4; most, and the tensors of each file. */
static const struct {
    uint64_t most;
    int n_files, of[N];
} cuts[] = {{0, 1, {0, 0, 0, 0, 0}},  {40, 1, {0, 0, 0, 0, 0}},
            {39, 2, {0, 0, 0, 0, 1}}, {36, 2, {0, 0, 0, 0, 1}},
            {16, 3, {0, 0, 0, 1, 2}}, {15, 4, {0, 0, 1, 2, 3}},
            {12, 4, {0, 0, 1, 2, 3}}, {1, 5, {0, 1, 2, 3, 4}}};
enum { N_CUTS = sizeof cuts / sizeof *cuts };

START_TEST(files_are_cut_by_bytes)
{
    const int n = cuts[_i].n_files;
    ck_assert_msg(!save(path, cuts[_i].most, 1, false), "%s", pl_error_text());
    check_numbers(1, n);
    if (n == 1) {
        check_listing("model.safetensors ");
        return;
    }
    char *index = pl_printf("%s.index.json", path), *data;
    size_t bytes;
    ck_assert_int_eq(pl_file_read(index, 1 << 16, &data, &bytes), 0);
    ck_assert_ptr_nonnull(strstr(data, "\"total_size\": 40"));
    for (int i = 0; i < N; i++) {
        char *entry = pl_printf("\"%s\": \"model-%05d-of-%05d.safetensors\"", names[i],
                                cuts[_i].of[i] + 1, n);
        ck_assert_msg(strstr(data, entry) != NULL, "%s in %s", entry, data);
        free(entry);
    }
    free(data);
    free(index);
}
END_TEST

/* One after another, into the same folder; a stranger's file stays. */
START_TEST(earlier_saves_leave_nothing)
{
    char *other = pl_printf("%s/model-1-of-two.safetensors", folder);
    FILE *file = fopen(other, "w");
    ck_assert_ptr_nonnull(file);
    fclose(file);
    ck_assert_int_eq(save(path, 0, 1, false), 0);
    ck_assert_int_eq(save(path, 16, 2, false), 0);
    check_listing("model-00001-of-00003.safetensors model-00002-of-00003.safetensors "
                  "model-00003-of-00003.safetensors model-1-of-two.safetensors "
                  "model.safetensors.index.json ");
    check_numbers(2, 3);
    ck_assert_int_eq(save(path, 36, 3, false), 0);
    check_listing("model-00001-of-00002.safetensors model-00002-of-00002.safetensors "
                  "model-1-of-two.safetensors model.safetensors.index.json ");
    check_numbers(3, 2);
    ck_assert_int_eq(save(path, 0, 4, false), 0);
    check_listing("model-1-of-two.safetensors model.safetensors ");
    check_numbers(4, 1);
    free(other);
}
END_TEST

START_TEST(a_failure_keeps_the_old_save)
{
    ck_assert_int_eq(save(path, 16, 5, false), 0);
    ck_assert_int_eq(save(path, 16, 9, true), PL_EUNSUP);
    ck_assert_ptr_nonnull(strstr(pl_error_text(), "e has nan at number 0"));
    check_numbers(5, 3);
    ck_assert_int_eq(save("/nowhere/x.safetensors", 16, 1, false), PL_EIO);
    check_listing("model-00001-of-00003.safetensors model-00002-of-00003.safetensors "
                  "model-00003-of-00003.safetensors model.safetensors.index.json ");
}
END_TEST

static void fill(TCase *tests)
{
    tcase_add_checked_fixture(tests, setup, teardown);
    tcase_add_loop_test(tests, files_are_cut_by_bytes, 0, N_CUTS);
    tcase_add_test(tests, earlier_saves_leave_nothing);
    tcase_add_test(tests, a_failure_keeps_the_old_save);
}

int main(void)
{
    return run_tests("safetensors_shards", fill);
}
