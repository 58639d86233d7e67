"""Elements by their place in the whole, or by a mask: take, put, masked_select, masked_scatter, nonzero.

In: a tensor and flat indices, or a mask of truth values. Out: the elements as a vector (or in the index's shape), or
the tensor with elements replaced. How many elements a mask names depends on data: such results have no shape on
device meta.
"""

from __future__ import annotations

from ...core import dtype as dtypes
from ...core.dtype import by_numpy
from ...core.geometry import broadcast_shapes
from ...core.tensor import Tensor, wrap
from ..eager.functions import ANY
from ..eager.straight import CheckedKernelCase
from ..family.base import Family, composite, operator
from ..family.batching import batch_first
from ..shape.view_geometry import numel
from ..system.calls import front
from ..system.dispatch import dispatch
from ..system.general import write_out
from ..system.operator import LINEAR, NONDIFFERENTIABLE, DataDependent, Operator, Spec, exports
from .gather_scatter import writer
from .index_kernels import apply_at


def _data_dependent(name: str):
    def meta(*args):
        raise DataDependent(name)

    return meta


# ---- flat places
def _check_places(name: str, array, index) -> None:
    if not (index.dtype.kind == "i" and index.dtype.itemsize == 8):
        raise RuntimeError(f"{name}(): Expected a long tensor for index, but got {by_numpy[index.dtype].scalar_name}")
    size = array.size
    bad = index[(index < -size) | (index >= size)]
    if bad.size and size:
        raise IndexError(f"out of range: tried to access index {bad.flat[0]} on a tensor of {size} elements.")


def _check_any(size, wanted) -> None:
    if not size and wanted:
        raise IndexError("take(): tried to take from an empty tensor")


def _take_spec(self: Tensor, index: Tensor) -> Spec:
    _check_any(self._array.size, index._array.size)
    return Spec(index._array.shape, self.dtype)


def _take(xp, self, index):
    _check_any(self.size, index.size)
    _check_places("take", self, index)
    return self.reshape(-1).take(index) if index.size else xp.empty(index.shape, self.dtype)


def _batch_take(args, dims, size):
    if dims[0] is None:
        return dispatch(take, args), dims[1]
    self = batch_first(args[0], dims[0]).reshape((size, -1))
    index = batch_first(args[1], dims[1], size)
    length = self.shape[1]
    at = exports["torch"]["where"](index < 0, index + length, index)
    return self.gather(1, at.reshape((size, -1))).reshape(index.shape), 0


def _check_take_out(result: Tensor, out: Tensor) -> None:
    if out.dtype is not result.dtype:
        raise RuntimeError(
            "take(): self and out expected to have the same dtype, but got self.dtype = "
            f"{result.dtype.scalar_name} and out.dtype = {out.dtype.scalar_name}"
        )


take = operator(
    "take(Tensor self, Tensor index) -> Tensor",
    kernel=_take,
    plain=CheckedKernelCase(),
    check_out=_check_take_out,
    meta=_take_spec,
    strict=True,
    jvp=LINEAR,
    vjp={"self": lambda g, self_shape, index: dispatch(put, (g.new_zeros(self_shape), index, g, True))},
    vmap=_batch_take,
    out_apart="all",
)


def _check_counts(index: int, source: int) -> None:
    if index != source:
        raise IndexError(
            "put_(): Expected source and index to have the same number of elements, "
            f"but got source.numel() = {source}, index.numel() = {index}"
        )


def _put_meta(self, index, source, accumulate) -> Spec:
    _check_counts(index._array.size, source._array.size)
    return Spec(self._array.shape, self.dtype)


def _put(xp, out, index, source, accumulate) -> None:
    _check_counts(index.size, source.size)
    if out.dtype != source.dtype:
        raise RuntimeError(
            "put_(): self and source expected to have the same dtype, but got self.dtype = "
            f"{by_numpy[out.dtype].scalar_name} and source.dtype = {by_numpy[source.dtype].scalar_name}"
        )
    if not out.size and index.size:
        raise IndexError("put_(): Tried to put elements into an empty tensor")
    _check_places("put_", out, index)
    flat = xp.ascontiguousarray(out).reshape(-1, 1)
    at = index.reshape(-1)
    if accumulate:
        apply_at(xp, xp.add, flat, xp.where(at < 0, at + out.size, at), source.reshape(-1, 1))
    else:
        flat[at, 0] = source.reshape(-1)
    if not xp.may_share_memory(flat, out):
        out[...] = flat.reshape(out.shape)


put = operator(
    "put(Tensor self, Tensor index, Tensor source, bool accumulate=False) -> Tensor",
    **writer(_put, meta=_put_meta),
    inplace=True,
    scatters=True,
    jvp=LINEAR,
    vjp={
        "self": lambda g, index, source_info, accumulate: (
            g if accumulate else dispatch(put, (g, index, g.new_zeros(source_info.shape), False))
        ),
        "source": lambda g, index, source_shape: dispatch(take, (g, index)).reshape(source_shape),
    },
)


# ---- masks
def _masked_select(xp, self, mask):
    if mask.dtype.kind != "b":
        raise RuntimeError("masked_select: expected BoolTensor for mask")
    shape = broadcast_shapes(mask.shape, self.shape)
    wide = self if self.shape == shape else xp.broadcast_to(self, shape)
    return wide.reshape(-1).take(xp.flatnonzero(xp.broadcast_to(mask, shape)))


def _unselect(g, self_shape, mask):
    """A vector of gradients back in the places where the mask is true."""
    shape = broadcast_shapes(tuple(self_shape), tuple(mask.shape))
    return dispatch(masked_scatter_, (g.new_zeros(shape), mask.expand(shape), g))


masked_select = operator(
    "masked_select(Tensor self, Tensor mask) -> Tensor",
    kernel=_masked_select,
    plain=CheckedKernelCase(),
    meta=_data_dependent("masked_select"),
    strict=True,
    jvp=LINEAR,
    vjp={"self": _unselect},
    out_apart="others",
)


def _masked_scatter(xp, out, mask, source) -> None:
    if out.dtype != source.dtype:
        raise RuntimeError(
            "masked_scatter: expected self and source to have same dtypes but got"
            f"{by_numpy[out.dtype].scalar_name} and {by_numpy[source.dtype].scalar_name}"
        )
    if mask.dtype.kind != "b":
        kind = by_numpy[mask.dtype].scalar_name
        raise RuntimeError(f"masked_scatter_ only supports boolean masks, but got mask with dtype {kind}")
    where = xp.broadcast_to(mask, out.shape)
    count = int(xp.count_nonzero(where))
    if count > source.size:
        raise RuntimeError("Number of elements of source < number of ones in mask")
    out[where] = source.reshape(-1)[:count]


def _masked_source(g, mask, source_shape):
    """The gradient of `source`: what the mask named, in order; zeros for elements that were not used."""
    count = numel(source_shape)
    flat = mask.expand(g.shape).reshape(-1)
    places = (flat.cumsum(0) - 1).masked_fill(~flat, count)  # what the mask does not name lands behind the end
    return g.new_zeros((count + 1,)).scatter(0, places, g.reshape(-1))[:count].reshape(source_shape)


masked_scatter_ = operator(
    "masked_scatter(Tensor self, Tensor mask, Tensor source) -> Tensor",
    moves=True,
    **writer(_masked_scatter),
    function=False,
    method=False,
    inplace="hidden",
    jvp=LINEAR,
    vjp={"self": lambda g, mask: g.masked_fill(mask, 0), "source": _masked_source},
)


@front("torch.masked_scatter", "Tensor.masked_scatter", past=("masked_scatter.default", "expand.default"))
def masked_scatter(input, mask, source) -> Tensor:
    """A copy with the elements where `mask` is true replaced, in order, by those of `source`."""
    shape = broadcast_shapes(tuple(input.shape), tuple(mask.shape))
    return masked_scatter_(input.expand(shape), mask, source)


@front("Tensor.masked_scatter_")
def masked_scatter_into(input, mask, source) -> Tensor:
    if mask.ndim > input.ndim:
        raise RuntimeError(
            f"expand(CPU{mask.dtype.scalar_name}Type{{{list(mask.shape)}}}, size={list(input.shape)}): the "
            "number of sizes provided "
            f"({input.ndim}) must be greater or equal to the number of dimensions in the tensor ({mask.ndim})"
        )
    return dispatch(masked_scatter_.inplace, (input, mask.expand(input.shape), source))


# ---- where elements are not zero
class _Columns(Family):
    """Places as rows of coordinates, laid out column by column, as PyTorch lays them out."""

    def wrap_outputs(self, op: Operator, result, device):
        return wrap(result, dtypes.int64, device)


def _nonzero(xp, self):
    if not self.ndim:
        return xp.empty((int(bool(self)), 0), "i8")
    places = xp.nonzero(self)
    columns = xp.empty((self.ndim, places[0].size), "i8")
    for column, place in zip(columns, places, strict=True):
        column[...] = place
    return columns.T


def _check_places_out(result: Tensor, out: Tensor) -> None:
    """Places go into integers of 64 bits alone."""
    if out.dtype is not result.dtype:
        raise RuntimeError(
            f"nonzero: Expected out tensor to have scalar type Long but got scalar type {out.dtype.scalar_name}"
        )


nonzero_op = Operator(
    "nonzero(Tensor self) -> Tensor",
    _Columns(),
    kernel=_nonzero,
    check_out=_check_places_out,
    meta=_data_dependent("nonzero"),
    vjp=NONDIFFERENTIABLE,
    cost="compute",
)


@front("torch.nonzero", "Tensor.nonzero")
def nonzero(input, *, out=None, as_tuple: bool = False):
    """The places of elements that are not zero: one row each, or one vector per dimension."""
    if as_tuple:
        if out is not None:
            raise RuntimeError("nonzero does not support the out kwarg when as_tuple is True")
        return tuple(dispatch(nonzero_op, (input if input.ndim else input.unsqueeze(0),)).unbind(1))
    if out is not None:
        return write_out(nonzero_op, (input,), out)
    return dispatch(nonzero_op, (input,))


@composite("argwhere(Tensor self) -> Tensor", out=False)
def argwhere(self):
    return dispatch(nonzero_op, (self,))


@composite("nonzero_numpy(Tensor self) -> Tensor[]", function=False, method=False, out=False)
def nonzero_numpy(self):
    return list(nonzero(self, as_tuple=True))


def _check_static(self, size, fill_value) -> None:
    if size < 0:
        raise RuntimeError("nonzero_static: 'size' must be an non-negative integer")


def _nonzero_static(xp, self, size, fill_value):
    _check_static(self, size, fill_value)
    found = _nonzero(xp, self)[:size]
    out = xp.full((size, self.ndim), fill_value, "i8")
    out[: len(found)] = found
    return out


def _static_meta(self, size, fill_value) -> Spec:
    _check_static(self, size, fill_value)
    return Spec((size, self._array.ndim), dtypes.int64)


def _long_out(result, out) -> None:
    if out.dtype is not result.dtype:
        raise RuntimeError(
            f"nonzero_static: Expected out tensor to have scalar type Long but got scalar type {out.dtype.scalar_name}"
        )


nonzero_static = operator(
    "nonzero_static(Tensor self, *, SymInt size, int fill_value=-1) -> Tensor",
    kernel=_nonzero_static,
    check_out=_long_out,
    meta=_static_meta,
    vjp=NONDIFFERENTIABLE,
    cost="compute",
)


@front("torch.unravel_index", past=(ANY,))
def unravel_index(indices, shape) -> tuple:
    """Flat places as coordinates in `shape`."""
    if isinstance(shape, int):
        shape = (shape,)
    if not isinstance(indices, Tensor) or indices.dtype.category != 1:
        raise TypeError(f"expected 'indices' to be integer dtype, but got {getattr(indices, 'dtype', type(indices))}")
    if not isinstance(shape, (list, tuple)):
        raise TypeError(f"expected 'shape' to be int or sequence of ints, but got {type(shape)}")
    if any(not isinstance(s, int) for s in shape):
        raise TypeError(f"expected 'shape' sequence to only contain ints, but got {tuple(shape)}")
    if any(s < 0 for s in shape):
        raise ValueError(f"'shape' cannot have negative values, but got {tuple(shape)}")
    out: list = []
    rest = indices
    for s in reversed(shape):
        out.append(rest % s)
        rest = rest.div(s, rounding_mode="floor")
    return tuple(reversed(out))
