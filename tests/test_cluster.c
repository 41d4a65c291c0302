/* Levels and routes: what a message shares with others, by hand and as properties of
 * random clusters. */
#include "tests/runner.h"
#include "tests/cluster_case.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/builtin.h"
#include "base/mem.h"
#include "base/rng.h"

START_TEST(level_texts)
{
    struct pl_cluster c = {0};
    ck_assert_int_eq(pl_cluster_levels("rack:2 node:4 gpu:8", "x", &c), 0);
    ck_assert_int_eq(c.n_levels, 3);
    ck_assert_int_eq(c.n_gpus, 64);
    ck_assert_str_eq(c.level[0].name, "rack");
    ck_assert_int_eq(c.level[0].n_gpus, 32);
    ck_assert_int_eq(c.level[1].n_gpus, 8);
    ck_assert_int_eq(c.level[2].n_gpus, 1);
    static const char *const bad[][2] = {
        {"", "no levels"},
        {"gpu", "'gpu' is not a level"},
        {"gpu:", "is not a level"},
        {":8", "is not a level"},
        {"gpu:8x", "is not a level"},
        {"gpu:-1", "is not a level"},
        {"gpu:0", "out of range"},
        {"gpu:99999999999999999999", "out of range"},
        {"node:2 gpu:2 node:2", "level 'node' is there twice"},
        {"a:1024 b:1024 c:2", "more than 1048576 GPUs"},
        {"a:1 b:1 c:1 d:1 e:1 f:1 g:1", "more than 6 levels"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        ck_assert_int_eq(pl_cluster_levels(bad[i][0], "here", &c), PL_ECONFIG);
        ck_assert_msg(!strncmp(pl_error_text(), "here: ", 6) &&
                          strstr(pl_error_text(), bad[i][1]),
                      "%s", pl_error_text());
    }
}
END_TEST

START_TEST(settings)
{
    struct pl_cluster c =
        CLUSTER("cluster.levels=rack:2 node:2 gpu:4", "cluster.links=ib-ndr nvlink3",
                "cluster.bandwidth=-, 200 GB/s", "cluster.achieved=1 .5",
                "cluster.latency=5us,1us", "cluster.ports=2 -", "cluster.gpu.bf16=100",
                "cluster.gpu.memory=80 GiB");
    ck_assert_str_eq(c.level[0].link.name, "ib-ndr"); /* repeats outwards */
    ck_assert_double_eq(c.level[1].link.bandwidth, 50e9);
    ck_assert_double_eq(c.level[2].link.bandwidth, 200e9);
    ck_assert_double_eq(pl_level_capacity(&c.level[2]), 100e9);
    ck_assert_double_eq(pl_level_capacity(&c.level[0]), 50e9);
    ck_assert_int_eq(c.level[0].latency, 5000000);
    ck_assert_int_eq(c.level[0].ports, 8); /* ports do not repeat */
    ck_assert_int_eq(c.level[1].ports, 2);
    ck_assert_double_eq(c.gpu.bf16, 100e12);
    ck_assert_uint_eq(c.gpu.memory, UINT64_C(80) << 30);
    pl_cluster_free(&c);
    REFUSED("cluster.links has no link for level 'node'", "cluster.levels=node:2 gpu:8",
            "cluster.links=nvlink3");
    REFUSED("unknown link 'nvlnk3', did you mean 'nvlink3'?", "cluster.levels=gpu:8",
            "cluster.links=nvlnk3");
    REFUSED("more than 1 entries", "cluster.levels=gpu:8",
            "cluster.links=ib-ndr nvlink3");
    REFUSED("cluster.bandwidth: '50' has no unit", "cluster.levels=gpu:8",
            "cluster.links=nvlink3", "cluster.bandwidth=50");
    REFUSED("cluster.bandwidth: '0 GB/s', expected more than 0", "cluster.levels=gpu:8",
            "cluster.links=nvlink3", "cluster.bandwidth=0 GB/s");
    REFUSED("cluster.achieved: '1.5' is not a part", "cluster.levels=gpu:8",
            "cluster.links=nvlink3", "cluster.achieved=1.5");
    REFUSED("cluster.latency", "cluster.levels=gpu:8", "cluster.links=nvlink3",
            "cluster.latency=4");
    REFUSED("'9' ports of a node, expected 0 (one for each GPU) to 8",
            "cluster.levels=node:2 gpu:8", "cluster.links=ib-hdr nvlink3",
            "cluster.ports=9 1");
    REFUSED("cluster.gpu.memory", "cluster.levels=gpu:8", "cluster.links=nvlink3",
            "cluster.gpu.memory=80");
    REFUSED("no cluster: give cluster.preset", "cluster.name=x");
}
END_TEST

/* Does the route take exactly these resources, by name? */
static bool takes(const struct pl_cluster *c, int a, int b, const char *const *names)
{
    struct pl_route route;
    int n = 0;
    pl_cluster_route(c, a, b, &route);
    for (; names[n]; n++) {
        bool found = false;
        for (int i = 0; i < route.n; i++) {
            char name[64];
            pl_cluster_resource_name(c, route.use[i].resource, name, sizeof name);
            found |= !strcmp(name, names[n]);
        }
        if (!found) return false;
    }
    return n == route.n;
}
#define TAKES(a, b, ...) \
    ck_assert(takes(&c, a, b, (const char *const[]){__VA_ARGS__, NULL}))

START_TEST(routes_by_hand)
{
    struct pl_cluster c = CLUSTER(
        "cluster.levels=rack:2 node:4 gpu:8", "cluster.links=ib-ndr nvlink4",
        "cluster.ports=16 4 1", "cluster.achieved=1 1", "cluster.latency=9us,1us");
    struct pl_route route;
    TAKES(0, 1, "gpu 0 port 0 out", "gpu 1 port 0 in");
    TAKES(0, 8, "node 0 port 0 out", "node 1 port 0 in");
    TAKES(1, 15, "node 0 port 0 out", "node 1 port 3 in"); /* GPUs 0, 1 share a NIC */
    TAKES(2, 32, "rack 0 port 1 out", "rack 1 port 0 in", "node 0 port 1 out",
          "node 4 port 0 in");
    ck_assert(
        !takes(&c, 2, 8,
               (const char *const[]){"node 0 port 0 out", "node 1 port 0 in", NULL}));
    pl_cluster_route(&c, 3, 4, &route);
    ck_assert_int_eq(route.level, 2);
    ck_assert_int_eq(route.latency, 1000000);
    ck_assert_double_eq(route.bandwidth, 450e9);
    pl_cluster_route(&c, 3, 9, &route);
    ck_assert_double_eq(route.bandwidth, 50e9);
    pl_tick time;
    ck_assert_int_eq(pl_route_time(&route, 50e6, &time), 0);
    ck_assert_int_eq(time, 9000000 + 1000000000); /* 9 us + 1 ms */
    ck_assert_int_eq(pl_route_time(&route, 1e30, &time), PL_ECONFIG);
    pl_cluster_route(&c, 5, 5, &route);
    ck_assert_int_eq(route.n, 0);
    ck_assert_int_eq(pl_route_time(&route, 50e6, &time), 0);
    ck_assert_int_eq(time, 0);
    pl_cluster_free(&c);

    c = CLUSTER("cluster.levels=node:2 socket:2 gpu:4",
                "cluster.links=roce-200 socket pcie4", "cluster.ports=2 1 1");
    TAKES(0, 3, "gpu 0 port 0 out", "gpu 3 port 0 in");
    TAKES(0, 4, "gpu 0 port 0 out", "gpu 4 port 0 in", "socket 0 port 0 out",
          "socket 1 port 0 in");
    TAKES(4, 8, "gpu 4 port 0 out", "gpu 8 port 0 in", "node 0 port 1 out",
          "node 1 port 0 in"); /* the NIC hangs on the GPU's own socket */
    pl_cluster_free(&c);
}
END_TEST

static struct pl_cluster random_cluster(uint64_t seed)
{
    static const char *const outer[] = {"ib-ndr", "ib-hdr", "roce-100"};
    static const char *const inner[] = {"nvlink4-nvls", "pcie4", "nvlink2"};
    uint64_t r[6];
    for (int i = 0; i < 6; i++)
        r[i] = pl_rng_below(seed, PL_RNG_TEST, (uint64_t)i, 0, 1000000);
    int gpus = 1 << r[0] % 4, nodes = 1 + (int)(r[1] % 5), racks = 1 + (int)(r[2] % 3);
    char *levels =
        pl_printf("cluster.levels=rack:%d node:%d gpu:%d", racks, nodes, gpus);
    char *links = pl_printf("cluster.links=%s %s", outer[r[3] % 3], inner[r[4] % 3]);
    char *ports =
        pl_printf("cluster.ports=%d %d 1", (int)(r[5] % (unsigned)(nodes * gpus + 1)),
                  (int)(r[5] / 7 % (unsigned)(gpus + 1)));
    struct pl_cluster c = CLUSTER(levels, links, ports);
    free(levels);
    free(links);
    free(ports);
    return c;
}

START_TEST(routes_of_random_clusters)
{
    for (uint64_t seed = 1; seed <= 60; seed++) {
        struct pl_cluster c = random_cluster(seed);
        double *capacity = PL_NEW(c.n_resources, double);
        for (int k = 0; k < 200; k++) {
            int a = (int)pl_rng_below(seed, PL_RNG_TEST, 7, (uint32_t)k,
                                      (uint64_t)c.n_gpus);
            int b = (int)pl_rng_below(seed, PL_RNG_TEST, 8, (uint32_t)k,
                                      (uint64_t)c.n_gpus);
            struct pl_route there, back;
            double least = INFINITY;
            pl_cluster_route(&c, a, b, &there);
            pl_cluster_route(&c, b, a, &back);
            ck_assert_int_eq(there.n, back.n);
            ck_assert_int_eq(there.n == 0, a == b);
            ck_assert(there.bandwidth == back.bandwidth);
            ck_assert_int_eq(there.latency, back.latency);
            for (int i = 0; i < there.n; i++) {
                int64_t r = there.use[i].resource;
                char name[64];
                ck_assert(r >= 0 && r < c.n_resources);
                /* a direction of a port: the way back takes the other one */
                ck_assert_int_eq(back.use[i ^ 1].resource, r ^ 1);
                ck_assert(capacity[r] == 0 || capacity[r] == there.use[i].capacity);
                capacity[r] = there.use[i].capacity;
                least = fmin(least, capacity[r]);
                for (int j = 0; j < i; j++) ck_assert(there.use[j].resource != r);
                pl_cluster_resource_name(&c, r, name, sizeof name);
                ck_assert_int_eq(strcmp(name + strlen(name) - 3, "out") != 0, r & 1);
            }
            ck_assert(there.bandwidth == least);
        }
        free(capacity);
        pl_cluster_free(&c);
    }
}
END_TEST

/* Every port of a member serves GPUs, as evenly as can be, and all resources are named
 * differently. */
START_TEST(ports_are_blocks)
{
    struct pl_cluster c = CLUSTER("cluster.levels=node:3 gpu:8",
                                  "cluster.links=ib-hdr nvlink3", "cluster.ports=3 1");
    int users[9] = {0};
    for (int g = 0; g < c.n_gpus; g++) users[pl_cluster_port(&c, 0, g)]++;
    for (int p = 0; p < 9; p++) ck_assert(users[p] == 2 || users[p] == 3);
    for (int g = 0; g < c.n_gpus; g++)
        ck_assert_int_eq(pl_cluster_users(&c, 0, g), users[pl_cluster_port(&c, 0, g)]);
    ck_assert_int_eq(c.n_resources, 2 * (9 + 24));
    for (int64_t r = 0; r < c.n_resources; r++)
        for (int64_t s = 0; s < r; s++) {
            char a[64], b[64];
            ck_assert_str_ne(pl_cluster_resource_name(&c, r, a, sizeof a),
                             pl_cluster_resource_name(&c, s, b, sizeof b));
        }
    pl_cluster_free(&c);
}
END_TEST

START_TEST(presets)
{
    const char *const *names = pl_builtin_names("clusters");
    int n = 0;
    for (; names[n]; n++) {
        char *preset = pl_printf("cluster.preset=%s", names[n]);
        struct pl_cluster c = CLUSTER(preset);
        ck_assert(c.gpu.bf16 > 1e14 && c.gpu.bf16 < 1e16 && *c.gpu.name && *c.name);
        ck_assert(c.gpu.memory >= UINT64_C(24) << 30 && c.gpu.memory_bandwidth > 5e11);
        ck_assert(c.gpu.fp32 < c.gpu.bf16 && c.gpu.gemm_fraction > .5);
        /* grows outwards by its first link */
        struct pl_cluster two = CLUSTER(preset, "cluster.name=x");
        ck_assert_int_eq(two.n_gpus, c.n_gpus);
        ck_assert_str_eq(two.name, "x");
        pl_cluster_free(&c);
        pl_cluster_free(&two);
        free(preset);
    }
    ck_assert_int_ge(n, 12);
    struct pl_cluster c =
        CLUSTER("cluster.preset=dgx-h100", "cluster.levels=pod:2 node:4 gpu:8");
    ck_assert_int_eq(c.n_gpus, 64);
    ck_assert_str_eq(c.level[0].link.name, "ib-ndr");
    pl_cluster_free(&c);
    REFUSED("unknown cluster preset 'dgx-h10'", "cluster.preset=dgx-h10");
}
END_TEST

static void fill(TCase *t)
{
    tcase_add_test(t, level_texts);
    tcase_add_test(t, settings);
    tcase_add_test(t, routes_by_hand);
    tcase_add_test(t, routes_of_random_clusters);
    tcase_add_test(t, ports_are_blocks);
    tcase_add_test(t, presets);
}

int main(void)
{
    return run_tests("cluster", fill);
}
