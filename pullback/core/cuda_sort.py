"""Sorted rows on a CUDA device, and where their elements were: a radix sort, digit by digit of eight bits, from the lowest on.

`sorted_rows(a, descending, values)` takes a row-major array of CuPy's and sorts along its last axis, or gives None where it has no kernel.
Orders are stable; NaN counts as the largest, zeros of both signs as equal. An element becomes an unsigned number of the same order, and goes
with its place. Each digit is one pass over memory: a block ranks the elements of a tile, learns from the tiles before it how many of each digit
they have (each publishes its counts, then the total up to itself), and writes all where they belong. The last pass gives elements
and places as they are asked for. Tiles are numbered as blocks begin, so none waits for one that has not begun.
"""

from __future__ import annotations

import struct
from functools import cache
from itertools import accumulate

import numpy as np

from .cuda_launch import address, clear, launch

THREADS, DIGITS = 256, 256
LONGEST = 1 << 30  # elements of a row: counts have two bits of state beside them
SHORTEST = 1024  # of which a tile is mostly filled
ALIGNED = 256  # bytes to which parts of the memory in between are rounded up
COUNTED = 16  # tiles' worth of elements that a block of the first kernel counts

SOURCE = r"""
typedef unsigned char u8; typedef unsigned short u16; typedef unsigned int u32; typedef unsigned long long u64; typedef long long i64;
#define TILE (256 * ITEMS)
#define SIGN ((U)((U)1 << (8 * sizeof(U) - 1)))
#define ALL ((U)~(U)0)
struct Sorting { /* of `tiles` tiles of each row of `n` elements */
    const U *x; U *values; i64 *places; KEY *keys_in, *keys_out; u32 *from_in, *from_out; u32 *counts, *ticket, *state; i64 n, tiles; u32 shift, pass;
};

__device__ __forceinline__ U rank_of(U bits) {
    if (IS_FLOAT) {
        if ((U)(bits & (U)~SIGN) > INFINITE) bits = ALL;
        else if (bits == SIGN) bits = SIGN;
        else bits = bits & SIGN ? (U)~bits : (U)(bits | SIGN);
    } else if (IS_SIGNED) bits ^= SIGN;
    return DESCENDING ? (U)~bits : bits;
}
/* The element of a rank, but for those that several elements have: NaN, and zeros. */
__device__ __forceinline__ bool is_shared(U rank) {
    const U r = DESCENDING ? (U)~rank : rank;
    return IS_FLOAT && (r == ALL || r == SIGN);
}
__device__ __forceinline__ U element_of(U rank) {
    const U r = DESCENDING ? (U)~rank : rank;
    if (IS_FLOAT) return r & SIGN ? (U)(r & (U)~SIGN) : (U)~r;
    return IS_SIGNED ? (U)(r ^ SIGN) : r;
}
__device__ __forceinline__ u32 digit_of(KEY key, u32 shift) { return (u32)(key >> shift) & 255; }
/* Up to each of 256 threads, it not included. */
__device__ __forceinline__ u32 before(u32 x, u32 *room) {
    const u32 lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    u32 sum = x;
    for (u32 step = 1; step < 32; step *= 2) { const u32 y = __shfl_up_sync(~0u, sum, step); if (lane >= step) sum += y; }
    __syncthreads();
    if (lane == 31) room[warp] = sum;
    __syncthreads();
    u32 base = 0;
    for (u32 w = 0; w < warp; w++) base += room[w];
    return base + sum - x;
}

/* How many elements of each row have each value of each digit. */
extern "C" __global__ void __launch_bounds__(256) counted(const Sorting s) {
    __shared__ u32 counts[PASSES][256];
    const i64 blocks = (s.n + COUNTED * TILE - 1) / (COUNTED * TILE), row = blockIdx.x / blocks, first = blockIdx.x % blocks * COUNTED * TILE;
    const U *x = s.x + row * s.n;
    for (u32 p = 0; p < PASSES; p++) counts[p][threadIdx.x] = 0;
    __syncthreads();
    const i64 last = first + COUNTED * TILE < s.n ? first + COUNTED * TILE : s.n;
    for (i64 i = first + threadIdx.x; i < last; i += 256) {
        const U rank = rank_of(x[i]);
#pragma unroll
        for (u32 p = 0; p < PASSES; p++) atomicAdd(&counts[p][digit_of(rank, 8 * p)], 1u);
    }
    __syncthreads();
    for (u32 p = 0; p < PASSES; p++)
        if (counts[p][threadIdx.x]) atomicAdd(&s.counts[(row * PASSES + p) * 256 + threadIdx.x], counts[p][threadIdx.x]);
}

enum { MINE = 1u << 30, WHOLE = 2u << 30, VALUE = MINE - 1 }; /* what a tile has published: its own counts, or all up to and with its own */

template <bool FIRST, bool LAST> __device__ __forceinline__ void sorted(const Sorting &s) {
    __shared__ union { KEY keys[TILE]; u32 from[TILE]; } room;
    __shared__ u32 counts[8][256], starts[256], sums[8], which;
    const u32 t = threadIdx.x, lane = t % 32, warp = t / 32;
    if (t == 0) which = atomicAdd(&s.ticket[s.pass], 1u);
    for (u32 w = 0; w < 8; w++) counts[w][t] = 0;
    __syncthreads();
    const i64 number = which, row = number / s.tiles, tile = number % s.tiles, first = tile * TILE;
    const i64 valid = s.n - first < TILE ? s.n - first : TILE, base = row * s.n + first;
    KEY keys[ITEMS];
    u32 ranks[ITEMS];
#pragma unroll
    for (u32 i = 0; i < ITEMS; i++) {
        const u32 at = (warp * ITEMS + i) * 32 + lane;
        keys[i] = at >= valid ? (KEY)~(KEY)0 : FIRST ? (KEY)rank_of(s.x[base + at]) : s.keys_in[base + at];
    }
#pragma unroll
    for (u32 i = 0; i < ITEMS; i++) { /* the order among equals of a warp, by those of lanes below and of items before */
        const u32 digit = digit_of(keys[i], s.shift);
        u32 peers = ~0u;
#pragma unroll
        for (u32 b = 0; b < 8; b++) {
            const u32 with = __ballot_sync(~0u, digit >> b & 1);
            peers &= digit >> b & 1 ? with : ~with;
        }
        const u32 earlier = counts[warp][digit], below = __popc(peers & ((1u << lane) - 1));
        ranks[i] = earlier + below;
        __syncwarp();
        if (below == 0) counts[warp][digit] = earlier + __popc(peers);
        __syncwarp();
    }
    __syncthreads();
    u32 total = 0;
    for (u32 w = 0; w < 8; w++) { const u32 c = counts[w][t]; counts[w][t] = total; total += c; }
    volatile u32 *state = s.state + (s.pass * gridDim.x + number) * 256 + t;
    u32 earlier = 0;
    if (tile == 0) *state = WHOLE | total;
    else {
        *state = MINE | total;
        for (volatile u32 *other = state - 256;; other -= 256) {
            u32 seen;
            do seen = *other; while (!(seen & (MINE | WHOLE)));
            earlier += seen & VALUE;
            if (seen & WHOLE) break;
        }
        *state = WHOLE | (earlier + total);
    }
    const u32 start = before(total, sums), whole = before(s.counts[(row * PASSES + s.pass) * 256 + t], sums);
    for (u32 w = 0; w < 8; w++) counts[w][t] += start;
    starts[t] = whole + earlier - start; /* added to a place in the tile, the place in the row */
    __syncthreads();
#pragma unroll
    for (u32 i = 0; i < ITEMS; i++) {
        ranks[i] += counts[warp][digit_of(keys[i], s.shift)];
        room.keys[ranks[i]] = keys[i];
    }
    __syncthreads();
    u32 to[ITEMS];
#pragma unroll
    for (u32 i = 0; i < ITEMS; i++) {
        const u32 at = i * 256 + t;
        keys[i] = room.keys[at];
        to[i] = starts[digit_of(keys[i], s.shift)] + at;
        if (!LAST && at < valid) s.keys_out[row * s.n + to[i]] = keys[i];
    }
    __syncthreads();
#pragma unroll
    for (u32 i = 0; i < ITEMS; i++) {
        const u32 at = (warp * ITEMS + i) * 32 + lane;
        room.from[ranks[i]] = FIRST ? (u32)first + at : at < valid ? s.from_in[base + at] : 0;
    }
    __syncthreads();
#pragma unroll
    for (u32 i = 0; i < ITEMS; i++) {
        const u32 at = i * 256 + t;
        if (at >= valid) continue;
        const u32 from = room.from[at];
        const i64 place = row * s.n + to[i];
        if (!LAST) { s.from_out[place] = from; continue; }
        s.places[place] = from;
        if (s.values) s.values[place] = is_shared((U)keys[i]) ? s.x[row * s.n + from] : element_of((U)keys[i]);
    }
}

extern "C" __global__ void __launch_bounds__(256, 3) first_pass(const Sorting s) { sorted<true, PASSES == 1>(s); }
extern "C" __global__ void __launch_bounds__(256, 3) middle_pass(const Sorting s) { sorted<false, false>(s); }
extern "C" __global__ void __launch_bounds__(256, 3) last_pass(const Sorting s) { sorted<false, true>(s); }
"""
_PACK = struct.Struct("=10Q2q2I").pack
_BLOCKS = {1: "unsigned char", 2: "unsigned short", 4: "unsigned int", 8: "unsigned long long"}
_INFINITE = {2: "0x7c00", 4: "0x7f800000", 8: "0x7ff0000000000000ull"}


def applies(a) -> bool:
    """Whether there are kernels for an array, whose rows are long enough for them."""
    return (
        a.ndim > 0
        and a.dtype.kind in "biuf"
        and a.dtype.itemsize in _BLOCKS
        and a.flags.c_contiguous
        and a.size > 0
        and SHORTEST <= a.shape[-1] < LONGEST
    )


@cache
def source_of(dtype: np.dtype, descending: bool) -> str:
    """The kernels' text for a dtype."""
    names = {
        "U": _BLOCKS[dtype.itemsize], "KEY": "unsigned long long" if dtype.itemsize == 8 else "unsigned int", "PASSES": dtype.itemsize,
        "ITEMS": items_of(dtype), "COUNTED": COUNTED, "IS_FLOAT": int(dtype.kind == "f"), "IS_SIGNED": int(dtype.kind == "i"),
        "INFINITE": _INFINITE.get(dtype.itemsize, "0"), "DESCENDING": int(descending),
    }  # fmt: skip
    return "".join(f"#define {k} {v}\n" for k, v in names.items()) + SOURCE


def items_of(dtype: np.dtype) -> int:
    """Elements of a tile that one thread has."""
    return 8 if dtype.itemsize == 8 else 16


def sorted_rows(a, descending: bool, values: bool):
    """(sorted elements or None, their places as int64) along the last axis; None where the kernels do not apply."""
    if not applies(a):
        return None
    import cupy

    n, passes, size = a.shape[-1], a.dtype.itemsize, a.size
    rows, tiles = size // n, -(-n // (THREADS * items_of(a.dtype)))
    out = cupy.ndarray(a.shape, a.dtype) if values else None
    places = cupy.ndarray(a.shape, np.int64)
    counted, ways = 4 * (rows * passes * DIGITS), 4 * DIGITS * passes * rows * tiles
    spans = [counted, ALIGNED, ways, *[8 * size if passes == 8 else 4 * size, 4 * size] * (2 if passes > 1 else 0)]
    starts = list(accumulate([-(-span // ALIGNED) * ALIGNED for span in spans], initial=0))
    room = cupy.ndarray(starts[-1], np.uint8)
    clear(room, starts[3])
    base = address(room)
    counts, ticket, state = (base + start for start in starts[:3])
    keys, origins = [base + s for s in starts[3:-1:2]] or [0, 0], [base + s for s in starts[4:-1:2]] or [0, 0]
    given, to = address(a), (address(out) if values else 0, address(places))
    structure = lambda p: _PACK(
        given,
        *to,
        keys[p % 2 - 1],
        keys[p % 2],
        origins[p % 2 - 1],
        origins[p % 2],
        counts,
        ticket,
        state,
        n,
        tiles,
        8 * p,
        p,
    )
    names = ["first_pass", *["middle_pass"] * (passes - 2), *["last_pass"] * (passes > 1)]
    runs = [("counted", rows * -(-tiles // COUNTED), structure(0))]
    runs += [(name, rows * tiles, structure(p)) for p, name in enumerate(names)]
    launch(source_of(a.dtype, descending), THREADS, *runs)
    return out, places
