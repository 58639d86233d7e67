"""Objects that the program gives to a function which the graph calls as it is.

In: arguments. Out: the same with `Image`s in the place of objects whose state is their `__dict__`: their tensors are inputs of
the graph's node, and what else is in them is tested when the graph is entered. Anything else that holds tensors ends the graph.
"""

from __future__ import annotations

import dataclasses
import enum
import types
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from ...core.dtype import dtype
from ...core.tensor import Tensor
from ...nn.module import Module
from ..front.fakes import holds_fakes
from ..trace.images import image_of
from .copying import is_plain
from .lookups import ABSENT, class_attribute
from .outside import CONSTANTS, CONTAINERS, is_ours, is_symbol
from .signals import Break

if TYPE_CHECKING:
    from .tracing import Tracing

LEAVES = (*CONSTANTS, Tensor, dtype, enum.Enum, type)
OF_OBJECTS = (
    "__init__",
    "__post_init__",
    "__repr__",
    "__eq__",
    "__hash__",
    "__setattr__",
    "__delattr__",
    "__replace__",
)


class Images:
    """Images of what one call is given. An object is met once: what is made of two images of it would be two objects."""

    def __init__(self, world: Tracing, may_be: Callable[[Any], bool] = lambda value: True):
        self.world, self.may_be = world, may_be  # which objects may be made again
        self.met: dict[int, Any] = {}

    def of(self, value: Any, depth: int = 6) -> Any:
        """A value with objects, at any depth, as images, and copies of containers from outside."""
        world = self.world
        if isinstance(value, CONTAINERS) and depth:
            value = world.inside(value)
            if type(value) is dict:
                inner = {k: self.of(v, depth - 1) for k, v in value.items()}
                return value if all(inner[k] is value[k] for k in value) else inner
            if type(value) in (list, tuple):
                items = [self.of(v, depth - 1) for v in value]
                return value if all(a is b for a, b in zip(items, value, strict=True)) else type(value)(items)
        elif depth and is_pictured(value) and self.may_be(value):
            if id(value) in self.met:
                raise Break(f"it gives a function that the graph calls as it is the same {type(value).__name__} twice")
            self.met[id(value)] = value
            state = world.inside(world.load_attribute(value, "__dict__"))
            return image_of(type(value), {name: self.of(v, depth - 1) for name, v in state.items()})
        elif not isinstance(value, LEAVES) and not is_symbol(value) and holds_fakes(value, 4):
            raise Break(f"it gives a function that the graph calls as it is a {type(value).__name__} with tensors")
        return value


def is_pictured(value: Any) -> bool:
    """Whether a value is an object of the program's, which is its `__dict__` and nothing else."""
    cls = type(value)
    if isinstance(value, (*LEAVES, *CONTAINERS, types.FunctionType, types.ModuleType)) or is_ours(cls.__module__):
        return False
    return isinstance(value, Module) and cls.__new__ is object.__new__ or is_plain(cls)


def is_frozen(value: Any) -> bool:
    """Whether an object is of a dataclass whose fields are not assigned to."""
    return dataclasses.is_dataclass(value) and type(value).__dataclass_params__.frozen  # type: ignore[attr-defined]


def methods_named(cls: type, codes: list[types.CodeType]) -> Iterator[types.FunctionType]:
    """The methods and properties of a class that code may call by name, and those that operators call; an attribute that does
    more ends the graph."""
    names = dict.fromkeys(name for code in codes for name in code.co_names)
    operators = [n for base in cls.__mro__[:-1] if base is not Module for n in vars(base) if n.startswith("__")]
    called = ["forward"] if issubclass(cls, Module) else []
    for name in (*names, *called, *(n for n in operators if n not in OF_OBJECTS)):
        found = class_attribute(cls, name)
        found = found.fget if isinstance(found, property) else found
        found = found.__func__ if isinstance(found, (staticmethod, classmethod)) else found
        if isinstance(found, types.FunctionType):
            if not is_ours(found.__module__):
                yield found
        elif found is not ABSENT and hasattr(type(found), "__get__") and name in names:
            raise Break(f"a function that the graph calls as it is may read {name!r} of a {cls.__name__}")
