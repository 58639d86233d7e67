/* Loops along the middle of (outer, n, inner), for one type of elements: read by _along.c with T, NAME and IS_NAN defined. */
#define SMALLER(a, b) ((a) < (b) || (IS_NAN(b) && !IS_NAN(a)))
#define LARGER(a, b) ((a) > (b) || (IS_NAN(a) && !IS_NAN(b)))

typedef struct {
    T value;
    i64 place;
} NAME(Pair);

/* The first largest (or smallest) element and its place; a NaN wins. Either result may be NULL. */
static void NAME(extreme)(const T *x, Shape s, int largest, T *values, i64 *places) {
    for (i64 o = 0; o < s.outer; o++)
        for (i64 i = 0; i < s.inner; i++) {
            const T *p = x + o * s.n * s.inner + i;
            T best = p[0];
            i64 at = 0;
            for (i64 k = 1; k < s.n; k++) {
                T v = p[k * s.inner];
                int wins = largest ? v > best : v < best;
                if ((wins || IS_NAN(v)) && !IS_NAN(best)) {
                    best = v;
                    at = k;
                }
            }
            if (values) values[o * s.inner + i] = best;
            if (places) places[o * s.inner + i] = at;
        }
}

/* The same of one row, without a place: `width` elements at a time, each of which is the best of its own. */
#define PICK(v, best) (largest ? ((v) > (best) ? (v) : (best)) : ((v) < (best) ? (v) : (best)))
INLINE T NAME(extreme_of_row)(const T *x, i64 n, const int largest, const int width) {
    T lanes[CHAINS], best = x[0];
    T odd[CHAINS], any = 0;
    const i64 whole = n / width * width;
    for (int l = 0; l < width; l++) lanes[l] = x[0], odd[l] = 0;
    for (i64 k = 0; k < whole; k += width)
        for (int l = 0; l < width; l++) {
            odd[l] = IS_NAN(x[k + l]) ? 1 : odd[l];
            lanes[l] = PICK(x[k + l], lanes[l]);
        }
#define FOLD(half) /* a number that is known: a vector each */ \
    for (int l = 0; width > half && l < half; l++) {            \
        lanes[l] = PICK(lanes[l + half], lanes[l]);             \
        odd[l] = odd[l] > odd[l + half] ? odd[l] : odd[l + half]; \
    }
    FOLD(32) FOLD(16) FOLD(8) FOLD(4) FOLD(2) FOLD(1)
#undef FOLD
    best = PICK(lanes[0], best);
    any = odd[0];
    for (i64 k = whole; k < n; k++) {
        best = PICK(x[k], best);
        any = IS_NAN(x[k]) ? 1 : any;
    }
    for (i64 k = 0; any && k < n; k++)
        if (IS_NAN(x[k])) return x[k];
    return best;
}
#undef PICK

CLONED_WIDE static void NAME(extreme_values)(const T *x, Shape s, int largest, T *values) {
    for (i64 o = 0; o < s.outer; o++, x += s.n * s.inner, values += s.inner) {
        if (s.inner > 1) { /* columns side by side */
            memcpy(values, x, sizeof(T) * (size_t)s.inner);
            for (i64 k = 1; k < s.n; k++) {
                const T *restrict p = x + k * s.inner;
                T *restrict best = values;
                if (largest)
                    for (i64 i = 0; i < s.inner; i++) best[i] = (p[i] > best[i] || IS_NAN(p[i])) && !IS_NAN(best[i]) ? p[i] : best[i];
                else
                    for (i64 i = 0; i < s.inner; i++) best[i] = (p[i] < best[i] || IS_NAN(p[i])) && !IS_NAN(best[i]) ? p[i] : best[i];
            }
        } else if (s.n < 2 * CHAINS)
            *values = largest ? NAME(extreme_of_row)(x, s.n, 1, LANES) : NAME(extreme_of_row)(x, s.n, 0, LANES);
        else
            *values = largest ? NAME(extreme_of_row)(x, s.n, 1, CHAINS) : NAME(extreme_of_row)(x, s.n, 0, CHAINS);
    }
}

/* How many elements are not zero (a NaN is not). */
CLONED static void NAME(count)(const T *x, Shape s, i64 *counts) {
    for (i64 o = 0; o < s.outer; o++, x += s.n * s.inner, counts += s.inner) {
        if (s.inner > 1) { /* columns side by side */
            memset(counts, 0, sizeof(i64) * (size_t)s.inner);
            for (i64 k = 0; k < s.n; k++)
                for (i64 i = 0; i < s.inner; i++) counts[i] += x[k * s.inner + i] != 0;
            continue;
        }
        i64 all = 0;
        for (i64 first = 0; first < s.n; first += 4096) {
            i64 last = first + 4096 < s.n ? first + 4096 : s.n;
            int found = 0;
            for (i64 k = first; k < last; k++) found += x[k] != 0;
            all += found;
        }
        *counts = all;
    }
}

/* Many chains side by side: each waits for itself. */
INLINE WIDE NAME(product_of_row)(const T *x, i64 n) {
    WIDE lanes[CHAINS], product = 1;
    i64 k = 0;
    if (n >= 2 * CHAINS) {
        for (int l = 0; l < CHAINS; l++) lanes[l] = (WIDE)x[l];
        for (k = CHAINS; k + CHAINS <= n; k += CHAINS)
            for (int l = 0; l < CHAINS; l++) lanes[l] = (WIDE)(lanes[l] * (WIDE)x[k + l]);
        for (int half = CHAINS / 2; half; half /= 2)
            for (int l = 0; l < half; l++) lanes[l] = (WIDE)(lanes[l] * lanes[l + half]);
        product = lanes[0];
    }
    for (; k < n; k++) product = (WIDE)(product * (WIDE)x[k]);
    return product;
}

CLONED_WIDE static void NAME(product)(const T *x, Shape s, WIDE *results) {
    for (i64 o = 0; o < s.outer; o++, x += s.n * s.inner, results += s.inner) {
        if (s.inner == 1) {
            *results = NAME(product_of_row)(x, s.n);
            continue;
        }
        for (i64 i = 0; i < s.inner; i++) results[i] = (WIDE)x[i];
        for (i64 k = 1; k < s.n; k++) {
            const T *restrict p = x + k * s.inner;
            WIDE *restrict r = results;
            for (i64 i = 0; i < s.inner; i++) r[i] = (WIDE)(r[i] * (WIDE)p[i]);
        }
    }
}

/* Running extremes: a later equal element takes over, a NaN stays. Elements that take over are few: the branch is foreseen. */
static void NAME(running_extreme_of_row)(const T *x, i64 n, int largest, T *values, i64 *places) {
    T best = x[0];
    i64 at = 0;
    for (i64 k = 0; k < n; k++) {
        T v = x[k];
        if (!(largest ? v < best : v > best) && (IS_NAN(v) || !IS_NAN(best))) {
            best = v;
            at = k;
        }
        values[k] = best;
        places[k] = at;
    }
}

CLONED static void NAME(running_extreme)(const T *x, Shape s, int largest, T *values, i64 *places) {
    for (i64 o = 0; o < s.outer; o++, x += s.n * s.inner, values += s.n * s.inner, places += s.n * s.inner) {
        if (s.inner == 1) {
            if (largest)
                NAME(running_extreme_of_row)(x, s.n, 1, values, places);
            else
                NAME(running_extreme_of_row)(x, s.n, 0, values, places);
            continue;
        }
        memcpy(values, x, sizeof(T) * (size_t)s.inner);
        memset(places, 0, sizeof(i64) * (size_t)s.inner);
        for (i64 k = 1; k < s.n; k++) { /* columns side by side */
            const T *restrict v = x + k * s.inner, *restrict best = values + (k - 1) * s.inner;
            const i64 *restrict at = places + (k - 1) * s.inner;
            T *restrict value = values + k * s.inner;
            i64 *restrict place = places + k * s.inner;
            for (i64 i = 0; i < s.inner; i++) {
                int takes = IS_NAN(v[i]) | ((largest ? v[i] >= best[i] : v[i] <= best[i]) & !IS_NAN(best[i]));
                value[i] = takes ? v[i] : best[i];
                place[i] = takes ? k : at[i];
            }
        }
    }
}

CLONED static void NAME(running_product)(const T *x, Shape s, WIDE *results) {
    i64 first = 0, n = s.n;
    for (; s.inner == 1 && first + 8 <= s.outer; first += 8, x += 8 * n, results += 8 * n) { /* eight rows at a time: each waits for itself */
        WIDE rows[8] = {1, 1, 1, 1, 1, 1, 1, 1};
        for (i64 k = 0; k < n; k++)
            for (int r = 0; r < 8; r++) results[r * n + k] = rows[r] = (WIDE)(rows[r] * (WIDE)x[r * n + k]);
    }
    for (; first < s.outer; first++, x += n * s.inner, results += n * s.inner) {
        for (i64 i = 0; i < s.inner; i++) results[i] = (WIDE)x[i];
        for (i64 k = s.inner; k < n * s.inner; k++) results[k] = (WIDE)(results[k - s.inner] * (WIDE)x[k]);
    }
}

/* Pairs in stable order: NaN last, or first when descending. `spare` is as long as `pairs`. */
static void NAME(order)(NAME(Pair) *pairs, NAME(Pair) *spare, i64 n, int descending) {
    enum { RUN = 8 };
    for (i64 first = 0; first < n; first += RUN) {
        i64 last = first + RUN < n ? first + RUN : n;
        for (i64 j = first + 1; j < last; j++) {
            NAME(Pair) moved = pairs[j];
            i64 k = j;
            while (k > first && (descending ? LARGER(moved.value, pairs[k - 1].value) : SMALLER(moved.value, pairs[k - 1].value))) {
                pairs[k] = pairs[k - 1];
                k--;
            }
            pairs[k] = moved;
        }
    }
    NAME(Pair) *from = pairs, *to = spare;
    for (i64 width = RUN; width < n; width *= 2) {
        for (i64 first = 0; first < n; first += 2 * width) {
            i64 middle = first + width < n ? first + width : n, last = middle + width < n ? middle + width : n;
            i64 a = first, b = middle;
            for (i64 k = first; k < last; k++) {
                int later = b < last && (a == middle || (descending ? LARGER(from[b].value, from[a].value) : SMALLER(from[b].value, from[a].value)));
                to[k] = later ? from[b++] : from[a++];
            }
        }
        NAME(Pair) *other = from;
        from = to;
        to = other;
    }
    if (from != pairs) memcpy(pairs, from, sizeof(*pairs) * (size_t)n);
}

static i64 NAME(take_row)(const T *p, Shape s, NAME(Pair) *pairs) {
    i64 numbers = 0;
    for (i64 k = 0; k < s.n; k++) {
        pairs[k].value = p[k * s.inner];
        pairs[k].place = k;
        numbers += !IS_NAN(pairs[k].value);
    }
    return numbers;
}

/* The first `keep` elements of each row in order, and their places. With `apart`, 0 (and nothing promised) where two elements of a row
 * are equal: which of them comes first is then told by rules of others. */
static int NAME(sorted)(const T *x, Shape s, int descending, i64 keep, int apart, T *values, i64 *places) {
    NAME(Pair) pairs[2 * MOST_SORTED];
    for (i64 o = 0; o < s.outer; o++)
        for (i64 i = 0; i < s.inner; i++) {
            i64 numbers = NAME(take_row)(x + o * s.n * s.inner + i, s, pairs);
            NAME(order)(pairs, pairs + MOST_SORTED, s.n, descending);
            if (apart) {
                if (s.n - numbers > 1) return 0;
                for (i64 k = 1; k < s.n; k++)
                    if (pairs[k].value == pairs[k - 1].value) return 0;
            }
            for (i64 k = 0; k < keep; k++) {
                i64 at = (o * keep + k) * s.inner + i;
                if (values) values[at] = pairs[k].value;
                places[at] = pairs[k].place;
            }
        }
    return 1;
}

/* The same where few are kept of many: each element is held against the last of those kept so far, of which there is one more than asked
 * for, so that equal ones are seen. */
static int NAME(first_few)(const T *x, Shape s, int descending, i64 keep, T *values, i64 *places) {
    NAME(Pair) kept[MOST_FEW + 1];
    for (i64 o = 0; o < s.outer; o++)
        for (i64 i = 0; i < s.inner; i++) {
            const T *p = x + o * s.n * s.inner + i;
            i64 count = 0, odd = 0;
            for (i64 k = 0; k < s.n; k++) {
                T v = p[k * s.inner];
                odd += IS_NAN(v);
                i64 at = count > keep ? keep : count++;
                if (at == keep && count > keep && k > keep && !(descending ? LARGER(v, kept[keep].value) : SMALLER(v, kept[keep].value))) continue;
                while (at > 0 && (descending ? LARGER(v, kept[at - 1].value) : SMALLER(v, kept[at - 1].value))) {
                    kept[at] = kept[at - 1];
                    at--;
                }
                kept[at].value = v;
                kept[at].place = k;
            }
            if (odd > 1) return 0;
            for (i64 k = 1; k < count; k++)
                if (kept[k].value == kept[k - 1].value) return 0;
            for (i64 k = 0; k < keep; k++) {
                i64 at = (o * keep + k) * s.inner + i;
                if (values) values[at] = kept[k].value;
                places[at] = kept[k].place;
            }
        }
    return 1;
}

/* The k-th smallest of n elements, none of them NaN, whose order is lost. */
static T NAME(select)(T *v, i64 n, i64 k) {
    i64 low = 0, high = n - 1;
    while (high - low > 12) {
        T a = v[low], b = v[low + (high - low) / 2], c = v[high];
        T pivot = a < b ? (b < c ? b : a < c ? c : a) : (a < c ? a : b < c ? c : b);
        i64 i = low, j = high;
        while (i <= j) {
            while (v[i] < pivot) i++;
            while (pivot < v[j]) j--;
            if (i > j) break;
            T other = v[i];
            v[i++] = v[j];
            v[j--] = other;
        }
        if (k <= j)
            high = j;
        else if (k >= i)
            low = i;
        else
            return pivot;
    }
    for (i64 i = low + 1; i <= high; i++) {
        T x = v[i];
        i64 j = i;
        for (; j > low && x < v[j - 1]; j--) v[j] = v[j - 1];
        v[j] = x;
    }
    return v[k];
}

/* Where the element is that a stable sort of a row puts at `rank`; -1 where it is to be `apart` and another equals it. `row` has `numbers`
 * elements that are no NaN, of which `room` is a copy. */
static i64 NAME(place_of_rank)(const T *row, i64 n, T *room, i64 numbers, i64 rank, int apart) {
    i64 before = numbers, equal = n - numbers, at = 0;
    T v = row[0];
    if (rank < numbers) {
        v = NAME(select)(room, numbers, rank);
        before = equal = 0;
        for (i64 j = 0; j < n; j++) {
            before += row[j] < v;
            equal += row[j] == v;
        }
    }
    if (apart && equal > 1) return -1;
    for (i64 skip = rank - before;; at++)
        if ((rank < numbers ? row[at] == v : IS_NAN(row[at])) && !skip--) return at;
}

/* One element of each row as if sorted: the k-th (from 0), or the lower median where k is MEDIAN (a NaN wins) or NAN_MEDIAN (none counts). */
static int NAME(chosen)(const T *x, Shape s, i64 k, int apart, T *values, i64 *places) {
    T row[MOST_SORTED], room[MOST_SORTED];
    for (i64 o = 0; o < s.outer; o++)
        for (i64 i = 0; i < s.inner; i++) {
            const T *p = x + o * s.n * s.inner + i;
            i64 numbers = 0, rank = k;
            for (i64 j = 0; j < s.n; j++) {
                row[j] = p[j * s.inner];
                room[numbers] = row[j];
                numbers += !IS_NAN(row[j]);
            }
            if (k == MEDIAN) rank = numbers < s.n ? numbers : (s.n - 1) / 2;
            if (k == NAN_MEDIAN) rank = numbers ? (numbers - 1) / 2 : 0;
            i64 at = NAME(place_of_rank)(row, s.n, room, numbers, rank, apart);
            if (at < 0) return 0;
            values[o * s.inner + i] = row[at];
            if (places) places[o * s.inner + i] = at;
        }
    return 1;
}

/* The lower median of many elements, a NaN where there is one; `room` is for as many. What lies between two elements of a sample around the
 * median's place is looked at again, until there are few. */
CLONED_WIDE static T NAME(median_of_many)(const T *x, i64 n, T *room) {
    enum { SAMPLE = 64, AROUND = 9 };
    i64 rank = (n - 1) / 2, odd = 0;
    const T *from = x;
    for (i64 k = 0; k < n; k++) odd += IS_NAN(x[k]);
    for (i64 k = 0; odd && k < n; k++)
        if (IS_NAN(x[k])) return x[k];
    while (n > 8 * SAMPLE) {
        T sample[SAMPLE];
        for (i64 i = 0; i < SAMPLE; i++) {
            const T v = from[i * (n / SAMPLE)];
            i64 j = i;
            for (; j && v < sample[j - 1]; j--) sample[j] = sample[j - 1];
            sample[j] = v;
        }
        const i64 at = rank * SAMPLE / n, first = at < AROUND ? 0 : at - AROUND, last = at + AROUND < SAMPLE ? at + AROUND : SAMPLE - 1;
        const T low = sample[first], high = sample[last];
        i64 below = 0, above = 0, many = 0;
        for (i64 k = 0; k < n; k++) {
            below += from[k] < low;
            above += from[k] > high;
        }
        if (rank < below || rank >= n - above || !(below + above)) break;
        for (i64 k = 0; k < n; k++) {
            const T v = from[k];
            room[many] = v;
            many += (v >= low) & (v <= high);
        }
        from = room, rank -= below, n = many;
    }
    if (from == x) memcpy(room, x, sizeof(T) * (size_t)n);
    return NAME(select)(room, n, rank);
}

/* Where values belong in a sorted row of length n: before equal elements, or after them. */
static void NAME(search)(const T *rows, i64 n, int one_row, const T *values, i64 outer, i64 many, int right, i64 *places) {
#define FIND(above)                                            \
    while (low < high) { /* no branch on what is random */     \
        const i64 middle = (low + high) / 2;                   \
        const int is_above = row[middle] above v;              \
        high = is_above ? middle : high;                       \
        low = is_above ? low : middle + 1;                     \
    }
    for (i64 o = 0; o < outer; o++) {
        const T *row = one_row ? rows : rows + o * n;
        for (i64 j = 0; j < many; j++) {
            const T v = values[o * many + j];
            i64 low = 0, high = n;
            if (right)
                FIND(>)
            else
                FIND(>=)
            places[o * many + j] = low;
        }
    }
#undef FIND
}

#ifdef FLOATING
/* Mean and sum of squared deviations, in double precision. */
CLONED static void NAME(spread)(const T *x, Shape s, double divisor, int root, T *spreads, T *means) {
    for (i64 o = 0; o < s.outer; o++)
        for (i64 i = 0; i < s.inner; i++) {
            const T *p = x + o * s.n * s.inner + i;
            double sum = 0, squares = 0;
            for (i64 k = 0; k < s.n; k++) sum += (double)p[k * s.inner];
            double mean = sum / (double)s.n;
            for (i64 k = 0; k < s.n; k++) {
                double deviation = (double)p[k * s.inner] - mean;
                squares += deviation * deviation;
            }
            squares /= divisor;
            spreads[o * s.inner + i] = (T)(root ? sqrt(squares) : squares);
            if (means) means[o * s.inner + i] = (T)mean;
        }
}

/* The logarithm of the sum of exponentials. The largest element need not be a NaN where there is one: the sum is. */
INLINE T NAME(log_sum_of_row)(const T *p, i64 n) {
    i64 whole = n / LANES * LANES;
    T tops[LANES], top = p[0];
    double sum = 0, lanes[LANES] = {0};
    for (int l = 0; l < LANES; l++) tops[l] = top;
    for (i64 k = 0; k < whole; k += LANES)
        for (int l = 0; l < LANES; l++) tops[l] = p[k + l] > tops[l] ? p[k + l] : tops[l];
    for (int l = 0; l < LANES; l++) top = tops[l] > top ? tops[l] : top;
    for (i64 k = whole; k < n; k++) top = p[k] > top ? p[k] : top;
    if (isinf(top)) top = 0;
    for (i64 k = 0; k < whole; k += LANES) {
        T terms[LANES];
        for (int l = 0; l < LANES; l++) terms[l] = EXP(p[k + l] - top);
        for (int l = 0; l < LANES; l++) lanes[l] += (double)terms[l];
    }
    for (i64 k = whole; k < n; k++) sum += (double)EXP(p[k] - top);
    for (int l = 0; l < LANES; l++) sum += lanes[l];
    return (T)(log(sum) + (double)top);
}

/* LANES columns side by side, whose rows are `step` apart. */
INLINE void NAME(log_sum_of_columns)(const T *p, i64 n, i64 step, T *results) {
    T tops[LANES];
    double sums[LANES] = {0};
    for (int l = 0; l < LANES; l++) tops[l] = p[l];
    for (i64 k = 1; k < n; k++)
        for (int l = 0; l < LANES; l++) tops[l] = p[k * step + l] > tops[l] ? p[k * step + l] : tops[l];
    for (int l = 0; l < LANES; l++) tops[l] = isinf(tops[l]) ? 0 : tops[l];
    for (i64 k = 0; k < n; k++) {
        T terms[LANES];
        for (int l = 0; l < LANES; l++) terms[l] = EXP(p[k * step + l] - tops[l]);
        for (int l = 0; l < LANES; l++) sums[l] += (double)terms[l];
    }
    for (int l = 0; l < LANES; l++) results[l] = (T)(log(sums[l]) + (double)tops[l]);
}

CLONED static void NAME(log_sum)(const T *x, Shape s, T *results) {
    for (i64 o = 0; o < s.outer; o++, x += s.n * s.inner, results += s.inner) {
        if (s.inner == 1) {
            results[0] = NAME(log_sum_of_row)(x, s.n);
            continue;
        }
        i64 i = 0;
        for (; i + LANES <= s.inner; i += LANES) NAME(log_sum_of_columns)(x + i, s.n, s.inner, results + i);
        for (; i < s.inner; i++) {
            const T *p = x + i;
            T top = p[0];
            for (i64 k = 1; k < s.n; k++) top = p[k * s.inner] > top ? p[k * s.inner] : top;
            if (isinf(top)) top = 0;
            double sum = 0;
            for (i64 k = 0; k < s.n; k++) sum += (double)EXP(p[k * s.inner] - top);
            results[i] = (T)(log(sum) + (double)top);
        }
    }
}

/* What norms of order 1 and 2 are made of, and those of order infinity (-1) and 0, how many are not zero: of a row, in double precision. */
INLINE double NAME(power_sum)(const T *x, i64 n, int order) {
    double lanes[LANES] = {0}, sum = 0;
    i64 whole = n / LANES * LANES;
#define ROW(term)                                                              \
    {                                                                          \
        for (i64 k = 0; k < whole; k += LANES)                                 \
            for (int l = 0; l < LANES; l++) lanes[l] += term((double)x[k + l]); \
        for (i64 k = whole; k < n; k++) sum += term((double)x[k]);             \
        for (int l = 0; l < LANES; l++) sum += lanes[l];                       \
    }
#define SQUARE(v) ((v) * (v))
#define NOT_ZERO(v) ((v) != 0 ? 1.0 : 0.0)
    if (order == 2)
        ROW(SQUARE)
    else if (order == 1)
        ROW(__builtin_fabs)
    else if (order == 0)
        ROW(NOT_ZERO)
    else {
        for (i64 k = 0; k < whole; k += LANES)
            for (int l = 0; l < LANES; l++) {
                double v = __builtin_fabs((double)x[k + l]);
                lanes[l] = v <= lanes[l] || lanes[l] != lanes[l] ? lanes[l] : v;
            }
        for (i64 k = whole; k < n; k++) sum = fabs((double)x[k]) <= sum || sum != sum ? sum : fabs((double)x[k]);
        for (int l = 0; l < LANES; l++) sum = lanes[l] <= sum || sum != sum ? sum : lanes[l];
    }
#undef ROW
    return sum;
}

CLONED_WIDE static void NAME(power_sums)(const T *x, Shape s, int order, double *sums) {
    for (i64 o = 0; o < s.outer; o++, x += s.n * s.inner, sums += s.inner) {
        if (s.inner == 1) {
            *sums = NAME(power_sum)(x, s.n, order);
            continue;
        }
        memset(sums, 0, sizeof(double) * (size_t)s.inner);
        for (i64 k = 0; k < s.n; k++) { /* columns side by side */
            const T *restrict p = x + k * s.inner;
            double *restrict r = sums;
            if (order == 2)
                for (i64 i = 0; i < s.inner; i++) r[i] += SQUARE((double)p[i]);
            else if (order == 1)
                for (i64 i = 0; i < s.inner; i++) r[i] += __builtin_fabs((double)p[i]);
            else if (order == 0)
                for (i64 i = 0; i < s.inner; i++) r[i] += NOT_ZERO(p[i]);
            else
                for (i64 i = 0; i < s.inner; i++) r[i] = __builtin_fabs((double)p[i]) <= r[i] || r[i] != r[i] ? r[i] : __builtin_fabs((double)p[i]);
        }
    }
}
#undef SQUARE
#undef NOT_ZERO

/* log(sum(exp)) of all prefixes, each from the one before as the array library adds logarithms. */
static void NAME(running_log_sum)(const T *x, Shape s, T *y) {
    for (i64 o = 0; o < s.outer; o++, x += s.n * s.inner, y += s.n * s.inner) {
        memcpy(y, x, (size_t)s.inner * sizeof(T));
        for (i64 k = s.inner; k < s.n * s.inner; k++) {
            const T a = y[k - s.inner], b = x[k], d = a - b;
            y[k] = a == b ? a + LN2 : d > 0 ? a + LIBM(log1p)(LIBM(exp)(-d)) : d <= 0 ? b + LIBM(log1p)(LIBM(exp)(d)) : d;
        }
    }
}

/* For each element of a row the product of those before it times the product of those behind it. */
static void NAME(products_of_others)(const T *x, Shape s, T *y) {
    for (i64 o = 0; o < s.outer; o++, x += s.n, y += s.n) {
        T before = 1, behind = 1;
        i64 k = 0, last = s.n - 1;
        for (; k < last; before *= x[k++], behind *= x[last--]) y[k] = before, y[last] = behind; /* from both ends: neither waits for the other */
        if (k == last) y[k] = before * behind, before *= x[k++], behind *= x[last--];
        for (; k < s.n; before *= x[k++], behind *= x[last--]) y[k] *= before, y[last] *= behind;
    }
}
#undef LIBM
#undef LN2
#undef FLOATING
#undef EXP
#endif

#undef SMALLER
#undef LARGER
#undef T
#undef NAME
#undef IS_NAN
#undef WIDE
