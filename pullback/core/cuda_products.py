"""Products of matrices of float16 and bfloat16 on a CUDA device, summed and returned in float32.

CuPy rounds such products to their operands' dtype; with float32 results whatever is added afterwards is rounded once.
"""

from __future__ import annotations

import numpy as np

_KINDS = {"float16": 2, "bfloat16": 14}  # CUDA_R_16F, CUDA_R_16BF
_FLOAT32, _SUMS_IN_FLOAT32, _ANY_ALGORITHM = 0, 68, -1  # CUDA_R_32F, CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT
_ONE, _ZERO = np.ones(1, np.float32), np.zeros(1, np.float32)


def wide_product(a, b):
    """`a @ b` of two matrices of one narrow dtype, in float32; None where cuBLAS does not take them."""
    kind = _KINDS.get(a.dtype.name)
    if kind is None or a.dtype != b.dtype or a.ndim != 2 or b.ndim != 2 or not a.size or not b.size:
        return None
    import cupy
    from cupy_backends.cuda.libs import cublas

    (m, k), n = a.shape, b.shape[1]
    out = cupy.empty((m, n), np.float32)
    (a, flip_a, lead_a), (b, flip_b, lead_b) = _layout(a), _layout(b)
    handle = cupy.cuda.device.get_cublas_handle()
    mode = cublas.getPointerMode(handle)
    cublas.setPointerMode(handle, cublas.CUBLAS_POINTER_MODE_HOST)
    try:  # cuBLAS counts by columns: it is given the transposed product, out.T = b.T @ a.T
        cublas.gemmEx(
            handle, flip_b, flip_a, n, m, k, _ONE.ctypes.data, b.data.ptr, kind, lead_b, a.data.ptr, kind, lead_a,
            _ZERO.ctypes.data, out.data.ptr, _FLOAT32, n, _SUMS_IN_FLOAT32, _ANY_ALGORITHM,
        )  # fmt: skip
    finally:
        cublas.setPointerMode(handle, mode)
    return out


def _layout(x) -> tuple:
    """(matrix, whether its columns stand together rather than its rows, how far apart they stand); copied if neither does."""
    size, (down, across) = x.itemsize, x.strides
    height, width = x.shape
    if across == size and down >= width * size or height == 1 and across == size:
        return x, 0, max(down // size, width)
    if down == size and across >= height * size:
        return x, 1, across // size
    return x.copy(order="C"), 0, width
