/* Elements combined at places, for one type of elements: read by _places.c with T, NAME and IS_NAN defined. */

/* y[at[k]] = y[at[k]] op x[from[k]], one after the other. */
static void NAME(combine)(T *y, const T *x, const i64 *at, const i64 *from, i64 n, int how) {
    for (i64 k = 0; k < n; k++) {
        T *into = y + at[k], v = x[from[k]];
        if (how == SUM)
            *into = (T)(*into + v);
        else if (how == PRODUCT)
            *into = (T)(*into * v);
        else if (!IS_NAN(*into) && (IS_NAN(v) || (how == LARGEST ? v > *into : v < *into)))
            *into = v;
    }
}

/* Blocks of `inner` elements: y[o, at[k], :] += x[o, k, :] for y of (outer, n, inner) and x of (outer, many, inner). */
static void NAME(add_blocks)(T *y, const T *x, const i64 *at, i64 outer, i64 n, i64 many, i64 inner) {
    for (i64 o = 0; o < outer; o++)
        for (i64 k = 0; k < many; k++) {
            T *into = y + (o * n + at[k]) * inner;
            const T *from = x + (o * many + k) * inner;
            for (i64 i = 0; i < inner; i++) into[i] = (T)(into[i] + from[i]);
        }
}

/* The same, combined as `how` says. */
static void NAME(combine_blocks)(T *y, const T *x, const i64 *at, i64 outer, i64 n, i64 many, i64 inner, int how) {
    for (i64 o = 0; o < outer; o++)
        for (i64 k = 0; k < many; k++) {
            T *into = y + (o * n + at[k]) * inner;
            const T *from = x + (o * many + k) * inner;
            for (i64 i = 0; i < inner; i++) {
                if (how == PRODUCT)
                    into[i] = (T)(into[i] * from[i]);
                else if (!IS_NAN(into[i]) && (IS_NAN(from[i]) || (how == LARGEST ? from[i] > into[i] : from[i] < into[i])))
                    into[i] = from[i];
            }
        }
}

/* The first of each run of equal elements, for each element its run, for each run its length; how many runs there are. */
static i64 NAME(runs)(const T *x, i64 n, T *first, i64 *run, i64 *length) {
    i64 r = -1;
    for (i64 k = 0; k < n; k++) {
        if (!k || !(x[k] == x[k - 1])) {
            first[++r] = x[k];
            length[r] = 0;
        }
        run[k] = r;
        length[r]++;
    }
    return r + 1;
}

#undef T
#undef NAME
#undef IS_NAN
