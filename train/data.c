#include "train/data.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/mem.h"
#include "train/data_order.h"
#include "train/data_source.h"

enum { N_SPLITS = 2 };
/* What is read of a stream when it is opened: PLACES blocks of PLACE_TOKENS, evenly
 * spaced; all of it up to 2 Mi tokens. */
enum { PLACES = 64, PLACE_TOKENS = 1 << 15 };

static const struct pl_data_type *const types[] = {
    &pl_data_grammar, &pl_data_text,     &pl_data_token_file,
    &pl_data_nanogpt, &pl_data_megatron, NULL};

struct span {
    struct pl_source *source;
    int64_t first, n; /* tokens */
};

struct pl_data {
    const struct pl_data_type *type;
    int T, vocab;
    enum pl_data_order order;
    uint64_t fingerprint;
    struct pl_source sources[N_SPLITS]; /* the second only with a validation file */
    struct span spans[N_SPLITS];
    int32_t *row; /* [T+1] */
};

const char *const *pl_data_names(void)
{
    static const char *names[sizeof types / sizeof *types];
    for (int i = 0; types[i]; i++) names[i] = types[i]->name;
    return names;
}

static const struct pl_data_type *find(const char *name)
{
    for (int i = 0; types[i]; i++)
        if (strcmp(types[i]->name, name) == 0) return types[i];
    return NULL;
}

static uint64_t mix(uint64_t hash, uint64_t value) /* FNV-1a, a word at a time */
{
    hash = (hash ^ value) * UINT64_C(0x100000001b3);
    return hash ^ hash >> 32;
}

/* Check the ids at some places, and hash them. */
static int sample(struct pl_source *s, int vocab, uint64_t *hash)
{
    int32_t *ids = PL_NEW(PLACE_TOKENS, int32_t);
    int64_t places = (s->n + PLACE_TOKENS - 1) / PLACE_TOKENS;
    if (places > PLACES) places = PLACES;
    int rc = 0;
    *hash = mix(*hash, (uint64_t)s->n);
    for (int i = 0; i < s->n_shards; i++)
        *hash = mix(mix(*hash, (uint64_t)s->shards[i].bytes), s->shards[i].type);
    for (int64_t i = 0; i < places && !rc; i++) {
        int64_t n = s->n < PLACE_TOKENS ? s->n : PLACE_TOKENS, gaps = places - 1;
        int64_t first = gaps ? (int64_t)((__int128)i * (s->n - n) / gaps) : 0;
        rc = pl_source_read(s, first, n, vocab, ids);
        for (int64_t j = 0; j < n && !rc; j++) *hash = mix(*hash, (uint64_t)ids[j]);
    }
    free(ids);
    return rc;
}

static int check_length(const struct span *span, const char *split, int T)
{
    if (span->n > T) return 0;
    return pl_fail(PL_EINPUT,
                   "%s%s: %s part too short: %" PRId64
                   " tokens, expected at least %d (sequence length + 1)",
                   span->source->shards[0].path,
                   span->source->n_shards > 1 ? " and others" : "", split, span->n,
                   T + 1);
}

static int open_source(struct pl_data *data, int which, const char *path)
{
    int rc = pl_source_open(data->type, path, &data->sources[which]);
    return rc ? rc : sample(&data->sources[which], data->vocab, &data->fingerprint);
}

/* Load into data, which stays valid for pl_data_free whatever the outcome. */
static int load(struct pl_data *data, const char *path, const char *valid_path,
                double valid_fraction)
{
    struct pl_source *s = &data->sources[0];
    for (const char *c = data->type->name; *c; c++)
        data->fingerprint = mix(data->fingerprint, (unsigned char)*c);
    int rc = open_source(data, 0, path);
    if (rc) return rc;
    int64_t n_valid = valid_path ? 0 : (int64_t)((double)s->n * valid_fraction);
    data->spans[PL_SPLIT_TRAIN] = (struct span){s, 0, s->n - n_valid};
    data->spans[PL_SPLIT_VALID] = (struct span){s, s->n - n_valid, n_valid};
    if (valid_path) {
        struct pl_source *v = &data->sources[1];
        if ((rc = open_source(data, 1, valid_path))) return rc;
        data->spans[PL_SPLIT_VALID] = (struct span){v, 0, v->n};
    }
    data->fingerprint = mix(data->fingerprint, (uint64_t)n_valid);
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
    if (!type)
        return pl_fail_unknown(PL_ECONFIG, "data", "kind", name, pl_data_names());
    if (!type->make && !path)
        return pl_fail(PL_ECONFIG, "data: kind '%s' needs a path", name);
    if (type->make && valid_path)
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
    data->vocab = vocab;
    data->row = PL_NEW(T + 1, int32_t);
    int rc = load(data, path, valid_path, valid_fraction);
    if (rc) {
        pl_data_free(data);
        return rc;
    }
    *out = data;
    return 0;
}

void pl_data_free(struct pl_data *data)
{
    if (!data) return;
    for (int i = 0; i < N_SPLITS; i++) pl_source_free(&data->sources[i]);
    free(data->row);
    free(data);
}

void pl_data_set_order(struct pl_data *data, enum pl_data_order order)
{
    data->order = order;
}

int64_t pl_data_tokens(const struct pl_data *data, enum pl_split split)
{
    return data->spans[split].n;
}

double pl_data_bytes_per_token(const struct pl_data *data)
{
    return data->type->bytes_per_token;
}

uint64_t pl_data_fingerprint(const struct pl_data *data)
{
    return data->fingerprint;
}

/* The T+1 tokens from start of the span: inputs, and the same shifted by one. */
static int window(const struct pl_data *data, enum pl_split split, int64_t start,
                  int32_t *tokens, int32_t *targets)
{
    const struct span *span = &data->spans[split];
    const int T = data->T;
    assert(start >= 0 && start + T < span->n);
    int rc = pl_source_read(span->source, span->first + start, T + 1, data->vocab,
                            data->row);
    if (rc) return rc;
    memcpy(tokens, data->row, sizeof *tokens * (size_t)T);
    memcpy(targets, data->row + 1, sizeof *targets * (size_t)T);
    return 0;
}

int pl_data_train(const struct pl_data *data, uint64_t seed, int64_t k, int32_t *tokens,
                  int32_t *targets)
{
    int64_t n = data->spans[PL_SPLIT_TRAIN].n;
    return window(data, PL_SPLIT_TRAIN, pl_data_start(data->order, seed, k, n, data->T),
                  tokens, targets);
}

int pl_data_valid(const struct pl_data *data, int64_t k, int64_t n_windows,
                  int32_t *tokens, int32_t *targets)
{
    assert(k >= 0 && k < n_windows);
    int64_t starts = data->spans[PL_SPLIT_VALID].n - data->T;
    return window(data, PL_SPLIT_VALID, (int64_t)((__int128)k * starts / n_windows),
                  tokens, targets);
}
