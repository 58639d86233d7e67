"""Attention on arrays, some rows of queries at a time: the matrix of all scores never exists at once.

Arrays come as (batch, heads, length, size); the mask, if any, broadcasts against (batch, heads, queries, keys). Out
come the result and the logarithm of each row's softmax denominator, from which the backward makes each block of weights
again. A row that may see nothing gives zeros.
"""

from __future__ import annotations

BLOCK = 1 << 21  # scores that exist at a time


def _block_rows(query, key) -> int:
    """How many query rows a block takes."""
    across = max(query.shape[0] * query.shape[1] * key.shape[2], 1)
    return max(BLOCK // across, 16)


def _scores(xp, query, key, mask, first: int, last: int, is_causal: bool, scale: float):
    """Masked, scaled scores of the query rows first..last."""
    scores = xp.matmul(query[:, :, first:last], key.swapaxes(2, 3))
    scores *= scale
    if is_causal:
        rows = xp.arange(first, min(last, query.shape[2]))[:, None]
        scores[:, :, xp.arange(key.shape[2])[None, :] > rows] = -xp.inf
    if mask is not None:
        part = mask if mask.ndim < 2 or mask.shape[-2] == 1 else mask[..., first:last, :]
        if part.dtype == bool:
            scores = xp.where(part, scores, xp.asarray(-xp.inf, dtype=scores.dtype))
        else:
            scores += part
    return scores


def forward(xp, query, key, value, mask, is_causal: bool, scale: float):
    """(result, log-sum-exp of each row)."""
    batch, heads, length, _ = query.shape
    out = xp.zeros((batch, heads, length, value.shape[3]), dtype=query.dtype)
    lse = xp.full((batch, heads, length), -xp.inf, dtype=query.dtype)
    if not key.shape[2] or not out.size:
        return out, lse
    step = _block_rows(query, key)
    for first in range(0, length, step):
        last = first + step
        scores = _scores(xp, query, key, mask, first, last, is_causal, scale)
        top = scores.max(axis=-1, keepdims=True)
        top[top == -xp.inf] = 0
        scores -= top
        xp.exp(scores, out=scores)
        total = scores.sum(axis=-1, keepdims=True)
        lse[:, :, first:last] = (xp.log(total) + top)[..., 0]
        total[total == 0] = 1
        made = xp.matmul(scores, value)
        made /= total
        out[:, :, first:last] = made
    return out, lse


def backward(xp, g, query, key, value, out, lse, mask, is_causal: bool, scale: float):
    """Gradients of query, key and value."""
    d_query, d_key, d_value = xp.zeros_like(query), xp.zeros_like(key), xp.zeros_like(value)
    if not key.shape[2] or not g.size:
        return d_query, d_key, d_value
    dots = (g * out).sum(axis=-1, keepdims=True)
    finite = xp.where(lse == -xp.inf, xp.inf, lse)[..., None]  # rows that see nothing have weights of zero
    step = _block_rows(query, key)
    for first in range(0, query.shape[2], step):
        rows = slice(first, first + step)
        weights = _scores(xp, query, key, mask, first, first + step, is_causal, scale)
        weights -= finite[:, :, rows]
        xp.exp(weights, out=weights)
        d_value += xp.matmul(weights.swapaxes(2, 3), g[:, :, rows])
        d_scores = xp.matmul(g[:, :, rows], value.swapaxes(2, 3))
        d_scores -= dots[:, :, rows]
        d_scores *= weights
        d_scores *= scale
        d_query[:, :, rows] = xp.matmul(d_scores, key)
        d_key += xp.matmul(d_scores.swapaxes(2, 3), query[:, :, rows])
    return d_query, d_key, d_value
