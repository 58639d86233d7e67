/* Products of matrices in C, for eager calls and for generated code.
 *
 * Functions take NumPy's arrays of float32 or float64. The template (native_packed.h) is read for both, and for each set of instructions that
 * an x86 may have; one is picked when the module is loaded. Where BLAS is the quicker one, it is asked: products of vectors or of few rows
 * or columns, and machines for whose widest instructions there is no template. No result of the template depends on the number of
 * threads, or on what else is computed with it; where that must hold for all products (`prefer(2)`), it computes them all.
 */
#include "native_arrays.h"
#include <stdlib.h>
#include <string.h>

#include "native_types.h"

enum { STEPS = 256, FEW_ROWS = 24, ROWS_TURNED = 48, STEPS_TURNED = 1 << 14, LARGE_FACTOR = 1 << 18, SMALL = 1 << 10 };
enum { WORTH_A_THREAD = 1 << 20, WORTH_LETTING_GO = 1 << 17, COLUMNS_OF_TASK = 64, ROWS_OF_TASK = 24 };

/* c (m, n) = a (m, k) b (k, n) + bias, or added to c; steps in elements. */
typedef struct {
    const void *a, *b, *bias;
    void *c;
    i64 m, n, k, row, step, down, across, ldc;
    int adds;
} Product;

#define TEMPLATE "native_factors.h"
#include "native_levels.h"
static void (*const MULTIPLY[][2])(const Product *) = LEVELS(multiply);
static int preference = 1; /* 0: BLAS computes all products; 1: whoever is quicker; 2: the template does */

/* Whether the template is to compute a product. It was measured beside OpenBLAS's kernels for AVX2 and for AVX-512. */
static int is_ours(i64 m, i64 n, i64 k) {
    if (preference != 1 || level < 2) return preference == 2;
    return (m > 1 && n > 2) || m * n * k < SMALL; /* a product with a vector, or nearly, is BLAS's */
}

/* ---- products by threads */
typedef struct {
    Product whole;
    void (*multiply)(const Product *);
    i64 of_a, of_b, of_c, rows, columns, down, over; /* from one matrix to the next; of a task; how many tasks there are of a matrix */
    int size;
} Job;

static void product_part(long first, long last, void *const *arguments) {
    const Job *j = arguments[0];
    for (long t = first; t < last; t++) {
        const i64 which = t / (j->down * j->over), column = t % (j->down * j->over) / j->down * j->columns, row = t % j->down * j->rows;
        Product p = j->whole;
        p.m = p.m - row < j->rows ? p.m - row : j->rows;
        p.n = p.n - column < j->columns ? p.n - column : j->columns;
        p.a = (const char *)p.a + (which * j->of_a + row * p.row) * j->size;
        p.b = (const char *)p.b + (which * j->of_b + column * p.across) * j->size;
        p.c = (char *)p.c + (which * j->of_c + row * p.ldc + column) * j->size;
        if (p.bias) p.bias = (const char *)p.bias + column * j->size;
        j->multiply(&p);
    }
}

/* Columns first: then no column is laid out in a panel twice. */
static void cut(Job *j, i64 wanted) {
    const i64 panels = (j->whole.n + COLUMNS_OF_TASK - 1) / COLUMNS_OF_TASK, strips = (j->whole.m + ROWS_OF_TASK - 1) / ROWS_OF_TASK;
    i64 over = wanted < panels ? wanted : panels, down = over ? (wanted + over - 1) / over : 1;
    down = down < strips ? down : strips;
    j->columns = over ? (panels + over - 1) / over * COLUMNS_OF_TASK : COLUMNS_OF_TASK;
    j->rows = down > 0 ? (strips + down - 1) / down * ROWS_OF_TASK : ROWS_OF_TASK;
    j->over = (j->whole.n + j->columns - 1) / j->columns;
    j->down = (j->whole.m + j->rows - 1) / j->rows;
}

/* `count` products; the GIL is let go where they are worth it. */
static void run(Job *j, i64 count) {
    const i64 work = j->whole.m * j->whole.n * (j->whole.k + 1) * count;
    const long threads = work >= 2 * WORTH_A_THREAD && parallel ? threads_now() : 1;
    const i64 most = work / WORTH_A_THREAD < 4 * threads ? work / WORTH_A_THREAD : 4 * threads;
    cut(j, threads > 1 && count < most ? (most + count - 1) / count : 1);
    const i64 tasks = count * j->over * j->down;
    void *const arguments[] = {j};
    PyThreadState *state = work >= WORTH_LETTING_GO ? PyEval_SaveThread() : NULL;
    if (threads > 1 && tasks > 1)
        parallel(product_part, 0, (long)tasks, (long)(tasks > most ? tasks / most : 1), arguments, threads);
    else
        product_part(0, (long)tasks, arguments);
    if (state) PyEval_RestoreThread(state);
}

/* ---- eager calls */
static PyObject *general;

static int is_matrix(const Array *a, int size) {
    return a->flags & ALIGNED && !(a->strides[a->nd - 1] % size) && !(a->strides[a->nd - 2] % size) && (a->nd == 2 || !(a->strides[0] % size));
}

/* The product of two arrays, or of two batches of equal size, as a new array; NULL without an error where the template is not to do it. */
static Array *multiplied(Array *a, Array *b, Array *bias) {
    if (!Py_IS_TYPE(a, array_type) || !Py_IS_TYPE(b, array_type) || (bias && !Py_IS_TYPE(bias, array_type))) return NULL;
    const int k = kind(a), d = a->nd - 2, size = k == F64 ? 8 : 4;
    if ((k != F32 && k != F64) || kind(b) != k || (d != 0 && d != 1) || b->nd != a->nd || a->shape[d + 1] != b->shape[d]) return NULL;
    if (!is_matrix(a, size) || !is_matrix(b, size) || (d && a->shape[0] != b->shape[0])) return NULL;
    Job j = {.whole = {.a = a->data, .b = b->data, .m = a->shape[d], .n = b->shape[d + 1], .k = b->shape[d], .row = a->strides[d] / size,
                       .step = a->strides[d + 1] / size, .down = b->strides[d] / size, .across = b->strides[d + 1] / size},
             .multiply = MULTIPLY[level][k == F64],
             .of_a = d ? a->strides[0] / size : 0,
             .of_b = d ? b->strides[0] / size : 0,
             .size = size};
    if (!is_ours(j.whole.m, j.whole.n, j.whole.k)) return NULL;
    if (bias) {
        if (kind(bias) != k || bias->nd != 1 || bias->shape[0] != j.whole.n || !(bias->flags & ALIGNED) || (bias->strides[0] != size && j.whole.n > 1))
            return NULL;
        j.whole.bias = bias->data;
    }
    const Py_ssize_t shape[3] = {d ? a->shape[0] : a->shape[0], d ? a->shape[1] : b->shape[1], d ? b->shape[2] : 0};
    Array *c = new_array(d + 2, shape, k);
    if (!c) return NULL;
    j.whole.c = c->data;
    j.whole.ldc = j.whole.n;
    j.of_c = j.whole.m * j.whole.n;
    Py_INCREF(a);
    Py_INCREF(b);
    Py_XINCREF(bias);
    if (has_elements(c)) run(&j, d ? a->shape[0] : 1);
    Py_DECREF(a);
    Py_DECREF(b);
    Py_XDECREF(bias);
    return c;
}

/* multiply(a, b[, bias]): a @ b of two matrices or two batches, plus a row or whatever else an array adds */
static PyObject *py_multiply(PyObject *self, PyObject *const *args, Py_ssize_t count) {
    if (count != 2 && count != 3) return PyErr_Format(PyExc_TypeError, "multiply expects two arrays and an addend");
    PyObject *bias = count == 3 && args[2] != Py_None ? args[2] : NULL;
    PyObject *result = (PyObject *)multiplied((Array *)args[0], (Array *)args[1], (Array *)bias);
    if (result || PyErr_Occurred()) return result;
    if (bias) result = (PyObject *)multiplied((Array *)args[0], (Array *)args[1], NULL);
    if (!result) return PyErr_Occurred() ? NULL : PyObject_Vectorcall(general, args, (size_t)count, NULL);
    PyObject *sum = PyNumber_InPlaceAdd(result, bias);
    Py_DECREF(result);
    return sum;
}

/* ---- generated code: the arguments of a CBLAS whose integers have 64 bits; no threads */
#define GEMM(TYPE, NAME, NUMBER)                                                                                                                 \
    typedef void (*NAME##_narrow)(int, int, int, int, int, int, TYPE, const TYPE *, int, const TYPE *, int, TYPE, TYPE *, int);                  \
    typedef void (*NAME##_wide)(int, int, int, i64, i64, i64, TYPE, const TYPE *, i64, const TYPE *, i64, TYPE, TYPE *, i64);                    \
    static void NAME(int order, int ta, int tb, i64 m, i64 n, i64 k, TYPE alpha, const TYPE *a, i64 lda, const TYPE *b, i64 ldb, TYPE beta,      \
                     TYPE *c, i64 ldc) {                                                                                                         \
        const int turned_a = ta != 111, turned_b = tb != 111, plain = order == 101 && alpha == 1 && (beta == 0 || beta == 1);                    \
        if (!blas[NUMBER] || (plain && is_ours(m, n, k))) {                                                                            \
            const Product p = {.a = a, .b = b, .c = c, .m = m, .n = n, .k = k, .row = turned_a ? 1 : lda, .step = turned_a ? lda : 1,            \
                               .down = turned_b ? 1 : ldb, .across = turned_b ? ldb : 1, .ldc = ldc, .adds = beta == 1};                         \
            MULTIPLY[level][NUMBER](&p);                                                                                                         \
        } else if (wide)                                                                                                                         \
            ((NAME##_wide)blas[NUMBER])(order, ta, tb, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);                                            \
        else                                                                                                                                     \
            ((NAME##_narrow)blas[NUMBER])(order, ta, tb, (int)m, (int)n, (int)k, alpha, a, (int)lda, b, (int)ldb, beta, c, (int)ldc);            \
    }
static void *blas[2];
static int wide;
GEMM(float, sgemm, 0)
GEMM(double, dgemm, 1)

/* gemms(sgemm, dgemm, wide): the addresses of functions that choose between the template and these */
static PyObject *py_gemms(PyObject *self, PyObject *args) {
    unsigned long long s, d;
    if (!PyArg_ParseTuple(args, "KKp", &s, &d, &wide)) return NULL;
    blas[0] = (void *)(size_t)s;
    blas[1] = (void *)(size_t)d;
    return Py_BuildValue("KK", (unsigned long long)(size_t)sgemm, (unsigned long long)(size_t)dgemm);
}

/* use_general(function): what multiplies arrays that the template does not */
static PyObject *use_general(PyObject *self, PyObject *function) {
    Py_XSETREF(general, Py_NewRef(function));
    Py_RETURN_NONE;
}

static PyObject *py_prefer(PyObject *self, PyObject *args) {
    int wanted, before = preference;
    if (!PyArg_ParseTuple(args, "i", &wanted)) return NULL;
    if (wanted >= 0 && wanted <= 2) preference = wanted;
    return PyLong_FromLong(before);
}

static PyMethodDef methods[] = {
    {"use_arrays", use_arrays, METH_VARARGS, "use_arrays(ndarray, [(number, dtype), ...], make_tensor)"},
    {"use_threads", use_threads, METH_VARARGS, "use_threads(address, function)"},
    {"use_general", use_general, METH_O, "use_general(function)"},
    {"multiply", (PyCFunction)(void (*)(void))py_multiply, METH_FASTCALL, "multiply(a, b, bias=None) -> array"},
    {"gemms", py_gemms, METH_VARARGS, "gemms(sgemm, dgemm, wide) -> (int, int)"},
    {"prefer", py_prefer, METH_VARARGS, "prefer(0 BLAS, 1 the quicker one, 2 the template, or -1) -> int, what it was"},
    {"instructions", py_instructions, METH_VARARGS, "instructions(level or -1) -> int, what it was"},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, "_products", "See runtime.products.", -1, methods, NULL, NULL, NULL, NULL};

PyMODINIT_FUNC PyInit__products(void) {
    find_level();
    return PyModule_Create(&module);
}
