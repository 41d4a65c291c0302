noinst_LIBRARIES += %D%/libtraces.a
%C%_libtraces_a_SOURCES = %D%/trace.h %D%/figure.h %D%/record.h %D%/schema.c %D%/schema.h \
  %D%/axis.c %D%/axis.h %D%/ascii.c %D%/trace.c %D%/table.h %D%/h5.c %D%/h5.h %D%/write.c \
  %D%/read.c %D%/diff.c %D%/text.c %D%/draw.h %D%/svg.c %D%/gantt.c %D%/curves.c \
  %D%/save.c %D%/record.c %D%/record_run.c %D%/ops.c %D%/ops.h %D%/lanes.c %D%/perfetto.c \
  %D%/perfetto.h %D%/perfetto_counters.c %D%/perfetto_event.h %D%/figure_gantt.c \
  %D%/figure_curves.c
%C%_libtraces_a_CPPFLAGS = $(AM_CPPFLAGS) $(HDF5_CFLAGS)
%C%_libtraces_a_SOURCES += %D%/sweep.h
