/* `left` counts the parts that nobody took. Who lowers it owns one part, and the fields
 * of the loop cannot change before that part is done (`undone`), so they need no lock.
 */
#include "base/pool.h"

#include <assert.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <unistd.h>

/* About 50 us: longer than the gap between two loops of a step, shorter than a turn of
 * the scheduler. */
enum { SPINS = 1000 };

struct pool {
    int wanted, started; /* threads, the caller included; 0 and 1: none started */
    pthread_t thread[PL_POOL_MOST];
    void (*part)(void *context, int i);
    void *context;
    int n;
    atomic_int left, undone, sleepers;
    atomic_bool busy, quit, waiting;
    pthread_mutex_t lock;
    pthread_cond_t work, done;
};

static struct pool pool = {.wanted = 1,
                           .lock = PTHREAD_MUTEX_INITIALIZER,
                           .work = PTHREAD_COND_INITIALIZER,
                           .done = PTHREAD_COND_INITIALIZER};

static _Thread_local bool inside; /* a part */

static inline void pause_briefly(void)
{
#ifdef __x86_64__
    __builtin_ia32_pause();
#endif
}

/* Take and run parts until none is left. */
static void run_parts(void)
{
    int left = atomic_load(&pool.left);
    inside = true;
    while (left > 0) {
        if (!atomic_compare_exchange_weak(&pool.left, &left, left - 1)) continue;
        pool.part(pool.context, pool.n - left);
        if (atomic_fetch_sub(&pool.undone, 1) == 1 && atomic_load(&pool.waiting)) {
            pthread_mutex_lock(&pool.lock);
            pthread_cond_signal(&pool.done);
            pthread_mutex_unlock(&pool.lock);
        }
        left = atomic_load(&pool.left);
    }
    inside = false;
}

static void *thread_main(void *unused)
{
    while (!atomic_load(&pool.quit)) {
        for (int i = 0; i < SPINS && !atomic_load(&pool.left); i++) pause_briefly();
        if (atomic_load(&pool.left) == 0) {
            pthread_mutex_lock(&pool.lock);
            atomic_fetch_add(&pool.sleepers, 1);
            while (atomic_load(&pool.left) == 0 && !atomic_load(&pool.quit))
                pthread_cond_wait(&pool.work, &pool.lock);
            atomic_fetch_sub(&pool.sleepers, 1);
            pthread_mutex_unlock(&pool.lock);
        }
        run_parts();
    }
    return unused;
}

static void stop_threads(void)
{
    pthread_mutex_lock(&pool.lock);
    atomic_store(&pool.quit, true);
    pthread_cond_broadcast(&pool.work);
    pthread_mutex_unlock(&pool.lock);
    for (int i = 1; i < pool.started; i++) pthread_join(pool.thread[i], NULL);
    atomic_store(&pool.quit, false);
    pool.started = 0;
}

/* A forked child has the memory of the threads, not the threads. */
static void forget_threads(void)
{
    pool.started = 0;
    atomic_store(&pool.left, 0);
    atomic_store(&pool.sleepers, 0);
    atomic_store(&pool.busy, false);
    pthread_mutex_init(&pool.lock, NULL);
    pthread_cond_init(&pool.work, NULL);
    pthread_cond_init(&pool.done, NULL);
}

/* As many as the system gives: a loop is right with fewer. */
static void start_threads(void)
{
    static bool told;
    if (!told) pthread_atfork(NULL, NULL, forget_threads);
    told = true;
    for (pool.started = 1; pool.started < pool.wanted; pool.started++)
        if (pthread_create(&pool.thread[pool.started], NULL, thread_main, NULL)) break;
}

void pl_pool_threads_set(int n)
{
    assert(n >= 1 && n <= PL_POOL_MOST && !atomic_load(&pool.busy));
    if (n == pool.wanted) return;
    if (pool.started) stop_threads();
    pool.wanted = n;
}

int pl_pool_threads(void)
{
    return inside ? 1 : pool.wanted;
}

int pl_pool_cores(void)
{
    cpu_set_t set;
    long n = sysconf(_SC_NPROCESSORS_ONLN);
    if (!sched_getaffinity(0, sizeof set, &set)) n = CPU_COUNT(&set);
    return n < 1 ? 1 : n > PL_POOL_MOST ? PL_POOL_MOST : (int)n;
}

static void wait_until_done(void)
{
    for (int i = 0; i < SPINS && atomic_load(&pool.undone); i++) pause_briefly();
    if (!atomic_load(&pool.undone)) return;
    pthread_mutex_lock(&pool.lock);
    atomic_store(&pool.waiting, true);
    while (atomic_load(&pool.undone)) pthread_cond_wait(&pool.done, &pool.lock);
    atomic_store(&pool.waiting, false);
    pthread_mutex_unlock(&pool.lock);
}

void pl_pool_for(int n, void (*part)(void *context, int i), void *context)
{
    if (n < 2 || pl_pool_threads() < 2 || atomic_exchange(&pool.busy, true)) {
        for (int i = 0; i < n; i++) part(context, i);
        return;
    }
    if (!pool.started) start_threads();
    pool.part = part;
    pool.context = context;
    pool.n = n;
    atomic_store(&pool.undone, n);
    atomic_store(&pool.left, n);
    if (atomic_load(&pool.sleepers)) {
        pthread_mutex_lock(&pool.lock);
        pthread_cond_broadcast(&pool.work);
        pthread_mutex_unlock(&pool.lock);
    }
    run_parts();
    wait_until_done();
    atomic_store(&pool.busy, false);
}
