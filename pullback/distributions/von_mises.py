"""The von Mises distribution, over angles: the normal distribution of the circle.

The Bessel functions are the polynomial approximations of Abramowitz and Stegun, 9.8.1 to 9.8.4, to about seven digits.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from .. import Size, Tensor, float64, no_grad, rand, where, zeros_like
from . import constraints
from .distribution import Distribution
from .parameters import broadcast_all, lazy_property

__all__ = ["VonMises"]

# By order; coefficients of rising powers of (x / 3.75)² below 3.75, of 3.75 / x above.
_SMALL = (
    (1.0, 3.5156229, 3.0899424, 1.2067492, 0.2659732, 0.360768e-1, 0.45813e-2),
    (0.5, 0.87890594, 0.51498869, 0.15084934, 0.2658733e-1, 0.301532e-2, 0.32411e-3),
)
_LARGE = (
    (
        0.39894228, 0.1328592e-1, 0.225319e-2, -0.157565e-2, 0.916281e-2, -0.2057706e-1, 0.2635537e-1, -0.1647633e-1,
        0.392377e-2,
    ),
    (
        0.39894228, -0.3988024e-1, -0.362018e-2, 0.163801e-2, -0.1031555e-1, 0.2282967e-1, -0.2895312e-1, 0.1787654e-1,
        -0.420059e-2,
    ),
)  # fmt: skip


def _polynomial(y: Tensor, coefficients: Sequence[float]) -> Tensor:
    *rest, last = coefficients
    result = last
    for c in reversed(rest):
        result = c + y * result
    return result


def _log_bessel(x: Tensor, order: int = 0) -> Tensor:
    """log I₀(x) or log I₁(x), for x > 0."""
    small = _polynomial((x / 3.75) * (x / 3.75), _SMALL[order])
    if order == 1:
        small = x.abs() * small
    large = x - 0.5 * x.log() + _polynomial(3.75 / x, _LARGE[order]).log()
    return where(x < 3.75, small.log(), large)


class VonMises(Distribution):
    """Angles in [-π, π) around `loc`, closer to it the larger the concentration."""

    arg_constraints = {"loc": constraints.real, "concentration": constraints.positive}
    support = constraints.real
    has_rsample = False
    _batched = ("loc", "concentration")

    def __init__(self, loc: Tensor, concentration: Tensor, validate_args: bool | None = None):
        self.loc, self.concentration = broadcast_all(loc, concentration)
        super().__init__(self.loc.shape, validate_args=validate_args)

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        log_density = self.concentration * (value - self.loc).cos()
        return log_density - math.log(2 * math.pi) - _log_bessel(self.concentration, order=0)

    @lazy_property
    def _proposal_r(self) -> Tensor:
        """The parameter of the wrapped Cauchy distribution that candidates come from, in double precision."""
        kappa = self.concentration.to(float64)
        tau = 1 + (1 + 4 * kappa**2).sqrt()
        rho = (tau - (2 * tau).sqrt()) / (2 * kappa)
        closed = (1 + rho**2) / (2 * rho)
        return where(kappa < 1e-5, 1 / kappa + kappa, closed)  # the closed form cancels for small kappa

    def sample(self, sample_shape: Sequence[int] = Size()) -> Tensor:
        """By rejection: D. Best and N. Fisher, Efficient simulation of the von Mises distribution (1979)."""
        with no_grad():
            loc, kappa, r = self.loc.to(float64), self.concentration.to(float64), self._proposal_r
            x = loc.new_zeros(self._extended_shape(sample_shape))
            done = zeros_like(x) > 0
            while not constraints.everywhere(done):
                u1, u2, u3 = rand((3,) + x.shape, dtype=x.dtype, device=x.device).unbind()
                z = (math.pi * u1).cos()
                f = (1 + r * z) / (r + z)
                c = kappa * (r - f)
                accept = ((c * (2 - c) - u2) > 0) | ((c / u2).log() + 1 - c >= 0)
                x = where(accept, (u3 - 0.5).sign() * f.acos(), x)  # replaces accepted ones too: any of them will do
                done = done | accept
            return ((x + math.pi + loc) % (2 * math.pi) - math.pi).to(self.loc.dtype)

    @property
    def mean(self) -> Tensor:
        """The circular mean."""
        return self.loc

    @property
    def mode(self) -> Tensor:
        return self.loc

    @lazy_property
    def variance(self) -> Tensor:  # type: ignore[override]
        """The circular variance."""
        return 1 - (_log_bessel(self.concentration, order=1) - _log_bessel(self.concentration, order=0)).exp()
