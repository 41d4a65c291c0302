# tests of train/
include tests/net.mk
include tests/loop.mk
