/* From results to a trace. */
#ifndef PL_TRACES_RECORD_H
#define PL_TRACES_RECORD_H

#include "sim/memory.h"
#include "sim/simulate.h"
#include "theory/claim.h"
#include "train/run.h"
#include "traces/trace.h"

/* Root attributes: creator, command, config texts, device, library versions. No time,
 * no host, no path of an output. */
void pl_record_provenance(struct pl_trace *t, const char *command,
                          const char *config_given, const char *config_resolved,
                          const char *device);
/* /arms/<arm>: attributes (schedule, P, m, makespan, bubbles ... ), costs, stage
 * metrics; timeline, messages and version map as far as the simulation holds them. */
void pl_record_simulation(struct pl_trace *t, const char *arm,
                          const struct pl_simulation *simulation,
                          const struct pl_cost *cost);
/* /arms/<arm>: attributes problem, and of f_min, L and L_lmo those that are known. */
void pl_record_problem(struct pl_trace *t, const char *arm, const char *problem,
                       const struct pl_problem_known *known);
/* /arms/<arm>/memory: bytes of each device over time. */
void pl_record_memory(struct pl_trace *t, const char *arm,
                      const struct pl_memory *memory);
/* /arms/<arm>/segments: the n stretches of the run; schedules: their names. */
void pl_record_segments(struct pl_trace *t, const char *arm, int n,
                        const struct pl_segment *segments,
                        const char *const *schedules);
/* /arms/<arm>/seeds/<seed>/{rows,evals} and status. */
void pl_record_run(struct pl_trace *t, const char *arm, uint64_t seed,
                   const struct pl_run_result *result);
/* /claims */
void pl_record_verdicts(struct pl_trace *t, const struct pl_verdict *verdicts, int n);

#endif
