"""Tuples with named fields, as `typing.NamedTuple` makes them, at a sixth of its cost: importing the package makes a dozen.

In: the annotations of a class, and defaults. Out: a class whose instances are tuples of its fields in order, equal and hashed as
tuples are. Fields are given by position or by name.
"""

from __future__ import annotations

from collections.abc import Mapping
from operator import itemgetter
from typing import Any, dataclass_transform

__all__ = ["Record"]


class _RecordType(type):
    """Turns annotations into properties that read the tuple."""

    def __new__(kind, name: str, bases: tuple[type, ...], body: dict[str, Any]):
        fields = tuple(field for field in body.get("__annotations__", ()) if field[0] != "_")
        body["_fields"], body["_defaults"] = fields, {field: body[field] for field in fields if field in body}
        for i, field in enumerate(fields):
            body[field] = property(itemgetter(i))
        return super().__new__(kind, name, bases, {"__slots__": (), **body})


@dataclass_transform(frozen_default=True)
class Record(tuple, metaclass=_RecordType):
    """The base class: a subclass lists its fields."""

    _fields: tuple[str, ...] = ()
    _defaults: Mapping[str, Any] = {}

    def __new__(cls, *args: Any, **named: Any):
        if named or len(args) != len(cls._fields):
            args = cls._complete(args, named)
        return tuple.__new__(cls, args)

    @classmethod
    def _complete(cls, args: tuple, named: dict[str, Any]) -> tuple:
        """All fields in order: those by position, by name, and defaults."""
        values = {**cls._defaults, **dict(zip(cls._fields, args, strict=False)), **named}
        twice = [field for field in cls._fields[: len(args)] if field in named]
        missing = [field for field in cls._fields if field not in values]
        if len(args) > len(cls._fields) or len(values) > len(cls._fields) or twice or missing:
            raise TypeError(f"{cls.__name__} has the fields {', '.join(cls._fields)}, but got {args} and {named}")
        return tuple([values[field] for field in cls._fields])

    def _asdict(self) -> dict[str, Any]:
        return dict(zip(self._fields, self, strict=True))

    def _replace(self, **changes: Any):
        """The same with some fields changed."""
        return type(self)(**{**self._asdict(), **changes})

    def __getnewargs__(self) -> tuple:
        return tuple(self)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{field}={value!r}' for field, value in self._asdict().items())})"
