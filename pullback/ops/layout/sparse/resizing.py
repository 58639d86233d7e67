"""Sparse tensors of another size, in place.

Comes in: a tensor that is written, and a size or a tensor that has it. Goes out: the tensor, which holds other parts then: those who
hold the old ones keep them.
"""

from __future__ import annotations

from ....core import device as devices
from ....core.tensor import Tensor
from ...shape.joining import cat
from ...system.calls import front
from ...system.inplace import bump, check_writable
from .layouts import CompressedArray, counted_by, is_compressed, is_coo, layout_name, wrap_coo
from .table import refuse_dense


# ---- coordinates
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


# ---- compressed rows and columns
def resize_sparse_(t: Tensor, shape: tuple) -> Tensor:
    """Another number of rows, and of columns no fewer, in place. Rows that come are empty; those that go take their elements with them."""
    if not is_compressed(t):
        raise NotImplementedError("resize_(): tensors of coordinates are resized by sparse_resize_()")
    a = t._array
    if a.layout is not devices.sparse_csr:
        raise NotImplementedError(f"torch.resize_: tensors of layout {a.layout} are not resized")
    if len(shape) < 2 or shape[:-2] != a.shape[: a.batch_dim] or a.dense_dim:
        raise RuntimeError(
            f"torch.resize_: Only batched sparse CSR matrices are supported, and the batch stays, but got size {list(shape)} for a "
            f"tensor of size {list(a.shape)}"
        )
    rows, columns = shape[-2:]
    if columns < a.shape[-1]:
        raise RuntimeError(
            "torch.resize_: Resizing columns of sparse CSR tensors to a smaller value is not supported. The original number of "
            f"columns is {a.shape[-1]} while the requested new number of columns is {columns}."
        )
    check_writable(t)
    pointers, more = a.compressed[..., : rows + 1], rows - a.shape[-2]
    if more > 0:
        pointers = _longer(pointers, more)
    counts = pointers[..., -1].reshape(-1)
    kept = int(counts[0]) if counts.numel() else 0
    if not bool((counts == kept).all()):
        raise RuntimeError("torch.resize_: the matrices of the batch would have different numbers of elements")
    parts = pointers.contiguous(), a.plain[..., :kept].contiguous(), a.values[..., :kept].contiguous()
    t._array = CompressedArray(a.layout, *parts[:2], counted_by(t._counter, parts[2]), shape)
    bump(t)
    return t


def _longer(pointers: Tensor, more: int) -> Tensor:
    """Pointers that end with the last one as often as there are more rows."""
    return cat((pointers, pointers[..., -1:].expand(*pointers.shape[:-1], more)), -1)


def _resize_as_compressed_(t: Tensor, template: Tensor) -> Tensor:
    """The places of another compressed tensor, in place; values are zeros, where the sizes differ."""
    a, b = t._array, template._array
    if t.layout is not template.layout:
        raise RuntimeError(
            f"resize_as_sparse_compressed_tensor_: self and src must have the same layout, but got: self ({t.layout}) and source "
            f"({template.layout})"
        )
    check_writable(t)
    if a.shape == b.shape and a.values._array.shape == b.values._array.shape:
        return t
    compressed, plain = b.compressed.to(a.compressed.dtype, copy=True), b.plain.to(a.plain.dtype, copy=True)
    values = a.values.new_zeros(b.values.shape)
    t._array = CompressedArray(a.layout, compressed, plain, counted_by(t._counter, values), b.shape)
    bump(t)
    return t


@front("torch.resize_as_sparse_", "Tensor.resize_as_sparse_")
def resize_as_sparse_(input, the_template) -> Tensor:
    """The shape of another sparse tensor, in place."""
    if is_compressed(input) or is_compressed(the_template):
        for name, t in (("src", the_template), ("self", input)):
            if not is_compressed(t):
                raise RuntimeError(
                    f"resize_as_sparse_compressed_: {name}  expected sparse compressed tensor layout but got {layout_name(t)}"
                )
        return _resize_as_compressed_(input, the_template)
    if not is_coo(the_template):
        raise RuntimeError("resize_as_sparse_: self and other must be sparse")
    a = the_template._array
    return sparse_resize_(input, a.shape, a.sparse_dim, a.dense_dim)
