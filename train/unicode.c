#include "train/unicode.h"

struct range {
    uint32_t first, last;
    enum pl_char_class type;
};

#define L PL_CHAR_LETTER
#define N PL_CHAR_NUMBER
#define S PL_CHAR_SPACE
static const struct range ranges[] = {
#include "train/unicode_table.h"
};
#undef L
#undef N
#undef S

enum pl_char_class pl_unicode_class(uint32_t code)
{
    size_t low = 0, high = sizeof ranges / sizeof *ranges;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (ranges[middle].last < code)
            low = middle + 1;
        else
            high = middle;
    }
    return low < sizeof ranges / sizeof *ranges && ranges[low].first <= code
               ? ranges[low].type
               : PL_CHAR_OTHER;
}

size_t pl_utf8_decode(const unsigned char *text, size_t n, uint32_t *code)
{
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    const unsigned char c = text[0];
    *code = c;
    if (c < 0x80) return 1;
    size_t length = c >= 0xf8 ? 0 : c >= 0xf0 ? 4 : c >= 0xe0 ? 3 : c >= 0xc0 ? 2 : 0;
    uint32_t value = length ? c & (0xffu >> (length + 1)) : 0;
    *code = PL_CHAR_INVALID;
    if (!length || length > n) return 1;
    for (size_t i = 1; i < length; i++) {
        if ((text[i] & 0xc0) != 0x80) return 1;
        value = value << 6 | (text[i] & 0x3fu);
    }
    if (value < least[length] || value > 0x10ffff ||
        (value >= 0xd800 && value < 0xe000))
        return 1;
    *code = value;
    return length;
}

size_t pl_utf8_encode(uint32_t code, char *out)
{
    static const unsigned char lead[] = {0, 0, 0xc0, 0xe0, 0xf0};
    size_t n = code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
    for (size_t i = n; i-- > 1; code >>= 6) out[i] = (char)(0x80 | (code & 0x3f));
    out[0] = (char)(lead[n] | code);
    return n;
}
