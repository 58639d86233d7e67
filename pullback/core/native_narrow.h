/* Arrays of bfloat16 in C: the array of a tensor, a new one and the tensor around it, elements as single precision and back.
 *
 * `use_bfloat16` is called once. Numbers are rounded to the nearest, of two equally near ones to the even; a NaN stays one.
 */
#include "native_moves.h"

typedef unsigned short u16;
typedef unsigned int u32;
static int bfloat16_number = -1;
static PyObject *bfloat16, *process;

/* use_bfloat16(NumPy's number of the dtype, the dtype, where it stands whether results must be those of compiled code) */
static PyObject *use_bfloat16(PyObject *self, PyObject *args) {
    if (!PyArg_ParseTuple(args, "iOO", &bfloat16_number, &bfloat16, &process)) return NULL;
    Py_INCREF(bfloat16);
    Py_INCREF(process);
    Py_RETURN_NONE;
}

/* The array of a tensor of bfloat16 with elements, in any order of memory, else NULL. The tensor holds it. */
static inline Array *narrow_of(PyObject *tensor) {
    PyObject *found = PyObject_GetAttr(tensor, array_name);
    if (!found) {
        PyErr_Clear();
        return NULL;
    }
    Array *a = (Array *)found;
    int fits = Py_IS_TYPE(found, array_type) && a->flags & ALIGNED && a->dtype->number == bfloat16_number && has_elements(a);
    Py_DECREF(found);
    return fits ? a : NULL;
}

static inline Array *new_narrow(int nd, const Py_ssize_t *shape) {
    return (Array *)array_new(array_type, nd, shape, bfloat16_number, NULL, NULL, 0, 0, NULL);
}

/* Takes the reference. */
static inline PyObject *narrow_tensor(Array *a) {
    PyObject *given[2] = {(PyObject *)a, bfloat16}, *result = a ? PyObject_Vectorcall(make_tensor, given, 2, NULL) : NULL;
    Py_XDECREF(a);
    return result;
}

static inline float widened(u16 x) {
    union {
        u32 bits;
        float number;
    } v = {(u32)x << 16};
    return v.number;
}

static inline u16 narrowed(float x) {
    u32 b;
    memcpy(&b, &x, 4);
    return (u16)((b & 0x7fffffff) > 0x7f800000 ? (b >> 16) | 0x40 : (b + 0x7fff + ((b >> 16) & 1)) >> 16);
}
