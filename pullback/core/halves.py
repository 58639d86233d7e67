"""bfloat16 and float16 in C, where it is built: casts from and to single precision, and element-wise loops that compute in it.

The array library's own loops take such numbers one at a time. `cast(array, target)` is the array in the other dtype, and `run(name,
*arrays)` the result of a printed loop (`core.elements`), each None where it does not apply: other dtypes, memory that is not row-major, few
elements, no extension. `through(ufunc, arrays, rounds)` is a ufunc of the array library on what is cast. Elements are rounded to the nearest, as the
array library does.
"""

from __future__ import annotations

import numpy as np

from .dtype import bfloat16
from .elements import _elements
from .threads import thread_count

FEW = 512  # elements, below which the array library is as quick
_BF16, _F16, _F32, _BITS = bfloat16.numpy, np.dtype(np.float16), np.dtype(np.float32), np.dtype(np.uint16)
HALVES = frozenset((_BF16, _F16))


def cast(array, target: np.dtype):
    """A float32 array as one of both, or the other way round."""
    if array.__class__ is not np.ndarray or array.size < FEW or _elements is None or not array.flags.c_contiguous:
        return None
    source = array.dtype
    widens = target is _F32 and (source is _BF16 or source is _F16)
    if not widens and not (source is _F32 and (target is _BF16 or target is _F16)):
        return None
    out = np.empty(array.shape, target)
    pair = (array.view(_BITS), out) if widens else (array, out.view(_BITS))
    return out if _elements.over_halves("", pair, (), thread_count(), _F16 is (source if widens else target)) else None


def run(name: str, *arrays, out=None):
    """The loop of a name on arrays of one of both dtypes and of one shape."""
    first = arrays[0]
    if first.size < FEW or _elements is None or first.dtype not in HALVES:
        return None
    for a in arrays:
        if a.dtype is not first.dtype or a.shape != first.shape or not a.flags.c_contiguous:
            return None
    if out is None:
        out = np.empty(first.shape, first.dtype)
    elif not out.flags.c_contiguous or out.shape != first.shape:
        return None
    bits = tuple([a.view(_BITS) for a in (*arrays, out)])
    return out if _elements.over_halves(name, bits, (), thread_count(), first.dtype is _F16) else None


def narrowed(found, target: np.dtype):
    """An array in another dtype, as the array library rounds it, however it is done."""
    quick = cast(found, target)
    return found.astype(target) if quick is None else quick


def _widened(array):
    quick = cast(array, _F32)
    return array.astype(_F32) if quick is None else quick


def _once(ufunc, arrays, target: np.dtype | None):
    found = ufunc(*[a if a.dtype is _F32 else _widened(a) for a in arrays], out=...)
    return found if target is None else narrowed(found, target)


def with_number(ufunc, array, number):
    """A ufunc of two operands of an array and a Python number, which is not rounded before."""
    return _once(ufunc, (array, np.asarray(number, dtype=_F32)), array.dtype)


def through(ufunc, arrays: tuple, rounds: bool, out=None, few: int = FEW):
    """A ufunc in single precision on arrays of one of both dtypes, of `few` elements at least, rounded to it again where its result is no
    boolean."""
    first = arrays[0]
    if first.size < few or _elements is None or first.dtype not in HALVES:
        return None
    if any(a.dtype is not first.dtype for a in arrays):
        return None
    found = _once(ufunc, arrays, first.dtype if rounds else None)
    if out is None:
        return found
    out[...] = found
    return out
