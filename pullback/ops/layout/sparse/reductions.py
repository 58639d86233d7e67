"""Sums and norms of sparse tensors, and `sparse.sum` with its sparse gradient.

Comes in: a sparse tensor and the dimensions that go. Goes out: dense where no sparse dimension is left, else sparse.
"""

from __future__ import annotations

from ....core.arrays import library
from ....core.geometry import wrap_dims
from ....core.tensor import Tensor
from ...system.calls import front
from ...system.dispatch import dispatch
from ...system.inplace import check_writable
from ...system.operator import Operator
from .convert import as_tensor, coalesced, convert, to_coo, to_dense
from .layouts import is_compressed, is_coo, is_sparse, layout_name, wrap_coo
from .masks import pattern_of, sparse_mask
from .table import layout_operator, refuse_dense, run_dense, sparse_rule


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


# ---- resizing in place
def _check_resizable(name: str, t: Tensor) -> None:
    if not is_coo(t):
        raise refuse_dense(name, t)
    check_writable(t)


def _check_dims(name: str, size, sparse_dim: int, dense_dim: int) -> tuple:
    size = tuple(size)
    if sparse_dim + dense_dim != len(size):
        raise RuntimeError(
            f"'len(size) == sparse_dim + dense_dim' is not satisfied: len(size) = {len(size)}, sparse_dim = "
            f"{sparse_dim}, dense_dim = {dense_dim}"
        )
    return size


@front("Tensor.sparse_resize_")
def sparse_resize_(self, size, sparse_dim: int, dense_dim: int) -> Tensor:
    """Another shape, in place; specified elements stay where they are."""
    _check_resizable("sparse_resize_", self)
    size, a = _check_dims("sparse_resize_", size, sparse_dim, dense_dim), self._array
    if a.nnz:
        if sparse_dim != a.sparse_dim:
            raise RuntimeError(
                f"changing the number of sparse dimensions (from {a.sparse_dim} to {sparse_dim}) on a non-empty "
                f"sparse tensor is not supported.\n\n"
                "If you need an empty sparse tensor of this size, call `x = torch.sparse_coo_tensor(size)`."
            )
        if dense_dim != a.dense_dim:
            raise RuntimeError(
                f"changing the number of dense dimensions (from {a.dense_dim} to {dense_dim}) on a non-empty sparse "
                f"tensor is not supported.\n\n"
                "If you need an empty sparse tensor of this size, call `x = torch.sparse_coo_tensor(size)`."
            )
        for kind, at in (("sparse", slice(0, sparse_dim)), ("dense", slice(sparse_dim, None))):
            if all(n >= o for n, o in zip(size[at], a.shape[at], strict=True)):
                continue
            raise RuntimeError(
                f"shrinking the size of {kind} dimensions (from {list(a.shape[at])} to {list(size[at])}) "
                f"on a non-empty sparse tensor is not supported.\n\n"
                "If you need an empty sparse tensor of this size, call `x = torch.sparse_coo_tensor(size)`."
            )
    values = a.values.new_zeros((a.nnz, *size[sparse_dim:]))
    values[tuple(slice(0, n) for n in a.values.shape)] = a.values
    indices = a.indices if sparse_dim == a.sparse_dim else a.indices.new_zeros((sparse_dim, 0))
    self._array = wrap_coo(indices, values, size, a.coalesced)._array
    return self


@front("Tensor.sparse_resize_and_clear_")
def sparse_resize_and_clear_(self, size, sparse_dim: int, dense_dim: int) -> Tensor:
    """Another shape, in place, without elements."""
    _check_resizable("sparse_resize_and_clear_", self)
    size, a = _check_dims("sparse_resize_and_clear_", size, sparse_dim, dense_dim), self._array
    self._array = wrap_coo(
        a.indices.new_zeros((sparse_dim, 0)), a.values.new_zeros((0, *size[sparse_dim:])), size, True
    )._array
    return self


@front("torch.resize_as_sparse_", "Tensor.resize_as_sparse_")
def resize_as_sparse_(input, the_template) -> Tensor:
    """The shape of another sparse tensor, in place."""
    a = the_template._array
    if not is_coo(the_template):
        raise RuntimeError("resize_as_sparse_: self and other must be sparse")
    return sparse_resize_(input, a.shape, a.sparse_dim, a.dense_dim)
