# tests of cli/, of the manual and of the source tree as a whole
test_programs += tests/test_report tests/test_text_table
test_scripts += tests/cli.sh tests/layers.sh tests/link.sh tests/man.sh tests/cli_run.sh tests/cli_dry.sh tests/cli_attack.sh tests/cli_honest.sh tests/cli_problem.sh
test_scripts += tests/cli_mpi.sh tests/cli_last.sh
