# tests of problems without a model
test_programs += tests/test_problem tests/test_problem_known tests/test_problem_run \
  tests/test_problem_delay tests/test_quadratic
tests_test_problem_SOURCES = tests/test_problem.c tests/problem_case.h
tests_test_problem_known_SOURCES = tests/test_problem_known.c tests/problem_case.h
tests_test_problem_run_SOURCES = tests/test_problem_run.c tests/problem_case.h
tests_test_problem_delay_SOURCES = tests/test_problem_delay.c tests/problem_case.h
