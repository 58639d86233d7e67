/* An orthogonal polynomial of one element and its degree, for one precision: read by native_special.h with REAL, S and P defined.
 *
 * A degree is truncated; below zero gives zero. Chebyshev polynomials of a degree above `limit` inside (-1, 1) come from their
 * trigonometric form, Hermite polynomials above it are NaN; the rest from the recurrence, until nothing but infinity and NaN can follow.
 */
static REAL P(chebyshev_end)(REAL x, i64 n, int kind) { /* at 1 and -1 */
    REAL size = kind == CHEBYSHEV_U ? (REAL)(n + 1) : kind == CHEBYSHEV_T ? 1 : (REAL)(n + n + 1);
    if (kind == CHEBYSHEV_V) return x > 0 ? 1 : n % 2 ? -size : size;
    if (kind == CHEBYSHEV_W) return x > 0 ? size : n % 2 ? -1 : 1;
    return x > 0 || n % 2 == 0 ? size : -size;
}

static REAL P(chebyshev_inside)(REAL x, i64 n, int kind) {
    REAL angle = S(acos)(x), m = (REAL)n, half = angle / 2;
    if (kind == CHEBYSHEV_T) return S(cos)(m * angle);
    if (kind == CHEBYSHEV_U) return S(sin)(angle) != 0 ? S(sin)((m + 1) * angle) / S(sin)(angle) : (m + 1) * S(cos)((m + 1) * angle) / x;
    if (kind == CHEBYSHEV_V) return S(sin)(half) != 1 ? S(cos)((m + (REAL)0.5) * angle) / S(cos)(half) : P(chebyshev_end)(-1, n, kind);
    return S(cos)(half) != 1 ? S(sin)((m + (REAL)0.5) * angle) / S(sin)(half) : P(chebyshev_end)(x, n, kind);
}

static REAL P(polynomial)(REAL x, REAL degree, int kind, i64 limit) {
    if (!(degree > -1)) return 0;
    i64 n = degree > (REAL)1e15 ? (i64)1000000000000000 : (i64)degree;
    REAL a = S(__builtin_fabs)(x);
    if (kind <= CHEBYSHEV_W && a == 1) return P(chebyshev_end)(x, n, kind);
    if (kind <= CHEBYSHEV_W && n > limit && a < 1) return P(chebyshev_inside)(x, n, kind);
    if ((kind == HERMITE_H || kind == HERMITE_HE) && n > limit) return (REAL)NAN;
    if (kind == LAGUERRE && x == 0) return 1;
    if (kind == LEGENDRE && a == 1) return x > 0 || n % 2 == 0 ? 1 : -1;
    if (n == 0) return 1;
    REAL before = 1, now = x, twice = x + x;
    if (kind == CHEBYSHEV_U || kind == HERMITE_H) now = twice;
    if (kind == CHEBYSHEV_V) now = twice - 1;
    if (kind == CHEBYSHEV_W) now = twice + 1;
    if (kind == LAGUERRE) now = 1 - x;
    for (i64 k = 1; k < n; k++) {
        REAL m = (REAL)k, next;
        if (kind <= CHEBYSHEV_W)
            next = twice * now - before;
        else if (kind == HERMITE_H)
            next = twice * now - 2 * m * before;
        else if (kind == HERMITE_HE)
            next = x * now - m * before;
        else if (kind == LAGUERRE)
            next = ((2 * m + 1 - x) * now - m * before) / (m + 1);
        else
            next = ((2 * m + 1) * x * now - m * before) / (m + 1);
        before = now;
        now = next;
        if (k % 64 == 0 && now - now != 0) break; /* nothing but infinity and NaN from here on */
    }
    return now;
}
