"""Loops of convolutions.

A convolution is a product: the windows of the padded input, which are one strided view of it, are copied side by side and
multiplied with the weights. Gradients of overlapping windows are added in place.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from ..lowering import NotLowerable
from .window_lowering import add_windows, bordered, inside, padded, spread, windows

if TYPE_CHECKING:
    from ..lowering.builder import Builder
    from ..lowering.loops import Value

REFUSED = NotLowerable("a transposed or empty convolution, or one in low precision")
LAYOUT = NotLowerable("a convolution whose result is not row-major")


def merged(v: Value, *groups: int) -> Value:
    """A contiguous value with dimensions taken together, so many each."""
    shape, at = [], 0
    for n in groups:
        shape.append(math.prod(v.shape[at : at + n]))
        at += n
    return v.window(shape)


class Convolution:
    """The sizes of a convolution."""

    def __init__(self, x: Value, weight: Value, stride, padding, dilation, groups):
        self.n, self.groups, self.d = len(x.shape) - 2, groups, x.dtype
        self.stride, self.padding, self.dilation = (spread(v, self.n) for v in (stride, padding, dilation))
        self.kernel = list(weight.shape[2:])
        self.batch, self.inputs, self.outputs = x.shape[0], x.shape[1], weight.shape[0]
        sizes = zip(x.shape[2:], self.kernel, self.stride, self.padding, self.dilation, strict=True)
        self.places = [(s + 2 * p - di * (k - 1) - 1) // st + 1 for s, k, st, p, di in sizes]

    def grouped(self, v: Value, dim: int) -> Value:
        """A channel dimension as (groups, channels of each)."""
        shape, strides = list(v.shape), list(v.strides)
        each = shape[dim] // self.groups
        shape[dim : dim + 1] = [self.groups, each]
        strides[dim : dim + 1] = [each * strides[dim], strides[dim]]
        return v.window(shape, strides)

    def weights(self, b: Builder, weight: Value) -> Value:
        """(batch, groups, outputs of each, window), the same for each of the batch."""
        w = self.grouped(merged(b.contiguous(weight), 1, 1 + self.n), 0).unsqueeze(0)
        return w.expand((self.batch, *w.shape[1:]))

    def columns(self, b: Builder, x: Value) -> Value:
        """(batch, groups, window, places), copied unless the windows are single elements that lie so already."""
        full = windows(padded(b, x, self.padding), self.kernel, self.stride, self.dilation, self.places)
        full = self.grouped(full, 1)
        if math.prod(self.kernel) == 1 and full.strides[-self.n :] == full.window(full.shape).strides[-self.n :]:
            return full.window((*full.shape[:3], math.prod(self.places)), (*full.strides[:3], 1))
        return merged(b.copy(full), 1, 1, 1 + self.n, self.n)


def _convolution(b: Builder, x: Value, weight: Value, stride, padding, dilation, transposed, groups):
    d = b.wide(x.dtype)
    if transposed or x.dtype is not d or weight.dtype is not d or not d.is_floating_point:
        return REFUSED
    if not x.numel or not weight.numel or len(x.shape) < 3:
        return REFUSED
    c = Convolution(x, weight, stride, padding, dilation, groups)
    return c if min(c.places) >= 1 else NotLowerable("a convolution of too little")


def lower_convolution(b: Builder, x: Value, weight: Value, bias, stride, padding, dilation, transposed, _, groups):
    c = _convolution(b, x, weight, stride, padding, dilation, transposed, groups)
    if isinstance(c, NotLowerable):
        return c
    made = b.product(c.weights(b, weight), c.columns(b, x))
    out = made.window((c.batch, c.outputs, *c.places))
    if out.strides != b.result().strides:
        return LAYOUT
    if bias is None:
        return out
    return b.pointwise(lambda e, t: e + t, out, bias.window((c.outputs, *[1] * c.n), (bias.strides[0], *[0] * c.n)))


def lower_convolution_backward(
    b: Builder, g: Value, x: Value, weight: Value, sizes, stride, padding, dilation, transposed, _, groups, mask
):
    c = _convolution(b, x, weight, stride, padding, dilation, transposed, groups)
    if isinstance(c, NotLowerable):
        return c
    made: list = [None, None, None]
    rows = c.grouped(b.contiguous(g).window((c.batch, c.outputs, math.prod(c.places))), 1)
    if mask[0]:
        made[0] = _input_gradient(b, c, x, weight, rows)
    if mask[1]:
        each = b.product(rows, c.columns(b, x).swap())  # (batch, groups, outputs of each, window)
        total = b.reduce("sum", [each], lambda e: e, [0], c.d) if c.batch > 1 else each
        made[1] = total.window(weight.shape)
        if made[1].strides != b.result(1).strides:
            return LAYOUT
    if mask[2]:
        made[2] = b.reduce("sum", [g], lambda e: e, [0, *range(2, 2 + c.n)], c.d, keepdim=False)
    return tuple(made)


def _input_gradient(b: Builder, c: Convolution, x: Value, weight: Value, rows: Value) -> Value:
    columns = b.product(c.weights(b, weight).swap(), rows)
    each = columns.window((c.batch, c.inputs, *c.kernel, *c.places))
    whole = bordered(b, x, c.padding)
    add_windows(b, whole, each, c.kernel, c.stride, c.dilation, c.places)
    return b.store(b.result(0), inside(whole, c.padding, x.shape[2:]))
