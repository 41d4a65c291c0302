/* Compiles gpu/cuda*.cu with g++ and runs the kernels on the CPU, for tests only:
 * g++ -std=c++17 -DCUDA_SHIM -include tests/cuda_shim.h -x c++ gpu/cuda.cu ...
 * Blocks run one after another; a block's threads are fibers that run until they end or
 * wait at a barrier or in a warp's exchange. SHIM_ORDER in the environment: `forward`
 * (the default), `reverse`, or a number that seeds the order of the fibers, drawn anew
 * for every block. Finds wrong mathematics and indices (with -fsanitize=address also
 * outside of arrays), missing barriers (shared memory is poisoned before each block,
 * and the order matters), barriers that not all threads reach, asynchronous copies that
 * nobody waited for; and what cuda_shim_stream.h says of streams, graphs and memory.
 * Blind to speed, to races inside a warp and to what real cuBLAS does. */
#ifndef TESTS_CUDA_SHIM_H
#define TESTS_CUDA_SHIM_H

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <algorithm>
#include <functional>
#include <map>
#include <tuple>
#include <type_traits>
#include <vector>
#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#define SHIM_ASAN 1
#endif

#define __global__
#define __device__
#define __host__
/* static: blocks run one after another. The section lets a launch poison all of it. */
#define __shared__ __attribute__((section("shim_shared"))) static
struct uint3 {
    unsigned x, y, z;
};
struct dim3 {
    unsigned x, y, z;
    dim3(unsigned a = 1, unsigned b = 1, unsigned c = 1) : x(a), y(b), z(c)
    {
    }
};

/* Hidden: the symbols at the ends of this shared object's own section, if it has one.
 */
extern "C" char __start_shim_shared[] __attribute__((weak, visibility("hidden")));
extern "C" char __stop_shim_shared[] __attribute__((weak, visibility("hidden")));

namespace shim
{
#ifdef SHIM_ASAN
enum { STACK = 256 << 10 }; /* an ASan report is written on the fiber's stack */
#else
enum { STACK = 64 << 10 };
#endif
enum { WARP = 32, POISON = 0xA5, FORWARD = 0, REVERSE = -1, UNSET = -2 };

struct copy {
    void *to;
    const void *from; /* null: zeros */
    size_t bytes;
};

struct fiber {
    void *sp = nullptr, *stack = nullptr, *fake = nullptr;
    size_t size = STACK;
    uint3 tid = {};
    unsigned lane = 0, warp = 0;
    bool done = false;
    const char *wait = "";    /* what it waits for, for the deadlock report */
    std::vector<copy> copies; /* begun and not waited for */
};

/* One exchange at a time in each warp; generation counts completed ones. */
struct warp {
    unsigned arrived = 0, unread = 0, members = 0, generation = 0;
    uint64_t slot[WARP];
    void *item[WARP];
};

inline std::vector<fiber> &fibers =
    *new std::vector<fiber>; /* stacks are never freed */
inline std::vector<warp> warps;
inline char *dynamic; /* ends at a page that may not be touched */
inline std::function<void()> body;
inline fiber *current, root;
inline uint3 block_index;
inline dim3 block_dim, grid_dim;
inline unsigned alive, at_barrier, barrier_generation, progress, barrier_any, last_any;
inline unsigned random_state;
inline int order = UNSET;

extern "C" void shim_switch(void **save, void *load);
#if defined(__x86_64__)
asm(R"(.text
.weak shim_switch
.hidden shim_switch
.type shim_switch,@function
shim_switch:
  push %rbp; push %rbx; push %r12; push %r13; push %r14; push %r15
  mov %rsp,(%rdi); mov %rsi,%rsp
  pop %r15; pop %r14; pop %r13; pop %r12; pop %rbx; pop %rbp
  ret
.size shim_switch,.-shim_switch
)");
#else
#error "cuda_shim.h: the switch between fibers is written for x86-64 only"
#endif

inline void go(fiber *from, fiber *to, bool last = false)
{
    (void)last;
#ifdef SHIM_ASAN
    __sanitizer_start_switch_fiber(last ? nullptr : &from->fake, to->stack, to->size);
#endif
    current = to;
    shim_switch(&from->sp, to->sp);
#ifdef SHIM_ASAN
    __sanitizer_finish_switch_fiber(from->fake, nullptr, nullptr);
#endif
}

inline void yield()
{
    go(current, &root);
}

inline void entry()
{
#ifdef SHIM_ASAN
    const void *bottom;
    __sanitizer_finish_switch_fiber(nullptr, &bottom, &root.size);
    root.stack = const_cast<void *>(bottom);
#endif
    body();
    current->done = true;
    alive--;
    progress++;
    warps[current->warp].members--;
    go(current, &root, true);
    abort();
}

inline void start_fiber(fiber &f, unsigned t)
{
    if (!f.stack) f.stack = aligned_alloc(64, STACK);
#ifdef SHIM_ASAN
    __asan_unpoison_memory_region(f.stack, STACK); /* frames of its last user */
#endif
    f.tid = {t % block_dim.x, t / block_dim.x % block_dim.y,
             t / (block_dim.x * block_dim.y)};
    f.lane = t % WARP;
    f.warp = t / WARP;
    f.done = false;
    f.fake = nullptr;
    f.copies.clear();
    warps[f.warp].members++;
    void **top = (void **)((char *)f.stack + STACK) - 3;
    top[0] = top[1] = nullptr; /* where a walk of the stack ends */
    *--top = (void *)entry;    /* as after a call: rsp is 16 n + 8 */
    for (int i = 0; i < 6; i++) *--top = nullptr;
    f.sp = top;
}

inline void read_order()
{
    const char *text = getenv("SHIM_ORDER");
    order = !text || !strcmp(text, "forward") ? (int)FORWARD
            : !strcmp(text, "reverse")        ? (int)REVERSE
                                              : atoi(text);
    random_state = (unsigned)order;
}

inline std::vector<unsigned> fiber_order(unsigned threads)
{
    std::vector<unsigned> turn(threads);
    for (unsigned t = 0; t < threads; t++)
        turn[t] = order == REVERSE ? threads - 1 - t : t;
    for (unsigned i = threads; order > 0 && i > 1; i--) {
        random_state = random_state * 1664525u + 1013904223u;
        std::swap(turn[i - 1], turn[(random_state >> 8) % i]);
    }
    return turn;
}

inline void deadlock()
{
    const char *wait = "?";
    for (const fiber &f : fibers)
        if (!f.done) {
            wait = f.wait;
            break;
        }
    fprintf(stderr,
            "shim: deadlock in block (%u,%u,%u): %u threads wait, first in %s\n",
            block_index.x, block_index.y, block_index.z, alive, wait);
    abort();
}

inline void run_block(unsigned threads)
{
    warps.assign((threads + WARP - 1) / WARP, warp());
    alive = threads;
    at_barrier = barrier_any = 0;
    for (unsigned t = 0; t < threads; t++) start_fiber(fibers[t], t);
    std::vector<unsigned> turn = fiber_order(threads);
    while (alive) {
        unsigned before = progress;
        for (unsigned t : turn)
            if (!fibers[t].done) go(&root, &fibers[t]);
        if (progress == before && alive) deadlock();
    }
}

/* Dynamic shared memory up to the end of a page, the next page closed. */
struct guarded {
    size_t page = 4096, room;
    char *base;
    explicit guarded(size_t bytes) : room((bytes + page - 1) / page * page)
    {
        base = (char *)mmap(nullptr, room + page, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (base == MAP_FAILED || mprotect(base + room, page, PROT_NONE)) abort();
    }
    ~guarded()
    {
        munmap(base, room + page);
    }
};

inline void run_grid(dim3 grid, dim3 block, size_t shared_bytes,
                     std::function<void()> f)
{
    unsigned threads = block.x * block.y * block.z;
    if (order == UNSET) read_order();
    if (fibers.size() < threads) fibers.resize(threads);
    shared_bytes = (shared_bytes + 15) / 16 * 16;
    guarded memory(shared_bytes);
    dynamic = memory.base + memory.room - shared_bytes;
    body = f;
    grid_dim = grid;
    block_dim = block;
    for (unsigned z = 0; z < grid.z; z++)
        for (unsigned y = 0; y < grid.y; y++)
            for (unsigned x = 0; x < grid.x; x++) {
                block_index = {x, y, z};
                memset(dynamic, POISON, shared_bytes);
                if (__start_shim_shared)
                    memset(__start_shim_shared, POISON,
                           (size_t)(__stop_shim_shared - __start_shim_shared));
                run_block(threads);
            }
}

} /* namespace shim */

#include "cuda_shim_stream.h"

namespace shim
{
/* What a kernel gets by pointer is on the device. */
template <class A> void check_argument(const A &a)
{
    if constexpr (std::is_pointer_v<A>)
        if (a && !on_device(a)) {
            fprintf(stderr, "shim: a kernel gets a pointer that is not the device's\n");
            abort();
        }
}

/* Arguments are copied at the launch, as by CUDA. */
template <class... P, class... A>
void launch(stream *s, dim3 grid, dim3 block, size_t shared_bytes, void (*kernel)(P...),
            A... given)
{
    std::tuple<P...> args(given...);
    std::apply([](const P &...a) { (check_argument(a), ...); }, args);
    check_launch((const void *)kernel, grid, block, shared_bytes);
    issue(s, [=] {
        run_grid(grid, block, shared_bytes, [=] { std::apply(kernel, args); });
    });
}

/* Every lane of the mask calls this with its value; returns what `read` makes of all.
 */
template <class T, class F>
auto exchange_all(unsigned mask, T value, const char *what, F read)
{
    static_assert(sizeof(T) <= 8, "one slot");
    warp &w = warps[current->warp];
    unsigned wanted = (unsigned)__builtin_popcount(mask);
    current->wait = what;
    while (w.unread) yield(); /* the one before has not been read by all */
    memcpy(&w.slot[current->lane], &value, sizeof value);
    unsigned mine = w.generation;
    progress++;
    if (++w.arrived >= std::min(wanted, w.members)) {
        w.generation++;
        w.unread = w.arrived;
        w.arrived = 0;
    }
    while (w.generation == mine) yield();
    auto result = read(w);
    w.unread--;
    progress++;
    return result;
}

/* Every lane of a warp calls this; the last to come does f to the items of all. */
template <class T> void together(T &item, void (*f)(T *const *lane), const char *what)
{
    warp &w = warps[current->warp];
    current->wait = what;
    w.item[current->lane] = &item;
    unsigned mine = w.generation;
    progress++;
    if (++w.arrived == WARP) {
        f((T *const *)w.item);
        w.generation++;
        w.arrived = 0;
    }
    while (w.generation == mine) yield();
}

/* Returns the value of lane `from`. */
template <class T> T exchange(unsigned mask, T value, unsigned from, const char *what)
{
    return exchange_all(mask, value, what, [=](const warp &w) {
        T result;
        memcpy(&result, &w.slot[from % WARP], sizeof result);
        return result;
    });
}

inline int barrier(int predicate, const char *what)
{
    current->wait = what;
    unsigned mine = barrier_generation;
    progress++;
    at_barrier++;
    barrier_any |= predicate != 0;
    while (mine == barrier_generation) {
        if (at_barrier >= alive) {
            at_barrier = 0;
            last_any = barrier_any;
            barrier_any = 0;
            barrier_generation++;
            progress++;
            break;
        }
        yield();
    }
    return (int)last_any; /* nobody passes the next barrier before all have read this */
}
} /* namespace shim */

#define threadIdx (shim::current->tid)
#define blockIdx shim::block_index
#define blockDim shim::block_dim
#define gridDim shim::grid_dim
#define PL_LAUNCH(kernel, grid, block, shared_bytes, ...) \
    shim::launch(pl_cuda.stream, grid, block, shared_bytes, kernel, __VA_ARGS__)
#define PL_SHARED(type, name) type *name = (type *)shim::dynamic

static inline void __syncthreads()
{
    shim::barrier(0, "__syncthreads");
}
static inline int __syncthreads_or(int predicate)
{
    return shim::barrier(predicate, "__syncthreads_or");
}
static inline void __syncwarp(unsigned mask = ~0u)
{
    shim::exchange(mask, 0, shim::current->lane, "__syncwarp");
}
template <class T> T __shfl_xor_sync(unsigned mask, T value, int x)
{
    return shim::exchange(mask, value, shim::current->lane ^ (unsigned)x,
                          "__shfl_xor_sync");
}

#include "cuda_shim_api.h"
#include "cuda_shim_mma.h"
#include "cuda_shim_blas.h"
#endif
