/* Messages and progress, both on stderr. stdout belongs to results. */
#ifndef PL_BASE_LOG_H
#define PL_BASE_LOG_H

#include <stdbool.h>

enum pl_log_level { PL_LOG_ERROR, PL_LOG_WARN, PL_LOG_INFO, PL_LOG_DEBUG };

void pl_log_set_level(enum pl_log_level level); /* default PL_LOG_INFO */
/* One line "pipelag: text"; warnings say "pipelag: warning: text". */
void pl_log(enum pl_log_level level, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Progress of a long job: on a terminal a bar with rate and ETA, redrawn at most 10
 * times a second; elsewhere a plain line at most every 10 s. One at a time. */
void pl_progress_begin(const char *label, double total, const char *unit);
void pl_progress_update(double done, const char *note); /* note may be NULL */
void pl_progress_end(void);

/* Seconds since the start of the process, monotonic; for progress only, never results.
 */
double pl_clock(void);

#endif
