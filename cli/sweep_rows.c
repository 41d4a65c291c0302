/* The rows of a sweep: in memory, as records between processes, and in the file of
 * finished rows. A record is
 *   uint32 bytes of what follows the checksum, uint32 CRC-32 of it,
 *   int64 point, the results (double each), the status (no NUL)
 * and the file is a head that says which sweep it belongs to, then records in the order
 * in which points finished. */
#include <config.h>
#include "cli/sweep.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "base/file.h"
#include "base/mem.h"

enum { MAX_STATUS = 4096 };
static char ok[] = "ok"; /* shared by the rows: not freed */

struct head {
    char magic[16];
    int64_t points, fingerprint;
};

struct record {
    uint32_t bytes, crc;
    int64_t point;
    struct pl_sweep_result result;
};
enum { COVERED = sizeof(struct record) - 8 }; /* bytes of a record that crc covers */

char *pl_sweep_product(const struct pl_config *config)
{
    char *text = pl_strdup("");
    for (int a = 0; a < pl_config_n_swept(config); a++) {
        char *longer =
            pl_printf("%s%s%s %d", text, a ? " x " : "", pl_config_swept(config, a),
                      pl_config_n_values(config, a));
        free(text);
        text = longer;
    }
    return text;
}

/* Each value of a preset, before anything is computed. */
static int check_presets(const struct pl_config *config)
{
    struct pl_config *point = NULL;
    int code = 0;
    int64_t stride = 1;
    for (int a = pl_config_n_swept(config) - 1; a >= 0; a--) {
        const char *end = strrchr(pl_config_swept(config, a), '.');
        int n = pl_config_n_values(config, a);
        for (int i = 0; i < n && !code && end && !strcmp(end, ".preset"); i++)
            code = pl_config_point(config, i * stride, &point);
        stride *= n;
    }
    pl_config_free(point);
    return code;
}

int pl_sweep_new(const struct pl_config *config, const char *path, struct pl_sweep *out)
{
    int64_t n = pl_config_n_points(config);
    if (!pl_config_n_swept(config))
        return pl_fail(PL_ECONFIG,
                       "%s: nothing to sweep, expected 'sweep:' with a map of key: "
                       "list of values",
                       path);
    if (n > PL_MAX_POINTS) {
        char *product = pl_sweep_product(config);
        int code = pl_fail(PL_ECONFIG, "%s: sweep: more than %d points: %s", path,
                           PL_MAX_POINTS, product);
        free(product);
        return code;
    }
    int code = check_presets(config);
    if (code) return code;
    /* the row, the columns of the trace, and the file's image in memory */
    double row = 4.0 * 8 * (PL_N_SWEEP_RESULTS + pl_config_n_swept(config)) + 64;
    code = pl_memory_check((double)n * row, "sweep");
    if (code) return code;
    *out = (struct pl_sweep){.config = config, .n = n, .part = -1};
    out->results = PL_NEW(n, struct pl_sweep_result);
    out->status = PL_NEW(n, char *);
    return 0;
}

void pl_sweep_free(struct pl_sweep *sweep)
{
    for (int64_t i = 0; sweep->status && i < sweep->n; i++)
        if (sweep->status[i] != ok) free(sweep->status[i]);
    free(sweep->status);
    free(sweep->results);
    if (sweep->part >= 0) close(sweep->part);
    free(sweep->part_path);
    *sweep = (struct pl_sweep){.part = -1};
}

void pl_sweep_encode(struct pl_bytes *out, int64_t point,
                     const struct pl_sweep_result *result, const char *status)
{
    size_t length = strnlen(status, MAX_STATUS);
    struct record r = {
        .bytes = (uint32_t)(COVERED + length), .point = point, .result = *result};
    r.crc = pl_crc32(pl_crc32(0, &r.point, COVERED), status, length);
    pl_bytes_add(out, &r, sizeof r);
    pl_bytes_add(out, status, length);
}

/* Bytes of the whole record at data, which is stored; 0: not all there, -1: damaged. */
static int64_t take_record(struct pl_sweep *sweep, const char *data, size_t n)
{
    struct record r;
    if (n < 8) return 0;
    memcpy(&r, data, 8);
    if (r.bytes < COVERED || r.bytes > COVERED + MAX_STATUS) return -1;
    if (n < 8 + (size_t)r.bytes) return 0;
    if (pl_crc32(0, data + 8, r.bytes) != r.crc) return -1;
    memcpy(&r, data, sizeof r);
    if (r.point < 0 || r.point >= sweep->n) return -1;
    if (!sweep->status[r.point]) {
        char *status =
            pl_printf("%.*s", (int)(r.bytes - COVERED), data + sizeof(struct record));
        if (!strcmp(status, ok)) {
            free(status);
            status = ok;
        }
        sweep->results[r.point] = r.result;
        sweep->status[r.point] = status;
        sweep->done++;
    }
    return 8 + (int64_t)r.bytes;
}

/* Bytes of the whole records at data; *damaged: what follows is not a record. */
static size_t take_records(struct pl_sweep *sweep, const char *data, size_t n,
                           bool *damaged)
{
    size_t at = 0;
    int64_t step;
    while ((step = take_record(sweep, data + at, n - at)) > 0) at += (size_t)step;
    *damaged = step < 0;
    return at;
}

static int write_all(struct pl_sweep *sweep, const void *data, size_t n)
{
    for (const char *p = data; n;) {
        ssize_t wrote = write(sweep->part, p, n);
        if (wrote < 0 && errno == EINTR) continue;
        if (wrote < 0)
            return pl_fail(PL_EIO, "%s: cannot write: %s", sweep->part_path,
                           strerror(errno));
        p += wrote;
        n -= (size_t)wrote;
    }
    return 0;
}

int pl_sweep_take(struct pl_sweep *sweep, struct pl_bytes *bytes)
{
    bool damaged;
    size_t n = take_records(sweep, bytes->data, bytes->n, &damaged);
    if (damaged) return pl_fail(PL_EIO, "sweep: a worker sent a damaged row");
    if (n && sweep->part >= 0) {
        int code = write_all(sweep, bytes->data, n);
        if (code) return code;
    }
    memmove(bytes->data, bytes->data + n, bytes->n - n);
    bytes->n -= n;
    return 0;
}

/* crc, continued over the contents of the file that a text key names, if it does. */
static uint32_t file_crc(uint32_t crc, const struct pl_config *config,
                         const struct pl_key *key)
{
    enum { MOST = 1 << 26 }; /* what a sweep reads is small */
    struct stat st;
    char *data;
    size_t n;
    if (key->type != PL_KEY_TEXT) return crc;
    const char *path = pl_config_text(config, key->name);
    if (!*path || stat(path, &st) || !S_ISREG(st.st_mode)) return crc;
    if (pl_file_read(path, MOST, &data, &n)) return crc;
    crc = pl_crc32(crc, data, n);
    free(data);
    return crc;
}

/* Of the files that the configuration and the values of swept keys name. */
static uint32_t files_crc(const struct pl_config *config)
{
    struct pl_config *point = NULL;
    uint32_t crc = 0;
    int64_t stride = 1;
    for (const struct pl_key *key = pl_keys; key->name; key++)
        crc = file_crc(crc, config, key);
    for (int a = pl_config_n_swept(config) - 1; a >= 0; a--) {
        const struct pl_key *key = pl_keys;
        int n = pl_config_n_values(config, a);
        while (strcmp(key->name, pl_config_swept(config, a))) key++;
        for (int i = 0; i < n && key->type == PL_KEY_TEXT; i++)
            if (!pl_config_point(config, i * stride, &point))
                crc = file_crc(crc, point, key);
        stride *= n;
    }
    pl_config_free(point);
    return crc;
}

/* Of everything that decides the rows. */
static int64_t fingerprint(const struct pl_sweep *sweep)
{
#define NAME(name, unit, shown, long_name) #name " "
    static const char columns[] = PACKAGE_VERSION " " PL_SWEEP_RESULTS(NAME);
#undef NAME
    char *config = pl_config_dump(sweep->config, false);
    char *text =
        pl_printf("%s%s %08" PRIx32, config, columns, files_crc(sweep->config));
    size_t n = strlen(text);
    uint32_t low = pl_crc32(0, text, n), high = pl_crc32(0x9e3779b9u, text, n);
    free(config);
    free(text);
    return (int64_t)((uint64_t)high << 32 | low);
}

/* Take the rows after the head and cut off what kill -9 left half. */
static int load(struct pl_sweep *sweep)
{
    struct stat st;
    char *data;
    size_t n;
    if (fstat(sweep->part, &st) ||
        pl_file_read(sweep->part_path, SIZE_MAX / 2, &data, &n))
        return PL_EIO;
    bool damaged;
    size_t whole =
        sizeof(struct head) + take_records(sweep, data + sizeof(struct head),
                                           n - sizeof(struct head), &damaged);
    free(data);
    if (ftruncate(sweep->part, (off_t)whole) || lseek(sweep->part, 0, SEEK_END) < 0)
        return pl_fail(PL_EIO, "%s: %s", sweep->part_path, strerror(errno));
    return 0;
}

int pl_sweep_keep(struct pl_sweep *sweep, const char *path, bool fresh)
{
    struct head want = {.magic = "pipelag-sweep 1", .points = sweep->n}, have;
    want.fingerprint = fingerprint(sweep);
    sweep->part_path = pl_strdup(path);
    sweep->part = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    if (sweep->part < 0) return pl_fail(PL_EIO, "%s: %s", path, strerror(errno));
    if (flock(sweep->part, LOCK_EX | LOCK_NB) && errno == EWOULDBLOCK)
        return pl_fail(PL_EUSAGE, "%s: in use by another pipelag sweep", path);
    ssize_t n = read(sweep->part, &have, sizeof have);
    if (n == sizeof have && !memcmp(&have, &want, sizeof have)) return load(sweep);
    /* a whole head of ours that differs, or a file that is not ours at all */
    if (n > 0 && !fresh && (n == sizeof have || memcmp(&have, &want, (size_t)n)))
        return pl_fail(PL_EUSAGE,
                       "%s: rows of another sweep; --force discards them, or choose "
                       "another -o",
                       path);
    if (ftruncate(sweep->part, 0) || lseek(sweep->part, 0, SEEK_SET) < 0)
        return pl_fail(PL_EIO, "%s: %s", path, strerror(errno));
    return write_all(sweep, &want, sizeof want);
}

void pl_sweep_drop(struct pl_sweep *sweep)
{
    if (sweep->part < 0) return;
    unlink(sweep->part_path);
    close(sweep->part);
    sweep->part = -1;
}
