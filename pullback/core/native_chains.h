/* Products of small matrices, for one type of elements: read by _chains.c with T, NAME and SQRT defined. */

/* c = alpha (a @ b) + beta y, or the product alone where there is no y; all row-major. */
CLONED static void NAME(multiply)(const T *a, const T *b, T *restrict c, i64 m, i64 k, i64 n, T alpha, T beta, const T *y) {
    for (i64 i = 0; i < m; i++, c += n) {
        for (i64 j = 0; j < n; j++) c[j] = 0;
        for (i64 p = 0; p < k; p++) {
            const T f = a[i * k + p], *restrict from = b + p * n;
            for (i64 j = 0; j < n; j++) c[j] += f * from[j];
        }
        if (alpha != 1)
            for (i64 j = 0; j < n; j++) c[j] *= alpha;
        if (y && beta == 1)
            for (i64 j = 0; j < n; j++) c[j] += y[i * n + j];
        else if (y)
            for (i64 j = 0; j < n; j++) c[j] += beta * y[i * n + j];
    }
}

/* The covariance of the rows of (m, n), divided by `norm`; `room` is for m x n elements. Each row is as far from its mean as their type says. */
static void NAME(covariance)(const T *x, i64 m, i64 n, double norm, T *room, T *y) {
    for (i64 i = 0; i < m; i++) {
        double sum = 0;
        for (i64 k = 0; k < n; k++) sum += (double)x[i * n + k];
        const T mean = (T)sum / (T)n;
        for (i64 k = 0; k < n; k++) room[i * n + k] = x[i * n + k] - mean;
    }
    for (i64 i = 0; i < m; i++)
        for (i64 j = 0; j <= i; j++) {
            double sum = 0;
            for (i64 k = 0; k < n; k++) sum += (double)room[i * n + k] * (double)room[j * n + k];
            y[i * m + j] = y[j * m + i] = (T)sum / (T)norm;
        }
}

/* Covariances as correlations, where they stand. */
static void NAME(correlate)(T *y, i64 m, T *spread) {
    if (m == 1) {
        *y /= *y;
        return;
    }
    for (i64 i = 0; i < m; i++) spread[i] = SQRT(y[i * m + i]);
    for (i64 i = 0; i < m; i++)
        for (i64 j = 0; j < m; j++) {
            T v = y[i * m + j] / spread[i] / spread[j];
            y[i * m + j] = v < -1 ? -1 : v > 1 ? 1 : v;
        }
}

#undef T
#undef NAME
#undef SQRT
