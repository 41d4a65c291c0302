bin_PROGRAMS += %D%/pipelag
%C%_pipelag_SOURCES = %D%/main.c %D%/cmd.h %D%/cmd.c %D%/families.c
%C%_pipelag_SOURCES += %D%/cmd_config.c
%C%_pipelag_SOURCES += %D%/cmd_theory.c
%C%_pipelag_SOURCES += %D%/cmd_sim.c %D%/print_sim.c %D%/print_sim.h
%C%_pipelag_LDADD = $(PL_LIBS) $(PL_SYSLIBS)
