"""The kernel of an element-wise operator as eager calls use it: a loop in C where there is one, else the array library's.

`kernel_of(op)` is `op.kernel`, or a function of the same arguments that hands arrays of the CPU to the printed loop of their dtype
(`core.elements`) and everything else to `op.kernel`. The rule itself stays what other array libraries run and what the loops
are tested against.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import numpy as np

from ...core import dtype as dtypes
from ...core.elements import halved, straight, table
from ...core.halves import HALVES
from ...core.source import run_source
from ..system.operator import Operator, key_of
from .text import block

NUMBERS = ("float", "Scalar", "int")
REALS = frozenset((int, float, bool))


@cache
def kernel_of(op: Operator) -> Callable:
    """See the module's docstring."""
    variants = table.get(key_of(op))
    if variants is None:
        return op.kernel
    scope: dict = {"np": np, "plain": op.kernel, "REALS": REALS, "is_number": _is_number}
    kinds = {f"KINDS{k}": frozenset(t[0] for t in ufunc.types) for k, ufunc in enumerate(variants.values())}
    given = ", ".join(f"a_{a.name}" for a in op.schema.arguments)
    return _kernel_text(op, variants, scope | kinds, "{0}.dtype.char in KINDS{1}", f"plain(xp, {given})")


def _kernel_text(op: Operator, variants: dict, scope: dict, kind: str, otherwise: str) -> Callable:
    """A function of a kernel's arguments that asks the loops of an operator in turn, as `kind` says of the first array which takes it."""
    arguments = op.schema.arguments
    names = [f"a_{a.name}" for a in arguments]
    first = next(n for n, a in zip(names, arguments, strict=True) if a.is_tensor)
    lines: list[str] = []
    for k, (words, ufunc) in enumerate(variants.items()):
        scope[f"ufunc{k}"] = ufunc
        conditions, given = _conditions(arguments, names, words, first)
        lines += block(
            f"if {' and '.join([kind.format(first, k), *conditions])}:",
            f"return ufunc{k}({', '.join(given)}, out=out)",
        )
    if "plain" in scope:
        lines = block("if xp is np:", *lines)
    source = block(f"def kernel(xp, {', '.join(names)}, out=None):", *lines, f"return {otherwise}")
    result: dict = {}
    run_source("\n".join(source), f"kernel of {key_of(op)}", scope, result)
    return result["kernel"]


def _is_number(value, like: np.ndarray) -> bool:
    """Whether a value is a number as an array without dimensions, of the dtype of another."""
    return value.__class__ is np.ndarray and not value.ndim and value.dtype == like.dtype


def _is_single(value, like: np.ndarray) -> bool:
    """Whether a value is a number as an array without dimensions, of single precision."""
    return value.__class__ is np.ndarray and not value.ndim and value.dtype.char == "f"


def _conditions(arguments, names: list[str], words: tuple[str, ...], first: str) -> tuple[list[str], list[str]]:
    """What must hold for a variant, and the arguments of its ufunc: arrays, then numbers."""
    left = list(words)
    conditions, arrays, numbers = [], [], []
    for a, name in zip(arguments, names, strict=True):
        is_number = not a.is_tensor and a.base in NUMBERS
        word = "*" if (a.is_tensor or is_number) and not a.optional else left.pop(0)
        if word != "*":
            wanted = word if word in ("None", "True", "False") else repr(word)
            conditions.append(f"{name} is {wanted}" if wanted == word else f"{name} == {wanted}")
        elif is_number:
            conditions.append(f"({name}.__class__ in REALS or is_number({name}, {first}))")
            numbers.append(name)
        else:
            if a.optional:
                conditions.append(f"{name} is not None")
            arrays.append(name)
    return conditions, [*arrays, *numbers]


@cache
def loop_of(op: Operator):
    """The ufunc in C of an operator that is one ufunc of the array library, in single precision alone; None where there is none.

    A number that is the other operand of the array library's (`constant=0`) is part of the loop.
    """
    loop = table.get(key_of(op), {}).get(())
    if loop is None or op.kernel is None:
        return loop
    declared = op.declared
    return loop if getattr(declared, "ufunc", None) is not None and loop.nin == len(op.tensor_positions) else None


_ROWS = frozenset(
    ("add", "subtract", "multiply", "divide", "exp", "sqrt", "floor", "ceil")
)  # ufuncs of which there are loops that are not eager's own


@cache
def half_loop_of(op: Operator) -> Callable | None:
    """The ufunc for bfloat16 and float16 of an operator that is one ufunc of the array library: a loop in C, or the array library's, in single
    precision. None where the ufunc is not the whole operator."""
    declared = op.declared
    name = getattr(declared, "ufunc", None)
    is_condition = declared.result is dtypes.bool
    if name is None or declared.constant is not None or declared.result is not None and not is_condition or not table:
        return None
    if declared.native:  # what single precision has is not what the dtype itself has
        return None
    if name in ("fmax", "fmin"):  # which of two zeros they give depends on where it stands, in single precision
        return None
    loop = None
    if not is_condition and (name in _ROWS or loop_of(op) is not None):
        loop = halved(f"rows:{name}" if name in _ROWS else key_of(op))
    return halved(getattr(np, name)) if loop is None else loop


@cache
def half_number_loop_of(op: Operator) -> Callable | None:
    """The same, with a second operand that is a number in single precision."""
    return None if half_loop_of(op) is None else halved(getattr(np, op.declared.ufunc), 1)


@cache
def half_kernel_of(op: Operator) -> Callable | None:
    """A function of the arguments of an operator's kernel, arrays of bfloat16 or float16 and numbers as single precision has them: the result
    by a loop in C, or None where there is none for such attributes. None where there is none at all."""
    variants = table.get(key_of(op))
    if variants is None or op.kernel is None or op.declared.native:
        return None
    found = {words: halved(":".join([key_of(op), *words])) for words in variants}
    scope: dict = {"HALVES": HALVES, "REALS": REALS, "is_number": _is_single}
    return _kernel_text(op, {w: u for w, u in found.items() if u is not None}, scope, "{0}.dtype in HALVES", "None")


_WORDS = {"None": None, "True": True, "False": False}
_BY_PARTS = frozenset(("nan_to_num.default",))  # which take the real and the imaginary parts of numbers as they are
_MOST_STRAIGHT = 8  # arguments of a call, and variants of an operator


@cache
def straight_of(op: Operator) -> Callable | None:
    """The function in C for few elements of an operator whose kernel is a loop, by its variants; None where there is none."""
    variants, arguments = table.get(key_of(op)), op.schema.arguments
    if variants is None or op.kernel is None or max(len(variants), len(arguments)) > _MOST_STRAIGHT:
        return None
    if any(a.is_list for a in arguments):
        return None
    roles = {words: _roles(arguments, list(words)) for words in variants}
    return straight(key_of(op), roles, key_of(op) in _BY_PARTS)


def _roles(arguments, left: list[str]) -> list[tuple[str, object]]:
    """What each argument of a variant is: an array, a number, or a value that it must have. Of those with a choice, `left` says which."""
    found: list[tuple[str, object]] = []
    for a in arguments:
        is_number = not a.is_tensor and a.base in NUMBERS
        word = "*" if (a.is_tensor or is_number) and not a.optional else left.pop(0)
        found.append(("w", _WORDS.get(word, word)) if word != "*" else ("n" if is_number else "x", None))
    return found


def has_loop(op: Operator) -> bool:
    """Whether there is a loop in C for the operator's kernel, in some dtype."""
    return op.kernel is not None and key_of(op) in table


def is_only_loop(op: Operator) -> bool:
    """Whether the loop of an operator's name is its kernel for all values of its arguments: none has a choice."""
    return tuple(table[key_of(op)]) == ((),)


def run_into(op: Operator, values: list, out) -> None:
    """`out[...] = kernel(np, *values)`, without a temporary where a loop in C does it."""
    kernel = kernel_of(op)
    result = kernel(np, *values) if kernel is op.kernel else kernel(np, *values, out=out)
    if result is not out:
        out[...] = result
