"""Kernels in CUDA C for rows of device arrays: softmax and layer norm, forward and backward.

Functions take row-major float32 or float64 arrays of CuPy's and give new ones, or None where the kernels do not apply:
the caller then computes with the array library. One block of threads works on one row; sums are made in a tree, so their
error grows with the logarithm of the length. The source is compiled at first use, once for each dtype.
"""

from __future__ import annotations

from functools import cache

import numpy as np

from .arrays import library_of

_NAMES = {np.dtype(np.float32): "float", np.dtype(np.float64): "double"}
_CHUNK = 128  # rows that one thread adds up for the gradients of a layer norm's weight

SOURCE = r"""
#define WARP 32
__device__ T greater(T a, T b) { return a != a ? a : b != b ? b : a > b ? a : b; }
template <bool LARGEST> __device__ T joined(T a, T b) { return LARGEST ? greater(a, b) : a + b; }

template <bool LARGEST> __device__ T over_block(T value) {
    __shared__ T partial[WARP];
    int lane = threadIdx.x % WARP, warp = threadIdx.x / WARP;
    for (int step = WARP / 2; step; step /= 2) value = joined<LARGEST>(value, __shfl_xor_sync(~0u, value, step));
    __syncthreads();
    if (!lane) partial[warp] = value;
    __syncthreads();
    value = partial[lane < blockDim.x / WARP ? lane : 0];
    if (!LARGEST && lane >= blockDim.x / WARP) value = 0;
    for (int step = WARP / 2; step; step /= 2) value = joined<LARGEST>(value, __shfl_xor_sync(~0u, value, step));
    return value;
}

extern "C" __global__ void softmax(const T* x, T* out, long long n, int logarithm) {
    x += blockIdx.x * n; out += blockIdx.x * n;
    T top = x[0], total = 0;
    for (long long i = threadIdx.x; i < n; i += blockDim.x) top = greater(top, x[i]);
    top = over_block<true>(top);
    for (long long i = threadIdx.x; i < n; i += blockDim.x) total += exp(x[i] - top);
    total = over_block<false>(total);
    T shift = logarithm ? log(total) : 1 / total;
    for (long long i = threadIdx.x; i < n; i += blockDim.x)
        out[i] = logarithm ? x[i] - top - shift : exp(x[i] - top) / total;
}

extern "C" __global__ void softmax_backward(const T* g, const T* out, T* made, long long n, int logarithm) {
    g += blockIdx.x * n; out += blockIdx.x * n; made += blockIdx.x * n;
    T total = 0;
    for (long long i = threadIdx.x; i < n; i += blockDim.x) total += logarithm ? g[i] : g[i] * out[i];
    total = over_block<false>(total);
    for (long long i = threadIdx.x; i < n; i += blockDim.x)
        made[i] = logarithm ? g[i] - exp(out[i]) * total : out[i] * (g[i] - total);
}

extern "C" __global__ void layer_norm(const T* x, T* out, const T* weight, const T* bias, T* means, T* rstds, long long n, T eps) {
    x += blockIdx.x * n; out += blockIdx.x * n;
    T mean = 0, variance = 0;
    for (long long i = threadIdx.x; i < n; i += blockDim.x) mean += x[i];
    mean = over_block<false>(mean) / n;
    for (long long i = threadIdx.x; i < n; i += blockDim.x) variance += (x[i] - mean) * (x[i] - mean);
    T rstd = 1 / sqrt(over_block<false>(variance) / n + eps);
    for (long long i = threadIdx.x; i < n; i += blockDim.x) {
        T value = (x[i] - mean) * rstd;
        if (weight) value *= weight[i];
        if (bias) value += bias[i];
        out[i] = value;
    }
    if (!threadIdx.x) { means[blockIdx.x] = mean; rstds[blockIdx.x] = rstd; }
}

extern "C" __global__ void layer_norm_backward(
        const T* g, const T* x, const T* weight, const T* means, const T* rstds, T* made, long long n) {
    g += blockIdx.x * n; x += blockIdx.x * n; made += blockIdx.x * n;
    T mean = means[blockIdx.x], rstd = rstds[blockIdx.x], total = 0, along = 0;
    for (long long i = threadIdx.x; i < n; i += blockDim.x) {
        T part = weight ? g[i] * weight[i] : g[i];
        total += part; along += part * (x[i] - mean) * rstd;
    }
    total = over_block<false>(total) / n; along = over_block<false>(along) / n;
    for (long long i = threadIdx.x; i < n; i += blockDim.x) {
        T part = weight ? g[i] * weight[i] : g[i];
        made[i] = rstd * (part - total - (x[i] - mean) * rstd * along);
    }
}

extern "C" __global__ void layer_norm_columns(
        const T* g, const T* x, const T* means, const T* rstds, T* of_weight, T* of_bias, long long rows, long long n) {
    long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x, first = blockIdx.y * (long long)CHUNK;
    if (i >= n) return;
    T along = 0, total = 0;
    for (long long r = first; r < first + CHUNK && r < rows; r++) {
        T part = g[r * n + i];
        total += part; along += part * (x[r * n + i] - means[r]) * rstds[r];
    }
    of_weight[blockIdx.y * n + i] = along; of_bias[blockIdx.y * n + i] = total;
}
"""


@cache
def _kernel(name: str, dtype: np.dtype):
    import cupy

    source = SOURCE.replace("CHUNK", str(_CHUNK))
    return cupy.RawModule(code=f"typedef {_NAMES[dtype]} T;\n{source}").get_function(name)


def applies(*arrays) -> bool:
    """Whether the kernels take arrays as they are, all of one dtype."""
    first = arrays[0].dtype
    return first in _NAMES and all(a.dtype == first and a.flags.c_contiguous and a.size for a in arrays)


def _launch(name: str, rows: int, n: int, dtype: np.dtype, *args) -> None:
    threads = min(1024, max(32, 1 << max(n // 4 - 1, 1).bit_length()))
    _kernel(name, dtype)((rows,), (threads,), args)


def softmax(a, axis: int, logarithm: bool = False):
    """softmax, or its logarithm, along the last axis."""
    if axis != a.ndim - 1 or not applies(a):
        return None
    n = a.shape[-1]
    out = library_of(a).empty(a.shape, a.dtype)
    _launch("softmax", a.size // n, n, a.dtype, a, out, np.int64(n), np.int32(logarithm))
    return out


def softmax_backward(g, out, axis: int, logarithm: bool = False):
    """The gradient of softmax, or of its logarithm, from its result; along the last axis."""
    if axis != out.ndim - 1 or not applies(out, g):
        return None
    n = out.shape[-1]
    result = library_of(out).empty(out.shape, out.dtype)
    _launch("softmax_backward", out.size // n, n, out.dtype, g, out, result, np.int64(n), np.int32(logarithm))
    return result


def layer_norm(x, n: int, weight, bias, eps: float):
    """(standardized rows of length n, scaled and shifted; their means; their inverse deviations), flat statistics."""
    if not applies(*[a for a in (x, weight, bias) if a is not None]):
        return None
    xp, rows = library_of(x), x.size // n
    out, mean, rstd = xp.empty(x.shape, x.dtype), xp.empty(rows, x.dtype), xp.empty(rows, x.dtype)
    given = [np.uintp(0) if p is None else p for p in (weight, bias)]
    _launch("layer_norm", rows, n, x.dtype, x, out, *given, mean, rstd, np.int64(n), x.dtype.type(eps))
    return out, mean, rstd


def layer_norm_backward(g, x, n: int, mean, rstd, weight, mask: tuple):
    """Gradients of rows of length n, of the weight and of the bias (flat), where `mask` wants them."""
    if not applies(*[a for a in (x, g, mean, rstd, weight) if a is not None]):
        return None
    xp, rows = library_of(x), x.size // n
    of_x = of_w = of_b = None
    if mask[0]:
        of_x = xp.empty(x.shape, x.dtype)
        scale = np.uintp(0) if weight is None else weight
        _launch("layer_norm_backward", rows, n, x.dtype, g, x, scale, mean, rstd, of_x, np.int64(n))
    if mask[1] or mask[2]:
        chunks = -(-rows // _CHUNK)
        parts = [xp.empty((chunks, n), x.dtype) for _ in range(2)]
        kernel, grid = _kernel("layer_norm_columns", x.dtype), (-(-n // 64), chunks)
        kernel(grid, (64,), (g, x, mean, rstd, *parts, np.int64(rows), np.int64(n)))
        of_w, of_b = (p.sum(axis=0) for p in parts)
    return of_x, of_w if mask[1] else None, of_b if mask[2] else None
