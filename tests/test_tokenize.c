/* Text files to token files and back: documents and their marks, formats, bad files. */
#include <check.h>
#include <sys/stat.h>

#include "base/rng.h"
#include "train/data.h"
#include "train/tokenize.h"
#include "tests/bpe_case.h"
#include "tests/runner.h"

static const struct pl_token_shards whole = {0, false};

static int64_t tokenize(struct pl_tokenizer *t, const char *format, const char *in,
                        const char *out)
{
    struct pl_tokenize job = {.tokenizer = t};
    int rc = pl_token_file_create(format, out, whole, pl_tokenizer_vocab(t),
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
    return test_keep(text);
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
    char *bin = test_keep(pl_printf("%s/out.bin", folder));
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
    char *text = test_keep(pl_alloc(n + 100, 1)),
         *bin = test_keep(pl_printf("%s/out.bin", folder));
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

/* The same at the end of the reader's first buffer, 1 MiB: the line break before a mark
 * is not taken as long as the mark is not seen to its end. */
START_TEST(mark_at_the_end_of_a_buffer)
{
    struct pl_tokenizer *t = open_new();
    const size_t room = 1 << 20, tail = 80;
    char *text = test_keep(pl_alloc(room + 200, 1)),
         *bin = test_keep(pl_printf("%s/out.bin", folder));
    memset(text, 'a', room + 200); /* one token for four: few to compare */
    for (size_t at = 0; at < room + tail; at += 64) text[at] = ' ';
    for (size_t k = 0; k < 24; k++) {
        char *end = text + room - 20 + k;
        char kept[40];
        memcpy(kept, end, sizeof kept);
        snprintf(end, sizeof kept, "\n<|endoftext|>\n hello");
        write_file(path, text, strlen(text));
        ck_assert_int_eq(tokenize(t, "llmc", path, bin), 2);
        char *back = decode(t, "llmc", bin);
        ck_assert_str_eq(back, text);
        free(back);
        memcpy(end, kept, sizeof kept);
    }
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
    char *bin = test_keep(pl_printf("%s/out.bin", folder));
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

/* Tokens 0 to n - 1 of one document into shards; how many files. */
static int count_into(const char *format, const char *out, int64_t tokens, bool valid,
                      int n)
{
    struct pl_token_file *f;
    const struct pl_token_shards shards = {tokens, valid};
    ck_assert_msg(!pl_token_file_create(format, out, shards, 300, 299, &f), "%s",
                  pl_error_text());
    ck_assert_int_eq(pl_token_file_begin(f), 0);
    for (int32_t id = 0; id < n; id += 50) {
        int32_t ids[50];
        for (int32_t i = 0; i < 50; i++) ids[i] = id + i;
        ck_assert_int_eq(pl_token_file_add(f, ids, 50), 0);
    }
    ck_assert_int_eq(pl_token_file_end(f), 0);
    const int files = pl_token_file_shards(f);
    ck_assert_int_eq(pl_token_file_tokens(f), n + 1);
    ck_assert_msg(!pl_token_file_commit(f), "%s", pl_error_text());
    return files;
}

static int64_t size_of(const char *format, int k, const char *infix)
{
    struct stat st;
    char *name = test_keep(pl_printf("%s/%s_%s%06d.bin", folder, format, infix, k));
    return stat(name, &st) ? -1 : st.st_size;
}

/* 251 tokens: 63 62 62 62 would be even, but all files but the last are full. */
START_TEST(shards_are_the_stream)
{
    static const char *const formats[] = {"llmc", "nanogpt"};
    const char *format = formats[_i], *kind = _i ? "nanogpt" : "tokens";
    const int head = _i ? 0 : 1024;
    char *out = test_keep(pl_printf("%s/%s.bin", folder, format));
    char *files = test_keep(pl_printf("%s/%s_0*.bin", folder, format));
    struct pl_data *whole_data, *cut;
    int32_t a[251], b[251];
    ck_assert_int_eq(count_into(format, out, 0, false, 250), 1);
    ck_assert_int_eq(count_into(format, out, 63, false, 250), 4);
    for (int k = 1; k < 5; k++)
        ck_assert_int_eq(size_of(format, k, ""), head + 2 * (k < 4 ? 63 : 62));
    ck_assert_int_eq(size_of(format, 5, ""), -1);
    ck_assert_msg(!pl_data_open(kind, out, NULL, 0, 300, 250, &whole_data), "%s",
                  pl_error_text());
    ck_assert_msg(!pl_data_open(kind, files, NULL, 0, 300, 250, &cut), "%s",
                  pl_error_text());
    ck_assert_int_eq(pl_data_train(whole_data, 1, 0, a, a + 1), 0);
    ck_assert_int_eq(pl_data_train(cut, 1, 0, b, b + 1), 0);
    ck_assert_mem_eq(a, b, sizeof a);
    ck_assert_int_eq(a[0], _i ? 0 : 299);
    pl_data_free(whole_data);
    pl_data_free(cut);
    /* a full last file is no reason for an empty one; older files do not stay */
    ck_assert_int_eq(count_into(format, out, 251, false, 250), 1);
    ck_assert_int_eq(size_of(format, 1, ""), head + 2 * 251);
    ck_assert_int_eq(size_of(format, 2, ""), -1);
    ck_assert_int_eq(size_of(format, 4, ""), -1);
    ck_assert_int_eq(count_into(format, out, 100, true, 250), 3);
    ck_assert_int_eq(size_of(format, 0, "val_"), head + 200);
    ck_assert_int_eq(size_of(format, 1, "train_"), head + 200);
    ck_assert_int_eq(size_of(format, 2, "train_"), head + 102);
}
END_TEST

START_TEST(wrong_files)
{
    struct pl_token_file *f;
    struct pl_tokenizer *t = open_new();
    struct pl_tokenize job = {.tokenizer = t};
    char *bin = test_keep(pl_printf("%s/out.bin", folder));
    ck_assert_int_eq(pl_token_file_create("llm", bin, whole, 300, 299, &f), PL_EUSAGE);
    ck_assert_ptr_nonnull(strstr(pl_error_text(), "did you mean 'llmc'"));
    ck_assert_int_eq(pl_token_file_create("llmc", bin, whole, 65537, 0, &f), PL_EUNSUP);
    ck_assert_int_eq(pl_token_file_create("megatron", path, whole, 300, 299, &f),
                     PL_EUSAGE);
    ck_assert_int_eq(pl_token_file_create("megatron", bin,
                                          (struct pl_token_shards){9, false}, 300, 299,
                                          &f),
                     PL_EUSAGE);
    ck_assert_int_eq(pl_token_file_create("llmc", bin,
                                          (struct pl_token_shards){1LL << 31, false},
                                          300, 299, &f),
                     PL_EUSAGE);
    ck_assert_int_eq(pl_token_file_create("llmc", "/dev/null", whole, 300, 299, &f),
                     PL_EUSAGE);
    ck_assert_int_eq(pl_token_file_create("llmc", bin, whole, 300, 299, &job.out), 0);
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
    ck_assert_int_eq(pl_token_file_create("llmc", bin, whole, 300, 299, &f), 0);
    ck_assert_int_eq(pl_token_file_add(f, NULL, (size_t)INT32_MAX + 1), PL_EUNSUP);
    pl_token_file_discard(f);
    pl_tokenizer_free(t);
}
END_TEST

static void fill(TCase *t)
{
    tcase_add_checked_fixture(t, setup, teardown);
    tcase_set_timeout(t, 60);
    tcase_add_test(t, documents_and_marks);
    tcase_add_test(t, documents_over_buffers);
    tcase_add_test(t, mark_at_the_end_of_a_buffer);
    tcase_add_test(t, formats_agree);
    tcase_add_loop_test(t, shards_are_the_stream, 0, 2);
    tcase_add_test(t, wrong_files);
}

int main(void)
{
    return run_tests("tokenize", fill);
}
