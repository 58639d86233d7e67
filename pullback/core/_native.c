/* Rows and columns in C: what NumPy needs several passes for, or cannot vectorize.
 *
 * Functions take arrays through the buffer protocol: row-major float32 or float64, results in arrays of the same dtype.
 * Each returns True when it did the work, False where the arrays are not of that kind (the caller then uses NumPy).
 * Large work is done without the GIL and shared with a small pool of threads, which wait awake for a moment after work,
 * since more often follows at once. Results do not depend on the number of threads.
 *
 * Sums are of many short float chains whose results are added in double. NaN and infinity mean what they mean; a NaN
 * among the elements is the extreme. The templates below are read twice, for float and for double.
 */
#ifndef T
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define INLINE static inline __attribute__((always_inline))
#if defined(__x86_64__) && defined(__GLIBC__) && defined(__GNUC__) && !defined(__clang__)
#define CLONES __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define CLONES
#endif
#define LANES 32
#define BLOCK 4096   /* elements that are added in one dtype before going into the double total */
#define COLUMNS 256  /* columns that are worked on together */
#define ROWS 64      /* rows of them that are added before going into the double totals */
#define QUIET 16384  /* elements from which on the GIL is released */
#define CHUNK 65536  /* elements that a thread takes at a time */
#define MOST 63      /* threads in the pool */
#define AWAKE 20000  /* looks at the door before a thread goes to sleep */

enum { SUM, MAX, MIN, MEAN };

#define JOIN_(a, b) a##b
#define JOIN(a, b) JOIN_(a, b)
#define N(name) JOIN(name, SUFFIX)

#define T float
#define BITS int32_t
#define SUFFIX _f
#define EXPONENT_SHIFT 23
#define EXPONENT_BIAS 127
#define MAGIC 12582912.0f
#define LOWEST (-104.0f)
#define LN2_HIGH 0.693359375f
#define LN2_LOW (-2.12194440e-4f)
#include "_native.c"
#undef T
#undef BITS
#undef SUFFIX
#undef EXPONENT_SHIFT
#undef EXPONENT_BIAS
#undef MAGIC
#undef LOWEST
#undef LN2_HIGH
#undef LN2_LOW

#define DOUBLE
#define T double
#define BITS int64_t
#define SUFFIX _d
#define EXPONENT_SHIFT 52
#define EXPONENT_BIAS 1023
#define MAGIC 6755399441055744.0
#define LOWEST (-746.0)
#define LN2_HIGH 6.93145751953125e-1
#define LN2_LOW 1.42860682030941723212e-6
#include "_native.c"
#undef T
#undef SUFFIX

/* ---- threads: parts of `rows`, each of `step` of them, taken by whoever is free */
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

/* how many rows of a length make a chunk */
static Py_ssize_t rows_of(Py_ssize_t length) { return length >= CHUNK ? 1 : CHUNK / (length > 0 ? length : 1); }

#define T float
#define SUFFIX _f
#define JOBS
#include "_native.c"
#undef T
#undef SUFFIX
#define T double
#define SUFFIX _d
#include "_native.c"
#undef T
#undef SUFFIX

/* ---- arrays from Python */
typedef struct {
    Py_buffer view;
    int held;
} Array;

static int take(PyObject *o, Array *a, int writable) {
    a->held = PyObject_GetBuffer(o, &a->view, PyBUF_ND | PyBUF_FORMAT | (writable ? PyBUF_WRITABLE : 0)) == 0;
    if (!a->held)
        PyErr_Clear();
    return a->held;
}

static void drop(Array *a) {
    if (a->held)
        PyBuffer_Release(&a->view);
}

/* 'f' or 'd', or 0 for anything else */
static char kind_of(const Array *a) {
    const char *f = a->view.format;
    return f && (f[0] == 'f' || f[0] == 'd') && !f[1] ? f[0] : 0;
}

static Py_ssize_t count(const Array *a) { return a->view.len / a->view.itemsize; }

#define RUN(function, job, elements, threads)  \
    if ((elements) >= QUIET) {                   \
        Py_BEGIN_ALLOW_THREADS                   \
        function(&job, threads);                 \
        Py_END_ALLOW_THREADS                     \
    } else {                                     \
        function(&job, 1);                       \
    }

/* softmax(source, result, logarithm, n, inner, threads): along the middle of (outer, n, inner) */
static PyObject *py_softmax(PyObject *self, PyObject *const *args, Py_ssize_t nargs) {
    Array a = {.held = 0}, out = {.held = 0};
    int done = 0;
    if (nargs != 6)
        return PyErr_Format(PyExc_TypeError, "softmax takes 6 arguments");
    Py_ssize_t n = PyLong_AsSsize_t(args[3]), inner = PyLong_AsSsize_t(args[4]);
    long threads = PyLong_AsLong(args[5]);
    if (PyErr_Occurred())
        return NULL;
    if (n > 0 && inner > 0 && take(args[0], &a, 0) && take(args[1], &out, 1) && kind_of(&a) && kind_of(&a) == kind_of(&out)) {
        Py_ssize_t outer = count(&a) / (n * inner);
        int logarithm = args[2] == Py_True;
        done = outer * n * inner == count(&a) && count(&out) == count(&a);
        if (done && kind_of(&a) == 'f') {
            Job_f job = {.x = a.view.buf, .out = out.view.buf, .outer = outer, .n = n, .inner = inner, .kind = logarithm};
            RUN(softmax_all_f, job, count(&a), (int)threads)
        } else if (done) {
            Job_d job = {.x = a.view.buf, .out = out.view.buf, .outer = outer, .n = n, .inner = inner, .kind = logarithm};
            RUN(softmax_all_d, job, count(&a), (int)threads)
        }
    }
    drop(&a);
    drop(&out);
    return PyBool_FromLong(done);
}

/* layer_norm(source, result, weight or None, bias or None, mean, rstd, eps, threads): as many rows as mean is long */
static PyObject *py_layer_norm(PyObject *self, PyObject *const *args, Py_ssize_t nargs) {
    Array given[6];
    int done = 1;
    memset(given, 0, sizeof given);
    if (nargs != 8)
        return PyErr_Format(PyExc_TypeError, "layer_norm takes 8 arguments");
    double eps = PyFloat_AsDouble(args[6]);
    long threads = PyLong_AsLong(args[7]);
    if (PyErr_Occurred())
        return NULL;
    for (int i = 0; i < 6 && done; i++)
        if ((i != 2 && i != 3) || args[i] != Py_None)
            done = take(args[i], &given[i], i == 1 || i > 3) && kind_of(&given[i]) && kind_of(&given[i]) == kind_of(&given[0]);
    if (done) {
        Py_ssize_t total = count(&given[0]), rows = count(&given[4]), n = rows ? total / rows : 0;
        void *buffers[6];
        for (int i = 0; i < 6; i++)
            buffers[i] = given[i].held ? given[i].view.buf : NULL;
        done = count(&given[1]) == total && count(&given[5]) == rows && rows * n == total &&
               (!buffers[2] || count(&given[2]) == n) && (!buffers[3] || count(&given[3]) == n);
        if (done && kind_of(&given[0]) == 'f') {
            Job_f job = {.x = buffers[0], .out = buffers[1], .w = buffers[2], .b = buffers[3], .mean = buffers[4], .rstd = buffers[5],
                         .outer = rows, .n = n, .eps = eps};
            RUN(layer_norm_all_f, job, total, (int)threads)
        } else if (done) {
            Job_d job = {.x = buffers[0], .out = buffers[1], .w = buffers[2], .b = buffers[3], .mean = buffers[4], .rstd = buffers[5],
                         .outer = rows, .n = n, .eps = eps};
            RUN(layer_norm_all_d, job, total, (int)threads)
        }
    }
    for (int i = 0; i < 6; i++)
        drop(&given[i]);
    return PyBool_FromLong(done);
}

/* reduce(source, result, kind, n, inner, threads): source is (outer, n, inner), result (outer, inner) */
static PyObject *py_reduce(PyObject *self, PyObject *const *args, Py_ssize_t nargs) {
    Array a = {.held = 0}, out = {.held = 0};
    int done = 0;
    if (nargs != 6)
        return PyErr_Format(PyExc_TypeError, "reduce takes 6 arguments");
    long kind = PyLong_AsLong(args[2]), threads = PyLong_AsLong(args[5]);
    Py_ssize_t n = PyLong_AsSsize_t(args[3]), inner = PyLong_AsSsize_t(args[4]);
    if (PyErr_Occurred())
        return NULL;
    if (n > 0 && inner > 0 && take(args[0], &a, 0) && take(args[1], &out, 1) && kind_of(&a) && kind_of(&a) == kind_of(&out)) {
        Py_ssize_t outer = count(&a) / (n * inner);
        done = outer * n * inner == count(&a) && outer * inner == count(&out);
        if (done && kind_of(&a) == 'f') {
            Job_f job = {.x = a.view.buf, .out = out.view.buf, .outer = outer, .n = n, .inner = inner, .kind = (int)kind};
            RUN(reduce_all_f, job, count(&a), (int)threads)
        } else if (done) {
            Job_d job = {.x = a.view.buf, .out = out.view.buf, .outer = outer, .n = n, .inner = inner, .kind = (int)kind};
            RUN(reduce_all_d, job, count(&a), (int)threads)
        }
    }
    drop(&a);
    drop(&out);
    return PyBool_FromLong(done);
}

/* softmax_backward(g, result of softmax, gradient, logarithm, n, threads): rows of length n */
static PyObject *py_softmax_backward(PyObject *self, PyObject *const *args, Py_ssize_t nargs) {
    Array given[3];
    int done = 1;
    memset(given, 0, sizeof given);
    if (nargs != 6)
        return PyErr_Format(PyExc_TypeError, "softmax_backward takes 6 arguments");
    Py_ssize_t n = PyLong_AsSsize_t(args[4]);
    long threads = PyLong_AsLong(args[5]);
    if (PyErr_Occurred())
        return NULL;
    for (int i = 0; i < 3 && done; i++)
        done = take(args[i], &given[i], i == 2) && kind_of(&given[i]) && kind_of(&given[i]) == kind_of(&given[0]) &&
               count(&given[i]) == count(&given[0]);
    done = done && n > 0 && count(&given[0]) % n == 0;
    if (done && kind_of(&given[0]) == 'f') {
        Job_f job = {.g = given[0].view.buf, .x = given[1].view.buf, .out = given[2].view.buf, .outer = count(&given[0]) / n, .n = n,
                     .kind = args[3] == Py_True};
        RUN(softmax_backward_all_f, job, count(&given[0]), (int)threads)
    } else if (done) {
        Job_d job = {.g = given[0].view.buf, .x = given[1].view.buf, .out = given[2].view.buf, .outer = count(&given[0]) / n, .n = n,
                     .kind = args[3] == Py_True};
        RUN(softmax_backward_all_d, job, count(&given[0]), (int)threads)
    }
    for (int i = 0; i < 3; i++)
        drop(&given[i]);
    return PyBool_FromLong(done);
}

/* layer_norm_backward(g, source, weight or None, mean, rstd, gradient or None, weight's and bias's gradients or None, threads) */
static PyObject *py_layer_norm_backward(PyObject *self, PyObject *const *args, Py_ssize_t nargs) {
    Array given[8];
    int done = 1;
    memset(given, 0, sizeof given);
    if (nargs != 9)
        return PyErr_Format(PyExc_TypeError, "layer_norm_backward takes 9 arguments");
    long threads = PyLong_AsLong(args[8]);
    if (PyErr_Occurred())
        return NULL;
    for (int i = 0; i < 8 && done; i++)
        if (args[i] != Py_None)
            done = take(args[i], &given[i], i > 4) && kind_of(&given[i]) && kind_of(&given[i]) == kind_of(&given[0]);
    done = done && given[0].held && given[1].held && given[3].held && given[4].held;
    if (done) {
        Py_ssize_t total = count(&given[0]), rows = count(&given[3]), n = rows ? total / rows : 0;
        void *v[8];
        for (int i = 0; i < 8; i++)
            v[i] = given[i].held ? given[i].view.buf : NULL;
        done = rows * n == total && count(&given[1]) == total && count(&given[4]) == rows && (!v[2] || count(&given[2]) == n) &&
               (!v[5] || count(&given[5]) == total) && !v[6] == !v[7] && (!v[6] || (count(&given[6]) == n && count(&given[7]) == n));
        if (done && kind_of(&given[0]) == 'f') {
            Job_f job = {.g = v[0], .x = v[1], .w = v[2], .mean = v[3], .rstd = v[4], .out = v[5], .dw = v[6], .db = v[7], .outer = rows, .n = n};
            RUN(layer_norm_backward_all_f, job, total, (int)threads)
        } else if (done) {
            Job_d job = {.g = v[0], .x = v[1], .w = v[2], .mean = v[3], .rstd = v[4], .out = v[5], .dw = v[6], .db = v[7], .outer = rows, .n = n};
            RUN(layer_norm_backward_all_d, job, total, (int)threads)
        }
    }
    for (int i = 0; i < 8; i++)
        drop(&given[i]);
    return PyBool_FromLong(done);
}

/* cumsum(source, result, n, inner, threads): along the middle of (outer, n, inner) */
static PyObject *py_cumsum(PyObject *self, PyObject *const *args, Py_ssize_t nargs) {
    Array a = {.held = 0}, out = {.held = 0};
    int done = 0;
    if (nargs != 5)
        return PyErr_Format(PyExc_TypeError, "cumsum takes 5 arguments");
    Py_ssize_t n = PyLong_AsSsize_t(args[2]), inner = PyLong_AsSsize_t(args[3]);
    long threads = PyLong_AsLong(args[4]);
    if (PyErr_Occurred())
        return NULL;
    if (n > 0 && inner > 0 && take(args[0], &a, 0) && take(args[1], &out, 1) && kind_of(&a) && kind_of(&a) == kind_of(&out)) {
        Py_ssize_t outer = count(&a) / (n * inner);
        done = outer * n * inner == count(&a) && count(&out) == count(&a);
        if (done && kind_of(&a) == 'f') {
            Job_f job = {.x = a.view.buf, .out = out.view.buf, .outer = outer, .n = n, .inner = inner};
            RUN(cumsum_all_f, job, count(&a), (int)threads)
        } else if (done) {
            Job_d job = {.x = a.view.buf, .out = out.view.buf, .outer = outer, .n = n, .inner = inner};
            RUN(cumsum_all_d, job, count(&a), (int)threads)
        }
    }
    drop(&a);
    drop(&out);
    return PyBool_FromLong(done);
}

/* topk(source, values, places, n, k, largest, threads): places are int64 */
static PyObject *py_topk(PyObject *self, PyObject *const *args, Py_ssize_t nargs) {
    Array a = {.held = 0}, out = {.held = 0}, at = {.held = 0};
    int done = 0;
    if (nargs != 7)
        return PyErr_Format(PyExc_TypeError, "topk takes 7 arguments");
    Py_ssize_t n = PyLong_AsSsize_t(args[3]), k = PyLong_AsSsize_t(args[4]);
    long threads = PyLong_AsLong(args[6]);
    if (PyErr_Occurred())
        return NULL;
    if (k > 0 && k <= n && take(args[0], &a, 0) && take(args[1], &out, 1) && take(args[2], &at, 1) && kind_of(&a) &&
        kind_of(&a) == kind_of(&out)) {
        Py_ssize_t rows = count(&a) / n;
        int largest = args[5] == Py_True;
        done = rows * n == count(&a) && rows * k == count(&out) && at.view.itemsize == 8 && count(&at) == count(&out);
        if (done && kind_of(&a) == 'f') {
            Job_f job = {.x = a.view.buf, .out = out.view.buf, .places = at.view.buf, .outer = rows, .n = n, .inner = k, .kind = largest};
            RUN(topk_all_f, job, count(&a), (int)threads)
        } else if (done) {
            Job_d job = {.x = a.view.buf, .out = out.view.buf, .places = at.view.buf, .outer = rows, .n = n, .inner = k, .kind = largest};
            RUN(topk_all_d, job, count(&a), (int)threads)
        }
    }
    drop(&a);
    drop(&out);
    drop(&at);
    return PyBool_FromLong(done);
}

/* Several arrays of one dtype: those before `written` are read, None is allowed where `optional` has a bit. */
static int take_all(Array *given, PyObject *const *args, int n, int written, unsigned optional) {
    for (int i = 0; i < n; i++) {
        if (args[i] == Py_None && optional >> i & 1)
            continue;
        if (!take(args[i], &given[i], i >= written) || !kind_of(&given[i]) || kind_of(&given[i]) != kind_of(&given[0]))
            return 0;
    }
    return 1;
}

static void *buffer(const Array *a) { return a->held ? a->view.buf : NULL; }

/* Whether arrays that are there have a number of elements. */
static int sized(const Array *given, int first, int last, Py_ssize_t n) {
    for (int i = first; i < last; i++)
        if (given[i].held && count(&given[i]) != n)
            return 0;
    return 1;
}

#define CHANNEL_JOBS(function, ...)                                                                      \
    if (done && kind_of(&given[0]) == 'f') {                                                             \
        Job_f job = {.outer = outer, .n = channels, .inner = inner, __VA_ARGS__};                        \
        RUN(function##_f, job, outer *channels *inner, (int)threads)                                     \
    } else if (done) {                                                                                   \
        Job_d job = {.outer = outer, .n = channels, .inner = inner, __VA_ARGS__};                        \
        RUN(function##_d, job, outer *channels *inner, (int)threads)                                     \
    }

/* channels(what, arrays..., outer, channels, inner, threads): for x as (outer, channels, inner),
 *   "moments", x, mean, variance                                 writes mean and variance
 *   "scale", x, mean, scale, shift or None, out                  writes out
 *   "backward", g, x, mean, rstd, weight or None, sum, along, out or None   writes the last three */
static PyObject *py_channels(PyObject *self, PyObject *const *args, Py_ssize_t nargs) {
    Array given[8];
    memset(given, 0, sizeof given);
    const char *what = nargs >= 8 ? PyUnicode_AsUTF8(args[0]) : NULL;
    if (!what)
        return PyErr_Occurred() ? NULL : PyErr_Format(PyExc_TypeError, "channels takes at least 8 arguments");
    int n = (int)nargs - 5, done = 0;
    Py_ssize_t outer = PyLong_AsSsize_t(args[nargs - 4]), channels = PyLong_AsSsize_t(args[nargs - 3]),
               inner = PyLong_AsSsize_t(args[nargs - 2]), size = outer * channels * inner;
    long threads = PyLong_AsLong(args[nargs - 1]);
    if (PyErr_Occurred())
        return NULL;
    if (!strcmp(what, "moments") && n == 3) {
        done = take_all(given, args + 1, 3, 1, 0) && sized(given, 0, 1, size) && sized(given, 1, 3, channels);
        CHANNEL_JOBS(moments_all, .x = buffer(&given[0]), .mean = buffer(&given[1]), .rstd = buffer(&given[2]))
    } else if (!strcmp(what, "scale") && n == 5) {
        done = take_all(given, args + 1, 5, 4, 1 << 3) && sized(given, 0, 1, size) && sized(given, 1, 4, channels) && sized(given, 4, 5, size);
        CHANNEL_JOBS(scale_all, .x = buffer(&given[0]), .mean = buffer(&given[1]), .w = buffer(&given[2]), .b = buffer(&given[3]),
                     .out = buffer(&given[4]))
    } else if (!strcmp(what, "backward") && n == 8) {
        done = take_all(given, args + 1, 8, 5, 1 << 4 | 1 << 7) && sized(given, 0, 2, size) && sized(given, 2, 7, channels) &&
               sized(given, 7, 8, size);
        CHANNEL_JOBS(channels_backward_all, .g = buffer(&given[0]), .x = buffer(&given[1]), .mean = buffer(&given[2]),
                     .rstd = buffer(&given[3]), .w = buffer(&given[4]), .db = buffer(&given[5]), .dw = buffer(&given[6]),
                     .out = buffer(&given[7]))
    }
    for (int i = 0; i < 8; i++)
        drop(&given[i]);
    return PyBool_FromLong(done);
}

static PyMethodDef methods[] = {
    {"softmax", (PyCFunction)(void (*)(void))py_softmax, METH_FASTCALL, "softmax(source, result, logarithm, n, inner, threads) -> bool"},
    {"layer_norm", (PyCFunction)(void (*)(void))py_layer_norm, METH_FASTCALL,
     "layer_norm(source, result, weight, bias, mean, rstd, eps, threads) -> bool"},
    {"reduce", (PyCFunction)(void (*)(void))py_reduce, METH_FASTCALL, "reduce(source, result, kind, n, inner, threads) -> bool"},
    {"softmax_backward", (PyCFunction)(void (*)(void))py_softmax_backward, METH_FASTCALL,
     "softmax_backward(g, result, gradient, logarithm, n, threads) -> bool"},
    {"layer_norm_backward", (PyCFunction)(void (*)(void))py_layer_norm_backward, METH_FASTCALL,
     "layer_norm_backward(g, source, weight, mean, rstd, gradient, weight_gradient, bias_gradient, threads) -> bool"},
    {"cumsum", (PyCFunction)(void (*)(void))py_cumsum, METH_FASTCALL, "cumsum(source, result, n, inner, threads) -> bool"},
    {"topk", (PyCFunction)(void (*)(void))py_topk, METH_FASTCALL, "topk(source, values, places, n, k, largest, threads) -> bool"},
    {"channels", (PyCFunction)(void (*)(void))py_channels, METH_FASTCALL,
     "channels(what, arrays..., outer, channels, inner, threads) -> bool"},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, "_native", "Kernels in C; see core.native.", -1, methods, NULL, NULL, NULL, NULL};

PyMODINIT_FUNC PyInit__native(void) {
    pthread_atfork(NULL, NULL, after_fork);
    return PyModule_Create(&module);
}

#elif defined(JOBS) /* ---- templates, second reading: what a thread does with a range of rows */

typedef struct {
    const T *x, *w, *b, *g;
    T *out, *mean, *rstd, *dw, *db;
    Py_ssize_t outer, n, inner, step;
    int64_t *places;
    int kind;
    double eps;
} N(Job);

static void N(softmax_part)(void *data, Py_ssize_t first, Py_ssize_t last) {
    N(Job) *j = data;
    N(softmax)(j->x + first * j->n * j->inner, j->out + first * j->n * j->inner, last - first, j->n, j->inner, j->kind);
}

static void N(layer_norm_part)(void *data, Py_ssize_t first, Py_ssize_t last) {
    N(Job) *j = data;
    N(layer_norm)(j->x + first * j->n, j->out + first * j->n, j->w, j->b, j->mean + first, j->rstd + first, last - first, j->n, j->eps);
}

static void N(reduce_part)(void *data, Py_ssize_t first, Py_ssize_t last) {
    N(Job) *j = data;
    N(reduce)(j->x + first * j->n * j->inner, j->out + first * j->inner, j->kind, last - first, j->n, j->inner);
}

/* one of several results of a single row of results, each from a range of n */
static void N(partial)(void *data, Py_ssize_t first, Py_ssize_t last) {
    N(Job) *j = data;
    N(reduce)(j->x + first * j->inner, j->out + first / j->step * j->inner, j->kind, 1, last - first, j->inner);
}

static void N(softmax_backward_part)(void *data, Py_ssize_t first, Py_ssize_t last) {
    N(Job) *j = data;
    Py_ssize_t at = first * j->n;
    N(softmax_backward)(j->g + at, j->x + at, j->out + at, last - first, j->n, j->kind);
}

static void N(layer_norm_backward_part)(void *data, Py_ssize_t first, Py_ssize_t last) {
    N(Job) *j = data;
    Py_ssize_t at = first * j->n;
    N(layer_norm_backward)(j->g + at, j->x + at, j->w, j->mean + first, j->rstd + first, j->out + at, last - first, j->n);
}

static void N(parameter_part)(void *data, Py_ssize_t first, Py_ssize_t last) {
    N(Job) *j = data;
    N(parameter_sums)(j->g, j->x, j->mean, j->rstd, j->dw, j->db, j->outer, j->n, first, last);
}

static void N(cumsum_part)(void *data, Py_ssize_t first, Py_ssize_t last) {
    N(Job) *j = data;
    Py_ssize_t at = first * j->n * j->inner;
    N(cumsum)(j->x + at, j->out + at, last - first, j->n, j->inner);
}

static void N(softmax_backward_all)(N(Job) *j, int threads) { share(N(softmax_backward_part), j, j->outer, rows_of(j->n), threads); }

static void N(layer_norm_backward_all)(N(Job) *j, int threads) {
    if (j->out)
        share(N(layer_norm_backward_part), j, j->outer, rows_of(j->n), threads);
    if (j->dw)
        share(N(parameter_part), j, j->n, COLUMNS, threads);
}

/* channels: w is the weight or scale, b the shift, dw and db the sums; outer, n, inner are (outer, channels, inner) */
static void N(moments_part)(void *data, Py_ssize_t first, Py_ssize_t last) {
    N(Job) *j = data;
    N(channel_moments)(j->x, j->mean, j->rstd, j->outer, j->n, j->inner, first, last);
}

static void N(scale_part)(void *data, Py_ssize_t first, Py_ssize_t last) {
    N(Job) *j = data;
    N(channel_scale)(j->x, j->out, j->mean, j->w, j->b, j->n, j->inner, first, last);
}

static void N(sums_part)(void *data, Py_ssize_t first, Py_ssize_t last) {
    N(Job) *j = data;
    N(channel_sums)(j->g, j->x, j->mean, j->rstd, j->db, j->dw, j->outer, j->n, j->inner, first, last);
}

static void N(gradient_part)(void *data, Py_ssize_t first, Py_ssize_t last) {
    N(Job) *j = data;
    N(channel_gradient)(j->g, j->x, j->out, j->mean, j->rstd, j->w, j->db, j->dw, (double)j->outer * j->inner, j->n, j->inner, first, last);
}

static Py_ssize_t N(channel_step)(const N(Job) *j) { return j->inner > 1 ? rows_of(j->outer * j->inner) : COLUMNS; }

static void N(moments_all)(N(Job) *j, int threads) { share(N(moments_part), j, j->n, N(channel_step)(j), threads); }

static void N(scale_all)(N(Job) *j, int threads) {
    int rows = j->inner > 1;
    share(N(scale_part), j, rows ? j->outer * j->n : j->outer, rows_of(rows ? j->inner : j->n), threads);
}

static void N(channels_backward_all)(N(Job) *j, int threads) {
    int rows = j->inner > 1;
    share(N(sums_part), j, j->n, N(channel_step)(j), threads);
    if (j->out)
        share(N(gradient_part), j, rows ? j->outer * j->n : j->outer, rows_of(rows ? j->inner : j->n), threads);
}

static void N(topk_part)(void *data, Py_ssize_t first, Py_ssize_t last) {
    N(Job) *j = data;
    N(topk)(j->x + first * j->n, j->out + first * j->inner, j->places + first * j->inner, last - first, j->n, j->inner, j->kind);
}

static void N(topk_all)(N(Job) *j, int threads) { share(N(topk_part), j, j->outer, rows_of(j->n), threads); }

static void N(cumsum_all)(N(Job) *j, int threads) { share(N(cumsum_part), j, j->outer, rows_of(j->n * j->inner), threads); }

static void N(softmax_all)(N(Job) *j, int threads) { share(N(softmax_part), j, j->outer, rows_of(j->n * j->inner), threads); }

static void N(layer_norm_all)(N(Job) *j, int threads) { share(N(layer_norm_part), j, j->outer, rows_of(j->n), threads); }

static void N(reduce_all)(N(Job) *j, int threads) {
    Py_ssize_t step = rows_of(j->inner), parts = (j->n + step - 1) / step;
    T *results = j->outer == 1 && parts > 1 && j->kind != MEAN ? malloc(sizeof(T) * parts * j->inner) : NULL;
    if (!results) {
        share(N(reduce_part), j, j->outer, rows_of(j->n * j->inner), threads);
        return;
    }
    N(Job) part = *j;
    part.out = results, part.step = step;
    share(N(partial), &part, j->n, step, threads);
    N(reduce)(results, j->out, j->kind, 1, parts, j->inner);
    free(results);
}

#else /* ---- templates, first reading: rows and columns of a dtype */

/* exp(x) for x <= 0 (and NaN), to about one unit in the last place; denormal results are kept */
INLINE T N(exp_down)(T x) {
    T y = x < LOWEST ? LOWEST : x;
    T shifted = y * (T)1.44269504088896340736 + MAGIC;
    T whole = shifted - MAGIC;
    T r = (y - whole * LN2_HIGH) - whole * LN2_LOW;
    T p;
    BITS bits, magic;
    T magic_value = MAGIC;
#ifdef DOUBLE
    p = 1.0 / 6227020800.0;
    p = p * r + 1.0 / 479001600.0;
    p = p * r + 1.0 / 39916800.0;
    p = p * r + 1.0 / 3628800.0;
    p = p * r + 1.0 / 362880.0;
    p = p * r + 1.0 / 40320.0;
    p = p * r + 1.0 / 5040.0;
#else
    p = (T)(1.0 / 5040.0);
#endif
    p = p * r + (T)(1.0 / 720.0);
    p = p * r + (T)(1.0 / 120.0);
    p = p * r + (T)(1.0 / 24.0);
    p = p * r + (T)(1.0 / 6.0);
    p = p * r + (T)0.5;
    p = p * r + (T)1.0;
    p = p * r + (T)1.0;
    memcpy(&bits, &shifted, sizeof bits);
    memcpy(&magic, &magic_value, sizeof magic);
    BITS e = bits - magic;
    BITS half = e >> 1; /* two steps, because 2^e alone may be too small */
    BITS first = (half + EXPONENT_BIAS) << EXPONENT_SHIFT, second = (e - half + EXPONENT_BIAS) << EXPONENT_SHIFT;
    T a, b;
    memcpy(&a, &first, sizeof a);
    memcpy(&b, &second, sizeof b);
    return p * a * b;
}

INLINE double N(sum_row)(const T *x, Py_ssize_t n) {
    double total = 0;
    for (Py_ssize_t start = 0; start < n; start += BLOCK) {
        Py_ssize_t stop = start + BLOCK < n ? start + BLOCK : n, i = start;
        T lane[LANES] = {0};
        for (; i + LANES <= stop; i += LANES)
            for (int l = 0; l < LANES; l++)
                lane[l] += x[i + l];
        for (int l = 0; l < LANES; l++)
            total += lane[l];
        for (; i < stop; i++)
            total += x[i];
    }
    return total;
}

/* the sum of x (y - shift) */
INLINE double N(dot_row)(const T *x, const T *y, Py_ssize_t n, T shift) {
    double total = 0;
    for (Py_ssize_t start = 0; start < n; start += BLOCK) {
        Py_ssize_t stop = start + BLOCK < n ? start + BLOCK : n, i = start;
        T lane[LANES] = {0};
        for (; i + LANES <= stop; i += LANES)
            for (int l = 0; l < LANES; l++)
                lane[l] += x[i + l] * (y[i + l] - shift);
        for (int l = 0; l < LANES; l++)
            total += lane[l];
        for (; i < stop; i++)
            total += (double)x[i] * (y[i] - shift);
    }
    return total;
}

/* the largest (sign 1) or smallest (sign -1) element; NaN if there is one */
INLINE T N(extreme_row)(const T *x, Py_ssize_t n, T sign) {
    T best = sign * x[0], lane[LANES];
    BITS bad[LANES];
    Py_ssize_t i = 0;
    int nan = 0;
    if (n >= LANES) {
        for (int l = 0; l < LANES; l++) {
            lane[l] = sign * x[l];
            bad[l] = x[l] != x[l];
        }
        for (i = LANES; i + LANES <= n; i += LANES)
            for (int l = 0; l < LANES; l++) {
                T v = sign * x[i + l];
                lane[l] = v > lane[l] ? v : lane[l];
                bad[l] |= v != v;
            }
        for (int l = 0; l < LANES; l++) {
            best = lane[l] > best ? lane[l] : best;
            nan |= bad[l] != 0;
        }
    }
    for (; i < n; i++) {
        T v = sign * x[i];
        best = v > best ? v : best;
        nan |= v != v;
    }
    return nan || best != best ? (T)NAN : sign * best;
}

/* exp(x - top) into out (or nowhere), and the sum of it */
INLINE double N(exp_row)(const T *x, T *out, Py_ssize_t n, T top) {
    double total = 0;
    for (Py_ssize_t start = 0; start < n; start += BLOCK) {
        Py_ssize_t stop = start + BLOCK < n ? start + BLOCK : n, i = start;
        T lane[LANES] = {0};
        for (; i + LANES <= stop; i += LANES)
            for (int l = 0; l < LANES; l++) {
                T e = N(exp_down)(x[i + l] - top);
                lane[l] += e;
                if (out)
                    out[i + l] = e;
            }
        for (int l = 0; l < LANES; l++)
            total += lane[l];
        for (; i < stop; i++) {
            T e = N(exp_down)(x[i] - top);
            total += e;
            if (out)
                out[i] = e;
        }
    }
    return total;
}

INLINE void N(softmax_row)(const T *restrict x, T *restrict out, Py_ssize_t n, int logarithm) {
    T top = N(extreme_row)(x, n, (T)1);
    if (logarithm) {
        T shift = (T)log(N(exp_row)(x, NULL, n, top));
        for (Py_ssize_t i = 0; i < n; i++)
            out[i] = (x[i] - top) - shift;
    } else {
        T scale = (T)(1 / N(exp_row)(x, out, n, top));
        for (Py_ssize_t i = 0; i < n; i++)
            out[i] *= scale;
    }
}

INLINE void N(extreme_columns)(const T *x, T *out, Py_ssize_t n, Py_ssize_t inner, Py_ssize_t width, T sign) {
    BITS bad[COLUMNS];
    for (Py_ssize_t l = 0; l < width; l++) {
        out[l] = sign * x[l];
        bad[l] = out[l] != out[l];
    }
    for (Py_ssize_t i = 1; i < n; i++)
        for (Py_ssize_t l = 0; l < width; l++) {
            T v = sign * x[i * inner + l];
            out[l] = v > out[l] ? v : out[l];
            bad[l] |= v != v;
        }
    for (Py_ssize_t l = 0; l < width; l++)
        out[l] = bad[l] ? (T)NAN : sign * out[l];
}

INLINE void N(softmax_columns)(const T *restrict x, T *restrict out, Py_ssize_t n, Py_ssize_t inner, Py_ssize_t width, int logarithm) {
    T top[COLUMNS], scale[COLUMNS];
    double total[COLUMNS] = {0};
    N(extreme_columns)(x, top, n, inner, width, (T)1);
    for (Py_ssize_t start = 0; start < n; start += ROWS) {
        Py_ssize_t stop = start + ROWS < n ? start + ROWS : n;
        T part[COLUMNS] = {0};
        for (Py_ssize_t i = start; i < stop; i++)
            for (Py_ssize_t l = 0; l < width; l++) {
                T e = N(exp_down)(x[i * inner + l] - top[l]);
                part[l] += e;
                out[i * inner + l] = e;
            }
        for (Py_ssize_t l = 0; l < width; l++)
            total[l] += part[l];
    }
    for (Py_ssize_t l = 0; l < width; l++)
        scale[l] = logarithm ? (T)log(total[l]) : (T)(1 / total[l]);
    for (Py_ssize_t i = 0; i < n; i++)
        for (Py_ssize_t l = 0; l < width; l++)
            out[i * inner + l] = logarithm ? (x[i * inner + l] - top[l]) - scale[l] : out[i * inner + l] * scale[l];
}

CLONES static void N(softmax)(const T *x, T *out, Py_ssize_t outer, Py_ssize_t n, Py_ssize_t inner, int logarithm) {
    for (Py_ssize_t o = 0; o < outer; o++, x += n * inner, out += n * inner) {
        if (inner == 1)
            N(softmax_row)(x, out, n, logarithm);
        else
            for (Py_ssize_t c = 0; c < inner; c += COLUMNS)
                N(softmax_columns)(x + c, out + c, n, inner, inner - c < COLUMNS ? inner - c : COLUMNS, logarithm);
    }
}

INLINE double N(sum_squares)(const T *x, Py_ssize_t n, T mean) {
    double total = 0;
    for (Py_ssize_t start = 0; start < n; start += BLOCK) {
        Py_ssize_t stop = start + BLOCK < n ? start + BLOCK : n, i = start;
        T lane[LANES] = {0};
        for (; i + LANES <= stop; i += LANES)
            for (int l = 0; l < LANES; l++)
                lane[l] += (x[i + l] - mean) * (x[i + l] - mean);
        for (int l = 0; l < LANES; l++)
            total += lane[l];
        for (; i < stop; i++)
            total += (x[i] - mean) * (x[i] - mean);
    }
    return total;
}

INLINE void N(scale_row)(const T *restrict x, T *restrict out, const T *restrict w, const T *restrict b, Py_ssize_t n, T m, T r) {
    if (w && b)
        for (Py_ssize_t i = 0; i < n; i++)
            out[i] = (x[i] - m) * r * w[i] + b[i];
    else if (w)
        for (Py_ssize_t i = 0; i < n; i++)
            out[i] = (x[i] - m) * r * w[i];
    else if (b)
        for (Py_ssize_t i = 0; i < n; i++)
            out[i] = (x[i] - m) * r + b[i];
    else
        for (Py_ssize_t i = 0; i < n; i++)
            out[i] = (x[i] - m) * r;
}

CLONES static void N(layer_norm)(const T *x, T *out, const T *w, const T *b, T *mean, T *rstd, Py_ssize_t rows, Py_ssize_t n,
                                 double eps) {
    for (Py_ssize_t row = 0; row < rows; row++, x += n, out += n) {
        T m = mean[row] = (T)(N(sum_row)(x, n) / (double)n);
        T r = rstd[row] = (T)(1 / sqrt(N(sum_squares)(x, n, m) / (double)n + eps));
        N(scale_row)(x, out, w, b, n, m, r);
    }
}

INLINE void N(sum_columns)(const T *x, T *out, Py_ssize_t n, Py_ssize_t inner, Py_ssize_t width, double divisor) {
    double total[COLUMNS] = {0};
    for (Py_ssize_t start = 0; start < n; start += ROWS) {
        Py_ssize_t stop = start + ROWS < n ? start + ROWS : n;
        T part[COLUMNS] = {0};
        for (Py_ssize_t i = start; i < stop; i++)
            for (Py_ssize_t l = 0; l < width; l++)
                part[l] += x[i * inner + l];
        for (Py_ssize_t l = 0; l < width; l++)
            total[l] += part[l];
    }
    for (Py_ssize_t l = 0; l < width; l++)
        out[l] = (T)(total[l] / divisor);
}

/* the gradient of softmax (or of its logarithm) from g and its result y */
CLONES static void N(softmax_backward)(const T *restrict g, const T *restrict y, T *restrict out, Py_ssize_t rows, Py_ssize_t n, int logarithm) {
    for (Py_ssize_t row = 0; row < rows; row++, g += n, y += n, out += n) {
        T sum = (T)(logarithm ? N(sum_row)(g, n) : N(dot_row)(g, y, n, (T)0));
        if (logarithm)
            for (Py_ssize_t i = 0; i < n; i++)
                out[i] = g[i] - N(exp_down)(y[i]) * sum;
        else
            for (Py_ssize_t i = 0; i < n; i++)
                out[i] = y[i] * (g[i] - sum);
    }
}

/* the gradient of layer norm with respect to x */
CLONES static void N(layer_norm_backward)(const T *restrict g, const T *restrict x, const T *restrict w, const T *mean, const T *rstd,
                                          T *restrict out, Py_ssize_t rows, Py_ssize_t n) {
    for (Py_ssize_t row = 0; row < rows; row++, g += n, x += n, out += n) {
        T m = mean[row], r = rstd[row];
        for (Py_ssize_t i = 0; i < n; i++)
            out[i] = w ? g[i] * w[i] : g[i];
        T a = (T)(N(sum_row)(out, n) / (double)n);
        T b = (T)(N(dot_row)(out, x, n, m) * r / (double)n);
        for (Py_ssize_t i = 0; i < n; i++)
            out[i] = r * (out[i] - a - (x[i] - m) * r * b);
    }
}

/* sums over rows of g (x - mean) rstd and of g, for columns from first to last */
CLONES static void N(parameter_sums)(const T *g, const T *x, const T *mean, const T *rstd, T *dw, T *db, Py_ssize_t rows, Py_ssize_t n,
                                     Py_ssize_t first, Py_ssize_t last) {
    for (Py_ssize_t c = first; c < last; c += COLUMNS) {
        Py_ssize_t width = last - c < COLUMNS ? last - c : COLUMNS;
        double w[COLUMNS] = {0}, b[COLUMNS] = {0};
        for (Py_ssize_t start = 0; start < rows; start += ROWS) {
            Py_ssize_t stop = start + ROWS < rows ? start + ROWS : rows;
            T pw[COLUMNS] = {0}, pb[COLUMNS] = {0};
            for (Py_ssize_t i = start; i < stop; i++) {
                T m = mean[i], r = rstd[i];
                for (Py_ssize_t l = 0; l < width; l++) {
                    T v = g[i * n + c + l];
                    pb[l] += v;
                    pw[l] += v * ((x[i * n + c + l] - m) * r);
                }
            }
            for (Py_ssize_t l = 0; l < width; l++) {
                w[l] += pw[l];
                b[l] += pb[l];
            }
        }
        for (Py_ssize_t l = 0; l < width; l++) {
            dw[c + l] = (T)w[l];
            db[c + l] = (T)b[l];
        }
    }
}

/* whether a goes before b: by size, NaN being larger than any number */
INLINE int N(before)(T a, T b, int largest) { return largest ? a > b || (a != a && b == b) : a < b || (a == a && b != b); }

/* the k first in order and where they stand, the earlier first among equals */
CLONES static void N(topk)(const T *x, T *best, int64_t *at, Py_ssize_t rows, Py_ssize_t n, Py_ssize_t k, int largest) {
    for (Py_ssize_t row = 0; row < rows; row++, x += n, best += k, at += k) {
        Py_ssize_t have = 0;
        for (Py_ssize_t i = 0; i < n; i++) {
            T v = x[i];
            if (have == k && !N(before)(v, best[k - 1], largest))
                continue;
            Py_ssize_t j = have < k ? have++ : k - 1;
            for (; j > 0 && N(before)(v, best[j - 1], largest); j--) {
                best[j] = best[j - 1];
                at[j] = at[j - 1];
            }
            best[j] = v;
            at[j] = i;
        }
    }
}

/* ---- channels: x is (outer, channels, inner), and each channel has statistics of its own */
CLONES static void N(channel_moments)(const T *x, T *mean, T *variance, Py_ssize_t outer, Py_ssize_t channels, Py_ssize_t inner,
                                      Py_ssize_t first, Py_ssize_t last) {
    double n = (double)outer * inner;
    for (Py_ssize_t c = first; inner > 1 && c < last; c++) {
        double sum = 0, squares = 0;
        for (Py_ssize_t o = 0; o < outer; o++)
            sum += N(sum_row)(x + (o * channels + c) * inner, inner);
        T m = mean[c] = (T)(sum / n);
        for (Py_ssize_t o = 0; o < outer; o++)
            squares += N(sum_squares)(x + (o * channels + c) * inner, inner, m);
        variance[c] = (T)(squares / n);
    }
    for (Py_ssize_t c = first; inner == 1 && c < last; c += COLUMNS) {
        Py_ssize_t width = last - c < COLUMNS ? last - c : COLUMNS;
        double squares[COLUMNS] = {0};
        N(sum_columns)(x + c, mean + c, outer, channels, width, n);
        for (Py_ssize_t start = 0; start < outer; start += ROWS) {
            Py_ssize_t stop = start + ROWS < outer ? start + ROWS : outer;
            T part[COLUMNS] = {0};
            for (Py_ssize_t i = start; i < stop; i++)
                for (Py_ssize_t l = 0; l < width; l++) {
                    T d = x[i * channels + c + l] - mean[c + l];
                    part[l] += d * d;
                }
            for (Py_ssize_t l = 0; l < width; l++)
                squares[l] += part[l];
        }
        for (Py_ssize_t l = 0; l < width; l++)
            variance[c + l] = (T)(squares[l] / n);
    }
}

/* (x - mean) scale + shift, in rows of one channel each, or of all channels where inner is 1 */
CLONES static void N(channel_scale)(const T *restrict x, T *restrict out, const T *restrict mean, const T *restrict scale,
                                    const T *restrict shift, Py_ssize_t channels, Py_ssize_t inner, Py_ssize_t first, Py_ssize_t last) {
    for (Py_ssize_t row = first; row < last; row++) {
        if (inner > 1) {
            Py_ssize_t c = row % channels;
            T m = mean[c], k = scale[c], b = shift ? shift[c] : 0;
            for (Py_ssize_t i = 0; i < inner; i++)
                out[row * inner + i] = (x[row * inner + i] - m) * k + b;
        } else if (shift) {
            for (Py_ssize_t c = 0; c < channels; c++)
                out[row * channels + c] = (x[row * channels + c] - mean[c]) * scale[c] + shift[c];
        } else {
            for (Py_ssize_t c = 0; c < channels; c++)
                out[row * channels + c] = (x[row * channels + c] - mean[c]) * scale[c];
        }
    }
}

/* sums of g, and of g times the standardized x, for each channel */
CLONES static void N(channel_sums)(const T *g, const T *x, const T *mean, const T *rstd, T *sum, T *along, Py_ssize_t outer,
                                   Py_ssize_t channels, Py_ssize_t inner, Py_ssize_t first, Py_ssize_t last) {
    for (Py_ssize_t c = first; inner > 1 && c < last; c++) {
        double s = 0, a = 0;
        for (Py_ssize_t o = 0; o < outer; o++) {
            Py_ssize_t at = (o * channels + c) * inner;
            s += N(sum_row)(g + at, inner);
            a += N(dot_row)(g + at, x + at, inner, mean[c]);
        }
        sum[c] = (T)s;
        along[c] = (T)(a * rstd[c]);
    }
    for (Py_ssize_t c = first; inner == 1 && c < last; c += COLUMNS) {
        Py_ssize_t width = last - c < COLUMNS ? last - c : COLUMNS;
        double s[COLUMNS] = {0}, a[COLUMNS] = {0};
        for (Py_ssize_t start = 0; start < outer; start += ROWS) {
            Py_ssize_t stop = start + ROWS < outer ? start + ROWS : outer;
            T ps[COLUMNS] = {0}, pa[COLUMNS] = {0};
            for (Py_ssize_t i = start; i < stop; i++)
                for (Py_ssize_t l = 0; l < width; l++) {
                    T v = g[i * channels + c + l];
                    ps[l] += v;
                    pa[l] += v * (x[i * channels + c + l] - mean[c + l]);
                }
            for (Py_ssize_t l = 0; l < width; l++) {
                s[l] += ps[l];
                a[l] += pa[l];
            }
        }
        for (Py_ssize_t l = 0; l < width; l++) {
            sum[c + l] = (T)s[l];
            along[c + l] = (T)(a[l] * rstd[c + l]);
        }
    }
}

/* the gradient of x: w rstd (g - sum / n - standardized x * along / n) */
CLONES static void N(channel_gradient)(const T *restrict g, const T *restrict x, T *restrict out, const T *restrict mean,
                                       const T *restrict rstd, const T *restrict w, const T *restrict sum, const T *restrict along,
                                       double n, Py_ssize_t channels, Py_ssize_t inner, Py_ssize_t first, Py_ssize_t last) {
    T share = (T)(1 / n);
    for (Py_ssize_t row = first; row < last; row++) {
        if (inner > 1) {
            Py_ssize_t c = row % channels;
            T m = mean[c], k = w ? rstd[c] * w[c] : rstd[c], a = sum[c] * share, b = along[c] * share * rstd[c];
            for (Py_ssize_t i = row * inner; i < (row + 1) * inner; i++)
                out[i] = k * (g[i] - a - (x[i] - m) * b);
        } else {
            for (Py_ssize_t c = 0; c < channels; c++) {
                Py_ssize_t i = row * channels + c;
                T k = w ? rstd[c] * w[c] : rstd[c];
                out[i] = k * (g[i] - sum[c] * share - (x[i] - mean[c]) * (along[c] * share * rstd[c]));
            }
        }
    }
}

/* sums of all prefixes of four rows at once, since each row is one long chain of additions */
INLINE void N(cumsum_rows)(const T *x, T *out, Py_ssize_t rows, Py_ssize_t n) {
    Py_ssize_t row = 0;
    for (; row + 4 <= rows; row += 4, x += 4 * n, out += 4 * n) {
        double total[4] = {0};
        for (Py_ssize_t i = 0; i < n; i++)
            for (int l = 0; l < 4; l++)
                out[l * n + i] = (T)(total[l] += x[l * n + i]);
    }
    for (; row < rows; row++, x += n, out += n) {
        double total = 0;
        for (Py_ssize_t i = 0; i < n; i++)
            out[i] = (T)(total += x[i]);
    }
}

INLINE void N(cumsum_columns)(const T *x, T *out, Py_ssize_t n, Py_ssize_t inner, Py_ssize_t width) {
    double total[COLUMNS] = {0};
    for (Py_ssize_t i = 0; i < n; i++)
        for (Py_ssize_t l = 0; l < width; l++)
            out[i * inner + l] = (T)(total[l] += x[i * inner + l]);
}

/* sums of all prefixes along the middle of (outer, n, inner) */
CLONES static void N(cumsum)(const T *x, T *out, Py_ssize_t outer, Py_ssize_t n, Py_ssize_t inner) {
    if (inner == 1) {
        N(cumsum_rows)(x, out, outer, n);
        return;
    }
    for (Py_ssize_t o = 0; o < outer; o++, x += n * inner, out += n * inner)
        for (Py_ssize_t c = 0; c < inner; c += COLUMNS)
            N(cumsum_columns)(x + c, out + c, n, inner, inner - c < COLUMNS ? inner - c : COLUMNS);
}

CLONES static void N(reduce)(const T *x, T *out, int kind, Py_ssize_t outer, Py_ssize_t n, Py_ssize_t inner) {
    T sign = kind == MIN ? (T)-1 : (T)1;
    double divisor = kind == MEAN ? (double)n : 1;
    for (Py_ssize_t o = 0; o < outer; o++, x += n * inner, out += inner) {
        if (inner == 1) {
            *out = kind == SUM || kind == MEAN ? (T)(N(sum_row)(x, n) / divisor) : N(extreme_row)(x, n, sign);
            continue;
        }
        for (Py_ssize_t c = 0; c < inner; c += COLUMNS) {
            Py_ssize_t width = inner - c < COLUMNS ? inner - c : COLUMNS;
            if (kind == SUM || kind == MEAN)
                N(sum_columns)(x + c, out + c, n, inner, width, divisor);
            else
                N(extreme_columns)(x + c, out + c, n, inner, width, sign);
        }
    }
}
#endif
