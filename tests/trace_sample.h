/* Traces to test with: every table of the schema filled from a counter-based stream,
 * and arms that can be drawn. */
#ifndef TESTS_TRACE_SAMPLE_H
#define TESTS_TRACE_SAMPLE_H

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/rng.h"
#include "traces/schema.h"
#include "traces/trace.h"

static inline uint64_t sample_below(uint64_t seed, uint64_t a, uint64_t n)
{
    return pl_rng_below(seed, PL_RNG_TEST, a, 0, n);
}

/* Column c with n random cells, edge values among them. */
static inline void sample_column(struct pl_trace *t, const char *path,
                                 const struct pl_column *c, int64_t n, uint64_t seed)
{
    static const double reals[] = {0, -0.0, INFINITY, -INFINITY, NAN, 5e-324, 1e308};
    static const int64_t ints[] = {0, INT64_MAX, INT64_MIN, -1};
    static const char *const texts[] = {"", "a, \"b\"\nc", "\xc3\xa9t\xc3\xa9", "x"};
    int64_t *i = PL_NEW(n, int64_t);
    double *f = PL_NEW(n, double);
    const char **s = PL_NEW(n, const char *);
    for (int64_t k = 0; k < n; k++) {
        uint64_t r = sample_below(seed, (uint64_t)k + 7, 1000);
        f[k] = r < 7 ? reals[r] : pl_rng_normal(seed, PL_RNG_TEST, (uint64_t)k, 1);
        i[k] = r < 4 ? ints[r] : (int64_t)r - 500;
        if (c->type == PL_COLUMN_KIND) i[k] = (int64_t)(r % PL_N_KINDS);
        s[k] = texts[r % 4];
    }
    if (c->type == PL_COLUMN_F64)
        pl_trace_f64(t, path, c->name, n, f);
    else if (c->type == PL_COLUMN_TEXT)
        pl_trace_text(t, path, c->name, n, s);
    else
        pl_trace_i64(t, path, c->name, n, i);
    free(i);
    free(f);
    free(s);
}

/* "/arms/<arm>/seeds/<seed>/rows" with the placeholders filled in. */
static inline char *sample_path(const char *pattern, const char *arm, int seed)
{
    char buffer[256], *out = buffer;
    while (*pattern) {
        if (!strncmp(pattern, "<arm>", 5)) {
            out += sprintf(out, "%s", arm);
            pattern += 5;
        } else if (!strncmp(pattern, "<seed>", 6)) {
            out += sprintf(out, "%d", seed);
            pattern += 6;
        } else {
            *out++ = *pattern++;
        }
    }
    *out = 0;
    return pl_strdup(buffer);
}

static inline struct pl_trace *sample_trace(uint64_t seed, int64_t max_rows)
{
    static const char *const arms[] = {"zeta+2bw", "adamw+gpipe", "a b"};
    struct pl_trace *t = pl_trace_new();
    pl_trace_attr_text(t, "/", "creator", "pipelag");
    pl_trace_attr_text(t, "/", "empty", "");
    for (const struct pl_table_type *type = pl_table_types; type->pattern; type++)
        for (int k = 0; k < 4; k++) {
            if (!strchr(type->pattern, '<') && k) continue;
            char *path = sample_path(type->pattern, arms[k % 3], k / 3 + 1);
            uint64_t key =
                seed * 1000 + (uint64_t)(type - pl_table_types) * 10 + (uint64_t)k;
            int64_t n = (int64_t)sample_below(key, 0, (uint64_t)max_rows + 1);
            for (const struct pl_column *c = type->columns; c->name; c++)
                sample_column(t, path, c, n, key * 100 + (uint64_t)(c - type->columns));
            free(path);
        }
    pl_trace_attr_text(t, "/arms/zeta+2bw", "schedule", "2bw");
    pl_trace_attr_int(t, "/arms/zeta+2bw", "P", -4);
    pl_trace_attr_real(t, "/arms/zeta+2bw", "bubble", 0.1 + (double)seed);
    pl_trace_attr_text(t, "/arms/zeta+2bw/seeds/1", "status", "done");
    char *text = pl_alloc(200001, 1); /* longer than an HDF5 attribute may be */
    for (int i = 0; i < 200000; i++) text[i] = (char)('a' + i % 26);
    pl_trace_attr_text(t, "/", "config_resolved", text);
    free(text);
    return t;
}

/* gpipe-like timeline: F at 1 ms, BW at 2 ms, a flush per update. */
static inline void sample_arm(struct pl_trace *t, const char *arm, int P, int m,
                              int updates)
{
    int64_t n = 0, most = (int64_t)P * updates * (2 * m + 1), ms = 1000000000;
    int64_t *kind = PL_NEW(6 * most, int64_t), *device = kind + most;
    int64_t *chunk = kind + 2 * most, *micro = kind + 3 * most;
    int64_t *start = kind + 4 * most, *end = kind + 5 * most;
    for (int u = 0; u < updates; u++)
        for (int s = 0; s < P; s++) {
            int64_t base = (int64_t)u * (P + m - 1) * 3;
            for (int i = 0; i < 2 * m + 1; i++, n++) {
                device[n] = chunk[n] = s;
                kind[n] = i < m ? PL_KIND_F : i < 2 * m ? PL_KIND_BW : PL_KIND_U;
                micro[n] = i < 2 * m ? (int64_t)u * m + i % m : u;
                int64_t back = base + P + m - 1 + 2 * (P - 1 - s);
                start[n] = (i < m ? base + s + i : back + 2 * (i - m)) * ms;
                end[n] = start[n] + (i < m ? 1 : i < 2 * m ? 2 : 0) * ms;
            }
        }
    char *path = pl_printf("/arms/%s", arm), *table = pl_printf("%s/timeline", path);
    pl_trace_attr_text(t, path, "schedule", "gpipe");
    pl_trace_attr_int(t, path, "P", P);
    pl_trace_attr_int(t, path, "m", m);
    pl_trace_attr_real(t, path, "bubble", (P - 1.0) / (m + P - 1.0));
    pl_trace_i64(t, table, "kind", n, kind);
    pl_trace_i64(t, table, "device", n, device);
    pl_trace_i64(t, table, "chunk", n, chunk);
    pl_trace_i64(t, table, "micro", n, micro);
    pl_trace_i64(t, table, "start", n, start);
    pl_trace_i64(t, table, "end", n, end);
    free(table);
    free(path);
    free(kind);
}

struct sample_ops {
    int64_t n, kind[20000], device[20000], chunk[20000], micro[20000];
    int64_t start[20000], end[20000];
};

static inline void sample_op(struct sample_ops *o, int kind, int device, int chunk,
                             int micro, int start, int end)
{
    o->kind[o->n] = kind;
    o->device[o->n] = device;
    o->chunk[o->n] = chunk;
    o->micro[o->n] = micro;
    o->start[o->n] = start * (int64_t)1000000000;
    o->end[o->n++] = end * (int64_t)1000000000;
}

/* Lowest microbatch whose op is ready at time t on a chunk of device d: done[] of the
 * chunk before (F) or after (B), or of the F itself at the end of the model. */
static inline int sample_ready(int P, int m, int d, int t, bool backward,
                               const int *fdone, const int *bdone, int *chunk)
{
    int C = 2 * P;
    for (int i = 0; i < m; i++)
        for (int k = 0; k < 2; k++) {
            int c = k == backward ? d : C - 1 - d; /* F: late chunk first */
            const int *before = backward
                                    ? c + 1 < C ? &bdone[(c + 1) * m] : &fdone[c * m]
                                : c ? &fdone[(c - 1) * m]
                                    : NULL;
            const int *done = backward ? bdone : fdone;
            bool due = (!before || before[i] <= t) && done[c * m + i] > 1 << 29 &&
                       (!backward || fdone[c * m + i] <= t);
            if (!due) continue;
            *chunk = c;
            return i;
        }
    return -1;
}

/* A greedy pipeline of two chunks a device in a V: B before F before W, F and B of 1
 * ms; with pairs an F and a BW that are ready together run side by side for 3 ms. */
static inline void sample_v_arm(struct pl_trace *t, const char *arm, int P, int m,
                                bool pairs)
{
    int C = 2 * P, left = C * m * 2, now = 0;
    struct sample_ops *o = PL_NEW(1, struct sample_ops);
    int *fdone = PL_NEW(2 * C * m, int), *bdone = fdone + C * m;
    int *wait = PL_NEW(P * C * m, int), *n_wait = PL_NEW(3 * P, int);
    int *busy = n_wait + P, *held = n_wait + 2 * P;
    for (int i = 0; i < 2 * C * m; i++) fdone[i] = 1 << 30;
    for (bool any = true; left > 0 || any; now++) {
        any = false;
        for (int d = 0; d < P; d++) {
            if (busy[d] > now) continue;
            int fc = 0, bc = 0, f = -1,
                b = sample_ready(P, m, d, now, true, fdone, bdone, &bc);
            if (held[d] < 2 * P || b >= 0)
                f = sample_ready(P, m, d, now, false, fdone, bdone, &fc);
            int64_t ops = o->n;
            bool pair = pairs && f >= 0 && b >= 0;
            int end = now + (pair ? 3 : 1);
            if (f >= 0 && (b < 0 || pair)) {
                sample_op(o, PL_KIND_F, d, fc, f, now, end);
                fdone[fc * m + f] = end;
                held[d]++;
                left--;
            }
            if (b >= 0) {
                sample_op(o, pair ? PL_KIND_BW : PL_KIND_B, d, bc, b, now, end);
                bdone[bc * m + b] = end;
                held[d]--;
                left--;
                if (!pair) wait[d * C * m + n_wait[d]++] = bc * m + b;
            }
            if (f < 0 && b < 0 && n_wait[d]) {
                int next = wait[d * C * m];
                memmove(&wait[d * C * m], &wait[d * C * m + 1],
                        (size_t)--n_wait[d] * sizeof *wait);
                sample_op(o, PL_KIND_W, d, next / m, next % m, now, end);
            }
            if (o->n > ops) busy[d] = end;
            any = any || n_wait[d];
        }
    }
    for (int c = 0; c < C; c++)
        sample_op(o, PL_KIND_U, c < P ? c : C - 1 - c, c, 0, now + 2, now + 2);
    char *path = pl_printf("/arms/%s", arm), *table = pl_printf("%s/timeline", path);
    pl_trace_attr_text(t, path, "schedule", pairs ? "greedy V, pairs" : "greedy V");
    pl_trace_attr_int(t, path, "P", P);
    pl_trace_attr_int(t, path, "v", 2);
    pl_trace_attr_int(t, path, "m", m);
    pl_trace_i64(t, table, "kind", o->n, o->kind);
    pl_trace_i64(t, table, "device", o->n, o->device);
    pl_trace_i64(t, table, "chunk", o->n, o->chunk);
    pl_trace_i64(t, table, "micro", o->n, o->micro);
    pl_trace_i64(t, table, "start", o->n, o->start);
    pl_trace_i64(t, table, "end", o->n, o->end);
    free(table);
    free(path);
    free(fdone);
    free(wait);
    free(n_wait);
    free(o);
}

static inline void sample_evals(struct pl_trace *t, const char *arm, int seed, int n,
                                double level, double step_s)
{
    int64_t *update = PL_NEW(n, int64_t);
    double *time = PL_NEW(n, double), *loss = PL_NEW(n, double);
    for (int i = 0; i < n; i++) {
        update[i] = 20 * i;
        time[i] = step_s * 20 * i;
        loss[i] = level + 3 * exp(-i / 5.0) + 0.01 * seed;
    }
    char *path = pl_printf("/arms/%s/seeds/%d/evals", arm, seed);
    pl_trace_i64(t, path, "update", n, update);
    pl_trace_f64(t, path, "time_s", n, time);
    pl_trace_f64(t, path, "loss", n, loss);
    pl_trace_f64(t, path, "loss_y", n, loss);
    free(path);
    free(update);
    free(time);
    free(loss);
}

#endif
