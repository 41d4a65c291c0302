noinst_LIBRARIES += %D%/libbase.a
%C%_libbase_a_SOURCES = %D%/builtin.c %D%/builtin.h %D%/config.c %D%/config.h \
  %D%/config_arms.c %D%/config_preset.c %D%/config_print.c %D%/config_read.c \
  %D%/config_read.h %D%/config_read_top.c %D%/config_sweep.c %D%/config_table.c \
  %D%/config_types.h %D%/config_value.c %D%/err.c %D%/err.h %D%/file.c %D%/file.h \
  %D%/json.c %D%/json.h %D%/json_read.c %D%/json_read.h %D%/keys.c %D%/log.c %D%/log.h \
  %D%/mem.c %D%/mem.h %D%/pool.c %D%/pool.h %D%/mpi.c %D%/mpi.h %D%/rng.c %D%/rng.h %D%/stats.c %D%/stats.h \
  %D%/units.c %D%/units.h %D%/xml.c %D%/xml.h %D%/yaml.c %D%/yaml.h
EXTRA_DIST += %D%/keys_sim.def %D%/keys_model.def %D%/keys_train.def %D%/keys_update.def
nodist_%C%_libbase_a_SOURCES = %D%/builtin_data.c
%C%_libbase_a_CPPFLAGS = $(AM_CPPFLAGS) $(YAML_CFLAGS) $(ZLIB_CFLAGS) $(JANSSON_CFLAGS) \
  $(MPI_CFLAGS) $(EXPAT_CFLAGS)
