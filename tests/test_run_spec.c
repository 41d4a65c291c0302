/* Specs that must be refused, in words that name the key; memory told beforehand. */
#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "toy.h"
#include "tests/runner.h"

enum { UPDATES = 24 };
static const struct pl_device *const dev = &pl_device_ref;

static struct pl_segment plain = {.updates = UPDATES};

/* Change one thing of a good spec on the map 1,0; the code and words that must follow.
 */
static void refused(int code, const char *words,
                    void (*spoil)(struct pl_run_spec *spec))
{
    const int64_t tau[2] = {1, 0};
    struct pl_versions v;
    struct pl_segment seg = plain;
    seg.corrector = pl_corrector_make("none", NAN, PL_START_HOLD);
    pl_versions_constant(2, UPDATES, 1, tau, 1, &v);
    struct pl_problem *p = toy_new(dev, 2, 1, 2, PL_PARAM_VECTOR, 1, 0, 0);
    struct pl_run_spec spec = toy_spec(p, &v, &seg);
    struct pl_run_result r;
    struct pl_run_memory memory;
    spec.segments = &seg;
    spoil(&spec);
    ck_assert_int_eq(pl_run(&spec, &r), code);
    ck_assert_msg(strstr(pl_error_text(), words), "'%s' lacks '%s'", pl_error_text(),
                  words);
    ck_assert_int_eq(pl_run_memory(&spec, &memory), code);
    pl_versions_free(&v);
    toy_free(p);
}

static void spoil_tied(struct pl_run_spec *s)
{
    s->problem->shared_across_stages = true;
}
static void spoil_fidelity(struct pl_run_spec *s)
{
    s->fidelity = PL_FIDELITY_GLOBAL;
}
static void spoil_clip(struct pl_run_spec *s)
{
    s->clip = 1;
    s->clip_scope = PL_CLIP_GLOBAL;
}
static void spoil_segments(struct pl_run_spec *s)
{
    ((struct pl_segment *)s->segments)->updates--;
}
static void spoil_custom(struct pl_run_spec *s)
{
    ((struct pl_segment *)s->segments)->corrector.type = pl_corrector_find("custom");
}
static void spoil_batch(struct pl_run_spec *s)
{
    s->batch = 0;
}
static void spoil_map(struct pl_run_spec *s)
{
    s->versions->forward[3] = 4;
}

START_TEST(bad_specs_are_refused)
{
    refused(PL_EUNSUP, "model.tied: no", spoil_tied);
    refused(PL_ECONFIG, "delay.fidelity", spoil_fidelity);
    refused(PL_ECONFIG, "clip.scope", spoil_clip);
    refused(PL_ECONFIG, "segments have 23", spoil_segments);
    refused(PL_ECONFIG, "corrector.c", spoil_custom);
    refused(PL_ECONFIG, "train.batch", spoil_batch);
    refused(PL_ECONFIG, "version map", spoil_map);
}
END_TEST

/* Per stage of W floats: tau + 1 versions, gradient, history where corrected, live
 * where corrected at read, two moments; once: u. Nothing else but the problem's own. */
START_TEST(bytes_are_known_before)
{
    const int64_t tau[2] = {3, 0};
    const size_t W = 12, versions = 4 + 1, grads = 2, moments = 4, u = 1;
    const size_t corrected[] = {0, 1, 2}; /* stage 0 only: stage 1 has no delay */
    const char *const names[] = {"none", "feedback", "prediction"};
    struct pl_versions v;
    pl_versions_constant(2, UPDATES, 1, tau, 1, &v);
    struct pl_problem *p = toy_new(dev, 2, 4, 3, PL_PARAM_MATRIX, 1, 0, 0);
    struct pl_segment seg = toy_segment(names[_i], NAN, PL_START_HOLD, UPDATES);
    struct pl_run_spec spec = toy_spec(p, &v, &seg);
    spec.optim = (struct pl_optim){.type = pl_optim_find("adamw"), .beta1 = .9};
    struct pl_run_memory memory;
    ck_assert_int_eq(pl_run_memory(&spec, &memory), 0);
    ck_assert_uint_eq(memory.all, (versions + grads + moments + u + corrected[_i]) * W *
                                          sizeof(float) +
                                      pl_problem_bytes(p));
    pl_versions_free(&v);
    toy_free(p);
}
END_TEST

static void fill(TCase *t)
{
    tcase_add_test(t, bad_specs_are_refused);
    tcase_add_loop_test(t, bytes_are_known_before, 0, 3);
}

int main(void)
{
    return run_tests("run_spec", fill);
}
