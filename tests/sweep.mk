# tests of `pipelag sweep`
check_PROGRAMS += tests/test_sweep
TESTS += tests/test_sweep tests/cli_sweep.sh
EXTRA_DIST += tests/cli_sweep.sh
tests_test_sweep_SOURCES = tests/test_sweep.c
tests_test_sweep_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_test_sweep_LDADD = cli/libcli.a $(PL_LIBS) $(CHECK_LIBS) $(PL_SYSLIBS)
