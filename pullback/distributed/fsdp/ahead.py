"""Gathers ahead of time: while one group of parameters computes, the next is under way.

In: the order in which forwards enter groups, or the modules that a program names. Out: gathers begun early, and taken by the group
when it needs them. What always holds: all ranks begin the same gathers in the same order, since they enter groups in one order; what
was begun is used only where parameters have not been written since, and history is recorded or not as it would be now; else it
is dropped, and not begun there again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...core.modes import is_grad_enabled
from ...core.tensor import Tensor
from ...surface.compiler import is_compiling
from ..operators import wait_tensor

if TYPE_CHECKING:
    from .group import ParameterGroup

_last: list[ParameterGroup] = []  # the group that a forward entered last


def forget_order() -> None:
    """A backward has come: what is entered next begins another forward, before which parameters may be written."""
    _last.clear()


class Ahead:
    """What one group begins for others, and what others began for it."""

    def __init__(self, group: ParameterGroup):
        self.group = group
        self.next: ParameterGroup | None = None  # that a forward enters after this one
        self.previous: ParameterGroup | None = None
        self.named_next: list[ParameterGroup] | None = None  # by `set_modules_to_forward_prefetch`
        self.named_previous: list[ParameterGroup] | None = None
        self.begun: tuple[Tensor, tuple] | None = None
        self.wasted: set[int] = set()  # groups after which what was begun for this one was of no use
        self.beginner = 0
        self.regathers = False  # whether a backward has needed this group again

    def entered(self) -> None:
        """A forward enters the group: who came before it begins its gather the next time."""
        if is_compiling():
            return  # graphs are put in order as a whole
        if _last and _last[0] is not self.group:
            before = _last[0]
            before.ahead.next, self.previous = self.group, before
        _last[:] = [self.group]

    def begin_next(self) -> None:
        for group in self._chosen(self.named_next, self.next):
            group.ahead.begin(self.group)

    def begin_previous(self) -> None:
        """A backward has gathered the group again: it will come to the one before."""
        self.regathers = True
        for group in self._chosen(self.named_previous, self.previous):
            if group.ahead.regathers and group.regathered is None:
                group.ahead.begin(self.group)

    @staticmethod
    def _chosen(named: list[ParameterGroup] | None, learned: ParameterGroup | None) -> list[ParameterGroup]:
        if is_compiling():
            return []
        return named if named is not None else [learned] if learned is not None else []

    def begin(self, by: ParameterGroup) -> None:
        """Start the gather, where that is of use."""
        if self.begun is None and not self.group.depth and id(by) not in self.wasted and self.group.group.size() > 1:
            self.beginner = id(by)
            self.begun = self.group.begin(), self._facts()

    def take(self) -> Tensor | None:
        """What was begun, if it is what would be gathered now."""
        if self.begun is None:
            return None
        (started, facts), self.begun = self.begun, None
        if facts == self._facts():
            return started
        self.wasted.add(self.beginner)
        wait_tensor(started.detach())
        return None

    def _facts(self) -> tuple:
        """What a gather is a function of."""
        local = [p.sharded.to_local() for p in self.group.params]
        return is_grad_enabled(), tuple((t.data_ptr(), t._version) for t in local)
