# tests of `pipelag sweep`
test_programs += tests/test_sweep
test_scripts += tests/cli_sweep.sh
