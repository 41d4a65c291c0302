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
