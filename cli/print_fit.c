#include "cli/print_fit.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/mem.h"

/* Does the key differ between rows? */
static bool varies(const struct pl_measured *data, const char *key)
{
    char *first = pl_config_value(data->row[0].config, key);
    bool differs = false;
    for (int i = 1; i < data->n && !differs; i++) {
        char *other = pl_config_value(data->row[i].config, key);
        differs = strcmp(first, other) != 0;
        free(other);
    }
    free(first);
    return differs;
}

/* The row's note, or what sets it apart: "stages 8, tp 4". Caller frees. */
static char *describe(const struct pl_measured *data, int row)
{
    if (data->row[row].note) return pl_strdup(data->row[row].note);
    char *text = pl_strdup("");
    for (int k = 0; k < data->n_keys; k++) {
        if (!varies(data, data->key[k])) continue;
        const char *dot = strrchr(data->key[k], '.');
        char *value = pl_config_value(data->row[row].config, data->key[k]);
        char *longer = pl_printf("%s%s%s %s", text, *text ? ", " : "",
                                 dot ? dot + 1 : data->key[k], value);
        free(value);
        free(text);
        text = longer;
    }
    return text;
}

static double error(double predicted, double measured)
{
    return 100 * (predicted / measured - 1);
}

static void print_entry(const struct pl_fit *fit, int i, int width, FILE *out)
{
    const struct pl_fit_entry *e = &fit->entry[i];
    char *name = describe(fit->data, e->row);
    fprintf(out, "%4d  %-*.*s %-8s %12.5g %12.5g %+7.1f %%",
            fit->data->row[e->row].line, width, width, name, pl_measured_names[e->what],
            e->measured, e->before, error(e->before, e->measured));
    if (fit->n_keys)
        fprintf(out, " %12.5g %+7.1f %%", e->fitted, error(e->fitted, e->measured));
    if (fit->n_keys && !isnan(e->left_out))
        fprintf(out, " %+7.1f %%", error(e->left_out, e->measured));
    fputc('\n', out);
    free(name);
}

static int name_width(const struct pl_measured *data)
{
    size_t most = 3;
    for (int i = 0; i < data->n; i++) {
        char *name = describe(data, i);
        if (strlen(name) > most) most = strlen(name);
        free(name);
    }
    return most < 40 ? (int)most : 40;
}

static void print_value(const struct pl_key *key, double value, FILE *out)
{
    char text[32];
    if (key->type == PL_KEY_TIME)
        fputs(pl_units_format_time(value, text, sizeof text), out);
    else
        fprintf(out, "%.4g", value);
}

void pl_print_fit_yaml(const struct pl_fit *fit, const char *before, FILE *out)
{
    fprintf(out,
            "# pipelag calibrate %s: mean absolute error %.1f %% before, %.1f %% "
            "fitted\n",
            fit->data->path, 100 * fit->error_before, 100 * fit->error_fitted);
    for (int k = 0; k < fit->n_keys; k++) {
        const struct pl_fit_key *f = &fit->key[k];
        fprintf(out, "%s%s: ", before, f->key->name);
        print_value(f->key, f->value, out);
        fputs("  # was ", out);
        if (isnan(f->before))
            fputs("not the same in all rows", out);
        else
            print_value(f->key, f->before, out);
        if (f->edge) fputs("; the end of its range", out);
        if (strstr(f->key->name, "_fraction") && f->value > 1)
            fputs("; above 1: beyond the hardware's peak", out);
        fputc('\n', out);
    }
}

void pl_print_fit_text(const struct pl_fit *fit, FILE *out)
{
    bool left_out = fit->n_keys && !isnan(fit->error_left_out);
    int width = name_width(fit->data);
    fprintf(out, "%4s  %-*s %-8s %12s %12s %9s", "line", width, "run", "time",
            "measured [s]", "predicted", "error");
    if (fit->n_keys) fprintf(out, " %12s %9s", "fitted", "error");
    fprintf(out, "%s\n", left_out ? "  left out" : "");
    for (int i = 0; i < fit->n; i++) print_entry(fit, i, width, out);
    fprintf(out, "mean |error|, %d times: %.2f %% (mean error %+.2f %%)", fit->n,
            100 * fit->error_before, 100 * fit->bias_before);
    if (fit->n_keys)
        fprintf(out, ", fitted %.2f %% (%+.2f %%)", 100 * fit->error_fitted,
                100 * fit->bias_fitted);
    if (left_out)
        fprintf(out, ", each left out of the fit %.2f %%", 100 * fit->error_left_out);
    fputs("\nerror = predicted / measured - 1\n", out);
    if (!fit->n_keys) return;
    fputc('\n', out);
    pl_print_fit_yaml(fit, "", out);
}

static void json_entry(struct pl_json *j, const struct pl_fit *fit,
                       const struct pl_fit_entry *e)
{
    const struct pl_measured_row *row = &fit->data->row[e->row];
    pl_json_begin(j, NULL, '{');
    pl_json_int(j, "line", row->line);
    pl_json_text(j, "note", row->note);
    pl_json_text(j, "time", pl_measured_names[e->what]);
    pl_json_real(j, "measured_s", e->measured);
    pl_json_real(j, "predicted_s", e->before);
    if (fit->n_keys) {
        pl_json_real(j, "fitted_s", e->fitted);
        pl_json_real(j, "left_out_s", e->left_out);
    }
    pl_json_begin(j, "keys", '{');
    for (int k = 0; k < fit->data->n_keys; k++) {
        char *value = pl_config_value(row->config, fit->data->key[k]);
        pl_json_text(j, fit->data->key[k], value);
        free(value);
    }
    pl_json_end(j, '}');
    pl_json_end(j, '}');
}

void pl_print_fit_json(const struct pl_fit *fit, FILE *out)
{
    struct pl_json j;
    pl_json_open(&j, out);
    j.line_depth = 2;
    pl_json_begin(&j, NULL, '{');
    pl_json_text(&j, "file", fit->data->path);
    pl_json_real(&j, "error_mean_abs", fit->error_before);
    pl_json_real(&j, "error_mean", fit->bias_before);
    if (fit->n_keys) {
        pl_json_real(&j, "error_mean_abs_fitted", fit->error_fitted);
        pl_json_real(&j, "error_mean_fitted", fit->bias_fitted);
        pl_json_real(&j, "error_mean_abs_left_out", fit->error_left_out);
        pl_json_int(&j, "evaluations", fit->evaluations);
    }
    pl_json_begin(&j, "fit", '[');
    for (int k = 0; k < fit->n_keys; k++) {
        pl_json_begin(&j, NULL, '{');
        pl_json_text(&j, "key", fit->key[k].key->name);
        pl_json_text(&j, "unit", fit->key[k].key->unit);
        pl_json_real(&j, "before", fit->key[k].before);
        pl_json_real(&j, "value", fit->key[k].value);
        pl_json_bool(&j, "at_end_of_range", fit->key[k].edge);
        pl_json_end(&j, '}');
    }
    pl_json_end(&j, ']');
    pl_json_begin(&j, "times", '[');
    for (int i = 0; i < fit->n; i++) json_entry(&j, fit, &fit->entry[i]);
    pl_json_end(&j, ']');
    pl_json_end(&j, '}');
    pl_json_close(&j);
}
