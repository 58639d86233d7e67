"""What a program did so far, asked by work that is done ahead of its graph (`capture/ahead.py`)."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from ...core import modes
from ...core.tensor import Tensor, stride_of
from ...nn.parameter import Parameter

if TYPE_CHECKING:
    from .tracing import Tracing

HIDDEN = modes.CAPTURE | modes.DISPATCH | modes.GRAD


class SeenBy:
    """What the program of one world has seen."""

    def __init__(self, world: Tracing):
        self.world = world

    def is_unread(self, obj: object) -> bool:
        return id(obj) not in self.world.outside.known

    def gradient(self, p: Tensor) -> Tensor | None:
        if type(p) not in (Tensor, Parameter):
            return None
        outside = self.world.outside
        known = outside.known.get(id(p))
        if known is not None and not _lie_alike(p, known.inside):
            return None
        return outside.gradients[id(p)] if self.world.journal.is_touched(p, "grad") else p.grad


def _lie_alike(real: Tensor, inside: object) -> bool:
    """Whether a tensor is for the program what it is outside."""
    if not isinstance(inside, Tensor) or real.dtype is not inside.dtype or real.device != inside.device:
        return False
    return tuple(real.shape) == tuple(inside.shape) and stride_of(real) == stride_of(inside)


def work_ahead(world: Tracing, real: Callable[..., None], args: tuple) -> None:
    """Have work done for real, on objects from outside alone."""
    given = [world.outside.real(a) for a in args]
    if all(map(world.outside.is_outside, given)):
        with modes.masked(HIDDEN):
            real(SeenBy(world), *given)
