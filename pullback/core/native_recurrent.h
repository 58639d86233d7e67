/* Recurrent layers of one dtype, for one set of instructions: all steps of one direction. A template: see _recurrent.c.
 *
 * Rows of a batch do not meet each other until gradients of weights are summed: a task has some rows, and goes through all steps with them.
 * Weights are laid out in panels once, before the first step, for all tasks (see native_packed.h, which also says why no result depends on how
 * many there are). Gradients of weights are one product over all steps and rows, a task having some rows of the result.
 */
#define X(field) ((T *)j->field)
#define WIDTH ((i64)(VECTOR / sizeof(T)))

/* The step of a turn, and the one that ran before it. */
#define AT_TURN(s) \
    const i64 t = j->reverse ? j->time - 1 - (s) : (s), before = j->reverse ? t + 1 : t - 1;

/* ---- panels of whole matrices: those from column c on lie from c * k on */
static void N(pack_all)(i64 k, i64 n, const T *b, i64 down, i64 across, T *to) {
    for (i64 c = 0, vectors; c < n; c += vectors * WIDTH) {
        vectors = N(vectors_of)(n - c);
        N(pack)(k, n - c < vectors * WIDTH ? n - c : vectors * WIDTH, vectors, b + c * across, down, across, to + c * k);
    }
}

static void N(by_panels)(i64 m, i64 k, i64 n, const T *a, i64 row, i64 step, const T *b, int adds, const T *bias, T *to, i64 ldc) {
    for (i64 c = 0, vectors; c < n; c += vectors * WIDTH) {
        vectors = N(vectors_of)(n - c);
        N(strip)(m, k, vectors, n - c < vectors * WIDTH ? n - c : vectors * WIDTH, a, row, step, b + c * k, vectors * WIDTH, adds,
                 bias ? bias + c : NULL, to + c, ldc);
    }
}

/* Numbers that panels of n columns take. */
static i64 N(room_of)(i64 k, i64 n) { return k * ((n + WIDTH - 1) / WIDTH * WIDTH); }

/* ---- forward, one step of some rows: from gates of the input and the state (side: of the state, where it stands alone) */
static void N(lstm)(const Recurrent *j, i64 t, i64 rows, const T *gates, const T *side, const T *h, const T *c_old, i64 ldc, i64 r0) {
    const i64 n = j->size;
    for (i64 r = 0; r < rows; r++) {
        const T *x = gates + r * 4 * n, *old = c_old + r * ldc;
        T *keep = X(kept) + (t * j->batch + r0 + r) * 5 * n, *out = X(out) + (t * j->batch + r0 + r) * n;
        SIMD
        for (i64 k = 0; k < n; k++) {
            T i = SIGMOID(x[k]), f = SIGMOID(x[n + k]), g = TANH(x[2 * n + k]), o = SIGMOID(x[3 * n + k]);
            T c = f * old[k] + i * g;
            keep[k] = i;
            keep[n + k] = f;
            keep[2 * n + k] = g;
            keep[3 * n + k] = o;
            keep[4 * n + k] = c;
            out[k] = o * TANH(c);
        }
    }
}

static void N(gru)(const Recurrent *j, i64 t, i64 rows, const T *gates, const T *side, const T *h, const T *c_old, i64 ldc, i64 r0) {
    const i64 n = j->size;
    for (i64 row = 0; row < rows; row++) {
        const T *x = gates + row * 3 * n, *y = side + row * 3 * n, *old = h + row * n;
        T *keep = X(kept) + (t * j->batch + r0 + row) * 4 * n, *out = X(out) + (t * j->batch + r0 + row) * n;
        SIMD
        for (i64 k = 0; k < n; k++) {
            T r = SIGMOID(x[k] + y[k]), z = SIGMOID(x[n + k] + y[n + k]), from = y[2 * n + k], fresh = TANH(x[2 * n + k] + r * from);
            keep[k] = r;
            keep[n + k] = z;
            keep[2 * n + k] = fresh;
            keep[3 * n + k] = from;
            out[k] = fresh + z * (old[k] - fresh);
        }
    }
}

static void N(rnn_tanh)(const Recurrent *j, i64 t, i64 rows, const T *gates, const T *side, const T *h, const T *c_old, i64 ldc, i64 r0) {
    const i64 all = rows * j->size;
    T *out = X(out) + (t * j->batch + r0) * j->size;
    SIMD
    for (i64 k = 0; k < all; k++)
        out[k] = TANH(gates[k]);
}

static void N(rnn_relu)(const Recurrent *j, i64 t, i64 rows, const T *gates, const T *side, const T *h, const T *c_old, i64 ldc, i64 r0) {
    const i64 all = rows * j->size;
    T *out = X(out) + (t * j->batch + r0) * j->size;
    for (i64 k = 0; k < all; k++)
        out[k] = gates[k] > 0 || gates[k] != gates[k] ? gates[k] : 0;
}

static void (*const N(steps)[])(const Recurrent *, i64, i64, const T *, const T *, const T *, const T *, i64, i64) = {
    N(rnn_tanh), N(rnn_relu), N(lstm), N(gru)};

/* What all tasks share: weights as panels, and the row that is added to the gates of the input. */
static void N(lay_out)(const Recurrent *j) {
    const i64 n = j->size, m = j->gates * n;
    if (j->back) {
        N(pack_all)(m, n, X(w_hh), n, 1, X(panels_hh));
        if (j->dx)
            N(pack_all)(m, j->features, X(w_ih), j->features, 1, X(panels_ih));
        return;
    }
    N(pack_all)(n, m, X(w_hh), 1, n, X(panels_hh));
    N(pack_all)(j->features, m, X(w_ih), 1, j->features, X(panels_ih));
    for (i64 k = 0; k < m; k++)
        X(bias)[k] = (j->b_ih ? X(b_ih)[k] : 0) + (j->b_hh && j->kind != GRU ? X(b_hh)[k] : 0);
}

static void N(forward_rows)(const Recurrent *j, i64 r0, i64 rows, T *room) {
    const i64 n = j->size, m = j->gates * n, alone = j->kind == GRU;
    T *side = alone ? room + rows * m : NULL;
    for (i64 s = 0; s < j->time; s++) {
        AT_TURN(s)
        const T *h = (s ? X(out) + before * j->batch * n : X(h0)) + r0 * n;
        const T *c = j->kind != LSTM ? NULL : s ? X(kept) + ((before * j->batch + r0) * 5 + 4) * n : X(c0) + r0 * n;
        N(by_panels)(rows, j->features, m, X(x) + t * j->x_step[0] + r0 * j->x_step[1], j->x_step[1], j->x_step[2], X(panels_ih), 0, X(bias), room, m);
        N(by_panels)(rows, n, m, h, n, 1, X(panels_hh), !alone, alone && j->b_hh ? X(b_hh) : NULL, alone ? side : room, m);
        N(steps)[j->kind](j, t, rows, room, side, h, c, s ? 5 * n : n, r0);
    }
    const i64 last = j->reverse ? 0 : j->time - 1;
    for (i64 r = r0; r < r0 + rows && j->kind == LSTM; r++)
        memcpy(X(c) + r * n, X(kept) + ((last * j->batch + r) * 5 + 4) * n, sizeof(T) * (size_t)n);
}

/* ---- backward, one step of one row: gradients of gates from those of the state, which become those of the state before as far as no product
 * is needed for it */
static void N(lstm_back)(const Recurrent *j, i64 place, const T *old_h, const T *c_old, T *gh, T *gc) {
    const i64 n = j->size;
    const T *keep = X(kept) + place * 5 * n;
    T *d = X(d) + place * 4 * n;
    SIMD
    for (i64 k = 0; k < n; k++) {
        T i = keep[k], f = keep[n + k], g = keep[2 * n + k], o = keep[3 * n + k], top = TANH(keep[4 * n + k]);
        T c = gc[k] + gh[k] * o * (1 - top * top);
        d[k] = c * g * i * (1 - i);
        d[n + k] = c * c_old[k] * f * (1 - f);
        d[2 * n + k] = c * i * (1 - g * g);
        d[3 * n + k] = gh[k] * top * o * (1 - o);
        gc[k] = c * f;
    }
}

static void N(gru_back)(const Recurrent *j, i64 place, const T *old_h, const T *c_old, T *gh, T *gc) {
    const i64 n = j->size;
    const T *keep = X(kept) + place * 4 * n;
    T *d = X(d) + place * 3 * n, *ds = X(ds) + place * 3 * n;
    SIMD
    for (i64 k = 0; k < n; k++) {
        T r = keep[k], z = keep[n + k], fresh = keep[2 * n + k], from = keep[3 * n + k];
        T of_new = gh[k] * (1 - z) * (1 - fresh * fresh), of_z = gh[k] * (old_h[k] - fresh) * z * (1 - z);
        T of_r = of_new * from * r * (1 - r);
        d[k] = ds[k] = of_r;
        d[n + k] = ds[n + k] = of_z;
        d[2 * n + k] = of_new;
        ds[2 * n + k] = of_new * r;
        gh[k] = gh[k] * z;
    }
}

static void N(rnn_tanh_back)(const Recurrent *j, i64 place, const T *old_h, const T *c_old, T *gh, T *gc) {
    const T *out = X(out) + place * j->size;
    T *d = X(d) + place * j->size;
    for (i64 k = 0; k < j->size; k++)
        d[k] = gh[k] * (1 - out[k] * out[k]);
}

static void N(rnn_relu_back)(const Recurrent *j, i64 place, const T *old_h, const T *c_old, T *gh, T *gc) {
    const T *out = X(out) + place * j->size;
    T *d = X(d) + place * j->size;
    for (i64 k = 0; k < j->size; k++)
        d[k] = out[k] > 0 ? gh[k] : gh[k] * 0;
}

static void (*const N(steps_back)[])(const Recurrent *, i64, const T *, const T *, T *, T *) = {
    N(rnn_tanh_back), N(rnn_relu_back), N(lstm_back), N(gru_back)};

static void N(backward_rows)(const Recurrent *j, i64 r0, i64 rows) {
    const i64 n = j->size, m = j->gates * n;
    for (i64 s = j->time - 1; s >= 0; s--) {
        AT_TURN(s)
        for (i64 r = r0; r < r0 + rows; r++) {
            const T *g = j->g ? X(g) + t * j->g_step[0] + r * j->g_step[1] : NULL;
            const T *h = s ? X(out) + (before * j->batch + r) * n : X(h0) + r * n;
            const T *c = j->kind != LSTM ? NULL : s ? X(kept) + ((before * j->batch + r) * 5 + 4) * n : X(c0) + r * n;
            T *gh = X(gh) + r * n;
            for (i64 k = 0; k < n && g; k++)
                gh[k] += g[k * j->g_step[2]];
            N(steps_back)[j->kind](j, t * j->batch + r, h, c, gh, j->gc ? X(gc) + r * n : NULL);
        }
        const i64 place = t * j->batch + r0;
        N(by_panels)(rows, m, n, X(ds) + place * m, m, 1, X(panels_hh), j->kind == GRU, NULL, X(gh) + r0 * n, n);
        if (j->dx)
            N(by_panels)(rows, m, j->features, X(d) + place * m, m, 1, X(panels_ih), 0, NULL, X(dx) + place * j->features, j->features);
    }
}

/* ---- gradients of weights: (gates, columns) of d turned by what the steps were given */
/* What a step multiplied with the weights: the input, or the state before it. */
INLINE const T *N(factor)(const Recurrent *j, int of_state, i64 s, i64 *down, i64 *across) {
    AT_TURN(s)
    *down = of_state ? j->size : j->x_step[1];
    *across = of_state ? 1 : j->x_step[2];
    return !of_state ? X(x) + t * j->x_step[0] : s ? X(out) + before * j->batch * j->size : X(h0);
}

/* Rows `first` to `first + rows` of the gradient of the weights of the input, or of the state; in panels of its columns. Turns go in the order
 * in which they ran, some at a time: as many as a panel has room for. */
static void N(weight_rows)(const Recurrent *j, int of_state, i64 first, i64 rows, T *room) {
    const i64 m = j->gates * j->size, columns = of_state ? j->size : j->features, some = j->together;
    const T *d = (of_state ? X(ds) : X(d)) + first;
    T *const to = (of_state ? X(dw_hh) : X(dw_ih)) + first * columns;
    for (i64 c = 0, vectors; c < columns; c += vectors * WIDTH) {
        vectors = N(vectors_of)(columns - c);
        const i64 wide = vectors * WIDTH, real = columns - c < wide ? columns - c : wide;
        for (i64 s = 0; s < j->time; s += some)
            for (i64 r = 0; r < j->batch; r += STEPS) {
                const i64 turns = j->time - s < some ? j->time - s : some, each = j->batch - r < STEPS ? j->batch - r : STEPS;
                for (i64 q = 0; q < turns; q++) {
                    i64 down, across;
                    const T *from = N(factor)(j, of_state, j->reverse ? s + turns - 1 - q : s + q, &down, &across); /* rows of d lie by time */
                    N(pack)(each, real, vectors, from + r * down + c * across, down, across, room + q * each * wide);
                }
                const i64 t = j->reverse ? j->time - s - turns : s;
                N(strip)(rows, turns * each, vectors, real, d + (t * j->batch + r) * m, 1, m, room, wide, s > 0 || r > 0, NULL, to + c, columns);
            }
    }
}

/* Sums of columns of d, row by row. */
static void N(bias_columns)(const Recurrent *j, int of_state, i64 first, i64 count) {
    const i64 m = j->gates * j->size;
    const T *d = (of_state ? X(ds) : X(d)) + first;
    T *to = (of_state ? X(db_hh) : X(db_ih)) + first;
    for (i64 k = 0; k < count; k++)
        to[k] = 0;
    for (i64 p = 0; p < j->time * j->batch; p++, d += m)
        for (i64 k = 0; k < count; k++)
            to[k] += d[k];
}

/* ---- tasks */
static void N(rows_part)(long begin, long end, void *const *given) {
    Recurrent *j = given[0];
    for (long p = begin; p < end; p++) {
        const i64 first = j->batch * p / j->parts, rows = j->batch * (p + 1) / j->parts - first;
        T *room = j->back ? NULL : malloc(sizeof(T) * (size_t)(rows * j->gates * j->size * (j->kind == GRU ? 2 : 1)));
        if (!j->back && !room)
            j->failed = 1;
        else if (j->back)
            N(backward_rows)(j, first, rows);
        else
            N(forward_rows)(j, first, rows, room);
        free(room);
    }
}

static void N(weights_part)(long begin, long end, void *const *given) {
    Recurrent *j = given[0];
    const i64 m = j->gates * j->size, deep = j->batch < STEPS ? j->together * j->batch : STEPS;
    T *room = aligned_alloc(64, (sizeof(T) * (size_t)(deep * VECTORS_AT_MOST * WIDTH) + 63) / 64 * 64);
    if (!room)
        j->failed = 1;
    for (long p = begin; p < end && room; p++) {
        const int of_state = p >= j->blocks;
        const i64 first = p % j->blocks * j->block, rows = m - first < j->block ? m - first : j->block;
        if (of_state ? j->dw_hh : j->dw_ih)
            N(weight_rows)(j, of_state, first, rows, room);
        if (of_state ? j->db_hh : j->db_ih)
            N(bias_columns)(j, of_state, first, rows);
    }
    free(room);
}

static const Functions N(functions) = {N(lay_out), N(rows_part), N(weights_part), N(room_of)};
#undef AT_TURN
#undef WIDTH
#undef X
