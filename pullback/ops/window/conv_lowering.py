"""Loops of convolutions.

A convolution is a product: the windows of the padded input, which are one strided view of it, are copied side by side and
multiplied with the weights. Its transpose, which is its gradient and a transposed convolution, adds overlapping windows in place.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from ..lowering import NotLowerable
from .window_lowering import add_windows, inside, padded, spread, windows

if TYPE_CHECKING:
    from ..lowering.builder import Builder
    from ..lowering.loops import Value

DTYPES = NotLowerable("a convolution of integers, or of two dtypes")
EMPTY = NotLowerable("a convolution of nothing")
PLACES = NotLowerable("a transposed convolution with places that nothing comes of (output padding)")
LAYOUT = NotLowerable("a convolution whose result is not row-major")


def merged(v: Value, *groups: int) -> Value:
    """A contiguous value with dimensions taken together, so many each."""
    shape, at = [], 0
    for n in groups:
        shape.append(math.prod(v.shape[at : at + n]))
        at += n
    return v.window(shape)


class Convolution:
    """The sizes of a convolution of a value of some shape; a transposed one is that which it is the transpose of."""

    def __init__(self, shape, d, weight: Value, stride, padding, dilation, groups):
        self.n, self.groups, self.d, self.shape = len(shape) - 2, groups, d, tuple(shape)
        self.stride, self.padding, self.dilation = (spread(v, self.n) for v in (stride, padding, dilation))
        self.kernel = list(weight.shape[2:])
        self.batch, self.inputs, self.outputs = shape[0], shape[1], weight.shape[0]
        sizes = zip(shape[2:], self.kernel, self.stride, self.padding, self.dilation, strict=True)
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

    def rows(self, b: Builder, y: Value) -> Value:
        """A value of the shape of the result, or the gradient of one, as (batch, groups, outputs of each, places)."""
        return self.grouped(b.contiguous(y).window((self.batch, self.outputs, math.prod(self.places))), 1)

    def by_library(
        self, b: Builder, form: int, target: Value, large: Value, weight: Value, small: Value, bias: Value | None = None
    ) -> Value | None:
        """The same by a library, where there is one for it: forms as `Builder.convolved` counts them."""
        settings = (self.stride, self.padding, self.dilation, self.groups)
        return b.convolved(form, target, large, weight, small, settings, bias)

    # ---- what is computed
    def apply(self, b: Builder, x: Value, weight: Value) -> Value:
        result = b.product(self.weights(b, weight), self.columns(b, x))
        return result.window((self.batch, self.outputs, *self.places))

    def transpose(self, b: Builder, y: Value, weight: Value) -> Value:
        """The transpose of `apply`: what belongs to a window is added there."""
        columns = b.product(self.weights(b, weight).swap(), self.rows(b, y))
        each = columns.window((self.batch, self.inputs, *self.kernel, *self.places))
        sizes = [s + 2 * p for s, p in zip(self.shape[2:], self.padding, strict=True)]
        whole = b.blank([*self.shape[:2], *sizes], self.d)
        add_windows(b, whole, each, self.kernel, self.stride, self.dilation, self.places)
        return inside(whole, self.padding, self.shape[2:])

    def weight_gradient(self, b: Builder, x: Value, y: Value, weight: Value) -> Value:
        each = b.product(self.rows(b, y), self.columns(b, x).swap())  # (batch, groups, outputs of each, window)
        total = b.reduce("sum", [each], lambda e: e, [0], self.d) if self.batch > 1 else each
        return total.window(weight.shape)


def _convolution(b: Builder, shape, x: Value, weight: Value, stride, padding, dilation, groups, small=None):
    """The convolution of a value of some shape; `small` is what must have its places."""
    d = b.wide(x.dtype)
    if x.dtype is not weight.dtype or not d.is_floating_point:
        return DTYPES
    if not x.numel or not weight.numel or not math.prod(shape) or len(shape) < 3:
        return EMPTY
    c = Convolution(shape, d, weight, stride, padding, dilation, groups)
    if min(c.places) < 1:
        return EMPTY
    return c if small is None or tuple(small.shape[2:]) == tuple(c.places) else PLACES


def lower_convolution(b: Builder, x: Value, weight: Value, bias, stride, padding, dilation, transposed, _, groups):
    shape = b.spec()._array.shape if transposed else x.shape
    c = _convolution(b, shape, x, weight, stride, padding, dilation, groups, x if transposed else None)
    if isinstance(c, NotLowerable):
        return c
    out = b.result()
    large, small = (out, x) if transposed else (x, out)
    found = c.by_library(b, 1 if transposed else 0, out, large, weight, small, bias)
    if found is not None:
        return found if found is out else b.store(b.result(), found)
    if bias is not None:
        bias = bias.window((bias.shape[0], *[1] * c.n), (bias.strides[0], *[0] * c.n))
    if transposed:
        rank = c.n + 2
        e = b.element(c.transpose(b, x, weight), rank)
        return b.fill(out, e if bias is None else e + b.element(bias, rank))
    out = c.apply(b, x, weight)
    if out.strides != b.result().strides:
        return LAYOUT
    return b.returned(out if bias is None else b.pointwise(lambda e, t: e + t, out, bias))


def lower_convolution_backward(
    b: Builder, g: Value, x: Value, weight: Value, sizes, stride, padding, dilation, transposed, _, groups, mask
):
    large, small = (g, x) if transposed else (x, g)
    c = _convolution(b, large.shape, x, weight, stride, padding, dilation, groups, small)
    if isinstance(c, NotLowerable):
        return c
    result: list = [None, None, None]
    if mask[0]:
        out = b.result(0)
        found = c.by_library(b, 0, out, g, weight, out) if transposed else c.by_library(b, 1, out, out, weight, g)
        if found is None:
            found = b.store(out, c.apply(b, g, weight) if transposed else c.transpose(b, g, weight))
        result[0] = found
    if mask[1]:
        result[1] = c.by_library(b, 2, out := b.result(1), large, out, small)
    if mask[1] and result[1] is None:
        gradient = c.weight_gradient(b, large, small, weight)
        if gradient.strides != b.result(1).strides:
            return LAYOUT
        result[1] = b.returned(gradient, 1)
    if mask[2]:
        result[2] = b.returned(b.reduce("sum", [g], lambda e: e, [0, *range(2, 2 + c.n)], c.d, keepdim=False), 2)
    return tuple(result)
