/* nanoGPT's train.bin and val.bin (github.com/karpathy/nanoGPT, data/openwebtext): raw
 * little-endian uint16 tokens without a header, an end-of-text token after each
 * document. Nothing in the file says so; a file that says what else it is is refused.
 * (The magic of llm.c reads as the ids 55432, 308: the first is in no vocabulary that
 * nanoGPT is used with.) */
#include "train/data_source.h"

#include <inttypes.h>
#include <math.h>

#include "base/err.h"

static int open_raw(struct pl_shard *s)
{
    if (pl_data_guess(s) != PL_FILE_UNKNOWN)
        return pl_data_fail_kind(s, "no raw 16-bit tokens of nanoGPT");
    if (s->bytes % 2)
        return pl_fail(PL_EINPUT,
                       "%s: %" PRId64 " bytes, expected an even number (16-bit "
                       "tokens): truncated, or another kind of file",
                       s->path, s->bytes);
    s->offset = 0;
    s->n = s->bytes / 2;
    s->type = PL_TOKEN_U16;
    return 0;
}

const struct pl_data_type pl_data_nanogpt = {
    .name = "nanogpt",
    .summary = "nanoGPT's .bin files: 16-bit tokens without a header",
    .source = "github.com/karpathy/nanoGPT",
    .bytes_per_token = NAN,
    .open = open_raw,
    .suffix = "",
};
