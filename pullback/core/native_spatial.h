/* Loops over planes of images, read once for each type: T is float or double, N(name) names its functions. Products and sums are
 * rounded one by one, in the order in which the array library's kernels take them, except that averages are summed in double. */

/* ---- windows: each output covers begin..end of every axis (three; missing ones have one window of one entry), in steps */
#define SUMS 8 /* that do not wait for each other */
CLONES static f64 N(sum_of)(const T *x, i64 n) {
    f64 sums[SUMS] = {0}, total = 0;
    i64 i = 0;
    for (; i + SUMS <= n; i += SUMS)
        for (int k = 0; k < SUMS; k++)
            sums[k] += (f64)x[i + k];
    for (; i < n; i++)
        total += (f64)x[i];
    for (int k = 0; k < SUMS; k++)
        total += sums[k];
    return total;
}

static void N(average_part)(long first, long last, void *const *a) {
    const Job *j = a[0];
    const i64 *size = j->size, *out = j->out;
    for (i64 p = first; p < last; p++) {
        const T *x = (const T *)j->x + p * size[0] * size[1] * size[2];
        T *y = (T *)j->y + p * out[0] * out[1] * out[2];
        for (i64 d = 0; d < out[0]; d++)
            for (i64 h = 0; h < out[1]; h++)
                for (i64 w = 0; w < out[2]; w++) {
                    f64 total = 0;
                    for (i64 k = j->begin[0][d]; k < j->end[0][d]; k++)
                        for (i64 l = j->begin[1][h]; l < j->end[1][h]; l++) {
                            const T *row = x + (k * size[1] + l) * size[2];
                            const i64 from = j->begin[2][w], until = j->end[2][w];
                            if (until - from >= 2 * SUMS)
                                total += N(sum_of)(row + from, until - from);
                            else
                                for (i64 m = from; m < until; m++)
                                    total += row[m];
                        }
                    *y++ = (T)(total / (j->divisor ? (f64)j->divisor : (f64)(j->count[0][d] * j->count[1][h] * j->count[2][w])));
                }
    }
}

#undef SUMS

static void N(spread_part)(long first, long last, void *const *a) { /* the transpose of average: y is read, x is added to */
    const Job *j = a[0];
    const i64 *size = j->size, *out = j->out;
    for (i64 p = first; p < last; p++) {
        T *x = (T *)j->x + p * size[0] * size[1] * size[2];
        const T *y = (const T *)j->y + p * out[0] * out[1] * out[2];
        for (i64 d = 0; d < out[0]; d++)
            for (i64 h = 0; h < out[1]; h++)
                for (i64 w = 0; w < out[2]; w++) {
                    T share = *y++ / (T)(j->divisor ? j->divisor : j->count[0][d] * j->count[1][h] * j->count[2][w]);
                    for (i64 k = j->begin[0][d]; k < j->end[0][d]; k++)
                        for (i64 l = j->begin[1][h]; l < j->end[1][h]; l++) {
                            T *row = x + (k * size[1] + l) * size[2];
                            for (i64 m = j->begin[2][w]; m < j->end[2][w]; m++)
                                row[m] += share;
                        }
                }
    }
}

static void N(maximum_part)(long first, long last, void *const *a) { /* the first of equal ones wins, and the last NaN over all */
    const Job *j = a[0];
    const i64 *size = j->size, *out = j->out, *step = j->step;
    for (i64 p = first; p < last; p++) {
        const T *x = (const T *)j->x + p * size[0] * size[1] * size[2];
        T *y = (T *)j->y + p * out[0] * out[1] * out[2];
        i64 *places = j->places + p * out[0] * out[1] * out[2];
        for (i64 d = 0; d < out[0]; d++)
            for (i64 h = 0; h < out[1]; h++)
                for (i64 w = 0; w < out[2]; w++) {
                    i64 place = (j->begin[0][d] * size[1] + j->begin[1][h]) * size[2] + j->begin[2][w];
                    T best = x[place];
                    for (i64 k = j->begin[0][d]; k < j->end[0][d]; k += step[0])
                        for (i64 l = j->begin[1][h]; l < j->end[1][h]; l += step[1])
                            for (i64 m = j->begin[2][w]; m < j->end[2][w]; m += step[2]) {
                                i64 at = (k * size[1] + l) * size[2] + m;
                                T v = x[at];
                                if (v > best || v != v) {
                                    best = v;
                                    place = at;
                                }
                            }
                    *y++ = best;
                    *places++ = place;
                }
    }
}

/* ---- the same of images whose channels lie innermost: rows of windows, each of some channels side by side at a time */
#define TOGETHER 64
typedef struct {
    const T *x; /* the first of these channels in its image */
    i64 n, to, d, h, w;
} N(Pixel);

static inline __attribute__((always_inline)) void N(average_pixel)(const Job *j, const N(Pixel) *p) {
    f64 total[TOGETHER] = {0};
    const i64 d = p->d, h = p->h, w = p->w, n = p->n;
    for (i64 k = j->begin[0][d]; k < j->end[0][d]; k++)
        for (i64 l = j->begin[1][h]; l < j->end[1][h]; l++)
            for (i64 m = j->begin[2][w]; m < j->end[2][w]; m++) {
                const T *row = p->x + ((k * j->size[1] + l) * j->size[2] + m) * j->channels;
                SIMD
                for (i64 i = 0; i < n; i++)
                    total[i] += (f64)row[i];
            }
    const f64 count = j->divisor ? (f64)j->divisor : (f64)(j->count[0][d] * j->count[1][h] * j->count[2][w]);
    T *y = (T *)j->y + p->to;
    SIMD
    for (i64 i = 0; i < n; i++)
        y[i] = (T)(total[i] / count);
}

static inline __attribute__((always_inline)) void N(maximum_pixel)(const Job *j, const N(Pixel) *p) {
    const i64 d = p->d, h = p->h, w = p->w, n = p->n;
    const i64 start = (j->begin[0][d] * j->size[1] + j->begin[1][h]) * j->size[2] + j->begin[2][w];
    T best[TOGETHER];
    U place[TOGETHER];
    for (i64 i = 0; i < n; i++) {
        best[i] = p->x[start * j->channels + i];
        place[i] = (U)start;
    }
    for (i64 k = j->begin[0][d]; k < j->end[0][d]; k += j->step[0])
        for (i64 l = j->begin[1][h]; l < j->end[1][h]; l += j->step[1])
            for (i64 m = j->begin[2][w]; m < j->end[2][w]; m += j->step[2]) {
                const i64 at = (k * j->size[1] + l) * j->size[2] + m;
                const T *row = p->x + at * j->channels;
                SIMD
                for (i64 i = 0; i < n; i++) {
                    const T v = row[i], b = best[i];
                    const int wins = (v > b) | (v != v);
                    best[i] = wins ? v : b;
                    place[i] = wins ? (U)at : place[i];
                }
            }
    T *y = (T *)j->y + p->to;
    i64 *places = j->places + p->to;
    for (i64 i = 0; i < n; i++) {
        y[i] = best[i];
        places[i] = place[i];
    }
}

#define OVER_PIXELS(name, work)                                                                                       \
    CLONES static void N(name)(long first, long last, void *const *a) {                                               \
        const Job *j = a[0];                                                                                          \
        const i64 *size = j->size, *out = j->out;                                                                     \
        for (i64 r = first; r < last; r++)                                                                            \
            for (i64 w = 0; w < out[2]; w++)                                                                          \
                for (i64 c = 0; c < j->channels; c += TOGETHER) {                                                     \
                    const i64 n = j->channels - c < TOGETHER ? j->channels - c : TOGETHER, image = r / (out[0] * out[1]); \
                    const T *x = (const T *)j->x + image * size[0] * size[1] * size[2] * j->channels + c;             \
                    const N(Pixel) p = {x, n, (r * out[2] + w) * j->channels + c, r / out[1] % out[0], r % out[1], w}; \
                    N(work)(j, &p);                                                                                   \
                }                                                                                                     \
    }
OVER_PIXELS(average_pixels, average_pixel)
OVER_PIXELS(maximum_pixels, maximum_pixel)
#undef OVER_PIXELS
#undef TOGETHER

/* ---- a sparse map along one axis: entry o of y is the sum of weight[k] * entry read[k] of x, k from start[o] to start[o + 1] */
static inline __attribute__((always_inline)) void N(mix)(const Map *m, const T *x, i64 o, T *row) { /* entry o, a row */
    const T *weight = m->weight;
    i64 k = m->start[o], stop = m->start[o + 1], n = m->rest;
    if (weight && stop - k == 2) {
        const T *first = x + m->read[k] * n, *second = x + m->read[k + 1] * n, left = weight[k], right = weight[k + 1];
        SIMD
        for (i64 i = 0; i < n; i++)
            row[i] = first[i] * left + second[i] * right;
        return;
    }
    if (k == stop)
        memset(row, 0, (size_t)n * sizeof *row);
    for (i64 at = k; at < stop; at++) {
        const T *from = x + m->read[at] * n, w = weight ? weight[at] : 1;
        if (at == k) {
            SIMD
            for (i64 i = 0; i < n; i++)
                row[i] = from[i] * w;
        } else {
            SIMD
            for (i64 i = 0; i < n; i++)
                row[i] += from[i] * w;
        }
    }
}

static inline T N(one)(const Map *m, const T *x, i64 o) { /* entry o, a number */
    const T *weight = m->weight;
    T total = 0;
    for (i64 k = m->start[o]; k < m->start[o + 1]; k++) {
        T part = weight ? x[m->read[k]] * weight[k] : x[m->read[k]];
        total = k == m->start[o] ? part : total + part;
    }
    return total;
}

CLONES static void N(map_part)(long first, long last, void *const *a) {
    const Map *m = a[0];
    i64 lead = first / m->outputs, o = first % m->outputs;
    for (i64 row = first; row < last; row++, o = o + 1 == m->outputs ? 0 : o + 1, lead += !o) {
        const T *x = (const T *)m->x + lead * m->inputs * m->rest;
        T *y = (T *)m->y + row * m->rest;
        if (m->rest == 1)
            *y = N(one)(m, x, o);
        else
            N(mix)(m, x, o, y);
    }
}

/* ---- both axes of planes: each row of y is made of a row that the first map makes, by the second */
#define PART(k) (x[r[(k) * n + j]] * w[(k) * n + j])
CLONES static void N(across)(const Across *a, const T *restrict x, T *restrict y) {
    const i64 n = a->map.outputs;
    const i32 *r = a->read;
    const T *w = a->weight;
    if (!a->taps) /* not the same number for each */
        for (i64 j = 0; j < n; j++)
            y[j] = N(one)(&a->map, x, j);
    else if (!w) {
        SIMD
        for (i64 j = 0; j < n; j++)
            y[j] = x[r[j]];
    } else if (a->taps == 2) {
        SIMD
        for (i64 j = 0; j < n; j++)
            y[j] = PART(0) + PART(1);
    } else if (a->taps == 4) {
        SIMD
        for (i64 j = 0; j < n; j++)
            y[j] = PART(0) + PART(1) + PART(2) + PART(3);
    } else {
        SIMD
        for (i64 j = 0; j < n; j++)
            y[j] = PART(0);
        for (i64 k = 1; k < a->taps; k++) {
            SIMD
            for (i64 j = 0; j < n; j++)
                y[j] += PART(k);
        }
    }
}
#undef PART

static int N(same)(const Map *m, i64 o) { /* whether row o is the row before it again */
    i64 k = m->start[o], count = m->start[o + 1] - k;
    if (o == 0 || k - m->start[o - 1] != count || memcmp(m->read + k, m->read + k - count, (size_t)count * sizeof *m->read))
        return 0;
    const T *weight = m->weight;
    return !weight || !memcmp(weight + k, weight + k - count, (size_t)count * sizeof *weight);
}

static void N(planes_part)(long first, long last, void *const *arguments) { /* rows of all planes */
    const Planes *p = arguments[0];
    const Map *m = &p->down;
    T *room = m->start ? malloc(sizeof(T) * (size_t)(m->rest + 1)) : NULL;
    for (i64 at = first; at < last; at++) {
        i64 plane = at / m->outputs, o = at % m->outputs, n = p->across.map.outputs;
        const T *x = (const T *)p->x + plane * m->inputs * m->rest, *row = room;
        T *y = (T *)p->y + at * n;
        if (!m->start)
            row = x + o * m->rest;
        else if (at > first && N(same)(m, o)) {
            memcpy(y, y - n, (size_t)n * sizeof *y);
            continue;
        } else if (!m->weight && m->start[o + 1] - m->start[o] == 1)
            row = x + m->read[m->start[o]] * m->rest;
        else if (room)
            N(mix)(m, x, o, room);
        else
            continue; /* no memory: said by the caller */
        N(across)(&p->across, row, y);
    }
    if (m->start && !room)
        p->failed[0] = 1;
    free(room);
}
