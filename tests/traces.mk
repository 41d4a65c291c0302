# tests of traces/: check_PROGRAMS += tests/test_x; TESTS += tests/test_x
