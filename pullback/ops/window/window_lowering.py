"""What loops of convolutions and pools share: borders, windows as strided views, sums of overlapping windows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ...core import dtype as dtypes

if TYPE_CHECKING:
    from ..lowering.builder import Builder
    from ..lowering.loops import Value


def spread(values, n: int) -> list[int]:
    """One number per dimension."""
    values = list(values)
    return values * n if len(values) == 1 else values


def inside(whole: Value, padding: Sequence[int], sizes: Sequence[int]) -> Value:
    """What is within a border of the last dimensions."""
    lead = len(whole.shape) - len(padding)
    for d, (p, n) in enumerate(zip(padding, sizes, strict=True)):
        whole = whole.narrow(lead + d, p, n)
    return whole


def bordered(b: Builder, x: Value, padding: Sequence[int]) -> Value:
    """Memory for a value with a border around its last dimensions."""
    lead = len(x.shape) - len(padding)
    return b.blank([*x.shape[:lead], *[s + 2 * p for s, p in zip(x.shape[lead:], padding, strict=True)]], x.dtype)


def padded(b: Builder, x: Value, padding: Sequence[int], value: float = 0.0) -> Value:
    """The last dimensions with a border."""
    if not any(padding):
        return x
    out = bordered(b, x, padding)
    b.fill(out, b.number(value, x.dtype))
    b.store(inside(out, padding, x.shape[len(x.shape) - len(padding) :]), x)
    return out


def windows(x: Value, size, stride, dilation, places) -> Value:
    """(..., kernel dims, places): the windows of the last dimensions, a view."""
    lead = len(x.shape) - len(size)
    inner = [d * s for d, s in zip(dilation, x.strides[lead:], strict=True)]
    outer = [t * s for t, s in zip(stride, x.strides[lead:], strict=True)]
    return x.window([*x.shape[:lead], *size, *places], [*x.strides[:lead], *inner, *outer])


def add_windows(b: Builder, whole: Value, each: Value, size, stride, dilation, places) -> None:
    """Set a value to zero and add to each window what belongs there."""
    b.fill(whole, b.number(0, whole.dtype))
    target = windows(whole, size, stride, dilation, places)
    nowhere = (b.number(0, dtypes.int64), 0, 1)  # windows overlap: added one after the other
    b.scatter(whole, target.shape, b.raw(each), target.strides, [nowhere])
