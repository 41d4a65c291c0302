/* Threads that share one loop at a time. A loop's parts are taken off a counter, so a
 * thread that is held up takes fewer; what a part covers must depend on the sizes of
 * the problem only, and a part writes its own memory: then neither the number of
 * threads nor their timing changes a bit of the result.
 *
 * One pool a process, for the thread that computes. Threads start with the first loop
 * that wants them, never in a process that only forks others (a forked child starts its
 * own), and sleep between loops after a short spin. */
#ifndef PL_BASE_POOL_H
#define PL_BASE_POOL_H

enum { PL_POOL_MOST = 256 };

/* Threads of the loops to come, the caller included; 1 (the initial state) starts none.
 * Stops the threads there are when the number changes. Not inside a loop. */
void pl_pool_threads_set(int n);
int pl_pool_threads(void); /* inside a part 1 */
/* Cores that this process may run on, at least 1. */
int pl_pool_cores(void);

/* part(context, i) for every i in 0..n-1, in any order, by any thread; returns when all
 * are done. Called inside a part, the loop runs there, in order. Allocates nothing. */
void pl_pool_for(int n, void (*part)(void *context, int i), void *context);

#endif
