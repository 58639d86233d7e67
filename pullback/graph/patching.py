"""Functions replaced while a program is traced, and put back after.

In: a namespace or class, a name, a function. Out: the namespace with the function in it, until the patcher is left. What
always holds: everything is put back in reverse order, also after an error. Tracers that packages derive write their own
`trace` with these pieces, under the names that `torch.fx._symbolic_trace` has for them.
"""

from __future__ import annotations

import builtins
import functools
from collections.abc import Callable
from typing import Any

from .arguments import map_aggregate
from .proxy import Proxy
from .wrapping import wrapped_methods, wrapped_names

_ABSENT = object()


class Patcher:
    """Replaces entries of namespaces and attributes of classes; leaving it undoes all."""

    def __init__(self) -> None:
        self._undo: list[Callable[[], None]] = []
        self._visited: set[int] = set()

    def __enter__(self) -> Patcher:
        return self

    def __exit__(self, *exc: Any) -> None:
        while self._undo:
            self._undo.pop()()

    def patch(self, names: dict[str, Any], name: str, function: Callable, deduplicate: bool = True) -> None:
        """Replace a global, or shadow a builtin; where `deduplicate`, not one that was replaced before."""
        before = names.get(name, _ABSENT)
        if deduplicate and getattr(before, "_is_traced_leaf", False):
            return
        function._is_traced_leaf = True  # type: ignore[attr-defined]
        names[name] = function
        self._undo.append(lambda: names.pop(name) if before is _ABSENT else names.__setitem__(name, before))

    def patch_method(self, cls: type, name: str, function: Callable, deduplicate: bool = False) -> None:
        """Replace an attribute of a class; one that it inherits is its own until the patcher is left."""
        before = getattr(cls, name)
        if deduplicate and getattr(before, "_is_traced_leaf", False):
            return
        own = name in cls.__dict__
        function._is_traced_leaf = True  # type: ignore[attr-defined]
        setattr(cls, name, function)
        self._undo.append(lambda: setattr(cls, name, before) if own else delattr(cls, name))

    def visit_once(self, thing: Any) -> bool:
        """Whether a thing is seen for the first time."""
        first = id(thing) not in self._visited
        self._visited.add(id(thing))
        return first

    def patch_wrapped(self) -> None:
        """Make leaves of all functions that were given to `wrap`, and of the methods that were named."""
        for (_, name), names in list(wrapped_names.items()):
            function = names[name] if name in names else getattr(builtins, name)
            self.patch(names, name, leaf(function))
        for cls, name in wrapped_methods:
            self.patch_method(cls, name, method_leaf(getattr(cls, name), name), deduplicate=True)

    def patch_known(self, names: dict[str, Any], ids: set[int]) -> None:
        """Make leaves of the functions of a namespace that are among `ids`."""
        if not self.visit_once(names):
            return
        for name, value in list(names.items()):
            if not name.startswith("_") and callable(value) and id(value) in ids:
                self.patch(names, name, leaf(value))


def patch_wrapped_functions(patcher: Patcher) -> None:
    """Make leaves of all functions that were given to `wrap`."""
    patcher.patch_wrapped()


def patch_known_functions(patcher: Patcher, names: dict[str, Any], ids: set[int]) -> None:
    """Make leaves of the functions of a namespace that are among `ids`."""
    patcher.patch_known(names, ids)


def find_proxy(*values: Any) -> Any:
    """The last proxy in nested arguments, or None."""
    found: list = []
    map_aggregate(values, lambda a: found.append(a) if isinstance(a, Proxy) else None)
    return found[-1] if found else None


def leaf(function: Callable) -> Callable:
    """A function that is recorded as one call when a proxy is among its arguments."""

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        proxy = find_proxy(args, kwargs)
        if proxy is None:
            return function(*args, **kwargs)
        result = proxy.tracer.create_proxy("call_function", function, args, kwargs)
        result.node.meta["is_wrapped"] = True
        return result

    return call


def method_leaf(method: Callable, name: str) -> Callable:
    """A method that is recorded as one call when a proxy is among its arguments."""

    @functools.wraps(method)
    def call(*args: Any, **kwargs: Any) -> Any:
        proxy = find_proxy(args, kwargs)
        if proxy is None:
            return method(*args, **kwargs)
        return proxy.tracer.create_proxy("call_method", name, args, kwargs)

    return call


def recorded_operator(call: Callable) -> Callable:
    """`Operator.__call__` that records calls on proxies: overloads (`ops.aten.add.Tensor`) ask no class for overrides."""

    @functools.wraps(call)
    def traced(op: Any, *args: Any, **kwargs: Any) -> Any:
        proxy = find_proxy(args, kwargs)
        return call(op, *args, **kwargs) if proxy is None else type(proxy).__torch_function__(op, (), args, kwargs)

    return traced
