/* The tokenizer against its pattern, against merging done naively, in pieces, and
 * against vocabularies and texts that are wrong. The words and ids that are written out
 * here are those of the pattern in Python's `regex` module, and of rules applied by
 * hand. tests/cli_tokenize.sh compares whole files in GPT-2's own vocabulary. */
#include <check.h>
#include <inttypes.h>

#include "base/err.h"
#include "base/file.h"
#include "base/rng.h"
#include "train/data.h"
#include "train/tokenize.h"
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
static void name_of(int byte, char *out)
{
    uint32_t hidden = 0x100, code = 0;
    for (int b = 0; b <= byte; b++) {
        bool visible = (b > 32 && b < 127) || (b > 160 && b != 173);
        code = visible ? (uint32_t)b : hidden++;
    }
    out[pl_utf8_encode(code, out)] = '\0';
}

static void put_json(FILE *f, const char *name, int id)
{
    fprintf(f, "%s\"%s%s\": %d", id ? ", " : "{",
            *name == '"' || *name == '\\' ? "\\" : "", name, id);
}

/* ids: 0..255 the bytes backwards, then the rules in order, then the end token. */
static void write_vocabulary(const char *json, const char *text)
{
    FILE *f = fopen(pl_printf("%s/%s", folder, json), "w");
    ck_assert_ptr_nonnull(f);
    int id = 0;
    for (int b = 255; b >= 0; b--, id++) {
        char name[5];
        name_of(b, name);
        put_json(f, name, id);
    }
    for (int i = 0; i < N_RULES; i++) {
        char name[16] = "";
        for (const char *c = rules[i]; *c; c++)
            if (*c != ' ') strncat(name, c, 1);
        put_json(f, name, id++);
    }
    fprintf(f, ", \"<|endoftext|>\": %d}\n", id);
    ck_assert_int_eq(fclose(f), 0);
    f = fopen(pl_printf("%s/%s", folder, text), "w");
    ck_assert_ptr_nonnull(f);
    fprintf(f, "#version: 0.2\n");
    for (int i = 0; i < N_RULES; i++) fprintf(f, "%s\n", rules[i]);
    ck_assert_int_eq(fclose(f), 0);
}

static struct pl_tokenizer *open_ok(void)
{
    struct pl_tokenizer *t;
    ck_assert_msg(pl_tokenizer_open(folder, &t) == 0, "%s", pl_error_text());
    return t;
}

static struct pl_tokenizer *open_new(void)
{
    write_vocabulary("encoder.json", "vocab.bpe");
    return open_ok();
}

static struct pl_tokens encode(struct pl_tokenizer *t, const char *text, size_t n)
{
    struct pl_tokens out = {0};
    ck_assert_uint_eq(pl_tokenizer_encode(t, text, n, true, &out), n);
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
    ck_assert_int_eq(rename(pl_printf("%s/encoder.json", folder),
                            pl_printf("%s/vocab.json", folder)),
                     0);
    ck_assert_int_eq(
        rename(pl_printf("%s/vocab.bpe", folder), pl_printf("%s/merges.txt", folder)),
        0);
    pl_tokenizer_free(open_ok()); /* Hugging Face's names */
}
END_TEST

/* GPT-2's own procedure: while any rule applies, apply the first one to all of the
 * word, from left to right. Tokens are kept as texts. */
static size_t naive(const char *word, size_t n, char out[][64])
{
    size_t count = n;
    for (size_t i = 0; i < n; i++) snprintf(out[i], 64, "%c", word[i]);
    for (int i = 0; i < N_RULES; i++) {
        const char *space = strchr(rules[i], ' ');
        char left[16], right[16];
        snprintf(left, sizeof left, "%.*s", (int)(space - rules[i]), rules[i]);
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

START_TEST(same_as_naive_merging)
{
    struct pl_tokenizer *t = open_new();
    static char parts[200][64];
    for (uint64_t trial = 0; trial < 3000; trial++) {
        char word[200];
        size_t n = 1 + pl_rng_below(1, PL_RNG_TEST, trial, 0, 40);
        for (size_t i = 0; i < n; i++)
            word[i] = "ababhello"[pl_rng_below(2, PL_RNG_TEST, trial, (uint32_t)i, 9)];
        size_t count = naive(word, n, parts);
        for (int twice = 0; twice < 2; twice++) { /* the second time from the cache */
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
    pl_tokenizer_free(t);
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
    char *text = pl_alloc(n, 1);
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
    if (json) write_file(pl_printf("%s/encoder.json", folder), json, strlen(json));
    if (text) write_file(pl_printf("%s/vocab.bpe", folder), text, strlen(text));
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

/* --- documents and token files --- */

static int64_t tokenize(struct pl_tokenizer *t, const char *format, const char *in,
                        const char *out)
{
    struct pl_tokenize job = {.tokenizer = t};
    int rc = pl_token_file_create(format, out, pl_tokenizer_vocab(t),
                                  pl_tokenizer_end(t), &job.out);
    if (!rc) rc = pl_tokenize_file(&job, in);
    ck_assert_msg(rc == 0, "%s", pl_error_text());
    int64_t documents = pl_token_file_documents(job.out);
    ck_assert_msg(pl_token_file_commit(job.out) == 0, "%s", pl_error_text());
    return documents;
}

static char *decode(struct pl_tokenizer *t, const char *format, const char *names)
{
    struct pl_tokenize job = {.tokenizer = t};
    char *text = NULL;
    size_t n;
    FILE *f = open_memstream(&text, &n);
    ck_assert_msg(pl_detokenize(&job, format, names, f) == 0, "%s", pl_error_text());
    fclose(f);
    return text;
}

START_TEST(documents_and_marks)
{
    static const struct {
        const char *text, *back; /* NULL: the same */
        int documents;
    } cases[] = {
        {"hello world\n", NULL, 1},
        {"hello\n<|endoftext|>\n world\n", NULL, 2},
        {"hello\n<|endoftext|>\n world\n<|endoftext|>\n",
         "hello\n<|endoftext|>\n world", 2},
        {"<|endoftext|>\nhello\n<|endoftext|>", "hello", 1},
        {"a\n<|endoftext|>\n\n<|endoftext|>\n<|endoftext|>\nb", "a\n<|endoftext|>\nb",
         2},
        {"a\n\n<|endoftext|>\n\nb", "a\n\n<|endoftext|>\n\nb", 2},
        {"a\r\n<|endoftext|>\r\nb\r\n", "a\n<|endoftext|>\nb\r\n", 2},
        {"a <|endoftext|>\n<|endoftext|> b\n<|endoftext|", NULL, 1},
        {"<|endoftext|>\n", "", 0},
        {"", "", 0},
    };
    struct pl_tokenizer *t = open_new();
    static const char *const formats[] = {"llmc", "nanogpt", "megatron"};
    char *bin = pl_printf("%s/out.bin", folder);
    for (size_t i = 0; i < 3 * sizeof cases / sizeof *cases; i++) {
        const char *format = formats[i % 3], *text = cases[i / 3].text;
        const char *back = cases[i / 3].back ? cases[i / 3].back : text;
        write_file(path, text, strlen(text));
        ck_assert_int_eq(tokenize(t, format, path, bin), cases[i / 3].documents);
        if (cases[i / 3].documents) ck_assert_str_eq(decode(t, format, bin), back);
    }
    pl_tokenizer_free(t);
}
END_TEST

/* Marks at every place of the reader's buffer, and documents longer than it. */
START_TEST(documents_over_buffers)
{
    struct pl_tokenizer *t = open_new();
    const size_t n = 5 << 20;
    char *text = pl_alloc(n + 100, 1), *bin = pl_printf("%s/out.bin", folder);
    size_t at = 0;
    int64_t documents = 0;
    while (at < n) {
        uint64_t words = 1 + pl_rng_below(7, PL_RNG_TEST, (uint64_t)at, 0, 900);
        if (documents % 500 == 3) words = 300000;
        for (; words && at < n; words--) at += (size_t)sprintf(text + at, "hello ");
        at += (size_t)sprintf(text + at, "%s",
                              ++documents && at < n ? "\n<|endoftext|>\n" : "");
    }
    write_file(path, text, at);
    ck_assert_int_eq(tokenize(t, "llmc", path, bin), documents);
    ck_assert_str_eq(decode(t, "llmc", bin), text);
    pl_tokenizer_free(t);
}
END_TEST

/* What is written here is what train/data reads. */
START_TEST(formats_agree)
{
    enum { T = 4 };
    static const char *const formats[][2] = {
        {"llmc", "tokens"}, {"nanogpt", "nanogpt"}, {"megatron", "megatron"}};
    struct pl_tokenizer *t = open_new();
    char *bin = pl_printf("%s/out.bin", folder);
    static const char text[] = "hello world hello\n<|endoftext|>\naaaab";
    write_file(path, text, sizeof text - 1);
    for (int i = 0; i < 3; i++) {
        struct pl_data *data;
        int32_t x[T], y[T], end = pl_tokenizer_end(t);
        tokenize(t, formats[i][0], path, bin);
        int rc =
            pl_data_open(formats[i][1], bin, NULL, 0, pl_tokenizer_vocab(t), T, &data);
        ck_assert_msg(rc == 0, "%s", pl_error_text());
        pl_data_set_order(data, PL_ORDER_FILE);
        ck_assert_int_eq(pl_data_train(data, 1, 0, x, y), 0);
        ck_assert_int_eq(x[i ? 0 : 1], 256 + 3);
        if (i == 0) ck_assert_int_eq(x[0], end);
        pl_data_free(data);
    }
    pl_tokenizer_free(t);
}
END_TEST

START_TEST(wrong_files)
{
    struct pl_token_file *f;
    struct pl_tokenizer *t = open_new();
    struct pl_tokenize job = {.tokenizer = t};
    char *bin = pl_printf("%s/out.bin", folder);
    ck_assert_int_eq(pl_token_file_create("llm", bin, 300, 299, &f), PL_EUSAGE);
    ck_assert_ptr_nonnull(strstr(pl_error_text(), "did you mean 'llmc'"));
    ck_assert_int_eq(pl_token_file_create("llmc", bin, 65537, 0, &f), PL_EUNSUP);
    ck_assert_int_eq(pl_token_file_create("megatron", path, 300, 299, &f), PL_EUSAGE);
    ck_assert_int_eq(pl_token_file_create("llmc", "/dev/null", 300, 299, &f),
                     PL_EUSAGE);
    ck_assert_int_eq(pl_token_file_create("llmc", bin, 300, 299, &job.out), 0);
    ck_assert_int_eq(pl_tokenize_file(&job, other), PL_EINPUT);
    ck_assert_int_eq(pl_tokenize_file(&job, folder), PL_EINPUT);
    ck_assert_ptr_nonnull(strstr(pl_error_text(), "Is a directory"));
    write_shard(path, 20240520, 1, 50, 50, 0);
    ck_assert_int_eq(pl_tokenize_file(&job, path), PL_EINPUT);
    ck_assert_ptr_nonnull(strstr(pl_error_text(), "no text; it is llm.c tokens"));
    pl_token_file_discard(job.out);
    ck_assert_int_ne(access(bin, F_OK), 0); /* nothing was left */
    write_shard(path, 20240520, 1, 50, 50, 400);
    ck_assert_int_eq(pl_detokenize(&job, "llmc", path, stderr), PL_EINPUT);
    ck_assert_ptr_nonnull(strstr(pl_error_text(), "has id 400"));
    /* a count that llm.c's header cannot hold; nothing is written for it */
    ck_assert_int_eq(pl_token_file_create("llmc", bin, 300, 299, &f), 0);
    ck_assert_int_eq(pl_token_file_add(f, NULL, (size_t)INT32_MAX + 1), PL_EUNSUP);
    pl_token_file_discard(f);
    pl_tokenizer_free(t);
}
END_TEST

static void fill(TCase *t)
{
    tcase_add_checked_fixture(t, setup, teardown);
    tcase_set_timeout(t, 30);
    tcase_add_test(t, words_of_the_pattern);
    tcase_add_test(t, classes_of_characters);
    tcase_add_test(t, golden_tokens);
    tcase_add_test(t, same_as_naive_merging);
    tcase_add_test(t, round_trip_in_pieces);
    tcase_add_test(t, one_long_word);
    tcase_add_test(t, wrong_vocabularies);
    tcase_add_test(t, documents_and_marks);
    tcase_add_test(t, documents_over_buffers);
    tcase_add_test(t, formats_agree);
    tcase_add_test(t, wrong_files);
}

int main(void)
{
    return run_tests("bpe", fill);
}
