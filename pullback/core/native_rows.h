/* Rows and columns of one dtype. A template: read once with T float and once with T double (see _native.c).
 *
 * x is (outer, n, inner): rows where inner is 1, columns otherwise. Sums are of many short chains whose results are
 * added in double. A NaN among the elements is the extreme.
 */

/* exp(x) for x <= 0 (and NaN), to about one unit in the last place; denormal results are kept */
INLINE T N(exp_down)(T x) {
    T y = x < LOWEST ? 0 : x; /* what gives 0, masked elements, takes no slow denormals */
    T shifted = y * (T)1.44269504088896340736 + MAGIC;
    T whole = shifted - MAGIC;
    T r = (y - whole * LN2_HIGH) - whole * LN2_LOW;
    T p;
    BITS bits, magic;
    T magic_value = MAGIC;
#ifdef DOUBLE
    p = 1.0 / 6227020800.0;
    p = p * r + 1.0 / 479001600.0;
    p = p * r + 1.0 / 39916800.0;
    p = p * r + 1.0 / 3628800.0;
    p = p * r + 1.0 / 362880.0;
    p = p * r + 1.0 / 40320.0;
    p = p * r + 1.0 / 5040.0;
#else
    p = (T)(1.0 / 5040.0);
#endif
    p = p * r + (T)(1.0 / 720.0);
    p = p * r + (T)(1.0 / 120.0);
    p = p * r + (T)(1.0 / 24.0);
    p = p * r + (T)(1.0 / 6.0);
    p = p * r + (T)0.5;
    p = p * r + (T)1.0;
    p = p * r + (T)1.0;
    memcpy(&bits, &shifted, sizeof bits);
    memcpy(&magic, &magic_value, sizeof magic);
    BITS e = bits - magic;
    BITS half = e >> 1; /* two steps, because 2^e alone may be too small */
    BITS first = (half + EXPONENT_BIAS) << EXPONENT_SHIFT, second = (e - half + EXPONENT_BIAS) << EXPONENT_SHIFT;
    T a, b;
    memcpy(&a, &first, sizeof a);
    memcpy(&b, &second, sizeof b);
    return x < LOWEST ? 0 : p * a * b;
}

INLINE double N(sum_row)(const T *x, Py_ssize_t n) {
    double total = 0;
    for (Py_ssize_t start = 0; start < n; start += BLOCK) {
        Py_ssize_t stop = start + BLOCK < n ? start + BLOCK : n, i = start;
        T lane[LANES] = {0};
        for (; i + LANES <= stop; i += LANES)
            for (int l = 0; l < LANES; l++)
                lane[l] += x[i + l];
        for (int l = 0; l < LANES; l++)
            total += lane[l];
        for (; i < stop; i++)
            total += x[i];
    }
    return total;
}

/* the sum of x (y - shift) */
INLINE double N(dot_row)(const T *x, const T *y, Py_ssize_t n, T shift) {
    double total = 0;
    for (Py_ssize_t start = 0; start < n; start += BLOCK) {
        Py_ssize_t stop = start + BLOCK < n ? start + BLOCK : n, i = start;
        T lane[LANES] = {0};
        for (; i + LANES <= stop; i += LANES)
            for (int l = 0; l < LANES; l++)
                lane[l] += x[i + l] * (y[i + l] - shift);
        for (int l = 0; l < LANES; l++)
            total += lane[l];
        for (; i < stop; i++)
            total += (double)x[i] * (y[i] - shift);
    }
    return total;
}

/* the largest (sign 1) or smallest (sign -1) element; NaN if there is one */
INLINE T N(extreme_row)(const T *x, Py_ssize_t n, T sign) {
    T best = sign * x[0], lane[LANES];
    BITS bad[LANES];
    Py_ssize_t i = 0;
    int nan = 0;
    if (n >= LANES) {
        for (int l = 0; l < LANES; l++) {
            lane[l] = sign * x[l];
            bad[l] = x[l] != x[l];
        }
        for (i = LANES; i + LANES <= n; i += LANES)
            for (int l = 0; l < LANES; l++) {
                T v = sign * x[i + l];
                lane[l] = v > lane[l] ? v : lane[l];
                bad[l] |= v != v;
            }
        for (int l = 0; l < LANES; l++) {
            best = lane[l] > best ? lane[l] : best;
            nan |= bad[l] != 0;
        }
    }
    for (; i < n; i++) {
        T v = sign * x[i];
        best = v > best ? v : best;
        nan |= v != v;
    }
    return nan || best != best ? (T)NAN : sign * best;
}

/* exp(x - top) into out (or nowhere), and the sum of it */
INLINE double N(exp_row)(const T *x, T *out, Py_ssize_t n, T top) {
    double total = 0;
    for (Py_ssize_t start = 0; start < n; start += BLOCK) {
        Py_ssize_t stop = start + BLOCK < n ? start + BLOCK : n, i = start;
        T lane[LANES] = {0};
        for (; i + LANES <= stop; i += LANES)
            for (int l = 0; l < LANES; l++) {
                T e = N(exp_down)(x[i + l] - top);
                lane[l] += e;
                if (out)
                    out[i + l] = e;
            }
        for (int l = 0; l < LANES; l++)
            total += lane[l];
        for (; i < stop; i++) {
            T e = N(exp_down)(x[i] - top);
            total += e;
            if (out)
                out[i] = e;
        }
    }
    return total;
}

INLINE void N(softmax_row)(const T *restrict x, T *restrict out, Py_ssize_t n, int logarithm) {
    T top = N(extreme_row)(x, n, (T)1);
    if (logarithm) {
        T shift = (T)log(N(exp_row)(x, NULL, n, top));
        for (Py_ssize_t i = 0; i < n; i++)
            out[i] = (x[i] - top) - shift;
    } else {
        T scale = (T)(1 / N(exp_row)(x, out, n, top));
        for (Py_ssize_t i = 0; i < n; i++)
            out[i] *= scale;
    }
}

INLINE void N(extreme_columns)(const T *x, T *out, Py_ssize_t n, Py_ssize_t inner, Py_ssize_t width, T sign) {
    BITS bad[COLUMNS];
    for (Py_ssize_t l = 0; l < width; l++) {
        out[l] = sign * x[l];
        bad[l] = out[l] != out[l];
    }
    for (Py_ssize_t i = 1; i < n; i++)
        for (Py_ssize_t l = 0; l < width; l++) {
            T v = sign * x[i * inner + l];
            out[l] = v > out[l] ? v : out[l];
            bad[l] |= v != v;
        }
    for (Py_ssize_t l = 0; l < width; l++)
        out[l] = bad[l] ? (T)NAN : sign * out[l];
}

INLINE void N(softmax_columns)(const T *restrict x, T *restrict out, Py_ssize_t n, Py_ssize_t inner, Py_ssize_t width, int logarithm) {
    T top[COLUMNS], scale[COLUMNS];
    double total[COLUMNS] = {0};
    N(extreme_columns)(x, top, n, inner, width, (T)1);
    for (Py_ssize_t start = 0; start < n; start += ROWS) {
        Py_ssize_t stop = start + ROWS < n ? start + ROWS : n;
        T part[COLUMNS] = {0};
        for (Py_ssize_t i = start; i < stop; i++)
            for (Py_ssize_t l = 0; l < width; l++) {
                T e = N(exp_down)(x[i * inner + l] - top[l]);
                part[l] += e;
                out[i * inner + l] = e;
            }
        for (Py_ssize_t l = 0; l < width; l++)
            total[l] += part[l];
    }
    for (Py_ssize_t l = 0; l < width; l++)
        scale[l] = logarithm ? (T)log(total[l]) : (T)(1 / total[l]);
    for (Py_ssize_t i = 0; i < n; i++)
        for (Py_ssize_t l = 0; l < width; l++)
            out[i * inner + l] = logarithm ? (x[i * inner + l] - top[l]) - scale[l] : out[i * inner + l] * scale[l];
}

CLONES static void N(softmax)(const T *x, T *out, Py_ssize_t outer, Py_ssize_t n, Py_ssize_t inner, int logarithm) {
    for (Py_ssize_t o = 0; o < outer; o++, x += n * inner, out += n * inner) {
        if (inner == 1)
            N(softmax_row)(x, out, n, logarithm);
        else
            for (Py_ssize_t c = 0; c < inner; c += COLUMNS)
                N(softmax_columns)(x + c, out + c, n, inner, inner - c < COLUMNS ? inner - c : COLUMNS, logarithm);
    }
}

INLINE double N(sum_squares)(const T *x, Py_ssize_t n, T mean) {
    double total = 0;
    for (Py_ssize_t start = 0; start < n; start += BLOCK) {
        Py_ssize_t stop = start + BLOCK < n ? start + BLOCK : n, i = start;
        T lane[LANES] = {0};
        for (; i + LANES <= stop; i += LANES)
            for (int l = 0; l < LANES; l++)
                lane[l] += (x[i + l] - mean) * (x[i + l] - mean);
        for (int l = 0; l < LANES; l++)
            total += lane[l];
        for (; i < stop; i++)
            total += (x[i] - mean) * (x[i] - mean);
    }
    return total;
}

INLINE void N(scale_row)(const T *restrict x, T *restrict out, const T *restrict w, const T *restrict b, Py_ssize_t n, T m, T r) {
    if (w && b)
        for (Py_ssize_t i = 0; i < n; i++)
            out[i] = (x[i] - m) * r * w[i] + b[i];
    else if (w)
        for (Py_ssize_t i = 0; i < n; i++)
            out[i] = (x[i] - m) * r * w[i];
    else if (b)
        for (Py_ssize_t i = 0; i < n; i++)
            out[i] = (x[i] - m) * r + b[i];
    else
        for (Py_ssize_t i = 0; i < n; i++)
            out[i] = (x[i] - m) * r;
}

CLONES static void N(layer_norm)(const T *x, T *out, const T *w, const T *b, T *mean, T *rstd, Py_ssize_t rows, Py_ssize_t n,
                                 double eps) {
    for (Py_ssize_t row = 0; row < rows; row++, x += n, out += n) {
        T m = mean[row] = (T)(N(sum_row)(x, n) / (double)n);
        T r = rstd[row] = (T)(1 / sqrt(N(sum_squares)(x, n, m) / (double)n + eps));
        N(scale_row)(x, out, w, b, n, m, r);
    }
}

INLINE void N(sum_columns)(const T *x, T *out, Py_ssize_t n, Py_ssize_t inner, Py_ssize_t width, double divisor) {
    double total[COLUMNS] = {0};
    for (Py_ssize_t start = 0; start < n; start += ROWS) {
        Py_ssize_t stop = start + ROWS < n ? start + ROWS : n;
        T part[COLUMNS] = {0};
        for (Py_ssize_t i = start; i < stop; i++)
            for (Py_ssize_t l = 0; l < width; l++)
                part[l] += x[i * inner + l];
        for (Py_ssize_t l = 0; l < width; l++)
            total[l] += part[l];
    }
    for (Py_ssize_t l = 0; l < width; l++)
        out[l] = (T)(total[l] / divisor);
}

/* The same of a few columns: several rows side by side at a time, so that sums do not wait for each other. */
INLINE void N(sum_narrow)(const T *x, T *out, Py_ssize_t n, Py_ssize_t inner, double divisor) {
    const Py_ssize_t together = NARROW / inner, wide = together * inner, rows = n / together;
    double total[NARROW] = {0};
    for (Py_ssize_t start = 0; start < rows; start += ROWS) {
        Py_ssize_t stop = start + ROWS < rows ? start + ROWS : rows;
        T part[NARROW] = {0};
        for (Py_ssize_t i = start; i < stop; i++)
            for (Py_ssize_t l = 0; l < wide; l++)
                part[l] += x[i * wide + l];
        for (Py_ssize_t l = 0; l < wide; l++)
            total[l] += part[l];
    }
    for (Py_ssize_t l = rows * wide; l < n * inner; l++)
        total[l % inner] += x[l];
    for (Py_ssize_t l = inner; l < wide; l++)
        total[l % inner] += total[l];
    for (Py_ssize_t l = 0; l < inner; l++)
        out[l] = (T)(total[l] / divisor);
}

INLINE void N(extreme_narrow)(const T *x, T *out, Py_ssize_t n, Py_ssize_t inner, T sign) {
    const Py_ssize_t together = NARROW / inner, wide = together * inner, rows = n / together;
    T best[NARROW];
    BITS bad[NARROW];
    for (Py_ssize_t l = 0; l < wide; l++) {
        best[l] = sign * x[l];
        bad[l] = best[l] != best[l];
    }
    for (Py_ssize_t i = 1; i < rows; i++)
        for (Py_ssize_t l = 0; l < wide; l++) {
            T v = sign * x[i * wide + l];
            best[l] = v > best[l] ? v : best[l];
            bad[l] |= v != v;
        }
    for (Py_ssize_t l = rows * wide, c = 0; l < n * inner; l++, c = c + 1 == inner ? 0 : c + 1) {
        T v = sign * x[l];
        best[c] = v > best[c] ? v : best[c];
        bad[c] |= v != v;
    }
    for (Py_ssize_t l = inner, c = 0; l < wide; l++, c = c + 1 == inner ? 0 : c + 1) {
        best[c] = best[l] > best[c] ? best[l] : best[c];
        bad[c] |= bad[l];
    }
    for (Py_ssize_t l = 0; l < inner; l++)
        out[l] = bad[l] ? (T)NAN : sign * best[l];
}

INLINE void N(softmax_backward_row)(const T *restrict g, const T *restrict y, T *restrict out, Py_ssize_t n, int logarithm) {
    T sum = (T)(logarithm ? N(sum_row)(g, n) : N(dot_row)(g, y, n, (T)0));
    if (logarithm)
        for (Py_ssize_t i = 0; i < n; i++)
            out[i] = g[i] - N(exp_down)(y[i]) * sum;
    else
        for (Py_ssize_t i = 0; i < n; i++)
            out[i] = y[i] * (g[i] - sum);
}

INLINE void N(softmax_backward_columns)(const T *restrict g, const T *restrict y, T *restrict out, Py_ssize_t n, Py_ssize_t inner, Py_ssize_t width,
                                        int logarithm) {
    double total[COLUMNS] = {0};
    T sum[COLUMNS];
    for (Py_ssize_t start = 0; start < n; start += ROWS) {
        Py_ssize_t stop = start + ROWS < n ? start + ROWS : n;
        T part[COLUMNS] = {0};
        for (Py_ssize_t i = start * inner; i < stop * inner; i += inner)
            for (Py_ssize_t l = 0; l < width; l++)
                part[l] += logarithm ? g[i + l] : g[i + l] * y[i + l];
        for (Py_ssize_t l = 0; l < width; l++)
            total[l] += part[l];
    }
    for (Py_ssize_t l = 0; l < width; l++)
        sum[l] = (T)total[l];
    for (Py_ssize_t i = 0; i < n * inner; i += inner)
        for (Py_ssize_t l = 0; l < width; l++)
            out[i + l] = logarithm ? g[i + l] - N(exp_down)(y[i + l]) * sum[l] : y[i + l] * (g[i + l] - sum[l]);
}

/* the gradient of softmax (or of its logarithm) from g and its result y, along the middle of (outer, n, inner) */
CLONES static void N(softmax_backward)(const T *g, const T *y, T *out, Py_ssize_t outer, Py_ssize_t n, Py_ssize_t inner, int logarithm) {
    for (Py_ssize_t o = 0; o < outer; o++, g += n * inner, y += n * inner, out += n * inner) {
        if (inner == 1)
            N(softmax_backward_row)(g, y, out, n, logarithm);
        else
            for (Py_ssize_t c = 0; c < inner; c += COLUMNS)
                N(softmax_backward_columns)(g + c, y + c, out + c, n, inner, inner - c < COLUMNS ? inner - c : COLUMNS, logarithm);
    }
}

/* the gradient of layer norm with respect to x */
CLONES static void N(layer_norm_backward)(const T *restrict g, const T *restrict x, const T *restrict w, const T *mean, const T *rstd,
                                          T *restrict out, Py_ssize_t rows, Py_ssize_t n) {
    for (Py_ssize_t row = 0; row < rows; row++, g += n, x += n, out += n) {
        T m = mean[row], r = rstd[row];
        for (Py_ssize_t i = 0; i < n; i++)
            out[i] = w ? g[i] * w[i] : g[i];
        T a = (T)(N(sum_row)(out, n) / (double)n);
        T b = (T)(N(dot_row)(out, x, n, m) * r / (double)n);
        for (Py_ssize_t i = 0; i < n; i++)
            out[i] = r * (out[i] - a - (x[i] - m) * r * b);
    }
}

/* sums over rows of g (x - mean) rstd and of g, of a block of rows and some columns, in the type itself */
INLINE void N(block_sums)(const T *g, const T *x, const T *mean, const T *rstd, T *restrict pw, T *restrict pb, Py_ssize_t n, Py_ssize_t width,
                          Py_ssize_t start, Py_ssize_t stop) {
    for (Py_ssize_t l = 0; l < width; l++)
        pw[l] = pb[l] = 0;
    for (Py_ssize_t i = start; i < stop; i++) {
        T m = mean[i], r = rstd[i];
        for (Py_ssize_t l = 0; l < width; l++) {
            T v = g[i * n + l];
            pb[l] += v;
            pw[l] += v * ((x[i * n + l] - m) * r);
        }
    }
}

/* the same over all rows, for columns from first to last */
CLONES static void N(parameter_sums)(const T *g, const T *x, const T *mean, const T *rstd, T *dw, T *db, Py_ssize_t rows, Py_ssize_t n,
                                     Py_ssize_t first, Py_ssize_t last) {
    for (Py_ssize_t c = first; c < last; c += COLUMNS) {
        Py_ssize_t width = last - c < COLUMNS ? last - c : COLUMNS;
        double w[COLUMNS] = {0}, b[COLUMNS] = {0};
        for (Py_ssize_t start = 0; start < rows; start += ROWS) {
            T pw[COLUMNS], pb[COLUMNS];
            N(block_sums)(g + c, x + c, mean, rstd, pw, pb, n, width, start, start + ROWS < rows ? start + ROWS : rows);
            for (Py_ssize_t l = 0; l < width; l++) {
                w[l] += pw[l];
                b[l] += pb[l];
            }
        }
        for (Py_ssize_t l = 0; l < width; l++) {
            dw[c + l] = (T)w[l];
            db[c + l] = (T)b[l];
        }
    }
}

/* a row of each for blocks of rows from first to last */
CLONES static void N(parameter_blocks)(const T *g, const T *x, const T *mean, const T *rstd, T *dw, T *db, Py_ssize_t rows, Py_ssize_t n,
                                       Py_ssize_t first, Py_ssize_t last) {
    for (Py_ssize_t k = first; k < last; k++)
        for (Py_ssize_t c = 0; c < n; c += COLUMNS) {
            T pw[COLUMNS], pb[COLUMNS];
            Py_ssize_t width = n - c < COLUMNS ? n - c : COLUMNS, stop = (k + 1) * ROWS < rows ? (k + 1) * ROWS : rows;
            N(block_sums)(g + c, x + c, mean, rstd, pw, pb, n, width, k * ROWS, stop);
            memcpy(dw + k * n + c, pw, sizeof(T) * width);
            memcpy(db + k * n + c, pb, sizeof(T) * width);
        }
}

CLONES static void N(total_of_blocks)(const T *blocks, T *out, Py_ssize_t many, Py_ssize_t n) {
    for (Py_ssize_t c = 0; c < n; c += COLUMNS) {
        Py_ssize_t width = n - c < COLUMNS ? n - c : COLUMNS;
        double total[COLUMNS] = {0};
        for (Py_ssize_t k = 0; k < many; k++)
            for (Py_ssize_t l = 0; l < width; l++)
                total[l] += blocks[k * n + c + l];
        for (Py_ssize_t l = 0; l < width; l++)
            out[c + l] = (T)total[l];
    }
}

/* sums of all prefixes of four rows at once, since each row is one long chain of additions */
INLINE void N(cumsum_rows)(const T *x, T *out, Py_ssize_t rows, Py_ssize_t n) {
    Py_ssize_t row = 0;
    for (; row + 4 <= rows; row += 4, x += 4 * n, out += 4 * n) {
        double total[4] = {0};
        for (Py_ssize_t i = 0; i < n; i++)
            for (int l = 0; l < 4; l++)
                out[l * n + i] = (T)(total[l] += x[l * n + i]);
    }
    for (; row < rows; row++, x += n, out += n) {
        double total = 0;
        for (Py_ssize_t i = 0; i < n; i++)
            out[i] = (T)(total += x[i]);
    }
}

INLINE void N(cumsum_columns)(const T *x, T *out, Py_ssize_t n, Py_ssize_t inner, Py_ssize_t width) {
    double total[COLUMNS] = {0};
    for (Py_ssize_t i = 0; i < n; i++)
        for (Py_ssize_t l = 0; l < width; l++)
            out[i * inner + l] = (T)(total[l] += x[i * inner + l]);
}

/* sums of all prefixes along the middle of (outer, n, inner) */
CLONES static void N(cumsum)(const T *x, T *out, Py_ssize_t outer, Py_ssize_t n, Py_ssize_t inner) {
    if (inner == 1) {
        N(cumsum_rows)(x, out, outer, n);
        return;
    }
    for (Py_ssize_t o = 0; o < outer; o++, x += n * inner, out += n * inner)
        for (Py_ssize_t c = 0; c < inner; c += COLUMNS)
            N(cumsum_columns)(x + c, out + c, n, inner, inner - c < COLUMNS ? inner - c : COLUMNS);
}

CLONES static void N(reduce)(const T *x, T *out, int kind, Py_ssize_t outer, Py_ssize_t n, Py_ssize_t inner) {
    T sign = kind == MIN ? (T)-1 : (T)1;
    double divisor = kind == MEAN ? (double)n : 1;
    for (Py_ssize_t o = 0; o < outer; o++, x += n * inner, out += inner) {
        if (inner == 1) {
            *out = kind == SUM || kind == MEAN ? (T)(N(sum_row)(x, n) / divisor) : N(extreme_row)(x, n, sign);
            continue;
        }
        if (inner <= NARROW / 2 && n >= NARROW) {
            if (kind == SUM || kind == MEAN)
                N(sum_narrow)(x, out, n, inner, divisor);
            else
                N(extreme_narrow)(x, out, n, inner, sign);
            continue;
        }
        for (Py_ssize_t c = 0; c < inner; c += COLUMNS) {
            Py_ssize_t width = inner - c < COLUMNS ? inner - c : COLUMNS;
            if (kind == SUM || kind == MEAN)
                N(sum_columns)(x + c, out + c, n, inner, width, divisor);
            else
                N(extreme_columns)(x + c, out + c, n, inner, width, sign);
        }
    }
}
