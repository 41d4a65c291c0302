/* encoder.json maps tokens to ids, vocab.bpe has a version line and one merge rule a
 * line, two tokens with a space between. Both write a byte as one printable character:
 * itself where Latin-1 has a visible one, else U+0100 + its number among the others. */
#include "train/tokenizer_private.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/err.h"
#include "base/file.h"
#include "base/json_read.h"
#include "base/mem.h"
#include "train/unicode.h"

enum { BYTES = 256, MAX_RULES = 1 << 24, MAX_FILE = 1 << 28 };

struct loader {
    struct pl_tokenizer *t;
    char *json_path, *rules_path;
    char *text; /* of vocab.bpe, its lines NUL-terminated */
    size_t text_n;
    struct pl_json_file *json;
    char **name;    /* [symbols] as the files write it, owned */
    uint32_t *slot; /* hash table of names: symbol or PL_NO_SYMBOL */
    size_t slot_mask;
    unsigned char byte_of[0x144]; /* code point to byte */
    uint32_t code_of[BYTES];
    bool known[0x144];
};

static void map_bytes(struct loader *l)
{
    uint32_t other = 0x100;
    for (uint32_t b = 0; b < BYTES; b++) {
        bool visible = (b > 32 && b < 127) || (b > 160 && b != 173);
        uint32_t code = visible ? b : other++;
        l->code_of[b] = code;
        l->byte_of[code] = (unsigned char)b;
        l->known[code] = true;
    }
}

static size_t hash_of(const char *name)
{
    uint64_t hash = 5381;
    for (; *name; name++)
        hash = (hash ^ (unsigned char)*name) * UINT64_C(0x100000001b3);
    return (size_t)(hash ^ hash >> 29);
}

/* The slot that has the name, or the free one where it belongs. */
static uint32_t *slot_of(const struct loader *l, const char *name)
{
    for (size_t i = hash_of(name);; i++) {
        uint32_t *slot = &l->slot[i & l->slot_mask];
        if (*slot == PL_NO_SYMBOL || !strcmp(l->name[*slot], name)) return slot;
    }
}

/* Takes name over. The symbol: a new one, or that of an earlier equal name. */
static uint32_t add_symbol(struct loader *l, char *name)
{
    uint32_t *slot = slot_of(l, name), symbol = (uint32_t)l->t->n_symbols++;
    l->name[symbol] = name;
    if (*slot == PL_NO_SYMBOL) *slot = symbol;
    return *slot;
}

static void add_merge(struct pl_tokenizer *t, const struct pl_merge *merge)
{
    size_t i = pl_pair_hash(merge->left, merge->right);
    while (t->merges[i & t->mask].result != PL_NO_SYMBOL) i++;
    t->merges[i & t->mask] = *merge;
}

static int add_rule(struct loader *l, char *line, int number, uint32_t rank)
{
    char *space = strchr(line, ' ');
    if (!space || space == line || !space[1] || strchr(space + 1, ' '))
        return pl_fail(PL_ECONFIG, "%s:%d: expected two tokens with a space between",
                       l->rules_path, number);
    *space = '\0';
    uint32_t left = *slot_of(l, line), right = *slot_of(l, space + 1);
    if (left == PL_NO_SYMBOL || right == PL_NO_SYMBOL)
        return pl_fail(PL_ECONFIG,
                       "%s:%d: '%s' is neither a byte nor made by an earlier line",
                       l->rules_path, number, left == PL_NO_SYMBOL ? line : space + 1);
    if (pl_merge_find(l->t, left, right))
        return pl_fail(PL_ECONFIG, "%s:%d: '%s %s' is a rule already", l->rules_path,
                       number, line, space + 1);
    struct pl_merge merge = {left, right, rank,
                             add_symbol(l, pl_printf("%s%s", line, space + 1))};
    add_merge(l->t, &merge);
    return 0;
}

static size_t power_of_two(size_t least)
{
    size_t n = 1024;
    while (n < least) n *= 2;
    return n;
}

static void make_tables(struct loader *l, size_t lines)
{
    size_t n = power_of_two(2 * (lines + BYTES));
    l->name = PL_NEW(lines + BYTES, char *);
    l->slot_mask = l->t->mask = n - 1;
    l->slot = PL_NEW(n, uint32_t);
    l->t->merges = PL_NEW(n, struct pl_merge);
    for (size_t i = 0; i < n; i++) {
        l->slot[i] = PL_NO_SYMBOL;
        l->t->merges[i].result = PL_NO_SYMBOL;
    }
    for (int b = 0; b < BYTES; b++) {
        char name[5] = {0};
        pl_utf8_encode(l->code_of[b], name);
        add_symbol(l, pl_strdup(name));
    }
}

static int read_rules(struct loader *l)
{
    size_t lines = 1;
    int rc = pl_file_read(l->rules_path, MAX_FILE, &l->text, &l->text_n), number = 0;
    if (rc) return rc;
    for (size_t i = 0; i < l->text_n; i++) {
        if (!l->text[i])
            return pl_fail(PL_EINPUT, "%s: byte offset %zu is NUL, expected text",
                           l->rules_path, i);
        lines += l->text[i] == '\n';
    }
    if (lines > MAX_RULES)
        return pl_fail(PL_EINPUT, "%s: more than %d lines", l->rules_path, MAX_RULES);
    make_tables(l, lines);
    uint32_t rank = 0;
    for (char *line = l->text, *end; line && *line && !rc; line = end) {
        end = strchr(line, '\n');
        if (end) *end++ = '\0';
        size_t n = strlen(line);
        if (n && line[n - 1] == '\r') line[n - 1] = '\0';
        number++;
        if (!*line || (number == 1 && !strncmp(line, "#version", 8))) continue;
        rc = add_rule(l, line, number, rank++);
    }
    if (!rc && !rank) rc = pl_fail(PL_EINPUT, "%s: no merge rules", l->rules_path);
    return rc;
}

/* Bytes of a symbol's name behind t->bytes + at; returns how many. Names are made of
 * byte names, so every character is known. */
static size_t put_bytes(const struct loader *l, const char *name, size_t at)
{
    size_t left = strlen(name), n = 0, step;
    for (uint32_t code; left; name += step, left -= step) {
        step = pl_utf8_decode((const unsigned char *)name, left, &code);
        l->t->bytes[at + n++] = (char)l->byte_of[code];
    }
    return n;
}

/* An id that nothing else has. */
static int take_id(const struct loader *l, const char *name, bool *taken, int32_t *id)
{
    int64_t value;
    int rc = pl_json_get_int(pl_json_root(l->json), name, 0, l->t->vocab - 1, &value);
    if (rc) return rc;
    *id = (int32_t)value;
    if (taken[value])
        return pl_fail(PL_ECONFIG, "%s: '%s' has id %d, which another token has",
                       l->json_path, name, (int)value);
    taken[value] = true;
    return 0;
}

static int read_ids(struct loader *l)
{
    static const char end[] = "<|endoftext|>";
    struct pl_tokenizer *t = l->t;
    int rc = pl_json_read(l->json_path, &l->json);
    if (!rc) rc = pl_json_expect(pl_json_root(l->json), PL_JSON_MAP);
    if (rc) return rc;
    size_t room = sizeof end, at = 0, distinct = 1;
    for (int s = 0; s < t->n_symbols; s++) {
        room += strlen(l->name[s]);
        distinct += *slot_of(l, l->name[s]) == (uint32_t)s;
    }
    size_t vocab = pl_json_length(pl_json_root(l->json));
    if (vocab != distinct)
        return pl_fail(PL_ECONFIG,
                       "%s: %zu tokens, expected %zu: 256 bytes, what %s makes, and "
                       "%s; the files belong to different vocabularies",
                       l->json_path, vocab, distinct, l->rules_path, end);
    t->vocab = (int)vocab;
    t->ids = PL_NEW(t->n_symbols, int32_t);
    t->bytes = PL_NEW(room, char);
    t->first = PL_NEW(vocab, size_t);
    t->n = PL_NEW(vocab, size_t);
    bool *taken = PL_NEW(vocab, bool);
    for (int s = 0; s < t->n_symbols && !rc; s++) {
        if (*slot_of(l, l->name[s]) != (uint32_t)s) continue; /* never a result */
        rc = take_id(l, l->name[s], taken, &t->ids[s]);
        if (rc) break;
        t->first[t->ids[s]] = at;
        t->n[t->ids[s]] = put_bytes(l, l->name[s], at);
        at += t->n[t->ids[s]];
    }
    if (!rc) rc = take_id(l, end, taken, &t->end);
    if (!rc) {
        memcpy(t->bytes + at, end, sizeof end - 1);
        t->first[t->end] = at;
        t->n[t->end] = sizeof end - 1;
    }
    free(taken);
    return rc;
}

static void find_files(struct loader *l, const char *folder)
{
    l->json_path = pl_printf("%s/encoder.json", folder);
    l->rules_path = pl_printf("%s/vocab.bpe", folder);
    char *json = pl_printf("%s/vocab.json", folder);
    if (access(l->json_path, F_OK) && !access(json, F_OK)) {
        free(l->json_path);
        free(l->rules_path);
        l->json_path = json;
        l->rules_path = pl_printf("%s/merges.txt", folder);
        return;
    }
    free(json);
}

int pl_tokenizer_open(const char *folder, struct pl_tokenizer **out)
{
    struct loader l = {.t = PL_NEW(1, struct pl_tokenizer)};
    *out = NULL;
    find_files(&l, folder);
    map_bytes(&l);
    l.t->cache = PL_NEW(1 << PL_CACHE_BITS, struct pl_word);
    int rc = read_rules(&l);
    if (!rc) rc = read_ids(&l);
    for (int s = 0; s < l.t->n_symbols; s++) free(l.name[s]);
    free(l.name);
    free(l.slot);
    free(l.text);
    pl_json_free(l.json);
    free(l.json_path);
    free(l.rules_path);
    if (rc)
        pl_tokenizer_free(l.t);
    else
        *out = l.t;
    return rc;
}
