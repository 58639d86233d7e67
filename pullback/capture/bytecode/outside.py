"""Values from outside: what a captured program gets for them, and what it must find again to be entered.

`Outside.enter(value, source)` is called for everything that a program reads from outside: a tensor becomes an input of
the graph and the program gets its fake; a simple value is tested to be the same; any other object is itself, tested for
its type only: what is in it is entered when it is read. So a graph depends on what the program read, and on nothing else.
"""

from __future__ import annotations

import collections
import enum
import functools
import gc
import itertools
import operator
import types
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from ...core import modes
from ...core.device import device
from ...core.dtype import dtype
from ...core.modes import ambient
from ...core.tensor import Tensor
from ...ops.make.construct import from_numpy
from ...ops.system.overrides import has_override
from ..front.dynamic import marks_fit, marks_of
from ..front.guards import SIMPLE
from ..front.guards import of_package as is_ours
from .arrays.traced import TracedArray
from .conditions import Conditions
from .journal import ALL, Journal, base_of
from .lookups import ABSENT, Lookups, class_attribute, is_symbol, may_change
from .signals import Break
from .sources import Source, Sources


def stays(name: str, value) -> bool:
    """Whether a name of a module of this package has this value for good, so that nobody need look again: bits and limits, whose names
    are in capitals, dtypes and devices, and the two objects that hold the ambient state."""
    return (
        value is ambient
        or value is modes.process
        or type(value) in (dtype, device)
        or name.isupper()
        and isinstance(value, SIMPLE)
    )


CONSTANTS = (*SIMPLE, dtype, device, types.EllipsisType, types.NotImplementedType, range, slice)
BY_IDENTITY = (
    type,
    types.ModuleType,
    types.BuiltinFunctionType,
    types.WrapperDescriptorType,
    types.MethodDescriptorType,
    enum.Enum,
)
BOUND = (types.BuiltinFunctionType, types.MethodWrapperType)
CONTAINERS = (list, tuple, dict, set, frozenset, collections.deque, bytearray)
SEQUENCES = (list, tuple, collections.deque)
KEYS, VALUES = type({}.keys()), type({}.values())
VIEWS = (KEYS, VALUES, type({}.items()))


def is_compiled(function) -> bool:
    """Whether `torch.compile` made this very function; `functools.wraps` gives what wraps it the same attributes."""
    own = getattr(function, "__dict__", None) or {}
    return "_torchdynamo_orig_callable" in own and own.get("_torchdynamo_wrapper_id") == id(function)


def module_of(function) -> str:
    """The name of the module in which a function was written."""
    around = getattr(function, "__globals__", None)
    return (around or {}).get("__name__") or getattr(function, "__module__", None) or ""


def plain_setter(obj) -> Callable:
    """What assigns to an attribute without asking a `__setattr__` of the user's, which has had its say."""
    own = class_attribute(type(obj), "__setattr__")
    is_users = isinstance(own, types.FunctionType) and not is_ours(module_of(own))
    return object.__setattr__ if is_users else setattr


class Known(NamedTuple):
    """An object from outside (kept alive), what the program has in its place, and where it was found."""

    value: object
    inside: object
    source: Source


class Outside:
    """Everything that one capture read from outside."""

    def __init__(self, trace, journal: Journal, sizes):
        self.trace, self.journal, self.sizes = trace, journal, sizes
        self.conditions, self.sources, self.lookups = Conditions(), Sources(), Lookups()
        self.known: dict[int, Known] = {}
        self.reals: dict[int, Known] = {}  # by the id of what is inside
        self.marked: dict[
            int, tuple[Tensor, dict]
        ] = {}  # tensors that the program made, with the attributes it gave them
        self.numbers: dict[int, object] = {}  # by the id of a source: what the program has for a number found there
        self.loose: set[int] = set()  # by the id of a source: tensors whose sizes are tested apart
        self.tensors: list[Tensor] = []  # as the conditions list them
        self.copies: dict[
            int, tuple
        ] = {}  # lists of classes of the user's: by the id of a copy, (copy, original, its items)
        self.overrides = False  # whether classes of tensors take part in calls
        self.gradients: dict[int, object] = {}  # by the id of a tensor: the gradient that the program gave it

    def let_go(self) -> None:
        """The capture is over: its graph, which lives on, keeps none of the values that it was made with."""
        self.known.clear()
        self.reals.clear()
        self.tensors.clear()
        self.gradients.clear()
        self.copies.clear()
        self.trace.stand_ins.clear()
        self.conditions.abouts.clear()

    def source_of(self, value) -> Source | None:
        """Where an object was found; None where the program made it itself."""
        known = self.known.get(id(value)) or self.reals.get(id(value))
        return known.source if known is not None else None

    def is_outside(self, value) -> bool:
        return id(value) in self.known

    def settled(self, value):
        """What the program has in the place of a value that it may have stored itself."""
        known = self.known.get(id(value))
        return value if known is None else known.inside

    def real(self, value):
        """The object from outside that a value of the program stands for; the value itself where there is none."""
        known = self.reals.get(id(value))
        return value if known is None else known.value

    def key(self, value):
        """A key of the program as containers from outside have it: which object it is, or which number, is then tested."""
        if is_symbol(value):
            return value.symbolic_type(value)
        if isinstance(value, (*CONSTANTS, enum.Enum, type)):
            return value
        if type(value) is tuple:
            value = self.copy(value) if self.is_outside(value) else value
            items = tuple([self.key(v) for v in value])
            return value if all(a is b for a, b in zip(items, value, strict=True)) else items
        if isinstance(value, frozenset) and self.is_outside(value):
            return self.copy(value)
        source, real = self.source_of(value), self.real(value)
        if source is not None and source.kind != "constant":
            self.conditions.is_object(source, real)
        return real

    def enter(self, value, source: Source):
        """What the program gets for a value found at a place."""
        kind = type(value)
        if (kind is int or kind is float) and self.sizes.is_dynamic_number(source.name, value):
            return self._number(value, source)
        if kind in CONSTANTS_SET:
            self.conditions.equals(source, value)
            return value
        known = self.known.get(id(value))
        if known is not None:
            self.conditions.same(known.source, source)
            return known.inside
        if isinstance(value, np.generic):
            self._scalar(value, source)
            return value
        inside = self._inside(value, kind, source)
        self.known[id(value)] = found = Known(value, inside, source)
        if inside is not value:
            self.reals[id(inside)] = found
        else:
            self._object(value, source)
        return inside

    def constant(self, value, name: str | None = None):
        """An object that is at hand in any case, such as a class or a function of a class; it needs no test."""
        if not isinstance(value, CONSTANTS) and id(value) not in self.known:
            name = name or getattr(value, "__name__", type(value).__name__)
            self.known[id(value)] = Known(value, value, self.sources.constant(value, name))
        return value

    def enter_table(self, table: dict, source: Source) -> None:
        """The `__dict__` of an object from outside: it is there because the object's type is what it was."""
        self.known[id(table)] = Known(table, table, source)

    def write_tensor_attribute(self, t: Tensor, name: str, value) -> None:
        """Set a Python attribute, or the gradient, of a tensor from outside. The program reads it from the journal's side."""
        old = t.__dict__.get(name, ABSENT) if name != "grad" else t.grad
        if name == "grad":
            self.gradients[id(t)] = value
        else:
            t.__dict__[name] = value
        undo = (
            (lambda: None)
            if name == "grad"
            else (lambda: t.__dict__.pop(name))
            if old is ABSENT
            else (lambda: t.__dict__.__setitem__(name, old))
        )
        self.journal.set_attribute(t, name, value, undo)

    def tell_apart(self) -> None:
        """Test that objects the program wrote to are none of the others that it read: a write would show there."""
        found = [known for known in self.known.values() if known.inside is known.value]
        touched = {
            id(k.source.base if k.source.kind == "attributes" else k.source)
            for k in found
            if self.journal.touched.get(id(k.value))
        }
        groups: dict[type, list[Source]] = {}
        for value, _, source in found:
            if source.kind != "attributes" and not isinstance(value, APART):
                groups.setdefault(type(value), []).append(source)
        for group in groups.values():
            if len(group) > 1 and any(id(source) in touched for source in group):
                places = ", ".join([self.conditions.variable(source) for source in group])
                words = f"no two of {', '.join(source.name for source in group)} are the same"
                self.conditions.test(f"len({{*map(id, ({places}))}}) == {len(group)}", words)

    # ---- kinds
    def _object(self, value, source: Source) -> None:
        if isinstance(value, BOUND) and not isinstance(value.__self__, (types.ModuleType, type, types.NoneType)):
            v = self.conditions.variable(source)
            same = f"type({v}) is {self.conditions.constant(type(value))} and {v}.__name__ == {value.__name__!r}"
            self.conditions.test(same, f"{source.name} is a method {value.__name__!r}")
            self.enter(value.__self__, self.sources.get("attribute", source, "__self__"))
        elif type(value) is super:
            v, cls = self.conditions.variable(source), self.conditions.constant(value.__thisclass__)
            self.conditions.test(
                f"type({v}) is super and {v}.__thisclass__ is {cls}", f"{source.name} is the same super()"
            )
            self.enter(value.__self__, self.sources.get("attribute", source, "__self__"))
        elif isinstance(value, types.FunctionType) and not is_ours(module_of(value)):
            self.conditions.is_function(source, value)
        elif isinstance(value, (*BY_IDENTITY, types.FunctionType)) or not (
            isinstance(value, CONTAINERS + READABLE) or hasattr(value, "__dict__") or _slots(type(value))
        ):
            self.conditions.is_object(source, value)
        else:
            self.conditions.has_type(source, type(value))
            self._value_of_subclass(value, source)

    def _value_of_subclass(self, value, source: Source) -> None:
        """A number or text of a class of the user's: its methods are looked up like any, its value is tested here."""
        kind = next((k for k in (int, float, complex, str, bytes) if isinstance(value, k)), None)
        if kind is not None:
            v, plain = self.conditions.variable(source), kind.__getnewargs__(value)[0]
            self.conditions.test(
                f"{kind.__name__}.__eq__({v}, {self.conditions.literal(plain)})", f"{source.name} == {plain!r}"
            )

    def _inside(self, value, kind: type, source: Source):
        """What the program has for a value: tensors and arrays are those of the graph."""
        if isinstance(value, Tensor):
            return self._tensor(value, source)
        return self._array(value, source) if kind is np.ndarray else value

    def _scalar(self, value: np.generic, source: Source) -> None:
        """A NumPy scalar: its value is tested, to the last bit."""
        v, c = self.conditions.variable(source), self.conditions.constant(type(value))
        code = f"type({v}) is {c} and {v}.tobytes() == {self.conditions.literal(value.tobytes())}"
        self.conditions.test(code, f"{source.name} == {value!r}")

    def _array(self, value: np.ndarray, source: Source):
        """A NumPy array: the tensor on its memory is an input. One that no tensor can be on stays what it is."""
        try:
            with modes.masked(modes.CAPTURE | modes.DISPATCH):
                t = from_numpy(value) if value.flags.writeable else None
        except (TypeError, ValueError):
            t = None
        if t is None:
            return value
        self.conditions.has_type(source, np.ndarray)
        self.conditions.test(f"{self.conditions.variable(source)}.flags.writeable", f"{source.name} may be written")
        self.conditions.namespace["from_numpy"] = from_numpy
        place = self.sources.get("array", source)
        fake = self._tensor(t, place)
        self.known[id(t)] = self.reals[id(fake)] = Known(t, fake, place)
        return TracedArray(fake)

    def _tensor(self, t: Tensor, source: Source) -> Tensor:
        context = self.sizes.context(source.name, t)
        self.conditions.fits(source, t, context is None)
        if marks := marks_of(t):
            self.conditions.namespace["marks_fit"] = marks_fit
            test = f"marks_fit({self.conditions.variable(source)}.__dict__, {self.conditions.constant(marks)})"
            self.conditions.test(test, f"{source.name} has no other marks than {marks}")
        if context is not None:
            self.loose.add(id(source))
        self.tensors.append(t)
        if has_override(type(t)):
            self.test_overrides()
        return self.trace.given(t, source, context)

    def _number(self, value: int | float, source: Source):
        if id(source) in self.numbers:
            return self.numbers[id(source)]
        result = self.numbers[id(source)] = self.trace.given_number(value, source)
        if result is value:
            self.conditions.equals(source, value)
        else:
            v = self.conditions.variable(source)
            kind = type(value).__name__
            self.conditions.test(f"type({v}) is {kind}", f"type of {source.name} is {kind}")
            self.reals[id(result)] = Known(value, result, source)
        return result

    def own_attribute(self, cls: type, name: str):
        """What a class itself has for a name, whatever it inherits."""
        found = cls.__dict__.get(name, ABSENT)
        if may_change(cls):
            self.lookups.note(cls, cls, name, found)
        return found

    def test_overrides(self) -> None:
        """Classes of tensors take part in calls (`__torch_function__`): whether that is switched on is tested where the graph is entered."""
        self.overrides = True

    def has_no_attribute(self, t: Tensor, name: str) -> None:
        """Nobody has put an attribute of that name on a tensor."""
        source = self.source_of(t)
        self.conditions.test(
            f"{name!r} not in {self.conditions.variable(source)}.__dict__", f"{source.name} has no {name!r}"
        )

    # ---- containers
    def item(self, container, key):
        """`container[key]` of a list, tuple, deque or dict from outside."""
        value = BASE_GET[_kind(container)](container, key)
        if isinstance(container, SEQUENCES):
            key = self._place(container, key)
        if self.journal.is_touched(container, key):
            return self.settled(value)
        return self.enter(value, self.sources.item(self.source_of(container), key, _reader(container, "__getitem__")))

    def _place(self, container, key: int) -> int:
        """An index counted from the beginning; where that, or what was put there, depends on the length, it is tested."""
        place = key + len(container) if key < 0 else key
        touched = self.journal.touched.get(id(container))
        if key < 0 and touched and ALL not in touched and place >= len(self.journal.original(container)):
            return place  # one of those that the program appended, whatever was there before
        if key < 0 or touched:
            self.length(container)
        return place

    def has(self, mapping, key) -> bool:
        """`key in mapping` for a dict, its keys, or a set, from outside."""
        if isinstance(mapping, KEYS):
            (behind,) = gc.get_referents(mapping)
            if self.journal.touched.get(id(behind)):
                raise Break("it looks into the keys of a dict that it has changed")
        kind: type = next(k for k in (dict, set, frozenset, KEYS) if isinstance(mapping, k))
        present = kind.__contains__(mapping, key)  # type: ignore[attr-defined]
        if not self.journal.is_touched(mapping, key):
            self.conditions.has_key(self.source_of(mapping), key, present, _reader(mapping, "__contains__"))
        return present

    def length(self, container) -> int:
        """`len(container)`."""
        count = _kind(container).__len__
        original = self.journal.originals.get(id(container))
        length = count(container) if original is None else len(original)
        self.conditions.has_length(self.source_of(container), length, _reader(container, "__len__"))
        return count(container)

    def keys(self, mapping: dict) -> list:
        """The keys of a dict, in order."""
        original = self.journal.originals.get(id(mapping))
        original = list(base_of(mapping).__iter__(mapping) if original is None else original)
        if not all(isinstance(k, CONSTANTS) for k in original):
            if not all(isinstance(k, (Tensor, type, enum.Enum, *CONSTANTS)) for k in original):
                raise Break(f"it reads all of {self.source_of(mapping).name}, whose keys are objects")
            self.conditions.has_identical_keys(self.source_of(mapping), list(original))
        else:
            counts = _reader(mapping, "__len__") is None
            self.conditions.has_keys(self.source_of(mapping), tuple(original), _reader(mapping, "__iter__"), counts)
        return [self.settled(k) for k in base_of(mapping).__iter__(mapping)]

    def copy(self, container):
        """A container of the program's own that holds what one from outside holds."""
        if isinstance(container, SEQUENCES):
            items = [self.item(container, i) for i in range(self.length(container))]
            if isinstance(container, collections.deque):
                return collections.deque(items, container.maxlen)
            if isinstance(container, tuple):
                return (
                    container
                    if all(a is b for a, b in zip(items, tuple.__iter__(container), strict=True))
                    else tuple.__new__(type(container), items)
                )
            return items if type(container) is list else self._copy_list(container, items)
        if isinstance(container, dict):
            keys = self.keys(container)
            result = dict.copy(container) if type(container) is dict else _empty_like(container)
            for key, own in zip(list(base_of(container).__iter__(container)), keys, strict=True):
                base_of(result).__setitem__(result, own, self.item(container, key))
            return result
        return self._copy_set(container)

    def _copy_list(self, container: list, items: list) -> list:
        """A list of a class of the user's with these items. Who is given it may give it back: it then stands for the original
        (`original_of`)."""
        result = type(container).__new__(type(container))
        list.extend(result, items)
        own = getattr(container, "__dict__", None)
        if own is not None:
            if not self.is_outside(own):
                self.enter_table(own, self.sources.get("attributes", self.source_of(container)))
            result.__dict__.update({key: self.item(own, key) for key in self.keys(own)})
        self.copies[id(result)] = (result, container, items)
        return result

    def original_of(self, value):
        """The list from outside that a copy stands for, unless the copy was changed; else the value itself."""
        copied, container, items = self.copies.get(id(value), (None, None, ()))
        if copied is not value or not isinstance(value, list) or len(value) != len(items):
            return value
        return container if all(map(operator.is_, list.__iter__(value), items)) else value

    def _copy_set(self, container):
        original = self.journal.original(container)
        if not all(isinstance(v, (*CONSTANTS, *BY_IDENTITY, types.FunctionType)) for v in original):
            raise Break(f"it reads all of {self.source_of(container).name}, a set of objects")
        source = self.source_of(container)
        v, c = self.conditions.variable(source), self.conditions.constant(type(original)(original))
        self.conditions.test(f"{v} == {c}", f"{source.name} == {original!r}")
        return _kind(container)(_kind(container).__iter__(container))

    def proxied(self, value):
        """The dict behind a read-only view; that of one from outside is read, and tested, through the view."""
        if type(value) is not types.MappingProxyType:
            return value
        behind = behind_view(value)
        if not isinstance(behind, dict):
            return value
        if self.is_outside(value) and not self.is_outside(behind):
            self.enter_table(behind, self.sources.item(self.source_of(value), "mapping", behind_view))
        return behind

    def viewed(self, view) -> dict | None:
        """The dict that a view (`d.keys()`) from outside is of; it is read, and tested, through the view."""
        behind = behind_view(view)
        if not isinstance(behind, dict):
            return None
        if not self.is_outside(behind):
            self.enter_table(behind, self.sources.item(self.source_of(view), "mapping", behind_view))
        return behind

    def absorb(self, container) -> None:
        """Enter all that a container holds, before its items move."""
        if self.journal.is_touched(container, ALL):
            return
        read = self.copy(container)
        values = list(read.values() if isinstance(read, dict) else read)
        if any(map(is_symbol, values)):  # numbers have no identity to know them by: the container holds the symbols now
            self.journal.save(container)
            base = base_of(container)
            for key, value in zip(
                list(base.__iter__(container)) if isinstance(container, dict) else range(len(values)),
                values,
                strict=True,
            ):
                if is_symbol(value):
                    base.__setitem__(container, key, value)


def _kind(container) -> type:
    return next(kind for kind in CONTAINERS if isinstance(container, kind))


def _reader(container, method: str):
    """What reads a container without running Python code of its class, or adding what is missing; None: Python's own way."""
    cls = type(container)
    if isinstance(class_attribute(cls, method), types.FunctionType):
        return (
            dict_item if method == "__getitem__" and isinstance(container, dict) else getattr(_kind(container), method)
        )
    return dict_item if method == "__getitem__" and hasattr(cls, "__missing__") else None


def dict_item(mapping: dict, key):
    """`mapping[key]`, without making one."""
    found = dict.get(mapping, key, ABSENT)
    if found is ABSENT:
        raise KeyError(key)
    return found


def _empty_like(mapping: dict) -> dict:
    result = type(mapping).__new__(type(mapping))
    if hasattr(mapping, "default_factory"):
        result.default_factory = mapping.default_factory
    return result


def _slots(cls: type) -> bool:
    return any("__slots__" in k.__dict__ and k.__dict__["__slots__"] for k in cls.__mro__)


def behind_view(view, key=None):
    """What a read-only mapping, or the view of a dict, is of: the object itself, which others may have, too."""
    (behind,) = gc.get_referents(view if type(view) is types.MappingProxyType else view.mapping)
    return behind


APART = (*CONSTANTS, *BY_IDENTITY, types.FunctionType, types.MethodType, tuple, frozenset)  # nothing writes to these
CONSTANTS_SET = frozenset(CONSTANTS)
# Advancing an iterator from outside ends the graph, so nothing depends on which one it is.
ITERATORS = tuple(
    {type(iter(v)) for v in ([], (), {}, set(), "", b"", range(0), {}.values(), {}.items(), range(10**20))}
    | {zip, map, filter, enumerate, reversed, type(reversed([])), types.GeneratorType, itertools.count}
)
READABLE = (
    *ITERATORS,
    types.MappingProxyType,
    types.MethodType,
    functools.partial,
    types.CellType,
    property,
    classmethod,
    staticmethod,
)
BASE_GET = {
    list: list.__getitem__,
    tuple: tuple.__getitem__,
    dict: dict.__getitem__,
    collections.deque: collections.deque.__getitem__,
}
