/* Calls of kernels on a device without Python in between: from the arguments of an operator to a launch and a tensor.
 *
 * `Call` is all that calls of one signature share: where its tensors stand among the arguments, what is allocated, and either one
 * kernel that takes a structure (addresses, numbers of the layout, Python's numbers) or a plan (see `runtime.launcher`).
 * `plain(op, args, mode)` finds the call of a signature and makes it; `remember` puts one there. A signature is the operator and, of each
 * tensor (an argument, or one of a list), dtype, shape and strides; of everything else, class and value, unless the kernel is told the
 * value with each launch. The place of a tensor in a list is `argument + NESTED * (item + 1)`.
 * `fits` and `addresses` are what compiled graphs ask of their arguments.
 *
 * What always holds: a signature is found only by arguments that are plain tensors of one device and plain values, while no operator is
 * overridden. Nothing is kept of the arguments but what a signature says.
 */
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdint.h>
#include <structmember.h>

enum { ARRAY, DTYPE, DEVICE, KEYS, AUTOGRAD, OFFSET, SLOTS };
enum { NESTED = 256, MOST_PARTS = 96, MOST_TENSORS = 24, MOST_SLOTS = 256, MOST_BYTES = 2048 };
static const char *slot_names[SLOTS] = {"_array", "_own_dtype", "_own_device", "_keys", "_autograd", "_offset"};

typedef int (*launch_t)(void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void *, void **, void **);
typedef long (*run_t)(const int64_t *, long, char **, void *const *, const void *, void *, void *, long, void *, long, const void *);

static PyTypeObject *tensor_type, *parameter_type;
static PyObject *wants_gradient, *get_stream, *allocate, *address_of, *overridden, *assemble, *make_view, *named, *tables, *zero;
static PyObject *data_name, *ptr_name, *shape_name, *strides_name, *transpose_name;
static Py_ssize_t at[SLOTS];
static long device_keys;
static launch_t launch;

static inline PyObject *get(PyObject *object, int slot) { return *(PyObject **)((char *)object + at[slot]); }

static inline int is_tensor(PyObject *a) { return Py_IS_TYPE(a, tensor_type) || Py_IS_TYPE(a, parameter_type); }

/* setup(Tensor, Parameter, requires_grad, stream, allocate, address or None, overridden, assemble, view, keys, cuLaunchKernel, classes whose
 * objects are parts of signatures) */
static PyObject *py_setup(PyObject *self, PyObject *const *args, Py_ssize_t n) {
    if (n != 12 || !PyType_Check(args[0]) || !PyType_Check(args[1]) || !PySet_Check(args[6]) || !PyTuple_Check(args[11])) {
        PyErr_SetString(PyExc_TypeError, "setup(Tensor, Parameter, requires_grad, stream, allocate, address, overridden, assemble, view, keys, launch, named)");
        return NULL;
    }
    PyObject **kept[] = {(PyObject **)&tensor_type, (PyObject **)&parameter_type, &wants_gradient, &get_stream, &allocate,
                         &address_of, &overridden, &assemble, &make_view};
    for (int i = 0; i < 9; i++) Py_XSETREF(*kept[i], Py_NewRef(args[i]));
    Py_XSETREF(named, Py_NewRef(args[11]));
    device_keys = PyLong_AsLong(args[9]);
    launch = (launch_t)(uintptr_t)PyLong_AsUnsignedLongLong(args[10]);
    for (int i = 0; i < SLOTS; i++) {
        PyObject *slot = PyObject_GetAttrString(args[0], slot_names[i]);
        if (!slot) return NULL;
        if (!Py_IS_TYPE(slot, &PyMemberDescr_Type)) {
            Py_DECREF(slot);
            return PyErr_Format(PyExc_TypeError, "Tensor.%s is not a slot", slot_names[i]);
        }
        at[i] = ((PyMemberDescrObject *)slot)->d_member->offset;
        Py_DECREF(slot);
    }
    Py_XSETREF(tables, PyDict_New());
    if (!tables || PyErr_Occurred()) return NULL;
    Py_RETURN_NONE;
}

/* ---- addresses */
static int address(PyObject *array, uint64_t *result) {
    PyObject *number;
    if (address_of == Py_None) {
        PyObject *data = PyObject_GetAttr(array, data_name);
        number = data ? PyObject_GetAttr(data, ptr_name) : NULL;
        Py_XDECREF(data);
    } else {
        number = PyObject_CallOneArg(address_of, array);
    }
    if (!number) return -1;
    *result = PyLong_AsUnsignedLongLong(number);
    Py_DECREF(number);
    return PyErr_Occurred() ? -1 : 0;
}

static int stream_in_use(void **result) {
    PyObject *number = PyObject_CallNoArgs(get_stream);
    if (!number) return -1;
    *result = (void *)(uintptr_t)PyLong_AsUnsignedLongLong(number);
    Py_DECREF(number);
    return PyErr_Occurred() ? -1 : 0;
}

/* ---- a call of one signature */
typedef struct {
    PyObject_HEAD
    PyObject *owner;    /* what keeps the kernels loaded */
    PyObject *inputs;   /* places of tensors among the arguments */
    PyObject *floats;   /* and of Python's numbers that the kernel is told; each (place, None or a function that rounds it) */
    PyObject *outputs;  /* (shape, array dtype, order or None, dtype) of each */
    PyObject *many;     /* None, or which outputs (None among them) are the tuple that comes back */
    PyObject *pack;     /* None, or what makes something else of that tuple */
    PyObject *recorder; /* None, or what is called with result and arguments where a gradient is wanted */
    PyObject *fixed;    /* None, or canonical arguments with an index of the given one in place of tensors, and a mark which are such */
    PyObject *device, *keys;
    PyObject *memory;   /* of a plan: allocates so many bytes; gives what has `ptr` */
    PyObject *handle;   /* of a plan with products: gives cuBLAS's handle; else None */
    PyObject *precise;  /* of such a plan: whether TF32 may be used, asked with each call */
    PyObject *extra;    /* of a plan with convolutions: gives, for a stream, what has the address of what they need; else None */
    PyObject *check;    /* called where the flag of the device is set */
    PyObject *window;   /* None, or of a view: (operator, shape, array dtype, strides and distance in bytes, distance in elements) */
    PyObject *layout;   /* bytes: the structure, addresses and numbers still to be filled in */
    void *function;
    unsigned grid, block;
    run_t run;
    const int64_t *plan;
    long entries, arena;
    const uint64_t *offsets;
    long offset_count;
    void *const *functions;
    const void *api;
    volatile int *flag;
    uint64_t flag_on_device;
    int first; /* whether the first of the results is all that comes back */
} Call;

#define OBJECTS(CALL) \
    PyObject **objects[] = {&(CALL)->owner, &(CALL)->inputs, &(CALL)->floats, &(CALL)->outputs, &(CALL)->many, &(CALL)->pack, &(CALL)->recorder, \
        &(CALL)->fixed, &(CALL)->device, &(CALL)->keys, &(CALL)->memory, &(CALL)->handle, &(CALL)->precise, &(CALL)->extra, \
        &(CALL)->check, &(CALL)->window, &(CALL)->layout}

static void call_dealloc(Call *call) {
    OBJECTS(call);
    for (size_t i = 0; i < sizeof objects / sizeof *objects; i++) Py_XDECREF(*objects[i]);
    Py_TYPE(call)->tp_free((PyObject *)call);
}

static PyTypeObject CallType = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "pullback.core._device.Call",
    .tp_basicsize = sizeof(Call),
    .tp_dealloc = (destructor)call_dealloc,
    .tp_flags = Py_TPFLAGS_DEFAULT,
};

static void *pointer_of(PyObject *number) { return (void *)(uintptr_t)PyLong_AsUnsignedLongLong(number); }

/* call(owner, inputs, floats, outputs, many, pack, recorder, fixed, device, keys, memory, handle, precise, extra, check, window, layout, numbers) */
static PyObject *py_call(PyObject *self, PyObject *const *args, Py_ssize_t n) {
    if (n != 18 || !PyTuple_Check(args[1]) || !PyTuple_Check(args[2]) || !PyTuple_Check(args[3]) || !PyTuple_Check(args[17]) ||
        PyTuple_GET_SIZE(args[17]) != 13 || PyTuple_GET_SIZE(args[1]) + PyTuple_GET_SIZE(args[3]) > MOST_TENSORS) {
        PyErr_SetString(PyExc_TypeError, "call(owner, inputs, floats, outputs, many, pack, recorder, fixed, device, keys, memory, handle, precise, extra, check, window, layout, numbers)");
        return NULL;
    }
    Call *call = PyObject_New(Call, &CallType);
    if (!call) return NULL;
    OBJECTS(call);
    for (int i = 0; i < 17; i++) *objects[i] = Py_NewRef(args[i]);
#define NUMBER(k) PyTuple_GET_ITEM(args[17], k)
    call->function = pointer_of(NUMBER(0));
    call->grid = (unsigned)PyLong_AsLong(NUMBER(1));
    call->block = (unsigned)PyLong_AsLong(NUMBER(2));
    call->run = (run_t)pointer_of(NUMBER(3));
    call->plan = pointer_of(NUMBER(4));
    call->entries = PyLong_AsLong(NUMBER(5));
    call->arena = PyLong_AsLong(NUMBER(6));
    call->offsets = pointer_of(NUMBER(7));
    call->offset_count = PyLong_AsLong(NUMBER(8));
    call->functions = pointer_of(NUMBER(9));
    call->api = pointer_of(NUMBER(10));
    call->flag = pointer_of(NUMBER(11));
    call->flag_on_device = (uint64_t)(uintptr_t)pointer_of(NUMBER(12));
    call->first = 0;
    if (PyErr_Occurred()) Py_CLEAR(call);
    return (PyObject *)call;
}

/* recalled(call, fixed, first): the same call, of arguments that become canonical another way; `first`: of its results, the first. */
static PyObject *py_recalled(PyObject *self, PyObject *const *args, Py_ssize_t n) {
    const int first = n == 3 ? PyObject_IsTrue(args[2]) : -1;
    if (first < 0 || !Py_IS_TYPE(args[0], &CallType)) {
        if (!PyErr_Occurred()) PyErr_SetString(PyExc_TypeError, "recalled(call, fixed, first)");
        return NULL;
    }
    Call *from = (Call *)args[0], *call = PyObject_New(Call, &CallType);
    if (!call) return NULL;
    memcpy((char *)call + sizeof(PyObject), (char *)from + sizeof(PyObject), sizeof(Call) - sizeof(PyObject));
    call->fixed = args[1];
    call->first = first;
    OBJECTS(call);
    for (size_t i = 0; i < sizeof objects / sizeof *objects; i++) Py_XINCREF(*objects[i]);
    return (PyObject *)call;
}

/* New arrays for the outputs; their number, or -1. */
static Py_ssize_t make_outputs(Call *call, PyObject **arrays, uint64_t *addresses) {
    const Py_ssize_t count = PyTuple_GET_SIZE(call->outputs);
    for (Py_ssize_t i = 0; i < count; i++) {
        PyObject *output = PyTuple_GET_ITEM(call->outputs, i);
        PyObject *given[2] = {PyTuple_GET_ITEM(output, 0), PyTuple_GET_ITEM(output, 1)};
        arrays[i] = PyObject_Vectorcall(allocate, given, 2, NULL);
        if (!arrays[i] || address(arrays[i], addresses + i)) {
            for (Py_ssize_t k = 0; k <= i; k++) Py_XDECREF(arrays[k]);
            return -1;
        }
    }
    return count;
}

static int launch_structure(Call *call, PyObject *args, const uint64_t *addresses, Py_ssize_t count, void *stream) {
    char bytes[MOST_BYTES] __attribute__((aligned(16)));
    const Py_ssize_t size = PyBytes_GET_SIZE(call->layout), floats = PyTuple_GET_SIZE(call->floats);
    memcpy(bytes, PyBytes_AS_STRING(call->layout), (size_t)size);
    memcpy(bytes, addresses, sizeof *addresses * (size_t)count);
    double *numbers = (double *)(bytes + size) - floats;
    for (Py_ssize_t i = 0; i < floats; i++) {
        PyObject *one = PyTuple_GET_ITEM(call->floats, i), *round = PyTuple_GET_ITEM(one, 1);
        PyObject *value = PyTuple_GET_ITEM(args, PyLong_AsSsize_t(PyTuple_GET_ITEM(one, 0)));
        PyObject *rounded = round == Py_None ? Py_NewRef(value) : PyObject_CallOneArg(round, value);
        if (!rounded) return -1;
        numbers[i] = PyFloat_AsDouble(rounded);
        Py_DECREF(rounded);
    }
    if (PyErr_Occurred()) return -1;
    void *argument = bytes;
    const int wrong = launch(call->function, call->grid, 1, 1, call->block, 1, 1, 0, stream, &argument, NULL);
    if (wrong) PyErr_Format(PyExc_RuntimeError, "CUDA error: the launch of a kernel gave %d", wrong);
    return wrong ? -1 : 0;
}

static int run_plan(Call *call, const uint64_t *addresses, Py_ssize_t count, void *stream) {
    uint64_t slots[MOST_SLOTS], start = 0;
    PyObject *memory = NULL;
    void *handle = NULL;
    long wide = 0;
    memcpy(slots, addresses, sizeof *addresses * (size_t)count);
    slots[count] = call->flag_on_device;
    if (call->arena) {
        PyObject *bytes = PyLong_FromLong(call->arena);
        memory = bytes ? PyObject_CallOneArg(call->memory, bytes) : NULL;
        Py_XDECREF(bytes);
        PyObject *first = memory ? PyObject_GetAttr(memory, ptr_name) : NULL;
        if (first) start = PyLong_AsUnsignedLongLong(first);
        Py_XDECREF(first);
        if (!memory || PyErr_Occurred()) goto failed;
    }
    for (long i = 0; i < call->offset_count; i++) slots[count + 1 + i] = start + call->offsets[i];
    if (call->handle != Py_None) {
        PyObject *number = PyObject_CallNoArgs(call->handle), *answer = number ? PyObject_CallNoArgs(call->precise) : NULL;
        if (answer) handle = pointer_of(number);
        wide = answer == Py_True;
        Py_XDECREF(number);
        Py_XDECREF(answer);
        if (!answer || PyErr_Occurred()) goto failed;
    }
    PyObject *told = NULL;
    void *place = NULL;
    if (call->extra != Py_None) {
        PyObject *number = PyLong_FromVoidPtr(stream), *pair = number ? PyObject_CallOneArg(call->extra, number) : NULL;
        Py_XDECREF(number);
        told = pair; /* (address, what lies there) */
        if (pair) place = pointer_of(PyTuple_GET_ITEM(pair, 0));
        if (!pair || PyErr_Occurred()) {
            Py_XDECREF(told);
            goto failed;
        }
    }
    const long wrong = call->run(call->plan, call->entries, (char **)slots, call->functions, call->api, stream, handle, wide, NULL, 0, place);
    Py_XDECREF(told);
    Py_XDECREF(memory); /* whatever comes next in the stream may have it */
    if (wrong) PyErr_Format(PyExc_RuntimeError, "CUDA error: step %ld of a kernel's plan gave %ld", wrong / 100000 - 1, wrong % 100000);
    return wrong ? -1 : 0;
failed:
    Py_XDECREF(memory);
    return -1;
}

/* A tensor around output `i`; takes the reference to the array. */
static PyObject *tensor_of(Call *call, Py_ssize_t i, PyObject *array) {
    PyObject *output = PyTuple_GET_ITEM(call->outputs, i), *order = PyTuple_GET_ITEM(output, 2);
    if (order != Py_None) {
        PyObject *turned = PyObject_CallMethodOneArg(array, transpose_name, order);
        Py_DECREF(array);
        array = turned;
    }
    PyObject *version = array ? PyList_New(1) : NULL;
    PyObject *result = NULL;
    if (version) {
        PyList_SET_ITEM(version, 0, Py_NewRef(zero));
        PyObject *given[9] = {(PyObject *)tensor_type, array, PyTuple_GET_ITEM(output, 3), call->device, call->keys, Py_None,
                              version, Py_None, zero};
        result = PyObject_Vectorcall(assemble, given, 9, NULL);
    }
    Py_XDECREF(version);
    Py_XDECREF(array);
    return result;
}

static PyObject *results_of(Call *call, PyObject **arrays) {
    if (call->many == Py_None) return tensor_of(call, 0, arrays[0]);
    const Py_ssize_t count = PyTuple_GET_SIZE(call->outputs), wanted = PyTuple_GET_SIZE(call->many);
    PyObject *tensors[MOST_TENSORS], *result = PyTuple_New(wanted);
    for (Py_ssize_t i = 0; i < count; i++) {
        tensors[i] = tensor_of(call, i, arrays[i]);
        if (!tensors[i]) Py_CLEAR(result);
    }
    for (Py_ssize_t i = 0; result && i < wanted; i++) {
        PyObject *which = PyTuple_GET_ITEM(call->many, i);
        PyTuple_SET_ITEM(result, i, Py_NewRef(which == Py_None ? Py_None : tensors[PyLong_AsSsize_t(which)]));
    }
    for (Py_ssize_t i = 0; i < count; i++) Py_XDECREF(tensors[i]);
    if (result && call->pack != Py_None) Py_SETREF(result, PyObject_CallOneArg(call->pack, result));
    return result;
}

/* The tensor at a place among the arguments. */
static PyObject *tensor_at(PyObject *args, PyObject *number) {
    const Py_ssize_t place = PyLong_AsSsize_t(number);
    PyObject *a = PyTuple_GET_ITEM(args, place % NESTED);
    return place < NESTED ? a : PySequence_Fast_GET_ITEM(a, place / NESTED - 1);
}

/* The arguments as a node remembers them: canonical; a new tuple, or the same. A place below 0 is of a list that becomes a tuple. */
static PyObject *canonical(Call *call, PyObject *args) {
    if (call->fixed == Py_None) return Py_NewRef(args);
    PyObject *from = PyTuple_GET_ITEM(call->fixed, 0), *places = PyTuple_GET_ITEM(call->fixed, 1);
    PyObject *result = PyTuple_New(PyTuple_GET_SIZE(from));
    for (Py_ssize_t i = 0; result && i < PyTuple_GET_SIZE(from); i++) {
        PyObject *place = PyTuple_GET_ITEM(places, i);
        const Py_ssize_t k = place == Py_None ? 0 : PyLong_AsSsize_t(place);
        PyObject *value = place == Py_None ? Py_NewRef(PyTuple_GET_ITEM(from, i))
                          : k < 0          ? PySequence_Tuple(PyTuple_GET_ITEM(args, -k - 1))
                                           : Py_NewRef(PyTuple_GET_ITEM(args, k));
        if (value) PyTuple_SET_ITEM(result, i, value);
        else Py_CLEAR(result);
    }
    return result;
}

static int record(Call *call, PyObject *result, PyObject *arguments) {
    const Py_ssize_t n = PyTuple_GET_SIZE(arguments);
    PyObject *given[MOST_PARTS];
    if (n + 1 > MOST_PARTS) {
        PyErr_Format(PyExc_RuntimeError, "an operator of %zd arguments", n);
        return -1;
    }
    given[0] = result;
    for (Py_ssize_t i = 0; i < n; i++) given[i + 1] = PyTuple_GET_ITEM(arguments, i);
    PyObject *noted = PyObject_Vectorcall(call->recorder, given, (size_t)n + 1, NULL);
    Py_XDECREF(noted);
    return noted ? 0 : -1;
}

/* A tensor on the memory of the first argument. */
static PyObject *view_call(Call *call, PyObject *args, int wanted, PyObject *mode) {
    PyObject *source = PyTuple_GET_ITEM(args, 0), *w = call->window;
    PyObject *data = PyObject_GetAttr(get(source, ARRAY), data_name);
    PyObject *memory = data ? PyNumber_Add(data, PyTuple_GET_ITEM(w, 4)) : NULL;
    Py_XDECREF(data);
    PyObject *given[4] = {PyTuple_GET_ITEM(w, 1), PyTuple_GET_ITEM(w, 2), memory, PyTuple_GET_ITEM(w, 3)};
    PyObject *array = memory ? PyObject_Vectorcall(allocate, given, 4, NULL) : NULL;
    PyObject *offset = array ? PyNumber_Add(get(source, OFFSET), PyTuple_GET_ITEM(w, 5)) : NULL;
    PyObject *arguments = offset ? canonical(call, args) : NULL, *result = NULL;
    if (arguments) {
        PyObject *told[6] = {source, array, offset, PyTuple_GET_ITEM(w, 0), arguments, mode};
        result = PyObject_Vectorcall(make_view, told, 6, NULL);
    }
    if (result) {
        PyObject **keys = (PyObject **)((char *)result + at[KEYS]);
        Py_SETREF(*keys, Py_NewRef(call->keys));
        if (wanted && call->recorder != Py_None && record(call, result, arguments)) Py_CLEAR(result);
    }
    Py_XDECREF(memory);
    Py_XDECREF(array);
    Py_XDECREF(offset);
    Py_XDECREF(arguments);
    return result;
}

/* The result of a call; NotImplemented where a plan's argument begins between vectors. */
static PyObject *make_call(Call *call, PyObject *args, int wanted, PyObject *mode) {
    if (call->window != Py_None) return view_call(call, args, wanted, mode);
    uint64_t addresses[MOST_TENSORS];
    PyObject *arrays[MOST_TENSORS];
    const Py_ssize_t inputs = PyTuple_GET_SIZE(call->inputs);
    const int planned = call->run != NULL;
    void *stream;
    if (planned && *call->flag) {
        PyObject *checked = PyObject_CallNoArgs(call->check);
        if (!checked) return NULL;
        Py_DECREF(checked);
    }
    for (Py_ssize_t i = 0; i < inputs; i++) {
        PyObject *t = tensor_at(args, PyTuple_GET_ITEM(call->inputs, i));
        if (address(get(t, ARRAY), addresses + i)) return NULL;
        if (planned && addresses[i] % 16) return Py_NewRef(Py_NotImplemented);
    }
    if (stream_in_use(&stream)) return NULL;
    const Py_ssize_t outputs = make_outputs(call, arrays, addresses + inputs);
    if (outputs < 0) return NULL;
    const int failed = planned ? run_plan(call, addresses, inputs + outputs, stream)
                               : launch_structure(call, args, addresses, inputs + outputs, stream);
    if (failed) {
        for (Py_ssize_t i = 0; i < outputs; i++) Py_DECREF(arrays[i]);
        return NULL;
    }
    PyObject *result = results_of(call, arrays);
    if (result && wanted && call->recorder != Py_None) {
        PyObject *arguments = canonical(call, args);
        if (!arguments || record(call, result, arguments)) Py_CLEAR(result);
        Py_XDECREF(arguments);
    }
    if (result && call->first) Py_SETREF(result, PySequence_GetItem(result, 0));
    return result;
}

/* ---- signatures */
typedef struct {
    PyObject *parts[MOST_PARTS];
    Py_ssize_t count;
    PyObject *device; /* of the tensors, borrowed */
    int wanted;       /* whether a gradient of one is */
} Signature;

static int add(Signature *s, PyObject *part) { /* takes the reference */
    if (!part) return -1;
    if (s->count == MOST_PARTS) {
        Py_DECREF(part);
        return 1;
    }
    s->parts[s->count++] = part;
    return 0;
}

/* 0; 1 where a tensor is not plain; -1 on errors. */
static int add_tensor(Signature *s, PyObject *t, int recording) {
    PyObject *where = get(t, DEVICE), *array = get(t, ARRAY);
    if (PyLong_AsLong(get(t, KEYS)) != device_keys || (s->device && s->device != where)) return 1;
    if (PyType_Check(allocate) && !Py_IS_TYPE(array, (PyTypeObject *)allocate)) return 1; /* a constant that is not there yet */
    s->device = where;
    if (recording && !s->wanted && get(t, AUTOGRAD) != Py_None) {
        PyObject *answer = PyObject_CallOneArg(wants_gradient, t);
        if (!answer) return -1;
        s->wanted = PyObject_IsTrue(answer);
        Py_DECREF(answer);
    }
    int wrong = add(s, PyLong_FromVoidPtr(get(t, DTYPE)));
    if (!wrong) wrong = add(s, PyObject_GetAttr(array, shape_name));
    if (!wrong) wrong = add(s, PyObject_GetAttr(array, strides_name));
    return wrong;
}

static int add_value(Signature *s, PyObject *a, int travels, int recording) {
    PyTypeObject *type = Py_TYPE(a);
    int wrong = add(s, PyLong_FromVoidPtr(type));
    if (wrong) return wrong;
    if (a == Py_None || (travels && (type == &PyFloat_Type || type == &PyLong_Type))) return 0;
    if (type == &PyFloat_Type) { /* 0.0 and -0.0 are two numbers, and NaN is one */
        double x = PyFloat_AS_DOUBLE(a);
        int64_t bits;
        memcpy(&bits, &x, sizeof bits);
        return add(s, PyLong_FromLongLong(bits));
    }
    if (type == &PyLong_Type || type == &PyBool_Type || type == &PyUnicode_Type) return add(s, Py_NewRef(a));
    if (type == &PyTuple_Type || type == &PyList_Type) {
        const Py_ssize_t n = PySequence_Fast_GET_SIZE(a);
        wrong = add(s, PyLong_FromSsize_t(n));
        for (Py_ssize_t i = 0; i < n && !wrong; i++) {
            PyObject *item = PySequence_Fast_GET_ITEM(a, i);
            wrong = is_tensor(item) ? add_tensor(s, item, recording) : add_value(s, item, 0, recording);
        }
        return wrong;
    }
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(named); i++)
        if ((PyObject *)type == PyTuple_GET_ITEM(named, i)) return add(s, Py_NewRef(a));
    return 1;
}

/* 0; 1 where the arguments have no signature; -1 on errors. `floats` and `ints`: bits of the places whose numbers travel. */
static int sign(Signature *s, PyObject *args, long floats, long ints, int recording) {
    int wrong = 0;
    s->count = 0;
    s->device = NULL;
    s->wanted = 0;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(args) && !wrong; i++) {
        PyObject *a = PyTuple_GET_ITEM(args, i);
        if (is_tensor(a)) {
            wrong = add_tensor(s, a, recording);
        } else {
            const long travelling = Py_IS_TYPE(a, &PyFloat_Type) ? floats : ints;
            wrong = add_value(s, a, i < 63 && travelling >> i & 1, recording);
        }
    }
    if (!wrong && !s->device) wrong = 1;
    if (!wrong) wrong = add(s, PyLong_FromVoidPtr(s->device));
    return wrong;
}

/* The key of a signature; its parts are given up. */
static PyObject *key_of(Signature *s, int usable) {
    PyObject *key = usable ? PyTuple_New(s->count) : NULL;
    for (Py_ssize_t i = 0; i < s->count; i++) {
        if (key) PyTuple_SET_ITEM(key, i, s->parts[i]);
        else Py_DECREF(s->parts[i]);
    }
    return key;
}

/* (calls by signature, floats that travel, ints that do) of an operator, borrowed; NULL where it has no table. */
static PyObject *table_of(PyObject *op) {
    PyObject *number = PyLong_FromVoidPtr(op);
    PyObject *table = number ? PyDict_GetItemWithError(tables, number) : NULL;
    Py_XDECREF(number);
    return table;
}

/* plain(op, args, mode): the result of a call; None where it is not plain, NotImplemented where it has not been made before. */
static PyObject *py_plain(PyObject *self, PyObject *const *args, Py_ssize_t n) {
    if (n != 3 || !PyTuple_Check(args[1]) || !tables) {
        PyErr_SetString(PyExc_TypeError, "plain(op, args, mode)");
        return NULL;
    }
    if (PySet_GET_SIZE(overridden)) Py_RETURN_NONE;
    PyObject *table = table_of(args[0]);
    if (!table) return PyErr_Occurred() ? NULL : Py_NewRef(Py_NotImplemented);
    Signature s;
    const int wrong = sign(&s, args[1], PyLong_AsLong(PyTuple_GET_ITEM(table, 1)), PyLong_AsLong(PyTuple_GET_ITEM(table, 2)),
                           args[2] != zero);
    PyObject *key = key_of(&s, !wrong);
    if (wrong > 0) Py_RETURN_NONE;
    if (!key) return NULL;
    PyObject *call = PyDict_GetItemWithError(PyTuple_GET_ITEM(table, 0), key);
    Py_DECREF(key);
    if (!call) return PyErr_Occurred() ? NULL : Py_NewRef(Py_NotImplemented);
    if (call == Py_None) Py_RETURN_NONE;
    Py_INCREF(call); /* recording may run anything */
    PyObject *result = make_call((Call *)call, args[1], s.wanted, args[2]);
    Py_DECREF(call);
    if (result == Py_NotImplemented) Py_SETREF(result, Py_NewRef(Py_None));
    return result;
}

/* found(op, args): the call of a signature, or None. */
static PyObject *py_found(PyObject *self, PyObject *const *args, Py_ssize_t n) {
    PyObject *table = n == 2 && PyTuple_Check(args[1]) && tables ? table_of(args[0]) : NULL;
    if (!table) return PyErr_Occurred() ? NULL : Py_NewRef(Py_None);
    Signature s;
    const int wrong = sign(&s, args[1], PyLong_AsLong(PyTuple_GET_ITEM(table, 1)), PyLong_AsLong(PyTuple_GET_ITEM(table, 2)), 0);
    PyObject *key = key_of(&s, !wrong);
    if (wrong > 0) Py_RETURN_NONE;
    PyObject *call = key ? PyDict_GetItemWithError(PyTuple_GET_ITEM(table, 0), key) : NULL;
    Py_XDECREF(key);
    if (!call) return PyErr_Occurred() ? NULL : Py_NewRef(Py_None);
    return Py_NewRef(call);
}

/* declare(op, floats, ints): begin the table of an operator, or empty it. */
static PyObject *py_declare(PyObject *self, PyObject *const *args, Py_ssize_t n) {
    if (n != 3 || !tables) {
        PyErr_SetString(PyExc_TypeError, "declare(op, floats, ints)");
        return NULL;
    }
    PyObject *number = PyLong_FromVoidPtr(args[0]), *calls = PyDict_New();
    PyObject *table = calls ? PyTuple_Pack(4, calls, args[1], args[2], args[0]) : NULL; /* operators are kept: their numbers are keys */
    const int failed = !number || !table || PyDict_SetItem(tables, number, table);
    Py_XDECREF(number);
    Py_XDECREF(calls);
    Py_XDECREF(table);
    if (failed) return NULL;
    Py_RETURN_NONE;
}

/* remember(op, args, call or None): what `plain` finds from now on; False where arguments have no signature. */
static PyObject *py_remember(PyObject *self, PyObject *const *args, Py_ssize_t n) {
    PyObject *table = n == 3 && PyTuple_Check(args[1]) && tables ? table_of(args[0]) : NULL;
    if (!table || (args[2] != Py_None && !Py_IS_TYPE(args[2], &CallType))) {
        if (!PyErr_Occurred()) PyErr_SetString(PyExc_TypeError, "remember(op, args, call), of an operator that was declared");
        return NULL;
    }
    Signature s;
    const int wrong = sign(&s, args[1], PyLong_AsLong(PyTuple_GET_ITEM(table, 1)), PyLong_AsLong(PyTuple_GET_ITEM(table, 2)), 0);
    PyObject *key = key_of(&s, !wrong);
    if (wrong > 0) Py_RETURN_FALSE;
    if (!key) return NULL;
    const int failed = PyDict_SetItem(PyTuple_GET_ITEM(table, 0), key, args[2]);
    Py_DECREF(key);
    if (failed) return NULL;
    Py_RETURN_TRUE;
}

/* ---- compiled graphs */
/* run(call, tensors): the result of a call that records nothing; NotImplemented where an argument begins between vectors. */
static PyObject *py_run(PyObject *self, PyObject *const *args, Py_ssize_t n) {
    if (n != 2 || !Py_IS_TYPE(args[0], &CallType) || !PyList_Check(args[1])) {
        PyErr_SetString(PyExc_TypeError, "run(call, list of tensors)");
        return NULL;
    }
    PyObject *tensors = PyList_AsTuple(args[1]);
    PyObject *result = tensors ? make_call((Call *)args[0], tensors, 0, zero) : NULL;
    Py_XDECREF(tensors);
    return result;
}

/* fits(tensors, expected, device, keys): whether all are of that device and those keys, and of (dtype, shape, strides) each. */
static PyObject *py_fits(PyObject *self, PyObject *const *args, Py_ssize_t n) {
    if (n != 4 || !PyList_Check(args[0]) || !PyList_Check(args[1]) || PyList_GET_SIZE(args[0]) != PyList_GET_SIZE(args[1]) || !tensor_type) {
        PyErr_SetString(PyExc_TypeError, "fits(tensors, expected, device, keys)");
        return NULL;
    }
    const long keys = PyLong_AsLong(args[3]);
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(args[0]); i++) {
        PyObject *t = PyList_GET_ITEM(args[0], i), *wanted = PyList_GET_ITEM(args[1], i);
        if (!PyObject_TypeCheck(t, tensor_type) || get(t, DEVICE) != args[2] || get(t, DTYPE) != PyTuple_GET_ITEM(wanted, 0) ||
            PyLong_AsLong(get(t, KEYS)) != keys)
            Py_RETURN_FALSE;
        PyObject *names[2] = {shape_name, strides_name};
        for (int k = 0; k < 2; k++) {
            PyObject *found = PyObject_GetAttr(get(t, ARRAY), names[k]);
            const int same = found ? PyObject_RichCompareBool(found, PyTuple_GET_ITEM(wanted, k + 1), Py_EQ) : -1;
            Py_XDECREF(found);
            if (same < 0) return NULL;
            if (!same) Py_RETURN_FALSE;
        }
    }
    Py_RETURN_TRUE;
}

/* addresses(tensors): where their data lies. */
static PyObject *py_addresses(PyObject *self, PyObject *tensors) {
    if (!PyList_Check(tensors) || !tensor_type) {
        PyErr_SetString(PyExc_TypeError, "addresses(list of tensors)");
        return NULL;
    }
    PyObject *result = PyList_New(PyList_GET_SIZE(tensors));
    for (Py_ssize_t i = 0; result && i < PyList_GET_SIZE(tensors); i++) {
        PyObject *data = PyObject_GetAttr(get(PyList_GET_ITEM(tensors, i), ARRAY), data_name);
        PyObject *number = data ? PyObject_GetAttr(data, ptr_name) : NULL;
        Py_XDECREF(data);
        if (number) PyList_SET_ITEM(result, i, number);
        else Py_CLEAR(result);
    }
    return result;
}

static PyMethodDef methods[] = {
    {"setup", (PyCFunction)(void (*)(void))py_setup, METH_FASTCALL,
     "setup(Tensor, Parameter, requires_grad, stream, allocate, address, overridden, assemble, view, keys, launch, named)"},
    {"call", (PyCFunction)(void (*)(void))py_call, METH_FASTCALL, "call(...) -> what calls of one signature share"},
    {"recalled", (PyCFunction)(void (*)(void))py_recalled, METH_FASTCALL, "recalled(call, fixed, first) -> call"},
    {"found", (PyCFunction)(void (*)(void))py_found, METH_FASTCALL, "found(op, args) -> call or None"},
    {"plain", (PyCFunction)(void (*)(void))py_plain, METH_FASTCALL, "plain(op, args, mode) -> result, None or NotImplemented"},
    {"declare", (PyCFunction)(void (*)(void))py_declare, METH_FASTCALL, "declare(op, floats, ints)"},
    {"remember", (PyCFunction)(void (*)(void))py_remember, METH_FASTCALL, "remember(op, args, call)"},
    {"run", (PyCFunction)(void (*)(void))py_run, METH_FASTCALL, "run(call, tensors) -> result or NotImplemented"},
    {"fits", (PyCFunction)(void (*)(void))py_fits, METH_FASTCALL, "fits(tensors, expected, device, keys) -> bool"},
    {"addresses", py_addresses, METH_O, "addresses(tensors) -> list of int"},
    {NULL, NULL, 0, NULL},
};
static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, "_device", NULL, -1, methods, NULL, NULL, NULL, NULL};

PyMODINIT_FUNC PyInit__device(void) {
    data_name = PyUnicode_InternFromString("data");
    ptr_name = PyUnicode_InternFromString("ptr");
    shape_name = PyUnicode_InternFromString("shape");
    strides_name = PyUnicode_InternFromString("strides");
    transpose_name = PyUnicode_InternFromString("transpose");
    zero = PyLong_FromLong(0);
    if (!data_name || !ptr_name || !shape_name || !strides_name || !transpose_name || !zero || PyType_Ready(&CallType)) return NULL;
    return PyModule_Create(&module);
}
