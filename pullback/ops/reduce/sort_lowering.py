"""Loops of sorting and of what is read off an order: sorted elements, top elements, k-th values, medians, modes.

A rule sorts places (`b.sort`, all of a row or a range of ranks) and reads elements there. What always holds: the places are those
that the kernels give, among equal elements too. Where kernels retrace the choice of PyTorch's algorithms (`tie_order`, in small
inputs), there are no loops.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from ...core import dtype as dtypes
from ...core.geometry import wrap_dim
from ..lowering import NotLowerable
from .tie_order import SMALL

if TYPE_CHECKING:
    from ..lowering.builder import Builder
    from ..lowering.elements import Element
    from ..lowering.loops import Value


def _places(b: Builder, x: Value, dim: int, descending: bool, first: int = 0, last: int | None = None) -> Value:
    """Where the elements along a dimension are, in order; or those of some ranks."""
    rank = len(x.shape)
    order = [*[d for d in range(rank) if d != dim], dim]
    back = [order.index(d) for d in range(rank)]
    return b.sort(x.permute(order), bool(descending), first, last).permute(back)


def _read(b: Builder, x: Value, dim: int, at: Value) -> Element:
    """The elements of `x` at places along a dimension, over the loops of `at`, which may lack the dimension."""
    others = [0 if d == dim else s for d, s in enumerate(x.strides)]
    if len(at.shape) < len(x.shape):
        del others[dim]
    return b.gather(x, others, [(b.raw(at), x.strides[dim] if x.shape[dim] > 1 else 1, x.shape[dim])])


def _as_result(b: Builder, at: Value, out: Value) -> Value:
    """Places as the result: themselves where they lie as it does."""
    if at.strides == out.strides:
        return at
    b.store(out.vector(), at)
    return out


def _elements_and_places(b: Builder, x: Value, dim: int, at: Value) -> tuple[Value, Value]:
    values, indices = b.result(0), b.result(1)
    b.fill(values.vector() if at.shape else values, _read(b, x, dim, at))
    return values, _as_result(b, at, indices)


def lower_sort(b: Builder, x: Value, dim, descending):
    """(elements in order, where they were)."""
    x = x.vector()
    dim = wrap_dim(dim, len(x.shape))
    return _elements_and_places(b, x, dim, _places(b, x, dim, descending))


def lower_argsort(b: Builder, x: Value, dim, descending):
    out, x = b.result(), x.vector()
    return _as_result(b, _places(b, x, wrap_dim(dim, len(x.shape)), descending), out)


# ---- selections
def _retraced(x: Value, n: int) -> NotLowerable | None:
    """Why there are no loops over inputs whose ties are broken in another way than by place."""
    return NotLowerable("ties among few elements, broken as PyTorch breaks them") if 1 < n <= x.numel <= SMALL else None


def lower_topk(b: Builder, x: Value, k, dim, largest, sorted):
    x = x.vector()
    dim = wrap_dim(dim, len(x.shape))
    n = x.shape[dim]
    if k * 64 > n and (refused := _retraced(x, n)):
        return refused
    return _elements_and_places(b, x, dim, _places(b, x, dim, largest, 0, k))


def _picked(b: Builder, x: Value, dim: int, at: Value) -> tuple[Value, Value]:
    """Elements and places, one for each row; `at` has the dimension, the results may lack it."""
    kept = len(b.spec(0)._array.shape) == len(x.shape)
    return _elements_and_places(b, x, dim, at if kept else at.without([dim]))


def lower_kthvalue(b: Builder, x: Value, k, dim, keepdim):
    x = x.vector()
    dim = wrap_dim(dim, len(x.shape))
    return _retraced(x, x.shape[dim]) or _picked(b, x, dim, _places(b, x, dim, False, k - 1, k))


def lower_mode(b: Builder, x: Value, dim, keepdim):
    """The end of the first of the longest runs of equals among the sorted elements."""
    x = x.vector()
    dim = wrap_dim(dim, len(x.shape))
    n, o = x.shape[dim], b.o
    if refused := _retraced(x, n):
        return refused
    places = _places(b, x, dim, False)
    values = b.fill(b.blank(x.shape, x.dtype), _read(b, x, dim, places))
    starts = b.blank(x.shape, dtypes.int64)
    b.fill(starts.narrow(dim, 0, 1), b.number(0, dtypes.int64))
    if n > 1:
        now, before = (b.element(values.narrow(dim, k, n - 1)) for k in (1, 0))
        b.fill(starts.narrow(dim, 1, n - 1), o.where(now != before, b.index(dim, 1, 1), 0))
    begun = b.scan("max", starts, lambda e: e, dim, b.blank(x.shape, dtypes.int64))
    longest = b.reduce("max", [begun], lambda e: b.index(dim) - e, [dim], dtypes.int64)
    end = b.reduce(
        "min", [begun, longest], lambda e, m: o.where(b.index(dim) - e == m, b.index(dim), n), [dim], dtypes.int64
    )
    return _picked(b, x, dim, b.fill(b.blank(end.shape, dtypes.int64), _read(b, places, dim, end)))


# ---- medians
def _median_places(b: Builder, x: Value, dim: int, ignore_nan: bool) -> Value:
    """Where the lower median along a dimension is, which is kept. A NaN wins, unless ignored."""
    n, o = x.shape[dim], b.o
    if ignore_nan and x.dtype.is_floating_point:
        valid = b.reduce("sum", [x], lambda e: o.where(o.isnan(e), 0, b.number(1, dtypes.int64)), [dim], dtypes.int64)
        middle = b.pointwise(lambda v: o.where(v > 0, (v - 1) // 2, 0), valid)
        return b.fill(b.blank(middle.shape, dtypes.int64), _read(b, _places(b, x, dim, False), dim, middle))
    at = _places(b, x, dim, False, (n - 1) // 2, (n - 1) // 2 + 1)
    if not x.dtype.is_floating_point:
        return at
    nan = b.reduce("min", [x], lambda e: o.where(o.isnan(e), b.index(dim), n), [dim], dtypes.int64)
    return b.pointwise(lambda first, k: o.where(first < n, first, k), nan, at)


def lower_median_dim(b: Builder, x: Value, dim, keepdim):
    x = x.vector()
    dim = wrap_dim(dim, len(x.shape))
    return _picked(b, x, dim, _median_places(b, x, dim, b.op.name == "nanmedian"))


def lower_median(b: Builder, x: Value):
    out = b.result()
    if not x.numel:
        nothing = math.nan if x.dtype.is_floating_point else dtypes.iinfo(x.dtype).min
        return b.fill(out, b.number(nothing, x.dtype))
    row = b.contiguous(x).window((x.numel,))
    return b.fill(out, _read(b, row, 0, _median_places(b, row, 0, b.op.name == "nanmedian").without([0])))
