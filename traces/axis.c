#include "traces/axis.h"

#include <assert.h>
#include <math.h>

double pl_axis_step(double span, int n)
{
    assert(n >= 1);
    if (!(span > 0) || !isfinite(span)) return 1;
    static const double mantissa[] = {1, 2, 5, 10};
    double power = pow(10, floor(log10(span / n)));
    for (int i = 0; i < 4; i++)
        if (span / (mantissa[i] * power) <= n * (1 + 1e-9)) return mantissa[i] * power;
    return 20 * power;
}

const char *pl_axis_unit(double ps, double *per_unit)
{
    static const struct {
        const char *name;
        double ps;
    } units[] = {{"s", 1e12}, {"ms", 1e9}, {"us", 1e6}, {"ns", 1e3}, {"ps", 1}};
    int i = 0;
    while (i < 4 && ps < units[i].ps) i++;
    *per_unit = units[i].ps;
    return units[i].name;
}
