# -fopenmp-simd reads `#pragma omp simd` only (no OpenMP runtime); -fno-trapping-math
# lets it use blends (no value changes); -Wno-psabi: vectors are
# never passed between objects.
noinst_LIBRARIES += %D%/libgpu.a
%C%_libgpu_a_SOURCES = %D%/device.c %D%/device.h %D%/ops.h %D%/groups.h %D%/timed.c %D%/timed.h %D%/op_costs.h \
  %D%/hostmem.c %D%/hostmem.h \
  %D%/svd.c %D%/svd.h %D%/ref.c %D%/ref.h %D%/ref_vector.c %D%/ref_layers.c \
  %D%/ref_attention.c %D%/ref_blocks.c %D%/ref_moe.c \
  %D%/host_lapack.c %D%/host_lapack.h \
  %D%/host.c %D%/host.h %D%/host_base.c %D%/host_avx2.c %D%/host_avx512.c \
  %D%/host_pack.h %D%/host_tile.h %D%/host_gemm.h %D%/host_math.h %D%/host_layers.h %D%/host_vector.h \
  %D%/host_blocks.h %D%/host_moe.h %D%/host_attention.h %D%/host_batch.h
%C%_libgpu_a_CPPFLAGS = $(AM_CPPFLAGS) $(OPENBLAS_CFLAGS)
%C%_libgpu_a_CFLAGS = $(AM_CFLAGS) -fopenmp-simd -fno-trapping-math -Wno-psabi

# host in bf16
%C%_libgpu_a_SOURCES += %D%/host_vec.h %D%/host_bf16.c %D%/host_bf16.h %D%/host_bf16_tiles.c \
  %D%/host_bf16_tiles.h %D%/host_bf16_plain.c %D%/host_bf16_avx512.c %D%/host_bf16_amx.c \
  %D%/host_bf16_pairs.h %D%/host_bf16_gemm.h %D%/host_bf16_attention.h

# The device `cuda`: its loader is part of the program, the device itself a shared object
# made by nvcc, put beside the program and installed where the loader looks last.
%C%_libgpu_a_SOURCES += %D%/cuda_load.c %D%/cuda_load.h %D%/cuda_plugin.h
%C%_libgpu_a_CPPFLAGS += -DPKGLIBDIR='"$(pkglibdir)"'
cuda_sources = %D%/cuda.cu %D%/cuda_stream.cu %D%/cuda_product.cu %D%/cuda_vector.cu \
  %D%/cuda_matrix.cu %D%/cuda_rows.cu %D%/cuda_sort.cu %D%/cuda_norm.cu %D%/cuda_moe.cu \
  %D%/cuda_rope.cu %D%/cuda_attention.cu %D%/cuda_flash.cu %D%/cuda_flash_back.cu %D%/cuda_point.cu \
  %D%/cuda_groups.cu %D%/cuda_groups_mma.cu
cuda_objects = $(cuda_sources:.cu=.o)
EXTRA_DIST += $(cuda_sources) %D%/cuda_device.cuh %D%/cuda_real.cuh %D%/cuda_flash.cuh \
  %D%/cuda_mma.cuh %D%/cuda_groups.cuh

AM_V_NVCC = $(am__v_NVCC_@AM_V@)
am__v_NVCC_ = $(am__v_NVCC_@AM_DEFAULT_V@)
am__v_NVCC_0 = @echo "  NVCC    " $@;
am__v_NVCC_1 =
# Without exceptions, RTTI and guarded statics, nothing of libstdc++ is called.
CUDA_HOST_FLAGS = -fPIC,-fvisibility=hidden,-Wall,-fno-exceptions,-fno-rtti,-fno-threadsafe-statics
SUFFIXES += .cu
.cu.o:
	$(AM_V_NVCC)$(MKDIR_P) $(@D) && $(NVCC) -std=c++17 -arch=$(CUDA_ARCH) $(AM_CPPFLAGS) \
	  $(NVCCFLAGS) -Xcompiler $(CUDA_HOST_FLAGS) -MMD -MP -MF $(@:.o=.Pcu) -c -o $@ $<
if HAVE_CUDA
plugindir = $(pkglibdir)
plugin_DATA = cli/pipelag-cuda.so
cli/pipelag-cuda.so: $(cuda_objects)
	$(AM_V_NVCC)$(MKDIR_P) $(@D) && $(NVCC) -arch=$(CUDA_ARCH) -shared -o $@ \
	  $(cuda_objects) $(CUDA_LIBS)
CLEANFILES += cli/pipelag-cuda.so
endif
-include $(cuda_sources:.cu=.Pcu)
MOSTLYCLEANFILES += $(cuda_sources:.cu=.Pcu)
