"""Loops of convolutions and pools: rules by `lower="name"`, as in `rules`.

A convolution is a product: the windows of the padded input, which are one strided view of it, are copied side by side and
multiplied with the weights. Pools compare or add the elements of a window one by one, in an expression: all of it is
element-wise. Gradients of overlapping windows are added in place.
"""

from __future__ import annotations

import itertools
import math

from ..core import dtype as dtypes
from ..graph.node import Node
from .elements import ELEMENTS as o
from .elements import Element, Unlowerable
from .expressions import affine, const, load, make
from .loops import Compute, Value
from .lower import Lowering, rule
from .rules import product, result, scatter_add, store, wide

LARGEST_WINDOW = 25  # elements that a pool compares in one expression


def spread(values, n: int) -> list[int]:
    values = list(values)
    return values * n if len(values) == 1 else values


def padded(b: Lowering, x: Value, padding: list[int], value: float = 0.0) -> Value:
    """The last dimensions with a border."""
    if not any(padding):
        return x
    n = len(padding)
    lead = len(x.shape) - n
    out = b.blank([*x.shape[:lead], *[s + 2 * p for s, p in zip(x.shape[lead:], padding, strict=True)]], x.dtype)
    b.fill(out, const(value, x.dtype))
    inside = out
    for d, p in enumerate(padding):
        inside = inside.narrow(lead + d, p, x.shape[lead + d])
    store(b, inside, x)
    return out


def windows(x: Value, size, stride, dilation, places) -> Value:
    """(..., kernel dims, places): the windows of the last dimensions, a view."""
    n = len(size)
    lead = len(x.shape) - n
    inner = [d * s for d, s in zip(dilation, x.strides[lead:], strict=True)]
    outer = [t * s for t, s in zip(stride, x.strides[lead:], strict=True)]
    return Value(x.buffer, [*x.shape[:lead], *size, *places], [*x.strides[:lead], *inner, *outer], x.offset)


def merged(v: Value, *groups: int) -> Value:
    """A contiguous value with dimensions taken together, so many each."""
    shape, at = [], 0
    for n in groups:
        shape.append(math.prod(v.shape[at : at + n]))
        at += n
    return Value(v.buffer, shape, None, v.offset)


class Convolution:
    """The sizes of a convolution."""

    def __init__(self, x: Value, weight: Value, stride, padding, dilation, transposed, groups):
        n = len(x.shape) - 2
        d = wide(x.dtype)
        if transposed or x.dtype is not d or weight.dtype is not d or not x.numel or not weight.numel or n < 1:
            raise Unlowerable("a transposed or empty convolution, or one in low precision")
        self.n, self.groups, self.d = n, groups, d
        self.stride, self.padding, self.dilation = (spread(v, n) for v in (stride, padding, dilation))
        self.kernel = list(weight.shape[2:])
        self.batch, self.inputs, self.outputs = x.shape[0], x.shape[1], weight.shape[0]
        sizes = zip(x.shape[2:], self.kernel, self.stride, self.padding, self.dilation, strict=True)
        self.places = [(s + 2 * p - di * (k - 1) - 1) // st + 1 for s, k, st, p, di in sizes]
        if min(self.places) < 1:
            raise Unlowerable("a convolution of too little")

    def grouped(self, v: Value, dim: int) -> Value:
        """A channel dimension as (groups, channels of each)."""
        shape, strides = list(v.shape), list(v.strides)
        each = shape[dim] // self.groups
        shape[dim : dim + 1] = [self.groups, each]
        strides[dim : dim + 1] = [each * strides[dim], strides[dim]]
        return Value(v.buffer, shape, strides, v.offset)

    def weights(self, b: Lowering, weight: Value) -> Value:
        """(1, groups, outputs of each, window)."""
        v = weight if weight.strides == Value(weight.buffer, weight.shape).strides else b.copy(weight)
        flat = merged(v, 1, 1 + self.n)
        return self.grouped(flat, 0).unsqueeze(0)

    def columns(self, b: Lowering, x: Value) -> Value:
        """(batch, groups, window, places), copied unless the windows are single elements that lie so already."""
        full = windows(padded(b, x, self.padding), self.kernel, self.stride, self.dilation, self.places)
        full = self.grouped(full, 1)
        if math.prod(self.kernel) == 1 and full.strides[-self.n :] == Value(full.buffer, full.shape).strides[-self.n :]:
            return Value(full.buffer, (*full.shape[:3], math.prod(self.places)), (*full.strides[:3], 1), full.offset)
        return merged(b.copy(full), 1, 1, 1 + self.n, self.n)


@rule("convolution")
def convolution(b: Lowering, node: Node, x, weight, bias, stride, padding, dilation, transposed, _, groups):
    c = Convolution(x, weight, stride, padding, dilation, transposed, groups)
    w = c.weights(b, weight)
    made = product(b, w.expand((c.batch, *w.shape[1:])), c.columns(b, x))
    out = Value(made.buffer, (c.batch, c.outputs, *c.places))
    if out.strides != result(b, node).strides:
        raise Unlowerable("a convolution whose result is not row-major")
    if bias is None:
        return out
    each = Value(bias.buffer, (c.outputs, *[1] * c.n), (bias.strides[0], *[0] * c.n), bias.offset)
    return b.pointwise(lambda e, t: e + t, out, each)


@rule("convolution_backward")
def convolution_backward(
    b: Lowering, node: Node, g, x, weight, sizes, stride, padding, dilation, transposed, _, groups, mask
):
    c = Convolution(x, weight, stride, padding, dilation, transposed, groups)
    made: list = [None, None, None]
    flat = g if g.strides == Value(g.buffer, g.shape).strides else b.copy(g)
    rows = c.grouped(Value(flat.buffer, (c.batch, c.outputs, math.prod(c.places)), None, flat.offset), 1)
    if mask[0]:
        made[0] = _input_gradient(b, node, c, x, weight, rows)
    if mask[1]:
        columns = c.columns(b, x)
        each = product(b, rows, columns.swap())  # (batch, groups, outputs of each, window)
        total = b.reduce("sum", [each], lambda e: e, [0], c.d) if c.batch > 1 else each
        made[1] = Value(total.buffer, weight.shape)
        if made[1].strides != result(b, node, 1).strides:
            raise Unlowerable("weights that are not row-major")
    if mask[2]:
        made[2] = b.reduce("sum", [g], lambda e: e, [0, *range(2, 2 + c.n)], c.d, keepdim=False)
    return tuple(made)


def _input_gradient(b: Lowering, node: Node, c: Convolution, x: Value, weight: Value, rows: Value) -> Value:
    w = c.weights(b, weight).swap()
    columns = product(b, w.expand((c.batch, *w.shape[1:])), rows)
    each = Value(columns.buffer, (c.batch, c.inputs, *c.kernel, *c.places))
    out = result(b, node, 0)
    whole = b.blank([*x.shape[:2], *[s + 2 * p for s, p in zip(x.shape[2:], c.padding, strict=True)]], c.d)
    add_windows(b, whole, each, c.kernel, c.stride, c.dilation, c.places)
    inside = whole
    for d, p in enumerate(c.padding):
        inside = inside.narrow(2 + d, p, x.shape[2 + d])
    return store(b, out, inside)


def add_windows(b: Lowering, whole: Value, each: Value, size, stride, dilation, places) -> None:
    """Set a value to zero and add to each window what belongs there."""
    b.fill(whole, const(0.0, whole.dtype))
    target = windows(whole, size, stride, dilation, places)
    nowhere = ((const(0, dtypes.int64), 0, 1),)  # windows overlap: added one after the other
    b.emit(
        Compute(whole.buffer, whole.offset, target.shape, target.strides, each.element(), None, frozenset(), nowhere)
    )


# ---- pools
def _taps(x: Value, size, stride, dilation, places):
    """(offsets in the window, element) of each element of the windows, over loops of (lead, places)."""
    if math.prod(size) > LARGEST_WINDOW:
        raise Unlowerable("a large window")
    full = windows(x, size, stride, dilation, places)
    lead = len(x.shape) - len(size)
    strides = [*full.strides[:lead], *full.strides[lead + len(size) :]]
    for at in itertools.product(*[range(k) for k in size]):
        offset = full.offset + sum(i * s for i, s in zip(at, full.strides[lead : lead + len(size)], strict=True))
        yield at, Element(load(x.buffer, offset, strides))


def _within(x: Value, n: int, size, stride, padding, dilation, places) -> None:
    """Refuse windows that reach beyond the padded input (ceil_mode)."""
    for s, k, t, p, d, m in zip(x.shape[-n:], size, stride, padding, dilation, places, strict=True):
        if (m - 1) * t + d * (k - 1) >= s + 2 * p:
            raise Unlowerable("a window that reaches beyond the border")


@rule("max_pool")
def max_pool(b: Lowering, node: Node, x, size, stride, padding, dilation, ceil):
    out, indices = result(b, node, 0), result(b, node, 1)
    n = 2 if "2d" in node.target.name else 3
    size = spread(size, n)
    stride, padding, dilation = spread(stride or size, n), spread(padding, n), spread(dilation, n)
    if x.dtype not in (dtypes.float32, dtypes.float64) or not x.numel or any(padding) and any(d != 1 for d in dilation):
        raise Unlowerable("a pool in this dtype")
    lead, places = len(x.shape) - n, out.shape[-n:]
    _within(x, n, size, stride, padding, dilation, places)
    best = place = None
    for at, e in _taps(padded(b, x, padding, -math.inf), size, stride, dilation, places):
        flat = const(0, dtypes.int64)
        for d in range(n):  # the place in the input, row by row
            here = affine([(lead + d, stride[d])], dilation[d] * at[d] - padding[d])
            flat = make(
                "add", dtypes.int64, make("multiply", dtypes.int64, flat, const(x.shape[lead + d], dtypes.int64)), here
            )
        if best is None:
            best, place = e, _first(x, lead, stride, padding) if any(padding) else flat
            continue
        larger = o.logical_or(e > best, o.isnan(e))
        best, place = o.where(larger, e, best), make("where", dtypes.int64, larger.expr, flat, place)
    assert best is not None
    return b.fill(out, best.expr), b.fill(indices, place)


def _first(x: Value, lead: int, stride, padding):
    """The first place of a window that is in the input."""
    flat = const(0, dtypes.int64)
    for d in range(len(stride)):
        here = make("maximum", dtypes.int64, affine([(lead + d, stride[d])], -padding[d]), const(0, dtypes.int64))
        flat = make(
            "add", dtypes.int64, make("multiply", dtypes.int64, flat, const(x.shape[lead + d], dtypes.int64)), here
        )
    return flat


@rule("max_pool_backward")
def max_pool_backward(b: Lowering, node: Node, g, x, size, stride, padding, dilation, ceil, indices):
    out = result(b, node)
    n = 2 if "2d" in node.target.name else 3
    lead = len(out.shape) - n
    if out.dtype not in (dtypes.float32, dtypes.float64) or out.strides != Value(out.buffer, out.shape).strides:
        raise Unlowerable("a pool in this dtype or layout")
    b.fill(out, const(0.0, out.dtype))
    place = ((indices.element(), 1, math.prod(out.shape[lead:])),)
    scatter_add(b, out, g.shape, g.element(), [*out.strides[:lead], *[0] * n], place)
    return out


def _average(name: str, x: Value, out_shape, size, stride, padding, ceil, include, divisor):
    n = 2 if "2d" in name else 3
    size = spread(size, n)
    stride, padding = spread(stride or size, n), spread(padding, n)
    if x.dtype not in (dtypes.float32, dtypes.float64) or any(padding) and not include or not x.numel:
        raise Unlowerable("an average that does not count the border, or in this dtype")
    places = out_shape[-n:]
    _within(x, n, size, stride, padding, [1] * n, places)
    return n, size, stride, padding, places, float(divisor or math.prod(size))


@rule("avg_pool")
def avg_pool(b: Lowering, node: Node, x, size, stride, padding, ceil, include, divisor):
    out = result(b, node)
    n, size, stride, padding, places, count = _average(
        node.target.name, x, out.shape, size, stride, padding, ceil, include, divisor
    )
    total = None
    for _, e in _taps(padded(b, x, padding), size, stride, [1] * n, places):
        total = e if total is None else total + e
    return b.fill(out, (total / count).expr)


@rule("avg_pool_backward")
def avg_pool_backward(b: Lowering, node: Node, g, x, size, stride, padding, ceil, include, divisor):
    out = result(b, node)
    n, size, stride, padding, places, count = _average(
        node.target.name, x, g.shape, size, stride, padding, ceil, include, divisor
    )
    lead = len(x.shape) - n
    whole = b.blank([*x.shape[:lead], *[s + 2 * p for s, p in zip(x.shape[lead:], padding, strict=True)]], g.dtype)
    share = b.pointwise(lambda e: e / count, g)
    each = Value(
        share.buffer, [*g.shape[:lead], *size, *places], [*share.strides[:lead], *[0] * n, *share.strides[lead:]], share.offset
    )  # fmt: skip
    add_windows(b, whole, each, size, stride, [1] * n, places)
    inside = whole
    for d, p in enumerate(padding):
        inside = inside.narrow(lead + d, p, x.shape[lead + d])
    return store(b, out, inside)
