/* Shared by train/tokenizer*.c. Symbols number what words are made of while they are
 * merged: 0..255 are the bytes, 256 + i is what merge rule i makes (or an earlier
 * symbol with the same bytes). */
#ifndef PL_TRAIN_TOKENIZER_PRIVATE_H
#define PL_TRAIN_TOKENIZER_PRIVATE_H

#include "train/tokenizer.h"

enum { PL_CACHE_BITS = 15, PL_CACHE_WORD = 22, PL_CACHE_IDS = 10 };

struct pl_merge { /* a slot of the hash table of pairs */
    uint32_t left, right;
    uint32_t rank;   /* line of the rule, from 0 */
    uint32_t result; /* symbol; PL_NO_SYMBOL: slot is free */
};
#define PL_NO_SYMBOL UINT32_MAX

struct pl_word { /* a word and its ids, 64 bytes; n == 0: free */
    unsigned char length, n;
    char text[PL_CACHE_WORD];
    int32_t ids[PL_CACHE_IDS];
};

struct pl_tokenizer {
    int vocab;
    int32_t end; /* id of <|endoftext|> */
    int n_symbols;
    int32_t *ids;  /* [n_symbols] */
    char *bytes;   /* of all symbols, one after another, and of the end token */
    size_t *first; /* [vocab] where an id's bytes start */
    size_t *n;     /* [vocab] and how many */
    struct pl_merge *merges; /* [mask + 1] */
    size_t mask;
    struct pl_word *cache; /* [1 << PL_CACHE_BITS] by hash of the word */
    /* scratch for one word of up to `room` bytes */
    size_t room;
    uint32_t *symbol, *next, *before, *rank;
    uint64_t *heap;
    size_t heap_room;
};

static inline size_t pl_pair_hash(uint32_t left, uint32_t right)
{
    uint64_t x = ((uint64_t)left << 32 | right) * UINT64_C(0x9e3779b97f4a7c15);
    return (size_t)(x ^ x >> 32);
}

/* The rule for a pair; NULL: none. */
static inline const struct pl_merge *pl_merge_find(const struct pl_tokenizer *t,
                                                   uint32_t left, uint32_t right)
{
    for (size_t i = pl_pair_hash(left, right);; i++) {
        const struct pl_merge *m = &t->merges[i & t->mask];
        if (m->result == PL_NO_SYMBOL) return NULL;
        if (m->left == left && m->right == right) return m;
    }
}

#endif
