/* Casts in C, in any order of memory: `_to_copy`, and `copy_` to a tensor of another dtype; and `contiguous`.
 *
 * In: the canonical arguments of an operator, as a tuple. Out: its result, nothing recorded, or the tensor that was written; or None where the
 * call is not of that kind (a dtype that is not listed, no elements, numbers that an integer has not, memory that is shared): the caller then
 * runs the operator's rules. bfloat16 and float16 are cast to and from single precision, by the loops of _elements.c.
 */
#include "native_fronts.h"
#include "native_layouts.h"
#include "native_widths.h"

enum { BF16 = ALL_KINDS, F16, CAST_KINDS };
static int bfloat16_number = -1;
static PyObject *bfloat16;

/* use_bfloat16(NumPy's number of the dtype, the dtype, the process) */
static PyObject *use_bfloat16(PyObject *self, PyObject *args) {
    PyObject *shared;
    if (!PyArg_ParseTuple(args, "iOO", &bfloat16_number, &bfloat16, &shared)) return NULL;
    Py_INCREF(bfloat16);
    Py_RETURN_NONE;
}

/* Elements of one kind as another: floats to integers by way of i32, so that narrow ones wrap; 0 where that has no number for one. */
#define CAST_TO(from, to) \
    for (i64 k = 0; k < n; k++) ((to *)y)[k] = (to)((const from *)x)[k]; \
    break
#define FLOATS_TO(from, to, way, most)                       \
    for (i64 k = at; k < stop; k++) {                            \
        const from v = ((const from *)x)[k];                     \
        const int fits = (v > -(from)(most)) & (v < (from)(most)); \
        outside |= !fits;                                        \
        ((to *)y)[k] = (to)(way)(fits ? v : 0);                  \
    }
#define FLOAT_TO(from, to) /* what fits i32 is no matter of 64 bits, which few processors convert to at once */ \
    for (i64 at = 0, stop; at < n; at = stop) {                  \
        const int before = outside;                              \
        stop = sizeof(to) == 8 && n - at > 1024 ? at + 1024 : n; \
        FLOATS_TO(from, to, int, 2147483520)                     \
        if (sizeof(to) == 8 && outside) {                        \
            outside = before;                                    \
            FLOATS_TO(from, to, i64, 9.2e18)                     \
        }                                                        \
    }                                                            \
    break
#define TRUTH_OF(from) \
    for (i64 k = 0; k < n; k++) y[k] = ((const from *)x)[k] != 0; \
    break
#define CAST_FROM(from, to_integer, k_to)          \
    switch (k_to) {                                \
    case F32: CAST_TO(from, float);                \
    case F64: CAST_TO(from, double);               \
    case I64: to_integer(from, i64);               \
    case I32: to_integer(from, int);               \
    case I16: to_integer(from, short);             \
    case I8: to_integer(from, signed char);        \
    case U8: to_integer(from, unsigned char);      \
    default: TRUTH_OF(from);                       \
    }                                              \
    break

CLONED static int cast(const char *x, int from, char *y, int to, i64 n) {
    int outside = 0;
    switch (from) {
    case F32: CAST_FROM(float, FLOAT_TO, to);
    case F64: CAST_FROM(double, FLOAT_TO, to);
    case I64: CAST_FROM(i64, CAST_TO, to);
    case I32: CAST_FROM(int, CAST_TO, to);
    case I16: CAST_FROM(short, CAST_TO, to);
    case I8: CAST_FROM(signed char, CAST_TO, to);
    default: CAST_FROM(unsigned char, CAST_TO, to);
    }
    return !outside;
}

static int cast_kind(const Array *a) {
    const int k = kind(a);
    if (k >= 0) return k < KINDS ? k : -1;
    if (a->dtype->byteorder == '>' || !widens[0]) return -1;
    return a->dtype->number == bfloat16_number ? BF16 : a->dtype->number == FLOAT16_NUMBER ? F16 : -1;
}

static int size_of_kind(int k) { return k < ALL_KINDS ? item_sizes[k] : 2; }
static int number_of_kind(int k) { return k < ALL_KINDS ? number_of[k] : k == BF16 ? bfloat16_number : FLOAT16_NUMBER; }
static PyObject *dtype_of_kind(int k) { return k < ALL_KINDS ? dtype_of[k] : k == BF16 ? bfloat16 : float16; }

/* Whether there is a loop: those of half precision are to and from single precision. */
static int is_cast(int from, int to) {
    if (from < 0 || to < 0 || (from < KINDS && to < KINDS)) return from >= 0 && to >= 0;
    return from == F32 || to == F32;
}

typedef struct {
    const char *x;
    char *y;
    int from, to, fits;
} Cast;

static void cast_part(long first, long last, void *const *arguments) {
    Cast *c = arguments[0];
    char *pair[2] = {(char *)c->x + first * size_of_kind(c->from), c->y + first * size_of_kind(c->to)};
    if (c->from >= ALL_KINDS)
        widens[c->from - BF16](last - first, pair);
    else if (c->to >= ALL_KINDS)
        narrows[c->to - BF16](last - first, pair);
    else if (!cast(pair[0], c->from, pair[1], c->to, last - first))
        c->fits = 0;
}

/* The array of a tensor that may be cast, with elements. The tensor holds it. */
static Array *source_of(PyObject *tensor) {
    PyObject *found = PyObject_GetAttr(tensor, array_name);
    if (!found) {
        PyErr_Clear();
        return NULL;
    }
    Array *a = (Array *)found;
    const int fits = Py_IS_TYPE(found, array_type) && a->flags & ALIGNED && a->nd <= MOST_LAID && has_elements(a) && cast_kind(a) >= 0;
    Py_DECREF(found);
    return fits ? a : NULL;
}

/* All elements of an array, as a block whose strides in elements are given, cast to memory that has the same order. */
static int cast_block(Array *a, const Py_ssize_t *from, const Py_ssize_t *strides, const Py_ssize_t *shape, int nd, i64 count, char *y, int to, Array *target) {
    const int k = cast_kind(a), size = size_of_kind(k);
    Cast job = {a->data, y, k, to, 1};
    void *const arguments[] = {&job};
    char *room = NULL;
    int same = 1;
    for (int d = 0; d < nd; d++) same &= shape[d] == 1 || from[d] == strides[d] * size;
    if (!same) {
        Py_ssize_t steps[MOST_LAID];
        room = PyMem_Malloc((size_t)(count * size));
        if (!room) return 0;
        for (int d = 0; d < nd; d++) steps[d] = strides[d] * size;
        copy_block_of(room, steps, a->data, from, shape, nd, size, a, target);
        job.x = room;
    }
    over_parts(cast_part, count, count, arguments, a, target, NULL);
    PyMem_Free(room);
    return job.fits;
}

/* self, dtype, layout, device, pin_memory, non_blocking, memory_format */
static PyObject *py_to(PyObject *self, PyObject *args) {
    Array *a = source_of(argument(args, 0));
    int to = 0;
    while (to < CAST_KINDS && argument(args, 1) != dtype_of_kind(to)) to++;
    NONE_UNLESS(a && to < CAST_KINDS && to != C64 && to != C128 && is_cast(cast_kind(a), to) && argument(args, 2) == Py_None && argument(args, 3) == Py_None);
    NONE_UNLESS((argument(args, 4) == Py_None || argument(args, 4) == Py_False) && argument(args, 6) == Py_None);
    Py_ssize_t strides[MOST_LAID];
    strides_like(a, size_of_kind(cast_kind(a)), strides);
    Array *r = array_in_order(a->nd, a->shape, strides, number_of_kind(to), size_of_kind(to));
    if (!r) return NULL;
    if (!cast_block(a, a->strides, strides, a->shape, a->nd, count_of(a), r->data, to, r)) {
        Py_DECREF(r);
        Py_RETURN_NONE;
    }
    PyObject *given[2] = {(PyObject *)r, dtype_of_kind(to)}, *result = PyObject_Vectorcall(make_tensor, given, 2, NULL);
    Py_DECREF(r);
    return result;
}

/* self, src, non_blocking: of two dtypes, in memory apart, to floats (which have a number for each); the source may broadcast */
static PyObject *py_copy_(PyObject *self, PyObject *args) {
    Array *y = source_of(argument(args, 0)), *x = source_of(argument(args, 1));
    PyObject *other = argument(args, 1);
    NONE_UNLESS(y && x && cast_kind(y) != cast_kind(x) && is_cast(cast_kind(x), cast_kind(y)) && is_writable(y));
    NONE_UNLESS(cast_kind(y) <= F64 || cast_kind(y) >= ALL_KINDS);
    Operand from, own;
    const i64 count = count_of(y);
    operand_of(y, size_of_kind(cast_kind(y)), y->nd, y->shape, &own);
    NONE_UNLESS(fills_block(y->nd, y->shape, own.strides) && operand_of(x, 1, y->nd, y->shape, &from) && is_apart(argument(args, 0), &other, 1));
    NONE_UNLESS(cast_block(x, from.strides, own.strides, y->shape, y->nd, count, y->data, cast_kind(y), y));
    return written(argument(args, 0));
}

static PyObject *py_contiguous(GIVEN) { /* self */
    static const char *const names[] = {"self"};
    PyObject *v[1];
    NONE_UNLESS(read_call(given, count, names, 1, 1, v) && v[0]);
    Array *a = bare_array(v[0]);
    NONE_UNLESS(a && has_elements(a));
    if (is_row_major(a)) return Py_NewRef(v[0]);
    Array *r = new_array(a->nd, a->shape, kind(a));
    if (r) copy_block_of(r->data, r->strides, a->data, a->strides, a->shape, a->nd, size_of(a), a, r);
    return tensor_of(r);
}

/* By the operator that each computes. */
static PyMethodDef methods[] = {
    {"use_arrays", use_arrays, METH_VARARGS, "use_arrays(ndarray, [(number, dtype), ...], make_tensor)"},
    {"use_threads", use_threads, METH_VARARGS, "use_threads(address, function)"},
    {"use_bfloat16", use_bfloat16, METH_VARARGS, "use_bfloat16(number, dtype, process)"},
    {"use_casts", use_casts, METH_VARARGS, "use_casts(float16, (address, address, address, address))"},
    {"use_process", use_process, METH_VARARGS, "use_process(process, cpu, Tensor, ambient, untracked)"},
    {"Tensor.contiguous", FRONT(py_contiguous), NULL},
    {"_to_copy.default", py_to, METH_O, NULL},
    {"copy_.default", py_copy_, METH_O, NULL},
    {NULL, NULL, 0, NULL},
};

MODULE(_casts)
