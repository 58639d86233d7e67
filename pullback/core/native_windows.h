/* Pooling of one dtype, for one set of instructions. A template: see _network.c. */
/* ---- pooling: planes (outer, height, width), contiguous */

#define WIDTH ((i64)(VECTOR / sizeof(T)))
/* A vector of numbers that lie `s` apart, of which `n` are wanted, and `room` numbers from the first on may be read. */
INLINE N(Vector) N(every)(const T *from, i64 s, i64 n, i64 room) {
    if (s == 1 && room >= WIDTH)
        return *(const N(Vector) *)from;
#ifndef __clang__
    if (s == 2 && room >= 2 * WIDTH) {
        N(Bits) even;
        for (int q = 0; q < WIDTH; q++)
            even[q] = 2 * q;
        return __builtin_shuffle(*(const N(Vector) *)from, *(const N(Vector) *)(from + WIDTH), even);
    }
#endif
    T found[VECTOR / sizeof(T)] = {0};
    for (i64 q = 0; q < least(n, WIDTH); q++)
        found[q] = from[q * s];
    return *(const N(Vector) *)found;
}

/* One tap over some windows of a row: the numbers that it reads, which lie `s` apart, the first of them at `place`. */
INLINE void N(meet)(const T *from, i64 s, i64 room, SAME_SIZE place, T *best, SAME_SIZE *where, i64 n) {
    for (i64 q = 0; q < n && s > 2; q++) {
        const T v = from[q * s];
        const int better = (v > best[q]) | (v != v);
        where[q] = better ? place + (SAME_SIZE)(q * s) : where[q];
        best[q] = better ? v : best[q];
    }
    N(Bits) count;
    for (int q = 0; q < WIDTH; q++)
        count[q] = q;
    for (i64 q = 0; q < n && s <= 2; q += WIDTH) {
        const N(Vector) v = N(every)(from + q * s, s, n - q, room - q * s), b = *(N(Vector) *)(best + q);
        N(Places) *to = (N(Places) *)(where + q);
        const N(Bits) better = ((v > b) | (v != v)) & (count < (SAME_SIZE)least(n - q, WIDTH)), old = *to;
        *(N(Vector) *)(best + q) = (N(Vector))(((N(Bits))v & better) | ((N(Bits))b & ~better));
        *to = ((count * (SAME_SIZE)s + (SAME_SIZE)(place + q * s)) & better) | (old & ~better);
    }
}

#define AT_A_TIME 256 /* windows of a row */
typedef struct {
    i64 begin, end;            /* windows of a row that are worked on */
    SAME_SIZE left[AT_A_TIME]; /* the first column of each that is inside */
    i64 (*seen)[2];            /* for each tap of a row: the windows for which it is inside */
} N(Stretch);

static void N(max_pool_row)(const Pool *j, const N(Stretch) *k, const T *x, i64 left, i64 row, T *y, i64 *at) {
    T best[AT_A_TIME + WIDTH];
    SAME_SIZE where[AT_A_TIME + WIDTH];
    i64 top = row * j->stride[0] - j->padding[0], dh = j->dilation[0], s = j->stride[1], width = j->size[1], n = k->end - k->begin;
    i64 bottom = least(top + (j->kernel[0] - 1) * dh + 1, j->size[0]);
    for (; top < 0; top += dh)
        ;
    for (i64 q = 0; q < n; q++) {
        best[q] = -INF;
        where[q] = (SAME_SIZE)(top * width) + k->left[q];
    }
    for (i64 h = top; h < bottom; h += dh)
        for (i64 t = 0; t < j->kernel[1]; t++) {
            i64 low = k->seen[t][0], many = k->seen[t][1] - low, place = h * width + t * j->dilation[1] - j->padding[1] + low * s;
            T *b = best + low - k->begin;
            SAME_SIZE *w = where + low - k->begin;
            if (s == 1)
                N(meet)(x + place, 1, left - place, (SAME_SIZE)place, b, w, many);
            else if (s == 2)
                N(meet)(x + place, 2, left - place, (SAME_SIZE)place, b, w, many);
            else
                N(meet)(x + place, s, left - place, (SAME_SIZE)place, b, w, many);
        }
    for (i64 q = 0; q < n; q++) {
        y[k->begin + q] = best[q];
        at[k->begin + q] = where[q];
    }
}

static void N(max_pool_part)(long begin, long end, void *const *given) {
    Pool *j = given[0];
    N(Stretch) k = {.seen = malloc(sizeof(*k.seen) * (size_t)j->kernel[1])};
    i64 width = j->places[1], s = j->stride[1], dw = j->dilation[1];
    if (!k.seen)
        j->failed = 1;
    for (k.begin = 0; k.begin < width && k.seen; k.begin = k.end) {
        k.end = least(width, k.begin + AT_A_TIME);
        for (i64 q = k.begin; q < k.end; q++) {
            i64 left = q * s - j->padding[1];
            k.left[q - k.begin] = (SAME_SIZE)(left < 0 ? left + parts_of(-left, dw) * dw : left);
        }
        for (i64 t = 0; t < j->kernel[1]; t++) {
            i64 first = t * dw - j->padding[1];
            k.seen[t][0] = least(k.end, most(k.begin, first < 0 ? parts_of(-first, s) : 0));
            k.seen[t][1] = most(k.seen[t][0], least(k.end, j->size[1] > first ? parts_of(j->size[1] - first, s) : 0));
        }
        for (long p = begin; p < end; p++)
            for (i64 r = 0; r < j->places[0]; r++) {
                i64 row = (p * j->places[0] + r) * width, area = j->size[0] * j->size[1];
                N(max_pool_row)(j, &k, X(x) + p * area, (j->planes - p) * area, r, X(y) + row, j->at + row);
            }
    }
    free(k.seen);
}
#undef AT_A_TIME
#undef WIDTH

static void N(scatter_part)(long begin, long end, void *const *given) {
    Pool *j = given[0];
    i64 many = j->places[0], area = j->size[0];
    for (long p = begin; p < end; p++) {
        T *y = X(y) + p * area;
        const T *x = X(x) + p * many;
        const i64 *from = j->from + p * many;
        if (j->sets)
            for (i64 k = 0; k < many; k++)
                y[from[k]] = x[k];
        else
            for (i64 k = 0; k < many; k++)
                y[from[k]] += x[k];
    }
}
#undef X
