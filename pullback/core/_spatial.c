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
    i64 size[3], out[3], step[3], divisor;
    const i64 *begin[3], *end[3], *count[3];
} Job;

typedef struct {
    void *x, *y;
    const void *weight;
    const i64 *start, *read;
    i64 inputs, outputs, rest;
} Map;

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

/* windows(kind, wide, x, y, places, planes, size, out, step, bounds, divisor, threads): kind 0 averages, 1 spreads y over x, 2 takes maxima;
 * `bounds` are three each of begin, end and count */
static PyObject *py_windows(PyObject *self, PyObject *args) {
    int kind, wide;
    PyObject *x, *y, *places, *b[9];
    Job j;
    i64 planes;
    long threads;
    if (!PyArg_ParseTuple(args, "ipOOOL(LLL)(LLL)(LLL)(OOOOOOOOO)Ll", &kind, &wide, &x, &y, &places, &planes, &j.size[0], &j.size[1], &j.size[2],
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
        run(bodies[kind][wide], planes, j.size[0] * j.size[1] * j.size[2] + j.out[0] * j.out[1] * j.out[2], &j, threads);
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

static PyObject *py_use_pool(PyObject *self, PyObject *address) {
    pool = (Parallel)PyLong_AsVoidPtr(address);
    if (PyErr_Occurred())
        return NULL;
    Py_RETURN_NONE;
}

static PyMethodDef methods[] = {
    {"windows", py_windows, METH_VARARGS, "averages and maxima over windows"},
    {"axis_map", py_axis_map, METH_VARARGS, "a sparse map along one axis"},
    {"grid", py_grid, METH_VARARGS, "sampling by a grid"},
    {"use_arrays", use_arrays, METH_VARARGS, "use_arrays(ndarray, [(number, dtype), ...], make_tensor)"},
    {"grid_sampler.default", py_sampler, METH_O, NULL},
    {"grid_sampler_2d.default", py_sampler, METH_O, NULL},
    {"grid_sampler_3d.default", py_sampler, METH_O, NULL},
    {"use_pool", py_use_pool, METH_O, "use_pool(address): the threads of native_pool.h"},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, "_spatial", "See core.spatial.", -1, methods, NULL, NULL, NULL, NULL};

PyMODINIT_FUNC PyInit__spatial(void) { return PyModule_Create(&module); }
