"""`x[...]` and `x[...] = v`: Python's index syntax as views and index operators.

In: any index Python can write (ints, slices, None, Ellipsis, bools, sequences, arrays, tensors of integers or truth
values, and tuples of those). Out: a view where only ints, slices, None and Ellipsis occur, else a copy of the
elements picked. Basic parts are applied first, left to right, each as one view; tensors are collected and applied
together at the end. That is PyTorch's order: an int next to a tensor selects, it does not take part in the tensors'
broadcasting.
"""

from __future__ import annotations

import warnings

import numpy as np

from ...core.arrays import library
from ...core.modes import TRANSFORM, ambient
from ...core.objects import make_view
from ...core.symbolic import holds
from ...core.tensor import FAKE, META, PLAIN, SPARSE, Tensor, wrap
from ..eager.functions import bypassing
from ..eager.views import is_plain_tensor, may_have_history, plain_view
from ..make.lifting import lifted
from ..make.python_values import whole_number
from ..shape.shapes import overridden, raw
from ..shape.views import alias, basic_part, select, slice_
from ..system.dispatch import dispatch
from ..system.operator import exports
from ..system.overrides import call_overridden
from . import index_kernels as kernels
from . import quick
from .example_numbers import is_example_number, taken_apart
from .index_operators import index as index_op
from .index_operators import index_put

_ALL = slice(None)
_NOT_AN_INDEX = (
    "only integers, slices (`:`), ellipsis (`...`), None and long or byte Variables are valid indices (got {})"
)
_SCALAR = (
    "invalid index of a 0-dim tensor. Use `tensor.item()` in Python or `tensor.item<T>()` in C++ to convert a 0-dim "
    "tensor to a number"
)
_TUPLE_LIKE = 32  # longer lists are always data, as NumPy had it


# ---- one basic index at a time
def _select_otherwise(t: Tensor, dim: int, index, place: int = 0) -> Tensor:
    """`place`: of this part in the whole index, for the error."""
    shape = t._array.shape
    if not shape:
        raise IndexError(_SCALAR)
    size = shape[dim]
    if not getattr(index, "is_symbolic", False) and not -size <= index < size:
        raise IndexError(f"index {index} is out of bounds for dimension {place} with size {size}")
    return dispatch(select, (t, dim, index))


@bypassing("select.int", otherwise=_select_otherwise)
def _select(t: Tensor, dim: int, index, place: int = 0) -> Tensor:
    a = t._array
    shape = a.shape
    if not shape or not is_plain_tensor(t) or index.__class__ is not int or not -(size := shape[dim]) <= index < size:
        return _select_otherwise(t, dim, index, place)
    if not a.size:  # NumPy has forgotten the strides that views go by
        return _select_otherwise(t, dim, index, place)
    at = index if index >= 0 else index + size
    result = a[at, ...] if not dim else a[(*(_ALL,) * dim, at, ...)]
    return plain_view(t, result, t._offset + at * (a.strides[dim] // a.itemsize), select, (t, dim, index))


def _slice_otherwise(t: Tensor, dim: int, index: slice) -> Tensor:
    if not t._array.shape:
        raise IndexError("slice() cannot be applied to a 0-dim tensor.")
    return dispatch(slice_, (t, dim, *_slice_numbers(index)))


@bypassing("slice.Tensor", otherwise=_slice_otherwise)
def _slice(t: Tensor, dim: int, index: slice) -> Tensor:
    a = t._array
    if not a.shape or not is_plain_tensor(t):
        return _slice_otherwise(t, dim, index)
    start, stop, step = index.indices(a.shape[dim])
    if step < 0:
        raise ValueError("step must be greater than zero")
    result = a[start:stop:step] if not dim else a[(*(_ALL,) * dim, slice(start, stop, step))]
    if not result.size:  # NumPy forgets the step as well
        return _slice_otherwise(t, dim, index)
    offset = t._offset + start * (a.strides[dim] // a.itemsize)
    return plain_view(t, result, offset, slice_, (t, dim, start, stop, step))


def _is_whole(t: Tensor, dim: int, index: slice) -> bool:
    """Whether a slice takes a dimension as it is: beside other parts of an index, and in a write, it is no view then."""
    if index == _ALL:
        return True
    if not is_plain_tensor(t) or not t._array.shape:
        return False
    size = t._array.shape[dim]
    return index.indices(size) == (0, size, 1)


def _slice_numbers(index: slice) -> tuple:
    """Start, end and step of a slice as ints (symbolic ones as they are)."""
    start, stop, step = (_slice_number(v) for v in (index.start, index.stop, index.step))
    step = 1 if step is None else step
    if step.__class__ is int and step == 0:
        raise ValueError("slice step cannot be zero")
    if not holds(step > 0):
        raise ValueError("step must be greater than zero")
    return start, stop, step


def _slice_number(value):
    if value is None or value.__class__ is int or getattr(value, "is_symbolic", False):
        return value
    if isinstance(value, Tensor):
        return whole_number(value)
    if not hasattr(value, "__index__"):
        raise TypeError("slice indices must be integers or None or have an __index__ method")
    return value.__index__()


# ---- the whole index
def _as_tuple(index) -> tuple:
    """The index as a tuple of parts. A short list that holds more than numbers is one too."""
    if index.__class__ is tuple:
        return index
    if isinstance(index, tuple):
        return tuple(index)
    if isinstance(index, list) and len(index) < _TUPLE_LIKE and any(_is_structured(i) for i in index):
        return tuple(index)
    return (index,)


def _is_structured(item) -> bool:
    return item is None or item is Ellipsis or isinstance(item, (Tensor, slice, list, tuple, range, np.ndarray))


def _normal(item):
    """One part of an index as int, bool, slice, None, Ellipsis or a tensor."""
    kind = item.__class__
    if kind is int or kind is slice or item is None or item is Ellipsis or kind is bool or isinstance(item, Tensor):
        return item
    if isinstance(item, np.ndarray) and item.dtype.kind != "O":
        return (
            int(item) if not item.ndim and item.dtype.kind in "iu" else exports["torch"]["from_numpy"](np.array(item))
        )
    if isinstance(item, (list, tuple, range)):
        return _sequence(item)
    if getattr(item, "is_symbolic", False):
        return item
    if isinstance(item, str):
        raise TypeError("new(): invalid data type 'str'")
    if hasattr(item, "__index__") and not isinstance(item, np.bool_):
        return item.__index__()
    name = f"{kind.__module__}.{kind.__qualname__}" if kind.__module__ not in ("builtins", None) else kind.__name__
    raise IndexError(_NOT_AN_INDEX.format(name))


def _sequence(items) -> Tensor:
    """A sequence of numbers as an index tensor: truth values where all are, else integers."""
    if not len(items):
        return lifted(wrap(np.zeros(0, np.int64)))
    if any(isinstance(i, str) for i in items):
        raise TypeError("new(): invalid data type 'str'")
    result = exports["torch"]["tensor"](list(items))
    return result if result.dtype.category <= 1 else result.to(exports["torch"]["tensor"](0).dtype)


def _dims_of(item) -> int:
    """How many dimensions of the tensor one part of an index stands for."""
    if item is None or item is Ellipsis or isinstance(item, bool):
        return 0
    if isinstance(item, Tensor) and kernels.is_mask(item._array):
        return item.ndim
    return 1


def apply_index(t: Tensor, index, writes: bool = False) -> tuple[Tensor, list]:
    """(the view that basic parts make, index tensors per dimension of it; an empty list where there are none)."""
    parts = [_normal(p) for p in _as_tuple(index)]
    named = sum(map(_dims_of, parts))
    rank = t.ndim
    if named > rank:
        if not rank and len(parts) == 1 and not isinstance(parts[0], (slice, Tensor)):
            raise IndexError(_SCALAR)
        if not rank and isinstance(parts[0], slice):
            raise IndexError("slice() cannot be applied to a 0-dim tensor.")
        raise IndexError(f"too many indices for tensor of dimension {rank}")
    found: list = []  # (dimension, index tensor)
    out, dim = t, 0
    for place, item in enumerate(parts):
        if item is Ellipsis:
            dim += rank - named
        elif item is None:
            out = out.unsqueeze(dim)
            dim += 1
        elif item.__class__ is bool:
            out, dim = _truth(out, dim, item, found)
        elif item.__class__ is slice:
            if len(parts) == 1 and not (writes and rank) or not _is_whole(out, dim, item):
                out = _slice(out, dim, item)
            dim += 1
        elif isinstance(item, Tensor):
            out, dim = _tensor(out, dim, item, found, place)
        else:
            out = _select(out, dim, item, place)
    return out, _spread(found)


def _truth(t: Tensor, dim: int, value: bool, found: list) -> tuple:
    """True is a new dimension of size 1, False one of size 0."""
    zeros = (np if t._keys & META else library(t.device)).zeros(1 if value else 0, np.int64)
    found.append((dim, 1, lifted(wrap(zeros, device=t.device))))
    return t.unsqueeze(dim), dim + 1


def _tensor(t: Tensor, dim: int, item: Tensor, found: list, place: int) -> tuple:
    mask = kernels.is_mask(item._array)
    if item.ndim or item._array.dtype.kind != "i":  # a number may be of any integer dtype
        kernels.check_types((item._array,))
    if mask and item._array.dtype.kind == "u":
        warnings.warn(
            "indexing with dtype torch.uint8 is now deprecated, please use a dtype torch.bool instead.", stacklevel=4
        )
    if not item.ndim and (not item._keys & META or item._keys & FAKE):
        if mask:
            return _truth(t, dim, bool(item.item()), found)
        return _select(t, dim, item.item(), place), dim
    covers = item.ndim if mask else 1
    if mask:
        kernels.check_mask(item.shape, t.shape, dim)
    found.append((dim, covers, item))
    return t, dim + covers


def _spread(found: list) -> list:
    """Index tensors in a list with one entry per dimension (a mask: one for all of its dimensions), None between."""
    out: list = []
    covered = 0
    for dim, covers, item in found:
        out += [None] * (dim - covered)
        out.append(item)
        covered = dim + covers
    return out


# ---- reading
def _getitem_otherwise(self, index):
    if overridden(self, index):
        return call_overridden(getitem, (self, index), {})
    if ambient.mode & TRANSFORM and (apart := _by_example(self, index)) is not None:
        numbers, rest = apart
        out = dispatch(index_op, (self, numbers))
        return out if rest is None else getitem(out, rest)
    out, indices = apply_index(self, index)
    if indices:
        return dispatch(index_op, (out, tuple(indices)))
    return dispatch(alias, (self,)) if out is self else out


def _by_example(t: Tensor, index) -> tuple[tuple, tuple | None] | None:
    """An index with integers that differ between the examples of a `vmap`, taken apart; None where there are none."""
    parts = [_normal(p) for p in _as_tuple(index)]
    if not any(map(is_example_number, parts)) or sum(map(_dims_of, parts)) > t.ndim:
        return None
    return taken_apart(t.ndim, parts, _dims_of)


@raw("Tensor.__getitem__")
@bypassing("select.int", "slice.Tensor", "index.Tensor", otherwise=_getitem_otherwise)
def getitem(self, index):
    """`self[index]`. One int or slice into a plain tensor is the case that must be quick: all of it stands here."""
    if self.__class__ in PLAIN and not self._keys and (mode := ambient.mode) < 2:
        a = self._array
        kind = index.__class__
        op = None
        if kind is slice:
            if shape := a.shape:
                start, stop, step = index.indices(shape[0])
                if step > 0 and (result := a[index]).size:
                    op, args = slice_, (self, 0, start, stop, step)
                    offset = self._offset + start * (a.strides[0] // a.itemsize) if start else self._offset
        elif kind is int:
            if (shape := a.shape) and -(size := shape[0]) <= index < size and a.size:
                op, args, result = select, (self, 0, index), a[index, ...]
                start = index if index >= 0 else index + size
                offset = self._offset + start * (a.strides[0] // a.itemsize) if start else self._offset
        elif kind is tuple:
            if not (mode and self._autograd is not None and may_have_history(self)):
                if (out := basic_part(self, index)) is not None:
                    return out
            if (out := _basic(self, index)) is not None or (out := quick.columns(self, index)) is not None:
                return out
            if (out := quick.pairs(self, index)) is not None or (out := quick.mixed(self, index, _basic)) is not None:
                return out
        elif index is None:
            return self.unsqueeze(0)
        elif kind is Tensor and (out := quick.pick(self, index)) is not None:
            return out
        if op is not None:
            t = make_view(self, result, offset, op, args, mode)
            if mode and self._autograd is not None and may_have_history(self):
                op.record(t, *args)
            return t
    return _getitem_otherwise(self, index)


def _basic(t: Tensor, index: tuple):
    """A plain tensor by ints, slices, None and Ellipsis; None where there is something else, or anything is wrong."""
    named = 0
    for item in index:
        kind = item.__class__
        if kind is int or kind is slice and (item.step is None or item.step.__class__ is int and item.step > 0):
            named += 1
        elif item is not None and item is not Ellipsis:
            return None
    rank = len(t._array.shape)
    if named > rank:
        return None
    out, dim = t, 0
    for place, item in enumerate(index):
        kind = item.__class__
        if kind is int:
            out = _select(out, dim, item, place)
        elif kind is slice:
            if len(index) == 1 or not _is_whole(out, dim, item):
                out = _slice(out, dim, item)
            dim += 1
        elif item is None:
            out = out.unsqueeze(dim)
            dim += 1
        else:
            dim += rank - named
    return dispatch(alias, (t,)) if out is t else out


# ---- writing
@raw("Tensor.__delitem__")
def delitem(self, index) -> None:
    raise TypeError("Tensor does not support deleting items")


@raw("Tensor.__setitem__")
def setitem(self, index, value) -> None:
    """`self[index] = value`."""
    if quick.put(self, index, value):
        return
    if overridden(self, index, value):
        call_overridden(setitem, (self, index, value), {})
        return
    if index is False:
        return
    if self._keys & SPARSE:
        raise TypeError("Cannot assign to a sparse tensor")
    given = _value(self, value)
    if ambient.mode & TRANSFORM and (apart := _by_example(self, index)) is not None:
        out, (indices, rest) = self, apart
        if rest is not None:  # what the integers pick is no view: it is written, and put back
            given = dispatch(index_op, (self, indices))
            setitem(given, rest, value)
    else:
        out, indices = apply_index(self, index, writes=True)
    if indices:
        if not isinstance(given, Tensor):
            given = _number_tensor(out, given)
        elif given.ndim == 0 and given.dtype is not out.dtype and not isinstance(value, Tensor):
            given = given.to(out.dtype)
        dispatch(index_put.inplace, (out, tuple(indices), given, False))
    elif isinstance(given, Tensor):
        _copy_into(out, given)
    else:
        out.fill_(given)


def _value(self: Tensor, value):
    if isinstance(value, (Tensor, int, float, complex)) or getattr(value, "is_symbolic", False):
        return value
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, np.ndarray):
        return exports["torch"]["from_numpy"](value)
    raise TypeError(f"can't assign a {type(value).__name__} to a {self.type()}")


def _number_tensor(out: Tensor, number) -> Tensor:
    return exports["torch"]["full"]((), number, dtype=out.dtype, device=out.device)


def _copy_into(out: Tensor, value: Tensor) -> None:
    """Copy, once leading ones of the value are dropped; shapes that do not fit get `expand`'s words."""
    shape = tuple(value.shape)
    drop = 0
    while drop < len(shape) - out.ndim and shape[drop] == 1:
        drop += 1
    value = value.reshape(shape[drop:]) if drop else value
    if (
        not value.ndim
        and out.ndim
        and not value._keys & ~(META | FAKE)
        and value.dtype.is_complex <= out.dtype.is_complex
    ):
        out.fill_(value)
        return
    if tuple(value.shape) != tuple(out.shape):
        value = value.expand(tuple(out.shape))
    out.copy_(value)
