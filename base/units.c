#include "base/units.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"

__extension__ typedef unsigned __int128 u128;

/* One unit = factor * 10^exponent base units (picoseconds, bytes, bytes per 8 seconds).
 */
struct unit {
    const char *name;
    uint64_t factor;
    int exponent;
};

static const struct unit times[] = {
    {"ps", 1, 0}, {"ns", 1, 3},    {"us", 1, 6},    {"ms", 1, 9},
    {"s", 1, 12}, {"min", 60, 12}, {"h", 3600, 12}, {NULL, 0, 0},
};
static const struct unit sizes[] = {
    {"B", 1, 0},
    {"kB", 1, 3},
    {"MB", 1, 6},
    {"GB", 1, 9},
    {"TB", 1, 12},
    {"KiB", UINT64_C(1) << 10, 0},
    {"MiB", UINT64_C(1) << 20, 0},
    {"GiB", UINT64_C(1) << 30, 0},
    {"TiB", UINT64_C(1) << 40, 0},
    {NULL, 0, 0},
};
static const struct unit rates[] = {
    {"bit/s", 1, 0},   {"kbit/s", 1, 3}, {"Mbit/s", 1, 6}, {"Gbit/s", 1, 9},
    {"Tbit/s", 1, 12}, {"B/s", 8, 0},    {"kB/s", 8, 3},   {"MB/s", 8, 6},
    {"GB/s", 8, 9},    {"TB/s", 8, 12},  {NULL, 0, 0},
};

/* A decimal literal: mantissa * 10^exponent, then text that is not part of the number.
 */
struct decimal {
    u128 mantissa;
    int exponent;
    const char *end;
};

enum { MAX_DIGITS = 25, MAX_EXPONENT = 9999 };

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* Digits past MAX_DIGITS only move the exponent: they lie far below any unit's last
 * place, and rounding half up needs no sticky bit. */
static bool decimal_read(const char *text, struct decimal *number)
{
    const char *p = text;
    int digits = 0, significant = 0, exponent = 0;
    u128 mantissa = 0;
    for (bool fraction = false; is_digit(*p) || (*p == '.' && !fraction); p++) {
        if (*p == '.') {
            fraction = true;
            continue;
        }
        digits++;
        if (significant < MAX_DIGITS) {
            mantissa = mantissa * 10 + (unsigned)(*p - '0');
            significant += mantissa != 0;
            exponent -= fraction && exponent > -MAX_EXPONENT;
        } else {
            exponent += !fraction && exponent < MAX_EXPONENT;
        }
    }
    if (!digits) return false;
    if (*p == 'e' || *p == 'E') {
        const char *q = p + 1;
        int sign = *q == '-' ? -1 : 1, power = 0;
        if (*q == '-' || *q == '+') q++;
        if (is_digit(*q)) {
            for (; is_digit(*q); q++)
                if (power < MAX_EXPONENT) power = power * 10 + (*q - '0');
            exponent += sign * power;
            p = q;
        }
    }
    *number = (struct decimal){mantissa, exponent, p};
    return true;
}

/* number * unit in base units, rounded half up; false on overflow of limit. below is
 * set when the value is nonzero and less than one base unit. */
static bool scale(u128 mantissa, int exponent, uint64_t limit, uint64_t *value,
                  bool *below)
{
    *below = false;
    *value = 0;
    if (mantissa == 0) return true;
    for (; exponent > 0; exponent--) {
        if (mantissa > limit) return false;
        mantissa *= 10;
    }
    unsigned last = 0;
    for (; exponent < 0 && (mantissa || last); exponent++) {
        last = (unsigned)(mantissa % 10);
        mantissa /= 10;
    }
    *below = mantissa == 0;
    mantissa += last >= 5;
    if (mantissa > limit) return false;
    *value = (uint64_t)mantissa;
    return true;
}

static int fail_missing(const char *text, const struct unit *units)
{
    char list[128] = "";
    for (; units->name; units++) {
        size_t used = strlen(list);
        snprintf(list + used, sizeof list - used, "%s%s", used ? " " : "", units->name);
    }
    return pl_fail(PL_ECONFIG, "'%s' has no unit, expected one of: %s", text, list);
}

/* Split text into number and unit. what names the quantity in messages. */
static int literal_read(const char *text, const struct unit *units, const char *what,
                        struct decimal *number, const struct unit **unit)
{
    while (*text == ' ') text++;
    if (*text == '-')
        return pl_fail(PL_ECONFIG, "'%s' is negative, expected a %s >= 0", text, what);
    if (!decimal_read(text, number))
        return pl_fail(PL_ECONFIG,
                       "'%s' is not a %s, expected a number and a unit, such as "
                       "'1.5 %s'",
                       text, what, units[3].name);
    const char *p = number->end;
    while (*p == ' ') p++;
    size_t n = strlen(p);
    while (n && p[n - 1] == ' ') n--;
    if (!n) {
        if (number->mantissa) return fail_missing(text, units);
        *unit = units;
        return 0;
    }
    const char *names[16];
    int count = 0;
    for (const struct unit *u = units; u->name; u++) {
        names[count++] = u->name;
        if (strlen(u->name) == n && !strncmp(u->name, p, n)) {
            *unit = u;
            return 0;
        }
    }
    names[count] = NULL;
    char where[80], name[40];
    snprintf(where, sizeof where, "'%.60s'", text);
    snprintf(name, sizeof name, "%.*s", (int)(n < 32 ? n : 32), p);
    return pl_fail_unknown(PL_ECONFIG, where, "unit", name, names);
}

static int exact_read(const char *text, const struct unit *units, const char *what,
                      uint64_t limit, uint64_t *value)
{
    struct decimal number;
    const struct unit *unit;
    bool below;
    int rc = literal_read(text, units, what, &number, &unit);
    if (rc) return rc;
    uint64_t result;
    if (!scale(number.mantissa * unit->factor, number.exponent + unit->exponent, limit,
               &result, &below))
        return pl_fail(PL_ECONFIG, "'%s' is too long a %s, the most is %" PRIu64 " %s",
                       text, what, limit, units[0].name);
    if (below)
        return pl_fail(PL_ECONFIG, "'%s' is smaller than 1 %s", text, units[0].name);
    *value = result;
    return 0;
}

int pl_units_time(const char *text, pl_tick *ticks)
{
    uint64_t value;
    int rc = exact_read(text, times, "duration", INT64_MAX, &value);
    if (rc) return rc;
    *ticks = (pl_tick)value;
    return 0;
}

int pl_units_bytes(const char *text, uint64_t *bytes)
{
    return exact_read(text, sizes, "size", UINT64_MAX, bytes);
}

int pl_units_rate(const char *text, double *bytes_per_s)
{
    struct decimal number;
    const struct unit *unit;
    int rc = literal_read(text, rates, "rate", &number, &unit);
    if (rc) return rc;
    double value =
        strtod(text, NULL) * pow(10, unit->exponent) * (double)unit->factor / 8;
    if (!isfinite(value)) return pl_fail(PL_ECONFIG, "'%s' is too high a rate", text);
    *bytes_per_s = value;
    return 0;
}

char *pl_units_format_time(double seconds, char *buf, size_t n)
{
    static const struct {
        const char *name;
        double size;
    } units[] = {{"h", 3600},  {"min", 60},  {"s", 1},     {"ms", 1e-3},
                 {"us", 1e-6}, {"ns", 1e-9}, {"ps", 1e-12}};
    enum { N = sizeof units / sizeof units[0] };
    assert(n >= 24);
    int i = 2;
    if (seconds != 0 && isfinite(seconds)) {
        /* 0.99995: what four digits would round up to the next unit is printed in it */
        for (i = 0; i < N - 1 && fabs(seconds) < 0.99995 * units[i].size;) i++;
    }
    snprintf(buf, n, "%.4g %s", seconds / units[i].size, units[i].name);
    return buf;
}

char *pl_units_format_bytes(double bytes, char *buf, size_t n)
{
    static const char *const names[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
    assert(n >= 24);
    int i = 0;
    for (; i < 6 && fabs(bytes) >= (i ? 1023.95 : 1023.5); i++) bytes /= 1024;
    if (fabs(bytes) < 1e6)
        snprintf(buf, n, "%.*f %s", i ? 1 : 0, bytes, names[i]);
    else
        snprintf(buf, n, "%.4g %s", bytes, names[i]);
    return buf;
}

char *pl_units_exact_time(pl_tick ticks, char *buf, size_t n)
{
    assert(ticks >= 0 && n >= 32);
    int i = 4; /* s, ms, us, ns, ps: powers of ten, so that the fraction ends */
    pl_tick size = 1000000000000;
    for (; i > 0 && ticks < size; i--) size /= 1000;
    int used = snprintf(buf, n, "%" PRId64, ticks / size);
    if (ticks % size) {
        used +=
            snprintf(buf + used, n - (size_t)used, ".%0*" PRId64, 3 * i, ticks % size);
        while (buf[used - 1] == '0') used--;
    }
    snprintf(buf + used, n - (size_t)used, " %s", times[i].name);
    return buf;
}
