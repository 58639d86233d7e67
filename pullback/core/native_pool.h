/* The threads of C code: one pool for the process, which the kernels in C and generated code share.
 *
 * share() cuts rows into parts of a given length, so that results do not depend on the number of threads; parallel() cuts a
 * range into pieces of its own choice. Each thread begins with a run of pieces of its own, the same from call to call, so that what it
 * wrote before is still near to it, and then takes from the others'. The caller works too, and waits for nobody who has not begun; workers wait awake for a
 * moment, since work follows work closely, then sleep. A second caller, while the pool is busy, does its work alone. After a
 * fork, a child makes its own workers. No Python here: this text is also compiled by itself, where the extension is not
 * built (runtime/threads.py), with POOL_API defined as nothing.
 */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <sys/types.h>

#ifndef POOL_API
#define POOL_API static
#endif
#define POOL_MOST 64      /* threads */
#define POOL_AWAKE 4000   /* looks at the door before a worker goes to sleep */
#define POOL_OPEN (1L << 16) /* the state: number of the round, whether it is open, how many workers are in it */
#define POOL_ROUND(state) ((state) >> 17)

typedef void (*Part)(void *job, ssize_t first, ssize_t last);
typedef void (*Body)(long first, long last, void *const *arguments);

static struct {
    pthread_mutex_t owner, lock;
    pthread_cond_t more;
    int workers, hooked;
    long starts[POOL_MOST]; /* the round at which each worker was hired */
    atomic_long state;
    atomic_int sleepers, wanted;
    int sharers;
    struct {
        atomic_long next;
        long end;
        char apart[48]; /* each in a line of the cache by itself */
    } runs[POOL_MOST];
    Part part;
    void *job;
    ssize_t from, until, piece;
} pool = {.owner = PTHREAD_MUTEX_INITIALIZER, .lock = PTHREAD_MUTEX_INITIALIZER, .more = PTHREAD_COND_INITIALIZER};

static inline void pool_relax(void) {
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#endif
}

/* The pieces of one thread, by its number: those of its own run, then those that others have not begun. */
static void pool_work(int number) {
    for (int k = 0; k < pool.sharers; k++) {
        int run = (number + k) % pool.sharers;
        for (;;) {
            long at = atomic_fetch_add(&pool.runs[run].next, 1);
            if (at >= pool.runs[run].end)
                break;
            ssize_t first = pool.from + (ssize_t)at * pool.piece;
            pool.part(pool.job, first, first + pool.piece < pool.until ? first + pool.piece : pool.until);
        }
    }
}

static void pool_cut(int threads) {
    long pieces = pool.piece > 0 ? (long)((pool.until - pool.from + pool.piece - 1) / pool.piece) : 0;
    pool.sharers = threads;
    for (int r = 0; r < threads; r++) {
        atomic_store(&pool.runs[r].next, pieces * r / threads);
        pool.runs[r].end = pieces * (r + 1) / threads;
    }
}

static void pool_await(long seen) {
    for (int spin = 0; spin < POOL_AWAKE; spin++) {
        if (POOL_ROUND(atomic_load(&pool.state)) != seen)
            return;
        pool_relax();
    }
    pthread_mutex_lock(&pool.lock);
    atomic_fetch_add(&pool.sleepers, 1);
    while (POOL_ROUND(atomic_load(&pool.state)) == seen)
        pthread_cond_wait(&pool.more, &pool.lock);
    atomic_fetch_sub(&pool.sleepers, 1);
    pthread_mutex_unlock(&pool.lock);
}

static void *pool_worker(void *given) {
    long number = (long)given, seen = pool.starts[number];
    for (;;) {
        pool_await(seen);
        long now = atomic_load(&pool.state);
        seen = POOL_ROUND(now);
        if (number >= atomic_load(&pool.wanted))
            continue;
        while ((now & POOL_OPEN) && POOL_ROUND(now) == seen) /* a round that is over is not entered */
            if (atomic_compare_exchange_weak(&pool.state, &now, now + 1)) {
                pool_work((int)number + 1);
                atomic_fetch_sub(&pool.state, 1);
                break;
            }
    }
    return NULL;
}

static void pool_after_fork(void) { /* the child has no workers, and whoever held the locks is gone */
    pool.workers = 0;
    atomic_store(&pool.state, (POOL_ROUND(atomic_load(&pool.state)) + 1) << 17);
    atomic_store(&pool.sleepers, 0);
    pthread_mutex_init(&pool.owner, NULL);
    pthread_mutex_init(&pool.lock, NULL);
    pthread_cond_init(&pool.more, NULL);
}

static void pool_hire(int threads) {
    if (!pool.hooked) {
        pthread_atfork(NULL, NULL, pool_after_fork);
        pool.hooked = 1;
    }
    pthread_attr_t how;
    pthread_attr_init(&how);
    pthread_attr_setdetachstate(&how, PTHREAD_CREATE_DETACHED);
    pthread_attr_setstacksize(&how, 8 << 20);
    while (pool.workers < threads - 1) {
        pthread_t made;
        pool.starts[pool.workers] = POOL_ROUND(atomic_load(&pool.state));
        if (pthread_create(&made, &how, pool_worker, (void *)(long)pool.workers))
            break;
        pool.workers++;
    }
    pthread_attr_destroy(&how);
}

/* Have threads work on pieces of a range, this one among them. The caller owns the pool, and gives it back. */
static void pool_run(Part part, void *job, ssize_t begin, ssize_t end, ssize_t piece, int threads) {
    pool_hire(threads);
    pool.part = part, pool.job = job, pool.from = begin, pool.until = end, pool.piece = piece;
    pool_cut(threads);
    atomic_store(&pool.wanted, threads - 1);
    atomic_store(&pool.state, (POOL_ROUND(atomic_load(&pool.state)) + 1) << 17 | POOL_OPEN);
    if (atomic_load(&pool.sleepers)) {
        pthread_mutex_lock(&pool.lock);
        pthread_cond_broadcast(&pool.more);
        pthread_mutex_unlock(&pool.lock);
    }
    pool_work(0);
    atomic_fetch_and(&pool.state, ~POOL_OPEN);
    for (int spin = 0; atomic_load(&pool.state) & (POOL_OPEN - 1); spin++) {
        if (spin < 2000)
            pool_relax();
        else
            sched_yield();
    }
    pthread_mutex_unlock(&pool.owner);
}

typedef struct {
    Body body;
    void *const *arguments;
} PoolBody;

static void pool_body(void *job, ssize_t first, ssize_t last) {
    PoolBody *given = job;
    given->body((long)first, (long)last, given->arguments);
}

/* `body(first, last, arguments)` on pieces of a range, none shorter than a grain but the last. */
POOL_API void parallel(Body body, long begin, long end, long grain, void *const *arguments, long threads) {
    if (threads > POOL_MOST)
        threads = POOL_MOST;
    long most = grain > 0 ? (end - begin) / grain : 1;
    if (threads > most)
        threads = most;
    if (threads < 2 || pthread_mutex_trylock(&pool.owner)) {
        body(begin, end, arguments);
        return;
    }
    long pieces = threads * 4 < most ? threads * 4 : most; /* small ones: who is late leaves more to the others */
    PoolBody job = {body, arguments};
    pool_run(pool_body, &job, begin, end, (end - begin + pieces - 1) / pieces, (int)threads);
}
