# tests of weights in files
test_programs += tests/test_safetensors tests/test_safetensors_shards tests/test_weights tests/test_model_hf
test_scripts += tests/hf.sh tests/cli_weights.sh
check_PROGRAMS += tests/hf_model
EXTRA_DIST += tests/hf_reference.py tests/hf_transformers.py
tests_test_weights_SOURCES = tests/test_weights.c tests/net_fixture.c tests/net_fixture.h
