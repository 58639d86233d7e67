"""Open function transforms as rules of operators see them: PyTorch's interpreters (`torch._functorch.pyfunctorch`).

In: a level of a transform (`BatchLevel`, `func.levels.ReverseLevel`). Out: its kind, itself for its number, and `lower()`, a context
in which it is not open. What always holds: a tensor inside `grad` is the tensor itself, wrapped by nothing, so that taking it out of its
level and putting it back change nothing.
"""

from __future__ import annotations

import enum
from contextlib import contextmanager

from ..core.modes import ambient
from ..core.tensor import Tensor


class TransformType(enum.Enum):
    """The kinds of function transforms, by PyTorch's names: keys that rules of operators are registered for."""

    Torch = 0
    Vmap = 1
    Grad = 2
    Jvp = 3
    Functionalize = 4


def unwrap_for_grad(tensor: Tensor, level) -> Tensor:
    """A tensor inside `grad` as it is outside: itself."""
    return tensor


wrap_for_grad = unwrap_for_grad


@contextmanager
def single_level_functions():
    """Inside, custom functions stand for one `grad` alone, and need no batching rule: what they call has its own."""
    before = [(level, level.transparent) for level in ambient.transforms]
    for level, _ in before:
        level.transparent = True
    try:
        yield
    finally:
        for level, transparent in before:
            level.transparent = transparent
