"""Many small copies on a CUDA device as one kernel: running statistics of a network, say, each of which would be a call of its own.

In: pairs of row-major arrays of CuPy's, of one dtype, shape and device each. The addresses travel with the launch.
"""

from __future__ import annotations

from functools import cache

import numpy as np

MOST = 160  # copies of one launch: its arguments are at most 4 KiB
SMALL = 1 << 16  # bytes of a copy that one block makes
THREADS = 256

SOURCE = r"""
struct Copies { char *to[MOST]; const char *from[MOST]; long long bytes[MOST]; };
extern "C" __global__ void copies(const Copies all) {
    char *to = all.to[blockIdx.x];
    const char *from = all.from[blockIdx.x];
    const long long n = all.bytes[blockIdx.x];
    if (((unsigned long long)to | (unsigned long long)from | n) % 8 == 0)
        for (long long k = threadIdx.x; k < n / 8; k += blockDim.x) ((long long *)to)[k] = ((const long long *)from)[k];
    else
        for (long long k = threadIdx.x; k < n; k += blockDim.x) to[k] = from[k];
}
"""


def copy_together(pairs: list[tuple]) -> list[tuple]:
    """Make the small copies; give those that are left."""
    where = pairs[0][0].device
    small = [(out, value) for out, value in pairs if out.nbytes <= SMALL and out.device == where]
    for start in range(0, len(small), MOST):
        part = small[start : start + MOST]
        with where:
            _kernel()((len(part),), (THREADS,), (table_of(part),))
    return [(out, value) for out, value in pairs if out.nbytes > SMALL or out.device != where]


def table_of(pairs: list[tuple]) -> np.ndarray:
    """The kernel's argument, which is passed by value: rows of addresses to write, addresses to read, and numbers of bytes."""
    table = np.zeros((3, MOST), np.int64)
    rows = [(out.data.ptr, value.data.ptr, out.nbytes) for out, value in pairs]
    table[:, : len(rows)] = np.array(rows, np.int64).T
    return table.reshape(-1).view(np.dtype((np.void, table.nbytes)))


@cache
def _kernel():
    import cupy

    return cupy.RawKernel(SOURCE.replace("MOST", str(MOST)), "copies")
