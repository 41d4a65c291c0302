# tests of traces/ and of the commands trace and figure
TRACES_TEST_LIBS = traces/libtraces.a base/libbase.a $(CHECK_LIBS) $(PL_SYSLIBS)

check_PROGRAMS += tests/test_trace
TESTS += tests/test_trace
tests_test_trace_SOURCES = tests/test_trace.c tests/trace_sample.h
tests_test_trace_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_test_trace_LDADD = $(TRACES_TEST_LIBS)

check_PROGRAMS += tests/test_trace_damage
TESTS += tests/test_trace_damage
tests_test_trace_damage_SOURCES = tests/test_trace_damage.c tests/trace_sample.h
tests_test_trace_damage_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_test_trace_damage_LDADD = $(TRACES_TEST_LIBS)

check_PROGRAMS += tests/test_figure
TESTS += tests/test_figure
tests_test_figure_SOURCES = tests/test_figure.c tests/trace_sample.h
tests_test_figure_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_test_figure_LDADD = $(TRACES_TEST_LIBS)

check_PROGRAMS += tests/test_perfetto
TESTS += tests/test_perfetto
tests_test_perfetto_SOURCES = tests/test_perfetto.c tests/trace_sample.h
tests_test_perfetto_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_test_perfetto_LDADD = $(TRACES_TEST_LIBS)

check_PROGRAMS += tests/make_trace
tests_make_trace_SOURCES = tests/make_trace.c tests/trace_sample.h
tests_make_trace_LDADD = traces/libtraces.a base/libbase.a $(PL_SYSLIBS)

traces_tests = %D%/cli_trace.sh %D%/cli_perfetto.sh %D%/h5py.sh
TESTS += $(traces_tests)
EXTRA_DIST += $(traces_tests) %D%/check_h5py.py %D%/check_perfetto.py
