/* Matrices of bfloat16 multiplied by pairs of numbers along the inner dimension (AVX512-BF16), in panels that stay in the caches.
 *
 * The right matrix is packed a block at a time: WIDTH columns and DEPTH pairs of rows, each pair one 32-bit number. The left one is read by rows; where it
 * runs down its columns it is turned first (`turn_part`). Numbers that are not there are zero. A result is one sum in single precision, in the
 * order of the inner dimension whatever the blocks, to which the bias is added before it is rounded.
 */
#include <immintrin.h>
#include <stdlib.h>
#define PAIRED __attribute__((target("avx512f,avx512bw,avx512vl,avx512bf16")))

enum { WIDTH = 64, HEIGHT = 6, DEPTH = 128, ROWS = 384 }; /* HEIGHT x WIDTH sums stay in registers, ROWS x WIDTH in the second cache */

/* Matrices by steps in elements: each of both operands runs along its rows or its columns, one of its steps is 1. `wide`: a result is not rounded.
 * `dims` dimensions of a batch, each a size and the steps of a, b and the result. */
typedef struct {
    i64 m, n, k, row_a, along_a, down_b, across_b, row_c, wide, dims;
    i64 batch[][4];
} Shape;

typedef struct {
    const Shape *s;
    const u16 *a, *b, *bias;
    void *c;
    u16 *turned;
    int failed;
} Product;

/* Where matrix `which` of a batch begins. */
static inline void place_of(const Product *p, i64 which, i64 *x, i64 *y, i64 *z) {
    *x = *y = *z = 0;
    for (i64 d = p->s->dims - 1; d >= 0; d--) {
        const i64 i = which % p->s->batch[d][0];
        which /= p->s->batch[d][0];
        *x += i * p->s->batch[d][1], *y += i * p->s->batch[d][2], *z += i * p->s->batch[d][3];
    }
}

/* The first `n` of 32 places. */
PAIRED static inline __mmask32 first_of(i64 n) { return n >= 32 ? ~(__mmask32)0 : n <= 0 ? 0 : ((__mmask32)1 << n) - 1; }

/* Rows and columns of 16 x 16 numbers of 32 bits change places. */
PAIRED static inline void turn(__m512i v[16]) {
    __m512i t[16];
    for (int i = 0; i < 16; i += 4) {
        const __m512i a = _mm512_unpacklo_epi32(v[i], v[i + 1]), b = _mm512_unpackhi_epi32(v[i], v[i + 1]);
        const __m512i c = _mm512_unpacklo_epi32(v[i + 2], v[i + 3]), d = _mm512_unpackhi_epi32(v[i + 2], v[i + 3]);
        t[i] = _mm512_unpacklo_epi64(a, c), t[i + 1] = _mm512_unpackhi_epi64(a, c);
        t[i + 2] = _mm512_unpacklo_epi64(b, d), t[i + 3] = _mm512_unpackhi_epi64(b, d);
    }
    for (int i = 0; i < 4; i++) {
        const __m512i a = _mm512_shuffle_i32x4(t[i], t[i + 4], 0x88), b = _mm512_shuffle_i32x4(t[i], t[i + 4], 0xdd);
        const __m512i c = _mm512_shuffle_i32x4(t[i + 8], t[i + 12], 0x88), d = _mm512_shuffle_i32x4(t[i + 8], t[i + 12], 0xdd);
        v[i] = _mm512_shuffle_i32x4(a, c, 0x88), v[i + 4] = _mm512_shuffle_i32x4(b, d, 0x88);
        v[i + 8] = _mm512_shuffle_i32x4(a, c, 0xdd), v[i + 12] = _mm512_shuffle_i32x4(b, d, 0xdd);
    }
}

/* 16 pairs: numbers at `x` and those one step below, where there are such. */
PAIRED static inline __m512i pairs_at(const u16 *x, i64 step, i64 left, __mmask16 there) {
    if (left <= 0) return _mm512_setzero_si512();
    const __m512i upper = _mm512_cvtepu16_epi32(_mm256_maskz_loadu_epi16(there, x));
    if (left == 1) return upper;
    return _mm512_or_si512(upper, _mm512_slli_epi32(_mm512_cvtepu16_epi32(_mm256_maskz_loadu_epi16(there, x + step)), 16));
}

/* DEPTH pairs of rows of `b` from row `from` on, and WIDTH columns of them. */
PAIRED static void pack(const Product *p, const u16 *b, i64 from, i64 columns, u32 *into) {
    const i64 left = p->s->k - from;
    if (p->s->across_b == 1)
        for (i64 q = 0; q < DEPTH && 2 * q < left; q++, into += WIDTH)
            for (int j = 0; j < WIDTH; j += 16)
                _mm512_store_si512(into + j, pairs_at(b + (from + 2 * q) * p->s->down_b + j, p->s->down_b, left - 2 * q, (__mmask16)first_of(columns - j)));
    else
        for (i64 q = 0; q < DEPTH && 2 * q < left; q += 16)
            for (int j = 0; j < WIDTH; j += 16) {
                __m512i v[16];
                for (int r = 0; r < 16; r++)
                    v[r] = j + r < columns ? _mm512_maskz_loadu_epi16(first_of(left - 2 * q), b + (j + r) * p->s->across_b + from + 2 * q) : _mm512_setzero_si512();
                turn(v);
                for (int r = 0; r < 16; r++) _mm512_store_si512(into + (q + r) * WIDTH + j, v[r]);
            }
}

static inline i64 turned_row(const Product *p) { return (p->s->k + 31) / 32 * 32; }

/* Blocks of 16 rows of all left matrices, row after row, from matrices that run down their columns. */
PAIRED static void turn_part(long first, long last, void *const *arguments) {
    const Product *p = arguments[0];
    const i64 blocks = (p->s->m + 15) / 16, row = turned_row(p);
    for (i64 t = first; t < last; t++) {
        const i64 which = t / blocks, i = t % blocks * 16, rows = p->s->m - i < 16 ? p->s->m - i : 16;
        i64 x, y, z;
        place_of(p, which, &x, &y, &z);
        const u16 *a = p->a + x + i;
        u16 *into = p->turned + (which * p->s->m + i) * row;
        for (i64 q = 0; q < p->s->k; q += 32, into += 32) {
            __m512i v[16];
            for (int c = 0; c < 16; c++) v[c] = pairs_at(a + (q + 2 * c) * p->s->along_a, p->s->along_a, p->s->k - q - 2 * c, (__mmask16)first_of(rows));
            turn(v);
            for (i64 r = 0; r < rows; r++) _mm512_store_si512(into + r * row, v[r]);
        }
    }
}

#define MULTIPLY(word)                                                                                           \
    {                                                                                                            \
        __m512bh across[4];                                                                                      \
        for (int v = 0; v < wide; v++) across[v] = (__m512bh)_mm512_load_si512(b + 16 * v);                         \
        for (int r = 0; r < rows; r++) {                                                                         \
            const u16 *at = a + r * step;                                                                        \
            u32 pair;                                                                                            \
            word;                                                                                                \
            const __m512bh down = (__m512bh)_mm512_set1_epi32((int)pair);                                        \
            for (int v = 0; v < wide; v++) sums[r][v] = _mm512_dpbf16_ps(sums[r][v], down, across[v]);              \
        }                                                                                                        \
    }

/* Adds `k` products each to the sums in `c`, `wide` vectors of a row, which begin at zero where `fresh`. */
PAIRED static inline __attribute__((always_inline)) void tile(const int rows, const int wide, const u16 *a, i64 step, const u32 *b, i64 k, float *c, int fresh) {
    __m512 sums[HEIGHT][4];
    for (int r = 0; r < rows; r++)
        for (int v = 0; v < wide; v++) sums[r][v] = fresh ? _mm512_setzero_ps() : _mm512_load_ps(c + r * WIDTH + 16 * v);
    for (i64 q = 0; q < k / 2; q++, b += WIDTH) MULTIPLY(memcpy(&pair, at + 2 * q, 4))
    if (k % 2) MULTIPLY(pair = at[k - 1])
    for (int r = 0; r < rows; r++)
        for (int v = 0; v < wide; v++) _mm512_store_ps(c + r * WIDTH + 16 * v, sums[r][v]);
}

/* The counts are known in each: sums stay in registers. */
#define TILES(wide)                                                       \
    switch (rows) {                                                       \
    case 1: tile(1, wide, a, step, b, k, c, fresh); break;                \
    case 2: tile(2, wide, a, step, b, k, c, fresh); break;                \
    case 3: tile(3, wide, a, step, b, k, c, fresh); break;                \
    case 4: tile(4, wide, a, step, b, k, c, fresh); break;                \
    case 5: tile(5, wide, a, step, b, k, c, fresh); break;                \
    default: tile(6, wide, a, step, b, k, c, fresh);                      \
    }

PAIRED static void tile_of(i64 rows, i64 columns, const u16 *a, i64 step, const u32 *b, i64 k, float *c, int fresh) {
    if (columns <= 16) {
        TILES(1)
    } else if (columns <= 32) {
        TILES(2)
    } else
        TILES(4)
}

PAIRED static inline __m512 widened_row(const u16 *x, __mmask16 there) {
    return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(_mm256_maskz_loadu_epi16(there, x)), 16));
}

/* Rounded as `narrowed` does. */
PAIRED static inline __m256i rounded(__m512 v) {
    const __m512i bits = _mm512_castps_si512(v), upper = _mm512_srli_epi32(bits, 16), even = _mm512_and_si512(upper, _mm512_set1_epi32(1));
    const __m512i near = _mm512_srli_epi32(_mm512_add_epi32(bits, _mm512_add_epi32(even, _mm512_set1_epi32(0x7fff))), 16);
    const __mmask16 nan = _mm512_cmp_ps_mask(v, v, _CMP_UNORD_Q);
    return _mm512_cvtepi32_epi16(_mm512_mask_or_epi32(near, nan, upper, _mm512_set1_epi32(0x40)));
}

/* A row of sums, with the bias where there is one, to element `at` of the result. */
PAIRED static void put(const Product *p, const float *x, const u16 *bias, i64 at, i64 n) {
    for (i64 j = 0; j < n; j += 16) {
        const __mmask16 there = (__mmask16)first_of(n - j);
        __m512 v = _mm512_load_ps(x + j);
        if (bias) v = _mm512_add_ps(v, widened_row(bias + j, there));
        if (p->s->wide)
            _mm512_mask_storeu_ps((float *)p->c + at + j, there, v);
        else
            _mm256_mask_storeu_epi16((u16 *)p->c + at + j, there, rounded(v));
    }
}

static inline i64 panels_of(const Product *p) { return (p->s->n + WIDTH - 1) / WIDTH; }
static inline i64 stripes_of(const Product *p) { return (p->s->m + ROWS - 1) / ROWS; }

/* Parts of results, WIDTH columns by ROWS rows of one each. */
PAIRED static void product_part(long first, long last, void *const *arguments) {
    Product *p = arguments[0];
    const i64 panels = panels_of(p), stripes = stripes_of(p), step = p->turned ? turned_row(p) : p->s->row_a;
    const i64 tall = ((p->s->m < ROWS ? p->s->m : ROWS) + HEIGHT - 1) / HEIGHT * HEIGHT;
    u32 *packed = aligned_alloc(64, (size_t)(DEPTH + tall) * WIDTH * sizeof(u32));
    if (!packed) {
        p->failed = 1;
        return;
    }
    float *sums = (float *)(packed + DEPTH * WIDTH);
    for (i64 t = first; t < last; t++) {
        const i64 which = t / (panels * stripes), top = t % stripes * ROWS, left = t / stripes % panels * WIDTH;
        const i64 columns = p->s->n - left < WIDTH ? p->s->n - left : WIDTH, rows = p->s->m - top < ROWS ? p->s->m - top : ROWS;
        i64 x, y, z;
        place_of(p, which, &x, &y, &z);
        const u16 *a = p->turned ? p->turned + (which * p->s->m + top) * step : p->a + x + top * step;
        for (i64 from = 0; from < p->s->k; from += 2 * DEPTH) {
            const i64 deep = p->s->k - from < 2 * DEPTH ? p->s->k - from : 2 * DEPTH;
            pack(p, p->b + y + left * p->s->across_b, from, columns, packed);
            for (i64 i = 0; i < rows; i += HEIGHT)
                tile_of(rows - i < HEIGHT ? rows - i : HEIGHT, columns, a + i * step + from, step, packed, deep, sums + i * WIDTH, !from);
        }
        for (i64 i = 0; i < rows; i++)
            put(p, sums + i * WIDTH, p->bias ? p->bias + left : NULL, z + (top + i) * p->s->row_c + left, columns);
    }
    free(packed);
}

static void share_product(Body body, i64 n, i64 work, void *const *arguments, i64 threads) {
    if (parallel && threads > 1 && work >= LARGE && n > 1)
        parallel(body, 0, (long)n, (long)(LARGE / 4 * n / work + 1), arguments, (long)threads);
    else
        body(0, (long)n, arguments);
}

/* What a product is in work of other kinds, for the decision whether threads share it. */
static inline i64 work_of(const Shape *s, i64 many) { return many * s->n * (s->m < ROWS ? s->m : ROWS) * (s->k / 64 + 1); }

/* c = a @ b, plus a row; 1 where there is no memory. No Python in here. */
static i64 multiply_pairs(const Shape *s, const void *a, const void *b, const void *bias, void *c, i64 threads) {
    Product p = {.s = s, .a = a, .b = b, .bias = bias, .c = c};
    void *const arguments[] = {&p};
    i64 many = 1;
    for (i64 d = 0; d < s->dims; d++) many *= s->batch[d][0];
    if (s->along_a != 1) {
        if (!(p.turned = aligned_alloc(64, (size_t)(many * s->m * turned_row(&p)) * sizeof(u16)))) return 1;
        share_product(turn_part, many * ((s->m + 15) / 16), many * s->m * s->k / 8, arguments, threads);
    }
    share_product(product_part, many * panels_of(&p) * stripes_of(&p), work_of(s, many), arguments, threads);
    free(p.turned);
    return p.failed;
}
