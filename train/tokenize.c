#include "train/tokenize.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/err.h"
#include "base/mem.h"
#include "train/data_source.h"

static const char mark[] = "<|endoftext|>";
enum { MARK = sizeof mark - 1, BREAKS = 4 }; /* line breaks around it, two bytes each */
enum { FIRST_ROOM = 1 << 20 };

struct reader {
    struct pl_tokenize *job;
    const char *path;
    int fd;
    char *buffer;
    size_t room, begin, n; /* n bytes from begin on are not tokenised yet */
    int64_t at;            /* their offset in the file */
    bool ended;            /* the file has no more */
    bool in_document;
    struct pl_tokens tokens;
};

static int told_to_stop(struct pl_tokenize *job, int64_t done)
{
    if (!job->on_progress || !job->on_progress(job->context, done)) return 0;
    return pl_fail(PL_EINTR, "interrupted");
}

/* Read some bytes. A terminal or a pipe may have none for long: poll, which a signal
 * ends, waits for them. */
static int read_some(struct reader *r)
{
    struct pollfd wait = {.fd = r->fd, .events = POLLIN};
    if (poll(&wait, 1, 1000) <= 0) return 0;
    ssize_t got = read(r->fd, r->buffer + r->n, r->room - r->n);
    if (got < 0 && errno != EINTR && errno != EAGAIN)
        return pl_fail(PL_EINPUT, "%s: cannot read at byte %" PRId64 ": %s", r->path,
                       r->at + (int64_t)r->n, strerror(errno));
    if (got == 0) r->ended = true;
    if (got <= 0) return 0;
    r->n += (size_t)got;
    r->job->bytes += got;
    return 0;
}

/* Fill the buffer, or read to the end of the file. */
static int fill(struct reader *r)
{
    if (r->n == r->room) {
        if (r->room >= PL_WORD_MAX)
            return pl_fail(PL_EINPUT,
                           "%s: more than %d bytes without the end of a word from byte "
                           "offset %" PRId64 " on: no text",
                           r->path, PL_WORD_MAX, r->at);
        r->room = r->room ? 2 * r->room : FIRST_ROOM;
        r->buffer = pl_grow(r->buffer, r->room, 1);
    }
    if (r->begin) memmove(r->buffer, r->buffer + r->begin, r->n);
    r->begin = 0;
    int rc = 0;
    while (!rc && !r->ended && r->n < r->room) {
        rc = read_some(r);
        if (!rc) rc = told_to_stop(r->job, r->job->bytes);
    }
    return rc;
}

/* The first line that is a mark: where its document ends and the next may start. */
static bool find_mark(const struct reader *r, size_t *end, size_t *next)
{
    const char *text = r->buffer + r->begin, *stop = text + r->n;
    for (const char *p = text; (p = memmem(p, (size_t)(stop - p), mark, MARK)); p++) {
        const char *after = p + MARK;
        bool first = p == text ? !r->in_document : p[-1] == '\n';
        bool cr = stop - after >= 2 && after[0] == '\r' && after[1] == '\n';
        bool lf = stop - after >= 1 && after[0] == '\n';
        if (!first || !(cr || lf || (after == stop && r->ended))) continue;
        size_t breaks = p == text ? 0 : cr && p - text >= 2 && p[-2] == '\r' ? 2 : 1;
        *end = (size_t)(p - text) - breaks;
        *next = (size_t)(after - text) + (cr ? 2 : lf);
        return true;
    }
    return false;
}

/* The first n bytes of text are more of the document, and all of it when last. */
static int take(struct reader *r, size_t n, bool last, size_t *taken)
{
    int rc = 0;
    struct pl_token_file *out = r->job->out;
    r->tokens.n = 0;
    *taken = pl_tokenizer_encode(r->job->tokenizer, r->buffer + r->begin, n, last,
                                 &r->tokens);
    if (!r->in_document && *taken) rc = pl_token_file_begin(out);
    r->in_document |= *taken > 0;
    if (!rc) rc = pl_token_file_add(out, r->tokens.ids, r->tokens.n);
    if (rc || !last || !r->in_document) return rc;
    r->in_document = false;
    return pl_token_file_end(out);
}

static void drop(struct reader *r, size_t n)
{
    r->n -= n;
    r->at += (int64_t)n;
    r->begin += n;
}

/* Tokenise what is certain in the text so far. */
static int advance(struct reader *r)
{
    size_t end, next, taken, kept = MARK + BREAKS;
    while (find_mark(r, &end, &next)) {
        int rc = take(r, end, true, &taken);
        if (rc) return rc;
        drop(r, next);
    }
    if (!r->ended && r->n <= kept) return 0;
    int rc = take(r, r->ended ? r->n : r->n - kept, r->ended, &taken);
    if (!rc) drop(r, taken);
    return rc;
}

static int refuse(const struct reader *r)
{
    const char *what;
    if (r->at || !r->n) return 0;
    switch (pl_data_guess_bytes((const unsigned char *)r->buffer, r->n, &what)) {
    case PL_FILE_LLMC:
    case PL_FILE_OTHER:
        return pl_fail(PL_EINPUT, "%s: no text; it is %s", r->path, what);
    default:
        return 0;
    }
}

int pl_tokenize_file(struct pl_tokenize *job, const char *path)
{
    bool standard = !strcmp(path, "-");
    struct reader r = {.job = job, .path = standard ? "standard input" : path};
    r.fd = standard ? 0 : open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (r.fd < 0) return pl_fail(PL_EINPUT, "%s: %s", path, strerror(errno));
    int rc = fill(&r);
    if (!rc) rc = refuse(&r);
    if (!rc) rc = advance(&r);
    while (!rc && !r.ended) {
        rc = fill(&r);
        if (!rc) rc = advance(&r);
    }
    if (!standard) close(r.fd);
    free(r.buffer);
    free(r.tokens.ids);
    return rc;
}

static const struct pl_data_type *type_of(const char *format)
{
    static const struct pl_data_type *const types[] = {
        &pl_data_token_file, &pl_data_nanogpt, &pl_data_megatron};
    for (int i = 0; pl_token_formats[i]; i++)
        if (!strcmp(format, pl_token_formats[i])) return types[i];
    return NULL;
}

static void print_token(const struct pl_tokenizer *t, int32_t id, bool inner, FILE *out)
{
    size_t n;
    const char *bytes = pl_tokenizer_bytes(t, id, &n);
    if (id != pl_tokenizer_end(t))
        fwrite(bytes, 1, n, out);
    else if (inner)
        fprintf(out, "\n%s\n", mark);
}

int pl_detokenize(struct pl_tokenize *job, const char *format, const char *names,
                  FILE *out)
{
    enum { PART = 4096 };
    int32_t ids[PART];
    struct pl_source source;
    const struct pl_data_type *type = type_of(format);
    if (!type)
        return pl_fail_unknown(PL_EUSAGE, "--format", "format", format,
                               pl_token_formats);
    int rc = pl_source_open(type, names, &source);
    if (rc) return rc;
    for (int64_t i = 0; i < source.n && !rc; i += PART) {
        int64_t n = source.n - i < PART ? source.n - i : PART;
        rc = pl_source_read(&source, i, n, pl_tokenizer_vocab(job->tokenizer), ids);
        for (int64_t j = 0; j < n && !rc; j++)
            print_token(job->tokenizer, ids[j], i + j > 0 && i + j + 1 < source.n, out);
        if (!rc && ferror(out)) rc = pl_fail(PL_EIO, "cannot write the text");
        if (!rc) rc = told_to_stop(job, i + n);
    }
    pl_source_free(&source);
    return rc;
}
