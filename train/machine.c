/* What a machine does at best (train/profile.h). The walk of memory is STREAM's triad
 * (McCalpin 1995), with y read as well; a product counts 2 n^3 flops. Sizes grow until
 * one takes a while, so that slow devices are not asked for seconds of work. */
#include "train/profile.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/rng.h"

enum { TRIES = 5 };
static const double long_enough = 0.02; /* seconds of one call */

/* Random numbers in [-1, 1), floats or bf16, again and again: a GPU multiplies zeros
 * faster. */
static int fill(const struct pl_device *dev, float *x, size_t bytes, size_t width)
{
    enum { PIECE = 1 << 16 };
    char *piece = PL_NEW(PIECE, char);
    for (size_t i = 0; i < PIECE / width; i++) {
        uint64_t bits = pl_rng_below(1, PL_RNG_NOISE, 0, i, 1u << 20);
        float value = (float)bits / (1 << 19) - 1;
        /* the upper half of a float is a bf16, on machines with the lower half first */
        memcpy(piece + i * width, (char *)&value + sizeof value - width, width);
    }
    size_t done = bytes < PIECE ? bytes : PIECE;
    int rc = dev->upload(x, piece, done);
    for (size_t more; done < bytes && !rc; done += more) {
        more = bytes - done < done ? bytes - done : done;
        rc = dev->copy((char *)x + done, x, more);
    }
    free(piece);
    return rc;
}

/* Blocks of n numbers, filled; those that were made are released on error. */
struct blocks {
    const struct pl_device *dev;
    int n;
    float *x[3];
};

static int blocks_open(struct blocks *b, size_t bytes, size_t width)
{
    int rc = b->dev->alloc(bytes, (void **)&b->x[b->n]);
    if (rc) return rc;
    return fill(b->dev, b->x[b->n++], bytes, width);
}

static void blocks_close(struct blocks *b)
{
    while (b->n) b->dev->release(b->x[--b->n]);
}

static double least(double a, double b)
{
    return a < b ? a : b;
}

/* The shortest of some calls of the triad on n floats. */
static int time_triad(const struct pl_device *dev, struct blocks *b, size_t n,
                      double *seconds)
{
    int rc = 0;
    *seconds = INFINITY;
    for (int k = 0; k < TRIES && !rc; k++) {
        rc = pl_timed_wait(dev);
        const double began = pl_timed_now();
        if (!rc) rc = dev->axpby(n, 0.5f, b->x[0], 0.5f, b->x[1]);
        if (!rc) rc = pl_timed_wait(dev);
        *seconds = least(*seconds, pl_timed_now() - began);
    }
    return rc;
}

static int measure_memory(const struct pl_device *dev, struct pl_machine *out)
{
    const size_t most = dev->host_memory ? 1 << 25 : 1 << 27; /* floats of a block */
    double seconds = 0;
    int rc = 0;
    for (size_t n = 1 << 14; n <= most && seconds < long_enough && !rc; n *= 4) {
        struct blocks b = {.dev = dev};
        for (int i = 0; i < 2 && !rc; i++)
            rc = blocks_open(&b, sizeof(float) * n, sizeof(float));
        if (!rc) rc = time_triad(dev, &b, n, &seconds);
        /* the last size counts: small ones lie in a cache */
        if (!rc) out->bytes_per_s = 3 * sizeof(float) * (double)n / seconds;
        blocks_close(&b);
    }
    return rc;
}

static int time_product(const struct pl_device *dev, struct blocks *b, int n,
                        double *seconds)
{
    int rc = 0;
    *seconds = INFINITY;
    for (int k = 0; k < TRIES && !rc; k++) {
        rc = pl_timed_wait(dev);
        const double began = pl_timed_now();
        if (!rc) rc = dev->product(PL_PRODUCT_Y, n, n, n, b->x[0], b->x[1], 0, b->x[2]);
        if (!rc) rc = pl_timed_wait(dev);
        *seconds = least(*seconds, pl_timed_now() - began);
    }
    return rc;
}

static int measure_products(const struct pl_device *dev, struct pl_machine *out)
{
    const int most = dev->host_memory ? 2048 : 8192;
    double seconds = 0;
    int rc = 0;
    for (int n = 32; n <= most && seconds < long_enough && !rc; n *= 2) {
        struct blocks b = {.dev = dev};
        const size_t n2 = (size_t)n * (size_t)n, real = dev->real_bytes;
        rc = blocks_open(&b, real * n2, real);
        if (!rc) rc = blocks_open(&b, sizeof(float) * n2, sizeof(float));
        if (!rc) rc = blocks_open(&b, real * n2, real);
        if (!rc) rc = time_product(dev, &b, n, &seconds);
        const double rate = 2.0 * n * n * n / seconds;
        if (!rc && rate > out->flops_per_s) {
            out->flops_per_s = rate;
            out->product_size = n;
        }
        blocks_close(&b);
    }
    return rc;
}

/* The shortest of some copies of n bytes. */
static int time_copy(const struct pl_device *dev, bool up, void *there, void *here,
                     size_t n, double *seconds)
{
    int rc = 0;
    *seconds = INFINITY;
    for (int k = 0; k < TRIES && !rc; k++) {
        rc = pl_timed_wait(dev);
        const double began = pl_timed_now();
        if (!rc) rc = up ? dev->upload(there, here, n) : dev->download(here, there, n);
        if (!rc) rc = pl_timed_wait(dev);
        *seconds = least(*seconds, pl_timed_now() - began);
    }
    return rc;
}

static int measure_copies(const struct pl_device *dev, struct pl_machine *out)
{
    enum { LARGE = 64 << 20 };
    void *there;
    char *here = PL_NEW(LARGE, char);
    double up, down;
    int rc = dev->alloc(LARGE, &there);
    if (!rc) {
        memset(here, 1, LARGE); /* its pages exist */
        rc = time_copy(dev, true, there, here, 4, &out->upload_s);
        if (!rc) rc = time_copy(dev, false, there, here, 4, &out->download_s);
        if (!rc) rc = time_copy(dev, true, there, here, LARGE, &up);
        if (!rc) rc = time_copy(dev, false, there, here, LARGE, &down);
        dev->release(there);
    }
    free(here);
    if (rc) return rc;
    out->copies = true;
    out->upload_bytes_per_s = LARGE / up;
    out->download_bytes_per_s = LARGE / down;
    return 0;
}

int pl_machine_measure(const struct pl_device *device, const struct pl_device *products,
                       struct pl_machine *out)
{
    struct pl_machine made = {0};
    int rc = measure_memory(device, &made);
    if (!rc) rc = measure_products(products, &made);
    if (!rc && !device->host_memory) rc = measure_copies(device, &made);
    if (!rc) *out = made;
    return rc;
}
