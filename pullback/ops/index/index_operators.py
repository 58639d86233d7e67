"""`index`, `index_put` and their unsafe and masked forms: the operators behind `x[...]` with tensors.

In: a tensor, and a list of index tensors, one per dimension (None: all of it; a mask stands for as many dimensions as
it has). Out: the elements picked, or the tensor with values put there. Kernels are in `index_kernels`.
"""

from __future__ import annotations

import math

import numpy as np

from ...core import dtype as dtypes
from ...core.arrays import library
from ...core.geometry import elementwise_strides, is_contiguous, surely_contiguous
from ...core.modes import ambient
from ...core.objects import make_tensor
from ...core.tensor import META, TRANSFORMED, Tensor, stride_of
from ..eager.functions import bypassing
from ..eager.views import is_plain_tensor
from ..family.base import composite, operator
from ..family.batching import batch_first
from ..family.formats import dense_like_first
from ..system.dispatch import dispatch
from ..system.inplace import deprecated_on_expanded
from ..system.operator import LINEAR, DataDependent, Spec, exports
from . import index_kernels as kernels
from .index_lowering import lower_index, lower_index_put


# ---- metadata
def _indexed(rank: int, indices) -> list[bool]:
    """Which dimensions are indexed."""
    known: list = []
    for index in indices:
        known += [index is not None] * (
            max(index.ndim, 1) if index is not None and kernels.is_mask(index._array) else 1
        )
    kernels.check_count(len(known), rank)
    return known


def _picked(self, indices) -> tuple:
    """The common shape of the indices; masks count their true elements, if they have any data."""
    shapes, dim = [], 0
    for index in indices:
        if index is None or not kernels.is_mask(index._array):
            shapes += [] if index is None else [index._array.shape]
            dim += 1
            continue
        if index._keys & (META | TRANSFORMED):
            raise DataDependent("index", "how many elements a mask picks")
        kernels.check_mask(index._array.shape, self._array.shape, dim)
        shapes.append((int((index._array != 0).sum()),))
        dim += index._array.ndim
    return kernels.index_shape(shapes)


def _index_meta(self, indices) -> Spec:
    if not indices:
        raise IndexError("at least one index must be provided")
    kernels.check_types([None if i is None else i._array for i in indices])
    known, picked = _indexed(self.ndim, indices), _picked(self, indices)
    kernels.refuse_any_of_none(self._array.shape, [d for d, indexed in enumerate(known) if indexed], picked)
    return Spec(kernels.result_shape(self._array.shape, known, picked), self.dtype)


def _index_strides(shape: tuple, self, indices) -> tuple | None:
    """The order of dimensions of what is read: those of the tensor that are left, and those of the indices."""
    known = _indexed(self._array.ndim, indices)
    tensors = [i for i in indices if i is not None and not kernels.is_mask(i._array)]
    if is_row_major(self) and all(i._array.ndim < 2 or is_row_major(i) for i in tensors):
        return None
    known += [False] * (self._array.ndim - len(known))
    at = [d for d, indexed in enumerate(known) if indexed]
    lead = at[0] if at == list(range(at[0], at[-1] + 1)) else 0  # indices that are not neighbours come first
    rank = len(shape) - len(known) + len(at)
    left = [s for s, indexed in zip(stride_of(self), known, strict=True) if not indexed]
    source = (*left[:lead], *(0,) * rank, *left[lead:])
    rows = [
        (shape, (*(0,) * lead, *_spread_strides(i, shape[lead : lead + rank]), *(0,) * len(left[lead:])))
        for i in tensors
    ]
    return elementwise_strides(shape, [(shape, source), *rows])


def _spread_strides(index, shape: tuple) -> tuple:
    """Strides of an index that is spread over the shape that all have together."""
    stride, lead = stride_of(index), len(shape) - index._array.ndim
    return (0,) * lead + tuple(0 if n == 1 else st for n, st in zip(index._array.shape, stride, strict=True))


def is_row_major(t) -> bool:
    shape, stride = t._array.shape, stride_of(t)
    return (
        surely_contiguous(shape, stride) if stride and stride[0].__class__ is not int else is_contiguous(shape, stride)
    )


def _put_meta(self, indices, values, accumulate) -> Spec:
    """The tensor's own; values must fit, where it is known how many places there are."""
    try:
        target = _index_meta(self, indices).shape
    except DataDependent:
        return Spec(self._array.shape, self.dtype)
    kernels.check_same_dtype(self._array, values._array)
    kernels.check_values(values._array.shape, target)
    return Spec(self._array.shape, self.dtype)


# ---- batching
class _Batched:
    """How a batch of `index` or `index_put` calls is one call: its tensors, and where dimensions of the result lie."""

    def __init__(self, args: tuple, dims: tuple, size: int, spread: bool):
        self.size = size
        given, indices = args[0], args[1]
        each = dims[1] or (None,) * len(indices)
        logical = [i if i is None else i.ndim - (d is not None) for i, d in zip(indices, each, strict=True)]
        masks = [i is not None and kernels.is_mask(i._array) for i in indices]
        self.many = any(d is not None for d in each)  # the indices themselves are batched
        self.possible = not (self.many and any(masks))
        self.rank = max((1 if m else n for n, m in zip(logical, masks, strict=True) if n is not None), default=0)
        known = []
        for n, m in zip(logical, masks, strict=True):
            known += [n is not None] * (max(n, 1) if m else 1)
        at = [d for d, k in enumerate(known) if k]
        self.adjacent = at == list(range(at[0], at[0] + len(at))) if at else True
        self.lead = at[0] if at and self.adjacent else 0
        self.source = batch_first(given, dims[0], size if spread else None)
        self.counted = dims[0] is not None or spread
        self.indices = self._batch_indices(indices, each)

    def _batch_indices(self, indices, each) -> tuple:
        if not self.many:
            return (None, *indices) if self.counted else indices
        aligned = [i if d is None else self._align(i, d) for i, d in zip(indices, each, strict=True)]
        if not self.counted:
            return tuple(aligned)
        counter = exports["torch"]["arange"](self.size, device=self.source.device)
        return (counter.reshape((self.size, *(1,) * self.rank)), *aligned)

    def _align(self, index: Tensor, dim: int) -> Tensor:
        moved = batch_first(index, dim)
        return moved.reshape((self.size, *(1,) * (self.rank + 1 - moved.ndim), *moved.shape[1:]))

    def settle(self, out: Tensor):
        """(result, batch dimension), the result's other dimensions in their order."""
        if not self.many:
            return out, 0 if self.adjacent else self.rank
        if not self.counted:
            return out, self.lead
        moved = tuple(range(1, self.rank + 1))
        return (out.movedim(moved, tuple(d + self.lead for d in moved)) if self.lead else out), 0

    def unsettle(self, values: Tensor, dim: int | None, rank: int) -> Tensor:
        """Values for a batch, laid out as `settle` found the result before it moved anything. `rank`: of one result."""
        values = batch_first(values, dim) if dim is not None else values.unsqueeze(0)
        while values.ndim - 1 > rank and values.shape[1] == 1:
            values = values.squeeze(1)
        values = values.reshape((values.shape[0], *(1,) * (rank + 1 - values.ndim), *values.shape[1:]))
        if not self.many:
            return values if self.adjacent else values.movedim(0, self.rank)
        moved = tuple(range(1, self.rank + 1))
        return values.movedim(tuple(d + self.lead for d in moved), moved) if self.lead else values


def _index_vmap(op):
    def rule(args, dims, size):
        b = _Batched(args, dims, size, spread=False)
        return b.settle(dispatch(op(), (b.source, b.indices))) if b.possible else None

    return rule


def _put_vmap(op):
    def rule(args, dims, size):
        b = _Batched(args, dims, size, spread=dims[0] is None)
        if not b.possible:
            return None
        known = sum(_indexed(b.source.ndim, b.indices)) - b.many
        rank = b.source.ndim - 1 - known + b.rank
        return dispatch(op(), (b.source, b.indices, b.unsettle(args[2], dims[2], rank), args[3])), 0

    return rule


# ---- index
def _index_vjp(g, self_shape, indices):
    """Elements that were picked several times get the sum of what came back."""
    found = _gathered_back(g, self_shape, indices)
    return index_put(g.new_zeros(self_shape), indices, g, True) if found is None else found


@bypassing("index_put.default", "new_zeros.default")
def _gathered_back(g, self_shape, indices):
    """The same of plain tensors that nobody records, for integers in the place of the first dimensions; None where it takes more than that."""
    if not is_plain_tensor(g) or g._autograd is not None and ambient.mode:
        return None
    places: list = []
    for i in indices:
        if (
            i.__class__ is not Tensor
            or i._keys
            or i._array.dtype.kind != "i"
            or i._array.shape != indices[0]._array.shape
        ):
            return None
        places.append(i._array)
    if not places[0].ndim or not g._array.size:
        return None
    lead, rest = self_shape[: len(places)], self_shape[len(places) :]
    rows = np.zeros((math.prod(lead), math.prod(rest)), g._array.dtype)
    at = np.ravel_multi_index(tuple(places), lead, mode="wrap").reshape(-1)  # all are inside, some counted from the end
    if not kernels.combined_natively("add", rows, at, g._array.reshape(at.size, -1)):
        return None
    return make_tensor(rows.reshape(self_shape), g.dtype)


def _index(schema: str, **options):
    return operator(
        schema,
        lower=lower_index,
        kernel=kernels.pick,
        strides=_index_strides,
        meta=_index_meta,
        method=False,
        cost="cheap",
        indices_anywhere=True,
        jvp=LINEAR,
        vjp={"self": _index_vjp},
        **options,
    )


index = _index(
    "index.Tensor(Tensor self, Tensor?[] indices) -> Tensor", function=False, vmap=_index_vmap(lambda: index)
)
unsafe_index = _index(
    "_unsafe_index.Tensor(Tensor self, Tensor?[] indices) -> Tensor", vmap=_index_vmap(lambda: unsafe_index)
)


# ---- index_put
def _put_kernel(xp, self, indices, values, accumulate):
    out = self.copy()
    kernels.put(xp, out, indices, values, accumulate)
    return out


def _put_write(self, indices, values, accumulate) -> None:
    if self._keys & META:
        return
    arrays = [None if i is None else i._array for i in indices]
    kernels.put(library(self.device), self._array, arrays, values._array, accumulate)


def _keep_rest(g, indices, accumulate):
    """The gradient of what was written into: nothing comes from elements that were overwritten."""
    if accumulate:
        return g
    return index_put(g, indices, g.new_zeros(()), False)


def _put_values(g, indices, values_shape):
    if (
        g._keys & META
        and math.prod(values_shape) == 1
        and any(i is not None and kernels.is_mask(i._array) for i in indices)
    ):
        hit = index_put(g.new_zeros(g.shape, dtype=dtypes.bool), indices, g.new_ones((), dtype=dtypes.bool), False)
        return g.masked_fill(~hit, 0).sum().reshape(values_shape)
    picked = index(g, indices)
    lead = len(values_shape) - picked.ndim
    if lead > 0:  # leading ones of the values
        return picked.sum_to_size(values_shape[lead:]).reshape(values_shape)
    return picked.sum_to_size(values_shape)


def _index_put(schema: str, **options):
    return operator(
        schema,
        lower=lower_index_put,
        kernel=_put_kernel,
        strides=dense_like_first,
        meta=_put_meta,
        strict=True,
        out=False,
        jvp=LINEAR,
        vjp={"self": _keep_rest, "values": _put_values},
        **options,
    )


index_put = _index_put(
    "index_put(Tensor self, Tensor?[] indices, Tensor values, bool accumulate=False) -> Tensor",
    inplace="function",
    reads_first=True,
    scatters=True,
    write=_put_write,
    expanded=deprecated_on_expanded("index_put_", "tensor[indices] = tensor", _put_write),
    vmap=_put_vmap(lambda: index_put),
    autocast_cuda="widest",
    indices_anywhere=True,
)
unsafe_index_put = _index_put(
    "_unsafe_index_put(Tensor self, Tensor?[] indices, Tensor values, bool accumulate=False) -> Tensor",
    method=False,
    vmap=_put_vmap(lambda: unsafe_index_put),
    indices_anywhere=True,
)


# ---- indices that may lie outside where a mask says so
def _clamped(self, indices) -> tuple:
    return tuple(None if i is None else i.clamp(-s, s - 1) for i, s in zip(indices, self.shape, strict=False))


@composite(
    "_unsafe_masked_index(Tensor self, Tensor mask, Tensor?[] indices, Scalar fill) -> Tensor",
    method=False,
    out=False,
    indices_anywhere=True,
)
def unsafe_masked_index(self, mask, indices, fill):
    return dispatch(unsafe_index, (self, _clamped(self, indices))).masked_fill(mask.logical_not(), fill)


@composite(
    "_unsafe_masked_index_put_accumulate(Tensor self, Tensor mask, Tensor?[] indices, Tensor values) -> Tensor",
    method=False,
    out=False,
)
def unsafe_masked_index_put_accumulate(self, mask, indices, values):
    if not self.numel():
        return self.clone()
    kept = values.masked_fill(mask.logical_not(), 0)
    return dispatch(unsafe_index_put, (self, _clamped(self, indices), kept, True))
