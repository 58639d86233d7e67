"""Attention on arrays, some rows of queries at a time: the matrix of all scores never exists at once.

Arrays come as (batch, heads, length, size); the mask, if any, broadcasts against (batch, heads, queries, keys). Out come
the result and the logarithm of each row's softmax denominator, from which the backward makes each block of weights
again. A row that may see nothing gives zeros. A causal block multiplies only with the keys that it may see.
"""

from __future__ import annotations

import numpy

from ...runtime import network

BLOCK = 1 << 21  # scores that exist at a time
DEVICE_BLOCK = 1 << 28  # the same on a CUDA device, where many small calls cost more than memory


def _block_rows(xp, query, key) -> int:
    """How many query rows a block takes."""
    across = max(query.shape[0] * query.shape[1] * key.shape[2], 1)
    return max((BLOCK if xp.__name__ == "numpy" else DEVICE_BLOCK) // across, 16)


def _scores(xp, query, key, mask, first: int, is_causal: bool, scale: float):
    """Masked, scaled scores of query rows that start at `first`."""
    scores = xp.matmul(query, key.swapaxes(2, 3))
    scores *= scale
    if is_causal:
        rows = xp.arange(first, first + query.shape[2])[:, None]
        future = xp.arange(key.shape[2])[None, :] > rows
        if xp.__name__ == "numpy":
            scores[:, :, future] = -xp.inf
        else:
            scores = xp.where(future, scores.dtype.type(-xp.inf), scores)
    if mask is None:
        return scores
    if mask.ndim >= 2 and mask.shape[-2] != 1:
        mask = mask[..., first : first + query.shape[2], :]
    if mask.dtype == bool:
        return xp.where(mask, scores, xp.asarray(-xp.inf, dtype=scores.dtype))
    scores += mask
    return scores


def _seen(last: int, span: int, is_causal: bool) -> slice:
    """The keys that rows before `last` may see at all."""
    return slice(0, min(last, span)) if is_causal else slice(0, span)


def forward(xp, query, key, value, mask, is_causal: bool, scale: float, out=None):
    """(result, log-sum-exp of each row). `out`: zeros for the result, in the order of memory that it is to have."""
    out = xp.zeros((*query.shape[:3], value.shape[3]), dtype=query.dtype) if out is None else out
    lse = xp.full(query.shape[:3], -xp.inf, dtype=query.dtype)
    if xp is numpy and network.attention(query, key, value, mask, out, lse, is_causal, scale):
        return out, lse
    step, span = _block_rows(xp, query, key), key.shape[2]
    for first in range(0, query.shape[2], step) if span and out.size else ():
        rows, keys = slice(first, first + step), _seen(first + step, span, is_causal)
        scores = _scores(xp, query[:, :, rows], key[:, :, keys], mask, first, is_causal, scale)
        top = scores.max(axis=-1, keepdims=True)
        top[top == -xp.inf] = 0
        scores -= top
        xp.exp(scores, out=scores)
        total = scores.sum(axis=-1, keepdims=True)
        lse[:, :, rows] = (xp.log(total) + top)[..., 0]
        total[total == 0] = 1
        result = xp.matmul(scores, value[:, :, keys])
        result /= total
        out[:, :, rows] = result
    return out, lse


def backward(xp, g, query, key, value, out, lse, mask, is_causal: bool, scale: float):
    """Gradients of query, key and value."""
    d_query, d_key, d_value = (xp.zeros(t.shape, t.dtype) for t in (query, key, value))
    if not key.shape[2] or not g.size:
        return d_query, d_key, d_value
    results = (d_query, d_key, d_value)
    if xp is numpy and network.attention_backward(g, query, key, value, out, lse, mask, results, is_causal, scale):
        return results
    dots = (g * out).sum(axis=-1, keepdims=True)
    finite = xp.where(lse == -xp.inf, xp.inf, lse)[..., None]  # rows that see nothing have weights of zero
    step, span = _block_rows(xp, query, key), key.shape[2]
    for first in range(0, query.shape[2], step):
        rows, keys = slice(first, first + step), _seen(first + step, span, is_causal)
        weights = _scores(xp, query[:, :, rows], key[:, :, keys], mask, first, is_causal, scale)
        weights -= finite[:, :, rows]
        xp.exp(weights, out=weights)
        d_value[:, :, keys] += xp.matmul(weights.swapaxes(2, 3), g[:, :, rows])
        d_scores = xp.matmul(g[:, :, rows], value[:, :, keys].swapaxes(2, 3))
        d_scores -= dots[:, :, rows]
        d_scores *= weights
        d_scores *= scale
        d_query[:, :, rows] = xp.matmul(d_scores, key[:, :, keys])
        d_key[:, :, keys] += xp.matmul(d_scores.swapaxes(2, 3), query[:, :, rows])
    return d_query, d_key, d_value
