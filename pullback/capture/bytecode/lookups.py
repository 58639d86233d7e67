"""What a capture found in classes: every lookup is noted, and tested when the graph is entered.

Python looks methods, properties and operators up in classes, which anybody may change at any time: replace a method, add
a property, give `__len__` or `__eq__`. `class_attribute` is how a capture looks; while one is under way (`noting`), it
notes of each class on the way what was there, or that nothing was. `Lookups.tests` gives one test for each class. Of
classes of this package only methods are noted, which may be replaced or added; those of the standard library stay what
they are.
"""

from __future__ import annotations

import functools
import sys
import threading
import types
import weakref
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING

from ..front.guards import of_package

if TYPE_CHECKING:
    from .conditions import Conditions

ABSENT = object()
HEAP_TYPE = 1 << 9  # the flag of classes written in Python
_current = threading.local()


def by_class(function: Callable[[type], bool]) -> Callable[[type], bool]:
    """Remember what a function says of classes, and let go of those that nobody else holds."""
    known: weakref.WeakKeyDictionary[type, bool] = weakref.WeakKeyDictionary()

    @functools.wraps(function)
    def ask(cls: type) -> bool:
        found = known.get(cls)
        if found is None:
            found = known[cls] = function(cls)
        return found

    return ask


def is_symbol(value) -> bool:
    """Whether a value is a symbolic number."""
    return getattr(type(value), "is_symbolic", False) is True


@by_class
def may_change(cls: type) -> bool:
    """Whether somebody may put something else into a class."""
    module = cls.__module__ if isinstance(cls.__module__, str) else ""
    known = of_package(module) or module.partition(".")[0] in sys.stdlib_module_names and module != "__main__"
    return bool(cls.__flags__ & HEAP_TYPE) and not known


@by_class
def is_of_package(cls: type) -> bool:
    """Whether a class is one of this package's."""
    return bool(cls.__flags__ & HEAP_TYPE) and of_package(cls.__module__)


def class_attribute(cls: type, name: str):
    """What a class has for a name, as it is written there; `ABSENT` where nothing."""
    lookups = getattr(_current, "lookups", None)
    if lookups is None:
        for base in cls.__mro__:
            if name in base.__dict__:
                return base.__dict__[name]
        return ABSENT
    own: list[type] = []  # classes of this package on the way
    for base, table, changes, ours in lookups.way(cls):
        found = table.get(name, ABSENT)
        if changes:
            lookups.note(cls, base, name, found)
        elif ours:
            own.append(base)
        if found is not ABSENT:
            if own and type(found) is types.FunctionType:
                lookups.note_method(own, name)
            return found
    return ABSENT


class Lookups:
    """What was found, by class and name."""

    def __init__(self) -> None:
        self.found: dict[type, dict[str, object]] = {}
        self.orders: dict[type, tuple] = {}  # classes, with what they inherit from
        self.ways: dict[type, tuple[tuple, list]] = {}  # the order of a class, and what is asked of each class in it

    def way(self, cls: type) -> list[tuple[type, Mapping, bool, bool]]:
        """What a class inherits from, in order: each with its table, whether it may change, and whether it is of this package."""
        order, way = self.ways.get(cls, (None, []))
        if order is not cls.__mro__:
            way = [(base, base.__dict__, may_change(base), is_of_package(base)) for base in cls.__mro__]
            self.ways[cls] = cls.__mro__, way
        return way

    def note(self, cls: type, base: type, name: str, found) -> None:
        self.found.setdefault(base, {})[name] = found
        self.orders.setdefault(cls, cls.__mro__)

    def note_method(self, classes: list[type], name: str) -> None:
        """Classes of this package, in which a method was looked for: it is in the last, if in any."""
        for cls in classes:
            self.found.setdefault(cls, {})[name] = cls.__dict__.get(name, ABSENT)

    @property
    def classes(self) -> dict[type, None]:
        """All of them."""
        return dict.fromkeys((*self.orders, *self.found))

    def tests(self, conditions: Conditions) -> Iterator[tuple[str, str]]:
        """(code, words) for each class."""
        for cls, order in self.orders.items():
            code = f"{conditions.constant(cls)}.__mro__ is {conditions.constant(order)}"
            yield code, f"{cls.__qualname__} inherits from what it did"
        for cls, names in self.found.items():
            table = conditions.constant(cls.__dict__)
            tests = [_test(conditions, table, name, found) for name, found in names.items()]
            yield " and ".join(tests), f"{', '.join(names)} of {cls.__qualname__} are what they were"


def _test(conditions: Conditions, table: str, name: str, found) -> str:
    if found is ABSENT:
        return f"{name!r} not in {table}"
    if hasattr(type(found), "__get__") or callable(found):
        return f"{table}.get({name!r}) is {conditions.constant(found)}"
    return f"type({table}.get({name!r})) is {conditions.constant(type(found))}"  # its value is tested where it is read


class noting:
    """A block in which lookups are noted."""

    def __init__(self, lookups: Lookups):
        self.lookups = lookups

    def __enter__(self) -> None:
        self.before = getattr(_current, "lookups", None)
        _current.lookups = self.lookups

    def __exit__(self, *exc) -> None:
        _current.lookups = self.before
