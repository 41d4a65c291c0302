/* Clusters for the tests, out of keys. */
#ifndef TESTS_CLUSTER_CASE_H
#define TESTS_CLUSTER_CASE_H

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/config.h"
#include "base/err.h"
#include "sim/cluster.h"

/* settings: "key=value" up to NULL; the code of the first that fails. */
static inline int try_cluster(const char *const *settings, struct pl_cluster *cluster)
{
    struct pl_config *config = pl_config_new();
    int code = 0;
    for (; *settings && !code; settings++)
        code = pl_config_set(config, *settings, "--set");
    if (!code) code = pl_config_resolve(config);
    if (!code) code = pl_cluster_read(config, cluster);
    pl_config_free(config);
    return code;
}

#define CLUSTER(...) make_cluster((const char *const[]){__VA_ARGS__, NULL})
static inline struct pl_cluster make_cluster(const char *const *settings)
{
    struct pl_cluster cluster;
    int code = try_cluster(settings, &cluster);
    ck_assert_msg(code == 0, "%s", pl_error_text());
    return cluster;
}

/* The settings are refused with this text in the message. */
#define REFUSED(text, ...) refused(text, (const char *const[]){__VA_ARGS__, NULL})
static inline void refused(const char *text, const char *const *settings)
{
    struct pl_cluster cluster;
    int code = try_cluster(settings, &cluster);
    ck_assert_msg(code < 0, "accepted, expected: %s", text);
    ck_assert_msg(strstr(pl_error_text(), text) != NULL, "'%s', expected: %s",
                  pl_error_text(), text);
}

#endif
