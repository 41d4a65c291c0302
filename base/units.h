/* Units in literals ("18.5 ms", "80 GB") and the only place where seconds become ticks.
 */
#ifndef PL_BASE_UNITS_H
#define PL_BASE_UNITS_H

#include <stddef.h>
#include <stdint.h>

typedef int64_t pl_tick; /* picoseconds; int64 ends at 106 days */

/* Parse a duration (ps ns us ms s min h; "18.5ms" and "18.5 ms"; plain 0 needs no unit)
 * into ticks, rounded to the nearest. Decimal digits are converted exactly.
 * Errors: PL_ECONFIG, message without file or line (the caller adds them). */
int pl_units_time(const char *text, pl_tick *ticks);

/* Parse bytes (B kB MB GB TB, KiB MiB GiB TiB) and rates (bit/s kbit/s ... B/s ...
 * GB/s; result in bytes per second). Errors as above. */
int pl_units_bytes(const char *text, uint64_t *bytes);
int pl_units_rate(const char *text, double *bytes_per_s);

/* Human text for a duration in seconds ("18.52 ms") / bytes ("1.2 GiB"), into buf;
 * returns buf. n >= 24. */
char *pl_units_format_time(double seconds, char *buf, size_t n);
char *pl_units_format_bytes(double bytes, char *buf, size_t n);

/* Exact text of ticks >= 0 ("18.522 ms"), which pl_units_time reads back to the same
 * ticks; into buf; returns buf. n >= 32. */
char *pl_units_exact_time(pl_tick ticks, char *buf, size_t n);

static inline double pl_seconds(pl_tick ticks)
{
    return (double)ticks * 1e-12;
}

#endif
