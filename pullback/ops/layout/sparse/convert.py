"""Between dense, coordinate and compressed layouts, and between the compressed ones.

Comes in: a tensor of any layout without history. Goes out: one of the layout asked for, with parts of its own.
"""

from __future__ import annotations

from ....core import device as devices
from ....core.arrays import library, to_device
from ....core.tensor import Tensor, wrap
from . import kernels
from .layouts import (
    BLOCKED,
    BY_ROW,
    COMPRESSED,
    NAMES,
    CompressedArray,
    is_coo,
    is_sparse,
    wrap_coo,
    wrap_sparse,
)


def as_tensor(array, like: Tensor) -> Tensor:
    """A plain tensor around a kernel's result."""
    xp = library(like.device)
    array = to_device(array, like.device) if like.device.keys else array
    return wrap(xp.ascontiguousarray(array) if array.ndim else array, None, like.device)


# ---- coordinates
def coalesced(t: Tensor) -> Tensor:
    """A COO tensor with sorted distinct indices; itself if it is so already."""
    a = t._array
    if a.coalesced:
        return t
    if a.nnz < 2:
        return wrap_coo(a.indices, a.values, a.shape, True)
    indices, values = kernels.coalesce(library(t.device), a.indices._array, a.values._array, a.shape)
    return wrap_coo(as_tensor(indices, t), as_tensor(values, t), a.shape, True)


def dense_to_coo(t: Tensor, sparse_dim: int | None) -> Tensor:
    k = t.ndim if sparse_dim is None else sparse_dim
    if not 0 <= k <= t.ndim:
        raise RuntimeError(
            f"dense_to_sparse: sparse_dim argument must be in [0,{t.ndim}] range, but {sparse_dim} is given"
        )
    if k == 0 and t.ndim:
        raise RuntimeError("dense_to_sparse: sparse_dim argument must be in >0 when self.dim()>0")
    xp, array = library(t.device), t._array
    filled = array != 0
    if k < t.ndim:
        filled = filled.any(axis=tuple(range(k, t.ndim)))
    if not t.ndim:
        n = int(filled)
        return wrap_coo(
            as_tensor(xp.zeros((0, n), dtype=xp.int64), t), as_tensor(array.reshape(1)[:n].copy(), t), (), True
        )
    indices = xp.stack(xp.nonzero(filled)).astype(xp.int64)
    return wrap_coo(as_tensor(indices, t), as_tensor(array[filled], t), array.shape, True)


def coo_to_dense(t: Tensor) -> Tensor:
    a = coalesced(t)._array
    kernels.check_range(a.indices._array, a.shape)
    return as_tensor(kernels.scatter(library(t.device), a.indices._array, a.values._array, a.shape), t)


# ---- compressed
def cells_of(t: Tensor):
    """(batch, block row, block column) of each block of a compressed tensor."""
    a = t._array
    return kernels.compressed_cells(library(t.device), a.compressed._array, a.plain._array, a.layout in BY_ROW)


def block_values(t: Tensor):
    """Values as (all batches' nnz, br, bc, *dense)."""
    a = t._array
    values = a.values._array
    dense = values.shape[values.ndim - a.dense_dim :] if a.dense_dim else ()
    return values.reshape(a.plain._array.size, *(a.blocksize or (1, 1)), *dense)


def block_counts(shape: tuple, batch: int, blocksize) -> tuple:
    """(batches, block rows, block columns)."""
    lead = 1
    for s in shape[:batch]:
        lead *= s
    br, bc = blocksize or (1, 1)
    return lead, shape[batch] // br, shape[batch + 1] // bc


def compressed_to_dense(t: Tensor) -> Tensor:
    a, xp = t._array, library(t.device)
    values = block_values(t)
    counts = block_counts(a.shape, a.batch_dim, a.blocksize)
    cells = cells_of(t)
    kernels.check_range(xp.stack(cells), counts)
    blocks = xp.zeros((*counts, *values.shape[1:]), dtype=values.dtype)
    blocks[cells] = values
    return as_tensor(kernels.from_blocks(blocks, a.shape), t)


def assemble(layout, cells, values, counts: tuple, shape: tuple, batch: int, like: Tensor) -> Tensor:
    """A compressed tensor from distinct cells and their blocks (n, br, bc, *dense)."""
    xp = library(like.device)
    compressed, plain, order = kernels.compress(xp, cells, counts, layout in BY_ROW)
    lead, nnz = shape[:batch], plain.shape[1]
    dense = values.shape[3:]
    block = values.shape[1:3] if layout in BLOCKED else ()
    result = values[order].reshape(*lead, nnz, *block, *dense)
    compressed, plain = compressed.reshape(*lead, compressed.shape[1]), plain.reshape(*lead, nnz)
    return wrap_sparse(
        CompressedArray(layout, as_tensor(compressed, like), as_tensor(plain, like), as_tensor(result, like), shape)
    )


def dense_to_compressed(t: Tensor, layout, blocksize, dense_dim: int) -> Tensor:
    xp = library(t.device)
    batch = check_geometry(t.shape, layout, blocksize, dense_dim, "dense_to_" + layout.name)
    if 0 in t._array.shape[:batch]:
        raise RuntimeError(f"to_{layout.name}: Expected product of batch dimensions to be non-zero.")
    counts = block_counts(t._array.shape, batch, blocksize)
    blocks = kernels.to_blocks(t._array, blocksize or (1, 1), batch)
    filled = (blocks != 0).any(axis=tuple(range(3, blocks.ndim)))
    cells = xp.nonzero(filled)
    return assemble(layout, cells, blocks[cells], counts, t._array.shape, batch, t)


def check_geometry(shape, layout, blocksize, dense_dim: int, name: str) -> int:
    """The number of batch dimensions; refuses shapes that the layout cannot hold."""
    if len(shape) < 2:
        raise RuntimeError(f"{name}: expected a tensor of at least 2 dimensions, but got {len(shape)}")
    if not 0 <= dense_dim <= len(shape) - 2:
        raise RuntimeError(
            f"{name}: dense_dim argument must be in [0,{len(shape) - 2}] range, but {dense_dim} is given"
        )
    batch = len(shape) - 2 - dense_dim
    if blocksize is not None:
        rows, columns = shape[batch : batch + 2]
        if min(blocksize) <= 0:
            raise RuntimeError(f"{name}: blocksize needs to be positive, but got ({blocksize[0]},{blocksize[1]})")
        if rows % blocksize[0] or columns % blocksize[1]:
            raise RuntimeError(
                f"{name}: tensor sparse size ({rows},{columns}) must be divisible by given blocksize "
                f"({blocksize[0]},{blocksize[1]})"
            )
    return batch


def compressed_to_coo(t: Tensor) -> Tensor:
    """Every element of every block by its coordinates, batch dimensions among them."""
    a, xp = t._array, library(t.device)
    values = block_values(t)
    br, bc = a.blocksize or (1, 1)
    batch, row, column = cells_of(t)
    i, j = (x.reshape(-1) for x in xp.meshgrid(xp.arange(br), xp.arange(bc), indexing="ij"))
    rows, columns = (row[:, None] * br + i).reshape(-1), (column[:, None] * bc + j).reshape(-1)
    lead = kernels.unflatten(xp, xp.repeat(batch, br * bc), a.shape[: a.batch_dim])
    indices = xp.concatenate((lead, rows[None], columns[None])).astype(xp.int64)
    result = wrap_coo(as_tensor(indices, t), as_tensor(values.reshape(-1, *values.shape[3:]), t), a.shape)
    return coalesced(result)  # sorts; compressed indices are distinct, so nothing is added up


def coo_to_compressed(t: Tensor, layout, blocksize, dense_dim: int | None) -> Tensor:
    a, xp = coalesced(t)._array, library(t.device)
    k = a.sparse_dim
    if k < 2:
        raise RuntimeError(f"sparse_coo_to_{layout.name}: expected at least 2 sparse dimensions, but got {k}")
    if dense_dim not in (None, a.dense_dim):
        raise RuntimeError(
            f"to_{layout.name}: dense_dim argument must match the dense dimension {a.dense_dim} of the input, but "
            f"{dense_dim} is given"
        )
    check_geometry(a.shape, layout, blocksize, a.dense_dim, "sparse_to_" + layout.name)
    br, bc = blocksize or (1, 1)
    counts = block_counts(a.shape, k - 2, blocksize)
    indices, values = a.indices._array, a.values._array
    batch = kernels.flat_keys(xp, indices[: k - 2], a.shape)
    row, column = indices[k - 2], indices[k - 1]
    keys = (batch * counts[1] + row // br) * counts[2] + column // bc
    distinct, inverse = xp.unique(keys, return_inverse=True)
    blocks = xp.zeros((distinct.size, br, bc, *values.shape[1:]), dtype=values.dtype)
    blocks[inverse.reshape(-1), row % br, column % bc] = values
    cells = tuple(kernels.unflatten(xp, distinct, counts)) if distinct.size else (distinct,) * 3
    return assemble(layout, cells, blocks, counts, a.shape, k - 2, t)


# ---- any to any
def to_dense(t: Tensor) -> Tensor:
    return t if not is_sparse(t) else coo_to_dense(t) if is_coo(t) else compressed_to_dense(t)


def to_coo(t: Tensor, sparse_dim: int | None = None) -> Tensor:
    """COO of any tensor; a COO tensor itself."""
    if not is_sparse(t):
        return dense_to_coo(t, sparse_dim)
    have = t._array.sparse_dim if is_coo(t) else 2  # of a compressed tensor, batches are no sparse dimensions
    if sparse_dim is not None and sparse_dim != have:
        raise RuntimeError(
            f"to_sparse: conversion from {NAMES[t.layout]} to Sparse with sparse_dim argument !={have} is not supported"
        )
    return t if is_coo(t) else compressed_to_coo(t)


def to_compressed(t: Tensor, layout, blocksize=None, dense_dim: int | None = None) -> Tensor:
    """A compressed layout of any tensor; itself where it has that layout (and blocks) already."""
    blocked = layout in BLOCKED
    if blocked != (blocksize is not None):
        given = "with" if blocksize is not None else "without"
        name = "dense_to_sparse" if not is_sparse(t) else "to_sparse"
        raise RuntimeError(
            f"{name}: conversion from {NAMES[t.layout]} to {NAMES[layout]} {given} blocksize argument given is not "
            f"supported"
        )
    if not is_sparse(t):
        return dense_to_compressed(t, layout, blocksize, dense_dim or 0)
    if t.layout is layout and tuple(t._array.blocksize or ()) == tuple(blocksize or ()):
        return t
    if is_coo(t):
        return coo_to_compressed(t, layout, blocksize, dense_dim)
    return with_index_dtype(coo_to_compressed(compressed_to_coo(t), layout, blocksize, dense_dim), t)


def with_index_dtype(t: Tensor, like: Tensor) -> Tensor:
    """A compressed tensor whose indices have the dtype of another's."""
    a, dtype = t._array, like._array.plain.dtype
    if a.plain.dtype is dtype:
        return t
    return wrap_sparse(CompressedArray(a.layout, a.compressed.to(dtype), a.plain.to(dtype), a.values, a.shape))


def convert(t: Tensor, layout=None, blocksize=None, dense_dim: int | None = None) -> Tensor:
    """`to_sparse` with keywords: any layout to any other."""
    layout = layout or devices.sparse_coo
    if layout is devices.strided:
        return to_dense(t)
    if layout in COMPRESSED:
        return to_compressed(t, layout, blocksize, dense_dim)
    if blocksize is not None:
        name = "dense_to_sparse" if not is_sparse(t) else "to_sparse"
        raise RuntimeError(
            f"{name}: conversion from {NAMES[t.layout]} to Sparse with blocksize argument given is not supported"
        )
    if dense_dim is not None and t.layout in COMPRESSED:
        dense_dim += t._array.batch_dim
    return to_coo(t, None if dense_dim is None else t.ndim - dense_dim)
