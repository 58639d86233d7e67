/* Orders of memory in C: the strides that a result asks for, as core.geometry.elementwise_strides and family.formats say them.
 *
 * In: arrays of any dtype of the array library, each with its size of an item. Out: strides in elements, or 0 where the arithmetic in Python
 * decides (sizes of zero, more dimensions than MOST_LAID). Read after native_moves.h.
 */

enum { MOST_LAID = 16, MOST_OPERANDS = 16 };

/* An operand as it broadcasts to a result: strides in elements, those of dimensions that are repeated are 0. */
typedef struct {
    int full; /* of the result's shape */
    Py_ssize_t strides[MOST_LAID];
} Operand;

static inline int is_rows(int nd, const Py_ssize_t *shape, const Py_ssize_t *strides) {
    Py_ssize_t step = 1;
    for (int d = nd - 1; d >= 0; d--) {
        if (shape[d] == 1) continue;
        if (strides[d] != step) return 0;
        step *= shape[d];
    }
    return 1;
}

/* Whether elements fill a block of memory, in some order of dimensions, each once. */
static inline int fills_block(int nd, const Py_ssize_t *shape, const Py_ssize_t *strides) {
    Py_ssize_t step = 1;
    int left = 0, seen[MOST_LAID] = {0};
    for (int d = 0; d < nd; d++) left += !(seen[d] = shape[d] == 1);
    while (left) {
        int at = 0;
        while (at < nd && (seen[at] || strides[at] != step)) at++;
        if (at == nd) return 0;
        seen[at] = 1, left--, step *= shape[at];
    }
    return 1;
}

/* Strides without gaps, the dimensions in an order, outermost first. */
static inline void strides_in_order(int nd, const Py_ssize_t *shape, const int *order, Py_ssize_t *into) {
    Py_ssize_t step = 1;
    for (int i = nd - 1; i >= 0; i--) into[order[i]] = step, step *= shape[order[i]];
}

/* 1 where the inner dimension belongs outside of the outer one, -1 where not, 0 where no operand says. */
static inline int belongs_outside(int inner, int outer, const Py_ssize_t *shape, const Operand *operands, int n) {
    for (int i = 0; i < n; i++) {
        Py_ssize_t a = operands[i].strides[inner], b = operands[i].strides[outer];
        if (!a || !b) continue;
        if (a != b) return a < b ? -1 : 1;
        if (shape[inner] > shape[outer]) return 1;
    }
    return 0;
}

/* Dimensions sorted by stride as PyTorch sorts them; pairs of which nothing is known stay. */
static inline void order_by_strides(int nd, const Py_ssize_t *shape, const Operand *operands, int n, int *order) {
    int inside[MOST_LAID]; /* innermost first */
    for (int d = 0; d < nd; d++) inside[d] = nd - 1 - d;
    for (int i = 1; i < nd; i++)
        for (int at = i, j = i - 1; j >= 0; j--) {
            int verdict = belongs_outside(inside[j], inside[at], shape, operands, n);
            if (verdict < 0) break;
            if (!verdict) continue;
            int moved = inside[j];
            inside[j] = inside[at], inside[at] = moved, at = j;
        }
    for (int d = 0; d < nd; d++) order[d] = inside[nd - 1 - d];
}

/* The strides of an element-wise result. */
static inline void strides_of_result(int nd, const Py_ssize_t *shape, const Operand *operands, int n, Py_ssize_t *into) {
    static const int channels_last[4] = {0, 2, 3, 1};
    int order[MOST_LAID], full = 1, rows = 1, alike = 1, last = nd == 4;
    for (int d = 0; d < nd; d++) order[d] = d;
    for (int i = 0; i < n; i++) {
        full &= operands[i].full;
        rows = rows && is_rows(nd, shape, operands[i].strides);
        alike = alike && !memcmp(operands[i].strides, operands[0].strides, sizeof(*into) * (size_t)nd);
    }
    strides_in_order(nd, shape, order, into);
    if (!n || (full && rows)) return;
    if (full && last) {
        strides_in_order(nd, shape, channels_last, into);
        for (int i = 0; i < n; i++)
            for (int d = 0; d < nd; d++) last = last && (shape[d] == 1 || operands[i].strides[d] == into[d]);
        if (last) return;
    }
    if (full && alike && fills_block(nd, shape, operands[0].strides)) {
        memcpy(into, operands[0].strides, sizeof(*into) * (size_t)nd);
        return;
    }
    order_by_strides(nd, shape, operands, n, order);
    strides_in_order(nd, shape, order, into);
}

/* An array as an operand of a result; 0 where its shape does not broadcast to the result's. */
static inline int operand_of(const Array *a, int item, int nd, const Py_ssize_t *shape, Operand *into) {
    const int lead = nd - a->nd;
    if (lead < 0 || nd > MOST_LAID) return 0;
    into->full = lead == 0;
    for (int d = 0; d < lead; d++) into->strides[d] = 0;
    for (int d = 0; d < a->nd; d++) {
        const Py_ssize_t own = a->shape[d], wanted = shape[d + lead];
        if (own != wanted && own != 1) return 0;
        into->full &= own == wanted;
        into->strides[d + lead] = own == 1 && wanted != 1 ? 0 : a->strides[d] / item;
    }
    return 1;
}

/* An array of a shape and strides in elements, whose elements fill a block. */
static inline Array *array_in_order(int nd, const Py_ssize_t *shape, const Py_ssize_t *strides, int number, int item) {
    Py_ssize_t bytes[MOST_LAID];
    for (int d = 0; d < nd; d++) bytes[d] = strides[d] * item;
    return (Array *)array_new(array_type, nd, shape, number, bytes, NULL, 0, 0, NULL);
}

/* The strides of a new array like another one: the same order of dimensions, without gaps. */
static inline void strides_like(const Array *a, int item, Py_ssize_t *into) {
    Operand own;
    operand_of(a, item, a->nd, a->shape, &own);
    if (fills_block(a->nd, a->shape, own.strides))
        memcpy(into, own.strides, sizeof(*into) * (size_t)a->nd);
    else
        strides_of_result(a->nd, a->shape, &own, 1, into);
}

/* A new array like another one of MOST_LAID dimensions at most. */
static inline Array *array_like(const Array *a) {
    Py_ssize_t strides[MOST_LAID];
    strides_like(a, size_of(a), strides);
    return array_in_order(a->nd, a->shape, strides, a->dtype->number, size_of(a));
}

/* Whether images (N, C, spatial...) lie channels-last without gaps, and cannot be said to lie otherwise. */
static inline int lies_as_pixels(const Array *a) {
    Py_ssize_t step = kind(a) < 0 ? 0 : item_sizes[kind(a)];
    if ((a->nd != 4 && a->nd != 5) || is_row_major(a) || a->shape[1] < 2 || a->strides[1] != step) return 0;
    step *= a->shape[1];
    for (int d = a->nd - 1; d > 1; step *= a->shape[d--])
        if (a->shape[d] < 2 || a->strides[d] != step) return 0;
    return a->strides[0] == step;
}

/* New images that lie channels-last. */
static inline Array *new_pixels(int nd, const Py_ssize_t *shape, int k) {
    Py_ssize_t strides[MOST_LAID], step = shape[1];
    strides[1] = 1;
    for (int d = nd - 1; d > 1; step *= shape[d--]) strides[d] = step;
    strides[0] = step;
    return array_in_order(nd, shape, strides, number_of[k], item_sizes[k]);
}

static inline Array *pixel_copy(const Array *a) {
    Array *r = new_pixels(a->nd, a->shape, kind(a));
    if (r) copy_block(r->data, r->strides, a->data, a->strides, a->shape, a->nd, size_of(a));
    return r;
}
