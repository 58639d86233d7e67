"""Products of matrices on the CPU.

`multiply(a, b, bias)` is `a @ b` of arrays as the array library multiplies them, plus a row, or whatever else may be added to the result in its
place, as a new array. Matrices of float32 and float64, and batches of them, are multiplied by kernels of our own where these are built and quicker
than BLAS (`core/_products.c` says when); else BLAS does it, cut among threads where that pays (`network.product`).
"""

from __future__ import annotations

import numpy as np

from ..core.extension import extension
from .network import SHARED, product

_products = extension("_products")
available = _products is not None


def ready(xp, a):
    """An array whose matrices BLAS can read in place; others are copied, since the loop without BLAS is far slower."""
    if a.ndim < 2:
        return a
    size, (rows, columns) = a.itemsize, a.strides[-2:]
    height, width = a.shape[-2:]
    by_rows = columns == size and (rows >= width * size or height == 1)
    by_columns = rows == size and (columns >= height * size or width == 1)
    return a if by_rows or by_columns else xp.ascontiguousarray(a)


def _by_library(a, b, bias=None):
    if a.ndim > 1 and b.ndim > 1 and a.size * b.shape[-1] >= SHARED and (bias is None or bias.ndim == 1):
        return product(ready(np, a), ready(np, b), bias)
    result = a.dot(b) if a.ndim == b.ndim == 2 else np.matmul(ready(np, a), ready(np, b))
    return result if bias is None else np.add(result, bias, result)


if _products is None:
    multiply = _by_library
else:
    _products.use_general(_by_library)
    multiply = _products.multiply
