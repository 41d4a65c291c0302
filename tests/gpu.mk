# tests of gpu/
check_PROGRAMS += tests/test_device tests/test_device_gradients tests/test_svd
TESTS += tests/test_device tests/test_device_gradients tests/test_svd
tests_test_device_SOURCES = tests/test_device.c tests/conformance.c tests/conformance.h \
  tests/conformance_layers.c tests/conformance_attention.c
tests_test_device_CPPFLAGS = $(AM_CPPFLAGS) $(OPENBLAS_CFLAGS)
tests_test_device_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_test_device_LDADD = gpu/libgpu.a base/libbase.a $(CHECK_LIBS) $(PL_SYSLIBS)
tests_test_device_gradients_SOURCES = tests/test_device_gradients.c
tests_test_device_gradients_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_test_device_gradients_LDADD = gpu/libgpu.a base/libbase.a $(CHECK_LIBS) $(PL_SYSLIBS)
tests_test_svd_SOURCES = tests/test_svd.c
tests_test_svd_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_test_svd_LDADD = gpu/libgpu.a base/libbase.a $(CHECK_LIBS) $(PL_SYSLIBS)

# The device `cuda`: on a GPU if there is one, and always (given g++) on the CPU's fibers.
check_PROGRAMS += tests/test_cuda
tests_test_cuda_SOURCES = tests/test_cuda.c tests/conformance.c tests/conformance.h \
  tests/conformance_layers.c tests/conformance_attention.c
tests_test_cuda_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_test_cuda_LDADD = gpu/libgpu.a base/libbase.a $(CHECK_LIBS) $(PL_SYSLIBS)
TESTS += tests/cuda_gpu.sh tests/cuda_shim.sh
EXTRA_DIST += tests/cuda_gpu.sh tests/cuda_shim.sh tests/cuda_shim.h \
  tests/cuda_shim_api.h
EXTRA_DIST += tools/gpu-check tools/gpu-pack tools/README.md
