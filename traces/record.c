#include <config.h>
#include "traces/record.h"

#include <inttypes.h>
#include <stdlib.h>

#include "base/mem.h"
#include "traces/h5.h"
#include "traces/schema.h"

_Static_assert((int)PL_KIND_F == PL_OP_F && (int)PL_KIND_B == PL_OP_B &&
                   (int)PL_KIND_W == PL_OP_W && (int)PL_KIND_BW == PL_OP_BW &&
                   (int)PL_KIND_U == PL_OP_U && (int)PL_N_KINDS == PL_N_OP,
               "the trace's kinds are the simulator's");

void pl_record_provenance(struct pl_trace *t, const char *command,
                          const char *config_given, const char *config_resolved,
                          const char *device)
{
    pl_trace_attr_text(t, "/", "creator", PACKAGE_NAME);
    pl_trace_attr_text(t, "/", "creator_version", PACKAGE_VERSION);
    pl_trace_attr_text(t, "/", "hdf5_version", pl_h5_version());
    pl_trace_attr_text(t, "/", "rng", "Philox4x32-10, keyed by (seed, purpose)");
    pl_trace_attr_text(t, "/", "device", device);
    pl_trace_attr_text(t, "/", "command", command);
    pl_trace_attr_text(t, "/", "config_given", config_given);
    pl_trace_attr_text(t, "/", "config_resolved", config_resolved);
}

/* Copies of narrow columns, since the trace holds int64. */
static void put_i8(struct pl_trace *t, const char *path, const char *name, int64_t n,
                   const int8_t *data)
{
    int64_t *wide = PL_NEW(n, int64_t);
    for (int64_t i = 0; i < n; i++) wide[i] = data[i];
    pl_trace_i64(t, path, name, n, wide);
    free(wide);
}

static void put_i32(struct pl_trace *t, const char *path, const char *name, int64_t n,
                    const int32_t *data)
{
    int64_t *wide = PL_NEW(n, int64_t);
    for (int64_t i = 0; i < n; i++) wide[i] = data[i];
    pl_trace_i64(t, path, name, n, wide);
    free(wide);
}

static void record_shape(struct pl_trace *t, const char *path,
                         const struct pl_simulation *sim)
{
    const struct pl_metrics *m = &sim->metrics;
    const struct pl_shape *shape = &sim->schedule.shape;
    pl_trace_attr_text(t, path, "schedule", sim->schedule.type->name);
    pl_trace_attr_int(t, path, "P", shape->P);
    pl_trace_attr_int(t, path, "m", shape->m);
    pl_trace_attr_int(t, path, "v", shape->v);
    pl_trace_attr_int(t, path, "replicas", sim->schedule.layout.R);
    pl_trace_attr_int(t, path, "updates", shape->updates);
    pl_trace_attr_int(t, path, "recorded_updates", sim->recorded);
    pl_trace_attr_real(t, path, "makespan_s", m->makespan_s);
    pl_trace_attr_real(t, path, "ideal_s", m->ideal_s);
    pl_trace_attr_real(t, path, "step_s", m->step_s);
    pl_trace_attr_real(t, path, "bubble", m->bubble);
    pl_trace_attr_real(t, path, "bubble_over_ideal", m->bubble_over_ideal);
    pl_trace_attr_real(t, path, "bubble_parallelogram", m->bubble_parallelogram);
    pl_trace_attr_real(t, path, "bubble_steady", m->bubble_steady);
    pl_trace_attr_int(t, path, "steady_from", m->steady_from);
    pl_trace_attr_int(t, path, "steady_to", m->steady_to);
}

static void record_timeline(struct pl_trace *t, const char *arm,
                            const struct pl_timeline *l)
{
    char *path = pl_printf("%s/timeline", arm);
    put_i8(t, path, "kind", l->n_ops, l->kind);
    put_i32(t, path, "device", l->n_ops, l->device);
    put_i32(t, path, "chunk", l->n_ops, l->chunk);
    pl_trace_i64(t, path, "micro", l->n_ops, l->micro);
    pl_trace_i64(t, path, "start", l->n_ops, l->start);
    pl_trace_i64(t, path, "end", l->n_ops, l->end);
    free(path);
}

static void record_messages(struct pl_trace *t, const char *arm,
                            const struct pl_timeline *l)
{
    char *path = pl_printf("%s/messages", arm);
    put_i8(t, path, "kind", l->n_messages, l->msg_kind);
    put_i32(t, path, "src", l->n_messages, l->src);
    put_i32(t, path, "dst", l->n_messages, l->dst);
    put_i32(t, path, "chunk", l->n_messages, l->msg_chunk);
    pl_trace_i64(t, path, "micro", l->n_messages, l->msg_micro);
    pl_trace_i64(t, path, "sent", l->n_messages, l->sent);
    pl_trace_i64(t, path, "arrived", l->n_messages, l->arrived);
    free(path);
}

static void record_costs(struct pl_trace *t, const char *arm,
                         const struct pl_cost *cost)
{
    char *path = pl_printf("%s/costs", arm);
    pl_trace_i64(t, path, "forward", cost->chunks, cost->forward);
    pl_trace_i64(t, path, "backward", cost->chunks, cost->backward);
    pl_trace_i64(t, path, "weight", cost->chunks, cost->weight);
    pl_trace_i64(t, path, "update", cost->chunks, cost->update);
    free(path);
    path = pl_printf("%s/links", arm);
    pl_trace_i64(t, path, "next", cost->devices, cost->next);
    pl_trace_i64(t, path, "prev", cost->devices, cost->prev);
    free(path);
}

static void record_stages(struct pl_trace *t, const char *arm,
                          const struct pl_metrics *m)
{
    int n = m->stages;
    double *real = PL_NEW(5 * n, double);
    int64_t *whole = PL_NEW(5 * n, int64_t);
    for (int s = 0; s < n; s++) {
        const struct pl_stage_metrics *stage = &m->stage[s];
        real[s] = stage->busy_s;
        real[n + s] = stage->tau_min;
        real[2 * n + s] = stage->tau_mean;
        real[3 * n + s] = stage->tau_max;
        real[4 * n + s] = stage->tau_startup;
        whole[s] = stage->weight_versions;
        whole[n + s] = stage->peak_activations;
        whole[2 * n + s] = stage->device;
        whole[3 * n + s] = stage->chunk;
        whole[4 * n + s] = stage->replica;
    }
    char *path = pl_printf("%s/stages", arm);
    pl_trace_i64(t, path, "device", n, whole + 2 * n);
    pl_trace_i64(t, path, "chunk", n, whole + 3 * n);
    pl_trace_i64(t, path, "replica", n, whole + 4 * n);
    pl_trace_f64(t, path, "busy_s", n, real);
    pl_trace_f64(t, path, "tau_min", n, real + n);
    pl_trace_f64(t, path, "tau_mean", n, real + 2 * n);
    pl_trace_f64(t, path, "tau_max", n, real + 3 * n);
    pl_trace_f64(t, path, "tau_startup", n, real + 4 * n);
    pl_trace_i64(t, path, "weight_versions", n, whole);
    pl_trace_i64(t, path, "peak_activations", n, whole + n);
    free(path);
    free(real);
    free(whole);
}

static void record_devices(struct pl_trace *t, const char *arm,
                           const struct pl_metrics *m)
{
    int n = m->devices;
    double *busy = PL_NEW(n, double);
    int64_t *peak = PL_NEW(n, int64_t);
    for (int d = 0; d < n; d++) {
        busy[d] = m->device[d].busy_s;
        peak[d] = m->device[d].peak_activations;
    }
    char *path = pl_printf("%s/devices", arm);
    pl_trace_f64(t, path, "busy_s", n, busy);
    pl_trace_i64(t, path, "peak_activations", n, peak);
    free(path);
    free(busy);
    free(peak);
}

/* The histogram of delays, delays that occur only. */
static void record_delays(struct pl_trace *t, const char *arm,
                          const struct pl_metrics *m)
{
    int64_t room = m->chunks * m->tau_bins, n = 0;
    int64_t *stage = PL_NEW(room, int64_t), *tau = PL_NEW(room, int64_t);
    int64_t *count = PL_NEW(room, int64_t);
    for (int64_t i = 0; i < room; i++) {
        if (!m->tau_count[i]) continue;
        stage[n] = i / m->tau_bins;
        tau[n] = i % m->tau_bins;
        count[n++] = m->tau_count[i];
    }
    char *path = pl_printf("%s/tau", arm);
    pl_trace_i64(t, path, "stage", n, stage);
    pl_trace_i64(t, path, "tau", n, tau);
    pl_trace_i64(t, path, "count", n, count);
    free(path);
    free(stage);
    free(tau);
    free(count);
}

/* The map of the recorded updates; the rest follows from rerunning the configuration.
 */
static void record_versions(struct pl_trace *t, const char *arm,
                            const struct pl_versions *v, int64_t recorded)
{
    int64_t micros = recorded * v->m, n = v->stages * micros, k = 0;
    int64_t *stage = PL_NEW(5 * n, int64_t), *micro = stage + n,
            *update = stage + 2 * n;
    int64_t *forward = stage + 3 * n, *backward = stage + 4 * n;
    for (int s = 0; s < v->stages; s++)
        for (int64_t i = 0; i < micros; i++, k++) {
            stage[k] = s;
            micro[k] = i;
            update[k] = i / v->m;
            forward[k] = v->forward[s * v->n_micro + i];
            backward[k] = v->backward[s * v->n_micro + i];
        }
    char *path = pl_printf("%s/versions", arm);
    pl_trace_i64(t, path, "stage", n, stage);
    pl_trace_i64(t, path, "micro", n, micro);
    pl_trace_i64(t, path, "update", n, update);
    pl_trace_i64(t, path, "forward", n, forward);
    pl_trace_i64(t, path, "backward", n, backward);
    free(path);
    free(stage);
}

void pl_record_simulation(struct pl_trace *t, const char *arm,
                          const struct pl_simulation *simulation,
                          const struct pl_cost *cost)
{
    char *path = pl_printf("/arms/%s", arm);
    record_shape(t, path, simulation);
    pl_trace_attr_text(t, path, "link_semantics", pl_semantics_names[cost->semantics]);
    record_timeline(t, path, &simulation->timeline);
    record_messages(t, path, &simulation->timeline);
    record_costs(t, path, cost);
    record_stages(t, path, &simulation->metrics);
    record_devices(t, path, &simulation->metrics);
    record_delays(t, path, &simulation->metrics);
    record_versions(t, path, &simulation->versions, simulation->recorded);
    free(path);
}

void pl_record_memory(struct pl_trace *t, const char *arm, const struct pl_memory *m)
{
    char *path = pl_printf("/arms/%s/memory", arm);
    int64_t *bytes = PL_NEW(m->n, int64_t);
    for (int64_t i = 0; i < m->n; i++) bytes[i] = (int64_t)m->bytes[i];
    put_i32(t, path, "device", m->n, m->on);
    pl_trace_i64(t, path, "time", m->n, m->time);
    pl_trace_i64(t, path, "bytes", m->n, bytes);
    free(bytes);
    free(path);
}
