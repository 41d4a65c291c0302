# tests of optimizers, correctors and the training loop
test_scripts += tests/cli_delay.sh tests/cli_score.sh tests/cli_optim.sh
test_programs += tests/test_optim tests/test_optim_identities tests/test_optim_decay \
  tests/test_newton_schulz tests/test_correct tests/test_run tests/test_run_spec tests/test_run_stop \
  tests/test_run_llama tests/test_checkpoint tests/test_fidelity tests/test_look
test_programs += tests/test_correct_gradient tests/test_diagnose tests/test_score
tests_test_diagnose_SOURCES = tests/test_diagnose.c tests/toy.c tests/toy.h
tests_test_correct_gradient_SOURCES = tests/test_correct_gradient.c tests/toy.c tests/toy.h
tests_test_fidelity_SOURCES = tests/test_fidelity.c tests/toy.c tests/toy.h
tests_test_look_SOURCES = tests/test_look.c tests/toy.c tests/toy.h
tests_test_optim_SOURCES = tests/test_optim.c tests/optim_case.c tests/optim_case.h
tests_test_optim_identities_SOURCES = tests/test_optim_identities.c tests/optim_case.c \
  tests/optim_case.h
tests_test_optim_decay_SOURCES = tests/test_optim_decay.c tests/optim_case.c \
  tests/optim_case.h
tests_test_newton_schulz_SOURCES = tests/test_newton_schulz.c tests/optim_case.c \
  tests/optim_case.h
tests_test_run_SOURCES = tests/test_run.c tests/toy.c tests/toy.h
tests_test_correct_SOURCES = tests/test_correct.c tests/toy.c tests/toy.h
tests_test_checkpoint_SOURCES = tests/test_checkpoint.c tests/toy.c tests/toy.h
tests_test_run_spec_SOURCES = tests/test_run_spec.c tests/toy.c tests/toy.h
test_programs += tests/test_optim_second tests/test_optim_shampoo
tests_test_optim_second_SOURCES = tests/test_optim_second.c tests/second.c tests/second.h
tests_test_optim_shampoo_SOURCES = tests/test_optim_shampoo.c tests/second.c tests/second.h
test_scripts += tests/cli_optim_second.sh
test_programs += tests/test_optim_stage
tests_test_optim_stage_SOURCES = tests/test_optim_stage.c tests/second.c tests/second.h
# the measuring device, and what a run's operations take
test_programs += tests/test_timed
tests_test_timed_SOURCES = tests/test_timed.c tests/net_fixture.c tests/net_fixture.h
test_scripts += tests/cli_profile.sh
test_programs += tests/test_run_ahead
tests_test_run_ahead_SOURCES = tests/test_run_ahead.c tests/toy.c tests/toy.h
