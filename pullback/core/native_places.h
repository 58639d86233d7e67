/* Elements combined at places, for one type of elements: read by _places.c with T, NAME and IS_NAN defined. */

/* y[at[k]] = y[at[k]] op x[from[k]], one after the other. */
static __attribute__((unused)) void NAME(combine)(T *y, const T *x, const i64 *at, const i64 *from, i64 n, int how) {
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

#define LARGER_OF(y, v) (!IS_NAN(y) && (IS_NAN(v) || (v) > (y)) ? (v) : (y))
#define SMALLER_OF(y, v) (!IS_NAN(y) && (IS_NAN(v) || (v) < (y)) ? (v) : (y))
/* One statement for each way to combine: `RUN(value)`, of the element `y` that is there and `v` that comes. */
#define EACH_WAY(how)                                     \
    if (how == SET)                                       \
        RUN(v)                                            \
    else if (how == SUM)                                  \
        RUN((T)(y + v))                                   \
    else if (how == PRODUCT)                              \
        RUN((T)(y * v))                                   \
    else if (how == LARGEST)                              \
        RUN(LARGER_OF(y, v))                              \
    else                                                  \
        RUN(SMALLER_OF(y, v))

/* Columns `left` to `right` of blocks of `inner` elements: y[o, at[k], :] combined with x[o, k, :], y of (outer, n, inner), x of (outer, many, inner). */
CLONED static void NAME(combine_blocks)(T *to, const T *from, const i64 *at, Blocks b, i64 left, i64 right, int how) {
#define RUN(value)                                                                            \
    {                                                                                         \
    for (i64 o = 0; b.inner == 1 && o < b.outer; o++, to += b.n, from += b.many)              \
        for (i64 k = 0; k < b.many; k++) {                                                    \
            T *into = to + at[k], y = *into, v = from[k];                                     \
            (void)y;                                                                          \
            *into = value;                                                                    \
        }                                                                                     \
    for (i64 o = 0; b.inner != 1 && o < b.outer; o++)                                         \
        for (i64 k = 0; k < b.many; k++) {                                                    \
            T *restrict into = to + (o * b.n + at[k]) * b.inner;                              \
            const T *restrict x = from + (o * b.many + k) * b.inner;                          \
            for (i64 i = left; i < right; i++) {                                              \
                T y = into[i], v = x[i];                                                      \
                (void)y;                                                                      \
                into[i] = value;                                                              \
            }                                                                                 \
        }                                                                                     \
    }
    EACH_WAY(how)
#undef RUN
}

/* The same where each element has a place of its own: y[o, at[o, k, i], i] combined with x[o, k, i]. */
static void NAME(combine_each)(T *to, const T *from, const i64 *at, Blocks b, i64 left, i64 right, int how) {
#define RUN(value)                                                                            \
    for (i64 o = 0; o < b.outer; o++, to += b.n * b.inner) {                                  \
        if (b.inner == 1)                                                                     \
            for (i64 k = 0; k < b.many; k++) {                                                \
                T *into = to + at[k], y = *into, v = from[k];                                 \
                (void)y;                                                                      \
                *into = value;                                                                \
            }                                                                                 \
        else                                                                                  \
            for (i64 k = 0; k < b.many; k++)                                                  \
                for (i64 i = left; i < right; i++) {                                          \
                    T *into = to + at[k * b.inner + i] * b.inner + i, y = *into, v = from[k * b.inner + i]; \
                    (void)y;                                                                  \
                    *into = value;                                                            \
                }                                                                             \
        at += b.many * b.inner;                                                               \
        from += b.many * b.inner;                                                             \
    }
    EACH_WAY(how)
#undef RUN
}
#undef EACH_WAY
#undef LARGER_OF
#undef SMALLER_OF

#undef T
#undef NAME
#undef IS_NAN
