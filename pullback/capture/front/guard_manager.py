"""The conditions of a graph as an object, for tools and tests that look at them: `torch._dynamo.guards`.

A function that is assigned to `guard_manager_testing_hook_fn` hears of every graph that is made: it gets the graph's
conditions, the locals that the graph was made with, and None.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

guard_manager_testing_hook_fn: Callable | None = None


class RootGuardManager:
    """What one graph depends on."""

    def __init__(self, entry: Any, frames: list):
        self.entry, self.frames = entry, frames

    def check(self, f_locals: dict) -> bool:
        """Whether the graph fits locals like these."""
        frames = [frame.copy() for frame in self.frames]
        frames[0].locals.update({k: v for k, v in f_locals.items() if k in frames[0].locals})
        return self.entry.why_not(frames) is None

    def clone_manager(self, keeps: Callable[[Any], bool]) -> RootGuardManager:
        """The same conditions as another object."""
        return RootGuardManager(self.entry, self.frames)

    def __str__(self) -> str:
        return "\n".join(self.entry.conditions)


class GuardManagerWrapper:
    """Conditions, and those that changed before: none are kept here."""

    diff_guard_root = None

    def __init__(self, root: RootGuardManager):
        self.root = root

    def check(self, f_locals: dict) -> bool:
        return self.root.check(f_locals)

    def __str__(self) -> str:
        return str(self.root)


def tell(entry: Any, frames: list) -> None:
    """A graph was made."""
    if guard_manager_testing_hook_fn is not None:
        manager = GuardManagerWrapper(RootGuardManager(entry, [frame.copy() for frame in frames]))
        guard_manager_testing_hook_fn(manager, dict(frames[0].locals), None)
