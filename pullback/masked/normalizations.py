"""Running sums, softmaxes and unit vectors of the elements that take part: see the package's docstring."""

from __future__ import annotations

from ..core.tensor import Tensor
from ..ops.system.operator import public
from .filling import cast, filled, highest, inexact, lowest, neutral
from .reductions import norm


def cumsum(input: Tensor, dim: int, *, dtype=None, mask: Tensor | None = None) -> Tensor:
    """Running sums, to which elements that are left out add nothing."""
    t = cast(input, dtype)
    return filled(t, mask, 0).cumsum(dim, dtype=t.dtype)


def cumprod(input: Tensor, dim: int, *, dtype=None, mask: Tensor | None = None) -> Tensor:
    """Running products, which elements that are left out do not change."""
    t = cast(input, dtype)
    return filled(t, mask, 1).cumprod(dim, dtype=t.dtype)


def softmax(input: Tensor, dim: int, *, dtype=None, mask: Tensor | None = None) -> Tensor:
    """Softmax; 0 where an element is left out, NaN in slices where all are."""
    t = inexact(softmax, input, dtype)
    return filled(t, mask, lowest(t.dtype)).softmax(dim)


def log_softmax(input: Tensor, dim: int, *, dtype=None, mask: Tensor | None = None) -> Tensor:
    """The logarithm of `softmax`."""
    t = inexact(log_softmax, input, dtype)
    return filled(t, mask, lowest(t.dtype)).log_softmax(dim)


def softmin(input: Tensor, dim: int, *, dtype=None, mask: Tensor | None = None) -> Tensor:
    """Softmax of the negated elements."""
    t = inexact(softmin, input, dtype)
    return (-filled(t, mask, highest(t.dtype))).softmax(dim)


def normalize(
    input: Tensor, ord: float, dim: int, *, eps: float = 1e-12, dtype=None, mask: Tensor | None = None
) -> Tensor:
    """Vectors divided by their norm, or by `eps` where that is larger; 0 where an element is left out."""
    t = inexact(normalize, input, dtype)
    return filled(t, mask, 0) / norm(t, ord, dim, keepdim=True, mask=mask).clamp_min(eps)


def logaddexp(
    input: Tensor, other: Tensor, *, dtype=None, input_mask: Tensor | None = None, other_mask: Tensor | None = None
) -> Tensor:
    """The logarithm of the sum of two exponentials; one that is left out adds nothing."""
    a, b = neutral("logaddexp", input, input_mask), neutral("logaddexp", other, other_mask)
    return public("torch", "logaddexp")(a, b).to(input.dtype if dtype is None else dtype)
