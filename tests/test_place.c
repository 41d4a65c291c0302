/* Ranks on GPUs: the groups of an axis, and stages that send together. */
#include "tests/runner.h"
#include "tests/cluster_case.h"

#include <string.h>

#include "base/mem.h"
#include "base/rng.h"
#include "sim/cluster_place.h"

static struct pl_place place(int tp, int cp, int ep, int dp, int pp, const char *order)
{
    struct pl_place p;
    int code = pl_place_init(tp, cp, ep, dp, pp, order, 0, &p);
    ck_assert_msg(code == 0, "%s", pl_error_text());
    return p;
}

static void check_group(const struct pl_place *p, enum pl_axis axis, int rank, int n,
                        const int *want)
{
    int *ranks = PL_NEW(p->n_ranks, int);
    struct pl_group g = pl_place_group(p, axis, rank, ranks);
    ck_assert_int_eq(g.size, n);
    for (int i = 0; i < n; i++)
        ck_assert_int_eq(g.ranks ? g.ranks[i] : g.first + i * g.stride, want[i]);
    free(ranks);
}
#define GROUP(axis, rank, n, ...) \
    check_group(&p, axis, rank, n, (const int[]){__VA_ARGS__})

/* 16 GPUs, TP 2, PP 4: the groups that Megatron-LM's initialize_model_parallel lists.
 */
START_TEST(megatron_order)
{
    struct pl_place p = place(2, 1, 1, 2, 4, "tp-cp-ep-dp-pp");
    GROUP(PL_AXIS_TP, 3, 2, 2, 3);
    GROUP(PL_AXIS_DP, 0, 2, 0, 2);
    GROUP(PL_AXIS_DP, 15, 2, 13, 15);
    GROUP(PL_AXIS_PP, 5, 4, 1, 5, 9, 13);
    ck_assert_int_eq(pl_place_rank(&p, 1, 0, 1, 3), 15);
    p = place(2, 1, 1, 2, 4, "tp-cp-ep-pp-dp");
    GROUP(PL_AXIS_PP, 1, 4, 1, 3, 5, 7);
    GROUP(PL_AXIS_DP, 1, 2, 1, 9);
    /* experts: TP 2, CP 2, DP 4, EP 4: 4 ranks a tensor slice apart share the experts
     */
    p = place(2, 2, 4, 4, 2, "tp-cp-ep-dp-pp");
    GROUP(PL_AXIS_EP, 9, 4, 9, 11, 13, 15);
    GROUP(PL_AXIS_EDP, 9, 2, 1, 9);
    GROUP(PL_AXIS_CP, 3, 2, 1, 3);
    GROUP(PL_AXIS_DP, 3, 4, 3, 7, 11, 15);
    GROUP(PL_AXIS_DP_CP, 1, 8, 1, 3, 5, 7, 9, 11, 13, 15);
    p = place(1, 2, 1, 2, 3, "tp-cp-ep-pp-dp"); /* no stride for DP x CP */
    GROUP(PL_AXIS_DP_CP, 2, 4, 2, 3, 8, 9);
    GROUP(PL_AXIS_EDP, 2, 4, 2, 3, 8, 9);
}
END_TEST

/* The groups of an axis divide the ranks; a rank is in its own group. */
START_TEST(groups_divide_the_ranks)
{
    static const char *const orders[] = {"tp-cp-ep-dp-pp", "tp-cp-ep-pp-dp",
                                         "pp-tp-cp-ep-dp", "dp-cp-ep-tp-pp"};
    for (uint32_t k = 0; k < 80; k++) {
        int size[5];
        for (uint32_t a = 0; a < 5; a++)
            size[a] = 1 + (int)pl_rng_below(3, PL_RNG_TEST, a, k, 4);
        if (k & 1) size[2] = size[1] * size[3];
        if (size[1] * size[3] % size[2]) size[2] = 1;
        struct pl_place p;
        int code = pl_place_init(size[0], size[1], size[2], size[3], size[4],
                                 orders[k / 2 % 4], 0, &p);
        if (code) { /* only for experts around a stage axis */
            ck_assert(k / 2 % 4 == 1 && size[2] > 1);
            continue;
        }
        for (int axis = 0; axis < PL_AXES; axis++) {
            int *seen = PL_NEW(p.n_ranks, int), *ranks = PL_NEW(p.n_ranks, int);
            for (int r = 0; r < p.n_ranks; r++) {
                struct pl_group g = pl_place_group(&p, (enum pl_axis)axis, r, ranks);
                bool own = false;
                for (int i = 0; i < g.size; i++) {
                    int other = g.ranks ? g.ranks[i] : g.first + i * g.stride;
                    ck_assert(other >= 0 && other < p.n_ranks);
                    own |= other == r;
                    seen[other]++;
                }
                ck_assert(own);
            }
            for (int r = 0; r < p.n_ranks; r++) ck_assert_int_eq(seen[r], p.size[axis]);
            free(seen);
            free(ranks);
        }
    }
}
END_TEST

/* TP 4, DP 2, PP 4 on nodes of 8 GPUs and 2 NICs: a stage is a node. */
START_TEST(stages_send_together)
{
    struct pl_cluster c =
        CLUSTER("cluster.levels=node:4 gpu:8", "cluster.links=ib-hdr nvlink3",
                "cluster.achieved=1 1", "cluster.ports=2 1");
    struct pl_place p = place(4, 1, 1, 2, 4, "tp-cp-ep-dp-pp");
    struct pl_route alone, together;
    ck_assert_int_eq(pl_place_route(&c, &p, 0, 1, &together), 0);
    pl_cluster_route(&c, 0, 8, &alone);
    ck_assert_double_eq(alone.bandwidth, 25e9);
    ck_assert_double_eq(together.bandwidth, 25e9 / 4); /* four GPUs a NIC */
    ck_assert_int_eq(together.n, alone.n);
    for (int i = 0; i < alone.n; i++) {
        ck_assert_int_eq(together.use[i].resource, alone.use[i].resource);
        ck_assert_double_eq(together.use[i].capacity, alone.use[i].capacity / 4);
    }
    /* stages inside a node have a port each */
    p = place(2, 1, 1, 2, 4, "tp-cp-ep-pp-dp");
    ck_assert_int_eq(pl_place_route(&c, &p, 0, 1, &together), 0);
    ck_assert_double_eq(together.bandwidth, 300e9);
    /* the slowest: replica 1 crosses nodes from stage 2 to 3, replica 0 does not */
    p = place(1, 1, 1, 2, 5, "tp-cp-ep-pp-dp");
    ck_assert_int_eq(pl_place_route(&c, &p, 2, 3, &together), 0);
    ck_assert_double_eq(together.bandwidth, 25e9);
    ck_assert_int_eq(pl_place_route(&c, &p, 1, 2, &together), 0);
    ck_assert_double_eq(together.bandwidth, 300e9);
    p = place(8, 1, 1, 5, 1, "tp-cp-ep-dp-pp");
    ck_assert_int_eq(pl_place_route(&c, &p, 0, 0, &together), PL_ECONFIG);
    pl_cluster_free(&c);
}
END_TEST

START_TEST(bad_places)
{
    static const struct {
        int size[5], gpus;
        const char *order, *message;
    } bad[] = {
        {{0, 1, 1, 1, 1}, 0, "tp-cp-ep-dp-pp", "tp is 0"},
        {{8, 1, 1, 2, 4},
         32,
         "tp-cp-ep-dp-pp",
         "are 64 ranks, the cluster has 32 GPUs"},
        {{100000, 100000, 1, 100000, 1}, 0, "tp-cp-ep-dp-pp", "the cluster has"},
        {{1, 2, 3, 4, 1}, 0, "tp-cp-ep-dp-pp", "EP 3 does not divide CP x DP = 8"},
        {{1, 1, 1, 1, 1}, 0, "tp-cp-ep-dp", "expected tp, cp, ep, dp and pp"},
        {{1, 1, 1, 1, 1}, 0, "tp-cp-ep-dp-dp", "has dp twice"},
        {{1, 1, 1, 1, 1}, 0, "tp-cp-ep-dp-qq", "unknown axis 'qq'"},
        {{1, 2, 4, 2, 2}, 0, "tp-cp-ep-pp-dp", "expected pp first or last"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        const int *s = bad[i].size;
        struct pl_place p;
        ck_assert_int_eq(
            pl_place_init(s[0], s[1], s[2], s[3], s[4], bad[i].order, bad[i].gpus, &p),
            PL_ECONFIG);
        ck_assert_msg(strstr(pl_error_text(), bad[i].message) != NULL, "%s",
                      pl_error_text());
    }
}
END_TEST

static void fill(TCase *t)
{
    tcase_add_test(t, megatron_order);
    tcase_add_test(t, groups_divide_the_ranks);
    tcase_add_test(t, stages_send_together);
    tcase_add_test(t, bad_places);
}

int main(void)
{
    return run_tests("place", fill);
}
