# predicted against measured steps
test_programs += tests/test_accuracy
tests_test_accuracy_SOURCES = tests/test_accuracy.c bench/accuracy.c bench/accuracy.h
test_scripts += tests/cli_calibrate.sh
