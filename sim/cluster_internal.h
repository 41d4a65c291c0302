/* Between the files sim/cluster*.c only. */
#ifndef PL_SIM_CLUSTER_INTERNAL_H
#define PL_SIM_CLUSTER_INTERNAL_H

#include "sim/cluster.h"

/* Ports of each level and numbers of all resources, from counts, links and fabric.
 * Errors: PL_ECONFIG when there are too many. */
int pl_cluster_number(struct pl_cluster *cluster);

/* The node in a file of nvidia-smi or NCCL becomes the innermost level of cluster:
 * GPUs, link, fabric; with levels of its own only when cluster has none yet. Errors:
 * PL_EINPUT, PL_ECONFIG naming file:line. */
int pl_cluster_import(const char *path, struct pl_cluster *cluster);
int pl_cluster_import_xml(const char *path, struct pl_cluster *cluster);
int pl_cluster_import_matrix(const char *path, char *text, struct pl_cluster *cluster);

/* A fabric of n GPUs without links. */
struct pl_fabric *pl_fabric_new(int n, int n_nics);
void pl_fabric_free(struct pl_fabric *fabric);
/* Each GPU gets the nearest NIC, of equally near ones the least used so far. near is
 * [n][n_nics]. */
void pl_fabric_assign_nics(struct pl_fabric *fabric, const enum pl_path *near);

/* What else a file says; 0: it does not. */
struct pl_imported {
    int sm;      /* compute capability times 10 */
    double pcie; /* line rate of a GPU's PCIe port, bytes/s */
    double nic;  /* line rate of the slowest NIC in use, bytes/s */
};
/* Put the fabric into cluster, which owns it from then on (not after an error). Finds
 * out from the counts whether NVLinks lead to a switch. Errors: PL_ECONFIG. */
int pl_fabric_install(struct pl_fabric *fabric, const struct pl_imported *facts,
                      const char *path, struct pl_cluster *cluster);

#endif
