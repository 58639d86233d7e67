/* Tensor objects made in one call: what `object.__new__` and a store per slot do in Python, at a tenth of the time.
 *
 * `setup` is told the classes once and looks up where their slots lie. `view` makes a plain tensor on the memory of
 * another, with its place in the chain of views; `fresh` makes one around an array of its own; `assemble` makes any other.
 * All of them fill the slots in one place (`fill`).
 * `arrays` takes plain tensors apart. What each does is said in Python in `core.objects`, which runs where this extension
 * is absent. Nothing here calls back into Python, except for the storage of a tensor that has none yet and, in `walk`
 * (said in Python in `autograd.engine`), for rules of nodes, hooks, and gradients that do not fit or cannot be added in place.
 */
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <structmember.h>

enum { ARRAY, DTYPE, DEVICE, KEYS, AUTOGRAD, VERSION, MEMORY, OFFSET, VIEW_INFO, TENSOR_SLOTS };
enum { BASE, PARENT, OP, ARGS, VIEW_VERSION, CREATION, VIEW_SLOTS };

static const char *tensor_names[TENSOR_SLOTS] = {"_array",   "_own_dtype", "_own_device", "_keys",     "_autograd",
                                                 "_counter", "_memory",    "_offset",     "_view_info"};
static const char *view_names[VIEW_SLOTS] = {"base", "parent", "op", "args", "version", "creation"};

static PyTypeObject *tensor_type, *parameter_type, *view_type;
static PyObject *cpu, *untracked, *storage_of, *no_grad, *multi_output, *zero;
static Py_ssize_t tensor_at[TENSOR_SLOTS], view_at[VIEW_SLOTS];

static int find_slots(PyTypeObject *type, const char **names, Py_ssize_t *at, int count) {
    for (int i = 0; i < count; i++) {
        PyObject *slot = PyObject_GetAttrString((PyObject *)type, names[i]);
        if (!slot) return -1;
        if (!Py_IS_TYPE(slot, &PyMemberDescr_Type)) {
            Py_DECREF(slot);
            PyErr_Format(PyExc_TypeError, "%s.%s is not a slot", type->tp_name, names[i]);
            return -1;
        }
        at[i] = ((PyMemberDescrObject *)slot)->d_member->offset;
        Py_DECREF(slot);
    }
    return 0;
}

static inline PyObject *get(PyObject *object, Py_ssize_t at) { return *(PyObject **)((char *)object + at); }

/* Store into an empty slot; the reference is the slot's from now on. */
static inline void give(PyObject *object, Py_ssize_t at, PyObject *value) {
    *(PyObject **)((char *)object + at) = value;
}

static inline void put(PyObject *object, Py_ssize_t at, PyObject *value) { give(object, at, Py_NewRef(value)); }

/* `dtype` and `device` as everybody may read and nobody write them: descriptors of the slots, as quick as these. */
static PyMemberDef public_names[] = {
    {"dtype", T_OBJECT_EX, 0, READONLY, "What kind of numbers the elements are.\n\n>>> torch.ones(2).dtype\ntorch.float32"},
    {"device", T_OBJECT_EX, 0, READONLY, "Where the data is.\n\n>>> torch.ones(2).device\ndevice(type='cpu')"},
};

static int publish(int which, int slot) {
    public_names[which].offset = tensor_at[slot];
    PyObject *descriptor = PyDescr_NewMember(tensor_type, &public_names[which]);
    if (!descriptor) return -1;
    int failed = PyObject_SetAttrString((PyObject *)tensor_type, public_names[which].name, descriptor);
    Py_DECREF(descriptor);
    return failed;
}

static PyObject *py_setup(PyObject *self, PyObject *const *args, Py_ssize_t n) {
    if (n != 6 || !PyType_Check(args[0]) || !PyType_Check(args[1]) || !PyType_Check(args[2])) {
        PyErr_SetString(PyExc_TypeError, "setup(Tensor, Parameter, View, cpu, untracked, storage_of)");
        return NULL;
    }
    tensor_type = (PyTypeObject *)Py_NewRef(args[0]);
    parameter_type = (PyTypeObject *)Py_NewRef(args[1]);
    view_type = (PyTypeObject *)Py_NewRef(args[2]);
    cpu = Py_NewRef(args[3]);
    untracked = Py_NewRef(args[4]);
    storage_of = Py_NewRef(args[5]);
    no_grad = PyUnicode_InternFromString("no_grad");
    multi_output = PyUnicode_InternFromString("multi_output");
    zero = PyLong_FromLong(0);
    if (!no_grad || !multi_output || !zero || find_slots(tensor_type, tensor_names, tensor_at, TENSOR_SLOTS) ||
        find_slots(view_type, view_names, view_at, VIEW_SLOTS) || publish(0, DTYPE) || publish(1, DEVICE))
        return NULL;
    Py_RETURN_NONE;
}

static PyObject *make_info(PyObject *source, PyObject *op, PyObject *arguments, PyObject *version, int recording,
                           int many) {
    PyObject *info = view_type->tp_alloc(view_type, 0);
    if (!info) return NULL;
    PyObject *above = get(source, tensor_at[VIEW_INFO]);
    int top = above == NULL || above == Py_None;
    put(info, view_at[BASE], top ? source : get(above, view_at[BASE]));
    put(info, view_at[PARENT], top ? Py_None : above);
    put(info, view_at[OP], op);
    put(info, view_at[ARGS], arguments);
    put(info, view_at[VIEW_VERSION], version);
    PyObject *creation = many ? multi_output : top ? Py_None : get(above, view_at[CREATION]);
    put(info, view_at[CREATION], recording ? creation : no_grad);
    return info;
}

/* Fill every slot of a tensor without any; the references to `version`, `memory` and `info` are the slots' from now on. */
static inline void fill(PyObject *result, PyObject *array, PyObject *dtype, PyObject *device, PyObject *keys,
                        PyObject *autograd, PyObject *version, PyObject *memory, PyObject *offset, PyObject *info) {
    put(result, tensor_at[ARRAY], array);
    put(result, tensor_at[DTYPE], dtype);
    put(result, tensor_at[DEVICE], device);
    put(result, tensor_at[KEYS], keys);
    put(result, tensor_at[AUTOGRAD], autograd);
    give(result, tensor_at[VERSION], version);
    give(result, tensor_at[MEMORY], memory);
    put(result, tensor_at[OFFSET], offset);
    give(result, tensor_at[VIEW_INFO], info);
}

/* assemble(cls, array, dtype, device, keys, autograd, version, memory, offset): a tensor of any class, of no view. */
static PyObject *py_assemble(PyObject *self, PyObject *const *args, Py_ssize_t n) {
    if (n != 9 || !tensor_type || !PyType_Check(args[0]) || !PyType_IsSubtype((PyTypeObject *)args[0], tensor_type)) {
        PyErr_SetString(PyExc_TypeError,
                        "assemble(cls, array, dtype, device, keys, autograd, version, memory, offset)");
        return NULL;
    }
    PyTypeObject *type = (PyTypeObject *)args[0];
    PyObject *result = type->tp_alloc(type, 0);
    if (result)
        fill(result, args[1], args[2], args[3], args[4], args[5], Py_NewRef(args[6]), Py_NewRef(args[7]), args[8],
             Py_NewRef(Py_None));
    return result;
}

/* view(source, array, offset, op, args, mode, many=False, dtype=source.dtype): a plain tensor on the memory of the plain tensor `source`. */
static PyObject *py_view(PyObject *self, PyObject *const *args, Py_ssize_t n) {
    if (n < 6 || n > 8 || !tensor_type || !PyObject_TypeCheck(args[0], tensor_type)) {
        PyErr_SetString(PyExc_TypeError, "view(source, array, offset, op, args, mode, many=False, dtype=source.dtype)");
        return NULL;
    }
    PyObject *source = args[0], *memory = get(source, tensor_at[MEMORY]), *counter = get(source, tensor_at[VERSION]);
    if (!PyList_Check(counter) || PyList_GET_SIZE(counter) != 1) {
        PyErr_SetString(PyExc_TypeError, "a tensor's version is a list of one number");
        return NULL;
    }
    memory = memory == Py_None ? PyObject_CallOneArg(storage_of, source) : Py_NewRef(memory);
    if (!memory) return NULL;
    int recording = args[5] != zero, many = n > 6 && args[6] == Py_True;
    PyObject *info = make_info(source, args[3], args[4], PyList_GET_ITEM(counter, 0), recording, many);
    PyObject *result = info ? tensor_type->tp_alloc(tensor_type, 0) : NULL;
    if (!result) {
        Py_DECREF(memory);
        Py_XDECREF(info);
        return NULL;
    }
    fill(result, args[1], n > 7 ? args[7] : get(source, tensor_at[DTYPE]), get(source, tensor_at[DEVICE]), zero, untracked,
         Py_NewRef(counter), memory, args[2], info);
    return result;
}

/* fresh(array, dtype): a plain tensor on the CPU around an array that nobody else holds. */
static PyObject *py_fresh(PyObject *self, PyObject *const *args, Py_ssize_t n) {
    if (n != 2 || !tensor_type) {
        PyErr_SetString(PyExc_TypeError, "fresh(array, dtype)");
        return NULL;
    }
    PyObject *counter = PyList_New(1);
    PyObject *result = counter ? tensor_type->tp_alloc(tensor_type, 0) : NULL;
    if (!result) {
        Py_XDECREF(counter);
        return NULL;
    }
    PyList_SET_ITEM(counter, 0, Py_NewRef(zero));
    fill(result, args[0], args[1], cpu, zero, Py_None, counter, Py_NewRef(Py_None), zero, Py_NewRef(Py_None));
    return result;
}

/* arrays(tensors): (arrays, dtype, whether any may have history) of plain tensors of one dtype; None if they are not. */
static PyObject *py_arrays(PyObject *self, PyObject *tensors) {
    if (!tensor_type || !(PyTuple_CheckExact(tensors) || PyList_CheckExact(tensors))) Py_RETURN_NONE;
    Py_ssize_t n = PySequence_Fast_GET_SIZE(tensors);
    if (!n) Py_RETURN_NONE;
    PyObject **items = PySequence_Fast_ITEMS(tensors), *dtype = NULL;
    int live = 0;
    for (Py_ssize_t i = 0; i < n; i++) {
        PyTypeObject *type = Py_TYPE(items[i]);
        if ((type != tensor_type && type != parameter_type) || get(items[i], tensor_at[KEYS]) != zero) Py_RETURN_NONE;
        PyObject *own = get(items[i], tensor_at[DTYPE]);
        if (dtype && dtype != own) Py_RETURN_NONE;
        dtype = own;
        live |= get(items[i], tensor_at[AUTOGRAD]) != Py_None;
    }
    PyObject *arrays = PyList_New(n);
    if (!arrays) return NULL;
    for (Py_ssize_t i = 0; i < n; i++) PyList_SET_ITEM(arrays, i, Py_NewRef(get(items[i], tensor_at[ARRAY])));
    PyObject *result = PyTuple_Pack(3, arrays, dtype, live ? Py_True : Py_False);
    Py_DECREF(arrays);
    return result;
}

/* ---- recording: nodes and what tensors know of them */
enum { EDGES, OUTPUTS, SAVED_VALUES, SEQUENCE, NODE_SLOTS };
enum { REQUIRES_GRAD, EDGE, GRAD, AUTOGRAD_SLOTS };
static const char *node_names[NODE_SLOTS] = {"edges", "outputs", "saved", "sequence"};
static const char *autograd_names[AUTOGRAD_SLOTS] = {"requires_grad", "edge", "grad"};
static PyTypeObject *node_type, *autograd_type;
static PyObject *saved_mark, *keep_tangents, *shape_name, *edges_name;
static Py_ssize_t node_at[NODE_SLOTS], autograd_at[AUTOGRAD_SLOTS];

static PyObject *py_setup_nodes(PyObject *self, PyObject *const *args, Py_ssize_t n) {
    if (n != 4 || !PyType_Check(args[0]) || !PyType_Check(args[1])) {
        PyErr_SetString(PyExc_TypeError, "setup_nodes(Node, Autograd, saved_mark, keep_tangents)");
        return NULL;
    }
    node_type = (PyTypeObject *)Py_NewRef(args[0]);
    autograd_type = (PyTypeObject *)Py_NewRef(args[1]);
    saved_mark = Py_NewRef(args[2]);
    keep_tangents = Py_NewRef(args[3]);
    shape_name = PyUnicode_InternFromString("shape");
    edges_name = PyUnicode_InternFromString("edges");
    if (!shape_name || !edges_name || find_slots(node_type, node_names, node_at, NODE_SLOTS) ||
        find_slots(autograd_type, autograd_names, autograd_at, AUTOGRAD_SLOTS))
        return NULL;
    Py_RETURN_NONE;
}

/* ((shape, dtype, device),) of a tensor. */
static PyObject *outputs_of(PyObject *tensor) {
    PyObject *shape = PyObject_GetAttr(get(tensor, tensor_at[ARRAY]), shape_name);
    if (!shape) return NULL;
    PyObject *spec = PyTuple_Pack(3, shape, get(tensor, tensor_at[DTYPE]), get(tensor, tensor_at[DEVICE]));
    Py_DECREF(shape);
    if (!spec) return NULL;
    PyObject *result = PyTuple_Pack(1, spec);
    Py_DECREF(spec);
    return result;
}

/* hang(result, node_class, edges, sequence): a node of `node_class`, and `result` as its only output. */
static PyObject *py_hang(PyObject *self, PyObject *const *args, Py_ssize_t n) {
    if (n != 4 || !node_type || !PyObject_TypeCheck(args[0], tensor_type) || !PyType_Check(args[1]) ||
        !PyType_IsSubtype((PyTypeObject *)args[1], node_type)) {
        PyErr_SetString(PyExc_TypeError, "hang(result, node_class, edges, sequence)");
        return NULL;
    }
    PyObject *result = args[0], *outputs = outputs_of(result);
    PyTypeObject *type = (PyTypeObject *)args[1];
    PyObject *node = outputs ? type->tp_alloc(type, 0) : NULL;
    PyObject *edge = node ? PyTuple_Pack(2, node, zero) : NULL;
    PyObject *known = edge ? autograd_type->tp_alloc(autograd_type, 0) : NULL;
    if (!known) {
        Py_XDECREF(outputs);
        Py_XDECREF(node);
        Py_XDECREF(edge);
        return NULL;
    }
    put(node, node_at[EDGES], args[2]);
    give(node, node_at[OUTPUTS], outputs);
    put(node, node_at[SEQUENCE], args[3]);
    put(known, autograd_at[REQUIRES_GRAD], Py_True);
    give(known, autograd_at[EDGE], edge);
    put(known, autograd_at[GRAD], Py_None);
    PyObject *before = get(result, tensor_at[AUTOGRAD]);
    if (before != Py_None && before != untracked) {
        PyObject *done = PyObject_CallFunctionObjArgs(keep_tangents, before, known, NULL);
        if (!done) {
            Py_DECREF(node);
            Py_DECREF(known);
            return NULL;
        }
        Py_DECREF(done);
    }
    give(result, tensor_at[AUTOGRAD], known);
    Py_DECREF(before);
    return node;
}

/* keep(value): what a node saves of an argument when nothing listens; numbers are themselves. */
static PyObject *py_keep(PyObject *self, PyObject *value) {
    if (!autograd_type || !PyObject_TypeCheck(value, tensor_type)) return Py_NewRef(value);
    PyObject *counter = get(value, tensor_at[VERSION]), *known = get(value, tensor_at[AUTOGRAD]);
    if (!PyList_Check(counter) || PyList_GET_SIZE(counter) != 1) {
        PyErr_SetString(PyExc_TypeError, "a tensor's version is a list of one number");
        return NULL;
    }
    PyObject *edge = known == Py_None ? Py_None : get(known, autograd_at[EDGE]);
    return PyTuple_Pack(4, saved_mark, value, PyList_GET_ITEM(counter, 0), edge ? edge : Py_None);
}

/* edge(value): where gradients of a tensor go, as core.node.edge_of says it; views and subclasses are left to that. */
static PyTypeObject *sink_type;
static PyObject *edge_of, *accumulator_name;
static Py_ssize_t variable_at;

static PyObject *py_setup_edges(PyObject *self, PyObject *const *args, Py_ssize_t n) {
    static const char *names[1] = {"variable"};
    if (n != 2 || !PyType_Check(args[0])) {
        PyErr_SetString(PyExc_TypeError, "setup_edges(AccumulateGrad, edge_of)");
        return NULL;
    }
    sink_type = (PyTypeObject *)Py_NewRef(args[0]);
    edge_of = Py_NewRef(args[1]);
    accumulator_name = PyUnicode_InternFromString("accumulator");
    if (!accumulator_name || find_slots(sink_type, names, &variable_at, 1)) return NULL;
    Py_RETURN_NONE;
}

/* The sink of a leaf: the one that is alive, or a new one, which the leaf then knows weakly. */
static PyObject *sink_of(PyObject *tensor, PyObject *known) {
    PyObject *ref = PyObject_GetAttr(known, accumulator_name);
    if (!ref) return NULL;
    PyObject *node = ref == Py_None ? NULL : PyObject_CallNoArgs(ref);
    int gone = ref == Py_None || node == Py_None;
    Py_DECREF(ref);
    if (!gone) return node;
    Py_XDECREF(node);
    node = sink_type->tp_alloc(sink_type, 0);
    if (!node) return NULL;
    put(node, variable_at, tensor);
    ref = PyWeakref_NewRef(node, NULL);
    if (!ref || PyObject_SetAttr(known, accumulator_name, ref)) {
        Py_XDECREF(ref);
        Py_DECREF(node);
        return NULL;
    }
    Py_DECREF(ref);
    return node;
}

static PyObject *py_edge(PyObject *self, PyObject *value) {
    PyTypeObject *type = Py_TYPE(value);
    if (type != tensor_type && type != parameter_type) return PyObject_CallOneArg(edge_of, value);
    PyObject *known = get(value, tensor_at[AUTOGRAD]);
    if (known == Py_None) Py_RETURN_NONE;
    if (get(value, tensor_at[VIEW_INFO]) != Py_None) return PyObject_CallOneArg(edge_of, value);
    if (get(known, autograd_at[REQUIRES_GRAD]) != Py_True) Py_RETURN_NONE;
    PyObject *edge = get(known, autograd_at[EDGE]);
    if (edge != Py_None) return Py_NewRef(edge);
    PyObject *node = sink_of(value, known);
    if (!node) return NULL;
    edge = PyTuple_Pack(2, node, zero);
    Py_DECREF(node);
    return edge;
}

/* ---- backward */
#include "native_walks.h"

static int is_plain_tensor(PyObject *value) {
    PyTypeObject *type = Py_TYPE(value);
    return (type == tensor_type || type == parameter_type) && get(value, tensor_at[KEYS]) == zero;
}

/* The tensors of a tensor, tuple or list as a tuple; None where they are given in another way or are not plain. */
static PyObject *plain_tensors(PyObject *given) {
    int many = PyTuple_CheckExact(given) || PyList_CheckExact(given);
    PyObject *tensors = many ? PySequence_Tuple(given) : PyTuple_Pack(1, given);
    for (Py_ssize_t i = 0; tensors && i < PyTuple_GET_SIZE(tensors); i++)
        if (!is_plain_tensor(PyTuple_GET_ITEM(tensors, i))) {
            Py_DECREF(tensors);
            return Py_NewRef(Py_None);
        }
    return tensors;
}

/* The edges of some tensors as a list; None where one has none. */
static PyObject *plain_edges(PyObject *tensors) {
    PyObject *edges = PyList_New(PyTuple_GET_SIZE(tensors));
    for (Py_ssize_t i = 0; edges && i < PyTuple_GET_SIZE(tensors); i++) {
        PyObject *edge = py_edge(NULL, PyTuple_GET_ITEM(tensors, i));
        if (edge && edge != Py_None) {
            PyList_SET_ITEM(edges, i, edge);
            continue;
        }
        Py_DECREF(edges);
        return edge;
    }
    return edges;
}

/* Whether gradients have the dtypes and shapes of outputs; -1 on error. */
static int fit(PyObject *outputs, PyObject *gradients) {
    Py_ssize_t n = PyTuple_GET_SIZE(outputs);
    int same = PyTuple_GET_SIZE(gradients) == n;
    for (Py_ssize_t i = 0; same > 0 && i < n; i++) {
        PyObject *output = PyTuple_GET_ITEM(outputs, i), *g = PyTuple_GET_ITEM(gradients, i);
        if (get(output, tensor_at[DTYPE]) != get(g, tensor_at[DTYPE])) return 0;
        PyObject *wanted = PyObject_GetAttr(get(output, tensor_at[ARRAY]), shape_name);
        PyObject *have = wanted ? PyObject_GetAttr(get(g, tensor_at[ARRAY]), shape_name) : NULL;
        same = have ? PyObject_RichCompareBool(wanted, have, Py_EQ) : -1;
        Py_XDECREF(wanted);
        Py_XDECREF(have);
    }
    return same;
}

/* starting(outputs, gradients, inputs): where a backward of plain tensors starts, as lists: edges of the outputs, their gradients,
 * edges of the inputs. None where there is more to say of one of them. */
static PyObject *py_starting(PyObject *self, PyObject *const *args, Py_ssize_t n) {
    if (n != 3 || !sink_type) {
        PyErr_SetString(PyExc_TypeError, "starting(outputs, gradients, inputs)");
        return NULL;
    }
    PyObject *given[3] = {NULL}, *result = NULL, *roots = NULL, *targets = NULL;
    int plain = 1;
    for (int i = 0; i < 3 && plain; i++) plain = (given[i] = plain_tensors(args[i])) && given[i] != Py_None && PyTuple_GET_SIZE(given[i]);
    int fits = plain ? fit(given[0], given[1]) : 0;
    if (fits > 0) roots = plain_edges(given[0]);
    if (roots && roots != Py_None) targets = plain_edges(given[2]);
    if (targets && targets != Py_None) {
        PyObject *gradients = PySequence_List(given[1]);
        result = gradients ? PyTuple_Pack(3, roots, gradients, targets) : NULL;
        Py_XDECREF(gradients);
    } else if (!PyErr_Occurred()) {
        result = Py_NewRef(Py_None);
    }
    for (int i = 0; i < 3; i++) Py_XDECREF(given[i]);
    Py_XDECREF(roots);
    Py_XDECREF(targets);
    return result;
}

static PyMethodDef methods[] = {
    {"setup_walk", (PyCFunction)(void (*)(void))py_setup_walk, METH_FASTCALL,
     "setup_walk(validate, total, add, large, accumulate, run_hooked, run_late_hooks, run_tensor_hooks)"},
    {"walk", (PyCFunction)(void (*)(void))py_walk, METH_FASTCALL,
     "walk(task, roots, gradients, inputs, run_inputs, keep_graph, in_place, branching) -> gradients at the inputs"},
    {"starting", (PyCFunction)(void (*)(void))py_starting, METH_FASTCALL,
     "starting(outputs, gradients, inputs) -> (roots, gradients, targets) or None"},
    {"setup_edges", (PyCFunction)(void (*)(void))py_setup_edges, METH_FASTCALL, "setup_edges(AccumulateGrad, edge_of)"},
    {"edge", py_edge, METH_O, "edge(value) -> (node, output number) or None"},
    {"setup_nodes", (PyCFunction)(void (*)(void))py_setup_nodes, METH_FASTCALL,
     "setup_nodes(Node, Autograd, saved_mark, keep_tangents)"},
    {"hang", (PyCFunction)(void (*)(void))py_hang, METH_FASTCALL, "hang(result, node_class, edges, sequence) -> Node"},
    {"keep", py_keep, METH_O, "keep(value) -> what a node saves of it"},
    {"setup", (PyCFunction)(void (*)(void))py_setup, METH_FASTCALL,
     "setup(Tensor, Parameter, View, cpu, untracked, storage_of)"},
    {"arrays", py_arrays, METH_O, "arrays(tensors) -> (arrays, dtype, live) or None"},
    {"view", (PyCFunction)(void (*)(void))py_view, METH_FASTCALL, "view(source, array, offset, op, args, mode, many=False, dtype=source.dtype) -> Tensor"},
    {"assemble", (PyCFunction)(void (*)(void))py_assemble, METH_FASTCALL, "assemble(cls, array, dtype, device, keys, autograd, version, memory, offset) -> Tensor"},
    {"fresh", (PyCFunction)(void (*)(void))py_fresh, METH_FASTCALL, "fresh(array, dtype) -> Tensor"},
    {NULL, NULL, 0, NULL},
};
static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, "_objects", NULL, -1, methods, NULL, NULL, NULL, NULL};

PyMODINIT_FUNC PyInit__objects(void) { return PyModule_Create(&module); }
