"""Kernels of normalisation: softmax along an axis, and the removal of mean and scale over some axes.

Statistics are of two passes. Arrays come in float32 or float64 (narrow floats are widened before).
"""

from __future__ import annotations

import math

import numpy as np

from ...core import native
from ...core.arrays import strided
from ..reduce.reduction_kernels import add_reduce
from ..system.pieces import by_pieces


def softmax(xp, a, axis: int):
    """exp(a) / sum(exp(a)) along an axis."""
    if (result := native.softmax(a, axis)) is not None:
        return result
    if not a.size:
        return a.copy()
    out = xp.subtract(a, xp.maximum.reduce(a, axis=axis, keepdims=True))
    xp.exp(out, out=out)
    out /= add_reduce(xp, out, (axis,), True)
    return out


def log_softmax(xp, a, axis: int):
    """log(softmax(a)) along an axis."""
    if (result := native.softmax(a, axis, logarithm=True)) is not None:
        return result
    if not a.size:
        return a.copy()
    out = xp.subtract(a, xp.maximum.reduce(a, axis=axis, keepdims=True))
    out -= xp.log(add_reduce(xp, xp.exp(out), (axis,), True))
    return out


def softmax_backward(xp, g, out, axis: int):
    """The gradient of softmax from its result."""
    if (result := native.softmax_backward(g, out, axis)) is not None:
        return result

    def work(g, out):
        weighted = g * out
        return weighted - out * add_reduce(xp, weighted, (axis,), True)

    return by_pieces(work, (g, out), (axis,))


def log_softmax_backward(xp, g, out, axis: int):
    """The gradient of log_softmax from its result."""
    if (result := native.softmax_backward(g, out, axis, logarithm=True)) is not None:
        return result
    return by_pieces(lambda g, out: g - xp.exp(out) * add_reduce(xp, g, (axis,), True), (g, out), (axis,))


def _count(x, axes: tuple) -> int:
    return math.prod(x.shape[d] for d in axes)


def moments(xp, x, axes: tuple):
    """Mean and biased variance over some axes, which are kept."""
    if (result := native.moments(x, axes)) is not None:
        return result
    count = _count(x, axes) or xp.nan

    def work(x):
        mean = add_reduce(xp, x, axes, True) / count
        deviation = x - mean
        return mean, add_reduce(xp, xp.multiply(deviation, deviation, out=deviation), axes, True) / count

    return by_pieces(work, (x,), axes)


def standardize(xp, x, axes: tuple, eps: float):
    """(x - mean) / sqrt(variance + eps) over some axes, with the mean and the inverse deviation (axes kept)."""
    mean, variance = moments(xp, x, axes)
    rstd = 1 / xp.sqrt(variance + x.dtype.type(eps))
    return scale_shift(xp, x, mean, rstd, None), mean, rstd


def scale_shift(xp, x, mean, scale, shift):
    """(x - mean) * scale + shift, where these broadcast against x."""
    axes = tuple(d for d in range(x.ndim) if mean.shape[d] == 1)
    if mean.shape == scale.shape and (result := native.scale_shift(x, axes, mean, scale, shift)) is not None:
        return result

    def work(x, mean, scale, shift):
        out = x - mean
        out *= scale
        if shift is not None:
            out += shift
        return out

    return by_pieces(work, (x, mean, scale, shift), axes)


def own(array, shape: tuple):
    """A new array in another shape; of a device's, no view: it would be copied to be a result."""
    return array.reshape(shape) if isinstance(array, np.ndarray) else strided(array, shape, array.dtype, 0, None)


def layer_norm(xp, x, n: int, weight, bias, eps: float):
    """Standardisation over the last n dimensions, scaled and shifted: (result, mean, inverse deviation)."""
    axes = tuple(range(x.ndim - n, x.ndim))
    length = _count(x, axes)
    result = native.layer_norm(x, length, weight, bias, eps) if length else None
    if result is not None:
        shape = (*x.shape[: x.ndim - n], *(1,) * n)
        return result[0], own(result[1], shape), own(result[2], shape)
    out, mean, rstd = standardize(xp, x, axes, eps)
    if weight is not None:
        out *= weight
    if bias is not None:
        out += bias
    return out, mean, rstd


def standardize_backward(xp, g, x, mean, rstd, axes: tuple, weight=None):
    """Gradients of x, and sums over the axes of g times the standardized x and of g, where x was standardized and scaled.

    The statistics and the weight have the axes kept; the sums have not.
    """
    if (result := native.standardize_backward(g, x, axes, mean, rstd, weight)) is not None:
        shape = tuple(s for d, s in enumerate(x.shape) if d not in axes)
        return result[0], result[1].reshape(shape), result[2].reshape(shape)
    count = _count(x, axes) or 1

    def work(g, x, mean, rstd):
        scaled = (x - mean) * rstd
        along, total = add_reduce(xp, g * scaled, axes, True), add_reduce(xp, g, axes, True)
        out = g - total / count
        out -= scaled * (along / count)
        out *= rstd
        return out, along, total

    out, along, total = by_pieces(work, (g, x, mean, rstd), axes)
    shape = tuple(s for d, s in enumerate(x.shape) if d not in axes)
    return out if weight is None else out * weight, along.reshape(shape), total.reshape(shape)


def layer_norm_backward(xp, g, x, n: int, mean, rstd, weight, mask: tuple):
    """Gradients of x, weight and bias of `layer_norm` over the last n dimensions, None where `mask` wants none."""
    axes, outer = tuple(range(x.ndim - n, x.ndim)), tuple(range(x.ndim - n))
    result = native.layer_norm_backward(g, x, _count(x, axes), mean, rstd, weight, mask)
    if result is not None:
        shape = x.shape[x.ndim - n :]
        return result[0], *(None if m is None else m.reshape(shape) for m in result[1:])
    of_x = standardize_backward(xp, g if weight is None else g * weight, x, mean, rstd, axes)[0]
    of_weight = xp.asarray(add_reduce(xp, g * ((x - mean) * rstd), outer, False)) if mask[1] else None
    return of_x if mask[0] else None, of_weight, xp.asarray(add_reduce(xp, g, outer, False)) if mask[2] else None
