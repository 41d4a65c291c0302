#include "train/tokenizer.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "train/tokenizer_private.h"

#define NONE UINT32_MAX

int pl_tokenizer_vocab(const struct pl_tokenizer *tokenizer)
{
    return tokenizer->vocab;
}

int32_t pl_tokenizer_end(const struct pl_tokenizer *tokenizer)
{
    return tokenizer->end;
}

const char *pl_tokenizer_bytes(const struct pl_tokenizer *tokenizer, int32_t id,
                               size_t *n)
{
    *n = tokenizer->n[id];
    return tokenizer->bytes + tokenizer->first[id];
}

static void push(struct pl_tokenizer *t, size_t *n, uint64_t order)
{
    if (*n == t->heap_room) {
        t->heap_room = 2 * t->heap_room + 64;
        t->heap = pl_grow(t->heap, t->heap_room, sizeof *t->heap);
    }
    size_t i = (*n)++;
    for (; i > 0 && t->heap[(i - 1) / 2] > order; i = (i - 1) / 2)
        t->heap[i] = t->heap[(i - 1) / 2];
    t->heap[i] = order;
}

static uint64_t pop(struct pl_tokenizer *t, size_t *n)
{
    uint64_t top = t->heap[0], order = t->heap[--*n];
    size_t i = 0;
    for (;;) {
        size_t child = 2 * i + 1;
        if (child >= *n) break;
        if (child + 1 < *n && t->heap[child + 1] < t->heap[child]) child++;
        if (t->heap[child] >= order) break;
        t->heap[i] = t->heap[child];
        i = child;
    }
    t->heap[i] = order;
    return top;
}

/* The rule for the pair that starts at place i, into rank[i] and the heap. */
static void offer(struct pl_tokenizer *t, size_t *heap, uint32_t i)
{
    const struct pl_merge *m = NULL;
    if (t->next[i] != NONE) m = pl_merge_find(t, t->symbol[i], t->symbol[t->next[i]]);
    t->rank[i] = m ? m->rank : NONE;
    if (m) push(t, heap, (uint64_t)m->rank << 32 | i);
}

static void make_room(struct pl_tokenizer *t, size_t n)
{
    if (n <= t->room) return;
    t->room = n < 128 ? 128 : 2 * n;
    t->symbol = pl_grow(t->symbol, t->room, sizeof *t->symbol);
    t->next = pl_grow(t->next, t->room, sizeof *t->next);
    t->before = pl_grow(t->before, t->room, sizeof *t->before);
    t->rank = pl_grow(t->rank, t->room, sizeof *t->rank);
}

/* Merge a word of n bytes, in O(n log n): what is left is the list from place 0. */
static void merge(struct pl_tokenizer *t, const unsigned char *word, size_t n)
{
    size_t heap = 0;
    make_room(t, n);
    for (uint32_t i = 0; i < n; i++) {
        t->symbol[i] = word[i];
        t->next[i] = i + 1 < n ? i + 1 : NONE;
        t->before[i] = i ? i - 1 : NONE;
    }
    for (uint32_t i = 0; i < n; i++) offer(t, &heap, i);
    while (heap) {
        uint64_t order = pop(t, &heap);
        uint32_t i = (uint32_t)order, gone;
        if (t->rank[i] != order >> 32) continue; /* that pair is no more */
        gone = t->next[i];
        t->symbol[i] = pl_merge_find(t, t->symbol[i], t->symbol[gone])->result;
        t->next[i] = t->next[gone];
        if (t->next[i] != NONE) t->before[t->next[i]] = i;
        t->rank[gone] = NONE;
        offer(t, &heap, i);
        if (t->before[i] != NONE) offer(t, &heap, t->before[i]);
    }
}

static void append(struct pl_tokens *out, const int32_t *ids, size_t n)
{
    if (out->n + n > out->room) {
        out->room = 2 * (out->n + n) + 1024;
        out->ids = pl_grow(out->ids, out->room, sizeof *out->ids);
    }
    memcpy(out->ids + out->n, ids, n * sizeof *ids);
    out->n += n;
}

static struct pl_word *cached(struct pl_tokenizer *t, const char *word, size_t n)
{
    uint64_t hash = n;
    for (size_t i = 0; i < n; i += 8) {
        uint64_t part = 0;
        memcpy(&part, word + i, n - i < 8 ? n - i : 8);
        hash = (hash ^ part) * UINT64_C(0x9e3779b97f4a7c15);
        hash ^= hash >> 29;
    }
    return &t->cache[hash >> (64 - PL_CACHE_BITS)];
}

static void encode_word(struct pl_tokenizer *t, const char *word, size_t n,
                        struct pl_tokens *out)
{
    struct pl_word *w = n <= PL_CACHE_WORD ? cached(t, word, n) : NULL;
    if (w && w->n && w->length == n && !memcmp(w->text, word, n)) {
        append(out, w->ids, w->n);
        return;
    }
    const size_t start = out->n;
    merge(t, (const unsigned char *)word, n);
    for (uint32_t i = 0; i != NONE; i = t->next[i])
        append(out, &t->ids[t->symbol[i]], 1);
    const size_t made = out->n - start;
    if (!w || made > PL_CACHE_IDS) return;
    w->length = (unsigned char)n;
    w->n = (unsigned char)made;
    memcpy(w->text, word, n);
    memcpy(w->ids, out->ids + start, made * sizeof *w->ids);
}

size_t pl_tokenizer_encode(struct pl_tokenizer *tokenizer, const char *text, size_t n,
                           bool last, struct pl_tokens *out)
{
    size_t done = 0;
    while (done < n) {
        size_t length = pl_tokenizer_word(text + done, n - done, last);
        if (!length) break;
        encode_word(tokenizer, text + done, length, out);
        done += length;
    }
    return done;
}

void pl_tokenizer_free(struct pl_tokenizer *tokenizer)
{
    if (!tokenizer) return;
    free(tokenizer->ids);
    free(tokenizer->bytes);
    free(tokenizer->first);
    free(tokenizer->n);
    free(tokenizer->merges);
    free(tokenizer->cache);
    free(tokenizer->symbol);
    free(tokenizer->next);
    free(tokenizer->before);
    free(tokenizer->rank);
    free(tokenizer->heap);
    free(tokenizer);
}
