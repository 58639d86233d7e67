/* Statistics of channels, and what is done with them. A template, read after native_rows.h.
 *
 * x is (outer, channels, inner), and each channel has a mean and a deviation of its own.
 */

INLINE T N(root)(T x) { return sizeof(T) == 4 ? (T)sqrtf((float)x) : (T)sqrt((double)x); }

/* The sum of a term over (outer, inner) elements whose rows are `step` apart: short rows are added to each other before they are summed. */
#define CHANNEL_SUM(name, term, by_row, ...)                                                             \
    INLINE double N(name)(Py_ssize_t outer, Py_ssize_t inner, Py_ssize_t step, __VA_ARGS__) {            \
        double total = 0;                                                                                \
        const Py_ssize_t together = inner < BLOCK ? BLOCK / inner : 1;                                   \
        for (Py_ssize_t o = 0; inner >= BLOCK && o < outer; o++) {                                       \
            const Py_ssize_t at = o * step;                                                              \
            total += by_row;                                                                             \
        }                                                                                                \
        for (Py_ssize_t start = 0; inner < BLOCK && start < outer; start += together) {                  \
            const Py_ssize_t stop = start + together < outer ? start + together : outer;                 \
            T lane[LANES] = {0};                                                                         \
            for (Py_ssize_t o = start; o < stop; o++) {                                                  \
                Py_ssize_t i = o * step, end = i + inner;                                                \
                for (; i + LANES <= end; i += LANES)                                                     \
                    for (Py_ssize_t l = 0; l < LANES; l++) {                                             \
                        const Py_ssize_t at = i + l;                                                     \
                        lane[l] += term;                                                                 \
                    }                                                                                    \
                for (Py_ssize_t l = 0; l < end - i; l++) {                                               \
                    const Py_ssize_t at = i + l;                                                         \
                    lane[l] += term;                                                                     \
                }                                                                                        \
            }                                                                                            \
            for (int l = 0; l < LANES; l++)                                                              \
                total += lane[l];                                                                        \
        }                                                                                                \
        return total;                                                                                    \
    }
CHANNEL_SUM(sum_channel, x[at], N(sum_row)(x + at, inner), const T *x)
CHANNEL_SUM(sum_channel_squares, (x[at] - m) * (x[at] - m), N(sum_squares)(x + at, inner, m), const T *x, T m)
CHANNEL_SUM(dot_channel, g[at] * (x[at] - m), N(dot_row)(g + at, x + at, inner, m), const T *g, const T *x, T m)
#undef CHANNEL_SUM

CLONES static void N(channel_moments)(const T *x, T *mean, T *variance, Py_ssize_t outer, Py_ssize_t channels, Py_ssize_t inner,
                                      Py_ssize_t first, Py_ssize_t last) {
    double n = (double)outer * inner;
    for (Py_ssize_t c = first; inner > 1 && c < last; c++) {
        const T *from = x + c * inner;
        T m = mean[c] = (T)(N(sum_channel)(outer, inner, channels * inner, from) / n);
        variance[c] = (T)(N(sum_channel_squares)(outer, inner, channels * inner, from, m) / n);
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

CLONES static void N(channel_totals)(const T *x, T *sum, Py_ssize_t outer, Py_ssize_t channels, Py_ssize_t inner, Py_ssize_t first,
                                     Py_ssize_t last) {
    for (Py_ssize_t c = first; inner > 1 && c < last; c++)
        sum[c] = (T)N(sum_channel)(outer, inner, channels * inner, x + c * inner);
    for (Py_ssize_t c = first; inner == 1 && c < last; c += COLUMNS)
        N(sum_columns)(x + c, sum + c, outer, channels, last - c < COLUMNS ? last - c : COLUMNS, 1);
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
        sum[c] = (T)N(sum_channel)(outer, inner, channels * inner, g + c * inner);
        along[c] = (T)(N(dot_channel)(outer, inner, channels * inner, g + c * inner, x + c * inner, mean[c]) * rstd[c]);
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

INLINE void N(gradient_row)(const T *restrict g, const T *restrict x, T *restrict out, Py_ssize_t n, T mean, T scale, T shift, T slope) {
    for (Py_ssize_t i = 0; i < n; i++)
        out[i] = scale * (g[i] - shift - (x[i] - mean) * slope);
}

/* the gradient of x: w rstd (g - sum / n - standardized x * along / n) */
CLONES static void N(channel_gradient)(const T *restrict g, const T *restrict x, T *restrict out, const T *restrict mean,
                                       const T *restrict rstd, const T *restrict w, const T *restrict sum, const T *restrict along,
                                       double n, Py_ssize_t channels, Py_ssize_t inner, Py_ssize_t first, Py_ssize_t last) {
    T share = (T)(1 / n);
    for (Py_ssize_t row = first; row < last; row++) {
        if (inner > 1) {
            Py_ssize_t c = row % channels;
            N(gradient_row)(g + row * inner, x + row * inner, out + row * inner, inner, mean[c], w ? rstd[c] * w[c] : rstd[c], sum[c] * share,
                            along[c] * share * rstd[c]);
        } else {
            for (Py_ssize_t c = 0; c < channels; c++) {
                Py_ssize_t i = row * channels + c;
                T k = w ? rstd[c] * w[c] : rstd[c];
                out[i] = k * (g[i] - sum[c] * share - (x[i] - mean[c]) * (along[c] * share * rstd[c]));
            }
        }
    }
}

/* The same, channel by channel, with the sums: what a channel has is read twice while it is near. Where inner is more than 1. */
CLONES static void N(channel_backward)(const T *g, const T *x, T *out, const T *mean, const T *rstd, const T *w, T *sum, T *along,
                                       Py_ssize_t outer, Py_ssize_t channels, Py_ssize_t inner, Py_ssize_t first, Py_ssize_t last) {
    const T share = (T)(1 / ((double)outer * inner));
    const Py_ssize_t step = channels * inner;
    for (Py_ssize_t c = first; c < last; c++) {
        const Py_ssize_t at = c * inner;
        sum[c] = (T)N(sum_channel)(outer, inner, step, g + at);
        along[c] = (T)(N(dot_channel)(outer, inner, step, g + at, x + at, mean[c]) * rstd[c]);
        for (Py_ssize_t o = 0; o < outer; o++)
            N(gradient_row)(g + at + o * step, x + at + o * step, out + at + o * step, inner, mean[c], w ? rstd[c] * w[c] : rstd[c],
                            sum[c] * share, along[c] * share * rstd[c]);
    }
}

/* Of running statistics: what channels are lessened by, multiplied with and raised by, `together` times one after the other. */
static void N(running_numbers)(const T *mean, const T *variance, const T *w, const T *b, double eps, Py_ssize_t channels, Py_ssize_t together, T *into) {
    const Py_ssize_t n = channels * together;
    for (Py_ssize_t c = 0; c < channels; c++) {
        const T scale = 1 / N(root)(variance[c] + (T)eps);
        into[c] = mean[c], into[n + c] = w ? scale * w[c] : scale, into[2 * n + c] = b ? b[c] : 0;
    }
    for (Py_ssize_t i = channels; i < n; i++)
        for (int k = 0; k < 3; k++)
            into[k * n + i] = into[k * n + i - channels];
}

/* Batch norm in training: statistics, running ones moved (where there are any), the standardized x scaled and shifted. */
CLONES static void N(batch_norm)(const T *x, T *restrict out, const T *w, const T *b, T *running_mean, T *running_var, T *mean, T *rstd,
                                 double momentum, double eps, Py_ssize_t outer, Py_ssize_t channels, Py_ssize_t inner, Py_ssize_t first,
                                 Py_ssize_t last) {
    const double n = (double)outer * inner;
    const T kept = (T)(1 - momentum), taken = (T)momentum, unbiased = (T)(n > 1 ? n / (n - 1) : NAN);
    const Py_ssize_t step = channels * inner;
    for (Py_ssize_t c = first; c < last; c++) {
        const T *from = x + c * inner;
        const T m = mean[c] = (T)(N(sum_channel)(outer, inner, step, from) / n);
        const T variance = (T)(N(sum_channel_squares)(outer, inner, step, from, m) / n);
        const T r = rstd[c] = 1 / N(root)(variance + (T)eps), scale = w ? r * w[c] : r, shift = b ? b[c] : 0;
        if (running_mean)
            running_mean[c] = kept * running_mean[c] + taken * m;
        if (running_var)
            running_var[c] = kept * running_var[c] + taken * (variance * unbiased);
        for (Py_ssize_t o = 0; o < outer; o++)
            for (Py_ssize_t i = o * step + c * inner; i < o * step + (c + 1) * inner; i++)
                out[i] = (x[i] - m) * scale + shift;
    }
}
