"""Values of a captured program as code that makes them again at each run.

While a program is captured, its values are real objects that hold fakes. `Rebuild.expression(value)` gives Python text for
the same value made of a run's own parts: what came from outside is read from its source, tensors that the graph computes
are its results, constants are constants, and everything that the program made itself (containers, instances, functions
with their cells, iterators, frames) is made anew, shared where it was shared.
"""

from __future__ import annotations

import collections
import functools
import gc
import types
import weakref
from collections.abc import Callable

from ...autograd.methods import RemovableHandle
from ...core.tensor import Tensor
from ...nn.parameter import Parameter
from ...ops.system.operator import find as find_operator
from ..front.fakes import as_given, holds_fakes
from .arrays.traced import TracedArray
from .differentiate import history, spent, spent_class
from .frame import NULL, Frame
from .generators import Generator
from .journal import Effect, base_of
from .kept import PendingHandle
from .lookups import HEAP_TYPE
from .native import Callback, contents
from .outside import CONSTANTS, CONTAINERS, _slots, is_symbol, plain_setter
from .signals import Break
from .tracebacks import lines_of, traceback_of
from .tracing import Items, Tracing, Unseen

ATOMS = (
    type,
    types.ModuleType,
    types.CodeType,
    property,
    staticmethod,
    classmethod,
    types.WrapperDescriptorType,
    types.MethodDescriptorType,
)


class Rebuild:
    """Collects the lines that make values, and the results that the graph must give."""

    def __init__(self, world: Tracing):
        self.world, self.outside, self.conditions = world, world.outside, world.outside.conditions
        self.lines: list[str] = []
        self.results: list = []  # tensors and symbolic numbers that the graph gives
        self.variables: dict[int, str] = {}  # id of a value -> its variable
        self.pins: list = []
        self.conditions.namespace.update(as_given=as_given, Frame=Frame, Generator=Generator)

    def name(self, value) -> str:
        return self.conditions.constant(value)

    def expression(self, value) -> str:
        """Text that gives the value."""
        kind = type(value)
        if kind is Unseen:
            return self.conditions.variable(value.source)
        if id(value) in self.outside.copies:
            value = self.outside.original_of(value)
        if value is NULL or kind in (bool, int, float, str, bytes, type(None)):
            return self.conditions.literal(value)
        source = self.outside.source_of(value)
        if source is not None:
            return self.conditions.variable(source)
        if id(value) in self.variables:
            return self.variables[id(value)]
        if isinstance(value, Tensor) or is_symbol(value):
            return self._result(value)
        if isinstance(value, (*CONSTANTS, *ATOMS)) and kind is not slice or self._is_fixed(value, kind):
            return self.name(value)
        rule = next((rule for cls, rule in RULES if isinstance(value, cls)), Rebuild._instance)
        return rule(self, value)

    def _is_fixed(self, value, kind: type) -> bool:
        """Whether an object of ours has nothing that a program could change."""
        has_state = hasattr(value, "__dict__") or _slots(kind) or isinstance(value, CONTAINERS)
        return self.world.is_ours(kind.__module__) and not has_state

    def _keep(self, value, text: str) -> str:
        """Assign a new variable."""
        variable = self.variables[id(value)] = f"x{len(self.variables)}"
        self.pins.append(value)
        self.lines.append(f"{variable} = {text}")
        return variable

    def _result(self, value) -> str:
        """A result of the graph."""
        variable = self.variables[id(value)] = f"r{len(self.results)}"
        self.results.append(value)
        self.pins.append(value)
        cls = type(value)
        if self._is_spent(value):
            kind = spent_class(value._autograd.edge[0].name())
            self.conditions.namespace["spent"] = spent
            self.lines.append(f"{variable} = spent({variable}, {self.name(kind)})")
        if cls is Parameter:
            self.lines.append(f"{variable} = {self.name(Parameter)}({variable}, requires_grad={value.requires_grad})")
        elif isinstance(value, Tensor) and cls is not Tensor:
            self.lines.append(f"{variable} = as_given({variable}, {self.name(cls)})")
        if id(value) in self.world.made_leaves and cls is not Parameter:
            self.lines.append(f"{variable}.requires_grad_({value.requires_grad})")
        for key, state in self.outside.marked.get(id(value), (None, {}))[1].items():
            self.lines.append(f"{variable}.{key} = {self.expression(state)}")
        return variable

    def _is_spent(self, value) -> bool:
        """Whether a result's history is one that a backward of the program has walked, and freed what it had saved."""
        edge = value._autograd.edge if isinstance(value, Tensor) and value._autograd is not None else None
        if edge is None or id(edge[0]) not in self.world.spent:
            return False
        return any(node.saved for node in history([value]) if id(node) in self.world.spent)

    def results_of_graph(self) -> list:
        """What the graph gives: values whose history is spent, and leaves, without it."""
        find = self.world.trace.outside
        nodes = [find(v) for v in self.results]
        graph, made = self.world.trace.graph, self.world.made_leaves
        return [
            graph.call_function(find_operator("detach.default"), (n,)) if self._is_spent(v) or id(v) in made else n
            for n, v in zip(nodes, self.results, strict=True)
        ]

    def items(self, values) -> str:
        return ", ".join([self.expression(v) for v in values])

    def pairs(self, mapping) -> str:
        return ", ".join([f"{self.expression(k)}: {self.expression(v)}" for k, v in mapping.items()])

    # ---- kinds
    def _list(self, value) -> str:
        if type(value) is not list:
            return self._instance(value)
        result = self._keep(value, "[]")
        self.lines.append(f"{result}.extend([{self.items(value)}])") if value else None
        return result

    def _dict(self, value) -> str:
        if type(value) is not dict:
            return self._instance(value)
        result = self._keep(value, "{}")
        self.lines.append(f"{result}.update({{{self.pairs(value)}}})") if value else None
        return result

    def _tuple(self, value) -> str:
        items = self.items(value)
        items = f"({items},)" if value else "()"
        if type(value) is tuple:
            return self._keep(value, items)
        result = self._keep(value, f"tuple.__new__({self.name(type(value))}, {items})")
        for key, state in getattr(value, "__dict__", {}).items():
            self.lines.append(f"{result}.__dict__[{key!r}] = {self.expression(state)}")
        return result

    def _set(self, value) -> str:
        if type(value) not in (set, frozenset):
            return self._instance(value)
        return self._keep(
            value, f"{type(value).__name__}(({self.items(value)},))" if value else f"{type(value).__name__}()"
        )

    def _slice(self, value) -> str:
        return self._keep(value, f"slice({self.items((value.start, value.stop, value.step))})")

    def _function(self, value: types.FunctionType) -> str:
        if not self.world.is_made_inside(value):
            result = [contents(cell) for cell in value.__closure__ or () if not self.outside.is_outside(cell)]
            if holds_fakes(result, 4):
                raise Break(f"it holds a function ({value.__qualname__}) around tensors of the graph")
            if not any(
                isinstance(state, Callback) for state in result
            ):  # native code made it around one of the program's
                return self.name(value)
        cells = f"({self.items(value.__closure__)},)" if value.__closure__ else "None"
        defaults = self.expression(value.__defaults__)
        if id(value) in self.variables:  # a cell of it holds the function itself, or one that does
            return self.variables[id(value)]
        maker = self.name(types.FunctionType)
        result = self._keep(
            value,
            f"{maker}({self.name(value.__code__)}, {self.name(value.__globals__)}, {value.__name__!r}, {defaults}, {cells})",
        )
        self.lines.append(f"{result}.__qualname__ = {value.__qualname__!r}")
        if value.__kwdefaults__:
            self.lines.append(f"{result}.__kwdefaults__ = {self.expression(value.__kwdefaults__)}")
        if value.__annotations__:
            self.lines.append(f"{result}.__annotations__ = {self.expression(value.__annotations__)}")
        if value.__dict__:
            self.lines.append(f"{result}.__dict__.update({self.expression(dict(value.__dict__))})")
        return result

    def _cell(self, value: types.CellType) -> str:
        result = self._keep(value, f"{self.name(types.CellType)}()")
        try:
            contents = value.cell_contents
        except ValueError:
            return result
        self.lines.append(f"{result}.cell_contents = {self.expression(contents)}")
        return result

    def _array(self, value: TracedArray) -> str:
        """A NumPy array, on the memory of the tensor that the graph computes; or a scalar."""
        if value.is_loose:
            raise Break("it keeps a view of a NumPy array that is none in a graph")
        return self._keep(value, f"{self.expression(value.tensor)}.numpy(){'[()]' if value.is_scalar else ''}")

    def _method(self, value: types.MethodType) -> str:
        if type(value.__self__) is TracedArray:
            return self._keep(value, f"getattr({self.expression(value.__self__)}, {value.__func__.__name__!r})")
        return self._keep(value, f"{self.name(types.MethodType)}({self.items((value.__func__, value.__self__))})")

    def _builtin(self, value) -> str:
        owner = value.__self__
        if owner is None or isinstance(owner, (types.ModuleType, type)):
            return self.name(value)
        return self._keep(value, f"getattr({self.expression(owner)}, {value.__name__!r})")

    def _partial(self, value: functools.partial) -> str:
        given = self.items((value.func, *value.args))
        return self._keep(value, f"{self.name(functools.partial)}({given}, **{self.expression(dict(value.keywords))})")

    def _items(self, value: Items) -> str:
        result = self._keep(value, f"iter({self.expression(value.container)})")
        self.lines.append(f"{result}.__setstate__({value.index})")
        return result

    def _view(self, value) -> str:
        (mapping,) = gc.get_referents(value)
        return self._keep(value, f"{self.expression(mapping)}.{type(value).__name__.partition('_')[2]}()")

    def _proxy(self, value: types.MappingProxyType) -> str:
        (behind,) = gc.get_referents(value)
        return self._keep(value, f"{self.name(types.MappingProxyType)}({self.expression(behind)})")

    def _weakref(self, value: weakref.ref) -> str:
        if value() is None or value.__callback__ is not None:
            raise Break("a weak reference that the program made cannot be made again")
        return self._keep(value, f"{self.name(weakref.ref)}({self.expression(value())})")

    def _super(self, value: super) -> str:
        return self._keep(value, f"super({self.items((value.__thisclass__, value.__self__))})")

    def _handle(self, value: PendingHandle) -> str:
        result = self._keep(value, f"{self.name(value.method)}({self.items((value.tensor, value.hook))})")
        if value.is_removed:
            self.lines.append(f"{result}.remove()")
        return result

    def _callback(self, value: Callback) -> str:
        return self.expression(value.function)

    def frame(self, value: Frame) -> str:
        """A frame in the state that it has."""
        result = self._keep(
            value,
            f"Frame({self.name(value.code)}, {self.name(value.globals)}, index={value.index}, builtins={self.name(value.builtins)})",
        )
        parts = {
            "locals": dict(value.locals),
            "cells": dict(value.cells),
            "stack": list(value.stack),
            "handled": list(value.handled),
        }
        self.pins.append(parts)
        for slot, state in parts.items():
            if state:
                self.lines.append(f"{result}.{slot} = {self.expression(state)}")
        for slot in ("function", "on_return", "names", "generator"):
            if getattr(value, slot) is not None:
                self.lines.append(f"{result}.{slot} = {self.expression(getattr(value, slot))}")
        if value.waiting:
            self.lines.append(f"{result}.waiting = True")
        return result

    # ---- anything else
    def _instance(self, value) -> str:
        """An object of a class: made by what `copy` would use."""
        cls = type(value)
        if cls is RemovableHandle:
            raise Break("it holds the handle of a hook that the graph adds")
        if all(is_written_in_python(base) for base in cls.__mro__[:-1]):  # nothing of it is hidden in C
            return self._plain_instance(value, cls)
        try:
            parts = value.__reduce_ex__(4)
        except (TypeError, NotImplementedError, AttributeError) as error:
            raise Break(f"a {cls.__name__} that the program made cannot be made again: {error}") from None
        if isinstance(parts, str):
            return self.name(value)
        self.pins.append(parts)
        function, args, state, items, pairs, *_ = (*parts, None, None, None)
        result = self._keep(value, f"{self.expression(function)}({self.items(args)})")
        plain = base_of(value) if isinstance(value, CONTAINERS) else cls  # whose methods only fill it
        if items is not None:
            self.lines.append(f"{self.name(plain.extend)}({result}, [{self.items(list(items))}])")
        for key, values in list(pairs or ()):
            self.lines.append(f"{self.name(plain.__setitem__)}({result}, {self.items((key, values))})")
        if state is not None:
            self._fill(result, value, state)
        if isinstance(value, BaseException):
            self._causes(result, value)
        return result

    def _causes(self, result: str, value: BaseException) -> None:
        """What an exception was raised from, and while handling what, and where."""
        lines = lines_of(value.__traceback__)
        if lines:
            self.conditions.namespace["traceback_of"] = traceback_of
            self.lines.append(f"{result}.__traceback__ = traceback_of({lines!r})")
        for slot in ("__context__", "__cause__"):
            if getattr(value, slot) is not None:
                self.lines.append(f"{result}.{slot} = {self.expression(getattr(value, slot))}")
        if value.__cause__ is not None or value.__suppress_context__:
            self.lines.append(f"{result}.__suppress_context__ = {value.__suppress_context__}")

    def _plain_instance(self, value, cls: type) -> str:
        result = self._keep(value, f"{self.name(object.__new__)}({self.name(cls)})")
        own = getattr(value, "__dict__", None)
        if own:
            for key, state in own.items():
                self.lines.append(f"{result}.__dict__[{key!r}] = {self.expression(state)}")
        for slot in _slot_names(cls):
            if hasattr(value, slot):
                self.lines.append(
                    f"{self.name(object.__setattr__)}({result}, {slot!r}, {self.expression(getattr(value, slot))})"
                )
        return result

    def _fill(self, result: str, value, state) -> None:
        if hasattr(type(value), "__setstate__"):
            self.lines.append(f"{result}.__setstate__({self.expression(state)})")
        elif isinstance(state, dict):
            self.lines.append(f"{result}.__dict__.update({self.expression(state)})")
        else:
            raise Break(f"a {type(value).__name__} that the program made cannot be made again")

    # ---- effects
    def effect(self, effect: Effect) -> str:
        """A line that does again what the program did to an object from outside."""
        target = self.expression(effect.target)
        if effect.kind == "listen":
            return f"{target}  # registered where it was made"
        if effect.kind == "later":
            given, named = self.items(effect.key), self.pairs(effect.value)
            return f"{target}({given}{', ' if given else ''}**{{{named}}})"
        if effect.kind == "no attribute":
            return f"{self.name(delattr)}({target}, {effect.key!r})"
        if effect.kind == "cell":
            return f"{target}.cell_contents = {self.expression(effect.value)}"
        if effect.kind == "attribute":
            return (
                f"{self.name(plain_setter(effect.target))}({target}, {effect.key!r}, {self.expression(effect.value)})"
            )
        if effect.kind in ("item", "no item"):
            write = "__setitem__" if effect.kind == "item" else "__delitem__"
            function: Callable = getattr(base_of(effect.target), write)
            given = (effect.key, effect.value) if effect.kind == "item" else (effect.key,)
            return f"{self.name(function)}({target}, {self.items(given)})"
        # The method of the built-in kind: that of a subclass may do more, and what it did is in the journal.
        method = self.name(getattr(base_of(effect.target), effect.kind))
        return (
            f"{method}({target}, {self.items(effect.key)}{', ' if effect.key else ''}**{{{self.pairs(effect.value)}}})"
        )


def is_written_in_python(cls: type) -> bool:
    return bool(cls.__flags__ & HEAP_TYPE) and not isinstance(cls.__dict__.get("__new__"), types.BuiltinMethodType)


def _slot_names(cls: type) -> list[str]:
    names: list[str] = []
    for base in cls.__mro__:
        slots = base.__dict__.get("__slots__", ())
        names += [slots] if isinstance(slots, str) else list(slots)
    return [n for n in dict.fromkeys(names) if n not in ("__dict__", "__weakref__")]


RULES: list[tuple] = [
    (list, Rebuild._list), (dict, Rebuild._dict), (tuple, Rebuild._tuple), ((set, frozenset), Rebuild._set), (slice, Rebuild._slice),
    (types.FunctionType, Rebuild._function), (types.CellType, Rebuild._cell), (types.MethodType, Rebuild._method),
    ((types.BuiltinFunctionType, types.MethodWrapperType), Rebuild._builtin), (functools.partial, Rebuild._partial), (Items, Rebuild._items),
    ((*(type(v()) for v in ({}.keys, {}.values, {}.items)), *(type(getattr(collections.OrderedDict(), n)()) for n in ("keys", "values", "items"))), Rebuild._view),
    (types.MappingProxyType, Rebuild._proxy), (weakref.ref, Rebuild._weakref), (super, Rebuild._super), (Callback, Rebuild._callback), (Frame, Rebuild.frame),
    (PendingHandle, Rebuild._handle), (TracedArray, Rebuild._array),
]  # fmt: skip
