/* host: routing to experts, and the weighted sum of what they return; formulas as in
 * ref_moe.c. Included once for each instruction set, after host_layers.h. */
#ifndef PL_GPU_HOST_MOE_H
#define PL_GPU_HOST_MOE_H

#include "gpu/groups.h"

#include <string.h>

static float expert_key(const float *s, const float *bias, int i)
{
    float key = bias ? s[i] + bias[i] : s[i];
    return key == key ? key : -__builtin_inff();
}

/* The next in the order of falling keys, rising numbers. */
static int next_expert(int experts, const float *s, const float *bias, float key,
                       int last)
{
    int best = -1;
    float most = 0;
    for (int i = 0; i < experts; i++) {
        float own = expert_key(s, bias, i);
        if (last >= 0 && !(own < key || (own == key && i > last))) continue;
        if (best >= 0 && own <= most) continue;
        best = i;
        most = own;
    }
    return best;
}

static float score_row(const struct pl_routing *route, const float *z, float *s)
{
    const int E = route->experts;
    if (route->sigmoid) {
#pragma omp simd
        for (int i = 0; i < E; i++) s[i] = sigmoid_f(z[i]);
    } else {
        float scaled = 1 / row_exp(E, z, row_max(E, z), s);
#pragma omp simd
        for (int i = 0; i < E; i++) s[i] *= scaled;
    }
    return row_sum(E, s);
}

static void choose_experts(const struct pl_routing *route, const float *s,
                           const float *bias, int32_t *expert, float *weight)
{
    float sum = 1e-20f, key = 0;
    int last = -1;
    for (int j = 0; j < route->chosen; j++) {
        last = next_expert(route->experts, s, bias, key, last);
        key = expert_key(s, bias, last);
        expert[j] = last;
        sum += s[last];
    }
    float factor = route->normed ? route->scale / sum : route->scale;
    for (int j = 0; j < route->chosen; j++) weight[j] = s[expert[j]] * factor;
}

/* Loads, then slots by counting. While slots are given, the total loads hold the next
 * slot of each expert; then they are loads again. */
static void sort_by_expert(const struct pl_routing *route)
{
    const size_t E = (size_t)route->experts, k = (size_t)route->chosen;
    const size_t rows = (size_t)route->rows, groups = rows / (size_t)route->group;
    int32_t *total = route->load + groups * E, next = 0;
    memset(route->load, 0, sizeof *route->load * (groups + 1) * E);
    for (size_t r = 0; r < rows; r++)
        for (size_t j = 0; j < k; j++)
            route->load[r / (size_t)route->group * E +
                        (size_t)route->expert[r * k + j]]++;
    for (size_t e = 0; e < E; e++) {
        for (size_t g = 0; g < groups; g++) next += route->load[g * E + e];
        total[e] = next;
    }
    for (size_t i = rows * k; i-- > 0;) {
        int32_t slot = --total[route->expert[i]];
        route->slot[i] = slot;
        route->of_slot[slot] = (int32_t)(i / k);
    }
    for (size_t e = 0; e < E; e++)
        total[e] = (e + 1 < E ? total[e + 1] : next) - total[e];
}

static double host_balance(const struct pl_routing *route)
{
    return (double)route->balance * route->experts /
           ((double)route->chosen * route->group * route->rows);
}

static const int32_t *load_of_row(const struct pl_routing *route, int r)
{
    return route->load + (size_t)(r / route->group) * (size_t)route->experts;
}

/* sum_i load_i s_i. */
static float loaded_row(int experts, const int32_t *load, const float *s)
{
    float sum = 0;
#pragma omp simd reduction(+ : sum)
    for (int i = 0; i < experts; i++) sum += (float)load[i] * s[i];
    return sum;
}

static float row_lse(int n, const float *z)
{
    float max = row_max(n, z), sum = 0;
#pragma omp simd reduction(+ : sum)
    for (int i = 0; i < n; i++) sum += exp_f(z[i] - max);
    return max + (float)log((double)sum);
}

struct routing {
    const struct pl_routing *route;
    const float *logits, *bias, *dweight;
    float factor, *dlogits;
};

static void route_part(void *args, int part, size_t from, size_t to)
{
    const struct routing *p = args;
    const size_t E = (size_t)p->route->experts, k = (size_t)p->route->chosen;
    (void)part;
    for (size_t r = from; r < to; r++) {
        float *s = p->route->score + r * E;
        score_row(p->route, p->logits + r * E, s);
        choose_experts(p->route, s, p->bias, p->route->expert + r * k,
                       p->route->weight + r * k);
    }
}

int HOST(route)(const struct pl_routing *route, const float *logits, const float *bias,
                double *terms)
{
    const int E = route->experts;
    const size_t width = (size_t)E;
    double balance = 0, square = 0;
    struct routing p = {.route = route, .logits = logits, .bias = bias};
    pl_host_rows((size_t)route->rows, width * (size_t)route->chosen, route_part, &p);
    sort_by_expert(route);
    for (int r = 0; r < route->rows && route->balance != 0; r++) {
        const float *s = route->score + (size_t)r * width;
        float all = route->sigmoid ? row_sum(E, s) : 1;
        balance += loaded_row(E, load_of_row(route, r), s) / all;
    }
    for (int r = 0; r < route->rows && route->z != 0; r++) {
        double lse = row_lse(E, logits + (size_t)r * width);
        square += lse * lse;
    }
    if (route->balance != 0) terms[0] += host_balance(route) * balance;
    if (route->z != 0) terms[1] += route->z / route->rows * square;
    return 0;
}

/* dz = gradient of the scores that the weights carry: 0 but for the chosen. */
static void chosen_row_back(const struct pl_routing *route, const int32_t *expert,
                            const float *s, const float *dweight, float *dz)
{
    float sum = 1e-20f, along = 0;
    memset(dz, 0, sizeof *dz * (size_t)route->experts);
    for (int j = 0; j < route->chosen; j++) {
        sum += s[expert[j]];
        along += dweight[j] * s[expert[j]];
    }
    for (int j = 0; j < route->chosen; j++)
        dz[expert[j]] = route->scale *
                        (route->normed ? (dweight[j] - along / sum) / sum : dweight[j]);
}

static void route_row_back(const struct pl_routing *route, int r, float factor,
                           const float *s, float *dz)
{
    const int E = route->experts;
    const int32_t *load = load_of_row(route, r);
    float a = factor * (float)host_balance(route), along = 0;
    if (route->sigmoid) {
        float all = 1 / row_sum(E, s);
        along = a * loaded_row(E, load, s) * all;
#pragma omp simd
        for (int i = 0; i < E; i++)
            dz[i] = s[i] * (1 - s[i]) * (dz[i] + (a * (float)load[i] - along) * all);
        return;
    }
#pragma omp simd reduction(+ : along)
    for (int i = 0; i < E; i++) along += (a * (float)load[i] + dz[i]) * s[i];
#pragma omp simd
    for (int i = 0; i < E; i++) dz[i] = s[i] * (a * (float)load[i] + dz[i] - along);
}

static void route_back_part(void *args, int part, size_t from, size_t to)
{
    const struct routing *p = args;
    const struct pl_routing *route = p->route;
    const int E = route->experts;
    const size_t width = (size_t)E, k = (size_t)route->chosen;
    const float z = 2 * p->factor * route->z / (float)route->rows;
    (void)part;
    for (size_t r = from; r < to; r++) {
        const float *s = route->score + r * width, *logit = p->logits + r * width;
        float *dz = p->dlogits + r * width;
        chosen_row_back(route, route->expert + r * k, s, p->dweight + r * k, dz);
        route_row_back(route, (int)r, p->factor, s, dz);
        if (route->z == 0) continue;
        float lse = row_lse(E, logit);
#pragma omp simd
        for (int i = 0; i < E; i++) dz[i] += z * lse * exp_f(logit[i] - lse);
    }
}

int HOST(route_back)(const struct pl_routing *route, const float *logits,
                     const float *dweight, double factor, float *dlogits, float *dbias)
{
    struct routing p = {.route = route, .logits = logits, .dweight = dweight};
    p.factor = (float)factor;
    p.dlogits = dlogits;
    pl_host_rows((size_t)route->rows, (size_t)route->experts, route_back_part, &p);
    if (dbias) pl_routing_excess(route, factor, dbias);
    return 0;
}

int HOST(product_groups)(enum pl_product which, const struct pl_groups *groups, int in,
                         int out, const float *a, const float *b, const float *bias,
                         float *c)
{
    return pl_groups_product(HOST(product), which, groups, in, out, a, b, bias, c);
}

int HOST(bias_groups_back)(const struct pl_groups *groups, int d, const float *dy,
                           float *db)
{
    return pl_groups_bias_back(HOST(add_rows_back), groups, d, dy, db);
}

struct combine {
    size_t n, d;
    const int32_t *slot;
    const float *w, *x, *addend, *dy;
    float *y, *dx, *dw;
};

static void combine_part(void *args, int part, size_t from, size_t to)
{
    const struct combine *p = args;
    const size_t d = p->d;
    (void)part;
    for (size_t r = from; r < to; r++) {
        float *y = p->y + r * d;
        if (!p->addend)
            memset(y, 0, d * sizeof *y);
        else if (p->addend != p->y)
            memcpy(y, p->addend + r * d, d * sizeof *y);
        for (size_t e = r * p->n; e < (r + 1) * p->n; e++) {
            const float *x = p->x + (size_t)p->slot[e] * d, weight = p->w ? p->w[e] : 1;
#pragma omp simd
            for (size_t i = 0; i < d; i++) y[i] += weight * x[i];
        }
    }
}

int HOST(combine)(int rows, int n, int d, const int32_t *slot, const float *w,
                  const float *x, const float *addend, float *y)
{
    struct combine p = {.n = (size_t)n, .d = (size_t)d, .slot = slot, .w = w, .x = x};
    p.addend = addend;
    p.y = y;
    pl_host_rows((size_t)rows, p.n * p.d, combine_part, &p);
    return 0;
}

static void combine_back_part(void *args, int part, size_t from, size_t to)
{
    const struct combine *p = args;
    const size_t d = p->d;
    (void)part;
    for (size_t e = from * p->n; e < to * p->n; e++) {
        const float *dy = p->dy + e / p->n * d;
        const size_t at = (size_t)p->slot[e] * d;
        float *dx = p->dx + at, weight = p->w[e];
#pragma omp simd
        for (size_t i = 0; i < d; i++) dx[i] = weight * dy[i];
        p->dw[e] = row_dot((int)d, p->x + at, dy);
    }
}

int HOST(combine_back)(int rows, int n, int d, const int32_t *slot, const float *w,
                       const float *x, const float *dy, float *dx, float *dw)
{
    struct combine p = {.n = (size_t)n, .d = (size_t)d, .slot = slot, .w = w, .x = x};
    p.dy = dy;
    p.dx = dx;
    p.dw = dw;
    pl_host_rows((size_t)rows, p.n * p.d, combine_back_part, &p);
    return 0;
}

#endif
