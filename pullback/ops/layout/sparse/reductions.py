"""Sums and norms of sparse tensors, and `sparse.sum` with its sparse gradient.

Comes in: a sparse tensor and the dimensions that go. Goes out: dense where no sparse dimension is left, else sparse.
"""

from __future__ import annotations

from ....core.arrays import library
from ....core.geometry import wrap_dims
from ....core.tensor import Tensor
from ...system.calls import front
from ...system.dispatch import dispatch
from ...system.operator import Operator
from .convert import as_tensor, coalesced, convert, to_coo, to_dense
from .layouts import is_compressed, is_coo, is_sparse, layout_name, wrap_coo
from .masks import pattern_of, sparse_mask
from .table import layout_operator, run_dense, sparse_rule


@sparse_rule("sum")
def total(op: Operator, self, *rest):
    if len(rest) < 2:  # sum(Tensor self, *, dtype)
        return self._array.values.sum(dtype=rest[0] if rest else None)
    dim, keepdim, dtype = rest
    if is_compressed(self) and not keepdim:
        raise RuntimeError("reduction operations on CSR tensors with keepdim=False is unsupported")
    result = sum_dims(to_coo(self), range(self.ndim) if not dim else dim, keepdim)
    if dtype is not None:
        result = result.to(dtype)
    if is_sparse(result) and is_compressed(self):
        return convert(result, self.layout)
    return result


def sum_dims(t: Tensor, dims, keepdim: bool = False) -> Tensor:
    """A COO tensor summed over dimensions."""
    a, xp = t._array, library(t.device)
    gone = set(wrap_dims(tuple(dims), a.ndim))
    k = a.sparse_dim
    axes = [d - k + 1 for d in sorted(gone) if d >= k]
    values = a.values.sum(axes, keepdim=keepdim) if axes else a.values
    kept = [d for d in range(k) if d not in gone]
    if not kept and not keepdim:
        return values.sum(0)
    indices = a.indices._array if keepdim else a.indices._array[kept]
    if keepdim:
        indices = indices.copy()
        indices[[d for d in range(k) if d in gone]] = 0
    shape = tuple(1 if d in gone else n for d, n in enumerate(a.shape) if keepdim or d not in gone)
    values = values if values.dtype.category >= 2 or values.dtype.name == "int64" else values.long()
    if len(kept) == k:
        return wrap_coo(a.indices, values, shape, a.coalesced)
    return coalesced(wrap_coo(as_tensor(xp.ascontiguousarray(indices), t), values, shape))


@sparse_rule("norm", "linalg_vector_norm", "any")
def over_values(op: Operator, self, *rest):
    """Reductions of all elements for which zeros count nothing."""
    if any(
        isinstance(r, tuple) and r or isinstance(r, int) and not isinstance(r, bool) and op.name == "any" for r in rest
    ):
        raise RuntimeError(f"{op.name}: a sparse tensor can only be reduced over all of its dimensions")
    source = coalesced(self) if is_coo(self) else self
    return run_dense(op, source._array.values.reshape(-1), *rest)


# ---- sparse.sum
def _sum_grad(g, self, dim):
    """The gradient at the places of `self`: each element gets what its sum got."""
    a = self._array
    gone = sorted(wrap_dims(dim, a.ndim))
    dense = to_dense(g) if is_sparse(g) else g
    for d in gone:
        dense = dense.unsqueeze(d)
    return sparse_mask(dense.expand(a.shape), pattern_of(self))


sum_dim_op = layout_operator(
    "_sparse_sum.dim(Tensor self, int[1] dim) -> Tensor",
    run=lambda self, dim: sum_dims(self, dim),
    node="SparseSumBackward0",
    vjp={"self": _sum_grad},
)


@front("sparse.sum", "torch._sparse_sum")
def sparse_sum(input, dim=None, dtype=None) -> Tensor:
    """The sum of a COO tensor, of all elements or over dimensions, with a sparse gradient."""
    if not is_coo(input):
        raise RuntimeError(f"coalesce expected sparse coordinate tensor layout but got {layout_name(input)}")
    input = input if dtype is None else input.to(dtype)
    if dim is None:
        return input.coalesce().values().sum()
    dims = (dim,) if isinstance(dim, int) else tuple(dim)
    if not dims:
        raise RuntimeError("sparse.sum: expected at least one dimension")
    wrap_dims(dims, input.ndim)
    return dispatch(sum_dim_op, (input, dims))
