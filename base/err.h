/* Errors: a fallible function returns a negative code; the message is already set.
 * Messages are thread-local and owned by this module; nobody prints them except cli/.
 */
#ifndef PL_BASE_ERR_H
#define PL_BASE_ERR_H

#include <stddef.h>

/* The one list of codes: name, value, exit status, text. */
#define PL_ERRORS(X)                                              \
    X(PL_EUSAGE, -1, 2, "bad usage")                              \
    X(PL_ECONFIG, -2, 2, "bad configuration")                     \
    X(PL_EINPUT, -3, 2, "input missing, unreadable or malformed") \
    X(PL_EUNSUP, -4, 2, "combination not supported")              \
    X(PL_EIO, -5, 1, "output or system call failed")              \
    X(PL_ENODEV, -6, 2, "no such device")                         \
    X(PL_EDEVICE, -7, 1, "device failed")                         \
    X(PL_EMEM, -8, 1, "device memory exhausted")                  \
    X(PL_EDEADLOCK, -9, 1, "schedule cannot execute")             \
    X(PL_EINTR, -10, 130, "interrupted")                          \
    X(PL_ECHECK, -11, 3, "check failed")

enum pl_error {
    PL_OK = 0,
#define X(name, value, status, text) name = value,
    PL_ERRORS(X)
#undef X
};

/* pl_fail - the only way to raise an error: format the message, return code.
 * Form: "file:line: what is wrong, what was expected", lower case, no full stop.
 * Control characters are escaped: a message is one line. */
int pl_fail(int code, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Message of this thread's latest pl_fail; never NULL; valid until the next one. */
const char *pl_error_text(void);

/* Exit status for a return code (0 -> 0; see PL_ERRORS). */
int pl_exit_status(int code);

/* pl_nearest - the entry of names (NULL-terminated) closest to name in edit distance,
 * or NULL when none is within half of its length. Borrowed from names. */
const char *pl_nearest(const char *name, const char *const *names);

/* pl_fail_unknown - raise "WHERE: unknown WHAT 'name', did you mean 'x'?", or when no
 * name is near "WHERE: unknown WHAT 'name', expected one of: ...". */
int pl_fail_unknown(int code, const char *where, const char *what, const char *name,
                    const char *const *names);

#endif
