/* Tensor objects made in one call: what `object.__new__` and a store per slot do in Python, at a tenth of the time.
 *
 * `setup` is told the classes once and looks up where their slots lie. `view` makes a plain tensor on the memory of
 * another, with its place in the chain of views; `fresh` makes one around an array of its own; `assemble` makes any other.
 * All of them fill the slots in one place (`fill`).
 * `arrays` takes plain tensors apart. What each does is said in Python in `core.objects`, which runs where this extension
 * is absent. Nothing here calls back into Python, except for the storage of a tensor that has none yet and, in `deliver`
 * (said in Python in `autograd.engine`), for gradients that do not fit or cannot be added in place.
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

/* ---- backward: what a node returned goes to the nodes before it */
enum { WAITS, OUTPUT_SPECS, OWNED, FIRST_GRADIENT };
enum { MOST_NUMBERS = 62 }; /* outputs beyond this are summed without the mark of ownership */
static PyObject *validate_gradient, *total_of, *add_arrays, *add_name;
static Py_ssize_t large;

static PyObject *py_setup_delivery(PyObject *self, PyObject *const *args, Py_ssize_t n) {
    if (n != 4) {
        PyErr_SetString(PyExc_TypeError, "setup_delivery(validate, total, add, large)");
        return NULL;
    }
    validate_gradient = Py_NewRef(args[0]);
    total_of = Py_NewRef(args[1]);
    add_arrays = Py_NewRef(args[2]);
    add_name = PyUnicode_InternFromString("add_");
    large = PyLong_AsSsize_t(args[3]);
    if (!add_name || PyErr_Occurred()) return NULL;
    Py_RETURN_NONE;
}

/* A new reference to the gradient as `spec` (shape, dtype, device) wants it. */
static PyObject *fitting(PyObject *node, Py_ssize_t index, PyObject *spec, PyObject *g) {
    if (PyObject_TypeCheck(g, tensor_type) && PyTuple_Check(spec) && PyTuple_GET_SIZE(spec) == 3 &&
        get(g, tensor_at[DTYPE]) == PyTuple_GET_ITEM(spec, 1)) {
        PyObject *shape = PyObject_GetAttr(get(g, tensor_at[ARRAY]), shape_name);
        if (!shape) return NULL;
        int same = PyObject_RichCompareBool(shape, PyTuple_GET_ITEM(spec, 0), Py_EQ);
        Py_DECREF(shape);
        if (same) return same < 0 ? NULL : Py_NewRef(g);
    }
    PyObject *at = PyLong_FromSsize_t(index);
    PyObject *result = at ? PyObject_CallFunctionObjArgs(validate_gradient, node, at, spec, g, NULL) : NULL;
    Py_XDECREF(at);
    return result;
}

static int is_small(PyObject *shape) {
    Py_ssize_t size = 1;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(shape) && size < large; i++)
        size *= PyLong_AsSsize_t(PyTuple_GET_ITEM(shape, i));
    return size < large;
}

/* Add `g` to the sum `have`, which only the engine holds. */
static int add_into(PyObject *have, PyObject *g, PyObject *shape) {
    PyObject *done;
    if (PyTuple_Check(shape) && is_small(shape)) {
        PyObject *into = get(have, tensor_at[ARRAY]);
        PyObject *operands[3] = {into, get(g, tensor_at[ARRAY]), into};
        done = PyObject_Vectorcall(add_arrays, operands, 3, NULL);
    } else {
        done = PyObject_CallMethodOneArg(have, add_name, g);
    }
    Py_XDECREF(done);
    return done ? 0 : -1;
}

static int is_plain(PyObject *g) {
    return PyObject_TypeCheck(g, tensor_type) && get(g, tensor_at[KEYS]) == zero;
}

/* Put a gradient into a record, at output `number`, or add it to what is there. Takes the reference to `g`. */
static int arrive(PyObject *record, Py_ssize_t number, PyObject *spec, PyObject *g, int in_place) {
    Py_ssize_t at = FIRST_GRADIENT + number;
    PyObject *have = PyList_GET_ITEM(record, at);
    if (have == Py_None) return PyList_SetItem(record, at, g);
    long long owned = number < MOST_NUMBERS ? PyLong_AsLongLong(PyList_GET_ITEM(record, OWNED)) : 0;
    if (owned == -1 && PyErr_Occurred()) {
        Py_DECREF(g);
        return -1;
    }
    if (in_place && number < MOST_NUMBERS && owned >> number & 1 && is_plain(have) && is_plain(g)) {
        int failed = add_into(have, g, PyTuple_GET_ITEM(spec, 0));
        Py_DECREF(g);
        return failed;
    }
    PyObject *sum = PyObject_CallFunctionObjArgs(total_of, have, g, NULL);
    Py_DECREF(g);
    if (!sum || PyList_SetItem(record, at, sum)) return -1;
    if (number >= MOST_NUMBERS) return 0;
    PyObject *mark = PyLong_FromLongLong(owned | 1LL << number);
    return mark ? PyList_SetItem(record, OWNED, mark) : -1;
}

/* One gradient (or None) along one edge. 1 where the node it goes to waits for nothing more, 0 if not, -1 on error. */
static int deliver_one(PyObject *node, Py_ssize_t index, PyObject *record, Py_ssize_t number, PyObject *g, int in_place) {
    if (!PyList_Check(record) || number < 0 || FIRST_GRADIENT + number >= PyList_GET_SIZE(record)) {
        PyErr_SetString(PyExc_IndexError, "an edge goes to an output that its node does not have");
        return -1;
    }
    if (g != Py_None) {
        PyObject *spec = PyTuple_GetItem(PyList_GET_ITEM(record, OUTPUT_SPECS), number);
        PyObject *fit = spec ? fitting(node, index, spec, g) : NULL;
        if (!fit || arrive(record, number, spec, fit, in_place)) return -1;
    }
    long left = PyLong_AsLong(PyList_GET_ITEM(record, WAITS)) - 1;
    PyObject *waits = PyLong_FromLong(left);
    if (!waits || PyList_SetItem(record, WAITS, waits)) return -1;
    return left == 0;
}

/* deliver(node, results, records, in_place): as autograd.engine.deliver says it. */
static PyObject *py_deliver(PyObject *self, PyObject *const *args, Py_ssize_t n) {
    if (n != 4 || !add_arrays || !PyObject_TypeCheck(args[0], node_type) || !PyDict_Check(args[2])) {
        PyErr_SetString(PyExc_TypeError, "deliver(node, results, records, in_place)");
        return NULL;
    }
    /* a sink's edges stand on its class: ask as Python does */
    PyObject *held = PyObject_GetAttr(args[0], edges_name), *edges = held ? PySequence_Tuple(held) : NULL;
    Py_XDECREF(held);
    PyObject *results = edges ? PySequence_Tuple(args[1]) : NULL;
    PyObject *ready = results ? PyList_New(0) : NULL;
    int in_place = args[3] == Py_True;
    for (Py_ssize_t i = 0; ready && i < PyTuple_GET_SIZE(edges) && i < PyTuple_GET_SIZE(results); i++) {
        PyObject *edge = PyTuple_GET_ITEM(edges, i);
        if (edge == Py_None) continue;
        PyObject *target = PyTuple_GetItem(edge, 0), *number = PyTuple_GetItem(edge, 1);
        PyObject *record = target && number ? PyDict_GetItemWithError(args[2], target) : NULL;
        if (!record && !PyErr_Occurred()) continue; /* not on a path to what was asked for */
        Py_XINCREF(record);
        int last = record ? deliver_one(args[0], i, record, PyLong_AsSsize_t(number), PyTuple_GET_ITEM(results, i), in_place) : -1;
        Py_XDECREF(record);
        if (last < 0 || (last && PyList_Append(ready, target))) Py_CLEAR(ready);
    }
    Py_XDECREF(edges);
    Py_XDECREF(results);
    return ready;
}

static PyMethodDef methods[] = {
    {"setup_delivery", (PyCFunction)(void (*)(void))py_setup_delivery, METH_FASTCALL,
     "setup_delivery(validate, total, add, large)"},
    {"deliver", (PyCFunction)(void (*)(void))py_deliver, METH_FASTCALL,
     "deliver(node, results, records, in_place) -> nodes that are ready"},
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
