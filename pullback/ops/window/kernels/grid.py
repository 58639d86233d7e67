"""Sampling an image at coordinates given by a grid, in two and three dimensions, and the affine grid.

Comes in: x (N, C, spatial...) and grid (N, out..., axes), whose last axis names a point, x before y before z, each
from -1 to 1 across the image. Goes out: samples (N, C, out...), or what meets x and the grid. Always holds: a sample
is a sum over taps, each the product of one neighbour per axis; a neighbour carries its index, its weight, and the
derivative of that weight along the grid, so forward and both backwards are sums over the same taps.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from itertools import product
from math import prod
from typing import Any

import numpy

from ....core import spatial
from ....core.records import Record
from .geometry import Array, Ints, narrow_to, widen
from .resample import cubic_weights

BILINEAR, NEAREST, BICUBIC = 0, 1, 2
ZEROS, BORDER, REFLECTION = 0, 1, 2


class Neighbour(Record):
    """One entry along one axis for each sample: where, whether it exists, its weight and the weight's derivative."""

    place: Array
    exists: Array
    weight: Array
    slope: Array


def grid_sample(xp: Any, x: Array, grid: Array, mode: int, padding: int, align_corners: bool) -> Array:
    """Samples (N, C, out...)."""
    if xp is numpy:
        out = numpy.empty(x.shape[:2] + grid.shape[1:-1], widen(x).dtype)
        if (
            spatial.sample(spatial.SAMPLES, widen(x), widen(grid), out, x.shape, mode, padding, align_corners)
            is not None
        ):
            return narrow_to(out, x.dtype)
    flat, axes = widen(x).reshape(-1), _axes(xp, x.shape, widen(grid), mode, padding, align_corners)
    samples = xp.zeros(x.shape[:2] + grid.shape[1:-1], flat.dtype)
    total = samples.reshape(*x.shape[:2], prod(grid.shape[1:-1]))
    for index, exists, weights, _ in _taps(xp, axes, x.shape[2:]):
        total += _read(xp, flat, x.shape, index, exists) * (prod(weights) * exists)[:, None]
    return narrow_to(samples, x.dtype)


def grid_sample_input(
    xp: Any, g: Array, shape: Ints, grid: Array, mode: int, padding: int, align_corners: bool
) -> Array:
    """What meets x, of the given shape."""
    if xp is numpy:
        found = spatial.sample(spatial.TO_IMAGE, None, widen(grid), widen(g), shape, mode, padding, align_corners)
        if found is not None:
            return narrow_to(found, g.dtype)
    n, c = shape[:2]
    length = prod(shape[2:])
    wide = widen(g).reshape(n, c, prod(g.shape[2:]))
    planes = (xp.arange(n * c) * length).reshape(n, c, 1)
    total = xp.zeros(shape, wide.dtype)
    axes = _axes(xp, shape, widen(grid), mode, padding, align_corners)
    for index, exists, weights, _ in _taps(xp, axes, shape[2:]):
        shares = wide * (prod(weights) * exists)[:, None]
        xp.add.at(total.reshape(-1), (planes + index[:, None]).reshape(-1), shares.reshape(-1))
    return narrow_to(total, g.dtype)


def grid_sample_grid(xp: Any, g: Array, x: Array, grid: Array, mode: int, padding: int, align_corners: bool) -> Array:
    """What meets the grid."""
    if mode == NEAREST:
        return xp.zeros_like(grid)
    if xp is numpy:
        found = spatial.sample(spatial.TO_GRID, widen(x), widen(grid), widen(g), x.shape, mode, padding, align_corners)
        if found is not None:
            return narrow_to(found, grid.dtype)
    flat, axes = widen(x).reshape(-1), _axes(xp, x.shape, widen(grid), mode, padding, align_corners)
    wide = widen(g).reshape(*x.shape[:2], prod(g.shape[2:]))
    totals = [0] * len(axes)
    for index, exists, weights, slopes in _taps(xp, axes, x.shape[2:]):
        met = (wide * _read(xp, flat, x.shape, index, exists)).sum(axis=1) * exists
        for a, slope in enumerate(slopes):
            totals[a] = totals[a] + met * slope * prod(w for b, w in enumerate(weights) if b != a)
    return narrow_to(xp.stack(totals[::-1], axis=-1).reshape(grid.shape), grid.dtype)


def affine_base(xp: Any, size: Ints, align_corners: bool, dtype: Any) -> Array:
    """Homogeneous coordinates (prod(size), axes + 1) of an image's entries, last axis first, then a one."""
    axes = len(size)
    base = xp.empty((*size, axes + 1), dtype)
    for axis, n in enumerate(size):
        base[..., axes - 1 - axis] = _line(xp, n, align_corners, dtype).reshape(-1, *(1,) * (axes - 1 - axis))
    base[..., axes] = 1
    return base.reshape(prod(size), axes + 1)


@lru_cache(64)  # one that is short takes longer to make than what follows
def _line(xp: Any, n: int, align_corners: bool, dtype: Any) -> Array:
    """The coordinates of n entries along an axis."""
    line = xp.linspace(-1.0, 1.0, n, dtype=dtype) if n > 1 else xp.zeros(1, dtype)
    return line if align_corners else line * xp.asarray((n - 1) / n, dtype)


def _read(xp: Any, flat: Array, shape: Ints, index: Array, exists: Array) -> Array:
    """Values (N, C, samples) at flat spatial indices (N, samples); nothing outside the image is read."""
    n, c = shape[:2]
    planes = (xp.arange(n * c) * prod(shape[2:])).reshape(n, c, 1)
    values = xp.take(flat, planes + index[:, None]) if flat.size else xp.zeros((n, c, index.shape[1]), flat.dtype)
    return values if bool(exists.all()) else xp.where(exists[:, None], values, 0)


def _taps(xp: Any, axes: list[list[Neighbour]], size: Ints) -> Iterator[tuple[Array, Array, list, list]]:
    """Every choice of one neighbour per axis: flat index, whether it exists, weights and slopes per axis."""
    for chosen in product(*axes):
        index, exists = 0, True
        for neighbour, n in zip(chosen, size):
            index, exists = index * n + neighbour.place, exists & neighbour.exists
        yield index, exists, [n.weight for n in chosen], [n.slope for n in chosen]


def _axes(xp: Any, shape: Ints, grid: Array, mode: int, padding: int, align_corners: bool) -> list[list[Neighbour]]:
    """The neighbours along each spatial axis of x, in x's order of axes."""
    nd = len(shape) - 2
    points = grid.reshape(grid.shape[0], prod(grid.shape[1:-1]), nd)
    return [_neighbours(xp, points[..., nd - 1 - a], shape[2 + a], mode, padding, align_corners) for a in range(nd)]


def _neighbours(xp: Any, point: Array, n: int, mode: int, padding: int, align: bool) -> list[Neighbour]:
    at, slope = _unnormalized(point, n, align)
    if mode == BICUBIC:
        base = xp.floor(at)
        t = at - base
        near = zip((-1, 0, 1, 2), cubic_weights(t), _cubic_slopes(t))
        return [_neighbour(xp, _folded(xp, base + i, n, padding, align)[0], n, w, d * slope) for i, w, d in near]
    at, fold = _folded(xp, at, n, padding, align)
    slope = slope * fold
    if mode == NEAREST:
        return [_neighbour(xp, xp.rint(at), n, xp.ones_like(at), xp.zeros_like(at))]
    base = xp.floor(at)
    t = at - base
    return [_neighbour(xp, base, n, 1 - t, -slope), _neighbour(xp, base + 1, n, t, slope)]


def _neighbour(xp: Any, at: Array, n: int, weight: Array, slope: Array) -> Neighbour:
    exists = (at >= 0) & (at <= n - 1)
    return Neighbour(xp.where(exists, at, 0).astype("int64"), exists, weight, slope + xp.zeros_like(weight))


def _unnormalized(point: Array, n: int, align: bool) -> tuple[Array, float]:
    """From -1..1 to entries of an axis, and the derivative."""
    if align:
        return (point + 1) / 2 * (n - 1), (n - 1) / 2
    return ((point + 1) * n - 1) / 2, n / 2


def _folded(xp: Any, at: Array, n: int, padding: int, align: bool) -> tuple[Array, Any]:
    """Coordinates brought into the image as the padding mode says, and the derivative of doing so."""
    if padding == ZEROS:
        return at, 1
    sign = 1
    if padding == REFLECTION:
        at, sign = _reflected(xp, at, *((0, 2 * (n - 1)) if align else (-1, 2 * n - 1)))
    inside = ((at > 0) & (at < n - 1)).astype(at.dtype)
    return xp.clip(at, 0, n - 1), sign * inside


def _reflected(xp: Any, at: Array, twice_low: int, twice_high: int) -> tuple[Array, Any]:
    """Coordinates reflected until they lie between two bounds, each given doubled."""
    if twice_low == twice_high:
        return xp.zeros_like(at), xp.zeros_like(at)
    low, span = twice_low / 2, (twice_high - twice_low) / 2
    sign = xp.where(at < low, -1, 1).astype(at.dtype)
    away = xp.abs(at - low)
    extra, flips = away % span, xp.floor(away / span)
    even = flips % 2 == 0
    return xp.where(even, extra + low, span - extra + low), xp.where(even, sign, -sign)


def _cubic_slopes(t: Array, a: float = -0.75) -> tuple[Array, Array, Array, Array]:
    """Derivatives along t of `cubic_weights`."""
    far, near, s = 1 + t, t, 1 - t
    return (
        (3 * a * far - 10 * a) * far + 8 * a,
        (3 * (a + 2) * near - 2 * (a + 3)) * near,
        -(3 * (a + 2) * s - 2 * (a + 3)) * s,
        -((3 * a * (1 + s) - 10 * a) * (1 + s) + 8 * a),
    )
