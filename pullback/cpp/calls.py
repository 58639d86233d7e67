"""Operators as C++ calls them: all arguments by position, whichever overload they mean.

`function("add")` gives a callable of Python values. Arguments that Python takes by keyword only (`alpha`, `dtype`) come by
position from C++; the overload that the arguments fit says their names. Where none fits, the public function is called
as it is, and says itself what is wrong.
"""

from __future__ import annotations

import functools
from collections.abc import Callable

from ..core.device import device, layout
from ..core.dtype import dtype
from ..core.layers import above
from ..core.tensor import Tensor
from ..ops.system.operator import Operator, packets
from ..ops.system.packet import packet
from ..ops.system.schema import Argument

NUMBERS = (int, float, complex)
KINDS: dict[str, Callable[[object], bool]] = {
    "Tensor": lambda v: isinstance(v, (Tensor, *NUMBERS)),
    "Scalar": lambda v: isinstance(v, NUMBERS) or hasattr(v, "is_symbolic"),
    "int": lambda v: isinstance(v, int) and not isinstance(v, bool) or hasattr(v, "is_symbolic"),
    "float": lambda v: isinstance(v, (int, float)) and not isinstance(v, bool) or hasattr(v, "is_symbolic"),
    "bool": lambda v: isinstance(v, bool),
    "str": lambda v: isinstance(v, str),
    "ScalarType": lambda v: isinstance(v, dtype),
}
KINDS["SymInt"] = KINDS["int"]
OPTIONS = {dtype: "dtype", device: "device", layout: "layout"}


def accepts(argument: Argument, value) -> bool:
    """Whether a value is of an argument's kind."""
    if value is None:
        return argument.optional or argument.type.endswith("?]")
    known = KINDS.get(argument.base.removesuffix("?"))
    if argument.is_list:
        if isinstance(value, (list, tuple)):
            return known is None or all(v is None or known(v) for v in value)
        return argument.list_size is not None and known is not None and known(value)
    return known is None or known(value)


class Callee:
    """One name, with the ways of calling it that were found, by the classes of the arguments."""

    def __init__(self, name: str):
        self.name = name
        self.public = public_function(name)
        self.overloads: list[Operator] = list(packets.get(name, {}).values()) or in_place(name)
        self.plain = min((positional(op) for op in self.overloads), default=1 << 30)
        by_keyword = {a.name for op in self.overloads for a in op.schema.arguments if a.kwarg_only}
        self.options = {kind: name for kind, name in OPTIONS.items() if name in by_keyword}
        self.known: dict[tuple, tuple[str, ...]] = {}

    def __call__(self, *args, **options):
        while args and type(args[-1]) in self.options and self.options[type(args[-1])] not in options:
            options[self.options[type(args[-1])]] = args[
                -1
            ]  # `zeros(shape, kDouble)`: options that C++ makes of one of them
            args = args[:-1]
        if len(args) <= self.plain:
            return self.public(*args, **options)
        names = self.named(args)
        split = len(args) - len(names)
        return self.public(*args[:split], **dict(zip(names, args[split:], strict=True)), **options)

    def named(self, args: tuple) -> tuple[str, ...]:
        """The names of the last arguments, where Python takes those by keyword only."""
        key = tuple(map(type, args))
        if key not in self.known:
            fit = (op for op in self.overloads if fits(op, args))
            op = next(fit, None)
            arguments = op.schema.arguments[: len(args)] if op is not None else []
            self.known[key] = tuple(a.name for a in arguments if a.kwarg_only)
        return self.known[key]


def positional(op: Operator) -> int:
    """How many arguments an operator takes by position."""
    return sum(not a.kwarg_only for a in op.schema.arguments)


def fits(op: Operator, args: tuple) -> bool:
    arguments = op.schema.arguments
    return len(args) <= len(arguments) and all(map(accepts, arguments, args))


def in_place(name: str) -> list[Operator]:
    """The operators behind a method that writes."""
    found = packets.get(name[:-1], {}).values() if name.endswith("_") else ()
    return [op.inplace for op in found if op.inplace is not None]


def public_function(name: str) -> Callable:
    """What users call by a name: a function, a method, or the operator itself."""
    root = above.package()
    for scope in (root, Tensor, root.nn.functional):
        found = getattr(scope, name, None)
        if callable(found) and not isinstance(found, type):
            return found
    try:
        return packet("aten", name)
    except AttributeError:
        raise RuntimeError(f"at::{name}: there is no operator of this name") from None


@functools.cache
def function(name: str) -> Callable:
    """The callable of a name, made once."""
    return Callee(name)
