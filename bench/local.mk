# Benchmarks: `make bench` prints one table and writes bench.json; BENCH=NAME: those with
# that in their names. Timings are never tests.
EXTRA_PROGRAMS += %D%/bench
%C%_bench_SOURCES = %D%/bench.c %D%/bench.h %D%/bench_sim.c %D%/bench_train.c %D%/bench_peak.c \
  %D%/bench_optim.c %D%/accuracy.c \
  %D%/accuracy.h
%C%_bench_LDADD = $(PL_LIBS) $(PL_SYSLIBS)
EXTRA_DIST += %D%/heapq_1f1b.py %D%/torch_train.py %D%/simgrid_1f1b.cpp
CLEANFILES += %D%/bench$(EXEEXT) %D%/simgrid_1f1b bench.json

bench: %D%/bench$(EXEEXT) %D%/simgrid_1f1b
	%D%/bench$(EXEEXT) $(srcdir)/%D%/heapq_1f1b.py %D%/simgrid_1f1b \
	  $(srcdir)/%D%/torch_train.py $(srcdir)/experiments/measured bench.json $(BENCH)

# The peer only where libsimgrid-dev is installed; else a program that answers nothing.
%D%/simgrid_1f1b: %D%/simgrid_1f1b.cpp
	@$(MKDIR_P) %D%
	@if pkg-config --exists simgrid 2>/dev/null; then \
	  $${CXX:-c++} -O2 -o $@ $(srcdir)/%D%/simgrid_1f1b.cpp $$(pkg-config --cflags --libs simgrid); \
	else echo 'bench: no libsimgrid-dev, no SimGrid peer'; printf '#!/bin/sh\nexit 1\n' >$@; chmod +x $@; fi
.PHONY: bench
