/* Checkpoint writer and readers; the format is in train/checkpoint.h. */
#include "train/checkpoint.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/err.h"
#include "base/file.h"
#include "base/mem.h"

enum { FORMAT = 3, CHUNK = 1 << 20 };
enum section {
    META = 1,
    ROWS,
    EVALS,
    DIAGS,
    SCORES,
    WEIGHTS,
    STATE,
    LOOK,
    SECTIONS = 8
};

static const char magic[8] = "PLAGCKP";

struct header {
    char magic[8];
    uint32_t version, sections;
    uint64_t fingerprint, bytes;
    uint32_t crc, zero;
};

struct meta {
    int64_t next, status, diverged_at, n_rows, n_evals, n_diags, n_scores;
};

/* A file being written or read, with the checksum of the current section. */
struct stream {
    const char *path;
    FILE *file;
    uint32_t crc;
    bool writing;
    const struct pl_device *device;
    char *buffer; /* [CHUNK] between file and device */
};

static int bad(const struct stream *st, const char *what)
{
    return pl_fail(PL_EINPUT, "%s: checkpoint %s; delete it or train without --resume",
                   st->path, what);
}

/* Host bytes through the checksum, to or from the file. */
static int pass(struct stream *st, void *data, size_t n)
{
    size_t done =
        st->writing ? fwrite(data, 1, n, st->file) : fread(data, 1, n, st->file);
    if (done != n && st->writing)
        return pl_fail(PL_EIO, "%s: cannot write checkpoint: %s", st->path,
                       strerror(errno));
    if (done != n) return bad(st, "is truncated");
    st->crc = pl_crc32(st->crc, data, n);
    return 0;
}

/* Device bytes, in chunks. */
static int pass_device(struct stream *st, void *data, size_t n)
{
    for (size_t at = 0; at < n; at += CHUNK) {
        size_t k = n - at < CHUNK ? n - at : CHUNK;
        int rc =
            st->writing ? st->device->download(st->buffer, (char *)data + at, k) : 0;
        if (!rc) rc = pass(st, st->buffer, k);
        if (!rc && !st->writing)
            rc = st->device->upload((char *)data + at, st->buffer, k);
        if (rc) return rc;
    }
    return 0;
}

static int begin(struct stream *st, enum section id, uint64_t bytes)
{
    uint64_t head[2] = {id, bytes};
    st->crc = 0;
    int rc = pass(st, head, sizeof head);
    if (rc || (head[0] == id && head[1] == bytes)) return rc;
    return bad(st, "has other sizes than this run");
}

static int end(struct stream *st)
{
    uint32_t crc = st->crc, stored = crc;
    int rc = pass(st, &stored, sizeof stored);
    return rc || stored == crc ? rc : bad(st, "is corrupt");
}

static int pass_section(struct stream *st, enum section id, void *data, size_t n)
{
    int rc = begin(st, id, n);
    if (!rc && n) rc = pass(st, data, n);
    return rc ? rc : end(st);
}

static size_t weight_bytes(const struct pl_wstage *w)
{
    size_t blocks = (size_t)w->plan.depth + (size_t)w->n_e + (w->live != NULL);
    return blocks * sizeof(float) * w->plan.floats;
}

/* The update before too, where diagnosis keeps it. */
static size_t stage_bytes(const struct pl_run_state *run, int s)
{
    const struct pl_wstage *w = &run->store.stages[s];
    return weight_bytes(w) + (run->spec->diagnose ? sizeof(float) * w->plan.floats : 0);
}

static int pass_weights(struct stream *st, struct pl_run_state *run)
{
    size_t bytes = 0;
    for (int s = 0; s < run->plan.n_stages; s++) bytes += stage_bytes(run, s);
    int rc = begin(st, WEIGHTS, bytes);
    for (int s = 0; s < run->plan.n_stages && !rc; s++) {
        const struct pl_wstage *w = &run->store.stages[s];
        const size_t n = sizeof(float) * w->plan.floats;
        for (int k = 0; k < w->plan.depth && !rc; k++)
            rc = pass_device(st, w->ring[k], n);
        for (int k = 0; k < w->n_e && !rc; k++) rc = pass_device(st, w->e[k], n);
        if (!rc && w->live) rc = pass_device(st, w->live, n);
        if (!rc && run->spec->diagnose)
            rc = pass_device(st, run->diagnosis.before[s], n);
    }
    return rc ? rc : end(st);
}

static int pass_state(struct stream *st, struct pl_run_state *run)
{
    size_t floats = 0;
    for (int s = 0; s < run->plan.n_stages; s++) floats += run->plan.state_floats[s];
    int rc = begin(st, STATE, sizeof(float) * floats);
    for (int s = 0; s < run->plan.n_stages && !rc; s++)
        rc = pass_device(st, run->state[s], sizeof(float) * run->plan.state_floats[s]);
    return rc ? rc : end(st);
}

/* The coefficients in the newest version. */
static int pass_look(struct stream *st, struct pl_run_state *run)
{
    int rc = begin(st, LOOK, sizeof(double) * (uint64_t)run->plan.n_stages);
    for (int s = 0; s < run->plan.n_stages && !rc; s++)
        rc = pass(st, &run->store.stages[s].c_last, sizeof(double));
    return rc ? rc : end(st);
}

/* META, ROWS, EVALS, DIAGS, SCORES. Reading without spec allocates the arrays; else
 * they hold what the spec's whole run has. */
static int pass_rows(struct stream *st, struct meta *meta, struct pl_run_result *r,
                     const struct pl_run_spec *spec)
{
    int rc = pass_section(st, META, meta, sizeof *meta);
    if (rc) return rc;
    if (!st->writing) {
        bool fits = meta->n_rows >= 0 && meta->n_evals >= 0 && meta->n_diags >= 0 &&
                    meta->n_scores >= 0 && meta->next >= 0;
        if (spec)
            fits &= meta->n_rows <= spec->versions->updates &&
                    meta->next <= spec->versions->updates &&
                    meta->n_evals <= pl_run_n_evals(spec) &&
                    meta->n_diags <= pl_run_n_diags(spec) &&
                    meta->n_scores <= pl_run_n_scores(spec);
        if (!fits) return bad(st, "has other sizes than this run");
        if (!r->rows) r->rows = PL_NEW(meta->n_rows, struct pl_row);
        if (!r->evals) r->evals = PL_NEW(meta->n_evals, struct pl_eval);
        if (!r->diags) r->diags = PL_NEW(meta->n_diags, struct pl_diag);
        if (!r->scores) r->scores = PL_NEW(meta->n_scores, struct pl_score);
        r->n_rows = meta->n_rows;
        r->n_evals = meta->n_evals;
        r->n_diags = meta->n_diags;
        r->n_scores = meta->n_scores;
        r->status = (enum pl_status)meta->status;
        r->diverged_at = meta->diverged_at;
    }
    rc = pass_section(st, ROWS, r->rows, sizeof *r->rows * (size_t)r->n_rows);
    if (rc) return rc;
    rc = pass_section(st, EVALS, r->evals, sizeof *r->evals * (size_t)r->n_evals);
    if (rc) return rc;
    rc = pass_section(st, DIAGS, r->diags, sizeof *r->diags * (size_t)r->n_diags);
    if (rc) return rc;
    return pass_section(st, SCORES, r->scores, sizeof *r->scores * (size_t)r->n_scores);
}

/* Bytes of the whole file. */
static uint64_t file_bytes(const struct pl_run_state *run)
{
    uint64_t bytes = sizeof(struct header) + SECTIONS * (2 * sizeof(uint64_t) + 4);
    bytes += sizeof(struct meta) +
             sizeof(struct pl_row) * (uint64_t)run->result.n_rows +
             sizeof(struct pl_eval) * (uint64_t)run->result.n_evals +
             sizeof(struct pl_diag) * (uint64_t)run->result.n_diags +
             sizeof(struct pl_score) * (uint64_t)run->result.n_scores;
    for (int s = 0; s < run->plan.n_stages; s++)
        bytes += stage_bytes(run, s) + sizeof(double) +
                 sizeof(float) * run->plan.state_floats[s];
    return bytes;
}

static int write_all(struct stream *st, struct pl_run_state *run)
{
    struct header h = {.version = FORMAT,
                       .sections = SECTIONS,
                       .fingerprint = run->spec->fingerprint,
                       .bytes = file_bytes(run)};
    struct meta meta = {
        run->next,           run->result.status,  run->result.diverged_at,
        run->result.n_rows,  run->result.n_evals, run->result.n_diags,
        run->result.n_scores};
    memcpy(h.magic, magic, sizeof magic);
    h.crc = pl_crc32(0, &h, offsetof(struct header, crc));
    int rc = pass(st, &h, sizeof h);
    if (!rc) rc = pass_rows(st, &meta, &run->result, NULL);
    if (!rc) rc = pass_weights(st, run);
    if (!rc) rc = pass_state(st, run);
    return rc ? rc : pass_look(st, run);
}

int pl_checkpoint_save(struct pl_run_state *run)
{
    struct pl_file *file = pl_file_create(run->spec->checkpoint);
    if (!file) return PL_EIO;
    struct stream st = {.path = run->spec->checkpoint,
                        .file = pl_file_stream(file),
                        .writing = true,
                        .device = run->spec->device,
                        .buffer = pl_alloc(CHUNK, 1)};
    int rc = write_all(&st, run);
    free(st.buffer);
    if (!rc) return pl_file_commit(file);
    pl_file_discard(file);
    return rc;
}

static int check_header(struct stream *st, uint64_t fingerprint)
{
    struct header h;
    int rc = pass(st, &h, sizeof h);
    if (rc) return rc;
    if (memcmp(h.magic, magic, sizeof magic)) return bad(st, "is not one of pipelag");
    if (h.version != FORMAT)
        return pl_fail(PL_EINPUT, "%s: checkpoint has format %lu, this build reads %d",
                       st->path, (unsigned long)h.version, FORMAT);
    if (h.crc != pl_crc32(0, &h, offsetof(struct header, crc)) || h.zero)
        return bad(st, "is corrupt");
    if (h.fingerprint != fingerprint)
        return pl_fail(PL_EINPUT,
                       "%s: checkpoint is of another run: other keys, data, device or seed "
                       "(fingerprint %016llx, expected %016llx)",
                       st->path, (unsigned long long)h.fingerprint,
                       (unsigned long long)fingerprint);
    if (fseek(st->file, 0, SEEK_END) || ftell(st->file) < 0)
        return bad(st, "cannot be read");
    if ((uint64_t)ftell(st->file) < h.bytes) return bad(st, "is truncated");
    if ((uint64_t)ftell(st->file) > h.bytes) return bad(st, "is corrupt");
    return fseek(st->file, sizeof h, SEEK_SET) ? bad(st, "cannot be read") : 0;
}

/* One section of any size against its checksum. */
static int verify_section(struct stream *st, uint64_t id)
{
    uint64_t head[2];
    st->crc = 0;
    int rc = pass(st, head, sizeof head);
    if (!rc && head[0] != id) rc = bad(st, "is corrupt");
    for (uint64_t at = 0; !rc && at < head[1]; at += CHUNK) {
        uint64_t k = head[1] - at < CHUNK ? head[1] - at : CHUNK;
        rc = pass(st, st->buffer, k);
    }
    return rc ? rc : end(st);
}

/* Open, check every byte, and leave the stream at the first section. */
static int open_checked(struct stream *st, uint64_t fingerprint)
{
    st->file = fopen(st->path, "rb");
    if (!st->file)
        return pl_fail(PL_EINPUT, "%s: cannot open checkpoint: %s", st->path,
                       strerror(errno));
    st->buffer = pl_alloc(CHUNK, 1);
    struct stat kind;
    if (fstat(fileno(st->file), &kind) || !S_ISREG(kind.st_mode))
        return pl_fail(PL_EINPUT, "%s: is no file, expected a checkpoint", st->path);
    int rc = check_header(st, fingerprint);
    for (uint64_t id = META; id <= SECTIONS && !rc; id++) rc = verify_section(st, id);
    if (!rc && fseek(st->file, sizeof(struct header), SEEK_SET))
        rc = bad(st, "cannot be read");
    return rc;
}

static void stream_close(struct stream *st)
{
    if (st->file) fclose(st->file);
    free(st->buffer);
}

int pl_checkpoint_load(struct pl_run_state *run)
{
    struct stream st = {.path = run->spec->checkpoint, .device = run->spec->device};
    struct meta meta = {0};
    int rc = open_checked(&st, run->spec->fingerprint);
    if (!rc) rc = pass_rows(&st, &meta, &run->result, run->spec);
    if (!rc) rc = pass_weights(&st, run);
    if (!rc) rc = pass_state(&st, run);
    if (!rc) rc = pass_look(&st, run);
    if (!rc) run->next = run->store.version = meta.next;
    stream_close(&st);
    return rc;
}

int pl_run_load(const char *checkpoint, uint64_t fingerprint, bool *finished,
                struct pl_run_result *out)
{
    struct stream st = {.path = checkpoint};
    struct pl_run_result result = {0};
    struct meta meta = {0};
    int rc = open_checked(&st, fingerprint);
    if (!rc) rc = pass_rows(&st, &meta, &result, NULL);
    stream_close(&st);
    if (rc) {
        pl_run_free(&result);
        return rc;
    }
    *finished = result.status != PL_RUN_INTERRUPTED;
    *out = result;
    return 0;
}
