"""Built-in functions that ask an object what number it is (`int`, `float`, `round`, `range`, ...), in a captured program.

Where the method that Python would ask is written in Python it is interpreted, and the built-in function is asked again of
what it gave: what it refuses, and in which words, is Python's own. Anything else goes the way of all built-in functions.
"""

from __future__ import annotations

import math
import operator
import types
from typing import TYPE_CHECKING, Any

from .lookups import ABSENT, class_attribute
from .native import Answer

if TYPE_CHECKING:
    from .tracing import Tracing

# Which methods a function asks for, in order: the first that the class has.
ASKED: dict[Any, tuple[str, ...]] = {
    int: ("__int__", "__index__", "__trunc__"), float: ("__float__", "__index__"), complex: ("__complex__", "__float__", "__index__"),
    abs: ("__abs__",), round: ("__round__",), operator.abs: ("__abs__",), operator.index: ("__index__",),
    math.floor: ("__floor__", "__float__"), math.ceil: ("__ceil__", "__float__"), math.trunc: ("__trunc__",),
    bin: ("__index__",), oct: ("__index__",), hex: ("__index__",), chr: ("__index__",),
}  # fmt: skip
OPERATORS = {operator.neg: "-", operator.pos: "+", operator.inv: "~", operator.invert: "~"}


def asked_method(value, names: tuple[str, ...]) -> tuple[str, Any]:
    """The first of some methods that the class of a value has."""
    for name in names:
        method = class_attribute(type(value), name)
        if method is not ABSENT:
            return name, method
    return "", None


def _number(function, names: tuple[str, ...]):
    def call(world: Tracing, *args, **kwargs):
        name, method = asked_method(args[0], names) if args else ("", None)
        if isinstance(method, types.FunctionType) and world.enters(method):
            rest = args[1:] if function is round else ()
            given = world.call_now(method, (args[0], *rest), {})
            if function is round or function is abs or function is operator.abs:
                return given
            return function(Answer(args[0], name, world.concrete(given)), *args[1:], **kwargs)
        return (
            world._class(function, args, kwargs)
            if isinstance(function, type)
            else world._builtin(function, args, kwargs)
        )

    return call


def _range(world: Tracing, *args):
    return world._class(range, tuple([world._as_place((), a) for a in args]), {})


def _unary(name: str):
    return lambda world, value: world.unary(name, value)


NUMBERS: dict[Any, Any] = {
    **{function: _number(function, names) for function, names in ASKED.items()},
    **{function: _unary(name) for function, name in OPERATORS.items()},
    range: _range,
}
