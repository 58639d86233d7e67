/* Elements chosen by masks and places in C, for calls where what surrounds a loop counts: where, masked fills, put, places of truths.
 *
 * In: the canonical arguments of an operator as a tuple, or those of a public function as they are spelled (native_fronts.h). Out: the
 * result as row-major tensors, nothing recorded (of an in-place form its first argument, written, its version one higher); or None where the
 * call is not of that kind (another dtype, shapes that broadcast, memory that is not row-major, many elements, arguments that are refused):
 * nothing has changed then, and the caller runs the operator's rules, which know the rest. Every place is looked at before anything is written.
 */
#include "native_fronts.h"

enum { MOST_PICKED = 1 << 16 };

/* Some elements and not many; of four and five dimensions in no order of channels too, which a result would keep. */
static int is_picked(const Array *a) {
    if (!a || count_of(a) == 0 || count_of(a) > MOST_PICKED) return 0;
    return (a->nd != 4 && a->nd != 5) || (a->shape[1] > 1 && a->shape[a->nd - 1] > 1);
}

static int same_shape(const Array *a, const Array *b) {
    return a->nd == b->nd && (!a->nd || !memcmp(a->shape, b->shape, sizeof(*a->shape) * (size_t)a->nd));
}

/* One statement for elements of each size: `call(type)`. */
#define BY_SIZE(size, call)          \
    switch (size) {                  \
    case 4: call(int) break;         \
    case 8: call(i64) break;         \
    case 2: call(short) break;       \
    default: call(char)              \
    }

/* ---- masks */
/* self, mask, source: elements of `source` in their order where the mask is */
static PyObject *masked_scatter(const Array *a, const Array *mask, const Array *src) {
    NONE_UNLESS(a && mask && src && has_elements(a) && kind(mask) == BOOL && kind(a) == kind(src) && same_shape(a, mask));
    i64 n = count_of(a), wanted = 0;
    int size = size_of(a);
    for (i64 k = 0; k < n; k++) wanted += mask->data[k] != 0;
    NONE_UNLESS(wanted <= count_of(src));
    Array *r = new_array(a->nd, a->shape, kind(a));
#define SPREAD(type)                                                                  \
    {                                                                                 \
        const type *x = (const type *)a->data, *from = (const type *)src->data;       \
        type *y = (type *)r->data;                                                    \
        for (i64 k = 0, at = 0; k < n; k++) {                                         \
            int set = mask->data[k] != 0;                                             \
            y[k] = *(set ? from + at : x + k);                                        \
            at += set;                                                                \
        }                                                                             \
    }
    if (r) BY_SIZE(size, SPREAD)
#undef SPREAD
    return tensor_of(r);
}


static PyObject *py_masked_scatter(PyObject *self, PyObject *args) {
    return masked_scatter(array_of(argument(args, 0)), array_of(argument(args, 1)), array_of(argument(args, 2)));
}

static PyObject *py_masked_scatter_front(GIVEN) {
    static const char *const names[] = {"input", "mask", "source"};
    PyObject *v[3];
    NONE_UNLESS(read_call(given, count, names, 3, 3, v));
    return masked_scatter(bare_rows(v[0]), bare_rows(v[1]), bare_rows(v[2]));
}

/* self, mask, value: a number */
static PyObject *py_masked_fill_(PyObject *self, PyObject *args) {
    Array *a = array_of(argument(args, 0)), *mask = array_of(argument(args, 1));
    PyObject *other = argument(args, 1);
    _Alignas(8) char value[8];
    NONE_UNLESS(a && mask && kind(mask) == BOOL && same_shape(a, mask) && count_of(a) <= MOST_PICKED && is_writable(a));
    NONE_UNLESS(element(argument(args, 2), kind(a), value) && is_apart(argument(args, 0), &other, 1));
    const i64 n = count_of(a);
#define FILL(type)                                                                         \
    {                                                                                      \
        const type v = *(const type *)value;                                               \
        for (i64 k = 0; k < n; k++) ((type *)a->data)[k] = mask->data[k] ? v : ((type *)a->data)[k]; \
    }
    BY_SIZE(size_of(a), FILL)
#undef FILL
    return written(argument(args, 0));
}

/* A tensor, or a number as an element like another's: the array and how far apart its elements are. A number beside truths, but
   for a truth itself, is of another dtype: the rules find which. */
static const char *chosen_from(PyObject *value, const Array *tensor, const Array *like, char *room, int *step) {
    *step = tensor ? 1 : 0;
    if (!tensor && kind(like) == BOOL && !PyBool_Check(value)) return NULL;
    return tensor ? tensor->data : element(value, kind(like), room) ? room : NULL;
}

/* Elements of one where the condition holds, of the other elsewhere: either may be a number. */
static PyObject *chosen(PyObject *condition, PyObject *one, PyObject *other) {
    Array *c = bare_rows(condition), *a = bare_rows(one), *b = bare_rows(other), *like = a ? a : b;
    _Alignas(8) char number[8];
    int step_a, step_b;
    NONE_UNLESS(c && kind(c) == BOOL && is_picked(c) && like && same_shape(c, like) && (!a || !b || (kind(a) == kind(b) && same_shape(a, b))));
    const char *from_a = chosen_from(one, a, like, number, &step_a), *from_b = chosen_from(other, b, like, number, &step_b);
    NONE_UNLESS(from_a && from_b);
    Array *r = new_array(c->nd, c->shape, kind(like));
    const i64 n = count_of(c);
#define CHOOSE(type)                                                                                    \
    {                                                                                                   \
        const type *x = (const type *)from_a, *z = (const type *)from_b;                                \
        type *y = (type *)r->data;                                                                      \
        if (step_a && step_b)                                                                           \
            for (i64 k = 0; k < n; k++) y[k] = c->data[k] ? x[k] : z[k];                                \
        else if (step_a)                                                                                \
            for (i64 k = 0; k < n; k++) y[k] = c->data[k] ? x[k] : *z;                                  \
        else                                                                                            \
            for (i64 k = 0; k < n; k++) y[k] = c->data[k] ? *x : z[k];                                  \
    }
    if (r) BY_SIZE(item_sizes[kind(like)], CHOOSE)
#undef CHOOSE
    return tensor_of(r);
}

static PyObject *py_where(GIVEN) {
    static const char *const names[] = {"condition", "input", "other", "out"};
    PyObject *v[4];
    NONE_UNLESS(read_call(given, count, names, 3, 4, v) && v[0] && v[1] && v[2] && is_absent(v[3]));
    return chosen(v[0], v[1], v[2]);
}

static PyObject *py_where_method(GIVEN) {
    static const char *const names[] = {"input", "condition", "other"};
    PyObject *v[3];
    NONE_UNLESS(read_call(given, count, names, 3, 3, v) && v[0] && v[1] && v[2] && is_plain(v[0]));
    return chosen(v[1], v[0], v[2]);
}

/* ---- places */
/* self, size, fill_value: coordinates of the first truths */
static PyObject *py_nonzero_static(PyObject *self, PyObject *args) {
    Array *a = array_of(argument(args, 0));
    Py_ssize_t size, fill, at[8] = {0};
    NONE_UNLESS(a && kind(a) == BOOL && a->nd > 0 && a->nd <= 8 && has_elements(a));
    NONE_UNLESS(integer_of(argument(args, 1), &size) && size >= 0 && size <= MOST_PICKED && integer_of(argument(args, 2), &fill));
    const Py_ssize_t shape[2] = {size, a->nd};
    Array *r = new_array(2, shape, I64);
    if (!r) return NULL;
    i64 *y = (i64 *)r->data, *end = y + size * a->nd;
    for (i64 k = 0, n = count_of(a); y < end && k < n; k++) {
        for (int d = 0; a->data[k] && d < a->nd; d++) *y++ = at[d];
        for (int d = a->nd - 1; d >= 0 && ++at[d] == a->shape[d]; d--) at[d] = 0;
    }
    while (y < end) *y++ = fill;
    return tensor_of(r);
}

/* Whether each place is from -n to n - 1. */
static int are_places(const Array *index, i64 n) {
    i64 outside = 0;
    for (i64 k = 0, many = count_of(index); k < many; k++) {
        i64 v = ((const i64 *)index->data)[k];
        outside |= (v < -n) | (v >= n);
    }
    return !outside;
}

#define PLACE(v, n) ((v) < 0 ? (v) + (n) : (v))

/* self, index, source, accumulate: elements of a copy, counted in a row */
static PyObject *py_put(PyObject *self, PyObject *args) {
    Array *a = array_of(argument(args, 0)), *index = array_of(argument(args, 1)), *src = array_of(argument(args, 2));
    const int adds = argument(args, 3) == Py_True;
    NONE_UNLESS(is_picked(a) && index && src && kind(index) == I64 && kind(src) == kind(a) && count_of(index) == count_of(src));
    const i64 n = count_of(a), many = count_of(index), *at = (const i64 *)index->data;
    NONE_UNLESS(many <= MOST_PICKED && are_places(index, n) && (!adds || kind(a) <= I32));
    Array *r = new_array(a->nd, a->shape, kind(a));
    if (!r) return NULL;
    memcpy(r->data, a->data, (size_t)(n * size_of(a)));
#define CALL(type, suffix) for (i64 k = 0; k < many; k++) ((type *)r->data)[PLACE(at[k], n)] += ((const type *)src->data)[k]
#define SET(type) for (i64 k = 0; k < many; k++) ((type *)r->data)[PLACE(at[k], n)] = ((const type *)src->data)[k];
    if (adds) {
        BY_KIND(kind(a), CALL)
    } else
        BY_SIZE(size_of(a), SET)
#undef CALL
#undef SET
    return tensor_of(r);
}

/* input, indices, dim: both of one shape but along `dim` */
static PyObject *py_take_along_dim(GIVEN) {
    static const char *const names[] = {"input", "indices", "dim", "out"};
    PyObject *v[4];
    NONE_UNLESS(read_call(given, count, names, 3, 4, v) && !is_absent(v[2]) && is_absent(v[3]));
    Array *a = bare_rows(v[0]), *index = bare_rows(v[1]);
    NONE_UNLESS(a && index && kind(index) == I64 && has_elements(a) && has_elements(index) && a->nd && a->nd == index->nd);
    NONE_UNLESS(count_of(a) <= MOST_PICKED && count_of(index) <= MOST_PICKED);
    const int dim = dim_of(v[2], a);
    NONE_UNLESS(dim >= 0 && are_places(index, a->shape[dim]));
    i64 outer = 1, inner = 1;
    for (int d = 0; d < a->nd; d++) {
        NONE_UNLESS(d == dim || a->shape[d] == index->shape[d]);
        if (d != dim) *(d < dim ? &outer : &inner) *= a->shape[d];
    }
    Array *r = new_array(index->nd, index->shape, kind(a));
    const i64 n = a->shape[dim], many = index->shape[dim], *at = (const i64 *)index->data;
#define TAKE(type)                                                                                       \
    {                                                                                                    \
        const type *x = (const type *)a->data;                                                           \
        type *y = (type *)r->data;                                                                       \
        for (i64 o = 0; o < outer; o++, x += n * inner)                                                  \
            for (i64 k = 0; k < many; k++)                                                               \
                for (i64 i = 0; i < inner; i++, at++) *y++ = x[PLACE(*at, n) * inner + i];               \
    }
    if (r) BY_SIZE(size_of(a), TAKE)
#undef TAKE
    return tensor_of(r);
}

/* The coordinates of flat places in a shape, one tensor for each dimension. */
static PyObject *py_unravel_index(GIVEN) {
    static const char *const names[] = {"indices", "shape"};
    PyObject *v[2];
    Py_ssize_t sizes[16];
    NONE_UNLESS(read_call(given, count, names, 2, 2, v) && v[1]);
    Array *a = bare_rows(v[0]);
    const int is_list = PyList_CheckExact(v[1]), nd = is_list || PyTuple_Check(v[1]) ? (int)PySequence_Fast_GET_SIZE(v[1]) : -1;
    NONE_UNLESS(a && kind(a) == I64 && is_picked(a) && nd > 0 && nd <= 16);
    for (int d = 0; d < nd; d++) NONE_UNLESS(integer_of(PySequence_Fast_GET_ITEM(v[1], d), sizes + d) && sizes[d] > 0);
    PyObject *result = PyTuple_New(nd);
    i64 step = 1, n = count_of(a);
    for (int d = nd - 1; result && d >= 0; d--) {
        Array *r = new_array(a->nd, a->shape, I64);
        for (i64 k = 0; r && k < n; k++) {
            const i64 x = ((const i64 *)a->data)[k], whole = x / step - (x % step < 0), left = whole % sizes[d];
            ((i64 *)r->data)[k] = left < 0 ? left + sizes[d] : left;
        }
        PyObject *t = tensor_of(r);
        if (t)
            PyTuple_SET_ITEM(result, d, t);
        else
            Py_CLEAR(result);
        step = step > INT64_MAX / sizes[d] ? INT64_MAX : step * sizes[d];
    }
    return result;
}

/* By the operator that each computes, or the public function that it stands for. */
static PyMethodDef methods[] = {
    {"use_arrays", use_arrays, METH_VARARGS, "use_arrays(ndarray, [(number, dtype), ...], make_tensor)"},
    {"use_process", use_process, METH_VARARGS, "use_process(process, cpu, Tensor, ambient, untracked)"},
    {"masked_scatter.default", py_masked_scatter, METH_O, NULL},
    {"torch.masked_scatter", FRONT(py_masked_scatter_front), NULL},
    {"Tensor.masked_scatter", FRONT(py_masked_scatter_front), NULL},
    {"masked_fill_.Scalar", py_masked_fill_, METH_O, NULL},
    {"torch.where", FRONT(py_where), NULL},
    {"Tensor.where", FRONT(py_where_method), NULL},
    {"nonzero_static.default", py_nonzero_static, METH_O, NULL},
    {"put.default", py_put, METH_O, NULL},
    {"torch.take_along_dim", FRONT(py_take_along_dim), NULL},
    {"Tensor.take_along_dim", FRONT(py_take_along_dim), NULL},
    {"torch.unravel_index", FRONT(py_unravel_index), NULL},
    {NULL, NULL, 0, NULL},
};

MODULE(_picks)
