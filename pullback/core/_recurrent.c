/* Recurrent layers in C: all steps of one direction of a layer, forward and backward.
 *
 * Arrays are NumPy's, of float32 or float64, all of one dtype. The templates (native_packed.h, native_recurrent.h) are read for both, and for
 * each set of instructions that an x86 may have; one is picked when the module is loaded. No result depends on the number of threads.
 */
#include "native_arrays.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "native_types.h"
#if defined(__clang__)
#define SIMD _Pragma("clang loop vectorize(enable)")
#else
#define SIMD _Pragma("omp simd")
#endif
#define HELPERS
#include "native_elements.h" /* exp, tanh, ... of single precision */
#undef HELPERS

enum { STEPS = 256, ROWS_OF_WEIGHTS = 24, ROWS_OF_TASK = 4, WORTH_A_THREAD = 1 << 20 };
enum { RNN_TANH, RNN_RELU, LSTM, GRU };

/* Sizes: time, batch, features of the input, size of the state; `gates` is how many numbers of the state's size a step multiplies out. */
typedef struct {
    const void *x, *w_ih, *w_hh, *b_ih, *b_hh, *h0, *c0; /* (time, batch, features), (gates * size, ...), (gates * size), (batch, size) */
    void *out, *kept, *c;                               /* (time, batch, size), (time, batch, kept * size), (batch, size): the last cell state */
    const void *g;                                      /* gradient of out, or NULL */
    void *gh, *gc;                                      /* (batch, size): gradients of the last state; become those of the first */
    void *d, *ds;                                       /* (time, batch, gates * size): gradients of gates from the input, from the state */
    void *dx, *dw_ih, *dw_hh, *db_ih, *db_hh;           /* NULL: not wanted */
    void *panels_ih, *panels_hh, *bias;
    i64 x_step[3], g_step[3], time, batch, size, features, gates, together;
    int kind, reverse, back, failed;
    i64 parts, block, blocks; /* tasks of rows of the batch; rows of weights of a task, and how many such tasks there are */
} Recurrent;

typedef struct {
    void (*lay_out)(const Recurrent *);
    Body rows, weights;
    i64 (*room_of)(i64, i64);
} Functions;

#define TEMPLATE "native_gated.h"
#include "native_levels.h"
static const Functions *const ALL[][2] = LEVELS(functions);

/* ---- arrays */
enum { GIVEN_X, W_IH, W_HH, B_IH, B_HH, H0, C0, OUT, KEPT, LAST_C, G, GH, GC, D, DS, DX, DW_IH, DW_HH, DB_IH, DB_HH, COUNT };

/* Whether an array is of a dtype and has these extents; only x and the gradient of the result may have steps of their own. */
static int fits(const Array *a, int k, int nd, i64 first, i64 second, i64 third, int steps) {
    const i64 wanted[] = {first, second, third};
    if (!Py_IS_TYPE(a, array_type) || !(a->flags & ALIGNED) || kind(a) != k || a->nd != nd || (!steps && !is_row_major(a))) return 0;
    for (int d = 0; d < nd; d++)
        if (a->shape[d] != wanted[d] || (steps && a->strides[d] % item_sizes[k])) return 0;
    return 1;
}

/* Take all arrays: their kind, or -1 where they are not as they must be. */
static int take(PyObject *given, Recurrent *j) {
    if (!PyTuple_Check(given) || PyTuple_GET_SIZE(given) != COUNT) return -1;
    Array *a[COUNT];
    for (int i = 0; i < COUNT; i++) a[i] = PyTuple_GET_ITEM(given, i) == Py_None ? NULL : (Array *)PyTuple_GET_ITEM(given, i);
    if (!a[GIVEN_X] || !a[W_IH] || !a[W_HH] || !a[H0] || !a[OUT] || !Py_IS_TYPE(a[OUT], array_type) || a[OUT]->nd != 3) return -1;
    const int k = kind(a[OUT]), lstm = j->kind == LSTM, gru = j->kind == GRU, keeps = lstm ? 5 : gru ? 4 : 0;
    if ((k != F32 && k != F64) || !Py_IS_TYPE(a[GIVEN_X], array_type) || a[GIVEN_X]->nd != 3) return -1;
    const i64 t = j->time = a[OUT]->shape[0], b = j->batch = a[OUT]->shape[1], n = j->size = a[OUT]->shape[2], f = j->features = a[GIVEN_X]->shape[2];
    const i64 m = (j->gates = lstm ? 4 : gru ? 3 : 1) * n;
    const i64 shapes[COUNT][4] = {{3, t, b, f}, {2, m, f}, {2, m, n}, {1, m}, {1, m}, {2, b, n}, {2, b, n}, {3, t, b, n}, {3, t, b, keeps * n},
                                  {2, b, n}, {3, t, b, n}, {2, b, n}, {2, b, n}, {3, t, b, m}, {3, t, b, m}, {3, t, b, f}, {2, m, f}, {2, m, n},
                                  {1, m}, {1, m}};
    const int wanted[COUNT] = {1, 1, 1, 0, 0, 1, lstm, 1, keeps > 0, lstm && !j->back, 0, j->back, j->back && lstm, j->back, j->back};
    void *const into[COUNT] = {&j->x, &j->w_ih, &j->w_hh, &j->b_ih, &j->b_hh, &j->h0, &j->c0, &j->out, &j->kept, &j->c, &j->g, &j->gh, &j->gc,
                               &j->d, &j->ds, &j->dx, &j->dw_ih, &j->dw_hh, &j->db_ih, &j->db_hh};
    for (int i = 0; i < COUNT; i++) {
        if (!a[i] && wanted[i]) return -1;
        if (a[i] && !fits(a[i], k, (int)shapes[i][0], shapes[i][1], shapes[i][2], shapes[i][3], i == GIVEN_X || i == G)) return -1;
        *(void **)into[i] = a[i] ? a[i]->data : NULL;
    }
    for (int d = 0; d < 3; d++) {
        j->x_step[d] = a[GIVEN_X]->strides[d] / item_sizes[k];
        j->g_step[d] = a[G] ? a[G]->strides[d] / item_sizes[k] : 0;
    }
    return t > 0 && b > 0 && n > 0 ? k : -1;
}

/* ---- the work, in three rounds of tasks */
static void share(Body body, i64 tasks, Recurrent *j, long threads) {
    void *const given[] = {j};
    if (parallel && threads > 1 && tasks > 1)
        parallel(body, 0, (long)tasks, 1, given, threads);
    else
        body(0, (long)tasks, given);
}

static void run(Recurrent *j, const Functions *f, int size, long threads) {
    const i64 m = j->gates * j->size, columns = j->back ? j->size : m;
    const i64 of_state = f->room_of(j->back ? m : j->size, columns), of_input = j->back ? (j->dx ? f->room_of(m, j->features) : 0) : f->room_of(j->features, m);
    char *room = aligned_alloc(64, (size_t)((of_state + of_input + m) * size + 127) / 64 * 64);
    if (!room) {
        j->failed = 1;
        return;
    }
    j->panels_hh = room;
    j->panels_ih = room + of_state * size;
    j->bias = room + (of_state + of_input) * size;
    j->together = STEPS / j->batch > 0 ? STEPS / j->batch : 1;
    j->parts = j->batch / ROWS_OF_TASK < threads ? j->batch / ROWS_OF_TASK : threads;
    j->parts = j->parts > 0 ? j->parts : 1;
    f->lay_out(j);
    share(f->rows, j->parts, j, threads);
    if (j->back && !j->failed) {
        const i64 strips = (m + ROWS_OF_WEIGHTS - 1) / ROWS_OF_WEIGHTS, wanted = threads > 1 && strips > threads ? 2 * threads : threads;
        j->block = (strips + wanted - 1) / wanted * ROWS_OF_WEIGHTS;
        j->blocks = (m + j->block - 1) / j->block;
        share(f->weights, 2 * j->blocks, j, threads);
    }
    free(room);
}

/* run(kind, back, reverse, arrays): all steps of one direction; the arrays in the order of the enumeration above, None for those that are not
 * there or not wanted. False, and nothing is read or written, where arrays are not as they must be. */
static PyObject *py_run(PyObject *self, PyObject *args) {
    PyObject *arrays;
    Recurrent j;
    memset(&j, 0, sizeof j);
    if (!PyArg_ParseTuple(args, "ippO", &j.kind, &j.back, &j.reverse, &arrays)) return NULL;
    if (j.kind < RNN_TANH || j.kind > GRU) return PyErr_Format(PyExc_ValueError, "run: unknown kind %d", j.kind);
    const int k = take(arrays, &j);
    if (k < 0) Py_RETURN_FALSE;
    const i64 work = j.time * j.batch * j.gates * j.size * (j.size + j.features);
    const long threads = work >= 2 * WORTH_A_THREAD && parallel ? threads_now() : 1;
    PyThreadState *state = PyEval_SaveThread();
    run(&j, ALL[level][k == F64], item_sizes[k], threads);
    PyEval_RestoreThread(state);
    if (j.failed) return PyErr_NoMemory();
    Py_RETURN_TRUE;
}

static PyMethodDef methods[] = {
    {"use_arrays", use_arrays, METH_VARARGS, "use_arrays(ndarray, [(number, dtype), ...], make_tensor)"},
    {"use_threads", use_threads, METH_VARARGS, "use_threads(address, function)"},
    {"run", py_run, METH_VARARGS, "run(kind, back, reverse, arrays) -> bool"},
    {"instructions", py_instructions, METH_VARARGS, "instructions(level or -1) -> int, what it was"},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, "_recurrent", "See runtime.recurrent_cpu.", -1, methods, NULL, NULL, NULL, NULL};

PyMODINIT_FUNC PyInit__recurrent(void) {
    find_level();
    return PyModule_Create(&module);
}
