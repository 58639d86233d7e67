"""Planes of images in C, where they are built: windows, sparse maps along an axis, sampling by a grid.

Functions take arrays of the CPU and give new ones, or None where the loops do not apply (another dtype, no compiled extension,
`PULLBACK_NATIVE=0`): the caller then computes with the array library. `core/_spatial.c` says what each loop does.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from .extension import extension
from .pixels import as_pixels, new_pixels, pixels_of
from .threads import native_pool, thread_count

_spatial = extension("_spatial")
if _spatial is not None and native_pool() is not None:
    _spatial.use_pool(native_pool())

AVERAGE, SPREAD, MAXIMUM = range(3)
SAMPLES, TO_IMAGE, TO_GRID = range(3)
FLOATS = frozenset((np.dtype(np.float32), np.dtype(np.float64)))
_ONE, _ZERO = np.ones(1, np.int64), np.zeros(1, np.int64)


def apply_to(*arrays: Any) -> bool:
    """Whether there are loops for these arrays: NumPy's, of one of the dtypes and all of the same."""
    kind = arrays[0].dtype
    return (
        _spatial is not None and kind in FLOATS and all(a.__class__ is np.ndarray and a.dtype == kind for a in arrays)
    )


def _dense(a: np.ndarray) -> np.ndarray:
    return a if a.flags.c_contiguous else np.ascontiguousarray(a)


# ---- windows
Axis = tuple[np.ndarray, np.ndarray, np.ndarray]  # begin, end and count of each window along an axis


def _bounds(axes: Sequence[Axis]) -> tuple:
    missing = [(_ZERO, _ONE, _ONE)] * (3 - len(axes))
    return tuple([axis[k] for k in range(3) for axis in (*missing, *axes)])


def _three(sizes: Sequence[int]) -> tuple[int, ...]:
    return (1,) * (3 - len(sizes)) + tuple([int(s) for s in sizes])


def average(x: np.ndarray, axes: Sequence[Axis], divisor: int | None) -> np.ndarray | None:
    """(N, C, windows...) averages of x (N, C, spatial...): sums divided by `divisor`, or by the product of counts."""
    if divisor == 0 or len(axes) > 3 or not apply_to(x):
        return None
    out = _room(x, axes, x.dtype)
    _windows(AVERAGE, x, out, None, (1,) * len(axes), axes, divisor)
    return out


def spread(g: np.ndarray, size: Sequence[int], axes: Sequence[Axis], divisor: int | None) -> np.ndarray | None:
    """The transpose of `average`: what meets x, of spatial `size`."""
    if divisor == 0 or len(axes) > 3 or not apply_to(g):
        return None
    out = np.zeros((*g.shape[:2], *size), g.dtype)
    _windows(SPREAD, out, _dense(g), None, (1,) * len(axes), axes, divisor)
    return out


def maximum(x: np.ndarray, axes: Sequence[Axis], step: Sequence[int]) -> tuple[np.ndarray, np.ndarray] | None:
    """Maxima of windows and their places; no window may be empty."""
    if len(axes) > 3 or not apply_to(x) or not x.size or any(bool((end <= begin).any()) for begin, end, _ in axes):
        return None
    out, places = _room(x, axes, x.dtype), _room(x, axes, np.dtype(np.int64))
    _windows(MAXIMUM, x, out, places, step, axes, None)
    return out, places


def _room(x: np.ndarray, axes: Sequence[Axis], kind: np.dtype) -> np.ndarray:
    """An array for one result for each window: of channels innermost where those of x are."""
    size = [len(a[0]) for a in axes]
    return (np.empty if _pixels(x) is None else new_pixels)((*x.shape[:2], *size), kind)


def _pixels(x: np.ndarray) -> np.ndarray | None:
    return as_pixels(x) if prod(x.shape[2:]) < 1 << 31 else None  # places of float32 are counted in 32 bits


def _windows(kind: int, x, y, places, step: Sequence[int], axes: Sequence[Axis], divisor: int | None) -> None:
    sizes = (_three(x.shape[2:]), _three(y.shape[2:]), _three(step))
    planes, channels, wide = x.shape[0] * x.shape[1], 0, x.dtype.itemsize == 8
    if kind != SPREAD and (pixels := _pixels(x)) is not None:
        planes, channels, x = x.shape[0], x.shape[1], pixels
        y, places = (None if a is None else pixels_of(a) for a in (y, places))
    x = _dense(x)
    _spatial.windows(kind, wide, x, y, places, planes, channels, *sizes, _bounds(axes), divisor or 0, thread_count())


# ---- maps
Rows = tuple[
    np.ndarray, np.ndarray, np.ndarray | None
]  # where the taps of each entry begin, what they read, their weights


def axis_map(
    x: np.ndarray, axis: int, start: np.ndarray, read: np.ndarray, weight: np.ndarray | None
) -> np.ndarray | None:
    """x with an axis mapped: entry o is the sum of `weight[k]` times entry `read[k]`, for k from `start[o]` to `start[o + 1]`."""
    if not apply_to(x):
        return None
    outputs = len(start) - 1
    shape = (*x.shape[:axis], outputs, *x.shape[axis + 1 :])
    if axis > 1 and (pixels := as_pixels(x)) is not None:
        result = new_pixels(shape, x.dtype)
        x, out, axis = pixels, pixels_of(result), axis - 1
    else:
        result = out = np.empty(shape, x.dtype)
    lead, rest = prod(x.shape[:axis]), prod(x.shape[axis + 1 :])
    weight = None if weight is None else weight.astype(x.dtype)
    wide = x.dtype.itemsize == 8
    _spatial.axis_map(wide, _dense(x), out, start, read, weight, lead, x.shape[axis], outputs, rest, thread_count())
    return result


def planes_map(x: np.ndarray, down: Rows | None, across: Rows) -> np.ndarray | None:
    """x with its last two axes mapped, the last one second; without `down`, the last one alone."""
    if not apply_to(x):
        return None
    inputs, height = x.shape[-1], 1 if down is None else x.shape[-2]
    outputs, rows = len(across[0]) - 1, 1 if down is None else len(down[0]) - 1
    lead = x.shape[:-1] if down is None else (*x.shape[:-2], rows)
    out = np.empty((*lead, outputs), x.dtype)
    sizes = (x.size // max(1, height * inputs), height, rows, inputs, outputs)
    given = ((None, None, None) if down is None else _weighted(down, x.dtype), _weighted(across, x.dtype))
    _spatial.planes_map(x.dtype.itemsize == 8, _dense(x), out, *given, sizes, thread_count())
    return out


def _weighted(rows: Rows, dtype: np.dtype) -> Rows:
    start, read, weight = rows
    return rows if weight is None or weight.dtype == dtype else (start, read, weight.astype(dtype))


# ---- grids
def sample(
    work: int,
    x: np.ndarray | None,
    grid: np.ndarray,
    y: np.ndarray,
    shape: Sequence[int],
    mode: int,
    padding: int,
    align: bool,
):
    """Samples of x (`SAMPLES`: y is written), what meets x of this shape (`TO_IMAGE`), or what meets the grid (`TO_GRID`)."""
    if not apply_to(*[a for a in (x, grid, y) if a is not None]) or prod(shape[2:]) >= 1 << 31:
        return None
    dx = np.zeros(tuple(shape), y.dtype) if work == TO_IMAGE else None
    dgrid = np.empty(grid.shape, grid.dtype) if work == TO_GRID else None
    y = y if work == SAMPLES else _dense(y)
    sizes = (shape[0], shape[1], prod(grid.shape[1:-1])), _three(shape[2:])
    given = (None if x is None else _dense(x), _dense(grid), y, dx, dgrid)
    _spatial.grid(work, y.dtype.itemsize == 8, *given, *sizes, len(shape) - 2, mode, padding, align, thread_count())
    return y if work == SAMPLES else dx if work == TO_IMAGE else dgrid
