# predicted against measured steps
check_PROGRAMS += tests/test_accuracy
TESTS += tests/test_accuracy tests/cli_calibrate.sh
EXTRA_DIST += tests/cli_calibrate.sh
tests_test_accuracy_SOURCES = tests/test_accuracy.c $(accuracy_sources)
tests_test_accuracy_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_test_accuracy_LDADD = cli/libcli.a $(PL_LIBS) $(CHECK_LIBS) $(PL_SYSLIBS)
