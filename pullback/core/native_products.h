/* Small matrix products of one dtype, for one set of instructions: where packing for BLAS would cost more than the work. A template: see
 * _network.c.
 *
 * c = alpha a b, or c += alpha a b: a is (m, k) with any strides, rows of b and c are contiguous. Six rows and two vectors of columns are
 * held in registers; what is left at the edges is done by the same steps, fewer at a time.
 */
#define WIDTH ((i64)(VECTOR / sizeof(T)))

#define TILE(name, ROWS)                                                                                                               \
    INLINE void N(name)(i64 k, T alpha, const T *a, i64 row, i64 step, const T *b, i64 ldb, int adds, T *c, i64 ldc) {                \
        N(Vector) s[ROWS][2];                                                                                                         \
        for (int r = 0; r < ROWS; r++)                                                                                                \
            s[r][0] = s[r][1] = (N(Vector)){0};                                                                                       \
        for (i64 p = 0; p < k; p++) {                                                                                                 \
            const N(Vector) x = *(const N(Vector) *)(b + p * ldb), y = *(const N(Vector) *)(b + p * ldb + WIDTH);                     \
            for (int r = 0; r < ROWS; r++) {                                                                                          \
                const T f = a[r * row + p * step];                                                                                    \
                s[r][0] += f * x;                                                                                                     \
                s[r][1] += f * y;                                                                                                     \
            }                                                                                                                         \
        }                                                                                                                             \
        for (int r = 0; r < ROWS; r++)                                                                                                \
            for (int h = 0; h < 2; h++) {                                                                                             \
                N(Vector) *to = (N(Vector) *)(c + r * ldc + h * WIDTH);                                                               \
                *to = adds ? *to + alpha * s[r][h] : alpha * s[r][h];                                                                 \
            }                                                                                                                         \
    }
TILE(tile6, 6)
TILE(tile1, 1)
#undef TILE

static void N(product)(i64 m, i64 n, i64 k, T alpha, const T *a, i64 row, i64 step, const T *b, i64 ldb, int adds, T *c, i64 ldc) {
    i64 whole = n / (2 * WIDTH) * (2 * WIDTH);
    for (i64 j = 0; j < whole; j += 2 * WIDTH) {
        i64 i = 0;
        for (; i + 6 <= m; i += 6)
            N(tile6)(k, alpha, a + i * row, row, step, b + j, ldb, adds, c + i * ldc + j, ldc);
        for (; i < m; i++)
            N(tile1)(k, alpha, a + i * row, row, step, b + j, ldb, adds, c + i * ldc + j, ldc);
    }
    for (i64 i = 0; i < m && whole < n; i++) { /* the last columns */
        T s[2 * VECTOR];
        i64 left = n - whole;
        for (i64 j = 0; j < left; j++)
            s[j] = 0;
        for (i64 p = 0; p < k; p++) {
            const T f = a[i * row + p * step], *from = b + p * ldb + whole;
            for (i64 j = 0; j < left; j++)
                s[j] += f * from[j];
        }
        for (i64 j = 0; j < left; j++)
            c[i * ldc + whole + j] = adds ? c[i * ldc + whole + j] + alpha * s[j] : alpha * s[j];
    }
}

/* rows of a matrix as columns: to is (n, m) with ldt, from (m, n) */
static void N(turn)(i64 m, i64 n, const T *from, i64 ldf, T *to, i64 ldt) {
    for (i64 i = 0; i < m; i += 8)
        for (i64 j = 0; j < n; j++)
            for (i64 r = i; r < (i + 8 < m ? i + 8 : m); r++)
                to[j * ldt + r] = from[r * ldf + j];
}
#undef WIDTH
