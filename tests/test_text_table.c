/* Tables for people: widths from cells, headings in two lines, columns left out by
 * rank; long lines broken between words. */
#include <config.h>
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "cli/text_table.h"
#include "tests/runner.h"

static char *text;
static size_t size;

static FILE *open_text(void)
{
    free(text);
    text = NULL;
    FILE *f = open_memstream(&text, &size);
    ck_assert_ptr_nonnull(f);
    return f;
}

static const char *printed(struct pl_text_table *t, const char *elsewhere)
{
    FILE *f = open_text();
    pl_text_table_print(t, elsewhere, f);
    fclose(f);
    return text;
}

static int widest(const char *s)
{
    int best = 0;
    for (; *s; s += strcspn(s, "\n") + 1)
        if ((int)strcspn(s, "\n") > best) best = (int)strcspn(s, "\n");
    return best;
}

START_TEST(as_wide_as_its_cells)
{
    struct pl_text_table *t = pl_text_table_new();
    pl_text_table_column(t, "arm", true, 0);
    pl_text_table_column(t, "empty", true, 0);
    pl_text_table_column(t, "step", false, 0);
    pl_text_table_column(t, "note", true, 0);
    pl_text_cell(t, "%s", "\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9"); /* four letters */
    pl_text_cell(t, "%s", "");
    pl_text_cell(t, "%d", 7);
    pl_text_cell(t, "%s", "x");
    pl_text_cell(t, "b");
    pl_text_note(t, "refused: far too large for every column that there is");
    pl_text_cell(t, "c");
    pl_text_note(t, "");
    ck_assert_str_eq(printed(t, NULL),
                     "arm   step  note\n"
                     "\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9     7  x\n"
                     "b     refused: far too large for every column that there is\n"
                     "c\n");
}
END_TEST

/* n columns of this heading, ranks 0, 1, ... */
static struct pl_text_table *wide(int n, const char *heading, int ranks)
{
    struct pl_text_table *t = pl_text_table_new();
    for (int c = 0; c < n; c++) {
        char *name = pl_printf("%s%d", heading, c);
        pl_text_table_column(t, name, false, ranks * c);
        free(name);
    }
    for (int c = 0; c < n; c++) pl_text_cell(t, "%d", c);
    return t;
}

START_TEST(headings_break)
{
    const char *s = printed(wide(8, "twelve_char", 0), NULL); /* 8 x 12 and gaps */
    ck_assert_int_eq(widest(s), 8 * 7 + 7 * 2);
    ck_assert(!strncmp(s, "twelve_  twelve_ ", 17));
    ck_assert_ptr_nonnull(strstr(s, "\n  char0    char1 "));
    s = printed(wide(7, "twelve_char", 0), NULL); /* fits in one line */
    ck_assert(!strncmp(s, "twelve_char0  twelve_char1 ", 27));
}
END_TEST

START_TEST(left_out_by_rank)
{
    const char *s = printed(wide(12, "ninechars", 1), "--csv has all");
    ck_assert_int_le(widest(s), PL_TEXT_WIDTH);
    ck_assert_ptr_null(strstr(s, "ninechars9\n"));
    ck_assert_ptr_nonnull(
        strstr(s, "left out for width: ninechars9, ninechars10, ninechars11 "
                  "(--csv has all)\n"));
    s = printed(wide(12, "ninechars", 0), "--csv"); /* none may be left out */
    ck_assert_int_gt(widest(s), PL_TEXT_WIDTH);
    ck_assert_ptr_null(strstr(s, "left out"));
}
END_TEST

START_TEST(lines_break)
{
    char word[PL_TEXT_WIDTH + 10], *words = pl_strdup("");
    memset(word, 'w', sizeof word - 1);
    word[sizeof word - 1] = 0;
    for (int i = 0; i < 40; i++) {
        char *more = pl_printf("%sword%d ", words, i);
        free(words);
        words = more;
    }
    FILE *f = open_text();
    pl_text_wrap(f, "label", 8, "%s", words);
    fclose(f);
    ck_assert_int_le(widest(text), PL_TEXT_WIDTH);
    ck_assert_int_gt(widest(text), PL_TEXT_WIDTH - 7);
    ck_assert(!strncmp(text, "label   word0 word1", 19));
    ck_assert_ptr_nonnull(strstr(text, "\n        word"));
    f = open_text();
    pl_text_wrap(f, "", 0, "a %s b", word); /* a word is not cut */
    fclose(f);
    char *expected = pl_printf("a\n%s\nb\n", word);
    ck_assert_str_eq(text, expected);
    free(expected);
    free(words);
}
END_TEST

static void fill(TCase *t)
{
    tcase_add_test(t, as_wide_as_its_cells);
    tcase_add_test(t, headings_break);
    tcase_add_test(t, left_out_by_rank);
    tcase_add_test(t, lines_break);
}

int main(void)
{
    return run_tests("text table", fill);
}
