# tests of base/
test_programs += tests/test_base tests/test_base_arms tests/test_base_config \
  tests/test_base_file tests/test_base_yaml tests/test_builtin tests/test_json_read \
  tests/test_preset
