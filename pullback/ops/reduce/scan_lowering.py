"""Loops of scans and of sorting: what runs along a dimension in order, and the order of its elements."""

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


# ---- sorting
def _places(b: Builder, x: Value, dim: int, descending: bool) -> Value:
    """Where the elements along a dimension are, in order."""
    last = len(x.shape) - 1
    order = [*[d for d in range(last + 1) if d != dim], dim]
    back = [order.index(d) for d in range(last + 1)]
    return b.sort(x.permute(order), bool(descending)).permute(back)


def lower_sort(b: Builder, x: Value, dim, descending):
    """(elements in order, where they were)."""
    values, indices, x = b.result(0), b.result(1), x.vector()
    dim = wrap_dim(dim, len(x.shape))
    at = _places(b, x, dim, descending)
    others = [0 if d == dim else s for d, s in enumerate(x.strides)]
    place = (b.raw(at), x.strides[dim] if x.shape[dim] > 1 else 1, x.shape[dim])
    b.fill(values.vector(), b.gather(x, others, [place]))
    return values, _as_result(b, at, indices)


def _as_result(b: Builder, at: Value, out: Value) -> Value:
    """Places as the result: themselves where they lie as it does."""
    if at.strides == out.strides:
        return at
    b.store(out.vector(), at)
    return out


def lower_argsort(b: Builder, x: Value, dim, descending):
    out, x = b.result(), x.vector()
    return _as_result(b, _places(b, x, wrap_dim(dim, len(x.shape)), descending), out)
