#include "train/data.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/mem.h"
#include "base/rng.h"
#include "train/data_source.h"

enum { N_SPLITS = 2 };

static const struct pl_data_type *const types[] = {&pl_data_grammar, &pl_data_text,
                                                   &pl_data_token_file, NULL};
const char *const pl_data_names[] = {"grammar", "text", "tokens", NULL};

struct span {
    const struct pl_source *source;
    int64_t first, n; /* tokens */
};

struct pl_data {
    const struct pl_data_type *type;
    int T;
    struct pl_source sources[N_SPLITS]; /* the second only with a validation file */
    struct span spans[N_SPLITS];
};

static const struct pl_data_type *find(const char *name)
{
    for (int i = 0; types[i]; i++)
        if (strcmp(types[i]->name, name) == 0) return types[i];
    return NULL;
}

static int check_ids(const struct pl_source *s, int vocab)
{
    for (int64_t i = 0; i < s->n; i++) {
        int32_t id = pl_source_token(s, i);
        if (id >= vocab)
            return pl_fail(PL_EINPUT,
                           "%s: token %" PRId64 " (byte offset %" PRId64
                           ") has id %" PRId32 ", expected below the vocabulary of %d",
                           s->name, i, (int64_t)s->header + i * s->width, id, vocab);
    }
    return 0;
}

static int check_length(const struct span *span, const char *split, int T)
{
    if (span->n > T) return 0;
    return pl_fail(PL_EINPUT,
                   "%s: %s part too short: %" PRId64
                   " tokens, expected at least %d (sequence length + 1)",
                   span->source->name, split, span->n, T + 1);
}

/* Load into data, which stays valid for pl_data_free whatever the outcome. */
static int load(struct pl_data *data, const char *path, const char *valid_path,
                double valid_fraction, int vocab)
{
    const struct pl_source *s = &data->sources[0];
    int rc = data->type->load(path, &data->sources[0]);
    if (rc || (rc = check_ids(s, vocab))) return rc;
    int64_t n_valid = valid_path ? 0 : (int64_t)((double)s->n * valid_fraction);
    data->spans[PL_SPLIT_TRAIN] = (struct span){s, 0, s->n - n_valid};
    data->spans[PL_SPLIT_VALID] = (struct span){s, s->n - n_valid, n_valid};
    if (valid_path) {
        const struct pl_source *v = &data->sources[1];
        if ((rc = data->type->load(valid_path, &data->sources[1])) ||
            (rc = check_ids(v, vocab)))
            return rc;
        data->spans[PL_SPLIT_VALID] = (struct span){v, 0, v->n};
    }
    if ((rc = check_length(&data->spans[PL_SPLIT_TRAIN], "training", data->T)))
        return rc;
    if (!valid_path && valid_fraction == 0) return 0; /* no validation asked for */
    return check_length(&data->spans[PL_SPLIT_VALID], "validation", data->T);
}

int pl_data_open(const char *name, const char *path, const char *valid_path,
                 double valid_fraction, int vocab, int T, struct pl_data **out)
{
    *out = NULL;
    const struct pl_data_type *type = find(name);
    if (!type) return pl_fail_unknown(PL_ECONFIG, "data", "kind", name, pl_data_names);
    if (type->needs_path && !path)
        return pl_fail(PL_ECONFIG, "data: kind '%s' needs a path", name);
    if (!type->needs_path && valid_path)
        return pl_fail(PL_ECONFIG, "data: kind '%s' takes no validation file", name);
    if (!(valid_fraction >= 0 && valid_fraction < 1))
        return pl_fail(PL_ECONFIG, "data: validation fraction %g, expected in [0, 1)",
                       valid_fraction);
    if (T < 1 || vocab < 1)
        return pl_fail(PL_ECONFIG,
                       "data: sequence length %d, vocabulary %d, expected at least 1",
                       T, vocab);
    struct pl_data *data = PL_NEW(1, struct pl_data);
    data->type = type;
    data->T = T;
    int rc = load(data, path, valid_path, valid_fraction, vocab);
    if (rc) {
        pl_data_free(data);
        return rc;
    }
    for (int i = 0; i < N_SPLITS; i++)
        data->sources[i].name = NULL; /* was the caller's */
    *out = data;
    return 0;
}

void pl_data_free(struct pl_data *data)
{
    if (!data) return;
    for (int i = 0; i < N_SPLITS; i++) pl_source_free(&data->sources[i]);
    free(data);
}

int64_t pl_data_tokens(const struct pl_data *data, enum pl_split split)
{
    return data->spans[split].n;
}

double pl_data_bytes_per_token(const struct pl_data *data)
{
    return data->type->bytes_per_token;
}

/* The T+1 tokens from start of the span: inputs, and the same shifted by one. */
static void window(const struct pl_data *data, enum pl_split split, int64_t start,
                   int32_t *tokens, int32_t *targets)
{
    const struct span *span = &data->spans[split];
    assert(start >= 0 && start + data->T < span->n);
    for (int t = 0; t < data->T; t++) {
        tokens[t] = pl_source_token(span->source, span->first + start + t);
        targets[t] = pl_source_token(span->source, span->first + start + t + 1);
    }
}

void pl_data_train(const struct pl_data *data, uint64_t seed, int64_t k,
                   int32_t *tokens, int32_t *targets)
{
    uint64_t starts = (uint64_t)(data->spans[PL_SPLIT_TRAIN].n - data->T);
    window(data, PL_SPLIT_TRAIN,
           (int64_t)pl_rng_below(seed, PL_RNG_DATA, (uint64_t)k, 0, starts), tokens,
           targets);
}

void pl_data_valid(const struct pl_data *data, int64_t k, int64_t n_windows,
                   int32_t *tokens, int32_t *targets)
{
    assert(k >= 0 && k < n_windows);
    int64_t starts = data->spans[PL_SPLIT_VALID].n - data->T;
    window(data, PL_SPLIT_VALID, (int64_t)((__int128)k * starts / n_windows), tokens,
           targets);
}
