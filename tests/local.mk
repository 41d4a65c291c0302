# Tests speak TAP. Programs use `check`; .sh are shell scripts over tests/tap.sh; .test are
# commands with their expected output; each folder's tests are listed in tests/<folder>.mk:
# test_programs of one file tests/NAME.c (more: _SOURCES), test_scripts.
TEST_EXTENSIONS = .sh .test
LOG_DRIVER = env AM_TAP_AWK='$(AWK)' $(SHELL) $(top_srcdir)/build-aux/tap-driver.sh
SH_LOG_DRIVER = $(LOG_DRIVER)
SH_LOG_COMPILER = $(SHELL)
TEST_LOG_DRIVER = $(LOG_DRIVER)
TEST_LOG_COMPILER = $(SHELL) $(top_srcdir)/tests/run-golden.sh
AM_TESTS_ENVIRONMENT = CK_TAP_LOG_FILE_NAME=-; CK_VERBOSITY=silent; OPENBLAS_NUM_THREADS=1; \
  CK_DEFAULT_TIMEOUT=120; \
  PIPELAG=$(abs_top_builddir)/cli/pipelag; top_srcdir=$(abs_top_srcdir); LC_ALL=C; \
  export CK_TAP_LOG_FILE_NAME CK_VERBOSITY OPENBLAS_NUM_THREADS \
    CK_DEFAULT_TIMEOUT PIPELAG top_srcdir LC_ALL;
AM_CFLAGS += $(CHECK_CFLAGS)
LDADD = $(PL_LIBS) $(CHECK_LIBS) $(PL_SYSLIBS)
test_programs =
test_scripts =
include tests/base.mk
include tests/sim.mk
include tests/model.mk
include tests/gpu.mk
include tests/train.mk
include tests/theory.mk
include tests/traces.mk
include tests/cli.mk
include tests/sweep.mk
include tests/accuracy.mk
include tests/plan.mk
check_PROGRAMS += $(test_programs)
TESTS += $(test_programs) $(test_scripts)
EXTRA_DIST += $(test_scripts) tests/tap.sh tests/run-golden.sh tests/runner.h \
  tests/cluster_case.h tests/config_case.h tests/sweep_case.h tests/custom_case.h tests/sim_case.h tests/trace_sample.h \
  tests/work_case.h
