/* Recurrent layers of one dtype, for one set of instructions: all steps of one direction. A template: see _network.c. */
#define X(field) ((T *)j->field)
/* ---- recurrent layers: all steps of one direction */

static void N(lstm)(Recurrent *j) {
    i64 n = j->size, all = j->batch * n;
    for (i64 s = 0; s < j->time; s++) {
        i64 t = j->reverse ? j->time - 1 - s : s, before = j->reverse ? t + 1 : t - 1;
        T *gates = X(gates) + t * all * 4;
        const T *h = s ? X(out) + before * all : X(h0);
        N(gemm)(0, 1, j->batch, 4 * n, n, 1, h, n, X(w), n, 1, gates, 4 * n);
        for (i64 r = 0; r < j->batch; r++) {
            const T *x = gates + r * 4 * n, *c_old = s ? X(kept) + (before * j->batch + r) * 5 * n + 4 * n : X(c0) + r * n;
            T *keep = X(kept) + (t * j->batch + r) * 5 * n, *out = X(out) + t * all + r * n;
            SIMD
            for (i64 k = 0; k < n; k++) {
                T i = SIGMOID(x[k]), f = SIGMOID(x[n + k]), g = TANH(x[2 * n + k]), o = SIGMOID(x[3 * n + k]);
                T c = f * c_old[k] + i * g;
                keep[k] = i;
                keep[n + k] = f;
                keep[2 * n + k] = g;
                keep[3 * n + k] = o;
                keep[4 * n + k] = c;
                out[k] = o * TANH(c);
            }
            if (s == j->time - 1)
                memcpy(X(c) + r * n, keep + 4 * n, sizeof(T) * (size_t)n);
        }
    }
}

static void N(lstm_back)(Recurrent *j) {
    i64 n = j->size, all = j->batch * n;
    for (i64 s = j->time - 1; s >= 0; s--) {
        i64 t = j->reverse ? j->time - 1 - s : s, before = j->reverse ? t + 1 : t - 1;
        for (i64 r = 0; r < j->batch; r++) {
            const T *keep = X(kept) + (t * j->batch + r) * 5 * n, *g_out = X(g) ? X(g) + t * all + r * n : NULL;
            const T *c_old = s ? X(kept) + (before * j->batch + r) * 5 * n + 4 * n : X(c0) + r * n;
            T *d = X(d) + (t * j->batch + r) * 4 * n, *gh = X(gh) + r * n, *gc = X(gc) + r * n;
            if (g_out)
                for (i64 k = 0; k < n; k++)
                    gh[k] += g_out[k];
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
        N(gemm)(0, 0, j->batch, n, 4 * n, 1, X(d) + t * all * 4, 4 * n, X(w), n, 0, X(gh), n);
    }
}

static void N(gru)(Recurrent *j) {
    i64 n = j->size, all = j->batch * n;
    for (i64 s = 0; s < j->time; s++) {
        i64 t = j->reverse ? j->time - 1 - s : s, before = j->reverse ? t + 1 : t - 1;
        const T *h = s ? X(out) + before * all : X(h0);
        for (i64 r = 0; r < j->batch; r++)
            for (i64 k = 0; k < 3 * n; k++)
                X(side)[r * 3 * n + k] = X(b) ? X(b)[k] : 0;
        N(gemm)(0, 1, j->batch, 3 * n, n, 1, h, n, X(w), n, 1, X(side), 3 * n);
        for (i64 row = 0; row < j->batch; row++) {
            const T *x = X(gates) + (t * j->batch + row) * 3 * n, *y = X(side) + row * 3 * n, *old = h + row * n;
            T *keep = X(kept) + (t * j->batch + row) * 4 * n, *out = X(out) + t * all + row * n;
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
}

static void N(gru_back)(Recurrent *j) {
    i64 n = j->size, all = j->batch * n;
    for (i64 s = j->time - 1; s >= 0; s--) {
        i64 t = j->reverse ? j->time - 1 - s : s, before = j->reverse ? t + 1 : t - 1;
        const T *h = s ? X(out) + before * all : X(h0);
        for (i64 row = 0; row < j->batch; row++) {
            const T *keep = X(kept) + (t * j->batch + row) * 4 * n, *g_out = X(g) ? X(g) + t * all + row * n : NULL, *old = h + row * n;
            T *d = X(d) + (t * j->batch + row) * 3 * n, *ds = X(ds) + (t * j->batch + row) * 3 * n, *gh = X(gh) + row * n;
            if (g_out)
                for (i64 k = 0; k < n; k++)
                    gh[k] += g_out[k];
            SIMD
            for (i64 k = 0; k < n; k++) {
                T r = keep[k], z = keep[n + k], fresh = keep[2 * n + k], from = keep[3 * n + k];
                T of_new = gh[k] * (1 - z) * (1 - fresh * fresh), of_z = gh[k] * (old[k] - fresh) * z * (1 - z);
                T of_r = of_new * from * r * (1 - r);
                d[k] = ds[k] = of_r;
                d[n + k] = ds[n + k] = of_z;
                d[2 * n + k] = of_new;
                ds[2 * n + k] = of_new * r;
                gh[k] = gh[k] * z;
            }
        }
        N(gemm)(0, 0, j->batch, n, 3 * n, 1, X(ds) + t * all * 3, 3 * n, X(w), n, 1, X(gh), n);
    }
}

static void N(rnn)(Recurrent *j, int relu) {
    i64 n = j->size, all = j->batch * n;
    for (i64 s = 0; s < j->time; s++) {
        i64 t = j->reverse ? j->time - 1 - s : s, before = j->reverse ? t + 1 : t - 1;
        T *gates = X(gates) + t * all, *out = X(out) + t * all;
        N(gemm)(0, 1, j->batch, n, n, 1, s ? X(out) + before * all : X(h0), n, X(w), n, 1, gates, n);
        if (relu)
            for (i64 k = 0; k < all; k++)
                out[k] = gates[k] > 0 || gates[k] != gates[k] ? gates[k] : 0;
        else {
            SIMD
            for (i64 k = 0; k < all; k++)
                out[k] = TANH(gates[k]);
        }
    }
}

static void N(rnn_back)(Recurrent *j, int relu) {
    i64 n = j->size, all = j->batch * n;
    for (i64 s = j->time - 1; s >= 0; s--) {
        i64 t = j->reverse ? j->time - 1 - s : s;
        T *d = X(d) + t * all;
        const T *out = X(out) + t * all, *g_out = X(g) ? X(g) + t * all : NULL;
        for (i64 k = 0; k < all; k++) {
            T g = X(gh)[k] + (g_out ? g_out[k] : 0);
            d[k] = relu ? (out[k] > 0 ? g : g * 0) : g * (1 - out[k] * out[k]);
        }
        N(gemm)(0, 0, j->batch, n, n, 1, d, n, X(w), n, 0, X(gh), n);
    }
}
#undef X
