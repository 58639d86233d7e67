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

/* Attention of (rows, width) on (many, width): softmax of scaled products, then what it weighs; each row sees no later one where `causal`.
 * `room` is for one row of weights. */
CLONED static void NAME(attend)(const T *q, const T *k, const T *v, T *restrict y, i64 rows, i64 many, i64 width, T scale, int causal, T *restrict room) {
    for (i64 i = 0; i < rows; i++, q += width, y += width) {
        const i64 seen = causal && i + 1 < many ? i + 1 : many;
        T top = -INFINITY, sum = 0;
        for (i64 j = 0; j < seen; j++) {
            T lanes[4] = {0}, product = 0;
            for (i64 d = 0; d + 4 <= width; d += 4)
                for (int l = 0; l < 4; l++) lanes[l] += q[d + l] * k[j * width + d + l];
            for (i64 d = width / 4 * 4; d < width; d++) product += q[d] * k[j * width + d];
            room[j] = (product + ((lanes[0] + lanes[1]) + (lanes[2] + lanes[3]))) * scale;
        }
        for (i64 j = 0; j < seen; j++) top = room[j] > top || room[j] != room[j] ? room[j] : top;
        for (i64 j = 0; j < seen; j++) sum += room[j] = EXP(room[j] - top);
        for (i64 d = 0; d < width; d++) y[d] = 0;
        for (i64 j = 0; j < seen; j++) {
            const T f = room[j] / sum;
            for (i64 d = 0; d < width; d++) y[d] += f * v[j * width + d];
        }
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
#undef EXP
