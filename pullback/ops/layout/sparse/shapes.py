"""Rearranging sparse tensors: transposes, selections, concatenation.

Comes in: canonical arguments of a view or joining operator. Goes out: a sparse tensor with parts of its own, or with values
that are views of the source's: the result is a view then, which counts its versions with the source. Sparse dimensions stay
before dense ones.
"""

from __future__ import annotations

from ....core import device as devices
from ....core import dtype as dtypes
from ....core.arrays import library
from ....core.geometry import wrap_dim
from ....core.tensor import Tensor
from ...system.dispatch import dispatch
from ...system.operator import Operator
from .arithmetic import clone
from .convert import as_tensor, coo_to_compressed, to_coo, to_dense
from .layouts import BY_ROW, CompressedArray, is_compressed, is_coo, is_sparse, layout_name, wrap_coo, wrap_sparse
from .table import not_implemented, run_dense, sparse_rule

_TRANSPOSED = {
    devices.sparse_csr: devices.sparse_csc,
    devices.sparse_csc: devices.sparse_csr,
    devices.sparse_bsr: devices.sparse_bsc,
    devices.sparse_bsc: devices.sparse_bsr,
}


@sparse_rule("t")
def t(op: Operator, self):
    if is_coo(self) and (self._array.sparse_dim > 2 or self._array.dense_dim):
        raise RuntimeError(
            f"t() expects a tensor with <= 2 sparse and 0 dense dimensions, but got {self._array.sparse_dim} sparse "
            f"and {self._array.dense_dim} dense dimensions"
        )
    return self.shallow() if self.ndim < 2 else transpose(op, self, 0, 1)


@sparse_rule("transpose")
def transpose(op: Operator, self, dim0: int, dim1: int):
    """Of coordinates a copy, unlike `permute`: so it is in PyTorch."""
    a, b = wrap_dim(dim0, self.ndim), wrap_dim(dim1, self.ndim)
    order = list(range(self.ndim))
    order[a], order[b] = order[b], order[a]
    return _permute(op, self if a != b and not is_coo(self) else clone(None, self), tuple(order))


@sparse_rule("permute")
def permute(op: Operator, self, dims):
    if len(dims) != self.ndim:
        raise RuntimeError(
            "permute(sparse_coo): number of dimensions in the tensor input does not match the length of the desired "
            "ordering of dimensions "
            f"i.e. input.dim() = {self.ndim} is not equal to len(dims) = {len(dims)}"
        )
    order = tuple(wrap_dim(d, self.ndim) for d in dims)
    if len(set(order)) != len(order):
        raise RuntimeError("permute(): duplicate dims are not allowed.")
    return _permute(op, self, order)


def _permute(op: Operator, self: Tensor, order: tuple) -> Tensor:
    a = self._array
    shape = tuple(a.shape[d] for d in order)
    if order == tuple(range(a.ndim)):
        return self.shallow()
    if not is_coo(self):
        return _transpose_compressed(op, self, order, shape)
    k = a.sparse_dim
    if any((d < k) != (i < k) for i, d in enumerate(order)):
        raise RuntimeError("transpose(sparse_coo): sparse and dense dimensions cannot be exchanged")
    indices = a.indices[list(order[:k])] if order[:k] != tuple(range(k)) else a.indices
    values = a.values.permute(0, *[d - k + 1 for d in order[k:]]) if order[k:] != tuple(range(k, a.ndim)) else a.values
    kept = a.coalesced and order[:k] == tuple(range(k))
    return wrap_coo(indices, values, shape, kept)


def _transpose_compressed(op: Operator, self: Tensor, order: tuple, shape: tuple) -> Tensor:
    a = self._array
    b = a.batch_dim
    kinds = ["Batch" if d < b else "Sparse" if d < b + 2 else "Dense" for d in range(a.ndim)]
    if (d := next((d for d in range(a.ndim) if kinds[d] != kinds[order[d]]), None)) is not None:
        raise RuntimeError(
            "transpose(): can only transpose dimensions of the same type (Batch, Sparse, Dense), got "
            f"{d}({kinds[d]}) and {order[d]}({kinds[order[d]]})"
        )
    swapped, batches = order[b] != b, order[:b]
    compressed, plain = a.compressed.permute(*batches, b), a.plain.permute(*batches, b)
    blocks = () if a.blocksize is None else (b + 2, b + 1) if swapped else (b + 1, b + 2)
    held = len(blocks) - 1  # of a dense dimension: behind the batches, elements and blocks instead of rows and columns
    values = a.values.permute(*batches, b, *blocks, *(d + held for d in order[b + 2 :]))
    layout = _TRANSPOSED[a.layout] if swapped else a.layout
    return wrap_sparse(CompressedArray(layout, compressed, plain, values, shape))


@sparse_rule("unsqueeze")
def unsqueeze(op: Operator, self, dim: int):
    if not is_coo(self):
        raise not_implemented(op, (self, dim))
    a = self._array
    d = wrap_dim(dim, self.ndim + 1)
    shape = (*a.shape[:d], 1, *a.shape[d:])
    if d > a.sparse_dim:
        return wrap_coo(a.indices, a.values.unsqueeze(d - a.sparse_dim + 1), shape, a.coalesced)
    xp = library(self.device)
    indices = xp.insert(a.indices._array, d, 0, axis=0)
    return wrap_coo(as_tensor(indices, self), a.values, shape, a.coalesced)


@sparse_rule("squeeze")
def squeeze(op: Operator, self, dim=None):
    if not is_coo(self):
        raise not_implemented(op, (self, dim))
    a = self._array
    asked = (
        range(self.ndim)
        if dim is None
        else [wrap_dim(d, self.ndim) for d in (dim if isinstance(dim, tuple) else (dim,))]
    )
    gone = {d for d in asked if a.shape[d] == 1}
    keep = [d for d in range(a.sparse_dim) if d not in gone]
    dense = [n for d, n in enumerate(a.shape) if d >= a.sparse_dim and d not in gone]
    indices = as_tensor(a.indices._array[keep], self)
    shape = tuple(n for d, n in enumerate(a.shape) if d not in gone)
    return wrap_coo(indices, a.values.reshape(a.nnz, *dense), shape, a.coalesced)


@sparse_rule("select")
def select(op: Operator | None, self, dim: int, index: int):
    """One slice. What is left without sparse dimensions is dense."""
    if is_compressed(self) and (whole := _select_compressed(self, dim, index)) is not None:
        return whole
    source = to_coo(self)
    a = source._array
    d = wrap_dim(dim, a.ndim)
    n = a.shape[d]
    if not -n <= index < n:
        raise IndexError(f"select(): index {index} out of range for tensor of size {list(a.shape)} at dimension {d}")
    index = index + n if index < 0 else index
    shape = (*a.shape[:d], *a.shape[d + 1 :])
    if d >= a.sparse_dim:
        return wrap_coo(a.indices, a.values.select(d - a.sparse_dim + 1, index), shape, a.coalesced)
    there = a.indices._array[d] == index
    values = as_tensor(a.values._array[there], self)
    if a.sparse_dim == 1:
        return values.sum(0, dtype=values.dtype)
    keep = [i for i in range(a.sparse_dim) if i != d]
    return wrap_coo(as_tensor(a.indices._array[keep][:, there], self), values, shape, a.coalesced)


@sparse_rule("unbind")
def unbind(op: Operator, self, dim: int = 0) -> tuple:
    return tuple(select(None, self, dim, i) for i in range(self.shape[wrap_dim(dim, self.ndim)]))


def _select_compressed(self: Tensor, dim: int, index: int) -> Tensor | None:
    """One element of the batch, or of a dense dimension, in the same layout; a row or column of one matrix where it lies in one
    piece, None for the others."""
    a = self._array
    d = wrap_dim(dim, a.ndim)
    if not -a.shape[d] <= index < a.shape[d]:
        raise IndexError(f"select(): index {index} out of range for tensor of size {list(a.shape)} at dimension {d}")
    shape = (*a.shape[:d], *a.shape[d + 1 :])
    if d < a.batch_dim:
        parts = [p.select(d, index) for p in (a.compressed, a.plain, a.values)]
        return wrap_sparse(CompressedArray(a.layout, *parts, shape))
    if d < a.batch_dim + 2:
        if a.batch_dim:
            raise RuntimeError(
                "select(): selecting sparse dimensions is not supported for batched sparse compressed tensors."
            )
        return _select_line(a, d, index % a.shape[d], shape)
    at = d - a.ndim + a.values.ndim
    return wrap_sparse(CompressedArray(a.layout, a.compressed, a.plain, a.values.select(at, index), shape))


def _select_line(a: CompressedArray, d: int, index: int, shape: tuple) -> Tensor | None:
    """A row of rows, or a column of columns: a view of its values, by coordinates."""
    if a.blocksize or d != (0 if a.layout in BY_ROW else 1):
        return None
    start, end = (int(n) for n in a.compressed._array[index : index + 2])
    places = a.plain[start:end].to(dtypes.int64)
    return wrap_coo(places.reshape(1, -1), a.values[start:end], shape, True)


@sparse_rule("index_select")
def index_select(op: Operator, self, dim: int, index: Tensor):
    if not is_coo(self):
        raise not_implemented(op, (self, dim, index))
    if index.ndim > 1 or index.dtype.category != 1:
        raise IndexError("index_select(): Expected dtype int32/int64 and at most one dimension for index")
    xp, a = library(self.device), self._array
    d = wrap_dim(dim, a.ndim)
    wanted = index._array.reshape(-1)
    n = a.shape[d]
    if wanted.size and (wanted.min() < -n or wanted.max() >= n):
        raise IndexError(
            f"index_select(): index contains indices out of range for tensor of size {list(a.shape)} at dimension {d}"
        )
    shape = (*a.shape[:d], wanted.size, *a.shape[d + 1 :])
    if d >= a.sparse_dim:
        return wrap_coo(a.indices, a.values.index_select(d - a.sparse_dim + 1, index), shape, a.coalesced)
    hits = a.indices._array[d][None, :] == (wanted % max(n, 1))[:, None]
    place, element = xp.nonzero(hits)
    indices = a.indices._array[:, element].copy()
    indices[d] = place
    return wrap_coo(as_tensor(indices, self), as_tensor(a.values._array[element], self), shape)


@sparse_rule("narrow", "slice")
def narrow(op: Operator, self, dim=0, start=None, end=None, step=1):
    """A range of one dimension."""
    a = to_coo(self)._array
    d = wrap_dim(dim, a.ndim)
    begin, stop, _ = slice(start, end).indices(a.shape[d]) if op.name == "slice" else (start, start + end, 1)
    count = max(0, -(-(stop - begin) // step))
    shape = (*a.shape[:d], count, *a.shape[d + 1 :])
    if d >= a.sparse_dim:
        values = a.values[(slice(None),) * (d - a.sparse_dim + 1) + (slice(begin, stop, step),)].contiguous()
        return wrap_coo(a.indices, values, shape, a.coalesced)
    row = a.indices._array[d] - begin
    there = (row >= 0) & (row < stop - begin) & (row % step == 0)
    indices = a.indices._array[:, there].copy()
    indices[d] = row[there] // step
    result = wrap_coo(as_tensor(indices, self), as_tensor(a.values._array[there], self), shape, a.coalesced)
    return result if is_coo(self) else coo_to_compressed(result, self.layout, self._array.blocksize, None)


@sparse_rule("cat")
def cat(op: Operator, tensors, dim: int = 0):
    if not all(is_coo(x) for x in tensors):
        kinds = ", ".join(layout_name(x) for x in tensors)
        raise RuntimeError(
            f"Concatenating sparse tensors, but a dense or compressed tensor was found among them: {kinds}"
        )
    xp, first = library(tensors[0].device), tensors[0]._array
    d = wrap_dim(dim, first.ndim)
    for x in tensors:
        a = x._array
        if a.sparse_dim != first.sparse_dim or a.dense_dim != first.dense_dim:
            raise RuntimeError(
                "All tensors must have the same: sparse_dim and dense_dim, but tensor 0 has "
                f"{first.sparse_dim} and {first.dense_dim}, and another {a.sparse_dim} and {a.dense_dim}"
            )
        if (*a.shape[:d], *a.shape[d + 1 :]) != (*first.shape[:d], *first.shape[d + 1 :]):
            raise RuntimeError(
                f"All tensors must have the same shape: {list(first.shape)} (except in the concatenating dimension), "
                f"but found shape: {list(a.shape)}"
            )
    shape = (*first.shape[:d], sum(x._array.shape[d] for x in tensors), *first.shape[d + 1 :])
    return _cat_sparse(xp, tensors, d, shape) if d < first.sparse_dim else _cat_dense(xp, tensors, d, shape)


def _cat_sparse(xp, tensors, d: int, shape: tuple) -> Tensor:
    parts, start = [], 0
    for x in tensors:
        indices = x._array.indices._array.copy()
        indices[d] += start
        start += x._array.shape[d]
        parts.append(indices)
    values = xp.concatenate([x._array.values._array for x in tensors])
    return wrap_coo(as_tensor(xp.concatenate(parts, axis=1), tensors[0]), as_tensor(values, tensors[0]), shape)


def _cat_dense(xp, tensors, d: int, shape: tuple) -> Tensor:
    k = tensors[0]._array.sparse_dim
    parts, start = [], 0
    for x in tensors:
        a = x._array
        block = xp.zeros((a.nnz, *shape[k:]), dtype=a.values._array.dtype)
        at = [slice(None)] * block.ndim
        at[d - k + 1] = slice(start, start + a.shape[d])
        block[tuple(at)] = a.values._array
        start += a.shape[d]
        parts.append(block)
    indices = xp.concatenate([x._array.indices._array for x in tensors], axis=1)
    return wrap_coo(as_tensor(indices, tensors[0]), as_tensor(xp.concatenate(parts), tensors[0]), shape)


@sparse_rule("stack")
def stack(op: Operator, tensors, dim: int = 0):
    return cat(op, tuple(unsqueeze(op, x, dim) for x in tensors), wrap_dim(dim, tensors[0].ndim + 1))


@sparse_rule("expand")
def expand(op: Operator, self, size, *rest):
    if tuple(size) == tuple(self.shape):
        return self.shallow()
    raise RuntimeError(f"expand is unsupported for {layout_name(self)} tensors")


@sparse_rule("reshape", "_reshape_alias", "flatten")
def reshape(op: Operator, self, *rest):
    raise RuntimeError("reshape is not implemented for sparse tensors")


@sparse_rule("select_backward", "slice_backward")
def scatter_back(op: Operator, grad_output, input_sizes, *rest):
    """Gradients of selections: the sparse gradient is made dense, then put in its place."""
    return run_dense(op, to_dense(grad_output) if is_sparse(grad_output) else grad_output, input_sizes, *rest)


@sparse_rule("view_as_complex", "view_as_real")
def complex_view(op: Operator, self):
    """Numbers as pairs or pairs as numbers: the pairs are the last dense dimension, and the memory is the same."""
    if not is_coo(self):
        raise not_implemented(op, (self,))
    a = self._array
    if op.name == "view_as_complex" and (not a.dense_dim or a.shape[-1] != 2):
        raise RuntimeError(
            f"view_as_complex_sparse is only supported for sparse tensors with the last dim == 2 and dense_dim > 0, "
            f"but got size {list(a.shape)} with {a.dense_dim} dense dimensions"
        )
    shape = a.shape[:-1] if op.name == "view_as_complex" else (*a.shape, 2)
    return wrap_coo(a.indices, dispatch(op, (a.values,)), shape, a.coalesced)
