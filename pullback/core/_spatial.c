/* Planes of images in C: averages and maxima over windows, sparse maps along an axis, sampling by a grid.
 *
 * Functions take contiguous arrays (the caller sees to it) of float32, or float64 where `wide` is true, and write into those they are
 * given for results. No result depends on the number of threads. The loops are in native_spatial.h and native_grid.h. Functions that are
 * named by an operator take its canonical arguments, for small plain calls (see core.small).
 */
#include "native_moves.h"
#include <math.h>

typedef int i32;
typedef unsigned int u32;
typedef float f32;
typedef double f64;
#if defined(__clang__)
#define SIMD _Pragma("clang loop vectorize(enable)")
#else
#define SIMD _Pragma("omp simd")
#endif
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
#define CLONES __attribute__((target_clones("avx2", "default")))
#else
#define CLONES
#endif

typedef struct {
    void *x, *y;
    i64 *places;
    i64 size[3], out[3], step[3], divisor, channels;
    const i64 *begin[3], *end[3], *count[3];
} Job;

typedef struct {
    void *x, *y;
    const void *weight;
    const i64 *start, *read;
    i64 inputs, outputs, rest;
} Map;

typedef struct { /* a map along rows; where every entry has as many taps, by weights unless it is one, they stand tap after tap */
    Map map;
    i32 *read;
    void *weight;
    i64 taps;
} Across;

typedef struct {
    const void *x;
    void *y;
    Map down; /* between rows of planes; no start where rows stay */
    Across across;
    int *failed;
} Planes;

typedef struct {
    const void *x, *grid;
    void *y, *dx, *dgrid;
    i64 channels, samples, size[3];
    int axes, mode, padding, align, work, block;
} Grid;

typedef void (*Body)(long, long, void *const *);
typedef void (*Parallel)(Body, long, long, long, void *const *, long);
static Parallel pool;

#define f_absolute __builtin_fabsf
#define d_absolute __builtin_fabs
#define f_lower __builtin_floorf
#define d_lower __builtin_floor
#define f_nearest __builtin_rintf
#define d_nearest __builtin_rint
#define f_modulo fmodf
#define d_modulo fmod
enum { ROOM = 1024 }; /* entries of a table for a block of samples: taps by points */
#define T f32
#define U i32
#define N(name) f_##name
#include "native_spatial.h"
#include "native_grid.h"
#undef T
#undef U
#undef N
#define T f64
#define U i64
#define N(name) d_##name
#include "native_spatial.h"
#include "native_grid.h"
#undef T
#undef U
#undef N

static int block_of(const Grid *g) { /* points of a block, so that their taps fill a table */
    return ROOM / (g->mode == 1 ? 1 : g->mode == 2 ? 16 : g->axes == 2 ? 4 : 8);
}

static void run(Body body, i64 n, i64 each, void *data, long threads) {
    void *arguments[1] = {data};
    i64 grain = 32768 / (each > 0 ? each : 1) + 1;
    Py_BEGIN_ALLOW_THREADS
    if (pool && threads > 1)
        pool(body, 0, (long)n, (long)grain, arguments, threads);
    else
        body(0, (long)n, arguments);
    Py_END_ALLOW_THREADS
}

/* ---- arguments */
typedef struct {
    Py_buffer views[16];
    int held;
} Held;

static void *held(Held *h, PyObject *o, int writes) { /* the memory of a contiguous array; NULL for None */
    if (o == Py_None || PyErr_Occurred())
        return NULL;
    if (PyObject_GetBuffer(o, &h->views[h->held], writes ? PyBUF_C_CONTIGUOUS | PyBUF_WRITABLE : PyBUF_C_CONTIGUOUS) < 0)
        return NULL;
    return h->views[h->held++].buf;
}

static PyObject *release(Held *h) {
    while (h->held)
        PyBuffer_Release(&h->views[--h->held]);
    if (PyErr_Occurred())
        return NULL;
    Py_RETURN_NONE;
}

/* windows(kind, wide, x, y, places, planes, channels, size, out, step, bounds, divisor, threads): kind 0 averages, 1 spreads y over x, 2 takes
 * maxima; `bounds` are three each of begin, end and count. Where `channels` is not 0, planes are images whose channels lie innermost. */
static PyObject *py_windows(PyObject *self, PyObject *args) {
    int kind, wide;
    PyObject *x, *y, *places, *b[9];
    Job j;
    i64 planes;
    long threads;
    if (!PyArg_ParseTuple(args, "ipOOOLL(LLL)(LLL)(LLL)(OOOOOOOOO)Ll", &kind, &wide, &x, &y, &places, &planes, &j.channels, &j.size[0], &j.size[1], &j.size[2],
                          &j.out[0], &j.out[1], &j.out[2], &j.step[0], &j.step[1], &j.step[2], &b[0], &b[1], &b[2], &b[3], &b[4], &b[5], &b[6],
                          &b[7], &b[8], &j.divisor, &threads))
        return NULL;
    Held h = {.held = 0};
    j.x = held(&h, x, kind == 1);
    j.y = held(&h, y, kind != 1);
    j.places = held(&h, places, 1);
    for (int axis = 0; axis < 3; axis++) {
        j.begin[axis] = held(&h, b[axis], 0);
        j.end[axis] = held(&h, b[3 + axis], 0);
        j.count[axis] = held(&h, b[6 + axis], 0);
    }
    if (!PyErr_Occurred()) {
        static const Body bodies[3][2] = {{f_average_part, d_average_part}, {f_spread_part, d_spread_part}, {f_maximum_part, d_maximum_part}};
        static const Body pixels[3][2] = {{f_average_pixels, d_average_pixels}, {NULL, NULL}, {f_maximum_pixels, d_maximum_pixels}};
        const i64 each = j.size[0] * j.size[1] * j.size[2] + j.out[0] * j.out[1] * j.out[2], rows = j.out[0] * j.out[1];
        if (!j.channels)
            run(bodies[kind][wide], planes, each, &j, threads);
        else if (pixels[kind][wide] && rows)
            run(pixels[kind][wide], planes * rows, each * j.channels / rows, &j, threads);
    }
    return release(&h);
}

/* axis_map(wide, x, y, start, read, weight, lead, inputs, outputs, rest, threads) */
static PyObject *py_axis_map(PyObject *self, PyObject *args) {
    int wide;
    PyObject *x, *y, *start, *read, *weight;
    Map m;
    i64 lead;
    long threads;
    if (!PyArg_ParseTuple(args, "pOOOOOLLLLl", &wide, &x, &y, &start, &read, &weight, &lead, &m.inputs, &m.outputs, &m.rest, &threads))
        return NULL;
    Held h = {.held = 0};
    m.x = held(&h, x, 0);
    m.y = held(&h, y, 1);
    m.start = held(&h, start, 0);
    m.read = held(&h, read, 0);
    m.weight = held(&h, weight, 0);
    if (!PyErr_Occurred())
        run(wide ? d_map_part : f_map_part, lead * m.outputs, 2 * m.rest, &m, threads);
    return release(&h);
}

static int by_tap(Across *a, int wide) { /* fill the tables of `a` */
    const Map *m = &a->map;
    i64 n = m->outputs, taps = n ? m->start[1] - m->start[0] : 0;
    for (i64 j = 0; j < n; j++)
        if (m->start[j + 1] - m->start[j] != taps)
            taps = 0;
    if (!taps || (taps > 1 && !m->weight) || m->inputs >> 31)
        return 1;
    a->read = malloc(sizeof *a->read * (size_t)(taps * n));
    a->weight = m->weight ? malloc((wide ? sizeof(f64) : sizeof(f32)) * (size_t)(taps * n)) : NULL;
    if (!a->read || (m->weight && !a->weight))
        return 0;
    a->taps = taps;
    for (i64 j = 0; j < n; j++)
        for (i64 k = 0; k < taps; k++) {
            a->read[k * n + j] = (i32)m->read[j * taps + k];
            if (!m->weight)
                continue;
            if (wide)
                ((f64 *)a->weight)[k * n + j] = ((const f64 *)m->weight)[j * taps + k];
            else
                ((f32 *)a->weight)[k * n + j] = ((const f32 *)m->weight)[j * taps + k];
        }
    return 1;
}

/* planes_map(wide, x, y, (start, read, weight) down, (start, read, weight) across, (planes, inputs, outputs, inputs, outputs), threads) */
static PyObject *py_planes_map(PyObject *self, PyObject *args) {
    int wide, failed = 0;
    PyObject *x, *y, *d[3], *c[3];
    i64 planes;
    long threads;
    Planes p = {.failed = &failed};
    Map *down = &p.down, *across = &p.across.map;
    if (!PyArg_ParseTuple(args, "pOO(OOO)(OOO)(LLLLL)l", &wide, &x, &y, &d[0], &d[1], &d[2], &c[0], &c[1], &c[2], &planes, &down->inputs,
                          &down->outputs, &across->inputs, &across->outputs, &threads))
        return NULL;
    Held h = {.held = 0};
    p.x = held(&h, x, 0), p.y = held(&h, y, 1);
    down->start = held(&h, d[0], 0), down->read = held(&h, d[1], 0), down->weight = held(&h, d[2], 0), down->rest = across->inputs;
    across->start = held(&h, c[0], 0), across->read = held(&h, c[1], 0), across->weight = held(&h, c[2], 0);
    if (!PyErr_Occurred()) {
        failed = !by_tap(&p.across, wide);
        if (!failed)
            run(wide ? d_planes_part : f_planes_part, planes * down->outputs, across->inputs + across->outputs, &p, threads);
        if (failed)
            PyErr_NoMemory();
    }
    free(p.across.read);
    free(p.across.weight);
    return release(&h);
}

/* grid(work, wide, x, grid, y, dx, dgrid, (images, channels, samples), (depth, height, width), axes, mode, padding, align, threads) */
static PyObject *py_grid(PyObject *self, PyObject *args) {
    int wide;
    PyObject *x, *grid, *y, *dx, *dgrid;
    Grid g;
    i64 images;
    long threads;
    if (!PyArg_ParseTuple(args, "ipOOOOO(LLL)(LLL)iiipl", &g.work, &wide, &x, &grid, &y, &dx, &dgrid, &images, &g.channels, &g.samples, &g.size[0],
                          &g.size[1], &g.size[2], &g.axes, &g.mode, &g.padding, &g.align, &threads))
        return NULL;
    Held h = {.held = 0};
    g.x = held(&h, x, 0);
    g.grid = held(&h, grid, 0);
    g.y = held(&h, y, g.work == 0);
    g.dx = held(&h, dx, 1);
    g.dgrid = held(&h, dgrid, 1);
    g.block = block_of(&g);
    if (!PyErr_Occurred())
        run(wide ? d_sample_part : f_sample_part, g.work == 1 ? images : images * g.samples, (g.work == 1 ? g.samples : 1) * (8 + 4 * g.channels), &g,
            threads);
    return release(&h);
}

/* ---- small calls: input, grid, mode, padding, align_corners */
enum { MOST_READS = 1 << 15 };

static int mode_of(PyObject *value, int most) { /* -1 where it is none */
    Py_ssize_t found;
    return integer_of(value, &found) && found >= 0 && found <= most ? (int)found : -1;
}

static PyObject *py_sampler(PyObject *self, PyObject *args) {
    const Array *x = array_of(argument(args, 0)), *grid = array_of(argument(args, 1));
    NONE_UNLESS(x && grid && kind(x) <= F64 && kind(x) == kind(grid) && (x->nd == 4 || x->nd == 5) && grid->nd == x->nd);
    Grid g = {.axes = x->nd - 2, .mode = mode_of(argument(args, 2), x->nd == 4 ? 2 : 1), .padding = mode_of(argument(args, 3), 2)};
    NONE_UNLESS(g.mode >= 0 && g.padding >= 0 && PyBool_Check(argument(args, 4)));
    NONE_UNLESS(x->shape[0] == grid->shape[0] && grid->shape[x->nd - 1] == g.axes && count_of(x) && count_of(x) < 1 << 30);
    Py_ssize_t shape[5] = {x->shape[0], x->shape[1], grid->shape[1], grid->shape[2], grid->shape[3]};
    for (int i = 0; i < 3; i++) g.size[i] = i < 3 - g.axes ? 1 : x->shape[x->nd - 3 + i];
    g.align = argument(args, 4) == Py_True, g.channels = shape[1], g.samples = count_of(grid) / (shape[0] * g.axes);
    NONE_UNLESS(g.samples * shape[0] * (4 + g.channels) <= MOST_READS);
    Array *y = new_array(x->nd, shape, kind(x));
    if (!y) return NULL;
    g.block = block_of(&g), g.x = x->data, g.grid = grid->data, g.y = y->data;
    run(kind(x) == F64 ? d_sample_part : f_sample_part, shape[0] * g.samples, 1, &g, 1);
    return tensor_of(y);
}

/* ---- small calls: self, output_size, (align_corners,) scales... */
enum { MOST_ENTRIES = 512, FEW_TAPS = 7, NEAREST = 0, NEAREST_EXACT, LINEAR, ANTIALIASED };

typedef struct { /* the map of one axis */
    i64 start[MOST_ENTRIES + 1], read[2 * MOST_ENTRIES];
    f32 narrow[2 * MOST_ENTRIES];
    f64 wide[2 * MOST_ENTRIES];
    i64 inputs, outputs;
    int weighted;
} Axis;

/* Source entries for each entry of the result, in the precision of coordinates; 0 where the rule would give what is no number. */
#define RATIO(T)                                                                                                                   \
    if (align)                                                                                                                     \
        ratio = a->outputs > 1 ? (T)(a->inputs - 1) / (T)(a->outputs - 1) : 0;                                                     \
    else                                                                                                                           \
        ratio = scale > 0 ? (T)(1.0 / scale) : (T)a->inputs / (T)a->outputs;                                                       \
    if (!(ratio < 1e9)) return 0

static int nearest_axis(Axis *a, f64 scale, int exact) {
    const int align = 0;
    f32 ratio;
    RATIO(f32);
    for (i64 j = 0; j < a->outputs; j++) {
        i64 at = exact ? (i64)floorf(((f32)j + 0.5f) * ratio) : (i64)floorf((f32)j * ratio);
        if (!exact && a->outputs == a->inputs) at = j;
        if (!exact && a->outputs == 2 * a->inputs) at = j / 2;
        a->start[j] = j, a->read[j] = at < a->inputs ? at : a->inputs - 1;
    }
    a->start[a->outputs] = a->outputs, a->weighted = 0;
    return 1;
}

#define LINEAR_AXIS(T, floor, into)                                                                                                \
    T ratio;                                                                                                                       \
    RATIO(T);                                                                                                                      \
    for (i64 j = 0; j < a->outputs; j++) {                                                                                         \
        T at = align ? (T)j * ratio : ((T)j + (T)0.5) * ratio - (T)0.5;                                                            \
        at = at > 0 ? at : 0;                                                                                                      \
        i64 left = (i64)floor(at);                                                                                                 \
        left = left < a->inputs ? left : a->inputs - 1;                                                                            \
        T t = at - (T)left;                                                                                                        \
        t = t < 0 ? 0 : t > 1 ? 1 : t;                                                                                             \
        into[2 * j] = 1 - t, into[2 * j + 1] = t;                                                                                  \
        a->start[j] = 2 * j, a->read[2 * j] = left, a->read[2 * j + 1] = left + 1 < a->inputs ? left + 1 : a->inputs - 1;          \
    }

static int linear_axis(Axis *a, f64 scale, int align, int wide) {
    if (a->inputs == a->outputs) return nearest_axis(a, 0, 0);
    a->start[a->outputs] = 2 * a->outputs, a->weighted = 1;
    if (wide) {
        LINEAR_AXIS(f64, floor, a->wide)
    } else {
        LINEAR_AXIS(f32, floorf, a->narrow)
    }
    return 1;
}

/* Averages of a neighbourhood that a triangle of width 2 weighs, stretched where the axis shrinks. Of more taps the
 * array library adds the weights up in another order. */
#define ANTIALIASED_AXIS(T, absolute, into)                                                                                         \
    T ratio;                                                                                                                       \
    RATIO(T);                                                                                                                      \
    const f64 stretch = (f64)ratio > 1 ? (f64)ratio : 1;                                                                           \
    const T reach = (T)stretch, half = (T)0.5;                                                                                     \
    i64 taps = 0;                                                                                                                  \
    for (i64 j = 0; j < a->outputs; j++) {                                                                                         \
        const T centre = ratio * ((T)j + half);                                                                                    \
        i64 first = (i64)(centre - reach + half), stop = (i64)(centre + reach + half);                                             \
        first = first > 0 ? first : 0, stop = stop < a->inputs ? stop : a->inputs;                                                 \
        if (stop <= first || stop - first > FEW_TAPS || taps + stop - first > 2 * MOST_ENTRIES) return 0;                          \
        T total = 0;                                                                                                               \
        a->start[j] = taps;                                                                                                        \
        for (i64 k = 0; k < stop - first; k++) {                                                                                   \
            const T weight = 1 - absolute(((T)(first + k) - centre + half) / (T)stretch);                                          \
            into[taps + k] = weight > 0 ? weight : 0, a->read[taps + k] = first + k;                                               \
            total += into[taps + k];                                                                                               \
        }                                                                                                                          \
        for (i64 k = 0; k < stop - first; k++) into[taps + k] /= total;                                                            \
        taps += stop - first;                                                                                                      \
    }                                                                                                                              \
    a->start[a->outputs] = taps

static int antialiased_axis(Axis *a, f64 scale, int align, int wide) {
    a->weighted = 1;
    if (wide) {
        ANTIALIASED_AXIS(f64, fabs, a->wide);
    } else {
        ANTIALIASED_AXIS(f32, fabsf, a->narrow);
    }
    return 1;
}

static Map map_of(const Axis *a, int wide, i64 rest) {
    const void *weight = !a->weighted ? NULL : wide ? (const void *)a->wide : (const void *)a->narrow;
    return (Map){.weight = weight, .start = a->start, .read = a->read, .inputs = a->inputs, .outputs = a->outputs, .rest = rest};
}

/* Every plane of x into y; the first axis is one of planes, read whole. */
static int resample(const Array *x, Array *y, const Axis *axes) {
    int wide = kind(x) == F64, failed = 0;
    size_t bytes = wide ? sizeof(f64) : sizeof(f32);
    Planes p = {.failed = &failed, .down = map_of(&axes[1], wide, axes[2].inputs), .across = {.map = map_of(&axes[2], wide, 1)}};
    failed = !by_tap(&p.across, wide);
    void *arguments[1] = {&p};
    i64 from = (i64)bytes * axes[1].inputs * axes[2].inputs, to = (i64)bytes * axes[1].outputs * axes[2].outputs;
    i64 planes = count_of(x) / (axes[0].inputs * axes[1].inputs * axes[2].inputs);
    for (i64 plane = 0; !failed && plane < planes; plane++)
        for (i64 d = 0; !failed && d < axes[0].outputs; d++) {
            p.x = x->data + (plane * axes[0].inputs + axes[0].read[d]) * from;
            p.y = y->data + (plane * axes[0].outputs + d) * to;
            (wide ? d_planes_part : f_planes_part)(0, (long)axes[1].outputs, arguments);
        }
    free(p.across.read);
    free(p.across.weight);
    if (failed) PyErr_NoMemory();
    return !failed;
}

static PyObject *resampled(PyObject *args, int spatial, int method) {
    const Array *x = array_of(argument(args, 0));
    const int aligns = method == LINEAR || method == ANTIALIASED, first = aligns ? 3 : 2;
    NONE_UNLESS(x && kind(x) <= F64 && x->nd == spatial + 2 && is_small(x) && PyTuple_GET_SIZE(args) == first + spatial);
    NONE_UNLESS(x->nd == 3 || (x->shape[1] > 1 && x->shape[x->nd - 1] > 1)); /* else of more than one order of memory */
    Py_ssize_t shape[5] = {x->shape[0], x->shape[1]}, size[3];
    NONE_UNLESS(integers_of(argument(args, 1), size, spatial) == spatial);
    Axis axes[3];
    i64 total = shape[0] * shape[1];
    for (int i = 0; i < 3; i++) {
        int at = i - (3 - spatial);
        double scale = 0;
        Axis *a = &axes[i];
        a->inputs = at < 0 ? 1 : x->shape[2 + at], a->outputs = at < 0 ? 1 : size[at];
        NONE_UNLESS(a->outputs > 0 && a->outputs <= MOST_ENTRIES && (total *= a->outputs) <= MOST_ELEMENTS);
        if (at >= 0) shape[2 + at] = size[at];
        NONE_UNLESS(at < 0 || argument(args, first + at) == Py_None || real_of(argument(args, first + at), &scale));
        const int align = aligns && argument(args, 2) == Py_True, wide = kind(x) == F64;
        const int averages = method == ANTIALIASED && at >= 0;
        NONE_UNLESS(averages ? antialiased_axis(a, scale, align, wide) : aligns ? linear_axis(a, scale, align, wide) : nearest_axis(a, scale, method));
    }
    NONE_UNLESS(!aligns || axes[1].outputs * axes[2].inputs <= axes[2].outputs * axes[1].inputs); /* rows are mapped last */
    Array *y = new_array(x->nd, shape, kind(x));
    if (!y) return NULL;
    if (!resample(x, y, axes)) {
        Py_DECREF(y);
        return NULL;
    }
    return tensor_of(y);
}

#define RESAMPLED(name, spatial, method) \
    static PyObject *name(PyObject *self, PyObject *args) { return resampled(args, spatial, method); }
RESAMPLED(py_nearest1d, 1, NEAREST)
RESAMPLED(py_nearest2d, 2, NEAREST)
RESAMPLED(py_nearest3d, 3, NEAREST)
RESAMPLED(py_exact1d, 1, NEAREST_EXACT)
RESAMPLED(py_exact2d, 2, NEAREST_EXACT)
RESAMPLED(py_exact3d, 3, NEAREST_EXACT)
RESAMPLED(py_linear1d, 1, LINEAR)
RESAMPLED(py_linear2d, 2, LINEAR)
RESAMPLED(py_antialiased2d, 2, ANTIALIASED)

static PyObject *py_use_pool(PyObject *self, PyObject *address) {
    pool = (Parallel)PyLong_AsVoidPtr(address);
    if (PyErr_Occurred())
        return NULL;
    Py_RETURN_NONE;
}

static PyMethodDef methods[] = {
    {"windows", py_windows, METH_VARARGS, "averages and maxima over windows"},
    {"axis_map", py_axis_map, METH_VARARGS, "a sparse map along one axis"},
    {"planes_map", py_planes_map, METH_VARARGS, "sparse maps along both axes of planes"},
    {"grid", py_grid, METH_VARARGS, "sampling by a grid"},
    {"use_arrays", use_arrays, METH_VARARGS, "use_arrays(ndarray, [(number, dtype), ...], make_tensor)"},
    {"grid_sampler.default", py_sampler, METH_O, NULL},
    {"grid_sampler_2d.default", py_sampler, METH_O, NULL},
    {"grid_sampler_3d.default", py_sampler, METH_O, NULL},
    {"upsample_nearest1d.default", py_nearest1d, METH_O, NULL},
    {"upsample_nearest2d.default", py_nearest2d, METH_O, NULL},
    {"upsample_nearest3d.default", py_nearest3d, METH_O, NULL},
    {"_upsample_nearest_exact1d.default", py_exact1d, METH_O, NULL},
    {"_upsample_nearest_exact2d.default", py_exact2d, METH_O, NULL},
    {"_upsample_nearest_exact3d.default", py_exact3d, METH_O, NULL},
    {"upsample_linear1d.default", py_linear1d, METH_O, NULL},
    {"upsample_bilinear2d.default", py_linear2d, METH_O, NULL},
    {"_upsample_bilinear2d_aa.default", py_antialiased2d, METH_O, NULL},
    {"use_pool", py_use_pool, METH_O, "use_pool(address): the threads of native_pool.h"},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, "_spatial", "See core.spatial.", -1, methods, NULL, NULL, NULL, NULL};

PyMODINIT_FUNC PyInit__spatial(void) { return PyModule_Create(&module); }
