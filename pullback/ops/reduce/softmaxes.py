"""softmax, log_softmax and their kin, with dedicated backward operators that differentiate again."""

from __future__ import annotations

import warnings

from ...core import dtype as dtypes
from ...core.dtype import FLOAT
from ...core.geometry import wrap_dim
from ..eager.rows import export_softmax
from ..family.along import along
from ..family.base import composite, operator
from ..network import normalization_kernels as kernels
from ..system.calls import front
from ..system.dispatch import dispatch
from ..system.operator import Spec, exports
from ..system.precision import rounded, wide
from ..system.scalars import exact_out
from .reductions import HIDDEN, not_implemented
from .softmax_lowering import (
    lower_log_softmax,
    lower_log_softmax_backward,
    lower_safe_softmax,
    lower_softmax,
    lower_softmax_backward,
)


def _check(name: str):
    def check(self, dim, half_to_float):
        dim = wrap_dim(dim, self._array.ndim)
        if half_to_float:
            raise RuntimeError(
                f"{'softmax' if name == 'softmax' else 'log_softmax'} with half to float conversion is not supported "
                "on CPU"
            )
        if self.dtype.category != FLOAT:
            last = "lastdim_" if dim >= self._array.ndim - 1 else ""
            raise not_implemented(f"{name}_{last}kernel_impl", self.dtype)

    return check


# ---- backward operators
def _backward(kernel):
    def run(xp, g, out, dim, input_dtype):
        if not out.ndim:
            return run(xp, g.reshape(1), out.reshape(1), 0, input_dtype).reshape(())
        return rounded(kernel(xp, wide(xp, g), wide(xp, out), wrap_dim(dim, out.ndim)), input_dtype.numpy)

    return run


def _softmax_double(g, grad_output, output, dim):
    g = g.to(output.dtype)
    return g * (grad_output - (grad_output * output).sum(dim, True)) - grad_output * (g * output).sum(dim, True)


def _log_softmax_double(g, output, dim):
    g = g.to(output.dtype)
    return g - (g * output.exp()).sum(dim, True)


def _batched(op):
    """The vmap rule of a backward operator: gradient and result side by side, dim moved up."""

    def rule(args, dims, size):
        g, out = (t.movedim(d, 0) if d is not None else t.unsqueeze(0) for t, d in zip(args[:2], dims[:2], strict=True))
        rank = out.ndim - 1
        shape = (size, *out.shape[1:], *(() if rank else (1,)))
        result = op()(
            g.expand((size, *g.shape[1:])).reshape(shape),
            out.expand((size, *out.shape[1:])).reshape(shape),
            wrap_dim(args[2], rank) + 1,
            args[3],
        )
        return result.reshape((size, *out.shape[1:])), 0

    return rule


softmax_backward = operator(
    "_softmax_backward_data(Tensor grad_output, Tensor output, int dim, ScalarType input_dtype) -> Tensor",
    lower=lower_softmax_backward,
    kernel=_backward(kernels.softmax_backward),
    meta=lambda grad_output, output, dim, input_dtype: Spec(output._array.shape, input_dtype),
    node="SoftmaxBackwardDataBackward0",
    vjp={
        "grad_output": lambda g, output, dim, input_dtype: softmax_backward(
            g.to(output.dtype), output, dim, input_dtype
        ),
        "output": _softmax_double,
    },
    vmap=_batched(lambda: softmax_backward),
    method=False,
    opaque="all",
)

log_softmax_backward = operator(
    "_log_softmax_backward_data(Tensor grad_output, Tensor output, int dim, ScalarType input_dtype) -> Tensor",
    lower=lower_log_softmax_backward,
    kernel=_backward(kernels.log_softmax_backward),
    meta=lambda grad_output, output, dim, input_dtype: Spec(output._array.shape, input_dtype),
    node="LogSoftmaxBackwardDataBackward0",
    vjp={
        "grad_output": _log_softmax_double,
        "output": lambda g, grad_output, output, dim: -grad_output.sum(dim, True) * output.exp() * g.to(output.dtype),
    },
    vmap=_batched(lambda: log_softmax_backward),
    method=False,
)

# ---- forward operators
softmax_op = along(
    "_softmax(Tensor self, int dim, bool half_to_float) -> Tensor",
    lower=lower_softmax,
    kernel=lambda xp, a, axis, half_to_float: kernels.softmax(xp, a, axis),
    check=_check("softmax"),
    vjp=lambda g, out, dim, self_dtype: softmax_backward(g, out, dim, self_dtype),
    jvp={"self": lambda t, out, dim: out * (t - (out * t).sum(dim, True))},
    method=False,
    cost="passes",
    opaque="all",
)

log_softmax_op = along(
    "_log_softmax(Tensor self, int dim, bool half_to_float) -> Tensor",
    lower=lower_log_softmax,
    kernel=lambda xp, a, axis, half_to_float: kernels.log_softmax(xp, a, axis),
    check=_check("log_softmax"),
    vjp=lambda g, out, dim, self_dtype: log_softmax_backward(g, out, dim, self_dtype),
    jvp={"self": lambda t, out, dim: t - (out.exp() * t).sum(dim, True)},
    method=False,
    cost="passes",
)


@composite(
    "softmax.int(Tensor self, int dim, ScalarType? dtype=None) -> Tensor",
    **HIDDEN,
    check_out=exact_out,
    autocast_cuda="float32",
)
def softmax(self, dim, dtype):
    return dispatch(softmax_op, (self if dtype is None else self.to(dtype), dim, False))


@composite(
    "log_softmax.int(Tensor self, int dim, ScalarType? dtype=None) -> Tensor",
    **HIDDEN,
    check_out=exact_out,
    autocast_cuda="float32",
)
def log_softmax(self, dim, dtype):
    return dispatch(log_softmax_op, (self if dtype is None else self.to(dtype), dim, False))


def _safe_softmax(xp, a, axis: int):
    """softmax that gives zeros, not NaN, where a whole row is -inf."""
    out = kernels.softmax(xp, a, axis)
    out[xp.broadcast_to((a == -xp.inf).all(axis=axis, keepdims=True), out.shape)] = 0
    return out


safe_softmax = along(
    "_safe_softmax(Tensor self, int dim, ScalarType? dtype=None) -> Tensor",
    lower=lower_safe_softmax,
    kernel=_safe_softmax,
    check=lambda self, dim, dtype: _check("softmax")(self, dim, False) if dtype is None else None,
    cast=True,
    vjp=lambda g, out, dim, self_dtype: softmax_backward(g, out, dim, self_dtype),
    **HIDDEN,
    cost="passes",
)


def _mask_over(self, mask, kind: int | None):
    """A mask as the scores that it is for: (L, L) for attention (0), (B, L) for padding (1), theirs otherwise."""
    if mask.dtype is not dtypes.bool:
        raise RuntimeError("Mask should be a boolean tensor")
    shape, have = tuple(self.shape), tuple(mask.shape)
    if have == shape and kind in (None, 0, 1, 2):
        return mask
    if kind == 0 and self.ndim == 4:
        if have != shape[2:]:
            raise RuntimeError("For mask_type == 0 mask shape should be (L, L)")
        return mask.view(1, 1, *have).expand(shape)
    if kind == 1 and self.ndim == 4:
        if have != (shape[0], shape[3]):
            raise RuntimeError("For mask_type == 1 mask shape should be (B, L)")
        return mask.view(shape[0], 1, 1, shape[3]).expand(shape)
    raise RuntimeError("For mask_type == 2 mask shape should match input shape")


@composite("_masked_softmax(Tensor self, Tensor mask, int? dim=None, int? mask_type=None) -> Tensor", method=False)
def masked_softmax(self, mask, dim, mask_type):
    """softmax of the scores that the mask does not leave out; NaN in a row without any, whose gradient is zero."""
    scores = self.masked_fill(_mask_over(self, mask, mask_type), float("-inf"))
    return dispatch(softmax_op, (scores, self.ndim - 1 if dim is None else dim, False))


# ---- nn.functional
def implicit_dim(name: str, ndim: int) -> int:
    """The dimension that older programs left unsaid."""
    warnings.warn(
        f"Implicit dimension choice for {name} has been deprecated. Change the call to include dim=X as an argument.",
        stacklevel=4,
    )
    return 0 if ndim in (0, 1, 3) else 1


def functional_softmax(input, dim=None, _stacklevel=3, dtype=None):
    """exp(x) over its sum along `dim`."""
    return softmax(input, implicit_dim("softmax", input.ndim) if dim is None else dim, dtype)


def functional_log_softmax(input, dim=None, _stacklevel=3, dtype=None):
    """The logarithm of softmax, computed as one."""
    return log_softmax(input, implicit_dim("log_softmax", input.ndim) if dim is None else dim, dtype)


@front("nn.functional.softmin")
def softmin(input, dim=None, _stacklevel=3, dtype=None):
    """softmax of the negated input."""
    dim = implicit_dim("softmin", input.ndim) if dim is None else dim
    return softmax(-input, dim, dtype) if dtype is not None else exports["torch"]["softmax"](-input, dim)


_FORMS = (
    ("softmax", False, softmax_op, softmax, functional_softmax),
    ("log_softmax", True, log_softmax_op, log_softmax, functional_log_softmax),
)
for _name, _logarithm, _operator, _composite, _functional in _FORMS:
    export_softmax(("torch", "Tensor", "special"), _name, _logarithm, _operator, _composite.function)
    export_softmax(("nn.functional",), _name, _logarithm, _operator, _functional)
