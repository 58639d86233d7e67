"""The kernels in C, where they are built: sums, extremes, softmax and layer norm over rows or columns.

Functions take row-major float32 or float64 arrays and give new ones, or None where the kernels do not apply (another
dtype or layout, no compiled extension, `PULLBACK_NATIVE=0`): the caller then computes with the array library. Large
arrays are worked on by several threads.
"""

from __future__ import annotations

import math
import os

import numpy as np

from .arrays import LARGE, run_chunks, thread_count

SUM, MAX, MIN = range(3)
_COMBINE = {SUM: np.add, MAX: np.maximum, MIN: np.minimum}
_DTYPES = frozenset((np.dtype(np.float32), np.dtype(np.float64)))

_native = None
if os.environ.get("PULLBACK_NATIVE") != "0":
    try:
        from . import _native  # type: ignore[no-redef,attr-defined]
    except ImportError:
        pass
available = _native is not None


def applies(a) -> bool:
    """Whether the kernels take an array as it is."""
    return available and a.__class__ is np.ndarray and a.dtype in _DTYPES and a.flags.c_contiguous and a.size > 0


def _cuts(rows: int, size: int) -> list[slice]:
    """Ranges of rows, one for each thread that is worth starting."""
    n = min(thread_count(), rows) if size >= LARGE else 1
    step = -(-rows // n)
    return [slice(s, s + step) for s in range(0, rows, step)]


def softmax(a, axis: int, logarithm: bool = False):
    """softmax, or its logarithm, along an axis."""
    if not applies(a):
        return None
    n, inner = a.shape[axis], math.prod(a.shape[axis + 1 :])
    out = np.empty(a.shape, a.dtype)
    source, result = (v.reshape(-1, n * inner) for v in (a, out))
    cuts = _cuts(source.shape[0], a.size)
    run_chunks([lambda cut=cut: _native.softmax(source[cut], result[cut], logarithm, n, inner) for cut in cuts])
    return out


def layer_norm(x, n: int, weight, bias, eps: float):
    """(standardized rows of length n, scaled and shifted; their means; their inverse deviations), flat statistics."""
    if not applies(x) or any(p is not None and (not applies(p) or p.dtype != x.dtype) for p in (weight, bias)):
        return None
    out = np.empty(x.shape, x.dtype)
    mean, rstd = (np.empty(x.size // n, x.dtype) for _ in range(2))
    source, result = (v.reshape(-1, n) for v in (x, out))
    cuts = _cuts(source.shape[0], x.size)
    run_chunks([lambda c=c: _native.layer_norm(source[c], result[c], weight, bias, mean[c], rstd[c], eps) for c in cuts])
    return out, mean, rstd


def reduce(kind: int, a, axes: tuple, keepdims: bool):
    """The sum, maximum or minimum over neighbouring axes."""
    if not applies(a) or not axes or tuple(range(min(axes), max(axes) + 1)) != tuple(sorted(axes)):
        return None
    first, last = min(axes), max(axes) + 1
    outer, n, inner = (math.prod(s) for s in (a.shape[:first], a.shape[first:last], a.shape[last:]))
    out = np.empty((*a.shape[:first], *((1,) * len(axes) if keepdims else ()), *a.shape[last:]), a.dtype)
    if outer == 1 and a.size >= LARGE and n > 1:
        _reduce_in_parts(kind, a.reshape(n, inner), out.reshape(inner))
        return out
    source, result = a.reshape(outer, n * inner), out.reshape(outer, inner)
    run_chunks([lambda c=c: _native.reduce(source[c], result[c], kind, n, inner) for c in _cuts(outer, a.size)])
    return out


def _reduce_in_parts(kind: int, rows, out) -> None:
    """One result from parts that threads reduce by themselves."""
    cuts = _cuts(rows.shape[0], rows.size)
    parts = np.empty((len(cuts), out.size), out.dtype)

    def part(i: int, cut: slice):
        piece = rows[cut]
        return lambda: _native.reduce(piece, parts[i], kind, piece.shape[0], out.size)

    run_chunks([part(i, cut) for i, cut in enumerate(cuts)])
    _COMBINE[kind].reduce(parts, axis=0, out=out)
