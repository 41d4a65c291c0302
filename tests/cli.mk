# tests of cli/, of the manual and of the source tree as a whole
cli_tests = %D%/cli.sh %D%/layers.sh %D%/link.sh %D%/man.sh
TESTS += $(cli_tests)
EXTRA_DIST += $(cli_tests) %D%/tap.sh %D%/run-golden.sh
EXTRA_DIST += %D%/cli_run.sh
