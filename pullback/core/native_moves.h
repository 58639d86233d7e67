/* Moves of elements, and lists of integers among arguments: what functions of small calls share beside native_arrays.h. */
#include "native_arrays.h"
#include <string.h>

#define NONE_UNLESS(condition) \
    if (!(condition)) Py_RETURN_NONE

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
    else if (size == 4 && to == 4 && from == -4)
        for (Py_ssize_t i = 0; i < n; i++) memcpy(y + i * 4, x - i * 4, 4);
    else if (size == 4)
        for (Py_ssize_t i = 0; i < n; i++) memcpy(y + i * to, x + i * from, 4);
    else if (size == 8)
        for (Py_ssize_t i = 0; i < n; i++) memcpy(y + i * to, x + i * from, 8);
    else
        for (Py_ssize_t i = 0; i < n; i++) memcpy(y + i * to, x + i * from, (size_t)size);
}

static inline void copy_block(char *y, const Py_ssize_t *to, const char *x, const Py_ssize_t *from, const Py_ssize_t *shape, int nd, int size) {
    if (nd == 0)
        memcpy(y, x, (size_t)size);
    else if (nd == 1)
        copy_run(y, to[0], x, from[0], shape[0], size);
    else
        for (Py_ssize_t i = 0; i < shape[0]; i++) copy_block(y + i * to[0], to + 1, x + i * from[0], from + 1, shape + 1, nd - 1, size);
}
