"""Tensors that somebody keeps for later and hands out again: the engine must never make one its own.

In: tensors, added and removed by whoever caches them. Out: whether a tensor is cached now. The table knows its tensors
weakly, by identity; adding twice is adding once. While it is switched off nothing counts as cached, and adding or removing
is an error; what was in it stays.
"""

from __future__ import annotations

import weakref

from ..core.tensor import Tensor

_known: dict[int, weakref.ref] = {}
_enabled = False


def set_enabled(enabled: bool) -> None:
    """Switch the table on or off, for all threads."""
    global _enabled
    _enabled = bool(enabled)


def add(tensor: Tensor) -> None:
    _check_enabled()
    key = id(tensor)
    _known[key] = weakref.ref(tensor, lambda _: _known.pop(key, None))


def remove(tensor: Tensor) -> None:
    """Forget a tensor; one that is not there is no error."""
    _check_enabled()
    _known.pop(id(tensor), None)


def is_cached(tensor: Tensor) -> bool:
    return _enabled and id(tensor) in _known


def _check_enabled() -> None:
    if not _enabled:
        raise RuntimeError("cached tensors are not enabled: call _set_cached_tensors_enabled(True) first")
