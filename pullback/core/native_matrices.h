/* Products of whole matrices by several threads: each piece is one call of BLAS, which has no threads of its own in it.
 *
 * c = a b for (m, k) and (k, n) or batches of them, c row-major, plus a row that is added to each of c while it is in the cache. The longer
 * side of c is cut into blocks of EDGE rows or columns; how many a piece has depends on the sizes and on the number of threads alone.
 */
#define EDGE 32              /* rows or columns that are not cut: a multiple of the tiles of every BLAS */
#define PIECE_WORK (1 << 19) /* multiplications that are worth a thread */

typedef struct {
    const void *p;
    i64 batch, lead; /* elements between matrices, and between rows, or columns where it is turned */
    int turned;
} Matrix;

typedef struct {
    Matrix a, b;
    void *c;
    const void *bias; /* n elements, `bias_step` apart, or NULL */
    i64 many, m, n, k, bias_step, block, blocks; /* matrices; blocks of each, and the rows or columns of one */
    int by_columns;
} Product;

/* A (rows, columns) matrix as BLAS reads it; whether it can. */
static int matrix_of(i64 rows, i64 columns, i64 row, i64 column, Matrix *into) {
    if ((column == 1 || columns < 2) && (row >= columns || rows < 2)) {
        into->turned = 0;
        into->lead = rows < 2 ? columns : row;
    } else if ((row == 1 || rows < 2) && (column >= rows || columns < 2)) {
        into->turned = 1;
        into->lead = columns < 2 ? rows : column;
    } else
        return 0;
    return into->lead < 1 << 30;
}

/* How threads share it. */
static void cut_product(Product *p, long threads) {
    i64 work = p->m * p->n * p->k, side = p->n > p->m ? p->n : p->m, most = (side + EDGE - 1) / EDGE, wanted = work / PIECE_WORK;
    p->by_columns = p->n > p->m;
    i64 enough = (2 * threads + p->many - 1) / p->many;
    wanted = wanted < enough ? wanted : enough;
    wanted = wanted < most ? wanted : most;
    p->block = wanted < 2 ? side : (most + wanted - 1) / wanted * EDGE;
    p->blocks = (side + p->block - 1) / p->block;
}

#define MULTIPLY(T, LETTER)                                                                                                               \
    static void LETTER##multiply_part(long first, long last, void *const *arguments) {                                                  \
        const Product *p = arguments[0];                                                                                                 \
        for (i64 t = first; t < last; t++) {                                                                                             \
            i64 at = t / p->blocks, low = t % p->blocks * p->block, side = p->by_columns ? p->n : p->m;                                  \
            i64 size = low + p->block < side ? p->block : side - low, i = p->by_columns ? 0 : low, j = p->by_columns ? low : 0;          \
            i64 m = p->by_columns ? p->m : size, n = p->by_columns ? size : p->n;                                                        \
            const T *a = (const T *)p->a.p + at * p->a.batch + i * (p->a.turned ? 1 : p->a.lead);                                        \
            const T *b = (const T *)p->b.p + at * p->b.batch + j * (p->b.turned ? p->b.lead : 1), *bias = p->bias;                       \
            T *c = (T *)p->c + (at * p->m + i) * p->n + j;                                                                               \
            LETTER##gemm(p->a.turned, p->b.turned, m, n, p->k, 1, a, p->a.lead, b, p->b.lead, 0, c, p->n);                               \
            for (i64 r = 0; bias && r < m; r++, c += p->n) {                                                                             \
                if (p->bias_step == 1)                                                                                                   \
                    for (i64 q = 0; q < n; q++)                                                                                          \
                        c[q] += bias[j + q];                                                                                             \
                else                                                                                                                     \
                    for (i64 q = 0; q < n; q++)                                                                                          \
                        c[q] += bias[(j + q) * p->bias_step];                                                                            \
            }                                                                                                                            \
        }                                                                                                                                \
    }
MULTIPLY(float, s)
MULTIPLY(double, d)
