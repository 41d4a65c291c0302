/* Any file as bytes: token = byte, vocabulary 256. Not decoded, so text that is not
 * UTF-8 is as good as any other. Several files are joined without anything between. */
#include "train/data_source.h"

static int open_text(struct pl_shard *shard)
{
    enum pl_file_kind kind = pl_data_guess(shard);
    if (kind == PL_FILE_LLMC || kind == PL_FILE_OTHER)
        return pl_data_fail_kind(shard, "no text");
    shard->offset = 0;
    shard->n = shard->bytes;
    shard->type = PL_TOKEN_U8;
    return 0;
}

const struct pl_data_type pl_data_text = {
    .name = "text",
    .summary = "the bytes of files",
    .source = "",
    .bytes_per_token = 1,
    .open = open_text,
    .suffix = "",
};
