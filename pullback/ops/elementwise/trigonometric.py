"""Trigonometric and hyperbolic functions of elements, their inverses, and angles in degrees.

Integers become the default float first; rules multiply by the conjugate of the derivative.
"""

from __future__ import annotations

import math

from ..eager.elementwise import KernelCase
from ..family.pointwise import INT_TO_FLOAT, pointwise
from .arithmetic import conj
from .array_kernels import number


def _unary(name: str, ufunc: str, vjp, *aliases: str, **rules):
    return pointwise(
        f"{name}(Tensor self) -> Tensor",
        promote=INT_TO_FLOAT,
        numbers=(),
        ufunc=ufunc,
        inplace="function",
        aliases=aliases,
        vjp=vjp,
        **rules,
    )


def _acosh_slope(x):
    """1 / sqrt(x² - 1), on the branch of `acosh`, which the product of two roots is on."""
    return (x - 1).rsqrt() * (x + 1).rsqrt() if x.dtype.is_complex else (x * x - 1).rsqrt()


sin = _unary("sin", "sin", lambda g, self: g * conj(self.cos()), zero="kept")
cos = _unary("cos", "cos", lambda g, self: g * -conj(self.sin()))
tan = _unary("tan", "tan", lambda g, out: g * conj(1 + out * out), autocast_cuda="float32", zero="kept")
asin = _unary(
    "asin",
    "arcsin",
    lambda g, self: g * conj((1 - self * self).rsqrt()),
    "arcsin",
    autocast_cuda="float32",
    zero="kept",
)
acos = _unary("acos", "arccos", lambda g, self: g * -conj((1 - self * self).rsqrt()), "arccos", autocast_cuda="float32")
atan = _unary("atan", "arctan", lambda g, self: g / conj(self * self + 1), "arctan", zero="kept")
sinh = _unary("sinh", "sinh", lambda g, self: g * conj(self.cosh()), autocast_cuda="float32", zero="kept")
cosh = _unary("cosh", "cosh", lambda g, self: g * conj(self.sinh()), autocast_cuda="float32")
asinh = _unary("asinh", "arcsinh", lambda g, self: g * conj((self * self + 1).rsqrt()), "arcsinh", zero="kept")
acosh = _unary("acosh", "arccosh", lambda g, self: g * conj(_acosh_slope(self)), "arccosh")
atanh = _unary("atanh", "arctanh", lambda g, self: g / conj(1 - self * self), "arctanh", zero="kept")


def _tanh_slope(xp, g, y):
    slope = number(xp, 1, y) - y * y
    return g * (xp.conjugate(slope) if y.dtype.kind == "c" else slope)


tanh_backward = pointwise(
    "tanh_backward(Tensor grad_output, Tensor output) -> Tensor",
    kernel=_tanh_slope,
    plain=KernelCase(),
    function=False,
    method=False,
    inplace=False,
    vjp={
        "grad_output": lambda g, output: tanh_backward.function(g, conj(output)),
        "output": lambda g, grad_output, output: conj(g) * (-2 * conj(output) * grad_output),
    },
    opaque="all",
)

tanh = _unary("tanh", "tanh", lambda g, out: tanh_backward.function(g, out), opaque="all", zero="kept")


def _atan2_rule(g, self, other, mask):
    square = self * self + other * other
    scaled = g * square.reciprocal().masked_fill(square == 0, 0)  # at the origin there is no slope: as PyTorch, none
    return scaled * other if mask[0] else None, scaled * -self if mask[1] else None


atan2 = pointwise(
    "atan2(Tensor self, Tensor other) -> Tensor",
    promote=INT_TO_FLOAT,
    numbers=(),
    supports="real",
    ufunc="arctan2",
    direct="real_float",
    aliases=("arctan2",),
    vjp={("self", "other"): _atan2_rule},
    autocast_cuda="widest",
)


# ---- degrees
def _real_only(name: str):
    def check(self) -> None:
        if self.dtype.is_complex:
            raise RuntimeError(f"{name} is not supported for complex tensors.")

    return check


def _angle_unit(name: str, factor: float, node: str):
    return pointwise(
        f"{name}(Tensor self) -> Tensor",
        promote=INT_TO_FLOAT,
        numbers=(),
        check=_real_only(name),
        kernel=lambda xp, x: x * xp.asarray(factor, dtype=x.dtype),
        inplace="function",
        node=node,
        vjp=lambda g: g * factor,
        zero="linear",
    )


deg2rad = _angle_unit("deg2rad", math.pi / 180, "Deg2RadBackward0")
rad2deg = _angle_unit("rad2deg", 180 / math.pi, "Rad2DegBackward0")
