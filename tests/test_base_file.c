/* Whole files, and messages and progress on stderr. */
#define _XOPEN_SOURCE 700
#include <check.h>
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/err.h"
#include "base/file.h"
#include "base/log.h"
#include "base/mem.h"
#include "tests/runner.h"

static char folder[] = "/tmp/pipelag-test-XXXXXX";

static void enter(void)
{
    ck_assert_ptr_nonnull(mkdtemp(folder));
    ck_assert_int_eq(chdir(folder), 0);
}

static void leave(void)
{
    DIR *dir = opendir(folder);
    for (struct dirent *e; (e = readdir(dir));) remove(e->d_name);
    closedir(dir);
    ck_assert_int_eq(chdir("/"), 0);
    ck_assert_int_eq(rmdir(folder), 0);
}

static int entries(void)
{
    int n = 0;
    DIR *dir = opendir(".");
    for (struct dirent *e; (e = readdir(dir));)
        n += strcmp(e->d_name, ".") && strcmp(e->d_name, "..");
    closedir(dir);
    return n;
}

static void put(const char *path, const char *text)
{
    struct pl_file *file = pl_file_create(path);
    ck_assert_msg(file != NULL, "%s", pl_error_text());
    fputs(text, pl_file_stream(file));
    ck_assert_msg(!pl_file_commit(file), "%s", pl_error_text());
}

static void expect(const char *path, const char *text)
{
    char *data;
    size_t n;
    ck_assert_msg(!pl_file_read(path, 1000, &data, &n), "%s", pl_error_text());
    ck_assert_uint_eq(n, strlen(text));
    ck_assert_str_eq(data, text);
    free(data);
}

START_TEST(file_is_whole_or_absent)
{
    struct pl_file *file = pl_file_create("a");
    fputs("new", pl_file_stream(file));
    fflush(pl_file_stream(file));
    ck_assert_int_eq(access("a", F_OK), -1); /* not there before the commit */
    ck_assert_int_eq(entries(), 1);          /* the temporary */
    ck_assert_int_eq(pl_file_commit(file), 0);
    expect("a", "new");
    file = pl_file_create("a");
    fputs("dropped", pl_file_stream(file));
    pl_file_discard(file);
    pl_file_discard(NULL);
    expect("a", "new");
    put("a", "second");
    expect("a", "second");
    ck_assert_int_eq(entries(), 1);
}
END_TEST

START_TEST(file_keeps_link_and_mode)
{
    struct stat st;
    put("real", "1");
    ck_assert_int_eq(chmod("real", 0640), 0);
    ck_assert_int_eq(symlink("real", "link"), 0);
    put("link", "2");
    ck_assert_int_eq(lstat("link", &st), 0);
    ck_assert(S_ISLNK(st.st_mode));
    expect("real", "2");
    ck_assert_int_eq(stat("real", &st), 0);
    ck_assert_int_eq(st.st_mode & 0777, 0640);
}
END_TEST

START_TEST(bad_target_is_refused)
{
    ck_assert_int_eq(mkdir("d", 0777), 0);
    static const char *const paths[] = {"missing/x", "d",    "d/",
                                        "",          "new/", "/proc/none"};
    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++) {
        pl_fail(PL_EIO, "none");
        ck_assert_msg(pl_file_create(paths[i]) == NULL, "%s", paths[i]);
        ck_assert_ptr_nonnull(strstr(pl_error_text(), "cannot write"));
    }
    char name[300];
    memset(name, 'x', sizeof name - 1);
    name[sizeof name - 1] = '\0';
    ck_assert_ptr_null(pl_file_create(name));
    ck_assert_int_eq(entries(), 1);
}
END_TEST

START_TEST(full_disk_is_reported)
{
    for (int size = 1; size <= 1000000; size *= 100) {
        struct pl_file *file = pl_file_create("/dev/full");
        ck_assert_ptr_nonnull(file);
        for (int i = 0; i < size; i++) putc('x', pl_file_stream(file));
        ck_assert_int_eq(pl_file_commit(file), PL_EIO);
        ck_assert_ptr_nonnull(strstr(pl_error_text(), "/dev/full: cannot write"));
    }
    struct stat st;
    ck_assert_int_eq(stat("/dev/full", &st), 0);
    ck_assert(S_ISCHR(st.st_mode));
}
END_TEST

START_TEST(failed_write_keeps_the_old_file)
{
    put("a", "old");
    struct pl_file *file = pl_file_create("a");
    int full = open("/dev/full", O_WRONLY);
    ck_assert_int_ge(dup2(full, fileno(pl_file_stream(file))),
                     0); /* the disk fills up */
    fputs("new", pl_file_stream(file));
    ck_assert_int_eq(pl_file_commit(file), PL_EIO);
    ck_assert_ptr_nonnull(strstr(pl_error_text(), "a: cannot write: No space left"));
    close(full);
    expect("a", "old");
    ck_assert_int_eq(entries(), 1);
}
END_TEST

START_TEST(devices_are_written_in_place)
{
    struct stat before, after;
    int fd = open("captured", O_RDWR | O_CREAT, 0666);
    ck_assert_int_ge(dup2(fd, STDOUT_FILENO), 0);
    ck_assert_int_eq(fstat(fd, &before), 0);
    put("/dev/stdout", "results");
    ck_assert_int_eq(stat("captured", &after), 0);
    ck_assert_uint_eq(before.st_ino, after.st_ino); /* not replaced by another file */
    expect("captured", "results");
    put("/dev/stdout", ", more");
    expect("captured", "results, more");
    put("/dev/null", "gone");
    ck_assert_int_eq(entries(), 1);
}
END_TEST

START_TEST(shared_memory_is_an_ordinary_folder)
{
    if (access("/dev/shm", W_OK)) return;
    char *name = pl_printf("/dev/shm/pipelag-test-%ld", (long)getpid());
    put(name, "first");
    put(name, "second");
    expect(name, "second");
    unlink(name);
    free(name);
}
END_TEST

START_TEST(install)
{
    char *temporary = pl_file_temporary("./out");
    char *name = pl_printf(".out.tmp-%ld", (long)getpid());
    ck_assert_ptr_nonnull(strstr(temporary, name));
    put(temporary, "made by a library");
    ck_assert_int_eq(pl_file_install(temporary, "out"), 0);
    expect("out", "made by a library");
    ck_assert_int_eq(pl_file_install(temporary, "out"), PL_EIO); /* gone */
    put(temporary, "x");
    ck_assert_int_eq(pl_file_install(temporary, "/dev/null"), PL_EIO);
    ck_assert_ptr_nonnull(strstr(pl_error_text(), "not a regular file"));
    ck_assert_int_eq(entries(), 1);
    free(temporary);
    free(name);
}
END_TEST

START_TEST(parts_of_files)
{
    char text[4] = "";
    uint64_t bytes = 0;
    int fd;
    put("ten", "0123456789");
    ck_assert_int_eq(pl_file_open("ten", &fd, &bytes), 0);
    ck_assert_uint_eq(bytes, 10);
    ck_assert_int_eq(pl_file_read_at(fd, "ten", text, 3, 7), 0);
    ck_assert_str_eq(text, "789");
    ck_assert_int_eq(pl_file_read_at(fd, "ten", text, 3, 8), PL_EINPUT);
    ck_assert_ptr_nonnull(strstr(pl_error_text(), "ends at byte 10"));
    close(fd);
    ck_assert_int_eq(pl_file_open("none", &fd, &bytes), PL_EINPUT);
    ck_assert_int_eq(pl_file_open(".", &fd, &bytes), PL_EINPUT);
    ck_assert_ptr_nonnull(strstr(pl_error_text(), "is a folder"));
    ck_assert_int_eq(pl_file_open("/dev/null", &fd, &bytes), PL_EINPUT);
    ck_assert_ptr_nonnull(strstr(pl_error_text(), "not a regular file"));
    ck_assert_int_lt(fd, 0);
}
END_TEST

START_TEST(read_limits)
{
    char *data = NULL;
    size_t n = 9;
    put("ten", "0123456789");
    put("empty", "");
    ck_assert_int_eq(pl_file_read("ten", 9, &data, &n), PL_EINPUT);
    ck_assert_str_eq(pl_error_text(), "ten: larger than 9 B");
    ck_assert_int_eq(pl_file_read(".", 9, &data, &n), PL_EINPUT);
    ck_assert_str_eq(pl_error_text(), ".: Is a directory");
    ck_assert_int_eq(pl_file_read("no", 9, &data, &n), PL_EINPUT);
    ck_assert_str_eq(pl_error_text(), "no: No such file or directory");
    ck_assert_int_eq(pl_file_read("/dev/zero", 100000, &data, &n), PL_EINPUT);
    ck_assert_ptr_null(data);
    expect("empty", "");
    ck_assert_int_eq(pl_file_read("ten", 10, &data, &n), 0);
    ck_assert_uint_eq(n, 10);
    free(data);
}
END_TEST

/* Check values of CRC-32/ISO-HDLC; the sum of parts continues the sum. */
START_TEST(checksum)
{
    ck_assert_uint_eq(pl_crc32(0, "123456789", 9), 0xcbf43926);
    ck_assert_uint_eq(pl_crc32(pl_crc32(0, "1234", 4), "56789", 5), 0xcbf43926);
    ck_assert_uint_ne(pl_crc32(0, "123456788", 9), 0xcbf43926);
    ck_assert_uint_eq(pl_crc32(0, "", 0), 0);
}
END_TEST

START_TEST(log_lines)
{
    ck_assert_ptr_nonnull(freopen("log", "w", stderr));
    pl_log(PL_LOG_INFO, "read %d", 3);
    pl_log(PL_LOG_WARN, "odd");
    pl_log(PL_LOG_ERROR, "bad");
    pl_log(PL_LOG_DEBUG, "hidden");
    pl_log_set_level(PL_LOG_ERROR);
    pl_log(PL_LOG_WARN, "hidden");
    pl_progress_begin("train", 10, "updates"); /* not a terminal: silent before 10 s */
    pl_progress_update(5, NULL);
    pl_progress_end();
    fflush(stderr);
    expect("log", "pipelag: read 3\npipelag: warning: odd\npipelag: bad\n");
    double a = pl_clock(), b = pl_clock();
    ck_assert_double_ge(b, a);
    ck_assert_double_ge(a, 0);
}
END_TEST

/* What progress draws on a terminal; NULL when this machine has none to lend. */
static char *draw(double total, double done)
{
    static char text[4096];
    int master = posix_openpt(O_RDWR | O_NOCTTY);
    if (master < 0 || grantpt(master) || unlockpt(master)) return NULL;
    int slave = open(ptsname(master), O_RDWR | O_NOCTTY);
    if (slave < 0 || dup2(slave, STDERR_FILENO) < 0) return NULL;
    pl_progress_begin("train", total, "updates");
    pl_progress_update(done, "loss 3.2");
    pl_progress_update(done, "too soon");
    pl_log(PL_LOG_WARN, "odd");
    pl_progress_end();
    fflush(stderr);
    ck_assert_int_eq(write(STDERR_FILENO, ".", 1), 1); /* so that read has an end */
    ssize_t n = 0;
    while (n < (ssize_t)sizeof text - 1 &&
           (n == 0 || text[n - 1] != '.' || !strchr(text, '\n'))) {
        ssize_t got = read(master, text + n, sizeof text - 1 - (size_t)n);
        if (got <= 0) break;
        n += got;
        text[n] = '\0';
        if (text[n - 1] == '.' && total <= 0) break;
    }
    return text;
}

START_TEST(progress_on_a_terminal)
{
    char *text = draw(40, 10);
    if (!text) return;
    ck_assert_msg(strstr(text, "\rtrain [####") != NULL, "%s", text);
    ck_assert_ptr_nonnull(strstr(text, "10/40 updates"));
    ck_assert_ptr_nonnull(strstr(text, "25 %"));
    ck_assert_ptr_null(strstr(text, "too soon")); /* ten times a second at most */
    ck_assert_ptr_nonnull(strstr(text, "\r\033[Kpipelag: warning: odd"));
    for (char *line = strtok(text, "\r\n"); line; line = strtok(NULL, "\r\n"))
        ck_assert_uint_le(strlen(line), 79 + 6); /* 80 columns, escapes aside */
}
END_TEST

START_TEST(progress_of_nothing)
{
    char *text = draw(0, 0);
    if (!text) return;
    ck_assert_ptr_null(strstr(text, "train"));
}
END_TEST

/* Several files that are whole together: after finish only the renames are left. */
START_TEST(finished_files)
{
    struct pl_file *a = pl_file_create("a"), *b = pl_file_create("b");
    put("b", "old");
    fputs("one", pl_file_stream(a));
    fputs("two", pl_file_stream(b));
    ck_assert_int_eq(pl_file_finish(a), 0);
    ck_assert_int_eq(pl_file_finish(b), 0);
    ck_assert_int_ne(access("a", F_OK), 0);
    expect("b", "old");
    ck_assert_int_eq(pl_file_commit(a), 0);
    expect("a", "one");
    pl_file_discard(b);
    expect("b", "old");
    ck_assert_int_eq(entries(), 2);
    if (access("/dev/full", W_OK)) return;
    struct pl_file *full = pl_file_create("/dev/full");
    fputs("more", pl_file_stream(full));
    ck_assert_int_eq(pl_file_finish(full), PL_EIO);
    ck_assert_ptr_nonnull(strstr(pl_error_text(), "/dev/full: cannot write"));
    pl_file_discard(full);
}
END_TEST

static void fill(TCase *t)
{
    tcase_add_checked_fixture(t, enter, leave);
    tcase_add_test(t, file_is_whole_or_absent);
    tcase_add_test(t, file_keeps_link_and_mode);
    tcase_add_test(t, bad_target_is_refused);
    tcase_add_test(t, full_disk_is_reported);
    tcase_add_test(t, failed_write_keeps_the_old_file);
    tcase_add_test(t, devices_are_written_in_place);
    tcase_add_test(t, shared_memory_is_an_ordinary_folder);
    tcase_add_test(t, finished_files);
    tcase_add_test(t, install);
    tcase_add_test(t, parts_of_files);
    tcase_add_test(t, read_limits);
    tcase_add_test(t, checksum);
    tcase_add_test(t, log_lines);
    tcase_add_test(t, progress_on_a_terminal);
    tcase_add_test(t, progress_of_nothing);
}

int main(void)
{
    return run_tests("file", fill);
}
