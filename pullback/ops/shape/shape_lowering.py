"""Loops of joining tensors, of writing a part of one, and of putting elements in another order."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...core.geometry import wrap_dim, wrap_dims
from ..lowering import NotLowerable, of_complex
from . import view_geometry

if TYPE_CHECKING:
    from ..lowering.builder import Builder
    from ..lowering.loops import Value


# ---- joining
@of_complex
def lower_cat(b: Builder, tensors, dim):
    out = b.result()
    dim = wrap_dim(dim, len(out.shape))
    start = 0
    for v in tensors:
        if v.shape != (0,):  # which joins anything
            b.store(out.narrow(dim, start, v.shape[dim]), v)
            start += v.shape[dim]
    return out


@of_complex
def lower_stack(b: Builder, tensors, dim):
    out = b.result()
    dim = wrap_dim(dim, len(out.shape))
    for k, v in enumerate(tensors):
        b.store(out.narrow(dim, k, 1), v.unsqueeze(dim))
    return out


# ---- parts
def filled_within(b: Builder, out: Value, window: Value, source: Value, base) -> Value:
    """A value that is `base` (a value, or a number) but for a window, which is `source`."""
    b.fill(out, b.number(base, out.dtype) if isinstance(base, (int, float)) else b.raw(base, len(out.shape)))
    b.store(window, source)
    return out


def _slice(out: Value, dim: int, start, end, step) -> Value:
    """The window `start:end:step` of a value."""
    start, end, step = slice(start, end, step).indices(out.shape[dim])
    length = max(0, -(-(end - start) // step))
    shape = [length if d == dim else m for d, m in enumerate(out.shape)]
    strides = [s * step if d == dim else s for d, s in enumerate(out.strides)]
    return out.window(shape, strides, out.offset + start * out.strides[dim])


def _select(out: Value, dim: int, at: int) -> Value:
    """One entry along a dimension, which is kept."""
    return out.narrow(dim, at + (out.shape[dim] if at < 0 else 0), 1)


@of_complex
def lower_select_backward(b: Builder, g: Value, sizes, dim, at):
    out = b.result()
    dim = wrap_dim(dim, len(out.shape))
    return filled_within(b, out, _select(out, dim, at), g.unsqueeze(dim), 0)


@of_complex
def lower_select_scatter(b: Builder, x: Value, source: Value, dim, at):
    out = b.result()
    dim = wrap_dim(dim, len(out.shape))
    return filled_within(b, out, _select(out, dim, at), source.unsqueeze(dim), x)


@of_complex
def lower_slice_backward(b: Builder, g: Value, sizes, dim, start, end, step):
    out = b.result()
    return filled_within(b, out, _slice(out, wrap_dim(dim, len(out.shape)), start, end, step), g, 0)


@of_complex
def lower_slice_scatter(b: Builder, x: Value, source: Value, dim, start, end, step):
    out = b.result()
    return filled_within(b, out, _slice(out, wrap_dim(dim, len(out.shape)), start, end, step), source, x)


@of_complex
def lower_diagonal_backward(b: Builder, g: Value, sizes, offset, dim1, dim2):
    out = b.result()
    window = out.window(*view_geometry.diagonal(out.shape, out.strides, out.offset, offset, dim1, dim2)[:3])
    return filled_within(b, out, window, g, 0)


@of_complex
def lower_triangle(b: Builder, x: Value, diagonal):
    rank = len(x.shape)
    above = b.index(rank - 1) - b.index(rank - 2)
    kept = above <= diagonal if b.op.name == "tril" else above >= diagonal
    return b.fill(b.result(), b.o.where(kept, b.raw(x), b.number(0, x.dtype)))


# ---- another order
@of_complex
def lower_flip(b: Builder, x: Value, dims):
    return b.store(b.result(), _flipped(x, set(wrap_dims(tuple(dims), len(x.shape))) if dims and x.shape else set()))


def _flipped(x: Value, dims: set[int]) -> Value:
    """The window that reads some dimensions backwards."""
    offset = x.offset + sum((x.shape[d] - 1) * x.strides[d] for d in dims)
    return x.window(x.shape, [-s if d in dims else s for d, s in enumerate(x.strides)], offset)


def swapped(sizes, a: int, b: int) -> tuple:
    """Sizes or strides, two of them in each other's place."""
    sizes = list(sizes)
    sizes[a], sizes[b] = sizes[b], sizes[a]
    return tuple(sizes)


@of_complex
def lower_rot90(b: Builder, x: Value, k, dims):
    first, second = (wrap_dim(d, len(x.shape)) for d in dims)
    turned = _flipped(x, [set(), {second}, {first, second}, {first}][k % 4])
    if k % 2:
        turned = turned.window(
            swapped(turned.shape, first, second), swapped(turned.strides, first, second), turned.offset
        )
    return b.store(b.result(), turned)


@of_complex
def lower_repeat(b: Builder, x: Value, repeats):
    out = b.result()
    lead = len(repeats) - len(x.shape)
    shape: list[int] = []
    source: list[int] = []
    target: list[int] = []
    for d, n in enumerate(repeats):
        size, stride = (x.shape[d - lead], x.strides[d - lead]) if d >= lead else (1, 0)
        shape += [n, size]
        source += [0, stride]
        target += [out.strides[d] * size, out.strides[d]]
    b.store(out.window(shape, target), x.window(shape, source))
    return out


@of_complex
def lower_roll(b: Builder, x: Value, shifts, dims):
    out = b.result()
    if len(shifts) != 1 or len(dims) != 1 or not x.numel:
        return NotLowerable("a roll of several dimensions, or of nothing")
    dim = wrap_dim(dims[0], len(x.shape))
    n = x.shape[dim]
    shift = shifts[0] % n
    b.store(out.narrow(dim, shift, n - shift), x.narrow(dim, 0, n - shift))
    if shift:
        b.store(out.narrow(dim, 0, shift), x.narrow(dim, n - shift, shift))
    return out
