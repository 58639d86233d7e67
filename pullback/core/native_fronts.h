/* What calls of public functions ask for: arguments, sizes and options as users spell them, for functions that are named by the public
 * function they stand for.
 *
 * Such a function takes (args, kwargs) of the call, where nothing listens, and gives its result, or None where the call is not one that it
 * reads: another device, a gradient, `out=`, numbers that are not plain ints, dtypes that native_arrays.h does not list.
 */
#include "native_moves.h"

static PyObject *process, *cpu, *ambient, *untracked;
static PyTypeObject *tensor_type;
static struct {
    PyObject *keys, *autograd, *mode, *info, *version, *creation;
} names_of;

#define FRONT(function) (PyCFunction)(void (*)(void))function, METH_FASTCALL
#define GIVEN PyObject *self, PyObject *const *given, Py_ssize_t count

/* use_process(process, cpu, Tensor, ambient, untracked): where the default dtype stands, the device that is meant without one, the class of
 * plain tensors, where it stands whether calls are recorded, what views of tensors without history know of it */
static PyObject *use_process(PyObject *self, PyObject *args) {
    if (!PyArg_ParseTuple(args, "OOO!OO", &process, &cpu, &PyType_Type, &tensor_type, &ambient, &untracked)) return NULL;
    names_of.keys = PyUnicode_InternFromString("_keys"), names_of.autograd = PyUnicode_InternFromString("_autograd");
    names_of.mode = PyUnicode_InternFromString("mode"), names_of.info = PyUnicode_InternFromString("_view_info");
    names_of.version = PyUnicode_InternFromString("version"), names_of.creation = PyUnicode_InternFromString("creation");
    if (!names_of.keys || !names_of.autograd || !names_of.mode || !names_of.info || !names_of.version || !names_of.creation) return NULL;
    Py_INCREF(process);
    Py_INCREF(cpu);
    Py_INCREF(tensor_type);
    Py_INCREF(ambient);
    Py_INCREF(untracked);
    Py_RETURN_NONE;
}

/* Whether an attribute is this value, or (`number` not negative) this number. */
static inline int has_value(PyObject *object, PyObject *name, PyObject *value, long number) {
    PyObject *found = PyObject_GetAttr(object, name);
    int same = found && (value ? found == value : PyLong_Check(found) && PyLong_AsLong(found) == number);
    Py_XDECREF(found);
    if (!found) PyErr_Clear();
    return same;
}

/* Whether a view of a tensor without history is as it was when it was made: `may_have_history` of ops.eager.views. */
static inline int is_untouched(PyObject *view) {
    PyObject *counter = PyObject_GetAttr(view, counter_name), *info = counter ? PyObject_GetAttr(view, names_of.info) : NULL;
    int same = info && PyList_Check(counter) && PyList_GET_SIZE(counter) == 1 && has_value(info, names_of.creation, Py_None, 0) &&
               has_value(info, names_of.version, NULL, PyLong_AsLong(PyList_GET_ITEM(counter, 0)));
    Py_XDECREF(counter);
    Py_XDECREF(info);
    if (PyErr_Occurred()) PyErr_Clear();
    return same;
}

/* Whether a call on a plain tensor leaves no history. */
static inline int is_unrecorded(PyObject *tensor) {
    if (has_value(tensor, names_of.autograd, Py_None, 0) || has_value(ambient, names_of.mode, NULL, 0)) return 1;
    return has_value(tensor, names_of.autograd, untracked, 0) && is_untouched(tensor);
}

static inline int is_plain(PyObject *value) { return Py_IS_TYPE(value, tensor_type) && has_value(value, names_of.keys, NULL, 0); }

/* The row-major array of a plain tensor, else NULL. */
static inline Array *plain_array(PyObject *value) { return is_plain(value) ? array_of(value) : NULL; }

/* The same in any order of memory, where a call on it leaves no history. */
static inline Array *bare_array(PyObject *value) { return value && is_plain(value) && is_unrecorded(value) ? strided_of(value) : NULL; }

/* The same, row-major, of a real dtype. */
static inline Array *bare_rows(PyObject *value) {
    Array *a = bare_array(value);
    return a && is_row_major(a) && kind(a) < KINDS ? a : NULL;
}

/* (args, kwargs) of a call by the names of its `n` arguments, the first `ordered` of which may come without: NULL for those that are not
 * given. 0 where the call is spelled otherwise. */
static inline int read_call(PyObject *const *given, Py_ssize_t count, const char *const *names, int ordered, int n, PyObject **into) {
    if (count != 2 || !PyTuple_CheckExact(given[0]) || PyTuple_GET_SIZE(given[0]) > ordered || !PyDict_CheckExact(given[1])) return 0;
    Py_ssize_t at = 0, many = PyTuple_GET_SIZE(given[0]);
    for (int i = 0; i < n; i++) into[i] = i < many ? PyTuple_GET_ITEM(given[0], i) : NULL;
    PyObject *name, *value;
    while (PyDict_Next(given[1], &at, &name, &value)) {
        int i = 0;
        while (i < n && PyUnicode_CompareWithASCIIString(name, names[i])) i++;
        if (i == n || into[i]) return 0;
        into[i] = value;
    }
    return 1;
}

static inline int is_absent(PyObject *value) { return !value || value == Py_None; }

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
static inline int options_of(PyObject *kwargs, Options *into) {
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
static inline int sizes_of(PyObject *args, int first, PyObject *list, Py_ssize_t *shape) {
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
