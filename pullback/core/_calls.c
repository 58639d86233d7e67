/* What every call of an operator asks of its arguments, in C: whether they are plain, which signature they fit, which arrays they are.
 *
 * `setup` is told the classes once. `history(args)` says whether plain tensors among canonical arguments have history; `simple(values)`
 * whether no value has a class that could override a call; `choose(plans, first, args, kwargs)` which operator arguments of these types
 * fit; `arrays(args)` takes tensors apart. What each does is said in Python in `core.calls`, which runs where this extension is absent.
 */
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <structmember.h>

static PyTypeObject *tensor_type, *size_type;
static PyObject *simple_types, *zero, *array_name, *shape_name, *ndim_name, *strides_name, *itemsize_name;
static Py_ssize_t keys_at, autograd_at, array_at;

static inline PyObject *get(PyObject *object, Py_ssize_t at) { return *(PyObject **)((char *)object + at); }

static Py_ssize_t slot_of(PyTypeObject *type, const char *name) {
    PyObject *slot = PyObject_GetAttrString((PyObject *)type, name);
    if (!slot) return -1;
    Py_ssize_t at = Py_IS_TYPE(slot, &PyMemberDescr_Type) ? ((PyMemberDescrObject *)slot)->d_member->offset : -1;
    Py_DECREF(slot);
    if (at < 0) PyErr_Format(PyExc_TypeError, "%s.%s is not a slot", type->tp_name, name);
    return at;
}

/* ---- attributes of tensors that programs read all the time */
static PyObject *get_shape(PyObject *tensor, void *unused) {
    PyObject *array = get(tensor, array_at);
    PyObject *shape = array ? PyObject_GetAttr(array, shape_name) : PyObject_GetAttr(tensor, array_name);
    if (!shape || Py_IS_TYPE(shape, size_type)) return shape;
    if (!PyTuple_Check(shape)) {
        PyErr_Format(PyExc_TypeError, "a shape is a tuple, not %s", Py_TYPE(shape)->tp_name);
        Py_DECREF(shape);
        return NULL;
    }
    Py_ssize_t n = PyTuple_GET_SIZE(shape);
    PyObject *size = size_type->tp_alloc(size_type, n);
    for (Py_ssize_t i = 0; size && i < n; i++) PyTuple_SET_ITEM(size, i, Py_NewRef(PyTuple_GET_ITEM(shape, i)));
    Py_DECREF(shape);
    return size;
}

static PyObject *get_ndim(PyObject *tensor, void *unused) {
    PyObject *array = get(tensor, array_at);
    return array ? PyObject_GetAttr(array, ndim_name) : PyObject_GetAttr(tensor, array_name);
}

static PyGetSetDef shape_of = {"shape", get_shape, NULL, "The size of each dimension.\n\n>>> torch.ones(2, 3).shape\ntorch.Size([2, 3])", NULL};
static PyGetSetDef ndim_of = {"ndim", get_ndim, NULL, "How many dimensions there are.\n\n>>> torch.ones(2, 3).ndim\n2", NULL};

static int publish(PyGetSetDef *definition) {
    PyObject *descriptor = PyDescr_NewGetSet(tensor_type, definition);
    if (!descriptor) return -1;
    int failed = PyObject_SetAttrString((PyObject *)tensor_type, definition->name, descriptor);
    Py_DECREF(descriptor);
    return failed;
}

/* An item of a size: a number, or a size for a slice. */
static PyObject *size_item(PyObject *size, PyObject *key) {
    PyObject *found = PyTuple_Type.tp_as_mapping->mp_subscript(size, key);
    if (!found || !PySlice_Check(key)) return found;
    Py_ssize_t n = PyTuple_GET_SIZE(found);
    PyObject *part = size_type->tp_alloc(size_type, n);
    for (Py_ssize_t i = 0; part && i < n; i++) PyTuple_SET_ITEM(part, i, Py_NewRef(PyTuple_GET_ITEM(found, i)));
    Py_DECREF(found);
    return part;
}

static PyMethodDef item_of_size = {"__getitem__", size_item, METH_O | METH_COEXIST, "x.__getitem__(y) <==> x[y]"};

static PyObject *py_setup(PyObject *self, PyObject *args) {
    if (!PyArg_ParseTuple(args, "O!O!O!", &PyType_Type, &tensor_type, &PyType_Type, &size_type, &PyFrozenSet_Type, &simple_types)) return NULL;
    Py_INCREF(tensor_type);
    Py_INCREF(size_type);
    Py_INCREF(simple_types);
    zero = PyLong_FromLong(0);
    array_name = PyUnicode_InternFromString("_array");
    shape_name = PyUnicode_InternFromString("shape");
    ndim_name = PyUnicode_InternFromString("ndim");
    strides_name = PyUnicode_InternFromString("strides");
    itemsize_name = PyUnicode_InternFromString("itemsize");
    if (!zero || !array_name || !shape_name || !ndim_name || !strides_name || !itemsize_name) return NULL;
    if ((keys_at = slot_of(tensor_type, "_keys")) < 0 || (autograd_at = slot_of(tensor_type, "_autograd")) < 0 ||
        (array_at = slot_of(tensor_type, "_array")) < 0 || publish(&shape_of) || publish(&ndim_of))
        return NULL;
    PyObject *item = PyDescr_NewMethod(size_type, &item_of_size);
    if (!item || PyObject_SetAttrString((PyObject *)size_type, "__getitem__", item)) return NULL;
    Py_DECREF(item);
    Py_RETURN_NONE;
}

/* ---- plain arguments */
/* -1 where a tensor among values is not plain; 1 where one has history, 0 where none has */
static int history(PyObject *const *values, Py_ssize_t n, int depth) {
    int live = 0;
    for (Py_ssize_t i = 0; i < n; i++) {
        PyObject *v = values[i];
        if (PyObject_TypeCheck(v, tensor_type)) {
            if (get(v, keys_at) != zero) return -1;
            live |= get(v, autograd_at) != Py_None;
        } else if (depth && (PyTuple_Check(v) || PyList_Check(v))) {
            int inner = history(PySequence_Fast_ITEMS(v), PySequence_Fast_GET_SIZE(v), depth - 1);
            if (inner < 0) return -1;
            live |= inner;
        }
    }
    return live;
}

static PyObject *py_history(PyObject *self, PyObject *args) {
    if (!tensor_type || !PyTuple_Check(args)) {
        PyErr_SetString(PyExc_TypeError, "history(args): a tuple of arguments");
        return NULL;
    }
    int found = history(&PyTuple_GET_ITEM(args, 0), PyTuple_GET_SIZE(args), 1);
    if (found < 0) Py_RETURN_NONE;
    return PyBool_FromLong(found);
}

/* 1 where every value is of a class that overrides nothing, lists looked into; 0 where that is not known; -1 on error */
static int is_simple(PyObject *v, int depth) {
    int found = PySet_Contains(simple_types, (PyObject *)Py_TYPE(v));
    if (found) return found;
    if (!depth || !(PyTuple_CheckExact(v) || PyList_CheckExact(v))) return 0;
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(v); i++)
        if ((found = is_simple(PySequence_Fast_GET_ITEM(v, i), depth - 1)) != 1) return found;
    return 1;
}

static PyObject *py_simple(PyObject *self, PyObject *const *args, Py_ssize_t n) {
    if (!simple_types || n < 1 || n > 2 || (n == 2 && !PyDict_Check(args[1]))) {
        PyErr_SetString(PyExc_TypeError, "simple(args[, kwargs])");
        return NULL;
    }
    if (!PyTuple_CheckExact(args[0])) Py_RETURN_FALSE;
    int found = 1;
    for (Py_ssize_t i = 0; found == 1 && i < PyTuple_GET_SIZE(args[0]); i++) found = is_simple(PyTuple_GET_ITEM(args[0], i), 3);
    PyObject *key, *value;
    Py_ssize_t at = 0;
    while (found == 1 && n == 2 && PyDict_Next(args[1], &at, &key, &value)) found = is_simple(value, 3);
    return found < 0 ? NULL : PyBool_FromLong(found);
}

/* ---- the arrays of arguments */
static PyObject *parted(PyObject *values, int depth) {
    Py_ssize_t n = PySequence_Fast_GET_SIZE(values);
    PyObject *result = PyTuple_New(n);
    for (Py_ssize_t i = 0; result && i < n; i++) {
        PyObject *v = PySequence_Fast_GET_ITEM(values, i), *part;
        if (PyObject_TypeCheck(v, tensor_type))
            part = get(v, array_at) ? Py_NewRef(get(v, array_at)) : PyObject_GetAttr(v, array_name);
        else if (depth && (PyTuple_Check(v) || PyList_Check(v)) && history(PySequence_Fast_ITEMS(v), PySequence_Fast_GET_SIZE(v), 0) >= 0) {
            int any = 0;
            for (Py_ssize_t j = 0; j < PySequence_Fast_GET_SIZE(v); j++) any |= PyObject_TypeCheck(PySequence_Fast_GET_ITEM(v, j), tensor_type);
            part = any ? parted(v, depth - 1) : Py_NewRef(v);
        } else
            part = Py_NewRef(v);
        if (!part) {
            Py_DECREF(result);
            return NULL;
        }
        PyTuple_SET_ITEM(result, i, part);
    }
    return result;
}

static PyObject *py_arrays(PyObject *self, PyObject *args) {
    if (!tensor_type || !PyTuple_Check(args)) {
        PyErr_SetString(PyExc_TypeError, "arrays(args): a tuple of arguments");
        return NULL;
    }
    return parted(args, 1);
}

/* strides(array): those of an array in elements. */
static PyObject *py_strides(PyObject *self, PyObject *array) {
    PyObject *bytes = PyObject_GetAttr(array, strides_name), *size = bytes ? PyObject_GetAttr(array, itemsize_name) : NULL;
    PyObject *result = NULL;
    long each = size ? PyLong_AsLong(size) : 0;
    if (size && each > 0 && PyTuple_Check(bytes)) {
        Py_ssize_t n = PyTuple_GET_SIZE(bytes);
        result = PyTuple_New(n);
        for (Py_ssize_t i = 0; result && i < n; i++) {
            long long s = PyLong_AsLongLong(PyTuple_GET_ITEM(bytes, i)), whole = s / each;
            PyTuple_SET_ITEM(result, i, PyLong_FromLongLong(s % each && s < 0 ? whole - 1 : whole));
        }
    } else if (!PyErr_Occurred())
        PyErr_SetString(PyExc_TypeError, "strides(array)");
    Py_XDECREF(bytes);
    Py_XDECREF(size);
    if (PyErr_Occurred()) Py_CLEAR(result);
    return result;
}

/* ---- signatures */
/* The key of a call: what chooses, the classes of its arguments, names and classes of its keywords. */
static PyObject *key_of(PyObject *first, PyObject *args, PyObject *kwargs) {
    Py_ssize_t n = PyTuple_GET_SIZE(args), named = PyDict_GET_SIZE(kwargs), k = 1;
    PyObject *key = PyTuple_New(1 + n + 2 * named), *name, *value;
    if (!key) return NULL;
    PyTuple_SET_ITEM(key, 0, Py_NewRef(first));
    for (Py_ssize_t i = 0; i < n; i++) PyTuple_SET_ITEM(key, k++, Py_NewRef((PyObject *)Py_TYPE(PyTuple_GET_ITEM(args, i))));
    Py_ssize_t at = 0;
    while (PyDict_Next(kwargs, &at, &name, &value)) {
        PyTuple_SET_ITEM(key, k++, Py_NewRef(name));
        PyTuple_SET_ITEM(key, k++, Py_NewRef((PyObject *)Py_TYPE(value)));
    }
    return key;
}

/* A value for a list of integers as a tuple: a tuple or list of plain ints, or one of them as often as `times` says; NULL without an
 * error where it takes more than that. An empty list may be one of anything. */
static PyObject *integers(PyObject *value, long times) {
    if (PyLong_CheckExact(value) && times > 0) {
        PyObject *result = PyTuple_New(times);
        for (long i = 0; result && i < times; i++) PyTuple_SET_ITEM(result, i, Py_NewRef(value));
        return result;
    }
    if (!(PyTuple_CheckExact(value) || PyList_CheckExact(value)) || !PySequence_Fast_GET_SIZE(value)) return NULL;
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(value); i++)
        if (!PyLong_CheckExact(PySequence_Fast_GET_ITEM(value, i))) return NULL;
    return PySequence_Tuple(value);
}

/* One argument, NULL without an error for a list that is not of plain ints: `place` is (position or None, keyword or None, default, how it is converted or None, times or None). */
static PyObject *argument(PyObject *place, PyObject *args, PyObject *kwargs) {
    PyObject *position = PyTuple_GET_ITEM(place, 0), *keyword = PyTuple_GET_ITEM(place, 1), *convert = PyTuple_GET_ITEM(place, 3);
    PyObject *times = PyTuple_GET_ITEM(place, 4), *value;
    if (position != Py_None)
        value = PyTuple_GetItem(args, PyLong_AsSsize_t(position));
    else if (keyword != Py_None)
        value = PyDict_GetItemWithError(kwargs, keyword);
    else
        return Py_NewRef(PyTuple_GET_ITEM(place, 2));
    if (!value) {
        if (!PyErr_Occurred()) PyErr_SetObject(PyExc_KeyError, keyword);
        return NULL;
    }
    if (convert == Py_None) return Py_NewRef(value);
    PyObject *result = times == Py_None ? NULL : integers(value, PyLong_AsLong(times));
    if (result || PyErr_Occurred() || PyTuple_Check(value) || PyList_Check(value)) return result;
    return PyObject_CallOneArg(convert, value);
}

/* choose(plans, first, args, kwargs): (operator, its arguments) by the plan of such a call, or None where there is none. */
static PyObject *py_choose(PyObject *self, PyObject *const *given, Py_ssize_t count) {
    if (count != 4 || !PyDict_Check(given[0]) || !PyTuple_Check(given[2]) || !PyDict_Check(given[3])) {
        PyErr_SetString(PyExc_TypeError, "choose(plans, first, args, kwargs)");
        return NULL;
    }
    PyObject *key = key_of(given[1], given[2], given[3]);
    PyObject *plan = key ? PyDict_GetItemWithError(given[0], key) : NULL;
    Py_XDECREF(key);
    if (!plan) {
        if (PyErr_Occurred()) return NULL;
        Py_RETURN_NONE;
    }
    PyObject *places = PyTuple_GET_ITEM(plan, 1);
    Py_ssize_t n = PyTuple_GET_SIZE(places);
    PyObject *bound = PyTuple_New(n);
    for (Py_ssize_t i = 0; bound && i < n; i++) {
        PyObject *value = argument(PyTuple_GET_ITEM(places, i), given[2], given[3]);
        if (value)
            PyTuple_SET_ITEM(bound, i, value);
        else
            Py_CLEAR(bound);
    }
    if (!bound) {
        if (PyErr_Occurred()) return NULL;
        Py_RETURN_NONE;
    }
    PyObject *result = PyTuple_Pack(2, PyTuple_GET_ITEM(plan, 0), bound);
    Py_DECREF(bound);
    return result;
}

/* ---- two functions of one operator */
static PyObject *run_in_turn(PyObject *pair, PyObject *args) {
    PyObject *result = PyObject_CallOneArg(PyTuple_GET_ITEM(pair, 0), args);
    if (result != Py_None) return result;
    Py_DECREF(result);
    return PyObject_CallOneArg(PyTuple_GET_ITEM(pair, 1), args);
}

static PyMethodDef in_turn = {"in_turn", run_in_turn, METH_O, NULL};

/* in_turn(first, second): a function of one argument that asks the second where the first gives None. */
static PyObject *py_in_turn(PyObject *self, PyObject *args) {
    if (PyTuple_GET_SIZE(args) != 2) return PyErr_Format(PyExc_TypeError, "in_turn(first, second)");
    return PyCFunction_New(&in_turn, args);
}

static PyMethodDef methods[] = {
    {"in_turn", py_in_turn, METH_VARARGS, "in_turn(first, second) -> function"},
    {"setup", py_setup, METH_VARARGS, "setup(Tensor, Size, simple classes)"},
    {"history", py_history, METH_O, "history(args) -> True, False or None"},
    {"simple", (PyCFunction)(void (*)(void))py_simple, METH_FASTCALL, "simple(args[, kwargs]) -> bool"},
    {"strides", py_strides, METH_O, "strides(array) -> tuple"},
    {"arrays", py_arrays, METH_O, "arrays(args) -> tuple"},
    {"choose", (PyCFunction)(void (*)(void))py_choose, METH_FASTCALL, "choose(plans, first, args, kwargs) -> (operator, arguments) or None"},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, "_calls", "See core.calls.", -1, methods, NULL, NULL, NULL, NULL};

PyMODINIT_FUNC PyInit__calls(void) { return PyModule_Create(&module); }
