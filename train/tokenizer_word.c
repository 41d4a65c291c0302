/* The pattern of train/tokenizer.h by hand: at each place the first alternative that
 * matches, as long as it can be. */
#include "train/tokenizer.h"
#include "train/unicode.h"

/* Bytes behind the end of a word that decide about it: one character, or what follows
 * an apostrophe. */
enum { AHEAD = 4 };

static enum pl_char_class class_at(const unsigned char *p, size_t n, size_t *length)
{
    const unsigned char c = *p;
    *length = 1;
    if (c < 0x80) {
        if ((c | 0x20u) - 'a' < 26u) return PL_CHAR_LETTER;
        if (c - (unsigned)'0' < 10u) return PL_CHAR_NUMBER;
        return c == ' ' || c - 9u < 5u ? PL_CHAR_SPACE : PL_CHAR_OTHER;
    }
    uint32_t code;
    *length = pl_utf8_decode(p, n, &code);
    return code == PL_CHAR_INVALID ? PL_CHAR_OTHER : pl_unicode_class(code);
}

/* Length of 's 't 'm 'd 're 've 'll at p, or 0. */
static size_t contraction(const unsigned char *p, size_t n)
{
    if (p[0] != '\'' || n < 2) return 0;
    if (p[1] == 's' || p[1] == 't' || p[1] == 'm' || p[1] == 'd') return 2;
    if (n < 3) return 0;
    bool e = (p[1] == 'r' || p[1] == 'v') && p[2] == 'e',
         ll = p[1] == 'l' && p[2] == 'l';
    return e || ll ? 3 : 0;
}

/* White space: all of it at the end of the text, else all but its last character, which
 * the next word may begin with; a single one stands alone. */
static size_t space(const unsigned char *p, size_t n, size_t *seen)
{
    size_t end = 0, before = 0, length;
    while (end < n && class_at(p + end, n - end, &length) == PL_CHAR_SPACE) {
        before = end;
        end += length;
    }
    *seen = end;
    return end == n || before == 0 ? end : before;
}

size_t pl_tokenizer_word(const char *text, size_t n, bool last)
{
    const unsigned char *p = (const unsigned char *)text;
    size_t length, end = contraction(p, n), seen = end;
    if (!end) {
        const size_t begin = p[0] == ' ' && n > 1;
        const enum pl_char_class type = class_at(p + begin, n - begin, &length);
        if (type == PL_CHAR_SPACE) {
            end = space(p, n, &seen);
        } else {
            end = begin + length;
            while (end < n && class_at(p + end, n - end, &length) == type)
                end += length;
            seen = end;
        }
    }
    return last || seen + AHEAD <= n ? end : 0;
}
