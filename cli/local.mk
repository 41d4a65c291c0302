bin_PROGRAMS += %D%/pipelag
%C%_pipelag_SOURCES = %D%/main.c
%C%_pipelag_LDADD = $(PL_LIBS) $(PL_SYSLIBS)

# All but main: the tests of cli/ link it too.
noinst_LIBRARIES += %D%/libcli.a
%C%_libcli_a_SOURCES = %D%/cmd.h %D%/cmd.c %D%/families.c
%C%_libcli_a_SOURCES += %D%/cmd_config.c
%C%_libcli_a_SOURCES += %D%/cmd_theory.c %D%/cmd_tokenize.c
%C%_libcli_a_SOURCES += %D%/cmd_model.c %D%/print_model.c %D%/print_model.h
%C%_libcli_a_SOURCES += %D%/setup.c %D%/setup.h %D%/setup_cost.c %D%/setup_links.c %D%/setup_data.c %D%/setup_data.h %D%/setup_problem.c %D%/setup_problem.h %D%/profile.c %D%/profile.h
%C%_libcli_a_SOURCES += %D%/setup_delay.c %D%/setup_score.c %D%/setup_score.h \
  %D%/report_scores.c %D%/report_scores.h
%C%_libcli_a_SOURCES += %D%/setup_weights.c %D%/setup_weights.h
%C%_libcli_a_SOURCES += %D%/setup_optim.c %D%/setup_optim.h
%C%_libcli_a_SOURCES += %D%/setup_precision.c %D%/setup_precision.h
%C%_libcli_a_SOURCES += %D%/cmd_sim.c %D%/print_memory.c %D%/closed.c %D%/closed.h \
  %D%/print_sim.c %D%/print_sim.h %D%/print_sim_json.c %D%/print_delay.c %D%/print_delay.h \
  %D%/print_links.c %D%/print_links.h %D%/segments.c %D%/segments.h %D%/print_segments.c \
  %D%/print_segments.h
%C%_libcli_a_SOURCES += %D%/cmd_run.c %D%/experiment.c %D%/experiment.h %D%/job.c %D%/job_fingerprint.c \
  %D%/report.c %D%/report.h %D%/report_print.c %D%/report_notes.c %D%/report_heading.c %D%/session.c %D%/session_probe.c %D%/dry_run.c %D%/dry_run.h %D%/session.h %D%/verdicts.c \
  %D%/verdicts.h %D%/workers.c %D%/workers_mpi.c %D%/workers.h
%C%_libcli_a_SOURCES += %D%/cmd_sweep.c %D%/sweep.h %D%/sweep_point.c %D%/sweep_rows.c \
  %D%/sweep_table.c %D%/sweep_pool.c %D%/sweep_mpi.c %D%/sweep_query.c %D%/sweep_query.h \
  %D%/sweep_print.c %D%/sweep_print.h %D%/pool.c %D%/pool.h
%C%_libcli_a_SOURCES += %D%/cmd_plan.c %D%/plan.h %D%/plan_space.c %D%/plan_bound.c \
  %D%/plan_point.c %D%/plan_search.c %D%/plan_parts.c %D%/plan_setup.c %D%/plan_print.c \
  %D%/plan_json.c %D%/plan_print.h
%C%_libcli_a_SOURCES += %D%/text_table.c %D%/text_table.h
%C%_libcli_a_SOURCES += %D%/unused.c %D%/unused.h
%C%_libcli_a_SOURCES += %D%/cmd_trace.c %D%/cmd_figure.c
%C%_libcli_a_SOURCES += %D%/cmd_cluster.c %D%/print_cluster.c %D%/print_cluster.h \
  %D%/print_place.c %D%/print_place.h
%C%_libcli_a_SOURCES += %D%/cmd_calibrate.c %D%/measured.c %D%/measured.h %D%/fit.c %D%/fit.h %D%/fit_keys.c %D%/fit_keys.h \
  %D%/print_fit.c %D%/print_fit.h
%C%_libcli_a_SOURCES += %D%/cmd_profile.c %D%/print_profile.c %D%/print_profile.h
