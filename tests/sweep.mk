# tests of `pipelag sweep`
test_programs += tests/test_sweep tests/test_sweep_query
test_scripts += tests/cli_sweep.sh
