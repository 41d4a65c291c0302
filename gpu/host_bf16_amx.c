/* host in bf16 on AMX; see host.h. The tile intrinsics of GCC 12 do not say that they
 * read memory (nor _tile_loadconfig more than 8 bytes of it): MEMORY on both sides
 * keeps stores where they are. */
#include "gpu/host_bf16.h"
#include "gpu/host_bf16_tiles.h"

#ifdef __x86_64__
#pragma GCC target("arch=x86-64-v4,avx512bf16,amx-tile,amx-bf16")
#pragma GCC target("prefer-vector-width=512")
#pragma GCC optimize("fp-contract=fast")
#define HOST(name) pl_bf16_amx_##name
enum { LANES = 16 };

#include "gpu/host_bf16_pairs.h"

#define MEMORY() __asm__ volatile("" ::: "memory")
#define FENCED(call) \
    do {             \
        MEMORY();    \
        call;        \
        MEMORY();    \
    } while (0)
#define TILES_ON() FENCED(_tile_loadconfig(&pl_tile_config_full))
#define TILES_OFF() _tile_release()
#define TILE_ZERO(t) _tile_zero(t)
#define TILE_LOAD(t, p, stride) FENCED(_tile_loadd(t, p, stride))
#define TILE_STORE(t, p, stride) FENCED(_tile_stored(t, p, stride))
#define TILE_MUL(c, a, b) _tile_dpbf16ps(c, a, b)

#include "gpu/host_bf16_gemm.h"
#include "gpu/host_math.h"
#include "gpu/host_bf16_attention.h"
#endif
