/* Runs, quantiles, histograms, distances and bags of rows, for one type of elements: read by _counts.c with T, NAME and IS_NAN defined.
 * FLOATING says that T is float or double, with the functions of its precision. */

/* ---- runs of equal elements */
CLONED static i64 NAME(runs)(const T *x, i64 n) { /* how many there are */
    i64 many = n > 0;
    for (i64 k = 1; k < n; k++) many += !(x[k] == x[k - 1]);
    return many;
}

/* The first of each run; where they are wanted, for each element its run, and for each run its length. */
static void NAME(first_of_runs)(const T *x, i64 n, i64 many, T *first, i64 *run, i64 *length) {
    i64 r = 0, begin = 0;
    first[0] = x[0];
    for (i64 k = r = 1; !run && !length && r < many; k++) { /* an element that begins no run is written over */
        first[r] = x[k];
        r += !(x[k] == x[k - 1]);
    }
    for (i64 k = r = 0; (run || length) && k < n; k++) {
        if (k && !(x[k] == x[k - 1])) {
            if (length) length[r] = k - begin;
            begin = k;
            first[++r] = x[k];
        }
        if (run) run[k] = r;
    }
    if (length) length[many - 1] = n - begin;
}

#ifdef FLOATING
/* ---- quantiles */
/* Elements around place k of the sorted row: those before it are not larger, those behind it not smaller. There is no NaN. */
static void NAME(select)(T *x, i64 n, i64 k) {
    i64 low = 0, high = n - 1;
    while (low < high) {
        T a = x[low], b = x[(low + high) / 2], c = x[high], pivot = a < b ? (b < c ? b : a < c ? c : a) : (a < c ? a : b < c ? c : b);
        i64 i = low, j = high;
        while (i <= j) {
            while (x[i] < pivot) i++;
            while (x[j] > pivot) j--;
            if (i <= j) {
                T held = x[i];
                x[i++] = x[j];
                x[j--] = held;
            }
        }
        if (k <= j)
            high = j;
        else if (k >= i)
            low = i;
        else
            return;
    }
}

/* What stands at a rank between the elements of a row, which are moved. */
static T NAME(at_rank)(T *x, i64 n, T rank, int how) {
    rank = how == LOWER ? FLOOR(rank) : how == HIGHER ? CEIL(rank) : how == NEAREST ? ROUND(rank) : rank;
    i64 below = (i64)rank, above = (i64)CEIL(rank);
    NAME(select)(x, n, below);
    T low = x[below], high = low;
    if (how != LINEAR && how != MIDPOINT) return low;
    if (above > below) {
        high = x[above];
        for (i64 k = above + 1; k < n; k++) high = x[k] < high ? x[k] : high;
    }
    T weight = how == LINEAR ? rank - (T)below : (T)0.5, difference = high - low;
    return weight < (T)0.5 ? low + weight * difference : high - difference * (1 - weight);
}

/* The quantile q of every row along the middle of (outer, n, inner). */
static void NAME(quantiles)(const T *x, i64 outer, i64 n, i64 inner, T q, int how, int ignore_nan, T *row, T *y) {
    for (i64 o = 0; o < outer; o++)
        for (i64 i = 0; i < inner; i++) {
            i64 many = 0, nans = 0;
            for (i64 k = 0; k < n; k++) {
                T v = x[(o * n + k) * inner + i];
                row[many] = v;
                many += v == v;
                nans += v != v;
            }
            *y++ = !many || (nans && !ignore_nan) ? (T)NAN : NAME(at_rank)(row, many, q * (T)(many - 1), how);
        }
}

/* ---- histograms */
CLONED static void NAME(bounds)(const T *x, i64 n, T *low, T *high, int *odd) { /* smallest and largest; whether one is no finite number */
    T lows[LANES], highs[LANES];
    int odds[LANES] = {0};
    i64 whole = n / LANES * LANES;
    for (int l = 0; l < LANES; l++) lows[l] = highs[l] = x[0];
    for (i64 k = 0; k < whole; k += LANES)
        for (int l = 0; l < LANES; l++) {
            T v = x[k + l];
            odds[l] |= !(v - v == 0);
            lows[l] = v < lows[l] ? v : lows[l];
            highs[l] = v > highs[l] ? v : highs[l];
        }
    for (i64 k = whole; k < n; k++) {
        odds[0] |= !(x[k] - x[k] == 0);
        lows[0] = x[k] < lows[0] ? x[k] : lows[0];
        highs[0] = x[k] > highs[0] ? x[k] : highs[0];
    }
    *low = lows[0], *high = highs[0], *odd = odds[0];
    for (int l = 1; l < LANES; l++) {
        *low = lows[l] < *low ? lows[l] : *low;
        *high = highs[l] > *high ? highs[l] : *high;
        *odd |= odds[l];
    }
}

static void NAME(even_edges)(T low, T high, i64 bins, T *edges) { /* from the nearer end, so that both ends are exact */
    T step = (high - low) / (T)bins;
    for (i64 k = 0; k <= bins; k++) edges[k] = k < (bins + 1) / 2 ? low + step * (T)k : high - step * (T)(bins - k);
}

/* By even edges: near the place that the distance says, then between the edges. */
CLONED static void NAME(count_between)(const T *x, i64 n, const T *edges, i64 bins, i64 *counts) {
    const T low = edges[0], high = edges[bins], scale = (T)bins / (high - low);
    int near[BLOCK];
    for (i64 first = 0; first < n; first += BLOCK) {
        i64 many = n - first < BLOCK ? n - first : BLOCK;
        const T *v = x + first;
        for (i64 k = 0; k < many; k++) {
            T place = (v[k] - low) * scale;
            near[k] = (v[k] >= low) & (v[k] <= high) ? (int)(place < (T)(bins - 1) ? place : (T)(bins - 1)) : -1;
        }
        for (i64 k = 0; k < many; k++) {
            int at = near[k];
            if (at < 0) continue;
            while (at > 0 && v[k] < edges[at]) at--;
            while (at < bins - 1 && v[k] >= edges[at + 1]) at++;
            counts[at]++;
        }
    }
}

/* By distance alone. */
CLONED static void NAME(count_scaled)(const T *x, i64 n, T low, T high, T width, i64 bins, i64 *counts) {
    int near[BLOCK];
    for (i64 first = 0; first < n; first += BLOCK) {
        i64 many = n - first < BLOCK ? n - first : BLOCK;
        const T *v = x + first;
        for (i64 k = 0; k < many; k++) {
            T place = (v[k] - low) * (T)bins / width;
            near[k] = (v[k] >= low) & (v[k] <= high) ? (int)(place < (T)(bins - 1) ? place : (T)(bins - 1)) : -1;
        }
        for (i64 k = 0; k < many; k++)
            if (near[k] >= 0) counts[near[k]]++;
    }
}

/* ---- distances between rows */
#define HALVED(half) \
    for (int l = 0; l < half; l++) lanes[l] += lanes[l + half];
#define SUMMED(term)                                                                         \
    for (i64 k = 0; k < whole; k += LANES)                                                   \
        for (int l = 0; l < LANES; l++) {                                                    \
            const T d = a[k + l] - b[k + l];                                                 \
            lanes[l] += (term);                                                              \
        }                                                                                    \
    for (i64 k = whole; k < n; k++) {                                                        \
        const T d = a[k] - b[k];                                                             \
        sum += (term);                                                                       \
    }                                                                                        \
    HALVED(16) HALVED(8) HALVED(4) HALVED(2)                                                 \
    sum += lanes[0] + lanes[1]
static inline __attribute__((always_inline)) T NAME(distance)(const T *a, const T *b, i64 n, int order) {
    T lanes[LANES] = {0}, sum = 0;
    const i64 whole = n / LANES * LANES;
    if (order == 2) {
        SUMMED(d * d);
        return SQRT(sum);
    }
    if (order == 1) {
        SUMMED(d < 0 ? -d : d);
        return sum;
    }
    for (i64 k = 0; k < n; k++) { /* the largest; a NaN stays */
        T d = a[k] - b[k];
        d = d < 0 ? -d : d;
        sum = (d > sum) | (d != d) ? d : sum;
    }
    return sum;
}
#undef SUMMED
#undef HALVED

/* Of row i of x and row j of z, for rows first to last of x: all j, or those behind i, which stand one after the other. */
CLONED static void NAME(distances)(const T *x, i64 first, i64 last, const T *z, i64 many, i64 n, int order, int behind, T *y) {
    for (i64 i = first; i < last; i++) {
        T *into = behind ? y + i * many - i * (i + 1) / 2 - i - 1 : y + i * many;
        if (order == 2)
            for (i64 j = behind ? i + 1 : 0; j < many; j++) into[j] = NAME(distance)(x + i * n, z + j * n, n, 2);
        else if (order == 1)
            for (i64 j = behind ? i + 1 : 0; j < many; j++) into[j] = NAME(distance)(x + i * n, z + j * n, n, 1);
        else
            for (i64 j = behind ? i + 1 : 0; j < many; j++) into[j] = NAME(distance)(x + i * n, z + j * n, n, 0);
    }
}

/* ---- bags of rows */
/* Columns `at` .. `at + wide` of the sum of the rows of one bag, divided. */
#define TAKEN(k) ((const T *)b->table + b->places[k] * b->width + at)
#define OVER(wide)                                                                             \
    T sum[wide] = {0};                                                                         \
    if (b->padding < 0 && !factor)                                                             \
        for (i64 k = from; k < to; k++) {                                                      \
            const T *row = TAKEN(k);                                                           \
            for (int l = 0; l < wide; l++) sum[l] += row[l];                                   \
        }                                                                                      \
    else                                                                                       \
        for (i64 k = from; k < to; k++) {                                                      \
            const T *row = TAKEN(k), f = factor ? factor[k] : 1;                               \
            for (int l = 0; b->places[k] != b->padding && l < wide; l++) sum[l] += row[l] * f; \
        }                                                                                      \
    for (int l = 0; l < wide; l++) y[at + l] = sum[l] / divisor;                               \
    at += wide

CLONED static void NAME(sum_wide_bag)(const Bags *b, i64 from, i64 to, T divisor, T *restrict y) { /* a whole row at a time */
    const T *factor = b->factors;
    const i64 at = 0, n = b->width;
    memset(y, 0, sizeof(T) * (size_t)n);
    for (i64 k = from; k < to; k++) {
        if (b->places[k] == b->padding) continue;
        const T *restrict row = TAKEN(k);
        const T f = factor ? factor[k] : 1;
        if (factor)
            for (i64 l = 0; l < n; l++) y[l] += row[l] * f;
        else
            for (i64 l = 0; l < n; l++) y[l] += row[l];
    }
    if (divisor != 1)
        for (i64 l = 0; l < n; l++) y[l] /= divisor;
}

CLONED static void NAME(sum_bag)(const Bags *b, i64 from, i64 to, T divisor, T *y) {
    const T *factor = b->factors;
    i64 at = 0;
    if (b->width > 128) {
        NAME(sum_wide_bag)(b, from, to, divisor, y);
        return;
    }
    while (at + 64 <= b->width) {
        OVER(64);
    }
    while (at + 16 <= b->width) {
        OVER(16);
    }
    while (at < b->width) {
        OVER(1);
    }
}
#undef OVER
#undef TAKEN

CLONED static void NAME(largest_of_bag)(const Bags *b, i64 from, i64 to, T *restrict y, i64 *restrict places) {
    int begun = 0;
    for (i64 k = from; k < to; k++) {
        const i64 place = b->places[k];
        if (place == b->padding) continue;
        const T *restrict row = (const T *)b->table + place * b->width;
        for (i64 c = 0; !begun && c < b->width; c++) y[c] = row[c], places[c] = place;
        for (i64 c = 0; begun && c < b->width; c++) { /* the first of the largest, or the first NaN */
            const int wins = ((row[c] > y[c]) | (row[c] != row[c])) & (y[c] == y[c]);
            y[c] = wins ? row[c] : y[c];
            places[c] = wins ? place : places[c];
        }
        begun = 1;
    }
    for (i64 c = 0; !begun && c < b->width; c++) y[c] = 0, places[c] = 0;
}

static void NAME(bags)(long first, long last, void *const *arguments) {
    const Bags *b = arguments[0];
    for (i64 bag = first; bag < last; bag++) {
        i64 from = b->starts[bag], to = bag + 1 < b->many ? b->starts[bag + 1] : b->stop;
        T *y = (T *)b->y + bag * b->width;
        if (b->mode == LARGEST)
            NAME(largest_of_bag)(b, from, to, y, b->largest + bag * b->width);
        else
            NAME(sum_bag)(b, from, to, b->mode == MEAN && b->sizes[bag] > 1 ? (T)b->sizes[bag] : 1, y);
    }
}

#undef FLOATING
#undef FLOOR
#undef CEIL
#undef ROUND
#undef SQRT
#endif
#undef T
#undef NAME
