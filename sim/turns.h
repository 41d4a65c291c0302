/* When each device wants to be looked at next: a tournament tree with one leaf a device
 * and the earliest (time, device) at the root. A change costs log2 P steps without a
 * branch on data. Internal to sim/; the owner calls turns_free. */
#ifndef PL_SIM_TURNS_H
#define PL_SIM_TURNS_H

#include <stdbool.h>
#include <stdlib.h>

#include "base/mem.h"
#include "base/units.h"

#define PL_NEVER INT64_MAX

struct turns {
    size_t leaves;   /* a power of two */
    pl_tick *time;   /* [2 * leaves] time[1] is the root, time[leaves + d] device d */
    int32_t *device; /* [2 * leaves] whose time it is */
};

static inline void turns_new(struct turns *turns, int devices)
{
    turns->leaves = 1;
    while (turns->leaves < (size_t)devices) turns->leaves *= 2;
    turns->time = PL_NEW(2 * turns->leaves, pl_tick);
    turns->device = PL_NEW(2 * turns->leaves, int32_t);
    for (size_t i = 0; i < 2 * turns->leaves; i++) turns->time[i] = PL_NEVER;
}

static inline void turns_free(struct turns *turns)
{
    free(turns->time);
    free(turns->device);
}

static inline void turns_set(struct turns *turns, int device, pl_tick time)
{
    size_t i = turns->leaves + (size_t)device;
    int32_t who = device;
    turns->time[i] = time;
    turns->device[i] = who;
    for (; i > 1; i /= 2) {
        pl_tick other = turns->time[i ^ 1];
        int32_t other_who = turns->device[i ^ 1];
        bool lose = other - (pl_tick)(i & 1) < time; /* equal: the left, lower, wins */
        time = lose ? other : time;
        who = lose ? other_who : who;
        turns->time[i / 2] = time;
        turns->device[i / 2] = who;
    }
}

/* The earliest time and, of its devices, the lowest. */
static inline pl_tick turns_time(const struct turns *turns)
{
    return turns->time[1];
}

static inline int turns_device(const struct turns *turns)
{
    return turns->device[1];
}

#endif
