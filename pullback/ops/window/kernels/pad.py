"""Padding of trailing axes: a constant, a reflection, the edge, or around the circle.

Comes in: x and, for each of its last axes, how much to add before and after; a negative amount crops. Goes out: the
padded array, or what meets x. Always holds: apart from the constant, a padded entry is a copy of one input entry, so
the backward adds every entry of g to the input entry it was copied from.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy

from .axis_map import AxisMap, Tap, apply_all, may_keep, transposed
from .geometry import Array, Ints, bordered, narrow_to, widen


def constant_pad(xp: Any, x: Array, low: Ints, high: Ints, value: Any) -> Array:
    """x with `value` around its last axes. Always a new array."""
    out = bordered(xp, x, low, high, value)
    return out.copy() if out is x else out


def index_pad(xp: Any, x: Array, low: Ints, high: Ints, mode: str) -> Array:
    """x padded by copies of its own entries; `mode` is "reflect", "replicate" or "circular"."""
    size = x.shape[x.ndim - len(low) :]
    if may_keep(xp, size, low, high):
        maps = [_kept(mode, *axis)[0] for axis in zip(size, low, high)]
    else:
        maps = _maps(xp, size, low, high, mode)
    out = apply_all(xp, x, maps)
    return out.copy() if out is x else out


def index_pad_backward(xp: Any, g: Array, size: Ints, low: Ints, high: Ints, mode: str) -> Array:
    """What meets x, whose last axes have the given size."""
    if may_keep(xp, size, low, high):
        maps = [_kept(mode, *axis)[1] for axis in zip(size, low, high)]
    else:
        maps = transposed(xp, _maps(xp, size, low, high, mode))
    out = apply_all(xp, widen(g), maps)
    return out.copy() if out is g else narrow_to(out, g.dtype)


def _maps(xp: Any, size: Ints, low: Ints, high: Ints, mode: str) -> list[AxisMap | None]:
    return [
        AxisMap(n, n + a + b, (Tap(_SOURCE[mode](xp, xp.arange(n + a + b) - a, n, a, b)),)) if a or b else None
        for n, a, b in zip(size, low, high)
    ]


@functools.lru_cache(256)
def _kept(mode: str, n: int, low: int, high: int) -> tuple[AxisMap | None, AxisMap | None]:
    """The map of one axis of the CPU's arrays, and its transpose."""
    found = _maps(numpy, (n,), (low,), (high,), mode)[0]
    return (None, None) if found is None else (found.kept(), found.transpose(numpy).kept())


def _reflect(xp: Any, at: Array, n: int, low: int, high: int) -> Array:
    return n - 1 - xp.abs(n - 1 - xp.abs(at))


def _replicate(xp: Any, at: Array, n: int, low: int, high: int) -> Array:
    return xp.clip(at, 0, n - 1)


def _circular(xp: Any, at: Array, n: int, low: int, high: int) -> Array:
    """What is cropped is no part of the circle."""
    first = max(-low, 0)
    return first + (at - first) % (n - first + min(high, 0))


_SOURCE = {"reflect": _reflect, "replicate": _replicate, "circular": _circular}
