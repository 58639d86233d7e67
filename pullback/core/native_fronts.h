/* What calls of factories ask for: sizes and options as users spell them, for functions that are named by the public function they stand for.
 *
 * Such a function takes (args, kwargs) of the call, where nothing listens, and gives its result, or None where the call is not one that it
 * reads: another device, a gradient, `out=`, numbers that are not plain ints, dtypes that native_arrays.h does not list.
 */
#include "native_moves.h"

static PyObject *process, *cpu, *keys_name;
static PyTypeObject *tensor_type;

/* use_process(process, cpu, Tensor): where the default dtype stands, the device that is meant without one, the class of plain tensors */
static PyObject *use_process(PyObject *self, PyObject *args) {
    if (!PyArg_ParseTuple(args, "OOO!", &process, &cpu, &PyType_Type, &tensor_type)) return NULL;
    keys_name = PyUnicode_InternFromString("_keys");
    if (!keys_name) return NULL;
    Py_INCREF(process);
    Py_INCREF(cpu);
    Py_INCREF(tensor_type);
    Py_RETURN_NONE;
}

/* The row-major array of a plain tensor, else NULL. */
static inline Array *plain_array(PyObject *value) {
    if (!Py_IS_TYPE(value, tensor_type)) return NULL;
    PyObject *keys = PyObject_GetAttr(value, keys_name);
    int plain = keys && PyLong_CheckExact(keys) && !PyLong_AsLong(keys);
    Py_XDECREF(keys);
    if (!keys) PyErr_Clear();
    return plain ? array_of(value) : NULL;
}

typedef struct {
    int kind;                         /* of the dtype that is asked for, or -1 */
    PyObject *generator, *size;       /* NULL where there is none */
} Options;

static inline int kind_of_dtype(PyObject *dtype) {
    for (int k = 0; k < ALL_KINDS; k++)
        if (dtype_of[k] == dtype) return k;
    return -1;
}

static inline int default_kind(void) {
    PyObject *dtype = PyObject_GetAttrString(process, "default_dtype");
    int k = dtype ? kind_of_dtype(dtype) : -1;
    Py_XDECREF(dtype);
    if (!dtype) PyErr_Clear();
    return k;
}

static inline int is_word(PyObject *name, const char *word) { return !PyUnicode_CompareWithASCIIString(name, word); }

/* 0 where an option is none that can be read here. */
static int options_of(PyObject *kwargs, Options *into) {
    PyObject *name, *value;
    Py_ssize_t at = 0;
    *into = (Options){-1, NULL, NULL};
    while (PyDict_Next(kwargs, &at, &name, &value)) {
        if (is_word(name, "size"))
            into->size = value;
        else if (is_word(name, "dtype")) {
            if (value != Py_None && (into->kind = kind_of_dtype(value)) < 0) return 0;
        } else if (is_word(name, "device")) {
            if (value != Py_None && value != cpu) return 0;
        } else if (is_word(name, "generator"))
            into->generator = value == Py_None ? NULL : value;
        else if (is_word(name, "requires_grad") || is_word(name, "pin_memory")) {
            if (value != Py_False && value != Py_None) return 0;
        } else if (value != Py_None || !(is_word(name, "layout") || is_word(name, "out")))
            return 0;
    }
    return 1;
}

/* (args, kwargs) of a call with at least `least` arguments, and its options */
static inline int is_call(PyObject *const *given, Py_ssize_t count, int least, Options *options) {
    return count == 2 && PyTuple_CheckExact(given[0]) && PyTuple_GET_SIZE(given[0]) >= least && PyDict_CheckExact(given[1]) &&
           options_of(given[1], options);
}

static inline int size_from(PyObject *value, Py_ssize_t *into, Py_ssize_t *left) {
    if (!PyLong_CheckExact(value)) return 0;
    *into = PyLong_AsSsize_t(value);
    if (*into == -1 && PyErr_Occurred()) PyErr_Clear();
    if (*into < 0 || (*into && *left / *into == 0)) return 0;
    if (*into) *left /= *into;
    return 1;
}

/* The sizes that stand alone or in one list from argument `first` on; -1 where they are not plain, or too large. */
static int sizes_of(PyObject *args, int first, PyObject *list, Py_ssize_t *shape) {
    Py_ssize_t n = PyTuple_GET_SIZE(args) - first, left = (Py_ssize_t)1 << 40;
    if (list ? n != 0 : n == 0) return -1;
    if (!list && n == 1 && !PyLong_CheckExact(PyTuple_GET_ITEM(args, first))) list = PyTuple_GET_ITEM(args, first);
    if (list) {
        if (!PyTuple_Check(list) && !PyList_CheckExact(list)) return -1;
        n = PySequence_Fast_GET_SIZE(list);
    }
    if (n > 16) return -1;
    for (Py_ssize_t i = 0; i < n; i++)
        if (!size_from(list ? PySequence_Fast_GET_ITEM(list, i) : PyTuple_GET_ITEM(args, first + i), shape + i, &left)) return -1;
    return (int)n;
}

static inline Py_ssize_t product_of(const Py_ssize_t *shape, int nd) {
    Py_ssize_t n = 1;
    for (int d = 0; d < nd; d++) n *= shape[d];
    return n;
}

/* Whether the strides of a row-major array are those of a new one; those of sizes of 1 may be others, which a result would keep. */
static inline int has_own_strides(const Array *a) {
    Py_ssize_t step = size_of(a);
    for (int d = a->nd - 1; d >= 0; step *= a->shape[d--])
        if (a->strides[d] != step) return 0;
    return 1;
}
