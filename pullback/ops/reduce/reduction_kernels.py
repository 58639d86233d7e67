"""Kernels of reductions: arrays in, arrays out, any set of axes.

Sums never run as one long chain of float32 additions: NumPy adds pairwise along the innermost axis only, so long outer
axes are first summed in blocks. Rows and columns of plain arrays go to the native kernels where those are built.
"""

from __future__ import annotations

from ...core import native

BLOCK = 64
SMALL = 2048  # elements below which NumPy is quicker than the way to the native kernels


def add_reduce(xp, a, axis: tuple, keepdims: bool):
    """The sum over some axes: by one kernel for every call, since another order of additions would show."""
    if (result := native.reduce(native.SUM, a, axis, keepdims)) is not None:
        return result
    while a.dtype.char in "fF" and (cut := _long_outer_axis(a, axis)) is not None:
        a = _block_sums(xp, a, cut)
    return xp.add.reduce(a, axis=axis, keepdims=keepdims)


def _long_outer_axis(a, axis: tuple) -> int | None:
    """A reduced axis that NumPy would add up one by one, if it is long."""
    inner = min(range(a.ndim), key=lambda d: abs(a.strides[d]) if a.shape[d] > 1 else 1 << 62) if a.ndim else None
    long = [d for d in axis if d != inner and a.shape[d] > 2 * BLOCK]
    return max(long, key=lambda d: a.shape[d]) if long else None


def _block_sums(xp, a, axis: int):
    """`a` with `axis` shortened: each element is the sum of a block of it."""
    n, before, after = a.shape[axis], a.shape[:axis], a.shape[axis + 1 :]
    whole = n - n % BLOCK
    lead = (slice(None),) * axis
    sums = xp.add.reduce(a[(*lead, slice(0, whole))].reshape((*before, whole // BLOCK, BLOCK, *after)), axis=axis + 1)
    if whole == n:
        return sums
    return xp.concatenate((sums, xp.add.reduce(a[(*lead, slice(whole, n))], axis=axis, keepdims=True)), axis=axis)


def multiply_reduce(xp, a, axis: tuple, keepdims: bool):
    """The product over some axes. Long ones of complex numbers are multiplied by halves, which the array library vectorises."""
    if a.dtype.kind == "c" and a.ndim and len(axis) in (1, a.ndim) and a.size > SMALL:
        rows = a.reshape(-1) if len(axis) == a.ndim else xp.moveaxis(a, axis[0], -1)
        while (n := rows.shape[-1]) > BLOCK:
            half = n // 2
            product = rows[..., :half] * rows[..., half : 2 * half]
            if n % 2:
                product[..., 0] *= rows[..., -1]
            rows = product
        product = xp.multiply.reduce(rows, axis=-1)
        if len(axis) == a.ndim:
            return product.reshape((1,) * a.ndim) if keepdims else product
        return xp.expand_dims(product, axis[0]) if keepdims else product
    return xp.multiply.reduce(a, axis=axis, keepdims=keepdims)


def max_reduce(xp, a, axis: tuple, keepdims: bool):
    """The largest element; NaN if there is one."""
    if a.size > SMALL and (result := native.reduce(native.MAX, a, axis, keepdims)) is not None:
        return result
    return xp.maximum.reduce(a, axis=axis, keepdims=keepdims)


def min_reduce(xp, a, axis: tuple, keepdims: bool):
    """The smallest element; NaN if there is one."""
    if a.size > SMALL and (result := native.reduce(native.MIN, a, axis, keepdims)) is not None:
        return result
    return xp.minimum.reduce(a, axis=axis, keepdims=keepdims)


def all_reduce(xp, a, axis: tuple, keepdims: bool):
    """Whether all elements are non-zero; over no axis, each for itself."""
    truth = a if a.dtype == bool else a != 0
    return xp.logical_and.reduce(truth, axis=axis, keepdims=keepdims) if axis else truth.copy()


def any_reduce(xp, a, axis: tuple, keepdims: bool):
    """Whether any element is non-zero; over no axis, each for itself."""
    truth = a if a.dtype == bool else a != 0
    return xp.logical_or.reduce(truth, axis=axis, keepdims=keepdims) if axis else truth.copy()


def argmax(xp, a, axis: tuple, keepdims: bool):
    """The first place of the largest element (NaN counts as largest): along one axis, or in the flattened array."""
    return _place(a, xp.argmax, axis, keepdims)


def argmin(xp, a, axis: tuple, keepdims: bool):
    """The first place of the smallest element (NaN counts as smallest)."""
    return _place(a, xp.argmin, axis, keepdims)


def _place(a, find, axis: tuple, keepdims: bool):
    return find(a, axis=axis[0] if len(axis) == 1 else None, keepdims=keepdims)


def max_with_index(xp, a, axis: int):
    """Largest elements along an axis and their first places, the axis kept."""
    at = xp.argmax(a, axis=axis, keepdims=True)
    return xp.take_along_axis(a, at, axis), at


def min_with_index(xp, a, axis: int):
    """Smallest elements along an axis and their first places, the axis kept."""
    at = xp.argmin(a, axis=axis, keepdims=True)
    return xp.take_along_axis(a, at, axis), at


# ---- hashes
def xor_reduce(xp, a, axis: tuple, keepdims: bool):
    """The exclusive or of the elements' bits: of floats as float64, of integers as int64."""
    wide = a.astype(xp.float64 if a.dtype.kind not in "iub" else xp.int64)
    return xp.bitwise_xor.reduce(wide.view(xp.uint64), axis=axis, keepdims=keepdims)
