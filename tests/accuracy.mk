# predicted against measured steps
TESTS += tests/cli_calibrate.sh
EXTRA_DIST += tests/cli_calibrate.sh
