"""Loops of softmax and its kin, as reductions and element-wise steps over rows: fusion makes one kernel of them."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from ...core.geometry import wrap_dim
from ..lowering import NotLowerable

if TYPE_CHECKING:
    from ..lowering.builder import Builder
    from ..lowering.loops import Value

OF_A_NUMBER = NotLowerable("softmax of a number")
OTHER_DTYPE = NotLowerable("the gradient of softmax of a number, or in another dtype than the result's")


def _powers(b: Builder, x: Value, dim: int) -> tuple[Value, Value, Value]:
    """(the largest, exp of what each is less than that, the sum of those) of each row."""
    axis, d = [wrap_dim(dim, len(x.shape))], b.wide(x.dtype)
    top = b.reduce("max", [x], lambda e: e, axis, d)
    powers = b.pointwise(lambda e, m: b.o.exp(e - m), x, top, dtype=d)
    return top, powers, b.reduce("sum", [powers], lambda e: e, axis, d)


def lower_softmax(b: Builder, x: Value, dim, half_to_float):
    if not x.shape:
        return OF_A_NUMBER
    _, powers, total = _powers(b, x, dim)
    rank = len(x.shape)
    return b.fill(b.result(), b.element(powers, rank) / b.element(total, rank))


def lower_safe_softmax(b: Builder, x: Value, dim, dtype):
    d = b.spec().dtype
    if dtype is not None or d is not b.wide(d) or not x.shape:
        return NotLowerable("safe softmax of a number, in low precision, or in another dtype than its input's")
    top, powers, total = _powers(b, x, dim)
    e, t, m = (b.element(v, len(x.shape)) for v in (powers, total, top))
    return b.fill(b.result(), b.o.where(m == -math.inf, 0.0, e / t))


def lower_log_softmax(b: Builder, x: Value, dim, half_to_float):
    if not x.shape:
        return OF_A_NUMBER
    axis, d = [wrap_dim(dim, len(x.shape))], b.wide(x.dtype)
    top = b.reduce("max", [x], lambda e: e, axis, d)
    total = b.reduce("sum", [x, top], lambda e, m: b.o.exp(e - m), axis, d)
    e, m, s = (b.element(v, len(x.shape)) for v in (x, top, total))
    return b.fill(b.result(), (e - m) - b.o.log(s))


def lower_softmax_backward(b: Builder, g: Value, y: Value, dim, input_dtype):
    if not y.shape or input_dtype is not y.dtype or g.dtype is not y.dtype or not y.dtype.is_floating_point:
        return OTHER_DTYPE
    total = b.reduce("sum", [g, y], lambda p, q: p * q, [wrap_dim(dim, len(y.shape))], b.wide(y.dtype))
    p, q, t = (b.element(v, len(y.shape)) for v in (g, y, total))
    return b.fill(b.result(), q * (p - t))


def lower_log_softmax_backward(b: Builder, g: Value, y: Value, dim, input_dtype):
    if not y.shape or input_dtype is not y.dtype or g.dtype is not y.dtype or not y.dtype.is_floating_point:
        return OTHER_DTYPE
    total = b.reduce("sum", [g], lambda p: p, [wrap_dim(dim, len(y.shape))], b.wide(y.dtype))
    p, q, t = (b.element(v, len(y.shape)) for v in (g, y, total))
    return b.fill(b.result(), p - b.o.exp(q) * t)
