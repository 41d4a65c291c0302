noinst_LIBRARIES += %D%/libbase.a
%C%_libbase_a_SOURCES = %D%/err.c %D%/err.h %D%/mem.c %D%/mem.h %D%/rng.c %D%/rng.h \
  %D%/keys.c %D%/config.h %D%/units.h %D%/log.h %D%/stats.h %D%/json.h %D%/file.h
