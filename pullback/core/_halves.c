/* Products of bfloat16 matrices in C, where the processor multiplies pairs of them (AVX512-BF16): mm, bmm and addmm.
 *
 * In: the canonical arguments of an operator, as a tuple. Out: its result as a row-major tensor, nothing recorded; or None where the call
 * is not of that kind (another dtype, another processor, memory that no dimension of runs through, no elements): the caller then runs the
 * operator's rules. Sums are formed in single precision and rounded once; numbers too small for the exponent of a normal one are zero, as the
 * instruction has it. Results do not depend on the number of threads.
 */
#include "native_narrow.h"

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && __GNUC__ >= 11
#include "native_paired.h"

static Array *matrices_of(PyObject *tensor, int nd) {
    Array *a = narrow_of(tensor);
    return a && a->nd == nd ? a : NULL;
}

static int has_pairs(void) { return __builtin_cpu_supports("avx512bf16") && __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512bw"); }

/* The product of the arguments from number `at` on, of `nd` dimensions each, and to each row of it the bias. */
static PyObject *multiplied(PyObject *args, int at, int nd, Array *bias) {
    NONE_UNLESS(bfloat16_number >= 0 && has_pairs());
    Array *a = matrices_of(argument(args, at), nd), *b = matrices_of(argument(args, at + 1), nd);
    const int batch = nd == 3, d = nd - 2;
    NONE_UNLESS(a && b && a->shape[d + 1] == b->shape[d] && (!batch || a->shape[0] == b->shape[0]));
    const Py_ssize_t shape[3] = {batch ? a->shape[0] : a->shape[d], batch ? a->shape[1] : b->shape[d + 1], b->shape[nd - 1]};
    i64 room[sizeof(Shape) / sizeof(i64) + 4];
    Shape *s = (Shape *)room;
    *s = (Shape){.m = a->shape[d], .n = b->shape[d + 1], .k = b->shape[d], .row_c = b->shape[d + 1], .dims = batch};
    s->row_a = a->strides[d] / 2, s->along_a = a->strides[d + 1] / 2, s->down_b = b->strides[d] / 2, s->across_b = b->strides[d + 1] / 2;
    if (batch) memcpy(s->batch[0], (i64[]){shape[0], a->strides[0] / 2, b->strides[0] / 2, s->m * s->n}, 4 * sizeof(i64));
    NONE_UNLESS((s->along_a == 1 || s->row_a == 1) && (s->across_b == 1 || s->down_b == 1));
    NONE_UNLESS(!bias || (bias->nd == 1 && bias->shape[0] == s->n && bias->strides[0] == 2));
    NONE_UNLESS(!is_deterministic(process));
    Array *r = new_narrow(nd, shape);
    if (!r) return NULL;
    const i64 shared = work_of(s, batch ? shape[0] : 1) >= LARGE, threads = shared ? threads_now() : 1;
    Py_INCREF(a);
    Py_INCREF(b);
    Py_XINCREF(bias);
    PyThreadState *state = shared ? PyEval_SaveThread() : NULL;
    const i64 failed = multiply_pairs(s, a->data, b->data, bias ? bias->data : NULL, r->data, threads);
    if (state) PyEval_RestoreThread(state);
    Py_DECREF(a);
    Py_DECREF(b);
    Py_XDECREF(bias);
    if (failed) {
        Py_DECREF(r);
        return PyErr_NoMemory();
    }
    return narrow_tensor(r);
}

static PyObject *py_address(PyObject *self, PyObject *unused) { return PyLong_FromVoidPtr(has_pairs() ? (void *)(size_t)multiply_pairs : NULL); }

static int is_one(PyObject *number) { return PyLong_CheckExact(number) && PyLong_AsLong(number) == 1; }

/* self, mat1, mat2, beta, alpha */
static PyObject *py_addmm(PyObject *self, PyObject *args) {
    Array *bias = matrices_of(argument(args, 0), 1);
    NONE_UNLESS(bias && is_one(argument(args, 3)) && is_one(argument(args, 4)));
    return multiplied(args, 1, 2, bias);
}
#else
static PyObject *multiplied(PyObject *args, int at, int nd, Array *bias) { Py_RETURN_NONE; }
static PyObject *py_addmm(PyObject *self, PyObject *args) { Py_RETURN_NONE; }
static PyObject *py_address(PyObject *self, PyObject *unused) { return PyLong_FromLong(0); }
#endif

static PyObject *py_mm(PyObject *self, PyObject *args) { return multiplied(args, 0, 2, NULL); }
static PyObject *py_bmm(PyObject *self, PyObject *args) { return multiplied(args, 0, 3, NULL); }

/* By the operator that each computes. */
static PyMethodDef methods[] = {
    {"use_arrays", use_arrays, METH_VARARGS, "use_arrays(ndarray, [(number, dtype), ...], make_tensor)"},
    {"use_threads", use_threads, METH_VARARGS, "use_threads(address, function)"},
    {"use_bfloat16", use_bfloat16, METH_VARARGS, "use_bfloat16(number, dtype)"},
    {"address", py_address, METH_NOARGS, "address() -> int: of what generated code calls for products, 0 where the processor has no such instructions"},
    {"addmm.default", py_addmm, METH_O, NULL},
    {"mm.default", py_mm, METH_O, NULL},
    {"bmm.default", py_bmm, METH_O, NULL},
    {NULL, NULL, 0, NULL},
};

MODULE(_halves)
