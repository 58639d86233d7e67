"""Adam's update of many parameters as one kernel of a CUDA device.

In: arrays of CuPy's, of one floating dtype. The addresses travel with the launch, so that nothing is copied to the
device first; a launch takes as many parameters as its arguments have room for.
"""

from __future__ import annotations

import ctypes
from functools import cache
from typing import Any

import numpy as np

NUMBERS = ("decay", "shrink", "fresh", "keep", "news", "scale", "eps", "rate")
MANY = 90  # parameters of one launch: its arguments are at most 4 KiB
THREADS, NEIGHBOURS, BLOCKS = (
    256,
    4,
    512,
)  # of a block; elements that a thread reads at once; blocks of one parameter at most

SOURCE = r"""
struct Table { T *p[MANY], *mean[MANY], *square[MANY]; const T *g[MANY]; long long n[MANY]; };
struct Numbers { T decay, shrink, fresh, keep, news, scale, eps, rate; };
struct alignas(NEIGHBOURS * sizeof(T) > 16 ? 16 : NEIGHBOURS * sizeof(T)) Pack { T at[NEIGHBOURS]; };

__device__ __forceinline__ void step(T &p, T &mean, T &square, T g, const Numbers &k) {
    const T slope = g + k.decay * p;
    mean += (slope - mean) * k.fresh;
    square = square * k.keep + slope * slope * k.news;
    p = p * k.shrink - k.rate * mean / (sqrt(square) / k.scale + k.eps);
}

extern "C" __global__ void __launch_bounds__(THREADS) adam(const Table t, const Numbers k) {
    T *p = t.p[blockIdx.y], *mean = t.mean[blockIdx.y], *square = t.square[blockIdx.y];
    const T *g = t.g[blockIdx.y];
    const long long n = t.n[blockIdx.y], threads = (long long)gridDim.x * THREADS, me = blockIdx.x * (long long)THREADS + threadIdx.x;
    const bool packed = !(((unsigned long long)p | (unsigned long long)mean | (unsigned long long)square | (unsigned long long)g) % 16);
    const long long packs = packed ? n / NEIGHBOURS : 0;
    for (long long i = me; i < packs; i += threads) {
        Pack a = ((Pack *)p)[i], b = ((Pack *)mean)[i], c = ((Pack *)square)[i], d = ((const Pack *)g)[i];
#pragma unroll
        for (int v = 0; v < NEIGHBOURS; v++) step(a.at[v], b.at[v], c.at[v], d.at[v], k);
        ((Pack *)p)[i] = a; ((Pack *)mean)[i] = b; ((Pack *)square)[i] = c;
    }
    for (long long i = packs * NEIGHBOURS + me; i < n; i += threads) step(p[i], mean[i], square[i], g[i], k);
}
"""


def source(dtype: np.dtype) -> str:
    """The kernel's text for float32 or float64."""
    head = {"MANY": MANY, "THREADS": THREADS, "NEIGHBOURS": NEIGHBOURS}
    kind = "float" if dtype.itemsize == 4 else "double"
    return f"typedef {kind} T;\n" + "".join(f"#define {k} {v}\n" for k, v in head.items()) + SOURCE


@cache
def _kernel(dtype: np.dtype, device: int) -> Any:
    import cupy

    with cupy.cuda.Device(device):
        return cupy.RawModule(code=source(dtype), options=("--std=c++14",)).get_function("adam")


@cache
def _driver() -> Any:
    return ctypes.CDLL("libcuda.so.1").cuLaunchKernel


def applies(p, mean, square, g) -> bool:
    """Whether the kernel takes the arrays of a parameter as they are: of one dtype and order, without gaps."""
    arrays = (p, mean, square, g)
    if any(a.dtype != p.dtype or a.shape != p.shape for a in arrays):
        return False
    return all(a.flags.c_contiguous for a in arrays) or all(a.strides == p.strides for a in arrays) and _dense(p)


def _dense(a) -> bool:
    """Whether an array fills the memory that it reaches over."""
    expected = a.itemsize
    for stride, n in sorted((s, n) for s, n in zip(a.strides, a.shape, strict=True) if n != 1):
        if stride != expected:
            return False
        expected *= n
    return True


def adam(parameters: list[tuple], **numbers: float) -> None:
    """Write Adam's next `p`, `mean` and `square` of each (p, mean, square, g), for which `applies` holds; all on one device.

    `decay` times `p` is added to the gradient, `shrink` is a factor of `p`; `fresh`, `keep` and `news` weigh the new gradient,
    the old square and the new one; `scale` and `eps` go to the root, `rate` is the length of the step.
    """
    import cupy

    first = parameters[0][0]
    index = first.device.id
    function = _kernel(first.dtype, index)
    values = np.array([numbers[n] for n in NUMBERS], first.dtype)
    with cupy.cuda.Device(index):
        stream = cupy.cuda.get_current_stream().ptr
        for start in range(0, len(parameters), MANY):
            part = parameters[start : start + MANY]
            _launch(function, table_of(part), values, len(part), stream)


def table_of(parameters: list[tuple]) -> np.ndarray:
    """The kernel's first argument: rows of addresses, and the sizes."""
    table = np.zeros((5, MANY), np.int64)
    rows = [(p.data.ptr, mean.data.ptr, square.data.ptr, g.data.ptr, p.size) for p, mean, square, g in parameters]
    table[:, : len(rows)] = np.array(rows, np.int64).T
    return table


def _launch(function: Any, table: np.ndarray, values: np.ndarray, count: int, stream: int) -> None:
    largest = int(table[4].max())
    blocks = min(max(-(-largest // (THREADS * NEIGHBOURS)), 1), BLOCKS)
    arguments = (ctypes.c_void_p * 2)(table.ctypes.data, values.ctypes.data)
    pointer = ctypes.c_void_p
    wrong = _driver()(pointer(function.ptr), blocks, count, 1, THREADS, 1, 1, 0, pointer(stream), arguments, None)
    if wrong:
        raise RuntimeError(f"CUDA error: the launch of an optimizer's update gave {wrong}")
