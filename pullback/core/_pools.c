/* Pooling in C, for calls so small that what surrounds a loop counts: averages and largest elements, of regular and adaptive windows, and
 * gradients of regular ones.
 *
 * In: the canonical arguments of an operator, as a tuple. Out: its result as a tensor (a tuple of values and places), nothing recorded; or
 * None where the call is not of that kind (another dtype than float32 and float64, memory that is not row-major or channels-last, many elements, arguments
 * that are refused): the caller then runs the operator's rules, which know the rest.
 */
#include "native_fronts.h"
#include "native_layouts.h"

enum { MOST_WINDOWS = 512, MOST_FEW = 1 << 12, MOST_POOLED = 1 << 17, MOST_IN_ROWS = 1 << 21, TOGETHER = 64 };
typedef struct {
    i64 from, to, counted;
} Window;
typedef struct {
    i64 size, out, step;
    Window at[MOST_WINDOWS];
} Axis;
typedef struct { /* windows along rows */
    i64 rows, size, out, kernel, stride, padding, dilation;
} Rows;

#define T float
#define NAME(f) f##_f32
#include "native_pools.h"
#define T double
#define NAME(f) f##_f64
#include "native_pools.h"

/* ---- windows */
/* Those of a regular pool along one dimension; 0 where the operator refuses, or there are too many. */
static int regular(Axis *axis, i64 size, i64 kernel, i64 stride, i64 padding, i64 dilation, int ceil) {
    if (kernel < 1 || stride < 1 || dilation < 1 || padding < 0 || padding > kernel / 2) return 0;
    i64 reach = dilation * (kernel - 1) + 1, left = size + 2 * padding - reach;
    if (left < 0) return 0;
    i64 out = (left + (ceil ? stride - 1 : 0)) / stride + 1;
    if (ceil && (out - 1) * stride >= size + padding) out--; /* the last window would begin in the padding */
    if (out < 1 || out > MOST_WINDOWS) return 0;
    *axis = (Axis){size, out, dilation, {{0}}};
    for (i64 i = 0; i < out; i++) {
        i64 from = i * stride - padding, to = from + reach, end = to < size + padding ? to : size + padding;
        Window *w = &axis->at[i];
        w->counted = end - from;
        w->to = to < size ? to : size;
        w->from = from < 0 ? from + (-from + dilation - 1) / dilation * dilation : from;
        if (w->from >= w->to) return 0; /* padding alone */
    }
    return 1;
}

static int adaptive(Axis *axis, i64 size, i64 out) {
    if (out < 1 || out > MOST_WINDOWS) return 0;
    *axis = (Axis){size, out, 1, {{0}}};
    for (i64 i = 0; i < out; i++) {
        Window *w = &axis->at[i];
        w->from = i * size / out;
        w->to = ((i + 1) * size + out - 1) / out;
        w->counted = w->to - w->from;
    }
    return 1;
}

/* (planes, spatial...) of float32 or float64, row-major and in no order of channels too. */
static Array *planes_of(PyObject *tensor, int spatial) {
    Array *a = array_of(tensor);
    if (!a || kind(a) > F64 || count_of(a) == 0 || count_of(a) > MOST_POOLED || (a->nd != spatial + 1 && a->nd != spatial + 2)) return NULL;
    return (a->nd == 4 || a->nd == 5) && (a->shape[1] == 1 || a->shape[a->nd - 1] == 1) ? NULL : a;
}

/* `spatial` integers of a list, the last ones of three; one alone stands for all. Missing ones are `other`. */
static int three(PyObject *value, int spatial, i64 other, i64 *into) {
    Py_ssize_t given[3];
    int n = integers_of(value, given, spatial);
    if (n != spatial && n != 1) return 0;
    for (int i = 0; i < 3; i++) into[i] = i < 3 - spatial ? other : given[n == 1 ? 0 : i - (3 - spatial)];
    return 1;
}

static int plane_sizes(const Array *a, int spatial, i64 *size) {
    for (int i = 0; i < 3; i++) size[i] = i < 3 - spatial ? 1 : a->shape[a->nd - 3 + i];
    return 1;
}

static Array *pooled(const Array *a, int spatial, const Axis *axes, int k) {
    Py_ssize_t shape[MOST_DIMS];
    memcpy(shape, a->shape, sizeof(*shape) * (size_t)a->nd);
    for (int i = 3 - spatial; i < 3; i++) shape[a->nd - 3 + i] = (Py_ssize_t)axes[i].out;
    return new_array(a->nd, shape, k);
}

static i64 planes_in(const Array *a, const Axis *axes) { return count_of(a) / (axes[0].size * axes[1].size * axes[2].size); }

static PyObject *averaged(const Array *a, int spatial, const Axis *axes, i64 divisor) {
    Array *r = pooled(a, spatial, axes, kind(a));
    if (!r) return NULL;
    if (kind(a) == F32)
        average_windows_f32((const float *)a->data, (float *)r->data, planes_in(a, axes), axes, axes + 1, axes + 2, divisor);
    else
        average_windows_f64((const double *)a->data, (double *)r->data, planes_in(a, axes), axes, axes + 1, axes + 2, divisor);
    return tensor_of(r);
}

static PyObject *largest(const Array *a, int spatial, const Axis *axes, int with_places) {
    Array *r = pooled(a, spatial, axes, kind(a)), *places = r ? pooled(a, spatial, axes, I64) : NULL;
    if (!places) {
        Py_XDECREF(r);
        return NULL;
    }
    if (kind(a) == F32)
        largest_in_windows_f32((const float *)a->data, (float *)r->data, (i64 *)places->data, planes_in(a, axes), axes, axes + 1, axes + 2);
    else
        largest_in_windows_f64((const double *)a->data, (double *)r->data, (i64 *)places->data, planes_in(a, axes), axes, axes + 1, axes + 2);
    PyObject *values = tensor_of(r);
    if (!with_places || !values) {
        Py_DECREF(places);
        return values;
    }
    PyObject *indices = tensor_of(places), *result = indices ? PyTuple_Pack(2, values, indices) : NULL;
    Py_DECREF(values);
    Py_XDECREF(indices);
    return result;
}

/* ---- regular: self, kernel_size, stride, padding, ...; `first` of the arguments is self */
static int regular_axes(PyObject *args, int first, const Array *a, int spatial, PyObject *dilation, PyObject *ceil, Axis *axes) {
    i64 size[3], kernel[3], stride[3], padding[3], gap[3] = {1, 1, 1};
    PyObject *given = argument(args, first + 2), *steps = PyTuple_Check(given) && !PyTuple_GET_SIZE(given) ? argument(args, first + 1) : given;
    if (!plane_sizes(a, spatial, size) || !three(argument(args, first + 1), spatial, 1, kernel) || !three(steps, spatial, 1, stride)) return 0;
    if (!three(argument(args, first + 3), spatial, 0, padding) || (dilation && !three(dilation, spatial, 1, gap))) return 0;
    for (int i = 0; i < 3; i++)
        if (!regular(&axes[i], size[i], kernel[i], stride[i], padding[i], gap[i], ceil == Py_True && i >= 3 - spatial)) return 0;
    return spatial < 3 || dilation || (size[0] >= kernel[0] && size[1] >= kernel[1] && size[2] >= kernel[2]);
}

/* ..., ceil_mode, count_include_pad, divisor_override: what windows are divided by (0: by what they count), -1 where that is refused */
static Py_ssize_t average_axes(PyObject *args, int first, const Array *a, int spatial, Axis *axes) {
    Py_ssize_t divisor = 0;
    PyObject *other = PyTuple_GET_SIZE(args) > first + 6 ? argument(args, first + 6) : Py_None;
    if (!regular_axes(args, first, a, spatial, NULL, argument(args, first + 4), axes)) return -1;
    if (other != Py_None && !(integer_of(other, &divisor) && divisor > 0)) return -1;
    if (argument(args, first + 5) != Py_True)
        for (int i = 0; i < 3; i++)
            for (i64 k = 0; k < axes[i].out; k++) axes[i].at[k].counted = axes[i].at[k].to - axes[i].at[k].from;
    return divisor;
}

/* ---- images that lie channels-last: so do results */
typedef struct {
    const Array *a;
    const Axis *axes;
    Array *r, *places; /* of the largest; NULL where they are not wanted */
    i64 divisor;
    int averages;
} Pixels;

static Array *pixels_of(PyObject *tensor, int spatial) {
    Array *a = spatial > 1 ? strided_of(tensor) : NULL;
    return a && kind(a) <= F64 && a->nd == spatial + 2 && has_elements(a) && lies_as_pixels(a) ? a : NULL;
}

static void pixel_rows(long first, long last, void *const *arguments) {
    const Pixels *j = arguments[0];
    const Axis *z = j->axes, *h = z + 1, *w = z + 2;
    const i64 channels = j->a->shape[1];
    i64 *places = j->places ? (i64 *)j->places->data : NULL;
    if (j->averages && kind(j->a) == F32)
        average_pixels_f32((const float *)j->a->data, (float *)j->r->data, first, last, channels, z, h, w, j->divisor);
    else if (j->averages)
        average_pixels_f64((const double *)j->a->data, (double *)j->r->data, first, last, channels, z, h, w, j->divisor);
    else if (kind(j->a) == F32)
        largest_pixels_f32((const float *)j->a->data, (float *)j->r->data, places, first, last, channels, z, h, w);
    else
        largest_pixels_f64((const double *)j->a->data, (double *)j->r->data, places, first, last, channels, z, h, w);
}

static PyObject *pooled_pixels(Array *a, int spatial, const Axis *axes, int averages, i64 divisor, int with_places) {
    Py_ssize_t shape[MOST_DIMS];
    memcpy(shape, a->shape, sizeof(*shape) * (size_t)a->nd);
    for (int i = 3 - spatial; i < 3; i++) shape[a->nd - 3 + i] = (Py_ssize_t)axes[i].out;
    Pixels job = {a, axes, new_pixels(a->nd, shape, kind(a)), NULL, divisor, averages};
    if (job.r && with_places && !(job.places = new_pixels(a->nd, shape, I64))) Py_CLEAR(job.r);
    if (!job.r) return NULL;
    void *const arguments[] = {&job};
    over_parts(pixel_rows, a->shape[0] * axes[0].out * axes[1].out, count_of(a), arguments, a, job.r, job.places);
    PyObject *values = tensor_of(job.r), *places = values && with_places ? tensor_of(job.places) : NULL;
    if (!with_places) return values;
    if (!values) Py_DECREF(job.places);
    PyObject *both = places ? PyTuple_Pack(2, values, places) : NULL;
    Py_XDECREF(values);
    Py_XDECREF(places);
    return both;
}

static PyObject *average(PyObject *args, int spatial) {
    Array *a = planes_of(argument(args, 0), spatial), *pixels = a || spatial > 2 ? NULL : pixels_of(argument(args, 0), spatial); /* averages of volumes are row-major */
    NONE_UNLESS(a || pixels);
    Axis axes[3];
    Py_ssize_t divisor = average_axes(args, 0, a ? a : pixels, spatial, axes);
    NONE_UNLESS(divisor >= 0);
    return pixels ? pooled_pixels(pixels, spatial, axes, 1, divisor, 0) : averaged(a, spatial, axes, divisor);
}

static PyObject *maximum(PyObject *args, int spatial, int with_places) { /* ..., dilation, ceil_mode */
    Array *a = planes_of(argument(args, 0), spatial), *pixels = a ? NULL : pixels_of(argument(args, 0), spatial);
    NONE_UNLESS(a || pixels);
    Axis axes[3];
    NONE_UNLESS(regular_axes(args, 0, a ? a : pixels, spatial, argument(args, 4), argument(args, 5), axes));
    return pixels ? pooled_pixels(pixels, spatial, axes, 0, 0, with_places) : largest(a, spatial, axes, with_places);
}

/* ---- gradients of regular ones: grad_output, self, kernel_size, ... */
/* Whether an array, of gradients or of places, has an element for each window. */
static int is_pooled(const Array *a, const Array *of, int spatial, const Axis *axes) {
    if (!a || a->nd != of->nd) return 0;
    for (int d = 0; d < a->nd; d++) {
        int axis = d - (a->nd - 3);
        if (a->shape[d] != (d >= a->nd - spatial ? (Py_ssize_t)axes[axis].out : of->shape[d])) return 0;
    }
    return 1;
}

static Array *zeros_like(const Array *a) {
    Array *r = new_array(a->nd, a->shape, kind(a));
    if (r) memset(r->data, 0, (size_t)(count_of(a) * size_of(a)));
    return r;
}

static PyObject *average_backward(PyObject *args, int spatial) {
    Array *g = array_of(argument(args, 0)), *a = planes_of(argument(args, 1), spatial);
    NONE_UNLESS(g && a && kind(g) == kind(a));
    Axis axes[3];
    Py_ssize_t divisor = average_axes(args, 1, a, spatial, axes);
    NONE_UNLESS(divisor >= 0 && is_pooled(g, a, spatial, axes));
    Array *r = zeros_like(a);
    if (!r) return NULL;
    if (kind(a) == F32)
        spread_over_windows_f32((const float *)g->data, (float *)r->data, planes_in(a, axes), axes, axes + 1, axes + 2, divisor);
    else
        spread_over_windows_f64((const double *)g->data, (double *)r->data, planes_in(a, axes), axes, axes + 1, axes + 2, divisor);
    return tensor_of(r);
}

/* ..., dilation, ceil_mode, indices. Where no windows share an element, it is the gradient itself that goes there (-0.0 is one). */
static PyObject *maximum_backward(PyObject *args, int spatial) {
    Array *g = array_of(argument(args, 0)), *a = planes_of(argument(args, 1), spatial), *places = array_of(argument(args, 7));
    NONE_UNLESS(g && a && places && kind(g) == kind(a) && kind(places) == I64);
    Axis axes[3];
    i64 kernel[3], stride[3], gap[3], plane, n = count_of(g), outside = 0;
    PyObject *given = argument(args, 3), *steps = PyTuple_Check(given) && !PyTuple_GET_SIZE(given) ? argument(args, 2) : given;
    NONE_UNLESS(regular_axes(args, 1, a, spatial, argument(args, 5), argument(args, 6), axes));
    NONE_UNLESS(is_pooled(g, a, spatial, axes) && is_pooled(places, a, spatial, axes));
    NONE_UNLESS(three(argument(args, 2), spatial, 1, kernel) && three(steps, spatial, 1, stride) && three(argument(args, 5), spatial, 1, gap));
    plane = axes[0].size * axes[1].size * axes[2].size;
    const i64 *at = (const i64 *)places->data;
    for (i64 k = 0; k < n; k++) outside |= (at[k] < 0) | (at[k] >= plane);
    NONE_UNLESS(!outside);
    int apart = 1;
    for (int i = 3 - spatial; i < 3; i++) apart &= stride[i] > (kernel[i] - 1) * gap[i];
    Array *r = zeros_like(a);
    if (!r) return NULL;
    const i64 planes = planes_in(a, axes);
    if (kind(a) == F32)
        send_to_places_f32((const float *)g->data, (float *)r->data, at, planes, n / planes, plane, apart);
    else
        send_to_places_f64((const double *)g->data, (double *)r->data, at, planes, n / planes, plane, apart);
    return tensor_of(r);
}

/* Values alone, of windows along rows: nothing is kept for each window, so there may be many. */
static PyObject *py_max_pool1d(PyObject *self, PyObject *args) {
    Array *a = array_of(argument(args, 0));
    NONE_UNLESS(a && kind(a) <= F64 && (a->nd == 2 || a->nd == 3) && count_of(a) > 0 && count_of(a) <= MOST_IN_ROWS);
    Py_ssize_t k, s, p, d, shape[3];
    PyObject *given = argument(args, 2), *steps = PyTuple_Check(given) && !PyTuple_GET_SIZE(given) ? argument(args, 1) : given;
    NONE_UNLESS(integers_of(argument(args, 1), &k, 1) == 1 && integers_of(steps, &s, 1) == 1 && integers_of(argument(args, 3), &p, 1) == 1);
    NONE_UNLESS(integers_of(argument(args, 4), &d, 1) == 1 && k > 0 && s > 0 && d > 0 && p >= 0 && p <= k / 2);
    memcpy(shape, a->shape, sizeof(*shape) * (size_t)a->nd);
    i64 size = shape[a->nd - 1], left = size + 2 * p - d * (k - 1) - 1;
    NONE_UNLESS(left >= 0);
    i64 out = (left + (argument(args, 5) == Py_True ? s - 1 : 0)) / s + 1;
    if (argument(args, 5) == Py_True && (out - 1) * s >= size + p) out--; /* the last window would begin in the padding */
    i64 last = (out - 1) * s - p;
    NONE_UNLESS(out > 0 && last < size && (d == 1 || p == 0)); /* else a window may be padding alone */
    shape[a->nd - 1] = (Py_ssize_t)out;
    Array *r = new_array(a->nd, shape, kind(a));
    if (!r) return NULL;
    Rows w = {count_of(a) / size, size, out, k, s, p, d};
    if (kind(a) == F32)
        largest_in_rows_f32((const float *)a->data, (float *)r->data, &w);
    else
        largest_in_rows_f64((const double *)a->data, (double *)r->data, &w);
    return tensor_of(r);
}

/* input, kernel_size, stride, padding, dilation, ceil_mode, return_indices: of few elements, lone numbers for both axes */
static PyObject *py_max_pool2d_front(GIVEN) {
    static const char *const names[] = {"input", "kernel_size", "stride", "padding", "dilation", "ceil_mode", "return_indices"};
    PyObject *v[7], *lists[4] = {NULL};
    NONE_UNLESS(read_call(given, count, names, 7, 7, v) && v[0] && v[1] && (!v[6] || v[6] == Py_False) && (!v[5] || PyBool_Check(v[5])));
    Array *a = bare_array(v[0]);
    NONE_UNLESS(a && kind(a) <= F64 && (is_row_major(a) ? count_of(a) <= MOST_FEW : lies_as_pixels(a)));
    int reads = 1;
    for (int i = 0; i < 4; i++) {
        PyObject *value = v[i + 1];
        if (!value || (i == 1 && value == Py_None))
            lists[i] = i == 1 ? PyTuple_New(0) : Py_BuildValue("(i)", i == 3); /* the kernel's; 0; 1 */
        else
            lists[i] = PyLong_CheckExact(value) ? PyTuple_Pack(1, value) : PyTuple_CheckExact(value) && PyTuple_GET_SIZE(value) ? Py_NewRef(value) : NULL;
        reads &= lists[i] != NULL;
    }
    PyObject *args = reads ? PyTuple_Pack(6, v[0], lists[0], lists[1], lists[2], lists[3], v[5] ? v[5] : Py_False) : NULL;
    PyObject *result = args ? maximum(args, 2, 0) : PyErr_Occurred() ? NULL : Py_NewRef(Py_None);
    Py_XDECREF(args);
    for (int i = 0; i < 4; i++) Py_XDECREF(lists[i]);
    return result;
}

/* self, indices, output_size: each value at its place in a plane of zeros */
static PyObject *py_max_unpool2d(PyObject *self, PyObject *args) {
    Array *a = planes_of(argument(args, 0), 2), *index = array_of(argument(args, 1));
    Py_ssize_t size[2], shape[4];
    NONE_UNLESS(a && index && kind(index) == I64 && index->nd == a->nd && !memcmp(index->shape, a->shape, sizeof(*a->shape) * (size_t)a->nd));
    NONE_UNLESS(integers_of(argument(args, 2), size, 2) == 2 && size[0] > 0 && size[1] > 1 && size[0] <= MOST_POOLED && size[1] <= MOST_POOLED);
    const i64 inside = a->shape[a->nd - 2] * a->shape[a->nd - 1], planes = count_of(a) / inside, plane = (i64)size[0] * size[1], n = count_of(a);
    NONE_UNLESS(plane <= MOST_POOLED && planes * plane <= 4 * MOST_POOLED);
    const i64 *at = (const i64 *)index->data;
    i64 outside = 0;
    for (i64 k = 0; k < n; k++) outside |= (at[k] < 0) | (at[k] >= plane);
    NONE_UNLESS(!outside);
    memcpy(shape, a->shape, sizeof(*shape) * (size_t)a->nd);
    shape[a->nd - 2] = size[0], shape[a->nd - 1] = size[1];
    Array *r = new_array(a->nd, shape, kind(a));
    if (!r) return NULL;
    memset(r->data, 0, (size_t)(planes * plane * size_of(a)));
    for (i64 p = 0, k = 0; p < planes; p++)
        for (i64 i = 0; i < inside; i++, k++)
            if (kind(a) == F32)
                ((float *)r->data)[p * plane + at[k]] = ((const float *)a->data)[k];
            else
                ((double *)r->data)[p * plane + at[k]] = ((const double *)a->data)[k];
    return tensor_of(r);
}

/* ---- adaptive: self, output_size */
static PyObject *adapted(PyObject *args, int spatial, int is_average) {
    Array *a = planes_of(argument(args, 0), spatial);
    NONE_UNLESS(a);
    i64 size[3], out[3];
    Axis axes[3];
    NONE_UNLESS(PyTuple_Check(argument(args, 1)) && PyTuple_GET_SIZE(argument(args, 1)) == spatial && three(argument(args, 1), spatial, 1, out));
    plane_sizes(a, spatial, size);
    for (int i = 0; i < 3; i++) NONE_UNLESS(adaptive(&axes[i], size[i], out[i]));
    return is_average ? averaged(a, spatial, axes, 0) : largest(a, spatial, axes, 1);
}

#define POOL(name, call) \
    static PyObject *name(PyObject *self, PyObject *args) { return call; }
POOL(py_avg_pool1d, average(args, 1))
POOL(py_avg_pool2d, average(args, 2))
POOL(py_avg_pool3d, average(args, 3))
POOL(py_max_pool2d, maximum(args, 2, 0))
POOL(py_max_pool3d, maximum(args, 3, 0))
POOL(py_max_pool1d_places, maximum(args, 1, 1))
POOL(py_max_pool2d_places, maximum(args, 2, 1))
POOL(py_max_pool3d_places, maximum(args, 3, 1))
POOL(py_avg_pool2d_backward, average_backward(args, 2))
POOL(py_avg_pool3d_backward, average_backward(args, 3))
POOL(py_max_pool2d_backward, maximum_backward(args, 2))
POOL(py_max_pool3d_backward, maximum_backward(args, 3))
POOL(py_adaptive_avg1d, adapted(args, 1, 1))
POOL(py_adaptive_avg2d, adapted(args, 2, 1))
POOL(py_adaptive_avg3d, adapted(args, 3, 1))
POOL(py_adaptive_max1d, adapted(args, 1, 0))
POOL(py_adaptive_max2d, adapted(args, 2, 0))
POOL(py_adaptive_max3d, adapted(args, 3, 0))

/* By the operator that each computes. */
static PyMethodDef methods[] = {
    {"use_arrays", use_arrays, METH_VARARGS, "use_arrays(ndarray, [(number, dtype), ...], make_tensor)"},
    {"use_process", use_process, METH_VARARGS, "use_process(process, cpu, Tensor, ambient, untracked)"},
    {"avg_pool1d.default", py_avg_pool1d, METH_O, NULL},
    {"avg_pool2d.default", py_avg_pool2d, METH_O, NULL},
    {"avg_pool3d.default", py_avg_pool3d, METH_O, NULL},
    {"max_pool1d.default", py_max_pool1d, METH_O, NULL},
    {"max_pool2d.default", py_max_pool2d, METH_O, NULL},
    {"nn.functional.max_pool2d", FRONT(py_max_pool2d_front), NULL},
    {"max_unpool2d.default", py_max_unpool2d, METH_O, NULL},
    {"max_pool3d.default", py_max_pool3d, METH_O, NULL},
    {"max_pool1d_with_indices.default", py_max_pool1d_places, METH_O, NULL},
    {"max_pool2d_with_indices.default", py_max_pool2d_places, METH_O, NULL},
    {"max_pool3d_with_indices.default", py_max_pool3d_places, METH_O, NULL},
    {"avg_pool2d_backward.default", py_avg_pool2d_backward, METH_O, NULL},
    {"avg_pool3d_backward.default", py_avg_pool3d_backward, METH_O, NULL},
    {"max_pool2d_with_indices_backward.default", py_max_pool2d_backward, METH_O, NULL},
    {"max_pool3d_with_indices_backward.default", py_max_pool3d_backward, METH_O, NULL},
    {"adaptive_avg_pool1d.default", py_adaptive_avg1d, METH_O, NULL},
    {"_adaptive_avg_pool2d.default", py_adaptive_avg2d, METH_O, NULL},
    {"_adaptive_avg_pool3d.default", py_adaptive_avg3d, METH_O, NULL},
    {"adaptive_max_pool1d.default", py_adaptive_max1d, METH_O, NULL},
    {"adaptive_max_pool2d.default", py_adaptive_max2d, METH_O, NULL},
    {"adaptive_max_pool3d.default", py_adaptive_max3d, METH_O, NULL},
    {NULL, NULL, 0, NULL},
};

MODULE(_pools)
