/* Rows and columns in C: what NumPy needs several passes for, or cannot vectorize.
 *
 * Functions take arrays through the buffer protocol: row-major float32 or float64, results in arrays of the same dtype.
 * Each returns True when it did the work, False where the arrays are not of that kind (the caller then uses NumPy).
 * Large work is done without the GIL, so that pieces of it may run on several threads.
 *
 * Sums are of many short float chains whose results are added in double. NaN and infinity mean what they mean; a NaN
 * among the elements is the extreme. The templates below are read twice, for float and for double.
 */
#ifndef T
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <math.h>
#include <stdint.h>
#include <string.h>

#define INLINE static inline __attribute__((always_inline))
#if defined(__x86_64__) && defined(__GLIBC__) && defined(__GNUC__) && !defined(__clang__)
#define CLONES __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define CLONES
#endif
#define LANES 32
#define BLOCK 4096   /* elements that are added in one dtype before going into the double total */
#define COLUMNS 256  /* columns that are worked on together */
#define ROWS 64      /* rows of them that are added before going into the double totals */
#define QUIET 16384  /* elements from which on the GIL is released */

enum { SUM, MAX, MIN };

#define JOIN_(a, b) a##b
#define JOIN(a, b) JOIN_(a, b)
#define N(name) JOIN(name, SUFFIX)

#define T float
#define BITS int32_t
#define SUFFIX _f
#define EXPONENT_SHIFT 23
#define EXPONENT_BIAS 127
#define MAGIC 12582912.0f
#define LOWEST (-104.0f)
#define LN2_HIGH 0.693359375f
#define LN2_LOW (-2.12194440e-4f)
#include "_native.c"
#undef T
#undef BITS
#undef SUFFIX
#undef EXPONENT_SHIFT
#undef EXPONENT_BIAS
#undef MAGIC
#undef LOWEST
#undef LN2_HIGH
#undef LN2_LOW

#define DOUBLE
#define T double
#define BITS int64_t
#define SUFFIX _d
#define EXPONENT_SHIFT 52
#define EXPONENT_BIAS 1023
#define MAGIC 6755399441055744.0
#define LOWEST (-746.0)
#define LN2_HIGH 6.93145751953125e-1
#define LN2_LOW 1.42860682030941723212e-6
#include "_native.c"

/* ---- arrays from Python */
typedef struct {
    Py_buffer view;
    int held;
} Array;

static int take(PyObject *o, Array *a, int writable) {
    a->held = PyObject_GetBuffer(o, &a->view, PyBUF_ND | PyBUF_FORMAT | (writable ? PyBUF_WRITABLE : 0)) == 0;
    if (!a->held)
        PyErr_Clear();
    return a->held;
}

static void drop(Array *a) {
    if (a->held)
        PyBuffer_Release(&a->view);
}

/* 'f' or 'd', or 0 for anything else */
static char kind_of(const Array *a) {
    const char *f = a->view.format;
    return f && (f[0] == 'f' || f[0] == 'd') && !f[1] ? f[0] : 0;
}

static Py_ssize_t count(const Array *a) { return a->view.len / a->view.itemsize; }

#define WORK(elements, call)                 \
    if ((elements) >= QUIET) {               \
        Py_BEGIN_ALLOW_THREADS call;         \
        Py_END_ALLOW_THREADS                 \
    } else {                                 \
        call;                                \
    }

/* softmax(source, result, logarithm, n, inner): along the middle of (outer, n, inner) */
static PyObject *py_softmax(PyObject *self, PyObject *const *args, Py_ssize_t nargs) {
    Array a = {.held = 0}, out = {.held = 0};
    int done = 0;
    if (nargs != 5)
        return PyErr_Format(PyExc_TypeError, "softmax takes 5 arguments");
    Py_ssize_t n = PyLong_AsSsize_t(args[3]), inner = PyLong_AsSsize_t(args[4]);
    if (PyErr_Occurred())
        return NULL;
    if (n > 0 && inner > 0 && take(args[0], &a, 0) && take(args[1], &out, 1) && kind_of(&a) && kind_of(&a) == kind_of(&out)) {
        Py_ssize_t outer = count(&a) / (n * inner);
        int logarithm = args[2] == Py_True;
        done = outer * n * inner == count(&a) && count(&out) == count(&a);
        if (done && kind_of(&a) == 'f') {
            WORK(count(&a), softmax_f(a.view.buf, out.view.buf, outer, n, inner, logarithm));
        } else if (done) {
            WORK(count(&a), softmax_d(a.view.buf, out.view.buf, outer, n, inner, logarithm));
        }
    }
    drop(&a);
    drop(&out);
    return PyBool_FromLong(done);
}

/* layer_norm(source, result, weight or None, bias or None, mean, rstd, eps): rows are as long as source is to mean */
static PyObject *py_layer_norm(PyObject *self, PyObject *const *args, Py_ssize_t nargs) {
    Array given[6];
    int done = 1;
    memset(given, 0, sizeof given);
    if (nargs != 7)
        return PyErr_Format(PyExc_TypeError, "layer_norm takes 7 arguments");
    double eps = PyFloat_AsDouble(args[6]);
    if (eps == -1.0 && PyErr_Occurred())
        return NULL;
    for (int i = 0; i < 6 && done; i++)
        if ((i != 2 && i != 3) || args[i] != Py_None)
            done = take(args[i], &given[i], i == 1 || i > 3) && kind_of(&given[i]) && kind_of(&given[i]) == kind_of(&given[0]);
    if (done) {
        Py_ssize_t total = count(&given[0]), rows = count(&given[4]), n = rows ? total / rows : 0;
        void *w = given[2].held ? given[2].view.buf : NULL, *b = given[3].held ? given[3].view.buf : NULL;
        done = count(&given[1]) == total && count(&given[5]) == rows && rows * n == total &&
               (!w || count(&given[2]) == n) && (!b || count(&given[3]) == n);
        if (done && kind_of(&given[0]) == 'f') {
            WORK(total, layer_norm_f(given[0].view.buf, given[1].view.buf, w, b, given[4].view.buf, given[5].view.buf, rows, n, eps));
        } else if (done) {
            WORK(total, layer_norm_d(given[0].view.buf, given[1].view.buf, w, b, given[4].view.buf, given[5].view.buf, rows, n, eps));
        }
    }
    for (int i = 0; i < 6; i++)
        drop(&given[i]);
    return PyBool_FromLong(done);
}

/* reduce(source, result, kind, n, inner): source is (outer, n, inner), result (outer, inner) */
static PyObject *py_reduce(PyObject *self, PyObject *const *args, Py_ssize_t nargs) {
    Array a = {.held = 0}, out = {.held = 0};
    int done = 0;
    if (nargs != 5)
        return PyErr_Format(PyExc_TypeError, "reduce takes 5 arguments");
    long kind = PyLong_AsLong(args[2]);
    Py_ssize_t n = PyLong_AsSsize_t(args[3]), inner = PyLong_AsSsize_t(args[4]);
    if (PyErr_Occurred())
        return NULL;
    if (n > 0 && inner > 0 && take(args[0], &a, 0) && take(args[1], &out, 1) && kind_of(&a) && kind_of(&a) == kind_of(&out)) {
        Py_ssize_t outer = count(&a) / (n * inner);
        done = outer * n * inner == count(&a) && outer * inner == count(&out);
        if (done && kind_of(&a) == 'f') {
            WORK(count(&a), reduce_f(a.view.buf, out.view.buf, (int)kind, outer, n, inner));
        } else if (done) {
            WORK(count(&a), reduce_d(a.view.buf, out.view.buf, (int)kind, outer, n, inner));
        }
    }
    drop(&a);
    drop(&out);
    return PyBool_FromLong(done);
}

static PyMethodDef methods[] = {
    {"softmax", (PyCFunction)(void (*)(void))py_softmax, METH_FASTCALL, "softmax(source, result, logarithm, n, inner) -> bool"},
    {"layer_norm", (PyCFunction)(void (*)(void))py_layer_norm, METH_FASTCALL,
     "layer_norm(source, result, weight, bias, mean, rstd, eps) -> bool"},
    {"reduce", (PyCFunction)(void (*)(void))py_reduce, METH_FASTCALL, "reduce(source, result, kind, n, inner) -> bool"},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, "_native", "Kernels in C; see core.native.", -1, methods, NULL, NULL, NULL, NULL};

PyMODINIT_FUNC PyInit__native(void) { return PyModule_Create(&module); }

#else /* ---- templates: T, and what goes with it, is defined */

/* exp(x) for x <= 0 (and NaN), to about one unit in the last place; denormal results are kept */
INLINE T N(exp_down)(T x) {
    T y = x < LOWEST ? LOWEST : x;
    T shifted = y * (T)1.44269504088896340736 + MAGIC;
    T whole = shifted - MAGIC;
    T r = (y - whole * LN2_HIGH) - whole * LN2_LOW;
    T p;
    BITS bits, magic;
    T magic_value = MAGIC;
#ifdef DOUBLE
    p = 1.0 / 6227020800.0;
    p = p * r + 1.0 / 479001600.0;
    p = p * r + 1.0 / 39916800.0;
    p = p * r + 1.0 / 3628800.0;
    p = p * r + 1.0 / 362880.0;
    p = p * r + 1.0 / 40320.0;
    p = p * r + 1.0 / 5040.0;
#else
    p = (T)(1.0 / 5040.0);
#endif
    p = p * r + (T)(1.0 / 720.0);
    p = p * r + (T)(1.0 / 120.0);
    p = p * r + (T)(1.0 / 24.0);
    p = p * r + (T)(1.0 / 6.0);
    p = p * r + (T)0.5;
    p = p * r + (T)1.0;
    p = p * r + (T)1.0;
    memcpy(&bits, &shifted, sizeof bits);
    memcpy(&magic, &magic_value, sizeof magic);
    BITS e = bits - magic;
    BITS half = e >> 1; /* two steps, because 2^e alone may be too small */
    BITS first = (half + EXPONENT_BIAS) << EXPONENT_SHIFT, second = (e - half + EXPONENT_BIAS) << EXPONENT_SHIFT;
    T a, b;
    memcpy(&a, &first, sizeof a);
    memcpy(&b, &second, sizeof b);
    return p * a * b;
}

INLINE double N(sum_row)(const T *x, Py_ssize_t n) {
    double total = 0;
    for (Py_ssize_t start = 0; start < n; start += BLOCK) {
        Py_ssize_t stop = start + BLOCK < n ? start + BLOCK : n, i = start;
        T lane[LANES] = {0};
        for (; i + LANES <= stop; i += LANES)
            for (int l = 0; l < LANES; l++)
                lane[l] += x[i + l];
        for (int l = 0; l < LANES; l++)
            total += lane[l];
        for (; i < stop; i++)
            total += x[i];
    }
    return total;
}

/* the largest (sign 1) or smallest (sign -1) element; NaN if there is one */
INLINE T N(extreme_row)(const T *x, Py_ssize_t n, T sign) {
    T best = sign * x[0], lane[LANES];
    BITS bad[LANES];
    Py_ssize_t i = 0;
    int nan = 0;
    if (n >= LANES) {
        for (int l = 0; l < LANES; l++) {
            lane[l] = sign * x[l];
            bad[l] = x[l] != x[l];
        }
        for (i = LANES; i + LANES <= n; i += LANES)
            for (int l = 0; l < LANES; l++) {
                T v = sign * x[i + l];
                lane[l] = v > lane[l] ? v : lane[l];
                bad[l] |= v != v;
            }
        for (int l = 0; l < LANES; l++) {
            best = lane[l] > best ? lane[l] : best;
            nan |= bad[l] != 0;
        }
    }
    for (; i < n; i++) {
        T v = sign * x[i];
        best = v > best ? v : best;
        nan |= v != v;
    }
    return nan || best != best ? (T)NAN : sign * best;
}

/* exp(x - top) into out (or nowhere), and the sum of it */
INLINE double N(exp_row)(const T *x, T *out, Py_ssize_t n, T top) {
    double total = 0;
    for (Py_ssize_t start = 0; start < n; start += BLOCK) {
        Py_ssize_t stop = start + BLOCK < n ? start + BLOCK : n, i = start;
        T lane[LANES] = {0};
        for (; i + LANES <= stop; i += LANES)
            for (int l = 0; l < LANES; l++) {
                T e = N(exp_down)(x[i + l] - top);
                lane[l] += e;
                if (out)
                    out[i + l] = e;
            }
        for (int l = 0; l < LANES; l++)
            total += lane[l];
        for (; i < stop; i++) {
            T e = N(exp_down)(x[i] - top);
            total += e;
            if (out)
                out[i] = e;
        }
    }
    return total;
}

INLINE void N(softmax_row)(const T *restrict x, T *restrict out, Py_ssize_t n, int logarithm) {
    T top = N(extreme_row)(x, n, (T)1);
    if (logarithm) {
        T shift = (T)log(N(exp_row)(x, NULL, n, top));
        for (Py_ssize_t i = 0; i < n; i++)
            out[i] = (x[i] - top) - shift;
    } else {
        T scale = (T)(1 / N(exp_row)(x, out, n, top));
        for (Py_ssize_t i = 0; i < n; i++)
            out[i] *= scale;
    }
}

INLINE void N(extreme_columns)(const T *x, T *out, Py_ssize_t n, Py_ssize_t inner, Py_ssize_t width, T sign) {
    BITS bad[COLUMNS];
    for (Py_ssize_t l = 0; l < width; l++) {
        out[l] = sign * x[l];
        bad[l] = out[l] != out[l];
    }
    for (Py_ssize_t i = 1; i < n; i++)
        for (Py_ssize_t l = 0; l < width; l++) {
            T v = sign * x[i * inner + l];
            out[l] = v > out[l] ? v : out[l];
            bad[l] |= v != v;
        }
    for (Py_ssize_t l = 0; l < width; l++)
        out[l] = bad[l] ? (T)NAN : sign * out[l];
}

INLINE void N(softmax_columns)(const T *restrict x, T *restrict out, Py_ssize_t n, Py_ssize_t inner, Py_ssize_t width, int logarithm) {
    T top[COLUMNS], scale[COLUMNS];
    double total[COLUMNS] = {0};
    N(extreme_columns)(x, top, n, inner, width, (T)1);
    for (Py_ssize_t start = 0; start < n; start += ROWS) {
        Py_ssize_t stop = start + ROWS < n ? start + ROWS : n;
        T part[COLUMNS] = {0};
        for (Py_ssize_t i = start; i < stop; i++)
            for (Py_ssize_t l = 0; l < width; l++) {
                T e = N(exp_down)(x[i * inner + l] - top[l]);
                part[l] += e;
                out[i * inner + l] = e;
            }
        for (Py_ssize_t l = 0; l < width; l++)
            total[l] += part[l];
    }
    for (Py_ssize_t l = 0; l < width; l++)
        scale[l] = logarithm ? (T)log(total[l]) : (T)(1 / total[l]);
    for (Py_ssize_t i = 0; i < n; i++)
        for (Py_ssize_t l = 0; l < width; l++)
            out[i * inner + l] = logarithm ? (x[i * inner + l] - top[l]) - scale[l] : out[i * inner + l] * scale[l];
}

CLONES static void N(softmax)(const T *x, T *out, Py_ssize_t outer, Py_ssize_t n, Py_ssize_t inner, int logarithm) {
    for (Py_ssize_t o = 0; o < outer; o++, x += n * inner, out += n * inner) {
        if (inner == 1)
            N(softmax_row)(x, out, n, logarithm);
        else
            for (Py_ssize_t c = 0; c < inner; c += COLUMNS)
                N(softmax_columns)(x + c, out + c, n, inner, inner - c < COLUMNS ? inner - c : COLUMNS, logarithm);
    }
}

INLINE double N(sum_squares)(const T *x, Py_ssize_t n, T mean) {
    double total = 0;
    for (Py_ssize_t start = 0; start < n; start += BLOCK) {
        Py_ssize_t stop = start + BLOCK < n ? start + BLOCK : n, i = start;
        T lane[LANES] = {0};
        for (; i + LANES <= stop; i += LANES)
            for (int l = 0; l < LANES; l++)
                lane[l] += (x[i + l] - mean) * (x[i + l] - mean);
        for (int l = 0; l < LANES; l++)
            total += lane[l];
        for (; i < stop; i++)
            total += (x[i] - mean) * (x[i] - mean);
    }
    return total;
}

INLINE void N(scale_row)(const T *restrict x, T *restrict out, const T *restrict w, const T *restrict b, Py_ssize_t n, T m, T r) {
    if (w && b)
        for (Py_ssize_t i = 0; i < n; i++)
            out[i] = (x[i] - m) * r * w[i] + b[i];
    else if (w)
        for (Py_ssize_t i = 0; i < n; i++)
            out[i] = (x[i] - m) * r * w[i];
    else if (b)
        for (Py_ssize_t i = 0; i < n; i++)
            out[i] = (x[i] - m) * r + b[i];
    else
        for (Py_ssize_t i = 0; i < n; i++)
            out[i] = (x[i] - m) * r;
}

CLONES static void N(layer_norm)(const T *x, T *out, const T *w, const T *b, T *mean, T *rstd, Py_ssize_t rows, Py_ssize_t n,
                                 double eps) {
    for (Py_ssize_t row = 0; row < rows; row++, x += n, out += n) {
        T m = mean[row] = (T)(N(sum_row)(x, n) / (double)n);
        T r = rstd[row] = (T)(1 / sqrt(N(sum_squares)(x, n, m) / (double)n + eps));
        N(scale_row)(x, out, w, b, n, m, r);
    }
}

INLINE void N(sum_columns)(const T *x, T *out, Py_ssize_t n, Py_ssize_t inner, Py_ssize_t width) {
    double total[COLUMNS] = {0};
    for (Py_ssize_t start = 0; start < n; start += ROWS) {
        Py_ssize_t stop = start + ROWS < n ? start + ROWS : n;
        T part[COLUMNS] = {0};
        for (Py_ssize_t i = start; i < stop; i++)
            for (Py_ssize_t l = 0; l < width; l++)
                part[l] += x[i * inner + l];
        for (Py_ssize_t l = 0; l < width; l++)
            total[l] += part[l];
    }
    for (Py_ssize_t l = 0; l < width; l++)
        out[l] = (T)total[l];
}

CLONES static void N(reduce)(const T *x, T *out, int kind, Py_ssize_t outer, Py_ssize_t n, Py_ssize_t inner) {
    T sign = kind == MIN ? (T)-1 : (T)1;
    for (Py_ssize_t o = 0; o < outer; o++, x += n * inner, out += inner) {
        if (inner == 1) {
            *out = kind == SUM ? (T)N(sum_row)(x, n) : N(extreme_row)(x, n, sign);
            continue;
        }
        for (Py_ssize_t c = 0; c < inner; c += COLUMNS) {
            Py_ssize_t width = inner - c < COLUMNS ? inner - c : COLUMNS;
            if (kind == SUM)
                N(sum_columns)(x + c, out + c, n, inner, width);
            else
                N(extreme_columns)(x + c, out + c, n, inner, width, sign);
        }
    }
}
#endif
