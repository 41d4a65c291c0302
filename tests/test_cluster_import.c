/* Topologies of nvidia-smi and NCCL: the same machine in both formats is the same node,
 * with the right links, NICs and sockets; damaged files are refused in one line. */
#define _XOPEN_SOURCE 700
#include "tests/runner.h"
#include "tests/cluster_case.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/mem.h"
#include "base/rng.h"
#include "base/xml.h"
#include "sim/collective.h"

static char *sample(const char *name)
{
    const char *top = getenv("top_srcdir");
    return pl_printf("%s/tests/topo/%s", top ? top : ".", name);
}

static char *text_of(const char *name)
{
    char *path = sample(name), *text;
    size_t n;
    int code = pl_file_read(path, 1 << 20, &text, &n);
    ck_assert_msg(code == 0, "%s", pl_error_text());
    free(path);
    return text;
}

static struct pl_cluster import(const char *name, const char *more)
{
    char *path = sample(name), *topology = pl_printf("cluster.topology=%s", path);
    struct pl_cluster c = more ? CLUSTER(topology, more) : CLUSTER(topology);
    free(path);
    free(topology);
    return c;
}

static double bandwidth(const struct pl_cluster *c, int a, int b)
{
    struct pl_route route;
    pl_cluster_route(c, a, b, &route);
    return route.bandwidth;
}

static double all_reduce(const struct pl_cluster *c, int n, const int *ranks)
{
    struct pl_group g = {.size = n, .stride = 1, .ranks = ranks};
    struct pl_collective_cost x;
    int code = pl_collective_time(c, PL_ALL_REDUCE, PL_ALGORITHM_RING, &g, 1e12, &x);
    ck_assert_msg(code == 0, "%s", pl_error_text());
    return x.bus;
}

/* What both formats tell: all but the NICs' speed and places beyond the nearest. */
static void check_equal(const struct pl_cluster *a, const struct pl_cluster *b)
{
    const struct pl_fabric *f = a->fabric, *g = b->fabric;
    ck_assert_int_eq(a->n_gpus, b->n_gpus);
    ck_assert_int_eq(f->direct, g->direct);
    ck_assert_int_eq(f->n_sockets, g->n_sockets);
    for (int i = 0; i < f->n; i++) {
        ck_assert_int_eq(f->socket[i], g->socket[i]);
        for (int j = 0; j < f->n; j++) {
            ck_assert_int_eq(f->nvlinks[i * f->n + j], g->nvlinks[i * f->n + j]);
            if (!f->nvlinks[i * f->n + j])
                ck_assert_int_eq(f->path[i * f->n + j], g->path[i * f->n + j]);
            if (i != j)
                ck_assert_double_eq_tol(bandwidth(a, i, j) / bandwidth(b, i, j), 1,
                                        2e-3);
        }
    }
}

START_TEST(nvswitch)
{
    struct pl_cluster a = import("h100-nvswitch.txt", NULL),
                      b = import("h100-nvswitch.xml", NULL);
    const int *const nic = a.fabric->nic;
    check_equal(&a, &b);
    ck_assert(!a.fabric->direct);
    ck_assert_str_eq(a.level[1].link.name, "nvlink4-nvls");
    ck_assert_double_eq(bandwidth(&a, 0, 7), 450e9 * .824);
    /* NIC 4 and 9 are for storage */
    for (int i = 0; i < 8; i++) ck_assert_int_eq(nic[i], i < 4 ? i : i + 1);
    for (int i = 0; i < 8; i++) ck_assert_int_eq(b.fabric->nic[i], i);
    ck_assert_int_eq(a.fabric->n_sockets, 2);
    pl_cluster_free(&a);
    pl_cluster_free(&b);
    /* two such nodes: each GPU to its own NIC, 400 Gbit/s */
    a = import("h100-nvswitch.xml", "cluster.levels=node:2 gpu:8");
    char name[64];
    struct pl_route route;
    pl_cluster_route(&a, 5, 12, &route);
    ck_assert_int_eq(route.n, 2);
    ck_assert_str_eq(
        pl_cluster_resource_name(&a, route.use[0].resource, name, sizeof name),
        "node 0 port 5 out");
    ck_assert_double_eq(route.bandwidth, 50e9 * .95);
    pl_cluster_free(&a);
    /* a preset supplies the GPU, the file the NICs */
    char *path = sample("h100-nvswitch.txt"),
         *topology = pl_printf("cluster.topology=%s", path);
    a = CLUSTER("cluster.preset=dgx-h100", topology, "cluster.levels=node:2 gpu:8");
    ck_assert_double_eq(a.gpu.bf16, 989.4e12);
    ck_assert_int_eq(a.level[0].ports, 10);
    pl_cluster_route(&a, 5, 12, &route);
    ck_assert_str_eq(
        pl_cluster_resource_name(&a, route.use[0].resource, name, sizeof name),
        "node 0 port 6 out");
    pl_cluster_free(&a);
    /* the file itself is a preset */
    char *preset = pl_printf("cluster.preset=%s", path);
    a = CLUSTER(preset, "cluster.gpu.bf16=1000");
    ck_assert_int_eq(a.n_gpus, 8);
    ck_assert_double_eq(a.gpu.bf16, 1e15);
    pl_cluster_free(&a);
    free(path);
    free(topology);
    free(preset);
}
END_TEST

/* DGX-1: six NVLinks a GPU, one or two to each of four others. */
START_TEST(cube_mesh)
{
    struct pl_cluster a = import("dgx1-v100.txt", NULL),
                      b = import("dgx1-v100.xml", NULL);
    static const int pair[] = {0, 1}, twin[] = {0, 3}, far[] = {0, 5};
    check_equal(&a, &b);
    ck_assert(a.fabric->direct);
    ck_assert_double_eq_tol(bandwidth(&a, 0, 1), 25e9 * .8, 1);
    ck_assert_double_eq_tol(bandwidth(&a, 0, 3), 50e9 * .8, 1);
    ck_assert_double_eq_tol(bandwidth(&a, 0, 5), 15.75e9 * .76,
                            1); /* PCIe, two sockets */
    ck_assert_double_eq_tol(all_reduce(&a, 8, NULL) / (150e9 * .8), 1, 1e-3);
    ck_assert_double_eq_tol(all_reduce(&a, 4, NULL) / (100e9 * .8), 1, 1e-3);
    ck_assert_double_eq_tol(all_reduce(&a, 2, pair) / (25e9 * .8), 1, 1e-3);
    ck_assert_double_eq_tol(all_reduce(&a, 2, twin) / (50e9 * .8), 1, 1e-3);
    ck_assert_double_eq_tol(all_reduce(&a, 2, far) / (15.75e9 * .76), 1, 1e-3);
    /* NICs are shared by two */
    for (int i = 0; i < 8; i++) ck_assert_int_eq(pl_cluster_users(&b, 0, i), 2);
    for (int i = 0; i < 8; i++) ck_assert_int_eq(a.fabric->nic[i], i / 2);
    for (int i = 0; i < 8; i++) ck_assert_int_eq(b.fabric->nic[i], i / 2);
    struct pl_route one, other;
    pl_cluster_route(&a, 0, 1, &one);
    pl_cluster_route(&a, 1, 0, &other);
    ck_assert_int_eq(one.n, 1);
    ck_assert(one.use[0].resource != other.use[0].resource); /* full duplex */
    pl_cluster_free(&a);
    pl_cluster_free(&b);
    b = import("dgx1-v100.xml", "cluster.levels=node:3 gpu:8");
    pl_cluster_route(&b, 0, 8, &one);
    pl_cluster_route(&b, 1, 16, &other);
    ck_assert_double_eq(one.bandwidth, fmin(12.5e9 * .95, 15.75e9 * .76));
    int shared = 0;
    for (int i = 0; i < one.n; i++)
        for (int j = 0; j < other.n; j++)
            shared += one.use[i].resource == other.use[j].resource;
    ck_assert_int_eq(shared, 1); /* the NIC out */
    /* resources of the mesh are numbered apart */
    char x[64], y[64];
    for (int64_t r = 0; r < b.n_resources; r += 17)
        for (int64_t s = 0; s < r; s++)
            ck_assert_str_ne(pl_cluster_resource_name(&b, r, x, sizeof x),
                             pl_cluster_resource_name(&b, s, y, sizeof y));
    pl_cluster_free(&b);
}
END_TEST

START_TEST(pcie_only)
{
    struct pl_cluster a = import("l40s-pcie.txt", NULL),
                      b = import("l40s-pcie.xml", NULL);
    check_equal(&a, &b);
    ck_assert_int_eq(a.fabric->path[1], PL_PATH_PIX);
    ck_assert_int_eq(a.fabric->path[2], PL_PATH_SYS);
    ck_assert_int_eq(a.fabric->path[2 * 4 + 3], PL_PATH_PHB);
    struct pl_route route;
    pl_cluster_route(&a, 1, 2, &route);
    ck_assert_int_eq(route.n, 3); /* both ports and the bridge of the sockets */
    ck_assert_double_eq(route.bandwidth, 22e9);
    ck_assert_double_eq_tol(all_reduce(&a, 4, NULL) / 22e9, 1, 1e-3);
    ck_assert_double_eq_tol(all_reduce(&a, 2, NULL) / (31.5e9 * .76), 1, 1e-3);
    pl_cluster_free(&a);
    pl_cluster_free(&b);
    a = import("l40s-pcie.txt", "cluster.links=pcie5"); /* the matrix does not say */
    ck_assert_double_eq(bandwidth(&a, 0, 1), 63e9 * .76);
    pl_cluster_free(&a);
}
END_TEST

static int try_text(const char *text, size_t n, struct pl_cluster *c);

/* NVLink bridges over pairs: a pair uses its bridge, a ring over both pairs cannot. */
START_TEST(bridged_pairs)
{
    static const char text[] = "\tGPU0\tGPU1\tGPU2\tGPU3\tCPU Affinity\n"
                               "GPU0\tX\tNV12\tPHB\tPHB\t0-31\n"
                               "GPU1\tNV12\tX\tPHB\tPHB\t0-31\n"
                               "GPU2\tPHB\tPHB\tX\tNV12\t0-31\n"
                               "GPU3\tPHB\tPHB\tNV12\tX\t0-31\n";
    struct pl_cluster c;
    ck_assert_int_eq(try_text(text, strlen(text), &c), 0);
    ck_assert(c.fabric->direct);
    ck_assert_double_eq_tol(bandwidth(&c, 2, 3) / (300e9 * .767), 1, 1e-9);
    ck_assert_double_eq_tol(bandwidth(&c, 1, 2) / (31.5e9 * .76), 1, 1e-9);
    ck_assert_double_eq_tol(all_reduce(&c, 2, NULL) / (300e9 * .767), 1, 1e-3);
    ck_assert_double_eq_tol(all_reduce(&c, 4, NULL) / (31.5e9 * .76), 1, 1e-3);
    pl_cluster_free(&c);
}
END_TEST

/* The cluster of a changed sample: the first `from` becomes `to`. */
static int try_text(const char *text, size_t n, struct pl_cluster *c)
{
    char path[] = "/tmp/pipelag-topo-XXXXXX";
    int fd = mkstemp(path);
    ck_assert(fd >= 0);
    ck_assert_int_eq(write(fd, text, n), (ssize_t)n);
    close(fd);
    char *topology = pl_printf("cluster.topology=%s", path);
    int code = try_cluster((const char *const[]){topology, NULL}, c);
    free(topology);
    unlink(path);
    return code;
}

static void damaged(const char *name, const char *from, const char *to,
                    const char *message)
{
    char *text = text_of(name), *at = strstr(text, from);
    struct pl_cluster c;
    ck_assert_msg(at != NULL, "%s has no '%s'", name, from);
    char *changed =
        pl_printf("%.*s%s%s", (int)(at - text), text, to, at + strlen(from));
    int code = try_text(changed, strlen(changed), &c);
    ck_assert_msg(code < 0, "%s: '%s' instead of '%s' is accepted", name, to, from);
    ck_assert_msg(strstr(pl_error_text(), message) != NULL, "'%s', expected: %s",
                  pl_error_text(), message);
    ck_assert_ptr_nonnull(strstr(pl_error_text(), "/tmp/pipelag-topo-"));
    free(changed);
    free(text);
}

START_TEST(damaged_matrix)
{
    const char *pcie = "l40s-pcie.txt", *mesh = "dgx1-v100.txt";
    damaged(mesh, "GPU2\tNV1\tNV2", "GPU2\tNV1\tNW2",
            ":4: GPU2 to GPU1: unknown link 'NW2', did you mean");
    damaged(mesh, "GPU2\tNV1\tNV2\t", "GPU2\tNV1\t", ":4: ");
    damaged(mesh, "SOC\t0-19,40-59\nGPU1", "0-19,40-59\nGPU1",
            ":2: row GPU0 has 11 links, expected 12");
    damaged(mesh, "SOC\t0-19,40-59\nGPU1", "SOC\tSOC\t0-19,40-59\nGPU1",
            ":2: row GPU0 has 13 links, expected 12");
    damaged(mesh, "GPU1\tNV1", "GPU1\tNV2",
            ":3: GPU1 to GPU0 differs from GPU0 to GPU1");
    damaged(mesh, "GPU1\tNV1", "GPU1\tX", ":3: GPU1 to GPU0 is 'X', expected a link");
    damaged(mesh, "GPU0\t X ", "GPU0\tPIX", ":2: GPU0 to GPU0 is 'PIX', expected X");
    damaged(mesh, "GPU3\tNV2", "GPU2\tNV2", ":5: row GPU2 again, first in line 4");
    damaged(mesh, "GPU3\tNV2", "XPU3\tNV2", "the file ends without a row for GPU3");
    damaged(mesh, "\tGPU1\t", "\tGPU0\t", ":1: column GPU0 is there twice");
    damaged(mesh, "\tGPU7\tmlx5_0", "\tmlx5_0\tGPU7", ":1: GPU7 after mlx5_0");
    damaged(mesh, "GPU1\tNV1", "GPU1\tNV0", "unknown link 'NV0'");
    damaged(pcie, "GPU0", "CPU0", ":2: 'X', expected a device");
}
END_TEST

START_TEST(damaged_xml)
{
    const char *mesh = "dgx1-v100.xml", *nvs = "h100-nvswitch.xml";
    damaged(mesh, "</system>", "", "no element found, inside of system");
    damaged(mesh, "</cpu>", "</cpx>", "mismatched tag, inside of cpu");
    damaged(mesh, "<system", "<topology", ":");
    damaged(mesh, "count=\"1\"", "count=\"one\"",
            ":6: count is 'one', expected a number");
    damaged(mesh, " count=\"1\"", "", ":6: <nvlink> has no count");
    damaged(mesh, "target=\"0000:07:00.0\"", "target=\"0000:77:00.0\"",
            ":6: nvlink to '0000:77:00.0', which is no GPU of this file");
    damaged(mesh, "count=\"1\"", "count=\"2\"", "the NVLinks to GPU 0000:06:00.0");
    damaged(nvs, "tclass=\"0x068000\"", "tclass=\"0x010802\"",
            ":11: unknown tclass '0x010802'");
    damaged(nvs, "speed=\"400000\"", "speed=\"fast\"", ":6: speed is 'fast'");
    damaged(nvs, " speed=\"400000\"", "", ":6: <net> has no speed");
    damaged(nvs,
            "class=\"0x030200\" vendor=\"0x10de\" device=\"0x2330\" "
            "subsystem_vendor=\"0x10de\" subsystem_device=\"0x16c1\" "
            "link_speed=\"32.0 GT/s PCIe\"",
            "link_speed=\"quick\"", "link_speed is 'quick'");
    damaged(nvs, "<system version=\"1\">",
            "<!DOCTYPE system [<!ENTITY a \"b\">]><system version=\"1\">",
            "an entity is declared");
}
END_TEST

/* Every prefix and many single wrong bytes: refused or read, one line, no crash. */
START_TEST(any_damage)
{
    static const char *const names[] = {"dgx1-v100.txt", "l40s-pcie.txt",
                                        "l40s-pcie.xml", "dgx1-v100.xml"};
    for (int k = 0; k < 4; k++) {
        char *text = text_of(names[k]);
        size_t n = strlen(text);
        bool xml = strstr(names[k], ".xml") != NULL;
        for (size_t cut = 0; cut < n; cut += 1 + n / 100) {
            struct pl_cluster c;
            int code = try_text(text, cut, &c);
            ck_assert_msg(code < 0 || (!xml && c.n_gpus >= 4), "%s cut at %zu",
                          names[k], cut);
            if (code)
                ck_assert(!strchr(pl_error_text(), '\n'));
            else
                pl_cluster_free(&c);
        }
        for (uint32_t i = 0; i < 150; i++) {
            struct pl_cluster c;
            size_t at = pl_rng_below(9, PL_RNG_TEST, (uint64_t)k, i, n);
            char old = text[at];
            text[at] =
                (char)(1 + pl_rng_below(9, PL_RNG_TEST, 10 + (uint64_t)k, i, 255));
            if (!try_text(text, n, &c)) pl_cluster_free(&c);
            text[at] = old;
        }
        free(text);
    }
}
END_TEST

START_TEST(other_refusals)
{
    struct pl_cluster c;
    REFUSED("/no/such/file", "cluster.topology=/no/such/file");
    ck_assert_int_eq(try_text("hello", 5, &c), PL_EINPUT);
    ck_assert_ptr_nonnull(strstr(pl_error_text(), "no GPU0 and no XML"));
    char *path = sample("dgx1-v100.txt"),
         *topology = pl_printf("cluster.topology=%s", path);
    REFUSED("8 GPUs, but cluster.levels has 4 at level 'gpu'", topology,
            "cluster.levels=node:2 gpu:4");
    REFUSED("no link for level 'node'", topology, "cluster.levels=node:2 gpu:8");
    REFUSED("NVLinks join pairs of GPUs", topology, "cluster.links=nvlink2");
    free(path);
    free(topology);
}
END_TEST

/* The door to expat by itself. */
START_TEST(xml)
{
    char *path = sample("l40s-pcie.xml");
    struct pl_xml *root;
    ck_assert_int_eq(pl_xml_read(path, &root), 0);
    ck_assert_str_eq(root->name, "system");
    ck_assert_int_eq(root->n, 2);
    ck_assert_int_eq(root->line, 1);
    ck_assert_int_eq(root->children[0]->line, 2);
    ck_assert_ptr_eq(root->children[1]->parent, root);
    ck_assert_str_eq(pl_xml_get(root->children[1], "numaid"), "1");
    ck_assert_ptr_null(pl_xml_get(root->children[1], "numa"));
    pl_xml_free(root);
    free(path);
    char deep[] = "/tmp/pipelag-xml-XXXXXX";
    int fd = mkstemp(deep);
    for (int i = 0; i < 70; i++) ck_assert_int_eq(write(fd, "<a>", 3), 3);
    close(fd);
    ck_assert_int_eq(pl_xml_read(deep, &root), PL_ECONFIG);
    ck_assert_ptr_nonnull(
        strstr(pl_error_text(), ":1:193: nested deeper than 64 levels"));
    unlink(deep);
}
END_TEST

static void fill(TCase *t)
{
    pl_cluster_register();
    tcase_add_test(t, nvswitch);
    tcase_add_test(t, cube_mesh);
    tcase_add_test(t, pcie_only);
    tcase_add_test(t, bridged_pairs);
    tcase_add_test(t, damaged_matrix);
    tcase_add_test(t, damaged_xml);
    tcase_add_test(t, any_damage);
    tcase_add_test(t, other_refusals);
    tcase_add_test(t, xml);
}

int main(void)
{
    return run_tests("cluster-import", fill);
}
