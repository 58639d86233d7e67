"""What every window kernel shares: compute precision, bordered copies, window views, output sizes.

Comes in: an array (N, C, spatial...) and one int per spatial axis for each attribute. Goes out: views or copies whose
axes are documented at each function. Always holds: no function here changes its argument.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product
from typing import Any

Array = Any
Ints = Sequence[int]


def widen(array: Array) -> Array:
    """The array in the precision it is computed in: float32 for the two half formats, else unchanged."""
    dtype = array.dtype
    half = dtype.itemsize == 2 and dtype.kind in "fV"  # float16, and bfloat16, which array libraries call void
    return array.astype("float32") if half else array


def narrow_to(array: Array, dtype: Any) -> Array:
    """The array in `dtype`, without a copy when it is already there."""
    return array if array.dtype == dtype else array.astype(dtype)


def conv_size(size: int, kernel: int, stride: int, padding: int, dilation: int) -> int:
    """Number of window positions along one axis."""
    return (size + 2 * padding - dilation * (kernel - 1) - 1) // stride + 1


def conv_transpose_size(size: int, kernel: int, stride: int, padding: int, dilation: int, extra: int) -> int:
    """Length along one axis of the array whose convolution has `size` positions."""
    return (size - 1) * stride - 2 * padding + dilation * (kernel - 1) + extra + 1


def pool_size(size: int, kernel: int, stride: int, padding: int, dilation: int, ceil_mode: bool) -> int:
    """Number of pooling windows along one axis; with `ceil_mode` a last window must still start inside the input."""
    reach = size + 2 * padding - dilation * (kernel - 1) - 1
    out = (reach + (stride - 1 if ceil_mode else 0)) // stride + 1
    if ceil_mode and (out - 1) * stride >= size + padding:
        out -= 1
    return out


def bordered(xp: Any, x: Array, low: Ints, high: Ints, fill: Any = 0) -> Array:
    """Copy of `x` with its spatial axes grown by `low` and `high` entries of `fill`; negative amounts crop.

    With nothing to add or remove the answer is `x` itself, not a copy.
    """
    if not any(low) and not any(high):
        return x
    lead = x.ndim - len(low)
    spatial = [n + a + b for n, a, b in zip(x.shape[lead:], low, high)]
    shape = x.shape[:lead] + tuple(spatial)
    out = xp.zeros(shape, x.dtype) if fill == 0 else xp.full(shape, fill, x.dtype)
    source, target = [slice(None)] * lead, [slice(None)] * lead
    for n, a, b in zip(x.shape[lead:], low, high):
        source.append(slice(max(-a, 0), max(n + min(b, 0), 0)))
        target.append(slice(max(a, 0), max(a, 0) + max(n + min(a, 0) + min(b, 0), 0)))
    out[tuple(target)] = x[tuple(source)]
    return out


def windows(xp: Any, x: Array, kernel: Ints, stride: Ints, dilation: Ints, out: Ints) -> Array:
    """Read-only use: view (N, C, kernel..., out...) of every window of an already bordered `x`. No copy."""
    spatial = x.strides[2:]
    inner, outer = (s * d for s, d in zip(spatial, dilation)), (s * t for s, t in zip(spatial, stride))
    return xp.lib.stride_tricks.as_strided(x, (*x.shape[:2], *kernel, *out), (*x.strides[:2], *inner, *outer))


def positions(kernel: Ints, stride: Ints, dilation: Ints, out: Ints) -> Iterator[tuple[tuple[int, ...], tuple]]:
    """For each kernel position: its index, and the index expression that picks its inputs from a bordered array."""
    for at in product(*map(range, kernel)):
        yield at, (..., *(slice(i * d, i * d + o * s, s) for i, s, d, o in zip(at, stride, dilation, out)))
