/* NCCL's topology file (NCCL_TOPO_DUMP_FILE): system > cpu > pci > ... > pci > gpu,
 * with nvlink elements inside of gpu; nic > net inside of a pci or of a cpu. PCI
 * elements that hold only PCI elements are bridges. nvlink/tclass is the PCI class at
 * the other end: 0x03.... a GPU (target is its bus id), 0x0680.. an NVSwitch. */
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/err.h"
#include "base/mem.h"
#include "base/xml.h"
#include "sim/cluster_internal.h"

enum { MAX_DEVICES = 256, MAX_UP = 64 };

struct topology {
    const char *file;
    const struct pl_xml *gpu[MAX_DEVICES], *net[MAX_DEVICES];
    int n_gpus, n_nets;
};

__attribute__((format(printf, 3, 4))) static int
fail_at(const struct topology *t, const struct pl_xml *e, const char *format, ...)
{
    char text[512];
    va_list ap;
    va_start(ap, format);
    vsnprintf(text, sizeof text, format, ap);
    va_end(ap);
    return pl_fail(PL_ECONFIG, "%s:%d: %s", t->file, e->line, text);
}

/* A decimal or 0x number in an attribute. */
static int read_number(const struct topology *t, const struct pl_xml *e,
                       const char *name, long *value)
{
    const char *text = pl_xml_get(e, name);
    char *end;
    if (!text) return fail_at(t, e, "<%s> has no %s", e->name, name);
    *value = strtol(text, &end, 0);
    if (end == text || *end || *value < 0 || *value > INT_MAX)
        return fail_at(t, e, "%s is '%s', expected a number", name, text);
    return 0;
}

static int collect(struct topology *t, const struct pl_xml *e)
{
    bool gpu = !strcmp(e->name, "gpu"), net = !strcmp(e->name, "net");
    int *n = gpu ? &t->n_gpus : &t->n_nets;
    if (gpu || net) {
        if (*n == MAX_DEVICES) return fail_at(t, e, "more than 256 <%s>", e->name);
        (gpu ? t->gpu : t->net)[(*n)++] = e;
    }
    for (int i = 0; i < e->n; i++) {
        int code = collect(t, e->children[i]);
        if (code) return code;
    }
    return 0;
}

static int by_dev(const void *a, const void *b)
{
    const struct pl_xml *x = *(const struct pl_xml *const *)a,
                        *y = *(const struct pl_xml *const *)b;
    const char *dx = pl_xml_get(x, "dev"), *dy = pl_xml_get(y, "dev");
    long i = dx ? strtol(dx, NULL, 0) : 0, j = dy ? strtol(dy, NULL, 0) : 0;
    return i != j ? (i > j) - (i < j) : (x->line > y->line) - (x->line < y->line);
}

static bool is(const struct pl_xml *e, const char *name)
{
    return e && !strcmp(e->name, name);
}

/* The PCI function of a device, or for a virtual NIC the element that holds it. */
static const struct pl_xml *function_of(const struct pl_xml *e)
{
    while (e->parent && !is(e, "pci") && !is(e->parent, "cpu")) e = e->parent;
    return e;
}

/* Bridges from the innermost outwards, then the CPU. */
static int bridges_of(const struct pl_xml *device, const struct pl_xml *up[MAX_UP])
{
    int n = 0;
    for (const struct pl_xml *e = function_of(device)->parent;
         e && n < MAX_UP && (is(e, "pci") || is(e, "cpu")); e = e->parent)
        up[n++] = e;
    return n;
}

static enum pl_path path_between(const struct pl_xml *a, const struct pl_xml *b)
{
    const struct pl_xml *up[MAX_UP], *other[MAX_UP];
    int n = bridges_of(a, up), m = bridges_of(b, other);
    if (function_of(a) == function_of(b)) return PL_PATH_PIX;
    for (int i = 0; i < n; i++)
        for (int j = 0; j < m; j++) {
            if (up[i] != other[j]) continue;
            if (is(up[i], "cpu")) return PL_PATH_PHB;
            return i == 0 && j == 0 ? PL_PATH_PIX : PL_PATH_PXB;
        }
    return PL_PATH_SYS;
}

static const char *bus_of(const struct pl_xml *gpu)
{
    const char *id = pl_xml_get(function_of(gpu), "busid");
    return id ? id : "";
}

static int read_nvlink(const struct topology *t, const struct pl_xml *e, int i,
                       struct pl_fabric *f, int *to_switch)
{
    const char *target = pl_xml_get(e, "target");
    long count, class;
    int code = read_number(t, e, "count", &count);
    if (!code) code = read_number(t, e, "tclass", &class);
    if (code) return code;
    if (class >> 8 == 0x0680 && (class & 0xff) == 0) *to_switch += (int)count;
    if (class >> 8 == 0x0680) return 0; /* 0x068001: an NVLink to a POWER CPU */
    if (class >> 16 != 0x03)
        return fail_at(t, e,
                       "unknown tclass '%s', expected 0x03.... for a GPU or "
                       "0x068000 for an NVSwitch",
                       pl_xml_get(e, "tclass"));
    for (int j = 0; j < t->n_gpus; j++) {
        if (!target || strcasecmp(bus_of(t->gpu[j]), target)) continue;
        f->nvlinks[i * f->n + j] += (int)count;
        return 0;
    }
    return fail_at(t, e, "nvlink to '%s', which is no GPU of this file",
                   target ? target : "");
}

/* NVLinks of every GPU; through a switch each pair gets the fewest that one has. */
static int read_nvlinks(const struct topology *t, struct pl_fabric *f)
{
    int least = INT_MAX;
    for (int i = 0; i < f->n; i++) {
        int to_switch = 0;
        for (int k = 0; k < t->gpu[i]->n; k++) {
            const struct pl_xml *e = t->gpu[i]->children[k];
            int code = is(e, "nvlink") ? read_nvlink(t, e, i, f, &to_switch) : 0;
            if (code) return code;
        }
        if (to_switch < least) least = to_switch;
    }
    for (int i = 0; i < f->n && least > 0; i++)
        for (int j = 0; j < f->n; j++)
            if (i != j) f->nvlinks[i * f->n + j] += least;
    for (int i = 0; i < f->n; i++)
        for (int j = 0; j < i; j++)
            if (f->nvlinks[i * f->n + j] != f->nvlinks[j * f->n + i])
                return fail_at(t, t->gpu[i],
                               "the NVLinks to GPU %s are not those "
                               "that it has to this one",
                               bus_of(t->gpu[j]));
    return 0;
}

/* "16.0 GT/s PCIe" x width in bytes/s after 128b/130b, 8b/10b below 8 GT/s; 0: not
 * said.
 */
static int read_pcie(const struct topology *t, double *rate)
{
    *rate = 0;
    for (int i = 0; i < t->n_gpus; i++) {
        const struct pl_xml *e = function_of(t->gpu[i]);
        const char *speed = pl_xml_get(e, "link_speed");
        long width;
        if (!speed || !*speed || !pl_xml_get(e, "link_width")) continue;
        char *end;
        double gt = strtod(speed, &end);
        int code = read_number(t, e, "link_width", &width);
        if (code) return code;
        if (end == speed || !(gt > 0 && gt < 1000))
            return fail_at(t, e,
                           "link_speed is '%s', expected such as '16.0 GT/s "
                           "PCIe'",
                           speed);
        double own = gt * 1e9 / 8 * (double)width * (gt < 8 ? .8 : 128. / 130);
        if (own > 0 && (*rate == 0 || own < *rate)) *rate = own;
    }
    return 0;
}

static int read_nics(const struct topology *t, struct pl_fabric *f, double *slowest)
{
    enum pl_path *near = PL_NEW(f->n * f->n_nics, enum pl_path);
    for (int i = 0; i < f->n; i++)
        for (int k = 0; k < f->n_nics; k++)
            near[i * f->n_nics + k] = path_between(t->gpu[i], t->net[k]);
    pl_fabric_assign_nics(f, near);
    free(near);
    *slowest = 0;
    for (int i = 0; i < f->n && f->n_nics; i++) {
        long mbit;
        int code = read_number(t, t->net[f->nic[i]], "speed", &mbit);
        if (code) return code;
        double rate = (double)mbit * 1e6 / 8;
        if (rate > 0 && (*slowest == 0 || rate < *slowest)) *slowest = rate;
    }
    return 0;
}

static int read_places(const struct topology *t, struct pl_fabric *f)
{
    int sockets = 0;
    for (int i = 0; i < f->n; i++) {
        const struct pl_xml *up[MAX_UP];
        int depth = bridges_of(t->gpu[i], up), j = 0;
        if (!depth || !is(up[depth - 1], "cpu"))
            return fail_at(t, t->gpu[i], "<gpu> is not inside of a <cpu>");
        for (; j < i; j++)
            if (path_between(t->gpu[i], t->gpu[j]) != PL_PATH_SYS) break;
        f->socket[i] = j < i ? f->socket[j] : sockets++;
        for (j = 0; j < f->n; j++)
            f->path[i * f->n + j] =
                i == j ? PL_PATH_SELF : path_between(t->gpu[i], t->gpu[j]);
    }
    return 0;
}

static int read_topology(struct topology *t, const struct pl_xml *root,
                         struct pl_cluster *cluster)
{
    struct pl_imported facts = {0};
    long sm = 0;
    if (!is(root, "system"))
        return fail_at(t, root, "<%s>, expected <system>, the root of an NCCL topology",
                       root->name);
    int code = collect(t, root);
    if (code) return code;
    if (!t->n_gpus) return fail_at(t, root, "no <gpu> in <%s>", root->name);
    qsort(t->gpu, (size_t)t->n_gpus, sizeof *t->gpu, by_dev);
    struct pl_fabric *f = pl_fabric_new(t->n_gpus, t->n_nets);
    code = read_places(t, f);
    if (!code) code = read_nvlinks(t, f);
    if (!code) code = read_pcie(t, &facts.pcie);
    if (!code) code = read_nics(t, f, &facts.nic);
    if (!code && pl_xml_get(t->gpu[0], "sm"))
        code = read_number(t, t->gpu[0], "sm", &sm);
    facts.sm = (int)sm;
    if (!code) code = pl_fabric_install(f, &facts, t->file, cluster);
    if (code) pl_fabric_free(f);
    return code;
}

int pl_cluster_import_xml(const char *path, struct pl_cluster *cluster)
{
    struct pl_xml *root;
    int code = pl_xml_read(path, &root);
    if (code) return code;
    struct topology *t = PL_NEW(1, struct topology);
    t->file = path;
    code = read_topology(t, root, cluster);
    free(t);
    pl_xml_free(root);
    return code;
}
