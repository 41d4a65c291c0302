#include "gpu/timed.h"
#include "gpu/op_costs.h"

#include <stddef.h>
#include <time.h>

#define NAME(p, name, params, args) #name,
const char *const pl_timed_names[PL_TIMED_ROWS] = {PL_OPS(NAME, ) "product dx",
                                                   "product dw",
                                                   "product_groups dx",
                                                   "product_groups dw",
                                                   "upload",
                                                   "prefetch",
                                                   "download",
                                                   "copy",
                                                   "zero"};

static const struct pl_device *behind[PL_TIMED_DEVICES];
static struct pl_device front[PL_TIMED_DEVICES];
static struct pl_timed_table *into;

double pl_timed_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

int pl_timed_wait(const struct pl_device *device)
{
    return device->wait ? device->wait() : 0;
}

struct cost {
    double flops, floats, reals;
    int kind; /* of a product, else 0 */
};

/* A failure before the operation is one after it, too. */
static double begin(int i)
{
    pl_timed_wait(behind[i]);
    return pl_timed_now();
}

static int end(int i, int number, const struct cost *cost, double began, int rc)
{
    if (!rc) rc = pl_timed_wait(behind[i]);
    if (rc) return rc;
    const double now = pl_timed_now();
    const int kinds = number == PL_TIMED_product_groups ? PL_TIMED_product_groups_dx
                                                        : PL_TIMED_product_dx;
    struct pl_timed *row = &into->row[cost->kind ? kinds + cost->kind - 1 : number];
    row->calls++;
    row->seconds += now - began;
    row->flops += cost->flops;
    row->bytes +=
        sizeof(float) * cost->floats + (double)behind[i]->real_bytes * cost->reals;
    return 0;
}

#define COST(...) COST_OF(__VA_ARGS__)
#define COST_OF(flops, floats, reals, kind, ...) \
    {                                            \
        flops, floats, reals, kind               \
    }
#define MEASURE(i, name, cost_of, args)     \
    if (!into) return behind[i]->name args; \
    const struct cost cost = cost_of;       \
    const double began = begin(i);          \
    return end(i, PL_TIMED_##name, &cost, began, behind[i]->name args);

#define FORWARD(i, name, params, args)                     \
    static int at##i##_##name params                       \
    {                                                      \
        MEASURE(i, name, COST(PL_COST_##name, 0, 0), args) \
    }
#define MEMORY(i)                                                                    \
    static int at##i##_upload(void *dst, const void *src, size_t bytes)              \
    {                                                                                \
        MEASURE(i, upload, COST(0, (double)bytes / 4, 0, 0, 0), (dst, src, bytes))   \
    }                                                                                \
    static int at##i##_download(void *dst, const void *src, size_t bytes)            \
    {                                                                                \
        MEASURE(i, download, COST(0, (double)bytes / 4, 0, 0, 0), (dst, src, bytes)) \
    }                                                                                \
    static int at##i##_copy(void *dst, const void *src, size_t bytes)                \
    {                                                                                \
        MEASURE(i, copy, COST(0, (double)bytes / 2, 0, 0, 0), (dst, src, bytes))     \
    }                                                                                \
    static int at##i##_zero(void *dst, size_t bytes)                                 \
    {                                                                                \
        MEASURE(i, zero, COST(0, (double)bytes / 4, 0, 0, 0), (dst, bytes))          \
    }
PL_OPS(FORWARD, 0)
PL_OPS(FORWARD, 1)
MEMORY(0)
MEMORY(1)

/* Operations of a span are issued here, one by one, while they are measured. */
#define SPANS(i)                                                                     \
    static int at##i##_prefetch(void *dst, const void *src, size_t bytes)            \
    {                                                                                \
        MEASURE(i, prefetch, COST(0, (double)bytes / 4, 0, 0, 0), (dst, src, bytes)) \
    }                                                                                \
    static int at##i##_begin(const struct pl_span *span, bool *done)                 \
    {                                                                                \
        if (!into) return behind[i]->begin(span, done);                              \
        *done = false;                                                               \
        return 0;                                                                    \
    }                                                                                \
    static int at##i##_end(void)                                                     \
    {                                                                                \
        return into ? 0 : behind[i]->end();                                          \
    }
SPANS(0)
SPANS(1)

#define MEMBERS(i)                                                                    \
    {                                                                                 \
        .upload = at##i##_upload, .download = at##i##_download, .copy = at##i##_copy, \
        .zero = at##i##_zero, .prefetch = at##i##_prefetch, .begin = at##i##_begin,   \
        .end = at##i##_end, PL_OPS(PL_OP_MEMBER, at##i##_)                            \
    }

const struct pl_device *pl_timed_device(int i, const struct pl_device *device)
{
    static const struct pl_device members[PL_TIMED_DEVICES] = {MEMBERS(0), MEMBERS(1)};
    struct pl_device made = members[i];
    made.name = device->name;
    made.summary = device->summary;
    made.host_memory = device->host_memory;
    made.real_bytes = device->real_bytes;
    made.precision = device->precision;
    made.open = device->open;
    made.close = device->close;
    made.describe = device->describe;
    made.alloc = device->alloc;
    made.release = device->release;
    made.wait = device->wait;
    made.twin = device->twin; /* its operations are in a lap's time, not in the table */
    if (!device->begin) {
        made.begin = NULL;
        made.end = NULL;
    }
    behind[i] = device;
    front[i] = made;
    return &front[i];
}

void pl_timed_into(struct pl_timed_table *table)
{
    into = table;
}
