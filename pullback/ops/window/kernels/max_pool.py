"""Maximum over windows, with the place of each maximum; and what moves values by such places.

Comes in: x (N, C, spatial...). Goes out: values (N, C, out...) and places, each the flat int64 index of the winner in
the spatial part of x. Always holds: the first of equal maxima wins, the last NaN wins over everything, and a place
lies inside the input even when a window holds nothing above negative infinity.

Regular, adaptive and fractional pooling differ only in where windows start and how long they are. The two irregular
ones first copy x so that windows lie side by side, and then pool with a regular window.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from math import prod
from typing import Any

import numpy

from ....core import spatial
from ....core.pixels import as_pixels
from ....runtime import network
from .geometry import Array, Ints, bordered, narrow_to, pool_size, widen
from .planes import blocks, flat_length, shifts, split


def max_pool(
    xp: Any, x: Array, kernel: Ints, stride: Ints, padding: Ints, dilation: Ints, ceil_mode: bool
) -> tuple[Array, Array]:
    """Values and places of regular windows; padding never wins."""
    size = x.shape[2:]
    out = tuple(pool_size(*axis, ceil_mode) for axis in zip(size, kernel, stride, padding, dilation))
    if xp is numpy:
        found = None
        if as_pixels(x) is None:  # planes have a quicker loop, pixels lie as the other takes them
            found = network.max_pool(widen(x), kernel, stride, padding, dilation, out)
        if found is not None:
            return narrow_to(found[0], x.dtype), found[1]
        found = spatial.maximum(widen(x), _windows(size, kernel, stride, padding, dilation, out), dilation)
        if found is not None:
            return narrow_to(found[0], x.dtype), found[1]
    reach = [(o - 1) * s + d * (k - 1) + 1 for o, s, d, k in zip(out, stride, dilation, kernel)]
    high = [max(0, r - p - n) for r, p, n in zip(reach, padding, size)]
    wide = bordered(xp, widen(x), padding, high, _lowest(xp, x))
    values, winner = _winners(xp, wide, kernel, stride, dilation, out)
    starts = [xp.arange(o) * s - p for o, s, p in zip(out, stride, padding)]
    return narrow_to(values, x.dtype), _places(xp, values, winner, starts, kernel, dilation, size)


def adaptive_max_pool(xp: Any, x: Array, out: Ints) -> tuple[Array, Array]:
    """Values and places of `out` windows per axis that together cover the axis."""
    if not prod(out):
        return xp.empty((*x.shape[:2], *out), x.dtype), xp.empty((*x.shape[:2], *out), "int64")
    if xp is numpy:
        found = spatial.maximum(widen(x), adaptive_windows(x.shape[2:], out), (1,) * len(out))
        if found is not None:
            return narrow_to(found[0], x.dtype), found[1]
    bounds = [adaptive_bounds(xp, n, o) for n, o in zip(x.shape[2:], out)]
    return _irregular(xp, x, [a for a, _ in bounds], [b - a for a, b in bounds])


def fractional_max_pool(xp: Any, x: Array, kernel: Ints, out: Ints, samples: Array) -> tuple[Array, Array]:
    """Values and places of windows at pseudo-random starts; `samples` (N, C, axes) are draws from [0, 1).

    Two draws are for width, then height; three are for depth, height, width.
    """
    n, c, nd = x.shape[0], x.shape[1], len(kernel)
    values, places = xp.empty((n, c, *out), x.dtype), xp.empty((n, c, *out), "int64")
    if not values.size:
        return values, places
    for i in range(n):  # every plane has its own windows
        for j in range(c):
            draws = widen(samples[i, j])[:: -1 if nd == 2 else 1]
            starts = [_fractional_starts(xp, *axis) for axis in zip(draws, x.shape[2:], out, kernel)]
            lengths = [xp.full(o, k) for o, k in zip(out, kernel)]
            values[i, j], places[i, j] = (a[0, 0] for a in _irregular(xp, x[i : i + 1, j : j + 1], starts, lengths))
    return values, places


def scatter_places(xp: Any, g: Array, places: Array, size: Ints, disjoint: bool = False) -> Array:
    """(N, C, size...) where each value of g is added at its place; `disjoint` promises that places do not repeat."""
    if xp is numpy:
        found = network.scatter(widen(g), places, size, disjoint)
        if found is not None:
            return narrow_to(found, g.dtype)
    planes, length = prod(g.shape[: -len(size)]), prod(size)
    flat = (places.reshape(planes, prod(g.shape[-len(size) :])) + xp.arange(planes)[:, None] * length).reshape(-1)
    wide = widen(g)
    out = xp.zeros((*g.shape[: -len(size)], *size), wide.dtype)
    if disjoint:
        out.reshape(-1)[flat] = wide.reshape(-1)
    else:
        xp.add.at(out.reshape(-1), flat, wide.reshape(-1))
    return narrow_to(out, g.dtype)


def adaptive_bounds(xp: Any, size: int, out: int) -> tuple[Array, Array]:
    """First and past-the-last entry of each of `out` windows over `size` entries."""
    at = xp.arange(out)
    return at * size // max(1, out), -(-(at + 1) * size // max(1, out))


def adaptive_windows(size: Ints, out: Ints) -> list[spatial.Axis]:
    """Where each adaptive window begins and ends, and how many entries it has, for each axis."""
    return [_adaptive_windows_of(n, o) for n, o in zip(size, out)]


@functools.lru_cache(256)
def _adaptive_windows_of(size: int, out: int) -> spatial.Axis:
    begin, end = adaptive_bounds(numpy, size, out)
    return begin, end, end - begin


def _windows(size: Ints, kernel: Ints, stride: Ints, padding: Ints, dilation: Ints, out: Ints) -> list[spatial.Axis]:
    return [_windows_of(*axis) for axis in zip(size, kernel, stride, padding, dilation, out)]


@functools.lru_cache(256)
def _windows_of(n: int, k: int, s: int, p: int, d: int, o: int) -> spatial.Axis:
    """From the first entry of each window that is inside the input to past its last; every d-th one counts."""
    start = numpy.arange(o) * s - p
    begin = numpy.where(start < 0, start + -(start // d) * d, start)
    end = numpy.minimum(start + d * (k - 1) + 1, n)
    return begin, end, end - begin


def _winners(xp: Any, wide: Array, kernel: Ints, stride: Ints, dilation: Ints, out: Ints) -> tuple[Array, Array]:
    """The largest value of each window, and the row-major number of the kernel position that holds it."""
    n, c = wide.shape[:2]
    may_be_nan = wide.dtype.kind == "f" and bool(xp.isnan(wide).any())
    number = xp.uint8 if prod(kernel) <= 256 else xp.int32
    values, winner = xp.empty((n, c, *out), wide.dtype), xp.empty((n, c, *out), number)
    planes, shape = split(xp, wide, stride)
    reads, length, grown = shifts(kernel, stride, dilation, shape), flat_length(out, shape), (out[0], *shape[1:])
    inside = (..., *map(slice, out))
    for i, part in blocks(n, c, prod(grown)):
        best = xp.empty((part.stop - part.start, prod(grown)), wide.dtype)
        which = xp.zeros(best.shape, number)
        for k, (plane, at) in enumerate(reads):
            _challenge(xp, best[:, :length], which[:, :length], planes[i, part, plane, at : at + length], k, may_be_nan)
        rows = (part.stop - part.start, *grown)
        values[i, part], winner[i, part] = best.reshape(rows)[inside], which.reshape(rows)[inside]
    return values, winner


def _challenge(xp: Any, best: Array, which: Array, candidate: Array, k: int, may_be_nan: bool) -> None:
    """Let position k's values compete. Numbers only grow, so the last winner is the largest number that ever won."""
    if k == 0:
        best[...] = candidate
        return
    better = candidate > best
    if may_be_nan:
        better |= xp.isnan(candidate)
    xp.maximum(which, better * which.dtype.type(k), out=which)
    xp.maximum(best, candidate, out=best)


def _places(
    xp: Any, values: Array, winner: Array, starts: Sequence[Array], kernel: Ints, dilation: Ints, size: Ints
) -> Array:
    """Flat indices from kernel position numbers and window starts."""
    nd, number = len(size), xp.arange(prod(kernel))
    steps = [number // prod(kernel[a + 1 :]) % kernel[a] * dilation[a] for a in range(nd)]
    columns = [start.reshape((-1,) + (1,) * (nd - a - 1)) for a, start in enumerate(starts)]
    in_padding = any(bool((start < 0).any()) for start in starts)
    if not in_padding or not bool((values == _lowest(xp, values)).any()):
        return xp.take(_flat(steps, size), winner) + _flat(columns, size)
    # A window of nothing but negative infinity may have "won" in the padding: its place is its first entry inside.
    at = [column + xp.take(step, winner) for column, step in zip(columns, steps)]
    return _flat([xp.where(a < 0, a + -(a // d) * d, a) for a, d in zip(at, dilation)], size)


def _flat(coordinates: Sequence[Array], size: Ints) -> Array:
    flat = coordinates[0]
    for coordinate, n in zip(coordinates[1:], size[1:]):
        flat = flat * n + coordinate
    return flat


def _irregular(xp: Any, x: Array, starts: list[Array], lengths: list[Array]) -> tuple[Array, Array]:
    """Pool windows of any start and length, by first copying them side by side."""
    kernel = [int(length.max()) for length in lengths]
    out, side, lowest = [s.size for s in starts], widen(x), _lowest(xp, x)
    for axis, (start, length, k) in enumerate(zip(starts, lengths, kernel), 2):
        index = start[:, None] + xp.arange(k)
        missing = (xp.arange(k) >= length[:, None]).reshape(-1)
        side = xp.take(side, xp.minimum(index, x.shape[axis] - 1).reshape(-1), axis=axis)
        if missing.any():
            side[(slice(None),) * axis + (missing,)] = lowest
    ones = (1,) * len(kernel)
    values, winner = _winners(xp, side, kernel, kernel, ones, out)
    return narrow_to(values, x.dtype), _places(xp, values, winner, starts, kernel, ones, x.shape[2:])


def _fractional_starts(xp: Any, draw: Any, size: int, out: int, kernel: int) -> Array:
    """Starts of `out` windows of `kernel` entries, spread over `size` entries by one draw from [0, 1)."""
    if out == 1:
        return xp.full(1, size - kernel)
    alpha = draw.dtype.type(size - kernel) / draw.dtype.type(out - 1)
    starts = ((xp.arange(out).astype(draw.dtype) + draw) * alpha).astype("int64") - int(draw * alpha)
    starts[-1] = size - kernel
    return starts


def _lowest(xp: Any, x: Array) -> Any:
    """What loses against every value of x's dtype."""
    return xp.iinfo(x.dtype).min if x.dtype.kind in "iu" else -xp.inf
