# tests of models: what they do, how they are cut, what they take on a cluster
test_programs += tests/test_model tests/test_work tests/test_activations \
  tests/test_split tests/test_estimate
test_scripts += tests/cli_model.sh tests/golden/model-llama.test
