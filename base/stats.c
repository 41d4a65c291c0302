#include "base/stats.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

double pl_mean(const double *x, int n)
{
    assert(n >= 1);
    double sum = 0;
    for (int i = 0; i < n; i++) sum += x[i];
    return sum / n;
}

double pl_sd(const double *x, int n)
{
    if (n < 2) return 0;
    double mean = pl_mean(x, n), sum = 0;
    for (int i = 0; i < n; i++) sum += (x[i] - mean) * (x[i] - mean);
    return sqrt(sum / (n - 1));
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

double pl_quantile(const double *x, int n, double q)
{
    assert(n >= 1 && q >= 0 && q <= 1);
    double *sorted = PL_NEW(n, double);
    memcpy(sorted, x, (size_t)n * sizeof *x);
    qsort(sorted, (size_t)n, sizeof *sorted, compare);
    double place = q * (n - 1);
    int i = (int)place;
    double value = sorted[i];
    if (i + 1 < n) value += (place - i) * (sorted[i + 1] - value);
    free(sorted);
    return value;
}

/* P(|T| < t) for Student's T with df degrees of freedom.
 * Source: Abramowitz & Stegun, 26.7.3 and 26.7.4. */
static double within(double t, int df)
{
    double theta = atan(t / sqrt(df)), s = sin(theta), c2 = cos(theta) * cos(theta);
    int odd = df & 1;
    double term = odd ? cos(theta) : 1, sum = 0;
    for (int k = odd ? 1 : 0; k <= df - 2; k += 2) {
        sum += term;
        term *= c2 * (k + 1) / (k + 2);
    }
    return odd ? (theta + s * sum) * 2 / 3.14159265358979323846 : s * sum;
}

double pl_t95(const double *x, int n)
{
    if (n < 2) return NAN;
    double low = 1.9, high = 13; /* df = inf: 1.960; df = 1: 12.706 */
    for (int i = 0; i < 60; i++) {
        double middle = (low + high) / 2;
        if (within(middle, n - 1) < 0.95)
            low = middle;
        else
            high = middle;
    }
    return high * pl_sd(x, n) / sqrt(n);
}

double pl_crossing(const double *x, const double *y, int n, double level)
{
    for (int i = 0; i < n; i++) {
        if (!(y[i] <= level)) continue;
        /* a NaN before the crossing gives no line to interpolate on */
        if (i == 0 || isnan(y[i - 1]) || y[i] == level) return x[i];
        if (isinf(y[i - 1]) || isinf(y[i])) return x[i];
        return x[i - 1] + (x[i] - x[i - 1]) * (y[i - 1] - level) / (y[i - 1] - y[i]);
    }
    return NAN;
}

double pl_interpolate(const double *x, const double *y, int n, double x0)
{
    assert(n >= 1);
    if (x0 <= x[0]) return y[0];
    for (int i = 1; i < n; i++)
        if (x0 <= x[i]) {
            if (x0 == x[i]) return y[i];
            return y[i - 1] + (y[i] - y[i - 1]) * (x0 - x[i - 1]) / (x[i] - x[i - 1]);
        }
    return isnan(x0) ? x0 : y[n - 1];
}
