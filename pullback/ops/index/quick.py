"""Indexing of plain tensors by one NumPy call: `x[...]` and `x[...] = v` where nothing listens.

In: tensors and indices as Python writes them. Out: the result, or None (False of a write) where a call takes more than what stands here:
the general path, which finds the words of errors too. An index is as NumPy takes it only where it has the same meaning
there: ints and slices are views of their own before tensors are asked, as PyTorch has it.
"""

from __future__ import annotations

import numpy as np

from ...core.modes import ambient
from ...core.objects import make_tensor
from ...core.small import written_once
from ...core.tensor import PLAIN, Tensor
from ..eager.functions import bypassing
from ..eager.views import is_unheard, may_have_history
from .index_operators import index as index_op

WHOLE = slice(None)
_LARGEST = 3.4028234663852886e38  # of float32: what is larger, infinities and NaN are left to the general path


# ---- reading
def pick(t: Tensor, index: Tensor):
    """A plain tensor by one plain tensor of integers or truth values; None where it takes more than that."""
    at, array = index._array, t._array
    if array.ndim > 1 and not array.flags.c_contiguous or at.ndim > 1 and not at.flags.c_contiguous:
        return None  # the order of dimensions of the result follows from theirs
    if at.dtype.kind == "b" and not index._keys and at.ndim and array.shape[: at.ndim] == at.shape:
        out = make_tensor(array[at], t.dtype)
        return index_op.record(out, t, (index,)) if ambient.mode and t._autograd is not None else out
    if index._keys or at.dtype.kind != "i" or at.itemsize < 4 or not at.ndim or not array.ndim:
        return None
    try:
        result = array.take(at, 0)
    except (IndexError, MemoryError):
        return None  # the general path finds the words
    out = make_tensor(result, t.dtype)
    return index_op.record(out, t, (index,)) if ambient.mode and t._autograd is not None else out


def columns(t: Tensor, index: tuple):
    """A plain tensor by one plain tensor of integers after whole slices; None where it takes more than that."""
    picked, array, dim = index[-1] if index else None, t._array, len(index) - 1
    if picked.__class__ is not Tensor or picked._keys or not dim < array.ndim or not array.flags.c_contiguous:
        return None
    for item in index[:-1]:
        if item.__class__ is not slice or item != WHOLE:
            return None
    at = picked._array
    if at.dtype.kind != "i" or at.itemsize < 4 or not at.ndim or not at.flags.c_contiguous:
        return None
    try:
        result = array.take(at, dim)
    except IndexError:
        return None  # the general path finds the words
    out = make_tensor(result, t.dtype)
    if ambient.mode and t._autograd is not None:
        return index_op.record(out, t, (*[None] * dim, picked))
    return out


def pairs(t: Tensor, index: tuple):
    """A plain tensor by plain tensors of integers for its first dimensions; None where it takes more than that."""
    places = _places_of(t, index) if t._array.flags.c_contiguous else None
    if places is None:
        return None
    try:
        result = t._array[places]
    except IndexError:
        return None  # the general path finds the words
    out = make_tensor(result, t.dtype)
    return index_op.record(out, t, index) if ambient.mode and t._autograd is not None else out


def _places_of(t: Tensor, index: tuple) -> tuple | None:
    """Row-major arrays of integers of one shape for the first dimensions of a tensor."""
    if not 0 < len(index) <= t._array.ndim:
        return None
    places: list = []
    for item in index:
        if item.__class__ is not Tensor or item._keys:
            return None
        at = item._array
        if at.dtype.kind != "i" or at.itemsize < 4 or not at.ndim or not at.flags.c_contiguous:
            return None
        if places and at.shape != places[0].shape:
            return None
        places.append(at)
    return tuple(places)


def mixed(t: Tensor, index: tuple, view):
    """A plain tensor by plain tensors beside ints, slices and None; `view(t, basic)` is the view that those make, with its history."""
    parts = _apart(t, index)
    if parts is None:
        return None
    basic, key = parts
    try:
        array = t._array if basic is None else t._array[basic]
        if not _descending(array, key):
            return None
        result = _picked(array, key)
    except (IndexError, MemoryError):
        return None
    if ambient.mode and t._autograd is not None:
        out = make_tensor(result, t.dtype)
        source = t if basic is None else view(t, basic)
        return None if source is None else index_op.record(out, source, _tensors_of(index, key))
    return make_tensor(result, t.dtype)


def _apart(t: Tensor, index: tuple) -> tuple | None:
    """(the index without its tensors, or None where it takes everything; the arrays of those, in a key for the view that it makes)."""
    basic: list = []
    key: list = []
    whole, named, found = True, 0, False
    for item in index:
        kind = item.__class__
        if kind is slice:
            if item != WHOLE:
                if not (item.step is None or item.step.__class__ is int and item.step > 0):
                    return None
                whole = False
            basic.append(item)
            key.append(WHOLE)
        elif kind is int:
            whole = False
            basic.append(item)
        elif item is None:
            whole = False
            basic.append(None)
            key.append(WHOLE)
            continue
        elif kind is Tensor and not item._keys:
            at = item._array
            rank = at.ndim
            if not rank or rank > 1 and not at.flags.c_contiguous:
                return None
            if at.dtype.kind == "b":
                if t._array.shape[named : named + rank] != at.shape:
                    return None
                basic += [WHOLE] * rank
                named += rank - 1
            elif at.dtype.kind == "i" and at.itemsize >= 4:
                basic.append(WHOLE)
            else:
                return None
            key.append(at)
            found = True
        else:
            return None
        named += 1
    if not found or named > t._array.ndim:
        return None
    return None if whole else tuple(basic), tuple(key)


def _descending(array, key: tuple) -> bool:
    """Whether what is picked is row-major by PyTorch's rule: the dimensions that are left stand in their order in memory."""
    if array.flags.c_contiguous:
        return True
    last, dim = None, 0
    for at in (*key, *(WHOLE,) * (array.ndim - len(key))):
        if at is WHOLE:
            stride = array.strides[dim]
            if stride <= 0 or array.shape[dim] < 2 or last is not None and stride >= last:
                return False
            last = stride
        dim += 1 if at is WHOLE or at.dtype.kind != "b" else at.ndim
    return True


def _picked(array, key: tuple):
    given = [d for d, at in enumerate(key) if at is not WHOLE]
    if len(given) == 1 and (at := key[given[0]]).dtype.kind != "b":
        if array.flags.c_contiguous or array.size <= 2 * at.size * (array.size // max(array.shape[given[0]], 1)):
            return array.take(at, given[0])  # which copies the rest where it is not row-major
    result = np.ascontiguousarray(array[key])
    return result.reshape(-1).reshape(result.shape) if 1 in result.shape else result  # NumPy leaves odd strides there


def _tensors_of(index: tuple, key: tuple) -> tuple:
    """The tensors of an index in the places that their arrays have in the key; what follows the last is left away."""
    tensors = iter([item for item in index if item.__class__ is Tensor])
    out = [None if at is WHOLE else next(tensors) for at in key]
    while out[-1] is None:
        out.pop()
    return tuple(out)


# ---- writing
@bypassing("select.int", "slice.Tensor", "fill_.Scalar", "full.default", "index_put_.default", "copy_.default")
def put(self: Tensor, index, value) -> bool | None:
    """Plain numbers, or a plain tensor of the same dtype, put into a plain tensor where nobody records it."""
    if self.__class__ not in PLAIN or self._keys or (mode := ambient.mode) > 1:
        return False
    if mode and not (self._autograd is None and self._view_info is None or is_unheard(self)):
        return False
    memory = self._memory
    kind = value.__class__
    if kind is Tensor:
        if (
            value._keys
            or value.dtype is not self.dtype
            or value is self
            or memory is not None
            and value._memory is memory
        ):
            return False
        if mode and value._autograd is not None and may_have_history(value):
            return False
        value = value._array
    elif kind is float:
        if self.dtype.category != 2 or not -_LARGEST <= value <= _LARGEST:
            return False
    elif kind is not int and kind is not bool or self.dtype.category > 2 or kind is int and not self.dtype.category:
        return False
    array = self._array
    if kind is not Tensor and array.itemsize < 4 and self.dtype.category == 2:
        return False  # numbers are rounded to single precision first
    if memory is not None and not written_once(array) or (place := _place(self, index)) is None:
        return False
    basic, key = place
    try:
        if key is None:
            array[basic] = value
        elif basic is None:
            array[key] = value
        else:
            array[basic][key] = value
    except (IndexError, ValueError, TypeError, OverflowError):
        return False
    self._counter[0] += 1
    return True


def _place(self: Tensor, index) -> tuple | None:
    """(a basic index or None, a key of arrays for the view that it makes or None), as NumPy takes them."""
    kind, array = index.__class__, self._array
    if kind is int:
        return index, None
    if kind is slice:
        return (index, None) if index.step is None and array.ndim else None
    if kind is tuple:
        for item in index:
            if item.__class__ is Tensor:
                break
        else:
            fits = len(index) <= array.ndim and all(
                i.__class__ is int or i.__class__ is slice and i.step is None for i in index
            )
            return (index, None) if fits else None
        for item in index:
            if item.__class__ is Tensor and item._memory is not None and item._memory is self._memory:
                return None
        return _apart(self, index)
    if (
        kind is not Tensor
        or index._keys
        or index._memory is not None
        and index._memory is self._memory
        or index is self
    ):
        return None
    at = index._array
    if not at.ndim or not array.ndim:
        return None
    if at.dtype.kind == "b":
        return (None, at) if array.shape[: at.ndim] == at.shape else None
    return (None, at) if at.dtype.kind == "i" and at.itemsize >= 4 else None
