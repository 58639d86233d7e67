"""Exponentials, logarithms and roots of elements, and sums of exponentials.

Integers become the default float first. Rules are complex-correct: a holomorphic function's gradient is multiplied by
the conjugate of its derivative.
"""

from __future__ import annotations

import math

from ...core import dtype as dtypes
from ..eager.elementwise import KernelCase
from ..family.base import operator
from ..family.formats import elementwise
from ..family.pointwise import INT_TO_FLOAT, pointwise
from ..reduce.scan_kernels import complex_log_sum
from ..system.operator import Spec
from ..system.scalars import c_name
from .arithmetic import conj
from .array_kernels import logistic, number

LN2 = math.log(2)
LN10 = math.log(10)


def _unary(name: str, ufunc: str | None = None, *, vjp, **rules):
    """A function of one element, of integers by way of floats."""
    if "kernel" not in rules or "direct" in rules:
        rules["ufunc"] = ufunc or name
    return pointwise(
        f"{name}(Tensor self) -> Tensor", promote=INT_TO_FLOAT, numbers=(), inplace="function", vjp=vjp, **rules
    )


def _log1p(xp, z):
    """log(1 + z): of complex numbers near 0, 1 + z would lose what |1 + z|^2 - 1 = x (x + 2) + y^2 keeps."""
    if z.dtype.kind != "c":
        return xp.log1p(z)
    out, x, y = xp.asarray(xp.log1p(z)), z.real, z.imag
    grown = x * (x + 2) + y * y
    near = xp.where(grown == 0, x, xp.log1p(grown) / 2)
    out.real = xp.where(xp.abs(z) < 0.5, near, out.real)
    return out


exp = _unary("exp", vjp=lambda g, out: g * conj(out), autocast_cuda="float32")
exp2 = _unary("exp2", vjp=lambda g, out: g * conj(out) * LN2)
expm1 = _unary("expm1", vjp=lambda g, out: g * conj(out + 1), autocast_cuda="float32", zero="kept")
log = _unary("log", vjp=lambda g, self: g / conj(self), autocast_cuda="float32")
log10 = _unary("log10", vjp=lambda g, self: g / (conj(self) * LN10), autocast_cuda="float32")
log1p = _unary(
    "log1p",
    node="Log1PBackward0",
    kernel=_log1p,
    direct="real_float",
    vjp=lambda g, self: g / conj(self + 1),
    autocast_cuda="float32",
    zero="kept",
)
log2 = _unary("log2", vjp=lambda g, self: g / (conj(self) * LN2), autocast_cuda="float32")
sqrt = _unary("sqrt", vjp=lambda g, out: g / (2 * conj(out)), zero="kept")
rsqrt = _unary(
    "rsqrt",
    kernel=lambda xp, x: xp.reciprocal(xp.sqrt(x)),
    plain=KernelCase(),
    vjp=lambda g, out: -0.5 * g * conj(out**3),
    autocast_cuda="float32",
)


# ---- the logistic function
def _logistic_slope(xp, g, y):
    slope = (number(xp, 1, y) - y) * y
    return g * (xp.conjugate(slope) if y.dtype.kind == "c" else slope)


sigmoid_backward = pointwise(
    "sigmoid_backward(Tensor grad_output, Tensor output) -> Tensor",
    kernel=_logistic_slope,
    plain=KernelCase(),
    function=False,
    method=False,
    inplace=False,
    vjp={
        "grad_output": lambda g, output: sigmoid_backward.function(g, conj(output)),
        "output": lambda g, grad_output, output: conj(g) * grad_output * (1 - 2 * conj(output)),
    },
    opaque="all",
)

sigmoid = _unary(
    "sigmoid", kernel=logistic, plain=KernelCase(), vjp=lambda g, out: sigmoid_backward.function(g, out), opaque="all"
)


# ---- sums of exponentials
def _log_sum(exponential: str, logarithm: str, ufunc: str):
    """The kernel of log(e^x + e^y) in some base; complex numbers are ordered by their real parts."""

    def kernel(xp, x, y):
        if x.dtype.kind != "c":
            return getattr(xp, ufunc)(x, y)
        return complex_log_sum(xp, x, y, getattr(xp, exponential), getattr(xp, logarithm))

    return kernel


logaddexp = pointwise(
    "logaddexp(Tensor self, Tensor other) -> Tensor",
    numbers=(),
    supports="float",
    kernel=_log_sum("exp", "log", "logaddexp"),
    inplace=False,
    vjp={
        "self": lambda g, self, other: g / conj(1 + (other - self).exp()),
        "other": lambda g, self, other: g / conj(1 + (self - other).exp()),
    },
)

logaddexp2 = pointwise(
    "logaddexp2(Tensor self, Tensor other) -> Tensor",
    numbers=(),
    supports="real_float",
    kernel=_log_sum("exp2", "log2", "logaddexp2"),
    inplace=False,
    vjp={
        "self": lambda g, self, other: g / conj(1 + (other - self).exp2()),
        "other": lambda g, self, other: g / conj(1 + (self - other).exp2()),
    },
)


# ---- mantissas and exponents
def _check_ldexp(self, other) -> None:
    if other.dtype is dtypes.bool and self.dtype.is_floating_point:
        raise NotImplementedError("\"ldexp_cpu_exp\" not implemented for 'Bool'")


ldexp = pointwise(
    "ldexp.Tensor(Tensor self, Tensor other) -> Tensor",
    promote=INT_TO_FLOAT,
    numbers=(),
    check=_check_ldexp,
    kernel=lambda xp, x, y: x * xp.exp2(y),
    inplace="function",
    vjp={
        "self": lambda g, other: g * conj(other.exp2()),
        "other": lambda g, out: g * conj(out) * LN2,
    },
)


def _frexp_spec(self) -> tuple[Spec, Spec]:
    if not self.dtype.is_floating_point:
        raise RuntimeError("torch.frexp() only supports floating-point dtypes")
    return Spec(self.shape, self.dtype), Spec(self.shape, dtypes.int32)


def _frexp(xp, x):
    if x.dtype.kind in "biuc":
        raise RuntimeError("torch.frexp() only supports floating-point dtypes")
    mantissa, exponent = xp.frexp(x if x.dtype.itemsize > 2 else x.astype(xp.float32))
    return xp.asarray(mantissa).astype(x.dtype), xp.where(xp.isfinite(mantissa), exponent, 0).astype(xp.int32)


def _frexp_out(result, out) -> None:
    if out.dtype is not result.dtype:
        wanted = (
            "exponent to have int dtype"
            if result.dtype is dtypes.int32
            else f"mantissa to have dtype {c_name(result.dtype)}"
        )
        raise RuntimeError(f"torch.frexp() expects {wanted} but got {c_name(out.dtype)}")


frexp = operator(
    "frexp.Tensor(Tensor self) -> (Tensor mantissa, Tensor exponent)",
    kernel=_frexp,
    strides=elementwise,
    meta=_frexp_spec,
    check_out=_frexp_out,
    vjp={"self": lambda gs, exponent, self_dtype: gs[0] / exponent.to(self_dtype).exp2()},
)
