"""Special functions: the gamma and error function families, entropies, sinc, logit, zeta.

In: tensors; integers are promoted to the default float, complex numbers only where PyTorch takes them.
Out: element-wise results. Poles, infinities and NaN follow PyTorch where it defines them.
Always: SciPy (or its CuPy mirror) is imported at the first call, never at import. The names of `torch.special` are here
or in `special_bessel` and `special_polynomials`; those that other modules own appear at the end, as calls to them.
"""

from __future__ import annotations

import math
from functools import cache
from importlib import import_module
from typing import Any

import numpy as np

from ...core.elements import table as loops
from ...core.tensor import Tensor
from ..family.base import composite
from ..family.pointwise import INT_TO_FLOAT, pointwise
from ..system.calls import front
from ..system.operator import Operator, missing
from .arithmetic import conj

Array = Any


@cache
def library(xp: Any) -> Any:
    """The special-function module that works on `xp`'s arrays."""
    return import_module("scipy.special" if xp.__name__ == "numpy" else "cupyx.scipy.special")


def special(schema: str, name: str | None = None, *, kernel: Any = None, **rules: Any) -> Operator:
    """Declare a real-valued special function; `name` is the library's function that is the whole kernel."""
    kernel = kernel or (lambda xp, *args: getattr(library(xp), name)(*args))
    return pointwise(
        schema,
        promote=rules.pop("promote", INT_TO_FLOAT),
        kernel=kernel,
        supports=rules.pop("supports", "real"),
        **rules,
    )


def a_tensor_or_two(name: str, first: str, second: str) -> Any:
    """A check: of two operands one may be a number, not both."""
    shown = "input" if first == "self" else first
    forms = (f"Tensor {shown}, Tensor {second}", f"Number {first}, Tensor {second}", f"Tensor {shown}, Number {second}")

    def check(a: Any, b: Any) -> None:
        if not isinstance(a, Tensor) and not isinstance(b, Tensor):
            signatures = "".join(f"\n * ({form}, *, Tensor out = None)" for form in forms)
            got = f"{type(a).__name__}, {type(b).__name__}"
            raise TypeError(
                f"{name}() received an invalid combination of arguments - got ({got}), "
                f"but expected one of:{signatures}\n"
            )

    return check


def two_tensors(name: str) -> Any:
    """A check: neither operand may be a number."""

    def check(self: Any, other: Any) -> None:
        for position, (shown, value) in enumerate((("input", self), ("other", other)), 1):
            if not isinstance(value, Tensor):
                raise TypeError(
                    f"{name}(): argument '{shown}' (position {position}) must be Tensor, not {type(value).__name__}"
                )

    return check


def special_only(schema: str, name: str | None = None, **rules: Any) -> Operator:
    """One that has no in-place form and no method: it lives in `torch.special` alone."""
    return special(schema, name, inplace=False, **rules)


# ---- the gamma function's family
def _lgamma(xp: Any, x: Array) -> Array:
    return xp.where(xp.isneginf(x), xp.asarray(math.inf, x.dtype), library(xp).gammaln(x))


def _trigamma(xp: Any, x: Array) -> Array:
    """zeta(2, x), reflected at one half: zeta has no continuation to the left of zero."""
    loop = loops.get("rows", {}).get(("trigamma",)) if xp is np and x.dtype == np.float32 else None
    if loop is not None and not (x < -1e4).any():  # whose sines take more than the loop has
        return np.asarray(loop(x))
    left = x < 0.5
    value = library(xp).zeta(xp.asarray(2, x.dtype), xp.where(left, 1 - x, x))
    return xp.where(left, (math.pi / xp.sin(math.pi * x)) ** 2 - value, value).astype(x.dtype)


def _polygamma(xp: Any, n: int, x: Array) -> Array:
    if n < 2:
        return _trigamma(xp, x) if n else library(xp).psi(x)
    value = library(xp).zeta(xp.asarray(n + 1, x.dtype), x) * math.gamma(n + 1)
    return (value if n % 2 else -value).astype(x.dtype)


def _check_polygamma(n: int, self: Any) -> None:
    if n < 0:
        raise RuntimeError("polygamma(n, x) does not support negative n.")


def _mvlgamma(xp: Any, x: Array, p: int) -> Array:
    loop = loops.get("lgamma.default", {}).get(()) if xp is np and x.dtype == np.float32 else None
    total = sum(_lgamma(xp, x - j / 2) if loop is None else loop(x - j / 2) for j in range(p))
    return (total + p * (p - 1) / 4 * math.log(math.pi)).astype(x.dtype)


def _check_mvlgamma(self: Any, p: int) -> None:
    if p < 1:
        raise RuntimeError("p has to be greater than or equal to 1")


digamma = special(
    "digamma(Tensor self) -> Tensor", "psi", kernel_name="digamma", vjp=lambda g, self: g * polygamma(1, self)
)
lgamma = special(
    "lgamma(Tensor self) -> Tensor",
    kernel=_lgamma,
    kernel_name="lgamma_vml_cpu",
    vjp=lambda g, self: g * self.digamma(),
)
polygamma = special(
    "polygamma(int n, Tensor self) -> Tensor",
    kernel=_polygamma,
    kernel_name="polygamma",
    check=_check_polygamma,
    inplace=False,
    method=False,
    vjp=lambda g, n, self: g * polygamma(n + 1, self),
)


@front("Tensor.polygamma")
def polygamma_method(input: Any, n: int) -> Any:
    """polygamma(n, input)"""
    return polygamma(n, input)


@front("Tensor.polygamma_")
def polygamma_in_place(input: Any, n: int) -> Any:
    """polygamma(n, input), written to input"""
    return input.copy_(polygamma(n, input))


mvlgamma = special(
    "mvlgamma(Tensor self, int p) -> Tensor",
    kernel=_mvlgamma,
    check=_check_mvlgamma,
    vjp=lambda g, self, p: g * sum((self - j / 2).digamma() for j in range(p)),
)


def _igamma_slope(g: Any, self: Any, other: Any) -> Any:
    return g * ((self - 1) * other.log() - other - self.lgamma()).exp()


igamma = special(
    "igamma(Tensor self, Tensor other) -> Tensor",
    "gammainc",
    check=two_tensors("igamma"),
    promote="promote",
    supports="float",
    vjp={"self": missing("igamma: input"), "other": _igamma_slope},
)
igammac = special(
    "igammac(Tensor self, Tensor other) -> Tensor",
    "gammaincc",
    check=two_tensors("igammac"),
    promote="promote",
    supports="float",
    vjp={"self": missing("igammac: input"), "other": lambda g, self, other: -_igamma_slope(g, self, other)},
)
zeta = special_only(
    "special_zeta(Tensor self, Tensor other) -> Tensor",
    "zeta",
    check=a_tensor_or_two("special_zeta", "self", "other"),
    kernel_name="zeta_cpu",
    vjp={"self": missing("zeta"), "other": lambda g, self, other: g * -self * zeta(self + 1.0, other)},
)

# ---- the error function's family
_SLOPE = 2 / math.sqrt(math.pi)

erf = special(
    "erf(Tensor self) -> Tensor",
    "erf",
    lower=lambda o, x: o.erf(x),
    inplace="function",
    vjp=lambda g, self: g * _SLOPE * (-(self * self)).exp(),
    zero="kept",
)
erfc = special(
    "erfc(Tensor self) -> Tensor",
    "erfc",
    lower=lambda o, x: o.erfc(x),
    inplace="function",
    vjp=lambda g, self: g * -_SLOPE * (-(self * self)).exp(),
)
erfinv = special(
    "erfinv(Tensor self) -> Tensor",
    kernel=lambda xp, x: xp.copysign(library(xp).erfinv(x), x),  # SciPy's drops the sign of zero in double precision
    vjp=lambda g, self: g * self.erfinv().pow(2).exp() * (0.5 * math.sqrt(math.pi)),
    autocast_cuda="float32",
    zero="kept",
)
erfcx = special_only(
    "special_erfcx(Tensor self) -> Tensor",
    "erfcx",
    kernel_name="erfcx_cpu",
    vjp=lambda g, self, out: g * (2 * self * out - _SLOPE),
)
ndtr = special_only(
    "special_ndtr(Tensor self) -> Tensor",
    "ndtr",
    vjp=lambda g, self: g * (self * self * -0.5).exp() / math.sqrt(2 * math.pi),
)
ndtri = special_only(
    "special_ndtri(Tensor self) -> Tensor",
    "ndtri",
    kernel_name="ndtri_cpu",
    vjp=lambda g, out: g * math.sqrt(2 * math.pi) * (out * out * 0.5).exp(),
)
log_ndtr = special_only(
    "special_log_ndtr(Tensor self) -> Tensor",
    "log_ndtr",
    kernel_name="log_ndtr_cpu",
    vjp=lambda g, self: g / erfcx(self * -math.sqrt(0.5)) * math.sqrt(2 / math.pi),
)

# ---- products with logarithms, and what is left
entr = special_only(
    "special_entr(Tensor self) -> Tensor", "entr", kernel_name="entr", vjp=lambda g, self: g * (-self.log() - 1)
)


def _xlog_rules(log: str, pole: float) -> dict[str, Any]:
    function = getattr(math, log)

    def slope(g: Any, self: Any, other: Any) -> Any:
        if not hasattr(other, "dtype"):
            value = function(other) if other > pole else -math.inf if other == pole else math.nan
            return (g * value).masked_fill(self == 0, 0) if other <= pole else g * value
        product = xlogy if log == "log" else xlog1py  # zero, not NaN, where no gradient comes in
        return product(g, other).masked_fill((self == 0) & (other <= pole), 0)

    return {"self": slope, "other": lambda g, self, other: g * self / (other - pole if pole else other)}


xlogy = special(
    "xlogy.Tensor(Tensor self, Tensor other) -> Tensor",
    "xlogy",
    check=a_tensor_or_two("xlogy", "self", "other"),
    inplace="function",
    kernel_name="xlogy_cpu",
    vjp=_xlog_rules("log", 0.0),
)
xlog1py = special_only(
    "special_xlog1py(Tensor self, Tensor other) -> Tensor",
    "xlog1py",
    check=a_tensor_or_two("special_xlog1py", "self", "other"),
    kernel_name="xlog1py_cpu",
    vjp=_xlog_rules("log1p", -1.0),
)


def _sinc(xp: Any, x: Array) -> Array:
    scaled = x * math.pi
    return xp.where(x == 0, xp.ones((), x.dtype), xp.sin(scaled) / scaled).astype(x.dtype)


def _sinc_slope(g: Any, self: Any) -> Any:
    scaled = self * math.pi
    square = self * self * math.pi  # zero for small elements too
    slope = (scaled * scaled.cos() - scaled.sin()) / square
    return g * conj(slope.masked_fill(square == 0, 0))


sinc = special("sinc(Tensor self) -> Tensor", kernel=_sinc, inplace="function", supports="all", vjp=_sinc_slope)


def _logit(xp: Any, x: Array, eps: float | None) -> Array:
    if eps is not None:
        # Not clip: where eps > 0.5 the bounds cross, and then the lower bound is looked at first.
        x = xp.where(x < eps, xp.asarray(eps, x.dtype), xp.where(x > 1 - eps, xp.asarray(1 - eps, x.dtype), x))
    return xp.log(x / (1 - x))


def _logit_slope(g: Any, self: Any, eps: float | None) -> Any:
    slope = g / (self * (1 - self))
    if eps is None:
        return slope.masked_fill((self < 0) | (self > 1), math.nan)
    return slope.masked_fill((self < eps) | (self > 1 - eps), 0)


logit = special("logit(Tensor self, float? eps=None) -> Tensor", kernel=_logit, inplace="function", vjp=_logit_slope)


@composite("logit_backward(Tensor grad_output, Tensor self, float? eps=None) -> Tensor", method=False, function=False)
def logit_backward(grad_output: Any, self: Any, eps: float | None) -> Any:
    return _logit_slope(grad_output, self, eps)


# ---- names in torch.special for operators that live elsewhere
_ELSEWHERE = (
    ("digamma(Tensor self)", lambda self: self.digamma()),
    ("psi(Tensor self)", lambda self: self.digamma()),
    ("gammaln(Tensor self)", lambda self: self.lgamma()),
    ("multigammaln(Tensor self, int p)", lambda self, p: self.mvlgamma(p)),
    ("polygamma(int n, Tensor self)", lambda n, self: polygamma(n, self)),
    ("gammainc(Tensor self, Tensor other)", lambda self, other: self.igamma(other)),
    ("gammaincc(Tensor self, Tensor other)", lambda self, other: self.igammac(other)),
    ("erf(Tensor self)", lambda self: self.erf()),
    ("erfc(Tensor self)", lambda self: self.erfc()),
    ("erfinv(Tensor self)", lambda self: self.erfinv()),
    ("exp2(Tensor self)", lambda self: self.exp2()),
    ("expit(Tensor self)", lambda self: self.sigmoid()),
    ("expm1(Tensor self)", lambda self: self.expm1()),
    ("log1p(Tensor self)", lambda self: self.log1p()),
    ("i0(Tensor self)", lambda self: self.i0()),
    ("sinc(Tensor self)", lambda self: self.sinc()),
    ("logit(Tensor self, float? eps=None)", lambda self, eps: self.logit(eps)),
    ("round(Tensor self, *, int decimals=0)", lambda self, decimals: self.round(decimals=decimals)),
    ("xlogy(Tensor self, Tensor other)", lambda self, other: xlogy(self, other)),
)
for _schema, _body in _ELSEWHERE:
    composite(f"special_{_schema} -> Tensor")(_body)
