"""Arithmetic on indices: what the sparse layouts have in common, on arrays.

Comes in: the array library `xp`, index arrays, values. Goes out: arrays. Always holds: no function here changes its
arguments, and rows of values that share an index are added in the order in which they stand.
"""

from __future__ import annotations

import math


def flat_keys(xp, indices, shape):
    """One number per column of `indices` (k, n): its row-major place in `shape` (the first k sizes)."""
    k, n = indices.shape
    keys = xp.zeros(n, dtype=xp.int64)
    for d in range(k):
        keys = keys * shape[d] + indices[d]
    return keys


def unflatten(xp, keys, shape):
    """The inverse of `flat_keys`: (k, n) from n places."""
    if not shape:
        return xp.zeros((0, keys.size), dtype=xp.int64)
    if math.prod(shape) == 0:
        return xp.zeros((len(shape), 0), dtype=xp.int64)
    return xp.stack(xp.unravel_index(keys, shape)).astype(xp.int64)


def check_range(indices, shape) -> None:
    """Refuse indices outside the shape: array libraries would wrap negative ones silently."""
    for d in range(indices.shape[0]):
        row = indices[d]
        if row.size and (row.min() < 0 or row.max() >= shape[d]):
            bad = row.min() if row.min() < 0 else row.max()
            raise IndexError(f"index {int(bad)} is out of bounds for dimension {d} with size {shape[d]}")


def group_starts(xp, ordered):
    """Where each run of equal numbers starts."""
    if not ordered.size:
        return xp.zeros(0, dtype=xp.int64)
    first = xp.ones(ordered.size, dtype=bool)
    first[1:] = ordered[1:] != ordered[:-1]
    return xp.flatnonzero(first)


def sum_groups(xp, values, order, starts):
    """Sums of runs of rows of `values[order]`; half precision is added in single, booleans by `or`."""
    if not starts.size:
        return xp.zeros((0, *values.shape[1:]), dtype=values.dtype)
    rows = values[order]
    if starts.size == rows.shape[0]:
        return rows
    if values.dtype.kind == "b":
        return xp.logical_or.reduceat(rows, starts, axis=0)
    if values.dtype.itemsize == 2 and values.dtype.kind not in "iu":
        return xp.add.reduceat(rows.astype(xp.float32), starts, axis=0).astype(values.dtype)
    return xp.add.reduceat(rows, starts, axis=0, dtype=values.dtype)


def coalesce(xp, indices, values, shape):
    """Sorted indices without repetition, and the sums of the values at each."""
    check_range(indices, shape)
    keys = flat_keys(xp, indices, shape)
    order = xp.argsort(keys, kind="stable")
    starts = group_starts(xp, keys[order])
    return xp.ascontiguousarray(indices[:, order[starts]]), sum_groups(xp, values, order, starts)


def find(xp, keys, sorted_keys):
    """For each key its place among sorted distinct keys, and whether it is there."""
    if not sorted_keys.size:
        return xp.zeros(keys.size, dtype=xp.int64), xp.zeros(keys.size, dtype=bool)
    at = xp.minimum(xp.searchsorted(sorted_keys, keys), sorted_keys.size - 1)
    return at, sorted_keys[at] == keys


def pointers(xp, rows, count: int):
    """Row pointers (count + 1) from sorted row numbers."""
    out = xp.zeros(count + 1, dtype=xp.int64)
    xp.cumsum(xp.bincount(rows, minlength=count)[:count], out=out[1:])
    return out


def rows_of(xp, compressed):
    """The row of each element, from row pointers."""
    return xp.repeat(xp.arange(compressed.size - 1, dtype=xp.int64), xp.diff(compressed).astype(xp.int64))


def take_at(indices, array):
    """Elements (or dense rows) of an array at coordinates (k, n)."""
    if not indices.shape[0]:
        return array[None].repeat(indices.shape[1], axis=0)
    return array[tuple(indices)]


def scatter(xp, indices, values, shape):
    """The dense array with `values` at distinct coordinates and zeros elsewhere."""
    out = xp.zeros(shape, dtype=values.dtype)
    k = indices.shape[0]
    if not k:
        out[...] = values.sum(axis=0, dtype=values.dtype) if values.dtype.kind != "b" else values.any(axis=0)
    else:
        out[tuple(indices)] = values
    return out


def to_blocks(array, blocksize, batch: int):
    """(*batch, r, c, *dense) as (B, r / br, c / bc, br, bc, *dense)."""
    br, bc = blocksize
    r, c = array.shape[batch : batch + 2]
    dense = array.shape[batch + 2 :]
    lead = math.prod(array.shape[:batch])
    split = array.reshape(lead, r // br, br, c // bc, bc, *dense)
    return split.transpose(0, 1, 3, 2, 4, *range(5, 5 + len(dense)))


def from_blocks(blocks, shape):
    """The inverse of `to_blocks`."""
    dense = range(5, blocks.ndim)
    return blocks.transpose(0, 1, 3, 2, 4, *dense).reshape(shape)


def compressed_cells(xp, compressed, plain, by_row: bool):
    """(batch, block row, block column) of each specified block of a batched compressed tensor, each flat."""
    flat_c = compressed.reshape(-1, compressed.shape[-1])
    flat_p = plain.reshape(flat_c.shape[0], plain.shape[-1])
    nnz = flat_p.shape[1]
    batch = xp.repeat(xp.arange(flat_c.shape[0], dtype=xp.int64), nnz)
    along = [rows_of(xp, c) for c in flat_c]
    if any(a.size != nnz for a in along):
        raise RuntimeError("compressed indices do not agree with the number of plain indices")
    first = xp.concatenate(along) if along else xp.zeros(0, dtype=xp.int64)
    second = flat_p.reshape(-1).astype(xp.int64)
    return (batch, first, second) if by_row else (batch, second, first)


def compress(xp, cells, counts, by_row: bool):
    """Pointers and plain indices, batch by batch, of distinct cells (batch, row, column); and the order of the cells.

    `counts` is (batches, rows, columns). Every batch must have as many cells as the others.
    """
    batch, row, column = cells
    first, second = (row, column) if by_row else (column, row)
    n = counts[1] if by_row else counts[2]
    order = xp.lexsort((second, first, batch))
    per_batch = xp.bincount(batch, minlength=counts[0])
    if counts[0] and (per_batch != per_batch[0]).any():
        raise RuntimeError("Expect the same number of specified elements per batch.")
    nnz = int(per_batch[0]) if counts[0] else 0
    first = first[order].reshape(counts[0], nnz)
    result = [pointers(xp, f, n) for f in first]
    compressed = xp.stack(result) if result else xp.zeros((0, n + 1), dtype=xp.int64)
    return compressed, second[order].reshape(counts[0], nnz), order
