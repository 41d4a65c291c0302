# tests of cli/, of the manual and of the source tree as a whole
cli_tests = %D%/cli.sh %D%/layers.sh %D%/link.sh %D%/man.sh %D%/cli_run.sh
TESTS += $(cli_tests)
EXTRA_DIST += $(cli_tests) %D%/tap.sh %D%/run-golden.sh

check_PROGRAMS += tests/test_report
TESTS += tests/test_report
tests_test_report_SOURCES = tests/test_report.c
tests_test_report_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_test_report_LDADD = cli/libcli.a $(PL_LIBS) $(CHECK_LIBS) $(PL_SYSLIBS)
