"""Loops of scans: what runs along a dimension in order."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from ...core.geometry import wrap_dim

if TYPE_CHECKING:
    from ..lowering.builder import Builder
    from ..lowering.elements import Element
    from ..lowering.loops import Value


def running(how: str) -> Callable:
    """A rule: what the elements along a dimension come to so far."""

    def lower(b: Builder, x: Value, dim, *_):
        out = b.result()
        x = x.vector()
        b.scan(how, x, lambda e: e, wrap_dim(dim, len(x.shape)), out.vector())
        return out

    return lower


lower_cumsum, lower_cumprod, lower_logcumsumexp = running("sum"), running("prod"), running("logaddexp")


def running_extreme(how: str) -> Callable:
    """A rule: the extreme so far and its last place. A place is that of the last element that equals the extreme."""

    def lower(b: Builder, x: Value, dim):
        values, indices, x = b.result(0), b.result(1), x.vector()
        o, dim, rank = b.o, wrap_dim(dim, len(x.shape)), len(x.shape)
        best = b.scan(how, x, lambda e: e, dim, values.vector())

        def place(e: Element) -> Element:
            same = e == b.element(best, rank)
            same = o.logical_or(same, o.isnan(e)) if x.dtype.is_floating_point else same
            return o.where(same, b.index(dim), 0)

        b.scan("max", x, place, dim, indices.vector())
        return values, indices

    return lower
