"""The binomial distribution: how many of `total_count` trials succeed."""

from __future__ import annotations

from collections.abc import Sequence

from .. import Size, Tensor, arange, no_grad
from .. import binomial as draw
from . import constraints
from .distribution import Distribution
from .parameters import ProbsOrLogits

__all__ = ["Binomial"]


class Binomial(ProbsOrLogits, Distribution):
    """Counts, from the number of trials and the probability or log odds of each."""

    arg_constraints = {
        "total_count": constraints.nonnegative_integer,
        "probs": constraints.unit_interval,
        "logits": constraints.real,
    }
    has_enumerate_support = True
    _batched = ("total_count", "probs", "logits")

    def __init__(
        self,
        total_count: Tensor | int = 1,
        probs: Tensor | None = None,
        logits: Tensor | None = None,
        validate_args: bool | None = None,
    ):
        (total_count,) = self._take_probs_or_logits(probs, logits, total_count)
        self.total_count = total_count.type_as(self._param)
        super().__init__(self._param.size(), validate_args=validate_args)

    @constraints.dependent_property(is_discrete=True, event_dim=0)
    def support(self):
        return constraints.integer_interval(0, self.total_count)

    @property
    def mean(self) -> Tensor:
        return self.total_count * self.probs

    @property
    def mode(self) -> Tensor:
        return ((self.total_count + 1) * self.probs).floor().clamp(max=self.total_count)

    @property
    def variance(self) -> Tensor:
        return self.total_count * self.probs * (1 - self.probs)

    def sample(self, sample_shape: Sequence[int] = Size()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        with no_grad():
            return draw(self.total_count.expand(shape), self.probs.expand(shape))

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        n, logits = self.total_count, self.logits
        # log(1 + exp(logits)) without overflow
        failing = n * _positive_part(logits) + n * (-logits.abs()).exp().log1p()
        normalizer = failing - (n + 1).lgamma()
        return value * logits - (value + 1).lgamma() - (n - value + 1).lgamma() - normalizer

    def entropy(self) -> Tensor:
        self._one_count("entropy")
        log_prob = self.log_prob(self.enumerate_support(False))
        return -(log_prob.exp() * log_prob).sum(0)

    def enumerate_support(self, expand: bool = True) -> Tensor:
        total = self._one_count("enumerate_support")
        return self._enumerated(arange(1 + total, dtype=self._param.dtype, device=self._param.device), expand)

    def _one_count(self, caller: str) -> int:
        total = int(self.total_count.max())
        if not self.total_count.min() == total:
            raise NotImplementedError(f"Inhomogeneous total count not supported by `{caller}`.")
        return total


def _positive_part(x: Tensor) -> Tensor:
    """max(x, 0), with the gradient one half at zero."""
    return (x.clamp(min=0) + x - x.clamp(max=0)) / 2
