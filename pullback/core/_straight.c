/* Loops of element-wise operators on few elements, straight from a call: no ufunc looks at the arguments.
 *
 * `bind(dense, parts, variants)` gives a function of an operator's arguments, arrays and Python's numbers, whose result is a tensor; or None where
 * the call is none that it computes: arrays that are not row-major, of one shape and of a dtype of the loops, many elements, numbers that the dtype
 * does not hold. `dense` is the address of the function of `_elements` that runs a loop; a variant is (what each argument is, loops): "x" for an array,
 * "n" for a number, else the value that the argument must have; a loop is (address, types, arrays and numbers), as `_elements.loops()` gives it. With
 * `parts`, the numbers of complex arrays are taken apart. What the loops compute is said in `_elements.c`; they are the same as in a ufunc.
 */
#include "native_moves.h"
#include <float.h>
#include <math.h>

enum { ARGUMENTS = 8, VARIANTS = 8, LOOPS = 2, FEWEST_LARGE = 1 << 17 };

typedef void (*Dense)(const void *, char *const *, i64);

typedef struct {
    const void *loop;
    char types[ARGUMENTS + 2];
    int operands;
} Known;

typedef struct {
    PyObject *what[ARGUMENTS]; /* NULL where there is an array or a number */
    char role[ARGUMENTS];      /* x, n, or w for a value */
    Known loops[LOOPS];
    int count;
} Variant;

typedef struct {
    Dense dense;
    int arguments, variants, parts;
    Variant variant[VARIANTS];
} Straight;

static char letter_of(int k) { return k == F32 || k == C64 ? 'f' : k == F64 || k == C128 ? 'd' : k == BOOL ? '?' : 0; }

/* Whether the values of an operator's choices are those of a variant. */
static int is_meant(const Variant *v, PyObject *const *args, int n) {
    for (int i = 0; i < n; i++) {
        if (v->role[i] == 'n' ? args[i] == Py_None : v->role[i] == 'x' ? !Py_IS_TYPE(args[i], array_type) : v->what[i] != args[i]) {
            if (v->role[i] != 'w' || !PyUnicode_CheckExact(v->what[i]) || !PyUnicode_CheckExact(args[i]) || PyUnicode_Compare(v->what[i], args[i])) return 0;
        }
    }
    return 1;
}

static int same_shape(const Array *a, const Array *b) {
    return a->nd == b->nd && (!a->nd || !memcmp(a->shape, b->shape, sizeof(*a->shape) * (size_t)a->nd));
}

typedef union {
    double wide;
    float narrow;
} Number;

/* A number in the precision of a loop. */
static int read_number(PyObject *value, char type, Number *into) {
    double v;
    if (PyBool_Check(value))
        v = value == Py_True;
    else if (!real_of(value, &v) || (PyLong_CheckExact(value) && fabs(v) > 1ll << 53))
        return 0;
    if (type == 'f') {
        if (isfinite(v) && fabs(v) > FLT_MAX) return 0;
        into->narrow = (float)v;
    } else
        into->wide = v;
    return 1;
}

static PyObject *compute(const Straight *s, const Variant *v, PyObject *const *args) {
    const Array *first = NULL;
    const Known *loop = NULL;
    char *at[ARGUMENTS + 1];
    Number numbers[ARGUMENTS];
    int operand = 0;
    for (int i = 0; i < s->arguments; i++) {
        if (v->role[i] != 'x') continue;
        const Array *a = (const Array *)args[i];
        const int k = kind(a);
        NONE_UNLESS(k >= 0 && a->flags & ALIGNED && is_row_major(a) && (k < KINDS || s->parts));
        if (!first) {
            first = a;
            for (int j = 0; j < v->count; j++)
                if (v->loops[j].types[0] == letter_of(k)) loop = &v->loops[j];
            NONE_UNLESS(loop);
        } else
            NONE_UNLESS(loop->types[operand] == letter_of(k) && same_shape(first, a) && (k < KINDS || kind(first) == k));
        at[operand++] = a->data;
    }
    NONE_UNLESS(first);
    for (int i = 0; i < s->arguments; i++) {
        if (v->role[i] != 'n') continue;
        NONE_UNLESS(read_number(args[i], loop->types[operand], &numbers[i]));
        at[operand++] = (char *)&numbers[i];
    }
    const int own = kind(first), n_parts = own >= KINDS ? 2 : 1;
    const i64 n = (i64)count_of(first) * n_parts;
    const char type = loop->types[operand];
    NONE_UNLESS(operand == loop->operands && n < FEWEST_LARGE && (type == letter_of(own) || (type == '?' && own < KINDS)));
    Array *r = new_array(first->nd, first->shape, type == '?' ? BOOL : own);
    if (!r) return NULL;
    at[operand] = r->data;
    s->dense(loop->loop, at, n);
    return tensor_of(r);
}

static PyObject *run(PyObject *capsule, PyObject *const *args, Py_ssize_t count) {
    const Straight *s = PyCapsule_GetPointer(capsule, NULL);
    if (!s) return NULL;
    NONE_UNLESS(count == s->arguments);
    for (int j = 0; j < s->variants; j++)
        if (is_meant(&s->variant[j], args, s->arguments)) return compute(s, &s->variant[j], args);
    Py_RETURN_NONE;
}

static PyMethodDef function = {"straight", (PyCFunction)(void (*)(void))run, METH_FASTCALL, NULL};

static int read_variant(PyObject *given, int arguments, Variant *v) {
    PyObject *roles, *loops;
    if (!PyArg_ParseTuple(given, "O!O!", &PyTuple_Type, &roles, &PyTuple_Type, &loops)) return 0;
    if (PyTuple_GET_SIZE(roles) != arguments || PyTuple_GET_SIZE(loops) > LOOPS) return 0;
    for (int i = 0; i < arguments; i++) {
        PyObject *role = PyTuple_GET_ITEM(roles, i), *value;
        const char *letter;
        if (!PyArg_ParseTuple(role, "sO", &letter, &value)) return 0;
        v->role[i] = letter[0];
        v->what[i] = Py_NewRef(value);
    }
    for (v->count = 0; v->count < PyTuple_GET_SIZE(loops); v->count++) {
        unsigned long long address;
        const char *types;
        Known *k = &v->loops[v->count];
        if (!PyArg_ParseTuple(PyTuple_GET_ITEM(loops, v->count), "Ksi", &address, &types, &k->operands)) return 0;
        if (k->operands > ARGUMENTS || strlen(types) != (size_t)k->operands + 1) return 0;
        k->loop = (const void *)(uintptr_t)address;
        strcpy(k->types, types);
    }
    return 1;
}

/* bind(dense, parts, variants, arguments) */
static PyObject *bind(PyObject *self, PyObject *args) {
    unsigned long long dense;
    int parts, arguments;
    PyObject *variants;
    if (!PyArg_ParseTuple(args, "KpO!i", &dense, &parts, &PyTuple_Type, &variants, &arguments)) return NULL;
    if (arguments > ARGUMENTS || PyTuple_GET_SIZE(variants) > VARIANTS)
        return PyErr_Format(PyExc_ValueError, "bind: at most %d arguments and %d variants", ARGUMENTS, VARIANTS);
    Straight *s = calloc(1, sizeof *s); /* functions of operators stay as long as the process */
    if (!s) return PyErr_NoMemory();
    *(void **)&s->dense = (void *)(uintptr_t)dense;
    s->parts = parts, s->arguments = arguments, s->variants = (int)PyTuple_GET_SIZE(variants);
    for (int j = 0; j < s->variants; j++)
        if (!read_variant(PyTuple_GET_ITEM(variants, j), arguments, &s->variant[j]))
            return PyErr_Occurred() ? NULL : PyErr_Format(PyExc_ValueError, "bind: variant %d does not fit", j);
    PyObject *capsule = PyCapsule_New(s, NULL, NULL), *result = capsule ? PyCFunction_New(&function, capsule) : NULL;
    Py_XDECREF(capsule);
    return result;
}

static PyMethodDef methods[] = {
    {"use_arrays", use_arrays, METH_VARARGS, "use_arrays(ndarray, [(number, dtype), ...], make_tensor)"},
    {"bind", bind, METH_VARARGS, "bind(dense, parts, variants, arguments) -> function"},
    {NULL, NULL, 0, NULL},
};

MODULE(_straight)
