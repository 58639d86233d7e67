/* Attention of one dtype, for one set of instructions. A template: see _network.c. */

/* ---- attention: rows of queries in blocks, keys in blocks; softmax as it goes, so that no matrix of all scores exists */


INLINE T *N(at)(const Rows *r, i64 b, i64 h, i64 row) { return (T *)r->p + b * r->step[0] + h * r->step[1] + row * r->step[2]; }

#define STRIP 6 /* rows of a product that end at one place, where queries do not see all keys */

/* how many of `count` keys from `from` a query sees */
INLINE i64 N(reach)(const Attention *a, i64 query, i64 from, i64 count) {
    i64 seen = query + 1 - from > 0 ? query + 1 - from : 0;
    return a->causal && seen < count ? seen : count;
}

/* (rows, size) of x by (size, count) of turned, as far as queries see: whole vectors, so some columns beyond */
static void N(attention_seen)(const Attention *a, i64 first, i64 rows, i64 from, i64 count, T scale, const T *x, i64 ldx, const T *turned, T *s) {
    const i64 wide = 2 * VECTOR / (i64)sizeof(T), strip = a->causal ? STRIP : rows;
    for (i64 r = 0; r < rows; r += strip) {
        i64 these = rows - r < strip ? rows - r : strip, seen = (N(reach)(a, first + r + these - 1, from, count) + wide - 1) / wide * wide;
        N(product)(these, seen < count ? seen : count, a->size, scale, x + r * ldx, ldx, 1, turned, KEYS, 0, s + r * KEYS, KEYS);
    }
}

/* (rows, size) in y, made or added to: (rows, count) of s by (count, size) of x, as far as queries see; s is 0 from there to the next strip */
static void N(attention_by_keys)(const Attention *a, i64 first, i64 rows, i64 from, i64 count, T scale, const T *s, const T *x, i64 ldx, int adds, T *y, i64 ldy) {
    const i64 strip = a->causal ? STRIP : rows;
    for (i64 r = 0; r < rows; r += strip) {
        i64 these = rows - r < strip ? rows - r : strip, seen = N(reach)(a, first + r + these - 1, from, count);
        N(product)(these, a->size, seen, scale, s + r * KEYS, KEYS, 1, x, ldx, adds, y + r * ldy, ldy);
    }
}

/* (count, size) in y, added to: (count, rows) of s turned by (rows, size) of x, from the first query that sees a key */
static void N(attention_by_queries)(const Attention *a, i64 first, i64 rows, i64 from, i64 count, T scale, const T *s, const T *x, i64 ldx, T *y, i64 ldy) {
    const i64 strip = a->causal ? STRIP : count;
    for (i64 j = 0; j < count; j += strip) {
        i64 these = count - j < strip ? count - j : strip, r = a->causal && from + j > first ? from + j - first : 0;
        if (r < rows)
            N(product)(these, a->size, rows - r, scale, s + r * KEYS + j, 1, KEYS, x + r * ldx, ldx, 1, y + j * ldy, ldy);
    }
}

/* scores of `rows` queries from `first` and `count` keys from `from`, masked; s is (rows, KEYS), turned has room for keys. What a query
 * does not see is left as it is. */
static void N(attention_scores)(const Attention *a, i64 b, i64 h, i64 first, i64 rows, i64 from, i64 count, T *s, T *turned) {
    N(turn)(count, a->size, N(at)(&a->k, b, h, from), a->k.step[2], turned, KEYS);
    N(attention_seen)(a, first, rows, from, count, (T)a->scale, N(at)(&a->q, b, h, first), a->q.step[2], turned, s);
    for (i64 r = 0; r < rows && a->mask_kind; r++) {
        T *row = s + r * KEYS;
        i64 seen = N(reach)(a, first + r, from, count);
        i64 place = b * a->mask_step[0] + h * a->mask_step[1] + (first + r) * a->mask_step[2] + from * a->mask_step[3];
        if (a->mask_kind == 1) {
            const u8 *m = (const u8 *)a->mask + place;
            for (i64 j = 0; j < seen; j++)
                row[j] = m[j * a->mask_step[3]] ? row[j] : -INF;
        } else {
            const T *m = (const T *)a->mask + place;
            for (i64 j = 0; j < seen; j++)
                row[j] += m[j * a->mask_step[3]];
        }
    }
}

/* exp(x - top) in place, and the sum */
INLINE T N(exp_row)(T *x, i64 n, T top) {
    T total = 0;
    SIMD_SUM(total)
    for (i64 j = 0; j < n; j++) {
        T e = EXP(x[j] - top);
        x[j] = e;
        total += e;
    }
    return total;
}

INLINE T N(max_row)(const T *x, i64 n) {
    T top = -INF;
    int nan = 0;
    SIMD_MAX(top, nan)
    for (i64 j = 0; j < n; j++) {
        top = x[j] > top ? x[j] : top;
        nan |= x[j] != x[j];
    }
    return nan ? (T)NAN : top;
}

static void N(attention_block)(const Attention *a, i64 b, i64 h, i64 first, T *s, T *turned) {
    i64 rows = a->queries - first < QUERIES ? a->queries - first : QUERIES;
    i64 keys = a->causal && first + rows < a->keys ? first + rows : a->keys;
    T top[QUERIES], total[QUERIES];
    for (i64 r = 0; r < rows; r++) {
        top[r] = -INF;
        total[r] = 0;
    }
    for (i64 from = 0; from < keys; from += KEYS) {
        i64 count = keys - from < KEYS ? keys - from : KEYS;
        N(attention_scores)(a, b, h, first, rows, from, count, s, turned);
        for (i64 r = 0; r < rows; r++) {
            T *row = s + r * KEYS;
            i64 seen = N(reach)(a, first + r, from, count);
            T most = N(max_row)(row, seen);
            most = most > top[r] || most != most ? most : top[r];
            T base = most == -INF ? 0 : most, ratio = top[r] == -INF ? 0 : EXP(top[r] - base);
            total[r] = total[r] * ratio + N(exp_row)(row, seen, base);
            for (i64 j = seen; j < count; j++)
                row[j] = 0;
            top[r] = most;
            if (from && ratio != 1) {
                T *o = N(at)(&a->out, b, h, first + r);
                for (i64 d = 0; d < a->size; d++)
                    o[d] *= ratio;
            }
        }
        N(attention_by_keys)(a, first, rows, from, count, 1, s, N(at)(&a->v, b, h, from), a->v.step[2], from > 0, N(at)(&a->out, b, h, first), a->out.step[2]);
    }
    for (i64 r = 0; r < rows; r++) {
        T *o = N(at)(&a->out, b, h, first + r), scale = total[r] == 0 ? 0 : 1 / total[r];
        for (i64 d = 0; d < a->size; d++)
            o[d] = keys ? o[d] * scale : 0;
        ((T *)a->lse)[(b * a->heads + h) * a->queries + first + r] = total[r] == 0 ? -INF : LOG(total[r]) + top[r];
    }
}

static void N(attention_part)(long begin, long end, void *const *given) {
    Attention *a = given[0];
    i64 blocks = (a->queries + QUERIES - 1) / QUERIES;
    T *s = malloc(sizeof(T) * (size_t)((QUERIES + a->size) * KEYS));
    for (long t = begin; t < end && s; t++)
        N(attention_block)(a, t / blocks / a->heads, t / blocks % a->heads, t % blocks * QUERIES, s, s + QUERIES * KEYS);
    if (!s)
        a->failed = 1;
    free(s);
}

static void N(attention_back_block)(const Attention *a, i64 b, i64 h, i64 first, i64 from, T *s, T *d, T *turned, const T *dots) {
    i64 rows = a->queries - first < QUERIES ? a->queries - first : QUERIES, count = a->keys - from < KEYS ? a->keys - from : KEYS;
    if (a->causal && first + rows - from < count)
        count = first + rows - from;
    const T *lse = (const T *)a->lse + (b * a->heads + h) * a->queries + first;
    N(attention_scores)(a, b, h, first, rows, from, count, s, turned);
    N(turn)(count, a->size, N(at)(&a->v, b, h, from), a->v.step[2], turned, KEYS);
    N(attention_seen)(a, first, rows, from, count, 1, N(at)(&a->g, b, h, first), a->g.step[2], turned, d);
    for (i64 r = 0; r < rows; r++) {
        T low = lse[r] == -INF ? INF : lse[r], dot = dots[r], *w = s + r * KEYS, *e = d + r * KEYS;
        i64 seen = N(reach)(a, first + r, from, count);
        SIMD
        for (i64 j = 0; j < seen; j++) {
            T weight = EXP(w[j] - low);
            w[j] = weight;
            e[j] = (e[j] - dot) * weight;
        }
        for (i64 j = seen; j < count; j++)
            w[j] = e[j] = 0;
    }
    const T *g = N(at)(&a->g, b, h, first), *q = N(at)(&a->q, b, h, first), *k = N(at)(&a->k, b, h, from);
    N(attention_by_queries)(a, first, rows, from, count, 1, s, g, a->g.step[2], N(at)(&a->dv, b, h, from), a->dv.step[2]);
    N(attention_by_keys)(a, first, rows, from, count, (T)a->scale, d, k, a->k.step[2], 1, N(at)(&a->dq, b, h, first), a->dq.step[2]);
    N(attention_by_queries)(a, first, rows, from, count, (T)a->scale, d, q, a->q.step[2], N(at)(&a->dk, b, h, from), a->dk.step[2]);
}

static void N(attention_back_part)(long begin, long end, void *const *given) {
    Attention *a = given[0];
    T *s = malloc(sizeof(T) * (size_t)((2 * QUERIES + a->size) * KEYS)), dots[QUERIES];
    for (long t = begin; t < end && s; t++) {
        i64 b = t / a->heads, h = t % a->heads;
        for (i64 first = 0; first < a->queries; first += QUERIES) {
            i64 rows = a->queries - first < QUERIES ? a->queries - first : QUERIES;
            i64 keys = a->causal && first + rows < a->keys ? first + rows : a->keys;
            for (i64 r = 0; r < rows; r++) {
                const T *x = N(at)(&a->g, b, h, first + r), *y = N(at)(&a->out, b, h, first + r);
                T dot = 0;
                SIMD_SUM(dot)
                for (i64 d = 0; d < a->size; d++)
                    dot += x[d] * y[d];
                dots[r] = dot;
            }
            for (i64 from = 0; from < keys; from += KEYS)
                N(attention_back_block)(a, b, h, first, from, s, s + QUERIES * KEYS, s + 2 * QUERIES * KEYS, dots);
        }
    }
    if (!s)
        a->failed = 1;
    free(s);
}
#undef STRIP
