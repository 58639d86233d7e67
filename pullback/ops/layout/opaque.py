"""Tensors of the opaque layout `torch._mkldnn`: a dense tensor that only some operators may look into.

In: dense tensors of the types that oneDNN has, by `Tensor.to_mkldnn()`. Out: tensors of the same numbers whose layout says
that they have no strides and no storage; `to_dense()` gives them back. What always holds: the wrapped tensor is plain and
without history, an operator that says so (`opaque` in its declaration) runs on it and wraps its results again, and every other operator raises. Here the
layout makes nothing faster: it is there for programs that use it.
"""

from __future__ import annotations

from ...core import device as devices
from ...core import dtype as dtypes
from ...core import modes
from ...core.geometry import infer_size
from ...core.modes import ambient
from ...core.node import requires_grad
from ...core.tensor import OPAQUE, Tensor, wrap
from ...core.wrapped import WrappedArray
from ..family.pointwise import POINTWISE
from ..make.conversion import detach_op
from ..system.calls import front
from ..system.dispatch import dispatch
from ..system.inplace import bump, write
from ..system.operator import LINEAR, Operator
from .sparse.table import LAYOUT, layout_operator, run_dense, without_history

TYPES = (dtypes.float32, dtypes.bfloat16, dtypes.float16, dtypes.uint8, dtypes.int8)


class OpaqueArray(WrappedArray):
    """In the place of an array: the dense tensor that is wrapped."""

    __slots__ = ("values",)

    layout = devices._mkldnn

    def __init__(self, values: Tensor):
        self.values = values

    @property
    def shape(self) -> tuple:
        return self.values._array.shape


def wrap_opaque(values: Tensor) -> Tensor:
    return wrap(OpaqueArray(values), values.dtype, values.device, OPAQUE)


def is_opaque(t) -> bool:
    return isinstance(t, Tensor) and bool(t._keys & OPAQUE)


def opened(a):
    """The dense tensor in an opaque one; anything else as it is."""
    return a._array.values if is_opaque(a) else a


# ---- conversions
def _close(self: Tensor, dtype) -> Tensor:
    if self.layout is not devices.strided:
        raise NotImplementedError(_no_kernel("aten::to_mkldnn"))
    if self.device.type != "cpu":
        raise RuntimeError("dense_to_mkldnn expects CPU tensor input")
    if self.dtype not in TYPES:
        raise RuntimeError("dense_to_mkldnn expects float, bfloat16, half, uint8, int8 tensor input")
    result = self.contiguous() if dtype is None or dtype is self.dtype else self.to(dtype)
    return wrap_opaque(result.clone() if result is self else result)


to_mkldnn_op = layout_operator(
    "to_mkldnn(Tensor self, ScalarType? dtype=None) -> Tensor",
    run=_close,
    vjp={"self": lambda g, self_dtype: to_strided(g, self_dtype)},
    jvp=LINEAR,
)
from_mkldnn = layout_operator(
    "_mkldnn_to_dense(Tensor self, ScalarType? dtype=None) -> Tensor",
    run=lambda self, dtype: self._array.values.clone() if dtype is None else self._array.values.to(dtype),
    node="ToDenseBackward0",
    vjp={"self": lambda g, self_dtype: g.to_mkldnn(self_dtype)},
    jvp=LINEAR,
)
reshape_op = layout_operator(
    "_mkldnn_reshape(Tensor self, SymInt[] shape) -> Tensor",
    run=lambda self, shape: wrap_opaque(self._array.values.reshape(infer_size(shape, self._array.size)).clone()),
    node="MkldnnReshapeBackward0",
    vjp={"self": lambda g, self_shape: g.reshape(self_shape)},
)


def to_strided(t: Tensor, dtype=None) -> Tensor:
    """`to_dense()` of an opaque tensor; a dense one as it is, in the dtype asked for."""
    if is_opaque(t):
        return dispatch(from_mkldnn, (t, dtype))
    return t if dtype is None or dtype is t.dtype else t.to(dtype)


@front("Tensor.to_mkldnn")
def to_mkldnn(self, dtype=None) -> Tensor:
    """The same numbers in the opaque layout."""
    return dispatch(to_mkldnn_op, (self, dtype))


# ---- operators
def execute_opaque(op: Operator, args: tuple):
    """An operator of which some argument is opaque: on the tensors inside, its results wrapped again."""
    if op in (to_mkldnn_op, from_mkldnn, reshape_op):
        return LAYOUT.execute(op, args)
    if op is detach_op:
        return args[0].shallow()
    tensors, taken = op.tensors(args), op.declared.opaque
    if taken is None:
        raise _refusal(op)
    if taken != "mixed":
        if any(not is_opaque(t) for t in tensors) or taken == "pair" and len(tensors) < 2:
            raise RuntimeError("itensor_from_mkldnn expects MKL-DNN tensor input")
    elif ambient.mode & modes.GRAD and any(requires_grad(t) for t in tensors):
        raise NotImplementedError(
            f"{op.display}(): the derivative for MKL-DNN tensors is not implemented: convert with to_dense() first"
        )
    result = run_dense(op, *[_opened_all(without_history(a)) for a in args])
    return _wrapped(result)


def _opened_all(a):
    return tuple(opened(x) for x in a) if a.__class__ is tuple else opened(a)


def _wrapped(result):
    if isinstance(result, (tuple, list)):
        return type(result)([_wrapped(m) for m in result])
    if not isinstance(result, Tensor) or result.dtype not in TYPES:  # indices of pooling stay dense
        return result
    return wrap_opaque(result if result._view_info is None and result.is_contiguous() else result.clone())


def _refusal(op: Operator) -> Exception:
    if op.name == "view":
        return RuntimeError("Currently Mkldnn tensor does not support view. Change to use reshape instead")
    if op.family is POINTWISE:
        return RuntimeError("unsupported tensor layout: Mkldnn")
    return NotImplementedError(_no_kernel(op.qualified_name))


def _no_kernel(name: str) -> str:
    return (
        f"Could not run '{name}' with arguments from the 'MkldnnCPU' backend. This could be because the operator doesn't "
        f"exist for this backend. '{name}' is only available for dense tensors: convert with to_dense() first."
    )


def write_opaque(target: Tensor, result: Tensor) -> None:
    """Put a result into a tensor where either is opaque."""
    if not is_opaque(target):
        write(target, opened(result))
        return
    values = opened(result)
    target._array = OpaqueArray(values if values.dtype is target.dtype else values.to(target.dtype))
    bump(target)
