# models, what they do and how they are cut
check_PROGRAMS += tests/test_model tests/test_work tests/test_activations
TESTS += tests/test_model tests/test_work tests/test_activations
tests_test_activations_SOURCES = tests/test_activations.c
tests_test_activations_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_test_activations_LDADD = $(sim_test_libs)
tests_test_model_SOURCES = tests/test_model.c
tests_test_model_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_test_model_LDADD = $(sim_test_libs)
tests_test_work_SOURCES = tests/test_work.c
tests_test_work_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_test_work_LDADD = $(sim_test_libs)

check_PROGRAMS += tests/test_split
TESTS += tests/test_split
tests_test_split_SOURCES = tests/test_split.c
tests_test_split_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_test_split_LDADD = $(sim_test_libs)

model_scripts = tests/cli_model.sh tests/golden/model-llama.test
TESTS += $(model_scripts)
EXTRA_DIST += $(model_scripts)

check_PROGRAMS += tests/test_json_read
TESTS += tests/test_json_read
tests_test_json_read_SOURCES = tests/test_json_read.c
tests_test_json_read_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_test_json_read_LDADD = $(base_test_libs)

check_PROGRAMS += tests/test_estimate
TESTS += tests/test_estimate
tests_test_estimate_SOURCES = tests/test_estimate.c tests/sim_case.h
tests_test_estimate_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_test_estimate_LDADD = $(sim_test_libs)
