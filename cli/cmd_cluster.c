/* pipelag cluster: what is known about a cluster, and what messages and collectives
 * take on it. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "base/builtin.h"
#include "base/file.h"
#include "cli/cmd.h"
#include "cli/print_cluster.h"

enum { OPT_JSON = 256, OPT_BYTES, OPT_SET, OPT_LEVELS };

struct arguments {
    const char *name; /* preset or file; NULL: list the presets */
    const char *bytes;
    bool json;
    struct pl_cmd_settings settings;
};

static const struct argp_option options[] = {
    {"bytes", OPT_BYTES, "SIZE", 0,
     "size of the message between two GPUs and of the collectives of a placement (32 "
     "MiB)",
     0},
    {"levels", OPT_LEVELS, "LEVELS", 0,
     "cluster.levels, such as 'rack:2 node:4 gpu:8', outermost first", 0},
    {"set", OPT_SET, "KEY=VALUE", 0,
     "any key cluster.*, or a placement by parallel.tp, cp, ep, dp, order and "
     "schedule.stages; may be repeated",
     0},
    {"json", OPT_JSON, NULL, 0, "print one JSON object instead of text", 0},
    {0},
};

static error_t parse(int option, char *arg, struct argp_state *state)
{
    struct arguments *args = state->input;
    switch (option) {
    case OPT_JSON:
        args->json = true;
        return 0;
    case OPT_BYTES:
        args->bytes = arg;
        return 0;
    case OPT_SET:
        pl_cmd_settings_add(&args->settings, NULL, arg, "--set");
        return 0;
    case OPT_LEVELS:
        pl_cmd_settings_add(&args->settings, "cluster.levels", arg, "--levels");
        return 0;
    case ARGP_KEY_ARG:
        pl_cmd_argument(state, "PRESET or FILE", arg, &args->name);
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

/* A file that is no YAML is a topology, whatever its name. */
static const char *key_of(const char *name)
{
    struct stat st;
    bool yaml = pl_path_ends(name, ".yaml") || pl_path_ends(name, ".yml");
    bool file = !pl_builtin_text("clusters", name) && !yaml && !stat(name, &st);
    return file ? "cluster.topology" : "cluster.preset";
}

/* One pair for each level where GPUs can differ, innermost first. */
static int fill_messages(struct pl_cluster_view *v)
{
    const struct pl_cluster *c = v->cluster;
    for (int i = c->n_levels - 1; i >= 0; i--) {
        struct pl_route route;
        if (c->level[i].count < 2) continue;
        v->pair[v->n_pairs] = c->level[i].n_gpus;
        pl_cluster_route(c, 0, c->level[i].n_gpus, &route);
        int code = pl_route_time(&route, v->bytes, &v->time[v->n_pairs++]);
        if (code) return code;
    }
    return 0;
}

static int fill_row(struct pl_cluster_view *v, struct pl_group group, const char *what)
{
    struct pl_cluster_row *row = &v->row[v->n_rows++];
    row->group = group;
    snprintf(row->what, sizeof row->what, "%s", what);
    for (int k = 0; k < PL_CLUSTER_SIZES; k++) {
        int code = pl_collective_time(v->cluster, PL_ALL_REDUCE, PL_ALGORITHM_AUTO,
                                      &group, pl_cluster_sizes[k], &row->cost[k]);
        if (code) return code;
    }
    return 0;
}

/* Whole members of every level; and one GPU of each innermost member, all of them at
 * the same time, as data parallelism over tensor-parallel nodes does. */
static int fill_rows(struct pl_cluster_view *v)
{
    const struct pl_cluster *c = v->cluster;
    char what[64];
    int code = 0, before = 1;
    for (int i = c->n_levels - 1; i >= 0 && !code; i--) {
        int n = i ? c->level[i - 1].n_gpus : c->n_gpus;
        if (n == before) continue;
        if (i)
            snprintf(what, sizeof what, "%d GPUs of a %s", n, c->level[i - 1].name);
        else
            snprintf(what, sizeof what, "all %d GPUs", n);
        code = fill_row(v, (struct pl_group){.size = n, .stride = 1}, what);
        before = n;
    }
    int k = c->n_levels - 1; /* the innermost level with NICs */
    while (k >= 0 && c->level[k].link.kind != PL_LINK_NET) k--;
    int node = k < 0 ? c->n_gpus : c->level[k].n_gpus;
    if (code || node == 1 || node == c->n_gpus) return code;
    snprintf(what, sizeof what, "one of each %s, all at once", c->level[k].name);
    return fill_row(
        v,
        (struct pl_group){.size = c->n_gpus / node, .stride = node, .siblings = true},
        what);
}

static int show(const struct arguments *args, const struct pl_config *config,
                const struct pl_cluster *cluster)
{
    struct pl_cluster_view view = {.cluster = cluster};
    uint64_t bytes;
    if (pl_units_bytes(args->bytes, &bytes))
        return pl_fail(PL_EUSAGE, "--bytes: %s", pl_error_text());
    view.bytes = (double)bytes;
    int code = fill_messages(&view);
    if (!code) code = fill_rows(&view);
    if (!code) code = pl_place_view_fill(config, cluster, view.bytes, &view.place);
    if (!code)
        (args->json ? pl_print_cluster_json : pl_print_cluster_text)(&view, stdout);
    return code;
}

/* *config is the caller's, also after an error. */
static int read_cluster(struct arguments *args, struct pl_config **config,
                        struct pl_cluster *cluster)
{
    if (args->name)
        pl_cmd_settings_add(&args->settings, key_of(args->name), args->name, "PRESET");
    int code = pl_cmd_settings_config(&args->settings, NULL, config);
    return code ? code : pl_cluster_read(*config, cluster);
}

static int list(void)
{
    const char *const *names = pl_builtin_names("clusters");
    printf("%-14s %-20s %-22s %13s %9s  %s\n", "preset", "GPU", "levels",
           "bf16 Tflop/s", "memory", "links, outermost first");
    for (int i = 0; names[i]; i++) {
        struct arguments args = {.name = names[i]};
        struct pl_config *config = NULL;
        struct pl_cluster c;
        char shape[256], memory[32];
        int code = read_cluster(&args, &config, &c);
        pl_config_free(config);
        pl_cmd_settings_free(&args.settings);
        if (code) return code;
        printf("%-14s %-20s %-22s %13.1f %9s ", names[i], c.gpu.name,
               pl_cluster_shape(&c, shape, sizeof shape), c.gpu.bf16 * 1e-12,
               pl_units_format_bytes((double)c.gpu.memory, memory, sizeof memory));
        for (int k = 0; k < c.n_levels; k++) printf(" %s", c.level[k].link.name);
        putchar('\n');
        pl_cluster_free(&c);
    }
    return 0;
}

int pl_cmd_cluster(int argc, char **argv)
{
    static const struct argp argp = {
        .options = options,
        .parser = parse,
        .args_doc = "[PRESET|FILE]",
        .doc =
            "Show a cluster: its levels and links, what a message between two GPUs "
            "takes and which links it shares, and all-reduce times. FILE is YAML with "
            "keys cluster.*, the output of `nvidia-smi topo -m` or an NCCL topology "
            "XML. Without arguments the presets are listed.",
    };
    struct arguments args = {.bytes = "32 MiB"};
    argp_parse(&argp, argc, argv, 0, NULL, &args);
    struct pl_config *config = NULL;
    struct pl_cluster cluster;
    int code;
    if (!args.name && !args.settings.n) {
        code = list();
    } else {
        code = read_cluster(&args, &config, &cluster);
        if (!code) {
            code = show(&args, config, &cluster);
            pl_cluster_free(&cluster);
        }
    }
    pl_config_free(config);
    return pl_cmd_end(&args.settings, code);
}
