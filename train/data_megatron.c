/* Megatron-LM's indexed dataset (github.com/NVIDIA/Megatron-LM,
 * megatron/core/datasets/indexed_dataset.py): NAME.bin has bare tokens; NAME.idx has 9
 * bytes "MMIDIDX\0\0", u64 version 1, u8 type of a token, u64 number S of sequences,
 * u64 entries D of the document index, then int32 lengths[S], int64 byte offsets[S],
 * int64 first sequence of each document [D] (0 first, S last), optional int8 modes[S].
 * All little-endian, unaligned.
 *
 * Megatron's GPTDataset joins the documents of an epoch in a shuffled order and cuts
 * the result into windows, which therefore cross documents; attention and loss do not
 * stop at their ends unless reset_attention_mask and eod_mask_loss are set. Here
 * windows cross documents too, with attention over all of the window; the order of
 * documents is that of the file, and windows are shuffled (data.order). So nothing in
 * the index is needed to read, and of a large one only places are checked. */
#include "train/data_source.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/err.h"
#include "base/file.h"
#include "base/mem.h"

enum { HEADER_BYTES = 34, VERSION = 1, PLACES = 64 };

struct index {
    struct pl_shard file; /* NAME.idx */
    int64_t S, D;
};

static int token_type(const struct index *index, int code, enum pl_token_type *type)
{
    static const enum pl_token_type types[] = {
        [1] = PL_TOKEN_U8,  [2] = PL_TOKEN_I8,  [3] = PL_TOKEN_I16,
        [4] = PL_TOKEN_I32, [5] = PL_TOKEN_I64, [8] = PL_TOKEN_U16};
    if (code < 1 || code > 8 || code == 6 || code == 7)
        return pl_fail(PL_EINPUT,
                       "%s: type of tokens %d%s (byte offset 17), expected an integer "
                       "type: 1 to 5, or 8",
                       index->file.path, code,
                       code == 6 || code == 7 ? ", a floating-point one" : "");
    *type = types[code];
    return 0;
}

static int read_header(struct index *index, enum pl_token_type *type)
{
    unsigned char b[HEADER_BYTES];
    const struct pl_shard *f = &index->file;
    if (f->bytes < HEADER_BYTES)
        return pl_fail(PL_EINPUT,
                       "%s: truncated header, expected %d bytes, found %" PRId64,
                       f->path, HEADER_BYTES, f->bytes);
    int rc = pl_shard_read(f, 0, b, sizeof b);
    if (rc) return rc;
    if (memcmp(b, "MMIDIDX\0\0", 9))
        return pl_data_fail_kind(f, "no Megatron index, which starts with MMIDIDX");
    if (pl_le64(b + 9) != VERSION)
        return pl_fail(PL_EINPUT,
                       "%s: version %" PRIu64 " (byte offset 9), expected %d", f->path,
                       pl_le64(b + 9), VERSION);
    rc = token_type(index, b[17], type);
    uint64_t S = pl_le64(b + 18), D = pl_le64(b + 26);
    uint64_t most = (uint64_t)f->bytes / 8; /* so that no product overflows */
    if (!rc &&
        (S > most || D > most || (uint64_t)f->bytes < HEADER_BYTES + 12 * S + 8 * D))
        rc = pl_fail(PL_EINPUT,
                     "%s: truncated: %" PRIu64 " sequences and %" PRIu64
                     " document entries (byte offset 18) do not fit into %" PRId64
                     " bytes",
                     f->path, S, D, f->bytes);
    index->S = (int64_t)S;
    index->D = (int64_t)D;
    return rc;
}

/* Lengths and offsets at sequence i. */
static int sequence(const struct index *index, int64_t i, int64_t *length, int64_t *at)
{
    unsigned char b[8];
    int rc = pl_shard_read(&index->file, HEADER_BYTES + 4 * i, b, 4);
    *length = rc ? 0 : (int32_t)pl_le32(b);
    if (!rc)
        rc = pl_shard_read(&index->file, HEADER_BYTES + 4 * index->S + 8 * i, b, 8);
    *at = rc ? 0 : (int64_t)pl_le64(b);
    return rc;
}

/* Sequence i ends where the next starts, or the file does. */
static int check_sequence(const struct index *index, const struct pl_shard *bin,
                          int64_t i)
{
    int64_t length, at, next = bin->bytes, unused;
    int rc = sequence(index, i, &length, &at);
    if (!rc && i + 1 < index->S) rc = sequence(index, i + 1, &unused, &next);
    if (rc) return rc;
    const int width = pl_token_bytes(bin->type);
    if (length < 0 || (i == 0 && at != 0))
        return pl_fail(PL_EINPUT,
                       "%s: sequence %" PRId64 " has %" PRId64
                       " tokens at byte %" PRId64 " of the .bin",
                       index->file.path, i, length, at);
    if (at >= 0 && at <= bin->bytes && at + width * length == next) return 0;
    return pl_fail(PL_EINPUT,
                   "%s: sequence %" PRId64 " lies at bytes %" PRId64 " to %" PRId64
                   " of %s, expected to end at %" PRId64 "%s",
                   index->file.path, i, at, at + width * length, bin->path, next,
                   i + 1 < index->S ? ", where the next starts"
                                    : ", the end of the file");
}

static int check_documents(const struct index *index)
{
    unsigned char b[8];
    int64_t begin = HEADER_BYTES + 12 * index->S, first = 0, last = 0;
    if (index->D == 0) return 0;
    int rc = pl_shard_read(&index->file, begin, b, 8);
    if (!rc) first = (int64_t)pl_le64(b);
    if (!rc) rc = pl_shard_read(&index->file, begin + 8 * (index->D - 1), b, 8);
    if (rc) return rc;
    last = (int64_t)pl_le64(b);
    if (first == 0 && last == index->S) return 0;
    return pl_fail(PL_EINPUT,
                   "%s: documents go from sequence %" PRId64 " to %" PRId64
                   " (byte offset %" PRId64 "), expected 0 to %" PRId64,
                   index->file.path, first, last, begin, index->S);
}

static int check_index(struct index *index, struct pl_shard *bin)
{
    int rc = read_header(index, &bin->type);
    if (rc) return rc;
    const int width = pl_token_bytes(bin->type);
    if (index->S == 0 || bin->bytes % width)
        return pl_fail(PL_EINPUT,
                       "%s: %" PRId64 " bytes in %" PRId64
                       " sequences of %d-byte tokens (%s): truncated",
                       bin->path, bin->bytes, index->S, width, index->file.path);
    int64_t places = index->S < PLACES ? index->S : PLACES;
    for (int64_t i = 0; i < places && !rc; i++)
        rc = check_sequence(
            index, bin,
            places < 2 ? 0 : (int64_t)((__int128)i * (index->S - 1) / (places - 1)));
    return rc ? rc : check_documents(index);
}

static int open_pair(struct pl_shard *bin)
{
    if (!pl_path_ends(bin->path, ".bin"))
        return pl_fail(PL_EINPUT, "%s: expected NAME.bin of Megatron, beside NAME.idx",
                       bin->path);
    struct index index = {
        .file.path = pl_printf("%.*s.idx", (int)strlen(bin->path) - 4, bin->path),
        .file.fd = -1};
    bool missing = access(index.file.path, F_OK) != 0;
    int rc = missing ? pl_data_fail_kind(bin, "no .idx of Megatron beside it")
                     : pl_shard_open(&index.file);
    if (!rc) rc = check_index(&index, bin);
    if (index.file.fd >= 0) close(index.file.fd);
    free(index.file.path);
    if (rc) return rc;
    bin->offset = 0;
    bin->n = bin->bytes / pl_token_bytes(bin->type);
    return 0;
}

const struct pl_data_type pl_data_megatron = {
    .name = "megatron",
    .summary = "Megatron-LM's .bin beside an .idx",
    .source = "github.com/NVIDIA/Megatron-LM",
    .bytes_per_token = NAN,
    .open = open_pair,
    .suffix = ".bin",
};
