noinst_LIBRARIES += %D%/libsim.a
%C%_libsim_a_SOURCES = %D%/model.c %D%/model.h %D%/cost.c %D%/cost.h %D%/schedule.c \
  %D%/schedule.h %D%/schedule_check.c %D%/engine.c %D%/engine_run.c %D%/engine.h \
  %D%/turns.h %D%/window.c %D%/rows.c %D%/stream.c %D%/stream.h %D%/stream_metrics.c \
  %D%/metrics_parts.h %D%/static.c %D%/static.h %D%/static_parts.h %D%/static_room.c \
  %D%/static_rows.c %D%/heap.h %D%/timeline.c %D%/timeline.h %D%/timeline_check.c \
  %D%/versions.c %D%/versions.h %D%/metrics.c %D%/metrics.h %D%/simulate.c %D%/simulate.h \
  %D%/memory.c %D%/memory.h %D%/estimate.c %D%/estimate.h %D%/roofline.c %D%/roofline.h \
  %D%/roofline_update.c %D%/program.c %D%/program.h %D%/jitter.c %D%/jitter.h \
  %D%/network.c %D%/network.h %D%/exchange.c %D%/network_check.c %D%/cost_links.c \
  %D%/flows.c %D%/flows.h %D%/network_check.h %D%/schedules/emit.c %D%/schedules/emit.h \
  %D%/schedules/gpipe.c %D%/schedules/one_f_one_b.c %D%/schedules/pipedream.c \
  %D%/schedules/twobw.c
# zero-bubble family and interleaving
%C%_libsim_a_SOURCES += %D%/schedules/interleaved.c %D%/schedules/zb_h1.c \
  %D%/schedules/zb_h2.c
# planned by the costs
%C%_libsim_a_SOURCES += %D%/schedules/plan.c %D%/schedules/plan.h \
  %D%/schedules/plan_base.c %D%/schedules/zb_auto.c %D%/schedules/zb_1p.c \
  %D%/schedules/zb_2p.c %D%/schedules/zb_v.c %D%/schedules/v.c %D%/schedules/v.h \
  %D%/schedules/v_half.c %D%/schedules/v_min.c
%C%_libsim_a_SOURCES += %D%/cluster.c %D%/cluster.h %D%/cluster_import.c %D%/cluster_internal.h \
  %D%/cluster_links.c %D%/cluster_matrix.c %D%/cluster_place.c %D%/cluster_place.h \
  %D%/cluster_route.c %D%/cluster_xml.c %D%/collective.c %D%/collective.h \
  %D%/collective_group.c %D%/collective_group.h

# bidirectional pipelines and waves
%C%_libsim_a_SOURCES += %D%/schedules/dualpipe.c %D%/schedules/dualpipev.c \
  %D%/schedules/dualpipe_order.c %D%/schedules/chimera.c %D%/schedules/hanayo.c
%C%_libsim_a_SOURCES += %D%/schedules/pipedream_vertical.c %D%/schedules/wpipe.c \
  %D%/schedules/pipemare.c %D%/schedules/spectrain.c %D%/schedules/xpipe.c \
  %D%/schedules/paci.c %D%/schedules/amdp.c %D%/delay_unit.c %D%/delay_unit.h \
  %D%/segments.c %D%/segments.h
# schedules from and to a file
%C%_libsim_a_SOURCES += %D%/schedules/custom.c %D%/custom.c %D%/custom.h %D%/custom_cell.h \
  %D%/custom_check.c %D%/custom_messages.c %D%/custom_write.c
