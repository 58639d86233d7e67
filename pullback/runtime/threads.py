"""A small pool of threads for generated code: one for the process, built once, handed to every library as an address.

`parallel()` is the address of `void (*)(body, begin, end, grain, arguments, threads)`, which calls
`body(first, last, arguments)` on pieces of a range. Workers spin for a moment before they sleep, since kernels follow each
other closely; the caller works too, and waits for nobody who has not begun. A second caller, while the pool is busy, runs its
range by itself. After `fork`, a child makes its own pool.
"""

from __future__ import annotations

import ctypes
import functools

from .build import build

SOURCE = r"""
#include <pthread.h>
#include <stdatomic.h>
#include <sched.h>
typedef long i64;
typedef void (*body_t)(i64, i64, void *const *);
#define MOST 64
#define OPEN (1L << 16)                 /* the state: number of the round, whether it is open, how many workers are in it */
#define ROUND(s) ((s) >> 17)
static pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER, lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t more = PTHREAD_COND_INITIALIZER;
static int workers, hooked; static long starts[MOST];
static atomic_long state, next_piece; static atomic_int sleepers, wanted;
static body_t body; static void *const *arguments;
static i64 from, until, piece;
static inline void relax(void) {
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#endif
}
static void work(void) {
    for (;;) {
        i64 first = from + atomic_fetch_add(&next_piece, 1) * piece;
        if (first >= until) return;
        i64 last = first + piece < until ? first + piece : until;
        body(first, last, arguments);
    }
}
static void await(long seen) {
    for (int spin = 0; spin < 4000; spin++) { if (ROUND(atomic_load(&state)) != seen) return; relax(); }
    pthread_mutex_lock(&lock);
    atomic_fetch_add(&sleepers, 1);
    while (ROUND(atomic_load(&state)) == seen) pthread_cond_wait(&more, &lock);
    atomic_fetch_sub(&sleepers, 1);
    pthread_mutex_unlock(&lock);
}
static void *worker(void *given) {
    long number = (long)given, seen = starts[number];
    for (;;) {
        await(seen);
        long now = atomic_load(&state);
        seen = ROUND(now);
        if (number >= atomic_load(&wanted)) continue;
        while ((now & OPEN) && ROUND(now) == seen)      /* a round that is over is not entered */
            if (atomic_compare_exchange_weak(&state, &now, now + 1)) { work(); atomic_fetch_sub(&state, 1); break; }
    }
    return 0;
}
static void forget(void) {
    workers = 0; atomic_store(&state, (ROUND(atomic_load(&state)) + 1) << 17); atomic_store(&sleepers, 0);
    pthread_mutex_init(&gate, 0); pthread_mutex_init(&lock, 0); pthread_cond_init(&more, 0);
}
static void hire(i64 threads) {
    if (!hooked) { pthread_atfork(0, 0, forget); hooked = 1; }
    while (workers < threads - 1) {
        pthread_t made; pthread_attr_t how;
        pthread_attr_init(&how); pthread_attr_setdetachstate(&how, PTHREAD_CREATE_DETACHED);
        pthread_attr_setstacksize(&how, 8 << 20);
        starts[workers] = ROUND(atomic_load(&state));
        if (pthread_create(&made, &how, worker, (void *)(long)workers)) break;
        workers++;
    }
}
void parallel(body_t fn, i64 begin, i64 end, i64 grain, void *const *args, i64 threads) {
    if (threads > MOST) threads = MOST;
    i64 most = grain > 0 ? (end - begin) / grain : 1;
    if (threads > most) threads = most;
    if (threads < 2 || pthread_mutex_trylock(&gate)) { fn(begin, end, args); return; }
    hire(threads);
    i64 pieces = threads * 4 < most ? threads * 4 : most;   /* small ones: who is late leaves more to the others */
    body = fn; arguments = args; from = begin; until = end; piece = (end - begin + pieces - 1) / pieces;
    atomic_store(&next_piece, 0);
    atomic_store(&wanted, threads - 1);
    atomic_store(&state, (ROUND(atomic_load(&state)) + 1) << 17 | OPEN);
    if (atomic_load(&sleepers)) { pthread_mutex_lock(&lock); pthread_cond_broadcast(&more); pthread_mutex_unlock(&lock); }
    work();
    atomic_fetch_and(&state, ~OPEN);
    for (int spin = 0; atomic_load(&state) & (OPEN - 1); spin++) { if (spin < 2000) relax(); else sched_yield(); }
    pthread_mutex_unlock(&gate);
}
"""


@functools.cache
def _library() -> ctypes.CDLL:
    return ctypes.CDLL(str(build(SOURCE, ("-pthread",))))


def parallel() -> int:
    """The address of the pool's function; 0 where it cannot be built."""
    return ctypes.cast(_library().parallel, ctypes.c_void_p).value or 0
