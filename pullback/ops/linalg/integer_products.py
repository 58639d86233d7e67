"""Products of small integers that are summed in wide ones: `_int_mm`, the step of quantized layers.

In: a matrix of int8 or uint8, and one of int8. Out: their product in int32, exact as long as it fits.
"""

from __future__ import annotations

from ...core import dtype as dtypes
from ...core.tensor import Tensor
from ..family.base import operator
from ..system.operator import NONDIFFERENTIABLE, Spec

_LEFT = (dtypes.int8, dtypes.uint8)


def _check(self: Tensor, mat2: Tensor) -> None:
    for name, t in (("self", self), ("mat2", mat2)):
        if t._array.ndim != 2:
            raise RuntimeError(f"_int_mm: Expected {name} to be of dimension 2 but got {t._array.ndim}")
    if self._array.shape[1] != mat2._array.shape[0]:
        raise RuntimeError(
            f"_int_mm: self.size(1) needs to match mat2.size(0) but got {self._array.shape[1]} and {mat2._array.shape[0]}"
        )
    if self.dtype not in _LEFT:
        raise RuntimeError(f"_int_mm: Expected self dtype to be int8 or uint8 but got {self.dtype}")
    if mat2.dtype is not dtypes.int8:
        raise RuntimeError(f"_int_mm: Expected mat2 dtype to be int8 but got {mat2.dtype}")


def _product(xp, a, b):
    """By the floating product, which is exact for integers of this size and far faster than one of integers."""
    return xp.matmul(a.astype(xp.float64), b.astype(xp.float64)).astype(xp.int64).astype(xp.int32)


int_mm = operator(
    "_int_mm(Tensor self, Tensor mat2) -> Tensor",
    kernel=_product,
    check=_check,
    meta=lambda self, mat2: Spec((self._array.shape[0], mat2._array.shape[1]), dtypes.int32),
    vjp=NONDIFFERENTIABLE,
    method=False,
    cost="compute",
)
