"""Batched values under several open levels: taken apart, put together, brought into line with each other.

A tensor inside nested `vmap`s is wrapped once per level. What is recorded for backward, and tangents, live on the value
underneath; these functions go down to it (`strip`, `lower`) and come back (`rewrap`, `raise_`).
"""

from __future__ import annotations

from ..core import modes
from ..core.modes import ambient
from ..core.tensor import TRANSFORMED, Tensor
from .batched import make_batched, outside, unwrap


def batch_everywhere(x: Tensor, levels: list | None = None) -> Tensor:
    """`x` batched at every open vmap level, outermost first."""
    levels = ambient.transforms if levels is None else levels
    if not levels:
        return x
    level = levels[-1]
    value, dim = unwrap(x, level)
    inner = batch_everywhere(value, levels[:-1])
    if dim is None:
        with outside(level):
            inner, dim = inner.unsqueeze(0).expand(level.size, *inner.shape), 0
    return make_batched(inner, dim, level)


def strip(x: Tensor):
    """The innermost value, and how to wrap it again (innermost last)."""
    wraps = []
    while x._keys & TRANSFORMED:
        w = x.__dict__["wrapped"]
        wraps.append((w.dim, w.level))
        x = w.value
    return x, wraps


def rewrap(value: Tensor, wraps: list) -> Tensor:
    for dim, level in reversed(wraps):
        value = make_batched(value, dim, level)
    return value


class graph_level(modes.other_stack):
    """Only the transforms that were opened after a graph was recorded stay active: its values are those underneath."""

    name, bit = "transforms", modes.TRANSFORM

    def __init__(self, recorded: list):
        self.recorded = recorded

    def __enter__(self) -> None:
        self.replace([t for t in ambient.transforms if t not in self.recorded])


def outer_wrap(t: Tensor, levels: list):
    """The wrapping of a tensor by a transform that is not among `levels`, if its outermost one is such."""
    w = t.__dict__["wrapped"] if t._keys & TRANSFORMED else None
    return w if w is not None and w.level not in levels else None


def lower(g: Tensor, wraps: list, levels: list, shift: int = 0) -> Tensor:
    """A cotangent as the graph's own values are: batch dimensions of `levels` where the output has them (`wraps`).

    What newer transforms wrap around it stays; their dimension goes first, so the others move up by `shift`.
    """
    w = outer_wrap(g, levels)
    if w is not None:
        with outside(w.level):
            inner = lower(w.value.movedim(w.dim, 0) if w.dim else w.value, wraps, levels, shift + 1)
        return make_batched(inner, 0, w.level)
    if wraps:
        g = batch_everywhere(g, [level for _, level in reversed(wraps)])
    for dim, level in wraps:
        value, at = unwrap(g, level)
        with outside(level):
            g = value if at is None or at == dim + shift else value.movedim(at, dim + shift)
    return g


def raise_(g: Tensor, wraps: list, levels: list, shift: int = 0) -> Tensor:
    """The inverse of `lower`: wrap a gradient as the tracked input is wrapped, inside what newer transforms wrap."""
    w = outer_wrap(g, levels)
    if w is None:
        return rewrap(g, [(dim + shift, level) for dim, level in wraps])
    with graph_level(levels), outside(w.level):
        inner = w.value.movedim(w.dim, 0) if w.dim else w.value
    return make_batched(raise_(inner, wraps, levels, shift + 1), 0, w.level)
