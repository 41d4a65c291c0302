/* A configuration as YAML that pl_config_load reads back to the same values. */
#include "base/config_types.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

/* Printable in YAML 1.1 and not a line break, so that it stands for itself in quotes.
 */
static bool is_plain(uint32_t c)
{
    return (c >= 0x20 && c < 0x7f) ||
           (c >= 0xa0 && c < 0xd800 && c != 0x2028 && c != 0x2029) ||
           (c >= 0xe000 && c < 0xfffe && c != 0xfeff) || c >= 0x10000;
}

static void put_quoted(const char *text, FILE *out)
{
    putc('"', out);
    for (int n; *text; text += n) {
        uint32_t c = 0;
        n = pl_utf8_read(text, &c);
        assert(n > 0); /* checked when it was set */
        if (c == '"' || c == '\\')
            fprintf(out, "\\%c", (char)c);
        else if (is_plain(c))
            fwrite(text, 1, (size_t)n, out);
        else
            fprintf(out, "\\u%04" PRIx32, c);
    }
    putc('"', out);
}

/* Words that YAML readers take for text stay bare; the rest is quoted. */
static void put_text(const char *text, FILE *out)
{
    static const char *const special[] = {"null", "true", "false", "yes", "no",
                                          "on",   "off",  "y",     "n",   NULL};
    static const char letters[] = "abcdefghijklmnopqrstuvwxyz";
    size_t n = strlen(text);
    bool bare = n && strchr(letters, text[0]) &&
                strspn(text, "abcdefghijklmnopqrstuvwxyz0123456789_-.") == n;
    for (const char *const *s = special; *s && bare; s++) bare = strcmp(*s, text) != 0;
    if (bare)
        fputs(text, out);
    else
        put_quoted(text, out);
}

/* Fewest digits that read back to the same double. */
static void put_real(double r, FILE *out)
{
    char text[32];
    for (int digits = 6; digits <= 17; digits++) {
        snprintf(text, sizeof text, "%.*g", digits, r);
        if (strtod(text, NULL) == r) break;
    }
    fputs(isnan(r) ? "nan" : text, out);
}

static void put_times(const struct pl_value *value, FILE *out)
{
    char text[40];
    if (value->n_ticks > 1) putc('[', out);
    for (int i = 0; i < value->n_ticks; i++)
        fprintf(out, "%s%s", i ? ", " : "",
                pl_units_exact_time(value->ticks[i], text, sizeof text));
    if (value->n_ticks > 1) putc(']', out);
}

static void put_value(const struct pl_key *key, const struct pl_value *value, FILE *out)
{
    switch (key->type) {
    case PL_KEY_INT:
        fprintf(out, "%" PRId64, value->i);
        break;
    case PL_KEY_REAL:
        put_real(value->r, out);
        break;
    case PL_KEY_BOOL:
        fputs(value->i < 0 ? "auto" : value->i ? "true" : "false", out);
        break;
    case PL_KEY_TEXT:
    case PL_KEY_NAME:
        put_text(value->text, out);
        break;
    case PL_KEY_TIME:
    case PL_KEY_TIMES:
        put_times(value, out);
        break;
    }
}

char *pl_value_text(int key, const struct pl_value *value)
{
    char *text = NULL;
    size_t n = 0;
    FILE *out = open_memstream(&text, &n);
    assert(out);
    put_value(&pl_keys[key], value, out);
    fclose(out);
    assert(text && n);
    return text;
}

char *pl_config_value(const struct pl_config *config, const char *key)
{
    int k = pl_key_find(key);
    assert(k >= 0);
    return pl_value_text(k, &config->values[k]);
}

/* Overrides of a pinned key have no effect and are left out: read back, the pin is
 * gone. */
static void put_axes(const struct pl_config *config, FILE *out)
{
    fputs("axes:\n", out);
    for (int a = 0; a < config->n_axes; a++) {
        const struct pl_axis *axis = &config->axes[a];
        fputs("  ", out);
        put_quoted(axis->name, out);
        fputs(":\n", out);
        for (int l = 0; l < axis->n; l++) {
            const struct pl_label *label = &axis->labels[l];
            const char *comma = "";
            fputs("    ", out);
            put_quoted(label->name, out);
            fputs(": {", out);
            for (int o = 0; o < label->n; o++) {
                int k = label->overrides[o].key;
                if (config->values[k].pinned) continue;
                fprintf(out, "%s%s: ", comma, pl_keys[k].name);
                put_value(&pl_keys[k], &label->overrides[o].value, out);
                comma = ", ";
            }
            fputs("}\n", out);
        }
    }
}

/* A key that is pinned has the one value that counts. */
static void put_sweep(const struct pl_config *config, FILE *out)
{
    fputs("sweep:\n", out);
    for (int a = 0; a < config->n_swept; a++) {
        const struct pl_axis *axis = &config->swept[a];
        int k = axis->labels[0].overrides[0].key;
        fprintf(out, "  %s: [", axis->name);
        if (config->values[k].pinned) put_value(&pl_keys[k], &config->values[k], out);
        for (int l = 0; l < axis->n && !config->values[k].pinned; l++)
            fprintf(out, "%s%s", l ? ", " : "", axis->labels[l].name);
        fputs("]\n", out);
    }
}

static void put_top(const struct pl_config *config, bool only_given, FILE *out)
{
    if (!only_given || config->title_given) {
        fputs("title: ", out);
        put_text(config->title, out);
        putc('\n', out);
    }
    if (!only_given || config->seeds_given) {
        fputs("seeds: [", out);
        for (int i = 0; i < config->n_seeds; i++)
            fprintf(out, "%s%" PRIu64, i ? ", " : "", config->seeds[i]);
        fputs("]\n", out);
    }
}

/* One dotted key a line, as in --set, whatever the order of the table. */
void pl_config_print(const struct pl_config *config, bool only_given, FILE *out)
{
    put_top(config, only_given, out);
    for (int k = 0; pl_keys[k].name; k++) {
        bool left = !config->values[k].where || config->values[k].preset;
        if (left && (only_given || pl_config_arms_preset(config, k))) continue;
        fprintf(out, "%s: ", pl_keys[k].name);
        put_value(&pl_keys[k], &config->values[k], out);
        putc('\n', out);
    }
    if (config->n_axes && !only_given) put_axes(config, out);
    if (config->n_swept && !only_given) put_sweep(config, out);
}

char *pl_config_dump(const struct pl_config *config, bool only_given)
{
    char *text = NULL;
    size_t n = 0;
    FILE *out = open_memstream(&text, &n);
    assert(out);
    pl_config_print(config, only_given, out);
    fclose(out);
    return text;
}
