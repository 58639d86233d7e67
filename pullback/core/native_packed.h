/* Products of matrices of one dtype, for one set of instructions. A template: see _products.c.
 *
 * c = a b, or c += a b, and a row that is added last. The right factor is laid out in panels, for each step of the sum as many numbers as a
 * tile of the result has columns; the left one is read where it lies, a number at a time. Every matrix but the result has any steps.
 *
 * An element of the result is a sum of sums: the terms of a block of steps are added in their order, each product and addition rounded once
 * where the machine can (fma), and so are the blocks. One sum of all terms would lose a digit in a thousand of them. The blocks depend on the
 * number of steps alone: neither how a product is cut into tiles or tasks nor how the matrices lie in memory changes a bit of it.
 */
#define WIDTH ((i64)(VECTOR / sizeof(T)))

/* ---- tiles: c (ROWS, VECTORS * WIDTH) = or += a b, plus a row that is the same for all rows */
#define TILE(ROWS, VECTORS)                                                                                                              \
    static void N(tile##ROWS##_##VECTORS)(i64 k, const T *a, i64 row, i64 step, const T *b, i64 ldb, int adds, const T *bias, T *c, i64 ldc) { \
        N(Vector) s[ROWS][VECTORS];                                                                                                      \
        for (int r = 0; r < ROWS; r++)                                                                                                   \
            for (int v = 0; v < VECTORS; v++)                                                                                            \
                s[r][v] = (N(Vector)){0};                                                                                                \
        for (i64 p = 0; p < k; p++, a += step, b += ldb) {                                                                               \
            N(Vector) x[VECTORS];                                                                                                        \
            for (int v = 0; v < VECTORS; v++)                                                                                            \
                x[v] = *(const N(Vector) *)(b + v * WIDTH);                                                                              \
            for (int r = 0; r < ROWS; r++) {                                                                                             \
                const T f = a[r * row];                                                                                                  \
                for (int v = 0; v < VECTORS; v++)                                                                                        \
                    s[r][v] += f * x[v];                                                                                                 \
            }                                                                                                                            \
        }                                                                                                                                \
        for (int r = 0; adds && r < ROWS; r++)                                                                                           \
            for (int v = 0; v < VECTORS; v++)                                                                                            \
                s[r][v] = *(const N(Vector) *)(c + r * ldc + v * WIDTH) + s[r][v];                                                       \
        for (int v = 0; bias && v < VECTORS; v++)                                                                                        \
            for (int r = 0; r < ROWS; r++)                                                                                               \
                s[r][v] += *(const N(Vector) *)(bias + v * WIDTH);                                                                       \
        for (int r = 0; r < ROWS; r++)                                                                                                   \
            for (int v = 0; v < VECTORS; v++)                                                                                            \
                *(N(Vector) *)(c + r * ldc + v * WIDTH) = s[r][v];                                                                       \
    }
#define SIX(DO, V) DO(1, V) DO(2, V) DO(3, V) DO(4, V) DO(5, V) DO(6, V)
#define TWELVE(DO, V) SIX(DO, V) DO(7, V) DO(8, V) DO(9, V) DO(10, V) DO(11, V) DO(12, V)
#define EIGHT(DO, V) SIX(DO, V) DO(7, V) DO(8, V)
#define NAMED(ROWS, V) N(tile##ROWS##_##V),
#if VECTOR == 64 /* as many registers as a tile and its factors take */
#define VECTORS_AT_MOST 4
#define ROWS_AT_ONCE 12
TWELVE(TILE, 1) TWELVE(TILE, 2) EIGHT(TILE, 3) SIX(TILE, 4)
#define TILES {{TWELVE(NAMED, 1)}, {TWELVE(NAMED, 2)}, {EIGHT(NAMED, 3)}, {SIX(NAMED, 4)}}
static const i64 N(rows_of_tile)[] = {12, 12, 8, 6};
#else
#define VECTORS_AT_MOST 2
#define ROWS_AT_ONCE 6
SIX(TILE, 1) SIX(TILE, 2)
#define TILES {{SIX(NAMED, 1)}, {SIX(NAMED, 2)}}
static const i64 N(rows_of_tile)[] = {6, 6};
#endif
typedef void (*N(Tile))(i64, const T *, i64, i64, const T *, i64, int, const T *, T *, i64);
static const N(Tile) N(tiles)[VECTORS_AT_MOST][ROWS_AT_ONCE] = TILES;
#undef TILES
#undef NAMED
#undef EIGHT
#undef TWELVE
#undef SIX
#undef TILE

/* ---- panels */
/* How many vectors the next panel of `columns` has: never a single one behind full ones. */
INLINE i64 N(vectors_of)(i64 columns) {
    i64 left = (columns + WIDTH - 1) / WIDTH;
    return left < VECTORS_AT_MOST ? left : left == VECTORS_AT_MOST + 1 && VECTORS_AT_MOST > 2 ? VECTORS_AT_MOST - 1 : VECTORS_AT_MOST;
}

/* A panel of k steps and n columns, from a matrix by its steps; columns that are not there are zero. */
static void N(pack)(i64 k, i64 n, i64 vectors, const T *b, i64 down, i64 across, T *to) {
    const i64 wide = vectors * WIDTH;
    i64 p = 0;
    if (across == 1)
        for (const i64 whole = n / WIDTH; p < k; p++) {
            const T *from = b + p * down;
            T *into = to + p * wide;
            for (i64 v = 0; v < whole; v++)
                *(N(Vector) *)(into + v * WIDTH) = *(const N(Vector) *)(from + v * WIDTH);
            for (i64 q = whole * WIDTH; q < wide; q++)
                into[q] = q < n ? from[q] : 0;
        }
    else if (down == 1)
        for (; p + WIDTH <= k; p += WIDTH)
            for (i64 v = 0; v < vectors; v++)
                N(turn_block)(b + v * WIDTH * across + p, across, n - v * WIDTH < WIDTH ? n - v * WIDTH : WIDTH, to + p * wide + v * WIDTH, wide);
    for (; p < k; p++)
        for (i64 q = 0; q < wide; q++)
            to[p * wide + q] = q < n ? b[p * down + q * across] : 0;
}

/* All rows by one panel, of which `real` columns exist. */
static void N(strip)(i64 m, i64 k, i64 vectors, i64 real, const T *a, i64 row, i64 step, const T *b, i64 ldb, int adds, const T *bias, T *c, i64 ldc) {
    const i64 most = N(rows_of_tile)[vectors - 1], count = (m + most - 1) / most, wide = vectors * WIDTH;
    for (i64 t = 0; t < count; t++) {
        const i64 rows = m / count + (t < m % count);
        const N(Tile) tile = N(tiles)[vectors - 1][rows - 1];
        if (real == wide)
            tile(k, a, row, step, b, ldb, adds, bias, c, ldc);
        else {
            T room[ROWS_AT_ONCE * VECTORS_AT_MOST * VECTOR / sizeof(T)];
            for (i64 r = 0; r < rows && adds; r++)
                for (i64 q = 0; q < wide; q++)
                    room[r * wide + q] = q < real ? c[r * ldc + q] : 0;
            tile(k, a, row, step, b, ldb, adds, NULL, room, wide);
            for (i64 r = 0; r < rows; r++)
                for (i64 q = 0; q < real; q++)
                    c[r * ldc + q] = bias ? room[r * wide + q] + bias[q] : room[r * wide + q];
        }
        a += rows * row;
        c += rows * ldc;
    }
}
#undef WIDTH
