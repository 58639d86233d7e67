"""Smooth activation functions: exponential linear units, gated and Gaussian ones, softplus.

Each function `f` has an `f_backward(grad_output, self, ...)` operator, one pass over memory, which is differentiable in
turn: linear in `grad_output`, by the second derivative in `self`, and so on, as that is written in operators.
"""

from __future__ import annotations

import math

import numpy as np

from ...core import dtype as dtypes
from ...core.dtype import by_numpy, dtype
from ...core.elements import over_rows
from ...core.geometry import elementwise_strides, wrap_dim
from ...core.modes import LISTENING, ambient, process
from ...core.tensor import stride_of
from ..eager.elementwise import KernelCase
from ..family.base import composite, operator
from ..family.pointwise import pointwise
from ..system.dispatch import dispatch
from ..system.operator import Spec, exports
from ..system.scalars import check_fits
from .activations import HIDDEN
from .arithmetic import conj
from .array_kernels import erf, log1pexp, logistic, number
from .selection import where

_KBETA = math.sqrt(2 / math.pi)
_KAPPA = 0.044715
_REALS = frozenset((int, float))
SELU_ALPHA, SELU_SCALE = 1.6732632423543772848170429916717, 1.0507009873554804934193349852946


def second(g, grad_output, slope):
    """The gradient for `self` of a backward operator: both gradients times the second derivative."""
    return g * grad_output * slope


# ---- exponential linear units
def _elu(xp, x, alpha, scale, input_scale):
    zero = number(xp, 0, x)
    below = xp.expm1(xp.minimum(zero, x) * number(xp, input_scale, x)) * number(xp, alpha * scale, x)
    return xp.where(x < zero, below, x if scale == 1 else x * number(xp, scale, x))


def _elu_slope(xp, g, alpha, scale, input_scale, is_result, x):
    if is_result:
        below = g * number(xp, input_scale, g) * (x + number(xp, alpha * scale, x))
    else:
        inner = xp.minimum(x, number(xp, 0, x)) * number(xp, input_scale, x)
        below = g * number(xp, input_scale * alpha * scale, g) * xp.exp(inner)
    return xp.where(x <= 0, below, g * number(xp, scale, g))


def _elu_second(g, grad_output, alpha, scale, input_scale, is_result, self_or_result):
    if is_result:
        return where(self_or_result < 0, g * grad_output * input_scale, 0)
    curve = (self_or_result.clamp(max=0) * input_scale).exp() * (input_scale * input_scale * alpha * scale)
    return where(self_or_result < 0, g * grad_output * curve, 0)


elu_backward = pointwise(
    "elu_backward(Tensor grad_output, Scalar alpha, Scalar scale, Scalar input_scale, bool is_result, "
    "Tensor self_or_result) -> Tensor",
    kernel=_elu_slope,
    supports="real_float",
    plain=KernelCase(),
    **HIDDEN,
    vjp={
        "grad_output": lambda g, alpha, scale, input_scale, is_result, self_or_result: elu_backward(
            g, alpha, scale, input_scale, is_result, self_or_result
        ),
        "self_or_result": _elu_second,
    },
)


def _check_elu(self, alpha, scale=1, input_scale=1) -> None:
    """What PyTorch computes in: single precision at least."""
    if (alpha.__class__ in _REALS and -448 <= alpha <= 448) and scale.__class__ in _REALS and -448 <= scale <= 448:
        if input_scale.__class__ in _REALS and -448 <= input_scale <= 448:  # which all hold
            return
    for value in (alpha, scale, input_scale):
        check_fits(value, dtypes.float64 if self.dtype is dtypes.float64 else dtypes.float32)


elu = pointwise(
    "elu(Tensor self, Scalar alpha=1, Scalar scale=1, Scalar input_scale=1) -> Tensor",
    inplace_node="EluBackward1",
    numbers=(),
    check=_check_elu,
    supports="real_float",
    kernel=_elu,
    plain=KernelCase(),
    function=False,
    method=False,
    inplace="hidden",
    vjp=lambda g, alpha, scale, input_scale, self: elu_backward.function(g, alpha, scale, input_scale, False, self),
)


def _check_celu(self, alpha) -> None:
    if alpha == 0:
        raise RuntimeError("ZeroDivisionError: alpha cannot be 0 for CELU")
    _check_elu(self, alpha, 1, 1 / alpha)


celu = pointwise(
    "celu(Tensor self, Scalar alpha=1.0) -> Tensor",
    inplace_node="CeluBackward1",
    numbers=(),
    check=_check_celu,
    supports="real_float",
    kernel_name="elu_cpu",
    kernel=lambda xp, x, alpha: _elu(xp, x, alpha, 1, 1 / alpha),
    plain=KernelCase(),
    method=False,
    inplace="hidden",
    vjp=lambda g, alpha, self: elu_backward.function(g, alpha, 1, 1 / alpha, False, self),
)


@composite("selu(Tensor self) -> Tensor", method=False, public="torch.selu")
def selu(self):
    return elu(self, SELU_ALPHA, SELU_SCALE)


# ---- smooth ones
def _silu_slope(xp, g, x):
    s = logistic(xp, x)
    one = number(xp, 1, x)
    slope = s * (one + x * (one - s))
    return g * (xp.conjugate(slope) if x.dtype.kind == "c" else slope)


def _silu_second(g, grad_output, self):
    s = self.sigmoid()
    return second(conj(g), grad_output, conj(s * (1 - s) * (2 + self * (1 - 2 * s))))


silu_backward = pointwise(
    "silu_backward(Tensor grad_output, Tensor self) -> Tensor",
    kernel=_silu_slope,
    plain=KernelCase(),
    **HIDDEN,
    vjp={"grad_output": lambda g, self: silu_backward.function(g, conj(self)), "self": _silu_second},
)

silu = pointwise(
    "silu(Tensor self) -> Tensor",
    numbers=(),
    supports="float",
    kernel=lambda xp, x: x * logistic(xp, x),
    plain=KernelCase(),
    function=False,
    method=False,
    inplace="hidden",
    vjp=lambda g, self: silu_backward.function(g, self),
)


def _mish_slope(xp, g, x):
    t = xp.tanh(log1pexp(xp, x))
    return g * (t + x * logistic(xp, x) * (1 - t * t))


def _mish_second(g, grad_output, self):
    s, t = self.sigmoid(), softplus(self).tanh()
    return second(g, grad_output, s * (1 - t * t) * (2 + self * (1 - s - 2 * s * t)))


mish_backward = pointwise(
    "mish_backward(Tensor grad_output, Tensor self) -> Tensor",
    kernel=_mish_slope,
    supports="real_float",
    plain=KernelCase(),
    **HIDDEN,
    vjp={"grad_output": lambda g, self: mish_backward.function(g, self), "self": _mish_second},
)

mish = pointwise(
    "mish(Tensor self) -> Tensor",
    numbers=(),
    supports="real_float",
    kernel=lambda xp, x: x * xp.tanh(log1pexp(xp, x)),
    plain=KernelCase(),
    function=False,
    method=False,
    inplace="hidden",
    vjp=lambda g, self: mish_backward.function(g, self),
)


def _softplus_second(g, grad_output, self, beta, threshold):
    s = (self * beta).sigmoid()
    return second(g, grad_output, where(self * beta > threshold, 0, s * (1 - s) * beta))


softplus_backward = pointwise(
    "softplus_backward(Tensor grad_output, Tensor self, Scalar beta, Scalar threshold) -> Tensor",
    kernel=lambda xp, g, x, beta, threshold: xp.where(x * beta > threshold, g, g * logistic(xp, x * beta)),
    supports="real_float",
    plain=KernelCase(),
    **HIDDEN,
    vjp={
        "grad_output": lambda g, self, beta, threshold: softplus_backward.function(g, self, beta, threshold),
        "self": _softplus_second,
    },
)

softplus = pointwise(
    "softplus(Tensor self, Scalar beta=1, Scalar threshold=20) -> Tensor",
    numbers=(),
    supports="real_float",
    kernel=lambda xp, x, beta, threshold: xp.where(x * beta > threshold, x, log1pexp(xp, x * beta) / beta),
    plain=KernelCase(),
    public="nn.functional.softplus",
    inplace=False,
    vjp=lambda g, self, beta, threshold: softplus_backward.function(g, self, beta, threshold),
    autocast_cuda="float32",
)

log_sigmoid = pointwise(
    "log_sigmoid(Tensor self) -> Tensor",
    numbers=(),
    supports="real_float",
    kernel=lambda xp, x: 0.0 - log1pexp(xp, xp.negative(x)),  # zero where that is small: no negative one
    plain=KernelCase(),
    public="nn.functional.logsigmoid",
    inplace=False,
    vjp=lambda g, self: g * (-self).sigmoid(),
)


# ---- the Gaussian error unit
def _check_gelu(self, approximate) -> None:
    if approximate not in ("none", "tanh"):
        raise RuntimeError("approximate argument must be either none or tanh.")


def _gelu(xp, x, approximate, erf=erf):
    if approximate == "tanh":
        return 0.5 * x * (1 + xp.tanh(_KBETA * (x + _KAPPA * x * x * x)))
    return 0.5 * x * (1 + erf(xp, x * math.sqrt(0.5)))


def _gelu_slope(xp, g, x, approximate, erf=erf):
    if approximate == "tanh":
        t = xp.tanh(_KBETA * (x + _KAPPA * x * x * x))
        return g * (0.5 * (1 + t) + 0.5 * x * (1 - t * t) * (_KBETA * (1 + 3 * _KAPPA * x * x)))
    bell = xp.exp(-0.5 * x * x) * (1 / math.sqrt(2 * math.pi))
    return g * (0.5 * (1 + erf(xp, x * math.sqrt(0.5))) + x * bell)


def _gelu_second(g, grad_output, self, approximate):
    if approximate == "none":
        bell = (self * self * -0.5).exp() * (1 / math.sqrt(2 * math.pi))
        return second(g, grad_output, bell * (2 - self * self))
    t = ((self + self * self * self * _KAPPA) * _KBETA).tanh()
    inner = (self * self * (3 * _KAPPA) + 1) * _KBETA
    curve = self * (6 * _KAPPA * _KBETA)
    return second(g, grad_output, (1 - t * t) * (inner + self * 0.5 * (curve - 2 * t * inner * inner)))


gelu_backward = pointwise(
    "gelu_backward(Tensor grad_output, Tensor self, *, str approximate='none') -> Tensor",
    kernel=_gelu_slope,
    lower=lambda o, g, x, approximate: _gelu_slope(o, g, x, approximate, lambda o, x: o.erf(x)),
    supports="real_float",
    plain=KernelCase(),
    **HIDDEN,
    vjp={
        "grad_output": lambda g, self, approximate: gelu_backward.function(g, self, approximate=approximate),
        "self": _gelu_second,
    },
    opaque="all",
)

gelu = pointwise(
    "gelu(Tensor self, *, str approximate='none') -> Tensor",
    inplace="hidden",
    numbers=(),
    supports="real_float",
    kernel_name="GeluKernelImpl",
    check=_check_gelu,
    kernel=_gelu,
    lower=lambda o, x, approximate: _gelu(o, x, approximate, lambda o, x: o.erf(x)),
    plain=KernelCase(),
    public="nn.functional.gelu",
    vjp=lambda g, self, approximate: gelu_backward.function(g, self, approximate=approximate),
    opaque="all",
)


# ---- the gated linear unit
def _halves(self, dim: int, d: dtype) -> tuple[int, ...]:
    """The shape of one half of a tensor or array; raises where there is none."""
    if not self.ndim:
        raise RuntimeError("glu does not support scalars because halving size must be even")
    dim = wrap_dim(dim, self.ndim)
    size = self.shape[dim]
    if size % 2:
        raise RuntimeError(f"Halving dimension must be even, but dimension {dim} is size {size}")
    if not d.is_floating_point:
        raise NotImplementedError(f"\"glu_cpu\" not implemented for '{d.scalar_name}'")
    return tuple(s // 2 if i == dim else s for i, s in enumerate(self.shape))


def _glu_spec(self, dim) -> Spec:
    return Spec(_halves(self, dim, self.dtype), self.dtype)


def _glu(xp, x, dim):
    _halves(x, dim, by_numpy[x.dtype])
    wide = x if x.dtype.itemsize > 2 else x.astype(xp.float32)
    first, gate = xp.split(wide, 2, axis=dim)
    if (
        xp is np
        and x.dtype.char == "f"
        and first.size
        and over_rows("rows:glu", first, gate, out := np.empty(first.shape, x.dtype))
    ):
        return out
    return xp.multiply(first, logistic(xp, gate)).astype(x.dtype)


def _glu_rule(g, self, dim):
    if ambient.mode < LISTENING and not process.deterministic:
        return dispatch(glu_backward, (g, self, dim))
    first, gate = self.chunk(2, dim)
    s = gate.sigmoid()
    return exports["torch"]["cat"]([g * s, g * first * (s * (1 - s))], dim)


def _glu_backward(xp, g, x, dim):
    kind = g.dtype
    g, x = (v if v.dtype.itemsize > 2 else v.astype(xp.float32) for v in (g, x))
    first, gate = xp.split(x, 2, axis=dim)
    s = logistic(xp, gate)
    return xp.concatenate([g * s, g * first * (s * (1 - s))], axis=dim).astype(kind)


def _glu_backward_rule(g, grad_output, self, dim, mask):
    """Of both halves of the gradient, with respect to what it is a product of."""
    (first, gate), (of_first, of_gate) = self.chunk(2, dim), g.chunk(2, dim)
    s = gate.sigmoid()
    slope = s * (1 - s)
    to_grad = of_first * s + of_gate * first * slope if mask[0] else None
    if not mask[1]:
        return to_grad, None
    halves = [of_gate * slope * grad_output, grad_output * slope * (of_first + of_gate * first * (1 - 2 * s))]
    return to_grad, exports["torch"]["cat"](halves, dim)


def _glu_vmap(args: tuple, dims: tuple, size: int):
    x, dim = args[0].movedim(dims[0], 0), args[1]
    return glu(x, dim if dim < 0 else dim + 1), 0


glu = operator(
    "glu(Tensor self, int dim=-1) -> Tensor",
    meta=_glu_spec,
    strides=lambda shape, self, dim: elementwise_strides(shape, [(shape, stride_of(self))]),  # of one half
    kernel=_glu,
    vjp=_glu_rule,
    vmap=_glu_vmap,
    public="nn.functional.glu",
)

glu_backward = operator(
    "glu_backward(Tensor grad_output, Tensor self, int dim) -> Tensor",
    kernel=_glu_backward,
    meta=lambda grad_output, self, dim: Spec(self.shape, self.dtype),
    vjp={("grad_output", "self"): _glu_backward_rule},
    function=False,
    method=False,
)
