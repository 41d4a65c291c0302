# tests of token data and of the tokenizer
test_programs += tests/test_data tests/test_data_files tests/test_bpe tests/test_tokenize
tests_test_data_SOURCES = tests/test_data.c tests/data_case.h
tests_test_data_files_SOURCES = tests/test_data_files.c tests/data_case.h
tests_test_bpe_SOURCES = tests/test_bpe.c tests/bpe_words.h tests/bpe_case.h tests/data_case.h
tests_test_tokenize_SOURCES = tests/test_tokenize.c tests/bpe_case.h tests/data_case.h
test_scripts += tests/cli_tokenize.sh
EXTRA_DIST += tests/vocab/encoder.json tests/vocab/vocab.bpe tools/unicode-classes
