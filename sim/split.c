/* Balanced cuts: the optimal contiguous partition by dynamic programming.
 *   best[c][j] = min over i of max(best[c-1][i], S(j) - S(i)),
 * the first term grows with i, the second falls: their crossing is found by bisection.
 * Then, with that bound on every part, the least sum of squares the same way.
 * Source: Narayanan et al. SOSP'19 (PipeDream), section 3.1; text-book linear
 * partition. */
#include "sim/split.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/mem.h"
#include "sim/split_layout.h"

/* Sum of costs[i .. j-1] from prefix sums. */
static double part(const double *sum, int i, int j)
{
    return sum[j] - sum[i];
}

/* best[j], parts of at least one entry: from c-1 parts to c parts. */
static void add_part(const double *sum, int n, int c, const double *before,
                     double *after)
{
    for (int j = c; j <= n; j++) {
        int low = c - 1, high = j - 1; /* start of the last part */
        while (low < high) {
            int i = low + (high - low) / 2;
            if (before[i] >= part(sum, i, j))
                high = i;
            else
                low = i + 1;
        }
        after[j] = fmax(before[low], part(sum, low, j));
        if (low > c - 1)
            after[j] = fmin(after[j], fmax(before[low - 1], part(sum, low - 1, j)));
    }
}

static double least_bound(const double *sum, int n, int C)
{
    double *a = PL_NEW(n + 1, double), *b = PL_NEW(n + 1, double);
    for (int j = 0; j <= n; j++) a[j] = j ? part(sum, 0, j) : INFINITY;
    for (int c = 2; c <= C; c++) {
        for (int j = 0; j <= n; j++) b[j] = INFINITY;
        add_part(sum, n, c, a, b);
        double *swap = a;
        a = b;
        b = swap;
    }
    double bound = a[n];
    free(a);
    free(b);
    return bound;
}

/* Least sum of squares with no part above bound; start[c][j]: where the last of c parts
 * of the first j entries starts. */
static void least_squares(const double *sum, int n, int C, double bound, int *first)
{
    size_t row = (size_t)n + 1;
    int *start = PL_NEW((size_t)(C + 1) * row, int);
    double *a = PL_NEW(row, double), *b = PL_NEW(row, double);
    for (int j = 1; j <= n; j++) a[j] = INFINITY;
    for (int c = 1; c <= C; c++) {
        b[0] = INFINITY;
        for (int j = 1; j <= n; j++) {
            b[j] = INFINITY;
            /* from the shortest last part: on equal sums the larger parts come first */
            for (int i = j - 1; i >= c - 1 && part(sum, i, j) <= bound; i--) {
                double value = a[i] + part(sum, i, j) * part(sum, i, j);
                if (value >= b[j]) continue;
                b[j] = value;
                start[(size_t)c * row + (size_t)j] = i;
            }
        }
        double *swap = a;
        a = b;
        b = swap;
    }
    first[C] = n;
    for (int c = C; c > 0; c--)
        first[c - 1] = start[(size_t)c * row + (size_t)first[c]];
    free(start);
    free(a);
    free(b);
}

void pl_split_balance(const double *cost, int n, int C, int *first, double *largest)
{
    double *sum = PL_NEW(n + 1, double);
    for (int i = 0; i < n; i++) sum[i + 1] = sum[i] + cost[i];
    double bound = least_bound(sum, n, C);
    least_squares(sum, n, C, bound, first);
    if (largest) *largest = bound;
    free(sum);
}

/* Layers first[c] - 1 .. of entries that start with the embedding and end with the
 * head. */
static void from_entries(const int *first, int C, int layers, struct pl_chunk *chunk)
{
    for (int c = 0; c < C; c++) {
        int from = first[c] > 0 ? first[c] - 1 : 0;
        int to = first[c + 1] - 1 < layers ? first[c + 1] - 1 : layers;
        chunk[c] = (struct pl_chunk){from, to - from, c == 0, c == C - 1, 0};
    }
}

static int split_balanced(const struct pl_model *m, int C, const double *cost,
                          struct pl_chunk *chunk)
{
    int n = m->layers + 2;
    if (C > n)
        return pl_fail(PL_ECONFIG,
                       "model.split: %d stages for %d layers, embedding and head, "
                       "expected at most %d",
                       C, m->layers, n);
    int rc = pl_memory_check((double)(C + 1) * (n + 1) * sizeof(int), "model.split");
    if (rc) return rc;
    int *first = PL_NEW(C + 1, int);
    pl_split_balance(cost, n, C, first, NULL);
    from_entries(first, C, m->layers, chunk);
    free(first);
    return PL_OK;
}

static int split_uniform(const struct pl_model *m, int C, struct pl_chunk *chunk)
{
    int *first = PL_NEW(C + 1, int);
    int rc = pl_model_split(m, C, first);
    for (int c = 0; c < C && !rc; c++)
        chunk[c] =
            (struct pl_chunk){first[c], first[c + 1] - first[c], c == 0, c == C - 1, 0};
    free(first);
    return rc;
}

int pl_split_make(const char *text, const struct pl_model *model, int C,
                  const double *cost, struct pl_chunk *chunk)
{
    if (C < 1) return pl_fail(PL_ECONFIG, "model.split: %d stages, expected 1", C);
    if (!strcmp(text, "uniform")) return split_uniform(model, C, chunk);
    if (!strcmp(text, "balanced")) return split_balanced(model, C, cost, chunk);
    return pl_split_layout(text, model, C, chunk);
}
