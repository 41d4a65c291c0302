base_test_libs = base/libbase.a $(CHECK_LIBS) $(PL_SYSLIBS)

check_PROGRAMS += tests/test_builtin tests/test_preset tests/test_base tests/test_base_file tests/test_base_config \
  tests/test_base_yaml tests/test_base_arms
TESTS += tests/test_builtin tests/test_preset tests/test_base tests/test_base_file tests/test_base_config \
  tests/test_base_yaml tests/test_base_arms

tests_test_builtin_SOURCES = tests/test_builtin.c
tests_test_builtin_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_test_builtin_LDADD = $(base_test_libs)
tests_test_preset_SOURCES = tests/test_preset.c
tests_test_preset_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_test_preset_LDADD = $(base_test_libs)
tests_test_base_SOURCES = tests/test_base.c
tests_test_base_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_test_base_LDADD = $(base_test_libs)
tests_test_base_file_SOURCES = tests/test_base_file.c
tests_test_base_file_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_test_base_file_LDADD = $(base_test_libs)
tests_test_base_config_SOURCES = tests/test_base_config.c
tests_test_base_config_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_test_base_config_LDADD = $(base_test_libs)
tests_test_base_yaml_SOURCES = tests/test_base_yaml.c
tests_test_base_yaml_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_test_base_yaml_LDADD = $(base_test_libs)
tests_test_base_arms_SOURCES = tests/test_base_arms.c
tests_test_base_arms_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_test_base_arms_LDADD = $(base_test_libs)
