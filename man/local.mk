# One page a command, from its --help and an include file with NAME and EXAMPLES. Pages are
# made in a git checkout and shipped in the tarball, so only the order of building depends on
# the program: a page is not out of date because the program was linked again.
man_pages = %D%/pipelag.1
man_pages += %D%/pipelag-config.1
man_pages += %D%/pipelag-sim.1
man_pages += %D%/pipelag-sweep.1
man_pages += %D%/pipelag-plan.1
man_pages += %D%/pipelag-run.1
man_pages += %D%/pipelag-profile.1
man_pages += %D%/pipelag-theory.1
man_pages += %D%/pipelag-tokenize.1
man_pages += %D%/pipelag-model.1
man_pages += %D%/pipelag-trace.1
man_pages += %D%/pipelag-figure.1
man_pages += %D%/pipelag-cluster.1
man_pages += %D%/pipelag-calibrate.1
man_includes = %D%/pipelag.h2m
man_includes += %D%/pipelag-config.h2m
man_includes += %D%/pipelag-sim.h2m
man_includes += %D%/pipelag-sweep.h2m
man_includes += %D%/pipelag-plan.h2m
man_includes += %D%/pipelag-run.h2m
man_includes += %D%/pipelag-profile.h2m
man_includes += %D%/pipelag-theory.h2m
man_includes += %D%/pipelag-tokenize.h2m
man_includes += %D%/pipelag-model.h2m
man_includes += %D%/pipelag-trace.h2m %D%/pipelag-trace-format.h2m
man_includes += %D%/pipelag-figure.h2m
man_includes += %D%/pipelag-cluster.h2m
man_includes += %D%/pipelag-calibrate.h2m

dist_man_MANS += $(man_pages)
EXTRA_DIST += $(man_includes)
MAINTAINERCLEANFILES += $(man_pages)
SUFFIXES += .h2m .1

PL_HELP2MAN = $(HELP2MAN) -N -s 1 -m 'User Commands' -S 'pipelag $(VERSION)'

$(man_pages): | cli/pipelag$(EXEEXT)
%D%/pipelag.1: cli/main.c
%D%/pipelag-config.1: cli/cmd_config.c cli/cmd.c cli/families.c base/keys.c
%D%/pipelag-theory.1: cli/cmd_theory.c
%D%/pipelag-tokenize.1: cli/cmd_tokenize.c
%D%/pipelag-calibrate.1: cli/cmd_calibrate.c cli/cmd.c
%D%/pipelag-model.1: cli/cmd_model.c
%D%/pipelag-sim.1: cli/cmd_sim.c cli/cmd.c
%D%/pipelag-sweep.1: cli/cmd_sweep.c cli/cmd.c
%D%/pipelag-plan.1: cli/cmd_plan.c cli/cmd.c
%D%/pipelag-run.1: cli/cmd_run.c cli/cmd.c
%D%/pipelag-profile.1: cli/cmd_profile.c cli/cmd.c
%D%/pipelag-trace.1: cli/cmd_trace.c $(srcdir)/%D%/pipelag-trace-format.h2m
%D%/pipelag-figure.1: cli/cmd_figure.c
%D%/pipelag-cluster.1: cli/cmd_cluster.c

# man/pipelag-trace.1 comes from `pipelag trace --help` and, when there is such a file, has
# the sections of man/pipelag-trace-format.h2m too.
.h2m.1:
	$(AM_V_GEN)$(MKDIR_P) $(@D) && \
	  command=`echo '$(@F)' | sed -n 's/^pipelag-\(.*\)\.1$$/ \1/p'` && \
	  more=`echo '$<' | sed 's/\.h2m$$/-format.h2m/'` && \
	  case $$command in *config) more=$@.tmp; { echo '[KEYS]'; echo .nf; \
	    cli/pipelag$(EXEEXT) config --keys | sed 's/\\/\\e/g; s/-/\\-/g'; echo .fi; } > $$more;; \
	  esac && \
	  $(PL_HELP2MAN) -i $< -I $$more -o $@ "cli/pipelag$(EXEEXT)$$command" && rm -f $@.tmp
