check_PROGRAMS += tests/test_sim_time tests/test_sim_delay tests/test_sim_check \
  tests/test_sim_memory tests/test_sim_jitter
TESTS += tests/test_sim_time tests/test_sim_delay tests/test_sim_check tests/test_sim_memory \
  tests/test_sim_jitter
sim_test_libs = sim/libsim.a base/libbase.a $(CHECK_LIBS) $(PL_SYSLIBS)
tests_test_sim_time_SOURCES = tests/test_sim_time.c tests/sim_case.h
tests_test_sim_time_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_test_sim_time_LDADD = $(sim_test_libs)
tests_test_sim_delay_SOURCES = tests/test_sim_delay.c tests/sim_case.h
tests_test_sim_delay_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_test_sim_delay_LDADD = $(sim_test_libs)
tests_test_sim_check_SOURCES = tests/test_sim_check.c tests/sim_case.h
tests_test_sim_check_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_test_sim_check_LDADD = $(sim_test_libs)
tests_test_sim_memory_SOURCES = tests/test_sim_memory.c tests/sim_case.h
tests_test_sim_memory_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_test_sim_memory_LDADD = $(sim_test_libs)
tests_test_sim_jitter_SOURCES = tests/test_sim_jitter.c tests/sim_case.h
tests_test_sim_jitter_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_test_sim_jitter_LDADD = $(sim_test_libs)

sim_scripts = tests/cli_sim.sh tests/golden/sim-1f1b.test tests/golden/sim-2bw.test \
  tests/golden/sim-pipedream.test tests/golden/sim-gpipe.test
TESTS += $(sim_scripts)
EXTRA_DIST += $(sim_scripts)

check_PROGRAMS += tests/test_sim_zb
TESTS += tests/test_sim_zb
tests_test_sim_zb_SOURCES = tests/test_sim_zb.c tests/sim_case.h
tests_test_sim_zb_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_test_sim_zb_LDADD = $(sim_test_libs)
