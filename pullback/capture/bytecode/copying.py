"""`copy.copy` and `copy.deepcopy`, in a captured program: what is copied is read like anything else.

Containers, plain instances and tensors without history are copied by Python's rules, what is shared stays shared, and
objects from outside that were different ones must be so again. Whatever says itself how it is copied, or hides something in
C, ends the graph.
"""

from __future__ import annotations

import collections
import copy
import enum
import types
import weakref
from typing import TYPE_CHECKING, Any

from ...core.tensor import Tensor
from ...nn.module import Module
from .lookups import ABSENT, HEAP_TYPE, class_attribute
from .outside import CONSTANTS, CONTAINERS, is_symbol
from .signals import Break

if TYPE_CHECKING:
    from .tracing import Tracing

ATOMS = (
    *CONSTANTS, enum.Enum, type, types.FunctionType, types.BuiltinFunctionType, property, weakref.ref, types.CodeType,
)  # fmt: skip
SEQUENCES = {list: list, tuple: tuple, set: set, frozenset: frozenset}
OWN_WAYS = ("__copy__", "__reduce__", "__reduce_ex__", "__getstate__", "__setstate__")


def copied(world: Tracing, value):
    """`copy.copy(value)`."""
    if isinstance(value, CONTAINERS):
        result = world.inside(value)
        return copy.copy(result) if result is value else result
    if isinstance(value, ATOMS):
        return value
    if isinstance(value, (Tensor, Module)) or not is_plain(type(value)):
        raise Break(f"it calls copy.copy of a {type(value).__name__}")
    result = object.__new__(type(value))
    result.__dict__.update(world.inside(world.load_attribute(value, "__dict__")))
    return result


def deep_copied(world: Tracing, value, memo: dict | None = None):
    """`copy.deepcopy(value, memo)`."""
    copier = world.copiers.get(id(memo)) if memo is not None else None
    if copier is not None:
        return copier.copy(value)
    if memo:
        raise Break("it calls copy.deepcopy with copies made before")
    copier = DeepCopy(world)
    result = copier.copy(value)
    copier.tell_apart()
    return result


def is_plain(cls: type) -> bool:
    """Whether instances of a class are their `__dict__` and nothing else, and nothing says how to copy them."""
    bases = cls.__mro__[:-1]
    if not all(base.__flags__ & HEAP_TYPE and not base.__dict__.get("__slots__") for base in bases):
        return False
    return all(class_attribute(cls, name) is object.__dict__.get(name, ABSENT) for name in ("__new__", *OWN_WAYS))


class DeepCopy:
    """One call of `deepcopy`."""

    def __init__(self, world: Tracing):
        self.world = world
        self.copies: dict[int, tuple[Any, Any]] = {}  # by the id of an object: it, and its copy
        self.memo: dict = {}  # what `__deepcopy__` methods hand on
        world.copiers[id(self.memo)] = self

    def copy(self, value):
        if isinstance(value, ATOMS) or is_symbol(value):
            return value
        if id(value) in self.copies:
            return self.copies[id(value)][1]
        if isinstance(value, Tensor):
            return self._keep(value, self._tensor(value))
        kind = type(value)
        method = class_attribute(kind, "__deepcopy__")
        if isinstance(method, types.FunctionType) and not isinstance(value, Module):
            return self._keep(value, self.world.call_now(method, (value, self.memo), {}))
        if kind in SEQUENCES:
            return self._sequence(value, kind)
        if kind in (dict, collections.OrderedDict, collections.defaultdict):
            return self._mapping(value, kind)
        if method is not ABSENT or isinstance(value, Module) or not is_plain(kind):
            raise Break(f"it calls copy.deepcopy of a {kind.__name__}")
        result = self._keep(value, object.__new__(kind))
        for name, state in self.world.inside(self.world.load_attribute(value, "__dict__")).items():
            result.__dict__[name] = self.copy(state)
        return result

    def _keep(self, value, result):
        self.copies[id(value)] = (value, result)
        return result

    def _tensor(self, t: Tensor) -> Tensor:
        real = self.world.outside.real(t)
        if type(t) is not Tensor or t.requires_grad or t._is_view() or real._is_view() or real.__dict__:
            raise Break(f"it calls copy.deepcopy of a {type(t).__name__} that is more than its values")
        return self.world.native_call(Tensor.clone, (t,), {})

    def _sequence(self, value, kind: type):
        if kind is list:
            result = self._keep(value, [])
            result.extend([self.copy(v) for v in self.world.all_of(value)])
            return result
        items = self.world.all_of(value)
        copies = [self.copy(v) for v in items]
        if kind is tuple and all(a is b for a, b in zip(items, copies, strict=True)):
            return value
        return self._keep(value, kind(copies))

    def _mapping(self, value, kind: type):
        given = (self.world.load_attribute(value, "default_factory"),) if kind is collections.defaultdict else ()
        result = self._keep(value, kind(*given))
        for key, item in self.world.inside(value).items():
            result[self.copy(key)] = self.copy(item)
        return result

    def tell_apart(self) -> None:
        """Objects that were different ones must be so again, or their copies would be one."""
        outside = self.world.outside
        found = [outside.source_of(value) for value, _ in self.copies.values()]
        sources = [source for source in found if source is not None and source.kind != "constant"]
        if len(sources) > 1:
            places = ", ".join([outside.conditions.variable(source) for source in sources])
            words = f"no two of {', '.join(source.name for source in sources)} are the same"
            outside.conditions.test(f"len({{*map(id, ({places}))}}) == {len(sources)}", words)
