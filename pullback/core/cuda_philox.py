"""Philox's words on a CUDA device, and uniform and normal numbers and trials made of them: kernels in CUDA C.

A call is one launch: the numbers go with it as one structure (see `cuda_launch`), since most calls are small.
"""

from __future__ import annotations

import struct
from typing import Any

import numpy as np

from .cuda_launch import address, launch

PHILOX = r"""
template <typename T> struct draws {
    unsigned long long start; unsigned int k0, k1; const unsigned long long* origin; T* out; long long n; int how; T a, b;
    __device__ void move() { if (origin) { start += origin[0]; k0 = (unsigned int)origin[1]; k1 = (unsigned int)(origin[1] >> 32); } }
};

__device__ void philox(unsigned long long counter, unsigned int k0, unsigned int k1, unsigned int* words) {
    unsigned int c0 = (unsigned int)counter, c1 = (unsigned int)(counter >> 32), c2 = 0, c3 = 0;
    for (int round = 0; round < 10; round++) {
        unsigned int low = c0 * 0xD2511F53u, high = __umulhi(c0, 0xD2511F53u);
        unsigned int low2 = c2 * 0xCD9E8D57u, high2 = __umulhi(c2, 0xCD9E8D57u);
        c0 = high2 ^ c1 ^ k0; c1 = low2; c2 = high ^ c3 ^ k1; c3 = low;
        k0 += 0x9E3779B9u; k1 += 0xBB67AE85u;
    }
    words[0] = c0; words[1] = c1; words[2] = c2; words[3] = c3;
}

extern "C" __global__ void words(draws<unsigned int> d) {
    long long block = blockIdx.x * (long long)blockDim.x + threadIdx.x;
    if (4 * block >= d.n) return;
    unsigned int words[4];
    d.move();
    philox(d.start + block, d.k0, d.k1, words);
    for (int i = 0; i < 4 && 4 * block + i < d.n; i++) d.out[4 * block + i] = words[i];
}

enum { UNIFORM, NORMAL, TRIALS };  // in [a, b); of mean a and deviation b; b with probability a, else 0

extern "C" __global__ void floats(draws<float> d) {
    const int how = d.how;
    const float a = d.a, b = d.b;
    long long block = blockIdx.x * (long long)blockDim.x + threadIdx.x;
    if (4 * block >= d.n) return;
    unsigned int words[4];
    d.move();
    philox(d.start + block, d.k0, d.k1, words);
    float made[4];
    for (int i = 0; i < 4; i++) made[i] = (words[i] >> 8) * 5.9604645e-8f;
    for (int i = 0; i < 4; i += 2) {
        if (how != NORMAL) continue;
        float radius = sqrtf(-2 * logf(1 - made[i])), sine, cosine;
        sincospif(2 * made[i + 1], &sine, &cosine);
        made[i] = radius * cosine; made[i + 1] = radius * sine;
    }
    for (int i = 0; i < 4; i++) {
        if (how == TRIALS) { made[i] = made[i] < a ? b : 0; continue; }
        float value = how == NORMAL ? made[i] * b + a : made[i] * (b - a) + a;
        made[i] = how == UNIFORM && value == b ? a : value;
    }
    if (4 * block + 4 <= d.n) { ((float4*)d.out)[block] = make_float4(made[0], made[1], made[2], made[3]); return; }
    for (int i = 0; 4 * block + i < d.n; i++) d.out[4 * block + i] = made[i];
}

extern "C" __global__ void doubles(draws<double> d) {
    const int how = d.how;
    const double a = d.a, b = d.b;
    long long block = blockIdx.x * (long long)blockDim.x + threadIdx.x;
    if (2 * block >= d.n) return;
    unsigned int words[4];
    d.move();
    philox(d.start + block, d.k0, d.k1, words);
    double made[2];
    for (int i = 0; i < 2; i++)
        made[i] = ((((unsigned long long)words[2 * i]) << 32 | words[2 * i + 1]) >> 11) * 1.1102230246251565e-16;
    if (how == NORMAL) {
        double radius = sqrt(-2 * log(1 - made[0])), sine, cosine;
        sincospi(2 * made[1], &sine, &cosine);
        made[0] = radius * cosine; made[1] = radius * sine;
    }
    for (int i = 0; i < 2 && 2 * block + i < d.n; i++) {
        double value = how == NORMAL ? made[i] * b + a : made[i] * (b - a) + a;
        if (how == TRIALS) value = made[i] < a ? b : 0;
        d.out[2 * block + i] = how == UNIFORM && value == b ? a : value;
    }
}
"""

_THREADS = 256
# Of a dtype: the kernel, what packs its structure (a start, the halves of a seed, an origin, an address, a count; how to draw, and
# two numbers), how many numbers a thread makes.
_KERNELS = {
    np.dtype(np.uint32): ("words", struct.Struct("=QIIQQqiII4x").pack, 4),
    np.dtype(np.float32): ("floats", struct.Struct("=QIIQQqiff4x").pack, 4),
    np.dtype(np.float64): ("doubles", struct.Struct("=QIIQQqi4xdd").pack, 2),
}


def blocks_of(count: int, dtype: np.dtype | type) -> int:
    """How many blocks of four words `count` numbers take: one word each, or two for float64."""
    return -(-count // (2 if np.dtype(dtype) == np.float64 else 4))


def philox_numbers(
    seed: int, start: int, count: int, dtype: np.dtype | type, how: int = 0, a: Any = 0, b: Any = 0, origin=None, into=None
) -> Any:  # fmt: skip
    """`count` words (uint32) of a seed's stream from a block on; or floats: uniform (0, low, high), normal (1, mean, std),
    or one of two (2, probability, value), the other being 0.

    `into`: a row-major array of so many numbers of that dtype, which gets them, where it begins at a vector. `origin`: two words of 64 bits on the device, read when the kernel runs: a block to count from, and the seed.
    """
    dtype = np.dtype(dtype)
    out = into
    if out is None:
        import cupy

        out = cupy.ndarray(count, dtype)
    if not count:
        return out
    name, pack, numbers = _KERNELS[dtype]
    at = 0 if origin is None else address(origin)
    given = pack(start, seed & 0xFFFFFFFF, seed >> 32, at, address(out), count, how, a, b)
    launch(PHILOX, _THREADS, (name, -(-count // (numbers * _THREADS)), given))
    return out
