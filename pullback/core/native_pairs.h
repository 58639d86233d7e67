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

/* Rows of (outer, n, inner), each from the one before it. */
static void NAME(differences)(const T *x, T *y, i64 outer, i64 n, i64 inner) {
    for (i64 o = 0; o < outer; o++, x += inner)
        for (i64 k = 0; k < (n - 1) * inner; k++, x++) *y++ = x[inner] - x[0];
}

/* Blocks along the middle of (outer, n, inner) whose norm of order two is above `most` are scaled down to it. */
static void NAME(shortened)(const T *x, T *y, i64 outer, i64 n, i64 inner, double most) {
    for (i64 j = 0; j < n; j++) {
        double sum = 0;
        for (i64 o = 0; o < outer; o++)
            for (i64 i = 0; i < inner; i++) {
                double v = (double)x[(o * n + j) * inner + i];
                sum += v * v;
            }
        const T norm = (T)sqrt(sum), factor = norm > (T)most ? (T)((T)most / (norm + (T)1e-7)) : 1;
        for (i64 o = 0; o < outer; o++)
            for (i64 i = 0; i < inner; i++) y[(o * n + j) * inner + i] = x[(o * n + j) * inner + i] * factor;
    }
}

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
static void NAME(cosines)(const T *x, const T *z, i64 rows, i64 n, double least, T *y) {
    for (i64 r = 0; r < rows; r++, x += n, z += n) {
        double a = 0, b = 0, both = 0;
        for (i64 k = 0; k < n; k++) {
            a += (double)x[k] * (double)x[k];
            b += (double)z[k] * (double)z[k];
            both += (double)x[k] * (double)z[k];
        }
        a = sqrt(a);
        b = sqrt(b);
        y[r] = (T)(both / ((a < least ? least : a) * (b < least ? least : b)));
    }
}

static void NAME(root_mean_squares)(const T *x, const T *weight, T *y, i64 rows, i64 n, double eps) {
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
