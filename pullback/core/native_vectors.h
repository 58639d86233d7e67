/* Vectors of one dtype, for one set of instructions, and squares of them. A template: see _network.c and _products.c. */
typedef T N(Vector) __attribute__((vector_size(VECTOR), aligned(sizeof(T)), may_alias));
typedef SAME_SIZE N(Bits) __attribute__((vector_size(VECTOR)));
#define WIDTH ((i64)(VECTOR / sizeof(T)))

/* As many vectors as one has numbers, turned: a square. */
INLINE void N(turn_vectors)(N(Vector) *v) {
#ifdef __clang__
    for (int r = 0; r < WIDTH; r++)
        for (int q = 0; q < r; q++) {
            const T a = v[r][q];
            v[r][q] = v[q][r];
            v[q][r] = a;
        }
#else
#define STAGE(half)                                                             \
    if (half < WIDTH) {                                                         \
        N(Bits) low, high;                                                      \
        for (int q = 0; q < WIDTH; q++) {                                       \
            low[q] = q & half ? WIDTH + q - half : q;                           \
            high[q] = q & half ? WIDTH + q : q + half;                          \
        }                                                                       \
        for (int r = 0; r < WIDTH; r++)                                         \
            if (!(r & half)) {                                                  \
                const N(Vector) a = v[r], b = v[r + half < WIDTH ? r + half : r]; \
                v[r] = __builtin_shuffle(a, b, low);                            \
                v[r + half < WIDTH ? r + half : r] = __builtin_shuffle(a, b, high); \
            }                                                                   \
    }
    STAGE(8) STAGE(4) STAGE(2) STAGE(1)
#undef STAGE
#endif
}

/* Some rows of a square of numbers, turned; those that are not there are zero. */
INLINE void N(turn_block)(const T *from, i64 ldf, i64 rows, T *to, i64 ldt) {
    N(Vector) v[VECTOR / sizeof(T)];
    for (int r = 0; r < WIDTH; r++)
        v[r] = r < rows ? *(const N(Vector) *)(from + r * ldf) : (N(Vector)){0};
    N(turn_vectors)(v);
    for (int r = 0; r < WIDTH; r++)
        *(N(Vector) *)(to + r * ldt) = v[r];
}
#undef WIDTH
