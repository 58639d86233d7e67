"""Loops of softmax, norms, losses and attention, and of their backward operators: rules by `lower="name"`, as in `rules`.

Each is written as reductions and element-wise steps over rows; fusion makes one kernel of them where rows stay in cache.
"""

from __future__ import annotations

import math

from ..core import dtype as dtypes
from ..core.geometry import broadcast_shapes, wrap_dim
from ..graph.node import Node
from .elements import ELEMENTS as o
from .elements import Element, Unlowerable
from .expressions import cast, const, index, make
from .loops import Value
from .lower import Lowering, rule
from .rules import moments, product, result, scatter_add, store, wide

NONE, MEAN = 0, 1  # of a loss's `reduction`


# ---- softmax
def _axis(x: Value, dim: int) -> list[int]:
    if not x.shape:
        raise Unlowerable("softmax of a number")
    return [wrap_dim(dim, len(x.shape))]


@rule("softmax")
def softmax(b: Lowering, node: Node, x, dim, *_):
    axis, d = _axis(x, dim), wide(x.dtype)
    top = b.reduce("max", [x], lambda e: e, axis, d)
    powers = b.pointwise(lambda e, m: o.exp(e - m), x, top, dtype=d)
    total = b.reduce("sum", [powers], lambda e: e, axis, d)
    out = result(b, node)
    rank = len(out.shape)
    return b.fill(out, (b.element(powers, rank) / b.element(total, rank)).expr)


@rule("log_softmax")
def log_softmax(b: Lowering, node: Node, x, dim, *_):
    axis, d = _axis(x, dim), wide(x.dtype)
    top = b.reduce("max", [x], lambda e: e, axis, d)
    total = b.reduce("sum", [x, top], lambda e, m: o.exp(e - m), axis, d)
    out = result(b, node)
    rank = len(out.shape)
    e, m, s = (b.element(v, rank) for v in (x, top, total))
    return b.fill(out, ((e - m) - o.log(s)).expr)


@rule("softmax_backward")
def softmax_backward(b: Lowering, node: Node, g, y, dim, d):
    axis = _axis(y, dim)
    total = b.reduce("sum", [g, y], lambda p, q: p * q, axis, wide(y.dtype))
    out = result(b, node)
    rank = len(out.shape)
    p, q, t = (b.element(v, rank) for v in (g, y, total))
    return b.fill(out, (q * (p - t)).expr)


@rule("log_softmax_backward")
def log_softmax_backward(b: Lowering, node: Node, g, y, dim, d):
    axis = _axis(y, dim)
    total = b.reduce("sum", [g], lambda p: p, axis, wide(y.dtype))
    out = result(b, node)
    rank = len(out.shape)
    p, q, t = (b.element(v, rank) for v in (g, y, total))
    return b.fill(out, (p - o.exp(q) * t).expr)


# ---- layer norm
@rule("layer_norm")
def layer_norm(b: Lowering, node: Node, x, shape, weight, bias, eps):
    rank = len(x.shape)
    axes = list(range(rank - len(shape), rank))
    n = math.prod(shape)
    if not x.numel:
        raise Unlowerable("a norm of nothing")
    mean, squares = moments(b, x, axes)
    rstd = b.pointwise(lambda s: 1 / o.sqrt(s / float(n) + eps), squares)
    out = result(b, node, 0)
    e = (b.element(x, rank) - b.element(mean, rank)) * b.element(rstd, rank)
    if weight is not None:
        e = e * b.element(weight, rank)
    if bias is not None:
        e = e + b.element(bias, rank)
    b.fill(out, e.expr)
    return out, _as(b, node, 1, mean), _as(b, node, 2, rstd)


def _as(b: Lowering, node: Node, which: int, v: Value) -> Value:
    t = node.meta["val"][which]
    return v if v.dtype is t.dtype else store(b, result(b, node, which), v)


@rule("layer_norm_backward")
def layer_norm_backward(b: Lowering, node: Node, g, x, shape, mean, rstd, weight, bias, mask):
    rank, d = len(x.shape), wide(x.dtype)
    axes, outer = list(range(rank - len(shape), rank)), list(range(rank - len(shape)))
    n = math.prod(shape)
    if not x.numel:
        raise Unlowerable("a norm of nothing")

    def scaled(p, *w):
        return p * w[0] if w else p

    extra = [] if weight is None else [weight]
    made: list = [None, None, None]
    if mask[0]:
        total = b.reduce("sum", [g, x, *extra], lambda p, q, *w: scaled(p, *w), axes, d)
        along = b.reduce(
            "sum", [g, x, mean, rstd, *extra], lambda p, q, m, r, *w: scaled(p, *w) * ((q - m) * r), axes, d
        )
        p, q, m, r, t, a = (b.element(v, rank) for v in (g, x, mean, rstd, total, along))
        p = p if weight is None else p * b.element(weight, rank)
        e = ((p - t / float(n)) - ((q - m) * r) * (a / float(n))) * r
        made[0] = b.fill(result(b, node, 0), e.expr)
    if mask[1]:
        sums = b.reduce("sum", [g, x, mean, rstd], lambda p, q, m, r: p * ((q - m) * r), outer, d, keepdim=False)
        made[1] = _as(b, node, 1, sums)
    if mask[2]:
        made[2] = _as(b, node, 2, b.reduce("sum", [g, x], lambda p, q: p, outer, d, keepdim=False))
    return tuple(made)


# ---- batch norm
def _channel(v: Value | None, rank: int) -> Value | None:
    """One number per channel, placed to broadcast."""
    if v is None:
        return None
    return Value(v.buffer, [1, v.shape[0], *[1] * (rank - 2)], [0, v.strides[0], *[0] * (rank - 2)], v.offset)


@rule("batch_norm")
def batch_norm(b: Lowering, node: Node, x, weight, bias, running_mean, running_var, training, momentum, eps):
    rank, d = len(x.shape), wide(x.dtype)
    functional = len(node.meta["val"]) == 5
    if not training and not functional:
        return _trained_batch_norm(b, node, x, weight, bias, running_mean, running_var, eps)
    if not training or not x.numel or rank < 2 or x.dtype is not d or running_mean is not None and not functional:
        raise Unlowerable("batch norm that writes running statistics, or has none of the batch")
    axes = [0, *range(2, rank)]
    n = math.prod(x.shape[k] for k in axes)
    mean, squares = moments(b, x, axes)
    rstd = b.pointwise(lambda s: 1 / o.sqrt(s / float(n) + eps), squares)
    e = (b.element(x, rank) - b.element(mean, rank)) * b.element(rstd, rank)
    if weight is not None:
        e = e * b.element(_channel(weight, rank), rank)
    if bias is not None:
        e = e + b.element(_channel(bias, rank), rank)
    out = b.fill(result(b, node, 0), e.expr)
    flat = [Value(v.buffer, (x.shape[1],)) for v in (mean, rstd, squares)]
    made = [out, flat[0], flat[1]]
    if functional:
        unbiased = 1.0 / (n - 1) if n > 1 else math.nan
        made.append(b.pointwise(lambda r, m: r * (1 - momentum) + m * momentum, running_mean, flat[0]))
        made.append(b.pointwise(lambda r, s: r * (1 - momentum) + s * (unbiased * momentum), running_var, flat[2]))
    return tuple(made)


def _trained_batch_norm(b: Lowering, node: Node, x, weight, bias, running_mean, running_var, eps):
    """By the running statistics; nothing else comes out."""
    rank = len(x.shape)
    if running_mean is None or running_var is None or x.dtype is not wide(x.dtype):
        raise Unlowerable("batch norm in low precision")
    mean, variance = (b.element(_channel(v, rank), rank) for v in (running_mean, running_var))
    e = (b.element(x, rank) - mean) * (1 / o.sqrt(variance + eps))
    if weight is not None:
        e = e * b.element(_channel(weight, rank), rank)
    if bias is not None:
        e = e + b.element(_channel(bias, rank), rank)
    if any(t.array.size for t in node.meta["val"][1:]):
        raise Unlowerable("batch norm that keeps statistics")
    return b.fill(result(b, node, 0), e.expr), result(b, node, 1), result(b, node, 2)


@rule("batch_norm_backward")
def batch_norm_backward(b: Lowering, node: Node, g, x, weight, rm, rv, mean, rstd, training, eps, mask):
    rank, d = len(x.shape), wide(x.dtype)
    if not training or not x.numel or x.dtype is not d or mean is None or rstd is None:
        raise Unlowerable("batch norm without statistics of the batch")
    axes = [0, *range(2, rank)]
    n = math.prod(x.shape[k] for k in axes)
    mean, rstd = _channel(mean, rank), _channel(rstd, rank)
    total = b.reduce("sum", [g, x], lambda p, q: p, axes, d)
    along = b.reduce("sum", [g, x, mean, rstd], lambda p, q, m, r: p * ((q - m) * r), axes, d)
    made: list = [None, None, None]
    if mask[0]:
        p, q, m, r, t, a = (b.element(v, rank) for v in (g, x, mean, rstd, total, along))
        e = ((p - t / float(n)) - ((q - m) * r) * (a / float(n))) * r
        e = e if weight is None else e * b.element(_channel(weight, rank), rank)
        made[0] = b.fill(result(b, node, 0), e.expr)
    made[1] = Value(along.buffer, (x.shape[1],)) if mask[1] else None
    made[2] = Value(total.buffer, (x.shape[1],)) if mask[2] else None
    return tuple(made)


# ---- losses
def _picked(b: Lowering, x: Value, target: Value, ignore: int):
    """(score of the target class as a load, whether it counts) in loops over the rows of a matrix."""
    at = cast(target.element(), dtypes.int64)
    counts = make("not_equal", dtypes.bool, at, const(ignore, dtypes.int64))
    safe = make("where", dtypes.int64, counts, at, const(0, dtypes.int64))
    score = make("load", x.dtype, x.buffer, x.offset, (x.strides[0],), ((safe, x.strides[1], x.shape[1]),))
    return cast(score, wide(x.dtype)), counts, safe


@rule("nll")
def nll(b: Lowering, node: Node, x, target, weight, reduction, ignore):
    if weight is not None or len(x.shape) != 2 or not x.numel or x.dtype is not wide(x.dtype):
        raise Unlowerable("a weighted loss, or one of no rows")
    d = x.dtype
    score, counts, _ = _picked(b, x, target, ignore)
    zero = const(0.0, d)
    each = b.fill(b.blank(target.shape, d), make("where", d, counts, make("negative", d, score), zero))
    if reduction == NONE:
        return each, b.fill(result(b, node, 1), zero)
    total = b.reduce("sum", [each], lambda e: e, [0], dtypes.float64, keepdim=False)
    counted = b.blank(target.shape, dtypes.float64)
    b.fill(counted, make("where", dtypes.float64, counts, const(1.0, dtypes.float64), const(0.0, dtypes.float64)))
    number = b.reduce("sum", [counted], lambda e: e, [0], dtypes.float64, keepdim=False)
    out = b.pointwise(lambda t, c: t / c if reduction == MEAN else t, total, number, dtype=d)
    return out, store(b, result(b, node, 1), number, lambda e: o.cast(e, d))


@rule("nll_backward")
def nll_backward(b: Lowering, node: Node, g, x, target, weight, reduction, ignore, total):
    if weight is not None or len(x.shape) != 2 or not x.numel or x.dtype is not wide(x.dtype):
        raise Unlowerable("a weighted loss, or one of no rows")
    d, out = x.dtype, result(b, node)
    at = cast(target.unsqueeze(1).element(2), dtypes.int64)
    chosen = make("equal", dtypes.bool, at, index(1))
    counts = make("not_equal", dtypes.bool, at, const(ignore, dtypes.int64))
    scale = b.element(g if reduction != NONE else g.unsqueeze(1), 2)
    scale = -scale / b.element(total, 2) if reduction == MEAN else -scale
    here = make("logical_and", dtypes.bool, chosen, counts)
    return b.fill(out, make("where", d, here, scale.expr, const(0.0, d)))


@rule("loss")
def loss(b: Lowering, node: Node, x, target, reduction, *rest):
    """A loss whose kernel, unreduced, is element-wise."""
    shape = broadcast_shapes(x.shape, target.shape)
    d, rank = node.meta["val"].dtype, len(shape)
    made = node.target.kernel(o, Element(x.element(rank)), Element(target.element(rank)), NONE, *rest)
    if reduction == NONE:
        return b.fill(result(b, node), made.expr)
    each = b.fill(b.blank(shape, wide(d)), made.expr)
    total = b.reduce("sum", [each], lambda e: e, range(rank), wide(d), keepdim=False)
    n = math.prod(shape)
    return store(b, result(b, node), total, lambda e: e / float(n) if reduction == MEAN and n else e)


# ---- attention
def _scores(b: Lowering, q: Value, k: Value, mask, causal: bool, scale: float) -> Value:
    """Masked, scaled scores: written once, by the product; what reads them adds scale and mask."""
    raw = product(b, q, k.swap())
    rank = len(raw.shape)
    e = b.element(raw, rank) * scale
    low = const(-math.inf, raw.dtype)
    if causal:
        seen = make("less_equal", dtypes.bool, index(rank - 1), index(rank - 2))
        e = Element(make("where", raw.dtype, seen, e.expr, low))
    if mask is not None:
        m = mask.element(rank)
        e = (
            Element(make("where", raw.dtype, m, e.expr, low))
            if mask.dtype is dtypes.bool
            else e + o.cast(Element(m), raw.dtype)
        )
    return b.fill(b.blank(raw.shape, raw.dtype), e.expr)


def _scale(q: Value, scale) -> float:
    return 1.0 / math.sqrt(max(q.shape[-1], 1)) if scale is None else scale


@rule("attention")
def attention(b: Lowering, node: Node, q, k, v, dropout, causal, mask, scale):
    d = wide(q.dtype)
    if dropout or not q.numel or not k.numel or q.dtype is not d:
        raise Unlowerable("attention with dropout, in low precision, or of nothing")
    scores = _scores(b, q, k, mask, causal, _scale(q, scale))
    axis = [len(scores.shape) - 1]
    top = b.reduce("max", [scores], lambda e: e, axis, d)
    top = b.pointwise(lambda e: o.where(e == -math.inf, 0.0, e), top)
    powers = b.pointwise(lambda e, m: o.exp(e - m), scores, top, dtype=d)
    total = b.reduce("sum", [powers], lambda e: e, axis, d)
    weights = b.pointwise(lambda e, t: o.where(t == 0, 0.0, e / t), powers, total)
    lse = b.pointwise(lambda t, m: o.log(t) + m, total, top)
    out = _rounded_to(b, node, 0, product(b, weights, v))
    return out, Value(lse.buffer, lse.shape[:-1])


def _rounded_to(b: Lowering, node: Node, which: int, made: Value) -> Value:
    t = node.meta["val"][which]
    return made if made.dtype is t.dtype else store(b, result(b, node, which), made)


@rule("attention_backward")
def attention_backward(b: Lowering, node: Node, g, q, k, v, out, lse, dropout, causal, mask, scale):
    d = wide(q.dtype)
    if dropout or not q.numel or not k.numel or q.dtype is not d or not g.numel:
        raise Unlowerable("attention with dropout, in low precision, or of nothing")
    factor = _scale(q, scale)
    scores = _scores(b, q, k, mask, causal, factor)
    rank = len(scores.shape)
    lse = lse.unsqueeze(rank - 1)
    weights = b.pointwise(lambda e, m: o.exp(e - o.where(m == -math.inf, math.inf, m)), scores, lse)
    dots = b.reduce("sum", [g, out], lambda p, q: p * q, [rank - 1], d)
    d_weights = product(b, g, v.swap())
    d_scores = b.pointwise(lambda w, e, t: (e - t) * w * factor, weights, d_weights, dots)
    made = product(b, d_scores, k), product(b, d_scores.swap(), q), product(b, weights.swap(), g)
    return tuple(_rounded_to(b, node, n, m) for n, m in enumerate(made))


__all__ = ["scatter_add"]
