"""The kernels in C, where they are built: sums, extremes, scans, softmax and layer norm over rows or columns.

Functions take row-major float32 or float64 arrays (`topk` integers too) and give new ones, or None where the kernels do not apply (another
dtype or layout, no compiled extension, `PULLBACK_NATIVE=0`): the caller then computes with the array library. Large
arrays are worked on by several threads. Arrays of a CUDA device go to the kernels of `cuda_rows`, where it has them.
"""

from __future__ import annotations

import math

import numpy as np

from .arrays import LARGE, assign
from .extension import extension
from .pixels import as_pixels, new_pixels, pixels_of, pixels_per_row
from .threads import thread_count

SUM, MAX, MIN, MEAN = range(4)
_DTYPES = frozenset((np.dtype(np.float32), np.dtype(np.float64)))
_ORDERED = _DTYPES | {np.dtype(name) for name in ("int64", "int32", "int16", "int8", "uint8")}

_native = extension("_native")
available = _native is not None


def applies(a) -> bool:
    """Whether the kernels take an array as it is."""
    return available and a.__class__ is np.ndarray and a.dtype in _DTYPES and a.flags.c_contiguous and a.size > 0


def is_host(a) -> bool:
    """Whether an array is NumPy's; others are on a device, and so are their kernels."""
    return isinstance(a, np.ndarray)


def dense(a):
    """An array of the host as the kernels take it: itself, or a row-major copy."""
    if not is_host(a) or a.flags.c_contiguous:
        return a
    rows = np.empty(a.shape, a.dtype)
    assign(rows, a)
    return rows


def on_device():
    """The kernels of CUDA devices, which few programs need."""
    from . import cuda_rows

    return cuda_rows


SHARED = LARGE // 4  # elements of rows that several passes go over, which are worth a thread


def _threads(a) -> int:
    return thread_count() if a.size >= SHARED else 1


def sorted_rows(a, descending: bool, values: bool):
    """(sorted elements or None, their places) along the last axis of an array of a device; None for others, and for short rows."""
    if is_host(a):
        return None
    from . import cuda_sort

    return cuda_sort.sorted_rows(a, descending, values)


def softmax(a, axis: int, logarithm: bool = False):
    """softmax, or its logarithm, along an axis."""
    if not applies(a):
        return None if is_host(a) else on_device().softmax(a, axis, logarithm)
    out = np.empty(a.shape, a.dtype)
    _native.softmax(a, out, logarithm, a.shape[axis], math.prod(a.shape[axis + 1 :]), _threads(a))
    return out


def layer_norm(x, n: int, weight, bias, eps: float):
    """(standardized rows of length n, scaled and shifted; their means; their inverse deviations), flat statistics."""
    x = dense(x)
    if not applies(x) or any(p is not None and (not applies(p) or p.dtype != x.dtype) for p in (weight, bias)):
        return None if is_host(x) else on_device().layer_norm(x, n, weight, bias, eps)
    out = np.empty(x.shape, x.dtype)
    mean, rstd = (np.empty(x.size // n, x.dtype) for _ in range(2))
    _native.layer_norm(x, out, weight, bias, mean, rstd, eps, _threads(x))
    return out, mean, rstd


def softmax_backward(g, out, axis: int, logarithm: bool = False):
    """The gradient of softmax, or of its logarithm, along an axis, from its result."""
    if not applies(g) or not applies(out) or g.dtype != out.dtype or not out.ndim:
        return None if is_host(out) else on_device().softmax_backward(g, out, axis, logarithm)
    result = np.empty(out.shape, out.dtype)
    inner = math.prod(out.shape[axis + 1 :])
    _native.softmax_backward(g, out, result, logarithm, out.shape[axis], inner, _threads(out))
    return result


def layer_norm_backward(g, x, n: int, mean, rstd, weight, mask: tuple):
    """Gradients of rows of length n, of the weight and of the bias (flat), where `mask` wants them."""
    g, x = dense(g), dense(x)
    given = (g, x, mean, rstd) if weight is None else (g, x, mean, rstd, weight)
    if any(not applies(a) or a.dtype != x.dtype for a in given):
        return None if is_host(x) else on_device().layer_norm_backward(g, x, n, mean, rstd, weight, mask)
    of_x = np.empty(x.shape, x.dtype) if mask[0] else None
    of_w, of_b = (np.empty(n, x.dtype) for _ in range(2)) if mask[1] or mask[2] else (None, None)
    _native.layer_norm_backward(g, x, weight, mean, rstd, of_x, of_w, of_b, _threads(x))
    return of_x, of_w if mask[1] else None, of_b if mask[2] else None


def _channels(x, axes: tuple) -> tuple[int, int, int] | None:
    """(outer, channels, inner) of an array whose kept axes are neighbours; None where they are not."""
    kept = [d for d in range(x.ndim) if d not in axes]
    if not applies(x) or kept and kept != list(range(kept[0], kept[-1] + 1)):
        return None
    if not kept:
        return 1, 1, x.size
    first, last = kept[0], kept[-1] + 1
    return math.prod(x.shape[:first]), math.prod(x.shape[first:last]), math.prod(x.shape[last:])


def _each(x, axes: tuple, *values):
    """One value for each channel, flat and of the array's dtype; what does not fit the kernels is None."""
    n = math.prod(s for d, s in enumerate(x.shape) if d not in axes)
    result = [None if v is None else np.ascontiguousarray(v, x.dtype).reshape(-1) for v in values]
    return result if all(m is None or m.size == n for m in result) else None


def _pixels_of_channels(x, axes: tuple):
    """(N, spatial..., C) of images that lie channels-last, where all but the channels is summed up; else None."""
    pixels = as_pixels(x)
    return pixels if pixels is not None and axes == (0, *range(2, x.ndim)) and applies(pixels) else None


def moments(x, axes: tuple):
    """Mean and biased variance over some axes, which are kept."""
    kept = [1 if d in axes else s for d, s in enumerate(x.shape)]
    pixels = _pixels_of_channels(x, axes)
    layout = _channels(x, axes) if pixels is None else (x.size // x.shape[1], x.shape[1], 1)
    if layout is None:
        return None
    x = x if pixels is None else pixels
    mean, variance = (np.empty(kept, x.dtype) for _ in range(2))
    _native.channels("moments", x, mean, variance, *layout, _threads(x))
    return mean, variance


def running_norm(x, mean, variance, weight, bias, eps: float):
    """Images standardized by statistics of channels, scaled and shifted, as they lie: row-major or channels-last."""
    if (pixels := as_pixels(x)) is None:
        out, inner = np.empty(x.shape, x.dtype), math.prod(x.shape[2:])
        rows = x, out
    else:
        out, inner = new_pixels(x.shape, x.dtype), 1
        rows = pixels, pixels_of(out)
    if not applies(rows[0]):
        return None
    done = _native.running_norm(rows[0], mean, variance, weight, bias, rows[1], eps, inner, _threads(x))
    return out if done else None


def scale_shift(x, axes: tuple, mean, scale, shift):
    """(x - mean) * scale + shift, with one of each for what remains of the axes."""
    if (pixels := as_pixels(x)) is not None:
        return _scale_pixels(x, pixels, axes, mean, scale, shift)
    layout = _channels(x, axes)
    if layout is None:
        return None
    each = _each(x, axes, mean, scale, shift)
    if each is None:
        return None
    out = np.empty(x.shape, x.dtype)
    _native.channels("scale", x, *each, out, *layout, _threads(x))
    return out


def _scale_pixels(x, pixels, axes: tuple, *values):
    """The same of channels that lie side by side: the result lies so as well."""
    if not applies(pixels) or axes != (0, *range(2, x.ndim)) or (each := _each(x, axes, *values)) is None:
        return None
    count, channels = x.size // x.shape[1], x.shape[1]
    if (together := pixels_per_row(count, channels)) > 1:
        each = [None if v is None else np.broadcast_to(v, (together, channels)).reshape(-1) for v in each]
    out = new_pixels(x.shape, x.dtype)
    _native.channels("scale", pixels, *each, pixels_of(out), count // together, channels * together, 1, _threads(x))
    return out


def standardize_backward(g, x, axes: tuple, mean, rstd, weight, want_x: bool = True):
    """(gradient of x or None, sum of g * standardized x, sum of g), where x was standardized over some axes and scaled."""
    pixels = _pixels_of_channels(x, axes)
    layout = _channels(x, axes) if pixels is None else (x.size // x.shape[1], x.shape[1], 1)
    if layout is None or g.dtype != x.dtype or pixels is None and not applies(g):
        return None
    each = _each(x, axes, mean, rstd, weight)
    if each is None:
        return None
    total, along = (np.empty(layout[1], x.dtype) for _ in range(2))
    if pixels is not None:
        out = new_pixels(x.shape, x.dtype) if want_x else None
        x, g, into = pixels, np.ascontiguousarray(pixels_of(g)), pixels_of(out) if want_x else None
    else:
        out = into = np.empty(x.shape, x.dtype) if want_x else None
    _native.channels("backward", g, x, *each, total, along, into, *layout, _threads(x))
    return out, along, total


def channel_sums(x):
    """The sum over all axes but the second."""
    if x.ndim < 2 or not applies(x):
        return None
    out = np.empty(x.shape[1], x.dtype)
    _native.channels("sums", x, out, x.shape[0], x.shape[1], math.prod(x.shape[2:]), _threads(x))
    return out


def batch_norm(x, weight, bias, running_mean, running_var, momentum: float, eps: float):
    """(x standardized for each channel, which is the second axis, scaled and shifted; means; inverse deviations); running statistics move."""
    given = (weight, bias, running_mean, running_var)
    inner = math.prod(x.shape[2:])
    if (
        x.ndim < 2
        or inner < 2
        or not applies(x)
        or any(p is not None and (not applies(p) or p.dtype != x.dtype) for p in given)
    ):
        return None
    out, mean, rstd = (np.empty(shape, x.dtype) for shape in (x.shape, x.shape[1], x.shape[1]))
    done = _native.batch_norm(x, *given, mean, rstd, out, momentum, eps, inner, _threads(x))
    return (out, mean, rstd) if done else None


def topk(rows, k: int, largest: bool):
    """The k first of each row in order, and their places, the earlier first among equals; for few of many, integers too."""
    if not available or rows.__class__ is not np.ndarray or rows.dtype not in _ORDERED or not 0 < k <= 64:
        return None
    if not rows.flags.c_contiguous or not rows.size:
        return None
    shape = (*rows.shape[:-1], k)
    values, places = np.empty(shape, rows.dtype), np.empty(shape, np.int64)
    _native.topk(rows, values, places, rows.shape[-1], k, largest, _threads(rows))
    return values, places


def cumsum(a, axis: int):
    """Sums of all prefixes along an axis, added up in double."""
    if not applies(a):
        return None
    out = np.empty(a.shape, a.dtype)
    _native.cumsum(a, out, a.shape[axis], math.prod(a.shape[axis + 1 :]), _threads(a))
    return out


def reduce(kind: int, a, axes: tuple, keepdims: bool):
    """The sum, maximum, minimum or mean over neighbouring axes, over each channel of pixels, or over all of a block of memory."""
    if len(axes) == a.ndim > 1 and a.__class__ is np.ndarray and not a.flags.c_contiguous:
        block = a.transpose(sorted(range(a.ndim), key=lambda d: -a.strides[d]))
        if applies(block):
            return reduce(kind, block, tuple(range(a.ndim)), keepdims)
    if (pixels := as_pixels(a)) is not None and applies(pixels) and sorted(axes) == list(range(2, a.ndim)):
        found = reduce(kind, pixels, tuple(range(1, a.ndim - 1)), False)
        return found.reshape(*found.shape, *(1,) * len(axes)) if keepdims else found
    if not applies(a) or not axes or tuple(range(min(axes), max(axes) + 1)) != tuple(sorted(axes)):
        return None
    first, last = min(axes), max(axes) + 1
    out = np.empty((*a.shape[:first], *((1,) * len(axes) if keepdims else ()), *a.shape[last:]), a.dtype)
    _native.reduce(a, out, kind, math.prod(a.shape[first:last]), math.prod(a.shape[last:]), _threads(a))
    return out
