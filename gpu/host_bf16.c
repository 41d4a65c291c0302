/* host in bf16: which tiles there are. AMX needs the CPU's bits and the tile state
 * enabled in XCR0 (__builtin_cpu_supports looks at both), and the kernel's permission
 * for this process, which threads and children inherit (Linux,
 * Documentation/arch/x86/xstate.rst). */
#include "gpu/host_bf16.h"
#include "base/err.h"

#include <stdio.h>
#include <string.h>
#include <threads.h>
#ifdef __x86_64__
#include <sys/syscall.h>
#include <unistd.h>
#endif

enum { AMX, AVX512, PLAIN, KINDS };

static once_flag once = ONCE_FLAG_INIT;
static const char *why_no_amx;
static struct pl_device set[KINDS];
static const struct pl_device *sets[KINDS + 1];

#ifdef __x86_64__
static bool vectors_usable(void)
{
    return __builtin_cpu_supports("x86-64-v4") && __builtin_cpu_supports("avx512bf16");
}

static const char *ask_for_amx(void)
{
    enum { REQUEST_PERMISSION = 0x1023, TILE_DATA = 18 }; /* ARCH_REQ_XCOMP_PERM */
    if (!__builtin_cpu_supports("amx-tile") || !__builtin_cpu_supports("amx-bf16") ||
        !vectors_usable())
        return "this CPU has no AMX";
    if (syscall(SYS_arch_prctl, REQUEST_PERMISSION, TILE_DATA))
        return "the kernel does not let this process use AMX";
    return NULL;
}
#else
static const char *ask_for_amx(void)
{
    return "this CPU has no AMX";
}
#endif

#define DESCRIBE(kind, text_of_kind)                                 \
    static void describe_##kind(char *text, size_t n)                \
    {                                                                \
        snprintf(text, n, "host: bf16 products %s, ", text_of_kind); \
        size_t used = strlen(text);                                  \
        pl_device_host.describe(text + used, n - used);              \
    }
DESCRIBE(amx, "on AMX tiles")
DESCRIBE(avx512, "emulated by AVX-512")
DESCRIBE(plain, "emulated in plain C")

#define FILL(at, kind, title)                                     \
    do {                                                          \
        set[at] = pl_device_host;                                 \
        set[at].summary = title;                                  \
        set[at].precision = "bf16";                               \
        set[at].describe = describe_##kind;                       \
        set[at].gemm = pl_bf16_##kind##_gemm;                     \
        set[at].product = pl_bf16_##kind##_product;               \
        set[at].product_groups = pl_bf16_##kind##_product_groups; \
        set[at].attention = pl_bf16_##kind##_attention;           \
        set[at].attention_back = pl_bf16_##kind##_attention_back; \
    } while (0)

static void find_sets(void)
{
    int n = 0;
    why_no_amx = ask_for_amx();
#ifdef __x86_64__
    FILL(AMX, amx, "bf16 on AMX tiles");
    FILL(AVX512, avx512, "bf16 emulated by AVX-512");
    if (!why_no_amx) sets[n++] = &set[AMX];
    if (vectors_usable()) sets[n++] = &set[AVX512];
#endif
    FILL(PLAIN, plain, "bf16 emulated in plain C");
    sets[n] = &set[PLAIN];
}

const struct pl_device *const *pl_host_bf16_sets(void)
{
    call_once(&once, find_sets);
    return sets;
}

bool pl_host_amx(const char **reason)
{
    call_once(&once, find_sets);
    *reason = why_no_amx;
    return !why_no_amx;
}

int pl_host_precision(const char *precision, const struct pl_device **out)
{
    const char *reason;
    bool amx = pl_host_amx(&reason);
    if (strcmp(precision, "bf16")) {
        *out = sets[amx ? 1 : 0];
        return 0;
    }
    if (!amx) return pl_fail(PL_ENODEV, "%s", reason);
    *out = sets[0];
    return 0;
}
