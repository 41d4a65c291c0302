# Benchmarks: `make bench` prints one table and writes bench.json. Timings are never tests.
EXTRA_PROGRAMS += %D%/bench
%C%_bench_SOURCES = %D%/bench.c
%C%_bench_LDADD = $(PL_LIBS) $(PL_SYSLIBS)
EXTRA_DIST += %D%/heapq_1f1b.py
CLEANFILES += %D%/bench$(EXEEXT) bench.json

bench: %D%/bench$(EXEEXT)
	%D%/bench$(EXEEXT) $(srcdir)/%D%/heapq_1f1b.py bench.json
.PHONY: bench
