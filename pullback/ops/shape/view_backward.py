"""Gradients of views that leave elements out or read some twice: operators that put them back in their places.

In: the gradient of the view, the shape of what was viewed, the view's arguments. Out: a gradient of that shape, zero
where the view did not look, sums where it looked more than once. Each is linear, and its own gradient is the view
again.
"""

from __future__ import annotations

import functools

import numpy as np

from ...core.geometry import contiguous_strides, may_overlap, wrap_dim
from ..family.base import operator
from ..family.batching import batch_first, shift
from ..system.operator import LINEAR, Spec
from . import view_geometry as geometry
from .shape_lowering import lower_diagonal_backward, lower_select_backward, lower_slice_backward

_END = 9223372036854775807  # "to the end", where a slice's end is left open


def _backward(schema: str, **rules):
    meta = rules.pop("meta", lambda grad, sizes, *rest: Spec(sizes, grad.dtype))
    return operator(schema, meta=meta, jvp=LINEAR, method=False, out=False, **rules)


def _at(dim: int, index) -> tuple:
    return (slice(None),) * dim + (index,)


# ---- slice, select, diagonal
def _slice_kernel(xp, grad, sizes, dim, start, end, step):
    out = xp.zeros(sizes, grad.dtype)
    dim = wrap_dim(dim, len(sizes))
    start, end = geometry.slice_bounds(start, end, sizes[dim])
    out[_at(dim, slice(start, end, step))] = grad
    return out


_slice_backward = _backward(
    "slice_backward(Tensor grad_output, SymInt[] input_sizes, int dim, SymInt start, SymInt end, SymInt step) "
    "-> Tensor",
    lower=lower_slice_backward,
    kernel=_slice_kernel,
    vjp={"grad_output": lambda g, dim, start, end, step: slice_(g, dim, start, end, step)},
    vmap=lambda args, dims, size: (
        _slice_backward(batch_first(args[0], dims[0]), (size, *args[1]), shift(args[2], len(args[1])), *args[3:]),
        0,
    ),
    cost="cheap",
)


def slice_backward(g, shape, dim: int, start, end, step):
    return _slice_backward(g, tuple(shape), dim, 0 if start is None else start, _END if end is None else end, step)


def _select_kernel(xp, grad, sizes, dim, index):
    out = xp.zeros(sizes, grad.dtype)
    out[_at(wrap_dim(dim, len(sizes)), index)] = grad
    return out


select_backward = _backward(
    "select_backward(Tensor grad_output, SymInt[] input_sizes, int dim, SymInt index) -> Tensor",
    lower=lower_select_backward,
    kernel=_select_kernel,
    vjp={"grad_output": lambda g, dim, index: g.select(dim, index)},
    vmap=lambda args, dims, size: (
        select_backward(batch_first(args[0], dims[0]), (size, *args[1]), shift(args[2], len(args[1])), args[3]),
        0,
    ),
    cost="cheap",
)


def diagonal_of(xp, array, offset: int, dim1: int, dim2: int):
    """A diagonal of an array as a writable view."""
    item = array.itemsize
    shape, stride, start = geometry.diagonal(array.shape, [s // item for s in array.strides], 0, offset, dim1, dim2)
    at = [slice(None)] * array.ndim
    if start:  # the first element of the diagonal, which NumPy finds by indexing
        at[wrap_dim(dim2 if offset > 0 else dim1, array.ndim)] = slice(abs(offset), None)
    return xp.lib.stride_tricks.as_strided(array[tuple(at)], shape, [s * item for s in stride])


def _diagonal_kernel(xp, grad, sizes, offset, dim1, dim2):
    out = xp.zeros(sizes, grad.dtype)
    if grad.size:
        diagonal_of(xp, out, offset, dim1, dim2)[...] = grad
    return out


diagonal_backward = _backward(
    "diagonal_backward(Tensor grad_output, SymInt[] input_sizes, int offset, int dim1, int dim2) -> Tensor",
    lower=lower_diagonal_backward,
    kernel=_diagonal_kernel,
    vjp={"grad_output": lambda g, offset, dim1, dim2: g.diagonal(offset, dim1, dim2)},
    vmap=lambda args, dims, size: (
        diagonal_backward(batch_first(args[0], dims[0]), (size, *args[1]), args[2], *shift(args[3:5], len(args[1]))), 0,
    ),
)  # fmt: skip


# ---- unfold: windows may share elements
def _unfold_kernel(xp, grad, sizes, dim, size, step):
    out = xp.zeros(sizes or (1,), grad.dtype)
    d = wrap_dim(dim, len(sizes))
    moved = xp.moveaxis(out, d, 0)
    windows = xp.moveaxis(grad if sizes else grad[None], (d, -1), (0, 1))
    count = windows.shape[0]
    if size <= count:
        for k in range(size):
            moved[k : k + (count - 1) * step + 1 : step] += windows[:, k]
    else:
        for i in range(count):
            moved[i * step : i * step + size] += windows[i]
    return out.reshape(sizes)


def _check_unfold_step(grad_in, sizes, dim, size, step) -> None:
    if step <= 0:
        raise ValueError(f"step is {step} but must be > 0")
    if size < 0:
        raise RuntimeError(f"size is {size} but must be >= 0")


unfold_backward = _backward(
    "unfold_backward(Tensor grad_in, SymInt[] input_sizes, int dim, int size, int step) -> Tensor",
    kernel=_unfold_kernel,
    check=_check_unfold_step,
    vjp={"grad_in": lambda g, dim, size, step: g.unfold(dim, size, step)},
    vmap=lambda args, dims, size: (
        (unfold_backward(batch_first(args[0], dims[0]), (size, *args[1]), shift(args[2], len(args[1])), *args[3:]), 0)
        if args[1]
        else None
    ),
)


# ---- as_strided: elements are named by their place in the storage
def _positions(xp, shape, stride, offset: int):
    """The place in the storage of every element of a geometry."""
    at = xp.asarray(offset)
    for d, (s, st) in enumerate(zip(shape, stride, strict=True)):
        at = at + xp.reshape(xp.arange(s) * st, (s,) + (1,) * (len(shape) - 1 - d))
    return xp.broadcast_to(at, shape)


def _span(shape, stride, offset: int) -> int:
    return 0 if 0 in shape else 1 + offset + sum((s - 1) * st for s, st in zip(shape, stride, strict=True))


@functools.lru_cache(256)
def _is_window(shape: tuple, stride: tuple) -> bool:
    return not may_overlap(shape, stride) and all(s >= 0 for s in stride)


def _window(xp, storage, shape, stride, offset: int):
    """A geometry on a storage, to be read or written as one array; None on devices and where elements share a place."""
    if xp is not np or not _is_window(tuple(shape), tuple(stride)):
        return None
    size = storage.itemsize
    return np.ndarray(shape, storage.dtype, storage, offset * size if 0 not in shape else 0, [s * size for s in stride])


def put_at(xp, storage, shape, stride, offset: int, values) -> None:
    window = _window(xp, storage, shape, stride, offset)
    if window is None:
        storage[_positions(xp, shape, stride, offset)] = values
    else:
        window[...] = values


def read_at(xp, storage, shape, stride, offset: int):
    window = _window(xp, storage, shape, stride, offset)
    return storage[_positions(xp, shape, stride, offset)] if window is None else window.copy()


def _read_kernel(xp, source, shape, stride, offset, size, strides, start):
    """The elements that `as_strided` reads, from a tensor that lies in its storage as (shape, stride, offset)."""
    storage = xp.zeros(max(_span(shape, stride, offset), _span(size, strides, start)), source.dtype)
    put_at(xp, storage, shape, stride, offset, source)
    return read_at(xp, storage, size, strides, start)


def _scatter_kernel(xp, grad, shape, stride, offset, size, strides, start):
    apart = not may_overlap(size, strides)
    if xp is np and apart and offset <= start and tuple(stride) == contiguous_strides(shape):
        out = np.zeros(shape, grad.dtype)
        if _span(size, strides, start - offset) <= out.size and 0 not in shape:  # nothing lies beside the tensor
            put_at(xp, out.reshape(-1), size, strides, start - offset, grad)
            return out
    storage = xp.zeros(max(_span(shape, stride, offset), _span(size, strides, start)), grad.dtype)
    if not apart:
        xp.add.at(storage, _positions(xp, size, strides, start), grad)
    else:
        put_at(xp, storage, size, strides, start, grad)
    if may_overlap(shape, stride):  # indices that name one element share its gradient
        at = _positions(xp, shape, stride, offset)
        readers = xp.zeros(storage.shape, storage.dtype)
        xp.add.at(readers, at, 1)
        return storage[at] / readers[at]
    return read_at(xp, storage, shape, stride, offset)


_GEOMETRIES = "SymInt[] shape, SymInt[] stride, SymInt offset, SymInt[] size, SymInt[] strides, SymInt start"
as_strided_read = _backward(
    f"_as_strided_read(Tensor source, {_GEOMETRIES}) -> Tensor",
    kernel=_read_kernel,
    meta=lambda source, shape, stride, offset, size, strides, start: Spec(size, source.dtype),
    function=False,
    vjp={
        "source": lambda g, shape, stride, offset, size, strides, start: as_strided_backward(
            g, shape, stride, offset, size, strides, start
        )
    },
)
as_strided_backward = _backward(
    f"_as_strided_backward(Tensor grad, {_GEOMETRIES}) -> Tensor",
    kernel=_scatter_kernel,
    function=False,
    vjp={
        "grad": lambda g, shape, stride, offset, size, strides, start: as_strided_read(
            g, shape, stride, offset, size, strides, start
        )
    },
)

from .views import slice_  # noqa: E402 - the views name these operators in their rules
