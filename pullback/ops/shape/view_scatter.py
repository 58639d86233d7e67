"""The inverse of a view: a copy of a tensor with the part that the view shows replaced (`select_scatter` and its kin).

In: a tensor, what to put, the view's arguments. Out: a copy of the tensor, in whose view stands the source. Sources
are cast to the tensor's dtype and must have the view's shape exactly.
"""

from __future__ import annotations

from ...core.dtype import by_numpy
from ...core.geometry import wrap_dim
from ...core.tensor import Tensor, stride_of
from ..family.base import composite, operator
from ..family.batching import batch_first, shift
from ..family.formats import dense_like_first
from ..system.calls import front
from ..system.dispatch import dispatch
from ..system.inplace import cast_array
from ..system.operator import LINEAR, Spec
from . import view_geometry as geometry
from .shape_lowering import lower_select_scatter, lower_slice_scatter
from .view_backward import _span, as_strided_read, diagonal_of, put_at, read_at
from .views import _check_as_strided, slice_


def _check_source(expected, src_shape) -> None:
    if tuple(expected) != tuple(src_shape):
        raise RuntimeError(
            "expected src to have a size equal to the slice of self. "
            f"src size = {list(src_shape)}, slice size = {list(expected)}"
        )


def _scatter(schema: str, place, part, **rules):
    """`place`: the view's geometry; `part(xp, array, *args)`: the view of an array, to write to."""

    def check(shape, src_shape, args) -> None:
        _check_source(place(shape, (0,) * len(shape), 0, *args)[0], src_shape)

    def kernel(xp, self, src, *args):
        check(self.shape, src.shape, args)
        out = self.copy()
        if src.size:
            part(xp, out, *args)[...] = cast_array(src, by_numpy[src.dtype], by_numpy[self.dtype])
        return out

    def meta(self, src, *args) -> Spec:
        check(self._array.shape, src._array.shape, args)
        return Spec(self._array.shape, self.dtype)

    return operator(schema, kernel=kernel, strides=dense_like_first, meta=meta, strict=True, jvp=LINEAR, **rules)


def _at(dim: int, index) -> tuple:
    return (slice(None),) * dim + (index, ...)


def _batch(op, dims_at: tuple[int, ...]):
    """Both tensors get the batch in front; the arguments at these places are dimensions."""

    def rule(args, dims, size):
        self, src = batch_first(args[0], dims[0], size), batch_first(args[1], dims[1], size)
        rest = [shift(v, self.ndim - 1) if i + 2 in dims_at else v for i, v in enumerate(args[2:])]
        return dispatch(op(), (self, src, *rest)), 0

    return rule


select_scatter = _scatter(
    "select_scatter(Tensor self, Tensor src, int dim, SymInt index) -> Tensor",
    geometry.select,
    lambda xp, a, dim, index: a[_at(wrap_dim(dim, a.ndim), index)],
    lower=lower_select_scatter,
    vjp={
        "self": lambda g, src_shape, dim, index: dispatch(select_scatter, (g, g.new_zeros(src_shape), dim, index)),
        "src": lambda g, dim, index: g.select(dim, index),
    },
    vmap=_batch(lambda: select_scatter, (2,)),
    cost="cheap",
)


def _slice_part(xp, array, dim, start, end, step):
    d = wrap_dim(dim, array.ndim)
    start, end = geometry.slice_bounds(start, end, array.shape[d])
    return array[_at(d, slice(start, end, step))]


slice_scatter = _scatter(
    "slice_scatter(Tensor self, Tensor src, int dim=0, SymInt? start=None, SymInt? end=None, SymInt step=1) -> Tensor",
    geometry.slice_,
    _slice_part,
    lower=lower_slice_scatter,
    vjp={
        "self": lambda g, src_shape, dim, start, end, step: dispatch(
            slice_scatter, (g, g.new_zeros(src_shape), dim, start, end, step)
        ),
        "src": lambda g, dim, start, end, step: dispatch(slice_, (g, dim, start, end, step)),
    },
    vmap=_batch(lambda: slice_scatter, (2,)),
    cost="cheap",
)

diagonal_scatter = _scatter(
    "diagonal_scatter(Tensor self, Tensor src, int offset=0, int dim1=0, int dim2=1) -> Tensor",
    geometry.diagonal,
    diagonal_of,
    vjp={
        "self": lambda g, src_shape, offset, dim1, dim2: dispatch(
            diagonal_scatter, (g, g.new_zeros(src_shape), offset, dim1, dim2)
        ),
        "src": lambda g, offset, dim1, dim2: g.diagonal(offset, dim1, dim2),
    },
    vmap=_batch(lambda: diagonal_scatter, (3, 4)),
)


# ---- as_strided: in terms of places in the storage, since a copy need not lie as its source does
def _write_kernel(xp, self, src, shape, stride, offset, size, strides, start):
    storage = xp.zeros(max(_span(shape, stride, offset), _span(size, strides, start)), self.dtype)
    put_at(xp, storage, shape, stride, offset, self)
    put_at(xp, storage, size, strides, start, cast_array(src, by_numpy[src.dtype], by_numpy[self.dtype]))
    return read_at(xp, storage, shape, stride, offset)


def _kept_by_pytorch(g, shape, stride, offset, size, strides, start):
    """What PyTorch gives `self`: the gradient of the part that was replaced, and zero elsewhere.

    The derivative is the other way round (zero where `src` stands). Programs are compared with PyTorch's numbers, so
    its rule stands here; the derivative is had by copying into `as_strided` of a clone.
    """
    part = as_strided_read(g, shape, stride, offset, size, strides, start)
    return as_strided_write(g.new_zeros(g.shape), part, shape, stride, offset, size, strides, start)


as_strided_write = operator(
    "_as_strided_write(Tensor self, Tensor src, SymInt[] shape, SymInt[] stride, SymInt offset, SymInt[] size, "
    "SymInt[] strides, SymInt start) -> Tensor",
    kernel=_write_kernel,
    meta=lambda self, *rest: Spec(self._array.shape, self.dtype),
    function=False,
    method=False,
    out=False,
    jvp=LINEAR,
    vjp={
        "self": _kept_by_pytorch,
        "src": lambda g, shape, stride, offset, size, strides, start: as_strided_read(
            g, shape, stride, offset, size, strides, start
        ),
    },
)


@composite(
    "as_strided_scatter(Tensor self, Tensor src, SymInt[] size, SymInt[] stride, SymInt? storage_offset=None) "
    "-> Tensor",
    strict=True,
    names_memory=True,
)
def as_strided_scatter(self: Tensor, src: Tensor, size, stride, storage_offset):
    self = self.resolve_conj().resolve_neg()  # memory must hold what the tensor means
    _check_as_strided(self, size, stride, storage_offset)
    size, stride, start = geometry.as_strided(self.shape, stride_of(self), self._offset, size, stride, storage_offset)
    _check_source(size, src.shape)
    return as_strided_write(self, src, tuple(self.shape), stride_of(self), self._offset, size, stride, start)


# ---- in place
@composite(
    "slice_inverse(Tensor(a) self, Tensor src, int dim=0, SymInt? start=None, SymInt? end=None, SymInt step=1) "
    "-> Tensor(a)",
    out=False,
)
def slice_inverse(self, src, dim, start, end, step):
    """What was sliced, from the slice: the source, on the same memory."""
    return src.view(src.shape)


@front("Tensor.fill_diagonal_")
def fill_diagonal_(input, fill_value, wrap: bool = False) -> Tensor:
    """Fill the main diagonal in place; in tall matrices, with `wrap`, it starts again after a row of its own."""
    if input.ndim < 2:
        raise RuntimeError("dimensions must larger than 1")
    if input.ndim > 2 and len(set(input.shape)) > 1:
        raise RuntimeError("all dimensions of input must be of equal length")
    stride = sum(stride_of(input))
    height, width = input.shape[0], input.shape[1]
    size = min(height, width)
    input.as_strided((size,), (stride,), input._offset).fill_(fill_value)
    if wrap and input.ndim == 2 and height > width + 1:
        step = stride_of(input)
        places = [(i * (width + 1) + width + 1 + k, k) for i in range(height // (width + 1)) for k in range(width)]
        for row, column in places:
            if row < height:
                input.as_strided((), (), input._offset + row * step[0] + column * step[1]).fill_(fill_value)
    return input
