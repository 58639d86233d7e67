"""How the strides of results follow from the arguments: the rules that operators name in `strides=`.

In: the shape of a result, then the operator's arguments. Out: strides in elements, or None for row-major. Kernel and shape
rule ask the same rule, so that tensors with and without data agree. `place_results` copies what a kernel computed into
memory of those strides; `place_specs` puts them into what a shape rule says.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ...core.arrays import library
from ...core.geometry import (
    channels_last_strides,
    contiguous_strides,
    elementwise_strides,
    is_channels_last,
    is_dense,
    orderly,
    strides_for_order,
    surely_contiguous,
)
from ...core.storage import new_array
from ...core.tensor import Tensor, stride_of, wrap
from ..system.operator import Operator
from ..system.return_types import pack_results


def prefers_channels_last(t: Tensor) -> bool:
    """Whether memory lies channels-last, gaps or none: what operators on images then give is laid out so as well."""
    shape = t._array.shape
    if len(shape) not in (4, 5):
        return False
    stride = stride_of(t)
    if stride[0].__class__ is not int and surely_contiguous(shape, stride):
        return False  # without asking symbolic sizes anything
    return is_channels_last(shape, stride)


def like(position: int, *ranks: int) -> Callable:
    """Channels-last where the argument at a position is, for results with as many dimensions (of those ranks only)."""

    def strides(shape: tuple, *args) -> tuple | None:
        t = args[position]
        if len(shape) != t._array.ndim or ranks and len(shape) not in ranks:
            return None
        return channels_last_strides(shape) if prefers_channels_last(t) else None

    strides.images = position, ranks[0] if len(ranks) == 1 else 0  # type: ignore[attr-defined]
    return strides


like_first = like(0)


def dense_strides(t: Tensor) -> tuple:
    """Strides of a new tensor like `t`: the same order of dimensions, without gaps."""
    array = t._array
    if array.__class__ is np.ndarray and array.flags.c_contiguous:
        return stride_of(t)
    return ordered_strides(array.shape, stride_of(t))


def ordered_strides(shape: tuple, stride: tuple) -> tuple:
    """Strides without gaps, in the order of dimensions of a view of that shape."""
    if is_dense(shape, stride):
        return stride
    if all(n.__class__ is int for n in (*shape, *stride)):
        return elementwise_strides(shape, [(shape, stride)])
    if not orderly(stride):
        return contiguous_strides(shape)
    order = sorted(range(len(shape)), key=lambda d: (-stride[d], d))  # comparing equal strides would fix symbols
    return strides_for_order(shape, order) if all(stride) else contiguous_strides(shape)


def dense_like_first(shape: tuple, first: Tensor, *_) -> tuple | None:
    """The order of dimensions of the first argument, which has the result's shape."""
    return dense_strides(first) if shape == first._array.shape else None


def elementwise(shape: tuple, *args) -> tuple | None:
    """The order of dimensions of the tensors among the arguments, as operators on elements keep it."""
    return elementwise_strides(
        shape, [(t._array.shape, stride_of(t)) for t in args if isinstance(t, Tensor) and t._array.ndim]
    )


def by_column(shape: tuple, *args) -> tuple | None:
    """Matrices one after the other, each column by column, as LAPACK has them; stacks of vectors and numbers as they are."""
    rank = max(a._array.ndim for a in args if isinstance(a, Tensor))
    if len(shape) < 2 or len(shape) < rank:
        return None
    *stack, rows, columns = shape
    stride = contiguous_strides((*stack, columns, rows))
    return (*stride[:-2], stride[-1], stride[-2])


# ---- what families do with a rule
def place_results(op: Operator, out, args: tuple):
    """Results of a kernel, in the strides of the operator's rule."""
    if isinstance(out, Tensor):
        return _placed(op, out, args)
    placed = [t if t is None else _placed(op, t, args) for t in out]
    return placed if isinstance(out, list) else pack_results(op, placed)


def _placed(op: Operator, t: Tensor, args: tuple) -> Tensor:
    stride = op.declared.strides(t._array.shape, *args) or contiguous_strides(t._array.shape)
    if stride == stride_of(t):
        return t
    array = new_array(t._array.shape, t.dtype, stride, library(t.device))
    array[...] = t._array
    return wrap(array, t.dtype, t.device)


def place_specs(op: Operator, specs, args: tuple):
    """What a shape rule says, with the strides of the operator's rule where it says none."""
    for spec in specs if isinstance(specs, (tuple, list)) else (specs,):
        if spec is not None and spec.stride is None:
            spec.stride = op.declared.strides(spec.shape, *args)
    return specs
