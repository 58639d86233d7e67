/* Sampling by a grid, read once for each type: T is float or double, U the integer as wide, N(name) names functions.
 *
 * Samples are taken a block at a time: first where the neighbours of each point lie along every axis, then one table of taps (a choice of
 * one neighbour for each axis), then channel by channel what the taps read. The fewer taps, the longer a block: row k of a table of ROOM
 * entries begins at k * g->block. Products and sums are rounded one by one, in the order in
 * which the array library's kernel takes them, tap after tap.
 */
typedef struct { /* neighbours along one axis of the points of a block */
    i32 place[ROOM];
    U exists[ROOM]; /* all bits or none */
    T weight[ROOM], slope[ROOM];
} N(Line);

typedef struct { /* taps of the points of a block */
    i32 place[ROOM];
    U exists[ROOM];
    T weight[ROOM];
} N(Taps);

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

/* Coordinates brought into the image as the padding says, and the derivatives of doing so. A NaN stays one. */
CLONES static void N(fold)(const Grid *g, T *at, T *slope, int count, i64 n) {
    const T last = (T)(n - 1);
    for (int i = 0; i < count; i++)
        slope[i] = 1;
    if (g->padding == 2)
        for (int i = 0; i < count; i++)
            at[i] = g->align ? N(reflected)(at[i], 0, 2 * (n - 1), &slope[i]) : N(reflected)(at[i], -1, 2 * n - 1, &slope[i]);
    if (g->padding == 0)
        return;
    SIMD
    for (int i = 0; i < count; i++) {
        slope[i] *= at[i] > 0 && at[i] < last ? (T)1 : (T)0;
        T low = at[i] < 0 ? 0 : at[i];
        at[i] = low > last ? last : low;
    }
}

CLONES static void N(set)(N(Line) * line, i64 begin, const T *at, T step, int count, i64 n) {
    const T last = (T)(n - 1);
    SIMD
    for (int i = 0; i < count; i++) {
        T v = at[i] + step;
        int exists = v >= 0 && v <= last;
        line->exists[begin + i] = exists ? (U)-1 : (U)0;
        line->place[begin + i] = (i32)(exists ? v : (T)0);
    }
}

/* Two neighbours, weighted by distance. */
CLONES static void N(linear)(N(Line) * line, i64 row, const T *at, const T *fold, T scale, int count, i64 n) {
    T base[ROOM];
    SIMD
    for (int i = 0; i < count; i++) {
        base[i] = N(lower)(at[i]);
        T t = at[i] - base[i], slope = scale * fold[i];
        line->weight[i] = 1 - t, line->weight[row + i] = t;
        line->slope[i] = -slope, line->slope[row + i] = slope;
    }
    N(set)(line, 0, base, 0, count, n);
    N(set)(line, row, base, 1, count, n);
}

/* Four neighbours by the cubic convolution kernel with a = -0.75; each is brought into the image by itself. */
CLONES static void N(cubic)(const Grid *g, N(Line) * line, const T *at, T scale, int count, i64 n) {
    const T b = (T)-0.75;
    const i64 row = g->block;
    T base[ROOM], moved[ROOM], ignored[ROOM];
    SIMD
    for (int i = 0; i < count; i++) {
        base[i] = N(lower)(at[i]);
        T t = at[i] - base[i], s = 1 - t;
        line->weight[i] = ((b * (1 + t) - 5 * b) * (1 + t) + 8 * b) * (1 + t) - 4 * b;
        line->weight[row + i] = ((b + 2) * t - (b + 3)) * t * t + 1;
        line->weight[2 * row + i] = ((b + 2) * s - (b + 3)) * s * s + 1;
        line->weight[3 * row + i] = ((b * (1 + s) - 5 * b) * (1 + s) + 8 * b) * (1 + s) - 4 * b;
        line->slope[i] = ((3 * b * (1 + t) - 10 * b) * (1 + t) + 8 * b) * scale;
        line->slope[row + i] = (3 * (b + 2) * t - 2 * (b + 3)) * t * scale;
        line->slope[2 * row + i] = -(3 * (b + 2) * s - 2 * (b + 3)) * s * scale;
        line->slope[3 * row + i] = -((3 * b * (1 + s) - 10 * b) * (1 + s) + 8 * b) * scale;
    }
    for (int tap = 0; tap < 4; tap++) {
        for (int i = 0; i < count; i++)
            moved[i] = base[i] + (tap - 1);
        N(fold)(g, moved, ignored, count, n);
        N(set)(line, tap * row, moved, 0, count, n);
    }
}

/* The neighbours along an axis of the points `point[0]`, `point[step]`, ...: how many there are for each. */
CLONES static int N(neighbours)(const Grid *g, const T *point, i64 step, int count, i64 n, N(Line) * line) {
    T at[ROOM], fold[ROOM], scale = g->align ? (T)(n - 1) / 2 : (T)n / 2;
    if (g->align)
        for (int i = 0; i < count; i++)
            at[i] = (point[i * step] + 1) / 2 * (T)(n - 1);
    else
        for (int i = 0; i < count; i++)
            at[i] = ((point[i * step] + 1) * (T)n - 1) / 2;
    if (g->mode == 2) {
        N(cubic)(g, line, at, scale, count, n);
        return 4;
    }
    N(fold)(g, at, fold, count, n);
    if (g->mode == 0) {
        N(linear)(line, g->block, at, fold, scale, count, n);
        return 2;
    }
    for (int i = 0; i < count; i++)
        at[i] = N(nearest)(at[i]), line->weight[i] = 1, line->slope[i] = 0;
    N(set)(line, 0, at, 0, count, n);
    return 1;
}

CLONES static void N(tap)(const Grid *g, N(Taps) * taps, int tap, N(Line) * lines, const int *which, int count) {
    const N(Line) *y = &lines[1], *x = &lines[2];
    const int k = which[1], l = which[2];
    const i64 row = g->block;
    const i32 height = (i32)g->size[1], width = (i32)g->size[2];
    if (g->axes == 2) {
        SIMD
        for (int i = 0; i < count; i++) {
            U exists = y->exists[k * row + i] & x->exists[l * row + i];
            taps->exists[tap * row + i] = exists;
            taps->place[tap * row + i] = exists ? y->place[k * row + i] * width + x->place[l * row + i] : 0;
            taps->weight[tap * row + i] = exists ? y->weight[k * row + i] * x->weight[l * row + i] : 0;
        }
        return;
    }
    const N(Line) *z = &lines[0];
    const int j = which[0];
    SIMD
    for (int i = 0; i < count; i++) {
        U exists = z->exists[j * row + i] & y->exists[k * row + i] & x->exists[l * row + i];
        taps->exists[tap * row + i] = exists;
        taps->place[tap * row + i] = exists ? (z->place[j * row + i] * height + y->place[k * row + i]) * width + x->place[l * row + i] : 0;
        taps->weight[tap * row + i] = exists ? z->weight[j * row + i] * y->weight[k * row + i] * x->weight[l * row + i] : 0;
    }
}

/* Entry 0 stands for what does not exist: it is read and not used, for a load under a condition takes twice as long. */
#define READ(k)                                                                                   \
    ({                                                                                            \
        const T entry = x[taps->place[(k) * row + i]];                                            \
        (taps->exists[(k) * row + i] ? entry : (T)0) * taps->weight[(k) * row + i];               \
    })
CLONES static void N(read)(const N(Taps) * taps, i64 row, int many, const T *x, T *y, int count) {
    if (many == 1) {
        SIMD
        for (int i = 0; i < count; i++)
            y[i] = (T)0 + READ(0);
        return;
    }
    SIMD
    for (int i = 0; i < count; i++)
        y[i] = (T)0 + READ(0) + READ(1) + READ(2) + READ(3);
    for (int k = 4; k < many; k += 4) {
        SIMD
        for (int i = 0; i < count; i++)
            y[i] = y[i] + READ(k) + READ(k + 1) + READ(k + 2) + READ(k + 3);
    }
}
#undef READ

static void N(spread_taps)(const N(Taps) * taps, i64 row, int many, T *dx, const T *y, int count) {
    for (int i = 0; i < count; i++)
        for (int k = 0; k < many; k++)
            if (taps->exists[k * row + i])
                dx[taps->place[k * row + i]] += y[i] * taps->weight[k * row + i];
}

CLONES static void N(meet)(const Grid *g, const i32 *place, const U *exists, const T *x, const T *y, T *met, int count) {
    const i64 length = g->size[0] * g->size[1] * g->size[2];
    for (int i = 0; i < count; i++)
        met[i] = 0;
    for (i64 ch = 0; ch < g->channels; ch++, x += length, y += g->samples) {
        SIMD
        for (int i = 0; i < count; i++)
            met[i] += exists[i] ? y[i] * x[place[i]] : (T)0;
    }
}

/* What meets the points of a block: every tap by the slope of one of its weights and the other weights. */
static void N(to_grid)(const Grid *g, const N(Taps) * taps, N(Line) * lines, const int *counts, const T *x, const T *y, T *into, int count) {
    T slopes[3][ROOM] = {{0}}, met[ROOM];
    const i64 row = g->block;
    int tap = 0;
    for (int j = 0; j < counts[0]; j++)
        for (int k = 0; k < counts[1]; k++)
            for (int l = 0; l < counts[2]; l++, tap++) {
                N(meet)(g, taps->place + tap * row, taps->exists + tap * row, x, y, met, count);
                for (int i = 0; i < count; i++) {
                    if (!taps->exists[tap * row + i])
                        continue;
                    T a = g->axes == 3 ? lines[0].weight[j * row + i] : 1, b = lines[1].weight[k * row + i], c = lines[2].weight[l * row + i];
                    if (g->axes == 3)
                        slopes[0][i] += met[i] * lines[0].slope[j * row + i] * (b * c);
                    slopes[1][i] += met[i] * lines[1].slope[k * row + i] * (a * c);
                    slopes[2][i] += met[i] * lines[2].slope[l * row + i] * (a * b);
                }
            }
    for (int i = 0; i < count; i++)
        for (int axis = 3 - g->axes; axis < 3; axis++)
            into[i * g->axes + 2 - axis] = slopes[axis][i];
}

/* samples of one image: `work` says what is computed (0 samples, 1 what meets the image, 2 what meets the grid) */
static void N(sample)(const Grid *g, i64 image, i64 from, i64 to) {
    const i64 length = g->size[0] * g->size[1] * g->size[2], channels = g->channels, samples = g->samples;
    const int axes = g->axes;
    N(Line) lines[3];
    N(Taps) taps;
    for (i64 s = from; s < to; s += g->block) {
        const int count = (int)(to - s < g->block ? to - s : g->block);
        const i64 first = image * samples + s;
        int counts[3] = {1, 1, 1}, many = 0;
        for (int axis = 3 - axes; axis < 3; axis++) /* the grid names the last axis first */
            counts[axis] = N(neighbours)(g, (const T *)g->grid + first * axes + 2 - axis, axes, count, g->size[axis], &lines[axis]);
        for (int j = 0; j < counts[0]; j++)
            for (int k = 0; k < counts[1]; k++)
                for (int l = 0; l < counts[2]; l++)
                    N(tap)(g, &taps, many++, lines, (const int[3]){j, k, l}, count);
        const i64 plane = image * channels * length, row = image * channels * samples + s;
        if (g->work == 2)
            N(to_grid)(g, &taps, lines, counts, (const T *)g->x + plane, (const T *)g->y + row, (T *)g->dgrid + first * axes, count);
        for (i64 ch = 0; g->work < 2 && ch < channels; ch++) {
            T *y = (T *)g->y + row + ch * samples;
            if (g->work == 0)
                N(read)(&taps, g->block, many, (const T *)g->x + plane + ch * length, y, count);
            else
                N(spread_taps)(&taps, g->block, many, (T *)g->dx + plane + ch * length, y, count);
        }
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
