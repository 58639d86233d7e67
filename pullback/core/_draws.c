/* Random numbers in C for plain calls: the words of NumPy's Mersenne twister, made into what PyTorch's CPU kernels make of them.
 *
 * What each number is, is said in Python in `core.random_streams` and `core.random_integers`, which compute where this does not: a
 * generator whose lock somebody has, or that is not of the CPU; half precision and complex numbers; memory that
 * is not row-major; parameters that the distribution refuses. Nothing is drawn before a call is known to be taken.
 */
#include "native_fronts.h"
#include <math.h>
#include "native_sources.h"

#if defined(__clang__)
#define SIMD _Pragma("clang loop vectorize(enable)")
#else
#define SIMD _Pragma("omp simd")
#endif
#define STEP(a, b, c) ((f32)((f64)(a) * (f64)(b) + (f64)(c))) /* the product is exact, and what it loses is not seen in single precision */
#define BOX_MULLER static void box_muller_anywhere
#include "native_normals.h"
#if defined(__x86_64__) && defined(__GNUC__)
#define STEP(a, b, c) __builtin_fmaf(a, b, c)
#define BOX_MULLER __attribute__((target("avx2,fma"))) static void box_muller_fused
#include "native_normals.h"
static void box_muller(f32 *p, i64 blocks) { (__builtin_cpu_supports("fma") && __builtin_cpu_supports("avx2") ? box_muller_fused : box_muller_anywhere)(p, blocks); }
#else
#define box_muller box_muller_anywhere
#endif

enum { LARGEST_SHUFFLE = (int)(0xFFFFFFFFu / 20) };

typedef struct {
    const Words *words;
    void *y;
    i64 n, low;
    u64 span;
    int kind;
    f64 a, b;
    const void *p;
    f64 waiting; /* the second number of the last pair */
    int is_waiting;
} Draw;

static void uniform(Draw *d) {
    if (d->kind == F64) {
        f64 *y = d->y, width = d->b - d->a;
        if (d->a == 0 && d->b == 1) {
            for (i64 i = 0; i < d->n; i++) y[i] = unit64(d->words);
            return;
        }
        for (i64 i = 0; i < d->n; i++) {
            f64 v = fma(unit64(d->words), width, d->a);
            y[i] = v == d->b ? d->a : v;
        }
        return;
    }
    f32 *y = d->y, low = (f32)d->a, high = (f32)d->b, width = high - low;
    for (i64 i = 0; i < d->n; i++) y[i] = unit(d->words);
    if (d->a == 0 && d->b == 1) return;
    for (i64 i = 0; i < d->n; i++) {
        f32 v = (f32)((f64)y[i] * (f64)width + (f64)low);
        y[i] = v == high ? low : v;
    }
}

static inline void store(Draw *d, i64 i, f64 v) {
    if (d->kind == F64)
        ((f64 *)d->y)[i] = v;
    else
        ((f32 *)d->y)[i] = (f32)v;
}

/* Fewer than 16, one by one: a pair of numbers at a time, whose second one may wait for the next call. */
static void normal_singles(Draw *d) {
    const f64 two_pi = 2.0 * 3.14159265358979323846;
    for (i64 i = 0; i < d->n; i++) {
        f64 v;
        if (d->is_waiting)
            v = d->waiting;
        else {
            f64 turn = unit64(d->words), distance = unit64(d->words);
            f64 radius = sqrt(-2.0 * log1p(-distance)), angle = two_pi * turn;
            v = radius * cos(angle);
            d->waiting = radius * sin(angle);
        }
        d->is_waiting = !d->is_waiting;
        store(d, i, fma(v, d->a, d->b));
    }
}

static void normal_block64(f64 *y, f64 std, f64 mean) {
    const f64 two_pi = 2.0 * 3.14159265358979323846;
    for (int i = 0; i < 8; i++) {
        f64 radius = sqrt(-2.0 * log(1.0 - y[i])), angle = two_pi * y[i + 8];
        y[i] = fma(radius * cos(angle), std, mean);
        y[i + 8] = fma(radius * sin(angle), std, mean);
    }
}

static void normal_blocks32(f32 *y, i64 blocks, f32 std, f32 mean) {
    box_muller(y, blocks);
    if (mean == 0)
        for (i64 i = 0; i < 16 * blocks; i++) y[i] = y[i] * std + 0.f;
    else
        for (i64 i = 0; i < 16 * blocks; i++) y[i] = (f32)((f64)y[i] * (f64)std + (f64)mean);
}

/* `a` is the deviation, `b` the mean. Blocks of 16; the last 16 are drawn anew where there is no whole number of blocks. */
static void normal(Draw *d) {
    if (d->n < 16) {
        normal_singles(d);
        return;
    }
    i64 whole = d->n / 16;
    int again = d->n % 16 != 0;
    if (d->kind == F64) {
        f64 *y = d->y;
        for (i64 i = 0; i < d->n; i++) y[i] = unit64(d->words);
        for (i64 b = 0; b < whole; b++) normal_block64(y + 16 * b, d->a, d->b);
        for (i64 i = d->n - 16; again && i < d->n; i++) y[i] = unit64(d->words);
        if (again) normal_block64(y + d->n - 16, d->a, d->b);
        return;
    }
    f32 *y = d->y;
    for (i64 i = 0; i < d->n; i++) y[i] = unit(d->words);
    normal_blocks32(y, whole, (f32)d->a, (f32)d->b);
    for (i64 i = d->n - 16; again && i < d->n; i++) y[i] = unit(d->words);
    if (again) normal_blocks32(y + d->n - 16, 1, (f32)d->a, (f32)d->b);
}

static void exponential(Draw *d) {
    f64 factor = -1.0 / d->a;
    for (i64 i = 0; i < d->n; i++) store(d, i, factor * log1p(-unit64(d->words)));
}

#define EACH(kind, y, n, value)                                     \
    switch (kind) {                                                 \
        case F32: for (i64 i = 0; i < n; i++) ((f32 *)(y))[i] = (f32)(value); break;              \
        case F64: for (i64 i = 0; i < n; i++) ((f64 *)(y))[i] = (f64)(value); break;              \
        case I64: for (i64 i = 0; i < n; i++) ((i64 *)(y))[i] = (i64)(value); break;              \
        case I32: for (i64 i = 0; i < n; i++) ((i32 *)(y))[i] = (i32)(value); break;              \
        case I16: for (i64 i = 0; i < n; i++) ((short *)(y))[i] = (short)(value); break;          \
        case I8: for (i64 i = 0; i < n; i++) ((signed char *)(y))[i] = (signed char)(value); break; \
        default: for (i64 i = 0; i < n; i++) ((unsigned char *)(y))[i] = (unsigned char)(value);  \
    }

/* Ones where a word of 53 bits is below `span`. */
static void bernoulli(Draw *d) { EACH(d->kind, d->y, d->n, (word64(d->words) & (((u64)1 << 53) - 1)) < d->span) }

static void bernoulli_each(Draw *d) {
    if (d->kind == F64)
        for (i64 i = 0; i < d->n; i++) ((f64 *)d->y)[i] = unit64(d->words) < ((const f64 *)d->p)[i];
    else
        for (i64 i = 0; i < d->n; i++) ((f32 *)d->y)[i] = unit(d->words) < ((const f32 *)d->p)[i];
}

static void integers(Draw *d) {
    u32 span = (u32)d->span;
    if (d->span < (u64)1 << 28) {
        EACH(d->kind, d->y, d->n, (i64)(word(d->words) % span) + d->low)
    } else {
        EACH(d->kind, d->y, d->n, (i64)(word64(d->words) % d->span + (u64)d->low))
    }
}

/* The shuffle of Fisher and Yates: element i changes places with one at or after i. */
static void permutation(Draw *d) {
    i64 *y = d->y;
    for (i64 i = 0; i < d->n; i++) y[i] = i;
    for (i64 i = 0; i + 1 < d->n; i++) {
        i64 other = i + (i64)(word(d->words) % (u32)(d->n - i)), kept = y[i];
        y[i] = y[other];
        y[other] = kept;
    }
}

/* ---- calls: `fill` on an array by a generator; 0 where its words cannot be had now */
static int drawn(void (*fill)(Draw *), Draw *d, Array *a, PyObject *generator) {
    Source source;
    if (!open_source(&source, generator)) return 0;
    d->words = source.words;
    d->y = a->data;
    d->n = count_of(a);
    d->kind = kind(a);
    int was_waiting = d->is_waiting = take_waiting(&source, &d->waiting);
    if (d->n >= ALONE) {
        Py_BEGIN_ALLOW_THREADS
        fill(d);
        Py_END_ALLOW_THREADS
    } else
        fill(d);
    if (fill == normal && d->n < 16 && (was_waiting || d->is_waiting)) leave_waiting(&source, d->is_waiting, d->waiting);
    close_source(&source, 1);
    return 1;
}

/* A new tensor, drawn; a large one begins in memory of its own, so the array library makes it. */
static PyObject *drawn_new(void (*fill)(Draw *), Draw *d, int nd, const Py_ssize_t *shape, int k, PyObject *generator) {
    NONE_UNLESS(product_of(shape, nd) > 0);
    Array *r = new_array(nd, shape, k);
    if (!r) return NULL;
    if (drawn(fill, d, r, generator)) return tensor_of(r);
    Py_DECREF(r);
    Py_RETURN_NONE;
}

static PyObject *drawn_into(void (*fill)(Draw *), Draw *d, PyObject *target, PyObject *generator) {
    Array *a = array_of(target);
    NONE_UNLESS(a && is_writable(a) && count_of(a) > 0 && drawn(fill, d, a, generator == Py_None ? NULL : generator));
    return written(target);
}

static inline int is_real(int k) { return k == F32 || k == F64; }

static int is_real_target(PyObject *target) {
    Array *a = array_of(target);
    return a && is_real(kind(a));
}

static f64 largest(int k) { return k == F32 ? 3.4028234663852886e38 : 1.7976931348623157e308; }

static PyObject *py_uniform_(PyObject *self, PyObject *args) {
    Draw d = {0};
    NONE_UNLESS(is_real_target(argument(args, 0)) && real_of(argument(args, 1), &d.a) && real_of(argument(args, 2), &d.b));
    f64 most = largest(kind(array_of(argument(args, 0))));
    NONE_UNLESS(d.a >= -most && d.b <= most && d.a <= d.b && d.b - d.a <= most);
    return drawn_into(uniform, &d, argument(args, 0), argument(args, 3));
}

static PyObject *py_normal_(PyObject *self, PyObject *args) {
    Draw d = {0};
    NONE_UNLESS(is_real_target(argument(args, 0)) && real_of(argument(args, 1), &d.b) && real_of(argument(args, 2), &d.a) && d.a >= 0);
    return drawn_into(normal, &d, argument(args, 0), argument(args, 3));
}

static PyObject *py_exponential_(PyObject *self, PyObject *args) {
    Draw d = {0};
    NONE_UNLESS(is_real_target(argument(args, 0)) && real_of(argument(args, 1), &d.a) && d.a > 0);
    return drawn_into(exponential, &d, argument(args, 0), argument(args, 2));
}

static PyObject *py_bernoulli_(PyObject *self, PyObject *args) {
    Draw d = {0};
    NONE_UNLESS(real_of(argument(args, 1), &d.a) && d.a >= 0 && d.a <= 1);
    d.span = (u64)ceil(ldexp(d.a, 53));
    return drawn_into(bernoulli, &d, argument(args, 0), argument(args, 2));
}

static PyObject *py_bernoulli(PyObject *self, PyObject *args) {
    Array *p = array_of(argument(args, 0));
    NONE_UNLESS(p && is_real(kind(p)) && has_own_strides(p));
    i64 n = count_of(p);
    int fits = 1;
    if (kind(p) == F32)
        for (i64 i = 0; i < n; i++) fits &= ((f32 *)p->data)[i] >= 0 && ((f32 *)p->data)[i] <= 1;
    else
        for (i64 i = 0; i < n; i++) fits &= ((f64 *)p->data)[i] >= 0 && ((f64 *)p->data)[i] <= 1;
    NONE_UNLESS(fits);
    Draw d = {.p = p->data};
    return drawn_new(bernoulli_each, &d, p->nd, p->shape, kind(p), argument(args, 1) == Py_None ? NULL : argument(args, 1));
}

/* Ones where a word is below `span`, scaled, times what is dropped from. */
#define DROPPED(T)                                                             \
    {                                                                          \
        const T factor = (T)1 / (T)d->a, *x = d->p;                            \
        T *y = d->y;                                                           \
        for (i64 i = 0; i < d->n; i++) y[i] = x[i] * (y[i] * factor);          \
    }

static void dropped(Draw *d) {
    bernoulli(d);
    if (d->kind == F64)
        DROPPED(f64)
    else
        DROPPED(f32)
}

static PyObject *py_dropout(PyObject *self, PyObject *args) { /* input, p, train */
    Array *a = array_of(argument(args, 0));
    Draw d = {0};
    NONE_UNLESS(a && is_real(kind(a)) && is_small(a) && has_own_strides(a) && argument(args, 2) == Py_True);
    NONE_UNLESS(real_of(argument(args, 1), &d.a) && d.a > 0 && d.a < 1);
    d.a = 1.0 - d.a;
    d.span = (u64)ceil(ldexp(d.a, 53));
    d.p = a->data;
    return drawn_new(dropped, &d, a->nd, a->shape, kind(a), NULL);
}

static int whole_of(PyObject *value, i64 *into) {
    if (!PyLong_CheckExact(value)) return 0;
    *into = PyLong_AsLongLong(value);
    if (*into == -1 && PyErr_Occurred()) {
        PyErr_Clear();
        return 0;
    }
    return 1;
}

/* Bounds of integers in [low, high) that every number of the kind can be without rounding or wrapping. */
static int range_of(Draw *d, PyObject *low, PyObject *high, int k) {
    static const i64 least[] = {-(1 << 24), -((i64)1 << 53), INT64_MIN, INT32_MIN, -32768, -128, 0},
                     most[] = {1 << 24, (i64)1 << 53, INT64_MAX, INT32_MAX, 32767, 127, 255};
    i64 end;
    d->low = 0;
    if (k < 0 || k > U8 || (low && !whole_of(low, &d->low)) || !whole_of(high, &end)) return 0;
    if (d->low < least[k] || end - 1 > most[k] || end <= d->low || (k <= F64 && (d->low == least[k] || end >= most[k]))) return 0;
    d->span = (u64)end - (u64)d->low;
    return 1;
}

static PyObject *random_range(PyObject *target, PyObject *low, PyObject *high, PyObject *generator) {
    Array *a = array_of(target);
    Draw d = {0};
    NONE_UNLESS(a && range_of(&d, low, high, kind(a)));
    return drawn_into(integers, &d, target, generator);
}

static PyObject *py_random_from_(PyObject *self, PyObject *args) {
    return random_range(argument(args, 0), argument(args, 1), argument(args, 2), argument(args, 3));
}

static PyObject *py_random_to_(PyObject *self, PyObject *args) { return random_range(argument(args, 0), NULL, argument(args, 1), argument(args, 2)); }

/* ---- factories, as users call them */
static PyObject *sized(PyObject *const *given, Py_ssize_t count, void (*fill)(Draw *), f64 a, f64 b) {
    Options o;
    Py_ssize_t shape[16];
    NONE_UNLESS(is_call(given, count, 0, &o));
    int nd = sizes_of(given[0], 0, o.size, shape), k = o.kind < 0 ? default_kind() : o.kind;
    NONE_UNLESS(nd >= 0 && is_real(k));
    Draw d = {.a = a, .b = b};
    return drawn_new(fill, &d, nd, shape, k, o.generator);
}

static PyObject *py_rand(PyObject *self, PyObject *const *given, Py_ssize_t count) { return sized(given, count, uniform, 0, 1); }
static PyObject *py_randn(PyObject *self, PyObject *const *given, Py_ssize_t count) { return sized(given, count, normal, 1, 0); }

static PyObject *like(PyObject *const *given, Py_ssize_t count, void (*fill)(Draw *), f64 a, f64 b) {
    Options o;
    NONE_UNLESS(is_call(given, count, 1, &o) && PyTuple_GET_SIZE(given[0]) == 1 && !o.size);
    Array *x = plain_array(PyTuple_GET_ITEM(given[0], 0));
    NONE_UNLESS(x && has_own_strides(x));
    int k = o.kind < 0 ? kind(x) : o.kind;
    NONE_UNLESS(is_real(k));
    Draw d = {.a = a, .b = b};
    return drawn_new(fill, &d, x->nd, x->shape, k, o.generator);
}

static PyObject *py_rand_like(PyObject *self, PyObject *const *given, Py_ssize_t count) { return like(given, count, uniform, 0, 1); }
static PyObject *py_randn_like(PyObject *self, PyObject *const *given, Py_ssize_t count) { return like(given, count, normal, 1, 0); }

/* (high, size), (low, high, size) */
static PyObject *py_randint(PyObject *self, PyObject *const *given, Py_ssize_t count) {
    Options o;
    Py_ssize_t shape[16];
    NONE_UNLESS(is_call(given, count, 1, &o));
    int bounds = (int)PyTuple_GET_SIZE(given[0]) - !o.size, k = o.kind < 0 ? I64 : o.kind;
    NONE_UNLESS((bounds == 1 || bounds == 2) && (o.size || !PyLong_Check(PyTuple_GET_ITEM(given[0], bounds))));
    int nd = sizes_of(given[0], bounds, o.size, shape);
    Draw d = {0};
    NONE_UNLESS(nd >= 0 && range_of(&d, bounds == 2 ? argument(given[0], 0) : NULL, argument(given[0], bounds - 1), k));
    return drawn_new(integers, &d, nd, shape, k, o.generator);
}

static PyObject *py_randperm(PyObject *self, PyObject *const *given, Py_ssize_t count) {
    Options o;
    Py_ssize_t n;
    NONE_UNLESS(is_call(given, count, 1, &o) && PyTuple_GET_SIZE(given[0]) == 1 && !o.size && (o.kind < 0 || o.kind == I64));
    NONE_UNLESS(integer_of(argument(given[0], 0), &n) && n > 1 && n < LARGEST_SHUFFLE);
    Draw d = {0};
    return drawn_new(permutation, &d, 1, &n, I64, o.generator);
}

/* box_muller(array): uniform float32 numbers, a multiple of 16 and row-major, become normal ones */
static PyObject *py_box_muller(PyObject *self, PyObject *array) {
    Py_buffer view;
    if (PyObject_GetBuffer(array, &view, PyBUF_C_CONTIGUOUS | PyBUF_WRITABLE)) return NULL;
    Py_BEGIN_ALLOW_THREADS
    box_muller(view.buf, view.len / 64);
    Py_END_ALLOW_THREADS
    PyBuffer_Release(&view);
    Py_RETURN_NONE;
}

/* By the operator, or the public function, that each computes. */
static PyMethodDef methods[] = {
    {"use_arrays", use_arrays, METH_VARARGS, "use_arrays(ndarray, [(number, dtype), ...], make_tensor)"},
    {"use_process", use_process, METH_VARARGS, "use_process(process, cpu, Tensor, ambient, untracked)"},
    {"use_generators", use_generators, METH_VARARGS, "use_generators(Generator, default_generator)"},
    {"box_muller", py_box_muller, METH_O, "box_muller(array)"},
    {"uniform_.default", py_uniform_, METH_O, NULL},
    {"normal_.default", py_normal_, METH_O, NULL},
    {"exponential_.default", py_exponential_, METH_O, NULL},
    {"bernoulli_.float", py_bernoulli_, METH_O, NULL},
    {"bernoulli.default", py_bernoulli, METH_O, NULL},
    {"dropout.default", py_dropout, METH_O, NULL},
    {"random_.from", py_random_from_, METH_O, NULL},
    {"random_.to", py_random_to_, METH_O, NULL},
    {"torch.rand", FRONT(py_rand), NULL},
    {"torch.randn", FRONT(py_randn), NULL},
    {"torch.rand_like", FRONT(py_rand_like), NULL},
    {"torch.randn_like", FRONT(py_randn_like), NULL},
    {"torch.randint", FRONT(py_randint), NULL},
    {"torch.randperm", FRONT(py_randperm), NULL},
    {NULL, NULL, 0, NULL},
};

MODULE(_draws)
