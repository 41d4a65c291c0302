/* The kinds of links. Line rates are per direction: NVLink of one GPU (all its links
 * together), PCIe x16, one NIC. "Steps" are the hop times of NCCL's tuning model
 * (src/graph/tuning.cc, hwLat: NVLink .6/1.9/3.4, PCI 1.0/2.5/5.7, NET 2.7/4.0/14 us
 * for LL/LL128/Simple); the Simple hop is also the latency of one message. */
#include <stddef.h>
#include <string.h>

#include "sim/cluster.h"

/* clang-format off */
#define NVLINK_HOP {.6, 1.9, 3.4}
#define PCI_HOP {1.0, 2.5, 5.7}
#define NET_HOP {2.7, 4.0, 14}

const struct pl_link pl_links[] = {
    /* NVLink: lines x rate. Achieved: NCCL's search counts 20 GB/s of 25 on sm70, 12 of 14
     * on sm86, 20.6 of 25 on sm90, 40.1 of 50 on sm100 (src/graph/topo.h); A100 nodes reach
     * about 230 of 300. In-switch reduction (NVLS): 480 GB/s bus bandwidth on 8 H100, 830 on
     * 8 B200 (NCCL issues and release notes). */
    {"nvlink2", PL_LINK_NVLINK, 150e9, .80, NVLINK_HOP, 0, "V100: 6 x 25 GB/s"},
    {"nvlink3", PL_LINK_NVLINK, 300e9, .767, NVLINK_HOP, 0, "A100: 12 x 25 GB/s"},
    {"nvlink3-bridge", PL_LINK_NVLINK, 56.25e9, .853, NVLINK_HOP, 0,
     "A40, A6000, RTX 3090: 4 x 14 GB/s"},
    {"nvlink4", PL_LINK_NVLINK, 450e9, .824, NVLINK_HOP, 0, "H100: 18 x 25 GB/s"},
    {"nvlink4-nvls", PL_LINK_NVLINK, 450e9, .824, NVLINK_HOP, 480. / 450,
     "H100 behind NVSwitch, all-reduce in the switch"},
    {"nvlink5", PL_LINK_NVLINK, 900e9, .802, NVLINK_HOP, 0, "B200: 18 x 50 GB/s"},
    {"nvlink5-nvls", PL_LINK_NVLINK, 900e9, .802, NVLINK_HOP, 830. / 900,
     "B200 behind NVSwitch, all-reduce in the switch"},
    /* PCIe x16 after 128b/130b. NCCL counts 12 GB/s for gen 3 (.76), 24 for gen 4, 48 for
     * gen 5. Without P2P data go through host memory: H100 reaches 37 of 63 GB/s (.59). */
    {"pcie3", PL_LINK_PCIE, 15.75e9, .76, PCI_HOP, 0, "PCIe 3 x16, P2P"},
    {"pcie4", PL_LINK_PCIE, 31.5e9, .76, PCI_HOP, 0, "PCIe 4 x16, P2P"},
    {"pcie5", PL_LINK_PCIE, 63e9, .76, PCI_HOP, 0, "PCIe 5 x16, P2P"},
    {"pcie4-host", PL_LINK_PCIE, 31.5e9, .59, PCI_HOP, 0, "PCIe 4 x16, no P2P"},
    {"pcie5-host", PL_LINK_PCIE, 63e9, .59, PCI_HOP, 0, "PCIe 5 x16, no P2P"},
    /* Between CPU sockets NCCL counts 6 to 40 GB/s by CPU; 22 is its Sapphire Rapids. */
    {"socket", PL_LINK_PCIE, 22e9, 1, PCI_HOP, 0, "between two CPU sockets"},
    /* InfiniBand: NCCL counts 12 GB/s per 100 Gbit/s (.96); NDR measured 46-49 of 50 GB/s.
     * RoCE: no measurement at hand, the low end of NDR. */
    {"ib-edr", PL_LINK_NET, 12.5e9, .96, NET_HOP, 0, "InfiniBand EDR, 100 Gbit/s"},
    {"ib-hdr", PL_LINK_NET, 25e9, .96, NET_HOP, 0, "InfiniBand HDR, 200 Gbit/s"},
    {"ib-ndr", PL_LINK_NET, 50e9, .95, NET_HOP, 0, "InfiniBand NDR, 400 Gbit/s"},
    {"ib-xdr", PL_LINK_NET, 100e9, .96, NET_HOP, 0, "InfiniBand XDR, 800 Gbit/s"},
    {"roce-100", PL_LINK_NET, 12.5e9, .92, NET_HOP, 0, "RoCE, 100 Gbit/s"},
    {"roce-200", PL_LINK_NET, 25e9, .92, NET_HOP, 0, "RoCE, 200 Gbit/s"},
    {"roce-400", PL_LINK_NET, 50e9, .92, NET_HOP, 0, "RoCE, 400 Gbit/s"},
    {NULL, PL_LINK_NET, 0, 0, {0}, 0, NULL},
};
/* clang-format on */

const struct pl_link *pl_link_find(const char *name)
{
    for (const struct pl_link *link = pl_links; link->name; link++)
        if (!strcmp(link->name, name)) return link;
    return NULL;
}
