"""Where a value comes from: how to read it again when a captured graph is entered.

A `Source` is a step from another source (an item, an attribute, the contents of a cell, ...), or a root: a local, a place
on the stack or a cell of one of the frames that a graph is entered with, or an object that is always at hand. `text`
is the Python that reads it, given the variable of its base; `name` is how messages call it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple


@dataclass(frozen=True, eq=False)
class Source:
    """One place. Made by `Sources.get`, so that equal places are the same object."""

    kind: str
    base: Source | None
    key: Any
    name: str


class Reading(NamedTuple):
    """How an item is read that Python code of its class would read otherwise."""

    reader: Callable
    key: Any


READ = {
    "local": "l{key[0]}[{key[1]!r}]",
    "stack": "s{key[0]}[{key[1]}]",
    "cell": "e{key[0]}[{key[1]!r}]",
    "generator": "frames[{key}].generator",
    "contents": "{base}.cell_contents",
    "closure": "{base}.__closure__[{key}]",
    "attribute": "getattr({base}, {key!r})",
    "attributes": "{base}.__dict__",
    "type": "type({base})",
    "referent": "{base}()",
    "array": "from_numpy({base})",
}

NAME = {
    "generator": "the generator of frame {key}",
    "local": "L[{key[1]!r}]",
    "stack": "the value {key[1]} on the stack",
    "cell": "the cell of {key[1]!r}",
    "contents": "{base}.cell_contents",
    "closure": "{base}.__closure__[{key}]",
    "attribute": "{base}.{key}",
    "attributes": "{base}.__dict__",
    "type": "type({base})",
    "item": "{base}[{key!r}]",
    "referent": "{base}()",
    "array": "{base}",
    "constant": "{key}",
}


class Sources:
    """All sources of one capture, each once."""

    def __init__(self) -> None:
        self.by_identity: dict[tuple, Source] = {}
        self.names: dict[str, int] = {}
        self.pins: list = []  # keys by identity stay alive

    def get(self, kind: str, base: Source | None, key=None, name: str | None = None) -> Source:
        """The source of this kind at this base; `key` says which."""
        identity = (kind, id(base), type(key), key if kind != "constant" else id(key))
        found = self.by_identity.get(identity)
        if found is None:
            found = self.by_identity[identity] = Source(kind, base, key, self._unique(name or _name(kind, base, key)))
            self.pins.append((base, key))
        return found

    def _unique(self, name: str) -> str:
        """A name that no other place has: sizes and numbers are known by the names of their places."""
        count = self.names[name] = self.names.get(name, 0) + 1
        return name if count == 1 else f"{name} ({count})"

    def item(self, base: Source, key, reader: Callable | None = None) -> Source:
        """An item of a container, by Python's own lookup for its kind, or by `reader(container, key)`."""
        if reader is not None:
            return self.get("read", base, Reading(reader, key), _name("item", base, key))
        return self.get("item", base, key, _name("attribute", base.base, key) if base.kind == "attributes" else None)

    def contents(self, cell: Source) -> Source:
        """What is in a cell; messages name the variable."""
        name = f"L[{cell.key[1]!r}]" if cell.kind == "cell" else None
        return self.get("contents", cell, None, name)

    def constant(self, value, name: str) -> Source:
        """An object that is at hand: a module's globals, a class."""
        return self.get("constant", None, value, name)


def _name(kind: str, base: Source | None, key) -> str:
    shown = key if isinstance(key, (str, int, float, tuple, type(None))) or kind == "constant" else type(key).__name__
    return NAME[kind].format(base=base.name if base is not None else "", key=shown)
