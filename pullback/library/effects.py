"""Operators with effects that no argument shows: printing, counting, sending.

Registered ones stay in graphs though nothing uses their results, in the order of the program, and are never computed again.
"""

from __future__ import annotations

from enum import Enum

from .operator import LibraryOperator


class EffectType(Enum):
    """What kind of effect a call has."""

    ORDERED = "Ordered"


class EffectHandle:
    """Takes the registration back."""

    def __init__(self, op: LibraryOperator, before: bool):
        self.op, self.before = op, before

    def destroy(self) -> None:
        """Let the operator be as it was before."""
        self.op.has_effects = self.before


def register_effectful_op(op, effect: EffectType | None) -> EffectHandle:
    """Say that calls of a custom operator have an effect (None: that they have none)."""
    target = getattr(op, "_opoverload", op)
    if isinstance(target, str):
        from .functions import lookup

        target = lookup(target)
    if not isinstance(target, LibraryOperator):
        raise TypeError(f"register_effectful_op: expected a custom operator, got {target!r}")
    handle = EffectHandle(target, target.has_effects)
    target.has_effects = effect is not None
    return handle
