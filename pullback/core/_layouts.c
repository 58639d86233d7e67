/* Results in their order of memory, and functions of row-major arrays for tensors that lie otherwise.
 *
 * Copies and fills of tensors of any dtype of plain bytes are here too, in the table of small calls. `laid_out(result, operands)` is a fresh element-wise result in the order that its operands ask for; `through_rows(function, place)` a function
 * that asks another one again with row-major copies of tensors that are not, where that gives None, and puts what it gives in its place;
 * `through_bits(function)` one that asks it again with the bits of elements, which it only moves.
 */
#include "native_moves.h"
#include "native_layouts.h"

enum { MOST_COPIED = 1 << 17, MOST_ARGUMENTS = 32, SIMPLE_NUMBERS = 256, FLOAT16 = 23 }; /* the last are NumPy's numbers */
static PyObject *item_name;
static int bfloat16_number = -1;

/* use_bfloat16(NumPy's number of the dtype, the dtype, the process) */
static PyObject *use_bfloat16(PyObject *self, PyObject *args) {
    PyObject *dtype, *process;
    if (!PyArg_ParseTuple(args, "iOO", &bfloat16_number, &dtype, &process)) return NULL;
    Py_RETURN_NONE;
}

/* The size of an item of any array of the array library; 0 where elements are no plain bytes of this machine. */
static int item_of(const Array *a) {
    const int known = size_of(a);
    if (known) return known;
    if (a->dtype->number == FLOAT16 && a->dtype->byteorder != '>') return 2;
    if (a->dtype->number < SIMPLE_NUMBERS || a->dtype->byteorder == '>') return 0; /* objects, records */
    if (!item_name) item_name = PyUnicode_InternFromString("itemsize");
    PyObject *found = item_name ? PyObject_GetAttr((PyObject *)a, item_name) : NULL;
    const long size = found ? PyLong_AsLong(found) : 0;
    Py_XDECREF(found);
    if (PyErr_Occurred()) PyErr_Clear();
    return size > 0 && size <= 16 ? (int)size : 0;
}

/* laid_out(result, operands): the result, or a copy in another order of memory; None where the rules in Python decide. */
static PyObject *py_laid_out(PyObject *self, PyObject *const *args, Py_ssize_t count) {
    NONE_UNLESS(count == 2 && Py_IS_TYPE(args[0], array_type) && PyList_CheckExact(args[1]));
    Array *r = (Array *)args[0];
    const int nd = r->nd, item = r->flags & ALIGNED && nd <= MOST_LAID && has_elements(r) ? item_of(r) : 0;
    const Py_ssize_t given = PyList_GET_SIZE(args[1]);
    Operand operands[MOST_OPERANDS];
    Py_ssize_t strides[MOST_LAID];
    int n = 0, same = 1;
    NONE_UNLESS(item && given <= MOST_OPERANDS);
    for (Py_ssize_t i = 0; i < given; i++) {
        Array *a = (Array *)PyList_GET_ITEM(args[1], i);
        NONE_UNLESS(Py_IS_TYPE((PyObject *)a, array_type));
        if (!a->nd) continue;
        const int own = item_of(a);
        NONE_UNLESS(own && operand_of(a, own, nd, r->shape, &operands[n]));
        n++;
    }
    strides_of_result(nd, r->shape, operands, n, strides);
    for (int d = 0; d < nd; d++) same = same && strides[d] * item == r->strides[d];
    if (same) return Py_NewRef(r);
    Array *moved = array_in_order(nd, r->shape, strides, r->dtype->number, item);
    if (moved) copy_block_of(moved->data, moved->strides, r->data, r->strides, r->shape, nd, item, r, moved);
    return (PyObject *)moved;
}

/* ---- row-major copies */
/* A value, or a row-major copy of it where it is a tensor that lies otherwise: a new reference; `copied` counts these. */
static PyObject *row_major_of(PyObject *value, int *copied) {
    PyTypeObject *type = Py_TYPE(value);
    if (value == Py_None || type == &PyLong_Type || type == &PyFloat_Type || type == &PyBool_Type || type == &PyUnicode_Type) return Py_NewRef(value);
    Array *a = strided_of(value);
    if (!a || is_row_major(a) || !has_elements(a) || count_of(a) > MOST_COPIED) return Py_NewRef(value);
    Array *r = new_array(a->nd, a->shape, kind(a));
    if (!r) return NULL;
    copy_block(r->data, r->strides, a->data, a->strides, a->shape, a->nd, size_of(a));
    ++*copied;
    return tensor_of(r);
}

/* The values of a tuple or list as row-major_of gives them, as a tuple. */
static PyObject *all_row_major(PyObject *values, int depth, int *copied) {
    const Py_ssize_t n = PySequence_Fast_GET_SIZE(values);
    PyObject *result = PyTuple_New(n);
    for (Py_ssize_t i = 0; result && i < n; i++) {
        PyObject *v = PySequence_Fast_ITEMS(values)[i];
        PyObject *own = depth && (PyTuple_CheckExact(v) || PyList_CheckExact(v)) ? all_row_major(v, depth - 1, copied) : row_major_of(v, copied);
        if (own)
            PyTuple_SET_ITEM(result, i, own);
        else
            Py_CLEAR(result);
    }
    return result;
}

/* Whether a tensor has memory of its own, and `many` dimensions at most. */
static int is_apart_and_flat(PyObject *tensor, int many) {
    PyObject *found = PyObject_GetAttr(tensor, array_name);
    if (!found) {
        PyErr_Clear();
        return 0;
    }
    const int fits = Py_IS_TYPE(found, array_type) && !((Array *)found)->base && ((Array *)found)->nd <= many && Py_REFCNT(found) == 2;
    Py_DECREF(found);
    return fits;
}

static int are_own(PyObject *results, int many) {
    if (!PyTuple_Check(results)) return Py_REFCNT(results) == 1 && is_apart_and_flat(results, many);
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(results); i++)
        if (!is_apart_and_flat(PyTuple_GET_ITEM(results, i), many)) return 0;
    return 1;
}

/* Results that are images of `nd` dimensions channels-last, others as they are; takes the reference. */
static PyObject *as_pixels(PyObject *result, int nd) {
    if (PyTuple_Check(result)) {
        PyObject *all = PyTuple_New(PyTuple_GET_SIZE(result));
        for (Py_ssize_t i = 0; all && i < PyTuple_GET_SIZE(result); i++) {
            PyObject *one = as_pixels(Py_NewRef(PyTuple_GET_ITEM(result, i)), nd);
            if (one)
                PyTuple_SET_ITEM(all, i, one);
            else
                Py_CLEAR(all);
        }
        Py_DECREF(result);
        return all;
    }
    Array *a = strided_of(result);
    if (!a || a->nd != nd) return result;
    PyObject *placed = tensor_of(pixel_copy(a));
    Py_DECREF(result);
    return placed;
}

/* What stands for None: the function's results from row-major copies, in the place that results have where it is known. */
static PyObject *run_through_rows(PyObject *pair, PyObject *args) {
    PyObject *function = PyTuple_GET_ITEM(pair, 0), *place = PyTuple_GET_ITEM(pair, 1);
    PyObject *result = PyObject_CallOneArg(function, args);
    if (result != Py_None || !PyTuple_CheckExact(args)) return result;
    int copied = 0, images = 0;
    const long number = PyLong_CheckExact(place) ? PyLong_AsLong(place) : 0;
    if (number < 0) { /* results lie as the images do that an argument is */
        const long at = -number % 100 - 1, rank = -number / 100;
        Array *a = at < PyTuple_GET_SIZE(args) ? strided_of(PyTuple_GET_ITEM(args, at)) : NULL;
        if (!a || !lies_as_pixels(a) || (rank && a->nd != rank)) return result;
        images = a->nd;
    }
    PyObject *rows = all_row_major(args, 1, &copied);
    if (!rows || !copied) {
        Py_XDECREF(rows);
        if (rows) return result;
        Py_DECREF(result);
        return NULL;
    }
    Py_DECREF(result);
    result = PyObject_CallOneArg(function, rows);
    const int many = number > 0 ? (int)number : MOST_LAID;
    const int own = result && result != Py_None && are_own(result, many); /* while the copies are alive */
    Py_DECREF(rows);
    if (!result || result == Py_None) return result;
    if (!own) {
        Py_DECREF(result);
        Py_RETURN_NONE;
    }
    if (images) return as_pixels(result, images);
    if (place == Py_None || PyLong_CheckExact(place)) return result;
    PyObject *placed = PyObject_CallFunctionObjArgs(place, result, args, NULL);
    Py_DECREF(result);
    return placed;
}

static PyMethodDef through_rows = {"through_rows", run_through_rows, METH_O, NULL};

/* through_rows(function, place): `place(results, args)` puts results where they belong; None: they are row-major; a number: those of so many
 * dimensions at most are, and others are not given; -1, -2, ...: images lie channels-last where the first argument does, or the second, less
 * 100 for each dimension where they have so many, and the function is asked for no others. */
static PyObject *py_through_rows(PyObject *self, PyObject *args) {
    if (PyTuple_GET_SIZE(args) != 2) return PyErr_Format(PyExc_TypeError, "through_rows(function, place)");
    return PyCFunction_New(&through_rows, args);
}

/* ---- moves of elements: those of half precision and complex ones as others of their size */
typedef struct {
    int number, carrier, refused, met[ALL_KINDS]; /* of the dtype that is moved as another; of which kinds there are tensors beside */
    Descriptor *descriptor;
    PyObject *dtype;
} Bits;

static int carrier_of(const Array *a) {
    if (a->dtype->byteorder == '>') return -1;
    if (a->dtype->number == FLOAT16 || (bfloat16_number >= 0 && a->dtype->number == bfloat16_number)) return I16;
    return kind(a) == C64 && (size_t)a->data % 8 == 0 ? F64 : -1;
}

/* A value, or a view of a tensor's elements as numbers of its carrier: a new reference. */
static PyObject *bits_of(PyObject *value, Bits *b) {
    PyTypeObject *type = Py_TYPE(value);
    if (value == Py_None || type == &PyLong_Type || type == &PyFloat_Type || type == &PyBool_Type || type == &PyUnicode_Type) return Py_NewRef(value);
    PyObject *found = PyObject_GetAttr(value, array_name);
    if (!found) {
        PyErr_Clear();
        return Py_NewRef(value);
    }
    Array *a = (Array *)found;
    const int known = Py_IS_TYPE(found, array_type) && a->flags & ALIGNED, carrier = known ? carrier_of(a) : -1;
    if (carrier < 0) {
        if (known && kind(a) >= 0) b->met[kind(a)] = 1;
        Py_DECREF(found);
        return Py_NewRef(value);
    }
    b->refused |= b->dtype && b->number != a->dtype->number;
    if (!b->dtype) {
        b->number = a->dtype->number, b->carrier = carrier, b->descriptor = a->dtype;
        b->dtype = PyObject_GetAttrString(value, "dtype");
    }
    PyObject *view = (PyObject *)array_new(array_type, a->nd, a->shape, number_of[carrier], a->strides, a->data, 0, ALIGNED, NULL);
    Py_DECREF(found);
    return b->dtype ? tensor_of((Array *)view) : NULL;
}

static PyObject *all_bits(PyObject *values, int depth, Bits *b) {
    const Py_ssize_t n = PySequence_Fast_GET_SIZE(values);
    PyObject *result = PyTuple_New(n);
    for (Py_ssize_t i = 0; result && i < n; i++) {
        PyObject *v = PySequence_Fast_ITEMS(values)[i];
        PyObject *own = depth && (PyTuple_CheckExact(v) || PyList_CheckExact(v)) ? all_bits(v, depth - 1, b) : bits_of(v, b);
        if (own)
            PyTuple_SET_ITEM(result, i, own);
        else
            Py_CLEAR(result);
    }
    return result;
}

/* A fresh result of the carrier's kind as one of the dtype that it carries; takes the reference. */
static PyObject *named_again(PyObject *result, const Bits *b) {
    Array *a = strided_of(result);
    if (!a || a->base || kind(a) != b->carrier) {
        Py_DECREF(result);
        return Py_NewRef(Py_None);
    }
    PyObject *held = Py_NewRef((PyObject *)a);
    Py_DECREF(result);
    Descriptor *old = a->dtype;
    a->dtype = (Descriptor *)Py_NewRef((PyObject *)b->descriptor);
    Py_DECREF((PyObject *)old);
    PyObject *given[2] = {held, b->dtype}, *named = PyObject_Vectorcall(make_tensor, given, 2, NULL);
    Py_DECREF(held);
    return named;
}

/* What stands for None: the function's one result from the bits of half precision, or of complex numbers. */
static PyObject *run_through_bits(PyObject *function, PyObject *args) {
    PyObject *result = PyObject_CallOneArg(function, args);
    if (result != Py_None || !PyTuple_CheckExact(args)) return result;
    Bits b = {0};
    PyObject *bits = all_bits(args, 1, &b);
    const int fits = bits && b.dtype && !b.refused && !b.met[b.carrier];
    if (fits) {
        Py_DECREF(result);
        result = PyObject_CallOneArg(function, bits);
        if (result && result != Py_None) result = named_again(result, &b);
    }
    if (!bits) Py_CLEAR(result);
    Py_XDECREF(bits);
    Py_XDECREF(b.dtype);
    return result;
}

static PyMethodDef through_bits = {"through_bits", run_through_bits, METH_O, NULL};

/* through_bits(function): the same of one that only moves elements, which asks it for dtypes that it does not know as well. */
static PyObject *py_through_bits(PyObject *self, PyObject *function) { return PyCFunction_New(&through_bits, function); }

/* ---- copies and fills, in any order of memory */
/* The array of a tensor of any dtype of plain bytes, with elements; the size of one is put into `item`. The tensor holds it. */
static Array *any_of(PyObject *tensor, int *item) {
    PyObject *found = PyObject_GetAttr(tensor, array_name);
    if (!found) {
        PyErr_Clear();
        return NULL;
    }
    Array *a = (Array *)found;
    const int fits = Py_IS_TYPE(found, array_type) && a->flags & ALIGNED && a->nd <= MOST_LAID && has_elements(a) && (*item = item_of(a));
    Py_DECREF(found);
    return fits ? a : NULL;
}

/* A tensor of a source's dtype around an array; takes the reference. */
static PyObject *tensor_like(PyObject *source, Array *r) {
    if (!r || kind(r) >= 0) return tensor_of(r);
    PyObject *dtype = PyObject_GetAttrString(source, "dtype"), *arguments[2] = {(PyObject *)r, dtype};
    PyObject *result = dtype ? PyObject_Vectorcall(make_tensor, arguments, 2, NULL) : NULL;
    Py_XDECREF(dtype);
    Py_DECREF(r);
    return result;
}

static Array *like_of(const Array *a, int item) {
    Py_ssize_t strides[MOST_LAID];
    strides_like(a, item, strides);
    return array_in_order(a->nd, a->shape, strides, a->dtype->number, item);
}

static PyObject *py_clone(PyObject *self, PyObject *args) {
    int item = 0;
    Array *a = any_of(argument(args, 0), &item);
    NONE_UNLESS(a && argument(args, 1) == Py_None);
    Array *r = like_of(a, item);
    if (r) copy_block_of(r->data, r->strides, a->data, a->strides, a->shape, a->nd, item, a, r);
    return tensor_like(argument(args, 0), r);
}

/* Whether no two elements share memory: by falling steps, each is larger than all within it. */
static int is_written_once(const Array *a, int item) {
    Py_ssize_t reach = item;
    int left = 0, seen[MOST_LAID] = {0};
    for (int d = 0; d < a->nd; d++) left += !(seen[d] = a->shape[d] == 1);
    for (; left; left--) {
        int near = -1;
        for (int d = 0; d < a->nd; d++)
            if (!seen[d] && (near < 0 || a->strides[d] < a->strides[near])) near = d;
        if (a->strides[near] < reach) return 0;
        reach += (a->shape[near] - 1) * a->strides[near];
        seen[near] = 1;
    }
    return 1;
}

/* The array of a tensor that may be written element by element. */
static Array *target_of(PyObject *tensor, int *item) {
    Array *a = any_of(tensor, item);
    return a && is_writable(a) && (is_row_major(a) || is_written_once(a, *item)) ? a : NULL;
}

/* written_once(array): whether no two of its elements share memory, as far as strides say. */
static PyObject *py_written_once(PyObject *self, PyObject *array) {
    Array *a = (Array *)array;
    const int item = Py_IS_TYPE(array, array_type) && a->nd <= MOST_LAID && has_elements(a) ? item_of(a) : 0;
    return PyBool_FromLong(item && is_written_once(a, item));
}

/* self, src, non_blocking: of one dtype, in memory apart; the source may broadcast */
static PyObject *py_copy_(PyObject *self, PyObject *args) {
    int item = 0, own = 0;
    Array *a = target_of(argument(args, 0), &item), *src = any_of(argument(args, 1), &own);
    NONE_UNLESS(a && src && a->dtype->number == src->dtype->number && a->dtype->byteorder != '>' && src->dtype->byteorder != '>');
    PyObject *other = argument(args, 1);
    Operand from;
    NONE_UNLESS(is_apart(argument(args, 0), &other, 1) && operand_of(src, 1, a->nd, a->shape, &from));
    if (is_row_major(a) && is_row_major(src) && from.full)
        copy_bytes_of(a, src, (size_t)(count_of(a) * item));
    else
        copy_block_of(a->data, a->strides, src->data, from.strides, a->shape, a->nd, item, src, a);
    return written(argument(args, 0));
}

static void fill_all(Array *a, const char *value, int item) {
    static const Py_ssize_t nowhere[MOST_LAID] = {0};
    Operand own;
    operand_of(a, item, a->nd, a->shape, &own);
    if (is_row_major(a) || fills_block(a->nd, a->shape, own.strides))
        repeat(a->data, value, count_of(a), item);
    else
        copy_block(a->data, a->strides, value, nowhere, a->shape, a->nd, item);
}

static PyObject *py_zero_(PyObject *self, PyObject *args) {
    static const char zero[16] = {0};
    int item = 0;
    Array *a = target_of(argument(args, 0), &item);
    NONE_UNLESS(a && is_small(a));
    if (is_row_major(a))
        memset(a->data, 0, (size_t)(count_of(a) * item));
    else
        fill_all(a, zero, item);
    return written(argument(args, 0));
}

/* A number as an element of an array; 0 where its dtype has it only rounded by rules that are not known here. */
static int element_of(PyObject *value, const Array *a, char *into) {
    const int k = kind(a);
    if (k >= 0) return k < KINDS && element(value, k, into);
    unsigned int bits;
    if (a->dtype->number != bfloat16_number || !element(value, F32, into)) return 0;
    memcpy(&bits, into, 4);
    const unsigned short high = (unsigned short)(bits >> 16);
    memcpy(into, &high, 2);
    return !(bits & 0xffff); /* exact */
}

static PyObject *py_fill_(PyObject *self, PyObject *args) {
    int item = 0;
    Array *a = target_of(argument(args, 0), &item);
    char value[8];
    NONE_UNLESS(a && is_small(a) && element_of(argument(args, 1), a, value));
    fill_all(a, value, item);
    return written(argument(args, 0));
}

/* New arrays like another: dtype, layout, device, pin_memory, memory_format stand from `options` on. */
static PyObject *filled(PyObject *args, int options, PyObject *value) {
    int item = 0, k = -1;
    Array *a = any_of(argument(args, 0), &item);
    char bytes[8];
    NONE_UNLESS(a && is_small(a));
    if (argument(args, options) != Py_None) {
        for (k = 0; k < KINDS && argument(args, options) != dtype_of[k];) k++;
        NONE_UNLESS(k < KINDS);
    }
    NONE_UNLESS(argument(args, options + 1) == Py_None && argument(args, options + 2) == Py_None && argument(args, options + 4) == Py_None);
    NONE_UNLESS(argument(args, options + 3) == Py_None || argument(args, options + 3) == Py_False);
    NONE_UNLESS(k < 0 ? element_of(value, a, bytes) : element(value, k, bytes));
    Py_ssize_t strides[MOST_LAID];
    strides_like(a, item, strides);
    const int size = k < 0 ? item : item_sizes[k];
    Array *r = array_in_order(a->nd, a->shape, strides, k < 0 ? a->dtype->number : number_of[k], size);
    if (r) repeat(r->data, bytes, count_of(a), size);
    return tensor_like(argument(args, 0), r);
}

static PyObject *number_of_value(long value, PyObject *args) {
    PyObject *number = PyLong_FromLong(value), *result = number ? filled(args, 1, number) : NULL;
    Py_XDECREF(number);
    return result;
}

static PyObject *py_zeros_like(PyObject *self, PyObject *args) { return number_of_value(0, args); }
static PyObject *py_ones_like(PyObject *self, PyObject *args) { return number_of_value(1, args); }
static PyObject *py_full_like(PyObject *self, PyObject *args) { return filled(args, 2, argument(args, 1)); }

/* Short rows, one after the other, to rows `step` apart. */
typedef struct {
    char *y;
    const char *x;
    Py_ssize_t step, bytes;
} Runs;

#define RUNS(n) \
    case n:     \
        for (long r = first; r < last; r++) memcpy(j->y + r * j->step, j->x + r * (n), n); \
        break;
static void copy_runs(long first, long last, void *const *arguments) {
    const Runs *j = arguments[0];
    switch (j->bytes) { /* a known size is a few instructions */
        RUNS(4) RUNS(8) RUNS(12) RUNS(16) RUNS(24) RUNS(32) RUNS(48) RUNS(64) RUNS(96) RUNS(128) RUNS(256)
    default:
        for (long r = first; r < last; r++) memcpy(j->y + r * j->step, j->x + r * j->bytes, (size_t)j->bytes);
    }
}

/* joined_pixels(arrays, dim): images that all lie channels-last, and so the result; None where one lies otherwise, or sizes differ */
static PyObject *py_joined_pixels(PyObject *self, PyObject *const *args, Py_ssize_t count) {
    NONE_UNLESS(count == 2 && PyList_CheckExact(args[0]) && PyList_GET_SIZE(args[0]) && PyLong_CheckExact(args[1]));
    Array *first = (Array *)PyList_GET_ITEM(args[0], 0);
    NONE_UNLESS(Py_IS_TYPE((PyObject *)first, array_type));
    const int d = dim_of(args[1], first), nd = first->nd;
    Py_ssize_t shape[MOST_LAID], total = 0;
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(args[0]); i++) {
        Array *a = (Array *)PyList_GET_ITEM(args[0], i);
        NONE_UNLESS(Py_IS_TYPE((PyObject *)a, array_type) && a->flags & ALIGNED && a->dtype == first->dtype && kind(a) >= 0 && a->nd == nd);
        NONE_UNLESS(d >= 0 && lies_as_pixels(a));
        for (int e = 0; e < nd; e++) NONE_UNLESS(e == d || a->shape[e] == first->shape[e]);
        total += a->shape[d];
    }
    memcpy(shape, first->shape, sizeof(*shape) * (size_t)nd);
    shape[d] = total;
    Array *r = new_pixels(nd, shape, kind(first));
    char *to = r ? r->data : NULL;
    for (Py_ssize_t i = 0; r && i < PyList_GET_SIZE(args[0]); i++) {
        Array *a = (Array *)PyList_GET_ITEM(args[0], i);
        const Py_ssize_t run = d == 1 ? a->shape[1] * size_of(a) : a->shape[d] * a->strides[d]; /* of a: all that is inside dim */
        Runs job = {to, a->data, d == 1 ? shape[1] * size_of(a) : shape[d] * r->strides[d], run};
        void *const arguments[] = {&job};
        over_parts(copy_runs, count_of(a) * size_of(a) / run, count_of(a), arguments, a, r, NULL);
        to += a->shape[d] * r->strides[d];
    }
    return (PyObject *)r;
}

/* ---- operands that are repeated inside short rows: the array library goes through those row by row, whatever else is long */
enum { SHORTEST = 256, LONGEST = 1 << 20, SHORT_ROW = 8 };

/* The elements of `a`, in dimensions from d on, in all of `shape`; `block` is of a dimension and what is inside it, in bytes. Gives the end of what is written. */
static const char *spread_block(const Array *a, const Py_ssize_t *shape, const Py_ssize_t *block, int d, const char *x, char *y) {
    const int size = size_of(a), last = d == a->nd - 1;
    const Py_ssize_t n = shape[d], inside = last ? size : block[d + 1];
    if (a->shape[d] != n) { /* once, and that many times behind itself */
        x = last ? (memcpy(y, x, (size_t)size), x + size) : spread_block(a, shape, block, d + 1, x, y);
        for (Py_ssize_t done = inside; done < block[d];) {
            const Py_ssize_t many = done < block[d] - done ? done : block[d] - done;
            memcpy(y + done, y, (size_t)many);
            done += many;
        }
        return x;
    }
    if (last) {
        memcpy(y, x, (size_t)(n * size));
        return x + n * size;
    }
    if (d == a->nd - 2 && a->shape[d + 1] != shape[d + 1] && (size == 4 || size == 8)) {
        const Py_ssize_t times = shape[d + 1];
        for (Py_ssize_t i = 0; i < n; i++)
            for (Py_ssize_t k = 0; k < times; k++)
                if (size == 4)
                    ((int *)y)[i * times + k] = ((const int *)x)[i];
                else
                    ((i64 *)y)[i * times + k] = ((const i64 *)x)[i];
        return x + n * size;
    }
    for (Py_ssize_t i = 0; i < n; i++) x = spread_block(a, shape, block, d + 1, x, y + i * inside);
    return x;
}

/* Whether a dimension is repeated inside one that is not. */
static int is_repeated_inside(const Array *a, const Py_ssize_t *shape) {
    int inside = 0;
    for (int d = 0; d < a->nd; d++) {
        if (inside && a->shape[d] != shape[d]) return 1;
        inside |= a->shape[d] > 1;
    }
    return 0;
}

static PyObject *py_spread(PyObject *self, PyObject *const *args, Py_ssize_t count) {
    if (count != 2) return PyErr_Format(PyExc_TypeError, "spread: two arrays");
    Array *pair[2] = {(Array *)args[0], (Array *)args[1]};
    PyObject *out[2] = {NULL, NULL};
    Py_ssize_t shape[MOST_DIMS], block[MOST_DIMS], n = 1;
    const int nd = pair[0]->nd;
    int fits = Py_IS_TYPE(args[0], array_type) && Py_IS_TYPE(args[1], array_type) && nd == pair[1]->nd && nd > 1 && nd <= MOST_DIMS;
    for (int i = 0; fits && i < 2; i++) fits = pair[i]->flags & ALIGNED && is_row_major(pair[i]) && size_of(pair[i]);
    for (int d = nd - 1; fits && d >= 0; d--) {
        const Py_ssize_t a = pair[0]->shape[d], b = pair[1]->shape[d];
        fits = (a == b || a == 1 || b == 1) && a && b && (d < nd - 1 || (a <= SHORT_ROW && b <= SHORT_ROW));
        shape[d] = a > b ? a : b;
        n *= fits ? shape[d] : 1;
        block[d] = n;
        fits = fits && n <= LONGEST;
    }
    fits = fits && n >= SHORTEST;
    for (int i = 0; i < 2; i++) {
        out[i] = args[i];
        if (!fits || !is_repeated_inside(pair[i], shape)) {
            Py_INCREF(out[i]);
            continue;
        }
        Array *r = new_array(nd, shape, kind(pair[i]));
        Py_ssize_t bytes[MOST_DIMS];
        for (int d = 0; d < nd; d++) bytes[d] = block[d] * size_of(pair[i]);
        out[i] = (PyObject *)r;
        if (r) spread_block(pair[i], shape, bytes, 0, pair[i]->data, r->data);
    }
    PyObject *result = out[0] && out[1] ? PyTuple_Pack(2, out[0], out[1]) : NULL;
    Py_XDECREF(out[0]);
    Py_XDECREF(out[1]);
    return result;
}

static PyMethodDef methods[] = {
    {"use_arrays", use_arrays, METH_VARARGS, "use_arrays(ndarray, [(number, dtype), ...], make_tensor)"},
    {"use_threads", use_threads, METH_VARARGS, "use_threads(address, function)"},
    {"use_bfloat16", use_bfloat16, METH_VARARGS, "use_bfloat16(number, dtype, process)"},
    {"written_once", py_written_once, METH_O, "written_once(array) -> bool"},
    {"clone.default", py_clone, METH_O, NULL},
    {"copy_.default", py_copy_, METH_O, NULL},
    {"zero_.default", py_zero_, METH_O, NULL},
    {"fill_.Scalar", py_fill_, METH_O, NULL},
    {"zeros_like.default", py_zeros_like, METH_O, NULL},
    {"ones_like.default", py_ones_like, METH_O, NULL},
    {"full_like.default", py_full_like, METH_O, NULL},
    {"spread", (PyCFunction)(void (*)(void))py_spread, METH_FASTCALL, "spread(a, b) -> two arrays that meet faster"},
    {"joined_pixels", (PyCFunction)(void (*)(void))py_joined_pixels, METH_FASTCALL, "joined_pixels(arrays, dim) -> array or None"},
    {"laid_out", (PyCFunction)(void (*)(void))py_laid_out, METH_FASTCALL, "laid_out(result, operands) -> array or None"},
    {"through_bits", py_through_bits, METH_O, "through_bits(function) -> function"},
    {"through_rows", py_through_rows, METH_VARARGS, "through_rows(function, place) -> function"},
    {NULL, NULL, 0, NULL},
};

MODULE(_layouts)
