"""Tensors joined: cat, stack and their kin; tensors brought to one shape or laid out as a grid.

In: a sequence of tensors. Out: one tensor that holds all their elements, in their common dtype (`cat`, `stack`, ...),
or as many tensors as came in (`broadcast_tensors`, `meshgrid`, `atleast_*`). Everything but `cat` and `stack` is
composed of those two and of views.
"""

from __future__ import annotations

import numpy as np

from ...core import small
from ...core.calls import history
from ...core.dtype import by_numpy
from ...core.errors import warn_once
from ...core.geometry import broadcast_shapes as common_shape
from ...core.geometry import channels_last_strides, is_channels_last, is_contiguous, wrap_dim
from ...core.modes import ambient
from ...core.objects import make_tensor, plain_arrays
from ...core.pixels import new_pixels, pixels_of
from ...core.promotion import can_cast, promote_types
from ...core.size import Size
from ...core.symbolic import likely
from ...core.tensor import Tensor, stride_of, wrap
from ..eager.functions import ANY, bypassing
from ..family.base import Family, composite, operator
from ..family.batching import batch_first
from ..family.formats import prefers_channels_last
from ..make.lifting import lifted
from ..system.calls import export_operator, front
from ..system.dispatch import dispatch
from ..system.general import general
from ..system.operator import Operator, Spec, registry
from .shape_lowering import lower_cat, lower_stack
from .shapes import raw
from .views import slice_


class Joining(Family):
    """Operators that join a list of tensors."""

    def wrap_outputs(self, op: Operator, result, device):
        """Row-major, or channels-last where every input is."""
        if result.ndim in (4, 5) and not result.flags.c_contiguous:
            result = result if result.base is None else result.copy(order="K")
            if is_channels_last(result.shape, [s // result.itemsize for s in result.strides]):
                return wrap(result, by_numpy[result.dtype], device)
        return super().wrap_outputs(op, result, device)


JOINING = Joining()


def _common(dtypes) -> object:
    first, *rest = dtypes
    for d in rest:
        first = promote_types(first, d)
    return first


def _check_out(tensors, out) -> None:
    """`out=` must be able to hold the tensors' common dtype."""
    given = [t for t in tensors if isinstance(t, Tensor)]
    if given and isinstance(out, Tensor):
        _check_holds(_common([t.dtype for t in given]), out)


def _check_holds(common, out: Tensor) -> None:
    if not can_cast(common, out.dtype):
        raise TypeError(f"torch.cat(): input types can't be cast to the desired output type {out.dtype.scalar_name}")


def joined_out(result: Tensor, out: Tensor) -> None:
    """`check_out` of what is a `cat` of views."""
    _check_holds(result.dtype, out)


def _cast_all(arrays) -> list:
    common = _common([by_numpy[a.dtype] for a in arrays]).numpy
    return [a if a.dtype == common else a.astype(common) for a in arrays]


def _skipped(shape) -> bool:
    """An empty vector joins with anything, as it always did."""
    if len(shape) != 1:
        return False
    size = shape[0]
    return size == 0 if size.__class__ is int else likely(size == 0, False)


# ---- cat
def _check_cat(shapes, dim: int) -> tuple:
    """(dimension, shape of the result), or PyTorch's error."""
    if not shapes:
        raise ValueError("torch.cat(): expected a non-empty list of Tensors")
    for i, shape in enumerate(shapes):
        if not len(shape):
            raise RuntimeError(f"zero-dimensional tensor (at position {i}) cannot be concatenated")
    counted = [(i, s) for i, s in enumerate(shapes) if not _skipped(s)]
    if not counted:  # empty vectors alone: any dimension will do
        return 0, (0,)
    first = counted[0][1]
    d = wrap_dim(dim, len(first))
    for i, shape in counted:
        if len(shape) != len(first):
            raise RuntimeError(f"Tensors must have same number of dimensions: got {len(first)} and {len(shape)}")
        for k, (a, b) in enumerate(zip(first, shape, strict=True)):
            if k != d and a != b:
                raise RuntimeError(
                    f"Sizes of tensors must match except in dimension {d}. Expected size {a} but got size {b} "
                    "for tensor "
                    f"number {i} in the list."
                )
    return d, (*first[:d], sum(s[d] for _, s in counted), *first[d + 1 :])


def _cat_kernel(xp, tensors, dim):
    d, shape = _check_cat([a.shape for a in tensors], dim)
    cast = _cast_all(tensors)
    counted = [a for a in cast if not _skipped(a.shape)]
    if not counted:
        return xp.empty(shape, cast[0].dtype)
    if all(_is_channels_last(a) for a in counted):
        return _joined_channels_last(xp, counted, d)
    return xp.ascontiguousarray(xp.concatenate(counted, axis=d))


def _joined_channels_last(xp, arrays, d: int):
    """Joined with channels innermost: dimensions of size 1 get the strides of that order too."""
    n = arrays[0].ndim
    order = (0, *range(2, n), 1)
    if xp is np:
        shape = list(arrays[0].shape)
        shape[d] = sum(a.shape[d] for a in arrays)
        joined = new_pixels(shape, arrays[0].dtype)
        _copy_pixels(pixels_of(joined), [pixels_of(a) for a in arrays], order.index(d))
        return joined
    result = xp.ascontiguousarray(xp.concatenate([a.transpose(order) for a in arrays], axis=order.index(d)))
    return result.transpose(0, n - 1, *range(1, n - 1))


def _copy_pixels(to, pixels: list, axis: int) -> None:
    """All joined along an axis. Channels of a pixel are moved together, as one element each."""
    at = 0
    for a in pixels:
        n = a.shape[axis]
        part = to[(slice(None),) * axis + (slice(at, at + n),)]
        if not a.size or not a.shape[-1] * a.itemsize == a.strides[-2]:
            part[...] = a
        else:
            whole = np.dtype((np.void, n * a.itemsize if axis == a.ndim - 1 else a.shape[-1] * a.itemsize))
            part.view(whole)[...] = a.view(whole)
        at += n


def _is_channels_last(a) -> bool:
    return (
        a.ndim in (4, 5)
        and not a.flags.c_contiguous
        and is_channels_last(a.shape, [s // a.itemsize for s in a.strides])
    )


def _cat_meta(tensors, dim) -> Spec:
    _, shape = _check_cat([t._array.shape for t in tensors], dim)
    pairs = [(t._array.shape, stride_of(t)) for t in tensors if not _skipped(t._array.shape)]
    last = pairs and all(is_channels_last(*p) and not is_contiguous(*p) for p in pairs)
    return Spec(shape, _common([t.dtype for t in tensors]), channels_last_strides(shape) if last else None)


def _cat_otherwise(tensors, dim=0, *, out=None, axis=None):
    if out is not None:
        _check_out(tensors, out)
    return general(cat_public, cat, (tensors, dim if axis is None else axis), out)


@raw("torch.cat", "torch.concat", "torch.concatenate")
@bypassing("cat.default", otherwise=_cat_otherwise)
def cat_public(tensors, dim=0, *, out=None, axis=None):
    """Tensors joined along a dimension they have."""
    dim = dim if axis is None else axis
    if out is None and (mode := ambient.mode) < 2 and (plain := plain_arrays(tensors)) is not None:
        arrays, dtype, live = plain
        rows = not arrays or arrays[0].flags.c_contiguous
        result = None if rows else small.joined_pixels(arrays, dim)
        if result is not None or not rows and _is_channels_last(arrays[0]):  # as all of them may
            result = _cat_pixels(arrays, dim) if result is None else result
            if result is None:
                return _cat_otherwise(tensors, dim, out=out)
            t = make_tensor(result, dtype)
            return cat.record(t, tuple(tensors), dim) if mode and live else t
        if not rows and _native_cat is not None and (t := _native_cat((tensors, dim))) is not None:
            return cat.record(t, tuple(tensors), dim) if mode and live else t
        try:
            result = _concatenate(arrays, dim)
        except (ValueError, TypeError, MemoryError):
            result = None  # the general path finds the words, and joins with empty vectors
        if result is not None and result.flags.c_contiguous:
            t = make_tensor(result, dtype)
            return cat.record(t, tuple(tensors), dim) if mode and live else t
    return _cat_otherwise(tensors, dim, out=out)


def _cat_pixels(arrays, dim):
    """Images joined that all lie channels-last; None where one does not, or something is wrong."""
    rank = arrays[0].ndim
    if dim.__class__ is not int or not -rank <= dim < rank:
        return None
    if not all(a.ndim == rank and _is_channels_last(a) for a in arrays):
        return None
    try:
        return _joined_channels_last(np, arrays, dim % rank)
    except (ValueError, MemoryError):
        return None  # the general path finds the words


# NumPy's own function without the layer that asks other array libraries first, which costs as much as the call
_concatenate = getattr(np.concatenate, "_implementation", np.concatenate)
_native_cat = small.table.get("cat.default")


def _cat_pieces(g, tensors_shape, dim):
    d = wrap_dim(dim, g.ndim) if g.shape != (0,) else 0
    pieces, at = [], 0
    for shape in tensors_shape:
        if _skipped(shape) and g.ndim != 1:
            pieces.append(g.new_zeros(shape))
            continue
        pieces.append(dispatch(slice_, (g, d, at, at + shape[d], 1)))
        at = at + shape[d]
    return pieces


def _batch_all(tensors, dims, size: int) -> list:
    dims = dims or (None,) * len(tensors)
    return [batch_first(t, d, size) for t, d in zip(tensors, dims, strict=True)]


def _cat_vmap(args, dims, size):
    batched = _batch_all(args[0], dims[0], size)
    counted = next((t for t in batched if not _skipped(t.shape[1:])), batched[0])
    dim = wrap_dim(args[1], counted.ndim - 1) + 1
    nothing = (*counted.shape[:dim], 0, *counted.shape[dim + 1 :])  # empty vectors join tensors of any rank
    joined = [t.reshape(nothing) if _skipped(t.shape[1:]) else t for t in batched]
    return dispatch(cat, (tuple(joined), dim)), 0


def _joined_jvp(name: str):
    """The tangents joined as the tensors are; those that have none count as zeros, integers among them."""

    def rule(args, tangents, out):
        each = [
            a.new_zeros(a.shape, dtype=out.dtype) if t is None else t for a, t in zip(args[0], tangents[0], strict=True)
        ]
        return dispatch(registry[f"{name}.default"], (tuple(each), args[1]))

    return rule


cat = export_operator(
    Operator(
        "cat(Tensor[] tensors, int dim=0) -> Tensor",
        JOINING,
        moves=True,
        lower=lower_cat,
        function=False,
        method=False,
        out_apart="others",
        kernel=_cat_kernel,
        meta=_cat_meta,
        vjp={"tensors": _cat_pieces},
        jvp=_joined_jvp("cat"),
        vmap=_cat_vmap,
        autocast_cpu="widest",
        autocast_cuda="widest",
        fuses_operands=True,
    )
)


# ---- stack
def _check_stack(shapes, dim: int) -> int:
    if not shapes:
        raise RuntimeError("stack expects a non-empty TensorList")
    d = wrap_dim(dim, len(shapes[0]) + 1)
    for i, shape in enumerate(shapes):
        if tuple(shape) != tuple(shapes[0]):
            raise RuntimeError(
                f"stack expects each tensor to be equal size, but got {list(shapes[0])} at entry 0 and "
                f"{list(shape)} at entry {i}"
            )
    return d


def _stack_kernel(xp, tensors, dim):
    d = _check_stack([a.shape for a in tensors], dim)
    return xp.ascontiguousarray(xp.stack(_cast_all(tensors), axis=d))


def _stack_meta(tensors, dim) -> Spec:
    d = _check_stack([t._array.shape for t in tensors], dim)
    shape = tensors[0]._array.shape
    return Spec((*shape[:d], len(tensors), *shape[d:]), _common([t.dtype for t in tensors]))


def _stack_strides(shape: tuple, tensors, dim) -> tuple | None:
    """Where all are channels-last, those of the tensors joined along `dim`, which is then cut into two dimensions."""
    rank = len(shape) - 1
    d = wrap_dim(dim, rank + 1)
    if d == rank or rank not in (4, 5) or not all(map(prefers_channels_last, tensors)):
        return None
    joined = channels_last_strides((*shape[:d], shape[d] * shape[d + 1], *shape[d + 2 :]))
    return (*joined[:d], joined[d] * shape[d + 1], *joined[d:])


def _stack_otherwise(tensors, dim=0, *, out=None, axis=None):
    return general(stack_public, stack, (tensors, dim if axis is None else axis), out)


_native_stack = small.table.get("stack.default")


@raw("torch.stack")
@bypassing("stack.default", otherwise=_stack_otherwise)
def stack_public(tensors, dim=0, *, out=None, axis=None):
    """Tensors of one shape joined along a new dimension."""
    dim = dim if axis is None else axis
    mode = ambient.mode
    if out is None and mode < 2 and dim == 0 and (plain := plain_arrays(tensors)) is not None:
        arrays, dtype, live = plain
        shape = arrays[0].shape
        rows = [a[None] for a in arrays if a.shape == shape]
        try:
            result = _concatenate(rows) if len(rows) == len(arrays) else None
        except MemoryError:
            result = None  # the general path finds the words
        if result is not None and result.flags.c_contiguous:
            t = make_tensor(result, dtype)
            return stack.record(t, tuple(tensors), 0) if mode and live else t
    elif out is None and mode < 2 and _native_stack is not None and (live := history((tensors,))) is not None:
        t = _native_stack((tensors, dim))
        if t is not None:
            return stack.record(t, tuple(tensors), dim) if mode and live else t
    return _stack_otherwise(tensors, dim, out=out)


stack = export_operator(
    Operator(
        "stack(Tensor[] tensors, int dim=0) -> Tensor",
        JOINING,
        check_out=joined_out,
        moves=True,
        lower=lower_stack,
        function=False,
        method=False,
        out_apart="others",
        kernel=_stack_kernel,
        strides=_stack_strides,
        meta=_stack_meta,
        vjp={"tensors": lambda g, dim: list(g.unbind(dim))},
        jvp=_joined_jvp("stack"),
        vmap=lambda args, dims, size: (
            dispatch(stack, (tuple(_batch_all(args[0], dims[0], size)), _stacked_dim(args, dims) + 1)), 0,
        ), autocast_cpu="widest", autocast_cuda="widest", cost="cheap",
    )
)  # fmt: skip


def _stacked_dim(args, dims) -> int:
    return wrap_dim(args[1], args[0][0].ndim - (dims[0][0] is not None) + 1)


# ---- stacks by name
def at_least(t: Tensor, rank: int) -> Tensor:
    """A tensor with at least `rank` dimensions, where NumPy's `atleast_*` puts the new ones."""
    have = t.ndim
    if have >= rank:
        return t
    if rank == 3:
        return t.reshape((1, 1, 1)) if have == 0 else t.unsqueeze(0).unsqueeze(-1) if have == 1 else t.unsqueeze(-1)
    if rank == 2:
        return t.reshape((1, 1)) if have == 0 else t.unsqueeze(0)
    return t.reshape((1,))


def _nonempty(name: str, tensors) -> None:
    if not tensors:
        raise RuntimeError(f"{name} expects a non-empty TensorList")


@composite("hstack(Tensor[] tensors) -> Tensor", method=False, check_out=joined_out)
def hstack(tensors):
    _nonempty("hstack", tensors)
    result = tuple(at_least(t, 1) for t in tensors)
    return dispatch(cat, (result, 0 if result[0].ndim == 1 else 1))


@composite("vstack(Tensor[] tensors) -> Tensor", method=False, check_out=joined_out, aliases=("row_stack",))
def vstack(tensors):
    _nonempty("vstack", tensors)
    return dispatch(cat, (tuple(at_least(t, 2) for t in tensors), 0))


@composite("dstack(Tensor[] tensors) -> Tensor", method=False, check_out=joined_out)
def dstack(tensors):
    _nonempty("dstack", tensors)
    return dispatch(cat, (tuple(at_least(t, 3) for t in tensors), 2))


@composite("column_stack(Tensor[] tensors) -> Tensor", method=False, check_out=joined_out)
def column_stack(tensors):
    _nonempty("column_stack", tensors)
    return hstack([t.reshape((t.numel(), 1)) if t.ndim <= 1 else t for t in tensors])


def _make_at_least(rank: int):
    name = f"atleast_{rank}d"

    def make(*tensors):
        """A tensor, or a tuple of them, with at least that many dimensions."""
        if len(tensors) == 1 and isinstance(tensors[0], (tuple, list)):
            return tuple(at_least(_tensor(name, t), rank) for t in tensors[0])
        result = tuple(at_least(_tensor(name, t), rank) for t in tensors)
        return result[0] if len(result) == 1 else result

    make.__name__ = name
    return front(f"torch.{name}")(make)


def _tensor(name: str, t) -> Tensor:
    if not isinstance(t, Tensor):
        raise TypeError(
            f"{name}() received an invalid combination of arguments - got ({type(t).__name__}), but expected "
            "one of:\n * (Tensor input)\n"
            " * (tuple of Tensors tensors)\n"
        )
    return t


atleast_1d, atleast_2d, atleast_3d = _make_at_least(1), _make_at_least(2), _make_at_least(3)


# ---- one shape for all
def _flat_list(tensors: tuple) -> tuple:
    return tuple(tensors[0]) if len(tensors) == 1 and isinstance(tensors[0], (tuple, list)) else tensors


@front("torch.broadcast_tensors")
def broadcast_tensors(*tensors):
    """The tensors in their common shape: themselves, or views of them."""
    tensors = _flat_list(tensors)
    shape = common_shape(*[t.shape for t in tensors])
    return tuple(t if t.shape == shape else t.expand(shape) for t in tensors)


@front("torch.broadcast_shapes")
def broadcast_shapes(*shapes) -> Size:
    """The shape that tensors of these shapes broadcast to."""
    out: list = []
    for i, given in enumerate(shapes):
        shape = (given,) if not isinstance(given, (tuple, list)) else tuple(given)
        if any(isinstance(size, float) for size in shape):
            raise RuntimeError(
                f"Input shapes should be of type ints, a tuple of ints, or a list of ints, got {shape} at index {i}"
            )
        out = [1] * (len(shape) - len(out)) + out
        for k in range(-1, -1 - len(shape), -1):
            size = shape[k]
            if size < 0:
                raise ValueError("Attempting to broadcast a dimension with negative length!")
            if size != 1 and out[k] not in (1, size):
                raise RuntimeError(
                    f"Attempting to broadcast a dimension of length {size} at {k}! Mismatching argument at "
                    f"index {i} had {shape}; "
                    f"but expected shape should be broadcastable to {out}"
                )
            out[k] = out[k] if size == 1 else size
    return Size(out)


# ---- grids
def _check_grid(tensors) -> None:
    _nonempty("meshgrid", tensors)
    for t in tensors:
        if t.ndim > 1:
            raise RuntimeError(f"torch.meshgrid: Expected 0D or 1D tensor in the tensor list but got: {t}")
        if t.dtype is not tensors[0].dtype:
            raise RuntimeError("meshgrid expects all tensors to have the same dtype")
        if t.device is not tensors[0].device:
            raise RuntimeError("meshgrid expects all tensors to have the same device")


@front("torch.meshgrid")
def meshgrid(*tensors, indexing: str | None = None):
    """Coordinates of a grid: one tensor per axis, each of the grid's shape."""
    tensors = _flat_list(tensors)
    _check_grid(tensors)
    if indexing is None:
        warn_once("torch.meshgrid: in an upcoming release, it will be required to pass the indexing argument.", 3)
    elif indexing not in ("ij", "xy"):
        raise RuntimeError(f'torch.meshgrid: indexing must be one of "xy" or "ij", but received: {indexing}')
    swap = indexing == "xy" and len(tensors) >= 2
    if swap:
        tensors = (tensors[1], tensors[0], *tensors[2:])
    shape = tuple(t.numel() for t in tensors)
    grids = [t.reshape((1,) * i + (-1,) + (1,) * (len(tensors) - 1 - i)).expand(shape) for i, t in enumerate(tensors)]
    return (grids[1], grids[0], *grids[2:]) if swap else tuple(grids)


@front("torch.cartesian_prod", past=(ANY,))
def cartesian_prod(*tensors) -> Tensor:
    """All combinations of one element of each vector."""
    tensors = _flat_list(tensors)
    for t in tensors:
        if t.ndim != 1:
            raise RuntimeError(f"Expect a 1D vector, but got shape {list(t.shape)}")
    if len(tensors) == 1:
        return tensors[0]
    return stack([g.flatten() for g in meshgrid(*tensors, indexing="ij")], 1)


@composite("combinations(Tensor self, int r=2, bool with_replacement=False) -> Tensor", method=False)
def combinations(self, r, with_replacement):
    if self.ndim != 1:
        raise RuntimeError(f"Expect a 1D vector, but got shape {list(self.shape)}")
    if r < 0:
        raise RuntimeError(f"Expect a non-negative number, but got {r}")
    if r == 0:
        return self.new_empty((0,))
    grids = meshgrid(*[self] * r, indexing="ij")
    places = _combination_indices(self.numel(), r, with_replacement)
    return stack([g.flatten()[lifted(wrap(places, device=self.device))] for g in grids], 1)


def _combination_indices(n: int, r: int, with_replacement: bool):
    """Flat places in an n^r grid whose coordinates go up."""
    axes = np.indices((n,) * r).reshape(r, -1)
    rising = axes[:-1] <= axes[1:] if with_replacement else axes[:-1] < axes[1:]
    return np.flatnonzero(rising.all(axis=0))


def _block_kernel(xp, blocks):
    out = xp.zeros((sum(b.shape[0] for b in blocks), sum(b.shape[1] for b in blocks)), blocks[0].dtype)
    row = column = 0
    for b in blocks:
        out[row : row + b.shape[0], column : column + b.shape[1]] = b
        row, column = row + b.shape[0], column + b.shape[1]
    return out


def _block_pieces(g: Tensor, tensors_shape: list) -> list:
    pieces, row, column = [], 0, 0
    for rows, columns in tensors_shape:
        pieces.append(g.narrow(0, row, rows).narrow(1, column, columns))
        row, column = row + rows, column + columns
    return pieces


block_diag_matrices = operator(
    "_block_diag(Tensor[] tensors) -> Tensor",
    kernel=_block_kernel,
    meta=lambda tensors: Spec((sum(t.shape[0] for t in tensors), sum(t.shape[1] for t in tensors)), tensors[0].dtype),
    vjp={"tensors": _block_pieces},
    node="BlockDiagBackward0",
    function=False,
    method=False,
    out=False,
)


@bypassing(ANY)
def _plain_block_diag(tensors: tuple) -> Tensor | None:
    """By one call, where tensors are plain matrices of one dtype and nobody listens; None where it takes more."""
    if ambient.mode >= 2 or history((tensors,)) is None or (known := plain_arrays(tensors)) is None:
        return None
    return dispatch(block_diag_matrices, (tensors,)) if all(a.ndim == 2 for a in known[0]) else None


@front("torch.block_diag")
def block_diag(*tensors) -> Tensor:
    """A matrix with the given matrices on its diagonal."""
    tensors = _flat_list(tensors)
    if (result := _plain_block_diag(tensors)) is not None:
        return result
    for i, t in enumerate(tensors):
        if t.ndim > 2:
            raise RuntimeError(
                f"torch.block_diag: Input tensors must have 2 or fewer dimensions. Input {i} has {t.ndim} dimensions"
            )
    blocks = [at_least(t, 2) for t in tensors]
    if not blocks:
        return lifted(wrap(np.empty((1, 0), np.float32)))
    common = _common([b.dtype for b in blocks])
    return dispatch(block_diag_matrices, (tuple([b.to(common) for b in blocks]),))
