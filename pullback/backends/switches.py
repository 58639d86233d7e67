"""Switches of one library as the global names of its module: set some, and put the old values back after a block."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

_frozen = False


def flags_frozen() -> bool:
    """Whether switches may be set only by `set_flags` and `flags`."""
    return _frozen


def disable_global_flags() -> None:
    """Allow switches to be set only by `set_flags` and `flags`. Plain assignment cannot be seen, so it is not refused."""
    global _frozen
    _frozen = True


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
