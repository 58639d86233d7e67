/* Convolution of each channel by itself, of one dtype, for one set of instructions: a template, see _network.c and native_convolution.h.
 *
 * One filter of TALL by `wide` taps without gaps or strides slides over one image at a time, which is first copied into a box with zeros around
 * it: these stay from image to image. A tile has some rows of the result, so that a vector of the box is read once for all that need it, and goes
 * from the registers to where it belongs. Terms are added in the order in which they lie in the image, as native_direct.h adds them.
 */
#define WIDTH ((i64)(VECTOR / sizeof(T)))
#if VECTOR == 64
#define FEW_ROWS 4 /* of a tile; with two vectors each, the sums and the factors fit the registers */
#define SOME_ROWS 7
#define MANY_ROWS 8
#else
#define FEW_ROWS 2
#define SOME_ROWS 3
#define MANY_ROWS 4
#endif

/* As many numbers, and no others: vectors of which the last two may overlap. */
INLINE void N(copy_exactly)(T *to, const T *from, i64 n) {
#define BY(V, LANES)                                                             \
    if (n >= LANES) {                                                            \
        for (i64 q = 0; q < n - LANES; q += LANES)                               \
            *(V *)(to + q) = *(const V *)(from + q);                             \
        *(V *)(to + n - LANES) = *(const V *)(from + n - LANES);                 \
        return;                                                                  \
    }
    BY(N(Vector), WIDTH)
    BY(N(Half), WIDTH / 2)
    BY(N(Quarter), QUARTER)
#undef BY
    for (i64 q = 0; q < n; q++)
        to[q] = from[q];
}

/* What some places of an image read: `rows` of them below each other, from one on. */
static void N(fill_plane)(const Gather *j, const Part *p, const T *from, i64 first, i64 rows, i64 pitch, T *to) {
    const i64 top = first + p->low[1], left = p->low[2], right = p->places[2] + p->high[2];
    const i64 low = most(top, 0), high = least(top + rows, j->size[1]), begin = most(left, 0), n = least(right, j->size[2]) - begin;
    for (i64 y = low; y < high && n > 0; y++) {
        const T *row = from + y * j->step[3] + begin * j->step[4];
        T *into = to + (y - top) * pitch + begin - left;
        if (j->step[4] == 1)
            N(copy_exactly)(into, row, n);
        else
            for (i64 q = 0; q < n; q++)
                into[q] = row[q * j->step[4]];
    }
}

/* The box of a block, with zeros where nothing will be copied to. 0 where there is no memory. */
static int N(clear_plane)(const Part *p, const Block *k, i64 rows, i64 pitch, Room *room) {
    const size_t bytes = sizeof(T) * (size_t)(rows * pitch + WIDTH);
    if (!widen_room(room, bytes, 0, 0, sizeof(T) * (size_t)most(p->taps, 16 * WIDTH), 0, 0))
        return 0;
    if (other_block(room, p, k))
        memset(room->box, 0, bytes);
    return 1;
}

/* ---- results and gradients of inputs: to (ROWS, VECTORS * LANES); HELD where all factors fit the registers beside the sums */
#define PLANE(NAME, V, LANES, TALL, WIDE, HELD, ROWS, VECTORS)                                                                     \
    static void N(NAME)(const T *from, i64 pitch, i64 wide, const T *w, T bias, T *to, i64 ldt) {                                  \
        V s[ROWS][VECTORS], f[HELD ? TALL * WIDE : 1];                                                                             \
        for (int k = 0; k < TALL * WIDE && HELD; k++)                                                                              \
            f[HELD ? k : 0] = w[k] - (V){0};                                                                                       \
        for (int r = 0; r < ROWS; r++)                                                                                             \
            for (int v = 0; v < VECTORS; v++)                                                                                      \
                s[r][v] = (V){0};                                                                                                  \
        _Pragma("GCC unroll 16") for (int i = 0; i < TALL + ROWS - 1; i++, from += pitch)                                          \
            for (i64 x = 0; x < (HELD ? WIDE : wide); x++) {                                                                       \
                V y[VECTORS];                                                                                                      \
                for (int v = 0; v < VECTORS; v++)                                                                                  \
                    y[v] = *(const V *)(from + x + v * LANES);                                                                     \
                _Pragma("GCC unroll 16") for (int r = i < TALL ? 0 : i - TALL + 1; r < (i < ROWS ? i + 1 : ROWS); r++) {           \
                    V m;                                                                                                           \
                    if (HELD)                                                                                                      \
                        m = f[HELD ? (i - r) * WIDE + x : 0];                                                                      \
                    else                                                                                                           \
                        m = w[(i - r) * wide + x] - (V){0};                                                                        \
                    for (int v = 0; v < VECTORS; v++)                                                                              \
                        s[r][v] += m * y[v];                                                                                       \
                }                                                                                                                  \
            }                                                                                                                      \
        for (int r = 0; r < ROWS; r++)                                                                                             \
            for (int v = 0; v < VECTORS; v++)                                                                                      \
                *(V *)(to + r * ldt + v * LANES) = s[r][v] + bias;                                                                 \
    }
#define HALF_LANES (WIDTH > 2 ? WIDTH / 2 : 1)
#define BY_ROWS(NAME, TALL, WIDE, HELD, ROWS)                                                  \
    PLANE(plane##NAME##_by_##ROWS, N(Vector), WIDTH, TALL, WIDE, HELD, ROWS, 1)                \
    PLANE(plane##NAME##_half_by_##ROWS, N(Half), HALF_LANES, TALL, WIDE, HELD, ROWS, 1)
#define PLANES(NAME, TALL, WIDE, HELD)                                                         \
    BY_ROWS(NAME, TALL, WIDE, HELD, 1)                                                         \
    BY_ROWS(NAME, TALL, WIDE, HELD, FEW_ROWS)                                                  \
    BY_ROWS(NAME, TALL, WIDE, HELD, SOME_ROWS)                                                 \
    BY_ROWS(NAME, TALL, WIDE, HELD, MANY_ROWS)                                                 \
    PLANE(plane##NAME##_pair, N(Vector), WIDTH, TALL, WIDE, HELD, FEW_ROWS, 2)
PLANES(1, 1, 1, 0)
PLANES(2, 2, 1, 0)
PLANES(3, 3, 1, 0)
PLANES(3_by_3, 3, 3, 1)
PLANES(4, 4, 1, 0)
PLANES(5, 5, 1, 0)
PLANES(7, 7, 1, 0)
#undef PLANES
#undef BY_ROWS
#undef PLANE
#define BY_ROWS(NAME, ROWS) N(plane##NAME##_by_##ROWS), N(plane##NAME##_half_by_##ROWS)
#define PLANES(NAME) {BY_ROWS(NAME, 1), BY_ROWS(NAME, FEW_ROWS), BY_ROWS(NAME, SOME_ROWS), BY_ROWS(NAME, MANY_ROWS), N(plane##NAME##_pair)}
static void (*const N(planes)[8][9])(const T *, i64, i64, const T *, T, T *, i64) = {PLANES(3_by_3), PLANES(1), PLANES(2), PLANES(3),
                                                                                       PLANES(4),      PLANES(5), {0},       PLANES(7)};
#undef BY_ROWS
#undef PLANES

/* Rows of a tile that is one vector wide: those of the fewest tiles. */
INLINE i64 N(rows_together)(i64 rows) {
    if (rows < SOME_ROWS)
        return rows < FEW_ROWS ? 1 : FEW_ROWS;
    return rows < MANY_ROWS || parts_of(rows, SOME_ROWS) * SOME_ROWS < parts_of(rows, MANY_ROWS) * MANY_ROWS ? SOME_ROWS : MANY_ROWS;
}

/* One image: rows of the result that lie one behind the other, from the box. */
static void N(slide)(const Part *p, i64 rows, const T *box, i64 pitch, const T *w, T bias, T *to) {
    const i64 width = p->places[2], tall = p->high[1] - p->low[1] + 1, wide = p->high[2] - p->low[2] + 1;
    const i64 half = WIDTH > 2 && 2 * width <= WIDTH, lanes = half ? WIDTH / 2 : WIDTH;
    void (*const *tiles)(const T *, i64, i64, const T *, T, T *, i64) = N(planes)[tall == 3 && wide == 3 ? 0 : tall];
    const i64 paired = width >= 2 * lanes && rows >= FEW_ROWS, many = paired ? FEW_ROWS : N(rows_together)(rows);
    const i64 kind = half + (many == 1 ? 0 : many == FEW_ROWS ? 2 : many == SOME_ROWS ? 4 : 6);
    const T *const end = to + rows * width;
    T tile[MANY_ROWS * (VECTOR / sizeof(T))];
    for (i64 r = 0; r < rows; r += many) { /* the last tile ends where the image does: what it meets, it computes again */
        r = least(r, rows - many);
        for (i64 q = 0, pair; q < width; q += lanes << pair) {
            pair = paired && width - q > lanes;
            q = most(0, least(q, width - (lanes << pair)));
            T *into = to + r * width + q;
            int fits = into + (many - 1) * width + (lanes << pair) <= end; /* what is written behind a short row is written again by the next */
            tiles[pair ? 8 : kind](box + r * pitch + q, pitch, wide, w, bias, fits ? into : tile, fits ? width : lanes);
            for (i64 m = 0; m < many && !fits; m++)
                for (i64 x = 0; x < width; x++)
                    into[m * width + x] = tile[m * lanes + x];
        }
    }
}

static void N(plane_block)(Gather *j, const Part *p, const Block *k, i64 channel, Room *room) {
    const i64 width = p->places[2], rows = k->places / width, first = k->first / width, tall = p->high[1] - p->low[1] + 1;
    const i64 pitch = most(width, WIDTH) + p->high[2] - p->low[2];
    if (!N(clear_plane)(p, k, rows + tall - 1, pitch, room)) {
        j->failed = 1;
        return;
    }
    T *w = room->side;
    for (i64 t = 0; t < p->taps; t++)
        w[t] = X(a)[channel * j->group + p->at[t]];
    for (i64 n = k->image; n < k->image + k->images; n++) {
        N(fill_plane)(j, p, X(source) + n * j->step[0] + channel * j->step[1], first, rows + tall - 1, pitch, room->box);
        N(slide)(p, rows, room->box, pitch, w, j->bias ? X(bias)[channel * j->bias_step] : 0,
                 X(to) + n * j->to_step[0] + channel * j->to_step[1] + k->first);
    }
}

/* ---- gradients of weights of three by three: each a sum in every place of a vector */
static void N(meet_plane)(const T *g, i64 rows, i64 width, const T *end, const T *box, i64 pitch, T *sums) {
    N(Vector) s[9];
    N(Bits) seen; /* what lies behind a row is not of it, and may not be finite */
    for (int i = 0; i < WIDTH; i++)
        seen[i] = i;
    seen = seen < (SAME_SIZE)(width - (parts_of(width, WIDTH) - 1) * WIDTH);
    for (int t = 0; t < 9; t++)
        s[t] = *(const N(Vector) *)(sums + t * WIDTH);
    for (i64 r = 0; r < rows; r++, g += width, box += pitch) {
        i64 q = 0;
        for (; q + WIDTH <= width; q += WIDTH) {
            const N(Vector) y = *(const N(Vector) *)(g + q);
            _Pragma("GCC unroll 9") for (int t = 0; t < 9; t++)
                s[t] += y * *(const N(Vector) *)(box + t / 3 * pitch + q + t % 3);
        }
        if (q == width)
            continue;
        N(Vector) y = {0};
        if (g + q + WIDTH <= end)
            y = (N(Vector))((N(Bits))*(const N(Vector) *)(g + q) & seen);
        else
            for (i64 i = 0; i < width - q; i++)
                y[i] = g[q + i];
        _Pragma("GCC unroll 9") for (int t = 0; t < 9; t++)
            s[t] += y * (N(Vector))((N(Bits))*(const N(Vector) *)(box + t / 3 * pitch + q + t % 3) & seen);
    }
    for (int t = 0; t < 9; t++)
        *(N(Vector) *)(sums + t * WIDTH) = s[t];
}

static void N(plane_weights)(Gather *j, i64 channel, Room *room) {
    const Part *p = j->part;
    const i64 width = p->places[2], pitch = parts_of(width, WIDTH) * WIDTH + 2;
    const T *const end = X(a) + (j->images - 1) * j->group + (j->groups - 1) * j->row + p->places[1] * width;
    for (i64 b = 0; b < p->blocks; b++) {
        const Block k = block_at(j, p, b);
        const i64 rows = k.places / width, first = k.first / width;
        if (!N(clear_plane)(p, &k, rows + 2, pitch, room)) {
            j->failed = 1;
            return;
        }
        if (!b)
            memset(room->side, 0, sizeof(T) * (size_t)(9 * WIDTH));
        for (i64 n = k.image; n < k.image + k.images; n++) {
            N(fill_plane)(j, p, X(source) + n * j->step[0] + channel * j->step[1], first, rows + 2, pitch, room->box);
            N(meet_plane)(X(a) + n * j->group + channel * j->row + k.first, rows, width, end, room->box, pitch, room->side);
        }
    }
    for (i64 t = 0; t < 9; t++) {
        const T *sum = (T *)room->side + t * WIDTH;
        T total = 0;
        for (i64 i = 0; i < WIDTH; i++)
            total += sum[i];
        X(to)[channel * 9 + t] = total;
    }
}
#undef WIDTH
#undef HALF_LANES
#undef FEW_ROWS
#undef SOME_ROWS
#undef MANY_ROWS
