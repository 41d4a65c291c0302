# tests of optimizers, correctors and the training loop
LOOP_TESTS = tests/test_optim tests/test_correct tests/test_run \
  tests/test_run_spec tests/test_run_llama tests/test_checkpoint
check_PROGRAMS += $(LOOP_TESTS)
TESTS += $(LOOP_TESTS)
LOOP_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
LOOP_LDADD = train/libtrain.a gpu/libgpu.a sim/libsim.a base/libbase.a $(CHECK_LIBS) \
  $(PL_SYSLIBS)
tests_test_optim_SOURCES = tests/test_optim.c
tests_test_optim_CFLAGS = $(LOOP_CFLAGS)
tests_test_optim_LDADD = $(LOOP_LDADD)
tests_test_run_SOURCES = tests/test_run.c tests/toy.c tests/toy.h
tests_test_run_CFLAGS = $(LOOP_CFLAGS)
tests_test_run_LDADD = $(LOOP_LDADD)
tests_test_correct_SOURCES = tests/test_correct.c tests/toy.c tests/toy.h
tests_test_correct_CFLAGS = $(LOOP_CFLAGS)
tests_test_correct_LDADD = theory/libtheory.a $(LOOP_LDADD)
tests_test_checkpoint_SOURCES = tests/test_checkpoint.c tests/toy.c tests/toy.h
tests_test_checkpoint_CFLAGS = $(LOOP_CFLAGS)
tests_test_checkpoint_LDADD = $(LOOP_LDADD)
tests_test_run_spec_SOURCES = tests/test_run_spec.c tests/toy.c tests/toy.h
tests_test_run_spec_CFLAGS = $(LOOP_CFLAGS)
tests_test_run_spec_LDADD = $(LOOP_LDADD)
tests_test_run_llama_SOURCES = tests/test_run_llama.c
tests_test_run_llama_CFLAGS = $(LOOP_CFLAGS)
tests_test_run_llama_LDADD = $(LOOP_LDADD)
