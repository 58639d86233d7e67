"""Function transforms that are opened and closed by calls, as libraries do that bring transforms of their own.

In: `_vmap_increment_nesting(size, randomness)`, `_grad_increment_nesting()`, `_jvp_increment_nesting()`, each of which gives how many
transforms are open then. Out: the count after one was closed. What always holds: the innermost is closed first.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import ExitStack

from ..autograd.forward import DualLevel
from ..batching.batched import BatchLevel
from ..core.modes import ambient
from .derivatives import transforming
from .levels import ReverseLevel


class _Opened(threading.local):
    """What was opened by calls in a thread, the innermost last: (how many transforms were open then, how to close it)."""

    def __init__(self) -> None:
        self.levels: list[tuple[int, str, ExitStack]] = []


_opened = _Opened()


def _open(kind: str, *contexts) -> int:
    stack = ExitStack()
    for context in contexts:
        stack.enter_context(context)
    _opened.levels.append((ambient.function_levels, kind, stack))
    return ambient.function_levels


def open_vmap(batch_size: int, randomness: str) -> int:
    """Open a vmap."""
    return _open("vmap", BatchLevel(batch_size, randomness))


def open_grad() -> int:
    """Open a reverse-mode transform."""
    return _open("grad", ReverseLevel())


def open_jvp() -> int:
    """Open a forward-mode transform."""
    return _open("jvp", DualLevel(), transforming())


def _closing(kind: str) -> Callable[[], int]:
    def close() -> int:
        depth, opened, stack = _opened.levels[-1] if _opened.levels else (0, None, None)
        if stack is None or opened != kind or depth != ambient.function_levels:
            raise RuntimeError(f"the innermost function transform is no {kind} that was opened by a call")
        _opened.levels.pop()
        stack.close()
        return ambient.function_levels

    return close


close_vmap, close_grad, close_jvp = _closing("vmap"), _closing("grad"), _closing("jvp")


def depth() -> int:
    """How many transforms are open."""
    return ambient.function_levels


def close_to(depth: int) -> None:
    """Close the innermost transforms, until so many are open."""
    while ambient.function_levels > depth:
        if not _opened.levels or _opened.levels[-1][0] != ambient.function_levels:
            raise RuntimeError("the innermost function transform was not opened by a call, and closes by itself")
        _opened.levels.pop()[2].close()
