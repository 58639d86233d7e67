"""Keys: the steps of a path from a value to one of its leaves.

In: a step (an index, a key, an attribute). Out: an object that writes it as Python does and takes it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class SequenceKey:
    idx: int

    def __str__(self) -> str:
        return f"[{self.idx!r}]"

    def get(self, sequence):
        return sequence[self.idx]


@dataclass(frozen=True)
class MappingKey:
    key: Any

    def __str__(self) -> str:
        return f"[{self.key!r}]"

    def get(self, mapping):
        return mapping[self.key]


@dataclass(frozen=True)
class GetAttrKey:
    name: str

    def __str__(self) -> str:
        return f".{self.name}"

    def get(self, obj):
        return getattr(obj, self.name)


KeyEntry = SequenceKey | MappingKey | GetAttrKey
KeyPath = tuple


def keystr(path: Iterable) -> str:
    """A path as Python would write it: `[0]['a'].b`."""
    return "".join(str(key) for key in path)


def key_get(obj: Any, path: Iterable) -> Any:
    for key in path:
        obj = key.get(obj)
    return obj
