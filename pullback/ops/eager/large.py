"""Element-wise operators on many elements, by loops in C that threads share: no piece of the work is handed to a thread of Python's.

In: operators, arrays. Out: the loop of an operator for a dtype, its result on arrays that lie as the loop wants them; None where there is
no loop, or arrays lie otherwise: the caller then computes with the array library.
"""

from __future__ import annotations

from functools import cache

import numpy as np

from ...core import dtype as dtypes
from ...core.dtype import dtype
from ...core.elements import over_rows, table, use_threads
from ...core.pixels import pixels_of, pixels_per_row
from ..system.operator import Operator, key_of
from .kernels import has_loop, loop_of
from .ufuncs import blank

_FLOATS = {"f": dtypes.float32, "d": dtypes.float64}
_SPELLED = {"true_divide": "divide"}
_LONG_ROW = 1024
_SHORTEST_ROW = 64  # what surrounds the loop over a shorter one takes longer than the array library does


@cache
def loops_of(op: Operator) -> dict[dtype, np.ufunc]:
    """The loops in C that are the whole operator on arrays alone, by dtype: of one that is a ufunc of the array library."""
    declared = op.declared
    name = getattr(declared, "ufunc", None)
    if name is None or declared.result is not None:
        return {}
    if len(op.tensor_positions) == 2:
        loop = table.get("rows", {}).get((_SPELLED.get(name, name),))  # rounded as the array library rounds them
        kinds = () if loop is None else [t[0] for t in loop.types]
        return {d: loop for char, d in _FLOATS.items() if char in kinds}
    loop = loop_of(op)
    return {} if loop is None else {dtypes.float32: loop}


@cache
def looped_dtypes(op: Operator) -> frozenset[dtype]:
    """The dtypes for which every variant of an operator's kernel is a loop in C."""
    if not has_loop(op):
        return frozenset()
    kinds = [{t[0] for t in loop.types} for loop in table[key_of(op)].values()]
    return frozenset(d for char, d in _FLOATS.items() if all(char in known for known in kinds))


def shares(*arrays) -> bool:
    """Whether a loop in C over large arrays is shared by threads: they are row-major. It may be called at once."""
    for a in arrays:
        if not a.flags.c_contiguous:
            return False
    use_threads()
    return True


def over_all(loop, x, y):
    """A loop of two operands over large arrays: of one shape, or of which one broadcasts; y may be without dimensions."""
    if (not y.ndim or x.shape == y.shape) and shares(x, y):
        return loop(x, y, out=...)
    return by_rows(loop.__name__, [x, y]) if x.ndim and y.ndim else None


def by_rows(name: str, arrays: list):
    """The loop of a name over large arrays of one dtype, of which one broadcasts or lies in rows apart."""
    try:
        shape = np.broadcast_shapes(*[a.shape for a in arrays])
    except ValueError:
        return None
    out = blank(shape, arrays[0].dtype, [a for a in arrays if a.ndim])
    if not out.flags.c_contiguous and (placed := pixels_of(out) if out.ndim in (4, 5) else out).flags.c_contiguous:
        return out if _by_pixels(name, arrays, placed) else None
    if shape[-1] < _SHORTEST_ROW:
        return None
    return out if over_rows(name, *arrays, out) else None


def _by_pixels(name: str, arrays: list, out) -> bool:
    """The loop on images that lie channels-last, into `out`, the result as it lies: short rows of channels are repeated for several pixels."""
    lying = [pixels_of(a.reshape((1,) * (out.ndim - a.ndim) + a.shape)) for a in arrays]
    channels = out.shape[-1]
    if channels >= _SHORTEST_ROW:
        return over_rows(name, *lying, out)
    together = pixels_per_row(out.size // channels, channels, _LONG_ROW)
    rows = []
    for a in lying:
        if a.shape == out.shape and a.flags.c_contiguous:
            rows.append(a.reshape(-1, together * channels))
        elif a.size in (1, channels) and a.shape[-1] == a.size:
            rows.append(np.broadcast_to(a.reshape(1, -1), (together, channels)).reshape(1, -1))
        else:
            return False
    return over_rows(name, *rows, out.reshape(-1, together * channels))
