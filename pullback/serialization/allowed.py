"""What the safe loader may make: the names that tensors are written with, and those a program adds.

`add_safe_globals([MyClass])` trusts a class or function: its `__init__`, `__new__` or `__setstate__` may then run with
arguments from a file. A pair `(value, "module.name")` trusts it under another name.
"""

from __future__ import annotations

import threading
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterable
from contextlib import contextmanager
from functools import cache
from pickle import UnpicklingError
from typing import Any

from .names import constants, name_of

_safe: list[Any] = []
_lock = threading.Lock()


def encode(text: str, encoding: str = "latin1") -> bytes:
    """Bytes as old pickles write them: only that one encoding, so that no other codec can be called."""
    if encoding not in ("latin1", "latin-1"):
        raise UnpicklingError(f"_codecs.encode is allowed with latin1 only, but got {encoding!r}")
    return text.encode("latin1")


@cache
def by_default() -> dict[str, Any]:
    """Names that are always allowed."""
    basic = {
        "collections.OrderedDict": OrderedDict, "collections.Counter": Counter, "builtins.bytearray": bytearray,
        "builtins.set": set, "builtins.complex": complex, "_codecs.encode": encode,
    }  # fmt: skip
    return basic | {f"{module}.{name}": value for (module, name), value in constants().items()}


def by_user() -> dict[str, Any]:
    """Names that the program allows now: under PyTorch's name and under their own."""
    found: dict[str, Any] = {}
    for entry in tuple(_safe):
        if isinstance(entry, tuple):
            value, name = entry
            found[name] = value
            continue
        found[f"{entry.__module__}.{getattr(entry, '__qualname__', entry.__name__)}"] = entry
        named = name_of(entry)
        if named is not None:
            found[".".join(named)] = entry
    return found


def add_safe_globals(safe_globals: Iterable[Callable | tuple[Callable, str]]) -> None:
    """Trust classes and functions for `load(weights_only=True)`."""
    entries = list(safe_globals)
    for entry in entries:
        if isinstance(entry, tuple):
            if len(entry) != 2 or not isinstance(entry[1], str):
                raise ValueError(f"Expected tuple of (global, str of callable full path), but got {entry!r}")
        elif not hasattr(entry, "__module__") or not hasattr(entry, "__name__"):
            raise TypeError(f"add_safe_globals expects classes and functions, but got {entry!r}")
    with _lock:
        _safe.extend(e for e in entries if e not in _safe)


def get_safe_globals() -> list:
    """What the program trusts."""
    return list(_safe)


def clear_safe_globals() -> None:
    """Trust only what is allowed by default."""
    with _lock:
        _safe.clear()


@contextmanager
def safe_globals(safe_globals: Iterable[Callable | tuple[Callable, str]]):
    """Trust these inside a block."""
    before = get_safe_globals()
    add_safe_globals(safe_globals)
    try:
        yield
    finally:
        with _lock:
            _safe[:] = before
