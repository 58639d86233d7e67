/* Moves of elements, and lists of integers among arguments: what functions of small calls share beside native_arrays.h. */
#include "native_arrays.h"
#include <string.h>

#define NONE_UNLESS(condition) \
    if (!(condition)) Py_RETURN_NONE

/* Whether results must be those of compiled code, by what all of a process share: they are left to the rules then, which add up as it does. */
static inline int is_deterministic(PyObject *process) {
    PyObject *found = PyObject_GetAttrString(process, "deterministic");
    Py_XDECREF(found);
    if (!found) PyErr_Clear();
    return found != Py_False;
}

/* One call of a loop that there is for floats and for integers of four and eight bytes. */
#define BY_KIND(k, call)                \
    switch (k) {                        \
    case F32: call(float, f32); break;  \
    case F64: call(double, f64); break; \
    case I64: call(i64, i64); break;    \
    default: call(int, i32);            \
    }

/* The integers of a tuple, or -1 where it is not one of at most `most` small ones. */
static inline int integers_of(PyObject *value, Py_ssize_t *into, int most) {
    if (!PyTuple_Check(value) || PyTuple_GET_SIZE(value) > most) return -1;
    int n = (int)PyTuple_GET_SIZE(value);
    for (int i = 0; i < n; i++) {
        PyObject *v = PyTuple_GET_ITEM(value, i);
        if (!PyLong_CheckExact(v)) return -1;
        into[i] = PyLong_AsSsize_t(v);
        if (into[i] == -1 && PyErr_Occurred()) {
            PyErr_Clear();
            return -1;
        }
        if (into[i] > 1 << 30 || into[i] < -(1 << 30)) return -1;
    }
    return n;
}

static inline int integer_of(PyObject *value, Py_ssize_t *into) {
    PyObject *one = PyLong_CheckExact(value) ? PyTuple_Pack(1, value) : NULL;
    int n = one ? integers_of(one, into, 1) : -1;
    Py_XDECREF(one);
    return n == 1;
}

/* A number as an element: 0 where it does not fit the dtype as it is. */
static inline int element(PyObject *value, int k, char *into) {
    if (k == F32 || k == F64) {
        if (!PyFloat_CheckExact(value) && !PyLong_CheckExact(value)) return 0;
        double d = PyFloat_AsDouble(value);
        if (d == -1 && PyErr_Occurred()) {
            PyErr_Clear();
            return 0;
        }
        float f = (float)d;
        if (k == F32 && f - f != 0 && d - d == 0) return 0; /* too large: the rules find the words */
        memcpy(into, k == F32 ? (void *)&f : (void *)&d, k == F32 ? 4 : 8);
        return 1;
    }
    int overflow = 0;
    i64 v = PyLong_CheckExact(value) || (k == BOOL && PyBool_Check(value)) ? PyLong_AsLongLongAndOverflow(value, &overflow) : (overflow = 1);
    static const i64 low[KINDS] = {0, 0, INT64_MIN, INT32_MIN, INT16_MIN, INT8_MIN, 0, 0};
    static const i64 high[KINDS] = {0, 0, INT64_MAX, INT32_MAX, INT16_MAX, INT8_MAX, UINT8_MAX, 1};
    if (overflow || v < low[k] || v > high[k]) return 0;
    const int size = item_sizes[k], word = (int)v;
    const short half = (short)v;
    const char byte = (char)v;
    memcpy(into, size == 8 ? (const void *)&v : size == 4 ? (const void *)&word : size == 2 ? (const void *)&half : (const void *)&byte, (size_t)size);
    return 1;
}

/* memcpy, but for what some processors copy ten times slower by their string instruction: a target a little after its source, but for pages. */
static inline void copy_bytes(char *y, const char *x, size_t n) {
    size_t apart = ((size_t)y - (size_t)x) & 4095;
    if (n < 4096 || apart == 0 || apart >= 64) {
        memcpy(y, x, n);
        return;
    }
    size_t whole = n / 64 * 64;
    for (size_t i = 0; i < whole; i += 64) {
        i64 part[8];
        memcpy(part, x + i, 64);
        memcpy(y + i, part, 64);
    }
    memcpy(y + whole, x + whole, n - whole);
}

/* One element many times: what is there already is copied behind itself. */
static inline void repeat(char *y, const char *value, i64 count, int size) {
    i64 bytes = count * size, done = size;
    if (count) memcpy(y, value, (size_t)size);
    for (; done < bytes; done *= 2) memcpy(y + done, y, (size_t)(done < bytes - done ? done : bytes - done));
}
/* ---- copies of blocks: every element of `shape`, each dimension by its own step in bytes */
static inline void copy_run(char *y, Py_ssize_t to, const char *x, Py_ssize_t from, Py_ssize_t n, int size) {
    if (to == size && from == size)
        memcpy(y, x, (size_t)(n * size));
    else if (size == 4 && to == 4 && from == -4) {
        int *restrict into = (int *)y;
        const int *restrict last = (const int *)x - (n - 1);
        for (Py_ssize_t i = 0; i < n; i++) into[i] = last[n - 1 - i];
    } else if (size == 4)
        for (Py_ssize_t i = 0; i < n; i++) memcpy(y + i * to, x + i * from, 4);
    else if (size == 8)
        for (Py_ssize_t i = 0; i < n; i++) memcpy(y + i * to, x + i * from, 8);
    else if (size == 2)
        for (Py_ssize_t i = 0; i < n; i++) memcpy(y + i * to, x + i * from, 2);
    else if (size == 1)
        for (Py_ssize_t i = 0; i < n; i++) y[i * to] = x[i * from];
    else
        for (Py_ssize_t i = 0; i < n; i++) memcpy(y + i * to, x + i * from, (size_t)size);
}

static inline void copy_few(char *y, const Py_ssize_t *to, const char *x, const Py_ssize_t *from, const Py_ssize_t *shape, int nd, int size) {
    if (nd == 0)
        memcpy(y, x, (size_t)size);
    else if (nd == 1)
        copy_run(y, to[0], x, from[0], shape[0], size);
    else
        for (Py_ssize_t i = 0; i < shape[0]; i++) copy_few(y + i * to[0], to + 1, x + i * from[0], from + 1, shape + 1, nd - 1, size);
}

/* A copy whose dimensions are in the order of the target's memory. `turned`: the last but one is the nearest in the source's memory, and
 * the last two go by tiles: whole lines of the source are read, whole lines of the target written. */
typedef struct {
    char *y;
    const char *x;
    int nd, size, turned, split;
    Py_ssize_t shape[MOST_DIMS], to[MOST_DIMS], from[MOST_DIMS];
} Move;

enum { TILE = 32, FEW = 256 };

/* Rows of elements of four bytes, each of which lies densely, to where their columns are rows: four by four, `step` from row to row. */
static inline void turn_fours(char *y, Py_ssize_t to, const char *x, Py_ssize_t step, Py_ssize_t rows, Py_ssize_t columns) {
#if defined(__SSE2__)
    typedef int Four __attribute__((vector_size(16)));
    for (Py_ssize_t b = 0; b + 4 <= columns; b += 4)
        for (Py_ssize_t a = 0; a + 4 <= rows; a += 4) {
            Four r[4], low, high, left, right;
            for (int i = 0; i < 4; i++) memcpy(&r[i], x + (a + i) * step + b * 4, 16);
            low = __builtin_shuffle(r[0], r[1], (Four){0, 4, 1, 5}), high = __builtin_shuffle(r[2], r[3], (Four){0, 4, 1, 5});
            left = __builtin_shuffle(r[0], r[1], (Four){2, 6, 3, 7}), right = __builtin_shuffle(r[2], r[3], (Four){2, 6, 3, 7});
            r[0] = __builtin_shuffle(low, high, (Four){0, 1, 4, 5}), r[1] = __builtin_shuffle(low, high, (Four){2, 3, 6, 7});
            r[2] = __builtin_shuffle(left, right, (Four){0, 1, 4, 5}), r[3] = __builtin_shuffle(left, right, (Four){2, 3, 6, 7});
            for (int i = 0; i < 4; i++) memcpy(y + (b + i) * to + a * 4, &r[i], 16);
        }
    for (Py_ssize_t b = 0; b < columns; b++) {
        const Py_ssize_t done = b < columns / 4 * 4 ? rows / 4 * 4 : 0;
        copy_run(y + b * to + done * 4, 4, x + b * 4 + done * step, step, rows - done, 4);
    }
#else
    for (Py_ssize_t b = 0; b < columns; b++) copy_run(y + b * to, 4, x + b * 4, step, rows, 4);
#endif
}

static inline void copy_turned(const Move *m, char *y, const char *x) {
    const int d = m->nd - 2, size = m->size;
    char tile[TILE * TILE * 16] __attribute__((aligned(64)));
    for (Py_ssize_t i = 0; i < m->shape[d + 1]; i += TILE)
        for (Py_ssize_t j = 0; j < m->shape[d]; j += TILE) {
            Py_ssize_t rows = m->shape[d + 1] - i < TILE ? m->shape[d + 1] - i : TILE, columns = m->shape[d] - j < TILE ? m->shape[d] - j : TILE;
            const char *from = x + i * m->from[d + 1] + j * m->from[d];
            char *to = y + i * m->to[d + 1] + j * m->to[d];
            if (size == 4 && m->from[d] == 4 && m->to[d + 1] == 4) {
                turn_fours(to, m->to[d], from, m->from[d + 1], rows, columns);
                continue;
            }
            for (Py_ssize_t a = 0; a < rows; a++) copy_run(tile + a * TILE * size, size, from + a * m->from[d + 1], m->from[d], columns, size);
            for (Py_ssize_t b = 0; b < columns; b++) copy_run(to + b * m->to[d], m->to[d + 1], tile + b * size, TILE * size, rows, size);
        }
}

static inline void copy_from(const Move *m, char *y, const char *x, int d) {
    if (m->turned && d == m->nd - 2)
        copy_turned(m, y, x);
    else if (d + 1 >= m->nd)
        copy_few(y, m->to + d, x, m->from + d, m->shape + d, m->nd - d, m->size);
    else
        for (Py_ssize_t i = 0; i < m->shape[d]; i++) copy_from(m, y + i * m->to[d], x + i * m->from[d], d + 1);
}

static inline void copy_part(long first, long last, void *const *arguments) {
    Move m = *(const Move *)arguments[0];
    if (m.nd) {
        m.y += first * m.to[m.split];
        m.x += first * m.from[m.split];
        m.shape[m.split] = last - first;
    }
    copy_from(&m, m.y, m.x, 0);
}

static inline Py_ssize_t distance(Py_ssize_t step) { return step < 0 ? -step : step; }

static inline void put_dim(Move *m, int at, Py_ssize_t shape, Py_ssize_t to, Py_ssize_t from) {
    m->shape[at] = shape;
    m->to[at] = to;
    m->from[at] = from;
}

/* Dimensions by falling steps of the target, those that go on in both memories as one. */
static inline void order_dims(Move *m, const Py_ssize_t *to, const Py_ssize_t *from, const Py_ssize_t *shape, int nd) {
    m->nd = 0;
    for (int d = 0; d < nd; d++) {
        if (shape[d] == 1) continue;
        int at = m->nd++;
        for (; at && distance(m->to[at - 1]) < distance(to[d]); at--) put_dim(m, at, m->shape[at - 1], m->to[at - 1], m->from[at - 1]);
        put_dim(m, at, shape[d], to[d], from[d]);
    }
    int last = 0;
    for (int d = 1; d < m->nd; d++)
        if (m->to[last] == m->shape[d] * m->to[d] && m->from[last] == m->shape[d] * m->from[d])
            put_dim(m, last, m->shape[last] * m->shape[d], m->to[d], m->from[d]);
        else
            put_dim(m, ++last, m->shape[d], m->to[d], m->from[d]);
    m->nd = m->nd ? last + 1 : 0;
}

/* Where the source's nearest dimension is not the target's, it becomes the last but one. */
static inline void find_turn(Move *m) {
    int near = m->nd - 1;
    for (int d = 0; d < m->nd; d++)
        if (m->from[d] && distance(m->from[d]) < distance(m->from[near])) near = d;
    m->turned = m->nd > 1 && near != m->nd - 1 && m->from[m->nd - 1] && m->shape[near] >= 4 && m->shape[m->nd - 1] >= 4 && m->size <= 16;
    if (!m->turned) return;
    Py_ssize_t shape = m->shape[near], to = m->to[near], from = m->from[near];
    for (int d = near; d < m->nd - 2; d++) put_dim(m, d, m->shape[d + 1], m->to[d + 1], m->from[d + 1]);
    put_dim(m, m->nd - 2, shape, to, from);
}

/* The arrays whose memory it is are held where the GIL is let go. No memory is read and written. */
static inline void copy_block_of(char *y, const Py_ssize_t *to, const char *x, const Py_ssize_t *from, const Py_ssize_t *shape, int nd, int size, Array *a,
                                 Array *b) {
    i64 count = 1;
    for (int d = 0; d < nd; d++) count *= shape[d];
    if (count < FEW) {
        copy_few(y, to, x, from, shape, nd, size);
        return;
    }
    Move m = {.y = y, .x = x, .size = size};
    order_dims(&m, to, from, shape, nd);
    find_turn(&m);
    for (int d = 1; d < m.nd; d++)
        if (m.shape[d] > m.shape[m.split]) m.split = d;
    void *const arguments[] = {&m};
    over_parts(copy_part, m.nd ? m.shape[m.split] : 1, a ? count : 0, arguments, a, b, NULL);
}

static inline void copy_block(char *y, const Py_ssize_t *to, const char *x, const Py_ssize_t *from, const Py_ssize_t *shape, int nd, int size) {
    copy_block_of(y, to, x, from, shape, nd, size, NULL, NULL);
}

/* Bytes that lie one after the other in both memories. */
static inline void copy_bytes_part(long first, long last, void *const *arguments) {
    copy_bytes((char *)arguments[0] + first, (const char *)arguments[1] + first, (size_t)(last - first));
}

static inline void copy_bytes_of(Array *y, Array *x, size_t n) {
    void *const arguments[] = {y->data, x->data};
    over_parts(copy_bytes_part, (i64)n, (i64)n / 4, arguments, x, y, NULL);
}
