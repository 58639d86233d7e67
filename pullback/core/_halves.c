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

/* The product of the arguments from number `at` on, of `nd` dimensions each, and to each row of it the bias. */
static PyObject *multiplied(PyObject *args, int at, int nd, Array *bias) {
    NONE_UNLESS(bfloat16_number >= 0 && __builtin_cpu_supports("avx512bf16") && __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512bw"));
    Array *a = matrices_of(argument(args, at), nd), *b = matrices_of(argument(args, at + 1), nd);
    const int batch = nd == 3, d = nd - 2;
    NONE_UNLESS(a && b && a->shape[d + 1] == b->shape[d] && (!batch || a->shape[0] == b->shape[0]));
    const Py_ssize_t shape[3] = {batch ? a->shape[0] : a->shape[d], batch ? a->shape[1] : b->shape[d + 1], b->shape[nd - 1]};
    Product p = {.a = (const u16 *)a->data, .b = (const u16 *)b->data, .m = a->shape[d], .n = b->shape[d + 1], .k = b->shape[d]};
    p.row_a = a->strides[d] / 2, p.along_a = a->strides[d + 1] / 2, p.down_b = b->strides[d] / 2, p.across_b = b->strides[d + 1] / 2;
    if (batch) p.of_a = a->strides[0] / 2, p.of_b = b->strides[0] / 2;
    NONE_UNLESS((p.along_a == 1 || p.row_a == 1) && (p.across_b == 1 || p.down_b == 1));
    NONE_UNLESS(!bias || (bias->nd == 1 && bias->shape[0] == p.n && bias->strides[0] == 2));
    NONE_UNLESS(!is_deterministic(process));
    const i64 many = batch ? shape[0] : 1;
    if (p.along_a != 1 && !(p.turned = aligned_alloc(64, (size_t)(many * p.m * turned_row(&p)) * sizeof(u16)))) return PyErr_NoMemory();
    Array *r = new_narrow(nd, shape);
    if (!r) {
        free(p.turned);
        return NULL;
    }
    p.c = (u16 *)r->data, p.bias = bias ? (const u16 *)bias->data : NULL;
    int failed = 0;
    void *const arguments[] = {&p, &failed};
    if (p.turned) over_parts(turn_part, many * ((p.m + 15) / 16), many * p.m * p.k / 8, arguments, a, b, r);
    const i64 parts = many * panels_of(&p) * stripes_of(&p);
    over_parts(product_part, parts, parts * WIDTH * (p.m < ROWS ? p.m : ROWS) * (p.k / 64 + 1), arguments, a, b, r);
    free(p.turned);
    if (failed) {
        Py_DECREF(r);
        return PyErr_NoMemory();
    }
    return narrow_tensor(r);
}

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
#endif

static PyObject *py_mm(PyObject *self, PyObject *args) { return multiplied(args, 0, 2, NULL); }
static PyObject *py_bmm(PyObject *self, PyObject *args) { return multiplied(args, 0, 3, NULL); }

/* By the operator that each computes. */
static PyMethodDef methods[] = {
    {"use_arrays", use_arrays, METH_VARARGS, "use_arrays(ndarray, [(number, dtype), ...], make_tensor)"},
    {"use_threads", use_threads, METH_VARARGS, "use_threads(address, function)"},
    {"use_bfloat16", use_bfloat16, METH_VARARGS, "use_bfloat16(number, dtype)"},
    {"addmm.default", py_addmm, METH_O, NULL},
    {"mm.default", py_mm, METH_O, NULL},
    {"bmm.default", py_bmm, METH_O, NULL},
    {NULL, NULL, 0, NULL},
};

MODULE(_halves)
