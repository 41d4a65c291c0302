/* Parts of sim/work.c: each fills its members of a zeroed struct pl_work. */
#ifndef PL_SIM_WORK_PARTS_H
#define PL_SIM_WORK_PARTS_H

#include "sim/work.h"

struct pl_work_case {
    const struct pl_model *model;
    const struct pl_parallel *parallel;
    enum pl_block block;
    bool moe;      /* a layer with experts */
    double tokens; /* of a microbatch on one GPU: b s / cp */
    double b, s;
    double t;     /* tp */
    double shard; /* tp with sequence parallelism, else 1 */
    int n;
    struct pl_weight weight[PL_MAX_WEIGHTS];
};

/* Width of one rank's output and input. */
double pl_work_out(const struct pl_work_case *c, const struct pl_weight *w);
double pl_work_in(const struct pl_work_case *c, const struct pl_weight *w);
bool pl_work_is_layer(const struct pl_work_case *c);

void pl_work_products(const struct pl_work_case *c, struct pl_work *out);
void pl_work_activations(const struct pl_work_case *c, struct pl_work *out);
void pl_work_traffic(const struct pl_work_case *c, struct pl_work *out);
void pl_work_exchanges(const struct pl_work_case *c, struct pl_work *out);

#endif
