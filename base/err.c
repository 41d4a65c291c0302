#include "base/err.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static _Thread_local char message[2048];

/* Paths and keys in a message may hold anything; the message is one line of text. */
static void escape_controls(const char *text)
{
    size_t used = 0;
    for (; *text; text++) {
        unsigned char c = (unsigned char)*text;
        bool plain = c >= 0x20 && c != 0x7f;
        size_t room = sizeof message - used;
        int n = plain       ? snprintf(message + used, room, "%c", c)
                : c == '\n' ? snprintf(message + used, room, "\\n")
                : c == '\t' ? snprintf(message + used, room, "\\t")
                            : snprintf(message + used, room, "\\x%02x", c);
        if ((size_t)n >= room) break;
        used += (size_t)n;
    }
    message[used] = '\0';
}

int pl_fail(int code, const char *format, ...)
{
    char text[sizeof message]; /* arguments may point into message */
    va_list ap;
    va_start(ap, format);
    vsnprintf(text, sizeof text, format, ap);
    va_end(ap);
    escape_controls(text);
    return code;
}

const char *pl_error_text(void)
{
    return message;
}

int pl_exit_status(int code)
{
    switch (code) {
#define X(name, value, status, text) \
    case value:                      \
        return status;
        PL_ERRORS(X)
#undef X
    }
    return code < 0 ? 1 : 0;
}

/* Characters that differ in case alone are half as far apart as others. */
static size_t edit_distance(const char *a, const char *b)
{
    enum { MAX = 64 };
    size_t row[MAX + 1], na = strlen(a), nb = strlen(b);
    if (na > MAX || nb > MAX) return 2 * MAX;
    for (size_t j = 0; j <= nb; j++) row[j] = 2 * j;
    for (size_t i = 1; i <= na; i++) {
        size_t diagonal = row[0];
        row[0] = 2 * i;
        for (size_t j = 1; j <= nb; j++) {
            const char x = a[i - 1], y = b[j - 1];
            size_t best =
                diagonal + (x == y ? 0
                            : tolower((unsigned char)x) == tolower((unsigned char)y)
                                ? 1
                                : 2);
            if (row[j] + 2 < best) best = row[j] + 2;
            if (row[j - 1] + 2 < best) best = row[j - 1] + 2;
            diagonal = row[j];
            row[j] = best;
        }
    }
    return row[nb];
}

/* The shortest entry that contains name; NULL for names of 1 or 2 characters. */
static const char *containing(const char *name, const char *const *names)
{
    const char *found = NULL;
    for (; strlen(name) > 2 && *names; names++)
        if (strstr(*names, name) && (!found || strlen(*names) < strlen(found)))
            found = *names;
    return found;
}

const char *pl_nearest(const char *name, const char *const *names)
{
    const char *whole = containing(name, names);
    if (whole) return whole;
    const char *nearest = NULL;
    size_t best = (strlen(name) + 1) / 2 * 2 + 2;
    for (; *names; names++) {
        size_t distance = edit_distance(name, *names);
        if (distance < best) {
            best = distance;
            nearest = *names;
        }
    }
    return nearest;
}

int pl_fail_unknown(int code, const char *where, const char *what, const char *name,
                    const char *const *names)
{
    char list[1024] = "";
    const char *nearest = pl_nearest(name, names);
    if (nearest)
        return pl_fail(code, "%s: unknown %s '%s', did you mean '%s'?", where, what,
                       name, nearest);
    size_t used = 0;
    for (; *names; names++) {
        int n =
            snprintf(list + used, sizeof list - used, "%s%s", used ? ", " : "", *names);
        if (n < 0 || (size_t)n >= sizeof list - used) break;
        used += (size_t)n;
    }
    return pl_fail(code, "%s: unknown %s '%s', expected one of: %s", where, what, name,
                   list);
}
