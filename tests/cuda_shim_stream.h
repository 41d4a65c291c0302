/* Of tests/cuda_shim.h: memory, streams, graphs and what a launch may ask for. Included
 * by it only.
 * Streams: work is done as late as CUDA allows, when somebody waits for it, or as soon:
 * of the first stream late and of others soon, or (SHIM_ORDER reverse) of all late, or
 * (an odd number) the other way round. So an order between streams that no event gives,
 * a source that is overwritten before its copy, or a result that is read before it is
 * there, shows. Capture: what CUDA forbids then breaks it. Memory of the device is
 * closed to the host but while work is done (in the order reverse; not with ASan, which
 * watches its ends instead), and a write behind an allocation reaches a closed page. */
#ifndef TESTS_CUDA_SHIM_STREAM_H
#define TESTS_CUDA_SHIM_STREAM_H

#include <deque>

namespace shim
{
struct block {
    size_t bytes; /* asked for */
    char *base;   /* of pages */
    size_t room;  /* of pages that can be opened */
    bool open;
};
inline std::map<char *, block> &blocks = *new std::map<char *, block>;
inline int working; /* depth of work being done: the device's memory is open */

inline bool on_device(const void *p)
{
    auto after = blocks.upper_bound((char *)p);
    if (after == blocks.begin()) return false;
    --after;
    return (char *)p <= after->first + after->second.bytes;
}

inline void open_block(block &b, bool open)
{
    if (b.open == open || !b.room) return; /* ASan's own: no pages of it */
    if (mprotect(b.base, b.room, open ? PROT_READ | PROT_WRITE : PROT_NONE)) abort();
    b.open = open;
}

/* Work between these two reads and writes the device's memory. Closing takes time:
 * one order does it. */
inline void open_device()
{
    if (!working++)
        for (auto &b : blocks) open_block(b.second, true);
}
inline void close_device()
{
    if (!--working && order == REVERSE)
        for (auto &b : blocks) open_block(b.second, false);
}

/* Aligned to 256 bytes as CUDA's, the end less than 256 bytes before a closed page. */
inline void *device_alloc(size_t bytes)
{
    enum { PAGE = 4096, UNIT = 256 };
#ifdef SHIM_ASAN
    char *at = (char *)aligned_alloc(UNIT, (bytes + UNIT - 1) / UNIT * UNIT);
    if (!at) return nullptr;
    __asan_poison_memory_region(at + bytes, (UNIT - bytes % UNIT) % UNIT);
    blocks[at] = {bytes, at, 0, true};
#else
    size_t used = (bytes + UNIT - 1) / UNIT * UNIT,
           room = (used + PAGE - 1) / PAGE * PAGE;
    char *base = (char *)mmap(nullptr, room + PAGE, PROT_NONE,
                              MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (base == MAP_FAILED) return nullptr;
    char *at = base + room - used;
    blocks[at] = {bytes, base, room, false};
#endif
    open_device();
    memset(at, POISON, bytes); /* fresh memory is not zero on a GPU either */
    close_device();
    return at;
}

inline void device_free(void *p)
{
    auto b = blocks.find((char *)p);
    if (b == blocks.end()) {
        fprintf(stderr, "shim: what is freed was not allocated\n");
        abort();
    }
#ifdef SHIM_ASAN
    free(p);
#else
    munmap(b->second.base, b->second.room + 4096);
#endif
    blocks.erase(b);
}

struct graph {
    std::vector<std::function<void()>> work;
};
struct stream {
    std::deque<std::function<void()>> work;
    uint64_t issued = 0, done = 0;
    bool soon = false, gone = false;
};
struct event {
    stream *of = nullptr; /* null: never recorded */
    uint64_t at = 0;
};
/* Never freed: what waits for one may be asked late. */
inline std::vector<stream *> &streams = *new std::vector<stream *>;

/* The one capture at a time. */
struct recording {
    graph *into;
    stream *of;
    bool broken;
};
inline recording capture;

/* Do the work of a stream up to a number. */
inline void run_to(stream *s, uint64_t number)
{
    if (s->done >= number) return;
    open_device();
    while (s->done < number) {
        std::function<void()> f = std::move(s->work.front());
        s->work.pop_front();
        f();
        s->done++;
    }
    close_device();
}

inline void run_all()
{
    for (stream *s : streams) run_to(s, s->issued);
}

inline void issue(stream *s, std::function<void()> f)
{
    if (!s || s->gone) {
        fprintf(stderr, "shim: work without a stream, or of one that is gone\n");
        abort();
    }
    if (capture.into && capture.of == s) {
        capture.into->work.push_back(f);
        return;
    }
    s->work.push_back(f);
    s->issued++;
    if (s->soon) run_to(s, s->issued);
}

inline stream *new_stream()
{
    int live = 0;
    for (stream *s : streams) live += !s->gone;
    if (order == UNSET) read_order();
    stream *s = new stream;
    s->soon = order == REVERSE ? false : order > 0 && order % 2 ? !live : live > 0;
    streams.push_back(s);
    return s;
}

inline std::map<const void *, size_t> shared_allowed; /* by cudaFuncSetAttribute */

/* Of one launch, when it is issued. */
inline void check_launch(const void *kernel, dim3 grid, dim3 block, size_t shared_bytes)
{
    unsigned threads = block.x * block.y * block.z;
    size_t allowed = std::max<size_t>(48 << 10, shared_allowed[kernel]);
    if (threads && threads <= 1024 && grid.x && grid.x < 1u << 31 && grid.y && grid.z &&
        grid.y <= 65535 && grid.z <= 65535 && shared_bytes <= allowed)
        return;
    fprintf(
        stderr,
        "shim: bad launch: grid %u %u %u, block %u, shared %zu, expected at most %zu\n",
        grid.x, grid.y, grid.z, threads, shared_bytes, allowed);
    abort();
}
} /* namespace shim */

#endif
