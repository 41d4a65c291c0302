#!/bin/sh
# The conformance suite on the GPU of this machine, with the plugin of this build (beside
# the program); one SKIP line with the reason where either is missing.
PIPELAG_PLUGIN_PATH=${PIPELAG%/*}
export PIPELAG_PLUGIN_PATH
exec tests/test_cuda
