/* The result columns of a sweep, one line each: X(name, unit, shown, long name). All
 * are real (NaN where a point has none); shown: in the text table, where some point has
 * it (0: no; above 1: left out where the width does not do, the largest first). A new
 * column is a line here and its value in cli/sweep_point.c; the trace's schema,
 * --where, --sort, CSV and JSON take it from here. In the table /sweep of a trace they
 * follow the swept keys. */
#ifndef PL_TRACES_SWEEP_H
#define PL_TRACES_SWEEP_H

/* clang-format off */
#define PL_SWEEP_RESULTS(X)                                                              \
    X(P, "1", 0, "devices in the pipeline")                                              \
    X(m, "1", 0, "microbatches per update")                                              \
    X(v, "1", 0, "model chunks per device")                                              \
    X(updates, "1", 0, "updates simulated")                                              \
    X(makespan_s, "s", 0, "T, end of the whole run")                                     \
    X(step_s, "s", 1, "spacing of U, steady; synchronous: makespan / updates")           \
    X(ideal_s, "s", 0, "work of the busiest device over the whole run")                  \
    X(bubble, "1", 5, "(T - ideal) / T")                                                 \
    X(bubble_over_ideal, "1", 0, "(T - ideal) / ideal")                                  \
    X(bubble_parallelogram, "1", 0, "bubble with T the longest span of one device")      \
    X(bubble_steady, "1", 1, "1 - (ideal / updates) / step")                             \
    X(tau_first, "1", 0, "mean delay of the first stage, steady, in updates")            \
    X(tau_mean, "1", 6, "mean delay over the stages, steady, in updates")                \
    X(tau_max, "1", 1, "largest delay of any stage, steady, in updates")                 \
    X(weight_versions, "1", 3, "most weight versions alive of a chunk after an update")  \
    X(peak_activations, "1", 4, "most activation slots in use on a device (one a chunk)") \
    X(tokens_per_s_gpu, "1/s", 0, "training tokens per second and GPU (roofline)")       \
    X(mfu, "1", 1, "model flops utilisation, 6 N + 12 L d T (roofline)")                 \
    X(memory_bytes, "byte", 0, "peak of the fullest GPU (roofline)")                     \
    X(memory_of_gpu, "1", 2, "memory_bytes over the memory of a GPU: above 1 out of memory")
/* clang-format on */

#define PL_SWEEP_MEMBER(name, unit, shown, long_name) double name;
struct pl_sweep_result {
    PL_SWEEP_RESULTS(PL_SWEEP_MEMBER)
};
#undef PL_SWEEP_MEMBER
enum { PL_N_SWEEP_RESULTS = sizeof(struct pl_sweep_result) / sizeof(double) };

/* The table's path; columns: the swept keys by their names (a list of durations also as
 * text, NAME.stages), the results, and a text: "ok" or why the point was refused. */
#define PL_SWEEP_TABLE "/sweep"
#define PL_SWEEP_STATUS "status"
#define PL_SWEEP_LIST ".stages"

#endif
