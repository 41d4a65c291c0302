/* English-like text from a seeded context-free grammar: verbs agree with the head noun
 * across relative clauses and brackets (Linzen et al., arXiv 1611.01368), clauses nest,
 * and a paragraph keeps returning to its own few nouns, so there is something to learn
 * at every distance from the next letter to the paragraph. The same megabyte every
 * time. */
#include "train/data_source.h"

#include <string.h>

#include "base/mem.h"
#include "base/rng.h"

enum { TARGET_BYTES = 1 << 20, SLACK = 1 << 14, MAX_DEPTH = 3, TOPICS = 4 };
static const uint64_t corpus_seed = 1;

static const char *const nouns[][2] = {
    {"farmer", "farmers"}, {"teacher", "teachers"}, {"child", "children"},
    {"fox", "foxes"},      {"sailor", "sailors"},   {"doctor", "doctors"},
    {"horse", "horses"},   {"singer", "singers"},   {"wolf", "wolves"},
    {"baker", "bakers"},   {"king", "kings"},       {"woman", "women"},
    {"mouse", "mice"},     {"pilot", "pilots"},     {"bird", "birds"},
    {"witch", "witches"}};
static const char *const transitive[][2] = {
    {"sees", "see"},      {"follows", "follow"}, {"admires", "admire"},
    {"knows", "know"},    {"fears", "fear"},     {"helps", "help"},
    {"watches", "watch"}, {"teaches", "teach"}};
static const char *const intransitive[][2] = {
    {"sleeps", "sleep"},       {"laughs", "laugh"},    {"runs", "run"},
    {"sings", "sing"},         {"waits", "wait"},      {"arrives", "arrive"},
    {"is tired", "are tired"}, {"is here", "are here"}};
static const char *const adjectives[] = {"old",   "young", "quiet", "clever",
                                         "brave", "small", "happy", "lonely"};
static const char *const prepositions[] = {"near", "behind", "with", "beside"};
static const char *const names[] = {"Anna", "Boris", "Clara", "David", "Emma", "Felix"};
static const char *const links[] = {"and", "but", "because", "while"};

#define COUNT(a) (sizeof(a) / sizeof *(a))

struct writer {
    char *text;
    size_t n;
    uint64_t draws;
    size_t topic[TOPICS]; /* nouns of this paragraph */
};

static size_t below(struct writer *w, size_t n)
{
    return (size_t)pl_rng_below(corpus_seed, PL_RNG_CORPUS, w->draws++, 0, n);
}

static bool one_in(struct writer *w, size_t n)
{
    return below(w, n) == 0;
}

/* A comma that ends a relative clause gives way to whatever mark follows it. */
static void put(struct writer *w, const char *word)
{
    size_t n = strlen(word);
    if (strchr(".,)", word[0]) && w->n > 0 && w->text[w->n - 1] == ',') w->n--;
    memcpy(w->text + w->n, word, n);
    w->n += n;
}

static void put_after_space(struct writer *w, const char *word)
{
    put(w, " ");
    put(w, word);
}

static void verb_phrase(struct writer *w, size_t plural, int depth);

/* Writes without a leading space; returns 1 when the phrase is plural. */
static size_t noun_phrase(struct writer *w, int depth)
{
    size_t plural = below(w, 2);
    size_t noun = one_in(w, 5) ? below(w, COUNT(nouns)) : w->topic[below(w, TOPICS)];
    put(w, plural ? (one_in(w, 2) ? "these" : "the") : (one_in(w, 2) ? "this" : "the"));
    if (one_in(w, 3)) put_after_space(w, adjectives[below(w, COUNT(adjectives))]);
    put_after_space(w, nouns[noun][plural]);
    if (depth >= MAX_DEPTH) return plural;
    switch (below(w, 8)) {
    case 0: /* prepositional phrase: an attractor between noun and verb */
        put_after_space(w, prepositions[below(w, COUNT(prepositions))]);
        put(w, " ");
        noun_phrase(w, depth + 1);
        break;
    case 1: /* subject relative: its verb agrees with this noun */
        put(w, " who");
        verb_phrase(w, plural, depth + 1);
        put(w, ",");
        break;
    case 2: /* object relative: its verb agrees with the inner noun */
        put(w, " whom ");
        size_t inner = noun_phrase(w, depth + 1);
        put_after_space(w, transitive[below(w, COUNT(transitive))][inner]);
        put(w, ",");
        break;
    }
    return plural;
}

static void verb_phrase(struct writer *w, size_t plural, int depth)
{
    if (one_in(w, 3)) {
        put_after_space(w, intransitive[below(w, COUNT(intransitive))][plural]);
        return;
    }
    put_after_space(w, transitive[below(w, COUNT(transitive))][plural]);
    put(w, " ");
    noun_phrase(w, depth + 1);
}

static void clause(struct writer *w, int depth)
{
    size_t plural = noun_phrase(w, depth);
    if (depth < MAX_DEPTH && one_in(w, 8)) { /* a bracketed clause before the verb */
        put(w, " (");
        clause(w, depth + 1);
        put(w, ")");
    }
    verb_phrase(w, plural, depth);
}

static void sentence(struct writer *w)
{
    size_t start = w->n;
    if (one_in(w, 6)) {
        const char *name = names[below(w, COUNT(names))];
        put(w, name);
        put(w, " says that ");
        clause(w, 1);
        put(w, ", and ");
        put(w, name); /* copied from the start of the sentence */
        put(w, one_in(w, 2) ? " is right" : " is wrong");
    } else {
        clause(w, 0);
        w->text[start] = (char)(w->text[start] - 'a' + 'A');
        if (one_in(w, 3)) {
            put_after_space(w, links[below(w, COUNT(links))]);
            put(w, " ");
            clause(w, 1);
        }
    }
    put(w, ".");
}

static void paragraph(struct writer *w)
{
    for (int i = 0; i < TOPICS; i++) w->topic[i] = below(w, COUNT(nouns));
    for (size_t left = 4 + below(w, 6); left > 0; left--) {
        sentence(w);
        put(w, left > 1 ? " " : "\n\n");
    }
}

static char *make(int64_t *n)
{
    struct writer w = {.text = PL_NEW(TARGET_BYTES + SLACK, char)};
    while (w.n < TARGET_BYTES) paragraph(&w);
    *n = (int64_t)w.n;
    return w.text;
}

const struct pl_data_type pl_data_grammar = {
    .name = "grammar",
    .summary = "a megabyte of English-like text from a seeded grammar, as bytes",
    .source = "arXiv 1611.01368 (agreement across clauses)",
    .bytes_per_token = 1,
    .make = make,
    .suffix = "",
};
