/* Operators that move elements, in C: joined, turned, padded, laid on a diagonal. Many elements are moved by threads, without the GIL.
 *
 * In: the canonical arguments of an operator as a tuple, or those of a public function as they are spelled (native_fronts.h). Out: its
 * result as a row-major tensor, nothing recorded; or None where the call is not of that kind (another dtype, no elements, more than memory has, arguments that are refused, an order of memory that a result would keep): the
 * caller then runs the operator's rules, which know the rest.
 */
#include "native_fronts.h"
#include <math.h>
#include "native_layouts.h"
#include <math.h>

enum { MOST_MOVED = 1 << 28, MOST_JOINED = 64 };

static int is_moved(const Array *a) {
    Py_ssize_t n = count_of(a);
    return n > 0 && n <= MOST_MOVED;
}

/* Row-major, and in no order of channels too, which a result would keep. */
static int is_rows_only(const Array *a) {
    if (!a || !is_row_major(a) || !is_moved(a)) return 0;
    if (a->nd != 4 && a->nd != 5) return 1;
    return a->shape[1] > 1 && a->shape[a->nd - 1] > 1;
}

static Array *rows_of(PyObject *tensor) {
    Array *a = strided_of(tensor);
    return is_rows_only(a) ? a : NULL;
}

/* ---- joined */
typedef struct {
    Array *array;
    Py_ssize_t shape[MOST_DIMS], strides[MOST_DIMS];
} Part;

/* Row-major, or in an order of memory that no result keeps: the last dimension lies within the channels. */
static int joins_as_rows(const Array *a) {
    if (a->nd < 4 || a->nd > 5 || is_row_major(a)) return 1;
    return a->shape[1] > 1 && a->shape[a->nd - 1] > 1 && a->strides[a->nd - 1] < a->strides[1];
}

/* Arrays of one dtype as parts of `nd` dimensions at least; 0 where they are not that, or where channels may lie innermost. */
static int parts_of(PyObject *tensors, Part *parts, int *nd, int *k) {
    if (!PyTuple_Check(tensors) && !PyList_Check(tensors)) return 0;
    Py_ssize_t n = PySequence_Fast_GET_SIZE(tensors), all = 0;
    if (n < 1 || n > MOST_JOINED) return 0;
    for (Py_ssize_t i = 0; i < n; i++) {
        Array *a = strided_of(PySequence_Fast_GET_ITEM(tensors, i));
        if (!a || !is_moved(a) || a->nd > 8 || !joins_as_rows(a)) return 0;
        if (i && (a->nd != *nd || kind(a) != *k)) return 0;
        if ((all += count_of(a)) > MOST_MOVED) return 0;
        *nd = a->nd;
        *k = kind(a);
        parts[i].array = a;
        memcpy(parts[i].shape, a->shape, sizeof(*a->shape) * (size_t)a->nd);
        memcpy(parts[i].strides, a->strides, sizeof(*a->shape) * (size_t)a->nd);
    }
    return (int)n;
}

/* A dimension of size 1 before dimension `at` of each part. */
static void widen(Part *parts, int n, int *nd, int at) {
    for (int i = 0; i < n; i++) {
        for (int d = *nd; d > at; d--) {
            parts[i].shape[d] = parts[i].shape[d - 1];
            parts[i].strides[d] = parts[i].strides[d - 1];
        }
        parts[i].shape[at] = 1;
        parts[i].strides[at] = 0;
    }
    ++*nd;
}

static PyObject *joined(const Part *parts, int n, int nd, int k, int dim) {
    Py_ssize_t shape[MOST_DIMS], steps[MOST_DIMS];
    memcpy(shape, parts[0].shape, sizeof(*shape) * (size_t)nd);
    for (int i = 1; i < n; i++)
        for (int d = 0; d < nd; d++)
            if (d == dim)
                shape[d] += parts[i].shape[d];
            else
                NONE_UNLESS(parts[i].shape[d] == shape[d]);
    Array *r = new_array(nd, shape, k);
    if (!r) return NULL;
    memcpy(steps, r->strides, sizeof(*steps) * (size_t)nd);
    char *at = r->data;
    for (int i = 0; i < n; i++) Py_INCREF(parts[i].array); /* the copies before may let others run */
    for (int i = 0; i < n; i++) {
        copy_block_of(at, steps, parts[i].array->data, parts[i].strides, parts[i].shape, nd, item_sizes[k], parts[i].array, r);
        at += parts[i].shape[dim] * steps[dim];
    }
    for (int i = 0; i < n; i++) Py_DECREF(parts[i].array);
    return tensor_of(r);
}

static int position(PyObject *value, int rank) {
    Py_ssize_t d;
    if (!integer_of(value, &d) || d < -rank || d >= rank) return -1;
    return (int)(d < 0 ? d + rank : d);
}

static PyObject *py_cat(PyObject *self, PyObject *args) {
    Part parts[MOST_JOINED];
    int nd = 0, k = 0, n = parts_of(argument(args, 0), parts, &nd, &k);
    NONE_UNLESS(n && nd);
    int dim = position(argument(args, 1), nd);
    NONE_UNLESS(dim >= 0);
    return joined(parts, n, nd, k, dim);
}

static PyObject *py_stack(PyObject *self, PyObject *args) {
    Part parts[MOST_JOINED];
    int nd = 0, k = 0, n = parts_of(argument(args, 0), parts, &nd, &k);
    NONE_UNLESS(n && nd < 3);
    int dim = position(argument(args, 1), nd + 1);
    NONE_UNLESS(dim >= 0);
    for (int i = 1; i < n; i++) NONE_UNLESS(nd == 0 || !memcmp(parts[i].shape, parts[0].shape, sizeof(*parts->shape) * (size_t)nd));
    widen(parts, n, &nd, dim);
    return joined(parts, n, nd, k, dim);
}

static PyObject *py_hstack(PyObject *self, PyObject *args) {
    Part parts[MOST_JOINED];
    int nd = 0, k = 0, n = parts_of(argument(args, 0), parts, &nd, &k);
    NONE_UNLESS(n);
    if (!nd) widen(parts, n, &nd, 0);
    return joined(parts, n, nd, k, nd == 1 ? 0 : 1);
}

static PyObject *py_vstack(PyObject *self, PyObject *args) {
    Part parts[MOST_JOINED];
    int nd = 0, k = 0, n = parts_of(argument(args, 0), parts, &nd, &k);
    NONE_UNLESS(n);
    while (nd < 2) widen(parts, n, &nd, 0);
    return joined(parts, n, nd, k, 0);
}

static PyObject *py_column_stack(PyObject *self, PyObject *args) {
    Part parts[MOST_JOINED];
    int nd = 0, k = 0, n = parts_of(argument(args, 0), parts, &nd, &k);
    NONE_UNLESS(n);
    while (nd < 2) widen(parts, n, &nd, nd);
    return joined(parts, n, nd, k, 1);
}

/* Matrices of one dtype on a diagonal of blocks: the argument is a list of them. */
static PyObject *py_block_diag(PyObject *self, PyObject *args) {
    PyObject *tensors = argument(args, 0);
    NONE_UNLESS((PyTuple_Check(tensors) || PyList_Check(tensors)) && PySequence_Fast_GET_SIZE(tensors));
    Py_ssize_t n = PySequence_Fast_GET_SIZE(tensors), shape[2] = {0, 0};
    int k = -1;
    for (Py_ssize_t i = 0; i < n; i++) {
        Array *a = strided_of(PySequence_Fast_GET_ITEM(tensors, i));
        NONE_UNLESS(a && a->nd == 2 && is_moved(a) && (k < 0 || k == kind(a)));
        k = kind(a);
        shape[0] += a->shape[0];
        shape[1] += a->shape[1];
    }
    NONE_UNLESS(shape[0] * shape[1] <= MOST_MOVED);
    Array *r = new_array(2, shape, k);
    if (!r) return NULL;
    memset(r->data, 0, (size_t)(shape[0] * shape[1] * item_sizes[k]));
    char *at = r->data;
    for (Py_ssize_t i = 0; i < n; i++) {
        Array *a = strided_of(PySequence_Fast_GET_ITEM(tensors, i));
        copy_block(at, r->strides, a->data, a->strides, a->shape, 2, item_sizes[k]); /* with the GIL: the list stays as it is */
        at += a->shape[0] * r->strides[0] + a->shape[1] * r->strides[1];
    }
    return tensor_of(r);
}

/* ---- repeated */
/* input, repeats, dim: each slice as often as a number says, all elements in a row without a dimension */
static PyObject *py_repeat_interleave(GIVEN) {
    static const char *const names[] = {"input", "repeats", "dim", "output_size"};
    PyObject *v[4];
    Py_ssize_t times, shape[MOST_DIMS];
    NONE_UNLESS(read_call(given, count, names, 3, 4, v) && v[1] && is_absent(v[3]) && integer_of(v[1], &times) && times > 0);
    Array *a = bare_array(v[0]);
    NONE_UNLESS(a && is_row_major(a) && is_moved(a) && times <= MOST_MOVED / count_of(a) && (is_absent(v[2]) || a->nd));
    const int flat = is_absent(v[2]), dim = flat ? 0 : dim_of(v[2], a), nd = flat ? 1 : a->nd, size = size_of(a);
    NONE_UNLESS(dim >= 0);
    Py_ssize_t outer = 1, inner = 1, n = flat ? count_of(a) : a->shape[dim];
    for (int d = 0; !flat && d < a->nd; d++) {
        shape[d] = a->shape[d];
        if (d != dim) *(d < dim ? &outer : &inner) *= a->shape[d];
    }
    shape[dim] = n * times;
    Array *r = new_array(nd, shape, kind(a));
    if (!r) return NULL;
    const Py_ssize_t block = inner * size, all[3] = {outer * n, times, inner}, to[3] = {times * block, block, size}, from[3] = {block, 0, size};
    copy_block_of(r->data, to, a->data, from, all, 3, size, a, r);
    return tensor_of(r);
}

/* tensors...: every combination of one element of each vector */
static PyObject *py_cartesian_prod(GIVEN) {
    NONE_UNLESS(count == 2 && PyTuple_CheckExact(given[0]) && PyDict_CheckExact(given[1]) && !PyDict_GET_SIZE(given[1]));
    const Py_ssize_t many = PyTuple_GET_SIZE(given[0]);
    NONE_UNLESS(many > 1 && many <= 16);
    Array *parts[16];
    Py_ssize_t shape[2] = {1, many};
    for (int i = 0; i < many; i++) {
        Array *a = parts[i] = bare_array(argument(given[0], i));
        NONE_UNLESS(a && a->nd == 1 && a->shape[0] > 0 && kind(a) == kind(parts[0]) && a->shape[0] <= MOST_MOVED / many / shape[0]);
        shape[0] *= a->shape[0];
    }
    const int size = size_of(parts[0]);
    Array *r = new_array(2, shape, kind(parts[0]));
    Py_ssize_t before = 1, after = shape[0];
    for (int i = 0; r && i < many; i++) {
        const Py_ssize_t n = parts[i]->shape[0], all[3] = {before, n, after / n}, row = many * size;
        const Py_ssize_t to[3] = {after * row, all[2] * row, row}, from[3] = {0, parts[i]->strides[0], 0};
        copy_block(r->data + i * size, to, parts[i]->data, from, all, 3, size);
        before *= n, after /= n;
    }
    return tensor_of(r);
}

/* ---- turned */
/* Arrays in any order of memory, which the results keep. */
static Array *ordered_of(PyObject *tensor) {
    Array *a = strided_of(tensor);
    return a && is_moved(a) && a->nd <= MOST_LAID ? a : NULL;
}

static PyObject *py_flip(PyObject *self, PyObject *args) {
    Array *a = ordered_of(argument(args, 0));
    NONE_UNLESS(a);
    Py_ssize_t dims[MOST_DIMS], steps[MOST_DIMS];
    int n = integers_of(argument(args, 1), dims, MOST_DIMS), seen[MOST_DIMS] = {0};
    NONE_UNLESS(n >= 0);
    const char *from = a->data;
    memcpy(steps, a->strides, sizeof(*steps) * (size_t)a->nd);
    for (int i = 0; i < n; i++) {
        Py_ssize_t d = dims[i] < 0 ? dims[i] + a->nd : dims[i];
        NONE_UNLESS(d >= 0 && d < a->nd && !seen[d]++);
        from += (a->shape[d] - 1) * a->strides[d];
        steps[d] = -a->strides[d];
    }
    Array *r = array_like(a);
    if (r) copy_block_of(r->data, r->strides, from, steps, a->shape, a->nd, size_of(a), a, r);
    return tensor_of(r);
}

static void swap_sizes(Py_ssize_t *sizes, int a, int b) {
    const Py_ssize_t moved = sizes[a];
    sizes[a] = sizes[b], sizes[b] = moved;
}

/* self, quarter turns, (from, to): an odd number of them is a flip of which two dimensions are swapped */
static PyObject *py_rot90(PyObject *self, PyObject *args) {
    Array *a = ordered_of(argument(args, 0));
    Py_ssize_t turns, dims[2], shape[MOST_LAID], steps[MOST_LAID], strides[MOST_LAID];
    NONE_UNLESS(a && a->nd > 1 && integer_of(argument(args, 1), &turns) && integers_of(argument(args, 2), dims, 2) == 2);
    const int nd = a->nd, size = size_of(a);
    for (int i = 0; i < 2; i++) dims[i] += dims[i] < 0 ? nd : 0;
    const int first = (int)dims[0], second = (int)dims[1];
    turns = (turns % 4 + 4) % 4;
    NONE_UNLESS(turns && first >= 0 && second >= 0 && first < nd && second < nd && first != second);
    strides_like(a, size_of(a), strides);
    const char *from = a->data;
    memcpy(shape, a->shape, sizeof(*shape) * (size_t)nd);
    memcpy(steps, a->strides, sizeof(*steps) * (size_t)nd);
    if (turns < 3) from += (shape[second] - 1) * steps[second], steps[second] = -steps[second];
    if (turns > 1) from += (shape[first] - 1) * steps[first], steps[first] = -steps[first];
    if (turns & 1) swap_sizes(shape, first, second), swap_sizes(steps, first, second), swap_sizes(strides, first, second);
    Array *r = array_in_order(nd, shape, strides, a->dtype->number, size);
    if (r) copy_block_of(r->data, r->strides, from, steps, shape, nd, size, a, r);
    return tensor_of(r);
}

/* Along one dimension; `dims` is empty for all elements as one row. */
static PyObject *py_roll(PyObject *self, PyObject *args) {
    Array *a = rows_of(argument(args, 0));
    Py_ssize_t shift, dim = 0, outer = 1, inner = 1, n;
    NONE_UNLESS(a && integers_of(argument(args, 1), &shift, 1) == 1);
    int dims = integers_of(argument(args, 2), &dim, 1);
    NONE_UNLESS(dims >= 0);
    if (dims) {
        dim = dim < 0 ? dim + a->nd : dim;
        NONE_UNLESS(dim >= 0 && dim < a->nd);
        for (int d = 0; d < a->nd; d++) *(d < dim ? &outer : &inner) *= d == dim ? 1 : a->shape[d];
        n = a->shape[dim];
    } else
        n = count_of(a);
    Array *r = new_array(a->nd, a->shape, kind(a));
    if (!r) return NULL;
    Py_ssize_t first = ((shift % n) + n) % n, size = size_of(a), block = inner * size;
    Py_ssize_t steps[2] = {n * block, size}, before[2] = {outer, (n - first) * inner}, after[2] = {outer, first * inner};
    Py_INCREF(a);
    copy_block_of(r->data + first * block, steps, a->data, steps, before, 2, (int)size, a, r);
    copy_block_of(r->data, steps, a->data + (n - first) * block, steps, after, 2, (int)size, a, r);
    Py_DECREF(a);
    return tensor_of(r);
}

#include "native_shuffles.h"

/* ---- triangles and diagonals */
typedef struct {
    const char *x;
    char *y;
    Py_ssize_t rows, columns, size, offset;
    int upper;
} Triangle;

static void triangle_rows(long first, long last, void *const *arguments) {
    const Triangle *t = arguments[0];
    for (Py_ssize_t k = first; k < last; k++) {
        Py_ssize_t cut = k % t->rows + t->offset + !t->upper; /* columns before it are below the diagonal */
        cut = cut < 0 ? 0 : cut > t->columns ? t->columns : cut;
        char *y = t->y + k * t->columns * t->size;
        const char *x = t->x + k * t->columns * t->size;
        Py_ssize_t left = cut * t->size, right = (t->columns - cut) * t->size;
        if (t->upper) {
            memset(y, 0, (size_t)left);
            copy_bytes(y + left, x + left, (size_t)right);
        } else {
            copy_bytes(y, x, (size_t)left);
            memset(y + left, 0, (size_t)right);
        }
    }
}

static PyObject *triangle(PyObject *args, int upper) {
    Array *a = rows_of(argument(args, 0));
    Py_ssize_t offset;
    NONE_UNLESS(a && a->nd >= 2 && integer_of(argument(args, 1), &offset));
    Array *r = new_array(a->nd, a->shape, kind(a));
    if (!r) return NULL;
    Triangle job = {a->data, r->data, a->shape[a->nd - 2], a->shape[a->nd - 1], size_of(a), offset, upper};
    void *const arguments[] = {&job};
    over_parts(triangle_rows, count_of(a) / job.columns, count_of(a), arguments, a, r, NULL);
    return tensor_of(r);
}

static PyObject *py_tril(PyObject *self, PyObject *args) { return triangle(args, 0); }
static PyObject *py_triu(PyObject *self, PyObject *args) { return triangle(args, 1); }

/* Rows on diagonals of square matrices. */
static PyObject *embedded(const Array *a, Py_ssize_t offset) {
    Py_ssize_t n = a->shape[a->nd - 1], away = offset < 0 ? -offset : offset, side = n + away, shape[MOST_DIMS];
    NONE_UNLESS(away <= MOST_MOVED && side <= MOST_MOVED / side && count_of(a) / n <= MOST_MOVED / (side * side));
    memcpy(shape, a->shape, sizeof(*shape) * (size_t)a->nd);
    shape[a->nd - 1] = shape[a->nd] = side;
    Array *r = new_array(a->nd + 1, shape, kind(a));
    if (!r) return NULL;
    Py_ssize_t size = size_of(a), many = count_of(a) / n;
    memset(r->data, 0, (size_t)(many * side * side * size));
    for (Py_ssize_t k = 0; k < many; k++)
        copy_run(r->data + (k * side * side + (offset < 0 ? away * side : away)) * size, (side + 1) * size, a->data + k * n * size, size, n, (int)size);
    return tensor_of(r);
}

static PyObject *py_diag(PyObject *self, PyObject *args) {
    Array *a = rows_of(argument(args, 0));
    Py_ssize_t offset;
    NONE_UNLESS(a && a->nd == 1 && integer_of(argument(args, 1), &offset));
    return embedded(a, offset);
}

static PyObject *py_diag_embed(PyObject *self, PyObject *args) {
    Array *a = rows_of(argument(args, 0));
    Py_ssize_t offset, dims[2];
    NONE_UNLESS(a && a->nd >= 1 && a->nd < 4 && integer_of(argument(args, 1), &offset));
    NONE_UNLESS(integer_of(argument(args, 2), dims) && integer_of(argument(args, 3), dims + 1));
    NONE_UNLESS((dims[0] == -2 || dims[0] == a->nd - 1) && (dims[1] == -1 || dims[1] == a->nd));
    return embedded(a, offset);
}

static PyObject *py_diagonal_scatter(PyObject *self, PyObject *args) {
    Array *a = rows_of(argument(args, 0)), *source = strided_of(argument(args, 1));
    Py_ssize_t offset, dims[2];
    NONE_UNLESS(a && source && a->nd == 2 && source->nd == 1 && kind(a) == kind(source) && integer_of(argument(args, 2), &offset));
    NONE_UNLESS(integer_of(argument(args, 3), dims) && integer_of(argument(args, 4), dims + 1));
    NONE_UNLESS((dims[0] == 0 || dims[0] == -2) && (dims[1] == 1 || dims[1] == -1));
    Py_ssize_t row = offset < 0 ? -offset : 0, column = offset > 0 ? offset : 0;
    NONE_UNLESS(row < a->shape[0] && column < a->shape[1]);
    Py_ssize_t down = a->shape[0] - row, across = a->shape[1] - column, n = down < across ? down : across;
    NONE_UNLESS(source->shape[0] == n);
    Array *r = new_array(2, a->shape, kind(a));
    if (!r) return NULL;
    copy_bytes(r->data, a->data, (size_t)(count_of(a) * size_of(a)));
    copy_run(r->data + row * a->strides[0] + column * a->strides[1], a->strides[0] + a->strides[1], source->data, source->strides[0], n, size_of(a));
    return tensor_of(r);
}

/* ---- padded */
static int fill_number(char *to, int k, PyObject *value) {
    double v = PyFloat_Check(value) ? PyFloat_AS_DOUBLE(value) : PyLong_CheckExact(value) ? PyLong_AsDouble(value) : 0;
    if ((v == -1 && PyErr_Occurred()) || (!PyFloat_CheckExact(value) && !PyLong_CheckExact(value))) {
        PyErr_Clear();
        return 0;
    }
    if (k == F32) {
        *(float *)to = (float)v;
        if (isfinite(v) && !isfinite(*(float *)to)) return 0; /* too large: the rule refuses it */
    } else if (k == F64)
        *(double *)to = v;
    else if (v == 0)
        memset(to, 0, 16);
    else if (k == I64 && v == floor(v) && fabs(v) < 9007199254740992.)
        *(i64 *)to = (i64)v;
    else if (k == I32 && v == floor(v) && fabs(v) < 2147483648.)
        *(int *)to = (int)v;
    else
        return 0;
    return 1;
}

static PyObject *py_constant_pad(PyObject *self, PyObject *args) {
    Array *a = rows_of(argument(args, 0));
    NONE_UNLESS(a && a->nd > 0 && a->nd <= 8);
    Py_ssize_t pad[16], shape[MOST_DIMS];
    char number[16];
    int n = integers_of(argument(args, 1), pad, 2 * a->nd), size = size_of(a);
    NONE_UNLESS(n >= 0 && n % 2 == 0 && fill_number(number, kind(a), argument(args, 2)));
    memcpy(shape, a->shape, sizeof(*shape) * (size_t)a->nd);
    for (int i = 0; i < n; i++) {
        NONE_UNLESS(pad[i] >= 0 && pad[i] < MOST_MOVED);
        shape[a->nd - 1 - i / 2] += pad[i];
    }
    Py_ssize_t all = 1;
    for (int d = 0; d < a->nd; d++) {
        NONE_UNLESS(shape[d] <= MOST_MOVED / all);
        all *= shape[d];
    }
    Array *r = new_array(a->nd, shape, kind(a));
    if (!r) return NULL;
    repeat(r->data, number, all, size);
    char *at = r->data;
    for (int i = 0; i < n; i += 2) at += pad[i] * r->strides[a->nd - 1 - i / 2];
    copy_block_of(at, r->strides, a->data, a->strides, a->shape, a->nd, size, a, r);
    return tensor_of(r);
}

enum { REPLICATES, REFLECTS, CIRCLES }; /* what stands around the elements */

/* The place of the input that place i of the output shows. */
static inline Py_ssize_t shown(Py_ssize_t i, Py_ssize_t n, int how) {
    if (how == REPLICATES) return i < 0 ? 0 : i >= n ? n - 1 : i;
    if (how == CIRCLES) return i < 0 ? i + n : i >= n ? i - n : i;
    return i < 0 ? -i : i >= n ? 2 * (n - 1) - i : i;
}

/* What stands before and after a row of n elements in one of `count`. */
#define EDGES(T)                                                                                                                      \
    {                                                                                                                                 \
        T *to = (T *)y;                                                                                                               \
        const T *from = (const T *)x;                                                                                                 \
        for (Py_ssize_t i = 0; i < first; i++) to[i] = from[shown(i - first, n, how)];                                                \
        for (Py_ssize_t i = first + n; i < count; i++) to[i] = from[shown(i - first, n, how)];                                        \
    }

static inline void pad_row(char *y, Py_ssize_t count, const char *x, Py_ssize_t n, Py_ssize_t first, int size, int how) {
    memcpy(y + first * size, x, (size_t)(n * size));
    if (size == 4)
        EDGES(int)
    else if (size == 8)
        EDGES(i64)
    else
        for (Py_ssize_t i = 0; i < count; i = i + 1 == first ? first + n : i + 1) {
            if (first == 0 && i < n) i = n;
            if (i >= count) break;
            memcpy(y + i * size, x + shown(i - first, n, how) * size, (size_t)size);
        }
}

static void pad_block(char *y, const Py_ssize_t *to, const Py_ssize_t *wide, const char *x, const Array *a, int d, const Py_ssize_t *low, int how) {
    const Py_ssize_t n = a->shape[d], first = low[d], count = wide[d];
    if (d + 1 == a->nd) {
        pad_row(y, count, x, n, first, size_of(a), how);
        return;
    }
    if (d + 2 == a->nd) { /* rows, of which those around are copies of those inside */
        const Py_ssize_t wide_row = wide[d + 1], short_row = a->shape[d + 1], before = low[d + 1];
        const int size = size_of(a);
        for (Py_ssize_t i = 0; i < n; i++) pad_row(y + (first + i) * to[d], wide_row, x + i * a->strides[d], short_row, before, size, how);
        for (Py_ssize_t i = 0; i < first; i++) memcpy(y + i * to[d], y + (first + shown(i - first, n, how)) * to[d], (size_t)to[d]);
        for (Py_ssize_t i = first + n; i < count; i++) memcpy(y + i * to[d], y + (first + shown(i - first, n, how)) * to[d], (size_t)to[d]);
        return;
    }
    for (Py_ssize_t i = 0; i < count; i++)
        pad_block(y + i * to[d], to, wide, x + shown(i - first, n, how) * a->strides[d], a, d + 1, low, how);
}

typedef struct {
    Array *from, *to;
    const Py_ssize_t *low;
    int spatial, how;
} Frame;

/* Pictures `first` to `last`. */
static void frame_part(long first, long last, void *const *arguments) {
    const Frame *f = arguments[0];
    int lead = f->to->nd - f->spatial;
    Py_ssize_t of_x = size_of(f->from), of_y = of_x;
    for (int d = lead; d < f->to->nd; d++) {
        of_x *= f->from->shape[d];
        of_y *= f->to->shape[d];
    }
    for (long k = first; k < last; k++)
        pad_block(f->to->data + k * of_y, f->to->strides, f->to->shape, f->from->data + k * of_x, f->from, lead, f->low, f->how);
}

static PyObject *shown_around(PyObject *args, int spatial, int how) {
    Array *a = rows_of(argument(args, 0));
    NONE_UNLESS(a && kind(a) != BOOL && (a->nd == spatial + 1 || a->nd == spatial + 2));
    Py_ssize_t pad[6], shape[MOST_DIMS], low[MOST_DIMS] = {0}, all = 1;
    NONE_UNLESS(integers_of(argument(args, 1), pad, 2 * spatial) == 2 * spatial);
    memcpy(shape, a->shape, sizeof(*shape) * (size_t)a->nd);
    for (int i = 0; i < 2 * spatial; i++) {
        int d = a->nd - 1 - i / 2;
        NONE_UNLESS(pad[i] >= 0 && pad[i] < MOST_MOVED && (how == REPLICATES || pad[i] < a->shape[d] + (how == CIRCLES)));
        shape[d] += pad[i];
        if (i % 2 == 0) low[d] = pad[i];
    }
    for (int d = 0; d < a->nd; d++) {
        NONE_UNLESS(shape[d] <= MOST_MOVED / all);
        all *= shape[d];
    }
    Array *r = new_array(a->nd, shape, kind(a));
    if (!r) return NULL;
    Frame job = {a, r, low, spatial, how};
    Py_ssize_t pictures = 1;
    for (int d = 0; d < a->nd - spatial; d++) pictures *= a->shape[d];
    void *const arguments[] = {&job};
    over_parts(frame_part, pictures, all, arguments, a, r, NULL);
    return tensor_of(r);
}

static PyObject *py_reflect1(PyObject *self, PyObject *args) { return shown_around(args, 1, REFLECTS); }
static PyObject *py_reflect2(PyObject *self, PyObject *args) { return shown_around(args, 2, REFLECTS); }
static PyObject *py_reflect3(PyObject *self, PyObject *args) { return shown_around(args, 3, REFLECTS); }
static PyObject *py_replicate1(PyObject *self, PyObject *args) { return shown_around(args, 1, REPLICATES); }
static PyObject *py_replicate2(PyObject *self, PyObject *args) { return shown_around(args, 2, REPLICATES); }
static PyObject *py_replicate3(PyObject *self, PyObject *args) { return shown_around(args, 3, REPLICATES); }

/* ---- parts */
#define COMPLEX_PART(type, suffix)                                                       \
    static void complex_part_##suffix(long first, long last, void *const *arguments) {    \
        type *restrict y = arguments[0];                                                  \
        const type *restrict a = arguments[1], *restrict b = arguments[2];                \
        for (long i = first; i < last; i++) {                                             \
            y[2 * i] = a[i];                                                              \
            y[2 * i + 1] = b[i];                                                          \
        }                                                                                 \
    }
COMPLEX_PART(float, f32)
COMPLEX_PART(double, f64)

/* complex.default: real and imaginary parts, row-major and of one shape. */
static PyObject *py_complex(PyObject *self, PyObject *args) {
    if (!PyObject_HasAttr(argument(args, 0), array_name) || !PyObject_HasAttr(argument(args, 1), array_name)) Py_RETURN_NONE;
    Array *a = array_of(argument(args, 0)), *b = array_of(argument(args, 1));
    NONE_UNLESS(a && b && kind(a) <= F64 && kind(a) == kind(b) && a->nd == b->nd && is_rows_only(a) && is_moved(b));
    NONE_UNLESS(!a->nd || !memcmp(a->shape, b->shape, sizeof(*a->shape) * (size_t)a->nd));
    Array *r = new_array(a->nd, a->shape, kind(a) == F32 ? C64 : C128);
    if (!r) return NULL;
    void *const arguments[] = {r->data, a->data, b->data};
    over_parts(kind(a) == F32 ? complex_part_f32 : complex_part_f64, count_of(a), count_of(a), arguments, a, b, r);
    return tensor_of(r);
}

static PyObject *py_pad(PyObject *self, PyObject *args) { /* self, pad, mode, value */
    PyObject *mode = argument(args, 2), *value = argument(args, 3), *pad = argument(args, 1);
    NONE_UNLESS(PyUnicode_CheckExact(mode) && PyTuple_CheckExact(pad) && PyTuple_GET_SIZE(pad) && PyTuple_GET_SIZE(pad) % 2 == 0);
    const int constant = is_word(mode, "constant"), how = is_word(mode, "reflect") ? REFLECTS : is_word(mode, "circular") ? CIRCLES : REPLICATES;
    const Py_ssize_t spatial = PyTuple_GET_SIZE(pad) / 2;
    NONE_UNLESS(constant || (value == Py_None && spatial <= 3 && (how != REPLICATES || is_word(mode, "replicate"))));
    PyObject *zero = value == Py_None ? PyLong_FromLong(0) : Py_NewRef(value);
    PyObject *given = zero ? PyTuple_Pack(3, argument(args, 0), pad, zero) : NULL;
    PyObject *result = !given ? NULL : constant ? py_constant_pad(self, given) : shown_around(given, (int)spatial, how);
    Py_XDECREF(given);
    Py_XDECREF(zero);
    return result;
}

/* By the operator that each computes. */
static PyMethodDef methods[] = {
    {"use_arrays", use_arrays, METH_VARARGS, "use_arrays(ndarray, [(number, dtype), ...], make_tensor)"},
    {"use_threads", use_threads, METH_VARARGS, "use_threads(address, function)"},
    {"use_process", use_process, METH_VARARGS, "use_process(process, cpu, Tensor, ambient, untracked)"},
    {"cat.default", py_cat, METH_O, NULL},
    {"stack.default", py_stack, METH_O, NULL},
    {"hstack.default", py_hstack, METH_O, NULL},
    {"vstack.default", py_vstack, METH_O, NULL},
    {"column_stack.default", py_column_stack, METH_O, NULL},
    {"_block_diag.default", py_block_diag, METH_O, NULL},
    {"torch.repeat_interleave", FRONT(py_repeat_interleave), NULL},
    {"Tensor.repeat_interleave", FRONT(py_repeat_interleave), NULL},
    {"torch.cartesian_prod", FRONT(py_cartesian_prod), NULL},
    {"flip.default", py_flip, METH_O, NULL},
    {"rot90.default", py_rot90, METH_O, NULL},
    {"roll.default", py_roll, METH_O, NULL},
    {"channel_shuffle.default", py_channel_shuffle, METH_O, NULL},
    {"pixel_shuffle.default", py_pixel_shuffle, METH_O, NULL},
    {"pixel_unshuffle.default", py_pixel_unshuffle, METH_O, NULL},
    {"tril.default", py_tril, METH_O, NULL},
    {"triu.default", py_triu, METH_O, NULL},
    {"diag.default", py_diag, METH_O, NULL},
    {"diag_embed.default", py_diag_embed, METH_O, NULL},
    {"diagonal_scatter.default", py_diagonal_scatter, METH_O, NULL},
    {"constant_pad_nd.default", py_constant_pad, METH_O, NULL},
    {"pad.default", py_pad, METH_O, NULL},
    {"reflection_pad1d.default", py_reflect1, METH_O, NULL},
    {"reflection_pad2d.default", py_reflect2, METH_O, NULL},
    {"reflection_pad3d.default", py_reflect3, METH_O, NULL},
    {"replication_pad1d.default", py_replicate1, METH_O, NULL},
    {"replication_pad2d.default", py_replicate2, METH_O, NULL},
    {"replication_pad3d.default", py_replicate3, METH_O, NULL},
    {"complex.default", py_complex, METH_O, NULL},
    {NULL, NULL, 0, NULL},
};

MODULE(_shapes)
