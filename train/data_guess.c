/* What a file is by its first bytes, so that the wrong kind of file is named as such:
 * without it, text read as 16-bit tokens would train without a word. */
#include "train/data_source.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/err.h"
#include "base/file.h"
#include "base/mem.h"

enum { PROBE = 512, ENOUGH = 64 };

struct signature {
    const char *bytes;
    size_t n;
    enum pl_file_kind kind;
    const char *what;
};

/* llm.c's numbers are those of its README and of dev/data; little-endian int32. */
static const struct signature signatures[] = {
    {"\x88\xd8\x34\x01", 4, PL_FILE_LLMC, "llm.c tokens (data.source: tokens)"},
    {"\xa1\xd9\x34\x01", 4, PL_FILE_LLMC, "llm.c tokens (data.source: tokens)"},
    {"\x8a\xd8\x34\x01", 4, PL_FILE_OTHER, "an evaluation file of llm.c, not tokens"},
    {"\xc6\xd7\x34\x01", 4, PL_FILE_OTHER, "a model of llm.c, not tokens"},
    {"MMIDIDX\0\0", 9, PL_FILE_OTHER,
     "a Megatron index, name the .bin beside it (data.source: megatron)"},
    {"\xfd"
     "7zXZ\0",
     6, PL_FILE_OTHER, "compressed by xz, unpack it first"},
    {"\x1f\x8b", 2, PL_FILE_OTHER, "compressed by gzip, unpack it first"},
    {"\x28\xb5\x2f\xfd", 4, PL_FILE_OTHER, "compressed by zstd, unpack it first"},
    {"PAR1", 4, PL_FILE_OTHER, "a Parquet table, export its text first"},
    {"\x93NUMPY", 6, PL_FILE_OTHER, "a NumPy array, write it with tofile()"},
    {"\x89HDF", 4, PL_FILE_OTHER, "an HDF5 file"},
};

static bool has_index(const char *path)
{
    if (!pl_path_ends(path, ".bin")) return false;
    char *index = pl_printf("%.*s.idx", (int)strlen(path) - 4, path);
    bool there = !access(index, F_OK);
    free(index);
    return there;
}

static bool printable(const unsigned char *b, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if ((b[i] < ' ' && !strchr("\t\n\r\f", b[i])) || b[i] >= 127 || !b[i])
            return false;
    return n >= ENOUGH;
}

enum pl_file_kind pl_data_guess_bytes(const unsigned char *b, size_t n,
                                      const char **what)
{
    for (size_t i = 0; i < sizeof signatures / sizeof *signatures; i++) {
        const struct signature *s = &signatures[i];
        if (n < s->n || memcmp(b, s->bytes, s->n)) continue;
        *what = s->what;
        return s->kind;
    }
    *what = "text (data.text)";
    if (printable(b, n < PROBE ? n : PROBE)) return PL_FILE_TEXT;
    *what = "raw numbers, or text that is not plain ASCII";
    return PL_FILE_UNKNOWN;
}

static enum pl_file_kind guess(const struct pl_shard *shard, const char **what)
{
    unsigned char b[PROBE];
    size_t n = shard->bytes < PROBE ? (size_t)shard->bytes : PROBE;
    *what = "unreadable";
    if (pl_shard_read(shard, 0, b, n))
        return PL_FILE_UNKNOWN; /* said when read again */
    enum pl_file_kind kind = pl_data_guess_bytes(b, n, what);
    if (kind == PL_FILE_UNKNOWN)
        *what =
            has_index(shard->path)
                ? "tokens of Megatron, by the .idx beside it (data.source: megatron)"
                : "perhaps raw 16-bit tokens of nanoGPT (data.source: nanogpt)";
    return kind;
}

enum pl_file_kind pl_data_guess(const struct pl_shard *shard)
{
    const char *what;
    return guess(shard, &what);
}

int pl_data_fail_kind(const struct pl_shard *shard, const char *cause)
{
    const char *what;
    guess(shard, &what);
    return pl_fail(PL_EINPUT, "%s: %s; it is %s", shard->path, cause, what);
}
