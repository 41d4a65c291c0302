/* A cluster out of the keys cluster.*: levels, then lists with one entry for each
 * level. A list aligns at the innermost level. Levels outside of it repeat its first
 * entry when it has two or more (so a preset for "node:1 gpu:8" also serves "rack:2
 * node:4 gpu:8"), but not its ports: a rack's uplinks are one for each GPU unless
 * given. */
#include "sim/cluster.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/mem.h"
#include "sim/cluster_internal.h"

/* One word "name:count". */
static int read_level(const char *word, const char *where, struct pl_level *level)
{
    const char *colon = strchr(word, ':');
    size_t n = colon ? (size_t)(colon - word) : 0;
    char *end = NULL;
    long count = colon ? strtol(colon + 1, &end, 10) : 0;
    if (!n || n >= sizeof level->name || !isdigit((unsigned char)colon[1]) || *end)
        return pl_fail(PL_ECONFIG,
                       "%s: '%s' is not a level, expected NAME:COUNT such as gpu:8",
                       where, word);
    if (count < 1 || count > PL_CLUSTER_GPUS)
        return pl_fail(PL_ECONFIG,
                       "%s: '%s': the count is out of range, expected 1 "
                       "to %d",
                       where, word, PL_CLUSTER_GPUS);
    *level = (struct pl_level){.count = (int)count};
    memcpy(level->name, word, n);
    return 0;
}

int pl_cluster_levels(const char *text, const char *where, struct pl_cluster *out)
{
    char *copy = pl_strdup(text), *rest = NULL;
    int64_t n_gpus = 1;
    int code = 0, n = 0;
    for (char *word = strtok_r(copy, " ,", &rest); word && !code;
         word = strtok_r(NULL, " ,", &rest)) {
        if (n == PL_CLUSTER_LEVELS)
            code = pl_fail(PL_ECONFIG, "%s: more than %d levels", where,
                           PL_CLUSTER_LEVELS);
        else
            code = read_level(word, where, &out->level[n++]);
        for (int i = 0; !code && i + 1 < n; i++)
            if (!strcmp(out->level[i].name, out->level[n - 1].name))
                code = pl_fail(PL_ECONFIG, "%s: level '%s' is there twice", where,
                               out->level[i].name);
        if (!code) n_gpus *= out->level[n - 1].count;
        if (!code && n_gpus > PL_CLUSTER_GPUS)
            code = pl_fail(PL_ECONFIG, "%s: more than %d GPUs", where, PL_CLUSTER_GPUS);
    }
    free(copy);
    if (code) return code;
    if (!n)
        return pl_fail(PL_ECONFIG, "%s: no levels, expected such as 'node:4 gpu:8'",
                       where);
    out->n_levels = n;
    out->n_gpus = (int)n_gpus;
    for (int i = n - 1, below = 1; i >= 0; below *= out->level[i--].count)
        out->level[i].n_gpus = below;
    return 0;
}

/* What a list's entry sets at its level; text is never "-". */
typedef int set_entry(struct pl_level *level, const char *text, const char *where);

static int set_link(struct pl_level *level, const char *text, const char *where)
{
    const char *names[64];
    int n = 0;
    const struct pl_link *link = pl_link_find(text);
    for (const struct pl_link *l = pl_links; l->name && n < 63; l++)
        names[n++] = l->name;
    names[n] = NULL;
    if (!link) return pl_fail_unknown(PL_ECONFIG, where, "link", text, names);
    level->link = *link;
    level->latency = (pl_tick)llround(link->hop[PL_PROTOCOL_SIMPLE] * 1e6);
    return 0;
}

static int set_bandwidth(struct pl_level *level, const char *text, const char *where)
{
    double rate;
    if (pl_units_rate(text, &rate))
        return pl_fail(PL_ECONFIG, "%s: %s", where, pl_error_text());
    if (!(rate > 0))
        return pl_fail(PL_ECONFIG, "%s: '%s', expected more than 0", where, text);
    level->link.bandwidth = rate;
    return 0;
}

static int set_achieved(struct pl_level *level, const char *text, const char *where)
{
    char *end;
    double part = strtod(text, &end);
    if (end == text || *end || !(part > 0 && part <= 1))
        return pl_fail(PL_ECONFIG,
                       "%s: '%s' is not a part of the line rate, expected more than 0 "
                       "and at most 1",
                       where, text);
    level->link.achieved = part;
    return 0;
}

static int set_latency(struct pl_level *level, const char *text, const char *where)
{
    if (pl_units_time(text, &level->latency))
        return pl_fail(PL_ECONFIG, "%s: %s", where, pl_error_text());
    return 0;
}

static int set_ports(struct pl_level *level, const char *text, const char *where)
{
    char *end;
    long ports = strtol(text, &end, 10);
    if (end == text || *end || ports < 0 || ports > level->n_gpus)
        return pl_fail(PL_ECONFIG,
                       "%s: '%s' ports of a %s, expected 0 (one for each GPU) to %d",
                       where, text, level->name, level->n_gpus);
    level->ports = ports ? (int)ports : level->n_gpus;
    return 0;
}

static const struct {
    const char *key, *separators;
    bool repeats;
    set_entry *set;
} lists[] = {
    {"cluster.links", " ,", true, set_link},
    {"cluster.bandwidth", ",", true, set_bandwidth},
    {"cluster.achieved", " ,", true, set_achieved},
    {"cluster.latency", ",", true, set_latency},
    {"cluster.ports", " ,", false, set_ports},
};

static char *trim(char *text)
{
    while (*text == ' ') text++;
    size_t n = strlen(text);
    while (n && text[n - 1] == ' ') text[--n] = '\0';
    return text;
}

static int read_list(const struct pl_config *config, int k, struct pl_cluster *c)
{
    char *copy = pl_strdup(pl_config_text(config, lists[k].key)), *rest = NULL;
    char *where =
        pl_printf("%s: %s", pl_config_where(config, lists[k].key), lists[k].key);
    char *entry[PL_CLUSTER_LEVELS + 1];
    int n = 0, code = 0;
    for (char *word = strtok_r(copy, lists[k].separators, &rest);
         word && n <= c->n_levels; word = strtok_r(NULL, lists[k].separators, &rest))
        entry[n++] = trim(word);
    if (n > c->n_levels)
        code = pl_fail(PL_ECONFIG,
                       "%s: more than %d entries, expected at most one for "
                       "each level",
                       where, c->n_levels);
    for (int i = 0; n && i < c->n_levels && !code; i++) {
        int from = i - (c->n_levels - n);
        if (from < 0 && (n < 2 || !lists[k].repeats)) continue;
        const char *text = entry[from < 0 ? 0 : from];
        if (strcmp(text, "-")) code = lists[k].set(&c->level[i], text, where);
    }
    free(where);
    free(copy);
    return code;
}

static int read_rate(const struct pl_config *config, const char *key, double *rate)
{
    const char *text = pl_config_text(config, key);
    *rate = 0;
    if (!*text || !pl_units_rate(text, rate)) return 0;
    return pl_fail(PL_ECONFIG, "%s: %s: %s", pl_config_where(config, key), key,
                   pl_error_text());
}

static int read_gpu(const struct pl_config *config, struct pl_gpu *gpu)
{
    const char *memory = pl_config_text(config, "cluster.gpu.memory");
    snprintf(gpu->name, sizeof gpu->name, "%s",
             pl_config_text(config, "cluster.gpu.name"));
    gpu->bf16 = 1e12 * pl_config_real(config, "cluster.gpu.bf16");
    gpu->tf32 = 1e12 * pl_config_real(config, "cluster.gpu.tf32");
    gpu->fp32 = 1e12 * pl_config_real(config, "cluster.gpu.fp32");
    gpu->sms = (int)pl_config_int(config, "cluster.gpu.sms");
    gpu->gemm_fraction = pl_config_real(config, "cluster.gpu.gemm_fraction");
    gpu->memory_fraction = pl_config_real(config, "cluster.gpu.memory_fraction");
    gpu->memory = 0;
    if (*memory && pl_units_bytes(memory, &gpu->memory))
        return pl_fail(PL_ECONFIG, "%s: cluster.gpu.memory: %s",
                       pl_config_where(config, "cluster.gpu.memory"), pl_error_text());
    return read_rate(config, "cluster.gpu.memory_bandwidth", &gpu->memory_bandwidth);
}

static int read_links(const struct pl_config *config, struct pl_cluster *c)
{
    int code = 0;
    for (size_t k = 0; k < sizeof lists / sizeof *lists && !code; k++)
        code = read_list(config, (int)k, c);
    bool crossed = false; /* levels of one member around all others are not */
    for (int i = 0; i < c->n_levels && !code; i++) {
        crossed |= c->level[i].count > 1;
        if (crossed && !c->level[i].link.name)
            code = pl_fail(PL_ECONFIG,
                           "%s: cluster.links has no link for level '%s', expected one "
                           "for each level",
                           pl_config_where(config, "cluster.links"), c->level[i].name);
    }
    return code;
}

static int read_all(const struct pl_config *config, struct pl_cluster *c)
{
    const char *levels = pl_config_text(config, "cluster.levels"),
               *file = pl_config_text(config, "cluster.topology");
    char where[600];
    int code = 0;
    snprintf(c->name, sizeof c->name, "%s", pl_config_text(config, "cluster.name"));
    c->launch = pl_config_time(config, "cluster.launch");
    if (!*levels && !*file)
        return pl_fail(PL_ECONFIG,
                       "no cluster: give cluster.preset (pipelag cluster lists them), "
                       "or cluster.levels and cluster.links");
    snprintf(where, sizeof where, "%.500s: cluster.levels",
             pl_config_where(config, "cluster.levels"));
    if (*levels) code = pl_cluster_levels(levels, where, c);
    if (!code && *file) code = pl_cluster_import(file, c);
    if (!code) code = read_gpu(config, &c->gpu);
    if (!code) code = read_links(config, c);
    if (!code && c->fabric && c->fabric->direct &&
        c->level[c->n_levels - 1].link.kind != PL_LINK_PCIE)
        code = pl_fail(PL_ECONFIG,
                       "%s: NVLinks join pairs of GPUs in %s, expected their PCIe link "
                       "in cluster.links",
                       pl_config_where(config, "cluster.links"), file);
    if (!code) code = pl_cluster_number(c);
    return code;
}

int pl_cluster_read(const struct pl_config *config, struct pl_cluster *out)
{
    struct pl_cluster cluster = {0};
    int code = read_all(config, &cluster);
    if (code)
        pl_cluster_free(&cluster);
    else
        *out = cluster;
    return code;
}

void pl_cluster_free(struct pl_cluster *cluster)
{
    if (!cluster) return;
    pl_fabric_free(cluster->fabric);
    *cluster = (struct pl_cluster){0};
}
