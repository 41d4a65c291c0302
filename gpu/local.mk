# -fopenmp-simd reads `#pragma omp simd` only (no OpenMP runtime); -fno-trapping-math
# lets it use blends (no value changes); -Wno-psabi: vectors are
# never passed between objects.
noinst_LIBRARIES += %D%/libgpu.a
%C%_libgpu_a_SOURCES = %D%/device.c %D%/device.h %D%/ops.h %D%/hostmem.c %D%/hostmem.h \
  %D%/svd.c %D%/svd.h %D%/ref.c %D%/ref.h %D%/ref_layers.c %D%/ref_attention.c \
  %D%/host.c %D%/host.h %D%/host_base.c %D%/host_avx2.c %D%/host_avx512.c \
  %D%/host_gemm.h %D%/host_layers.h %D%/host_attention.h
%C%_libgpu_a_CPPFLAGS = $(AM_CPPFLAGS) $(OPENBLAS_CFLAGS)
%C%_libgpu_a_CFLAGS = $(AM_CFLAGS) -fopenmp-simd -fno-trapping-math -Wno-psabi
