/* ref: routing to experts, and the weighted sum of what they return. Sums in double. */
#include "gpu/groups.h"
#include "gpu/ref.h"

#include <math.h>

static double log_sum_exp(const float *z, int n)
{
    double max = z[0], sum = 0;
    for (int i = 1; i < n; i++) max = z[i] > max ? z[i] : max;
    for (int i = 0; i < n; i++) sum += exp(z[i] - max);
    return max + log(sum);
}

static void score_row(const struct pl_routing *route, const float *z, float *s)
{
    double lse = route->sigmoid ? 0 : log_sum_exp(z, route->experts);
    for (int i = 0; i < route->experts; i++)
        s[i] = (float)(route->sigmoid ? 1 / (1 + exp(-(double)z[i])) : exp(z[i] - lse));
}

static bool is_chosen(const int32_t *expert, int n, int i)
{
    for (int j = 0; j < n; j++)
        if (expert[j] == i) return true;
    return false;
}

/* s + bias of an expert; a NaN chooses last. */
static double key_of(const float *s, const float *bias, int i)
{
    double key = (double)s[i] + (bias ? bias[i] : 0);
    return isnan(key) ? -INFINITY : key;
}

/* The expert that follows (key, last) in the order of falling keys, rising numbers;
 * last < 0: the first. */
static int next_expert(const struct pl_routing *route, const float *s,
                       const float *bias, double key, int last)
{
    int best = -1;
    double most = 0;
    for (int i = 0; i < route->experts; i++) {
        double own = key_of(s, bias, i);
        bool follows = last < 0 || own < key || (own == key && i > last);
        if (!follows || (best >= 0 && own <= most)) continue;
        best = i;
        most = own;
    }
    return best;
}

/* The chosen experts of a row and their weights. */
static void choose(const struct pl_routing *route, const float *s, const float *bias,
                   int32_t *expert, float *weight)
{
    double sum = 1e-20, key = 0;
    int last = -1;
    for (int j = 0; j < route->chosen; j++) {
        last = next_expert(route, s, bias, key, last);
        key = key_of(s, bias, last);
        expert[j] = last;
        sum += s[last];
    }
    for (int j = 0; j < route->chosen; j++)
        weight[j] =
            (float)(s[expert[j]] * (double)route->scale / (route->normed ? sum : 1));
}

/* Loads, then slots: the rows of expert 0 first, in order. */
static void sort_rows(const struct pl_routing *route)
{
    const int E = route->experts, k = route->chosen, n = route->rows * k;
    const int groups = route->rows / route->group;
    int32_t *total = route->load + (size_t)groups * (size_t)E, next = 0;
    for (int i = 0; i < (groups + 1) * E; i++) route->load[i] = 0;
    for (int i = 0; i < n; i++) {
        route->load[i / k / route->group * E + route->expert[i]]++;
        total[route->expert[i]]++;
    }
    for (int e = 0; e < E; e++)
        for (int i = 0; i < n; i++) {
            if (route->expert[i] != e) continue;
            route->of_slot[next] = i / k;
            route->slot[i] = next++;
        }
}

/* E / (k group) / rows times the coefficient: what a choice of an expert in a row's
 * group weighs per unit of the row's probability of it. */
static double balance_factor(const struct pl_routing *route)
{
    return (double)route->balance * route->experts /
           ((double)route->chosen * route->group * route->rows);
}

static const int32_t *group_load(const struct pl_routing *route, int r)
{
    return route->load + (size_t)(r / route->group) * (size_t)route->experts;
}

static double row_sum(const float *x, int n)
{
    double sum = 0;
    for (int i = 0; i < n; i++) sum += x[i];
    return sum;
}

/* sum_i load_i p_i, p = s / sum s. */
static double row_load(const struct pl_routing *route, int r)
{
    const int E = route->experts;
    const float *s = route->score + (size_t)r * (size_t)E;
    double sum = 0, all = route->sigmoid ? row_sum(s, E) : 1;
    for (int i = 0; i < E; i++) sum += group_load(route, r)[i] * s[i] / all;
    return sum;
}

int pl_ref_route(const struct pl_routing *route, const float *logits, const float *bias,
                 double *terms)
{
    const int E = route->experts, k = route->chosen;
    for (int r = 0; r < route->rows; r++) {
        float *s = route->score + (size_t)r * (size_t)E;
        score_row(route, logits + (size_t)r * (size_t)E, s);
        choose(route, s, bias, route->expert + (size_t)r * (size_t)k,
               route->weight + (size_t)r * (size_t)k);
    }
    sort_rows(route);
    for (int r = 0; r < route->rows; r++) {
        if (route->balance != 0) terms[0] += balance_factor(route) * row_load(route, r);
        if (route->z != 0)
            terms[1] += route->z / route->rows *
                        pow(log_sum_exp(logits + (size_t)r * (size_t)E, E), 2);
    }
    return 0;
}

/* What dweight says of the score of expert i: weight = c s / S gives
 * c / S (dw_j - sum_l dw_l s_l / S), without norming c dw_j. */
static double chosen_back(const struct pl_routing *route, int r, int i,
                          const float *dweight)
{
    const int32_t *expert = route->expert + (size_t)r * (size_t)route->chosen;
    const float *s = route->score + (size_t)r * (size_t)route->experts;
    double sum = 1e-20, along = 0, own = 0;
    if (!is_chosen(expert, route->chosen, i)) return 0;
    for (int j = 0; j < route->chosen; j++) {
        sum += s[expert[j]];
        along += (double)dweight[j] * s[expert[j]];
        if (expert[j] == i) own = dweight[j];
    }
    return route->scale * (route->normed ? (own - along / sum) / sum : own);
}

/* With a_i = balance factor * load_i = dL/dp_i and t_i from the weights: softmax
 * dz_i = s_i (g_i - sum_l g_l s_l), g = a + t; sigmoid, p = s / S:
 * dz_i = s_i (1 - s_i) (t_i + (a_i - sum_l a_l p_l) / S). The z term adds
 * 2 z lse / rows softmax_i. */
static void back_row(const struct pl_routing *route, int r, const float *z,
                     const float *dweight, double factor, float *dz)
{
    const int E = route->experts;
    const float *s = route->score + (size_t)r * (size_t)E;
    const double all = route->sigmoid ? row_sum(s, E) : 1;
    const double a = factor * balance_factor(route);
    double along = a * row_load(route, r), lse = log_sum_exp(z, E);
    for (int i = 0; i < E && !route->sigmoid; i++)
        along += chosen_back(route, r, i, dweight) * s[i];
    for (int i = 0; i < E; i++) {
        double own = a * group_load(route, r)[i];
        double t = chosen_back(route, r, i, dweight), g;
        if (route->sigmoid)
            g = s[i] * (1.0 - s[i]) * (t + (own - along) / all);
        else
            g = s[i] * (own + t - along);
        g += factor * route->z * 2 * lse / route->rows * exp(z[i] - lse);
        dz[i] = (float)g;
    }
}

int pl_ref_route_back(const struct pl_routing *route, const float *logits,
                      const float *dweight, double factor, float *dlogits, float *dbias)
{
    const size_t E = (size_t)route->experts, k = (size_t)route->chosen;
    for (int r = 0; r < route->rows; r++)
        back_row(route, r, logits + (size_t)r * E, dweight + (size_t)r * k,
                 (float)factor, dlogits + (size_t)r * E);
    if (dbias) pl_routing_excess(route, factor, dbias);
    return 0;
}

int pl_ref_product_groups(enum pl_product which, const struct pl_groups *groups, int in,
                          int out, const float *a, const float *b, const float *bias,
                          float *c)
{
    return pl_groups_product(pl_ref_product, which, groups, in, out, a, b, bias, c);
}

int pl_ref_bias_groups_back(const struct pl_groups *groups, int d, const float *dy,
                            float *db)
{
    return pl_groups_bias_back(pl_ref_add_rows_back, groups, d, dy, db);
}

int pl_ref_combine(int rows, int n, int d, const int32_t *slot, const float *w,
                   const float *x, const float *addend, float *y)
{
    for (int r = 0; r < rows; r++, y += d)
        for (int i = 0; i < d; i++) {
            double sum = addend ? addend[(size_t)r * (size_t)d + (size_t)i] : 0;
            for (int j = 0; j < n; j++) {
                size_t e = (size_t)r * (size_t)n + (size_t)j;
                sum +=
                    (w ? (double)w[e] : 1) * x[(size_t)slot[e] * (size_t)d + (size_t)i];
            }
            y[i] = (float)sum;
        }
    return 0;
}

int pl_ref_combine_back(int rows, int n, int d, const int32_t *slot, const float *w,
                        const float *x, const float *dy, float *dx, float *dw)
{
    for (int e = 0; e < rows * n; e++) {
        const float *from = dy + (size_t)(e / n) * (size_t)d;
        size_t at = (size_t)slot[e] * (size_t)d;
        double sum = 0;
        for (int i = 0; i < d; i++) {
            dx[at + (size_t)i] = (float)((double)w[e] * from[i]);
            sum += (double)x[at + (size_t)i] * from[i];
        }
        dw[e] = (float)sum;
    }
    return 0;
}
