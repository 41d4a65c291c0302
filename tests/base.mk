# tests of base/: check_PROGRAMS += tests/test_x; TESTS += tests/test_x
