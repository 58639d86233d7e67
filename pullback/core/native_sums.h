/* Sums and products of rows, for one type of elements: read by _sums.c with T, NAME, WIDE (what sums are formed in) and IS_NAN defined.
 *
 * Sums along the middle of (outer, n, inner). Of floating-point numbers they are formed in double precision and rounded once.
 */
static inline __attribute__((always_inline)) WIDE NAME(row_sum)(const T *x, i64 n, int skips_nan) {
    WIDE lanes[LANES] = {0}, sum = 0;
    i64 whole = n / LANES * LANES;
    if (skips_nan)
        for (i64 k = 0; k < whole; k += LANES)
            for (int l = 0; l < LANES; l++) lanes[l] += IS_NAN(x[k + l]) ? 0 : (WIDE)x[k + l];
    else
        for (i64 k = 0; k < whole; k += LANES)
            for (int l = 0; l < LANES; l++) lanes[l] += (WIDE)x[k + l];
    for (i64 k = whole; k < n; k++) sum += skips_nan && IS_NAN(x[k]) ? 0 : (WIDE)x[k];
    for (int l = 0; l < LANES; l++) sum += lanes[l];
    return sum;
}

CLONED_WIDE static void NAME(sums)(const T *x, Shape s, int skips_nan, RESULT *y) {
    for (i64 o = 0; o < s.outer; o++, x += s.n * s.inner, y += s.inner) {
        if (s.inner == 1) {
            *y = (RESULT)NAME(row_sum)(x, s.n, skips_nan);
            continue;
        }
        for (i64 first = 0; first < s.inner; first += COLUMNS) { /* columns side by side */
            WIDE room[COLUMNS] = {0};
            i64 width = s.inner - first < COLUMNS ? s.inner - first : COLUMNS;
            for (i64 k = 0; k < s.n; k++) {
                const T *restrict p = x + k * s.inner + first;
                if (skips_nan)
                    for (i64 i = 0; i < width; i++) room[i] += IS_NAN(p[i]) ? 0 : (WIDE)p[i];
                else
                    for (i64 i = 0; i < width; i++) room[i] += (WIDE)p[i];
            }
            for (i64 i = 0; i < width; i++) y[first + i] = (RESULT)room[i];
        }
    }
}

/* Running sums; `room` holds inner of them. */
static void NAME(running_sums)(const T *x, Shape s, RESULT *y, WIDE *room) {
    i64 first = 0;
    for (; s.inner == 1 && first + 4 <= s.outer; first += 4, x += 4 * s.n, y += 4 * s.n) { /* four rows at a time: each waits for itself */
        WIDE a = 0, b = 0, c = 0, d = 0;
        for (i64 k = 0; k < s.n; k++) {
            y[k] = (RESULT)(a += (WIDE)x[k]);
            y[s.n + k] = (RESULT)(b += (WIDE)x[s.n + k]);
            y[2 * s.n + k] = (RESULT)(c += (WIDE)x[2 * s.n + k]);
            y[3 * s.n + k] = (RESULT)(d += (WIDE)x[3 * s.n + k]);
        }
    }
    for (; first < s.outer; first++, x += s.n * s.inner, y += s.n * s.inner) {
        for (i64 i = 0; i < s.inner; i++) room[i] = 0;
        for (i64 k = 0; k < s.n; k++)
            for (i64 i = 0; i < s.inner; i++) y[k * s.inner + i] = (RESULT)(room[i] += (WIDE)x[k * s.inner + i]);
    }
}

#ifdef FLOATING
static inline __attribute__((always_inline)) double NAME(dot)(const T *x, const T *y, i64 n) {
    double lanes[LANES] = {0}, sum = 0;
    i64 whole = n / LANES * LANES;
    for (i64 k = 0; k < whole; k += LANES)
        for (int l = 0; l < LANES; l++) lanes[l] += (double)x[k + l] * (double)y[k + l];
    for (i64 k = whole; k < n; k++) sum += (double)x[k] * (double)y[k];
    for (int l = 0; l < LANES; l++) sum += lanes[l];
    return sum;
}

/* alpha (matrix @ vector) + beta y, or the product alone where there is no y. */
CLONED static void NAME(matrix_vector)(const T *m, const T *x, i64 rows, i64 n, double alpha, double beta, const T *y, T *r) {
    for (i64 i = 0; i < rows; i++) {
        double product = alpha * NAME(dot)(m + i * n, x, n);
        r[i] = (T)(y && beta != 0 ? product + beta * (double)y[i] : product);
    }
}

/* alpha (x outer z) + beta y, or the product alone. */
CLONED static void NAME(outer_product)(const T *x, const T *z, i64 rows, i64 n, T alpha, T beta, const T *y, T *restrict r) {
    for (i64 i = 0; i < rows; i++, r += n) {
        const T f = alpha * x[i], *restrict from = y ? y + i * n : NULL;
        if (from && beta != 0)
            for (i64 j = 0; j < n; j++) r[j] = beta * from[j] + f * z[j];
        else
            for (i64 j = 0; j < n; j++) r[j] = f * z[j];
    }
}

/* Products of rows: r[i, j] = x[i] . y[j]. */
CLONED static void NAME(row_products)(const T *x, const T *y, i64 rows, i64 columns, i64 n, T *r) {
    for (i64 i = 0; i < rows; i++)
        for (i64 j = 0; j < columns; j++) r[i * columns + j] = (T)NAME(dot)(x + i * n, y + j * n, n);
}
#undef FLOATING
#endif

#undef T
#undef NAME
#undef WIDE
#undef RESULT
#undef IS_NAN
