"""bfloat16 in C, where it is built: casts from and to single precision, and element-wise loops that compute in it.

The array library's own loops take bfloat16 one element at a time. `cast(array, target)` is the array in the other of both dtypes, and `run(name,
*arrays)` the result of a printed loop (`core.elements`), each None where it does not apply: other dtypes, memory that is not row-major, few
elements, no extension. Elements are rounded to the nearest, as the array library does.
"""

from __future__ import annotations

import numpy as np

from .dtype import bfloat16
from .elements import _elements
from .threads import thread_count

FEW = 512  # elements, below which the array library is as quick
_BF16, _F32, _BITS = bfloat16.numpy, np.dtype(np.float32), np.dtype(np.uint16)


def cast(array, target: np.dtype):
    """A float32 array as bfloat16, or the other way round."""
    if array.__class__ is not np.ndarray or array.size < FEW or _elements is None or not array.flags.c_contiguous:
        return None
    widens = array.dtype is _BF16 and target is _F32
    if not widens and not (array.dtype is _F32 and target is _BF16):
        return None
    out = np.empty(array.shape, target)
    pair = (array.view(_BITS), out) if widens else (array, out.view(_BITS))
    return out if _elements.over_halves("", pair, (), thread_count()) else None


def run(name: str, *arrays, out=None):
    """The loop of a name on bfloat16 arrays of one shape."""
    first = arrays[0]
    if first.size < FEW or _elements is None:
        return None
    for a in arrays:
        if a.dtype is not _BF16 or a.shape != first.shape or not a.flags.c_contiguous:
            return None
    if out is None:
        out = np.empty(first.shape, _BF16)
    elif not out.flags.c_contiguous or out.shape != first.shape:
        return None
    bits = tuple([a.view(_BITS) for a in (*arrays, out)])
    return out if _elements.over_halves(name, bits, (), thread_count()) else None
