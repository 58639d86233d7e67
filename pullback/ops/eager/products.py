"""The plain case of products of two matrices of one floating dtype, with or without an addend."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...core import dtype as dtypes
from ...runtime.products import multiply
from .text import Call, PlainCase, all_of, block, finish, is_plain

if TYPE_CHECKING:
    from ..system.operator import Operator

__all__ = ["DIRECT", "ProductCase"]

DIRECT = frozenset((dtypes.float32, dtypes.float64, dtypes.complex64, dtypes.complex128))
_MATRICES = "a.ndim == 2 and b.ndim == 2 and a.shape[1] == b.shape[0]"


def _matmul_lines(call: Call) -> list[str]:
    x, y = call.values
    fits = all_of("mode < 2", f"d is {y}.dtype", "d in DIRECT", _MATRICES)
    return block(
        f"if {is_plain([x, y], *call.no_out)}:",
        f"a = {x}._array",
        f"b = {y}._array",
        f"d = {x}.dtype",
        "mode = ambient.mode",
        *block(f"if {fits}:", "r = multiply(a, b)", *finish("d", [x, y], f"recorder.record(t, {x}, {y})")),
    )


def _addmm_lines(call: Call) -> list[str]:
    bias, x, y, beta, alpha = call.values
    ones = f"{beta}.__class__ is int and {alpha}.__class__ is int and {beta} == {alpha} == 1"
    addend = "(c.shape == b.shape[1:] or c.shape == (a.shape[0], b.shape[1]))"
    alike = all_of("mode < 2", f"d is {y}.dtype", f"d is {bias}.dtype", "d in DIRECT", ones, _MATRICES, addend)
    record = f"recorder.record(t, {call.given})"
    return block(
        f"if {is_plain([bias, x, y], *call.no_out)}:",
        f"a = {x}._array",
        f"b = {y}._array",
        f"c = {bias}._array",
        f"d = {x}.dtype",
        "mode = ambient.mode",
        *block(f"if {alike}:", "r = multiply(a, b, c)", *finish("d", [bias, x, y], record)),
    )


_LINES = {"matmul": _matmul_lines, "addmm": _addmm_lines}


class ProductCase(PlainCase):
    """Plain matrices of one floating dtype are multiplied (`"matmul"`), and added to a bias (`"addmm"`), where they stand.

    The call is recorded as the operator `recorded_as`, where that is another than the one that is declared.
    """

    __slots__ = ("product", "recorded_as")

    def __init__(self, product: str, recorded_as: Operator | None = None):
        if product not in _LINES:
            raise ValueError(f"a product is one of {', '.join(_LINES)}, but got {product!r}")
        self.product, self.recorded_as = product, recorded_as

    def lines(self, call: Call) -> list[str]:
        return _LINES[self.product](call)

    def names(self, op: Operator) -> dict:
        return {"DIRECT": DIRECT, "multiply": multiply, "recorder": self.recorded_as or op}
