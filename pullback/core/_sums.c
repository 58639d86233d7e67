/* Sums, means, running sums and products with vectors in C, for calls so small that what surrounds a loop counts.
 *
 * In: the canonical arguments of an operator, as a tuple. Out: its result as a row-major tensor, nothing recorded; or None where the call
 * is not of that kind (another dtype, an order of memory that loops do not take, many elements, none, arguments that are refused): the
 * caller then runs the operator's rules, which know the rest. The loops are in native_sums.h, once for each type of elements.
 */
#include "native_moves.h"
#include "native_lanes.h"
#include <math.h>

enum { LANES = 16, COLUMNS = 256, MOST_SUMMED = 1 << 16, PIECE = 1 << 16 };
typedef struct {
    i64 outer, n, inner;
} Shape;

#define T float
#define NAME(f) f##_f32
#define WIDE double
#define RESULT float
#define IS_NAN REAL_NAN
#define FLOATING
#include "native_sums.h"
#define T double
#define NAME(f) f##_f64
#define WIDE double
#define RESULT double
#define IS_NAN REAL_NAN
#define FLOATING
#include "native_sums.h"
#define T i64
#define NAME(f) f##_i64
#define WIDE i64
#define RESULT i64
#define IS_NAN NEVER
#include "native_sums.h"
#define T int
#define NAME(f) f##_i32
#define WIDE i64
#define RESULT i64
#define IS_NAN NEVER
#include "native_sums.h"
#define T unsigned char
#define NAME(f) f##_u8
#define WIDE i64
#define RESULT i64
#define IS_NAN NEVER
#include "native_sums.h"

/* Sums of floating-point numbers are those of _native.c, so that every way to a sum rounds alike. */
enum { SUM, MEAN = 3 };
static void (*reduce_singles)(const float *, float *, int, Py_ssize_t, Py_ssize_t, Py_ssize_t);
static void (*reduce_doubles)(const double *, double *, int, Py_ssize_t, Py_ssize_t, Py_ssize_t);

static PyObject *use_reducers(PyObject *self, PyObject *args) {
    PyObject *single, *precise;
    if (!PyArg_ParseTuple(args, "O!O!", &PyLong_Type, &single, &PyLong_Type, &precise)) return NULL;
    *(void **)&reduce_singles = PyLong_AsVoidPtr(single);
    *(void **)&reduce_doubles = PyLong_AsVoidPtr(precise);
    if (PyErr_Occurred()) return NULL;
    Py_RETURN_NONE;
}

static int is_summed(const Array *a) {
    Py_ssize_t n = count_of(a);
    return n > 0 && n <= MOST_SUMMED;
}

static int takes(const Array *a) {
    int k = kind(a);
    return k == F32 || k == F64 || k == I64 || k == I32 || k == U8 || k == BOOL;
}

/* ---- sums: self, dim, keepdim, dtype */
/* The dimensions that are summed: marked; 0 where they are refused. None and () are all. */
static int marked(PyObject *value, int nd, int *summed) {
    Py_ssize_t dims[MOST_DIMS];
    memset(summed, 0, sizeof(*summed) * MOST_DIMS);
    int n = value == Py_None ? 0 : integers_of(value, dims, MOST_DIMS);
    if (n < 0) return 0;
    for (int i = 0; i < n; i++) {
        Py_ssize_t d = dims[i] < 0 ? dims[i] + nd : dims[i];
        if (d < 0 || d >= nd || summed[d]++) return 0;
    }
    for (int d = 0; n == 0 && d < nd; d++) summed[d] = 1;
    return 1;
}

/* The dimensions of more than one element in the order of memory, outermost first; -1 where there are gaps. */
static int in_memory(const Array *a, int *order) {
    Py_ssize_t step = kind(a) < 0 ? 0 : item_sizes[kind(a)];
    int n = 0;
    for (int d = 0; d < a->nd; d++) {
        if (a->shape[d] == 1) continue;
        int at = n++;
        for (; at && a->strides[order[at - 1]] < a->strides[d]; at--) order[at] = order[at - 1];
        order[at] = d;
    }
    for (int i = n - 1; i >= 0; step *= a->shape[order[i--]])
        if (a->strides[order[i]] != step) return -1;
    return n;
}

/* The dimensions that are summed as one run inside others, in the order of memory: 0 where they are not that, or where others change places. */
static int run_of(const Array *a, const int *summed, Shape *s) {
    *s = (Shape){1, 1, 1};
    int order[MOST_DIMS], last = -1, state = 0; /* before the run, in it, after it */
    const int n = in_memory(a, order);
    for (int i = 0; i < n; i++) {
        const int d = order[i];
        if (summed[d] ? state == 2 : d < last) return 0;
        if (!summed[d]) last = d;
        state = summed[d] ? 1 : state == 1 ? 2 : state;
        *(summed[d] ? &s->n : state == 0 ? &s->outer : &s->inner) *= a->shape[d];
    }
    return n >= 0;
}

/* Sums that are not the reducers': of integers, or without NaN. */
typedef struct {
    const char *x;
    char *y;
    Shape s;
    int kind, skips_nan;
} Job;

static void sum_rows(long first, long last, void *const *arguments) {
    const Job *j = arguments[0];
    const void *x = j->x + first * j->s.n * j->s.inner * item_sizes[j->kind];
    void *y = j->y + first * j->s.inner * (j->kind == F32 ? 4 : 8);
    Shape s = {last - first, j->s.n, j->s.inner};
    switch (j->kind) {
    case F32: sums_f32(x, s, j->skips_nan, y); break;
    case F64: sums_f64(x, s, j->skips_nan, y); break;
    case I64: sums_i64(x, s, 0, y); break;
    case I32: sums_i32(x, s, 0, y); break;
    default: sums_u8(x, s, 0, y);
    }
}

static void run_rows(Job *job, Array *a, Array *r) {
    void *const arguments[] = {job};
    over_parts(sum_rows, job->s.outer, job->s.outer * job->s.n * job->s.inner, arguments, a, r, NULL);
}

/* One long row is the sum of the sums of its pieces, in double precision where it is of floating-point numbers. */
static int run_pieces(Job *job, Array *a, Array *r) {
    i64 rows = job->s.n / PIECE, most = job->kind == F32 ? 4 : 8;
    if (job->s.outer != 1 || job->s.inner != 1 || job->s.n < LARGE) return 0;
    char *parts = PyMem_Malloc((size_t)(most * (rows + 1)));
    if (!parts) return 0;
    Job part = *job;
    part.y = parts;
    part.s = (Shape){rows, PIECE, 1};
    run_rows(&part, a, NULL);
    part.x = job->x + rows * PIECE * item_sizes[job->kind];
    part.y = parts + rows * most;
    part.s = (Shape){1, job->s.n % PIECE, 1};
    sum_rows(0, 1, (void *const[]){&part});
    Job all = {parts, r->data, {1, rows + 1, 1}, job->kind <= F64 ? job->kind : I64, 0};
    sum_rows(0, 1, (void *const[]){&all});
    PyMem_Free(parts);
    return 1;
}

/* Rows of complex numbers: WIDTH of them at a time, then these and what is left. */
enum { WIDTH = 32 };
#define COMPLEX_ROWS(name, T, reduce)                                                        \
    static void name(const T *x, T *y, int how, i64 rows, i64 n) {                          \
        for (i64 r = 0; r < rows; r++, x += 2 * n, y += 2) {                                  \
            const i64 whole = n / WIDTH, rest = n % WIDTH;                                   \
            T room[4 * WIDTH] = {0};                                                         \
            if (whole) reduce(x, room, SUM, 1, whole, 2 * WIDTH);                            \
            memcpy(room + 2 * WIDTH, x + 2 * WIDTH * whole, sizeof(T) * 2 * (size_t)rest);   \
            reduce(room + (whole ? 0 : 2 * WIDTH), y, SUM, 1, (whole ? WIDTH : 0) + rest, 2); \
            for (int i = 0; i < 2 && how == MEAN; i++) y[i] /= (T)n;                         \
        }                                                                                    \
    }
COMPLEX_ROWS(complex_singles, float, reduce_singles)
COMPLEX_ROWS(complex_doubles, double, reduce_doubles)

static PyObject *summed(PyObject *args, int dim_at, int keep_at, int dtype_at, int means, int skips_nan) {
    Array *a = strided_of(argument(args, 0));
    NONE_UNLESS(a && (takes(a) || (kind(a) >= C64 && !skips_nan)) && has_elements(a) && argument(args, dtype_at) == Py_None && reduce_singles);
    int reduced[MOST_DIMS], k = kind(a), parts = k == C64 || k == C128 ? 2 : 1, floating = k <= F64 || parts == 2, keep = keep_at >= 0 && argument(args, keep_at) == Py_True;
    int by_reducers = floating && !skips_nan;
    Shape s;
    NONE_UNLESS((floating || (!means && !skips_nan)) && (is_summed(a) || !by_reducers));
    NONE_UNLESS(marked(dim_at < 0 ? Py_None : argument(args, dim_at), a->nd, reduced) && run_of(a, reduced, &s));
    Py_ssize_t shape[MOST_DIMS];
    int nd = 0;
    for (int d = 0; d < a->nd; d++)
        if (!reduced[d] || keep) shape[nd++] = reduced[d] ? 1 : a->shape[d];
    Array *r = new_array(nd, shape, floating ? k : I64);
    if (!r) return NULL;
    Job job = {a->data, r->data, s, k, skips_nan};
    if (by_reducers && parts == 2 && s.inner == 1 && k == C64)
        complex_singles((const float *)a->data, (float *)r->data, means ? MEAN : SUM, s.outer, s.n);
    else if (by_reducers && parts == 2 && s.inner == 1)
        complex_doubles((const double *)a->data, (double *)r->data, means ? MEAN : SUM, s.outer, s.n);
    else if (by_reducers && (k == F32 || k == C64)) /* real and imaginary parts are columns of their own */
        reduce_singles((const float *)a->data, (float *)r->data, means ? MEAN : SUM, s.outer, s.n, s.inner * parts);
    else if (by_reducers)
        reduce_doubles((const double *)a->data, (double *)r->data, means ? MEAN : SUM, s.outer, s.n, s.inner * parts);
    else if (!run_pieces(&job, a, r))
        run_rows(&job, a, r);
    return tensor_of(r);
}

static PyObject *py_sum_dim(PyObject *self, PyObject *args) { return summed(args, 1, 2, 3, 0, 0); }
static PyObject *py_sum(PyObject *self, PyObject *args) { return summed(args, -1, -1, 1, 0, 0); }
static PyObject *py_mean_dim(PyObject *self, PyObject *args) { return summed(args, 1, 2, 3, 1, 0); }
static PyObject *py_mean(PyObject *self, PyObject *args) { return summed(args, -1, -1, 1, 1, 0); }
static PyObject *py_nansum(PyObject *self, PyObject *args) { return summed(args, 1, 2, 3, 0, 1); }

/* Sums of what is not NaN by how many there are. */
static PyObject *py_nanmean(PyObject *self, PyObject *args) {
    Array *a = strided_of(argument(args, 0));
    int reduced[MOST_DIMS];
    Shape s;
    NONE_UNLESS(a && kind(a) <= F64 && is_summed(a) && marked(argument(args, 1), a->nd, reduced) && run_of(a, reduced, &s));
    PyObject *sums = py_nansum(self, args);
    if (!sums || sums == Py_None) return sums;
    Array *r = strided_of(sums);
    for (i64 o = 0; o < s.outer; o++)
        for (i64 i = 0; i < s.inner; i++) {
            const i64 first = o * s.n * s.inner + i, at = o * s.inner + i;
            i64 many = 0;
            for (i64 k = 0; k < s.n; k++)
                many += kind(a) == F32 ? !REAL_NAN(((const float *)a->data)[first + k * s.inner]) : !REAL_NAN(((const double *)a->data)[first + k * s.inner]);
            if (kind(a) == F32)
                ((float *)r->data)[at] /= (float)many;
            else
                ((double *)r->data)[at] /= (double)many;
        }
    return sums;
}

/* self, size: sums over what was broadcast, of sizes as many as the array has */
static PyObject *py_sum_to_size(PyObject *self, PyObject *args) {
    Array *a = strided_of(argument(args, 0));
    Py_ssize_t size[MOST_DIMS], dims[MOST_DIMS];
    int nd = a ? integers_of(argument(args, 1), size, MOST_DIMS) : -1, many = 0;
    NONE_UNLESS(a && nd == a->nd && nd > 0);
    for (int d = 0; d < nd; d++) {
        NONE_UNLESS(size[d] == 1 || size[d] == a->shape[d]);
        if (size[d] == 1 && a->shape[d] != 1) dims[many++] = d;
    }
    NONE_UNLESS(many); /* else the tensor itself */
    PyObject *summed = PyTuple_New(many);
    for (int i = 0; summed && i < many; i++) {
        PyObject *d = PyLong_FromSsize_t(dims[i]);
        if (d)
            PyTuple_SET_ITEM(summed, i, d);
        else
            Py_CLEAR(summed);
    }
    PyObject *given = summed ? PyTuple_Pack(4, argument(args, 0), summed, Py_True, Py_None) : NULL, *result = given ? py_sum_dim(self, given) : NULL;
    Py_XDECREF(given);
    Py_XDECREF(summed);
    return result;
}

static PyObject *py_cumsum(PyObject *self, PyObject *args) { /* self, dim, dtype */
    Array *a = array_of(argument(args, 0));
    NONE_UNLESS(a && takes(a) && is_summed(a) && argument(args, 2) == Py_None && a->nd);
    int d = dim_of(argument(args, 1), a), k = kind(a);
    NONE_UNLESS(d >= 0);
    Shape s = {1, a->shape[d], 1};
    for (int e = 0; e < a->nd; e++) *(e < d ? &s.outer : &s.inner) *= e == d ? 1 : a->shape[e];
    Array *r = new_array(a->nd, a->shape, k <= F64 ? k : I64);
    void *room = r ? PyMem_Malloc(sizeof(double) * (size_t)s.inner) : NULL;
    if (!room) {
        Py_XDECREF(r);
        return r ? PyErr_NoMemory() : NULL;
    }
    switch (k) {
    case F32: running_sums_f32((const float *)a->data, s, (float *)r->data, room); break;
    case F64: running_sums_f64((const double *)a->data, s, (double *)r->data, room); break;
    case I64: running_sums_i64((const i64 *)a->data, s, (i64 *)r->data, room); break;
    case I32: running_sums_i32((const int *)a->data, s, (i64 *)r->data, room); break;
    default: running_sums_u8((const unsigned char *)a->data, s, (i64 *)r->data, room);
    }
    PyMem_Free(room);
    return tensor_of(r);
}

static PyObject *py_trace(PyObject *self, PyObject *args) {
    Array *a = array_of(argument(args, 0));
    NONE_UNLESS(a && a->nd == 2 && kind(a) <= F64 && count_of(a) > 0);
    Array *r = new_array(0, NULL, kind(a));
    if (!r) return NULL;
    i64 n = a->shape[0] < a->shape[1] ? a->shape[0] : a->shape[1];
    double sum = 0;
    for (i64 i = 0; i < n; i++)
        sum += kind(a) == F32 ? (double)((const float *)a->data)[i * (a->shape[1] + 1)] : ((const double *)a->data)[i * (a->shape[1] + 1)];
    if (kind(a) == F32)
        *(float *)r->data = (float)sum;
    else
        *(double *)r->data = sum;
    return tensor_of(r);
}

/* ---- products with vectors */
static Array *floats_of(PyObject *tensor, int nd) {
    Array *a = array_of(tensor);
    return a && kind(a) <= F64 && a->nd == nd && is_summed(a) ? a : NULL;
}

static PyObject *py_dot(PyObject *self, PyObject *args) {
    Array *x = floats_of(argument(args, 0), 1), *y = floats_of(argument(args, 1), 1);
    NONE_UNLESS(x && y && kind(x) == kind(y) && x->shape[0] == y->shape[0]);
    Array *r = new_array(0, NULL, kind(x));
    if (!r) return NULL;
    if (kind(x) == F32)
        row_products_f32((const float *)x->data, (const float *)y->data, 1, 1, x->shape[0], (float *)r->data);
    else
        row_products_f64((const double *)x->data, (const double *)y->data, 1, 1, x->shape[0], (double *)r->data);
    return tensor_of(r);
}

static PyObject *with_vector(const Array *m, const Array *v, const Array *y, double alpha, double beta) {
    NONE_UNLESS(m && v && kind(m) == kind(v) && m->shape[1] == v->shape[0]);
    NONE_UNLESS(!y || (kind(y) == kind(m) && y->nd == 1 && y->shape[0] == m->shape[0]));
    Array *r = new_array(1, m->shape, kind(m));
    if (!r) return NULL;
    if (kind(m) == F32)
        matrix_vector_f32((const float *)m->data, (const float *)v->data, m->shape[0], m->shape[1], alpha, beta, y ? (const float *)y->data : NULL,
                          (float *)r->data);
    else
        matrix_vector_f64((const double *)m->data, (const double *)v->data, m->shape[0], m->shape[1], alpha, beta, y ? (const double *)y->data : NULL,
                          (double *)r->data);
    return tensor_of(r);
}

static PyObject *py_mv(PyObject *self, PyObject *args) { return with_vector(floats_of(argument(args, 0), 2), floats_of(argument(args, 1), 1), NULL, 1, 0); }

static PyObject *py_addmv(PyObject *self, PyObject *args) { /* self, mat, vec, beta, alpha */
    Array *y = floats_of(argument(args, 0), 1);
    double alpha, beta;
    NONE_UNLESS(y && real_of(argument(args, 3), &beta) && real_of(argument(args, 4), &alpha));
    return with_vector(floats_of(argument(args, 1), 2), floats_of(argument(args, 2), 1), y, alpha, beta);
}

typedef struct {
    const void *x, *z, *y;
    void *r;
    i64 n;
    double alpha, beta;
    int kind;
} Outer;

static void outer_rows(long first, long last, void *const *arguments) {
    const Outer *j = arguments[0];
    i64 at = first * j->n;
    if (j->kind == F32)
        outer_product_f32((const float *)j->x + first, j->z, last - first, j->n, (float)j->alpha, (float)j->beta, j->y ? (const float *)j->y + at : NULL,
                          (float *)j->r + at);
    else
        outer_product_f64((const double *)j->x + first, j->z, last - first, j->n, j->alpha, j->beta, j->y ? (const double *)j->y + at : NULL,
                          (double *)j->r + at);
}

static PyObject *outer(Array *u, Array *v, Array *y, double alpha, double beta) {
    Py_ssize_t shape[2] = {u->shape[0], v->shape[0]};
    Array *r = new_array(2, shape, kind(u));
    if (!r) return NULL;
    Outer job = {u->data, v->data, y ? y->data : NULL, r->data, shape[1], alpha, beta, kind(u)};
    void *const arguments[] = {&job};
    over_parts(outer_rows, shape[0], shape[0] * shape[1], arguments, u, v, y);
    return tensor_of(r);
}

/* A row-major array of floats with elements. */
static Array *any_floats_of(PyObject *tensor, int nd) {
    Array *a = array_of(tensor);
    return a && kind(a) <= F64 && a->nd == nd && has_elements(a) ? a : NULL;
}

static PyObject *py_addr(PyObject *self, PyObject *args) { /* self, vec1, vec2, beta, alpha */
    Array *y = any_floats_of(argument(args, 0), 2), *u = any_floats_of(argument(args, 1), 1), *v = any_floats_of(argument(args, 2), 1);
    double alpha, beta;
    NONE_UNLESS(y && u && v && kind(y) == kind(u) && kind(u) == kind(v) && real_of(argument(args, 3), &beta) && real_of(argument(args, 4), &alpha));
    NONE_UNLESS(y->shape[0] == u->shape[0] && y->shape[1] == v->shape[0]);
    return outer(u, v, y, alpha, beta);
}

static PyObject *py_outer(PyObject *self, PyObject *args) {
    Array *u = any_floats_of(argument(args, 0), 1), *v = any_floats_of(argument(args, 1), 1);
    NONE_UNLESS(u && v && kind(u) == kind(v));
    return outer(u, v, NULL, 1, 0);
}

static PyObject *py_inner(PyObject *self, PyObject *args) { /* two matrices of few elements */
    Array *x = floats_of(argument(args, 0), 2), *y = floats_of(argument(args, 1), 2);
    NONE_UNLESS(x && y && kind(x) == kind(y) && x->shape[1] == y->shape[1] && x->shape[0] * x->shape[1] * y->shape[0] <= 1 << 14);
    Py_ssize_t shape[2] = {x->shape[0], y->shape[0]};
    Array *r = new_array(2, shape, kind(x));
    if (!r) return NULL;
    if (kind(x) == F32)
        row_products_f32((const float *)x->data, (const float *)y->data, shape[0], shape[1], x->shape[1], (float *)r->data);
    else
        row_products_f64((const double *)x->data, (const double *)y->data, shape[0], shape[1], x->shape[1], (double *)r->data);
    return tensor_of(r);
}

/* By the operator that each computes. */
static PyMethodDef methods[] = {
    {"use_arrays", use_arrays, METH_VARARGS, "use_arrays(ndarray, [(number, dtype), ...], make_tensor)"},
    {"use_threads", use_threads, METH_VARARGS, "use_threads(address, function)"},
    {"use_reducers", use_reducers, METH_VARARGS, "use_reducers(address for float32, address for float64)"},
    {"sum.dim_IntList", py_sum_dim, METH_O, NULL},
    {"sum.default", py_sum, METH_O, NULL},
    {"mean.dim", py_mean_dim, METH_O, NULL},
    {"mean.default", py_mean, METH_O, NULL},
    {"nansum.default", py_nansum, METH_O, NULL},
    {"nanmean.default", py_nanmean, METH_O, NULL},
    {"sum_to_size.default", py_sum_to_size, METH_O, NULL},
    {"cumsum.default", py_cumsum, METH_O, NULL},
    {"trace.default", py_trace, METH_O, NULL},
    {"dot.default", py_dot, METH_O, NULL},
    {"vdot.default", py_dot, METH_O, NULL},
    {"mv.default", py_mv, METH_O, NULL},
    {"addmv.default", py_addmv, METH_O, NULL},
    {"addr.default", py_addr, METH_O, NULL},
    {"outer.default", py_outer, METH_O, NULL},
    {"inner.default", py_inner, METH_O, NULL},
    {NULL, NULL, 0, NULL},
};

MODULE(_sums)
