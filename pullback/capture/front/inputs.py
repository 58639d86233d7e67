"""What stands for a function's inputs while it is traced: fakes with a history like theirs.

A trace may write to its inputs, and autograd follows that; so each trace gets tensors of its own. An input that is the
result of earlier recorded calls is no leaf, and may be written in place: its stand-in is no leaf either. One that is a
view has a history that is made of its base again when its shape is changed in place, with recording on or off: the
stand-in, which has no base, keeps such a history with it (`view_edge`).
"""

from __future__ import annotations

from ...core.node import Autograd, Node, edge_of, next_sequence, requires_grad
from ...core.tensor import Tensor


class PassThrough(Node):
    """Makes a copy of a leaf that is no leaf."""

    __slots__ = ()

    def __init__(self, leaf: Tensor):
        self.edges, self.saved = (edge_of(leaf),), []
        self.outputs = ((leaf._array.shape, leaf.dtype, leaf.device),)
        self.sequence = next_sequence()

    def run(self, grads: list) -> list:
        return grads

    def saved_state(self, differentiable: bool = False) -> dict:
        return {}


def stand_in(fake: Tensor, like: Tensor) -> tuple[Tensor, Tensor]:
    """(a leaf to take gradients of, what the traced function gets) for an input `like` this one, given its fake."""
    wanted = requires_grad(like)
    leaf = fake.shallow(Autograd(True) if wanted else None)
    if not wanted or like.is_leaf:
        return leaf, leaf
    given = leaf.shallow(Autograd(True, (PassThrough(leaf), 0)))
    if like._view_info is not None or "view_edge" in like.__dict__:
        given.__dict__["view_edge"] = given._autograd.edge  # see `reshape_in_place`
    return leaf, given
