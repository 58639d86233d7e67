"""The kernels in C, where they are built: sums, extremes, scans, softmax and layer norm over rows or columns.

Functions take row-major float32 or float64 arrays and give new ones, or None where the kernels do not apply (another
dtype or layout, no compiled extension, `PULLBACK_NATIVE=0`): the caller then computes with the array library. Large
arrays are worked on by several threads.
"""

from __future__ import annotations

import math
import os

import numpy as np

from .arrays import LARGE, thread_count

SUM, MAX, MIN, MEAN = range(4)
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


def _threads(a) -> int:
    return thread_count() if a.size >= LARGE else 1


def softmax(a, axis: int, logarithm: bool = False):
    """softmax, or its logarithm, along an axis."""
    if not applies(a):
        return None
    out = np.empty(a.shape, a.dtype)
    _native.softmax(a, out, logarithm, a.shape[axis], math.prod(a.shape[axis + 1 :]), _threads(a))
    return out


def layer_norm(x, n: int, weight, bias, eps: float):
    """(standardized rows of length n, scaled and shifted; their means; their inverse deviations), flat statistics."""
    if not applies(x) or any(p is not None and (not applies(p) or p.dtype != x.dtype) for p in (weight, bias)):
        return None
    out = np.empty(x.shape, x.dtype)
    mean, rstd = (np.empty(x.size // n, x.dtype) for _ in range(2))
    _native.layer_norm(x, out, weight, bias, mean, rstd, eps, _threads(x))
    return out, mean, rstd


def softmax_backward(g, out, axis: int, logarithm: bool = False):
    """The gradient of softmax, or of its logarithm, from its result; along the last axis."""
    if not applies(g) or not applies(out) or g.dtype != out.dtype or axis != out.ndim - 1:
        return None
    made = np.empty(out.shape, out.dtype)
    _native.softmax_backward(g, out, made, logarithm, out.shape[-1], _threads(out))
    return made


def layer_norm_backward(g, x, n: int, mean, rstd, weight, mask: tuple):
    """Gradients of rows of length n, of the weight and of the bias (flat), where `mask` wants them."""
    given = (g, x, mean, rstd) if weight is None else (g, x, mean, rstd, weight)
    if any(not applies(a) or a.dtype != x.dtype for a in given):
        return None
    of_x = np.empty(x.shape, x.dtype) if mask[0] else None
    of_w, of_b = (np.empty(n, x.dtype) for _ in range(2)) if mask[1] or mask[2] else (None, None)
    _native.layer_norm_backward(g, x, weight, mean, rstd, of_x, of_w, of_b, _threads(x))
    return of_x, of_w if mask[1] else None, of_b if mask[2] else None


def cumsum(a, axis: int):
    """Sums of all prefixes along an axis, added up in double."""
    if not applies(a):
        return None
    out = np.empty(a.shape, a.dtype)
    _native.cumsum(a, out, a.shape[axis], math.prod(a.shape[axis + 1 :]), _threads(a))
    return out


def reduce(kind: int, a, axes: tuple, keepdims: bool):
    """The sum, maximum or minimum over neighbouring axes."""
    if not applies(a) or not axes or tuple(range(min(axes), max(axes) + 1)) != tuple(sorted(axes)):
        return None
    first, last = min(axes), max(axes) + 1
    out = np.empty((*a.shape[:first], *((1,) * len(axes) if keepdims else ()), *a.shape[last:]), a.dtype)
    _native.reduce(a, out, kind, math.prod(a.shape[first:last]), math.prod(a.shape[last:]), _threads(a))
    return out
