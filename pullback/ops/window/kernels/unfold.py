"""Windows as columns (im2col) and back (col2im), over 1 to 3 spatial axes.

Comes in: x (N, C, spatial...) or columns (N, C * prod(kernel), positions). Goes out: the other of the two. Always
holds: `fold` is the transpose of `unfold`, and neither computes anything but sums, so that every dtype works.
"""

from __future__ import annotations

from math import prod
from typing import Any

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


def unfold(xp: Any, x: Array, kernel: Ints, dilation: Ints, padding: Ints, stride: Ints) -> Array:
    """Columns (N, C * prod(kernel), positions), channels outermost, positions in row-major order."""
    out = tuple(map(conv_size, x.shape[2:], kernel, stride, padding, dilation))
    view = windows(xp, bordered(xp, x, padding, padding), kernel, stride, dilation, out)
    columns = xp.empty((x.shape[0], x.shape[1] * prod(kernel), prod(out)), x.dtype)
    columns.reshape(view.shape)[...] = view
    return columns


def fold(xp: Any, columns: Array, size: Ints, kernel: Ints, dilation: Ints, padding: Ints, stride: Ints) -> Array:
    """(N, C, size...) where every column entry is added at the place it was copied from."""
    dtype, n, channels = columns.dtype, columns.shape[0], columns.shape[1] // prod(kernel)
    out = tuple(map(conv_size, size, kernel, stride, padding, dilation))
    parts = widen(columns).reshape((n, channels, *kernel, *out))
    total = xp.zeros((n, channels, *(m + 2 * p for m, p in zip(size, padding))), parts.dtype)
    for at, pick in positions(kernel, stride, dilation, out):
        total[pick] += parts[(slice(None), slice(None), *at)]
    inner = total[(..., *(slice(p, p + m) for p, m in zip(padding, size)))]
    return narrow_to(xp.ascontiguousarray(inner), dtype)
