"""`sparse_mask`: the elements of a tensor at the specified places of another.

Comes in: a tensor of any layout and a sparse mask of the same shape. Goes out: a tensor with the mask's indices and the
first tensor's numbers there, zero where it has none. The mask's numbers do not count and get no gradient.
"""

from __future__ import annotations

from ....core.arrays import library
from ....core.tensor import Tensor
from . import kernels
from .convert import as_tensor, block_counts, cells_of, coalesced, to_coo, to_dense
from .layouts import is_coo, is_sparse, wrap_coo, wrap_sparse
from .table import layout_operator, refuse_dense


def masked(t: Tensor, mask: Tensor) -> Tensor:
    if not is_sparse(mask):
        raise refuse_dense("_nnz", mask)
    if t.shape != mask.shape:
        raise RuntimeError(
            f"sparse_mask(): operands have incompatible sizes; self has size {list(t.shape)} but mask has size "
            f"{list(mask.shape)}"
        )
    return _masked_coo(t, mask) if is_coo(mask) else _masked_compressed(t, mask)


def _masked_coo(t: Tensor, mask: Tensor) -> Tensor:
    a = mask._array
    where = a.indices._array
    kernels.check_range(where, a.shape)
    if not is_sparse(t):
        values = as_tensor(kernels.take_at(where, t._array), t)
    elif is_coo(t) and t._array.sparse_dim != a.sparse_dim:
        values = as_tensor(kernels.take_at(where, to_dense(t)._array), t)
    else:
        values = _look_up(t, where, a.sparse_dim)
    return wrap_coo(a.indices, values, a.shape, a.coalesced)


def _look_up(t: Tensor, where, sparse_dim: int) -> Tensor:
    """Values of a sparse tensor at coordinates; zero where it has none."""
    xp, source = library(t.device), coalesced(to_coo(t, sparse_dim if is_coo(t) else None))._array
    if source.sparse_dim != sparse_dim:
        return as_tensor(kernels.take_at(where, to_dense(t)._array), t)
    keys = kernels.flat_keys(xp, where, source.shape)
    at, there = kernels.find(xp, keys, kernels.flat_keys(xp, source.indices._array, source.shape))
    values = xp.zeros((keys.size, *source.values._array.shape[1:]), dtype=source.values._array.dtype)
    values[there] = source.values._array[at[there]]
    return as_tensor(values, t)


def _masked_compressed(t: Tensor, mask: Tensor) -> Tensor:
    a = mask._array
    blocks = kernels.to_blocks(to_dense(t)._array, a.blocksize or (1, 1), a.batch_dim)
    xp = library(t.device)
    cells = cells_of(mask)
    kernels.check_range(xp.stack(cells), block_counts(a.shape, a.batch_dim, a.blocksize))
    return wrap_sparse(a.with_values(as_tensor(blocks[cells].reshape(a.values._array.shape), t)))


def pattern_of(t: Tensor) -> Tensor:
    """A sparse tensor as the mask of its own gradient: distinct indices, no history."""
    return coalesced(t.detach()) if is_coo(t) else t.detach()


def _mask_grad(g, mask, self_info):
    from .conversion import to_layout

    if not g._keys & 8:
        g = sparse_mask(g, pattern_of(mask))
    return to_layout(g, self_info)


sparse_mask = layout_operator(
    "sparse_mask(Tensor self, Tensor mask) -> Tensor", run=masked, method=True, vjp={"self": _mask_grad}
)
