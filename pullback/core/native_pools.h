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

#undef T
#undef NAME
