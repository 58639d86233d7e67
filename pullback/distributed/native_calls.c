/* Collectives for generated code: MPI's nonblocking calls, started and awaited without Python.

`begin(call, source, target)` starts a call and returns at once; until it is complete, `target` is MPI's. `await(target)`
returns when what writes `target` is complete: at once where nothing does. Both give 0, or a negative number, of which
`failure()` says more. One thread tests calls that nobody awaits yet, so that they go on while loops compute; a mutex
guards the table of calls under way. Handles of MPI are numbers of one register, whichever library they come from. */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

typedef long i64;
enum { ALL_REDUCE, ALL_GATHER, REDUCE_SCATTER, BROADCAST, ALL_TO_ALL };
enum { FLOAT, DOUBLE, INT, LONG, BYTES };
enum { FULL = 1024, KEPT = 4096, LATE = -2, INTERRUPTED = -3, REFUSED = -4 };

typedef struct { i64 handle, rank, size; double timeout; i64 *count; char *page; i64 room; const char *name; } group_t;
typedef struct {
    group_t *group; i64 kind, element, datatype, op, divisor, root, elements, nbytes; /* elements: of the part MPI is told of */
    const int *sent, *sent_at, *received, *received_at; const char *name;
} call_t;
typedef struct { const call_t *call; i64 number, nbytes; double began, ended; } record_t;
typedef struct { const call_t *call; void *target, *copy; i64 number; double began, ended; int done, code; i64 request; } pending_t;

static int (*iallreduce)(const void *, void *, int, i64, i64, i64, void *);
static int (*iallgatherv)(const void *, int, i64, void *, const int *, const int *, i64, i64, void *);
static int (*ireduce_scatter_block)(const void *, void *, int, i64, i64, i64, void *);
static int (*ibcast)(void *, int, i64, int, i64, void *);
static int (*ialltoallv)(const void *, const int *, const int *, i64, void *, const int *, const int *, i64, i64, void *);
static int (*test)(void *, int *, void *);
static int (*hold)(void), (*signals)(void);
static void (*let_go)(int), (*take_error)(void **, void **, void **);
static void *in_place, *error[3];

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static pending_t table[FULL];
static int count, running, stopped;
static record_t records[KEPT];
static i64 recorded;
static struct { const call_t *call; i64 number, code; } wrong;

static double now(void) { struct timespec t; clock_gettime(CLOCK_MONOTONIC, &t); return t.tv_sec + 1e-9 * t.tv_nsec; }
static void rest(long nanoseconds) { struct timespec t = {0, nanoseconds}; nanosleep(&t, 0); }

void setup_calls(void *const *f, void *place) {
    iallreduce = f[0]; iallgatherv = f[1]; ireduce_scatter_block = f[2]; ibcast = f[3]; ialltoallv = f[4]; test = f[5];
    hold = f[6]; signals = f[7]; let_go = f[8]; take_error = f[9]; in_place = place;
}

static void divide(const call_t *c, void *target) {
    i64 n = c->elements, d = c->divisor;
    if (c->element == FLOAT) { float *p = target; for (i64 i = 0; i < n; i++) p[i] /= (float)d; }
    if (c->element == DOUBLE) { double *p = target; for (i64 i = 0; i < n; i++) p[i] /= (double)d; }
    if (c->element == INT) { int *p = target; for (i64 i = 0; i < n; i++) { int q = p[i] / (int)d; p[i] = q - (p[i] % (int)d < 0); } }
    if (c->element == LONG) { i64 *p = target; for (i64 i = 0; i < n; i++) { i64 q = p[i] / d; p[i] = q - (p[i] % d < 0); } }
}

/* Test a call once; the mutex is held. */
static int poll(pending_t *p) {
    char status[128];
    int flag = 0;
    if (p->done) return 1;
    p->code = test(&p->request, &flag, status);
    if (!flag && !p->code) return 0;
    if (p->call->divisor > 1 && !p->code) divide(p->call, p->target);
    p->ended = now();
    free(p->copy);
    p->copy = 0;
    return p->done = 1;
}

static void *keep_going(void *unused) {
    pthread_mutex_lock(&mutex);
    for (;;) {
        int left = 0;
        for (int i = 0; i < count && !stopped; i++) left += !poll(table + i);
        if (!left || stopped) { pthread_cond_wait(&changed, &mutex); continue; }
        pthread_mutex_unlock(&mutex);
        rest(300000);
        pthread_mutex_lock(&mutex);
    }
    return 0;
}

static void say(const group_t *g, const char *where, const call_t *c, i64 number) {
    if (g->page) snprintf(g->page, g->room, "%s %s #%ld of group %s in a compiled graph", where, c->name, number, g->name);
}

static int start(const call_t *c, pending_t *p, const void *source) {
    i64 comm = c->group->handle, n = c->elements;
    if (c->kind == ALL_REDUCE) return iallreduce(in_place, p->target, n, c->datatype, c->op, comm, &p->request);
    if (c->kind == BROADCAST) return ibcast(p->target, n, c->datatype, c->root, comm, &p->request);
    i64 bytes = c->kind == REDUCE_SCATTER ? c->nbytes : 0;
    if (c->kind == ALL_GATHER) bytes = n;
    if (c->kind == ALL_TO_ALL) for (i64 r = 0; r < c->group->size; r++) bytes += c->sent[r];
    p->copy = malloc(bytes + 1); /* what is sent may be overwritten while the call is under way */
    if (!p->copy) return -1;
    memcpy(p->copy, source, bytes);
    if (c->kind == ALL_GATHER)
        return iallgatherv(p->copy, n, c->datatype, p->target, c->received, c->received_at, c->datatype, comm, &p->request);
    if (c->kind == REDUCE_SCATTER) return ireduce_scatter_block(p->copy, p->target, n, c->datatype, c->op, comm, &p->request);
    return ialltoallv(p->copy, c->sent, c->sent_at, c->datatype, p->target, c->received, c->received_at, c->datatype, comm, &p->request);
}

static i64 fail(const call_t *c, i64 number, i64 what, i64 code) {
    wrong.call = c; wrong.number = number; wrong.code = code;
    return what;
}

i64 await_target(void *target);

i64 begin_call(const call_t *c, const void *source, void *target) {
    if (count == FULL) { i64 code = await_target(table[0].target); if (code) return code; }
    pthread_mutex_lock(&mutex);
    pending_t *p = table + count;
    memset(p, 0, sizeof *p);
    p->call = c; p->target = target; p->began = now();
    p->number = ++*c->group->count;
    say(c->group, "in", c, p->number);
    int code = start(c, p, source);
    if (code) { free(p->copy); pthread_mutex_unlock(&mutex); return fail(c, p->number, REFUSED, code); }
    count++;
    if (!running) { pthread_t thread; running = !pthread_create(&thread, 0, keep_going, 0); if (running) pthread_detach(thread); }
    pthread_cond_signal(&changed);
    pthread_mutex_unlock(&mutex);
    return 0;
}

/* Take a call that is complete out of the table; the mutex is held. */
static i64 over(int i) {
    pending_t p = table[i];
    memmove(table + i, table + i + 1, (--count - i) * sizeof *table);
    record_t *r = records + recorded++ % KEPT;
    r->call = p.call; r->number = p.number; r->nbytes = p.call->nbytes; r->began = p.began; r->ended = p.ended;
    if (*p.call->group->count == p.number) say(p.call->group, "after", p.call, p.number);
    return p.code ? fail(p.call, p.number, REFUSED, p.code) : 0;
}

/* Run Python's handlers of signals that came; what one raises is kept for Python to raise again. */
static int interrupted(void) {
    int state = hold(), code = signals();
    if (code) take_error(error, error + 1, error + 2);
    let_go(state);
    return code;
}

i64 await_target(void *target) {
    double began = now(), looked = began;
    for (i64 round = 0;; round++) {
        pthread_mutex_lock(&mutex);
        int i = 0;
        while (i < count && table[i].target != target) i++;
        if (i == count) { pthread_mutex_unlock(&mutex); return 0; }
        const call_t *c = table[i].call;
        i64 number = table[i].number;
        if (poll(table + i)) { i64 code = over(i); pthread_mutex_unlock(&mutex); return code; }
        pthread_mutex_unlock(&mutex);
        if (round < 200) continue;
        double t = now();
        if (t - began > c->group->timeout) return fail(c, number, LATE, 0);
        if (t - looked > 0.1) { looked = t; if (interrupted()) return fail(c, number, INTERRUPTED, 0); }
        rest(round < 1000 ? 50000 : round < 2000 ? 200000 : 1000000);
    }
}

/* For Python: 1 where a call writes `target`; the last failure; records from a number on; and the end. */
int is_pending(void *target) {
    pthread_mutex_lock(&mutex);
    int i = 0;
    while (i < count && table[i].target != target) i++;
    int found = i < count;
    pthread_mutex_unlock(&mutex);
    return found;
}

void *const *kept_error(void) { return error; }

void last_failure(const call_t **call, i64 *number, i64 *code) { *call = wrong.call; *number = wrong.number; *code = wrong.code; }

i64 read_records(record_t *out, i64 from, i64 room) {
    pthread_mutex_lock(&mutex);
    i64 first = recorded - KEPT > from ? recorded - KEPT : from, n = 0;
    for (; first + n < recorded && n < room; n++) out[n] = records[(first + n) % KEPT];
    pthread_mutex_unlock(&mutex);
    return n;
}

i64 count_records(void) { return recorded; }

void stop_calls(int stop) {
    pthread_mutex_lock(&mutex);
    stopped = stop;
    if (stop) count = 0;
    pthread_cond_signal(&changed);
    pthread_mutex_unlock(&mutex);
}
