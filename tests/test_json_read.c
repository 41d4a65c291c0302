/* Reading JSON: types, ranges, places in messages. */
#define _XOPEN_SOURCE 700
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/json_read.h"
#include "tests/runner.h"

static const char text[] =
    "{\"a\": {\"b\": [1, 2.5, \"x\", true, null, {\"c\": 7}]}, \"n\": -3,\n"
    " \"big\": 9223372036854775807, \"u\": \"gr\\u00fcn\"}";

static struct pl_json_file *open_text(void)
{
    struct pl_json_file *file;
    ck_assert_msg(!pl_json_parse(text, strlen(text), "f.json", &file), "%s",
                  pl_error_text());
    return file;
}

#define FAILS(call, message)                                              \
    do {                                                                  \
        ck_assert_int_eq(call, PL_ECONFIG);                               \
        ck_assert_msg(strstr(pl_error_text(), message) != NULL, "\"%s\"", \
                      pl_error_text());                                   \
    } while (0)

START_TEST(values)
{
    struct pl_json_file *file = open_text();
    struct pl_json_value root = pl_json_root(file), a, list;
    int64_t i;
    double r;
    bool yes = false;
    const char *s;
    ck_assert_int_eq(pl_json_type_of(root), PL_JSON_MAP);
    ck_assert_uint_eq(pl_json_length(root), 4);
    ck_assert_int_eq(pl_json_get_int(root, "n", -5, 5, &i), 0);
    ck_assert_int_eq(i, -3);
    ck_assert_int_eq(pl_json_get_int(root, "big", 0, INT64_MAX, &i), 0);
    ck_assert_int_eq(i, INT64_MAX);
    ck_assert_int_eq(pl_json_get_text(root, "u", &s), 0);
    ck_assert_str_eq(s, "gr\xc3\xbcn");
    ck_assert_int_eq(pl_json_member(root, "a", &a), 0);
    ck_assert_int_eq(pl_json_member(a, "b", &list), 0);
    ck_assert_uint_eq(pl_json_length(list), 6);
    static const enum pl_json_type types[] = {PL_JSON_INT,  PL_JSON_REAL, PL_JSON_TEXT,
                                              PL_JSON_BOOL, PL_JSON_NULL, PL_JSON_MAP};
    for (size_t k = 0; k < 6; k++)
        ck_assert_int_eq(pl_json_type_of(pl_json_item(list, k)), types[k]);
    ck_assert_int_eq(pl_json_as_real(pl_json_item(list, 0), 0, 9, &r), 0);
    ck_assert_double_eq(r, 1);
    ck_assert_int_eq(pl_json_as_real(pl_json_item(list, 1), 0, 9, &r), 0);
    ck_assert_double_eq(r, 2.5);
    ck_assert_int_eq(pl_json_as_bool(pl_json_item(list, 3), &yes), 0);
    ck_assert(yes);
    ck_assert_int_eq(pl_json_get_int(pl_json_item(list, 5), "c", 7, 7, &i), 0);
    ck_assert(pl_json_has(root, "n") && !pl_json_has(root, "m"));
    ck_assert(!pl_json_has(list, "n"));
    pl_json_free(file);
}
END_TEST

START_TEST(refusals)
{
    struct pl_json_file *file = open_text();
    struct pl_json_value root = pl_json_root(file), a, list, out;
    int64_t i = 11;
    double r = 11;
    bool yes;
    const char *s;
    ck_assert_int_eq(pl_json_member(root, "a", &a), 0);
    ck_assert_int_eq(pl_json_member(a, "b", &list), 0);
    FAILS(pl_json_get_int(root, "m", 1, 8, &i),
          "f.json: m is missing, expected an integer from 1 to 8");
    FAILS(pl_json_get_int(root, "n", 1, 8, &i), "f.json: n is -3, expected an integer");
    FAILS(pl_json_as_int(pl_json_item(list, 1), 1, 8, &i), "a.b[1] is 2.5");
    FAILS(pl_json_get_int(pl_json_item(list, 5), "d", 1, 8, &i), "a.b[5].d is missing");
    FAILS(pl_json_get_real(a, "b", 0, 1, &r), "f.json: a.b is [1,2.5,");
    FAILS(pl_json_as_real(pl_json_item(list, 1), 0, 2, &r), "expected a number from 0");
    FAILS(pl_json_as_bool(pl_json_item(list, 0), &yes), "expected true or false");
    FAILS(pl_json_as_text(pl_json_item(list, 4), &s), "is null, expected a text");
    FAILS(pl_json_member(list, "b", &out), "expected a map");
    FAILS(pl_json_expect(root, PL_JSON_LIST), "f.json: the file is a map");
    ck_assert(i == 11 && r == 11); /* untouched */
    pl_json_free(file);
}
END_TEST

START_TEST(broken_texts)
{
    static const char *const texts[] = {"",
                                        "{",
                                        "{\"a\":1,}",
                                        "[1 2]",
                                        "{1:2}",
                                        "{\"a\":1}x",
                                        "\xff",
                                        "nul",
                                        "{\"a\":1e999}",
                                        "[\"a\\u0000b\"]",
                                        "{\"a\":1,\"a\":2}"};
    struct pl_json_file *file = NULL;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        FAILS(pl_json_parse(texts[i], strlen(texts[i]), "f.json", &file), "f.json:1:");
        ck_assert_ptr_null(file);
    }
    FAILS(pl_json_parse("{\n\"a\": ?", 8, "f.json", &file), "f.json:2:");
    ck_assert_int_eq(pl_json_read("/nonexistent.json", &file), PL_EINPUT);
}
END_TEST

static void fill(TCase *t)
{
    tcase_add_test(t, values);
    tcase_add_test(t, refusals);
    tcase_add_test(t, broken_texts);
}

int main(void)
{
    return run_tests("json_read", fill);
}
