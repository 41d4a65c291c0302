# tests of train/
include tests/problem.mk
include tests/net.mk
include tests/loop.mk
include tests/data.mk
include tests/weights.mk
