# tests of traces/ and of the commands trace and figure
test_programs += tests/test_trace tests/test_trace_damage tests/test_figure tests/test_ascii \
  tests/test_perfetto
check_PROGRAMS += tests/make_trace
test_scripts += tests/cli_trace.sh tests/cli_perfetto.sh tests/h5py.sh
EXTRA_DIST += tests/check_h5py.py tests/check_perfetto.py
