/* Factors and solutions of matrices in C, for calls where what surrounds LAPACK counts.
 *
 * In: the canonical arguments of an operator, as a tuple. Out: its results as tensors, nothing recorded; or None where the call is not of
 * that kind (another dtype than float32 and float64, no elements, large matrices, stacks that broadcast, arguments that are refused, an
 * error that is to be raised): the caller then runs the operator's rules, which know the rest. The routines are SciPy's LAPACK, the one
 * that the rules call; without it no call is taken. Matrices of results are column-major where the rules say so.
 */
#include "native_moves.h"
#include <math.h>
#include "native_signs.h"

enum { GETRF, GETRS, POTRF, POTRS, POTRI, GEQRF, ORGQR, SYTRF, SYTRD, SYEVD, GESDD, GEQRT, GEMQRT, ORMQR, GEEV, GELSY, TRSM, ROUTINES };
enum { MOST_SIDE = 256, BLOCK = 64, TINY_SIDE = 8, BLOCKED_SIDE = 96, SIGNS_STACK = 8 };
typedef void (*Routine)();
static Routine routines[ROUTINES][2];
static int state; /* 0: not looked for yet, 1: found, -1: not there */

static int look_up(const char *home, const char *name, Routine *into) {
    PyObject *module = PyImport_ImportModule(home), *table = module ? PyObject_GetAttrString(module, "__pyx_capi__") : NULL;
    PyObject *capsule = table && PyDict_Check(table) ? PyDict_GetItemString(table, name) : NULL;
    const char *signature = capsule && PyCapsule_CheckExact(capsule) ? PyCapsule_GetName(capsule) : NULL;
    int fits = signature && strstr(signature, "int *"); /* 32-bit integers */
    if (fits) *(void **)into = PyCapsule_GetPointer(capsule, signature);
    Py_XDECREF(table);
    Py_XDECREF(module);
    if (PyErr_Occurred()) PyErr_Clear();
    return fits && *into;
}

static int is_ready(void) {
    static const char *names[ROUTINES] = {"getrf", "getrs", "potrf", "potrs", "potri", "geqrf", "orgqr", "sytrf",
                                          "sytrd", "syevd", "gesdd", "geqrt", "gemqrt", "ormqr", "geev", "gelsy", "trsm"};
    if (state) return state > 0;
    state = 1;
    for (int r = 0; r < ROUTINES; r++)
        for (int d = 0; d < 2; d++) {
            char name[16];
            snprintf(name, sizeof name, "%c%s", "sd"[d], names[r]);
            if (!look_up(r == TRSM ? "scipy.linalg.cython_blas" : "scipy.linalg.cython_lapack", name, &routines[r][d])) state = -1;
        }
    return state > 0;
}

/* ---- stacks of matrices */
/* A stack of matrices of float32 or float64, of any order of memory, or NULL. */
static Array *stack_of(PyObject *tensor) {
    Array *a = strided_of(tensor);
    if (!a || kind(a) > F64 || a->nd < 2 || a->nd > 8 || count_of(a) == 0 || count_of(a) > 1 << 20) return NULL;
    return a->shape[a->nd - 1] <= MOST_SIDE && a->shape[a->nd - 2] <= MOST_SIDE ? a : NULL;
}

static int rows_in(const Array *a) { return (int)a->shape[a->nd - 2]; }
static int columns_in(const Array *a) { return (int)a->shape[a->nd - 1]; }
static int is_square(const Array *a) { return a && rows_in(a) == columns_in(a); }
static Py_ssize_t many_in(const Array *a) { return count_of(a) / (a->shape[a->nd - 1] * a->shape[a->nd - 2]); }
static int same_stack(const Array *a, const Array *b) {
    return kind(a) == kind(b) && a->nd == b->nd && (a->nd == 2 || !memcmp(a->shape, b->shape, sizeof(*a->shape) * (size_t)(a->nd - 2)));
}

/* Where item i of a stack begins; the last `core` dimensions are the item's. */
static char *item(const Array *a, Py_ssize_t i, int core) {
    char *at = a->data;
    for (int d = a->nd - core - 1; d >= 0; d--) {
        at += i % a->shape[d] * a->strides[d];
        i /= a->shape[d];
    }
    return at;
}

/* Item i, column by column. */
static void load(const Array *a, Py_ssize_t i, char *into) {
    Py_ssize_t size = size_of(a), n = rows_in(a), shape[2] = {columns_in(a), n}, to[2] = {n * size, size};
    Py_ssize_t from[2] = {a->strides[a->nd - 1], a->strides[a->nd - 2]};
    copy_block(into, to, item(a, i, 2), from, shape, 2, (int)size);
}

/* Columns into item i. */
static void store(Array *a, Py_ssize_t i, const char *from) {
    Py_ssize_t size = size_of(a), n = rows_in(a), shape[2] = {columns_in(a), n}, steps[2] = {n * size, size};
    Py_ssize_t to[2] = {a->strides[a->nd - 1], a->strides[a->nd - 2]};
    copy_block(item(a, i, 2), to, from, steps, shape, 2, (int)size);
}

/* A stack like `a` of matrices of these sizes, column-major or not. */
static Array *new_stack(const Array *a, int rows, int columns, int by_column) {
    Py_ssize_t shape[MOST_DIMS], strides[MOST_DIMS], step = (Py_ssize_t)rows * columns * size_of(a);
    memcpy(shape, a->shape, sizeof(*shape) * (size_t)(a->nd - 2));
    shape[a->nd - 2] = rows;
    shape[a->nd - 1] = columns;
    if (!by_column) return new_array(a->nd, shape, kind(a));
    strides[a->nd - 2] = size_of(a);
    strides[a->nd - 1] = (Py_ssize_t)rows * size_of(a);
    for (int d = a->nd - 3; d >= 0; d--) {
        strides[d] = step;
        step *= shape[d];
    }
    return (Array *)array_new(array_type, a->nd, shape, number_of[kind(a)], strides, NULL, 0, 0, NULL);
}

/* Rows of `n` elements for each matrix of a stack, or one element where n is negative. */
static Array *new_rows(const Array *a, int n, int k) {
    Py_ssize_t shape[MOST_DIMS];
    memcpy(shape, a->shape, sizeof(*shape) * (size_t)(a->nd - 2));
    shape[a->nd - 2] = n;
    return new_array(a->nd - (n < 0 ? 2 : 1), shape, k);
}

/* Tensors around arrays, of which references are taken; None for all where `refused`. */
static PyObject *results_of(int refused, int n, Array *const *arrays) {
    int whole = !refused;
    for (int i = 0; i < n; i++) whole = whole && arrays[i];
    PyObject *result = whole ? PyTuple_New(n) : NULL;
    for (int i = 0; i < n; i++) {
        PyObject *t = result ? tensor_of(arrays[i]) : NULL;
        if (result && !t) Py_CLEAR(result);
        if (result)
            PyTuple_SET_ITEM(result, i, t);
        else if (!whole)
            Py_XDECREF(arrays[i]);
    }
    if (refused) Py_RETURN_NONE;
    return result;
}

static PyObject *only(PyObject *results) { /* the first of several, or what is none */
    if (!results || results == Py_None) return results;
    PyObject *first = Py_NewRef(PyTuple_GET_ITEM(results, 0));
    Py_DECREF(results);
    return first;
}

#define ROUTINE(name, a) routines[name][kind(a) == F64]
/* The call is taken; `room` is for one matrix, what routines work in, and a row. */
#define READY(...)                                                                                        \
    NONE_UNLESS(is_ready() && (__VA_ARGS__));                                                             \
    char *room = PyMem_Malloc((size_t)(rows_in(a) * columns_in(a) + (BLOCK + 1) * columns_in(a)) * 8);    \
    if (!room) return PyErr_NoMemory()

/* ---- LU */
static void set_identity(char *at, int m, int n, int size) {
    memset(at, 0, (size_t)m * (size_t)n * (size_t)size);
    for (int d = 0; d < m && d < n; d++)
        if (size == 4)
            ((float *)at)[d * (m + 1)] = 1;
        else
            ((double *)at)[d * (m + 1)] = 1;
}

/* Matrices so small that a call of LAPACK takes longer than its work. */
#define TINY(T, suffix, absolute)                                                                         \
    static int tiny_factor_##suffix(T *a, int m, int n, int *pivots) {                                    \
        int info = 0, count = m < n ? m : n;                                                              \
        for (int k = 0; k < count; k++) {                                                                 \
            int best = k;                                                                                 \
            for (int i = k + 1; i < m; i++)                                                               \
                if (absolute(a[k * m + i]) > absolute(a[k * m + best])) best = i;                         \
            pivots[k] = best + 1;                                                                         \
            for (int c = 0; best != k && c < n; c++) {                                                    \
                T kept = a[c * m + k];                                                                    \
                a[c * m + k] = a[c * m + best];                                                           \
                a[c * m + best] = kept;                                                                   \
            }                                                                                             \
            const T pivot = a[k * m + k];                                                                 \
            if (pivot == 0) {                                                                             \
                info = info ? info : k + 1;                                                               \
                continue;                                                                                 \
            }                                                                                             \
            for (int i = k + 1; i < m; i++) a[k * m + i] /= pivot;                                        \
            for (int c = k + 1; c < n; c++)                                                               \
                for (int i = k + 1; i < m; i++) a[c * m + i] -= a[k * m + i] * a[c * m + k];              \
        }                                                                                                 \
        return info;                                                                                      \
    }                                                                                                     \
    static void tiny_solve_##suffix(const T *a, int n, const int *pivots, T *b, int columns) {            \
        for (int c = 0; c < columns; c++, b += n) {                                                       \
            for (int k = 0; k < n; k++) {                                                                 \
                T kept = b[k];                                                                            \
                b[k] = b[pivots[k] - 1];                                                                  \
                b[pivots[k] - 1] = kept;                                                                  \
            }                                                                                             \
            for (int k = 0; k < n; k++)                                                                   \
                for (int i = k + 1; i < n; i++) b[i] -= a[k * n + i] * b[k];                              \
            for (int k = n - 1; k >= 0; k--) {                                                            \
                b[k] /= a[k * n + k];                                                                     \
                for (int i = 0; i < k; i++) b[i] -= a[k * n + i] * b[k];                                  \
            }                                                                                             \
        }                                                                                                 \
    }
TINY(float, f32, fabsf)
TINY(double, f64, fabs)

/* Factors column by column in `at`, pivots from one. */
static int factor(const Array *a, Py_ssize_t i, char *at, int *pivots) {
    int m = rows_in(a), n = columns_in(a), info = 0;
    load(a, i, at);
    if (m <= TINY_SIDE && n <= TINY_SIDE)
        return kind(a) == F32 ? tiny_factor_f32((float *)at, m, n, pivots) : tiny_factor_f64((double *)at, m, n, pivots);
    ROUTINE(GETRF, a)(&m, &n, at, &m, pivots, &info);
    return info;
}

static void solve_factored(const Array *a, const char *at, const int *pivots, char *b, int columns, const char *how) {
    int n = rows_in(a), info = 0;
    if (n <= TINY_SIDE && *how == 'N') {
        if (kind(a) == F32)
            tiny_solve_f32((const float *)at, n, pivots, (float *)b, columns);
        else
            tiny_solve_f64((const double *)at, n, pivots, (double *)b, columns);
        return;
    }
    ROUTINE(GETRS, a)(how, &n, &columns, at, &n, pivots, b, &n, &info);
}

static PyObject *py_lu_factor_ex(PyObject *self, PyObject *args) { /* A, pivot, check_errors */
    Array *a = stack_of(argument(args, 0));
    READY(a && argument(args, 1) == Py_True);
    int m = rows_in(a), n = columns_in(a), count = m < n ? m : n, failed = 0;
    Array *out[3] = {new_stack(a, m, n, 0), new_rows(a, count, I32), new_rows(a, -1, I32)};
    for (Py_ssize_t i = 0; out[0] && out[1] && out[2] && i < many_in(a); i++) {
        int info = factor(a, i, room, (int *)out[1]->data + i * count);
        ((int *)out[2]->data)[i] = info;
        failed |= info != 0;
        store(out[0], i, room);
    }
    PyMem_Free(room);
    return results_of(failed && argument(args, 2) == Py_True, 3, out);
}

static PyObject *py_inv_ex(PyObject *self, PyObject *args) { /* A, check_errors */
    Array *a = stack_of(argument(args, 0));
    READY(is_square(a));
    int n = rows_in(a), failed = 0, pivots[MOST_SIDE], size = size_of(a);
    Array *out[2] = {new_stack(a, n, n, 1), new_rows(a, -1, I32)};
    for (Py_ssize_t i = 0; out[0] && out[1] && i < many_in(a); i++) {
        char *b = out[0]->data + i * n * n * size;
        int info = factor(a, i, room, pivots);
        set_identity(b, n, n, size);
        solve_factored(a, room, pivots, b, n, "N");
        ((int *)out[1]->data)[i] = info;
        failed |= info != 0;
    }
    PyMem_Free(room);
    return results_of(failed && argument(args, 1) == Py_True, 2, out);
}

static PyObject *py_solve_ex(PyObject *self, PyObject *args) { /* A, B, left, check_errors */
    Array *a = stack_of(argument(args, 0)), *b = strided_of(argument(args, 1));
    READY(is_square(a) && b && kind(b) == kind(a) && argument(args, 2) == Py_True && count_of(b) > 0 && count_of(b) < 1 << 18);
    int n = rows_in(a), failed = 0, size = size_of(a), is_vector = a->nd == 2 && b->nd == 1;
    if (!(is_vector ? b->shape[0] == n : b->nd == a->nd && same_stack(a, b) && rows_in(b) == n)) {
        PyMem_Free(room);
        Py_RETURN_NONE;
    }
    int columns = is_vector ? 1 : columns_in(b);
    Array *out[4] = {is_vector ? new_array(1, b->shape, kind(a)) : new_stack(b, n, columns, 1), new_stack(a, n, n, 1), new_rows(a, n, I32),
                     new_rows(a, -1, I32)};
    for (Py_ssize_t i = 0; out[0] && out[1] && out[2] && out[3] && i < many_in(a); i++) {
        char *x = out[0]->data + i * n * columns * size, *at = out[1]->data + i * n * n * size;
        int *pivots = (int *)out[2]->data + i * n, info = factor(a, i, at, pivots);
        if (is_vector)
            copy_run(x, size, b->data, b->strides[0], n, size);
        else
            load(b, i, x);
        solve_factored(a, at, pivots, x, columns, "N");
        ((int *)out[3]->data)[i] = info;
        failed |= info != 0;
    }
    PyMem_Free(room);
    return results_of(failed && argument(args, 3) == Py_True, 4, out);
}

static PyObject *py_lu_solve(PyObject *self, PyObject *args) { /* LU, pivots, B, left, adjoint */
    Array *a = stack_of(argument(args, 0)), *p = array_of(argument(args, 1)), *b = stack_of(argument(args, 2));
    READY(is_square(a) && p && kind(p) == I32 && b && same_stack(a, b) && rows_in(b) == rows_in(a) && argument(args, 3) == Py_True &&
          p->nd == a->nd - 1 && !memcmp(p->shape, a->shape, sizeof(*p->shape) * (size_t)p->nd));
    int n = rows_in(a), valid = 1;
    for (Py_ssize_t i = 0; i < count_of(p); i++) valid &= ((int *)p->data)[i] >= 1 && ((int *)p->data)[i] <= n;
    Array *out[1] = {valid ? new_stack(b, n, columns_in(b), 1) : NULL};
    for (Py_ssize_t i = 0; out[0] && i < many_in(a); i++) {
        char *x = out[0]->data + i * n * columns_in(b) * size_of(a);
        load(a, i, room);
        load(b, i, x);
        solve_factored(a, room, (int *)p->data + i * n, x, columns_in(b), argument(args, 4) == Py_True ? "T" : "N");
    }
    PyMem_Free(room);
    NONE_UNLESS(valid);
    return only(results_of(0, 1, out));
}

/* P, L and U from factors row by row. */
static void unpack(const char *at, Py_ssize_t pitch, const int *pivots, int m, int n, int size, char *p, char *l, char *u) {
    int count = m < n ? m : n, from[MOST_SIDE];
    float one4 = 1;
    double one8 = 1;
    const char *one = size == 4 ? (const char *)&one4 : (const char *)&one8;
    for (int i = 0; i < m; i++) from[i] = i;
    for (int k = 0; k < count; k++) {
        int other = pivots[k] - 1, kept = from[k];
        from[k] = from[other];
        from[other] = kept;
    }
    memset(p, 0, (size_t)(m * m * size));
    for (int i = 0; i < m; i++) memcpy(p + (from[i] * m + i) * size, one, (size_t)size);
    for (int r = 0; r < m; r++, at += pitch, l += count * size) {
        int below = r < count ? r : count;
        memcpy(l, at, (size_t)(below * size));
        memset(l + below * size, 0, (size_t)((count - below) * size));
        if (r >= count) continue;
        memcpy(l + r * size, one, (size_t)size);
        memset(u + r * n * size, 0, (size_t)(r * size));
        memcpy(u + (r * n + r) * size, at + r * size, (size_t)((n - r) * size));
    }
}

static PyObject *py_lu(PyObject *self, PyObject *args) { /* A, pivot */
    Array *a = stack_of(argument(args, 0));
    READY(a && argument(args, 1) == Py_True);
    int m = rows_in(a), n = columns_in(a), count = m < n ? m : n, size = size_of(a), pivots[MOST_SIDE];
    char *rows = PyMem_Malloc((size_t)(m * n * size));
    Array *out[3] = {rows ? new_stack(a, m, m, 0) : NULL, rows ? new_stack(a, m, count, 0) : NULL, rows ? new_stack(a, count, n, 0) : NULL};
    for (Py_ssize_t i = 0; out[0] && out[1] && out[2] && i < many_in(a); i++) {
        factor(a, i, room, pivots);
        copy_block(rows, (Py_ssize_t[]){n * size, size}, room, (Py_ssize_t[]){size, m * size}, (Py_ssize_t[]){m, n}, 2, size);
        unpack(rows, n * size, pivots, m, n, size, out[0]->data + i * m * m * size, out[1]->data + i * m * count * size,
               out[2]->data + i * count * n * size);
    }
    PyMem_Free(rows);
    PyMem_Free(room);
    return rows ? results_of(0, 3, out) : PyErr_NoMemory();
}

static PyObject *py_lu_unpack(PyObject *self, PyObject *args) { /* LU, pivots, unpack_data, unpack_pivots */
    Array *a = stack_of(argument(args, 0)), *p = array_of(argument(args, 1));
    NONE_UNLESS(a && p && kind(p) == I32 && argument(args, 2) == Py_True && argument(args, 3) == Py_True && p->nd == a->nd - 1);
    int m = rows_in(a), n = columns_in(a), count = m < n ? m : n, size = size_of(a), by_row = a->strides[a->nd - 1] == size;
    NONE_UNLESS(p->shape[p->nd - 1] == count && (p->nd == 1 || !memcmp(p->shape, a->shape, sizeof(*p->shape) * (size_t)(p->nd - 1))));
    for (Py_ssize_t i = 0; i < count_of(p); i++) NONE_UNLESS(((int *)p->data)[i] >= 1 && ((int *)p->data)[i] <= m);
    char *room = PyMem_Malloc((size_t)(m * n * size));
    Array *out[3] = {room ? new_stack(a, m, m, 0) : NULL, room ? new_stack(a, m, count, 0) : NULL, room ? new_stack(a, count, n, 0) : NULL};
    for (Py_ssize_t i = 0; out[0] && out[1] && out[2] && i < many_in(a); i++) {
        const char *at = item(a, i, 2);
        if (!by_row) copy_block(room, (Py_ssize_t[]){n * size, size}, at, a->strides + a->nd - 2, a->shape + a->nd - 2, 2, size);
        unpack(by_row ? at : room, by_row ? a->strides[a->nd - 2] : n * size, (int *)p->data + i * count, m, n, size,
               out[0]->data + i * m * m * size, out[1]->data + i * m * count * size, out[2]->data + i * count * n * size);
    }
    PyMem_Free(room);
    return room ? results_of(0, 3, out) : PyErr_NoMemory();
}

/* ---- determinants: the product of the pivots, or its sign and logarithm; then the factors */
static PyObject *determinants(PyObject *args, int apart) {
    Array *a = stack_of(argument(args, 0));
    READY(is_square(a));
    int n = rows_in(a);
    Array *out[4] = {new_rows(a, -1, kind(a)), new_stack(a, n, n, 0), new_rows(a, n, I32), apart ? new_rows(a, -1, kind(a)) : NULL};
    for (Py_ssize_t i = 0; out[0] && out[1] && out[2] && (!apart || out[3]) && i < many_in(a); i++) {
        int *pivots = (int *)out[2]->data + i * n;
        double value = 1, sum = 0;
        factor(a, i, room, pivots);
        store(out[1], i, room);
        for (int d = 0; d < n; d++) {
            double v = kind(a) == F32 ? (double)((float *)room)[d * (n + 1)] : ((double *)room)[d * (n + 1)];
            value *= apart ? (v > 0) - (v < 0) + (v != v ? v : 0) : v;
            sum += apart ? log(fabs(v)) : 0;
            if (pivots[d] != d + 1) value = -value;
        }
        if (kind(a) == F32) {
            ((float *)out[0]->data)[i] = (float)value;
            if (apart) ((float *)out[3]->data)[i] = (float)sum;
        } else {
            ((double *)out[0]->data)[i] = value;
            if (apart) ((double *)out[3]->data)[i] = sum;
        }
    }
    PyMem_Free(room);
    if (!apart) return results_of(0, 3, out);
    Array *ordered[4] = {out[0], out[3], out[1], out[2]};
    return results_of(0, 4, ordered);
}

static PyObject *py_det(PyObject *self, PyObject *args) { return determinants(args, 0); }
static PyObject *py_slogdet(PyObject *self, PyObject *args) { return determinants(args, 1); }

/* ---- Cholesky and triangles */
/* Zeros on one side of the diagonal of a matrix that is stored column by column. */
static void clear_triangle(char *at, int n, int size, int below) {
    for (int c = 0; c < n; c++)
        if (below)
            memset(at + (c * n + c + 1) * size, 0, (size_t)((n - c - 1) * size));
        else
            memset(at + c * n * size, 0, (size_t)(c * size));
}

static PyObject *py_cholesky_ex(PyObject *self, PyObject *args) { /* A, upper, check_errors */
    Array *a = stack_of(argument(args, 0));
    NONE_UNLESS(is_ready() && is_square(a));
    int n = rows_in(a), failed = 0, size = size_of(a), upper = argument(args, 1) == Py_True;
    Array *out[2] = {new_stack(a, n, n, 1), new_rows(a, -1, I32)};
    for (Py_ssize_t i = 0; out[0] && out[1] && i < many_in(a); i++) {
        char *at = out[0]->data + i * n * n * size;
        int info = 0;
        load(a, i, at);
        ROUTINE(POTRF, a)(upper ? "U" : "L", &n, at, &n, &info);
        clear_triangle(at, n, size, upper);
        ((int *)out[1]->data)[i] = info;
        failed |= info != 0;
    }
    return results_of(failed && argument(args, 2) == Py_True, 2, out);
}

static PyObject *py_cholesky_inverse(PyObject *self, PyObject *args) { /* factor, upper */
    Array *a = stack_of(argument(args, 0));
    NONE_UNLESS(is_ready() && is_square(a));
    int n = rows_in(a), failed = 0, size = size_of(a), upper = argument(args, 1) == Py_True;
    Array *out[1] = {new_stack(a, n, n, 1)};
    for (Py_ssize_t i = 0; out[0] && i < many_in(a); i++) {
        char *at = out[0]->data + i * n * n * size;
        int info = 0;
        load(a, i, at);
        ROUTINE(POTRI, a)(upper ? "U" : "L", &n, at, &n, &info);
        failed |= info != 0;
        for (int c = 0; c < n; c++)
            for (int r = c + 1; r < n; r++) {
                char *low = at + (c * n + r) * size, *high = at + (r * n + c) * size;
                memcpy(upper ? low : high, upper ? high : low, (size_t)size);
            }
    }
    return only(results_of(failed, 1, out));
}

/* X of A X = B, into `b` column by column. */
typedef void (*Solver)(const Array *a, const char *at, char *b, int columns, const char *const *words);

static PyObject *solved(PyObject *a_given, PyObject *b_given, Solver solver, const char *const *words) {
    Array *a = stack_of(a_given), *b = stack_of(b_given);
    READY(is_square(a) && b && same_stack(a, b) && rows_in(b) == rows_in(a));
    int n = rows_in(a), columns = columns_in(b);
    Array *out[1] = {new_stack(b, n, columns, 1)};
    for (Py_ssize_t i = 0; out[0] && i < many_in(a); i++) {
        char *x = out[0]->data + i * n * columns * size_of(a);
        load(a, i, room);
        load(b, i, x);
        solver(a, room, x, columns, words);
    }
    PyMem_Free(room);
    return only(results_of(0, 1, out));
}

static void by_potrs(const Array *a, const char *at, char *b, int columns, const char *const *words) {
    int n = rows_in(a), info = 0;
    ROUTINE(POTRS, a)(words[0], &n, &columns, at, &n, b, &n, &info);
}

static void by_trsm(const Array *a, const char *at, char *b, int columns, const char *const *words) {
    int n = rows_in(a);
    float one4 = 1;
    double one8 = 1;
    ROUTINE(TRSM, a)("L", words[0], "N", words[1], &n, &columns, kind(a) == F32 ? (void *)&one4 : (void *)&one8, at, &n, b, &n);
}

static PyObject *py_cholesky_solve(PyObject *self, PyObject *args) { /* B, factor, upper */
    const char *words[1] = {argument(args, 2) == Py_True ? "U" : "L"};
    return solved(argument(args, 1), argument(args, 0), by_potrs, words);
}

static PyObject *py_solve_triangular(PyObject *self, PyObject *args) { /* A, B, upper, left, unitriangular */
    const char *words[2] = {argument(args, 2) == Py_True ? "U" : "L", argument(args, 4) == Py_True ? "U" : "N"};
    NONE_UNLESS(argument(args, 3) == Py_True);
    return solved(argument(args, 0), argument(args, 1), by_trsm, words);
}

/* ---- QR and LDL */
/* Reflections of a matrix column by column at `at`, their factors in `tau`, and T of compact blocks where `t` is not NULL: LAPACK's geqrf
 * works in blocks only where a matrix is larger than these. */
static int reflect(const Array *a, int m, int n, char *at, char *tau, char *t, char *room) {
    int count = m < n ? m : n, size = size_of(a), work = BLOCK * n, info = 0, block = BLOCK / 2;
    if (!t) {
        ROUTINE(GEQRF, a)(&m, &n, at, &m, tau, room, &work, &info);
        return info;
    }
    ROUTINE(GEQRT, a)(&m, &n, &block, at, &m, t, &block, room, &info);
    for (int k = 0; k < count; k++) memcpy(tau + k * size, t + (k * block + k % block) * size, (size_t)size);
    return info;
}

static char *blocks_for(const Array *a) { /* room for T, where blocks are used */
    int count = rows_in(a) < columns_in(a) ? rows_in(a) : columns_in(a);
    return count < BLOCKED_SIDE ? NULL : PyMem_Malloc((size_t)(BLOCK / 2 * count * 8));
}

static PyObject *py_geqrf(PyObject *self, PyObject *args) {
    Array *a = stack_of(argument(args, 0));
    READY(a);
    int m = rows_in(a), n = columns_in(a), count = m < n ? m : n, size = size_of(a), info = 0;
    char *t = blocks_for(a);
    Array *out[2] = {new_stack(a, m, n, 1), new_rows(a, count, kind(a))};
    for (Py_ssize_t i = 0; out[0] && out[1] && i < many_in(a); i++) {
        char *at = out[0]->data + i * m * n * size;
        load(a, i, at);
        info |= reflect(a, m, n, at, out[1]->data + i * count * size, t, room);
    }
    PyMem_Free(t);
    PyMem_Free(room);
    return results_of(info != 0, 2, out);
}

static PyObject *py_householder_product(PyObject *self, PyObject *args) { /* vectors, tau */
    Array *a = stack_of(argument(args, 0)), *tau = array_of(argument(args, 1));
    READY(a && tau && rows_in(a) >= columns_in(a) && kind(tau) == kind(a) && tau->nd == a->nd - 1 && tau->shape[tau->nd - 1] > 0 &&
          tau->shape[tau->nd - 1] <= columns_in(a) &&
          (a->nd == 2 || !memcmp(a->shape, tau->shape, sizeof(*a->shape) * (size_t)(a->nd - 2))));
    int m = rows_in(a), n = columns_in(a), k = (int)tau->shape[tau->nd - 1], size = size_of(a), work = BLOCK * n, info = 0;
    int blocked = k >= BLOCKED_SIDE, failed = 0;
    char *at = room + BLOCK * n * 8, *more = blocked ? PyMem_Malloc((size_t)(BLOCK * (n + BLOCK + 1) * 8)) : NULL;
    Array *out[1] = {new_stack(a, m, n, 1)};
    for (Py_ssize_t i = 0; out[0] && i < many_in(a); i++) {
        char *q = out[0]->data + i * m * n * size, *factors = tau->data + i * k * size;
        if (more) { /* the product on an identity is in blocks whatever the size */
            int most = BLOCK * (n + BLOCK + 1);
            load(a, i, at);
            set_identity(q, m, n, size);
            ROUTINE(ORMQR, a)("L", "N", &m, &n, &k, at, &m, factors, q, &m, more, &most, &info);
        } else {
            load(a, i, q);
            ROUTINE(ORGQR, a)(&m, &n, &k, q, &m, factors, room, &work, &info);
        }
        failed |= info != 0;
    }
    PyMem_Free(more);
    PyMem_Free(room);
    return only(results_of(failed, 1, out));
}

static PyObject *py_qr(PyObject *self, PyObject *args) { /* A, mode */
    Array *a = stack_of(argument(args, 0));
    READY(a && PyUnicode_Check(argument(args, 1)) && !PyUnicode_CompareWithASCIIString(argument(args, 1), "reduced"));
    int m = rows_in(a), n = columns_in(a), count = m < n ? m : n, size = size_of(a), work = BLOCK * n, info = 0, failed = 0, block = BLOCK / 2;
    char *at = room + BLOCK * n * 8, *tau = at + (Py_ssize_t)m * n * size, *t = blocks_for(a);
    Array *out[2] = {new_stack(a, m, count, 1), new_stack(a, count, n, 1)};
    for (Py_ssize_t i = 0; out[0] && out[1] && i < many_in(a); i++) {
        char *q = out[0]->data + i * m * count * size, *r = out[1]->data + i * count * n * size;
        load(a, i, at);
        failed |= reflect(a, m, n, at, tau, t, room);
        memset(r, 0, (size_t)(count * n * size));
        for (int c = 0; c < n; c++) memcpy(r + c * count * size, at + c * m * size, (size_t)((c + 1 < count ? c + 1 : count) * size));
        if (t) {
            set_identity(q, m, count, size);
            ROUTINE(GEMQRT, a)("L", "N", &m, &count, &count, &block, at, &m, t, &block, q, &m, room, &info);
        } else {
            memcpy(q, at, (size_t)(m * count * size));
            ROUTINE(ORGQR, a)(&m, &count, &count, q, &m, tau, room, &work, &info);
        }
        failed |= info != 0;
    }
    PyMem_Free(t);
    PyMem_Free(room);
    return results_of(failed, 2, out);
}

static PyObject *py_ldl_factor_ex(PyObject *self, PyObject *args) { /* A, hermitian, check_errors */
    Array *a = stack_of(argument(args, 0));
    READY(is_square(a));
    int n = rows_in(a), failed = 0, size = size_of(a), work = BLOCK * n;
    Array *out[3] = {new_stack(a, n, n, 1), new_rows(a, n, I32), new_rows(a, -1, I32)};
    for (Py_ssize_t i = 0; out[0] && out[1] && out[2] && i < many_in(a); i++) {
        char *at = out[0]->data + i * n * n * size;
        int info = 0;
        load(a, i, at);
        ROUTINE(SYTRF, a)("L", &n, at, &n, (int *)out[1]->data + i * n, room, &work, &info);
        clear_triangle(at, n, size, 0);
        ((int *)out[2]->data)[i] = info;
        failed |= info != 0;
    }
    PyMem_Free(room);
    return results_of(failed && argument(args, 2) == Py_True, 3, out);
}

#include "native_spectral.h"

/* By the operator that each computes. */
static PyMethodDef methods[] = {
    {"use_arrays", use_arrays, METH_VARARGS, "use_arrays(ndarray, [(number, dtype), ...], make_tensor)"},
    {"linalg_lu_factor_ex.default", py_lu_factor_ex, METH_O, NULL},
    {"linalg_inv_ex.default", py_inv_ex, METH_O, NULL},
    {"_linalg_solve_ex.default", py_solve_ex, METH_O, NULL},
    {"linalg_lu_solve.default", py_lu_solve, METH_O, NULL},
    {"linalg_lu.default", py_lu, METH_O, NULL},
    {"lu_unpack.default", py_lu_unpack, METH_O, NULL},
    {"_linalg_det.default", py_det, METH_O, NULL},
    {"_linalg_slogdet.default", py_slogdet, METH_O, NULL},
    {"linalg_cholesky_ex.default", py_cholesky_ex, METH_O, NULL},
    {"cholesky_inverse.default", py_cholesky_inverse, METH_O, NULL},
    {"cholesky_solve.default", py_cholesky_solve, METH_O, NULL},
    {"linalg_solve_triangular.default", py_solve_triangular, METH_O, NULL},
    {"geqrf.default", py_geqrf, METH_O, NULL},
    {"linalg_householder_product.default", py_householder_product, METH_O, NULL},
    {"linalg_qr.default", py_qr, METH_O, NULL},
    {"_linalg_eigh.default", py_eigh, METH_O, NULL},
    {"linalg_eigvalsh.default", py_eigvalsh, METH_O, NULL},
    {"linalg_eig.default", py_eig, METH_O, NULL},
    {"_linalg_eigvals.default", py_eigvals, METH_O, NULL},
    {"linalg_matrix_rank.atol_rtol_float", py_matrix_rank, METH_O, NULL},
    {"linalg_lstsq.default", py_lstsq, METH_O, NULL},
    {"_linalg_svd.default", py_svd, METH_O, NULL},
    {"linalg_ldl_factor_ex.default", py_ldl_factor_ex, METH_O, NULL},
    {NULL, NULL, 0, NULL},
};

MODULE(_linalg)
