/* Views in C, for plain tensors: another shape and other strides on the memory of an array, and the tensor around it.
 *
 * `bind(key, op)` gives the function that computes an operator, which takes its canonical arguments and gives the view, marked as such (what
 * it shows, and how to make it again) and not recorded; or None where the call is refused, has no elements, or is of a dtype that
 * native_arrays.h does not list. `bind_parts(select, slice)` gives two functions of a tensor without history: what a tuple of ints and slices takes
 * of it, and its slices between places along a dimension. The arithmetic is that of `ops.shape.view_geometry`, in bytes.
 */
#include "native_moves.h"

static PyObject *make_view, *ambient, *offset_name, *mode_name, *zero, *one;
static int (*set_base)(PyObject *, PyObject *);
enum { MOST = 16, WRITABLE = 0x400 };

/* use_views(make_view, ambient) */
static PyObject *use_views(PyObject *self, PyObject *args) {
    if (!PyArg_ParseTuple(args, "OO", &make_view, &ambient)) return NULL;
    PyObject *home = PyImport_ImportModule("numpy._core._multiarray_umath");
    if (!home) {
        PyErr_Clear();
        home = PyImport_ImportModule("numpy.core._multiarray_umath");
    }
    PyObject *capsule = home ? PyObject_GetAttrString(home, "_ARRAY_API") : NULL;
    void **table = capsule ? PyCapsule_GetPointer(capsule, NULL) : NULL;
    if (table) *(void **)&set_base = table[282]; /* PyArray_SetBaseObject */
    Py_XDECREF(capsule);
    Py_XDECREF(home);
    offset_name = PyUnicode_InternFromString("_offset");
    mode_name = PyUnicode_InternFromString("mode");
    zero = PyLong_FromLong(0);
    one = PyLong_FromLong(1);
    if (!table || !offset_name || !mode_name || !zero || !one) return NULL;
    Py_INCREF(make_view);
    Py_INCREF(ambient);
    Py_RETURN_NONE;
}

typedef struct {
    int nd;
    Py_ssize_t shape[MOST], strides[MOST], shift; /* in bytes, from the first element of the source */
} Place;

/* A source with elements, and its own place. */
static Array *source_of(PyObject *tensor, Place *p) {
    Array *a = strided_of(tensor);
    if (!a || a->nd > MOST - 2 || !count_of(a)) return NULL;
    p->nd = a->nd;
    p->shift = 0;
    if (a->nd) {
        memcpy(p->shape, a->shape, sizeof(*p->shape) * (size_t)a->nd);
        memcpy(p->strides, a->strides, sizeof(*p->strides) * (size_t)a->nd);
    }
    return a;
}

static PyObject *offset_after(PyObject *tensor, Py_ssize_t shift, int from, int to) {
    PyObject *found = PyObject_GetAttr(tensor, offset_name);
    if (!found) return NULL;
    if (!shift && from == to) return found;
    Py_ssize_t at = PyLong_AsSsize_t(found);
    Py_DECREF(found);
    if (at == -1 && PyErr_Occurred()) return NULL;
    return PyLong_FromSsize_t((at * from + shift) / to);
}

/* The tensor at a place on the memory of the first argument, of a kind; the view of a `number` of several, where that is not negative. */
static PyObject *numbered_view(PyObject *op, PyObject *args, Array *a, const Place *p, int k, Py_ssize_t number) {
    for (int d = 0; d < p->nd; d++) NONE_UNLESS(p->shape[d] > 0);
    PyObject *call = number < 0 ? Py_NewRef(args) : Py_BuildValue("nO", number, args);
    if (!call) return NULL;
    PyObject *source = argument(args, 0), *mode = PyObject_GetAttr(ambient, mode_name);
    PyObject *offset = mode ? offset_after(source, p->shift, size_of(a), item_sizes[k]) : NULL;
    Array *r = offset ? (Array *)array_new(array_type, p->nd, p->shape, number_of[k], p->strides, a->data + p->shift, 0, a->flags & WRITABLE, NULL) : NULL;
    PyObject *result = NULL;
    if (r && !set_base((PyObject *)r, Py_NewRef(a))) {
        PyObject *given[8] = {source, (PyObject *)r, offset, op, call, PyLong_AsLong(mode) & 1 ? one : zero, number < 0 ? Py_False : Py_True, dtype_of[k]};
        result = PyObject_Vectorcall(make_view, given, 8, NULL);
    }
    Py_XDECREF(r);
    Py_XDECREF(offset);
    Py_XDECREF(mode);
    Py_DECREF(call);
    return result;
}

static PyObject *view_at(PyObject *op, PyObject *args, Array *a, const Place *p, int k) { return numbered_view(op, args, a, p, k, -1); }

static void remove_dim(Place *p, int d) {
    memmove(p->shape + d, p->shape + d + 1, sizeof(*p->shape) * (size_t)(p->nd - d - 1));
    memmove(p->strides + d, p->strides + d + 1, sizeof(*p->strides) * (size_t)(p->nd - d - 1));
    p->nd--;
}

static PyObject *py_alias(PyObject *op, PyObject *args) {
    Place p;
    Array *a = source_of(argument(args, 0), &p);
    NONE_UNLESS(a);
    return view_at(op, args, a, &p, kind(a));
}

static PyObject *py_select(PyObject *op, PyObject *args) {
    Place p;
    Py_ssize_t at;
    Array *a = source_of(argument(args, 0), &p);
    NONE_UNLESS(a && a->nd);
    int d = dim_of(argument(args, 1), a);
    NONE_UNLESS(d >= 0 && integer_of(argument(args, 2), &at) && at >= -p.shape[d] && at < p.shape[d]);
    p.shift = (at < 0 ? at + p.shape[d] : at) * p.strides[d];
    remove_dim(&p, d);
    return view_at(op, args, a, &p, kind(a));
}

static PyObject *py_unbind(PyObject *op, PyObject *args) {
    Place p;
    Array *a = source_of(argument(args, 0), &p);
    NONE_UNLESS(a && a->nd);
    const int d = dim_of(argument(args, 1), a);
    NONE_UNLESS(d >= 0);
    const Py_ssize_t many = p.shape[d], step = p.strides[d];
    remove_dim(&p, d);
    PyObject *result = PyTuple_New(many);
    for (Py_ssize_t i = 0; result && i < many; i++) {
        p.shift = i * step;
        PyObject *view = numbered_view(op, args, a, &p, kind(a), i);
        if (view)
            PyTuple_SET_ITEM(result, i, view);
        else
            Py_CLEAR(result);
    }
    return result;
}

/* A bound as Python clamps it; `missing` where it is None, -1 where it is no plain number. */
static Py_ssize_t bound_of(PyObject *value, Py_ssize_t size, Py_ssize_t missing) {
    if (value == Py_None) return missing;
    if (!PyLong_CheckExact(value)) return -1;
    int overflow;
    long long v = PyLong_AsLongLongAndOverflow(value, &overflow);
    if (overflow) return overflow > 0 ? size : 0;
    v = v < 0 ? v + size : v;
    return v < 0 ? 0 : v > size ? size : (Py_ssize_t)v;
}

static PyObject *py_slice(PyObject *op, PyObject *args) {
    Place p;
    Py_ssize_t step;
    Array *a = source_of(argument(args, 0), &p);
    NONE_UNLESS(a && a->nd);
    int d = dim_of(argument(args, 1), a);
    NONE_UNLESS(d >= 0 && integer_of(argument(args, 4), &step) && step > 0);
    Py_ssize_t start = bound_of(argument(args, 2), p.shape[d], 0), end = bound_of(argument(args, 3), p.shape[d], p.shape[d]);
    NONE_UNLESS(start >= 0 && end > start);
    p.shape[d] = (end - start + step - 1) / step;
    p.shift = start * p.strides[d];
    p.strides[d] *= step;
    return view_at(op, args, a, &p, kind(a));
}

static PyObject *py_diagonal(PyObject *op, PyObject *args) {
    Place p;
    Py_ssize_t away;
    Array *a = source_of(argument(args, 0), &p);
    NONE_UNLESS(a && a->nd > 1 && integer_of(argument(args, 1), &away));
    int down = dim_of(argument(args, 2), a), across = dim_of(argument(args, 3), a);
    NONE_UNLESS(down >= 0 && across >= 0 && down != across);
    Py_ssize_t rows = p.shape[down] + (away < 0 ? away : 0), columns = p.shape[across] - (away > 0 ? away : 0);
    Py_ssize_t step = p.strides[down] + p.strides[across];
    NONE_UNLESS(rows > 0 && columns > 0);
    p.shift = away > 0 ? away * p.strides[across] : -away * p.strides[down];
    remove_dim(&p, down > across ? down : across);
    remove_dim(&p, down > across ? across : down);
    p.shape[p.nd] = rows < columns ? rows : columns;
    p.strides[p.nd++] = step;
    return view_at(op, args, a, &p, kind(a));
}

static PyObject *py_unfold(PyObject *op, PyObject *args) {
    Place p;
    Py_ssize_t size, step;
    Array *a = source_of(argument(args, 0), &p);
    NONE_UNLESS(a && a->nd && integer_of(argument(args, 2), &size) && integer_of(argument(args, 3), &step));
    int d = dim_of(argument(args, 1), a);
    NONE_UNLESS(d >= 0 && size > 0 && step > 0 && size <= p.shape[d]);
    p.shape[p.nd] = size;
    p.strides[p.nd++] = p.strides[d];
    p.shape[d] = (p.shape[d] - size) / step + 1;
    p.strides[d] *= step;
    return view_at(op, args, a, &p, kind(a));
}

static PyObject *py_expand(PyObject *op, PyObject *args) {
    Place p, q = {0};
    Array *a = source_of(argument(args, 0), &p);
    int n = a ? integers_of(argument(args, 1), q.shape, MOST) : -1, lead = n - p.nd;
    NONE_UNLESS(n >= 0 && lead >= 0 && argument(args, 2) == Py_False);
    for (int i = 0; i < n; i++) {
        Py_ssize_t size = i < lead ? 1 : p.shape[i - lead];
        if (i >= lead && q.shape[i] == -1) q.shape[i] = size;
        NONE_UNLESS(q.shape[i] > 0 && (size == 1 || size == q.shape[i]) && !(i < lead && q.shape[i] == 1)); /* a stride of its own */
        q.strides[i] = i < lead || size != q.shape[i] ? 0 : p.strides[i - lead];
    }
    q.nd = n;
    return view_at(op, args, a, &q, kind(a));
}

/* Within the elements of a row-major source alone: what else its storage has is not known here. */
static PyObject *py_as_strided(PyObject *op, PyObject *args) {
    Place p, q;
    Py_ssize_t start, own, last;
    Array *a = source_of(argument(args, 0), &p);
    NONE_UNLESS(a && is_row_major(a) && (q.nd = integers_of(argument(args, 1), q.shape, MOST)) >= 0 && integers_of(argument(args, 2), q.strides, MOST) == q.nd);
    PyObject *offset = PyObject_GetAttr(argument(args, 0), offset_name);
    own = offset ? PyLong_AsSsize_t(offset) : -1;
    Py_XDECREF(offset);
    if (own == -1 && PyErr_Occurred()) return NULL;
    start = own;
    NONE_UNLESS(argument(args, 3) == Py_None || integer_of(argument(args, 3), &start));
    last = start;
    for (int d = 0; d < q.nd; d++) {
        NONE_UNLESS(q.shape[d] > 0 && q.strides[d] >= 0 && (q.shape[d] == 1 || q.strides[d] <= (1 << 30) / q.shape[d]));
        last += (q.shape[d] - 1) * q.strides[d];
        q.strides[d] *= size_of(a);
    }
    NONE_UNLESS(start >= own && last < own + count_of(a));
    q.shift = (start - own) * size_of(a);
    return view_at(op, args, a, &q, kind(a));
}

static PyObject *py_view_as_real(PyObject *op, PyObject *args) {
    Place p;
    Array *a = source_of(argument(args, 0), &p);
    NONE_UNLESS(a && kind(a) >= KINDS);
    int k = kind(a) == C64 ? F32 : F64;
    p.shape[p.nd] = 2;
    p.strides[p.nd++] = item_sizes[k];
    return view_at(op, args, a, &p, k);
}

static PyObject *py_view_as_complex(PyObject *op, PyObject *args) {
    Place p;
    Array *a = source_of(argument(args, 0), &p);
    NONE_UNLESS(a && kind(a) <= F64 && a->nd && p.shape[a->nd - 1] == 2 && p.strides[a->nd - 1] == size_of(a));
    int k = kind(a) == F32 ? C64 : C128;
    PyObject *offset = PyObject_GetAttr(argument(args, 0), offset_name);
    Py_ssize_t own = offset ? PyLong_AsSsize_t(offset) : 1;
    Py_XDECREF(offset);
    PyErr_Clear();
    NONE_UNLESS(own >= 0 && own % 2 == 0);
    p.nd--;
    for (int d = 0; d < p.nd; d++) NONE_UNLESS(p.strides[d] % item_sizes[k] == 0);
    return view_at(op, args, a, &p, k);
}

/* ---- parts of a tensor by Python's own index, and by places along a dimension: views one after the other, as the rules make them */
static int is_bound(PyObject *value) { return value == Py_None || PyLong_CheckExact(value); }

/* How many dimensions an index names; -1 where there is more in it than ints, slices and one Ellipsis. */
static int dims_named(PyObject *index) {
    int named = 0, open = 0;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(index); i++) {
        PyObject *item = PyTuple_GET_ITEM(index, i);
        if (PySlice_Check(item)) {
            PySliceObject *s = (PySliceObject *)item;
            if (!is_bound(s->start) || !is_bound(s->stop) || !is_bound(s->step)) return -1;
        } else if (item == Py_Ellipsis ? open++ : !PyLong_CheckExact(item))
            return -1;
        named += item != Py_Ellipsis;
    }
    return named;
}

static PyObject *select_at(PyObject *op, PyObject *tensor, int dim, PyObject *index) {
    PyObject *args = Py_BuildValue("OiO", tensor, dim, index), *view = args ? py_select(op, args) : NULL;
    Py_XDECREF(args);
    return view;
}

static PyObject *slice_at(PyObject *op, PyObject *tensor, int dim, Py_ssize_t start, Py_ssize_t stop, Py_ssize_t step) {
    PyObject *args = Py_BuildValue("Oinnn", tensor, dim, start, stop, step), *view = args ? py_slice(op, args) : NULL;
    Py_XDECREF(args);
    return view;
}

/* The view of one slice, or the tensor itself where that takes a whole dimension beside other parts of an index. */
static PyObject *part_at(PyObject *op, PyObject *tensor, int dim, PyObject *slice, int alone) {
    Py_ssize_t start, stop, step;
    Array *a = strided_of(tensor);
    NONE_UNLESS(a && dim < a->nd);
    if (PySlice_Unpack(slice, &start, &stop, &step) < 0) {
        PyErr_Clear();
        Py_RETURN_NONE;
    }
    PySlice_AdjustIndices(a->shape[dim], &start, &stop, step);
    NONE_UNLESS(step > 0);
    if (!alone && start == 0 && stop == a->shape[dim] && step == 1) return Py_NewRef(tensor);
    return slice_at(op, tensor, dim, start, stop, step);
}

/* basic(tensor, index): (select, slice) are the operators that the views are made by */
static PyObject *py_basic(PyObject *ops, PyObject *const *given, Py_ssize_t count) {
    NONE_UNLESS(count == 2 && PyTuple_CheckExact(given[1]));
    PyObject *index = given[1];
    Array *a = strided_of(given[0]);
    const int named = dims_named(index);
    NONE_UNLESS(a && named >= 0 && named <= a->nd);
    const int left = a->nd - named, alone = PyTuple_GET_SIZE(index) == 1;
    PyObject *out = Py_NewRef(given[0]);
    for (Py_ssize_t i = 0, dim = 0; out && out != Py_None && i < PyTuple_GET_SIZE(index); i++) {
        PyObject *item = PyTuple_GET_ITEM(index, i), *next;
        if (item == Py_Ellipsis) {
            dim += left;
            continue;
        }
        if (PySlice_Check(item))
            next = part_at(PyTuple_GET_ITEM(ops, 1), out, (int)dim++, item, alone);
        else
            next = select_at(PyTuple_GET_ITEM(ops, 0), out, (int)dim, item);
        Py_SETREF(out, next);
    }
    if (out != given[0]) return out;
    Py_DECREF(out);
    Py_RETURN_NONE;
}

/* pieces(tensor, dim, places): the slices between one place and the next, of which all must have elements */
static PyObject *py_pieces(PyObject *ops, PyObject *const *given, Py_ssize_t count) {
    Array *a = count == 3 ? strided_of(given[0]) : NULL;
    const int dim = a && a->nd ? dim_of(given[1], a) : -1;
    NONE_UNLESS(dim >= 0 && PyList_CheckExact(given[2]) && PyList_GET_SIZE(given[2]) > 1);
    const Py_ssize_t many = PyList_GET_SIZE(given[2]) - 1;
    PyObject *result = PyTuple_New(many);
    Py_ssize_t from, until;
    for (Py_ssize_t i = 0; result && i < many; i++) {
        PyObject *view = NULL;
        if (integer_of(PyList_GET_ITEM(given[2], i), &from) && integer_of(PyList_GET_ITEM(given[2], i + 1), &until))
            view = slice_at(PyTuple_GET_ITEM(ops, 1), given[0], dim, from, until, 1);
        if (view && view != Py_None) {
            PyTuple_SET_ITEM(result, i, view);
            continue;
        }
        Py_XDECREF(view);
        Py_CLEAR(result);
        if (!PyErr_Occurred()) Py_RETURN_NONE;
    }
    return result;
}

static PyMethodDef parts[] = {
    {"basic", (PyCFunction)(void (*)(void))py_basic, METH_FASTCALL, NULL},
    {"pieces", (PyCFunction)(void (*)(void))py_pieces, METH_FASTCALL, NULL},
};

/* bind_parts(select, slice): (basic, pieces) */
static PyObject *bind_parts(PyObject *self, PyObject *args) {
    if (PyTuple_GET_SIZE(args) != 2) return PyErr_Format(PyExc_TypeError, "bind_parts(select, slice)");
    return Py_BuildValue("(NN)", PyCFunction_New(&parts[0], args), PyCFunction_New(&parts[1], args));
}

/* ---- by operator */
static PyMethodDef views[] = {
    {"alias.default", py_alias, METH_O, NULL},
    {"select.int", py_select, METH_O, NULL},
    {"unbind.int", py_unbind, METH_O, NULL},
    {"slice.Tensor", py_slice, METH_O, NULL},
    {"diagonal.default", py_diagonal, METH_O, NULL},
    {"unfold.default", py_unfold, METH_O, NULL},
    {"expand.default", py_expand, METH_O, NULL},
    {"as_strided.default", py_as_strided, METH_O, NULL},
    {"view_as_real.default", py_view_as_real, METH_O, NULL},
    {"view_as_complex.default", py_view_as_complex, METH_O, NULL},
    {NULL, NULL, 0, NULL},
};

/* bind(key, op): the function of an operator, or None */
static PyObject *bind(PyObject *self, PyObject *args) {
    const char *key;
    PyObject *op;
    if (!PyArg_ParseTuple(args, "sO", &key, &op)) return NULL;
    for (PyMethodDef *v = views; v->ml_name; v++)
        if (!strcmp(v->ml_name, key)) return PyCFunction_New(v, op);
    Py_RETURN_NONE;
}

static PyMethodDef methods[] = {
    {"use_arrays", use_arrays, METH_VARARGS, "use_arrays(ndarray, [(number, dtype), ...], make_tensor)"},
    {"use_views", use_views, METH_VARARGS, "use_views(make_view, ambient)"},
    {"bind", bind, METH_VARARGS, "bind(key, op) -> function or None"},
    {"bind_parts", bind_parts, METH_VARARGS, "bind_parts(select, slice) -> (basic, pieces)"},
    {NULL, NULL, 0, NULL},
};

MODULE(_views)
