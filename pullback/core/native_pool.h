/* A small pool of threads. share() cuts rows into parts, which the caller and the workers take as they are free.
 *
 * Workers wait awake for a moment after work, since more often follows at once. A second caller does its work alone.
 */

#define MOST 63     /* threads in the pool */
#define AWAKE 20000 /* looks at the door before a thread goes to sleep */

typedef void (*Part)(void *job, Py_ssize_t first, Py_ssize_t last);

static struct {
    pthread_mutex_t owner, lock;
    pthread_cond_t wake, idle;
    atomic_ulong turn; /* changes with every job */
    int workers, asleep, inside, wanted;
    Part part;
    void *job;
    Py_ssize_t rows, step;
    atomic_llong next;
} pool = {.owner = PTHREAD_MUTEX_INITIALIZER, .lock = PTHREAD_MUTEX_INITIALIZER, .wake = PTHREAD_COND_INITIALIZER, .idle = PTHREAD_COND_INITIALIZER};

static void take_parts(void) {
    for (;;) {
        Py_ssize_t first = (Py_ssize_t)atomic_fetch_add(&pool.next, pool.step);
        if (first >= pool.rows)
            return;
        pool.part(pool.job, first, first + pool.step < pool.rows ? first + pool.step : pool.rows);
    }
}

static void *worker(void *seen_at_start) {
    unsigned long seen = (unsigned long)(uintptr_t)seen_at_start;
    for (;;) {
        for (int i = 0; i < AWAKE && atomic_load(&pool.turn) == seen; i++)
#if defined(__x86_64__)
            __builtin_ia32_pause();
#else
            atomic_signal_fence(memory_order_seq_cst);
#endif
        pthread_mutex_lock(&pool.lock);
        pool.asleep++;
        while (atomic_load(&pool.turn) == seen)
            pthread_cond_wait(&pool.wake, &pool.lock);
        pool.asleep--;
        seen = atomic_load(&pool.turn);
        int joins = pool.inside < pool.wanted;
        pool.inside += joins;
        pthread_mutex_unlock(&pool.lock);
        if (!joins)
            continue;
        take_parts();
        pthread_mutex_lock(&pool.lock);
        if (--pool.inside == 0)
            pthread_cond_signal(&pool.idle);
        pthread_mutex_unlock(&pool.lock);
    }
    return NULL;
}

static void hire(int wanted) {
    pthread_attr_t detached;
    pthread_attr_init(&detached);
    pthread_attr_setdetachstate(&detached, PTHREAD_CREATE_DETACHED);
    while (pool.workers < wanted && pool.workers < MOST) {
        pthread_t thread;
        if (pthread_create(&thread, &detached, worker, (void *)(uintptr_t)atomic_load(&pool.turn)))
            break;
        pool.workers++;
    }
    pthread_attr_destroy(&detached);
}

static void after_fork(void) { /* the child has no workers, and whoever held the locks is gone */
    pthread_mutex_init(&pool.owner, NULL);
    pthread_mutex_init(&pool.lock, NULL);
    pthread_cond_init(&pool.wake, NULL);
    pthread_cond_init(&pool.idle, NULL);
    pool.workers = pool.asleep = pool.inside = 0;
}

static void share(Part part, void *job, Py_ssize_t rows, Py_ssize_t step, int threads) {
    if (threads < 2 || rows <= step || pthread_mutex_trylock(&pool.owner)) {
        for (Py_ssize_t first = 0; first < rows; first += step)
            part(job, first, first + step < rows ? first + step : rows);
        return;
    }
    hire(threads - 1);
    pthread_mutex_lock(&pool.lock);
    pool.part = part, pool.job = job, pool.rows = rows, pool.step = step, pool.wanted = threads - 1;
    atomic_store(&pool.next, 0);
    atomic_fetch_add(&pool.turn, 1);
    if (pool.asleep)
        pthread_cond_broadcast(&pool.wake);
    pthread_mutex_unlock(&pool.lock);
    take_parts();
    pthread_mutex_lock(&pool.lock);
    pool.wanted = 0; /* nobody joins any more */
    while (pool.inside)
        pthread_cond_wait(&pool.idle, &pool.lock);
    pthread_mutex_unlock(&pool.lock);
    pthread_mutex_unlock(&pool.owner);
}
