noinst_LIBRARIES += %D%/libtraces.a
%C%_libtraces_a_SOURCES = %D%/trace.h %D%/figure.h %D%/record.h \
  %D%/schema.c %D%/schema.h %D%/axis.c %D%/axis.h %D%/ascii.c
%C%_libtraces_a_CPPFLAGS = $(AM_CPPFLAGS) $(HDF5_CFLAGS)
