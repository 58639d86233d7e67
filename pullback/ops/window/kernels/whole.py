"""Convolutions whose one window is the whole image: each of the three forms is a product of matrices.

Comes in: row-major arrays as in `conv`. Goes out: the result, or None where there are more windows than one, a border, groups or another
order of memory; and where results may not depend on the number of threads, since compiled functions, which have the kernels of
convolutions alone, give the same bits then.
"""

from __future__ import annotations

from ....core.modes import process
from ....runtime import network
from ....runtime.products import multiply
from .geometry import Array, Ints


def is_whole(size: Ints, kernel: Ints, padding: Ints, dilation: Ints, groups: int) -> bool:
    """Whether a window of this kernel is all there is of an image of this size."""
    if groups != 1 or any(padding) or process.deterministic:
        return False
    return tuple(size) == tuple(kernel) and all(d == 1 or k == 1 for d, k in zip(dilation, kernel, strict=True))


def _ready(*arrays: Array) -> bool:
    return network.apply_to(*arrays) and all(a.flags.c_contiguous and a.size for a in arrays)


def convolution(x: Array, w: Array, bias: Array | None) -> Array | None:
    """y, of one place."""
    if not _ready(x, w) or bias is not None and not network.apply_to(x, bias):
        return None
    y = multiply(x.reshape(len(x), -1), w.reshape(len(w), -1).T, bias)
    return y.reshape(*y.shape, *(1,) * (x.ndim - 2))


def convolution_input(g: Array, w: Array, bias: Array | None) -> Array | None:
    """What meets x; bias is one number for each of its channels."""
    if not _ready(g, w) or bias is not None and not network.apply_to(g, bias):
        return None
    x = multiply(g.reshape(len(g), -1), w.reshape(len(w), -1)).reshape(len(g), *w.shape[1:])
    if bias is not None:
        x += bias.reshape(-1, *(1,) * (w.ndim - 2))
    return x


def convolution_weight(g: Array, x: Array) -> Array | None:
    """What meets w."""
    if not _ready(g, x):
        return None
    return multiply(g.reshape(len(g), -1).T, x.reshape(len(x), -1)).reshape(g.shape[1], *x.shape[1:])
