"""Hooks of leaves that graphs of a backward can hold: what becomes of gradients when they are complete.

A hook that runs after a gradient was added to `.grad` is Python, and a graph that must call it ends there. One whose whole
effect is a function of gradients says so by a `leaf_rule`: the backward's graph then computes it, and `.grad` gets what
comes out. Data parallel is such a rule: gradients of several leaves are averaged over processes together.
"""

from __future__ import annotations

from ..core.tensor import Tensor


class LeafRule:
    """What is done with the gradients of some leaves, together. `start` and `finish` are written in operators."""

    members: list[Tensor]

    def key(self):
        """What tells one rule from another in the key of a graph; None where it must run as a hook now."""
        raise NotImplementedError

    def start(self, *totals: Tensor | None) -> Tensor:
        """Begin, as soon as the gradients of all members are there."""
        raise NotImplementedError

    def finish(self, started: Tensor) -> list[Tensor]:
        """The new gradients of the members."""
        raise NotImplementedError


def rule_of(leaf: Tensor) -> LeafRule | None:
    """The rule of a leaf, where it alone listens to its gradient."""
    own = leaf._autograd
    if own is None or not own.post_accumulate_hooks or len(own.post_accumulate_hooks) != 1:
        return None
    (hook,) = own.post_accumulate_hooks.values()
    rule = getattr(hook, "leaf_rule", None)
    return rule if rule is not None and rule.key() is not None else None
