/* The device `cuda` against the conformance suite: whichever pipelag-cuda.so is found,
 * so a real GPU's (tests/cuda_gpu.sh, tools/gpu-check) or the one that
 * tests/cuda_shim.sh builds for the CPU. Without a device: SKIP and the loader's or the
 * device's reason. */
#include "base/err.h"
#include "tests/runner.h"
#include "tests/conformance.h"

#include <check.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static const struct pl_device *open_cuda(void)
{
    const struct pl_device *device = NULL;
    int rc = pl_device_get("cuda", &device);
    ck_assert_msg(rc == 0, "%s", pl_error_text());
    return device;
}

START_TEST(conforms)
{
    const struct pl_device *device = open_cuda();
    char text[300];
    bool good = conformance_run(&conformance_table[_i], device, text, sizeof text);
    device->close();
    ck_assert_msg(good, "%s", text);
}
END_TEST

START_TEST(memory)
{
    enum { N = 1000 };
    const struct pl_device *d = open_cuda();
    unsigned char host[N];
    char *p = NULL;
    void *none = &none;
    ck_assert(!d->host_memory);
    ck_assert_int_eq(d->alloc(N, (void **)&p), 0);
    ck_assert_int_eq(d->download(host, p, N), 0);
    for (int i = 0; i < N; i++) ck_assert_int_eq(host[i], 0);
    memset(host, 7, N);
    ck_assert_int_eq(d->upload(p, host, N / 2), 0);
    ck_assert_int_eq(d->copy(p + N / 2, p, N / 2), 0);
    ck_assert_int_eq(d->zero(p + 1, N - 2), 0);
    ck_assert_int_eq(d->download(host, p, N), 0);
    ck_assert(host[0] == 7 && host[1] == 0 && host[N - 2] == 0 && host[N - 1] == 7);
    d->release(p);
    d->release(NULL);
    ck_assert_int_eq(d->alloc(SIZE_MAX / 4, &none), PL_EMEM);
    ck_assert_ptr_null(none);
    ck_assert_ptr_nonnull(strstr(pl_error_text(), "4611686018427387903 bytes asked"));
    d->close();
}
END_TEST

START_TEST(opens_again)
{
    const struct pl_device *device = open_cuda();
    double sum = 1;
    ck_assert_int_eq(device->open(), 0);
    ck_assert_int_eq(device->dot(0, NULL, NULL, &sum), 0);
    ck_assert_double_eq(sum, 0);
    device->close();
    ck_assert_ptr_eq(open_cuda(), device);
    char text[300] = "";
    device->describe(text, sizeof text);
    ck_assert_msg(strstr(text, "cuda: ") == text, "%s", text);
    device->close();
}
END_TEST

START_TEST(head_size_too_large)
{
    const struct pl_device *device = open_cuda();
    struct pl_attention_shape shape = {1, 1, 1, 1, 512};
    ck_assert_int_eq(device->attention(&shape, NULL, NULL, NULL), PL_EUNSUP);
    ck_assert_ptr_nonnull(strstr(pl_error_text(), "head size 512"));
    device->close();
}
END_TEST

/* In a process of its own: a CUDA context does not survive the forks of `check`. */
static int probe(void)
{
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        const struct pl_device *device = NULL;
        int rc = pl_device_get("cuda", &device);
        if (rc == PL_ENODEV) printf("1..0 # SKIP %s\n", pl_error_text());
        fflush(stdout);
        _exit(rc == PL_ENODEV ? 1 : 0);
    }
    int status = 0;
    return child > 0 && waitpid(child, &status, 0) == child && WIFEXITED(status) &&
           WEXITSTATUS(status) == 1;
}

static void fill(TCase *all)
{
    int ops = 0;
    while (conformance_table[ops].op) ops++;
    tcase_add_loop_test(all, conforms, 0, ops);
    tcase_add_test(all, memory);
    tcase_add_test(all, opens_again);
    tcase_add_test(all, head_size_too_large);
}

int main(void)
{
    if (probe()) return EXIT_SUCCESS;
    return run_tests("cuda", fill);
}
