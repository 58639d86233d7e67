"""Views: new shapes on the same memory.

In: a tensor and the view's arguments. Out: a tensor that shares its storage, version and history. What shape and
strides come out is said in `view_geometry`; here stand the schemas, the gradients and the batching of each view.
Gradients of views that leave elements out (`slice`, `select`, ...) are operators of their own (`view_backward`), so
that they differentiate again.
"""

from __future__ import annotations

import numpy as np

from ...core.geometry import wrap_dim
from ...core.modes import ambient
from ...core.objects import make_view
from ...core.small import parts_of
from ...core.storage import check_bounds, storage_of
from ...core.tensor import META
from ..eager.functions import bypassing
from ..eager.straight import FunctionCase
from ..eager.views import SIZES, ViewCase, is_plain_tensor, may_have_history, plain_view
from ..family.batching import (
    batch_as_strided,
    batch_expand,
    batch_permute,
    batch_sizes,
    batch_squeeze,
    batch_transposed,
)  # fmt: skip
from ..family.view import view
from ..system.operator import exports
from . import view_geometry as geometry
from . import view_inverses

_ALL = slice(None)

alias = view(
    "alias(Tensor(a) self) -> Tensor(a)",
    geometry=geometry.same,
    function=False,
    method=False,
    vjp=lambda g: g,
    vmap=lambda args, dims, size: (alias(args[0]), dims[0]),
    inverse=view_inverses.same,
)

view_ = view(
    "view(Tensor(a) self, SymInt[] size) -> Tensor(a)",
    geometry=geometry.view,
    function=False,
    method=False,
    vjp=lambda g, self_shape: g.reshape(self_shape),
    vmap=batch_sizes("view"),
    inverse=view_inverses.reshaped_back,
)

reshape_alias = view(
    "_reshape_alias(Tensor(a) self, SymInt[] size, SymInt[] stride) -> Tensor(a)",
    geometry=geometry.restride,
    method=False,
    vjp=lambda g, self_shape: g.reshape(self_shape),
    inverse=view_inverses.reshaped_back,
)


_OLD_TYPES = ("Byte", "Char", "Short", "Int", "Long", "Half", "Float", "Double")


def _type_name(t) -> str:
    """A tensor's type as PyTorch's older messages spell it."""
    name = t.dtype.scalar_name
    return f"torch.{name}Tensor" if name in _OLD_TYPES else f"CPU{name}Type"


def _check_expand(self, size, implicit=False) -> None:
    if len(size) < self._array.ndim:
        raise RuntimeError(
            f"expand({_type_name(self)}{{{list(self._array.shape)}}}, size={list(size)}): the number of sizes provided "
            f"({len(size)}) must be greater or equal to the number of dimensions in the tensor ({self._array.ndim})"
        )


@bypassing("expand.default")
def _quick_expand(input, size, implicit):
    """A row-major plain tensor repeated along new dimensions and dimensions of size 1."""
    if not is_plain_tensor(input) or size.__class__ not in SIZES or implicit:
        return None
    a = input._array
    shape, strides = a.shape, a.strides
    lead = len(size) - len(shape)
    if lead < 0 or not a.flags.c_contiguous or not a.size or a.dtype.kind == "V":
        return None
    steps = [0] * lead + list(strides)
    for i, s in enumerate(size):
        if s.__class__ is not int or s < 0 or i < lead and s == 1:
            return None
        if i >= lead and s != shape[i - lead]:
            if shape[i - lead] != 1:
                return None
            steps[i] = 0
    return plain_view(input, np.ndarray(size, a.dtype, a, 0, steps), input._offset, expand, (input, size, False))


expand = view(
    "expand(Tensor(a) self, SymInt[] size, *, bool implicit=False) -> Tensor(a)",
    geometry=geometry.expand,
    check=_check_expand,
    function=False,
    variadic="size",
    plain=FunctionCase(_quick_expand),
    vjp=lambda g, self_shape: g.sum_to_size(self_shape),
    vmap=batch_expand,
    inverse=view_inverses.expanded,
)

transpose = view(
    "transpose.int(Tensor(a) self, int dim0, int dim1) -> Tensor(a)",
    geometry=geometry.transpose,
    dims=("dim0", "dim1"),
    scalar_same=True,
    plain=ViewCase("a.size", "a.swapaxes(dim0, dim1)"),
    vjp=lambda g, dim0, dim1: g.transpose(dim0, dim1),
    opaque="all",
    inverse=view_inverses.transposed,
)

t = view(
    "t(Tensor(a) self) -> Tensor(a)",
    geometry=geometry.t,
    plain=ViewCase("a.size and a.ndim < 3", "a.T"),
    vjp=lambda g: g.t(),
    vmap=batch_transposed,
    opaque="all",
    inverse=view_inverses.transposed_matrix,
)


def _inverse(dims: tuple) -> tuple:
    order = [0] * len(dims)
    for i, d in enumerate(dims):
        order[wrap_dim(d, len(dims))] = i
    return tuple(order)


permute = view(
    "permute(Tensor(a) self, int[] dims) -> Tensor(a)",
    geometry=geometry.permute,
    variadic="dims",
    plain=ViewCase("dims.__class__ in SIZES and len(dims) == a.ndim and a.size", "a.transpose(dims)"),
    vjp=lambda g, dims: g.permute(_inverse(dims)),
    vmap=batch_permute,
    inverse=view_inverses.permuted,
)

squeeze_all = view(
    "squeeze(Tensor(a) self) -> Tensor(a)",
    geometry=geometry.squeeze,
    function=False,
    method=False,
    vjp=lambda g, self_shape: g.reshape(self_shape),
    vmap=batch_squeeze,
    inverse=view_inverses.reshaped_back,
)
squeeze_dim = view(
    "squeeze.dim(Tensor(a) self, int dim) -> Tensor(a)",
    geometry=geometry.squeeze_dim,
    dims=("dim",),
    scalar_same=True,
    number=1,
    function=False,
    method=False,
    vjp=lambda g, self_shape: g.reshape(self_shape),
    inverse=view_inverses.reshaped_back,
)
squeeze_dims = view(
    "squeeze.dims(Tensor(a) self, int[] dim) -> Tensor(a)",
    geometry=geometry.squeeze_dims,
    dims=("dim",),
    scalar_same=True,
    number=2,
    function=False,
    method=False,
    vjp=lambda g, self_shape: g.reshape(self_shape),
    inverse=view_inverses.reshaped_back,
)

unsqueeze = view(
    "unsqueeze(Tensor(a) self, int dim) -> Tensor(a)",
    geometry=geometry.unsqueeze,
    dims=("dim",),
    added=1,
    plain=ViewCase("dim.__class__ is int", "new_axis(a, dim)"),
    vjp=lambda g, dim: g.squeeze(dim),
    inverse=view_inverses.squeezed,
)


@bypassing("select.int")
def _quick_select(input, dim, index):
    if not is_plain_tensor(input) or dim.__class__ is not int or index.__class__ is not int:
        return None
    a = input._array
    shape = a.shape
    d = dim if dim >= 0 else dim + len(shape)
    if not 0 <= d < len(shape) or not -shape[d] <= index < shape[d] or not a.size:
        return None
    at = index if index >= 0 else index + shape[d]
    offset = input._offset + at * (a.strides[d] // a.itemsize)
    return plain_view(input, a[(*(_ALL,) * d, at, ...)], offset, select, (input, dim, index))


select = view(
    "select.int(Tensor(a) self, int dim, SymInt index) -> Tensor(a)",
    geometry=geometry.select,
    plain=FunctionCase(_quick_select),
    dims=("dim",),
    vjp=lambda g, self_shape, dim, index: select_backward(g, self_shape, dim, index),
    inverse=view_inverses.selected,
)

slice_ = view(
    "slice.Tensor(Tensor(a) self, int dim=0, SymInt? start=None, SymInt? end=None, SymInt step=1) -> Tensor(a)",
    geometry=geometry.slice_,
    dims=("dim",),
    function=False,
    method=False,
    vjp=lambda g, self_shape, dim, start, end, step: slice_backward(g, self_shape, dim, start, end, step),
    inverse=view_inverses.sliced,
)

diagonal = view(
    "diagonal(Tensor(a) self, int offset=0, int dim1=0, int dim2=1) -> Tensor(a)",
    geometry=geometry.diagonal,
    dims=("dim1", "dim2"),
    vjp=lambda g, self_shape, offset, dim1, dim2: diagonal_backward(g, self_shape, offset, dim1, dim2),
    inverse=view_inverses.on_diagonal,
)

unfold = view(
    "unfold(Tensor(a) self, int dimension, int size, int step) -> Tensor(a)",
    geometry=geometry.unfold,
    dims=("dimension",),
    function=False,
    vjp=lambda g, self_shape, dimension, size, step: unfold_backward(g, self_shape, dimension, size, step),
)


# ---- several views at once
basic_part, _pieces = parts_of(select, slice_)


@bypassing("slice.Tensor")
def quick_pieces(input, dim: int, places: list):
    """The slices between places along a dimension, or None where it takes more than views of a plain tensor without history."""
    if not is_plain_tensor(input) or ambient.mode and input._autograd is not None and may_have_history(input):
        return None
    return _pieces(input, dim, places)


def plain_views(input, arrays: list, offsets: list, op, args: tuple) -> tuple:
    """Several views of a plain tensor, already made as arrays: one node for all of them."""
    mode = ambient.mode
    pairs = enumerate(zip(arrays, offsets, strict=True))
    result = tuple([make_view(input, array, offset, op, (i, args), mode, True) for i, (array, offset) in pairs])
    if mode and input._autograd is not None and may_have_history(input):
        op.record(result, *args)
    return result


@bypassing("unbind.int")
def _quick_unbind(input, dim):
    if dim.__class__ is not int or not is_plain_tensor(input):
        return None
    a = input._array
    shape = a.shape
    d = dim if dim >= 0 else dim + len(shape)
    if not 0 <= d < len(shape) or not a.size:
        return None
    step, start = a.strides[d] // a.itemsize, input._offset
    lead = (_ALL,) * d
    arrays = [a[(*lead, i, ...)] for i in range(shape[d])]
    return plain_views(input, arrays, [start + i * step for i in range(shape[d])], unbind, (input, dim))


@bypassing("split.Tensor")
def quick_split(input, split_size, dim):
    """Pieces of one size, or None where it takes more than slices of a plain tensor."""
    if dim.__class__ is not int or split_size.__class__ is not int or split_size <= 0 or not is_plain_tensor(input):
        return None
    a = input._array
    shape = a.shape
    d = dim if dim >= 0 else dim + len(shape)
    if not 0 <= d < len(shape) or not a.size:
        return None
    step, start = a.strides[d] // a.itemsize, input._offset
    lead = (_ALL,) * d
    places = range(0, shape[d], split_size)
    arrays = [a[(*lead, slice(i, i + split_size))] for i in places]
    return plain_views(input, arrays, [start + i * step for i in places], split_even, (input, split_size, dim))


def _filled(gs, shapes) -> list:
    """Gradients of all pieces, zeros for those that have none."""
    some = next(g for g in gs if g is not None)
    return [some.new_zeros(s) if g is None else g for g, s in zip(gs, shapes, strict=True)]


def _piece_shapes(shape, dim: int, sizes) -> list:
    return [(*shape[:dim], s, *shape[dim + 1 :]) for s in sizes]


def join_pieces(gs, shape, dim: int, sizes):
    """The gradient of a tensor that was split, from those of its pieces."""
    if all(g is None for g in gs):
        return None
    dim = wrap_dim(dim, len(shape))
    return exports["torch"]["cat"](_filled(gs, _piece_shapes(shape, dim, sizes)), dim)


def _join_even(gs, self_shape, split_size, dim):
    return join_pieces(gs, self_shape, dim, geometry.even_sizes(self_shape[wrap_dim(dim, len(self_shape))], split_size))


def _join_bound(gs, self_shape, dim):
    if all(g is None for g in gs):
        return None
    dim = wrap_dim(dim, len(self_shape))
    return exports["torch"]["stack"](_filled(gs, [(*self_shape[:dim], *self_shape[dim + 1 :])] * len(gs)), dim)


split_even = view(
    "split.Tensor(Tensor(a -> *) self, SymInt split_size, int dim=0) -> Tensor(a)[]",
    geometry=geometry.split,
    dims=("dim",),
    function=False,
    method=False,
    vjp=_join_even,
    inverse=view_inverses.split_evenly,
)
split_with_sizes = view(
    "split_with_sizes(Tensor(a -> *) self, SymInt[] split_sizes, int dim=0) -> Tensor(a)[]",
    geometry=geometry.split_with_sizes,
    dims=("dim",),
    vjp=lambda gs, self_shape, split_sizes, dim: join_pieces(gs, self_shape, dim, split_sizes),
    inverse=view_inverses.split_by_sizes,
)
unbind = view(
    "unbind.int(Tensor(a -> *) self, int dim=0) -> Tensor(a)[]",
    geometry=geometry.unbind,
    plain=FunctionCase(_quick_unbind),
    dims=("dim",),
    vjp=_join_bound,
    inverse=view_inverses.unbound,
)


# ---- any geometry on the storage
def _check_as_strided(self, size, stride, storage_offset=None) -> None:
    if len(size) != len(stride) or self._keys & META or any(s < 0 for s in size):
        return  # the geometry says what is wrong
    check_bounds(
        storage_of(self), size, stride, self._offset if storage_offset is None else storage_offset, self.dtype.itemsize
    )


as_strided = view(
    "as_strided(Tensor(a) self, SymInt[] size, SymInt[] stride, SymInt? storage_offset=None) -> Tensor(a)",
    geometry=geometry.as_strided,
    check=_check_as_strided,
    vjp=lambda g, self_info, size, stride, storage_offset: as_strided_backward(
        g,
        self_info.shape,
        self_info.stride,
        self_info.offset,
        size,
        stride,
        self_info.offset if storage_offset is None else storage_offset,
    ),
    jvp={
        "self": lambda t, self_info, size, stride, storage_offset: as_strided_read(
            t,
            self_info.shape,
            self_info.stride,
            self_info.offset,
            size,
            stride,
            self_info.offset if storage_offset is None else storage_offset,
        )
    },
    vmap=batch_as_strided,
    names_memory=True,
)

from .view_backward import (  # noqa: E402 - those operators are written with the views above
    as_strided_backward,
    as_strided_read,
    diagonal_backward,
    select_backward,
    slice_backward,
    unfold_backward,
)  # fmt: skip
