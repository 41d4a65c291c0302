# tests of token data and of the tokenizer
test_programs += tests/test_data tests/test_data_files
tests_test_data_SOURCES = tests/test_data.c tests/data_case.h
tests_test_data_files_SOURCES = tests/test_data_files.c tests/data_case.h
