/* Layers of networks in C, with their matrix products by BLAS: products, attention, convolution, pooling.
 *
 * Functions take arrays of float32 or float64 through the buffer protocol and write into those they are given for results. Each
 * returns True when it did the work, and False, with nothing read or written, where arrays are not as it wants them: the caller
 * then computes with the array library. The templates (native_*.h) are read for float and double, and for each set of
 * instructions that an x86 may have; one is picked when the module is loaded. No result depends on the number of threads.
 */
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "native_types.h"
#if defined(__clang__)
#define SIMD _Pragma("clang loop vectorize(enable)")
#define SIMD_SUM(x)
#define SIMD_MAX(x, y)
#else
#define PRAGMA(text) _Pragma(#text)
#define SIMD _Pragma("omp simd")
#define SIMD_SUM(x) PRAGMA(omp simd reduction(+ : x))
#define SIMD_MAX(x, y) PRAGMA(omp simd reduction(max : x) reduction(| : y))
#endif
#define HELPERS
#include "native_elements.h" /* exp, tanh, ... of single precision */
#undef HELPERS

#define QUERIES 64 /* rows of scores that exist at a time */
#define KEYS 256   /* columns of them */

/* ---- what the templates work on */
typedef struct {
    void *p;
    i64 step[3]; /* elements between batches, heads and rows; a row is contiguous */
} Rows;

typedef struct {
    Rows q, k, v, out, g, dq, dk, dv;
    void *lse; /* (batch, heads, queries), contiguous */
    const void *mask;
    i64 mask_step[4];
    int mask_kind; /* 0 none, 1 boolean, 2 added */
    i64 heads, queries, keys, size;
    int causal;
    double scale;
    int failed;
} Attention;

typedef struct {
    void *x, *w, *y; /* y: the result, or its gradient */
    void *dx, *dw, *bias;
    i64 images, channels, outputs, groups, size[3], places[3], kernel[3], stride[3], padding[3], dilation[3];
    i64 step[5], w_step[5], y_step[5], bias_step; /* of x or dx, w or dw, y, in elements */
} Windows;

typedef struct {
    void *x;
    void *y;
    const i64 *from; /* places that are read */
    i64 *at;         /* places that are written */
    int sets;        /* whether values are put at places, the last one stays, or added */
    int failed;
    i64 planes, size[2], places[2], kernel[2], stride[2], padding[2], dilation[2];
} Pool;

/* ---- BLAS */
typedef void (*Body)(long, long, void *const *);
typedef void (*Parallel)(Body, long, long, long, void *const *, long);
static Parallel pool;
static void *blas[2]; /* sgemm, dgemm */
static int wide;      /* whether its integers have 64 bits */
static int (*blas_threads)(void);
static void (*use_blas_threads)(int);

#define GEMM(T, LETTER, NUMBER)                                                                                                    \
    typedef void (*LETTER##gemm32)(int, int, int, int, int, int, T, const T *, int, const T *, int, T, T *, int);                 \
    typedef void (*LETTER##gemm64)(int, int, int, i64, i64, i64, T, const T *, i64, const T *, i64, T, T *, i64);                 \
    static void LETTER##gemm(int ta, int tb, i64 m, i64 n, i64 k, T alpha, const T *a, i64 lda, const T *b, i64 ldb, T beta, T *c, i64 ldc) { \
        if (wide)                                                                                                                  \
            ((LETTER##gemm64)blas[NUMBER])(101, ta ? 112 : 111, tb ? 112 : 111, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);    \
        else                                                                                                                       \
            ((LETTER##gemm32)blas[NUMBER])(101, ta ? 112 : 111, tb ? 112 : 111, (int)m, (int)n, (int)k, alpha, a, (int)lda, b,    \
                                           (int)ldb, beta, c, (int)ldc);                                                          \
    }
GEMM(float, s, 0)
GEMM(double, d, 1)
#include "native_matrices.h"

enum { FORWARD, TO_INPUT, TO_WEIGHT };
#include "native_forms.h"

/* ---- the templates */
typedef struct {
    i64 panel; /* numbers of the widest tile of a convolution */
    Body attention, attention_back, convolve[3], pack, max_pool, scatter;
} Functions;

#define FUNCTIONS                                                                                \
    static const Functions N(functions) = {                                                     \
        3 * VECTOR / sizeof(T),                                                                 \
        N(attention_part),                                                                      \
        N(attention_back_part),                                                                 \
        {N(gather_part), N(gather_part), N(weight_part)},                                       \
        N(pack_part),                                                                           \
        N(max_pool_part),                                                                       \
        N(scatter_part)};

#define TEMPLATE "native_layers.h"
#include "native_levels.h"
static const Functions *const ALL[][2] = LEVELS(functions);

/* ---- arrays */
#define MOST 16
typedef struct {
    Py_buffer view[MOST];
    int held[MOST], n;
    char type; /* of all numbers: f or d */
} Arrays;

static void drop(Arrays *a) {
    for (int i = 0; i < a->n; i++)
        if (a->held[i])
            PyBuffer_Release(&a->view[i]);
}

/* Take an array of a rank (any where it is negative), with contiguous elements unless strides are welcome; None is NULL. */
static int take(Arrays *a, PyObject *o, int rank, int written, int strided, const char *types) {
    int i = a->n++;
    a->held[i] = 0;
    if (o == Py_None)
        return 1;
    if (PyObject_GetBuffer(o, &a->view[i], (strided ? PyBUF_STRIDES : PyBUF_C_CONTIGUOUS) | PyBUF_FORMAT | (written ? PyBUF_WRITABLE : 0)) < 0) {
        PyErr_Clear();
        return 0;
    }
    a->held[i] = 1;
    Py_buffer *v = &a->view[i];
    char type = v->format && v->format[0] && !v->format[1] ? v->format[0] : 0;
    if (!type || (types ? !strchr(types, type) : type != 'f' && type != 'd') || (rank >= 0 && v->ndim != rank))
        return 0;
    for (int d = 0; strided && d < v->ndim; d++)
        if (v->strides[d] % v->itemsize)
            return 0;
    if ((size_t)v->buf % (size_t)v->itemsize)
        return 0;
    if (types)
        return 1;
    if (!a->type)
        a->type = type;
    return a->type == type;
}

static void *data(Arrays *a, int i) { return a->held[i] ? a->view[i].buf : NULL; }
static i64 step(Arrays *a, int i, int d) { return a->view[i].strides[d] / a->view[i].itemsize; }
static i64 extent(Arrays *a, int i, int d) { return a->view[i].shape[d]; }
static i64 count(Arrays *a, int i) { return a->held[i] ? a->view[i].len / a->view[i].itemsize : 0; }
static const Functions *functions(Arrays *a) { return ALL[level][a->type == 'd']; }
static int ready(Arrays *a) { return a->type && blas[a->type == 'd'] != NULL; }

/* `body` on pieces of a range by threads, in each of which BLAS uses one of its own; the GIL is free meanwhile */
static void share(Body body, i64 n, i64 grain, void *job, long threads) {
    void *const given[] = {job};
    PyThreadState *state = PyEval_SaveThread();
    int before = blas_threads && use_blas_threads ? blas_threads() : 0;
    if (before > 1)
        use_blas_threads(1);
    if (pool && threads > 1 && n > 1)
        pool(body, 0, (long)n, (long)grain, given, threads);
    else
        body(0, (long)n, given);
    if (before > 1)
        use_blas_threads(before);
    PyEval_RestoreThread(state);
}

static int rows_of(Arrays *a, int i, Rows *out) {
    out->p = data(a, i);
    if (!a->held[i])
        return 1;
    for (int d = 0; d < 3; d++)
        out->step[d] = step(a, i, d);
    i64 size = extent(a, i, 3);
    return (size < 2 || step(a, i, 3) == 1) && (out->step[2] >= size || extent(a, i, 2) < 2) && out->step[2] > 0;
}

static int same_shape(Arrays *a, int i, int k, int dims) {
    for (int d = 0; d < dims; d++)
        if (extent(a, i, d) != extent(a, k, d))
            return 0;
    return 1;
}

/* product(a, b, bias or None, c, threads): c = a b + bias for a matrix a and b and a row-major c, or batches of them; arrays that BLAS can read */
static PyObject *py_product(PyObject *self, PyObject *args) {
    PyObject *o[4];
    Arrays a = {.n = 0};
    Product p = {.many = 1};
    long threads;
    if (!PyArg_ParseTuple(args, "OOOOl", &o[0], &o[1], &o[2], &o[3], &threads))
        return NULL;
    int fits = take(&a, o[0], -1, 0, 1, NULL) && take(&a, o[1], -1, 0, 1, NULL) && take(&a, o[2], 1, 0, 1, NULL) &&
               take(&a, o[3], -1, 1, 0, NULL) && a.held[0] && a.held[1] && a.held[3] && ready(&a);
    int rank = fits ? a.view[0].ndim : 0, r = rank - 2;
    fits = fits && (rank == 2 || rank == 3) && a.view[1].ndim == rank && a.view[3].ndim == rank && count(&a, 0) && count(&a, 1);
    if (fits) {
        p.m = extent(&a, 0, r);
        p.k = extent(&a, 0, r + 1);
        p.n = extent(&a, 1, r + 1);
        fits = extent(&a, 1, r) == p.k && extent(&a, 3, r) == p.m && extent(&a, 3, r + 1) == p.n && (!a.held[2] || extent(&a, 2, 0) == p.n) &&
               matrix_of(p.m, p.k, step(&a, 0, r), step(&a, 0, r + 1), &p.a) && matrix_of(p.k, p.n, step(&a, 1, r), step(&a, 1, r + 1), &p.b);
    }
    if (fits && rank == 3) {
        p.many = extent(&a, 0, 0);
        p.a.batch = step(&a, 0, 0);
        p.b.batch = step(&a, 1, 0);
        fits = extent(&a, 1, 0) == p.many && extent(&a, 3, 0) == p.many;
    }
    if (fits) {
        p.a.p = data(&a, 0);
        p.b.p = data(&a, 1);
        p.bias = data(&a, 2);
        p.bias_step = a.held[2] ? step(&a, 2, 0) : 0;
        p.c = data(&a, 3);
        cut_product(&p, threads);
        share(a.type == 'd' ? dmultiply_part : smultiply_part, p.many * p.blocks, 1, &p, threads);
    }
    drop(&a);
    return PyBool_FromLong(fits);
}

/* attention(q, k, v, mask or None, out, lse, g or None, dq, dk, dv, causal, scale, threads): (batch, heads, length, size) arrays of
 * which rows are contiguous. Without g, writes out and lse; with it, adds to the gradients. */
static PyObject *py_attention(PyObject *self, PyObject *args) {
    PyObject *o[10];
    Arrays a = {.n = 0};
    Attention job = {.failed = 0};
    long threads;
    memset(&job, 0, sizeof job);
    if (!PyArg_ParseTuple(args, "OOOOOOOOOOidl", &o[0], &o[1], &o[2], &o[3], &o[4], &o[5], &o[6], &o[7], &o[8], &o[9], &job.causal, &job.scale,
                          &threads))
        return NULL;
    int back = o[6] != Py_None, fits = 1;
    for (int i = 0; i < 10; i++) {
        int written = back ? i > 6 : i == 4 || i == 5;
        fits = fits && take(&a, o[i], i == 5 ? 3 : 4, written, i != 5, i == 3 ? "?fd" : NULL);
    }
    for (int i = 0; i < 10 && fits; i++)
        fits = a.held[i] || i == 3 || (!back && i > 5);
    fits = fits && ready(&a) && same_shape(&a, 0, 1, 2) && same_shape(&a, 1, 2, 4) && extent(&a, 0, 3) == extent(&a, 1, 3) &&
           same_shape(&a, 0, 4, 4) && same_shape(&a, 0, 5, 3) && rows_of(&a, 0, &job.q) && rows_of(&a, 1, &job.k) &&
           rows_of(&a, 2, &job.v) && rows_of(&a, 4, &job.out);
    if (fits && back)
        fits = same_shape(&a, 0, 6, 4) && same_shape(&a, 0, 7, 4) && same_shape(&a, 1, 8, 4) && same_shape(&a, 2, 9, 4) &&
               rows_of(&a, 6, &job.g) && rows_of(&a, 7, &job.dq) && rows_of(&a, 8, &job.dk) && rows_of(&a, 9, &job.dv);
    if (fits && a.held[3]) {
        char type = a.view[3].format[0];
        fits = (type == '?' || type == a.type) && same_shape(&a, 3, 0, 3) && extent(&a, 3, 3) == extent(&a, 1, 2);
        job.mask = data(&a, 3);
        job.mask_kind = type == '?' ? 1 : 2;
        for (int d = 0; d < 4 && fits; d++)
            job.mask_step[d] = step(&a, 3, d);
    }
    if (fits) {
        job.lse = data(&a, 5);
        job.heads = extent(&a, 0, 1);
        job.queries = extent(&a, 0, 2);
        job.keys = extent(&a, 1, 2);
        job.size = extent(&a, 0, 3);
        i64 pairs = extent(&a, 0, 0) * job.heads, blocks = (job.queries + QUERIES - 1) / QUERIES;
        share(back ? functions(&a)->attention_back : functions(&a)->attention, back ? pairs : pairs * blocks, 1, &job, threads);
    }
    drop(&a);
    return job.failed ? PyErr_NoMemory() : PyBool_FromLong(fits);
}

/* numbers of `n` attributes, one for each of some axes */
static int take_numbers(PyObject *given, i64 *const *into, int n, int axes) {
    if (!PyTuple_Check(given) || PyTuple_GET_SIZE(given) != axes * n)
        return 0;
    for (int i = 0; i < axes * n; i++)
        into[i / axes][i % axes] = PyLong_AsLongLong(PyTuple_GET_ITEM(given, i));
    return !PyErr_Occurred();
}

/* The sizes of a convolution from those of its arrays; whether they fit each other. */
static int take_windows(Arrays *a, int what, Windows *j) {
    j->images = extent(a, 0, 0);
    j->channels = extent(a, 0, 1);
    j->outputs = extent(a, 1, 0);
    for (int d = 0; d < 3; d++) {
        j->size[d] = extent(a, 0, 2 + d);
        j->kernel[d] = extent(a, 1, 2 + d);
        j->places[d] = extent(a, 2, 2 + d);
    }
    for (int d = 0; d < 5; d++) {
        j->step[d] = step(a, 0, d);
        j->w_step[d] = step(a, 1, d);
        j->y_step[d] = step(a, 2, d);
    }
    int fits = j->groups > 0 && extent(a, 2, 0) == j->images && extent(a, 2, 1) == j->outputs && !(j->channels % j->groups) &&
               !(j->outputs % j->groups) && extent(a, 1, 1) == j->channels / j->groups && count(a, 0) > 0 && count(a, 1) > 0 && count(a, 2) > 0;
    for (int d = 0; d < 3 && fits; d++)
        fits = j->stride[d] > 0 && j->padding[d] >= 0 && j->dilation[d] > 0 &&
               j->places[d] <= (j->size[d] + 2 * j->padding[d] - j->dilation[d] * (j->kernel[d] - 1) - 1) / j->stride[d] + 1;
    j->x = what == TO_INPUT ? NULL : data(a, 0);
    j->dx = what == TO_INPUT ? data(a, 0) : NULL;
    j->w = what == TO_WEIGHT ? NULL : data(a, 1);
    j->dw = what == TO_WEIGHT ? data(a, 1) : NULL;
    j->y = data(a, 2);
    j->bias = data(a, 3);
    j->bias_step = a->held[3] ? step(a, 3, 0) : 0;
    return fits && (!j->bias || (what != TO_WEIGHT && extent(a, 3, 0) == (what == FORWARD ? j->outputs : j->channels)));
}

/* convolve(what, x or dx, w or dw, y, bias or None, (stride, padding, dilation: three each), groups, threads): what 0 writes y, 1 dx (y its
 * gradient), 2 dw. x is (images, channels, depth, height, width); bias is that of what is written. Arrays have any strides, but for dw and,
 * with it, y, unless each channel is by itself and channels lie side by side. */
static PyObject *py_convolve(PyObject *self, PyObject *args) {
    PyObject *o[4], *pairs;
    Arrays a = {.n = 0};
    Windows j;
    Gather g;
    int what, failed = 0;
    long threads;
    memset(&j, 0, sizeof j);
    if (!PyArg_ParseTuple(args, "iOOOOOLl", &what, &o[0], &o[1], &o[2], &o[3], &pairs, &j.groups, &threads))
        return NULL;
    i64 *const into[] = {j.stride, j.padding, j.dilation};
    if (!take_numbers(pairs, into, 3, 3) || what < 0 || what > 2)
        return PyErr_Occurred() ? NULL : PyErr_Format(PyExc_ValueError, "convolve: expected 0 to 2 and nine numbers");
    int fits = take(&a, o[0], 5, what == TO_INPUT, 1, NULL) && take(&a, o[1], 5, what == TO_WEIGHT, what != TO_WEIGHT, NULL) &&
               take(&a, o[2], 5, what == FORWARD, 1, NULL) && take(&a, o[3], 1, 0, 1, NULL) && a.held[0] && a.held[1] &&
               a.held[2] && ready(&a) && take_windows(&a, what, &j);
    if (fits && plan(&j, what, functions(&a)->panel, a.view[0].itemsize, threads, &g)) {
        fits = what != TO_WEIGHT || g.pixels || PyBuffer_IsContiguous(&a.view[2], 'C');
        if (fits && g.outputs)
            share(functions(&a)->pack, g.packs, 1, &g, threads);
        if (fits)
            share(functions(&a)->convolve[what], g.tasks, 1, &g, threads);
        failed = g.failed;
        forget_plan(&g);
    } else
        failed = fits;
    drop(&a);
    return failed ? PyErr_NoMemory() : PyBool_FromLong(fits);
}

/* The same for generated code, without Python: `numbers` are what is written (0 to 2), whether in double precision, sizes and steps in the
 * order of Windows' fields, from `images` to `bias_step`. Not 0 where there was no memory. */
static i64 convolve(const i64 *numbers, void *x, void *w, void *y, void *bias, i64 threads) {
    const int what = (int)numbers[0];
    const Functions *f = ALL[level][numbers[1]];
    Windows j = {.y = y, .bias = bias};
    Gather g;
    memcpy(&j.images, numbers + 2, sizeof j - offsetof(Windows, images));
    *(what == TO_INPUT ? &j.dx : &j.x) = x;
    *(what == TO_WEIGHT ? &j.dw : &j.w) = w;
    if (!plan(&j, what, f->panel, numbers[1] ? 8 : 4, (long)threads, &g))
        return 1;
    void *const given[] = {&g};
    const Body steps[] = {f->pack, f->convolve[what]};
    for (int step = g.outputs ? 0 : 1; step < 2; step++) {
        const long tasks = (long)(step ? g.tasks : g.packs);
        if (pool && threads > 1 && tasks > 1)
            pool(steps[step], 0, tasks, 1, given, (long)threads);
        else
            steps[step](0, tasks, given);
    }
    forget_plan(&g);
    return g.failed;
}

static PyObject *py_address(PyObject *self, PyObject *unused) { return PyLong_FromVoidPtr((void *)(size_t)convolve); }

/* max_pool(x, y, places, (kernel, stride, padding, dilation: two each), threads): contiguous (planes, height, width) */
static PyObject *py_max_pool(PyObject *self, PyObject *args) {
    PyObject *o[3], *pairs;
    Arrays a = {.n = 0};
    Pool j;
    long threads;
    memset(&j, 0, sizeof j);
    if (!PyArg_ParseTuple(args, "OOOOl", &o[0], &o[1], &o[2], &pairs, &threads))
        return NULL;
    i64 *const into[] = {j.kernel, j.stride, j.padding, j.dilation};
    if (!take_numbers(pairs, into, 4, 2))
        return PyErr_Occurred() ? NULL : PyErr_Format(PyExc_ValueError, "max_pool: expected eight numbers");
    int fits = take(&a, o[0], 3, 0, 0, NULL) && take(&a, o[1], 3, 1, 0, NULL) && take(&a, o[2], 3, 1, 0, "lq") && a.held[0] && a.held[1] &&
               a.held[2] && same_shape(&a, 1, 2, 3) && same_shape(&a, 0, 1, 1) && a.view[2].itemsize == 8;
    for (int d = 0; d < 2 && fits; d++) {
        j.size[d] = extent(&a, 0, 1 + d);
        j.places[d] = extent(&a, 1, 1 + d);
        fits = j.stride[d] > 0 && j.padding[d] >= 0 && j.dilation[d] > 0 && j.kernel[d] > 0 && j.size[d] > 0 &&
               (j.places[d] - 1) * j.stride[d] - j.padding[d] < j.size[d] && j.padding[d] <= (j.kernel[d] - 1) * j.dilation[d];
    }
    if (fits && j.size[0] < (1LL << 31) / j.size[1]) { /* places in a plane are counted in 32 bits */
        j.x = data(&a, 0);
        j.y = data(&a, 1);
        j.at = data(&a, 2);
        i64 planes = j.planes = extent(&a, 0, 0), each = j.places[0] * j.places[1] * j.kernel[0] * j.kernel[1];
        share(functions(&a)->max_pool, planes, each > 16384 ? 1 : 16384 / (each ? each : 1) + 1, &j, threads);
    } else
        fits = 0;
    drop(&a);
    return j.failed ? PyErr_NoMemory() : PyBool_FromLong(fits);
}

/* scatter(x, places, y, sets, threads): y[plane, places] = x (sets) or += x for contiguous (planes, many), (planes, many) and (planes, length) */
static PyObject *py_scatter(PyObject *self, PyObject *args) {
    PyObject *o[3];
    Arrays a = {.n = 0};
    Pool j;
    long threads;
    memset(&j, 0, sizeof j);
    if (!PyArg_ParseTuple(args, "OOOpl", &o[0], &o[1], &o[2], &j.sets, &threads))
        return NULL;
    int fits = take(&a, o[0], 2, 0, 0, NULL) && take(&a, o[1], 2, 0, 0, "lq") && take(&a, o[2], 2, 1, 0, NULL) && a.held[0] && a.held[1] &&
               a.held[2] && same_shape(&a, 0, 1, 2) && same_shape(&a, 0, 2, 1) && a.view[1].itemsize == 8;
    if (fits) {
        j.x = data(&a, 0);
        j.from = data(&a, 1);
        j.y = data(&a, 2);
        j.places[0] = extent(&a, 0, 1);
        j.size[0] = extent(&a, 2, 1);
        i64 n = count(&a, 0), most = j.size[0];
        for (i64 k = 0; k < n && fits; k++)
            fits = j.from[k] >= 0 && j.from[k] < most;
    }
    if (fits)
        share(functions(&a)->scatter, extent(&a, 0, 0), 16384 / (j.places[0] ? j.places[0] : 1) + 1, &j, threads);
    drop(&a);
    return PyBool_FromLong(fits);
}

/* setup(pool, sgemm, dgemm, wide, threads of BLAS, the function that sets them): addresses */
static PyObject *py_setup(PyObject *self, PyObject *args) {
    unsigned long long p, s, d, threads, use;
    if (!PyArg_ParseTuple(args, "KKKpKK", &p, &s, &d, &wide, &threads, &use))
        return NULL;
    pool = (Parallel)(size_t)p;
    blas[0] = (void *)(size_t)s;
    blas[1] = (void *)(size_t)d;
    blas_threads = (int (*)(void))(size_t)threads;
    use_blas_threads = (void (*)(int))(size_t)use;
    Py_RETURN_NONE;
}

static PyMethodDef methods[] = {
    {"setup", py_setup, METH_VARARGS, "setup(pool, sgemm, dgemm, wide, count, use)"},
    {"instructions", py_instructions, METH_VARARGS, "instructions(level or -1) -> int"},
    {"product", py_product, METH_VARARGS, "product(a, b, bias, c, threads) -> bool"},
    {"attention", py_attention, METH_VARARGS, "attention(q, k, v, mask, out, lse, g, dq, dk, dv, causal, scale, threads) -> bool"},
    {"convolve", py_convolve, METH_VARARGS, "convolve(what, x, w, y, bias, numbers, groups, threads) -> bool"},
    {"address", py_address, METH_NOARGS, "address() -> int: of what generated code calls for convolutions"},
    {"max_pool", py_max_pool, METH_VARARGS, "max_pool(x, y, places, numbers, threads) -> bool"},
    {"scatter", py_scatter, METH_VARARGS, "scatter(x, places, y, sets, threads) -> bool"},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, "_network", "See runtime.network.", -1, methods, NULL, NULL, NULL, NULL};

PyMODINIT_FUNC PyInit__network(void) {
    for (i64 k = 0; k < DEPTH; k++)
        in_a_row[k] = k;
    find_level();
    return PyModule_Create(&module);
}
