/* Statistics of channels, and what is done with them. A template, read after native_rows.h.
 *
 * x is (outer, channels, inner), and each channel has a mean and a deviation of its own.
 */

CLONES static void N(channel_moments)(const T *x, T *mean, T *variance, Py_ssize_t outer, Py_ssize_t channels, Py_ssize_t inner,
                                      Py_ssize_t first, Py_ssize_t last) {
    double n = (double)outer * inner;
    for (Py_ssize_t c = first; inner > 1 && c < last; c++) {
        double sum = 0, squares = 0;
        for (Py_ssize_t o = 0; o < outer; o++)
            sum += N(sum_row)(x + (o * channels + c) * inner, inner);
        T m = mean[c] = (T)(sum / n);
        for (Py_ssize_t o = 0; o < outer; o++)
            squares += N(sum_squares)(x + (o * channels + c) * inner, inner, m);
        variance[c] = (T)(squares / n);
    }
    for (Py_ssize_t c = first; inner == 1 && c < last; c += COLUMNS) {
        Py_ssize_t width = last - c < COLUMNS ? last - c : COLUMNS;
        double squares[COLUMNS] = {0};
        N(sum_columns)(x + c, mean + c, outer, channels, width, n);
        for (Py_ssize_t start = 0; start < outer; start += ROWS) {
            Py_ssize_t stop = start + ROWS < outer ? start + ROWS : outer;
            T part[COLUMNS] = {0};
            for (Py_ssize_t i = start; i < stop; i++)
                for (Py_ssize_t l = 0; l < width; l++) {
                    T d = x[i * channels + c + l] - mean[c + l];
                    part[l] += d * d;
                }
            for (Py_ssize_t l = 0; l < width; l++)
                squares[l] += part[l];
        }
        for (Py_ssize_t l = 0; l < width; l++)
            variance[c + l] = (T)(squares[l] / n);
    }
}

/* (x - mean) scale + shift, in rows of one channel each, or of all channels where inner is 1 */
CLONES static void N(channel_scale)(const T *restrict x, T *restrict out, const T *restrict mean, const T *restrict scale,
                                    const T *restrict shift, Py_ssize_t channels, Py_ssize_t inner, Py_ssize_t first, Py_ssize_t last) {
    for (Py_ssize_t row = first; row < last; row++) {
        if (inner > 1) {
            Py_ssize_t c = row % channels;
            T m = mean[c], k = scale[c], b = shift ? shift[c] : 0;
            for (Py_ssize_t i = 0; i < inner; i++)
                out[row * inner + i] = (x[row * inner + i] - m) * k + b;
        } else if (shift) {
            for (Py_ssize_t c = 0; c < channels; c++)
                out[row * channels + c] = (x[row * channels + c] - mean[c]) * scale[c] + shift[c];
        } else {
            for (Py_ssize_t c = 0; c < channels; c++)
                out[row * channels + c] = (x[row * channels + c] - mean[c]) * scale[c];
        }
    }
}

/* sums of g, and of g times the standardized x, for each channel */
CLONES static void N(channel_sums)(const T *g, const T *x, const T *mean, const T *rstd, T *sum, T *along, Py_ssize_t outer,
                                   Py_ssize_t channels, Py_ssize_t inner, Py_ssize_t first, Py_ssize_t last) {
    for (Py_ssize_t c = first; inner > 1 && c < last; c++) {
        double s = 0, a = 0;
        for (Py_ssize_t o = 0; o < outer; o++) {
            Py_ssize_t at = (o * channels + c) * inner;
            s += N(sum_row)(g + at, inner);
            a += N(dot_row)(g + at, x + at, inner, mean[c]);
        }
        sum[c] = (T)s;
        along[c] = (T)(a * rstd[c]);
    }
    for (Py_ssize_t c = first; inner == 1 && c < last; c += COLUMNS) {
        Py_ssize_t width = last - c < COLUMNS ? last - c : COLUMNS;
        double s[COLUMNS] = {0}, a[COLUMNS] = {0};
        for (Py_ssize_t start = 0; start < outer; start += ROWS) {
            Py_ssize_t stop = start + ROWS < outer ? start + ROWS : outer;
            T ps[COLUMNS] = {0}, pa[COLUMNS] = {0};
            for (Py_ssize_t i = start; i < stop; i++)
                for (Py_ssize_t l = 0; l < width; l++) {
                    T v = g[i * channels + c + l];
                    ps[l] += v;
                    pa[l] += v * (x[i * channels + c + l] - mean[c + l]);
                }
            for (Py_ssize_t l = 0; l < width; l++) {
                s[l] += ps[l];
                a[l] += pa[l];
            }
        }
        for (Py_ssize_t l = 0; l < width; l++) {
            sum[c + l] = (T)s[l];
            along[c + l] = (T)(a[l] * rstd[c + l]);
        }
    }
}

/* the gradient of x: w rstd (g - sum / n - standardized x * along / n) */
CLONES static void N(channel_gradient)(const T *restrict g, const T *restrict x, T *restrict out, const T *restrict mean,
                                       const T *restrict rstd, const T *restrict w, const T *restrict sum, const T *restrict along,
                                       double n, Py_ssize_t channels, Py_ssize_t inner, Py_ssize_t first, Py_ssize_t last) {
    T share = (T)(1 / n);
    for (Py_ssize_t row = first; row < last; row++) {
        if (inner > 1) {
            Py_ssize_t c = row % channels;
            T m = mean[c], k = w ? rstd[c] * w[c] : rstd[c], a = sum[c] * share, b = along[c] * share * rstd[c];
            for (Py_ssize_t i = row * inner; i < (row + 1) * inner; i++)
                out[i] = k * (g[i] - a - (x[i] - m) * b);
        } else {
            for (Py_ssize_t c = 0; c < channels; c++) {
                Py_ssize_t i = row * channels + c;
                T k = w ? rstd[c] * w[c] : rstd[c];
                out[i] = k * (g[i] - sum[c] * share - (x[i] - mean[c]) * (along[c] * share * rstd[c]));
            }
        }
    }
}
