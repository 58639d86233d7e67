/* Loops over planes of images, read once for each type: T is float or double, N(name) names its functions. Products and sums are
 * rounded one by one, in the order in which the array library's kernels take them, except that averages are summed in double. */

/* ---- windows: each output covers begin..end of every axis (three; missing ones have one window of one entry), in steps */
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
                            for (i64 m = j->begin[2][w]; m < j->end[2][w]; m++)
                                total += row[m];
                        }
                    *y++ = (T)(total / (j->divisor ? (f64)j->divisor : (f64)(j->count[0][d] * j->count[1][h] * j->count[2][w])));
                }
    }
}

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

/* ---- a sparse map along one axis: entry o of y is the sum of weight[k] * entry read[k] of x, k from start[o] to start[o + 1] */
static void N(map_part)(long first, long last, void *const *a) {
    const Map *m = a[0];
    const T *weight = m->weight;
    i64 rest = m->rest;
    for (i64 row = first; row < last; row++) {
        i64 lead = row / m->outputs, o = row % m->outputs;
        const T *x = (const T *)m->x + lead * m->inputs * rest;
        T *y = (T *)m->y + row * rest;
        i64 k = m->start[o], stop = m->start[o + 1];
        if (rest == 1) {
            T total = 0;
            for (; k < stop; k++) {
                T part = weight ? x[m->read[k]] * weight[k] : x[m->read[k]];
                total = k == m->start[o] ? part : total + part;
            }
            *y = total;
            continue;
        }
        if (k == stop)
            memset(y, 0, (size_t)rest * sizeof *y);
        for (i64 at = k; at < stop; at++) {
            const T *from = x + m->read[at] * rest, w = weight ? weight[at] : 1;
            if (at == k) {
                SIMD
                for (i64 i = 0; i < rest; i++)
                    y[i] = from[i] * w;
            } else {
                SIMD
                for (i64 i = 0; i < rest; i++)
                    y[i] += from[i] * w;
            }
        }
    }
}
