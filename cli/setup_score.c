#include "cli/setup_score.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/file.h"
#include "base/mem.h"
#include "cli/setup.h"
#include "cli/setup_data.h"

struct setup {
    const struct pl_config *config;
    struct pl_tokenizer *tokenizer; /* NULL: bytes */
    struct pl_score_sets *sets;
};

/* The next of 'NAME=PATH NAME=PATH ...', the caller's; NULL at the end. */
static int next_word(const struct setup *s, const char *key, const char **at,
                     char **name, char **path)
{
    *at += strspn(*at, " ");
    size_t n = strcspn(*at, " ");
    const char *equals = memchr(*at, '=', n);
    *name = *path = NULL;
    if (!n) return 0;
    if (!equals || equals == *at || equals + 1 == *at + n)
        return pl_fail(PL_ECONFIG, "%s: %s: '%.*s', expected NAME=PATH",
                       pl_config_where(s->config, key), key, (int)n, *at);
    *name = pl_printf("%.*s", (int)(equals - *at), *at);
    *path = pl_printf("%.*s", (int)(*at + n - equals - 1), equals + 1);
    *at += n;
    return 0;
}

static int add_text(struct setup *s, const char *path, struct pl_score_set *set)
{
    const int T = (int)pl_config_int(s->config, "train.seq");
    int rc = pl_setup_data_like(s->config, path, T, &set->data);
    if (rc) return rc;
    return pl_score_bytes_per_token(
        set->data, s->tokenizer, T,
        (int)pl_config_int(s->config, "train.eval_sequences"), &set->bytes_per_token);
}

static int add_questions(struct setup *s, const char *path, struct pl_score_set *set)
{
    const char *source = pl_setup_data_source(s->config);
    bool bytes = !strcmp(source, "text") || !strcmp(source, "grammar");
    if (!bytes && !s->tokenizer)
        return pl_fail(PL_ECONFIG,
                       "%s: eval.questions: the data are tokens; set data.bpe to the "
                       "folder of their vocabulary",
                       pl_config_where(s->config, "eval.questions"));
    return pl_score_questions(path, bytes ? NULL : s->tokenizer,
                              (int)pl_config_int(s->config, "model.vocab"),
                              (int)pl_config_int(s->config, "train.seq"), set);
}

static int add_all(struct setup *s, const char *key,
                   int (*add)(struct setup *, const char *, struct pl_score_set *))
{
    const char *at = pl_config_text(s->config, key);
    struct pl_score_sets *sets = s->sets;
    for (;;) {
        char *name, *path;
        int rc = next_word(s, key, &at, &name, &path);
        if (rc || !name) return rc;
        for (int i = 0; i < sets->n && !rc; i++)
            if (!strcmp(sets->sets[i].name, name))
                rc = pl_fail(PL_ECONFIG, "%s: %s: '%s' is there twice",
                             pl_config_where(s->config, key), key, name);
        if (!rc && strlen(name) >= sizeof((struct pl_score *)NULL)->name)
            rc = pl_fail(PL_ECONFIG, "%s: %s: '%s' is longer than %zu characters",
                         pl_config_where(s->config, key), key, name,
                         sizeof((struct pl_score *)NULL)->name - 1);
        struct pl_score_set set = {.bytes_per_token = NAN};
        if (!rc) rc = pl_setup_blame(s->config, key, add(s, path, &set));
        free(path);
        if (rc) {
            free(name);
            pl_data_free(set.data);
            return rc;
        }
        set.name = name;
        sets->sets = pl_grow(sets->sets, (size_t)sets->n + 1, sizeof *sets->sets);
        sets->sets[sets->n++] = set;
    }
}

int pl_setup_scores(const struct pl_config *config, const struct pl_data *data,
                    struct pl_score_sets *out, double *bytes_per_token)
{
    struct setup s = {.config = config, .sets = out};
    const char *bpe = pl_config_text(config, "data.bpe");
    int rc = 0;
    *out = (struct pl_score_sets){0};
    *bytes_per_token = NAN;
    if (!data) return 0;
    if (*bpe)
        rc = pl_setup_blame(config, "data.bpe", pl_tokenizer_open(bpe, &s.tokenizer));
    if (!rc)
        rc = pl_score_bytes_per_token(
            data, s.tokenizer, (int)pl_config_int(config, "train.seq"),
            (int)pl_config_int(config, "train.eval_sequences"), bytes_per_token);
    if (!rc) rc = add_all(&s, "eval.texts", add_text);
    if (!rc) rc = add_all(&s, "eval.questions", add_questions);
    pl_tokenizer_free(s.tokenizer);
    if (rc) pl_score_free(out);
    return rc;
}

static uint64_t mix(uint64_t hash, const void *bytes, size_t n)
{
    return (hash ^ pl_crc32(0, bytes, n)) * 0x100000001b3u;
}

uint64_t pl_setup_scores_fingerprint(const struct pl_score_sets *sets)
{
    uint64_t hash = 0;
    for (int i = 0; i < sets->n; i++) {
        const struct pl_score_set *set = &sets->sets[i];
        hash = mix(hash, set->name, strlen(set->name));
        if (set->data) hash ^= pl_data_fingerprint(set->data);
        hash = mix(hash, &set->bytes_per_token, sizeof set->bytes_per_token);
        for (int k = 0; k < set->n_questions; k++) {
            const struct pl_question *q = &set->questions[k];
            hash = mix(hash, q->context, sizeof *q->context * (size_t)q->n_context);
            hash = mix(hash, &q->answer, sizeof q->answer);
            for (int j = 0; j < q->n_choices; j++)
                hash = mix(hash, q->choices[j].tokens,
                           sizeof *q->context * (size_t)q->choices[j].n);
        }
    }
    return hash;
}
