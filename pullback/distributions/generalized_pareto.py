"""The generalized Pareto distribution: what lies beyond a high threshold.

With `concentration` zero it is the exponential distribution; the closed forms divide by the concentration there, so
they are computed with one in its place and not used.
"""

from __future__ import annotations

from collections.abc import Sequence

from .. import Size, Tensor, inf, isclose, nan, ones_like, rand, where, zeros_like
from . import constraints
from .distribution import Distribution
from .parameters import broadcast_all

__all__ = ["GeneralizedPareto"]


class GeneralizedPareto(Distribution):
    """Numbers above `loc`; for negative concentration also below `loc - scale / concentration`."""

    arg_constraints = {
        "loc": constraints.real,
        "scale": constraints.positive,
        "concentration": constraints.real,
    }
    has_rsample = True
    _batched = ("loc", "scale", "concentration")

    def __init__(
        self,
        loc: Tensor | float,
        scale: Tensor | float,
        concentration: Tensor | float,
        validate_args: bool | None = None,
    ):
        self.loc, self.scale, self.concentration = broadcast_all(loc, scale, concentration)
        super().__init__(self.loc.size(), validate_args=validate_args)

    @constraints.dependent_property(is_discrete=False, event_dim=0)
    def support(self):
        end = self.loc - self.scale / self.concentration
        return constraints.interval(self.loc, where(self.concentration < 0, end, inf))

    def _split(self) -> tuple[Tensor, Tensor]:
        """Where the concentration is zero, and a concentration that is not."""
        c = self.concentration
        is_zero = isclose(c, zeros_like(c))
        return is_zero, where(is_zero, ones_like(c), c)

    def _z(self, x: Tensor) -> Tensor:
        return (x - self.loc) / self.scale

    def rsample(self, sample_shape: Sequence[int] = Size()) -> Tensor:
        return self.icdf(rand(self._extended_shape(sample_shape), dtype=self.loc.dtype, device=self.loc.device))

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        z = self._z(value)
        is_zero, c = self._split()
        power = 1 / c + ones_like(z)
        closed = where(power == 0, power, power * (c * z).log1p())
        return -self.scale.log() - where(is_zero, z, closed)

    def log_survival_function(self, value: Tensor) -> Tensor:
        """log(1 - cdf)."""
        if self._validate_args:
            self._validate_sample(value)
        z = self._z(value)
        is_zero, c = self._split()
        return where(is_zero, -z, -(c * z).log1p() / c)

    def log_cdf(self, value: Tensor) -> Tensor:
        """log(cdf)."""
        return (-self.log_survival_function(value).exp()).log1p()

    def cdf(self, value: Tensor) -> Tensor:
        return self.log_cdf(value).exp()

    def icdf(self, value: Tensor) -> Tensor:
        is_zero, c = self._split()
        log_left = (-value).log1p()
        closed = self.loc + self.scale / c * (-c * log_left).expm1()
        return where(is_zero, self.loc - self.scale * log_left, closed)

    @property
    def mean(self) -> Tensor:
        exists = self.concentration < 1
        c = where(exists, self.concentration, 0.5)
        return where(exists, self.loc + self.scale / (1 - c), nan)

    @property
    def mode(self) -> Tensor:
        return self.loc

    @property
    def variance(self) -> Tensor:
        exists = self.concentration < 0.5
        c = where(exists, self.concentration, 0.25)
        return where(exists, self.scale**2 / ((1 - c) ** 2 * (1 - 2 * c)), nan)

    def entropy(self) -> Tensor:
        return self.scale.log() + self.concentration + 1
