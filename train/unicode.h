/* Characters of UTF-8 text, as far as a tokenizer needs them. */
#ifndef PL_TRAIN_UNICODE_H
#define PL_TRAIN_UNICODE_H

#include <stddef.h>
#include <stdint.h>

enum pl_char_class { PL_CHAR_OTHER, PL_CHAR_LETTER, PL_CHAR_NUMBER, PL_CHAR_SPACE };

/* Class of a code point (train/unicode_table.h names the Unicode version). */
enum pl_char_class pl_unicode_class(uint32_t code);

#define PL_CHAR_INVALID UINT32_MAX
/* Length and code of the character at text, n >= 1 bytes; 1 and PL_CHAR_INVALID where
 * the bytes are not UTF-8 (overlong, surrogate, above U+10FFFF, cut). */
size_t pl_utf8_decode(const unsigned char *text, size_t n, uint32_t *code);
/* UTF-8 of code < 0x110000; returns the length, at most 4. */
size_t pl_utf8_encode(uint32_t code, char *out);

#endif
