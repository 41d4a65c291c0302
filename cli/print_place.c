#include "cli/print_place.h"

#include <math.h>
#include <stdlib.h>

#include "base/mem.h"

/* Which collective shows an axis best. */
static const struct {
    const char *name;
    enum pl_axis axis;
    enum pl_collective op;
} axes[] = {
    {"tp", PL_AXIS_TP, PL_ALL_REDUCE},         {"cp", PL_AXIS_CP, PL_ALL_GATHER},
    {"ep", PL_AXIS_EP, PL_ALL_TO_ALL},         {"dp", PL_AXIS_DP, PL_ALL_REDUCE},
    {"dp x cp", PL_AXIS_DP_CP, PL_ALL_REDUCE}, {"edp", PL_AXIS_EDP, PL_ALL_REDUCE},
};
enum { AXES = sizeof axes / sizeof *axes };

static int outermost(const struct pl_cluster *c, const struct pl_group *g)
{
    int level = c->n_levels - 1;
    for (int i = 0; i < g->size; i++) {
        int r = g->ranks ? g->ranks[i] : g->first + i * g->stride, k = 0;
        while (k < level && r / c->level[k].n_gpus == 0) k++;
        level = k;
    }
    return level;
}

static int fill_axis(const struct pl_cluster *c, int k, int *ranks,
                     struct pl_place_view *v)
{
    struct pl_group g = pl_place_group(&v->place, axes[k].axis, 0, ranks);
    struct pl_collective_cost cost;
    int code =
        pl_collective_time(c, axes[k].op, PL_ALGORITHM_AUTO, &g, v->bytes, &cost);
    if (code) return code;
    v->axis[v->n++] = (struct pl_place_axis){
        axes[k].name,     g.size,     v->place.stride[axes[k].axis],
        outermost(c, &g), axes[k].op, cost.seconds};
    return 0;
}

/* The slowest pair of neighbouring stages. */
static int fill_stages(const struct pl_cluster *c, struct pl_place_view *v)
{
    v->alone_s = v->together_s = NAN;
    for (int s = 0; s + 1 < v->place.size[PL_AXIS_PP]; s++) {
        struct pl_route together, alone;
        pl_tick a, b;
        int code = pl_place_route(c, &v->place, s, s + 1, &together);
        pl_cluster_route(c, pl_place_rank(&v->place, 0, 0, 0, s),
                         pl_place_rank(&v->place, 0, 0, 0, s + 1), &alone);
        if (!code) code = pl_route_time(&together, v->bytes, &b);
        if (!code) code = pl_route_time(&alone, v->bytes, &a);
        if (code) return code;
        v->alone_s = fmax(v->alone_s, pl_seconds(a));
        v->together_s = fmax(v->together_s, pl_seconds(b));
    }
    return 0;
}

int pl_place_view_fill(const struct pl_config *config, const struct pl_cluster *c,
                       double bytes, struct pl_place_view *v)
{
    static const char *const keys[] = {"parallel.tp", "parallel.cp", "parallel.ep",
                                       "parallel.dp", "schedule.stages"};
    int size[5], code;
    *v = (struct pl_place_view){.bytes = bytes};
    for (int k = 0; k < 5; k++) {
        bool given = pl_config_given(config, keys[k]);
        size[k] = given ? (int)pl_config_int(config, keys[k]) : 1;
        v->given |= given;
    }
    if (!v->given) return 0;
    v->order = pl_config_text(config, "parallel.order");
    code = pl_place_init(size[0], size[1], size[2], size[3], size[4], v->order,
                         c->n_gpus, &v->place);
    if (code) return code;
    int *ranks = PL_NEW(v->place.n_ranks, int);
    for (int k = 0; k < AXES && !code; k++) code = fill_axis(c, k, ranks, v);
    free(ranks);
    return code ? code : fill_stages(c, v);
}

void pl_print_place_text(const struct pl_place_view *v, const struct pl_cluster *c,
                         FILE *out)
{
    const int *size = v->place.size;
    char bytes[32], time[32];
    if (!v->given) return;
    fprintf(out,
            "\nplacement %s: %d ranks = TP %d x CP %d x DP %d x PP %d; EP %d inside of "
            "CP x DP\n",
            v->order, v->place.n_ranks, size[PL_AXIS_TP], size[PL_AXIS_CP],
            size[PL_AXIS_DP], size[PL_AXIS_PP], size[PL_AXIS_EP]);
    fprintf(out, "%-8s %6s %7s  %-10s %-15s %s, all groups at once\n", "axis", "size",
            "stride", "crosses", "collective of",
            pl_units_format_bytes(v->bytes, bytes, sizeof bytes));
    for (int k = 0; k < v->n; k++) {
        const struct pl_place_axis *a = &v->axis[k];
        if (a->size == 1) continue;
        fprintf(out, "%-8s %6d ", a->name, a->size);
        if (a->stride)
            fprintf(out, "%7d", a->stride);
        else
            fprintf(out, "%7s", "-");
        fprintf(out, "  %-10s %-15s %s\n", c->level[a->level].name,
                pl_collective_name(a->op),
                pl_units_format_time(a->seconds, time, sizeof time));
    }
    if (isnan(v->alone_s)) return;
    fprintf(out, "%-8s %6d %7d  %-10s %-15s %s", "pp", size[PL_AXIS_PP],
            v->place.stride[PL_AXIS_PP], "", "to next stage",
            pl_units_format_time(v->together_s, time, sizeof time));
    fprintf(out, ", alone %s\n", pl_units_format_time(v->alone_s, time, sizeof time));
}

void pl_print_place_json(const struct pl_place_view *v, const struct pl_cluster *c,
                         struct pl_json *json)
{
    if (!v->given) return;
    pl_json_begin(json, "placement", '{');
    pl_json_text(json, "order", v->order);
    pl_json_int(json, "ranks", v->place.n_ranks);
    pl_json_int(json, "pp", v->place.size[PL_AXIS_PP]);
    pl_json_int(json, "pp_stride", v->place.stride[PL_AXIS_PP]);
    pl_json_real(json, "bytes", v->bytes);
    pl_json_real(json, "next_stage_s", v->together_s);
    pl_json_real(json, "next_stage_alone_s", v->alone_s);
    pl_json_begin(json, "axes", '[');
    for (int k = 0; k < v->n; k++) {
        const struct pl_place_axis *a = &v->axis[k];
        pl_json_begin(json, NULL, '{');
        pl_json_text(json, "name", a->name);
        pl_json_int(json, "size", a->size);
        if (a->stride)
            pl_json_int(json, "stride", a->stride);
        else
            pl_json_text(json, "stride", NULL);
        pl_json_text(json, "crosses", a->size > 1 ? c->level[a->level].name : NULL);
        pl_json_text(json, "collective", pl_collective_name(a->op));
        pl_json_real(json, "time_s", a->seconds);
        pl_json_end(json, '}');
    }
    pl_json_end(json, ']');
    pl_json_end(json, '}');
}
