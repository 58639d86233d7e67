/* Integers between limits, and their quotients and remainders, in C.
 *
 * In: the canonical arguments of an operator, as a tuple; one of two operands may be a number. Out: its result, nothing recorded; or None where
 * the call is not of that kind (another dtype, shapes that broadcast, a number that the dtype has not, a divisor of zero, memory with gaps): the
 * caller then runs the operator's rules, which know the rest, and the words.
 */
#include "native_moves.h"
#include "native_layouts.h"

enum { FLOOR, TRUNC, REMAINDER, FMOD, MOST_DIVIDED = 1024 };

typedef struct {
    const char *x, *y; /* NULL: `number` divides, or limits */
    char *to;
    i64 number, high;
    int kind, what, has_zero;
} Job;

#define BY_WHOLE_KIND(k, call)                \
    switch (k) {                              \
    case I64: call(i64, unsigned long long)   \
    case I32: call(int, unsigned)             \
    case I16: call(short, unsigned short)     \
    case I8: call(signed char, unsigned char) \
    default: call(unsigned char, unsigned char) \
    }

/* ---- limits */
#define LIMITED(T, U)                                                       \
    {                                                                       \
        const T *x = (const T *)j->x + first, low = (T)j->number, high = (T)j->high; \
        T *to = (T *)j->to + first;                                         \
        for (i64 i = 0; i < n; i++) {                                       \
            const T v = x[i] > low ? x[i] : low;                            \
            to[i] = v < high ? v : high;                                    \
        }                                                                   \
        break;                                                              \
    }
CLONED_WIDE static void limit(const Job *j, i64 first, i64 n) { BY_WHOLE_KIND(j->kind, LIMITED) }

static void limit_part(long first, long last, void *const *arguments) { limit(arguments[0], first, last - first); }

/* ---- division: all of a pair of integers but what no processor divides, the least one by -1, which wraps */
#define DIVIDED(T, U)                                                                                  \
    {                                                                                                  \
        const T *x = (const T *)j->x + first, *y = j->y ? (const T *)j->y + first : NULL, one = (T)j->number; \
        T *to = (T *)j->to + first;                                                                    \
        for (i64 i = 0; i < n; i++) {                                                                  \
            const T v = x[i], w = y ? y[i] : one;                                                      \
            if (w == 0) {                                                                              \
                j->has_zero = 1;                                                                       \
                break;                                                                                 \
            }                                                                                          \
            const int turns = (T)-1 < 0 && w == (T)-1;                                                 \
            T q = turns ? (T)(0 - (U)v) : (T)(v / w), r = turns ? 0 : (T)(v % w);                      \
            const int over = r != 0 && (r < 0) != (w < 0);                                             \
            q = j->what == FLOOR && over ? (T)(q - 1) : q;                                             \
            r = j->what == REMAINDER && over ? (T)(r + w) : r;                                         \
            to[i] = j->what <= TRUNC ? q : r;                                                          \
        }                                                                                              \
        break;                                                                                         \
    }
static void divide_part(long first_, long last, void *const *arguments) {
    Job *j = arguments[0];
    const i64 first = first_, n = last - first_;
    BY_WHOLE_KIND(j->kind, DIVIDED)
}

/* ---- arguments */
/* An array of integers with elements. */
static Array *whole_of(PyObject *tensor) {
    Array *a = strided_of(tensor);
    return a && kind(a) >= I64 && kind(a) <= U8 && a->nd <= MOST_LAID && has_elements(a) ? a : NULL;
}

static int number_fits(PyObject *value, int k, i64 *into) {
    char bytes[8];
    int overflow = 0;
    if (!PyLong_CheckExact(value) || !element(value, k, bytes)) return 0;
    *into = PyLong_AsLongLongAndOverflow(value, &overflow);
    return !overflow;
}

/* Whether elements fill a block of memory, in which a result lies too. */
static int is_block(const Array *a) {
    Operand own;
    if (is_row_major(a) && (a->nd < 4 || has_elements(a))) {
        Py_ssize_t step = size_of(a);
        for (int d = a->nd - 1; d >= 0; step *= a->shape[d--])
            if (a->strides[d] != step) return 0;
        return 1;
    }
    return operand_of(a, size_of(a), a->nd, a->shape, &own) && fills_block(a->nd, a->shape, own.strides);
}

static int lie_alike(const Array *a, const Array *b) {
    const size_t n = sizeof(*a->shape) * (size_t)a->nd;
    return kind(a) == kind(b) && a->nd == b->nd && (!n || (!memcmp(a->shape, b->shape, n) && !memcmp(a->strides, b->strides, n)));
}

static PyObject *run(Body body, Array *a, Array *b, Job *job) {
    Array *r = array_like(a);
    if (!r) return NULL;
    void *const arguments[] = {job};
    job->x = a->data, job->y = b ? b->data : NULL, job->to = r->data, job->kind = kind(a);
    over_parts(body, count_of(a), count_of(a), arguments, a, b, r);
    if (!job->has_zero) return tensor_of(r);
    Py_DECREF(r);
    Py_RETURN_NONE;
}

static PyObject *limited(PyObject *args, PyObject *low, PyObject *high) {
    static const i64 least[KINDS] = {0, 0, INT64_MIN, INT32_MIN, INT16_MIN, INT8_MIN, 0, 0};
    static const i64 most[KINDS] = {0, 0, INT64_MAX, INT32_MAX, INT16_MAX, INT8_MAX, UINT8_MAX, 1};
    Array *a = whole_of(argument(args, 0));
    NONE_UNLESS(a && is_block(a) && !(low == Py_None && high == Py_None));
    const int k = kind(a) & 7;
    Job job = {.number = least[k], .high = most[k]};
    NONE_UNLESS((low == Py_None || number_fits(low, k, &job.number)) && (high == Py_None || number_fits(high, k, &job.high)));
    return run(limit_part, a, NULL, &job);
}

static PyObject *divided(PyObject *args, int what) {
    Array *a = whole_of(argument(args, 0)), *b = NULL;
    NONE_UNLESS(a && is_block(a));
    Job job = {.what = what};
    if (!number_fits(argument(args, 1), kind(a), &job.number)) {
        b = whole_of(argument(args, 1));
        NONE_UNLESS(b && lie_alike(a, b));
    }
    NONE_UNLESS(b || what > TRUNC || count_of(a) <= MOST_DIVIDED); /* the array library multiplies many by what stands for one divisor */
    return run(divide_part, a, b, &job);
}

static PyObject *py_clamp(PyObject *self, PyObject *args) { return limited(args, argument(args, 1), argument(args, 2)); }
static PyObject *py_clamp_min(PyObject *self, PyObject *args) { return limited(args, argument(args, 1), Py_None); }
static PyObject *py_clamp_max(PyObject *self, PyObject *args) { return limited(args, Py_None, argument(args, 1)); }
static PyObject *py_floor(PyObject *self, PyObject *args) { return divided(args, FLOOR); }
static PyObject *py_remainder(PyObject *self, PyObject *args) { return divided(args, REMAINDER); }
static PyObject *py_fmod(PyObject *self, PyObject *args) { return divided(args, FMOD); }

static PyObject *py_div_mode(PyObject *self, PyObject *args) { /* self, other, rounding_mode */
    PyObject *mode = argument(args, 2);
    NONE_UNLESS(PyUnicode_Check(mode));
    const int down = !PyUnicode_CompareWithASCIIString(mode, "floor");
    NONE_UNLESS(down || !PyUnicode_CompareWithASCIIString(mode, "trunc"));
    return divided(args, down ? FLOOR : TRUNC);
}

/* By the operator that each computes. */
static PyMethodDef methods[] = {
    {"use_arrays", use_arrays, METH_VARARGS, "use_arrays(ndarray, [(number, dtype), ...], make_tensor)"},
    {"use_threads", use_threads, METH_VARARGS, "use_threads(address, function)"},
    {"clamp.default", py_clamp, METH_O, NULL},
    {"clamp_min.default", py_clamp_min, METH_O, NULL},
    {"clamp_max.default", py_clamp_max, METH_O, NULL},
    {"floor_divide.default", py_floor, METH_O, NULL},
    {"div.Tensor_mode", py_div_mode, METH_O, NULL},
    {"remainder.Tensor", py_remainder, METH_O, NULL},
    {"remainder.Scalar", py_remainder, METH_O, NULL},
    {"fmod.Tensor", py_fmod, METH_O, NULL},
    {"fmod.Scalar", py_fmod, METH_O, NULL},
    {NULL, NULL, 0, NULL},
};

MODULE(_integers)
