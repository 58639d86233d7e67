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
LONG = 1 << 14  # scores of a head, from about which on the operator is quicker, on the CPU; it never holds all of them
TOO_LONG = NotLowerable("attention over long sequences: its operator never holds all scores")


def _scores(b: Builder, q: Value, k: Value, mask: Value | None, causal: bool, scale: float, first: int = 0) -> Value:
    """Masked, scaled scores: written once, by the product; what reads them adds scale and mask. `first`: the first query's place."""
    raw = b.product(q, k.swap())
    rank = len(raw.shape)
    e = b.element(raw, rank) * scale
    if causal:
        e = b.o.where(b.index(rank - 1) <= b.index(rank - 2, 1, first), e, -math.inf)
    if mask is not None:
        m = b.raw(mask, rank)
        e = b.o.where(m, e, -math.inf) if mask.dtype is dtypes.bool else e + b.o.cast(m, raw.dtype)
    return b.fill(b.blank(raw.shape, raw.dtype), e)


def _weights(b: Builder, scores: Value, d, into) -> tuple[Value, Value]:
    """(softmax of scores in dtype `into`, logarithms of sums)."""
    o, axis = b.o, [len(scores.shape) - 1]
    top = b.reduce("max", [scores], lambda e: e, axis, d)
    top = b.pointwise(lambda e: o.where(e == -math.inf, 0.0, e), top)
    powers = b.pointwise(lambda e, m: o.exp(e - m), scores, top, dtype=d)
    total = b.reduce("sum", [powers], lambda e: e, axis, d)
    weights = b.pointwise(lambda e, t: o.where(t == 0, 0.0, e / t), powers, total, dtype=into)
    lse = b.pointwise(lambda t, m: o.log(t) + m, total, top)
    return weights, lse.window(lse.shape[:-1])


def _parts(b: Builder, q: Value, k: Value, mask: Value | None, causal: bool) -> list[tuple[int, int]]:
    """(first, last) of queries that are computed together; the keys that they see end with the last."""
    length = q.shape[-2]
    together = b.queries_together(length) if causal and mask is None and k.shape[-2] == length else length
    return [(first, first + together) for first in range(0, length, together)]


def _in_parts(
    b: Builder, q: Value, k: Value, v: Value, parts: list[tuple[int, int]], scale: float
) -> tuple[Value, Value]:
    """Causal attention of a sequence with itself, part by part."""
    out, sums, rows = b.result(0), b.result(1), len(q.shape) - 2
    for first, last in parts:
        seen = [x.narrow(rows, 0, last) for x in (k, v)]
        scores = _scores(b, q.narrow(rows, first, last - first), seen[0], None, True, scale, first)
        weights, lse = _weights(b, scores, b.wide(q.dtype), b.operand(v.dtype))
        b.product_into(out.narrow(rows, first, last - first), weights, seen[1])
        b.store(sums.narrow(rows, first, last - first), lse)
    return out, sums


def _backward_in_parts(
    b: Builder, g: Value, q, k, v, out: Value, lse: Value, parts: list[tuple[int, int]], scale: float
):
    """Gradients of the same: weights and gradients of scores stand whole, of which only what is seen is written and read."""
    o, d, rows = b.o, b.wide(q.dtype), len(q.shape) - 2
    length = q.shape[rows]
    weights, d_scores = (b.blank((*q.shape[:rows], length, length), b.operand(x.dtype)) for x in (g, q))
    results = [b.result(n) for n in range(3)]
    window = lambda x, first, last, seen: x.narrow(rows, first, last - first).narrow(rows + 1, 0, seen)
    for first, last in parts:
        mine = lambda x, first=first, last=last: x.narrow(rows, first, last - first)
        seen = [x.narrow(rows, 0, last) for x in (k, v)]
        scores = _scores(b, mine(q), seen[0], None, True, scale, first)
        level, grad = mine(lse.unsqueeze(rows + 1)), mine(g)
        part = b.store(
            window(weights, first, last, last), b.pointwise(lambda e, m: o.exp(e - m), scores, level, dtype=d)
        )
        dots = b.reduce("sum", [grad, mine(out)], lambda x, y: x * y, [rows + 1], d)
        back = b.product(grad, seen[1].swap())
        e = b.pointwise(lambda w, e, t: (e - t) * w * scale, part, back, dots, dtype=d)
        b.product_into(mine(results[0]), b.store(window(d_scores, first, last, last), e), seen[0])
    for first, last in parts:  # keys, and the queries that see them
        later = lambda x, first=first: x.narrow(rows, first, length - first)
        for whole, source, target in ((d_scores, q, results[1]), (weights, g, results[2])):
            columns = later(whole).narrow(rows + 1, first, last - first)
            b.product_into(target.narrow(rows, first, last - first), columns.swap(), later(source))
    return tuple(results)


def _scale(q: Value, scale) -> float:
    return 1.0 / math.sqrt(max(q.shape[-1], 1)) if scale is None else scale


def _is_long(b: Builder, q: Value, k: Value) -> bool:
    return q.shape[-2] * k.shape[-2] > LONG and b.fakes[0].device.type == "cpu"


def lower_attention(b: Builder, q: Value, k: Value, v: Value, dropout, causal, mask, scale):
    if dropout or not q.numel or not k.numel:
        return REFUSED
    whole = b.attention(q, k, v, causal, _scale(q, scale)) if mask is None else None
    if whole is not None:
        return whole
    if _is_long(b, q, k):
        return TOO_LONG
    parts = _parts(b, q, k, mask, causal)
    if len(parts) > 1:
        return _in_parts(b, q, k, v, parts, _scale(q, scale))
    scores = _scores(b, q, k, mask, causal, _scale(q, scale))
    weights, lse = _weights(b, scores, b.wide(q.dtype), b.operand(v.dtype))
    return b.returned(b.product(weights, v, b.spec(0)), 0), lse


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
    parts = _parts(b, q, k, mask, causal)
    if len(parts) > 1:
        return _backward_in_parts(b, g, q, k, v, out, lse, parts, factor)
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
