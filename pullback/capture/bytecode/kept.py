"""Python that a graph keeps: hooks of tensors that it computes, and custom functions.

A graph calls them by themselves, and a compiler traces them once for all later calls; so they may do nothing but compute,
and what they read must stay. `check_hook` and `check_custom_function` end the graph (`Break`) where that is not sure,
and test what can be tested when the graph is entered. A hook runs when a backward does, long after the graph was entered:
of names around it, it may read functions, classes and modules only.
"""

from __future__ import annotations

import enum
import functools
import inspect
import types
from collections.abc import Iterator
from typing import TYPE_CHECKING

from ...autograd.function import Function
from ...core.dtype import dtype
from ...core.tensor import Tensor
from ..front.effects import effects
from ..front.reads import CHANGES
from .journal import Effect
from .lookups import class_attribute
from .outside import CONSTANTS, SIMPLE, is_ours, is_symbol, module_of
from .picturing import is_pictured, methods_named
from .signals import Break

if TYPE_CHECKING:
    from .tracing import Tracing

REGISTER_HOOK, RETAIN_GRAD = Tensor.register_hook, Tensor.retain_grad  # type: ignore[attr-defined]
LISTENING = (REGISTER_HOOK, RETAIN_GRAD, Tensor.register_post_accumulate_grad_hook)  # type: ignore[attr-defined]
OWN_STATE = frozenset(f"calls {name}" for name in CHANGES) | {"assigns to an item", "deletes an item"}


PARTS = ("func", "args", "keywords")  # of a partial function


class PendingHandle:
    """The handle of a hook on a leaf from outside, which is registered on the real one when the graph has run: nothing
    hears of it before a backward does."""

    def __init__(self, method, tensor: Tensor, hook):
        self.method, self.tensor, self.hook, self.is_removed = method, tensor, hook, False

    def remove(self) -> None:
        """What the program calls: the hook is removed as soon as it is registered."""
        self.is_removed = True


def listen(world: Tracing, function, args: tuple, kwargs: dict) -> PendingHandle | None:
    """Somebody is to listen to the gradient of a tensor. For one that the graph computes, the graph does that (None); for
    a leaf from outside, the hook is registered after it."""
    t = args[0]
    if function is RETAIN_GRAD and t.is_leaf:
        return None
    if id(t) not in world.outside.reals and function is REGISTER_HOOK:
        try:
            check_hook(world, *args[1:], **kwargs)
        except Break as refused:
            raise Break(refused.reason, before_use(world, t)) from None
        world.hooked_leaves.add(id(t))
        return None
    if id(t) not in world.outside.reals or not t.is_leaf or not t.requires_grad or function is RETAIN_GRAD:
        raise Break(f"it calls {function.__name__} of a tensor, which must be the real one", before_use(world, t))
    handle = PendingHandle(function, t, *args[1:], **kwargs)
    world.listening.append(handle)
    world.journal.log.append(Effect("listen", handle, None, None))
    return handle


def before_use(world: Tracing, t: Tensor) -> int | None:
    """The step before which a graph must end for a tensor that it computes to be hooked outside: what is computed of the
    tensor in the same graph has a gradient that does not pass the tensor outside. None where nothing is."""
    if id(t) in world.outside.reals:
        return None
    node = world.trace.node_of(t)
    return world.trace.steps.get(node) if node.users else None


def check_hook(world: Tracing, hook) -> None:
    """End the graph before a hook that it cannot keep."""
    for found in effects(hook):
        raise Break(f"it registers a hook that {found}")
    Reads(world, "a hook", is_later=True).of(hook)


def check_custom_function(world: Tracing, cls: type[Function], args: tuple, kwargs: dict) -> None:
    """End the graph before a custom function that does more than compute, or is given what it may change."""
    values = (*args, *kwargs.values())
    objects = [v for v in values if is_pictured(v)]
    given = next((v for v in values if isinstance(v, (list, dict)) and is_nest(v)), next(iter(objects), None))
    for value in values:
        known = isinstance(value, (*CONSTANTS, Tensor, dtype, enum.Enum, types.FunctionType))
        if not known and not is_pictured(value) and not is_nest(value):
            raise Break(f"it gives {cls.__name__}.apply a {type(value).__name__}, which may be changed there")
    for t in filter(overrides_calls, values):
        raise Break(f"it gives {cls.__name__}.apply a {type(t).__name__}, whose __torch_function__ sees what it does")
    _check_methods(world, cls, objects)
    for name in ("forward", "setup_context", "backward", "vjp", "jvp"):
        class_attribute(cls, name)  # noted: another may be put there
    for function in (cls.forward, cls.setup_context, cls.users_backward()):
        found = next(filter(None, (_seen(function, effect) for effect in effects(function))), None)
        if given is not None and effects(function):  # it may be the list that is filled, or kept for the backward
            raise Break(f"it gives {cls.__name__}.apply a {type(given).__name__}, which may be changed there")
        if found is not None:
            raise Break(f"it applies {cls.__name__}, whose {function.__name__} {found}")
        Reads(world, f"{cls.__name__}.{function.__name__}").of(function)


def _check_methods(world: Tracing, cls: type[Function], objects: list) -> None:
    """What methods of objects that a custom function is given do and read counts as its own."""
    functions = [f for f in (cls.forward, cls.setup_context, cls.users_backward()) if isinstance(f, types.FunctionType)]
    codes = [f.__code__ for f in functions]
    for kind in dict.fromkeys(map(type, objects)):
        for method in methods_named(kind, codes):
            for found in effects(method):
                raise Break(f"it gives {cls.__name__}.apply a {kind.__name__}, whose {method.__name__} {found}")
            Reads(world, f"{kind.__name__}.{method.__name__}").of(method)


def overrides_calls(value) -> bool:
    """Whether a value is a tensor of a class with a `__torch_function__` of the program's own."""
    own = class_attribute(type(value), "__torch_function__") if isinstance(value, Tensor) else None
    return isinstance(own, classmethod) and not is_ours(module_of(own.__func__))


def is_nest(value) -> bool:
    """Whether a value cannot be changed, or is a list or dict of such ones."""
    if type(value) in (list, tuple, dict):
        inner = [*value, *value.values()] if type(value) is dict else value
        return all(isinstance(v, (*CONSTANTS, Tensor, enum.Enum)) or is_nest(v) for v in inner)
    return is_plain(value)


def is_plain(value) -> bool:
    """Whether a value cannot be changed, nor anything in it; a symbolic number among them."""
    if type(value) is tuple:
        return all(isinstance(v, (*CONSTANTS, Tensor, enum.Enum)) or is_plain(v) for v in value)
    return is_symbol(value) or is_ours(type(value).__module__) and not hasattr(value, "__dict__")


def _seen(function, effect: str) -> str | None:
    """An effect of a custom function that somebody else sees: not that it fills its own lists and its own `ctx`."""
    if effect in OWN_STATE:
        return None
    if effect.startswith("assigns to the attribute") and function.__name__ in ("forward", "setup_context"):
        return None
    return effect


class Reads:
    """Tests what a function, and those that it names, read around them; ends the graph where that is no constant.

    `is_later`: it runs when the graph is long over, so that a test at its beginning says nothing of simple values.
    """

    def __init__(self, world: Tracing, who: str, is_later: bool = False):
        self.world, self.outside, self.who, self.is_later = world, world.outside, who, is_later
        self.seen: set[int] = set()

    def of(self, function) -> None:
        if isinstance(function, functools.partial):
            self._partial(function)
            return
        function = inspect.unwrap(function) if isinstance(function, types.FunctionType) else function
        if not isinstance(function, types.FunctionType) or id(function) in self.seen or is_ours(module_of(function)):
            return
        self.seen.add(id(function))
        self._cells(function)
        self._globals(function)
        self._defaults(function)

    def _partial(self, function: functools.partial) -> None:
        """A partial function that is found at the same place may be another one: its parts are tested."""
        source, sources = self.outside.source_of(function), self.outside.sources
        parts = {name: None if source is None else sources.get("attribute", source, name) for name in PARTS}
        self._value(function.func, "the function of a partial one", parts["func"])
        self._items(function.args, parts["args"])
        self._items(function.keywords, parts["keywords"])

    def _defaults(self, function: types.FunctionType) -> None:
        source, sources = self._source(function), self.outside.sources
        for name in ("__defaults__", "__kwdefaults__", "__dict__"):
            place = None if source is None else sources.get("attribute", source, name)
            self._items(getattr(function, name) or (), place)

    def _items(self, values, place) -> None:
        """Values that a function carries: they are what they are from when it is registered on."""
        sources, pairs = self.outside.sources, values.items() if isinstance(values, dict) else enumerate(values)
        if place is not None:
            self.outside.conditions.has_length(place, len(values)) if values else self._has_none(place)
        for key, value in pairs:
            source = None if place is None else sources.item(place, key)
            if source is not None and isinstance(value, (*CONSTANTS, tuple, frozenset)):
                self.outside.conditions.equals(source, value)
            else:
                self._value(value, "a value of its own", source)

    def _has_none(self, place) -> None:
        self.outside.conditions.test(f"not {self.outside.conditions.variable(place)}", f"{place.name} is empty")

    def _source(self, function: types.FunctionType):
        """Where a function was found; None where the program made it."""
        source = self.outside.source_of(function)
        if source is None and not self.world.is_made_inside(function):
            source = self.outside.sources.constant(function, function.__qualname__)
        return source

    def _cells(self, function: types.FunctionType) -> None:
        source = self._source(function)
        for i, cell in enumerate(function.__closure__ or ()):
            name = function.__code__.co_freevars[i]
            if name == "__class__":
                continue
            place = self.outside.source_of(cell)
            if place is None and source is not None and id(cell) not in self.world.own_cells:
                place = self.outside.sources.get("closure", source, i, f"the cell of {name!r}")
            contents = None if place is None else self.outside.sources.contents(place)
            self._value(_contents(cell, name), name, contents)

    def _globals(self, function: types.FunctionType) -> None:
        table = function.__globals__
        home = self.outside.sources.constant(table, "G")
        for name in dict.fromkeys(_global_names(function.__code__)):
            if name in table:
                self._value(table[name], name, self.outside.sources.item(home, name))

    def _value(self, value, name: str, source) -> None:
        if isinstance(value, (types.FunctionType, functools.partial)):
            if source is not None:
                self.outside.enter(value, source)
            self.of(value)
        elif is_symbol(value) or isinstance(value, Tensor):
            raise Break(
                f"{self.who} reads {name!r}, a {'number' if is_symbol(value) else 'tensor'} of another call then"
            )
        elif source is not None and isinstance(value, SIMPLE):
            if self.is_later:
                raise Break(f"{self.who} reads {name!r}, which may have changed when it runs")
            self.outside.conditions.equals(source, value)
        elif source is not None and not isinstance(value, types.ModuleType):
            self.outside.conditions.is_object(source, value)


def _contents(cell: types.CellType, name: str):
    try:
        return cell.cell_contents
    except ValueError:
        raise Break(f"a function that the graph keeps reads {name!r}, which has no value") from None


def _global_names(code: types.CodeType) -> Iterator[str]:
    yield from code.co_names
    for inner in code.co_consts:
        if isinstance(inner, types.CodeType):
            yield from _global_names(inner)
