noinst_LIBRARIES += %D%/libgpu.a
%C%_libgpu_a_SOURCES = %D%/device.c %D%/device.h %D%/ops.h %D%/hostmem.c %D%/hostmem.h \
  %D%/ref.c %D%/ref.h %D%/ref_layers.c %D%/ref_attention.c
