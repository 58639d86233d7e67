"""Attention in half precision that never holds all scores: kernels over tiles of queries and keys, on a device's matrix units.

`forward` and `backward` give the text of kernels (as `printer.Launch` wants it) for sizes and strides that are part of the text. Scores of a
tile of queries with a tile of keys are products in registers; what softmax needs of the keys before is kept as a maximum and a
total for each query. The backward pass computes scores again from their logarithm of a sum: one kernel for the gradients of keys
and values, a block for each tile of keys, one for those of queries, so that nothing is added in an order that is not fixed.

What always holds: the innermost stride is 1, others and offsets are multiples of 8 elements (rows are read 16 bytes at a time), the
size of a head is a multiple of 16. Rows and columns past the end are zeros, or not visible.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from ...core import dtype as dtypes
from ...ops.lowering.loops import Launched, Value

WARPS = 4  # of a block, each with 16 queries, or keys
TILE, SMALL_TILE, WIDE = 64, 32, 64  # of what a block goes through; the smaller where heads are wider than this
LARGEST, UNIT = 128, 16  # sizes of a head
NAMES = {dtypes.float16: "Half", dtypes.bfloat16: "Brain"}

# A warp's products of 16 x 16 and 16 x 8 elements, and how their operands are read from shared memory.
UNITS = r"""
#define SHARED __shared__ __align__(16)
struct Brain {
    static __device__ __forceinline__ void multiply(f32 (&c)[4], const u32 (&a)[4], u32 b0, u32 b1) {
        asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
            : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3]) : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
    }
    static __device__ __forceinline__ u32 pair(f32 low, f32 high) {
        u32 r; asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(r) : "f"(high), "f"(low)); return r;
    }
};
struct Half {
    static __device__ __forceinline__ void multiply(f32 (&c)[4], const u32 (&a)[4], u32 b0, u32 b1) {
        asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
            : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3]) : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
    }
    static __device__ __forceinline__ u32 pair(f32 low, f32 high) {
        u32 r; asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(r) : "f"(high), "f"(low)); return r;
    }
};
/* Four matrices of 8 x 8 elements; lane 8 i + r has the address of row r of matrix i. */
INLINE void matrices(u32 (&r)[4], const u16 *row) {
    const u32 at = (u32)__cvta_generic_to_shared(row);
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
        : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(at) : "memory");
}
INLINE void turned_matrices(u32 (&r)[4], const u16 *row) {
    const u32 at = (u32)__cvta_generic_to_shared(row);
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
        : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(at) : "memory");
}
INLINE f32 power_of_two(f32 x) { f32 y; asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x)); return y; }
"""

TEXT = r"""
/* Rows `first` to `first + ROWS` of a matrix, zeros past its end. */
template <int ROWS, int D, int THREADS> INLINE void load_tile(u16 (*to)[D + 8], const u16 *from, i64 step, i32 first, i32 rows) {
#pragma unroll
    for (i32 n = threadIdx.x; n < ROWS * (D / 8); n += THREADS) {
        const i32 r = n / (D / 8), c = n % (D / 8) * 8;
        pack<u32, 4, 16> x = {};
        if (first + r < rows) x = *(const pack<u32, 4, 16> *)&from[(first + r) * step + c];
        *(pack<u32, 4, 16> *)&to[r][c] = x;
    }
}
/* The 16 rows of a warp from `first` on, as left operands. */
template <int D> INLINE void load_left(u32 (&a)[D / 16][4], const u16 *from, i64 step, i32 first, i32 rows) {
    const i32 g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
#pragma unroll
    for (i32 n = 0; n < D / 16; n++)
#pragma unroll
        for (i32 i = 0; i < 4; i++) {
            const i32 row = first + g + i % 2 * 8;
            a[n][i] = row < rows ? *(const u32 *)&from[row * step + n * 16 + i / 2 * 8 + 2 * t] : 0;
        }
}
/* left (16 x D) @ tile.T: (16 x TILE) */
template <typename H, int D, int TILE> INLINE void with_rows(f32 (&s)[TILE / 8][4], const u32 (&left)[D / 16][4], const u16 (*tile)[D + 8]) {
    const i32 lane = threadIdx.x % 32;
#pragma unroll
    for (i32 n = 0; n < TILE / 8; n++) s[n][0] = s[n][1] = s[n][2] = s[n][3] = 0;
#pragma unroll
    for (i32 k = 0; k < D / 16; k++)
#pragma unroll
        for (i32 n = 0; n < TILE / 16; n++) {
            u32 b[4];
            matrices(b, &tile[n * 16 + lane % 8 + lane / 16 * 8][k * 16 + lane / 8 % 2 * 8]);
            H::multiply(s[2 * n], left[k], b[0], b[1]);
            H::multiply(s[2 * n + 1], left[k], b[2], b[3]);
        }
}
/* out (16 x D) += s (16 x TILE, rounded) @ tile */
template <typename H, int D, int TILE> INLINE void with_columns(f32 (&out)[D / 8][4], const f32 (&s)[TILE / 8][4], const u16 (*tile)[D + 8]) {
    const i32 lane = threadIdx.x % 32;
#pragma unroll
    for (i32 n = 0; n < TILE / 16; n++) {
        const u32 left[4] = {H::pair(s[2 * n][0], s[2 * n][1]), H::pair(s[2 * n][2], s[2 * n][3]),
                             H::pair(s[2 * n + 1][0], s[2 * n + 1][1]), H::pair(s[2 * n + 1][2], s[2 * n + 1][3])};
#pragma unroll
        for (i32 d = 0; d < D / 16; d++) {
            u32 b[4];
            turned_matrices(b, &tile[n * 16 + lane % 16][d * 16 + lane / 16 * 8]);
            H::multiply(out[2 * d], left, b[0], b[1]);
            H::multiply(out[2 * d + 1], left, b[2], b[3]);
        }
    }
}
template <typename H, int D> INLINE void store_rows(u16 *to, i64 step, const f32 (&x)[D / 8][4], f32 upper, f32 lower, i32 first, i32 rows) {
    const i32 g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
#pragma unroll
    for (i32 d = 0; d < D / 8; d++) {
        if (first + g < rows) *(u32 *)&to[(first + g) * step + d * 8 + 2 * t] = H::pair(x[d][0] * upper, x[d][1] * upper);
        if (first + g + 8 < rows) *(u32 *)&to[(first + g + 8) * step + d * 8 + 2 * t] = H::pair(x[d][2] * lower, x[d][3] * lower);
    }
}
template <typename T, int N> INLINE void clear(T (&x)[N][4]) {
#pragma unroll
    for (i32 n = 0; n < N; n++) x[n][0] = x[n][1] = x[n][2] = x[n][3] = 0;
}

template <typename H, int D, bool CAUSAL, int WARPS, int TILE>
INLINE void attention_forward(const u16 *q, const u16 *k, const u16 *v, u16 *out, f32 *lse, i64 q_step, i64 k_step, i64 v_step, i64 out_step,
                              i32 length, i32 span, i32 first, f32 scale) {
    SHARED u16 keys[TILE][D + 8], values[TILE][D + 8];
    const i32 lane = threadIdx.x % 32, t = lane % 4, mine = first + threadIdx.x / 32 * 16, upper = mine + lane / 4;
    u32 left[D / 16][4];
    f32 sums[D / 8][4], top[2] = {-INF, -INF}, total[2] = {0, 0};
    load_left<D>(left, q, q_step, mine, length);
    clear(sums);
    const i32 last = CAUSAL && first + 16 * WARPS < span ? first + 16 * WARPS : span;
    for (i32 from = 0; from < last; from += TILE) {
        __syncthreads();
        load_tile<TILE, D, WARPS * 32>(keys, k, k_step, from, span);
        load_tile<TILE, D, WARPS * 32>(values, v, v_step, from, span);
        __syncthreads();
        f32 s[TILE / 8][4];
        with_rows<H, D, TILE>(s, left, keys);
        const bool hidden = from + TILE > span || CAUSAL && from + TILE > mine + 1;
        f32 highest[2] = {-INF, -INF};
#pragma unroll
        for (i32 n = 0; n < TILE / 8; n++)
#pragma unroll
            for (i32 i = 0; i < 4; i++) {
                const i32 column = from + n * 8 + 2 * t + i % 2;
                s[n][i] *= scale;
                if (hidden && (column >= span || CAUSAL && column > upper + i / 2 * 8)) s[n][i] = -INF;
                highest[i / 2] = fmaxf(highest[i / 2], s[n][i]);
            }
        f32 base[2];
#pragma unroll
        for (i32 r = 0; r < 2; r++) {
            const f32 now = fmaxf(top[r], over_lanes<4, Max<f32>>(highest[r]));
            base[r] = now == -INF ? 0 : now;
            const f32 before = power_of_two(top[r] - base[r]);
            top[r] = now;
            total[r] *= before;
#pragma unroll
            for (i32 d = 0; d < D / 8; d++) sums[d][2 * r] *= before, sums[d][2 * r + 1] *= before;
        }
#pragma unroll
        for (i32 n = 0; n < TILE / 8; n++)
#pragma unroll
            for (i32 i = 0; i < 4; i++) total[i / 2] += s[n][i] = power_of_two(s[n][i] - base[i / 2]);
        with_columns<H, D, TILE>(sums, s, values);
    }
    f32 share[2];
#pragma unroll
    for (i32 r = 0; r < 2; r++) {
        total[r] = over_lanes<4, Sum<f32>>(total[r]);
        share[r] = total[r] == 0 ? 0 : 1 / total[r];
        if (t == 0 && upper + r * 8 < length) lse[upper + r * 8] = top[r] * 0.6931471805599453f + logf(total[r]);
    }
    store_rows<H, D>(out, out_step, sums, share[0], share[1], mine, length);
}

template <typename H, int D, bool CAUSAL, int WARPS, int TILE>
INLINE void attention_queries(const u16 *g, const u16 *q, const u16 *k, const u16 *v, const f32 *lse, const f32 *dots, u16 *out, i64 g_step,
                              i64 q_step, i64 k_step, i64 v_step, i64 out_step, i32 length, i32 span, i32 first, f32 scale, f32 plain) {
    SHARED u16 keys[TILE][D + 8], values[TILE][D + 8];
    const i32 lane = threadIdx.x % 32, t = lane % 4, mine = first + threadIdx.x / 32 * 16, upper = mine + lane / 4;
    u32 queries[D / 16][4], grads[D / 16][4];
    f32 sums[D / 8][4], level[2], dot[2];
    load_left<D>(queries, q, q_step, mine, length);
    load_left<D>(grads, g, g_step, mine, length);
    clear(sums);
#pragma unroll
    for (i32 r = 0; r < 2; r++) {
        const bool is = upper + r * 8 < length;
        level[r] = is ? lse[upper + r * 8] * 1.4426950408889634f : INF;
        dot[r] = is ? dots[upper + r * 8] : 0;
    }
    const i32 last = CAUSAL && first + 16 * WARPS < span ? first + 16 * WARPS : span;
    for (i32 from = 0; from < last; from += TILE) {
        __syncthreads();
        load_tile<TILE, D, WARPS * 32>(keys, k, k_step, from, span);
        load_tile<TILE, D, WARPS * 32>(values, v, v_step, from, span);
        __syncthreads();
        f32 s[TILE / 8][4], back[TILE / 8][4];
        with_rows<H, D, TILE>(s, queries, keys);
        with_rows<H, D, TILE>(back, grads, values);
#pragma unroll
        for (i32 n = 0; n < TILE / 8; n++)
#pragma unroll
            for (i32 i = 0; i < 4; i++) {
                const i32 column = from + n * 8 + 2 * t + i % 2;
                const bool seen = column < span && (!CAUSAL || column <= upper + i / 2 * 8);
                s[n][i] = seen ? power_of_two(s[n][i] * scale - level[i / 2]) * (back[n][i] - dot[i / 2]) * plain : 0;
            }
        with_columns<H, D, TILE>(sums, s, keys);
    }
    store_rows<H, D>(out, out_step, sums, 1, 1, mine, length);
}

template <typename H, int D, bool CAUSAL, int WARPS, int TILE>
INLINE void attention_keys(const u16 *g, const u16 *q, const u16 *k, const u16 *v, const f32 *lse, const f32 *dots, u16 *to_keys,
                           u16 *to_values, i64 g_step, i64 q_step, i64 k_step, i64 v_step, i64 to_keys_step, i64 to_values_step,
                           i32 length, i32 span, i32 first, f32 scale, f32 plain) {
    SHARED u16 queries[TILE][D + 8], grads[TILE][D + 8];
    __shared__ f32 level[TILE], dot[TILE];
    const i32 lane = threadIdx.x % 32, t = lane % 4, mine = first + threadIdx.x / 32 * 16, upper = mine + lane / 4;
    u32 keys[D / 16][4], values[D / 16][4];
    f32 key_sums[D / 8][4], value_sums[D / 8][4];
    load_left<D>(keys, k, k_step, mine, span);
    load_left<D>(values, v, v_step, mine, span);
    clear(key_sums);
    clear(value_sums);
    for (i32 from = CAUSAL ? first / TILE * TILE : 0; from < length; from += TILE) {
        __syncthreads();
        load_tile<TILE, D, WARPS * 32>(queries, q, q_step, from, length);
        load_tile<TILE, D, WARPS * 32>(grads, g, g_step, from, length);
        if (threadIdx.x < TILE) {
            const bool is = from + (i32)threadIdx.x < length;
            level[threadIdx.x] = is ? lse[from + threadIdx.x] * 1.4426950408889634f : INF;
            dot[threadIdx.x] = is ? dots[from + threadIdx.x] : 0;
        }
        __syncthreads();
        f32 s[TILE / 8][4], back[TILE / 8][4];
        with_rows<H, D, TILE>(s, keys, queries);
        with_rows<H, D, TILE>(back, values, grads);
#pragma unroll
        for (i32 n = 0; n < TILE / 8; n++)
#pragma unroll
            for (i32 i = 0; i < 4; i++) {
                const i32 place = n * 8 + 2 * t + i % 2;
                const bool seen = !CAUSAL || upper + i / 2 * 8 <= from + place;
                s[n][i] = seen ? power_of_two(s[n][i] * scale - level[place]) : 0;
                back[n][i] = s[n][i] * (back[n][i] - dot[place]) * plain;
            }
        with_columns<H, D, TILE>(value_sums, s, grads);
        with_columns<H, D, TILE>(key_sums, back, queries);
    }
    store_rows<H, D>(to_keys, to_keys_step, key_sums, 1, 1, mine, span);
    store_rows<H, D>(to_values, to_values_step, value_sums, 1, 1, mine, span);
}
"""
PRELUDE = UNITS + TEXT
LOG2_E = 1.4426950408889634


def fits(*values: Value) -> bool:
    """Whether there are kernels for queries, keys and values, whatever their strides are."""
    size = values[0].shape[-1]
    return (
        all(v.dtype is values[0].dtype and v.shape[-1] == size and len(v.shape) == 4 for v in values)
        and values[0].dtype in NAMES
        and size % UNIT == 0
        and size <= LARGEST
        and max(v.buffer.size for v in values) < 1 << 31
    )


def readable(v: Value) -> bool:
    """Whether rows of a value begin where vectors can be read."""
    steps = [s for n, s in zip(v.shape[:-1], v.strides[:-1], strict=True) if n > 1]
    return (v.strides[-1] == 1 or v.shape[-1] == 1) and not any(x % 8 for x in (*steps, v.offset))


def forward(out: Value, lse: Value, q: Value, k: Value, v: Value, causal: bool, scale: float) -> Launched:
    """`out` and `lse` from queries, keys and values."""
    steps = [x.strides[2] for x in (q, k, v, out)]
    return _launch("attention_forward", (q, k, v), (out, lse), steps, TILE, q, k, causal, (scale * LOG2_E,), 4)


def backward(targets: Sequence[Value], g: Value, q, k, v, lse, dots, causal: bool, scale: float) -> list[Launched]:
    """Gradients of queries, keys and values, into `targets`; `dots` are sums of gradient times output for each query."""
    to_queries, to_keys, to_values = targets
    read, numbers = (g, q, k, v, lse, dots), (scale * LOG2_E, scale)
    tile = SMALL_TILE if q.shape[-1] > WIDE else TILE
    steps = [x.strides[2] for x in (g, q, k, v)]
    return [
        _launch("attention_queries", read, (to_queries,), [*steps, to_queries.strides[2]], tile, q, k, causal, numbers, 6),
        _launch(
            "attention_keys", read, (to_keys, to_values), [*steps, to_keys.strides[2], to_values.strides[2]], tile, q, k, causal,
            numbers, 10,
        ),
    ]  # fmt: skip


def _launch(
    name: str, read, written, steps, tile: int, q: Value, k: Value, causal: bool, numbers, products: int
) -> Launched:
    """One of the kernels above."""
    kind = f"{NAMES[q.dtype]}, {q.shape[-1]}, {str(bool(causal)).lower()}, {WARPS}, {tile}"
    sides = (16 * WARPS, 32 * WARPS)
    return launch_over_tiles(name, kind, read, written, steps, q, k, causal, numbers, products, sides, PRELUDE)


def launch_over_tiles(
    name: str, kind: str, read, written, steps, q: Value, k: Value, causal: bool, numbers, products: int,
    sides: tuple[int, int], prelude: str,
) -> Launched:  # fmt: skip
    """One kernel: a block for each tile of queries (of keys, where those are what is written) of each head, the longest first.
    `sides`: rows of a tile, threads of a block."""
    batch, heads, length, size = q.shape
    span, (rows, threads) = k.shape[2], sides
    own = span if name == "attention_keys" else length
    tiles, pairs = -(-own // rows), batch * heads
    longest_first = causal and name != "attention_keys"
    kinds = [("const ", v) for v in read] + [("", v) for v in written]
    parameters = ", ".join(
        f"{const}{'f32' if v.dtype is dtypes.float32 else 'u16'} *__restrict__ p{n}"
        for n, (const, v) in enumerate(kinds)
    )
    at = [f"p{n} + {v.offset}L + b * {v.strides[0]}L + h * {v.strides[1]}L" for n, (_, v) in enumerate(kinds)]
    order = f"{tiles} - 1 - blockIdx.x / {pairs}" if longest_first else f"blockIdx.x / {pairs}"
    arguments = [*at, *[f"{s}L" for s in steps], str(length), str(span), "first", *[_number(x) for x in numbers]]
    text = "\n".join(
        [
            f'extern "C" __global__ void __launch_bounds__({threads}) NAME({parameters}) {{',
            f"    const i64 b = blockIdx.x % {pairs} / {heads}, h = blockIdx.x % {heads};",
            f"    const i32 first = ({order}) * {rows};",
            f"    {name}<{kind}>({', '.join(arguments)});",
            "}\n",
        ]
    )
    work = products * math.prod((batch, heads, length, span, size)) // (2 if causal else 1)
    return Launched(list(written), list(read), text, prelude, tiles * pairs, threads, work, name.replace("_", " over "))


def _number(x: float) -> str:
    return f"{float(x)!r}f"
