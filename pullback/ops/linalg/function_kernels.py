"""Array kernels of functions of matrices and vectors: determinants, the exponential, norms, the cross product.

In: the array library and checked arrays; determinants come from packed LU factors, so that those can be kept.
Out: new arrays; norms of complex arrays are real.
Always: sums of half-precision numbers are formed in float32 and rounded once.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import inf
from typing import Any

from ...core.blas import scipy_linalg
from ..elementwise.array_kernels import outgrown
from .factor_kernels import lu_factor_ex
from .lapack import is_complex, real_of

Array = Any


def determinant_sign(xp: Any, packed: Array, pivots: Array) -> Array:
    """The determinant of the permutation in the factors: -1 for an odd number of exchanges."""
    swaps = (pivots != xp.arange(1, pivots.shape[-1] + 1)).sum(-1)
    return xp.where(swaps % 2, -1, 1).astype(packed.dtype)


def diagonal_of(xp: Any, a: Array) -> Array:
    return xp.diagonal(a, axis1=-2, axis2=-1)


def det(xp: Any, a: Array) -> tuple[Array, Array, Array]:
    """The determinant, the packed LU factors and the pivots."""
    packed, pivots, _ = lu_factor_ex(xp, a)
    return diagonal_of(xp, packed).prod(-1) * determinant_sign(xp, packed, pivots), packed, pivots


def slogdet(xp: Any, a: Array) -> tuple[Array, Array, Array, Array]:
    """The sign (a unit complex number, or zero) and log absolute value of the determinant, the factors, the pivots."""
    packed, pivots, _ = lu_factor_ex(xp, a)
    diagonal = diagonal_of(xp, packed)
    size = xp.abs(diagonal)
    with xp.errstate(all="ignore"):
        unit = xp.where(size == 0, 0, diagonal / xp.where(size == 0, 1, size)).astype(a.dtype)
        sign = unit.prod(-1) * determinant_sign(xp, packed, pivots)
        return sign, xp.log(size).sum(-1), packed, pivots


def matrix_exp(xp: Any, a: Array) -> Array:
    """The exponential of every matrix, worked out in double precision: it loses many digits on the way."""
    if not a.size:
        return xp.zeros(a.shape, a.dtype)
    if xp.__name__ == "numpy":
        expm = scipy_linalg().expm
    else:
        from cupyx.scipy.linalg import expm as expm_of_one

        def expm(matrices):
            each = [expm_of_one(m) for m in matrices.reshape(-1, *a.shape[-2:])]
            return xp.stack(each).reshape(a.shape)

    wide = a.astype(xp.complex128 if is_complex(a) else xp.float64, copy=False)
    return xp.ascontiguousarray(expm(wide)).astype(a.dtype, copy=False)


def vector_norm(xp: Any, a: Array, order: float, dim: Sequence[int] | None, keepdim: bool) -> Array:
    """The `order`-norm over `dim` (all dims for None); an empty `dim` leaves absolute values."""
    axes = tuple(range(a.ndim)) if dim is None or not a.ndim else tuple(dim)
    narrow = a.dtype.itemsize == 2 and not is_complex(a)
    out_dtype = a.dtype if narrow else real_of(a)
    size = xp.abs(a.astype(xp.float32) if narrow else a)
    with xp.errstate(all="ignore"):
        return xp.asarray(norm_of_sizes(xp, size, order, axes, keepdim)).astype(out_dtype, copy=False)


def norm_of_sizes(xp: Any, size: Array, order: float, axes: tuple[int, ...], keepdim: bool) -> Array:
    """The norm from absolute values."""
    how = {"axis": axes, "keepdims": keepdim}
    if order == 2:
        squares = xp.asarray((size * size).sum(**how))
        if outgrown(xp, squares):
            squares = xp.square(size, dtype=xp.float64).sum(**how)
        return xp.sqrt(squares)
    if order == 1:
        return size.sum(**how)
    if order == 0:
        return (size != 0).sum(**how)
    if order in (inf, -inf):
        return (size.max if order > 0 else size.min)(**how)
    return (size**order).sum(**how) ** (1.0 / order)


def cross(xp: Any, a: Array, b: Array, dim: int) -> Array:
    """The vector product along `dim`, of length three; the shapes broadcast."""
    a, b = xp.moveaxis(a, dim, 0), xp.moveaxis(b, dim, 0)
    out = xp.stack([a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]])
    return xp.ascontiguousarray(xp.moveaxis(out, 0, dim))


def trace(xp: Any, a: Array) -> Array:
    """The sum of a matrix's diagonal; integers add up in int64."""
    diagonal = diagonal_of(xp, a)
    if a.dtype.kind in "biu":
        return diagonal.sum(dtype=xp.int64)
    narrow = a.dtype.itemsize == 2
    return (diagonal.astype(xp.float32) if narrow else diagonal).sum().astype(a.dtype)
