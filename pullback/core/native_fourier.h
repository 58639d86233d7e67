/* Transforms of many lines of complex numbers at once, for one precision: read by _fourier.c with T and NAME defined.
 *
 * A line has a power of two of points, or few. LANES lines are transformed side by side, so that every step is a loop over them; factors are
 * computed in double precision.
 */

/* Any number of points, by the sums that define the transform: for few of them. */
static T *NAME(sum_lanes)(const T *x, T *y, i64 n, const double *cosines, const double *sines, int forward) {
    for (i64 k = 0; k < n; k++) {
        T *restrict u = y + k * 2 * LANES;
        for (int l = 0; l < 2 * LANES; l++) u[l] = 0;
        for (i64 j = 0, turn = 0; j < n; j++, turn = (turn + k) % n) {
            const T c = (T)cosines[turn], s = (T)(forward ? -sines[turn] : sines[turn]), *restrict a = x + j * 2 * LANES;
            for (int l = 0; l < LANES; l++) {
                u[l] += a[l] * c - a[LANES + l] * s;
                u[LANES + l] += a[l] * s + a[LANES + l] * c;
            }
        }
    }
    return y;
}

typedef T NAME(Eight) __attribute__((vector_size(EIGHT * sizeof(T)), aligned(sizeof(T)), may_alias));
#define READ(p) (*(NAME(Eight) *)(p))

/* One step of four: points p, p + n / 4, ... of each of `stride` transforms of n points become point p of four, each a quarter as long. */
static inline __attribute__((always_inline)) void NAME(step_of_four)(const T *x, T *y, i64 n, i64 stride, const double *cosines, const double *sines,
                                                                     T sign) {
    const i64 quarter = n / 4, apart = stride * quarter * 2 * LANES;
    for (i64 p = 0; p < quarter; p++) {
        T c[3], s[3];
        for (int i = 0; i < 3; i++) c[i] = (T)cosines[(i + 1) * p * stride], s[i] = sign * (T)sines[(i + 1) * p * stride];
        for (i64 q = 0; q < stride; q++) {
            const T *a = x + (q + stride * p) * 2 * LANES;
            T *u = y + (q + stride * 4 * p) * 2 * LANES;
            const i64 next = stride * 2 * LANES;
            for (int l = 0; l < LANES; l += EIGHT) {
                const NAME(Eight) ar = READ(a + l), ai = READ(a + LANES + l), br = READ(a + apart + l), bi = READ(a + apart + LANES + l);
                const NAME(Eight) cr = READ(a + 2 * apart + l), ci = READ(a + 2 * apart + LANES + l);
                const NAME(Eight) dr = READ(a + 3 * apart + l), di = READ(a + 3 * apart + LANES + l);
                const NAME(Eight) pr = ar + cr, pi = ai + ci, mr = ar - cr, mi = ai - ci, er = br + dr, ei = bi + di;
                const NAME(Eight) jr = sign * (di - bi), ji = sign * (br - dr); /* (b - d) times i, or times -i */
                const NAME(Eight) vr = mr + jr, vi = mi + ji, wr = mr - jr, wi = mi - ji, hr = pr - er, hi = pi - ei;
                READ(u + l) = pr + er;
                READ(u + LANES + l) = pi + ei;
                READ(u + next + l) = vr * c[0] - vi * s[0];
                READ(u + next + LANES + l) = vr * s[0] + vi * c[0];
                READ(u + 2 * next + l) = hr * c[1] - hi * s[1];
                READ(u + 2 * next + LANES + l) = hr * s[1] + hi * c[1];
                READ(u + 3 * next + l) = wr * c[2] - wi * s[2];
                READ(u + 3 * next + LANES + l) = wr * s[2] + wi * c[2];
            }
        }
    }
}

/* x of n points (real parts, then imaginary ones, LANES of each), by steps that read one half and write the other; the result is where
 * the pointer that is returned points. */
CLONED static T *NAME(transform_lanes)(T *x, T *y, i64 n, const double *cosines, const double *sines, int forward) {
    if (n & (n - 1)) return NAME(sum_lanes)(x, y, n, cosines, sines, forward);
    i64 left = n, stride = 1;
    for (; left >= 4; left /= 4, stride *= 4) {
        if (forward)
            NAME(step_of_four)(x, y, left, stride, cosines, sines, -1);
        else
            NAME(step_of_four)(x, y, left, stride, cosines, sines, 1);
        T *kept = x;
        x = y;
        y = kept;
    }
    if (left < 2) return x;
    const T *restrict a = x, *restrict b = x + stride * 2 * LANES;
    T *restrict u = y, *restrict v = y + stride * 2 * LANES;
    for (i64 k = 0; k < stride * 2 * LANES; k++) {
        u[k] = a[k] + b[k];
        v[k] = a[k] - b[k];
    }
    return y;
}

/* ---- lines to lanes and back */
#if defined(__has_builtin)
#if __has_builtin(__builtin_shufflevector)
#define TURNED 1
#endif
#endif
#ifdef TURNED
typedef T NAME(Four) __attribute__((vector_size(4 * sizeof(T)), aligned(sizeof(T)), may_alias));
/* Four rows of four numbers as four columns. */
#define TURN(a, b, c, d, to)                                                                                             \
    do {                                                                                                                 \
        const NAME(Four) low = __builtin_shufflevector(a, b, 0, 4, 1, 5), high = __builtin_shufflevector(a, b, 2, 6, 3, 7); \
        const NAME(Four) low2 = __builtin_shufflevector(c, d, 0, 4, 1, 5), high2 = __builtin_shufflevector(c, d, 2, 6, 3, 7); \
        to(0, __builtin_shufflevector(low, low2, 0, 1, 4, 5));                                                           \
        to(1, __builtin_shufflevector(low, low2, 2, 3, 6, 7));                                                           \
        to(2, __builtin_shufflevector(high, high2, 0, 1, 4, 5));                                                         \
        to(3, __builtin_shufflevector(high, high2, 2, 3, 6, 7));                                                         \
    } while (0)
#define AT(p) (*(const NAME(Four) *)(p))

/* LANES whole lines of n complex numbers, one after the other; n is even. */
static void NAME(turn_in)(const T *from, i64 n, T *x) {
    for (int g = 0; g < LANES; g += 4, from += 8 * n)
        for (i64 k = 0; k < 2 * n; k += 4) {
#define TO(i, v) *(NAME(Four) *)(x + (k + i) * LANES + g) = (v)
            TURN(AT(from + k), AT(from + 2 * n + k), AT(from + 4 * n + k), AT(from + 6 * n + k), TO);
#undef TO
        }
}

static void NAME(turn_out)(const T *x, T *to, i64 n) {
    for (int g = 0; g < LANES; g += 4, to += 8 * n)
        for (i64 k = 0; k < 2 * n; k += 4) {
            const T *p = x + k * LANES + g;
#define TO(i, v) *(NAME(Four) *)(to + 2 * n * (i) + k) = (v)
            TURN(AT(p), AT(p + LANES), AT(p + 2 * LANES), AT(p + 3 * LANES), TO);
#undef TO
        }
}
#endif

CLONED static void NAME(side_by_side_in)(const T *from, i64 n, i64 inner, T *x) { /* LANES columns that stand side by side */
    for (i64 k = 0; k < n; k++, from += 2 * inner, x += 2 * LANES)
        for (int l = 0; l < LANES; l++) {
            x[l] = from[2 * l];
            x[LANES + l] = from[2 * l + 1];
        }
}

CLONED static void NAME(side_by_side_out)(const T *x, T *to, i64 n, i64 inner) {
    for (i64 k = 0; k < n; k++, to += 2 * inner, x += 2 * LANES)
        for (int l = 0; l < LANES; l++) {
            to[2 * l] = x[l];
            to[2 * l + 1] = x[LANES + l];
        }
}

/* Lines first to first + count along the middle of (.., n, inner) complex numbers; the lanes that are left are zero. */
static void NAME(lines_in)(const T *data, i64 first, i64 count, i64 n, i64 inner, T *x) {
    const T *base = data + 2 * (first / inner * n * inner + first % inner);
    if (count == LANES && first % inner + LANES <= inner) {
        NAME(side_by_side_in)(base, n, inner, x);
        return;
    }
#ifdef TURNED
    if (count == LANES && inner == 1 && n % 2 == 0) {
        NAME(turn_in)(base, n, x);
        return;
    }
#endif
    for (i64 l = 0; l < count; l++) {
        const T *from = data + 2 * ((first + l) / inner * n * inner + (first + l) % inner);
        for (i64 k = 0; k < n; k++) {
            x[2 * k * LANES + l] = from[2 * k * inner];
            x[(2 * k + 1) * LANES + l] = from[2 * k * inner + 1];
        }
    }
    for (i64 l = count; l < LANES; l++)
        for (i64 k = 0; k < 2 * n; k++) x[k * LANES + l] = 0;
}

static void NAME(lines_out)(const T *x, T *data, i64 first, i64 count, i64 n, i64 inner) {
    T *base = data + 2 * (first / inner * n * inner + first % inner);
    if (count == LANES && first % inner + LANES <= inner) {
        NAME(side_by_side_out)(x, base, n, inner);
        return;
    }
#ifdef TURNED
    if (count == LANES && inner == 1 && n % 2 == 0) {
        NAME(turn_out)(x, base, n);
        return;
    }
#endif
    for (i64 l = 0; l < count; l++) {
        T *to = data + 2 * ((first + l) / inner * n * inner + (first + l) % inner);
        for (i64 k = 0; k < n; k++) {
            to[2 * k * inner] = x[2 * k * LANES + l];
            to[2 * k * inner + 1] = x[(2 * k + 1) * LANES + l];
        }
    }
}

/* Every line along the middle of (outer, n, inner) complex numbers, in place; `room` holds 4 n LANES numbers. */
static void NAME(transform_lines)(T *data, i64 outer, i64 n, i64 inner, const double *cosines, const double *sines, int forward, T *room) {
    i64 lines = outer * inner;
    for (i64 first = 0; n > 1 && first < lines; first += LANES) {
        i64 count = lines - first < LANES ? lines - first : LANES;
        NAME(lines_in)(data, first, count, n, inner, room);
        NAME(lines_out)(NAME(transform_lanes)(room, room + 2 * n * LANES, n, cosines, sines, forward), data, first, count, n, inner);
    }
}

/* Rows of `n` numbers as rows of `m` complex ones: real numbers that become complex, all points or half of them, or half a spectrum
 * from which the rest follows (`half` points are there). */
static void NAME(widen_real)(const T *x, T *y, i64 count) {
    for (i64 i = 0; i < count; i++) {
        y[2 * i] = x[i];
        y[2 * i + 1] = 0;
    }
}

static void NAME(keep_half)(const T *x, T *y, i64 rows, i64 n) {
    for (i64 r = 0; r < rows; r++) memcpy(y + 2 * r * (n / 2 + 1), x + 2 * r * n, sizeof(T) * 2 * (size_t)(n / 2 + 1));
}

static void NAME(mirror_half)(const T *x, T *y, i64 rows, i64 n) {
    i64 half = n / 2 + 1;
    for (i64 r = 0; r < rows; r++) {
        const T *from = x + 2 * r * half;
        T *to = y + 2 * r * n;
        memcpy(to, from, sizeof(T) * 2 * (size_t)half);
        to[1] = 0;
        if (n % 2 == 0) to[2 * (n / 2) + 1] = 0;
        for (i64 k = half; k < n; k++) {
            to[2 * k] = from[2 * (n - k)];
            to[2 * k + 1] = -from[2 * (n - k) + 1];
        }
    }
}

static void NAME(keep_real)(const T *x, T *y, i64 count) {
    for (i64 i = 0; i < count; i++) y[i] = x[2 * i];
}

static void NAME(scale_all)(T *x, i64 count, double factor, int conjugate) {
    const T f = (T)factor;
    if (factor != 1)
        for (i64 i = 0; i < count; i++) x[i] *= f;
    if (conjugate)
        for (i64 i = 1; i < count; i += 2) x[i] = -x[i];
}

#undef READ
#undef TURN
#undef TURNED
#undef AT
#undef T
#undef NAME
