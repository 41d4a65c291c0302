#include "cli/print_profile.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <time.h>

#include "base/json.h"
#include "base/mem.h"
#include "base/pool.h"
#include "base/units.h"
#include "config.h"

static const char phases[] = "FBWU";

static double microbatch_s(const struct pl_profile_view *v, int s)
{
    double *const *x = v->profile->seconds;
    return x[PL_PROFILE_F][s] + x[PL_PROFILE_B][s] + x[PL_PROFILE_W][s];
}

/* One update, its operations one after another. */
static double sequential_s(const struct pl_profile_view *v)
{
    double sum = 0;
    for (int s = 0; s < v->profile->stages; s++)
        sum += v->arm->versions.m * microbatch_s(v, s) +
               v->profile->seconds[PL_PROFILE_U][s];
    return sum;
}

static double tokens_of_update(const struct pl_profile_view *v)
{
    return (double)v->arm->versions.m * v->profile->B * v->profile->T;
}

/* Model flops utilisation of an update that takes seconds, of flops a token. */
static double mfu(const struct pl_profile_view *v, double flops, double seconds)
{
    return flops * tokens_of_update(v) / seconds / v->flops_per_s;
}

/* Least time of an operation at the peaks. */
static double floor_s(const struct pl_profile_view *v, const struct pl_timed *op)
{
    return fmax(op->flops / v->flops_per_s, op->bytes / v->bytes_per_s);
}

struct entry {
    int phase, row;
    const struct pl_timed *op;
    double seconds; /* in the updates that were measured */
};

static int slower_first(const void *a, const void *b)
{
    const struct entry *x = a, *y = b;
    double d = y->seconds - x->seconds;
    if (d != 0) return d < 0 ? -1 : 1;
    return x->phase != y->phase ? x->phase - y->phase : x->row - y->row;
}

/* Times that an update has what the table of a phase counts. */
static int times(const struct pl_profile_view *v, int phase)
{
    return phase == PL_PROFILE_U ? 1 : v->arm->versions.m;
}

/* Operations that were called, by time; [n] caller frees. *all: their seconds, [phase].
 */
static struct entry *entries(const struct pl_profile_view *v, int *n, double *all)
{
    struct entry *list = PL_NEW(PL_PROFILE_PHASES * PL_TIMED_ROWS, struct entry);
    *n = 0;
    for (int k = 0; k < PL_PROFILE_PHASES; k++) {
        all[k] = 0;
        for (int row = 0; row < PL_TIMED_ROWS; row++) {
            const struct pl_timed *op = &v->profile->ops[k].row[row];
            all[k] += op->seconds;
            if (op->calls)
                list[(*n)++] = (struct entry){k, row, op, times(v, k) * op->seconds};
        }
    }
    qsort(list, (size_t)*n, sizeof *list, slower_first);
    return list;
}

static void print_heading(const struct pl_profile_view *v, FILE *out)
{
    const struct pl_machine *m = v->machine;
    char text[32];
    fprintf(out, "%s, %s, %d threads\n", v->device, v->precision, pl_pool_threads());
    fprintf(out,
            "arm %s: N = %.4g M (matrices, head once), optimizer %s\n"
            "a microbatch is %d x %d tokens, %d an update; %s a boundary\n",
            v->arm->name, v->n_matmul / 1e6,
            pl_config_text(v->arm->config, "optimizer.name"), v->profile->B,
            v->profile->T, v->arm->versions.m,
            pl_units_format_bytes(v->profile->boundary_bytes, text, sizeof text));
    fprintf(out,
            "at best, measured: memory %.4g GB/s (y = a x + b y), products %.4g "
            "Gflop/s (size %d)\n",
            m->bytes_per_s / 1e9, m->flops_per_s / 1e9, m->product_size);
    if (m->copies)
        fprintf(out,
                "host to device %.4g GB/s, %.3g us at least; back %.4g GB/s, %.3g us\n",
                m->upload_bytes_per_s / 1e9, m->upload_s * 1e6,
                m->download_bytes_per_s / 1e9, m->download_s * 1e6);
}

static void print_stages(const struct pl_profile_view *v, FILE *out)
{
    double *const *x = v->profile->seconds, sum[PL_PROFILE_PHASES] = {0};
    fprintf(out, "\n%5s %10s %10s %10s %10s %8s   ms, medians of %d\n", "stage", "F",
            "B", "W", "U", "spread", v->profile->repetitions);
    for (int s = 0; s < v->profile->stages; s++) {
        fprintf(out, "%5d", s);
        for (int k = 0; k < PL_PROFILE_PHASES; k++) {
            fprintf(out, " %10.4f", 1e3 * x[k][s]);
            sum[k] += x[k][s];
        }
        fprintf(out, " %6.1f %%\n", 100 * v->profile->spread[s]);
    }
    fprintf(out, "%5s", "all");
    for (int k = 0; k < PL_PROFILE_PHASES; k++) fprintf(out, " %10.4f", 1e3 * sum[k]);
    fprintf(out, "\n\n");
}

static void print_update(const struct pl_profile_view *v, FILE *out)
{
    const double apart = sequential_s(v), whole = v->profile->update_s;
    fprintf(out, "an update: %d (F + B + W) + U = %.4f ms one after another\n",
            v->arm->versions.m, 1e3 * apart);
    fprintf(out,
            "an update in `pipelag run`%s: %.4f ms, %.0f tokens/s,\nMFU %.1f %% (6 N + "
            "12 L d T), %.1f %% (6 N) of %.4g Tflop/s (%s)\n\n",
            v->profile->fused ? ", microbatches fused" : "", 1e3 * whole,
            tokens_of_update(v) / whole, 100 * mfu(v, v->flops, whole),
            100 * mfu(v, 6 * v->n_matmul, whole), v->flops_per_s / 1e12, v->flops_from);
}

static void print_ops(const struct pl_profile_view *v, FILE *out)
{
    double all[PL_PROFILE_PHASES], total = 0;
    int n;
    struct entry *list = entries(v, &n, all);
    for (int k = 0; k < PL_PROFILE_PHASES; k++) total += times(v, k) * all[k];
    fprintf(
        out,
        "operations of an update, each timed alone\nfloor: the larger of flops / "
        "%.4g Tflop/s (%s) and bytes / %.4g GB/s (%s);\nabove 100 %%: from a cache\n",
        v->flops_per_s / 1e12, v->flops_from, v->bytes_per_s / 1e9, v->bytes_from);
    fprintf(out, "%-14s %5s %8s %10s %7s %9s %9s %8s\n", "operation", "phase", "calls",
            "ms", "share", "GB/s", "Gflop/s", "floor");
    for (int i = 0; i < n; i++) {
        const struct pl_timed *op = list[i].op;
        const int each = times(v, list[i].phase), R = v->profile->repetitions;
        fprintf(out, "%-14s %5c %8lld %10.4f %5.1f %% %9.2f %9.1f %6.1f %%\n",
                pl_timed_names[list[i].row], phases[list[i].phase],
                (long long)(op->calls / R * each), 1e3 * op->seconds / R * each,
                100 * each * op->seconds / total, op->bytes / op->seconds / 1e9,
                op->flops / op->seconds / 1e9, 100 * floor_s(v, op) / op->seconds);
    }
    free(list);
}

void pl_print_profile_text(const struct pl_profile_view *view, FILE *out)
{
    print_heading(view, out);
    print_stages(view, out);
    print_update(view, out);
    print_ops(view, out);
}

static void json_machine(const struct pl_profile_view *v, struct pl_json *j)
{
    const struct pl_machine *m = v->machine;
    pl_json_begin(j, "machine", '{');
    pl_json_real(j, "memory_bytes_per_s", m->bytes_per_s);
    pl_json_real(j, "product_flops_per_s", m->flops_per_s);
    pl_json_int(j, "product_size", m->product_size);
    if (m->copies) {
        pl_json_real(j, "upload_s", m->upload_s);
        pl_json_real(j, "upload_bytes_per_s", m->upload_bytes_per_s);
        pl_json_real(j, "download_s", m->download_s);
        pl_json_real(j, "download_bytes_per_s", m->download_bytes_per_s);
    }
    pl_json_end(j, '}');
}

static void json_ops(const struct pl_profile_view *v, struct pl_json *j)
{
    double all[PL_PROFILE_PHASES];
    int n;
    struct entry *list = entries(v, &n, all);
    pl_json_begin(j, "operations", '[');
    for (int i = 0; i < n; i++) {
        const struct pl_timed *op = list[i].op;
        const double each = (double)times(v, list[i].phase) / v->profile->repetitions;
        const char phase[2] = {phases[list[i].phase], 0};
        pl_json_begin(j, NULL, '{');
        pl_json_text(j, "operation", pl_timed_names[list[i].row]);
        pl_json_text(j, "phase", phase);
        pl_json_int(j, "calls", llround((double)op->calls * each));
        pl_json_real(j, "seconds", op->seconds * each);
        pl_json_real(j, "bytes", op->bytes * each);
        pl_json_real(j, "flops", op->flops * each);
        pl_json_real(j, "floor_s", floor_s(v, op) * each);
        pl_json_end(j, '}');
    }
    pl_json_end(j, ']');
    free(list);
}

void pl_print_profile_json(const struct pl_profile_view *v, FILE *out)
{
    static const char *const names[] = {"forward_s", "backward_s", "weight_s",
                                        "update_s"};
    struct pl_json json, *j = &json;
    pl_json_open(j, out);
    j->line_depth = 2;
    pl_json_begin(j, NULL, '{');
    pl_json_text(j, "device", v->device);
    pl_json_text(j, "precision", v->precision);
    pl_json_int(j, "threads", pl_pool_threads());
    pl_json_text(j, "arm", v->arm->name);
    pl_json_int(j, "microbatches", v->arm->versions.m);
    pl_json_int(j, "sequences", v->profile->B);
    pl_json_int(j, "tokens", v->profile->T);
    pl_json_real(j, "boundary_bytes", v->profile->boundary_bytes);
    json_machine(v, j);
    pl_json_real(j, "peak_flops_per_s", v->flops_per_s);
    pl_json_real(j, "peak_bytes_per_s", v->bytes_per_s);
    pl_json_begin(j, "stages", '[');
    for (int s = 0; s < v->profile->stages; s++) {
        pl_json_begin(j, NULL, '{');
        for (int k = 0; k < PL_PROFILE_PHASES; k++)
            pl_json_real(j, names[k], v->profile->seconds[k][s]);
        pl_json_real(j, "spread", v->profile->spread[s]);
        pl_json_end(j, '}');
    }
    pl_json_end(j, ']');
    pl_json_real(j, "sequential_s", sequential_s(v));
    pl_json_real(j, "update_s", v->profile->update_s);
    pl_json_bool(j, "fused", v->profile->fused);
    pl_json_real(j, "tokens_per_s", tokens_of_update(v) / v->profile->update_s);
    pl_json_real(j, "mfu", mfu(v, v->flops, v->profile->update_s));
    pl_json_real(j, "mfu_6n", mfu(v, 6 * v->n_matmul, v->profile->update_s));
    json_ops(v, j);
    pl_json_end(j, '}');
    pl_json_close(j);
}

/* SOURCE_DATE_EPOCH (reproducible-builds.org) stands for today. */
static void print_date(FILE *out)
{
    const char *given = getenv("SOURCE_DATE_EPOCH");
    time_t now = given && *given ? (time_t)atoll(given) : time(NULL);
    struct tm day;
    char text[32] = "";
    if (gmtime_r(&now, &day)) strftime(text, sizeof text, ", %Y-%m-%d", &day);
    fprintf(out, "# pipelag profile %s%s\n", PACKAGE_VERSION, text);
}

void pl_print_profile_csv(const struct pl_profile_view *v, FILE *out)
{
    const struct pl_run_profile *p = v->profile;
    const struct pl_model *model = &v->arm->model;
    struct utsname machine = {.sysname = "unknown"};
    uname(&machine);
    print_date(out);
    fprintf(out, "# machine: %s %s, %d threads\n# device: %s\n# precision: %s\n",
            machine.sysname, machine.machine, pl_pool_threads(), v->device,
            v->precision);
    fprintf(out, "# model: %d layers, hidden %d, vocab %d, N = %.4g M; optimizer %s\n",
            model->layers, model->hidden, model->vocab, v->n_matmul / 1e6,
            pl_config_text(v->arm->config, "optimizer.name"));
    fprintf(out,
            "# microbatch: %d x %d tokens (pipelag run: cost.sequences=%d), %.0f B "
            "a boundary (link.bytes)\n",
            p->B, p->T, p->B, p->boundary_bytes);
    fprintf(out,
            "# use: pipelag sim -P %d -m %d --set cost.profile=THIS --set "
            "link.bandwidth='25 GB/s' --set link.bytes='%.0f B'\n",
            (int)pl_config_int(v->arm->config, "schedule.stages"), v->arm->versions.m,
            p->boundary_bytes);
    fprintf(out, "stage,forward [ms],backward [ms],weight [ms],update [ms]\n");
    for (int s = 0; s < p->stages; s++) {
        fprintf(out, "%d", s);
        for (int k = 0; k < PL_PROFILE_PHASES; k++)
            fprintf(out, ",%.9f", 1e3 * p->seconds[k][s]);
        putc('\n', out);
    }
}
