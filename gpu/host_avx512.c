/* host, its operations for x86-64-v4 (AVX-512); see host.h. */
#include "gpu/host.h"

#ifdef __x86_64__
#pragma GCC target("arch=x86-64-v4")
#pragma GCC target("prefer-vector-width=512")
#pragma GCC optimize("fp-contract=fast")
#define HOST(name) pl_avx512_##name
enum { LANES = 16, TILE_ROWS = 12 };
#include "gpu/host_pack.h"
#include "gpu/host_tile.h"
#include "gpu/host_gemm.h"
#include "gpu/host_math.h"
#include "gpu/host_layers.h"
#include "gpu/host_blocks.h"
#include "gpu/host_moe.h"
#include "gpu/host_vector.h"
#include "gpu/host_batch.h"
#include "gpu/host_attention.h"
#endif
