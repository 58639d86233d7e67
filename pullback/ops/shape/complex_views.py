"""Views that read the same memory as another element type: complex numbers as pairs, bits as another dtype.

In: a tensor. Out: a view of another dtype on the same storage. `real` and `imag` are such a view of the pairs, then
one of the two; of a conjugated tensor, the imaginary part is a view that negates.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...core import dtype as dtypes
from ...core.dtype import computable
from ...core.dtype import dtype as dtype_type
from ...core.geometry import Geometry, contiguous_strides
from ...core.layers import extend
from ...core.storage import storage_of, window
from ...core.tensor import CONJ, NEG, Tensor, stride_of, view_of
from ..family.batching import batch_first
from ..family.view import ViewDeclaration, ViewFamily
from ..lowering import NotLowerable, of_complex
from ..system.calls import export_operator, front
from ..system.declaration import REQUIRED
from ..system.dispatch import dispatch
from ..system.operator import LINEAR, NONDIFFERENTIABLE, Operator, Spec, find
from . import view_inverses
from .views import select


class RetypedDeclaration(ViewDeclaration):
    """What a view of another dtype may declare."""

    kind = "a retyped view"

    retyped: Callable = REQUIRED
    """`retyped(t, *args)`: (shape, stride, offset, dtype) of the view, all counted in the new dtype."""
    jvp: Any = None


class RetypedView(ViewFamily):
    """Views of another dtype."""

    declares = RetypedDeclaration
    retypes = True

    def execute(self, op: Operator, args: tuple) -> Tensor:
        t = args[0]
        shape, stride, offset, dtype = op.declared.retyped(*args)
        if isinstance(t._array, Geometry):
            array = Geometry(shape, stride, dtype.numpy)
        else:
            array = window(storage_of(t), dtype, shape, stride, offset)
        return view_of(t, array, dtype, offset)

    run_meta = execute

    def meta(self, op: Operator, args: tuple) -> Spec:
        shape, stride, _, dtype = op.declared.retyped(*args)
        return Spec(shape, dtype, stride)


RETYPED = RetypedView()


def _retyped(schema: str, **rules) -> Operator:
    return export_operator(Operator(schema, RETYPED, **rules))


# ---- complex numbers as pairs
def _as_real(self) -> tuple:
    if not self.dtype.is_complex:
        raise RuntimeError("view_as_real is only supported for complex tensors")
    if self._keys & CONJ:
        raise RuntimeError(
            "view_as_real doesn't work on unresolved conjugated tensors.  To resolve the conjugate tensor so "
            "you can view it as real, "
            "use self.resolve_conj(); however, be warned that the resulting tensor will NOT alias the original."
        )
    return (*self._array.shape, 2), (*(2 * s for s in stride_of(self)), 1), 2 * self._offset, self.dtype.to_real()


def _as_complex(self) -> tuple:
    if self.dtype not in (dtypes.float16, dtypes.float32, dtypes.float64):
        raise RuntimeError(
            "view_as_complex is only supported for half, float and double tensors, but got a tensor of scalar type: "
            f"{self.dtype.scalar_name}"
        )
    computable(self.dtype.to_complex())
    shape, stride = self._array.shape, stride_of(self)
    if not shape:
        raise RuntimeError("Input tensor must have one or more dimensions")
    if shape[-1] != 2:
        raise RuntimeError("Tensor must have a last dimension of size 2")
    if any(n.__class__ is int and n == 0 for n in shape):  # arrays without elements keep no strides to be checked
        stride = contiguous_strides(shape)
    if stride[-1] != 1:
        raise RuntimeError("Tensor must have a last dimension with stride 1")
    if any(s % 2 and n != 1 for n, s in zip(shape[:-1], stride, strict=False)):  # a single row may lie anywhere
        raise RuntimeError("Tensor must have a stride divisible by 2 for all but last dimension")
    if self._offset % 2:
        raise RuntimeError("Tensor must have a storage_offset divisible by 2")
    return shape[:-1], tuple(s // 2 for s in stride[:-1]), self._offset // 2, self.dtype.to_complex()


COMES_OUT = NotLowerable("a view of the same memory that comes out of the graph")


@of_complex
def _lower_as_real(b, x):
    """Within a graph nobody sees whose memory a view is on: the parts are computed."""
    if b.escapes:
        return COMES_OUT
    rank = len(x.shape)
    e = b.element(x.unsqueeze(rank).expand((*x.shape, 2)))
    return b.fill(b.blank((*x.shape, 2), x.dtype.to_real()), b.o.where(b.index(rank) == 0, e.real, e.imag))


@of_complex
def _lower_as_complex(b, x):
    if b.escapes:
        return COMES_OUT
    last = len(x.shape) - 1
    real, imag = (b.element(x.narrow(last, k, 1).without([last])) for k in (0, 1))
    return b.fill(b.blank(x.shape[:-1], x.dtype.to_complex()), b.o.complex(real, imag))


view_as_real = _retyped(
    "view_as_real(Tensor(a) self) -> Tensor(a)",
    lower=_lower_as_real,
    method=False,
    retyped=_as_real,
    jvp={"self": lambda t: view_as_real(t.resolve_conj())},  # of tangents nobody was asked to resolve them
    vjp=lambda g: view_as_complex(g.contiguous()),
    vmap=lambda args, dims, size: (view_as_real(args[0]), dims[0]),
    inverse=view_inverses.as_complex,
)


def _batch_as_complex(args: tuple, dims: tuple, size: int):
    pairs = batch_first(args[0], dims[0])
    if pairs.ndim == 1:  # the batch is no pair
        raise RuntimeError("Input tensor must have one or more dimensions")
    return view_as_complex(pairs), 0


view_as_complex = _retyped(
    "view_as_complex(Tensor(a) self) -> Tensor(a)",
    lower=_lower_as_complex,
    method=False,
    retyped=_as_complex,
    jvp=LINEAR,
    vjp=lambda g: view_as_real(g.contiguous().resolve_conj()),
    vmap=_batch_as_complex,
    autocast_cpu="float32",
    inverse=view_inverses.as_real,
)


@front("torch.real")
def real(input) -> Tensor:
    """The real part, a view; a real tensor is its own."""
    if not input.dtype.is_complex:
        return input
    pairs = view_as_real(input.conj() if input.is_conj() else input)
    return dispatch(select, (pairs, input.ndim, 0))


@front("torch.imag")
def imag(input) -> Tensor:
    """The imaginary part, a view."""
    if not input.dtype.is_complex:
        raise RuntimeError("imag is not implemented for tensors with non-complex dtypes.")
    if input.is_conj():
        part = dispatch(select, (view_as_real(input.conj()), input.ndim, 1))
        return dispatch(find("_neg_view.default"), (part,))
    return dispatch(select, (view_as_real(input), input.ndim, 1))


def _assign(part):
    def setter(self, value) -> None:
        target = part(self)
        target.copy_(value) if isinstance(value, Tensor) else target.fill_(value)

    return setter


extend(
    Tensor,
    __name__,
    real=property(real, _assign(real), doc="The real part, a view.\n\n>>> torch.tensor([1 + 2j]).real\ntensor([1.])"),
    imag=property(
        imag, _assign(imag), doc="The imaginary part, a view.\n\n>>> torch.tensor([1 + 2j]).imag\ntensor([2.])"
    ),
)


# ---- bits as another dtype
def _divisible(what: str, value: int, ratio: int, pair: str) -> None:
    if value % ratio:
        raise RuntimeError(
            f"self.{what} must be divisible by {ratio} to view {pair} (different element sizes), but got {value}"
        )


def _dense(stride: tuple, pair: str) -> None:
    if stride[-1] != 1:
        raise RuntimeError(f"self.stride(-1) must be 1 to view {pair} (different element sizes), but got {stride[-1]}")


def _as_dtype(self, dtype: dtype_type) -> tuple:
    shape, stride, old = self._array.shape, stride_of(self), self.dtype
    if dtype.numpy is None:
        raise NotImplementedError(f"view: no array library reads memory as {dtype}")
    if self._keys & (CONJ | NEG):  # the memory is not what the tensor means
        bit = "conjugate view tensors" if self._keys & CONJ else "tensors with negative bit set"
        raise RuntimeError(f"torch.Tensor.view is not supported for {bit} when converting to a different dtype.")
    if old.itemsize == dtype.itemsize:
        return shape, stride, self._offset, dtype
    pair = f"{old.scalar_name} as {dtype.scalar_name}"
    if not shape:
        raise RuntimeError(f"self.dim() cannot be 0 to view {pair} (different element sizes)")
    if old.itemsize > dtype.itemsize:
        ratio = old.itemsize // dtype.itemsize
        _dense(stride, pair)
        return (*shape[:-1], shape[-1] * ratio), (*(s * ratio for s in stride[:-1]), 1), self._offset * ratio, dtype
    ratio = dtype.itemsize // old.itemsize
    _divisible("size(-1)", shape[-1], ratio, pair)
    _divisible("storage_offset()", self._offset, ratio, pair)
    _dense(stride, pair)
    for d, s in enumerate(stride[:-1]):
        _divisible(f"stride({d})", s, ratio, pair)
    return (*shape[:-1], shape[-1] // ratio), (*(s // ratio for s in stride[:-1]), 1), self._offset // ratio, dtype


def _batch_dtype(args: tuple, dims: tuple, size: int):
    whole, dtype = batch_first(args[0], dims[0]), args[1]
    if whole.ndim == 1 and whole.dtype.itemsize != dtype.itemsize:  # the last dimension is the batch, and no example's
        raise RuntimeError(
            f"self.dim() cannot be 0 to view {whole.dtype.scalar_name} as {dtype.scalar_name} (different element sizes)"
        )
    return view_dtype(whole, dtype), 0


view_dtype = _retyped(
    "view.dtype(Tensor(a) self, ScalarType dtype) -> Tensor(a)",
    function=False,
    method=False,
    retyped=_as_dtype,
    vjp=NONDIFFERENTIABLE,
    vmap=_batch_dtype,
    inverse=view_inverses.retyped,
)
