"""Attention in float32 that never holds all scores, computed one element at a time: for devices' ordinary units.

`forward` gives the text of a kernel, as `attention.forward` does: a block has 64 queries and goes through the keys 64 by 64. Scores, the
powers of them and the sums of values are products of small matrices; each of the 64 threads has 8 rows and 8 columns of them in registers, and
reads what it needs from shared memory four elements at a time. Sums are added up in one order, so a result never depends on how threads run.

What always holds: the innermost stride is 1, others and offsets are multiples of 4 elements (rows are read 16 bytes at a time). Rows
past the end are zeros, or not visible.
"""

from __future__ import annotations

from ...core import dtype as dtypes
from ...ops.lowering.loops import Launched, Value
from .attention import LOG2_E, launch_over_tiles

SIDE, THREADS, NEIGHBOURS = 64, 64, 4  # queries, or keys, of a tile; threads of a block; elements that are read at once
SIZES = (16, 32, 64)  # of a head

# Rows and columns of a thread are neighbours by four, so that threads side by side read neighbouring memory. Powers lie with their rows
# exchanged by the column (`^`): threads that write one column each then write to different banks.
PRELUDE = r"""
typedef pack<f32, 4, 16> quad;
INLINE i32 place_of(i32 k, i32 me) { return k / 4 * 32 + me * 4 + k % 4; }
/* Rows `first` to `first + 64` of a matrix, times a factor, as columns: zeros past its end. */
template <int D> INLINE void load_columns(f32 (*to)[64], const f32 *from, i64 step, i32 first, i32 rows, f32 factor) {
    const i32 r = threadIdx.x;
#pragma unroll
    for (i32 c = 0; c < D; c += 4) {
        quad x = {};
        if (first + r < rows) x = *(const quad *)&from[(first + r) * step + c];
#pragma unroll
        for (i32 i = 0; i < 4; i++) to[c + i][r] = x.at[i] * factor;
    }
}
template <int D> INLINE void load_rows(f32 (*to)[D], const f32 *from, i64 step, i32 first, i32 rows) {
#pragma unroll
    for (i32 n = threadIdx.x; n < 64 * (D / 4); n += 64) {
        const i32 r = n / (D / 4), c = n % (D / 4) * 4;
        quad x = {};
        if (first + r < rows) x = *(const quad *)&from[(first + r) * step + c];
        *(quad *)&to[r][c] = x;
    }
}
/* Elements of a row of shared memory: four, and the four 32 further on; or, of a short row, the few of this thread. */
template <int N> INLINE void read_few(f32 (&x)[N], const f32 *row, i32 me) {
    if constexpr (N == 8) {
        const quad a = *(const quad *)&row[me * 4], b = *(const quad *)&row[32 + me * 4];
#pragma unroll
        for (i32 i = 0; i < 4; i++) x[i] = a.at[i], x[4 + i] = b.at[i];
    } else {
        const pack<f32, N, 4 * N> a = *(const pack<f32, N, 4 * N> *)&row[me * N];
#pragma unroll
        for (i32 i = 0; i < N; i++) x[i] = a.at[i];
    }
}
template <int M, int N> INLINE void add_products(f32 (&sums)[M][N], const f32 (&a)[M], const f32 (&b)[N]) {
#pragma unroll
    for (i32 i = 0; i < M; i++)
#pragma unroll
        for (i32 j = 0; j < N; j++) sums[i][j] = fmaf(a[i], b[j], sums[i][j]);
}

template <int D, bool CAUSAL>
INLINE void attention_single(const f32 *q, const f32 *k, const f32 *v, f32 *out, f32 *lse, i64 q_step, i64 k_step, i64 v_step, i64 out_step,
                           i32 length, i32 span, i32 first, f32 scale) {
    constexpr int N = D / 8;
    __shared__ quad query_room[D * 16], key_room[64 * 16], value_room[D * 16];
    f32 (*queries)[64] = (f32 (*)[64])query_room, (*keys)[64] = (f32 (*)[64])key_room, (*values)[D] = (f32 (*)[D])value_room;
    const i32 down = threadIdx.x / 8, across = threadIdx.x % 8;
    f32 sums[8][N], top[8], total[8];
#pragma unroll
    for (i32 i = 0; i < 8; i++) {
        top[i] = -INF, total[i] = 0;
#pragma unroll
        for (i32 j = 0; j < N; j++) sums[i][j] = 0;
    }
    load_columns<D>(queries, q, q_step, first, length, scale);
    const i32 last = CAUSAL && first + 64 < span ? first + 64 : span;
    for (i32 from = 0; from < last; from += 64) {
        __syncthreads();
        load_columns<D>(keys, k, k_step, from, span, 1.f);
        load_rows<D>(values, v, v_step, from, span);
        __syncthreads();
        f32 s[8][8], a[8], b[8], few[N];
#pragma unroll
        for (i32 i = 0; i < 8; i++)
#pragma unroll
            for (i32 j = 0; j < 8; j++) s[i][j] = 0;
#pragma unroll 8
        for (i32 d = 0; d < D; d++) {
            read_few(a, queries[d], down);
            read_few(b, keys[d], across);
            add_products(s, a, b);
        }
        __syncthreads();
        const bool hidden = from + 64 > span || CAUSAL && from + 64 > first + 1;
#pragma unroll
        for (i32 i = 0; i < 8; i++) {
            f32 highest = -INF;
#pragma unroll
            for (i32 j = 0; j < 8; j++) {
                const i32 column = from + place_of(j, across);
                if (hidden && (column >= span || CAUSAL && column > first + place_of(i, down))) s[i][j] = -INF;
                highest = fmaxf(highest, s[i][j]);
            }
            const f32 now = fmaxf(top[i], over_lanes<8, Max<f32>>(highest)), base = now == -INF ? 0 : now;
            const f32 before = exp2f(top[i] - base);
            top[i] = now;
            total[i] *= before;
#pragma unroll
            for (i32 j = 0; j < N; j++) sums[i][j] *= before;
#pragma unroll
            for (i32 j = 0; j < 8; j++) total[i] += s[i][j] = exp2f(s[i][j] - base);
        }
#pragma unroll
        for (i32 j = 0; j < 8; j++) {
            const i32 column = place_of(j, across), row = (down ^ across) * 4;
            *(quad *)&keys[column][row] = {s[0][j], s[1][j], s[2][j], s[3][j]};
            *(quad *)&keys[column][32 + row] = {s[4][j], s[5][j], s[6][j], s[7][j]};
        }
        __syncthreads();
#pragma unroll 8
        for (i32 n = 0; n < 64; n++) {
            read_few(a, keys[n], down ^ n / 4 % 8);
            read_few(few, values[n], across);
            add_products(sums, a, few);
        }
    }
#pragma unroll
    for (i32 i = 0; i < 8; i++) {
        const i32 row = first + place_of(i, down);
        const f32 all = over_lanes<8, Sum<f32>>(total[i]), share = all == 0 ? 0 : 1 / all;
        if (row >= length) continue;
        if (across == 0) lse[row] = top[i] * 0.6931471805599453f + logf(all);
        f32 *to = out + row * out_step;
        if constexpr (N == 8) {
            *(quad *)&to[across * 4] = {sums[i][0] * share, sums[i][1] * share, sums[i][2] * share, sums[i][3] * share};
            *(quad *)&to[32 + across * 4] = {sums[i][4] * share, sums[i][5] * share, sums[i][6] * share, sums[i][7] * share};
        } else {
            pack<f32, N, 4 * N> y;
#pragma unroll
            for (i32 j = 0; j < N; j++) y.at[j] = sums[i][j] * share;
            *(pack<f32, N, 4 * N> *)&to[across * N] = y;
        }
    }
}
"""


def fits(*values: Value) -> bool:
    """Whether there is a kernel for queries, keys and values, whatever their strides are."""
    size = values[0].shape[-1]
    return (
        size in SIZES
        and all(v.dtype is dtypes.float32 and v.shape[-1] == size and len(v.shape) == 4 for v in values)
        and max(v.buffer.size for v in values) < 1 << 31
    )


def readable(v: Value) -> bool:
    """Whether rows of a value begin where vectors can be read."""
    steps = [s for n, s in zip(v.shape[:-1], v.strides[:-1], strict=True) if n > 1]
    return v.strides[-1] == 1 and not any(x % NEIGHBOURS for x in (*steps, v.offset))


def forward(out: Value, lse: Value, q: Value, k: Value, v: Value, causal: bool, scale: float) -> Launched:
    """`out` and `lse` from queries, keys and values."""
    steps = [x.strides[2] for x in (q, k, v, out)]
    kind = f"{q.shape[-1]}, {str(bool(causal)).lower()}"
    return launch_over_tiles(
        "attention_single", kind, (q, k, v), (out, lse), steps, q, k, causal, (scale * LOG2_E,), 4, (SIDE, THREADS), PRELUDE
    )  # fmt: skip
