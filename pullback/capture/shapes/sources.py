"""Names of where values come from, as those who make symbols by hand say them: `LocalSource("x")` is `L['x']`.

A `ShapeEnv` takes such an object, or the name itself, for the source of a symbol.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class ConstantSource:
    """A value of no place: its name is what was given."""

    source_name: str

    @property
    def name(self) -> str:
        return self.source_name


@dataclass(frozen=True)
class LocalSource:
    """A local variable, or an argument."""

    local_name: str
    is_input: bool = False

    @property
    def name(self) -> str:
        return f"L[{self.local_name!r}]"


@dataclass(frozen=True)
class GlobalSource:
    """A global variable."""

    global_name: str

    @property
    def name(self) -> str:
        return f"G[{self.global_name!r}]"


@dataclass(frozen=True)
class AttrSource:
    """An attribute of what is found at another source."""

    base: Any
    member: str

    @property
    def name(self) -> str:
        return f"{self.base.name}.{self.member}"


@dataclass(frozen=True)
class GetItemSource:
    """An element of what is found at another source."""

    base: Any
    index: Any

    @property
    def name(self) -> str:
        return f"{self.base.name}[{self.index!r}]"
