"""Layers of networks in C, where they are built and NumPy brought a BLAS: products, attention, convolution, pooling.

Functions take arrays of the CPU and give new ones, or None where the kernels do not apply (another dtype or rank, no compiled
extension, no BLAS, `PULLBACK_NATIVE=0`): the caller then computes with the array library. `core/_network.c` says what each kernel does.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Sequence
from math import prod

import numpy as np

from ..core.geometry import channels_last_strides, is_channels_last
from ..core.modes import process
from ..core.tensor import element_strides
from ..core.threads import native_pool, thread_count
from . import blas

FLOATS = frozenset((np.dtype(np.float32), np.dtype(np.float64)))
FORWARD, TO_INPUT, TO_WEIGHT = range(3)
LANES = 16  # numbers of the widest vector of any machine
Strided = tuple[Sequence[int], Sequence[int]]


@functools.cache
def kernels():
    """The extension, told where BLAS and the threads are; None where there is none."""
    found = blas.find() if os.environ.get("PULLBACK_NATIVE") != "0" else blas.Blas()
    if not found.single or not found.double:
        return None
    try:
        from ..core import _network  # type: ignore[attr-defined]
    except ImportError:
        return None
    _network.setup(native_pool(), found.single, found.double, found.wide, found.count, found.use)
    return _network


def address() -> int:
    """Of the function that generated code calls for convolutions; 0 where there is none."""
    found = kernels()
    return 0 if found is None else found.address()


def apply_to(*arrays) -> bool:
    """Whether there are kernels for arrays: NumPy's, of one of the dtypes and all of the same; None among them does not count."""
    given = [a for a in arrays if a is not None]
    kind = given[0].dtype
    if kind not in FLOATS or any(a.__class__ is not np.ndarray or a.dtype != kind for a in given):
        return False
    return kernels() is not None


# ---- matrix products
SHARED = 1 << 18  # multiplications; products with fewer are one thread's, whoever computes them


def product(a, b, bias=None):
    """a @ b, and a row added to each, for matrices or batches of them; threads share large ones.

    BLAS has threads too, which go on waiting awake for a while: beside those of `core.threads` they would take processors from each other.
    Where results may not depend on the number of threads, each product is one call of BLAS, and so one thread's.
    """
    threads = thread_count()
    if threads > 1 and not process.deterministic and a.ndim == b.ndim < 4 and apply_to(a, b, bias):
        result = np.empty((*a.shape[:-1], b.shape[-1]), a.dtype)
        if kernels().product(a, b, bias, result, threads):
            return result
    result = a.dot(b) if a.ndim == b.ndim == 2 else np.matmul(a, b)
    return result if bias is None else np.add(result, bias, result)


# ---- attention
def _rows(a):
    """An array of which rows are contiguous and apart."""
    fits = a.strides[3] == a.itemsize and a.strides[2] >= a.shape[3] * a.itemsize
    return a if fits else np.ascontiguousarray(a)


def _mask(mask, query, key):
    if mask is None:
        return None
    if mask.dtype != bool and mask.dtype != query.dtype:
        mask = mask.astype(query.dtype)
    return np.broadcast_to(mask, (*query.shape[:3], key.shape[2]))


def attention(query, key, value, mask, out, lse, is_causal: bool, scale: float) -> bool:
    """Write the result and the log-sum-exp of each row; False, and nothing is written, where there is no kernel."""
    if not apply_to(query, key, value, out, lse) or not key.size:
        return False
    given = [_rows(a) for a in (query, key, value)]
    mask = _mask(mask, query, key)
    return kernels().attention(*given, mask, out, lse, None, None, None, None, is_causal, scale, thread_count())


def attention_backward(g, query, key, value, out, lse, mask, results: Sequence, is_causal: bool, scale: float) -> bool:
    """Add to the gradients of query, key and value, which are zero; False where there is no kernel."""
    if not apply_to(g, query, key, value, out, lse, *results) or not key.size:
        return False
    query, key, value, out, g = (_rows(a) for a in (query, key, value, out, g))
    mask, lse = _mask(mask, query, key), np.ascontiguousarray(lse)
    return kernels().attention(query, key, value, mask, out, lse, g, *results, is_causal, scale, thread_count())


# ---- windows
def spatial(a):
    """Images of one to three axes as images of three."""
    return a if a.ndim == 5 else a[:, :, None] if a.ndim == 4 else a[:, :, None, None]


def triples(*attributes: Sequence[int]) -> tuple[int, ...]:
    """(stride, padding, dilation) of one to three axes, as numbers of three."""
    fills = (1, 0, 1)
    return tuple(
        n for values, fill in zip(attributes, fills, strict=True) for n in ((fill,) * (3 - len(values)) + tuple(values))
    )


def _convolve(what: int, x, w, y, bias, stride, padding, dilation, groups: int) -> bool:
    numbers = triples(stride, padding, dilation)
    return kernels().convolve(what, spatial(x), spatial(w), spatial(y), bias, numbers, groups, thread_count())


def convolves(*arrays) -> bool:
    """Whether the kernels are for such a convolution: one to three axes."""
    return arrays[0].ndim in (3, 4, 5) and apply_to(*arrays)


def described(
    what: int, x: Strided, w: Strided, y: Strided, shift: int, double: bool, settings: tuple
) -> tuple[int, ...]:
    """A convolution as the function at `address` reads it: (shape, strides in elements) of its arrays, the step of its bias."""
    stride, padding, dilation, groups = settings
    (images, channels, *size), (outputs, _, *kernel), (_, _, *places) = (shape for shape, _ in (x, w, y))
    spatial_sizes = [n for sizes in (size, places, kernel) for n in (*(1,) * (3 - len(sizes)), *sizes)]
    steps = [n for _, s in (x, w, y) for n in (*s[:2], *(0,) * (5 - len(s)), *s[2:])]
    numbers = triples(stride, padding, dilation)
    return (what, int(double), images, channels, outputs, groups, *spatial_sizes, *numbers, *steps, shift)


def room(shape: tuple, kind, like: Sequence):
    """An array for a result: channels-last where one of some arrays is, else row-major."""
    if len(shape) in (4, 5) and any(_may_be_last(a) and is_channels_last(a.shape, a.strides) for a in like):
        size = np.dtype(kind).itemsize
        return np.ndarray(shape, kind, strides=[n * size for n in channels_last_strides(shape)])
    return np.empty(shape, kind)


def _may_be_last(a) -> bool:
    """Whether an array may lie channels-last: one of a single channel, or pixel, can and be row-major all the same."""
    return not a.flags.c_contiguous or a.strides[1] == a.itemsize


def sees_pixels(x: Strided, y: Strided, groups: int) -> bool:
    """Whether gradients of weights are made of all channels of a pixel at a time: each is by itself, and they lie side by side."""
    return groups >= LANES and all(shape[1] == groups and stride[1] == 1 for shape, stride in (x, y))


def convolution(x, w, bias, stride, padding, dilation, groups: int, places: Sequence[int], like: Sequence = ()):
    """x convolved with w, plus bias, or None. The result lies as `room` says, of `like` or of x and w."""
    if not convolves(x, w, bias):
        return None
    y = room((x.shape[0], w.shape[0], *places), x.dtype, like or (x, w))
    return y if _convolve(FORWARD, x, w, y, bias, stride, padding, dilation, groups) else None


def convolution_input(
    g, w, size: Sequence[int], stride, padding, dilation, groups: int, bias=None, like: Sequence = ()
):
    """The gradient of x, or what a transposed convolution gives, plus bias; or None."""
    if not convolves(g, w, bias):
        return None
    dx = room((g.shape[0], w.shape[1] * groups, *size), g.dtype, like or (g, w))
    return dx if _convolve(TO_INPUT, dx, w, g, bias, stride, padding, dilation, groups) else None


def convolution_weight(g, x, shape: Sequence[int], stride, padding, dilation, groups: int):
    """The gradient of w, or None."""
    if not convolves(x, g):
        return None
    dw = np.empty(shape, x.dtype)
    if not sees_pixels((x.shape, element_strides(x)), (g.shape, element_strides(g)), groups):
        g = np.ascontiguousarray(g)
    return dw if _convolve(TO_WEIGHT, x, dw, g, None, stride, padding, dilation, groups) else None


def max_pool(x, kernel, stride, padding, dilation, places: Sequence[int]):
    """(values, places in the plane), or None."""
    if x.ndim not in (3, 4) or not apply_to(x) or not x.size or not prod(places):
        return None
    axes = len(kernel)
    fills = zip((kernel, stride, padding, dilation), (1, 1, 0, 1), strict=True)
    numbers = tuple(n for given, fill in fills for n in ((fill,) * (2 - axes) + tuple(given)))
    values, at = np.empty((*x.shape[:2], *places), x.dtype), np.empty((*x.shape[:2], *places), np.int64)
    planes = prod(x.shape[:2])
    flat = [a.reshape(planes, *((1,) * (2 - axes)), *a.shape[2:]) for a in (np.ascontiguousarray(x), values, at)]
    return (values, at) if kernels().max_pool(*flat, numbers, thread_count()) else None


def scatter(g, places, size: Sequence[int], sets: bool = False):
    """(planes..., size...) where each value is added at its place in the plane, or put there (`sets`); or None."""
    if not apply_to(g) or places.dtype != np.int64 or not g.size:
        return None
    lead = g.shape[: g.ndim - len(size)]
    out, planes = np.zeros((*lead, *size), g.dtype), prod(lead)
    flat = [np.ascontiguousarray(a).reshape(planes, -1) for a in (g, places)]
    return out if kernels().scatter(*flat, out.reshape(planes, -1), sets, thread_count()) else None
