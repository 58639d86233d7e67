"""Bessel functions, modified Bessel functions, their scaled forms, and the Airy function.

In: one real tensor, integers promoted. Out: the same shape.
Always: the second kinds are NaN to the left of zero and infinite at zero.

Past |x| = 5 PyTorch uses J = s (P cos t - Q sin t) and Y = s (P sin t + Q cos t), where Q is a quotient of polynomials
in z = 25 / x^2 whose denominator is z^7 + c6 z^6 + ... + c0; its code leaves z^7 out. That moves results by up to 3e-7
near x = 5 and by less and less beyond. Numbers should not change when a program moves here, so the same is done: Q is
recovered from the exact J and Y, and what the missing term does to it is added.
"""

from __future__ import annotations

import math
from typing import Any

from ..system.operator import NONDIFFERENTIABLE
from .special import library, special, special_only

Array = Any

# c6 ... c0 of the denominator of Q, by order.
DENOMINATOR = (
    (
        6.43178256118178023184e1, 8.56430025976980587198e2, 3.88240183605401609683e3, 7.24046774195652478189e3,
        5.93072701187316984827e3, 2.06209331660327847417e3, 2.42005740240291393179e2,
    ),
    (
        7.42373277035675149943e1, 1.05644886038262816351e3, 4.98641058337653607651e3, 9.56231892404756170795e3,
        7.99704160447350683650e3, 2.82619278517639096600e3, 3.36093607810698293419e2,
    ),
)  # fmt: skip


def missing_term(xp: Any, x: Array, j: Array, y: Array, order: int) -> tuple[Array, Array]:
    """What the missing leading term adds to J and Y of that order, for positive x."""
    far = (x > 5) & xp.isfinite(x)
    x = xp.where(far, x, 10.0)
    angle = x - (2 * order + 1) * (math.pi / 4)
    sine, cosine = xp.sin(angle), xp.cos(angle)
    z = 25 / (x * x)
    rest = xp.zeros_like(z)
    for c in DENOMINATOR[order]:
        rest = rest * z + c
    shift = xp.where(far, (y * cosine - j * sine) * z**7 / rest, 0)
    return -shift * sine, shift * cosine


def _first_kind(order: int) -> Any:
    def kernel(xp: Any, x: Array) -> Array:
        size = xp.abs(x)
        j, y = (getattr(library(xp), f"{kind}{order}")(size) for kind in "jy")
        value = j + missing_term(xp, size, j, y, order)[0]
        return xp.where(xp.signbit(x), -value, value) if order else value

    return kernel


def _second_kind(order: int) -> Any:
    def kernel(xp: Any, x: Array) -> Array:
        j, y = (getattr(library(xp), f"{kind}{order}")(x) for kind in "jy")
        return y + missing_term(xp, x, j, y, order)[1]

    return kernel


for _order in (0, 1):
    special_only(
        f"special_bessel_j{_order}(Tensor self) -> Tensor",
        kernel=_first_kind(_order),
        kernel_name=f"bessel_j{_order}_cpu",
        vjp=NONDIFFERENTIABLE,
    )
    special_only(
        f"special_bessel_y{_order}(Tensor self) -> Tensor",
        kernel=_second_kind(_order),
        kernel_name=f"bessel_y{_order}_cpu",
        vjp=NONDIFFERENTIABLE,
    )
    for _kind in "ik":
        _name = f"modified_bessel_{_kind}{_order}"
        special_only(
            f"special_{_name}(Tensor self) -> Tensor",
            f"{_kind}{_order}",
            kernel_name=f"{_name}_cpu",
            vjp=NONDIFFERENTIABLE,
        )
    _name = f"scaled_modified_bessel_k{_order}"
    special_only(
        f"special_{_name}(Tensor x) -> Tensor", f"k{_order}e", kernel_name=f"{_name}_cpu", vjp=NONDIFFERENTIABLE
    )


def _spherical_bessel_j0(xp: Any, x: Array) -> Array:
    return xp.where(x == 0, 1, xp.where(xp.isinf(x), 0, xp.sin(x) / x)).astype(x.dtype)


def _airy_ai(xp: Any, x: Array) -> Array:
    """Past 103.892 the value is below the smallest double, and the library would answer NaN."""
    return xp.where((x > 103.892) & xp.isfinite(x), 0, library(xp).airy(x)[0]).astype(x.dtype)


spherical_bessel_j0 = special_only(
    "special_spherical_bessel_j0(Tensor x) -> Tensor",
    kernel=_spherical_bessel_j0,
    kernel_name="spherical_bessel_j0_cpu",
    vjp=NONDIFFERENTIABLE,
)
airy_ai = special_only(
    "special_airy_ai(Tensor x) -> Tensor",
    kernel=_airy_ai,
    kernel_name="airy_ai_cpu",
    vjp=NONDIFFERENTIABLE,
    over_cpu=True,
)


# ---- modified Bessel functions of the first kind, the differentiable ones
def _i1_slope(g: Any, self: Any, out: Any) -> Any:
    at_zero = self == 0
    safe = self.masked_fill(at_zero, 1)
    return g * (i0(self) - out / safe).masked_fill(at_zero, 0.5)


def _i1e_slope(g: Any, self: Any, out: Any) -> Any:
    at_zero = self == 0
    safe = self.masked_fill(at_zero, 1)
    return g * (i0e(self) - out * (self.sgn() + 1 / safe)).masked_fill(at_zero, 0.5)


i0 = special("i0(Tensor self) -> Tensor", "i0", inplace="function", vjp=lambda g, self: g * i1(self))
i0e = special_only(
    "special_i0e(Tensor self) -> Tensor", "i0e", vjp=lambda g, self, out: g * (i1e(self) - self.sgn() * out)
)
i1 = special_only("special_i1(Tensor self) -> Tensor", "i1", vjp=_i1_slope)
i1e = special_only("special_i1e(Tensor self) -> Tensor", "i1e", vjp=_i1e_slope)
