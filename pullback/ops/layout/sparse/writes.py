"""Writes to sparse tensors: what is written where others look on.

Comes in: a tensor and the result that is to stand in it, of which at least one is sparse. What always holds: values that stand at the places
where they stood are written into the memory they had, so that detached tensors, views and whoever holds `values()` see them, and
the version that all of them share counts the write. A result in other places gets memory of its own.
"""

from __future__ import annotations

from ....core.arrays import library
from ....core.tensor import META, Tensor
from ...system import inplace
from . import conversion
from .layouts import CompressedArray, CooArray, SparseArray, counted_by, is_sparse

__all__ = ["write_sparse"]


def write_sparse(target: Tensor, result: Tensor) -> None:
    """Put a result into a tensor where either is sparse."""
    if not is_sparse(target):
        inplace.write(target, conversion.to_dense(result.detach()))
        return
    if not is_sparse(result):
        raise RuntimeError(f"a dense result cannot be written into a tensor of layout {target.layout}")
    held, output = target._array, result._array
    if _same_places(held, output) and not inplace.is_expanded(held.values):
        _write_values(held.values, output.values)
    elif isinstance(held, CompressedArray) and target._view_info is not None:
        _write_elsewhere(held, output)
    elif isinstance(held, CompressedArray) and _is_like(held, output):  # elements elsewhere
        held.take(_held_as(held.values, output))  # detached tensors, which hold this object, follow
    else:
        target._array = _held_as(target, output)
    inplace.bump(target)


def _write_values(held: Tensor, values: Tensor) -> None:
    """Without a count: it is the tensor whose values they are that was written."""
    version = held._counter[0]
    inplace.write(held, values)
    held._counter[0] = version


def _write_elsewhere(held: CompressedArray, output: SparseArray) -> None:
    """Other places than a view has, which its base would not learn of: where there are none, zeros say the same."""
    if output.values._array.size:
        raise NotImplementedError(
            "a view of a compressed sparse tensor can be given other values, but no elements elsewhere: write to its base, or to a clone()"
        )
    _write_values(held.values, held.values.new_zeros(()).expand(held.values.shape))


def _held_as(t: Tensor, output: SparseArray) -> SparseArray:
    """A result with values of the dtype of another tensor, which are counted with it."""
    values = output.values if output.values.dtype is t.dtype else output.values.to(t.dtype)
    return output.with_values(counted_by(t._counter, values))


def _same_places(held: SparseArray, output: SparseArray) -> bool:
    """Whether a result says nothing new but its values. Coordinates have to be the same object: PyTorch has rules that give them anew."""
    if isinstance(held, CooArray):
        return isinstance(output, CooArray) and held.indices is output.indices and held.shape == output.shape
    if not _is_like(held, output) or held.values._array.shape != output.values._array.shape:
        return False
    parts = ((held.compressed, output.compressed), (held.plain, output.plain))
    return all(a is b or not a._keys & META and _equal(a, b) for a, b in parts)


def _is_like(held: SparseArray, output: SparseArray) -> bool:
    return isinstance(output, CompressedArray) and held.layout is output.layout and held.shape == output.shape


def _equal(a: Tensor, b: Tensor) -> bool:
    return bool(library(a.device).array_equal(a._array, b._array))
