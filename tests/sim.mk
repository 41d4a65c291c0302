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

check_PROGRAMS += tests/test_sim_async
TESTS += tests/test_sim_async
tests_test_sim_async_SOURCES = tests/test_sim_async.c tests/sim_case.h
tests_test_sim_async_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_test_sim_async_LDADD = $(sim_test_libs)
check_PROGRAMS += tests/test_sim_unit
TESTS += tests/test_sim_unit
tests_test_sim_unit_SOURCES = tests/test_sim_unit.c tests/sim_case.h
tests_test_sim_unit_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_test_sim_unit_LDADD = $(sim_test_libs)
check_PROGRAMS += tests/test_sim_segments
TESTS += tests/test_sim_segments
tests_test_sim_segments_SOURCES = tests/test_sim_segments.c tests/sim_case.h
tests_test_sim_segments_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_test_sim_segments_LDADD = $(sim_test_libs)
check_PROGRAMS += tests/test_sim_property
TESTS += tests/test_sim_property
tests_test_sim_property_SOURCES = tests/test_sim_property.c tests/sim_case.h
tests_test_sim_property_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_test_sim_property_LDADD = $(sim_test_libs)

sim_scripts = tests/cli_sim.sh tests/cli_roofline.sh tests/cli_links.sh tests/cli_schedule.sh tests/golden/sim-1f1b.test tests/golden/sim-2bw.test \
  tests/golden/sim-pipedream.test tests/golden/sim-gpipe.test \
  tests/golden/sim-interleaved.test tests/golden/sim-zb-v.test
TESTS += $(sim_scripts)
EXTRA_DIST += $(sim_scripts)

check_PROGRAMS += tests/test_sim_zb tests/test_sim_plan
TESTS += tests/test_sim_zb tests/test_sim_plan
tests_test_sim_zb_SOURCES = tests/test_sim_zb.c tests/sim_case.h
tests_test_sim_zb_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_test_sim_zb_LDADD = $(sim_test_libs)

cluster_tests = tests/test_cluster tests/test_cluster_import tests/test_collective
cluster_samples = tests/topo/dgx1-v100.txt tests/topo/dgx1-v100.xml \
  tests/topo/h100-nvswitch.txt tests/topo/h100-nvswitch.xml tests/topo/l40s-pcie.txt \
  tests/topo/l40s-pcie.xml
check_PROGRAMS += $(cluster_tests)
TESTS += $(cluster_tests) tests/cli_cluster.sh
EXTRA_DIST += $(cluster_samples) tests/cli_cluster.sh
tests_test_cluster_SOURCES = tests/test_cluster.c tests/cluster_case.h
tests_test_cluster_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_test_cluster_LDADD = $(sim_test_libs)
tests_test_cluster_import_SOURCES = tests/test_cluster_import.c tests/cluster_case.h
tests_test_cluster_import_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_test_cluster_import_LDADD = $(sim_test_libs)
tests_test_collective_SOURCES = tests/test_collective.c tests/cluster_case.h
tests_test_collective_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_test_collective_LDADD = $(sim_test_libs)

check_PROGRAMS += tests/test_sim_bidir tests/test_sim_custom tests/test_sim_custom_bad
TESTS += tests/test_sim_bidir tests/test_sim_custom tests/test_sim_custom_bad
tests_test_sim_bidir_SOURCES = tests/test_sim_bidir.c tests/sim_case.h
tests_test_sim_bidir_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_test_sim_bidir_LDADD = $(sim_test_libs)
tests_test_sim_custom_SOURCES = tests/test_sim_custom.c tests/custom_case.h tests/sim_case.h
tests_test_sim_custom_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_test_sim_custom_LDADD = $(sim_test_libs)
tests_test_sim_custom_bad_SOURCES = tests/test_sim_custom_bad.c tests/custom_case.h tests/sim_case.h
tests_test_sim_custom_bad_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_test_sim_custom_bad_LDADD = $(sim_test_libs)

check_PROGRAMS += tests/test_sim_static tests/test_sim_stream
TESTS += tests/test_sim_static tests/test_sim_stream
tests_test_sim_stream_SOURCES = tests/test_sim_stream.c tests/sim_case.h
tests_test_sim_stream_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_test_sim_stream_LDADD = $(sim_test_libs)
tests_test_sim_static_SOURCES = tests/test_sim_static.c tests/sim_case.h
tests_test_sim_static_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_test_sim_static_LDADD = $(sim_test_libs)

tests_test_sim_plan_SOURCES = tests/test_sim_plan.c tests/sim_case.h
tests_test_sim_plan_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_test_sim_plan_LDADD = $(sim_test_libs)

check_PROGRAMS += tests/test_sim_links
TESTS += tests/test_sim_links
tests_test_sim_links_SOURCES = tests/test_sim_links.c tests/sim_case.h
tests_test_sim_links_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_test_sim_links_LDADD = $(sim_test_libs)
check_PROGRAMS += tests/test_sim_measured
TESTS += tests/test_sim_measured
tests_test_sim_measured_SOURCES = tests/test_sim_measured.c tests/sim_case.h
tests_test_sim_measured_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_test_sim_measured_LDADD = $(sim_test_libs)
check_PROGRAMS += tests/test_sim_contention
TESTS += tests/test_sim_contention
tests_test_sim_contention_SOURCES = tests/test_sim_contention.c tests/sim_case.h
tests_test_sim_contention_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_test_sim_contention_LDADD = $(sim_test_libs)
