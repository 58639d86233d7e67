/* Normalisations and losses in C, for calls so small that what surrounds a loop counts.
 *
 * In: the canonical arguments of an operator, as a tuple. Out: its result as tensors, nothing recorded; or None where the call is not of
 * that kind (another dtype than float32 and float64, memory that is not row-major, many elements, none, arguments that are refused,
 * statistics that are to be moved): the caller then runs the operator's rules, which know the rest. The loops are in native_losses.h.
 */
#include "native_fronts.h"
#include "native_lanes.h"
#include <math.h>

enum { LANES = 16, MOST_TAKEN = 1 << 17, MOST_FEW = 1 << 10, PIECE = 1 << 15 };

/* Samples of connectionist temporal classification: what stands in them, and how many of it. */
typedef struct {
    Array *scores, *labels, *steps, *lengths;
    Py_ssize_t blank;
    i64 time, samples, classes, width, count;
} Sequences;

#define T float
#define NAME(f) f##_f32
#define EXP f_exp
#define LOG logf
#define LOGS f_log
#define LOG1P log1pf
#define POW powf
#include "native_losses.h"
#include "native_classes.h"
#define T double
#define NAME(f) f##_f64
#define EXP exp
#define LOG log
#define LOGS log
#define LOG1P log1p
#define POW pow
#include "native_losses.h"
#include "native_classes.h"

/* Float32 or float64, row-major, in no order of channels too, not many. */
static Array *floats_of(PyObject *tensor) {
    Array *a = array_of(tensor);
    if (!a || kind(a) > F64 || count_of(a) == 0 || count_of(a) > MOST_TAKEN) return NULL;
    return (a->nd == 4 || a->nd == 5) && (a->shape[1] == 1 || a->shape[a->nd - 1] == 1) ? NULL : a;
}

/* An argument that may be None: 0 where it is neither that nor a row of n of the same dtype. */
static int row_of(PyObject *value, const Array *like, i64 n, const void **into) {
    *into = NULL;
    if (value == Py_None) return 1;
    Array *a = array_of(value);
    if (!a || kind(a) != kind(like) || a->nd != 1 || a->shape[0] != n) return 0;
    *into = a->data;
    return 1;
}

static PyObject *three_of(Array *a, Array *b, Array *c) {
    PyObject *x = a && b && c ? tensor_of(a) : NULL, *y = x ? tensor_of(b) : NULL, *z = y ? tensor_of(c) : NULL;
    PyObject *result = z ? PyTuple_Pack(3, x, y, z) : NULL;
    if (!x) {
        Py_XDECREF(a);
        Py_XDECREF(b);
        Py_XDECREF(c);
    }
    Py_XDECREF(x);
    Py_XDECREF(y);
    Py_XDECREF(z);
    return result;
}

#define BOTH(a, function, ...)             \
    if (kind(a) == F32)                    \
        function##_f32(__VA_ARGS__);       \
    else                                   \
        function##_f64(__VA_ARGS__)
#define P(x) ((void *)(x))

/* ---- normalisations */
static PyObject *py_batch_norm(PyObject *self, PyObject *args) { /* input, weight, bias, running_mean, running_var, training, momentum, eps */
    Array *a = floats_of(argument(args, 0));
    NONE_UNLESS(a && a->nd >= 2);
    const void *weight, *bias, *mean, *variance;
    double eps;
    i64 c = a->shape[1], samples = a->shape[0], n = count_of(a) / (samples * c);
    int training = argument(args, 5) == Py_True;
    NONE_UNLESS(row_of(argument(args, 1), a, c, &weight) && row_of(argument(args, 2), a, c, &bias) && real_of(argument(args, 7), &eps));
    NONE_UNLESS(row_of(argument(args, 3), a, c, &mean) && row_of(argument(args, 4), a, c, &variance));
    NONE_UNLESS(training ? !mean && !variance : mean && variance);
    Py_ssize_t kept[1] = {training ? (Py_ssize_t)c : 0};
    Array *y = new_array(a->nd, a->shape, kind(a)), *means = new_array(1, kept, kind(a)), *scales = new_array(1, kept, kind(a));
    if (y && means && scales && n == 1) {
        double *room = PyMem_Malloc(sizeof(double) * 2 * (size_t)c);
        if (room) {
            BOTH(a, column_norm, P(a->data), samples, c, weight, bias, mean, variance, eps, P(y->data), training ? P(means->data) : NULL,
                 training ? P(scales->data) : NULL, room);
        } else {
            Py_CLEAR(y);
            PyErr_NoMemory();
        }
        PyMem_Free(room);
    } else if (y && means && scales) {
        BOTH(a, batch_norm, P(a->data), samples, c, n, weight, bias, mean, variance, eps, P(y->data), training ? P(means->data) : NULL,
             training ? P(scales->data) : NULL);
    }
    return three_of(y, means, scales);
}

static PyObject *py_group_norm(PyObject *self, PyObject *args) { /* input, weight, bias, N, C, HxW, group, eps */
    Array *a = floats_of(argument(args, 0));
    const void *weight, *bias;
    double eps;
    Py_ssize_t n, c, inside, groups;
    NONE_UNLESS(a && a->nd >= 2 && integer_of(argument(args, 3), &n) && integer_of(argument(args, 4), &c) && integer_of(argument(args, 5), &inside));
    NONE_UNLESS(integer_of(argument(args, 6), &groups) && groups > 0 && c > 0 && c % groups == 0 && n * c * inside == count_of(a));
    NONE_UNLESS(a->shape[0] == n && a->shape[1] == c && row_of(argument(args, 1), a, c, &weight) && row_of(argument(args, 2), a, c, &bias) &&
                real_of(argument(args, 7), &eps));
    Py_ssize_t kept[2] = {n, groups};
    Array *y = new_array(a->nd, a->shape, kind(a)), *means = new_array(2, kept, kind(a)), *scales = new_array(2, kept, kind(a));
    if (y && means && scales) {
        BOTH(a, group_norm, P(a->data), n, groups, c / groups, inside, weight, bias, eps, P(y->data), P(means->data), P(scales->data));
    }
    return three_of(y, means, scales);
}

static PyObject *py_glu(PyObject *self, PyObject *args) { /* self, dim */
    Array *a = floats_of(argument(args, 0));
    NONE_UNLESS(a && a->nd);
    int d = dim_of(argument(args, 1), a);
    NONE_UNLESS(d >= 0 && a->shape[d] % 2 == 0);
    Py_ssize_t shape[MOST_DIMS], outer = 1;
    memcpy(shape, a->shape, sizeof(*shape) * (size_t)a->nd);
    shape[d] /= 2;
    for (int e = 0; e < d; e++) outer *= a->shape[e];
    Array *y = new_array(a->nd, shape, kind(a));
    if (!y) return NULL;
    BOTH(a, gated, P(a->data), P(y->data), outer, count_of(a) / outer / 2);
    return tensor_of(y);
}

/* grad_output, self, dim: of any number of elements, in one pass */
static PyObject *py_glu_backward(PyObject *self, PyObject *args) {
    Array *g = array_of(argument(args, 0)), *a = array_of(argument(args, 1));
    NONE_UNLESS(a && g && a->nd && g->nd == a->nd && kind(a) <= F64 && kind(g) == kind(a) && count_of(a) > 0);
    int d = dim_of(argument(args, 2), a);
    NONE_UNLESS(d >= 0 && a->shape[d] % 2 == 0);
    Py_ssize_t outer = 1;
    for (int e = 0; e < a->nd; e++) {
        NONE_UNLESS(g->shape[e] == (e == d ? a->shape[e] / 2 : a->shape[e]));
        if (e < d) outer *= a->shape[e];
    }
    Array *y = new_array(a->nd, a->shape, kind(a));
    if (!y) return NULL;
    BOTH(a, gated_slopes, P(g->data), P(a->data), P(y->data), outer, count_of(a) / outer / 2);
    return tensor_of(y);
}

static PyObject *py_cross(PyObject *self, PyObject *args) { /* self, other, dim: matrices in any order of memory, along their last dimension */
    Array *a = strided_of(argument(args, 0)), *b = strided_of(argument(args, 1));
    NONE_UNLESS(a && b && kind(a) <= F64 && kind(a) == kind(b) && a->nd == 2 && b->nd == 2 && a->shape[0] == b->shape[0] && a->shape[1] == 3 &&
                b->shape[1] == 3);
    NONE_UNLESS(dim_of(argument(args, 2), a) == 1 && count_of(a) > 0 && count_of(a) <= MOST_TAKEN && a->strides[1] == size_of(a) && b->strides[1] == size_of(b));
    NONE_UNLESS(a->strides[0] >= 3 * size_of(a) && b->strides[0] >= 3 * size_of(b) && a->strides[0] % size_of(a) == 0 && b->strides[0] % size_of(b) == 0);
    Py_ssize_t x[3] = {a->strides[0] / size_of(a), 1, 0}, z[3] = {b->strides[0] / size_of(b), 1, 0};
    Array *y = new_array(2, a->shape, kind(a));
    if (!y) return NULL;
    BOTH(a, cross, P(a->data), P(b->data), P(y->data), a->shape[0], 1, x, z);
    return tensor_of(y);
}

/* ---- losses */
/* Losses of rows as they are asked for: none, mean or sum (0, 1, 2); `alone` is a loss of one row without a dimension. */
static PyObject *reduced(const double *losses, i64 rows, Py_ssize_t reduction, int alone, int k) {
    Py_ssize_t shape[1] = {(Py_ssize_t)rows};
    Array *r = new_array(reduction || alone ? 0 : 1, shape, k);
    if (!r) return NULL;
    double sum = 0;
    for (i64 i = 0; i < rows; i++) {
        sum += losses[i];
        if (reduction) continue;
        if (k == F32)
            ((float *)r->data)[i] = (float)losses[i];
        else
            ((double *)r->data)[i] = losses[i];
    }
    if (reduction == 1) sum /= (double)rows;
    if (reduction && k == F32)
        *(float *)r->data = (float)sum;
    else if (reduction)
        *(double *)r->data = sum;
    return tensor_of(r);
}

/* Whether every class is one of n, negative ones included where they end a list. */
static int are_classes(const Array *t, i64 n, int may_end) {
    for (i64 i = 0; i < count_of(t); i++) {
        i64 v = ((const i64 *)t->data)[i];
        if (v >= n || (v < 0 && !(may_end && v == -1))) return 0;
    }
    return 1;
}

static PyObject *py_multi_margin(PyObject *self, PyObject *args) { /* self, target, p, margin, weight, reduction */
    Array *a = floats_of(argument(args, 0)), *t = array_of(argument(args, 1));
    const void *weight;
    double p, margin;
    Py_ssize_t reduction;
    NONE_UNLESS(a && t && kind(t) == I64 && a->nd == 2 && t->nd == 1 && t->shape[0] == a->shape[0] && are_classes(t, a->shape[1], 0));
    NONE_UNLESS(real_of(argument(args, 2), &p) && (p == 1 || p == 2) && real_of(argument(args, 3), &margin));
    NONE_UNLESS(row_of(argument(args, 4), a, a->shape[1], &weight) && integer_of(argument(args, 5), &reduction) && reduction >= 0 && reduction <= 2);
    double *losses = PyMem_Malloc(sizeof(double) * (size_t)a->shape[0]);
    if (!losses) return PyErr_NoMemory();
    BOTH(a, margins, P(a->data), P(t->data), a->shape[0], a->shape[1], (int)p, margin, weight, losses);
    PyObject *result = reduced(losses, a->shape[0], reduction, 0, kind(a));
    PyMem_Free(losses);
    return result;
}

static PyObject *py_multilabel_margin(PyObject *self, PyObject *args) { /* self, target, reduction */
    Array *a = floats_of(argument(args, 0)), *t = array_of(argument(args, 1));
    Py_ssize_t reduction;
    NONE_UNLESS(a && t && kind(t) == I64 && a->nd == 2 && t->nd == 2 && t->shape[0] == a->shape[0] && t->shape[1] == a->shape[1]);
    NONE_UNLESS(are_classes(t, a->shape[1], 1) && integer_of(argument(args, 2), &reduction) && reduction >= 0 && reduction <= 2);
    double *losses = PyMem_Malloc(sizeof(double) * (size_t)a->shape[0] + (size_t)a->shape[1]);
    if (!losses) return PyErr_NoMemory();
    BOTH(a, label_margins, P(a->data), P(t->data), a->shape[0], a->shape[1], (char *)(losses + a->shape[0]), losses);
    PyObject *result = reduced(losses, a->shape[0], reduction, 0, kind(a));
    PyMem_Free(losses);
    return result;
}

static PyObject *two_of(Array *a, Array *b) {
    PyObject *x = a && b ? tensor_of(a) : NULL, *y = x ? tensor_of(b) : NULL, *result = y ? PyTuple_Pack(2, x, y) : NULL;
    if (!x) {
        Py_XDECREF(a);
        Py_XDECREF(b);
    }
    Py_XDECREF(x);
    Py_XDECREF(y);
    return result;
}

static PyObject *py_margin_rows(PyObject *self, PyObject *args) { /* self, target, margin, weight */
    Array *a = floats_of(argument(args, 0)), *t = array_of(argument(args, 1));
    const void *weight;
    double margin;
    NONE_UNLESS(a && t && kind(t) == I64 && a->nd == 2 && t->nd == 1 && t->shape[0] == a->shape[0] && are_classes(t, a->shape[1], 0));
    NONE_UNLESS(real_of(argument(args, 2), &margin) && row_of(argument(args, 3), a, a->shape[1], &weight));
    Array *losses = new_array(1, a->shape, kind(a)), *slopes = losses ? new_array(2, a->shape, kind(a)) : NULL;
    if (slopes) {
        BOTH(a, margin_slopes, P(a->data), P(t->data), a->shape[0], a->shape[1], margin, weight, P(losses->data), P(slopes->data));
    }
    return two_of(losses, slopes);
}

static PyObject *py_label_rows(PyObject *self, PyObject *args) { /* self, target */
    Array *a = floats_of(argument(args, 0)), *t = array_of(argument(args, 1));
    NONE_UNLESS(a && t && kind(t) == I64 && a->nd == 2 && t->nd == 2 && t->shape[0] == a->shape[0] && t->shape[1] == a->shape[1]);
    NONE_UNLESS(are_classes(t, a->shape[1], 1));
    char *is_wanted = PyMem_Malloc((size_t)a->shape[1]);
    if (!is_wanted) return PyErr_NoMemory();
    Array *losses = new_array(1, a->shape, kind(a)), *slopes = losses ? new_array(2, a->shape, kind(a)) : NULL;
    if (slopes) {
        BOTH(a, label_slopes, P(a->data), P(t->data), a->shape[0], a->shape[1], is_wanted, P(losses->data), P(slopes->data));
    }
    PyMem_Free(is_wanted);
    return two_of(losses, slopes);
}

/* ---- connectionist temporal classification */
/* log_probs, targets, input_lengths, target_lengths from an argument on, the blank at another: 0 where they are refused, or many. */
static int sequences_of(PyObject *args, Py_ssize_t first, Py_ssize_t blank, Sequences *q) {
    Array *a = q->scores = floats_of(argument(args, first)), *t = q->labels = array_of(argument(args, first + 1));
    Array *steps = q->steps = array_of(argument(args, first + 2)), *lengths = q->lengths = array_of(argument(args, first + 3));
    if (!(a && t && steps && lengths && a->nd == 3 && t->nd == 2 && kind(t) == I64 && kind(steps) == I64 && kind(lengths) == I64)) return 0;
    q->time = a->shape[0], q->samples = a->shape[1], q->classes = a->shape[2], q->width = t->shape[1], q->count = 2 * q->width + 1;
    if (steps->nd != 1 || lengths->nd != 1 || steps->shape[0] != q->samples || lengths->shape[0] != q->samples || t->shape[0] != q->samples) return 0;
    if (!(q->width && integer_of(argument(args, blank), &q->blank) && q->blank >= 0 && q->blank < q->classes && are_classes(t, q->classes, 0))) return 0;
    for (i64 i = 0; i < q->samples; i++) {
        const i64 n = ((i64 *)steps->data)[i], l = ((i64 *)lengths->data)[i];
        if (n <= 0 || n > q->time || l < 0 || l > q->width) return 0;
    }
    return q->samples * q->time * q->count <= 32 * MOST_TAKEN;
}

static PyObject *py_ctc(PyObject *self, PyObject *args) { /* log_probs, targets, input_lengths, target_lengths, blank, zero_infinity */
    Sequences q;
    NONE_UNLESS(sequences_of(args, 0, 4, &q));
    const int k = kind(q.scores);
    const Py_ssize_t shape[3] = {(Py_ssize_t)q.samples, (Py_ssize_t)q.time, (Py_ssize_t)q.count};
    void *room = PyMem_Malloc((size_t)(5 * (q.count + 2)) * sizeof(double));
    if (!room) return PyErr_NoMemory();
    Array *losses = new_array(1, shape, k), *alpha = losses ? new_array(3, shape, k) : NULL;
    if (alpha) {
        BOTH(q.scores, alignments, &q, P(losses->data), P(alpha->data), room);
    }
    PyMem_Free(room);
    return two_of(losses, alpha);
}

/* grad, log_probs, targets, input_lengths, target_lengths, neg_log_likelihood, log_alpha, blank, zero_infinity */
static PyObject *py_ctc_backward(PyObject *self, PyObject *args) {
    Sequences q;
    NONE_UNLESS(sequences_of(args, 1, 7, &q));
    Array *g = array_of(argument(args, 0)), *losses = array_of(argument(args, 5)), *alpha = array_of(argument(args, 6));
    const int k = kind(q.scores), forgives = argument(args, 8) == Py_True;
    NONE_UNLESS(g && losses && alpha && kind(g) == k && kind(losses) == k && kind(alpha) == k && alpha->nd == 3 && alpha->shape[2] == q.count);
    NONE_UNLESS(g->nd == 1 && g->shape[0] == q.samples && losses->nd == 1 && losses->shape[0] == q.samples);
    NONE_UNLESS(alpha->shape[0] == q.samples && alpha->shape[1] == q.time);
    void *room = PyMem_Malloc((size_t)(5 * (q.count + 2)) * sizeof(double));
    if (!room) return PyErr_NoMemory();
    Array *r = new_array(3, q.scores->shape, k);
    if (r) {
        BOTH(q.scores, all_alignment_slopes, &q, P(losses->data), P(alpha->data), P(g->data), forgives, P(r->data), room);
    }
    PyMem_Free(room);
    return r ? tensor_of(r) : NULL;
}

/* ---- negative log likelihood */
typedef struct {
    Array *target;
    const void *weight;
    i64 samples, classes, n;
    Py_ssize_t reduction, ignored;
} Classes;

/* target, weight, reduction, ignore_index from an argument on, beside scores of some dtype: 0 where they are refused. */
static int classes_of(const Array *scores, PyObject *args, Py_ssize_t first, Classes *c) {
    Array *t = c->target = array_of(argument(args, first));
    if (!scores || kind(scores) > F64 || (scores->nd != 2 && scores->nd != 4) || !t || kind(t) != I64 || t->nd != scores->nd - 1) return 0;
    c->samples = scores->shape[0], c->classes = scores->shape[1], c->n = scores->nd == 4 ? scores->shape[2] * scores->shape[3] : 1;
    if (t->shape[0] != c->samples || (t->nd == 3 && (t->shape[1] != scores->shape[2] || t->shape[2] != scores->shape[3]))) return 0;
    if (!row_of(argument(args, first + 1), scores, c->classes, &c->weight)) return 0;
    if (!integer_of(argument(args, first + 2), &c->reduction) || c->reduction < 0 || c->reduction > 2) return 0;
    if (!integer_of(argument(args, first + 3), &c->ignored) || count_of(scores) == 0) return 0;
    const i64 *wanted = (const i64 *)t->data;
    for (i64 i = 0; i < count_of(t); i++)
        if (wanted[i] != c->ignored && (wanted[i] < 0 || wanted[i] >= c->classes)) return 0;
    return !is_deterministic(process);
}

static Array *single_of(double value, int k) {
    Array *r = new_array(0, NULL, k);
    if (!r) return NULL;
    if (k == F32)
        *(float *)r->data = (float)value;
    else
        *(double *)r->data = value;
    return r;
}

static PyObject *py_nll(PyObject *self, PyObject *args) { /* self, target, weight, reduction, ignore_index */
    Array *a = array_of(argument(args, 0));
    Classes c;
    NONE_UNLESS(classes_of(a, args, 1, &c));
    const int k = kind(a);
    double sum, total;
    Array *each = c.reduction ? NULL : new_array(c.target->nd, c.target->shape, k);
    if (!c.reduction && !each) return NULL;
    BOTH(a, likelihoods, P(a->data), P(c.target->data), c.samples, c.classes, c.n, c.weight, c.ignored, each ? P(each->data) : NULL, &sum, &total);
    if (each) return two_of(each, single_of(0, k));
    return two_of(single_of(c.reduction == 1 ? (total ? sum / total : NAN) : sum, k), single_of(total, k));
}

/* grad_output, self, target, weight, reduction, ignore_index, total_weight */
static PyObject *py_nll_backward(PyObject *self, PyObject *args) {
    Array *g = array_of(argument(args, 0)), *a = array_of(argument(args, 1)), *total = array_of(argument(args, 6));
    Classes c;
    NONE_UNLESS(g && total && classes_of(a, args, 2, &c) && kind(g) == kind(a) && kind(total) == kind(a) && total->nd == 0);
    NONE_UNLESS(c.reduction ? g->nd == 0 : g->nd == c.target->nd && count_of(g) == count_of(c.target));
    const int k = kind(a);
    Array *r = new_array(a->nd, a->shape, k);
    if (!r) return NULL;
    if (k == F32)
        likelihood_slopes_f32(P(g->data), !c.reduction, P(c.target->data), c.samples, c.classes, c.n, c.weight, c.ignored, c.reduction == 1,
                              *(float *)total->data, P(r->data));
    else
        likelihood_slopes_f64(P(g->data), !c.reduction, P(c.target->data), c.samples, c.classes, c.n, c.weight, c.ignored, c.reduction == 1,
                              *(double *)total->data, P(r->data));
    return tensor_of(r);
}

/* ---- losses of elements, their mean or their sum: self, target, reduction (1 mean, 2 sum), where the parabola ends */
typedef struct {
    const Array *x, *y;
    double *sums, until;
    int is_square;
} Losses;

static void loss_pieces(long first, long last, void *const *arguments) {
    const Losses *j = arguments[0];
    i64 n = count_of(j->x);
    for (i64 p = first; p < last; p++) {
        i64 at = p * PIECE, many = n - at < PIECE ? n - at : PIECE;
        if (kind(j->x) == F32)
            j->sums[p] = loss_sum_f32((const float *)j->x->data + at, (const float *)j->y->data + at, many, j->is_square, (float)j->until);
        else
            j->sums[p] = loss_sum_f64((const double *)j->x->data + at, (const double *)j->y->data + at, many, j->is_square, j->until);
    }
}

static PyObject *loss_of(PyObject *args, int is_square, double until, double scale) {
    Array *x = array_of(argument(args, 0)), *y = array_of(argument(args, 1));
    NONE_UNLESS(x && y && kind(x) <= F64 && kind(x) == kind(y) && x->nd == y->nd && has_elements(x));
    NONE_UNLESS(!x->nd || !memcmp(x->shape, y->shape, sizeof(*x->shape) * (size_t)x->nd));
    Py_ssize_t reduction;
    NONE_UNLESS(integer_of(argument(args, 2), &reduction) && (reduction == 1 || reduction == 2));
    i64 n = count_of(x), pieces = (n + PIECE - 1) / PIECE;
    double *sums = PyMem_Malloc(sizeof(double) * (size_t)pieces), total = 0;
    Array *r = sums ? new_array(0, NULL, kind(x)) : (Array *)PyErr_NoMemory();
    if (r) {
        Losses job = {x, y, sums, until, is_square};
        void *const arguments[] = {&job};
        over_parts(loss_pieces, pieces, n, arguments, x, y, NULL);
        for (i64 p = 0; p < pieces; p++) total += sums[p];
        total = (reduction == 1 ? total / (double)n : total) / scale;
        if (kind(x) == F32)
            *(float *)r->data = (float)total;
        else
            *(double *)r->data = total;
    }
    PyMem_Free(sums);
    return tensor_of(r);
}

static PyObject *py_mse(PyObject *self, PyObject *args) { return loss_of(args, 1, 0, 1); }
static PyObject *py_huber(PyObject *self, PyObject *args) {
    double delta;
    NONE_UNLESS(real_of(argument(args, 3), &delta) && delta > 0);
    return loss_of(args, 0, delta, 1);
}
static PyObject *py_smooth(PyObject *self, PyObject *args) { /* Huber's, divided by where it ends */
    double beta;
    NONE_UNLESS(real_of(argument(args, 3), &beta) && beta > 0 && (beta == 1 || !is_deterministic(process)));
    return loss_of(args, 0, beta, beta);
}

/* ---- few elements: their mean or their sum (1, 2) */
static PyObject *total_of(double sum, i64 n, Py_ssize_t reduction, int k) {
    double total[1] = {reduction == 1 ? sum / (double)n : sum};
    return reduced(total, 1, 0, 1, k);
}

/* Two arrays of floats of one shape, and whether a mean or a sum is wanted of them. */
static int are_paired(const Array *x, const Array *y, PyObject *value, Py_ssize_t *reduction) {
    return x && y && kind(x) <= F64 && kind(x) == kind(y) && x->nd == y->nd && has_elements(x) && count_of(x) <= MOST_FEW &&
           (!x->nd || !memcmp(x->shape, y->shape, sizeof(*x->shape) * (size_t)x->nd)) && integer_of(value, reduction) &&
           (*reduction == 1 || *reduction == 2);
}

static PyObject *py_probabilities(PyObject *self, PyObject *args) { /* self, target, weight, reduction */
    Array *x = array_of(argument(args, 0)), *y = array_of(argument(args, 1));
    Py_ssize_t reduction;
    NONE_UNLESS(argument(args, 2) == Py_None && are_paired(x, y, argument(args, 3), &reduction));
    const i64 n = count_of(x);
    const double sum = kind(x) == F32 ? probability_sum_f32(P(x->data), P(y->data), n) : probability_sum_f64(P(x->data), P(y->data), n);
    NONE_UNLESS(sum >= 0);
    return total_of(sum, n, reduction, kind(x));
}

static PyObject *py_hinge(PyObject *self, PyObject *args) { /* self, target, margin, reduction */
    Array *x = array_of(argument(args, 0)), *y = array_of(argument(args, 1));
    Py_ssize_t reduction;
    double margin;
    NONE_UNLESS(real_of(argument(args, 2), &margin) && are_paired(x, y, argument(args, 3), &reduction));
    const i64 n = count_of(x);
    const double sum = kind(x) == F32 ? hinge_sum_f32(P(x->data), P(y->data), n, (float)margin) : hinge_sum_f64(P(x->data), P(y->data), n, margin);
    return total_of(sum, n, reduction, kind(x));
}

static PyObject *py_cross_entropy(PyObject *self, PyObject *args) { /* self, target, weight, reduction, ignore_index, label_smoothing */
    Array *a = floats_of(argument(args, 0)), *t = array_of(argument(args, 1));
    Py_ssize_t reduction, ignored;
    double smoothing;
    NONE_UNLESS(a && t && a->nd == 2 && t->nd == 1 && kind(t) == I64 && t->shape[0] == a->shape[0] && argument(args, 2) == Py_None);
    NONE_UNLESS(integer_of(argument(args, 3), &reduction) && (reduction == 1 || reduction == 2) && integer_of(argument(args, 4), &ignored));
    NONE_UNLESS(ignored < 0 && real_of(argument(args, 5), &smoothing) && smoothing == 0 && are_classes(t, a->shape[1], 0));
    const double sum = kind(a) == F32 ? entropy_sum_f32(P(a->data), P(t->data), a->shape[0], a->shape[1])
                                      : entropy_sum_f64(P(a->data), P(t->data), a->shape[0], a->shape[1]);
    return total_of(sum, a->shape[0], reduction, kind(a));
}

/* log_probs, targets, input_lengths, target_lengths, blank, reduction, zero_infinity */
static PyObject *py_ctc_reduced(PyObject *self, PyObject *args) {
    Py_ssize_t reduction;
    NONE_UNLESS(integer_of(argument(args, 5), &reduction) && reduction >= 0 && reduction <= 2);
    PyObject *given = PyTuple_Pack(6, argument(args, 0), argument(args, 1), argument(args, 2), argument(args, 3), argument(args, 4), argument(args, 6));
    PyObject *found = given ? py_ctc(self, given) : NULL;
    Py_XDECREF(given);
    if (!found || found == Py_None) return found;
    Array *losses = array_of(PyTuple_GET_ITEM(found, 0)), *lengths = array_of(argument(args, 3));
    const int k = kind(losses);
    const i64 n = losses->shape[0];
    double *each = PyMem_Malloc(sizeof(double) * (size_t)n);
    for (i64 i = 0; each && i < n; i++) {
        each[i] = k == F32 ? (double)((float *)losses->data)[i] : ((double *)losses->data)[i];
        if (argument(args, 6) == Py_True && each[i] == INFINITY) each[i] = 0;
        const i64 length = ((const i64 *)lengths->data)[i];
        if (reduction == 1) each[i] /= (double)(length < 1 ? 1 : length);
    }
    PyObject *result = each ? reduced(each, n, reduction, 0, k) : PyErr_NoMemory();
    PyMem_Free(each);
    Py_DECREF(found);
    return result;
}

/* input, size, alpha, beta, k */
static PyObject *py_local_response_norm(GIVEN) {
    static const char *const names[] = {"input", "size", "alpha", "beta", "k"};
    PyObject *v[5];
    Py_ssize_t size;
    double number[3] = {1e-4, 0.75, 1};
    NONE_UNLESS(read_call(given, count, names, 5, 5, v) && v[0] && v[1] && integer_of(v[1], &size) && size > 0);
    for (int i = 0; i < 3; i++) NONE_UNLESS(!v[2 + i] || real_of(v[2 + i], number + i));
    Array *a = bare_rows(v[0]) ? floats_of(v[0]) : NULL;
    NONE_UNLESS(a && a->nd >= 3 && count_of(a) <= MOST_FEW);
    Array *r = new_array(a->nd, a->shape, kind(a));
    if (!r) return NULL;
    const i64 n = count_of(a) / (a->shape[0] * a->shape[1]);
    if (kind(a) == F32)
        response_norm_f32(P(a->data), P(r->data), a->shape[0], a->shape[1], n, size, (float)number[0], (float)number[1], (float)number[2]);
    else
        response_norm_f64(P(a->data), P(r->data), a->shape[0], a->shape[1], n, size, number[0], number[1], number[2]);
    return tensor_of(r);
}

/* By the operator that each computes, or the public function that it stands for. */
static PyMethodDef methods[] = {
    {"use_arrays", use_arrays, METH_VARARGS, "use_arrays(ndarray, [(number, dtype), ...], make_tensor)"},
    {"use_threads", use_threads, METH_VARARGS, "use_threads(address, function)"},
    {"use_process", use_process, METH_VARARGS, "use_process(process, cpu, Tensor, ambient, untracked)"},
    {"mse_loss.default", py_mse, METH_O, NULL},
    {"huber_loss.default", py_huber, METH_O, NULL},
    {"smooth_l1_loss.default", py_smooth, METH_O, NULL},
    {"native_batch_norm.default", py_batch_norm, METH_O, NULL},
    {"native_group_norm.default", py_group_norm, METH_O, NULL},
    {"glu.default", py_glu, METH_O, NULL},
    {"glu_backward.default", py_glu_backward, METH_O, NULL},
    {"linalg_cross.default", py_cross, METH_O, NULL},
    {"multi_margin_loss.default", py_multi_margin, METH_O, NULL},
    {"_multi_margin_rows.default", py_margin_rows, METH_O, NULL},
    {"_multilabel_margin_rows.default", py_label_rows, METH_O, NULL},
    {"multilabel_margin_loss.default", py_multilabel_margin, METH_O, NULL},
    {"_ctc_loss.Tensor", py_ctc, METH_O, NULL},
    {"_ctc_loss_backward.Tensor", py_ctc_backward, METH_O, NULL},
    {"nll_loss_forward.default", py_nll, METH_O, NULL},
    {"nll_loss2d_forward.default", py_nll, METH_O, NULL},
    {"nll_loss_backward.default", py_nll_backward, METH_O, NULL},
    {"nll_loss2d_backward.default", py_nll_backward, METH_O, NULL},
    {"ctc_loss.Tensor", py_ctc_reduced, METH_O, NULL},
    {"binary_cross_entropy.default", py_probabilities, METH_O, NULL},
    {"hinge_embedding_loss.default", py_hinge, METH_O, NULL},
    {"cross_entropy_loss.default", py_cross_entropy, METH_O, NULL},
    {"nn.functional.local_response_norm", FRONT(py_local_response_norm), NULL},
    {NULL, NULL, 0, NULL},
};

MODULE(_losses)
