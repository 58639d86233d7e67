"""Loops of layer norm and batch norm: reductions and element-wise steps over rows, or over channels."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from ..lowering import NotLowerable

if TYPE_CHECKING:
    from ..lowering.builder import Builder
    from ..lowering.elements import Element
    from ..lowering.loops import Value


def _scaled(b: Builder, e: Element, weight: Value | None, bias: Value | None, rank: int) -> Element:
    e = e if weight is None else e * b.element(weight, rank)
    return e if bias is None else e + b.element(bias, rank)


# ---- layer norm
def lower_layer_norm(b: Builder, x: Value, shape, weight, bias, eps):
    if not x.numel:
        return NotLowerable("a norm of nothing")
    rank, n = len(x.shape), math.prod(shape)
    mean, squares = b.moments(x, range(rank - len(shape), rank))
    rstd = b.pointwise(lambda s: 1 / b.o.sqrt(s / float(n) + eps), squares)
    out = b.result(0)
    e = (b.element(x, rank) - b.element(mean, rank)) * b.element(rstd, rank)
    b.fill(out, _scaled(b, e, weight, bias, rank))
    return out, b.returned(mean, 1), b.returned(rstd, 2)


def lower_layer_norm_backward(b: Builder, g: Value, x: Value, shape, mean, rstd, weight, bias, mask):
    if not x.numel:
        return NotLowerable("a norm of nothing")
    rank, d, n = len(x.shape), b.wide(x.dtype), math.prod(shape)
    axes, outer = list(range(rank - len(shape), rank)), list(range(rank - len(shape)))

    def scaled(p, *w):
        return p * w[0] if w else p

    extra = [] if weight is None else [weight]
    result: list = [None, None, None]
    if mask[0]:
        total = b.reduce("sum", [g, x, *extra], lambda p, q, *w: scaled(p, *w), axes, d)
        along = b.reduce(
            "sum", [g, x, mean, rstd, *extra], lambda p, q, m, r, *w: scaled(p, *w) * ((q - m) * r), axes, d
        )
        p, q, m, r, t, a = (b.element(v, rank) for v in (g, x, mean, rstd, total, along))
        p = p if weight is None else p * b.element(weight, rank)
        result[0] = b.fill(b.result(0), ((p - t / float(n)) - ((q - m) * r) * (a / float(n))) * r)
    if mask[1]:
        sums = b.reduce("sum", [g, x, mean, rstd], lambda p, q, m, r: p * ((q - m) * r), outer, d, keepdim=False)
        result[1] = b.returned(sums, 1)
    if mask[2]:
        result[2] = b.returned(b.reduce("sum", [g, x], lambda p, q: p, outer, d, keepdim=False), 2)
    return tuple(result)


# ---- batch norm
def _channel(v: Value | None, rank: int) -> Value | None:
    """One number per channel, placed to broadcast."""
    if v is None:
        return None
    return v.window([1, v.shape[0], *[1] * (rank - 2)], [0, v.strides[0], *[0] * (rank - 2)])


def lower_batch_norm(b: Builder, x: Value, weight, bias, running_mean, running_var, training, momentum, eps):
    rank, d = len(x.shape), b.wide(x.dtype)
    functional = len(b.outputs) == 5  # the new running statistics are results
    if not training and not functional:
        return _by_running_statistics(b, x, weight, bias, running_mean, running_var, eps)
    if not training or not x.numel or rank < 2 or running_mean is not None and not functional:
        return NotLowerable("batch norm that writes running statistics, or has none of the batch")
    if not d.is_floating_point:
        return NotLowerable("batch norm of integers")
    axes = [0, *range(2, rank)]
    n = math.prod(x.shape[k] for k in axes)
    mean, squares = b.moments(x, axes)
    rstd = b.pointwise(lambda s: 1 / b.o.sqrt(s / float(n) + eps), squares)
    e = (b.element(x, rank) - b.element(mean, rank)) * b.element(rstd, rank)
    out = b.fill(b.result(0), _scaled(b, e, _channel(weight, rank), _channel(bias, rank), rank))
    flat = [v.window((x.shape[1],)) for v in (mean, rstd, squares)]
    result = [out, b.returned(flat[0], 1), b.returned(flat[1], 2)]
    if functional:
        unbiased = 1.0 / (n - 1) if n > 1 else math.nan
        result.append(b.pointwise(lambda r, m: r * (1 - momentum) + m * momentum, running_mean, flat[0]))
        result.append(b.pointwise(lambda r, s: r * (1 - momentum) + s * (unbiased * momentum), running_var, flat[2]))
    return tuple(result)


def _by_running_statistics(b: Builder, x: Value, weight, bias, running_mean, running_var, eps):
    """Nothing but the result comes out."""
    rank = len(x.shape)
    if running_mean is None or running_var is None:
        return NotLowerable("batch norm without statistics")
    if any(t._array.size for t in b.outputs[1:]):
        return NotLowerable("batch norm that keeps statistics")
    mean, variance = (b.element(_channel(v, rank), rank) for v in (running_mean, running_var))
    e = (b.element(x, rank) - mean) * (1 / b.o.sqrt(variance + eps))
    e = _scaled(b, e, _channel(weight, rank), _channel(bias, rank), rank)
    return b.fill(b.result(0), e), b.result(1), b.result(2)


def lower_batch_norm_backward(b: Builder, g: Value, x: Value, weight, rm, rv, mean, rstd, training, eps, mask):
    rank, d = len(x.shape), b.wide(x.dtype)
    if not training or not x.numel or mean is None or rstd is None:
        return NotLowerable("batch norm without statistics of the batch")
    if not d.is_floating_point:
        return NotLowerable("batch norm of integers")
    axes = [0, *range(2, rank)]
    n = math.prod(x.shape[k] for k in axes)
    mean, rstd = _channel(mean, rank), _channel(rstd, rank)
    total = b.reduce("sum", [g, x], lambda p, q: p, axes, d)
    along = b.reduce("sum", [g, x, mean, rstd], lambda p, q, m, r: p * ((q - m) * r), axes, d)
    result: list = [None, None, None]
    if mask[0]:
        p, q, m, r, t, a = (b.element(v, rank) for v in (g, x, mean, rstd, total, along))
        e = ((p - t / float(n)) - ((q - m) * r) * (a / float(n))) * r
        result[0] = b.fill(b.result(0), _scaled(b, e, _channel(weight, rank), None, rank))
    result[1] = b.returned(along.window((x.shape[1],)), 1) if mask[1] else None
    result[2] = b.returned(total.window((x.shape[1],)), 2) if mask[2] else None
    return tuple(result)
