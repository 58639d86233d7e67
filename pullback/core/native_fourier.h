/* Transforms of many lines of complex numbers at once, for one precision: read by _fourier.c with T and NAME defined.
 *
 * A line has a power of two of points, or few. LANES lines are transformed side by side, so that every step is a loop over them; factors are
 * computed in double precision.
 */

/* Any number of points, by the sums that define the transform: for few of them. */
static T *NAME(sum_lanes)(const T *x, T *y, i64 n, const double *cosines, const double *sines, int forward) {
    for (i64 k = 0; k < n; k++) {
        T *restrict u = y + k * 2 * LANES;
        for (int l = 0; l < 2 * LANES; l++) u[l] = 0;
        for (i64 j = 0, turn = 0; j < n; j++, turn = (turn + k) % n) {
            const T c = (T)cosines[turn], s = (T)(forward ? -sines[turn] : sines[turn]), *restrict a = x + j * 2 * LANES;
            for (int l = 0; l < LANES; l++) {
                u[l] += a[l] * c - a[LANES + l] * s;
                u[LANES + l] += a[l] * s + a[LANES + l] * c;
            }
        }
    }
    return y;
}

/* x of n points (real parts, then imaginary ones, LANES of each), by steps that read one half and write the other; the result is where
 * the pointer that is returned points. */
static T *NAME(transform_lanes)(T *x, T *y, i64 n, const double *cosines, const double *sines, int forward) {
    if (n & (n - 1)) return NAME(sum_lanes)(x, y, n, cosines, sines, forward);
    for (i64 half = n / 2, stride = 1; half >= 1; half /= 2, stride *= 2) {
        for (i64 p = 0; p < half; p++) {
            const T c = (T)cosines[p * stride], s = (T)(forward ? -sines[p * stride] : sines[p * stride]);
            for (i64 q = 0; q < stride; q++) {
                const T *restrict a = x + (q + stride * p) * 2 * LANES, *restrict b = x + (q + stride * (p + half)) * 2 * LANES;
                T *restrict u = y + (q + stride * 2 * p) * 2 * LANES, *restrict v = y + (q + stride * (2 * p + 1)) * 2 * LANES;
                for (int l = 0; l < LANES; l++) {
                    T dr = a[l] - b[l], di = a[LANES + l] - b[LANES + l];
                    u[l] = a[l] + b[l];
                    u[LANES + l] = a[LANES + l] + b[LANES + l];
                    v[l] = dr * c - di * s;
                    v[LANES + l] = dr * s + di * c;
                }
            }
        }
        T *kept = x;
        x = y;
        y = kept;
    }
    return x;
}

/* Every line along the middle of (outer, n, inner) complex numbers, in place; `room` holds 4 n LANES numbers. */
static void NAME(transform_lines)(T *data, i64 outer, i64 n, i64 inner, const double *cosines, const double *sines, int forward, T *room) {
    T *x = room, *y = room + 2 * n * LANES;
    i64 lines = outer * inner;
    for (i64 first = 0; n > 1 && first < lines; first += LANES) {
        i64 count = lines - first < LANES ? lines - first : LANES;
        for (i64 l = 0; l < count; l++) {
            const T *from = data + 2 * ((first + l) / inner * n * inner + (first + l) % inner);
            for (i64 k = 0; k < n; k++) {
                x[2 * k * LANES + l] = from[2 * k * inner];
                x[(2 * k + 1) * LANES + l] = from[2 * k * inner + 1];
            }
        }
        for (i64 l = count; l < LANES; l++)
            for (i64 k = 0; k < 2 * n; k++) x[k * LANES + l] = 0;
        const T *result = NAME(transform_lanes)(x, y, n, cosines, sines, forward);
        for (i64 l = 0; l < count; l++) {
            T *to = data + 2 * ((first + l) / inner * n * inner + (first + l) % inner);
            for (i64 k = 0; k < n; k++) {
                to[2 * k * inner] = result[2 * k * LANES + l];
                to[2 * k * inner + 1] = result[(2 * k + 1) * LANES + l];
            }
        }
    }
}

/* Rows of `n` numbers as rows of `m` complex ones: real numbers that become complex, all points or half of them, or half a spectrum
 * from which the rest follows (`half` points are there). */
static void NAME(widen_real)(const T *x, T *y, i64 count) {
    for (i64 i = 0; i < count; i++) {
        y[2 * i] = x[i];
        y[2 * i + 1] = 0;
    }
}

static void NAME(keep_half)(const T *x, T *y, i64 rows, i64 n) {
    for (i64 r = 0; r < rows; r++) memcpy(y + 2 * r * (n / 2 + 1), x + 2 * r * n, sizeof(T) * 2 * (size_t)(n / 2 + 1));
}

static void NAME(mirror_half)(const T *x, T *y, i64 rows, i64 n) {
    i64 half = n / 2 + 1;
    for (i64 r = 0; r < rows; r++) {
        const T *from = x + 2 * r * half;
        T *to = y + 2 * r * n;
        memcpy(to, from, sizeof(T) * 2 * (size_t)half);
        to[1] = 0;
        if (n % 2 == 0) to[2 * (n / 2) + 1] = 0;
        for (i64 k = half; k < n; k++) {
            to[2 * k] = from[2 * (n - k)];
            to[2 * k + 1] = -from[2 * (n - k) + 1];
        }
    }
}

static void NAME(keep_real)(const T *x, T *y, i64 count) {
    for (i64 i = 0; i < count; i++) y[i] = x[2 * i];
}

static void NAME(scale_all)(T *x, i64 count, double factor, int conjugate) {
    const T f = (T)factor;
    if (factor != 1)
        for (i64 i = 0; i < count; i++) x[i] *= f;
    if (conjugate)
        for (i64 i = 1; i < count; i += 2) x[i] = -x[i];
}

#undef T
#undef NAME
