"""Loops of pools: the elements of a window are compared or added one by one, in one expression, so that all is element-wise.

Gradients of overlapping windows are added in place.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from typing import TYPE_CHECKING

from ...core import dtype as dtypes
from ..lowering import NotLowerable
from .window_lowering import add_windows, bordered, inside, padded, spread, windows

if TYPE_CHECKING:
    from ..lowering.builder import Builder
    from ..lowering.elements import Element
    from ..lowering.loops import Value

LARGEST_WINDOW = 25  # elements that a pool compares in one expression
FLOATS = (dtypes.float32, dtypes.float64)


def _dimensions(b: Builder) -> int:
    return 2 if "2d" in b.op.name else 3


def _refuses(x: Value, size, stride, padding, dilation, places) -> NotLowerable | None:
    if x.dtype not in FLOATS or not x.numel:
        return NotLowerable(f"a pool of {x.dtype}, or of nothing")
    if math.prod(size) > LARGEST_WINDOW:
        return NotLowerable("a large window")
    for s, k, t, p, d, m in zip(x.shape[-len(size) :], size, stride, padding, dilation, places, strict=True):
        if (m - 1) * t + d * (k - 1) >= s + 2 * p:
            return NotLowerable("a window that reaches beyond the border (ceil_mode)")
    return None


def _taps(b: Builder, x: Value, size, stride, dilation, places) -> Iterator[tuple[tuple, Element]]:
    """(offsets in the window, element) of each element of the windows, over loops of (lead, places)."""
    full = windows(x, size, stride, dilation, places)
    lead = len(x.shape) - len(size)
    kernel = full.strides[lead : lead + len(size)]
    strides = [*full.strides[:lead], *full.strides[lead + len(size) :]]
    for at in itertools.product(*[range(k) for k in size]):
        offset = full.offset + sum(i * s for i, s in zip(at, kernel, strict=True))
        yield at, b.gather(full.window(full.shape, full.strides, offset), strides)


class Windows:
    """Windows that may reach over the border. What is there is read where the input is nearest: that is in the same window, and
    the elements of a window still come in their order, so that the largest, and the first of equals, stay what they are."""

    def __init__(self, x: Value, stride, padding, dilation, places):
        self.x, self.lead = x, len(x.shape) - len(stride)
        self.stride, self.padding, self.dilation, self.places = stride, padding, dilation, places

    def along(self, d: int, k: int) -> tuple[int, int, int]:
        """(first place, last place, last of the input) of element `k` of the windows along a dimension."""
        first = self.dilation[d] * k - self.padding[d]
        return first, first + self.stride[d] * (self.places[d] - 1), self.x.shape[self.lead + d] - 1

    def where(self, b: Builder, at: tuple) -> list[Element]:
        """The place in the input of an element of a window."""
        result = []
        for d, k in enumerate(at):
            first, last, end = self.along(d, k)
            here = b.index(self.lead + d, self.stride[d], first)
            here = here if first >= 0 else b.o.maximum(here, 0)
            result.append(here if last <= end else b.o.minimum(here, end))
        return result

    def read(self, b: Builder, at: tuple) -> Element:
        """An element of a window."""
        x, strides, places, offset = self.x, list(self.x.strides), [], self.x.offset
        for d, (k, here) in enumerate(zip(at, self.where(b, at), strict=True)):
            first, last, end = self.along(d, k)
            step = strides[self.lead + d]
            if first >= 0 and last <= end:
                offset, strides[self.lead + d] = offset + first * step, self.stride[d] * step
            else:
                places.append((here, step, None))
                strides[self.lead + d] = 0
        return b.gather(x.window(x.shape, x.strides, offset), strides, places)


# ---- the largest
def lower_max_pool(b: Builder, x: Value, size, stride, padding, dilation, ceil):
    out, indices, n = b.result(0), b.result(1), _dimensions(b)
    size = spread(size, n)
    stride, padding, dilation = spread(stride or size, n), spread(padding, n), spread(dilation, n)
    refused = _refuses(x, size, stride, padding, dilation, out.shape[-n:])
    if refused is not None:
        return refused
    if any(padding) and any(d != 1 for d in dilation):
        return NotLowerable("a pool with a border and gaps")
    o, lead, places = b.o, len(x.shape) - n, out.shape[-n:]

    def flat(here: list[Element]) -> Element:
        """The place in the input, row by row."""
        total = b.number(0, dtypes.int64)
        for d, at in enumerate(here):
            total = total * x.shape[lead + d] + at
        return total

    windows = Windows(x, stride, padding, dilation, places)
    if b.reads_beside_borders:
        taps = ((at, windows.read(b, at)) for at in itertools.product(*[range(k) for k in size]))
    else:
        taps = _taps(b, padded(b, x, padding, -math.inf), size, stride, dilation, places)
    best = place = None
    for at, e in taps:
        if best is None:
            best, place = e, flat(windows.where(b, at))
            continue
        larger = o.logical_or(e > best, o.isnan(e))
        best, place = o.where(larger, e, best), o.where(larger, flat(windows.where(b, at)), place)
    indices.buffer.below = math.prod(x.shape[lead:])
    return b.fill(out, best), b.fill(indices, place)


def lower_max_pool_backward(b: Builder, g: Value, x: Value, size, stride, padding, dilation, ceil, indices: Value):
    out, n = b.result(), _dimensions(b)
    lead = len(out.shape) - n
    step, sizes = out.strides[-1], out.shape[lead:]
    row_major = tuple([step * math.prod(sizes[d + 1 :]) for d in range(n)])  # as indices count; channels-last is so too
    if out.dtype not in FLOATS or out.strides[lead:] != row_major:
        return NotLowerable("a pool in this dtype or layout")
    b.fill(out, b.number(0.0, out.dtype))
    place = (b.raw(indices), step, math.prod(sizes))
    b.scatter(out, g.shape, b.raw(g), [*out.strides[:lead], *[0] * n], [place])
    return out


# ---- the mean
class Average:
    """The sizes of an average pool, and what its windows are divided by."""

    def __init__(self, n: int, size, stride, padding, divisor):
        self.n, self.size, self.dilation = n, spread(size, n), [1] * n
        self.stride, self.padding = spread(stride or self.size, n), spread(padding, n)
        self.count = float(divisor or math.prod(self.size))

    def refuses(self, x: Value, places, include: bool) -> NotLowerable | None:
        if any(self.padding) and not include:
            return NotLowerable("an average that does not count the border")
        return _refuses(x, self.size, self.stride, self.padding, self.dilation, places)


def lower_avg_pool(b: Builder, x: Value, size, stride, padding, ceil, include, divisor):
    out = b.result()
    a = Average(_dimensions(b), size, stride, padding, divisor)
    places = out.shape[-a.n :]
    refused = a.refuses(x, places, include)
    if refused is not None:
        return refused
    total = None
    for _, e in _taps(b, padded(b, x, a.padding), a.size, a.stride, a.dilation, places):
        total = e if total is None else total + e
    return b.fill(out, total / a.count)


def lower_avg_pool_backward(b: Builder, g: Value, x: Value, size, stride, padding, ceil, include, divisor):
    a = Average(_dimensions(b), size, stride, padding, divisor)
    lead, places = len(x.shape) - a.n, g.shape[-a.n :]
    refused = a.refuses(x, places, include)
    if refused is not None:
        return refused
    whole = bordered(b, x, a.padding)
    share = b.pointwise(lambda e: e / a.count, g)
    strides = [*share.strides[:lead], *[0] * a.n, *share.strides[lead:]]
    each = share.window([*g.shape[:lead], *a.size, *places], strides)
    add_windows(b, whole, each, a.size, a.stride, a.dilation, places)
    return b.store(b.result(), inside(whole, a.padding, x.shape[lead:]))
