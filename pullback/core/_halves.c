/* Products of bfloat16 matrices in C, where the processor multiplies pairs of them (AVX512-BF16): mm and bmm.
 *
 * In: the canonical arguments of an operator, as a tuple. Out: its result as a row-major tensor, nothing recorded; or None where the call
 * is not of that kind (another dtype, another processor, memory that no dimension of runs through, no elements): the caller then runs the
 * operator's rules. Sums are formed in single precision and rounded once; numbers too small for the exponent of a normal one are zero, as the
 * instruction has it. Results do not depend on the number of threads.
 */
#include "native_narrow.h"

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && __GNUC__ >= 11
#include <immintrin.h>
#include <stdlib.h>
#define PAIRED __attribute__((target("avx512f,avx512bw,avx512vl,avx512bf16")))

enum { WIDTH = 64, HEIGHT = 6 }; /* of the part of a result that stays in registers */

/* Matrices by steps in elements: `a` runs along its rows, `b` along its rows (step_b 1 across) or along its columns. */
typedef struct {
    const u16 *a, *b;
    u16 *c;
    i64 m, n, k, row_a, down_b, across_b, of_a, of_b; /* of_: from one matrix to the next */
} Product;

/* WIDTH columns of b, each pair of its rows as one number; columns and rows that are not there are zero. */
PAIRED static void pack(const Product *p, const u16 *b, i64 columns, u32 *into) {
    for (i64 q = 0; q < (p->k + 1) / 2; q++, into += WIDTH) {
        const u16 *upper = b + 2 * q * p->down_b, *lower = 2 * q + 1 < p->k ? upper + p->down_b : NULL;
        if (p->across_b == 1 && lower)
            for (i64 j = 0; j < columns; j++) into[j] = (u32)upper[j] | (u32)lower[j] << 16;
        else
            for (i64 j = 0; j < columns; j++) into[j] = (u32)upper[j * p->across_b] | (lower ? (u32)lower[j * p->across_b] << 16 : 0);
        for (i64 j = columns; j < WIDTH; j++) into[j] = 0;
    }
}

#define MULTIPLY(word)                                                                                           \
    {                                                                                                            \
        __m512bh across[4];                                                                                      \
        for (int v = 0; v < 4; v++) across[v] = (__m512bh)_mm512_loadu_si512(b + 16 * v);                        \
        for (int r = 0; r < rows; r++) {                                                                         \
            const u16 *at = a + r * step;                                                                        \
            u32 pair;                                                                                            \
            word;                                                                                                \
            const __m512bh down = (__m512bh)_mm512_set1_epi32((int)pair);                                        \
            for (int v = 0; v < 4; v++) sums[r][v] = _mm512_dpbf16_ps(sums[r][v], down, across[v]);              \
        }                                                                                                        \
    }

PAIRED static inline __attribute__((always_inline)) void tile(const int rows, const u16 *a, i64 step, const u32 *b, i64 k, float *c) {
    __m512 sums[HEIGHT][4];
    for (int r = 0; r < rows; r++)
        for (int v = 0; v < 4; v++) sums[r][v] = _mm512_setzero_ps();
    for (i64 q = 0; q < k / 2; q++, b += WIDTH) MULTIPLY(memcpy(&pair, at + 2 * q, 4))
    if (k % 2) MULTIPLY(pair = at[k - 1])
    for (int r = 0; r < rows; r++)
        for (int v = 0; v < 4; v++) _mm512_storeu_ps(c + r * WIDTH + 16 * v, sums[r][v]);
}

PAIRED static void tile_of(int rows, const u16 *a, i64 step, const u32 *b, i64 k, float *c) {
    switch (rows) { /* the count is known in each: sums stay in registers */
    case 1: tile(1, a, step, b, k, c); break;
    case 2: tile(2, a, step, b, k, c); break;
    case 3: tile(3, a, step, b, k, c); break;
    case 4: tile(4, a, step, b, k, c); break;
    case 5: tile(5, a, step, b, k, c); break;
    default: tile(6, a, step, b, k, c);
    }
}

PAIRED static void rounded(const float *x, u16 *y, i64 n) {
    for (i64 i = 0; i < n; i++) y[i] = narrowed(x[i]);
}

/* Panels `first` to `last` of all matrices: WIDTH columns of one result each. */
PAIRED static void product_part(long first, long last, void *const *arguments) {
    const Product *p = arguments[0];
    const i64 panels = (p->n + WIDTH - 1) / WIDTH;
    u32 *packed = aligned_alloc(64, (size_t)((p->k + 1) / 2) * WIDTH * sizeof(u32));
    if (!packed) {
        *(int *)arguments[1] = 1;
        return;
    }
    for (i64 t = first; t < last; t++) {
        const i64 which = t / panels, left = t % panels * WIDTH, columns = p->n - left < WIDTH ? p->n - left : WIDTH;
        const u16 *a = p->a + which * p->of_a;
        pack(p, p->b + which * p->of_b + left * p->across_b, columns, packed);
        for (i64 i = 0; i < p->m; i += HEIGHT) {
            float room[HEIGHT * WIDTH];
            const int rows = p->m - i < HEIGHT ? (int)(p->m - i) : HEIGHT;
            tile_of(rows, a + i * p->row_a, p->row_a, packed, p->k, room);
            for (int r = 0; r < rows; r++) rounded(room + r * WIDTH, p->c + (which * p->m + i + r) * p->n + left, columns);
        }
    }
    free(packed);
}

static Array *matrices_of(PyObject *tensor, int nd) {
    Array *a = narrow_of(tensor);
    return a && a->nd == nd ? a : NULL;
}

static PyObject *multiplied(PyObject *args, int nd) {
    NONE_UNLESS(bfloat16_number >= 0 && __builtin_cpu_supports("avx512bf16") && __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512bw"));
    Array *a = matrices_of(argument(args, 0), nd), *b = matrices_of(argument(args, 1), nd);
    const int batch = nd == 3, d = nd - 2;
    NONE_UNLESS(a && b && a->shape[d + 1] == b->shape[d] && (!batch || a->shape[0] == b->shape[0]));
    const Py_ssize_t shape[3] = {batch ? a->shape[0] : a->shape[d], batch ? a->shape[1] : b->shape[d + 1], b->shape[nd - 1]};
    Product p = {(const u16 *)a->data, (const u16 *)b->data, NULL, a->shape[d], b->shape[d + 1], b->shape[d], a->strides[d] / 2, b->strides[d] / 2,
                 b->strides[d + 1] / 2, batch ? a->strides[0] / 2 : 0, batch ? b->strides[0] / 2 : 0};
    NONE_UNLESS(a->strides[d + 1] == 2 && (p.across_b == 1 || p.down_b == 1));
    NONE_UNLESS(!is_deterministic(process));
    Array *r = new_narrow(nd, shape);
    if (!r) return NULL;
    p.c = (u16 *)r->data;
    int failed = 0;
    void *const arguments[] = {&p, &failed};
    const i64 many = (batch ? shape[0] : 1) * ((p.n + WIDTH - 1) / WIDTH);
    over_parts(product_part, many, many * WIDTH * p.m * (p.k / 64 + 1), arguments, a, b, r);
    if (failed) {
        Py_DECREF(r);
        return PyErr_NoMemory();
    }
    return narrow_tensor(r);
}
#else
static PyObject *multiplied(PyObject *args, int nd) { Py_RETURN_NONE; }
#endif

static PyObject *py_mm(PyObject *self, PyObject *args) { return multiplied(args, 2); }
static PyObject *py_bmm(PyObject *self, PyObject *args) { return multiplied(args, 3); }

/* By the operator that each computes. */
static PyMethodDef methods[] = {
    {"use_arrays", use_arrays, METH_VARARGS, "use_arrays(ndarray, [(number, dtype), ...], make_tensor)"},
    {"use_threads", use_threads, METH_VARARGS, "use_threads(address, function)"},
    {"use_bfloat16", use_bfloat16, METH_VARARGS, "use_bfloat16(number, dtype)"},
    {"mm.default", py_mm, METH_O, NULL},
    {"bmm.default", py_bmm, METH_O, NULL},
    {NULL, NULL, 0, NULL},
};

MODULE(_halves)
