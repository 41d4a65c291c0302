# tests of problems and data
test_scripts += tests/cli_models.sh
test_programs += tests/test_net tests/test_net_gradient \
  tests/test_net_params tests/test_net_blocks tests/test_moe tests/test_moe_run
tests_test_net_SOURCES = tests/test_net.c tests/model_case.h tests/net_fixture.c tests/net_fixture.h
tests_test_net_blocks_SOURCES = tests/test_net_blocks.c tests/net_fixture.c \
  tests/net_fixture.h
tests_test_moe_SOURCES = tests/test_moe.c tests/moe_case.h tests/net_fixture.c tests/net_fixture.h
tests_test_moe_run_SOURCES = tests/test_moe_run.c tests/moe_case.h
# With double in the place of float: the net and ref once more.
double_sources = tests/double.h tests/net_fixture.c tests/net_fixture.h \
  train/net.c train/net_init.c train/net_table.c \
  train/layers/attention.c train/layers/embed.c train/layers/ffn.c train/layers/head.c \
  train/layers/mlp.c train/layers/moe.c train/layers/norm.c \
  gpu/ref.c gpu/ref_vector.c gpu/ref_layers.c gpu/ref_attention.c gpu/ref_blocks.c \
  gpu/ref_moe.c
double_flags = $(AM_CPPFLAGS) -include $(top_srcdir)/tests/double.h
tests_test_net_gradient_SOURCES = tests/test_net_gradient.c $(double_sources)
tests_test_net_gradient_CPPFLAGS = $(double_flags)
