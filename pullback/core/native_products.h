/* Small matrix products of one dtype, for one set of instructions: where packing for BLAS would cost more than the work. A template: see
 * _network.c.
 *
 * c = alpha a b, or c += alpha a b: a is (m, k) with any strides, rows of b and c are contiguous. Six rows and two vectors of columns are
 * held in registers; what is left at the edges is done by the same steps, fewer at a time.
 */
#define WIDTH ((i64)(VECTOR / sizeof(T)))
#define DEEP 128 /* rows that are laid out at a time */

#define TILE(name, ROWS, VECTORS)                                                                                                      \
    INLINE void N(name)(i64 k, T alpha, const T *a, i64 row, i64 step, const T *b, i64 ldb, int adds, T *c, i64 ldc) {                \
        N(Vector) s[ROWS][VECTORS];                                                                                                   \
        for (int r = 0; r < ROWS; r++)                                                                                                \
            for (int h = 0; h < VECTORS; h++)                                                                                         \
                s[r][h] = (N(Vector)){0};                                                                                             \
        for (i64 p = 0; p < k; p++) {                                                                                                 \
            N(Vector) x[VECTORS];                                                                                                     \
            for (int h = 0; h < VECTORS; h++)                                                                                         \
                x[h] = *(const N(Vector) *)(b + p * ldb + h * WIDTH);                                                                 \
            for (int r = 0; r < ROWS; r++) {                                                                                          \
                const T f = a[r * row + p * step];                                                                                    \
                for (int h = 0; h < VECTORS; h++)                                                                                     \
                    s[r][h] += f * x[h];                                                                                              \
            }                                                                                                                         \
        }                                                                                                                             \
        for (int r = 0; r < ROWS; r++)                                                                                                \
            for (int h = 0; h < VECTORS; h++) {                                                                                       \
                N(Vector) *to = (N(Vector) *)(c + r * ldc + h * WIDTH);                                                               \
                *to = adds ? *to + alpha * s[r][h] : alpha * s[r][h];                                                                 \
            }                                                                                                                         \
    }
TILE(tile6, 6, 2)
TILE(tile1, 1, 2)
TILE(half8, 8, 1)
TILE(half1, 1, 1)
#undef TILE

/* one vector of columns */
static void N(product_half)(i64 m, i64 k, T alpha, const T *a, i64 row, i64 step, const T *b, i64 ldb, int adds, T *c, i64 ldc) {
    i64 i = 0;
    for (; i + 8 <= m; i += 8)
        N(half8)(k, alpha, a + i * row, row, step, b, ldb, adds, c + i * ldc, ldc);
    for (; i < m; i++)
        N(half1)(k, alpha, a + i * row, row, step, b, ldb, adds, c + i * ldc, ldc);
}

/* fewer columns than a vector has: b's are laid out in whole ones, some rows at a time */
static void N(product_few)(i64 m, i64 n, i64 k, T alpha, const T *a, i64 row, i64 step, const T *b, i64 ldb, int adds, T *c, i64 ldc) {
    T whole[DEEP * VECTOR / sizeof(T)], rows[8 * VECTOR / sizeof(T)];
    for (i64 first = 0; first < k; first += DEEP) {
        const i64 deep = k - first < DEEP ? k - first : DEEP, adding = adds || first;
        for (i64 p = 0; p < deep; p++)
            for (i64 j = 0; j < WIDTH; j++)
                whole[p * WIDTH + j] = j < n ? b[(first + p) * ldb + j] : 0;
        for (i64 i = 0; i < m; i += 8) {
            const i64 these = m - i < 8 ? m - i : 8;
            N(product_half)(these, deep, alpha, a + i * row + first * step, row, step, whole, WIDTH, 0, rows, WIDTH);
            for (i64 r = 0; r < these; r++)
                for (i64 j = 0; j < n; j++)
                    c[(i + r) * ldc + j] = adding ? c[(i + r) * ldc + j] + rows[r * WIDTH + j] : rows[r * WIDTH + j];
        }
    }
    for (i64 i = 0; !k && !adds && i < m; i++)
        for (i64 j = 0; j < n; j++)
            c[i * ldc + j] = 0;
}

static void N(product)(i64 m, i64 n, i64 k, T alpha, const T *a, i64 row, i64 step, const T *b, i64 ldb, int adds, T *c, i64 ldc) {
    i64 whole = n / (2 * WIDTH) * (2 * WIDTH);
    for (i64 j = 0; j < whole; j += 2 * WIDTH) {
        i64 i = 0;
        for (; i + 6 <= m; i += 6)
            N(tile6)(k, alpha, a + i * row, row, step, b + j, ldb, adds, c + i * ldc + j, ldc);
        for (; i < m; i++)
            N(tile1)(k, alpha, a + i * row, row, step, b + j, ldb, adds, c + i * ldc + j, ldc);
    }
    if (n - whole >= WIDTH) {
        N(product_half)(m, k, alpha, a, row, step, b + whole, ldb, adds, c + whole, ldc);
        whole += WIDTH;
    }
    if (whole < n)
        N(product_few)(m, n - whole, k, alpha, a, row, step, b + whole, ldb, adds, c + whole, ldc);
}

/* rows of a matrix as columns: to is (n, m) with ldt, from (m, n) */
static void N(turn)(i64 m, i64 n, const T *from, i64 ldf, T *to, i64 ldt) {
    for (i64 i = 0; i < m; i += 8)
        for (i64 j = 0; j < n; j++)
            for (i64 r = i; r < (i + 8 < m ? i + 8 : m); r++)
                to[j * ldt + r] = from[r * ldf + j];
}
#undef WIDTH
#undef DEEP
