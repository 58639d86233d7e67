"""The plain case of operators of no family: a kernel that makes all checks itself, or a function that is asked first."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from .text import Call, PlainCase, all_of, block, is_plain, live

if TYPE_CHECKING:
    from ..system.operator import Operator

__all__ = ["CheckedKernelCase", "FunctionCase"]


class FunctionCase(PlainCase):
    """`function(*args)` is asked first: it gives the result, or None where the call takes more than it does."""

    __slots__ = ("function",)

    def __init__(self, function: Callable):
        self.function = function

    def lines(self, call: Call) -> list[str]:
        if call.op.is_view and call.op.native is not None:  # the last plain case asks that first
            return []
        asked = [f"t = plain_case({call.given})", *block("if t is not None:", "return t")]
        return block(f"if {all_of(*call.no_out)}:", *asked) if call.has_out else asked

    def names(self, op: Operator) -> dict:
        return {"plain_case": self.function}


class CheckedKernelCase(PlainCase):
    """Plain tensors, ints and bools go straight to the kernel, which makes all checks itself."""

    __slots__ = ()

    def lines(self, call: Call) -> list[str]:
        others = []
        if call.op.native is not None:  # the last plain case asks that first
            return []
        for v, a in call.arguments:
            if a.is_list or a.optional or a.base not in ("Tensor", "int", "SymInt", "bool"):
                return []
            if a.base != "Tensor":
                others.append(f"{v}.__class__ is {'bool' if a.base == 'bool' else 'int'}")
        arrays = ", ".join(f"{v}._array" if v in call.tensors else v for v in call.values)
        run = block(
            "if mode < 2:",
            f"t = wrap_array(kernel(np, {arrays}), cpu)",
            *block(f"if {live(call.tensors)}:", f"return op.record(t, {call.given})"),
            "return t",
        )
        return block(f"if {is_plain(call.tensors, *others, *call.no_out)}:", "mode = ambient.mode", *run)
