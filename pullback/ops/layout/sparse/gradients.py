"""Sparse gradients: of table look-ups and of `gather`, and how the engine keeps and adds them.

Comes in: gradients of rows (or elements) and the indices they belong to. Goes out: a COO gradient of the table's shape,
uncoalesced. `take_over` says when a leaf may keep a gradient's memory instead of a copy.
"""

from __future__ import annotations

from ....core.arrays import library
from ....core.layers import above
from ....core.tensor import FAKE, META, Tensor
from ...system.dispatch import dispatch
from ...system.operator import NoShapeRule
from .construct import coo_from_parts
from .convert import as_tensor
from .layouts import is_coo


def _from_parts(indices: Tensor, values: Tensor, shape: tuple, owned: bool = False) -> Tensor:
    result = dispatch(
        coo_from_parts,
        (indices.shape[0], values.ndim - 1, tuple(shape), indices, values, None, None, None, None, False),
    )
    result._array.fresh = owned
    return result


def embedding_gradient(
    g: Tensor, indices: Tensor, rows: int, padding_idx: int, scale_grad_by_freq: bool, owned: bool = False
) -> Tensor:
    """The gradient of a table of `rows` rows, a sparse row per look-up; `owned`: nobody else holds `g`."""
    if scale_grad_by_freq:
        raise RuntimeError("embedding_backward: scale_grad_by_freq not supported with sparse gradients")
    flat = indices.detach().reshape(-1)
    features = g.shape[-1]
    values = g.reshape(flat.shape[0], features)  # not -1: there may be no features
    if padding_idx >= 0:
        keep = (flat != padding_idx).nonzero().reshape(-1)
        flat, values, owned = flat.index_select(0, keep), values.index_select(0, keep), True
    return _from_parts(flat.long().unsqueeze(0).contiguous(), values.contiguous(), (rows, features), owned)


def gather_gradient(g: Tensor, shape: tuple, dim: int, index: Tensor) -> Tensor:
    """The gradient of `gather(self, dim, index)`, one sparse element per element of the result."""
    if not shape:
        return _from_parts(index.new_zeros((0, max(index.numel(), 1))).long(), g.reshape(-1), ())
    if index._keys & (FAKE | META):
        raise NoShapeRule("the sparse gradient of gather() is not implemented for tensors without data")
    index = index.detach().reshape(1) if not index.ndim else index.detach()
    xp, d = library(g.device), dim % len(shape)
    places = xp.indices(index._array.shape).reshape(index.ndim, -1).astype(xp.int64)
    places[d] = index._array.reshape(-1)
    return _from_parts(as_tensor(places, index), g.reshape(-1), shape)


def take_over(g: Tensor) -> Tensor:
    """A sparse gradient for a leaf to keep: the same parts where nobody else has them, else a copy."""
    a = g._array
    parts = (a.indices, a.values) if is_coo(g) else ()
    if is_coo(g) and a.fresh and all(p.is_contiguous() for p in parts):
        a.fresh = False
        return g.shallow()
    return g.detach().clone()


above.sparse_rows = embedding_gradient
above.sparse_elements = gather_gradient
