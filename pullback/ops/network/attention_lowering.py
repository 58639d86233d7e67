"""Loops of attention: products by BLAS, and the softmax between them."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from ...core import dtype as dtypes
from ..lowering import NotLowerable

if TYPE_CHECKING:
    from ..lowering.builder import Builder
    from ..lowering.loops import Value

REFUSED = NotLowerable("attention with dropout, or of nothing")
LONG = 1 << 18  # scores of a head; on the CPU, the operator itself does not hold more of them at once
TOO_LONG = NotLowerable("attention over long sequences: its operator never holds all scores")


def _scores(b: Builder, q: Value, k: Value, mask: Value | None, causal: bool, scale: float) -> Value:
    """Masked, scaled scores: written once, by the product; what reads them adds scale and mask."""
    raw = b.product(q, k.swap())
    rank = len(raw.shape)
    e = b.element(raw, rank) * scale
    if causal:
        e = b.o.where(b.index(rank - 1) <= b.index(rank - 2), e, -math.inf)
    if mask is not None:
        m = b.raw(mask, rank)
        e = b.o.where(m, e, -math.inf) if mask.dtype is dtypes.bool else e + b.o.cast(m, raw.dtype)
    return b.fill(b.blank(raw.shape, raw.dtype), e)


def _scale(q: Value, scale) -> float:
    return 1.0 / math.sqrt(max(q.shape[-1], 1)) if scale is None else scale


def _is_long(b: Builder, q: Value, k: Value) -> bool:
    return q.shape[-2] * k.shape[-2] > LONG and b.fakes[0].device.type == "cpu"


def lower_attention(b: Builder, q: Value, k: Value, v: Value, dropout, causal, mask, scale):
    o, d = b.o, b.wide(q.dtype)
    if dropout or not q.numel or not k.numel:
        return REFUSED
    whole = b.attention(q, k, v, causal, _scale(q, scale)) if mask is None else None
    if whole is not None:
        return whole
    if _is_long(b, q, k):
        return TOO_LONG
    scores = _scores(b, q, k, mask, causal, _scale(q, scale))
    axis = [len(scores.shape) - 1]
    top = b.reduce("max", [scores], lambda e: e, axis, d)
    top = b.pointwise(lambda e: o.where(e == -math.inf, 0.0, e), top)
    powers = b.pointwise(lambda e, m: o.exp(e - m), scores, top, dtype=d)
    total = b.reduce("sum", [powers], lambda e: e, axis, d)
    weights = b.pointwise(lambda e, t: o.where(t == 0, 0.0, e / t), powers, total, dtype=b.operand(v.dtype))
    lse = b.pointwise(lambda t, m: o.log(t) + m, total, top)
    return b.returned(b.product(weights, v, b.spec(0)), 0), lse.window(lse.shape[:-1])


def lower_attention_backward(b: Builder, g: Value, q, k, v, out, lse, dropout, causal, mask, scale):
    o, d = b.o, b.wide(q.dtype)
    if dropout or not q.numel or not k.numel or not g.numel:
        return REFUSED
    factor = _scale(q, scale)
    whole = b.attention_backward(g, q, k, v, out, lse, causal, factor) if mask is None else None
    if whole is not None:
        return whole
    if _is_long(b, q, k):
        return TOO_LONG
    scores = _scores(b, q, k, mask, causal, factor)
    rank = len(scores.shape)
    lse = lse.unsqueeze(rank - 1)
    weights = b.pointwise(
        lambda e, m: o.exp(e - o.where(m == -math.inf, math.inf, m)), scores, lse, dtype=b.operand(g.dtype)
    )
    dots = b.reduce("sum", [g, out], lambda p, q: p * q, [rank - 1], d)
    d_weights = b.product(g, v.swap())
    d_scores = b.pointwise(lambda w, e, t: (e - t) * w * factor, weights, d_weights, dots, dtype=b.operand(q.dtype))
    pairs = (d_scores, k), (d_scores.swap(), q), (weights.swap(), g)
    return tuple(b.returned(b.product(*pair, b.spec(n)), n) for n, pair in enumerate(pairs))
