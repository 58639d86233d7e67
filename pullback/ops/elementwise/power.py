"""Powers of elements: `pow` with tensors and numbers on either side, `square`, `float_power`.

What always holds: integers to negative powers are refused where the exponent is one number, and are 0, 1 or -1 where it
is a tensor; exponents that are one small number (2, 3, 0.5, -1, ...) are computed by products and roots.
"""

from __future__ import annotations

import cmath
import math
from typing import Any

import numpy as np

from ...core import dtype as dtypes
from ...core import elements
from ...core.dtype import INT
from ...core.promotion import result_type
from ...core.tensor import Tensor
from ..eager.elementwise import KernelCase
from ..family.pointwise import pointwise
from ..system.calls import front
from ..system.general import write_out
from ..system.operator import exports
from ..system.scalars import check_integers, is_complex
from .arithmetic import conj, zeros_like


# ---- kernels
def _integer_power(xp, x, y):
    """Powers of integers; 1 and -1 alone have integer inverses, everything else to a negative power is 0."""
    if y.dtype.kind == "u" or not xp.any(y < 0):
        return xp.power(x, y)
    inverse = xp.where(x == 1, 1, xp.where(x == -1, 1 - 2 * (y & 1), 0)).astype(x.dtype)
    return xp.where(y < 0, inverse, xp.power(x, xp.maximum(y, 0)))


def power(xp, x, y):
    """`x ** y` on arrays of one dtype."""
    if x.dtype.kind in "iu":
        return _integer_power(xp, x, y)
    result = xp.power(x, y)
    return _at_zero(xp, x, y, result) if x.dtype.kind == "c" else result


def _at_zero(xp, x, y, result):
    """Powers of complex zeros as the exponential of y log(x) has them: infinite to negative powers, undefined to that of 0."""
    zero = x == 0
    if not zero.any():
        return result
    result = xp.where(zero & (y == 0), complex(math.nan, math.nan), result)
    return xp.where(zero & (y.real < 0), complex(math.inf, math.nan), result).astype(x.dtype)


def _times(xp, product, x):
    """A product of its own times an array, where it lies."""
    return xp.multiply(product, x, out=product) if getattr(product, "ndim", 0) else product * x


_CUBES: Any = elements.table.get("rows", {}).get(("cube",))  # a loop that reads once and writes once


def _cube(xp, x):
    """The third power, as the square times the number."""
    if _CUBES is not None and x.__class__ is np.ndarray and x.dtype.char in "fd" and x.flags.c_contiguous:
        return _CUBES(x, out=...)
    return _times(xp, xp.square(x), x)


_SHORT = {
    0: lambda xp, x: xp.ones_like(x),
    1: lambda xp, x: x.copy(),
    2: lambda xp, x: xp.square(x),
    3: _cube,
    4: lambda xp, x: xp.square(xp.square(x)),
}
_SHORT_FLOAT = {
    0.5: lambda xp, x: xp.sqrt(x),
    -0.5: lambda xp, x: 1 / xp.sqrt(x),
    -1: lambda xp, x: xp.reciprocal(x),
    -2: lambda xp, x: xp.reciprocal(xp.square(x)),
}


def _power_number(xp, x, exponent):
    n = exponent if not hasattr(exponent, "item") else exponent.item()
    short = _SHORT.get(n) or (_SHORT_FLOAT.get(n) if x.dtype.kind in "fc" else None)
    exponents = xp.asarray(n, dtype=x.dtype)
    if short is None:
        return power(xp, x, exponents)
    return _at_zero(xp, x, exponents, short(xp, x)) if x.dtype.kind == "c" and n.real < 0 else short(xp, x)


# ---- rules
def _check_number(self, exponent) -> None:
    if self.dtype.category <= INT and isinstance(exponent, int) and exponent < 0:
        raise RuntimeError("Integers to negative integer powers are not allowed.")
    if exponent.__class__ is int and exponent > 127 and self.dtype.category <= INT:
        check_integers(result_type(self, exponent), exponent)


def _base_rule(g, self, exponent):
    """The gradient of `self ** exponent` for an exponent that is one number."""
    if exponent == 0:
        return zeros_like(g)
    lower = self if exponent == 2 else self.pow(exponent - 1)
    return g * conj(exponent * lower)


def _tensor_base_rule(g, self, exponent):
    if not isinstance(exponent, Tensor):
        return _base_rule(g, self, exponent)
    return g * conj((exponent * self.pow(exponent - 1)).masked_fill(exponent == 0, 0))


def _exponent_rule(g, self, exponent, out):
    """The gradient for the exponent; 0 ** y is flat where y is not negative."""
    if not isinstance(self, Tensor):
        return _number_base_rule(g, self, exponent, out)
    real = exponent.real if exponent.dtype.is_complex else exponent
    flat = (self == 0).logical_and(real >= 0)
    return g * conj(out * self.log()).masked_fill(flat, 0)


def _number_base_rule(g, self, exponent, out):
    """The gradient for the exponent of a power of one number."""
    if self == 0:
        real = exponent.real if exponent.dtype.is_complex else exponent
        slope = conj(out * -math.inf)
        return g * slope.masked_fill(real >= 0, 0)
    if isinstance(self, complex) or exponent.dtype.is_complex:
        return g * conj(out * cmath.log(self))
    return g * (out * (math.log(self) if self > 0 else math.nan))


# ---- operators
pow_number = pointwise(
    "pow.Tensor_Scalar(Tensor self, Scalar exponent) -> Tensor",
    numbers=(),
    operands=("self", "exponent"),
    fitting=("exponent",),
    check=_check_number,
    supports="all",
    kernel_name="pow",
    kernel=lambda xp, x, y: _power_number(xp, x, y) if x.dtype.kind != "b" else _boolean_power(xp, x, y),
    plain=KernelCase(),
    function=False,
    method=False,
    inplace="hidden",
    vjp=_base_rule,
    autocast_cuda="float32",
)

pow_of_number = pointwise(
    "pow.Scalar(Scalar self, Tensor exponent) -> Tensor",
    numbers=(),
    operands=("self", "exponent"),
    kernel_name="pow",
    kernel=lambda xp, x, y: power(xp, x, y) if x.dtype.kind != "b" else _boolean_power(xp, x, y),
    function=False,
    method=False,
    inplace=False,
    number=2,
    vjp={"exponent": _number_base_rule},
    autocast_cuda="float32",
)

pow_ = pointwise(
    "pow.Tensor_Tensor(Tensor self, Tensor exponent) -> Tensor",
    supports="number",
    kernel_name="pow",
    ufunc="power",
    direct="real_float",
    kernel=power,
    overloads={"exponent": pow_number, "self": pow_of_number},
    number=1,
    vjp={"self": _tensor_base_rule, "exponent": _exponent_rule},
    autocast_cuda="float32",
)


def _boolean_power(xp, x, y):
    """Powers of booleans by one boolean number: 0 ** 0 is 1."""
    return xp.logical_or(x, xp.logical_not(y))


square = pointwise(
    "square(Tensor self) -> Tensor",
    numbers=(),
    ufunc="square",
    direct="number",
    node="PowBackward0",
    body=lambda self: pow_number(self, 2),
    inlines=("pow.Tensor_Scalar",),
    inplace="hidden",
    vjp=lambda g, self: g * conj(2 * self),
    zero="kept",
)


@front("torch.square_", "Tensor.square_")
def square_(input: Tensor) -> Tensor:
    """`input **= 2`."""
    return pow_number.inplace_function(input, 2)


# ---- powers in double precision
def _wide(*operands) -> dtypes.dtype:
    return dtypes.complex128 if any(map(is_complex, operands)) else dtypes.float64


def _widened(x, d: dtypes.dtype):
    if isinstance(x, Tensor):
        return x.to(d)
    return complex(x) if d.is_complex else float(x)


@front("torch.float_power", "Tensor.float_power")
def float_power(input, exponent, *, out: Tensor | None = None) -> Tensor:
    """`input ** exponent` in double precision, real or complex."""
    if not isinstance(input, Tensor) and not isinstance(exponent, Tensor):
        raise TypeError(
            "float_power() received an invalid combination of arguments - got "
            f"({type(input).__name__}, {type(exponent).__name__}), but expected one of:\n"
            " * (Tensor input, Tensor exponent, *, Tensor out = None)\n"
            " * (Number self, Tensor exponent, *, Tensor out = None)\n"
            " * (Tensor input, Number exponent, *, Tensor out = None)\n"
        )
    d = _wide(input, exponent)
    base, exponent = _widened(input, d), _widened(exponent, d)
    if out is None:
        return exports["torch"]["pow"](base, exponent)
    if out.dtype is not d:
        raise RuntimeError(
            f"the output given to float_power has dtype {out.dtype.scalar_name} but the operation's result requires "
            f"dtype {d.scalar_name}"
        )
    return write_out(pow_, (base, exponent), out)


@front("Tensor.float_power_")
def float_power_(input: Tensor, exponent) -> Tensor:
    """`float_power` in place, for tensors that are of double precision already."""
    d = _wide(input, exponent)
    if input.dtype is not d:
        raise RuntimeError(
            f"the base given to float_power_ has dtype {input.dtype.scalar_name} but the operation's result requires "
            f"dtype {d.scalar_name}"
        )
    return pow_.inplace_function(input, _widened(exponent, d))
