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

/* The same without places, LANES elements at a time. */
CLONED static void NAME(extreme_values)(const T *x, Shape s, int largest, T *values) {
#define PICK(v, best) (largest ? ((v) > (best) ? (v) : (best)) : ((v) < (best) ? (v) : (best)))
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
            continue;
        }
        T lanes[LANES], best = x[0];
        i64 whole = s.n / LANES * LANES;
        int odd[LANES] = {0}, any = 0;
        for (int l = 0; l < LANES; l++) lanes[l] = x[0];
        if (largest)
            for (i64 k = 0; k < whole; k += LANES)
                for (int l = 0; l < LANES; l++) {
                    odd[l] |= IS_NAN(x[k + l]);
                    lanes[l] = x[k + l] > lanes[l] ? x[k + l] : lanes[l];
                }
        else
            for (i64 k = 0; k < whole; k += LANES)
                for (int l = 0; l < LANES; l++) {
                    odd[l] |= IS_NAN(x[k + l]);
                    lanes[l] = x[k + l] < lanes[l] ? x[k + l] : lanes[l];
                }
        for (i64 k = whole; k < s.n; k++) {
            best = PICK(x[k], best);
            any |= IS_NAN(x[k]);
        }
        for (int l = 0; l < LANES; l++) {
            best = PICK(lanes[l], best);
            any |= odd[l];
        }
        for (i64 k = 0; any && k < s.n; k++)
            if (IS_NAN(x[k])) {
                best = x[k];
                any = 0;
            }
        values[0] = best;
    }
#undef PICK
}

/* How many elements are not zero (a NaN is not). */
CLONED static void NAME(count)(const T *x, Shape s, i64 *counts) {
    if (s.inner == 1) {
        for (i64 o = 0; o < s.outer; o++, x += s.n) {
            i64 all = 0;
            for (i64 first = 0; first < s.n; first += 4096) {
                i64 last = first + 4096 < s.n ? first + 4096 : s.n;
                int found = 0;
                for (i64 k = first; k < last; k++) found += x[k] != 0;
                all += found;
            }
            counts[o] = all;
        }
        return;
    }
    for (i64 o = 0; o < s.outer; o++)
        for (i64 i = 0; i < s.inner; i++) {
            const T *p = x + o * s.n * s.inner + i;
            i64 found = 0;
            for (i64 k = 0; k < s.n; k++) found += p[k * s.inner] != 0;
            counts[o * s.inner + i] = found;
        }
}

CLONED static void NAME(product)(const T *x, Shape s, WIDE *results) {
    for (i64 o = 0; s.inner > 1 && o < s.outer; o++, x += s.n * s.inner, results += s.inner) {
        for (i64 i = 0; i < s.inner; i++) results[i] = (WIDE)x[i];
        for (i64 k = 1; k < s.n; k++) {
            const T *restrict p = x + k * s.inner;
            WIDE *restrict r = results;
            for (i64 i = 0; i < s.inner; i++) r[i] = (WIDE)(r[i] * (WIDE)p[i]);
        }
    }
    for (i64 o = 0; s.inner == 1 && s.n >= 2 * LANES && o < s.outer; o++, x += s.n) {
        WIDE lanes[LANES], product = 1;
        i64 whole = s.n / LANES * LANES;
        for (int l = 0; l < LANES; l++) lanes[l] = (WIDE)x[l];
        for (i64 k = LANES; k < whole; k += LANES)
            for (int l = 0; l < LANES; l++) lanes[l] = (WIDE)(lanes[l] * (WIDE)x[k + l]);
        for (int l = 0; l < LANES; l++) product = (WIDE)(product * lanes[l]);
        for (i64 k = whole; k < s.n; k++) product = (WIDE)(product * (WIDE)x[k]);
        *results++ = product;
    }
    if (s.inner > 1 || s.n >= 2 * LANES) return;
    for (i64 o = 0; o < s.outer; o++)
        for (i64 i = 0; i < s.inner; i++) {
            const T *p = x + o * s.n * s.inner + i;
            WIDE product = (WIDE)p[0];
            for (i64 k = 1; k < s.n; k++) product = (WIDE)(product * (WIDE)p[k * s.inner]);
            results[o * s.inner + i] = product;
        }
}

/* Running extremes: a later equal element takes over, a NaN stays. */
static void NAME(running_extreme)(const T *x, Shape s, int largest, T *values, i64 *places) {
    for (i64 o = 0; o < s.outer; o++)
        for (i64 i = 0; i < s.inner; i++) {
            i64 first = o * s.n * s.inner + i, at = 0;
            T best = x[first];
            for (i64 k = 0; k < s.n; k++) {
                T v = x[first + k * s.inner];
                if (IS_NAN(v) || (!IS_NAN(best) && (largest ? v >= best : v <= best))) {
                    best = v;
                    at = k;
                }
                values[first + k * s.inner] = best;
                places[first + k * s.inner] = at;
            }
        }
}

static void NAME(running_product)(const T *x, Shape s, WIDE *results) {
    for (i64 o = 0; o < s.outer; o++)
        for (i64 i = 0; i < s.inner; i++) {
            i64 first = o * s.n * s.inner + i;
            WIDE product = (WIDE)x[first];
            results[first] = product;
            for (i64 k = 1; k < s.n; k++) results[first + k * s.inner] = product = (WIDE)(product * (WIDE)x[first + k * s.inner]);
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

/* One element of each sorted row: the k-th (from 0), or the lower median where k is MEDIAN (a NaN wins) or NAN_MEDIAN (none counts). */
static int NAME(chosen)(const T *x, Shape s, i64 k, int apart, T *values, i64 *places) {
    NAME(Pair) pairs[2 * MOST_SORTED];
    for (i64 o = 0; o < s.outer; o++)
        for (i64 i = 0; i < s.inner; i++) {
            i64 numbers = NAME(take_row)(x + o * s.n * s.inner + i, s, pairs), at = k;
            NAME(order)(pairs, pairs + MOST_SORTED, s.n, 0);
            if (apart) {
                if (s.n - numbers > 1) return 0;
                for (i64 j = 1; j < s.n; j++)
                    if (pairs[j].value == pairs[j - 1].value) return 0;
            }
            if (k == MEDIAN) at = numbers < s.n ? numbers : (s.n - 1) / 2;
            if (k == NAN_MEDIAN) at = numbers ? (numbers - 1) / 2 : 0;
            values[o * s.inner + i] = pairs[at].value;
            if (places) places[o * s.inner + i] = pairs[at].place;
        }
    return 1;
}

/* Where values belong in a sorted row of length n: before equal elements, or after them. */
static void NAME(search)(const T *rows, i64 n, int one_row, const T *values, i64 outer, i64 many, int right, i64 *places) {
    for (i64 o = 0; o < outer; o++) {
        const T *row = one_row ? rows : rows + o * n;
        for (i64 j = 0; j < many; j++) {
            T v = values[o * many + j];
            i64 low = 0, high = n;
            while (low < high) {
                i64 middle = (low + high) / 2;
                int above = right ? row[middle] > v : row[middle] >= v;
                if (above)
                    high = middle;
                else
                    low = middle + 1;
            }
            places[o * many + j] = low;
        }
    }
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

/* The logarithm of the sum of exponentials; the running one writes every partial result. */
CLONED static void NAME(log_sum)(const T *x, Shape s, T *results) {
    for (i64 o = 0; o < s.outer; o++)
        for (i64 i = 0; i < s.inner; i++) {
            const T *p = x + o * s.n * s.inner + i;
            T top = p[0];
            for (i64 k = 1; k < s.n; k++)
                if (p[k * s.inner] > top || IS_NAN(p[k * s.inner])) top = p[k * s.inner];
            if (isinf(top)) top = 0;
            double sum = 0, lanes[LANES] = {0};
            i64 whole = s.n / LANES * LANES;
            for (i64 k = 0; k < whole; k += LANES) {
                T terms[LANES];
                for (int l = 0; l < LANES; l++) terms[l] = p[(k + l) * s.inner] - top;
                for (int l = 0; l < LANES; l++) lanes[l] += (double)EXP(terms[l]);
            }
            for (i64 k = whole; k < s.n; k++) sum += (double)EXP(p[k * s.inner] - top);
            for (int l = 0; l < LANES; l++) sum += lanes[l];
            results[o * s.inner + i] = (T)(log(sum) + (double)top);
        }
}

/* Norms of order 1, 2 and infinity (0: how many are not zero). */
CLONED static void NAME(norm)(const T *x, Shape s, int order, T *results) {
    for (i64 o = 0; order == 2 && s.inner == 1 && o < s.outer; o++, x += s.n) {
        double lanes[LANES] = {0}, sum = 0;
        i64 whole = s.n / LANES * LANES;
        for (i64 k = 0; k < whole; k += LANES)
            for (int l = 0; l < LANES; l++) lanes[l] += (double)x[k + l] * (double)x[k + l];
        for (i64 k = whole; k < s.n; k++) sum += (double)x[k] * (double)x[k];
        for (int l = 0; l < LANES; l++) sum += lanes[l];
        *results++ = (T)sqrt(sum);
    }
    if (order == 2 && s.inner == 1) return;
    for (i64 o = 0; o < s.outer; o++)
        for (i64 i = 0; i < s.inner; i++) {
            const T *p = x + o * s.n * s.inner + i;
            double sum = 0;
            for (i64 k = 0; k < s.n; k++) {
                double v = fabs((double)p[k * s.inner]);
                if (order == 1)
                    sum += v;
                else if (order == 2)
                    sum += v * v;
                else if (order == 0)
                    sum += v != 0;
                else if (v > sum || v != v)
                    sum = sum != sum ? sum : v;
            }
            results[o * s.inner + i] = (T)(order == 2 ? sqrt(sum) : sum);
        }
}
#undef FLOATING
#undef EXP
#endif

#undef SMALLER
#undef LARGER
#undef T
#undef NAME
#undef IS_NAN
#undef WIDE
