/* Channels shuffled by groups, and to the places inside windows of pictures and back: read by _shapes.c behind its `rows_of`. */
/* (batch, channels, ...) by groups: what stands in group g at place p goes to place p, group g. */
static PyObject *py_channel_shuffle(PyObject *self, PyObject *args) {
    Array *a = rows_of(argument(args, 0));
    Py_ssize_t groups;
    NONE_UNLESS(a && a->nd > 2 && integer_of(argument(args, 1), &groups) && groups > 0 && a->shape[1] % groups == 0);
    Array *r = new_array(a->nd, a->shape, kind(a));
    if (!r) return NULL;
    Py_ssize_t each = a->shape[1] / groups, block = a->strides[1];
    Py_ssize_t shape[4] = {a->shape[0], each, groups, block / size_of(a)};
    Py_ssize_t from[4] = {a->strides[0], block, each * block, size_of(a)}, to[4] = {a->strides[0], groups * block, block, size_of(a)};
    copy_block_of(r->data, to, a->data, from, shape, 4, size_of(a), a, r);
    return tensor_of(r);
}

/* Rows of the large picture, each of `factor` small ones whose elements alternate; `apart` bytes lie between these, `step` between channels. */
typedef struct {
    char *y;
    const char *x;
    int factor, size;
    Py_ssize_t rows, columns, apart, step;
} Alternating;

#define ALTERNATE(T, F)                                                                      \
    for (Py_ssize_t j = 0; j < m->columns; j++)                                              \
        for (int i = 0; i < F; i++) ((T *)y)[j * F + i] = ((const T *)(x + i * m->apart))[j];
#define ALTERNATED(T)                \
    if (m->factor == 2) {            \
        ALTERNATE(T, 2)              \
    } else {                         \
        ALTERNATE(T, 3)              \
    }                                \
    break;

static void alternate_rows(long first, long last, void *const *arguments) {
    const Alternating *m = arguments[0];
    const Py_ssize_t near = m->columns * m->size, tall = m->rows * m->factor;
    for (long k = first; k < last; k++) {
        Py_ssize_t channel = k / tall, row = k % tall;
        char *restrict y = m->y + k * near * m->factor;
        const char *x = m->x + channel * m->step + row % m->factor * m->factor * m->apart + row / m->factor * near;
        switch (m->size) {
            case 1: ALTERNATED(char)
            case 2: ALTERNATED(short)
            case 4: ALTERNATED(int)
            default: ALTERNATED(i64)
        }
    }
}

/* Channels to places inside windows of factor x factor (`out` = 1), and back. */
static PyObject *shuffled_pixels(PyObject *args, int out) {
    Array *a = rows_of(argument(args, 0));
    Py_ssize_t f;
    NONE_UNLESS(a && a->nd >= 3 && a->nd <= 8 && integer_of(argument(args, 1), &f) && f > 0 && f < 1 << 12);
    int nd = a->nd;
    Py_ssize_t c = a->shape[nd - 3], h = a->shape[nd - 2], w = a->shape[nd - 1], size = size_of(a), batch = count_of(a) / (c * h * w);
    NONE_UNLESS(out ? c % (f * f) == 0 : h % f == 0 && w % f == 0);
    Py_ssize_t channels = out ? c / (f * f) : c, rows = out ? h : h / f, columns = out ? w : w / f; /* those of the small picture */
    Py_ssize_t shape[MOST_DIMS];
    memcpy(shape, a->shape, sizeof(*shape) * (size_t)nd);
    shape[nd - 3] = out ? channels : c * f * f;
    shape[nd - 2] = out ? rows * f : rows;
    shape[nd - 1] = out ? columns * f : columns;
    NONE_UNLESS(nd != 4 || (c > 1 && w > 1)); /* else of more than one order of memory */
    Array *r = new_array(nd, shape, kind(a));
    if (!r) return NULL;
    Py_ssize_t area = rows * columns * size, wide = columns * f * size;
    if (out && (f == 2 || f == 3) && size <= 8) {
        Alternating m = {r->data, a->data, (int)f, (int)size, rows, columns, area, f * f * area};
        void *const arguments[] = {&m};
        over_parts(alternate_rows, batch * channels * rows * f, count_of(a), arguments, a, r, NULL);
        return tensor_of(r);
    }
    Py_ssize_t all[6] = {batch * channels, f, f, rows, columns, 0};
    Py_ssize_t many[5] = {f * f * area, f * area, area, columns * size, size}, large[5] = {f * f * area, wide, size, f * wide, f * size};
    copy_block_of(r->data, out ? large : many, a->data, out ? many : large, all, 5, (int)size, a, r);
    return tensor_of(r);
}

static PyObject *py_pixel_shuffle(PyObject *self, PyObject *args) { return shuffled_pixels(args, 1); }
static PyObject *py_pixel_unshuffle(PyObject *self, PyObject *args) { return shuffled_pixels(args, 0); }
