/* llm.c / FineWeb / modded-nanogpt shard (github.com/karpathy/llm.c, dev/data and
 * llmc/dataloader.h): little-endian header of 256 int32 (magic, version, number of
 * tokens, zeros), then that many tokens. Magic 20240520, version 1: uint16 (GPT-2);
 * magic 20240801, version 7: uint32 (Llama 3). */
#include "train/data_source.h"

#include <inttypes.h>
#include <math.h>

#include "base/err.h"

enum { HEADER_BYTES = 1024 };

static const struct variant {
    int32_t magic, version;
    enum pl_token_type type;
} variants[] = {{20240520, 1, PL_TOKEN_U16}, {20240801, 7, PL_TOKEN_U32}};

static int check_size(const struct pl_shard *s)
{
    int64_t n = s->n, width = pl_token_bytes(s->type);
    if (n < 0)
        return pl_fail(PL_EINPUT,
                       "%s: header promises %" PRId64 " tokens (byte offset 8)",
                       s->path, n);
    int64_t expected = HEADER_BYTES + width * n;
    if (s->bytes == expected) return 0;
    return pl_fail(
        PL_EINPUT, "%s: %s: %" PRId64 " tokens need %" PRId64 " bytes, found %" PRId64,
        s->path, s->bytes < expected ? "truncated" : "too long", n, expected, s->bytes);
}

static int open_shard(struct pl_shard *s)
{
    unsigned char header[12];
    if (pl_data_guess(s) != PL_FILE_LLMC)
        return pl_data_fail_kind(s, "no llm.c token file, whose first int32 is "
                                    "20240520 or 20240801");
    if (s->bytes < HEADER_BYTES)
        return pl_fail(PL_EINPUT,
                       "%s: truncated header, expected %d bytes, found %" PRId64,
                       s->path, HEADER_BYTES, s->bytes);
    int rc = pl_shard_read(s, 0, header, sizeof header);
    if (rc) return rc;
    const struct variant *v = &variants[(int32_t)pl_le32(header) != variants[0].magic];
    int32_t version = (int32_t)pl_le32(header + 4);
    if (version != v->version)
        return pl_fail(PL_EINPUT,
                       "%s: version %" PRId32 " (byte offset 4), expected %" PRId32
                       " with magic %" PRId32,
                       s->path, version, v->version, v->magic);
    s->type = v->type;
    s->offset = HEADER_BYTES;
    s->n = (int32_t)pl_le32(header + 8);
    return check_size(s);
}

const struct pl_data_type pl_data_token_file = {
    .name = "tokens",
    .summary = "llm.c / FineWeb .bin shards of 16-bit or 32-bit tokens",
    .source = "github.com/karpathy/llm.c",
    .bytes_per_token = NAN,
    .open = open_shard,
    .suffix = "",
};
