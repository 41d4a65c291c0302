# tests of theory/ and of `pipelag theory`
check_PROGRAMS += tests/test_theory_stability
TESTS += tests/test_theory_stability
tests_test_theory_stability_SOURCES = tests/test_theory_stability.c
tests_test_theory_stability_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_test_theory_stability_LDADD = theory/libtheory.a base/libbase.a $(CHECK_LIBS) \
  $(PL_SYSLIBS)

check_PROGRAMS += tests/test_theory_claim
TESTS += tests/test_theory_claim
tests_test_theory_claim_SOURCES = tests/test_theory_claim.c
tests_test_theory_claim_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_test_theory_claim_LDADD = theory/libtheory.a base/libbase.a $(CHECK_LIBS) \
  $(PL_SYSLIBS)

check_PROGRAMS += tests/test_theory_bound
TESTS += tests/test_theory_bound
tests_test_theory_bound_SOURCES = tests/test_theory_bound.c
tests_test_theory_bound_CPPFLAGS = $(AM_CPPFLAGS) $(GSL_CFLAGS)
tests_test_theory_bound_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_test_theory_bound_LDADD = theory/libtheory.a base/libbase.a $(CHECK_LIBS) \
  $(PL_SYSLIBS)

theory_scripts = %D%/cli_theory.sh %D%/golden/theory-stability.test \
  %D%/golden/theory-table.test %D%/golden/theory-bound.test
TESTS += $(theory_scripts)
EXTRA_DIST += $(theory_scripts)
