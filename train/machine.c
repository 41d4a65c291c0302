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

/* A call that is timed: of size n, on blocks of memory that are filled; those that were
 * made are released on error. */
struct trial {
    const struct pl_device *dev;
    int (*call)(const struct trial *t);
    size_t n;
    int blocks;
    float *x[3];
};

static int trial_block(struct trial *t, size_t bytes, size_t width)
{
    int rc = t->dev->alloc(bytes, (void **)&t->x[t->blocks]);
    if (rc) return rc;
    return fill(t->dev, t->x[t->blocks++], bytes, width);
}

static void trial_close(struct trial *t)
{
    while (t->blocks) t->dev->release(t->x[--t->blocks]);
}

/* The shortest of some calls. */
static int trial_time(const struct trial *t, double *seconds)
{
    int rc = 0;
    *seconds = INFINITY;
    for (int k = 0; k < TRIES && !rc; k++) {
        rc = pl_timed_wait(t->dev);
        const double began = pl_timed_now();
        if (!rc) rc = t->call(t);
        if (!rc) rc = pl_timed_wait(t->dev);
        *seconds = fmin(*seconds, pl_timed_now() - began);
    }
    return rc;
}

static int triad(const struct trial *t)
{
    return t->dev->axpby(t->n, 0.5f, t->x[0], 0.5f, t->x[1]);
}

static int measure_memory(const struct pl_device *dev, struct pl_machine *out)
{
    const size_t most = dev->host_memory ? 1 << 25 : 1 << 27; /* floats of a block */
    double seconds = 0;
    int rc = 0;
    for (size_t n = 1 << 14; n <= most && seconds < long_enough && !rc; n *= 4) {
        struct trial t = {.dev = dev, .call = triad, .n = n};
        for (int i = 0; i < 2 && !rc; i++)
            rc = trial_block(&t, sizeof(float) * n, sizeof(float));
        if (!rc) rc = trial_time(&t, &seconds);
        /* the last size counts: small ones lie in a cache */
        if (!rc) out->bytes_per_s = 3 * sizeof(float) * (double)n / seconds;
        trial_close(&t);
    }
    return rc;
}

static int product(const struct trial *t)
{
    const int n = (int)t->n;
    return t->dev->product(PL_PRODUCT_Y, n, n, n, t->x[0], t->x[1], NULL, NULL,
                           t->x[2]);
}

static int measure_products(const struct pl_device *dev, struct pl_machine *out)
{
    const int most = dev->host_memory ? 2048 : 8192;
    double seconds = 0;
    int rc = 0;
    for (int n = 32; n <= most && seconds < long_enough && !rc; n *= 2) {
        struct trial t = {.dev = dev, .call = product, .n = (size_t)n};
        const size_t n2 = t.n * t.n, real = dev->real_bytes;
        rc = trial_block(&t, real * n2, real);
        if (!rc) rc = trial_block(&t, sizeof(float) * n2, sizeof(float));
        if (!rc) rc = trial_block(&t, real * n2, real);
        if (!rc) rc = trial_time(&t, &seconds);
        const double rate = 2.0 * n * n * n / seconds;
        if (!rc && rate > out->flops_per_s) {
            out->flops_per_s = rate;
            out->product_size = n;
        }
        trial_close(&t);
    }
    return rc;
}

/* x: there, here. */
static int upload(const struct trial *t)
{
    return t->dev->upload(t->x[0], t->x[1], t->n);
}

static int download(const struct trial *t)
{
    return t->dev->download(t->x[1], t->x[0], t->n);
}

static int measure_copies(const struct pl_device *dev, struct pl_machine *out)
{
    enum { SMALL = 4, LARGE = 64 << 20 };
    float *here = PL_NEW(LARGE / sizeof(float), float);
    struct trial t = {.dev = dev};
    double up = 0, down = 0;
    int rc = trial_block(&t, LARGE, sizeof(float));
    memset(here, 1, LARGE); /* its pages exist */
    t.x[1] = here;
    const struct {
        int (*call)(const struct trial *t);
        size_t n;
        double *seconds;
    } calls[] = {{upload, SMALL, &out->upload_s},
                 {download, SMALL, &out->download_s},
                 {upload, LARGE, &up},
                 {download, LARGE, &down}};
    for (int i = 0; i < 4 && !rc; i++) {
        t.call = calls[i].call;
        t.n = calls[i].n;
        rc = trial_time(&t, calls[i].seconds);
    }
    trial_close(&t);
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
