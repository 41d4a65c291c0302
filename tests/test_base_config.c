/* The key table and the printed copy: loops over every key. */
#define _XOPEN_SOURCE 700
#include <check.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/builtin.h"
#include "base/config.h"
#include "base/err.h"
#include "base/mem.h"
#include "base/rng.h"
#include "tests/config_case.h"
#include "tests/runner.h"

/* Equal in every value, title, seed, and in every value of every arm. */
static bool same_values(const struct pl_config *a, const struct pl_config *b)
{
    for (const struct pl_key *k = pl_keys; k->name; k++) {
        double x, y;
        const pl_tick *s, *t;
        int m, n;
        switch (k->type) {
        case PL_KEY_INT:
            if (pl_config_int(a, k->name) != pl_config_int(b, k->name)) return false;
            break;
        case PL_KEY_REAL:
            x = pl_config_real(a, k->name);
            y = pl_config_real(b, k->name);
            if (!(x == y || (isnan(x) && isnan(y)))) return false;
            break;
        case PL_KEY_BOOL:
            if (pl_config_maybe(a, k->name) != pl_config_maybe(b, k->name))
                return false;
            break;
        case PL_KEY_TEXT:
        case PL_KEY_NAME:
            if (strcmp(pl_config_text(a, k->name), pl_config_text(b, k->name)))
                return false;
            break;
        case PL_KEY_TIME:
            if (pl_config_time(a, k->name) != pl_config_time(b, k->name)) return false;
            break;
        case PL_KEY_TIMES:
            s = pl_config_times(a, k->name, &m);
            t = pl_config_times(b, k->name, &n);
            if (m != n || memcmp(s, t, (size_t)n * sizeof *s)) return false;
            break;
        }
    }
    return true;
}

static bool same(const struct pl_config *a, const struct pl_config *b)
{
    if (!same_values(a, b) || strcmp(pl_config_title(a), pl_config_title(b)))
        return false;
    if (pl_config_n_seeds(a) != pl_config_n_seeds(b)) return false;
    for (int i = 0; i < pl_config_n_seeds(a); i++)
        if (pl_config_seed(a, i) != pl_config_seed(b, i)) return false;
    if (pl_config_n_arms(a) != pl_config_n_arms(b)) return false;
    bool equal = true;
    for (int i = 0; i < pl_config_n_arms(a); i++) {
        struct pl_config *x, *y;
        ck_assert_int_eq(pl_config_arm(a, i, &x), 0);
        ck_assert_int_eq(pl_config_arm(b, i, &y), 0);
        equal = equal && same_values(x, y);
        pl_config_free(x);
        pl_config_free(y);
    }
    return equal;
}

static uint64_t draw(uint32_t trial, int key, uint64_t below)
{
    static uint32_t count;
    return pl_rng_below(3, PL_RNG_TEST, (uint64_t)trial << 32 | (uint32_t)key, count++,
                        below);
}

/* Code points of every kind: controls, quotes, YAML signs, two to four bytes. */
static char *random_text(uint32_t trial, int key)
{
    static const char *const atoms[] = {"a",
                                        "Z",
                                        "0",
                                        " ",
                                        "'",
                                        "\"",
                                        "\\",
                                        "#",
                                        ": ",
                                        "- ",
                                        "\n",
                                        "\t",
                                        "\r",
                                        "\x01",
                                        "{",
                                        "]",
                                        ",",
                                        "\x7f",
                                        "&",
                                        "*",
                                        "!",
                                        "%",
                                        "@",
                                        "~",
                                        "null",
                                        "yes",
                                        "\xc2\x85",
                                        "\xc3\xa9",
                                        "\xe2\x80\xa8",
                                        "\xef\xbb\xbf",
                                        "\xf0\x9f\x98\x80",
                                        "\xef\xbf\xbe"};
    char *text = pl_alloc(200, 1);
    for (uint64_t n = draw(trial, key, 12); n; n--)
        strcat(text, atoms[draw(trial, key, sizeof atoms / sizeof *atoms)]);
    return text;
}

/* A built-in preset for a key GROUP.preset (of kind GROUPs), NULL for other keys. */
static char *random_preset(uint32_t trial, int k)
{
    const char *dot = strchr(pl_keys[k].name, '.');
    if (!dot || strcmp(dot, ".preset") != 0) return NULL;
    char *kind = pl_printf("%.*ss", (int)(dot - pl_keys[k].name), pl_keys[k].name);
    const char *const *names = pl_builtin_names(kind);
    int n = 0;
    while (names[n]) n++;
    free(kind);
    return pl_strdup(n ? names[draw(trial, k, (uint64_t)n)] : "");
}

static char *random_value(uint32_t trial, int k)
{
    const struct pl_key *key = &pl_keys[k];
    const char *const *choices;
    char *text, one[40];
    double u = (double)draw(trial, k, UINT32_MAX) / UINT32_MAX;
    int n = 0;
    switch (key->type) {
    case PL_KEY_INT:
        return pl_printf("%" PRId64,
                         (int64_t)(key->min + floor(u * (key->max - key->min))));
    case PL_KEY_REAL:
        if (!strcmp(key->fallback, "nan") && trial % 4 == 0) return pl_strdup("nan");
        u = trial % 2 ? u : pow(u, 40); /* also far below the range's end */
        return pl_printf("%.17g", key->min + u * (key->max - key->min));
    case PL_KEY_BOOL:
        if (!strcmp(key->fallback, "auto") && trial % 4 == 0) return pl_strdup("auto");
        return pl_strdup(u < 0.5 ? "On" : "no");
    case PL_KEY_TEXT:
        text = random_preset(trial, k);
        return text ? text : random_text(trial, k);
    case PL_KEY_NAME:
        choices = pl_config_choices(key->name);
        if (!choices) return random_text(trial, k);
        while (choices[n]) n++;
        return pl_strdup(choices[draw(trial, k, (uint64_t)n)]);
    case PL_KEY_TIME:
    case PL_KEY_TIMES:
        text = pl_alloc(1000, 1);
        n = key->type == PL_KEY_TIMES ? 1 + (int)draw(trial, k, 9) : 1;
        for (int i = 0; i < n; i++) {
            pl_units_exact_time(
                (pl_tick)(draw(trial, k, INT64_MAX) >> draw(trial, k, 63)), one,
                sizeof one);
            sprintf(text + strlen(text), "%s%s", i ? ", " : "", one);
        }
        return text;
    }
    return NULL;
}

START_TEST(table_is_sound)
{
    const struct pl_key *k = &pl_keys[_i];
    ck_assert(k->help && *k->help && !strchr(k->help, '\n'));
    ck_assert_ptr_nonnull(k->unit);
    ck_assert_ptr_nonnull(k->fallback);
    ck_assert_double_le(k->min, k->max);
    ck_assert(k->type == PL_KEY_NAME || !k->choices);
    for (int j = 0; j < _i; j++) ck_assert_str_ne(pl_keys[j].name, k->name);
    for (int j = 0; j < n_keys(); j++) { /* no key is also a group */
        size_t n = strlen(k->name);
        ck_assert(strncmp(pl_keys[j].name, k->name, n) || pl_keys[j].name[n] != '.');
    }
    struct pl_config *config = pl_config_new();
    ck_assert(!pl_config_given(config, k->name));
    ck_assert_str_eq(pl_config_where(config, k->name), "default");
    /* the default is itself a legal value */
    ck_assert_msg(!pl_config_set_value(config, k->name, k->fallback, "test"), "%s",
                  pl_error_text());
    ck_assert(pl_config_given(config, k->name));
    ck_assert_str_eq(pl_config_where(config, k->name), "test");
    struct pl_config *fresh = pl_config_new();
    ck_assert(same(config, fresh));
    pl_config_free(config);
    pl_config_free(fresh);
}
END_TEST

static const struct {
    unsigned types; /* bits of pl_key_type */
    const char *value, *message;
} cases[] = {
    {1u << PL_KEY_INT, "1e3", "plain decimal"},
    {1u << PL_KEY_INT, "1_000", "plain decimal"},
    {1u << PL_KEY_INT, "0x10", "plain decimal"},
    {1u << PL_KEY_INT, "3.0", "plain decimal"},
    {1u << PL_KEY_INT, " 3", "plain decimal"},
    {1u << PL_KEY_INT, "", "plain decimal"},
    {1u << PL_KEY_INT, "-", "plain decimal"},
    {1u << PL_KEY_INT, "99999999999999999999", "expected "},
    {1u << PL_KEY_INT, "-99999999999999999999", "expected "},
    {1u << PL_KEY_REAL, "", "expected a number"},
    {1u << PL_KEY_REAL, "fast", "expected a number"},
    {1u << PL_KEY_REAL, "inf", "expected a number"},
    {1u << PL_KEY_REAL, "0x1p3", "expected a number"},
    {1u << PL_KEY_REAL, "1 ", "expected a number"},
    {1u << PL_KEY_REAL, "1e", "expected a number"},
    {1u << PL_KEY_REAL, "nan(1)", "expected a number"},
    {1u << PL_KEY_REAL, "1e999", "expected "},
    {1u << PL_KEY_BOOL, "1", "expected true or false"},
    {1u << PL_KEY_BOOL, "tRue", "expected true or false"},
    {1u << PL_KEY_TEXT | 1u << PL_KEY_NAME, "a\xff", "UTF-8"},
    {1u << PL_KEY_TEXT | 1u << PL_KEY_NAME, "\xed\xa0\x80", "UTF-8"},
    {1u << PL_KEY_TEXT | 1u << PL_KEY_NAME, "\xc0\x80", "UTF-8"},
    {1u << PL_KEY_TIME | 1u << PL_KEY_TIMES, "3", "has no unit"},
    {1u << PL_KEY_TIME | 1u << PL_KEY_TIMES, "3 GB", "unknown unit"},
    {1u << PL_KEY_TIME | 1u << PL_KEY_TIMES, "-1 ms", "negative"},
    {1u << PL_KEY_TIMES, "1 ms,", "is not a duration"},
    {1u << PL_KEY_TIMES, "1 ms,2", "'2' has no unit"},
};

START_TEST(key_refuses_what_it_must)
{
    const struct pl_key *k = &pl_keys[_i];
    struct pl_config *config = pl_config_new(), *fresh = pl_config_new();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        if (!(cases[i].types & 1u << k->type)) continue;
        pl_fail(PL_ECONFIG, "none");
        int rc = pl_config_set_value(config, k->name, cases[i].value, "--set");
        ck_assert_msg(rc == PL_ECONFIG, "%s=%s: %d", k->name, cases[i].value, rc);
        ck_assert_msg(!strncmp(pl_error_text(), "--set: ", 7), "%s", pl_error_text());
        ck_assert_ptr_nonnull(strstr(pl_error_text(), k->name));
        ck_assert_msg(strstr(pl_error_text(), cases[i].message), "%s", pl_error_text());
    }
    for (int side = 0; side < 2; side++) {
        char text[64], range[80];
        double d = side ? k->max : k->min;
        if (k->type == PL_KEY_INT) {
            sprintf(text, "%.0f", side ? d + 1 : d - 1);
            sprintf(range, "expected %.0f to %.0f", k->min, k->max);
        } else if (k->type == PL_KEY_REAL) {
            sprintf(text, "%.17g", nextafter(d, side ? INFINITY : -INFINITY));
            sprintf(range, "expected %.15g to %.15g", k->min, k->max);
        } else {
            continue;
        }
        ck_assert_int_eq(pl_config_set_value(config, k->name, text, "--set"),
                         PL_ECONFIG);
        ck_assert_msg(strstr(pl_error_text(), range), "%s", pl_error_text());
    }
    bool nan = k->type == PL_KEY_REAL && !strcmp(k->fallback, "nan");
    if (k->type == PL_KEY_REAL)
        ck_assert_int_eq(pl_config_set_value(fresh, k->name, "nan", ""),
                         nan ? 0 : PL_ECONFIG);
    if (!nan) ck_assert(same(config, fresh)); /* failures changed nothing */
    pl_config_free(config);
    pl_config_free(fresh);
}
END_TEST

START_TEST(print_loads_back)
{
    for (uint32_t trial = 0; trial < 60; trial++) {
        struct pl_config *a = pl_config_new(), *b = pl_config_new(),
                         *c = pl_config_new();
        ck_assert_int_eq(
            load_text(a, "axes: {x: {p: {optimizer.lr: 0.3, cost: {forward: [1 ms,"
                         " 3 ps]}}, q: }, y: {r: {optimizer: {beta1: 0.5}}}}"),
            0);
        for (int k = 0; k < n_keys(); k++) {
            if (draw(trial, k, 3) == 0) continue;
            char *value = random_value(trial, k);
            ck_assert_msg(!pl_config_set_value(a, pl_keys[k].name, value, "--set"),
                          "%s", pl_error_text());
            free(value);
        }
        char *title = random_text(trial, -1);
        pl_config_set_value(a, "title", title, "--set");
        pl_config_set(a, "seeds=18446744073709551615, 0,7", "--set");
        ck_assert_msg(!pl_config_resolve(a), "%s", pl_error_text());
        char *text = pl_config_dump(a, false), *given = pl_config_dump(a, true);
        ck_assert_msg(!load_text(b, text), "%s\n%s", pl_error_text(), text);
        ck_assert_msg(same(a, b), "%s", text);
        char *again = pl_config_dump(b, false);
        ck_assert_str_eq(again, text);
        ck_assert_msg(!load_text(c, given), "%s", pl_error_text());
        ck_assert_msg(!pl_config_resolve(c), "%s", pl_error_text());
        ck_assert(same_values(a, c));
        for (int k = 0; k < n_keys(); k++)
            ck_assert_int_eq(pl_config_given(a, pl_keys[k].name),
                             pl_config_given(c, pl_keys[k].name));
        /* the comparison sees one changed value: random lists have at most 9 entries */
        ck_assert_int_eq(
            pl_config_set_value(b, "cost.update", "1 s,0,0,0,0,0,0,0,0,0", ""), 0);
        ck_assert(!same(a, b));
        free(text), free(given), free(again), free(title);
        pl_config_free(a), pl_config_free(b), pl_config_free(c);
    }
}
END_TEST

static void fill(TCase *t)
{
    tcase_add_checked_fixture(t, enter, leave);
    tcase_add_loop_test(t, table_is_sound, 0, n_keys());
    tcase_add_loop_test(t, key_refuses_what_it_must, 0, n_keys());
    tcase_add_test(t, print_loads_back);
}

int main(void)
{
    return run_tests("config", fill);
}
