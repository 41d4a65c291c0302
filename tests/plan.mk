# tests of `pipelag plan`
test_programs += tests/test_plan
test_scripts += tests/cli_plan.sh
