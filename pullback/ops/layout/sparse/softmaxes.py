"""`sparse.softmax` and `sparse.log_softmax`: elements that are not specified count as minus infinity.

Comes in: a COO tensor and a dimension. Goes out: a COO tensor with the same (coalesced) indices. Along a dense
dimension this is the dense softmax of the values; along a sparse one elements are grouped by their other indices.
"""

from __future__ import annotations

from ....core.arrays import library
from ....core.geometry import wrap_dim
from ....core.tensor import Tensor
from ...system.calls import front
from ...system.dispatch import dispatch
from ...system.operator import NOT_IMPLEMENTED
from . import kernels
from .convert import as_tensor, coalesced
from .layouts import is_coo, wrap_coo
from .masks import masked
from .table import layout_operator, refuse_dense


def _groups(xp, a, dim: int):
    """The group of each element, numbered from 0, and an order that brings groups together, and where they start."""
    rest = [d for d in range(a.sparse_dim) if d != dim]
    keys = kernels.flat_keys(xp, a.indices._array[rest], [a.shape[d] for d in rest])
    order = xp.argsort(keys, kind="stable")
    starts = kernels.group_starts(xp, keys[order])
    group = xp.empty(keys.size, dtype=xp.int64)
    group[order] = xp.cumsum(xp.isin(xp.arange(keys.size), starts)) - 1
    return group, order, starts


def _softmax(t: Tensor, dim: int, log: bool) -> Tensor:
    if not is_coo(t):
        raise refuse_dense("_sparse_log_softmax" if log else "_sparse_softmax", t)
    a, xp = coalesced(t)._array, library(t.device)
    d = wrap_dim(dim, a.ndim)
    if d >= a.sparse_dim:
        axis = d - a.sparse_dim + 1
        values = a.values.log_softmax(axis) if log else a.values.softmax(axis)
        return wrap_coo(a.indices, values, a.shape, True)
    if not a.nnz:
        return wrap_coo(a.indices, a.values, a.shape, True)
    group, order, starts = _groups(xp, a, d)
    values = a.values._array
    with xp.errstate(all="ignore"):
        shifted = values - xp.maximum.reduceat(values[order], starts, axis=0)[group]
        powers = xp.exp(shifted)
        sums = xp.add.reduceat(powers[order], starts, axis=0)[group]
        result = shifted - xp.log(sums) if log else powers / sums
    return wrap_coo(a.indices, as_tensor(result.astype(values.dtype, copy=False), t), a.shape, True)


def _softmax_backward(g: Tensor, out: Tensor, dim: int, log: bool) -> Tensor:
    a, xp = out._array, library(out.device)
    d = wrap_dim(dim, a.ndim)
    incoming = masked(g, out)._array.values._array
    y = a.values._array
    term = incoming if log else incoming * y
    if d >= a.sparse_dim:
        sums = term.sum(axis=d - a.sparse_dim + 1, keepdims=True)
    elif a.nnz:
        group, order, starts = _groups(xp, a, d)
        sums = xp.add.reduceat(term[order], starts, axis=0)[group]
    else:
        sums = term
    result = incoming - xp.exp(y) * sums if log else term - y * sums
    return wrap_coo(a.indices, as_tensor(result.astype(y.dtype, copy=False), out), a.shape, True)


softmax_backward = layout_operator(
    "_sparse_softmax_backward_data(Tensor grad_output, Tensor output, int dim, Tensor self) -> Tensor",
    run=lambda g, out, dim, self: _softmax_backward(g, out, dim, False),
    vjp={"grad_output": NOT_IMPLEMENTED, "output": NOT_IMPLEMENTED},
)
log_softmax_backward = layout_operator(
    "_sparse_log_softmax_backward_data(Tensor grad_output, Tensor output, int dim, Tensor self) -> Tensor",
    run=lambda g, out, dim, self: _softmax_backward(g, out, dim, True),
    vjp={"grad_output": NOT_IMPLEMENTED, "output": NOT_IMPLEMENTED},
)
softmax_op = layout_operator(
    "_sparse_softmax(Tensor self, int dim, bool half_to_float) -> Tensor",
    run=lambda self, dim, half_to_float: _softmax(self, dim, False),
    vjp={"self": lambda g, self, dim, out: dispatch(softmax_backward, (g, out, dim, self))},
)
log_softmax_op = layout_operator(
    "_sparse_log_softmax(Tensor self, int dim, bool half_to_float) -> Tensor",
    run=lambda self, dim, half_to_float: _softmax(self, dim, True),
    vjp={"self": lambda g, self, dim, out: dispatch(log_softmax_backward, (g, out, dim, self))},
)


@front("sparse.softmax", "torch._sparse_softmax")
def sparse_softmax(input, dim, *, dtype=None) -> Tensor:
    return dispatch(softmax_op, (input if dtype is None else input.to(dtype), dim, False))


@front("sparse.log_softmax", "torch._sparse_log_softmax")
def sparse_log_softmax(input, dim, *, dtype=None) -> Tensor:
    return dispatch(log_softmax_op, (input if dtype is None else input.to(dtype), dim, False))
