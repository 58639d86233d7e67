/* Whole products of matrices of one dtype, for one set of instructions, by what native_packed.h has. A template: see _products.c. */
#define WIDTH ((i64)(VECTOR / sizeof(T)))

/* How many steps a block of a sum of k has, the last one aside; they are the same wherever a product is cut. */
INLINE i64 N(steps_of_block)(i64 k) {
    const i64 parts = (k + STEPS - 1) / STEPS;
    return parts ? ((k + parts - 1) / parts + WIDTH - 1) / WIDTH * WIDTH : 1;
}

/* A square of numbers, or a part of one, turned and put into the result, plus what is added to its columns. */
INLINE void N(put_turned)(const T *from, i64 ldf, i64 rows, i64 columns, const T *bias, T *to, i64 ldt) {
    N(Vector) v[VECTOR / sizeof(T)];
    for (int r = 0; r < WIDTH; r++)
        v[r] = *(const N(Vector) *)(from + r * ldf);
    N(turn_vectors)(v);
    if (rows == WIDTH)
        for (i64 q = 0; q < columns; q++)
            *(N(Vector) *)(to + q * ldt) = bias ? (N(Vector))(v[q] + *(const N(Vector) *)bias) : v[q];
    else
        for (i64 q = 0; q < columns; q++)
            for (i64 r = 0; r < rows; r++)
                to[q * ldt + r] = bias ? v[q][r] + bias[r] : v[q][r];
}

/* Few rows by a factor whose columns lie in a row each: the result's columns are computed as rows, and turned as they are written. What is laid
 * out in panels is then the smaller factor. Terms are added in the same order. */
static int N(multiply_turned)(const Product *p) {
    const i64 wide = N(vectors_of)(p->m) * WIDTH, each = N(steps_of_block)(p->k);
    T *packed = aligned_alloc(64, (sizeof(T) * (size_t)(p->k * wide) + 63) / 64 * 64);
    if (!packed)
        return 0;
    T room[ROWS_TURNED * VECTORS_AT_MOST * VECTOR / sizeof(T)] __attribute__((aligned(64)));
    for (i64 i = 0, vectors; i < p->m; i += vectors * WIDTH) {
        vectors = N(vectors_of)(p->m - i);
        const i64 columns = p->m - i < vectors * WIDTH ? p->m - i : vectors * WIDTH, ldr = vectors * WIDTH;
        N(pack)(p->k, columns, vectors, (const T *)p->a + i * p->row, p->step, p->row, packed);
        for (i64 j = 0; j < p->n; j += ROWS_TURNED) {
            const i64 rows = p->n - j < ROWS_TURNED ? p->n - j : ROWS_TURNED;
            for (i64 q = 0; q < p->k; q += each)
                N(strip)(rows, p->k - q < each ? p->k - q : each, vectors, ldr, (const T *)p->b + j * p->across + q * p->down, p->across, p->down,
                         packed + q * ldr, ldr, q > 0, NULL, room, ldr);
            for (i64 r = 0; r < rows; r += WIDTH)
                for (i64 c = 0; c < columns; c += WIDTH)
                    N(put_turned)(room + r * ldr + c, ldr, rows - r < WIDTH ? rows - r : WIDTH, columns - c < WIDTH ? columns - c : WIDTH,
                                  p->bias ? (const T *)p->bias + j + r : NULL, (T *)p->c + (i + c) * p->ldc + j + r, p->ldc);
        }
    }
    free(packed);
    return 1;
}

/* Whether that is quicker: there are few rows, which fill vectors, or the other factor is large. */
INLINE int N(turns)(const Product *p) {
    const i64 missing = (WIDTH - p->m % WIDTH) % WIDTH;
    if (p->across == 1 || p->adds || p->n < ROWS_TURNED || p->k < 2 * ROWS_TURNED || p->k > STEPS_TURNED)
        return 0;
    return p->n * p->k < LARGE_FACTOR ? p->m <= 4 * WIDTH && 4 * missing < p->m : p->m <= 12 * WIDTH;
}

/* One panel after the other, its steps in blocks that stay near. */
static void N(multiply)(const Product *p) {
    if (N(turns)(p) && N(multiply_turned)(p))
        return;
    T packed[STEPS * VECTORS_AT_MOST * VECTOR / sizeof(T)] __attribute__((aligned(64)));
    const i64 each = N(steps_of_block)(p->k);
    const T *const a = p->a, *const b = p->b, *const bias = p->bias;
    for (i64 j = 0, vectors; j < p->n; j += vectors * WIDTH) {
        vectors = N(vectors_of)(p->n - j);
        const i64 real = p->n - j < vectors * WIDTH ? p->n - j : vectors * WIDTH;
        T *c = (T *)p->c + j;
        i64 q = 0;
        do {
            const i64 deep = p->k - q < each ? p->k - q : each;
            const T *from = b + q * p->down + j * p->across, *last = bias && q + deep == p->k ? bias + j : NULL;
            i64 ldb = p->down;
            if (p->across != 1 || p->m > FEW_ROWS || real < vectors * WIDTH) {
                N(pack)(deep, real, vectors, from, p->down, p->across, packed);
                from = packed;
                ldb = vectors * WIDTH;
            }
            N(strip)(p->m, deep, vectors, real, a + q * p->step, p->row, p->step, from, ldb, q > 0 || p->adds, last, c, p->ldc);
            q += each;
        } while (q < p->k);
    }
}
#undef WIDTH
