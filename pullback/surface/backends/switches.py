"""Switches of one library as the global names of its module: set some, and put the old values back after a block."""

from __future__ import annotations

import sys
import types
from collections.abc import Iterator
from contextlib import contextmanager

_frozen = False


def flags_frozen() -> bool:
    """Whether switches may be set only by `set_flags` and `flags`."""
    return _frozen


def disable_global_flags() -> None:
    """From now on switches are set by `set_flags` and `flags` only; assigning to one raises."""
    global _frozen
    _frozen = True


@contextmanager
def unfrozen() -> Iterator[None]:
    """A block in which switches may be assigned to, frozen or not."""
    global _frozen
    before, _frozen = _frozen, False
    try:
        yield
    finally:
        _frozen = before


class _Guarded(types.ModuleType):
    """A module whose switches cannot be assigned to once they are frozen."""

    def __setattr__(self, name: str, value: object) -> None:
        if _frozen and name in self.__dict__.get("SWITCHES", ()):
            raise RuntimeError(
                f"not allowed to set {self.__name__.replace('pullback.surface', 'torch')} flags after disable_global_flags; "
                "please use flags() context manager instead"
            )
        super().__setattr__(name, value)


def guard(module: str) -> None:
    """Watch assignments to the names in a module's SWITCHES."""
    sys.modules[module].__class__ = _Guarded


def assign(names: dict, values: dict) -> tuple:
    """Give switches their new values (None: as it is); the old values come back, in the same order."""
    before = tuple(names[name] for name in values)
    names.update({name: value for name, value in values.items() if value is not None})
    return before


@contextmanager
def assigned(names: dict, values: dict) -> Iterator[None]:
    """New values inside a block."""
    before = assign(names, values)
    try:
        yield
    finally:
        names.update(zip(values, before, strict=True))
