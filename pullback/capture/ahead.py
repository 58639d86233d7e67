"""Work that a program does once, on objects that outlive its calls: done for real while it is captured.

A graph that does it would be run once, and the next call would need another graph. `done_ahead(real)` marks a function: where
a captured program calls it, `real(seen, ...)` is asked to do the same at once, which it may where the program cannot tell
(`Seen`). In any case the function is then captured as any other, and finds what there is to find.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, TypeVar

from ..core.tensor import Tensor

F = TypeVar("F", bound=Callable)
AHEAD = "_done_ahead"  # the attribute of a function that is marked


class Seen(Protocol):
    """What the program being captured has done so far, with objects from outside."""

    def is_unread(self, obj: object) -> bool:
        """Whether it has not looked at an object."""

    def gradient(self, p: Tensor) -> Tensor | None:
        """The gradient that a parameter from outside has for the program now; None where it has none, or is not what it was."""


def done_ahead(real: Callable[..., None]) -> Callable[[F], F]:
    """Mark a function: `real(seen, *args)` may do its work ahead of the graph."""

    def mark(function: F) -> F:
        vars(function)[AHEAD] = real
        return function

    return mark
