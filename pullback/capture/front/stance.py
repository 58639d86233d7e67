"""What all compiled functions share: whether they run compiled at all, and what they do where a graph is missing.

In: `set_stance`, `disable` and the compiler's own calls change it. Out: compiled functions read it at each call.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from .compile import CompiledFunction

STANCES = ("default", "force_eager", "eager_on_recompile", "fail_on_recompile", "eager_then_compile")


class Stance(NamedTuple):
    """What compiled functions do, and by which backend new graphs are compiled, where not by their own."""

    name: str = "default"
    backend: str | Callable | None = None


class State:
    """What is shared by all compiled functions."""

    def __init__(self) -> None:
        self.functions: weakref.WeakSet[CompiledFunction] = weakref.WeakSet()
        self.disabled = 0
        self.stance = Stance()
        self.on_reset: list[Callable[[], None]] = []  # what layers above forget with all graphs


state = State()


class disabled:
    """Compiled functions run uncompiled inside."""

    def __enter__(self) -> None:
        state.disabled += 1

    def __exit__(self, *exc) -> None:
        state.disabled -= 1
