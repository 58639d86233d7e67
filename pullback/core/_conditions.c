/* What a captured graph asks at every call, of each tensor and each module that it reads, in C: these are most of its conditions.
 *
 * `setup` is told the classes once. `fits(tensor, fact)` says whether a plain tensor is as it was; `is_plain(attributes)` whether calling a
 * module is calling its `forward`; `are_apart(tensors...)` whether all lie on memory of their own; `is_unchanged(watch)` whether nobody has changed
 * some classes, or what they inherit from, since `marks` were kept. What each asks is said in Python in `capture.bytecode.conditions` and
 * `capture.bytecode.modules`, which write it out where this extension is absent.
 */
#include "native_arrays.h"
#include <structmember.h>

enum { ARRAY, DTYPE, DEVICE, KEYS, AUTOGRAD, VIEW_INFO, MEMORY, TENSOR_SLOTS };
enum { REQUIRES_GRAD, EDGE, AUTOGRAD_SLOTS };
enum { CLASS, WANT_DTYPE, WANT_DEVICE, LAYOUT, IS_PARAMETER, FACTS };
enum { HOOK_TABLES = 4, REPLACEMENTS = 2 };

static const char *tensor_names[TENSOR_SLOTS] = {"_array", "_own_dtype", "_own_device", "_keys", "_autograd", "_view_info", "_memory"};
static const char *autograd_names[AUTOGRAD_SLOTS] = {"requires_grad", "edge"};
static const char *hook_names[HOOK_TABLES] = {"_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks"};
static const char *replacement_names[REPLACEMENTS] = {"forward", "_compiled_call_impl"};

static PyTypeObject *ndarray, *autograd_type, *tensor_class;
static PyObject *requires_grad, *zero, *hook_tables[HOOK_TABLES], *replacements[REPLACEMENTS];
static Py_ssize_t tensor_at[TENSOR_SLOTS], autograd_at[AUTOGRAD_SLOTS];

static inline PyObject *get(PyObject *object, Py_ssize_t at) { return *(PyObject **)((char *)object + at); }

static int find_slots(PyObject *type, const char **names, Py_ssize_t *at, int count) {
    for (int i = 0; i < count; i++) {
        PyObject *slot = PyObject_GetAttrString(type, names[i]);
        int is_slot = slot && Py_IS_TYPE(slot, &PyMemberDescr_Type);
        if (is_slot) at[i] = ((PyMemberDescrObject *)slot)->d_member->offset;
        Py_XDECREF(slot);
        if (!is_slot) return -1;
    }
    return 0;
}

static int intern(const char **names, PyObject **into, int count) {
    for (int i = 0; i < count; i++)
        if (!(into[i] = PyUnicode_InternFromString(names[i]))) return -1;
    return 0;
}

/* setup(Tensor, Autograd, ndarray, requires_grad) */
static PyObject *py_setup(PyObject *self, PyObject *args) {
    PyObject *tensor_type;
    if (!PyArg_ParseTuple(args, "O!O!O!O", &PyType_Type, &tensor_type, &PyType_Type, &autograd_type, &PyType_Type, &ndarray, &requires_grad)) return NULL;
    if (find_slots(tensor_type, tensor_names, tensor_at, TENSOR_SLOTS) ||
        find_slots((PyObject *)autograd_type, autograd_names, autograd_at, AUTOGRAD_SLOTS)) {
        if (!PyErr_Occurred()) PyErr_SetString(PyExc_TypeError, "setup: a name of a tensor or of its Autograd is not a slot");
        return NULL;
    }
    if (intern(hook_names, hook_tables, HOOK_TABLES) || intern(replacement_names, replacements, REPLACEMENTS)) return NULL;
    tensor_class = (PyTypeObject *)Py_NewRef(tensor_type);
    Py_INCREF(autograd_type);
    Py_INCREF(ndarray);
    Py_INCREF(requires_grad);
    zero = PyLong_FromLong(0);
    Py_RETURN_NONE;
}

/* Whether an array has the sizes and strides that lie in `layout`, one after the other. */
static int is_laid_out(PyObject *found, PyObject *layout) {
    if (!found || !Py_IS_TYPE(found, ndarray)) return 0;
    const Array *a = (const Array *)found;
    size_t each = sizeof(Py_ssize_t) * (size_t)a->nd;
    if ((size_t)PyBytes_GET_SIZE(layout) != 2 * each) return 0;
    const char *want = PyBytes_AS_STRING(layout);
    return !each || (!memcmp(a->shape, want, each) && !memcmp(a->strides, want + each, each));
}

/* A leaf that wants a gradient and is no view. */
static int is_parameter(PyObject *tensor, PyObject *autograd) {
    if (!autograd || !PyObject_TypeCheck(autograd, autograd_type) || get(tensor, tensor_at[VIEW_INFO]) != Py_None) return 0;
    return get(autograd, autograd_at[REQUIRES_GRAD]) == Py_True && get(autograd, autograd_at[EDGE]) == Py_None;
}

/* fits(tensor, (class, dtype, device, layout, whether it is a parameter or wants no gradient)) */
static PyObject *py_fits(PyObject *self, PyObject *const *args, Py_ssize_t n) {
    if (n != 2 || !PyTuple_Check(args[1]) || PyTuple_GET_SIZE(args[1]) != FACTS || !PyBytes_Check(PyTuple_GET_ITEM(args[1], LAYOUT))) {
        PyErr_SetString(PyExc_TypeError, "fits(tensor, (class, dtype, device, layout, is_parameter))");
        return NULL;
    }
    PyObject *t = args[0], *fact = args[1];
    if ((PyObject *)Py_TYPE(t) != PyTuple_GET_ITEM(fact, CLASS) || get(t, tensor_at[KEYS]) != zero) Py_RETURN_FALSE;
    if (get(t, tensor_at[DTYPE]) != PyTuple_GET_ITEM(fact, WANT_DTYPE)) Py_RETURN_FALSE;
    if (get(t, tensor_at[DEVICE]) != PyTuple_GET_ITEM(fact, WANT_DEVICE)) Py_RETURN_FALSE;
    if (!is_laid_out(get(t, tensor_at[ARRAY]), PyTuple_GET_ITEM(fact, LAYOUT))) Py_RETURN_FALSE;
    PyObject *autograd = get(t, tensor_at[AUTOGRAD]);
    if (PyTuple_GET_ITEM(fact, IS_PARAMETER) == Py_True) return PyBool_FromLong(is_parameter(t, autograd));
    if (autograd == Py_None) Py_RETURN_TRUE;
    PyObject *wants = PyObject_CallOneArg(requires_grad, t);
    int has_grad = wants ? PyObject_IsTrue(wants) : -1;
    Py_XDECREF(wants);
    return has_grad < 0 ? NULL : PyBool_FromLong(!has_grad);
}

/* is_plain(attributes): no hooks in the tables of a module, and nothing in the place of its methods. */
static PyObject *py_is_plain(PyObject *self, PyObject *attributes) {
    if (!PyDict_Check(attributes)) {
        PyErr_SetString(PyExc_TypeError, "is_plain(attributes of a module)");
        return NULL;
    }
    for (int i = 0; i < HOOK_TABLES; i++) {
        PyObject *table = PyDict_GetItemWithError(attributes, hook_tables[i]);
        if (!table) {
            if (!PyErr_Occurred()) PyErr_SetObject(PyExc_KeyError, hook_tables[i]);
            return NULL;
        }
        int some = PyDict_CheckExact(table) ? PyDict_GET_SIZE(table) != 0 : PyObject_IsTrue(table);
        if (some) return some < 0 ? NULL : Py_NewRef(Py_False);
    }
    for (int i = 0; i < REPLACEMENTS; i++) {
        int found = PyDict_Contains(attributes, replacements[i]);
        if (found) return found < 0 ? NULL : Py_NewRef(Py_False);
    }
    Py_RETURN_TRUE;
}

static int by_address(const void *a, const void *b) {
    const char *x = *(char *const *)a, *y = *(char *const *)b;
    return (x > y) - (x < y);
}

/* are_apart(tensors...): whether no two lie on the same memory, or are the same; False too where one is no tensor. */
static PyObject *py_are_apart(PyObject *self, PyObject *const *args, Py_ssize_t n) {
    PyObject *few[16], **owners = n <= 16 ? few : PyMem_Malloc(sizeof(PyObject *) * (size_t)n);
    if (!owners) return PyErr_NoMemory();
    int apart = 1;
    for (Py_ssize_t i = 0; i < n && apart; i++) {
        apart = PyObject_TypeCheck(args[i], tensor_class);
        PyObject *memory = apart ? get(args[i], tensor_at[MEMORY]) : NULL;
        owners[i] = memory && memory != Py_None ? memory : args[i];
    }
    if (apart) qsort(owners, (size_t)n, sizeof(PyObject *), by_address);
    for (Py_ssize_t i = 1; i < n && apart; i++) apart = owners[i] != owners[i - 1];
    if (owners != few) PyMem_Free(owners);
    return PyBool_FromLong(apart);
}

/* The number that a class has until it, or what it inherits from, is changed; 0 where it has none now. */
static unsigned version_of(PyObject *type) {
    PyTypeObject *t = (PyTypeObject *)type;
#if PY_VERSION_HEX < 0x030d0000
    if (!(t->tp_flags & Py_TPFLAGS_VALID_VERSION_TAG)) return 0;
#endif
    return t->tp_version_tag;
}

/* Give a class such a number: looking something up does. */
static void number(PyObject *type) {
#if PY_VERSION_HEX >= 0x030c0000
    PyUnstable_Type_AssignVersionTag((PyTypeObject *)type);
#else
    _PyType_Lookup((PyTypeObject *)type, hook_tables[0]);
#endif
}

static int is_classes(PyObject *classes) {
    if (!PyTuple_Check(classes)) return 0;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(classes); i++)
        if (!PyType_Check(PyTuple_GET_ITEM(classes, i))) return 0;
    return 1;
}

/* marks(classes) -> what `is_unchanged` compares */
static PyObject *py_marks(PyObject *self, PyObject *classes) {
    if (!is_classes(classes)) {
        PyErr_SetString(PyExc_TypeError, "marks(tuple of classes)");
        return NULL;
    }
    Py_ssize_t n = PyTuple_GET_SIZE(classes);
    PyObject *result = PyBytes_FromStringAndSize(NULL, n * (Py_ssize_t)sizeof(unsigned));
    for (Py_ssize_t i = 0; result && i < n; i++) {
        number(PyTuple_GET_ITEM(classes, i));
        ((unsigned *)PyBytes_AS_STRING(result))[i] = version_of(PyTuple_GET_ITEM(classes, i));
    }
    return result;
}

/* is_unchanged([classes, marks or None]): whether the classes are what they were when these marks were taken. */
static PyObject *py_is_unchanged(PyObject *self, PyObject *watch) {
    if (!PyList_Check(watch) || PyList_GET_SIZE(watch) != 2 || !is_classes(PyList_GET_ITEM(watch, 0))) {
        PyErr_SetString(PyExc_TypeError, "is_unchanged([classes, marks])");
        return NULL;
    }
    PyObject *classes = PyList_GET_ITEM(watch, 0), *marks = PyList_GET_ITEM(watch, 1);
    Py_ssize_t n = PyTuple_GET_SIZE(classes);
    if (!PyBytes_Check(marks) || PyBytes_GET_SIZE(marks) != n * (Py_ssize_t)sizeof(unsigned)) Py_RETURN_FALSE;
    const unsigned *kept = (const unsigned *)PyBytes_AS_STRING(marks);
    for (Py_ssize_t i = 0; i < n; i++)
        if (!kept[i] || version_of(PyTuple_GET_ITEM(classes, i)) != kept[i]) Py_RETURN_FALSE;
    Py_RETURN_TRUE;
}

static PyMethodDef methods[] = {
    {"setup", py_setup, METH_VARARGS, "setup(Tensor, Autograd, ndarray, requires_grad)"},
    {"fits", (PyCFunction)(void (*)(void))py_fits, METH_FASTCALL, "fits(tensor, (class, dtype, device, layout, is_parameter)) -> bool"},
    {"is_plain", py_is_plain, METH_O, "is_plain(attributes of a module) -> bool"},
    {"are_apart", (PyCFunction)(void (*)(void))py_are_apart, METH_FASTCALL, "are_apart(tensors...) -> bool"},
    {"marks", py_marks, METH_O, "marks(classes) -> bytes"},
    {"is_unchanged", py_is_unchanged, METH_O, "is_unchanged([classes, marks]) -> bool"},
    {NULL, NULL, 0, NULL},
};
static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, "_conditions", NULL, -1, methods, NULL, NULL, NULL, NULL};

PyMODINIT_FUNC PyInit__conditions(void) { return PyModule_Create(&module); }
