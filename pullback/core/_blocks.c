/* Windows added up, powers and pairs of elements in C, for calls where what surrounds a loop counts.
 *
 * In: the canonical arguments of an operator, as a tuple. Out: its result as a row-major tensor, nothing recorded; or None where the call is
 * not of that kind (another dtype, memory that is not row-major, many elements, arguments that are refused): the caller then runs the
 * operator's rules, which know the rest.
 */
#include "native_moves.h"

enum { MOST_MOVED = 1 << 18 };
#define T float
#define NAME(f) f##_f32
#include "native_blocks.h"
#define T double
#define NAME(f) f##_f64
#include "native_blocks.h"

/* Row-major, some elements and not many. */
static Array *few_of(PyObject *tensor) {
    Array *a = array_of(tensor);
    return a && count_of(a) > 0 && count_of(a) <= MOST_MOVED ? a : NULL;
}

/* ---- self, output_size, kernel_size, dilation, padding, stride */
static int pair_of(PyObject *value, i64 least, i64 *into) {
    Py_ssize_t given[2];
    if (integers_of(value, given, 2) != 2 || given[0] < least || given[1] < least) return 0;
    into[0] = given[0], into[1] = given[1];
    return 1;
}

static PyObject *py_col2im(PyObject *self, PyObject *args) {
    Array *a = few_of(argument(args, 0));
    i64 size[2], kernel[2], dilation[2], padding[2], stride[2], out[2];
    NONE_UNLESS(a && kind(a) <= F64 && (a->nd == 2 || a->nd == 3) && pair_of(argument(args, 1), 1, size) && pair_of(argument(args, 2), 1, kernel));
    NONE_UNLESS(pair_of(argument(args, 3), 1, dilation) && pair_of(argument(args, 4), 0, padding) && pair_of(argument(args, 5), 1, stride));
    for (int i = 0; i < 2; i++) {
        NONE_UNLESS(size[i] <= MOST_MOVED && kernel[i] <= MOST_MOVED && dilation[i] <= MOST_MOVED && padding[i] <= MOST_MOVED);
        i64 left = size[i] + 2 * padding[i] - dilation[i] * (kernel[i] - 1) - 1;
        NONE_UNLESS(left >= 0);
        out[i] = left / stride[i] + 1;
    }
    i64 rows = a->shape[a->nd - 2], channels = rows / (kernel[0] * kernel[1]), images = a->nd == 3 ? a->shape[0] : 1;
    NONE_UNLESS(rows % (kernel[0] * kernel[1]) == 0 && a->shape[a->nd - 1] == out[0] * out[1] && size[0] * size[1] <= MOST_MOVED);
    NONE_UNLESS(channels > 1 && size[1] > 1 && images * channels * size[0] * size[1] <= 1 << 22);
    Py_ssize_t shape[4] = {images, channels, size[0], size[1]}, *from = a->nd == 3 ? shape : shape + 1;
    Array *r = new_array(a->nd + 1, from, kind(a));
    if (!r) return NULL;
    memset(r->data, 0, (size_t)(count_of(r) * size_of(r)));
    for (i64 i = 0; i < images; i++) {
        const char *x = a->data + i * rows * out[0] * out[1] * size_of(a);
        char *y = r->data + i * channels * size[0] * size[1] * size_of(a);
        if (kind(a) == F32)
            add_columns_f32((const float *)x, (float *)y, channels, size, kernel, dilation, padding, stride, out);
        else
            add_columns_f64((const double *)x, (double *)y, channels, size, kernel, dilation, padding, stride, out);
    }
    return tensor_of(r);
}

/* ---- powers and pairs */
static PyObject *py_vander(PyObject *self, PyObject *args) { /* x, N */
    Array *a = few_of(argument(args, 0));
    Py_ssize_t columns = 0, shape[MOST_DIMS];
    NONE_UNLESS(a && kind(a) <= F64 && a->nd > 0 && a->nd < 8 && (argument(args, 1) == Py_None || integer_of(argument(args, 1), &columns)));
    if (argument(args, 1) == Py_None) columns = a->shape[a->nd - 1];
    NONE_UNLESS(columns > 1 && columns <= (1 << 22) / count_of(a));
    memcpy(shape, a->shape, sizeof(*shape) * (size_t)a->nd);
    shape[a->nd] = columns;
    Array *r = new_array(a->nd + 1, shape, kind(a));
    if (r && kind(a) == F32) powers_f32((const float *)a->data, (float *)r->data, count_of(a), columns);
    if (r && kind(a) == F64) powers_f64((const double *)a->data, (double *)r->data, count_of(a), columns);
    return tensor_of(r);
}

static PyObject *py_combinations(PyObject *self, PyObject *args) { /* self, r, with_replacement: pairs */
    Array *a = few_of(argument(args, 0));
    Py_ssize_t r;
    NONE_UNLESS(a && a->nd == 1 && integer_of(argument(args, 1), &r) && r == 2 && a->shape[0] < 1 << 10);
    int again = argument(args, 2) == Py_True, size = size_of(a);
    Py_ssize_t n = a->shape[0], shape[2] = {again ? n * (n + 1) / 2 : n * (n - 1) / 2, 2};
    Array *y = new_array(2, shape, kind(a));
    if (!y) return NULL;
    char *to = y->data;
    for (Py_ssize_t i = 0; i < n; i++)
        for (Py_ssize_t k = again ? i : i + 1; k < n; k++, to += 2 * size) {
            memcpy(to, a->data + i * size, (size_t)size);
            memcpy(to + size, a->data + k * size, (size_t)size);
        }
    return tensor_of(y);
}

/* By the operator that each computes. */
static PyMethodDef methods[] = {
    {"use_arrays", use_arrays, METH_VARARGS, "use_arrays(ndarray, [(number, dtype), ...], make_tensor)"},
    {"col2im.default", py_col2im, METH_O, NULL},
    {"linalg_vander.default", py_vander, METH_O, NULL},
    {"combinations.default", py_combinations, METH_O, NULL},
    {NULL, NULL, 0, NULL},
};

MODULE(_blocks)
