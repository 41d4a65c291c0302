#include "cli/fit_keys.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

static const double smallest_time = 1e-9, largest_time = 1; /* s, of a duration key */

static bool can_fit(const struct pl_key *key)
{
    return key->type == PL_KEY_REAL || key->type == PL_KEY_TIME;
}

static int fail_key(const char *name)
{
    const char *names[512];
    int n = 0;
    for (const struct pl_key *k = pl_keys; k->name; k++) {
        if (!strcmp(k->name, name))
            return pl_fail(PL_EUSAGE,
                           "--fit: %s cannot be fitted, expected keys with one real "
                           "number or one duration, such as cluster.gpu.gemm_fraction",
                           name);
        if (can_fit(k) && n < 511) names[n++] = k->name;
    }
    names[n] = NULL;
    const char *nearest = pl_nearest(name, names);
    return pl_fail(PL_EUSAGE, "--fit: unknown key '%s'%s%s%s", name,
                   nearest ? ", did you mean '" : ", 'pipelag config --keys' lists all",
                   nearest ? nearest : "", nearest ? "'?" : "");
}

static double get(const struct pl_config *config, const struct pl_key *key)
{
    return key->type == PL_KEY_TIME ? pl_seconds(pl_config_time(config, key->name))
                                    : pl_config_real(config, key->name);
}

static int add_key(struct pl_fit *fit, const char *name)
{
    const struct pl_key *key = pl_keys;
    while (key->name && (strcmp(key->name, name) || !can_fit(key))) key++;
    if (!key->name) return fail_key(name);
    for (int i = 0; i < fit->n_keys; i++)
        if (fit->key[i].key == key)
            return pl_fail(PL_EUSAGE, "--fit: %s is given twice", name);
    if (fit->n_keys == PL_MAX_FIT)
        return pl_fail(PL_EUSAGE, "--fit: more than %d keys", PL_MAX_FIT);
    for (int i = 0; i < fit->data->n_keys; i++)
        if (!strcmp(fit->data->key[i], name))
            return pl_fail(PL_EUSAGE, "--fit: %s is a column of %s", name,
                           fit->data->path);
    struct pl_fit_key *k = &fit->key[fit->n_keys++];
    bool time = key->type == PL_KEY_TIME;
    *k = (struct pl_fit_key){.key = key,
                             .min = time ? smallest_time : key->min,
                             .max = time ? largest_time : key->max,
                             .log = time || key->min > 0};
    k->before = get(fit->data->row[0].config, key);
    for (int i = 1; i < fit->data->n; i++)
        if (get(fit->data->row[i].config, key) != k->before) k->before = NAN;
    return PL_OK;
}

int pl_fit_keys_add(struct pl_fit *fit, const char *list)
{
    char *text = pl_strdup(list), *save = NULL;
    int rc = PL_OK;
    for (char *name = strtok_r(text, ", ", &save); name && !rc;
         name = strtok_r(NULL, ", ", &save))
        rc = add_key(fit, name);
    if (!rc && !fit->n_keys)
        rc = pl_fail(PL_EUSAGE, "--fit: no key, expected KEY[,KEY]");
    free(text);
    return rc;
}

double pl_fit_key_value(const struct pl_fit_key *k, double u)
{
    if (u <= 0) return k->min;
    if (u >= 1) return k->max;
    return k->log ? k->min * pow(k->max / k->min, u) : k->min + u * (k->max - k->min);
}

double pl_fit_key_place(const struct pl_fit_key *k, double value)
{
    double u = k->log ? log(value / k->min) / log(k->max / k->min)
                      : (value - k->min) / (k->max - k->min);
    return u >= 0 && u <= 1 ? u : .5; /* NaN, or a duration of 0 */
}

int pl_fit_keys_set(struct pl_fit *fit, const double *u)
{
    int rc = PL_OK;
    for (int k = 0; k < fit->n_keys && !rc; k++) {
        const struct pl_key *key = fit->key[k].key;
        double value = pl_fit_key_value(&fit->key[k], u[k]);
        char *text = key->type == PL_KEY_TIME ? pl_printf("%.0f ps", value * 1e12)
                                              : pl_printf("%.17g", value);
        for (int i = 0; i < fit->data->n && !rc; i++)
            rc =
                pl_config_set_value(fit->data->row[i].config, key->name, text, "--fit");
        free(text);
    }
    return rc;
}
