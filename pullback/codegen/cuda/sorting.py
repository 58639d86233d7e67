"""Rows sorted in shared memory, a block of threads to each: a kernel written by hand, for rows of up to `LONGEST` elements.

`sorted_places` gives the step that writes where the elements of each row are in order, or those of some ranks. An element and its place
are one number, so equal elements stay in the order of their places; NaN is the largest. Pairs are exchanged in the fixed order of a
bitonic network, so the result never depends on the order in which threads run.
"""

from __future__ import annotations

import math

from ...ops.lowering.loops import Launched, Value
from ..printers.c_scalars import C_TYPES

LONGEST = 4096  # elements of a row, of up to 32 bits
LONGEST_WIDE = 2048  # of 64
MOST_THREADS = 512

PRELUDE = r"""
INLINE u32 rank_of(f32 x) {
    const u32 bits = f32_bits(x + 0.f);
    return x != x ? ~0u : bits >> 31 ? ~bits : bits | 1u << 31;
}
INLINE u64 rank_of(f64 x) {
    const u64 bits = bits_of<u64>(x + 0.);
    return x != x ? ~0ul : bits >> 63 ? ~bits : bits | 1ul << 63;
}
INLINE u32 rank_of(i32 x) { return (u32)x ^ 1u << 31; }
INLINE u32 rank_of(i16 x) { return rank_of((i32)x); }
INLINE u32 rank_of(i8 x) { return rank_of((i32)x); }
INLINE u32 rank_of(u8 x) { return x; }
INLINE u32 rank_of(u32 x) { return x; }
INLINE u64 rank_of(i64 x) { return (u64)x ^ 1ul << 63; }
INLINE u32 rank_of(u16 x) { return x; }

template <typename R> struct ranked;
template <> struct ranked<u32> {
    u64 both;
    static __device__ ranked of(u32 rank, u32 place) { return {(u64)rank << 32 | place}; }
    __device__ bool after(const ranked &b) const { return both > b.both; }
    __device__ u32 place() const { return (u32)both; }
};
template <> struct ranked<u64> {
    u64 rank; u64 at;
    static __device__ ranked of(u64 rank, u32 place) { return {rank, place}; }
    __device__ bool after(const ranked &b) const { return rank > b.rank || rank == b.rank && at > b.at; }
    __device__ u32 place() const { return (u32)at; }
};
/* Places of the elements of a row of N, in order: those of ranks `first` to `first + COUNT`. SIDE is the next power of two. */
template <typename R, i32 N, i32 SIDE, i32 THREADS, bool DESCENDING, typename T>
INLINE void sorted_places(const T *row, i64 *out, i32 first, i32 count) {
    __shared__ ranked<R> all[SIDE];
    for (i32 i = threadIdx.x; i < SIDE; i += THREADS) {
        R rank = i < N ? rank_of(row[i]) : (R)0;
        if (DESCENDING) rank = ~rank;
        all[i] = ranked<R>::of(i < N ? rank : ~(R)0, (u32)i);
    }
    for (i32 size = 2; size <= SIDE; size *= 2)
        for (i32 step = size / 2; step; step /= 2) {
            __syncthreads();
            for (i32 t = threadIdx.x; t < SIDE / 2; t += THREADS) {
                const i32 i = 2 * t - (t & (step - 1)), j = i + step;
                const ranked<R> a = all[i], b = all[j];
                if (a.after(b) == ((i & size) == 0)) { all[i] = b; all[j] = a; }
            }
        }
    __syncthreads();
    for (i32 i = threadIdx.x; i < count; i += THREADS) out[i] = (i64)all[first + i].place();
}
"""


def fits(v: Value) -> bool:
    return 0 < v.shape[-1] <= (LONGEST_WIDE if v.dtype.itemsize == 8 else LONGEST) and not v.dtype.is_complex


def sorted_places(target: Value, source: Value, descending: bool, first: int) -> Launched:
    """`target[row, k]`: the place of the element of rank `first + k` of a row; both are row-major."""
    n, count = source.shape[-1], target.shape[-1]
    rows, side = math.prod(source.shape[:-1]), max(1 << (n - 1).bit_length(), 2)
    threads = min(max(side // 2, 32), MOST_THREADS)
    wide = source.dtype.itemsize == 8
    kind = C_TYPES[source.dtype]
    call = f"sorted_places<{'u64' if wide else 'u32'}, {n}, {side}, {threads}, {str(descending).lower()}>"
    text = "\n".join(
        [
            f'extern "C" __global__ void __launch_bounds__({threads}) NAME(const {kind} *__restrict__ p0, i64 *__restrict__ p1) {{',
            "    const i64 row = blockIdx.x;",
            f"    {call}(p0 + {source.offset}L + row * {n}L, p1 + {target.offset}L + row * {count}L, {first}, {count});",
            "}\n",
        ]
    )
    work = rows * side * side.bit_length() ** 2 // 2
    return Launched([target], [source], text, PRELUDE, rows, threads, work, "places in order")
