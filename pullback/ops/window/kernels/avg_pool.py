"""Averages over windows, regular and adaptive, and their backwards.

Comes in: x (N, C, spatial...), or g shaped as the answer. Goes out: averages, or what meets x. Always holds: sums run
axis by axis, so that their cost grows with the sum of the kernel's sides and not with their product; and a backward
is the exact transpose of its forward.
"""

from __future__ import annotations

import functools
from math import prod
from typing import Any

import numpy

from ....core import spatial
from .axis_map import AxisMap, Tap, apply_all, selection, transposed
from .geometry import Array, Ints, bordered, narrow_to, pool_size, widen
from .max_pool import adaptive_bounds, adaptive_windows


def avg_pool(
    xp: Any,
    x: Array,
    kernel: Ints,
    stride: Ints,
    padding: Ints,
    ceil_mode: bool,
    count_include_pad: bool,
    divisor: int | None,
) -> Array:
    """Sum of each window divided by its count of entries, or by `divisor`."""
    size, dtype = x.shape[2:], x.dtype
    out = _out(size, kernel, stride, padding, ceil_mode)
    if xp is numpy and dtype.kind == "f":
        found = spatial.average(widen(x), _windows(size, kernel, stride, padding, out, count_include_pad), divisor)
        if found is not None:
            return narrow_to(found, dtype)
    high = [max(0, (o - 1) * s + k - p - n) for o, s, k, p, n in zip(out, stride, kernel, padding, size)]
    total = bordered(xp, widen(x), padding, high)
    for axis, (k, s, o) in enumerate(zip(kernel, stride, out), 2):
        parts = [total[(slice(None),) * axis + (slice(i, i + o * s, s),)] for i in range(k)]
        total = parts[0].copy()
        for part in parts[1:]:
            total += part
    count = divisor if divisor is not None else _counts(xp, size, kernel, stride, padding, out, count_include_pad)
    if dtype.kind in "iu":  # integers divide towards zero
        return xp.sign(total) * (xp.abs(total) // xp.asarray(count, dtype))
    total /= xp.asarray(count, total.dtype)
    return narrow_to(total, dtype)


def avg_pool_backward(
    xp: Any,
    g: Array,
    size: Ints,
    kernel: Ints,
    stride: Ints,
    padding: Ints,
    ceil_mode: bool,
    count_include_pad: bool,
    divisor: int | None,
) -> Array:
    """What meets x, of spatial `size`."""
    out, dtype = g.shape[2:], g.dtype
    if xp is numpy and dtype.kind == "f":
        found = spatial.spread(widen(g), size, _windows(size, kernel, stride, padding, out, count_include_pad), divisor)
        if found is not None:
            return narrow_to(found, dtype)
    count = divisor if divisor is not None else _counts(xp, size, kernel, stride, padding, out, count_include_pad)
    g = widen(g)
    total = g / xp.asarray(count, g.dtype)
    for axis, (k, s, o, n, p) in enumerate(zip(kernel, stride, out, size, padding), 2):
        reach = max((o - 1) * s + k, n + p)
        spread = xp.zeros(total.shape[:axis] + (reach,) + total.shape[axis + 1 :], total.dtype)
        for i in range(k):
            spread[(slice(None),) * axis + (slice(i, i + o * s, s),)] += total
        total = spread[(slice(None),) * axis + (slice(p, p + n),)]
    return narrow_to(xp.ascontiguousarray(total), dtype)


def adaptive_avg_pool(xp: Any, x: Array, out: Ints) -> Array:
    """Average of each of `out` windows per axis that together cover the axis."""
    dtype, size, total = x.dtype, x.shape[2:], widen(x)
    if xp is numpy and prod(out) and (found := spatial.average(total, adaptive_windows(size, out), None)) is not None:
        return narrow_to(found, dtype)
    for axis, (n, o) in enumerate(zip(size, out), 2):
        if o and n % o == 0:  # equal windows side by side
            total = total.reshape(total.shape[:axis] + (o, n // o) + total.shape[axis + 1 :]).sum(axis=axis + 1)
        else:
            total = _adaptive_map(xp, n, o).apply(xp, total, axis)
    return narrow_to(total / _adaptive_counts(xp, size, out, total.dtype), dtype)


def adaptive_avg_pool_backward(xp: Any, g: Array, size: Ints) -> Array:
    """What meets x, of spatial `size`."""
    dtype, out, wide = g.dtype, g.shape[2:], widen(g)
    if (
        xp is numpy
        and prod(out)
        and (found := spatial.spread(wide, size, adaptive_windows(size, out), None)) is not None
    ):
        return narrow_to(found, dtype)
    shares = wide / _adaptive_counts(xp, size, out, wide.dtype)
    maps = [_adaptive_map(xp, n, o) for n, o in zip(size, out)]
    return narrow_to(apply_all(xp, shares, transposed(xp, maps)), dtype)


def _out(size: Ints, kernel: Ints, stride: Ints, padding: Ints, ceil_mode: bool) -> tuple[int, ...]:
    return tuple(pool_size(n, k, s, p, 1, ceil_mode) for n, k, s, p in zip(size, kernel, stride, padding))


def _counts(
    xp: Any, size: Ints, kernel: Ints, stride: Ints, padding: Ints, out: Ints, count_include_pad: bool
) -> Array:
    """Entries in each window, shaped to divide by: padding counts if asked to, what lies beyond it never does."""
    total = xp.ones((), "int64")
    for n, k, s, p, o in zip(size, kernel, stride, padding, out):
        start = xp.arange(o) * s - p
        stop = xp.minimum(start + k, n + p)
        if not count_include_pad:
            start, stop = xp.maximum(start, 0), xp.minimum(stop, n)
        total = total[..., None] * (stop - start)
    return total


def _windows(
    size: Ints, kernel: Ints, stride: Ints, padding: Ints, out: Ints, count_include_pad: bool
) -> list[spatial.Axis]:
    """Where each window begins and ends inside the input, and how many entries it counts."""
    return [_windows_of(*axis, count_include_pad) for axis in zip(size, kernel, stride, padding, out)]


@functools.lru_cache(256)
def _windows_of(n: int, k: int, s: int, p: int, o: int, count_include_pad: bool) -> spatial.Axis:
    start = numpy.arange(o) * s - p
    stop = numpy.minimum(start + k, n + p)
    begin, end = numpy.maximum(start, 0), numpy.minimum(stop, n)
    return begin, end, stop - start if count_include_pad else end - begin


def _adaptive_map(xp: Any, size: int, out: int) -> AxisMap:
    start, stop = adaptive_bounds(xp, size, out)
    taps = []
    for i in range(int((stop - start).max()) if out else 0):
        at = xp.flatnonzero(start + i < stop)
        taps.append(Tap(start[at] + i, None, selection(at, out)))
    return AxisMap(size, out, tuple(taps))


def _adaptive_counts(xp: Any, size: Ints, out: Ints, dtype: Any) -> Array:
    total = xp.ones((), "int64")
    for n, o in zip(size, out):
        start, stop = adaptive_bounds(xp, n, o)
        total = total[..., None] * (stop - start)
    return total.astype(dtype)
