/* Fourier transforms in C, over the last dimensions, each of a power of two of points, or of few; what the short-time ones do beside.
 *
 * In: the canonical arguments of an operator, as a tuple. Out: its result as a row-major tensor, nothing recorded; or None where the call
 * is not of that kind (other lengths, other dimensions, memory that is not row-major, many elements): the caller then runs the operator's
 * rules, which know the rest.
 */
#include "native_moves.h"
#include <math.h>

enum { LANES = 16, EIGHT = 8, MOST_POINTS = 1024, FEW_POINTS = 48, MOST_ODD = 255, MOST_TRANSFORMED = 1 << 20 };
enum { TO_COMPLEX, FROM_REAL, TO_HALF, FROM_HALF }; /* complex to complex; real to all points, to half of them; half of them to real */

#define T float
#define NAME(f) f##_f
#include "native_fourier.h"
#define T double
#define NAME(f) f##_d
#include "native_fourier.h"

static double cosines[MOST_POINTS], sines[MOST_POINTS];
static i64 tabled;

/* The factors of n points. Where one is 0, 1 or -1, it is that, so that what cancels does. */
static void use_points(i64 n) {
    if (n == tabled) return;
    for (i64 k = 0; k < n; k++) {
        int turns = 4 * k % n == 0, quarters = (int)(4 * k / n);
        cosines[k] = turns ? (quarters == 0) - (quarters == 2) : cos(6.283185307179586 * (double)k / (double)n);
        sines[k] = turns ? (quarters == 1) - (quarters == 3) : sin(6.283185307179586 * (double)k / (double)n);
    }
    tabled = n;
}

/* A prime of which the sums are quicker than what others do: of other numbers, their factors save more. */
static int is_odd_prime(i64 n) {
    for (i64 k = 3; k * k <= n; k += 2)
        if (n % k == 0) return 0;
    return n > 2 && n & 1 && n <= MOST_ODD;
}

static int fits(i64 n) { return n > 0 && (n <= (n & (n - 1) ? FEW_POINTS : MOST_POINTS) || is_odd_prime(n)); }

/* As the last dimension of real numbers, of which two make a complex one. */
static int fits_real(i64 n) { return fits(n) || (n % 2 == 0 && is_odd_prime(n / 2)); }

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

#define BOTH(function, ...) (single ? function##_f(__VA_ARGS__) : function##_d(__VA_ARGS__))
#define F(x) ((void *)(x))

/* Rows of n real numbers to half their spectra, or back. */
static int real_transform(const void *x, void *y, int single, i64 rows, i64 n, int back) {
    void *room = PyMem_Malloc((size_t)((6 * n + 4) * LANES) * (single ? sizeof(float) : sizeof(double)));
    if (!room) return -1;
    use_points(n);
    if (back)
        BOTH(rows_of_spectra, F(x), F(y), rows, n, cosines, sines, room);
    else
        BOTH(real_rows, F(x), F(y), rows, n, cosines, sines, room);
    PyMem_Free(room);
    return 0;
}

/* Real numbers to their spectra: half of them, or all, over the last dimensions from `first` on. `work` has room for half of them. */
static int spectra(const Array *a, char *y, char *work, int what, int single, int first) {
    const int nd = a->nd;
    Py_ssize_t half[MOST_DIMS];
    memcpy(half, a->shape, sizeof(*half) * (size_t)nd);
    half[nd - 1] = a->shape[nd - 1] / 2 + 1;
    i64 n = a->shape[nd - 1], rows = count_of(a) / n;
    char *into = what == TO_HALF ? y : work;
    if (real_transform(a->data, into, single, rows, n, 0)) return -1;
    if (what == FROM_REAL) BOTH(mirror_half, F(work), F(y), rows, n);
    return transform(y, single, nd, what == TO_HALF ? half : a->shape, first, nd - 1, 1);
}

/* Half spectra, conjugated where asked, to the real numbers that they are of. `work` has room for them. */
static int numbers(const Array *a, char *y, char *work, int single, int first, int conjugate, i64 points) {
    i64 count = count_of(a);
    if (kind(a) == F32 || kind(a) == F64)
        BOTH(widen_real, F(a->data), F(work), count);
    else
        memcpy(work, a->data, (size_t)count * 2 * (single ? sizeof(float) : sizeof(double)));
    if (conjugate) BOTH(scale_all, F(work), 2 * count, 1, 1);
    if (transform(work, single, a->nd, a->shape, first, a->nd - 1, 0)) return -1;
    return real_transform(work, y, single, count / a->shape[a->nd - 1], points, 1);
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
        NONE_UNLESS(wide[d] > 0 && wide[d] <= MOST_TRANSFORMED / count && (d < first || (what != TO_COMPLEX && d == nd - 1 ? fits_real(wide[d]) : fits(wide[d]))));
        count *= wide[d];
    }
    int single = k == F32 || k == C64, failed = 0;
    Array *r = new_array(nd, shape, what == FROM_HALF ? (single ? F32 : F64) : single ? C64 : C128);
    if (!r) return NULL;
    size_t size = 2 * (single ? sizeof(float) : sizeof(double));
    i64 held = what == FROM_HALF ? count_of(a) : what == FROM_REAL ? count / wide[nd - 1] * (wide[nd - 1] / 2 + 1) : 0;
    char *work = held ? PyMem_Malloc((size_t)held * size) : NULL;
    if (held && !work)
        failed = 1;
    else if (what == TO_COMPLEX) {
        memcpy(r->data, a->data, (size_t)count * size);
        failed = transform(r->data, single, nd, wide, first, nd, forward);
    } else if (what == FROM_HALF)
        failed = numbers(a, r->data, work, single, first, conjugate_first, points);
    else {
        failed = spectra(a, r->data, work, what, single, first);
        conjugate_last ^= !forward; /* of real numbers, the inverse is the conjugate */
    }
    PyMem_Free(work);
    if (failed) {
        Py_DECREF(r);
        return PyErr_NoMemory();
    }
    BOTH(scale_all, F(r->data), what == FROM_HALF ? count : 2 * count_of(r), scale, conjugate_last);
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

/* ---- self, dim: halves of dimensions change places */
static PyObject *shifted(PyObject *args, int back) {
    Array *a = strided_of(argument(args, 0));
    NONE_UNLESS(a && is_row_major(a) && a->nd > 0 && a->nd <= 4 && count_of(a) > 0);
    Py_ssize_t dims[4], cut[4] = {0}, size = size_of(a);
    int all = argument(args, 1) == Py_None, many = all ? a->nd : integers_of(argument(args, 1), dims, 4);
    NONE_UNLESS(many >= 0);
    for (int i = 0; i < many; i++) {
        Py_ssize_t d = all ? i : dims[i] < 0 ? dims[i] + a->nd : dims[i];
        NONE_UNLESS(d >= 0 && d < a->nd && !cut[d]);
        cut[d] = (a->shape[d] + !back) / 2; /* what goes to the end */
    }
    Array *r = new_array(a->nd, a->shape, kind(a));
    if (!r) return NULL;
    for (int corner = 0; corner < 1 << a->nd; corner++) {
        Py_ssize_t shape[4], from = 0, to = 0, left = 1;
        for (int d = 0; d < a->nd; d++) {
            int second = corner >> d & 1;
            shape[d] = second ? a->shape[d] - cut[d] : cut[d];
            from += second ? cut[d] * r->strides[d] : 0;
            to += second ? 0 : (a->shape[d] - cut[d]) * r->strides[d];
            left *= shape[d];
        }
        if (left) copy_block(r->data + to, r->strides, a->data + from, r->strides, shape, a->nd, (int)size);
    }
    return tensor_of(r);
}

static PyObject *py_fftshift(PyObject *self, PyObject *args) { return shifted(args, 0); }
static PyObject *py_ifftshift(PyObject *self, PyObject *args) { return shifted(args, 1); }

/* ---- grad_in, input_sizes, dim, size, step: pieces of rows added up where they lie `step` apart */
#define ADDED(type)                                                                                                       \
    for (i64 r = 0; r < rows; r++)                                                                                        \
        for (i64 i = 0; i < frames; i++) {                                                                                \
            const i64 f = backwards ? frames - 1 - i : i;                                                                 \
            const char *from = g->data + r * along + f * g->strides[nd - 2];                                              \
            type *to = (type *)y->data + r * length + f * step;                                                           \
            for (i64 k = 0; k < size; k++) to[k] += *(const type *)(from + k * g->strides[nd - 1]);                       \
        }

static PyObject *py_unfold_backward(PyObject *self, PyObject *args) {
    Array *g = strided_of(argument(args, 0));
    Py_ssize_t shape[2], size, step;
    const int nd = g ? g->nd : 0, dims = integers_of(argument(args, 1), shape, 2), dim = dims > 0 && PyLong_CheckExact(argument(args, 2));
    NONE_UNLESS(g && dim && kind(g) <= F64 && nd == dims + 1 && integer_of(argument(args, 3), &size) && integer_of(argument(args, 4), &step));
    Py_ssize_t which = PyLong_AsSsize_t(argument(args, 2)), rows = dims == 2 ? shape[0] : 1, length = shape[dims - 1];
    if (which == -1 && PyErr_Occurred()) PyErr_Clear();
    Py_ssize_t frames = g->shape[nd - 2], along = dims == 2 ? g->strides[0] : 0;
    NONE_UNLESS((which == dims - 1 || which == -1) && step > 0 && size > 0 && g->shape[nd - 1] == size && count_of(g) > 0);
    NONE_UNLESS((dims == 1 || g->shape[0] == rows) && rows > 0 && (frames - 1) * step + size <= length);
    Array *y = new_array(dims, shape, kind(g));
    if (!y) return NULL;
    const int backwards = size <= frames; /* the order of the operator's kernel */
    memset(y->data, 0, (size_t)(rows * length * size_of(y)));
    if (kind(g) == F32) {
        ADDED(float)
    } else {
        ADDED(double)
    }
    return tensor_of(y);
}

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
    {"unfold_backward.default", py_unfold_backward, METH_O, NULL},
    {"fft_fftshift.default", py_fftshift, METH_O, NULL},
    {"fft_ifftshift.default", py_ifftshift, METH_O, NULL},
    {NULL, NULL, 0, NULL},
};

MODULE(_fourier)
