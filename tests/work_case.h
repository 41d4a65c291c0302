/* Built-in models and their blocks, shared by the tests of sim/work.h. */
#ifndef TESTS_WORK_CASE_H
#define TESTS_WORK_CASE_H

#include <check.h>

#include "base/err.h"
#include "sim/work.h"

static inline struct pl_model preset(const char *name)
{
    struct pl_model m = {0};
    struct pl_config *config = pl_config_new();
    ck_assert_int_eq(pl_config_set_value(config, "model.preset", name, "test"), 0);
    ck_assert_msg(!pl_config_resolve(config), "%s", pl_error_text());
    ck_assert_msg(!pl_model_read(config, &m), "%s", pl_error_text());
    pl_config_free(config);
    return m;
}

static const struct pl_parallel alone = {.tp = 1, .ep = 1, .cp = 1, .dp = 1};

static inline struct pl_work block(const struct pl_model *m, struct pl_parallel p,
                                   int64_t b, int64_t s, enum pl_block kind)
{
    struct pl_work work;
    struct pl_microbatch batch = {b, s};
    ck_assert_msg(!pl_parallel_check(&p, m, &batch), "%s", pl_error_text());
    ck_assert_msg(!pl_work_block(m, &p, &batch, kind, "adamw", &work), "%s",
                  pl_error_text());
    return work;
}

#endif
