/* A node out of a file of nvidia-smi or NCCL: what both readers share. */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/file.h"
#include "base/mem.h"
#include "sim/cluster_internal.h"

enum { MAX_BYTES = 16 << 20 };

struct pl_fabric *pl_fabric_new(int n, int n_nics)
{
    struct pl_fabric *f = PL_NEW(1, struct pl_fabric);
    *f = (struct pl_fabric){.n = n, .n_nics = n_nics};
    f->nvlinks = PL_NEW(n * n, int);
    f->path = PL_NEW(n * n, enum pl_path);
    f->socket = PL_NEW(n, int);
    f->nic = PL_NEW(n, int);
    const struct pl_link *socket = pl_link_find("socket");
    f->between_sockets = socket->bandwidth * socket->achieved;
    return f;
}

void pl_fabric_free(struct pl_fabric *f)
{
    if (!f) return;
    free(f->nvlinks);
    free(f->path);
    free(f->socket);
    free(f->nic);
    free(f);
}

void pl_fabric_assign_nics(struct pl_fabric *f, const enum pl_path *near)
{
    int *users = PL_NEW(f->n_nics, int);
    for (int i = 0; i < f->n; i++) {
        const enum pl_path *path = near + i * f->n_nics;
        int best = -1;
        for (int k = 0; k < f->n_nics; k++)
            if (best < 0 || path[k] < path[best] ||
                (path[k] == path[best] && users[k] < users[best]))
                best = k;
        f->nic[i] = best;
        if (best >= 0) users[best]++;
    }
    free(users);
}

/* NVLinks of one GPU of each generation, all together; the names of the table. */
static const struct {
    int links, sm;
    const char *direct, *behind_switch, *pcie;
} generations[] = {
    {18, 100, "nvlink5", "nvlink5-nvls", "pcie5"},
    {18, 90, "nvlink4", "nvlink4-nvls", "pcie5"},
    {4, 86, "nvlink3-bridge", "nvlink3-bridge", "pcie4"},
    {12, 80, "nvlink3", "nvlink3", "pcie4"},
    {6, 70, "nvlink2", "nvlink2", "pcie3"},
};
enum { GENERATIONS = sizeof generations / sizeof *generations };

/* The oldest generation that has so many links, or the one of sm when known. */
static int generation_of(int links, int sm)
{
    for (int k = 0; k < GENERATIONS && sm; k++)
        if (sm >= generations[k].sm) return k;
    for (int k = GENERATIONS - 1; k > 1; k--)
        if (links <= generations[k].links && generations[k].sm != 86) return k;
    return 1;
}

static void set_link(struct pl_level *level, const char *name)
{
    level->link = *pl_link_find(name);
    level->latency = (pl_tick)(level->link.hop[PL_PROTOCOL_SIMPLE] * 1e6 + .5);
}

/* Rows of the matrix: the fewest links that one GPU has to all others together, and the
 * fewest and most to one other. */
static void count_links(const struct pl_fabric *f, int *sum, int *least, int *most)
{
    *sum = *most = 0;
    *least = f->n > 1 ? f->nvlinks[1] : 0;
    for (int i = 0; i < f->n; i++) {
        int row = 0;
        for (int j = 0; j < f->n; j++) {
            int links = f->nvlinks[i * f->n + j];
            row += links;
            if (j != i && links < *least) *least = links;
            if (links > *most) *most = links;
        }
        if (row > *sum) *sum = row;
    }
}

/* More links than a GPU has, spread evenly: all of them lead to a switch. */
static void set_inside(struct pl_fabric *f, int sm, struct pl_level *gpu)
{
    int sum, least, most;
    count_links(f, &sum, &least, &most);
    bool behind_switch = least > 0 && least == most && (f->n == 2 || sum > 18);
    int k = generation_of(behind_switch ? most : sum, sm);
    if (behind_switch) {
        set_link(gpu, generations[k].behind_switch);
        gpu->link.bandwidth *= (double)most / generations[k].links;
        return;
    }
    f->direct = most > 0;
    if (!gpu->link.name) set_link(gpu, f->direct ? generations[k].pcie : "pcie4");
    const struct pl_link *nvlink = pl_link_find(generations[k].direct);
    f->nvlink = nvlink->bandwidth * nvlink->achieved / generations[k].links;
    f->nvlink_latency = (pl_tick)(nvlink->hop[PL_PROTOCOL_SIMPLE] * 1e6 + .5);
}

int pl_fabric_install(struct pl_fabric *f, const struct pl_imported *facts,
                      const char *path, struct pl_cluster *c)
{
    if (!c->n_levels) {
        char *levels = pl_printf("node:1 gpu:%d", f->n);
        int code = pl_cluster_levels(levels, path, c);
        free(levels);
        if (code) return code;
    }
    struct pl_level *gpu = &c->level[c->n_levels - 1];
    if (gpu->count != f->n)
        return pl_fail(PL_ECONFIG,
                       "%s: %d GPUs, but cluster.levels has %d at level '%s'", path,
                       f->n, gpu->count, gpu->name);
    if (facts->pcie > 0) {
        set_link(gpu, "pcie4");
        gpu->link.name = "pcie";
        gpu->link.bandwidth = facts->pcie;
    }
    set_inside(f, facts->sm, gpu);
    for (int i = 0; i < f->n; i++)
        if (f->socket[i] >= f->n_sockets) f->n_sockets = f->socket[i] + 1;
    if (c->n_levels > 1 && f->n_nics > 0) {
        struct pl_level *node = &c->level[c->n_levels - 2];
        node->ports = f->n_nics;
        if (facts->nic > 0) {
            set_link(node, "ib-ndr");
            node->link.name = "nic";
            node->link.meaning = "NIC of the imported node";
            node->link.bandwidth = facts->nic;
        }
    }
    c->fabric = f;
    return 0;
}

int pl_cluster_import(const char *path, struct pl_cluster *cluster)
{
    char *text;
    size_t n;
    int code = pl_file_read(path, MAX_BYTES, &text, &n);
    if (code) return code;
    const char *first = text;
    while (isspace((unsigned char)*first)) first++;
    if (*first == '<')
        code = pl_cluster_import_xml(path, cluster);
    else if (strstr(text, "GPU0"))
        code = pl_cluster_import_matrix(path, text, cluster);
    else
        code =
            pl_fail(PL_EINPUT,
                    "%s: no GPU0 and no XML, expected the output of 'nvidia-smi topo "
                    "-m' or an NCCL topology file",
                    path);
    free(text);
    return code;
}

/* A preset that is a topology: read once to find its errors, then named in YAML. */
static int import_preset(const char *path, char **yaml)
{
    struct pl_cluster scratch = {0};
    int code = pl_cluster_import(path, &scratch);
    pl_cluster_free(&scratch);
    if (code) return code;
    char *quoted = PL_NEW(2 * strlen(path) + 1, char), *q = quoted;
    for (const char *p = path; *p; p++) {
        if (*p == '"' || *p == '\\') *q++ = '\\';
        *q++ = *p;
    }
    *yaml = pl_printf("cluster: {topology: \"%s\"}\n", quoted);
    free(quoted);
    return 0;
}

void pl_cluster_register(void)
{
    pl_config_register_import("cluster", ".xml", import_preset);
    pl_config_register_import("cluster", ".txt", import_preset);
}
