/* Operators that take elements of several arrays one by one, and the like, in C, for calls so small that what surrounds a loop counts.
 *
 * In: the canonical arguments of an operator, as a tuple. Out: its result as a row-major tensor (a tuple of two), nothing recorded; or None
 * where the call is not of that kind (another dtype, shapes that broadcast, memory that is not row-major, many elements, none, arguments
 * that are refused): the caller then runs the operator's rules, which know the rest. The loops are in native_pairs.h.
 */
#include "native_fronts.h"
#include <math.h>

enum { LANES = 16, COLUMNS = 256, MOST_PAIRED = 1 << 16 };

#define T float
#define NAME(f) f##_f32
#define TRUNC __builtin_truncf
#define FLOOR floorf
#define FMOD fmodf
#define COPYSIGN copysignf
#define SIN sinf
#define COS cosf
#define FREXP frexpf
#define RINT rintf
#include "native_pairs.h"
#define T double
#define NAME(f) f##_f64
#define TRUNC __builtin_trunc
#define FLOOR floor
#define FMOD fmod
#define COPYSIGN copysign
#define SIN sin
#define COS cos
#define FREXP frexp
#define RINT rint
#include "native_pairs.h"

#define BOTH(a, function, ...)       \
    if (kind(a) == F32)              \
        function##_f32(__VA_ARGS__); \
    else                             \
        function##_f64(__VA_ARGS__)
#define P(x) ((void *)(x))

/* Row-major, not many elements; of four and five dimensions in no order of channels too. */
static Array *rows_of(PyObject *tensor) {
    Array *a = array_of(tensor);
    if (!a || count_of(a) == 0 || count_of(a) > MOST_PAIRED) return NULL;
    return (a->nd == 4 || a->nd == 5) && (a->shape[1] == 1 || a->shape[a->nd - 1] == 1) ? NULL : a;
}

static Array *floats_of(PyObject *tensor) {
    Array *a = rows_of(tensor);
    return a && kind(a) <= F64 ? a : NULL;
}

static int alike(const Array *a, const Array *b) {
    return a && b && kind(a) == kind(b) && a->nd == b->nd && (!a->nd || !memcmp(a->shape, b->shape, sizeof(*a->shape) * (size_t)a->nd));
}

/* ---- element by element */
static PyObject *py_divide(PyObject *self, PyObject *args) { /* self, other, rounding_mode */
    Array *a = floats_of(argument(args, 0)), *b = floats_of(argument(args, 1));
    PyObject *mode = argument(args, 2);
    NONE_UNLESS(alike(a, b) && PyUnicode_Check(mode));
    int down = !PyUnicode_CompareWithASCIIString(mode, "floor");
    NONE_UNLESS(down || !PyUnicode_CompareWithASCIIString(mode, "trunc"));
    NONE_UNLESS(!down || count_of(a) <= 512); /* a vector loop is quicker for more */
    Array *r = new_array(a->nd, a->shape, kind(a));
    if (!r) return NULL;
    BOTH(a, divided, P(a->data), P(b->data), P(r->data), count_of(a), down);
    return tensor_of(r);
}

static PyObject *py_clamp(PyObject *self, PyObject *args) { /* self, min, max */
    Array *a = floats_of(argument(args, 0)), *low = NULL, *high = NULL;
    NONE_UNLESS(a && (argument(args, 1) != Py_None || argument(args, 2) != Py_None));
    if (argument(args, 1) != Py_None) NONE_UNLESS(alike(a, low = floats_of(argument(args, 1))));
    if (argument(args, 2) != Py_None) NONE_UNLESS(alike(a, high = floats_of(argument(args, 2))));
    Array *r = new_array(a->nd, a->shape, kind(a));
    if (!r) return NULL;
    BOTH(a, clamped, P(a->data), low ? P(low->data) : NULL, high ? P(high->data) : NULL, P(r->data), count_of(a));
    return tensor_of(r);
}

static PyObject *py_polar(PyObject *self, PyObject *args) {
    Array *a = floats_of(argument(args, 0)), *b = floats_of(argument(args, 1));
    NONE_UNLESS(alike(a, b) && count_of(a) <= 4096);
    Array *r = new_array(a->nd, a->shape, kind(a) == F32 ? C64 : C128);
    if (!r) return NULL;
    BOTH(a, from_angles, P(a->data), P(b->data), P(r->data), count_of(a));
    return tensor_of(r);
}

/* What is chosen: elements one after the other (`step` 1), or one for all: of no dimensions, or a number beside floats. */
typedef struct {
    const char *data;
    i64 step;
    double whole;
    float single;
} Choice;

static int choice_of(PyObject *value, const Array *condition, int k, Choice *c) {
    Array *a = rows_of(value);
    if (a) {
        const int one = !a->nd && condition->nd;
        if (kind(a) != k || (!one && (a->nd != condition->nd || memcmp(a->shape, condition->shape, sizeof(*a->shape) * (size_t)a->nd)))) return 0;
        c->data = a->data, c->step = !one;
        return 1;
    }
    if (k > F64 || !real_of(value, &c->whole)) return 0;
    c->single = (float)c->whole;
    c->data = k == F32 ? (char *)&c->single : (char *)&c->whole, c->step = 0;
    return k != F32 || !isinf(c->single) || isinf(c->whole);
}

/* By bits and not by branches, which nobody could foresee. */
#define CHOOSE(name, type)                                                                                                                  \
    CLONED static void name(const char *take, const void *x, i64 of_x, const void *y, i64 of_y, void *result, i64 n) {                      \
        const type *v = x, *w = y, first = *v, second = *w;                                                                                 \
        type *to = result;                                                                                                                  \
        if (of_x && of_y)                                                                                                                   \
            for (i64 k = 0; k < n; k++) to[k] = w[k] ^ ((v[k] ^ w[k]) & -(type)(take[k] != 0));                                             \
        else if (of_x)                                                                                                                      \
            for (i64 k = 0; k < n; k++) to[k] = second ^ ((v[k] ^ second) & -(type)(take[k] != 0));                                         \
        else                                                                                                                                \
            for (i64 k = 0; k < n; k++) to[k] = w[k] ^ ((first ^ w[k]) & -(type)(take[k] != 0));                                            \
    }
CHOOSE(chosen_32, int)
CHOOSE(chosen_64, i64)
#undef CHOOSE

static PyObject *py_where(PyObject *self, PyObject *args) { /* condition, self, other: one of them may be one element for all */
    Array *c = rows_of(argument(args, 0)), *a = rows_of(argument(args, 1)), *b = rows_of(argument(args, 2)), *first = a && a->nd ? a : b ? b : a;
    Choice x, y;
    NONE_UNLESS(c && kind(c) == BOOL && first);
    NONE_UNLESS(choice_of(argument(args, 1), c, kind(first), &x) && choice_of(argument(args, 2), c, kind(first), &y) && (x.step || y.step));
    Array *r = new_array(c->nd, c->shape, kind(first));
    if (!r) return NULL;
    i64 n = count_of(c);
    const char *take = c->data;
    if (size_of(r) == 4)
        chosen_32(take, x.data, x.step, y.data, y.step, r->data, n);
    else if (size_of(r) == 8)
        chosen_64(take, x.data, x.step, y.data, y.step, r->data, n);
    else
        for (i64 k = 0, size = size_of(r); k < n; k++)
            memcpy(r->data + k * size, take[k] ? x.data + k * x.step * size : y.data + k * y.step * size, (size_t)size);
    return tensor_of(r);
}

static PyObject *py_prelu(PyObject *self, PyObject *args) { /* self, weight */
    Array *a = floats_of(argument(args, 0)), *w = floats_of(argument(args, 1));
    NONE_UNLESS(a && w && kind(a) == kind(w) && w->nd == 1 && a->nd > 1);
    i64 channels = w->shape[0];
    NONE_UNLESS(channels == 1 || channels == a->shape[1]);
    Array *r = new_array(a->nd, a->shape, kind(a));
    if (!r) return NULL;
    i64 outer = channels == 1 ? 1 : a->shape[0];
    BOTH(a, sloped, P(a->data), P(w->data), P(r->data), outer, channels, count_of(a) / (outer * channels));
    return tensor_of(r);
}

static PyObject *py_frexp(PyObject *self, PyObject *args) {
    Array *a = floats_of(argument(args, 0));
    NONE_UNLESS(a);
    Array *parts = new_array(a->nd, a->shape, kind(a)), *powers = parts ? new_array(a->nd, a->shape, I32) : NULL;
    if (!powers) {
        Py_XDECREF(parts);
        return NULL;
    }
    BOTH(a, split, P(a->data), P(parts->data), P(powers->data), count_of(a));
    PyObject *x = tensor_of(parts), *y = x ? tensor_of(powers) : NULL, *result = y ? PyTuple_Pack(2, x, y) : NULL;
    if (!x) Py_DECREF(powers);
    Py_XDECREF(x);
    Py_XDECREF(y);
    return result;
}

static PyObject *py_round(GIVEN) { /* input, decimals: few elements */
    static const char *const names[] = {"input", "decimals", "out"};
    PyObject *v[3];
    Py_ssize_t decimals;
    NONE_UNLESS(read_call(given, count, names, 1, 3, v) && v[1] && is_absent(v[2]) && integer_of(v[1], &decimals) && decimals && labs(decimals) < 30);
    Array *a = bare_rows(v[0]) ? floats_of(v[0]) : NULL;
    NONE_UNLESS(a && count_of(a) <= 4096);
    Array *r = new_array(a->nd, a->shape, kind(a));
    if (r) {
        BOTH(a, rounded, P(a->data), P(r->data), count_of(a), pow(10, (double)labs(decimals)), decimals > 0);
    }
    return tensor_of(r);
}

/* ---- rows and blocks */
static PyObject *py_diff(PyObject *self, PyObject *args) { /* self, n, dim, prepend, append */
    Array *a = floats_of(argument(args, 0));
    Py_ssize_t n;
    NONE_UNLESS(a && a->nd && integer_of(argument(args, 1), &n) && n == 1 && argument(args, 3) == Py_None && argument(args, 4) == Py_None);
    int d = dim_of(argument(args, 2), a);
    NONE_UNLESS(d >= 0 && a->shape[d] > 1);
    Py_ssize_t shape[MOST_DIMS], outer = 1;
    memcpy(shape, a->shape, sizeof(*shape) * (size_t)a->nd);
    shape[d]--;
    for (int e = 0; e < d; e++) outer *= a->shape[e];
    Array *r = new_array(a->nd, shape, kind(a));
    if (!r) return NULL;
    BOTH(a, differences, P(a->data), P(r->data), outer, a->shape[d], count_of(a) / (outer * a->shape[d]));
    return tensor_of(r);
}

/* input, spacing, dim, edge_order: a number between samples, one estimate for each dimension */
static PyObject *py_gradient(GIVEN) {
    static const char *const names[] = {"input", "spacing", "dim", "edge_order"};
    PyObject *v[4];
    Py_ssize_t order = 1;
    double spacing = 1;
    NONE_UNLESS(read_call(given, count, names, 1, 4, v) && (is_absent(v[1]) || real_of(v[1], &spacing)));
    NONE_UNLESS(!v[3] || (integer_of(v[3], &order) && order == 1));
    Array *a = bare_rows(v[0]);
    NONE_UNLESS(a && kind(a) <= F64 && a->nd && has_elements(a) && count_of(a) <= MOST_PAIRED && (is_absent(v[2]) || PyLong_CheckExact(v[2])));
    const int first = is_absent(v[2]) ? 0 : dim_of(v[2], a), last = is_absent(v[2]) ? a->nd - 1 : first;
    NONE_UNLESS(first >= 0);
    for (int d = first; d <= last; d++) NONE_UNLESS(a->shape[d] > 1);
    PyObject *result = PyTuple_New(last - first + 1);
    for (int d = first; result && d <= last; d++) {
        Array *r = new_array(a->nd, a->shape, kind(a));
        i64 inner = 1, n = a->shape[d];
        for (int e = d + 1; e < a->nd; e++) inner *= a->shape[e];
        if (r) {
            BOTH(a, slopes, P(a->data), P(r->data), count_of(a) / (n * inner), n, inner, spacing);
        }
        PyObject *t = tensor_of(r);
        if (t)
            PyTuple_SET_ITEM(result, d - first, t);
        else
            Py_CLEAR(result);
    }
    return result;
}

static PyObject *py_cumulative_trapezoid(PyObject *self, PyObject *args) { /* y, dx, dim */
    Array *a = floats_of(argument(args, 0));
    double spacing;
    NONE_UNLESS(a && a->nd && real_of(argument(args, 1), &spacing));
    int d = dim_of(argument(args, 2), a);
    NONE_UNLESS(d >= 0 && a->shape[d] > 1);
    Py_ssize_t shape[MOST_DIMS], inner = 1;
    memcpy(shape, a->shape, sizeof(*shape) * (size_t)a->nd);
    shape[d]--;
    for (int e = d + 1; e < a->nd; e++) inner *= a->shape[e];
    double *room = PyMem_Malloc(sizeof(double) * (size_t)inner);
    Array *r = room ? new_array(a->nd, shape, kind(a)) : (Array *)PyErr_NoMemory();
    if (r) {
        BOTH(a, integrals, P(a->data), P(r->data), count_of(a) / (a->shape[d] * inner), a->shape[d], inner, spacing, room);
    }
    PyMem_Free(room);
    return tensor_of(r);
}

/* Row-major floats, as many as there are; of four and five dimensions in no order of channels too. */
static Array *many_floats_of(PyObject *tensor) {
    Array *a = array_of(tensor);
    if (!a || kind(a) > F64 || count_of(a) == 0) return NULL;
    return (a->nd == 4 || a->nd == 5) && (a->shape[1] == 1 || a->shape[a->nd - 1] == 1) ? NULL : a;
}

typedef struct {
    const Array *a, *b;
    Array *r;
    i64 outer, n, inner;
    double limit;
} Rows;

static void shorten_rows(long first, long last, void *const *arguments) {
    const Rows *j = arguments[0];
    BOTH(j->a, shortened, P(j->a->data), P(j->r->data), j->outer, j->n, j->inner, j->limit, first, last);
}

static void cosine_rows(long first, long last, void *const *arguments) {
    const Rows *j = arguments[0];
    const i64 at = first * j->n * size_of(j->a);
    BOTH(j->a, cosines, P(j->a->data + at), P(j->b->data + at), last - first, j->n, j->limit, P(j->r->data + first * size_of(j->a)));
}

static PyObject *py_renorm(PyObject *self, PyObject *args) { /* self, p, dim, maxnorm */
    Array *a = many_floats_of(argument(args, 0));
    double p, most;
    NONE_UNLESS(a && a->nd > 1 && real_of(argument(args, 1), &p) && p == 2 && real_of(argument(args, 3), &most) && most >= 0);
    int d = dim_of(argument(args, 2), a);
    NONE_UNLESS(d >= 0);
    Py_ssize_t outer = 1;
    for (int e = 0; e < d; e++) outer *= a->shape[e];
    Array *r = new_array(a->nd, a->shape, kind(a));
    if (!r) return NULL;
    Rows job = {a, NULL, r, outer, a->shape[d], count_of(a) / (outer * a->shape[d]), most};
    void *const arguments[] = {&job};
    over_parts(shorten_rows, job.n, count_of(a), arguments, a, r, NULL);
    return tensor_of(r);
}

static PyObject *py_kron(PyObject *self, PyObject *args) { /* matrices, in any order of memory */
    Array *a = strided_of(argument(args, 0)), *b = strided_of(argument(args, 1));
    NONE_UNLESS(a && b && kind(a) <= F64 && kind(a) == kind(b) && a->nd == 2 && b->nd == 2 && count_of(a) > 0 && count_of(b) > 0);
    NONE_UNLESS(count_of(a) <= MOST_PAIRED && count_of(b) <= MOST_PAIRED / count_of(a));
    Py_ssize_t size = size_of(a), shape[2] = {a->shape[0] * b->shape[0], a->shape[1] * b->shape[1]}, steps[4];
    for (int d = 0; d < 2; d++) {
        NONE_UNLESS(a->strides[d] % size == 0 && b->strides[d] % size == 0);
        steps[d] = a->strides[d] / size;
        steps[2 + d] = b->strides[d] / size;
    }
    Array *r = new_array(2, shape, kind(a));
    if (!r) return NULL;
    BOTH(a, kronecker, P(a->data), a->shape, P(b->data), b->shape, steps, P(r->data));
    return tensor_of(r);
}

static PyObject *py_cosine_similarity(PyObject *self, PyObject *args) { /* x1, x2, dim, eps */
    Array *a = many_floats_of(argument(args, 0)), *b = many_floats_of(argument(args, 1));
    double eps;
    NONE_UNLESS(alike(a, b) && a->nd == 2 && dim_of(argument(args, 2), a) == 1 && real_of(argument(args, 3), &eps) && eps >= 0 && eps < 1);
    Array *r = new_array(1, a->shape, kind(a));
    if (!r) return NULL;
    Rows job = {a, b, r, 1, a->shape[1], 1, eps};
    void *const arguments[] = {&job};
    over_parts(cosine_rows, a->shape[0], count_of(a), arguments, a, b, r);
    return tensor_of(r);
}

static void root_mean_square_rows(long first, long last, void *const *arguments) {
    const Rows *j = arguments[0];
    const i64 at = first * j->n * size_of(j->a);
    BOTH(j->a, root_mean_squares, P(j->a->data + at), j->b ? P(j->b->data) : NULL, P(j->r->data + at), last - first, j->n, j->limit);
}

static PyObject *py_rms_norm(PyObject *self, PyObject *args) { /* input, normalized_shape, weight, eps */
    Array *a = many_floats_of(argument(args, 0)), *w = NULL;
    Py_ssize_t n;
    double eps;
    NONE_UNLESS(a && a->nd && integers_of(argument(args, 1), &n, 1) == 1 && n == a->shape[a->nd - 1]);
    NONE_UNLESS(is_small(a) || !is_deterministic(process));
    if (argument(args, 2) != Py_None) {
        w = many_floats_of(argument(args, 2));
        NONE_UNLESS(w && kind(w) == kind(a) && w->nd == 1 && w->shape[0] == n);
    }
    if (argument(args, 3) == Py_None)
        eps = kind(a) == F32 ? 1.1920928955078125e-07 : 2.220446049250313e-16;
    else
        NONE_UNLESS(real_of(argument(args, 3), &eps));
    Array *r = new_array(a->nd, a->shape, kind(a));
    if (!r) return NULL;
    Rows job = {a, w, r, 1, n, 1, eps};
    void *const arguments[] = {&job};
    over_parts(root_mean_square_rows, count_of(a) / n, count_of(a), arguments, a, w, r);
    return tensor_of(r);
}

/* ---- places */
static PyObject *py_isin(PyObject *self, PyObject *args) { /* elements, test_elements, assume_unique, invert */
    Array *a = rows_of(argument(args, 0)), *b = rows_of(argument(args, 1));
    NONE_UNLESS(a && b && kind(a) == I64 && kind(b) == I64 && count_of(a) <= (1 << 15) / count_of(b));
    Array *r = new_array(a->nd, a->shape, BOOL);
    if (!r) return NULL;
    i64 n = count_of(a), m = count_of(b);
    char invert = argument(args, 3) == Py_True;
    for (i64 k = 0; k < n; k++) {
        char found = 0;
        for (i64 j = 0; j < m; j++) found |= ((const i64 *)a->data)[k] == ((const i64 *)b->data)[j];
        r->data[k] = found ^ invert;
    }
    return tensor_of(r);
}

static PyObject *py_nonzero(PyObject *self, PyObject *args) { /* coordinates of truths, column by column */
    Array *a = rows_of(argument(args, 0));
    NONE_UNLESS(a && kind(a) == BOOL && a->nd > 0 && a->nd <= 8);
    i64 n = count_of(a), found = 0, place[8] = {0};
    for (i64 k = 0; k < n; k++) found += a->data[k] != 0;
    NONE_UNLESS(found > 1);
    Py_ssize_t shape[2] = {(Py_ssize_t)found, a->nd}, strides[2] = {8, 8 * (Py_ssize_t)found};
    Array *r = (Array *)array_new(array_type, 2, shape, number_of[I64], strides, NULL, 0, 0, NULL);
    if (!r) return NULL;
    i64 *y = (i64 *)r->data, at = 0;
    for (i64 k = 0; k < n; k++) {
        if (a->data[k]) {
            for (int d = 0; d < a->nd; d++) y[d * found + at] = place[d];
            at++;
        }
        for (int d = a->nd - 1; d >= 0 && ++place[d] == a->shape[d]; d--) place[d] = 0;
    }
    return tensor_of(r);
}

/* ---- whether elements are the same */
#define EQUAL(T)                                                                   \
    {                                                                              \
        const T *x = P(a->data), *y = P(b->data);                                  \
        for (i64 first = 0; first < n && !differ; first += PIECE) {                \
            const i64 last = n - first < PIECE ? n : first + PIECE;                \
            for (i64 i = first; i < last; i++) differ |= x[i] != y[i];             \
        }                                                                          \
    }

enum { PIECE = 4096 };

CLONED static int elements_differ(const Array *a, const Array *b, i64 n) {
    const int k = kind(a), pairs = k == C64 || k == C128 ? 2 : 1;
    int differ = 0;
    n *= pairs;
    if (k == F32 || k == C64)
        EQUAL(float)
    else if (k == F64 || k == C128)
        EQUAL(double)
    else
        differ = a->data != b->data && memcmp(a->data, b->data, (size_t)(n * item_sizes[k])) != 0;
    return differ;
}

static PyObject *py_equal(GIVEN) {
    static const char *const names[] = {"input", "other"};
    PyObject *values[2];
    NONE_UNLESS(read_call(given, count, names, 2, 2, values) && values[0] && values[1] && is_plain(values[0]) && is_plain(values[1]));
    Array *a = strided_of(values[0]), *b = strided_of(values[1]);
    NONE_UNLESS(a && b && kind(a) == kind(b) && kind(a) != BOOL && is_row_major(a) && is_row_major(b));
    if (a->nd != b->nd || (a->nd && memcmp(a->shape, b->shape, sizeof(*a->shape) * (size_t)a->nd))) Py_RETURN_FALSE;
    return PyBool_FromLong(!elements_differ(a, b, count_of(a)));
}

/* By the operator that each computes. */
static PyMethodDef methods[] = {
    {"use_arrays", use_arrays, METH_VARARGS, "use_arrays(ndarray, [(number, dtype), ...], make_tensor)"},
    {"use_threads", use_threads, METH_VARARGS, "use_threads(address, function)"},
    {"use_process", use_process, METH_VARARGS, "use_process(process, cpu, Tensor, ambient, untracked)"},
    {"torch.gradient", FRONT(py_gradient), NULL},
    {"torch.equal", FRONT(py_equal), NULL},
    {"Tensor.equal", FRONT(py_equal), NULL},
    {"torch.round", FRONT(py_round), NULL},
    {"Tensor.round", FRONT(py_round), NULL},
    {"cumulative_trapezoid.dx", py_cumulative_trapezoid, METH_O, NULL},
    {"div.Tensor_mode", py_divide, METH_O, NULL},
    {"clamp.Tensor", py_clamp, METH_O, NULL},
    {"polar.default", py_polar, METH_O, NULL},
    {"where.self", py_where, METH_O, NULL},
    {"prelu.default", py_prelu, METH_O, NULL},
    {"frexp.Tensor", py_frexp, METH_O, NULL},
    {"diff.default", py_diff, METH_O, NULL},
    {"renorm.default", py_renorm, METH_O, NULL},
    {"kron.default", py_kron, METH_O, NULL},
    {"_kron_matrices.default", py_kron, METH_O, NULL},
    {"cosine_similarity.default", py_cosine_similarity, METH_O, NULL},
    {"rms_norm.default", py_rms_norm, METH_O, NULL},
    {"isin.Tensor_Tensor", py_isin, METH_O, NULL},
    {"nonzero.default", py_nonzero, METH_O, NULL},
    {NULL, NULL, 0, NULL},
};

MODULE(_pairs)
