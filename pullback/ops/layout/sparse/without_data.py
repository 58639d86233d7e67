"""Sparse operators where there is no data: on device meta, and of fake tensors.

Comes in: an operator and arguments of which some hold no numbers. Goes out: results on device meta, as the operator's
sparse rule would give them. There is one rule for both cases: it runs on stand-ins, which have the shapes, layouts and
numbers of specified elements of the arguments, and zeros for values (of dense tensors one zero, repeated). How many
elements a result has is what the rule says of the stand-ins; a tensor that is moved to meta has none.
"""

from __future__ import annotations

import math

import numpy as np

from ....core import device as devices
from ....core import dtype as dtypes
from ....core.tensor import META, Tensor, wrap, wrap_meta
from ...system.operator import Operator
from .layouts import CompressedArray, CooArray, is_coo, is_sparse, wrap_sparse

# these look at no numbers, only hand parts on, and so run as they are
PARTS_ALONE = frozenset(
    (
        "values", "_values", "_sparse_coo_tensor_with_dims_and_tensors", "_sparse_compressed_tensor_unsafe",
        "detach", "alias", "lift_fresh", "resolve_conj", "resolve_neg",
    )
)  # fmt: skip


def execute_without_data(op: Operator, args: tuple, run):
    """What `run(*args)`, the sparse rule of an operator, gives of arguments without data, on device meta."""
    if op.name in PARTS_ALONE:
        return run(*args)
    if op.name == "_to_dense":
        return wrap_meta(tuple(args[0]._array.shape), args[0].dtype)
    return on_meta(run(*[stand_in(a) for a in args]))


def empty_on_meta(t: Tensor) -> Tensor:
    """A tensor on device meta with the layout, shape and dtype of a sparse one, and no specified elements."""
    a = t._array
    if is_coo(t):
        values = wrap_meta((0, *a.values._array.shape[1:]), t.dtype)
        indices = wrap_meta((a.sparse_dim, 0), dtypes.int64)
        return wrap_sparse(CooArray(indices, values, a.shape, True))
    at = a.batch_dim
    plain, values = a.plain._array.shape, a.values._array.shape
    return wrap_sparse(
        CompressedArray(
            a.layout,
            wrap_meta(tuple(a.compressed._array.shape), a.compressed.dtype),
            wrap_meta((*plain[:at], 0), a.plain.dtype),
            wrap_meta((*values[:at], 0, *values[at + 1 :]), t.dtype),
            a.shape,
        )
    )


def parts_of(t: Tensor) -> tuple:
    """The tensors that a sparse tensor is made of."""
    a = t._array
    return (a.indices, a.values) if is_coo(t) else (a.compressed, a.plain, a.values)


def on_meta(result):
    """A result, or each of several, without its numbers."""
    if isinstance(result, (tuple, list)):
        return type(result)(map(on_meta, result))
    if not isinstance(result, Tensor) or result._keys & META:
        return result
    if not is_sparse(result):
        return wrap_meta(tuple(result._array.shape), result.dtype, result.stride())
    parts, a = [on_meta(p) for p in parts_of(result)], result._array
    if is_coo(result):
        return wrap_sparse(CooArray(*parts, a.shape, a.coalesced))
    return wrap_sparse(CompressedArray(a.layout, *parts, a.shape))


# ---- stand-ins
def stand_in(value):
    """A tensor with data for one without; anything else as it is, but the CPU for every device."""
    if isinstance(value, devices.device):
        return devices.cpu
    if value.__class__ is tuple:
        return tuple(map(stand_in, value))
    if not isinstance(value, Tensor) or not value._keys & META:
        return value
    if not is_sparse(value):
        return _zeros(value)
    a = value._array
    if is_coo(value):
        indices = _distinct(a.sparse_dim, a.nnz, a.shape)
        return wrap_sparse(CooArray(indices, _zeros(a.values), a.shape, a.coalesced))
    return wrap_sparse(CompressedArray(a.layout, *_pointers(a), _zeros(a.values), a.shape))


def _zeros(t: Tensor) -> Tensor:
    """One zero, repeated over the shape: no memory is taken."""
    return wrap(np.broadcast_to(np.zeros((), t.dtype.numpy), tuple(t._array.shape)), t.dtype)


def _distinct(sparse_dim: int, nnz: int, shape: tuple) -> Tensor:
    """So many coordinates in order, and different as long as there are cells."""
    sizes = tuple(shape[:sparse_dim])
    if not sizes or not nnz:
        return wrap(np.zeros((sparse_dim, nnz), np.int64))
    cells = np.sort(np.arange(nnz) % max(math.prod(sizes), 1))
    return wrap(np.stack(np.unravel_index(cells, sizes)).astype(np.int64))


def _pointers(a: CompressedArray) -> tuple[Tensor, Tensor]:
    """Pointers and plain indices of as many elements: each row takes as many as it has columns."""
    shape, nnz, at = a.compressed._array.shape, a.nnz, a.batch_dim
    block = a.blocksize or (1, 1)
    rows = shape[-1] - 1
    cells = a.shape[at] // block[0] * (a.shape[at + 1] // block[1])
    width = max(cells // max(rows, 1), 1)
    pointers = np.minimum(np.arange(rows + 1) * width, nnz)
    pointers[-1:] = nnz
    plain = np.arange(nnz) % width
    return (
        wrap(np.broadcast_to(pointers, shape).astype(a.compressed.dtype.numpy)),
        wrap(np.broadcast_to(plain, a.plain._array.shape).astype(a.plain.dtype.numpy)),
    )
