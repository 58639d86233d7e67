/* New tensors from sizes and numbers in C, for plain calls: zeros, ones, full, ranges, matrices of ones on a diagonal, indices of triangles.
 *
 * Functions are named by the public function that they stand for and take its arguments as users spell them (native_fronts.h). They give
 * small row-major tensors of the dtypes in native_arrays.h, or None: the operators behind those functions then do what they say.
 */
#include "native_fronts.h"
#include <math.h>

enum { MOST_MADE = 1 << 28 };

/* ---- one number everywhere */
static const double least[] = {0, 0, -9007199254740992.0, -2147483648.0, -32768, -128, 0};
static const double most[] = {0, 0, 9007199254740992.0, 2147483647.0, 32767, 127, 255};

static inline int is_whole(int k) { return k >= I64 && k <= U8; }

static void put_whole(char *into, int k, i64 v) {
    switch (item_sizes[k]) {
        case 8: *(i64 *)into = v; break;
        case 4: *(int *)into = (int)v; break;
        case 2: *(short *)into = (short)v; break;
        default: *into = (char)v;
    }
}

/* A number as an element of a kind; 0 where that would round it to whole numbers or wrap it. */
static int element_of(PyObject *value, int k, char *into) {
    double real;
    if (k == BOOL && PyBool_Check(value)) {
        *into = value == Py_True;
        return 1;
    }
    if (k >= BOOL || !real_of(value, &real)) return 0;
    if (k == F32)
        *(float *)into = (float)real;
    else if (k == F64)
        *(double *)into = real;
    else if (PyLong_CheckExact(value) && real >= least[k] && real <= most[k])
        put_whole(into, k, (i64)real);
    else
        return 0;
    return k != F32 || isinf(real) || !isinf(*(float *)into);
}

static PyObject *filled(int nd, const Py_ssize_t *shape, int k, const char *element) { /* aligned as the largest element */
    Py_ssize_t n = product_of(shape, nd), size = item_sizes[k];
    NONE_UNLESS(n <= MOST_ELEMENTS);
    Array *r = new_array(nd, shape, k);
    if (!r) return NULL;
    int zero = 1;
    for (int i = 0; i < size; i++) zero &= !element[i];
    if (zero)
        memset(r->data, 0, (size_t)(n * size));
    else if (size == 1)
        memset(r->data, *element, (size_t)n);
    else if (size == 4) {
        int v = *(const int *)element, *y = (int *)r->data;
        for (Py_ssize_t i = 0; i < n; i++) y[i] = v;
    } else if (size == 8) {
        i64 v = *(const i64 *)element, *y = (i64 *)r->data;
        for (Py_ssize_t i = 0; i < n; i++) y[i] = v;
    }
    else
        for (Py_ssize_t i = 0; i < n; i++) memcpy(r->data + size * i, element, (size_t)size);
    return tensor_of(r);
}

static void one_of(int k, char *into) {
    memset(into, 0, 16);
    if (k == F32 || k == C64)
        *(float *)into = 1;
    else if (k == F64 || k == C128)
        *(double *)into = 1;
    else
        *into = 1; /* the low byte comes first, of whole numbers and of truth */
}

/* size..., or of a tensor's dtype: self, size... */
static PyObject *constant(GIVEN, int is_one, int of_tensor) {
    Options o;
    Py_ssize_t shape[16];
    _Alignas(16) char element[16] = {0};
    NONE_UNLESS(is_call(given, count, of_tensor, &o) && !o.generator);
    Array *x = of_tensor ? plain_array(argument(given[0], 0)) : NULL;
    int nd = sizes_of(given[0], of_tensor, o.size, shape), k = o.kind >= 0 ? o.kind : x ? kind(x) : default_kind();
    NONE_UNLESS(nd >= 0 && k >= 0 && (x || !of_tensor));
    if (is_one) one_of(k, element);
    return filled(nd, shape, k, element);
}

static PyObject *py_zeros(GIVEN) { return constant(self, given, count, 0, 0); }
static PyObject *py_ones(GIVEN) { return constant(self, given, count, 1, 0); }
static PyObject *py_new_zeros(GIVEN) { return constant(self, given, count, 0, 1); }
static PyObject *py_new_ones(GIVEN) { return constant(self, given, count, 1, 1); }

/* (size, value), (self, size, value) */
static PyObject *full(GIVEN, int of_tensor) {
    Options o;
    Py_ssize_t shape[16];
    _Alignas(16) char element[16] = {0};
    NONE_UNLESS(is_call(given, count, 2 + of_tensor, &o) && !o.generator && !o.size && PyTuple_GET_SIZE(given[0]) == 2 + of_tensor);
    PyObject *value = argument(given[0], 1 + of_tensor), *size = argument(given[0], of_tensor), *alone;
    Array *x = of_tensor ? plain_array(argument(given[0], 0)) : NULL;
    NONE_UNLESS((x || !of_tensor) && !PyLong_Check(size));
    int k = o.kind >= 0 ? o.kind : x ? kind(x) : PyBool_Check(value) ? BOOL : PyLong_CheckExact(value) ? I64 : default_kind();
    NONE_UNLESS(k >= 0 && k < KINDS && element_of(value, k, element) && (alone = PyTuple_Pack(1, size)));
    int nd = sizes_of(alone, 0, NULL, shape);
    Py_DECREF(alone);
    NONE_UNLESS(nd >= 0);
    return filled(nd, shape, k, element);
}

static PyObject *py_full(GIVEN) { return full(self, given, count, 0); }
static PyObject *py_new_full(GIVEN) { return full(self, given, count, 1); }

/* ---- numbers of nested lists */
/* The sizes of lists inside one another by the first of each; -1 where one has nothing in it, or there are too many. */
static int nested_sizes(PyObject *data, Py_ssize_t *shape) {
    int nd = 0;
    for (; PyList_CheckExact(data) || PyTuple_CheckExact(data); data = PySequence_Fast_GET_ITEM(data, 0)) {
        if (nd == 8 || !(shape[nd++] = PySequence_Fast_GET_SIZE(data))) return -1;
    }
    return nd;
}

/* Every number in the order of its place, as an element of a kind where `into` is there; 0 where sizes differ or a number does not fit.
 * `seen` has a bit for each class of number. */
static int nested_numbers(PyObject *data, const Py_ssize_t *shape, int nd, int k, char **into, int *seen) {
    if (!nd) {
        *seen |= PyFloat_CheckExact(data) ? 1 : PyLong_CheckExact(data) ? 2 : PyBool_Check(data) ? 4 : 8;
        if (!into) return 1;
        int fits = element_of(data, k, *into);
        *into += item_sizes[k];
        return fits;
    }
    if (!(PyList_CheckExact(data) || PyTuple_CheckExact(data)) || PySequence_Fast_GET_SIZE(data) != *shape) return 0;
    for (Py_ssize_t i = 0; i < *shape; i++)
        if (!nested_numbers(PySequence_Fast_GET_ITEM(data, i), shape + 1, nd - 1, k, into, seen)) return 0;
    return 1;
}

static PyObject *py_tensor(GIVEN) { /* data: numbers of one class, or whole ones and others */
    Options o;
    Py_ssize_t shape[8];
    int seen = 0;
    NONE_UNLESS(is_call(given, count, 1, &o) && PyTuple_GET_SIZE(given[0]) == 1 && PyDict_GET_SIZE(given[1]) == (o.kind >= 0)); /* dtype alone */
    PyObject *data = argument(given[0], 0);
    const int nd = nested_sizes(data, shape);
    NONE_UNLESS(nd > 0 && product_of(shape, nd) <= MOST_ELEMENTS && nested_numbers(data, shape, nd, 0, NULL, &seen));
    const int k = o.kind >= 0 ? o.kind : seen == 4 ? BOOL : seen == 2 ? I64 : default_kind();
    NONE_UNLESS((seen < 4 || (seen == 4 && k == BOOL)) && k >= 0 && k < KINDS && (k != BOOL || seen == 4));
    Array *r = new_array(nd, shape, k);
    char *into = r ? r->data : NULL;
    if (!r || nested_numbers(data, shape, nd, k, &into, &seen)) return tensor_of(r);
    Py_DECREF(r);
    Py_RETURN_NONE;
}

/* ---- ranges */
typedef struct {
    Array *r;
    double start, step;
} Range;

CLONED static void range_part(long first, long last, void *const *arguments) {
    const Range *g = arguments[0];
    const double start = g->start, step = g->step;
    char *y = g->r->data;
    if (kind(g->r) == F32)
        for (long i = first; i < last; i++) ((float *)y)[i] = (float)((double)i * step + start);
    else if (kind(g->r) == F64)
        for (long i = first; i < last; i++) ((double *)y)[i] = (double)i * step + start;
    else
        for (long i = first; i < last; i++) ((i64 *)y)[i] = (i64)i * (i64)step + (i64)start;
}

static PyObject *py_arange(GIVEN) {
    Options o;
    double number[3] = {0, 0, 1};
    NONE_UNLESS(is_call(given, count, 1, &o) && !o.generator && !o.size && PyTuple_GET_SIZE(given[0]) <= 3);
    int n = (int)PyTuple_GET_SIZE(given[0]), whole = 1;
    for (int i = 0; i < n; i++) {
        NONE_UNLESS(real_of(argument(given[0], i), &number[n == 1 ? 1 : i]) && fabs(number[n == 1 ? 1 : i]) < 1e15);
        whole &= PyLong_CheckExact(argument(given[0], i));
    }
    double start = number[0], step = number[2];
    int k = o.kind >= 0 ? o.kind : whole ? I64 : default_kind();
    NONE_UNLESS(step != 0 && (step > 0 ? number[1] >= start : number[1] <= start) && (k == F32 || k == F64 || (k == I64 && whole)));
    double length = ceil((number[1] - start) / step);
    NONE_UNLESS(length >= 0 && length <= MOST_MADE);
    Py_ssize_t many = (Py_ssize_t)length;
    Array *r = new_array(1, &many, k);
    if (!r) return NULL;
    Range job = {r, start, step};
    void *const arguments[] = {&job};
    over_parts(range_part, many, many, arguments, r, NULL, NULL);
    return tensor_of(r);
}

/* From both ends to the middle, in the precision of the result. */
typedef struct {
    Array *r;
    double a, b, base;
    int is_power;
} Spaced;

#define STEPS(type, power)                                                                            \
    {                                                                                                 \
        const type start = (type)s->a, end = (type)s->b, step = (end - start) / (type)(n > 1 ? n - 1 : 1); \
        type *y = (type *)s->r->data, radix = (type)s->base;                                          \
        long half = n == 1 ? 1 : n / 2 < last ? n / 2 : last;                                         \
        for (long i = first; i < half; i++) y[i] = start + step * (type)(int)i;                       \
        for (long i = first > half ? first : half; i < last; i++) y[i] = end - step * (type)(int)(n - 1 - i); \
        for (long i = first; s->is_power && i < last; i++) y[i] = power(radix, y[i]);                 \
    }

CLONED static void spaced_part(long first, long last, void *const *arguments) {
    const Spaced *s = arguments[0];
    long n = (long)s->r->shape[0];
    if (kind(s->r) == F32)
        STEPS(float, powf)
    else
        STEPS(double, pow)
}

static PyObject *spaced(GIVEN, int is_power) {
    Options o;
    double a, b, base = 10;
    Py_ssize_t n;
    NONE_UNLESS(is_call(given, count, 3, &o) && !o.generator && !o.size && PyTuple_GET_SIZE(given[0]) <= 3 + is_power);
    int k = o.kind >= 0 ? o.kind : default_kind();
    NONE_UNLESS((k == F32 || k == F64) && real_of(argument(given[0], 0), &a) && real_of(argument(given[0], 1), &b));
    NONE_UNLESS(integer_of(argument(given[0], 2), &n) && n >= 0 && n <= (is_power ? MOST_ELEMENTS : MOST_MADE));
    NONE_UNLESS(PyTuple_GET_SIZE(given[0]) == 3 || real_of(argument(given[0], 3), &base));
    Array *r = new_array(1, &n, k);
    if (!r) return NULL;
    Spaced job = {r, a, b, base, is_power};
    void *const arguments[] = {&job};
    over_parts(spaced_part, n, n, arguments, r, NULL, NULL);
    return tensor_of(r);
}

static PyObject *py_linspace(GIVEN) { return spaced(self, given, count, 0); }
static PyObject *py_logspace(GIVEN) { return spaced(self, given, count, 1); }

/* ---- matrices */
static PyObject *py_eye(GIVEN) {
    Options o;
    Py_ssize_t shape[2];
    NONE_UNLESS(is_call(given, count, 1, &o) && !o.generator && !o.size && PyTuple_GET_SIZE(given[0]) <= 2);
    NONE_UNLESS(integer_of(argument(given[0], 0), shape) && shape[0] >= 0);
    shape[1] = shape[0];
    if (PyTuple_GET_SIZE(given[0]) == 2) NONE_UNLESS(integer_of(argument(given[0], 1), shape + 1) && shape[1] >= 0);
    int k = o.kind >= 0 ? o.kind : default_kind();
    NONE_UNLESS(k >= 0 && (!shape[1] || shape[0] <= MOST_ELEMENTS / shape[1]));
    Array *r = new_array(2, shape, k);
    if (!r) return NULL;
    char one[16];
    one_of(k, one);
    memset(r->data, 0, (size_t)(shape[0] * shape[1] * item_sizes[k]));
    for (Py_ssize_t i = 0; i < shape[0] && i < shape[1]; i++) memcpy(r->data + (i * shape[1] + i) * item_sizes[k], one, (size_t)item_sizes[k]);
    return tensor_of(r);
}

/* (row, column) of every place on one side of a diagonal, row by row */
static PyObject *triangle_indices(GIVEN, int lower) {
    Options o;
    Py_ssize_t size[3] = {0, 0, 0}, all = 0;
    NONE_UNLESS(is_call(given, count, 2, &o) && !o.generator && !o.size && PyTuple_GET_SIZE(given[0]) <= 3 && (o.kind < 0 || o.kind == I64));
    for (int i = 0; i < PyTuple_GET_SIZE(given[0]); i++) NONE_UNLESS(integer_of(argument(given[0], i), size + i));
    Py_ssize_t rows = size[0], columns = size[1], offset = size[2];
    NONE_UNLESS(rows >= 0 && columns >= 0 && (!columns || rows <= (1 << 20) / columns));
#define CUT(i) (i + offset + lower < 0 ? 0 : i + offset + lower > columns ? columns : i + offset + lower)
    for (Py_ssize_t i = 0; i < rows; i++) all += lower ? CUT(i) : columns - CUT(i);
    Py_ssize_t shape[2] = {2, all};
    Array *r = new_array(2, shape, I64);
    if (!r) return NULL;
    i64 *row = (i64 *)r->data, *column = row + all;
    for (Py_ssize_t i = 0; i < rows; i++) {
        Py_ssize_t cut = CUT(i), end = lower ? cut : columns;
        for (Py_ssize_t j = lower ? 0 : cut; j < end; j++) {
            *row++ = i;
            *column++ = j;
        }
    }
#undef CUT
    return tensor_of(r);
}

static PyObject *py_tril_indices(GIVEN) { return triangle_indices(self, given, count, 1); }
static PyObject *py_triu_indices(GIVEN) { return triangle_indices(self, given, count, 0); }

/* By the public function that each stands for. */
static PyMethodDef methods[] = {
    {"use_arrays", use_arrays, METH_VARARGS, "use_arrays(ndarray, [(number, dtype), ...], make_tensor)"},
    {"use_threads", use_threads, METH_VARARGS, "use_threads(address, function)"},
    {"use_process", use_process, METH_VARARGS, "use_process(process, cpu, Tensor, ambient, untracked)"},
    {"torch.zeros", FRONT(py_zeros), NULL},
    {"torch.ones", FRONT(py_ones), NULL},
    {"Tensor.new_zeros", FRONT(py_new_zeros), NULL},
    {"Tensor.new_ones", FRONT(py_new_ones), NULL},
    {"torch.full", FRONT(py_full), NULL},
    {"Tensor.new_full", FRONT(py_new_full), NULL},
    {"torch.tensor", FRONT(py_tensor), NULL},
    {"torch.arange", FRONT(py_arange), NULL},
    {"torch.linspace", FRONT(py_linspace), NULL},
    {"torch.logspace", FRONT(py_logspace), NULL},
    {"torch.eye", FRONT(py_eye), NULL},
    {"torch.tril_indices", FRONT(py_tril_indices), NULL},
    {"torch.triu_indices", FRONT(py_triu_indices), NULL},
    {NULL, NULL, 0, NULL},
};

MODULE(_makers)
