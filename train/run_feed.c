/* Tokens on their way to the device. While the work of one piece is done there, the
 * next is read from its files and sent; a guess of what is next that turns out wrong
 * costs one reading. */
#include "train/run_state.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

int pl_feed_open(struct pl_run_state *run, size_t tokens)
{
    struct pl_feed *feed = &run->feed;
    feed->host = PL_NEW(2 * tokens + (size_t)run->spec->T + 1, int32_t);
    feed->line = feed->host + 2 * tokens;
    int rc = 0;
    for (int i = 0; i < 2 && !rc; i++)
        rc = run->spec->device->alloc(sizeof(int32_t) * 2 * tokens,
                                      (void **)&feed->slot[i].tokens);
    return rc;
}

void pl_feed_close(struct pl_run_state *run)
{
    struct pl_feed *feed = &run->feed;
    for (int i = 0; i < 2; i++)
        if (feed->slot[i].tokens) run->spec->device->release(feed->slot[i].tokens);
    free(feed->host);
    *feed = (struct pl_feed){0};
}

static bool same(const struct pl_piece *a, const struct pl_piece *b)
{
    return a->valid == b->valid && a->first == b->first && a->from == b->from &&
           a->B == b->B;
}

/* Sequence b of a piece. Of each microbatch every rank takes its part, `part` sequences
 * one after another. */
static int sequence(const struct pl_run_spec *spec, const struct pl_piece *piece, int b,
                    int32_t *tokens, int32_t *targets)
{
    if (piece->valid)
        return pl_data_valid(piece->valid, piece->first + b, spec->eval_sequences,
                             tokens, targets);
    const int ranks = pl_run_split(spec) ? spec->ranks : 1;
    const int whole = spec->batch / spec->versions->m, part = whole / ranks;
    const int own = piece->from + b;
    return pl_data_train(spec->data, spec->seed,
                         piece->first + (ranks > 1 ? spec->rank * part : 0) +
                             own / part * whole + own % part,
                         tokens, targets);
}

static int fill(struct pl_run_state *run, const struct pl_piece *piece,
                struct pl_feed_slot *slot)
{
    const size_t T = (size_t)run->spec->T, n = (size_t)piece->B * T;
    int32_t *tokens = run->feed.host;
    int rc = 0;
    slot->full = false;
    for (int b = 0; b < piece->B && !rc; b++, tokens += T)
        rc = sequence(run->spec, piece, b, tokens, tokens + n);
    if (!rc)
        rc = run->spec->device->prefetch(slot->tokens, run->feed.host,
                                         sizeof(int32_t) * 2 * n);
    slot->piece = *piece;
    slot->full = !rc;
    return rc;
}

static struct pl_feed_slot *other(struct pl_feed *feed)
{
    return &feed->slot[1 - feed->now];
}

static int send_next(void *context)
{
    struct pl_run_state *run = context;
    struct pl_feed *feed = &run->feed;
    struct pl_feed_slot *slot = other(feed);
    if (slot->full && same(&slot->piece, &feed->next)) return 0;
    return fill(run, &feed->next, slot);
}

int pl_feed_take(struct pl_run_state *run, const struct pl_piece *piece,
                 const struct pl_piece *next, struct pl_batch *batch)
{
    struct pl_feed *feed = &run->feed;
    struct pl_feed_slot *slot = &feed->slot[feed->now];
    int rc = 0;
    if (!slot->full || !same(&slot->piece, piece)) {
        slot = other(feed);
        if (!slot->full || !same(&slot->piece, piece)) rc = fill(run, piece, slot);
        feed->now = 1 - feed->now;
    }
    batch->tokens = slot->tokens;
    batch->targets = slot->tokens + (size_t)piece->B * (size_t)run->spec->T;
    if (next) {
        feed->next = *next;
        batch->meanwhile = send_next;
        batch->context = run;
    }
    return rc;
}

int pl_feed_put(struct pl_run_state *run, const int32_t *tokens, int n,
                struct pl_batch *batch)
{
    struct pl_feed *feed = &run->feed;
    struct pl_feed_slot *slot = other(feed);
    const size_t bytes = sizeof *tokens * (size_t)n;
    feed->now = 1 - feed->now;
    slot->full = false;
    memcpy(feed->host, tokens, bytes);
    memcpy(feed->host + n, tokens + 1, bytes);
    batch->tokens = slot->tokens;
    batch->targets = slot->tokens + n;
    return run->spec->device->prefetch(slot->tokens, feed->host, 2 * bytes);
}
