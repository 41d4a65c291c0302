# tests of problems and data
check_PROGRAMS += tests/test_data tests/test_quadratic
TESTS += tests/test_data tests/test_quadratic
tests_test_data_SOURCES = tests/test_data.c
tests_test_data_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_test_data_LDADD = train/libtrain.a base/libbase.a $(CHECK_LIBS) $(PL_SYSLIBS)
tests_test_quadratic_SOURCES = tests/test_quadratic.c
tests_test_quadratic_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_test_quadratic_LDADD = train/libtrain.a gpu/libgpu.a base/libbase.a $(CHECK_LIBS) \
  $(PL_SYSLIBS)

check_PROGRAMS += tests/test_net tests/test_net_gradient
TESTS += tests/test_net tests/test_net_gradient
PL_NET_TEST_LIBS = train/libtrain.a gpu/libgpu.a sim/libsim.a base/libbase.a \
  $(CHECK_LIBS) $(PL_SYSLIBS)
tests_test_net_SOURCES = tests/test_net.c tests/net_fixture.c tests/net_fixture.h
tests_test_net_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_test_net_LDADD = $(PL_NET_TEST_LIBS)
tests_test_net_gradient_SOURCES = tests/test_net_gradient.c tests/net_fixture.c \
  tests/net_fixture.h
tests_test_net_gradient_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_test_net_gradient_LDADD = $(PL_NET_TEST_LIBS)
