"""The view of an array in which every kernel position is a shift of long contiguous stretches.

Comes in: an array (N, C, spatial...), already bordered, with the stride of the windows over it. Goes out: stride-many
planes per channel, one for each remainder of a coordinate, so that a kernel position reads a single plane at unit
stride. A plane is then read flat, across row ends: position p of a window grid sits at a fixed flat distance from the
first, and the few entries that straddle a row end are never looked at. Always holds: `merge` undoes `split`.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from math import prod
from typing import Any

from .geometry import Array, Ints, bordered

BLOCK_ENTRIES = 1 << 18  # entries of one block of channels: an accumulator and its scratch stay in the cache


def split(xp: Any, x: Array, stride: Ints) -> tuple[Array, tuple[int, ...]]:
    """x as planes (N, C, prod(stride), prod(shape)), and the shape of one plane; missing entries are zero."""
    nd, n, c = len(stride), *x.shape[:2]
    shape = tuple(-(-m // s) for m, s in zip(x.shape[2:], stride))
    full = bordered(xp, x, (0,) * nd, [m * s - e for m, s, e in zip(shape, stride, x.shape[2:])])
    parts = full.reshape(n, c, *(e for pair in zip(shape, stride) for e in pair))
    order = (0, 1, *range(3, 3 + 2 * nd, 2), *range(2, 2 + 2 * nd, 2))
    return xp.ascontiguousarray(parts.transpose(order)).reshape(n, c, prod(stride), prod(shape)), shape


def merge(xp: Any, planes: Array, shape: Ints, stride: Ints) -> Array:
    """The inverse of `split`."""
    nd, n, c = len(stride), *planes.shape[:2]
    parts = planes.reshape(n, c, *stride, *shape)
    order = (0, 1, *(axis for a in range(nd) for axis in (2 + nd + a, 2 + a)))
    return parts.transpose(order).reshape(n, c, *(m * s for m, s in zip(shape, stride)))


def shifts(kernel: Ints, stride: Ints, dilation: Ints, shape: Ints) -> list[tuple[int, int]]:
    """For each kernel position, in row-major order: the plane it reads, and the flat offset within the plane."""
    found = []
    for at in product(*map(range, kernel)):
        plane = offset = 0
        for i, s, d, m in zip(at, stride, dilation, shape):
            plane, offset = plane * s + i * d % s, offset * m + i * d // s
        found.append((plane, offset))
    return found


def flat_length(out: Ints, shape: Ints) -> int:
    """Flat distance from the first window position to the last in a plane, both included."""
    last = 0
    for o, m in zip(out, shape):
        last = last * m + o - 1
    return last + 1


def blocks(images: int, channels: int, entries: int) -> Iterator[tuple[int, slice]]:
    """One image and a range of its channels at a time, each range near the size that a cache holds.

    One thread: calls this short pass the interpreter's lock back and forth for longer than they run.
    """
    step = max(1, BLOCK_ENTRIES // max(1, entries))
    for i in range(images):
        yield from ((i, slice(c, min(c + step, channels))) for c in range(0, channels, step))
