/* Convolution of each channel by itself where channels lie side by side, of one dtype, for one set of instructions: a template, see _network.c
 * and native_convolution.h.
 *
 * A vector is of channels, a tile of some pixels beside each other that meet the same taps. Nothing is copied but the factors, turned so that
 * those of a tap lie side by side. Terms are added in the order in which those are that see each channel as a plane.
 */
#define WIDTH ((i64)(VECTOR / sizeof(T)))

/* ---- results and gradients of inputs */
/* Some pixels, of all channels: the last vector of channels ends where they do. What `taps` read lies `at` some place from a pixel. */
#define PIXELS(MANY)                                                                                                             \
    static void N(pixels##MANY)(const T *from, i64 apart, const i64 *at, i64 taps, const T *const *w, const T *bias, i64 channels, T *to, \
                                i64 to_apart) {                                                                                  \
        for (i64 c = 0; c < channels; c += WIDTH) {                                                                              \
            c = least(c, channels - WIDTH);                                                                                      \
            N(Vector) s[MANY];                                                                                                   \
            for (int m = 0; m < MANY; m++)                                                                                       \
                s[m] = (N(Vector)){0};                                                                                           \
            for (i64 k = 0; k < taps; k++) {                                                                                     \
                const T *x = from + at[k] + c;                                                                                   \
                const N(Vector) f = *(const N(Vector) *)(w[k] + c);                                                              \
                for (int m = 0; m < MANY; m++)                                                                                   \
                    s[m] += f * *(const N(Vector) *)(x + m * apart);                                                             \
            }                                                                                                                    \
            const N(Vector) b = *(const N(Vector) *)(bias + c);                                                                  \
            for (int m = 0; m < MANY; m++)                                                                                       \
                *(N(Vector) *)(to + c + m * to_apart) = s[m] + b;                                                                \
        }                                                                                                                        \
    }
PIXELS(1)
PIXELS(4)
PIXELS(8)
#undef PIXELS

/* The taps of a part that read something inside from one pixel, or from all of a row (x < 0). */
static i64 N(taps_inside)(const Gather *j, const Part *p, i64 z, i64 y, i64 x, const T *w, i64 *at, const T **factors) {
    i64 found = 0;
    for (i64 t = 0; t < p->taps; t++) {
        const i64 *shift = p->shift + 3 * t;
        const i64 low = z * j->stride[0] + shift[0], mid = y * j->stride[1] + shift[1], near = x * j->stride[2] + shift[2];
        if (low < 0 || low >= j->size[0] || mid < 0 || mid >= j->size[1] || (x >= 0 && (near < 0 || near >= j->size[2])))
            continue;
        at[found] = shift[0] * j->step[2] + shift[1] * j->step[3] + shift[2] * j->step[4];
        factors[found++] = w + t * j->groups;
    }
    return found;
}

/* One row of pixels. `inner` and `outer` begin and end those from which all taps read inside the row. */
static void N(pixel_row)(const Gather *j, const Part *p, i64 z, i64 y, const T *from, const T *w, const T *bias, Room *room, T *to) {
    const i64 width = p->places[2], s = j->stride[2], apart = s * j->step[4], to_apart = j->to_step[4];
    const T **const factors = room->box;
    const i64 inner = least(width, p->low[2] < 0 ? parts_of(-p->low[2], s) : 0);
    const i64 outer = most(inner, least(width, j->size[2] > p->high[2] ? parts_of(j->size[2] - p->high[2], s) : 0));
    for (i64 x = 0; x < width; x++) {
        if (x == inner && x < outer) {
            i64 taps = N(taps_inside)(j, p, z, y, -1, w, room->taps, factors), many = outer - x >= 8 ? 8 : outer - x >= 4 ? 4 : 1;
            for (; x < outer; x += many) {
                x = least(x, outer - many);
                (many == 8 ? N(pixels8) : many == 4 ? N(pixels4) : N(pixels1))(from + x * apart, apart, room->taps, taps, factors, bias, j->groups,
                                                                               to + x * to_apart, to_apart);
            }
            if (x >= width)
                break;
        }
        i64 taps = N(taps_inside)(j, p, z, y, x, w, room->taps, factors);
        N(pixels1)(from + x * apart, apart, room->taps, taps, factors, bias, j->groups, to + x * to_apart, to_apart);
    }
}

/* The factors of a part by taps, and the bias of each channel. 0 where there is no memory. */
static int N(turn_factors)(const Gather *j, const Part *p, Room *room) {
    const i64 channels = j->groups;
    if (room->part == p)
        return 1;
    if (!widen_room(room, sizeof(T *) * (size_t)p->taps, sizeof(T) * (size_t)(p->taps * channels), sizeof(T) * (size_t)channels, 0, p->taps, 0))
        return 0;
    room->part = p;
    T *w = room->panels, *bias = room->tile;
    for (i64 c = 0; c < channels; c++) {
        for (i64 t = 0; t < p->taps; t++)
            w[t * channels + c] = X(a)[c * j->group + p->at[t]];
        bias[c] = j->bias ? X(bias)[c * j->bias_step] : 0;
    }
    return 1;
}

static void N(pixel_block)(Gather *j, const Part *p, const Block *k, Room *room) {
    if (!N(turn_factors)(j, p, room)) {
        j->failed = 1;
        return;
    }
    const i64 width = p->places[2];
    for (i64 n = k->image; n < k->image + k->images; n++)
        for (i64 q = k->first / width; q * width < k->first + k->places; q++) {
            i64 z = q / p->places[1], y = q % p->places[1];
            const T *from = X(source) + n * j->step[0] + z * j->stride[0] * j->step[2] + y * j->stride[1] * j->step[3];
            T *to = X(to) + p->start + n * j->to_step[0] + z * j->to_step[2] + y * j->to_step[3];
            N(pixel_row)(j, p, z, y, from, room->panels, room->tile, room, to);
        }
}

/* ---- gradients of weights, of as many channels as a vector holds: each a sum for every place that a column has in a vector of columns */
#define NEAR_ROWS 8 /* that are worked on together: columns that share a sum are taken one after the other */

/* A few rows of pixels: where each is in the gradient of the result, what its first pixel reads, and which of some taps read inside there. */
typedef struct {
    i64 many;
    const T *g[NEAR_ROWS], *x[NEAR_ROWS];
    u64 inside[NEAR_ROWS];
} N(Near);

static N(Near) N(near_rows)(const Gather *j, const Part *p, i64 image, i64 channel, i64 first, i64 last, const i64 *shift, i64 taps) {
    N(Near) found = {.many = last - first};
    for (i64 q = first; q < last; q++) {
        const i64 z = q / p->places[1], y = q % p->places[1];
        found.g[q - first] = X(a) + image * j->to_step[0] + channel + z * j->to_step[2] + y * j->to_step[3];
        found.x[q - first] = X(source) + image * j->step[0] + channel + z * j->stride[0] * j->step[2] + y * j->stride[1] * j->step[3];
        u64 inside = 0;
        for (i64 t = 0; t < taps; t++) {
            const i64 deep = z * j->stride[0] + shift[3 * t], row = y * j->stride[1] + shift[3 * t + 1];
            inside |= (u64)(deep >= 0 && deep < j->size[0] && row >= 0 && row < j->size[1]) << t;
        }
        found.inside[q - first] = inside;
    }
    return found;
}

INLINE u64 N(columns_inside)(const Gather *j, const i64 *shift, i64 many, i64 x) {
    u64 found = 0;
    for (i64 t = 0; t < many; t++) {
        const i64 near = x * j->stride[2] + shift[3 * t + 2];
        found |= (u64)(near >= 0 && near < j->size[2]) << t;
    }
    return found;
}

/* Some taps, in those columns of a few rows whose sums are those of one place in a vector. */
#define MEET(MANY)                                                                                                          \
    static void N(meet##MANY)(const Gather *j, const Part *p, const i64 *shift, const N(Near) *rows, i64 place, T *sums) {  \
        N(Vector) s[MANY];                                                                                                  \
        const i64 apart = j->stride[2] * j->step[4];                                                                        \
        i64 at[MANY];                                                                                                       \
        for (int t = 0; t < MANY; t++) {                                                                                    \
            s[t] = *(const N(Vector) *)(sums + t * WIDTH);                                                                  \
            at[t] = shift[3 * t] * j->step[2] + shift[3 * t + 1] * j->step[3] + shift[3 * t + 2] * j->step[4];              \
        }                                                                                                                   \
        for (i64 r = 0; r < rows->many; r++)                                                                                \
            for (i64 c = place; c < p->places[2] && rows->inside[r]; c += WIDTH) {                                          \
                const i64 low = c * j->stride[2] + p->low[2], high = c * j->stride[2] + p->high[2];                         \
                u64 inside = rows->inside[r];                                                                               \
                if (low < 0 || high >= j->size[2])                                                                          \
                    inside &= N(columns_inside)(j, shift, MANY, c);                                                         \
                const N(Vector) y = *(const N(Vector) *)(rows->g[r] + c * j->to_step[4]);                                   \
                const T *near = rows->x[r] + c * apart;                                                                     \
                if (inside == (1 << MANY) - 1)                                                                              \
                    _Pragma("GCC unroll 9") for (int t = 0; t < MANY; t++)                                                  \
                        s[t] += y * *(const N(Vector) *)(near + at[t]);                                                     \
                else                                                                                                        \
                    _Pragma("GCC unroll 9") for (int t = 0; t < MANY; t++)                                                  \
                        if (inside >> t & 1)                                                                                \
                            s[t] += y * *(const N(Vector) *)(near + at[t]);                                                 \
            }                                                                                                               \
        for (int t = 0; t < MANY; t++)                                                                                      \
            *(N(Vector) *)(sums + t * WIDTH) = s[t];                                                                        \
    }
MEET(1)
MEET(5)
MEET(7)
MEET(9)
#undef MEET

static void N(pixel_weights)(Gather *j, i64 channel, Room *room) {
    const Part *p = j->part;
    const i64 taps = p->taps, rows = p->places[0] * p->places[1], each = taps % 7 ? taps % 5 ? 9 : 5 : 7;
    if (!widen_room(room, 0, 0, 0, sizeof(T) * (size_t)(taps * WIDTH * WIDTH), 0, 0)) {
        j->failed = 1;
        return;
    }
    T *const sums = room->side;
    memset(sums, 0, sizeof(T) * (size_t)(taps * WIDTH * WIDTH));
    for (i64 n = 0; n < j->images; n++)
        for (i64 q = 0; q < rows; q += NEAR_ROWS)
            for (i64 t = 0, many; t < taps; t += many) {
                many = taps - t >= each ? each : 1;
                const i64 *shift = p->shift + 3 * t;
                const N(Near) near = N(near_rows)(j, p, n, channel, q, least(q + NEAR_ROWS, rows), shift, many);
                for (i64 place = 0; place < least(WIDTH, p->places[2]); place++)
                    (many == 9 ? N(meet9) : many == 7 ? N(meet7) : many == 5 ? N(meet5) : N(meet1))(j, p, shift, &near, place,
                                                                                                    sums + (place * taps + t) * WIDTH);
            }
    for (i64 c = 0; c < WIDTH; c++)
        for (i64 t = 0; t < taps; t++) {
            T total = 0;
            for (i64 i = 0; i < WIDTH; i++)
                total += sums[(i * taps + t) * WIDTH + c];
            X(to)[(channel + c) * taps + t] = total;
        }
}

static void N(pixel_part)(long begin, long end, Gather *j) {
    Room room = {0};
    for (long t = begin; t < end && !j->failed; t++) {
        if (j->columns) {
            N(pixel_weights)(j, least(t * WIDTH, j->groups - WIDTH), &room);
            continue;
        }
        i64 number = t;
        const Part *p = j->part;
        for (; number >= p->blocks; p++)
            number -= p->blocks;
        Block block = block_at(j, p, number);
        N(pixel_block)(j, p, &block, &room);
    }
    leave_room(&room);
}
#undef WIDTH
#undef NEAR_ROWS
