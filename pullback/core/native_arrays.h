/* Arrays of NumPy in C, without its headers: the fields that every version since 1.7 has, and the two functions that are called.
 *
 * `use_arrays(ndarray, {dtype number: dtype}, make_tensor)` is called once; `array_of(tensor)` is the array of a tensor where it is a
 * row-major one of a real dtype that is known, else NULL without an error; `strided_of` takes any order of memory, and complex ones;
 * `new_array` makes a row-major one; `tensor_of` a tensor around it, and takes the reference; `written` gives a tensor that was written.
 * Then what operators ask of their canonical
 * arguments, and of elements.
 */
#define PY_SSIZE_T_CLEAN
#include <Python.h>

typedef struct {
    PyObject_HEAD
    PyObject *scalar_type;
    char kind, type, byteorder, flags;
    int number;
} Descriptor;

typedef struct {
    PyObject_HEAD
    char *data;
    int nd;
    Py_ssize_t *shape, *strides;
    PyObject *base;
    Descriptor *dtype;
    int flags;
} Array;

enum { F32, F64, I64, I32, I16, I8, U8, BOOL, KINDS, C64 = KINDS, C128, ALL_KINDS }; /* the order in which setup is told their numbers */
enum { ROW_MAJOR = 1, ALIGNED = 0x100, MOST_DIMS = 64, MOST_NUMBERS = 32, MOST_ELEMENTS = 1 << 15 };
typedef long long i64;
/* Before a loop over many elements: it is compiled for AVX2 too, and the machine's own is called. */
#if defined(__x86_64__) && defined(__gnu_linux__) && defined(__GNUC__) && !defined(__clang__)
#define CLONED __attribute__((target_clones("avx2", "default")))
#define CLONED_WIDE __attribute__((target_clones("avx512f", "avx2", "default"))) /* where twice the width counts */
#else
#define CLONED
#define CLONED_WIDE
#endif
#define NEVER(v) 0
#define REAL_NAN(v) ((v) != (v))

static PyTypeObject *array_type;
static PyObject *make_tensor, *array_name, *counter_name, *memory_name, *dtype_of[ALL_KINDS];
static int number_of[ALL_KINDS], kind_of[MOST_NUMBERS];
static const int item_sizes[ALL_KINDS] = {4, 8, 8, 4, 2, 1, 1, 1, 8, 16};
static PyObject *(*array_new)(PyTypeObject *, int, const Py_ssize_t *, int, const Py_ssize_t *, void *, int, int, PyObject *);

static int load_array_functions(void) {
    PyObject *home = PyImport_ImportModule("numpy._core._multiarray_umath");
    if (!home) {
        PyErr_Clear();
        home = PyImport_ImportModule("numpy.core._multiarray_umath");
    }
    PyObject *capsule = home ? PyObject_GetAttrString(home, "_ARRAY_API") : NULL;
    void **table = capsule ? PyCapsule_GetPointer(capsule, NULL) : NULL;
    if (table) *(void **)&array_new = table[93]; /* PyArray_New */
    Py_XDECREF(capsule);
    Py_XDECREF(home);
    return table ? 0 : -1;
}

/* use_arrays(ndarray, [(number, dtype), ...] in the order of the kinds, make_tensor) */
static PyObject *use_arrays(PyObject *self, PyObject *args) {
    PyObject *known;
    if (!PyArg_ParseTuple(args, "O!O!O", &PyType_Type, &array_type, &PyList_Type, &known, &make_tensor) || load_array_functions()) return NULL;
    array_name = PyUnicode_InternFromString("_array");
    counter_name = PyUnicode_InternFromString("_counter");
    memory_name = PyUnicode_InternFromString("_memory");
    if (!array_name || !counter_name || !memory_name) return NULL;
    for (int i = 0; i < MOST_NUMBERS; i++) kind_of[i] = -1;
    if (PyList_GET_SIZE(known) != ALL_KINDS) return PyErr_Format(PyExc_ValueError, "use_arrays: expected %d dtypes", ALL_KINDS);
    for (int k = 0; k < ALL_KINDS; k++) {
        if (!PyArg_ParseTuple(PyList_GET_ITEM(known, k), "iO", &number_of[k], &dtype_of[k])) return NULL;
        if (number_of[k] < 0 || number_of[k] >= MOST_NUMBERS) return PyErr_Format(PyExc_ValueError, "use_arrays: dtype number %d", number_of[k]);
        kind_of[number_of[k]] = k;
        Py_INCREF(dtype_of[k]);
    }
    Py_INCREF(array_type);
    Py_INCREF(make_tensor);
    Py_RETURN_NONE;
}

static inline int kind(const Array *a) {
    int number = a->dtype->number;
    return number >= 0 && number < MOST_NUMBERS && a->dtype->byteorder != '>' ? kind_of[number] : -1;
}

/* The array of a tensor in any order of memory, complex ones too. The tensor holds the array while it is used. */
static inline Array *strided_of(PyObject *tensor) {
    PyObject *found = PyObject_GetAttr(tensor, array_name);
    if (!found) {
        PyErr_Clear();
        return NULL;
    }
    Array *a = (Array *)found;
    int fits = Py_IS_TYPE(found, array_type) && a->flags & ALIGNED && kind(a) >= 0;
    Py_DECREF(found);
    return fits ? a : NULL;
}

static int is_row_major(const Array *a) { return (a->flags & ROW_MAJOR) != 0; }

static inline Array *array_of(PyObject *tensor) {
    Array *a = strided_of(tensor);
    return a && is_row_major(a) && kind(a) < KINDS ? a : NULL;
}

static inline int size_of(const Array *a) {
    int k = kind(a);
    return k < 0 ? 0 : item_sizes[k];
}

static inline Py_ssize_t count_of(const Array *a) {
    Py_ssize_t n = 1;
    for (int d = 0; d < a->nd; d++) n *= a->shape[d];
    return n;
}

static inline Array *new_array(int nd, const Py_ssize_t *shape, int k) {
    return (Array *)array_new(array_type, nd, shape, number_of[k], NULL, NULL, 0, 0, NULL);
}

static inline PyObject *tensor_of(Array *a) {
    if (!a) return NULL;
    PyObject *arguments[2] = {(PyObject *)a, dtype_of[kind(a)]};
    PyObject *result = PyObject_Vectorcall(make_tensor, arguments, 2, NULL);
    Py_DECREF(a);
    return result;
}

/* ---- results that are the first argument */
static inline int is_writable(const Array *a) { return (a->flags & 0x400) != 0; }

/* A tensor after it was written: a new reference, its version one higher. */
static inline PyObject *written(PyObject *target) {
    PyObject *counter = PyObject_GetAttr(target, counter_name);
    PyObject *version = counter && PyList_Check(counter) && PyList_GET_SIZE(counter) ? PyList_GET_ITEM(counter, 0) : NULL;
    PyObject *next = version ? PyLong_FromLong(PyLong_AsLong(version) + 1) : NULL;
    int failed = !next || PyList_SetItem(counter, 0, next);
    Py_XDECREF(counter);
    return failed ? NULL : Py_NewRef(target);
}

/* Whether a tensor's memory may be written while the others are read: nobody else has it, or none of them. */
static inline int is_apart(PyObject *target, PyObject *const *others, int n) {
    PyObject *ours = PyObject_GetAttr(target, memory_name);
    int apart = ours != NULL;
    for (int i = 0; apart && ours != Py_None && i < n; i++) {
        PyObject *theirs = PyObject_GetAttr(others[i], memory_name);
        apart = theirs && theirs != ours;
        Py_XDECREF(theirs);
    }
    for (int i = 0; apart && i < n; i++) apart = others[i] != target;
    Py_XDECREF(ours);
    if (PyErr_Occurred()) PyErr_Clear();
    return apart;
}

/* ---- large work: without the GIL, by the threads of native_pool.h */
enum { LARGE = 1 << 17 }; /* elements, as in core.arrays */
typedef void (*Body)(long first, long last, void *const *arguments);
typedef void (*Parallel)(Body, long, long, long, void *const *, long);
static Parallel parallel;
static PyObject *threads_for_large;

/* use_threads(address of parallel or None, function of nothing that says how many threads large work may use) */
static __attribute__((unused)) PyObject *use_threads(PyObject *self, PyObject *args) {
    PyObject *address;
    if (!PyArg_ParseTuple(args, "OO", &address, &threads_for_large)) return NULL;
    if (address != Py_None) *(void **)&parallel = PyLong_AsVoidPtr(address);
    Py_INCREF(threads_for_large);
    if (PyErr_Occurred()) return NULL;
    Py_RETURN_NONE;
}

static inline long threads_now(void) {
    PyObject *found = threads_for_large ? PyObject_CallNoArgs(threads_for_large) : NULL;
    long n = found ? PyLong_AsLong(found) : 1;
    Py_XDECREF(found);
    if (PyErr_Occurred()) PyErr_Clear();
    return n;
}

/* body(first, last, arguments) over pieces of 0 .. n, whose results stand apart; small work is one piece. The arrays are held meanwhile. */
static __attribute__((unused)) void over_parts(Body body, i64 n, i64 elements, void *const *arguments, Array *a, Array *b, Array *c) {
    if (elements < LARGE || n < 1) {
        body(0, (long)n, arguments);
        return;
    }
    long threads = threads_now();
    i64 grain = LARGE / 4 * n / elements;
    Py_XINCREF(a);
    Py_XINCREF(b);
    Py_XINCREF(c);
    PyThreadState *state = PyEval_SaveThread();
    if (parallel && threads > 1)
        parallel(body, 0, (long)n, (long)(grain > 0 ? grain : 1), arguments, threads);
    else
        body(0, (long)n, arguments);
    PyEval_RestoreThread(state);
    Py_XDECREF(a);
    Py_XDECREF(b);
    Py_XDECREF(c);
}

/* ---- arguments */
static inline PyObject *argument(PyObject *args, int i) { return PyTuple_GET_ITEM(args, i); }

static inline int has_elements(const Array *a) { return count_of(a) > 0; }

/* Few elements, and some. */
static inline int is_small(const Array *a) {
    Py_ssize_t n = count_of(a);
    return n > 0 && n <= MOST_ELEMENTS;
}

/* A dimension of an array, or -1. */
static inline int dim_of(PyObject *value, const Array *a) {
    if (!PyLong_CheckExact(value)) return -1;
    long d = PyLong_AsLong(value);
    int rank = a->nd ? a->nd : 1;
    if (d == -1 && PyErr_Occurred()) PyErr_Clear();
    if (d < -rank || d >= rank) return -1;
    return (int)(d < 0 ? d + rank : d);
}

/* A number of Python; 0, without an error, where it is none or a double cannot hold it. */
static inline int real_of(PyObject *value, double *into) {
    if (!PyLong_CheckExact(value) && !PyFloat_CheckExact(value)) return 0;
    *into = PyFloat_AsDouble(value);
    if (*into == -1 && PyErr_Occurred()) {
        PyErr_Clear();
        return 0;
    }
    return 1;
}

/* A module of functions by the operator that each computes: `methods` above it, which `core.small` reads. */
#define MODULE(name)                                                                                                        \
    static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, #name, "See core.small.", -1, methods, NULL, NULL, NULL, NULL}; \
    PyMODINIT_FUNC PyInit_##name(void) { return PyModule_Create(&module); }
