"""The inverses of views (`inverse=` in their declarations): the new value of what was viewed, from that of the view.

`inverse(whole, part, args, index)`: `whole` is the value before, `part` the new value of the view that
`op(whole, *args)` (its result `index`, for operators with several) shows. Written in operators, as the modes in force
see them.
"""

from __future__ import annotations

from ...core.device import contiguous_format
from ...core.geometry import contiguous_strides, view_strides, wrap_dim
from ...core.tensor import Tensor, stride_of
from ..system.dispatch import dispatch
from ..system.operator import find


def call(name: str, *args) -> Tensor:
    """Run an operator by its full name, as the modes in force see it."""
    op = find(name)
    return dispatch(op, op.convert(op.bind(args, {})))


def copy_into(whole: Tensor, part: Tensor) -> Tensor:
    """`part` in the layout of `whole`."""
    return call("copy.default", whole, part)


def reshaped(part: Tensor, shape: tuple) -> Tensor:
    """`part` in another shape: a view where the layout allows one."""
    if tuple(part._array.shape) == tuple(shape):
        return part
    if view_strides(part._array.shape, stride_of(part), shape) is not None:
        return call("view.default", part, shape)
    return call("view.default", call("clone.default", part, contiguous_format), shape)


def same(whole, part, args, index):
    return part


def reshaped_back(whole, part, args, index):
    return reshaped(part, tuple(whole._array.shape))


def transposed(whole, part, args, index):
    return call("transpose.int", part, args[0], args[1])


def transposed_matrix(whole, part, args, index):
    return call("t.default", part)


def permuted(whole, part, args, index):
    n = len(whole._array.shape)
    dims = [wrap_dim(d, n) for d in args[0]]
    return call("permute.default", part, [dims.index(d) for d in range(n)])


def squeezed(whole, part, args, index):
    return call("squeeze.dim", part, args[0])


def selected(whole, part, args, index):
    return call("select_scatter.default", whole, part, *args)


def sliced(whole, part, args, index):
    return call("slice_scatter.default", whole, part, *args)


def on_diagonal(whole, part, args, index):
    return call("diagonal_scatter.default", whole, part, *args)


def unbound(whole, part, args, index):
    return call("select_scatter.default", whole, part, args[0] if args else 0, index)


def split_evenly(whole, part, args, index):
    size, dim = args[0], args[1] if len(args) > 1 else 0
    start = size * index
    return call(
        "slice_scatter.default", whole, part, dim, start, start + part._array.shape[wrap_dim(dim, whole.ndim)], 1
    )


def split_by_sizes(whole, part, args, index):
    sizes, dim = args[0], args[1] if len(args) > 1 else 0
    start = sum(sizes[:index])
    return call("slice_scatter.default", whole, part, dim, start, start + sizes[index], 1)


def expanded(whole, part, args, index):
    """Reached only where nothing was repeated: sizes of one in front, or no element at all."""
    return reshaped(part, tuple(whole._array.shape)) if part._array.size == whole._array.size else whole


def conjugated(whole, part, args, index):
    return call("conj_physical.default", part)


def negated(whole, part, args, index):
    return call("neg.default", part)


def as_complex(whole, part, args, index):
    if tuple(stride_of(part)) != contiguous_strides(part._array.shape):  # dimensions of size 1 may have odd strides
        part = call("clone.default", part, contiguous_format)
    return call("view_as_complex.default", part)


def as_real(whole, part, args, index):
    return call("view_as_real.default", part)


def retyped(whole, part, args, index):
    return call("view.dtype", part, whole.dtype)
