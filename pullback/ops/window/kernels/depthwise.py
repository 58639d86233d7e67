"""Depthwise convolution: every output channel looks at one input channel.

Comes in: a bordered `x` (N, C, spatial...), `w` (C * m, 1, kernel...), `g` (N, C * m, positions...). Goes out: the
same three faces as in `conv`, for bordered arrays. A matrix product would have a single row here, so the sum runs over
kernel positions instead, each a scaled shift of the contiguous stretches that `planes` lays out.
"""

from __future__ import annotations

from math import prod
from typing import Any

from .geometry import Array, Ints, bordered
from .planes import blocks, flat_length, merge, shifts, split


def forward(xp: Any, x: Array, w: Array, stride: Ints, dilation: Ints, out: Ints) -> Array:
    """y (N, C * m, positions...)."""
    n, c = x.shape[:2]
    planes, shape = split(xp, x, stride)
    scale = w.reshape(c, -1, prod(w.shape[2:]))
    reads, length, wide = shifts(w.shape[2:], stride, dilation, shape), flat_length(out, shape), (out[0], *shape[1:])
    y = xp.empty((n, w.shape[0], *out), x.dtype)
    channels = y.reshape((n, c, -1, *out))
    inside = (..., *map(slice, out))
    for i, part in blocks(n, c, prod(wide)):
        total = xp.empty((part.stop - part.start, prod(wide)), x.dtype)
        sum_, scratch = total[:, :length], xp.empty((part.stop - part.start, length), x.dtype)
        for m in range(scale.shape[1]):
            for k, (plane, at) in enumerate(reads):
                source, factor = planes[i, part, plane, at : at + length], scale[part, m, k, None]
                if k:
                    sum_ += xp.multiply(source, factor, out=scratch)
                else:
                    xp.multiply(source, factor, out=sum_)
            channels[i, part, m] = total.reshape(-1, *wide)[inside]
    return y


def backward_input(xp: Any, g: Array, w: Array, channels: int, reach: Ints, stride: Ints, dilation: Ints) -> Array:
    """What meets the bordered x: (N, channels, spatial...) with every spatial axis at least `reach` long."""
    n, out, kernel = g.shape[0], g.shape[2:], w.shape[2:]
    reach = [max(r, (o - 1) * s + d * (k - 1) + 1) for r, o, s, d, k in zip(reach, out, stride, dilation, kernel)]
    shape = tuple(-(-r // s) for r, s in zip(reach, stride))
    scale = w.reshape(channels, -1, prod(kernel))
    reads, length = shifts(kernel, stride, dilation, shape), flat_length(out, shape)
    flat = _flattened(xp, g, channels, shape, length)
    planes = xp.zeros((n, channels, prod(stride), prod(shape)), g.dtype)
    for i, part in blocks(n, channels, prod(shape)):
        scratch = xp.empty((part.stop - part.start, length), g.dtype)
        for m in range(scale.shape[1]):
            for k, (plane, at) in enumerate(reads):
                target = planes[i, part, plane, at : at + length]
                target += xp.multiply(flat[i, part, m], scale[part, m, k, None], out=scratch)
    return merge(xp, planes, shape, stride)


def backward_weight(xp: Any, g: Array, x: Array, kernel: Ints, stride: Ints, dilation: Ints) -> Array:
    """What meets w: (C * m, 1, kernel...)."""
    channels, out = x.shape[1], g.shape[2:]
    planes, shape = split(xp, x, stride)
    length = flat_length(out, shape)
    flat = _flattened(xp, g, channels, shape, length)
    products = [
        xp.einsum("ncml,ncl->cm", flat, planes[:, :, plane, at : at + length])
        for plane, at in shifts(kernel, stride, dilation, shape)
    ]
    return xp.stack(products, axis=-1).reshape((-1, 1, *kernel))


def _flattened(xp: Any, g: Array, channels: int, shape: Ints, length: int) -> Array:
    """g (N, C, m, length) laid out as a plane is, with zeros where a row of g is shorter than a plane's."""
    out = g.shape[2:]
    high = [0, *(s - o for s, o in zip(shape[1:], out[1:]))]
    wide = bordered(xp, g, (0,) * len(out), high)
    return wide.reshape(g.shape[0], channels, -1, out[0] * prod(shape[1:]))[..., :length]
