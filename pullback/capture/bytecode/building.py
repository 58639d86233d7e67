"""How functions, classes, instances and containers are made where Python has a protocol of several calls for it.

Pieces of the plain `World`: operands come in; values go out, or an `Enter` whose `on_return` does the next call of the
protocol. Error words are Python's.
"""

from __future__ import annotations

import types
from collections.abc import Callable
from contextlib import suppress
from itertools import islice
from types import CellType, CodeType, FunctionType
from typing import Any

from .frame import Frame
from .signals import RUNNING, Enter

FUNCTION_PARTS = ((1, "defaults"), (2, "kwdefaults"), (4, "annotations"), (8, "closure"))


def function_from(frame: Frame, code: CodeType, attributes: dict[str, Any]) -> FunctionType:
    """What MAKE_FUNCTION makes."""
    result = FunctionType(code, frame.globals, None, attributes.get("defaults"), attributes.get("closure"))
    if "kwdefaults" in attributes:
        result.__kwdefaults__ = attributes["kwdefaults"]
    annotations = attributes.get("annotations")
    if annotations is not None:
        pairs = iter(annotations) if isinstance(annotations, tuple) else None
        result.__annotations__ = annotations if pairs is None else dict(zip(pairs, pairs))
    return result


def then(result: Any, finish: Callable[[Any], Any]) -> Any:
    """`finish(result)`, at the end of the frame where `result` is to be run first."""
    if type(result) is not Enter:
        return finish(result)
    first = result.on_return
    result.on_return = finish if first is None else Chain(first, finish)
    return result


class Chain:
    __slots__ = ("first", "second")

    def __init__(self, first: Callable[[Any], Any], second: Callable[[Any], Any]) -> None:
        self.first = first
        self.second = second

    def __call__(self, value: Any) -> Any:
        return then(self.first(value), self.second)


class FinishInstance:
    """`__init__` returned: the value of the call is the instance."""

    __slots__ = ("instance",)

    def __init__(self, instance: Any) -> None:
        self.instance = instance

    def __call__(self, value: Any) -> Any:
        if value is not None:
            raise TypeError(f"__init__() should return None, not '{type(value).__name__}'")
        return self.instance


class FinishNew:
    """`__new__` returned: `__init__` comes next if the result is an instance, in the world that runs by then."""

    __slots__ = ("args", "cls", "kwargs")

    def __init__(self, cls: type, args: tuple, kwargs: dict[str, Any]) -> None:
        self.cls = cls
        self.args = args
        self.kwargs = kwargs

    def __call__(self, instance: Any) -> Any:
        return self.initialise(RUNNING.machine.world, instance)

    def initialise(self, world: Any, instance: Any) -> Any:
        if not issubclass(type(instance), self.cls):
            return instance
        init = type(instance).__init__
        return then(world.call(init, (instance, *self.args), self.kwargs), FinishInstance(instance))


def construct(world: Any, cls: type, args: tuple, kwargs: dict[str, Any]) -> Any:
    """The call of a class: interpreted where its metaclass, `__new__` or `__init__` is written in Python."""
    calls = type(cls).__call__  # the metaclass's, not the instances'
    if calls is not type.__call__:
        return world.call(calls, (cls, *args), kwargs) if type(calls) is FunctionType else cls(*args, **kwargs)
    new, init = cls.__new__, cls.__init__
    finish = FinishNew(cls, args, kwargs)
    if type(new) is FunctionType:
        result = world.call(new, (cls, *args), kwargs)
        return then(result, finish) if type(result) is Enter else finish.initialise(world, result)
    if type(init) is not FunctionType or not world.enters(init):
        return cls(*args, **kwargs)
    instance = new(cls) if new is object.__new__ else new(cls, *args, **kwargs)
    return finish.initialise(world, instance)


class FinishClass:
    """The body of a class was run: the metaclass makes the class."""

    __slots__ = ("bases", "keywords", "meta", "name", "names", "original")

    def __init__(self, name: str, bases: tuple, keywords: dict[str, Any]) -> None:
        self.name = name
        self.original = bases
        self.bases = types.resolve_bases(bases)
        self.meta, self.names, self.keywords = types.prepare_class(name, self.bases, dict(keywords))

    def __call__(self, cell: Any) -> Any:
        if self.bases is not self.original and "__orig_bases__" not in self.names:
            self.names["__orig_bases__"] = self.original
        result = self.meta(self.name, self.bases, self.names, **self.keywords)
        if isinstance(result, type) and type(cell) is CellType:
            self.check(result, cell)
        return result

    def check(self, result: type, cell: CellType) -> None:
        with suppress(ValueError):
            found = cell.cell_contents
            if found is not result:
                raise TypeError(f"__class__ set to {found!r} defining {self.name!r} as {result!r}")
            return
        words = f"__class__ not set defining {self.name!r} as {result!r}. Was __classcell__ propagated to type.__new__?"
        raise RuntimeError(words)


def unpacked(iterate: Callable[[Any], Any], value: Any, before: int, after: int | None) -> list:
    """The `before` values, then with `after` a list of those between, then the last `after`."""
    if not hasattr(type(value), "__iter__") and not hasattr(type(value), "__getitem__"):
        raise TypeError(f"cannot unpack non-iterable {type(value).__name__} object")
    iterator = iterate(value)
    found = list(islice(iterator, before))
    if len(found) < before:
        expected = f"{before}" if after is None else f"at least {before + after}"
        raise ValueError(f"not enough values to unpack (expected {expected}, got {len(found)})")
    if after is None:
        for _ in iterator:
            raise ValueError(f"too many values to unpack (expected {before})")
        return found
    rest = list(iterator)
    if len(rest) < after:
        words = f"not enough values to unpack (expected at least {before + after}, got {before + len(rest)})"
        raise ValueError(words)
    split = len(rest) - after
    return [*found, rest[:split], *rest[split:]]


def extend_list(target: list, value: Any) -> None:
    if not hasattr(type(value), "__iter__") and not hasattr(type(value), "__getitem__"):
        raise TypeError(f"Value after * must be an iterable, not {type(value).__name__}")
    target.extend(value)


def update_dict(target: dict, value: Any) -> None:
    if not hasattr(value, "keys"):
        raise TypeError(f"'{type(value).__name__}' object is not a mapping")
    target.update(value)


def add_item(target: dict, pair: tuple[Any, Any]) -> None:
    target[pair[0]] = pair[1]


EXTEND: dict[str, Callable[[Any, Any], None]] = {
    "append": list.append,
    "extend": extend_list,
    "add": set.add,
    "update": set.update,
    "item": add_item,
    "dict_update": update_dict,
}
BUILD: dict[str, Callable[[list], Any]] = {
    "list": list,
    "tuple": tuple,
    "set": set,
    "map": lambda items: dict(zip(items[::2], items[1::2])),
    "string": "".join,
    "slice": lambda items: slice(*items),
}


def words_for(function: Any) -> str:
    """How errors about arguments name a callable."""
    name = getattr(function, "__qualname__", None)
    if name is None:
        return str(function)
    module = getattr(function, "__module__", None)
    return f"{name}()" if module is None or module == "builtins" else f"{module}.{name}()"


def merge_keywords(function: Any, target: dict, value: Any) -> None:
    """Adds `**value` to the keyword arguments of a call of `function`."""
    if not hasattr(value, "keys"):
        words = f"{words_for(function)} argument after ** must be a mapping, not {type(value).__name__}"
        raise TypeError(words)
    for key in value.keys():
        if key in target:
            raise TypeError(f"{words_for(function)} got multiple values for keyword argument '{key}'")
        target[key] = value[key]


def bound_special(obj: Any, name: str) -> Any:
    """A special method as the interpreter looks it up: on the type alone, bound to `obj`; AttributeError without."""
    kind = type(obj)
    for cls in kind.__mro__:
        if name in cls.__dict__:
            found = cls.__dict__[name]
            get = getattr(type(found), "__get__", None)
            return found if get is None else get(found, obj, kind)
    raise AttributeError(name)
