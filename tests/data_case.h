/* A folder for the files of one test, two file names in it, and token files. */
#ifndef TESTS_DATA_CASE_H
#define TESTS_DATA_CASE_H

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"

enum { HEADER = 256 };

static char folder[] = "/tmp/pipelag-data-XXXXXX";
static char path[64], other[64];

static inline void setup(void)
{
    ck_assert_ptr_nonnull(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/a", folder);
    snprintf(other, sizeof other, "%s/b", folder);
}

static inline void teardown(void)
{
    char command[128];
    snprintf(command, sizeof command, "rm -rf %s", folder);
    if (system(command)) abort();
}

static inline void write_file(const char *name, const void *bytes, size_t n)
{
    FILE *f = fopen(name, "wb");
    ck_assert_ptr_nonnull(f);
    ck_assert_uint_eq(fwrite(bytes, 1, n, f), n);
    ck_assert_int_eq(fclose(f), 0);
}

/* Tokens first, first+1, ... in a shard whose header promises `promised` of them. */
static inline void write_shard(const char *name, int magic, int version, int promised,
                               int n, int first)
{
    unsigned char *b = pl_alloc(4 * HEADER + 2 * (size_t)n, 1);
    int words[] = {magic, version, promised};
    for (int i = 0; i < 12; i++)
        b[i] = (unsigned char)((unsigned)words[i / 4] >> 8 * (i % 4));
    for (int i = 0; i < n; i++) {
        b[4 * HEADER + 2 * i] = (unsigned char)(first + i);
        b[4 * HEADER + 2 * i + 1] = (unsigned char)((first + i) >> 8);
    }
    write_file(name, b, 4 * HEADER + 2 * (size_t)n);
    free(b);
}

#endif
