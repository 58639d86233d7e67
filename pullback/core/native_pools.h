/* Averages and largest elements of windows, for one type of elements: read by _pools.c with T and NAME defined.
 *
 * x is (planes, depth, height, width). Window (i, j, k) is that of the `Axis` of each dimension: from `from` to `to` by `step`, cut to what
 * is there; `counted` is how far an average counts, padding included.
 */
static void NAME(average_windows)(const T *x, T *y, i64 planes, const Axis *z, const Axis *h, const Axis *w, i64 divisor) {
    for (i64 p = 0; p < planes; p++, x += z->size * h->size * w->size)
        for (i64 a = 0; a < z->out; a++)
            for (i64 b = 0; b < h->out; b++)
                for (i64 c = 0; c < w->out; c++) {
                    const Window u = z->at[a], v = h->at[b], s = w->at[c];
                    double sum = 0; /* as kernels of planes do */
                    for (i64 i = u.from; i < u.to; i++)
                        for (i64 j = v.from; j < v.to; j++)
                            for (i64 k = s.from; k < s.to; k++) sum += x[(i * h->size + j) * w->size + k];
                    *y++ = (T)(sum / (double)(divisor ? divisor : u.counted * v.counted * s.counted));
                }
}

/* The same of pixels, (images, depth, height, width, channels), for rows `first` to `last` of results: channels side by side. */
CLONED_WIDE static void NAME(average_pixels)(const T *x, T *y, i64 first, i64 last, i64 channels, const Axis *z, const Axis *h, const Axis *w, i64 divisor) {
    for (i64 r = first; r < last; r++) {
        const i64 image = r / (z->out * h->out);
        const Window u = z->at[r / h->out % z->out], v = h->at[r % h->out];
        for (i64 c = 0; c < w->out; c++) {
            const Window s = w->at[c];
            const double count = (double)(divisor ? divisor : u.counted * v.counted * s.counted);
            for (i64 begin = 0; begin < channels; begin += TOGETHER) {
                const i64 n = channels - begin < TOGETHER ? channels - begin : TOGETHER;
                double sums[TOGETHER];
                T *to = y + (r * w->out + c) * channels + begin;
                for (i64 l = 0; l < n; l++) sums[l] = 0;
                for (i64 i = u.from; i < u.to; i++)
                    for (i64 j = v.from; j < v.to; j++)
                        for (i64 k = s.from; k < s.to; k++) {
                            const T *from = x + (((image * z->size + i) * h->size + j) * w->size + k) * channels + begin;
                            for (i64 l = 0; l < n; l++) sums[l] += from[l];
                        }
                for (i64 l = 0; l < n; l++) to[l] = (T)(sums[l] / count);
            }
        }
    }
}

/* The transpose of `average_windows`: y is a gradient, x begins as zeros. Divided and added in the type itself, as kernels of planes do. */
static void NAME(spread_over_windows)(const T *y, T *x, i64 planes, const Axis *z, const Axis *h, const Axis *w, i64 divisor) {
    for (i64 p = 0; p < planes; p++, x += z->size * h->size * w->size)
        for (i64 a = 0; a < z->out; a++)
            for (i64 b = 0; b < h->out; b++)
                for (i64 c = 0; c < w->out; c++) {
                    const Window u = z->at[a], v = h->at[b], s = w->at[c];
                    const T share = *y++ / (T)(divisor ? divisor : u.counted * v.counted * s.counted);
                    for (i64 i = u.from; i < u.to; i++)
                        for (i64 j = v.from; j < v.to; j++)
                            for (i64 k = s.from; k < s.to; k++) x[(i * h->size + j) * w->size + k] += share;
                }
}

/* Each gradient to its place in a plane of zeros, one after the other. */
static void NAME(send_to_places)(const T *y, T *x, const i64 *places, i64 planes, i64 each, i64 plane, int apart) {
    for (i64 p = 0; p < planes; p++, x += plane, y += each, places += each)
        for (i64 k = 0; k < each; k++) x[places[k]] = apart ? y[k] : x[places[k]] + y[k];
}

/* The first of the largest, or the last NaN as PyTorch finds it: every NaN takes the place. */
static void NAME(largest_in_windows)(const T *x, T *y, i64 *places, i64 planes, const Axis *z, const Axis *h, const Axis *w) {
    for (i64 p = 0; p < planes; p++, x += z->size * h->size * w->size)
        for (i64 a = 0; a < z->out; a++)
            for (i64 b = 0; b < h->out; b++)
                for (i64 c = 0; c < w->out; c++) {
                    const Window u = z->at[a], v = h->at[b], s = w->at[c];
                    i64 at = (u.from * h->size + v.from) * w->size + s.from;
                    T best = x[at];
                    for (i64 i = u.from; i < u.to; i += z->step)
                        for (i64 j = v.from; j < v.to; j += h->step)
                            for (i64 k = s.from; k < s.to; k += w->step) {
                                const i64 here = (i * h->size + j) * w->size + k;
                                if (x[here] > best || x[here] != x[here]) {
                                    best = x[here];
                                    at = here;
                                }
                            }
                    *y++ = best;
                    *places++ = at;
                }
}

/* The same of pixels; `places` may be NULL. */
CLONED_WIDE static void NAME(largest_pixels)(const T *x, T *y, i64 *places, i64 first, i64 last, i64 channels, const Axis *z, const Axis *h, const Axis *w) {
    for (i64 r = first; r < last; r++) {
        const i64 image = r / (z->out * h->out);
        const Window u = z->at[r / h->out % z->out], v = h->at[r % h->out];
        for (i64 c = 0; c < w->out; c++) {
            const Window s = w->at[c];
            const i64 start = (u.from * h->size + v.from) * w->size + s.from;
            T *restrict best = y + (r * w->out + c) * channels;
            i64 *restrict at = places ? places + (r * w->out + c) * channels : NULL;
            const T *all = x + image * z->size * h->size * w->size * channels;
            memcpy(best, all + start * channels, sizeof(T) * (size_t)channels);
            for (i64 l = 0; at && l < channels; l++) at[l] = start;
            for (i64 i = u.from; i < u.to; i += z->step)
                for (i64 j = v.from; j < v.to; j += h->step)
                    for (i64 k = s.from; k < s.to; k += w->step) {
                        const i64 here = (i * h->size + j) * w->size + k;
                        const T *restrict from = all + here * channels;
                        if (at)
                            for (i64 l = 0; l < channels; l++) {
                                const int more = (from[l] > best[l]) | (from[l] != from[l]);
                                best[l] = more ? from[l] : best[l];
                                at[l] = more ? here : at[l];
                            }
                        else
                            for (i64 l = 0; l < channels; l++) best[l] = (from[l] > best[l]) | (from[l] != from[l]) ? from[l] : best[l];
                    }
        }
    }
}

static T NAME(largest_at)(const T *x, const Rows *w, i64 from) { /* of a window that begins at `from`, cut to the row */
    i64 to = from + (w->kernel - 1) * w->dilation + 1;
    if (from < 0) from += (-from + w->dilation - 1) / w->dilation * w->dilation;
    T best = x[from];
    for (i64 i = from; i < to && i < w->size; i += w->dilation)
        if (x[i] > best || x[i] != x[i]) best = x[i];
    return best;
}

/* Tap after tap over a whole row of results. */
#define TAPS(stride)                                                           \
    for (i64 o = 0; o < n; o++) y[o] = x[o * (stride)];                        \
    for (i64 k = 1; k < kernel; k++) {                                         \
        const T *v = x + k * dilation;                                         \
        for (i64 o = 0; o < n; o++) {                                          \
            const T c = v[o * (stride)], b = y[o];                             \
            y[o] = (c > b) | (c != c) ? c : b;                                 \
        }                                                                      \
    }
CLONED static void NAME(largest_inside)(const T *restrict x, T *restrict y, i64 n, i64 kernel, i64 stride, i64 dilation) {
    if (stride == 1) {
        TAPS(1)
    } else if (stride == 2) {
        TAPS(2)
    } else {
        TAPS(stride)
    }
}
#undef TAPS

static void NAME(largest_in_rows)(const T *x, T *y, const Rows *w) {
    i64 reach = (w->kernel - 1) * w->dilation + 1, first = (w->padding + w->stride - 1) / w->stride;
    i64 fits = w->size + w->padding - reach, last = fits < 0 ? 0 : fits / w->stride + 1; /* windows first..last lie inside */
    if (last > w->out) last = w->out;
    if (first > last) first = last;
    for (i64 r = 0; r < w->rows; r++, x += w->size, y += w->out) {
        for (i64 o = 0; o < first; o++) y[o] = NAME(largest_at)(x, w, o * w->stride - w->padding);
        NAME(largest_inside)(x + first * w->stride - w->padding, y + first, last - first, w->kernel, w->stride, w->dilation);
        for (i64 o = last; o < w->out; o++) y[o] = NAME(largest_at)(x, w, o * w->stride - w->padding);
    }
}

#undef T
#undef NAME
