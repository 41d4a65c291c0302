/* llm.c / FineWeb shard (github.com/karpathy/llm.c, dev/data): little-endian header of
 * 256 int32 (20240520, version 1, number of tokens, zeros), then that many uint16
 * tokens. */
#include "train/data_source.h"

#include <inttypes.h>
#include <math.h>

#include "base/err.h"

enum { HEADER_BYTES = 1024, MAGIC = 20240520, VERSION = 1 };

static int32_t header_word(const unsigned char *bytes, int i)
{
    const unsigned char *b = bytes + 4 * i;
    return (int32_t)((uint32_t)b[0] | (uint32_t)b[1] << 8 | (uint32_t)b[2] << 16 |
                     (uint32_t)b[3] << 24);
}

static int check(const char *path, const unsigned char *bytes, int64_t size)
{
    if (size < HEADER_BYTES)
        return pl_fail(PL_EINPUT,
                       "%s: truncated header, expected %d bytes, found %" PRId64, path,
                       HEADER_BYTES, size);
    int32_t magic = header_word(bytes, 0), version = header_word(bytes, 1);
    if (magic != MAGIC)
        return pl_fail(PL_EINPUT,
                       "%s: bad magic %" PRId32 ", expected %d (llm.c tokens)", path,
                       magic, MAGIC);
    if (version != VERSION)
        return pl_fail(PL_EINPUT, "%s: version %" PRId32 ", expected %d", path, version,
                       VERSION);
    int64_t n = header_word(bytes, 2);
    if (n < 0)
        return pl_fail(PL_EINPUT, "%s: header promises %" PRId64 " tokens", path, n);
    if (size != HEADER_BYTES + 2 * n)
        return pl_fail(PL_EINPUT,
                       "%s: %s: %" PRId64 " tokens need %" PRId64
                       " bytes, found %" PRId64,
                       path, size < HEADER_BYTES + 2 * n ? "truncated" : "too long", n,
                       HEADER_BYTES + 2 * n, size);
    return 0;
}

static int load(const char *path, struct pl_source *out)
{
    struct pl_source s;
    int rc = pl_source_map(path, &s);
    if (rc) return rc;
    if ((rc = check(path, s.bytes, s.n))) {
        pl_source_free(&s);
        return rc;
    }
    s.header = HEADER_BYTES;
    s.n = header_word(s.bytes, 2);
    s.bytes += HEADER_BYTES;
    s.width = 2;
    *out = s;
    return 0;
}

const struct pl_data_type pl_data_token_file = {
    .name = "tokens",
    .summary = "llm.c / FineWeb .bin shard of 16-bit tokens",
    .source = "github.com/karpathy/llm.c",
    .bytes_per_token = NAN,
    .needs_path = true,
    .load = load,
};
