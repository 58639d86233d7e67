"""Adam's update of many parameters as one kernel of a CUDA device.

In: arrays of CuPy's, of one floating dtype. The addresses travel with the launch, so that nothing is copied to the device first; a
launch takes as many parameters as its arguments have room for.
"""

from __future__ import annotations

import numpy as np

from .cuda import machine

NUMBERS = ("decay", "shrink", "fresh", "keep", "news", "scale", "eps", "rate")
MANY = 90  # parameters of one launch: its arguments are at most 4 KiB
THREADS, NEIGHBOURS, BLOCKS = (
    256,
    4,
    512,
)  # of a block; elements that a thread reads at once; blocks of one parameter at most

SOURCE = r"""
struct Arguments {
    T *p[MANY], *mean[MANY], *square[MANY]; const T *g[MANY]; long long n[MANY], blocks;
    T decay, shrink, fresh, keep, news, scale, eps, rate;
};
struct alignas(16) Pack { T at[NEIGHBOURS]; };

__device__ __forceinline__ void step(T &p, T &mean, T &square, T g, const Arguments &k) {
    const T slope = g + k.decay * p;
    mean += (slope - mean) * k.fresh;
    square = square * k.keep + slope * slope * k.news;
    p = p * k.shrink - k.rate * mean / (sqrt(square) / k.scale + k.eps);
}

extern "C" __global__ void __launch_bounds__(THREADS) adam(const Arguments t) {
    const long long which = blockIdx.x / t.blocks, me = blockIdx.x % t.blocks * THREADS + threadIdx.x, threads = t.blocks * THREADS;
    T *p = t.p[which], *mean = t.mean[which], *square = t.square[which];
    const T *g = t.g[which];
    const long long n = t.n[which];
    const bool packed = !(((unsigned long long)p | (unsigned long long)mean | (unsigned long long)square | (unsigned long long)g) % 16);
    const long long packs = packed ? n / NEIGHBOURS : 0;
    for (long long i = me; i < packs; i += threads) {
        Pack a = ((Pack *)p)[i], b = ((Pack *)mean)[i], c = ((Pack *)square)[i], d = ((const Pack *)g)[i];
#pragma unroll
        for (int v = 0; v < NEIGHBOURS; v++) step(a.at[v], b.at[v], c.at[v], d.at[v], t);
        ((Pack *)p)[i] = a; ((Pack *)mean)[i] = b; ((Pack *)square)[i] = c;
    }
    for (long long i = packs * NEIGHBOURS + me; i < n; i += threads) step(p[i], mean[i], square[i], g[i], t);
}
"""


def source(dtype: np.dtype) -> str:
    """The kernel's text for float32 or float64."""
    head = {"MANY": MANY, "THREADS": THREADS, "NEIGHBOURS": NEIGHBOURS}
    kind = "float" if dtype.itemsize == 4 else "double"
    return f"typedef {kind} T;\n" + "".join(f"#define {k} {v}\n" for k, v in head.items()) + SOURCE


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
    first = parameters[0][0]
    on = machine(first.device.id)
    values = np.array([numbers[n] for n in NUMBERS], first.dtype)
    with on.cupy.cuda.Device(on.index):
        function = on.kernel(source(first.dtype), "adam")
        for start in range(0, len(parameters), MANY):
            part = parameters[start : start + MANY]
            blocks = blocks_of(max(p.size for p, *_ in part))
            on.start(function, blocks * len(part), THREADS, arguments_of(part, blocks, values))


def blocks_of(size: int) -> int:
    """Blocks of threads for a parameter."""
    return min(max(-(-size // (THREADS * NEIGHBOURS)), 1), BLOCKS)


def arguments_of(parameters: list[tuple], blocks: int, values: np.ndarray) -> bytes:
    """The kernel's argument: rows of addresses, the sizes, how many blocks each parameter has, the numbers."""
    table = np.zeros((5, MANY), np.int64)
    rows = [(p.data.ptr, mean.data.ptr, square.data.ptr, g.data.ptr, p.size) for p, mean, square, g in parameters]
    table[:, : len(rows)] = np.array(rows, np.int64).T
    return table.tobytes() + np.int64(blocks).tobytes() + values.tobytes()
