/* Encodings: Intel SDM volume 2. All are VEX.128.0F38.W0 with three bytes of prefix. */
#include "tests/amx_trap.h"
#include "gpu/host_bf16_tiles.h"

#include <signal.h>
#include <stdint.h>
#include <string.h>
#include <ucontext.h>

static volatile sig_atomic_t products;

long amx_trap_products(void)
{
    return products;
}

#if defined __x86_64__ && defined __linux__
struct operand {
    uintptr_t at, stride; /* memory: base + displacement, and the scaled index */
    int length;           /* of ModRM, SIB and displacement */
};

static uintptr_t reg(const greg_t *r, int n)
{
    static const int order[16] = {REG_RAX, REG_RCX, REG_RDX, REG_RBX, REG_RSP, REG_RBP,
                                  REG_RSI, REG_RDI, REG_R8,  REG_R9,  REG_R10, REG_R11,
                                  REG_R12, REG_R13, REG_R14, REG_R15};
    return (uintptr_t)r[order[n]];
}

static uintptr_t displacement(const uint8_t *p, int bytes)
{
    int32_t d = 0;
    if (bytes == 1) return (uintptr_t)(int8_t)*p;
    if (bytes == 4) memcpy(&d, p, 4);
    return (uintptr_t)d;
}

/* p: at ModRM with mod < 3; high: bits 8 of base and index. */
static struct operand decode(const greg_t *r, const uint8_t *p, int base_high,
                             int index_high)
{
    int mod = *p >> 6, base = *p & 7, size = mod == 1 ? 1 : mod == 2 ? 4 : 0;
    struct operand x = {.length = 1};
    bool sib = base == 4;
    if (sib) {
        int index = (p[1] >> 3 & 7) + index_high;
        base = p[1] & 7;
        x.length = 2;
        if (index != 4) x.stride = reg(r, index) << (p[1] >> 6);
    }
    bool no_base = mod == 0 && base == 5;
    if (no_base) size = 4;
    x.at = displacement(p + x.length, size);
    x.length += size;
    if (!no_base)
        x.at += reg(r, base + base_high);
    else if (!sib)
        x.at += (uintptr_t)(p + x.length); /* of the next instruction */
    return x;
}

/* False: none of ours. *length: of the instruction. */
static bool perform(const greg_t *r, const uint8_t *p, int *length)
{
    enum { NONE, P66, PF3, PF2 };
    if (p[0] != 0xc4 || (p[1] & 0x1f) != 2 || p[2] & 0x84) return false;
    int prefix = p[2] & 3, other = ~(p[2] >> 3) & 15, code = p[3], modrm = p[4];
    int tile = modrm >> 3 & 7;
    struct operand x = {.length = 1};
    if (modrm >> 6 != 3) x = decode(r, p + 4, p[1] & 0x20 ? 0 : 8, p[1] & 0x40 ? 0 : 8);
    *length = 4 + x.length;
    if (code == 0x49 && prefix == NONE && modrm == 0xc0)
        pl_tiles_release();
    else if (code == 0x49 && prefix == NONE && modrm >> 6 != 3)
        pl_tiles_configure((const struct pl_tile_config *)x.at);
    else if (code == 0x49 && prefix == PF2 && modrm >> 6 == 3)
        pl_tile_zero(tile);
    else if (code == 0x4b && prefix == PF2)
        pl_tile_load(tile, (const void *)x.at, x.stride);
    else if (code == 0x4b && prefix == PF3)
        pl_tile_store(tile, (void *)x.at, x.stride);
    else if (code == 0x5c && prefix == PF3 && modrm >> 6 == 3) {
        pl_tile_mul(tile, modrm & 7, other);
        products = products + 1;
    } else
        return false;
    return true;
}

static void on_sigill(int number, siginfo_t *info, void *context)
{
    greg_t *r = ((ucontext_t *)context)->uc_mcontext.gregs;
    int length;
    (void)info;
    if (perform(r, (const uint8_t *)r[REG_RIP], &length))
        r[REG_RIP] += length;
    else
        signal(number, SIG_DFL); /* and again */
}

bool amx_trap_install(void)
{
    struct sigaction action = {.sa_sigaction = on_sigill, .sa_flags = SA_SIGINFO};
    return sigaction(SIGILL, &action, NULL) == 0;
}
#else
bool amx_trap_install(void)
{
    return false;
}
#endif
