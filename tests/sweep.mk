# tests of `pipelag sweep`
check_PROGRAMS += tests/test_sweep
TESTS += tests/test_sweep tests/cli_sweep.sh
EXTRA_DIST += tests/cli_sweep.sh
tests_test_sweep_SOURCES = tests/test_sweep.c cli/cmd.c cli/segments.c cli/families.c cli/profile.c cli/setup.c cli/setup_links.c \
  cli/sweep_point.c cli/sweep_query.c cli/sweep_rows.c cli/sweep_table.c
tests_test_sweep_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_test_sweep_LDADD = $(PL_LIBS) $(CHECK_LIBS) $(PL_SYSLIBS)
