"""Shapes asked for in other words: reshape, flatten, squeeze, movedim, the transposing properties, sum_to_size.

In: a tensor and a shape or dimensions. Out: a view where the memory allows one, else (reshape and its kin only) a
copy. These are compositions of `views`: gradients, metadata and batching follow from theirs.
"""

from __future__ import annotations

from ...core.dtype import INT
from ...core.dtype import dtype as dtype_type
from ...core.geometry import infer_size, view_strides, wrap_dim
from ...core.layers import above, extend
from ...core.modes import ambient
from ...core.objects import make_tensor, make_view
from ...core.symbolic import holds, sym_ite, undecided
from ...core.tensor import CUDA, OPAQUE, PLAIN, Tensor, stride_of
from ..eager.functions import bypassing
from ..eager.straight import FunctionCase
from ..eager.views import SIZES, ViewCase, is_plain_tensor, may_have_history, plain_view
from ..family.base import composite
from ..system.calls import INTS, front
from ..system.dispatch import dispatch
from ..system.operator import export, find
from ..system.overrides import any_overridden, call_overridden
from ..system.schema import Unfit, type_name
from .complex_views import view_dtype
from .view_geometry import numel
from .views import alias, expand, slice_, squeeze_all, squeeze_dim, squeeze_dims, view_


def raw(*names: str):
    """Export a function as it is: it has its own quick path, and hands calls to overrides itself (`overridden`)."""

    def decorate(function):
        for n in names:
            space, _, short = n.rpartition(".")
            export(space, short, function)
        function.__name__ = function.__qualname__ = names[0].rpartition(".")[2]
        return function

    return decorate


def overridden(*args) -> bool:
    """Whether a mode or a class wants to take a call with these arguments over."""
    return bool(ambient.mode & 2) or any_overridden(args)


# ---- reshape
@composite(
    "reshape(Tensor(a) self, SymInt[] shape) -> Tensor(a)",
    variadic="shape",
    out=False,
    plain=ViewCase(  # NumPy infers any negative size, PyTorch only -1: the general path says so
        "shape.__class__ in SIZES and a.flags.c_contiguous and (not a.ndim or a.strides[-1] == a.itemsize)",
        "array if (array := a.reshape(shape)).shape == shape or -1 in shape else refuse()",
        recorded_as=view_,
        arguments="input, shape",
    ),
)
def reshape(self, shape):
    size = infer_size(shape, numel(self._array.shape))
    if self._keys & OPAQUE:
        return dispatch(find("_mkldnn_reshape.default"), (self, size))
    if view_strides(self._array.shape, stride_of(self), size) is not None:
        return dispatch(view_, (self, size))
    return unsafe_view(self.contiguous(), size)


def _unsafe_view_dispatched(t: Tensor, size: tuple) -> Tensor:
    return dispatch(find("_unsafe_view.default"), (t, size))


@bypassing("_unsafe_view.default", otherwise=_unsafe_view_dispatched)
def unsafe_view(t: Tensor, size: tuple) -> Tensor:
    """A result that nobody else holds, in another shape: the same memory, and no view."""
    if t.__class__ is not Tensor or t._keys or ambient.mode >= 2 or not t._array.flags.c_contiguous:
        return _unsafe_view_dispatched(t, size)
    try:
        result = make_tensor(t._array.reshape(size), t.dtype)
    except ValueError:
        return _unsafe_view_dispatched(t, size)  # which finds the words
    if ambient.mode and t._autograd is not None:
        find("_unsafe_view.default").record(result, t, size)
    return result


@composite(
    "flatten.using_ints(Tensor(a) self, int start_dim=0, int end_dim=-1) -> Tensor(a)",
    out=False,
    plain=ViewCase(
        "start_dim == 0 and end_dim == -1 and a.ndim != 1 and a.flags.c_contiguous and (not a.ndim or a.strides[-1] == a.itemsize)",
        "a.reshape(-1)",
        recorded_as=view_,
        arguments="input, (a.size,)",
    ),
)
def flatten(self, start_dim, end_dim):
    rank = self.ndim
    first, last = wrap_dim(start_dim, rank), wrap_dim(end_dim, rank)
    if first > last:
        raise RuntimeError("flatten() has invalid args: start_dim cannot come after end_dim")
    if not rank:
        return self.reshape((1,))
    if first == last:
        return self
    shape = self.shape
    return self.reshape((*shape[:first], numel(shape[first : last + 1]), *shape[last + 1 :]))


def _view_otherwise(self, *sizes, size=None, dtype=None):
    if size is None:
        size = sizes[0] if len(sizes) == 1 and sizes[0].__class__ not in INTS else sizes
    if overridden(self):
        return call_overridden(view, (self, *sizes) if sizes else (self, dtype or size), {})
    if not sizes and dtype is None and size == ():
        raise TypeError(
            "view() received an invalid combination of arguments - got (), but expected one of:\n"
            " * (torch.dtype dtype)\n * (tuple of ints size)\n"
        )
    return _view_general(self, size, dtype)


@raw("Tensor.view")
@bypassing("view.default", otherwise=_view_otherwise)
def view(self, *sizes, size=None, dtype=None):
    """The same memory in another shape, or read as another dtype."""
    if size is None:
        size = sizes[0] if len(sizes) == 1 and sizes[0].__class__ not in INTS else sizes
    if self.__class__ in PLAIN and not self._keys and (mode := ambient.mode) < 2 and size.__class__ in SIZES and size:
        a = self._array
        if a.flags.c_contiguous and (not a.ndim or a.strides[-1] == a.itemsize):  # one element apart
            try:
                result = a.reshape(size)
            except (ValueError, TypeError):
                result = a  # the general path finds the words
            if result is not a and (-1 in size or result.shape == size):
                t = make_view(self, result, self._offset, view_, (self, size), mode)
                if mode and self._autograd is not None and may_have_history(self):
                    view_.record(t, self, size)
                return t
    elif getattr(self, "_keys", 0) == CUDA and self.__class__ in PLAIN and size.__class__ in SIZES and size:
        t = above.plain_on_device(view_, (self, size))
        if t is not None:
            return t
    return _view_otherwise(self, *sizes, size=size, dtype=dtype)


def _view_general(self, size, dtype):
    if isinstance(size, dtype_type):
        size, dtype = (), size
    if dtype is not None:
        return dispatch(view_dtype, (self, dtype))
    try:
        return dispatch(view_, (self, view_.schema.arguments[1].convert_value(size)))
    except Unfit:
        if any_overridden((size,)):  # an object that stands for a dtype or a size
            return call_overridden(view, (self, size), {})
        given = type_name(size)
        raise TypeError(
            f"view() received an invalid combination of arguments - got ({given}), but expected one of:\n * "
            "(torch.dtype dtype)\n"
            f"      didn't match because some of the arguments have invalid types: (!{given}!)\n * (tuple of "
            "ints size)\n"
            f"      didn't match because some of the arguments have invalid types: (!{given}!)\n"
        ) from None


@composite("view_as(Tensor(a) self, Tensor other) -> Tensor(a)", function=False, out=False)
def view_as(self, other):
    return self.view(other.shape)


@composite("reshape_as(Tensor(a) self, Tensor other) -> Tensor(a)", function=False, out=False)
def reshape_as(self, other):
    return self.reshape(other.shape)


@composite("expand_as(Tensor(a) self, Tensor other) -> Tensor(a)", function=False, out=False)
def expand_as(self, other):
    return dispatch(expand, (self, tuple(other.shape), False))


@composite("broadcast_to(Tensor(a) self, SymInt[] size) -> Tensor(a)", variadic="size", out=False)
def broadcast_to(self, size):
    return dispatch(expand, (self, size, False))


@composite("ravel(Tensor(a) self) -> Tensor(a)", out=False)
def ravel(self):
    return self.contiguous().view(-1)


@bypassing("view.default")
def _quick_unflatten(input, dim, sizes):
    if not is_plain_tensor(input) or dim.__class__ is not int or sizes.__class__ not in SIZES:
        return None
    a = input._array
    shape = a.shape
    if not -len(shape) <= dim < len(shape) or not a.size or not a.flags.c_contiguous or a.strides[-1] != a.itemsize:
        return None
    for s in sizes:
        if s.__class__ is not int or s < -1:
            return None
    d = dim % len(shape)
    try:
        result = a.reshape((*shape[:d], *sizes, *shape[d + 1 :]))
    except ValueError:
        return None
    return plain_view(input, result, input._offset, view_, (input, result.shape))


@composite(
    "unflatten.int(Tensor(a) self, int dim, SymInt[] sizes) -> Tensor(a)",
    out=False,
    plain=FunctionCase(_quick_unflatten),
)
def unflatten(self, dim, sizes):
    d = wrap_dim(dim, self.ndim)
    if not sizes:
        raise RuntimeError("unflatten: sizes must be non-empty")
    if not self.ndim:
        raise RuntimeError("unflatten: a 0-dim tensor has no dimension to unflatten")
    shape = self.shape
    try:
        result = infer_size(sizes, shape[d])
    except RuntimeError as error:
        if str(error).startswith("shape '"):
            raise RuntimeError(
                f"unflatten: Provided sizes {list(sizes)} don't multiply up to the size of dim {d} ({shape[d]}) "
                "in the input tensor"
            ) from None
        raise RuntimeError(f"unflatten got an unexpected error:\n{error}") from None
    return self.view((*shape[:d], *result, *shape[d + 1 :]))


# ---- dimensions of size 1
def _squeeze_otherwise(input, dim=None, axis=None):
    dim = dim if axis is None else axis
    if overridden(input):
        return call_overridden(squeeze, (input,) if dim is None else (input, dim), {})
    op = squeeze_all if dim is None else squeeze_dims if isinstance(dim, (tuple, list)) else squeeze_dim
    return dispatch(op, op.convert((input,) if dim is None else (input, dim)))


@raw("torch.squeeze", "Tensor.squeeze")
@bypassing("squeeze.dim", "squeeze.default", otherwise=_squeeze_otherwise)
def squeeze(input, dim=None, axis=None):
    """Drop dimensions of size 1: all, one, or some. `axis` is NumPy's name of `dim`."""
    if dim.__class__ is int and input.__class__ in PLAIN and not input._keys and ambient.mode < 2:
        a = input._array
        shape = a.shape
        if -len(shape) <= dim < len(shape):
            d = dim % len(shape)
            if shape[d] != 1:
                return plain_view(input, a[...], input._offset, squeeze_dim, (input, dim))
            if a.size:
                return plain_view(input, a[(slice(None),) * d + (0, ...)], input._offset, squeeze_dim, (input, dim))
    elif (
        dim is axis is None and input.__class__ in PLAIN and not input._keys and ambient.mode < 2 and input._array.size
    ):
        return plain_view(input, input._array.squeeze(), input._offset, squeeze_all, (input,))
    return _squeeze_otherwise(input, dim, axis)


# ---- orders of dimensions
def moved_order(rank: int, source: tuple, destination: tuple) -> tuple:
    """The permutation that moves dimensions `source` to `destination` and keeps the others in order."""
    if len(source) != len(destination):
        raise RuntimeError(
            f"movedim: Invalid source or destination dims: source ({list(source)} dims) should contain the same "
            "number of dims as "
            f"destination ({list(destination)} dims)"
        )
    ours = [wrap_dim(d, rank) for d in source]
    theirs = [wrap_dim(d, rank) for d in destination]
    for word, wrapped, given in (("source", ours, source), ("destination", theirs, destination)):
        if len(set(wrapped)) != len(wrapped):
            raise RuntimeError(f"movedim: repeated dim in `{word}` ({list(given)})")
    rest = iter([d for d in range(rank) if d not in ours])
    placed = dict(zip(theirs, ours, strict=True))
    return tuple(placed[d] if d in placed else next(rest) for d in range(rank))


@front("torch.movedim", "torch.moveaxis", "Tensor.movedim", "Tensor.moveaxis")
def movedim(input, source, destination) -> Tensor:
    """Move dimensions to other places."""
    if source.__class__ is int and destination.__class__ is int:
        rank = input.ndim
        if -rank <= source < rank and -rank <= destination < rank:
            places = list(range(rank))
            places.insert(destination % rank, places.pop(source))
            return input.permute(tuple(places))
    source = tuple(source) if isinstance(source, (tuple, list)) else (source,)
    destination = tuple(destination) if isinstance(destination, (tuple, list)) else (destination,)
    order = moved_order(input.ndim, source, destination)
    return input.permute(order) if order else dispatch(alias, (input,))


@composite("swapaxes(Tensor(a) self, int axis0, int axis1) -> Tensor(a)", out=False)
def swapaxes(self, axis0, axis1):
    return self.transpose(axis0, axis1)


@composite("swapdims(Tensor(a) self, int dim0, int dim1) -> Tensor(a)", out=False)
def swapdims(self, dim0, dim1):
    return self.transpose(dim0, dim1)


@composite("adjoint(Tensor(a) self) -> Tensor(a)", out=False)
def adjoint(self):
    return self.mH


def _transposed_property(name: str, body, says: str, example: str) -> property:
    sizes = example.removeprefix("ones(").removesuffix("2, 3)")
    body.__name__ = name
    body.__doc__ = f"{says}\n\n>>> torch.{example}.{name}.shape\ntorch.Size([{sizes}3, 2])"
    return property(body)


def _numpy_transpose(self):
    return self.t() if self.ndim == 2 else self.permute(tuple(range(self.ndim - 1, -1, -1)))


def _matrix_conjugate(self):
    rank = self.ndim
    if rank not in (0, 2):
        hint = " For batches of matrices, consider using tensor.mH" if rank > 2 else ""
        raise RuntimeError(f"tensor.H is only supported on matrices (2-D tensors). Got {rank}-D tensor.{hint}")
    return _conjugated(self.transpose(0, 1) if rank else self)


def _conjugated(t):
    return t.conj() if t.is_complex() else t


def _last_two(self, name: str):
    rank = self.ndim
    if rank == 1:
        raise RuntimeError(f"tensor.{name} is only supported on matrices or batches of matrices. Got 1-D tensor.")
    return self.transpose(-2, -1) if rank else self


_LAST_TWO = "The last two dimensions exchanged"
extend(
    Tensor,
    __name__,
    T=_transposed_property("T", _numpy_transpose, "The tensor with its dimensions in reverse order.", "ones(2, 3)"),
    H=_transposed_property("H", _matrix_conjugate, "The conjugate transpose of a matrix.", "ones(2, 3)"),
    mT=_transposed_property("mT", lambda self: _last_two(self, "mT"), f"{_LAST_TWO}.", "ones(1, 2, 3)"),
    mH=_transposed_property(
        "mH", lambda self: _conjugated(_last_two(self, "mH")), f"{_LAST_TWO}, and conjugated.", "ones(1, 2, 3)"
    ),
)


# ---- sums that undo broadcasting
@composite("sum_to_size(Tensor self, SymInt[] size) -> Tensor", function=False, out=False, variadic="size")
def sum_to_size(self, size):
    shape = self.shape
    lead = len(shape) - len(size)
    if lead < 0 or any(s != 1 and s != n for s, n in zip(size, shape[lead:], strict=True)):
        raise RuntimeError(f"size {{{list(size)}}} is not expandable to size {{{list(shape)}}}.")
    dims = (*range(lead), *(d for d in range(lead, len(shape)) if size[d - lead] == 1 and shape[d] != 1))
    if not size:
        return self.sum()
    out = self.sum(dims, keepdim=True) if dims else self
    return out.view(size) if lead else out


def narrow_bounds(self, dim: int, start, length) -> tuple:
    """The (dim, start) of a `narrow`, checked in PyTorch's words."""
    if not self.ndim:
        raise RuntimeError("narrow() cannot be applied to a 0-dim tensor.")
    if not holds(length >= 0):
        raise RuntimeError("narrow(): length must be non-negative.")
    size = self.shape[wrap_dim(dim, self.ndim)]
    if not (holds(-size <= start) and holds(start <= size)):
        raise IndexError(f"start out of range (expected to be in range of [{-size}, {size}], but got {start})")
    if undecided(start < 0):
        start = sym_ite(start < 0, start + size, start)
    elif start < 0:
        start = start + size
    if not holds(start + length <= size):
        raise RuntimeError(f"start ({start}) + length ({length}) exceeds dimension size ({size}).")
    return dim, start


@bypassing("slice.Tensor")
def _quick_narrow(input, dim, start, length):
    """Part of a plain tensor along a dimension, where every argument is in order."""
    if (
        not is_plain_tensor(input)
        or dim.__class__ is not int
        or start.__class__ is not int
        or length.__class__ is not int
    ):
        if isinstance(start, Tensor) and (start.ndim or start.dtype.category != INT):
            raise RuntimeError("start must be an 0-dim integral Tensor.")
        return None
    a = input._array
    shape = a.shape
    d = dim if dim >= 0 else dim + len(shape)
    if not 0 <= d < len(shape) or start < 0 or length < 0 or start + length > shape[d] or not a.size:
        return None
    part = a[(*(slice(None),) * d, slice(start, start + length))]
    offset = input._offset + start * (a.strides[d] // a.itemsize)
    return plain_view(input, part, offset, slice_, (input, dim, start, start + length, 1))


@composite(
    "narrow(Tensor(a) self, int dim, SymInt start, SymInt length) -> Tensor(a)",
    out=False,
    plain=FunctionCase(_quick_narrow),
)
def narrow(self, dim, start, length):
    dim, start = narrow_bounds(self, dim, start, length)
    return dispatch(slice_, (self, dim, start, start + length, 1))
