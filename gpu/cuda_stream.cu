/* cuda: what happens beside the one stream of operations: data sent ahead on a stream of
 * their own, and spans, which are NVTX ranges in a profile and, with a key, CUDA graphs.
 * A key is met three times before it pays: the first time its operations are issued as
 * they come (and whatever they keep is made), the second time they are captured. */
#include "gpu/cuda_device.cuh"

#include <stdlib.h>
#include <string.h>

/* Data on their way: pinned memory that the copy reads after we return. */
struct slot {
    void *pinned;
    size_t room;
    cudaEvent_t sent;
};

struct graph {
    void *key;
    size_t key_bytes;
    cudaGraphExec_t exec; /* NULL: not captured yet */
    uint64_t used;        /* when, counted in spans */
};

/* Per-stage version rings of different depth meet in many combinations; each span has
 * one stage's pointers only, so that keys stay few. */
enum { SLOTS = 2, GRAPHS = 512 };

static struct {
    cudaStream_t stream; /* of the copies */
    struct slot slot[SLOTS];
    int next;
} ahead;

static struct {
    struct graph graph[GRAPHS];
    struct graph *capturing;
    uint64_t clock;
} spans;

static int grow(struct slot *s, size_t bytes)
{
    int rc = 0;
    if (!ahead.stream)
        rc = pl_cuda_check(
            cudaStreamCreateWithFlags(&ahead.stream, cudaStreamNonBlocking), "stream");
    if (!rc && !s->sent)
        rc = pl_cuda_check(cudaEventCreateWithFlags(&s->sent, cudaEventDisableTiming),
                           "event");
    /* an event never recorded counts as done */
    if (!rc) rc = pl_cuda_check(cudaEventSynchronize(s->sent), "prefetch");
    if (rc || s->room >= bytes) return rc;
    cudaFreeHost(s->pinned);
    s->pinned = NULL;
    s->room = 0;
    rc = pl_cuda_check(cudaMallocHost(&s->pinned, bytes), "pinned memory");
    if (!rc) s->room = bytes;
    return rc;
}

int pl_cuda_prefetch(void *dst, const void *src, size_t bytes)
{
    struct slot *s = &ahead.slot[ahead.next];
    ahead.next = (ahead.next + 1) % SLOTS;
    int rc = grow(s, bytes);
    if (rc || !bytes) return rc;
    memcpy(s->pinned, src, bytes);
    cudaError_t status =
        cudaMemcpyAsync(dst, s->pinned, bytes, cudaMemcpyHostToDevice, ahead.stream);
    if (status == cudaSuccess) status = cudaEventRecord(s->sent, ahead.stream);
    if (status == cudaSuccess) status = cudaStreamWaitEvent(pl_cuda.stream, s->sent, 0);
    return pl_cuda_check(status, "prefetch");
}

static void forget(struct graph *g)
{
    if (g->exec) {
        cudaStreamSynchronize(pl_cuda.stream); /* it may be running */
        cudaGraphExecDestroy(g->exec);
    }
    free(g->key);
    *g = {};
}

/* The graph of a key, or the entry that was free, or unused for longest, with the key
 * put in; NULL without memory. */
static struct graph *graph_of(const struct pl_span *span, bool *known)
{
    struct graph *oldest = &spans.graph[0];
    *known = false;
    for (int i = 0; i < GRAPHS; i++) {
        struct graph *g = &spans.graph[i];
        *known = g->key && g->key_bytes == span->key_bytes &&
                 !memcmp(g->key, span->key, span->key_bytes);
        if (*known) return g;
        if (g->used < oldest->used) oldest = g;
    }
    forget(oldest);
    oldest->key = malloc(span->key_bytes);
    if (!oldest->key) return NULL;
    memcpy(oldest->key, span->key, span->key_bytes);
    oldest->key_bytes = span->key_bytes;
    return oldest;
}

int pl_cuda_begin(const struct pl_span *span, bool *done)
{
    bool known;
    *done = false;
    nvtxRangePushA(span->name);
    if (!span->key) return 0;
    struct graph *g = graph_of(span, &known);
    if (!g) return 0;
    g->used = ++spans.clock;
    if (!known) return 0;
    if (g->exec) {
        *done = true;
        return pl_cuda_check(cudaGraphLaunch(g->exec, pl_cuda.stream), span->name);
    }
    spans.capturing = g;
    return pl_cuda_check(
        cudaStreamBeginCapture(pl_cuda.stream, cudaStreamCaptureModeThreadLocal),
        span->name);
}

int pl_cuda_end(void)
{
    struct graph *g = spans.capturing;
    nvtxRangePop();
    if (!g) return 0;
    spans.capturing = NULL;
    cudaGraph_t graph = NULL;
    cudaError_t status = cudaStreamEndCapture(pl_cuda.stream, &graph);
    if (status == cudaSuccess) status = cudaGraphInstantiate(&g->exec, graph, 0);
    if (graph) cudaGraphDestroy(graph);
    if (status == cudaSuccess) status = cudaGraphLaunch(g->exec, pl_cuda.stream);
    return pl_cuda_check(status, "graph");
}

void pl_cuda_forget_spans(void)
{
    for (int i = 0; i < GRAPHS; i++) forget(&spans.graph[i]);
}

void pl_cuda_stream_close(void)
{
    pl_cuda_forget_spans();
    for (int i = 0; i < SLOTS; i++) {
        struct slot *s = &ahead.slot[i];
        if (s->sent) {
            cudaEventSynchronize(s->sent);
            cudaEventDestroy(s->sent);
        }
        cudaFreeHost(s->pinned);
    }
    if (ahead.stream) cudaStreamDestroy(ahead.stream);
    ahead = {};
    spans = {};
}
