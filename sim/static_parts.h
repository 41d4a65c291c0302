/* Inside of the static sweep. Internal to sim/: static.c, static_room.c. */
#ifndef PL_SIM_STATIC_PARTS_H
#define PL_SIM_STATIC_PARTS_H

#include "sim/static.h"
#include "sim/turns.h"

struct device {
    const struct pl_op *next, *stop;
    pl_tick free_at;
    const pl_tick *wait; /* the input that it is left alone for */
    int waiting;    /* instances whose own gradients of their next U are complete */
    int first;      /* its lowest instance */
    int64_t update; /* place of its next U in ends */
    bool parked;    /* left alone until a group of gradients is complete */
};

struct instance {
    pl_tick time[PL_N_OP];
    pl_tick *activation, *gradient;   /* [n_micro] its inputs: 0 or 1 + arrival */
    pl_tick *next_input, *prev_input; /* [n_micro] where its results go, or NULL */
    pl_tick ahead, behind;            /* transfers to there */
    int32_t ahead_device, behind_device;
    int64_t from, version; /* group of the last F: first microbatch, version it reads */
    int64_t done_from;     /* group of the last weight gradient: first microbatch */
    int64_t updated;       /* U done */
    int32_t *own;          /* weight gradients missing here, of that group */
    int32_t chunk, device, next;
};

/* Gradients that a U waits for. */
struct group {
    int64_t left;
    pl_tick latest;
};

struct pl_static_room {
    size_t devices, instances, inputs, groups, owns, readies, ops, updates; /* sizes */
    struct device *device;
    struct instance *instance;
    pl_tick *activation, *gradient; /* [instances * n_micro] 0 or 1 + arrival */
    struct group *group;            /* [chunks * updates], with a barrier [updates] */
    int32_t *own;                   /* [instances * updates] */
    int32_t *ready;                 /* [P] */
};

struct sweep {
    const struct pl_schedule *sched;
    const struct pl_cost *cost;
    bool barrier;
    int P, C, Q;
    int64_t m, updates, n_micro;
    struct pl_static_room *room;
    struct device *device;
    struct instance *instance;
    struct pl_ends *ends;
    pl_tick *end;
    const struct pl_op *ops;
    int32_t *ready; /* [P] devices that may go on */
    int n_ready;
};

static inline struct group *group_of(const struct sweep *s, const struct instance *q,
                                     int64_t g)
{
    return &s->room->group[s->barrier ? g : q->chunk * s->updates + g];
}

static inline int32_t *own_of(const struct sweep *s, const struct instance *q,
                              int64_t g)
{
    return &s->room->own[(q - s->instance) * s->updates + g];
}

/* Everything of a sweep but sched, cost and barrier, in the room that ends keeps. */
void pl_static_prepare(struct sweep *sweep, struct pl_ends *ends);
/* The scratch alone; the ends stay. */
void pl_static_room_free(struct pl_ends *ends);

#endif
