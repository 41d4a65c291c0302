/* The layout language of Megatron-Core (--pipeline-model-parallel-layout): one letter a
 * layer, | between virtual stages, x*n and (x)*n. It is expanded to single letters
 * first, then read once. */
#include "sim/split_layout.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/mem.h"

enum { MAX_LETTERS = 65536, MAX_DEPTH = 16, MAX_REPEAT = 65536 };

struct layout {
    const char *text, *p;
    char *out;
    int n, depth;
};

static int fail_at(const struct layout *in, const char *expected)
{
    return pl_fail(PL_ECONFIG,
                   "model.split: '%s', character %d: expected %s (layouts: uniform, "
                   "balanced, or like Et*3|(tt|)*29,m|L)",
                   in->text, (int)(in->p - in->text) + 1, expected);
}

static void skip(struct layout *in)
{
    while (*in->p == ',' || *in->p == ' ') in->p++;
}

/* "*n" after what stands in out from position start on. */
static int repeat(struct layout *in, int start)
{
    skip(in);
    if (*in->p != '*') return PL_OK;
    in->p++;
    skip(in);
    if (!isdigit((unsigned char)*in->p)) return fail_at(in, "a number after *");
    long times = 0;
    for (; isdigit((unsigned char)*in->p); in->p++)
        if ((times = 10 * times + (*in->p - '0')) > MAX_REPEAT)
            return fail_at(in, "at most 65536 repetitions");
    int size = in->n - start;
    if (!times) return fail_at(in, "1 or more repetitions");
    if (size * (times - 1) > MAX_LETTERS - in->n)
        return fail_at(in, "at most 65536 letters in all");
    for (long i = 1; i < times; i++, in->n += size)
        memcpy(in->out + in->n, in->out + start, (size_t)size);
    return PL_OK;
}

/* Items up to the end or to the bracket that closes. */
static int expand(struct layout *in)
{
    int rc = PL_OK;
    for (skip(in); *in->p && *in->p != ')' && !rc; skip(in)) {
        int start = in->n;
        if (*in->p == '(') {
            if (++in->depth > MAX_DEPTH) return fail_at(in, "at most 16 brackets");
            in->p++;
            if ((rc = expand(in))) return rc;
            if (*in->p != ')') return fail_at(in, ")");
            in->depth--;
        } else if (!strchr("EtmL|", *in->p)) {
            return fail_at(in, "one of E t m L | ( ) *");
        } else if (in->n == MAX_LETTERS) {
            return fail_at(in, "at most 65536 letters in all");
        } else {
            in->out[in->n++] = *in->p;
        }
        in->p++;
        rc = repeat(in, start);
    }
    return rc;
}

/* One letter after the other; what may still follow only shrinks: E, t, m, L. */
static int read_letters(const struct layout *in, const struct pl_model *m, int C,
                        struct pl_chunk *chunk)
{
    const char *order = "EtmL";
    int c = 0, layers = 0, last = -1;
    chunk[0] = (struct pl_chunk){0};
    for (int i = 0; i < in->n; i++) {
        char letter = in->out[i];
        if (letter == '|') {
            if (++c < C) chunk[c] = (struct pl_chunk){.first = layers};
            continue;
        }
        int rank = (int)(strchr(order, letter) - order);
        if (rank < last || (rank == last && (letter == 'E' || letter == 'L')) ||
            (last < 0 && letter != 'E'))
            return pl_fail(
                PL_ECONFIG,
                "model.split: '%s': %c out of order, expected one E, then t, "
                "m and one L",
                in->text, letter);
        last = rank;
        layers += letter == 't';
        if (c >= C) continue;
        chunk[c].embedding |= letter == 'E';
        chunk[c].n += letter == 't';
        chunk[c].mtp += letter == 'm';
        chunk[c].head |= letter == 'L';
    }
    if (last != 3)
        return pl_fail(PL_ECONFIG, "model.split: '%s': expected L at the end",
                       in->text);
    if (c + 1 != C)
        return pl_fail(PL_ECONFIG,
                       "model.split: '%s' has %d stages, expected %d (schedule.stages, "
                       "times the chunks of a stage)",
                       in->text, c + 1, C);
    if (layers != m->layers)
        return pl_fail(PL_ECONFIG,
                       "model.split: '%s' has %d layers t, expected model.layers (%d)",
                       in->text, layers, m->layers);
    for (c = 0; c < C; c++)
        if (!chunk[c].n && !chunk[c].mtp && !chunk[c].embedding && !chunk[c].head)
            return pl_fail(PL_ECONFIG, "model.split: '%s': stage %d is empty", in->text,
                           c);
    return PL_OK;
}

int pl_split_layout(const char *text, const struct pl_model *model, int C,
                    struct pl_chunk *chunk)
{
    struct layout in = {.text = text, .p = text, .out = PL_NEW(MAX_LETTERS, char)};
    int rc = expand(&in);
    if (!rc && *in.p) rc = fail_at(&in, "no )");
    if (!rc && !in.n) rc = fail_at(&in, "a layout");
    if (!rc) rc = read_letters(&in, model, C, chunk);
    free(in.out);
    return rc;
}
