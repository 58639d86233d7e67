"""The plain cases of batch norm in training and of its gradient, computed without the general path.

Each function takes the arguments of a call and gives the result, or None where something listens, dtypes differ, memory is not row-major or
there is no kernel in C: then the general path decides, and raises what there is to raise. So it does with deterministic algorithms, where
results are, bit for bit, those of compiled code.
"""

from __future__ import annotations

import numpy as np

from ...core import native
from ...core.modes import ambient, process
from ...core.tensor import Tensor, wrap
from ..eager.functions import all_plain, bypassing
from ..system.operator import registry


def _array(t: Tensor | None):
    return None if t is None else t._array


@bypassing("batch_norm.default", "native_batch_norm.default")
def batch_norm(x, running_mean, running_var, weight, bias, momentum, eps) -> Tensor | None:
    """Batch norm by the statistics of the batch, which move the running ones."""
    if ambient.mode >= 2 or process.deterministic or momentum.__class__ is not float or eps.__class__ is not float:
        return None
    if not all_plain(x, running_mean, running_var, weight, bias):
        return None
    for running in (running_mean, running_var):
        if running is not None and running._autograd is not None:
            return None
    given = [_array(t) for t in (weight, bias, running_mean, running_var)]
    found = native.batch_norm(x._array, *given, momentum, eps)
    if found is None:
        return None
    t = wrap(found[0], x.dtype)
    if ambient.mode and any(p is not None and p._autograd is not None for p in (x, weight, bias)):
        results = (t, wrap(found[1], x.dtype), wrap(found[2], x.dtype))
        arguments = (x, weight, bias, running_mean, running_var, True, momentum, eps)
        registry["native_batch_norm.default"].record(results, *arguments)
    return t


@bypassing("batch_norm.default", "native_batch_norm.default")
def by_running_statistics(x, running_mean, running_var, weight, bias, momentum, eps) -> Tensor | None:
    """Batch norm by running statistics, of images that lie channels-last or row-major."""
    if ambient.mode >= 2 or process.deterministic or momentum.__class__ is not float or eps.__class__ is not float:
        return None
    if running_mean is None or running_var is None or not all_plain(x, running_mean, running_var, weight, bias):
        return None
    a, mean, variance = x._array, running_mean._array, running_var._array
    if a.ndim not in (4, 5) or 1 in (a.shape[1], a.shape[-1]) or running_mean._autograd or running_var._autograd:
        return None  # with one channel, or one place, memory may be said to lie in both orders
    channels = (a.shape[1],)
    if any(p is not None and p._array.shape != channels for p in (running_mean, running_var, weight, bias)):
        return None
    found = native.running_norm(a, mean, variance, _array(weight), _array(bias), eps)
    if found is None:
        return None
    t = wrap(found, x.dtype)
    if ambient.mode and any(p is not None and p._autograd is not None for p in (x, weight, bias)):
        saved = [wrap(np.empty(0, a.dtype), x.dtype) for _ in range(2)]
        arguments = (x, weight, bias, running_mean, running_var, False, momentum, eps)
        registry["native_batch_norm.default"].record((t, *saved), *arguments)
    return t


@bypassing("native_batch_norm_backward.default")
def backward(g, x, weight, mean, rstd, mask: tuple) -> tuple | None:
    """The gradients of input, weight and bias, where batch statistics were used and nothing is recorded."""
    if ambient.mode or process.deterministic or not all_plain(g, x, weight, mean, rstd) or x._array.ndim < 2:
        return None
    axes = (0, *range(2, x._array.ndim))
    arrays = [_array(t) for t in (mean, rstd, weight)]
    found = native.standardize_backward(g._array, x._array, axes, *arrays, want_x=mask[0])
    return None if found is None else tuple([wrap(a, x.dtype) if m else None for a, m in zip(found, mask, strict=True)])
