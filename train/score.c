/* Texts and questions that a model is scored on (train/score.h). */
#include "train/score.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/err.h"
#include "base/file.h"
#include "base/json_read.h"
#include "base/mem.h"

struct reader {
    const char *path;
    int line, vocab, T;
    struct pl_tokenizer *tokenizer;
};

static int wrong(const struct reader *r, const char *what, long long got)
{
    return pl_fail(PL_EINPUT, "%s:%d: %s (%lld)", r->path, r->line, what, got);
}

/* Bytes are tokens without a tokenizer. The caller frees ids. */
static int encode(const struct reader *r, const char *text, struct pl_tokens *out)
{
    size_t n = strlen(text);
    if (r->tokenizer)
        pl_tokenizer_encode(r->tokenizer, text, n, true, out);
    else {
        out->ids = pl_grow(out->ids, n + 1, sizeof *out->ids);
        for (size_t i = 0; i < n; i++) out->ids[out->n++] = (unsigned char)text[i];
    }
    for (size_t i = 0; i < out->n; i++)
        if (out->ids[i] >= r->vocab)
            return wrong(r, "a token is not in model.vocab", out->ids[i]);
    return 0;
}

/* The member under either name. */
static int member(const struct reader *r, struct pl_json_value map, const char *name,
                  const char *other, struct pl_json_value *out)
{
    if (pl_json_has(map, name)) return pl_json_member(map, name, out);
    if (pl_json_has(map, other)) return pl_json_member(map, other, out);
    return pl_fail(PL_EINPUT, "%s:%d: has no \"%s\" (or \"%s\")", r->path, r->line,
                   name, other);
}

static int read_context(const struct reader *r, struct pl_json_value map,
                        struct pl_question *q)
{
    struct pl_json_value value;
    struct pl_tokens tokens = {0};
    const char *text;
    int rc = member(r, map, "context", "ctx", &value);
    if (!rc) rc = pl_json_as_text(value, &text);
    if (!rc) rc = encode(r, text, &tokens);
    if (!rc && tokens.n == 0) { /* something must come before the first choice */
        tokens.ids = pl_grow(tokens.ids, 1, sizeof *tokens.ids);
        tokens.ids[tokens.n++] =
            r->tokenizer ? pl_tokenizer_end(r->tokenizer) : (int32_t)'\n';
    }
    q->context = tokens.ids;
    q->n_context = (int)tokens.n;
    return rc;
}

static int read_choice(const struct reader *r, struct pl_json_value value,
                       struct pl_choice *out)
{
    struct pl_tokens tokens = {0};
    const char *text;
    int rc = pl_json_as_text(value, &text);
    if (!rc) rc = encode(r, text, &tokens);
    out->tokens = tokens.ids;
    out->n = (int)tokens.n;
    if (rc) return rc;
    out->bytes = strlen(text);
    if (tokens.n == 0) return wrong(r, "a choice is empty", 0);
    if (tokens.n > (size_t)r->T)
        return wrong(r, "a choice is longer than train.seq", (long long)tokens.n);
    return 0;
}

/* Cut the context so that it fits with the longest choice. */
static void fit(const struct reader *r, struct pl_question *q)
{
    int longest = 0;
    for (int i = 0; i < q->n_choices; i++)
        if (q->choices[i].n > longest) longest = q->choices[i].n;
    int room = r->T + 1 - longest, extra = q->n_context - room;
    if (extra <= 0) return;
    memmove(q->context, q->context + extra, sizeof *q->context * (size_t)room);
    q->n_context = room;
}

static int read_question(const struct reader *r, const char *line, size_t n,
                         struct pl_question *q)
{
    struct pl_json_file *file;
    struct pl_json_value choices, answer;
    int64_t right = 0;
    char *name = pl_printf("%s:%d", r->path, r->line);
    int rc = pl_json_parse(line, n, name, &file);
    free(name);
    if (rc) return pl_fail(PL_EINPUT, "%s", pl_error_text());
    const struct pl_json_value map = pl_json_root(file);
    rc = read_context(r, map, q);
    if (!rc) rc = member(r, map, "choices", "endings", &choices);
    if (!rc) rc = pl_json_expect(choices, PL_JSON_LIST);
    if (!rc && pl_json_length(choices) < 2)
        rc = wrong(r, "fewer than 2 choices", (long long)pl_json_length(choices));
    if (!rc) q->choices = PL_NEW(pl_json_length(choices), struct pl_choice);
    for (size_t i = 0; !rc && i < pl_json_length(choices); i++, q->n_choices++)
        rc = read_choice(r, pl_json_item(choices, i), &q->choices[i]);
    if (!rc) rc = member(r, map, "answer", "label", &answer);
    if (!rc) rc = pl_json_as_int(answer, 0, q->n_choices - 1, &right);
    q->answer = (int)right;
    if (!rc) fit(r, q);
    pl_json_free(file);
    return rc ? pl_fail(PL_EINPUT, "%s", pl_error_text()) : 0;
}

static void free_set(struct pl_score_set *set)
{
    for (int i = 0; i < set->n_questions; i++) {
        struct pl_question *q = &set->questions[i];
        for (int k = 0; k < q->n_choices; k++) free(q->choices[k].tokens);
        free(q->choices);
        free(q->context);
    }
    free(set->questions);
    free(set->name);
    pl_data_free(set->data);
}

int pl_score_questions(const char *path, struct pl_tokenizer *tokenizer, int vocab,
                       int T, struct pl_score_set *out)
{
    struct reader r = {.path = path, .vocab = vocab, .T = T, .tokenizer = tokenizer};
    struct pl_score_set set = {.bytes_per_token = NAN};
    char *line = NULL;
    size_t room = 0;
    struct stat st;
    if (!stat(path, &st) && !S_ISREG(st.st_mode)) /* a pipe's end may never come */
        return pl_fail(PL_EINPUT, "%s: not a regular file, expected questions", path);
    FILE *file = fopen(path, "r");
    if (!file) return pl_fail(PL_EINPUT, "%s: cannot open questions", path);
    int rc = 0;
    for (ssize_t n; !rc && (n = getline(&line, &room, file)) >= 0;) {
        r.line++;
        if (strspn(line, " \t\r\n") == (size_t)n) continue;
        set.questions =
            pl_grow(set.questions, (size_t)set.n_questions + 1, sizeof *set.questions);
        set.questions[set.n_questions] = (struct pl_question){0};
        rc = read_question(&r, line, (size_t)n, &set.questions[set.n_questions++]);
    }
    if (!rc && ferror(file)) rc = pl_fail(PL_EINPUT, "%s: cannot read questions", path);
    if (!rc && !set.n_questions) rc = pl_fail(PL_EINPUT, "%s: has no questions", path);
    free(line);
    fclose(file);
    if (rc)
        free_set(&set);
    else
        *out = set;
    return rc;
}

void pl_score_free(struct pl_score_sets *sets)
{
    for (int i = 0; i < sets->n; i++) free_set(&sets->sets[i]);
    free(sets->sets);
    *sets = (struct pl_score_sets){0};
}

int pl_score_bytes_per_token(const struct pl_data *data,
                             const struct pl_tokenizer *tokenizer, int T, int n_windows,
                             double *out)
{
    *out = pl_data_bytes_per_token(data);
    if (!tokenizer || !isnan(*out) || n_windows < 1) return 0;
    int32_t *tokens = PL_NEW(2 * T, int32_t), *targets = tokens + T;
    double bytes = 0;
    int rc = 0;
    for (int k = 0; k < n_windows && !rc; k++) {
        rc = pl_data_valid(data, k, n_windows, tokens, targets);
        for (int t = 0; t < T && !rc; t++) {
            size_t n = 0;
            if (targets[t] < pl_tokenizer_vocab(tokenizer))
                pl_tokenizer_bytes(tokenizer, targets[t], &n);
            bytes += (double)n;
        }
    }
    free(tokens);
    *out = bytes / ((double)T * n_windows);
    return rc;
}
