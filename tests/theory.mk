# tests of theory/ and of `pipelag theory`
test_programs += tests/test_theory_stability tests/test_theory_claim tests/test_theory_bound
tests_test_theory_bound_CPPFLAGS = $(AM_CPPFLAGS) $(GSL_CFLAGS)
test_scripts += tests/cli_theory.sh tests/golden/theory-stability.test \
  tests/golden/theory-table.test tests/golden/theory-bound.test
