/* Operators by index in C, and writes: gather, scatter, index_*, take, fills, copies. Many elements go by threads, without the GIL.
 *
 * In: the canonical arguments of an operator, as a tuple. Out: its result as a tensor, nothing recorded (of an in-place form its first
 * argument, written, its version one higher); or None where the call is not of that kind (another dtype, memory that is not row-major,
 * many elements where the rules are as quick, arguments that are refused, memory that is read and written): nothing has changed then, and the caller runs the
 * operator's rules, which know the rest. Every index is looked at before anything is written.
 */
#include "native_moves.h"

enum { SET, SUM, PRODUCT, LARGEST, SMALLEST };

/* Blocks along a dimension: of (outer, n, inner) elements that are written or read, and (outer, many, inner) that are put there. */
typedef struct {
    i64 outer, n, inner, many;
} Blocks;

#define T float
#define NAME(f) f##_f32
#define IS_NAN REAL_NAN
#include "native_places.h"
#define T double
#define NAME(f) f##_f64
#define IS_NAN REAL_NAN
#include "native_places.h"
#define T i64
#define NAME(f) f##_i64
#define IS_NAN NEVER
#include "native_places.h"
#define T int
#define NAME(f) f##_i32
#define IS_NAN NEVER
#include "native_places.h"
#define T short
#define NAME(f) f##_i16
#define IS_NAN NEVER
#include "native_places.h"
#define T signed char
#define NAME(f) f##_i8
#define IS_NAN NEVER
#include "native_places.h"

static i64 size_at(const Array *a, int d) { return d < a->nd ? a->shape[d] : 1; }

/* Room for as many numbers as a small call has: one of two that are kept (fresh pages cost more than the loops), or a new one. */
static i64 rooms[2][MOST_ELEMENTS];
static int is_taken[2];

static i64 *take_room(i64 count) {
    for (int r = 0; r < 2 && count <= MOST_ELEMENTS; r++)
        if (!is_taken[r]) {
            is_taken[r] = 1;
            return rooms[r];
        }
    return PyMem_Malloc(sizeof(i64) * (size_t)count);
}

static void give_room(i64 *room) {
    for (int r = 0; r < 2; r++)
        if (room == rooms[r]) {
            is_taken[r] = 0;
            return;
        }
    PyMem_Free(room);
}

/* The indices as i64, each from 0 to n - 1 (counted from the end where `wraps`); NULL without an error where one is not. */
static i64 *indices(const Array *a, i64 n, int wraps) {
    if (!a || (kind(a) != I64 && kind(a) != I32) || !has_elements(a)) return NULL;
    i64 count = count_of(a), *at = take_room(count);
    if (!at) return NULL;
    i64 outside = 0; /* one bit for all: a loop without a way out vectorises */
#define READ(type)                                              \
    for (i64 k = 0; k < count; k++) {                           \
        i64 v = ((const type *)a->data)[k];                     \
        v += wraps & (v < 0) ? n : 0;                           \
        outside |= (v < 0) | (v >= n);                          \
        at[k] = v;                                              \
    }
    if (kind(a) == I64)
        READ(i64)
    else
        READ(int)
#undef READ
    if (outside) {
        give_room(at);
        return NULL;
    }
    return at;
}

/* Whether an array of this shape is as large as the index in every dimension but `dim` (all, where that is negative). */
static int covers(const Array *a, const Array *index, int dim) {
    if (a->nd != index->nd) return 0;
    for (int d = 0; d < a->nd; d++)
        if (d != dim && a->shape[d] < index->shape[d]) return 0;
    return 1;
}

/* Whether an index has the sizes of an array in every dimension but `dim`. */
static int in_blocks(const Array *a, const Array *index, int dim) {
    for (int d = 0; d < a->nd; d++)
        if (d != dim && a->shape[d] != index->shape[d]) return 0;
    return 1;
}

/* Positions in a row-major array, for each element of an index: its own place, with `at[k]` along `dim` where that is not negative. */
static void positions(const Array *a, const Array *index, int dim, const i64 *at, i64 *into) {
    i64 count = count_of(index), place[MOST_DIMS] = {0}, step[MOST_DIMS];
    i64 size = 1;
    for (int d = a->nd - 1; d >= 0; d--) {
        step[d] = size;
        size *= a->shape[d];
    }
    if (dim >= 0 && a->nd > 0 && in_blocks(a, index, dim)) {
        i64 inner = step[dim], n = a->shape[dim], many = index->shape[dim], outer = count / (many * inner);
        if (inner == 1) {
            for (i64 o = 0; o < outer; o++, at += many, into += many)
                for (i64 j = 0; j < many; j++) into[j] = o * n + at[j];
            return;
        }
        for (i64 o = 0; o < outer; o++)
            for (i64 j = 0; j < many; j++, at += inner, into += inner)
                for (i64 i = 0; i < inner; i++) into[i] = (o * n + at[i]) * inner + i;
        return;
    }
    if (dim < 0 && a->nd == index->nd && in_blocks(a, index, a->nd ? 0 : -1)) {
        for (i64 k = 0; k < count; k++) into[k] = k;
        return;
    }
    for (i64 k = 0; k < count; k++) {
        i64 p = 0;
        for (int d = 0; d < a->nd; d++) p += step[d] * (d == dim ? at[k] : place[d]);
        into[k] = a->nd ? p : 0;
        for (int d = a->nd - 1; d >= 0 && ++place[d] == index->shape[d]; d--) place[d] = 0;
    }
}

/* y[k] = x[at[k]] */
static void read_elements(char *y, const char *x, const i64 *at, i64 count, int size) {
    if (size == 4)
        for (i64 k = 0; k < count; k++) ((int *)y)[k] = ((const int *)x)[at[k]];
    else if (size == 8)
        for (i64 k = 0; k < count; k++) ((i64 *)y)[k] = ((const i64 *)x)[at[k]];
    else
        for (i64 k = 0; k < count; k++) memcpy(y + k * size, x + at[k] * size, (size_t)size);
}

/* y[at[k]] = x[from[k]], one after the other */
static void write_elements(char *y, const i64 *at, const char *x, const i64 *from, i64 count, int size) {
    if (size == 4)
        for (i64 k = 0; k < count; k++) ((int *)y)[at[k]] = ((const int *)x)[from[k]];
    else if (size == 8)
        for (i64 k = 0; k < count; k++) ((i64 *)y)[at[k]] = ((const i64 *)x)[from[k]];
    else
        for (i64 k = 0; k < count; k++) memcpy(y + at[k] * size, x + from[k] * size, (size_t)size);
}

static void copy_element(char *y, const char *x, int size) {
    if (size == 4)
        memcpy(y, x, 4);
    else if (size == 8)
        memcpy(y, x, 8);
    else
        memcpy(y, x, (size_t)size);
}

/* ---- results: a copy of the first argument, or that itself */
static Array *copy_of(const Array *a) {
    Array *r = new_array(a->nd, a->shape, kind(a));
    if (r) copy_bytes_of(r, (Array *)a, (size_t)(count_of(a) * size_of(a)));
    return r;
}

/* ---- many elements */
static Blocks blocks_of(const Array *a, int dim, i64 many) {
    Blocks b = {1, 1, 1, many};
    for (int d = 0; d < a->nd; d++) *(d < dim ? &b.outer : d > dim ? &b.inner : &b.n) *= a->shape[d];
    return b;
}

/* Whether each is from 0 to n - 1. */
CLONED static int are_inside(const i64 *at, i64 count, i64 n) {
    i64 outside = 0;
    for (i64 k = 0; k < count; k++) outside |= (i64)((unsigned long long)at[k] >= (unsigned long long)n);
    return !outside;
}

/* A loop over blocks: by rows where there are several outer ones, else by columns. */
typedef struct {
    char *to;
    const char *from;
    const i64 *at;
    Blocks b;
    int kind, how, each; /* each: every element has a place of its own */
} Job;

static void combine_part(long first, long last, void *const *arguments) {
    const Job *j = arguments[0];
    Blocks b = j->b;
    i64 outer = b.outer > 1 ? first : 0, left = b.outer > 1 ? 0 : first, right = b.outer > 1 ? b.inner : last;
    b.outer = b.outer > 1 ? last - first : b.outer;
    const i64 *at = j->at + (j->each ? outer * b.many * b.inner : 0);
#define CALL(type, suffix)                                                                                                                     \
    (j->each ? combine_each_##suffix : combine_blocks_##suffix)((type *)j->to + outer * b.n * b.inner, (const type *)j->from + outer * b.many * b.inner, at, b, \
                                                                left, right, j->how)
    switch (item_sizes[j->kind]) { /* elements that are only put in places */
    case 1: CALL(signed char, i8); break;
    case 2: CALL(short, i16); break;
    default: BY_KIND(j->kind, CALL)
    }
#undef CALL
}

static void combine_all(Job *job, Array *a, Array *b, Array *c) {
    void *const arguments[] = {job};
    i64 rows = job->b.outer > 1 ? job->b.outer : job->b.inner;
    over_parts(combine_part, rows, job->b.outer * job->b.many * job->b.inner, arguments, a, b, c);
}

/* Elements read at places of their own, rows of indices looked at before they are used; `how` becomes 1 where one is outside. */
#define GATHER(type)                                                                                            \
    {                                                                                                           \
        const type *x = (const type *)j->from + first * b.n * b.inner;                                          \
        type *y = (type *)j->to + first * row;                                                                  \
        for (i64 o = first; o < last; o++, at += row, y += row, x += b.n * b.inner) {                           \
            if (!are_inside(at, row, b.n)) {                                                                    \
                j->how = 1;                                                                                     \
                return;                                                                                         \
            }                                                                                                   \
            if (b.inner == 1)                                                                                   \
                for (i64 k = 0; k < row; k++) y[k] = x[at[k]];                                                  \
            else                                                                                                \
                for (i64 k = 0; k < row; k += b.inner)                                                          \
                    for (i64 i = 0; i < b.inner; i++) y[k + i] = x[at[k + i] * b.inner + i];                    \
        }                                                                                                       \
    }

static void gather_part(long first, long last, void *const *arguments) {
    Job *j = arguments[0];
    Blocks b = j->b;
    i64 row = b.many * b.inner;
    const i64 *at = j->at + first * row;
    switch (item_sizes[j->kind]) {
    case 4: GATHER(int) break;
    case 8: GATHER(i64) break;
    case 2: GATHER(short) break;
    default: GATHER(char)
    }
}

/* ---- gather and scatter */
static PyObject *py_gather(PyObject *self, PyObject *args) {
    Array *a = array_of(argument(args, 0)), *index = array_of(argument(args, 2));
    NONE_UNLESS(a && index && has_elements(a) && has_elements(index));
    int dim = dim_of(argument(args, 1), a);
    NONE_UNLESS(dim >= 0 && covers(a, index, dim) && (kind(index) == I64 || (kind(index) == I32 && is_small(index))));
    if (kind(index) == I64 && a->nd && in_blocks(a, index, dim)) {
        Array *r = new_array(index->nd, index->shape, kind(a));
        if (!r) return NULL;
        Job job = {r->data, a->data, (const i64 *)index->data, blocks_of(a, dim, index->shape[dim]), kind(a), 0, 1};
        void *const arguments[] = {&job};
        over_parts(gather_part, job.b.outer, count_of(index), arguments, a, index, r);
        if (!job.how) return tensor_of(r);
        Py_DECREF(r);
        Py_RETURN_NONE;
    }
    NONE_UNLESS(is_small(index));
    i64 *at = indices(index, size_at(a, dim), 0), count = count_of(index);
    NONE_UNLESS(at);
    Array *r = new_array(index->nd, index->shape, kind(a));
    if (r) {
        positions(a, index, dim, at, at);
        read_elements(r->data, a->data, at, count, size_of(a));
    }
    give_room(at);
    return tensor_of(r);
}

static int how_of(PyObject *word) {
    const char *names[] = {"", "sum", "prod", "amax", "amin"};
    for (int i = SUM; PyUnicode_Check(word) && i <= SMALLEST; i++)
        if (!PyUnicode_CompareWithASCIIString(word, names[i])) return i;
    return -1;
}

/* scatter where index and src are of one shape, and that of self but along a dimension */
static PyObject *scatter_blocks(PyObject *args, Array *a, Array *index, Array *src, int dim, int how, int in_place) {
    Blocks b = blocks_of(a, dim, index->shape[dim]);
    NONE_UNLESS(are_inside((const i64 *)index->data, count_of(index), b.n));
    Array *r = in_place ? a : copy_of(a);
    if (!r) return NULL;
    Job job = {r->data, src->data, (const i64 *)index->data, b, kind(a), how, 1};
    combine_all(&job, r, src, index);
    return in_place ? written(argument(args, 0)) : tensor_of(r);
}

/* self, dim, index, src: y[.., index, ..] = src, or combined with it */
static PyObject *scatter(PyObject *args, int how, int in_place) {
    Array *a = array_of(argument(args, 0)), *index = array_of(argument(args, 2)), *src = array_of(argument(args, 3));
    NONE_UNLESS(a && index && src && has_elements(a) && has_elements(index) && kind(a) == kind(src) && (how == SET || kind(a) <= I32));
    int dim = dim_of(argument(args, 1), a);
    NONE_UNLESS(dim >= 0 && covers(a, index, dim) && covers(src, index, -1));
    PyObject *others[2] = {argument(args, 2), argument(args, 3)};
    NONE_UNLESS(!in_place || (is_writable(a) && is_apart(argument(args, 0), others, 2)));
    if (kind(index) == I64 && (how == SET || kind(a) <= I32) && a->nd && in_blocks(a, index, dim) && src->shape[dim] == index->shape[dim] && in_blocks(src, index, dim))
        return scatter_blocks(args, a, index, src, dim, how, in_place);
    NONE_UNLESS(is_small(a) && is_small(index) && count_of(src) <= MOST_ELEMENTS);
    i64 *at = indices(index, size_at(a, dim), 0), count = count_of(index);
    NONE_UNLESS(at);
    i64 *from = take_room(count);
    Array *r = !from ? (Array *)PyErr_NoMemory() : in_place ? a : copy_of(a);
    if (r) {
        positions(a, index, dim, at, at);
        positions(src, index, -1, NULL, from);
        if (how == SET)
            write_elements(r->data, at, src->data, from, count, size_of(a));
        else {
#define CALL(type, suffix) combine_##suffix((type *)r->data, (const type *)src->data, at, from, count, how)
            BY_KIND(kind(a), CALL)
#undef CALL
        }
    }
    give_room(from);
    give_room(at);
    return !r ? NULL : in_place ? written(argument(args, 0)) : tensor_of(r);
}

static PyObject *py_scatter(PyObject *self, PyObject *args) { return scatter(args, SET, 0); }
static PyObject *py_scatter_(PyObject *self, PyObject *args) { return scatter(args, SET, 1); }
static PyObject *py_scatter_add(PyObject *self, PyObject *args) { return scatter(args, SUM, 0); }
static PyObject *py_scatter_add_(PyObject *self, PyObject *args) { return scatter(args, SUM, 1); }

/* Sums of blocks by how many numbers each is of; `counts` has room for one block. */
#define DIVIDE_BLOCKS(T)                                                                          \
    for (i64 o = 0; o < b.outer; o++, at += b.many * b.inner) {                                   \
        T *y = (T *)r->data + o * b.n * b.inner;                                                  \
        for (i64 i = 0; i < b.n * b.inner; i++) counts[i] = 1;                                    \
        for (i64 k = 0; b.inner == 1 && k < b.many; k++) counts[at[k]]++;                         \
        for (i64 k = 0; b.inner != 1 && k < b.many; k++)                                          \
            for (i64 i = 0; i < b.inner; i++) counts[at[k * b.inner + i] * b.inner + i]++;        \
        for (i64 i = 0; i < b.n * b.inner; i++) y[i] /= (T)counts[i];                             \
    }

static PyObject *divided_blocks(PyObject *sums, Array *index, Blocks b) {
    Array *r = array_of(sums);
    int *counts = PyMem_Malloc(sizeof(int) * (size_t)(b.n * b.inner));
    const i64 *at = (const i64 *)index->data;
    if (!counts) {
        Py_DECREF(sums);
        return PyErr_NoMemory();
    }
    if (kind(r) == F32) {
        DIVIDE_BLOCKS(float)
    } else {
        DIVIDE_BLOCKS(double)
    }
    PyMem_Free(counts);
    return sums;
}

/* self, dim, index, src of floats: sums by how many numbers each is of, the one that was there included */
static PyObject *scatter_mean(PyObject *args) {
    Array *a = array_of(argument(args, 0)), *index = array_of(argument(args, 2));
    NONE_UNLESS(a && index && kind(a) <= F64 && has_elements(a) && has_elements(index));
    int dim = dim_of(argument(args, 1), a);
    const int whole = dim >= 0 && a->nd && kind(index) == I64 && index->nd == a->nd && in_blocks(a, index, dim);
    NONE_UNLESS(whole || (is_small(a) && is_small(index)));
    PyObject *sums = scatter(args, SUM, 0);
    if (!sums || sums == Py_None) return sums;
    if (whole) return divided_blocks(sums, index, blocks_of(a, dim, index->shape[dim]));
    Array *r = array_of(sums);
    i64 *at = indices(index, size_at(a, dim), 0), *counts = take_room(count_of(a)), n = count_of(a);
    if (at && counts) {
        positions(a, index, dim, at, at);
        for (i64 k = 0; k < n; k++) counts[k] = 1;
        for (i64 k = 0; k < count_of(index); k++) counts[at[k]]++;
        if (kind(a) == F32)
            for (i64 k = 0; k < n; k++) ((float *)r->data)[k] /= (float)counts[k];
        else
            for (i64 k = 0; k < n; k++) ((double *)r->data)[k] /= (double)counts[k];
    } else
        Py_CLEAR(sums);
    give_room(counts);
    give_room(at);
    return sums ? sums : PyErr_NoMemory();
}

static PyObject *py_scatter_reduce(PyObject *self, PyObject *args) {
    PyObject *word = argument(args, 4);
    int how = how_of(word);
    NONE_UNLESS(argument(args, 5) == Py_True);
    if (PyUnicode_Check(word) && !PyUnicode_CompareWithASCIIString(word, "mean")) return scatter_mean(args);
    NONE_UNLESS(how > 0);
    return scatter(args, how, 0);
}

static PyObject *scatter_number(PyObject *args, int in_place) { /* self, dim, index, value */
    Array *a = array_of(argument(args, 0)), *index = array_of(argument(args, 2));
    PyObject *others[1] = {argument(args, 2)};
    char value[8];
    NONE_UNLESS(a && index && (in_place || is_small(a)) && has_elements(a) && is_small(index) && element(argument(args, 3), kind(a), value));
    NONE_UNLESS(!in_place || (is_writable(a) && is_apart(argument(args, 0), others, 1)));
    int dim = dim_of(argument(args, 1), a), size = size_of(a);
    NONE_UNLESS(dim >= 0 && covers(a, index, dim));
    i64 *at = indices(index, size_at(a, dim), 0), count = count_of(index);
    NONE_UNLESS(at);
    Array *r = in_place ? a : copy_of(a);
    if (r) {
        positions(a, index, dim, at, at);
        for (i64 k = 0; k < count; k++) copy_element(r->data + at[k] * size, value, size);
    }
    give_room(at);
    return !r ? NULL : in_place ? written(argument(args, 0)) : tensor_of(r);
}

static PyObject *py_scatter_value(PyObject *self, PyObject *args) { return scatter_number(args, 0); }
static PyObject *py_scatter_value_(PyObject *self, PyObject *args) { return scatter_number(args, 1); }

/* one_hot: classes, how many there are (-1: as many as the largest says) */
static PyObject *py_one_hot(PyObject *self, PyObject *args) {
    Array *a = array_of(argument(args, 0));
    Py_ssize_t classes, shape[MOST_DIMS];
    NONE_UNLESS(a && kind(a) == I64 && a->nd < 8 && has_elements(a) && integer_of(argument(args, 1), &classes));
    i64 n = count_of(a), most = 0;
    const i64 *at = (const i64 *)a->data;
    for (i64 k = 0; k < n; k++) most = at[k] > most ? at[k] : most;
    classes = classes == -1 ? (Py_ssize_t)most + 1 : classes;
    NONE_UNLESS(classes > 0 && most < 1 << 28 && are_inside(at, n, classes) && n <= (1 << 28) / classes);
    memcpy(shape, a->shape, sizeof(*shape) * (size_t)a->nd);
    shape[a->nd] = classes;
    Array *r = new_array(a->nd + 1, shape, I64);
    for (i64 k = 0; r && k < n; k++) {
        memset(r->data + k * classes * 8, 0, (size_t)classes * 8);
        ((i64 *)r->data)[k * classes + at[k]] = 1;
    }
    return tensor_of(r);
}

/* ---- blocks along a dimension */
typedef struct {
    i64 outer, n, inner;
} Shape;

static Shape shape_of(const Array *a, int dim) {
    Shape s = {1, 1, 1};
    for (int d = 0; d < a->nd; d++) *(d < dim ? &s.outer : d > dim ? &s.inner : &s.n) *= a->shape[d];
    return s;
}

/* Blocks at places, one after the other. */
static void copy_chosen(char *y, const char *x, const i64 *at, i64 many, size_t block) {
    if (block == 4)
        for (i64 k = 0; k < many; k++) memcpy(y + k * 4, x + at[k] * 4, 4);
    else if (block == 8)
        for (i64 k = 0; k < many; k++) memcpy(y + k * 8, x + at[k] * 8, 8);
    else
        for (i64 k = 0; k < many; k++) memcpy(y + (size_t)k * block, x + (size_t)at[k] * block, block);
}

typedef struct {
    char *to;
    const char *from;
    const i64 *at;
    i64 outer, n, many, block;
} Chosen;

/* Of rows `first` to `last`, or of the blocks of the only one. */
static void chosen_part(long first, long last, void *const *arguments) {
    const Chosen *c = arguments[0];
    if (c->outer == 1) {
        copy_chosen(c->to + first * c->block, c->from, c->at + first, last - first, (size_t)c->block);
        return;
    }
    for (i64 o = first; o < last; o++) copy_chosen(c->to + o * c->many * c->block, c->from + o * c->n * c->block, c->at, c->many, (size_t)c->block);
}

static PyObject *py_index_select(PyObject *self, PyObject *args) {
    Array *a = array_of(argument(args, 0)), *index = array_of(argument(args, 2));
    NONE_UNLESS(a && index && has_elements(a) && a->nd && index->nd == 1 && has_elements(index));
    int dim = dim_of(argument(args, 1), a);
    NONE_UNLESS(dim >= 0);
    Shape s = shape_of(a, dim);
    i64 many = index->shape[0];
    NONE_UNLESS(many <= ((i64)1 << 40) / (s.outer * s.inner));
    i64 *at = indices(index, s.n, 0);
    NONE_UNLESS(at);
    Py_ssize_t shape[MOST_DIMS];
    memcpy(shape, a->shape, sizeof(*shape) * (size_t)a->nd);
    shape[dim] = (Py_ssize_t)many;
    Array *r = new_array(a->nd, shape, kind(a));
    if (r) {
        Chosen c = {r->data, a->data, at, s.outer, s.n, many, s.inner * size_of(a)};
        void *const arguments[] = {&c};
        over_parts(chosen_part, s.outer == 1 ? many : s.outer, s.outer * many * s.inner, arguments, a, index, r);
    }
    give_room(at);
    return tensor_of(r);
}

/* self, dim, index, source: blocks of `source` set or added at places of a copy of `self`, or of itself */
static PyObject *blocks(PyObject *args, int how, int in_place) {
    Array *a = array_of(argument(args, 0)), *index = array_of(argument(args, 2)), *src = array_of(argument(args, 3));
    NONE_UNLESS(a && index && src && has_elements(a) && a->nd && index->nd == 1 && src->nd == a->nd && kind(a) == kind(src));
    NONE_UNLESS(how == SET ? kind(index) == I64 : kind(a) <= I32);
    int dim = dim_of(argument(args, 1), a);
    NONE_UNLESS(dim >= 0 && src->shape[dim] == index->shape[0] && has_elements(index));
    for (int d = 0; d < a->nd; d++) NONE_UNLESS(d == dim || a->shape[d] == src->shape[d]);
    PyObject *others[2] = {argument(args, 2), argument(args, 3)};
    NONE_UNLESS(!in_place || (is_writable(a) && is_apart(argument(args, 0), others, 2)));
    Blocks b = blocks_of(a, dim, index->shape[0]);
    i64 *at = indices(index, b.n, 0);
    NONE_UNLESS(at);
    Array *r = in_place ? a : copy_of(a);
    i64 block = b.inner * size_of(a);
    if (r && how == SET)
        for (i64 o = 0; o < b.outer; o++)
            for (i64 k = 0; k < b.many; k++) memcpy(r->data + (o * b.n + at[k]) * block, src->data + (o * b.many + k) * block, (size_t)block);
    else if (r) {
        Job job = {r->data, src->data, at, b, kind(a), how, 0};
        combine_all(&job, r, src, NULL);
    }
    give_room(at);
    return !r ? NULL : in_place ? written(argument(args, 0)) : tensor_of(r);
}

static int is_one(PyObject *value) {
    int beyond;
    return PyLong_CheckExact(value) && PyLong_AsLongAndOverflow(value, &beyond) == 1;
}

/* A copy of an array with one element everywhere at places along a dimension. */
static PyObject *filled_at(Array *a, int dim, Array *index, const Array *value) {
    NONE_UNLESS(a && has_elements(a) && dim < a->nd && index->nd == 1 && has_elements(index) && value->nd == 0 && kind(value) == kind(a));
    Blocks b = blocks_of(a, dim, index->shape[0]);
    i64 *at = indices(index, b.n, 0), size = size_of(a);
    NONE_UNLESS(at);
    Array *r = copy_of(a);
    for (i64 o = 0; r && o < b.outer; o++)
        for (i64 k = 0; k < b.many; k++)
            for (i64 i = 0; i < b.inner; i++) memcpy(r->data + ((o * b.n + at[k]) * b.inner + i) * size, value->data, (size_t)size);
    give_room(at);
    return tensor_of(r);
}

static void add_elements(char *into, const char *from, i64 n, int k) {
#define ADD(T)                                                        \
    for (i64 i = 0; i < n; i++) ((T *)into)[i] += ((const T *)from)[i]; \
    return
    switch (k) {
    case F32: ADD(float);
    case F64: ADD(double);
    case I64: ADD(i64);
    case I32: ADD(int32_t);
    }
#undef ADD
}

/* A copy of an array in which blocks are set, or added to, one after the other where a mask over the first dimensions says so. */
static PyObject *put_where(Array *a, const Array *mask, const Array *src, int adds) {
    NONE_UNLESS(a && src && has_elements(a) && mask->nd && mask->nd <= a->nd && src->nd == a->nd - mask->nd + 1);
    NONE_UNLESS(kind(a) == kind(src) && (!adds || kind(a) <= I32) && !memcmp(mask->shape, a->shape, sizeof(*a->shape) * (size_t)mask->nd));
    NONE_UNLESS(!memcmp(src->shape + 1, a->shape + mask->nd, sizeof(*a->shape) * (size_t)(a->nd - mask->nd)));
    const i64 n = count_of(mask), inner = count_of(a) / n, block = inner * size_of(a);
    i64 many = 0;
    for (i64 i = 0; i < n; i++) many += mask->data[i] != 0;
    NONE_UNLESS(src->shape[0] == many);
    Array *r = copy_of(a);
    const char *from = src->data;
    for (i64 i = 0; r && i < n; i++) {
        if (!mask->data[i]) continue;
        if (adds)
            add_elements(r->data + i * block, from, inner, kind(a));
        else
            memcpy(r->data + i * block, from, (size_t)block);
        from += block;
    }
    return tensor_of(r);
}

/* self, indices, values, accumulate: one index, along any dimension, or one mask, of the first */
static PyObject *py_index_put(PyObject *self, PyObject *args) {
    PyObject *lists = argument(args, 1), *alone = NULL;
    NONE_UNLESS(PyTuple_Check(lists) || PyList_Check(lists));
    Py_ssize_t place = 0;
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(lists); i++) {
        PyObject *given = PySequence_Fast_GET_ITEM(lists, i);
        NONE_UNLESS(given == Py_None || !alone);
        if (given != Py_None) alone = given, place = i;
    }
    Array *index = alone ? array_of(alone) : NULL;
    NONE_UNLESS(index && (kind(index) == I64 || (kind(index) == BOOL && !place)));
    Array *value = array_of(argument(args, 2));
    if (kind(index) == BOOL) return put_where(array_of(argument(args, 0)), index, value, argument(args, 3) == Py_True);
    if (value && !value->nd && argument(args, 3) == Py_False) return filled_at(array_of(argument(args, 0)), (int)place, index, value);
    PyObject *dim = PyLong_FromSsize_t(place), *along = dim ? PyTuple_Pack(4, argument(args, 0), dim, alone, argument(args, 2)) : NULL;
    PyObject *result = along ? blocks(along, argument(args, 3) == Py_True ? SUM : SET, 0) : NULL;
    Py_XDECREF(along);
    Py_XDECREF(dim);
    return result;
}

static PyObject *py_index_copy(PyObject *self, PyObject *args) { return blocks(args, SET, 0); }
static PyObject *py_index_copy_(PyObject *self, PyObject *args) { return blocks(args, SET, 1); }
static PyObject *py_index_add(PyObject *self, PyObject *args) {
    NONE_UNLESS(is_one(argument(args, 4)));
    return blocks(args, SUM, 0);
}
static PyObject *py_index_add_(PyObject *self, PyObject *args) {
    NONE_UNLESS(is_one(argument(args, 4)));
    return blocks(args, SUM, 1);
}

/* self, dim, index, source, reduce, include_self */
static PyObject *py_index_reduce(PyObject *self, PyObject *args) {
    int how = how_of(argument(args, 4));
    NONE_UNLESS(how > SUM && argument(args, 5) == Py_True);
    return blocks(args, how, 0);
}

/* self, src, size, stride, storage_offset: within the elements of a row-major tensor */
static PyObject *py_as_strided_scatter(PyObject *self, PyObject *args) {
    Array *a = array_of(argument(args, 0)), *src = strided_of(argument(args, 1));
    Py_ssize_t shape[MOST_DIMS], steps[MOST_DIMS], last = 0;
    int nd = a && src && has_elements(a) && kind(a) == kind(src) && argument(args, 4) == Py_None ? integers_of(argument(args, 2), shape, 16) : -1;
    NONE_UNLESS(nd >= 0 && nd == src->nd && integers_of(argument(args, 3), steps, 16) == nd);
    for (int d = 0; d < nd; d++) {
        NONE_UNLESS(shape[d] == src->shape[d] && shape[d] > 0 && steps[d] >= 0);
        NONE_UNLESS(steps[d] > 0 || shape[d] == 1); /* which of several stays is not said here */
        last += (shape[d] - 1) * steps[d]; /* numbers below 2 ** 30 */
        NONE_UNLESS(last < count_of(a));
        steps[d] *= size_of(a);
    }
    for (int d = 0; d < nd; d++) /* no element twice: the larger steps go over the smaller ones */
        for (int e = 0; e < nd; e++)
            NONE_UNLESS(d == e || shape[d] == 1 || shape[e] == 1 || (steps[d] > steps[e] ? steps[d] >= shape[e] * steps[e] : steps[e] > steps[d]));
    Array *r = copy_of(a);
    if (r) copy_block_of(r->data, steps, src->data, src->strides, shape, nd, size_of(a), src, r);
    return tensor_of(r);
}

static PyObject *py_index_fill(PyObject *self, PyObject *args) {
    Array *a = array_of(argument(args, 0)), *index = array_of(argument(args, 2));
    char value[8];
    NONE_UNLESS(a && index && is_small(a) && a->nd && index->nd <= 1 && kind(index) == I64 && element(argument(args, 3), kind(a), value));
    int dim = dim_of(argument(args, 1), a), size = size_of(a);
    NONE_UNLESS(dim >= 0);
    Shape s = shape_of(a, dim);
    i64 *at = indices(index, s.n, 1), many = count_of(index);
    NONE_UNLESS(at);
    Array *r = copy_of(a);
    for (i64 o = 0; r && o < s.outer; o++)
        for (i64 k = 0; k < many; k++)
            for (i64 i = 0; i < s.inner; i++) copy_element(r->data + ((o * s.n + at[k]) * s.inner + i) * size, value, size);
    give_room(at);
    return tensor_of(r);
}

static PyObject *py_take(PyObject *self, PyObject *args) {
    Array *a = array_of(argument(args, 0)), *index = array_of(argument(args, 1));
    NONE_UNLESS(a && index && is_small(a) && kind(index) == I64);
    i64 *at = indices(index, count_of(a), 1), count = count_of(index);
    NONE_UNLESS(at);
    Array *r = new_array(index->nd, index->shape, kind(a));
    int size = size_of(a);
    for (i64 k = 0; r && k < count; k++) copy_element(r->data + k * size, a->data + at[k] * size, size);
    give_room(at);
    return tensor_of(r);
}

/* ---- losses: scores, target, weight, reduction (0 none, 1 mean, 2 sum), ignore_index */
static PyObject *py_nll(PyObject *self, PyObject *args) {
    Array *scores = array_of(argument(args, 0)), *target = array_of(argument(args, 1));
    NONE_UNLESS(scores && target && argument(args, 2) == Py_None && scores->nd == 2 && target->nd == 1 && kind(scores) <= F64);
    NONE_UNLESS(kind(target) == I64 && scores->shape[0] == target->shape[0] && has_elements(scores));
    NONE_UNLESS(PyLong_CheckExact(argument(args, 3)) && PyLong_CheckExact(argument(args, 4)));
    long reduction = PyLong_AsLong(argument(args, 3));
    long long ignored = PyLong_AsLongLong(argument(args, 4));
    i64 rows = scores->shape[0], classes = scores->shape[1];
    if (PyErr_Occurred()) PyErr_Clear();
    NONE_UNLESS((reduction == 1 || reduction == 2) && !(ignored >= 0 && ignored < classes));
    i64 *at = indices(target, classes, 0);
    NONE_UNLESS(at);
    double total = 0;
    for (i64 r = 0; r < rows; r++) {
        i64 place = r * classes + at[r];
        total += kind(scores) == F32 ? (double)((const float *)scores->data)[place] : ((const double *)scores->data)[place];
    }
    give_room(at);
    total = reduction == 1 ? -total / (double)rows : -total;
    double both[2] = {total, (double)rows};
    PyObject *results[2] = {NULL, NULL};
    for (int i = 0; i < 2; i++) {
        Array *one = new_array(0, NULL, kind(scores));
        if (one && kind(scores) == F32)
            *(float *)one->data = (float)both[i];
        else if (one)
            *(double *)one->data = both[i];
        results[i] = tensor_of(one);
    }
    PyObject *pair = results[0] && results[1] ? PyTuple_Pack(2, results[0], results[1]) : NULL;
    Py_XDECREF(results[0]);
    Py_XDECREF(results[1]);
    return pair;
}

/* The loss alone. */
static PyObject *py_nll_alone(PyObject *self, PyObject *args) {
    PyObject *both = py_nll(self, args);
    if (!both || both == Py_None) return both;
    PyObject *loss = Py_NewRef(PyTuple_GET_ITEM(both, 0));
    Py_DECREF(both);
    return loss;
}

/* move(out, value): `out[...] = value` of arrays of one dtype and shape in any order of memory; False, and nothing is written, where they
 * are not that or share memory */
static PyObject *py_move(PyObject *self, PyObject *args) {
    Array *y, *x;
    Py_ssize_t size;
    if (!PyArg_ParseTuple(args, "OOn", &y, &x, &size)) return NULL;
    int fits = array_type && Py_IS_TYPE(y, array_type) && Py_IS_TYPE(x, array_type) && y->dtype == x->dtype && y->nd == x->nd && size <= 16 &&
               (x->flags & ALIGNED) && (y->flags & ALIGNED) && is_writable(y) && y->dtype->kind != 'O';
    if (!fits || (y->nd && memcmp(y->shape, x->shape, sizeof(*y->shape) * (size_t)y->nd))) Py_RETURN_FALSE;
    const char *low[2] = {y->data, x->data}, *high[2] = {y->data + size, x->data + size};
    for (int i = 0; i < 2; i++)
        for (int d = 0; d < y->nd; d++) {
            Py_ssize_t reach = (y->shape[d] - 1) * (i ? x : y)->strides[d];
            *(reach < 0 ? &low[i] : &high[i]) += reach;
        }
    if (!has_elements(y) || (low[0] < high[1] && low[1] < high[0])) Py_RETURN_FALSE;
    for (int d = 0; d < y->nd; d++)
        if (y->shape[d] > 1 && !y->strides[d]) Py_RETURN_FALSE;
    copy_block_of(y->data, y->strides, x->data, x->strides, y->shape, y->nd, (int)size, x, y);
    Py_RETURN_TRUE;
}

/* By the operator that each computes. */
static PyMethodDef methods[] = {
    {"use_arrays", use_arrays, METH_VARARGS, "use_arrays(ndarray, [(number, dtype), ...], make_tensor)"},
    {"use_threads", use_threads, METH_VARARGS, "use_threads(address, function)"},
    {"move", py_move, METH_VARARGS, "move(out, value, itemsize)"},
    {"one_hot.classes", py_one_hot, METH_O, NULL},
    {"gather.default", py_gather, METH_O, NULL},
    {"scatter.src", py_scatter, METH_O, NULL},
    {"scatter_.src", py_scatter_, METH_O, NULL},
    {"scatter.value", py_scatter_value, METH_O, NULL},
    {"scatter_.value", py_scatter_value_, METH_O, NULL},
    {"scatter_add.default", py_scatter_add, METH_O, NULL},
    {"scatter_add_.default", py_scatter_add_, METH_O, NULL},
    {"scatter_reduce.two", py_scatter_reduce, METH_O, NULL},
    {"index_select.default", py_index_select, METH_O, NULL},
    {"index_put.default", py_index_put, METH_O, NULL},
    {"index_copy.default", py_index_copy, METH_O, NULL},
    {"index_copy_.default", py_index_copy_, METH_O, NULL},
    {"index_add.default", py_index_add, METH_O, NULL},
    {"index_add_.default", py_index_add_, METH_O, NULL},
    {"index_fill.int_Scalar", py_index_fill, METH_O, NULL},
    {"index_reduce.default", py_index_reduce, METH_O, NULL},
    {"as_strided_scatter.default", py_as_strided_scatter, METH_O, NULL},
    {"take.default", py_take, METH_O, NULL},
    {"nll_loss_forward.default", py_nll, METH_O, NULL},
    {"nll_loss_nd.default", py_nll_alone, METH_O, NULL},
    {NULL, NULL, 0, NULL},
};

MODULE(_places)
