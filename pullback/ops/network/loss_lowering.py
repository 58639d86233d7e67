"""Loops of losses: element-wise ones by their own kernel, and the negative log likelihood, which picks by class."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from ...core import dtype as dtypes
from ...core.geometry import broadcast_shapes
from ..lowering import NotLowerable

if TYPE_CHECKING:
    from ..lowering.builder import Builder
    from ..lowering.elements import Element
    from ..lowering.loops import Value

NONE, MEAN = 0, 1  # of a loss's `reduction`
REFUSED = NotLowerable("a loss of other than a matrix, in low precision, or of no rows")


def lower_loss(b: Builder, x: Value, target: Value, reduction, *rest):
    """A loss whose kernel, unreduced, is element-wise."""
    shape = broadcast_shapes(x.shape, target.shape)
    rank = len(shape)
    result = b.op.kernel(b.o, b.raw(x, rank), b.raw(target, rank), NONE, *rest)
    return _reduced(b, shape, result, reduction)


def _reduced(b: Builder, shape: tuple[int, ...], loss: Element, reduction: int):
    """Losses of elements, their mean or their sum."""
    if reduction == NONE:
        return b.fill(b.result(), loss)
    wide, rank, n = b.wide(b.spec().dtype), len(shape), float(math.prod(shape))
    each = b.fill(b.blank(shape, wide), loss)
    total = b.reduce("sum", [each], lambda e: e, range(rank), wide, keepdim=False)
    return b.store(b.result(), total, lambda e: e / n if reduction == MEAN else e)


def lower_logits_loss(b: Builder, x: Value, target: Value, weight: Value | None, pos_weight: Value | None, reduction):
    """The cross entropy of two classes, from logits."""
    d = target.dtype
    if x.dtype is not d or not d.is_floating_point:
        return NotLowerable("logits and targets of several dtypes, or of integers")
    given = [v for v in (x, target, weight, pos_weight) if v is not None]
    shape = broadcast_shapes(*[v.shape for v in given])
    o, rank, working = b.o, len(shape), b.wide(d)

    def element(v: Value) -> Element:
        return o.cast(b.raw(v, rank), working)

    logit, wanted = element(x), element(target)
    likelihood = o.negative(o.log1p(o.exp(o.negative(o.abs(logit)))) + o.maximum(o.negative(logit), 0.0))
    if pos_weight is not None:
        likelihood = likelihood * ((element(pos_weight) - 1) * wanted + 1)
    loss = (1 - wanted) * logit - likelihood
    return _reduced(b, shape, loss if weight is None else loss * element(weight), reduction)


def _refuses(b: Builder, x: Value) -> bool:
    return len(x.shape) != 2 or not x.numel or x.dtype is not b.wide(x.dtype)


def _weight_of(b: Builder, weight: Value | None, at: Element, rank: int, d) -> Element:
    """The weight of a class; 1 where classes have none."""
    if weight is None:
        return b.number(1.0, d)
    return b.gather(weight, [0] * rank, [(at, weight.strides[0], weight.shape[0])])


def lower_nll(b: Builder, x: Value, target: Value, weight, reduction, ignore):
    if _refuses(b, x):
        return REFUSED
    o, d = b.o, x.dtype
    at = o.cast(b.raw(target), dtypes.int64)
    counts = at != ignore
    at = o.where(counts, at, 0)
    score = b.gather(x, (x.strides[0],), [(at, x.strides[1], x.shape[1])])
    share = _weight_of(b, weight, at, 1, d)
    each = b.fill(b.blank(target.shape, d), o.where(counts, -score if weight is None else -score * share, 0.0))
    if reduction == NONE:
        return each, b.fill(b.result(1), b.number(0.0, d))
    total = b.reduce("sum", [each], lambda e: e, [0], dtypes.float64, keepdim=False)
    counted = b.fill(b.blank(target.shape, dtypes.float64), o.where(counts, o.cast(share, dtypes.float64), 0.0))
    number = b.reduce("sum", [counted], lambda e: e, [0], dtypes.float64, keepdim=False)
    out = b.pointwise(lambda t, c: t / c if reduction == MEAN else t, total, number, dtype=d)
    return out, b.store(b.result(1), number)


def lower_nll_backward(b: Builder, g: Value, x: Value, target: Value, weight, reduction, ignore, total: Value):
    if _refuses(b, x):
        return REFUSED
    at = b.o.cast(b.raw(target.unsqueeze(1), 2), dtypes.int64)
    counts = at != ignore
    scale = b.element(g if reduction != NONE else g.unsqueeze(1), 2)
    scale = -scale / b.element(total, 2) if reduction == MEAN else -scale
    scale = scale if weight is None else scale * _weight_of(b, weight, b.o.where(counts, at, 0), 2, x.dtype)
    here = b.o.logical_and(at == b.index(1), counts)
    return b.fill(b.result(), b.o.where(here, scale, 0.0))
