"""Which loops give the bits that eager calls give: with deterministic algorithms, no others are used.

In: the steps that a node was lowered to. Out: why an eager call of its operator may round otherwise (`differs`), or None.

What always holds: each operation of an element-wise loop is rounded once, as IEEE 754 says, so that its order alone decides; the order
is the kernel's, which the loop was read from. Functions that are rounded otherwise (exp, tanh) are the same text in both where eager calls
of the operator run a printed loop (`codegen.eager`), and the array library's where they do not. Other operators have kernels of their own,
with orders of their own: their loops are used where they only move elements, or compute with integers.
"""

from __future__ import annotations

from collections.abc import Iterable

from ..core import dtype as dtypes
from ..core.elements import table
from ..ops.family.pointwise import POINTWISE
from ..ops.lowering.expressions import Expr, walk
from ..ops.lowering.loops import Call, Compute
from ..ops.system.operator import Operator, key_of
from .printers.c_scalars import OURS, OURS_DOUBLE

MOVES = frozenset((
    "const", "index", "load", "cast", "where", "less", "less_equal", "greater", "greater_equal", "equal", "not_equal", "logical_and",
    "logical_or", "logical_xor", "logical_not", "isnan", "isinf", "isfinite", "signbit", "real", "imag", "complex", "conjugate", "negative",
))  # fmt: skip
ROUNDED_ONCE = frozenset((
    "add", "subtract", "multiply", "true_divide", "absolute", "sqrt", "floor", "ceil", "trunc", "rint", "copysign", "sign",
))  # fmt: skip
LIMITS = frozenset(("maximum", "minimum"))  # of zeros of both signs: the array library lets their places decide


def differs(op: Operator, steps: Iterable[Compute | Call]) -> str | None:
    """See the module's docstring."""
    for step in steps:
        if not isinstance(step, Compute):
            return f"{type(step).__name__} by other calls of the library than eager ones"
        if (step.reduce or step.scatter and step.meets != "set") and not is_whole(step.expr):
            return f"a {step.reduce or step.meets} in another order than eager ones"
        found = walk(step.expr)
        plain = op.family is POINTWISE and not any(e.dtype.is_complex for e in found)
        for e in found:
            if not is_move(e) and not (plain and agrees(e, op)):
                return f"{e.op} in {e.dtype.name} is not the eager one"
    return None


def is_whole(e: Expr) -> bool:
    return not e.dtype.is_floating_point and not e.dtype.is_complex


def is_move(e: Expr) -> bool:
    """Whether an operation rounds nothing."""
    return e.op in MOVES or is_whole(e)


def agrees(e: Expr, op: Operator) -> bool:
    """Whether an operation on real numbers gives the bits that it gives in an eager call of an element-wise operator."""
    printed = key_of(op) in table  # eager calls run a loop of the same text
    return (
        e.op in ROUNDED_ONCE
        or printed
        and (e.op in LIMITS or e.op in (OURS if e.dtype is dtypes.float32 else OURS_DOUBLE))
    )
