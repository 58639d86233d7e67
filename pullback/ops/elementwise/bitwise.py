"""Bits of integers and truth of elements: and, or, xor, not, shifts.

Bitwise operators take integers and booleans; logical ones take anything and give booleans. Shifts by more than the
width, and negative ones, empty the number or fill it with its sign.
"""

from __future__ import annotations

from ...core import dtype as dtypes
from ..family.pointwise import pointwise
from ..system.operator import NONDIFFERENTIABLE


def _bitwise(name: str, ufunc: str, supports: str, kernel_name: str, scalar: str):
    """An operator on two integers, with the overloads that take a number on either side."""
    shared = dict(
        supports=supports,
        kernel_name=kernel_name,
        kernel=lambda xp, x, y: getattr(xp, ufunc)(x, y),
        vjp=NONDIFFERENTIABLE,
    )
    hidden = dict(operands=("self", "other"), numbers=(), function=False, method=False)
    right = pointwise(f"{name}.{scalar}(Tensor self, Scalar other) -> Tensor", inplace="hidden", **hidden, **shared)
    left = pointwise(f"{name}.Scalar_Tensor(Scalar self, Tensor other) -> Tensor", inplace=False, **hidden, **shared)
    return pointwise(
        f"{name}.Tensor(Tensor self, Tensor other) -> Tensor",
        ufunc=ufunc,
        overloads={"other": right, "self": left},
        **shared,
    )


bitwise_and = _bitwise("bitwise_and", "bitwise_and", "int", "bitwise_and_cpu", "Scalar")
bitwise_or = _bitwise("bitwise_or", "bitwise_or", "int", "bitwise_or_cpu", "Scalar")
bitwise_xor = _bitwise("bitwise_xor", "bitwise_xor", "int", "bitwise_xor_cpu", "Scalar")
bitwise_left_shift = _bitwise("bitwise_left_shift", "left_shift", "integer", "lshift_cpu", "Tensor_Scalar")
bitwise_right_shift = _bitwise("bitwise_right_shift", "right_shift", "integer", "rshift_cpu", "Tensor_Scalar")

bitwise_not = pointwise(
    "bitwise_not(Tensor self) -> Tensor", numbers=(), supports="int", ufunc="invert", vjp=NONDIFFERENTIABLE
)


def _logical(name: str):
    return pointwise(f"{name}(Tensor self, Tensor other) -> Tensor", numbers=(), ufunc=name, result=dtypes.bool)


logical_and = _logical("logical_and")
logical_or = _logical("logical_or")
logical_xor = _logical("logical_xor")
logical_not = pointwise("logical_not(Tensor self) -> Tensor", numbers=(), ufunc="logical_not", result=dtypes.bool)
