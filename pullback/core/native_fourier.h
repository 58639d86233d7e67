/* Transforms of many lines of complex numbers at once, for one precision: read by _fourier.c with T and NAME defined.
 *
 * A line has a power of two of points, an odd prime, or few. LANES lines are transformed side by side, so that every step is a loop over them; factors are
 * computed in double precision.
 */

/* Any number of points, by the sums that define the transform: for few of them. */
static T *NAME(sum_lanes)(const T *x, T *y, i64 n, const double *cosines, const double *sines, i64 every, int forward) {
    for (i64 k = 0; k < n; k++) {
        T *restrict u = y + k * 2 * LANES;
        for (int l = 0; l < 2 * LANES; l++) u[l] = 0;
        for (i64 j = 0, turn = 0; j < n; j++, turn = (turn + k) % n) {
            const T c = (T)cosines[turn * every], s = (T)(forward ? -sines[turn * every] : sines[turn * every]), *restrict a = x + j * 2 * LANES;
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
                                                                     i64 every, T sign) {
    const i64 quarter = n / 4, apart = stride * quarter * 2 * LANES;
    for (i64 p = 0; p < quarter; p++) {
        T c[3], s[3];
        for (int i = 0; i < 3; i++) c[i] = (T)cosines[(i + 1) * p * stride * every], s[i] = sign * (T)sines[(i + 1) * p * stride * every];
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

/* An odd number of points: j and n - j have the same cosine and opposite sines, so their sum meets the one and their difference the other,
 * and points k and n - k of the result are made of the same two sums. x is used up. */
static inline __attribute__((always_inline)) T *NAME(odd_lanes)(T *x, T *y, i64 n, const double *cosines, const double *sines, i64 every, int forward) {
    T c[MOST_ODD], s[MOST_ODD];
    for (i64 k = 0; k < n; k++) c[k] = (T)cosines[k * every], s[k] = (T)(forward ? -sines[k * every] : sines[k * every]);
    const i64 half = (n - 1) / 2, step = 2 * LANES;
    for (int l = 0; l < step; l++) y[l] = x[l];
    for (i64 j = 1; j <= half; j++) {
        T *restrict a = x + j * step, *restrict b = x + (n - j) * step;
        for (int l = 0; l < step; l++) {
            const T both = a[l] + b[l], apart = a[l] - b[l];
            a[l] = both;
            b[l] = apart;
            y[l] += both;
        }
    }
    for (i64 k = 1; k <= half; k++)
        for (int l = 0; l < LANES; l += 2 * EIGHT) { /* two vectors side by side, so that no sum waits for itself */
            NAME(Eight) even[4], odd[4] = {{0}};
            for (int v = 0; v < 4; v++) even[v] = READ(x + (v & 1) * LANES + l + (v >> 1) * EIGHT);
            for (i64 j = 1, turn = k; j <= half; j++, turn += k, turn -= turn >= n ? n : 0) {
                const T *a = x + j * step + l, *b = x + (n - j) * step + l;
                for (int v = 0; v < 4; v++) {
                    const i64 at = (v & 1) * LANES + (v >> 1) * EIGHT;
                    even[v] += c[turn] * READ(a + at);
                    odd[v] += s[turn] * READ(b + at);
                }
            }
            T *u = y + k * step + l, *w = y + (n - k) * step + l;
            for (int v = 0; v < 4; v += 2) {
                const i64 at = (v >> 1) * EIGHT;
                READ(u + at) = even[v] - odd[v + 1];
                READ(u + LANES + at) = even[v + 1] + odd[v];
                READ(w + at) = even[v] + odd[v + 1];
                READ(w + LANES + at) = even[v + 1] - odd[v];
            }
        }
    return y;
}

/* x of n points (real parts, then imaginary ones, LANES of each), by steps that read one half and write the other; the result is where
 * the pointer that is returned points. Every so manieth of the factors is one of n points. */
CLONED static T *NAME(transform_lanes)(T *x, T *y, i64 n, const double *cosines, const double *sines, i64 every, int forward) {
    if (n & 1 && n > 1 && n <= MOST_ODD) return NAME(odd_lanes)(x, y, n, cosines, sines, every, forward);
    if (n & (n - 1)) return NAME(sum_lanes)(x, y, n, cosines, sines, every, forward);
    i64 left = n, stride = 1;
    for (; left >= 4; left /= 4, stride *= 4) {
        if (forward)
            NAME(step_of_four)(x, y, left, stride, cosines, sines, every, -1);
        else
            NAME(step_of_four)(x, y, left, stride, cosines, sines, every, 1);
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

/* LANES lines of n numbers, `pitch` apart; number k of all of them to x + k * step. n is a multiple of four. */
static void NAME(turn_in)(const T *from, i64 n, i64 pitch, T *x, i64 step) {
    for (int g = 0; g < LANES; g += 4, from += 4 * pitch)
        for (i64 k = 0; k < n; k += 4) {
#define TO(i, v) *(NAME(Four) *)(x + (k + i) * step + g) = (v)
            TURN(AT(from + k), AT(from + pitch + k), AT(from + 2 * pitch + k), AT(from + 3 * pitch + k), TO);
#undef TO
        }
}

static void NAME(turn_out)(const T *x, i64 step, T *to, i64 n, i64 pitch) {
    for (int g = 0; g < LANES; g += 4, to += 4 * pitch)
        for (i64 k = 0; k < n; k += 4) {
            const T *p = x + k * step + g;
#define TO(i, v) *(NAME(Four) *)(to + pitch * (i) + k) = (v)
            TURN(AT(p), AT(p + step), AT(p + 2 * step), AT(p + 3 * step), TO);
#undef TO
        }
}
#endif

/* `count` lines of n numbers to lanes and back, by blocks where they are whole; the lanes that are left are zero. */
static void NAME(rows_in)(const T *from, i64 count, i64 n, i64 pitch, T *x, i64 step) {
    i64 done = 0;
#ifdef TURNED
    if (count == LANES) NAME(turn_in)(from, done = n / 4 * 4, pitch, x, step);
#endif
    for (i64 k = done; k < n; k++)
        for (i64 l = 0; l < LANES; l++) x[k * step + l] = l < count ? from[l * pitch + k] : 0;
}

static void NAME(rows_out)(const T *x, i64 step, T *to, i64 count, i64 n, i64 pitch) {
    i64 done = 0;
#ifdef TURNED
    if (count == LANES) NAME(turn_out)(x, step, to, done = n / 4 * 4, pitch);
#endif
    for (i64 l = 0; l < count; l++)
        for (i64 k = done; k < n; k++) to[l * pitch + k] = x[k * step + l];
}

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
    if (inner == 1) {
        NAME(rows_in)(base, count, 2 * n, 2 * n, x, LANES);
        return;
    }
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
    if (inner == 1) {
        NAME(rows_out)(x, LANES, base, count, 2 * n, 2 * n);
        return;
    }
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
        NAME(lines_out)(NAME(transform_lanes)(room, room + 2 * n * LANES, n, cosines, sines, 1, forward), data, first, count, n, inner);
    }
}

/* ---- real rows: of an even number n of points, those at even and at odd places are the two parts of n / 2 complex ones */
CLONED static void NAME(part_spectra)(const T *z, i64 n, const double *cosines, const double *sines, T *y) { /* n / 2 + 1 points of n / 2 */
    const T half = (T)0.5;
    const i64 m = n / 2;
    for (i64 k = 0; k <= m; k++) {
        const T *u = z + k % m * 2 * LANES, *v = z + (m - k) % m * 2 * LANES, c = (T)cosines[k], s = -(T)sines[k];
        T *to = y + k * 2 * LANES;
        for (int l = 0; l < LANES; l += EIGHT) {
            const NAME(Eight) er = (READ(u + l) + READ(v + l)) * half, ei = (READ(u + LANES + l) - READ(v + LANES + l)) * half;
            const NAME(Eight) or = (READ(u + LANES + l) + READ(v + LANES + l)) * half, oi = (READ(v + l) - READ(u + l)) * half;
            READ(to + l) = er + or * c - oi * s;
            READ(to + LANES + l) = ei + or * s + oi * c;
        }
    }
}

CLONED static void NAME(join_spectra)(const T *x, i64 n, const double *cosines, const double *sines, T *z) { /* back; n times as large */
    const i64 m = n / 2;
    for (i64 k = 0; k < m; k++) {
        const T *u = x + k * 2 * LANES, *v = x + (m - k) * 2 * LANES, c = (T)cosines[k], s = (T)sines[k];
        const int imaginary = k > 0; /* the first and the middle point are taken as real */
        T *to = z + k * 2 * LANES;
        for (int l = 0; l < LANES; l += EIGHT) {
            const NAME(Eight) none = {0};
            const NAME(Eight) ui = imaginary ? READ(u + LANES + l) : none, vi = imaginary ? READ(v + LANES + l) : none;
            const NAME(Eight) er = READ(u + l) + READ(v + l), ei = ui - vi, dr = READ(u + l) - READ(v + l), di = ui + vi;
            READ(to + l) = er - (dr * s + di * c);
            READ(to + LANES + l) = ei + (dr * c - di * s);
        }
    }
}

/* Half the spectra of rows of n real numbers; `room` holds (6 n + 4) LANES numbers. */
static void NAME(real_rows)(const T *x, T *y, i64 rows, i64 n, const double *cosines, const double *sines, T *room) {
    const i64 half = n / 2 + 1;
    T *other = room + 2 * n * LANES, *found = other + 2 * n * LANES;
    for (i64 first = 0; first < rows; first += LANES) {
        i64 count = rows - first < LANES ? rows - first : LANES;
        if (n % 2 == 0) {
            NAME(rows_in)(x + first * n, count, n, n, room, LANES);
            NAME(part_spectra)(NAME(transform_lanes)(room, other, n / 2, cosines, sines, 2, 1), n, cosines, sines, found);
        } else {
            NAME(rows_in)(x + first * n, count, n, n, room, 2 * LANES);
            NAME(rows_in)(x, 0, n, n, room + LANES, 2 * LANES);
            found = NAME(transform_lanes)(room, other, n, cosines, sines, 1, 1);
        }
        NAME(rows_out)(found, LANES, y + first * 2 * half, count, 2 * half, 2 * half);
    }
}

/* Rows of n real numbers from half their spectra, as long a room. */
static void NAME(rows_of_spectra)(const T *x, T *y, i64 rows, i64 n, const double *cosines, const double *sines, T *room) {
    const i64 half = n / 2 + 1;
    T *other = room + 2 * n * LANES, *given = other + 2 * n * LANES;
    for (i64 first = 0; first < rows; first += LANES) {
        i64 count = rows - first < LANES ? rows - first : LANES;
        NAME(rows_in)(x + first * 2 * half, count, 2 * half, 2 * half, n % 2 ? room : given, LANES);
        if (n % 2 == 0) {
            NAME(join_spectra)(given, n, cosines, sines, room);
            NAME(rows_out)(NAME(transform_lanes)(room, other, n / 2, cosines, sines, 2, 0), LANES, y + first * n, count, n, n);
            continue;
        }
        NAME(rows_in)(x, 0, 1, 1, room + LANES, LANES); /* the first point is taken as real */
        for (i64 k = 1; k < half; k++)
            for (int l = 0; l < LANES; l++) {
                room[(n - k) * 2 * LANES + l] = room[k * 2 * LANES + l];
                room[((n - k) * 2 + 1) * LANES + l] = -room[(k * 2 + 1) * LANES + l];
            }
        NAME(rows_out)(NAME(transform_lanes)(room, other, n, cosines, sines, 1, 0), 2 * LANES, y + first * n, count, n, n);
    }
}

/* Real numbers as complex ones; rows of n points of which half are there, and the rest follows from them. */
static void NAME(widen_real)(const T *x, T *y, i64 count) {
    for (i64 i = 0; i < count; i++) {
        y[2 * i] = x[i];
        y[2 * i + 1] = 0;
    }
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
