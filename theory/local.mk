noinst_LIBRARIES += %D%/libtheory.a
%C%_libtheory_a_SOURCES = %D%/stability.c %D%/stability.h %D%/noise.c %D%/bound.c \
  %D%/bound.h %D%/claim.c %D%/claim.h
%C%_libtheory_a_CPPFLAGS = $(AM_CPPFLAGS) $(GSL_CFLAGS)
