"""Reductions of segments: runs along an axis whose lengths (or offsets) are given, one row of them an outer row."""

from __future__ import annotations

import math

from ...core.geometry import wrap_dim
from ..family.base import operator
from ..system.operator import NOT_IMPLEMENTED, Spec
from ..system.precision import rounded, wide
from .reductions import HIDDEN, not_implemented

_STARTS = {"sum": 0.0, "mean": 0.0, "max": -math.inf, "min": math.inf, "prod": 1.0}
_NAMES = {"amax": "max", "amin": "min"}


def _check(data, reduce, lengths, indices, offsets, axis, unsafe, initial):
    axis = wrap_dim(axis, data._array.ndim)
    if _NAMES.get(reduce, reduce) not in _STARTS:
        raise RuntimeError(f"reduce argument must be either sum, prod, mean, amax or amin, got {reduce}")
    if indices is not None:
        raise RuntimeError("segment_reduce(): indices based reduction is not supported yet.")
    given = lengths if lengths is not None else offsets
    if given is None:
        raise RuntimeError("segment_reduce(): Either lengths or offsets must be defined.")
    if axis != given._array.ndim - 1:
        raise RuntimeError(
            "segment_reduce(): Expected axis to be the last dimension of lengths but got " + str(axis) + "."
        )
    if not data.dtype.is_floating_point:
        raise not_implemented("_segment_reduce_cpu", data.dtype)


def _bounds(xp, lengths, offsets, axis: int, n: int, unsafe: bool):
    """(outer rows, segments + 1): where segments start and end."""
    if offsets is not None:
        return offsets.reshape(-1, offsets.shape[-1])
    rows = lengths.reshape(-1, lengths.shape[-1])
    if not unsafe:
        if (rows < 0).any():
            raise RuntimeError("segment_reduce(): lengths contains negative value!")
        if (rows.sum(axis=1) != n).any():
            raise RuntimeError(
                "segment_reduce(): Expected all rows of lengths along axis to sum to data.size(lengths.dim()-1) when "
                "!unsafe."
            )
    return xp.concatenate([xp.zeros((rows.shape[0], 1), xp.int64), xp.cumsum(rows, axis=1)], axis=1)


def _rows(a, axis: int):
    return a.reshape(math.prod(a.shape[:axis]), a.shape[axis], math.prod(a.shape[axis + 1 :]))


def _reduce(xp, kind: str, part, initial):
    start = _STARTS[kind] if initial is None else initial
    if not part.shape[0]:
        return xp.full(part.shape[1:], math.nan if kind == "mean" and initial is None else start, part.dtype)
    if kind in ("sum", "mean"):
        return (part.sum(axis=0) + part.dtype.type(start)) / (part.shape[0] if kind == "mean" else 1)
    if kind == "prod":
        return part.prod(axis=0) * part.dtype.type(start)
    pick = xp.maximum if kind == "max" else xp.minimum
    return pick(pick.reduce(part, axis=0), part.dtype.type(start))


def _forward(xp, data, reduce, lengths, indices, offsets, axis, unsafe, initial):
    axis = wrap_dim(axis, data.ndim)
    kind, rows = _NAMES.get(reduce, reduce), _rows(wide(xp, data), axis)
    bounds = _bounds(xp, lengths, offsets, axis, rows.shape[1], unsafe)
    out = xp.empty((rows.shape[0], bounds.shape[1] - 1, rows.shape[2]), rows.dtype)
    for i in range(rows.shape[0]):
        for j in range(out.shape[1]):
            out[i, j] = _reduce(xp, kind, rows[i, bounds[i, j] : bounds[i, j + 1]], initial)
    return rounded(out.reshape((*data.shape[:axis], out.shape[1], *data.shape[axis + 1 :])), data.dtype)


def _part_gradient(xp, kind: str, g, out, part, initial):
    if kind == "sum":
        return xp.broadcast_to(g, part.shape)
    if kind == "mean":
        return xp.broadcast_to(g / part.shape[0], part.shape)
    if kind in ("max", "min"):
        hit = (part == out) | ((part != part) & (out != out))
        return hit * (g / xp.maximum(hit.sum(axis=0), 1))
    start = part.dtype.type(1 if initial is None else initial)
    others = [start * xp.delete(part, k, axis=0).prod(axis=0) for k in range(part.shape[0])]
    return g * xp.stack(others)


def _backward(xp, grad, output, data, reduce, lengths, offsets, axis, initial):
    axis = wrap_dim(axis, data.ndim)
    kind, rows = _NAMES.get(reduce, reduce), _rows(wide(xp, data), axis)
    g, out = _rows(wide(xp, grad), axis), _rows(wide(xp, output), axis)
    bounds = _bounds(xp, lengths, offsets, axis, rows.shape[1], True)
    result = xp.zeros(rows.shape, rows.dtype)
    for i in range(rows.shape[0]):
        for j in range(out.shape[1]):
            part = slice(int(bounds[i, j]), int(bounds[i, j + 1]))
            if part.start < part.stop:
                result[i, part] = _part_gradient(xp, kind, g[i, j], out[i, j], rows[i, part], initial)
    return rounded(result.reshape(data.shape), data.dtype)


segment_reduce_backward = operator(
    "_segment_reduce_backward(Tensor grad, Tensor output, Tensor data, str reduce, *, Tensor? lengths=None, "
    "Tensor? offsets=None, int axis=0, Scalar? initial=None) -> Tensor",
    kernel=_backward,
    meta=lambda grad, output, data, *rest: Spec(data._array.shape, data.dtype),
    vjp={"grad": NOT_IMPLEMENTED, "data": NOT_IMPLEMENTED},
    **HIDDEN,
)


def _meta(data, reduce, lengths, indices, offsets, axis, unsafe, initial):
    count = lengths._array.shape[-1] if lengths is not None else offsets._array.shape[-1] - 1
    axis = wrap_dim(axis, data._array.ndim)
    return Spec((*data._array.shape[:axis], count, *data._array.shape[axis + 1 :]), data.dtype)


segment_reduce = operator(
    "segment_reduce(Tensor data, str reduce, *, Tensor? lengths=None, Tensor? indices=None, Tensor? offsets=None, "
    "int axis=0, "
    "bool unsafe=False, Scalar? initial=None) -> Tensor",
    kernel=_forward,
    check=_check,
    meta=_meta,
    method=False,
    vjp={
        "data": lambda g, out, data, reduce, lengths, offsets, axis, initial: segment_reduce_backward(
            g, out, data, reduce, lengths=lengths, offsets=offsets, axis=axis, initial=initial
        )
    },
)
