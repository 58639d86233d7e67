/* Whole products of matrices of one dtype, for one set of instructions, by what native_packed.h has. A template: see _products.c. */
#define WIDTH ((i64)(VECTOR / sizeof(T)))

/* One panel after the other, its steps in blocks that stay near. */
static void N(multiply)(const Product *p) {
    T packed[STEPS * VECTORS_AT_MOST * VECTOR / sizeof(T)] __attribute__((aligned(64)));
    const i64 parts = (p->k + STEPS - 1) / STEPS, each = parts ? ((p->k + parts - 1) / parts + WIDTH - 1) / WIDTH * WIDTH : 1;
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
