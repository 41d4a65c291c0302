/* A file of its own for each test, and configurations read from it. */
#ifndef TESTS_CONFIG_CASE_H
#define TESTS_CONFIG_CASE_H

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/config.h"
#include "base/err.h"

static char path[] = "/tmp/pipelag-config-XXXXXX";

static inline void enter(void)
{
    int fd = mkstemp(path);
    ck_assert_int_ge(fd, 0);
    close(fd);
}

static inline void leave(void)
{
    unlink(path);
}

static inline void write_file(const void *data, size_t n)
{
    unlink(path); /* truncating in place makes ext4 flush each time */
    FILE *out = fopen(path, "wb");
    ck_assert_ptr_nonnull(out);
    ck_assert_uint_eq(fwrite(data, 1, n, out), n);
    fclose(out);
}

static inline int load_bytes(struct pl_config *config, const char *data, size_t n)
{
    write_file(data, n);
    return pl_config_load(config, path);
}

static inline int load_text(struct pl_config *config, const char *text)
{
    return load_bytes(config, text, strlen(text));
}

/* A new configuration of a text that is right. */
static inline struct pl_config *load(const char *text)
{
    struct pl_config *config = pl_config_new();
    ck_assert_msg(!load_text(config, text), "%s", pl_error_text());
    return config;
}

static inline int n_keys(void)
{
    int n = 0;
    while (pl_keys[n].name) n++;
    return n;
}

#endif
