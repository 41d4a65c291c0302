/* Clusters: equal GPUs in levels, such as "rack:2 node:4 gpu:8" (outermost first), what
 * joins the members of each level, and what a message between two GPUs takes.
 *
 * Every level has members (racks; nodes of a rack; GPUs of a node) and every member has
 * ports to its level's network: a GPU one NVLink or PCIe port, a node its NICs, a rack
 * its uplinks. A port has one direction out and one in; each direction is a RESOURCE
 * with a capacity in bytes/s that all messages through it share. The networks behind
 * the ports are switches without limits of their own: an oversubscribed rack has fewer
 * ports.
 *
 * A message from GPU a to GPU b crosses the outermost level at which they differ and
 * takes there the port of a's member (out) and of b's (in); on the way up and down it
 * also takes the ports of the levels below, except that NVLink carries nothing to a
 * NIC. GPUs of one member share its ports in blocks (8 GPUs, 4 NICs: GPUs 0 and 1 use
 * NIC 0) or as an imported topology says.
 *
 * For a contention engine: pl_cluster_route() lists the resources of a message with
 * their capacities; messages in flight divide each capacity max-min fairly, and a
 * message alone gets the least of its capacities. Resource numbers are dense,
 * 0..n_resources-1.
 *
 * Bandwidths are bytes/s in one direction, times are ticks. Ownership: pl_cluster_read
 * fills, pl_cluster_free releases.
 */
#ifndef PL_SIM_CLUSTER_H
#define PL_SIM_CLUSTER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/config.h"
#include "base/units.h"

enum { PL_CLUSTER_LEVELS = 6, PL_CLUSTER_GPUS = 1 << 20, PL_ROUTE_USES = 16 };

enum pl_link_kind { PL_LINK_NVLINK, PL_LINK_PCIE, PL_LINK_NET };
enum pl_protocol {
    PL_PROTOCOL_LL,
    PL_PROTOCOL_LL128,
    PL_PROTOCOL_SIMPLE,
    PL_PROTOCOLS
};

/* One kind of link; the table is in cluster_links.c, with sources. */
struct pl_link {
    const char *name;
    enum pl_link_kind kind;
    double bandwidth;         /* line rate of one port */
    double achieved;          /* the part of it that a large transfer gets */
    double hop[PL_PROTOCOLS]; /* us of one step of a collective, by NCCL's protocol */
    double reduce;       /* bus bandwidth of an all-reduce inside the switch as a part
                            of the line rate; 0: the switch cannot */
    const char *meaning; /* one line */
};

extern const struct pl_link pl_links[];               /* ends with name == NULL */
const struct pl_link *pl_link_find(const char *name); /* NULL: unknown */

struct pl_gpu {
    char name[48];
    double bf16, tf32, fp32; /* dense peak, flop/s; V100: bf16 means fp16 */
    uint64_t memory;         /* bytes */
    double memory_bandwidth; /* bytes/s */
    int sms;                 /* multiprocessors, for whole waves of tiles; 0: unknown */
    double gemm_fraction;    /* of the peak that a large GEMM reaches */
    double memory_fraction;  /* of the bandwidth that a large copy reaches */
};

struct pl_level {
    char name[24];
    int count;           /* members in one member of the level above */
    int n_gpus;          /* GPUs of one member; 1 at the innermost level */
    int ports;           /* of one member */
    struct pl_link link; /* bandwidth and achieved already as configured */
    pl_tick latency;     /* of one small message, sender to receiver */
    int64_t first;       /* number of its first resource */
};

/* How two GPUs of a node reach each other without NVLink (nvidia-smi topo -m). */
enum pl_path {
    PL_PATH_SELF,
    PL_PATH_PIX,
    PL_PATH_PXB,
    PL_PATH_PHB,
    PL_PATH_NODE,
    PL_PATH_SYS
};

/* The inside of an imported node whose GPUs are not all equal. */
struct pl_fabric {
    int n; /* GPUs */
    int n_nics;
    bool direct;        /* NVLinks join pairs; false: a switch or no NVLink */
    int *nvlinks;       /* [n*n] NVLinks between two GPUs */
    enum pl_path *path; /* [n*n] */
    int *socket;        /* [n] */
    int *nic;           /* [n] the NIC that the GPU uses, -1: none */
    int n_sockets;
    double nvlink;          /* one NVLink, achieved bytes/s */
    double between_sockets; /* achieved bytes/s */
    pl_tick nvlink_latency;
    int64_t first_pair, first_socket; /* resources */
};

struct pl_cluster {
    char name[64];
    int n_levels, n_gpus;
    struct pl_level level[PL_CLUSTER_LEVELS]; /* outermost first */
    struct pl_gpu gpu;
    pl_tick launch;           /* host and kernel start of one collective */
    struct pl_fabric *fabric; /* NULL: nothing imported */
    int64_t n_resources;
};

/* The keys cluster.* of config, whose presets are resolved (pl_config_resolve). Errors:
 * PL_ECONFIG and PL_EINPUT naming file:line or key. */
int pl_cluster_read(const struct pl_config *config, struct pl_cluster *out);
void pl_cluster_free(struct pl_cluster *cluster);

/* Let cluster.preset be a topology: files *.xml and *.txt become cluster.topology. */
void pl_cluster_register(void);

/* "rack:2 node:4 gpu:8" into names, counts, n_gpus. Errors: PL_ECONFIG starting with
 * where. */
int pl_cluster_levels(const char *text, const char *where, struct pl_cluster *out);

struct pl_use {
    int64_t resource;
    double capacity; /* bytes/s, achieved */
};

struct pl_route {
    int level; /* outermost level that is crossed; -1: a is b */
    pl_tick latency;
    double bandwidth; /* of a message alone: the least capacity; INFINITY when a is b */
    int n;
    struct pl_use use[PL_ROUTE_USES];
};

/* Route from GPU a to GPU b; O(levels). a and b in 0..n_gpus-1 (assert). */
void pl_cluster_route(const struct pl_cluster *cluster, int a, int b,
                      struct pl_route *route);
/* latency + bytes / bandwidth of a message alone. Errors: PL_ECONFIG beyond 106 days.
 */
int pl_route_time(const struct pl_route *route, double bytes, pl_tick *time);

/* Port of level that GPU g uses, numbered over the whole cluster. */
int64_t pl_cluster_port(const struct pl_cluster *cluster, int level, int g);
/* GPUs that use the same port as GPU g, itself included. */
int pl_cluster_users(const struct pl_cluster *cluster, int level, int g);
/* Does traffic that crosses level `outer` pass the ports of level `inner` (inside it)?
 */
bool pl_cluster_carries(const struct pl_cluster *cluster, int inner, int outer);
static inline double pl_level_capacity(const struct pl_level *level)
{
    return level->link.bandwidth * level->link.achieved;
}

/* "node 3 nic 1 out" into buf, for messages; n >= 64. Returns buf. */
char *pl_cluster_resource_name(const struct pl_cluster *cluster, int64_t resource,
                               char *buf, int n);

#endif
