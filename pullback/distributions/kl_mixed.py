"""Divergences between distributions of different kinds.

Where p has samples that q cannot have, the divergence is infinite.
"""

from __future__ import annotations

import math

from .. import Tensor, full_like, inf, where
from .bernoulli import Bernoulli
from .beta import Beta
from .binomial import Binomial
from .continuous_bernoulli import ContinuousBernoulli
from .exponential import Exponential
from .gamma import Gamma
from .gumbel import Gumbel
from .kl import register_kl
from .laplace import Laplace
from .normal import Normal
from .parameters import euler_constant
from .pareto import Pareto
from .poisson import Poisson
from .uniform import Uniform

LOG_2PI = math.log(2 * math.pi)

# p: the parameter that gives the result its shape, and the q that lack some of p's support.
_INFINITE = {
    Beta: ("concentration1", (Pareto,)),
    ContinuousBernoulli: ("probs", (Pareto,)),
    Exponential: ("rate", (Beta, ContinuousBernoulli, Pareto, Uniform)),
    Gamma: ("concentration", (Beta, ContinuousBernoulli, Pareto, Uniform)),
    Gumbel: ("loc", (Beta, ContinuousBernoulli, Exponential, Gamma, Pareto, Uniform)),
    Laplace: ("loc", (Beta, ContinuousBernoulli, Exponential, Gamma, Pareto, Uniform)),
    Normal: ("loc", (Beta, ContinuousBernoulli, Exponential, Gamma, Pareto, Uniform)),
    Pareto: ("scale", (Beta, ContinuousBernoulli, Uniform)),
    Poisson: ("rate", (Bernoulli, Binomial)),
}


def _register_infinite(type_p: type, parameter: str, types_q: tuple[type, ...]) -> None:
    def infinite(p, q) -> Tensor:
        return full_like(getattr(p, parameter), inf)

    for type_q in types_q:
        register_kl(type_p, type_q)(infinite)


for _type_p, (_parameter, _types_q) in _INFINITE.items():
    _register_infinite(_type_p, _parameter, _types_q)


def _x_log_x(x: Tensor) -> Tensor:
    return x.xlogy(x)  # 0 at 0


def _gamma_normalizer(q: Gamma) -> Tensor:
    return q.concentration.lgamma() - q.concentration * q.rate.log()


@register_kl(Bernoulli, Poisson)
def _bernoulli_poisson(p: Bernoulli, q: Poisson) -> Tensor:
    return -p.entropy() - (p.probs * q.rate.log() - q.rate)


# ---- from the beta distribution
@register_kl(Beta, ContinuousBernoulli)
def _beta_continuous_bernoulli(p: Beta, q: ContinuousBernoulli) -> Tensor:
    return -p.entropy() - p.mean * q.logits - (-q.probs).log1p() - q._cont_bern_log_norm()


@register_kl(Beta, Exponential)
def _beta_exponential(p: Beta, q: Exponential) -> Tensor:
    return -p.entropy() - q.rate.log() + q.rate * p.mean


@register_kl(Beta, Gamma)
def _beta_gamma(p: Beta, q: Gamma) -> Tensor:
    mean_log = p.concentration1.digamma() - (p.concentration1 + p.concentration0).digamma()
    return -p.entropy() + _gamma_normalizer(q) - (q.concentration - 1) * mean_log + q.rate * p.mean


@register_kl(Beta, Normal)
def _beta_normal(p: Beta, q: Normal) -> Tensor:
    mean, variance = p.mean, q.scale.pow(2)
    second = mean * (1 - mean) / (p.concentration1 + p.concentration0 + 1) + mean.pow(2)
    distance = 0.5 * second - mean * q.loc + 0.5 * q.loc.pow(2)
    return -p.entropy() + 0.5 * (variance * 2 * math.pi).log() + distance / variance


@register_kl(Beta, Uniform)
def _beta_uniform(p: Beta, q: Uniform) -> Tensor:
    result = -p.entropy() + (q.high - q.low).log()
    return where((q.low > p.support.lower_bound) | (q.high < p.support.upper_bound), inf, result)


# ---- from the continuous Bernoulli distribution
@register_kl(ContinuousBernoulli, Exponential)
def _continuous_bernoulli_exponential(p: ContinuousBernoulli, q: Exponential) -> Tensor:
    return -p.entropy() - q.rate.log() + q.rate * p.mean


@register_kl(ContinuousBernoulli, Normal)
def _continuous_bernoulli_normal(p: ContinuousBernoulli, q: Normal) -> Tensor:
    own = 0.5 * (LOG_2PI + (q.loc / q.scale).square()) + q.scale.log()
    second = p.variance + p.mean.square() - 2.0 * q.loc * p.mean
    return -p.entropy() + own + second / (2.0 * q.scale.square())


@register_kl(ContinuousBernoulli, Uniform)
def _continuous_bernoulli_uniform(p: ContinuousBernoulli, q: Uniform) -> Tensor:
    # PyTorch calls this infinite also where the supports end at the same point.
    result = -p.entropy() + (q.high - q.low).log()
    return where((q.low >= p.support.lower_bound) | (q.high <= p.support.upper_bound), inf, result)


# ---- from the exponential distribution
@register_kl(Exponential, Gamma)
def _exponential_gamma(p: Exponential, q: Gamma) -> Tensor:
    ratio, c = q.rate / p.rate, q.concentration
    return -c * ratio.log() + ratio + c.lgamma() + c * euler_constant - (1 + euler_constant)


@register_kl(Exponential, Gumbel)
def _exponential_gumbel(p: Exponential, q: Gumbel) -> Tensor:
    product, start = p.rate * q.scale, q.loc / q.scale
    tail = start.exp() * product / (product + 1)
    return product.log() - 1 - start + tail + product.reciprocal()


@register_kl(Exponential, Normal)
def _exponential_normal(p: Exponential, q: Normal) -> Tensor:
    variance, rate_squared = q.scale.pow(2), p.rate.pow(2)
    distance = rate_squared.reciprocal() - q.loc / p.rate + 0.5 * q.loc.pow(2)
    return 0.5 * (rate_squared * variance * 2 * math.pi).log() - 1 + distance / variance


# ---- from the gamma distribution
@register_kl(Gamma, Exponential)
def _gamma_exponential(p: Gamma, q: Exponential) -> Tensor:
    return -p.entropy() - q.rate.log() + q.rate * p.concentration / p.rate


@register_kl(Gamma, Gumbel)
def _gamma_gumbel(p: Gamma, q: Gumbel) -> Tensor:
    product, start, c = p.rate * q.scale, q.loc / q.scale, p.concentration
    own = (c - 1) * c.digamma() - c.lgamma() - c
    tail = start.exp() * (1 + product.reciprocal()).pow(-c)
    return own + product.log() + c / product + tail - start


@register_kl(Gamma, Normal)
def _gamma_normal(p: Gamma, q: Normal) -> Tensor:
    variance, rate_squared, c = q.scale.pow(2), p.rate.pow(2), p.concentration
    own = 0.5 * (rate_squared * variance * 2 * math.pi).log() - c - c.lgamma()
    distance = 0.5 * (c.pow(2) + c) / rate_squared - q.loc * c / p.rate + 0.5 * q.loc.pow(2)
    return own + (c - 1) * c.digamma() + distance / variance


# ---- from the whole line
@register_kl(Gumbel, Normal)
def _gumbel_normal(p: Gumbel, q: Normal) -> Tensor:
    ratio = p.scale / q.scale
    spread = (math.pi * ratio * 0.5).pow(2) / 3
    distance = 0.5 * ((p.loc + p.scale * euler_constant - q.loc) / q.scale).pow(2)
    return -(ratio / math.sqrt(2 * math.pi)).log() + spread + distance - (euler_constant + 1)


@register_kl(Laplace, Normal)
def _laplace_normal(p: Laplace, q: Normal) -> Tensor:
    variance = q.scale.pow(2)
    ratio = p.scale.pow(2) / variance
    distance = 0.5 * p.loc.pow(2) - p.loc * q.loc + 0.5 * q.loc.pow(2)
    return -0.5 * (2 * ratio / math.pi).log() + ratio + distance / variance - 1


@register_kl(Normal, Gumbel)
def _normal_gumbel(p: Normal, q: Gumbel) -> Tensor:
    ratio = (p.scale / q.scale).pow(2)
    mean, start = p.loc / q.scale, q.loc / q.scale
    tail = (-mean + 0.5 * ratio + start).exp()
    return -0.5 * ratio.log() + mean - start + tail - 0.5 * (1 + LOG_2PI)


@register_kl(Normal, Laplace)
def _normal_laplace(p: Normal, q: Laplace) -> Tensor:
    difference = p.loc - q.loc
    distance = difference / p.scale
    near = math.sqrt(2 / math.pi) * p.scale * (-0.5 * distance.pow(2)).exp()
    far = difference * (math.sqrt(0.5) * distance).erf()
    return -(p.scale / q.scale).log() + (near + far) / q.scale - 0.5 * (1 + math.log(0.5 * math.pi))


# ---- from the Pareto distribution, whose moments exist only for large alpha
@register_kl(Pareto, Exponential)
def _pareto_exponential(p: Pareto, q: Exponential) -> Tensor:
    product = p.scale * q.rate
    mean = p.alpha * product / (p.alpha - 1)
    return where(p.alpha <= 1, inf, (p.alpha / product).log() - p.alpha.reciprocal() + mean - 1)


@register_kl(Pareto, Gamma)
def _pareto_gamma(p: Pareto, q: Gamma) -> Tensor:
    mean_log = p.scale.log() + p.alpha.reciprocal()
    mean = q.rate * p.alpha * p.scale / (p.alpha - 1)
    result = p.alpha.log() - mean_log + _gamma_normalizer(q) + (1 - q.concentration) * mean_log + mean - 1
    return where(p.alpha <= 1, inf, result)


@register_kl(Pareto, Normal)
def _pareto_normal(p: Pareto, q: Normal) -> Tensor:
    common = p.scale / (p.alpha - 1)
    own = (math.sqrt(2 * math.pi) * q.scale * p.alpha / p.scale).log() - p.alpha.reciprocal()
    distance = p.alpha * common.pow(2) / (p.alpha - 2) + (p.alpha * common - q.loc).pow(2)
    return where(p.alpha <= 2, inf, own + distance / (2 * q.scale.pow(2)) - 1)


# ---- from the uniform distribution
@register_kl(Uniform, Beta)
def _uniform_beta(p: Uniform, q: Beta) -> Tensor:
    width = p.high - p.low
    mean_log = (_x_log_x(p.high) - _x_log_x(p.low) - width) / width
    mean_log_rest = (_x_log_x(1 - p.high) - _x_log_x(1 - p.low) + width) / width
    normalizer = q.concentration1.lgamma() + q.concentration0.lgamma() - (q.concentration1 + q.concentration0).lgamma()
    powers = (q.concentration0 - 1) * mean_log_rest - (q.concentration1 - 1) * mean_log
    result = normalizer - width.log() + powers
    return where((p.high > q.support.upper_bound) | (p.low < q.support.lower_bound), inf, result)


@register_kl(Uniform, ContinuousBernoulli)
def _uniform_continuous_bernoulli(p: Uniform, q: ContinuousBernoulli) -> Tensor:
    # PyTorch calls this infinite also where the supports end at the same point.
    result = -p.entropy() - p.mean * q.logits - (-q.probs).log1p() - q._cont_bern_log_norm()
    return where((p.high >= q.support.upper_bound) | (p.low <= q.support.lower_bound), inf, result)


@register_kl(Uniform, Exponential)
def _uniform_exponential(p: Uniform, q: Exponential) -> Tensor:
    result = q.rate * (p.high + p.low) / 2 - ((p.high - p.low) * q.rate).log()
    return where(p.low < q.support.lower_bound, inf, result)


@register_kl(Uniform, Gamma)
def _uniform_gamma(p: Uniform, q: Gamma) -> Tensor:
    width = p.high - p.low
    mean_log = (_x_log_x(p.high) - _x_log_x(p.low) - width) / width
    mean = q.rate * (p.high + p.low) / 2
    result = -width.log() + _gamma_normalizer(q) + (1 - q.concentration) * mean_log + mean
    return where(p.low < q.support.lower_bound, inf, result)


@register_kl(Uniform, Gumbel)
def _uniform_gumbel(p: Uniform, q: Gumbel) -> Tensor:
    ratio = q.scale / (p.high - p.low)
    high, low = (p.high - q.loc) / q.scale, (p.low - q.loc) / q.scale
    return ratio.log() + 0.5 * (high + low) - ratio * ((-high).exp() - (-low).exp())


@register_kl(Uniform, Normal)
def _uniform_normal(p: Uniform, q: Normal) -> Tensor:
    width = p.high - p.low
    own = (math.sqrt(2 * math.pi) * q.scale / width).log()
    distance = width.pow(2) / 12 + ((p.high + p.low - 2 * q.loc) / 2).pow(2)
    return own + 0.5 * distance / q.scale.pow(2)


@register_kl(Uniform, Pareto)
def _uniform_pareto(p: Uniform, q: Pareto) -> Tensor:
    width = p.high - p.low
    mean_log = (_x_log_x(p.high) - _x_log_x(p.low) - width) / width
    result = mean_log * (q.alpha + 1) - (q.alpha * q.scale.pow(q.alpha) * width).log()
    return where(p.low < q.support.lower_bound, inf, result)
