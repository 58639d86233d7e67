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

/* ---- sampling by a grid: neighbours of a point along an axis */
typedef struct {
    i64 place[4];
    int exists[4];
    T weight[4], slope[4];
} N(Near);

static T N(reflected)(T at, i64 twice_low, i64 twice_high, T *sign) {
    if (twice_low == twice_high) {
        *sign = 0;
        return 0;
    }
    T low = (T)twice_low / 2, span = (T)(twice_high - twice_low) / 2;
    T turned = at < low ? -1 : 1, away = N(absolute)(at - low);
    T extra = N(modulo)(away, span), flips = N(lower)(away / span);
    int even = N(modulo)(flips, 2) == 0;
    *sign = even ? turned : -turned;
    return even ? extra + low : span - extra + low;
}

static T N(folded)(const Grid *g, T at, i64 n, T *slope) {
    *slope = 1;
    if (g->padding == 0)
        return at;
    if (g->padding == 2)
        at = g->align ? N(reflected)(at, 0, 2 * (n - 1), slope) : N(reflected)(at, -1, 2 * n - 1, slope);
    *slope *= (T)(at > 0 && at < n - 1);
    return at < 0 ? 0 : at > n - 1 ? n - 1 : at; /* a NaN stays one */
}

static void N(set)(N(Near) * near, int i, T at, i64 n, T weight, T slope) {
    near->exists[i] = at >= 0 && at <= n - 1;
    near->place[i] = near->exists[i] ? (i64)at : 0;
    near->weight[i] = weight;
    near->slope[i] = slope;
}

static int N(neighbours)(const Grid *g, T point, i64 n, N(Near) * near) {
    T at = g->align ? (point + 1) / 2 * (n - 1) : ((point + 1) * n - 1) / 2, slope = g->align ? (T)(n - 1) / 2 : (T)n / 2, fold;
    if (g->mode == 2) {
        const T b = (T)-0.75;
        T base = N(lower)(at), t = at - base, s = 1 - t, ignored;
        T w[4] = {((b * (1 + t) - 5 * b) * (1 + t) + 8 * b) * (1 + t) - 4 * b, ((b + 2) * t - (b + 3)) * t * t + 1,
                  ((b + 2) * s - (b + 3)) * s * s + 1, ((b * (1 + s) - 5 * b) * (1 + s) + 8 * b) * (1 + s) - 4 * b};
        T e[4] = {(3 * b * (1 + t) - 10 * b) * (1 + t) + 8 * b, (3 * (b + 2) * t - 2 * (b + 3)) * t, -(3 * (b + 2) * s - 2 * (b + 3)) * s,
                  -((3 * b * (1 + s) - 10 * b) * (1 + s) + 8 * b)};
        for (int i = 0; i < 4; i++)
            N(set)(near, i, N(folded)(g, base + (i - 1), n, &ignored), n, w[i], e[i] * slope);
        return 4;
    }
    at = N(folded)(g, at, n, &fold);
    slope *= fold;
    if (g->mode == 1) {
        N(set)(near, 0, N(nearest)(at), n, 1, 0);
        return 1;
    }
    T base = N(lower)(at), t = at - base;
    N(set)(near, 0, base, n, 1 - t, -slope);
    N(set)(near, 1, base + 1, n, t, slope);
    return 2;
}

/* one image: `work` says what is computed (0 samples, 1 what meets the image, 2 what meets the grid) */
static void N(sample)(const Grid *g, i64 image, i64 from, i64 to) {
    i64 length = g->size[0] * g->size[1] * g->size[2], channels = g->channels, samples = g->samples;
    const int axes = g->axes;
    for (i64 s = from; s < to; s++) {
        N(Near) near[3];
        int counts[3] = {1, 1, 1};
        const T *point = (const T *)g->grid + (image * samples + s) * axes;
        near[0].place[0] = 0, near[0].exists[0] = 1, near[0].weight[0] = 1, near[0].slope[0] = 0;
        for (int axis = 3 - axes; axis < 3; axis++) /* the grid names the last axis first */
            counts[axis] = N(neighbours)(g, point[2 - axis], g->size[axis], &near[axis]);
        T slopes[3] = {0, 0, 0};
        for (int i = 0; i < counts[0]; i++)
            for (int k = 0; k < counts[1]; k++)
                for (int l = 0; l < counts[2]; l++) {
                    if (!near[0].exists[i] || !near[1].exists[k] || !near[2].exists[l])
                        continue;
                    i64 place = (near[0].place[i] * g->size[1] + near[1].place[k]) * g->size[2] + near[2].place[l];
                    T a = near[0].weight[i], b = near[1].weight[k], c = near[2].weight[l], weight = a * b * c, met = 0;
                    const T *x = (const T *)g->x + image * channels * length + place;
                    T *dx = (T *)g->dx + image * channels * length + place;
                    T *y = (T *)g->y + image * channels * samples + s;
                    if (g->work == 0)
                        for (i64 ch = 0; ch < channels; ch++)
                            y[ch * samples] += x[ch * length] * weight;
                    else if (g->work == 1)
                        for (i64 ch = 0; ch < channels; ch++)
                            dx[ch * length] += y[ch * samples] * weight;
                    else {
                        for (i64 ch = 0; ch < channels; ch++)
                            met += y[ch * samples] * x[ch * length];
                        slopes[0] += met * near[0].slope[i] * (b * c);
                        slopes[1] += met * near[1].slope[k] * (a * c);
                        slopes[2] += met * near[2].slope[l] * (a * b);
                    }
                }
        if (g->work == 2)
            for (int axis = 3 - axes; axis < 3; axis++)
                ((T *)g->dgrid)[(image * samples + s) * axes + 2 - axis] = slopes[axis];
    }
}

static void N(sample_part)(long first, long last, void *const *a) { /* images, or samples of all images */
    const Grid *g = a[0];
    if (g->work == 1)
        for (i64 image = first; image < last; image++)
            N(sample)(g, image, 0, g->samples);
    else
        for (i64 at = first; at < last;) {
            i64 image = at / g->samples, stop = (image + 1) * g->samples < last ? (image + 1) * g->samples : last;
            N(sample)(g, image, at - image * g->samples, stop - image * g->samples);
            at = stop;
        }
}
