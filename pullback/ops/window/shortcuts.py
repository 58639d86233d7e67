"""The plain cases of convolution and max pooling, computed without the general path.

Each function takes the arguments of a public call and gives the result, or None where something listens, dtypes differ, memory
to pool is not row-major, there is no kernel in C or an argument is wrong: then the general path decides, and raises what there is to
raise. What follows from sizes and attributes alone is worked out once for each set of them.
"""

from __future__ import annotations

from functools import lru_cache
from math import prod

import numpy as np

from ...core import small
from ...core.device import cpu
from ...core.modes import ambient
from ...core.pixels import as_pixels
from ...core.records import Record
from ...core.tensor import PLAIN, Tensor, wrap
from ...core.threads import thread_count
from ...runtime import network
from ..eager.functions import all_plain, bypassing
from ..family.base import wrap_array
from ..system.operator import registry
from . import conv_shape, pool_shape
from .kernels import max_pool as max_pool_kernels
from .kernels import whole

REMEMBERED = 512  # sets of sizes


class Convolution(Record):
    """What a call comes to: attributes as the operator records them, and the arguments of the kernel."""

    attributes: tuple
    shape: tuple
    numbers: tuple


def _ints(value):
    """An attribute as something to look up by; None where it is no number, list or tuple."""
    if value.__class__ is int:
        return value
    return tuple(value) if value.__class__ in (tuple, list) else None


@lru_cache(REMEMBERED)
def _plan(x: tuple, w: tuple, bias: tuple | None, stride, padding, dilation, groups: int, extra) -> Convolution | None:
    """`extra` is the output padding of a transposed convolution; None where it is none."""
    axes = len(w) - 2
    if len(x) != len(w) or not prod(x) or not prod(w):
        return None
    *given, added = ((v,) * axes if v.__class__ is int else v for v in (stride, padding, dilation, extra or 0))
    if groups.__class__ is not int or any(
        len(v) != axes or any(n.__class__ is not int for n in v) for v in (*given, added)
    ):
        return None
    attributes = (*given, extra is not None, added, groups)
    try:
        shape = conv_shape.conv_shape(x, w, bias, *attributes)
    except RuntimeError:
        return None
    return Convolution(attributes, shape, network.triples(*given))


@bypassing("convolution.default")
def convolution(x, w, bias, stride, padding, dilation, groups, extra=None) -> Tensor | None:
    """A convolution; with `extra`, its output padding, a transposed one."""
    if ambient.mode >= 2 or not all_plain(x, w, bias):
        return None
    a, f = x._array, w._array
    if f.ndim not in (3, 4, 5) or a.dtype not in network.FLOATS:
        return None
    kernels = network.kernels()
    key = (_ints(stride), _ints(padding), _ints(dilation))
    added = None if extra is None else _ints(extra)
    if kernels is None or None in key or added is None and extra is not None:
        return None
    plan = _plan(a.shape, f.shape, None if bias is None else bias._array.shape, *key, groups, added)
    if plan is None:
        return None
    size = (a.shape if extra is None else plan.shape)[2:]
    if size == f.shape[2:] and whole.is_whole(size, size, *plan.attributes[1:3], groups):
        return None  # a product, which the general path finds
    y = network.room(plan.shape, a.dtype, (a, f))
    images = [network.spatial(m) for m in ((a, f, y) if extra is None else (y, f, a))]
    shift = None if bias is None else bias._array
    what = network.FORWARD if extra is None else network.TO_INPUT
    if not kernels.convolve(what, *images, shift, plan.numbers, groups, thread_count()):
        return None
    t = wrap(y, x.dtype)
    if ambient.mode and (
        x._autograd is not None or w._autograd is not None or bias is not None and bias._autograd is not None
    ):
        return registry["convolution.default"].record(t, x, w, bias, *plan.attributes)
    return t


@bypassing("convolution_backward.default")
def convolution_backward(g, x, w, attributes: tuple, mask: tuple) -> tuple | None:
    """Its gradients, where nothing is recorded."""
    if ambient.mode or not all_plain(g, x, w) or not x._array.flags.c_contiguous or not w._array.flags.c_contiguous:
        return None
    if x._array.dtype not in network.FLOATS:
        return None
    results = registry["convolution_backward.default"].kernel(np, g._array, x._array, w._array, None, *attributes, mask)
    return tuple([wrap_array(r, cpu) for r in results])


@lru_cache(REMEMBERED)
def _windows(shape: tuple, kernel, stride, padding, dilation, ceil: bool) -> tuple | None:
    given = [(v, v) if v.__class__ is int else v for v in (kernel, stride, padding, dilation)]
    if any(len(v) != 2 and not (v is given[1] and not v) or any(n.__class__ is not int for n in v) for v in given):
        return None
    try:
        found = pool_shape.regular("max_pool2d", shape, 2, *given, ceil)
    except (RuntimeError, ValueError, TypeError):
        return None
    numbers = (*found.kernel, *found.stride, *found.padding, *found.dilation)
    return found.out, numbers, (*given, ceil)


@bypassing("max_pool2d_with_indices.default")
def max_pool2d(x, kernel, stride, padding, dilation, ceil) -> Tensor | None:
    """The largest of each window over two axes."""
    if ambient.mode >= 2 or x.__class__ not in PLAIN or x._keys or ceil.__class__ is not bool:
        return None
    a, kernels = x._array, network.kernels()
    if kernels is None or a.ndim != 4 or a.dtype not in network.FLOATS or not a.size:
        return None
    last = as_pixels(a) is not None and 1 not in (a.shape[1], a.shape[3])
    if not (last or a.flags.c_contiguous):
        return None
    key = (_ints(kernel), () if stride is None else _ints(stride), _ints(padding), _ints(dilation))
    found = None if None in key else _windows(a.shape, *key, ceil)
    if found is None:
        return None
    out, numbers, attributes = found
    if last and _MAXIMA is not None and (both := _MAXIMA((x, *attributes))) is not None:
        return _recorded(both[0], x, both[1], attributes)
    if last:
        y, places = max_pool_kernels.max_pool(np, a, *[numbers[i : i + 2] for i in range(0, 8, 2)], ceil)
        return _maxima(x, y, places, attributes)
    y, places = np.empty((*a.shape[:2], *out), a.dtype), np.empty((*a.shape[:2], *out), np.int64)
    planes = a.shape[0] * a.shape[1]
    flat = (a.reshape(planes, *a.shape[2:]), y.reshape(planes, *out), places.reshape(planes, *out))
    return _maxima(x, y, places, attributes) if kernels.max_pool(*flat, numbers, thread_count()) else None


_MAXIMA = small.table.get("max_pool2d_with_indices.default")


def _maxima(x, y, places, attributes: tuple) -> Tensor:
    return _recorded(wrap(y, x.dtype), x, places, attributes)


def _recorded(t: Tensor, x, places, attributes: tuple) -> Tensor:
    if ambient.mode and x._autograd is not None:
        places = places if isinstance(places, Tensor) else wrap(places)
        return registry["max_pool2d_with_indices.default"].record((t, places), x, *attributes)[0]
    return t
