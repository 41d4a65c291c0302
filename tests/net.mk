# tests of problems and data
test_programs += tests/test_net tests/test_net_gradient \
  tests/test_net_params
tests_test_net_SOURCES = tests/test_net.c tests/net_fixture.c tests/net_fixture.h
tests_test_net_gradient_SOURCES = tests/test_net_gradient.c tests/net_fixture.c \
  tests/net_fixture.h
