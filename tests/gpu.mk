# tests of gpu/
test_programs += tests/test_device tests/test_device_gradients tests/test_svd \
  tests/test_lapack tests/test_pool \
  tests/test_speed
tests_test_speed_SOURCES = tests/test_speed.c tests/net_fixture.c tests/net_fixture.h
conformance = tests/conformance.c tests/conformance.h tests/conformance_layers.c \
  tests/conformance_attention.c tests/conformance_matrix.c tests/conformance_batch.c \
  tests/conformance_blocks.c tests/conformance_moe.c tests/conformance_groups.c
tests_test_device_SOURCES = tests/test_device.c $(conformance)
tests_test_device_CPPFLAGS = $(AM_CPPFLAGS) $(OPENBLAS_CFLAGS)

# The device `cuda`: on a GPU if there is one, and always (given g++) on the CPU's fibers.
check_PROGRAMS += tests/test_cuda
tests_test_cuda_SOURCES = tests/test_cuda.c $(conformance)
test_scripts += tests/cuda_gpu.sh tests/cuda_shim.sh
EXTRA_DIST += tests/cuda_shim.h tests/cuda_shim_api.h tests/cuda_shim_stream.h tests/cuda_shim_blas.h tests/cuda_shim_mma.h tests/cuda_flash.cc
EXTRA_DIST += tools/gpu-check tools/gpu-check-parts tools/gpu-pack tools/README.md

# host in bf16; amx_trap.c runs its AMX code on CPUs without AMX.
test_programs += tests/test_bf16 tests/test_bf16_attention
EXTRA_DIST += tests/bf16_case.h
test_scripts += tests/cli_bf16.sh
tests_test_bf16_SOURCES = tests/test_bf16.c tests/amx_trap.c tests/amx_trap.h $(conformance)
tests_test_bf16_attention_SOURCES = tests/test_bf16_attention.c tests/amx_trap.c tests/amx_trap.h $(conformance)
