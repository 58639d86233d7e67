/* Products of small matrices in C, one, several in a row, in batches, and what is made of them: covariances.
 *
 * In: the canonical arguments of an operator as a tuple, or those of a public function as they are spelled (native_fronts.h). Out: the
 * result as a row-major tensor, nothing recorded; or None where the call is not of that kind (another dtype than float32 and float64, memory
 * that is not row-major, so much work that BLAS is quicker, shapes that broadcast or are refused): the caller then runs the operator's rules.
 */
#include "native_fronts.h"
#include "native_lanes.h"
#include <math.h>

enum { MOST_WORK = 1 << 16, MOST_FACTORS = 8 };

#define T float
#define NAME(f) f##_f32
#define SQRT sqrtf
#define EXP f_exp
#include "native_chains.h"
#define T double
#define NAME(f) f##_f64
#define SQRT sqrt
#define EXP exp
#include "native_chains.h"

static Array *floats_of(PyObject *tensor, int nd) {
    Array *a = array_of(tensor);
    return a && kind(a) <= F64 && a->nd == nd && has_elements(a) ? a : NULL;
}

static int is_little_work(i64 many, i64 m, i64 k, i64 n) {
    if (is_deterministic(process)) return 0;
    return many <= MOST_WORK && m <= MOST_WORK && k <= MOST_WORK && n <= MOST_WORK && many * m <= MOST_WORK && k * n <= MOST_WORK && many * m * k * n <= MOST_WORK;
}

static void multiply(int k, const char *a, const char *b, char *c, const Py_ssize_t *size, double alpha, double beta, const char *y) {
    if (k == F32)
        multiply_f32((const float *)a, (const float *)b, (float *)c, size[0], size[1], size[2], (float)alpha, (float)beta, (const float *)y);
    else
        multiply_f64((const double *)a, (const double *)b, (double *)c, size[0], size[1], size[2], alpha, beta, (const double *)y);
}

/* ---- batches: self, mat2; self, batch1, batch2, beta, alpha */
static PyObject *batches(Array *a, Array *b, Array *y, double alpha, double beta) {
    NONE_UNLESS(a && b && kind(a) == kind(b) && a->shape[0] == b->shape[0] && a->shape[2] == b->shape[1]);
    const Py_ssize_t many = a->shape[0], size[3] = {a->shape[1], a->shape[2], b->shape[2]}, shape[3] = {many, size[0], size[2]};
    NONE_UNLESS(is_little_work(many, size[0], size[1], size[2]) && (size[2] >= 32 || many * size[0] * size[1] * size[2] <= MOST_WORK / 8)); /* short rows */
    NONE_UNLESS(!y || (kind(y) == kind(a) && !memcmp(y->shape, shape, sizeof shape)));
    Array *r = new_array(3, shape, kind(a));
    const i64 step = size_of(a);
    for (i64 i = 0; r && i < many; i++)
        multiply(kind(a), a->data + i * size[0] * size[1] * step, b->data + i * size[1] * size[2] * step, r->data + i * size[0] * size[2] * step, size, alpha,
                 beta, y && beta != 0 ? y->data + i * size[0] * size[2] * step : NULL);
    return tensor_of(r);
}

static PyObject *py_bmm(PyObject *self, PyObject *args) { return batches(floats_of(argument(args, 0), 3), floats_of(argument(args, 1), 3), NULL, 1, 0); }

static PyObject *py_baddbmm(PyObject *self, PyObject *args) {
    Array *y = floats_of(argument(args, 0), 3);
    double alpha, beta;
    NONE_UNLESS(y && real_of(argument(args, 3), &beta) && real_of(argument(args, 4), &alpha));
    return batches(floats_of(argument(args, 1), 3), floats_of(argument(args, 2), 3), y, alpha, beta);
}

/* ---- several matrices in a row, in the order of the fewest multiplications */
typedef struct {
    Array *factors[MOST_FACTORS];
    Py_ssize_t sizes[MOST_FACTORS + 1], split[MOST_FACTORS][MOST_FACTORS];
    int kind;
} Chain;

static i64 find_order(Chain *c, int n) {
    i64 cost[MOST_FACTORS][MOST_FACTORS] = {{0}};
    for (int length = 1; length < n; length++)
        for (int i = 0; i + length < n; i++) {
            int j = i + length;
            cost[i][j] = INT64_MAX;
            for (int k = i; k < j; k++) {
                i64 here = cost[i][k] + cost[k + 1][j] + (i64)c->sizes[i] * c->sizes[k + 1] * c->sizes[j + 1];
                if (here < cost[i][j]) cost[i][j] = here, c->split[i][j] = k;
            }
        }
    return cost[0][n - 1];
}

/* The product of factors i to j: a new reference. */
static Array *multiplied(const Chain *c, int i, int j) {
    if (i == j) return (Array *)Py_NewRef(c->factors[i]);
    const int k = (int)c->split[i][j];
    const Py_ssize_t size[3] = {c->sizes[i], c->sizes[k + 1], c->sizes[j + 1]}, shape[2] = {size[0], size[2]};
    Array *left = multiplied(c, i, k), *right = left ? multiplied(c, k + 1, j) : NULL, *r = right ? new_array(2, shape, c->kind) : NULL;
    if (r) multiply(c->kind, left->data, right->data, r->data, size, 1, 0, NULL);
    Py_XDECREF(left);
    Py_XDECREF(right);
    return r;
}

static PyObject *py_multi_dot(PyObject *self, PyObject *args) { /* tensors: matrices alone */
    PyObject *tensors = argument(args, 0);
    NONE_UNLESS(PyTuple_Check(tensors) || PyList_Check(tensors));
    const Py_ssize_t n = PySequence_Fast_GET_SIZE(tensors);
    NONE_UNLESS(n > 1 && n <= MOST_FACTORS);
    Chain c;
    for (int i = 0; i < n; i++) {
        Array *a = c.factors[i] = floats_of(PySequence_Fast_GET_ITEM(tensors, i), 2);
        NONE_UNLESS(a && kind(a) == kind(c.factors[0]) && a->shape[0] <= MOST_WORK && a->shape[1] <= MOST_WORK && (!i || a->shape[0] == c.sizes[i]));
        c.sizes[i] = a->shape[0], c.sizes[i + 1] = a->shape[1];
    }
    c.kind = kind(c.factors[0]);
    NONE_UNLESS(find_order(&c, (int)n) <= MOST_WORK && !is_deterministic(process));
    return tensor_of(multiplied(&c, 0, (int)n - 1));
}

/* ---- a, b, dims: the last `dims` of one with the first of the other */
static PyObject *py_tensordot(GIVEN) {
    static const char *const names[] = {"a", "b", "dims", "out"};
    PyObject *v[4];
    Py_ssize_t dims = 2, size[3] = {1, 1, 1}, shape[16];
    NONE_UNLESS(read_call(given, count, names, 4, 4, v) && is_absent(v[3]) && (!v[2] || integer_of(v[2], &dims)));
    Array *a = bare_rows(v[0]), *b = bare_rows(v[1]);
    NONE_UNLESS(a && b && kind(a) <= F64 && kind(a) == kind(b) && has_elements(a) && has_elements(b) && a->nd <= 8 && b->nd <= 8);
    NONE_UNLESS(dims > 0 && dims <= a->nd && dims <= b->nd);
    const int free = a->nd - (int)dims, rest = b->nd - (int)dims;
    for (int d = 0; d < free; d++) size[0] *= shape[d] = a->shape[d];
    for (int d = 0; d < dims; d++) {
        NONE_UNLESS(a->shape[free + d] == b->shape[d]);
        size[1] *= b->shape[d];
    }
    for (int d = 0; d < rest; d++) size[2] *= shape[free + d] = b->shape[dims + d];
    NONE_UNLESS(is_little_work(1, size[0], size[1], size[2]));
    Array *r = new_array(free + rest, shape, kind(a));
    if (r) multiply(kind(a), a->data, b->data, r->data, size, 1, 0, NULL);
    return tensor_of(r);
}

/* ---- covariances of rows, or of all elements as one */
static PyObject *covariance(Array *a, double correction, int is_correlation) {
    NONE_UNLESS(a && kind(a) <= F64 && a->nd > 0 && a->nd <= 2 && has_elements(a));
    const Py_ssize_t m = a->nd == 2 ? a->shape[0] : 1, n = a->shape[a->nd - 1], shape[2] = {m, m};
    NONE_UNLESS(is_little_work(1, m, m, n) && (double)n - correction > 0);
    char *room = PyMem_Malloc((size_t)((n + 1) * m * size_of(a)));
    if (!room) return PyErr_NoMemory();
    Array *r = new_array(m == 1 ? 0 : 2, shape, kind(a));
    if (r && kind(a) == F32) {
        covariance_f32((const float *)a->data, m, n, (double)n - correction, (float *)room, (float *)r->data);
        if (is_correlation) correlate_f32((float *)r->data, m, (float *)room);
    } else if (r) {
        covariance_f64((const double *)a->data, m, n, (double)n - correction, (double *)room, (double *)r->data);
        if (is_correlation) correlate_f64((double *)r->data, m, (double *)room);
    }
    PyMem_Free(room);
    return tensor_of(r);
}

static PyObject *py_cov(PyObject *self, PyObject *args) { /* self, correction, fweights, aweights */
    double correction;
    NONE_UNLESS(real_of(argument(args, 1), &correction) && argument(args, 2) == Py_None && argument(args, 3) == Py_None);
    return covariance(array_of(argument(args, 0)), correction, 0);
}

static PyObject *py_corrcoef(PyObject *self, PyObject *args) { return covariance(array_of(argument(args, 0)), 1, 1); }

/* ---- query, key, value, attn_mask, dropout_p, is_causal, scale, enable_gqa: (batch, heads, length, size), all of one size */
static PyObject *py_attention(PyObject *self, PyObject *args) {
    static PyObject *backends;
    Array *q = floats_of(argument(args, 0), 4), *k = floats_of(argument(args, 1), 4), *v = floats_of(argument(args, 2), 4);
    double dropped, scale;
    NONE_UNLESS(q && k && v && kind(q) == kind(k) && kind(k) == kind(v) && argument(args, 3) == Py_None && argument(args, 7) == Py_False);
    NONE_UNLESS(real_of(argument(args, 4), &dropped) && dropped == 0 && q->shape[1] > 1 && q->shape[3] > 1);
    for (int d = 0; d < 4; d++) NONE_UNLESS(k->shape[d] == v->shape[d] && (d == 2 || q->shape[d] == k->shape[d]));
    const i64 heads = q->shape[0] * q->shape[1], rows = q->shape[2], many = k->shape[2], width = q->shape[3], step = size_of(q);
    NONE_UNLESS(is_little_work(heads, rows, many, width) && (argument(args, 6) == Py_None || real_of(argument(args, 6), &scale)));
    if (argument(args, 6) == Py_None) scale = 1 / sqrt((double)width);
    if (!backends && !(backends = PyUnicode_InternFromString("attention_backends"))) return NULL;
    NONE_UNLESS(has_value(process, backends, Py_None, 0));
    char *room = PyMem_Malloc((size_t)(many * step));
    Array *r = room ? new_array(4, q->shape, kind(q)) : (Array *)PyErr_NoMemory();
    for (i64 h = 0; r && h < heads; h++) {
        char *at[4] = {q->data + h * rows * width * step, k->data + h * many * width * step, v->data + h * many * width * step, r->data + h * rows * width * step};
        const int causal = argument(args, 5) == Py_True;
        if (kind(q) == F32)
            attend_f32((float *)at[0], (float *)at[1], (float *)at[2], (float *)at[3], rows, many, width, (float)scale, causal, (float *)room);
        else
            attend_f64((double *)at[0], (double *)at[1], (double *)at[2], (double *)at[3], rows, many, width, scale, causal, (double *)room);
    }
    PyMem_Free(room);
    return tensor_of(r);
}

/* By the operator that each computes, or the public function that it stands for. */
static PyMethodDef methods[] = {
    {"use_arrays", use_arrays, METH_VARARGS, "use_arrays(ndarray, [(number, dtype), ...], make_tensor)"},
    {"use_process", use_process, METH_VARARGS, "use_process(process, cpu, Tensor, ambient, untracked)"},
    {"bmm.default", py_bmm, METH_O, NULL},
    {"baddbmm.default", py_baddbmm, METH_O, NULL},
    {"linalg_multi_dot.default", py_multi_dot, METH_O, NULL},
    {"torch.tensordot", FRONT(py_tensordot), NULL},
    {"scaled_dot_product_attention.default", py_attention, METH_O, NULL},
    {"cov.default", py_cov, METH_O, NULL},
    {"corrcoef.default", py_corrcoef, METH_O, NULL},
    {NULL, NULL, 0, NULL},
};

MODULE(_chains)
