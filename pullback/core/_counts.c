/* Runs of equal elements, quantiles, histograms, distances between rows and bags of rows in C, for plain calls.
 *
 * In: the canonical arguments of an operator, as a tuple. Out: its result as a row-major tensor (a tuple of several), nothing recorded; or
 * None where the call is not of that kind (another dtype, memory that is not row-major, arguments that are refused): the caller then
 * runs the operator's rules, which know the rest. The loops are in native_counts.h.
 */
#include "native_moves.h"
#include <math.h>

enum { LANES = 32, BLOCK = 256, MOST_BINS = 1 << 16 };
enum { LINEAR, LOWER, HIGHER, MIDPOINT, NEAREST };
enum { SUM, MEAN, LARGEST };

typedef struct {
    const void *table, *factors;
    void *y;
    const i64 *places, *starts;
    i64 *sizes, *largest;
    i64 many, stop, width, padding;
    int mode;
} Bags;

#define T float
#define NAME(f) f##_f32
#define FLOATING
#define FLOOR floorf
#define CEIL ceilf
#define ROUND rintf
#define SQRT sqrtf
#include "native_counts.h"
#define T double
#define NAME(f) f##_f64
#define FLOATING
#define FLOOR floor
#define CEIL ceil
#define ROUND rint
#define SQRT sqrt
#include "native_counts.h"
#define T i64
#define NAME(f) f##_i64
#include "native_counts.h"
#define T int
#define NAME(f) f##_i32
#include "native_counts.h"

#define P(x) ((void *)(x))
#define BY_FLOAT(a, function, ...)   \
    if (kind(a) == F32)              \
        function##_f32(__VA_ARGS__); \
    else                             \
        function##_f64(__VA_ARGS__)

static Array *floats_of(PyObject *tensor) {
    Array *a = array_of(tensor);
    return a && kind(a) <= F64 ? a : NULL;
}

static PyObject *pack(int n, Array **arrays) { /* takes the references; NULL where an array is missing */
    PyObject *result = PyTuple_New(n);
    for (int i = 0; i < n; i++) {
        PyObject *t = result && arrays[i] ? tensor_of(arrays[i]) : NULL;
        if (!t) {
            if (!result) Py_XDECREF(arrays[i]);
            Py_CLEAR(result);
        } else
            PyTuple_SET_ITEM(result, i, t);
    }
    if (!result && !PyErr_Occurred()) PyErr_NoMemory();
    return result;
}

/* ---- self, return_inverse, return_counts, dim: of all elements in a row */
typedef struct {
    const void *x;
    i64 n, many;
    void *first;
    i64 *run, *length;
    int kind;
} Runs;

static void count_runs(long first, long last, void *const *arguments) {
    Runs *r = arguments[0];
#define CALL(type, suffix) r->many = runs_##suffix(r->x, r->n)
    BY_KIND(r->kind, CALL)
#undef CALL
}

static void take_runs(long first, long last, void *const *arguments) {
    const Runs *r = arguments[0];
#define CALL(type, suffix) first_of_runs_##suffix(r->x, r->n, r->many, r->first, r->run, r->length)
    BY_KIND(r->kind, CALL)
#undef CALL
}

static PyObject *py_unique_consecutive(PyObject *self, PyObject *args) {
    Array *a = array_of(argument(args, 0));
    NONE_UNLESS(a && has_elements(a) && kind(a) <= I32 && argument(args, 3) == Py_None);
    Runs r = {.x = a->data, .n = count_of(a), .kind = kind(a)};
    void *const arguments[] = {&r};
    over_parts(count_runs, 1, r.n, arguments, a, NULL, NULL);
    int inverse = argument(args, 1) == Py_True, counts = argument(args, 2) == Py_True;
    Py_ssize_t many = (Py_ssize_t)r.many, none = 0;
    Array *found[3] = {new_array(1, &many, kind(a)), inverse ? new_array(a->nd, a->shape, I64) : new_array(1, &none, I64),
                       new_array(1, counts ? &many : &none, I64)};
    if (found[0] && found[1] && found[2]) {
        r.first = found[0]->data;
        r.run = inverse ? (i64 *)found[1]->data : NULL, r.length = counts ? (i64 *)found[2]->data : NULL;
        over_parts(take_runs, 1, r.n, arguments, a, found[0], found[1]);
    }
    return pack(3, found);
}

/* ---- self, q, dim, keepdim, interpolation */
static int interpolation_of(PyObject *value) {
    static const char *names[] = {"linear", "lower", "higher", "midpoint", "nearest"};
    for (int i = 0; i < 5 && PyUnicode_Check(value); i++)
        if (!PyUnicode_CompareWithASCIIString(value, names[i])) return i;
    return -1;
}

static PyObject *quantile(PyObject *args, int ignore_nan) {
    Array *a = floats_of(argument(args, 0));
    double q;
    int how = interpolation_of(argument(args, 4)), all = argument(args, 2) == Py_None;
    NONE_UNLESS(a && is_small(a) && real_of(argument(args, 1), &q) && q >= 0 && q <= 1 && how >= 0);
    int d = all ? 0 : dim_of(argument(args, 2), a), keep = argument(args, 3) == Py_True, nd = 0;
    NONE_UNLESS(d >= 0);
    all |= !a->nd;
    Py_ssize_t shape[MOST_DIMS], outer = 1, n = all ? count_of(a) : a->shape[d];
    for (int e = 0; e < a->nd; e++) {
        if (!all && e < d) outer *= a->shape[e];
        if (!all && e != d)
            shape[nd++] = a->shape[e];
        else if (keep)
            shape[nd++] = 1;
    }
    Array *y = new_array(nd, shape, kind(a));
    void *row = y ? PyMem_Malloc((size_t)((n + 1) * size_of(a))) : NULL;
    if (!row) {
        Py_XDECREF(y);
        return y ? PyErr_NoMemory() : NULL;
    }
    BY_FLOAT(a, quantiles, P(a->data), outer, n, count_of(a) / (outer * n), q, how, ignore_nan, row, P(y->data));
    PyMem_Free(row);
    return tensor_of(y);
}

static PyObject *py_quantile(PyObject *self, PyObject *args) { return quantile(args, 0); }
static PyObject *py_nanquantile(PyObject *self, PyObject *args) { return quantile(args, 1); }

/* ---- histograms */
typedef struct {
    const Array *a;
    const void *edges; /* of a histogram */
    double low, high;
    i64 bins, *counts;
    int odd;
} Histogram;

static void find_bounds(long first, long last, void *const *arguments) {
    Histogram *h = arguments[0];
    if (kind(h->a) == F32) {
        float low, high;
        bounds_f32(P(h->a->data), count_of(h->a), &low, &high, &h->odd);
        h->low = low, h->high = high;
    } else
        bounds_f64(P(h->a->data), count_of(h->a), &h->low, &h->high, &h->odd);
}

static void count_all(long first, long last, void *const *arguments) {
    const Histogram *h = arguments[0];
    i64 n = count_of(h->a);
    if (h->edges)
        BY_FLOAT(h->a, count_between, P(h->a->data), n, h->edges, h->bins, h->counts);
    else if (kind(h->a) == F32)
        count_scaled_f32(P(h->a->data), n, (float)h->low, (float)h->high, (float)(h->high - h->low), h->bins, h->counts);
    else
        count_scaled_f64(P(h->a->data), n, h->low, h->high, h->high - h->low, h->bins, h->counts);
}

/* The counts as elements of the array's dtype; NULL where there is no memory. */
static Array *counted(Histogram *h, Array *edges) {
    Py_ssize_t bins = (Py_ssize_t)h->bins;
    Array *y = new_array(1, &bins, kind(h->a));
    h->counts = y ? PyMem_Calloc((size_t)bins, sizeof(i64)) : NULL;
    void *const arguments[] = {h};
    if (h->counts) over_parts(count_all, 1, count_of(h->a), arguments, (Array *)h->a, edges, NULL);
    for (i64 k = 0; h->counts && k < bins; k++) {
        if (kind(y) == F32)
            ((float *)y->data)[k] = (float)h->counts[k];
        else
            ((double *)y->data)[k] = (double)h->counts[k];
    }
    if (!h->counts) Py_CLEAR(y);
    PyMem_Free(h->counts);
    return y;
}

static int bins_of(PyObject *value, i64 *bins) {
    Py_ssize_t n;
    if (!integer_of(value, &n) || n < 1 || n > MOST_BINS) return 0;
    *bins = n;
    return 1;
}

static PyObject *py_histogram(PyObject *self, PyObject *args) { /* self, bins, range, weight, density */
    Histogram h = {.a = floats_of(argument(args, 0))};
    NONE_UNLESS(h.a && has_elements(h.a) && bins_of(argument(args, 1), &h.bins) && argument(args, 2) == Py_None);
    NONE_UNLESS(argument(args, 3) == Py_None && argument(args, 4) == Py_False);
    void *const arguments[] = {&h};
    over_parts(find_bounds, 1, count_of(h.a), arguments, (Array *)h.a, NULL, NULL);
    double width = kind(h.a) == F32 ? (double)((float)h.high - (float)h.low) : h.high - h.low;
    NONE_UNLESS(!h.odd && h.low < h.high && isfinite(width) && width / (double)h.bins > (kind(h.a) == F32 ? 1e-30 : 1e-290));
    Py_ssize_t many = (Py_ssize_t)h.bins + 1;
    Array *edges = new_array(1, &many, kind(h.a));
    if (!edges) return NULL;
    BY_FLOAT(h.a, even_edges, h.low, h.high, h.bins, P(edges->data));
    h.edges = edges->data;
    return pack(2, (Array *[]){counted(&h, edges), edges});
}

static PyObject *py_histc(PyObject *self, PyObject *args) { /* self, bins, min, max */
    Histogram h = {.a = floats_of(argument(args, 0))};
    NONE_UNLESS(h.a && has_elements(h.a) && bins_of(argument(args, 1), &h.bins));
    NONE_UNLESS(real_of(argument(args, 2), &h.low) && real_of(argument(args, 3), &h.high) && h.low <= h.high);
    void *const arguments[] = {&h};
    if (h.low == h.high) over_parts(find_bounds, 1, count_of(h.a), arguments, (Array *)h.a, NULL, NULL);
    double most = kind(h.a) == F32 ? 1e30 : 1e290;
    NONE_UNLESS(!h.odd && h.low < h.high && h.high < most && h.low > -most && h.high - h.low > 1 / most);
    return tensor_of(counted(&h, NULL));
}

/* ---- distances */
typedef struct {
    const Array *x, *z;
    Array *y;
    int order, behind;
} Distances;

static void distances_part(long first, long last, void *const *arguments) {
    const Distances *d = arguments[0];
    BY_FLOAT(d->x, distances, P(d->x->data), first, last, P(d->z->data), d->z->shape[0], d->x->shape[1], d->order, d->behind, P(d->y->data));
}

static int order_of(PyObject *value) { /* 1, 2, 0 for infinity; -1 for others */
    double p;
    if (!real_of(value, &p)) return -1;
    return p == 2 ? 2 : p == 1 ? 1 : isinf(p) && p > 0 ? 0 : -1;
}

static PyObject *all_distances(Distances *d, int nd, const Py_ssize_t *shape) {
    d->y = new_array(nd, shape, kind(d->x));
    if (!d->y) return NULL;
    void *const arguments[] = {d};
    over_parts(distances_part, d->x->shape[0], d->x->shape[0] * count_of(d->z) / (d->behind ? 2 : 1), arguments, (Array *)d->x, (Array *)d->z, d->y);
    return tensor_of(d->y);
}

static PyObject *py_pdist(PyObject *self, PyObject *args) { /* self, p */
    Array *a = floats_of(argument(args, 0));
    Distances d = {.x = a, .z = a, .order = order_of(argument(args, 1)), .behind = 1};
    NONE_UNLESS(a && a->nd == 2 && has_elements(a) && d.order >= 0);
    Py_ssize_t many = a->shape[0] * (a->shape[0] - 1) / 2;
    return all_distances(&d, 1, &many);
}

static PyObject *py_cdist(PyObject *self, PyObject *args) { /* x1, x2, p, compute_mode */
    Array *a = floats_of(argument(args, 0)), *b = floats_of(argument(args, 1));
    Distances d = {.x = a, .z = b, .order = order_of(argument(args, 2))};
    Py_ssize_t mode = 0;
    NONE_UNLESS(a && b && a->nd == 2 && b->nd == 2 && kind(a) == kind(b) && a->shape[1] == b->shape[1] && d.order >= 0);
    NONE_UNLESS(has_elements(a) && has_elements(b) && (argument(args, 3) == Py_None || integer_of(argument(args, 3), &mode)));
    NONE_UNLESS(d.order != 2 || (mode != 1 && (mode == 2 || (a->shape[0] <= 25 && b->shape[0] <= 25)))); /* else by a product */
    return all_distances(&d, 2, (Py_ssize_t[]){a->shape[0], b->shape[0]});
}

/* ---- bags: weight, indices, offsets, scale_grad_by_freq, mode, sparse, per_sample_weights, include_last_offset, padding_idx */
static int inside(const i64 *at, i64 count, i64 n) {
    i64 outside = 0;
    for (i64 k = 0; k < count; k++) outside |= (at[k] < 0) | (at[k] >= n);
    return !outside;
}

/* Whether offsets begin at 0 and never go down or beyond `stop`. */
static int in_order(const i64 *at, i64 count, i64 stop) {
    if (!count || at[0] != 0 || at[count - 1] > stop) return 0;
    for (i64 k = 1; k < count; k++)
        if (at[k] < at[k - 1]) return 0;
    return 1;
}

static void count_bags(const Bags *b, i64 *owners, i64 *sizes) {
    for (i64 bag = 0; bag < b->many; bag++) {
        i64 to = bag + 1 < b->many ? b->starts[bag + 1] : b->stop;
        sizes[bag] = to - b->starts[bag];
        for (i64 k = b->starts[bag]; k < to; k++) owners[k] = bag;
        for (i64 k = b->starts[bag]; b->padding >= 0 && k < to; k++) sizes[bag] -= b->places[k] == b->padding;
    }
}

static PyObject *py_embedding_bag(PyObject *self, PyObject *args) {
    Array *table = floats_of(argument(args, 0)), *index = array_of(argument(args, 1)), *offsets = array_of(argument(args, 2)), *factors = NULL;
    Py_ssize_t mode, padding;
    NONE_UNLESS(table && index && offsets && table->nd == 2 && index->nd == 1 && offsets->nd == 1 && kind(index) == I64 && kind(offsets) == I64);
    NONE_UNLESS(integer_of(argument(args, 4), &mode) && mode >= SUM && mode <= LARGEST && integer_of(argument(args, 8), &padding));
    NONE_UNLESS(has_elements(table) && has_elements(index) && has_elements(offsets));
    if (argument(args, 6) != Py_None) {
        factors = floats_of(argument(args, 6));
        NONE_UNLESS(mode == SUM && factors && kind(factors) == kind(table) && factors->nd == 1 && factors->shape[0] == index->shape[0]);
    }
    int ends = argument(args, 7) == Py_True;
    const i64 *starts = (const i64 *)offsets->data, count = index->shape[0];
    Py_ssize_t many = offsets->shape[0] - ends, none = 0, shape[2] = {many, table->shape[1]};
    NONE_UNLESS(many > 0 && in_order(starts, offsets->shape[0], count) && inside((const i64 *)index->data, count, table->shape[0]));
    Bags b = {.table = table->data, .factors = factors ? factors->data : NULL, .places = (const i64 *)index->data, .starts = starts, .many = many,
              .stop = ends ? starts[many] : count, .width = table->shape[1], .padding = padding < 0 ? -1 : padding, .mode = (int)mode};
    Array *found[4] = {new_array(2, shape, kind(table)), new_array(1, mode == SUM ? &none : index->shape, I64), new_array(1, &many, I64),
                       new_array(mode == LARGEST ? 2 : 1, shape, I64)};
    if (!found[0] || !found[1] || !found[2] || !found[3]) return pack(4, found);
    b.y = found[0]->data, b.sizes = (i64 *)found[2]->data, b.largest = (i64 *)found[3]->data;
    if (mode == SUM)
        memset(b.sizes, 0, sizeof(i64) * (size_t)many);
    else {
        memset(found[1]->data, 0, sizeof(i64) * (size_t)count);
        count_bags(&b, (i64 *)found[1]->data, b.sizes);
    }
    if (mode != LARGEST) memcpy(b.largest, b.sizes, sizeof(i64) * (size_t)many);
    void *const arguments[] = {&b};
    over_parts(kind(table) == F32 ? bags_f32 : bags_f64, many, b.stop * b.width, arguments, table, index, found[0]);
    return pack(4, found);
}

/* ---- distinct elements of integers that are close together: those that are there are marked, in order */
enum { SPREAD = 4, MARKS = 4096 }; /* marks for each element, and for few elements */

#define MARK(type, suffix)                                                                      \
    {                                                                                           \
        const type *x = (const type *)a->data;                                                  \
        type low = x[0], high = x[0];                                                           \
        for (i64 i = 1; i < n; i++) low = x[i] < low ? x[i] : low, high = x[i] > high ? x[i] : high; \
        const unsigned long long span = (unsigned long long)high - (unsigned long long)low;     \
        NONE_UNLESS(span < (unsigned long long)(SPREAD * n + MARKS));                           \
        if (!(marks = PyMem_Calloc((size_t)span + 1, sizeof *marks))) return PyErr_NoMemory();  \
        for (i64 i = 0; i < n; i++) marks[x[i] - low]++;                                        \
        for (i64 v = 0; v <= (i64)span; v++) many += marks[v] != 0;                             \
        if (!(found[0] = new_array(1, &many, kind(a)))) goto done;                              \
        found[1] = inverse ? new_array(a->nd, a->shape, I64) : new_array(1, &none, I64);        \
        found[2] = new_array(1, counts ? &many : &none, I64);                                   \
        if (!found[1] || !found[2]) goto done;                                                  \
        for (i64 v = 0, place = 0; v <= (i64)span; v++) {                                       \
            if (!marks[v]) continue;                                                            \
            ((type *)found[0]->data)[place] = (type)(low + (type)v);                            \
            if (counts) ((i64 *)found[2]->data)[place] = marks[v];                              \
            marks[v] = place++;                                                                 \
        }                                                                                       \
        for (i64 i = 0; inverse && i < n; i++) ((i64 *)found[1]->data)[i] = marks[x[i] - low];  \
    }

static PyObject *py_unique(PyObject *self, PyObject *args) { /* self, sorted, return_inverse, return_counts */
    Array *a = array_of(argument(args, 0)), *found[3] = {NULL, NULL, NULL};
    const int inverse = argument(args, 2) == Py_True, counts = argument(args, 3) == Py_True;
    NONE_UNLESS(a && kind(a) >= I64 && kind(a) <= U8 && has_elements(a));
    const i64 n = count_of(a);
    i64 *marks;
    Py_ssize_t many = 0, none = 0;
    switch (kind(a)) {
        case I64: MARK(i64, i64) break;
        case I32: MARK(int, i32) break;
        case I16: MARK(short, i16) break;
        case I8: MARK(signed char, i8) break;
        default: MARK(unsigned char, u8)
    }
done:
    PyMem_Free(marks);
    return pack(3, found);
}

/* By the operator that each computes. */
static PyMethodDef methods[] = {
    {"use_arrays", use_arrays, METH_VARARGS, "use_arrays(ndarray, [(number, dtype), ...], make_tensor)"},
    {"use_threads", use_threads, METH_VARARGS, "use_threads(address, function)"},
    {"unique_consecutive.default", py_unique_consecutive, METH_O, NULL},
    {"_unique2.default", py_unique, METH_O, NULL},
    {"quantile.scalar", py_quantile, METH_O, NULL},
    {"nanquantile.scalar", py_nanquantile, METH_O, NULL},
    {"histogram.bin_ct", py_histogram, METH_O, NULL},
    {"histc.default", py_histc, METH_O, NULL},
    {"_pdist_forward.default", py_pdist, METH_O, NULL},
    {"_cdist_forward.default", py_cdist, METH_O, NULL},
    {"_embedding_bag.default", py_embedding_bag, METH_O, NULL},
    {NULL, NULL, 0, NULL},
};

MODULE(_counts)
