/* GPT-2's byte-level byte-pair encoding. Text is cut into words by GPT-2's pattern
 *
 *   's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
 *
 * and each word, as bytes, is merged pair by pair, the earliest rule of vocab.bpe first
 * and the leftmost pair of it. Sources: Radford et al. 2019, "Language models are
 * unsupervised multitask learners"; Sennrich et al. 2016, arXiv 1508.07909;
 * github.com/openai/gpt-2, src/encoder.py (the formats of the two files).
 *
 * Bytes that are not UTF-8 count as symbols of one byte each, so that any file comes
 * back from its tokens; for valid UTF-8 the tokens are those of tiktoken and of Hugging
 * Face's GPT2Tokenizer. <|endoftext|> inside text is ordinary text (tiktoken's
 * encode_ordinary); train/tokenize.h has documents.
 *
 * Owned: pl_tokenizer_free. One thread at a time per object. */
#ifndef PL_TRAIN_TOKENIZER_H
#define PL_TRAIN_TOKENIZER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct pl_tokenizer;

/* The longest word, bytes; text has none of that length. */
enum { PL_WORD_MAX = 1 << 26 };

/* Read the vocabulary in a folder: encoder.json and vocab.bpe, or vocab.json and
 * merges.txt, as Hugging Face calls them. Errors: PL_EINPUT, PL_ECONFIG naming file and
 * line or entry. */
int pl_tokenizer_open(const char *folder, struct pl_tokenizer **out);
void pl_tokenizer_free(struct pl_tokenizer *tokenizer);

int pl_tokenizer_vocab(const struct pl_tokenizer *tokenizer);   /* ids are below it */
int32_t pl_tokenizer_end(const struct pl_tokenizer *tokenizer); /* of <|endoftext|> */
/* Bytes of a token id < vocabulary; borrowed. */
const char *pl_tokenizer_bytes(const struct pl_tokenizer *tokenizer, int32_t id,
                               size_t *n);

struct pl_tokens { /* grows; the caller frees ids */
    int32_t *ids;
    size_t n, room;
};

/* Append the tokens of text. last: nothing follows; otherwise only the words that no
 * continuation could change are taken. Returns the bytes taken (n when last). */
size_t pl_tokenizer_encode(struct pl_tokenizer *tokenizer, const char *text, size_t n,
                           bool last, struct pl_tokens *out);

/* End of the word that starts at text, n >= 1 bytes; 0: unknown, more text is needed
 * (never when last). */
size_t pl_tokenizer_word(const char *text, size_t n, bool last);

#endif
