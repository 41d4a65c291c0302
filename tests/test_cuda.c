/* The device `cuda` against the conformance suite: whichever pipelag-cuda.so is found,
 * so a real GPU's (tests/cuda_gpu.sh, tools/gpu-check) or the one that
 * tests/cuda_shim.sh builds for the CPU. Without a device: SKIP and the loader's or the
 * device's reason. */
#include "base/err.h"
#include "tests/runner.h"
#include "tests/conformance.h"

#include <check.h>
#include <float.h>
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

static int n_ops(void)
{
    int n = 0;
    while (conformance_table[n].op) n++;
    return n;
}

static void conforms_in(const char *precision, double product, int op)
{
    const struct pl_device *device = open_cuda(), *twin = NULL;
    char text[300];
    ck_assert_int_eq(pl_device_precision(device, precision, &twin), 0);
    bool good = conformance_run_rounded(&conformance_table[op], twin, product, text,
                                        sizeof text);
    device->close();
    ck_assert_msg(good, "%s: %s", precision, text);
}

START_TEST(conforms)
{
    conforms_in("fp32", 0, _i);
}
END_TEST

/* Attention rounds probabilities, and their gradients, to bf16: 2^-8 of themselves. */
START_TEST(conforms_in_bf16)
{
    bool attention = !strncmp(conformance_table[_i].op, "attention", 9);
    conforms_in("bf16", attention ? 0x1p-8 / (double)FLT_EPSILON : 0, _i);
}
END_TEST

/* Of both factors of a product 11 bits are left. Tensor cores ignore the others (PTX
 * ISA, mma with .tf32), so, unless cuBLAS rounds them first, 2^-10 of a factor goes. */
START_TEST(conforms_in_tf32)
{
    const char *op = conformance_table[_i].op;
    if (!strcmp(op, "product") || !strcmp(op, "gemm"))
        conforms_in("tf32", 2 * 0x1p-10 / (double)FLT_EPSILON, _i);
}
END_TEST

/* 1 + 2^-10 + 2^-13 has too many bits for tf32 (cuBLAS may compute so small a product
 * in fp32 all the same, the shim does not); bf16 factors are exact. */
START_TEST(tf32_rounds)
{
    const struct pl_device *device = open_cuda(), *twin = NULL;
    const float x[2] = {1 + 0x1p-10f + 0x1p-13f, 1 + 0x1p-7f}, one = 1;
    float *dx, *dy, y[2];
    char text[300];
    device->describe(text, sizeof text);
    ck_assert_int_eq(pl_device_precision(device, "tf32", &twin), 0);
    ck_assert_int_eq(device->alloc(sizeof x + sizeof one, (void **)&dx), 0);
    ck_assert_int_eq(device->alloc(sizeof y, (void **)&dy), 0);
    ck_assert_int_eq(device->upload(dx, x, sizeof x), 0);
    ck_assert_int_eq(device->upload(dx + 2, &one, sizeof one), 0);
    for (int tf32 = 0; tf32 < 2; tf32++) {
        ck_assert_int_eq(
            (tf32 ? twin : device)
                ->gemm(false, false, 2, 1, 1, 1, dx, 1, dx + 2, 1, 0, dy, 1),
            0);
        ck_assert_int_eq(device->download(y, dy, sizeof y), 0);
        ck_assert(y[1] == x[1]);
        ck_assert(y[0] == x[0] || (tf32 && y[0] == 1 + 0x1p-10f));
        if (strstr(text, "CPU fibers")) ck_assert((y[0] == x[0]) == !tf32);
    }
    device->release(dx);
    device->release(dy);
    device->close();
}
END_TEST

/* One memory, one close, all else that is not `real` in common. */
START_TEST(twins)
{
    const struct pl_device *device = open_cuda(), *twin = NULL;
    static const char *const names[] = {"fp32", "tf32", "bf16"};
    char text[300];
    for (int i = 0; i < 3; i++) {
        ck_assert_int_eq(pl_device_precision(device, names[i], &twin), 0);
        ck_assert_str_eq(twin->precision, names[i]);
        ck_assert(twin->alloc == device->alloc && twin->dot == device->dot &&
                  twin->adamw == device->adamw && twin->close == device->close);
        ck_assert_uint_eq(twin->real_bytes, i == 2 ? 2 : 4);
        ck_assert((twin->product == device->product) == (i == 0));
        ck_assert((twin->gemm == device->gemm) == (i != 1));
        ck_assert((twin->rmsnorm == device->rmsnorm) == (i != 2));
        twin->describe(text, sizeof text);
        ck_assert_ptr_nonnull(strstr(text, names[i]));
    }
    ck_assert_int_eq(pl_device_precision(device, "bf16-emulated", &twin), PL_EUNSUP);
    device->close();
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

/* A key's operations: issued, captured, then replayed by the device itself. Other keys
 * stay apart, also when there are more than the device keeps. */
START_TEST(spans_with_a_key_are_replayed)
{
    enum { N = 100, ROUNDS = 5, KEYS = 600 };
    const struct pl_device *d = open_cuda();
    float ones[N], got[2][N], *x = NULL, *y[2] = {NULL, NULL};
    for (int i = 0; i < N; i++) ones[i] = 1;
    ck_assert_int_eq(d->alloc(sizeof ones, (void **)&x), 0);
    ck_assert_int_eq(d->upload(x, ones, sizeof ones), 0);
    for (int k = 0; k < 2; k++)
        ck_assert_int_eq(d->alloc(sizeof ones, (void **)&y[k]), 0);
    for (int round = 0; round < ROUNDS; round++)
        for (int k = 0; k < 2; k++) {
            const struct pl_span span = {"F s0 m0", &y[k], sizeof y[k]};
            bool done = true;
            ck_assert_int_eq(d->begin(&span, &done), 0);
            ck_assert_int_eq(done, round >= 2);
            if (!done) {
                ck_assert_int_eq(d->axpby(N, 1 + (float)k, x, 2, y[k]), 0);
                ck_assert_int_eq(d->copy(y[k], x, sizeof(float)), 0);
            }
            ck_assert_int_eq(d->end(), 0);
        }
    for (int k = 0; k < 2; k++) {
        ck_assert_int_eq(d->download(got[k], y[k], sizeof ones), 0);
        ck_assert(got[k][0] == 1 && got[k][1] == 31 * (1 + k) &&
                  got[k][N - 1] == got[k][1]);
    }
    for (int key = 0; key < 2 * KEYS; key++) { /* the first are forgotten */
        const int own = key % KEYS;
        const struct pl_span span = {"F s0 m0", &own, sizeof own},
                             plain = {.name = "U"};
        bool done = true;
        ck_assert_int_eq(d->begin(own % 2 ? &plain : &span, &done), 0);
        ck_assert(!done || key >= KEYS);
        if (!done) ck_assert_int_eq(d->axpby(1, 1, x, 1, y[0]), 0);
        ck_assert_int_eq(d->end(), 0);
    }
    d->release(y[1]); /* addresses may come again: no key is known any more */
    const struct pl_span span = {"F s0 m0", &y[0], sizeof y[0]};
    bool done = true;
    ck_assert_int_eq(d->begin(&span, &done), 0);
    ck_assert(!done);
    ck_assert_int_eq(d->end(), 0);
    d->release(y[0]);
    d->release(x);
    d->close();
}
END_TEST

START_TEST(data_sent_ahead_arrive)
{
    enum { N = 5000, ROW = 5 };
    const struct pl_device *d = open_cuda();
    unsigned char host[N], back[N], *to = NULL;
    ck_assert_int_eq(d->alloc(2 * N, (void **)&to), 0);
    for (int n = 1; n <= N; n *= 3) {
        memset(host, n % 251, (size_t)n);
        ck_assert_int_eq(d->prefetch(to + n % 2 * N, host, (size_t)n), 0);
        memset(host, 0, (size_t)n);
        ck_assert_int_eq(d->download(back, to + n % 2 * N, (size_t)n), 0);
        for (int i = 0; i < n; i++) ck_assert_int_eq(back[i], n % 251);
    }
    for (int k = 0; k < ROW; k++) { /* more than are on their way at once */
        memset(host, k + 1, N / ROW);
        ck_assert_int_eq(d->prefetch(to + k * (N / ROW), host, N / ROW), 0);
    }
    ck_assert_int_eq(d->download(back, to, N), 0);
    for (int i = 0; i < N; i++) ck_assert_int_eq(back[i], i / (N / ROW) + 1);
    ck_assert_int_eq(d->prefetch(to, NULL, 0), 0);
    d->release(to);
    d->close();
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
    tcase_set_timeout(all, 60); /* fibers on a busy machine */
    tcase_add_loop_test(all, conforms, 0, n_ops());
    tcase_add_loop_test(all, conforms_in_bf16, 0, n_ops());
    tcase_add_loop_test(all, conforms_in_tf32, 0, n_ops());
    tcase_add_test(all, twins);
    tcase_add_test(all, tf32_rounds);
    tcase_add_test(all, memory);
    tcase_add_test(all, opens_again);
    tcase_add_test(all, spans_with_a_key_are_replayed);
    tcase_add_test(all, data_sent_ahead_arrive);
    tcase_add_test(all, head_size_too_large);
}

int main(void)
{
    if (probe()) return EXIT_SUCCESS;
    return run_tests("cuda", fill);
}
