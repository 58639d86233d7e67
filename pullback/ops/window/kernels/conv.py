"""Convolution over 1 to 3 spatial axes: the three faces of one trilinear form.

Comes in: input `x` (N, C, spatial...), weight `w` (O, C/groups, kernel...), cotangent `g` (N, O, positions...).
Goes out: `convolution` answers y, `convolution_input` the sum that meets x, `convolution_weight` the sum that meets w,
so that sum(g * y) = sum(x * gx) = sum(w * gw) for every x, w, g. Each is linear in its arrays and the derivative of
each is one of the other two; a transposed convolution is `convolution_input`. Complex arrays are not conjugated here.

The work is one matrix product per block of images: windows are copied to columns in a buffer that stays near the
processor's cache, so that memory use does not grow with the batch.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import prod
from typing import Any

import numpy

from ....runtime import network
from . import depthwise, whole
from .geometry import (
    Array,
    Ints,
    bordered,
    conv_size,
    narrow_to,
    positions,
    widen,
    windows,
)

COLUMN_BYTES = 4 << 20  # aim of one block of columns: large enough for an efficient product, small enough for the cache
COLUMN_LIMIT = 32 << 20  # one image whose columns exceed this is cut into rows
MERGE_BELOW = 256  # with fewer positions per image than this, 1x1 products run faster with images merged


def convolution(
    xp: Any, x: Array, w: Array, bias: Array | None, stride: Ints, padding: Ints, dilation: Ints, groups: int,
    like: tuple = (),
) -> Array:  # fmt: skip
    """y = x convolved with w (cross-correlation, as everywhere in deep learning), plus bias. It may lie channels-last where one of the arrays
    `like` does (if none are given, x or w)."""
    dtype, kernel = x.dtype, w.shape[2:]
    out = tuple(map(conv_size, x.shape[2:], kernel, stride, padding, dilation))
    x, w = widen(x), widen(w)
    if xp is numpy and x.size and w.size and prod(out):
        shift, y = None if bias is None else widen(bias), None
        if whole.is_whole(x.shape[2:], kernel, padding, dilation, groups):
            y = whole.convolution(x, w, shift)
        if y is None:
            y = network.convolution(x, w, shift, stride, padding, dilation, groups, out, like)
        if y is not None:
            return narrow_to(y, dtype)
    x = bordered(xp, x, padding, padding)
    if not x.size or not w.size or not prod(out):
        y = xp.zeros((x.shape[0], w.shape[0], *out), x.dtype)
    elif groups > 1 and w.shape[1] == 1:
        y = depthwise.forward(xp, x, w, stride, dilation, out)
    elif prod(kernel) == 1 and (prod(out) >= MERGE_BELOW or x.shape[0] == 1):
        y = _pointwise(xp, x, w, stride, groups, out)
    elif all(s == 1 for s in stride) and 2 * w.shape[0] <= x.shape[1]:
        # Few outputs for many inputs: copying the inputs to columns costs more than adding up the outputs' shares.
        span = [d * (k - 1) for d, k in zip(dilation, kernel)]
        spread = _by_scatter(xp, x, _turned(xp, w, groups), x.shape[2:], stride, (0,) * len(out), dilation, groups)
        y = xp.ascontiguousarray(_uncovered(spread, out, span))
    else:
        y = _by_columns(xp, x, w, stride, dilation, groups, out)
    return narrow_to(_shifted(y, bias), dtype)


def _shifted(y: Array, bias: Array | None) -> Array:
    """y with the bias of each channel added."""
    if bias is not None:
        y += widen(bias).reshape((-1,) + (1,) * (y.ndim - 2))
    return y


def convolution_input(
    xp: Any, g: Array, w: Array, size: Ints, stride: Ints, padding: Ints, dilation: Ints, groups: int,
    bias: Array | None = None, like: tuple = (),
) -> Array:  # fmt: skip
    """What meets x, of spatial `size`: the transposed convolution of g with w, plus bias. It may lie channels-last, as in `convolution`."""
    dtype, channels = g.dtype, w.shape[1] * groups
    g, w = widen(g), widen(w)
    if not g.size or not w.size:
        return narrow_to(_shifted(xp.zeros((g.shape[0], channels, *size), g.dtype), bias), dtype)
    if xp is numpy:
        shift, gx = None if bias is None else widen(bias), None
        if prod(g.shape[2:]) == 1 and whole.is_whole(size, w.shape[2:], padding, dilation, groups):
            gx = whole.convolution_input(g, w, shift)
        if gx is None:
            gx = network.convolution_input(g, w, size, stride, padding, dilation, groups, shift, like)
        if gx is not None:
            return narrow_to(gx, dtype)
    if groups > 1 and w.shape[1] == 1:
        reach = [n + 2 * p for n, p in zip(size, padding)]
        gx = _uncovered(depthwise.backward_input(xp, g, w, channels, reach, stride, dilation), size, padding)
    elif all(s == 1 for s in stride) and 2 * channels > g.shape[1]:
        return narrow_to(_shifted(_flipped(xp, g, w, size, padding, dilation, groups), bias), dtype)
    else:
        gx = _uncovered(_by_scatter(xp, g, w, size, stride, padding, dilation, groups), size, padding)
    return narrow_to(_shifted(xp.ascontiguousarray(gx), bias), dtype)


def convolution_weight(
    xp: Any, g: Array, x: Array, kernel: Ints, stride: Ints, padding: Ints, dilation: Ints, groups: int
) -> Array:
    """What meets w, of spatial size `kernel`."""
    dtype, out = x.dtype, g.shape[2:]
    shape = (g.shape[1], x.shape[1] // groups, *kernel)
    x, g = widen(x), widen(g)
    if not x.size or not g.size:
        return xp.zeros(shape, dtype)
    if xp is numpy:
        gw = None
        if prod(out) == 1 and whole.is_whole(x.shape[2:], kernel, padding, dilation, groups):
            gw = whole.convolution_weight(g, x)
        if gw is None:
            gw = network.convolution_weight(g, x, shape, stride, padding, dilation, groups)
        if gw is not None:
            return narrow_to(gw, dtype)
    x = bordered(xp, x, padding, padding)
    if groups > 1 and shape[1] == 1:
        return narrow_to(depthwise.backward_weight(xp, g, x, kernel, stride, dilation), dtype)
    view = windows(xp, x, kernel, stride, dilation, out)
    gw = xp.zeros(shape, x.dtype)
    total = gw.reshape(groups, shape[0] // groups, -1)
    aim = max(COLUMN_BYTES, 2 * prod(shape) * x.dtype.itemsize)  # a large sum must not be added to often
    for images, rows, cols in _columns(xp, view, len(kernel), aim):
        total += xp.matmul(_block(xp, g, images, rows, groups), _grouped(cols, groups, len(kernel)).swapaxes(-1, -2))
    return narrow_to(gw, dtype)


def _pointwise(xp: Any, x: Array, w: Array, stride: Ints, groups: int, out: Ints) -> Array:
    """A kernel of one entry: a plain product over channels, no columns."""
    picked = x[(..., *(slice(0, (o - 1) * s + 1, s) for o, s in zip(out, stride)))]
    n, c, o = *x.shape[:2], w.shape[0]
    y = xp.empty((n, o, *out), x.dtype)
    left, right = w.reshape(groups, -1, c // groups), picked.reshape(n, groups, c // groups, -1)
    xp.matmul(left, right, out=y.reshape(n, groups, o // groups, -1))
    return y


def _by_columns(xp: Any, x: Array, w: Array, stride: Ints, dilation: Ints, groups: int, out: Ints) -> Array:
    nd, o = len(out), w.shape[0]
    y = xp.empty((x.shape[0], o, *out), x.dtype)
    matrix, inner = w.reshape(groups, o // groups, -1), prod(out[1:])
    view = windows(xp, x, w.shape[2:], stride, dilation, out)
    for images, rows, cols in _columns(xp, view, nd, COLUMN_BYTES):
        operand = _grouped(cols, groups, nd)
        if images.stop - images.start == 1:
            target = y[images.start].reshape(groups, o // groups, -1)[..., rows.start * inner : rows.stop * inner]
            xp.matmul(matrix, operand, out=target)
        else:
            product = xp.matmul(matrix, operand).reshape((o, *cols.shape[nd + 1 :]))
            y[images, :, rows] = xp.moveaxis(product, 1, 0)
    return y


def _flipped(xp: Any, g: Array, w: Array, size: Ints, padding: Ints, dilation: Ints, groups: int) -> Array:
    """With unit stride the transposed convolution is a convolution with the kernel turned around."""
    span = [d * (k - 1) for d, k in zip(dilation, w.shape[2:])]
    low = [s - p for s, p in zip(span, padding)]
    high = [n + s - m - a for n, s, m, a in zip(size, span, g.shape[2:], low)]
    ones, zeros = (1,) * len(size), (0,) * len(size)
    return convolution(xp, bordered(xp, g, low, high), _turned(xp, w, groups), None, ones, zeros, dilation, groups)


def _turned(xp: Any, w: Array, groups: int) -> Array:
    """The kernel with its positions reversed and its two channel axes exchanged within each group."""
    o, c, kernel = w.shape[0], w.shape[1], w.shape[2:]
    parts = w.reshape(groups, o // groups, c, *kernel).swapaxes(1, 2)
    turned = parts[(..., *(slice(None, None, -1) for _ in kernel))]
    return xp.ascontiguousarray(turned).reshape(groups * c, o // groups, *kernel)


def _by_scatter(
    xp: Any, g: Array, w: Array, size: Ints, stride: Ints, padding: Ints, dilation: Ints, groups: int
) -> Array:
    """Columns of the answer by one product per block, then added where each kernel position came from."""
    n, o, out, kernel = g.shape[0], g.shape[1], g.shape[2:], w.shape[2:]
    matrix = xp.ascontiguousarray(w.reshape(groups, o // groups, -1).swapaxes(1, 2))
    channels, nd = w.shape[1] * groups, len(kernel)
    reach = [
        max(m + 2 * p, (q - 1) * s + d * (k - 1) + 1)
        for m, p, q, s, d, k in zip(size, padding, out, stride, dilation, kernel)
    ]
    total = xp.zeros((n, channels, *reach), g.dtype)
    row_bytes = channels * prod(kernel) * prod(out[1:]) * g.dtype.itemsize
    for images, rows in _blocks(n, out[0], row_bytes, COLUMN_BYTES):
        count, height = images.stop - images.start, rows.stop - rows.start
        cols = xp.matmul(matrix, _block(xp, g, images, rows, groups))
        cols = xp.moveaxis(cols.reshape((channels, *kernel, count, height, *out[1:])), nd + 1, 0)
        part = total[images, :, rows.start * stride[0] :]
        for at, pick in positions(kernel, stride, dilation, (height, *out[1:])):
            part[pick] += cols[(slice(None), slice(None), *at)]
    return total


def _uncovered(array: Array, size: Ints, padding: Ints) -> Array:
    """The inner part, of spatial `size`, that lies behind `padding` entries of border."""
    return array[(..., *(slice(p, p + n) for p, n in zip(padding, size)))]


def _columns(xp: Any, view: Array, nd: int, aim: int) -> Iterator[tuple[slice, slice, Array]]:
    """Blocks of a window view as columns (C, kernel..., images, rows, rest...), in one buffer used again each time."""
    n, rows = view.shape[0], view.shape[2 + nd]
    row_bytes = view.size // (n * rows) * view.dtype.itemsize
    buffer = None
    order = (*range(1, nd + 2), 0, *range(nd + 2, 2 * nd + 2))
    for images, part in _blocks(n, rows, row_bytes, aim):
        moved = view[(images, *(slice(None),) * (nd + 1), part)].transpose(order)
        if buffer is None:
            buffer = xp.empty(moved.size, view.dtype)
        cols = buffer[: moved.size].reshape(moved.shape)
        cols[...] = moved
        yield images, part, cols


def _blocks(images: int, rows: int, row_bytes: int, aim: int) -> Iterator[tuple[slice, slice]]:
    """Cut a batch into blocks near `aim` bytes: several images each, or rows of one image when an image is huge."""
    if rows * row_bytes > COLUMN_LIMIT:
        step = max(1, aim // row_bytes)
        for n in range(images):
            yield from ((slice(n, n + 1), slice(r, min(r + step, rows))) for r in range(0, rows, step))
        return
    step = max(1, aim // max(1, rows * row_bytes))
    for n in range(0, images, step):
        yield slice(n, min(n + step, images)), slice(0, rows)


def _grouped(cols: Array, groups: int, nd: int) -> Array:
    """Columns as one matrix per group: (groups, C/groups * kernel, images * positions)."""
    return cols.reshape(groups, prod(cols.shape[: nd + 1]) // groups, -1)


def _block(xp: Any, g: Array, images: slice, rows: slice, groups: int) -> Array:
    """A block of g as one matrix per group: (groups, O/groups, images * positions)."""
    part = g[images, :, rows]
    return xp.moveaxis(part, 1, 0).reshape(groups, g.shape[1] // groups, -1)
