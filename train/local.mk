noinst_LIBRARIES += %D%/libtrain.a
%C%_libtrain_a_SOURCES =
include train/problem.mk
include train/net.mk
include train/loop.mk
