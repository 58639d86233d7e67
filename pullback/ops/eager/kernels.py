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
from ...core import halves
from ...core.elements import table
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
    arguments = op.schema.arguments
    names = [f"a_{a.name}" for a in arguments]
    first = next(n for n, a in zip(names, arguments, strict=True) if a.is_tensor)
    scope: dict = {"np": np, "plain": op.kernel, "REALS": REALS, "is_number": _is_number}
    lines: list[str] = []
    for k, (words, ufunc) in enumerate(variants.items()):
        scope[f"ufunc{k}"] = ufunc
        scope[f"KINDS{k}"] = frozenset(t[0] for t in ufunc.types)
        conditions, given = _conditions(arguments, names, words, first)
        lines += block(
            f"if {' and '.join([f'{first}.dtype.char in KINDS{k}', *conditions])}:",
            f"return ufunc{k}({', '.join(given)}, out=out)",
        )
    source = block(
        f"def kernel(xp, {', '.join(names)}, out=None):",
        *block("if xp is np:", *lines),
        f"return plain(xp, {', '.join(names)})",
    )
    result: dict = {}
    run_source("\n".join(source), f"kernel of {key_of(op)}", scope, result)
    return result["kernel"]


def _is_number(value, like: np.ndarray) -> bool:
    """Whether a value is a number as an array without dimensions, of the dtype of another."""
    return value.__class__ is np.ndarray and not value.ndim and value.dtype == like.dtype


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
    ("add", "subtract", "multiply", "divide", "exp")
)  # ufuncs of which there are loops that are not eager's own


@cache
def half_loop_of(op: Operator) -> Callable | None:
    """A function with the array library's ufunc's arguments, for bfloat16 and float16: on many elements a loop in C, or the ufunc in single
    precision, else that ufunc. None where the ufunc is not the whole operator."""
    declared = op.declared
    name = getattr(declared, "ufunc", None)
    is_condition = declared.result is dtypes.bool
    if name is None or declared.constant is not None or declared.result is not None and not is_condition or not table:
        return None
    if name in ("fmax", "fmin"):  # which of two zeros they give depends on where it stands, in single precision
        return None
    ufunc, loop = getattr(np, name), None
    few = 1 if name in ("maximum", "minimum") else halves.FEW  # of two zeros they give the second, in float16 the first
    if not is_condition and (name in _ROWS or loop_of(op) is not None):
        loop = f"rows:{name}" if name in _ROWS else key_of(op)

    def run(*arrays, out=...):
        into = None if out is ... else out
        found = None if loop is None else halves.run(loop, *arrays, out=into)
        if found is None:
            found = halves.through(ufunc, arrays, not is_condition, into, few)
        return ufunc(*arrays, out=out) if found is None else found

    return run


def has_loop(op: Operator) -> bool:
    """Whether there is a loop in C for the operator's kernel, in some dtype."""
    return op.kernel is not None and key_of(op) in table


def run_into(op: Operator, values: list, out) -> None:
    """`out[...] = kernel(np, *values)`, without a temporary where a loop in C does it."""
    kernel = kernel_of(op)
    result = kernel(np, *values) if kernel is op.kernel else kernel(np, *values, out=out)
    if result is not out:
        out[...] = result
