"""Products of matrices on a CUDA device, straight from cuBLAS.

In: arrays of CuPy's, of one floating dtype. Out: a new array of that dtype or, of float16 and bfloat16, of float32, so that what is
added afterwards is rounded once; all sums are in float32 or wider. None where one call does not do: CuPy then computes. Unlike
CuPy's own products these can be part of a CUDA graph.
"""

from __future__ import annotations

import ctypes
import math
from functools import cache
from typing import Any

import numpy as np

from .arrays import library_of
from .cupy_library import loaded_library
from .modes import process

_KINDS = {"float32": 0, "float64": 1, "float16": 2, "bfloat16": 14}  # as cudaDataType counts them
_SUMS, _SUMS_IN_TF32, _SUMS_IN_DOUBLE, _ANY_ALGORITHM = 68, 77, 70, -1
_ONE, _ZERO = {}, {}
for _kind in (np.float32, np.float64):
    _ONE[_kind], _ZERO[_kind] = np.ones(1, _kind), np.zeros(1, _kind)


def multiply(a, b, wide: bool = False):
    """`a @ b` of matrices or batches of them; None where one call of cuBLAS does not do. `wide`: narrow floats give float32."""
    kind = _KINDS.get(a.dtype.name)
    if kind is None or a.dtype != b.dtype or a.ndim < 2 or b.ndim < 2 or not a.size or not b.size:
        return None
    batch = _batch(a, b)
    if batch is None or a.shape[-1] != b.shape[-2]:
        return None
    count, step_a, step_b, shape = batch
    (m, k), n = a.shape[-2:], b.shape[-1]
    (flip_a, lead_a), (flip_b, lead_b) = _layout(a), _layout(b)
    if not lead_a or not lead_b or max(m, n, k, lead_a, lead_b) >= 1 << 31:
        return None
    result = np.dtype(np.float32) if wide and a.dtype.itemsize == 2 else a.dtype
    out = library_of(a).empty((*shape, m, n), result)
    double = kind == 1
    how = _SUMS_IN_DOUBLE if double else _SUMS_IN_TF32 if not kind and process.matmul_precision != "highest" else _SUMS
    numbers = np.float64 if double else np.float32
    # cuBLAS counts by columns: it is given the transposed product, out.T = b.T @ a.T
    wrong = gemm()(
        handle(), flip_b, flip_a, n, m, k, _ONE[numbers].ctypes.data, address(b), kind, lead_b, step_b, address(a), kind, lead_a,
        step_a, _ZERO[numbers].ctypes.data, address(out), _KINDS[result.name], n, m * n, count, how, _ANY_ALGORITHM,
    )  # fmt: skip
    return None if wrong else out


def _batch(a, b) -> tuple[int, int, int, tuple] | None:
    """(how many matrices, how far apart those of each operand are, the shape before them); None where that differs."""
    if a.ndim == b.ndim == 2:
        return 1, 0, 0, ()
    rank = max(a.ndim, b.ndim) - 2
    shape_a, shape_b = ((1,) * (rank + 2 - x.ndim) + x.shape[:-2] for x in (a, b))
    shape = tuple([max(i, j) if i and j else 0 for i, j in zip(shape_a, shape_b, strict=True)])
    if any(i not in (1, n) or j not in (1, n) for i, j, n in zip(shape_a, shape_b, shape, strict=True)):
        return None
    steps = [_step(x, shape, own) for x, own in ((a, shape_a), (b, shape_b))]
    return None if None in steps else (math.prod(shape), *steps, shape)  # type: ignore[return-value]


def _step(x, shape: tuple, own: tuple) -> int | None:
    """How far apart the matrices of a batch are, where that is the same everywhere; in elements."""
    if math.prod(own) == 1:
        return 0
    if own != shape:
        return None
    step = expected = None
    for n, stride in reversed([(n, s) for n, s in zip(x.shape[:-2], x.strides[:-2], strict=True) if n != 1]):
        if step is None:
            step = stride
        elif stride != expected:
            return None
        expected = stride * n
    return None if step is None or step < 0 else step // x.itemsize


def _layout(x) -> tuple[int, int]:
    """(whether a matrix's columns stand together rather than its rows, how far apart they stand); (0, 0) where neither does."""
    size, (down, across), (height, width) = x.itemsize, x.strides[-2:], x.shape[-2:]
    if (across == size or width == 1) and (down >= width * size or height == 1):
        return 0, max(down // size if height > 1 else 0, width)
    if (down == size or height == 1) and (across >= height * size or width == 1):
        return 1, max(across // size if width > 1 else 0, height)
    return 0, 0


def address(array) -> int:
    return array.data.ptr


def handle() -> int:
    """cuBLAS's handle of this thread and device, on the stream in use."""
    import cupy

    found = cupy.cuda.device.get_cublas_handle()
    _library().cublasSetStream_v2(ctypes.c_void_p(found), ctypes.c_void_p(cupy.cuda.get_current_stream().ptr))
    return found


@cache
def _library() -> Any:
    import cupy

    cupy.cuda.device.get_cublas_handle()  # loads cuBLAS
    return ctypes.CDLL(loaded_library("libcublas.so"))


@cache
def gemm() -> Any:
    """`cublasGemmStridedBatchedEx`."""
    function = _library().cublasGemmStridedBatchedEx
    function.argtypes = arguments()
    return function


def arguments() -> list:
    """What it takes."""
    p, i, q = ctypes.c_void_p, ctypes.c_int, ctypes.c_longlong
    return [p, i, i, i, i, i, p, p, i, i, q, p, i, i, q, p, p, i, i, q, i, i, i]
