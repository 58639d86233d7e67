/* Fourier transforms in C, for calls so small that what surrounds them counts: over the last dimensions, each of a power of two of points, or of few.
 *
 * In: the canonical arguments of an operator, as a tuple. Out: its result as a row-major tensor, nothing recorded; or None where the call
 * is not of that kind (other lengths, other dimensions, memory that is not row-major, many elements): the caller then runs the operator's
 * rules, which know the rest.
 */
#include "native_moves.h"
#include <math.h>

enum { LANES = 16, EIGHT = 8, MOST_POINTS = 1024, FEW_POINTS = 48, MOST_TRANSFORMED = 1 << 17 };
enum { TO_COMPLEX, FROM_REAL, TO_HALF, FROM_HALF }; /* complex to complex; real to all points, to half of them; half of them to real */

#define T float
#define NAME(f) f##_f
#include "native_fourier.h"
#define T double
#define NAME(f) f##_d
#include "native_fourier.h"

static double cosines[MOST_POINTS], sines[MOST_POINTS];
static i64 tabled;

/* The factors of n points. */
static void use_points(i64 n) {
    if (n == tabled) return;
    for (i64 k = 0; k < n; k++) {
        cosines[k] = cos(6.283185307179586 * (double)k / (double)n);
        sines[k] = sin(6.283185307179586 * (double)k / (double)n);
    }
    tabled = n;
}

static int fits(i64 n) { return n > 0 && n <= (n & (n - 1) ? FEW_POINTS : MOST_POINTS); }

/* The complex numbers of (.., shape[first:]) transformed in place along dimensions first to last - 1. */
static int transform(void *data, int single, int nd, const Py_ssize_t *shape, int first, int last, int forward) {
    i64 longest = 1, count = 1;
    for (int d = 0; d < nd; d++) count *= shape[d];
    for (int d = first; d < last; d++) longest = shape[d] > longest ? shape[d] : longest;
    void *room = PyMem_Malloc((size_t)(4 * longest * LANES) * sizeof(double));
    if (!room) return -1;
    for (int d = first; d < last; d++) {
        i64 inner = 1;
        for (int e = d + 1; e < nd; e++) inner *= shape[e];
        use_points(shape[d]);
        if (single)
            transform_lines_f(data, count / (shape[d] * inner), shape[d], inner, cosines, sines, forward, room);
        else
            transform_lines_d(data, count / (shape[d] * inner), shape[d], inner, cosines, sines, forward, room);
    }
    PyMem_Free(room);
    return 0;
}

/* The transform over the last `dims` dimensions, conjugated before or after. */
static PyObject *transformed(const Array *a, int what, int dims, int forward, double scale, int conjugate_first, int conjugate_last, i64 points) {
    int real = what == FROM_REAL || what == TO_HALF, k = kind(a), nd = a->nd, first = nd - dims;
    int is_real = k == F32 || k == F64, is_complex = k == C64 || k == C128;
    NONE_UNLESS((real ? is_real : is_complex || (what == FROM_HALF && is_real)) && is_row_major(a) && dims > 0 && dims <= nd && nd <= 8);
    Py_ssize_t shape[MOST_DIMS], wide[MOST_DIMS];
    memcpy(shape, a->shape, sizeof(*shape) * (size_t)nd);
    memcpy(wide, a->shape, sizeof(*shape) * (size_t)nd);
    if (what == FROM_HALF) wide[nd - 1] = shape[nd - 1] = (Py_ssize_t)points;
    if (what == TO_HALF) shape[nd - 1] = a->shape[nd - 1] / 2 + 1;
    NONE_UNLESS(what != FROM_HALF || a->shape[nd - 1] == points / 2 + 1);
    i64 count = 1;
    for (int d = 0; d < nd; d++) {
        NONE_UNLESS(wide[d] > 0 && wide[d] <= MOST_TRANSFORMED / count && (d < first || fits(wide[d])));
        count *= wide[d];
    }
    int single = k == F32 || k == C64;
    i64 rows = count / wide[nd - 1];
    Array *r = new_array(nd, shape, what == FROM_HALF ? (single ? F32 : F64) : single ? C64 : C128);
    if (!r) return NULL;
    int in_place = what == TO_COMPLEX || what == FROM_REAL;
    size_t size = single ? sizeof(float) : sizeof(double);
    char *work = in_place ? r->data : PyMem_Malloc((size_t)count * 2 * size), *half = NULL;
    int failed = !work;
    if (!failed && what == TO_COMPLEX) memcpy(work, a->data, (size_t)count * 2 * size);
#define BOTH(function, ...) (single ? function##_f(__VA_ARGS__) : function##_d(__VA_ARGS__))
#define F(x) ((void *)(x))
    if (!failed && real) BOTH(widen_real, F(a->data), F(work), count);
    if (!failed && what == FROM_HALF) {
        half = PyMem_Malloc((size_t)count_of(a) * 2 * size);
        failed = !half;
        if (half && is_real) BOTH(widen_real, F(a->data), F(half), count_of(a));
        if (half && !is_real) memcpy(half, a->data, (size_t)count_of(a) * 2 * size);
        if (half && conjugate_first) BOTH(scale_all, F(half), 2 * count_of(a), 1, 1);
        failed = failed || transform(half, single, nd, a->shape, first, nd - 1, forward);
        if (!failed) BOTH(mirror_half, F(half), F(work), rows, points);
        failed = failed || transform(work, single, nd, wide, nd - 1, nd, forward);
        if (!failed) BOTH(keep_real, F(work), F(r->data), count);
        if (!failed) BOTH(scale_all, F(r->data), count, scale, 0);
    } else if (!failed) {
        failed = transform(work, single, nd, wide, first, nd, forward);
        if (what == TO_HALF) BOTH(keep_half, F(work), F(r->data), rows, wide[nd - 1]);
        BOTH(scale_all, F(r->data), 2 * count_of(r), scale, conjugate_last);
    }
    if (!in_place) PyMem_Free(work);
    PyMem_Free(half);
    if (failed) {
        Py_DECREF(r);
        return PyErr_NoMemory();
    }
    return tensor_of(r);
}

/* How many dimensions a tuple names, where they are the last ones in their order; 0 where they are not. */
static int last_dims(PyObject *value, int nd) {
    Py_ssize_t dims[MOST_DIMS];
    int n = integers_of(value, dims, MOST_DIMS);
    for (int i = 0; i < n; i++)
        if ((dims[i] < 0 ? dims[i] + nd : dims[i]) != nd - n + i) return 0;
    return n > 0 && n <= nd ? n : 0;
}

static double scale_of(Py_ssize_t code, int dims, const Py_ssize_t *shape, int nd, i64 last) {
    double n = 1;
    for (int d = nd - dims; d < nd; d++) n *= (double)(d == nd - 1 && last > 0 ? last : shape[d]);
    return code == 0 ? 1 : code == 1 ? 1 / sqrt(n) : 1 / n;
}

/* ---- operators: self, dim, normalization, then what each has */
static PyObject *operated(PyObject *args, int what) {
    Array *a = strided_of(argument(args, 0));
    Py_ssize_t code, points = 0;
    NONE_UNLESS(a && integer_of(argument(args, 2), &code) && code >= 0 && code <= 2);
    int dims = last_dims(argument(args, 1), a->nd), forward = what == TO_COMPLEX ? argument(args, 3) == Py_True : what != FROM_HALF;
    NONE_UNLESS(dims && (what != FROM_HALF || (integer_of(argument(args, 3), &points) && points > 0)));
    if (what == TO_HALF && argument(args, 3) != Py_True) what = FROM_REAL;
    return transformed(a, what, dims, forward, scale_of(code, dims, a->shape, a->nd, points), 0, 0, points);
}

static PyObject *py_c2c(PyObject *self, PyObject *args) { return operated(args, TO_COMPLEX); }
static PyObject *py_r2c(PyObject *self, PyObject *args) { return operated(args, TO_HALF); }
static PyObject *py_c2r(PyObject *self, PyObject *args) { return operated(args, FROM_HALF); }

/* ---- functions: self, n or s, dim, norm; only where neither lengths nor a norm are given */
enum { ONE, ALL };

static PyObject *named(PyObject *args, int what, int rank, int forward, int conjugate) {
    Array *a = strided_of(argument(args, 0));
    NONE_UNLESS(a && a->nd > 0 && argument(args, 1) == Py_None && argument(args, 3) == Py_None);
    PyObject *given = argument(args, 2);
    Py_ssize_t dim;
    int dims;
    if (rank == ONE)
        dims = integer_of(given, &dim) && (dim == -1 || dim == a->nd - 1);
    else
        dims = given == Py_None ? a->nd : last_dims(given, a->nd);
    NONE_UNLESS(dims);
    int real = kind(a) == F32 || kind(a) == F64;
    if (what == TO_COMPLEX && real) what = FROM_REAL;
    i64 points = what == FROM_HALF ? 2 * (a->shape[a->nd - 1] - 1) : 0;
    NONE_UNLESS(what != FROM_HALF || points > 0);
    double scale = scale_of(forward ? 0 : 2, dims, a->shape, a->nd, points);
    int inverse = !forward && what != TO_HALF; /* half a spectrum of the inverse is the conjugate of the other's */
    if (what == FROM_HALF) inverse = 1;
    return transformed(a, what, dims, !inverse, scale, conjugate && what == FROM_HALF, conjugate && what == TO_HALF, points);
}

#define NAMED(name, what, rank, forward, conjugate) \
    static PyObject *name(PyObject *self, PyObject *args) { return named(args, what, rank, forward, conjugate); }
NAMED(py_fft, TO_COMPLEX, ONE, 1, 0)
NAMED(py_ifft, TO_COMPLEX, ONE, 0, 0)
NAMED(py_rfft, TO_HALF, ONE, 1, 0)
NAMED(py_irfft, FROM_HALF, ONE, 0, 0)
NAMED(py_hfft, FROM_HALF, ONE, 1, 1)
NAMED(py_ihfft, TO_HALF, ONE, 0, 1)
NAMED(py_fftn, TO_COMPLEX, ALL, 1, 0)
NAMED(py_ifftn, TO_COMPLEX, ALL, 0, 0)
NAMED(py_rfftn, TO_HALF, ALL, 1, 0)
NAMED(py_irfftn, FROM_HALF, ALL, 0, 0)

/* By the operator that each computes. */
static PyMethodDef methods[] = {
    {"use_arrays", use_arrays, METH_VARARGS, "use_arrays(ndarray, [(number, dtype), ...], make_tensor)"},
    {"_fft_c2c.default", py_c2c, METH_O, NULL},
    {"_fft_r2c.default", py_r2c, METH_O, NULL},
    {"_fft_c2r.default", py_c2r, METH_O, NULL},
    {"fft_fft.default", py_fft, METH_O, NULL},
    {"fft_ifft.default", py_ifft, METH_O, NULL},
    {"fft_rfft.default", py_rfft, METH_O, NULL},
    {"fft_irfft.default", py_irfft, METH_O, NULL},
    {"fft_hfft.default", py_hfft, METH_O, NULL},
    {"fft_ihfft.default", py_ihfft, METH_O, NULL},
    {"fft_fft2.default", py_fftn, METH_O, NULL},
    {"fft_ifft2.default", py_ifftn, METH_O, NULL},
    {"fft_rfft2.default", py_rfftn, METH_O, NULL},
    {"fft_irfft2.default", py_irfftn, METH_O, NULL},
    {"fft_fftn.default", py_fftn, METH_O, NULL},
    {"fft_ifftn.default", py_ifftn, METH_O, NULL},
    {"fft_rfftn.default", py_rfftn, METH_O, NULL},
    {"fft_irfftn.default", py_irfftn, METH_O, NULL},
    {NULL, NULL, 0, NULL},
};

MODULE(_fourier)
