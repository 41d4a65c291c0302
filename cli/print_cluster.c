#include "cli/print_cluster.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/json.h"

const double pl_cluster_sizes[PL_CLUSTER_SIZES] = {1 << 20, 16 << 20, 256 << 20,
                                                   1 << 30};

char *pl_cluster_shape(const struct pl_cluster *c, char *buf, int n)
{
    int used = 0;
    buf[0] = '\0';
    for (int i = 0; i < c->n_levels && used < n; i++)
        used += snprintf(buf + used, (size_t)(n - used), "%s%s:%d", i ? " " : "",
                         c->level[i].name, c->level[i].count);
    return buf;
}

static void print_gpu(const struct pl_cluster *c, FILE *out)
{
    const struct pl_gpu *g = &c->gpu;
    char memory[32];
    if (g->bf16 == 0) {
        fputs("GPU: not given (cluster.preset or cluster.gpu.*)\n", out);
        return;
    }
    fprintf(out,
            "GPU %s: dense peak bf16 %.1f, tf32 %.1f, fp32 %.1f Tflop/s; large "
            "GEMMs reach %.1f %%\n",
            g->name, g->bf16 * 1e-12, g->tf32 * 1e-12, g->fp32 * 1e-12,
            100 * g->gemm_fraction);
    fprintf(out, "    memory %s at %.0f GB/s, large copies reach %.0f %%\n",
            pl_units_format_bytes((double)g->memory, memory, sizeof memory),
            g->memory_bandwidth * 1e-9, 100 * g->memory_fraction);
}

static void print_levels(const struct pl_cluster *c, FILE *out)
{
    fprintf(out, "\n%-10s %7s %6s  %-15s %10s %9s %7s %9s\n", "level", "members",
            "GPUs", "link", "GB/s/port", "achieved", "ports", "latency");
    for (int i = 0; i < c->n_levels; i++) {
        const struct pl_level *l = &c->level[i];
        char latency[32];
        if (!l->link.name) continue;
        fprintf(out, "%-10s %7d %6d  %-15s %10.2f %9.3f %7d %9s\n", l->name, l->count,
                l->n_gpus, l->link.name, l->link.bandwidth * 1e-9, l->link.achieved,
                l->ports,
                pl_units_format_time(pl_seconds(l->latency), latency, sizeof latency));
    }
    fputs("    members of one member above, each of so many GPUs; ports of a member, "
          "line "
          "rate per direction\n",
          out);
}

static void print_messages(const struct pl_cluster_view *v, FILE *out)
{
    const struct pl_cluster *c = v->cluster;
    char size[32], name[64];
    if (!v->n_pairs) return;
    snprintf(name, sizeof name, "message of %s, alone",
             pl_units_format_bytes(v->bytes, size, sizeof size));
    fprintf(out, "\n%-32s %10s %12s %10s  resources it shares\n", name, "latency",
            "GB/s", "time");
    for (int k = 0; k < v->n_pairs; k++) {
        struct pl_route route;
        char latency[32], time[32], pair[32];
        pl_cluster_route(c, 0, v->pair[k], &route);
        snprintf(pair, sizeof pair, "GPU 0 to %d", v->pair[k]);
        fprintf(
            out, "  %-14s across %-8s %10s %12.2f %10s ", pair,
            c->level[route.level].name,
            pl_units_format_time(pl_seconds(route.latency), latency, sizeof latency),
            route.bandwidth * 1e-9,
            pl_units_format_time(pl_seconds(v->time[k]), time, sizeof time));
        for (int i = 0; i < route.n; i++)
            fprintf(
                out, "%s %s", i ? "," : "",
                pl_cluster_resource_name(c, route.use[i].resource, name, sizeof name));
        putc('\n', out);
    }
}

static void print_rows(const struct pl_cluster_view *v, FILE *out)
{
    char text[32];
    if (!v->n_rows) return;
    fprintf(out, "\n%-30s", "all-reduce: time, busbw in GB/s");
    for (int k = 0; k < PL_CLUSTER_SIZES; k++)
        fprintf(out, " %16s",
                pl_units_format_bytes(pl_cluster_sizes[k], text, sizeof text));
    fputs("  algorithm of the last\n", out);
    for (int i = 0; i < v->n_rows; i++) {
        const struct pl_collective_cost *last = &v->row[i].cost[PL_CLUSTER_SIZES - 1];
        fprintf(out, "  %-29s", v->row[i].what);
        for (int k = 0; k < PL_CLUSTER_SIZES; k++)
            fprintf(out, " %10s %5.1f",
                    pl_units_format_time(v->row[i].cost[k].seconds, text, sizeof text),
                    v->row[i].cost[k].bus * 1e-9);
        fprintf(out, "  %s, %s\n", pl_algorithm_name(last->algorithm),
                pl_protocol_name(last->protocol));
    }
}

static const char *const path_names[] = {"X", "PIX", "PXB", "PHB", "NODE", "SYS"};

/* The matrix of an imported node: how, and GB/s in one direction. */
static void print_fabric(const struct pl_cluster *c, FILE *out)
{
    const struct pl_fabric *f = c->fabric;
    if (!f || f->n > 32) return;
    fprintf(out, "\nGB/s  ");
    for (int j = 0; j < f->n; j++) fprintf(out, " %8s%-2d", "GPU", j);
    fprintf(out, "  NIC socket\n");
    for (int i = 0; i < f->n; i++) {
        fprintf(out, "GPU%-3d", i);
        for (int j = 0; j < f->n; j++) {
            struct pl_route route;
            char how[8];
            int links = f->nvlinks[i * f->n + j];
            pl_cluster_route(c, i, j, &route);
            if (links)
                snprintf(how, sizeof how, "NV%d", links);
            else
                snprintf(how, sizeof how, "%s", path_names[f->path[i * f->n + j]]);
            if (i == j)
                fprintf(out, " %10s", "X");
            else
                fprintf(out, " %4s %5.1f", how, route.bandwidth * 1e-9);
        }
        if (f->n_nics)
            fprintf(out, "  %3d %6d\n", f->nic[i], f->socket[i]);
        else
            fprintf(out, "  %3s %6d\n", "-", f->socket[i]);
    }
}

void pl_print_cluster_text(const struct pl_cluster_view *v, FILE *out)
{
    const struct pl_cluster *c = v->cluster;
    char shape[256];
    fprintf(out, "%s%s%s, %d GPU%s\n", c->name, *c->name ? ": " : "",
            pl_cluster_shape(c, shape, sizeof shape), c->n_gpus,
            c->n_gpus == 1 ? "" : "s");
    print_gpu(c, out);
    print_levels(c, out);
    print_fabric(c, out);
    print_messages(v, out);
    print_rows(v, out);
    pl_print_place_text(&v->place, c, out);
}

static void json_levels(const struct pl_cluster *c, struct pl_json *json)
{
    pl_json_begin(json, "levels", '[');
    for (int i = 0; i < c->n_levels; i++) {
        const struct pl_level *l = &c->level[i];
        pl_json_begin(json, NULL, '{');
        pl_json_text(json, "name", l->name);
        pl_json_int(json, "members", l->count);
        pl_json_int(json, "gpus", l->n_gpus);
        pl_json_text(json, "link", l->link.name);
        pl_json_real(json, "port_bandwidth", l->link.bandwidth);
        pl_json_real(json, "achieved", l->link.achieved);
        pl_json_int(json, "ports", l->ports);
        pl_json_real(json, "latency_s", pl_seconds(l->latency));
        pl_json_end(json, '}');
    }
    pl_json_end(json, ']');
}

static void json_gpu(const struct pl_gpu *g, struct pl_json *json)
{
    pl_json_begin(json, "gpu", '{');
    pl_json_text(json, "name", g->name);
    pl_json_real(json, "bf16_flops", g->bf16);
    pl_json_real(json, "tf32_flops", g->tf32);
    pl_json_real(json, "fp32_flops", g->fp32);
    pl_json_uint(json, "memory_bytes", g->memory);
    pl_json_real(json, "memory_bandwidth", g->memory_bandwidth);
    pl_json_real(json, "gemm_fraction", g->gemm_fraction);
    pl_json_real(json, "memory_fraction", g->memory_fraction);
    pl_json_end(json, '}');
}

static void json_messages(const struct pl_cluster_view *v, struct pl_json *json)
{
    char name[64];
    pl_json_begin(json, "messages", '[');
    for (int k = 0; k < v->n_pairs; k++) {
        struct pl_route route;
        pl_cluster_route(v->cluster, 0, v->pair[k], &route);
        pl_json_begin(json, NULL, '{');
        pl_json_int(json, "from", 0);
        pl_json_int(json, "to", v->pair[k]);
        pl_json_text(json, "level", v->cluster->level[route.level].name);
        pl_json_real(json, "bytes", v->bytes);
        pl_json_real(json, "latency_s", pl_seconds(route.latency));
        pl_json_real(json, "bandwidth", route.bandwidth);
        pl_json_real(json, "time_s", pl_seconds(v->time[k]));
        pl_json_begin(json, "resources", '[');
        for (int i = 0; i < route.n; i++) {
            pl_json_begin(json, NULL, '{');
            pl_json_int(json, "id", route.use[i].resource);
            pl_json_text(json, "name",
                         pl_cluster_resource_name(v->cluster, route.use[i].resource,
                                                  name, sizeof name));
            pl_json_real(json, "capacity", route.use[i].capacity);
            pl_json_end(json, '}');
        }
        pl_json_end(json, ']');
        pl_json_end(json, '}');
    }
    pl_json_end(json, ']');
}

static void json_rows(const struct pl_cluster_view *v, struct pl_json *json)
{
    pl_json_begin(json, "all_reduce", '[');
    for (int i = 0; i < v->n_rows; i++)
        for (int k = 0; k < PL_CLUSTER_SIZES; k++) {
            const struct pl_cluster_row *row = &v->row[i];
            pl_json_begin(json, NULL, '{');
            pl_json_int(json, "gpus", row->group.size);
            pl_json_int(json, "stride", row->group.stride);
            pl_json_bool(json, "siblings", row->group.siblings);
            pl_json_real(json, "bytes", pl_cluster_sizes[k]);
            pl_json_real(json, "time_s", row->cost[k].seconds);
            pl_json_real(json, "busbw", row->cost[k].bus);
            pl_json_text(json, "algorithm", pl_algorithm_name(row->cost[k].algorithm));
            pl_json_text(json, "protocol", pl_protocol_name(row->cost[k].protocol));
            pl_json_end(json, '}');
        }
    pl_json_end(json, ']');
}

static void json_fabric(const struct pl_fabric *f, struct pl_json *json)
{
    if (!f) return;
    pl_json_begin(json, "node", '{');
    pl_json_bool(json, "direct_nvlinks", f->direct);
    pl_json_int(json, "nics", f->n_nics);
    pl_json_begin(json, "gpus", '[');
    for (int i = 0; i < f->n; i++) {
        pl_json_begin(json, NULL, '{');
        pl_json_int(json, "socket", f->socket[i]);
        pl_json_int(json, "nic", f->n_nics ? f->nic[i] : -1);
        pl_json_begin(json, "nvlinks", '[');
        for (int j = 0; j < f->n; j++)
            pl_json_int(json, NULL, f->nvlinks[i * f->n + j]);
        pl_json_end(json, ']');
        pl_json_begin(json, "path", '[');
        for (int j = 0; j < f->n; j++)
            pl_json_text(json, NULL, path_names[f->path[i * f->n + j]]);
        pl_json_end(json, ']');
        pl_json_end(json, '}');
    }
    pl_json_end(json, ']');
    pl_json_end(json, '}');
}

void pl_print_cluster_json(const struct pl_cluster_view *v, FILE *out)
{
    const struct pl_cluster *c = v->cluster;
    struct pl_json json;
    pl_json_open(&json, out);
    pl_json_begin(&json, NULL, '{');
    pl_json_text(&json, "name", c->name);
    pl_json_int(&json, "n_gpus", c->n_gpus);
    json_gpu(&c->gpu, &json);
    json_levels(c, &json);
    json_fabric(c->fabric, &json);
    json_messages(v, &json);
    pl_json_real(&json, "launch_s", pl_seconds(c->launch));
    json_rows(v, &json);
    pl_print_place_json(&v->place, c, &json);
    pl_json_end(&json, '}');
    pl_json_close(&json);
}
