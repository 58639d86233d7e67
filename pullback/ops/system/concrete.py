"""Rules that may look at numbers, and only where there are numbers to look at.

A gradient rule can be cheaper for ordinary values than for exceptional ones (a product without zeros). Under a
transform, on fake tensors and while tracing there are no values to ask: then the rule that is right for all is taken; with
deterministic algorithms always, so that gradients are, bit for bit, those of a compiled function.
"""

from __future__ import annotations

from ...core import modes
from ...core.modes import ambient, process
from ...core.tensor import DISPATCH_SUBCLASS, META, SPARSE, TRANSFORMED, Tensor
from .execute import resolve_bits

_HIDDEN = META | TRANSFORMED | DISPATCH_SUBCLASS | SPARSE


def concrete(t: Tensor) -> bool:
    """Whether the numbers of a tensor may be read here and now."""
    return not t._keys & _HIDDEN and not ambient.mode & (modes.TRANSFORM | modes.DISPATCH)


def numbers_of(t: Tensor):
    """The numbers that a concrete tensor means: one that is negated or conjugated when it is read holds others."""
    return resolve_bits(t)._array


def may_have_zeros(t: Tensor) -> bool:
    """Whether some element is, or could be, zero."""
    return process.deterministic or not concrete(t) or not t._array.all()
