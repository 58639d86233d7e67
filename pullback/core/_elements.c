/* Element-wise operators in C: ufuncs of NumPy, and updates of whole lists of arrays.
 *
 * The loops are in native_elements.h, which codegen prints from the rules of operators, and native_special.h, which has what rules do not
 * give; this file reads them once for each set of instructions that an x86 may have, and picks one when it is loaded. `ufuncs()` gives
 * {name: ufunc}: NumPy then sees to broadcasting, dtypes and memory. A loop takes contiguous arrays, then numbers; what lies otherwise
 * goes through small buffers.
 * `over_rows(name, arrays, threads)` runs one loop over large arrays that lie or broadcast in any way, row by row;
 * `update(name, arrays, numbers, threads)` runs one loop over each tuple of arrays, and writes the first of them.
 */
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <math.h>
#include <string.h>

#include "native_machine.h"
#include "native_types.h"
#ifdef HAS_LEVELS
#include <cpuid.h>
#include <immintrin.h>
#endif
#if defined(__clang__)
#define SIMD _Pragma("clang loop vectorize(enable)")
#else
#define SIMD _Pragma("omp simd")
#endif

#define BUFFER 512 /* elements that go through a buffer at a time */
#define HELPERS
#include "native_elements.h"
#include "native_special.h"
#undef HELPERS

#define V(name) name##_plain
#include "native_elements.h"
#include "native_special.h"
#undef V
#ifdef HAS_LEVELS
#pragma GCC push_options
#pragma GCC target("avx2,fma,f16c")
#define V(name) name##_avx2
#include "native_elements.h"
#include "native_special.h"
#undef V
#pragma GCC pop_options
#pragma GCC push_options
#pragma GCC target("avx512f,avx512dq,avx512bw,avx512vl,avx2,fma,f16c,prefer-vector-width=512")
#define V(name) name##_avx512
#include "native_elements.h"
#include "native_special.h"
#undef V
#pragma GCC pop_options
#endif

#define MOST_OPERANDS 16
#define WHOLE 32   /* loops get multiples of this many: no element is computed by the scalar rest of a loop, which may round otherwise */
#define QUIET 16384 /* elements that are worth a thread */
#define SHARED (1 << 17) /* elements of a ufunc's call that threads share, as in core.arrays */
#define FEW 8 /* rows for each thread, fewer of which are cut into pieces */
#define PIECE 4096 /* of which a thread gets a multiple, so that only the end of the arrays is none of WHOLE */

typedef void (*Loop)(i64, char *const *);
typedef struct {
    const char *name;
    int arrays, numbers, results;
    const char *types; /* one letter for each array, number and result: f, d or ? */
    Loop loops[3];     /* for any processor, for AVX2, for AVX-512 */
    Loop loop;         /* the one for this processor */
} Kernel;

static Kernel TABLE[] = {
#ifdef HAS_LEVELS
#define ROW(symbol, name, arrays, numbers, results, types) \
    {name, arrays, numbers, results, types, {symbol##_plain, symbol##_avx2, symbol##_avx512}, NULL},
#else
#define ROW(symbol, name, arrays, numbers, results, types) \
    {name, arrays, numbers, results, types, {symbol##_plain, symbol##_plain, symbol##_plain}, NULL},
#endif
#include "native_elements.h"
#include "native_special.h"
#undef ROW
};
#ifdef HAS_LEVELS
static const Loop widens[2][3] = {{widen_plain, widen_avx2, widen_avx512}, {widen_half_plain, widen_half_avx2, widen_half_avx512}};
static const Loop narrows[2][3] = {{narrow_plain, narrow_avx2, narrow_avx512}, {narrow_half_plain, narrow_half_avx2, narrow_half_avx512}};
static const Loop fills_f[3] = {h_fill_f_plain, h_fill_f_avx2, h_fill_f_avx512}, fills_d[3] = {h_fill_d_plain, h_fill_d_avx2, h_fill_d_avx512};
#else
static const Loop widens[2][3] = {{widen_plain, widen_plain, widen_plain}, {widen_half_plain, widen_half_plain, widen_half_plain}};
static const Loop narrows[2][3] = {{narrow_plain, narrow_plain, narrow_plain}, {narrow_half_plain, narrow_half_plain, narrow_half_plain}};
static const Loop fills_f[3] = {h_fill_f_plain, h_fill_f_plain, h_fill_f_plain}, fills_d[3] = {h_fill_d_plain, h_fill_d_plain, h_fill_d_plain};
#endif
static Loop widen[2], narrow[2], fill_f, fill_d; /* those for this processor; of bfloat16, of float16 */
#define KERNELS ((int)(sizeof TABLE / sizeof *TABLE))

static int size_of(char type) { return type == 'f' ? 4 : type == 'd' ? 8 : 1; }

/* ---- ufuncs */
/* n elements of one size, each `step` after the one before, to contiguous memory */
static void gather(char *to, const char *from, Py_ssize_t step, int size, i64 n) {
    if (step == size)
        memcpy(to, from, (size_t)(n * size));
    else if (step == 0 && size > 1) {
        char *const both[2] = {(char *)from, to};
        (size == 4 ? fill_f : fill_d)(n, both);
    } else if (size == 4)
        for (i64 i = 0; i < n; i++)
            memcpy(to + i * 4, from + i * step, 4);
    else if (size == 8)
        for (i64 i = 0; i < n; i++)
            memcpy(to + i * 8, from + i * step, 8);
    else
        for (i64 i = 0; i < n; i++)
            to[i] = from[i * step];
}

/* Arrays that lie in any way. Full pieces of a contiguous array are used where they lie; one value for all is spread once. */
static void through_buffers(const Kernel *k, char *const *at, const Py_ssize_t *steps, i64 n) {
    int inputs = k->arrays + k->numbers, operands = inputs + k->results;
    char room[MOST_OPERANDS][BUFFER * 8] __attribute__((aligned(64)));
    for (int o = 0; o < inputs; o++)
        if (steps[o] == 0)
            gather(room[o], at[o], 0, size_of(k->types[o]), n < BUFFER ? (n + WHOLE - 1) / WHOLE * WHOLE : BUFFER);
    for (i64 first = 0; first < n; first += BUFFER) {
        i64 count = n - first < BUFFER ? n - first : BUFFER;
        char *p[MOST_OPERANDS];
        for (int o = 0; o < operands; o++) {
            char *lies = at[o] + first * steps[o];
            int size = size_of(k->types[o]);
            int in_place = count == BUFFER && steps[o] == size;
            p[o] = in_place ? lies : room[o];
            if (in_place || o >= inputs || steps[o] == 0)
                continue;
            if (count % WHOLE)
                memset(p[o] + count / WHOLE * WHOLE * size, 0, (size_t)(WHOLE * size));
            gather(p[o], lies, steps[o], size, count);
        }
        k->loop((count + WHOLE - 1) / WHOLE * WHOLE, p);
        for (int o = inputs; o < operands; o++) {
            char *to = at[o] + first * steps[o];
            int size = size_of(k->types[o]);
            for (i64 i = 0; p[o] != to && i < count; i++)
                memcpy(to + i * steps[o], p[o] + i * size, (size_t)size);
        }
    }
}

/* contiguous arrays; what is left of a multiple of WHOLE goes through buffers */
static void dense_loop(const Kernel *k, char *const *at, i64 n) {
    i64 whole = n / WHOLE * WHOLE;
    int operands = k->arrays + k->numbers + k->results;
    if (whole)
        k->loop(whole, at);
    if (whole == n)
        return;
    char *rest[MOST_OPERANDS];
    Py_ssize_t steps[MOST_OPERANDS];
    for (int o = 0; o < operands; o++) {
        steps[o] = o >= k->arrays && o < k->arrays + k->numbers ? 0 : size_of(k->types[o]);
        rest[o] = at[o] + whole * steps[o];
    }
    through_buffers(k, rest, steps, n - whole);
}

typedef void (*Body)(long, long, void *const *);
typedef void (*Parallel)(Body, long, long, long, void *const *, long);
static Parallel pool;
static long threads_for_large = 1;

static void strided_loop(const Kernel *k, char *const *at, const Py_ssize_t *steps, i64 n) {
    int dense = 1, fixed = 1, operands = k->arrays + k->numbers + k->results;
    for (int o = 0; o < operands && n > 1; o++)
        if (o >= k->arrays && o < k->arrays + k->numbers)
            fixed &= steps[o] == 0;
        else
            dense &= steps[o] == size_of(k->types[o]);
    if (dense && fixed)
        dense_loop(k, at, n);
    else if (fixed)
        through_buffers(k, at, steps, n);
    else
        for (i64 i = 0; i < n; i++) { /* numbers that differ from element to element: one at a time */
            char *p[MOST_OPERANDS];
            for (int o = 0; o < operands; o++)
                p[o] = at[o] + i * steps[o];
            dense_loop(k, p, 1);
        }
}

/* ---- large arrays: pieces of them to threads */
typedef struct {
    const Kernel *kernel;
    char *const *at;
    const Py_ssize_t *steps;
    i64 n;
} Strided;

static void strided_part(long first, long last, void *const *arguments) {
    const Strided *s = arguments[0];
    i64 from = (i64)first * PIECE, until = (i64)last * PIECE < s->n ? (i64)last * PIECE : s->n;
    char *at[MOST_OPERANDS];
    for (int o = 0; o < s->kernel->arrays + s->kernel->numbers + s->kernel->results; o++)
        at[o] = s->at[o] + from * s->steps[o];
    strided_loop(s->kernel, at, s->steps, until - from);
}

/* Whether pieces may be computed in any order: results lie densely, and operands are elsewhere or in the same places. */
static int stand_apart(int inputs, int operands, const int *sizes, char *const *at, const Py_ssize_t *steps, i64 n) {
    for (int r = inputs; r < operands; r++) {
        Py_ssize_t size = sizes[r], length = (Py_ssize_t)n * size;
        if (steps[r] != size)
            return 0;
        for (int o = 0; o < inputs; o++) {
            const char *low = steps[o] < 0 ? at[o] + (n - 1) * steps[o] : at[o];
            Py_ssize_t span = (Py_ssize_t)(n - 1) * (steps[o] < 0 ? -steps[o] : steps[o]) + sizes[o];
            int same = at[o] == at[r] && steps[o] == steps[r];
            if (!same && low < at[r] + length && at[r] < low + span)
                return 0;
        }
    }
    return 1;
}

/* an inner loop of NumPy's: `data` is the kernel */
static void inner(char **at, const Py_ssize_t *dims, const Py_ssize_t *steps, void *data) {
    const Kernel *k = data;
    Strided job = {k, at, steps, dims[0]};
    int sizes[MOST_OPERANDS];
    for (int o = 0; o < k->arrays + k->numbers + k->results; o++)
        sizes[o] = size_of(k->types[o]);
    if (job.n < SHARED || !pool || threads_for_large < 2 || !stand_apart(k->arrays + k->numbers, k->arrays + k->numbers + k->results, sizes, at, steps, job.n)) {
        strided_loop(data, at, steps, job.n);
        return;
    }
    void *const arguments[] = {&job};
    pool(strided_part, 0, (long)((job.n + PIECE - 1) / PIECE), QUIET / PIECE, arguments, threads_for_large);
}

typedef void (*UfuncLoop)(char **, const Py_ssize_t *, const Py_ssize_t *, void *);
typedef PyObject *(*MakeUfunc)(UfuncLoop *, void **, char *, int, int, int, int, const char *, const char *, int);
typedef int (*RegisterLoop)(PyObject *, int, UfuncLoop, const int *, void *);

/* A function of NumPy's about ufuncs, from the table of its C interface: 1 makes one (PyUFunc_FromFuncAndData), 2 gives it a loop of another dtype
 * (PyUFunc_RegisterLoopForType). NULL where there is no table. */
static void *ufunc_function(int entry) {
    PyObject *home = PyImport_ImportModule("numpy._core._multiarray_umath");
    if (!home) {
        PyErr_Clear();
        home = PyImport_ImportModule("numpy.core._multiarray_umath");
    }
    PyObject *capsule = home ? PyObject_GetAttrString(home, "_UFUNC_API") : NULL;
    void **table = capsule ? PyCapsule_GetPointer(capsule, NULL) : NULL;
    void *result = table ? table[entry] : NULL;
    Py_XDECREF(capsule);
    Py_XDECREF(home);
    return result;
}

static char number_of(char type) { return type == 'f' ? 11 : type == 'd' ? 12 : 0; } /* NumPy's numbers of dtypes */

static PyObject *py_ufuncs(PyObject *self, PyObject *none) {
    static UfuncLoop loops[2] = {inner, inner};
    static void *data[KERNELS];
    MakeUfunc make = (MakeUfunc)ufunc_function(1);
    PyObject *all = make ? PyDict_New() : NULL;
    for (int k = 0; all && k < KERNELS;) {
        int same = k + 1 < KERNELS && !strcmp(TABLE[k].name, TABLE[k + 1].name) ? 2 : 1;
        int operands = TABLE[k].arrays + TABLE[k].numbers + TABLE[k].results;
        char *numbers = malloc((size_t)(same * operands)); /* NumPy keeps it */
        for (int j = 0; j < same; j++) {
            data[k + j] = &TABLE[k + j];
            for (int o = 0; o < operands; o++)
                numbers[j * operands + o] = number_of(TABLE[k + j].types[o]);
        }
        PyObject *ufunc = make(loops, data + k, numbers, same, TABLE[k].arrays + TABLE[k].numbers, TABLE[k].results, -1,
                               TABLE[k].name, "An element-wise operator.", 0);
        if (!ufunc || PyDict_SetItemString(all, TABLE[k].name, ufunc) < 0)
            Py_CLEAR(all);
        Py_XDECREF(ufunc);
        k += same;
    }
    return all;
}

static const Kernel *find(const char *name, char type) {
    for (int k = 0; k < KERNELS; k++)
        if (TABLE[k].types[0] == type && !strcmp(TABLE[k].name, name))
            return &TABLE[k];
    return NULL;
}

/* ---- large arrays that lie otherwise: NumPy's way from row to row takes as long as a row */
#define MOST_DIMS 16

typedef struct {
    const Kernel *kernel;
    int nd;
    Py_ssize_t shape[MOST_DIMS], steps[MOST_OPERANDS][MOST_DIMS];
    Py_ssize_t piece; /* of a row, which threads take apart where there are few rows */
    long pieces;
    int in_place; /* an operand is where the result is */
    char *at[MOST_OPERANDS];
} Spread;

/* One row: where all lie densely, and no operand shares the result, what is left of a multiple of WHOLE is computed with elements before it. */
static void spread_row(const Kernel *k, int in_place, char **at, const Py_ssize_t *steps, const Py_ssize_t *n) {
    int dense = !in_place && *n >= WHOLE && *n % WHOLE;
    for (int o = 0; o < k->arrays + k->numbers + k->results; o++)
        dense &= steps[o] == (o >= k->arrays && o < k->arrays + k->numbers ? 0 : size_of(k->types[o]));
    if (!dense) {
        inner(at, n, steps, (void *)k);
        return;
    }
    k->loop(*n / WHOLE * WHOLE, at);
    for (int o = 0; o < k->arrays + k->numbers + k->results; o++)
        at[o] += (*n - WHOLE) * steps[o];
    k->loop(WHOLE, at);
}

/* Pieces `first` to `last` of rows, which are counted over all dimensions but the last. Where a row begins is worked out of where those of its
 * dimension do: pointers that were just written one by one are slow to copy. */
static void spread_part(long first, long last, void *const *arguments) {
    const Spread *s = arguments[0];
    const int operands = s->kernel->arrays + s->kernel->numbers + s->kernel->results, inside = s->nd - 1;
    Py_ssize_t place[MOST_DIMS] = {0}, steps[MOST_OPERANDS], down[MOST_OPERANDS];
    char *at[MOST_OPERANDS], *given[MOST_OPERANDS];
    for (int o = 0; o < operands; o++) {
        at[o] = s->at[o];
        steps[o] = s->steps[o][inside];
        down[o] = inside ? s->steps[o][inside - 1] : 0;
    }
    long left = first / s->pieces, piece = first % s->pieces;
    for (int d = inside - 1; d >= 0; left /= (long)s->shape[d], d--) {
        place[d] = left % s->shape[d];
        for (int o = 0; o < operands; o++)
            at[o] += place[d] * s->steps[o][d];
    }
    for (long k = first; k < last;) {
        const long ahead = inside ? (long)(s->shape[inside - 1] - place[inside - 1]) : 1;
        long rows = 0;
        for (; rows < ahead && k < last; k++) {
            const Py_ssize_t begin = piece * s->piece, rest = s->shape[inside] - begin, n = rest < s->piece ? rest : s->piece;
            for (int o = 0; o < operands; o++)
                given[o] = at[o] + rows * down[o] + begin * steps[o];
            spread_row(s->kernel, s->in_place, given, steps, &n);
            if (++piece == s->pieces)
                piece = 0, rows++;
        }
        for (int d = inside - 1; d >= 0; d--) {
            const Py_ssize_t moved = d == inside - 1 ? rows : 1, back = place[d] + moved == s->shape[d] ? s->shape[d] : 0;
            place[d] += moved - back;
            for (int o = 0; o < operands; o++)
                at[o] += s->steps[o][d] * (moved - back);
            if (!back)
                break;
        }
    }
}

/* Dimensions in the order in which the result lies: the last has its neighbours. */
static void sort_dims(Spread *s, int operands) {
    for (int d = 1; d < s->nd; d++)
        for (int at = d; at > 0; at--) {
            const Py_ssize_t before = s->steps[operands - 1][at - 1], here = s->steps[operands - 1][at], n = s->shape[at];
            if (s->shape[at - 1] < 2 || n < 2 || (before < 0 ? -before : before) >= (here < 0 ? -here : here))
                break;
            s->shape[at] = s->shape[at - 1], s->shape[at - 1] = n;
            for (int o = 0; o < operands; o++) {
                const Py_ssize_t step = s->steps[o][at];
                s->steps[o][at] = s->steps[o][at - 1], s->steps[o][at - 1] = step;
            }
        }
}

/* Neighbouring dimensions that every operand goes through in one step are one. */
static void join_dims(Spread *s, int operands) {
    int last = 0;
    for (int d = 1; d < s->nd; d++) {
        int joined = 1;
        for (int o = 0; o < operands; o++)
            joined &= s->steps[o][last] == s->steps[o][d] * s->shape[d];
        last += !joined;
        for (int o = 0; o < operands; o++)
            s->steps[o][last] = s->steps[o][d];
        s->shape[last] = s->shape[d] * (joined ? s->shape[last] : 1);
    }
    s->nd = last + 1;
}

/* An operand's steps in the dimensions of the result; 0 where it does not broadcast to it. */
static int align(const Py_buffer *v, Spread *s, int o) {
    int ahead = s->nd - v->ndim;
    for (int d = 0; d < s->nd; d++) {
        Py_ssize_t size = d < ahead ? 1 : v->shape[d - ahead];
        if (size != s->shape[d] && size != 1)
            return 0;
        s->steps[o][d] = size == 1 ? 0 : v->strides[d - ahead];
    }
    s->at[o] = v->buf;
    return ahead >= 0;
}

/* over_rows(name, (array, ..., number, ..., result), threads): whether the loop of this name was run on arrays of its dtype; numbers are arrays
 * without dimensions */
static PyObject *py_over_rows(PyObject *self, PyObject *args) {
    const char *name;
    PyObject *given;
    long threads;
    if (!PyArg_ParseTuple(args, "sO!l", &name, &PyTuple_Type, &given, &threads))
        return NULL;
    Py_buffer views[MOST_OPERANDS];
    Spread s = {0};
    int held = 0, operands = (int)PyTuple_GET_SIZE(given), fits = operands > 1 && operands <= MOST_OPERANDS;
    for (; fits && held < operands; held++) {
        int flags = PyBUF_STRIDES | PyBUF_FORMAT | (held == operands - 1 ? PyBUF_WRITABLE : 0);
        if (PyObject_GetBuffer(PyTuple_GET_ITEM(given, held), &views[held], flags) < 0) {
            PyErr_Clear();
            fits = 0;
            break;
        }
        const char *format = views[held].format;
        if (!held)
            s.kernel = format && format[0] && !format[1] ? find(name, format[0]) : NULL;
        fits = s.kernel && s.kernel->results == 1 && s.kernel->arrays + s.kernel->numbers == operands - 1 && format &&
               format[0] == s.kernel->types[held] && !format[1] && (held < s.kernel->arrays || held == operands - 1 || !views[held].ndim);
    }
    if (fits) {
        const Py_buffer *out = &views[operands - 1];
        s.nd = out->ndim;
        fits = s.nd > 0 && s.nd <= MOST_DIMS && out->len > 0;
        memcpy(s.shape, out->shape, sizeof(*s.shape) * (size_t)(fits ? s.nd : 0));
        for (int o = 0; fits && o < operands; o++)
            fits = align(&views[o], &s, o);
        for (int o = 0; fits && o < operands - 1; o++)
            s.in_place |= s.at[o] == s.at[operands - 1];
    }
    if (fits) {
        long rows = 1;
        sort_dims(&s, operands);
        join_dims(&s, operands);
        for (int d = 0; d < s.nd - 1; d++)
            rows *= (long)s.shape[d];
        Py_ssize_t length = s.shape[s.nd - 1];
        s.piece = rows >= FEW * threads || length < 2 * PIECE ? length : PIECE;
        s.pieces = (long)((length + s.piece - 1) / s.piece);
        long grain = QUIET / (long)s.piece;
        void *const arguments[] = {&s};
        PyThreadState *state = PyEval_SaveThread();
        if (pool && threads > 1)
            pool(spread_part, 0, rows * s.pieces, grain > 1 ? grain : 1, arguments, threads);
        else
            spread_part(0, rows * s.pieces, arguments);
        PyEval_RestoreThread(state);
    }
    while (held--)
        PyBuffer_Release(&views[held]);
    return PyBool_FromLong(fits);
}

/* ---- bfloat16 and float16 */
#include "native_halved.h"

typedef struct {
    char *from, *to;
    int is_narrow, is_half;
} Cast;

static void cast_part(long first, long last, void *const *arguments) {
    const Cast *c = arguments[0];
    char *pair[2] = {c->from + first * (c->is_narrow ? 4 : 2), c->to + first * (c->is_narrow ? 2 : 4)};
    (c->is_narrow ? narrow : widen)[c->is_half](last - first, pair);
}

static char letter_of(const Py_buffer *v) { return v->format && v->format[0] && !v->format[1] ? v->format[0] : 0; }

/* cast_halves(from, to, threads, is_half): whether a row-major array of single precision was narrowed to another of bfloat16, or float16, that
 * holds 16-bit integers, or the other way round */
static PyObject *py_cast_halves(PyObject *self, PyObject *args) {
    PyObject *source, *target;
    Py_buffer from, to;
    long threads;
    int is_half = 0;
    if (!PyArg_ParseTuple(args, "OOlp", &source, &target, &threads, &is_half))
        return NULL;
    if (PyObject_GetBuffer(source, &from, PyBUF_ND | PyBUF_FORMAT) < 0)
        return NULL;
    if (PyObject_GetBuffer(target, &to, PyBUF_ND | PyBUF_FORMAT | PyBUF_WRITABLE) < 0) {
        PyBuffer_Release(&from);
        return NULL;
    }
    const Cast c = {from.buf, to.buf, letter_of(&from) == 'f', is_half};
    const Py_ssize_t n = from.len / from.itemsize;
    const int fits = letter_of(&from) == (c.is_narrow ? 'f' : 'H') && letter_of(&to) == (c.is_narrow ? 'H' : 'f') && to.len / to.itemsize == n;
    if (fits) {
        void *const arguments[] = {(void *)&c};
        PyThreadState *state = n >= QUIET ? PyEval_SaveThread() : NULL;
        if (pool && threads > 1 && n >= 2 * QUIET)
            pool(cast_part, 0, n, QUIET, arguments, threads);
        else
            cast_part(0, n, arguments);
        if (state)
            PyEval_RestoreThread(state);
    }
    PyBuffer_Release(&from);
    PyBuffer_Release(&to);
    return PyBool_FromLong(fits);
}

/* casts(): the addresses of the loops that widen bfloat16 and float16 to single precision, and of those that narrow it to them */
static PyObject *py_casts(PyObject *self, PyObject *none) {
    const Loop all[4] = {widen[0], widen[1], narrow[0], narrow[1]};
    unsigned long long at[4];
    for (int i = 0; i < 4; i++)
        at[i] = (unsigned long long)(uintptr_t)all[i];
    return Py_BuildValue("(KKKK)", at[0], at[1], at[2], at[3]);
}

static void run_dense(const void *kernel, char *const *at, i64 n) { dense_loop(kernel, at, n); }

/* loops(): the address of the function that runs a loop over contiguous arrays, and (name, address, types, operands) of each of one result */
static PyObject *py_loops(PyObject *self, PyObject *none) {
    PyObject *all = PyList_New(0);
    for (int k = 0; all && k < KERNELS; k++) {
        const Kernel *found = &TABLE[k];
        if (found->results != 1)
            continue;
        PyObject *row = Py_BuildValue("(sKsi)", found->name, (unsigned long long)(uintptr_t)found, found->types, found->arrays + found->numbers);
        if (!row || PyList_Append(all, row) < 0)
            Py_CLEAR(all);
        Py_XDECREF(row);
    }
    return all ? Py_BuildValue("(KN)", (unsigned long long)(uintptr_t)run_dense, all) : NULL;
}

/* ---- updates of lists */

typedef struct {
    const Kernel *kernel;
    char *at[MOST_OPERANDS];
} Update;

static void update_part(long first, long last, void *const *arguments) {
    const Update *u = (const Update *)arguments[0];
    const Kernel *k = u->kernel;
    char *p[MOST_OPERANDS];
    for (int o = 0; o < k->arrays + k->numbers; o++)
        p[o] = o < k->arrays ? u->at[o] + first * size_of(k->types[o]) : u->at[o];
    for (int r = 0; r < k->results; r++) /* the first arrays are written */
        p[k->arrays + k->numbers + r] = p[r];
    dense_loop(k, p, last - first);
}

static PyObject *update_one(const char *name, PyObject *const *given, Py_ssize_t arrays, const double *values, Py_ssize_t numbers, long threads) {
    Py_buffer views[MOST_OPERANDS];
    float singles[MOST_OPERANDS];
    Update u;
    int held = 0, fits = arrays > 0 && arrays <= MOST_OPERANDS;
    Py_ssize_t n = 0;
    u.kernel = NULL;
    for (; fits && held < arrays; held++) {
        if (PyObject_GetBuffer(given[held], &views[held], PyBUF_ND | PyBUF_FORMAT | PyBUF_WRITABLE) < 0) {
            PyErr_Clear();
            fits = 0;
            break;
        }
        Py_buffer *v = &views[held];
        if (!held) {
            u.kernel = v->format && v->format[0] && !v->format[1] ? find(name, v->format[0]) : NULL;
            n = u.kernel ? v->len / v->itemsize : 0;
        }
        fits = u.kernel && v->format && v->format[0] == u.kernel->types[0] && !v->format[1] && v->len / v->itemsize == n;
        u.at[held] = v->buf;
    }
    fits = fits && u.kernel->arrays == arrays && u.kernel->numbers == numbers;
    if (fits) {
        for (int o = 0; o < numbers; o++) {
            singles[o] = (float)values[o];
            u.at[arrays + o] = u.kernel->types[0] == 'f' ? (char *)&singles[o] : (char *)&values[o];
        }
        void *const arguments[] = {&u};
        PyThreadState *state = n >= QUIET ? PyEval_SaveThread() : NULL;
        if (pool && threads > 1 && n >= 2 * QUIET)
            pool(update_part, 0, n, QUIET, arguments, threads);
        else
            update_part(0, n, arguments);
        if (state)
            PyEval_RestoreThread(state);
    }
    while (held--)
        PyBuffer_Release(&views[held]);
    return PyBool_FromLong(fits);
}

/* update(name, [(array, ...), ...], [(number, ...), ...], threads): how many of the tuples were done; those after are as before */
static PyObject *py_update(PyObject *self, PyObject *args) {
    const char *name;
    PyObject *lists, *values;
    long threads;
    if (!PyArg_ParseTuple(args, "sO!O!l", &name, &PyList_Type, &lists, &PyList_Type, &values, &threads))
        return NULL;
    Py_ssize_t done = 0, all = PyList_GET_SIZE(lists);
    if (PyList_GET_SIZE(values) != all)
        return PyErr_Format(PyExc_ValueError, "update: %zd tuples of arrays, %zd of numbers", all, PyList_GET_SIZE(values));
    for (; done < all; done++) {
        PyObject *row = PyList_GET_ITEM(lists, done), *given = PyList_GET_ITEM(values, done);
        double numbers[MOST_OPERANDS];
        if (!PyTuple_Check(row) || !PyTuple_Check(given) || PyTuple_GET_SIZE(given) > MOST_OPERANDS)
            return PyErr_Format(PyExc_TypeError, "update: expected tuples of arrays and of at most %d numbers", MOST_OPERANDS);
        for (Py_ssize_t o = 0; o < PyTuple_GET_SIZE(given); o++)
            numbers[o] = PyFloat_AsDouble(PyTuple_GET_ITEM(given, o));
        if (PyErr_Occurred())
            return NULL;
        PyObject *fits = update_one(name, &PyTuple_GET_ITEM(row, 0), PyTuple_GET_SIZE(row), numbers, PyTuple_GET_SIZE(given), threads);
        Py_XDECREF(fits);
        if (fits != Py_True)
            break;
    }
    return PyLong_FromSsize_t(done);
}

static PyObject *py_use_pool(PyObject *self, PyObject *address) {
    pool = (Parallel)PyLong_AsVoidPtr(address);
    if (PyErr_Occurred())
        return NULL;
    Py_RETURN_NONE;
}

static PyObject *py_use_threads(PyObject *self, PyObject *count) {
    long n = PyLong_AsLong(count);
    if (PyErr_Occurred())
        return NULL;
    threads_for_large = n;
    Py_RETURN_NONE;
}

static PyMethodDef methods[] = {
    {"ufuncs", py_ufuncs, METH_NOARGS, "ufuncs() -> {name: ufunc}"},
    {"update", py_update, METH_VARARGS, "update(name, arrays, numbers, threads) -> how many tuples were done"},
    {"over_rows", py_over_rows, METH_VARARGS, "over_rows(name, arrays and result, threads) -> whether it was done"},
    {"halved", py_halved, METH_VARARGS, "halved(ufunc or name, numbers, number of bfloat16) -> ufunc or None"},
    {"casts", py_casts, METH_NOARGS, "casts() -> addresses of the loops between half and single precision"},
    {"cast_halves", py_cast_halves, METH_VARARGS, "cast_halves(from, to, threads, is_half) -> whether it was done"},
    {"loops", py_loops, METH_NOARGS, "loops() -> address, [(name, address, types, operands), ...]"},
    {"use_threads", py_use_threads, METH_O, "use_threads(how many): for large arrays"},
    {"use_pool", py_use_pool, METH_O, "use_pool(address): the threads of native_pool.h"},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, "_elements", "See core.elements.", -1, methods, NULL, NULL, NULL, NULL};

/* Whether the processor casts float16, which AVX2 does not say. */
static int has_half_casts(void) {
#ifdef HAS_LEVELS
    unsigned int a, b, c = 0, d;
    return __get_cpuid(1, &a, &b, &c, &d) && c & bit_F16C;
#else
    return 0;
#endif
}

PyMODINIT_FUNC PyInit__elements(void) {
    const int level = machine_level();
    for (int k = 0; k < KERNELS; k++)
        TABLE[k].loop = TABLE[k].loops[level];
    for (int k = 0; k < 2; k++) {
        const int own = k && !has_half_casts() ? 0 : level;
        widen[k] = widens[k][own];
        narrow[k] = narrows[k][own];
    }
    fill_f = fills_f[level];
    fill_d = fills_d[level];
    return PyModule_Create(&module);
}
