/* Numbers drawn by trial and error in C: poisson, binomial, gamma, dirichlet.
 *
 * What each number is, is said in Python in `core.random_rejection`, which computes where this does not: a generator whose lock somebody
 * has, other dtypes, parameters that the distribution refuses. Nothing is drawn before a call is
 * known to be taken.
 */
#include "native_fronts.h"
#include <math.h>
#include "native_sources.h"

typedef struct {
    const Words *words;
    int has_drawn, is_waiting;
    f64 waiting;
} Tape;

static inline f64 next_uniform(Tape *t) {
    t->has_drawn = 1;
    return unit64(t->words);
}

static inline f64 next_normal(Tape *t) {
    if (t->is_waiting) {
        t->is_waiting = 0;
        return t->waiting;
    }
    f64 angle = 2.0 * 3.14159265358979323846 * next_uniform(t), radius = sqrt(-2.0 * log1p(-next_uniform(t)));
    t->waiting = radius * sin(angle);
    t->is_waiting = 1;
    return radius * cos(angle);
}

/* ---- poisson */
static f64 poisson_large(Tape *t, f64 rate) {
    f64 log_rate = log(rate), b = 0.931 + 2.53 * sqrt(rate), a = -0.059 + 0.02483 * b;
    f64 inverse_alpha = 1.1239 + 1.1328 / (b - 3.4), inside = 0.9277 - 3.6224 / (b - 2);
    for (;;) {
        f64 u = next_uniform(t) - 0.5, v = next_uniform(t), us = 0.5 - fabs(u);
        if (us == 0) continue;
        f64 k = floor((2 * a / us + b) * u + rate + 0.43);
        int taken = us >= 0.07 && v <= inside;
        if (!taken && (k < 0 || (us < 0.013 && v > us))) continue;
        if (taken || log(v) + log(inverse_alpha) - log(a / (us * us) + b) <= -rate + k * log_rate - lgamma(k + 1))
            return fabs(k) < 0x1p63 ? k : -0x1p63;
    }
}

static f64 poisson_one(Tape *t, f64 rate) {
    if (rate >= 10) return poisson_large(t, rate);
    if (rate == 0) return 0;
    f64 least = exp(-rate), product = 1;
    for (f64 count = 0;; count++) {
        product *= next_uniform(t);
        if (!(product > least)) return count;
    }
}

/* ---- binomial */
typedef struct {
    f64 n, p, mean, deviation, odds, mode, n_plus_1, log_fail;
    int rounds;
} Trials;

static inline f64 rounded(const Trials *b, f64 x) { return b->rounds ? (f64)(f32)x : x; }

static f64 stirling_tail(f64 k) {
    static const f64 known[10] = {0.0810614667953272, 0.0413406959554092, 0.0276779256849983, 0.02079067210376509, 0.0166446911898211,
                                  0.0138761288230707, 0.0118967099458917, 0.0104112652619720, 0.00925546218271273, 0.00833056343336287};
    if (k < 10) return known[(int)k];
    f64 square = (k + 1) * (k + 1);
    return (1.0 / 12 - (1.0 / 360 - 1.0 / 1260 / square) / square) / (k + 1);
}

static f64 binomial_rejection(Tape *t, const Trials *g) {
    f64 b = 1.15 + 2.53 * g->deviation, a = -0.0873 + 0.0248 * b + 0.01 * g->p, c = g->mean + 0.5;
    f64 inside = 0.92 - 4.2 / b, alpha = (2.83 + 5.1 / b) * g->deviation, above_mode = g->n - g->mode + 1;
    for (;;) {
        f64 u = next_uniform(t) - 0.5, v = next_uniform(t), us = 0.5 - fabs(u);
        if (us == 0) continue;
        f64 k = rounded(g, floor((2 * a / us + b) * u + c));
        if (k < 0 || k > g->n) continue;
        if (us >= 0.07 && v <= inside) return k;
        f64 rest = rounded(g, g->n - k), above = rounded(g, rest + 1);
        f64 bound = (g->mode + 0.5) * log((g->mode + 1) / (g->odds * above_mode)) + g->n_plus_1 * log(above_mode / above) +
                    (k + 0.5) * log(g->odds * above / rounded(g, k + 1)) + stirling_tail(g->mode) + stirling_tail(g->n - g->mode) -
                    stirling_tail(k) - stirling_tail(rest);
        if (log(v * alpha / (a / (us * us) + b)) <= bound) return k;
    }
}

static f64 count_successes(Tape *t, const Trials *g) {
    if (g->mean >= 10) return binomial_rejection(t, g);
    f64 total = 0;
    for (f64 successes = 0;; successes++) {
        total += ceil(log(next_uniform(t)) / g->log_fail);
        if (total > g->n) return successes;
    }
}

/* What the draws of an element need, computed in its dtype where PyTorch does so; the rarer outcome is counted. */
#define BINOMIAL(T, root, below)                                                                                                \
    static f64 binomial_##T(Tape *t, T n, T p) {                                                                                \
        if (n <= 0 || p <= 0) return 0;                                                                                         \
        if (p != p || n != n || (n - n != 0 && p < 1)) return NAN;                                                              \
        const T one = 1, rare = p <= (T)0.5 ? p : (T)(1.0 - (f64)p);                                                             \
        f64 found = 0;                                                                                                          \
        if (p < 1 && n - n == 0) {                                                                                              \
            T mean = n * rare, variance = mean * (one - rare), odds = rare / (one - rare), mode = below((n + one) * rare);      \
            T after = n + one;                                                                                                  \
            Trials g = {n, rare, mean, root(variance), odds, mode, after, (T)log1p(-(f64)rare), 0};                             \
            g.rounds = sizeof(T) == 4 && (n >= (T)(1 << 23) || n != below(n));                                                  \
            found = (T)count_successes(t, &g);                                                                                  \
        }                                                                                                                       \
        return p <= (T)0.5 ? found : (f64)(T)(n - (T)found);                                                                    \
    }
BINOMIAL(f32, sqrtf, floorf)
BINOMIAL(f64, sqrt, floor)

/* ---- gamma, dirichlet */
static f64 gamma_one(Tape *t, f64 alpha, f64 inverse, f64 d) {
    static const f64 tail = 0.0331f; /* single precision, as PyTorch writes it */
    if (alpha == 0) return 0;
    f64 scale = alpha < 1 ? pow(1 - next_uniform(t), inverse) : 1, c = d > 0 ? 1.0 / sqrt(9.0 * d) : NAN;
    for (;;) {
        f64 x = next_normal(t), y = 1.0 + c * x;
        while (y <= 0) x = next_normal(t), y = 1.0 + c * x;
        f64 v = y * y * y, u = 1 - next_uniform(t), square = x * x;
        if (u < 1.0 - tail * square * square || log(u) < 0.5 * square + d * (1.0 - v + log(v))) return scale * d * v;
    }
}

#define THIRD (1.f / 3.f)

static f64 gamma_f32(Tape *t, f32 alpha) {
    int is_small = alpha < 1;
    return gamma_one(t, alpha, is_small ? 1.f / alpha : 1.f, (is_small ? alpha + 1.f : alpha) - THIRD);
}

static f64 gamma_f64(Tape *t, f64 alpha) {
    int is_small = alpha < 1;
    return gamma_one(t, alpha, is_small ? 1.0 / alpha : 1.0, (is_small ? alpha + 1.0 : alpha) - (f64)THIRD);
}

static inline f64 above_tiny(f64 x, f64 tiny) { return x > tiny ? x : tiny; }

/* A sum in the order in which NumPy adds up a row. */
static f64 sum_of(const f64 *x, i64 n) {
    f64 total = 0, parts[8];
    if (n > 128) {
        i64 half = n / 2 - n / 2 % 8;
        return sum_of(x, half) + sum_of(x + half, n - half);
    }
    i64 i = 0;
    if (n >= 8) {
        memcpy(parts, x, sizeof parts);
        for (i = 8; i < n - n % 8; i += 8)
            for (int j = 0; j < 8; j++) parts[j] += x[i + j];
        total = ((parts[0] + parts[1]) + (parts[2] + parts[3])) + ((parts[4] + parts[5]) + (parts[6] + parts[7]));
    }
    for (; i < n; i++) total += x[i];
    return total;
}

enum { TINY_EXPONENT32 = -126, TINY_EXPONENT64 = -1022 };

static inline f64 tiny_of(int k) { return ldexp(1.0, k == F32 ? TINY_EXPONENT32 : TINY_EXPONENT64); }

/* ---- calls */
typedef struct {
    Array *out;
    const void *p, *q; /* parameters: `q` the second of the binomial */
    i64 n, width;      /* all elements, those of a row */
    int kind;
    f64 *row;
} Sample;

static inline void put(const Sample *s, i64 i, f64 v) {
    if (s->kind == F64)
        ((f64 *)s->out->data)[i] = v;
    else
        ((f32 *)s->out->data)[i] = (f32)v;
}

static inline f64 get(const Sample *s, i64 i) { return s->kind == F64 ? ((const f64 *)s->p)[i] : (f64)((const f32 *)s->p)[i]; }

static void sample_poisson(Tape *t, const Sample *s) {
    for (i64 i = 0; i < s->n; i++) put(s, i, poisson_one(t, get(s, i)));
}

static void sample_binomial(Tape *t, const Sample *s) {
    if (s->kind == F64)
        for (i64 i = 0; i < s->n; i++) put(s, i, binomial_f64(t, ((const f64 *)s->p)[i], ((const f64 *)s->q)[i]));
    else
        for (i64 i = 0; i < s->n; i++) put(s, i, binomial_f32(t, ((const f32 *)s->p)[i], ((const f32 *)s->q)[i]));
}

static void sample_gamma(Tape *t, const Sample *s) {
    f64 tiny = tiny_of(s->kind);
    if (s->kind == F64)
        for (i64 i = 0; i < s->n; i++) put(s, i, above_tiny(gamma_f64(t, ((const f64 *)s->p)[i]), tiny));
    else
        for (i64 i = 0; i < s->n; i++) put(s, i, above_tiny((f32)gamma_f32(t, ((const f32 *)s->p)[i]), tiny));
}

static void sample_dirichlet(Tape *t, const Sample *s) {
    f64 tiny = tiny_of(s->kind), most = s->kind == F64 ? nextafter(1.0, 0.0) : (f64)nextafterf(1.f, 0.f);
    for (i64 first = 0; first < s->n; first += s->width) {
        for (i64 i = 0; i < s->width; i++) s->row[i] = above_tiny(gamma_f64(t, get(s, first + i)), tiny_of(F64));
        f64 total = sum_of(s->row, s->width);
        for (i64 i = 0; i < s->width; i++) {
            f64 v = s->row[i] / total;
            if (s->kind == F32) v = (f32)v;
            v = above_tiny(v, tiny);
            put(s, first + i, v > most ? most : v);
        }
    }
}

static PyObject *sampled(void (*sample)(Tape *, const Sample *), Sample *s, Array *like, PyObject *generator) {
    Source source;
    s->out = new_array(like->nd, like->shape, s->kind);
    if (!s->out) return NULL;
    if (!open_source(&source, generator == Py_None ? NULL : generator)) {
        Py_DECREF(s->out);
        Py_RETURN_NONE;
    }
    Tape t = {.words = source.words};
    int was_waiting = t.is_waiting = take_waiting(&source, &t.waiting);
    if (s->n >= ALONE / 16) {
        Py_BEGIN_ALLOW_THREADS
        sample(&t, s);
        Py_END_ALLOW_THREADS
    } else
        sample(&t, s);
    if (was_waiting || t.is_waiting) leave_waiting(&source, t.is_waiting, t.waiting);
    close_source(&source, t.has_drawn);
    return tensor_of(s->out);
}

/* The parameter as a row-major array of floats with some elements, copied where it lies otherwise: a new reference, or NULL. */
static Array *parameter(PyObject *args, int i, Sample *s) {
    Array *a = strided_of(argument(args, i)), *rows;
    if (!a || (kind(a) != F32 && kind(a) != F64) || !has_elements(a)) return NULL;
    if (has_own_strides(a))
        rows = (Array *)Py_NewRef(a);
    else if ((rows = new_array(a->nd, a->shape, kind(a))))
        copy_block(rows->data, rows->strides, a->data, a->strides, a->shape, a->nd, size_of(a));
    else
        PyErr_Clear();
    if (rows) *s = (Sample){.p = rows->data, .n = count_of(rows), .kind = kind(rows)};
    return rows;
}

static PyObject *with_one(void (*sample)(Tape *, const Sample *), PyObject *args) {
    Sample s;
    Array *a = parameter(args, 0, &s);
    NONE_UNLESS(a);
    s.width = a->nd ? a->shape[a->nd - 1] : 1;
    s.row = PyMem_RawMalloc((size_t)s.width * sizeof(f64));
    PyObject *found = s.row ? sampled(sample, &s, a, argument(args, 1)) : PyErr_NoMemory();
    PyMem_RawFree(s.row);
    Py_DECREF(a);
    return found;
}

static PyObject *py_gamma(PyObject *self, PyObject *args) { return with_one(sample_gamma, args); }
static PyObject *py_dirichlet(PyObject *self, PyObject *args) { return with_one(sample_dirichlet, args); }

static PyObject *py_poisson(PyObject *self, PyObject *args) {
    Sample s;
    Array *a = parameter(args, 0, &s);
    int fits = a != NULL;
    for (i64 i = 0; fits && i < s.n; i++) fits = get(&s, i) >= 0 && get(&s, i) < 1e15;
    Py_XDECREF(a);
    return fits ? with_one(sample_poisson, args) : Py_NewRef(Py_None);
}

static PyObject *py_binomial(PyObject *self, PyObject *args) { /* count, prob */
    Sample s, other;
    Array *a = parameter(args, 0, &s), *b = parameter(args, 1, &other);
    int fits = a && b && s.kind == other.kind && a->nd == b->nd && !memcmp(a->shape, b->shape, (size_t)a->nd * sizeof(Py_ssize_t));
    if (fits) s.q = b->data;
    PyObject *found = fits ? sampled(sample_binomial, &s, a, argument(args, 2)) : Py_NewRef(Py_None);
    Py_XDECREF(a);
    Py_XDECREF(b);
    return found;
}

static PyMethodDef methods[] = {
    {"use_arrays", use_arrays, METH_VARARGS, "use_arrays(ndarray, [(number, dtype), ...], make_tensor)"},
    {"use_process", use_process, METH_VARARGS, "use_process(process, cpu, Tensor, ambient, untracked)"},
    {"use_generators", use_generators, METH_VARARGS, "use_generators(Generator, default_generator)"},
    {"poisson.default", py_poisson, METH_O, NULL},
    {"binomial.default", py_binomial, METH_O, NULL},
    {"_standard_gamma.default", py_gamma, METH_O, NULL},
    {"_sample_dirichlet.default", py_dirichlet, METH_O, NULL},
    {NULL, NULL, 0, NULL},
};

MODULE(_trials)
