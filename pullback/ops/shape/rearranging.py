"""Elements moved, repeated or masked by place: flip, roll, repeat, triangles, diagonals.

In: a tensor (or, for `tril_indices` and its kin, sizes). Out: a fresh tensor of the same elements in other places,
some of them repeated, or some replaced by zeros.
"""

from __future__ import annotations

from ...core import device as devices
from ...core import dtype as dtypes
from ...core import small
from ...core.geometry import wrap_dim, wrap_dims
from ...core.modes import ambient
from ...core.tensor import META, PLAIN, TRANSFORMED, Tensor, wrap_dim_of_scalar
from ..eager.functions import ANY, bypassing
from ..family.base import composite, operator
from ..family.batching import batch_first, shift
from ..family.factory import factory
from ..family.formats import dense_like_first, dense_strides, like_first
from ..system.calls import front
from ..system.dispatch import dispatch
from ..system.operator import LINEAR, NONDIFFERENTIABLE, DataDependent, Spec, exports
from ..system.scalars import exact_out
from .shape_lowering import lower_flip, lower_repeat, lower_roll, lower_rot90, lower_triangle, swapped
from .view_backward import diagonal_backward


# ---- flip, roll, rot90
def _flip(xp, self, dims):
    axes = wrap_dims(tuple(dims), self.ndim)
    return (xp.flip(self, axes) if axes else self).copy(order="K")


def _flip_meta(self, dims) -> Spec:
    wrap_dims(tuple(dims), self._array.ndim)
    return Spec(self._array.shape, self.dtype)


flip = operator(
    "flip(Tensor self, int[] dims) -> Tensor",
    moves=True,
    lower=lower_flip,
    variadic="dims",
    kernel=_flip,
    strides=dense_like_first,
    meta=_flip_meta,
    out=False,
    jvp=LINEAR,
    vjp=lambda g, dims: g.flip(dims),
    vmap=lambda args, dims, size: _along(flip, args, dims, 1),
    cost="cheap",
)


def _along(op, args: tuple, dims: tuple, *places: int):
    """The vmap rule of operators on one tensor whose arguments at `places` are dimensions."""
    t = batch_first(args[0], dims[0])
    if t.ndim == 1:
        return None
    moved = [shift(v, t.ndim - 1) if i in places else v for i, v in enumerate(args)]
    return dispatch(op, (t, *moved[1:])), 0


@composite("fliplr(Tensor self) -> Tensor", out=False)
def fliplr(self):
    if self.ndim < 2:
        raise RuntimeError("Input must be >= 2-d.")
    return self.flip((1,))


@composite("flipud(Tensor self) -> Tensor", out=False)
def flipud(self):
    if self.ndim < 1:
        raise RuntimeError("Input must be >= 1-d.")
    return self.flip((0,))


def _check_roll(rank: int, shifts, dims) -> tuple:
    if not shifts:
        raise RuntimeError("`shifts` required")
    if not dims and len(shifts) == 1:
        return ()
    if len(shifts) != len(dims):
        raise RuntimeError(f"shifts and dimensions must align. shifts: {len(shifts)}, dims:{len(dims)}")
    if not rank and len(dims) == 1:
        wrap_dim_of_scalar(dims[0])
    axes = tuple(wrap_dim(d, rank) for d in dims)
    if not rank:
        wrap_dim_of_scalar(dims[-1])
    return axes


def _roll(xp, self, shifts, dims):
    axes = _check_roll(self.ndim, shifts, dims)
    return xp.roll(self, shifts if axes else shifts[0], axes or None).copy()


def _roll_meta(self, shifts, dims) -> Spec:
    _check_roll(self._array.ndim, shifts, dims)
    return Spec(self._array.shape, self.dtype)


def _roll_strides(shape: tuple, self, shifts, dims) -> tuple | None:
    """Channels-last as the tensor is, except where it is rolled as one row."""
    return like_first(shape, self) if dims else None


def _roll_vmap(args, dims, size):
    t = batch_first(args[0], dims[0])
    if args[2]:
        return dispatch(roll, (t, args[1], shift(args[2], t.ndim - 1))), 0
    rows = t.flatten(1) if t.ndim > 1 else t.unsqueeze(1)
    return dispatch(roll, (rows, args[1], (1,))).reshape(t.shape), 0


roll = operator(
    "roll(Tensor self, SymInt[1] shifts, int[1] dims=[]) -> Tensor",
    moves=True,
    lower=lower_roll,
    kernel=_roll,
    strides=_roll_strides,
    meta=_roll_meta,
    out=False,
    jvp=LINEAR,
    vjp=lambda g, shifts, dims: g.roll(tuple(-s for s in shifts), dims),
    vmap=_roll_vmap,
    cost="cheap",
)


def _turned_dims(rank: int, dims) -> tuple[int, int]:
    if len(dims) != 2:
        raise RuntimeError(f"expected total rotation dims == 2, but got dims = {len(dims)}")
    if rank < 2:
        raise RuntimeError(f"expected total dims >= 2, but got total dims = {rank}")
    a, b = (wrap_dim(d, rank) for d in dims)
    if a == b:
        raise RuntimeError(f"expected rotation dims to be different, but got dim0 = {dims[0]} and dim1 = {dims[1]}")
    return a, b


def _rot90(xp, self, k, dims):
    a, b = _turned_dims(self.ndim, dims)
    turned = xp.flip(self, [(), (b,), (a, b), (a,)][k % 4]) if k % 4 else self
    return (xp.swapaxes(turned, a, b) if k % 2 else turned).copy(order="K")


def _rot90_meta(self, k, dims) -> Spec:
    a, b = _turned_dims(self._array.ndim, dims)
    return Spec(swapped(self._array.shape, a, b) if k % 2 else self._array.shape, self.dtype)


def _rot90_strides(shape: tuple, self, k, dims) -> tuple | None:
    """Those of a flip of which two dimensions are swapped; a whole turn is row-major."""
    a, b = _turned_dims(len(shape), dims)
    dense = dense_strides(self)
    return None if not k % 4 else swapped(dense, a, b) if k % 2 else dense


rot90 = operator(
    "rot90(Tensor self, int k=1, int[] dims=[0, 1]) -> Tensor",
    moves=True,
    lower=lower_rot90,
    kernel=_rot90,
    strides=_rot90_strides,
    meta=_rot90_meta,
    out=False,
    jvp=LINEAR,
    vjp=lambda g, k, dims: g.rot90(-k, dims),
    vmap=lambda args, dims, size: _along(rot90, args, dims, 2),
    cost="cheap",
)


# ---- repeats
def _repeat_shape(shape, repeats) -> tuple:
    if len(repeats) < len(shape):
        raise RuntimeError("Number of dimensions of repeat dims can not be smaller than number of dimensions of tensor")
    padded = (1,) * (len(repeats) - len(shape)) + tuple(shape)
    out = tuple(s * r for s, r in zip(padded, repeats, strict=True))
    for r, s in zip(repeats, out, strict=True):
        if r < 0:
            raise RuntimeError(f"Trying to create tensor with negative dimension {s if s else r}: {list(out)}")
    return out


def _repeat(xp, self, repeats):
    _repeat_shape(self.shape, repeats)
    return xp.tile(self, repeats) if len(repeats) else self.copy()


def _repeat_rule(g, self_shape, repeats):
    """Sums over copies: each repeated dimension becomes (copies, size)."""
    lead = len(repeats) - len(self_shape)
    if 0 in repeats or 0 in self_shape:
        return g.new_zeros(self_shape)
    sizes: list = []
    summed = []
    for i, r in enumerate(repeats):
        if i < lead or r != 1:
            summed.append(len(sizes))
            sizes.append(r)
        if i >= lead:
            sizes.append(self_shape[i - lead])
    return g.reshape(sizes).sum(summed) if summed else g.reshape(self_shape)


def _repeat_vmap(args, dims, size):
    t, repeats = batch_first(args[0], dims[0]), args[1]
    missing = len(repeats) - (t.ndim - 1)
    if missing < 0:
        return None
    t = t.reshape((size, *(1,) * missing, *t.shape[1:]))
    return dispatch(repeat, (t, (1, *repeats))), 0


repeat = operator(
    "repeat(Tensor self, SymInt[] repeats) -> Tensor",
    lower=lower_repeat,
    function=False,
    variadic="repeats",
    kernel=_repeat,
    meta=lambda self, repeats: Spec(_repeat_shape(self._array.shape, repeats), self.dtype),
    out=False,
    jvp=LINEAR,
    vjp=_repeat_rule,
    vmap=_repeat_vmap,
    cost="cheap",
)


@composite("tile(Tensor self, SymInt[] dims) -> Tensor", variadic="dims", out=False)
def tile(self, dims):
    return self.repeat((1,) * (self.ndim - len(dims)) + tuple(dims))


def _repeated_places(xp, repeats, output_size):
    if repeats.dtype.kind != "i" or repeats.dtype.itemsize < 4:
        kind = dtypes.by_numpy[repeats.dtype].scalar_name
        raise NotImplementedError(f"\"repeat_interleave_cpu\" not implemented for '{kind}'")
    if repeats.ndim != 1:
        raise RuntimeError("repeat_interleave only accept 1D vector as repeat")
    if repeats.size and repeats.min() < 0:
        raise RuntimeError("repeats can not be negative")
    if output_size is not None and output_size != int(repeats.sum()):
        raise RuntimeError("allocated size does not match required size")
    return xp.repeat(xp.arange(repeats.size), repeats).astype(repeats.dtype)


def _places_meta(repeats, output_size) -> Spec:
    if output_size is None:
        raise DataDependent("repeat_interleave", "without output_size, the shape of the result")
    return Spec((output_size,), repeats.dtype)


repeat_places = operator(
    "repeat_interleave.Tensor(Tensor repeats, *, SymInt? output_size=None) -> Tensor",
    function=False,
    method=False,
    kernel=_repeated_places,
    meta=_places_meta,
    vjp=NONDIFFERENTIABLE,
)


@front("torch.repeat_interleave", "Tensor.repeat_interleave", past=(ANY,))
def repeat_interleave(input, repeats=None, dim=None, *, output_size=None) -> Tensor:
    """Each element (or slice along `dim`) repeated; with `input` alone, the places that its counts name."""
    if repeats is None:
        return dispatch(repeat_places, (input, output_size))
    if dim is not None and not input.ndim:
        wrap_dim_of_scalar(dim)
    t, d = (input.flatten(), 0) if dim is None else (input, wrap_dim(dim, input.ndim))
    if isinstance(repeats, Tensor):
        return _interleave_counts(t, repeats, d, output_size, d if dim is None else dim)
    return _interleave_number(t, repeats, d, output_size)


def _interleave_number(t: Tensor, repeats: int, d: int, output_size) -> Tensor:
    if repeats < 0:
        raise RuntimeError("Repeats must be non-negative")
    size = t.shape[d]
    if output_size is not None and output_size != size * repeats:
        raise RuntimeError(f"repeat_interleave: Invalid output_size, expected {size * repeats} but got {output_size}")
    wide = t.unsqueeze(d + 1).expand((*t.shape[: d + 1], repeats, *t.shape[d + 1 :]))
    result = wide.reshape((*t.shape[:d], size * repeats, *t.shape[d + 1 :]))
    return result if result._memory is None else result.clone()


def _interleave_counts(t: Tensor, repeats: Tensor, d: int, output_size, given: int) -> Tensor:
    if repeats.ndim > 1:
        raise RuntimeError("repeats must be 0-dim or 1-dim tensor")
    if repeats.numel() == 1:
        repeats = repeats.reshape((1,)).expand((t.shape[d],))
    elif repeats.shape[0] != t.shape[d]:
        raise RuntimeError(
            "repeats must have the same size as input along dim, but got repeats.size(0) = "
            f"{repeats.shape[0]} and input.size({given}) = {t.shape[d]}"
        )
    return t.index_select(d, dispatch(repeat_places, (repeats, output_size)))


# ---- triangles
def _check_triangle(name: str, rank: int) -> None:
    if rank < 2:
        raise RuntimeError(f"{name}: input tensor must have at least 2 dimensions")


def _triangle(name: str, lower: bool):
    def kernel(xp, self, diagonal):
        _check_triangle(name, self.ndim)
        rows, columns = self.shape[-2:]
        diagonal = min(max(diagonal, -rows), columns + 1)  # beyond that nothing changes, and integers would overflow
        if lower:
            keep = xp.tri(rows, columns, diagonal, dtype=bool)
        else:
            keep = ~xp.tri(rows, columns, diagonal - 1, dtype=bool)
        return xp.where(keep, self, xp.zeros((), self.dtype))

    def meta(self, diagonal) -> Spec:
        _check_triangle(name, self._array.ndim)
        return Spec(self._array.shape, self.dtype)

    op = operator(
        f"{name}(Tensor self, SymInt diagonal=0) -> Tensor",
        moves=True,
        lower=lower_triangle,
        kernel=kernel,
        meta=meta,
        inplace=True,
        check_out=exact_out,
        cost="cheap",
        jvp=LINEAR,
        vjp=lambda g, diagonal: getattr(g, name)(diagonal),
        vmap=lambda args, dims, size: (
            (dispatch(op, (batch_first(args[0], dims[0]), args[1])), 0) if args[0].ndim > 2 else None
        ),
    )
    return op


tril, triu = _triangle("tril", True), _triangle("triu", False)


def _triangle_rows(name: str, row: int, col: int, offset: int, dtype):
    """(first column, end column) of each row of a triangle, as lists."""
    for word, value in (("row", row), ("col", col)):
        if value < 0:
            raise RuntimeError(f"{word} must be non-negative, got{value}")
    if dtype is not None and dtype not in (dtypes.int32, dtypes.int64):
        raise NotImplementedError(f"\"{name}\" not implemented for '{dtype.scalar_name}'")
    clip = lambda v: min(max(v, 0), col)  # noqa: E731
    if name == "tril_indices":
        return [(0, clip(i + offset + 1)) for i in range(row)]
    return [(clip(i + offset), col) for i in range(row)]


def _triangle_factory(name: str):
    def shape(row, col, offset, dtype, layout, device, pin_memory) -> Spec:
        rows = _triangle_rows(name, row, col, offset, dtype)
        return Spec((2, sum(b - a for a, b in rows)), dtype or dtypes.int64)

    def kernel(xp, spec, row, col, offset, dtype, layout, device, pin_memory):
        keep = xp.tri(row, col, offset if name == "tril_indices" else offset - 1, dtype=bool)
        return xp.stack(xp.nonzero(keep if name == "tril_indices" else ~keep)).astype(spec.dtype.numpy)

    op = factory(
        f"{name}(int row, int col, int offset=0, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, "
        "bool? pin_memory=None) -> Tensor",
        shape=shape,
        kernel=kernel,
    )

    def make(
        row, col, offset=0, *, dtype=None, device=None, layout=None, pin_memory=None, requires_grad=False
    ) -> Tensor:
        return op(row, col, offset, dtype=dtype, device=device)

    make.__name__ = name
    return front(f"torch.{name}", past=(f"{name}.default",))(make)


tril_indices, triu_indices = _triangle_factory("tril_indices"), _triangle_factory("triu_indices")


# ---- diagonals
@composite("diag(Tensor self, int diagonal=0) -> Tensor")
def diag(self, diagonal):
    if self.ndim == 1:
        return self.diag_embed(diagonal)
    if self.ndim == 2:
        return self.diagonal(diagonal).clone(memory_format=devices.contiguous_format)
    raise RuntimeError(f"diag(): Supports 1D or 2D tensors. Got {self.ndim}D")


@composite("diagflat(Tensor self, int offset=0) -> Tensor", out=False)
def diagflat(self, offset):
    return self.contiguous().reshape(-1).diag_embed(offset)


@composite(
    "diag_embed(Tensor self, int offset=0, int dim1=-2, int dim2=-1) -> Tensor",
    moves=True,
    out=False,
)
def diag_embed(self, offset, dim1, dim2):
    rank = self.ndim + 1
    a, b = wrap_dim(dim1, rank), wrap_dim(dim2, rank)
    if a == b:
        raise RuntimeError(f"diagonal dimensions cannot be identical {dim1}, {dim2}")
    side = self.shape[-1] + abs(offset)
    shape = list(self.shape[:-1])
    for d in sorted((a, b)):
        shape.insert(d, side)
    return diagonal_backward(self, tuple(shape), offset, a, b)


@composite("vander(Tensor x, int? N=None, bool increasing=False) -> Tensor", method=False, out=False)
def vander(x, N, increasing):  # noqa: N803 - PyTorch's argument name
    if x.ndim != 1:
        raise RuntimeError("x must be a one-dimensional tensor.")
    count = x.shape[0] if N is None else N
    if count < 0:
        raise RuntimeError("N must be non-negative.")
    x = x if x.dtype.category > 1 else x.long()
    rows = [x.new_ones(x.shape)] if count else []
    while len(rows) < count:
        rows.append(rows[-1] * x)
    if not rows:
        return x.new_empty((x.shape[0], 0))
    return exports["torch"]["stack"](rows if increasing else rows[::-1], 1)


# ---- classes as rows
_native_one_hot = small.table.get("one_hot.classes")


@bypassing(ANY)
def _plain_one_hot(tensor, num_classes) -> Tensor | None:
    """By a function in C, where the tensor is plain; None where the call takes more, or is refused."""
    if _native_one_hot is None or ambient.mode >= 2 or tensor.__class__ not in PLAIN or tensor._keys:
        return None
    return _native_one_hot((tensor, num_classes))


@front("nn.functional.one_hot")
def one_hot(tensor, num_classes: int = -1) -> Tensor:
    """A row of zeros with a one at each class."""
    if (result := _plain_one_hot(tensor, num_classes)) is not None:
        return result
    if tensor.dtype is not dtypes.int64:
        raise RuntimeError("one_hot is only applicable to index tensor of type LongTensor.")
    if not tensor.numel():
        if num_classes <= 0:
            raise RuntimeError("Can not infer total number of classes from empty tensor.")
        return tensor.new_zeros((*tensor.shape, num_classes))
    if tensor._keys & TRANSFORMED and num_classes > 0:  # classes are not looked at: no example knows those of others
        pass
    elif not tensor._keys & META:
        num_classes = _count_classes(tensor, num_classes)
    elif num_classes == -1:
        num_classes = tensor.max().item() + 1
    zeros = tensor.new_zeros((*tensor.shape, num_classes))
    return zeros.scatter(-1, tensor.unsqueeze(-1), 1)


def _count_classes(tensor: Tensor, num_classes: int) -> int:
    if tensor.min().item() < 0:
        raise RuntimeError("Class values must be non-negative.")
    largest = tensor.max().item()
    if num_classes == -1:
        return largest + 1
    if largest >= num_classes:
        raise RuntimeError("Class values must be smaller than num_classes.")
    return num_classes
