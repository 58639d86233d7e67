/* Operators along a dimension in C, for calls so small that what surrounds a loop counts: extremes, counts, products, scans, sorts,
 * medians, spreads, norms, searches.
 *
 * In: the canonical arguments of an operator, as a tuple. Out: its result as a tensor (a tuple of them), nothing recorded; or None where
 * the call is not of that kind (another dtype, memory that is not row-major, no elements, many of them, arguments that are refused): the
 * caller then runs the operator's rules, which know the rest. The loops are in native_along.h, once for each type of elements.
 */
#include "native_moves.h"
#include "native_lanes.h"
#include <math.h>

typedef struct {
    i64 outer, n, inner;
} Shape;

enum { MOST_SORTED = 256, MOST_FEW = 16, MEDIAN = -1, NAN_MEDIAN = -2, MODE = -3, LANES = 16, CHAINS = 64, PIECE = 1 << 16 };

#define T float
#define NAME(f) f##_f32
#define IS_NAN REAL_NAN
#define WIDE float
#define FLOATING
#define EXP f_exp
#define LIBM(name) name##f
#define LN2 0.693147180559945309f
#include "native_along.h"
#define T double
#define NAME(f) f##_f64
#define IS_NAN REAL_NAN
#define WIDE double
#define FLOATING
#define EXP exp
#define LIBM(name) name
#define LN2 0.693147180559945309
#include "native_along.h"
#define T i64
#define NAME(f) f##_i64
#define IS_NAN NEVER
#define WIDE i64
#include "native_along.h"
#define T int
#define NAME(f) f##_i32
#define IS_NAN NEVER
#define WIDE i64
#include "native_along.h"
#define T short
#define NAME(f) f##_i16
#define IS_NAN NEVER
#define WIDE i64
#include "native_along.h"
#define T signed char
#define NAME(f) f##_i8
#define IS_NAN NEVER
#define WIDE i64
#include "native_along.h"
#define T unsigned char
#define NAME(f) f##_u8
#define IS_NAN NEVER
#define WIDE i64
#include "native_along.h"

/* One call of a loop by the kind of the elements; booleans are bytes of 0 and 1. */
#define BY_EACH_KIND(k, call)      \
    switch (k) {              \
    case F32: call(float, f32); break;  \
    case F64: call(double, f64); break; \
    case I64: call(i64, i64); break;    \
    case I32: call(int, i32); break;    \
    case I16: call(short, i16); break;  \
    case I8: call(signed char, i8); break; \
    default: call(unsigned char, u8);   \
    }
#define BY_FLOAT(k, call)               \
    if (k == F32) { call(float, f32); } \
    else { call(double, f64); }

/* ---- arguments */
/* The reduced dimensions as one run of them, first to last: one number, or a tuple of neighbours; None and () are all. 0 where they are
 * not that. */
static int run_of(PyObject *value, const Array *a, int *first, int *last) {
    int seen[MOST_DIMS] = {0};
    *first = 0;
    *last = a->nd - 1;
    if (value == Py_None || (PyTuple_Check(value) && !PyTuple_GET_SIZE(value))) return 1;
    if (!PyTuple_Check(value)) return (*first = *last = dim_of(value, a)) >= 0;
    *first = MOST_DIMS;
    *last = -1;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(value); i++) {
        int d = dim_of(PyTuple_GET_ITEM(value, i), a);
        if (d < 0 || seen[d]++) return 0;
        *first = d < *first ? d : *first;
        *last = d > *last ? d : *last;
    }
    return *last - *first + 1 == PyTuple_GET_SIZE(value);
}

static Shape shape_of(const Array *a, int first, int last) {
    Shape s = {1, 1, 1};
    for (int d = 0; d < a->nd; d++) *(d < first ? &s.outer : d > last ? &s.inner : &s.n) *= a->shape[d];
    return s;
}

static Array *reduced(const Array *a, int first, int last, int keep, int k) {
    Py_ssize_t shape[MOST_DIMS];
    int nd = 0;
    for (int d = 0; d < a->nd; d++)
        if (d < first || d > last)
            shape[nd++] = a->shape[d];
        else if (keep)
            shape[nd++] = 1;
    return new_array(nd, shape, k);
}

static PyObject *pair_of(Array *a, Array *b) {
    PyObject *x = a && b ? tensor_of(a) : NULL, *y = x ? tensor_of(b) : NULL;
    if (!x) {
        Py_XDECREF(a);
        Py_XDECREF(b);
    }
    PyObject *result = y ? PyTuple_Pack(2, x, y) : NULL;
    Py_XDECREF(x);
    Py_XDECREF(y);
    return result;
}

/* ---- extremes */
static PyObject *extremes(PyObject *args, int largest, int wants_values, int wants_places, int dim_at, int keep_at) {
    Array *a = array_of(argument(args, 0));
    int first, last;
    NONE_UNLESS(a && is_small(a) && run_of(dim_at < 0 ? Py_None : argument(args, dim_at), a, &first, &last));
    NONE_UNLESS(wants_values || kind(a) != BOOL);
    int k = kind(a), keep = keep_at >= 0 && argument(args, keep_at) == Py_True;
    Array *values = wants_values ? reduced(a, first, last, keep, k) : NULL, *places = wants_places ? reduced(a, first, last, keep, I64) : NULL;
    if ((wants_values && !values) || (wants_places && !places)) {
        Py_XDECREF(values);
        Py_XDECREF(places);
        return NULL;
    }
    Shape s = shape_of(a, first, last);
#define CALL(type, suffix)                                                                    \
    if (!places)                                                                              \
        extreme_values_##suffix((const type *)a->data, s, largest, (type *)values->data);     \
    else                                                                                      \
        extreme_##suffix((const type *)a->data, s, largest, values ? (type *)values->data : NULL, (i64 *)places->data)
    BY_EACH_KIND(k, CALL)
#undef CALL
    return wants_values && wants_places ? pair_of(values, places) : tensor_of(values ? values : places);
}

static PyObject *py_amax(PyObject *self, PyObject *args) { return extremes(args, 1, 1, 0, 1, 2); }
static PyObject *py_amin(PyObject *self, PyObject *args) { return extremes(args, 0, 1, 0, 1, 2); }
static PyObject *py_argmax(PyObject *self, PyObject *args) { return extremes(args, 1, 0, 1, 1, 2); }
static PyObject *py_argmin(PyObject *self, PyObject *args) { return extremes(args, 0, 0, 1, 1, 2); }
static PyObject *py_max_dim(PyObject *self, PyObject *args) { return extremes(args, 1, 1, 1, 1, 2); }
static PyObject *py_min_dim(PyObject *self, PyObject *args) { return extremes(args, 0, 1, 1, 1, 2); }
static PyObject *py_max_all(PyObject *self, PyObject *args) { return extremes(args, 1, 1, 0, -1, -1); }
static PyObject *py_min_all(PyObject *self, PyObject *args) { return extremes(args, 0, 1, 0, -1, -1); }

static PyObject *py_aminmax(PyObject *self, PyObject *args) {
    PyObject *low = extremes(args, 0, 1, 0, 1, 2);
    if (!low || low == Py_None) return low;
    PyObject *high = extremes(args, 1, 1, 0, 1, 2), *result = high ? PyTuple_Pack(2, low, high) : NULL;
    Py_DECREF(low);
    Py_XDECREF(high);
    return result;
}

/* ---- large work */
/* A loop over rows: `y` has results, one for each row or (of scans) for each element, `places` where they stand. */
typedef struct {
    const char *x;
    char *y;
    i64 *places;
    Shape s;
    int kind, how, width; /* bytes of a result */
} Job;

static Shape rows_of(const Job *j, long first, long last) { return (Shape){last - first, j->s.n, j->s.inner}; }
static const void *from_row(const Job *j, long first) { return j->x + first * j->s.n * j->s.inner * item_sizes[j->kind]; }

static void run_rows(Body body, Job *job, Array *a, Array *r) {
    void *const arguments[] = {job};
    over_parts(body, job->s.outer, job->s.outer * job->s.n * job->s.inner, arguments, a, r, NULL);
}

/* One long row as pieces that are rows, the rest of which is a row by itself: `rows` results in `y`, or 0 where the row is not long. */
static i64 run_pieces(Body body, const Job *job, Array *a, char **y) {
    if (job->s.outer != 1 || job->s.inner != 1 || job->s.n < LARGE) return 0;
    i64 rows = job->s.n / PIECE, rest = job->s.n % PIECE;
    if (!(*y = PyMem_Malloc(sizeof(i64) * (size_t)(rows + 1)))) return 0;
    Job part = *job, last = *job;
    part.y = *y;
    part.s = (Shape){rows, PIECE, 1};
    run_rows(body, &part, a, NULL);
    if (!rest) return rows;
    last.x = job->x + rows * PIECE * item_sizes[job->kind];
    last.y = *y + rows * job->width;
    last.s = (Shape){1, rest, 1};
    run_rows(body, &last, a, NULL);
    return rows + 1;
}

/* ---- counts and products */
enum { ANY, ALL, COUNT };

static void count_rows(long first, long last, void *const *arguments) {
    const Job *j = arguments[0];
#define CALL(type, suffix) count_##suffix(from_row(j, first), rows_of(j, first, last), (i64 *)j->y + first * j->s.inner)
    BY_EACH_KIND(j->kind, CALL)
#undef CALL
}

static PyObject *counts(PyObject *args, int what, int dim_at, int keep_at) {
    Array *a = array_of(argument(args, 0));
    int first, last;
    NONE_UNLESS(a && has_elements(a) && run_of(dim_at < 0 ? Py_None : argument(args, dim_at), a, &first, &last));
    NONE_UNLESS(what == COUNT || (kind(a) != U8 && is_small(a))); /* any and all of bytes are bytes; of many, they need not look at all */
    NONE_UNLESS(dim_at < 0 || !PyTuple_Check(argument(args, dim_at)) || PyTuple_GET_SIZE(argument(args, dim_at)));
    Array *found = reduced(a, first, last, keep_at >= 0 && argument(args, keep_at) == Py_True, I64);
    if (!found) return NULL;
    Shape s = shape_of(a, first, last);
    i64 *n = (i64 *)found->data;
    Job job = {a->data, found->data, NULL, s, kind(a), 0, 8};
    char *parts = NULL;
    i64 many = run_pieces(count_rows, &job, a, &parts);
    for (i64 i = n[0] = 0; i < many; i++) n[0] += ((const i64 *)parts)[i];
    PyMem_Free(parts);
    if (!many) run_rows(count_rows, &job, a, found);
    if (what == COUNT) return tensor_of(found);
    Array *truth = new_array(found->nd, found->shape, BOOL);
    for (i64 i = 0; truth && i < s.outer * s.inner; i++) truth->data[i] = what == ANY ? n[i] > 0 : n[i] == s.n;
    Py_DECREF(found);
    return tensor_of(truth);
}

static PyObject *py_any_dim(PyObject *self, PyObject *args) { return counts(args, ANY, 1, 2); }
static PyObject *py_all_dim(PyObject *self, PyObject *args) { return counts(args, ALL, 1, 2); }
static PyObject *py_any_all(PyObject *self, PyObject *args) { return counts(args, ANY, -1, -1); }
static PyObject *py_all_all(PyObject *self, PyObject *args) { return counts(args, ALL, -1, -1); }
static PyObject *py_count(PyObject *self, PyObject *args) { return counts(args, COUNT, 1, -1); }

static void product_rows(long first, long last, void *const *arguments) {
    const Job *j = arguments[0];
    void *into = j->y + first * j->s.inner * j->width;
#define CALL(type, suffix) product_##suffix(from_row(j, first), rows_of(j, first, last), into)
    BY_EACH_KIND(j->kind, CALL)
#undef CALL
}

static void running_product_rows(long first, long last, void *const *arguments) {
    const Job *j = arguments[0];
    void *into = j->y + first * j->s.n * j->s.inner * j->width;
#define CALL(type, suffix) running_product_##suffix(from_row(j, first), rows_of(j, first, last), into)
    BY_EACH_KIND(j->kind, CALL)
#undef CALL
}

static PyObject *products(PyObject *args, int dim_at, int keep_at, int dtype_at, int running) {
    Array *a = array_of(argument(args, 0));
    int first, last;
    NONE_UNLESS(a && has_elements(a) && argument(args, dtype_at) == Py_None);
    NONE_UNLESS(run_of(dim_at < 0 ? Py_None : argument(args, dim_at), a, &first, &last));
    int k = kind(a), wide = k == F32 || k == F64 ? k : I64;
    Array *r = running ? new_array(a->nd, a->shape, wide) : reduced(a, first, last, keep_at >= 0 && argument(args, keep_at) == Py_True, wide);
    if (!r) return NULL;
    Job job = {a->data, r->data, NULL, shape_of(a, first, last), k, 0, item_sizes[wide]};
    char *parts = NULL;
    i64 many = running ? 0 : run_pieces(product_rows, &job, a, &parts);
    if (many) job = (Job){parts, r->data, NULL, {1, many, 1}, wide, 0, item_sizes[wide]};
    run_rows(running ? running_product_rows : product_rows, &job, a, r);
    PyMem_Free(parts);
    return tensor_of(r);
}

static PyObject *py_prod_dim(PyObject *self, PyObject *args) { return products(args, 1, 2, 3, 0); }
static PyObject *py_prod_all(PyObject *self, PyObject *args) { return products(args, -1, -1, 1, 0); }
static PyObject *py_cumprod(PyObject *self, PyObject *args) { return products(args, 1, -1, 2, 1); }

static void running_extreme_rows(long first, long last, void *const *arguments) {
    const Job *j = arguments[0];
    i64 at = first * j->s.n * j->s.inner;
#define CALL(type, suffix) running_extreme_##suffix(from_row(j, first), rows_of(j, first, last), j->how, (type *)j->y + at, j->places + at)
    BY_EACH_KIND(j->kind, CALL)
#undef CALL
}

static PyObject *running_extremes(PyObject *args, int largest) {
    Array *a = array_of(argument(args, 0));
    NONE_UNLESS(a && has_elements(a));
    int k = kind(a), d = dim_of(argument(args, 1), a);
    NONE_UNLESS(d >= 0);
    Array *values = new_array(a->nd, a->shape, k), *places = values ? new_array(a->nd, a->shape, I64) : NULL;
    if (places) {
        Job job = {a->data, values->data, (i64 *)places->data, shape_of(a, d, d), k, largest, item_sizes[k]};
        run_rows(running_extreme_rows, &job, a, values);
    }
    return pair_of(values, places);
}

static PyObject *py_cummax(PyObject *self, PyObject *args) { return running_extremes(args, 1); }
static PyObject *py_cummin(PyObject *self, PyObject *args) { return running_extremes(args, 0); }

/* ---- sorts */
/* The first `keep` (all where negative) of sorted rows; `apart`: None where elements of a row are equal. */
static PyObject *sorted(PyObject *args, PyObject *dim, int descending, i64 keep, int apart, int wants_values) {
    Array *a = array_of(argument(args, 0));
    NONE_UNLESS(a && is_small(a));
    int k = kind(a), d = dim_of(dim, a);
    NONE_UNLESS(d >= 0);
    Shape s = shape_of(a, d, d);
    keep = keep < 0 ? s.n : keep;
    NONE_UNLESS(s.n <= MOST_SORTED && keep <= s.n && keep > 0 && !(apart && k == BOOL));
    Py_ssize_t shape[MOST_DIMS];
    memcpy(shape, a->shape, sizeof(*shape) * (size_t)a->nd);
    if (a->nd) shape[d] = keep;
    Array *values = wants_values ? new_array(a->nd, shape, k) : NULL, *places = new_array(a->nd, shape, I64);
    int done = 0;
    if (places && (values || !wants_values)) {
        int few = apart && keep <= MOST_FEW && 4 * keep < s.n;
#define CALL(type, suffix)                                                                                                          \
    done = few ? first_few_##suffix((const type *)a->data, s, descending, keep, values ? (type *)values->data : NULL, (i64 *)places->data) \
               : sorted_##suffix((const type *)a->data, s, descending, keep, apart, values ? (type *)values->data : NULL, (i64 *)places->data)
        BY_EACH_KIND(k, CALL)
#undef CALL
    }
    if (done) return wants_values ? pair_of(values, places) : tensor_of(places);
    Py_XDECREF(values);
    Py_XDECREF(places);
    NONE_UNLESS(PyErr_Occurred());
    return NULL;
}

static PyObject *py_sort(PyObject *self, PyObject *args) { return sorted(args, argument(args, 1), argument(args, 2) == Py_True, -1, 0, 1); }
static PyObject *py_sort_stable(PyObject *self, PyObject *args) { return sorted(args, argument(args, 2), argument(args, 3) == Py_True, -1, 0, 1); }
static PyObject *py_argsort(PyObject *self, PyObject *args) { return sorted(args, argument(args, 1), argument(args, 2) == Py_True, -1, 0, 0); }
static PyObject *py_argsort_stable(PyObject *self, PyObject *args) { return sorted(args, argument(args, 2), argument(args, 3) == Py_True, -1, 0, 0); }

/* A positive number of elements, or 0. */
static i64 number(PyObject *value) {
    long long n = PyLong_CheckExact(value) ? PyLong_AsLongLong(value) : 0;
    if (n == -1 && PyErr_Occurred()) PyErr_Clear();
    return n > 0 ? n : 0;
}

static PyObject *py_topk(PyObject *self, PyObject *args) {
    i64 k = number(argument(args, 1));
    NONE_UNLESS(k);
    return sorted(args, argument(args, 2), argument(args, 3) == Py_True, k, 1, 1);
}

/* One element of each sorted row. */
static PyObject *chosen(PyObject *args, i64 k, PyObject *dim, int keep, int apart, int wants_places) {
    Array *a = array_of(argument(args, 0));
    int first, last;
    NONE_UNLESS(a && is_small(a) && kind(a) != BOOL && run_of(dim, a, &first, &last));
    Shape s = shape_of(a, first, last);
    NONE_UNLESS(s.n <= MOST_SORTED && k < s.n);
    Array *values = reduced(a, first, last, keep, kind(a)), *places = wants_places ? reduced(a, first, last, keep, I64) : NULL;
    int done = 0;
    if (values && (places || !wants_places)) {
#define CALL(type, suffix)                                                                                          \
    done = k == MODE ? sorted_##suffix((const type *)a->data, s, 0, 1, 1, (type *)values->data, (i64 *)places->data) \
                     : chosen_##suffix((const type *)a->data, s, k, apart, (type *)values->data, places ? (i64 *)places->data : NULL)
        BY_EACH_KIND(kind(a), CALL)
#undef CALL
    }
    if (done) return wants_places ? pair_of(values, places) : tensor_of(values);
    Py_XDECREF(values);
    Py_XDECREF(places);
    NONE_UNLESS(PyErr_Occurred());
    return NULL;
}

static PyObject *py_kthvalue(PyObject *self, PyObject *args) {
    i64 k = number(argument(args, 1));
    NONE_UNLESS(k);
    return chosen(args, k - 1, argument(args, 2), argument(args, 3) == Py_True, 1, 1);
}
static PyObject *py_median_dim(PyObject *self, PyObject *args) { return chosen(args, MEDIAN, argument(args, 1), argument(args, 2) == Py_True, 0, 1); }
static PyObject *py_nanmedian_dim(PyObject *self, PyObject *args) { return chosen(args, NAN_MEDIAN, argument(args, 1), argument(args, 2) == Py_True, 0, 1); }
static PyObject *py_median(PyObject *self, PyObject *args) {
    Array *a = array_of(argument(args, 0));
    if (!a || !is_small(a) || count_of(a) <= MOST_SORTED || kind(a) == BOOL) return chosen(args, MEDIAN, Py_None, 0, 0, 0);
    void *room = PyMem_Malloc((size_t)(count_of(a) * size_of(a)));
    if (!room) return PyErr_NoMemory();
    Array *r = new_array(0, NULL, kind(a));
#define CALL(type, suffix) *(type *)r->data = median_of_many_##suffix((const type *)a->data, count_of(a), room)
    if (r) BY_EACH_KIND(kind(a), CALL)
#undef CALL
    PyMem_Free(room);
    return tensor_of(r);
}
static PyObject *py_nanmedian(PyObject *self, PyObject *args) { return chosen(args, NAN_MEDIAN, Py_None, 0, 0, 0); }
/* Where no two elements of a row are equal, the smallest is the most frequent. */
static PyObject *py_mode(PyObject *self, PyObject *args) { return chosen(args, MODE, argument(args, 1), argument(args, 2) == Py_True, 1, 1); }

/* ---- spreads, norms, logarithms of sums */
/* Dimensions that are no run of neighbours: a copy of the array with them last, and the first of them; NULL where they are refused. */
static Array *turned(PyObject *value, const Array *a, int *first) {
    Py_ssize_t dims[MOST_DIMS], shape[MOST_DIMS], steps[MOST_DIMS];
    int seen[MOST_DIMS] = {0}, n = integers_of(value, dims, MOST_DIMS), nd = 0;
    for (int i = 0; i < n; i++) {
        dims[i] = dims[i] < 0 ? dims[i] + a->nd : dims[i];
        if (dims[i] < 0 || dims[i] >= a->nd || seen[dims[i]]++) return NULL;
    }
    for (int reduced = 0; n > 0 && reduced < 2; reduced++)
        for (int d = 0; d < a->nd; d++)
            if (seen[d] == reduced) shape[nd] = a->shape[d], steps[nd++] = a->strides[d];
    *first = a->nd - n;
    Array *r = n > 0 ? new_array(a->nd, shape, kind(a)) : NULL;
    if (r) copy_block(r->data, r->strides, a->data, steps, shape, a->nd, size_of(a));
    return r;
}

static PyObject *spread_of(PyObject *args, const Array *a, int first, int last, int keep, int root, int wants_means);

static PyObject *spreads(PyObject *args, int root, int wants_means) { /* self, dim, correction, keepdim */
    Array *a = array_of(argument(args, 0));
    int first, last, keep = argument(args, 3) == Py_True;
    NONE_UNLESS(a && is_small(a) && kind(a) <= F64);
    if (run_of(argument(args, 1), a, &first, &last)) return spread_of(args, a, first, last, keep, root, wants_means);
    Array *copy = keep ? NULL : turned(argument(args, 1), a, &first);
    NONE_UNLESS(copy || PyErr_Occurred());
    PyObject *result = copy ? spread_of(args, copy, first, copy->nd - 1, 0, root, wants_means) : NULL;
    Py_XDECREF(copy);
    return result;
}

static PyObject *spread_of(PyObject *args, const Array *a, int first, int last, int keep, int root, int wants_means) {
    Shape s = shape_of(a, first, last);
    PyObject *given = argument(args, 2);
    NONE_UNLESS(given == Py_None || PyLong_CheckExact(given) || PyFloat_CheckExact(given));
    double divisor = (double)s.n - (given == Py_None ? 1.0 : PyFloat_AsDouble(given));
    NONE_UNLESS(divisor > 0);
    Array *spread = reduced(a, first, last, keep, kind(a)), *means = wants_means ? reduced(a, first, last, keep, kind(a)) : NULL;
    if (!spread || (wants_means && !means)) {
        Py_XDECREF(spread);
        Py_XDECREF(means);
        return NULL;
    }
#define CALL(type, suffix) spread_##suffix((const type *)a->data, s, divisor, root, (type *)spread->data, means ? (type *)means->data : NULL)
    BY_FLOAT(kind(a), CALL)
#undef CALL
    return wants_means ? pair_of(spread, means) : tensor_of(spread);
}

static PyObject *py_var(PyObject *self, PyObject *args) { return spreads(args, 0, 0); }
static PyObject *py_std(PyObject *self, PyObject *args) { return spreads(args, 1, 0); }
static PyObject *py_var_mean(PyObject *self, PyObject *args) { return spreads(args, 0, 1); }
static PyObject *py_std_mean(PyObject *self, PyObject *args) { return spreads(args, 1, 1); }

static PyObject *py_logsumexp(PyObject *self, PyObject *args) {
    Array *a = array_of(argument(args, 0));
    int first, last;
    NONE_UNLESS(a && is_small(a) && kind(a) <= F64 && run_of(argument(args, 1), a, &first, &last));
    Array *r = reduced(a, first, last, argument(args, 2) == Py_True, kind(a));
    if (!r) return NULL;
    Shape s = shape_of(a, first, last);
#define CALL(type, suffix) log_sum_##suffix((const type *)a->data, s, (type *)r->data)
    BY_FLOAT(kind(a), CALL)
#undef CALL
    return tensor_of(r);
}

static PyObject *py_logcumsumexp(PyObject *self, PyObject *args) { /* self, dim */
    Array *a = array_of(argument(args, 0));
    int d = a ? dim_of(argument(args, 1), a) : -1;
    NONE_UNLESS(a && d >= 0 && is_small(a) && kind(a) <= F64);
    Array *r = new_array(a->nd, a->shape, kind(a));
    if (!r) return NULL;
#define CALL(type, suffix) running_log_sum_##suffix((const type *)a->data, shape_of(a, d, d), (type *)r->data)
    BY_FLOAT(kind(a), CALL)
#undef CALL
    return tensor_of(r);
}

/* self, dim: of rows whose elements lie side by side */
static PyObject *py_products_of_others(PyObject *self, PyObject *args) {
    Array *a = array_of(argument(args, 0));
    int d = a && a->nd ? dim_of(argument(args, 1), a) : -1;
    NONE_UNLESS(d >= 0 && has_elements(a) && kind(a) <= F64 && shape_of(a, d, d).inner == 1);
    Array *r = new_array(a->nd, a->shape, kind(a));
    if (!r) return NULL;
#define CALL(type, suffix) products_of_others_##suffix((const type *)a->data, shape_of(a, d, d), (type *)r->data)
    BY_FLOAT(kind(a), CALL)
#undef CALL
    return tensor_of(r);
}

static void power_sum_rows(long first, long last, void *const *arguments) {
    const Job *j = arguments[0];
#define CALL(type, suffix) power_sums_##suffix(from_row(j, first), rows_of(j, first, last), j->how, (double *)j->y + first * j->s.inner)
    BY_FLOAT(j->kind, CALL)
#undef CALL
}

/* self, ord, dim, keepdim, dtype */
static PyObject *py_vector_norm(PyObject *self, PyObject *args) {
    Array *a = array_of(argument(args, 0));
    int first, last;
    NONE_UNLESS(a && has_elements(a) && kind(a) <= F64 && argument(args, 4) == Py_None && run_of(argument(args, 2), a, &first, &last));
    PyObject *given = argument(args, 1);
    NONE_UNLESS(PyLong_CheckExact(given) || PyFloat_CheckExact(given));
    double p = PyFloat_AsDouble(given);
    if (p == -1 && PyErr_Occurred()) PyErr_Clear();
    NONE_UNLESS(p == 0 || p == 1 || p == 2 || (isinf(p) && p > 0));
    Shape s = shape_of(a, first, last);
    i64 many = s.outer * s.inner;
    double *sums = PyMem_Malloc(sizeof(double) * (size_t)many);
    Array *r = sums ? reduced(a, first, last, argument(args, 3) == Py_True, kind(a)) : (Array *)PyErr_NoMemory();
    if (r) {
        int order = isinf(p) ? -1 : (int)p;
        Job job = {a->data, (char *)sums, NULL, s, kind(a), order, 8};
        char *parts = NULL;
        i64 pieces = run_pieces(power_sum_rows, &job, a, &parts);
        if (pieces)
            power_sums_f64((const double *)parts, (Shape){1, pieces, 1}, order < 0 ? -1 : 1, sums);
        else
            run_rows(power_sum_rows, &job, a, r);
        PyMem_Free(parts);
        for (i64 i = 0; i < many; i++) {
            double v = order == 2 ? sqrt(sums[i]) : sums[i];
            if (kind(a) == F32)
                ((float *)r->data)[i] = (float)v;
            else
                ((double *)r->data)[i] = v;
        }
    }
    PyMem_Free(sums);
    return tensor_of(r);
}

/* self, ord, dim, keepdim, dtype: the norm of Frobenius is that of all elements of a matrix */
static PyObject *py_matrix_norm(PyObject *self, PyObject *args) {
    PyObject *dims = argument(args, 2), *two;
    NONE_UNLESS(PyUnicode_Check(argument(args, 1)) && !PyUnicode_CompareWithASCIIString(argument(args, 1), "fro") && PyTuple_Check(dims));
    NONE_UNLESS(PyTuple_GET_SIZE(dims) == 2);
    if (!(two = PyLong_FromLong(2))) return NULL;
    PyObject *given = PyTuple_Pack(5, argument(args, 0), two, dims, argument(args, 3), argument(args, 4));
    PyObject *result = given ? py_vector_norm(self, given) : NULL;
    Py_XDECREF(given);
    Py_DECREF(two);
    return result;
}

/* self, ord, dim, keepdim, dtype: without an order, the norm of a vector of all elements */
static PyObject *py_norm(PyObject *self, PyObject *args) {
    PyObject *two, *given, *result;
    NONE_UNLESS(argument(args, 1) == Py_None);
    if (!(two = PyLong_FromLong(2))) return NULL;
    given = PyTuple_Pack(5, argument(args, 0), two, argument(args, 2), argument(args, 3), argument(args, 4));
    result = given ? py_vector_norm(self, given) : NULL;
    Py_XDECREF(given);
    Py_DECREF(two);
    return result;
}

/* ---- searches */
typedef struct {
    const char *rows, *values;
    i64 *places, n, many; /* values of a row; one, where there is one row for all */
    int kind, one_row, right;
} Search;

static void search_rows(long first, long last, void *const *arguments) {
    const Search *s = arguments[0];
    const char *rows = s->rows + (s->one_row ? 0 : first * s->n * item_sizes[s->kind]), *values = s->values + first * s->many * item_sizes[s->kind];
#define CALL(type, suffix) \
    search_##suffix((const type *)rows, s->n, s->one_row, (const type *)values, last - first, s->many, s->right, s->places + first * s->many)
    BY_EACH_KIND(s->kind, CALL)
#undef CALL
}

/* sorted rows, values, out_int32, right, side, sorter */
static PyObject *py_searchsorted(PyObject *self, PyObject *args) {
    Array *rows = array_of(argument(args, 0)), *values = array_of(argument(args, 1));
    PyObject *side = argument(args, 4);
    NONE_UNLESS(rows && values && kind(rows) == kind(values) && rows->nd && has_elements(rows) && has_elements(values));
    NONE_UNLESS(argument(args, 2) == Py_False && argument(args, 5) == Py_None && (side == Py_None || PyUnicode_Check(side)));
    int right = argument(args, 3) == Py_True, to_right = side != Py_None && !PyUnicode_CompareWithASCIIString(side, "right");
    NONE_UNLESS(side == Py_None || to_right || (!PyUnicode_CompareWithASCIIString(side, "left") && !right));
    i64 n = rows->shape[rows->nd - 1], many = count_of(values), outer = 1;
    if (rows->nd > 1) {
        NONE_UNLESS(rows->nd == values->nd && !memcmp(rows->shape, values->shape, sizeof(*rows->shape) * (size_t)(rows->nd - 1)));
        many = values->shape[values->nd - 1];
        outer = count_of(values) / many;
    }
    Array *places = new_array(values->nd, values->shape, I64);
    if (!places) return NULL;
    Search s = {rows->data, values->data, (i64 *)places->data, n, rows->nd == 1 ? 1 : many, kind(rows), rows->nd == 1, right || to_right};
    void *const arguments[] = {&s};
    over_parts(search_rows, rows->nd == 1 ? many : outer, outer * many * 8, arguments, rows, values, places);
    return tensor_of(places);
}

static PyObject *py_bucketize(PyObject *self, PyObject *args) { /* values, sorted row, out_int32, right */
    Array *rows = array_of(argument(args, 1));
    NONE_UNLESS(rows && rows->nd == 1);
    PyObject *given = PyTuple_Pack(6, argument(args, 1), argument(args, 0), argument(args, 2), argument(args, 3), Py_None, Py_None);
    PyObject *result = given ? py_searchsorted(self, given) : NULL;
    Py_XDECREF(given);
    return result;
}

/* By the operator that each computes. */
static PyMethodDef methods[] = {
    {"use_arrays", use_arrays, METH_VARARGS, "use_arrays(ndarray, [(number, dtype), ...], make_tensor)"},
    {"use_threads", use_threads, METH_VARARGS, "use_threads(address, function)"},
    {"amax.default", py_amax, METH_O, NULL},
    {"amin.default", py_amin, METH_O, NULL},
    {"argmax.default", py_argmax, METH_O, NULL},
    {"argmin.default", py_argmin, METH_O, NULL},
    {"max.dim", py_max_dim, METH_O, NULL},
    {"min.dim", py_min_dim, METH_O, NULL},
    {"max.default", py_max_all, METH_O, NULL},
    {"min.default", py_min_all, METH_O, NULL},
    {"aminmax.default", py_aminmax, METH_O, NULL},
    {"any.dim", py_any_dim, METH_O, NULL},
    {"all.dim", py_all_dim, METH_O, NULL},
    {"any.default", py_any_all, METH_O, NULL},
    {"all.default", py_all_all, METH_O, NULL},
    {"count_nonzero.dim_IntList", py_count, METH_O, NULL},
    {"count_nonzero.default", py_count, METH_O, NULL},
    {"prod.dim_int", py_prod_dim, METH_O, NULL},
    {"prod.default", py_prod_all, METH_O, NULL},
    {"cumprod.default", py_cumprod, METH_O, NULL},
    {"logcumsumexp.default", py_logcumsumexp, METH_O, NULL},
    {"prod.others", py_products_of_others, METH_O, NULL},
    {"cummax.default", py_cummax, METH_O, NULL},
    {"cummin.default", py_cummin, METH_O, NULL},
    {"sort.default", py_sort, METH_O, NULL},
    {"sort.stable", py_sort_stable, METH_O, NULL},
    {"argsort.default", py_argsort, METH_O, NULL},
    {"argsort.stable", py_argsort_stable, METH_O, NULL},
    {"topk.default", py_topk, METH_O, NULL},
    {"kthvalue.default", py_kthvalue, METH_O, NULL},
    {"median.default", py_median, METH_O, NULL},
    {"nanmedian.default", py_nanmedian, METH_O, NULL},
    {"median.dim", py_median_dim, METH_O, NULL},
    {"nanmedian.dim", py_nanmedian_dim, METH_O, NULL},
    {"mode.default", py_mode, METH_O, NULL},
    {"var.correction", py_var, METH_O, NULL},
    {"std.correction", py_std, METH_O, NULL},
    {"var_mean.correction", py_var_mean, METH_O, NULL},
    {"std_mean.correction", py_std_mean, METH_O, NULL},
    {"logsumexp.default", py_logsumexp, METH_O, NULL},
    {"linalg_vector_norm.default", py_vector_norm, METH_O, NULL},
    {"linalg_norm.default", py_norm, METH_O, NULL},
    {"bucketize.Tensor", py_bucketize, METH_O, NULL},
    {"linalg_matrix_norm.str_ord", py_matrix_norm, METH_O, NULL},
    {"searchsorted.Tensor", py_searchsorted, METH_O, NULL},
    {NULL, NULL, 0, NULL},
};

MODULE(_along)
