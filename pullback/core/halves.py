"""bfloat16 and float16 in C, where it is built: casts from and to single precision.

The array library's own loops take such numbers one at a time. `cast(array, target)` is the array in the other dtype, None where that does not
apply: other dtypes, memory that is not row-major, few elements, no extension. Elements are rounded to the nearest, as the array library does.
"""

from __future__ import annotations

import numpy as np

from .dtype import bfloat16
from .elements import _elements
from .threads import thread_count

FEW = 128  # elements, below which the array library is as quick
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
    return out if _elements.cast_halves(*pair, thread_count(), _F16 is (source if widens else target)) else None


def narrowed(found, target: np.dtype):
    """An array in another dtype, as the array library rounds it, however it is done."""
    quick = cast(found, target)
    return found.astype(target) if quick is None else quick
