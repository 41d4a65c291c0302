/* What `main` of a test program does: one suite, run under check, TAP by the
 * environment of tests/local.mk. */
#ifndef TESTS_RUNNER_H
#define TESTS_RUNNER_H

#include <check.h>
#include <stdlib.h>

/* Takes the suite over; the exit status. */
static inline int run_suite(Suite *suite)
{
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}

/* A suite of one case; fill adds its tests. */
static inline int run_tests(const char *name, void (*fill)(TCase *))
{
    Suite *suite = suite_create(name);
    TCase *tests = tcase_create(name);
    fill(tests);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}

/* What a test allocates and its process ends with: reachable, so no leak to a checker.
 */
static inline void *test_keep(void *p)
{
    static void **kept;
    static size_t n;
    void **more = realloc(kept, (n + 1) * sizeof *kept);
    if (!more) abort();
    kept = more;
    kept[n++] = p;
    return p;
}

#endif
