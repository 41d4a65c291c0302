/* A finished sweep as the table /sweep of a trace. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "cli/sweep.h"
#include "traces/schema.h"

/* One swept key: its values, and how points map to them. */
struct axis {
    const char *key;
    int n;          /* values */
    int64_t stride; /* points with the same value in a row */
    int64_t *i64;   /* [n] */
    double *f64;    /* [n] */
    char **text;    /* [n] */
    bool lists;     /* text holds lists of durations, beside f64 */
};

static double mean_seconds(const pl_tick *ticks, int n)
{
    double sum = 0;
    for (int i = 0; i < n; i++) sum += pl_seconds(ticks[i]);
    return sum / n;
}

static void read_value(const struct pl_config *point, const struct pl_key *key,
                       struct axis *axis, int i)
{
    int n = 1;
    if (key->type == PL_KEY_INT) {
        axis->i64[i] = pl_config_int(point, key->name);
    } else if (key->type == PL_KEY_REAL) {
        axis->f64[i] = pl_config_real(point, key->name);
    } else if (key->type == PL_KEY_TIME) {
        axis->f64[i] = pl_seconds(pl_config_time(point, key->name));
    } else if (key->type == PL_KEY_TIMES) {
        const pl_tick *ticks = pl_config_times(point, key->name, &n);
        axis->f64[i] = n > 1 ? mean_seconds(ticks, n) : pl_seconds(*ticks);
        axis->lists |= n > 1;
        axis->text[i] = pl_config_value(point, key->name);
    } else if (key->type == PL_KEY_BOOL) {
        axis->text[i] = pl_config_value(point, key->name);
    } else {
        axis->text[i] = pl_strdup(pl_config_text(point, key->name));
    }
}

static void read_axis(const struct pl_sweep *sweep, int number, int64_t stride,
                      struct axis *axis)
{
    const struct pl_key *key = pl_keys;
    struct pl_config *point = NULL;
    *axis = (struct axis){.key = pl_config_swept(sweep->config, number),
                          .n = pl_config_n_values(sweep->config, number),
                          .stride = stride};
    while (strcmp(key->name, axis->key)) key++;
    axis->i64 = PL_NEW(axis->n, int64_t);
    axis->f64 = PL_NEW(axis->n, double);
    axis->text = PL_NEW(axis->n, char *);
    for (int i = 0; i < axis->n; i++) {
        pl_config_point(sweep->config, i * stride, &point);
        read_value(point, key, axis, i);
    }
    pl_config_free(point);
}

static int at(const struct axis *axis, int64_t point)
{
    return (int)(point / axis->stride % axis->n);
}

static void put_texts(const struct pl_sweep *sweep, const struct axis *axis,
                      const char *name, struct pl_trace *t)
{
    const char **column = PL_NEW(sweep->n, const char *);
    for (int64_t i = 0; i < sweep->n; i++) column[i] = axis->text[at(axis, i)];
    pl_trace_text(t, PL_SWEEP_TABLE, name, sweep->n, column);
    free(column);
}

static void put_axis(const struct pl_sweep *sweep, const struct axis *axis,
                     struct pl_trace *t)
{
    const struct pl_column *type =
        pl_schema_column(pl_schema_table(PL_SWEEP_TABLE), axis->key);
    assert(type);
    if (type->type == PL_COLUMN_TEXT) {
        put_texts(sweep, axis, axis->key, t);
    } else if (type->type == PL_COLUMN_I64) {
        int64_t *column = PL_NEW(sweep->n, int64_t);
        for (int64_t i = 0; i < sweep->n; i++) column[i] = axis->i64[at(axis, i)];
        pl_trace_i64(t, PL_SWEEP_TABLE, axis->key, sweep->n, column);
        free(column);
    } else {
        double *column = PL_NEW(sweep->n, double);
        for (int64_t i = 0; i < sweep->n; i++) column[i] = axis->f64[at(axis, i)];
        pl_trace_f64(t, PL_SWEEP_TABLE, axis->key, sweep->n, column);
        free(column);
    }
    if (!axis->lists) return;
    char *name = pl_printf("%s%s", axis->key, PL_SWEEP_LIST);
    put_texts(sweep, axis, name, t);
    free(name);
}

static void put_axes(const struct pl_sweep *sweep, struct pl_trace *t)
{
    int64_t stride = 1;
    for (int a = pl_config_n_swept(sweep->config) - 1; a >= 0; a--) {
        struct axis axis;
        read_axis(sweep, a, stride, &axis);
        put_axis(sweep, &axis, t);
        stride *= axis.n;
        for (int i = 0; i < axis.n; i++) free(axis.text[i]);
        free(axis.text);
        free(axis.f64);
        free(axis.i64);
    }
}

void pl_sweep_record(const struct pl_sweep *sweep, struct pl_trace *t)
{
#define NAME(name, unit, shown, long_name) #name,
    static const char *const names[] = {PL_SWEEP_RESULTS(NAME)};
#undef NAME
    assert(sweep->done == sweep->n);
    put_axes(sweep, t);
    double *column = PL_NEW(sweep->n, double);
    for (int k = 0; k < PL_N_SWEEP_RESULTS; k++) {
        for (int64_t i = 0; i < sweep->n; i++)
            memcpy(&column[i], (const char *)&sweep->results[i] + 8 * k, 8);
        pl_trace_f64(t, PL_SWEEP_TABLE, names[k], sweep->n, column);
    }
    free(column);
    pl_trace_text(t, PL_SWEEP_TABLE, PL_SWEEP_STATUS, sweep->n,
                  (const char *const *)sweep->status);
}
