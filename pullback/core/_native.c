/* Rows and columns in C: what NumPy needs several passes for, or cannot vectorize.
 *
 * Functions take arrays through the buffer protocol: row-major float32 or float64, results in arrays of the same dtype.
 * Each returns True when it did the work, False where the arrays are not of that kind (the caller then uses NumPy).
 * Large work is done without the GIL and shared with a pool of threads. Results do not depend on the number of threads.
 * NaN and infinity mean what they mean. The templates (native_*.h) are read twice, for float and for double
 * (that of the first few of each row for integers too).
 */
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define INLINE static inline __attribute__((always_inline))
#if defined(__x86_64__) && defined(__GLIBC__) && defined(__GNUC__) && !defined(__clang__)
#define CLONES __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define CLONES
#endif
#define LANES 32     /* chains that are added up side by side */
#define BLOCK 4096   /* elements that are added in one dtype before going into the double total */
#define COLUMNS 256  /* columns that are worked on together */
#define NARROW 128   /* elements that rows of few columns are taken in at a time */
#define ROWS 64      /* rows of them that are added before going into the double totals */
#define QUIET 16384  /* elements from which on the GIL is released */
#define CHUNK 16384  /* elements that a thread takes at a time */
#define PART 65536   /* elements of one long row that are reduced by themselves: what it comes to depends on it */

enum { SUM, MAX, MIN, MEAN };

#include "native_pool.h"

/* part(job, first, last) on `step` rows at a time, by several threads */
static void share(Part part, void *job, Py_ssize_t rows, Py_ssize_t step, int threads) {
    Py_ssize_t parts = (rows + step - 1) / step;
    if (threads > POOL_MOST)
        threads = POOL_MOST;
    if (threads > parts)
        threads = (int)parts;
    if (threads < 2 || pthread_mutex_trylock(&pool.owner)) {
        for (Py_ssize_t first = 0; first < rows; first += step)
            part(job, first, first + step < rows ? first + step : rows);
        return;
    }
    pool_run(part, job, 0, rows, step, threads);
}

/* how many rows of a length make a chunk */
static Py_ssize_t rows_of(Py_ssize_t length) { return length >= CHUNK ? 1 : CHUNK / (length > 0 ? length : 1); }

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
#include "native_rows.h"
#include "native_channels.h"
#include "native_jobs.h"
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
#include "native_rows.h"
#include "native_channels.h"
#include "native_jobs.h"
#undef T
#undef SUFFIX

typedef struct {
    const void *x;
    void *best;
    int64_t *places;
    Py_ssize_t rows, n, k;
    int largest;
} Tops;

#define T float
#define SUFFIX _f
#include "native_tops.h"
#define T double
#define SUFFIX _d
#include "native_tops.h"
#define T int64_t
#define SUFFIX _i64
#include "native_tops.h"
#define T int32_t
#define SUFFIX _i32
#include "native_tops.h"
#define T int16_t
#define SUFFIX _i16
#include "native_tops.h"
#define T int8_t
#define SUFFIX _i8
#include "native_tops.h"
#define T uint8_t
#define SUFFIX _u8
#include "native_tops.h"

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

/* reducers(): where the loops of reduce are, for other extensions: sums that they form are rounded as these are */
static PyObject *py_reducers(PyObject *self, PyObject *none) {
    PyObject *single = PyLong_FromVoidPtr((void *)reduce_f), *precise = single ? PyLong_FromVoidPtr((void *)reduce_d) : NULL;
    PyObject *both = precise ? PyTuple_Pack(2, single, precise) : NULL;
    Py_XDECREF(single);
    Py_XDECREF(precise);
    return both;
}

/* softmax_backward(g, result of softmax, gradient, logarithm, n, inner, threads): along the middle of (outer, n, inner) */
static PyObject *py_softmax_backward(PyObject *self, PyObject *const *args, Py_ssize_t nargs) {
    Array given[3];
    int done = 1;
    memset(given, 0, sizeof given);
    if (nargs != 7)
        return PyErr_Format(PyExc_TypeError, "softmax_backward takes 7 arguments");
    Py_ssize_t n = PyLong_AsSsize_t(args[4]), inner = PyLong_AsSsize_t(args[5]);
    long threads = PyLong_AsLong(args[6]);
    if (PyErr_Occurred())
        return NULL;
    for (int i = 0; i < 3 && done; i++)
        done = take(args[i], &given[i], i == 2) && kind_of(&given[i]) && kind_of(&given[i]) == kind_of(&given[0]) &&
               count(&given[i]) == count(&given[0]);
    done = done && n > 0 && inner > 0 && count(&given[0]) % (n * inner) == 0;
    if (done && kind_of(&given[0]) == 'f') {
        Job_f job = {.g = given[0].view.buf, .x = given[1].view.buf, .out = given[2].view.buf, .outer = count(&given[0]) / (n * inner), .n = n, .inner = inner,
                     .kind = args[3] == Py_True};
        RUN(softmax_backward_all_f, job, count(&given[0]), (int)threads)
    } else if (done) {
        Job_d job = {.g = given[0].view.buf, .x = given[1].view.buf, .out = given[2].view.buf, .outer = count(&given[0]) / (n * inner), .n = n, .inner = inner,
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

/* what finds the first few among elements of an array's kind, or NULL */
static void (*topk_of(const Array *a))(Tops *, int) {
    const char *f = a->view.format;
    int size = (int)a->view.itemsize;
    if (!f || !f[0] || f[1])
        return NULL;
    if (strchr("bhilq", f[0]))
        return size == 8 ? topk_all_i64 : size == 4 ? topk_all_i32 : size == 2 ? topk_all_i16 : topk_all_i8;
    return f[0] == 'f' ? topk_all_f : f[0] == 'd' ? topk_all_d : f[0] == 'B' ? topk_all_u8 : NULL;
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
    if (k > 0 && k <= n && take(args[0], &a, 0) && take(args[1], &out, 1) && take(args[2], &at, 1) && topk_of(&a) &&
        topk_of(&a) == topk_of(&out)) {
        Py_ssize_t rows = count(&a) / n;
        done = rows * n == count(&a) && rows * k == count(&out) && at.view.itemsize == 8 && count(&at) == count(&out);
        Tops job = {.x = a.view.buf, .best = out.view.buf, .places = at.view.buf, .rows = rows, .n = n, .k = k, .largest = args[5] == Py_True};
        if (done) {
            RUN(topk_of(&a), job, count(&a), (int)threads)
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

enum { CHANNELS_TOGETHER = 128 }; /* as in core.pixels */
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
 *   "sums", x, sum                                               writes sum
 *   "scale", x, mean, scale, shift or None, out                  writes out
 *   "backward", g, x, mean, rstd, weight or None, sum, along, out or None   writes the last three */
static PyObject *py_channels(PyObject *self, PyObject *const *args, Py_ssize_t nargs) {
    Array given[8];
    memset(given, 0, sizeof given);
    const char *what = nargs >= 7 ? PyUnicode_AsUTF8(args[0]) : NULL;
    if (!what)
        return PyErr_Occurred() ? NULL : PyErr_Format(PyExc_TypeError, "channels takes at least 7 arguments");
    int n = (int)nargs - 5, done = 0;
    Py_ssize_t outer = PyLong_AsSsize_t(args[nargs - 4]), channels = PyLong_AsSsize_t(args[nargs - 3]),
               inner = PyLong_AsSsize_t(args[nargs - 2]), size = outer * channels * inner;
    long threads = PyLong_AsLong(args[nargs - 1]);
    if (PyErr_Occurred())
        return NULL;
    if (!strcmp(what, "moments") && n == 3) {
        done = take_all(given, args + 1, 3, 1, 0) && sized(given, 0, 1, size) && sized(given, 1, 3, channels);
        CHANNEL_JOBS(moments_all, .x = buffer(&given[0]), .mean = buffer(&given[1]), .rstd = buffer(&given[2]))
    } else if (!strcmp(what, "sums") && n == 2) {
        done = take_all(given, args + 1, 2, 1, 0) && sized(given, 0, 1, size) && sized(given, 1, 2, channels);
        CHANNEL_JOBS(totals_all, .x = buffer(&given[0]), .out = buffer(&given[1]))
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

/* batch_norm(x, weight, bias, running mean, running variance, mean, rstd, out, momentum, eps, inner, threads): in training, for x as (outer, channels,
 * inner) with an inner of more than 1; the four before mean may be None */
static PyObject *py_batch_norm(PyObject *self, PyObject *const *args, Py_ssize_t nargs) {
    Array given[8];
    memset(given, 0, sizeof given);
    if (nargs != 12)
        return PyErr_Format(PyExc_TypeError, "batch_norm takes 12 arguments");
    double momentum = PyFloat_AsDouble(args[8]), eps = PyFloat_AsDouble(args[9]);
    Py_ssize_t inner = PyLong_AsSsize_t(args[10]);
    long threads = PyLong_AsLong(args[11]);
    if (PyErr_Occurred())
        return NULL;
    int done = take_all(given, args, 8, 3, 1 << 1 | 1 << 2 | 1 << 3 | 1 << 4) && inner > 1;
    Py_ssize_t channels = done ? count(&given[5]) : 1, size = done ? count(&given[0]) : 0, outer = channels ? size / (channels * inner) : 0;
    done = done && size > 0 && outer * channels * inner == size && sized(given, 1, 7, channels) && sized(given, 7, 8, size);
    CHANNEL_JOBS(batch_norm_all, .x = buffer(&given[0]), .w = buffer(&given[1]), .b = buffer(&given[2]), .dw = buffer(&given[3]),
                 .db = buffer(&given[4]), .mean = buffer(&given[5]), .rstd = buffer(&given[6]), .out = buffer(&given[7]), .momentum = momentum,
                 .eps = eps)
    for (int i = 0; i < 8; i++)
        drop(&given[i]);
    return PyBool_FromLong(done);
}

/* running_norm(x, mean, variance, weight, bias, out, eps, inner, threads): by running statistics, for x as (outer, channels, inner); weight and bias
 * may be None. Short rows of channels are worked on several at a time. */
static PyObject *py_running_norm(PyObject *self, PyObject *const *args, Py_ssize_t nargs) {
    Array given[6];
    memset(given, 0, sizeof given);
    if (nargs != 9)
        return PyErr_Format(PyExc_TypeError, "running_norm takes 9 arguments");
    double eps = PyFloat_AsDouble(args[6]);
    Py_ssize_t inner = PyLong_AsSsize_t(args[7]), together = 1;
    long threads = PyLong_AsLong(args[8]);
    if (PyErr_Occurred())
        return NULL;
    int done = take_all(given, args, 6, 5, 1 << 3 | 1 << 4) && inner > 0;
    Py_ssize_t channels = done ? count(&given[1]) : 1, size = done ? count(&given[0]) : 0, outer = channels ? size / (channels * inner) : 0;
    done = done && size > 0 && outer * channels * inner == size && sized(given, 1, 5, channels) && sized(given, 5, 6, size);
    while (done && inner == 1 && together * channels < CHANNELS_TOGETHER && outer % (2 * together) == 0)
        together *= 2;
    void *room = done ? malloc((size_t)(3 * channels * together) * sizeof(double)) : NULL;
    done = done && room;
    outer /= together;
    if (done && kind_of(&given[0]) == 'f')
        running_numbers_f(buffer(&given[1]), buffer(&given[2]), buffer(&given[3]), buffer(&given[4]), eps, channels, together, room);
    else if (done)
        running_numbers_d(buffer(&given[1]), buffer(&given[2]), buffer(&given[3]), buffer(&given[4]), eps, channels, together, room);
    channels *= together;
    const Py_ssize_t step = channels * (done && kind_of(&given[0]) == 'f' ? (Py_ssize_t)sizeof(float) : (Py_ssize_t)sizeof(double));
    char *at = room;
    CHANNEL_JOBS(scale_all, .x = buffer(&given[0]), .mean = (void *)at, .w = (void *)(at + step), .b = given[4].held ? (void *)(at + 2 * step) : NULL,
                 .out = buffer(&given[5]))
    free(room);
    for (int i = 0; i < 6; i++)
        drop(&given[i]);
    return PyBool_FromLong(done);
}

static PyObject *py_pool(PyObject *self, PyObject *none) { return PyLong_FromVoidPtr((void *)parallel); }

static PyMethodDef methods[] = {
    {"pool", py_pool, METH_NOARGS, "pool() -> the address of `parallel` (native_pool.h), for generated code"},
    {"softmax", (PyCFunction)(void (*)(void))py_softmax, METH_FASTCALL, "softmax(source, result, logarithm, n, inner, threads) -> bool"},
    {"layer_norm", (PyCFunction)(void (*)(void))py_layer_norm, METH_FASTCALL,
     "layer_norm(source, result, weight, bias, mean, rstd, eps, threads) -> bool"},
    {"reduce", (PyCFunction)(void (*)(void))py_reduce, METH_FASTCALL, "reduce(source, result, kind, n, inner, threads) -> bool"},
    {"reducers", py_reducers, METH_NOARGS, "reducers() -> addresses of the loops of float32 and float64"},
    {"softmax_backward", (PyCFunction)(void (*)(void))py_softmax_backward, METH_FASTCALL,
     "softmax_backward(g, result, gradient, logarithm, n, inner, threads) -> bool"},
    {"layer_norm_backward", (PyCFunction)(void (*)(void))py_layer_norm_backward, METH_FASTCALL,
     "layer_norm_backward(g, source, weight, mean, rstd, gradient, weight_gradient, bias_gradient, threads) -> bool"},
    {"cumsum", (PyCFunction)(void (*)(void))py_cumsum, METH_FASTCALL, "cumsum(source, result, n, inner, threads) -> bool"},
    {"topk", (PyCFunction)(void (*)(void))py_topk, METH_FASTCALL, "topk(source, values, places, n, k, largest, threads) -> bool"},
    {"channels", (PyCFunction)(void (*)(void))py_channels, METH_FASTCALL,
     "channels(what, arrays..., outer, channels, inner, threads) -> bool"},
    {"batch_norm", (PyCFunction)(void (*)(void))py_batch_norm, METH_FASTCALL,
     "batch_norm(x, weight, bias, running mean, running variance, mean, rstd, out, momentum, eps, inner, threads) -> bool"},
    {"running_norm", (PyCFunction)(void (*)(void))py_running_norm, METH_FASTCALL,
     "running_norm(x, mean, variance, weight, bias, out, eps, inner, threads) -> bool"},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, "_native", "Kernels in C; see core.native.", -1, methods, NULL, NULL, NULL, NULL};

PyMODINIT_FUNC PyInit__native(void) {
    return PyModule_Create(&module);
}
