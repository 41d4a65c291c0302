/* A small vocabulary in the folder of tests/data_case.h. */
#ifndef TESTS_BPE_CASE_H
#define TESTS_BPE_CASE_H

#include "base/err.h"
#include "train/tokenizer.h"
#include "train/unicode.h"
#include "tests/data_case.h"
#include "tests/runner.h"

/* Rules over a few letters; the space is written as U+0120. */
static const char *const rules[] = {"h e",
                                    "l l",
                                    "he ll",
                                    "hell o",
                                    "\304\240 w",
                                    "o r",
                                    "or l",
                                    "orl d",
                                    "a a",
                                    "aa aa",
                                    "a b",
                                    "b a",
                                    "\304\240 \304\240",
                                    "\303\251 \303\251",
                                    "\304\212 \304\212",
                                    "aa b",
                                    "ab ab",
                                    "\304\240w orld"};
enum { N_RULES = sizeof rules / sizeof *rules };

/* The character that stands for a byte, as UTF-8. */
static inline void name_of(int byte, char *out)
{
    uint32_t hidden = 0x100, code = 0;
    for (int b = 0; b <= byte; b++) {
        bool visible = (b > 32 && b < 127) || (b > 160 && b != 173);
        code = visible ? (uint32_t)b : hidden++;
    }
    out[pl_utf8_encode(code, out)] = '\0';
}

static inline void put_json(FILE *f, const char *name, int id)
{
    fprintf(f, "%s\"%s%s\": %d", id ? ", " : "{",
            *name == '"' || *name == '\\' ? "\\" : "", name, id);
}

/* ids: 0..255 the bytes backwards, then the rules in order, then the end token. */
static inline void write_rules(const char *json, const char *text,
                               const char *const *list, int n_rules)
{
    FILE *f = fopen(test_keep(pl_printf("%s/%s", folder, json)), "w");
    ck_assert_ptr_nonnull(f);
    int id = 0;
    for (int b = 255; b >= 0; b--, id++) {
        char name[5];
        name_of(b, name);
        put_json(f, name, id);
    }
    for (int i = 0; i < n_rules; i++) {
        char name[32] = "";
        for (const char *c = list[i]; *c; c++)
            if (*c != ' ') strncat(name, c, 1);
        put_json(f, name, id++);
    }
    fprintf(f, ", \"<|endoftext|>\": %d}\n", id);
    ck_assert_int_eq(fclose(f), 0);
    f = fopen(test_keep(pl_printf("%s/%s", folder, text)), "w");
    ck_assert_ptr_nonnull(f);
    fprintf(f, "#version: 0.2\n");
    for (int i = 0; i < n_rules; i++) fprintf(f, "%s\n", list[i]);
    ck_assert_int_eq(fclose(f), 0);
}

static inline void write_vocabulary(const char *json, const char *text)
{
    write_rules(json, text, rules, N_RULES);
}

static inline struct pl_tokenizer *open_ok(void)
{
    struct pl_tokenizer *t;
    ck_assert_msg(pl_tokenizer_open(folder, &t) == 0, "%s", pl_error_text());
    return t;
}

static inline struct pl_tokenizer *open_new(void)
{
    write_vocabulary("encoder.json", "vocab.bpe");
    return open_ok();
}

#endif
