"""The negative binomial distribution: how many trials succeed before `total_count` have failed."""

from __future__ import annotations

from collections.abc import Sequence

from .. import Size, Tensor, no_grad, poisson
from ..ops.system.operator import public
from . import constraints
from .distribution import Distribution
from .gamma import Gamma
from .parameters import ProbsOrLogits, lazy_property

__all__ = ["NegativeBinomial"]

logsigmoid = public("nn.functional", "logsigmoid")


class NegativeBinomial(ProbsOrLogits, Distribution):
    """Counts, from how many failures end them and the probability or log odds of a success."""

    arg_constraints = {
        "total_count": constraints.greater_than_eq(0),
        "probs": constraints.half_open_interval(0.0, 1.0),
        "logits": constraints.real,
    }
    support = constraints.nonnegative_integer
    _batched = ("total_count", "probs", "logits", "_gamma")

    def __init__(
        self,
        total_count: Tensor | float,
        probs: Tensor | None = None,
        logits: Tensor | None = None,
        validate_args: bool | None = None,
    ):
        (total_count,) = self._take_probs_or_logits(probs, logits, total_count)
        self.total_count = total_count.type_as(self._param)
        super().__init__(self._param.size(), validate_args=validate_args)

    @property
    def mean(self) -> Tensor:
        return self.total_count * self.logits.exp()

    @property
    def mode(self) -> Tensor:
        return ((self.total_count - 1) * self.logits.exp()).floor().clamp(min=0.0)

    @property
    def variance(self) -> Tensor:
        return self.mean / (-self.logits).sigmoid()

    @lazy_property
    def _gamma(self) -> Gamma:
        # Poisson numbers whose rates are gamma numbers are negative binomial.
        return Gamma(concentration=self.total_count, rate=(-self.logits).exp(), validate_args=False)

    def sample(self, sample_shape: Sequence[int] = Size()) -> Tensor:
        with no_grad():
            return poisson(self._gamma.sample(sample_shape=sample_shape))

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        n = self.total_count
        powers = n * logsigmoid(-self.logits) + value * logsigmoid(self.logits)
        normalizer = -(n + value).lgamma() + (1.0 + value).lgamma() + n.lgamma()
        return powers - normalizer.masked_fill(n + value == 0.0, 0.0)  # ∞ - ∞ where both are 0
