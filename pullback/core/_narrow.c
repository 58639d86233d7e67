/* bfloat16 and float16 in C, a row in single precision at a time: sums and means, softmax, layer norm.
 *
 * In: the canonical arguments of an operator, as a tuple. Out: its results as row-major tensors, nothing recorded; or None where the call
 * is not of that kind (another dtype, memory that is not row-major, arguments that are refused): the caller then runs the operator's rules.
 * What is computed is rounded once. Results do not depend on the number of threads.
 */
#include "native_narrow.h"
#include "native_lanes.h"
#include "native_widths.h"
#include <math.h>

enum { SUM, MEAN = 3, PIECE = 1 << 13, LANES = 16, MOST_SUMMED = 1 << 16 };
static void (*reduce_singles)(const float *, float *, int, Py_ssize_t, Py_ssize_t, Py_ssize_t);

/* use_reducers(address for float32, address for float64): sums are those of _native.c, so that every way to a sum rounds alike */
static PyObject *use_reducers(PyObject *self, PyObject *args) {
    PyObject *single, *precise;
    if (!PyArg_ParseTuple(args, "O!O!", &PyLong_Type, &single, &PyLong_Type, &precise)) return NULL;
    *(void **)&reduce_singles = PyLong_AsVoidPtr(single);
    if (PyErr_Occurred()) return NULL;
    Py_RETURN_NONE;
}

static void widen(int half, const u16 *x, float *y, i64 n) {
    char *pair[2] = {(char *)x, (char *)y};
    widens[half](n, pair);
}

static void narrow(int half, const float *x, u16 *y, i64 n) {
    char *pair[2] = {(char *)x, (char *)y};
    narrows[half](n, pair);
}

static int is_half(const Array *a) { return a->dtype->number == FLOAT16_NUMBER; }

/* The array of a tensor of one of both, with elements, in any order of memory, else NULL. The tensor holds it. */
static Array *half_of(PyObject *tensor) {
    PyObject *found = PyObject_GetAttr(tensor, array_name);
    if (!found) {
        PyErr_Clear();
        return NULL;
    }
    Array *a = (Array *)found;
    const int known = Py_IS_TYPE(found, array_type) && a->flags & ALIGNED && (is_half(a) || a->dtype->number == bfloat16_number);
    const int fits = known && widens[0] && a->dtype->byteorder != '>' && has_elements(a);
    Py_DECREF(found);
    return fits ? a : NULL;
}

static Array *new_half(int half, int nd, const Py_ssize_t *shape) {
    return (Array *)array_new(array_type, nd, shape, half ? FLOAT16_NUMBER : bfloat16_number, NULL, NULL, 0, 0, NULL);
}

/* Takes the reference. */
static PyObject *half_tensor(Array *a) {
    PyObject *given[2] = {(PyObject *)a, a && is_half(a) ? float16 : bfloat16}, *result = a ? PyObject_Vectorcall(make_tensor, given, 2, NULL) : NULL;
    Py_XDECREF(a);
    return result;
}

/* A row-major one, of four and five dimensions in no order of channels too. */
static Array *rows_of(PyObject *tensor) {
    Array *a = half_of(tensor);
    if (!a || !is_row_major(a) || is_deterministic(process)) return NULL;
    return (a->nd == 4 || a->nd == 5) && (a->shape[1] == 1 || a->shape[a->nd - 1] == 1) ? NULL : a;
}

/* ---- sums and means */
typedef struct {
    const u16 *x;
    double *sums;
    i64 n;
    int half;
} Pieces;

static void sum_pieces(long first, long last, void *const *arguments) {
    const Pieces *j = arguments[0];
    float room[PIECE], sum;
    for (i64 p = first; p < last; p++) {
        const i64 at = p * PIECE, many = j->n - at < PIECE ? j->n - at : PIECE;
        widen(j->half, j->x + at, room, many);
        reduce_singles(room, &sum, SUM, 1, many, 1);
        j->sums[p] = (double)sum;
    }
}

static PyObject *all_summed(Array *a, int how) {
    const i64 n = count_of(a), pieces = (n + PIECE - 1) / PIECE;
    double *sums = PyMem_Malloc(sizeof(double) * (size_t)pieces), total = 0;
    if (!sums) return PyErr_NoMemory();
    Pieces job = {(const u16 *)a->data, sums, n, is_half(a)};
    void *const arguments[] = {&job};
    over_parts(sum_pieces, pieces, n, arguments, a, NULL, NULL);
    for (i64 p = 0; p < pieces; p++) total += sums[p];
    PyMem_Free(sums);
    Array *r = new_half(is_half(a), 0, NULL);
    const float result = (float)(how == MEAN ? total / (double)n : total);
    if (r) narrow(is_half(a), &result, (u16 *)r->data, 1);
    return half_tensor(r);
}

/* self, dim, keepdim, dtype: along one dimension */
static PyObject *dim_summed(PyObject *args, int how) {
    Array *a = rows_of(argument(args, 0));
    PyObject *dims = argument(args, 1);
    NONE_UNLESS(a && reduce_singles && argument(args, 3) == Py_None && a->nd && count_of(a) <= MOST_SUMMED && PyTuple_Check(dims));
    NONE_UNLESS(PyTuple_GET_SIZE(dims) == 1);
    const int d = dim_of(PyTuple_GET_ITEM(dims, 0), a), keep = argument(args, 2) == Py_True;
    NONE_UNLESS(d >= 0);
    Py_ssize_t shape[MOST_DIMS], outer = 1, inner = 1, n = a->shape[d];
    int nd = 0;
    for (int e = 0; e < a->nd; e++) {
        if (e != d) *(e < d ? &outer : &inner) *= a->shape[e];
        if (e != d || keep) shape[nd++] = e == d ? 1 : a->shape[e];
    }
    float *room = PyMem_Malloc(sizeof(float) * (size_t)(outer * (n + 1) * inner));
    if (!room) return PyErr_NoMemory();
    Array *r = new_half(is_half(a), nd, shape);
    if (r) {
        widen(is_half(a), (const u16 *)a->data, room, outer * n * inner);
        reduce_singles(room, room + outer * n * inner, how, outer, n, inner);
        narrow(is_half(a), room + outer * n * inner, (u16 *)r->data, outer * inner);
    }
    PyMem_Free(room);
    return half_tensor(r);
}

static PyObject *py_sum_dim(PyObject *self, PyObject *args) { return dim_summed(args, SUM); }
static PyObject *py_mean_dim(PyObject *self, PyObject *args) { return dim_summed(args, MEAN); }

static PyObject *whole(PyObject *args, int how) { /* self, dtype */
    Array *a = half_of(argument(args, 0));
    NONE_UNLESS(a && is_row_major(a) && reduce_singles && argument(args, 1) == Py_None && !is_deterministic(process));
    return all_summed(a, how);
}

static PyObject *py_sum(PyObject *self, PyObject *args) { return whole(args, SUM); }
static PyObject *py_mean(PyObject *self, PyObject *args) { return whole(args, MEAN); }

/* ---- rows */
typedef struct {
    const u16 *x;
    const float *weight, *bias;
    u16 *y, *means, *scales;
    i64 n;
    double eps;
    int half, logarithm, failed;
} Rows;

CLONED_WIDE static float softmax_row(float *x, i64 n) { /* exponentials where the numbers were; what is subtracted */
    float tops[LANES], top = x[0];
    const i64 whole = n / LANES * LANES;
    for (int l = 0; l < LANES; l++) tops[l] = top;
    for (i64 k = 0; k < whole; k += LANES)
        for (int l = 0; l < LANES; l++) tops[l] = x[k + l] > tops[l] ? x[k + l] : tops[l];
    for (i64 k = whole; k < n; k++) top = x[k] > top ? x[k] : top;
    for (int l = 0; l < LANES; l++) top = tops[l] > top ? tops[l] : top;
    for (i64 k = 0; k < n; k++) x[k] = f_exp(x[k] - top);
    return top;
}

CLONED_WIDE static double row_sum(const float *x, i64 n) {
    double lanes[LANES] = {0}, sum = 0;
    const i64 whole = n / LANES * LANES;
    for (i64 k = 0; k < whole; k += LANES)
        for (int l = 0; l < LANES; l++) lanes[l] += (double)x[k + l];
    for (i64 k = whole; k < n; k++) sum += (double)x[k];
    for (int l = 0; l < LANES; l++) sum += lanes[l];
    return sum;
}

CLONED_WIDE static void divide_row(float *x, i64 n, float sum) {
    for (i64 k = 0; k < n; k++) x[k] /= sum;
}

static void softmax_rows(long first, long last, void *const *arguments) {
    Rows *j = arguments[0];
    const i64 n = j->n;
    float *room = malloc(sizeof(float) * (size_t)n);
    if (!room) j->failed = 1;
    for (i64 r = first; room && r < last; r++) {
        const u16 *x = j->x + r * n;
        widen(j->half, x, room, n);
        const float top = softmax_row(room, n), sum = (float)row_sum(room, n);
        if (j->logarithm) {
            const float rest = logf(sum);
            widen(j->half, x, room, n);
            for (i64 k = 0; k < n; k++) room[k] = room[k] - top - rest;
        } else
            divide_row(room, n, sum);
        narrow(j->half, room, j->y + r * n, n);
    }
    free(room);
}

static PyObject *softmax(PyObject *args, int logarithm) { /* self, dim, half_to_float: along the last dimension */
    Array *a = rows_of(argument(args, 0));
    NONE_UNLESS(a && a->nd && argument(args, 2) == Py_False && dim_of(argument(args, 1), a) == a->nd - 1);
    Array *r = new_half(is_half(a), a->nd, a->shape);
    if (!r) return NULL;
    Rows job = {.x = (const u16 *)a->data, .y = (u16 *)r->data, .n = a->shape[a->nd - 1], .half = is_half(a), .logarithm = logarithm};
    void *const arguments[] = {&job};
    over_parts(softmax_rows, count_of(a) / job.n, count_of(a), arguments, a, r, NULL);
    if (!job.failed) return half_tensor(r);
    Py_DECREF(r);
    return PyErr_NoMemory();
}

static PyObject *py_softmax(PyObject *self, PyObject *args) { return softmax(args, 0); }
static PyObject *py_log_softmax(PyObject *self, PyObject *args) { return softmax(args, 1); }

CLONED_WIDE static double row_deviation(const float *x, i64 n, double mean) {
    double lanes[LANES] = {0}, sum = 0;
    const i64 whole = n / LANES * LANES;
    for (i64 k = 0; k < whole; k += LANES)
        for (int l = 0; l < LANES; l++) lanes[l] += ((double)x[k + l] - mean) * ((double)x[k + l] - mean);
    for (i64 k = whole; k < n; k++) sum += ((double)x[k] - mean) * ((double)x[k] - mean);
    for (int l = 0; l < LANES; l++) sum += lanes[l];
    return sum;
}

CLONED_WIDE static void scale_row(float *x, i64 n, float mean, float scale, const float *weight, const float *bias) {
    for (i64 k = 0; k < n; k++) x[k] = (x[k] - mean) * scale;
    if (weight)
        for (i64 k = 0; k < n; k++) x[k] *= weight[k];
    if (bias)
        for (i64 k = 0; k < n; k++) x[k] += bias[k];
}

static void norm_rows(long first, long last, void *const *arguments) {
    Rows *j = arguments[0];
    const i64 n = j->n;
    float *room = malloc(sizeof(float) * (size_t)n);
    if (!room) j->failed = 1;
    for (i64 r = first; room && r < last; r++) {
        widen(j->half, j->x + r * n, room, n);
        const double mean = row_sum(room, n) / (double)n, scale = 1 / sqrt(row_deviation(room, n, mean) / (double)n + j->eps);
        const float singles[2] = {(float)mean, (float)scale};
        narrow(j->half, singles, j->means + r, 1);
        narrow(j->half, singles + 1, j->scales + r, 1);
        scale_row(room, n, singles[0], singles[1], j->weight, j->bias);
        narrow(j->half, room, j->y + r * n, n);
    }
    free(room);
}

/* None, or as many elements as a row has, in their order, of the rows' dtype: in single precision, into `room`. */
static int parameter(PyObject *value, i64 n, int nd, int half, float *room, const float **into) {
    *into = NULL;
    if (value == Py_None) return 1;
    Array *a = half_of(value);
    if (!a || is_half(a) != half || !is_row_major(a) || a->nd != nd || count_of(a) != n) return 0;
    widen(half, (const u16 *)a->data, room, n);
    *into = room;
    return 1;
}

static PyObject *py_layer_norm(PyObject *self, PyObject *args) { /* input, normalized_shape, weight, bias, eps */
    Array *a = rows_of(argument(args, 0));
    Py_ssize_t sizes[MOST_DIMS], shape[MOST_DIMS];
    const int many = a ? integers_of(argument(args, 1), sizes, MOST_DIMS) : -1;
    double eps;
    NONE_UNLESS(many > 0 && many <= a->nd && real_of(argument(args, 4), &eps));
    Rows job = {.x = (const u16 *)a->data, .n = 1, .eps = eps};
    for (int d = 0; d < a->nd; d++) {
        const int i = d - (a->nd - many);
        NONE_UNLESS(i < 0 || sizes[i] == a->shape[d]);
        shape[d] = i < 0 ? a->shape[d] : 1;
        if (i >= 0) job.n *= a->shape[d];
    }
    job.half = is_half(a);
    float *room = PyMem_Malloc(sizeof(float) * 2 * (size_t)job.n);
    if (!room) return PyErr_NoMemory();
    if (!parameter(argument(args, 2), job.n, many, job.half, room, &job.weight) || !parameter(argument(args, 3), job.n, many, job.half, room + job.n, &job.bias)) {
        PyMem_Free(room);
        Py_RETURN_NONE;
    }
    Array *parts[3] = {new_half(job.half, a->nd, a->shape), new_half(job.half, a->nd, shape), new_half(job.half, a->nd, shape)};
    PyObject *result = parts[0] && parts[1] && parts[2] ? PyTuple_New(3) : NULL;
    if (result) {
        job.y = (u16 *)parts[0]->data, job.means = (u16 *)parts[1]->data, job.scales = (u16 *)parts[2]->data;
        void *const arguments[] = {&job};
        over_parts(norm_rows, count_of(a) / job.n, count_of(a), arguments, a, parts[0], NULL);
        if (job.failed) {
            Py_CLEAR(result);
            PyErr_NoMemory();
        }
    }
    PyMem_Free(room);
    for (int i = 0; i < 3; i++) {
        PyObject *t = result ? half_tensor(parts[i]) : NULL;
        if (t)
            PyTuple_SET_ITEM(result, i, t);
        else if (result)
            Py_CLEAR(result);
        else
            Py_XDECREF(parts[i]);
    }
    return result;
}

/* By the operator that each computes. */
static PyMethodDef methods[] = {
    {"use_arrays", use_arrays, METH_VARARGS, "use_arrays(ndarray, [(number, dtype), ...], make_tensor)"},
    {"use_threads", use_threads, METH_VARARGS, "use_threads(address, function)"},
    {"use_bfloat16", use_bfloat16, METH_VARARGS, "use_bfloat16(number, dtype, process)"},
    {"use_casts", use_casts, METH_VARARGS, "use_casts(float16, (address, address, address, address))"},
    {"use_reducers", use_reducers, METH_VARARGS, "use_reducers(address for float32, address for float64)"},
    {"sum.default", py_sum, METH_O, NULL},
    {"sum.dim_IntList", py_sum_dim, METH_O, NULL},
    {"mean.default", py_mean, METH_O, NULL},
    {"mean.dim", py_mean_dim, METH_O, NULL},
    {"_softmax.default", py_softmax, METH_O, NULL},
    {"_log_softmax.default", py_log_softmax, METH_O, NULL},
    {"native_layer_norm.default", py_layer_norm, METH_O, NULL},
    {NULL, NULL, 0, NULL},
};

MODULE(_narrow)
