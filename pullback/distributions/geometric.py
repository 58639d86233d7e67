"""The geometric distribution: how many trials fail before the first one that succeeds."""

from __future__ import annotations

from collections.abc import Sequence

from .. import Size, Tensor, finfo, no_grad, zeros_like
from ..ops.system.operator import public
from . import constraints
from .distribution import Distribution
from .parameters import ProbsOrLogits, broadcast_all

__all__ = ["Geometric"]

binary_cross_entropy_with_logits = public("nn.functional", "binary_cross_entropy_with_logits")


class Geometric(ProbsOrLogits, Distribution):
    """Counts from 0, from the probability or log odds of a success."""

    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.nonnegative_integer
    _batched = ("probs", "logits")

    def __init__(
        self,
        probs: Tensor | float | None = None,
        logits: Tensor | float | None = None,
        validate_args: bool | None = None,
    ):
        self._take_probs_or_logits(probs, logits)
        super().__init__(self._param.size(), validate_args=validate_args)
        if self._validate_args and probs is not None:
            self._check_positive()

    def _check_positive(self) -> None:
        """Without any success the count would never end."""
        value = self.probs
        valid = value > 0
        if not constraints.everywhere(valid):
            raise ValueError(
                f"Expected parameter probs ({type(value).__name__} of shape {tuple(value.shape)}) "
                f"of distribution {self!r} to be positive but found invalid values:\n{value.detach()[~valid]}"
            )

    @property
    def mean(self) -> Tensor:
        return 1.0 / self.probs - 1.0

    @property
    def mode(self) -> Tensor:
        return zeros_like(self.probs)

    @property
    def variance(self) -> Tensor:
        return (1.0 / self.probs - 1.0) / self.probs

    def sample(self, sample_shape: Sequence[int] = Size()) -> Tensor:
        with no_grad():
            probs = self.probs
            u = probs.new_empty(self._extended_shape(sample_shape)).uniform_(finfo(probs.dtype).tiny, 1)
            return (u.log() / (-probs).log1p()).floor()

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        value, probs = broadcast_all(value, self.probs)
        probs = probs.masked_fill((probs == 1) & (value == 0), 0)  # no failures: 0 log 0 is 0
        return value * (-probs).log1p() + self.probs.log()

    def entropy(self) -> Tensor:
        return binary_cross_entropy_with_logits(self.logits, self.probs, reduction="none") / self.probs
