"""What a captured program changes outside: done at once, taken back after capturing, done again at each run.

While a program is captured, its writes to objects from outside happen for real, so that everything reads what it should;
each is entered here with what takes it back. `log` is what a run of the graph must do, in order, with its own values.
`touched` says which items of which containers are no longer what they were when the graph was entered.
"""

from __future__ import annotations

import collections
import types
from collections.abc import Callable
from typing import NamedTuple

ALL = object()  # every item of a container


class Effect(NamedTuple):
    """One write. `kind`: "item", "no item" (deleted), "attribute", "no attribute", "cell", or a method's name; or a call that
    the program sees nothing of ("later": of the target, with arguments and keywords)."""

    kind: str
    target: object
    key: object
    value: object


class Journal:
    """See the module's docstring."""

    def __init__(self) -> None:
        self.count = 0  # how many writes there were, those that were overwritten included
        self.log: list[Effect] = []
        self.places: dict[int, dict[tuple, int]] = {}  # where in the log an object's writes are, by what they write
        self.undo: list[Callable[[], object]] = []
        self.touched: dict[int, set] = {}
        self.originals: dict[int, object] = {}  # what containers held when the graph was entered
        self.pins: list = []
        self.cleared: set[int] = set()  # tensors whose gradient was let go of at some time

    def is_touched(self, target, key) -> bool:
        """Whether an item was written since the graph was entered."""
        keys = self.touched.get(id(target))
        return keys is not None and (ALL in keys or key in keys)

    def original(self, container):
        """What a container held when the graph was entered."""
        return self.originals.get(id(container), container)

    def touch(self, target, key) -> None:
        self.touched.setdefault(id(target), set()).add(key)
        self.pins.append(target)

    def save(self, container) -> None:
        """Remember what a container holds, once, to put it back."""
        if id(container) in self.originals:
            return
        self.pins.append(container)
        old = self.originals[id(container)] = CONTENTS[_builtin(container)][0](container)
        self.undo.append(lambda: CONTENTS[_builtin(container)][1](container, old))

    # ---- writes
    def set_item(self, container, key, value) -> None:
        self.save(container)
        base_of(container).__setitem__(container, key, value)
        self.touch(container, key)
        self._note(Effect("item", container, key, value))

    def delete_item(self, container, key) -> None:
        self.save(container)
        base_of(container).__delitem__(container, key)
        self.touch(container, key if isinstance(container, dict) else ALL)
        self._note(Effect("no item", container, key, None))

    def call(self, method: Callable, args: tuple, kwargs: dict, keys) -> object:
        """Call a method of a container that changes it: `keys` are the items it touches."""
        container = method.__self__
        self.save(container)
        out = method(*args, **kwargs)
        for key in keys:
            self.touch(container, key)
        self.count += 1
        self.places.pop(id(container), None)
        self.log.append(Effect(method.__name__, container, args, kwargs))  # of the container's built-in kind
        return out

    def set_attribute(self, obj, name: str, value, undo: Callable[[], object]) -> None:
        """An attribute that is no item of the object's `__dict__`: the caller has written it."""
        self.undo.append(undo)
        self.touch(obj, name)
        if name == "grad" and value is None:
            self.cleared.add(id(obj))
        self._note(Effect("attribute", obj, name, value))

    def delete_attribute(self, obj, name: str) -> None:
        """An attribute that the caller has deleted, and can put back."""
        self.touch(obj, name)
        self._note(Effect("no attribute", obj, name, None))

    def call_later(self, function: Callable, args: tuple) -> None:
        """A call that is made when the graph has run, in its place among the writes."""
        self.count += 1
        self.places.clear()  # what is written from here on comes after it
        self.log.append(Effect("later", function, args, {}))

    def set_cell(self, cell: types.CellType, value) -> None:
        try:
            old = cell.cell_contents
            self.undo.append(lambda: setattr(cell, "cell_contents", old))
        except ValueError:  # it was empty
            self.undo.append(lambda: delattr(cell, "cell_contents"))
        cell.cell_contents = value
        self.touch(cell, None)
        self._note(Effect("cell", cell, None, value))

    def _note(self, effect: Effect) -> None:
        """Log a write; one that overwrites an earlier write takes its place, since nothing looks in between."""
        self.count += 1
        places = self.places.setdefault(id(effect.target), {})
        if effect.kind.startswith("no "):  # what it deletes may be a slice: others are then in other places
            places.clear()
            self.log.append(effect)
            return
        place = (effect.kind, type(effect.key), effect.key)
        if place in places:
            self.log[places[place]] = effect
            return
        places[place] = len(self.log)
        self.log.append(effect)

    def let_go_first(self) -> list[Effect]:
        """Writes that can be made before the graph runs: of gradients that the program lets go of, so that their memory is free while new
        ones are computed. Should the graph fail, they are gone as they would be then."""
        kept = [e for e in self.log if e.kind == "attribute" and e.key == "grad" and id(e.target) in self.cleared]
        return [e._replace(value=None) for e in kept]

    def take_back(self) -> None:
        """Everything outside is again as it was."""
        while self.undo:
            self.undo.pop()()

    def let_go(self) -> None:
        """The capture is over: nothing that was written to is kept."""
        for kept in (self.log, self.places, self.touched, self.originals, self.pins, self.cleared):
            kept.clear()


def _builtin(container) -> type:
    """The built-in kind of a container."""
    return next(kind for kind in CONTENTS if isinstance(container, kind))


def base_of(container) -> type:
    """The class whose methods really write to a container: those of a subclass may do more."""
    return type(container) if type(container) in CONTENTS else _builtin(container)


def _restore_list(container, old) -> None:
    list.__setitem__(container, slice(None), old)


def _restore_dict(container, old) -> None:
    dict.clear(container)
    dict.update(container, old)


def _restore(container, old) -> None:
    base = base_of(container)
    base.clear(container)
    base.extend(container, old) if base is collections.deque else base.update(container, old)


CONTENTS: dict[type, tuple[Callable, Callable]] = {
    list: (list, _restore_list),
    collections.OrderedDict: (dict, _restore),
    dict: (dict, _restore_dict),
    set: (set, _restore),
    collections.deque: (list, _restore),
    bytearray: (bytes, lambda b, old: b.__setitem__(slice(None), old)),
}
