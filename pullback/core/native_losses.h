/* Normalisations and losses, for one type of elements: read by _losses.c with T and NAME defined. Sums are formed in double precision. */

static inline __attribute__((always_inline)) void NAME(moments)(const T *x, i64 blocks, i64 step, i64 n, double *mean, double *variance) {
    double sum = 0, squares = 0, count = (double)(blocks * n);
    for (i64 b = 0; b < blocks; b++) {
        double lanes[LANES] = {0};
        const T *p = x + b * step;
        i64 whole = n / LANES * LANES;
        for (i64 k = 0; k < whole; k += LANES)
            for (int l = 0; l < LANES; l++) lanes[l] += (double)p[k + l];
        for (i64 k = whole; k < n; k++) sum += (double)p[k];
        for (int l = 0; l < LANES; l++) sum += lanes[l];
    }
    *mean = sum / count;
    for (i64 b = 0; b < blocks; b++) {
        double lanes[LANES] = {0};
        const T *p = x + b * step;
        i64 whole = n / LANES * LANES;
        for (i64 k = 0; k < whole; k += LANES)
            for (int l = 0; l < LANES; l++) lanes[l] += ((double)p[k + l] - *mean) * ((double)p[k + l] - *mean);
        for (i64 k = whole; k < n; k++) squares += ((double)p[k] - *mean) * ((double)p[k] - *mean);
        for (int l = 0; l < LANES; l++) squares += lanes[l];
    }
    *variance = squares / count;
}

static inline __attribute__((always_inline)) void NAME(scale_row)(const T *x, T *y, i64 n, double mean, double scale, double shift) {
    const T m = (T)mean, f = (T)scale, s = (T)shift;
    for (i64 k = 0; k < n; k++) y[k] = (x[k] - m) * f + s;
}

/* (samples, channels): columns side by side; `room` holds two numbers for each channel. */
CLONED static void NAME(column_norm)(const T *x, i64 samples, i64 channels, const T *weight, const T *bias, const T *means, const T *variances,
                              double eps, T *y, T *kept_means, T *kept_scales, double *room) {
    double *restrict mean = room, *restrict scale = room + channels;
    for (i64 c = 0; c < 2 * channels; c++) room[c] = 0;
    for (i64 i = 0; !means && i < samples; i++)
        for (i64 c = 0; c < channels; c++) mean[c] += (double)x[i * channels + c];
    for (i64 c = 0; c < channels; c++) mean[c] = means ? (double)means[c] : mean[c] / (double)samples;
    for (i64 i = 0; !means && i < samples; i++)
        for (i64 c = 0; c < channels; c++) scale[c] += ((double)x[i * channels + c] - mean[c]) * ((double)x[i * channels + c] - mean[c]);
    for (i64 c = 0; c < channels; c++) {
        scale[c] = 1 / sqrt((means ? (double)variances[c] : scale[c] / (double)samples) + eps);
        if (kept_means) {
            kept_means[c] = (T)mean[c];
            kept_scales[c] = (T)scale[c];
        }
        if (weight) scale[c] *= (double)weight[c];
    }
    for (i64 i = 0; i < samples; i++)
        for (i64 c = 0; c < channels; c++)
            y[i * channels + c] = (T)(((double)x[i * channels + c] - mean[c]) * scale[c] + (bias ? (double)bias[c] : 0));
}

/* (samples, channels, n): statistics of each channel, or those that are given. */
CLONED static void NAME(batch_norm)(const T *x, i64 samples, i64 channels, i64 n, const T *weight, const T *bias, const T *means, const T *variances,
                             double eps, T *y, T *kept_means, T *kept_scales) {
    for (i64 c = 0; c < channels; c++) {
        double mean, variance;
        if (means) {
            mean = (double)means[c];
            variance = (double)variances[c];
        } else
            NAME(moments)(x + c * n, samples, channels * n, n, &mean, &variance);
        double scale = 1 / sqrt(variance + eps);
        if (kept_means) {
            kept_means[c] = (T)mean;
            kept_scales[c] = (T)scale;
        }
        if (weight) scale *= (double)weight[c];
        for (i64 i = 0; i < samples; i++)
            NAME(scale_row)(x + (i * channels + c) * n, y + (i * channels + c) * n, n, mean, scale, bias ? (double)bias[c] : 0);
    }
}

/* (samples, groups, channels of a group, n) */
CLONED static void NAME(group_norm)(const T *x, i64 samples, i64 groups, i64 each, i64 n, const T *weight, const T *bias, double eps, T *y, T *means,
                             T *scales) {
    for (i64 b = 0; b < samples * groups; b++, x += each * n, y += each * n) {
        double mean, variance;
        NAME(moments)(x, 1, 0, each * n, &mean, &variance);
        double scale = 1 / sqrt(variance + eps);
        means[b] = (T)mean;
        scales[b] = (T)scale;
        for (i64 c = 0; c < each; c++) {
            i64 channel = b % groups * each + c;
            NAME(scale_row)(x + c * n, y + c * n, n, mean, weight ? scale * (double)weight[channel] : scale, bias ? (double)bias[channel] : 0);
        }
    }
}

/* The sum of losses of elements: squares of differences, or parabolas that are lines from `until` on. Each is formed in the elements' dtype. */
CLONED_WIDE static double NAME(loss_sum)(const T *x, const T *y, i64 n, int is_square, T until) {
    double lanes[LANES] = {0}, sum = 0;
    i64 whole = n / LANES * LANES;
#define SQUARE(k) ((x[k] - y[k]) * (x[k] - y[k]))
#define SIZE(k) (x[k] > y[k] ? x[k] - y[k] : y[k] - x[k])
#define NEAR(k) (SIZE(k) > until ? until : SIZE(k))
#define CORNER(k) ((SIZE(k) - (T)0.5 * NEAR(k)) * NEAR(k))
    if (is_square)
        for (i64 k = 0; k < whole; k += LANES)
            for (int l = 0; l < LANES; l++) lanes[l] += (double)SQUARE(k + l);
    else
        for (i64 k = 0; k < whole; k += LANES)
            for (int l = 0; l < LANES; l++) lanes[l] += (double)CORNER(k + l);
    for (i64 k = whole; k < n; k++) sum += is_square ? (double)SQUARE(k) : (double)CORNER(k);
    for (int l = 0; l < LANES; l++) sum += lanes[l];
#undef SQUARE
#undef SIZE
#undef NEAR
#undef CORNER
    return sum;
}

/* The sum of cross entropies of probabilities, each formed in the elements' dtype; -1 where one is none. */
static double NAME(probability_sum)(const T *x, const T *y, i64 n) {
    double sum = 0;
    for (i64 k = 0; k < n; k++) {
        if (!(x[k] >= 0 && x[k] <= 1 && y[k] >= 0 && y[k] <= 1)) return -1;
        const T no = LOG1P(-x[k]), yes = LOG(x[k]);
        sum += (double)((y[k] - 1) * (no < -100 ? -100 : no) - y[k] * (yes < -100 ? -100 : yes));
    }
    return sum;
}

/* The sum of distances of pairs that belong together (1), and of margins to those that do not (-1); both where it is neither. */
static double NAME(hinge_sum)(const T *x, const T *y, i64 n, T margin) {
    double sum = 0;
    for (i64 k = 0; k < n; k++) {
        const T apart = margin - x[k], left = apart < 0 ? 0 : apart;
        sum += (double)((y[k] != 1 ? left : 0) + (y[k] != -1 ? x[k] : 0));
    }
    return sum;
}

/* The sum of minus the logarithms of what the softmax of each row gives the wanted class. */
CLONED_WIDE static double NAME(entropy_sum)(const T *x, const i64 *wanted, i64 rows, i64 classes) {
    double sum = 0;
    const i64 whole = classes / LANES * LANES;
    for (i64 r = 0; r < rows; r++, x += classes) {
        T tops[LANES], top = x[0];
        double lanes[LANES] = {0}, total = 0;
        for (int l = 0; l < LANES; l++) tops[l] = top;
        for (i64 k = 0; k < whole; k += LANES)
            for (int l = 0; l < LANES; l++) tops[l] = x[k + l] > tops[l] ? x[k + l] : tops[l];
        for (i64 k = whole; k < classes; k++) top = x[k] > top ? x[k] : top;
        for (int l = 0; l < LANES; l++) top = tops[l] > top ? tops[l] : top;
        for (i64 k = 0; k < whole; k += LANES)
            for (int l = 0; l < LANES; l++) lanes[l] += (double)EXP(x[k + l] - top);
        for (i64 k = whole; k < classes; k++) total += (double)EXP(x[k] - top);
        for (int l = 0; l < LANES; l++) total += lanes[l];
        sum += (double)(T)(log(total) - (double)(x[wanted[r]] - top));
    }
    return sum;
}

/* (samples, channels, n): each element by a power of the mean of squares of `size` channels around it. */
static void NAME(response_norm)(const T *x, T *y, i64 samples, i64 channels, i64 n, i64 size, T alpha, T beta, T k) {
    for (i64 s = 0; s < samples; s++, x += channels * n, y += channels * n)
        for (i64 c = 0; c < channels; c++) {
            const i64 first = c - size / 2 < 0 ? 0 : c - size / 2, end = c - size / 2 + size > channels ? channels : c - size / 2 + size;
            for (i64 i = 0; i < n; i++) {
                T sum = 0;
                for (i64 d = first; d < end; d++) sum += x[d * n + i] * x[d * n + i];
                y[c * n + i] = x[c * n + i] / POW(sum / (T)size * alpha + k, beta);
            }
        }
}

/* (rows, classes): the margins that other classes come within, of one wanted class. */
static void NAME(margins)(const T *x, const i64 *wanted, i64 rows, i64 classes, int p, double margin, const T *weight, double *losses) {
    for (i64 r = 0; r < rows; r++, x += classes) {
        double sum = 0;
        for (i64 c = 0; c < classes; c++) {
            double z = (double)(T)((T)margin - x[wanted[r]] + x[c]);
            if (c == wanted[r] || !(z > 0)) continue;
            sum += (p == 1 ? z : z * z) * (weight ? (double)weight[wanted[r]] : 1);
        }
        losses[r] = sum / (double)classes;
    }
}

/* The same for the labels of a row up to the first that is negative; `is_wanted` holds a mark for each class. */
static void NAME(label_margins)(const T *x, const i64 *labels, i64 rows, i64 classes, char *is_wanted, double *losses) {
    for (i64 r = 0; r < rows; r++, x += classes, labels += classes) {
        double sum = 0;
        i64 many = 0;
        memset(is_wanted, 0, (size_t)classes);
        while (many < classes && labels[many] >= 0) is_wanted[labels[many++]] = 1;
        for (i64 j = 0; j < many; j++)
            for (i64 c = 0; c < classes; c++) {
                double z = (double)(T)(1 - x[labels[j]] + x[c]);
                if (!is_wanted[c] && z > 0) sum += z;
            }
        losses[r] = sum / (double)classes;
    }
}

/* Margins as above, without squares, and by how much each loss changes with each score. */
static void NAME(margin_slopes)(const T *x, const i64 *wanted, i64 rows, i64 classes, double margin, const T *weight, T *losses, T *slopes) {
    for (i64 r = 0; r < rows; r++, x += classes, slopes += classes) {
        const double share = (weight ? (double)weight[wanted[r]] : 1) / (double)classes;
        double sum = 0;
        i64 many = 0;
        for (i64 c = 0; c < classes; c++) {
            const double z = (double)(T)((T)margin - x[wanted[r]] + x[c]);
            const int counts = c != wanted[r] && z > 0;
            slopes[c] = counts ? (T)share : 0;
            sum += counts ? z * share : 0;
            many += counts;
        }
        slopes[wanted[r]] = many ? (T)(-share * (double)many) : 0; /* whatever the weight is */
        losses[r] = (T)sum;
    }
}

static void NAME(label_slopes)(const T *x, const i64 *labels, i64 rows, i64 classes, char *is_wanted, T *losses, T *slopes) {
    for (i64 r = 0; r < rows; r++, x += classes, labels += classes, slopes += classes) {
        double sum = 0;
        i64 many = 0;
        memset(is_wanted, 0, (size_t)classes);
        while (many < classes && labels[many] >= 0) is_wanted[labels[many++]] = 1;
        for (i64 c = 0; c < classes; c++) slopes[c] = 0;
        for (i64 j = 0; j < many; j++)
            for (i64 c = 0; c < classes; c++) {
                const double z = (double)(T)(1 - x[labels[j]] + x[c]);
                if (is_wanted[c] || !(z > 0)) continue;
                sum += z;
                slopes[c] += 1; /* whole numbers: divided at the end */
                slopes[labels[j]] -= 1;
            }
        for (i64 c = 0; c < classes; c++) slopes[c] /= (T)classes;
        losses[r] = (T)(sum / (double)classes);
    }
}

/* The gradient of `gated`, side by side as x is. */
CLONED static void NAME(gated_slopes)(const T *g, const T *x, T *y, i64 outer, i64 half) {
    for (i64 o = 0; o < outer; o++, g += half, x += 2 * half, y += 2 * half)
        for (i64 k = 0; k < half; k++) {
            const T s = 1 / (1 + EXP(-x[half + k]));
            y[k] = g[k] * s;
            y[half + k] = g[k] * x[k] * (s * (1 - s));
        }
}

/* x times the logistic function of what stands in the other half of the dimension. */
CLONED static void NAME(gated)(const T *x, T *y, i64 outer, i64 half) {
    for (i64 o = 0; o < outer; o++, x += 2 * half, y += half)
        for (i64 k = 0; k < half; k++) y[k] = x[k] * (1 / (1 + EXP(-x[half + k])));
}

/* Cross products of vectors along the middle of (outer, 3, inner), by steps in elements. */
static void NAME(cross)(const T *x, const T *z, T *y, i64 outer, i64 inner, const Py_ssize_t *from_x, const Py_ssize_t *from_z) {
    for (i64 o = 0; o < outer; o++)
        for (i64 i = 0; i < inner; i++) {
            const T *a = x + o * from_x[0] + i * from_x[2], *b = z + o * from_z[0] + i * from_z[2];
            T *r = y + o * 3 * inner + i;
            for (int k = 0; k < 3; k++) {
                const Py_ssize_t u = (k + 1) % 3, v = (k + 2) % 3;
                r[k * inner] = a[u * from_x[1]] * b[v * from_z[1]] - a[v * from_x[1]] * b[u * from_z[1]];
            }
        }
}

