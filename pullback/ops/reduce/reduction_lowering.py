"""Loops of reductions: sums, products, extremes and their places, variances. Rules for `lower=`; see `ops/lowering/builder`."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from ...core import dtype as dtypes
from ...core.geometry import wrap_dim, wrap_dims
from ..family.reduction import REDUCTION
from ..lowering import NotLowerable, of_complex

if TYPE_CHECKING:
    from ..lowering.builder import Builder
    from ..lowering.elements import Element
    from ..lowering.loops import Value


def reduced_by(how: str, before: Callable | None = None, after: Callable | None = None, working=None) -> Callable:
    """A rule: `before` of each element, reduced, and `after(value, count)` of what comes out."""

    def lower(b: Builder, x: Value, *_):
        _, axes, keepdim, d, _ = REDUCTION.bind(b.op, b.fakes)
        d = working or b.wide(d)
        count = math.prod(x.shape[k] for k in axes)
        first = before or (lambda e: e)
        result = b.reduce(how, [x], lambda e: b.o.cast(first(e), d), axes, d, keepdim=bool(keepdim))
        return b.store(b.result(), result, (lambda e: after(e, count)) if after else lambda e: e)

    return lower


lower_sum = of_complex(reduced_by("sum"))
lower_mean = of_complex(reduced_by("sum", after=lambda e, n: e / float(n) if n else e * math.nan))
lower_prod = reduced_by("prod")
lower_any = reduced_by("any", before=lambda e: e != 0, working=dtypes.bool)
lower_all = reduced_by("all", before=lambda e: e != 0, working=dtypes.bool)
lower_extreme = {"max": reduced_by("max"), "min": reduced_by("min")}


# ---- variances
def lower_var(b: Builder, x: Value, *_):
    _, axes, keepdim, _, rest = REDUCTION.bind(b.op, b.fakes)
    divisor = math.prod(x.shape[k] for k in axes) - (1 if rest[0] is None else rest[0])
    if divisor <= 0:
        return NotLowerable("a variance of too few elements")
    total = b.moments(x, axes, rooted=True)[1]
    root = b.op.name == "std"
    result = b.pointwise(lambda v: b.o.sqrt(v / float(divisor)) if root else v / float(divisor), total)
    return b.store(b.result(), result if keepdim else result.without(axes))


def lower_var_mean(b: Builder, x: Value, dim, correction, keepdim):
    axes = all_or(dim, x)
    divisor = math.prod(x.shape[k] for k in axes) - (1 if correction is None else correction)
    if divisor <= 0:
        return NotLowerable("a variance of too few elements")
    mean, squares = b.moments(x, axes, rooted=True)
    variance = b.pointwise(lambda s: s / float(divisor), squares)
    result = [v if keepdim else v.without(axes) for v in (variance, mean)]
    return tuple(b.store(b.result(k), v) for k, v in enumerate(result))


def all_or(dim, x: Value) -> list[int]:
    """The dimensions that are named; all where none is."""
    return list(range(len(x.shape))) if not dim else list(wrap_dims(tuple(dim), len(x.shape)))


def lower_logsumexp(b: Builder, x: Value, dim, keepdim):
    d = b.wide(x.dtype)
    axes = list(wrap_dims(tuple(dim) or None, len(x.shape)))
    if not d.is_floating_point or not x.numel:
        return NotLowerable("logsumexp of integers, or of nothing")
    top = b.reduce("max", [x], lambda e: e, axes, d)
    top = b.pointwise(lambda e: b.o.where(b.o.isfinite(e), e, 0.0), top)
    total = b.reduce("sum", [x, top], lambda e, m: b.o.exp(e - m), axes, d)
    result = b.pointwise(lambda t, m: b.o.log(t) + m, total, top)
    return b.store(b.result(), result if keepdim else result.without(axes))


# ---- places of extremes
def _extreme_and_place(b: Builder, x: Value, axes: Sequence[int], largest: bool) -> tuple[Value, Value] | NotLowerable:
    """(extreme, place of the first element that is it) over some axes, which are kept; places count row by row."""
    if not x.numel or x.dtype in dtypes.reduced_precision:
        return NotLowerable("the place of an extreme of nothing, or in low precision")
    o, d = b.o, x.dtype
    best = b.reduce("max" if largest else "min", [x], lambda e: e, axes, d)
    count = math.prod(x.shape[k] for k in axes)
    at = b.number(0, dtypes.int64)
    for k in axes:
        at = at * x.shape[k] + b.index(k)

    def first(e: Element, m: Element) -> Element:
        same = o.logical_or(e == m, o.logical_and(o.isnan(e), o.isnan(m))) if d.is_floating_point else e == m
        return o.where(same, at, count)

    return best, b.reduce("min", [x, best], first, axes, dtypes.int64)


def lower_argmax(b: Builder, x: Value, dim, keepdim):
    axes = list(range(len(x.shape))) if dim is None else _axis(x, dim)
    result = _extreme_and_place(b, x, axes, b.op.name == "argmax")
    if isinstance(result, NotLowerable):
        return result
    return result[1] if keepdim else result[1].without(axes)


def lower_max_dim(b: Builder, x: Value, dim, keepdim):
    axes = _axis(x, dim)
    result = _extreme_and_place(b, x, axes, b.op.name == "max")
    if isinstance(result, NotLowerable) or keepdim:
        return result
    return tuple(v.without(axes) for v in result)


def _axis(x: Value, dim: int) -> list[int]:
    return [wrap_dim(dim, len(x.shape))] if x.shape else []
