"""The continuous Bernoulli distribution: numbers in [0, 1] with density proportional to p^x (1 - p)^(1 - x).

Near p = 1/2 the closed forms are 0/0; within `lims` Taylor series take their place.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from .. import Size, Tensor, no_grad, ones_like, rand, where, zeros_like
from ..ops.system.operator import public
from . import constraints
from .exp_family import ExponentialFamily
from .parameters import ProbsOrLogits, broadcast_all, clamp_probs, lazy_property, logits_to_probs

__all__ = ["ContinuousBernoulli"]

binary_cross_entropy_with_logits = public("nn.functional", "binary_cross_entropy_with_logits")


class ContinuousBernoulli(ProbsOrLogits, ExponentialFamily):
    """Numbers in [0, 1] that lean to one side."""

    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.unit_interval
    has_rsample = True
    _mean_carrier_measure = 0
    _batched = ("probs", "logits")

    def __init__(
        self,
        probs: Tensor | float | None = None,
        logits: Tensor | float | None = None,
        lims: tuple[float, float] = (0.499, 0.501),
        validate_args: bool | None = None,
    ):
        self._take_probs_or_logits(probs, logits)
        if probs is not None:
            # The clamping that follows would hide bad values from the usual check.
            if validate_args is not None and not constraints.everywhere(
                self.arg_constraints["probs"].check(self.probs)
            ):
                raise ValueError("The parameter probs has invalid values")
            self.probs = clamp_probs(self.probs)
        self._lims = lims
        super().__init__(self._param.size(), validate_args=validate_args)

    @lazy_property
    def probs(self) -> Tensor:
        return clamp_probs(logits_to_probs(self.logits, is_binary=True))

    def _outside_unstable_region(self) -> Tensor:
        return (self.probs <= self._lims[0]) | (self.probs > self._lims[1])

    def _cut_probs(self) -> Tensor:
        """The probabilities, moved off the unstable region to its edge, so that closed forms stay finite."""
        return where(self._outside_unstable_region(), self.probs, self._lims[0] * ones_like(self.probs))

    def _stable(self, closed: Tensor, series: Tensor) -> Tensor:
        return where(self._outside_unstable_region(), closed, series)

    def _cont_bern_log_norm(self) -> Tensor:
        """The logarithm of what the density is multiplied with."""
        p = self._cut_probs()
        low = where(p <= 0.5, p, zeros_like(p))
        high = where(p >= 0.5, p, ones_like(p))
        distance = where(p <= 0.5, (-2.0 * low).log1p(), (2.0 * high - 1.0).log())
        closed = ((-p).log1p() - p.log()).abs().log() - distance
        x = (self.probs - 0.5).pow(2)
        return self._stable(closed, math.log(2.0) + (4.0 / 3.0 + 104.0 / 45.0 * x) * x)

    @property
    def mean(self) -> Tensor:
        p = self._cut_probs()
        closed = p / (2.0 * p - 1.0) + 1.0 / ((-p).log1p() - p.log())
        x = self.probs - 0.5
        return self._stable(closed, 0.5 + (1.0 / 3.0 + 16.0 / 45.0 * x.pow(2)) * x)

    @property
    def stddev(self) -> Tensor:
        return self.variance.sqrt()

    @property
    def variance(self) -> Tensor:
        p = self._cut_probs()
        closed = p * (p - 1.0) / (1.0 - 2.0 * p).pow(2) + 1.0 / ((-p).log1p() - p.log()).pow(2)
        x = (self.probs - 0.5).pow(2)
        return self._stable(closed, 1.0 / 12.0 - (1.0 / 15.0 - 128.0 / 945.0 * x) * x)

    def sample(self, sample_shape: Sequence[int] = Size()) -> Tensor:
        with no_grad():
            return self.rsample(sample_shape)

    def rsample(self, sample_shape: Sequence[int] = Size()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        return self.icdf(rand(shape, dtype=self.probs.dtype, device=self.probs.device))

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        logits, value = broadcast_all(self.logits, value)
        return -binary_cross_entropy_with_logits(logits, value, reduction="none") + self._cont_bern_log_norm()

    def cdf(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        p = self._cut_probs()
        closed = (p.pow(value) * (1.0 - p).pow(1.0 - value) + p - 1.0) / (2.0 * p - 1.0)
        inside = self._stable(closed, value)
        return where(value <= 0.0, zeros_like(value), where(value >= 1.0, ones_like(value), inside))

    def icdf(self, value: Tensor) -> Tensor:
        p = self._cut_probs()
        closed = ((-p + value * (2.0 * p - 1.0)).log1p() - (-p).log1p()) / (p.log() - (-p).log1p())
        return self._stable(closed, value)

    def entropy(self) -> Tensor:
        log_no, log_yes = (-self.probs).log1p(), self.probs.log()
        return self.mean * (log_no - log_yes) - self._cont_bern_log_norm() - log_no

    @property
    def _natural_params(self) -> tuple[Tensor, ...]:
        return (self.logits,)

    def _log_normalizer(self, x: Tensor) -> Tensor:  # type: ignore[override]
        outside = (x <= self._lims[0] - 0.5) | (x > self._lims[1] - 0.5)
        cut = where(outside, x, (self._lims[0] - 0.5) * ones_like(x))
        closed = cut.expm1().abs().log() - cut.abs().log()
        return where(outside, closed, 0.5 * x + x.pow(2) / 24.0 - x.pow(4) / 2880.0)
