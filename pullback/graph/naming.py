"""Unique names for values: `add`, `add_1`, ...

In: a wished-for name, such as a function's. Out: a valid identifier that no other value of the graph has. What always
holds: no name given out is a keyword, shadows a builtin or one of the globals of generated code, or is given twice.
"""

from __future__ import annotations

import builtins
import keyword
import re
from typing import Any

_GENERATED_GLOBALS = ("inf", "nan", "NoneType", "torch", "device", "fx_pytree", "pytree")
RESERVED: frozenset[str] = frozenset((*keyword.kwlist, *vars(builtins), *_GENERATED_GLOBALS))

_split_number = re.compile(r"([a-zA-Z_][0-9a-zA-Z_]*?)(?:_(\d+))?").fullmatch
_not_in_identifiers = re.compile("[^0-9a-zA-Z_]+")
_hump = re.compile("(?<=[a-z])([A-Z])")


def snake_case(name: str) -> str:
    """`BatchNorm` as `batch_norm`."""
    return _hump.sub(r"_\1", name).lower()


class Namespace:
    """Names in use, and the objects that some of them stand for."""

    def __init__(self) -> None:
        self.names: dict[Any, str] = {}  # object -> name
        self.used: set[str] = set()
        self.counts: dict[str, int] = {}  # base -> the last number given after it

    _obj_to_name = property(lambda self: self.names)
    _used_names = property(lambda self: self.used)
    _base_count = property(lambda self: self.counts)

    def create_name(self, candidate: str, obj: Any = None) -> str:
        """A unique name like `candidate`; asked again for the same object, the same name."""
        if obj is not None and obj in self.names:
            return self.names[obj]
        name = self._unused(candidate, obj)
        self.used.add(name)
        if obj is not None:
            self.names[obj] = name
        return name

    def numbered(self, base: str) -> str:
        """A unique name from a base that `is_base`: the quick way to the name that `create_name` gives."""
        used = self.used
        if base not in used:
            self.counts.setdefault(base, 0)
            return base
        count = self.counts.get(base, 0) + 1
        while (name := f"{base}_{count}") in used:
            count += 1
        self.counts[base] = count
        return name

    def _unused(self, candidate: str, obj: Any) -> str:
        parts = _split_number(candidate) or _split_number(candidate := valid(candidate))
        base, number = parts.group(1, 2) if parts is not None else (candidate, None)
        if number is None or candidate in self.used:
            count = self.counts.get(base, 0)
            if candidate in RESERVED and vars(builtins).get(candidate, self) is not obj:
                count += 1
                candidate = f"{base}_{count}"
        else:
            count = int(number)
        while candidate in self.used:
            count += 1
            candidate = f"{base}_{count}"
        self.counts[base] = count
        return candidate

    def bind(self, name: str, obj: Any) -> None:
        """Let an unused name stand for an object."""
        self.names[obj] = name
        self.used.add(name)

    def associate_name_with_obj(self, name: str, obj: Any) -> None:
        if self.names.setdefault(obj, name) is not name:
            raise AssertionError("obj is already associated")

    def _rename_object(self, obj: Any, name: str) -> None:
        if obj not in self.names:
            raise AssertionError(f"Object {obj} is not in _obj_to_name")
        self.bind(name, obj)


def is_base(name: str) -> bool:
    """Whether a name is valid as it is, and not one that ends in a number."""
    parts = _split_number(name)
    return parts is not None and parts.group(2) is None and name not in RESERVED


def valid(candidate: str) -> str:
    """An identifier made of whatever was wished for."""
    candidate = _not_in_identifiers.sub("_", candidate) or "_unnamed"
    return f"_{candidate}" if candidate[0].isdigit() else candidate
