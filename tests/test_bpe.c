/* The tokenizer against its pattern, against merging done naively, in pieces, and
 * against vocabularies that are wrong. The words and ids that are written out here are
 * those of the pattern in Python's `regex` module, and of rules applied by hand.
 * tests/cli_tokenize.sh compares whole files in GPT-2's own vocabulary. */
#include <check.h>
#include <inttypes.h>

#include "base/rng.h"
#include "tests/bpe_case.h"
#include "tests/runner.h"

static struct pl_tokens encode(struct pl_tokenizer *t, const char *text, size_t n)
{
    struct pl_tokens out = {0};
    ck_assert_uint_eq(pl_tokenizer_encode(t, text, n, true, &out), n);
    test_keep(out.ids);
    return out;
}

START_TEST(words_of_the_pattern)
{
    static const char *const cases[][2] = {
#include "tests/bpe_words.h"
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const char *text = cases[i][0], *expected = cases[i][1];
        size_t n = strlen(text);
        while (n) {
            size_t length = pl_tokenizer_word(text, n, true), more;
            ck_assert_msg(length && length <= n && !strncmp(text, expected, length) &&
                              strchr("|", expected[length]),
                          "'%s' begins with a word of %zu bytes, expected '%s'", text,
                          length, expected);
            /* never another one when text is missing */
            for (size_t k = 1; k < n; k++) {
                more = pl_tokenizer_word(text, k, false);
                ck_assert(more == 0 || more == length);
            }
            text += length;
            n -= length;
            expected += length + (n > 0);
        }
    }
}
END_TEST

START_TEST(classes_of_characters)
{
    static const struct {
        uint32_t code;
        enum pl_char_class type;
    } cases[] = {
        {'a', PL_CHAR_LETTER},     {'[', PL_CHAR_OTHER},      {0xaa, PL_CHAR_LETTER},
        {0xb2, PL_CHAR_NUMBER},    {0xd7, PL_CHAR_OTHER},     {0x300, PL_CHAR_OTHER},
        {0x4e00, PL_CHAR_LETTER},  {0x9fff, PL_CHAR_LETTER},  {0x2167, PL_CHAR_NUMBER},
        {0x200a, PL_CHAR_SPACE},   {0x200b, PL_CHAR_OTHER},   {0x1f600, PL_CHAR_OTHER},
        {0x323af, PL_CHAR_LETTER}, {0x10ffff, PL_CHAR_OTHER}, {0x1c89, PL_CHAR_LETTER},
        {0, PL_CHAR_OTHER}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        ck_assert_msg(pl_unicode_class(cases[i].code) == cases[i].type, "U+%04" PRIX32,
                      cases[i].code);
    static const char *const bad[] = {"\x80",         "\xc0\x80",         "\xe2\x82",
                                      "\xed\xa0\x80", "\xf4\x90\x80\x80", "\xff"};
    uint32_t code;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        const unsigned char *b = (const unsigned char *)bad[i];
        ck_assert_uint_eq(pl_utf8_decode(b, strlen(bad[i]), &code), 1);
        ck_assert_uint_eq(code, PL_CHAR_INVALID);
    }
    for (code = 0; code < 0x110000; code += 17) { /* there and back */
        char text[4];
        uint32_t back;
        size_t n = pl_utf8_encode(code, text);
        if (code >= 0xd800 && code < 0xe000) continue;
        ck_assert_uint_eq(pl_utf8_decode((unsigned char *)text, n, &back), n);
        ck_assert_uint_eq(back, code);
    }
}
END_TEST

/* "hello world": h e l l o -> he ll o -> hell o -> hello; " world": the first rules of
 * it are " w", "or", "orl", "orld", at last " world". */
START_TEST(golden_tokens)
{
    struct pl_tokenizer *t = open_new();
    ck_assert_int_eq(pl_tokenizer_vocab(t), 256 + N_RULES + 1);
    ck_assert_int_eq(pl_tokenizer_end(t), 256 + N_RULES);
    struct pl_tokens x = encode(t, "hello world", 11);
    ck_assert_uint_eq(x.n, 2);
    ck_assert(x.ids[0] == 256 + 3 && x.ids[1] == 256 + 17);
    x = encode(t, "hellaaa", 7); /* hell aa a, leftmost first */
    ck_assert_uint_eq(x.n, 3);
    ck_assert(x.ids[0] == 256 + 2 && x.ids[1] == 256 + 8 && x.ids[2] == 255 - 'a');
    x = encode(t, "aaab", 4); /* "a a" comes before "a b" */
    ck_assert(x.n == 2 && x.ids[0] == 256 + 8 && x.ids[1] == 256 + 10);
    x = encode(t, "h e", 3); /* never across words */
    ck_assert_uint_eq(x.n, 3);
    x = encode(t, "<|endoftext|>", 13); /* ordinary text */
    ck_assert_uint_eq(x.n, 13);
    size_t n;
    const char *bytes = pl_tokenizer_bytes(t, 256 + 17, &n);
    ck_assert(n == 6 && !memcmp(bytes, " world", 6));
    pl_tokenizer_free(t);
    ck_assert_int_eq(rename(test_keep(pl_printf("%s/encoder.json", folder)),
                            test_keep(pl_printf("%s/vocab.json", folder))),
                     0);
    ck_assert_int_eq(rename(test_keep(pl_printf("%s/vocab.bpe", folder)),
                            test_keep(pl_printf("%s/merges.txt", folder))),
                     0);
    pl_tokenizer_free(open_ok()); /* Hugging Face's names */
}
END_TEST

/* GPT-2's own procedure: while any rule applies, apply the first one to all of the
 * word, from left to right. Tokens are kept as texts. */
static size_t naive(const char *const *list, int n_rules, const char *word, size_t n,
                    char out[][64])
{
    size_t count = n;
    for (size_t i = 0; i < n; i++) snprintf(out[i], 64, "%c", word[i]);
    for (int i = 0; i < n_rules; i++) {
        const char *space = strchr(list[i], ' ');
        char left[32], right[32];
        snprintf(left, sizeof left, "%.*s", (int)(space - list[i]), list[i]);
        snprintf(right, sizeof right, "%s", space + 1);
        for (size_t j = 0; j + 1 < count; j++) {
            if (strcmp(out[j], left) || strcmp(out[j + 1], right)) continue;
            strcat(out[j], right);
            memmove(out[j + 1], out[j + 2], (count - j - 2) * sizeof *out);
            count--;
            i = -1; /* an earlier rule may apply now */
        }
    }
    return count;
}

/* Random words of the letters, each twice: the second time from the cache. */
static void compare(struct pl_tokenizer *t, const char *const *list, int n_rules,
                    const char *letters, uint64_t seed)
{
    static char parts[200][64];
    for (uint64_t trial = 0; trial < 400; trial++) {
        char word[200];
        size_t n = 1 + pl_rng_below(seed, PL_RNG_TEST, trial, 0, 40), count;
        for (size_t i = 0; i < n; i++)
            word[i] = letters[pl_rng_below(seed + 1, PL_RNG_TEST, trial, (uint32_t)i,
                                           strlen(letters))];
        count = naive(list, n_rules, word, n, parts);
        for (int twice = 0; twice < 2; twice++) {
            struct pl_tokens x = encode(t, word, n);
            ck_assert_uint_eq(x.n, count);
            for (size_t i = 0; i < count; i++) {
                size_t length;
                const char *bytes = pl_tokenizer_bytes(t, x.ids[i], &length);
                ck_assert(length == strlen(parts[i]) &&
                          !memcmp(bytes, parts[i], length));
            }
            free(x.ids);
        }
    }
}

/* Rules in a random order over two letters and what earlier rules make; the texts leak:
 * each test is a process. */
static void random_rules(uint64_t seed, const char **list, int n)
{
    const char *made[64] = {"a", "b"};
    int n_made = 2, n_rules = 0;
    for (uint32_t i = 0; n_rules < n; i++) {
        const char *left =
            made[pl_rng_below(seed, PL_RNG_TEST, i, 1, (uint64_t)n_made)];
        const char *right =
            made[pl_rng_below(seed, PL_RNG_TEST, i, 2, (uint64_t)n_made)];
        char *both = test_keep(pl_printf("%s%s", left, right));
        bool fresh = strlen(both) < 12;
        for (int j = 0; j < n_made; j++) fresh &= strcmp(made[j], both) != 0;
        if (!fresh) continue;
        list[n_rules++] = test_keep(pl_printf("%s %s", left, right));
        made[n_made++] = both;
    }
}

START_TEST(same_as_naive_merging)
{
    struct pl_tokenizer *t = open_new();
    compare(t, rules, N_RULES, "ababhello", 1);
    pl_tokenizer_free(t);
    for (uint64_t seed = 10; seed < 40; seed++) {
        enum { n = 24 };
        const char *list[n];
        random_rules(seed, list, n);
        write_rules("encoder.json", "vocab.bpe", list, n);
        t = open_ok();
        compare(t, list, n, "ab", seed);
        pl_tokenizer_free(t);
    }
}
END_TEST

/* Any bytes come back, and pieces of any size give the same tokens. */
START_TEST(round_trip_in_pieces)
{
    struct pl_tokenizer *t = open_new();
    for (uint64_t trial = 0; trial < 300; trial++) {
        char text[600];
        size_t n = 1 + pl_rng_below(3, PL_RNG_TEST, trial, 0, sizeof text - 1);
        for (size_t i = 0; i < n; i++) {
            uint64_t r = pl_rng_below(4, PL_RNG_TEST, trial, (uint32_t)i, 512);
            text[i] =
                (char)(r < 256
                           ? r
                           : (unsigned char)"  \n'slla\303\251\344\270\255h"[r % 15]);
        }
        struct pl_tokens x = encode(t, text, n), y = {0};
        size_t at = 0, have = 0, step = 1 + trial % 37;
        for (size_t i = 0; i < x.n; i++) {
            size_t length;
            const char *bytes = pl_tokenizer_bytes(t, x.ids[i], &length);
            ck_assert(at + length <= n && !memcmp(bytes, text + at, length));
            at += length;
        }
        ck_assert_uint_eq(at, n);
        for (at = 0; at < n;) {
            have = have + step > n - at ? n - at : have + step;
            size_t taken = pl_tokenizer_encode(t, text + at, have, at + have == n, &y);
            at += taken;
            have -= taken;
        }
        ck_assert_uint_eq(y.n, x.n);
        ck_assert_mem_eq(x.ids, y.ids, x.n * sizeof *x.ids);
        free(x.ids);
        free(y.ids);
    }
    pl_tokenizer_free(t);
}
END_TEST

/* 2 million letters in one word: n log n, not n squared. */
START_TEST(one_long_word)
{
    struct pl_tokenizer *t = open_new();
    const size_t n = 2000000;
    char *text = test_keep(pl_alloc(n, 1));
    memset(text, 'a', n);
    struct pl_tokens x = encode(t, text, n);
    ck_assert_uint_eq(x.n, n / 4);
    pl_tokenizer_free(t);
}
END_TEST

static void bad_vocabulary(const char *json, const char *text, const char *cause)
{
    struct pl_tokenizer *t;
    write_vocabulary("encoder.json", "vocab.bpe");
    if (json)
        write_file(test_keep(pl_printf("%s/encoder.json", folder)), json, strlen(json));
    if (text)
        write_file(test_keep(pl_printf("%s/vocab.bpe", folder)), text, strlen(text));
    ck_assert_int_lt(pl_tokenizer_open(folder, &t), 0);
    ck_assert_ptr_null(t);
    ck_assert_msg(strstr(pl_error_text(), cause), "'%s' lacks '%s'", pl_error_text(),
                  cause);
}

START_TEST(wrong_vocabularies)
{
    struct pl_tokenizer *t;
    ck_assert_int_eq(pl_tokenizer_open(folder, &t), PL_EINPUT);
    ck_assert_ptr_nonnull(strstr(pl_error_text(), "vocab.bpe: No such file"));
    bad_vocabulary("[1]", NULL, "expected a map");
    bad_vocabulary("{\"a\": 1", NULL, "encoder.json:1:");
    bad_vocabulary("{\"a\": 0}", NULL, "1 tokens, expected 275: 256 bytes");
    bad_vocabulary(NULL, "", "no merge rules");
    bad_vocabulary(NULL, "#version: 0.2\nh e\nh\n", "vocab.bpe:3: expected two tokens");
    bad_vocabulary(NULL, "h e l\n", "vocab.bpe:1: expected two tokens");
    bad_vocabulary(NULL, "h e\nhe llo\n", "vocab.bpe:2: 'llo' is neither");
    bad_vocabulary(NULL, "h e\nl l\nh e\n", "vocab.bpe:3: 'h e' is a rule already");
    bad_vocabulary(NULL, "h e\nl l\n", "expected 259: 256 bytes");
}
END_TEST

static void fill(TCase *t)
{
    tcase_add_checked_fixture(t, setup, teardown);
    tcase_set_timeout(t, 60);
    tcase_add_test(t, words_of_the_pattern);
    tcase_add_test(t, classes_of_characters);
    tcase_add_test(t, golden_tokens);
    tcase_add_test(t, same_as_naive_merging);
    tcase_add_test(t, round_trip_in_pieces);
    tcase_add_test(t, one_long_word);
    tcase_add_test(t, wrong_vocabularies);
}

int main(void)
{
    return run_tests("bpe", fill);
}
