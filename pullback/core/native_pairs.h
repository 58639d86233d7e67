/* Elements of several arrays, one by one, for one type of elements: read by _pairs.c with T, NAME and the functions of its precision. */

CLONED static void NAME(cut)(const T *x, const T *z, T *y, i64 n) {
    for (i64 k = 0; k < n; k++) y[k] = TRUNC(x[k] / z[k]);
}

static void NAME(divided)(const T *x, const T *z, T *y, i64 n, int down) {
    if (!down) {
        NAME(cut)(x, z, y, n);
        return;
    }
    for (i64 k = 0; k < n; k++) {
        const T a = x[k], b = z[k];
        if (b == 0) {
            y[k] = a / b;
            continue;
        }
        T left = FMOD(a, b), q = (a - left) / b;
        if (left != 0 && (b < 0) != (left < 0)) q -= 1;
        T whole = FLOOR(q);
        y[k] = q == 0 ? COPYSIGN((T)0, a / b) : q - whole > (T)0.5 ? whole + 1 : whole;
    }
}

/* The larger of x and low, then the smaller of that and high; a NaN among them stays. */
CLONED static void NAME(clamped)(const T *x, const T *low, const T *high, T *y, i64 n) {
    if (low)
        for (i64 k = 0; k < n; k++) y[k] = (x[k] < low[k]) | (low[k] != low[k]) ? low[k] : x[k];
    const T *v = low ? y : x;
    if (high)
        for (i64 k = 0; k < n; k++) y[k] = (v[k] > high[k]) | ((high[k] != high[k]) & (v[k] == v[k])) ? high[k] : v[k];
}

static void NAME(from_angles)(const T *size, const T *angle, T *y, i64 n) {
    for (i64 k = 0; k < n; k++) {
        y[2 * k] = size[k] * COS(angle[k]);
        y[2 * k + 1] = size[k] * SIN(angle[k]);
    }
}

/* Slopes of channels for what is below zero: x is (outer, channels, inner). */
CLONED static void NAME(sloped)(const T *x, const T *slopes, T *y, i64 outer, i64 channels, i64 inner) {
    if (inner == 1) {
        for (i64 o = 0; o < outer; o++, x += channels, y += channels)
            for (i64 c = 0; c < channels; c++) y[c] = x[c] > 0 ? x[c] : slopes[c] * x[c];
        return;
    }
    for (i64 o = 0; o < outer; o++)
        for (i64 c = 0; c < channels; c++, x += inner, y += inner)
            for (i64 i = 0; i < inner; i++) y[i] = x[i] > 0 ? x[i] : slopes[c] * x[i];
}

static void NAME(split)(const T *x, T *parts, int *powers, i64 n) {
    for (i64 k = 0; k < n; k++) {
        powers[k] = 0;
        parts[k] = FREXP(x[k], &powers[k]);
        if (x[k] - x[k] != 0) powers[k] = 0;
    }
}

/* The nearest numbers of so many decimals, by their power of ten. */
static void NAME(rounded)(const T *x, T *y, i64 n, T scale, int is_after) {
    if (is_after)
        for (i64 k = 0; k < n; k++) y[k] = RINT(x[k] * scale) / scale;
    else
        for (i64 k = 0; k < n; k++) y[k] = RINT(x[k] / scale) * scale;
}

/* Rows of (outer, n, inner), each from the one before it. */
static void NAME(differences)(const T *x, T *y, i64 outer, i64 n, i64 inner) {
    for (i64 o = 0; o < outer; o++, x += inner)
        for (i64 k = 0; k < (n - 1) * inner; k++, x++) *y++ = x[inner] - x[0];
}

/* The estimates of slopes along the middle of (outer, n, inner): of neighbours on both sides, at the ends of the only one. */
static void NAME(slopes)(const T *x, T *y, i64 outer, i64 n, i64 inner, double spacing) {
    const T near = (T)spacing, far = (T)(2 * spacing);
    for (i64 o = 0; o < outer; o++, x += n * inner, y += n * inner) {
        const T *last = x + (n - 1) * inner;
        for (i64 i = 0; i < inner; i++) y[i] = (x[inner + i] - x[i]) / near;
        for (i64 k = inner; k < (n - 1) * inner; k++) y[k] = (x[k + inner] - x[k - inner]) / far;
        for (i64 i = 0; i < inner; i++) y[(n - 1) * inner + i] = (last[i] - last[i - inner]) / near;
    }
}

/* Running sums of half of two neighbours each, `inner` of them in `room`. */
static void NAME(integrals)(const T *x, T *y, i64 outer, i64 n, i64 inner, double spacing, double *room) {
    const T half = (T)(spacing / 2);
    i64 o = 0;
#define STEP(l) y[l * (n - 1) + k] = (T)(sums[l] += (double)(half * (x[l * n + k] + x[l * n + k + 1])))
    for (; inner == 1 && o + 4 <= outer; o += 4, x += 4 * n, y += 4 * (n - 1)) { /* four rows at a time: each waits for itself */
        double sums[4] = {0};
        for (i64 k = 0; k < n - 1; k++) STEP(0), STEP(1), STEP(2), STEP(3);
    }
#undef STEP
    for (; o < outer; o++, x += inner) {
        for (i64 i = 0; i < inner; i++) room[i] = 0;
        for (i64 k = 1; k < n; k++, x += inner, y += inner)
            for (i64 i = 0; i < inner; i++) y[i] = (T)(room[i] += (double)(half * (x[i] + x[inner + i])));
    }
}

/* The sum of products of two rows, in double precision. */
static inline __attribute__((always_inline)) double NAME(dot)(const T *x, const T *z, i64 n) {
    double lanes[LANES] = {0}, sum = 0;
    i64 whole = n / LANES * LANES;
    for (i64 k = 0; k < whole; k += LANES)
        for (int l = 0; l < LANES; l++) lanes[l] += (double)x[k + l] * (double)z[k + l];
    for (i64 k = whole; k < n; k++) sum += (double)x[k] * (double)z[k];
    for (int l = 0; l < LANES; l++) sum += lanes[l];
    return sum;
}

/* Blocks `first` to `last` along the middle of (outer, n, inner) whose norm of order two is above `most` are scaled down to it. */
#define FACTOR(sum) ((T)sqrt(sum) > (T)most ? (T)((T)most / ((T)sqrt(sum) + (T)1e-7)) : 1)
CLONED static void NAME(shortened)(const T *x, T *y, i64 outer, i64 n, i64 inner, double most, i64 first, i64 last) {
    for (; inner == 1 && first < last; first += COLUMNS) { /* columns side by side */
        const i64 width = last - first < COLUMNS ? last - first : COLUMNS;
        double sums[COLUMNS] = {0};
        T factors[COLUMNS];
        for (i64 o = 0; o < outer; o++)
            for (i64 j = 0; j < width; j++) sums[j] += (double)x[o * n + first + j] * (double)x[o * n + first + j];
        for (i64 j = 0; j < width; j++) factors[j] = FACTOR(sums[j]);
        for (i64 o = 0; o < outer; o++)
            for (i64 j = 0; j < width; j++) y[o * n + first + j] = x[o * n + first + j] * factors[j];
    }
    for (i64 j = first; j < last; j++) {
        double sum = 0;
        for (i64 o = 0; o < outer; o++) sum += NAME(dot)(x + (o * n + j) * inner, x + (o * n + j) * inner, inner);
        const T factor = FACTOR(sum);
        for (i64 o = 0; o < outer; o++)
            for (i64 i = 0; i < inner; i++) y[(o * n + j) * inner + i] = x[(o * n + j) * inner + i] * factor;
    }
}

#undef FACTOR

/* Each element of a matrix times another matrix; steps in elements. */
static void NAME(kronecker)(const T *x, const Py_ssize_t *of_x, const T *z, const Py_ssize_t *of_z, const Py_ssize_t *steps, T *y) {
    for (i64 i = 0; i < of_x[0]; i++)
        for (i64 k = 0; k < of_z[0]; k++)
            for (i64 j = 0; j < of_x[1]; j++) {
                const T v = x[i * steps[0] + j * steps[1]];
                for (i64 l = 0; l < of_z[1]; l++) *y++ = v * z[k * steps[2] + l * steps[3]];
            }
}

/* Cosines between rows; lengths below `least` count as that. */
CLONED static void NAME(cosines)(const T *x, const T *z, i64 rows, i64 n, double least, T *y) {
    for (i64 r = 0; r < rows; r++, x += n, z += n) {
        const double both = NAME(dot)(x, z, n), a = sqrt(NAME(dot)(x, x, n)), b = sqrt(NAME(dot)(z, z, n));
        y[r] = (T)(both / ((a < least ? least : a) * (b < least ? least : b)));
    }
}

CLONED_WIDE static void NAME(root_mean_squares)(const T *x, const T *weight, T *y, i64 rows, i64 n, double eps) {
    for (i64 r = 0; r < rows; r++, x += n, y += n) {
        double lanes[LANES] = {0}, sum = 0;
        i64 whole = n / LANES * LANES;
        for (i64 k = 0; k < whole; k += LANES)
            for (int l = 0; l < LANES; l++) lanes[l] += (double)x[k + l] * (double)x[k + l];
        for (i64 k = whole; k < n; k++) sum += (double)x[k] * (double)x[k];
        for (int l = 0; l < LANES; l++) sum += lanes[l];
        const T factor = (T)(1 / sqrt(sum / (double)n + eps));
        if (weight)
            for (i64 k = 0; k < n; k++) y[k] = x[k] * factor * weight[k];
        else
            for (i64 k = 0; k < n; k++) y[k] = x[k] * factor;
    }
}

#undef T
#undef NAME
#undef TRUNC
#undef FLOOR
#undef FMOD
#undef COPYSIGN
#undef SIN
#undef COS
#undef FREXP
#undef RINT
