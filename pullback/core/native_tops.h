/* The first few of each row in order: read once for each kind of element, of type T. */
#define PIECE 32 /* elements that are looked at together: of most none is among the first */
#define IS_NAN(v) ((v) != (v))

/* whether a goes before b: by size, NaN being larger than any number */
INLINE int N(before)(T a, T b, int largest) { return largest ? (a > b) | (IS_NAN(a) & !IS_NAN(b)) : (a < b) | (!IS_NAN(a) & IS_NAN(b)); }

/* one more element, for which the last has to go */
INLINE Py_ssize_t N(topk_insert)(T v, Py_ssize_t place, T *best, int64_t *at, Py_ssize_t have, Py_ssize_t k, int largest) {
    Py_ssize_t j = have < k ? have : k - 1;
    for (; j > 0 && N(before)(v, best[j - 1], largest); j--) {
        best[j] = best[j - 1];
        at[j] = at[j - 1];
    }
    best[j] = v;
    at[j] = place;
    return have < k ? have + 1 : k;
}

INLINE void N(topk_row)(const T *x, T *best, int64_t *at, Py_ssize_t n, Py_ssize_t k, int largest) {
    Py_ssize_t have = 0, i = 0;
    while (have < k) {
        have = N(topk_insert)(x[i], i, best, at, have, k, largest);
        i++;
    }
    while (i < n) {
        Py_ssize_t stop = n - i < PIECE ? n : i + PIECE;
        if (stop - i == PIECE) {
            T last = best[k - 1];
            int any = 0;
            for (int l = 0; l < PIECE; l++)
                any |= N(before)(x[i + l], last, largest);
            i = any ? i : stop;
        }
        for (; i < stop; i++)
            if (N(before)(x[i], best[k - 1], largest))
                N(topk_insert)(x[i], i, best, at, k, k, largest);
    }
}

/* the k first in order and where they stand, the earlier first among equals */
CLONES static void N(topk)(const T *x, T *best, int64_t *at, Py_ssize_t rows, Py_ssize_t n, Py_ssize_t k, int largest) {
    for (Py_ssize_t row = 0; row < rows; row++, x += n, best += k, at += k)
        if (largest)
            N(topk_row)(x, best, at, n, k, 1);
        else
            N(topk_row)(x, best, at, n, k, 0);
}

static void N(topk_part)(void *data, Py_ssize_t first, Py_ssize_t last) {
    Tops *j = data;
    N(topk)((const T *)j->x + first * j->n, (T *)j->best + first * j->k, j->places + first * j->k, last - first, j->n, j->k, j->largest);
}

static void N(topk_all)(Tops *j, int threads) { share(N(topk_part), j, j->rows, rows_of(j->n), threads); }

#undef PIECE
#undef IS_NAN
#undef T
#undef SUFFIX
